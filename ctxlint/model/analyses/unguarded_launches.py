"""Launches of kernels of Triton in forward that are on the current GPU, whichever GPU the inputs are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.called_code import calls_what_sets_device
from ctxlint.model.index.device_choices import may_run_on_device
from ctxlint.model.interpreter.events import FaultyLaunch, KernelFaultKind
from ctxlint.model.interpreter.values import Tri
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import KernelFault
    from ctxlint.model.interpreter.method import Method


@record
class UnguardedLaunch:
    """Such a launch; ``tensor`` is the name of an input that certainly is a tensor, empty if there is none."""

    method: Method
    event: FaultyLaunch
    fault: KernelFault
    tensor: str


def unguarded_launches(fn: FunctionClass) -> Iterator[UnguardedLaunch]:
    """The launches before backward, for which autograd's engine chooses the GPU."""
    if any(each.on_device for each in fn.calls):
        return
    if any(map(calls_what_sets_device, fn.earlier_methods)):
        return
    tensor = next((each.name for each in fn.inputs if each.is_tensor is Tri.YES), "")
    for method in fn.earlier_methods:
        if method.inherited or not all(each.keeps_device for each in method.decorators):
            continue
        for event in method.facts.of(FaultyLaunch):
            fault = event.fault
            if fault is not None and fault.kind is KernelFaultKind.UNGUARDED and not is_guarded(method.node, event):
                yield UnguardedLaunch(method, event, fault, tensor)


def is_guarded(function: cst.FunctionDef, event: FaultyLaunch) -> bool:
    """Whether a function may put a launch on a chosen GPU, or does something else where it raises."""
    return event.tried or may_run_on_device(function, event.node)
