"""The structure described in CONTRIBUTING.md: no import circle, no duplicate function, unique names."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from tests.fixture_reader import ROOT
from tests.structure import FUNCTIONS, circles, imports, modules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_TWIN = 2
"""So many lines may stand twice: a test fixture that installs something and changes the folder."""


def test_no_modules_import_each_other() -> None:
    """Imports for type checkers and imports in functions count as well."""
    edges = defaultdict(set)
    for each in imports():
        edges[each.importer].add(each.imported)
    assert circles(edges) == []


def test_no_rooms_import_each_other() -> None:
    """A room is a folder of ctxlint, or a module right below it."""
    edges = defaultdict(set)
    for each in imports():
        if "." in each.importer:  # the package itself offers what is made on top of everything
            edges[each.importer.split(".")[1]].add(each.imported.split(".")[1])
    assert circles(edges) == []


def test_no_two_modules_have_one_name() -> None:
    """Packages do not count, and what is in ``commands`` is named after the commands."""
    paths = (ROOT / "ctxlint").rglob("*.py")
    names = [path.stem for path in paths if path.stem != "__init__" and path.parent.name != "commands"]
    assert {name for name in names if names.count(name) > 1} == set()


def test_no_two_classes_have_one_name() -> None:
    """A rule is named after its code; what is private to a module may be called as it likes."""
    bodies = [tree.body for name, tree in modules().items() if not name.startswith("ctxlint.rules.ctx")]
    names = [node.name for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1 and not name.startswith("_")} == set()


def test_no_body_of_a_function_stands_twice() -> None:
    found = defaultdict(list)
    for path, function in _functions():
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if body and (body[-1].end_lineno or 0) - body[0].lineno >= LONGEST_TWIN:
            found["\n".join(map(ast.dump, body))].append(f"{path.relative_to(ROOT)}:{function.name}")
    assert [places for places in found.values() if len(places) > 1] == []


def _functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for folder in ("ctxlint", "tests", "website", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, FUNCTIONS):
                    yield path, node
