"""Wording of CTX301 and CTX302 about a stored tensor, depending on how backward uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state_uses import Asked
from ctxlint.model.analyses.stashes import Held
from ctxlint.model.interpreter.events import ContextCall, ContextRead
from ctxlint.model.syntax import code_of
from ctxlint.rules.wording import quoted, them

if TYPE_CHECKING:
    from ctxlint.model.analyses.stashes import Stash
    from ctxlint.model.function import FunctionClass


def metadata_clause(stash: Stash) -> str:
    """The end of the fact if backward does not read the tensor's values: ``, of which backward reads only `shape```."""
    uses = stash.uses
    if not uses.only_metadata:
        return ""
    method = f"`{stash.fn.backward.name}`" if stash.fn.backward is not None else "backward"
    read, tested = quoted(sorted(uses.metadata, key=_in_order)), _tested(stash)
    if read:
        return f", of which {method} reads only {read}" + (f", and whether {tested}" if tested else "")
    return f", of which {method} tests only whether {tested}" if tested else f", which {method} does not use"


def _tested(stash: Stash) -> str:
    """What backward needs to know of the tensor besides metadata: ``it is `None```; empty if nothing."""
    they = "they are" if len(stash.names) > 1 and not stash.one_of else "it is"
    tests = stash.uses.tests if not stash.uses.metadata else stash.uses.tests - {Asked.TYPE}
    return " and ".join(f"{they} {_TESTED[each]}" for each in Asked if each in tests)


_TESTED = {Asked.IS_NONE: "`None`", Asked.IS_EMPTY: "empty", Asked.TYPE: "a tensor"}


def _in_order(metadata: str) -> tuple[int, str]:
    """The usual ones first, in the usual order: ``torch.zeros(shape, dtype=dtype, device=device)``."""
    usual = ("shape", "dtype", "layout", "device")
    return (usual.index(metadata) if metadata in usual else len(usual)), metadata


def _is_read_by_forward(stash: Stash) -> bool:
    reads = (each for method in stash.fn.context_methods for each in method.facts.of(ContextRead))
    return any(each.attribute == stash.write.attribute for each in reads)


def remedy(stash: Stash) -> str:
    """What to write instead."""
    if not stash.uses.only_metadata and stash.held is Held.COMPUTED and stash.may_be_scratch:
        return "Use `save_for_backward`, or allocate it in `backward` if no result is in it."
    if stash.held is Held.INPUT and stash.uses.of_this_object and not stash.contained:
        return f"Save it as well, and read its values from `{stash.fn.reading_ctx}.saved_tensors`."
    if stash.held is not Held.OUTPUT and not stash.uses.only_metadata:
        kept = _saved_already(stash) or _save_originals(stash)
        if kept:
            return kept
    if not stash.uses.only_metadata and not stash.contained and stash.may_be_a_number:
        default = ", which the default is not" * stash.is_a_number_by_default
        return f"Use `save_for_backward` if it is a tensor{default}."
    if not stash.uses.only_metadata:
        forward = " and, for `jvp`, `save_for_forward`" if _is_for_jvp(stash) else ""
        several = any(name.startswith("*") for name in stash.names)  # whatever the caller passes
        part = stash.with_others or several
        if stash.fn.saves and not forward:
            added = "the tensors in it" if part else "it" if stash.one_of else them(stash.names or ("it",))
            return f"Add {added} to `save_for_backward`{_unpacked_by_heirs(stash.fn)}."
        return f"Use `save_for_backward`{forward}{' for the tensors in it' * part}{_unpacked_by_heirs(stash.fn)}."
    needed = len(stash.uses.metadata) + bool(_tested(stash))
    if not needed:
        if _is_read_by_forward(stash):
            return "Keep it in a local variable instead."
        if stash.contained:
            in_order = any(each is not None and isinstance(each.index, int) for each in stash.places)
            return (
                f"Put `None` in {'their place' if len(stash.names) > 1 else 'its place'}."
                if in_order
                else "Leave it out."
            )
        return "Drop it and what reads it." if stash.write.attribute in stash.fn.reads_by_attribute else "Drop it."
    return f"Keep only {'that' if needed == 1 else 'those'}."


def _is_for_jvp(stash: Stash) -> bool:
    jvp = stash.fn.methods.get("jvp")
    return jvp is not None and stash.write.attribute in jvp.context_attributes


def saved_codes(stash: Stash) -> list[str]:
    """The code of what is saved of the same memory, each once."""
    return [*dict.fromkeys(code_of(each.node) for each in stash.saved_as if each.node is not None)]


def _saved_already(stash: Stash) -> str:
    """What to do if what it keeps is saved already."""
    saved = quoted(saved_codes(stash))
    if not stash.originals_are_saved or _is_for_jvp(stash) or not saved:
        return ""
    dropped = f"Leave {them(stash.names or ('it',))} out" if stash.contained else "Drop it"
    return f"{dropped}, and read the saved {saved}."


def _save_originals(stash: Stash) -> str:
    """What to do if another view is to be saved than the one that it keeps, or that is saved."""
    several, named = len(stash.names) > 1 and not stash.one_of, quoted(stash.names, "or" if stash.one_of else "and")
    if stash.untracked:
        original = f"the original{'s' * several} {named}" if stash.names else "the output"
        return f"Save {original} with `save_for_backward`, not {'their' if several else 'its'} `.data`."
    if stash.held is not Held.INPUT or not stash.is_noticed:
        return ""
    return "Save the originals instead, and read those." if several else f"Save {named} itself instead, and read that."


def _unpacked_by_heirs(fn: FunctionClass) -> str:
    """The end of the remedy if several classes may unpack what one saves: those that inherit the method that does."""
    saving = (method for method in fn.context_methods for call in method.facts.of(ContextCall) if _saves(call))
    method = next(saving, None)
    if method is None or not (fn.has_subclass or method.inherited):
        return ""
    backward = fn.backward.name if fn.backward is not None else "backward"
    return f", and unpack it in each `{backward}` after this `{method.name}`"


def _saves(call: ContextCall) -> bool:
    return call.method == "save_for_backward"
