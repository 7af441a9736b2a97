"""Parameters that a function makes contiguous before it uses them; decided with ``ast`` alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from ctxlint.model.index.project import Definition


def makes_contiguous(definition: Definition, parameter: str) -> bool:
    """Whether ``x = x.contiguous()`` is what a function does with a tensor, but for questions before."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return False
    for statement in record.node.body:
        if isinstance(statement, ast.Assign) and _is_copy(statement.value, parameter):
            targets = statement.targets
            return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == parameter
        nodes = list(nodes_in(statement))
        asked = {each.value for each in nodes if isinstance(each, ast.Attribute) and each.attr in _QUESTIONS}
        if any(isinstance(each, ast.Name) and each.id == parameter and each not in asked for each in nodes):
            return False
    return False


def _is_copy(value: ast.expr, parameter: str) -> bool:
    func = value.func if isinstance(value, ast.Call) and not (value.args or value.keywords) else None
    owner = func.value if isinstance(func, ast.Attribute) and func.attr == "contiguous" else None
    return isinstance(owner, ast.Name) and owner.id == parameter


_QUESTIONS = frozenset(["device", "dtype", "is_cuda", "ndim", "shape"])
