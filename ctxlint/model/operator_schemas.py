"""Custom operators that calls define, not decorators, with the arguments that they are declared to write.

``infer_schema(f, mutates_args=[])``, ``custom_op("ns::f", f, mutates_args=())``, a function of the project that hands
two of its parameters on to these, and the implementation of an operator with a schema as a string.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.project import Definition
from ctxlint.model.index.project_answers import meant, texts_in
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.summaries.declared import namespace_of, schema_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import defaults_of, nodes_in, parameter_names, positional_names
from ctxlint.torch_api.known_decorators import OPERATOR_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import CallRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.summaries.declared import Schema


class Registered(NamedTuple):
    """A function of the project that a call makes an operator which is declared to write nothing.

    ``at`` is the list of what it writes, or the implementation of an operator with a ``schema``. ``keyword`` is the
    parameter that names what it writes.
    """

    function: Definition
    at: ast.expr
    keyword: str = ""
    schema: Schema | None = None


def may_register(unit: Unit) -> bool:
    """Whether a file may hold a call that makes an operator of a function."""
    return any(map(unit.source.holds, _MENTIONS))


def registers_by_calls(unit: Unit) -> bool:
    """Whether a file seems to register functions, perhaps of other files."""
    parts = unit.index.parts or (unit.index,)
    return may_register(unit) and (
        not all(part.call_names.isdisjoint(_OF_LIBRARY) for part in parts) or any(True for _ in _makers(unit))
    )


def registered_without_writes(unit: Unit, project: Project) -> Iterator[Registered]:
    """The functions that calls in a file make operators, where these are declared to write nothing."""
    if not may_register(unit):
        return
    for call in _makers(unit):
        given = _given(call, unit, project)
        if given is not None and not call.is_hidden(call.node) and _is_empty(given.mutated):
            function = _function(given.function, call.scope, unit, project)
            if function is not None:
                yield Registered(function, given.mutated or call.node.func, given.keyword)
    yield from _implemented(unit, project)


def _makers(unit: Unit) -> Iterator[CallRecord]:
    """The calls in a file that may make an operator of an argument."""
    for part in unit.index.parts or (unit.index,):
        if _makers not in part.notes:
            part.notes[_makers] = [each for each in part.calls if _may_make(each)]
        yield from part.notes[_makers]


class _Given(NamedTuple):
    """The arguments of a call that makes an operator; ``mutated`` is None if a default is empty."""

    function: ast.expr
    mutated: ast.expr | None
    keyword: str


def _may_make(call: CallRecord) -> bool:
    """Whether a call may make an operator of an argument, by its looks."""
    node = call.node
    may = call.name in _MAKERS or (
        len(node.args) + len(node.keywords) > 1
        and (
            "custom_op" in call.name
            or "regist" in call.name
            or any(each.arg == "mutates_args" for each in node.keywords)
        )
    )
    return may and (meant(node.func, call.scope) not in _DECORATING or _of_torch(node, call.scope) is not None)


def _given(call: CallRecord, unit: Unit, project: Project) -> _Given | None:
    found = _of_torch(call.node, call.scope)
    if found is not None:
        return found
    path = meant(call.node.func, call.scope)
    helper = _certain(path, unit, project)
    record = helper.unit.index.functions.get(helper.qualname) if helper is not None else None
    if helper is None or record is None or not record.certain or record.node.decorator_list:
        return None
    return _handed_on(call.node, record.node, helper.unit.index.module)


def _of_torch(call: ast.Call, scope: Scope) -> _Given | None:
    """The arguments of a function of torch that makes an operator, or its schema, of a function."""
    path = meant(call.func, scope)
    at = 0 if path in _INFERRING else 1 if path in OPERATOR_DECORATORS else None
    keywords = {each.arg: each.value for each in call.keywords}
    if (
        at is None
        or not keywords.keys().isdisjoint({None, "schema", "tags"})
        or any(isinstance(each, ast.Starred) for each in call.args)
    ):
        return None
    function = call.args[at] if at < len(call.args) else keywords.get("prototype_function" if at == 0 else "fn")
    mutated = keywords.get("mutates_args", call.args[1] if at == 0 and len(call.args) > 1 else None)
    return _Given(function, mutated, "mutates_args") if function is not None and mutated is not None else None


def _handed_on(call: ast.Call, helper: ast.FunctionDef | ast.AsyncFunctionDef, module: Scope) -> _Given | None:
    """The arguments that a function of the project hands on to one of torch; None if that is not certain."""
    makers = [each for each in nodes_in(helper) if isinstance(each, ast.Call)]
    handed = {
        (made.function.id, made.mutated.id)
        for each in makers
        if (made := _of_torch(each, module)) is not None
        and isinstance(made.function, ast.Name)
        and isinstance(made.mutated, ast.Name)
    }
    arguments = helper.args
    names = parameter_names(arguments)
    if len(handed) != 1 or not handed <= {(a, b) for a in names for b in names}:
        return None
    ((function, mutated),) = handed
    if not _kept(helper, function, mutated):
        return None
    positional = positional_names(arguments)
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    given = dict(zip(positional, call.args)) | {each.arg: each.value for each in call.keywords}
    if function not in given:
        return None
    default = defaults_of(arguments).get(mutated)
    if mutated not in given and not _is_nothing(default):
        return None
    return _Given(given[function], given.get(mutated), mutated)


def _kept(helper: ast.FunctionDef | ast.AsyncFunctionDef, function: str, mutated: str) -> bool:
    """Whether a function only hands on two of its parameters, apart from an empty list for None."""
    nodes = nodes_in(helper)
    passed = [id(each) for call in nodes if isinstance(call, ast.Call) for each in _arguments(call)]
    tested = [id(each.left) for each in nodes if isinstance(each, ast.Compare)]
    emptied = [id(each.targets[0]) for each in nodes if isinstance(each, ast.Assign) and _is_nothing(each.value)]
    allowed = {*passed, *tested, *emptied}
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id in (function, mutated)]
    stores = (each for each in uses if each.id == function and isinstance(each.ctx, ast.Store))
    return not any(stores) and all(id(each) in allowed for each in uses if each.id == mutated)


def _arguments(call: ast.Call) -> tuple[ast.expr, ...]:
    return (*call.args, *(each.value for each in call.keywords))


def _is_nothing(node: ast.expr | None) -> bool:
    """Whether a default names no argument: None, or an empty display."""
    return (isinstance(node, ast.Constant) and node.value is None) or (node is not None and _is_empty(node))


def _is_empty(node: ast.expr | None) -> bool:
    """Whether a list of names is empty, or left to a default that is."""
    return (
        node is None
        or (isinstance(node, (ast.Tuple, ast.List, ast.Set)) and not node.elts)
        or (isinstance(node, ast.Dict) and not node.keys)
    )


def _function(node: ast.expr, scope: Scope, unit: Unit, project: Project) -> Definition | None:
    """The function of the project, without decorators, that an expression certainly denotes."""
    found = _certain(meant(node, scope), unit, project)
    record = found.unit.index.functions.get(found.qualname) if found is not None else None
    return found if record is not None and record.certain and not record.node.decorator_list else None


def _certain(path: str | None, unit: Unit, project: Project) -> Definition | None:
    if path is None:
        return None
    return Definition(unit, path[len(LOCAL) :]) if path.startswith(LOCAL) else project.certainly(unit, path)


# A schema as a string


def _implemented(unit: Unit, project: Project) -> Iterator[Registered]:
    """The functions that a file registers as implementations of operators whose schema marks nothing as written."""
    for name, at, function in _implementations(unit, project):
        schema = schema_of(project, unit, name)
        if schema is not None and not schema.written:
            yield Registered(function, at, "", schema)


def _implementations(unit: Unit, project: Project) -> Iterator[tuple[str, ast.expr, Definition]]:
    """The functions that ``lib.impl("f", function, key)`` and its like register, after the operator's name."""
    for part in unit.index.parts or (unit.index,):
        for call in part.calls:
            if call.name not in _OF_LIBRARY or not isinstance(call.node.func, ast.Attribute):
                continue
            texts, arguments = texts_in(call.node), call.node.args
            if not _is_of_a_device(texts):
                continue
            if meant(call.node.func, call.scope) in _IMPLEMENTING:
                name, functions = texts[0], arguments[2:]
            else:
                name, functions = _full_name(namespace_of(call.node.func, unit, project), texts[0]), arguments[1:2]
            function = _function(functions[0], call.scope, unit, project) if name and functions else None
            if function is not None:
                yield name, functions[0], function
        for qualname, record in part.functions.items():
            name = _decorated(record.node, unit, project)
            if name and record.certain:
                yield name, record.node.decorator_list[0], Definition(unit, qualname)


