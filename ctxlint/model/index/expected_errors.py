"""Classes that exist for an error: a test defines them, and expects that using them raises or warns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import ClassRecord, FileIndex

EXPECT_ERRORS = frozenset(
    {"raises", "warns", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "assertWarns", "assertWarnsRegex"}
)
"""The last part of the names of functions that expect an exception or a warning in tests."""


def expects_errors(node: ast.AST) -> bool:
    """Whether an expression is a call like ``pytest.raises(...)``."""
    func = node.func if isinstance(node, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else None
    return name in EXPECT_ERRORS


def is_for_errors(record: ClassRecord, index: FileIndex) -> bool:
    """Whether a function defines a class, and uses it, but only where it expects an error or a warning."""
    function = index.function_of(record.scope)
    if function is None:
        return False
    end = record.node.end_lineno or record.node.lineno
    lines = (bound.line for bound in record.scope.names.get(record.node.name, ()))
    following = min((line for line in lines if line > end), default=None)
    uses = [
        expected
        for name, expected in _names(function.node)
        if name.id == record.node.name and end < name.lineno and (following is None or name.lineno < following)
    ]
    return bool(uses) and all(uses)


def _names(top: ast.AST) -> Iterator[tuple[ast.Name, bool]]:
    """The names in some code, and whether each is where an error is expected."""
    pending = [(top, False)]
    for node, expected in pending:
        if isinstance(node, ast.Name):
            yield node, expected
        around = [item.context_expr for item in node.items] if isinstance(node, (ast.With, ast.AsyncWith)) else [node]
        within = expected or any(map(expects_errors, around))
        pending += [(child, within) for child in ast.iter_child_nodes(node)]
