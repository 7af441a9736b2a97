"""Merging two calls of ctx on the same path, of which the second overrides the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.method_code import code_of_method
from ctxlint.model.analyses.repeats import (
    always_follows,
    gradient_stopped,
    leaves_differentiable,
    repeats_arguments,
)
from ctxlint.model.analyses.saved_tensors import saving_call, unpacked_alone
from ctxlint.model.interpreter.events import SavedItem, SavedRead
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import names_in

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextCall
    from ctxlint.model.interpreter.method import Method


def merge_calls(fn: FunctionClass, method: Method, earlier: ContextCall, later: ContextCall) -> Fix | None:
    """Add the arguments of the first call to the second one, and remove the first one.

    Offered for two statements of one block. Safe if backward unpacks as many saved tensors as both calls have together:
    it currently raises. A first call whose arguments are all in the second one is only removed.
    """
    code = code_of_method(fn, method)
    if code is None or not isinstance(earlier.node, cst.Call) or not isinstance(later.node, cst.Call):
        return None
    first, second = code.statement(earlier.node), code.statement(later.node)
    if not isinstance(first, cst.Expr) or not isinstance(second, cst.Expr):
        return None
    if first.value is not earlier.node or second.value is not later.node or code.block(first) is not code.block(second):
        return None
    if earlier.has_keywords or later.has_keywords or not earlier.node.args or not later.node.args:
        return None
    layout = code.layout
    if any(not isinstance(each.value, cst.Name) for each in earlier.node.args):
        return None
    if code.rebound_between(names_in(earlier.node), layout.start(first), layout.start(second)):
        return None
    if repeats_arguments(earlier, later) and always_follows(method, later, earlier):
        return code.fix("Remove the first call", [code.without(first)], Applicability.SAFE)
    applicability = _applicability(fn, earlier, later)
    if applicability is None:
        return None
    arguments = [f"{each.star}{layout.code(each.value)}" for each in earlier.node.args]
    if earlier.method.startswith("mark_"):
        known = {f"{each.star}{layout.code(each.value)}" for each in later.node.args}
        arguments = [each for each in arguments if each not in known]
    before = [layout.insert(layout.start(later.node.args[0]), f"{', '.join(arguments)}, ")] if arguments else []
    return code.fix("Merge the calls", [code.without(first), *before], applicability)


def _applicability(fn: FunctionClass, earlier: ContextCall, later: ContextCall) -> Applicability | None:
    """The applicability of merging; None if backward cannot unpack the tensors, or reads what would be marked."""
    if earlier.method == "mark_non_differentiable":
        stops = any(gradient_stopped(fn, each) is not None for each in (earlier, later))
        if stops or not leaves_differentiable(fn, (earlier, later)):
            return None
    if not earlier.method.startswith("save_"):
        return Applicability.UNSAFE
    readers = [each for each in fn.reading_methods if saving_call(each) == earlier.method]
    unpackings = [each for method in readers for read in method.facts.of(SavedRead) for each in read.unpackings]
    if unpacked_alone(fn, later) is Tri.YES:
        return None
    if not earlier.exact or not later.exact:
        return Applicability.UNSAFE
    if not unpackings:
        items = [each for method in readers for each in method.facts.of(SavedItem)]
        of_later = items and all(0 <= each.index < len(later.arguments) for each in items)
        return None if of_later else Applicability.UNSAFE
    count = len(earlier.arguments) + len(later.arguments)
    if any(each.minimum > count if each.starred else each.minimum != count for each in unpackings):
        return None
    certain = fn.signature_judgeable and not fn.escapes and len(fn.context_calls(earlier.method)) == 2
    always = all(not each.guards and not each.starred for each in unpackings)
    return Applicability.SAFE if certain and always and later.implies(earlier) else Applicability.UNSAFE
