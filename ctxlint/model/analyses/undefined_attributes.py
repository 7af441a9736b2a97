"""Reads of attributes of ctx that nothing sets: they raise AttributeError, and nothing after them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reachability import methods_that_run, never_taken
from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.index.attribute_stores import stored_on_others
from ctxlint.model.interpreter.events import (
    ContextCall,
    ContextRead,
    ContextWrite,
    Mutation,
    NeedsInputGradRead,
    Question,
    SavedRead,
)
from ctxlint.model.interpreter.values import Parameter, is_input
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Event, Guard
    from ctxlint.model.interpreter.method import Method


def undefined_reads(fn: FunctionClass) -> tuple[tuple[Method, ContextRead], ...]:
    """The reads of attributes of ctx that certainly raise AttributeError, each with the method that runs it."""
    if undefined_reads not in fn.notes:  # cached because several rules need it
        fn.notes[undefined_reads] = tuple(_find(fn)) if attributes_known(fn) else ()
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
        by_hand = method.name in fn.called_directly  # with another ctx
        for read in method.facts.of(ContextRead) if _gets_the_ctx(method) and not by_hand else ():
            if _undefined(fn, read) or _comes_first(fn, method, read):
                if method is not fn.backward or not never_taken(fn, read.guards):
                    yield method, read


def attributes_known(fn: FunctionClass) -> bool:
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


def _comes_first(fn: FunctionClass, method: Method, read: ContextRead) -> bool:
    """Whether the first method that gets the ctx reads what it sets itself, but only later: ``ctx.n = ctx.n + 1``."""
    name, home = read.attribute, method.home
    if method not in fn.context_methods[:1] or home is None or read.in_loop or _is_protected(read):
        return False
    absent = [_absent_input(guard) for guard in read.guards]
    if any(each is not None and not _may_be_absent(fn, each) for each in absent):
        return False
    writes = fn.writes_by_attribute.get(name, ())
    if not writes or any(read.may_follow(each) for each in writes) or name in autograd.FUNCTION_CTX_ATTRIBUTES:
        return False
    elsewhere = name in stored_on_others(home.unit.index) or any(each.by for each in _writes(fn, name))
    return not elsewhere and all(
        method.is_on_ctx(each) for each in method.nodes_of(cst.Attribute) if _stores(method, each, name)
    )


def absent_inputs(read: ContextRead) -> Iterator[str]:
    """The inputs that are None where an attribute is read: ``if n is None: n = ctx.n``."""
    return (each.name for guard in read.guards if (each := _absent_input(guard)) is not None)


def _absent_input(guard: Guard) -> Parameter | None:
    """The input that a test finds to be None, or falsy as ``n`` in ``n or ctx.n``."""
    asks = guard.asks
    none = asks is not None and asks.question is Question.IS_NONE and asks.answer
    value = asks.value if asks is not None and none else None
    return value if is_input(value) else None


def _may_be_absent(fn: FunctionClass, entry: Parameter) -> bool:
    """Whether a call in view leaves an input out, or passes None, if there is any call."""
    calls = [call for call in fn.calls if call.applies]
    given = (call.arguments[entry.index : entry.index + 1] for call in calls if not call.starred)
    return not calls or any(not each or each[0] is ArgumentKind.NONE for each in given)


def _stores(method: Method, node: cst.Attribute, name: str) -> bool:
    """Whether an attribute has this name and is not just read."""
    if node.attr.value != name:
        return False
    return isinstance(method.parents.get(node), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Element))


def _is_protected(read: ContextRead) -> bool:
    return read.own or read.guarded or read.tried


def _undefined(fn: FunctionClass, read: ContextRead) -> bool:
    name = read.attribute
    if _is_protected(read):
        return False
    if name in fn.stored_attributes or name in autograd.FUNCTION_CTX_ATTRIBUTES or any(_writes(fn, name)):
        return False
    return not (name.startswith("__") and name.endswith("__"))


def _writes(fn: FunctionClass, name: str) -> Iterator[ContextWrite]:
    """Where a method sets it, perhaps through a function, or by a name that is not written there."""
    writes = (write for method in fn.methods.values() for write in method.facts.of(ContextWrite))
    return (write for write in writes if write.attribute == name)
