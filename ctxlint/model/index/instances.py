"""How a file uses its instances of Functions: it calls them, only reads their ``apply``, or unknown."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from dataclasses import replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.source.source import Source, Span


class InstanceUse(Enum):
    """How an instance is used."""

    APPLY_TAKEN = "Fn().apply, which is not called at once"
    APPLIED = "it is kept under a name of which the function or class around it only takes apply"
    METHOD_CALLED = "a method that autograd calls is called on it"
    CALLED = "it is called through the name that holds it, or by torch"
    SHARED = "it is kept under a name of the module, which any file may use"
    UNKNOWN = "unknown"


@record
class Instance:
    """An instance that a file creates; ``calls`` are the places where it is called.

    ``methods`` are the methods that are called on it, with the number of arguments; -1 if that is unknown. ``wanted``:
    not a call of the Function is meant, but the instance, as something takes its ``apply``, or an object keeps it.
    ``tests`` are the places where ``isinstance`` tests it: then it may be called only where it is something else.
    """

    use: InstanceUse
    calls: tuple[Span, ...] = ()
    methods: tuple[tuple[str, int], ...] = ()
    wanted: bool = False
    tests: tuple[Span, ...] = ()


class Instances:
    """The instances of Functions in one file, and the uses of the names that they are bound to.

    The file is walked once, on the first request: it may create any number of instances.
    """

    def __init__(self, source: Source, tree: ast.Module | None) -> None:
        self._source = source
        self._tree = tree
        self._by_name: dict[tuple[object, object], Instance] = {}

    def is_read(self, attribute: str, *, outside: str) -> bool:
        """Whether the file reads an attribute of this name, not only in classes of the name ``outside``."""
        return any(outside not in classes for classes in self._reads.get(attribute, ()))

    @cached_property
    def _reads(self) -> dict[str, set[frozenset[str]]]:
        """The attributes that the file reads, each with the names of the classes around the reads."""
        found: dict[str, set[frozenset[str]]] = defaultdict(set)
        pending: list[tuple[ast.AST, frozenset[str]]] = []
        if self._tree is not None:
            pending.append((self._tree, frozenset()))
        while pending:
            node, classes = pending.pop()
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr].add(classes)
            inside = classes | {node.name} if isinstance(node, ast.ClassDef) else classes
            pending.extend((child, inside) for child in ast.iter_child_nodes(node))
        return found

    def _is_replaced(self, target: ast.AST, home: ast.AST | None) -> bool:
        """Whether the class stores something else than None in an attribute that holds an instance, too."""
        return isinstance(target, ast.Attribute) and self._stored[home, target.attr] > 1

    @cached_property
    def _stored(self) -> Counter[tuple[ast.AST | None, str]]:
        """How often classes store something else than a constant in an attribute, by class and attribute."""
        nodes = nodes_in(self._tree) if self._tree is not None else ()
        kept = (each for each in nodes if isinstance(each, ast.Assign) and not isinstance(each.value, ast.Constant))
        targets = (target for each in kept for target in each.targets if isinstance(target, ast.Attribute))
        return Counter((self._names.home(each), each.attr) for each in targets)

    def made_by(self, call: ApplyCall) -> Instance:
        """The use of the instance that ``call`` creates, as far as the name it is bound to shows."""
        made = self._calls.get(call.span)
        if made is None:
            return Instance(InstanceUse.UNKNOWN)
        place = self._chosen(made)
        parent = self._names.parents[place]
        if isinstance(parent, ast.Attribute):
            method = self._method_called_at(place)
            return Instance(_USES.get(parent.attr, InstanceUse.UNKNOWN), methods=(_method(method),) if method else ())
        if (called := self._called_at(place)) is not None:
            return Instance(InstanceUse.CALLED, (called,))
        target = _stored_as(parent)
        if target is None or isinstance(self._names.scope(target), ast.ClassDef):
            return Instance(InstanceUse.UNKNOWN)
        home = self._names.home(target)
        one_of_several = 1 < len(self._names.bindings(target, home)) <= _MOST_BINDINGS
        key = target if one_of_several else _written(target)
        if (key, home) not in self._by_name:
            found = self._stored_as(target, home)
            shared = replace(found, use=InstanceUse.SHARED, methods=())
            replaced = found.use is InstanceUse.CALLED and self._is_replaced(target, home)
            self._by_name[key, home] = shared if home is self._tree or replaced else found
        return self._by_name[key, home]

    def _stored_as(self, target: ast.Name | ast.Attribute, home: ast.AST | None, hops: int = 0) -> Instance:
        """The use of the instances that are bound to a name of a scope, or passed on from there to an attribute."""
        reads = self._names.reads[_last(target)]
        named = [each for each in reads if _written(each) == _written(target) and self._names.home(each) is home]
        known = self._names.reached(target, named, home)
        tests = sorted(self._source.span_of(call) for each in known if (call := self._tested_at(each)) is not None)
        if tests:
            applies = any(_takes_apply(self._names.parents[each]) for each in known)
            use = InstanceUse.APPLIED if applies else InstanceUse.UNKNOWN
            return Instance(use, tests=tuple(tests[:_MOST_CALLS]), wanted=True)
        passed_on = _stored_as(self._names.parents[known[0]]) if len(known) == 1 else None
        if isinstance(passed_on, ast.Attribute) and hops == 0:
            return self._stored_as(passed_on, self._names.home(passed_on), hops + 1)
        called_at = (self._called_at(each) for each in known)
        calls = tuple(sorted(each for each in called_at if each is not None)[:_MOST_CALLS])
        if calls:
            return Instance(InstanceUse.CALLED, calls)
        methods = [call for each in known if (call := self._method_called_at(each)) is not None]
        if methods:
            spans = tuple(sorted(map(self._source.span_of, methods))[:_MOST_CALLS])
            return Instance(InstanceUse.METHOD_CALLED, spans, tuple(map(_method, methods)))
        applied = [_takes_apply(self._names.parents[each]) for each in known]
        wanted = any(applied) or isinstance(target, ast.Attribute)
        return Instance(InstanceUse.APPLIED if applied and all(applied) else InstanceUse.UNKNOWN, wanted=wanted)

    def _chosen(self, node: ast.AST) -> ast.AST:
        """The outermost conditional expression whose value may be the node."""
        while isinstance(around := self._names.parents[node], ast.IfExp) and node is not around.test:
            node = around
        return node

    def _called_at(self, node: ast.AST) -> Span | None:
        """Where the instance is called, or passed to a torch function that calls it; None if neither."""
        parent = self._names.parents[node]
        if not isinstance(parent, ast.Call):
            return None
        if node is parent.func:
            return self._source.span_of(parent)
        checked = node in parent.args[:1] and dotted_name(parent.func) in self._checkers
        return self._source.span_of(parent) if checked else None

    def _tested_at(self, node: ast.AST) -> ast.Call | None:
        """The call of ``isinstance`` that tests the instance; None if there is none."""
        call = self._names.parents[node]
        is_test = isinstance(call, ast.Call) and dotted_name(call.func) == "isinstance" and node in call.args[:1]
        return call if is_test and isinstance(call, ast.Call) else None

    def _method_called_at(self, node: ast.AST) -> ast.Call | None:
        """The call of a method that autograd calls, directly on the instance; None if there is none."""
        taken = self._names.parents[node]
        call = self._names.parents.get(taken)
        is_direct = isinstance(taken, ast.Attribute) and taken.attr in PROTOCOL and isinstance(call, ast.Call)
        return call if is_direct and isinstance(call, ast.Call) and call.func is taken else None

    @cached_property
    def _names(self) -> _Names:
        return _Names(self._tree)

    @cached_property
    def _calls(self) -> dict[Span, ast.Call]:
        """Each call by its span."""
        return {self._source.span_of(each): each for each in self._names.parents if isinstance(each, ast.Call)}

    @cached_property
    def _checkers(self) -> frozenset[str]:
        """The file's names for ``torch.autograd.gradcheck`` and ``gradgradcheck``."""
        return _gradcheck_names(self._names.parents)


