"""Reads of names that a module of torch or NumPy does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.events import MisfitCall
from ctxlint.model.interpreter.names import certain_meaning
from ctxlint.model.syntax import dotted
from ctxlint.patterns import pattern
from ctxlint.torch_api.missing_names import is_missing

if TYPE_CHECKING:
    import libcst as cst

    from ctxlint.model.interpreter.walk import Walk


def note_missing(walk: Walk, node: cst.Attribute, module: str, *, called: bool = False) -> None:
    """Record an attribute access on a module of torch or NumPy that certainly has no such name, or no such function."""
    name = node.attr.value
    if called and not is_missing(module, name):
        name += "()"
    if walk.resolver is None or not is_missing(module, name) or is_tested_for_names(walk):
        return
    code = dotted(node)
    if code is not None and certain_meaning(walk, node.value) == module:
        misfit = walk.resolver.name_misfit(module, name, code)
        if misfit is not None:
            walk.record(MisfitCall, node, misfit=misfit)


def is_tested_for_names(walk: Walk) -> bool:
    """Whether a test around may be about a release, or about what a module has: such code has a reason.

    A test about no variable of the method counts, and so do a pattern of ``match`` and an ``except`` clause.
    """
    return any(
        guard.is_case
        or guard.arm == "except"
        or any(map(_ASKING.search, guard.words))
        or (guard.test is not None and walk.state.names.keys().isdisjoint(guard.words))
        for guard in walk.state.guards
    )


_ASKING = pattern(r"(?i:version|attr|legacy|compat|available|support|^(has|have|use|new|old|is)_)|^[A-Z][A-Z0-9_]+$")
"""The words of such tests: ``hasattr``, ``TORCH_VERSION``, ``HAS_FFT``, ``use_new_fft``."""
