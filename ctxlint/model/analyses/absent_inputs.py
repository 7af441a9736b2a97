"""Inputs that may be None."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.inputs import none_from_calls
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.outputs import operands, output_values
from ctxlint.model.analyses.reachability import always_has_gradient, judged_gradients
from ctxlint.model.function import ArgumentKind, Trust
from ctxlint.model.interpreter.events import Assigned, MaybeUnbound, Question
from ctxlint.model.interpreter.values import NONE, Parameter, before_views, is_input
from ctxlint.model.syntax import compares_identity, names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.model.function import ApplyCall, FunctionClass, Input, Returned
    from ctxlint.model.interpreter.events import ContextWrite, Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def absent_reason(fn: FunctionClass, entry: Input) -> str | None:
    """Why forward certainly accepts None for an input: a call passes it, or it is the default and forward tests for it.

    The result is None if that is not certain: many inputs with such a default are always passed.
    """
    wanted = [call for call in fn.calls if not call.gradients_off and not call.detached]
    passed = next(iter(none_from_calls(entry.index, wanted)), None)
    if passed is not None:
        return passed.reason
    default = next((each.reason for each in entry.may_be_none if each.node is entry.param.node), None)
    of_caller = default_of_caller(entry.index, wanted)
    tests = [each.node for each in entry.may_be_none if each.trust is Trust.HINT and each.node is not None]
    neither = default is None and of_caller is None
    if neither or not tests or any(_may_refuse(fn, node) for node in tests) or _needs(fn, entry):
        return None
    applied = [call for call in fn.calls if call.applies and not call.expects_error]
    passes = not applied or any(_may_pass_none(call, entry.index) for call in applied)
    return (default if passes else None) or of_caller


def default_of_caller(index: int, calls: Iterable[ApplyCall]) -> str | None:
    """That a function around a call has None as default for what it passes on here, in words; None if none has.

    Not if no gradient may be wanted there.
    """
    for each in calls:
        unwanted = each.expects_error or each.gradients_off or each.detached
        if each.applies and not unwanted and (index, "None") in each.defaults:
            return f"{each.place} passes `{each.names[index]}`, which is `None` by default"
    return None


def absent_default(fn: FunctionClass, entry: Input) -> str | None:
    """Why forward is meant to accept None for an input: it is the default of an optional tensor, by its annotation.

    The result is None if forward refuses it, or if all calls in view pass something else.
    """
    annotation = entry.param.annotation or ""
    optional = "Optional" in annotation or "None" in annotation
    if entry.param.default != NONE or not optional or _needs(fn, entry) or _is_asserted(fn, entry):
        return None
    applied = [call for call in fn.calls if call.applies and not call.expects_error]
    passes = not applied or any(_may_pass_none(call, entry.index) for call in applied)
    return "its default is `None`" if passes else None


def may_be_absent(fn: FunctionClass, entry: Input) -> bool:
    """Whether nothing in view keeps None from an input that code asks for it: no test that ends forward, no call."""
    if _needs(fn, entry) or _is_asserted(fn, entry):
        return False
    for method in fn.earlier_methods:
        for node in (*method.nodes_of(cst.Return), *method.nodes_of(cst.Raise)):
            tests = (each.test for each in method.above(node) if isinstance(each, cst.If))
            if any(entry.name in names_in(test) for test in tests):
                return False
    applied = [call for call in fn.calls if call.applies and not call.expects_error]
    leaves = (each for each in applied if entry.index not in (*each.leaves, *each.trained))
    return not applied or any(_may_pass_none(call, entry.index) for call in leaves)


def _is_asserted(fn: FunctionClass, entry: Input) -> bool:
    """Whether a test that raises mentions an input."""
    return any(entry.name in names_in(test) for method in fn.earlier_methods for test in method.raising_tests)


def _may_pass_none(call: ApplyCall, index: int) -> bool:
    """Whether a call omits an input, or may pass None for it: no test or assignment around it seems to prevent that."""
    given = call.arguments[index : index + 1]
    return not given or (index not in call.settled and given[0] is not ArgumentKind.TENSOR)


def computes_with(fn: FunctionClass, entry: Input) -> bool:
    """Whether backward uses an input that forward keeps for more than a test for None and a ``return``.

    Or what forward keeps of it: ``ctx.shape = bias.shape if bias is not None else None``.
    """
    backward = fn.backward
    if backward is None:
        return False
    of_it = [each.attribute for each in fn.context_writes if _is_none_without(each, entry)]
    uses = [use for name in of_it for use in backward.context_attributes.get(name, ())]
    return any(_computes(backward, use) for use in (*_uses(fn, backward, entry), *uses))


def _is_none_without(write: ContextWrite, entry: Input) -> bool:
    """Whether a conditional expression about an input decides if forward keeps None in an attribute."""
    node, value = write.value_node, write.value
    return (
        isinstance(node, cst.IfExp)
        and value is not None
        and NONE in value.options()
        and entry.name in names_in(node.test)
    )


def reads_attribute(fn: FunctionClass, entry: Input, node: cst.CSTNode | None) -> bool:
    """Whether an expression of backward reads an attribute of an input, which raises if that is None."""
    backward = fn.backward
    if backward is None or node is None:
        return False
    read = ((use, backward.parents[use]) for use in _uses(fn, backward, entry) if node in backward.above(use))
    return any(isinstance(above, cst.Attribute) and above.value is use for use, above in read)


def _uses(fn: FunctionClass, backward: Method, entry: Input) -> list[cst.CSTNode]:
    """Where backward mentions an input that forward keeps."""
    bound = ((each.name, kept_value(fn, each.value)) for each in backward.facts.of(Assigned))
    names = {name for name, value in bound if _is_input_or_none(value, entry)}
    kept = {write.attribute for write in fn.context_writes if _is_input_or_none(write.value, entry)}
    uses: list[cst.CSTNode] = [node for name in names for node in backward.named.get(name, ())]
    return uses + [node for name in kept for node in backward.context_attributes.get(name, ())]


def _is_input_or_none(value: Value | None, entry: Input) -> bool:
    """Whether a value is an input, or a view or copy of it unless that is None."""
    options = [before_views(each) for each in value.options() if each != NONE] if value is not None else []
    return bool(options) and all(isinstance(each, Parameter) and each.index == entry.index for each in options)


def _computes(backward: Method, use: cst.CSTNode) -> bool:
    """Whether an expression around a value computes with it, or passes it on."""
    above = backward.parents[use]
    ignored = (cst.AssignTarget, cst.Element, cst.Del, cst.Assign, cst.Return, cst.If, cst.IfExp)
    return not compares_identity(above) and not isinstance(above, ignored)


def _needs(fn: FunctionClass, entry: Input) -> bool:
    """Whether forward raises if an input is None, as it uses that under no test of it: ``s[0]``."""
    forward = fn.forward
    if forward is None or entry.name in forward.binders:
        return False
    names = forward.named.get(entry.name, ())
    uses = [forward.parents[name] for name in names if name in operands(forward.parents[name])]
    guards = guards_by_node(forward) if uses else {}
    return any(not _is_tested(forward, node, entry, guards) for node in uses)


def guards_by_node(method: Method) -> dict[cst.CSTNode, tuple[Guard, ...]]:
    """The tests on the way to what the walk recorded, and to assignments as a whole."""
    statements = {each.statement: each.guards for each in method.facts.of(Assigned) if each.statement is not None}
    return statements | {each.node: each.guards for each in method.facts.events}


def _is_tested(
    method: Method, node: cst.CSTNode, entry: Input, guards: Mapping[cst.CSTNode, tuple[Guard, ...]]
) -> bool:
    """Whether a test of an input may be on the way to a node, or around it: it need not be the one that decides."""
    around = list(takewhile(lambda each: each is not method.node, method.above(node)))
    if any(isinstance(each, (cst.BooleanOperation, cst.Try, cst.FunctionDef, cst.Lambda)) for each in around):
        return True
    for within, each in pairwise((node, *around)):
        if within in guards:
            return any(_is_about(guard, entry) for guard in guards[within])
        if isinstance(each, (cst.If, cst.IfExp, cst.While)) and within is not each.test:
            if entry.name in names_in(each.test):
                return True
    return False


def _is_about(guard: Guard, entry: Input) -> bool:
    """Whether a test mentions an input, or what was asked of it before: ``given = x is not None``."""
    value = guard.asks.value if guard.asks is not None else None
    if is_input(value) and value.index == entry.index:
        return True
    return guard.test is not None and entry.name in names_in(guard.test)


def has_gradient_if_absent(fn: FunctionClass, entry: Input) -> bool:
    """Whether backward certainly returns a gradient for an input that may be None, also if it is."""
    if fn.backward is None or fn.backward.variadic is not None or not always_has_gradient(fn, entry.index):
        return False
    if any(call.guards for call in fn.context_calls("mark_non_differentiable")) or _refuses(fn.backward):
        return False
    values = (returned.slots[entry.index].value for returned in judged_gradients(fn))
    return not any(_is_gradient_of_absent(fn, before_views(value)) for value in values)


def unbound_gradient(fn: FunctionClass, returned: Returned, index: int) -> str | None:
    """The local name that backward returns as the gradient of an input, if it is not bound on every path."""
    node = returned.slots[index].node
    unbound = fn.backward.facts.of(MaybeUnbound) if fn.backward is not None else ()
    return node.value if isinstance(node, cst.Name) and any(each.node is node for each in unbound) else None


def bound_only_if_given(fn: FunctionClass, name: str, entry: Input) -> bool:
    """Whether backward binds a local name only where it finds that an input is not None."""
    bindings = fn.backward.assignments.get(name, []) if fn.backward is not None else []
    return bool(bindings) and all(any(_finds_it(fn, guard, entry) for guard in each.guards) for each in bindings)


def _finds_it(fn: FunctionClass, guard: Guard, entry: Input) -> bool:
    asks = guard.asks
    if asks is None or asks.question is not Question.IS_NONE or asks.answer:
        return False
    stored = kept_value(fn, asks.value)
    return is_input(stored) and stored.index == entry.index


def _is_gradient_of_absent(fn: FunctionClass, value: Value) -> bool:
    """Whether a value is the gradient of an output that may be None, too: torch passes None for it then."""
    if not isinstance(value, Parameter) or value.role != "gradient":
        return False
    outputs = output_values(fn, value.index)
    return outputs is None or any(NONE in each.options() for each in outputs)


def _refuses(backward: Method) -> bool:
    """Whether backward asserts anything, or raises if anything, that is not about the gradients that it gets."""
    tests = [each.test for each in backward.nodes_of(cst.Assert)]
    for node in backward.nodes_of(cst.Raise):
        around = [each for each in backward.above(node) if isinstance(each, cst.If)]
        if not around:
            return True
        tests += [each.test for each in around]
    gradients = {each.name for each in backward.positional}
    return any(names_in(test).isdisjoint(gradients) for test in tests)


def _may_refuse(fn: FunctionClass, test: cst.CSTNode) -> bool:
    """Whether forward asserts what is tested, or raises depending on it; also of a test that is not in forward."""
    home = next((each for each in fn.earlier_methods if test in each.parents), None)
    if home is None:
        return True
    choices = [each for each in home.above(test) if isinstance(each, (cst.Assert, cst.If))]
    raising = {around for node in home.nodes_of(cst.Raise) for around in home.above(node)}
    return any(isinstance(each, cst.Assert) or each in raising for each in choices)
