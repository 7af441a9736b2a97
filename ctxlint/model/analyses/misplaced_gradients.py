"""Gradients behind a ``None`` too many: each is returned for a later input than the one that it is named after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_names import exactly_named_input
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.tensor_containers import container_inputs_with_gradient
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input, Returned


@record
class Displaced:
    """The gradient ``name`` at ``node``, which is returned for the input ``gets``; ``meant`` gets None."""

    returned: Returned
    name: str
    node: cst.CSTNode
    meant: Input
    gets: Input


def misplaced_gradients(fn: FunctionClass) -> Iterator[Displaced]:
    """The first such gradient of each return of backward that ends with as many surplus None."""
    if fn.variadic_inputs is not None:
        return
    for returned in judged_gradients(fn):
        if returned.count is None or returned.count <= len(fn.inputs) or container_inputs_with_gradient(fn):
            continue
        if all(is_none(slot.value) is Tri.YES for slot in returned.slots[len(fn.inputs) :]):
            found = list(_misplaced(fn, returned))
            if found and not any(_fits(fn, returned, at) for at in range(found[0].gets.index, len(fn.inputs))):
                yield found[0]


def _misplaced(fn: FunctionClass, returned: Returned) -> Iterator[Displaced]:
    surplus = len(returned.slots) - len(fn.inputs)
    for gets in fn.inputs:
        node = returned.slots[gets.index].node
        at = exactly_named_input(node, fn.inputs)
        if gets.against_a_gradient:  # it raises, which is CTX204
            continue
        if at is None or not 0 < gets.index - at <= surplus or not isinstance(node, cst.Name):
            continue
        if is_none(returned.slots[at].value) is Tri.YES and is_none(returned.slots[gets.index].value) is not Tri.YES:
            yield Displaced(returned, node.value, node, fn.inputs[at], gets)


def _fits(fn: FunctionClass, returned: Returned, at: int) -> bool:
    """Whether a gradient is named after the input that it is returned for."""
    return exactly_named_input(returned.slots[at].node, fn.inputs) == at
