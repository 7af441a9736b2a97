"""Code that may make a GPU the current one: context managers, decorators, and calls that set the device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import dotted, last_name, parents_below, words_of
from ctxlint.patterns import pattern
from ctxlint.torch_api.known_decorators import DEVICE_CHOOSING, DEVICE_KEEPING_CONTEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTING = pattern(r"set_device|exchange_device|enter_context|__enter__", re.IGNORECASE)
"""What a function mentions that lasts when the function returns that does it."""


def may_run_on_device(function: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """Whether a function may make a GPU the current one before some code in it runs."""
    if any(map(DEVICE_CHOOSING.search, words_of(function))):
        return True
    parents = parents_below(function)
    above: cst.CSTNode | None = node
    while above is not None:
        if isinstance(above, cst.With) and not _leave_device(above):
            return True
        above = parents.get(above)
    return False


def sets_device(function: cst.FunctionDef) -> bool:
    """Whether a function may make another GPU the current one for what its caller runs next."""
    return any(map(SETTING.search, words_of(function)))


def mentions_device(decorator: cst.FunctionDef) -> bool:
    """Whether a decorator may run the function on another device: it mentions one, or enters an unknown context."""
    if any("device" in word.lower() or DEVICE_CHOOSING.search(word) for word in words_of(decorator)):
        return True
    return not all(map(_leave_device, _entered_in(decorator)))


def _entered_in(function: cst.FunctionDef) -> Iterator[cst.With]:
    return (each for each in parents_below(function) if isinstance(each, cst.With))


def _leave_device(node: cst.With) -> bool:
    """Whether all context managers of a statement leave the current device alone.

    ``torch.device`` is one of these: it only chooses where new tensors are created.
    """
    entered = (each.item.func if isinstance(each.item, cst.Call) else each.item for each in node.items)
    return all(last_name(each) in DEVICE_KEEPING_CONTEXTS or dotted(each) == "torch.device" for each in entered)
