"""Saved tensors that have changed places: each gets the name that the other was saved under."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.gradient_names import has_name_of
from ctxlint.model.analyses.saved_tensors import mismatched, saving_call
from ctxlint.model.analyses.wrong_derivatives import are_right
from ctxlint.model.interpreter.values import SavedTensor, is_input
from ctxlint.model.syntax import children, names_in, only_target
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Assigned, ContextCall
    from ctxlint.model.interpreter.method import Method


@record
class ExchangedSaves:
    """The names ``first`` and ``second`` for saved tensors, each of which was saved under the other name."""

    first: cst.Name
    second: cst.Name


def exchanged_saves(fn: FunctionClass, method: Method) -> Iterator[ExchangedSaves]:
    """Such names in a method that reads saved tensors, if it uses both."""
    calls = fn.context_calls(saving_call(method))
    if method.inherited or len(calls) != 1 or any(slot.starred for slot in calls[0].arguments):
        return
    saved = [_name_of(slot.node) for slot in calls[0].arguments]
    fits = len(saved) > 1 and not any(mismatched(method, frozenset([len(saved)])))
    found = dict(_named(method)) if fits else {}
    for at, first in found.items():
        name = first.value
        other = saved.index(name) if saved.count(name) == 1 else at
        second = found.get(other)
        if at < other and second is not None and at < len(saved) and second.value == saved[at] != name:
            both = (first.value, second.value)
            kept = _keeps_its_names(fn, calls[0], both) and not _exchanges(method, both)
            kept = kept and not _uses_both_alike(method, first, both) and not _is_right(fn, method, both)
            if kept and all(len(method.named.get(each, ())) > 1 for each in both):
                yield ExchangedSaves(first, second)


def _keeps_its_names(fn: FunctionClass, call: ContextCall, names: tuple[str, str]) -> bool:
    """Whether each name has one meaning until it is saved: that of the input, if there is one, and never another."""
    saving = next((each for each in fn.context_methods if call.node in each.parents), None)
    if saving is None:
        return False
    given = [each.name for each in saving.params]
    inputs = {each.name: each.index for each in fn.inputs}
    for name in names:
        bound = given.count(name) + len(saving.binders.get(name, ()))
        value = saving.value_of(name) if name in inputs else None
        if bound > 1 or (name in saving.binders and is_input(value) and value.index != inputs[name]):
            return False
    return True


def _exchanges(method: Method, names: tuple[str, str]) -> bool:
    """Whether a method binds one of two names again to what it computes from the other."""
    for name, other in (names, names[::-1]):
        for each in method.assignments[name][1:]:
            if each.value_node is None or other in names_in(each.value_node):
                return True
    return False


def _uses_both_alike(method: Method, first: cst.Name, names: tuple[str, str]) -> bool:
    """Whether a method computes the same if two names change places: ``grad * (x + y).exp()`` for each input."""
    unpacking = next((each for each in method.above(first) if isinstance(each, cst.Assign)), None)
    as_it_is, exchanged = dict(zip(names, names)), dict(zip(names, names[::-1]))
    body = method.node.body
    return _in_order(body, as_it_is, unpacking) == _in_order(body, exchanged, unpacking)


def _is_right(fn: FunctionClass, method: Method, names: tuple[str, str]) -> bool:
    """Whether the gradients of two inputs have changed places like their names, or are right as they are."""
    indices = [each.index for name in names for each in fn.inputs if each.name == name]
    if method is not fn.backward or len(indices) != len(names):
        return False
    exchanged = [
        [has_name_of(slot.node, fn.inputs) for slot in (each.slots[at] for at in indices)]
        for each in fn.gradients
        if len(each.slots) > max(indices)
    ]
    return (bool(exchanged) and all(each == indices[::-1] for each in exchanged)) or are_right(fn, indices)


def _in_order(node: cst.CSTNode, names: dict[str, str], left_out: cst.CSTNode | None) -> str:
    """What code computes, in a form that does not depend on the order of the operands of sums and products."""
    spend(1)
    if node is left_out or isinstance(node, _WITHOUT_MEANING):
        return ""
    if isinstance(node, cst.Name):
        return names.get(node.value, node.value)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _COMMUTATIVE):
        operands = sorted(_in_order(each, names, left_out) for each in _operands(node, type(node.operator)))
        return f"{type(node.operator).__name__}({', '.join(operands)})"
    parts = [_in_order(each, names, left_out) for each in children(node)]
    literal = node.value if isinstance(node, (cst.Integer, cst.Float, cst.Imaginary, cst.SimpleString)) else ""
    return f"{type(node).__name__}{literal}({', '.join(filter(None, parts))})"


def _operands(node: cst.BaseExpression, operator: type[cst.BaseBinaryOp]) -> Iterator[cst.BaseExpression]:
    """The operands of a chain of one operator: ``a``, ``b`` and ``c`` of ``a + b + c``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, operator):
        yield from _operands(node.left, operator)
        yield from _operands(node.right, operator)
    else:
        yield node


_COMMUTATIVE = (cst.Add, cst.Multiply, cst.BitAnd, cst.BitOr, cst.BitXor)
_WITHOUT_MEANING = (
    cst.BaseParenthesizableWhitespace,
    cst.Comment,
    cst.EmptyLine,
    cst.LeftParen,
    cst.Newline,
    cst.RightParen,
    cst.TrailingWhitespace,
)


def _name_of(node: cst.BaseExpression | None) -> str:
    """The name of a tensor that is saved, or of what is saved as a copy; empty if it has none."""
    copied = before_copies(node) if node is not None else None
    return copied.value if isinstance(copied, cst.Name) else ""


def _named(method: Method) -> Iterator[tuple[int, cst.Name]]:
    """The saved tensors that a method gives a name of their own, by their number, with that name."""
    names: dict[int, list[cst.Name | None]] = {}
    for bound in method.assignments.values():
        for each in bound:
            if isinstance(each.value, SavedTensor) and each.value.index >= 0:
                names.setdefault(each.value.index, []).append(_target(each) if each is bound[0] else None)
    for index, found in names.items():
        if len(found) == 1 and found[0] is not None:
            yield index, found[0]


def _target(assigned: Assigned) -> cst.Name | None:
    """The name on the left of the assignment."""
    target = only_target(assigned.statement)
    elements = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    names = [each for each in elements if isinstance(each, cst.Name) and each.value == assigned.name]
    return names[0] if len(names) == 1 else None
