"""What hangs on the release of torch, and is asked by more than one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import Style

if TYPE_CHECKING:
    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.gradient_placements import Expectation
    from ctxlint.model.function import FunctionClass


def defaults_are_bound(fn: FunctionClass, settings: Settings) -> bool:
    """Whether, in some release, the inputs that a call leaves out count: beside ``setup_context``, from 2.2 on."""
    return fn.style is Style.SETUP_CONTEXT and settings.torch.reach(2, 2)


def at_backward(expected: Expectation, settings: Settings) -> str:
    """Where torch raises about the number of gradients: on any release, or on those that count what is left out."""
    newer_only = expected.counts_defaults and settings.torch.fall_below(2, 2)
    return "at backward since 2.2" if newer_only else "at backward"
