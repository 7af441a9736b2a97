"""Where backward leaves autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.filled_by_extension import calls_that_may_fill
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.index.unrecorded_code import cuts_graph
from ctxlint.model.interpreter.events import Differentiated, GenericCall
from ctxlint.model.interpreter.launches import is_launch
from ctxlint.model.interpreter.values import (
    Constant,
    ContextAttribute,
    Fresh,
    Kind,
    SavedTensor,
    Scalar,
    SomeTensor,
    Tri,
    before_views,
    is_input,
    is_tensor,
    kind_of,
    taken_from,
)
from ctxlint.model.syntax import children, code_of, dotted, is_name, keywords_of, root_name, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value

_CUTTING_METHODS = frozenset({"detach", "numpy", "item", "tolist", "cpu_numpy"})
_CUTTING_CALLS = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")
_RECORDING_CALLS = frozenset(["torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.enable_grad"])


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
    filling = _filling_gradients(fn, method)
    for node in method.body_nodes:
        what = _unrecorded(fn, method, node, calls.get(id(node)), filling)
        if what is None or _is_only_shown(method, node) or _is_only_kept(method, node):
            continue
        if not (makes_an_array(what) and _holds_a_copy_without_graph(node)):
            return node, what
    return _all_unrecorded(fn, method, {call.callee for call in calls.values()}) or _in_function(fn, calls)


def _in_function(fn: FunctionClass, calls: dict[int, GenericCall]) -> tuple[cst.CSTNode, str] | None:
    """The call of a function of the project that computes a gradient of what the call gets, and records nothing."""
    values = [option for each in fn.gradients for slot in each.slots for option in slot.value.options()]
    returned = {id(getattr(taken_from(each), "node", None)) for each in values}
    for call in (call for at, call in calls.items() if at in returned):
        if call.definition is None or call.replaceable or not any(_holds_gradient(each) for each in call.arguments):
            continue
        how = cuts_graph(call.definition)
        if how:
            return call.node, f"`{how}` in `{call.definition.name}`"
    return None


def _holds_gradient(slot: Slot) -> bool:
    """Whether an argument is an incoming gradient, perhaps a view or a contiguous copy of it."""
    return any(getattr(taken_from(each), "role", "") == "gradient" for each in slot.value.options())


def leaves_by_copies(fn: FunctionClass, method: Method) -> bool:
    """Whether a body leaves autograd only where it copies a gradient by ``.data`` or ``detach``, and keeps that as is.

    It may copy others as well, but nothing that ctx keeps, and calls only functions of torch, which are recorded.
    """
    calls = {id(call.node): call for call in method.facts.of(GenericCall)}
    if method.facts.of(Differentiated) or any(each.name in _CUTTING_CALLS for each in method.decorators):
        return False
    if not all((each.callee or "").startswith(_RECORDED) for each in calls.values()):
        return False
    filling = _filling_gradients(fn, method)
    every = ((_unrecorded(fn, method, each, calls.get(id(each)), filling), each) for each in method.body_nodes)
    found = [(what, each) for what, each in every if what is not None]
    copied = {root_name(each) for _, each in found}
    return (
        all(what in ("`.data`", "`.detach()`") and not _is_modified(method, each) for what, each in found)
        and not copied.isdisjoint(each.name for each in method.positional)
        and method.ctx_name not in copied
    )


_RECORDED = ("torch.", "builtins.")


def _is_modified(method: Method, node: cst.CSTNode) -> bool:
    """Whether a method that modifies in place is called on an expression, or it is given a name, or assigned to."""
    parent = method.parents.get(node)
    modifies = isinstance(parent, cst.Attribute) and parent.attr.value.endswith("_")
    return modifies or isinstance(parent, (cst.Assign, cst.AssignTarget, cst.AugAssign, cst.Subscript))


def _all_unrecorded(fn: FunctionClass, method: Method, callees: set[str | None]) -> tuple[cst.CSTNode, str] | None:
    """The decorator that keeps autograd from recording whatever a method computes of the incoming gradients."""
    marks = (each for each in method.decorators if each.certain and each.name in _CUTTING_CALLS)
    mark = next(marks, None)
    if mark is None or not callees.isdisjoint(_RECORDING_CALLS):
        return None
    uses = (use for each in method.own_params for use in method.named.get(each.name, ()))
    if all(isinstance(method.parents[use], cst.Param) for use in uses):
        return None
    values = (option for each in fn.gradients for slot in each.slots for option in slot.value.options())
    computed = any(isinstance(each, (Fresh, SomeTensor)) for each in values)
    return (mark.node, f"all, under `@{mark.name}`") if computed else None


def makes_an_array(what: str) -> bool:
    """Whether an operation is one of numpy, which raises on a tensor that requires grad."""
    return what == "`.numpy()`" or what.startswith("`numpy.")


def _holds_a_copy_without_graph(node: cst.CSTNode) -> bool:
    """Whether a call is one like ``x.detach().numpy()``: not numpy leaves autograd first."""
    return (isinstance(node, cst.Attribute) and node.attr.value in ("detach", "data")) or any(
        _holds_a_copy_without_graph(each) for each in children(node)
    )


def _unrecorded(
    fn: FunctionClass, method: Method, node: cst.CSTNode, called: GenericCall | None, filling: frozenset[int]
) -> str | None:
    """What a node is, if autograd does not record it; ``filling`` are calls that write gradients."""
    if isinstance(node, cst.Attribute) and node.attr.value == "data":
        return "`.data`" if _is_of_tensor(fn, method, node) else None
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CUTTING_METHODS:
        of_floats = _is_of_tensor(fn, method, node.func) and not _is_of_integers(fn, method, node.func)
        return f"`.{node.func.attr.value}()`" if of_floats else None
    if _differentiates_a_local(method, node):
        return "`.backward()` without `create_graph`"
    if isinstance(node.func, cst.Subscript) and is_launch(node.func) and not _is_kept(method, node.func.value):
        return "a kernel launch"
    if id(node) in filling:
        return f"`{code_of(node.func)}`"
    callee = called.callee if called is not None else None
    if called is None or callee is None:
        return None
    if callee == "torch.autograd.grad" and not _names_flag(node):
        return "`torch.autograd.grad` without `create_graph`"
    if callee in _CUTTING_CALLS or (callee.startswith("numpy.") and not _of_numbers(fn, called)):
        return f"`{callee}`"
    return None


def _is_of_tensor(fn: FunctionClass, method: Method, node: cst.Attribute) -> bool:
    """Whether an attribute is that of a tensor: not of ctx, a module, or an object that ctx keeps."""
    path = dotted(node.value)
    root, _, attribute = (path or "").partition(".")
    if path is None:
        return True
    if root != method.ctx_name:
        return root in method.binders or any(param.name == root for param in method.params)
    values = [each.value for each in fn.writes_by_attribute.get(attribute, ()) if each.value is not None]
    return bool(attribute) and all(is_certain_tensor(fn, each) for value in values for each in value.options())


def _is_of_integers(fn: FunctionClass, method: Method, node: cst.Attribute) -> bool:
    """Whether an attribute is that of integers, which have no derivative: ``g.split(n.tolist())``, a size on ctx."""
    argument = method.parents[method.parents[node]]
    sized = method.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if isinstance(sized, cst.Call) and isinstance(sized.func, cst.Attribute) and sized.func.attr.value in _SIZED:
        return True
    owner, _, attribute = (dotted(node.value) or "").partition(".")
    if owner != method.ctx_name:
        value = method.value_of(owner) if not attribute else None
        kept = kept_value(fn, value) if isinstance(value, SavedTensor) else None
        return kept is not None and (kind_of(kept) is Kind.INTEGRAL or _is_made_of_a_number(fn, kept))
    values = [each.value for each in fn.writes_by_attribute.get(attribute, ())]
    return bool(values) and all(each is not None and kind_of(each) is Kind.INTEGRAL for each in values)


def _is_made_of_a_number(fn: FunctionClass, value: Value) -> bool:
    """Whether it is ``torch.tensor(n)`` of an input that is not a tensor."""
    node = value.node if isinstance(value, Fresh) else None
    if not isinstance(node, cst.Call) or dotted(node.func) not in ("torch.tensor", "torch.as_tensor") or not node.args:
        return False
    name = dotted(node.args[0].value)
    return any(each.name == name and each.is_tensor is Tri.NO and not each.is_container for each in fn.inputs)


_SIZED = frozenset(str.split("expand narrow new_empty new_zeros reshape split split_with_sizes unflatten view"))
"""Methods that take sizes."""


def is_certain_tensor(fn: FunctionClass, value: Value) -> bool:
    """Whether a value, or the input that it is a view of, certainly is a tensor."""
    origin = before_views(value)
    if is_input(origin) and origin.index < len(fn.inputs):
        return fn.inputs[origin.index].is_tensor is Tri.YES
    return is_tensor(value) is Tri.YES


def _differentiates_a_local(method: Method, node: cst.Call) -> bool:
    """Whether a call is ``loss.backward()`` of a tensor that the method computes, without a graph of the gradients."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "backward" or not isinstance(func.value, cst.Name):
        return False
    return func.value.value in method.binders and len(node.args) < 2 and "create_graph" not in keywords_of(node)


