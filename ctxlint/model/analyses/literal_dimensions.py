"""A dimension that callers choose for forward, and that backward replaces by a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import is_name, last_name, signed_integer
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import ApplyCall, FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


@record
class LiteralDimension:
    """``node`` is the ``number`` that backward passes as the dimension to ``called``; ``entry`` is that of forward."""

    node: cst.CSTNode
    number: str
    called: str
    entry: Input


def literal_dimensions(fn: FunctionClass) -> Iterator[LiteralDimension]:
    """The reductions of backward along a fixed dimension, if forward works along one that it gets, and along no other.

    Only if forward uses that input for nothing else, and keeps it nowhere; if one input alone gets a gradient, so that
    each reduction is for that one; and unless all calls in view pass that very number.
    """
    forward, backward = fn.forward, fn.judgeable_backward
    if forward is None or backward is None or forward.inherited or fn.setup_context is not None:
        return
    if sum(each.gradient is not Tri.NO for each in fn.inputs) != 1 or fn.variadic_inputs is not None or fn.escapes:
        return
    numbers = [each for each in _dimensions(backward) if signed_integer(each[1]) is not None]
    chosen = [each for each in fn.inputs if _NAME.fullmatch(each.name) and each.gradient is Tri.NO] if numbers else []
    along = [node for _call, node in _dimensions(forward)] if chosen else []
    for entry in chosen:
        named = forward.named.get(entry.name, [])
        uses = [each for each in named if not isinstance(forward.parents[each], cst.Param)]
        if not uses or entry.name in forward.binders or not all(each in along for each in uses):
            continue
        if not all(is_name(each, entry.name) for each in along) or entry.name in backward.named:
            continue
        for call, node in numbers[:1]:
            number = str(signed_integer(node))
            passed = {_passed(each, entry.index) for each in fn.calls if each.applies}
            if passed != {number if not number.startswith("-") else _NEGATIVE}:
                yield LiteralDimension(node, number, last_name(call.func) or "", entry)


def _passed(call: ApplyCall, index: int) -> str:
    """The number that a call passes; a negative one is known to be a number only."""
    kind = call.arguments[index] if index < len(call.arguments) else ArgumentKind.OTHER
    return dict(call.literals).get(index, _NEGATIVE if kind is ArgumentKind.NUMBER else "")


_NEGATIVE = "-"
_NAME = pattern(r"(?:\w+_)?(?:dim|axis)", re.IGNORECASE)


def _dimensions(method: Method) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """What the reductions of a method, and other operations along a dimension, get as the dimension."""
    for call in method.nodes_of(cst.Call):
        name = last_name(call.func)
        if name not in _ALONG or not isinstance(call.func, cst.Attribute):
            continue
        named = [each for each in call.args if each.keyword is not None and each.keyword.value in ("dim", "axis")]
        at = 1 if is_name(call.func.value, "torch") or is_name(call.func.value, "F") else 0
        given = named or [each for each in call.args[at : at + 1] if each.keyword is None and not each.star]
        yield from ((call, each.value) for each in given[:1])


_ALONG = frozenset(
    str.split(
        "amax amin argmax argmin cummax cumprod cumsum log_softmax logcumsumexp logsumexp max mean min prod softmax std"
        " sum var"
    )
)
