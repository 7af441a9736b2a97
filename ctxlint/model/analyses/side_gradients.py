"""Gradients that backward writes to a tensor itself, instead of returning them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import never_runs
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.interpreter.local_names import target_names
from ctxlint.model.interpreter.values import ContextAttribute, Item, SavedTensor, Tri, is_input
from ctxlint.model.syntax import code_of, is_name, last_name, parents_below, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_GRADIENT = pattern(r"(?!requires_)(?:\w+_)?grad")
_ADDING = frozenset({"add_", "sub_", "copy_", "index_add_", "addmm_", "addcmul_", "scatter_add_"})
_PARAMETER = pattern(r"(?:\w+_)?(?:weight|bias)s?\d*")
"""What a layer calls its parameters; an input that has such an attribute is not a tensor."""

_ADDED = (cst.AddAssign, cst.SubtractAssign)
_FUNCTIONS = (cst.Lambda, cst.FunctionDef)
_FOR_OPTIMIZERS = frozenset({"grad", "main_grad"})
"""Gradients that optimizers use; any other attribute of what a module holds may be kept only to be looked at."""

_INSIDE = frozenset({"data", "grad", "_base"})


@record
class SideGradient:
    """``weight.grad = ...`` in backward: where, and the input that the tensor is, or that holds it.

    ``held``: the tensor is an attribute of the input, such as a module. ``among``: the call that gives it with others
    of the kind, ``net.parameters()``, if a loop visits them.
    """

    node: cst.Attribute
    input: Input
    held: bool
    among: cst.Call | None = None

    @property
    def is_buffer(self) -> bool:
        """Whether it is one of the buffers of a module."""
        return self.among is not None and last_name(self.among.func) in ("buffers", "named_buffers")


def side_gradients(fn: FunctionClass, method: Method) -> Iterator[SideGradient]:
    """Where a method writes a gradient to an attribute of an input, or of a tensor that an input holds; each once.

    None if it resets one of the kind, as code that restores the attribute does.
    """
    if fn.escapes:
        return
    found: dict[str, SideGradient] = {}
    for node, value in _writes(method):
        if isinstance(value, cst.Name) and value.value == "None":
            return
        if isinstance(value, cst.Call) and last_name(value.func) in operations.BUFFERS:
            continue  # what is added to it later counts
        if _is_scaled(node, value) or _is_handled(method, node) or never_runs(fn, method, node):
            continue
        visited = _visited(method, node)
        holder = _holder(fn, method, visited) if visited is not None else None
        if holder is not None:
            found.setdefault(code_of(node), SideGradient(node, holder, held=True, among=visited))
            continue
        entry = _of_input(fn, method, node)
        if entry is not None:
            found.setdefault(code_of(node), SideGradient(node, *entry))
    yield from found.values()


def _is_scaled(written: cst.Attribute, value: cst.BaseExpression | None) -> bool:
    """Whether it only becomes another multiple of itself, or another type: ``w.grad = w.grad * 0.9``."""
    if isinstance(value, cst.IfExp):
        return _is_scaled(written, value.body) and _is_scaled(written, value.orelse)
    adds = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Add, cst.Subtract))
    return value is not None and not adds and any(code_of(each) == code_of(written) for each in parents_below(value))


def _is_handled(method: Method, written: cst.Attribute) -> bool:
    """Whether the code may restore the attribute in ``finally``, or writes it only where autograd does not."""
    around = tuple(method.above(written))
    restored = any(isinstance(each, cst.Try) and each.finalbody is not None for each in around)
    return restored or any(isinstance(each, cst.If) and "is_leaf" in words_of(each.test) for each in around)


def _writes(method: Method) -> Iterator[tuple[cst.Attribute, cst.BaseExpression | None]]:
    """The attributes named like a gradient that a method assigns or adds to, with the assigned value."""
    for attribute in method.nodes_of(cst.Attribute):
        if not _GRADIENT.fullmatch(attribute.attr.value):
            continue
        if any(isinstance(each, _FUNCTIONS) and each is not method.node for each in method.above(attribute)):
            continue
        parent = method.parents.get(attribute)
        if isinstance(parent, cst.AssignTarget):
            statement = method.parents.get(parent)
            yield attribute, statement.value if isinstance(statement, cst.Assign) else None
        elif isinstance(parent, cst.AugAssign) and parent.target is attribute and isinstance(parent.operator, _ADDED):
            yield attribute, parent.value
        elif isinstance(parent, cst.Attribute) and parent.attr.value in _ADDING:
            call = method.parents.get(parent)
            if isinstance(call, cst.Call) and call.func is parent:
                yield attribute, None


def _of_input(fn: FunctionClass, method: Method, written: cst.Attribute) -> tuple[Input, bool] | None:
    """The input whose attribute is written, or that holds the tensor whose attribute is, and whether it holds it."""
    node, attributes, held = written.value, [], False
    while isinstance(node, (cst.Attribute, cst.Subscript)) and not _is_of_ctx(method, node):
        if isinstance(node, cst.Attribute):
            attributes.append(node.attr.value)
        node, held = node.value, True
    value = _kept(method, node)
    taken = isinstance(value, Item)
    while isinstance(value, Item):
        value, held = value.of, True
    stored = kept_value(fn, value) if isinstance(value, (SavedTensor, ContextAttribute)) else None
    if not is_input(stored) or stored.index >= len(fn.inputs):
        return None
    entry = fn.inputs[stored.index]
    if not held:
        return entry, False
    if entry.is_tensor is Tri.YES or not _INSIDE.isdisjoint(attributes) or written.attr.value not in _FOR_OPTIMIZERS:
        return None
    of_layer = bool(attributes) and _PARAMETER.fullmatch(attributes[-1]) is not None
    return (entry, True) if entry.is_tensor is Tri.NO or taken or of_layer else None


def _visited(method: Method, written: cst.Attribute) -> cst.Call | None:
    """The call whose tensors a loop around a write visits: ``for p, g in zip(net.parameters(), grads)``."""
    name = written.value.value if isinstance(written.value, cst.Name) else ""
    loops = (each for each in method.above(written) if isinstance(each, cst.For) and name in target_names(each.target))
    loop = next(loops, None)
    return _tensors_of(method, *_iterated(loop.target, loop.iter, name)) if loop is not None else None


def _iterated(
    target: cst.BaseExpression, over: cst.BaseExpression | None, name: str
) -> tuple[cst.BaseExpression | None, bool]:
    """What a name among the targets of a loop goes over, and whether over the second ones of pairs."""
    if isinstance(target, cst.Name):
        return over, False
    elements = [each.value for each in target.elements] if isinstance(target, cst.Tuple) else []
    at = next((at for at, each in enumerate(elements) if name in target_names(each)), -1)
    if at < 0 or not isinstance(over, cst.Call):
        return None, False
    called = last_name(over.func)
    if called in ("zip", "enumerate"):
        number = at if called == "zip" else 0
        known = number < len(over.args) and (called == "zip" or at == 1) and not any(each.star for each in over.args)
        return _iterated(elements[at], over.args[number].value if known else None, name)
    return over, isinstance(elements[at], cst.Name) and at == 1 and len(elements) == 2


def _tensors_of(method: Method, node: cst.BaseExpression | None, pairs: bool) -> cst.Call | None:
    """The call of ``parameters()`` or ``buffers()`` of which a list has the tensors, all or some of them."""
    for _ in range(_MOST_STEPS):
        if isinstance(node, cst.Name):
            node = method.bound_to(node.value)
        elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            plain = isinstance(node.elt, cst.Name) and is_name(node.for_in.target, node.elt.value)
            node = node.for_in.iter if plain and node.for_in.inner_for_in is None else None
        elif isinstance(node, cst.Call) and last_name(node.func) in ("list", "tuple") and len(node.args) == 1:
            node = node.args[0].value
        else:
            break
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return node if node.func.attr.value in (_OF_PAIRS if pairs else _OF_TENSORS) else None


_MOST_STEPS = 8
_OF_TENSORS = ("parameters", "buffers")
_OF_PAIRS = ("named_parameters", "named_buffers")


def _holder(fn: FunctionClass, method: Method, call: cst.Call) -> Input | None:
    """The input, no tensor, of which a call gives the tensors, or those of a part of it: ``ctx.net.parameters()``."""
    node = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    while isinstance(node, (cst.Attribute, cst.Subscript)) and not _is_of_ctx(method, node):
        node = node.value
    stored = kept_value(fn, _kept(method, node))
    entry = fn.inputs[stored.index] if is_input(stored) and stored.index < len(fn.inputs) else None
    return entry if entry is not None and entry.is_tensor is not Tri.YES else None


def _kept(method: Method, node: cst.BaseExpression) -> Value | None:
    """The value of an attribute of ctx, or of a name that is bound once."""
    if isinstance(node, cst.Attribute):
        return ContextAttribute(node.attr.value)
    name = node.value if isinstance(node, cst.Name) else None
    return method.value_of(name) if name is not None else None


def _is_of_ctx(method: Method, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Attribute) and node in method.context_attributes.get(node.attr.value, ())


def may_never_run(fn: FunctionClass, holder: Input) -> tuple[str, ...]:
    """The inputs whose gradients alone make backward run, if ``holder`` does not; none if another input may.

    A tensor for which backward returns None may be there only to require a gradient. A caller may request that of
    another input.
    """
    if fn.forward is None or fn.forward.variadic is not None or any(call.leaves for call in fn.calls):
        return ()
    others = [each for each in fn.inputs if each is not holder and not (is_frozen(fn, each) or _is_absent(fn, each))]
    if any(each.gradient is not Tri.YES and each.is_tensor is not Tri.NO for each in others):
        return ()
    wanted = [each for each in others if each.gradient is Tri.YES]
    if any(each.index in call.tracked for each in wanted for call in fn.calls if call.applies):
        return ()
    return tuple(each.name for each in wanted)


def _is_absent(fn: FunctionClass, entry: Input) -> bool:
    """Whether all calls in view pass ``None``."""
    calls = [call for call in fn.calls if call.applies]
    passed = (call.arguments[entry.index : entry.index + 1] for call in calls)
    return bool(calls) and all(each == (ArgumentKind.NONE,) for each in passed)


def is_frozen(fn: FunctionClass, entry: Input) -> bool:
    """Whether all calls in view pass a parameter or buffer that was created without a gradient."""
    calls = [call for call in fn.calls if call.applies]
    return bool(calls) and all(entry.index in call.frozen for call in calls)


def returns_written(fn: FunctionClass, written: SideGradient) -> bool:
    """Whether backward returns the very attribute that it writes, as the gradient of that input, on some path."""
    nodes = (
        returned.slots[written.input.index].node
        for returned in fn.gradients
        if written.input.index < len(returned.slots)
    )
    return any(isinstance(each, cst.Attribute) and code_of(each) == code_of(written.node) for each in nodes)


def returns_zeros(fn: FunctionClass, position: int) -> bool:
    """Whether backward returns zeros for an input on some path, as it does if the gradient is written elsewhere."""
    slots = (returned.slots[position] for returned in fn.gradients if position < len(returned.slots))
    nodes = (getattr(option, "node", None) for slot in slots for option in slot.value.options())
    return any(isinstance(each, cst.Call) and (last_name(each.func) or "") in operations.BUFFERS for each in nodes)
