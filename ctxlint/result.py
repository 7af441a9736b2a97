"""The result for one file: the record between the pipeline and everything that shows or fixes findings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.config.settings import INTERNAL_ERROR, Settings
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic, Fixed
    from ctxlint.model.index.outside_facts import FileFacts, KnownNames, OutsideFacts, Own
    from ctxlint.model.index.project import Consulted
    from ctxlint.source.source import Located, Source

_DEFAULT = Settings()


class Known(NamedTuple):
    """The identity of a baseline finding within its file. ``scope`` is dotted, such as ``ScaledExp.forward``."""

    code: str
    scope: str
    statement: str


Gone = tuple[tuple[Known, int], ...]
"""The stale entries of a baseline, each with its count, sorted."""


class Candidate(NamedTuple):
    """A file to lint, with its settings and the facts of other files of the run about it.

    ``known`` are the names of Functions in the project, for a file that does not look as if it contained one: it gets
    those that it calls, and is linted only if it is related to Functions. ``alone`` is the earlier result for the file
    by itself, to be reused. With ``facts_only``, findings are not computed.
    """

    path: str
    settings: Settings
    outside: OutsideFacts | None = None
    known: KnownNames | None = None
    alone: Alone | None = None
    facts_only: bool = False


class Alone(NamedTuple):
    """The result for a file by itself; it depends on the same as a ``FileResult``.

    ``findings`` are all, including those that a comment suppresses or that were fixed, each after the key of the
    Function that it is about (see ``check_file``); ``functions`` are its Functions.
    """

    findings: tuple[tuple[str, Diagnostic], ...]
    functions: tuple[Own, ...]
    consulted: Consulted | None = None
    read: tuple[tuple[str, bytes | None], ...] = ()


class FileResult(NamedTuple):
    """The result for one file after the pipeline.

    ``linted``: it was parsed and analysed; otherwise it contains no candidate, cannot be read, or was ``skipped`` (the
    reason). ``function_count`` is the number of Functions that it defines. ``source`` is None if it was not decoded, or
    is not needed for reports. ``diagnostics`` are sorted; ``hidden`` are those that a comment suppresses; ``warnings``
    are pairs of line and message about such comments, or, with 0 as the line, about the whole file. ``broken`` counts
    the statements that cannot be parsed. ``baselined`` are findings in the baseline, and ``gone`` are its stale entries
    with their counts. After ``--fix``, ``source`` and ``diagnostics`` are the remaining ones, ``fixed`` those that were
    fixed, and ``before`` is the original text. ``settings`` are those that applied.

    ``outside`` are the facts of other files of the run about this one that its check used; ``facts`` are its facts
    about others, and ``consulted`` its disk look-ups while following imports. ``read`` are the files whose content it
    depends on, its own first, by absolute path, with their digests (None: unreadable). ``alone`` is the result for the
    file by itself, if it can be reused.
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
    """Whether something at a position in the file is to be reported."""
    return bool(result.diagnostics or result.hidden or result.warnings or result.before)


def without_needless_text(result: FileResult) -> FileResult:
    """The result as it is kept until it is reported: most files have no findings, and all texts together are large."""
    return result if result.source is None or shows_text(result) else result._replace(source=None)


def locate(diagnostic: Diagnostic, source: Source | None) -> Located:
    """The position of a finding in its file as users see it; a finding about a whole notebook is in no cell."""
    from ctxlint.source.source import WHOLE_FILE, Located, Source

    if source is None or (diagnostic.span == WHOLE_FILE and diagnostic.code in (INTERNAL_ERROR, "CTX902")):
        return Located(source or Source(diagnostic.path, ""), diagnostic.span)
    return source.locate(diagnostic.span)


def internal_error(path: str, message: str) -> Diagnostic:
    """The finding for an internal failure of ctxlint on a file."""
    from ctxlint.diagnostic import Diagnostic  # a clean run does not need it
    from ctxlint.source.source import WHOLE_FILE

    message = f"{message}. This is a bug in ctxlint; report it."
    return Diagnostic(path, WHOLE_FILE, INTERNAL_ERROR, "internal-error", message)


def nested_too_deeply(path: str) -> Diagnostic:
    """The finding for a file that Python cannot walk."""
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import WHOLE_FILE

    message = (
        "The code is nested too deeply, or a chain of names is too long, to be analysed; this file was not checked."
    )
    return Diagnostic(path, WHOLE_FILE, "CTX901", "invalid-syntax", message)


def io_error(path: str, reason: str) -> Diagnostic:
    """The finding for a file that could not be read or written."""
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import WHOLE_FILE

    return Diagnostic(path, WHOLE_FILE, "CTX902", "io-error", f"{reason}.")


def with_finding(result: FileResult, diagnostic: Diagnostic) -> FileResult:
    """``result`` with one more finding, sorted."""
    diagnostics = sorted((*result.diagnostics, diagnostic), key=lambda each: each.sort_key)
    return result._replace(diagnostics=tuple(diagnostics))


def describe(who: str, error: BaseException) -> str:
    """The failed component, the exception, and its line: enough to report it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f" in {os.path.basename(last.tb_frame.f_code.co_filename)}:{last.tb_lineno}"
    return f"{who} failed with {type(error).__name__}{place}: {error}".rstrip(": ")
