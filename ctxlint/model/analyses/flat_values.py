"""Expressions of ``forward`` whose derivative by each input is zero: counts, masks, constants, and sums of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.filled_by_extension import calls_that_may_fill
from ctxlint.model.interpreter.events import GenericCall, Mutation
from ctxlint.model.interpreter.values import (
    Constant,
    Fresh,
    Kind,
    Scalar,
    Tri,
    View,
    before_views,
    is_tensor,
    kind_of,
    leaves,
    usual_storage,
)
from ctxlint.model.syntax import dotted, last_name
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def is_flat(fn: FunctionClass, node: cst.CSTNode | None) -> bool:
    """Whether an expression of forward certainly has the derivative zero by each input, wherever it has one."""
    return fn.forward is not None and isinstance(node, cst.BaseExpression) and _Flatness(fn, fn.forward).of(node)


class _Flatness:
    """Which expressions of one ``forward`` are flat; each name is decided once."""

    def __init__(self, fn: FunctionClass, forward: Method) -> None:
        self.fn = fn
        self.forward = forward
        self.names: dict[str, bool] = {}

    def of(self, node: cst.BaseExpression) -> bool:
        spend(1)
        if isinstance(node, (cst.BaseNumber, cst.BaseString, cst.Comparison)):
            return True
        if isinstance(node, cst.Name):
            return self._of_name(node.value)
        if isinstance(node, cst.UnaryOperation):
            return isinstance(node.operator, cst.Not) or self.of(node.expression)
        if isinstance(node, cst.BinaryOperation):
            return isinstance(node.operator, cst.FloorDivide) or (self.of(node.left) and self.of(node.right))
        if isinstance(node, (cst.List, cst.Tuple)):
            return all(isinstance(each, cst.Element) and self.of(each.value) for each in node.elements)
        if isinstance(node, cst.IfExp):
            return self.of(node.body) and self.of(node.orelse)
        if isinstance(node, cst.Subscript):
            return self.of(node.value)
        if isinstance(node, cst.Attribute):
            return self._of_attribute(node)
        return isinstance(node, cst.Call) and self._of_call(node)

    def _of_attribute(self, node: cst.Attribute) -> bool:
        if node.attr.value in operations.SCALAR_ATTRIBUTES:
            return True
        if node.attr.value in operations.VIEW_ATTRIBUTES:
            return self.of(node.value)
        return self._meaning(node).startswith("torch.")  # torch.pi, torch.float32

    def _of_call(self, node: cst.Call) -> bool:
        name, function = last_name(node.func) or "", _function_of_torch(self._meaning(node.func))
        if name in _NUMBERS and isinstance(node.func, cst.Name):
            return name not in self.forward.assignments
        if not function and not isinstance(node.func, cst.Attribute):
            return False
        if name in _STEPS or name in operations.INTEGRAL_METHODS or _rounds(node):
            return True
        if name in _BY_SHAPE_OF:
            return True
        if name in operations.INTEGRAL_CONVERSIONS and not function:
            return True
        values = [each.value for each in node.args if each.keyword is None or each.keyword.value not in _NO_VALUES]
        if any(each.keyword is not None and each.keyword.value == "out" for each in node.args):
            return False
        if function:
            values = values[1:] if name in _LIKE else values
            return name in _OF_TORCH and all(map(self.of, values))
        receiver = node.func.value if isinstance(node.func, cst.Attribute) else node.func
        if name in _NEW:
            return all(map(self.of, values))
        if name in _OF_THE_RECEIVER:
            return self.of(receiver)
        return name in _METHODS and self.of(receiver) and all(map(self.of, values))

    def _of_name(self, name: str) -> bool:
        if name not in self.names:
            self.names[name] = False  # for a name that is bound to itself
            self.names[name] = self._is_flat_name(name)
        return self.names[name]

    def _is_flat_name(self, name: str) -> bool:
        entry = next((each for each in self.fn.inputs if each.name == name), None)
        bound = self.forward.assignments.get(name)
        if bound is None:
            return entry is not None and entry.is_tensor is Tri.NO
        only = self.forward.only_assignment(name)
        if entry is not None or only is None or only.value is None:
            return False
        if isinstance(only.value, (Scalar, Constant)):
            return True
        storage = before_views(only.value)
        if not isinstance(storage, Fresh) or self._is_written(storage):
            return False
        if is_tensor(storage) is Tri.YES and kind_of(storage) is Kind.INTEGRAL:
            return True
        whole = isinstance(only.value, (Fresh, View)) and storage.part is None
        return whole and only.value_node is not None and self.of(only.value_node)

    def _is_written(self, storage: Fresh) -> bool:
        """Whether forward may write to a tensor, or pass it to a function that does."""
        targets = (each.target for each in self.forward.facts.of(Mutation))
        if any(each is not None and usual_storage(each) == storage for each in targets):
            return True
        return storage in map(before_views, _passed(self.forward)) or any(calls_that_may_fill(self.forward, storage))

    def _meaning(self, node: cst.BaseExpression) -> str:
        path = dotted(node)
        return self.forward.meaning(path) if path and path.partition(".")[0] not in self.forward.assignments else ""


def _passed(forward: Method) -> Iterator[Value]:
    """What unknown functions get."""
    for call in forward.facts.of(GenericCall):
        for slot in (*call.arguments, *dict(call.keywords).values()):
            for leaf in leaves(slot.value):
                yield from leaf.options()


def _function_of_torch(path: str) -> bool:
    return any(path.startswith(each) and "." not in path[len(each) :] for each in operations.TORCH_NAMESPACES)


def _rounds(node: cst.Call) -> bool:
    """Whether it is a division that is rounded: ``torch.div(x, y, rounding_mode="floor")``."""
    modes = (each.value for each in node.args if each.keyword is not None and each.keyword.value == "rounding_mode")
    return any(isinstance(each, cst.SimpleString) for each in modes)


_NUMBERS = frozenset(("bool", "float", "int", "len", "range"))
"""Functions of Python that give numbers."""

_DRAWN = frozenset(("bernoulli", "multinomial", "rand", "randint", "randn", "randperm"))
_STEPS = frozenset(("ceil", "floor", "floor_divide", "histc", "one_hot", "round", "sign", "trunc")) | _DRAWN
"""Functions and methods whose result changes in steps, or at random."""

_BY_SHAPE_OF = frozenset(
    ("new_ones", "new_zeros", "ones", "ones_like", "rand_like", "randint_like", "randn_like", "zeros", "zeros_like")
)
"""Functions and methods of which no argument decides the values."""

_LIKE = frozenset(("full_like",))
"""Functions that take nothing but the shape from their first argument."""

_NEW = frozenset(("new_full", "new_tensor"))
"""Methods that take nothing but the dtype and the device from their tensor."""

_NO_VALUES = frozenset(("device", "dtype", "generator", "layout", "memory_format"))
"""Keywords that decide no values."""

_OF_THE_RECEIVER = (
    operations.CONVERSIONS | operations.FLOAT_CONVERSIONS | frozenset(("expand_as", "reshape_as", "type_as", "view_as"))
)
"""Methods whose arguments decide no values."""

_METHODS = operations.TENSOR_METHODS | operations.VIEW_METHODS | operations.USUAL_VIEW_METHODS
_OF_TORCH = (
    operations.TORCH_SINGLE
    | operations.FACTORIES
    | operations.TORCH_LIKE
    | operations.TORCH_VIEWS
    | operations.TORCH_USUAL_VIEWS
    | frozenset(("meshgrid",))
)
