"""Wording of a finding that depends on the return value of a helper: the helper's name, and a note at its position."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Related
from ctxlint.model.analyses.helper_places import Helper, helpers_behind
from ctxlint.rules.related import elsewhere
from ctxlint.rules.wording import quoted, when

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.rules.base import Finding


def with_helpers(fn: FunctionClass, finding: Finding) -> Finding:
    """The finding, with the helpers that its ``rests_on`` values come from."""
    helpers = helpers_behind(fn, finding.rests_on)
    if not helpers:
        return finding
    names = quoted(dict.fromkeys(each.called for each in helpers))
    if any(each.falls is not None for each in helpers):
        clause = f", because {names} can end without `return`"
    else:
        clause = f", as returned by {names}"
    if any(f"`{each.called}`" in finding.message for each in helpers):
        clause = ""
    fact, mark, rest = _parted(finding.message)
    notes = (note for each in helpers for note in _notes(each, elsewhere(fn.source, each.path)))
    related = (*finding.related, *notes)
    return replace(finding, message=f"{fact}{clause}{mark}{rest}", related=related)


def _parted(message: str) -> tuple[str, str, str]:
    """The first clause of a message, the fact, and the rest."""
    semicolon = message.partition("; ")
    return semicolon if semicolon[1] else message.partition(". ")


def _notes(helper: Helper, path: str) -> tuple[Related, ...]:
    """The positions of the helper's returns, in the file ``path``, which is empty for that of the finding."""
    span, note = helper.name_span, f"`{helper.name}` is here"
    if helper.falls is not None:
        note = f"`{helper.name}` ends without `return`{when(helper.falls)}"
    elif len(helper.returns) == 1:
        span, note = helper.returns[0], f"`{helper.name}` returns here"
    return (Related(span, note, path=path),)
