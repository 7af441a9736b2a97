"""Wording of CTX301 and CTX302 about a stored tensor, depending on how backward uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from ctxlint.model.analyses.stashes import Stash


def metadata_clause(stash: Stash) -> str:
    """The end of the fact if backward does not read the tensor's values: ``, of which backward wants `shape```."""
    if not stash.uses.only_metadata:
        return ""
    method = f"`{stash.fn.backward.name}`" if stash.fn.backward is not None else "backward"
    if not stash.uses.metadata:
        return f", which {method} does not use"
    return f", of which {method} reads only {quoted(sorted(stash.uses.metadata, key=_in_order))}"


def _in_order(metadata: str) -> tuple[int, str]:
    """The usual ones first, in the usual order: ``torch.zeros(shape, dtype=dtype, device=device)``."""
    usual = ("shape", "dtype", "layout", "device")
    return (usual.index(metadata) if metadata in usual else len(usual)), metadata


def remedy(stash: Stash) -> str:
    """What to write instead."""
    if not stash.uses.only_metadata:
        return f"Use `save_for_backward`{' for the tensors in it' if stash.with_others else ''}."
    if not stash.uses.metadata:
        return "Drop it."
    return f"Keep only {'that' if len(stash.uses.metadata) == 1 else 'those'}."
