"""What expressions of a file denote that can be called: functions, lambdas, modules that are created in view.

Names are followed into other files of the project. What a condition decides is unknown.
"""

from __future__ import annotations

import ast
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from ctxlint.model.index.project_answers import differentiable_operators
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, is_on_self, meanings
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in, positional_names
from ctxlint.torch_api.known_decorators import OPERATOR_DECORATORS
from ctxlint.torch_api.transforms import SAME_MODULE, TRANSFORMS, TRANSPARENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.index.file_index import CallRecord, ClassRecord, FileIndex
    from ctxlint.model.index.foreign_functions import Elsewhere
    from ctxlint.model.index.outside_facts import Target
    from ctxlint.source.source import Source

OPERATORS = "torch.ops."
MOST_HOPS = 12
"""The maximum number of names and calls between an expression and what it denotes."""


class Sites(Protocol):
    """What is known of the names of a file; see ``CallSites``."""

    @property
    def source(self) -> Source:
        """The file."""

    @property
    def index(self) -> FileIndex:
        """Its index."""

    @property
    def elsewhere(self) -> Elsewhere:
        """Resolves its names."""

    def in_file(self, elsewhere: Elsewhere) -> Sites:
        """The same for another file."""

    def call(self, record: CallRecord) -> ApplyCall | None:
        """A call as one on a Function."""

    def gradients_off(self, record: CallRecord) -> bool:
        """Whether possibly no gradient is wanted there."""

    def function_of(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function that an expression certainly denotes."""

    def function_of_instance(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function of an instance."""

    def applied_by(self, node: ast.Name, scope: Scope) -> str | None:
        """The Function whose ``apply`` a name certainly denotes."""

    def bound_value(self, node: ast.Name, scope: Scope) -> ast.expr | None:
        """What a name is assigned."""

    def attribute_values(self, name: str, scope: Scope) -> list[ast.expr | None]:
        """What ``self.name`` is assigned."""


class CalledCode(NamedTuple):
    """The body of a function or lambda of ``file``; ``receiver``: it is a method that gets ``self`` first."""

    file: DenotedCode
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    receiver: bool = False

    @property
    def body(self) -> Sequence[ast.stmt]:
        """Its statements."""
        node = self.node
        return [ast.copy_location(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body

    @property
    def parameters(self) -> list[str]:
        """The names of its positional parameters, apart from ``self``."""
        arguments = self.node.args
        names = positional_names(arguments)
        return names[1:] if self.receiver else names


class Applied(NamedTuple):
    """The ``apply`` of a Function that is passed on, and not called in view."""

    function: Target


class CalledOperator(NamedTuple):
    """A custom operator, by the name of its function."""

    name: str


Called = CalledCode | Applied | CalledOperator
"""What a call certainly executes."""


class DenotedCode:
    """One file, and through it the ``others`` that its names lead to, by their paths."""

    def __init__(self, sites: Sites, others: dict[str, DenotedCode] | None = None) -> None:
        self.sites = sites
        self.index = sites.index
        self.others = others if others is not None else {}
        self.others[sites.elsewhere.path] = self

    @cached_property
    def records(self) -> dict[int, CallRecord]:
        """The calls of the file, by the identities of their nodes."""
        return {id(record.node): record for record in self.index.calls}

    @cached_property
    def scopes(self) -> dict[str, Scope]:
        """The scopes that contain calls, and those around them, by qualified name."""
        found: dict[str, Scope] = {}
        for record in self.index.calls:
            scope: Scope | None = record.scope
            while scope is not None and scope.qualname not in found:
                found[scope.qualname] = scope
                scope = scope.parent
        return found

    def meaning(self, node: ast.expr, scope: Scope) -> str | None:
        """What a dotted name certainly denotes."""
        path = dotted_name(node)
        found = set(meanings(path, scope, node.lineno)) if path is not None else set()
        return found.pop() if len(found) == 1 else None

    def transform(self, node: ast.expr, scope: Scope) -> str | None:
        """The transform that a name certainly denotes, also one that another file of the project imports."""
        meant = self.meaning(node, scope)
        if meant in TRANSFORMS or meant is None or meant.startswith((LOCAL, "builtins.", "torch.")):
            return TRANSFORMS.get(meant or "")
        return TRANSFORMS.get(self.sites.elsewhere.external(meant))

    def decorated_with(self, decorator: ast.expr, scope: Scope) -> str | None:
        """The transform that a decorator applies: ``@vmap``, ``@partial(vmap, in_dims=1)``."""
        if isinstance(decorator, ast.Call):
            if self.meaning(decorator.func, scope) != "functools.partial" or not decorator.args:
                return None
            decorator = decorator.args[0]
        return self.transform(decorator, scope)

    def called(self, node: ast.expr, scope: Scope, hops: int = MOST_HOPS) -> list[Called]:
        """What calling the value of an expression certainly executes; empty if that is unknown."""
        if not hops:
            return []
        if isinstance(node, ast.Lambda):
            return [CalledCode(self, node)]
        if isinstance(node, ast.Call):
            return self._made(node, scope, hops)
        if isinstance(node, ast.Attribute) and node.attr == "apply":
            owner = self.sites.function_of(node.value, scope) or self.sites.function_of_instance(node.value, scope)
            return [Applied(self.sites.elsewhere.target_of(owner))] if owner is not None else []
        if is_on_self(node):
            return self._of_self(node, scope, hops)
        return self._named(node, scope, hops) if isinstance(node, (ast.Name, ast.Attribute)) else []

    def _named(self, node: ast.Name | ast.Attribute, scope: Scope, hops: int) -> list[Called]:
        """A function, the ``apply`` of a Function, or what is assigned to the name."""
        applied = self.sites.applied_by(node, scope) if isinstance(node, ast.Name) else None
        if applied is not None:
            return [Applied(self.sites.elsewhere.target_of(applied))]
        meant = self.meaning(node, scope)
        if meant is not None and meant.startswith(LOCAL):
            return self._function(meant[len(LOCAL) :]) if isinstance(node, ast.Name) else []
        if meant is not None and meant.startswith(OPERATORS):
            return [CalledOperator(meant)] if self._is_declared(meant) else []
        found = self._imported(meant)
        if found is not None:
            other, name = found
            return other.called(_name(name), other.index.module, hops - 1)
        value = self.sites.bound_value(node, scope) if isinstance(node, ast.Name) else None
        owner = scope.owner(node.id) if isinstance(node, ast.Name) else None
        return self.called(value, owner, hops - 1) if value is not None and owner is not None else []

    def _is_declared(self, name: str) -> bool:
        """Whether the project makes ``torch.ops.namespace.name`` of a function, or registers its gradient."""
        wanted = "::".join(name[len(OPERATORS) :].split(".")[:2])
        if wanted in differentiable_operators(self.index):
            return True
        elsewhere = self.sites.elsewhere
        elsewhere.project.ask("declares", "", wanted)
        path = elsewhere.project.declared.get(wanted)
        other = elsewhere.project.unit(path) if path is not None else None
        return other is not None and wanted in differentiable_operators(other.index)

    def _imported(self, meant: str | None) -> tuple[DenotedCode, str] | None:
        """The other file of the project that binds what an imported name denotes, and the name there."""
        if meant is None or meant.startswith((LOCAL, "builtins.", "torch.")):
            return None
        found = self.sites.elsewhere.home(meant)
        if found is None:
            return None
        elsewhere = self.sites.elsewhere.in_file(found[0])
        if elsewhere.path not in self.others:
            DenotedCode(self.sites.in_file(elsewhere), self.others)
        return self.others[elsewhere.path], found[1]

    def _home(self, meant: str | None) -> tuple[DenotedCode, str] | None:
        """The file that defines the function or class that a name denotes, and its qualified name there."""
        if meant is not None and meant.startswith(LOCAL):
            return self, meant[len(LOCAL) :]
        found = self._imported(meant)
        inner = found[0].meaning(_name(found[1]), found[0].index.module) if found is not None else None
        return (found[0], inner[len(LOCAL) :]) if found is not None and inner and inner.startswith(LOCAL) else None

    def _function(self, qualname: str, *, receiver: bool = False) -> list[Called]:
        """A function or method of the file, unless a decorator or a condition decides what it is."""
        found = self.index.functions.get(qualname)
        if found is None or not found.certain or found.conditional or isinstance(found.node, ast.AsyncFunctionDef):
            return []
        if any(self._makes_operator(each, found.scope) for each in found.node.decorator_list):
            return [CalledOperator(found.node.name)]
        if any(not self._is_transparent(each, found.scope) for each in found.node.decorator_list):
            return []
        return [CalledCode(self, found.node, receiver)]

    def _makes_operator(self, decorator: ast.expr, scope: Scope) -> bool:
        """Whether a decorator makes a function a custom operator of ``torch.library``."""
        return isinstance(decorator, ast.Call) and self.meaning(decorator.func, scope) in OPERATOR_DECORATORS

    def _is_transparent(self, decorator: ast.expr, scope: Scope) -> bool:
        """Whether a decorated function still executes the same calls."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self.meaning(called, scope) in TRANSPARENT or self.decorated_with(decorator, scope) is not None

    def _of_self(self, node: ast.Attribute, scope: Scope, hops: int) -> list[Called]:
        """``self.method``, or ``self.layer`` with its only value."""
        around: Scope | None = scope
        while around is not None and around.kind != "class":
            around = around.parent
        if around is None:
            return []
        found = self._function(f"{around.qualname}.{node.attr}", receiver=True)
        if found:
            return found
        values = self.sites.attribute_values(node.attr, scope)
        value = values[0] if len(values) == 1 else None
        return self.called(value, self.scopes.get(f"{around.qualname}.__init__", scope), hops - 1) if value else []

    def _made(self, node: ast.Call, scope: Scope, hops: int) -> list[Called]:
        """What the result of a call executes: a transform, a partial function, a module, what a function returns."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in SAME_MODULE and not dotted_name(node.func):
            return self.called(node.func.value, scope, hops - 1)
        meant = self.meaning(node.func, scope)
        if meant in TRANSPARENT or self.transform(node.func, scope) is not None:
            return self.called(node.args[0], scope, hops - 1) if node.args else []
        if meant == "torch.nn.Sequential":
            return [target for each in node.args for target in self.called(each, scope, hops - 1)]
        found = self._home(meant)
        if found is None:
            return []
        home, name = found
        if name in home.index.classes:
            return home.forward_of(name)
        return [target for value, inner in home.returned(name) for target in home.called(value, inner, hops - 1)]

    def returned(self, qualname: str) -> Iterator[tuple[ast.expr, Scope]]:
        """What a function of the file returns, if that is only one expression, at its end."""
        found, scope = self._function(qualname), self.scopes.get(qualname)
        node = found[0].node if found and isinstance(found[0], CalledCode) else None
        if not isinstance(node, ast.FunctionDef) or scope is None:
            return
        returns = [each for statement in node.body for each in _own_nodes(statement) if isinstance(each, ast.Return)]
        if len(returns) == 1 and returns[0] is node.body[-1] and returns[0].value is not None:
            yield returns[0].value, scope

    def forward_of(self, qualname: str) -> list[Called]:
        """The ``forward`` of an instance of a module class of the file."""
        home, name = self, qualname
        found: list[Called] = []
        below: list[ClassRecord] = []
        for _ in range(MOST_HOPS):
            record = home.index.classes.get(name)
            if record is None or record.is_redefined or record.alternative or len(record.bases) != 1:
                return []
            if f"{name}.__call__" in home.index.functions or (not found and _replaces(below, record)):
                return []
            found = found or home._function(f"{name}.forward", receiver=True)
            base = record.bases[0][0] if len(record.bases[0]) == 1 else None
            if base is not None and base.startswith("torch.nn."):
                return found
            above = home._home(base)
            if above is None:
                return []
            below.append(record)
            home, name = above
        return []


def _name(dotted: str) -> ast.expr:
    """A dotted name at the end of a module."""
    head, *rest = dotted.split(".")
    at = {"lineno": sys.maxsize, "col_offset": 0}
    node: ast.expr = ast.Name(head, ast.Load(), **at)
    for each in rest:
        node = ast.Attribute(node, each, ast.Load(), **at)
    return node


def _replaces(below: Sequence[ClassRecord], above: ClassRecord) -> bool:
    """Whether subclasses define or set what a class reads of ``self``."""
    read = _attributes(above) if below else set()
    return any(not read.isdisjoint({*each.body.names, *_attributes(each, stored=True)}) for each in below)


def _attributes(record: ClassRecord, *, stored: bool = False) -> set[str]:
    """The attributes of ``self`` that a class mentions, or only those that it stores."""
    return {
        node.attr
        for node in nodes_in(record.node)
        if is_on_self(node)
        if not (stored and isinstance(node.ctx, ast.Load))
    }


def _own_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that are not in a function inside of it."""
    yield statement
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    for child in ast.iter_child_nodes(statement):
        yield from _own_nodes(child)
