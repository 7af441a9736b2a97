"""Does autograd ever run backward, and does it ever take this path through it?

It runs backward only if it records the call, some input needs a gradient and some output can have one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import outcome
from ctxlint.model.analyses.integral_inputs import holds_integers
from ctxlint.model.analyses.legacy import runs_own_forward
from ctxlint.model.analyses.saved_state import saved_for
from ctxlint.model.analyses.tensor_containers import is_tensor_container
from ctxlint.model.interpreter.events import ContextWrite, Escape, Question
from ctxlint.model.interpreter.values import (
    Fresh,
    Kind,
    NeedsInputGrad,
    Parameter,
    SavedTensor,
    Single,
    Tri,
    is_container,
    is_gradient,
    is_none,
    is_tensor,
    kind_of,
)
from ctxlint.model.syntax import dotted, is_name, literal_text
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass, Input, Method, MethodFacts, Returned
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.values import Value


def judged_gradients(fn: FunctionClass) -> tuple[Returned, ...]:
    """What backward returns, as far as rules may check it: on paths that autograd takes, as gradients of forward."""
    if not fn.count_judgeable or fn.forward is None or backward_never_runs(fn):
        return ()
    taken = tuple(returned for returned in fn.gradients if not never_taken(fn, returned.event.guards))
    counts = _counts_of_inputs(fn) if any(each.event.guards for each in taken) else frozenset()
    return tuple(each for each in taken if not any(counts.intersection(guard.words) for guard in each.event.guards))


def _counts_of_inputs(fn: FunctionClass) -> frozenset[str]:
    """The attributes of ctx that hold how many inputs a call has, as in ``ctx.n = len(inputs)``.

    A path that tests one returns as many gradients as it should.
    """
    setup, forward = fn.methods.get("setup_context"), fn.forward
    names = {setup.positional[0].name} if setup is not None and setup.positional else set()
    if forward is not None and forward.variadic is not None:
        names.add(forward.variadic.name)
    written = ((each.attribute, each.value_node) for each in fn.context_writes)
    calls = ((name, node) for name, node in written if isinstance(node, cst.Call) and len(node.args) == 1)
    return frozenset(name for name, call in calls if dotted(call.func) == "len" and dotted(call.args[0].value) in names)


def always_has_gradient(fn: FunctionClass, index: int) -> bool:
    """Whether backward returns a gradient for an input on every path."""
    returns = judged_gradients(fn)
    return bool(returns) and all(_has_gradient(each, index) for each in returns)


def _has_gradient(returned: Returned, index: int) -> bool:
    """Whether a return certainly has a gradient at a position."""
    slots = returned.slots[: index + 1]
    known = returned.known and len(slots) > index and not any(slot.starred for slot in slots)
    return known and is_none(slots[index].value) is Tri.NO


def methods_that_run(fn: FunctionClass) -> tuple[Method, ...]:
    """The methods that receive a ctx, except those that autograd never runs."""
    return fn.context_methods if backward_never_runs(fn) else (*fn.context_methods, *fn.reading_methods)


def backward_never_runs(fn: FunctionClass) -> bool:
    """Whether autograd certainly never calls backward: no output can have a gradient, or no input can need one.

    Or all calls in view are under ``torch.no_grad()``, or of a method that calls ``forward`` itself.
    """
    if backward_never_runs not in fn.notes:  # cached because most rules need it
        fn.notes[backward_never_runs] = (
            _no_output_has_a_gradient(fn)
            or _no_input_needs_a_gradient(fn)
            or _applied_without_gradients(fn)
            or _is_never_applied(fn)
        )
    return bool(fn.notes[backward_never_runs])


def _applied_without_gradients(fn: FunctionClass) -> bool:
    applied = [call for call in fn.calls if call.applies]
    return bool(applied) and all(call.under_no_grad for call in applied)


def _is_never_applied(fn: FunctionClass) -> bool:
    """Whether only instances are used, which call ``forward`` past autograd."""
    used_by_hand = bool(fn.calls) and not fn.applied and not any(call.applies for call in fn.calls)
    return used_by_hand and not fn.has_subclass and runs_own_forward(fn) is not None


def _no_input_needs_a_gradient(fn: FunctionClass) -> bool:
    """Whether all inputs are certainly not tensors, tensors of integers, or containers: autograd sees none in those."""
    if fn.variadic_inputs is not None or not fn.inputs or not fn.count_judgeable:
        return False
    return all(
        each.against_a_gradient
        or (each.gradient is not Tri.YES and holds_integers(fn, each, always=True))
        or is_tensor_container(each.param.annotation)
        for each in fn.inputs
    )


def _no_output_has_a_gradient(fn: FunctionClass) -> bool:
    """Whether all outputs are integers, marked as non-differentiable, or not tensors at all, or there is none.

    A mark counts even if it is conditional. A container does not count: its contents are meant to have a gradient, and
    have one under ``torch.compile``.
    """
    if not fn.outputs:
        return fn.forward is not None and fn.count_judgeable and _returns_nothing(fn.forward)
    return all(returns_no_gradient(fn, returned) for returned in fn.outputs)


def returns_no_gradient(fn: FunctionClass, returned: Returned) -> bool:
    """Whether no output of a return of forward has a gradient."""
    calls = fn.context_calls("mark_non_differentiable")
    marked = tuple(argument.value for call in calls for argument in call.arguments if not argument.starred)
    known = returned.exact and all(_without_gradient(fn, slot.value, marked) for slot in returned.slots)
    return known or returned.value in marked


def _returns_nothing(forward: Method) -> bool:
    return forward.facts.modelled and forward.facts.falls_through is Tri.YES and not forward.raises_only


def _without_gradient(fn: FunctionClass, output: Value, marked: tuple[Value, ...]) -> bool:
    if output in marked or (is_tensor(output) is Tri.NO and is_container(output) is Tri.NO):
        return True
    return all(_holds_no_floats(fn, each) for each in output.options())


def _holds_no_floats(fn: FunctionClass, value: Value) -> bool:
    """Whether a value certainly is a tensor of integers or bools: ``x.argmax(-1)`` and ``x | y`` of tensors."""
    if is_tensor(value) is Tri.YES and kind_of(value) is Kind.INTEGRAL:
        return True
    node = value.node if isinstance(value, (Fresh, Single)) else None
    if isinstance(node, cst.BinaryOperation):
        bitwise = isinstance(node.operator, (cst.BitAnd, cst.BitOr, cst.BitXor))
        return bitwise and (_is_computed(fn, node.left) or _is_computed(fn, node.right))
    func = node.func if isinstance(value, Single) and isinstance(node, cst.Call) else None
    integral = isinstance(func, cst.Attribute) and func.attr.value in operations.INTEGRAL_METHODS
    return integral and isinstance(func, cst.Attribute) and _is_computed(fn, func.value)


def _is_computed(fn: FunctionClass, node: cst.BaseExpression) -> bool:
    """Whether an expression of forward is an input that is a tensor, or computed from one; or compares something."""
    if isinstance(node, cst.Name):
        bound = fn.forward.assignments.get(node.value, ()) if fn.forward is not None else ()
        if bound:
            return all(each.value is not None and is_tensor(each.value) is Tri.YES for each in bound)
        return any(each.name == node.value and _is_differentiated(fn, each) for each in fn.inputs)
    if isinstance(node, cst.BinaryOperation):
        return _is_computed(fn, node.left) or _is_computed(fn, node.right)
    if isinstance(node, cst.UnaryOperation):
        return _is_computed(fn, node.expression)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return is_name(node.func.value, "torch") or _is_computed(fn, node.func.value)
    if isinstance(node, cst.Subscript):
        return _is_computed(fn, node.value)
    return isinstance(node, cst.Comparison)


def _is_differentiated(fn: FunctionClass, entry: Input) -> bool:
    """Whether an input is a tensor: the only one, or backward returns something in its place, however many."""
    if entry.is_tensor is not Tri.UNKNOWN:
        return entry.is_tensor is Tri.YES
    slots = (slot for each in fn.gradients for slot in each.slots[entry.index : entry.index + 1])
    return len(fn.inputs) == 1 or any(is_none(each.value) is not Tri.YES for each in slots)


def without_untaken_arms(fn: FunctionClass) -> FunctionClass:
    """The Function without the code of backward that never runs.

    It requires the gradient of a tensor to be None, ctx to have an attribute that only the class has, or what forward
    keeps on ctx to be what it never is.
    """
    if fn.has_subclass or not fn.called_directly.isdisjoint(_RUN_BY_AUTOGRAD):
        return fn
    methods = {name: fn.methods[name] for name in _RUN_BY_AUTOGRAD if name in fn.methods}
    changed = {name: replace(each, facts=_taken(fn, each)) for name, each in methods.items()}
    if all(each.facts is methods[name].facts for name, each in changed.items()):
        return fn
    taken = {id(event) for each in changed.values() for event in each.returns}
    gradients = tuple(each for each in fn.gradients if id(each.event) in taken)
    return replace(fn, methods={**fn.methods, **changed}, gradients=gradients)


_RUN_BY_AUTOGRAD = ("backward", "vjp")


def _taken(fn: FunctionClass, method: Method) -> MethodFacts:
    """The facts of a walk, without those on paths that autograd never takes."""
    facts = method.facts
    guards = {id(event.guards): event.guards for event in facts.events}  # most events share them
    tested: set[Guard] = set().union(*guards.values(), *facts.fall_paths)
    untaken = {
        each
        for each in tested
        if _needs_undefined_gradient(fn, each)
        or _needs_class_attribute(fn, method, each)
        or _contradicts_forward(fn, method, each)
    }
    if not untaken:
        return facts
    paths = tuple(path for path in facts.fall_paths if untaken.isdisjoint(path))
    return replace(
        facts,
        events=tuple(event for event in facts.events if untaken.isdisjoint(event.guards)),
        falls_through=facts.falls_through if paths else Tri.NO,
        fall_guards=facts.fall_guards if paths else (),
        fall_paths=paths,
        untaken=frozenset(untaken),
    )


def _needs_class_attribute(fn: FunctionClass, method: Method, guard: Guard) -> bool:
    """Whether a test holds only if ctx has an attribute of the class: ``if getattr(ctx, "DEBUG", False):``."""
    return not fn.known_in_part and _asks_for_class_attribute(fn, method, guard) and not any(_escapes(fn, method))


def _escapes(fn: FunctionClass, reader: Method) -> Iterator[Escape]:
    """Where ctx is passed to unknown code, except under such a test."""
    for method in (*fn.context_methods, reader):
        for each in method.facts.of(Escape):
            if not any(_asks_for_class_attribute(fn, method, guard) for guard in each.guards):
                yield each


def _asks_for_class_attribute(fn: FunctionClass, method: Method, guard: Guard) -> bool:
    """Like ``_needs_class_attribute``, if ctx does not escape."""
    name = _attribute_asked_for(method, method.behind_name(guard.test if guard.holds else None))
    written = {each.attribute for each in method.facts.of(ContextWrite)} | fn.writes_by_attribute.keys()
    return name in fn.class_attributes and name not in written


def _attribute_asked_for(method: Method, node: cst.BaseExpression | None) -> str | None:
    """The attribute in ``hasattr(ctx, "name")``, or in ``getattr(ctx, "name", False)``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or any(each.keyword for each in node.args):
        return None
    owner, name, *default = (each.value for each in node.args) if len(node.args) > 1 else (None, None)
    takes_default = {"hasattr": 0, "getattr": 1}.get(node.func.value)
    falsy = all(isinstance(each, (cst.Name, cst.Integer)) and each.value in _FALSY for each in default)
    if len(default) != takes_default or not falsy or not isinstance(owner, cst.Name) or method.ctx is None:
        return None
    text = literal_text(name) if owner.value == method.ctx.name else None
    return text if isinstance(text, str) else None


