"""The calls of Functions that a transform of ``torch.func``, or forward-mode AD, certainly runs.

From the function that is transformed, calls that are executed whatever happens are followed: of functions and lambdas
of the file, methods, and modules that are created in view.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ctxlint.model.index.apply_calls import APPLIES, ApplyCall, Transform
from ctxlint.model.index.certain_calls import certain_calls, computes_with
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, meanings
from ctxlint.torch_api.transforms import (
    DUAL,
    FUNCTIONAL_CALLS,
    NEEDS_JVP,
    SAME_MODULE,
    TRANSFORMS,
    TRANSPARENT,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.index.file_index import CallRecord, FileIndex
    from ctxlint.source.source import Source, Span

_MOST_HOPS = 12
"""The maximum number of names and calls between a transform and what it transforms."""


class CalledCode(NamedTuple):
    """The body of a function or lambda that is called; ``receiver``: it is a method that gets ``self`` first."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    receiver: bool = False


class Applied(NamedTuple):
    """The ``apply`` of a Function that is passed on, and not called in view."""

    function: str
    node: ast.expr


Target = CalledCode | Applied
"""What a call certainly executes."""


class Sites(Protocol):
    """What is known of the names of the file; see ``CallSites``."""

    @property
    def source(self) -> Source:
        """The file."""

    @property
    def index(self) -> FileIndex:
        """Its index."""

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


