"""Expensive gradients that are computed even if their input needs none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.helper_places import walk_alone
from ctxlint.model.analyses.returns import returned_by
from ctxlint.model.interpreter.events import Assigned, GenericCall, NeedsInputGradRead
from ctxlint.model.interpreter.values import NONE, Context
from ctxlint.model.syntax import code_of, dotted, is_name, keywords_of, last_name, only_target
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Operator, Returned
    from ctxlint.model.index.project import Definition
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
_FUSED = pattern(r"accumulation_fusion|fus(?:e|ed|ion)_\w*grad|wgrad_fusion", re.IGNORECASE)
_FLAG_WORDS = pattern(r"grad|train|frozen|freeze|need|want", re.IGNORECASE)
"""What a test mentions that may be about whether a gradient is needed."""


@record
class Unconditional:
    """The gradient of input ``slot``: ``value`` is the expression, ``operation`` its expensive part.

    ``name`` is that of the gradient, which nothing else reads; None if it is written in the return itself. ``filled``:
    the gradient is a tensor made before, and the expression is what is written into it, or added to it. ``again``:
    other statements compute the gradient, or change its layout, too. ``helper``: a project function computes it, and
    ``value`` is its call, or an element of the mask that it passes; ``has_ctx``: it passes the ctx.
    """

    slot: int
    value: cst.BaseExpression
    operation: str
    name: str | None
    filled: bool = False
    again: bool = False
    helper: str = ""
    has_ctx: bool = True


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
    if not tested:
        yield from _in_helpers(backward, slots[:inputs])
        yield from _in_convolutions(backward, slots[:inputs])
    for at, slot in enumerate(slots[:inputs]):
        if at in tested:
            continue
        found = _expensive_gradient(backward, at, slot, slots)
        if found is not None:
            yield found


def _expensive_gradient(method: Method, at: int, slot: Slot, slots: tuple[Slot, ...]) -> Unconditional | None:
    """The gradient in a slot, among those that a method returns, if something expensive computes it."""
    is_for_a_parameter = any(_wanted(each) and not _is_a_sum(method, each) for each in slots)
    for computed in (_computed, _filled):
        value, name, guards = computed(method, slot) or (None, None, [])
        operation = expensive(value) if value is not None else None
        earlier = operation is None and value is not None
        if earlier and value is not None:
            by_kernel = is_for_a_parameter and _sums_what_a_kernel_writes(method, value)
            operation = _expensive_before(method, value) or ("sum" if by_kernel else None)
        if value is not None and operation is not None and not any(map(may_be_a_flag, guards)):
            again = earlier or (name is not None and len(method.binders.get(name, ())) > 1)
            return Unconditional(at, value, operation, name, computed is _filled, again)
    return None


def may_be_a_flag(test: str) -> bool:
    """Whether a test may be about whether a gradient is needed, not about where it is accumulated."""
    return _FLAG_WORDS.search(test) is not None and _FUSED.search(test) is None


def _in_helpers(backward: Method, slots: tuple[Slot, ...]) -> Iterator[Unconditional]:
    """The gradients that a project function computes, several of them in one call: ``gx, gw = helper(g, x, w)``."""
    for call in backward.facts.of(GenericCall):
        node, home = call.node, call.definition
        if home is None or call.guards or call.in_loop or not isinstance(node, cst.Call):
            continue
        placed = _gradients_of(backward, node, slots)
        has_ctx = any(isinstance(slot.value, Context) for slot in call.arguments)
        returned = called_as_method(backward, home) if len(placed) > 1 else None
        for index, at in sorted(placed.items()) if returned is not None else ():
            helper, elements = returned or (backward, ())
            found = _expensive_gradient(helper, at, elements[index], elements) if index < len(elements) else None
            if found is not None:
                gradient = slots[at].node
                name = gradient.value if isinstance(gradient, cst.Name) else None
                yield Unconditional(at, node, found.operation, name, again=True, helper=home.name, has_ctx=has_ctx)


def _in_convolutions(backward: Method, slots: tuple[Slot, ...]) -> Iterator[Unconditional]:
    """The gradients that ``convolution_backward`` computes since its mask says so: ``(True, True, False)``.

    Each is at its element of the mask.
    """
    for call in backward.nodes_of(cst.Call):
        if last_name(call.func) != "convolution_backward" or not call.args:
            continue
        mask = keywords_of(call).get("output_mask", call.args[-1].value)
        wanted = mask.elements if isinstance(mask, (cst.Tuple, cst.List)) else ()
        literal = all(is_name(each.value, "True") or is_name(each.value, "False") for each in wanted)
        placed = _gradients_of(backward, call, slots) if literal and len(wanted) == _OF_A_CONVOLUTION else {}
        for index, at in sorted(placed.items()):
            gradient = slots[at].node
            if index < len(wanted) and is_name(wanted[index].value, "True") and isinstance(gradient, cst.Name):
                operation = last_name(call.func)
                yield Unconditional(at, wanted[index].value, operation, gradient.value, again=True, has_ctx=False)


_OF_A_CONVOLUTION = 3
"""The gradients of a convolution: of its input, weight and bias."""


def _gradients_of(method: Method, call: cst.Call, slots: tuple[Slot, ...]) -> dict[int, int]:
    """The inputs whose gradients are elements of the result of a call, and nothing else; by their index in it."""
    around = method.parents.get(call)
    if isinstance(around, cst.Return):
        return {at: at for at, slot in enumerate(slots) if _wanted(slot)}
    target = only_target(around)
    elements = target.elements if isinstance(target, cst.Tuple) else ()
    names = [each.value.value if isinstance(each.value, cst.Name) else None for each in elements]
    found: dict[int, int] = {}
    for at, slot in enumerate(slots):
        node = without_layout(slot.node)
        if isinstance(node, cst.Name) and node.value in names and len(method.named.get(node.value, ())) == _ONCE_EACH:
            found[names.index(node.value)] = at
    return found


_ONCE_EACH = 2
"""How often a name occurs that is bound once and read once."""


def called_as_method(caller: Method, home: Definition) -> tuple[Method, tuple[Slot, ...]] | None:
    """A project function as a method, and the elements of the only tuple that it returns."""
    method = as_method(caller, home)
    returned = returned_by(method) if method is not None else []
    return (method, returned[0].slots) if method is not None and len(returned) == 1 and returned[0].exact else None


def as_method(caller: Method, home: Definition) -> Method | None:
    """A project function as a method of the class of its caller, for unknown arguments."""
    walked = walk_alone(home.unit, home.qualname)
    if walked is None:
        return None
    return replace(
        caller, name=home.name, node=walked.node, decorators=(), params=walked.params, ctx=None, facts=walked.facts
    )


def _wanted(slot: Slot) -> bool:
    return slot.value != NONE


def _computed(method: Method, slot: Slot) -> tuple[cst.BaseExpression, str | None, list[str]] | None:
    """The only expression of a gradient, its name, and its path condition; None if others read it, too."""
    if not isinstance(slot.node, cst.Name):
        return (slot.node, None, []) if slot.node is not None and slot.node in method.parents else None
    name = slot.node.value
    bindings, reads = _apart_from_layout(method, name)
    reads = [each for each in reads if not isinstance(method.parents[each], cst.AssignTarget)]
    assigned = {each.node for each in method.assignments.get(name, ())}
    unmet = [each for each in method.binders.get(name, ()) if _never_runs(each, assigned)]
    others = len(method.binders.get(name, ())) - len(unmet) > len(assigned)
    if not bindings or others or len(reads) != 1 or any(each.in_loop for each in bindings):
        return None
    arms = all(one.excludes(other) for one in bindings for other in bindings if one is not other)
    values = [each.value_node for each in bindings if each.value != NONE]
    value = values[0] if values else None
    if value is None or not arms or (len(values) > 1 and any(each is None or not expensive(each) for each in values)):
        return None
    tests = {code_of(around.test) for each in unmet for around in method.above(each) if isinstance(around, cst.If)}
    guards = _deciding([each for each in bindings if each.value != NONE])
    return value, name, [each for each in guards if each not in tests]


def _never_runs(binder: cst.CSTNode, assigned: set[cst.CSTNode]) -> bool:
    """Whether it is ``name = …`` on a path that no call in view takes: the walk has not met it."""
    return (
        isinstance(binder, cst.AssignTarget) and isinstance(binder.target, cst.Name) and binder.target not in assigned
    )


def _deciding(bindings: list[Assigned]) -> list[str]:
    """The conditions that decide whether one of the bindings happens; not how, if both arms of a test have one."""
    guards = [guard for each in bindings for guard in each.guards]
    return [one.text for one in guards if not any(one.is_opposite_of(other) for other in guards)]


def _apart_from_layout(method: Method, name: str) -> tuple[list[Assigned], list[cst.Name]]:
    """The bindings of a gradient and the uses of its name, without ``g = g.reshape(…)`` and the like."""
    bindings: list[Assigned] = []
    nodes = list(method.named.get(name, ()))
    for each in method.facts.of(Assigned):
        if each.name != name:
            continue
        base = without_layout(each.value_node)
        if base is each.value_node or not isinstance(base, cst.Name) or base.value != name or each.in_loop:
            bindings.append(each)
        else:
            inside = {each.node, each.value_node}
            nodes = [node for node in nodes if node is not each.node and inside.isdisjoint(method.above(node))]
    return bindings, nodes


def without_layout(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """``g`` for ``g.reshape(…).to(…)``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _LAYOUT:
        node = node.func.value
    return node


