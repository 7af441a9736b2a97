"""Gradients to which the incoming gradient contributes only by its reciprocal, logarithm or exponential function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.gradient_values import asks_for_shape, tells_no_values
from ctxlint.model.interpreter.events import ContextWrite, Mutation, Return
from ctxlint.model.interpreter.values import View, before_star
from ctxlint.model.syntax import children, is_name, last_name
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Method


@record
class Bent:
    """An operation that is not linear in an incoming gradient: ``1 / (1 + g)``, ``g.exp()``; ``how`` is what it is."""

    node: cst.BaseExpression
    incoming: str
    how: str


@record
class _Use:
    """How a value depends on the incoming gradients: as such, or through an operation that is not linear in one."""

    direct: str = ""
    bent: Bent | None = None


_NONE = _Use()


def nonlinear_gradients(fn: FunctionClass) -> Iterator[tuple[int, Bent]]:
    """The gradients that depend on the incoming ones only through such operations, by input."""
    backward = fn.counted_backward
    if backward is None or not backward.facts.modelled or backward.facts.of(ContextWrite) or not _bends(backward):
        return
    if any(isinstance(each.target, View) for each in backward.facts.of(Mutation)):
        return  # what a name holds is changed through another one
    uses = _Uses(backward)
    for returned in fn.gradients:
        for index, slot in enumerate(before_star(returned.slots) if returned.known else ()):
            found = uses.of(slot.node, returned.event) if slot.node is not None else None
            if found is not None and found.bent is not None and not found.direct:
                yield index, found.bent


def _bends(backward: Method) -> bool:
    """Whether backward has such an operation at all."""
    if any(_denominator(each) is not None for each in backward.nodes_of(cst.BinaryOperation)):
        return True
    return any(last_name(each.func) in _CURVED for each in backward.nodes_of(cst.Call))


def _denominator(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What an operation divides by, unless it is a number."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return None if isinstance(node.right, cst.BaseNumber) else node.right
    return None


class _Uses:
    """How expressions of backward depend on the incoming gradients."""

    def __init__(self, backward: Method) -> None:
        self.method = backward
        self.incoming = {each.name for each in backward.own_params}
        self.known: dict[tuple[int, int], _Use | None] = {}

    def of(self, node: cst.CSTNode, at: Event) -> _Use | None:
        """That of an expression which is evaluated right before an event; None if it is unknown."""
        key = (id(node), at.order)
        if key in self.known:
            return self.known[key]
        self.known[key] = None  # in a circle
        found = self.known[key] = self._of(node, at)
        return found

    def _of(self, node: cst.CSTNode, at: Event) -> _Use | None:
        spend()
        if isinstance(node, cst.Name):
            return self._of_name(node, at)
        if isinstance(node, (cst.Lambda, cst.BaseComp, cst.NamedExpr, cst.Await, cst.Yield)):
            return None
        if isinstance(node, cst.Attribute):
            return _NONE if tells_no_values(node) else _unless_bent(self.of(node.value, at))
        if isinstance(node, cst.Arg):
            return self.of(node.value, at)
        below = _denominator(node)
        if below is not None and isinstance(node, cst.BinaryOperation):
            return _joined([self.of(node.left, at), _bent(node, "a denominator", self.of(below, at))])
        if isinstance(node, cst.Call):
            return self._of_call(node, at)
        found = _joined(self.of(each, at) for each in children(node))
        linear = isinstance(getattr(node, "operator", None), _SUMS_AND_PRODUCTS) or isinstance(node, _PARTS)
        return found if linear else _unless_bent(found)

    def _of_call(self, node: cst.Call, at: Event) -> _Use | None:
        name = last_name(node.func) or ""
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        of_tensor = owner is not None and not is_name(owner, "torch") and not is_name(owner, "math")
        like = of_tensor and name == "to"
        operands = [each.value for each in node.args if not (like or asks_for_shape(node, each))]
        if owner is not None and of_tensor and not tells_no_values(node):
            operands.insert(0, owner)
        parts = [self.of(each, at) for each in operands]
        if name in _CURVED:
            return _bent(node, _CURVED[name], parts[0]) if len(parts) == 1 else None
        if name in ("div", "divide", "true_divide", "pow") and len(parts) > 1:
            first = _unless_bent(parts[0]) if name == "pow" else parts[0]
            return None if any(each is None or each.direct or each.bent for each in parts[1:]) else first
        found = _joined(parts)
        if name in operations.LINEAR | operations.PRODUCTS | _CHOOSING:
            return found
        return _unless_bent(found) if owner is not None and name in operations.COMPUTING else _if_none(found)

    def _of_name(self, node: cst.Name, at: Event) -> _Use | None:
        """The use of a name, by what was assigned to it last, and what was written into it since."""
        name, method = node.value, self.method
        assigned = method.assignments.get(name, [])
        same = getattr(at, "statement", None)  # ``x, y = y, x`` evaluates both before it binds any
        before = [each for each in assigned if at.may_follow(each) and each.statement is not same]
        if at.in_loop or len(assigned) != len(method.binders.get(name, ())):
            return None
        last = max(before, key=lambda each: each.order) if before else None
        if last is not None and (isinstance(last.statement, cst.AugAssign) or not _comes_after(at, last)):
            return None
        use = _Use(name) if name in self.incoming else _NONE
        if last is not None:
            value = last.value_node
            if value is None:
                value = last.statement.value if isinstance(last.statement, cst.Assign) else None
            found = self.of(value, last) if value is not None else None
            if found is None:
                return None
            use = found
        return _joined([use, *self._written(name, at)])

    def _written(self, name: str, at: Event) -> Iterator[_Use | None]:
        """What statements put into the tensor of a name by methods: ``g.masked_fill_(mask, 0)``; unknown for others."""
        changes = {each.node: each for each in self.method.facts.of(Mutation)}
        for read in self.method.named.get(name, ()):
            around = self.method.around(read, cst.Expr)
            if around is None:
                continue
            change = changes.get(around.value)
            func = around.value.func if isinstance(around.value, cst.Call) else None
            if change is None or not isinstance(func, cst.Attribute) or not isinstance(around.value, cst.Call):
                yield None
            elif func.value is read:
                filled = func.attr.value in ("masked_fill_", "clamp_", "mul_") and not change.in_loop
                yield _joined(self.of(each, change) for each in around.value.args) if filled else None
        if any(each.name == name and not isinstance(each.node, cst.Call) for each in changes.values()):
            yield None


def _comes_after(at: Event, last: Event) -> bool:
    return at.implies(last) or isinstance(at, Return)


def _bent(node: cst.BaseExpression, how: str, use: _Use | None) -> _Use | None:
    """The use of an operation on a value; unknown if that is such an operation itself, which this may undo."""
    if use is None or use.bent is not None:
        return None
    return _Use(bent=Bent(node, use.direct, how)) if use.direct else use


def _unless_bent(use: _Use | None) -> _Use | None:
    """The use by an operation that may undo another one."""
    return None if use is None or use.bent is not None else use


def _if_none(use: _Use | None) -> _Use | None:
    """The use by a function that may do anything with a value, or only read its shape."""
    return use if use == _NONE else None


def _joined(parts: Iterable[_Use | None]) -> _Use | None:
    known: list[_Use] = []
    for each in parts:
        if each is None:
            return None
        known.append(each)
    direct = next((each.direct for each in known if each.direct), "")
    return _Use(direct, next((each.bent for each in known if each.bent is not None), None))


_CURVED = {
    "exp": "`exp`",
    "exp2": "`exp2`",
    "log": "`log`",
    "log10": "`log10`",
    "log2": "`log2`",
    "reciprocal": "`reciprocal`",
    "rsqrt": "`rsqrt`",
}
"""Functions and methods of one tensor that are not linear; those that keep zero may be meant, such as ``tanh``."""

_SUMS_AND_PRODUCTS = (cst.Add, cst.Subtract, cst.Multiply, cst.MatrixMultiply, cst.Minus)
_PARTS = (cst.Subscript, cst.Tuple, cst.List, cst.Element, cst.Index, cst.Slice, cst.SubscriptElement)
_CHOOSING = frozenset(["add", "cat", "masked_fill", "stack", "sub", "where"])
"""Functions of several tensors, each element of whose result is an element of one of them, or a sum of such."""
