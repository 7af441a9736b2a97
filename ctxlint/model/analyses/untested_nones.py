"""What forward keeps for backward, that may be None, and that backward uses without a test."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.absent_inputs import (
    absent_default,
    absent_reason,
    guards_by_node,
    has_gradient_if_absent,
    may_be_absent,
)
from ctxlint.model.analyses.flags import flags_of, stored_flags
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import Assigned, ContextWrite
from ctxlint.model.interpreter.values import (
    NONE,
    Constant,
    ContextAttribute,
    SavedTensor,
    Tri,
    before_star,
    is_input,
    is_none,
)
from ctxlint.model.syntax import code_of, dotted
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import ContextEvent, Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class NoneUse:
    """A use of ``name``, which None does not support, in backward: ``how`` is ``.attribute``, ``[...]`` or an operator.

    It holds the input that ``entry`` is, for which forward accepts None for a ``reason``; or else it is None unless the
    inputs ``flags`` need a gradient, and the use is reached if only others do, as those that ``needing`` are; or unless
    ``entry``, a ``switch``, is set, which it is not for a ``reason``.
    """

    node: cst.BaseExpression
    name: str
    how: str
    error: str
    entry: Input | None = None
    reason: str = ""
    flags: frozenset[int] = frozenset()
    needing: frozenset[int] = frozenset()
    switch: bool = False


def untested_nones(fn: FunctionClass) -> Iterator[NoneUse]:
    """The first such use of each value that forward keeps."""
    backward = fn.judgeable_backward
    if backward is None or fn.escapes or not fn.count_judgeable:
        return
    for kept, event, node in _kept(fn, backward):
        value = kept_value(fn, kept)
        entry = fn.inputs[value.index] if is_input(value) and value.index < len(fn.inputs) else None
        reason, flags = "", frozenset[int]()
        if entry is not None:
            reason = "" if _is_about(event, value) else _reason(fn, entry)
        elif value is not None and NONE in value.options() and isinstance(node, cst.Name):
            given = _bound_later(fn, event, node.value)
            flags = frozenset.intersection(*map(flags_of, given)) if given else frozenset()
            switch = _switch_of(fn, given) if given and not flags else None
            entry, reason = switch or (None, "")
        own = frozenset([entry.index]) if is_input(value) and entry is not None else flags
        others = [each for each in fn.inputs if each.gradient is Tri.YES and each.index not in own]
        if (reason or flags) and others:
            for use, name, how, error in _uses(fn, backward, kept):
                needing = _needed_for(fn, backward, use)
                if needing is not None and needing.isdisjoint(own):
                    yield NoneUse(use, name, how, error, entry, reason, flags, needing, switch=not is_input(value))
                    break


def _reason(fn: FunctionClass, entry: Input) -> str:
    """Why forward accepts None for an input; empty if that is uncertain, or if the gradient for it is wrong anyway."""
    reason = absent_reason(fn, entry)
    if reason is not None and has_gradient_if_absent(fn, entry):
        return ""
    return reason or absent_default(fn, entry) or ("`forward` replaces it" if _is_replaced(fn, entry) else "")


def _is_replaced(fn: FunctionClass, entry: Input) -> bool:
    """Whether forward certainly binds the name of an input to something else if it is None, and keeps the input."""
    forward = fn.forward
    if forward is None or not may_be_absent(fn, entry):
        return False
    tests = (
        each.test
        for each in forward.nodes_of(cst.If)
        if any(each in forward.above(one) for one in forward.binders.get(entry.name, ()))
    )
    return any(code_of(test) == f"{entry.name} is None" for test in tests)


def _is_about(event: ContextEvent, value: Value | None) -> bool:
    """Whether a test of a value decides an event."""
    return any(guard.asks is not None and guard.asks.value == value for guard in event.guards)


def _kept(fn: FunctionClass, backward: Method) -> Iterator[tuple[Value, ContextEvent, cst.BaseExpression | None]]:
    """What backward reads of what forward keeps, with the event that keeps it, and what that is."""
    for save in fn.saves if len(fn.saves) == 1 else ():
        for at, slot in enumerate(before_star(save.arguments)):
            yield SavedTensor(at), save, slot.node
    written_again = {each.attribute for each in backward.facts.of(ContextWrite)}
    for name, writes in fn.writes_by_attribute.items():
        if len(writes) == 1 and name not in written_again:
            yield ContextAttribute(name), writes[0], writes[0].value_node


def _bound_later(fn: FunctionClass, event: ContextEvent, name: str) -> list[list[Guard]]:
    """The tests under each of which a local of forward gets a value, which is None before, until an event keeps it.

    Empty if it may be None for another reason.
    """
    forward = fn.forward
    if forward is None or any(param.name == name for param in forward.params):
        return []
    bindings = [each for each in forward.assignments.get(name, ()) if event.may_follow(each)]
    if len(bindings) != len(forward.binders.get(name, ())) or any(each.augmented for each in bindings):
        return []
    first = [each for each in bindings if each.value == NONE and event.implies(each) and not each.in_loop]
    given = [each for each in bindings if each.value is None or is_none(each.value) is not Tri.YES]
    if not first or any(each.value is None or is_none(each.value) is not Tri.NO for each in given):
        return []
    return [[guard for guard in each.guards if guard not in event.guards] for each in given]


def _switch_of(fn: FunctionClass, given: list[list[Guard]]) -> tuple[Input, str] | None:
    """The input that has to be true for each of some paths, and why it is not; None if it may always be.

    Not one for training: without it, backward may be meant not to run.
    """
    forward = fn.forward
    names = [{guard.test.value for guard in each if isinstance(guard.test, cst.Name) and guard.holds} for each in given]
    for entry in fn.inputs if forward is not None else ():
        rebound = forward is not None and entry.name in forward.binders
        if rebound or not all(entry.name in each for each in names) or _NOT_BACKWARD.search(entry.name):
            continue
        reason = _off(fn, entry)
        if reason is not None:
            return entry, reason
    return None


_NOT_BACKWARD = pattern(r"(?i:grad|train|infer|eval|save|backward|compil|script|export|requires|ctx|debug|test)")
"""Part of the name of a flag that decides whether backward is to run."""


def _off(fn: FunctionClass, entry: Input) -> str | None:
    """Why an input is false in some call: one in view passes that, or it is the default and a call omits it."""
    calls = [each for each in fn.calls if each.applies and not each.expects_error and not each.gradients_off]
    for call in calls:
        code = dict(call.literals).get(entry.index)
        if code in ("False", "None", "0"):
            return f"{call.place} passes `{code}`"
    default = entry.param.default
    omitted = not calls or any(call.positional <= entry.index and not call.starred for call in calls)
    if isinstance(default, Constant) and not default.value and omitted:
        return f"its default is `{default.value!r}`"
    return None


def _uses(fn: FunctionClass, backward: Method, kept: Value) -> Iterator[tuple[cst.BaseExpression, str, str, str]]:
    """The expressions of backward that raise if what it reads there is None, in order."""
    names = [
        each.name
        for each in backward.facts.of(Assigned)
        if each.value == kept and len(backward.binders.get(each.name, ())) == 1
    ]
    nodes: list[cst.BaseExpression] = [node for name in names for node in backward.named.get(name, ())]
    if isinstance(kept, ContextAttribute):
        nodes += backward.context_attributes.get(kept.name, ())
    params = {each.name for each in backward.params}
    for node in sorted(nodes, key=fn.start):
        use = _failing(backward, node) if not (isinstance(node, cst.Name) and node.value in params) else None
        if use is not None:
            yield use[0], code_of(node), *use[1:]
        if may_be_asserted(backward, node):
            return


def may_be_asserted(method: Method, node: cst.BaseExpression) -> bool:
    """Whether a mention of a value asserts something about it, or gives it to a function that may do so."""
    for inner, outer in pairwise((node, *method.above(node))):
        if isinstance(outer, (cst.Assert, cst.BaseSuite)):
            return isinstance(outer, cst.Assert)
        if isinstance(outer, cst.Expr):
            return isinstance(inner, cst.Call) and inner.func is not node
    return False


def _failing(backward: Method, node: cst.BaseExpression) -> tuple[cst.BaseExpression, str, str] | None:
    """The expression around a value that raises for None, what it does, and the exception; None if it does not."""
    above = backward.parents[node]
    if isinstance(above, cst.Attribute) and above.value is node and not hasattr(None, above.attr.value):
        return above, f".{above.attr.value}", "AttributeError"
    if isinstance(above, cst.Subscript) and above.value is node:
        return above, "[...]", "TypeError"
    if isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _ARITHMETIC):
        return above, code_of(above.operator).strip(), "TypeError"
    if isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Minus):
        return above, "-", "TypeError"
    call = backward.parents[above] if isinstance(above, cst.Arg) and above.keyword is None else None
    if isinstance(call, cst.Call) and call.args[0] is above and not above.star:
        called = dotted(call.func) or ""
        if called in _OF_A_TENSOR and "torch" not in backward.binders:
            return call, called, "TypeError"
    return None


_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.MatrixMultiply, cst.Power)
_OF_A_TENSOR = frozenset(f"torch.{each}_like" for each in ("zeros", "ones", "empty", "full", "rand", "randn"))


def _needed_for(fn: FunctionClass, backward: Method, use: cst.BaseExpression) -> frozenset[int] | None:
    """The inputs that need a gradient where backward certainly gets to an expression; None if other tests decide it."""
    if untested_nones not in fn.notes:  # for all uses
        fn.notes[untested_nones] = guards_by_node(backward), stored_flags(fn)
    known, stored = fn.notes[untested_nones]
    guards = _guards_of(backward, use, known)
    if guards is None:
        return None
    asked = [flags_of([guard], stored) for guard in guards]
    return frozenset[int]().union(*asked) if all(asked) else None


def _guards_of(
    backward: Method, node: cst.CSTNode, known: Mapping[cst.CSTNode, tuple[Guard, ...]]
) -> tuple[Guard, ...] | None:
    """The tests on the way to an expression; None if they are unknown, or part of it may not be evaluated."""
    inner = node
    for outer in (node, *backward.above(node)):
        if outer in known:
            return known[outer]
        if isinstance(outer, _APART) or (isinstance(outer, cst.IfExp) and inner is not outer.test):
            return None
        if isinstance(outer, cst.BooleanOperation) and inner is outer.right:
            return None
        if isinstance(outer, cst.BaseSuite):
            return None
        inner = outer
    return None


_APART = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp, cst.Try, cst.TryStar, cst.CompFor)
