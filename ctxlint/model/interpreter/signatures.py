"""The signature of a method: its decorators, its parameters, and which of them is ctx."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.decorator_summaries import Wrapping
from ctxlint.model.index.python_names import RECEIVERS
from ctxlint.model.index.scopes import dotted_name, is_builtin, resolutions, resolve, resolve_certainly
from ctxlint.model.interpreter.events import Misfit, MisfitKind
from ctxlint.model.interpreter.method import Binding, Decorator, Param, ParameterKind
from ctxlint.model.interpreter.values import NONE, Opaque, Scalar, Tri, Value, constant
from ctxlint.model.syntax import children, code_of, dotted, is_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import gives_back
from ctxlint.source.nesting import too_deep
from ctxlint.torch_api import autograd, types
from ctxlint.torch_api import known_decorators as decorators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ctxlint.model.index.scopes import Scope

_AUTOCAST_PAIR = pattern(r"(?:^|[._])custom_(?:fwd|bwd)$")
_CONTEXT_NAME = pattern(r"_*ctx_*|_*context_*")

Meaning = Wrapping | str | None
"""What a decorator's name means: a function of the project, a dotted name from outside it, or unknown."""


class BoundName(NamedTuple):
    """Where a name is bound: the name and the scope there, and what the resolved names of that file mean."""

    name: str
    scope: Scope
    meaning: Callable[[str], Meaning] = lambda name: name


def decorators_of(
    node: cst.FunctionDef, scope: Scope, bound: Callable[[str, Scope], BoundName] = BoundName
) -> tuple[Decorator, ...]:
    """The decorators, outermost first. ``bound`` resolves a name that another file of the project binds."""
    found: list[Decorator] = []
    for each in node.decorators:
        expression = each.decorator
        called = isinstance(expression, cst.Call)
        path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
        if path is None:
            found.append(Decorator(each, None, called, Tri.UNKNOWN))
            continue
        there, owner, meaning = bound(path, scope)
        completed = _completed(there, owner, resolve_certainly)
        certain = resolve_certainly(there, owner) or completed
        made = None if called or certain else _autocast_of_every_binding(there, owner, meaning)
        name = certain or (made and made.name) or resolve(there, owner) or _completed(there, owner, resolve) or there
        meant = meaning(name)
        keeps = _keeps_signature(name, meant)
        if keeps is not Tri.YES and certain is None and not called and _every_binding_keeps(there, owner, meaning):
            keeps = Tri.YES
        works = isinstance(meant, Wrapping) and meant.works_on_ctx
        copies = isinstance(meant, Wrapping) and meant.copies
        lays_out = isinstance(meant, Wrapping) and meant.lays_out and not called
        takes = _takes_descriptors(meant)
        optional = made is not None and made.optional
        completed = completed or (made and made.name)
        found.append(
            Decorator(
                node=each,
                name=name,
                called=called,
                keeps_signature=keeps,
                certain=certain is not None,
                takes_descriptors=takes,
                works_on_ctx=works,
                copies=copies,
                lays_out=lays_out,
                completed=completed is not None,
                optional=optional,
                casts=made is not None and made.casts,
                through_project=owner is not scope,
                keeps_device=_keeps_device(name, meant),
            )
        )
    return tuple(found)


class _Made(NamedTuple):
    name: str
    optional: bool
    casts: bool


def _autocast_of_every_binding(path: str, scope: Scope, meaning: Callable[[str], Meaning]) -> _Made | None:
    """``custom_fwd`` or ``custom_bwd`` if every binding of a name is that, or returns the function unchanged.

    ``fwd = torch.amp.custom_fwd(device_type="cuda")`` is such a binding, and so is ``fwd = identity`` in the other
    branch.
    """
    owner = scope.owner(path)
    if owner is None:
        return None
    names: list[str] = []
    optional = False
    bounds, meant = owner.live(path), resolutions(path, scope)
    if len(bounds) != len(meant):
        return None
    for bound, name in zip(bounds, meant):
        made = name or _called_with_keywords(bound.value, owner)
        if made in decorators.SIGNATURE_KEEPING_DECORATORS and _AUTOCAST_PAIR.search(made):
            names.append(made)
            continue
        known = meaning(name) if name is not None else None
        if not (isinstance(known, Wrapping) and known.gives_back):
            return None
        optional = True
    kinds = {each.rpartition(".")[2] for each in names}
    casts = any(_casts(bound.value) for bound in bounds)
    return _Made(names[0], optional, casts) if len(kinds) == 1 else None


def _casts(value: ast.expr | None) -> bool:
    """Whether a call gets ``cast_inputs``."""
    return isinstance(value, ast.Call) and any(each.arg == "cast_inputs" for each in value.keywords)


def _every_binding_keeps(path: str, scope: Scope, meaning: Callable[[str], Meaning]) -> bool:
    """Whether every binding of a name is a decorator that passes all arguments on."""
    owner = scope.owner(path)
    bounds = owner.live(path) if owner is not None else []
    meant = resolutions(path, scope)
    if owner is None or not bounds or len(bounds) != len(meant):
        return False
    for bound, resolved in zip(bounds, meant):
        name = resolved or _called_with_keywords(bound.value, owner)
        if gives_back(bound.value) if name is None else _keeps_signature(name, meaning(name)) is Tri.YES:
            continue
        return False
    return True


