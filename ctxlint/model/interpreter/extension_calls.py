"""Which calls run compiled code: of an extension, by the name or the loader of its module, or of an operator."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.scopes import dotted_name, resolve
from ctxlint.torch_api.extensions import EXTENSION_LOADERS, OPERATORS_OF_TORCH, is_of_extension

if TYPE_CHECKING:
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.walk import Walk

_OPERATORS = "torch.ops."


def calls_extension(callee: str) -> bool:
    """Whether a dotted name is that of a function of a compiled extension, or of an operator that torch lacks."""
    namespace = callee[len(_OPERATORS) :].partition(".")[0] if callee.startswith(_OPERATORS) else None
    return is_of_extension(callee) if namespace is None else namespace not in OPERATORS_OF_TORCH


def calls_loaded_extension(walk: Walk, function: cst.Attribute) -> bool:
    """Whether a function belongs to an extension that the file loads: ``ext = load(name="…", sources=…)``."""
    module = function.value
    if not isinstance(module, cst.Name) or module.value in walk.names.local:
        return False
    owner = walk.names.scope.owner(module.value)
    return owner is not None and owner.kind == "module" and loads_extension(module.value, owner)


def loads_extension(name: str, scope: Scope) -> bool:
    """Whether a name of a module is bound once, to an extension that is loaded there, or to one by either name."""
    bounds = scope.live(name)
    value = bounds[0].value if len(bounds) == 1 else None
    if isinstance(value, ast.Call) and (is_of_extension(f"{name}.") or _names_extension(value)):
        return True
    path = dotted_name(value.func) if isinstance(value, ast.Call) else None
    meant = resolve(path, scope) if path is not None else None
    return meant is not None and meant.endswith(EXTENSION_LOADERS)


def _names_extension(call: ast.Call) -> bool:
    """Whether the first argument is the name of an extension: ``load_ext("_ext", ["roi_align_forward"])``."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and is_of_extension(f"{first.value}.")
