"""Attribute access and subscripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.events import (
    ClassAttribute,
    ContextItemWrite,
    ContextRead,
    ContextWrite,
    Escape,
    ExtraAttribute,
    GradientFlag,
    GradientsUsedAsTensor,
    MaybeNone,
    NeedsInputGradRead,
    SavedItem,
    SavedRead,
    TupleUsedAsTensor,
)
from ctxlint.model.interpreter.layouts import changed_layout
from ctxlint.model.interpreter.name_reads import note_missing
from ctxlint.model.interpreter.sequences import (
    integer,
    is_split,
    item_at,
    sequence_item,
    slice_start,
    unknown_many,
)
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Alias,
    Constant,
    Context,
    ContextAttribute,
    Fresh,
    Imported,
    InputsTuple,
    Item,
    Kind,
    Mapping,
    NeedsInputGrad,
    Opaque,
    ProjectFunction,
    ProjectObject,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    View,
    is_container,
    is_tensor,
    is_whole_tuple,
    join_all,
    kind_of,
    tensor_when_used,
    without,
)
from ctxlint.model.syntax import literal_text, single_index
from ctxlint.torch_api import autograd, operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.interpreter.walk import Walk

_NOT_OF_PROJECTS = ("torch.", "builtins.")
"""Prefixes of names that no project binds."""

_NO_TABLES = (LOCAL, *_NOT_OF_PROJECTS)
"""Prefixes of names that are never those of a dict of functions in another file."""

SAVED_NAMES = ("saved_tensors", "saved_variables", "saved_for_forward")


def evaluate_attribute(walk: Walk, node: cst.Attribute) -> Value:
    """``base.name``."""
    base = walk.evaluate(node.value)
    name = node.attr.value
    if isinstance(base, Context):
        return context_attribute(walk, node, name)
    note_none(walk, node, base)
    if isinstance(base, Imported):
        if base.name == "numpy":  # of torch, only what is called: a backend may add a module
            note_missing(walk, node, base.name)
        return _attribute_of_import(walk, node, base.name, name)
    if is_whole_tuple(base):
        if not hasattr((), name):
            tuple_used(walk, node, base, node.value, f"`.{name}`")
        return Opaque(node)
    if name == "requires_grad":
        walk.record(GradientFlag, node, value=without(base, NONE), value_node=node.value)  # None has no flag
    if name in operations.SCALAR_ATTRIBUTES and is_container(base) is not Tri.YES:
        return Scalar(operations.SCALAR_ATTRIBUTES[name], node, kind_of(base) if name == "dtype" else Kind.UNKNOWN)
    if name in operations.VIEW_ATTRIBUTES and tensor_when_used(base):
        return View(base, node, layout=changed_layout(node))
    field = _field(walk, base, name, node)
    if field is not None:
        return field
    if name in ("values", "indices") and isinstance(base, Sequence) and len(base.slots) == 2 and base.exact:
        return base.slots[name == "indices"].value  # of a sort and the like; a plain tuple has no such attribute
    if isinstance(base, SavedTensor) and not walk.protected:
        walk.record(ExtraAttribute, node, value=base, value_node=node.value, attribute=name)
    return Item(base, f".{name}") if not isinstance(base, Opaque) else Opaque(node)


def _attribute_of_import(walk: Walk, node: cst.Attribute, owner: str, name: str) -> Value:
    """``owner.name`` of a module or class: the constant that another file binds to it, or what the name refers to."""
    meant = f"{owner}.{name}"
    if not owner.startswith(_NOT_OF_PROJECTS):
        walk.record(ClassAttribute, node, owner=owner.removeprefix(LOCAL), attribute=name)
    if owner.startswith(_NO_TABLES) or walk.resolver is None:
        return Imported(meant)
    return walk.resolver.imported_constant(meant) or Imported(meant)


def _field(walk: Walk, base: Value, name: str, node: cst.BaseExpression) -> Value | None:
    """The field of a named tuple, or the attribute of an object; None for anything else."""
    if isinstance(base, Sequence) and name in base.names:
        return base.slots[base.names.index(name)].value
    if isinstance(base, ProjectObject):
        if name in dict(base.attributes):
            return dict(base.attributes)[name].value
        instance = walk.resolver.attribute(base, name) if walk.resolver is not None else None
        if instance is not None:
            return instance
        got = walk.resolver.property(base, name, node) if walk.resolver is not None else None
        if got is not None:
            return got
        return Item(base.origin, f".{name}") if isinstance(base.origin, Value) else Opaque(node)
    return None


def note_none(walk: Walk, node: cst.Attribute, base: Value) -> None:
    """Record an attribute access on a value that may be None."""
    name = node.attr.value
    if isinstance(node.value, cst.Name) and NONE in base.options() and not hasattr(None, name) and not walk.protected:
        walk.record(MaybeNone, node, name=node.value.value, how=f".{name}", value=base)


def note_none_operand(walk: Walk, node: cst.CSTNode, operand: cst.BaseExpression, value: Value, operator: str) -> None:
    """Record a name that may be None as an operand next to a tensor."""
    if isinstance(operand, cst.Name) and NONE in value.options() and not walk.protected:
        walk.record(MaybeNone, node, name=operand.value, how=operator, value=value)


def context_attribute(walk: Walk, node: cst.CSTNode, name: str, called: bool = False, guarded: bool = False) -> Value:
    """``ctx.name`` read."""
    if name in SAVED_NAMES:
        walk.record(SavedRead, node, via=name, called=called)
        return SavedTensors(name)
    if name == "needs_input_grad":
        walk.record(NeedsInputGradRead, node, whole=True)
        return NeedsInputGrad()
    if name == "__dict__" or (name in autograd.CONTEXT_METHODS and not called):
        walk.record(Escape, node, how="stored")
        return Opaque(node)
    own = name in walk.state.attributes
    walk.record(ContextRead, node, attribute=name, called=called, guarded=guarded or walk.protected > 0, own=own)
    return walk.state.attributes[name] if own else ContextAttribute(name)


def set_context_attribute(
    walk: Walk,
    node: cst.CSTNode,
    name: str,
    value: Value,
    value_node: cst.BaseExpression | None = None,
    simple: bool = False,
) -> None:
    """``ctx.name = value``, at ``node``."""
    walk.state.attributes[name] = value
    walk.record(
        ContextWrite,
        node,
        attribute=name,
        value=value,
        value_node=value_node,
        statement=walk.statement,
        simple=simple,
    )
    if isinstance(value, Context):
        walk.record(Escape, node, how="stored")


def change_contents(walk: Walk, node: cst.CSTNode, holder: Value, after: Callable[[Value], Value]) -> None:
    """A list, set or dict, or one of several, is modified at ``node``; record it for the attributes of ctx it is in."""
    attributes = walk.state.attributes
    before = dict(attributes)
    walk.state.change(holder, after)
    for name, value in attributes.items():
        if value is not before[name]:
            walk.record(ContextItemWrite, node, attribute=name, value=value, statement=walk.statement)


def delete_context_attribute(walk: Walk, node: cst.CSTNode, name: str) -> None:
    """``del ctx.name``, at ``node``."""
    walk.state.attributes.pop(name, None)
    walk.record(ContextWrite, node, attribute=name, statement=walk.statement, deletes=True)


def attribute_by_name(walk: Walk, node: cst.Call, base: Value, name: str) -> Value:
    """``getattr(base, "name")``, unless ``base`` is the ctx."""
    if isinstance(base, Imported):
        return Imported(f"{base.name}.{name}")
    if name in operations.SCALAR_ATTRIBUTES and is_container(base) is not Tri.YES:
        return Scalar(operations.SCALAR_ATTRIBUTES[name], node, kind_of(base) if name == "dtype" else Kind.UNKNOWN)
    if name == "data" and tensor_when_used(base):
        return View(base, node)
    return _field(walk, base, name, node) or Opaque(node)


def tuple_used(
    walk: Walk, node: cst.CSTNode, whole: Value, holder: cst.BaseExpression, how: str, *, may_repeat: bool = False
) -> None:
    """Record that the whole tuple of saved tensors, or of gradients, is used as if it were one tensor."""
    name = holder.value if isinstance(holder, cst.Name) else ""
    if isinstance(whole, Variadic):
        walk.record(GradientsUsedAsTensor, node, name=name, how=how, may_repeat=may_repeat)
    elif not may_repeat:
        sliced = isinstance(whole, SavedTensors) and whole.sliced
        walk.record(TupleUsedAsTensor, node, name=name, how=how, sliced=sliced)


# Subscripts


def evaluate_subscript(walk: Walk, node: cst.Subscript) -> Value:
    """``base[...]``."""
    base = node.value
    index = single_index(node)
    number = integer(walk.evaluate(index)) if index is not None else None
    if isinstance(base, cst.Attribute) and base.attr.value == "needs_input_grad":
        ctx = walk.peek(base.value)
        if isinstance(ctx, Context):
            walk.evaluate(base.value)
            if number is not None and ctx.flags is not None and -ctx.flags <= number < 0:
                number += ctx.flags
            return _needs_input_grad_item(walk, node, NeedsInputGrad(), index, number)
    value = walk.evaluate(base)
    if isinstance(value, Imported) and walk.resolver is not None and not value.name.startswith(_NO_TABLES):
        value = walk.resolver.table(value.name) or value
    if index is None:
        evaluate_indices(walk, node)
    if isinstance(value, NeedsInputGrad) and value.index is None:
        return _needs_input_grad_item(walk, node, value, index, number)
    return _item_of(walk, without(value, NONE), node, index, number)  # None has no items


def _needs_input_grad_item(
    walk: Walk, node: cst.Subscript, flags: NeedsInputGrad, index: cst.BaseExpression | None, number: int | None
) -> Value:
    """``ctx.needs_input_grad[...]``, or an item of a slice of it."""
    if flags.sliced and number is not None:
        number = flags.start + number if number >= 0 else None
    walk.record(NeedsInputGradRead, node, index=number, whole=index is None)
    if index is not None:
        return Scalar("bool", node) if number is None or number < 0 else NeedsInputGrad(number)
    start = slice_start(node)
    return Scalar("object", node) if start is None else NeedsInputGrad(None, flags.start + start, sliced=True)


def _saved_item(walk: Walk, node: cst.Subscript, saved: SavedTensors, index: bool, number: int | None) -> Value:
    """``ctx.saved_tensors[...]``, or an item of a slice of it."""
    if number is not None and not saved.sliced:
        walk.record(SavedItem, node, index=number, via=saved.via)
    if index:
        return Opaque(node) if number is None or number < 0 else SavedTensor(saved.start + number)
    start = slice_start(node)
    return Opaque(node) if start is None else SavedTensors(saved.via, saved.start + start, sliced=True)


def evaluate_indices(walk: Walk, node: cst.Subscript) -> None:
    """Evaluate a subscript other than one plain index."""
    for element in node.slice:
        part = element.slice
        if isinstance(part, cst.Index):
            walk.evaluate(part.value)
        elif isinstance(part, cst.Slice):
            for bound in (part.lower, part.upper, part.step):
                if bound is not None:
                    walk.evaluate(bound)


def _item_of(
    walk: Walk, value: Value, node: cst.Subscript, index: cst.BaseExpression | None, number: int | None
) -> Value:
    """``value[...]``."""
    if isinstance(value, (Sequence, Mapping)):
        return sequence_item(value, node, number) if isinstance(value, Sequence) else _item_of_key(value, index, node)
    if isinstance(value, SavedTensors):
        return _saved_item(walk, node, value, index is not None, number)
    if isinstance(value, InputsTuple):
        lowest = -len(value.inputs) if value.exact else 0
        known = number is not None and lowest <= number < len(value.inputs)
        return value.inputs[number] if known and number is not None else Opaque(node)
    if isinstance(value, Scalar) and value.sort == "shape":
        return Scalar("int", node) if index is not None else Scalar("shape", node)
    one_of_all = isinstance(value, Variadic) and value.role == "gradient" and index is not None
    if one_of_all or (isinstance(value, (Variadic, Opaque, Item, ContextAttribute)) and number is not None):
        return Item(value, node if number is None else number)
    if isinstance(value, (Variadic, TensorTuple)) and isinstance(node.slice[0].slice, cst.Slice):
        return _slice_of(value, node)
    if tensor_when_used(value):
        if _basic_index(walk, node):
            return View(value, node, layout=changed_layout(node))
        picked = walk.peek(index) if index is not None else UNKNOWN
        if isinstance(picked, Scalar) and picked.sort == "int":
            return View(value, node, layout=changed_layout(node))
        if is_tensor(picked) is Tri.YES or isinstance(picked, Sequence):
            return Fresh(node, kind_of(value))
        return View(value, node, Alias.POSSIBLY)
    if isinstance(value, Imported) or (is_container(value) is Tri.YES and not is_split(value)):
        return Opaque(node)
    return item_at(value, number if number is not None else node, node)


def _slice_of(value: Variadic | TensorTuple, node: cst.Subscript) -> Value:
    """``args[1:]``: a tuple of unknown length, of which it is known where its elements come from."""
    if isinstance(value, Variadic) and value.role == "input":
        return Sequence("tuple", (Slot(Item(value, node), starred=True),), node)
    return value if is_split(value) else unknown_many("tuple", node)


def _item_of_key(value: Mapping, index: cst.BaseExpression | None, node: cst.Subscript) -> Value:
    """``value["name"]`` of a dict with known keys; with an unknown key, one of the functions in it."""
    if not isinstance(index, cst.SimpleString) and all(map(_is_function, value.slots)):
        return join_all(slot.value for slot in value.slots) if value.keys else Opaque(node)
    key = literal_text(index)
    return value.slots[value.keys.index(key)].value if isinstance(key, str) and key in value.keys else Opaque(node)


def _is_function(slot: Slot) -> bool:
    return isinstance(slot.value, (Imported, ProjectFunction))


def _is_int(value: Value) -> bool:
    """Whether it is certainly an int, and no bool, which selects a copy."""
    return (isinstance(value, Scalar) and value.sort == "int") or (
        isinstance(value, Constant) and type(value.value) is int
    )


def _basic_index(walk: Walk, node: cst.Subscript) -> bool:
    """Whether a subscript consists of slices, integers, None and ``...`` only, so that the result is a view."""
    for element in node.slice:
        part = element.slice
        if isinstance(part, cst.Slice):
            continue
        value = part.value if isinstance(part, cst.Index) else None
        if isinstance(value, cst.UnaryOperation):
            value = value.expression
        if isinstance(value, (cst.Integer, cst.Ellipsis)):
            continue
        if isinstance(value, cst.Name) and (value.value == "None" or _is_int(walk.peek(value))):
            continue
        return False
    return True
