"""What one ``ast`` pass over a file finds: scopes, classes, calls on classes, attribute names.

``ast`` only says where to look and what the rest of the file does; what a Function is and what it does wrong is
decided on LibCST nodes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, meanings, resolutions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass
class ClassRecord:
    """A class statement: where it stands, and what its bases resolve to.

    ``statement`` is the index of its top-level statement and ``ordinal`` counts the class statements in that, from 0,
    in source order, so that it can be found again among LibCST's nodes.
    """

    qualname: str
    node: ast.ClassDef
    scope: Scope
    body: Scope
    statement: int
    ordinal: int
    alternative: bool = False
    """Whether it stands in an ``except`` clause, or under an ``if`` that asks for a version or an attribute."""
    bases: tuple[tuple[str | None, ...], ...] = ()


class CallRecord(NamedTuple):
    """A call, the scope it is written in, and the ``with`` items of that scope that it stands under.

    ``expects_error`` says that it stands under, or inside, something like ``pytest.raises(...)``. ``name`` is the last
    part of the name that is called; empty where no name is.
    """

    node: ast.Call
    scope: Scope
    within: tuple[ast.expr, ...]
    expects_error: bool
    name: str


@dataclass
class FunctionRecord:
    """A function or method, and the scope it is written in; ``statement`` and ``ordinal`` as for classes.

    ``certain`` is False where a condition decides between several of this name.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Scope
    statement: int
    ordinal: int
    conditional: bool
    certain: bool


@dataclass
class FileIndex:
    """What one pass over the file found."""

    module: Scope
    statements: list[ast.stmt]
    classes: dict[str, ClassRecord] = field(default_factory=dict)
    functions: dict[str, FunctionRecord] = field(default_factory=dict)
    """Every function by qualified name, methods included; the last one, where a name is defined again."""
    calls: list[CallRecord] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    """Every attribute name that is stored, deleted, or named as a string in getattr, setattr, hasattr, delattr."""
    attribute_owners: dict[str, set[str]] = field(default_factory=dict)
    """For each of these the classes whose methods store it on their own first parameter, and the ``__init__`` that
    do; ``""`` for any other way."""
    applied: list[tuple[ast.expr, Scope]] = field(default_factory=list)
    """What ``.apply`` is read of, called or not, and where."""
    patches: list[tuple[ast.expr, str, Scope]] = field(default_factory=list)
    """Owner, attribute and scope of each ``owner.attribute = …`` and ``del owner.attribute``."""
    attribute_aliases: list[tuple[ast.expr, str, ast.Attribute, Scope]] = field(default_factory=list)
    """Owner, attribute, value and scope of each ``owner.attribute = Fn.apply``."""
    renamed: set[tuple[str, str]] = field(default_factory=set)
    """For each import, and each name that is assigned to a name: the last part of what is given, and the new name.

    What a star imports is called ``*``.
    """

    # Questions

    def class_of(self, dotted: str, scope: Scope, line: int) -> str | None:
        """The qualified name of the class of this file that ``dotted`` certainly means to code at ``line``.

        None for anything else: a name that is rebound, or that an ``if`` binds to one class or another.
        """
        found = set(meanings(dotted, scope, line))
        return self._class(found.pop()) if len(found) == 1 else None

    def classes_of(self, dotted: str, scope: Scope) -> set[str]:
        """The qualified names of the classes of this file that ``dotted`` may mean."""
        return {name for name in map(self._class, resolutions(dotted, scope)) if name is not None}

    def _class(self, meaning: str | None) -> str | None:
        name = meaning[len(LOCAL) :] if meaning is not None and meaning.startswith(LOCAL) else None
        return name if name in self.classes else None

    def names_for(self, names: Iterable[str]) -> frozenset[str]:
        """The last parts of all names by which this file may call what ends in one of ``names``."""
        found = set(names)
        grown = True
        while grown:
            new = {name for given, name in self.renamed if given in found} - found
            found |= new
            grown = bool(new)
        return frozenset(found)

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The names, as they are imported, of what the file calls and does not define, sorted."""
        found = {
            name
            for path, scope, line in self._calls_of_names()
            for name in meanings(path, scope, line)
            if name is not None and not name.startswith((LOCAL, "builtins."))
        }
        return tuple(sorted(found))

    def _calls_of_names(self) -> Iterator[tuple[str, Scope, int]]:
        """The dotted names that are called and may be imported, each with a scope and a line where it is.

        A name that is bound once means the same wherever that binding is seen, and comes once.
        """
        given = {name for _origin, name in self.renamed}
        starred = "*" in given
        seen: set[tuple[str, Scope]] = set()
        for record in self.calls:
            head = record.node.func
            while type(head) is ast.Attribute:
                head = head.value
            if type(head) is not ast.Name or not (starred or head.id in given):
                continue
            path = dotted_name(record.node.func)
            if path is None or path.endswith(".apply"):
                continue
            owner = record.scope.owner(head.id)
            if owner is not None and len(owner.names[head.id]) == 1:
                if (path, owner) in seen:
                    continue
                seen.add((path, owner))
            yield path, record.scope, record.node.lineno
