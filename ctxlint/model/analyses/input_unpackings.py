"""Where a method unpacks a tuple of inputs: forward its ``*args``, setup_context its ``inputs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.syntax import only_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.function import FunctionClass, Operator
    from ctxlint.model.interpreter.method import Method, Param


class InputUnpacking(NamedTuple):
    """``a, b = inputs``: the statement, and the number of names; a starred one, ``*rest``, takes any further ones."""

    node: cst.Assign
    names: int
    starred: bool

    def takes(self, count: int) -> bool:
        """Whether it can unpack so many inputs."""
        return count >= self.names if self.starred else count == self.names


def input_unpackings(method: Method, parameter: str) -> Iterator[InputUnpacking]:
    """The unpackings of what torch passes for a parameter, except in a ``try``."""
    for each in method.nodes_of(cst.Assign) if method.arguments_known else ():
        target = only_target(each)
        if not isinstance(each.value, cst.Name) or each.value.value != parameter:
            continue
        if not isinstance(target, (cst.Tuple, cst.List)) or method.around(each, cst.Try) is not None:
            continue
        if method.around(each, cst.FunctionDef) is not method.node:
            continue
        if method.holds_argument(parameter, each.value):
            starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
            yield InputUnpacking(each, len(target.elements) - starred, starred)


def unpacked_count(fn: FunctionClass) -> int:
    """How many elements ``*args`` of forward certainly has, as forward always unpacks it; 0 if that is unknown."""
    if fn.forward is None or fn.variadic_inputs is None:
        return 0
    found = input_unpackings(fn.forward, fn.variadic_inputs.name)
    always = (each.names for each in found if not each.starred and runs(fn.forward, each.node) is Runs.ALWAYS)
    return next(always, 0)


def unfit_unpackings(setup: Method, inputs: Sequence[Param]) -> Iterator[InputUnpacking]:
    """The unpackings in a ``setup_context(ctx, inputs, output)`` that raise ValueError for so many inputs."""
    parameter = setup.positional[0].name if len(setup.positional) > 1 else None
    for each in input_unpackings(setup, parameter) if parameter is not None else ():
        if not each.takes(len(inputs)):
            yield each


def never_unpacks(operator: Operator) -> bool:
    """Whether ``setup_context`` of an operator raises in each call that needs a gradient."""
    setup = operator.setup_context
    return setup is not None and any(
        runs(setup, each.node) is Runs.ALWAYS for each in unfit_unpackings(setup, operator.inputs)
    )
