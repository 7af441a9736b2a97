"""Signatures of which ``torch.library`` infers no schema: ``custom_op`` raises where the file is imported.

Torch compares annotations with a list of types. Whatever is neither on this list nor certainly absent is unknown.
"""

from __future__ import annotations

import ast
import math
from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name, resolve_certainly
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.scopes import Scope


class RejectedPart(Enum):
    """A part of a signature, by what torch rejects about it."""

    KIND = "kind"
    """The parameter is positional-only, ``*args`` or ``**kwargs``."""
    MISSING = "missing"
    TYPE = "type"
    QUOTED = "quoted"
    """The type is a string in one that is evaluated already, or in brackets of ``typing``: torch sees the string."""
    NOT_IMPORTED = "not imported"
    """The name of the type is imported under ``if TYPE_CHECKING:`` only."""
    DEFAULT = "default"
    UNREADABLE_DEFAULT = "unreadable default"
    """One that torch cannot read in the schema that it infers, for which it raises RuntimeError."""
    TEXT = "text"
    """``mutates_args`` is a string, and not ``"unknown"``."""
    UNKNOWN_NAME = "unknown name"
    """``mutates_args`` names no parameter."""
    NOT_WRITABLE = "not writable"
    """``mutates_args`` names a parameter that is not a tensor."""


@record
class Rejection:
    """A part of a signature that torch rejects. ``parameter`` is empty for the result, ``instead`` a fitting type.

    ``element`` is the first one of a tuple that torch rejects.
    """

    node: ast.expr | ast.arg | ast.FunctionDef
    reason: RejectedPart
    parameter: str = ""
    instead: str = ""
    element: ast.expr | None = None


