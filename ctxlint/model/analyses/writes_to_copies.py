"""Writes of a function that gets a tensor, and makes it contiguous first: to a copy, if it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.contiguous_parameters import makes_contiguous
from ctxlint.model.index.kernel_parameters import parameters_of
from ctxlint.model.interpreter.events import GenericCall, Mutation
from ctxlint.model.interpreter.strided_launches import any_layout
from ctxlint.model.interpreter.values import before_views
from ctxlint.model.syntax import code_of, dotted, keywords_of, root_name
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.events import Assigned
    from ctxlint.model.interpreter.method import Method


@record
class WriteToCopy:
    """A call that writes to ``name``, or to a copy of it if ``like`` is not contiguous, and whose result is dropped."""

    mutation: Mutation
    name: str
    like: str


def writes_to_copies(backward: Method) -> Iterator[WriteToCopy]:
    """Such calls of backward that get a new tensor with the layout of an incoming gradient, which it reads later."""
    if any(each.attr.value == "is_contiguous" for each in backward.nodes_of(cst.Attribute)):
        return
    for mutation in backward.facts.of(Mutation):
        call, target = mutation.node, mutation.target
        dropped = isinstance(call, cst.Call) and isinstance(backward.parents.get(call), cst.Expr)
        if not isinstance(call, cst.Call) or not dropped or not mutation.by or target is None:
            continue
        if any_layout(target) is not None:
            continue
        for argument in call.args:
            bound = _created(backward, mutation, argument.value) if isinstance(argument.value, cst.Name) else None
            like = (
                _like(backward, bound.value_node) if bound is not None and bound.value == before_views(target) else ""
            )
            if bound is not None and like and _is_read_later(backward, argument.value):
                yield WriteToCopy(mutation, bound.name, like)


def _created(backward: Method, mutation: Mutation, name: cst.Name) -> Assigned | None:
    """The assignment to a name that a write certainly finds; None if others are possible, or replace it later."""
    bound = backward.assignments.get(name.value, [])
    here = [each for each in bound if not each.excludes(mutation)]
    known = len(bound) == len(backward.binders.get(name.value, ()))
    return here[0] if len(here) == 1 and known and mutation.implies(here[0]) and not here[0].augmented else None


def _is_read_later(backward: Method, use: cst.BaseExpression) -> bool:
    """Whether a later statement, not one of another branch, mentions the name as well."""
    around = set(backward.above(use))
    for mention in reversed(backward.named[code_of(use)]):
        if mention is use:
            return False
        shared = next((each for each in backward.above(mention) if each in around), None)
        if isinstance(shared, cst.BaseSuite):
            return True
    return False


@record
class OnlyCopied:
    """A new tensor ``name`` with the layout of ``like`` that backward returns: all else gets a contiguous copy.

    ``use`` is the first place where that is made, perhaps in the function ``by``.
    """

    use: cst.Name
    name: str
    like: str
    by: str = ""


def only_copied(backward: Method) -> Iterator[OnlyCopied]:
    """Such tensors: if the incoming gradient is transposed, nothing fills them."""
    if any(each.attr.value == "is_contiguous" for each in backward.nodes_of(cst.Attribute)):
        return
    for name, occurrences in backward.named.items():
        bound = backward.only_assignment(name)
        like = _like(backward, bound.value_node) if bound is not None else ""
        if not like:
            continue
        uses = [each for each in occurrences if not isinstance(backward.parents[each], cst.AssignTarget)]
        copies = {use: by for use in uses for by in [_copied_by(backward, use)] if by is not None}
        rest = [use for use in uses if use not in copies and not _asks_for_shape(backward, use)]
        if copies and rest and all(_is_returned(backward, use) for use in rest):
            use, by = next(iter(copies.items()))
            yield OnlyCopied(use, name, like, by)


def _copied_by(backward: Method, use: cst.Name) -> str | None:
    """The function that makes its argument contiguous, empty for ``x.contiguous()`` itself; None for anything else."""
    call, method = backward.called_on(use)
    if call is not None:
        return "" if method == "contiguous" and not call.args else None
    argument = backward.parents[use]
    around = backward.parents[argument] if isinstance(argument, cst.Arg) else None
    for each in backward.facts.of(GenericCall) if isinstance(around, cst.Call) else ():
        called = each.definition
        if each.node is around and called is not None and called.record is None and not each.replaceable:
            given = zip(parameters_of(called), each.arguments, strict=False)
            made = [makes_contiguous(called, param) for param, slot in given if slot.node is use]
            return called.name if made and all(made) else None
    return None


def _asks_for_shape(backward: Method, use: cst.Name) -> bool:
    """Whether it is ``x.shape``, ``x.numel()`` or the like."""
    around = backward.parents[use]
    known = operations.SCALAR_ATTRIBUTES.keys() | operations.SIZE_METHODS
    return isinstance(around, cst.Attribute) and around.attr.value in known


def _is_returned(backward: Method, use: cst.Name) -> bool:
    """Whether it is what ``return`` gives, or an element of that."""
    around = backward.parents[use]
    if isinstance(around, cst.Element):
        around = backward.parents[backward.parents[around]]
    return isinstance(around, cst.Return)


def _like(backward: Method, created: cst.BaseExpression | None) -> str:
    """The code of the incoming gradient whose layout a new tensor gets; empty if it may have another one."""
    if not isinstance(created, cst.Call) or not created.args or "memory_format" in keywords_of(created):
        return ""
    like = created.args[0].value
    name, keeps = (
        root_name(like),
        (dotted(created.func) or "").rpartition(".")[2] in operations.LAYOUT_KEEPING_FACTORIES,
    )
    gradient = any(each.name == name for each in backward.own_params) and not backward.binders.get(name or "")
    return code_of(like) if keeps and gradient else ""
