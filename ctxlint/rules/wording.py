"""Turns of phrase that the messages of several rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.files.source import Span
    from ctxlint.model.functions import FunctionClass, Returned


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
    """Where to speak of what backward returns: at the return, or at what is this class's own where that is inherited."""
    if fn.backward is not None and not fn.backward.inherited:
        return fn.span(returned.node)
    if fn.forward is not None and not fn.forward.inherited:
        return fn.span(fn.forward.node.name)
    return fn.span(fn.node.name)
