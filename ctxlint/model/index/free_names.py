"""Names that classes read and that nothing in their file binds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ctxlint.model.index.python_names import is_always_bound
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import Scoped, bound_in, bound_names, head_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.source.source import Source


def free_names(unit: Unit, classes: Iterable[str]) -> frozenset[str]:
    """The names that some classes of a file read, and that neither they nor the module nor Python binds."""
    index = unit.index
    read = (
        _free_in(unit.source, record.node) - record.scope.function_locals()
        for record in map(index.classes.__getitem__, classes)
    )
    return frozenset(each for names in read for each in names if each not in index.module.names)


def _free_in(source: Source, node: ast.ClassDef) -> frozenset[str]:
    """The names that a class reads and does not bind; in an editor, most classes are the same after a keystroke."""
    first = min((node.lineno, *(each.lineno for each in node.decorator_list)))
    text = source.lines(first, node.end_lineno or node.lineno)
    found = _FREE.pop(text, None)
    if found is None:
        found = frozenset(each for each in _read_freely(node) if not is_always_bound(each))
    _FREE[text] = found
    while len(_FREE) > _TEXTS_KEPT:
        del _FREE[next(iter(_FREE))]
    return found


_FREE: dict[str, frozenset[str]] = {}
"""By the text of a class, which may have moved; the latest last."""
_TEXTS_KEPT = 64


class _Used(NamedTuple):
    """The names that code reads and binds in its own scope, and those that the scopes inside read and do not bind."""

    read: frozenset[str]
    bound: frozenset[str]
    inside: frozenset[str]


def _read_freely(top: Scoped) -> frozenset[str]:
    """The names that a scope, or one inside, reads and that neither it nor a scope between them binds."""
    used = _used_in(top)
    bound = bound_in(top, (), ()).union(used.bound)
    return used.read.difference(bound).union(used.inside if isinstance(top, ast.ClassDef) else used.inside - bound)


def _used_in(top: ast.stmt) -> _Used:
    """The names in a statement. In an editor, most are the same statements after each keystroke."""
    if top not in _KNOWN:
        own, parts = head_of(top)
        read = {each.id for each in own if type(each) is ast.Name and type(each.ctx) is ast.Load}
        bound = set(bound_names(each for each in own if each is not top or not isinstance(top, Scoped)))
        inside = set[str]()
        for each in parts:
            if isinstance(each, Scoped):
                bound.add(each.name)
                inside |= _read_freely(each)
            else:
                used = _used_in(each)
                read |= used.read
                bound |= used.bound
                inside |= used.inside
        _KNOWN[top] = _Used(frozenset(read), frozenset(bound), frozenset(inside))
    return _KNOWN[top]


_KNOWN: WeakKeyDictionary[ast.stmt, _Used] = WeakKeyDictionary()
