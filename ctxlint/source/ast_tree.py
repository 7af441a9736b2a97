"""Source text as a tree of ``ast``."""

from __future__ import annotations

import ast
import warnings

from ctxlint.source.nesting import too_deep_for_ast


def tree_of(text: str) -> ast.Module | None:
    """The tree of a text; None if Python cannot parse it. Other linters report what Python warns of."""
    if too_deep_for_ast(text) is not None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
