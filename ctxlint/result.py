"""What a run has to say about one file: the record between the pipeline and everything that shows or fixes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.config.settings import INTERNAL_ERROR, Settings

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic, Fixed
    from ctxlint.model.index.outside_facts import FileFacts, KnownNames, OutsideFacts, Own
    from ctxlint.model.index.project import Consulted
    from ctxlint.source.source import Located, Source

_DEFAULT = Settings()


class Known(NamedTuple):
    """What a baseline knows a finding by within its file. ``scope`` is dotted, such as ``ScaledExp.forward``."""

    code: str
    scope: str
    statement: str


Gone = tuple[tuple[Known, int], ...]
"""What a baseline knows and is not there any more, with how many there are of each, sorted."""


class Candidate(NamedTuple):
    """A file to lint, with the settings that apply to it and what other files of the run say.

    ``known`` are the names of Functions in the project, for a file that does not look as if it held one: it is told
    those that it calls, and linted only if it has to do with Functions. ``alone`` is what was found out before about
    the file by itself, and needs not be found out again. With ``facts_only`` nothing is judged.
    """

    path: str
    settings: Settings
    outside: OutsideFacts | None = None
    known: KnownNames | None = None
    alone: Alone | None = None
    facts_only: bool = False


class Alone(NamedTuple):
    """What was found out about a file by itself; what that depends on is as in ``FileResult``.

    ``findings`` are all, also those that a comment suppresses or that were fixed, each after the key of the Function
    that it is about (see ``check_file``); ``functions`` are its Functions.
    """

    findings: tuple[tuple[str, Diagnostic], ...]
    functions: tuple[Own, ...]
    consulted: Consulted | None = None
    read: tuple[tuple[str, bytes | None], ...] = ()


class FileResult(NamedTuple):
    """One file after it went through the pipeline.

    ``linted`` says that it was read and understood; else it holds no candidate, cannot be read, or was ``skipped`` (the
    reason). ``function_count`` is how many Functions it defines.
    ``source`` is None where it was not decoded, or nothing is to be shown of it. ``diagnostics`` are sorted;
    ``hidden`` are those that a comment suppresses; ``warnings`` are pairs of line and message about such comments, or,
    with 0 as the line, about the whole. ``broken`` counts the statements that cannot be parsed. ``baselined`` are
    findings that a baseline lists, and ``gone`` is what it lists and what is not there any more, with how often. After
    ``--fix``, ``source`` and ``diagnostics`` are what is left, ``fixed`` is what is not, and ``before`` is the text as
    it was. ``settings`` are those that applied.

    ``outside`` is what other files of the run say about this one, as far as it was judged by that; ``facts`` is what
    this one says about others, and ``consulted`` what it looked up on disk by following imports. ``read`` are the files
    whose content it hangs on, its own first, by absolute path, with what stands for the content (None: unreadable).
    ``alone`` is what was found out about it by itself, where that need not be found out again.
    """

    path: str
    source: Source | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    hidden: tuple[Diagnostic, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()
    baselined: tuple[Diagnostic, ...] = ()
    gone: Gone = ()
    broken: int = 0
    skipped: str = ""
    linted: bool = False
    function_count: int = 0
    fixed: tuple[Fixed, ...] = ()
    before: Source | None = None
    settings: Settings = _DEFAULT
    outside: OutsideFacts | None = None
    facts: FileFacts | None = None
    consulted: Consulted | None = None
    read: tuple[tuple[str, bytes | None], ...] = ()
    alone: Alone | None = None

    @property
    def failed(self) -> bool:
        """Whether ctxlint itself failed on the file."""
        return any(each.code == INTERNAL_ERROR for each in self.diagnostics)


def shows_text(result: FileResult) -> bool:
    """Whether something is to be said about places in the file."""
    return bool(result.diagnostics or result.hidden or result.warnings or result.before)


def without_needless_text(result: FileResult) -> FileResult:
    """The result as it is kept until it is reported: most files say nothing, and all texts together are large."""
    return result if result.source is None or shows_text(result) else result._replace(source=None)


def locate(diagnostic: Diagnostic, source: Source | None) -> Located:
    """Where people find a finding in its file; what is about a notebook as a whole is in none of its cells."""
    from ctxlint.source.source import WHOLE_FILE, Located, Source

    if source is None or (diagnostic.span == WHOLE_FILE and diagnostic.code in (INTERNAL_ERROR, "CTX902")):
        return Located(source or Source(diagnostic.path, ""), diagnostic.span)
    return source.locate(diagnostic.span)


def internal_error(path: str, message: str) -> Diagnostic:
    """The finding that says that ctxlint itself failed on a file."""
    from ctxlint.diagnostic import Diagnostic  # a clean run has no use for it
    from ctxlint.source.source import WHOLE_FILE

    message = f"{message}. This is a bug in ctxlint; report it."
    return Diagnostic(path, WHOLE_FILE, INTERNAL_ERROR, "internal-error", message)


def io_error(path: str, reason: str) -> Diagnostic:
    """The finding that says that a file could not be read or written."""
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import WHOLE_FILE

    return Diagnostic(path, WHOLE_FILE, "CTX902", "io-error", f"{reason}.")


def with_finding(result: FileResult, diagnostic: Diagnostic) -> FileResult:
    """``result`` with one more finding, in its place."""
    diagnostics = sorted((*result.diagnostics, diagnostic), key=lambda each: each.sort_key)
    return result._replace(diagnostics=tuple(diagnostics))


def describe(who: str, error: BaseException) -> str:
    """Who failed, with which exception, in which line: enough to report it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f" in {os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno}"
    return f"{who} failed with {type(error).__name__}{place}: {error}".rstrip(": ")