_FALSY = ("False", "None", "0")


def _needs_undefined_gradient(fn: FunctionClass, guard: Guard) -> bool:
    """Whether a test has this outcome only if the gradient of a tensor is None."""
    asked = guard.one_of or ((guard.asks,) if guard.asks is not None else ())
    return bool(asked) and all(_undefined_gradient(fn, (replace(guard, asks=each),)) for each in asked)


def never_taken(fn: FunctionClass, path: Iterable[Guard]) -> bool:
    """Whether autograd certainly never takes a path through backward with this path condition."""
    tests = tuple(path)
    return _excluded(fn, tests) or any(
        guard.one_of and all(_excluded(fn, (*tests, replace(guard, asks=each))) for each in guard.one_of)
        for guard in tests
    )


def _excluded(fn: FunctionClass, tests: tuple[Guard, ...]) -> bool:
    """Whether a single guard, or two contradictory ones, make a path infeasible."""
    return (
        contradicts_itself(tests)
        or _nothing_needed(fn, tests)
        or _undefined_gradient(fn, tests)
        or _absent_tensor(fn, tests)
        or any(_contradicts_forward(fn, fn.backward, each) for each in tests)
    )


def _contradicts_forward(fn: FunctionClass, method: Method | None, guard: Guard) -> bool:
    """Whether what forward keeps on ctx certainly decides a test the other way."""
    return method is not None and guard.test is not None and outcome(fn, method, guard.test) is (not guard.holds)


