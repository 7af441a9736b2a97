"""A method as written: its decorators, parameters, which of them is ctx, and what its body does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Callable

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.code import code_of, dotted
from ctxlint.model.functions import Binding, Decorator, Param, ParameterKind
from ctxlint.model.scopes import resolve
from ctxlint.model.values import NONE, Opaque, Scalar, Tri, Value, constant

if TYPE_CHECKING:
    from ctxlint.model.scopes import Scope

_AUTOCAST_PAIR = re.compile(r"(?:^|_)custom_(?:fwd|bwd)$")
_RECEIVERS = ("self", "cls")


def decorators_of(node: cst.FunctionDef, scope: Scope, keeps: Callable[[str], Tri]) -> tuple[Decorator, ...]:
    """The decorators, outermost first. ``keeps`` answers for a decorator that is defined in the same file."""
    found: list[Decorator] = []
    for each in node.decorators:
        expression = each.decorator
        called = isinstance(expression, cst.Call)
        path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
        name = resolve(path, scope) or path if path is not None else None
        found.append(Decorator(each, name, called, _keeps_signature(name, keeps)))
    return tuple(found)


def _keeps_signature(name: str | None, keeps: Callable[[str], Tri]) -> Tri:
    if name is None:
        return Tri.UNKNOWN
    if name in tables.SIGNATURE_KEEPING_DECORATORS or _AUTOCAST_PAIR.search(name):
        return Tri.YES
    if name in ("staticmethod", "classmethod"):
        return Tri.YES
    return keeps(name)


def passes_arguments_on(decorator: cst.FunctionDef) -> bool:
    """Whether a decorator's wrapper hands ``*args, **kwargs`` on to the function and returns what that returns."""
    wrapped = [param.name.value for param in decorator.params.params]
    for inner in _functions_in(decorator.body):
        star = inner.params.star_arg
        if not isinstance(star, cst.Param):
            continue
        for returned in _returned_calls(inner.body):
            callee = dotted(returned.func)
            spread = any(
                argument.star == "*"
                and isinstance(argument.value, cst.Name)
                and argument.value.value == star.name.value
                for argument in returned.args
            )
            if callee in wrapped and spread:
                return True
    return False


def _functions_in(body: cst.BaseSuite) -> list[cst.FunctionDef]:
    return [statement for statement in body.body if isinstance(statement, cst.FunctionDef)]


def _returned_calls(node: cst.CSTNode) -> list[cst.Call]:
    found: list[cst.Call] = []
    for child in node.children:
        if isinstance(child, cst.Return) and isinstance(child.value, cst.Call):
            found.append(child.value)
        elif isinstance(child, (cst.BaseStatement, cst.BaseSuite, cst.Else, cst.SimpleStatementLine)):
            found.extend(_returned_calls(child))
    return found


def binding_of(decorators: tuple[Decorator, ...]) -> Binding:
    """How the class binds the function."""
    names = {decorator.name for decorator in decorators}
    if names & {"builtins.staticmethod", "staticmethod"}:
        return Binding.STATIC
    if names & {"builtins.classmethod", "classmethod"}:
        return Binding.CLASS
    return Binding.INSTANCE


def params_of(node: cst.FunctionDef, scope: Scope) -> tuple[Param, ...]:
    """All parameters in order."""
    found: list[Param] = []
    params = node.params
    for param in (*params.posonly_params, *params.params):
        found.append(_param(param, ParameterKind.POSITIONAL, scope))
    if isinstance(params.star_arg, cst.Param):
        found.append(_param(params.star_arg, ParameterKind.VARIADIC, scope))
    for param in params.kwonly_params:
        found.append(_param(param, ParameterKind.KEYWORD_ONLY, scope))
    if params.star_kwarg is not None:
        found.append(_param(params.star_kwarg, ParameterKind.KEYWORDS, scope))
    return tuple(found)


def _param(node: cst.Param, kind: ParameterKind, scope: Scope) -> Param:
    default = _default(node.default) if node.default is not None else None
    annotation = _annotation(node.annotation.annotation, scope) if node.annotation is not None else None
    return Param(node.name.value, kind, node, node.default is not None, default, annotation)


def _default(node: cst.BaseExpression) -> Value:
    """The value of a default, where it is a literal."""
    sign = 1
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node, sign = node.expression, -1
    if isinstance(node, cst.Name) and node.value in ("None", "True", "False"):
        return NONE if node.value == "None" else constant(node.value == "True")
    try:
        if isinstance(node, (cst.Integer, cst.Float)):
            return constant(sign * node.evaluated_value)
        if isinstance(node, cst.SimpleString):
            return constant(node.evaluated_value)
    except (ValueError, SyntaxError):
        pass
    return Scalar("object", node) if isinstance(node, cst.Lambda) else Opaque(node)


def _annotation(node: cst.BaseExpression, scope: Scope) -> str:
    """An annotation as text, with each dotted name in it resolved through the imports."""
    if isinstance(node, (cst.Name, cst.Attribute)):
        path = dotted(node)
        return (resolve(path, scope) or path) if path is not None else code_of(node)
    if isinstance(node, cst.SimpleString):
        return _quoted(node, scope)
    if isinstance(node, cst.Subscript):
        inner = ", ".join(
            _annotation(element.slice.value, scope) if isinstance(element.slice, cst.Index) else code_of(element)
            for element in node.slice
        )
        return f"{_annotation(node.value, scope)}[{inner}]"
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return f"{_annotation(node.left, scope)} | {_annotation(node.right, scope)}"
    return code_of(node)


def _quoted(node: cst.SimpleString, scope: Scope) -> str:
    try:
        text = node.evaluated_value
        return _annotation(cst.parse_expression(text), scope) if isinstance(text, str) else code_of(node)
    except (cst.ParserSyntaxError, ValueError, SyntaxError):
        return code_of(node)


def split_params(
    name: str, params: tuple[Param, ...], binding: Binding, forward_takes_ctx: bool
) -> tuple[Param | None, Param | None]:
    """Which parameter is a receiver, and which one gets the ctx (None where there is none)."""
    positional = [param for param in params if param.kind is ParameterKind.POSITIONAL]
    receiver: Param | None = None
    if binding is Binding.CLASS:
        receiver = positional.pop(0) if positional else None
    elif len(positional) > 1 and positional[0].name in _RECEIVERS and positional[1].name in ("ctx", "context"):
        receiver = positional.pop(0)
    takes_ctx = name in ("backward", "vjp", "setup_context", "jvp") or (name == "forward" and forward_takes_ctx)
    return receiver, positional[0] if takes_ctx and positional else None
