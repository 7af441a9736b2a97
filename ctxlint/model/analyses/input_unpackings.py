"""Where a method unpacks a tuple of inputs: forward its ``*args``, setup_context its ``inputs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.syntax import only_target
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Operator
    from ctxlint.model.interpreter.method import Method


class InputUnpacking(NamedTuple):
    """``a, b = inputs``: the statement, and the number of names; a starred one, ``*rest``, takes any further ones."""

    node: cst.Assign
    names: int
    starred: bool

    def takes(self, count: int) -> bool:
        """Whether it can unpack so many inputs."""
        return count >= self.names if self.starred else count == self.names


def input_unpackings(method: Method, parameter: str) -> Iterator[InputUnpacking]:
    """The unpackings of what torch passes for a parameter that always run, and that nothing catches."""
    for each in method.nodes_of(cst.Assign) if method.arguments_known else ():
        target = only_target(each)
        if not isinstance(each.value, cst.Name) or each.value.value != parameter:
            continue
        if isinstance(target, (cst.Tuple, cst.List)) and _certainly_runs(method, each, each.value):
            starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
            yield InputUnpacking(each, len(target.elements) - starred, starred)


def _certainly_runs(method: Method, statement: cst.Assign, name: cst.Name) -> bool:
    """Whether a statement of the method itself always runs, with what torch passes for the name."""
    own = method.around(statement, cst.FunctionDef) is method.node
    always = own and not any(isinstance(each, _MAY_SKIP) for each in method.above(statement))
    return always and runs(method, statement) is Runs.ALWAYS and method.holds_argument(name.value, name)


def unpacked_count(fn: FunctionClass) -> int:
    """How many elements ``*args`` of forward certainly has, as forward always unpacks it; 0 if that is unknown."""
    if fn.forward is None or fn.variadic_inputs is None:
        return 0
    found = input_unpackings(fn.forward, fn.variadic_inputs.name)
    return next((each.names for each in found if not each.starred), 0)


_MAY_SKIP = (cst.Try, cst.With, cst.For, cst.While, cst.Match)


def unfit_unpackings(method: Method, parameter: str, inputs: int) -> Iterator[InputUnpacking]:
    """The unpackings of what torch passes for a parameter that raise ValueError for so many inputs."""
    return (each for each in input_unpackings(method, parameter) if not each.takes(inputs))


def never_unpacks(operator: Operator) -> bool:
    """Whether ``setup_context`` of an operator raises in each call that needs a gradient."""
    setup = operator.setup_context
    return setup is not None and any(unfit_unpackings(setup, INPUTS, len(operator.inputs)))


INPUTS = "inputs"
"""The name by which torch passes the inputs of a custom operator."""
