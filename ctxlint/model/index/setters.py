"""Functions that set an attribute of what they get, by a name that they get: ``add(Fn, "forward", f)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name, resolve
from ctxlint.source.ast_tree import nodes_in, positional_names

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope


def sets_attribute(func: ast.expr, scope: Scope, unit: Unit, project: Project, depth: int = 0) -> bool:
    """Whether a call of a function of the project sets the attribute that its first two arguments name.

    It may do so later, in a decorator that it returns. No for other functions: their names may say it.
    """
    path = dotted_name(func)
    meant = resolve(path, scope) if path is not None else None
    definition = project.certainly(unit, meant) if meant is not None else None
    record = definition.unit.index.functions.get(definition.qualname) if definition is not None else None
    params = positional_names(record.node.args)[:2] if record is not None else []
    if definition is None or record is None or len(params) < 2 or depth > _DEEPEST:
        return False
    for call in nodes_in(record.node):
        if not isinstance(call, ast.Call) or [getattr(each, "id", "") for each in call.args[:2]] != params:
            continue
        last = (dotted_name(call.func) or "").rpartition(".")[2]
        inside = definition.unit.index.module
        if last in ("setattr", "__setattr__") or sets_attribute(call.func, inside, definition.unit, project, depth + 1):
            return True
    return False


_DEEPEST = 4
"""So many functions that only call another one are followed."""
