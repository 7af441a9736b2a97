"""Gradients that backward adds to ``weight.main_grad`` itself, even if the weight needs none, and has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.unconditional_gradients import may_be_a_flag
from ctxlint.model.interpreter.events import NeedsInputGradRead
from ctxlint.model.interpreter.values import is_input
from ctxlint.model.syntax import code_of, parents_below, root_name, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class Accumulated:
    """The first read of ``weight.main_grad`` in backward, for the input ``slot``."""

    slot: int
    node: cst.Attribute


def accumulated_gradients(fn: FunctionClass) -> Iterator[Accumulated]:
    """The inputs whose ``main_grad`` backward reads, and nothing before that may ask whether they need a gradient."""
    backward = fn.backward
    if backward is None or not fn.count_judgeable or not fn.source.holds(_MAIN):
        return
    asked = {each.index for each in backward.facts.of(NeedsInputGradRead)}
    reads = [each for each in backward.nodes_of(cst.Attribute) if each.attr.value == _MAIN and None not in asked]
    first: dict[int, cst.Attribute] = {}
    for node in reads:
        kept = kept_value(fn, backward.value_of(node.value.value)) if isinstance(node.value, cst.Name) else None
        if is_input(kept) and kept.index not in asked:
            known = first.setdefault(kept.index, node)
            first[kept.index] = node if backward.is_written_before(node, known) else known
    yield from (Accumulated(slot, node) for slot, node in sorted(first.items()) if not _is_guarded(backward, node))


_MAIN = "main_grad"


def _is_guarded(backward: Method, node: cst.CSTNode) -> bool:
    """Whether the attribute may be there where backward reads it: it is set, or a test or ``try`` comes before."""
    around = {node, *backward.above(node)}
    if isinstance(backward.parents[node], (cst.AssignTarget, cst.Del)):
        return True
    if any(isinstance(each, (cst.Try, cst.TryStar, cst.BooleanOperation)) for each in around):
        return True
    tests: list[cst.If | cst.IfExp | cst.Assert] = [*backward.nodes_of(cst.If), *backward.nodes_of(cst.IfExp)]
    tests += backward.nodes_of(cst.Assert)
    earlier = (
        each.test
        for each in tests
        if backward.is_written_before(each, node) and each.test not in around
        if each in around or not isinstance(each, cst.If) or _may_matter(each, node)
    )
    return any(may_be_a_flag(code_of(each)) for each in earlier)


def _may_matter(branch: cst.If, read: cst.CSTNode) -> bool:
    """Whether an ``if`` before a read of an attribute may keep it from being reached, or set what is read."""
    leaving = (cst.Return, cst.Raise, cst.Break, cst.Continue)
    ends = any(isinstance(each, leaving) for each in parents_below(branch))
    return ends or (root_name(read) or "") in words_of(branch)
