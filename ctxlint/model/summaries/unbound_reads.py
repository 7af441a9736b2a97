"""Which locals of a function depend on whether an argument needs a gradient, as its callers see it.

It reads them although they are unbound, or returns None then.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned, Event, MaybeUnbound, Step
from ctxlint.model.interpreter.summary import NoneElement, UnboundRead
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.operations import GRADIENT_SWITCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Mapping as MappingOf

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value


KINDS_FOR_UNBOUND: frozenset[type[Event]] = frozenset([Assigned, MaybeUnbound])
"""The kinds of event that this needs; few functions have any flags."""


def unbound_reads_of(definition: Definition, facts: MethodFacts) -> Iterator[UnboundRead]:
    """The first read of each local under no condition but loops, if ``x.requires_grad`` decides whether it is bound."""
    seen: set[str] = set()
    for read in facts.of(MaybeUnbound):
        if read.name in seen or any(each.test is not None or not read.in_loop for each in read.guards):
            continue
        bound = [each for each in facts.of(Assigned) if each.name == read.name and read.may_follow(each)]
        needed = _required(bound)
        if needed:
            seen.add(read.name)
            unit = definition.unit
            span = unit.slices.span_in_function(definition.qualname, read.node)
            step = Step(unit.path, span, f"`{definition.name}` reads `{read.name}` here")
            yield UnboundRead(read.name, needed, (step,))


def none_elements_of(
    definition: Definition, bindings: MappingOf[str, Value], facts: MethodFacts
) -> Iterator[NoneElement]:
    """The elements of the only tuple that it returns that are None unless arguments need a gradient."""
    returned = facts.returns[0] if len(facts.returns) == 1 else None
    value = returned.node.value if returned is not None and isinstance(returned.node, cst.Return) else None
    if returned is None or not isinstance(value, cst.Tuple):
        return
    unit, record = definition.unit, definition.unit.index.functions.get(definition.qualname)
    for at, element in enumerate(value.elements):
        if isinstance(element, cst.StarredElement):
            return
        name = element.value.value if isinstance(element.value, cst.Name) else None
        bound = [each for each in facts.of(Assigned) if each.name == name and returned.may_follow(each)]
        given = [each for each in bound if each.value is None or is_none(each.value) is not Tri.YES]
        needed = _required(given) if len(given) < len(bound) and name not in bindings else ()
        if needed and record is not None and not any(map(_requires_gradients, nodes_in(record.node))):
            span = unit.slices.span_in_function(definition.qualname, element.value)
            yield NoneElement(at, needed, (Step(unit.path, span, f"`{definition.name}` returns `{name}` here"),))


def _requires_gradients(node: ast.AST) -> bool:
    """Whether a node makes a tensor require a gradient, whatever the arguments need: ``x.requires_grad_()``."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr in GRADIENT_SWITCHES or (node.attr == "requires_grad" and isinstance(node.ctx, ast.Store))


def _required(bound: Iterable[Event]) -> tuple[Value, ...]:
    """The tensors of which each requires a gradient where any of some events happens."""
    asked = [[each.asks for each in event.guards if each.asks is not None] for event in bound]
    required = [{each.value for each in asks if each.answer and each.about_flag} for asks in asked]
    return tuple(sorted(set.intersection(*required), key=str)) if required else ()
