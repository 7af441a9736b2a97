"""The finding of a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.diagnostic import Related
    from ctxlint.fix import Fix
    from ctxlint.model.function import Returned
    from ctxlint.model.interpreter.values import Value
    from ctxlint.source.source import Span


@record
class Finding:
    """What a rule reports at one place. The pipeline adds path, code and name to make it a Diagnostic.

    ``rests_on`` are the values that the finding is about: if a helper returned them, the message names the helper, with
    a note at its position. ``only_warns`` means that torch merely warns, whatever the category of the rule.
    ``in_view``: a use in the project makes it certain, so that it is reported even if the rule is off by default.
    """

    span: Span
    message: str
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    rests_on: tuple[Value | Returned, ...] = ()
    only_warns: bool = False
    in_view: bool = False
