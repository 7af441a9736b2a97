"""The import graph of ctxlint, from its source: typing and function-level imports included."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One import of one module of ctxlint by another; ``late`` if it is inside a function."""

    importer: str
    imported: str
    line: int
    late: bool


def name_of(path: Path) -> str:
    """``ctxlint.model.interpreter.method``, and ``ctxlint.model`` for the module of a package itself."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of ctxlint, by name."""
    paths = sorted((ROOT / "ctxlint").rglob("*.py"))
    return {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def imports() -> tuple[Import, ...]:
    """Every import of a module of ctxlint by another one, wherever in the module it stands."""
    return tuple(_imports())


def _imports() -> Iterator[Import]:
    for name, tree in modules().items():
        within = {id(each) for node in ast.walk(tree) if isinstance(node, FUNCTIONS) for each in ast.walk(node)}
        for node in ast.walk(tree):
            for imported in _imported(node):
                if imported != name:
                    yield Import(name, imported, getattr(node, "lineno", 0), id(node) in within)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _imported(node: ast.AST) -> set[str]:
    """The modules of ctxlint that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in modules()}
    if isinstance(node, ast.ImportFrom) and node.module in modules():
        below = {f"{node.module}.{alias.name}" for alias in node.names}
        return {name for name in below if name in modules()} or {node.module or ""}
    return set()


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of names that reach each other (Tarjan's strongly connected components of more than one)."""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(edges.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(edges):
        if name not in index:
            visit(name)
    return found
