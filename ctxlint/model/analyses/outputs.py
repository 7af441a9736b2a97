"""How backward uses the gradient of each output."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.decided_tests import never_runs
from ctxlint.model.analyses.deliberate_gradients import returns_an_input, says_unused
from ctxlint.model.analyses.empty_tensors import implies_empty
from ctxlint.model.analyses.unread_arguments import only_given_away
from ctxlint.model.analyses.upstream import depends_on_no_input, independent_slots
from ctxlint.model.interpreter.events import Assigned, ContextCall, ContextWrite, Escape, Question
from ctxlint.model.interpreter.method import Binding
from ctxlint.model.interpreter.values import (
    NONE,
    Alias,
    Item,
    Kind,
    Mapping,
    Opaque,
    Parameter,
    Scalar,
    Sequence,
    Slot,
    Tri,
    Value,
    Variadic,
    View,
    is_input,
    is_none,
    is_tensor,
    kind_of,
    same_object,
    whole,
)
from ctxlint.model.syntax import children, dotted, root_name, signed_integer, single_index, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.analyses.unread_arguments import Unread
    from ctxlint.model.function import ApplyCall, FunctionClass, Operator, Returned
    from ctxlint.model.interpreter.events import Event, Guard
    from ctxlint.model.interpreter.method import Method, Param


@record
class OutputGradient:
    """The parameter of backward that receives the gradient of output ``index`` (from 0), and its display name.

    ``given_to`` are parameters of functions that backward passes it to, and that they never read. ``wanted``: forward
    marks other outputs as non-differentiable, but not this one, whose name suggests a floating dtype.
    """

    param: Param
    index: int
    name: str
    given_to: tuple[Unread, ...] = ()
    wanted: bool = False


def gradients_taken(backward: Method) -> tuple[int, int | None]:
    """The fewest and the most gradients that backward can be called with; None for any number."""
    least = sum(param.required for param in backward.positional)
    return least, len(backward.positional) if backward.variadic is None else None


def takes_nothing(backward: Method) -> bool:
    """Whether backward has no parameter for any of the gradients, of which there is at least one."""
    takes_ctx = backward.ctx is not None and backward.signature_known
    return takes_ctx and gradients_taken(backward)[1] == 0 and backward.binding is not Binding.CLASS


def hides_tensors(value: Value) -> bool:
    """Whether torch does not look for outputs inside of a value that forward returns: a list or a dict."""
    return isinstance(value, Mapping) or (isinstance(value, Sequence) and value.kind != "tuple")


def hidden_outputs(fn: FunctionClass, returned: Returned) -> bool:
    """Whether forward certainly returns a container in which torch does not look for outputs."""
    return all(map(hides_tensors, returned.event.value.options())) or is_proven_list(fn, returned)


def is_proven_list(fn: FunctionClass, returned: Returned) -> bool:
    """Whether forward returns a slice, or all, of what it uses as a list: ``outputs[:1]`` next to ``outputs + [x]``."""
    forward, node = fn.forward, getattr(returned.event.node, "value", None)
    name = _sliced(forward.bound_to(node.value)) if forward is not None and isinstance(node, cst.Name) else None
    name = name or (_sliced(node) if forward is not None else None)
    if forward is None or name is None or not isinstance(forward.bound_to(name), cst.Call):
        return False
    added = (each for each in forward.nodes_of(cst.BinaryOperation) if isinstance(each.operator, cst.Add))
    sums = (each for each in added if any(isinstance(side, cst.List) for side in (each.left, each.right)))
    proofs: list[cst.CSTNode] = [each for each in sums if name in (_sliced(each.left), _sliced(each.right))]
    proofs += (each for each in forward.nodes_of(cst.Call) if dotted(each.func) == f"{name}.append")
    return any(runs(forward, each) is Runs.ALWAYS for each in proofs)


def _sliced(node: cst.CSTNode | None) -> str | None:
    """The name of what is sliced, or the name itself: ``x`` of ``x`` and ``x[1:]``."""
    while isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice) and len(node.slice) == 1:
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


def untracked_numbers(fn: FunctionClass) -> bool:
    """Whether forward only returns numbers or arrays that it got from tensors, and backward computes a gradient.

    A flag or a size is on purpose.
    """
    slots = [slot for returned in fn.outputs for slot in returned.slots]
    known = bool(slots) and all(returned.exact for returned in fn.outputs)
    gradients = [slot.value for returned in fn.gradients for slot in returned.slots]
    computed = any(is_none(each) is Tri.NO for each in gradients)
    return known and computed and all(_is_untracked_number(slot.value) for slot in slots)


def _is_untracked_number(value: Value) -> bool:
    return isinstance(value, Scalar) and value.sort in ("array", "float", "number")


def unfit_outputs(fn: FunctionClass) -> list[Returned]:
    """The returns of forward, if backward cannot take one gradient per output for any of them.

    One for an empty tensor may fit, because it is not what the Function is for.
    """
    if fn.backward is None:
        return []
    least, most = gradients_taken(fn.backward)
    outputs = [each for each in fn.outputs if each.value != NONE]  # without outputs, backward never runs
    usual = [each for each in outputs if _for_an_empty_tensor(fn, each) is None] or outputs
    return [] if any(_fits(each, least, most) for each in usual) else usual


def unfit_flag(fn: FunctionClass) -> tuple[Returned, Guard] | None:
    """A return of forward that backward cannot take gradients for, under a flag whose case backward handles itself.

    Backward tests the flag, as forward kept it on ctx, so that it expects to run in both cases. Or it is the return for
    an input that is empty.
    """
    if fn.backward is None or len(fn.outputs) == 1:
        return None
    least, most = gradients_taken(fn.backward)
    for each in fn.outputs:
        empty = _for_an_empty_tensor(fn, each)
        if empty is not None and _measures_input(fn, empty) and each.value != NONE and not _fits(each, least, most):
            return each, empty
        tests = [guard.test for guard in each.event.guards if guard.block != id(guard.test)]
        if each.value == NONE or _fits(each, least, most) or len(tests) != 1:
            continue
        guard = each.event.guards[-1]  # of ``not flag``, the one of ``flag``
        if isinstance(tests[0], (cst.Name, cst.UnaryOperation)) and isinstance(guard.test, cst.Name):
            if _handles(fn, fn.backward, guard.test.value, guard.holds):
                return each, guard
    return None


def has_unfit_outputs(fn: FunctionClass, call: ApplyCall) -> bool:
    """Whether constants that a call passes choose a return of forward that backward cannot take gradients for."""
    if fn.backward is None:
        return False
    least, most = gradients_taken(fn.backward)
    return any(not _fits(each, least, most) and _is_chosen(fn, each, call) for each in fn.outputs)


def _is_chosen(fn: FunctionClass, returned: Returned, call: ApplyCall) -> bool:
    """Whether forward certainly ends with a return if a call passes these constants for the flags that it tests."""
    flags = {each.name: dict(call.literals).get(each.index) for each in fn.inputs}
    guards = returned.event.guards
    names = [guard.test.value if isinstance(guard.test, cst.Name) else "" for guard in guards]
    passed = [flags.get(name) for name in names]
    rebound = fn.forward is None or any(name in fn.forward.binders for name in names)
    return not rebound and all(
        code is not None and bool(ast.literal_eval(code)) is guard.holds for guard, code in zip(guards, passed)
    )


def _for_an_empty_tensor(fn: FunctionClass, returned: Returned) -> Guard | None:
    """The test of a return with which a tensor must be empty, if it has one."""
    return next((each for each in returned.event.guards if implies_empty(fn, each)), None)


def _measures_input(fn: FunctionClass, test: Guard) -> bool:
    """Whether a test asks for the size of an input that certainly is a tensor."""
    return any(each.name in test.words for each in fn.inputs if each.is_tensor is Tri.YES)


def _handles(fn: FunctionClass, backward: Method, flag: str, holds: bool) -> bool:
    """Whether backward computes something only if an input has this truth, and never raises depending on it."""
    kept = {
        f"{backward.ctx_name}.{each.attribute}"
        for each in fn.context_writes
        if is_input(each.value) and each.value.name == flag and not each.guards
    }
    refused = {word for test in backward.raising_tests for word in words_of(test)} if kept else set()
    guards = (guard for each in backward.facts.of(Assigned) for guard in each.guards if guard.holds is holds)
    tested = {dotted(guard.test) for guard in guards if guard.test is not None}
    return any(name in tested and name.rpartition(".")[2] not in refused for name in kept)


def _fits(returned: Returned, least: int, most: int | None) -> bool:
    """Whether the number of outputs of a return may lie between ``least`` and ``most``."""
    if not returned.known:
        return True
    if most is not None and returned.minimum > most:
        return False
    return not returned.exact or returned.minimum >= least


def never_wants_gradients(fn: FunctionClass) -> bool:
    """Whether backward returns no gradients at all, and forward no output that certainly has a floating dtype."""
    gives = [slot.value for each in fn.gradients for slot in (each.slots if each.known else (Slot(each.value),))]
    return all(each == NONE for each in gives) and not any(
        is_tensor(option) is Tri.YES and kind_of(option) is Kind.FLOAT
        for value in fn.outputs_values()
        for option in value.options()
    )


def gives_indices(fn: FunctionClass) -> bool:
    """Whether backward wants no gradients, and forward computes integers: its other outputs may hold some, too."""
    return never_wants_gradients(fn) and any(
        is_tensor(option) is Tri.YES and kind_of(option) is Kind.INTEGRAL
        for value in fn.outputs_values()
        for option in value.options()
    )


def may_give_indices(fn: FunctionClass) -> bool:
    """Whether backward wants no gradients, and nothing is known of what forward returns: it may be integers."""
    options = [option for value in fn.outputs_values() for option in value.options()]
    return never_wants_gradients(fn) and all(is_tensor(each) is Tri.UNKNOWN for each in options)


def marked_non_differentiable(fn: FunctionClass) -> tuple[Value, ...] | None:
    """The values that forward marks as non-differentiable; None if some of them are unknown."""
    marked: list[Value] = []
    for call in fn.context_calls("mark_non_differentiable"):
        if not call.exact:
            return None
        marked.extend(argument.value for argument in call.arguments)
    return tuple(marked)


def may_be_non_differentiable(fn: FunctionClass, output: Value) -> bool:
    """Whether an output may be among the tensors that forward marks as non-differentiable; the others keep a graph."""
    return any(
        slot.starred or same_object(one, other) is not Tri.NO
        for call in fn.context_calls("mark_non_differentiable")
        for slot in call.arguments
        for one in slot.value.options()
        for other in output.options()
    )


def output_values(fn: FunctionClass, index: int) -> tuple[Value, ...] | None:
    """The values of output number ``index`` over all returns of forward; None if unknown for some return."""
    return _values_among(fn.outputs, index)


def possible_output_values(fn: FunctionClass, index: int) -> tuple[Value, ...] | None:
    """Like ``output_values``, over the returns that have so many outputs, if others certainly have not."""
    longer = (each for each in fn.outputs if index < len(each.slots) or not (each.known and each.exact))
    return _values_among(longer, index)


def _values_among(outputs: Iterable[Returned], index: int) -> tuple[Value, ...] | None:
    found: list[Value] = []
    for returned in outputs:
        if not returned.known or index >= len(returned.slots):
            return None
        if any(slot.starred for slot in returned.slots[: index + 1]):
            return None
        found.append(returned.slots[index].value)
    return tuple(found) if found else None


def surely_differentiable(fn: FunctionClass, index: int) -> bool:
    """Whether an output is certainly a floating tensor, unless it is None, and never marked non-differentiable."""
    values, marked = possible_output_values(fn, index), marked_non_differentiable(fn)
    if values is None or marked is None or fn.escapes:
        return False
    options = [option for value in values for option in value.options() if option != NONE]
    hidden = [option for value in marked for option in (value, *value.options())]
    return bool(options) and all(
        is_tensor(option) is Tri.YES and kind_of(option) is Kind.FLOAT and option not in hidden for option in options
    )


def may_be_none(fn: FunctionClass, index: int) -> bool:
    """Whether forward returns ``None`` for an output on some path: ``mark_non_differentiable`` raises for that."""
    values = possible_output_values(fn, index) or ()
    return any(option == NONE for value in values for option in value.options())


def is_independent(fn: FunctionClass, index: int) -> bool:
    """Whether an output certainly depends on no input, unless it is None: random numbers, or zeros."""
    values = possible_output_values(fn, index) or ()
    options = [option for value in values for option in value.options() if option != NONE]
    return bool(options) and all(depends_on_no_input(fn, each) for each in options)


def others_have_gradients(fn: FunctionClass, position: int) -> bool:
    """Whether a gradient may arrive for another output than the one at this position."""
    marks = fn.context_calls("mark_non_differentiable")
    marked = {option for call in marks if not call.guards for each in call.arguments for option in each.value.options()}
    others = (slot.value.options() for each in fn.outputs for at, slot in enumerate(each.slots) if at != position)
    return any(
        option not in marked and is_tensor(option) is not Tri.NO and kind_of(option) is not Kind.INTEGRAL
        for options in others
        for option in options
    )


def differentiable_outputs(fn: FunctionClass, kept: Event | None = None) -> Iterator[Value]:
    """The objects that certainly become outputs with a ``grad_fn``: those without evidence against one.

    A single output has one if there is a backward at all, unless it holds integers. Of several outputs, those that
    certainly have a floating dtype, and those whose gradient backward reads. With ``kept``, what forward does with a
    tensor: without outputs that it returns on other paths only.
    """
    marks = fn.context_calls("mark_non_differentiable")
    marked = [argument.value for call in marks for argument in call.arguments]
    unknown_marks = bool(fn.escapes) or any(argument.starred for call in marks for argument in call.arguments)
    for returned in fn.outputs:
        for position, slot in enumerate(returned.slots if returned.known else (Slot(returned.value),)):
            for option in slot.value.options():
                if slot.starred or isinstance(option, Parameter) or option in marked or may_be_given_back(fn, option):
                    continue
                if is_tensor(option) is Tri.YES and kind_of(option) is Kind.INTEGRAL:
                    continue
                alone = len(returned.slots) <= 1
                if alone or (not unknown_marks and _has_gradient(fn, returned, position, option)):
                    if kept is None or is_returned_after(fn, returned, slot, option, kept):
                        yield option


def is_returned_after(fn: FunctionClass, returned: Returned, slot: Slot, option: Value, event: Event) -> bool:
    """Whether forward may return one of the values of an output on a path on which it has come by an event."""
    forward, end = fn.forward, returned.event
    if forward is None or event not in forward.facts.of(type(event)) or end not in forward.returns:
        return True  # in another method
    if end.excludes(event) or not (end.may_follow(event) or end.in_loop):
        return False
    node = slot.node or (end.node.value if isinstance(end.node, cst.Return) else None)
    bound = forward.assignments.get(node.value, ()) if isinstance(node, cst.Name) else ()
    giving = [each for each in bound if each.value is not None and option in each.value.options()]
    return not giving or any(not each.excludes(event) for each in giving)


def may_be_given_back(fn: FunctionClass, value: Value) -> bool:
    """Whether a callable of the caller returns a value: it may be an argument of it, an input, or a view of a tensor.

    For an input that forward returns as it is, autograd creates another tensor.
    """
    while isinstance(value, View) and value.alias is not Alias.ALWAYS:
        value = value.of
    source = whole(value)
    if not isinstance(source, Opaque):
        return False
    passed = (whole(option) for option in (source.called.options() if source.called is not None else ()))
    node = source.node
    called = root_name(node.func) if isinstance(node, cst.Call) else None
    params = {param.name for method in fn.earlier_methods for param in method.params}
    by_name = called is not None and (called in params or called in fn.enclosing_names)
    return by_name or any(isinstance(each, (Parameter, Variadic)) for each in passed)


def _has_gradient(fn: FunctionClass, returned: Returned, position: int, output: Value) -> bool:
    if is_tensor(output) is Tri.YES and kind_of(output) is Kind.FLOAT:
        return True
    return returned.known and reads_gradient(fn, position)


def reads_gradient(fn: FunctionClass, position: int) -> bool:
    """Whether backward reads the gradient of the output at a position by its name, or as this element of ``*rest``."""
    backward = fn.backward
    if backward is None or position < len(backward.positional):
        return backward is not None and is_read(backward, backward.positional[position])
    rest = backward.variadic
    uses = [each for each in backward.variables if rest is not None and each.value == rest.name]
    return position - len(backward.positional) in {_element(backward, each) for each in uses}


def gradient_is_read(fn: FunctionClass, output: Value) -> bool:
    """Whether each return of forward has this very object as an output, and backward reads the gradient of it."""
    return bool(fn.outputs) and all(
        any(
            not slot.starred and same_object(slot.value, output) is Tri.YES and _has_gradient(fn, each, at, output)
            for at, slot in enumerate(each.slots)
        )
        for each in fn.outputs
    )


def ignored_gradients(fn: FunctionClass) -> list[OutputGradient]:
    """The gradients of certainly differentiable outputs that backward never reads, while it reads another one.

    Which gradients matter is the choice of each backward if several classes inherit one forward.
    """
    backward = fn.backward
    if backward is None or backward.raises_only or not _reads_some(backward):
        return []
    if fn.forward is None or fn.forward.inherited:
        return []
    found: dict[str, OutputGradient] = {}
    for index, param in _receivers(fn, backward):
        given_to = _given_away(fn, backward, param, index) if _reads(fn, backward, param, index) else None
        if given_to == () or _named_as_unused(param.name) or param.name in found:
            continue
        if not surely_differentiable(fn, index) or is_independent(fn, index):
            continue
        if output_values(fn, index) is None and (not is_read(backward, param) or _refuses_a_mode(fn, backward)):
            continue  # a name for what some calls want
        if param.name not in _deleted_names(backward.node.body) and not says_unused(fn, backward, param.name):
            found[param.name] = OutputGradient(param, index, _name_of(backward, param, index), given_to or ())
    return [] if found and _supplies_gradients(fn, backward) else list(found.values())


def _refuses_a_mode(fn: FunctionClass, backward: Method) -> bool:
    """Whether backward raises depending on an input that forward tests, too: perhaps where there are more outputs."""
    forward = fn.forward
    if forward is None:
        return False
    tested = {word for test in _conditions(forward) for word in words_of(test)}
    flags = {each.attribute for each in fn.context_writes if is_input(each.value) and each.value.name in tested}
    return any(word in flags for test in backward.raising_tests for word in words_of(test))


def has_other_outputs_by(fn: FunctionClass, flag: str) -> bool:
    """Whether backward cannot take a gradient for each output of some return, to which a test of an input leads."""
    if fn.backward is None:
        return False
    least, most = gradients_taken(fn.backward)
    unfit = (each for each in fn.outputs if not _fits(each, least, most))
    return any(flag in guard.words for each in unfit for guard in each.event.guards)


def _supplies_gradients(fn: FunctionClass, backward: Method) -> bool:
    """Whether backward returns a gradient that depends on no incoming one: a loss on any output gives that one."""
    slots = (slot for each in fn.gradients for slot in each.slots)
    return any(returns_an_input(fn, slot.value) for slot in slots) or any(independent_slots(fn, backward))


def _given_away(fn: FunctionClass, backward: Method, param: Param, index: int) -> tuple[Unread, ...]:
    """The parameters of functions that one of several gradients is passed to, if that is all, and none is read."""
    alone = len(backward.positional) == 1 or param is backward.variadic
    return () if alone or not surely_differentiable(fn, index) else only_given_away(backward, param.name)


def ignored_operator_gradients(operator: Operator) -> list[Param]:
    """As ``ignored_gradients``, the parameters of backward of a custom operator; none if it may mark outputs."""
    unread = _unread_by_operator(operator)
    deleted = _deleted_names(operator.backward.node.body) if unread else set()
    return [param for param in unread if param.name not in deleted and not _named_as_unused(param.name)]


def dropped_operator_gradients(operator: Operator) -> Iterator[tuple[Param, bool]]:
    """The other parameters of backward that are never read: the name, or ``del``, states that they are dropped.

    Each with whether its output certainly is a floating-point tensor; otherwise the name suggests one.
    """
    ignored = ignored_operator_gradients(operator)
    certain = _unread_by_operator(operator)
    for param in _unread_by_operator(operator, by_name=True):
        if param not in ignored:
            yield param, param in certain


def _unread_by_operator(operator: Operator, *, by_name: bool = False) -> list[Param]:
    """The parameters of backward of a custom operator for floating-point outputs that it never reads.

    ``by_name``: also for those whose name suggests one.
    """
    backward, setup = operator.backward, operator.setup_context
    if backward.raises_only or backward.variadic is not None or not _reads_some(backward):
        return []
    calls = setup.facts.of(ContextCall) if setup is not None else ()
    if (setup is not None and setup.facts.of(Escape)) or any(each.method in _MARKS for each in calls):
        return []
    return [
        param
        for index, param in enumerate(backward.positional)
        if (index in operator.floating or (by_name and _FLOATING_NAMES.search(param.name) is not None))
        and not is_read(backward, param)
    ]


def stored_operator_outputs(operator: Operator) -> Iterator[tuple[ContextWrite, int]]:
    """What setup_context of a custom operator stores of the floating-point outputs, with their numbers."""
    setup = operator.setup_context
    if setup is None or any(each.method == _MARKS[0] for each in setup.facts.of(ContextCall)):
        return
    for write in setup.facts.of(ContextWrite):
        value = write.value
        whole = value.of if isinstance(value, Item) else value
        if not isinstance(whole, Parameter) or whole.index != _OUTPUT or write.by or write.deletes:
            continue
        index = 0 if value is whole and operator.outputs == 1 else value.key if isinstance(value, Item) else None
        if isinstance(index, int) and index in operator.floating:
            yield write, index


def are_kept_together(stored: Iterable[tuple[ContextWrite, int]], setup: Method) -> bool:
    """Whether attributes of ctx certainly keep several outputs at once: torch 2.13 never frees such a cycle."""
    times = Counter(each.attribute for each in setup.facts.of(ContextWrite))
    return len({index for write, index in stored if not write.guards and times[write.attribute] == 1}) > 1


_OUTPUT = 1
"""The position of ``output`` after ctx."""

_MARKS = ("mark_non_differentiable", "set_materialize_grads")


def is_floating(value: Value) -> bool:
    """Whether a value is certainly a floating-point tensor."""
    return all(is_tensor(each) is Tri.YES and kind_of(each) is Kind.FLOAT for each in value.options())


def dropped_gradients(fn: FunctionClass) -> list[OutputGradient]:
    """The gradients that backward never reads of outputs that have a floating dtype, or a name that suggests one.

    Where forward marks other outputs as non-differentiable, names do not matter. Excluding those in
    ``ignored_gradients``.
    """
    backward = fn.backward
    if backward is None or backward.raises_only or not _reads_some(backward):
        return []
    certain = {each.param.name for each in ignored_gradients(fn)}
    marks_others = bool(marked_non_differentiable(fn))
    found: dict[str, OutputGradient] = {}
    for index, param in _receivers(fn, backward):
        if param.name in certain or param.name in found or _reads(fn, backward, param, index):
            continue
        if is_independent(fn, index):
            continue
        called = f"{output_name(fn, index) or ''} {param.name}"
        floating = _FLOATING_NAMES.search(called) is not None
        suggested = floating or (marks_others and _INTEGRAL_NAMES.search(called) is None)
        if surely_differentiable(fn, index) or (suggested and may_be_differentiable(fn, index)):
            unused = _named_as_unused(param.name) or says_unused(fn, backward, param.name)
            name = _name_of(backward, param, index)
            wanted = marks_others and floating and not unused and _INTEGRAL_NAMES.search(called) is None
            found[param.name] = OutputGradient(param, index, name, wanted=wanted)
    return [] if found and _supplies_gradients(fn, backward) else list(found.values())


_FLOATING_NAMES = pattern(
    r"lse|logsumexp|loss|entropy|prob|score|logit|norm|rms|rstd|mean|var(?!len)|std|attn|attention|energy|weight"
    r"|accum|alpha|colou?r|depth|dist(?!rib)|densit|feat|hidden|image|opac|pose(?:_|$)|quaternion|render|rotation|translation",
    re.IGNORECASE,
)
"""Parts of names that suggest a floating dtype, for tensors of unknown dtype."""

_INTEGRAL_NAMES = pattern(
    r"mask|ind(?:ex|ices)|idx|(?:^|_|\b)ids?(?:_|\b)|arg(?:max|min|sort)|perm|count|num|(?:^|_|\b)n_|size|len|offset|shape|rng|seed|token"
    r"|label|flag|buffer|state|handle|workspace|meta",
    re.IGNORECASE,
)
"""Parts of names that suggest whole numbers, or what is not a tensor."""


def may_be_differentiable(fn: FunctionClass, index: int) -> bool:
    """Whether an output may be a floating tensor on each return that has it, unless it is None, and never marked."""
    marked = marked_non_differentiable(fn)
    exact_returns = [returned for returned in fn.outputs if returned.known and returned.exact]
    elements = [slot.value for returned in exact_returns for slot in returned.slots]
    if (
        marked is None
        or fn.escapes
        or any(each not in exact_returns and each.value not in elements for each in fn.outputs)
    ):
        return False
    values = [returned.slots[index].value for returned in exact_returns if index < len(returned.slots)]
    options = [option for value in values for option in value.options() if option != NONE]
    hidden = [option for value in marked for option in (value, *value.options())]
    return bool(options) and not any(
        is_tensor(option) is Tri.NO or kind_of(option) is Kind.INTEGRAL or option in hidden for option in options
    )


def output_name(fn: FunctionClass, index: int) -> str | None:
    """The name of an output in every return of forward, if it is the same."""
    nodes = [returned.slots[index].node for returned in fn.outputs if returned.known and index < len(returned.slots)]
    names = {node.value if isinstance(node, cst.Name) else None for node in nodes}
    return names.pop() if len(names) == 1 else None


def _named_as_unused(name: str) -> bool:
    """Whether the name marks it as unused: ``_``, ``_grad``, ``unused_grad``, ``grad_mask_is_none``."""
    return name.startswith("_") or not _UNUSED.isdisjoint(name.lower().split("_")) or "unused" in name.lower()


_UNUSED = frozenset({"dummy", "ignore", "ignored", "none"})


def _receivers(fn: FunctionClass, backward: Method) -> Iterator[tuple[int, Param]]:
    """The parameter of backward that gets the gradient of each output; ``*rest`` gets those of all remaining ones."""
    yield from enumerate(backward.positional)
    if backward.variadic is not None:
        outputs = max((len(returned.slots) for returned in fn.outputs), default=0)
        for index in range(len(backward.positional), outputs):
            yield index, backward.variadic


def never_arrives(fn: FunctionClass, index: int) -> bool:
    """Whether an output certainly is not a tensor: its gradient is None."""
    values = possible_output_values(fn, index)
    return bool(values) and all(_is_no_tensor(fn, each) for each in values or ())


def _is_no_tensor(fn: FunctionClass, value: Value) -> bool:
    """Whether a value certainly is not a tensor; of an input, whatever backward returns for it."""
    if is_input(value) and value.index < len(fn.inputs):
        return bool(fn.inputs[value.index].against_a_gradient)
    return is_tensor(value) is Tri.NO


def arriving_gradients(fn: FunctionClass, backward: Method) -> tuple[Param, ...]:
    """The parameters of backward that may get a gradient: torch passes None for an output that is not a tensor."""
    never = [param for index, param in enumerate(backward.positional) if never_arrives(fn, index)]
    return tuple(param for param in backward.own_params if param not in never) or backward.own_params


def _name_of(backward: Method, param: Param, index: int) -> str:
    """The expression that holds the gradient of an output: the parameter, or an element of ``*rest``."""
    return f"{param.name}[{index - len(backward.positional)}]" if param is backward.variadic else param.name


def is_read(method: Method, param: Param) -> bool:
    """Whether a body reads a parameter, directly or in a nested function."""
    return param.name in method.facts.names_read


def _reads_some(backward: Method) -> bool:
    """Whether a body reads some gradient."""
    rest = (backward.variadic,) if backward.variadic is not None else ()
    return any(is_read(backward, param) for param in (*backward.positional, *rest))


def _reads(fn: FunctionClass, backward: Method, param: Param, index: int) -> bool:
    """Whether a body reads the gradient of an output in its parameter, or in this element of ``*rest``."""
    if param is not backward.variadic or not is_read(backward, param):
        return is_read(backward, param)
    uses = [node for node in backward.variables if node.value == param.name and node is not param.node.name]
    elements = {_element(backward, node) for node in uses}
    counts = {each.count for each in fn.outputs}
    count = counts.pop() if len(counts) == 1 else None
    if None in elements or (count is None and any(each is not None and each < 0 for each in elements)):
        return True
    return index - len(backward.positional) in elements or (count is not None and index - count in elements)


def _element(method: Method, name: cst.Name) -> int | None:
    """The index in ``name[2]`` or ``name[-1]``; None for anything else."""
    above = method.parents.get(name)
    at = single_index(above) if isinstance(above, cst.Subscript) and above.value is name else None
    return signed_integer(at)


def _deleted_names(node: cst.CSTNode) -> set[str]:
    found: set[str] = set()
    for child in children(node):
        if isinstance(child, cst.Del):
            targets = child.target.elements if isinstance(child.target, cst.Tuple) else ()
            named = [child.target, *(element.value for element in targets)]
            found.update(each.value for each in named if isinstance(each, cst.Name))
        elif isinstance(child, (cst.BaseSuite, cst.BaseStatement, cst.Else, cst.Finally)):
            found |= _deleted_names(child)
    return found


def unmaterialized(fn: FunctionClass) -> bool:
    """Whether forward certainly requests None instead of zeros for undefined gradients."""
    calls = fn.context_calls("set_materialize_grads")
    if len(calls) != 1 or calls[0].guards or not calls[0].exact or not calls[0].arguments:
        return False
    value = calls[0].arguments[0].value
    return getattr(value, "value", None) is False


def untested_operations(fn: FunctionClass) -> list[tuple[Param, cst.CSTNode]]:
    """The gradients that backward operates on although nothing tests them for None: the first use of each."""
    backward = fn.backward
    if backward is None:
        return []
    operations: dict[str, cst.CSTNode] = {}
    tested = {
        guard.asks.value.name
        for event in backward.facts.events
        for guard in event.guards
        if guard.asks is not None
        and guard.asks.question is Question.IS_NONE
        and isinstance(guard.asks.value, Parameter)
    }
    for node in backward.body_nodes:
        tested.update(each.value for each in _tested(node) if isinstance(each, cst.Name))
        for operand in operands(node):
            if isinstance(operand, cst.Name):
                operations.setdefault(operand.value, node)
    return [
        (param, operations[param.name])
        for param in backward.positional
        if param.name in operations and param.name not in tested and not param.has_default
        if backward.holds_argument(param.name, operations[param.name])
        and not _may_avoid_none(fn, backward, param, operations[param.name])
    ]


def _may_avoid_none(fn: FunctionClass, backward: Method, gradient: Param, node: cst.CSTNode) -> bool:
    """Whether code around an operation catches the error, or some test keeps None of the gradient from it.

    That may be a test of a value computed from it, or one of another gradient that raises: one of them is a tensor.
    """
    if any(isinstance(each, (cst.Try, cst.TryStar)) and each.handlers for each in backward.above(node)):
        return True
    others = {each.name for each in backward.positional} - {gradient.name}
    if any(not others.isdisjoint(words_of(test)) for test in backward.raising_tests):
        return True
    tests = [part for each in backward.body_nodes for part in _tested(each) if not isinstance(part, cst.Name)]
    named = [backward.bound_to(name) for test in _conditions(backward) for name in {*words_of(test)}]
    computed = [*tests, *(each for each in named if each is not None and "None" in words_of(each))]
    return any(_is_given(each, gradient.name) for each in computed) or never_runs(fn, backward, node)


def _conditions(method: Method) -> Iterator[cst.BaseExpression]:
    """The tests of ``if`` statements and conditional expressions."""
    yield from (each.test for each in method.nodes_of(cst.If))
    yield from (each.test for each in method.nodes_of(cst.IfExp))


def _is_given(node: cst.CSTNode, name: str) -> bool:
    """Whether an expression passes a name on, other than as the operand of an operation that raises for None."""
    taken = operands(node)
    return any(
        (isinstance(child, cst.Name) and child.value == name and child not in taken) or _is_given(child, name)
        for child in children(node)
    )


def _tested(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """What an expression or statement tests: the sides of a comparison, a condition, the parts of ``and``."""
    if isinstance(node, cst.Comparison):
        return (node.left, *(part.comparator for part in node.comparisons))
    if isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert)):
        return (node.test,)
    if isinstance(node, cst.BooleanOperation):
        return (node.left, node.right)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return (node.expression,)
    if isinstance(node, cst.Match):
        several = node.subject.elements if isinstance(node.subject, cst.Tuple) else ()
        return (node.subject, *(each.value for each in several))
    return ()


def operands(node: cst.CSTNode) -> tuple[cst.BaseExpression, ...]:
    """The operands of an expression that raises if one of them is None."""
    if isinstance(node, cst.BinaryOperation):
        return (node.left, node.right)
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return (node.expression,)
    if isinstance(node, cst.AugAssign):
        return (node.target, node.value)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return (node.func.value,)
    if isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and not hasattr(None, node.attr.value)):
        return (node.value,)
    return ()
