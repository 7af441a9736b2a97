"""Code that may make the size of a tensor a multiple of a number, or refuse one that is not."""

from __future__ import annotations

import ast
import re

from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in

FITTING = pattern(r"pad|divi[sd]|multiple|align|round_|check|valid|next_power", re.IGNORECASE)
"""What is in the names of functions and variables that do so."""


def may_fit_sizes(code: ast.AST) -> bool:
    """Whether some code computes a remainder, or has such a name in it."""
    for each in nodes_in(code):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod):
            if not isinstance(each.left, (ast.Constant, ast.JoinedStr)):  # of a format
                return True
        elif isinstance(each, (ast.Name, ast.Attribute)):
            if FITTING.search(each.id if isinstance(each, ast.Name) else each.attr):
                return True
    return False