def _decorated(node: ast.FunctionDef | ast.AsyncFunctionDef, unit: Unit, project: Project) -> str:
    """The operator that a decorator ``@torch.library.impl("ns::f", "cpu")`` makes a function implement."""
    decorator = node.decorator_list[0] if len(node.decorator_list) == 1 else None
    if not isinstance(decorator, ast.Call) or meant(decorator.func, unit.index.module) not in _IMPLEMENTING:
        return ""
    texts = texts_in(decorator)
    if not _is_of_a_device(texts):
        return ""
    if isinstance(decorator.args[0], ast.Constant):
        return texts[0]
    return _full_name(namespace_of(ast.Attribute(decorator.args[0], "impl", ast.Load()), unit, project), texts[0])


def _is_of_a_device(texts: list[str]) -> bool:
    """Whether an implementation is for a device, by the name and the dispatch keys: not for tracing or autograd.

    Or for all devices, if torch does not look into it.
    """
    keys = [each for each in texts[1:] if each != "CompositeExplicitAutograd"]
    return bool(texts) and not any("Meta" in each or "Autograd" in each for each in keys)


def _full_name(namespace: str | None, text: str) -> str:
    """The name of an operator with its namespace, without that of an overload; empty if that is unknown."""
    return f"{namespace}::{text.rpartition('::')[2].partition('.')[0]}" if namespace is not None else ""


_MENTIONS = ("infer_schema", "mutates_args", "custom_op", "triton_op", "library")
_INFERRING = frozenset({"torch.library.infer_schema", "torch._library.infer_schema.infer_schema"})
_IMPLEMENTING = frozenset({"torch.library.impl", "torch.library.register_kernel"})
_OF_LIBRARY = ("impl", "register_kernel")
_DECORATING = OPERATOR_DECORATORS | {"torch.library.register_autograd", "torch.library.register_fake"}
"""Functions of torch that make no operator of what a call of them is given, but for the function itself."""
_MAKERS = frozenset({"infer_schema", "custom_op", "triton_op"})
