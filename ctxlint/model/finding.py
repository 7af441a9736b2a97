"""What a rule finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxlint.diagnostic import Related
    from ctxlint.fix import Fix
    from ctxlint.model.function import Returned
    from ctxlint.model.interpreter.values import Value
    from ctxlint.source.source import Span


@dataclass(frozen=True)
class Finding:
    """What a rule says about one place. The pipeline adds path, code and name and makes it a Diagnostic.

    ``rests_on`` are the values that it is about: where a helper returned them, the message names it, with a note there.
    ``only_warns`` says that torch does no more than warn of it, whatever the category of the rule.
    """

    span: Span
    message: str
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    rests_on: tuple[Value | Returned, ...] = ()
    only_warns: bool = False
