"""Reads of attributes of ctx that nothing sets: they raise AttributeError, and nothing after them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.reachability import methods_that_run
from ctxlint.model.interpreter.events import (
    ContextCall,
    ContextRead,
    ContextWrite,
    Mutation,
    NeedsInputGradRead,
    SavedRead,
)
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Method


def undefined_reads(fn: FunctionClass) -> tuple[tuple[Method, ContextRead], ...]:
    """The reads of attributes of ctx that certainly raise AttributeError, each with the method that runs it."""
    if undefined_reads not in fn.notes:  # cached because several rules need it
        fn.notes[undefined_reads] = tuple(_find(fn)) if _attributes_known(fn) else ()
    found: tuple[tuple[Method, ContextRead], ...] = fn.notes[undefined_reads]
    return found


def never_happens(fn: FunctionClass, method: Method, event: Event) -> bool:
    """Whether an event certainly comes after such a read: the method ends there."""
    return any(reader is method and event.implies(read) for reader, read in undefined_reads(fn))


def happening_mutations(fn: FunctionClass, method: Method) -> Iterator[Mutation]:
    """The in-place modifications in a method, except those that never happen."""
    return (each for each in method.facts.of(Mutation) if not never_happens(fn, method, each))


def _find(fn: FunctionClass) -> Iterator[tuple[Method, ContextRead]]:
    for method in methods_that_run(fn):
        for read in method.facts.of(ContextRead) if _gets_the_ctx(method) else ():
            if _undefined(fn, read):
                yield method, read


def _attributes_known(fn: FunctionClass) -> bool:
    """Whether everything that can set an attribute of this ctx is known."""
    forward = fn.forward
    if forward is None or forward.raises_only or fn.has_subclass or fn.patched or fn.escapes:
        return False
    if fn.legacy_state is not None:  # it is meant to be an instance (CTX108)
        return False
    if not (fn.bases_known and fn.class_decorators_known) or "backward" in fn.called_directly:
        return False
    methods = (forward, *fn.context_methods, *fn.reading_methods)
    if all(method.inherited for method in methods):
        return False
    reads = (read for method in methods for read in method.facts.of(ContextRead))
    if any(read.attribute in ("__setattr__", "__dict__") for read in reads):
        return False
    return all(method.facts.complete and method.context_known for method in methods)


def _gets_the_ctx(method: Method) -> bool:
    """Whether the first parameter is meant as the ctx: if a Function serves as a namespace, it is a tensor."""
    name = method.ctx.name.lower() if method.ctx is not None else ""
    if "ctx" in name or "context" in name or name == "self":
        return True
    return any(method.facts.of(kind) for kind in (ContextCall, ContextWrite, SavedRead, NeedsInputGradRead))


def _undefined(fn: FunctionClass, read: ContextRead) -> bool:
    name = read.attribute
    if read.own or read.guarded or any(guard.arm == "try" for guard in read.guards):
        return False
    if name in fn.stored_attributes or name in autograd.FUNCTION_CTX_ATTRIBUTES or _is_set(fn, name):
        return False
    return not (name.startswith("__") and name.endswith("__"))


def _is_set(fn: FunctionClass, name: str) -> bool:
    """Whether a method sets it, perhaps through a function, or by a name that is not written there."""
    writes = (write for method in fn.methods.values() for write in method.facts.of(ContextWrite))
    return any(write.attribute == name for write in writes)
