"""Kernels that read a gradient as if it had another number of elements: of an output that is reduced on some path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.layout_uses import keeps_arguments
from ctxlint.model.analyses.output_shapes import reduced_tensor
from ctxlint.model.analyses.returns import returned_by
from ctxlint.model.analyses.unconditional_gradients import as_method
from ctxlint.model.index.kernel_parameters import always_reads_several, gets_bare_address, reads_only_first
from ctxlint.model.interpreter.events import Assigned, GenericCall, GradientLaunch
from ctxlint.model.interpreter.values import Fresh, Parameter, before_views
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api.operations import SAME_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class ReducedOutput(NamedTuple):
    """An output that is the tensor ``whole`` on one path, and ``reduction``, one number, on another."""

    whole: str
    reduction: str


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
    for each in launches:
        into, gradient = each.parameter, each.gradient
        if into is None or not isinstance(gradient, Parameter) or each.guards or each.in_loop:
            continue
        if not gets_bare_address(into.kernel, into.name, into.aliases):
            continue
        first = into.name in reads_only_first(into.kernel, into.aliases)
        if not first and into.name not in always_reads_several(into.kernel, into.aliases):
            continue
        output = _reduced_output(fn, gradient.index)
        if output is not None and not _asks_for_its_size(backward, gradient):
            yield MisreadGradient(each, gradient.name, output, first)


def _reduced_output(fn: FunctionClass, position: int) -> ReducedOutput | None:
    """The output at a position, if it is reduced on some path only."""
    forward = fn.forward
    if forward is None or not all(each.exact and position < len(each.slots) for each in fn.outputs):
        return None
    options = [option for each in fn.outputs for option in each.slots[position].value.options()]
    found = _reduced_among(forward.facts.of(Assigned), options)
    if found is not None or len(options) != 1 or not isinstance(options[0], Fresh):
        return found
    made = options[0]
    calls = (each.definition for each in forward.facts.of(GenericCall) if each.node is made.node)
    home = next((each for each in calls if each is not None), None)
    helper = as_method(forward, home) if home is not None else None
    if helper is None:
        return None
    returned, at = returned_by(helper), made.part or 0
    if not all(each.exact and at < len(each.slots) for each in returned):
        return None
    return _reduced_among(
        helper.facts.of(Assigned), [option for each in returned for option in each.slots[at].value.options()]
    )


def _reduced_among(assigned: Iterable[Assigned], options: Sequence[Value]) -> ReducedOutput | None:
    """The tensor that is one of some values, while another one is the sum or mean of it."""
    known = [each for each in assigned if each.value is not None]
    for each in options:
        whole, reduction = reduced_tensor(each) or ("", "")
        held = [one.value for one in known if one.name == whole]
        if any(other in held for other in options if other is not each):
            return ReducedOutput(whole, reduction)
    return None


def _asks_for_its_size(backward: Method, gradient: Parameter) -> bool:
    """Whether backward may know how many elements a gradient has, or make as many as it wants."""
    bound = ((each.name, each.value.options()) for each in backward.facts.of(Assigned) if each.value is not None)
    names = {gradient.name, *(name for name, options in bound if gradient in map(before_views, options))}
    return any(_may_tell_size(backward, use) for name in names for use in backward.named.get(name, ()))


def _may_tell_size(backward: Method, use: cst.Name) -> bool:
    """Whether what is done with a name may be about the size of its tensor: no launch, nor what keeps all elements."""
    node: cst.CSTNode = use
    for around in backward.above(use):
        if isinstance(around, cst.Attribute):
            if around.value is not node or around.attr.value not in SAME_ELEMENTS:
                return True
        elif isinstance(around, cst.Call):
            if around.func is not node:
                return not isinstance(around.func, cst.Subscript)
        elif isinstance(around, (cst.Assign, cst.AnnAssign, cst.AssignTarget, cst.Param)):
            return False
        elif not isinstance(around, (cst.Arg, cst.Element, cst.Tuple)):
            return True
        node = around
    return False
