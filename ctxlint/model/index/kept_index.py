"""Indexing a text that differs from an earlier one in few statements: the others are not indexed again.

Each statement has an index of its own, and that of the file is composed of them. All share the scope of the module. So
an index is reused only if that scope stays the same: if each changed statement binds there what it did before, which a
function or class does whatever it contains.
"""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from operator import is_
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import FileIndex
from ctxlint.model.index.indexer import add_statement, index_module, resolve_bases
from ctxlint.model.index.parsing import during
from ctxlint.model.index.scopes import Scope
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from ctxlint.model.index.scopes import Bound

_VERSIONS = 3
"""The versions of a module to keep: the current one, the one before, and the one with fixes applied."""
_MODULES = 3
"""The modules of a file to keep: while a statement is typed, it parses in one moment and is missing in the next."""


class IndexedStatements:
    """The indexes of the statements of some files."""

    def __init__(self, files: int = 4) -> None:
        """Start empty."""
        self.files = files
        self._path: str | None = None
        self._versions: OrderedDict[str, list[FileIndex]] = OrderedDict()

    def in_use(self, path: str | None = None) -> AbstractContextManager[None]:
        """During this context, ``index_of`` looks up and stores the indexes of one file here, or of every file."""
        self._path = path
        return during(_KEPT, self)

    def has(self, path: str) -> bool:
        """Whether the indexes of a file are kept."""
        return self._path in (None, path)

    def clear(self) -> None:
        """Other files changed: drop everything, because the notes of the parts depend on them."""
        self._versions.clear()

    def index(self, path: str, module: ast.Module) -> FileIndex:
        """The index of a file, composed of known parts where possible."""
        versions = self._versions.setdefault(path, [])
        self._versions.move_to_end(path)
        while len(self._versions) > self.files:
            self._versions.popitem(last=False)
        same = next((at for at, old in enumerate(versions) if _is_same(old, module.body)), None)
        if same is not None:  # only what cannot be parsed has changed
            found = versions.pop(same)
        else:
            changed = (_changed(old, module.body) for old in versions)
            found = next((new for new in changed if new is not None), None) or _composed(module)
        versions.insert(0, found)
        by_module: dict[Scope, list[FileIndex]] = {}
        for each in versions:
            by_module.setdefault(each.module, []).append(each)
        self._versions[path] = [each for those in [*by_module.values()][:_MODULES] for each in those[:_VERSIONS]]
        return found


def index_of(path: str, module: ast.Module) -> FileIndex:
    """The index of a file; from ``IndexedStatements`` if they are in use."""
    indexes = _KEPT.get()
    return indexes.index(path, module) if indexes is not None and indexes.has(path) else index_module(module)


_KEPT: ContextVar[IndexedStatements | None] = ContextVar("_KEPT", default=None)


def _composed(module: ast.Module) -> FileIndex:
    """The index of a file in parts; without any if two statements define something of the same name."""
    root = Scope("module", "")
    parts = [_part(root, number, statement) for number, statement in enumerate(module.body)]
    for part in parts:
        bound = _bound_by(part)
        for name, bounds in bound.names.items():
            root.names.setdefault(name, []).extend(bounds)
        root.stars += bound.stars
        root.conditions += bound.conditions
    for part in parts:
        resolve_bases(part)
    return _joined(root, module.body, parts) or index_module(module)


def _joined(root: Scope, statements: list[ast.stmt], parts: Sequence[FileIndex]) -> FileIndex | None:
    """The index of a file with these parts; None if two of them define something of the same name."""
    found = FileIndex(root, statements, parts=tuple(parts))
    for each in parts:
        found.classes.update(each.classes)
        found.functions.update(each.functions)
        found.calls += each.calls
        found.attributes |= each.attributes
        for name, owners in each.attribute_owners.items():
            found.attribute_owners.setdefault(name, set()).update(owners)
        found.applied += each.applied
        found.taken += each.taken
        found.patches += each.patches
        found.attribute_aliases += each.attribute_aliases
        found.renamed |= each.renamed
    is_plain = len(found.classes) == sum(len(each.classes) for each in parts)
    return found if is_plain and len(found.functions) == sum(len(each.functions) for each in parts) else None


def _is_same(old: FileIndex, statements: list[ast.stmt]) -> bool:
    return bool(old.parts) and len(old.statements) == len(statements) and all(map(is_, old.statements, statements))


def _changed(old: FileIndex, statements: list[ast.stmt]) -> FileIndex | None:
    """The index of other statements, with the parts of those that are the same; None if the module may differ."""
    if not old.parts or len(old.statements) != len(statements) or any(map(_has_moved, old.parts, statements)):
        return None
    parts, same, same_classes = list(old.parts), True, True
    for at, statement in enumerate(statements):
        if statement is not old.statements[at]:
            parts[at] = _part(old.module, at, statement)
            if _bound_by(parts[at]) != _bound_by(old.parts[at]):
                return None
            resolve_bases(parts[at])
            same_classes &= parts[at].shape_of_classes == old.parts[at].shape_of_classes
            same &= parts[at].shape == old.parts[at].shape
    found = _joined(old.module, statements, parts)
    if found is not None:
        found.shared = old.shared if same else {}
        found.of_classes = old.of_classes if same_classes else {}
    return found


def _has_moved(old: FileIndex, statement: ast.stmt) -> bool:
    """Whether what a statement binds in the module is certainly elsewhere than it was: most statements are moved."""
    return statement.lineno != old.statements[0].lineno and bool(_bound_by(old).names)


class _Bound(NamedTuple):
    """What a statement adds to the scope of the module."""

    names: dict[str, list[Bound]]
    stars: list[str]
    conditions: list[ast.expr]


def _part(root: Scope, number: int, statement: ast.stmt) -> FileIndex:
    """The index of a statement, without the bases of classes. What it binds in the module is not added there."""
    part = FileIndex(root, [statement])
    before = (root.names, root.stars, root.conditions)
    root.names, root.stars, root.conditions = {}, [], []
    try:
        add_statement(part, number, statement)
        part.notes[_Bound] = _Bound(root.names, root.stars, root.conditions)
    finally:
        root.names, root.stars, root.conditions = before
    return part


def _bound_by(part: FileIndex) -> _Bound:
    found: _Bound = part.notes[_Bound]
    return found
