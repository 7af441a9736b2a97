"""The attributes of an object whose memory outlives a call of one of its methods."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Function = ast.FunctionDef | ast.AsyncFunctionDef


def lasting_attributes(owners: Sequence[ast.ClassDef], method: Function) -> frozenset[str]:
    """The attributes of ``self`` that hold the same memory in each call of a method, as far as its class shows.

    ``owners`` are the class and its bases. Those that they bind, but neither this method nor those it calls, unless
    under a test of ``self``, such as ``if self.out is None:``. None at all if the method copies tensors, hands on
    ``self``, or calls a method of a base.
    """
    methods, *inherited = map(_methods_of, owners)
    if methods.get(method.name) is not method or _may_do_more(method):
        return frozenset()
    rebound, called = set[str](), {method.name}
    waiting = [method]
    while waiting:
        for each in _always_run(waiting.pop().body):
            rebound |= _bound_by(each)
            more = {*_called_by(each)} - called
            if any(name in others for name in more - methods.keys() for others in inherited):
                return frozenset()
            called |= more
            waiting += [methods[name] for name in sorted(more) if name in methods]
    bound = set[str]().union(*(_bound_by(each) for owner in owners for each in nodes_in(owner)))
    return frozenset(bound - rebound).difference(methods, *inherited)


def _methods_of(owner: ast.ClassDef) -> dict[str, Function]:
    return {each.name: each for each in owner.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}


def _may_do_more(method: Function) -> bool:
    """Whether a method hands on ``self``, calls one of a base class, or copies a tensor."""
    for each in nodes_in(method):
        if isinstance(each, ast.Call):
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
            if any(isinstance(arg, ast.Name) and arg.id == "self" for arg in given):
                return True
            if isinstance(each.func, ast.Name) and each.func.id == "super":
                return True
            if isinstance(each.func, ast.Attribute) and each.func.attr in ("clone", "deepcopy"):
                return True
    return False


def _always_run(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The code of a body, without what is under a test of the object itself."""
    for statement in body:
        if isinstance(statement, ast.If) and not statement.orelse and _is_about_self(statement.test):
            yield from nodes_in(statement.test)
        elif isinstance(statement, (ast.stmt, ast.ExceptHandler)):
            inside = list(ast.iter_child_nodes(statement))
            yield statement
            yield from _always_run(inside)
        else:
            yield from nodes_in(statement)


def _is_about_self(test: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "self" for each in nodes_in(test))


def _bound_by(node: ast.AST) -> set[str]:
    """``x`` of ``self.x = ...``, other than None, and of ``self.register_buffer("x", ...)``."""
    if isinstance(node, ast.Call):
        first = node.args[0] if node.args else None
        registered = dotted_name(node.func) == "self.register_buffer" and isinstance(first, ast.Constant)
        return {str(first.value)} if registered and isinstance(first, ast.Constant) else set()
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or isinstance(node.value, ast.Constant):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stored = (each for target in targets for each in nodes_in(target) if isinstance(each, ast.Attribute))
    return {each.attr for each in stored if isinstance(each.value, ast.Name) and each.value.id == "self"}


def _called_by(node: ast.AST) -> Iterator[str]:
    """``m`` of each ``self.m(...)`` in a simple statement or an expression."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
            yield node.func.attr
