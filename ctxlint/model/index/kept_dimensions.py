"""Results of a function with a dimension of size 1 that a parameter chooses; decided with ``ast`` alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition


def chosen_dimension(unit: Unit, definition: Definition, part: int | None) -> str:
    """The parameter along which a result has size 1, as after ``x.sum(dim).unsqueeze(dim)``; empty if that is unknown.

    ``part`` numbers the elements of the tuple that the function returns.
    """
    record = unit.index.functions.get(definition.qualname)
    if record is None or not record.certain or not isinstance(record.node, ast.FunctionDef):
        return ""
    nodes = [each for statement in record.node.body for each in nodes_in(statement)]
    returned = [each.value for each in nodes if isinstance(each, ast.Return)]
    value = returned[0] if len(returned) == 1 else None
    if part is not None:
        value = value.elts[part] if isinstance(value, ast.Tuple) and part < len(value.elts) else None
    stored = [each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    if isinstance(value, ast.Name) and stored.count(value.id) == 1:
        assigned = (each for each in nodes if isinstance(each, ast.Assign) and len(each.targets) == 1)
        made = [each.value for each in assigned if ast.unparse(each.targets[0]) == value.id]
        value = made[0] if made else None
    dimension = _dimension(value) if value is not None else None
    name = dimension.id if isinstance(dimension, ast.Name) else ""
    return name if name not in stored and name in parameter_names(record.node.args) else ""


def _dimension(made: ast.expr) -> ast.expr | None:
    """The dimension that has size 1 in a new tensor: ``dim`` of ``x.unsqueeze(dim)``, ``x.sum(dim, keepdim=True)``."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return None
    named = {each.arg: each.value for each in made.keywords}
    given = named.get("dim") or (made.args[0] if made.args else None)
    if made.func.attr == "unsqueeze":
        return given
    kept = named.get("keepdim")
    return given if made.func.attr in REDUCTIONS and isinstance(kept, ast.Constant) and kept.value is True else None


REDUCTIONS = frozenset(str.split("amax amin mean prod sum"))
"""Methods that reduce the dimension that they get, and drop it unless ``keepdim=True``."""
