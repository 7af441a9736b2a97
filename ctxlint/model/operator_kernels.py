"""Where ``apply`` of a Function is the kernel of an operator: autograd does not know that it has a gradient."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.function import KernelBelowAutograd
from ctxlint.model.index.project import Definition
from ctxlint.model.index.project_answers import meant, texts_in
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.summaries.declared import namespace_of
from ctxlint.model.summaries.objects import member
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import CallRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope


def kernels_below_autograd(unit: Unit, project: Project) -> Iterator[KernelBelowAutograd]:
    """The Functions that a file registers for a device, ``lib.impl("f", F.apply, "CPU")``, and not for autograd."""
    if not unit.source.holds(".impl(") or unit.source.holds("register_autograd"):
        return
    parts = unit.index.parts or (unit.index,)
    calls = [(each, texts_in(each.node)) for part in parts for each in part.calls if each.name == "impl"]
    others = {_last(texts) for _call, texts in calls if not _is_of_device(texts)}
    if "" in others:
        return  # for any operator, and any key
    decorated = {
        id(each.node.decorator_list[0]): each.node
        for part in parts
        for each in part.functions.values()
        if len(each.node.decorator_list) == 1 and each.certain
    }
    for call, texts in calls:
        if not _is_of_device(texts) or _last(texts) in others or not _is_of_torch(call, unit, project):
            continue
        function = decorated.get(id(call.node))
        *_, before, last = call.node.args
        given = call.node if function is not None else before if isinstance(last, ast.Constant) else last
        if function is not None:
            applied = function_applied_in(function, unit, project)
        else:
            applied = _applied(given, call.scope, unit, project)
        if applied:
            name = function.name if function is not None else ast.unparse(given)
            yield KernelBelowAutograd(unit.source.span_of(given), name, applied, _last(texts), texts[1])


def _last(texts: list[str]) -> str:
    """The name of an operator without its namespace."""
    return texts[0].rpartition("::")[2].partition(".")[0] if texts else ""


def _is_of_device(texts: list[str]) -> bool:
    return len(texts) == 2 and texts[1].upper() in _DEVICES


_DEVICES = frozenset(str.split("CPU CUDA XPU MPS HPU XLA PRIVATEUSE1 COMPOSITEEXPLICITAUTOGRAD"))
"""The dispatch keys of kernels that run below autograd, in capitals: devices are also written in small letters."""


def _is_of_torch(call: CallRecord, unit: Unit, project: Project) -> bool:
    """Whether a call is that of ``torch.library``, or of a library that it makes."""
    func = call.node.func
    if meant(func, call.scope) == "torch.library.impl":
        return True
    return isinstance(func, ast.Attribute) and namespace_of(func, unit, project) is not None


def _applied(node: ast.expr, scope: Scope, unit: Unit, project: Project) -> str:
    """The Function whose ``apply`` an expression is, or whose result a function of the project returns."""
    path = meant(node, scope)
    if path is None:
        return ""
    if path.endswith(".apply"):
        return function_of_apply(path, unit, project)
    found = _certain(path, unit, project)
    record = found.unit.index.functions.get(found.qualname) if found is not None else None
    if found is None or record is None or not record.certain or record.node.decorator_list:
        return ""
    return function_applied_in(record.node, found.unit, project)


def _certain(path: str, unit: Unit, project: Project) -> Definition | None:
    return Definition(unit, path[len(LOCAL) :]) if path.startswith(LOCAL) else project.certainly(unit, path)


def function_of_apply(path: str, unit: Unit, project: Project) -> str:
    """The name of the Function with a gradient that ``path`` is the ``apply`` of; empty if that is not certain."""
    found = _certain(path.removesuffix(".apply"), unit, project)
    if found is None or found.record is None or not project.is_function(found) or member(project, found, "apply"):
        return ""
    backward = member(project, found, "backward")
    record = backward[0].unit.index.functions.get(backward[0].qualname) if backward is not None else None
    gives = [each for each in nodes_in(record.node) if isinstance(each, ast.Return)] if record is not None else []
    return found.name if any(each.value is not None and _is_gradient(each.value) for each in gives) else ""


def _is_gradient(value: ast.expr) -> bool:
    """Whether a returned value is more than ``None``."""
    given = value.elts if isinstance(value, ast.Tuple) else [value]
    return not all(isinstance(each, ast.Constant) and each.value is None for each in given)


def function_applied_in(node: ast.FunctionDef | ast.AsyncFunctionDef, unit: Unit, project: Project) -> str:
    """The one Function whose ``apply`` computes all that a function returns; empty if there is none."""
    nodes = nodes_in(node)
    if any(
        isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and each is not node for each in nodes
    ):
        return ""
    bound = {
        each.targets[0].id: each.value
        for each in nodes
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name)
    }
    stored = [each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    found = set[str]()
    for returned in (each for each in nodes if isinstance(each, ast.Return)):
        value = returned.value
        if isinstance(value, ast.Name) and stored.count(value.id) == 1:
            value = bound.get(value.id)
        path = meant(value.func, unit.index.module) if isinstance(value, ast.Call) else None
        found.add(function_of_apply(path, unit, project) if path is not None and path.endswith(".apply") else "")
    return found.pop() if len(found) == 1 else ""
