"""Gradients that are summed over more dimensions than their input can lack: ``grad.t().sum(dim=(0, 1))`` for a bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flattened import before_copies, is_matrix
from ctxlint.model.analyses.squeezed import keeps_dimensions, summed_dimensions
from ctxlint.model.index.scopes import Scope, resolve_certainly
from ctxlint.model.interpreter.values import NONE
from ctxlint.model.syntax import (
    dotted,
    is_name,
    keywords_of,
    last_name,
    literal_text,
    signed_integer,
    single_index,
)
from ctxlint.records import record
from ctxlint.torch_api.einops import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Method

_REDUCTIONS = ("sum", "mean")
_WITH_BIAS = frozenset(
    str.split("linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d bilinear")
)
"""Functions of torch that take a bias, which has one dimension."""
_SKIPPING = (
    *(cst.BooleanOperation, cst.Match, cst.Try, cst.TryStar, cst.For, cst.While),
    *(cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp),
)
"""What may not evaluate what is in it, or gives names a meaning of their own."""


@record
class Reduced:
    """A call of ``sum`` or ``mean`` that leaves ``left`` dimensions; the input has at least ``needed``."""

    call: cst.Call
    left: int
    needed: int


def reduced_gradients(fn: FunctionClass) -> Iterator[tuple[int, Reduced]]:
    """The gradients, by input, that certainly have fewer dimensions than the input."""
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or backward.inherited or forward.inherited:
        return
    reductions = {each for each in backward.nodes_of(cst.Call) if last_name(each.func) in _REDUCTIONS}
    for returned in fn.gradients if reductions else ():
        if not returned.known or any(slot.starred for slot in returned.slots):
            continue
        for index, slot in enumerate(returned.slots[: len(fn.inputs)]):
            for call, at in _calls(backward, slot.node, returned.event):
                left = _left(fn, backward, call, at) if call in reductions else None
                needed = _least_dimensions(forward, fn.inputs[index].name) if left is not None else 0
                if left is not None and left < needed:
                    yield index, Reduced(call, left, needed)


def _calls(method: Method, node: cst.BaseExpression | None, at: Event) -> Iterator[tuple[cst.Call, Event]]:
    """The calls that a gradient is the result of, unless None, each with the event before which it is evaluated."""
    if isinstance(node, cst.Name):
        bound = method.assignments.get(node.value, ())
        given = [each for each in bound if each.value != NONE]
        if len(given) == 1 and not given[0].augmented and given[0].value_node is not None:
            yield from _calls(method, given[0].value_node, given[0])
    elif isinstance(node, cst.IfExp):
        branches = [each for each in (node.body, node.orelse) if not is_name(each, "None")]
        yield from _calls(method, branches[0], at) if len(branches) == 1 else ()
    else:
        call = before_copies(node) if node is not None else None
        if isinstance(call, cst.Call):
            yield call, at


def _left(fn: FunctionClass, method: Method, call: cst.Call, at: Event) -> int | None:
    """How many dimensions a sum leaves; None if that is unknown."""
    operand, options = _operand(call)
    if operand is None or any(each.star for each in call.args) or keeps_dimensions(options) is not False:
        return None
    if all(each.keyword is not None and each.keyword.value == "dtype" for each in options.args):
        return 0
    summed = summed_dimensions(options)
    before = _dimensions(fn, method, operand, at) if summed else None
    return before - len(set(summed)) if before is not None and summed and max(summed) < before else None


def _operand(call: cst.Call) -> tuple[cst.BaseExpression | None, cst.Call]:
    """What is summed, and the call with the other arguments only: ``x.sum(0)``, ``torch.sum(x, 0)``."""
    if not isinstance(call.func, cst.Attribute):
        return None, call
    if not is_name(call.func.value, "torch"):
        return call.func.value, call
    first = call.args[0] if call.args else None
    return (first.value if first is not None and first.keyword is None else None), call.with_changes(args=call.args[1:])


def _dimensions(fn: FunctionClass, method: Method, node: cst.BaseExpression, at: Event, hops: int = 8) -> int | None:
    """How many dimensions a tensor certainly has right before an event."""
    if isinstance(node, cst.Name) and node.value in method.assignments:
        bound = [each for each in method.assignments[node.value] if at.may_follow(each)]
        last = max(bound, key=lambda each: each.order, default=None)
        if last is None or at.in_loop or last.augmented or not at.implies(last) or not hops:
            return None
        return _dimensions(fn, method, last.value_node, last, hops - 1) if last.value_node is not None else None
    kept = before_copies(node)
    if kept is not node:
        return _dimensions(fn, method, kept, at, hops)
    pattern = _pattern(node) if isinstance(node, cst.Call) else None
    return pattern if pattern is not None else 2 if is_matrix(fn, method, node) else None


def _pattern(call: cst.Call) -> int | None:
    """How many dimensions a result has by its pattern: ``rearrange(x, "b l e -> e (b l)")``, ``einsum("ij->ji", x)``.

    None if it has none, or the pattern leaves some open.
    """
    name = last_name(call.func)
    place = {"einsum": 0, "rearrange": 1, "reduce": 1, "repeat": 1}.get(name)
    written = literal_text(call.args[place].value) if place is not None and len(call.args) > place else None
    result = written.partition("->")[2].strip() if isinstance(written, str) else ""
    if not result or "." in result:
        return None
    groups = [*result.replace(" ", "")] if name == "einsum" else groups_of(result)
    return len(groups) if groups is not None else None


def _least_dimensions(forward: Method, name: str) -> int:
    """How many dimensions an input certainly has at least, by what forward does with it."""
    if not all(
        each.value_node is not None and _keeps(each.value_node, name) for each in forward.assignments.get(name, ())
    ):
        return 0
    found = 0
    for use in forward.named.get(name, ()):
        around = forward.parents[use]
        if isinstance(around, cst.Arg) and _is_bias(forward, forward.parents[around], around):
            found = max(found, 1 if _is_certain(forward, use) else 0)
        elif isinstance(around, cst.Attribute) and around.value is use and _is_certain(forward, use):
            found = max(found, _measured(forward, around))
    return found


def _keeps(node: cst.BaseExpression, name: str) -> bool:
    """Whether a name is bound to the tensor in it, or a copy, or None: ``x.float() if x is not None else None``."""
    if isinstance(node, cst.IfExp):
        return all(is_name(each, "None") or _keeps(each, name) for each in (node.body, node.orelse))
    return is_name(before_copies(node), name)


def _is_certain(method: Method, use: cst.Name) -> bool:
    """Whether each call of a method gets to a use of a tensor, unless the tensor is None, and it is no other's name."""
    above = [*method.above(use)]
    jumps = (cst.Return, cst.Continue, cst.Break)
    earlier = [each for kind in jumps for each in method.nodes_of(kind) if method.is_written_before(each, use)]
    skipping = [each for jump in earlier for each in method.above(jump)]
    return not any(_may_skip(each, use.value) for each in (*above[:-1], *skipping) if each is not method.node)


