"""Whether forward may leave an output as it is that it reduces on another path: a loss with ``reduction="none"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import children, literal_text, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


def leaves_unreduced(fn: FunctionClass, forward: Method) -> Tri:
    """Whether callers get there: forward names a choice for which no test reduces. No if it may refuse that one.

    Unknown if forward names none: callers may never choose it, or refuse it themselves.
    """
    refusals = [each for each in forward.raising_tests if ABOUT_TENSORS.isdisjoint(words_of(each))]
    tests = [each.test for each in forward.nodes_of(cst.If)] + [each.test for each in forward.nodes_of(cst.IfExp)]
    deciding = [each for each in tests if each not in forward.raising_tests]
    words, compared = _words_behind(fn, forward, deciding), set(_texts(deciding))
    about = [each for each in refusals if not words.isdisjoint(words_of(each))]
    if any(_accepted(fn, forward, each) <= compared for each in about) or _is_passed_on(forward, words):
        return Tri.NO
    return Tri.YES if about or "none" in compared else Tri.UNKNOWN


ABOUT_TENSORS = frozenset(
    str.split("device dim dtype is_contiguous is_cuda isinstance ndim ndimension requires_grad shape size")
)
"""Words in refusals of other tensors, or types."""


def _words_behind(fn: FunctionClass, forward: Method, tests: Iterable[cst.BaseExpression]) -> frozenset[str]:
    """The words in tests, and in what forward computes them from."""
    words: set[str] = set()
    waiting: list[cst.CSTNode] = [*tests]
    while waiting:
        for word in {*words_of(waiting.pop())} - words - {forward.ctx_name}:
            words.add(word)
            bound = [each.value_node for each in forward.assignments.get(word, ())]
            bound += [each.value_node for each in fn.writes_by_attribute.get(word, ())]
            waiting += [each for each in bound if each is not None]
    return frozenset(words)


def _texts(nodes: Iterable[cst.CSTNode]) -> Iterator[str]:
    """The strings in some code."""
    for node in nodes:
        text = literal_text(node)
        if isinstance(text, str):
            yield text
        yield from _texts(children(node))


def _accepted(fn: FunctionClass, forward: Method, refusal: cst.BaseExpression) -> set[str]:
    """The strings that a test for membership accepts; none if that is unknown."""
    if not isinstance(refusal, cst.Comparison) or len(refusal.comparisons) != 1:
        return set()
    compared = refusal.comparisons[0]
    if not isinstance(compared.operator, (cst.In, cst.NotIn)):
        return set()
    collection = compared.comparator
    if isinstance(collection, cst.Call) and isinstance(collection.func, cst.Attribute) and not collection.args:
        collection = collection.func.value
    if forward.is_on_ctx(collection):
        writes = [*fn.writes_by_attribute.get(collection.attr.value, ())]
        behind = writes[0].value_node if len(writes) == 1 else None
    else:
        behind = forward.behind_name(collection)
    if isinstance(behind, cst.Dict):
        return set(_texts(each.key for each in behind.elements if isinstance(each, cst.DictElement)))
    return set(_texts([behind])) if isinstance(behind, (cst.List, cst.Set, cst.Tuple)) else set()


def _is_passed_on(forward: Method, words: frozenset[str]) -> bool:
    """Whether a function of the project gets what decides, which may refuse it."""
    calls = (each for each in forward.facts.of(GenericCall) if each.definition is not None)
    given = (slot.node for each in calls for slot in (*each.arguments, *(slot for _name, slot in each.keywords)))
    return any(isinstance(each, cst.Name) and each.value in words for each in given)
