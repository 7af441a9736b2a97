"""What depends on the torch release in more than one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import Style

if TYPE_CHECKING:
    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.gradient_placements import Expectation
    from ctxlint.model.function import FunctionClass


def defaults_are_bound(fn: FunctionClass, settings: Settings) -> bool:
    """Whether, in some release, inputs that a call leaves out count: with ``setup_context``, since 2.2."""
    return fn.style is Style.SETUP_CONTEXT and settings.torch.reach(2, 2)


def at_backward(expected: Expectation, settings: Settings) -> str:
    """When torch raises about the number of gradients: on any release, or on those that count omitted inputs."""
    newer_only = expected.counts_defaults and settings.torch.fall_below(2, 2)
    return "at backward since 2.2" if newer_only else "at backward"
