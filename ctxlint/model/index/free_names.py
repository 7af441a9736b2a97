"""Names that classes read and that nothing in their file binds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.python_names import is_always_bound
from ctxlint.source.ast_tree import bound_in, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
        free = _read_freely(record.node, frozenset())
        known[record.qualname] = frozenset(each for each in free if not is_always_bound(each))
    return known[record.qualname]


def _read_freely(top: ast.AST, outside: frozenset[str]) -> Iterator[str]:
    """The names that a scope, or one inside, reads and neither binds nor finds ``outside``, in a scope around it."""
    own, inner = own_nodes(top)
    bound = outside.union(bound_in(top, own, inner))
    for each in own:
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in bound:
            yield each.id
    for scoped in inner:
        yield from _read_freely(scoped, outside if isinstance(top, ast.ClassDef) else bound)
