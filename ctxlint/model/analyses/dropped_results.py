"""Calls of methods that only give a result, which is dropped: ``grad_output.contiguous()`` as a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import ResultDropped
from ctxlint.model.syntax import last_name, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method


@record
class DroppedResult:
    """A call on the tensor ``name``; ``wanted``: a later statement reads the tensor, as if the call had changed it."""

    call: cst.Call
    name: str
    wanted: bool


def dropped_results(method: Method) -> Iterator[DroppedResult]:
    """The calls whose result is dropped, each once; one in a ``try`` may be there for what it raises."""
    for node, name in {event.node: event.name for event in method.facts.of(ResultDropped)}.items():
        call = node.value if isinstance(node, cst.Expr) else None
        if isinstance(call, cst.Call) and not any(isinstance(each, cst.Try) for each in method.above(node)):
            variables = method.variables
            last = max((at for at, each in enumerate(variables) if node in method.above(each)), default=-1)
            loops = [each.target for each in method.above(node) if isinstance(each, cst.For)]
            of_a_loop = any(name in words_of(target) for target in loops)
            wanted = not of_a_loop and any(each.value == name for each in variables[last + 1 :])
            yield DroppedResult(call, name, wanted and last_name(call.func) not in _CHOOSES)


_CHOOSES = frozenset({"where"})
"""``x.where(test, y)`` keeps ``x`` where the test holds; who writes it as a statement may mean to modify it there."""
