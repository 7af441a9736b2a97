"""Where backward, vjp and jvp take what was saved: which tensor, under which name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.events import Assigned, SavedItem, SavedRead
from ctxlint.model.saved import saving_call
from ctxlint.model.values import Item, SavedTensor, SavedTensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.functions import FunctionClass
    from ctxlint.model.method import Method
    from ctxlint.model.values import Value


@dataclass(frozen=True)
class ReadBack:
    """A place where ``method`` takes saved tensors. ``call`` is the method of ctx that saved them.

    ``index`` is the position of the tensor, negative where it is counted from the end, None for several at once. Those
    are the ones from ``start`` on, less ``behind`` at the end. ``name`` is what it is bound to, where it is.
    """

    method: Method
    call: str
    node: cst.CSTNode
    index: int | None
    name: str | None = None
    start: int = 0
    behind: int = 0


def read_backs(fn: FunctionClass) -> list[ReadBack]:
    """Every place where saved tensors are taken, in order, those of each method together."""
    return [each for method in fn.reading_methods for each in _in_method(method)]


def _in_method(method: Method) -> Iterator[ReadBack]:
    call = saving_call(method)
    bound = list(_bound(method, call))
    items = list(_items(method, call, bound))
    whole = list(_whole(method, call))
    seen: set[int] = set()
    for each in (*bound, *items, *whole):
        if id(each.node) not in seen:  # the code of a `finally` is walked more than once
            seen.add(id(each.node))
            yield each


def _bound(method: Method, call: str) -> Iterator[ReadBack]:
    """``x, y = ctx.saved_tensors``, ``x = saved[0]``; another name for what has one already is no such place."""
    for event in method.facts.of(Assigned):
        index = _index(event.value)
        if index is not None and isinstance(event.value_node, (cst.Subscript, type(None))) and not event.augmented:
            yield ReadBack(method, call, event.node, index, event.name)
    for read in method.facts.of(SavedRead):
        for unpacking in read.unpackings:
            for at, element in enumerate(_elements(unpacking.node)):
                if isinstance(element, cst.StarredElement):
                    name = element.value.value if isinstance(element.value, cst.Name) else None
                    behind = len(unpacking.names) - at - 1
                    yield ReadBack(method, call, element.value, None, name, start=at, behind=behind)


def _index(value: Value | None) -> int | None:
    if isinstance(value, SavedTensor):
        return value.index
    if isinstance(value, Item) and isinstance(value.of, SavedTensors) and isinstance(value.key, int):
        return value.key if value.key < 0 else None
    return None


def _elements(node: cst.CSTNode) -> tuple[cst.BaseElement, ...]:
    return tuple(node.elements) if isinstance(node, (cst.Tuple, cst.List)) else ()


def _items(method: Method, call: str, bound: list[ReadBack]) -> Iterator[ReadBack]:
    """``ctx.saved_tensors[0]`` in the middle of an expression."""
    targets = {id(each.node) for each in bound}
    named = {id(each.value_node) for each in method.facts.of(Assigned) if id(each.node) in targets}
    for item in method.facts.of(SavedItem):
        if id(item.node) not in named:
            yield ReadBack(method, call, item.node, item.index)


def _whole(method: Method, call: str) -> Iterator[ReadBack]:
    """The tuple taken as a whole: handed to a function, looped over."""
    subscripted = [item.node for item in method.facts.of(SavedItem) if isinstance(item.node, cst.Subscript)]
    holders = {id(node.value) for node in subscripted}
    names = {node.value.value for node in subscripted if isinstance(node.value, cst.Name)}
    for read in method.facts.of(SavedRead):
        if not read.unpackings and id(read.node) not in holders and read.bound_to not in names:
            yield ReadBack(method, call, read.node, None)
