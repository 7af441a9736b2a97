"""Gradients that backward returns whatever the incoming gradient is: they are right for 1 at best."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.deliberate_gradients import may_begin_in
from ctxlint.model.analyses.filled_by_extension import calls_that_may_fill
from ctxlint.model.analyses.flat_values import is_flat
from ctxlint.model.analyses.gradient_values import is_checked, reads_values
from ctxlint.model.analyses.independent_gradients import independent_gradients
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.mutations import input_written, marked_dirty
from ctxlint.model.analyses.output_shapes import is_reduced, loses_dimensions
from ctxlint.model.analyses.unwritten_gradients import returns_placeholder
from ctxlint.model.interpreter.events import GenericCall, Mutation
from ctxlint.model.interpreter.values import (
    NONE,
    Choice,
    ContextAttribute,
    Fresh,
    Item,
    Kind,
    Opaque,
    Parameter,
    SavedTensor,
    Sequence,
    Single,
    Slot,
    Tri,
    Value,
    View,
    before_views,
    is_input,
    is_tensor,
    kind_of,
    leaves,
    usual_storage,
)
from ctxlint.model.syntax import code_of, dotted, is_name, keywords_of, last_name, signed_integer, words_of
from ctxlint.patterns import pattern
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method


def gradients_without_upstream(fn: FunctionClass) -> list[cst.CSTNode]:
    """The returns of backward that contain a gradient although the values of no gradient parameter are read at all.

    A gradient from an object stored on ctx does not count: pipelines pass gradients that way. Neither does one whose
    name marks it as unused: ``_grad_output``, nor one from a buffer that forward writes to: other Functions may write
    gradients there. Zeros are right for any incoming gradient. Random outputs have no gradient that could be right.
    """
    backward = fn.backward
    if backward is None or not _ignores_incoming(backward) or _kept_buffers(fn):
        return []
    if _is_stand_in(fn):
        return []
    if any(param.name.startswith("_") for param in backward.own_params):
        return []
    found = [
        returned.node
        for returned in fn.gradients
        if any(_computed(fn, value) for value in _values(returned)) or _passes_kept_gradients(fn, backward, returned)
    ]
    return found if found and not may_begin_in(fn, backward) else []


def _passes_kept_gradients(fn: FunctionClass, backward: Method, returned: Returned) -> bool:
    """Whether a return is an input as it is, several gradients, between Nones, while forward passes a loss on.

    The loss gets one of the Nones. The gradients are not all None: backward would be there for nothing.
    """
    value = returned.node.value if isinstance(returned.node, cst.Return) else None
    elements = [each for part in _joined(backward, value) for each in _without_star(part)]
    several = [at for at, each in enumerate(elements) if each is not None]
    if len(several) != 1 or several[0] == 0:
        return False
    kept = _behind_tuple(backward, elements[several[0]])
    if not isinstance(kept, cst.Attribute) or not backward.is_on_ctx(kept):
        return False
    outputs = [before_views(option) for output in fn.outputs_values() for option in output.options()]
    alone = bool(outputs) and all(each.count == 1 for each in fn.outputs)
    passed_on = alone and all(
        is_input(each) and each.index < several[0] and _LOSS.search(each.name) is not None for each in outputs
    )
    return passed_on and _is_input_in_tuple(fn, kept.attr.value)


def _joined(backward: Method, node: cst.BaseExpression | None) -> list[cst.BaseExpression | None]:
    """The operands of ``a + b + c``, or the expression itself."""
    node = backward.behind_name(node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return [*_joined(backward, node.left), *_joined(backward, node.right)]
    return [node]


def _without_star(part: cst.BaseExpression | None) -> Iterator[cst.BaseExpression | None]:
    """The elements of a part of a tuple, None for each ``None``: also for those of ``(None,) * n``, if only for one."""
    if isinstance(part, (cst.Tuple, cst.List)):
        for each in part.elements:
            yield from _without_star(each.value) if isinstance(each, cst.StarredElement) else [_unless_none(each.value)]
    elif isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Multiply):
        element = next(_without_star(part.left), part)
        count = signed_integer(part.right)
        yield from [None] * (1 if count is None else min(count, _MANY)) if element is None else [part]
    else:
        yield part


_MANY = 256
"""More elements than a ``forward`` has inputs: a number in the code must not decide how many there are in memory."""


def _unless_none(node: cst.BaseExpression) -> cst.BaseExpression | None:
    return None if is_name(node, "None") else node


def _behind_tuple(method: Method, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """``x`` of ``tuple(x)`` and of ``x``, also through a name."""
    node = method.behind_name(node) or node
    if isinstance(node, cst.Call) and dotted(node.func) in ("tuple", "list") and len(node.args) == 1:
        return method.behind_name(node.args[0].value) or node.args[0].value
    return node


def _is_input_in_tuple(fn: FunctionClass, attribute: str) -> bool:
    """Whether forward keeps an input in an attribute as it is, perhaps as a tuple."""
    writes = fn.writes_by_attribute.get(attribute, ())
    if len(writes) != 1 or fn.escapes or fn.forward is None or writes[0].node not in fn.forward.parents:
        return False
    node = _behind_tuple(fn.forward, writes[0].value_node)
    return (
        isinstance(node, cst.Name)
        and node.value not in fn.forward.binders
        and any(each.name == node.value and "None" not in (each.param.annotation or "") for each in fn.inputs)
    )


_LOSS = pattern(r"(?i:loss(?!es)|objective|penalty|likelihood|nll|elbo)")
"""Part of the name of a loss, not of an interval; the identity of others is where gradients are injected on purpose."""


def is_local_rule(fn: FunctionClass) -> bool:
    """Whether backward evidently gives no derivatives.

    It reads the values of no incoming gradient, and each return has zeros for the first input, and something that it
    computes, or forward, for another one. So layers learn by a rule of their own, and pass nothing back. A loss is
    another matter: its incoming gradient may have been forgotten, and what gets zeros is a target.
    """
    backward = fn.backward
    if backward is None or not _ignores_incoming(backward) or is_reduced(fn.outputs, 0):
        return False
    every = [_values(returned) for returned in fn.gradients]
    return bool(every) and all(_stops_at_first(fn, values) for values in every)


def _stops_at_first(fn: FunctionClass, values: list[Value]) -> bool:
    first, *others = values or [NONE]
    zeros = isinstance(first, Fresh) and _is_zeros(fn, first)
    return zeros and any(_computed(fn, each) for each in others)


def _is_stand_in(fn: FunctionClass) -> bool:
    """Whether the outputs of forward have no values that a gradient could be about."""
    return _outputs_are_random(fn) or _outputs_are_empty(fn) or returns_placeholder(fn)


def _outputs_are_random(fn: FunctionClass) -> bool:
    """Whether forward returns nothing but random numbers that no input decides: a stand-in in a test."""
    values = [option for value in fn.outputs_values() for option in value.options()]
    drawn = (isinstance(each, Fresh) and is_call_for_random_numbers(each.node) for each in values)
    return bool(values) and all(drawn) and not any(isinstance(each, Fresh) and _is_filled(fn, each) for each in values)


def _outputs_are_empty(fn: FunctionClass) -> bool:
    """Whether forward returns nothing but tensors without elements: tokens, whose gradients have no values to read."""
    values = [option for value in fn.outputs_values() for option in value.options()]
    filled = any(isinstance(each, Fresh) and _is_filled(fn, each) for each in values)  # torch resizes what it writes to
    return (
        bool(values) and all(isinstance(each, (Fresh, View)) and _is_empty(each.node) for each in values) and not filled
    )


def _is_empty(node: cst.CSTNode) -> bool:
    """Whether it is ``x.new_empty(0)``, ``torch.zeros((0, n))``, ``torch.tensor([])`` or ``x[:0]``."""
    if isinstance(node, cst.Subscript):
        return code_of(node).replace(" ", "").endswith("[:0]")
    name = last_name(node.func) if isinstance(node, cst.Call) else ""
    if not isinstance(node, cst.Call) or not node.args:
        return False
    first = node.args[0].value
    if name == "tensor":
        return isinstance(first, cst.List) and not first.elements
    sizes = [each.value for each in node.args if each.keyword is None or each.keyword.value == "size"]
    if sizes and isinstance(sizes[0], (cst.Tuple, cst.List)):
        sizes = [each.value for each in sizes[0].elements]
    return name in _SIZED and any(signed_integer(each) == 0 for each in sizes)


_SIZED = operations.ALLOCATIONS | frozenset(["new_ones", "new_zeros", "ones", "zeros"])
"""What creates memory with given sizes."""


def passes_on(fn: FunctionClass, node: cst.CSTNode) -> bool:
    """Whether all gradients that a return of backward computes are for the input that forward returns as it is."""
    returned = [each for each in fn.gradients if each.node is node]
    computed = {index for each in returned for index, value in enumerate(_values(each)) if _computed(fn, value)}
    outputs = [option for value in fn.outputs_values() for option in value.options()]
    inputs = {_passed_on(fn, each) for each in outputs}
    only = inputs.pop() if len(inputs) == 1 and all(each.count == 1 for each in (*fn.outputs, *returned)) else None
    return only is not None and all(each.exact for each in returned) and computed == {only}


def _passed_on(fn: FunctionClass, output: Value) -> int | None:
    """The number of the input that an output is, or a view or a copy of, if forward does not write to it."""
    forward, value = fn.forward, usual_storage(output)
    if forward is None or value is None:
        return None
    if isinstance(value, Fresh) and isinstance(value.node, cst.Call) and isinstance(value.node.func, cst.Attribute):
        source = value.node.func.value
        name = source.value if isinstance(source, cst.Name) and value.node.func.attr.value == "clone" else ""
        index = next((each.index for each in fn.inputs if each.name == name and name not in forward.binders), None)
    else:
        index = value.index if isinstance(value, Parameter) and value.role == "input" else None
    written = [usual_storage(each.target) for each in forward.facts.of(Mutation) if each.target is not None]
    if any(isinstance(each, Parameter) and each.index == index for each in written):
        return None
    return None if any(calls_that_may_fill(forward, value)) else index


def _ignores_incoming(backward: Method) -> bool:
    """Whether backward certainly reads the values of no incoming gradient."""
    return bool(backward.own_params) and not any(reads_values(backward, param) for param in backward.own_params)


def is_read_instead(fn: FunctionClass, tensor: Value) -> bool:
    """Whether backward reads a tensor that forward writes to, and keeps, but no incoming gradient.

    Then the backward of another Function may have written the gradient there.
    """
    return fn.backward is not None and _ignores_incoming(fn.backward) and tensor in _kept_buffers(fn)


class Factor(Enum):
    """How the gradient of an output takes part in that of an input."""

    MULTIPLIED = "elementwise"
    """As it is: torch computes the output, or forward already a factor of the gradient, as for a loss."""
    EXPANDED = "expanded"
    """As it is, but the output has fewer dimensions."""
    GIVEN = "given"
    """As it is, but the caller computed the gradient, and perhaps others that nothing multiplies then."""
    UNKNOWN = "unknown"


def factor(fn: FunctionClass) -> Factor:
    """How the incoming gradient is to be used where ``gradients_without_upstream`` finds that it is not."""
    options = [option for value in fn.outputs_values() for option in value.options()]
    backward = fn.backward
    kept_ones = [kept_value(fn, value) for each in fn.gradients for value in _values(each)]
    if any(each is not None and is_input(each) for each in kept_ones):
        return Factor.GIVEN
    if backward is not None and any(_passes_kept_gradients(fn, backward, each) for each in fn.gradients):
        return Factor.UNKNOWN  # each of them is to be multiplied
    if any(_is_on_default_device(each) for each in options):
        return Factor.UNKNOWN  # the gradient of one of those may be on another device than the inputs
    if loses_dimensions(fn.outputs, 0) and all(each.count == 1 for each in fn.outputs):
        return Factor.EXPANDED
    if any(is_tensor(each) is Tri.YES for each in options):
        return Factor.MULTIPLIED
    saved = (argument.value for call in fn.saves for argument in call.arguments)
    kept = (*saved, *(each.value for each in fn.context_writes if each.value is not None))
    made = any(isinstance(before_views(option), Fresh) for each in kept for option in each.options())
    return Factor.MULTIPLIED if made else Factor.UNKNOWN


def _is_on_default_device(output: Value) -> bool:
    """Whether an output is created without regard to the device of the inputs: ``torch.zeros(1)``."""
    node = output.node if isinstance(output, (Fresh, Single)) else None
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    created = path is not None and path.startswith("torch.") and path[6:] in _CREATING
    return created and isinstance(node, cst.Call) and "device" not in keywords_of(node)


_CREATING = frozenset(str.split("empty full ones rand randn tensor zeros FloatTensor Tensor"))


def slots_without_upstream(fn: FunctionClass) -> Iterator[tuple[int, cst.BaseExpression]]:
    """Gradients that do not depend on an incoming one, by input, although backward reads those for other inputs.

    They are computed from saved tensors, or those of forward, returned unchanged: only a name that backward binds once
    and uses for nothing else, or an attribute of ctx, because other code may scale it.
    """
    backward = fn.backward
    if backward is None or _kept_buffers(fn) or any(param.name.startswith("_") for param in backward.own_params):
        return
    if any(is_checked(backward, param) for param in backward.own_params):
        return
    if _ignores_incoming(backward) and _is_stand_in(fn):
        return
    found = list(independent_slots(fn, backward))
    yield from found if found and not may_begin_in(fn, backward) else ()


def independent_slots(fn: FunctionClass, backward: Method) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The gradients that certainly depend on no incoming one, on purpose or not, by input."""
    for returned in fn.gradients:
        for index, slot in enumerate(returned.slots if returned.known else ()):
            if slot.starred:
                return
            if slot.node is not None and _was_computed(fn, slot.value) and _only_returned(backward, slot.node):
                yield index, slot.node
        for index, node in independent_gradients(fn, returned) if returned.known else ():
            if _computed(fn, returned.slots[index].value):
                yield index, node


