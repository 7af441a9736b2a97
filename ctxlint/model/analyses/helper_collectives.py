"""Functions of the project that communicate in a process group which backward passes to them."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.omitted_arguments import GROUP
from ctxlint.model.index.scopes import Scope, dotted_name, resolve_certainly
from ctxlint.model.syntax import dotted, passed_for
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import bound_names, nodes_in, parameter_names, positional_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.analyses.helper_uses import Find
    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import Method

COLLECTIVE = pattern(r"reduce|gather|scatter|all_?to_?all|alltoall|broadcast|send|recv|receive")
"""What is in the names of functions that communicate, unlike ``get_world_size``."""

_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d")
_MOST_LEVELS = 2
"""How many functions that a function of the project calls are followed."""


def communicating_attributes(backward: Method, find: Find) -> Iterator[str]:
    """The attributes of ctx that backward passes to a function of the project as the group of a collective of torch.

    The function passes on None as it is, which means the default group. By the code alone: the methods of a Function
    in another file are not analysed.
    """
    if backward.home is None:
        return
    for call in backward.nodes_of(cst.Call):
        passed = [each.value for each in call.args if backward.is_on_ctx(each.value)]
        home = find(backward.home.unit, backward.meaning(dotted(call.func) or "")) if passed else None
        record = _record(home) if home is not None else None
        if home is None or record is None:
            continue
        for parameter in _groups_of(home, record, find, _MOST_LEVELS):
            given = passed_for(call, positional_names(record.node.args), parameter)
            if given is not None and backward.is_on_ctx(given):
                yield given.attr.value


def _record(home: Definition) -> FunctionRecord | None:
    """The function of a definition, if it is the only one, and its parameters are those that callers see."""
    record = home.unit.index.functions.get(home.qualname)
    known = record is not None and record.certain and not record.alternatives and not record.node.decorator_list
    return record if known else None


def _groups_of(home: Definition, record: FunctionRecord, find: Find, levels: int) -> list[str]:
    """The parameters of a function that are the groups in which it communicates, whatever they are."""
    nodes, names = nodes_in(record.node), parameter_names(record.node.args)
    inside, found = Scope("function", "", record.scope), set[str]()
    for call in (each for each in nodes if isinstance(each, ast.Call)):
        given = {each.id for each in _arguments(call) if isinstance(each, ast.Name)}
        if given.isdisjoint(names):
            continue
        meant = resolve_certainly(dotted_name(call.func) or "", inside) or ""
        module, _, name = meant.rpartition(".")
        if module in _MODULES:
            found |= {each for each in given if COLLECTIVE.search(name) and _is_group_of(call, each)}
        elif levels and meant and not meant.startswith(_NOT_OF_PROJECTS):
            inner = find(home.unit, meant)
            called = _record(inner) if inner is not None else None
            if inner is not None and called is not None:
                own = _groups_of(inner, called, find, levels - 1)
                found |= {each for each in given if any(_gets(called, call, parameter, each) for parameter in own)}
    return [each for each in names if each in found and not _is_decided(each, nodes)]


_NOT_OF_PROJECTS = ("torch.", "builtins.", "einops.", "math.", "numpy.")


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _is_group_of(call: ast.Call, name: str) -> bool:
    """Whether a collective of torch gets a variable as its group."""
    by_keyword = any(each.arg == "group" and _is_name(each.value, name) for each in call.keywords)
    return by_keyword or (GROUP.fullmatch(name) is not None and any(_is_name(each, name) for each in call.args))


def _gets(function: FunctionRecord, call: ast.Call, parameter: str, name: str) -> bool:
    """Whether a call passes a variable for a parameter of the function."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return False
    by_position = dict(zip(positional_names(function.node.args), call.args))
    passed = by_position | {each.arg: each.value for each in call.keywords if each.arg is not None}
    return parameter in passed and _is_name(passed[parameter], name)


def _is_decided(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a function binds a parameter again, or does something else without it."""
    if Counter(each.arg for each in nodes if isinstance(each, ast.arg))[name] > 1 or name in bound_names(nodes):
        return True
    tests = [each.test for each in nodes if isinstance(each, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    tests += [each for each in nodes if isinstance(each, ast.BoolOp)]
    tests += [each.subject for each in nodes if isinstance(each, ast.Match)]
    return any(_is_name(part, name) for test in tests for part in nodes_in(test))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
