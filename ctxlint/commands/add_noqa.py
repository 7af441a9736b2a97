"""``ctxlint check --add-noqa``: suppress current findings, so that only new ones are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.commands.output import say
from ctxlint.rule_names import rule_names
from ctxlint.source.decode import encode
from ctxlint.source.reading import Undecodable
from ctxlint.source.writing import Unwritable, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.result import FileResult
    from ctxlint.source.source import Source

    Check = Callable[[Source, FileResult], FileResult]


def add_noqa(results: Iterable[FileResult], reason: str, check: Check) -> int:
    """Write a ``# noqa`` for every finding into its file and report how many lines that took; returns the exit code.

    ``check`` returns the result for a replacement of a file's text, with the same facts. A file is unchanged if a
    comment would not be effective: then a message says so, and the exit code is 1.
    """
    from ctxlint.report import counted

    added, code = 0, 0
    for result in results:
        lines, failure = _add_to(result, reason, check)
        added += lines
        if failure:
            say(f"{result.path}: {failure}")
            code = 1
    say(f"Added {counted(added, 'noqa comment')}.")
    return code


def _add_to(result: FileResult, reason: str, check: Check) -> tuple[int, str]:
    """How many comments were written into one file, and the error, if any."""
    from ctxlint.suppression.add import NOT_TO_HIDE, noqa_edits

    failure = next((each.message for each in result.diagnostics if each.code in NOT_TO_HIDE), "")
    if result.source is None:
        return 0, failure
    edits = list(noqa_edits(result.source, result.diagnostics, rule_names(), reason))
    if not edits:
        return 0, failure
    if not result.source.can_take(edits):
        return 0, "IPython syntax does not allow a comment here; nothing was changed"
    source = result.source.edited(edits)
    left = [each for each in check(source, result).diagnostics if each.code not in NOT_TO_HIDE]
    if left:
        line = source.locate_line(left[0].span.start.line)
        return 0, f"a comment on line {line} would not suppress {left[0].code}; nothing was changed"
    try:
        before, after = (encode(each, each.written) for each in (result.source, source))
        rewrite(result.path, before, after, result.settings.root)
    except (Undecodable, Unwritable) as error:
        return 0, str(error)
    return len(edits), failure
