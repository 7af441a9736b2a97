"""What a loop or a comprehension takes from the iterable that it runs over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.names import canonical
from ctxlint.model.interpreter.sequences import iterated_item, named_items
from ctxlint.model.interpreter.values import Mapping, Scalar, Sequence, Slot, constant

if TYPE_CHECKING:
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.interpreter.walk import Walk


def item_of(walk: Walk, iterable: cst.BaseExpression, value: Value) -> Value:
    """The value of a loop variable; ``value`` is that of the iterable."""
    if not isinstance(iterable, cst.Call) or not iterable.args or any(each.star for each in iterable.args):
        return iterated_item(value, iterable)
    function = canonical(walk, iterable.func)
    if function == "builtins.reversed":
        return _item_of(walk, iterable.args[0])
    if function == "builtins.enumerate":
        return Sequence("tuple", (Slot(Scalar("int", iterable)), Slot(_item_of(walk, iterable.args[0]))), iterable)
    if function == "builtins.zip":
        items = (_item_of(walk, each) for each in iterable.args if each.keyword is None)
        return Sequence("tuple", tuple(map(Slot, items)), iterable)
    return iterated_item(value, iterable)


def _item_of(walk: Walk, argument: cst.Arg) -> Value:
    return item_of(walk, argument.value, walk.peek(argument.value))


def elements_of(walk: Walk, iterable: cst.BaseExpression, value: Value) -> list[Value] | None:
    """The elements that a loop runs over, in order; None unless all are known. ``value`` is that of the iterable."""
    if (
        isinstance(iterable, cst.Call)
        and iterable.args
        and not any(each.star or each.keyword for each in iterable.args)
    ):
        function = canonical(walk, iterable.func)
        if function in ("builtins.zip", "builtins.enumerate"):
            found = [elements_of(walk, each.value, walk.peek(each.value)) for each in iterable.args]
            known = [each for each in found if each is not None]
            if len(known) < len(found) or (function == "builtins.enumerate" and len(known) != 1):
                return None
            if function == "builtins.enumerate":
                known.insert(0, [constant(at) for at in range(len(known[0]))])
            return [Sequence("tuple", tuple(map(Slot, each)), iterable) for each in zip(*known)]
    if isinstance(value, Mapping):
        return [constant(key) for key in value.keys] if named_items(value) is not None else None
    if not isinstance(value, Sequence) or not value.exact or value.kind == "set":
        return None
    return [slot.value for slot in value.slots]