def _filled(method: Method, slot: Slot) -> tuple[cst.BaseExpression, str, list[str]] | None:
    """An expensive expression that is written into a new tensor, which is then returned; its name, and path condition.

    None if anything else reads the tensor.
    """
    returned = without_layout(slot.node)
    name = returned.value if isinstance(returned, cst.Name) else None
    bindings, nodes = _apart_from_layout(method, name or "")
    bindings = [each for each in bindings if not each.augmented]
    if name is None or len(bindings) != 1 or bindings[0].in_loop or not _is_new(bindings[0].value_node):
        return None
    nodes = [each for each in nodes if each is not returned and each is not bindings[0].node]
    written = [_written_to(method, each) for each in nodes]
    values = [each for each in written if each is not None]
    found = next((each for each in values if expensive(each) is not None), None)
    if found is None or len(values) < len(written):
        return None
    tests = (each.test for each in method.above(found) if isinstance(each, (cst.If, cst.IfExp)))
    return found, name, [*(guard.text for guard in bindings[0].guards), *map(code_of, tests)]


def _is_new(node: cst.BaseExpression | None) -> bool:
    """Whether an expression makes a tensor: ``torch.zeros_like(x)``, ``x.new_empty(…)``."""
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    return path is not None and path.rpartition(".")[2] in operations.BUFFERS


