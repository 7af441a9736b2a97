"""Tuples and lists: the results of building, joining, indexing and unpacking them. No state, no events."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Choice,
    Constant,
    InputsTuple,
    Item,
    Mapping,
    NeedsInputGrad,
    Opaque,
    ProjectObject,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    SomeTensor,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    View,
    before_star,
    before_views,
    constant,
    is_none,
    is_tensor,
    join,
    join_all,
    kind_of,
    without,
)
from ctxlint.model.syntax import signed_integer

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf
    from collections.abc import Sequence as SequenceOf

_NOWHERE = cst.Module([])
"""The node of a value from outside the method."""


def is_split(value: Value) -> bool:
    """Whether it is a tuple of views of one tensor: ``x.split(n)``."""
    return isinstance(value, TensorTuple) and value.of is not None


def item_at(value: Value, key: object, node: cst.CSTNode) -> Value:
    """An element of a value of which nothing else is known; ``node`` takes it."""
    if isinstance(value, TensorTuple) and value.of is not None:
        return View(value.of, node)
    return Item(value, key)


def part_of(value: Value, at: int) -> Value:
    """The element number ``at`` of what a star spreads, if it has so many."""
    return SavedTensor(value.start + at) if isinstance(value, SavedTensors) else Item(value, at)


def spread(value: Value, node: cst.BaseExpression | None) -> tuple[Slot, ...]:
    """The slots of ``*value``: its elements if they are known, otherwise one starred slot."""
    if isinstance(value, InputsTuple) and value.exact:
        return tuple(Slot(each, node) for each in value.inputs)
    if isinstance(value, Sequence) and value.kind != "set":
        return tuple([slot if slot.node else Slot(slot.value, node, slot.starred) for slot in value.slots])
    return _alike(value, node) or (Slot(value, node, starred=True),)


def _alike(value: Value, node: cst.BaseExpression | None) -> tuple[Slot, ...]:
    """The slots of one of several tuples or lists of the same length: ``a.stride() if ... else (0, 0)``."""
    options = [option for option in value.options() if isinstance(option, Sequence) and option.exact]
    if len(options) < len(value.options()) or len({len(option.slots) for option in options}) != 1:
        return ()
    return tuple(
        Slot(join_all(slot.value for slot in slots), node) for slots in zip(*(option.slots for option in options))
    )


def iterated_item(value: Value, node: cst.CSTNode) -> Value:
    """The value of a loop variable."""
    if isinstance(value, Sequence):
        if value.slots and value.exact:
            return join_all(slot.value for slot in value.slots)
        if len(value.slots) == 1:  # elements alike, or a copy of an iterable: list(args)
            only = value.slots[0].value
            return only if isinstance(only, (SomeTensor, View)) else iterated_item(only, node)
    if isinstance(value, Scalar) and value.sort in ("shape", "range"):
        return Scalar("int", node)
    return Opaque(node) if isinstance(value, Scalar) else item_at(value, node, node)


def as_sequence(value: Value, kind: str, node: cst.CSTNode) -> Value:
    """``tuple(value)`` or ``list(value)``."""
    if isinstance(value, Sequence):
        return Sequence(kind, value.slots, node)
    if isinstance(value, Choice):
        return join_all(as_sequence(option, kind, node) for option in value.alternatives)
    return Sequence(kind, (Slot(value, starred=True),), node)


def sequence_item(value: Sequence, node: cst.Subscript, number: int | None) -> Value:
    """``value[number]``, or ``value[a:b]`` if ``number`` is None."""
    if number is not None:
        if value.exact and -len(value.slots) <= number < len(value.slots):
            return value.slots[number].value
        if len(value.slots) == 1 and value.slots[0].starred and number >= 0:
            if isinstance(value.slots[0].value, SomeTensor):
                return value.slots[0].value
            return item_at(value.slots[0].value, number, node)  # a copy of an iterable: list(args)
        known = before_star(value.slots)
        return known[number].value if 0 <= number < len(known) else Opaque(node)
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Slice):
        only = value.slots[0].value if len(value.slots) == 1 and value.slots[0].starred else None
        return Item(only, node) if isinstance(only, Variadic) and only.role == "gradient" else Opaque(node)
    part = literal_slice(node.slice[0].slice)
    if value.exact and part is not None:
        return Sequence(value.kind, value.slots[part], node)
    return unknown_many(value.kind, node)


def literal_slice(node: cst.Slice) -> slice | None:
    """A slice whose bounds are literal numbers or omitted, without a step; None for any other."""
    lower, upper = signed_integer(node.lower), signed_integer(node.upper)
    open_ended = (node.lower is None, node.upper is None)
    if node.step is not None or (lower is None, upper is None) != open_ended:
        return None
    return slice(lower, upper)


def slice_start(node: cst.Subscript) -> int | None:
    """The position at which ``value[a:b]`` begins; None if it is counted from the end, or unknown."""
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Slice):
        return None
    part = literal_slice(node.slice[0].slice)
    start = part.start or 0 if part is not None else -1
    return start if start >= 0 else None


def element_of(value: Value, at: int, count: int, star: int | None, node: cst.CSTNode) -> Value:
    """The value that target number ``at`` of ``count`` gets when ``value`` is unpacked; ``star`` is the starred one.

    It is not None then: None cannot be unpacked.
    """
    if isinstance(value, Choice):
        return join_all(element_of(option, at, count, star, node) for option in without(value, NONE).options())
    if star is not None and at > star:
        if isinstance(value, Sequence) and value.exact and len(value.slots) >= count - 1:
            return value.slots[at - count].value
        return item_at(value, at - count, node)
    if isinstance(value, Sequence):
        if any(slot.starred for slot in value.slots[: at + 1]):
            return Opaque(node)
        return value.slots[at].value if at < len(value.slots) else Opaque(node)
    if isinstance(value, SavedTensors):
        return SavedTensor(value.start + at)
    if isinstance(value, NeedsInputGrad) and value.index is None:
        return NeedsInputGrad(value.start + at)
    if isinstance(value, Scalar) and value.sort == "shape":
        return Scalar("int", node)
    if isinstance(value, InputsTuple) and at < len(value.inputs):
        return value.inputs[at]
    return item_at(value, at, node)


def rest_of(value: Value, star: int, count: int, node: cst.CSTNode) -> Sequence:
    """The list that the starred target gets, number ``star`` of ``count`` targets."""
    if isinstance(value, Sequence) and value.exact and len(value.slots) >= count - 1:
        return Sequence("list", value.slots[star : len(value.slots) - (count - 1 - star)], node)
    if isinstance(value, SavedTensors) and star == count - 1:
        return Sequence("list", (Slot(SavedTensors(value.via, value.start + star, sliced=True), starred=True),), node)
    if isinstance(value, Variadic) and value.role == "input":
        return Sequence("list", (Slot(Item(value, node), starred=True),), node)
    return unknown_many("list", node)


def many_like(elements: SequenceOf[Value]) -> Value:
    """Any number of elements, each like this one: views of the elements of ``*args``, tensors, or unknown."""
    (element, *more) = elements or [UNKNOWN]
    if more:
        return UNKNOWN
    origin = before_views(element)
    of_inputs = isinstance(origin, Item) and isinstance(origin.of, Variadic) and origin.of.role == "input"
    if isinstance(element, View) and of_inputs:
        return element
    return SomeTensor(kind_of(element)) if is_tensor(element) is Tri.YES else UNKNOWN


def unknown_many(kind: str, node: cst.CSTNode | None) -> Sequence:
    """A tuple or list of unknown length and elements."""
    return Sequence(kind, (Slot(UNKNOWN, starred=True),), node)


# ---------------------------------------------------------------------------------------------------------------------
# Lists that change


def with_item(holder: Sequence, at: int | None, value: Value, node: cst.BaseExpression | None = None) -> Sequence:
    """A list after ``list[at] = value``, the code ``node``; if the index is unknown, any element may have changed."""
    if at is not None and holder.exact and -len(holder.slots) <= at < len(holder.slots):
        slots = list(holder.slots)
        slots[at] = Slot(value, node)
        return Sequence(holder.kind, tuple(slots), holder.node)
    slots = [Slot(join(slot.value, value), starred=slot.starred) for slot in holder.slots]
    return Sequence(holder.kind, tuple(slots), holder.node)


def named_items(value: Value) -> dict[str, Slot] | None:
    """The values of a dict by their keys, if these are all known."""
    if not isinstance(value, Mapping) or len(value.keys) != len(value.slots):
        return None
    if any(slot.starred for slot in value.slots):
        return None
    return dict(zip(value.keys, value.slots))


def with_key(holder: Mapping, key: str, value: Value, node: cst.BaseExpression | None = None) -> Mapping:
    """A dict with known keys after ``holder[key] = value``."""
    slots = {**dict(zip(holder.keys, holder.slots)), key: Slot(value, node)}
    return Mapping(tuple(slots.values()), holder.node, tuple(slots))


def after_method(holder: Sequence, name: str, arguments: tuple[Slot, ...], node: cst.CSTNode) -> tuple[Sequence, Value]:
    """The contents of a list after ``list.name(arguments)``, and the result of the call."""
    only = arguments[0] if len(arguments) == 1 and not arguments[0].starred else None
    if name == "append" and only is not None:
        return _changed(holder, (*holder.slots, only)), NONE
    if name == "extend" and only is not None:
        return _changed(holder, (*holder.slots, *spread(only.value, only.node))), NONE
    if name == "insert" and len(arguments) == 2 and holder.exact:
        at = integer(arguments[0].value)
        if at is not None:
            return _changed(holder, (*holder.slots[:at], arguments[1], *holder.slots[at:])), NONE
    if name == "pop" and not arguments and holder.exact and holder.slots:
        return _changed(holder, holder.slots[:-1]), holder.slots[-1].value
    if name == "reverse":
        return _changed(holder, tuple(reversed(holder.slots))), NONE
    if name == "clear":
        return _changed(holder, ()), NONE
    if name == "copy":
        return holder, _changed(holder, holder.slots)
    if name in ("count", "index"):
        return holder, Scalar("int", node)
    return unknown_many("list", holder.node), NONE if name in ("remove", "sort") else Opaque(node)


def after_dict_method(
    holder: Mapping, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], node: cst.CSTNode
) -> tuple[Value, Value] | None:
    """The contents of a dict after ``dict.name(...)``, and the result of the call; None if they are unknown."""
    items = named_items(holder)
    if items is None or any(slot.starred for slot in arguments):
        return None
    if name in ("items", "keys", "values") and not arguments:
        return holder, Sequence(DICT_VIEW, tuple(map(Slot, _viewed(items, name, node))), node)
    if name == "copy" and not arguments:
        return holder, Mapping(holder.slots, node, holder.keys)
    if name == "update" and len(arguments) < 2:
        given = named_items(arguments[0].value) if arguments else {}
        if given is None:
            return None
        items = {**items, **given, **keywords}
        return Mapping(tuple(items.values()), holder.node, tuple(items)), NONE
    key = arguments[0].value if arguments else None
    if name not in ("get", "pop") or not isinstance(key, Constant) or not isinstance(key.value, str):
        return None
    if key.value not in items:
        return (holder, arguments[1].value if len(arguments) > 1 else NONE) if name == "get" else None
    if name == "get":
        return holder, items[key.value].value
    left = {each: slot for each, slot in items.items() if each != key.value}
    return Mapping(tuple(left.values()), holder.node, tuple(left)), items[key.value].value


def _viewed(items: MappingOf[str, Slot], name: str, node: cst.CSTNode) -> list[Value]:
    """The elements of ``dict.items()``, ``dict.keys()`` or ``dict.values()``."""
    if name == "values":
        return [slot.value for slot in items.values()]
    keys = [constant(key) for key in items]
    if name == "keys":
        return list(keys)
    return [Sequence("tuple", (Slot(key), slot), node) for key, slot in zip(keys, items.values())]


DICT_VIEW = "dict view"
"""The kind of the results of ``items``, ``keys`` and ``values``, apart from later changes of their dict."""


def _changed(holder: Sequence, slots: tuple[Slot, ...]) -> Sequence:
    return Sequence(holder.kind, slots, holder.node)


def is_mutable(value: Value) -> bool:
    """Whether it is a list, a set, a dict or an object, which can be modified through an alias."""
    return isinstance(value, (Mapping, ProjectObject)) or (
        isinstance(value, Sequence) and value.kind in ("list", "set")
    )


def mutable_parts(value: Value) -> list[Value]:
    """The lists, sets and dicts that a value is or contains, at any depth, inner ones first."""
    found: list[Value] = []
    if isinstance(value, Choice):
        for option in value.alternatives:
            found += mutable_parts(option)
    elif isinstance(value, (Sequence, Mapping)):
        spend(1 + (len(value.slots) >> 1))
        for slot in value.slots:
            found += mutable_parts(slot.value)
        if is_mutable(value):
            found.append(value)
    elif isinstance(value, ProjectObject) and value.attributes:
        found.append(value)
    return found


def unknown_content(value: Value) -> Value:
    """A list, set, dict or object with unknown contents."""
    if isinstance(value, Sequence):
        return unknown_many(value.kind, value.node)
    if isinstance(value, ProjectObject):
        return ProjectObject(value.definition, (), value.origin)
    return Mapping((Slot(UNKNOWN, starred=True),))


def substitute(value: Value, replacements: MappingOf[int, Value]) -> Value:
    """``value`` with other objects in place of some that it is or holds, identified by their ``id``."""
    if id(value) in replacements:
        return replacements[id(value)]
    if isinstance(value, Choice):
        options = [substitute(option, replacements) for option in value.alternatives]
        changed = any(new is not old for new, old in zip(options, value.alternatives))
        return join_all(options) if changed else value
    if isinstance(value, (Sequence, Mapping)):
        spend(1 + (len(value.slots) >> 1))
        slots = tuple(
            slot if new is slot.value else Slot(new, slot.node, slot.starred)
            for slot in value.slots
            for new in (substitute(slot.value, replacements),)
        )
        if all(new is old for new, old in zip(slots, value.slots)):
            return value
        if isinstance(value, Mapping):
            return Mapping(slots, value.node, value.keys)
        return Sequence(value.kind, slots, value.node, value.names)
    return value


# ---------------------------------------------------------------------------------------------------------------------
# Operators


_SEQUENCE_LIKE = (Sequence, TensorTuple, Variadic, SavedTensors, InputsTuple)


def concatenation(left: Value, right: Value, node: cst.CSTNode) -> Value | None:
    """``left + right`` if one of them is certainly a tuple or list."""
    if isinstance(left, Choice) or isinstance(right, Choice):
        merged: Value | None = None
        for first in left.options():
            for second in right.options():
                both = concatenation(first, second, node)
                if both is None:
                    return None
                merged = both if merged is None else join(merged, both)
        return merged
    if not isinstance(left, _SEQUENCE_LIKE) and not isinstance(right, _SEQUENCE_LIKE):
        return None
    if Tri.YES in (is_tensor(left), is_tensor(right)):
        return None
    known = left if isinstance(left, Sequence) else right
    kind = known.kind if isinstance(known, Sequence) else "tuple"
    written = (node.left, node.right) if isinstance(node, cst.BinaryOperation) else (None, None)
    return Sequence(kind, (*_part(left, written[0]), *_part(right, written[1])), node)


def _part(value: Value, node: cst.BaseExpression | None) -> tuple[Slot, ...]:
    return value.slots if isinstance(value, Sequence) else (Slot(value, node, starred=True),)


_MAX_SLOTS = 1_000
"""Longer tuples and lists are not tracked."""


def repetition(sequence: Value, times: Value, node: cst.CSTNode) -> Value | None:
    """``(None,) * 3``."""
    if isinstance(sequence, Choice) and all(isinstance(option, Sequence) for option in sequence.alternatives):
        repeated = [repetition(option, times, node) for option in sequence.alternatives]
        return join_all(each for each in repeated if each is not None)
    if not isinstance(sequence, Sequence):
        return None
    if isinstance(times, Choice):
        return join_all(repetition(sequence, option, node) or UNKNOWN for option in times.alternatives)
    count = integer(times)
    if count is None and len(sequence.slots) == 1:
        only = sequence.slots[0].value
        if Tri.YES in (is_tensor(only), is_none(only)):
            return Sequence(sequence.kind, (Slot(only, starred=True),), node)
    if count is None or count * len(sequence.slots) > _MAX_SLOTS:
        return unknown_many(sequence.kind, node)
    return Sequence(sequence.kind, sequence.slots * max(count, 0), node)


def integer(value: Value) -> int | None:
    """The known integer that a value is."""
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    return None


_MAX_BITS = 1_000
"""Larger numbers are not multiplied: repeated squaring would take forever."""


def fold(left: Value, right: Value, operator: cst.CSTNode) -> Value | None:
    """The sum, difference or product of two known integers."""
    first, second = integer(left), integer(right)
    if first is None or second is None or max(first.bit_length(), second.bit_length()) > _MAX_BITS:
        return None
    if isinstance(operator, (cst.Add, cst.AddAssign)):
        return constant(first + second)
    if isinstance(operator, (cst.Subtract, cst.SubtractAssign)):
        return constant(first - second)
    if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
        return constant(first * second)
    return None


def literal(node: ast.expr) -> Value | None:
    """The value of a module constant: numbers, strings, None, and tuples of them, repeated or added.

    A list of a module can be modified from anywhere.
    """
    if isinstance(node, ast.Constant):
        return constant(node.value)
    if isinstance(node, ast.Tuple):
        elements = [literal(each) for each in node.elts]
        known = [each for each in elements if each is not None]
        return Sequence("tuple", tuple(map(Slot, known))) if len(known) == len(elements) else None
    if isinstance(node, ast.BinOp):
        left, right = literal(node.left), literal(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            repeated = repetition(left, right, _NOWHERE) or repetition(right, left, _NOWHERE)
            return repeated or fold(left, right, cst.Multiply())
        if isinstance(node.op, ast.Add):
            return concatenation(left, right, _NOWHERE) or fold(left, right, cst.Add())
    return None