def _names_flag(node: cst.Call) -> bool:
    """Whether a call says, by a keyword or an unknown number of arguments, if its result has a graph."""
    named = keywords_of(node)
    return "create_graph" in named or any(each.star for each in node.args) or len(node.args) - len(named) > 4


def _is_only_shown(method: Method, node: cst.CSTNode) -> bool:
    """Whether the value is only printed, or asserted about."""
    return any(
        isinstance(around, cst.Assert) or (isinstance(around, cst.Call) and dotted(around.func) == "print")
        for around in method.above(node)
    )


def _is_only_kept(method: Method, node: cst.CSTNode) -> bool:
    """Whether a detached value certainly enters no gradient: ``seen.append(grad.detach())``.

    What follows from it by assignments, and by calls with it, is not in an expression that is returned or tested.
    """
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "detach":
        return False
    first = method.statement_around(node)
    if not isinstance(first, _KEEPING) or any(isinstance(each, cst.Lambda) for each in method.above(node)):
        return False
    statements = [each for kind in _KEEPING for each in method.nodes_of(kind) if each is not first]
    names = _names_stored(first, node)
    more = names
    while more:
        spend(len(statements))
        reached = (each for each in statements if not names.isdisjoint(words_of(each)))
        more = {name for each in reached for name in _names_stored(each)} - names
        names |= more
    deciding: list[cst.CSTNode] = [*method.nodes_of(cst.Return)]
    deciding += [*(each.test for each in method.nodes_of(cst.If)), *(each.test for each in method.nodes_of(cst.While))]
    deciding += [each.iter for each in method.nodes_of(cst.For)]
    return all(names.isdisjoint(words_of(each)) for each in deciding)


