"""Where backward, vjp and jvp read saved tensors: which tensor, under which name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.saved_tensors import saving_call
from ctxlint.model.interpreter.events import Assigned, SavedItem, SavedRead
from ctxlint.model.interpreter.values import SavedTensor
from ctxlint.model.syntax import only_target
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Unpacking
    from ctxlint.model.interpreter.method import Method


@record
class ReadBack:
    """A place where ``method`` reads saved tensors. ``call`` is the method of ctx that saved them.

    ``index`` is the position of the tensor, negative if counted from the end, None for several at once: those from
    ``start`` on, except for the last ``behind``. ``name`` is the name that is bound to it, if any. ``count`` is the
    number of tensors required if all are read at once.
    """

    method: Method
    call: str
    node: cst.CSTNode
    index: int | None
    name: str | None = None
    start: int = 0
    behind: int = 0
    count: int | None = None


def read_backs(fn: FunctionClass) -> list[ReadBack]:
    """Every place that reads saved tensors, in order, grouped by method."""
    return [each for method in fn.reading_methods for each in _in_method(method)]


def uses_of(read: ReadBack) -> Iterator[cst.Name]:
    """The other uses of the name of ``read``; none if the method rebinds it."""
    names = [each for each in read.method.variables if each.value == read.name and each is not read.node]
    bindings = {event.statement for event in read.method.facts.of(Assigned) if event.name == read.name}
    if len(bindings) == 1 and not any(isinstance(read.method.parents[each], _BINDERS) for each in names):
        yield from names


_BINDERS = (cst.Param, cst.CompFor, cst.NameItem)


def _in_method(method: Method) -> Iterator[ReadBack]:
    call = saving_call(method)
    bound = list(_bound(method, call))
    items = list(_items(method, call, bound))
    whole = list(_whole(method, call))
    seen: set[int] = set()
    for each in (*bound, *items, *whole):
        if id(each.node) not in seen:  # a `finally` block is walked more than once
            seen.add(id(each.node))
            yield each


def _bound(method: Method, call: str) -> Iterator[ReadBack]:
    """``x, y = ctx.saved_tensors``, ``x = saved[0]``; a second name for a bound tensor is not another read."""
    for read in method.facts.of(SavedRead):
        for unpacking in read.unpackings:
            yield from _unpacked(method, call, unpacking)
    for event in method.facts.of(Assigned):
        taken = isinstance(getattr(event.statement, "value", None), cst.Subscript)
        if taken and isinstance(event.value, SavedTensor) and not event.augmented:
            yield ReadBack(method, call, event.node, event.value.index, event.name)


def _unpacked(method: Method, call: str, unpacking: Unpacking) -> Iterator[ReadBack]:
    """The targets of one unpacking; those after a starred target are counted from the end."""
    elements = unpacking.node.elements if isinstance(unpacking.node, (cst.Tuple, cst.List)) else ()
    count = None if unpacking.starred else len(elements)
    behind_star = False
    for at, element in enumerate(elements):
        name = element.value.value if isinstance(element.value, cst.Name) else None
        behind = len(elements) - at - 1
        if isinstance(element, cst.StarredElement):
            behind_star = True
            yield ReadBack(method, call, element.value, None, name, start=at, behind=behind)
        else:
            index = at - len(elements) if behind_star else at
            yield ReadBack(method, call, element.value, index, name, count=count)


def _items(method: Method, call: str, bound: list[ReadBack]) -> Iterator[ReadBack]:
    """``ctx.saved_tensors[0]`` in the middle of an expression."""
    targets = {id(each.node) for each in bound}
    named = {id(each.value_node) for each in method.facts.of(Assigned) if id(each.node) in targets}
    for item in method.facts.of(SavedItem):
        if id(item.node) not in named:
            yield ReadBack(method, call, item.node, item.index)


def _whole(method: Method, call: str) -> Iterator[ReadBack]:
    """The tuple used as a whole: passed to a function, iterated over."""
    subscripted = [item.node for item in method.facts.of(SavedItem) if isinstance(item.node, cst.Subscript)]
    holders = {id(node.value) for node in (*subscripted, *_sliced(method))}
    names = {node.value.value for node in subscripted if isinstance(node.value, cst.Name)}
    for read in method.facts.of(SavedRead):
        if not read.unpackings and id(read.node) not in holders and read.bound_to not in names:
            yield ReadBack(method, call, read.node, None)


def _sliced(method: Method) -> Iterator[cst.Subscript]:
    """The right-hand sides of ``a, b = ctx.saved_tensors[:2]``."""
    for event in method.facts.of(Assigned):
        value = getattr(event.statement, "value", None)
        if isinstance(value, cst.Subscript) and isinstance(event.value, SavedTensor):
            yield value


def is_unused(method: Method, read: SavedRead, later: SavedRead | None) -> bool:
    """Whether a read has no use: nothing reads the names that its statement binds, or ``later`` rebinds all first."""
    around = method.parents.get(read.node)
    if read.by or isinstance(around, cst.Expr):
        return not read.by
    names = _names_bound(method, read)
    if not names:
        return False
    at = {each: number for number, each in enumerate(method.variables)}
    targets = set(map(id, _targets(method, read)))
    uses = [each for each in method.variables if each.value in names and id(each) not in targets]
    if not uses:
        return True
    if later is None or later.by or not names <= _names_bound(method, later):
        return False
    rebinding = _targets(method, later)
    first, last = min(at[each] for each in _targets(method, read)), max(at[each] for each in rebinding)
    same_block = _block_of(method, read) is _block_of(method, later)
    return same_block and all(each in rebinding or not first < at[each] < last for each in uses)


def _targets(method: Method, read: SavedRead) -> list[cst.Name]:
    """The names that an assignment binds to the tuple, or to all of its elements; none if it does anything else."""
    target = only_target(method.parents.get(read.node))
    if target is None:
        return []
    parts = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    names = [each for each in parts if isinstance(each, cst.Name)]
    return names if len(names) == len(parts) else []


def _names_bound(method: Method, read: SavedRead) -> set[str]:
    return {each.value for each in _targets(method, read)}


def _block_of(method: Method, read: SavedRead) -> cst.CSTNode | None:
    return next((each for each in method.above(read.node) if isinstance(each, cst.BaseSuite)), None)
