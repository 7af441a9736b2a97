"""Exchanging the names that two saved tensors get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.class_layout import layout_of

if TYPE_CHECKING:
    from ctxlint.model.analyses.exchanged_saves import ExchangedSaves
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


def exchange_names(fn: FunctionClass, method: Method, found: ExchangedSaves) -> Fix | None:
    """Let the two names change places where they are bound."""
    layout, first, second = layout_of(fn, method), found.first, found.second
    if layout is None:
        return None
    edits = (layout.replace(first, second.value), layout.replace(second, first.value))
    return Fix(f"Unpack `{second.value}` before `{first.value}`", edits, Applicability.UNSAFE)
