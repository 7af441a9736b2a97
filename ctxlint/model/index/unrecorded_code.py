"""Functions whose results have no graph, whatever tensors they get; decided with ``ast`` alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name, resolve_certainly
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.project import Definition

_OFF = frozenset(["torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"])
_MAY_RECORD = frozenset(["enable_grad", "set_grad_enabled", "is_grad_enabled"])


def cuts_graph(definition: Definition) -> str:
    """What keeps all that a function computes from being recorded: ``torch.no_grad`` or ``.numpy()``; or empty.

    Not if it tests the mode, or sets it.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain or not isinstance(record.node, ast.FunctionDef):
        return ""
    body = [each for statement in record.node.body for each in nodes_in(statement)]
    if any(isinstance(each, ast.Attribute) and each.attr in _MAY_RECORD for each in body):
        return ""
    decorators = (_meant(each, record) for each in record.node.decorator_list)
    mode = next((each for each in decorators if each in _OFF), "") or _mode_around_returns(record, body)
    return mode or (".numpy()" if _computes_with_arrays(record, body) else "")


def _meant(node: ast.expr, record: FunctionRecord) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return resolve_certainly(dotted_name(called) or "", record.scope) or ""


def _mode_around_returns(record: FunctionRecord, body: list[ast.AST]) -> str:
    """The mode of a ``with`` that holds every ``return``; only strings and ``import`` come before it."""
    first = next((each for each in record.node.body if not _is_idle(each)), None)
    if not isinstance(first, ast.With):
        return ""
    returns = [each for each in body if isinstance(each, ast.Return)]
    inside = [each for statement in first.body for each in nodes_in(statement)]
    if not returns or not all(any(each is other for other in inside) for each in returns):
        return ""
    return next((each for each in (_meant(item.context_expr, record) for item in first.items) if each in _OFF), "")


def _is_idle(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom)) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _computes_with_arrays(record: FunctionRecord, body: list[ast.AST]) -> bool:
    """Whether each of several parameters becomes an array, and each result comes from arrays by ``from_numpy``."""
    arrays = [each for each in body if isinstance(each, ast.Call) and _called(each) == "numpy"]
    returns = [each.value for each in body if isinstance(each, ast.Return)]
    results = [part for each in returns for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    known = set(parameter_names(record.node.args))
    return bool(arrays and results and known) and all(
        isinstance(each, ast.Call) and _called(each) in ("from_numpy", "as_tensor", "tensor") for each in results
    )


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
