"""The result of one ``ast`` pass over a file: scopes, classes, calls on classes, attribute names.

``ast`` only shows where to look and what the rest of the file does; what a Function is and whether it is wrong is
decided on LibCST nodes.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, meanings, resolutions
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.source.source import Source


def one_of_several(qualname: str, line: int) -> str:
    """The name by which one of several functions or classes of a qualified name is known."""
    return f"{qualname}@{line}"


def is_one_of_several(qualname: str) -> bool:
    """Whether it is such a name, or that of something inside of one."""
    return "@" in qualname


def as_written(qualname: str) -> str:
    """The qualified name without the line of one of several."""
    name, _, rest = qualname.partition("@")
    return name + rest.lstrip("0123456789")


def last_name(qualname: str) -> str:
    """The last part of a qualified name, as it is written."""
    return as_written(qualname.rpartition(".")[2])


def reached(names: Iterable[str], renamed: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The names, and all that ``renamed`` pairs of an old and a new name make of them, one after the other."""
    by_origin: dict[str, list[str]] = {}
    for origin, name in renamed:
        by_origin.setdefault(origin, []).append(name)
    todo = list(names)
    found = set(todo)
    while todo:
        new = set(by_origin.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return frozenset(found)


@dataclass
class ClassRecord:
    """A class statement: its position, and what its bases resolve to.

    ``statement`` is the index of its top-level statement and ``ordinal`` counts the class statements within it, from 0,
    in source order; together they locate it among LibCST's nodes.
    """

    qualname: str
    node: ast.ClassDef
    scope: Scope
    body: Scope
    statement: int
    ordinal: int
    alternative: bool = False
    """Whether it is in an ``except`` clause, or under an ``if`` that tests a version or an attribute."""
    bases: tuple[tuple[str | None, ...], ...] = ()

    @property
    def is_redefined(self) -> bool:
        """Whether its name certainly means something else at the end of its scope."""
        return all(bound.target != self.qualname for bound in self.scope.live(self.node.name))

    def has_alternative(self, classes: Mapping[str, ClassRecord]) -> bool:
        """Whether its name may mean another of the ``classes`` in the end, as one of the two is an alternative."""
        targets = {bound.target for bound in self.scope.live(self.node.name)} - {self.qualname}
        return any(self.alternative or classes[each].alternative for each in targets if each in classes)

    def is_replaced_unused(self, source: Source) -> bool:
        """Whether another class statement is the next place after it that mentions its name."""
        if not self.is_redefined or self.node.decorator_list:
            return False
        rest = source.lines((self.node.end_lineno or self.node.lineno) + 1, source.line_count)
        statement = rf"^{' ' * self.node.col_offset}class[ \t]+"
        following = re.search(rf"({statement})?\b{re.escape(self.node.name)}\b", rest, re.MULTILINE)
        return following is not None and following[1] is not None


class Patch(NamedTuple):
    """An attribute of ``owner`` that code sets, deletes or names in a call.

    ``wraps``: what it sets mentions an attribute of this name, as in ``Fn.forward = wrapped(Fn.forward)``.
    ``by_call``: a call gets the owner and the name, ``patch(Fn, "forward", f)``, and may do anything. ``by``: the
    function that it calls, if its name does not say that it sets anything.
    """

    owner: ast.expr
    attribute: str
    scope: Scope
    wraps: bool = False
    by_call: bool = False
    by: ast.expr | None = None


class CallRecord(NamedTuple):
    """A call, its scope, and the ``with`` items of that scope around it.

    ``expects_error``: it is under, or inside, something like ``pytest.raises(...)``. ``name`` is the last part of the
    callee's name; empty if the callee is not a name. ``own_names`` are those that comprehensions and lambdas around it
    bind, which hide names of the scope.
    """

    node: ast.Call
    scope: Scope
    within: tuple[ast.expr, ...]
    expects_error: bool
    name: str
    own_names: frozenset[str] = frozenset()

    def is_hidden(self, node: ast.expr) -> bool:
        """Whether an expression in the call reads one of the names of a comprehension or lambda."""
        hidden = self.own_names
        return bool(hidden) and any(isinstance(each, ast.Name) and each.id in hidden for each in nodes_in(node))


@dataclass
class FunctionRecord:
    """A function or method, and its enclosing scope; ``statement`` and ``ordinal`` as for classes.

    ``certain`` is False if a condition decides between several of this name; ``alternatives`` are the names that these
    have in the index.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Scope
    statement: int
    ordinal: int
    conditional: bool
    certain: bool
    alternatives: tuple[str, ...] = ()


_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NOT_NUMBERED = sys.maxsize
"""The ordinal of a lambda: it is not a statement."""


def lambda_record(name: str, node: ast.Lambda, scope: Scope, statement: int, conditional: bool) -> FunctionRecord:
    """A lambda as a function that returns its expression."""
    body = ast.copy_location(ast.Return(node.body), node.body)
    function = ast.FunctionDef(name=name, args=node.args, body=[body], decorator_list=[], returns=None)
    ast.copy_location(function, node)
    return FunctionRecord(function, scope, statement, _NOT_NUMBERED, conditional, certain=True)


@dataclass
class FileIndex:
    """The result of one pass over the file."""

    module: Scope
    statements: list[ast.stmt]
    classes: dict[str, ClassRecord] = field(default_factory=dict)
    functions: dict[str, FunctionRecord] = field(default_factory=dict)
    """Every function by qualified name, methods included; the last one if a name is defined again."""
    calls: list[CallRecord] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    """Every attribute name that is stored, deleted, or named in setattr, hasattr, delattr, getattr with a default."""
    attribute_owners: dict[str, set[str]] = field(default_factory=dict)
    """The classes whose methods store each on their first parameter, and their initialisers; ``""`` for other ways."""
    applied: list[tuple[ast.expr, Scope]] = field(default_factory=list)
    """The owners of ``.apply`` reads, called or not, with their scopes."""
    taken: list[tuple[ast.Attribute, Scope]] = field(default_factory=list)
    """The reads of attributes that have the name of a method of the protocol, ``Fn.forward``, called or not."""
    patches: list[Patch] = field(default_factory=list)
    """Each ``owner.attribute = …`` and ``del owner.attribute``, and each ``f(owner, "forward")``."""
    attribute_aliases: list[tuple[ast.expr, str, ast.Attribute, Scope]] = field(default_factory=list)
    """Owner, attribute, value and scope of each ``owner.attribute = Fn.apply``."""
    renamed: set[tuple[str, str]] = field(default_factory=set)
    """For each import, and each assignment of a name to a name: the last part of the source, and the new name.

    A star import is recorded as ``*``.
    """
    parts: tuple[FileIndex, ...] = ()
    """The indexes of its statements, one for each, if they were indexed separately: see ``kept_index``."""
    shared: dict[object, Any] = field(default_factory=dict)
    """A cache for what follows from the scope of the module and the shapes of all parts: shared by such versions."""
    of_classes: dict[object, Any] = field(default_factory=dict)
    """The same for what follows from that scope and the classes."""

    def function_of(self, scope: Scope) -> FunctionRecord | None:
        """The function whose body a scope is."""
        return self.functions.get(scope.qualname) if scope.kind == "function" else None

    def body_of(self, scope: Scope) -> list[ast.stmt]:
        """The statements of a function or the module; none for the scope of a class."""
        function = self.function_of(scope)
        return function.node.body if function is not None else self.statements if scope.kind == "module" else []

    @cached_property
    def notes(self) -> dict[object, Any]:
        """A cache for what later stages derive from a part: it is as long-lived as the tree of the statement."""
        return {}

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """What the rest of the file sees of a part, apart from what it binds in the module."""
        return self.shape_of_classes, frozenset(self.renamed)

    @cached_property
    def shape_of_classes(self) -> tuple[object, ...]:
        """What the rest of the file sees of its classes."""
        return tuple(map(_shape_of, self.classes.values()))

    @cached_property
    def stored_by_others(self) -> frozenset[str]:
        """The attributes that code outside of the class of their object sets."""
        return frozenset(name for name, owners in self.attribute_owners.items() if "" in owners)

    @cached_property
    def used_at_once(self) -> frozenset[str]:
        """The names of what is called, and its result at once: ``Layer`` of ``Layer(n)(x)`` and ``Layer(n).run(x)``.

        Also where the result has a name in a function that calls it once, and does not hand it on.
        """
        if self.parts:
            return frozenset().union(*(each.used_at_once for each in self.parts))
        return frozenset(last_name(dotted_name(each.func) or "") for each in self._made_at_once)

    @cached_property
    def made_to_last(self) -> frozenset[str]:
        """The names of what is called, and its result kept, handed on or used again: ``Layer`` of ``a = Layer(n)``."""
        if self.parts:
            return frozenset().union(*(each.made_to_last for each in self.parts))
        calls = (each for each in self.calls if not each.scope.is_of_a_test)
        return frozenset(each.name for each in calls if each.node not in self._made_at_once)

    @cached_property
    def _made_at_once(self) -> frozenset[ast.Call]:
        """The calls whose result is called at once. What a test does tells nothing about the others that use it."""
        found = set[ast.Call]()
        for call in self.calls:
            func = call.node.func
            made: ast.expr | None = func.value if isinstance(func, ast.Attribute) else func
            if isinstance(made, ast.Name):
                made = self._made_for_a_call(made, call.scope)
            if isinstance(made, ast.Call) and not call.scope.is_of_a_test:
                found.add(made)
        return frozenset(found)

    def _made_for_a_call(self, called: ast.Name, scope: Scope) -> ast.expr | None:
        """What a function binds a name to, if it is an object of a class, by its name, and is called once."""
        function = self.function_of(scope)
        bounds = scope.names.get(called.id, ()) if function is not None else ()
        made = bounds[0].value if len(bounds) == 1 else None
        of_class = isinstance(made, ast.Call) and last_name(dotted_name(made.func) or "")[:1].isupper()
        if function is None or not of_class:
            return None
        inside = [*nodes_in(function.node)]
        again = {each for loop in inside if isinstance(loop, _LOOPS) for each in nodes_in(loop)}
        names = (each for each in inside if isinstance(each, ast.Name) and each.id == called.id)
        read: set[ast.expr] = {each for each in names if isinstance(each.ctx, ast.Load)}
        callees = {each.func for each in inside if isinstance(each, ast.Call)}
        attributes = {each for each in inside if isinstance(each, ast.Attribute) and each.value in read}
        run = read & callees or attributes & callees
        local = len(read) == len(read & callees) + len(attributes)
        return made if local and len(run) == 1 and run.isdisjoint(again) else None

    def has_derived(self, base: ClassRecord) -> bool:
        """Whether a class of this file may derive from another one of it."""
        named = f"{LOCAL}{base.qualname}"
        return any(named in names for each in self.classes.values() for names in each.bases)

    @cached_property
    def call_names(self) -> frozenset[str]:
        """The last parts of the names of what it calls."""
        return frozenset(call.name for call in self.calls)

    # Queries

    def calls_named(self, names: frozenset[str]) -> Iterator[CallRecord]:
        """The calls whose callee has one of these last parts of a name."""
        for part in self.parts or (self,):
            if not names.isdisjoint(part.call_names):
                yield from (call for call in part.calls if call.name in names)

    def class_of(self, dotted: str, scope: Scope, line: int) -> str | None:
        """The qualified name of the class of this file that ``dotted`` certainly denotes for code at ``line``.

        None for anything else: a name that is rebound, or that an ``if`` binds to different classes.
        """
        found = set(meanings(dotted, scope, line))
        return self._class(found.pop()) if len(found) == 1 else None

    def classes_of(self, dotted: str, scope: Scope) -> set[str]:
        """The qualified names of the classes of this file that ``dotted`` may denote."""
        return {name for name in map(self._class, resolutions(dotted, scope)) if name is not None}

    def _class(self, meaning: str | None) -> str | None:
        name = meaning[len(LOCAL) :] if meaning is not None and meaning.startswith(LOCAL) else None
        return name if name in self.classes else None

    def names_for(self, names: Iterable[str]) -> frozenset[str]:
        """The last parts of all names by which this file may refer to something that ends in one of ``names``."""
        return reached(names, self.renamed)

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The imported names of what the file calls and does not define, sorted."""
        if "names" not in self.shared:
            self.shared["names"] = frozenset(name for _origin, name in self.renamed)
        called = tuple(part.called_among(self.shared["names"]) for part in self.parts or (self,))
        known: tuple[object, tuple[str, ...]] | None = self.shared.get("called")
        if known is None or known[0] != called:
            known = self.shared["called"] = called, tuple(sorted(set().union(*called)))
        return known[1]

    def called_among(self, names: frozenset[str]) -> frozenset[str]:
        """Like ``called``, for a part of a file whose imports and assignments bind these ``names``."""
        known = self.notes.get("called")
        if known is None or (known[0] is not names and known[0] != names):
            found = frozenset(
                name
                for path, scope, line in self._calls_of_names(names)
                for name in meanings(path, scope, line)
                if name is not None and not name.startswith((LOCAL, "builtins."))
            )
            known = self.notes["called"] = (names, found)
        called: frozenset[str] = known[1]
        return called

    def _calls_of_names(self, names: frozenset[str]) -> Iterator[tuple[str, Scope, int]]:
        """The dotted names that are called and may be imported, each with a scope and a line of a call.

        A name with a single binding means the same wherever that binding is visible, and is yielded once.
        """
        starred = "*" in names
        seen: set[tuple[str, Scope]] = set()
        for record in self.calls:
            head = record.node.func
            while type(head) is ast.Attribute:
                head = head.value
            if type(head) is not ast.Name or not (starred or head.id in names):
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


def _shape_of(record: ClassRecord) -> tuple[object, ...]:
    """What code outside of a class depends on: its bases, and what its body binds."""
    body = record.body
    bound = tuple(
        (name, each._replace(value=None), each.is_none, dotted_name(each.value) if each.value is not None else None)
        for name, bounds in body.names.items()
        for each in bounds
    )
    return record.qualname, record.bases, tuple(body.stars), bound
