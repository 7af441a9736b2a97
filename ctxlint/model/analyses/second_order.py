"""Where backward leaves autograd, and where it relies on the layout of incoming gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import Constant, ContextAttribute, Fresh, Parameter, Scalar
from ctxlint.model.syntax import code_of, dotted, single_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_CUTTING_METHODS = frozenset({"detach", "numpy", "item", "tolist", "cpu_numpy"})
_CUTTING_CALLS = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")
_FROM_OUTSIDE = ("builtins.", "torch.")
"""Prefixes of decorators that certainly preserve the layout of gradients; a project's own may make them contiguous."""
_NEEDING_LAYOUT = frozenset({"view", "data_ptr"})


def differentiable_backward(fn: FunctionClass) -> Method | None:
    """The ``backward`` that a class defines itself and lets autograd differentiate, if any.

    Not one marked ``@once_differentiable``, and not one that only raises.
    """
    backward = fn.methods.get("backward")
    if backward is None or backward.inherited or backward.raises_only:
        return None
    return backward if backward.decorator("once_differentiable") is None else None


def leaves_autograd(fn: FunctionClass, method: Method) -> tuple[cst.CSTNode, str] | None:
    """The first operation of a body that autograd does not record, and its description; None if there is none.

    None as well if the body asks ``torch.is_grad_enabled()``: it treats a second derivative in a way of its own.
    """
    calls = {id(call.node): call for call in method.facts.of(GenericCall)}
    if any(call.callee == "torch.is_grad_enabled" for call in calls.values()):
        return None
    for node in method.body_nodes:
        what = _unrecorded(fn, method, node, calls.get(id(node)))
        if what is not None and not _is_only_shown(method, node):
            return node, what
    return None


def _unrecorded(fn: FunctionClass, method: Method, node: cst.CSTNode, called: GenericCall | None) -> str | None:
    """What a node is, if autograd does not record it."""
    if type(node) is cst.Attribute and node.attr.value == "data":
        return "`.data`"
    if type(node) is not cst.Call:
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CUTTING_METHODS:
        return f"`.{node.func.attr.value}()`"
    if _differentiates_a_local(method, node):
        return "`.backward()` without `create_graph`"
    if isinstance(node.func, cst.Subscript) and not _is_kept(method, node.func.value):
        return "a kernel launch"
    callee = called.callee if called is not None else None
    if called is None or callee is None:
        return None
    if callee in _CUTTING_CALLS or (callee.startswith("numpy.") and not _of_numbers(fn, called)):
        return f"`{callee}`"
    return f"`{code_of(node.func)}`" if _fills_a_gradient(fn, method, called, callee) else None


