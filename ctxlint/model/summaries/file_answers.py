"""Questions about the code of a whole file.

The editor keeps the result for a Function only as long as these questions have the same answers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.project_answers import may_refuse, may_set
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit


def answer_about(unit: Unit, question: tuple[str, str]) -> bool:
    """The answer to a question about a file: its kind, and the name that it is about.

    ``sets``: whether the file may give a module of torch or NumPy that name, or asks whether it has it.
    ``passes``: whether the file only passes what it binds to that name, and so never changes it.
    """
    unit.source.depends_on(question)
    key = ("answer", question)
    if key not in unit.summaries:
        kind, name = question
        unit.summaries[key] = _may_set(unit, name) if kind == "sets" else _is_only_passed(unit, name)
    return bool(unit.summaries[key])


def _may_set(unit: Unit, name: str) -> bool:
    return may_refuse(unit.tree) or may_set(unit.tree, name)


def _is_only_passed(unit: Unit, name: str) -> bool:
    """Whether a file only passes a name to calls and runs through it in comprehensions: it may change it otherwise."""
    nodes = [*nodes_in(unit.module)]
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    passed = {id(each) for call in calls for each in (*call.args, *(one.value for one in call.keywords))}
    passed |= {id(each.iter) for each in nodes if isinstance(each, ast.comprehension)}
    read = (each for each in nodes if isinstance(each, ast.Name) and each.id == name)
    return all(isinstance(each.ctx, ast.Store) or id(each) in passed for each in read)