def common_factor(fn: FunctionClass, backward: Method, others: Container[int]) -> str:
    """The local name by which backward multiplies all gradients but the ``others``; empty if there is no single one.

    It is the incoming gradient, reduced or converted: another factor may belong to the others only.
    """
    slots = (slot for each in fn.gradients for index, slot in enumerate(each.slots) if index not in others)
    factors = [{*_factors(slot.node)} for slot in slots if slot.value != NONE]
    incoming = {each.name for each in backward.own_params}
    common = set.intersection(*factors) if factors else set[str]()
    found = [each for each in common if _converted(backward.bound_to(each)) in incoming]
    return found[0] if len(found) == 1 else ""


def _converted(node: cst.BaseExpression | None) -> str:
    """The name in ``grad.max().float()``; empty for anything but reductions and conversions of one."""
    converted = False
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _CONVERSIONS:
        node, converted = node.func.value, True
    return node.value if converted and isinstance(node, cst.Name) else ""


_CONVERSIONS = frozenset(["item", "max", "mean", "min", "float", "double", "to", "type_as"])


def _factors(node: cst.CSTNode | None) -> Iterator[str]:
    """The names that are multiplied in a product."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        yield from (*_factors(node.left), *_factors(node.right))


def returns_an_output(fn: FunctionClass, node: cst.BaseExpression) -> bool:
    """Whether backward returns the only output of forward, unchanged, and that cannot be its own derivative."""
    values = (slot.value for each in fn.gradients for slot in each.slots if slot.node is node)
    kept = [kept_value(fn, value) for value in values]
    outputs = {option for output in fn.outputs_values() for option in output.options()}
    single = bool(kept) and all(each.count == 1 for each in fn.outputs)
    return single and all(each in outputs and not _may_be_exponential(each) for each in kept)


def output_gradients(fn: FunctionClass, node: cst.CSTNode) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The outputs of forward that a return of backward gives as gradients, by input."""
    for returned in fn.gradients:
        for index, slot in enumerate(returned.slots if returned.node is node and returned.known else ()):
            if slot.node is not None and not slot.starred and returns_an_output(fn, slot.node):
                yield index, slot.node