def _written_to(method: Method, node: cst.Name) -> cst.BaseExpression | None:
    """What a statement writes into a tensor, or adds to it, if that is all it does with its name."""
    place: cst.CSTNode = node
    around = method.parents[place]
    while isinstance(around, cst.Subscript) and around.value is place:
        place, around = around, method.parents[around]
    if isinstance(around, cst.AugAssign):
        return around.value if around.target is place else None
    if isinstance(around, cst.Arg) and around.keyword is not None and around.keyword.value == "out":
        writing = method.parents[around]
        return writing if isinstance(writing, cst.Call) and isinstance(method.parents[writing], cst.Expr) else None
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


def expensive(node: cst.BaseExpression) -> str | None:
    """The expensive operation of an expression, possibly in another layout.

    A matrix product, a convolution, or the sum of a product of tensors, as for the weight of a normalization.
    """
    if isinstance(node, cst.BinaryOperation):
        return "matmul" if isinstance(node.operator, cst.MatrixMultiply) else None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    name = node.func.attr.value
    if name in _EXPENSIVE or name in _PRODUCTS:
        return name
    operand = node.args[0].value if dotted(node.func) == "torch.sum" and node.args else node.func.value
    if name == "sum" and _factors(without_layout(operand)) > 1:
        return name
    return expensive(node.func.value) if name in _LAYOUT else None


def _expensive_before(method: Method, node: cst.BaseExpression) -> str | None:
    """The same of a name that the expression shapes, sums, or stores sparsely, if nothing else reads it."""
    base = _values_of_sparse(without_layout(node))
    name = base.value if isinstance(base, cst.Name) else None
    only = method.only_assignment(name) if name and len(method.named.get(name, ())) == _ONCE_EACH else None
    bound = only.value_node if only is not None else None
    if only is None or bound is None or only.guards or only.in_loop:
        return None
    return expensive(bound) or ("sum" if _sums(node) and _factors(without_layout(bound)) > 1 else None)


def _values_of_sparse(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What ``torch.sparse_coo_tensor(indices, values, size)`` gets as values; any other expression itself."""
    if not isinstance(node, cst.Call) or not (dotted(node.func) or "").startswith("torch.sparse_"):
        return node
    at = _PLACES_OF_VALUES.get(last_name(node.func) or "", len(node.args))
    plain = all(each.keyword is None and not each.star for each in node.args[: at + 1])
    return node.args[at].value if at < len(node.args) and plain else node


_PLACES_OF_VALUES = {"sparse_coo_tensor": 1, "sparse_csr_tensor": 2, "sparse_csc_tensor": 2}


def _is_a_sum(method: Method, slot: Slot) -> bool:
    """Whether a gradient is summed last, as that of a parameter is."""
    return _sums(method.behind_name(slot.node))


def _sums_what_a_kernel_writes(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression sums a new tensor that nothing else gets but one call: ``dw.sum(0)``."""
    base = without_layout(node)
    name = base.value if isinstance(base, cst.Name) else None
    if name is None or not _sums(node) or not _is_new(method.bound_to(name)):
        return False
    bound = method.assignments.get(name, [])
    others = [
        each for each in method.named.get(name, ()) if each is not base and each not in (one.node for one in bound)
    ]
    if len(bound) != 1 or bound[0].guards or bound[0].in_loop or len(others) != 1:
        return False
    passed = method.parents[others[0]]
    call = method.parents[passed] if isinstance(passed, cst.Arg) else None
    return isinstance(call, cst.Call) and isinstance(method.parents[call], cst.Expr)


def _sums(node: cst.BaseExpression | None) -> bool:
    """Whether a chain of layout methods contains ``sum``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _LAYOUT:
        if node.func.attr.value == "sum":
            return True
        node = node.func.value
    return False


def _factors(node: cst.BaseExpression | None) -> int:
    """How many factors of a product are not numbers."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)):
        return _factors(node.left) + _factors(node.right)
    if isinstance(node, cst.UnaryOperation):
        return _factors(node.expression)
    return 0 if node is None or isinstance(node, (cst.Integer, cst.Float)) else 1
