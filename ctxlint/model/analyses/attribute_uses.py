"""What backward does with an attribute of ctx, other than reading a tensor there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import ContextWrite, Mutation
from ctxlint.model.interpreter.values import NONE, ContextAttribute, Item, Sequence, usual_storage
from ctxlint.model.syntax import compares_identity
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


def written_by_backward(fn: FunctionClass) -> frozenset[str]:
    """The attributes whose tensors backward writes to, on some path at least: saving them would be wrong."""
    names = set()
    for method in fn.reading_methods:
        for mutation in method.facts.of(Mutation):
            for written in mutation.target.options() if mutation.target is not None else ():
                origin = usual_storage(written)
                replaces = mutation.how == "[...] =" and not isinstance(origin, Item)
                while isinstance(origin, Item):
                    origin = usual_storage(origin.of)
                if isinstance(origin, ContextAttribute) and not (replaces and _is_list(fn, origin.name)):
                    names.add(origin.name)
    return frozenset(names)


def _is_list(fn: FunctionClass, attribute: str) -> bool:
    """Whether forward keeps a list there: ``ctx.a[i] = x`` writes to no tensor."""
    stored = [each.value for each in fn.writes_by_attribute.get(attribute, ())]
    return bool(stored) and all(isinstance(each, Sequence) and each.kind == "list" for each in stored)


OF_A_TENSOR = (
    operations.TENSOR_METHODS
    | operations.VIEW_METHODS
    | operations.USUAL_VIEW_METHODS
    | operations.CONVERSIONS
    | operations.FLOAT_CONVERSIONS
    | operations.INTEGRAL_CONVERSIONS
    | operations.TUPLE_METHODS
    | operations.VIEW_ATTRIBUTES
    | operations.INPLACE_METHODS
    | frozenset(operations.SCALAR_ATTRIBUTES)
    | frozenset(operations.SCALAR_METHODS)
    | frozenset(["size", "stride", "max", "min", "sort", "topk", "median", "mode", "tolist", "numpy", "new", "storage"])
    | frozenset(["record_stream", "is_cpu", "is_meta", "is_nested", "indices", "values", "unique_consecutive"])
    | frozenset(["untyped_storage", "unique", "aminmax", "cummax", "cummin", "kthvalue", "svd", "qr", "pin_memory"])
)
"""The attributes and methods that every tensor has, so also one from ``saved_tensors``."""

_EMPTYING = frozenset(["pop", "clear", "remove", "popitem"])


def emptied(method: Method, attribute: str) -> bool:
    """Whether the method removes items from the container ``ctx.attribute``: its author manages the memory."""
    return any(isinstance(use, cst.Attribute) and use.attr.value in _EMPTYING for use in _uses(method, attribute))


def replaced_by_a_closure(method: Method, attribute: str) -> bool:
    """Whether a nested function deletes ``ctx.attribute``, or sets it as the method does: it manages the memory."""
    changes = [
        node
        for node in method.context_attributes.get(attribute, ())
        if isinstance(method.parents[node], (cst.AssignTarget, cst.AnnAssign, cst.Del))
    ]
    nested = [node for node in changes if _is_nested(method, node)]
    deleted = any(isinstance(method.parents[node], cst.Del) for node in nested)
    return deleted or 0 < len(nested) < len(changes)


def _is_nested(method: Method, node: cst.CSTNode) -> bool:
    return any(isinstance(each, cst.FunctionDef) and each is not method.node for each in method.above(node))


def without_the_data(method: Method, attribute: str) -> bool:
    """Whether the method never reads the contents of ``ctx.attribute``.

    It only tests it for None, or reads a custom attribute of it, which a saved tensor would lose.
    """
    uses = _uses(method, attribute)
    return bool(uses) and all(
        compares_identity(use) or _reads_extra_attribute(use) or _is_asked_by_name(method, use) for use in uses
    )


def only_tested_for_none(method: Method, attribute: str) -> bool:
    """Whether the method reads ``ctx.attribute`` only to test it for None."""
    return all(map(compares_identity, _uses(method, attribute)))


def _reads_extra_attribute(use: cst.CSTNode) -> bool:
    return isinstance(use, cst.Attribute) and use.attr.value not in OF_A_TENSOR


def _is_asked_by_name(method: Method, use: cst.CSTNode) -> bool:
    """``getattr(ctx.a, "grad_added", False)`` and the like."""
    call = method.parents[use] if isinstance(use, cst.Arg) else None
    asked = isinstance(call, cst.Call) and isinstance(call.func, cst.Name)
    return asked and call.func.value in ASKING and call.args[0] is use  # type: ignore[union-attr]


ASKING = frozenset({"getattr", "hasattr", "setattr", "id"})
"""Builtins that ask for what only this very object has."""


def _uses(method: Method, attribute: str) -> list[cst.CSTNode]:
    """The parents of each ``ctx.attribute`` in the body of a method."""
    return [method.parents[node] for node in method.context_attributes.get(attribute, ())]


def released_explicitly(fn: FunctionClass, attribute: str) -> bool:
    """Whether backward releases an attribute itself: ``ctx.a = None``, ``del ctx.a``."""
    return any(
        write.attribute == attribute and (write.deletes or write.value == NONE)
        for method in fn.reading_methods
        for write in method.facts.of(ContextWrite)
    )
