"""Arguments that a function of the project takes, and never reads, only compares with None, or only computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.helper_places import present
from ctxlint.model.function import ParameterKind
from ctxlint.model.index.scopes import Scope, resolve_certainly
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.method import variables_in
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.syntax import dotted, parents_below
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Container

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import Method
    from ctxlint.source.source import Span


@record
class Unread:
    """A parameter that a function, called as ``called``, never reads, and where it is in the file ``path``."""

    called: str
    name: str
    parameter: str
    path: str
    span: Span


def only_given_away(method: Method, name: str) -> tuple[Unread, ...]:
    """The parameters that a method passes a name of its own to, if it reads it for nothing else, and none is read."""
    found: list[Unread] = []
    for node in method.named.get(name, ()):
        if not isinstance(method.parents[node], cst.Param):
            argument = method.parents[node]
            unread = unread_by_callee(method, argument) if isinstance(argument, cst.Arg) else None
            if unread is None:
                return ()
            found.append(unread)
    return tuple(found)


def unread_by_callee(method: Method, argument: cst.Arg) -> Unread | None:
    """The parameter that an argument goes to, if the function is certain and never reads it."""
    taken = taken_by_callee(method, argument)
    if taken is None:
        return None
    below, definition = parents_below(taken.node.body), taken.definition
    gives_results = any(isinstance(each, cst.Return) and each.value is not None for each in below)
    mentioned = any(each.value == taken.parameter for each in variables_in(below, below))
    span = _span_of(definition, taken.parameter) if gives_results and not mentioned else None
    if span is None:
        return None
    return Unread(taken.called, definition.name, taken.parameter, definition.unit.path, span)


def asked_by_callee(method: Method, argument: cst.Arg, metadata: Container[str]) -> frozenset[str] | None:
    """The ``metadata`` that the function an argument goes to certainly reads of it alone; "" for ``is None``.

    None if it does anything else with it, or nothing.
    """
    taken = taken_by_callee(method, argument)
    if taken is None:
        return None
    below = parents_below(taken.node.body)
    found: set[str] = set()
    for each in variables_in(below, below):
        above = below[each] if each.value == taken.parameter else None
        if isinstance(above, cst.Attribute) and above.value is each and above.attr.value in metadata:
            found.add(above.attr.value)
        elif above is not None and _is_none_test(above):
            found.add("")
        elif above is not None:
            return None
    return frozenset(found) or None


def _is_none_test(node: cst.CSTNode) -> bool:
    """Whether a node is ``name is None``, of which the name is the left side."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return False
    target = node.comparisons[0]
    return isinstance(target.operator, (cst.Is, cst.IsNot)) and dotted(target.comparator) == "None"


def computed_with_by_callee(method: Method, argument: cst.Arg) -> bool:
    """Whether the function that an argument goes to certainly computes with it by operators, and does nothing else."""
    taken = taken_by_callee(method, argument)
    if taken is None:
        return False
    below = parents_below(taken.node.body)
    above = [below[each] for each in variables_in(below, below) if each.value == taken.parameter]
    operands = [below[each] if isinstance(each, cst.Subscript) else each for each in above]
    return any(isinstance(each, cst.BinaryOperation) for each in operands) and all(
        isinstance(each, (cst.BinaryOperation, cst.Comparison)) for each in operands
    )


@record
class TakenArgument:
    """The function, called as ``called``, and its parameter that an argument certainly goes to."""

    called: str
    definition: Definition
    node: cst.FunctionDef
    parameter: str


def taken_by_callee(method: Method, argument: cst.Arg) -> TakenArgument | None:
    """The parameter that an argument goes to, if the function of the project is certain."""
    call = method.parents.get(argument)
    if not isinstance(call, cst.Call) or any(each.star for each in call.args):
        return None
    found = certainly_called(method, call)
    known = found[0].unit.index.functions.get(found[0].qualname) if found is not None else None
    if found is None or known is None:
        return None
    definition, node = found
    params, at = params_of(node, Scope("function", definition.qualname, known.scope)), call.args.index(argument)
    if argument.keyword is not None:
        param = next((each for each in params if each.name == argument.keyword.value), None)
    else:
        param = params[at] if at < len(params) else None
    if param is None or param.kind not in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY):
        return None
    return TakenArgument(dotted(call.func) or "", definition, node, param.name)


def certainly_called(method: Method, call: cst.Call) -> tuple[Definition, cst.FunctionDef] | None:
    """The function of the project that a call in a method certainly runs."""
    called = next((each for each in method.facts.of(GenericCall) if each.node is call), None)
    definition, home = called.definition if called is not None else None, method.home
    if called is None or definition is None or home is None or home.record is None:
        return None
    scope = Scope("function", "", home.record.body)
    if resolve_certainly(dotted(call.func) or "", scope) != called.callee:
        return None  # one of several functions
    definition = present(definition, home)
    known = definition.unit.index.functions.get(definition.qualname)
    certain = known is not None and not known.alternatives
    node = definition.unit.slices.find_bare_function(definition.qualname) if certain else None
    if node is None or any(_takes_class(each) for each in node.decorators):
        return None
    return definition, node


def _takes_class(decorator: cst.Decorator) -> bool:
    return isinstance(decorator.decorator, cst.Name) and decorator.decorator.value == "classmethod"


def _span_of(definition: Definition, parameter: str) -> Span | None:
    """Where a function declares a parameter."""
    arguments = definition.unit.index.functions[definition.qualname].node.args
    declared = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return next((definition.unit.source.span_of(each) for each in declared if each.arg == parameter), None)
