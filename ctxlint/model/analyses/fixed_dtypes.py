"""Outputs that are float32 whatever the dtype of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import dotted, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


@record
class FixedDtype:
    """A comparison with ``input`` that forward converts to float32 and returns."""

    node: cst.Call
    input: Input


def fixed_dtypes(fn: FunctionClass) -> Iterator[FixedDtype]:
    """The outputs that are a comparison of a tensor with a gradient, converted to float32; each once."""
    forward = fn.forward
    if forward is None or forward.inherited or any(each.casts_inputs for each in forward.decorators):
        return
    seen: set[cst.CSTNode] = set()
    for returned in fn.outputs:
        single = returned.node.value if isinstance(returned.node, cst.Return) and len(returned.slots) == 1 else None
        for slot in returned.slots:
            node = forward.behind_name(slot.node or single)
            compared = _compared(forward, node)
            entry = _input_in(fn, forward, compared) if compared is not None else None
            if isinstance(node, cst.Call) and entry is not None and node not in seen:
                seen.add(node)
                yield FixedDtype(node, entry)


def _compared(forward: Method, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """``x > 0`` in ``(x > 0).float()`` and ``torch.gt(x, 0).to(torch.float32)``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    method, given = node.func.attr.value, [dotted(each.value) for each in node.args]
    if not (method == "float" and not given) and not (method in ("to", "type") and given and given[0] in _FLOAT32):
        return None
    of = forward.behind_name(node.func.value)
    if isinstance(of, cst.Comparison) and all(isinstance(each.operator, _ORDERS) for each in of.comparisons):
        return of
    called = of.func if isinstance(of, cst.Call) else None
    return of if isinstance(called, cst.Attribute) and called.attr.value in _COMPARING else None


_FLOAT32 = ("torch.float", "torch.float32")
_ORDERS = (cst.GreaterThan, cst.GreaterThanEqual, cst.LessThan, cst.LessThanEqual)
_COMPARING = frozenset(str.split("eq ge greater greater_equal gt le less less_equal lt ne"))


def _input_in(fn: FunctionClass, forward: Method, node: cst.BaseExpression) -> Input | None:
    """The first tensor with a gradient that an expression mentions, if forward does not convert it itself."""
    words = words_of(node)
    found = (each for each in fn.inputs if each.name in words and each.surely_differentiable)
    entry = next(found, None)
    return entry if entry is not None and entry.name not in forward.binders and entry.is_tensor is Tri.YES else None
