"""Kernels that read a gradient as if it had another number of elements: of an output that is reduced on some path."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.layout_uses import keeps_arguments
from ctxlint.model.analyses.output_shapes import reduced_tensor
from ctxlint.model.analyses.returns import returned_by
from ctxlint.model.analyses.unconditional_gradients import as_method
from ctxlint.model.analyses.unread_arguments import taken_by_callee
from ctxlint.model.analyses.unreduced_paths import ABOUT_TENSORS, leaves_unreduced
from ctxlint.model.index.kernel_parameters import always_reads_several, gets_bare_address, reads_only_first
from ctxlint.model.interpreter.effects import whole_of
from ctxlint.model.interpreter.events import Assigned, GenericCall, GradientLaunch, Question
from ctxlint.model.interpreter.values import NONE, Fresh, Parameter, Tri, before_views
from ctxlint.model.syntax import ancestors, code_of, dotted, parents_below, without_negations, words_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api.operations import SAME_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class ReducedOutput(NamedTuple):
    """An output that is the tensor ``whole`` on one path, and ``reduction``, one number, on another.

    ``shown``: the code of forward, or a call in view, shows that callers get the former.
    """

    whole: str
    reduction: str
    shown: bool


class MisreadGradient(NamedTuple):
    """A launch whose kernel reads the ``first`` element of a gradient alone, or else a range of it, on all paths."""

    launch: GradientLaunch
    gradient: str
    output: ReducedOutput
    first: bool


def misread_gradients(fn: FunctionClass) -> Iterator[MisreadGradient]:
    """The launches in backward that read a gradient with one number of elements, whatever forward has returned."""
    backward = fn.judgeable_backward
    launches = backward.facts.of(GradientLaunch) if backward is not None else ()
    if backward is None or not launches or not keeps_arguments(backward):
        return
    found: set[tuple[int, str, bool]] = set()
    for each in launches:
        into, gradient = each.parameter, each.gradient
        if into is None or not isinstance(gradient, Parameter) or each.in_loop or not all(map(is_usual, each.guards)):
            continue
        if not gets_bare_address(into.kernel, into.name, into.aliases):
            continue
        first = into.name in reads_only_first(into.kernel, into.aliases)
        if not first and into.name not in always_reads_several(into.kernel, into.aliases):
            continue
        output = _reduced_output(fn, gradient.index)
        known = (gradient.index, each.reader, first)
        if output is not None and known not in found and not _asks_for_its_size(backward, each, gradient):
            found.add(known)
            yield MisreadGradient(each, gradient.name, output, first)


def is_usual(guard: Guard) -> bool:
    """Whether a test is about None, or only finds that a tensor is not equal to one of the number 1."""
    if guard.asks is not None:
        return guard.asks.question is Question.IS_NONE and not guard.asks.answer
    if guard.test is None:
        return False
    test, holds = without_negations(guard.test, guard.holds)
    return not holds and is_test_for_one(test)


def is_test_for_one(test: cst.CSTNode | None) -> bool:
    """Whether it is ``torch.equal(x, torch.tensor(1.0))``, which does not hold for a tensor of several numbers."""
    if not isinstance(test, cst.Call) or dotted(test.func) != "torch.equal" or len(test.args) != 2:
        return False
    made = test.args[1].value
    first = made.args[0].value if isinstance(made, cst.Call) and made.args else None
    return (
        isinstance(made, cst.Call)
        and dotted(made.func) == "torch.tensor"
        and isinstance(first, (cst.Float, cst.Integer))
    )


def _reduced_output(fn: FunctionClass, position: int) -> ReducedOutput | None:
    """The output at a position, if it is reduced on some path only."""
    forward = fn.forward
    if forward is None or not all(each.exact and position < len(each.slots) for each in fn.outputs):
        return None
    options = [option for each in fn.outputs for option in each.slots[position].value.options()]
    found = _reduced_among(fn, forward, options)
    made, *others = map(before_views, options or (NONE,))
    if found is not None or not isinstance(made, Fresh) or any(_call_of(made) != _call_of(each) for each in others):
        return found
    calls = (each.definition for each in forward.facts.of(GenericCall) if each.node is made.node)
    home = next((each for each in calls if each is not None), None)
    helper = as_method(forward, home) if home is not None else None
    if helper is None:
        return None
    returned, at = returned_by(helper), made.part or 0
    if not all(each.exact and at < len(each.slots) for each in returned):
        return None
    inside = [option for each in returned for option in each.slots[at].value.options()]
    found = _reduced_among(fn, helper, inside)
    return found._replace(shown=False) if found is not None and _may_refuse(forward) else found


def _call_of(value: Value) -> tuple[cst.CSTNode | None, int] | None:
    """The call that gives a tensor, and the position of that in its result."""
    return (value.node, value.part or 0) if isinstance(value, Fresh) else None


def _reduced_among(fn: FunctionClass, method: Method, options: Sequence[Value]) -> ReducedOutput | None:
    """The tensor that is one of some values, perhaps as a view, while another one is the sum or mean of it."""
    known = [each for each in method.facts.of(Assigned) if each.value is not None]
    for each in options:
        reduced = reduced_tensor(method, each)
        held = [one.value for one in known if reduced is not None and one.name == reduced[0]]
        if reduced is not None and any(whole_of(other) in held for other in options if other is not each):
            whole, reduction = reduced
            chosen = (
                method is fn.forward and len(options) == 2 and not _may_refuse(method) and _is_chosen(fn, reduction)
            )
            shown = chosen or leaves_unreduced(fn, method) is Tri.YES
            return ReducedOutput(whole, code_of(reduction), shown)
    return None


def _is_chosen(fn: FunctionClass, reduction: cst.Call) -> bool:
    """Whether a call in view passes a literal with which forward does not reduce: ``False`` for ``if reduce:``."""
    if fn.forward is None:
        return False
    inner: cst.CSTNode = reduction
    for outer in fn.forward.above(reduction):
        if isinstance(outer, (cst.If, cst.IfExp)):
            test, holds = without_negations(outer.test, inner is not outer.body)
            flag = test.value if isinstance(test, cst.Name) else ""
            return flag not in fn.forward.binders and any(_passes(call, fn, flag, holds) for call in fn.calls)
        inner = outer
    return False


def _passes(call: ApplyCall, fn: FunctionClass, flag: str, holds: bool) -> bool:
    """Whether a call passes a literal with this truth for an input, and may differentiate what it gets."""
    if not call.applies or call.expects_error or call.gradients_off or call.discarded:
        return False
    codes = [code for at, code in call.literals if at < len(fn.inputs) and fn.inputs[at].name == flag]
    return any(bool(ast.literal_eval(code)) is holds for code in codes)


def _may_refuse(forward: Method) -> bool:
    """Whether forward may raise because of something else than a tensor."""
    return any(ABOUT_TENSORS.isdisjoint(words_of(each)) for each in forward.raising_tests)


def _asks_for_its_size(backward: Method, launch: GradientLaunch, gradient: Parameter) -> bool:
    """Whether backward may know how many elements a gradient has, or make as many as it wants.

    Or a function that launches the kernel for it.
    """
    bound = ((each.name, each.value.options()) for each in backward.facts.of(Assigned) if each.value is not None)
    names = {gradient.name, *(name for name, options in bound if gradient in map(before_views, options))}
    helpers = [each.node for each in backward.facts.of(GradientLaunch) if each.by and each.gradient == gradient]
    uses = (use for name in names for use in backward.named.get(name, ()))
    if any(_may_tell_size(backward.above(use), use, helpers) for use in uses):
        return True
    return bool(launch.by) and not all(_leaves_its_size(backward, each, names) for each in helpers)


def _leaves_its_size(backward: Method, call: cst.CSTNode, names: set[str]) -> bool:
    """Whether a function that gets a gradient, under one of its names, certainly leaves its size alone."""
    arguments = call.args if isinstance(call, cst.Call) else ()
    taken = [taken_by_callee(backward, each) for each in arguments if not names.isdisjoint(words_of(each.value))]
    known = [each for each in taken if each is not None]
    asks = any(_asks_inside(each.node, each.parameter) for each in known)
    return bool(known) and len(known) == len(taken) and not asks


def _asks_inside(function: cst.FunctionDef, parameter: str) -> bool:
    """Whether a function may do something with a parameter, or a copy of it, that is about its size."""
    parents = parents_below(function.body)
    copies = [(each.targets, before_copies(each.value)) for each in parents if isinstance(each, cst.Assign)]
    names, before = {parameter}, 0
    while len(names) > before:
        before = len(names)
        taken = [targets for targets, value in copies if isinstance(value, cst.Name) and value.value in names]
        names |= {each.target.value for targets in taken for each in targets if isinstance(each.target, cst.Name)}
    uses = (each for each in parents if isinstance(each, cst.Name) and each.value in names)
    return any(_may_tell_size(ancestors(parents, each), each) for each in uses)


def _may_tell_size(above: Iterable[cst.CSTNode], use: cst.Name, helpers: Sequence[cst.CSTNode] = ()) -> bool:
    """Whether what is done with a name may be about the size of its tensor.

    That is not so of a launch, of what keeps all elements, and of a call of one of the ``helpers``.
    """
    node: cst.CSTNode = use
    for around in above:
        if isinstance(around, cst.Attribute):
            if around.attr.value in ("device", "dtype"):
                return False
            if around.value is not node or around.attr.value not in SAME_ELEMENTS:
                return True
        elif isinstance(around, cst.Call):
            if around.func is not node:
                harmless = around in helpers or is_test_for_one(around)
                return not (harmless or isinstance(around.func, cst.Subscript))
        elif isinstance(around, (cst.Assign, cst.AnnAssign, cst.AssignTarget, cst.Param)):
            return False
        elif not isinstance(around, (cst.Arg, cst.Element, cst.Tuple)):
            return True
        node = around
    return False
