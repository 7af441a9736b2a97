"""Gradients that are memory which backward allocates, and nothing writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_values import reads_values
from ctxlint.model.interpreter.events import Assigned, Mutation, Question, UnwrittenResult
from ctxlint.model.interpreter.local_names import only_assigned
from ctxlint.model.interpreter.values import NONE, Fresh, Sequence, Tri, before_views
from ctxlint.model.syntax import children, compares_identity, dotted, is_name, last_name, parents_below
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Method, MethodFacts
    from ctxlint.model.interpreter.values import Slot, Value
    from ctxlint.model.syntax import Parents


def unwritten_gradients(fn: FunctionClass, backward: Method) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The gradients, by input, that are certainly such memory, unless None.

    Not where backward may write the gradient somewhere else, as to ``weight.main_grad``, and returns a placeholder, nor
    for an input that only orders calls, as forward does not read its values, or that is always None.
    """
    found = [each for returned in fn.gradients for each in _unwritten(backward, returned)]
    if found and not writes_elsewhere(backward) and not returns_placeholder(fn):
        excluded = [
            each.index
            for each in fn.inputs
            if fn.forward is None or not reads_values(fn.forward, each.param) or each.refused
        ]
        yield from (each for each in found if each[0] not in excluded)


def returns_placeholder(fn: FunctionClass) -> bool:
    """Whether forward returns memory that nothing writes to: a stand-in for a kernel, or a token that orders calls."""
    forward = fn.forward
    return forward is not None and any(any(_unwritten(forward, returned)) for returned in fn.outputs)


def writes_elsewhere(backward: Method) -> bool:
    """Whether backward mentions the ``.grad`` of a tensor, or writes to one that it has not computed."""
    named = any(each.attr.value in ("grad", "main_grad") for each in backward.nodes_of(cst.Attribute))
    targets = (each.target for each in backward.facts.of(Mutation) if each.target is not None)
    return named or any(not isinstance(before_views(option), Fresh) for each in targets for option in each.options())


