"""Attention with dropout that backward differentiates without the random state, and so the mask, of forward."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.forgotten_flags import may_be_refused
from ctxlint.model.analyses.hidden_parameters import input_behind
from ctxlint.model.analyses.unread_arguments import certainly_called, taken_by_callee
from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.index.scopes import Scope, resolve
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import dotted, is_name, kept, last_name, parents_below, words_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method

_PROBABILITY = pattern(r"(?:(?:attn|attention)_)?(?:p_)?dropout(?:_(?:p|prob|rate|ratio))?")
"""What the probability of a dropout is called."""

_STATE = pattern(r"state|rng|seed|philox|random|generator", re.IGNORECASE)
"""What code mentions that treats the state of a generator of random numbers."""

_FLASH_ATTENTION = pattern(r"flash_attn\.(?:\w+\.)*(?:_wrapped)?_flash_attn_(?:varlen_)?backward")
"""Functions that draw what they drop again: from the ``rng_state`` that they get, or else from new random numbers."""

_MOST_BY_POSITION = 12
"""Behind these come options, and the state as the last one."""


@record
class Redrawn:
    """A call of ``callee`` in backward with the probability in ``input`` and no random state.

    Or one of a function ``by`` that calls it.
    """

    node: cst.Call
    input: Input
    callee: str
    by: str


def redrawn_dropout(fn: FunctionClass) -> Redrawn | None:
    """The first call that computes the gradient of a dropout with another mask than forward, for any probability."""
    backward, forward = fn.judgeable_backward, fn.forward
    if backward is None or forward is None or forward.inherited or backward.raises_only or fn.escapes:
        return None
    inputs = [each for each in fn.inputs if _PROBABILITY.fullmatch(each.name) and each.is_tensor is not Tri.YES]
    if not inputs or _may_refuse([*backward.nodes_of(cst.Assert), *backward.nodes_of(cst.If)]):
        return None
    for each in inputs:
        if _drops(forward, each.name) and not _is_fixed(fn, each) and not kept(backward.node, _treats_random_numbers):
            found = next(_without_state(fn, backward, each), None)
            if found is not None:
                return found
    return None


def _drops(forward: Method, name: str) -> bool:
    """Whether forward passes a probability on, and accepts any."""
    arguments = [forward.parents[each] for each in forward.named.get(name, ())]
    arguments = [each for each in arguments if isinstance(each, cst.Arg)]
    calls = {id(call): call for each in arguments if isinstance(call := forward.parents[each], cst.Call)}
    helpers = [certainly_called(forward, each) for each in calls.values()]
    refusing = may_be_refused(forward, name) or any(each is not None and kept(each[1], _refuses) for each in helpers)
    return bool(calls) and not refusing


def _is_fixed(fn: FunctionClass, drop: Input) -> bool:
    """Whether each call passes a number, which is usually 0."""
    kinds = {kind for call in fn.calls for kind in call.arguments[drop.index : drop.index + 1]}
    return kinds == {ArgumentKind.NUMBER}


def _without_state(fn: FunctionClass, backward: Method, drop: Input) -> Iterator[Redrawn]:
    """The calls that get a probability and no random state."""
    home = backward.home.record if backward.home is not None else None
    if home is None:
        return
    for call in backward.nodes_of(cst.Call):
        given = [each for each in call.args if input_behind(fn, backward, each.value) is drop]
        if not given:
            continue
        if _is_of_flash_attention(call, Scope("function", "", home.body)):
            yield Redrawn(call, drop, last_name(call.func), "")
            continue
        taken, called = taken_by_callee(backward, given[0]), certainly_called(backward, call)
        if taken is None or called is None or kept(called[1], _refuses) or kept(called[1], _treats_random_numbers):
            continue
        definition, helper = called
        known = definition.unit.index.functions[definition.qualname]
        scope = Scope("function", definition.qualname, known.scope)
        for inner in _calls_with(helper, taken.parameter):
            if _is_of_flash_attention(inner, scope):
                yield Redrawn(call, drop, last_name(inner.func), definition.name)


def _calls_with(helper: cst.FunctionDef, parameter: str) -> Iterator[cst.Call]:
    """The calls in a function that get a parameter, or options with it, if the function never binds it again."""
    code = kept(helper, _code_of)
    if any(is_name(each, parameter) for each in code.bound):
        return
    options = any(is_name(each.value, parameter) for each in code.options)
    for call in code.calls:
        if any(is_name(each.value, parameter) or (options and each.star == "**") for each in call.args):
            yield call


class _Code(NamedTuple):
    """What a function binds, the entries of its dicts, and its calls."""

    bound: tuple[cst.CSTNode, ...]
    options: tuple[cst.DictElement, ...]
    calls: tuple[cst.Call, ...]


def _code_of(function: cst.FunctionDef) -> _Code:
    below = parents_below(function.body)
    bound = [each.target for each in below if isinstance(each, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))]
    bound += [each.name for each in below if isinstance(each, cst.Param)]
    options = (each for each in below if isinstance(each, cst.DictElement))
    return _Code(tuple(bound), tuple(options), tuple(each for each in below if isinstance(each, cst.Call)))


def _is_of_flash_attention(call: cst.Call, scope: Scope) -> bool:
    """Whether it is a call of such a function that may not get the state by position, or among options."""
    by_position = sum(each.keyword is None and not each.star for each in call.args)
    named = any(each.keyword is not None and each.keyword.value == "rng_state" for each in call.args)
    starred = bool(by_position) and any(each.star for each in call.args)
    if not named and (starred or by_position > _MOST_BY_POSITION):
        return False
    callee = dotted(call.func)
    meant = resolve(callee, scope) if callee is not None else None
    return meant is not None and _FLASH_ATTENTION.fullmatch(meant) is not None


def _treats_random_numbers(function: cst.FunctionDef) -> bool:
    """Whether a function mentions a random state, apart from ``rng_state=None``."""
    below = parents_below(function.body)
    unset = {each.keyword for each in below if isinstance(each, cst.Arg) and is_name(each.value, "None")}
    words = [each.value for each in below if isinstance(each, cst.Name) and each not in unset]
    words += [each.value for each in below if isinstance(each, cst.SimpleString)]
    return any(map(_STATE.search, words))


def _refuses(function: cst.FunctionDef) -> bool:
    """Whether a function may raise for a dropout."""
    return _may_refuse(each for each in parents_below(function.body) if isinstance(each, (cst.Assert, cst.If)))


def _may_refuse(tests: Iterable[cst.Assert | cst.If]) -> bool:
    about = (each for each in tests if any("drop" in word for word in words_of(each.test)))
    return any(isinstance(each, cst.Assert) or _raises(each) for each in about)


def _raises(node: cst.If) -> bool:
    return any(isinstance(each, cst.Raise) for each in parents_below(node))
