"""Classes that exist for an error: a test defines them, and expects that using them raises or warns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import ClassRecord, FileIndex
    from ctxlint.model.index.scopes import Scope

    _Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Use(NamedTuple):
    """A name, whether it is where an error is expected, and the nested function that it is in."""

    name: ast.Name
    expected: bool
    inside: _Definition | None


_Uses = dict[str, list[_Use]]
"""The uses of names, by name."""


EXPECT_ERRORS = frozenset(
    {"raises", "warns", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "assertWarns", "assertWarnsRegex"}
)
"""The last part of the names of functions that expect an exception or a warning in tests."""


def expects_errors(node: ast.AST) -> bool:
    """Whether an expression is a call like ``pytest.raises(...)``."""
    return _called(node) in EXPECT_ERRORS


def _called(node: ast.AST) -> str | None:
    """The last part of the name of what an expression calls; None if it is no such call."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else None


def is_for_errors(record: ClassRecord, index: FileIndex) -> bool:
    """Whether a function defines a class, and uses it, but only where it expects an error or a warning."""
    function = index.function_of(record.scope)
    if function is None:
        return False
    key = (is_for_errors, record.scope.qualname)
    if key not in index.notes:
        index.notes[key] = _by_name(function.node)
    uses: _Uses = index.notes[key]
    return _is_for_errors(record.node, record.scope, uses)


def _by_name(function: _Definition) -> _Uses:
    """The uses of each name in a function."""
    found: _Uses = {}
    for use in _names(function):
        found.setdefault(use.name.id, []).append(use)
    return found


def _is_for_errors(defined: _Definition, scope: Scope, names: _Uses, seen: tuple[_Definition, ...] = ()) -> bool:
    """Whether all uses of what a function defines, until it binds the name again, are where it expects an error."""
    end = defined.end_lineno or defined.lineno
    lines = (bound.line for bound in scope.names.get(defined.name, ()))
    following = min((line for line in lines if line > end), default=None)
    uses = [
        use
        for use in names.get(defined.name, ())
        if end < use.name.lineno and (following is None or use.name.lineno < following)
    ]
    seen = (*seen, defined)
    return bool(uses) and all(
        use.expected or use.inside in seen or (use.inside and _is_for_errors(use.inside, scope, names, seen))
        for use in uses
    )


def _names(top: _Definition) -> Iterator[_Use]:
    """The names in a function, and whether each is where an error is expected."""
    pending: list[tuple[ast.AST, bool, _Definition | None]] = [(each, False, None) for each in top.body]
    for node, expected, inside in pending:
        if isinstance(node, ast.Name):
            yield _Use(node, expected, inside)
        around = [item.context_expr for item in node.items] if isinstance(node, (ast.With, ast.AsyncWith)) else [node]
        within = expected or any(expects_errors(each) or _records_warnings(each) for each in around)
        nested = node if inside is None and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else inside
        pending += [(child, within, nested) for child in ast.iter_child_nodes(node)]


def _records_warnings(node: ast.AST) -> bool:
    """Whether an expression is ``warnings.catch_warnings(record=True)``."""
    keywords = [each.arg for each in node.keywords] if isinstance(node, ast.Call) else []
    return _called(node) == "catch_warnings" and "record" in keywords
