"""Memory that a method returns as a result, and that only code outside of the project can have filled.

``lib.backward(x, grad, buffer)`` as a statement, followed by ``return buffer``: if it did not write there, the gradient
would not depend on the incoming one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.lent_memory import returned_pairs
from ctxlint.model.interpreter.events import ForeignCall, GenericCall, MethodCall, Mutation
from ctxlint.model.interpreter.summary import FILLED
from ctxlint.model.interpreter.values import (
    ContextAttribute,
    SavedTensor,
    before_views,
    is_gradient,
    leaves,
    taken_from,
    usual_storage,
)
from ctxlint.model.syntax import dotted, last_name, root_name
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value

    _Call = ForeignCall | GenericCall | MethodCall


def filled_gradients(fn: FunctionClass, backward: Method) -> Iterator[Mutation]:
    """The writes to saved tensors that backward returns as gradients, by code that gets an incoming gradient, too."""
    found: list[Value] = []
    for returned in fn.gradients:
        for _node, value in returned_pairs(returned):
            memory = usual_storage(value)
            if isinstance(memory, (ContextAttribute, SavedTensor)) and memory not in found:
                found.append(memory)
                yield from _filled(backward, memory)


def _filled(method: Method, memory: Value) -> Iterator[Mutation]:
    """The write to some memory, if no known code does that, and one call of unknown code may: it gets a gradient, too.

    Of several, it is one that gets the memory twice, to read it and to write to it.
    """
    if any(taken_from(each.target) == memory for each in method.facts.of(Mutation) if each.target is not None):
        return
    facts = method.facts
    made: list[_Call] = [*facts.of(GenericCall), *facts.of(MethodCall), *facts.of(ForeignCall)]
    calls = [(each, _given(each, memory)) for each in made if _may_fill(method, each)]
    calls = [(each, slots) for each, slots in calls if slots]
    several = len({id(each.node) for each, _slots in calls}) > 1
    for call, slots in calls:
        passed = [value for slot in _slots_of(call) for value in leaves(slot.value)]
        if any(is_gradient(before_views(each)) for each in passed) and (not several or len(slots) > 1):
            yield _write(call, slots[-1])
            return


def _write(call: _Call, slot: Slot) -> Mutation:
    func = call.node.func if isinstance(call.node, cst.Call) else None
    return Mutation(
        call.node,
        call.order,
        call.guards,
        call.before,
        call.maybe_before,
        call.in_loop,
        target=slot.value,
        target_node=slot.node,
        how=FILLED,
        name=root_name(slot.node),
        statement=call.statement if isinstance(call, GenericCall) else None,
        by=(dotted(func) or last_name(func) or "call") if func is not None else "call",
    )


def _slots_of(call: _Call) -> tuple[Slot, ...]:
    return (*call.arguments, *(slot for _name, slot in (call.keywords if isinstance(call, GenericCall) else ())))


def _given(call: _Call, memory: Value) -> list[Slot]:
    """The arguments that are some memory, or parts or views of it."""
    return [each for each in _slots_of(call) if not each.starred and taken_from(each.value) == memory]


def _may_fill(method: Method, call: _Call) -> bool:
    """Whether a call is a statement, and its function is not known, nor one that only reads by its name."""
    if not isinstance(method.parents.get(call.node), cst.Expr):
        return False
    definition = None if isinstance(call, ForeignCall) else call.definition
    if definition is not None and not _passes_addresses(definition):
        return False
    name = last_name(call.node.func) if isinstance(call.node, cst.Call) else None
    callee = call.callee if isinstance(call, GenericCall) else None
    return not (callee or "").startswith(_READING) and _READS.search(name or "print") is None


def _passes_addresses(function: Definition) -> bool:
    """Whether a function of the project passes addresses of tensors to compiled code: ``lib.project(x.data_ptr())``."""
    record = function.unit.index.functions.get(function.qualname)
    nodes = nodes_in(record.node) if record is not None else ()
    return any(isinstance(each, ast.Attribute) and each.attr == "data_ptr" for each in nodes)


_READING = ("torch.", "builtins.", "math.", "logging.", "numpy.testing.", "warnings.")
_READS = pattern(
    r"(?i)(?:^|_)(?:assert|check|debug|dump|ensure|hook|log|mark|print|record|register|save|send|store|sync|trace|"
    r"validate|verify|wait)|assert|print"
)
"""The name of a function that only looks at its arguments, or hands them on."""