def absent_gradients(path: Iterable[Guard]) -> frozenset[int]:
    """The gradients of outputs (by position) that are None under this path condition."""
    asked = (guard.asks for guard in path if guard.asks is not None and guard.asks.question is Question.IS_NONE)
    found = (_none_in(asks.value) for asks in asked if asks.answer)
    return frozenset(value.index for value in found if is_gradient(value))


def _none_in(value: Value) -> Value | None:
    """The only one of several possible values that can be None; a name may have been rebound to a tensor since."""
    options = [each for each in value.options() if isinstance(each, Parameter) or is_none(each) is not Tri.NO]
    return options[0] if len(options) == 1 else None


def contradicts_itself(path: tuple[Guard, ...]) -> bool:
    """The same test, by its text, is both true and false. Uncertain: what it tests may have changed in between."""
    refused = [guard for guard in path if not guard.holds and guard.test is not None]
    alike = ((one, other) for one in refused for other in path if other.holds and one.words == other.words)
    return any(one.text == other.text for one, other in alike)


def _nothing_needed(fn: FunctionClass, path: tuple[Guard, ...]) -> bool:
    """A guard implies that no input needs a gradient, or that one needs it which is certainly not a tensor."""
    refused: set[int] = set()
    for guard in path:
        asks = guard.asks
        if asks is not None and asks.question is Question.REQUIRES_GRAD and isinstance(asks.value, Parameter):
            refused.update((asks.value.index,) if asks.value.role == "input" and not asks.answer else ())
        if asks is None or asks.question is not Question.NEEDS_INPUT_GRAD or not isinstance(asks.value, NeedsInputGrad):
            continue
        index = asks.value.index
        if index is None:
            if not asks.answer:
                return True
        elif not asks.answer:
            refused.add(index)
        elif 0 <= index < len(fn.inputs) and fn.inputs[index].against_a_gradient:
            return True
    if not refused or fn.variadic_inputs is not None:
        return False
    return all(each.index in refused or each.is_tensor is Tri.NO for each in fn.inputs)


def _undefined_gradient(fn: FunctionClass, path: tuple[Guard, ...]) -> bool:
    """A guard implies that the gradient of a tensor is None, which forward has not asked for."""
    if fn.materializes_grads is not Tri.YES:
        return False
    return any(all(_may_be_tensor(returned, at) for returned in fn.outputs) for at in absent_gradients(path))


def _absent_tensor(fn: FunctionClass, path: tuple[Guard, ...]) -> bool:
    """A guard implies that a saved tensor is None, but forward saves it unless its gradient is not needed."""
    for guard in path:
        asks = guard.asks
        if asks is None or asks.question is not Question.IS_NONE or not asks.answer:
            continue
        served = saved_for(fn, asks.value.index) if isinstance(asks.value, SavedTensor) else None
        if served is not None and fn.variadic_inputs is None:
            return all(each.index == served or each.gradient is Tri.NO for each in fn.inputs)
    return False


def _may_be_tensor(output: Returned, at: int) -> bool:
    if at >= len(output.slots):
        return True
    return all(is_tensor(option) is not Tri.NO for option in output.slots[at].value.options())