class Transforms:
    """Finds the calls of one file that are transformed."""

    def __init__(self, sites: Sites, calls: Iterable[ApplyCall]) -> None:
        """``calls`` are the known calls on Functions."""
        self.sites = sites
        self.index = sites.index
        self.calls = {call.span: call for call in calls if call.how in APPLIES}
        self.records: dict[int, CallRecord] = {}
        self.scopes: dict[str, Scope] = {}
        for record in self.index.calls:
            self.records[id(record.node)] = record
            scope: Scope | None = record.scope
            while scope is not None and scope.qualname not in self.scopes:
                self.scopes[scope.qualname] = scope
                scope = scope.parent
        self.found: dict[Span, list[Transform]] = {}
        self.passed: dict[tuple[str, Span], list[Transform]] = {}

    @cached_property
    def guarded(self) -> set[int]:
        """The identities of the calls in a ``try`` with handlers."""
        return {
            id(each)
            for statement in self.index.statements
            for tried in ast.walk(statement)
            if isinstance(tried, ast.Try) and tried.handlers
            for inner in tried.body
            for each in ast.walk(inner)
            if isinstance(each, ast.Call)
        }

    def transformed(self) -> list[ApplyCall]:
        """The calls that are transformed, and a record of each ``apply`` that a transform gets itself."""
        names = self.index.names_for({*TRANSFORMS.values(), "make_dual"})
        for record in self.index.calls:
            if record.name in names and not record.expects_error:
                self._of_call(record)
        for function in self.index.functions.values():
            for decorator in function.node.decorator_list:
                name = self._transform(decorator, function.scope)
                if name is not None:
                    transform = Transform(name, ast.unparse(decorator), self._line(decorator))
                    self._run([CalledCode(function.node)], transform, first=True)
        found = [replace(self.calls[span], transforms=tuple(each)) for span, each in self.found.items()]
        return found + [self._record_of(*key, tuple(each)) for key, each in self.passed.items()]

    def _of_call(self, record: CallRecord) -> None:
        """Follow what a call of a transform transforms."""
        node, scope = record.node, record.scope
        written = dotted_name(node.func) or ""
        meant = set(meanings(written, scope, node.lineno)) if written else set()
        if meant.isdisjoint((DUAL, *TRANSFORMS)) or id(node) in self.guarded:
            return
        if meant == {DUAL}:
            self._with_duals(record, Transform("make_dual", written, self._line(node)))
            return
        if len(meant) != 1 or (full := meant.pop()) is None or full not in TRANSFORMS:
            return
        passed = node.args[0] if node.args else next((each.value for each in node.keywords if each.arg == "func"), None)
        if passed is None or isinstance(passed, ast.Starred):
            return
        chosen = any(each.arg in ("argnums", None) for each in node.keywords) or len(node.args) > 1
        first = not chosen or TRANSFORMS[full] in ("jvp", "linearize")  # their second argument is no `argnums`
        transform = Transform(TRANSFORMS[full], written, self._line(node))
        self._run(self._targets(passed, scope), transform, first=first)

    def _transform(self, decorator: ast.expr, scope: Scope) -> str | None:
        """The transform that a decorator applies: ``@vmap``, ``@partial(vmap, in_dims=1)``."""
        if isinstance(decorator, ast.Call):
            if self._meaning(decorator.func, scope) != "functools.partial" or not decorator.args:
                return None
            decorator = decorator.args[0]
        return TRANSFORMS.get(self._meaning(decorator, scope) or "")

    def _meaning(self, node: ast.expr, scope: Scope) -> str | None:
        """What a dotted name certainly denotes."""
        path = dotted_name(node)
        found = set(meanings(path, scope, node.lineno)) if path is not None else set()
        return found.pop() if len(found) == 1 else None

    def _line(self, node: ast.expr) -> str:
        return self.sites.source.line_name(node.lineno)

    # What is called

    def _run(self, targets: Sequence[Target], transform: Transform, *, first: bool) -> None:
        """Record the calls that the targets certainly execute; ``first``: their first parameter carries a tangent."""
        forward = transform.name in NEEDS_JVP
        seen: set[tuple[int, frozenset[str]]] = set()
        for target in targets:
            if isinstance(target, Applied):
                self._pass(target, replace(transform, tangent=forward and first))
                continue
            parameters = _parameters(target)[:1] if forward and first else []
            self._follow(_body(target), frozenset(parameters), transform, seen, _MOST_HOPS)

    def _with_duals(self, record: CallRecord, transform: Transform) -> None:
        """Follow the tangents that ``make_dual`` attaches in a function, or in the module."""
        entry = self.index.functions.get(record.scope.qualname) if record.scope.kind == "function" else None
        body = entry.node.body if entry is not None else self.index.statements if record.scope.kind == "module" else []
        self._follow(body, frozenset(), transform, set(), _MOST_HOPS, record.node)

    def _follow(
        self,
        body: Sequence[ast.stmt],
        flowing: frozenset[str],
        transform: Transform,
        seen: set[tuple[int, frozenset[str]]],
        hops: int,
        dual: ast.Call | None = None,
    ) -> None:
        """Record the calls that a body certainly executes, and follow those of functions; ``dual`` makes a tangent."""
        if not body or (id(body[0]), flowing) in seen or not hops:
            return
        seen.add((id(body[0]), flowing))
        for call, carrying in certain_calls(body, flowing, dual):
            record = self.records.get(id(call))
            if record is None:
                continue
            carries = [computes_with(each, carrying, dual) for each in call.args]
            known = self.calls.get(self.sites.source.span_of(call))
            if known is not None:
                if transform.name != "make_dual" or any(carries):
                    self._add(known.span, replace(transform, tangent=any(carries)))
                continue
            functional = self._meaning(call.func, record.scope) in FUNCTIONAL_CALLS and bool(call.args)
            callee = call.args[0] if functional else call.func
            for target in self._targets(callee, record.scope):
                if isinstance(target, Applied):
                    continue
                names = _parameters(target)
                given = frozenset(name for name, each in zip(names, [] if functional else carries) if each)
                self._follow(_body(target), given, transform, seen, hops - 1)

    def _add(self, span: Span, transform: Transform) -> None:
        known = self.found.setdefault(span, [])
        if transform not in known:
            known.append(transform)

    def _pass(self, target: Applied, transform: Transform) -> None:
        known = self.passed.setdefault((target.function, self.sites.source.span_of(target.node)), [])
        if transform not in known:
            known.append(transform)

    def _record_of(self, function: str, span: Span, transforms: tuple[Transform, ...]) -> ApplyCall:
        """A record of an ``apply`` that is passed to a transform."""
        return ApplyCall(
            function=function,
            how="transform",
            span=span,
            positional=0,
            starred=True,
            keywords=(),
            double_starred=True,
            arguments=(),
            line=self.sites.source.line_name(span.start.line),
            transforms=transforms,
        )

    # What an expression denotes

    def _targets(self, node: ast.expr, scope: Scope, hops: int = _MOST_HOPS) -> list[Target]:
        """What calling the value of an expression certainly executes; empty if that is unknown."""
        if not hops:
            return []
        if isinstance(node, ast.Lambda):
            return [CalledCode(node)]
        if isinstance(node, ast.Name):
            return self._named(node, scope, hops)
        if isinstance(node, ast.Attribute):
            if node.attr == "apply":
                owner = self.sites.function_of(node.value, scope) or self.sites.function_of_instance(node.value, scope)
                return [Applied(owner, node)] if owner is not None else []
            return self._of_self(node, scope, hops)
        return self._made(node, scope, hops) if isinstance(node, ast.Call) else []

    def _named(self, node: ast.Name, scope: Scope, hops: int) -> list[Target]:
        """A function, the ``apply`` of a Function, or what is assigned to the name."""
        applied = self.sites.applied_by(node, scope)
        if applied is not None:
            return [Applied(applied, node)]
        meant = self._meaning(node, scope)
        if meant is not None and meant.startswith(LOCAL):
            return self._function(meant[len(LOCAL) :])
        value, owner = self.sites.bound_value(node, scope), scope.owner(node.id)
        return self._targets(value, owner, hops - 1) if value is not None and owner is not None else []

    def _function(self, qualname: str, *, receiver: bool = False) -> list[Target]:
        """A function or method of the file, unless a decorator or a condition decides what it is."""
        found = self.index.functions.get(qualname)
        if found is None or not found.certain or found.conditional or isinstance(found.node, ast.AsyncFunctionDef):
            return []
        if any(not self._is_transparent(each, found.scope) for each in found.node.decorator_list):
            return []
        return [CalledCode(found.node, receiver)]

    def _is_transparent(self, decorator: ast.expr, scope: Scope) -> bool:
        """Whether a decorated function still executes the same calls."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self._meaning(called, scope) in TRANSPARENT or self._transform(decorator, scope) is not None

    def _of_self(self, node: ast.Attribute, scope: Scope, hops: int) -> list[Target]:
        """``self.method``, or ``self.layer`` with its only value."""
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            return []
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
        return self._targets(value, self.scopes.get(f"{around.qualname}.__init__", scope), hops - 1) if value else []

    def _made(self, node: ast.Call, scope: Scope, hops: int) -> list[Target]:
        """What the result of a call executes: a transform, a partial function, a module, what a function returns."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in SAME_MODULE and not dotted_name(node.func):
            return self._targets(node.func.value, scope, hops - 1)
        meant = self._meaning(node.func, scope)
        if meant is None:
            return []
        if meant in TRANSFORMS or meant in TRANSPARENT:
            return self._targets(node.args[0], scope, hops - 1) if node.args else []
        if meant == "torch.nn.Sequential":
            return [target for each in node.args for target in self._targets(each, scope, hops - 1)]
        if not meant.startswith(LOCAL):
            return []
        name = meant[len(LOCAL) :]
        if name in self.index.classes:
            return self._forward_of(name)
        return [target for value, inner in self._returned(name) for target in self._targets(value, inner, hops - 1)]

    def _returned(self, qualname: str) -> Iterator[tuple[ast.expr, Scope]]:
        """What a function of the file returns, if that is only one expression, at its end."""
        found, scope = self._function(qualname), self.scopes.get(qualname)
        node = found[0].node if found and isinstance(found[0], CalledCode) else None
        if not isinstance(node, ast.FunctionDef) or scope is None:
            return
        returns = [each for statement in node.body for each in _own_nodes(statement) if isinstance(each, ast.Return)]
        if len(returns) == 1 and returns[0] is node.body[-1] and returns[0].value is not None:
            yield returns[0].value, scope

    def _forward_of(self, qualname: str) -> list[Target]:
        """The ``forward`` of an instance of a module class of the file."""
        todo, hops = qualname, _MOST_HOPS
        found: list[Target] = []
        while hops:
            record = self.index.classes.get(todo)
            if record is None or record.is_redefined or record.alternative or len(record.bases) != 1:
                return []
            if f"{todo}.__call__" in self.index.functions:
                return []
            found = found or self._function(f"{todo}.forward", receiver=True)
            base = record.bases[0][0] if len(record.bases[0]) == 1 else None
            if base is not None and base.startswith("torch.nn."):
                return found
            if base is None or not base.startswith(LOCAL):
                return []
            todo, hops = base[len(LOCAL) :], hops - 1
        return []


def _own_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that are not in a function inside of it."""
    yield statement
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    for child in ast.iter_child_nodes(statement):
        yield from _own_nodes(child)


def _body(target: CalledCode) -> Sequence[ast.stmt]:
    node = target.node
    return [ast.copy_location(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body


def _parameters(target: CalledCode) -> list[str]:
    arguments = target.node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    return names[1:] if target.receiver else names
