"""What forward saves, and how it is used otherwise: stored twice, modified later, modified by backward."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flags import flag_of_conditional
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.lasting_writes import is_left_for_others, is_overwritten_first
from ctxlint.model.analyses.mutations import (
    copying_method,
    gradient_written,
    raises_for_overlap,
    through_data,
    without_gradient,
)
from ctxlint.model.analyses.outputs import differentiable_outputs
from ctxlint.model.analyses.repeats import happens_after, repeated
from ctxlint.model.analyses.reverted_writes import lasting, reverted, reverts
from ctxlint.model.analyses.unknown_fills import filled_gradients
from ctxlint.model.interpreter.events import Assigned, ContextCall, ContextWrite, Mutation, SavedRead, orders_of
from ctxlint.model.interpreter.summary import FILLED
from ctxlint.model.interpreter.values import (
    NONE,
    Alias,
    Choice,
    Constant,
    ContextAttribute,
    Fresh,
    Item,
    Opaque,
    Parameter,
    SavedTensor,
    Scalar,
    Single,
    Slot,
    Tri,
    Value,
    View,
    is_detached,
    is_input,
    is_tensor,
    same_object,
    storage,
    usual_storage,
)
from ctxlint.model.syntax import last_name, signed_integer
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Unpacking
    from ctxlint.model.interpreter.method import Method

_OBJECTS = (Parameter, Fresh, Single, Opaque, Item, View)
"""Values that denote one certain object."""


def single_save(fn: FunctionClass) -> tuple[Slot, ...] | None:
    """The tensors of the only ``save_for_backward`` of forward, in order; None if there are several, or a star."""
    if len(fn.saves) != 1 or not fn.saves[0].exact or fn.escapes:
        return None
    return fn.saves[0].arguments


def saved_for(fn: FunctionClass, position: int) -> int | None:
    """The input whose gradient alone needs a saved tensor: if that input needs none, forward saves None instead.

    ``grads = torch.zeros_like(x) if x.requires_grad else None`` is such a tensor.
    """
    saved = single_save(fn)
    node = saved[position].node if saved is not None and position < len(saved) else None
    assigned = [each for method in fn.earlier_methods for each in method.facts.of(Assigned)]
    if isinstance(node, cst.Name):
        bindings = [each.value_node for each in assigned if each.name == node.value and not each.augmented]
        node = bindings[0] if len(bindings) == 1 else None
    test = node.test if isinstance(node, cst.IfExp) else None
    if not isinstance(node, cst.IfExp) or not isinstance(test, cst.Attribute):
        return flag_of_conditional(node)
    if test.attr.value != "requires_grad" or not isinstance(test.value, cst.Name):
        return None
    if not isinstance(node.orelse, cst.Name) or node.orelse.value != "None":
        return None
    name = test.value.value
    rebound = any(each.name == name for each in assigned)
    return next((each.index for each in fn.inputs if each.name == name and not rebound), None)


def output_objects(fn: FunctionClass) -> list[Value]:
    """Every object that some return of forward certainly returns."""
    return [option for value in fn.outputs_values() for option in value.options() if isinstance(option, _OBJECTS)]


def saved_and_stashed(fn: FunctionClass) -> Iterator[tuple[ContextWrite, ContextCall]]:
    """Each ``ctx.a = t`` whose tensor is certainly saved as well, with the saving call.

    Not in a function that gets the ctx: it may store two different tensors for another Function.
    """
    for method in fn.context_methods:
        if method.inherited:
            continue  # found in the base class
        saves = [call for call in method.facts.of(ContextCall) if call.method == "save_for_backward"]
        for write in method.facts.of(ContextWrite) if saves else ():
            value = write.value
            if write.deletes or write.by or not isinstance(value, (*_OBJECTS, Choice)) or is_tensor(value) is Tri.NO:
                continue
            if _is_replaced_later(fn, write):
                continue
            save = _always_saved(method, write, saves)
            if save is not None:
                yield write, save


def _is_replaced_later(fn: FunctionClass, write: ContextWrite) -> bool:
    """Whether forward certainly gives an attribute another value later, or deletes it."""
    others = fn.writes_by_attribute.get(write.attribute, ())
    return any(other.implies(write) and other.happens_with(write) for other in others)


def _always_saved(method: Method, write: ContextWrite, saves: list[ContextCall]) -> ContextCall | None:
    """The call that saves what an attribute gets; None if some path may lack it, or replace it by a call without it."""
    keeping = [
        save
        for save in saves
        if any(not argument.starred and _is_kept_by(write, argument) for argument in save.arguments)
    ]
    orders = orders_of(keeping)
    if any(each.may_follow(write) and not each.maybe_before & orders for each in method.returns):
        return None
    found = [save for save in keeping if write.implies(save) or save.happens_with(write)]
    others = [save for save in saves if save not in keeping and not save.excludes(write)]
    if any(other.may_follow(save) and not other.excludes(save) for save in found for other in others):
        return None
    return next((save for save in found if write.certainly_with(save)), None)


def _is_kept_by(write: ContextWrite, argument: Slot) -> bool:
    """Whether an attribute certainly keeps a saved tensor: also one of several, by the same name."""
    if write.value is None or not isinstance(write.value, Choice):
        return write.value is not None and same_object(argument.value, write.value) is Tri.YES
    named = argument.node if isinstance(argument.node, cst.Name) else None
    same = isinstance(write.value_node, cst.Name) and named is not None and named.value == write.value_node.value
    return same and argument.value == write.value and not write.in_loop


class Buffer(Enum):
    """What an input without a gradient is for, to which backward writes."""

    RESULT = "backward does not read what it writes there, so the caller does"
    SCRATCH = "backward overwrites it before it reads it"


@record
class ChangedInBackward:
    """Backward writes to a tensor that it read from ctx. ``what`` describes it: an input or an output.

    ``left``: backward does not read what it writes there. ``saved``: it comes from ``save_for_backward``. ``buffer``:
    what it is for, if it is an input without a gradient. ``chosen``: a conditional expression decides whether it is
    that tensor. ``copier``: the method that copies it before if its layout is unusual. ``partly``: forward returns the
    output on some paths only.
    """

    mutation: Mutation
    what: str
    name: str
    saved: bool
    left: bool
    buffer: Buffer | None = None
    chosen: Chosen | None = None
    copier: str = ""
    partly: bool = False


@record
class Chosen:
    """``value`` is the alternative of ``y = value if test else torch.empty_like(x)`` that is not a new tensor.

    ``holds``: whether it is the one for a true ``test``.
    """

    value: Value
    test: cst.BaseExpression
    holds: bool


def chosen_gradient(fn: FunctionClass, method: Method, mutation: Mutation) -> Chosen | None:
    """The incoming gradient that a modified name is by a conditional expression; see ``_chosen_by``."""
    return _chosen_by(
        fn, method, mutation, lambda option: gradient_written(replace(mutation, target=option)) is not None
    )


def _chosen_by(
    fn: FunctionClass, method: Method, mutation: Mutation, is_wanted: Callable[[Value], bool]
) -> Chosen | None:
    """The wanted tensor that a modified name is by a conditional expression, if it is a new tensor otherwise.

    Only by default: the test is an input of forward that ctx keeps. Callers that ask for it know what it does.
    """
    named = method.assignments.get(mutation.name or "", ())
    bindings = [each for each in named if mutation.may_follow(each)]
    node = bindings[0].value_node if len(bindings) == 1 else None
    options = mutation.target.options() if mutation.target is not None else ()
    wanted = [option for option in options if is_wanted(option)]
    if not isinstance(node, cst.IfExp) or bindings[0].value != mutation.target or len(wanted) != 1 or len(options) != 2:
        return None
    if not any(isinstance(option, Fresh) for option in options):
        return None
    holds = not isinstance(node.body, cst.Call)
    if not isinstance(node.test, cst.Attribute) or not _is_default(fn, node.test.attr.value, holds):
        return None
    return Chosen(wanted[0], node.test, holds) if holds is isinstance(node.orelse, cst.Call) else None


def _is_read_from_ctx(value: Value) -> bool:
    return isinstance(storage(value), (SavedTensor, ContextAttribute))


def _is_default(fn: FunctionClass, attribute: str, answer: bool) -> bool:
    """Whether an attribute of ctx holds an input of forward whose default is ``answer``."""
    stored = kept_value(fn, ContextAttribute(attribute))
    default = fn.inputs[stored.index].param.default if is_input(stored) else None
    return isinstance(default, Constant) and default.value is answer


def changed_in_backward(fn: FunctionClass) -> Iterator[ChangedInBackward]:
    """The saved or stored inputs and outputs that backward certainly modifies in place.

    Excluding buffers that are stored as attributes for backward to fill, and tensors to which it gives memory again.
    """
    backward = fn.backward
    if backward is None:
        return
    scratch: list[Value] = []
    for mutation in (*lasting(backward.facts.of(Mutation)), *filled_gradients(fn, backward)):
        read = usual_storage(mutation.target) if mutation.target is not None else None
        if _is_allocated_again(backward, mutation) or raises_for_overlap(mutation):
            continue
        chosen = _chosen_by(fn, backward, mutation, _is_read_from_ctx) if read is None else None
        read = storage(chosen.value) if chosen is not None else read
        stored = kept_value(fn, read)
        origin = usual_storage(stored) if stored is not None else None
        copiers = [copying_method(each) for each in (mutation.target, stored) if each is not None]
        copier = next(filter(None, copiers), "")
        if origin is None and isinstance(stored, View) and stored in output_objects(fn):
            origin = stored  # whether it is a copy or not, it is the output
        saved = isinstance(read, SavedTensor)
        if is_input(origin):
            entry = fn.inputs[origin.index] if origin.index < len(fn.inputs) else None
            if entry is not None and entry.is_tensor is Tri.YES and not _undoes(fn, backward, mutation, origin):
                if is_overwritten_first(backward, mutation):
                    scratch.append(origin)
                left = is_left_for_others(backward, mutation)
                kept = left or through_data(mutation.target)  # written on purpose
                buffer = Buffer.RESULT if kept else Buffer.SCRATCH if origin in scratch else None
                buffer = buffer if entry.gradient is Tri.NO else None
                if buffer is None or (saved and not copier):
                    yield ChangedInBackward(mutation, "input", origin.name, saved, left, buffer, chosen, copier)
        elif origin is not None and is_tensor(origin) is Tri.YES and origin in output_objects(fn):
            if _stores_again(fn, mutation, origin) or mutation.how == FILLED:
                continue
            name = mutation.name or "the tensor"
            if isinstance(read, ContextAttribute) and name == backward.ctx_name:
                name += f".{read.name}"
            left = is_left_for_others(backward, mutation)
            partly = not all(any(slot.value == origin for slot in each.slots) for each in fn.outputs)
            yield ChangedInBackward(mutation, "output", name, saved, left, None, chosen, copier, partly)


def _is_allocated_again(backward: Method, mutation: Mutation) -> bool:
    """Whether backward gives a tensor memory again, ``x.untyped_storage().resize_(n)``, before it writes to it."""
    for use in backward.named.get(mutation.name or "", ()):
        memory, name = backward.called_on(use)
        call, method = backward.called_on(memory) if memory is not None else (None, "")
        size = call.args[0].value if call is not None and len(call.args) == 1 else None
        if name in _STORAGES and method == "resize_" and size is not None and signed_integer(size) != 0:
            if backward.is_written_before(use, mutation.node):
                return True
    return False


_STORAGES = frozenset({"storage", "typed_storage", "untyped_storage"})


def _stores_again(fn: FunctionClass, mutation: Mutation, output: Value) -> bool:
    """Whether a kernel seems to store once more what forward has stored in an output: it recomputes the values.

    It writes through a parameter of the same name as the kernel of forward did. If a function has launched that, the
    parameter must have the name of the output. What it computes from the values that were there is another value.
    """
    pointer = mutation.through[-1].pointer if mutation.through else ""
    if not pointer or fn.forward is None or mutation.through[-1].updates:
        return False
    written = [each for each in fn.forward.facts.of(Mutation) if each.target and usual_storage(each.target) == output]
    if written:
        return any(each.through and each.through[-1].pointer == pointer for each in written)
    names = {each.name for each in fn.forward.facts.of(Assigned) if each.value == output}
    return pointer.lower() in {name.lower() for name in names}


def _undoes(fn: FunctionClass, backward: Method, mutation: Mutation, tensor: Value) -> bool:
    """Whether the modification is the counterpart of those of the same input in forward.

    Either forward has certainly applied the same operation, which changes nothing when it is applied again; or backward
    restores what forward has overwritten, which is the purpose of a Function that keeps no copy.
    """
    if fn.forward is None or mutation.target is None:
        return False
    before = [each for each in fn.forward.facts.of(Mutation) if each.target and usual_storage(each.target) == tensor]
    if mutation.how in operations.IDEMPOTENT:
        return any(each.how == mutation.how and not each.guards for each in before)
    target = usual_storage(mutation.target)
    same = [each for each in backward.facts.of(Mutation) if each.target and usual_storage(each.target) == target]
    return any(reverts(each, earlier) for each in same for earlier in before)


def restored_in_backward(fn: FunctionClass) -> Iterator[tuple[Mutation, Mutation, str]]:
    """The in-place modifications of saved inputs that backward itself reverts: both, and the name of the input.

    torch counts modifications, also for views; not those through ``.data``. Only those that happen whenever a gradient
    is needed.
    """
    for first, second in reverted(fn.backward.facts.of(Mutation)) if fn.backward is not None else ():
        read = storage(first.target) if first.target is not None else None
        stored = kept_value(fn, read) if isinstance(read, SavedTensor) else None
        origin = storage(stored) if stored is not None else None
        if not is_input(origin) or fn.inputs[origin.index].is_tensor is not Tri.YES or first.by:
            continue
        if not (through_data(first.target) or through_data(stored) or any(each.asks is None for each in first.guards)):
            yield first, second, origin.name


def changed_after_saving(fn: FunctionClass) -> Iterator[tuple[Mutation, ContextCall]]:
    """The first in-place modification in forward of each tensor that was saved before.

    A save that another one replaces does not count, nor does a buffer that is filled after it is saved.
    """
    for method in fn.context_methods:
        saves = [call for call in method.facts.of(ContextCall) if call.method == "save_for_backward"]
        replaced = [earlier for _later, earlier in repeated(saves)]
        found: list[Value] = []
        for mutation in method.facts.of(Mutation):
            origin = storage(mutation.target) if mutation.target is not None else None
            if origin is None or not isinstance(origin, _OBJECTS) or origin in found or _is_buffer(origin):
                continue
            for save in saves:
                values = [storage(argument.value) for argument in save.arguments]
                if save not in replaced and origin in values and happens_after(mutation, save):
                    found.append(origin)
                    yield mutation, save
                    break


def _is_buffer(value: Value) -> bool:
    """Whether a tensor is created to be filled: ``torch.empty_like(x)``."""
    node = value.node if isinstance(value, Fresh) else None
    return isinstance(node, cst.Call) and last_name(node.func) in operations.BUFFERS


def saved_output_views(fn: FunctionClass) -> Iterator[tuple[ContextCall, Slot]]:
    """The saved tensors that are certainly views of an output with a ``grad_fn``, on some path; not detached."""
    for save in fn.saves:
        outputs = [each for each in differentiable_outputs(fn, save) if isinstance(each, _OBJECTS)]
        for argument in save.arguments:
            value = argument.value
            if not isinstance(value, View) or _cut_off(value):
                continue
            origin = storage(value)
            if origin is not None and not isinstance(origin, Parameter) and origin in outputs:
                if value not in outputs or _is_view_on_a_path(fn, save, value):
                    yield save, argument


def _is_view_on_a_path(fn: FunctionClass, save: ContextCall, value: Value) -> bool:
    """Whether forward, having saved a view on every path, returns it on one path, and its origin on another."""
    origin = storage(value)
    for returned in fn.outputs if fn.setup_context is None else ():
        slots = returned.slots if returned.known else (Slot(returned.value),)
        views = [slot for slot in slots if value in slot.value.options()]
        origins = [slot for slot in slots if origin in slot.value.options()]
        wanted = returned.event.implies(save) and not without_gradient(returned.event)
        if wanted and any(views in ([], [slot]) for slot in origins):
            return True
    return False


def _cut_off(value: Value) -> bool:
    """Whether a view was detached on the way, or may be a copy."""
    if is_detached(value):
        return True
    while isinstance(value, View):
        if value.alias is not Alias.ALWAYS:
            return True
        value = value.of
    return False


def marks_of_no_output(fn: FunctionClass) -> Iterator[tuple[ContextCall, Slot]]:
    """The arguments of ``mark_non_differentiable`` that certainly are not outputs on any path."""
    if not fn.outputs or any(not returned.known or not returned.exact for returned in fn.outputs) or fn.escapes:
        return
    outputs: list[Value] = []
    for value in fn.outputs_values():
        for option in value.options():
            if not isinstance(option, (*_OBJECTS, Constant, Scalar)):
                return
            outputs.append(option)
    for call in fn.context_calls("mark_non_differentiable"):
        for argument in call.arguments:
            if not argument.starred and all(_is_none_of(outputs, value) for value in argument.value.options()):
                yield call, argument


def _is_none_of(outputs: list[Value], value: Value) -> bool:
    """Whether a value is certainly another object than each of the outputs."""
    if not isinstance(value, _OBJECTS) or value in outputs:
        return False
    return not any(_may_be_same(value, output) for output in outputs)


def _may_be_same(value: Value, output: Value) -> bool:
    """Whether two different values may denote the same object: a conversion can return its operand."""
    return _possible_origin(value) == _possible_origin(output) and (_converted(value) or _converted(output))


def _possible_origin(value: Value) -> Value:
    while isinstance(value, View) and value.alias is not Alias.ALWAYS:
        value = value.of
    return value


def _converted(value: Value) -> bool:
    return isinstance(value, View) and value.alias is not Alias.ALWAYS


def never_read(fn: FunctionClass) -> list[tuple[int, Slot]]:
    """The positions and arguments of the saved tensors that are never read. Empty if that is not certain."""
    saved, unpackings = single_save(fn), unpackings_of(fn)
    used = {
        at
        for method, unpacking in unpackings
        for at, name in enumerate(unpacking.names)
        if name is None or name in method.facts.names_read
    }
    unused = [(at, slot) for at, slot in enumerate(saved or ()) if at not in used and slot.value != NONE]
    return unused if unpackings else []


def unpackings_of(fn: FunctionClass) -> list[tuple[Method, Unpacking]]:
    """Where the methods that read ctx bind the saved tensors to names.

    Empty if they may read them in another way, or if other methods may.
    """
    saved = single_save(fn)
    if saved is None or not fn.reading_methods or fn.has_subclass or fn.called_directly:
        return []
    found: list[tuple[Method, Unpacking]] = []
    for method in fn.reading_methods:
        if not method.facts.complete:
            return []
        for read in method.facts.of(SavedRead):
            if read.via == "saved_for_forward":
                continue
            if not read.unpackings or read.called or read.bound_to is not None:
                return []
            for unpacking in read.unpackings:
                if unpacking.starred or len(unpacking.names) != len(saved):
                    return []
                found.append((method, unpacking))
    return found
