"""Custom operators of the project: the arguments that they are declared to write.

A declaration is ``mutates_args`` of ``torch.library.custom_op`` and ``triton_op``, or a schema: ``f(Tensor(a!) x)``.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from ctxlint.model.index.project import Definition
from ctxlint.model.index.project_answers import (
    DEFINE,
    LIBRARY,
    meant,
    operator_decorator,
    operator_decorators,
    texts_in,
)
from ctxlint.model.interpreter.events import Step
from ctxlint.model.interpreter.summary import OPERATOR, Write
from ctxlint.model.interpreter.values import UNKNOWN, Constant, Fresh, Scalar, Sequence
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in, parameter_names
from ctxlint.torch_api.extensions import OPERATORS_OF_TORCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.values import Value
    from ctxlint.source.source import Span

    Found = TypeVar("Found")

_NAMESPACE = "torch.ops."


class Declared(NamedTuple):
    """An operator: its parameters in order, those that it certainly writes, and the place of the declaration.

    ``named``: those that it is declared to write, also those that it only writes under a flag.
    """

    name: str
    params: tuple[str, ...]
    written: frozenset[str]
    step: Step
    named: frozenset[str]


def declared_by(definition: Definition) -> Declared | None:
    """The operator that a decorator creates from a function; None if there is none, or its writes are unknown."""
    record = definition.unit.index.functions.get(definition.qualname)
    decorator = operator_decorator(record.node, definition.unit.index.module) if record is not None else None
    if record is None or decorator is None or not record.certain:
        return None
    written = _names_in(decorator)
    arguments = record.node.args
    names = tuple(parameter_names(arguments))
    if written is None:
        return None
    certain = written - _chosen(record.node, names)
    return _declared(definition.unit, definition.name, names, certain, decorator)._replace(named=written)


def _chosen(function: ast.FunctionDef | ast.AsyncFunctionDef, params: tuple[str, ...]) -> set[str]:
    """The parameters that a flag may replace by another tensor: ``out = x if inplace else torch.empty_like(x)``."""
    choices = (each for each in nodes_in(function) if isinstance(each, ast.IfExp) and _is_flag(each.test, params))
    return {arm.id for each in choices for arm in (each.body, each.orelse) if isinstance(arm, ast.Name)}


def _is_flag(test: ast.expr, params: tuple[str, ...]) -> bool:
    """Whether a test is a parameter, or the opposite of one."""
    test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(test, ast.Name) and test.id in params


def declared_writes(definition: Definition, bindings: Mapping[str, Value]) -> Iterator[Write]:
    """What an operator that a decorator creates writes among its arguments."""
    declared = declared_by(definition)
    if declared is not None:
        for name in declared.params:
            if name in declared.written and name in bindings:
                yield Write(bindings[name], OPERATOR, (declared.step,))


def not_shared(returned: Value) -> Value:
    """The result of an operator for its callers: torch rejects arguments and views of them."""
    if isinstance(returned, Sequence):
        return replace(returned, slots=tuple(replace(slot, value=not_shared(slot.value)) for slot in returned.slots))
    return returned if isinstance(returned, (Constant, Fresh, Scalar)) else UNKNOWN


def declared_as(project: Project, unit: Unit, name: str) -> Declared | None:
    """The operator ``torch.ops.namespace.name``, if exactly one file of the project declares it."""
    parts = name[len(_NAMESPACE) :].split(".")
    if not name.startswith(_NAMESPACE) or len(parts) not in (2, 3):
        return None
    wanted = "::".join(parts[:2])
    return _in_project(project, unit, wanted, lambda each: _declared_in(project, each, wanted))


def schema_of(project: Project, unit: Unit, name: str) -> Schema | None:
    """The only schema of an operator ``namespace::name`` in the project that is written as a string."""

    def in_file(each: Unit) -> Schema | None:
        return project.once(("schemas",), lambda: _schemas(each, project), each.summaries).get(name)

    return _in_project(project, unit, name, in_file)


def _in_project(project: Project, unit: Unit, name: str, in_file: Callable[[Unit], Found | None]) -> Found | None:
    """What a file, those that it imports, or the only one that declares an operator says about it."""
    for each in (unit, *project.imported(unit)):
        found = in_file(each)
        if found is not None:
            return found
    if name.partition("::")[0] in OPERATORS_OF_TORCH:
        return None
    project.ask("declares", "", name)
    other = project.unit(project.declared[name]) if name in project.declared else None
    return in_file(other) if other is not None else None


def _declared_in(project: Project, unit: Unit, name: str) -> Declared | None:
    return project.once(("operators",), lambda: _declarations(unit, project), unit.summaries).get(name)


def _declarations(unit: Unit, project: Project) -> Mapping[str, Declared]:
    """The operators that a file declares, by ``namespace::name``; those declared twice are left out."""
    found: dict[str, list[Declared]] = {}
    for name, declared in (*_decorated(unit), *_defined(unit, project)):
        found.setdefault(name, []).append(declared)
    return {name: each[0] for name, each in found.items() if len(each) == 1}


def _decorated(unit: Unit) -> Iterator[tuple[str, Declared]]:
    for qualname, decorator in operator_decorators(unit.index):
        declared = declared_by(Definition(unit, qualname))
        if declared is not None:
            yield from ((name, declared) for name in texts_in(decorator)[:1])


def _defined(unit: Unit, project: Project) -> Iterator[tuple[str, Declared]]:
    """The operators that calls define with a schema as a string."""
    for name, schema, call in _written_schemas(unit, project):
        parsed = _parsed(schema.value)
        if parsed is not None:
            yield name, _declared(unit, name.partition("::")[2], *parsed, call)


class Text(NamedTuple):
    """A string in the code."""

    node: ast.expr
    value: str


class Schema(NamedTuple):
    """A schema as a string, in the file ``path``: whether it marks an argument as written, and its tensors.

    Each of ``tensors`` is the place, the type and the name of one.
    """

    path: str
    span: Span
    written: bool
    tensors: tuple[tuple[int, str, str], ...]
    returns_nothing: bool


def _schemas(unit: Unit, project: Project) -> dict[str, Schema | None]:
    """The schemas of a file by ``namespace::name``; None for an operator that has several."""
    found: dict[str, Schema | None] = {}
    for name, text, _call in _written_schemas(unit, project):
        typed = _typed(text.value)
        if typed is not None:
            positional = takewhile(lambda each: each[1], typed)
            tensors = tuple(
                (at, kind, name) for at, (name, kind) in enumerate(positional) if kind in ("Tensor", "Tensor?")
            )
            nothing = text.value.rpartition("->")[2].strip() == "()"
            written = any("!" in kind for _name, kind in typed)
            found[name] = (
                Schema(unit.path, unit.source.span_of(text.node), written, tensors, nothing)
                if name not in found
                else None
            )
    return found


def _written_schemas(unit: Unit, project: Project) -> Iterator[tuple[str, Text, ast.Call]]:
    """The schemas of ``torch.library.define("ns::f", "(…) -> …")`` and ``Library("ns", …).define("f(…) -> …")``."""
    for call in unit.index.calls:
        if call.name != "define":
            continue
        texts = [
            Text(each, each.value)
            for each in call.node.args
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if meant(call.node.func, unit.index.module) == DEFINE and len(texts) >= 2:
            yield texts[0].value, texts[1], call.node
            continue
        namespace = namespace_of(call.node.func, unit, project) if texts else None
        if namespace is not None:
            yield f"{namespace}::{texts[0].value.partition('(')[0].strip()}", texts[0], call.node


def namespace_of(func: ast.expr, unit: Unit, project: Project) -> str | None:
    """The namespace of the library whose ``define`` is called."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    bounds = unit.index.module.names.get(owner.id, []) if isinstance(owner, ast.Name) else []
    if isinstance(owner, ast.Name) and [each.kind for each in bounds] == ["import"]:
        unit, name, scope = project.bound(unit, owner.id, unit.index.module)
        bounds = scope.names.get(name, [])
    made = bounds[0].value if len(bounds) == 1 else owner
    if not isinstance(made, ast.Call) or not made.args or meant(made.func, unit.index.module) != LIBRARY:
        return None
    namespace = made.args[0]
    return namespace.value if isinstance(namespace, ast.Constant) and isinstance(namespace.value, str) else None