def _called_with_keywords(value: ast.expr | None, owner: Scope) -> str | None:
    """``torch.amp.custom_fwd`` for a call of it with only keywords: the result is the decorator."""
    if not isinstance(value, ast.Call) or value.args or not value.keywords:
        return None
    if any(each.arg not in ("device_type", "cast_inputs") for each in value.keywords):
        return None
    maker = dotted_name(value.func)
    meant = resolutions(maker, owner) if maker is not None else [None]
    kinds = {each.rpartition(".")[2] if each is not None else "" for each in meant}
    return meant[0] if len(kinds) == 1 else None


def _completed(path: str, scope: Scope, resolved: Callable[[str, Scope], str | None]) -> str | None:
    """The first argument of ``functools.partial``, if ``path`` is a name for its result."""
    owner = scope.owner(path)
    for bound in owner.intended(path) if owner is not None else ():
        value = bound.value
        if owner is None or type(value).__name__ != "Call" or not value.args:  # type: ignore[union-attr]
            continue
        maker = dotted_name(value.func)  # type: ignore[union-attr]
        completed = dotted_name(value.args[0])  # type: ignore[union-attr]
        if maker is not None and completed is not None and resolve(maker, owner) == "functools.partial":
            return resolved(completed, owner)
    return None


def _keeps_signature(name: str, meant: Meaning) -> Tri:
    if name in decorators.SIGNATURE_KEEPING_DECORATORS or _AUTOCAST_PAIR.search(name):
        return Tri.YES
    if name in ("staticmethod", "classmethod"):
        return Tri.YES
    if isinstance(meant, Wrapping):
        return Tri.YES if meant.passes_arguments_on else Tri.UNKNOWN
    return Tri.YES if meant in decorators.SIGNATURE_KEEPING_DECORATORS else Tri.UNKNOWN


def _keeps_device(name: str, meant: Meaning) -> bool:
    """Whether a decorator certainly leaves the current GPU alone."""
    if isinstance(meant, Wrapping):
        return meant.keeps_device and meant.passes_arguments_on and meant.by is None
    return name in decorators.DEVICE_KEEPING_DECORATORS or bool(_AUTOCAST_PAIR.search(name))


def _takes_descriptors(meant: Meaning) -> bool:
    return meant.takes_descriptors if isinstance(meant, Wrapping) else meant in decorators.DESCRIPTOR_KEEPING_DECORATORS


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
    """The value of a default, if it is a literal."""
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
        return (resolve(path, scope) or _type_of_python(path, scope) or path) if path is not None else code_of(node)
    if isinstance(node, cst.SimpleString):
        return _quoted(node, scope)
    if isinstance(node, cst.Subscript):
        inner = ", ".join(
            _annotation(element.slice.value, scope) if isinstance(element.slice, cst.Index) else code_of(element)
            for element in node.slice
        )
        head = _annotation(node.value, scope)
        return types.shaped_tensor(head, inner.partition(",")[0]) or f"{head}[{inner}]"
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return f"{_annotation(node.left, scope)} | {_annotation(node.right, scope)}"
    return code_of(node)


def _type_of_python(name: str, scope: Scope) -> str | None:
    """``builtins.int`` for ``int`` that a star import may replace: an annotation means the type all the same."""
    return f"builtins.{name}" if scope.owner(name) is None and is_builtin(name) else None


def _quoted(node: cst.SimpleString, scope: Scope) -> str:
    try:
        text = node.evaluated_value
        if not isinstance(text, str) or too_deep(text) is not None:
            return code_of(node)
        return _annotation(cst.parse_expression(text), scope)
    except (cst.ParserSyntaxError, ValueError, SyntaxError):
        return code_of(node)


def misfit_of(
    callee: str, params: Sequence[Param], positional: int, keywords: Mapping[str, str], raises: str = "TypeError"
) -> Misfit | None:
    """What a function does not take of so many arguments by position, and these keywords; None if it takes them.

    The keywords come with the names that are passed for them, if any.
    """
    kinds = [each.kind for each in params]
    plain = [each.name for each in params if each.kind is ParameterKind.POSITIONAL]
    by_keyword = [each.name for each in params if each.kind is ParameterKind.KEYWORD_ONLY]
    takes_any = ParameterKind.KEYWORDS in kinds
    surplus = 0 if ParameterKind.VARIADIC in kinds else max(positional - len(plain), 0)
    filled, named = plain[:positional], {*plain, *by_keyword}
    passed = {*filled, *keywords}
    missing = tuple(each.name for each in params if each.name not in passed and each.required)
    unknown = tuple(name for name in keywords if not takes_any and name not in named)
    twice = tuple(name for name in keywords if not takes_any and name in filled)
    if not (surplus or missing or unknown or twice):
        return None
    free = [name for name in (*plain, *by_keyword) if name not in passed]
    meant = [_meant(name, keywords[name], free) for name in unknown]
    sure = tuple(name for name in meant if name is not None)
    sure = sure if len({*sure}) == len(unknown) and {*missing} <= {*sure} else ()
    kind, every = MisfitKind.CALL, (*plain, *by_keyword) if len(plain) + len(by_keyword) == len(params) else ()
    return Misfit(callee, len(plain), surplus, missing, twice, unknown, sure, raises=raises, kind=kind, params=every)


