"""Decorators of the project: the function that takes the place of the one that they decorate."""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve_certainly
from ctxlint.model.interpreter.sequences import literal
from ctxlint.model.interpreter.values import UNKNOWN, ProjectFunction, Slot
from ctxlint.model.summaries.callables import owner_of
from ctxlint.model.summaries.shapes import Shape
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import gives_back, nodes_in
from ctxlint.torch_api.known_decorators import SIGNATURE_KEEPING_DECORATORS

if TYPE_CHECKING:
    import libcst as cst

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition, Project
    from ctxlint.model.interpreter.summary import Summary
    from ctxlint.model.interpreter.values import Value


class Decorating(NamedTuple):
    """A function that decorates another one, and what it gets besides: the object whose method it is, options."""

    function: ProjectFunction
    arguments: tuple[Slot, ...] = ()
    keywords: MappingOf[str, Slot] = MappingProxyType({})


Summarise = Callable[[ProjectFunction, tuple[Slot, ...], MappingOf[str, Slot]], "Summary | None"]
"""Gives the summary of a function for its arguments."""


def decorated(
    decorating: Decorating,
    call: ast.Call | None,
    function: ProjectFunction,
    node: cst.BaseExpression,
    summarise: Summarise,
) -> tuple[Value, ...]:
    """What a decorator makes of a function: ``function`` itself, or its wrapper; several if a condition decides.

    ``call`` is that of a decorator with options. Nothing if any of that is unknown.
    """
    makers = [decorating] if call is None else _with_options(decorating, call, summarise)
    results: list[Value] = []
    for each in makers:
        result = _result(each, function, node, summarise) if each is not None else None
        if result is None:
            return ()
        results += result.options()
    return tuple(results)


def _with_options(decorating: Decorating, call: ast.Call, summarise: Summarise) -> list[Decorating | None]:
    """The decorators that a call with options returns."""
    passed = _options(call)
    if passed is None:
        return []
    arguments, keywords = passed
    if not arguments and _completes_itself(decorating.function.definition):
        return [decorating._replace(keywords=keywords)]
    known = summarise(decorating.function, (*decorating.arguments, *arguments), keywords)
    made = known.returned.options() if known is not None else ()
    return [Decorating(each) if isinstance(each, ProjectFunction) else None for each in made]


def _result(
    decorating: Decorating, function: ProjectFunction, node: cst.BaseExpression, summarise: Summarise
) -> Value | None:
    """What a decorator returns for a function; its summary is the same for every function."""
    shape = Shape({})
    passed = (*decorating.arguments, Slot(shape.function(function)))
    captured = tuple((name, shape.slot(slot)) for name, slot in decorating.function.captured)
    known = summarise(replace(decorating.function, captured=captured), passed, decorating.keywords)
    return shape.applied(known, node).returned if known is not None else None


def _options(call: ast.Call) -> tuple[tuple[Slot, ...], dict[str, Slot]] | None:
    """The arguments of a decorator with options, as far as they are literals; None if it is unknown how many."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    keywords = {each.arg: _option(each.value) for each in call.keywords if each.arg is not None}
    return tuple(map(_option, call.args)), keywords


def _option(node: ast.expr) -> Slot:
    return Slot(literal(node) or UNKNOWN)


def _completes_itself(definition: Definition) -> bool:
    """Whether a decorator that is called without a function returns ``partial(itself, ...)``, which waits for it."""
    node = definition.unit.index.functions[definition.qualname].node
    calls = (each for each in nodes_in(node) if isinstance(each, ast.Call) and each.args)
    return any(
        dotted_name(each.args[0]) == node.name and (dotted_name(each.func) or "").endswith("partial") for each in calls
    )


def changes_nothing(project: Project, unit: Unit, name: str) -> bool:
    """Whether a module binds a name only to decorators that pass all arguments on, also inside its functions.

    ``jit_fuser = torch.jit.script``, and a function that does nothing where that is not wanted.
    """
    found = owner_of(project, unit, name)
    tree = found[0].tree if found is not None else None
    if found is None or found[1] or tree is None:
        return False
    home, _owner, last, module = found
    if any(bound.kind not in ("assign", "other") for bound in module.names.get(last, ())):
        return False
    stores, values = 0, []
    for node in nodes_in(tree):
        stores += isinstance(node, ast.Name) and node.id == last and isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Assign) and dotted_name(node.targets[0]) == last:
            values.append(node.value)
    return 0 < stores == len(values) and all(_passes_on(home, value) for value in values)


def _passes_on(unit: Unit, value: ast.expr) -> bool:
    """Whether a decorator is a known one that passes all arguments on, or returns what it decorates."""
    meant = resolve_certainly(dotted_name(value) or "", unit.index.module) or ""
    if meant in SIGNATURE_KEEPING_DECORATORS:
        return True
    record = unit.index.functions.get(meant[len(LOCAL) :]) if meant.startswith(LOCAL) else None
    return record is not None and record.certain and gives_back(record.node)