def _may_be_exponential(value: Value | None) -> bool:
    """Whether a value may be ``exp`` of something: it is not the result of another function of torch."""
    node = value.node if isinstance(value, Fresh) else None
    name = last_name(node.func) if isinstance(node, cst.Call) else ""
    return not isinstance(node, (cst.BinaryOperation, cst.Call)) or name.startswith(("exp", "empty", "zeros", "new_"))


def _was_computed(fn: FunctionClass, value: Value) -> bool:
    """Whether a value of backward is, unless None, a tensor that forward itself computed and kept, or a view of it."""
    if isinstance(value, Choice):
        return all(_was_computed(fn, option) for option in value.alternatives if option != NONE)
    if isinstance(value, View):
        origin = usual_storage(value)
        return origin is not None and _was_computed(fn, origin)
    if isinstance(value, ContextAttribute):
        return _kept_tensor(fn, _kept(fn, value.name), constants=False)
    if not isinstance(value, SavedTensor) or len(fn.saves) != 1 or not fn.saves[0].exact:
        return False
    saved = fn.saves[0].arguments[value.index : value.index + 1]
    return bool(saved) and _kept_tensor(fn, saved[0].value, constants=False)


def _only_returned(backward: Method, node: cst.BaseExpression) -> bool:
    """Whether the tensor in a name, or an attribute of ctx, is certainly used for nothing else than this gradient."""
    path = dotted(node)
    if path is None:
        return False
    head, _, attribute = path.partition(".")
    if attribute:
        return head == backward.ctx_name and len(backward.context_attributes.get(attribute, ())) == 1
    return len(backward.named.get(head, ())) == 2  # bound and returned


