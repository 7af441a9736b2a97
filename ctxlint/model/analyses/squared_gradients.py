"""Gradients that backward multiplies by an incoming gradient twice: a product both of whose operands have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.interpreter.events import Mutation, Return
from ctxlint.model.interpreter.values import Parameter, before_star, usual_storage
from ctxlint.model.syntax import children, code_of, dotted, last_name, names_in
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Assigned, Event
    from ctxlint.model.interpreter.method import Method


@record
class Squared:
    """A product that a gradient consists of, or a term of it: both operands are linear in an incoming gradient.

    ``reads`` are the places where they get it.
    """

    product: cst.CSTNode
    incoming: str
    reads: tuple[cst.Name, ...]


@record
class _Linear:
    """A value that is the sum of terms with one of the incoming gradients ``reads`` as a factor; none: a constant."""

    reads: tuple[cst.Name, ...] = ()


_CONSTANT = _Linear()

_Degree = _Linear | Squared | None
"""None is unknown."""


def squared_gradients(fn: FunctionClass) -> Iterator[tuple[int, Squared]]:
    """The gradients that backward returns with an incoming gradient as a factor twice, by input."""
    backward = fn.counted_backward
    if backward is None or not backward.facts.modelled or not _multiplies_by_results(backward):
        return
    written = (each.target for each in backward.facts.of(Mutation) if each.target is not None)
    if any(isinstance(usual_storage(each), Parameter) for each in written):
        return
    degrees = _Degrees(backward)
    for returned in fn.gradients:
        for index, slot in enumerate(before_star(returned.slots) if returned.known else ()):
            found = degrees.of(slot.node, returned.event) if slot.node is not None else None
            if isinstance(found, Squared):
                yield index, found


def _multiplies_by_results(backward: Method) -> bool:
    """Whether an incoming gradient is multiplied by something that has a name which backward binds to a result."""
    incoming = {each.name for each in backward.own_params if len(backward.named.get(each.name, ())) > 1}
    results = incoming.union(
        name
        for name, assigned in (backward.assignments if incoming else {}).items()
        if any(each.augmented or isinstance(each.value_node, _COMPUTED) for each in assigned)
    )
    reads = (read for name in incoming for read in backward.named[name])
    return any(not results.isdisjoint(names_in(other)) for read in reads for other in _factors(backward, read))


_COMPUTED = (cst.BinaryOperation, cst.UnaryOperation, cst.Call, cst.Subscript)


def _factors(method: Method, read: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What the products around a read, in its statement, multiply it by."""
    inner = read
    for outer in method.above(read):
        if isinstance(outer, cst.BinaryOperation) and isinstance(outer.operator, _MULTIPLYING):
            yield outer.right if inner is outer.left else outer.left
        elif isinstance(outer, cst.AugAssign) and isinstance(outer.operator, _MULTIPLYING):
            yield outer.target
        elif isinstance(outer, cst.Call) and last_name(outer.func) in operations.PRODUCTS:
            yield from (each for each in (outer.func, *outer.args) if each is not inner)
        if isinstance(outer, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return
        inner = outer


class _Degrees:
    """How expressions of backward depend on the incoming gradients."""

    def __init__(self, backward: Method) -> None:
        self.method = backward
        self.incoming = {each.name for each in backward.own_params}
        self.known: dict[tuple[int, int], _Degree] = {}

    def of(self, node: cst.CSTNode, at: Event) -> _Degree:
        """That of an expression which is evaluated right before an event."""
        key = (id(node), at.order)
        if key not in self.known:
            self.known[key] = None  # in a circle
            self.known[key] = self._of(node, at)
        return self.known[key]

    def _of(self, node: cst.CSTNode, at: Event) -> _Degree:
        spend()
        if isinstance(node, cst.Name):
            return self._of_name(node, at)
        if isinstance(node, cst.BinaryOperation):
            return self._combined(node, node.operator, (node.left, self.of(node.left, at)), node.right, at)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, (cst.Minus, cst.Plus)):
            return self.of(node.expression, at)
        if isinstance(node, cst.Attribute):
            found = self.of(node.value, at)
            return found if found == _CONSTANT or node.attr.value in _TRANSPOSED else self._constant(node)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            return self._of_call(node, node.func, at)
        parts = [self.of(each, at) for each in children(node)]
        return _CONSTANT if all(each == _CONSTANT for each in parts) else None

    def _constant(self, node: cst.Attribute) -> _Degree:
        """The degree of an attribute of a gradient."""
        return _CONSTANT if node.attr.value in operations.SCALAR_ATTRIBUTES else None

    def _of_call(self, node: cst.Call, func: cst.Attribute, at: Event) -> _Degree:
        """``x.sum(0)``, ``torch.sum(x, 0)``, ``x.mul(y)``: linear in the first operand, or a product of two."""
        name, values = func.attr.value, [each.value for each in node.args if each.keyword is None and not each.star]
        rest = [each.value for each in node.args if each.value not in values]
        if dotted(func.value) != "torch":
            values.insert(0, func.value)
        parts = [self.of(each, at) for each in (*values, *rest)]
        if all(each == _CONSTANT for each in parts) or name in operations.SIZE_METHODS:
            return _CONSTANT
        if name in operations.PRODUCTS and len(values) == 2 and not rest:
            return self._combined(node, cst.Multiply(), (values[0], parts[0]), values[1], at)
        return parts[0] if name in operations.LINEAR and all(each == _CONSTANT for each in parts[1:]) else None

    def _combined(
        self,
        node: cst.CSTNode,
        operator: cst.BaseBinaryOp | cst.BaseAugOp,
        first: tuple[cst.BaseExpression, _Degree],
        right: cst.BaseExpression,
        at: Event,
    ) -> _Degree:
        """The degree of an operation on two operands."""
        (left, one), two = first, self.of(right, at)
        if one is None or two is None:
            return None
        if one == two == _CONSTANT:
            return _CONSTANT
        if isinstance(operator, _ADDING):
            # ``1 + 0.1 * g``: a factor that depends on the gradient on purpose
            return None if _is_number(left) or _is_number(right) else _sum(one, two)
        if two == _CONSTANT and isinstance(operator, (*_MULTIPLYING, cst.Divide, cst.DivideAssign)):
            return one
        if not isinstance(operator, _MULTIPLYING):
            return None
        if one == _CONSTANT:
            return two
        if isinstance(one, Squared) or isinstance(two, Squared) or code_of(left) == code_of(right):
            return None  # a square, perhaps on purpose
        reads = (*one.reads, *two.reads)
        common = {each.value for each in one.reads}.intersection(each.value for each in two.reads)
        return Squared(node, min(common), tuple(each for each in reads if each.value in common)) if common else None

    def _of_name(self, node: cst.Name, at: Event) -> _Degree:
        """The degree of a name, by what was assigned to it last."""
        name, method = node.value, self.method
        assigned = method.assignments.get(name, [])
        same = getattr(at, "statement", None)  # ``x, y = y, x`` evaluates both before it binds any
        before = [each for each in assigned if at.may_follow(each) and each.statement is not same]
        if at.in_loop or len(assigned) != len(method.binders.get(name, ())) or self._is_written(name, at):
            return None
        if not before:
            return _Linear((node,)) if name in self.incoming else _CONSTANT
        last = max(before, key=lambda each: each.order)
        return self._after(last, node) if at.implies(last) or isinstance(at, Return) else None

    def _after(self, last: Assigned, node: cst.Name) -> _Degree:
        """The degree of a name after an assignment."""
        if isinstance(last.statement, cst.AugAssign):
            held = (node, self._of_name(node, last))
            return self._combined(last.statement, last.statement.operator, held, last.statement.value, last)
        if last.value_node is not None:
            return self.of(last.value_node, last)
        unpacked = last.statement.value if isinstance(last.statement, cst.Assign) else None
        found = self.of(unpacked, last) if unpacked is not None else None
        return _CONSTANT if found == _CONSTANT else None

    def _is_written(self, name: str, at: Event) -> bool:
        """Whether the tensor in a name may have been written to by other means than an assignment."""
        mutations = (each for each in self.method.facts.of(Mutation) if each.name == name and at.may_follow(each))
        if any(not isinstance(each.node, cst.AugAssign) for each in mutations):
            return True
        return any(self.method.around(use, cst.Expr) is not None for use in self.method.named.get(name, ()))


def _sum(one: _Linear | Squared, two: _Linear | Squared) -> _Degree:
    if isinstance(one, Squared):
        return one
    return two if isinstance(two, Squared) else _Linear((*one.reads, *two.reads))


def _is_number(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BaseNumber)


_ADDING = (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign)
_MULTIPLYING = (cst.Multiply, cst.MatrixMultiply, cst.MultiplyAssign, cst.MatrixMultiplyAssign)

_TRANSPOSED = frozenset(["H", "T", "mH", "mT", "real"])
