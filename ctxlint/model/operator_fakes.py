"""Whether the fake of a custom operator takes its arguments, and returns as many tensors.

Torch calls a fake as the operator is called, without trailing arguments that are its defaults, and believes it.
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from ctxlint.model.function import FakeFault, FakeMismatch
from ctxlint.model.index.module_backwards import span_of_name
from ctxlint.model.interpreter.values import Sequence, Tri, is_tensor

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.operators import Fake


def unfit_arguments(unit: Unit, fake: Fake) -> FakeMismatch | None:
    """What is wrong with the parameters of a fake in a file; None if it takes all arguments, or that is unknown."""
    operator = fake.operator.unit.index.functions[fake.operator.qualname].node
    own, passed = _Parameters(fake.function.node.args), _Parameters(operator.args)
    if passed.rest or passed.others:
        return None
    span, name = span_of_name(unit, fake.function.node), operator.name
    required = own.required_beyond(passed)
    if required:
        return FakeMismatch(span, name, FakeFault.REQUIRED, required)
    shifted = own.shifted_against(passed)
    if shifted is not None and own.rest:
        return FakeMismatch(span, name, FakeFault.SHIFTED, shifted)
    missing = own.missing_of(passed)
    if missing and shifted is not None:
        missing = (shifted[0], *missing[1:])
    if missing:
        return FakeMismatch(span, name, FakeFault.NOT_TAKEN, missing, sometimes=passed.defaults.keys() >= {*missing})
    lacking = own.without_default_of(passed)
    if lacking:
        default = ast.unparse(next(iter(lacking.values()))) if len(lacking) == 1 else ""
        return FakeMismatch(span, name, FakeFault.DEFAULT, tuple(lacking), default)
    return None


class _Parameters:
    """The parameters of a function."""

    def __init__(self, arguments: ast.arguments) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        named = zip(arguments.kwonlyargs, arguments.kw_defaults)
        self.positional = [each.arg for each in positional]
        self.by_name = [each.arg for each in arguments.kwonlyargs]
        self.nameable = {each.arg for each in chain(arguments.args, arguments.kwonlyargs)}
        self.defaults = {each.arg: value for each, value in zip(positional[first:], arguments.defaults)}
        self.defaults |= {each.arg: value for each, value in named if value is not None}
        self.rest = arguments.vararg is not None
        self.others = arguments.kwarg is not None

    def required_beyond(self, passed: _Parameters) -> tuple[str, ...]:
        """Those without default that get no argument."""
        given = {*self.positional[: len(passed.positional)], *passed.by_name}
        return tuple(each for each in (*self.positional, *self.by_name) if each not in {*given, *self.defaults})

    def missing_of(self, passed: _Parameters) -> tuple[str, ...]:
        """The parameters of the operator whose arguments are not taken."""
        surplus = [] if self.rest else passed.positional[len(self.positional) :]
        return (*surplus, *(each for each in passed.by_name if not self.others and each not in self.nameable))

    def shifted_against(self, passed: _Parameters) -> tuple[str, str] | None:
        """The first parameter of the operator that is missing before others of its names, and the one in its place."""
        for here, there in zip(self.positional, passed.positional):
            if here != there:
                later = passed.positional[passed.positional.index(there) + 1 :]
                fewer = len(self.positional) < len(passed.positional)
                return (there, here) if fewer and here in later and there not in self.positional else None
        return None

    def without_default_of(self, passed: _Parameters) -> dict[str, ast.expr]:
        """Those that lack the default that the operator has there."""
        pairs = [*zip(self.positional, passed.positional), *((each, each) for each in passed.by_name)]
        taken = {here: passed.defaults[there] for here, there in pairs if there in passed.defaults}
        return {here: default for here, default in taken.items() if here in self.nameable and here not in self.defaults}


def unfit_result(value: Value, returns: ast.expr | None) -> tuple[int | None, int | None] | None:
    """How many tensors an operator with this annotation, and its fake, return; None for one tensor, without a tuple.

    None in place of both if they may agree.
    """
    inside = returns.slice if isinstance(returns, ast.Subscript) else None
    expected = len(inside.elts) if isinstance(inside, ast.Tuple) else None
    if isinstance(value, Sequence):
        certain = value.exact and value.kind in ("tuple", "list") and len(value.slots) != expected
        return (expected, len(value.slots)) if certain else None
    return (expected, None) if expected is not None and is_tensor(value) is Tri.YES else None
