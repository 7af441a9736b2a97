"""Keeping the only dimension of a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Edit
from ctxlint.fixes.method_code import code_of_method
from ctxlint.model.syntax import code_of

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.squeezed import Squeezed
    from ctxlint.model.analyses.unaligned_squeezes import UnalignedSqueeze
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


def name_dimension(fn: FunctionClass, found: UnalignedSqueeze) -> Fix | None:
    """Write ``.squeeze(dim)`` in place of ``.squeeze()``."""
    code = code_of_method(fn, fn.backward) if fn.backward is not None else None
    if code is None or not isinstance(found.call.func, cst.Attribute):
        return None
    written = f".squeeze({code_of(found.dimension)})"
    edit = Edit(code.layout.end(found.call.func.value), code.layout.end(found.call), written)
    return code.fix(f"Write `{written[1:]}`", [edit])