def _may_skip(node: cst.CSTNode, name: str) -> bool:
    """Whether a node may not evaluate what is in it, although a tensor is not None, or has names of its own."""
    if isinstance(node, (cst.If, cst.IfExp)):
        return not _is_about_none(node.test, name)
    return isinstance(node, _SKIPPING)


def _is_about_none(test: cst.BaseExpression, name: str) -> bool:
    """Whether a test is ``x is None`` or ``x is not None``."""
    if not isinstance(test, cst.Comparison) or not is_name(test.left, name) or len(test.comparisons) != 1:
        return False
    compared = test.comparisons[0]
    return isinstance(compared.operator, (cst.Is, cst.IsNot)) and is_name(compared.comparator, "None")


def _is_bias(method: Method, call: cst.CSTNode, argument: cst.Arg) -> bool:
    """Whether an argument is the bias of a linear function or a convolution of torch."""
    if not isinstance(call, cst.Call) or last_name(call.func) not in _WITH_BIAS:
        return False
    body = method.home.record.body if method.home is not None and method.home.record is not None else None
    called = resolve_certainly(dotted(call.func) or "", Scope("function", "", body)) if body is not None else None
    if called is None or not called.startswith("torch."):
        return False
    bias = keywords_of(call).get("bias")
    place = 3 if last_name(call.func) == "bilinear" else 2
    starred = any(each.star for each in call.args)
    return argument.value is bias or (not starred and call.args[place : place + 1] == [argument])


def _measured(method: Method, attribute: cst.Attribute) -> int:
    """How many dimensions a tensor has at least for ``x.shape[1]`` or ``x.size(1)``."""
    above, name = method.parents[attribute], attribute.attr.value
    number: int | None = None
    if name == "shape" and isinstance(above, cst.Subscript) and above.value is attribute:
        number = signed_integer(single_index(above))
    elif name == "size" and isinstance(above, cst.Call) and above.func is attribute and len(above.args) == 1:
        number = signed_integer(above.args[0].value)
    if number is None:
        return 0
    return number + 1 if number >= 0 else -number
