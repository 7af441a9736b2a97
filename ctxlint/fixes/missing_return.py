"""Inserting ``return`` in front of gradients that are a statement of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.class_layout import layout_of

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass


def insert_return(fn: FunctionClass, statement: cst.CSTNode) -> Fix | None:
    """Return an expression statement that ends the block of a compound statement; None for any other."""
    layout, method = layout_of(fn, fn.backward), fn.backward
    if layout is None or method is None or not isinstance(statement, cst.Expr) or method.node.returns is not None:
        return None
    line = method.parents[statement]
    block = method.parents[line]
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, cst.IndentedBlock):
        return None
    if block is method.node.body or block.body[-1] is not line or line.body[-1] is not statement:
        return None
    return Fix("Return the gradients", (layout.insert(layout.start(statement.value), "return "),), Applicability.UNSAFE)
