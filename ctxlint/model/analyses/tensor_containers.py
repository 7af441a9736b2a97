"""Inputs that contain tensors which autograd does not see."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.shifted import is_shifted
from ctxlint.model.function import RETURNED, Trust
from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.index.scopes import dotted_name
from ctxlint.model.interpreter.values import Item, Tri, is_input, is_none, is_whole_tuple
from ctxlint.model.syntax import dotted
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import Evidence, FunctionClass, Input, Returned
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


def is_tensor_container(annotation: str | None) -> bool:
    """Whether an annotation is exactly a list, tuple, dict … of tensors."""
    if annotation is None or not annotation.endswith("]"):
        return False
    head, _, inside = annotation[:-1].partition("[")
    if head == "typing.Optional":
        return is_tensor_container(inside)
    elements = [each.strip() for each in inside.split(",")]
    return head in types.CONTAINER_ANNOTATIONS and any(each in types.TENSOR_ANNOTATIONS for each in elements)


def declares_fields(node: ast.ClassDef) -> bool:
    """Whether a class declares fields: a NamedTuple, also by a metaclass for several bases, or a dataclass."""
    if any(
        each.arg == "metaclass" and (dotted_name(each.value) or "").endswith("NamedTupleMeta") for each in node.keywords
    ):
        return True
    said = [*node.bases, *(each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)]
    names = {(dotted_name(each) or "").rpartition(".")[2] for each in said}
    return not names.isdisjoint({"NamedTuple", "TypedDict", "dataclass", "define", "attrs"})


def holds_tensors(entry: Input) -> bool:
    """Whether an input certainly is a container, or a record, that may hold tensors.

    What is used, or passed, as only a tensor can be is not one whatever its annotation.
    """
    return entry.is_container or (
        is_tensor_container(entry.param.annotation) and not any(map(_refutes, entry.evidence))
    )


def _refutes(evidence: Evidence) -> bool:
    """Whether evidence shows that an input with the annotation of a container is a tensor."""
    own = evidence.own_gradient or evidence.reason == RETURNED
    return evidence.tensor and not own and evidence.trust in (Trust.PROOF, Trust.STRONG)


def container_inputs_with_gradient(fn: FunctionClass) -> list[Input]:
    """The inputs that are containers of tensors for which backward certainly returns a gradient."""
    found: list[Input] = []
    alone = all(each.against_a_gradient for each in fn.inputs)  # then backward never runs, whatever it returns
    for each in fn.inputs:
        if not holds_tensors(each):
            continue
        for returned in fn.gradients:
            slots = returned.slots
            if not returned.known or each.index >= len(slots):
                continue
            if (is_shifted(returned, len(fn.inputs)) and not alone) or _is_short(fn, returned):
                continue
            if _has_gradient_at(slots, each.index):
                found.append(each)
                break
        else:
            if _starred_from(fn, each.index):
                found.append(each)
    return found


def containers_alone(fn: FunctionClass) -> list[Input]:
    """The inputs that are containers of tensors, if no input is a tensor, and backward returns gradients beyond them.

    As an author counts who means the tensors inside: no call runs backward, so that nothing raises.
    """
    if fn.variadic_inputs is not None or not all(each.against_a_gradient for each in fn.inputs):
        return []
    beyond = range(len(fn.inputs), max((len(each.slots) for each in fn.gradients if each.known), default=0))
    given = any(_has_gradient_at(each.slots, at) for each in fn.gradients if each.known for at in beyond)
    return [each for each in fn.inputs if given and holds_tensors(each)]


def _has_gradient_at(slots: tuple[Slot, ...], index: int) -> bool:
    before = slots[: index + 1]
    return len(before) > index and not any(slot.starred for slot in before) and _certainly_something(slots[index])


def passed_as_tuple(fn: FunctionClass) -> Iterator[tuple[Input, ApplyCall]]:
    """The inputs that elsewhere may be tensors, for which a call passes a tuple of tensors, and backward a gradient."""
    for call in fn.calls:
        if not call.applies or call.expects_error or call.gradients_off:
            continue
        for each in fn.inputs[: len(call.arguments)]:
            if call.arguments[each.index] is ArgumentKind.TENSORS and not holds_tensors(each):
                if fn.gradients and all(_is_given(fn, returned, each.index) for returned in fn.gradients):
                    yield each, call


def enclosed_tensors(fn: FunctionClass) -> Iterator[tuple[Input, ApplyCall, str]]:
    """The containers for which a call passes a tensor that requires grad, and backward no gradient; with its name.

    Not if backward may update what is in them itself, or if forward does not compute with them.
    """
    wanted = [each for each in fn.calls if each.enclosed and each.applies]
    if not wanted or fn.forward is None or fn.forward.inherited or (fn.backward is not None and _updates(fn.backward)):
        return
    for call in wanted:
        for at, name in call.enclosed if not (call.expects_error or call.gradients_off) else ():
            entry = fn.inputs[at] if at < len(fn.inputs) else None
            if entry is not None and entry.gradient is not Tri.YES and _is_computed_with(fn.forward, entry.name):
                yield entry, call, name


def _updates(backward: Method) -> bool:
    """Whether backward may write gradients itself: ``p.grad = …``, ``loss.backward()``."""
    names = {each.attr.value for each in backward.nodes_of(cst.Attribute)} - {"needs_input_grad"}
    names.update(each.func.value for each in backward.nodes_of(cst.Call) if isinstance(each.func, cst.Name))
    return any("grad" in name or "backward" in name for name in names)


def _is_computed_with(forward: Method, name: str) -> bool:
    """Whether forward gives a container to a function or takes an element of it, other than to keep it or its size."""
    for use in forward.named.get(name, ()):
        around = forward.parents[use]
        if isinstance(around, (cst.For, cst.CompFor)):
            if isinstance(around.target, cst.Name) and _asks_only_sizes(forward, around.target.value):
                continue
            return True
        if isinstance(around, (cst.Subscript, cst.StarredElement)):
            return True
        call = forward.parents[around] if isinstance(around, cst.Arg) else None
        if isinstance(call, cst.Call) and not forward.is_on_ctx(call.func) and dotted(call.func) not in _ASKING:
            return True
    return False


def _asks_only_sizes(forward: Method, name: str) -> bool:
    """Whether a method reads nothing but sizes and the like of what a loop binds to a name."""
    uses = [each for each in forward.named.get(name, ()) if each not in forward.binders.get(name, ())]
    read = [each for each in uses if not isinstance(forward.parents[each], (cst.For, cst.CompFor))]
    return all(
        isinstance(around := forward.parents[each], cst.Attribute) and around.attr.value in _OF_SIZE for each in read
    )


_OF_SIZE = frozenset(("device", "dim", "dtype", "ndim", "nelement", "numel", "requires_grad", "shape", "size"))
_ASKING = ("len", "isinstance", "type", "print", "enumerate")


def _is_given(fn: FunctionClass, returned: Returned, index: int) -> bool:
    """Whether backward certainly returns something for an input."""
    slots = returned.slots[: index + 1] if returned.known else ()
    starred = any(slot.starred for slot in slots)
    return len(slots) > index and not starred and not _is_short(fn, returned) and _certainly_something(slots[index])


def _is_short(fn: FunctionClass, returned: Returned) -> bool:
    """Whether a return has fewer gradients than any call needs: those behind a missing one are for other inputs."""
    return returned.count is not None and returned.count < fn.required_inputs


def with_a_tensor(fn: FunctionClass, container: Input) -> bool:
    """Whether another input certainly is a tensor that gets a gradient, so that backward runs if it needs one."""
    return any(each.surely_differentiable and not holds_tensors(each) for each in fn.inputs if each is not container)


def returns_element(fn: FunctionClass, container: Input) -> bool:
    """Whether forward returns, on some path, an element of a container as it is, with the graph that it has."""
    values = (*fn.outputs_values(), *(each.value for each in fn.outputs))
    options = (each for value in values for each in value.options())
    elements = (each.of for each in options if isinstance(each, Item))
    return any(is_input(each) and each.index == container.index for each in elements)


def _certainly_something(slot: Slot) -> bool:
    """Whether it is not None on some path. An element that an unknown index may have written has no ``node``."""
    options = slot.value.options()
    certain = slot.node is not None or len(options) == 1
    return certain and any(is_none(option) is Tri.NO or _is_incoming(option) for option in options)


def _is_incoming(value: Value) -> bool:
    """Whether it is one of ``*grads``."""
    return isinstance(value, Item) and isinstance(value.key, int) and is_whole_tuple(value.of)


def _starred_from(fn: FunctionClass, index: int) -> bool:
    """Whether the gradients from here on are a star, intended as one for each tensor inside, not in ``*args``."""
    last = fn.inputs[-1].index == index if fn.inputs and fn.variadic_inputs is None else False
    return last and any(
        returned.known and len(returned.slots) > index and returned.slots[index].starred for returned in fn.gradients
    )
