"""What a module or a class makes of its functions: partial functions, and members that it inherits or assigns."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.index.project import Definition
from ctxlint.model.index.project_answers import is_only_read
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, resolve_certainly
from ctxlint.model.interpreter.sequences import literal
from ctxlint.model.interpreter.values import UNKNOWN, Imported, Mapping, ProjectFunction, Slot
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.known_decorators import SIGNATURE_KEEPING_DECORATORS

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.values import Value

_MOST_HOPS = 8
"""Partial functions of partial functions are followed this far."""


class Made(NamedTuple):
    """A function, by its name in a file, and the arguments that calls of it always have."""

    unit: Unit
    name: str
    arguments: tuple[Slot, ...]
    keywords: dict[str, Slot]


def made_callable(project: Project, unit: Unit, name: str, hops: int) -> Made | None:
    """What a name of ``unit`` was made of: a partial, a wrapped or an inherited function, or an ``apply``, or None."""
    if hops >= _MOST_HOPS:
        return None
    found = owner_of(project, unit, name)
    if found is None:
        return None
    home, owner, last, scope = found
    bounds = scope.names.get(last, [])
    if not bounds and owner:
        return _inherited(project, Definition(home, owner), last)
    value = bounds[0].value if len(bounds) == 1 and not bounds[0].conditional else None
    if isinstance(value, ast.Lambda) and home is not unit:  # a function there
        return Made(home, f"{LOCAL}{last}", (), {}) if scope.kind == "module" else None
    if isinstance(value, ast.Attribute) and value.attr == "apply" and home is not unit:
        target = resolve_certainly(dotted_name(value) or "", scope)
        return Made(home, target, (), {}) if target is not None and target.startswith(LOCAL) else None
    return _made(home, value, scope) if isinstance(value, ast.Call) else None


def _inherited(project: Project, definition: Definition, name: str) -> Made | None:
    """A member that a class certainly has from the first of its bases."""
    alternatives = project.bases(definition)
    base = alternatives[0][0] if alternatives and len(alternatives[0]) == 1 else None
    return Made(base.unit, f"{LOCAL}{base.qualname}.{name}", (), {}) if isinstance(base, Definition) else None


def _made(unit: Unit, value: ast.Call, scope: Scope) -> Made | None:
    maker = resolve_certainly(dotted_name(value.func) or "", scope)
    if not value.args or any(isinstance(each, ast.Starred) for each in value.args):
        return None
    if maker == "builtins.staticmethod" and isinstance(value.args[0], ast.Call):
        return _made(unit, value.args[0], scope)
    target = resolve_certainly(dotted_name(value.args[0]) or "", scope)
    if target is None and isinstance(value.args[0], ast.Name) and scope.kind == "module":
        target = LOCAL + value.args[0].id
    if target is None or target.startswith(("builtins.", "torch.")):
        return None
    if maker == "builtins.staticmethod" or maker in SIGNATURE_KEEPING_DECORATORS:
        return Made(unit, target, (), {})
    if maker != "functools.partial" or any(each.arg is None for each in value.keywords):
        return None
    keywords = {each.arg: _slot(each.value) for each in value.keywords if each.arg is not None}
    return Made(unit, target, tuple(map(_slot, value.args[1:])), keywords)


def table_of_functions(unit: Unit, name: str) -> Mapping | None:
    """``KERNELS = {"name": function, …}`` in a module that never changes the dict, and keeps no alias of it."""
    bounds = unit.index.module.names.get(name, [])
    value = bounds[0].value if len(bounds) == 1 else None
    if not isinstance(value, ast.Dict) or not value.keys or unit.tree is None:
        return None
    keys = [each.value if isinstance(each, ast.Constant) else None for each in value.keys]
    functions = [resolve_certainly(dotted_name(each) or "", unit.index.module) for each in value.values]
    slots = tuple(Slot(Imported(each)) for each in functions if each is not None)
    names = tuple(each for each in keys if isinstance(each, str))
    if len(names) != len(set(keys)) or len(slots) != len(keys) or not is_only_read(nodes_in(unit.tree), name):
        return None
    return Mapping(slots, keys=names)


def imported_table(project: Project, unit: Unit, name: str) -> Mapping | None:
    """The dict of functions in another file that a name of ``unit`` denotes, if no file changes it."""
    found = owner_of(project, unit, name)
    if found is None or found[1]:
        return None
    home, _module, last, _scope = found
    table = project.once(("table", last), lambda: table_of_functions(home, last), home.summaries)
    if table is None or project.ask("changes", home.path, last) in project.changed:
        return None
    return replace(table, slots=tuple(Slot(_function_of(home, each.value)) for each in table.slots))


def _function_of(home: Unit, value: Value) -> Value:
    """A function that a file names, as other files refer to it."""
    if isinstance(value, Imported) and value.name.startswith(LOCAL):
        return ProjectFunction(Definition(home, value.name[len(LOCAL) :]))
    return value


def tables_in(unit: Unit) -> frozenset[str]:
    """The names of the dicts of functions that a file never changes."""
    dicts = (name for name, bounds in unit.index.module.names.items() if isinstance(bounds[0].value, ast.Dict))
    return frozenset(name for name in dicts if table_of_functions(unit, name) is not None)


def _slot(node: ast.expr) -> Slot:
    return Slot(literal(node) or UNKNOWN)


def owner_of(project: Project, unit: Unit, name: str) -> tuple[Unit, str, str, Scope] | None:
    """The file, the module (empty) or class, and its scope, that a resolved name belongs to, and the name there."""
    if name.startswith(LOCAL):
        home, dotted, scope = unit, name[len(LOCAL) :], unit.index.module
    else:
        place = project.locate(unit, name)
        other = project.unit(place.path) if place is not None else None
        if place is None or other is None or not place.rest:
            return None
        home, dotted, scope = project.bound(other, place.rest, other.index.module)
    owner, _, last = dotted.rpartition(".")
    if not owner:
        return home, owner, last, scope
    record = home.index.classes.get(owner)
    return (home, owner, last, record.body) if record is not None else None
