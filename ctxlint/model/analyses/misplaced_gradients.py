"""Gradients that are returned for another input than the one that they are named after.

One is behind a ``None`` too many, some lack a ``None`` in front of them, or two have changed places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_names import exactly_named_input, has_name_of
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.tensor_containers import container_inputs_with_gradient
from ctxlint.model.interpreter.values import NONE, Parameter, Tri, is_input, is_none
from ctxlint.model.syntax import names_in
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.function import FunctionClass, Input, Returned
    from ctxlint.model.interpreter.method import Method


@record
class Displaced:
    """The gradient ``name`` at ``node``, which is returned for the input ``gets``; ``meant`` gets None.

    ``gets`` is None if it is returned behind the gradients of all inputs.
    """

    returned: Returned
    name: str
    node: cst.CSTNode
    meant: Input
    position: int
    gets: Input | None = None


def misplaced_gradients(fn: FunctionClass) -> Iterator[Displaced]:
    """The first such gradient of each return of backward that ends with as many surplus None."""
    if fn.variadic_inputs is not None:
        return
    for returned in judged_gradients(fn):
        if returned.count is None or returned.count <= len(fn.inputs) or container_inputs_with_gradient(fn):
            continue
        if all(is_none(slot.value) is Tri.YES for slot in returned.slots[len(fn.inputs) :]):
            found = list(_misplaced(fn, returned))
            if found and not any(_fits(fn, returned, at) for at in range(found[0].position, len(fn.inputs))):
                yield found[0]
        else:
            yield from _behind_all(fn, returned)


def _behind_all(fn: FunctionClass, returned: Returned) -> Iterator[Displaced]:
    """The ``x.grad`` of an input that is the only surplus gradient, and may be None, where ``x`` gets None."""
    count = len(fn.inputs)
    given = [at for at, slot in enumerate(returned.slots) if at >= count and is_none(slot.value) is not Tri.YES]
    node = returned.slots[given[0]].node if len(given) == 1 else None
    if not isinstance(node, cst.Attribute) or node.attr.value != "grad" or not isinstance(node.value, cst.Name):
        return
    if fn.backward is None or is_none(returned.slots[given[0]].value) is Tri.NO:  # it raises whenever it runs: CTX202
        return
    owner = kept_value(fn, fn.backward.value_of(node.value.value))
    if is_input(owner) and owner.index < count and is_none(returned.slots[owner.index].value) is Tri.YES:
        yield Displaced(returned, f"{node.value.value}.grad", node, fn.inputs[owner.index], given[0])


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
            yield Displaced(returned, node.value, node, fn.inputs[at], gets.index, gets)


@record
class Early:
    """Gradients that are returned one place too early, as a None in front of them is missing; there is one behind them.

    ``nodes`` are theirs; ``gets`` is the input without a gradient for which the first one is returned, and ``meant``
    the input of the last one.
    """

    returned: Returned
    nodes: tuple[cst.CSTNode, ...]
    gets: Input
    meant: Input

    @property
    def positions(self) -> range:
        """The places that they are returned at."""
        return range(self.gets.index, self.meant.index)


def early_gradients(fn: FunctionClass, returned: Returned) -> Early | None:
    """Those of a return with as many gradients as inputs: each has the name of the next input, if of any."""
    if fn.variadic_inputs is not None or returned.count != len(fn.inputs) or container_inputs_with_gradient(fn):
        return None
    slots, taken = returned.slots, [is_none(slot.value) for slot in returned.slots]
    first = next((each for each in fn.inputs if each.against_a_gradient and taken[each.index] is Tri.NO), None)
    behind = taken.index(Tri.YES, first.index) if first is not None and Tri.YES in taken[first.index :] else None
    if first is None or behind is None or fn.inputs[behind].against_a_gradient:
        return None
    nodes = tuple(slot.node for slot in slots[first.index : behind])
    named = [exactly_named_input(node, fn.inputs) for node in nodes]
    fitting = all(at in (None, place + 1) for place, at in enumerate(named, first.index))
    if not fitting or named[0] is None or None in nodes or any(slot.starred for slot in slots):
        return None
    return Early(returned, tuple(node for node in nodes if node is not None), first, fn.inputs[behind])


def is_for_another(fn: FunctionClass, returned: Returned, at: int) -> bool:
    """Whether a gradient has the name of another input, for which the return has none that fits."""
    other = exactly_named_input(returned.slots[at].node, fn.inputs)
    if other is None or other == at:
        return False
    return other >= len(returned.slots) or not _fits(fn, returned, other)


def returned_for_another(fn: FunctionClass, index: int) -> tuple[str, Input] | None:
    """The gradient that has the name of an input, and the other input for which backward returns it."""
    for returned in fn.gradients:
        for gets in fn.inputs[: len(returned.slots)]:
            node = returned.slots[gets.index].node
            if gets.index != index and isinstance(node, cst.Name) and exactly_named_input(node, fn.inputs) == index:
                return (node.value, gets) if is_for_another(fn, returned, gets.index) else None
    return None


@record
class Exchanged:
    """Two gradients, by their index, each of which is computed under the name of the input that the other is for."""

    returned: Returned
    indices: tuple[int, int]
    nodes: tuple[cst.Name, cst.Name]


def exchanged_gradients(fn: FunctionClass) -> Iterator[Exchanged]:
    """Such gradients in the returns of backward, one pair for each."""
    if fn.variadic_inputs is not None or len(fn.inputs) < 2 or fn.backward is None:
        return
    for returned in judged_gradients(fn):
        named = _inputs_by_name(fn, returned)
        pairs = ((at, other) for at, other in named.items() if at < other and named.get(other) == at)
        for at, other in pairs:
            first, second = returned.slots[at].node, returned.slots[other].node
            if isinstance(first, cst.Name) and isinstance(second, cst.Name):
                inputs = fn.inputs[other], fn.inputs[at]
                ordered = any(_inputs_by_name(fn, each).get(other) == other for each in fn.gradients)
                means = all(_means_the_input(fn, fn.backward, each) for each in inputs)
                if not ordered and means and _computed(fn.backward, ((first, inputs[0]), (second, inputs[1]))):
                    yield Exchanged(returned, (at, other), (first, second))


def _inputs_by_name(fn: FunctionClass, returned: Returned) -> dict[int, int]:
    """The inputs after which the gradients of a return are named, by the index of the gradient."""
    slots = returned.slots if returned.count is not None and returned.count >= len(fn.inputs) else ()
    named = {at: has_name_of(slot.node, fn.inputs) for at, slot in enumerate(slots[: len(fn.inputs)])}
    return {at: other for at, other in named.items() if other is not None}


def _means_the_input(fn: FunctionClass, backward: Method, entry: Input) -> bool:
    """Whether the name of an input means just that wherever the Function uses it."""
    if any(entry.name in method.binders for method in fn.earlier_methods):
        return False
    if entry.name not in backward.binders:
        return True
    kept = kept_value(fn, backward.value_of(entry.name))
    return is_input(kept) and kept.index == entry.index


def _computed(backward: Method, named: Sequence[tuple[cst.Name, Input]]) -> bool:
    """Whether backward itself computes what is in two variables, each in expressions of its own, with no flag.

    Where each is computed with the very input that it is named after, it may be named after that factor.
    """
    if any(param.name == name.value for name, _input in named for param in backward.params):
        return False
    after_factors = 0
    for name, entry in named:
        bound = [each for each in backward.assignments.get(name.value, []) if each.value != NONE]
        nodes = [each.value_node for each in bound if not isinstance(each.value, Parameter) and not each.guards]
        if not bound or len(nodes) < len(bound) or any(each is None or isinstance(each, cst.Name) for each in nodes):
            return False
        used = {word for node in nodes if node is not None for word in names_in(node)}
        after_factors += entry.name in used and used.isdisjoint(other.name for _n, other in named if other is not entry)
    return after_factors < len(named)


def _fits(fn: FunctionClass, returned: Returned, at: int) -> bool:
    """Whether a gradient is named after the input that it is returned for."""
    return exactly_named_input(returned.slots[at].node, fn.inputs) == at
