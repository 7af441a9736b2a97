"""What a loop or a comprehension takes from the iterable that it runs over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.names import canonical
from ctxlint.model.interpreter.sequences import iterated_item
from ctxlint.model.interpreter.values import Scalar, Sequence, Slot

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
