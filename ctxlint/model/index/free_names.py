"""Names that classes read and that nothing in their file binds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from ctxlint.model.index.python_names import is_always_bound
from ctxlint.source.ast_tree import Scoped, bound_in, bound_names, head_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.index.file_index import ClassRecord, FileIndex


def free_names(index: FileIndex, classes: Iterable[str]) -> frozenset[str]:
    """The names that some classes of a file read, and that neither they nor the module nor Python binds."""
    read = (
        _free_in(index, record) - record.scope.function_locals() for record in map(index.classes.__getitem__, classes)
    )
    return frozenset(each for names in read for each in names if each not in index.module.names)


def _free_in(index: FileIndex, record: ClassRecord) -> frozenset[str]:
    """The names that a class reads and does not bind; known as long as its code is the same."""
    part = index.parts[record.statement] if index.parts else index
    known: dict[str, frozenset[str]] = part.notes.setdefault(free_names, {})
    if record.qualname not in known:
        free = _read_freely(record.node)
        known[record.qualname] = frozenset(each for each in free if not is_always_bound(each))
    return known[record.qualname]


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
