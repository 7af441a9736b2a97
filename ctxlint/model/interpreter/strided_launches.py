"""Launches of kernels of Triton that address one tensor with the strides of another."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from ctxlint.model.index.kernel_parameters import pointers_of, strides_by_pointer
from ctxlint.model.interpreter.events import ForeignStrides, LayoutAsked
from ctxlint.model.interpreter.layouts import is_contiguous
from ctxlint.model.interpreter.names import certain_meaning
from ctxlint.model.interpreter.values import (
    Argument,
    Fresh,
    Item,
    Parameter,
    SavedTensor,
    Scalar,
    View,
    before_views,
)
from ctxlint.model.syntax import parents_below, words_of
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.model.interpreter.events import KernelParameter
    from ctxlint.model.interpreter.summary import StridesUse
    from ctxlint.model.interpreter.tensor_calls import Arguments
    from ctxlint.model.interpreter.values import Slot, Value
    from ctxlint.model.interpreter.walk import Walk


def note_foreign_strides(walk: Walk, node: cst.Call, arguments: Arguments, kernel: str, reader: str) -> None:
    """Record the tensors that a launch of a kernel lets it address with strides of others."""
    slots = (*arguments.positional, *arguments.keywords.values())
    calls = {id(slot): call for slot in slots for call in _stride_calls(slot)}
    if not calls or walk.resolver is None:
        return
    parameters = walk.resolver.kernel_parameters(kernel, arguments.positional, arguments.keywords)
    if not parameters:
        return
    known = next(iter(parameters.values()))
    by_pointer = strides_by_pointer(known.kernel, known.aliases)
    passed = {parameters[key].name: call for key, call in calls.items() if key in parameters}
    owners = _owners(walk, passed.values())
    for slot in slots:
        pointer = parameters.get(id(slot))
        factors = by_pointer.get(pointer.name, frozenset()) if pointer is not None else ()
        strides = [passed[each] for each in sorted(factors) if each in passed]
        owner = _common_owner(owners, strides)
        if owner is None or not _are_two_tensors(owner, slot.value):
            continue
        made, like = made_by(walk, slot.value)
        first = strides[0].func
        walk.record(
            ForeignStrides,
            node,
            value=slot.value,
            value_node=slot.node,
            owner=owner,
            owner_node=first.value if isinstance(first, cst.Attribute) else None,
            made=made,
            like=like,
            reader=reader,
            stride_nodes=frozenset(calls.values()),
        )


Lent: TypeAlias = "tuple[Value, Value | None]"
"""A tensor whose stride a launch passes, and the tensor whose layout it takes over, if any."""


def lent_strides(walk: Walk, arguments: Arguments) -> dict[int, Lent]:
    """The tensor of each stride that a launch passes, by the id of the argument, unless it is certainly contiguous."""
    slots = (*arguments.positional, *arguments.keywords.values())
    sources = [(slot, slot.value.node) for slot in slots if isinstance(slot.value, Scalar)]
    unpacked = any(isinstance(node, cst.Element) for _slot, node in sources) and _unpacks_strides(walk)
    unpackings = _unpacked_strides(walk.names.whole_function()) if unpacked else {}
    found_calls = ((slot, _stride_source(unpackings, node)) for slot, node in sources)
    calls = {id(slot): call for slot, call in found_calls if call is not None}
    owners = {call: any_layout(owner) for call, owner in _owners(walk, calls.values()).items()} if calls else {}
    origins = {owner: made_by(walk, owner) for owner in owners.values() if owner is not None}
    kept = ((key, owners.get(call)) for key, call in calls.items())
    found = ((key, owner, *origins[owner]) for key, owner in kept if owner is not None)
    return {key: (owner, like) for key, owner, made, like in found if not made or like is not None}


def _unpacks_strides(walk: Walk) -> bool:
    """Whether a method has asked for all strides of a tensor so far."""
    asked = (each.node for each in walk.recorder.events if isinstance(each, LayoutAsked))
    return any(isinstance(each, cst.Call) and not each.args and _is_stride(each) for each in asked)


def _stride_source(unpackings: Mapping[cst.CSTNode, cst.Call], node: object) -> cst.Call | None:
    """The call of ``stride`` that an argument comes from: also ``*x.stride()``, ``x.stride()[0]``, an unpacked name."""
    if isinstance(node, cst.Element):
        return unpackings.get(node)
    if isinstance(node, cst.Subscript):
        node = node.value
    return node if isinstance(node, cst.Call) and _is_stride(node) else None


@lru_cache(maxsize=64)
def _unpacked_strides(function: cst.FunctionDef) -> dict[cst.CSTNode, cst.Call]:
    """The elements of the targets that unpack strides: ``rows, columns = x.stride()``."""
    assigns = (each for each in parents_below(function) if isinstance(each, cst.Assign))
    unpackings = ((each.targets[0].target, each.value) for each in assigns)
    return {
        element: value
        for target, value in unpackings
        if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, cst.Call) and _is_stride(value)
        for element in target.elements
    }


def may_take_strides(slot: Slot, parameters: Mapping[int, KernelParameter], lent: Mapping[int, Lent]) -> bool:
    """Whether a kernel may address a tensor with ``lent`` strides of others, which need not have its layout.

    Not what is created with its layout, and not if all addresses of the kernel are known to be without them.
    """
    base = before_views(slot.value)
    others = [key for key, lender in lent.items() if base not in lender]
    return bool(others) and _may_take(slot, parameters, others)


def may_take_alike(slot: Slot, parameters: Mapping[int, KernelParameter], lent: Mapping[int, Lent]) -> bool:
    """Whether a kernel may address a tensor with ``lent`` strides of one that is created with its layout."""
    base = before_views(slot.value)
    alike = [key for key, (_owner, like) in lent.items() if like == base]
    return bool(alike) and _may_take(slot, parameters, alike)


def _may_take(slot: Slot, parameters: Mapping[int, KernelParameter], strides: Iterable[int]) -> bool:
    """Whether a kernel may address a tensor with one of some strides; which of ``*x.stride()`` it uses is unknown."""
    into = parameters.get(id(slot))
    factors = strides_by_pointer(into.kernel, into.aliases).get(into.name) if into is not None else None
    if factors is None:
        return True
    names = (parameters[key].name if key in parameters else "" for key in strides)
    return any(name in factors if name else bool(factors) for name in names)


def made_alike(
    walk: Walk, parameters: Mapping[int, KernelParameter], arguments: Arguments
) -> Mapping[Value, frozenset[str]]:
    """The parameters that get tensors which are created with the layout of another, ``empty_like(x)``, by that one."""
    found: dict[Value, set[str]] = {}
    for slot in (*arguments.positional, *arguments.keywords.values()):
        if id(slot) in parameters and isinstance(before_views(slot.value), Fresh):
            like = made_by(walk, slot.value)[1]
            if like is not None:
                found.setdefault(like, set()).add(parameters[id(slot)].name)
    return {like: frozenset(names) for like, names in found.items()}


def are_alike(value: Value, into: KernelParameter, made: Mapping[Value, frozenset[str]]) -> bool:
    """Whether a kernel addresses only a tensor and others that are created with its layout."""
    alike = made.get(before_views(value)) if made else None
    return alike is not None and pointers_of(into.kernel, into.aliases) - {into.name} == alike


def _common_owner(owners: Mapping[cst.CSTNode, Value], strides: Iterable[cst.Call]) -> Value | None:
    """The tensor that all of these strides are of; None if there are several."""
    found = {owners.get(call) for call in strides}
    return found.pop() if len(found) == 1 else None


def _are_two_tensors(one: Value, other: Value) -> bool:
    """Whether two values are certainly different tensors, not views of one."""
    bases = before_views(one), before_views(other)
    return bases[0] != bases[1] and all(isinstance(each, _MEMORY) for each in bases)


_MEMORY = (Argument, Fresh, Item, Parameter, SavedTensor)


def strides_passed(walk: Walk, arguments: Arguments) -> Iterable[cst.Call]:
    """The ``x.stride(n)`` that arguments of a launch are, also by a name that nothing tests."""
    for slot in (*arguments.positional, *arguments.keywords.values()):
        for call in _stride_calls(slot):
            if slot.node is call or (
                isinstance(slot.node, cst.Name) and slot.node.value not in _tested(walk.names.whole_function())
            ):
                yield call


@lru_cache(maxsize=64)
def _tested(function: cst.FunctionDef) -> frozenset[str]:
    """The names in the tests of a function."""
    tests = (
        each for each in parents_below(function) if isinstance(each, (cst.Comparison, cst.Assert, cst.If, cst.IfExp))
    )
    return frozenset(
        word for each in tests for word in words_of(each if isinstance(each, cst.Comparison) else each.test)
    )


def _stride_calls(slot: Slot) -> Iterable[cst.Call]:
    """The ``x.stride(n)`` that an argument is."""
    node = slot.value.node if isinstance(slot.value, Scalar) and not slot.starred else None
    if isinstance(node, cst.Call) and _is_stride(node):
        yield node


def _is_stride(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "stride"


def _owners(walk: Walk, calls: Iterable[cst.Call]) -> dict[cst.CSTNode, Value]:
    """The tensor of each call of ``stride``, as it was then."""
    wanted = set(calls)
    events = (each for each in walk.recorder.events if isinstance(each, LayoutAsked) and each.node in wanted)
    return {each.node: each.value for each in events}


def made_by(walk: Walk, value: Value) -> tuple[str, Value | None]:
    """The function of torch that has created a tensor, and the tensor whose layout it takes over, if any."""
    origin = before_views(value)
    call = origin.node if isinstance(origin, Fresh) else None
    if not isinstance(call, cst.Call):
        return "", None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in operations.CONTIGUOUS_FACTORY_METHODS:
        return call.func.attr.value, None
    name = (certain_meaning(walk, call.func) or "").rpartition("torch.")[2]
    if name in operations.LAYOUT_KEEPING_FACTORIES and call.args and "memory_format" not in _keywords(call):
        return name, before_views(walk.peek(call.args[0].value))
    return (name, None) if name in operations.CONTIGUOUS_FACTORIES and "out" not in _keywords(call) else ("", None)


def _keywords(call: cst.Call) -> set[str]:
    return {each.keyword.value for each in call.args if each.keyword is not None}


def any_layout(value: Value) -> Value | None:
    """The tensor that a value is a view of, if nothing in between makes it contiguous."""
    while isinstance(value, View):
        if is_contiguous(value):
            return None
        value = value.of
    return value


def record_foreign_strides(
    walk: Walk, node: cst.BaseExpression, by: str, uses: Iterable[StridesUse], arguments: Arguments
) -> None:
    """Record those of the launches in a project function."""
    slots = (*arguments.positional, *arguments.keywords.values())
    for use in uses:
        made, like = (use.made, use.like) if use.made else made_by(walk, use.value)
        walk.record(
            ForeignStrides,
            node,
            value=use.value,
            value_node=_given(use.value, slots),
            owner=use.owner,
            owner_node=_given(use.owner, slots),
            made=made,
            like=like,
            name=use.name,
            reader=use.reader,
            by=by,
            through=use.steps,
        )


def _given(value: Value, slots: tuple[Slot, ...]) -> cst.BaseExpression | None:
    """The argument that a tensor is, or is a view of."""
    base = before_views(value)
    return next((slot.node for slot in slots if before_views(slot.value) == base), None)
