"""Functions that forward runs and backward runs again, which draw other random numbers then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.hidden_parameters import input_behind, is_differentiated, runs_input
from ctxlint.model.interpreter.events import Differentiated
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import last_name, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method

_RANDOM = pattern(
    r"rng|random|seed|generator|device_states|determin|(?:set|restore|load|reset)_\w*state", re.IGNORECASE
)
"""What code mentions that treats the state of a generator of random numbers, or does without."""

_GRAD_MODE = frozenset(
    str.split("autocast device enable_grad inference_mode no_grad profile set_grad_enabled stream Stream")
)
"""Context managers that leave the state alone."""


@record
class Rerun:
    """A call in backward of what ``input`` holds, which forward has called as well."""

    node: cst.Call
    input: Input


def reruns(fn: FunctionClass) -> Rerun | None:
    """The first call in backward of a function that forward has run, if neither treats random numbers.

    Its result is differentiated: it is computed again for the graph that forward did not record.
    """
    backward, forward = fn.judgeable_backward, fn.forward
    inner = [each.node for each in backward.facts.of(Differentiated)] if backward is not None else []
    if backward is None or forward is None or not inner or forward.inherited or fn.escapes:
        return None
    if any(map(_treats_random_numbers, (forward, backward, *fn.context_methods))):
        return None
    for call in backward.nodes_of(cst.Call):
        held = input_behind(fn, backward, call.func)
        if held is None or held.is_tensor is Tri.YES or "backward" in last_name(call.func):
            continue
        if is_differentiated(backward, call, inner) and runs_input(fn, forward, held):
            return Rerun(call, held)
    return None


def _treats_random_numbers(method: Method) -> bool:
    """Whether a method may restore the state of a generator: it mentions one, or enters an unknown context."""
    entered = (each.item for around in method.nodes_of(cst.With) for each in around.items)
    names = (last_name(each.func if isinstance(each, cst.Call) else each) for each in entered)
    return any(map(_RANDOM.search, words_of(method.node))) or not _GRAD_MODE.issuperset(names)