def _differentiates_a_local(method: Method, node: cst.Call) -> bool:
    """Whether a call is ``loss.backward()`` of a tensor that the method computes, without a graph of the gradients."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "backward" or not isinstance(func.value, cst.Name):
        return False
    keywords = {each.keyword.value for each in node.args if each.keyword is not None}
    return func.value.value in method.binders and len(node.args) < 2 and "create_graph" not in keywords


def _is_only_shown(method: Method, node: cst.CSTNode) -> bool:
    """Whether the value is only printed, or asserted about."""
    return any(
        isinstance(around, cst.Assert) or (isinstance(around, cst.Call) and dotted(around.func) == "print")
        for around in method.above(node)
    )


def _fills_a_gradient(fn: FunctionClass, method: Method, call: GenericCall, callee: str) -> bool:
    """Whether a compiled extension writes into a new tensor that backward returns: ``_C.backward(g, grad_x)``."""
    modules = callee.split(".")[:-1]
    if call.definition is not None or not any(each in ("_C", "_ext") or each.endswith(_COMPILED) for each in modules):
        return False
    made = [slot.value for slot in call.arguments if isinstance(slot.value, Fresh)]
    returned = [slot.value for each in fn.gradients for slot in each.slots]
    filled = any(option in made for each in returned for option in each.options())
    return filled and isinstance(method.parents.get(call.node), cst.Expr)


_COMPILED = ("_cpp", "_cuda", "_ext", "_gpu")
"""How the modules of extensions are named."""


def _of_numbers(fn: FunctionClass, call: GenericCall) -> bool:
    """Whether all arguments of a call are certainly numbers, which have no derivative to lose."""
    given = [*call.arguments, *(slot for _, slot in call.keywords)]
    return bool(given) and all(_is_number(fn, option) for slot in given for option in slot.value.options())


def _is_number(fn: FunctionClass, value: Value) -> bool:
    if isinstance(value, ContextAttribute):
        writes = fn.writes_by_attribute.get(value.name, ())
        kept = [option for each in writes if each.value is not None for option in each.value.options()]
        return (
            bool(kept)
            and all(each.value is not None for each in writes)
            and all(_was_number(fn, each) for each in kept)
        )
    return _was_number(fn, value)


def _was_number(fn: FunctionClass, value: Value) -> bool:
    if isinstance(value, Parameter) and value.role == "input" and value.index < len(fn.inputs):
        given = fn.inputs[value.index]
        tensor, plain = ({each.reason for each in given.evidence if each.tensor is kind} for kind in (True, False))
        return tensor <= plain and bool(plain - tensor) and not given.is_container  # an argument of numpy may be either
    return isinstance(value, Constant) or (
        isinstance(value, Scalar) and value.sort in ("int", "bool", "float", "number")
    )


def _is_kept(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is an attribute of ctx: these are functions to call, not kernels to launch."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return isinstance(node, cst.Name) and method.ctx is not None and node.value == method.ctx.name


KERNEL = "kernel"
"""In ``layout_uses``, the launch of a kernel, instead of a method."""

ASSERTED = "is_contiguous"


def layout_uses(fn: FunctionClass) -> Iterator[tuple[cst.Call | cst.Name, str, str]]:
    """Calls of ``view`` or ``data_ptr`` on an unmodified incoming gradient: call, name, method.

    Also the argument of the first launch of a kernel, ``kernel[grid](g)``, with ``KERNEL`` as the method, and
    ``is_contiguous`` in an assertion.
    """
    backward = fn.backward
    if backward is None or any(not (each.name or "").startswith(_FROM_OUTSIDE) for each in backward.decorators):
        return
    names = {param.name for param in backward.positional}
    launched: set[str] = set()
    for node in backward.body_nodes:
        if type(node) is not cst.Call:
            continue
        if isinstance(node.func, cst.Subscript) and _is_grid(node.func) and not _is_kept(backward, node.func.value):
            for given in (each.value for each in node.args if isinstance(each.value, cst.Name)):
                if given.value in names - launched and _is_unchanged(backward, given.value, node):
                    launched.add(given.value)
                    yield given, given.value, KERNEL
        if not isinstance(node.func, cst.Attribute):
            continue
        if node.func.attr.value == ASSERTED:
            name = dotted(node.func.value)
            if name in names and _is_asserted(backward, node) and backward.holds_argument(name, node):
                yield node, name, ASSERTED
        if node.func.attr.value not in _NEEDING_LAYOUT:
            continue
        gradient = _gradient(backward, node.func.value)
        if gradient is not None and _is_unchanged(backward, gradient, node):
            yield node, code_of(node.func.value), node.func.attr.value


def _is_asserted(method: Method, node: cst.Call) -> bool:
    """Whether an assertion fails unless a call returns True: ``assert g.is_contiguous() and n``."""
    inside: cst.CSTNode = node
    for around in method.above(node):
        if isinstance(around, cst.Assert):
            return around.test is inside
        if isinstance(around, cst.Comparison):
            if around.left is not inside or not all(map(_is_true, around.comparisons)):
                return False
        elif not isinstance(around, cst.BooleanOperation) or not isinstance(around.operator, cst.And):
            return False
        inside = around
    return False


def _is_true(target: cst.ComparisonTarget) -> bool:
    equal = isinstance(target.operator, (cst.Equal, cst.Is))
    return equal and isinstance(target.comparator, cst.Name) and target.comparator.value == "True"


def _is_grid(node: cst.Subscript) -> bool:
    """Whether a subscript is the grid of a launch, not the key of a table of functions."""
    index = single_index(node)
    if index is None or isinstance(index, (cst.Tuple, cst.Lambda)):
        return True
    return "grid" in (dotted(index) or "").lower()


def _gradient(backward: Method, node: cst.BaseExpression) -> str | None:
    """The parameter that an expression is: itself, or an element of ``*grads``, in a loop over it or by its index."""
    name = dotted(node)
    if name in {param.name for param in backward.positional}:
        return name
    rest = backward.variadic.name if backward.variadic is not None else None
    if isinstance(node, cst.Subscript) and single_index(node) is not None and dotted(node.value) == rest:
        return rest
    for around in backward.above(node) if isinstance(node, cst.Name) else ():
        part = around.for_in if isinstance(around, _COMPREHENSIONS) else around if isinstance(around, cst.For) else None
        if part is not None and name is not None and dotted(part.target) == name:
            binders = [each for each in backward.binders.get(name, ()) if not isinstance(each, cst.CompFor)]
            alone = not isinstance(around, cst.For) or len(binders) <= 1
            return rest if alone and rest is not None and dotted(part.iter) == rest else None
    return None


_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)


def _is_unchanged(backward: Method, name: str, node: cst.Call) -> bool:
    return not _tests_contiguity(backward, name) and backward.holds_argument(name, node)


def _tests_contiguity(method: Method, name: str) -> bool:
    """Whether the body tests the layout of the tensor: then it handles it on purpose."""
    return any(
        type(node) is cst.Call and dotted(node.func) in (f"{name}.is_contiguous", f"{name}.stride")
        for node in method.body_nodes
    )