def tangents_without_incoming(fn: FunctionClass) -> list[cst.CSTNode]:
    """The returns of ``jvp`` that contain a tangent other than zeros although it reads none of the incoming ones."""
    jvp = fn.methods.get("jvp")
    if jvp is None or jvp.inherited or not jvp.signature_known or not jvp.own_params:
        return []
    if any(reads_values(jvp, param) or param.name.startswith("_") for param in jvp.own_params):
        return []
    found = [each.node for each in fn.tangents if any(_is_tangent_computed(fn, value) for value in _values(each))]
    return found if found and not (_gets_tangents(fn) or may_begin_in(fn, jvp)) else []


def _is_tangent_computed(fn: FunctionClass, value: Value) -> bool:
    """Whether jvp computes a value; with several inputs, what forward computed for it may contain their tangents."""
    if isinstance(value, Choice):
        return all(_is_tangent_computed(fn, option) for option in value.alternatives if option != NONE)
    kept = isinstance(before_views(value), (ContextAttribute, SavedTensor, Item)) and len(fn.inputs) != 1
    return not kept and _computed(fn, value)


def _gets_tangents(fn: FunctionClass) -> bool:
    """Whether forward itself gets or computes tangents: it reads a name that says so."""
    return any("tangent" in name or "dual" in name for method in fn.context_methods for name in method.facts.names_read)


