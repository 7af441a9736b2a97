"""Outputs that are views: torch does not allow modifying them in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import Alias, Fresh, Parameter, Tri, View, detaches, is_tensor

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Value


def returns_view(fn: FunctionClass, output: int | None) -> str | None:
    """A description of an output that, on every return of forward, is certainly an input or a view, not marked dirty.

    ``output`` is its number, None for a single output. None if it may be anything else.
    """
    if fn.escapes or not fn.outputs or fn.context_calls("mark_dirty") or fn.context_calls("mark_non_differentiable"):
        return None
    found: set[str | None] = set()
    for returned in fn.outputs:
        if output is None:
            found |= {_said(option) for option in returned.value.options()}
        elif not returned.known or not returned.exact or output >= len(returned.slots):
            return None
        else:
            found |= {_said(option) for option in returned.slots[output].value.options()}
    return found.pop() if len(found) == 1 else None


def _said(value: Value) -> str | None:
    if isinstance(value, Parameter) and value.role == "input" and is_tensor(value) is Tri.YES:
        return f"the input `{value.name}`"
    base = value
    while isinstance(base, View):
        if base.alias is not Alias.ALWAYS or detaches(base):
            return None
        base = base.of
    if base is value or is_tensor(base) is not Tri.YES:
        return None
    if isinstance(base, Parameter) and base.role == "input":
        return f"a view of the input `{base.name}`"
    return "a view of what it computed" if isinstance(base, Fresh) else None
