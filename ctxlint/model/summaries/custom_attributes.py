"""Parameters of a function of which it, or what it passes them on to, uses an attribute that no other tensor has."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.analyses.kept_by_helpers import is_custom
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, resolve_certainly
from ctxlint.source.ast_tree import nodes_in, positional_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.project import Project

_MOST_LEVELS = 3
"""Functions that pass it on are followed this far."""


def custom_parameters(project: Project, definition: Definition, levels: int = _MOST_LEVELS) -> frozenset[str]:
    """The names of the parameters of a function of whose arguments such an attribute is used."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None:
        return frozenset()
    return project.once(
        ("custom", definition.qualname, levels),
        lambda: frozenset(_found(project, definition, record, levels)),
        definition.unit.summaries,
    )


def _found(project: Project, definition: Definition, record: FunctionRecord, levels: int) -> Iterator[str]:
    taken = {each.arg for each in (*record.node.args.posonlyargs, *record.node.args.args, *record.node.args.kwonlyargs)}
    scope = Scope("function", definition.qualname, record.scope)
    for node in (node for statement in record.node.body for node in nodes_in(statement)):
        if not isinstance(node, (ast.Attribute, ast.Call)):
            continue
        if is_custom(node, taken):
            yield from (name for name in taken if is_custom(node, {name}))
        elif isinstance(node, ast.Call) and levels:
            given = [*enumerate(node.args), *((each.arg, each.value) for each in node.keywords)]
            passed = {place: each.id for place, each in given if isinstance(each, ast.Name) and each.id in taken}
            called = _called(project, definition, node, scope) if passed else None
            if called is not None:
                names = positional_names(called.unit.index.functions[called.qualname].node.args)
                custom = custom_parameters(project, called, levels - 1)
                of_place = {place: names[place] if isinstance(place, int) else place for place in passed}
                yield from (name for place, name in passed.items() if of_place[place] in custom)


def _called(project: Project, definition: Definition, call: ast.Call, scope: Scope) -> Definition | None:
    """The function of the project that a call certainly runs, if it takes as many arguments by position."""
    name = resolve_certainly(dotted_name(call.func) or "", scope)
    if name is None or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    local = name.removeprefix(LOCAL)
    found = Definition(definition.unit, local) if local != name else project.certainly(definition.unit, name)
    record = found.unit.index.functions.get(found.qualname) if found is not None else None
    return found if record is not None and len(positional_names(record.node.args)) >= len(call.args) else None