def _kept_buffers(fn: FunctionClass) -> frozenset[Value]:
    """The inputs that forward writes to without marking them as dirty, and keeps for backward."""
    mutations = (each for method in fn.context_methods for each in method.facts.of(Mutation))
    written = {each for each in map(input_written, mutations) if each is not None} - (marked_dirty(fn) or frozenset())
    saved = (argument.value for call in fn.saves for argument in call.arguments)
    stored = (write.value for write in fn.context_writes if write.value is not None)
    kept = (usual_storage(leaf) for value in (*saved, *stored) for leaf in leaves(value))
    return frozenset(each for each in kept if each in written)


def _values(returned: Returned) -> list[Value]:
    """The values in a return of backward; the whole value if it may be one gradient or several."""
    if not returned.known:
        return [returned.value]
    return [slot.value for slot in returned.slots if not slot.starred]


def _computed(fn: FunctionClass, value: Value) -> bool:
    """Whether a value of backward is, unless None, a tensor that this Function computed, or stored.

    Zeros do not count, nor random numbers: in the stand-ins of kernels for the device ``meta``, only shapes matter. NaN
    is a gradient on purpose, as in the test of a detector, and ``saved == 1`` tells whether a tensor came back whole.
    """
    if isinstance(value, Choice):
        return all(_computed(fn, option) for option in value.alternatives if option != NONE)
    if isinstance(value, View):
        origin = usual_storage(value)
        return origin is not None and _computed(fn, origin)
    if isinstance(value, Fresh):
        stands_in = _is_zeros(fn, value) or _is_random(fn, value) or _is_of_a_number(value.node, _is_nan)
        return not (stands_in or _is_equality_with_number(value.node))
    if isinstance(value, Parameter):  # its memory, with other values
        return bool(_written(fn, value) - {"fill_", "resize_", "resize_as_", "zero_"})
    if isinstance(value, ContextAttribute):
        return _kept_tensor(fn, _kept(fn, value.name))
    if isinstance(value, Item) and isinstance(value.of, ContextAttribute):
        container, at = _kept(fn, value.of.name), value.key
        if isinstance(container, Sequence) and container.exact and isinstance(at, int) and at < len(container.slots):
            return _kept_tensor(fn, container.slots[at].value)
        return False
    if isinstance(value, (Opaque, Single)):
        return _of_kept(fn, value.node)
    return isinstance(value, SavedTensor)


