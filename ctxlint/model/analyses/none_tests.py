"""Incoming gradients that backward requires to be None, although torch passes zeros for undefined ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.interpreter.values import Tri, is_tensor
from ctxlint.model.syntax import code_of, dotted, is_name, last_name, signed_integer, single_index
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class RequiredNone:
    """``assert gradient is None``, or ``if gradient is not None: raise``; ``error`` is what that raises, if known."""

    node: cst.CSTNode
    gradient: str
    asserted: bool
    error: str


def required_nones(fn: FunctionClass) -> Iterator[RequiredNone]:
    """The tests that each call of backward makes, and that always fail, as the output is a tensor."""
    backward = fn.counted_backward
    if backward is None or not isinstance(backward.node.body, cst.IndentedBlock):
        return
    tests = [found for each in backward.node.body.body if (found := _test(each)) is not None]
    if not tests or fn.materializes_grads is not Tri.YES or "backward" in fn.called_directly:
        return
    for node, test, error in tests:
        gradient = _compared(test, none=isinstance(node, cst.Assert))
        index = _index(backward, gradient) if gradient is not None else None
        always = runs(backward, node) is Runs.ALWAYS
        if gradient is not None and index is not None and always and _is_tensor_output(fn, index):
            yield RequiredNone(node, code_of(gradient), isinstance(node, cst.Assert), error)


def _index(backward: Method, gradient: cst.BaseExpression) -> int | None:
    """The number of an incoming gradient: of a parameter that nothing binds again, or ``grads[-1]`` for ``*grads``."""
    name = dotted(gradient.value if isinstance(gradient, cst.Subscript) else gradient)
    if name is None or name in backward.binders:
        return None
    if isinstance(gradient, cst.Subscript):
        rest, place = backward.variadic, signed_integer(single_index(gradient))
        if rest is None or rest.name != name or place is None:
            return None
        return place if place < 0 else place + len(backward.positional)
    return next((at for at, each in enumerate(backward.positional) if each.name == name), None)


def _test(statement: cst.BaseStatement) -> tuple[cst.CSTNode, cst.BaseExpression, str] | None:
    """The assertion or the ``if`` that a statement is, what it tests, and what it raises at once."""
    if isinstance(statement, cst.SimpleStatementLine):
        found = next((each for each in statement.body if isinstance(each, cst.Assert)), None)
        return (found, found.test, "AssertionError") if found is not None else None
    if not isinstance(statement, cst.If) or not isinstance(statement.body, cst.IndentedBlock):
        return None
    first = statement.body.body[0]
    raised = first.body[0] if isinstance(first, cst.SimpleStatementLine) else None
    if not isinstance(raised, cst.Raise):
        return None
    error = raised.exc.func if isinstance(raised.exc, cst.Call) else raised.exc
    return statement, statement.test, last_name(error) if error is not None and dotted(error) else ""


def _compared(test: cst.BaseExpression, *, none: bool) -> cst.BaseExpression | None:
    """What a test compares with None, by ``is`` if ``none``, or else by ``is not``; also one of several."""
    if isinstance(test, cst.BooleanOperation):
        joined = cst.And if none else cst.Or
        parts = (_compared(each, none=none) for each in (test.left, test.right))
        return next(filter(None, parts), None) if isinstance(test.operator, joined) else None
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    [part] = test.comparisons
    kind = cst.Is if none else cst.IsNot
    return test.left if isinstance(part.operator, kind) and is_name(part.comparator, "None") else None


def _is_tensor_output(fn: FunctionClass, index: int) -> bool:
    """Whether forward certainly returns a tensor there: for None and numbers, torch passes None."""
    marked = {argument.value for call in fn.context_calls("mark_non_differentiable") for argument in call.arguments}
    slots = [each.slots[index] for each in fn.outputs if each.known and -len(each.slots) <= index < len(each.slots)]
    exact = index < 0 or all(each.exact for each in fn.outputs)
    return (
        exact
        and 0 < len(slots) == len(fn.outputs)
        and all(
            not slot.starred and (is_tensor(option) is Tri.YES or option in marked)
            for slot in slots
            for option in slot.value.options()
        )
    )