def _unwritten(method: Method, returned: Returned) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The elements of a return that are such memory."""
    if not returned.known or not _is_usual(returned.event):
        return
    for index, slot in enumerate(returned.slots):
        if slot.starred:
            return
        made = (option.node for option in slot.value.options() if isinstance(option, Fresh))
        calls = (each for each in made if isinstance(method.parents.get(each), cst.Return))
        node = slot.node or next(calls, None)  # the call whose result is returned
        if isinstance(node, cst.BaseExpression) and _is_unwritten(method, slot, node):
            yield index, node


def _is_usual(event: Event) -> bool:
    """Whether only tests for None and for flags of inputs lead to an event: no test of a shape, or of a device."""
    asked = (each.asks.question if each.asks is not None else None for each in event.guards)
    return all(each in (Question.IS_NONE, Question.NEEDS_INPUT_GRAD, Question.REQUIRES_GRAD) for each in asked)


def _is_unwritten(method: Method, slot: Slot, node: cst.BaseExpression) -> bool:
    options = [option for option in slot.value.options() if option != NONE]
    made = [option for option in options if isinstance(option, Fresh) and _is_only_allocated(method, option)]
    if not made or len(made) < len(options) or not all(each.node in method.parents for each in made):
        return False
    if not isinstance(node, cst.Name):  # an element of a list may be written by way of that
        return node is made[0].node and isinstance(method.statement_around(node), cst.Return)
    bound = [each for each in method.facts.of(Assigned) if each.value is not None and _may_be(each.value, made)]
    written = [each for each in method.facts.of(Mutation) if each.target is not None and _may_be(each.target, made)]
    if written or not all(each.name == node.value and _is_usual(each) for each in bound):
        return False
    return all(is_harmless(method, use) for use in method.named.get(node.value, ()))


def _is_only_allocated(method: Method, made: Fresh) -> bool:
    """Whether a tensor is memory that the method, or a function that it calls, allocates and does not write to."""
    if allocates(made.node):
        return True
    calls = (each for each in method.facts.of(UnwrittenResult) if each.node is made.node and made.part in each.parts)
    return any(_is_returned_or_unpacked(method, each.node) for each in calls)


def _is_returned_or_unpacked(method: Method, call: cst.CSTNode) -> bool:
    """Whether a result is returned at once, or unpacked into names: else its elements may be written elsewhere."""
    above = method.parents[call]
    if not isinstance(above, cst.Assign) or len(above.targets) > 1:
        return isinstance(above, cst.Return)
    target = above.targets[0].target
    names = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return bool(names) and all(isinstance(each, cst.Element) and isinstance(each.value, cst.Name) for each in names)


def unwritten_parts(function: cst.FunctionDef, facts: MethodFacts) -> tuple[int, ...]:
    """The elements of the tuple that a function returns that are certainly such memory, unless None."""
    if len(facts.returns) != 1 or not _is_usual(facts.returns[0]) or facts.falls_through is not Tri.NO:
        return ()
    value = facts.returns[0].value
    slots = value.slots if isinstance(value, Sequence) and value.exact else ()
    parts = [part for part, slot in enumerate(slots) if _may_only_be_allocated(slot)]
    if parts:  # a write is another use of the name: this only saves time
        written = {before_views(one) for each in facts.of(Mutation) if each.target for one in each.target.options()}
        parts = [part for part in parts if written.isdisjoint(slots[part].value.options())]
    parents = parents_below(function) if parts else {}
    return tuple(part for part in parts if _is_only_returned(function, parents, slots[part].node))


def _may_only_be_allocated(slot: Slot) -> bool:
    options = [option for option in slot.value.options() if option != NONE]
    made = [option for option in options if isinstance(option, Fresh) and allocates(option.node)]
    return isinstance(slot.node, cst.Name) and 0 < len(options) == len(made)


def _is_only_returned(function: cst.FunctionDef, parents: Parents, node: cst.BaseExpression | None) -> bool:
    """Whether a name is bound once, to what is allocated, and otherwise only returned."""
    name = node.value if isinstance(node, cst.Name) else ""
    value = only_assigned(function, name)
    branches = (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
    if not any(each is not None and allocates(each) for each in branches):
        return False
    uses = [(use, above) for use, above in parents.items() if is_name(use, name)]
    once = sum(isinstance(above, cst.Element) for _use, above in uses) == 1
    return once and all(_is_returned_or_bound(parents, use, above) for use, above in uses)


def _is_returned_or_bound(parents: Parents, use: cst.CSTNode, above: cst.CSTNode) -> bool:
    if isinstance(above, cst.Attribute):
        return above.value is not use
    if isinstance(above, cst.Element):
        return isinstance(parents.get(parents[above]), cst.Return)
    return isinstance(above, cst.AssignTarget)


def _may_be(value: Value, made: list[Fresh]) -> bool:
    return any(before_views(option) in made for option in value.options())


def allocates(node: cst.CSTNode) -> bool:
    """Whether a node is ``torch.empty_like(x)`` and the like, not with a size written as 0 or on the meta device."""
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    return (
        path is not None
        and path.rpartition(".")[2] in operations.ALLOCATIONS
        and isinstance(node, cst.Call)
        and _WITHOUT_VALUES.isdisjoint(word for each in node.args for word in _words_of_size(each))
    )


def _words_of_size(node: cst.CSTNode) -> Iterator[str]:
    """The words in an argument, but not those that choose a size of another tensor: ``x.shape[0]``, ``x.size(0)``."""
    if isinstance(node, cst.Subscript) or (isinstance(node, cst.Call) and last_name(node.func) == "size"):
        return
    value = getattr(node, "value", None)
    if isinstance(value, str):
        yield value
    for child in children(node):
        yield from _words_of_size(child)


_WITHOUT_VALUES = frozenset(["0", '"meta"', "'meta'"])


def is_harmless(method: Method, use: cst.CSTNode) -> bool:
    """Whether a name is bound there, also as a parameter, or returned, or not asked for its values."""
    above = method.parents[use]
    if isinstance(above, (cst.Element, cst.Tuple, cst.AssignTarget, cst.Return, cst.Del)):
        around = (above, *method.above(above))
        if any(isinstance(each, cst.CompFor) for each in around):
            return False
        return isinstance(method.statement_around(use), (cst.Return, cst.Del)) or any(
            isinstance(each, cst.AssignTarget) for each in around
        )
    if isinstance(above, cst.Comparison):
        return compares_identity(above)
    asked = isinstance(above, cst.Attribute) and above.attr.value in operations.SCALAR_ATTRIBUTES
    return asked or isinstance(above, cst.Param)
