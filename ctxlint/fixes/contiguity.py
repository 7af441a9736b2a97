"""Fixes for code that assumes that an incoming gradient is contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.method_code import code_of_method
from ctxlint.model.analyses.layout_uses import FOREIGN, OTHERS, LayoutUse, layout_uses
from ctxlint.model.function import Mutation
from ctxlint.model.interpreter.values import Fresh, Parameter, SavedTensor, Tri, usual_storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.fix import Fix
    from ctxlint.fixes.method_code import MethodCode
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Value


def allow_any_layout(fn: FunctionClass, use: LayoutUse) -> Fix | None:
    """Write ``g.reshape(...)`` for ``g.view(...)``, or make the gradient contiguous before.

    ``reshape`` is a view wherever ``view`` works, and a copy elsewhere, which is not enough for compiled code that gets
    the result; a pointer keeps no tensor alive. So if the gradient may be written to, or its pointer is taken, the
    gradient itself is made contiguous at the start.
    """
    if use.how in (FOREIGN, OTHERS):
        return None
    method, call, gradient = fn.backward, use.node, use.name
    code = code_of_method(fn, method) if method is not None else None
    if method is None or code is None:
        return None
    pointers = any(each.name == gradient and each.how == "data_ptr" for each in layout_uses(method))
    if use.how != "view" or use.by or pointers or _may_be_written(code, gradient):
        return _contiguous_first(fn, code, use.names)
    if not isinstance(call, cst.Call) or not isinstance(func := call.func, cst.Attribute):
        return None
    if not use.compiled:
        return code.fix("Use `reshape`", [code.layout.replace(func.attr, "reshape")])
    edit = code.layout.insert(code.layout.end(func.value), ".contiguous()")
    return code.fix(f"Make `{gradient}` contiguous first", [edit])


def _contiguous_first(fn: FunctionClass, code: MethodCode, gradients: Sequence[str]) -> Fix | None:
    """Rebind gradients; None if one may be None, or its name means something else in a nested scope."""
    params = [node for node in code.nodes() if isinstance(node, cst.Param)]
    for each in gradients:
        named = [node for node in params if node.name.value == each]
        if fn.materializes_grads is not Tri.YES or len(named) != 1 or named[0].star or code.bindings(each):
            return None
    edits = [code.first(f"{each} = {each}.contiguous()") for each in gradients]
    names = ", ".join(f"`{each}`" for each in gradients)
    return code.fix(f"Make {names} contiguous first", edits, Applicability.UNSAFE)


def _may_be_written(code: MethodCode, gradient: str) -> bool:
    """Whether an in-place operation may modify the gradient, directly or through a view."""
    targets = [mutation.target for mutation in code.method.facts.of(Mutation)]
    return not all(target is not None and _is_another(usual_storage(target), gradient) for target in targets)


def _is_another(tensor: Value | None, gradient: str) -> bool:
    """Whether a tensor is certainly not the gradient."""
    if isinstance(tensor, Parameter):
        return tensor.name != gradient
    return isinstance(tensor, (Fresh, SavedTensor))