def rejections(function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> list[Rejection]:
    """What torch certainly rejects of the operator that the only decorator makes of a function, in torch's order.

    Only for a function that the file defines whenever it is imported.
    """
    decorator = function.decorator_list[0] if len(function.decorator_list) == 1 else None
    if not isinstance(decorator, ast.Call) or function.col_offset or isinstance(function, ast.AsyncFunctionDef):
        return []
    keywords = {each.arg: each.value for each in decorator.keywords}
    if "mutates_args" not in keywords or not keywords.keys() <= {"mutates_args", "device_types"}:
        return []
    found = [*_of_parameters(function, scope, keywords["mutates_args"]), *_of_result(function, scope)]
    return found or list(_unreadable_defaults(function, scope))


def _of_parameters(function: ast.FunctionDef, scope: Scope, mutates: ast.expr) -> Iterator[Rejection]:
    named = mutates.elts if isinstance(mutates, (ast.Tuple, ast.List, ast.Set)) else []
    written = {each.value: each for each in named if isinstance(each, ast.Constant)}
    text = mutates.value if isinstance(mutates, ast.Constant) and isinstance(mutates.value, str) else _UNKNOWN
    for parameter, default in _parameters(function.args):
        if parameter not in (*function.args.args, *function.args.kwonlyargs):
            yield Rejection(parameter, RejectedPart.KIND, parameter.arg)
            continue
        yield from _of_type(parameter, scope, written.get(parameter.arg))
        if text != _UNKNOWN:
            names = {each.arg for each, _default in _parameters(function.args)}
            yield Rejection(mutates, RejectedPart.TEXT, instead=f'("{text}",)' if text in names else "")
            text = _UNKNOWN
        if default is not None and _is_refused_default(default):
            yield Rejection(default, RejectedPart.DEFAULT, parameter.arg)
    names = {each.arg for each, _default in _parameters(function.args)}
    yield from (Rejection(node, RejectedPart.UNKNOWN_NAME, str(n)) for n, node in written.items() if n not in names)


_UNKNOWN = "unknown"
"""The value of ``mutates_args`` for any arguments."""


def _parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters in their order, with their defaults."""
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    yield from zip(positional, (*[None] * required, *arguments.defaults))
    if arguments.vararg is not None:
        yield arguments.vararg, None
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg is not None:
        yield arguments.kwarg, None


def _of_type(parameter: ast.arg, scope: Scope, named: ast.Constant | None) -> Iterator[Rejection]:
    """What is wrong with the annotation of a parameter, which ``mutates_args`` may have ``named``."""
    if parameter.annotation is None:
        yield Rejection(parameter, RejectedPart.MISSING, parameter.arg)
        return
    annotation = unquoted(parameter.annotation)
    absent = _not_imported(parameter.annotation, scope)
    kind = _type(annotation, scope)
    if _stays_a_string(parameter.annotation, scope):
        yield Rejection(parameter.annotation, RejectedPart.QUOTED, parameter.arg)
    elif absent:
        yield Rejection(parameter.annotation, RejectedPart.NOT_IMPORTED, parameter.arg, absent)
    elif kind is not None and kind not in _TAKEN and kind not in _OPAQUE:
        yield Rejection(parameter.annotation, RejectedPart.TYPE, parameter.arg, _instead(annotation, scope))
    elif kind is not None and named is not None and "Tensor" not in kind:
        yield Rejection(named, RejectedPart.NOT_WRITABLE, parameter.arg)


def _stays_a_string(annotation: ast.expr, scope: Scope) -> bool:
    """Whether a type is certainly still a string after torch has evaluated the annotation, which it does once."""
    later = _are_strings(scope)
    if _is_text(annotation):
        return later
    container, arguments = _parts(annotation)
    name = _meaning(container, scope)
    kept = name.startswith("typing.") or (later and name in _SEQUENCES)
    return kept and name in (*_SEQUENCES, *_TUPLES, "typing.Optional", "typing.Union") and any(map(_is_text, arguments))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _are_strings(scope: Scope) -> bool:
    """Whether all annotations of the file are strings: after ``from __future__ import annotations``."""
    return any(each.target == "__future__.annotations" for each in scope.names.get("annotations", ()))


def _not_imported(annotation: ast.expr, scope: Scope) -> str:
    """A name in an annotation, which torch evaluates, that is bound for type checkers only; empty if there is none."""
    node = unquoted(annotation)
    if node is annotation and not _are_strings(scope):
        return ""
    names = (each.id for each in nodes_in(node) if isinstance(each, ast.Name))
    return next((each for each in names if scope.names.get(each) and all(b.for_types for b in scope.names[each])), "")


def _of_result(function: ast.FunctionDef, scope: Scope) -> Iterator[Rejection]:
    if function.returns is None:
        yield Rejection(function, RejectedPart.MISSING)
        return
    returns = unquoted(function.returns)
    absent = _not_imported(function.returns, scope)
    if _stays_a_string(function.returns, scope):
        yield Rejection(function.returns, RejectedPart.QUOTED)
        return
    if absent:
        yield Rejection(function.returns, RejectedPart.NOT_IMPORTED, instead=absent)
        return
    found = _type(returns, scope)
    if found is None or found in (_NOTHING, *_RESULTS, *_OPAQUE):
        return
    parts = _parts_of_tuple(returns, scope)
    if parts is None or (parts and all(each is None or each in (*_RESULTS, *_OPAQUE) for each in parts)):
        return
    instead = "list[Tensor]" if parts == ["Tensor", "..."] else ""
    rejected = (node for node, kind in zip(_parts(returns)[1], parts) if kind not in (None, "...", *_RESULTS, *_OPAQUE))
    yield Rejection(function.returns, RejectedPart.TYPE, instead=instead, element=next(rejected, None))


def _is_refused_default(node: ast.expr) -> bool:
    """Whether a default is certainly neither None nor a number, string, device or dtype."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (bytes, complex)) or node.value is ...
    return isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda, ast.ListComp, ast.DictComp))


