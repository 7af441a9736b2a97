"""Names that need no statement of a file: those of Python and its tools, and what may bind others without one."""

from __future__ import annotations

import ast
import builtins
import os.path
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.source.source import Source

BUILTINS = frozenset(dir(builtins))

RECEIVERS = frozenset({"self", "cls"})
"""What authors call the parameter for the instance or the class."""

INJECTED = frozenset({"_", "display", "get_ipython", "profile", "reveal_type"})
"""Names that gettext, IPython, a profiler or a type checker provides."""

_CREATING_NAMES = frozenset({"exec", "globals", "modules", "vars", "builtins", "__builtins__"})
"""A file that reads one of these may create names without a statement that binds them."""


def is_always_bound(name: str) -> bool:
    """Whether Python or a tool may bind a name, or another rule is about it where nothing does."""
    return name in BUILTINS or name in INJECTED or name in RECEIVERS or name == "ctx" or name.startswith("__")


def mentions_creation(source: Source) -> bool:
    """Whether the text mentions what creates names by other means than statements."""
    end = f".{_stem(source.path)}"
    return (
        any(map(source.mentions, (*_CREATING_NAMES, "__name__"))) or source.holds(f'{end}"') or source.holds(f"{end}'")
    )


def creates_names(tree: ast.Module, path: str) -> bool:
    """Whether the code reads it, or hands the name of its module to a function that may set names in that."""
    return any(map(_may_create, nodes_in(tree))) or passes_its_name(tree, path)


def passes_its_name(tree: ast.Module, path: str) -> bool:
    """Whether a statement of a module hands its name to a function, which may set names in it."""
    stem = _stem(path)
    return any(_names_module(each, stem) for each in _of_module(tree.body))


def _of_module(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run with the module: also those under ``if``, ``try``, ``with`` and in loops."""
    for each in body:
        yield each
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                yield from _of_module(getattr(each, name, ()))
            for handler in getattr(each, "handlers", ()):
                yield from _of_module(handler.body)


def _names_module(statement: ast.stmt, stem: str) -> bool:
    """Whether it is a call such as ``load_functions("kernels", __name__)`` or ``load_functions("package.module")``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    given = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
    return any(
        (isinstance(each, ast.Name) and each.id == "__name__")
        or (isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.endswith(f".{stem}"))
        for each in given
    )


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _may_create(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "modules" and isinstance(node.value, ast.Name) and node.value.id == "sys"
    return isinstance(node, ast.Name) and node.id in _CREATING_NAMES
