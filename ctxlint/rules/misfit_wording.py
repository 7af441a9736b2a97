"""Calls and launches with arguments that are not taken: which there are, and the words for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.absent_inputs import may_be_absent
from ctxlint.model.analyses.certain_raises import raises_inside_before
from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import FaultyLaunch, MisfitCall
from ctxlint.model.interpreter.values import is_input
from ctxlint.named_tuples import NamedTuple
from ctxlint.rules.wording import counted, if_it_runs, moment, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import (
        CutGrid,
        KernelFault,
        KernelFaultKind,
        LeftOut,
        Misfit,
        MisfitKind,
        Step,
        TrialEffect,
        TrialEffectRun,
    )
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class MisfitFound(NamedTuple):
    """A call that raises: the method and its event, the misfit, the caller as code ``by``, and ``when`` it happens.

    ``unless_skipped`` is the condition if it may not run.
    """

    method: Method
    event: MisfitCall
    misfit: Misfit
    by: str
    when: str
    unless_skipped: str


def misfits(fn: FunctionClass, kind: MisfitKind) -> Iterator[MisfitFound]:
    """The calls of functions or of kernels, or launches, that certainly raise, in the methods of a Function; each once.

    One in another function that forward always runs into is left out in backward: it raises first.
    """
    first: set[Step] = set()
    for method in sorted(_methods(fn), key=lambda each: not each.runs_before_backward):
        seen = set()
        for event in method.facts.of(MisfitCall):
            misfit, key = event.misfit, (event.misfit, None if event.by else event.node)
            if misfit is None or misfit.kind is not kind or event.tried or key in seen:
                continue
            seen.add(key)
            if first.intersection(misfit.steps[-1:]):
                continue
            by = innermost(fn, method, event, misfit)
            unsure = misfit.conditional or raises_inside_before(fn, method, event)
            skipped = " if that code runs" if unsure else if_it_runs(fn, method, event.node)
            if method.runs_before_backward and not misfit.conditional and runs(method, event.node) is Runs.ALWAYS:
                first.update(misfit.steps[-1:])
            yield MisfitFound(method, event, misfit, by, moment(method), skipped)


def _methods(fn: FunctionClass) -> Iterator[Method]:
    """The methods that torch calls, and ``symbolic``, which its exporter calls."""
    yield from fn.own_protocol_methods
    symbolic = fn.methods.get("symbolic")
    if symbolic is not None and not symbolic.inherited:
        yield symbolic


def innermost(
    fn: FunctionClass,
    method: Method,
    event: MisfitCall | TrialEffectRun | CutGrid | FaultyLaunch,
    found: Misfit | TrialEffect | LeftOut | KernelFault,
) -> str:
    """Who makes a call or launch: the method, or the last function on the way to it."""
    name = found.inside if len(found.steps) > 1 else event.by
    return f"`{name}`" if name else f"`{method.name}` of `{fn.name}`"


def faulty_launches(fn: FunctionClass, kind: KernelFaultKind) -> Iterator[tuple[FaultyLaunch, KernelFault, str]]:
    """The launches by a Function that get to a fault in a kernel, and who makes them; each fault once."""
    seen = set[tuple[str, str]]()
    for method in _methods(fn):
        for event in method.facts.of(FaultyLaunch):
            fault = event.fault
            if fault is not None and fault.kind is kind and (fault.callee, fault.code) not in seen:
                if fault.absent is None or _may_be_absent(fn, event, fault.absent):
                    seen.add((fault.callee, fault.code))
                    yield event, fault, innermost(fn, method, event, fault)


def _may_be_absent(fn: FunctionClass, event: FaultyLaunch, value: Value) -> bool:
    """Whether a value is an input that nothing keeps from being None where a kernel is launched."""
    kept = kept_value(fn, value) or value
    if event.is_chosen or not is_input(kept) or kept.index >= len(fn.inputs):
        return False
    return may_be_absent(fn, fn.inputs[kept.index])


def fact(misfit: Misfit) -> str:
    """What is wrong with the arguments: "without `x`"."""
    if misfit.surplus:
        passed = counted(misfit.takes + misfit.surplus, "argument")
        if not misfit.takes:
            return f"with {passed}, but it has no parameters"
        return f"with {passed} by position, but it has {counted(misfit.takes, 'parameter')}"
    if misfit.shifted:
        return "with too few arguments"
    if misfit.missing:
        few = len(misfit.missing) <= _MOST_NAMES
        return f"without {quoted(misfit.missing, 'and') if few else f'{len(misfit.missing)} of its parameters'}"
    if misfit.twice:
        return f"with {quoted(misfit.twice, 'and')} by position and by keyword"
    plural = "s" * (len(misfit.unknown) > 1)
    return f"with the keyword{plural} {quoted(misfit.unknown, 'and')}, which it does not have"


def remedy(misfit: Misfit) -> str:
    """What to write."""
    if misfit.surplus or misfit.shifted or len(misfit.missing) > 1:
        return "Pass one argument for each parameter"
    if misfit.missing:
        return f"Pass {them(misfit.missing)} too"
    if misfit.twice:
        return f"Pass {them(misfit.twice)} once"
    return f"Call a function that takes {them(misfit.unknown)}, or pass what it takes"


_MOST_NAMES = 4
"""The maximum number of parameters to list."""