def _unreadable_defaults(function: ast.FunctionDef, scope: Scope) -> Iterator[Rejection]:
    """Defaults that torch writes into the schema, and cannot read there: all are known to be of a supported type."""
    for parameter, default in _parameters(function.args):
        if default is None or parameter.annotation is None:
            continue
        annotation = unquoted(parameter.annotation)
        kind = _type(annotation, scope) or ""
        if _is_infinite(default, scope) or _is_unreadable_text(default):
            yield Rejection(default, RejectedPart.UNREADABLE_DEFAULT, parameter.arg)
        elif isinstance(default, ast.Constant) and _is_of_another_type(default, kind):
            optional = f"Optional[{ast.unparse(annotation)}]"
            fits = default.value is None and f"{kind}?" in _TAKEN
            yield Rejection(default, RejectedPart.UNREADABLE_DEFAULT, parameter.arg, optional if fits else "")


def _is_of_another_type(default: ast.Constant, kind: str) -> bool:
    """Whether a literal is None for a device, a number for a tensor, or anything for a list."""
    if kind == "Tensor":
        return default.value is not None
    return kind.endswith("]") or (kind == "device" and default.value is None)


def _is_unreadable_text(default: ast.expr) -> bool:
    text = default.value if isinstance(default, ast.Constant) else None
    return isinstance(text, str) and any(each in text for each in '"\n')


def _is_infinite(default: ast.expr, scope: Scope) -> bool:
    """Whether a default is ``inf`` or ``nan``, perhaps with a sign."""
    node = default.operand if isinstance(default, ast.UnaryOp) else default
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and math.isinf(node.value)
    if isinstance(node, ast.Call):
        argument = node.args[0] if len(node.args) == 1 else None
        text = argument.value if isinstance(argument, ast.Constant) else None
        infinite = isinstance(text, str) and text.lower().strip("+-") in ("inf", "infinity", "nan")
        return infinite and _meaning(node.func, scope) == "builtins.float"
    return _meaning(node, scope) in _INFINITE


_INFINITE = frozenset(f"{owner}.{name}" for owner in ("math", "torch", "numpy") for name in ("inf", "nan"))


# Types, in a normal form: ``list[Tensor?]``, with ``?`` for ``| None``

_NOTHING = "None"
_SINGLE = {
    "torch.Tensor": "Tensor",
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.str": "str",
    "torch.dtype": "dtype",
    "torch.device": "device",
}
_NUMBERS = frozenset(["int", "float", "bool"])
_NUMBER = "Number"
_SEQUENCES = {
    "builtins.list": "list",
    "typing.List": "list",
    "typing.Sequence": "Sequence",
    "collections.abc.Sequence": "Sequence",
}
_TUPLES = frozenset(["builtins.tuple", "typing.Tuple"])
_OTHERS = frozenset(
    (
        *("builtins.dict", "builtins.set", "builtins.frozenset", "builtins.complex", "builtins.bytes"),
        *("builtins.object", "builtins.slice", "builtins.range", "builtins.type", "builtins.tuple", "numpy.ndarray"),
        *("typing.Any", "typing.Callable", "typing.Dict", "typing.Mapping", "typing.Iterable", "typing.Set"),
        *("collections.abc.Callable", "collections.abc.Iterable", "collections.abc.Mapping", *_SEQUENCES),
        *("torch.Size", "torch.SymInt", "torch.memory_format", "torch.layout", "torch.nn.Parameter"),
        *("torch.nn.Module", "torch.FloatTensor", "torch.LongTensor", "torch.IntTensor", "torch.BoolTensor"),
    )
)
"""Types that torch certainly does not take, with and without arguments."""
_OPAQUE = frozenset(
    (
        *("torch.distributed.device_mesh.DeviceMesh", "torch.distributed.DeviceMesh", "torch.Generator"),
        *("torch.distributed.ProcessGroup", "torch.distributed.distributed_c10d.ProcessGroup"),
    )
)
"""Types that newer releases of torch take alone, but not ``Optional`` of them."""