def _parsed(schema: str) -> tuple[tuple[str, ...], frozenset[str]] | None:
    """The parameters of a schema, and those with ``!`` in their type."""
    typed = _typed(schema)
    if typed is None:
        return None
    named = [(name, kind) for name, kind in typed if kind]  # without the star before keyword-only parameters
    return tuple(name for name, _ in named), frozenset(name for name, kind in named if "!" in kind)


def _typed(schema: str) -> list[tuple[str, str]] | None:
    """The parameters of a schema, each with its type; a star has none."""
    inside = re.fullmatch(r"[^(]*\((.*)\)\s*->.*", schema.strip(), re.DOTALL)
    if inside is None:
        return None
    parts = [part.partition("=")[0].split() for part in re.split(r",(?![^\[(]*[\])])", inside[1])]
    return [(each[-1], "".join(each[:-1])) for each in parts if each]


def _names_in(decorator: ast.Call) -> frozenset[str] | None:
    """The names in ``mutates_args``, the second parameter of some; None if they are not written out."""
    argument = next((each.value for each in decorator.keywords if each.arg == "mutates_args"), None)
    if isinstance(argument, ast.Dict) and not argument.keys:
        return frozenset()
    if not isinstance(argument, (ast.Tuple, ast.List, ast.Set)):
        return None
    names = [each.value for each in argument.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return frozenset(names) if len(names) == len(argument.elts) else None


def _declared(unit: Unit, name: str, params: tuple[str, ...], written: frozenset[str], node: ast.expr) -> Declared:
    what = ", ".join(f"`{each}`" for each in params if each in written)
    return Declared(
        name,
        params,
        written,
        Step(unit.path, unit.source.span_of(node), f"`{name}` declares here that it writes {what}"),
        written,
    )
