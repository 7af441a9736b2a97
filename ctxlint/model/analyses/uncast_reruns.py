"""Functions that backward runs to differentiate them, outside of the autocast that forward may run under."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.hidden_parameters import input_behind, is_differentiated, runs_input
from ctxlint.model.interpreter.events import Differentiated
from ctxlint.model.interpreter.values import Tri, is_input
from ctxlint.model.syntax import last_name, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method

_AUTOCAST = pattern(r"autocast|custom_fwd|custom_bwd|^amp$|checkpoint|restore", re.IGNORECASE)
"""What a method mentions that may enter autocast again."""

_GRAD_MODE = frozenset(str.split("device enable_grad fork_rng inference_mode no_grad profile record_function"))
"""Context managers that leave autocast alone."""

_PLAIN = frozenset(
    str.split(
        "staticmethod classmethod builtins.staticmethod builtins.classmethod torch.no_grad "
        "torch.autograd.function.once_differentiable torch.autograd.once_differentiable"
    )
)
"""Decorators that leave autocast alone."""


@record
class UncastRerun:
    """A call in backward of what ``input`` holds."""

    node: cst.Call
    input: Input


def uncast_reruns(fn: FunctionClass) -> UncastRerun | None:
    """The first call in backward of an input that is differentiated there, if no method mentions autocast."""
    backward, forward = fn.judgeable_backward, fn.forward
    inner = [each.node for each in backward.facts.of(Differentiated)] if backward is not None else []
    if backward is None or forward is None or not inner or forward.inherited or fn.escapes:
        return None
    if any(map(_may_restore, (*fn.methods.values(),))):
        return None
    for call in backward.nodes_of(cst.Call):
        held = input_behind(fn, backward, call.func)
        if held is None or held.is_tensor is Tri.YES or "backward" in last_name(call.func):
            continue
        if call.args and is_differentiated(backward, call, inner) and _may_have_run(fn, forward, held):
            return UncastRerun(call, held)
    return None


def _may_have_run(fn: FunctionClass, forward: Method, held: Input) -> bool:
    """Whether forward runs an input, or passes it on to what may, or returns results that its caller has computed."""
    if runs_input(fn, forward, held) or any(is_input(each.value) for each in forward.facts.returns):
        return True
    calls = (each for each in forward.nodes_of(cst.Call) if forward.ctx is None or not forward.is_on_ctx(each.func))
    return any(
        isinstance(each.value, cst.Name) and each.value.value == held.name for call in calls for each in call.args
    )


def _may_restore(method: Method) -> bool:
    """Whether a method may enter autocast, or a decorator or a context manager of it."""
    if any(map(_AUTOCAST.search, words_of(method.node))) or not _PLAIN.issuperset(
        each.name or "" for each in method.decorators
    ):
        return True
    entered = (each.item for around in method.nodes_of(cst.With) for each in around.items)
    names = (last_name(each.func if isinstance(each, cst.Call) else each) for each in entered)
    return not _GRAD_MODE.issuperset(names)
