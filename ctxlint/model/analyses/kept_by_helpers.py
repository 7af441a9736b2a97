"""Whether a function of the project keeps the very object that it gets: stores it, or reads its gradient."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ctxlint.model.analyses.attribute_uses import ASKING, OF_A_TENSOR
from ctxlint.source.ast_tree import nodes_in, positional_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from ctxlint.model.index.project import Definition

    _Function = ast.FunctionDef | ast.AsyncFunctionDef

PUTTING = frozenset(str.split("add append appendleft extend insert push put setdefault update"))
"""Methods of containers that keep their arguments."""

HANDING_OVER = re.compile(
    r"(?:add|append|defer|enqueue|push|put|queue|record|register|schedule|submit)_(?!stream$|\w*hook$|\w*_$)[a-z]"
).match
"""How the names of other methods begin that keep what they get for later, by convention; not those of tensors."""


def keeps_argument(definition: Definition, call: cst.Call, argument: cst.Arg) -> bool:
    """Whether a function that is called with this argument may keep the object itself on some path."""
    name = parameter_of(definition, call, argument)
    return name is not None and _keeps(definition.unit.index.functions[definition.qualname].node, name)


def uses_custom_attribute(definition: Definition, call: cst.Call, argument: cst.Arg) -> bool:
    """Whether a function that is called with this argument uses an attribute of it that no other tensor has."""
    name = parameter_of(definition, call, argument)
    body = definition.unit.index.functions[definition.qualname].node.body if name is not None else ()
    return any(is_custom(node, {str(name)}) for statement in body for node in nodes_in(statement))


def parameter_of(definition: Definition, call: cst.Call, argument: cst.Arg) -> str | None:
    """The name of the parameter that gets an argument; None if that is unknown."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or argument.star:
        return None
    if argument.keyword is not None:
        return argument.keyword.value
    at = next(at for at, each in enumerate(call.args) if each is argument)
    if any(each.star for each in call.args[:at]):
        return None
    positional = positional_names(record.node.args)
    static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in record.node.decorator_list)
    of_class = definition.qualname.rpartition(".")[0] in definition.unit.index.classes
    at += of_class and not static
    return positional[at] if at < len(positional) else None


def _keeps(function: _Function, name: str) -> bool:
    nodes = [node for statement in function.body for node in nodes_in(statement)]
    outer = {each for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for each in node.names}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local, names = bound - outer, {name}
    for node in nodes:
        if isinstance(node, ast.Assign) and _holds(node.value, names):
            names.update(each.id for each in node.targets if isinstance(each, ast.Name))
    names -= outer
    return any(
        any(_is_kept_in(target, outer, local | {name}) for target in targets) and _holds_any(values, names)
        for node in nodes
        for targets, values in _puts(node)
    ) or any(_changes(node, names) or _hands_over(node, names) for node in nodes)


def _puts(node: ast.AST) -> Iterator[tuple[list[ast.expr], list[ast.expr]]]:
    """The places where a node puts something away, and what it puts there."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PUTTING:
        yield [ast.Subscript(node.func.value, ast.Slice())], node.args
    elif isinstance(node, ast.Assign):
        yield node.targets, [node.value]
        yield [each for each in node.targets if isinstance(each, ast.Subscript)], _keys(node.targets)
    elif isinstance(node, ast.AugAssign):
        yield [node.target], [node.value]


def _hands_over(node: ast.AST, names: set[str]) -> bool:
    """Whether a call as a statement hands the object to a method that keeps it for later, by its name."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not HANDING_OVER(call.func.attr):
        return False
    return _holds_any([*call.args, *(each.value for each in call.keywords)], names)


def _keys(targets: list[ast.expr]) -> list[ast.expr]:
    return [each.slice for each in targets if isinstance(each, ast.Subscript)]


def _is_kept_in(target: ast.expr, outer: set[str], local: set[str]) -> bool:
    """Whether what a target gets outlives the function."""
    root = target
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    return root.id in outer if root is target else root.id not in local


def _holds_any(values: list[ast.expr], names: set[str]) -> bool:
    return any(_holds(each, names) for each in values)


def _holds(value: ast.expr, names: set[str]) -> bool:
    """Whether a value is the object, or a display or function that holds it."""
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return _holds_any(value.elts, names)
    if isinstance(value, ast.Dict):
        return _holds_any([*value.values, *filter(None, value.keys)], names)
    if isinstance(value, ast.Call):  # an instance of a class: ``Task(name, x)``
        made = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        arguments = [*value.args, *(each.value for each in value.keywords)]
        return made[:1].isupper() and _holds_any(arguments, names)
    return isinstance(value, ast.Lambda) and any(
        isinstance(each, ast.Name) and each.id in names for each in nodes_in(value)
    )


def _changes(node: ast.AST, names: set[str]) -> bool:
    """Whether an attribute of the object is set, or its gradient or a custom attribute looked at."""
    if is_custom(node, names):
        return True
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id not in names:
        return False
    return node.attr == "grad" or (isinstance(node.ctx, ast.Store) and node.attr != "data")


def is_custom(node: ast.AST, names: set[str]) -> bool:
    """``x.name`` for a name that not every tensor has, ``getattr(x, "name", None)``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ASKING and _holds_any(node.args[:1], names)
    of_it = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
    return of_it and node.attr not in OF_A_TENSOR  # type: ignore[attr-defined]
