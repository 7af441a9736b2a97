"""Calls that overwrite their argument since a flag says so: ``F.relu(y, inplace=True)``, ``self.relu(y)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name, is_on_self, resolutions
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.operations import INPLACE_FLAGS

if TYPE_CHECKING:
    from ctxlint.model.index.scopes import Scope


def overwritten(call: ast.Call, scope: Scope, owner: ast.ClassDef | None) -> ast.expr | None:
    """The tensor that a call in a method of ``owner`` certainly overwrites; None if it is unknown."""
    if not call.args:
        return None
    layer = _layer(call.func, owner) if len(call.args) == 1 and not call.keywords else None
    if layer is not None:
        return call.args[0] if _is_inplace(layer, scope, of_layer=True) else None
    return call.args[0] if _is_inplace(call, scope, of_layer=False) else None


def _is_inplace(call: ast.Call, scope: Scope, *, of_layer: bool) -> bool:
    """Whether a function of torch, or the layer that a call creates, certainly works in place."""
    path = dotted_name(call.func)
    meant = resolutions(path, scope) if path is not None else []
    module, _, name = (meant[0] or "").rpartition(".") if len(meant) == 1 else ("", "", "")
    position = INPLACE_FLAGS.get(name) if module == ("torch.nn" if of_layer else "torch.nn.functional") else None
    if position is None or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    flags = [each.value for each in call.keywords if each.arg == "inplace"] or call.args[position : position + 1]
    return any(isinstance(each, ast.Constant) and each.value is True for each in flags)


def _layer(func: ast.expr, owner: ast.ClassDef | None) -> ast.Call | None:
    """The call that creates ``self.relu``, if ``__init__`` always does it, and nothing else in the class binds it."""
    if owner is None or not isinstance(func, ast.Attribute) or dotted_name(func.value) != "self":
        return None
    stores = [
        each
        for each in nodes_in(owner)
        if isinstance(each, ast.Attribute) and each.attr == func.attr and not isinstance(each.ctx, ast.Load)
    ]
    methods = (each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    statements = [each for method in methods for each in method.body if isinstance(each, ast.Assign)]
    created = next((each for each in statements if each.targets == stores and is_on_self(stores[0])), None)
    return created.value if created is not None and isinstance(created.value, ast.Call) else None
