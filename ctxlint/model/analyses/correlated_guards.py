"""Tests in a function and in its caller that ask the same: ``fast``, and ``ctx.fast`` after ``ctx.fast = fast``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import code_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Event


def looks_impossible(fn: FunctionClass, event: Event) -> bool:
    """Whether a test of what ctx keeps needs another outcome than one of that itself, or of a part, for an event."""
    parts = [each for guard in event.guards for each in _parts(guard.test, guard.holds)]
    answers = {(code_of(part).strip(), holds) for part, holds in parts}
    for part, holds in parts:
        written = fn.writes_by_attribute.get(part.attr.value, []) if isinstance(part, cst.Attribute) else []
        kept = written[0].value_node if len(written) == 1 else None
        if any((code_of(each).strip(), not answer) in answers for each, answer in _parts(kept, holds)):
            return True
    return False


def _parts(test: cst.BaseExpression | None, holds: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The parts of a condition with ``and``, ``or`` and ``not``, each with the outcome that favours this one."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _parts(test.expression, not holds)
    elif isinstance(test, cst.BooleanOperation):
        yield from _parts(test.left, holds)
        yield from _parts(test.right, holds)
    elif test is not None:
        yield test, holds
