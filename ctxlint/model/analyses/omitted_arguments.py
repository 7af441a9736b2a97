"""Arguments that calls of functions leave to their defaults, although the Function has a value for them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.unsummed_gathers import module_of
from ctxlint.model.index.scopes import Scope, dotted_name, resolve_certainly
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.syntax import dotted, is_name, keywords_of, last_name, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.ast_tree import defaults_of, nodes_in, parameter_names, positional_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeGuard

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.interpreter.method import Method

GROUP = pattern(r"group|pg|.*_group|.*_pg")
"""What a process group is called."""

_GROUP_AT = {
    "all_reduce": 2,
    "all_gather": 2,
    "all_gather_into_tensor": 2,
    "_all_gather_base": 2,
    "reduce_scatter": 3,
    "reduce_scatter_tensor": 3,
    "_reduce_scatter_base": 3,
    "all_to_all": 2,
    "all_to_all_single": 4,
}
"""The collectives of torch that all processes of a group take part in, and where it is by position."""

_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d")


_WORD = pattern(r"\w+")
_AS_GROUP = frozenset(["group", "pg", "process_group"])
"""What a parameter for a process group is called, also in code that is not in view."""


@record
class Signature:
    """The parameters of a function, with the code of their defaults, and how many take arguments by position."""

    function: FunctionRecord
    defaults: Mapping[str, ast.expr | None]
    positional: int


@record
class Moved:
    """An argument by position with the name of ``parameter``, which gets none, but for ``taken_by``."""

    call: cst.Call
    argument: cst.BaseExpression
    parameter: str
    taken_by: str


@record
class WithoutGroup:
    """A call in backward without a process group, its ``parameter``, though forward uses its input ``group``."""

    call: cst.Call
    parameter: str
    group: str


def misplaced_arguments(method: Method) -> Iterator[Moved]:
    """The arguments of calls of the project that miss their places, as if the function had fewer parameters before.

    A single one whose own parameter is None by default may be meant: the function may take either.
    """
    for call, signature in _known_calls(method):
        omitted = _omitted(call, signature)
        found = [*_moved(method, call, signature, omitted)] if omitted else []
        if len(found) > 1 or any(not _is_none(omitted[each.parameter]) for each in found):
            yield from found


def calls_without_group(fn: FunctionClass, backward: Method) -> Iterator[WithoutGroup]:
    """The calls in backward that work in the default group, if forward gets one process group and passes it on.

    Not next to another call that gets a group: backward may work in two.
    """
    groups = [each.name for each in fn.inputs if GROUP.fullmatch(each.name)]
    if len(groups) != 1 or not any(_passes_group(method, groups[0]) for method in fn.earlier_methods):
        return
    if _tests_group(backward):
        return
    for call, parameter in _without_group(backward):
        if not _is_beside_one_with_group(backward, call):
            yield WithoutGroup(call, parameter, groups[0])


def _without_group(backward: Method) -> Iterator[tuple[cst.Call, str]]:
    """The calls that leave a process group to its default, and the parameter for it."""
    for call, signature in _known_calls(backward):
        for name, default in _omitted(call, signature).items():
            if GROUP.fullmatch(name) and _is_none(default) and not _mentions_group(call):
                if _is_group(signature.function, name) and _works_without(signature.function, name):
                    yield call, name
    for call in backward.nodes_of(cst.Call):
        at = _GROUP_AT.get(last_name(call.func))
        given = [each.keyword is None and not each.star for each in call.args]
        if at is not None and given.count(True) <= at and not _mentions_group(call):
            if module_of(backward, call) in _MODULES and not any(each.star for each in call.args):
                yield call, "group"


def _known_calls(method: Method) -> Iterator[tuple[cst.Call, Signature]]:
    """The calls of functions of the project that are certain, with the parameters of these."""
    home = method.home
    if home is None or home.record is None:
        return
    scope = Scope("function", "", home.record.body)
    for event in method.facts.of(GenericCall):
        node, definition = event.node, event.definition
        if definition is None or not isinstance(node, cst.Call) or "." in definition.qualname:
            continue
        known = definition.unit.index.functions.get(definition.qualname)
        if known is None or not known.certain or known.alternatives:
            continue
        if resolve_certainly(dotted(node.func) or "", scope) == event.callee and _keeps_parameters(known.node):
            yield node, _signature(known)


def _keeps_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the parameters of a function are those that its callers see."""
    decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return all((dotted_name(each) or "") in _KEEPING for each in decorators)


_KEEPING = frozenset(["torch.no_grad", "torch.compile", "torch.jit.script", "torch.inference_mode"])
"""Decorators that leave the parameters of a function alone."""


def _signature(function: FunctionRecord) -> Signature:
    arguments = function.node.args
    defaults = dict.fromkeys(parameter_names(arguments)) | defaults_of(arguments)
    return Signature(function, defaults, len(positional_names(arguments)))


def _omitted(call: cst.Call, signature: Signature) -> dict[str, ast.expr]:
    """The parameters that a call certainly leaves to their defaults, and these."""
    if any(each.star for each in call.args):
        return {}
    given = [*signature.defaults][: len([each for each in call.args if each.keyword is None])]
    passed = {*given, *keywords_of(call)}
    return {name: default for name, default in signature.defaults.items() if default is not None and name not in passed}


def _moved(method: Method, call: cst.Call, signature: Signature, omitted: Mapping[str, ast.expr]) -> Iterator[Moved]:
    names = [*signature.defaults][: signature.positional]
    by_position: Sequence[cst.BaseExpression] = [each.value for each in call.args if each.keyword is None]
    for taken_by, value in zip(names, by_position):
        own = last_name(value) if isinstance(value, cst.Name) or method.is_on_ctx(value) else ""
        if own in omitted and signature.defaults[taken_by] is not None and not are_alike(own, taken_by):
            yield Moved(call, value, own, taken_by)