_LISTED = ("Tensor", *sorted(_NUMBERS))
_TAKEN = frozenset(
    (
        *(f"{each}{optional}" for each in (*_SINGLE.values(), _NUMBER) for optional in ("", "?")),
        *(f"{many}[{each}]" for many in ("list", "Sequence") for each in (*_LISTED, _NUMBER, "Tensor?")),
        *(f"{many}[{each}]?" for many in ("list", "Sequence") for each in _NUMBERS),
    )
)
_RESULTS = frozenset(["Tensor", *_NUMBERS, _NUMBER, "list[Tensor]"])


def unquoted(node: ast.expr) -> ast.expr:
    """The expression in an annotation that is a string. Strings inside of others stay as they are."""
    written = tree_of(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
    only = written.body[0] if written is not None and len(written.body) == 1 else None
    return only.value if isinstance(only, ast.Expr) else node


def _type(node: ast.expr, scope: Scope) -> str | None:
    """The type that an annotation denotes; None if a part of it is unknown."""
    found = _alternatives(node, scope)
    if found is None:
        return None
    certain = found - {_NOTHING}
    if not certain:
        return _NOTHING
    named = _NUMBER if certain == _NUMBERS else "|".join(sorted(certain))
    return f"{named}?" if _NOTHING in found else named


def _alternatives(node: ast.expr, scope: Scope) -> frozenset[str] | None:
    """The types of which an annotation is the union."""
    if isinstance(node, ast.Constant):
        return frozenset([_NOTHING]) if node.value is None else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], scope)
    container, arguments = _parts(node)
    name = _meaning(container, scope)
    if not arguments:
        known = name in _SINGLE or name in _OTHERS or name in _OPAQUE
        return frozenset([_SINGLE.get(name, name)]) if known else None
    if name in ("typing.Optional", "typing.Union"):
        found = _union(arguments, scope)
        return found if found is None or name == "typing.Union" else found | {_NOTHING}
    if name not in _SEQUENCES or len(arguments) > 1:
        return frozenset([name]) if name in _OTHERS or name in _TUPLES else None
    inner = _type(arguments[0], scope)
    return frozenset([f"{_SEQUENCES[name]}[{inner}]"]) if inner is not None and inner not in _OPAQUE else None


def _union(nodes: list[ast.expr], scope: Scope) -> frozenset[str] | None:
    found: set[str] = set()
    for node in nodes:
        some = _alternatives(node, scope)
        if some is None:
            return None
        found |= some
    return frozenset(found)


def _parts(node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """``Tuple`` and its arguments of ``Tuple[int, int]``."""
    if not isinstance(node, ast.Subscript):
        return node, []
    return node.value, node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _meaning(node: ast.expr, scope: Scope) -> str:
    name = dotted_name(node)
    return (resolve_certainly(name, scope) if name is not None else None) or ""


def _parts_of_tuple(node: ast.expr, scope: Scope) -> list[str | None] | None:
    """The types in a tuple, ``...`` and None for unknown ones among them; empty for another type, or if it is bare.

    None for ``typing.Tuple`` without arguments, which torch takes for an empty one, and for ``tuple[()]``.
    """
    container, arguments = _parts(node)
    name = _meaning(container, scope)
    if name not in _TUPLES or not arguments:
        return None if name == "typing.Tuple" or (name in _TUPLES and node is not container) else []
    return ["..." if _is_dots(each) else _type(each, scope) for each in arguments]


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _instead(node: ast.expr, scope: Scope) -> str:
    """The sequence that takes what a tuple of one type does, or the list without ``None``."""
    if _type(node, scope) in ("list[Tensor]?", "Sequence[Tensor]?"):
        return "list[Tensor]"
    only = {each for each in _parts_of_tuple(node, scope) or () if each != "..."}
    inner = only.pop() if len(only) == 1 else None
    return f"Sequence[{inner}]" if inner in _LISTED else ""
