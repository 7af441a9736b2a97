"""Comprehensions: element by element where the elements are known, else one summary element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import guards_of, narrow
from ctxlint.model.interpreter.events import Guard
from ctxlint.model.interpreter.iteration import item_of
from ctxlint.model.interpreter.local_names import target_names
from ctxlint.model.interpreter.sequences import as_sequence, element_of, many_like, rest_of
from ctxlint.model.interpreter.state import State, join_environments, widen
from ctxlint.model.interpreter.values import UNKNOWN, Constant, Mapping, Opaque, Sequence, Slot, Value, Variadic
from ctxlint.model.syntax import dotted

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.interpreter.walk import Walk

_MAX_ELEMENTS = 64
"""Over more elements than this, a comprehension is not unrolled: as many arguments."""


def evaluate_comprehension(walk: Walk, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Value:
    """A list, set or generator, with its elements if they are known one by one."""
    kind = "list" if isinstance(node, cst.ListComp) else "set" if isinstance(node, cst.SetComp) else "generator"
    elements: list[Value] = []
    copied = walk.peek(node.for_in.iter) if _copies(node) else None
    values = _comprehend(walk, node.for_in, lambda: _noted(walk.use(node.elt), elements))
    if values is not None:
        return Sequence(kind, tuple(map(Slot, values)), node)
    if isinstance(copied, Variadic):
        return as_sequence(copied, kind, node)
    return Sequence(kind, (Slot(many_like(elements), starred=True),), node)


def _copies(node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> bool:
    """Whether the elements are those of the iterable: ``[x for x in xs]``."""
    clause = node.for_in
    named = isinstance(node.elt, cst.Name) and isinstance(clause.target, cst.Name)
    return named and clause.inner_for_in is None and not clause.ifs and dotted(node.elt) == dotted(clause.target)


def _noted(value: Value, elements: list[Value]) -> Value:
    elements.append(value)
    return value


def evaluate_dict_comprehension(walk: Walk, node: cst.DictComp) -> Value:
    """A dict, with its values if they and their keys, strings, are known one by one."""
    keys: list[Value] = []
    values = _comprehend(walk, node.for_in, lambda: (_noted(walk.evaluate(node.key), keys), walk.use(node.value))[1])
    names = [each.value for each in keys if isinstance(each, Constant) and isinstance(each.value, str)]
    if values is None or len(names) < len(keys):
        return Mapping((Slot(UNKNOWN, starred=True),), node)
    items = dict(zip(names, values))
    return Mapping(tuple(map(Slot, items.values())), node, tuple(items))


def _comprehend(walk: Walk, clause: cst.CompFor, element: Callable[[], Value]) -> list[Value] | None:
    """Walk a comprehension; the values of its elements if they are known one by one."""
    walk.repeated.effects += 1
    iterated = walk.evaluate(clause.iter)
    outside, around, walk.walrus_names = walk.state, walk.walrus_names, set()
    walk.loops += 1
    values: list[Value] | None = None
    if clause.inner_for_in is None and not clause.ifs and _is_short(iterated):
        walk.state = outside.fork()
        values = _one_by_one(walk, clause, iterated, element)
    else:
        walk.state = outside.fork(Guard(id(clause), "loop"))
        _any_element(walk, clause, iterated, element)
    walk.loops -= 1
    _leave_comprehension(walk, clause, outside, certain=values is not None)
    walk.walrus_names |= around
    return values


def _one_by_one(walk: Walk, clause: cst.CompFor, iterated: Value, element: Callable[[], Value]) -> list[Value]:
    """The elements of a comprehension over a short tuple or list; only the first one records events."""
    values: list[Value] = []
    for position, slot in enumerate(iterated.slots if isinstance(iterated, Sequence) else ()):
        walk.recorder.muted += position > 0
        _bind_target(walk, clause.target, slot.value)
        values.append(element())
        walk.recorder.muted -= position > 0
    return values


def _any_element(walk: Walk, clause: cst.CompFor, iterated: Value, element: Callable[[], Value]) -> None:
    """One summary element."""
    _bind_target(walk, clause.target, item_of(walk, clause.iter, iterated))
    for test in clause.ifs:
        walk.evaluate(test.test)
        walk.state = walk.state.fork(*guards_of(walk, test.test, True, test))
        narrow(walk, test.test, holds=True)
    if clause.inner_for_in is not None:
        _comprehend(walk, clause.inner_for_in, element)
    else:
        element()


def _leave_comprehension(walk: Walk, clause: cst.CompFor, outside: State, certain: bool) -> None:
    """Return to the scope of the method. It includes names bound by ``:=``, and lists may have changed."""
    inside = walk.state
    own = set(target_names(clause.target))
    names = {name: inside.names[name] for name in outside.names if name not in own and name in inside.names}
    changed = {**outside.names, **names}
    outside.names = changed if certain else join_environments(outside.names, changed, widen)
    outside.names.update((name, Opaque(clause)) for name in sorted(walk.walrus_names))
    outside.maybe |= inside.maybe
    if certain:
        outside.done |= inside.done
    walk.state = outside


def _bind_target(walk: Walk, target: cst.BaseExpression, value: Value) -> None:
    """Bind the target of a comprehension, which is not in the scope of the method."""
    if isinstance(target, cst.Name):
        walk.state.names[target.value] = value
    elif isinstance(target, (cst.Tuple, cst.List)):
        star = next((at for at, each in enumerate(target.elements) if isinstance(each, cst.StarredElement)), None)
        count = len(target.elements)
        for at, each in enumerate(target.elements):
            starred = isinstance(each, cst.StarredElement)
            part = rest_of(value, at, count, each) if starred else element_of(value, at, count, star, each)
            _bind_target(walk, each.value, part)


def _is_short(value: Value) -> bool:
    """Whether it is a non-empty tuple or list of which every element is known."""
    if not isinstance(value, Sequence) or not value.exact:
        return False
    return 0 < len(value.slots) <= _MAX_ELEMENTS