def _meant(keyword: str, passed: str, free: Iterable[str]) -> str | None:
    """The only one of the parameters that get nothing with the name of what is passed, or with one like the keyword."""
    same = [name for name in free if name == passed]
    found = same or [name for name in free if _begins(name, keyword) or _begins(keyword, name)]
    return found[0] if len(found) == 1 else None


def _begins(name: str, start: str) -> bool:
    """Whether a name consists of another one and a few letters: ``transposed``."""
    return len(start) > 3 and name.startswith(start) and len(name) - len(start) <= 3 and "_" not in name[len(start) :]


def split_params(
    node: cst.FunctionDef, params: tuple[Param, ...], binding: Binding, forward_takes_ctx: bool
) -> tuple[Param | None, Param | None]:
    """Which parameter is a receiver, and which one is the ctx (None if there is none).

    A receiver is the ``cls`` of a classmethod, or a ``self`` or ``cls`` before the ctx. Next to
    ``setup_context`` forward gets no ctx; where it has a parameter for it by mistake, that is the ctx all the same.
    """
    name = node.name.value
    positional = [param for param in params if param.kind is ParameterKind.POSITIONAL]
    receiver: Param | None = None
    if binding is Binding.CLASS:
        receiver = positional.pop(0) if positional else None
    elif len(positional) > 1 and positional[0].name in RECEIVERS and _is_context(node, positional[1]):
        receiver = positional.pop(0)
    if not positional or name not in ("forward", "backward", "vjp", "setup_context", "jvp"):
        return receiver, None
    if name == "forward" and not forward_takes_ctx and not _is_mistaken_context(node, positional[0]):
        return receiver, None
    return receiver, positional[0]


def is_context_name(name: str) -> bool:
    """Whether it is a common name of a ctx."""
    return _CONTEXT_NAME.fullmatch(name) is not None


def _is_context(node: cst.FunctionDef, param: Param) -> bool:
    """Whether a second parameter is the ctx: by its name, and by its use if tensors have that name, too."""
    return param.name.strip("_") == "ctx" or (is_context_name(param.name) and used_as_context(node.body, param.name))


def _is_mistaken_context(node: cst.FunctionDef, param: Param) -> bool:
    """Whether the first parameter of a forward without ctx was meant to be one, not a tensor with such a name."""
    if used_as_context(node.body, param.name):
        return True
    if param.name.strip("_") == "ctx":
        return not _is_used_as_value(node.body, param.name)
    return param.name in RECEIVERS and not _mentions(node.body, param.name)


def used_as_context(node: cst.CSTNode, name: str) -> bool:
    """Whether ``name`` is used in a way that only a ctx allows."""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == name:
        return node.attr.value in autograd.CONTEXT_ONLY
    return any(used_as_context(child, name) for child in children(node))


def _is_used_as_value(node: cst.CSTNode, name: str) -> bool:
    """Whether code computes with a name, takes an item of it or calls its methods, as with a tensor and never a ctx."""
    operands: tuple[cst.CSTNode, ...] = ()
    if isinstance(node, cst.BinaryOperation):
        operands = (node.left, node.right)
    elif isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        operands = (node.expression,)
    elif isinstance(node, cst.Subscript):
        operands = (node.value,)
    elif isinstance(node, cst.Call):
        path = dotted(node.func) or ""
        if path.startswith((f"{name}.", *_OF_TORCH)):  # ``used_as_context`` knows the methods of a ctx
            return path.startswith(f"{name}.") or any(is_name(each.value, name) for each in node.args)
    if any(is_name(each, name) for each in operands):
        return True
    return any(_is_used_as_value(child, name) for child in children(node))


_OF_TORCH = ("torch.", "F.")


def _mentions(node: cst.CSTNode, name: str) -> bool:
    if isinstance(node, cst.Name):
        return node.value == name
    return any(_mentions(child, name) for child in children(node))


def are_shifted(names: Sequence[str], params: Sequence[str]) -> bool:
    """Whether an argument has the name of a later parameter, or how it begins: others than the last are left out."""
    given, meant = [each.lower() for each in names], [each.lower() for each in params]
    return any(
        any(name == each or (len(name) > 3 and each.startswith(name)) for each in meant[at:])
        for at, name in enumerate(given[: len(meant)])
        if name and not meant[at].startswith(name)
    )


def are_moved(names: Iterable[str], params: Iterable[str]) -> bool:
    """Whether arguments with these names, by position, are not where the parameters are that bear them.

    At least two have the names of parameters that are equally far away. A single one, as in ``run(y, x)`` for
    ``run(x, z)``, may be meant.
    """
    places = {name: at for at, name in enumerate(params)}
    distances = [places[name] - at for at, name in enumerate(names) if places.get(name, at) != at]
    return len(set(distances)) < len(distances)