def _is_equality_with_number(node: cst.CSTNode | None) -> bool:
    """Whether it is ``x == 1``, which is the derivative of nothing."""
    only = node.comparisons[0] if isinstance(node, cst.Comparison) and len(node.comparisons) == 1 else None
    return only is not None and isinstance(only.operator, cst.Equal) and isinstance(only.comparator, cst.BaseNumber)


def _of_kept(fn: FunctionClass, node: cst.CSTNode | None, seen: tuple[str, ...] = ()) -> bool:
    """Whether code certainly computes with a tensor that forward made, or got, and kept: ``ctx.factor.neg() * 2``."""
    if isinstance(node, cst.AugAssign):
        return _of_kept(fn, node.value, seen)
    if isinstance(node, cst.BinaryOperation):
        return _of_kept(fn, node.left, seen) or _of_kept(fn, node.right, seen)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and _of_kept(fn, node.expression, seen)
    if isinstance(node, cst.Call):
        named = node.func if isinstance(node.func, cst.Attribute) else None
        return named is not None and named.attr.value in _COMPUTING and _of_kept(fn, named.value, seen)
    if isinstance(node, cst.Name) and fn.backward is not None and node.value not in seen:
        return _of_kept(fn, fn.backward.bound_to(node.value), (*seen, node.value))
    if isinstance(node, cst.Attribute) and fn.backward is not None and fn.backward.is_on_ctx(node):
        kept = _kept(fn, node.attr.value)
        return _kept_tensor(fn, kept) or _is_differentiated(fn, kept)
    return False


def _is_differentiated(fn: FunctionClass, value: Value | None) -> bool:
    """Whether a stored value is an input, certainly a tensor, that gets a gradient: forward does not only keep it."""
    entry = fn.inputs[value.index] if value is not None and is_input(value) and value.index < len(fn.inputs) else None
    return entry is not None and entry.is_tensor is Tri.YES and entry.gradient is Tri.YES


_COMPUTING = operations.COMPUTING | operations.VIEW_METHODS | operations.USUAL_VIEW_METHODS | {"clone"}
"""Methods that compute with the values of their tensor."""


def _kept(fn: FunctionClass, attribute: str) -> Value | None:
    """What forward certainly stores in an attribute of ctx."""
    writes = [write for write in fn.context_writes if write.attribute == attribute]
    return writes[0].value if len(writes) == 1 and not writes[0].deletes and not fn.escapes else None


def _kept_tensor(fn: FunctionClass, value: Value | None, *, constants: bool = True) -> bool:
    """Whether a stored value is certainly a tensor that forward computed itself, unless it is None.

    Without ``constants``, ones and the like do not count: as the gradient of an auxiliary loss, they are meant.
    """
    options = [option for option in value.options() if option != NONE] if value is not None else []
    return bool(options) and all(_is_made(fn, option, before_views(option), constants=constants) for option in options)


def _is_made(fn: FunctionClass, value: Value, origin: Value, *, constants: bool) -> bool:
    """Whether a value, of the given origin, is a tensor that forward created, other than with zeros alone."""
    if not isinstance(origin, Fresh):
        return False
    flat = is_call_for_zeros(origin.node) or (not constants and is_constant(origin.node))
    return not flat or _is_filled(fn, origin) or _is_filled_as_view(fn, value)


