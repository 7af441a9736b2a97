"""Writes to a new tensor by what shares its memory only if its layout allows that: ``x.clone().flatten()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.layout_uses import keeps_arguments
from ctxlint.model.analyses.like_inputs import dimensions_of
from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.values import Alias, Fresh, View, is_input
from ctxlint.model.syntax import code_of, keywords_of, last_name, signed_integer, single_index
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class FlattenedWrite:
    """The expression by which a method writes to ``name``, a new tensor that it reads later.

    It has the layout of ``like``, an input or an incoming gradient.
    """

    copy: cst.Call
    name: str
    like: str


def flattened_writes(fn: FunctionClass, method: Method) -> Iterator[FlattenedWrite]:
    """Such writes, one for each tensor: they are lost if that is not contiguous, as nothing else reads the copy."""
    written: dict[Value, tuple[Mutation, View]] = {}
    for mutation in method.facts.of(Mutation):
        view = _usual_view(mutation.target)
        if view is not None and not mutation.by:
            written.setdefault(view.of, (mutation, view))
    if not written or _asks_for_layout(method):
        return
    for base, (mutation, view) in written.items():
        copy, name = view.node, _read_afterwards(method, base, mutation)
        if not name or not isinstance(base, Fresh) or not isinstance(copy, cst.Call):
            continue
        like = _layout_of(fn, method, base.node) if _merges(copy) and _is_only_written(method, copy) else None
        if like is None or not keeps_arguments(method) or _refuses_others(method, (name, like)):
            continue
        if all(each.name != like for each in fn.inputs) or dimensions_of(fn, like).exactly != 1:
            yield FlattenedWrite(copy, name, like)


def _read_afterwards(method: Method, base: Value, mutation: Mutation) -> str:
    """The only name of a tensor, if it is read after a write for more than its shape."""
    names = [name for name, bound in method.assignments.items() if any(each.value == base for each in bound)]
    if len(names) != 1 or method.only_assignment(names[0]) is None:
        return ""
    later = (each for each in method.named[names[0]] if method.is_written_before(mutation.node, each))
    around = (method.parents.get(each) for each in later)
    read = any(not isinstance(each, cst.Attribute) or each.attr.value not in _ABOUT_SHAPE for each in around)
    return names[0] if read else ""


_ABOUT_SHAPE = operations.SCALAR_ATTRIBUTES.keys() | operations.SIZE_METHODS


def _usual_view(target: Value | None) -> View | None:
    """The view of a new tensor that is a copy for some layouts, which a write goes to or to a view of."""
    while isinstance(target, View) and target.alias is Alias.ALWAYS:
        target = target.of
    return (
        target if isinstance(target, View) and target.alias is Alias.USUALLY and isinstance(target.of, Fresh) else None
    )


def _asks_for_layout(method: Method) -> bool:
    return any(each.attr.value in ("is_contiguous", "stride") for each in method.nodes_of(cst.Attribute))


def _refuses_others(method: Method, names: tuple[str, str]) -> bool:
    """Whether ``view`` of one of the tensors may raise if it is not contiguous."""
    viewed = (each.value for each in method.nodes_of(cst.Attribute) if each.attr.value == "view")
    return any(isinstance(each, cst.Name) and each.value in names for each in viewed)


def _merges(copy: cst.Call) -> bool:
    """Whether an expression certainly copies what is transposed: ``flatten()``, ``reshape(-1)``, ``contiguous()``.

    Also ``x.reshape(x.shape[0], -1)``, which keeps the first dimensions, and merges the others.
    """
    if not isinstance(copy.func, cst.Attribute) or any(each.star or each.keyword is not None for each in copy.args):
        return False
    method, given = copy.func.attr.value, [each.value for each in copy.args]
    if method in ("flatten", "ravel", "contiguous"):
        return not given
    owner = code_of(copy.func.value)
    kept = [_is_size(each, owner, at) for at, each in enumerate(given[:-1])]
    return method == "reshape" and bool(given) and signed_integer(given[-1]) == -1 and all(kept)


def _is_size(node: cst.BaseExpression, owner: str, at: int) -> bool:
    """Whether an expression is the size of a tensor along a dimension: ``x.shape[0]``, ``x.size(0)``."""
    if isinstance(node, cst.Subscript):
        return code_of(node.value) == f"{owner}.shape" and signed_integer(single_index(node)) == at
    return isinstance(node, cst.Call) and code_of(node) == f"{owner}.size({at})"


def _is_only_written(method: Method, copy: cst.Call) -> bool:
    """Whether a copy has no name but one by which it is only written to."""
    statement = method.parents.get(copy)
    if not isinstance(statement, cst.Assign):
        return True
    target = statement.targets[0].target if len(statement.targets) == 1 else None
    if not isinstance(target, cst.Name) or len(method.binders.get(target.value, ())) != 1:
        return False
    return all(_is_written(method, each) for each in method.named[target.value] if each is not target)


def _is_written(method: Method, use: cst.Name) -> bool:
    """Whether a use of a name modifies it in place, and nothing else: ``x[i] = 0``, ``x[i].add_(1)``."""
    node: cst.CSTNode = use
    while isinstance(around := method.parents.get(node), cst.Subscript) and around.value is node:
        node = around
    if isinstance(around, cst.AssignTarget) or (isinstance(around, cst.AugAssign) and around.target is node):
        return node is not use or isinstance(around, cst.AugAssign)
    call = method.parents.get(around) if isinstance(around, cst.Attribute) else None
    alone = isinstance(call, cst.Call) and isinstance(method.parents.get(call), cst.Expr)
    return alone and isinstance(around, cst.Attribute) and around.attr.value.endswith("_")


def _layout_of(fn: FunctionClass, method: Method, created: cst.CSTNode) -> str | None:
    """The input or incoming gradient whose layout a new tensor certainly gets."""
    if not isinstance(created, cst.Call) or "memory_format" in keywords_of(created):
        return None
    name, func = last_name(created.func), created.func
    of_torch = name in operations.LAYOUT_KEEPING_FACTORIES or (name == "clone" and bool(created.args))
    like = created.args[0].value if of_torch and created.args else None
    if name == "clone" and not created.args and isinstance(func, cst.Attribute):
        like = func.value
    while isinstance(like, (cst.Attribute, cst.Call)):  # ``x.data``, ``x.detach()``
        attribute = like.func if isinstance(like, cst.Call) and not like.args else like
        detached = isinstance(attribute, cst.Attribute) and attribute.attr.value in ("data", "detach")
        like = attribute.value if detached and isinstance(attribute, cst.Attribute) else None
    if not isinstance(like, cst.Name):
        return None
    if any(each.name == like.value for each in method.own_params):
        return like.value if method.holds_argument(like.value, like) else None
    bound = method.only_assignment(like.value)
    kept = kept_value(fn, bound.value) if bound is not None else None
    if is_input(kept) and kept.index < len(fn.inputs):
        return like.value
    return _layout_of(fn, method, bound.value_node) if bound is not None and bound.value_node is not None else None
