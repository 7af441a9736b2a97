"""Launches of kernels of Triton that get to a fault in their code."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import asked_by
from ctxlint.model.interpreter.events import FaultyLaunch, KernelFault, KernelFaultKind, Question, Step
from ctxlint.model.interpreter.names import certain_meaning
from ctxlint.model.interpreter.values import Constant, Parameter, Scalar, Sequence, Tri, is_none
from ctxlint.model.syntax import is_name, last_name, signed_integer, single_index
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.index.kernel_bindings import UnboundUnderFlag
    from ctxlint.model.index.kernel_faults import KernelFaults
    from ctxlint.model.interpreter.tensor_calls import Arguments
    from ctxlint.model.interpreter.values import Slot, Value
    from ctxlint.model.interpreter.walk import Walk


def note_faulty_launch(walk: Walk, node: cst.Call, launcher: cst.Subscript, arguments: Arguments, kernel: str) -> None:
    """Record the code of a kernel that fails, or does the wrong thing, as it is launched."""
    given = (arguments.positional, arguments.keywords, arguments.open_ended)
    found = walk.resolver.kernel_faults(kernel, *given) if walk.resolver is not None else None
    if found is None:
        return
    definition, faults, passed = found
    launch = _Launch(walk, launcher, faults, passed)
    for code, fault in (*launch.unbound(), *launch.shared(), *launch.misaligned(), *launch.narrow()):
        unit, name = definition.unit, definition.name
        step = Step(unit.path, unit.source.span_of(code), f"`{name}` {_DEEDS[fault.kind]} `{fault.code}` here")
        walk.record(FaultyLaunch, node, fault=replace(fault, callee=name, steps=(step,)))


def note_unguarded_launch(walk: Walk, node: cst.Call, arguments: Arguments, kernel: str) -> None:
    """Record a launch on the current GPU; what may choose that around it is looked for later."""
    definition = walk.resolver.launched_kernel(kernel) if walk.resolver is not None else None
    if definition is None or arguments.open_ended:
        return
    if _CHOOSING.isdisjoint(arguments.keywords):
        walk.record(FaultyLaunch, node, fault=KernelFault(KernelFaultKind.UNGUARDED, definition.name, "", ("", "")))


_CHOOSING = frozenset(["device", "stream"])
"""The keywords of a launch by which the first releases of Triton got a device."""

_DEEDS = {
    KernelFaultKind.UNBOUND: "reads",
    KernelFaultKind.SHARED: "writes through",
    KernelFaultKind.MISALIGNED: "uses",
    KernelFaultKind.NARROW: "computes",
}


@record
class _Launch:
    """One launch of a kernel, and what each of its parameters gets."""

    walk: Walk
    launcher: cst.Subscript
    faults: KernelFaults
    passed: Mapping[str, Slot]

    def unbound(self) -> Iterator[tuple[ast.expr, KernelFault]]:
        """The names that are not bound for the flags of this launch, or not if what it tests is None."""
        for each in self.faults.unbound:
            certain, absent = self._comes(each)
            if certain or absent is not None:
                flags = (each.flag.written(not each.value), each.flag.written(each.value))
                yield each.name, KernelFault(KernelFaultKind.UNBOUND, "", each.name.id, flags, absent=absent)

    def _comes(self, fault: UnboundUnderFlag) -> tuple[bool, Value | None]:
        """Whether the flag certainly has the value that brings a fault, or what has to be None for that."""
        parameter, given = fault.flag
        slot = self.passed.get(parameter)
        if slot is None:  # by the table of ``heuristics``
            slot, given = self.passed.get(self.faults.asked.get(parameter, "")), True
        if slot is None:
            return False, None
        if given:
            return self._is_given(slot.value, asked=fault.value)
        if isinstance(slot.value, Constant):
            return bool(slot.value.value) is fault.value, None
        asks = asked_by(self.walk, slot.node, fault.value) if slot.node is not None else None
        if asks is None or asks.question is not Question.IS_NONE:
            return False, None
        return self._is_given(asks.value, asked=not asks.answer)

    def _is_given(self, value: Value, *, asked: bool) -> tuple[bool, Value | None]:
        """Whether a value certainly is None or not, as ``asked``; itself if it has to be None, which is not known."""
        absent = Tri.UNKNOWN if isinstance(value, Parameter) else is_none(value)
        if absent is Tri.UNKNOWN:
            return False, None if asked else value
        return (absent is Tri.NO) is asked, None

    def shared(self) -> Iterator[tuple[ast.expr, KernelFault]]:
        """The stores of all programs along an axis of which there are several to the same addresses."""
        for each in self.faults.shared:
            element = self._along(each.axis)
            if element is not None and self._is_size(*element):
                kind, axis = KernelFaultKind.SHARED, f" along axis {each.axis}" if each.axis else ""
                moved = next(iter(each.moved), "")
                yield each.node, KernelFault(kind, "", each.pointer, (moved, ""), (axis, ""))

    def _along(self, axis: int) -> tuple[Value, cst.BaseExpression | None] | None:
        """The number of programs along an axis of the grid; None if that is not written out."""
        index = single_index(self.launcher)
        grid = self.walk.peek(index) if index is not None else None
        if isinstance(grid, Sequence) and grid.exact and axis < len(grid.slots):
            return grid.slots[axis].value, grid.slots[axis].node
        made = grid.node if isinstance(grid, Scalar) else None
        sizes = made.body.elements if isinstance(made, cst.Lambda) and isinstance(made.body, cst.Tuple) else ()
        if axis < len(sizes) and not any(isinstance(each, cst.StarredElement) for each in sizes):
            return self.walk.peek(sizes[axis].value), sizes[axis].value
        return None

    def _is_size(self, value: Value, node: cst.CSTNode | None) -> bool:
        """Whether a number is a size of a tensor, or computed from one, which is 1 only for the smallest tensors."""
        if isinstance(value, Constant):
            return isinstance(value.value, int) and value.value > 1
        made = value.node if isinstance(value, Scalar) else None
        if isinstance(node, cst.Name):
            is_of_shape = isinstance(made, cst.Element)  # ``rows, n = x.shape``
            return is_of_shape or (isinstance(made, cst.BaseExpression) and self._is_size(value, made))
        if isinstance(node, cst.Subscript):
            return isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"
        if isinstance(node, cst.BinaryOperation):
            sides = [(self.walk.peek(each), each) for each in (node.left, node.right)]
            if isinstance(node.operator, cst.FloorDivide):
                return self._is_size(*sides[0]) and self._is_number(node.right)
            return isinstance(node.operator, cst.Multiply) and any(self._is_size(*each) for each in sides)
        if not isinstance(node, cst.Call):
            return False
        if certain_meaning(self.walk, node.func) == "triton.cdiv" and len(node.args) == 2:
            size, block = (each.value for each in node.args)
            return self._is_size(self.walk.peek(size), size) and self._is_number(block)
        return last_name(node.func) in ("size", "numel") or is_name(node.func, "len")

    def _is_number(self, block: cst.BaseExpression) -> bool:
        """Whether the size of a block is known: a number, or ``meta["BLOCK"]``, which the launch passes or tries."""
        index = single_index(block) if isinstance(block, cst.Subscript) else None
        key = str(index.evaluated_value) if isinstance(index, cst.SimpleString) else ""
        if key and key not in self.passed:
            return key in self.faults.tuned
        value = self.passed[key].value if key else self.walk.peek(block)
        return isinstance(value, Constant)

    def misaligned(self) -> Iterator[tuple[ast.expr, KernelFault]]:
        """The values for rows that a block takes for its columns, if there certainly are several rows."""
        for each in self.faults.misaligned:
            rows, columns = map(self._number, (each.rows, each.columns))
            if rows.isdigit() and (columns == "1" or int(rows) < 2):
                continue
            if rows.isdigit() or each.rows in self.faults.tuned:
                kind, vector, block = KernelFaultKind.MISALIGNED, ast.unparse(each.vector), ast.unparse(each.block)
                operand = vector if isinstance(each.vector, (ast.Name, ast.Call, ast.Subscript)) else f"({vector})"
                yield each.vector, KernelFault(kind, "", vector, (block, operand), (rows, columns))

    def narrow(self) -> Iterator[tuple[ast.expr, KernelFault]]:
        """The first offset of 32 bits for each pointer, if the launch passes a size or a stride for its factor."""
        seen = set[str]()
        for each in self.faults.narrow:
            slot = self.passed.get(each.size)
            if slot is not None and each.pointer not in seen and self._is_extent(slot.value, slot.node):
                seen.add(each.pointer)
                others = (each.pointer, ast.unparse(each.program))
                yield each.node, KernelFault(KernelFaultKind.NARROW, "", ast.unparse(each.node), others)

    def _is_extent(self, value: Value, node: cst.CSTNode | None) -> bool:
        """Whether a number is a size of a tensor, or the stride of its first dimension, or of its rows."""
        made = value.node if isinstance(value, Scalar) and isinstance(node, cst.Name) else node
        if isinstance(made, cst.Call) and last_name(made.func) == "stride":
            dimension = signed_integer(made.args[0].value) if len(made.args) == 1 else None
            return dimension in (0, -2)
        measured = made is not node or isinstance(node, (cst.Subscript, cst.Call))
        return measured and not isinstance(made, cst.Element) and self._is_size(value, node)

    def _number(self, size: str) -> str:
        """The number that a launch passes for the size of a block, or its name."""
        slot = self.passed.get(size)
        value = slot.value.value if slot is not None and isinstance(slot.value, Constant) else size
        return str(value)
