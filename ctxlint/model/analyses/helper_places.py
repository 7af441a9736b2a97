"""The project functions that a value comes from, by their summaries."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.function import Returned
from ctxlint.model.index.scopes import Scope
from ctxlint.model.interpreter.events import GenericCall, Return
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.local_names import bound_names
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.interpreter.values import NONE, Constant, Opaque, Parameter, Tri, taken_from
from ctxlint.model.syntax import dotted
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.source import Position, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.events import Event, Guard
    from ctxlint.model.interpreter.method import Method, MethodFacts, Param
    from ctxlint.model.interpreter.values import Value
    from ctxlint.source.source import Source


@record
class Helper:
    """A function in the file ``path``. ``returns`` are its ``return`` statements, ``name_span`` is its name there.

    ``called`` is its name in the call, which differs from ``name`` after ``import ... as``. ``falls`` is the path
    condition of a path to its end without ``return``, if such a path matters.
    """

    path: str
    name: str
    name_span: Span
    returns: tuple[Span, ...]
    called: str
    falls: tuple[Guard, ...] | None = None


def helpers_behind(fn: FunctionClass, evidence: tuple[Value | Returned, ...]) -> tuple[Helper, ...]:
    """The helpers that these values come from, each once."""
    found: dict[tuple[str, str], Helper] = {}
    for method in fn.methods.values() if evidence else ():
        if method.home is None or method.home.unit.source is not fn.source:
            continue
        calls = {id(each.node): each.definition for each in method.facts.of(GenericCall) if each.definition is not None}
        for each in evidence if calls else ():
            for node in _nodes(method, each):
                definition = calls.get(id(node))
                falls = isinstance(each, Returned) and each.value == NONE
                helper = _helper(present(definition, method.home), node, falls) if definition is not None else None
                if helper is not None:
                    found.setdefault((helper.path, helper.name), helper)
    return tuple(found.values())


def present(definition: Definition, home: Definition) -> Definition:
    """The definition in the present text of its file: a stored Function refers to the text that it was analysed in."""
    return replace(definition, unit=home.unit) if definition.unit.path == home.unit.path else definition


def _nodes(method: Method, evidence: Value | Returned) -> Iterator[cst.CSTNode]:
    """The nodes that created a value; for what a method returns, the call that is returned, directly or by name."""
    if not isinstance(evidence, Returned):
        yield from _made_by(evidence)
        return
    yield from _made_by(evidence.value)
    written = evidence.node.value if isinstance(evidence.node, cst.Return) else None
    if evidence.value == NONE and isinstance(evidence.event.node, cst.Return):
        written = method.behind_name(written)
        if written is not None:
            yield written


def _made_by(value: Value) -> Iterator[cst.CSTNode]:
    value = taken_from(value)
    if isinstance(value, (Opaque, Constant)):
        return
    for option in value.options():
        node = getattr(option, "node", None)
        if isinstance(node, cst.CSTNode):
            yield node


def _helper(definition: Definition, call: cst.CSTNode, falls: bool) -> Helper | None:
    unit, qualname = definition.unit, definition.qualname
    record = unit.index.functions.get(qualname)
    if record is None:
        return None
    node, source = record.node, unit.source
    returns = tuple(source.span_of(each) for each in _returns(node))
    path = _way_to_the_end(unit, qualname) if falls else None
    called = dotted(call.func) if isinstance(call, cst.Call) else None
    last = node.name if called is None else called.rpartition(".")[2]
    return Helper(unit.path, node.name, _name_span(source, node), returns, last, path)


def _name_span(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Span:
    """The span of the name in a definition; of the whole definition if the name is on another line than ``def``."""
    whole = source.span_of(node)
    line, first = whole.start
    at = source.line(line).find(node.name, first + len("def") - 1)
    return whole if at < 0 else Span(Position(line, at + 1), Position(line, at + 1 + len(node.name)))


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from _returns(child)


def _way_to_the_end(unit: Unit, qualname: str) -> tuple[Guard, ...] | None:
    """The path condition of a path through a function that ends without ``return``, for unknown arguments."""
    walked = walk_alone(unit, qualname, frozenset([Return]))
    if walked is None or walked.facts.falls_through is not Tri.YES or not walked.facts.fall_paths:
        return None
    return walked.facts.fall_paths[0]


class Walked(NamedTuple):
    """A function, and what happens in it for unknown arguments."""

    node: cst.FunctionDef
    params: tuple[Param, ...]
    facts: MethodFacts


def walk_alone(unit: Unit, qualname: str, kinds: frozenset[type[Event]] | None = None) -> Walked | None:
    """Walk a function of a file for unknown arguments, recording events of these kinds; None if that fails."""
    node = unit.slices.find_bare_function(qualname)
    if node is None:
        return None
    scope = Scope("function", qualname, unit.index.functions[qualname].scope)
    params = params_of(node, scope)
    bindings: dict[str, Value] = {param.name: Parameter("plain", at, param.name) for at, param in enumerate(params)}
    try:
        local = bound_names(node, unit.source.has_walrus)
        return Walked(node, params, interpret(node, bindings, scope, local=local, kinds=kinds))
    except RecursionError:
        return None
