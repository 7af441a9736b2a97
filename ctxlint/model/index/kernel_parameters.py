"""The parameters of a kernel written in Python, and those of which it reads at most the first element."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.index.scopes import Scope, dotted_name, resolve
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from ctxlint.model.index.project import Definition


def parameters_of(definition: Definition) -> list[str]:
    """The names of the parameters, in order."""
    arguments = definition.unit.index.functions[definition.qualname].node.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def reads_one_element(definition: Definition) -> frozenset[str]:
    """The parameters of which a kernel reads at most the first element: the layout of such a tensor does not matter."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return frozenset()
    source, parameters = definition.unit.source, set(parameters_of(definition))
    text = source.lines(record.node.lineno, record.node.end_lineno or record.node.lineno)
    written = Counter(_WORD.findall(text))
    if parameters.isdisjoint(_LOADED.findall(text)) and all(written[each] > 1 for each in parameters):
        return frozenset()
    scope = Scope("function", definition.qualname, record.scope)
    spend(100)
    nodes = [each for statement in record.node.body for each in ast.walk(statement)]
    calls = (each for each in nodes if isinstance(each, ast.Call) and len(each.args) == 1 and not each.keywords)
    of_names = (each for each in calls if isinstance(each.args[0], ast.Name))
    loads = [each for each in of_names if resolve(dotted_name(each.func) or "", scope) == "triton.language.load"]
    loaded = {each.args[0] for each in loads}
    used = {each.id for each in nodes if isinstance(each, ast.Name) and each not in loaded}
    return frozenset(parameters - used)


_WORD = pattern(r"\w+")
_LOADED = pattern(r"\bload\(\s*(\w+)\s*\)")
