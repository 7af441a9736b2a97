"""Renaming attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.class_layout import layout_of

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Method


def rename_attribute(fn: FunctionClass, method: Method, node: cst.CSTNode, new: str) -> Fix | None:
    """Write ``….new`` for an attribute that has two names; None if ``node`` is not a plain attribute."""
    layout = layout_of(fn, method)
    if layout is None or not isinstance(node, cst.Attribute):
        return None
    return Fix(f"Use `{new}`", (layout.replace(node.attr, new),), Applicability.SAFE)
