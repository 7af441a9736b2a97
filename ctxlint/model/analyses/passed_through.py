"""Incoming gradients that backward returns as they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.values import NONE, Parameter, Tri, Variadic, is_gradient

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Returned


def passed_through(fn: FunctionClass) -> cst.CSTNode | None:
    """The return of backward, if it is the only one, and all it returns are several incoming gradients, and None.

    None as well unless there are several outputs, and torch certainly passes zeros for those that no loss uses.
    """
    several = any(
        each.known and (len(each.slots) > 1 or any(slot.starred for slot in each.slots)) for each in fn.outputs
    )
    if not several or fn.materializes_grads is not Tri.YES or len(fn.gradients) != 1:
        return None
    returned = fn.gradients[0]
    return returned.node if returned.known and _passes_several(returned) else None


def _passes_several(returned: Returned) -> bool:
    given = [slot for slot in returned.slots if slot.value != NONE]
    plain = all(isinstance(slot.value, Variadic if slot.starred else Parameter) for slot in given)
    if not plain or any(getattr(slot.value, "role", "") != "gradient" for slot in given):
        return False
    return any(slot.starred for slot in given) or len({slot.value for slot in given}) > 1


def is_identity(fn: FunctionClass, index: int) -> bool:
    """Whether backward does nothing but return the gradient of the only output for one input, and None for others."""
    backward = fn.backward
    if backward is None or len(backward.own_params) != 1 or any(each.count != 1 for each in fn.outputs):
        return False
    passed: set[cst.CSTNode] = set()
    for returned in fn.gradients:
        given = [at for at, slot in enumerate(returned.slots) if slot.value != NONE]
        if not returned.known or given != [index] or not is_gradient(returned.slots[index].value):
            return False
        passed.update(slot.node for slot in returned.slots if isinstance(slot.node, cst.Name))
    used = backward.named[backward.own_params[0].name]
    return bool(passed) and all(each in passed or isinstance(backward.parents[each], cst.Param) for each in used)