def _is_filled_as_view(fn: FunctionClass, value: Value) -> bool:
    """Whether forward certainly writes to a value through a view that may be a copy, as ``torch.zeros(n).to(x)``."""
    views = set[Value]()
    while isinstance(value, View):
        views.add(value)
        value = value.of
    writes = (each for method in fn.context_methods for each in method.facts.of(Mutation) if not each.guards)
    return any(each.target in views and each.how != "zero_" for each in writes)


def _is_filled(fn: FunctionClass, zeros: Fresh) -> bool:
    """Whether forward certainly writes to a tensor of zeros.

    Or passes it to a call whose result it does not use: an output of an extension.
    """
    for method in fn.context_methods:
        written = (each for each in method.facts.of(Mutation) if not each.guards and each.how != "zero_")
        if any(each.target is not None and usual_storage(each.target) == zeros for each in written):
            return True
        calls = (each for each in method.facts.of(GenericCall) if isinstance(method.parents.get(each.node), cst.Expr))
        if any(before_views(slot.value) == zeros for each in calls for slot in each.arguments):
            return True
    return False


def is_call_for_zeros(node: cst.CSTNode | None) -> bool:
    """Whether a node is the very call that creates zeros, so that nothing can have been written to them."""
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    return path is not None and path.rpartition(".")[2] in ("zeros", "zeros_like", "new_zeros")


def is_constant(node: cst.CSTNode | None) -> bool:
    """Whether an expression creates a tensor of one number, perhaps times something: ``torch.ones_like(x) * scale``."""
    if isinstance(node, cst.BinaryOperation):
        scaled = isinstance(node.operator, (cst.Multiply, cst.Divide)) and is_constant(node.left)
        return scaled or (isinstance(node.operator, cst.Multiply) and is_constant(node.right))
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    return path is not None and path.rpartition(".")[2] in _CONSTANT


_ONES = ("ones", "ones_like", "new_ones")
_CONSTANT = (*_ONES, "full", "full_like", "new_full")


def depends_on_no_input(fn: FunctionClass, value: Value) -> bool:
    """Whether an output certainly consists of random numbers or one number, is empty, or comes from no tensor.

    Or of integers: counts, and what is rounded, have the gradient zero.
    """
    made, forward = before_views(value), fn.forward
    if not isinstance(made, Fresh) or forward is None:
        return False
    constant = is_call_for_zeros(made.node) or _is_of_ones(made.node) or _is_of_a_number(made.node)
    constant = constant or _gets_no_tensor(forward, made.node)
    drawn = constant or is_call_for_random_numbers(made.node)
    integral = is_tensor(made) is Tri.YES and kind_of(made) is Kind.INTEGRAL
    drawn = drawn or integral or is_flat(fn, made.node)
    written = not drawn or _is_filled(fn, made)
    if written and not _holds_a_number(forward, made):
        return False
    return not (_is_passed(forward, made) or any(calls_that_may_fill(forward, made)))


def _is_passed(forward: Method, made: Fresh) -> bool:
    """Whether a function may get a tensor, also in a container, or if a condition decides what it gets."""
    values = (slot.value for call in forward.facts.of(GenericCall) for slot in _given_to(call))
    return any(before_views(option) == made for value in values for leaf in leaves(value) for option in leaf.options())


def _given_to(call: GenericCall) -> Iterator[Slot]:
    """The arguments of a call."""
    yield from call.arguments
    yield from dict(call.keywords).values()


def _gets_no_tensor(forward: Method, node: cst.CSTNode) -> bool:
    """Whether a node is the call of a function of the project that certainly gets no tensor: ``phony(x.device)``."""
    calls = [each for each in forward.facts.of(GenericCall) if each.node is node and each.definition is not None]
    values = [slot.value for each in calls for slot in _given_to(each)]
    return bool(calls) and all(is_tensor(each) is Tri.NO for each in values)


