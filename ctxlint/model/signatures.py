"""A method as written: its decorators, parameters, which of them is ctx, and what its body does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Callable, Union

import libcst as cst

from ctxlint.files.nesting import too_deep
from ctxlint.model import tables
from ctxlint.model.code import children, code_of, dotted
from ctxlint.model.functions import Binding, Decorator, Param, ParameterKind
from ctxlint.model.scopes import dotted_name, resolve, resolve_certainly
from ctxlint.model.values import NONE, Opaque, Scalar, Tri, Value, constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.scopes import Scope

_AUTOCAST_PAIR = re.compile(r"(?:^|[._])custom_(?:fwd|bwd)$")
_RECEIVERS = ("self", "cls")
_CONTEXT_NAME = re.compile(r"_*ctx_*|_*context_*")

Meaning = Union["cst.FunctionDef", str, None]
"""What a decorator's name stands for: a function of the project, a dotted name from outside it, or unknown."""


def decorators_of(
    node: cst.FunctionDef, scope: Scope, meaning: Callable[[str], Meaning] = lambda name: name
) -> tuple[Decorator, ...]:
    """The decorators, outermost first. ``meaning`` follows a resolved name into the project."""
    found: list[Decorator] = []
    for each in node.decorators:
        expression = each.decorator
        called = isinstance(expression, cst.Call)
        path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
        if path is None:
            found.append(Decorator(each, None, called, Tri.UNKNOWN))
            continue
        certain = resolve_certainly(path, scope) or _completed(path, scope, resolve_certainly)
        name = certain or resolve(path, scope) or _completed(path, scope, resolve) or path
        meant = meaning(name)
        keeps = _keeps_signature(name, meant)
        works = isinstance(meant, cst.FunctionDef) and _works_on_ctx(meant)
        found.append(Decorator(each, name, called, keeps, certain is not None, _takes_descriptors(meant), works))
    return tuple(found)


def _completed(path: str, scope: Scope, resolved: Callable[[str, Scope], str | None]) -> str | None:
    """What ``functools.partial`` was given first, where ``path`` is a name for its result."""
    owner = scope.owner(path)
    for bound in owner.intended(path) if owner is not None else ():
        value = bound.value
        if owner is None or type(value).__name__ != "Call" or not value.args:  # type: ignore[union-attr]
            continue
        maker = dotted_name(value.func)  # type: ignore[union-attr]
        given = dotted_name(value.args[0])  # type: ignore[union-attr]
        if maker is not None and given is not None and resolve(maker, owner) == "functools.partial":
            return resolved(given, owner)
    return None


def _keeps_signature(name: str, meant: Meaning) -> Tri:
    if name in tables.SIGNATURE_KEEPING_DECORATORS or _AUTOCAST_PAIR.search(name):
        return Tri.YES
    if name in ("staticmethod", "classmethod"):
        return Tri.YES
    if isinstance(meant, cst.FunctionDef):
        return Tri.YES if passes_arguments_on(meant) else Tri.UNKNOWN
    return Tri.YES if meant in tables.SIGNATURE_KEEPING_DECORATORS else Tri.UNKNOWN


def _takes_descriptors(meant: Meaning) -> bool:
    if isinstance(meant, cst.FunctionDef):
        return _names_descriptors(meant) or _gives_back_what_it_gets(meant)
    return meant in tables.DESCRIPTOR_KEEPING_DECORATORS


def _works_on_ctx(node: cst.CSTNode) -> bool:
    """Whether a decorator sets attributes of anything, or calls what a ctx has."""
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)) and isinstance(node.target, cst.Attribute):
        return True
    if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else node.func.value
        if name == "setattr" or name in tables.CONTEXT_METHODS:
            return True
    return any(_works_on_ctx(child) for child in children(node))


def _names_descriptors(node: cst.CSTNode) -> bool:
    """Whether a decorator speaks of static or class methods itself."""
    if isinstance(node, cst.Name):
        return node.value in ("staticmethod", "classmethod", "__func__", "__get__")
    return any(_names_descriptors(child) for child in children(node))


