"""Outputs that backward differentiates: by then, their graph is the Function itself."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.outputs import may_be_non_differentiable
from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.interpreter.events import Differentiated, GenericCall
from ctxlint.model.interpreter.values import (
    Constant,
    Fresh,
    Parameter,
    Sequence,
    Single,
    View,
    before_views,
    detaches,
)
from ctxlint.records import record

if TYPE_CHECKING:
    import libcst as cst

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


class Fate(Enum):
    """What becomes of it, as a clause."""

    RECURSION = "`{}` calls itself without end"
    """What it is differentiated with respect to is behind the Function, or everything is."""
    ERROR = "it raises RuntimeError"
    NONE = "it returns `None`"
    UNKNOWN = "it raises RuntimeError, or `{}` calls itself without end"


@record
class OwnOutput:
    """The expressions that are returned, their value in forward, and the fate of the call that differentiates it."""

    returned: tuple[cst.BaseExpression | None, ...]
    value: Value
    fate: Fate


def own_output(fn: FunctionClass, method: Method, each: Differentiated) -> OwnOutput | None:
    """The output that a call in backward certainly differentiates: the very tensor that forward returns on every path.

    ``apply`` replaces its graph by a node of the Function, also if forward has built one under ``torch.enable_grad()``.
    """
    if method is not fn.backward or method.name in fn.called_directly or not fn.outputs or backward_never_runs(fn):
        return None
    stored = kept_value(fn, each.value)
    if stored is None or not all(map(_is_computed, stored.options())) or may_be_non_differentiable(fn, stored):
        return None
    if not all(_returns(returned, stored) for returned in fn.outputs):
        return None
    nodes = tuple(_written(returned, stored) for returned in fn.outputs)
    return OwnOutput(nodes, stored, _fate(fn, method, each))


def differentiates_output(fn: FunctionClass, method: Method, call: cst.CSTNode) -> bool:
    """Whether a call in backward certainly differentiates an output."""
    return any(each.node is call and own_output(fn, method, each) for each in method.facts.of(Differentiated))


def _is_computed(value: Value) -> bool:
    """Whether a tensor is certainly one that forward computes, or a view of one: no input that it returns."""
    return isinstance(before_views(value), (Fresh, Single))


def _returns(returned: Returned, stored: Value) -> bool:
    """Whether a return has the stored tensor as an output."""
    return returned.known and any(_is_that(slot, stored) for slot in returned.slots)


def _is_that(slot: Slot, stored: Value) -> bool:
    return not slot.starred and {*slot.value.options()} <= {*stored.options()}


def _written(returned: Returned, stored: Value) -> cst.BaseExpression | None:
    """The expression of a return that is the stored tensor."""
    found = next(slot.node for slot in returned.slots if _is_that(slot, stored))
    whole = getattr(returned.event.node, "value", None)
    return found if found is not None or len(returned.slots) > 1 else whole


def _fate(fn: FunctionClass, method: Method, each: Differentiated) -> Fate:
    call = next((call for call in method.facts.of(GenericCall) if call.node is each.node), None)
    keywords = dict(call.keywords) if call is not None else {}
    by = keywords.get("inputs")
    if not each.how.endswith("grad"):
        return Fate.RECURSION if by is None else Fate.UNKNOWN
    if by is None and call is not None and len(call.arguments) > 1:
        by = call.arguments[1]
    slots = by.value.slots if by is not None and isinstance(by.value, Sequence) else (by,)
    if any(slot is not None and isinstance(kept_value(fn, slot.value), Parameter) for slot in slots):
        return Fate.RECURSION
    if not all(slot is not None and not slot.starred and _is_a_leaf(fn, slot.value) for slot in slots):
        return Fate.UNKNOWN
    allowed = keywords["allow_unused"].value if "allow_unused" in keywords else Constant(False, "bool")
    if not isinstance(allowed, Constant) or "materialize_grads" in keywords:
        return Fate.UNKNOWN
    return Fate.NONE if allowed.value else Fate.ERROR


def _is_a_leaf(fn: FunctionClass, value: Value) -> bool:
    """Whether a tensor is certainly not behind the Function: a copy, or detached, in forward or in backward."""
    found = kept_value(fn, value) or value
    return all(
        (isinstance(option, View) and detaches(option)) or isinstance(before_views(option), Fresh)
        for option in found.options()
    )
