"""Names that a method reads but nothing binds there: those of forward, of an instance or a class, and unknown ones."""

from __future__ import annotations

import builtins
from types import BuiltinFunctionType
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import never_runs
from ctxlint.model.index.python_names import BUILTINS, INJECTED, RECEIVERS, creates_names, mentions_creation
from ctxlint.model.interpreter.events import UnboundContext
from ctxlint.model.syntax import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


_BUILTIN_FUNCTIONS = frozenset(name for name in BUILTINS if isinstance(getattr(builtins, name), BuiltinFunctionType))


def names_of_forward(fn: FunctionClass, method: Method) -> Iterator[tuple[cst.Name, str]]:
    """The reads in a method of names that forward binds and that certainly mean something else here, in order.

    With each, the exception that reading it raises: NameError where the name is unbound; AttributeError or TypeError
    where it is that of a builtin function such as ``input`` and is used as only a tensor can be.
    """
    if fn.forward is None:
        return
    known = {param.name for param in fn.forward.params}.union(fn.forward.binders).difference(RECEIVERS)
    bound = _unbound(fn, method, known - _missing_ctx(method, fn.forward.ctx_name))
    for node in _reads(fn, method, bound):
        error = _error_of_builtin(method, node) if node.value in BUILTINS else "NameError"
        if error is not None:
            yield node, error


def misused_builtins(fn: FunctionClass, method: Method) -> Iterator[tuple[cst.Name, str]]:
    """The reads in a method of a builtin such as ``input`` as only a tensor can be, each with the exception."""
    bound = _unbound(fn, method, _BUILTIN_FUNCTIONS.intersection(method.named))
    for node in method.variables if bound else ():
        error = _error_of_builtin(method, node) if node.value in bound else None
        if error is not None and _is_evaluated(fn, method, node):
            yield node, error


def pauses(fn: FunctionClass, method: Method) -> Iterator[cst.Call]:
    """The calls of the builtin ``input`` as statements, without a question: they wait for somebody at the terminal."""
    named = _unbound(fn, method, {"input"}.intersection(method.named))
    for node in method.named["input"] if named else ():
        call = method.parents[node]
        is_statement = isinstance(call, cst.Call) and call.func is node and isinstance(method.parents[call], cst.Expr)
        if isinstance(call, cst.Call) and is_statement and not call.args and _is_evaluated(fn, method, node):
            yield call


def undefined_names(fn: FunctionClass, method: Method) -> Iterator[cst.Name]:
    """The reads in a method of names that certainly neither forward nor the file nor Python defines, in order.

    Those that forward reads as well are left out in other methods: it raises first.
    """
    read = unbound_names(fn, method)
    if read and not may_create_names(fn):
        yield from read


def unbound_names(fn: FunctionClass, method: Method) -> list[cst.Name]:
    """The same, unless the file may create names in other ways: this depends on the code of the Function only."""
    named = {name for name in method.named if not name.startswith("__")} - BUILTINS - INJECTED - RECEIVERS
    if fn.forward is not None and method is not fn.forward:
        named.difference_update(param.name for param in fn.forward.params)
        named.difference_update(fn.forward.binders, fn.forward.named)
    unbound = _unbound(fn, method, named - _missing_ctx(method, "ctx"))
    return [*_reads(fn, method, unbound)]


def _missing_ctx(method: Method, usual: str) -> set[str]:
    """What a method may call the ctx for which it has no parameter of this name (CTX102)."""
    missing = {each.name for each in method.facts.of(UnboundContext)}
    return missing if method.ctx is not None and method.own_params else {usual, *missing}


def may_create_names(fn: FunctionClass) -> bool:
    """Whether the file may define names by other means than statements, or in one that does not parse."""
    if not fn.source.parses(is_whole=fn.tree is not None) or fn.tree is None:
        return True
    if fn.source.runs_other_code:
        return True
    if not mentions_creation(fn.source):
        return False
    fn.source.read_whole()
    if may_create_names not in fn.notes:
        fn.notes[may_create_names] = creates_names(fn.tree, fn.source.path)
    return bool(fn.notes[may_create_names])


def unbound_receivers(fn: FunctionClass, method: Method) -> Iterator[cst.Name]:
    """The reads of ``self`` or ``cls`` in a method where nothing binds that name, in order."""
    unbound = _unbound(fn, method, RECEIVERS)
    yield from _reads(fn, method, unbound)


def _reads(fn: FunctionClass, method: Method, names: frozenset[str] | set[str]) -> Iterator[cst.Name]:
    """Where a method evaluates some names, in order."""
    for node in method.variables if names else ():
        if node.value in names and _is_evaluated(fn, method, node):
            yield node


def _is_evaluated(fn: FunctionClass, method: Method, node: cst.Name) -> bool:
    """Whether a name is read, on some path that may be taken."""
    return _is_read(method, node) and not never_runs(fn, method, node)


def _unbound(fn: FunctionClass, method: Method, names: frozenset[str] | set[str]) -> frozenset[str] | set[str]:
    """Those of some names that a method reads although certainly nothing that it sees binds them."""
    home = method.home
    if names.isdisjoint(method.named) or home is None or not method.facts.complete or method.node.decorators is None:
        return frozenset()
    module = home.unit.index.module
    scopes = [home.record.scope, module] if home.record is not None else [module]
    if any(scope.sees_star_import() for scope in scopes):
        names = names & fn.absent_names
    if home.unit.is_stub:
        return frozenset()
    unbound = names - {param.name for param in method.params}.union(method.binders, module.names, fn.enclosing_names)
    return unbound - _bound_inside(method) if not unbound.isdisjoint(method.named) else frozenset()


def _error_of_builtin(method: Method, node: cst.Name) -> str | None:
    """What a builtin function raises if it is used like a tensor; None if it is called or passed on."""
    if node.value not in _BUILTIN_FUNCTIONS:
        return None
    builtin, parent = getattr(builtins, node.value), next(method.above(node), None)
    if isinstance(parent, cst.Attribute) and parent.value is node:
        return "AttributeError" if not hasattr(builtin, parent.attr.value) else None
    computed = isinstance(parent, cst.BinaryOperation) and not isinstance(parent.operator, cst.Modulo)  # "%s" % input
    return "TypeError" if computed or (isinstance(parent, cst.Subscript) and parent.value is node) else None


_DECLARING: tuple[type[cst.CSTNode], ...] = (cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)


def _bound_inside(method: Method) -> set[str]:
    """The names that functions, lambdas and comprehensions in a method bind in their own scopes."""
    found = {each.name.value for each in method.nodes_of(cst.Param)}
    naming: list[cst.CSTNode] = [each.target for each in method.nodes_of(cst.CompFor)]
    for kind in _DECLARING:
        naming += method.nodes_of(kind)
    return found.union(each.value for node in naming for each in _names(node))


def _names(node: cst.CSTNode) -> Iterator[cst.Name]:
    if isinstance(node, cst.Name):
        yield node
    for child in children(node):
        yield from _names(child)


def _is_read(method: Method, node: cst.Name) -> bool:
    """Whether a name is evaluated at this position, in the body and outside annotations."""
    around = list(method.above(node))
    skipped = (cst.Annotation, cst.Try, cst.TryStar)
    return method.node.body in around and not any(isinstance(each, skipped) for each in around)