_KEEPING = (cst.Assign, cst.Expr)


def _names_stored(statement: cst.CSTNode, without: cst.CSTNode | None = None) -> set[str]:
    """The names that an assignment binds; those of what a call may modify, ``without`` an argument."""
    if isinstance(statement, cst.Assign):
        return {word for target in statement.targets for word in words_of(target)}
    called = statement.value if isinstance(statement, cst.Expr) else None
    func = called.func if isinstance(called, cst.Call) else None
    kept = isinstance(func, cst.Attribute) and func.attr.value in ("append", "extend", "insert")
    return set(_words_without(func if kept and func is not None else statement, without))


def _words_without(node: cst.CSTNode, without: cst.CSTNode | None) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    for child in children(node):
        if child is not without:
            yield from _words_without(child, without)


def _filling_gradients(fn: FunctionClass, method: Method) -> frozenset[int]:
    """The calls of a compiled extension that write into a new tensor that backward returns, by their identity."""
    returned = {option for each in fn.gradients for slot in each.slots for option in slot.value.options()}
    made = (option for option in returned if isinstance(option, Fresh))
    return frozenset(id(node) for each in made for node in calls_that_may_fill(method, each))


def _of_numbers(fn: FunctionClass, call: GenericCall) -> bool:
    """Whether all arguments of a call are certainly numbers, which have no derivative to lose."""
    slots = [*call.arguments, *(slot for _, slot in call.keywords)]
    return bool(slots) and all(_is_number(fn, option) for slot in slots for option in slot.value.options())


def _is_number(fn: FunctionClass, value: Value) -> bool:
    if isinstance(value, ContextAttribute):
        writes = fn.writes_by_attribute.get(value.name, ())
        options = [option for each in writes if each.value is not None for option in each.value.options()]
        return (
            bool(options)
            and all(each.value is not None for each in writes)
            and all(_was_number(fn, each) for each in options)
        )
    return _was_number(fn, value)


def _was_number(fn: FunctionClass, value: Value) -> bool:
    if is_input(value) and value.index < len(fn.inputs):
        entry = fn.inputs[value.index]
        tensor, plain = ({each.reason for each in entry.evidence if each.tensor is kind} for kind in (True, False))
        return tensor <= plain and bool(plain - tensor) and not entry.is_container  # an argument of numpy may be either
    return isinstance(value, Constant) or (
        isinstance(value, Scalar) and value.sort in ("int", "bool", "float", "number", "shape")
    )


def _is_kept(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is an attribute of ctx: these are functions to call, not kernels to launch."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return is_name(node, method.ctx_name)
