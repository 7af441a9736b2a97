"""Name binding: the bindings of a file, scope by scope, from one ``ast`` pass.

A dotted name resolves to the name it was imported as (``torch.autograd.Function``), to ``local:Qualified.Name`` for a
class or function of the file, to ``builtins.len``, or to None if nothing certain is known.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    import re
    from typing import TypeGuard

LOCAL = "local:"
"""Prefix of the names of classes and functions that the file itself defines."""

_BUILTINS = frozenset(dir(builtins))


def is_builtin(name: str) -> bool:
    """Whether Python defines it where nothing else does."""
    return name in _BUILTINS


_MAX_BINDINGS = 100
"""A name with more conditional bindings than this is unknown."""


class Bound(NamedTuple):
    """One binding of a name. ``kind`` is ``import``, ``class``, ``def``, ``assign``, ``star`` or ``other``.

    ``target`` is the imported dotted name, or the qualified name of the class or function; ``value`` is the assigned
    expression. ``conditional``: the binding is under ``if``, ``try``, a loop or the like; ``chosen``: an ``if`` or
    ``match`` decides on it; ``handler``: it is in an ``except`` clause; ``for_types``: under ``if TYPE_CHECKING:``.
    """

    kind: str
    line: int
    conditional: bool
    target: str = ""
    value: ast.expr | None = None
    chosen: bool = False
    handler: bool = False
    for_types: bool = False

    @property
    def is_none(self) -> bool:
        """Whether ``None`` is assigned."""
        return type(self.value).__name__ == "Constant" and getattr(self.value, "value", ...) is None


@dataclass(eq=False)
class Scope:
    """A module, function or class body. ``names`` maps each name bound there to its bindings in order."""

    kind: str
    qualname: str
    parent: Scope | None = None
    names: dict[str, list[Bound]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules that are star-imported here."""
    conditions: list[ast.expr] = field(default_factory=list)
    """The conditions of ``if`` here, as a statement or in an expression."""
    resolved: dict[str, list[str | None]] = field(default_factory=dict)
    """What dotted names that are bound here may denote, seen from an inner scope; see ``resolutions``."""
    followed: dict[tuple[str, int, int], str | None] = field(default_factory=dict)
    """What dotted names that are assigned here denote, by name, line and depth."""
    fallback: bool = False
    """Whether the function or class is defined in an ``except`` clause."""

    @cached_property
    def is_of_a_test(self) -> bool:
        """Whether it is that of a test, or of a class of tests, by its name, which says little about other uses."""
        return any(each.lower().startswith("test") for each in self.qualname.split("."))

    def bind(self, name: str, bound: Bound) -> None:
        """Add a binding."""
        found = self.names.get(name)
        if found is None:
            self.names[name] = [bound]
        else:
            found.append(bound)

    def live(self, name: str, before: int | None = None) -> list[Bound]:
        """The bindings of ``name`` that may be in force, the last one last.

        Those before the last unconditional one are dead. With ``before``, bindings after that line do not count if
        there are earlier ones (a class body runs where it is).
        """
        found = self.names.get(name, [])
        if before is not None:
            found = [bound for bound in found if bound.line < before] or found
        for at in range(len(found) - 1, -1, -1):
            if not found[at].conditional:
                return found[at:]
        return found

    def intended(self, name: str, before: int | None = None) -> list[Bound]:
        """Like ``live``, without substitutes for a missing import: ``except`` clauses, and ``name = None``.

        Empty if there are too many.
        """
        found = self.live(name, before)
        if len(found) > _MAX_BINDINGS:
            return []
        return [bound for bound in found if not bound.handler and not bound.is_none] or found

    def owner(self, name: str) -> Scope | None:
        """The scope whose binding of ``name`` is visible here, by Python's rules; None for a builtin or unknown."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if (first or scope.kind != "class") and name in scope.names:
                return scope
            first = False
            scope = scope.parent
        return None

    def sees_star_import(self) -> bool:
        """Whether a star import in this or an enclosing scope may bind any name."""
        return bool(self.stars) or (self.parent is not None and self.parent.sees_star_import())

    @property
    def is_in_function(self) -> bool:
        """Whether it is the scope of a function, or inside one: its bindings are not accessible from outside."""
        return self.kind == "function" or (self.parent is not None and self.parent.is_in_function)

    def function_locals(self) -> frozenset[str]:
        """Every name bound in this or an enclosing function."""
        found: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            if scope.kind == "function":
                found.update(scope.names)
            scope = scope.parent
        return frozenset(found)


def resolutions(dotted: str, scope: Scope, line: int | None = None, depth: int = 0) -> list[str | None]:
    """Everything that ``dotted`` may denote in ``scope``: several if bindings are conditional, the last one last."""
    head, _, rest = dotted.partition(".")
    owner = scope.owner(head)
    if owner is None:
        return [_unbound(head, rest, scope)]
    before = line if owner is scope or owner.kind == "module" else None
    if before is not None or depth:
        return _followed(owner.live(head, before), rest, owner, depth)
    if dotted not in owner.resolved:
        owner.resolved[dotted] = _followed(owner.live(head), rest, owner, 0)
    return owner.resolved[dotted]


def _followed(bounds: list[Bound], rest: str, owner: Scope, depth: int) -> list[str | None]:
    return [None] if len(bounds) > _MAX_BINDINGS else [_follow(bound, rest, owner, depth) for bound in bounds]


def resolve(dotted: str, scope: Scope, line: int | None = None) -> str | None:
    """What ``dotted`` certainly denotes; None if that is unknown or depends on a condition.

    If the same name is imported from two places (``try: from a import f / except ImportError: from b import f``), the
    first one that resolves counts: it is the one that the author prefers.
    """
    found = [each for each in resolutions(dotted, scope, line) if each is not None]
    return found[0] if found else None


def resolve_certainly(dotted: str, scope: Scope, depth: int = 0) -> str | None:
    """What ``dotted`` denotes on every path except fallbacks; None if an ``if`` decides, or nothing is certain.

    Bindings in an ``except`` clause are fallbacks: ``try: from a import f``, ``except ImportError: f = None`` means
    ``a.f``.
    """
    head, _, rest = dotted.partition(".")
    owner = scope.owner(head)
    if owner is None:
        return _unbound(head, rest, scope)
    bounds = owner.live(head)
    meanings = {_follow_certainly(bound, rest, owner, depth) for bound in bounds if not bound.handler}
    if any(bound.chosen for bound in bounds) or len(meanings) != 1:
        return None
    return meanings.pop()


def meanings(dotted: str, scope: Scope, line: int) -> list[str | None]:
    """What ``dotted`` may denote for code at ``line``, without fallbacks; empty if it depends on when the code runs.

    Code in the scope that binds the name sees the bindings above it. Code in a function sees the last binding, unless
    the function is between two: then it may have been called before the second.
    """
    head, _, rest = dotted.partition(".")
    owner = scope.owner(head)
    if owner is None:
        return [_unbound(head, rest, scope)]
    return [_follow(bound, rest, owner, 0) for bound in bindings(head, owner, scope, line)]


def bindings(name: str, owner: Scope, scope: Scope, line: int) -> list[Bound]:
    """The bindings of a name of ``owner`` that are visible to code at ``line`` of ``scope``; see ``meanings``.

    What an ``except`` clause defines sees the fallbacks.
    """
    found = owner.names[name]
    if len(found) == 1:
        return found
    if owner is scope:
        return owner.intended(name, line)
    if scope.fallback:
        fallbacks = [bound for bound in owner.live(name) if bound.handler]
        return fallbacks or owner.intended(name)
    lines = [bound.line for bound in found]
    return [] if min(lines) < line < max(lines) else owner.intended(name)


def _follow_certainly(bound: Bound, rest: str, owner: Scope, depth: int) -> str | None:
    if bound.kind != "assign":
        return _follow(bound, rest, owner, depth)
    dotted = dotted_name(bound.value) if bound.value is not None and depth < 8 else None
    if dotted is None:
        return None
    return resolve_certainly(f"{dotted}.{rest}" if rest else dotted, owner, depth + 1)


def _unbound(head: str, rest: str, scope: Scope) -> str | None:
    """An unbound name: a builtin, or from the only star-imported module; unknown if it may be either."""
    suffix = f".{rest}" if rest else ""
    module: Scope | None = scope
    stars: list[str] = []
    while module is not None:
        stars.extend(module.stars)
        module = module.parent
    for star in stars:
        if star in ("torch.autograd", "torch.autograd.function") and head in ("Function", "InplaceFunction"):
            return f"torch.autograd.{head}"
    if head in _BUILTINS:
        return None if stars else f"builtins.{head}{suffix}"
    if len(stars) != 1:
        return None
    return f"{stars[0]}.{head}{suffix}" if stars[0].strip(".") else f"{stars[0]}{head}{suffix}"


def _follow(bound: Bound, rest: str, owner: Scope, depth: int) -> str | None:
    suffix = f".{rest}" if rest else ""
    if bound.kind == "import":
        return bound.target + suffix
    if bound.kind in ("class", "def"):
        return LOCAL + bound.target + suffix
    if bound.kind == "assign" and bound.value is not None and depth < 8:
        dotted = dotted_name(bound.value)
        if dotted is not None:
            key = (dotted + suffix, bound.line, depth)
            if key not in owner.followed:
                found = resolutions(dotted + suffix, owner, bound.line, depth + 1)
                owner.followed[key] = next((each for each in found if each is not None), None)
            return owner.followed[key]
    return None


def is_on_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether an expression is an attribute of ``self``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def dotted_name(node: ast.AST) -> str | None:
    """``a.b.c`` of an attribute chain, None for any other expression."""
    parts: list[str] = []
    while True:
        kind = type(node)
        if kind is ast.Attribute:
            parts.append(node.attr)  # type: ignore[attr-defined]
            node = node.value  # type: ignore[attr-defined]
        elif kind is ast.Name:
            parts.append(node.id)  # type: ignore[attr-defined]
            if len(parts) == 1:
                return parts[0]
            return ".".join(reversed(parts))
        else:
            return None


_LONGEST_NAME = 200
"""The rest of a longer name is not read: some patterns need quadratic time."""


def mentions(test: ast.expr, words: re.Pattern[str]) -> bool:
    """Whether a name or an attribute in a condition contains one of the words."""
    return any(
        words.search(name, 0, _LONGEST_NAME) is not None
        for node in nodes_in(test)
        for name in (getattr(node, "id", None), getattr(node, "attr", None))
        if isinstance(name, str)
    )
