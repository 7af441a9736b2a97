"""Keeping the only dimension of a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Edit
from ctxlint.fixes.method_code import code_of_method

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.squeezed import Squeezed
    from ctxlint.model.function import FunctionClass


def keep_dimension(fn: FunctionClass, squeezed: Squeezed) -> Fix | None:
    """Drop ``.squeeze(...)``, or write ``.reshape(-1)`` if it removes dimensions that the sums keep."""
    code = code_of_method(fn, fn.backward) if fn.backward is not None else None
    if code is None:
        return None
    if squeezed.all:
        owners = ((each.func.value, each) for each in squeezed.all if isinstance(each.func, cst.Attribute))
        edits = [Edit(code.layout.end(owner), code.layout.end(call), "") for owner, call in owners]
        return code.fix("Drop each `squeeze`", edits)
    instead, what = (".reshape(-1)", "Use `reshape(-1)`") if squeezed.keeps else ("", "Drop `squeeze`")
    return code.fix(what, [Edit(code.layout.end(squeezed.sums), code.layout.end(squeezed.call), instead)])
