"""Inputs that the result depends on, for which backward always returns None."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.differentiable_flow import Flow, Part
from ctxlint.model.analyses.integral_inputs import holds_integers
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.unread_arguments import computed_with_by_callee
from ctxlint.model.function import Trust
from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.values import (
    Item,
    Kind,
    SavedTensor,
    Tri,
    Variadic,
    is_input,
    is_none,
    kind_of,
    usual_storage,
)
from ctxlint.model.syntax import words_of
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.interpreter.method import Method, Param
    from ctxlint.model.interpreter.values import Value


@record
class MissingGradient:
    """An input without a gradient; ``call`` passes a leaf for it, or else it is in a formula of the result.

    ``name`` is an element of ``*args`` as well, whose ``node`` is the parameter.
    """

    name: str
    index: int
    node: cst.CSTNode
    call: ApplyCall | None = None
    sole: bool = False
    """Whether the Function gives no other input a gradient: it is not that the caller requests one too many."""

    @property
    def trained(self) -> bool:
        """Whether the call certainly passes a parameter that a module trains, and uses for nothing else."""
        return self.call is not None and self.index in self.call.trained

    @property
    def incoming_of(self) -> str:
        """The Function whose incoming gradient the call passes, if it is in its backward."""
        return next((name for at, name in self.call.incoming if at == self.index), "") if self.call is not None else ""

    @property
    def differentiated(self) -> str:
        """Where the caller differentiates the result, if it has requested the gradient of this argument."""
        wanted = self.sole and self.call is not None and self.index in self.call.differentiated_inputs
        return self.call.differentiated if self.call is not None and wanted else ""


def missing_gradients(fn: FunctionClass) -> Iterator[MissingGradient]:
    """The inputs that get no gradient on any path, next to others that get one.

    If there are no others, those whose gradient a call in view certainly wants.
    """
    backward, forward = fn.counted_backward, fn.forward
    if backward is None or forward is None or forward.inherited or fn.escapes:
        return
    calls = [each for each in fn.calls if each.applies and not each.expects_error]
    if gives_otherwise(backward) or _refused(fn):
        return
    results = _Results(fn, forward)
    if not any(each.gradient is Tri.YES for each in fn.inputs):
        wanted = list(_wanted_all_the_same(fn, backward, results, calls))
        yield from wanted or _read_all_the_same(fn, backward, results)
        return
    for entry in fn.inputs:
        if entry.against_a_gradient or not always_none(fn, entry.index) or holds_integers(fn, entry):
            continue
        given = _passing_a_leaf(calls, entry.index)
        node = entry.param.node.name
        if given is not None and (_is_computed_with(forward, entry.name) or _is_operand(fn, backward, entry)):
            yield MissingGradient(entry.name, entry.index, node, given)
        elif not never_differentiated(entry.index, calls) and _may_be_tensor(entry) and results.depend_on(entry):
            if not _is_state(forward, entry):
                yield MissingGradient(entry.name, entry.index, node)
    if fn.variadic_inputs is not None and fn.required_inputs == len(fn.inputs):
        yield from _missing_in_variadic(fn, fn.variadic_inputs, results, calls)


def _is_state(forward: Method, entry: Input) -> bool:
    """Whether forward itself updates an input, such as a running mean, or makes integers of it: ``n = n.int()``."""
    written = (each.target for each in forward.facts.of(Mutation) if each.target is not None)
    if any(_is_input(option, entry) for each in written for option in each.options()):
        return True
    bound = [each.value_node for each in forward.assignments.get(entry.name, ())]
    calls = [forward.called_on(use) for use in forward.named.get(entry.name, ())]
    return any(call in bound and name in operations.INTEGRAL_CONVERSIONS for call, name in calls if call is not None)


def _refused(fn: FunctionClass) -> bool:
    """Whether backward returns a gradient for what is not a tensor: torch raises, and that of a tensor may be there."""
    return any(
        is_none(slot.value) is Tri.NO and each.against_a_gradient
        for returned in fn.gradients
        for slot, each in zip(returned.slots, fn.inputs)
    )


def _wanted_all_the_same(
    fn: FunctionClass, backward: Method, results: _Results, calls: list[ApplyCall]
) -> Iterator[MissingGradient]:
    """The inputs of a Function that gives no gradient at all, which a call in view certainly trains or differentiates.

    Not if its name says that it stops gradients, nor an input that backward may update itself.
    """
    wanted = {at: each for each in reversed(calls) for at in (*each.trained_here, *each.differentiated_inputs)}
    if not wanted or fn.variadic_inputs is not None or _STOPS.search(fn.name.lower()):
        return
    for entry in fn.inputs:
        if entry.index not in wanted or entry.against_a_gradient or holds_integers(fn, entry):
            continue
        if always_none(fn, entry.index) and entry.name in results.names and not _may_update(fn, backward, entry):
            yield MissingGradient(entry.name, entry.index, entry.param.node.name, wanted[entry.index], sole=True)


def _read_all_the_same(fn: FunctionClass, backward: Method, results: _Results) -> Iterator[MissingGradient]:
    """The inputs of a Function without a gradient for any, which backward computes with, and with an incoming gradient.

    It updates something else by itself, such as a table.
    """
    reads = any(param.name in backward.facts.names_read for param in backward.positional)
    if not reads or fn.variadic_inputs is not None or _STOPS.search(fn.name.lower()):
        return
    for entry in fn.inputs:
        if not entry.against_a_gradient and always_none(fn, entry.index) and not holds_integers(fn, entry):
            if results.depend_on(entry) and _is_only_read(fn, backward, entry):
                yield MissingGradient(entry.name, entry.index, entry.param.node.name)


def _is_only_read(fn: FunctionClass, backward: Method, entry: Input) -> bool:
    """Whether backward certainly computes with an input, in a function of the project, too, and does nothing else."""
    names = [name for name in backward.named if _is_input(kept_value(fn, backward.value_of(name)), entry)]
    uses = [backward.parents[use] for name in names for use in backward.named[name]]
    reads = [each for each in uses if not isinstance(each, (cst.AssignTarget, cst.Element))]
    return bool(reads) and all(
        isinstance(each, cst.BinaryOperation) or (isinstance(each, cst.Arg) and computed_with_by_callee(backward, each))
        for each in reads
    )


_STOPS = pattern(
    r"stop|block|detach|no_?grad|zero_?grad|without_?grad|freeze|frozen|ignore|cut|inference|eval|debug|print"
)
"""Part of the name of a Function that has no gradient on purpose."""


def _may_update(fn: FunctionClass, backward: Method, entry: Input) -> bool:
    """Whether backward may do anything with an input but to bind it to a name, or to compute with it by operators."""
    calls = (each for each in backward.nodes_of(cst.Call) if not backward.is_on_ctx(each.func))
    if next(calls, None) is None and not backward.nodes_of(cst.AugAssign):
        return False
    if any(_is_input(each.value, entry) for each in fn.context_writes):
        return True
    for name, uses in backward.named.items():
        value = backward.value_of(name)
        kept = kept_value(fn, value)
        if (isinstance(value, SavedTensor) and kept is None) or _is_input(kept, entry):
            plain = (cst.BinaryOperation, cst.AssignTarget, cst.Element)
            if not all(isinstance(backward.parents[each], plain) for each in uses):
                return True
    return False


def _is_input(value: Value | None, entry: Input) -> bool:
    origin = usual_storage(value) if value is not None else None
    return is_input(origin) and origin.index == entry.index


def _missing_in_variadic(
    fn: FunctionClass, variadic: Param, results: _Results, calls: list[ApplyCall]
) -> Iterator[MissingGradient]:
    """The elements of ``*args`` without a gradient."""
    rest = (slot for each in fn.gradients for slot in each.slots[len(fn.inputs) :])
    if not any(is_none(option) is Tri.YES for slot in rest for option in slot.value.options()):
        return
    for number, name in sorted(results.elements.items()):
        index = len(fn.inputs) + number
        if not always_none(fn, index) or never_differentiated(index, calls):
            continue
        given = _passing_a_leaf(calls, index)
        if given is not None or results.is_tensor(name, number):
            yield MissingGradient(name, index, variadic.node.name, given)


def _passing_a_leaf(calls: list[ApplyCall], index: int) -> ApplyCall | None:
    wanted = [each for each in calls if not each.gradients_off]
    passed = [each for each in wanted if index in each.trained or any(at == index for at, _name in each.incoming)]
    return next((each for each in (*passed, *wanted) if each in passed or index in each.leaves), None)


def always_none(fn: FunctionClass, index: int) -> bool:
    """Whether each return of backward certainly has None at a position."""
    for returned in fn.gradients:
        slots = returned.slots[: index + 1]
        starred = next((at for at, slot in enumerate(slots) if slot.starred), None)
        decisive = slots[index:] if starred is None else returned.slots[starred:]
        if not returned.known or not decisive:
            return False
        if not all(is_none(option) is Tri.YES for slot in decisive for option in slot.value.options()):
            return False
    return bool(fn.gradients)


def gives_otherwise(backward: Method) -> bool:
    """Whether backward may leave gradients where an optimizer finds them: ``weight.main_grad``, ``store.put(...)``."""
    return any(
        each.attr.value in _ELSEWHERE or (_is_for_gradient(each) and _is_set(backward, each))
        for each in backward.nodes_of(cst.Attribute)
    )


def _is_for_gradient(node: cst.Attribute) -> bool:
    """Whether an attribute is called like a gradient: ``weight.float_grad``."""
    return not {"grad", "gradient"}.isdisjoint(node.attr.value.split("_"))


def _is_set(backward: Method, node: cst.Attribute) -> bool:
    """Whether backward sets an attribute of something else than ctx."""
    return isinstance(backward.parents.get(node), (cst.AssignTarget, cst.AugAssign)) and not backward.is_on_ctx(node)


_ELSEWHERE = frozenset(str.split("grad main_grad weight_grad wgrad grad_sample accumulate_grad accumulate_wgrad put"))


def _is_computed_with(forward: Method, name: str) -> bool:
    """Whether forward computes with an input: an operand, or an argument of anything but a method of ctx."""
    for use in forward.named.get(name, ()):
        around = forward.parents[use]
        if isinstance(around, cst.BinaryOperation):
            return True
        call = forward.parents[around] if isinstance(around, cst.Arg) else None
        called = call.func if isinstance(call, cst.Call) else None
        if called and not forward.is_on_ctx(called) and getattr(called, "value", "") not in ("len", "isinstance"):
            return True
    return False


def _is_operand(fn: FunctionClass, backward: Method, entry: Input) -> bool:
    """Whether backward computes with an input: it is an operand, as the slope of a surrogate gradient is."""
    for name, uses in backward.named.items():
        stored = kept_value(fn, backward.value_of(name))
        if is_input(stored) and stored.index == entry.index:
            if any(isinstance(backward.parents[each], cst.BinaryOperation) for each in uses):
                return True
    return False


def never_differentiated(index: int, calls: list[ApplyCall]) -> bool:
    """Whether all calls in view pass what never requires a gradient."""
    return bool(calls) and all(index in each.detached or index in each.frozen for each in calls)


def _may_be_tensor(entry: Input) -> bool:
    """Whether it is certainly a tensor, or nothing suggests that it is something else."""
    against = any(not each.tensor and each.trust is not Trust.HINT for each in entry.evidence)
    return entry.is_tensor is Tri.YES or not against


_BIAS = pattern(r"(?:\w+_)?bias")
"""The name of an input that is a tensor, or None."""


def depends_on(fn: FunctionClass, forward: Method, entry: Input) -> bool:
    """Whether an output is, on some path, a differentiable function of an input, which certainly is a tensor."""
    return _Results(fn, forward).depend_on(entry)


def may_depend_on(fn: FunctionClass, forward: Method, entry: Input) -> bool:
    """The same for an input that may be a tensor."""
    return entry.name in _Results(fn, forward).names


class _Results:
    """What the floating outputs of forward are, on some path, differentiable functions of."""

    def __init__(self, fn: FunctionClass, forward: Method) -> None:
        self.fn, self.forward = fn, forward

    @cached_property
    def flow(self) -> Flow:
        """What forward binds and calls."""
        return Flow(self.forward.facts, self.forward.home)

    def depend_on(self, entry: Input) -> bool:
        """Whether they depend on an input, which is certainly a tensor."""
        if entry.name not in self.names:
            return False
        if entry.is_tensor is Tri.YES or entry.name in self.flow.tensors or _BIAS.fullmatch(entry.name):
            return True
        saved = (slot.value for call in self.fn.saves for slot in call.arguments)
        return any(is_input(each) and each.index == entry.index for each in saved)

    def is_tensor(self, name: str, number: int) -> bool:
        """Whether they depend on an element of ``*args``, called ``name``, which is certainly a tensor."""
        element = f"{self._variadic}[{number}]"
        if {name, element}.isdisjoint(self._reached):
            return False
        saved = [slot.value for call in self.fn.saves for slot in call.arguments]
        if any(isinstance(each, Item) and isinstance(each.of, Variadic) and each.key == number for each in saved):
            return True
        return not self.flow.tensors.isdisjoint([name, element])

    @cached_property
    def elements(self) -> dict[int, str]:
        """The numbers of the elements of ``*args`` that they depend on, with the names."""
        by_element = {element: name for name, element in self.flow.elements.items()}
        found = {element: name for element, name in by_element.items() if {element, name} & self._reached}
        found |= {each: each for each in self._reached if each.startswith(f"{self._variadic}[") and each not in found}
        return {int(element.partition("[")[2].rstrip("]")): name for element, name in found.items()}

    @property
    def _variadic(self) -> str:
        return self.fn.variadic_inputs.name if self.fn.variadic_inputs is not None else ""

    @cached_property
    def names(self) -> set[str]:
        """The inputs among them.

        Not one that is an output itself, as a buffer for it, nor one that another value may replace.
        """
        outputs = {part.node.value for part in self._outputs if isinstance(part.node, cst.Name)}
        bound = self.flow.bound
        found = [each for each in self._reached if each in bound or each not in outputs]
        return {name for name in found if all(name in words_of(each.node) for each in bound.get(name, ()))}

    @cached_property
    def _reached(self) -> set[str]:
        return self.flow.reached(self._outputs)

    @cached_property
    def _outputs(self) -> list[Part]:
        """The expressions that forward returns, unless they are certainly of integers."""
        found: list[Part] = []
        for returned in self.fn.outputs:
            whole = returned.node.value if isinstance(returned.node, cst.Return) and len(returned.slots) < 2 else None
            if not returned.slots and isinstance(whole, cst.BinaryOperation):  # of inputs that may be numbers, too
                found.append(Part(whole))
            floating = (slot.node or whole for slot in returned.slots if kind_of(slot.value) is not Kind.INTEGRAL)
            found += [Part(node) for node in floating if node is not None]
        return found
