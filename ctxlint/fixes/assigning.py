"""Assigning the result of a call that is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability
from ctxlint.fixes.method_code import code_of_method

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.dropped_results import DroppedResult
    from ctxlint.model.function import FunctionClass, Method


def assign_result(fn: FunctionClass, method: Method, dropped: DroppedResult) -> Fix | None:
    """Write ``x = x.contiguous()`` for ``x.contiguous()``, if ``x`` is read later; this changes its values."""
    code = code_of_method(fn, method) if dropped.wanted else None
    if code is None:
        return None
    edit = code.layout.insert(code.layout.start(dropped.call), f"{dropped.name} = ")
    return code.fix(f"Bind the result to `{dropped.name}`", [edit], Applicability.UNSAFE)
