"""Autocast that backward enters again where forward ran under it, but with the dtype that is the default."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import ContextAttribute
from ctxlint.model.syntax import words_of
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_DTYPES = {"cuda": "float16", "cpu": "bfloat16"}
"""The dtype of ``torch.DEVICE.amp.autocast`` if it gets none, whatever that of an autocast around it is."""

_ASKING = {"torch.is_autocast_enabled": "cuda", "torch.is_autocast_cpu_enabled": "cpu"}
"""The functions that determine whether autocast is on, each with its device if it gets no argument."""


@record
class AutocastRerun:
    """Such a call of ``autocast`` in backward, with what forward keeps of its own autocast: an attribute of ctx."""

    node: cst.Call
    device: str
    attribute: str
    written: cst.CSTNode

    @property
    def dtype(self) -> str:
        """The dtype in which backward computes again."""
        return _DTYPES[self.device]


def autocast_reruns(fn: FunctionClass) -> Iterator[AutocastRerun]:
    """The calls of ``autocast`` in backward with a flag of forward, and without a dtype."""
    backward = fn.backward
    if backward is None or backward.inherited or not fn.source.holds("is_autocast") or fn.escapes:
        return
    if any(each.casts_inputs for method in fn.earlier_methods for each in method.decorators):  # autocast is off there
        return
    asked = _asked(fn)
    for call in backward.facts.of(GenericCall) if asked else ():
        device = _device(call.callee or "")
        if device is None or not isinstance(call.node, cst.Call) or not _is_entered(backward, call.node):
            continue
        keywords = [name for name, _slot in call.keywords]
        slots = (*call.arguments, *(slot for _name, slot in call.keywords))
        flag = slots[0].value if len(slots) == 1 and not slots[0].starred and keywords in ([], ["enabled"]) else None
        if not isinstance(flag, ContextAttribute):
            continue
        write, *others = fn.writes_by_attribute.get(flag.name) or (None,)
        if (
            write is not None
            and not others
            and asked.get(_behind(fn, write.value_node)) == device
            and not _may_know_dtype(fn)
        ):
            yield AutocastRerun(call.node, device, flag.name, write.node)


_DTYPE = pattern(r"autocast\w*(dtype|kwargs)|dtype\w*autocast|float16|half|bf16|fp16", re.IGNORECASE)
"""What a method mentions that may know the dtype."""


def _may_know_dtype(fn: FunctionClass) -> bool:
    return any(_DTYPE.search(word) for each in fn.methods.values() for word in words_of(each.node))


def _device(callee: str) -> str | None:
    """The device of ``torch.cuda.amp.autocast``."""
    parts = callee.split(".")
    known = len(parts) > 3 and parts[0] == "torch" and parts[2] == "amp" and parts[-1] == "autocast"
    return parts[1] if known and parts[1] in _DTYPES else None


def _is_entered(backward: Method, call: cst.Call) -> bool:
    """Whether a call is an item of ``with``."""
    return isinstance(backward.parents[call], cst.WithItem)


def _asked(fn: FunctionClass) -> dict[cst.CSTNode | None, str]:
    """The calls in forward that determine whether autocast is on, each with the device."""
    calls = (call for method in fn.earlier_methods for call in method.facts.of(GenericCall))
    without = (call for call in calls if call.callee in _ASKING and not (call.arguments or call.keywords))
    return {call.node: _ASKING[call.callee] for call in without if call.callee is not None}


def _behind(fn: FunctionClass, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """An expression of forward, or what a name there is bound to."""
    found = (method.behind_name(node) for method in fn.earlier_methods)
    return next((each for each in found if each is not None), None)
