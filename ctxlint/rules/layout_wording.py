"""The messages about tensors that are assumed to be contiguous: incoming gradients, and new ones with their layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.layout_uses import FOREIGN, LENT, OTHERS
from ctxlint.model.interpreter.summary import COLLECTIVE, EXTENSION, KERNEL, PARTLY_STRIDED, SENT
from ctxlint.model.syntax import code_of
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from ctxlint.model.analyses.flattened_writes import FlattenedWrite
    from ctxlint.model.analyses.layout_uses import LayoutUse

_ELSE_WRONG = "silently reads wrong values"
_WRONG = "silently reads wrong values of transposed or expanded ones"
_WRONG_IF_EXPANDED = "silently reads wrong values of expanded ones, such as that of a sum"


def assumed_contiguous(use: LayoutUse, *, alone: bool = False, among: bool = False) -> str:
    """What is assumed, what happens, and the remedy.

    ``alone``: others are made contiguous; ``among``: the kernel gets inputs as they came.
    """
    instead, passed = "Call `.contiguous()` first.", f"`{use.reader}` gets the incoming gradient `{use.name}`"
    if use.by:
        on = " on" * (len(use.through) > 1)  # another function is between the two
        passed = f"`{use.by}` passes the incoming gradient `{use.name}`{on} to `{use.reader}`"
    if use.how == EXTENSION:
        of = "" if use.reshaped else " of transposed or expanded ones"
        layout = f"after `{use.reshaped}`, which keeps its strides if possible" if use.reshaped else "in any layout"
        effect = f"unless {'the callee' if use.by else 'it'} handles strides, the call raises, or {_ELSE_WRONG}"
        return fitting(
            *[f"{passed} {layout}, while others are made contiguous; {effect}. {instead}"] * alone,
            f"{passed} {layout}; {effect}{of}. {instead}",
        )
    if use.how == COLLECTIVE:
        return f"{passed} in any layout; with NCCL, it raises ValueError for transposed or expanded ones. {instead}"
    if use.how == SENT:
        sent = "Gloo raises, and NCCL sends the raw memory"
        return f"{passed} in any layout; for transposed or expanded ones, {sent}. {instead}"
    if use.how == LENT:
        lends = f"`{use.reader}` addresses" if not use.by else f"`{use.by}` lets `{use.reader}` address"
        other = f"`{use.other}`" if use.other else "another tensor"
        wrong = "those of a sum are 0, and it silently uses wrong elements"
        return f"{lends} {other} with strides of the incoming gradient `{use.name}`; {wrong}. {instead}"
    if use.how == FOREIGN:
        other = f"`{use.other}`" if use.other else "another tensor"
        unless = f"unless both have the same layout, it {_ELSE_WRONG}"
        return f"{passed} with strides of {other}; {unless}. Make both contiguous, or pass the strides of each."
    if use.how == OTHERS:
        return f"{passed} with strides of other tensors only; it {_WRONG_IF_EXPANDED}. Add parameters for its strides."
    if use.how == KERNEL:
        return _of_multiple(use) if use.passed else f"{passed} but none of its strides; it {_wrong_in(use, among)}"
    if use.how == PARTLY_STRIDED:
        takes = f"{passed}, which takes" if use.by else f"`{use.reader}` takes"
        whose = "its last stride" if use.by else f"the last stride of the incoming gradient `{use.name}`"
        return f"{takes} {whose} to be 1; it {_WRONG_IF_EXPANDED}. {instead}"
    fact = f"`{use.name}.{use.how}` assumes a contiguous gradient"
    if use.by:
        calls = f"has `{use.how}` called" if len(use.through) > 1 else f"calls `{use.how}`"
        fact = f"`{use.by}` {calls} on the incoming gradient `{use.name}`"
    if use.how == "view":
        instead = instead if use.by or use.compiled else "Use `reshape`."
        return f"{fact}; this raises RuntimeError for many transposed or expanded ones. {instead}"
    return f"{fact}; this {_WRONG}. {instead}"


def lost_write(written: FlattenedWrite) -> str:
    """What is written by a copy, if the layout is not the usual one, and the remedy."""
    fact, name = f"`{written.name}` is written by way of `{code_of(written.copy)}`", written.name
    effect = f"if `{written.like}` is transposed, that is a copy, and `{name}` silently stays as it was created"
    return f"{fact}; {effect}. Make `{name}` with `memory_format=torch.contiguous_format`."


def _wrong_in(use: LayoutUse, among: bool) -> str:
    """What a kernel reads that gets no strides, and the remedy."""
    if among and not use.alike:
        return f"{_WRONG_IF_EXPANDED}. Make all that it reads contiguous."
    return f"{_WRONG_IF_EXPANDED if use.alike else _WRONG}. Call `.contiguous()` first."


def _of_multiple(use: LayoutUse) -> str:
    """About a kernel that gets what has the strides of a transposed gradient."""
    passed = f"`{use.reader}` gets `{use.passed}`"
    if use.by:
        passed = f"`{use.by}` passes `{use.passed}`{' on' * (len(use.through) > 1)} to `{use.reader}`"
    effect = f"for a transposed gradient `{use.name}`, it {_ELSE_WRONG}"
    return f"{passed} but none of its strides; {effect}. Call `.contiguous()` first."