def _gives_back_what_it_gets(decorator: cst.FunctionDef) -> bool:
    """Whether a decorator, or the one that it makes, only returns the very object that it is put on."""
    returned = list(_returned(decorator.body))
    inner = {each.name.value: each for each in _functions_in(decorator.body)}
    if not returned or not all(isinstance(value, cst.Name) for value in returned):
        return False
    params = [param.name.value for param in (*decorator.params.posonly_params, *decorator.params.params)]
    names = {value.value for value in returned if isinstance(value, cst.Name)}
    if names == set(params[:1]):
        return True
    return all(name in inner and _gives_back_what_it_gets(inner[name]) for name in names)


def passes_arguments_on(decorator: cst.FunctionDef) -> bool:
    """Whether a decorator's wrapper hands all arguments on to the function, one for one, and returns what that returns.

    The wrapper may work on each argument (``args = [arg.contiguous() for arg in args]``), and it may stand inside the
    decorator that a decorator with options makes.
    """
    if _names_descriptors(decorator):
        return False
    return _hands_on(decorator, frozenset())


def _hands_on(function: cst.FunctionDef, wrapped: frozenset[str]) -> bool:
    """Whether a function nested in this one calls one of the enclosing functions' parameters with all its arguments."""
    params = (*function.params.posonly_params, *function.params.params)
    callables = wrapped | {param.name.value for param in params}
    return any(_is_wrapper(inner, callables) or _hands_on(inner, callables) for inner in _functions_in(function.body))


def _is_wrapper(function: cst.FunctionDef, wrapped: frozenset[str]) -> bool:
    star = function.params.star_arg
    if not isinstance(star, cst.Param):
        return False
    leading = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
    values = [value for value in _returned(function.body) if value is not None]
    for value in values:
        if not isinstance(value, cst.Call) or dotted(value.func) not in wrapped:
            return False
        if not _same_arguments(value, leading, star.name.value, function.body):
            return False
    return bool(values)


def _same_arguments(call: cst.Call, leading: list[str], star: str, body: cst.BaseSuite) -> bool:
    """Whether a call passes the leading parameters and then ``*args``, as it is or worked on one by one."""
    plain = [argument for argument in call.args if argument.keyword is None and argument.star != "**"]
    if len(plain) != len(leading) + 1 or plain[-1].star != "*" or not isinstance(plain[-1].value, cst.Name):
        return False
    names = [argument.value.value for argument in plain[:-1] if isinstance(argument.value, cst.Name)]
    if names != leading or any(argument.star for argument in plain[:-1]):
        return False
    passed = plain[-1].value.value
    return _one_for_one(body, passed, star) if passed != star or _rebinds(body, star) else True


def _one_for_one(node: cst.CSTNode, name: str, star: str) -> bool:
    """Whether ``name`` is only ever bound to one element for each of ``*args``."""
    sources = list(_bound_to(node, name))
    return bool(sources) and all(_maps(source, star) or _grows(source, node, name, star) for source in sources)


def _rebinds(node: cst.CSTNode, name: str) -> bool:
    return any(True for _ in _bound_to(node, name))


