"""Turns of phrase that the messages of several rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.files.source import Span
    from ctxlint.model.functions import FunctionClass, Returned
    from ctxlint.model.method import Method


def quoted(names: Iterable[str], conjunction: str = "and") -> str:
    """```a`, `b` and `c```: names in code quotes, joined as a sentence joins them."""
    marked = [f"`{name}`" for name in names]
    if len(marked) < 2:
        return "".join(marked)
    return f"{', '.join(marked[:-1])} {conjunction} {marked[-1]}"


def counted(number: int, noun: str) -> str:
    """``1 input``, ``2 inputs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def place_of_gradients(fn: FunctionClass, returned: Returned) -> Span:
    """Where to speak of what backward returns: at the return, or at this class's own part where it is inherited."""
    if fn.backward is None or fn.backward.inherited:
        return own_place(fn, fn.backward)
    return fn.span(returned.node)


def own_place(fn: FunctionClass, method: Method | None) -> Span:
    """The name of a method, or of another part of this class where the method is inherited."""
    for each in (method, fn.forward):
        if each is not None and not each.inherited:
            return fn.span(each.node.name)
    return fn.span(fn.node.name)
