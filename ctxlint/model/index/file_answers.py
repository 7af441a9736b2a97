"""Questions about the code of a whole file.

The editor keeps the result for a Function only as long as these questions have the same answers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.module_stores import may_set
from ctxlint.model.index.project_answers import is_only_passed, may_refuse
from ctxlint.model.index.python_names import creates_names
from ctxlint.model.index.replaced_names import may_replace, replaces_name
from ctxlint.model.index.scopes import dotted_name, resolve
from ctxlint.source.ast_tree import nodes_in
from ctxlint.source.modules import root_of_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project


def answer_about(unit: Unit, question: tuple[str, str]) -> bool:
    """The answer to a question about a file: its kind, and the name that it is about. The file notes that it was asked.

    ``sets``: whether the file may give a module of torch or NumPy that name, or asks whether it has it. ``replaces``:
    whether it may replace what that dotted name of torch means.
    ``refuses``: whether it may not be imported with this release. ``creates``: whether it may bind names at run time.
    ``passes``: whether the file only passes what it binds to that name, and so never changes it.
    ``copies``: whether it passes ``x.contiguous()`` to the function with that dotted name.
    """
    unit.source.depends_on(question)
    key = ("answer", question)
    if key not in unit.summaries:
        kind, name = question
        unit.summaries[key] = _ANSWERS[kind](unit, name)
    return bool(unit.summaries[key])


def is_replaced(unit: Unit, project: Project, name: str) -> bool:
    """Whether a dotted name of torch may mean something else in a file: a file of the project may replace it."""
    asked = project.ask("replaces", root_of_file(unit.path), name)
    return answer_about(unit, ("replaces", name)) or asked in project.changed


def _may_replace(unit: Unit, name: str) -> bool:
    return may_replace(unit.source.text.encode("utf-8", "replace"), (name,)) and replaces_name(unit.tree, name)


def _may_set(unit: Unit, name: str) -> bool:
    return answer_about(unit, ("refuses", "")) or may_set(unit.tree, name)


def _passes_copies(unit: Unit, name: str) -> bool:
    last = name.rpartition(".")[2]
    calls = (each for each in unit.index.calls if each.name == last and any(map(_is_copy, each.node.args)))
    return any(resolve(dotted_name(each.node.func) or "", each.scope) == name for each in calls)


def _is_copy(node: ast.expr) -> bool:
    """Whether it is ``x.contiguous()``."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "contiguous"


_ANSWERS: dict[str, Callable[[Unit, str], bool]] = {
    "sets": _may_set,
    "replaces": _may_replace,
    "refuses": lambda unit, _name: may_refuse(unit.tree),
    "passes": lambda unit, name: is_only_passed([*nodes_in(unit.module)], (name,)),
    "copies": _passes_copies,
    "creates": lambda unit, _name: unit.tree is None or creates_names(unit.tree, unit.path),
}
