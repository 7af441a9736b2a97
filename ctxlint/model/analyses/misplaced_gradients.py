"""Gradients that are returned for another input than the one that they are named after.

One is behind a ``None`` too many, or two have changed places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_names import exactly_named_input, has_name_of
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.tensor_containers import container_inputs_with_gradient
from ctxlint.model.interpreter.values import NONE, Parameter, Tri, is_none
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


@record
class Exchanged:
    """Two gradients, by their index, each of which is computed under the name of the input that the other is for."""

    returned: Returned
    indices: tuple[int, int]
    nodes: tuple[cst.Name, cst.Name]


def exchanged_gradients(fn: FunctionClass) -> Iterator[Exchanged]:
    """Such gradients in the returns of backward, one pair for each."""
    if fn.variadic_inputs is not None or len(fn.inputs) < 2:
        return
    for returned in judged_gradients(fn):
        slots = returned.slots if returned.count is not None and returned.count >= len(fn.inputs) else ()
        named = {at: has_name_of(slot.node, fn.inputs) for at, slot in enumerate(slots[: len(fn.inputs)])}
        pairs = ((at, other) for at, other in named.items() if other is not None and at < other and named[other] == at)
        for at, other in pairs:
            nodes = slots[at].node, slots[other].node
            first, second = nodes
            if isinstance(first, cst.Name) and isinstance(second, cst.Name) and _computed(fn, (first, second)):
                yield Exchanged(returned, (at, other), (first, second))


def _computed(fn: FunctionClass, names: tuple[cst.Name, cst.Name]) -> bool:
    """Whether backward itself computes what is in two variables, each in expressions of its own."""
    backward = fn.backward
    if backward is None or any(param.name == each.value for each in names for param in backward.params):
        return False
    bound = [each for name in names for each in backward.assignments.get(name.value, [])]
    values = [each for each in bound if each.value != NONE]
    alone = all(each.value_node is not None and not isinstance(each.value, Parameter) for each in values)
    return alone and {each.name for each in values} == {each.value for each in names}


def _fits(fn: FunctionClass, returned: Returned, at: int) -> bool:
    """Whether a gradient is named after the input that it is returned for."""
    return exactly_named_input(returned.slots[at].node, fn.inputs) == at