def are_alike(one: str, other: str) -> bool:
    """Whether two parameters may take the same thing, as the dimensions that backward takes in the opposite order."""
    parts = [set(name.strip("_").split("_")) for name in (one, other)]
    return len(one) < 3 or not parts[0].isdisjoint(parts[1]) or one[:3] == other[:3] or one[-3:] == other[-3:]


def _is_none(default: ast.expr) -> bool:
    return isinstance(default, ast.Constant) and default.value is None


def _passes_group(method: Method, group: str) -> bool:
    """Whether a method passes an input as a process group, also as the attribute of ctx with its name.

    To ``torch.distributed``, or for a parameter that is one; a number of channels per group goes elsewhere.
    """
    passed = [
        (call, each)
        for call in method.nodes_of(cst.Call)
        for each in call.args
        if is_name(each.value, group) or (method.is_on_ctx(each.value) and each.value.attr.value == group)
    ]
    if any(_is_as_group(each) or module_of(method, call) in _MODULES for call, each in passed):
        return True
    known = {id(call): signature for call, signature in _known_calls(method)} if passed else {}
    return any(_gets_group(known[id(call)], call, each) for call, each in passed if id(call) in known)


def _is_as_group(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value in _AS_GROUP


def _gets_group(signature: Signature, call: cst.Call, argument: cst.Arg) -> bool:
    """Whether an argument is for a parameter that is a process group."""
    if any(each.star for each in call.args):
        return False
    names = [*signature.defaults][: signature.positional]
    by_position = dict(zip((id(each) for each in call.args if each.keyword is None), names))
    own = argument.keyword.value if argument.keyword is not None else by_position.get(id(argument), "")
    return GROUP.fullmatch(own) is not None and _is_group(signature.function, own)


def _is_group(function: FunctionRecord, parameter: str) -> bool:
    """Whether a parameter is a process group, by its annotation or its use."""
    return _is_annotated(function, parameter) or _asks_group(function, parameter) or _passes_on(function, parameter)


def _works_without(function: FunctionRecord, parameter: str) -> bool:
    """Whether a function works in a default group without one: that of torch, or one that it takes instead."""
    nodes = nodes_in(function.node)
    tests = [each for each in nodes if isinstance(each, ast.If) and _reads(each.test, parameter)]
    bound = [each.lineno for each in nodes if _is_name(each, parameter) and not isinstance(each.ctx, ast.Load)]
    if tests:  # without a group, it may do something else
        return any(each.lineno <= line <= each.body[-1].lineno for each in tests[:1] for line in bound)
    choices = (each for each in nodes if isinstance(each, ast.IfExp) and _reads(each.test, parameter))
    chosen = [any(_is_name(arm, parameter) for arm in (each.body, each.orelse)) for each in choices]
    return all(chosen) and (bool(bound or chosen) or _passes_on(function, parameter))


def _reads(node: ast.expr, name: str) -> bool:
    return any(_is_name(each, name) for each in nodes_in(node))


def _is_annotated(function: FunctionRecord, parameter: str) -> bool:
    arguments = function.node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    annotation = next((each.annotation for each in every if each.arg == parameter), None)
    return annotation is not None and "ProcessGroup" in _WORD.findall(ast.unparse(annotation))


def _asks_group(function: FunctionRecord, parameter: str) -> bool:
    """Whether a function asks a parameter for its rank: no tensor has one."""
    called = (each.func for each in nodes_in(function.node) if isinstance(each, ast.Call))
    return any(
        isinstance(each, ast.Attribute) and each.attr == "rank" and _is_name(each.value, parameter) for each in called
    )


def _passes_on(function: FunctionRecord, parameter: str) -> bool:
    """Whether a function passes a parameter to ``torch.distributed``, or on as a process group."""
    inside = Scope("function", "", function.scope)
    for call in (each for each in nodes_in(function.node) if isinstance(each, ast.Call)):
        if any(each.arg in _AS_GROUP and _is_name(each.value, parameter) for each in call.keywords):
            return True
        given = (*call.args, *(each.value for each in call.keywords))
        if any(_is_name(each, parameter) for each in given):
            meant = resolve_certainly(dotted_name(call.func) or "", inside) or ""
            if meant.rpartition(".")[0] in _MODULES:
                return True
    return False


def _is_name(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _is_beside_one_with_group(method: Method, call: cst.Call) -> bool:
    """Whether another call that communicates in a group may happen together with one; ``get_rank`` does not."""
    events = method.facts.of(GenericCall)
    own = next((each for each in events if each.node is call), None)
    return own is not None and any(
        isinstance(other.node, cst.Call)
        and not last_name(other.node.func).startswith("get_")
        and (other.may_follow(own) or own.may_follow(other))
        and (other.definition is not None or module_of(method, other.node) in _MODULES)
        and _mentions_group(other.node)
        for other in events
        if other is not own
    )


def _tests_group(method: Method) -> bool:
    """Whether a group decides anything in a method: without one, it may do something else."""
    tests = [each.test for each in method.nodes_of(cst.If)]
    tests += [each.test for each in method.nodes_of(cst.IfExp)]
    tests += [each.test for each in method.nodes_of(cst.Assert)]
    return any(_is_about_group(word) for test in tests for word in words_of(test))


def _mentions_group(call: cst.Call) -> bool:
    """Whether any argument is about a group: its size, or the number of a process in it."""
    return any(_is_about_group(word) for each in call.args for word in words_of(each))


def _is_about_group(word: str) -> bool:
    return "group" in word or "rank" in word or "mesh" in word or GROUP.fullmatch(word) is not None
