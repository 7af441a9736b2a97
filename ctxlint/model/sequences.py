"""Tuples and lists: what building, joining, indexing and unpacking them gives. No state, no events."""

from __future__ import annotations

import libcst as cst

from ctxlint.model.values import (
    UNKNOWN,
    Choice,
    Constant,
    InputsTuple,
    Item,
    NeedsInputGrad,
    Opaque,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    constant,
    is_tensor,
    join,
)

_NOWHERE = cst.Module([])
"""The node of a value that is written outside the method."""


def spread(value: Value, node: cst.BaseExpression | None) -> tuple[Slot, ...]:
    """The slots of ``*value``: its elements where they are known, else one starred slot."""
    if isinstance(value, InputsTuple) and value.exact:
        return tuple(Slot(each, node) for each in value.inputs)
    if isinstance(value, Sequence) and value.kind != "set":
        return tuple(Slot(slot.value, slot.node or node, slot.starred) for slot in value.slots)
    return (Slot(value, node, starred=True),)


def iterated_item(value: Value, node: cst.CSTNode) -> Value:
    """What a loop variable holds."""
    if isinstance(value, Sequence):
        values = [slot.value for slot in value.slots if not slot.starred]
        if values and value.exact:
            result = values[0]
            for other in values[1:]:
                result = join(result, other)
            return result
    if isinstance(value, Scalar) and value.sort in ("shape", "object"):
        return Scalar("int", node) if value.sort == "shape" else Opaque(node)
    return Item(value, node)


def as_sequence(value: Value, kind: str, node: cst.CSTNode) -> Value:
    """``tuple(value)`` or ``list(value)``."""
    if isinstance(value, Sequence):
        return Sequence(kind, value.slots, node)
    if isinstance(value, Choice):
        converted = [as_sequence(option, kind, node) for option in value.alternatives]
        result = converted[0]
        for other in converted[1:]:
            result = join(result, other)
        return result
    return Sequence(kind, (Slot(value, starred=True),), node)


def sequence_item(value: Sequence, node: cst.Subscript, number: int | None) -> Value:
    if number is not None:
        before_star = [slot for slot in value.slots]
        if value.exact and -len(before_star) <= number < len(before_star):
            return before_star[number].value
        for position, slot in enumerate(value.slots):
            if slot.starred:
                break
            if position == number:
                return slot.value
        return Opaque(node)
    part = node.slice[0].slice if len(node.slice) == 1 else None
    if isinstance(part, cst.Slice) and value.exact and part.step is None:
        lower, upper = _bound(part.lower), _bound(part.upper)
        if lower is not False and upper is not False:
            return Sequence(value.kind, value.slots[lower:upper], node)
    if isinstance(part, cst.Slice):
        return Sequence(value.kind, (Slot(UNKNOWN, starred=True),), node)
    return Opaque(node)


def _bound(node: cst.BaseExpression | None) -> int | None | bool:
    """A slice bound: its number, None where it is left out, False where it is no literal."""
    if node is None:
        return None
    sign = 1
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node, sign = node.expression, -1
    return sign * node.evaluated_value if isinstance(node, cst.Integer) else False


def element_of(value: Value, at: int, count: int, star: int | None, node: cst.CSTNode) -> Value:
    """The value that target number ``at`` of ``count`` gets when ``value`` is unpacked; ``star`` is the starred one."""
    if isinstance(value, Choice):
        parts = [element_of(option, at, count, star, node) for option in value.alternatives]
        result = parts[0]
        for part in parts[1:]:
            result = join(result, part)
        return result
    if star is not None and at > star:
        if isinstance(value, Sequence) and value.exact and len(value.slots) >= count - 1:
            return value.slots[at - count].value
        return Item(value, at - count)
    if isinstance(value, Sequence):
        if any(slot.starred for slot in value.slots[: at + 1]):
            return Opaque(node)
        return value.slots[at].value if at < len(value.slots) else Opaque(node)
    if isinstance(value, SavedTensors):
        return SavedTensor(at)
    if isinstance(value, NeedsInputGrad) and value.index is None:
        return NeedsInputGrad(at)
    if isinstance(value, Scalar) and value.sort == "shape":
        return Scalar("int", node)
    if isinstance(value, InputsTuple) and at < len(value.inputs):
        return value.inputs[at]
    return Item(value, at)


def replaced(holder: Sequence, at: int | None, value: Value) -> Sequence:
    """A list after ``list[at] = value``; with an unknown index any element may have changed."""
    if at is not None and holder.exact and -len(holder.slots) <= at < len(holder.slots):
        slots = list(holder.slots)
        slots[at] = Slot(value)
        return Sequence(holder.kind, tuple(slots), holder.node)
    slots = [Slot(join(slot.value, value), starred=slot.starred) for slot in holder.slots]
    return Sequence(holder.kind, tuple(slots), holder.node)


def unknown_many(kind: str, node: cst.CSTNode) -> Sequence:
    return Sequence(kind, (Slot(UNKNOWN, starred=True),), node)


_SEQUENCE_LIKE = (Sequence, TensorTuple, Variadic, SavedTensors, InputsTuple)


def concatenation(left: Value, right: Value, node: cst.CSTNode) -> Value | None:
    """``left + right`` where one of them is certainly a tuple or list."""
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
    return Sequence(kind, (*_part(left), *_part(right)), node)


def _part(value: Value) -> tuple[Slot, ...]:
    return value.slots if isinstance(value, Sequence) else (Slot(value, starred=True),)


def repetition(sequence: Value, times: Value, node: cst.CSTNode) -> Value | None:
    """``(None,) * 3``."""
    if not isinstance(sequence, Sequence):
        return None
    count = integer(times)
    if count is None or count * len(sequence.slots) > 10_000:
        return Sequence(sequence.kind, (Slot(UNKNOWN, starred=True),), node)
    return Sequence(sequence.kind, sequence.slots * max(count, 0), node)


def integer(value: Value) -> int | None:
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    return None


def fold(left: Value, right: Value, operator: cst.CSTNode) -> Value | None:
    first, second = integer(left), integer(right)
    if first is None or second is None:
        return None
    if isinstance(operator, cst.Add):
        return constant(first + second)
    if isinstance(operator, cst.Subtract):
        return constant(first - second)
    if isinstance(operator, cst.Multiply):
        return constant(first * second)
    return None


def literal(node: object) -> Value | None:
    """The value of a module constant: numbers, strings, None, and tuples and lists of them, repeated or added."""
    kind = type(node).__name__
    if kind == "Constant":
        return constant(node.value)  # type: ignore[attr-defined]
    if kind in ("Tuple", "List"):
        slots = [literal(each) for each in node.elts]  # type: ignore[attr-defined]
        if any(slot is None for slot in slots):
            return None
        return Sequence(kind.lower(), tuple(Slot(slot) for slot in slots if slot is not None))
    if kind == "BinOp":
        left, right = literal(node.left), literal(node.right)  # type: ignore[attr-defined]
        operator = type(node.op).__name__  # type: ignore[attr-defined]
        if left is None or right is None:
            return None
        if operator == "Mult":
            repeated = repetition(left, right, _NOWHERE) or repetition(right, left, _NOWHERE)
            return repeated or fold(left, right, cst.Multiply())
        if operator == "Add":
            return concatenation(left, right, _NOWHERE) or fold(left, right, cst.Add())
    return None