_USES = {"apply": InstanceUse.APPLY_TAKEN, **dict.fromkeys(PROTOCOL, InstanceUse.METHOD_CALLED)}
"""The use of an instance, by the attribute that is read where it is created."""

_MOST_CALLS = 5
"""The maximum number of calls of one name that a finding shows."""

_MOST_BINDINGS = 20
"""The maximum number of bindings of one name of which each gets its own reads."""


class _Names:
    """Parents of nodes, reads of names, and the scopes that bind them."""

    def __init__(self, tree: ast.Module | None) -> None:
        self.parents: dict[ast.AST, ast.AST] = {}
        self.reads: defaultdict[str, list[ast.Name | ast.Attribute]] = defaultdict(list)
        self._scopes: dict[ast.AST, ast.AST] = {}
        self._bound: defaultdict[ast.AST, defaultdict[str, list[ast.AST]]] = defaultdict(lambda: defaultdict(list))
        self._module = tree
        waiting: list[tuple[ast.AST, ast.AST]] = [(tree, tree)] if tree is not None else []
        while waiting:
            node, scope = waiting.pop()
            self._note(node, scope)
            inner = node if isinstance(node, _SCOPES) else scope
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                waiting.append((child, inner))

    def _note(self, node: ast.AST, scope: ast.AST) -> None:
        if isinstance(node, (*_SCOPES, ast.Name, ast.Attribute)):
            self._scopes[node] = scope
        if isinstance(node, ast.arg):
            self._bound[scope][node.arg].append(node)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node.ctx, ast.Load):
                self.reads[_last(node)].append(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._bound[scope][node.id].append(node)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or module around a name."""
        return self._scopes[node]

    def home(self, target: ast.Name | ast.Attribute) -> ast.AST | None:
        """The function or module that binds a name; for ``self.name``, the enclosing class, None without one."""
        scope = self._scopes[target]
        while scope is not self._module:
            if isinstance(target, ast.Attribute):
                if isinstance(scope, ast.ClassDef):
                    return scope
            elif not isinstance(scope, ast.ClassDef) and target.id in self._bound[scope]:
                return scope
            scope = self._scopes[scope]
        return scope if isinstance(target, ast.Name) else None

    def bindings(self, target: ast.Name | ast.Attribute, home: ast.AST | None) -> list[ast.AST]:
        """What binds a name in its scope; nothing for an attribute."""
        return self._bound[home][target.id] if isinstance(target, ast.Name) and home is not None else []

    def reached(
        self, target: ast.Name | ast.Attribute, reads: list[ast.Name | ast.Attribute], home: ast.AST | None
    ) -> list[ast.Name | ast.Attribute]:
        """The reads of a name that a binding of it may reach: not those before it, nor those after the next one.

        Reads of other scopes happen at any time. In a loop, the last of several bindings also reaches the reads before
        the first one.
        """
        bindings = self.bindings(target, home)
        if not 1 < len(bindings) <= _MOST_BINDINGS:
            return reads
        start, block, loop = _position(target), self._block(target), self._loop(target)
        together = [each for each in bindings if self._block(each) is block]
        if loop is not None and (block is None or len(together) < 2 or _may_jump(loop)):
            return reads
        end = min((_end(self._statement(each)) for each in together if _position(each) > start), default=None)
        first = min((_end(self._statement(each)) for each in together), default=start)
        return [
            each
            for each in reads
            if self._scopes[each] is not home
            or (start < _position(each) and (end is None or _position(each) < end))
            or (loop is not None and end is None and _position(each) < first)
        ]

    def _statement(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def _block(self, node: ast.AST) -> object:
        """The list of statements that a node is in; a name of a compound statement is in none."""
        statement = self._statement(node)
        if not isinstance(statement, _SIMPLE):
            return None
        around = self.parents[statement]
        blocks = (getattr(around, each, None) for each in ("body", "orelse", "finalbody"))
        return next((each for each in blocks if isinstance(each, list) and statement in each), None)

    def _loop(self, node: ast.AST) -> ast.AST | None:
        """The innermost loop around a node in its function or class."""
        while not isinstance(node, (*_SCOPES, ast.Module)):
            node = self.parents[node]
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                return node
        return None


def _may_jump(loop: ast.AST) -> bool:
    """Whether a loop may skip the rest of its body."""
    return any(isinstance(each, (ast.Break, ast.Continue)) for each in nodes_in(loop))


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign)

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _gradcheck_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The file's names for ``torch.autograd.gradcheck`` and ``gradgradcheck``."""
    modules = {"torch.autograd", "torch.autograd.gradcheck"}
    imported = (
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for alias in node.names
        if alias.name in _GRADCHECK
    )
    return frozenset(f"{module}{name}" for name in _GRADCHECK for module in _AUTOGRAD) | frozenset(imported)


_GRADCHECK = ("gradcheck", "gradgradcheck")
_AUTOGRAD = ("torch.autograd.", "autograd.", "torch.autograd.gradcheck.")


def _method(call: ast.Call) -> tuple[str, int]:
    """The method that ``fn.method(...)`` calls, and the number of its arguments; -1 if that is unknown."""
    known = not any(isinstance(each, ast.Starred) for each in call.args) and all(each.arg for each in call.keywords)
    count = len(call.args) + len(call.keywords) if known else -1
    return call.func.attr if isinstance(call.func, ast.Attribute) else "", count


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", None) or 0, getattr(node, "end_col_offset", None) or 0


def _takes_apply(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "apply"


def _stored_as(parent: ast.AST) -> ast.Name | ast.Attribute | None:
    """The only name, or attribute of a name, that an assignment binds to the instance."""
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target: ast.AST = parent.targets[0]
    elif isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
        target = parent.target
    else:
        return None
    if isinstance(target, ast.Name):
        return target
    return target if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else None


def _last(target: ast.Name | ast.Attribute) -> str:
    """``name`` for a name, ``.name`` for an attribute of anything."""
    return target.id if isinstance(target, ast.Name) else f".{target.attr}"


def _written(target: ast.Name | ast.Attribute) -> tuple[str, ...]:
    """The source form of a name, or of an attribute of a name; empty for an attribute of anything else."""
    if isinstance(target, ast.Name):
        return (target.id,)
    return (target.value.id, target.attr) if isinstance(target.value, ast.Name) else ()
