"""Explanations, in sentences, why something about a Function is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.explain.locations import one_line, place_of
from ctxlint.model.interpreter.events import Escape
from ctxlint.model.interpreter.values import Tri
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


def notes_of(fn: FunctionClass) -> Iterator[str]:
    """The notes on a Function, in the order of their subjects: the class, its methods, ctx."""
    if not fn.bases_known:
        yield "a base class cannot be resolved: it may define more"
    if fn.patched:
        yield "methods are assigned elsewhere or conditionally: they may differ from the definitions here"
    yield from _on_methods(fn)
    for method in _protocol_methods(fn):
        for decorator in method.decorators:
            if decorator.keeps_signature is not Tri.YES:
                name = one_line(fn, decorator.node.decorator)
                yield f"`@{name}` may change the arguments and the result of {method.name}"
    for method in _protocol_methods(fn):
        for escape in method.facts.of(Escape):
            yield _on_escape(fn, method, escape)


def _protocol_methods(fn: FunctionClass) -> list[Method]:
    return [fn.methods[name] for name in PROTOCOL if name in fn.methods]


def _on_methods(fn: FunctionClass) -> Iterator[str]:
    for name, method in (("forward", fn.forward), ("backward", fn.backward)):
        if method is None:
            yield f"{name} is defined neither in this class nor in a base class that can be resolved"
        elif not method.facts.modelled:
            yield f"the body of {method.name} cannot be analysed"
        elif method.raises_only:
            yield f"{method.name} always raises"
        elif method.facts.falls_through is Tri.YES:
            yield f"{method.name} can end without `return`, which returns None"


_HOW = {"passed": "is passed on", "stored": "is stored", "returned": "is returned", "captured": "is captured"}


def _on_escape(fn: FunctionClass, method: Method, escape: Escape) -> str:
    place = place_of(fn, escape.node)
    line = f" ({place.where})" if place is not None else ""
    to = f" to `{one_line(fn, escape.node.func)}`" if isinstance(escape.node, cst.Call) else ""
    return f"ctx {_HOW.get(escape.how, 'leaves')}{to} in {method.name}{line}: its use there is unknown"
