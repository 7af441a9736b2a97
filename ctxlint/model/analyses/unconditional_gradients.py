"""Expensive gradients that are computed even if their input needs none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.returns import returned_by
from ctxlint.model.interpreter.events import Assigned, NeedsInputGradRead
from ctxlint.model.interpreter.values import NONE
from ctxlint.model.syntax import code_of, dotted
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Operator, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot

_words = str.split
_EXPENSIVE = frozenset(
    _words(
        """
        addmm baddbmm bmm conv1d conv1d_input conv1d_weight conv2d conv2d_input conv2d_weight conv3d conv3d_input
        conv3d_weight conv_transpose1d conv_transpose2d conv_transpose3d einsum linear matmul mm tensordot
        """
    )
)
_LAYOUT = frozenset(_words("contiguous flatten float permute reshape sum t to transpose type_as view"))
_FLAG_WORDS = re.compile(r"grad|train|frozen|freeze", re.IGNORECASE)
"""What a test mentions that may be about whether a gradient is needed."""


@record
class Unconditional:
    """The gradient of input ``slot``: ``value`` is the expression, ``operation`` its expensive part.

    ``name`` is that of the gradient, which nothing else reads; None if it is written in the return itself. ``filled``:
    the gradient is a tensor made before, and the expression is what is written into it, or added to it. ``again``:
    other statements compute the gradient, or change its layout, too.
    """

    slot: int
    value: cst.BaseExpression
    operation: str
    name: str | None
    filled: bool = False
    again: bool = False


def unconditional_gradients(fn: FunctionClass) -> Iterator[Unconditional]:
    """The products and convolutions in backward that only the gradient of one input of several uses, without a test."""
    if fn.backward is None or not fn.count_judgeable:
        return
    for each in _untested(fn.backward, fn.gradients, len(fn.inputs)):
        if not fn.inputs[each.slot].against_a_gradient:
            yield each


def unconditional_operator_gradients(operator: Operator) -> Iterator[Unconditional]:
    """The same for the backward of a custom operator."""
    yield from _untested(operator.backward, operator.gradients, len(operator.inputs))


def _untested(backward: Method, gradients: tuple[Returned, ...], inputs: int) -> Iterator[Unconditional]:
    if len(gradients) != 1 or len(returned_by(backward)) != 1:
        return
    slots = gradients[0].slots
    if not gradients[0].known or any(slot.starred for slot in slots) or sum(map(_wanted, slots)) < 2:
        return
    tested = {each.index for each in backward.facts.of(NeedsInputGradRead)}
    if None in tested:  # the flags are used as a whole, for an unknown purpose
        return
    for at, slot in enumerate(slots[:inputs]):
        if at in tested:
            continue
        found = _computed(backward, slot)
        filled = _filled(backward, slot) if found is None else None
        value, name, guards = found or filled or (None, None, [])
        operation = _expensive(value) if value is not None else None
        if value is not None and operation is not None and not any(_FLAG_WORDS.search(each) for each in guards):
            again = name is not None and len(backward.binders.get(name, ())) > 1
            yield Unconditional(at, value, operation, name, filled is not None, again)


def _wanted(slot: Slot) -> bool:
    return slot.value != NONE


def _computed(method: Method, slot: Slot) -> tuple[cst.BaseExpression, str | None, list[str]] | None:
    """The only expression of a gradient, its name, and its path condition; None if others read it, too."""
    if not isinstance(slot.node, cst.Name):
        return (slot.node, None, []) if slot.node is not None and slot.node in method.parents else None
    name = slot.node.value
    bindings, reads = _apart_from_layout(method, name)
    reads = [each for each in reads if not isinstance(method.parents[each], cst.AssignTarget)]
    others = len(method.binders.get(name, ())) > len([each for each in method.facts.of(Assigned) if each.name == name])
    if not bindings or others or len(reads) != 1 or any(each.in_loop for each in bindings):
        return None
    arms = all(one.excludes(other) for one in bindings for other in bindings if one is not other)
    values = [each.value_node for each in bindings]
    value = values[0]
    if value is None or not arms or (len(values) > 1 and any(each is None or not _expensive(each) for each in values)):
        return None
    return value, name, [guard.text for each in bindings for guard in each.guards]


def _apart_from_layout(method: Method, name: str) -> tuple[list[Assigned], list[cst.Name]]:
    """The bindings of a gradient and the uses of its name, without ``g = g.reshape(…)`` and the like."""
    bindings: list[Assigned] = []
    nodes = list(method.named.get(name, ()))
    for each in method.facts.of(Assigned):
        if each.name != name:
            continue
        base = each.value_node
        while isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value in _LAYOUT:
            base = base.func.value
        if base is each.value_node or not isinstance(base, cst.Name) or base.value != name or each.in_loop:
            bindings.append(each)
        else:
            inside = {each.node, each.value_node}
            nodes = [node for node in nodes if node is not each.node and inside.isdisjoint(method.above(node))]
    return bindings, nodes


def _filled(method: Method, slot: Slot) -> tuple[cst.BaseExpression, str, list[str]] | None:
    """An expensive expression that is written into a new tensor, which is then returned; its name, and path condition.

    None if anything else reads the tensor.
    """
    name = slot.node.value if isinstance(slot.node, cst.Name) else None
    bindings, nodes = _apart_from_layout(method, name or "")
    bindings = [each for each in bindings if not each.augmented]
    if name is None or len(bindings) != 1 or bindings[0].in_loop or not _is_new(bindings[0].value_node):
        return None
    nodes = [each for each in nodes if each is not slot.node and each is not bindings[0].node]
    written = [_written_to(method, each) for each in nodes]
    values = [each for each in written if each is not None]
    found = next((each for each in values if _expensive(each) is not None), None)
    if found is None or len(values) < len(written):
        return None
    tests = (each.test for each in method.above(found) if isinstance(each, (cst.If, cst.IfExp)))
    return found, name, [*(guard.text for guard in bindings[0].guards), *map(code_of, tests)]


def _is_new(node: cst.BaseExpression | None) -> bool:
    """Whether an expression makes a tensor: ``torch.zeros_like(x)``, ``x.new_empty(…)``."""
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    return path is not None and path.rpartition(".")[2] in _MAKERS


_MAKERS = frozenset(_words("empty empty_like new_empty new_zeros zeros zeros_like"))


def _written_to(method: Method, node: cst.Name) -> cst.BaseExpression | None:
    """What a statement writes into a tensor, or adds to it, if that is all it does with its name."""
    place: cst.CSTNode = node
    around = method.parents[place]
    while isinstance(around, cst.Subscript) and around.value is place:
        place, around = around, method.parents[around]
    if isinstance(around, cst.AugAssign):
        return around.value if around.target is place else None
    if isinstance(around, cst.AssignTarget):
        statement = method.parents[around]
        single = isinstance(statement, cst.Assign) and len(statement.targets) == 1 and place is not node
        return statement.value if single and isinstance(statement, cst.Assign) else None
    call = method.parents[around] if isinstance(around, cst.Attribute) and around.value is place else None
    if not isinstance(call, cst.Call) or not isinstance(method.parents[call], cst.Expr) or not call.args:
        return None
    name = around.attr.value if isinstance(around, cst.Attribute) else ""
    return call if name in _PRODUCTS else call.args[0].value if name in _TAKING else None


_PRODUCTS = frozenset(_words("addmm_ baddbmm_ addbmm_"))
_TAKING = frozenset(_words("add_ copy_ sub_"))


def _expensive(node: cst.BaseExpression) -> str | None:
    """The expensive operation of an expression: a matrix product or a convolution, possibly in another layout."""
    if isinstance(node, cst.BinaryOperation):
        return "matmul" if isinstance(node.operator, cst.MatrixMultiply) else None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    name = node.func.attr.value
    if name in _EXPENSIVE or name in _PRODUCTS:
        return name
    return _expensive(node.func.value) if name in _LAYOUT else None
