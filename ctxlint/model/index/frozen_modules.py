"""Modules and tensors that code freezes: ``head.requires_grad_(False)``, or the same for all its parameters."""

from __future__ import annotations

import ast
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import bound_names, nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

REQUEST = "requires_grad"
"""What the text of code contains that freezes anything."""


class Frozen(NamedTuple):
    """What is frozen, by its dotted name; ``whole``: with all parameters in it, if it is a module."""

    path: str
    whole: bool

    @property
    def head(self) -> str:
        """The first part of its name."""
        return self.path.partition(".")[0]

    def has(self, path: str) -> bool:
        """Whether a dotted name is that of it, or of a part of it."""
        return path == self.path or (self.whole and path.startswith(f"{self.path}."))


class Freezing:
    """What is certainly frozen while some statements run one after the other, by the first part of its name."""

    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        """Each name is noted with the last line of every statement that changes what is frozen of it."""
        self._noted: dict[str, list[tuple[int, frozenset[Frozen], int]]] = {}
        self._now: dict[str, frozenset[Frozen]] = {}
        self._others: dict[str, str] = {}
        for statement in statements:
            self._run(statement)

    def at(self, name: str, line: int) -> frozenset[Frozen]:
        """What is frozen of a name on a line: before the statement there, and after it, as that may be a loop."""
        noted = self._noted.get(name, ())
        at = bisect_left(noted, line, key=itemgetter(0))
        before = noted[at - 1][1] if at else frozenset[Frozen]()
        return before & noted[at][1] if at < len(noted) and noted[at][2] <= line else before

    def at_end(self, name: str) -> frozenset[Frozen]:
        """What is frozen of a name in the end."""
        return self._now.get(name, frozenset())

    def _run(self, statement: ast.stmt) -> None:
        frozen = list(_frozen(statement))
        match statement:
            case ast.Assign([ast.Attribute() as target], ast.Name(name)):
                self._others[name] = dotted_name(target) or ""
        if not self._now and not frozen:
            return
        nodes = nodes_in(statement)
        if not frozen and any(map(_sets_flag, nodes)):  # it may be about any of them
            for name in [*self._now]:
                self._note(statement, name, frozenset())
            return
        deeds = _Deeds.of(nodes, self._others)
        for name in deeds.heads & self._now.keys():
            self._note(statement, name, deeds.leave(self._now[name]))
        for each in frozen:
            self._note(statement, each.head, self.at_end(each.head) | {each})

    def _note(self, statement: ast.stmt, name: str, found: frozenset[Frozen]) -> None:
        if found == self.at_end(name):
            return
        entry = (statement.end_lineno or statement.lineno, found, statement.lineno)
        self._noted.setdefault(name, []).append(entry)
        self._now[name] = found
        if not found:
            del self._now[name]


class _Deeds(NamedTuple):
    """What code does to objects, by their dotted names, that may change whether all in them is frozen."""

    bound: frozenset[str]
    """It binds these, or changes the values of these tensors."""
    run: frozenset[str]
    """It calls a method of these, which may add to a module."""
    handed: frozenset[str]
    """Other code gets these."""

    @property
    def heads(self) -> frozenset[str]:
        """The first parts of the names."""
        return frozenset(each.partition(".")[0] for each in (*self.bound, *self.run, *self.handed))

    @classmethod
    def of(cls, nodes: Sequence[ast.AST], others: Mapping[str, str]) -> _Deeds:
        """``others`` are the attributes that names are kept as."""
        bound = frozenset([*bound_names(nodes), *_attributes_set(nodes), *_modified(nodes)])
        run, handed = (_also(found, others) for found in (_run(nodes), _handed(nodes)))
        return cls(bound, run, handed)

    def leave(self, frozen: frozenset[Frozen]) -> frozenset[Frozen]:
        """What of it is still frozen."""
        found = (each for each in frozen if not any(_is_within(each.path, one) for one in self.bound))
        return frozenset(each._replace(whole=False) if self._may_add_to(each.path) else each for each in found)

    def _may_add_to(self, path: str) -> bool:
        """Whether a module may get other parameters."""
        if path in self.handed or any(_is_within(each, path) for each in (*self.bound, *self.run)):
            return True
        return any(_is_within(path, each) for each in (*self.run, *self.handed))


def _also(found: Iterable[str], others: Mapping[str, str]) -> frozenset[str]:
    """Dotted names, and those of the attributes which some of their first parts are kept as."""
    parts = [each.partition(".") for each in found]
    kept = ((others[head], dot, rest) for head, dot, rest in parts if head in others)
    return frozenset(map("".join, (*parts, *kept)))


def _is_within(path: str, other: str) -> bool:
    """Whether a dotted name is another one, or that of a part of it."""
    return f"{path}.".startswith(f"{other}.")


def _sets_flag(node: ast.AST) -> bool:
    """Whether it sets whether a gradient is required."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "requires_grad_" or (node.attr == "requires_grad" and not isinstance(node.ctx, ast.Load))


def _frozen(statement: ast.stmt) -> Iterator[Frozen]:
    """What a statement certainly freezes."""
    match statement:
        case ast.For(target, ast.Call(ast.Attribute(owner, "parameters" | "named_parameters"), [], []), body):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            leaves = any(isinstance(each, _LEAVING) for each in nodes_in(statement))
            name, path = getattr(names[-1], "id", ""), dotted_name(owner)
            inside = Freezing(body).at_end(name) if path is not None and not leaves else ()
            if path is not None and any(each.path == name for each in inside):
                yield Frozen(path, whole=True)
        case ast.Expr(ast.Call(ast.Attribute(owner, "requires_grad_"), [ast.Constant(False)], [])):
            yield from (Frozen(path, whole=True) for path in [dotted_name(owner)] if path is not None)
        case ast.Assign([ast.Attribute(owner, "requires_grad")], ast.Constant(False)):
            yield from (Frozen(path, whole=False) for path in [dotted_name(owner)] if path is not None)


_LEAVING = (ast.Break, ast.Continue, ast.Return)


def _attributes_set(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The dotted names of the attributes that code sets or deletes."""
    for each in nodes:
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
            yield from (path for path in [dotted_name(each)] if path is not None)


def _modified(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The dotted names of what code modifies in place, other than its flag."""
    for each in nodes:
        match each:
            case ast.Call(ast.Attribute(owner, name)) if name.endswith("_") and name not in ("requires_grad_", "__"):
                yield from (path for path in [dotted_name(owner)] if path is not None)
            case ast.Subscript(owner, ctx=ast.Store() | ast.Del()):
                yield from (path for path in [dotted_name(owner)] if path is not None)


def _run(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The dotted names of what code calls a method of that may change what it consists of."""
    for each in nodes:
        func = each.func if isinstance(each, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr not in _HARMLESS:
            yield from (path for path in [dotted_name(func.value)] if path is not None)


def _handed(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The dotted names of what code passes on, or keeps."""
    used = {id(each.value) for each in nodes if isinstance(each, ast.Attribute)}
    used |= {id(each.func) for each in nodes if isinstance(each, ast.Call)}
    for each in nodes:
        if isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Load) and id(each) not in used:
            yield from (path for path in [dotted_name(each)] if path is not None)


_HARMLESS = frozenset(
    ["cuda", "eval", "half", "named_parameters", "parameters", "register_buffer", "requires_grad_", "to", "train"]
)
"""The methods of a module that leave it with the same parameters."""
