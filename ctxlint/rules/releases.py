"""What depends on the torch release in more than one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.flags import refused_flags
from ctxlint.model.analyses.reachability import absent_gradients
from ctxlint.model.function import Style
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.gradient_placements import Shortfall
    from ctxlint.model.function import FunctionClass


def defaults_are_bound(fn: FunctionClass, settings: Settings) -> bool:
    """Whether, in some release, inputs that a call leaves out count: with ``setup_context``, since 2.2."""
    return fn.style is Style.SETUP_CONTEXT and settings.torch.reach(2, 2)


def refusing_torch(fn: FunctionClass, settings: Settings) -> str:
    """What raises if gradients do not fit the inputs: since 2.11, not code that ``torch.compile`` gets.

    Messages have that only where all calls in view are compiled.
    """
    calls = [call for call in fn.calls if call.applies]
    compiled = bool(calls) and all(call.compiled for call in calls)
    return "eager torch" if compiled and settings.torch.reach(2, 11) else "torch"


def at_backward(fn: FunctionClass, shortfall: Shortfall, settings: Settings) -> str:
    """When torch raises about the number of gradients: in which releases, and for which inputs."""
    newer_only = shortfall.expected.counts_defaults and settings.torch.fall_below(2, 2)
    refused = sorted(refused_flags(shortfall.returned.event.guards))
    names = quoted([fn.inputs[at].name for at in refused if at < len(fn.inputs)], "and")
    needs = "needs" if len(refused) == 1 else "need"
    when = f" if {names} {needs} no gradient" if names else ""
    if shortfall.expected.if_passed:
        when = f" if a call passes `{shortfall.expected.if_passed}`"
    gradients = fn.backward.own_params if fn.backward is not None else ()
    if 0 < len(gradients) <= len(absent_gradients(shortfall.returned.event.guards)):
        when = " if no gradient arrives"
    return f"at backward{' since 2.2' if newer_only else ''}{when}"
