"""Code that may make the size of a tensor a multiple of a number, or refuse one that is not."""

from __future__ import annotations

import ast
import re

from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in

FITTING = pattern(
    r"pad|divi(?!sion|de(?![ds]))|evenly|divmod|gcd|multiple|align|round_|check|ensure|valid|support|next_power",
    re.IGNORECASE,
)
"""What is in the names of functions and variables that do so."""
SIZES = frozenset(["shape", "size", "numel"])
"""The attributes of a tensor that say how large it is."""
RESHAPING = frozenset(["view", "reshape", "unflatten", "rearrange"])
"""The functions that raise an error if a size is not a multiple of the number of elements in a group."""
MAY_FIT = pattern(
    rf"%|&|raise|assert|{'|'.join([*sorted(SIZES), *sorted(RESHAPING)])}|{FITTING.pattern}", re.IGNORECASE
)
"""What is in the text of all such code."""


LIMITS = pattern(
    r"[<>]=?\s*\(?\s*(?:2\s*\*\*\s*3[0-2]|1\s*<<\s*3[0-2]|21474836\d\d|(?:\w+\.)?iinfo\b|(?i:\w*int(?:32)?_?max|\w*max_?int))"
    r"|numel\(\)\s*[<>]=?\s*[A-Z]{2}"
)
"""What is in the text of code that compares a number of elements with those that 32 bits can count."""


def may_fit_sizes(code: ast.AST) -> bool:
    """Whether some code computes a remainder, tests or refuses a size, makes groups, or has such a name in it."""
    return any(map(_may_fit, nodes_in(code)))


def _may_fit(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        is_format = isinstance(node.left, (ast.Constant, ast.JoinedStr))
        remainder = isinstance(node.op, ast.Mod) and not is_format
        return remainder or (isinstance(node.op, ast.BitAnd) and _is_number(node.right))
    if isinstance(node, (ast.Name, ast.Attribute)):
        return bool(FITTING.search(node.id if isinstance(node, ast.Name) else node.attr))
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
        return _compares_values(node.test) or _measures(node.test)
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return _measures(node.test)
    if isinstance(node, ast.Assert):
        return any(isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.In) for each in nodes_in(node.test))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RESHAPING:
        return any(_is_group(each) for each in node.args)
    return False


def _measures(test: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in SIZES for each in nodes_in(test))


def _compares_values(test: ast.AST) -> bool:
    """Whether a test compares with something else than None and texts."""
    others = [other for each in nodes_in(test) if isinstance(each, ast.Compare) for other in each.comparators]
    return any(not isinstance(each, ast.Constant) or isinstance(each.value, int) for each in others)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) or (isinstance(node, ast.Constant) and type(node.value) is int)


def _is_group(node: ast.AST) -> bool:
    """Whether a new size is a number, or computed with ``//``."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value > 1
    return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.FloorDiv) for each in nodes_in(node))