def _is_of_ones(node: cst.CSTNode | None) -> bool:
    """Whether a call creates ones, or a tensor without elements."""
    name = last_name(node.func) if isinstance(node, cst.Call) else ""
    first = node.args[0].value if isinstance(node, cst.Call) and node.args else None
    none = isinstance(first, cst.Integer) and first.evaluated_value == 0
    return name in _ONES or (none and name in ("empty", "new_empty"))


def _is_of_a_number(node: cst.CSTNode | None, is_it: Callable[[cst.BaseExpression], bool] | None = None) -> bool:
    """Whether a call creates a tensor of a literal number: ``torch.full_like(x, 2.0)``, ``x.new_tensor(3)``."""
    place = _NUMBERED.get(last_name(node.func) or "") if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or place is None or len(node.args) <= place:
        return False
    return node.args[place].keyword is None and (is_it or _is_number)(node.args[place].value)


def _is_nan(node: cst.BaseExpression) -> bool:
    """Whether it is ``float("nan")`` or ``torch.nan``."""
    return _is_number(node) and any(each.strip("'\"").lower() == "nan" for each in words_of(node))


_NUMBERED = {"full": 1, "full_like": 1, "new_full": 1, "tensor": 0, "new_tensor": 0}
"""The argument that is the number."""


def _is_number(node: cst.BaseExpression) -> bool:
    """Whether it is a literal number, a list of them, ``float("inf")`` or ``torch.inf``."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(isinstance(each, cst.Element) and _is_number(each.value) for each in node.elements)
    node = node.expression if isinstance(node, cst.UnaryOperation) else node
    if isinstance(node, cst.Call):
        return last_name(node.func) == "float" and all(isinstance(each.value, cst.SimpleString) for each in node.args)
    if isinstance(node, cst.Attribute):
        return dotted(node) in _NUMBERS_BY_NAME
    return isinstance(node, (cst.Integer, cst.Float))


_NUMBERS_BY_NAME = frozenset(
    f"{module}.{name}" for module in ("math", "np", "numpy", "torch") for name in ("inf", "nan", "pi")
)


def _holds_a_number(forward: Method, made: Fresh) -> bool:
    """Whether all that forward writes to a new tensor is a literal number: ``x.clone().fill_(1.0)``."""
    mutations = forward.facts.of(Mutation)
    writes = [each for each in mutations if each.target is not None and usual_storage(each.target) == made]
    whole = any(each.target == made and not each.guards for each in writes)
    return whole and all(_writes_a_number(each) for each in writes)


def _writes_a_number(write: Mutation) -> bool:
    call = write.node if isinstance(write.node, cst.Call) and not write.by else None
    if call is None or write.how != "fill_":
        return call is not None and write.how == "zero_"
    return len(call.args) == 1 and _is_number(call.args[0].value)


def _is_zeros(fn: FunctionClass, value: Fresh) -> bool:
    """Whether backward creates a tensor of zeros, and writes nothing else to it, nor passes it to compiled code."""
    written = _written(fn, value)
    made = is_call_for_zeros(value.node) or "zero_" in written
    return made and written <= {"zero_"} and not _given_to_extension(fn, value)


def _is_random(fn: FunctionClass, value: Fresh) -> bool:
    """Whether backward draws random numbers, and writes nothing else there."""
    drawn = is_call_for_random_numbers(value.node)
    return drawn and not _written(fn, value) and not _given_to_extension(fn, value)


def is_call_for_random_numbers(node: cst.CSTNode | None) -> bool:
    """Whether a node is a call that creates a tensor of random numbers, of which no input decides the values."""
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    return path is not None and path.rpartition(".")[2] in _RANDOM


_RANDOM = ("rand", "rand_like", "randn", "randn_like", "randint", "randint_like")


def _written(fn: FunctionClass, value: Value) -> set[str]:
    """How backward modifies a tensor."""
    mutations = fn.backward.facts.of(Mutation) if fn.backward is not None else ()
    return {each.how for each in mutations if each.target is not None and usual_storage(each.target) == value}


def _given_to_extension(fn: FunctionClass, value: Value) -> bool:
    """Whether backward passes a tensor to a function of a compiled extension whose result it does not use."""
    return fn.backward is not None and any(calls_that_may_fill(fn.backward, value))