def _bound_to(node: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """What ``name`` is assigned, anywhere in a body but in nested functions."""
    for child in children(node):
        if isinstance(child, cst.Assign):
            if any(isinstance(each.target, cst.Name) and each.target.value == name for each in child.targets):
                yield child.value
        elif isinstance(child, (cst.BaseSuite, cst.BaseStatement, cst.Else, cst.SimpleStatementLine)):
            if not isinstance(child, cst.FunctionDef):
                yield from _bound_to(child, name)


def _maps(value: cst.BaseExpression, star: str) -> bool:
    """``[f(arg) for arg in args]``, also as a generator in ``tuple(...)``."""
    if isinstance(value, cst.Call) and dotted(value.func) in ("tuple", "list") and len(value.args) == 1:
        value = value.args[0].value
    if not isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        return False
    clause = value.for_in
    return not clause.ifs and clause.inner_for_in is None and _iterates(clause.iter, star)


def _iterates(node: cst.BaseExpression, star: str) -> bool:
    if isinstance(node, cst.Call) and dotted(node.func) == "enumerate" and node.args:
        node = node.args[0].value
    return isinstance(node, cst.Name) and node.value == star


def _grows(value: cst.BaseExpression, body: cst.CSTNode, name: str, star: str) -> bool:
    """``name = []`` and then, in a loop over the arguments, one ``name.append(...)`` in each turn."""
    if not isinstance(value, cst.List) or value.elements:
        return False
    loops = [each for each in _loops_in(body) if _iterates(each.iter, star) and _appends(each.body, name)]
    return len(loops) == 1


def _loops_in(node: cst.CSTNode) -> Iterator[cst.For]:
    for child in children(node):
        if isinstance(child, cst.For):
            yield child
        elif isinstance(child, (cst.BaseSuite, cst.With)):
            yield from _loops_in(child)


def _appends(body: cst.BaseSuite, name: str) -> bool:
    """Whether a loop body appends to ``name`` once, in every turn."""
    calls = [
        small.value
        for statement in body.body
        if isinstance(statement, cst.SimpleStatementLine)
        for small in statement.body
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
    ]
    return sum(dotted(call.func) == f"{name}.append" for call in calls) == 1


def _functions_in(body: cst.BaseSuite) -> list[cst.FunctionDef]:
    return [statement for statement in body.body if isinstance(statement, cst.FunctionDef)]


def _returned(node: cst.CSTNode) -> Iterator[cst.BaseExpression | None]:
    """What the ``return`` statements inside a node give, those of nested functions left out."""
    for child in children(node):
        if isinstance(child, cst.Return):
            yield child.value
        elif isinstance(child, cst.FunctionDef):
            continue
        elif isinstance(child, (cst.BaseStatement, cst.BaseSuite, cst.Else, cst.SimpleStatementLine)):
            yield from _returned(child)


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
    params = node.params
    found = [_param(param, ParameterKind.POSITIONAL, scope) for param in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param):
        found.append(_param(params.star_arg, ParameterKind.VARIADIC, scope))
    found.extend(_param(param, ParameterKind.KEYWORD_ONLY, scope) for param in params.kwonly_params)
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
    if isinstance(node, cst.Name) and node.value == "None":
        return "None"
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
        if not isinstance(text, str) or too_deep(text) is not None:
            return code_of(node)
        return _annotation(cst.parse_expression(text), scope)
    except (cst.ParserSyntaxError, ValueError, SyntaxError):
        return code_of(node)


def split_params(
    node: cst.FunctionDef, params: tuple[Param, ...], binding: Binding, forward_takes_ctx: bool
) -> tuple[Param | None, Param | None]:
    """Which parameter is a receiver, and which one is the ctx (None where there is none).

    A receiver is the ``cls`` of a classmethod, or a ``self`` or ``cls`` that stands before the ctx. Beside
    ``setup_context`` forward gets no ctx; where it has a parameter for it by mistake, that is the ctx all the same.
    """
    name = node.name.value
    positional = [param for param in params if param.kind is ParameterKind.POSITIONAL]
    receiver: Param | None = None
    if binding is Binding.CLASS:
        receiver = positional.pop(0) if positional else None
    elif len(positional) > 1 and positional[0].name in _RECEIVERS and _is_context(node, positional[1]):
        receiver = positional.pop(0)
    if not positional or name not in ("forward", "backward", "vjp", "setup_context", "jvp"):
        return receiver, None
    if name == "forward" and not forward_takes_ctx and not _is_mistaken_context(node, positional[0]):
        return receiver, None
    return receiver, positional[0]


def is_context_name(name: str) -> bool:
    """Whether people call a ctx so."""
    return _CONTEXT_NAME.fullmatch(name) is not None


def _is_context(node: cst.FunctionDef, param: Param) -> bool:
    """Whether a second parameter is the ctx: by its name, and by its use where tensors are called so too."""
    return param.name.strip("_") == "ctx" or (is_context_name(param.name) and used_as_context(node.body, param.name))


def _is_mistaken_context(node: cst.FunctionDef, param: Param) -> bool:
    """Whether the first parameter of a forward that gets no ctx was meant to be one."""
    if param.name.strip("_") == "ctx" or used_as_context(node.body, param.name):
        return True
    return param.name in _RECEIVERS and not _mentions(node.body, param.name)


def used_as_context(node: cst.CSTNode, name: str) -> bool:
    """Whether something is done with ``name`` that only a ctx allows."""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == name:
        return node.attr.value in tables.CONTEXT_ONLY
    return any(used_as_context(child, name) for child in children(node))


def _mentions(node: cst.CSTNode, name: str) -> bool:
    if isinstance(node, cst.Name):
        return node.value == name
    return any(_mentions(child, name) for child in children(node))
