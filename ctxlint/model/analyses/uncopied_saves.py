"""Saved inputs that backward gives to compiled code as they came, though forward gives it a contiguous copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import MemoryRead
from ctxlint.model.interpreter.summary import EXTENSION, KERNEL
from ctxlint.model.interpreter.values import View, is_input
from ctxlint.model.syntax import last_name, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_READING = (KERNEL, EXTENSION, "data_ptr")


def uncopied_saves(fn: FunctionClass) -> Iterator[tuple[cst.Name, MemoryRead]]:
    """Where backward passes such an input, with how the compiled code gets it; not if a method mentions strides."""
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or backward.inherited or fn.escapes:
        return
    copied = {
        each.value.of.index
        for each in forward.facts.of(MemoryRead)
        if each.how in _READING and isinstance(each.value, View) and is_input(each.value.of) and _is_copy(each.value)
    }
    reads = [each for each in backward.facts.of(MemoryRead) if each.how in _READING] if copied else []
    if not reads or any("stride" in word for each in (forward, backward) for word in words_of(each.node.body)):
        return
    for name, uses in backward.named.items():
        stored = kept_value(fn, backward.value_of(name))
        if not is_input(stored) or stored.index not in copied:
            continue
        found = ((use, read) for use in uses for read in reads if _is_passed(backward, use, read))
        yield from [*found][:1]


def _is_copy(view: View) -> bool:
    """Whether it is ``x.contiguous()``."""
    return isinstance(view.node, cst.Call) and last_name(view.node.func) == "contiguous"


def _is_passed(backward: Method, use: cst.Name, read: MemoryRead) -> bool:
    """Whether compiled code gets a tensor in the same way: in the same call, or by ``data_ptr()`` as well."""
    around = backward.parents[use]
    if isinstance(around, cst.Arg):
        return read.how != "data_ptr" and backward.parents[around] is read.node
    return read.how == "data_ptr" and isinstance(around, cst.Attribute) and around.attr.value == "data_ptr"
