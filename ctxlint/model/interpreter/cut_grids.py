"""Launches of kernels of Triton for ``size // block`` programs, none of which writes the rest of a tensor.

And those for ``triton.cdiv(size, block)`` programs that write without a mask, the last one past the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.fitting_sizes import RESHAPING, SIZES
from ctxlint.model.interpreter.events import CutGrid, LeftOut
from ctxlint.model.interpreter.local_names import times_bound
from ctxlint.model.interpreter.names import certain_meaning
from ctxlint.model.interpreter.values import Constant, Fresh, Scalar, Sequence
from ctxlint.model.syntax import (
    children,
    code_of,
    dotted,
    is_name,
    keywords_of,
    last_name,
    parents_below,
    single_index,
    words_of,
)
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.model.index.kernel_blocks import KernelBlocks
    from ctxlint.model.interpreter.tensor_calls import Arguments
    from ctxlint.model.interpreter.values import Slot, Value
    from ctxlint.model.interpreter.walk import Walk


def note_cut_grid(walk: Walk, node: cst.Call, launcher: cst.Subscript, arguments: Arguments, kernel: str) -> None:
    """Record the tensors that a launch fills only in part if a size is not a multiple of the size of a block.

    And those past whose end it writes.
    """
    divisions = [*_divisions(walk, launcher)] if walk.resolver is not None else []
    for rounds_up in sorted({each.rounds_up for each in divisions}):
        own = [each for each in divisions if each.rounds_up is rounds_up]
        known = walk.resolver.kernel_blocks(kernel, unmasked=rounds_up) if walk.resolver is not None else None
        if known is not None and not known.blocks.isdisjoint(known.of_axes(each.axis for each in own)):
            _note(walk, node, launcher, arguments, kernel, known, own)


def _note(
    walk: Walk,
    node: cst.Call,
    launcher: cst.Subscript,
    arguments: Arguments,
    kernel: str,
    known: KernelBlocks,
    divisions: Iterable[_Division],
) -> None:
    """Record it for some divisions of the grid, which all round in the same way."""
    if walk.resolver is None:
        return
    parameters = walk.resolver.kernel_parameters(kernel, arguments.positional, arguments.keywords)
    slots = (*arguments.positional, *arguments.keywords.values())
    passed = {parameters[id(each)].name: each for each in slots if id(each) in parameters}
    function = _Function(walk.names.whole_function())
    for each in divisions:
        block, size = _block(walk, each.block, passed), code_of(each.size)
        tensor = function.measured(each.size)
        known_as_one = block is None and _number(walk, each.block, passed) is not None
        if known_as_one or (block is None and not each.rounds_up) or not tensor or function.asks_about(size, tensor):
            continue
        if any(_may_refuse(walk, call) for call in function.calls_with({size, tensor})):
            continue
        if any(last_name(call.func) in RESHAPING for call in function.calls_with({*words_of(each.block)})):
            continue  # into whole blocks
        if any(name in passed and _is_written(passed[name], size) for name in known.ranges):
            continue  # it is a power of two
        sizes = _sizes(each.block, block, passed)
        whole = {name for name, slot in passed.items() if _is_written(slot, size)}
        blocks = [one for one in known.of_axes([each.axis]) if one.size in sizes]
        pointers = {one.pointer for one in blocks if not any(map(whole.isdisjoint, one.lengths))}
        tensors = [slot for name, slot in passed.items() if name in pointers]
        cut = [one for one in tensors if function.has_size(_allocation(walk, one.value), size, tensor)]
        if not each.rounds_up:
            cut = [one for one in cut if not any(_may_write(walk, *use) for use in function.uses(node, one))]
        if cut:
            names = tuple(code_of(one.node) for one in cut if one.node is not None)
            name = _name_of_block(each, block)
            found = LeftOut(code_of(launcher.value), size, block or 0, name, names, beyond=each.rounds_up)
            walk.record(CutGrid, node, found=found, tensors=tuple(one.value for one in cut))


@record
class _Division:
    """A size of a grid along an ``axis``: ``size // block``, or ``triton.cdiv(size, block)``, which ``rounds_up``."""

    axis: int
    size: cst.BaseExpression
    block: cst.BaseExpression
    rounds_up: bool = False


def _divisions(walk: Walk, launcher: cst.Subscript) -> Iterator[_Division]:
    """The ``size // block`` and ``triton.cdiv(size, block)`` of a grid."""
    index = single_index(launcher)
    grid = walk.peek(index) if index is not None else None
    elements: list[cst.CSTNode | None] = []
    if isinstance(grid, Sequence):
        elements = [getattr(each.value, "node", None) for each in grid.slots]
    elif isinstance(grid, Scalar) and isinstance(grid.node, cst.Lambda) and isinstance(grid.node.body, cst.Tuple):
        elements = [each.value for each in grid.node.body.elements]
    for axis, each in enumerate(elements):
        if isinstance(each, cst.BinaryOperation) and isinstance(each.operator, cst.FloorDivide):
            yield _Division(axis, each.left, each.right)
        elif isinstance(each, cst.Call) and last_name(each.func) == "cdiv" and not keywords_of(each):
            if len(each.args) == _OPERANDS and certain_meaning(walk, each.func) == "triton.cdiv":
                yield _Division(axis, each.args[0].value, each.args[1].value, rounds_up=True)


_OPERANDS = 2


def _sizes(block: cst.BaseExpression, number: int | None, passed: Mapping[str, Slot]) -> set[str]:
    """The parameters of the kernel that are the size of a block."""
    if number is not None:
        return {each for each, slot in passed.items() if slot.value == Constant(number, "int")}
    key = _key(block)
    return {key} if key is not None else {each for each, slot in passed.items() if _is_written(slot, code_of(block))}


def _key(node: cst.BaseExpression) -> str | None:
    """``BLOCK`` of ``meta["BLOCK"]``."""
    index = single_index(node) if isinstance(node, cst.Subscript) else None
    key = index.evaluated_value if isinstance(index, cst.SimpleString) else None
    return str(key) if key is not None else None


def _name_of_block(division: _Division, number: int | None) -> str:
    """The size of a block, as a message calls it."""
    if not division.rounds_up:
        return code_of(division.block)
    return str(number) if number is not None else _key(division.block) or code_of(division.block)


def _block(walk: Walk, node: cst.BaseExpression, passed: Mapping[str, Slot]) -> int | None:
    """The size of a block: a number, or ``meta["BLOCK"]``, which the launch passes; None if it is unknown, or 1."""
    number = _number(walk, node, passed)
    return number if number is not None and number > 1 else None


def _number(walk: Walk, node: cst.BaseExpression, passed: Mapping[str, Slot]) -> int | None:
    key = _key(node)
    value = walk.peek(node) if key is None else passed[key].value if key in passed else None
    number = value.value if isinstance(value, Constant) and value.type_name == "int" else None
    return number if isinstance(number, int) else None


def _may_refuse(walk: Walk, call: cst.Call) -> bool:
    """Whether a call may raise an error for some sizes: not a launch, nor a function of torch or of triton."""
    if isinstance(call.func, cst.Subscript) or last_name(call.func) in _HARMLESS:
        return False
    meaning = certain_meaning(walk, call.func) or dotted(call.func) or ""
    return not meaning.startswith(("torch.", "triton.", "tl."))


_HARMLESS = frozenset(
    ["save_for_backward", "range", "min", "max", "int", "len", "new_empty", "new_zeros", "stride", "copy_"]
)


def _is_written(slot: Slot, code: str) -> bool:
    return slot.node is not None and code_of(slot.node) == code


def _allocation(walk: Walk, value: Value) -> cst.Call | None:
    """The ``torch.empty_like(x)`` or the like that has created a tensor."""
    made = value.node if isinstance(value, Fresh) else None
    if not isinstance(made, cst.Call) or last_name(made.func) not in _ALLOCATIONS:
        return None
    is_method = last_name(made.func).startswith("new_")
    return made if is_method or (certain_meaning(walk, made.func) or "").startswith("torch.") else None


_ALLOCATIONS = frozenset(["empty", "empty_like", "new_empty", "zeros", "zeros_like", "new_zeros"])


def _may_write(walk: Walk, use: cst.CSTNode, name: str) -> bool:
    """Whether a use of a tensor may write to it, or let other code do so: a call, a subscript, most of its methods."""
    if isinstance(use, cst.Attribute):
        return use.attr.value not in _READING
    if not isinstance(use, cst.Call):
        return True
    kernel = certain_meaning(walk, use.func.value) if isinstance(use.func, cst.Subscript) else None
    known = walk.resolver.kernel_blocks(kernel) if kernel is not None and walk.resolver is not None else None
    if known is not None:
        return _may_store(use, known, name)
    reads = (certain_meaning(walk, use.func) or "").startswith("torch.") and "out" not in keywords_of(use)
    return last_name(use.func) != "save_for_backward" and (not reads or last_name(use.func).endswith("_"))


_READING = operations.SIZE_METHODS.union(operations.SCALAR_ATTRIBUTES, ["stride", "sum", "to"])


def _may_store(launch: cst.Call, known: KernelBlocks, name: str) -> bool:
    """Whether the launch of a kernel may write to what a name holds."""
    for at, each in enumerate(launch.args):
        if each.star or (each.keyword is None and at >= len(known.parameters)):
            return True
        parameter = each.keyword.value if each.keyword is not None else known.parameters[at]
        if is_name(each.value, name) and parameter in known.written:
            return True
    return False


class _Function:
    """What a function says about the sizes of tensors."""

    def __init__(self, function: cst.FunctionDef) -> None:
        self.parents: Mapping[cst.CSTNode, cst.CSTNode] = parents_below(function)
        self.bound = times_bound(function.body)
        self.bound.update(each.name.value for each in children(function.params) if isinstance(each, cst.Param))
        self.assigned = [each for each in self.parents if isinstance(each, cst.Assign)]

    def measured(self, size: cst.BaseExpression) -> str:
        """The tensor of whose shape an expression certainly is an element: ``x`` of ``x.shape[0]``; empty if unknown.

        Or that of a name, as after ``a, b = x.shape``.
        """
        if isinstance(size, cst.Name):
            bound = [each.value for each in self.assigned if size.value in _targets(each)]
            if len(bound) != 1 or self.bound[size.value] != 1:
                return ""
            size = bound[0]
        if isinstance(size, cst.Subscript):
            size = size.value
        if isinstance(size, cst.Call) and last_name(size.func) in ("size", "numel"):
            size = size.func
        named = isinstance(size, cst.Attribute) and size.attr.value in SIZES
        tensor = size.value if isinstance(size, cst.Attribute) and named else None
        return tensor.value if isinstance(tensor, cst.Name) and self._keeps_shape(tensor.value) else ""

    def _keeps_shape(self, name: str) -> bool:
        """Whether a name is that of one tensor, or of the result of its ``contiguous``."""
        bound = [each.value for each in self.assigned if name in _targets(each)]
        plain = [each for each in bound if isinstance(each, cst.Call) and last_name(each.func) == "contiguous"]
        return self.bound[name] - len(plain) == 1

    def asks_about(self, size: str, tensor: str) -> bool:
        """Whether a comparison, a remainder or a difference is about a size, or the shape of its tensor."""
        for node in self.parents:
            remainder = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _REMAINDERS)
            words = {*words_of(node)} if remainder or isinstance(node, cst.Comparison) else set()
            if size in words or (tensor in words and not words.isdisjoint(SIZES)):
                return True
        return False

    def calls_with(self, words: set[str]) -> Iterator[cst.Call]:
        """The calls that have some of these names or numbers in their arguments."""
        for node in self.parents:
            if isinstance(node, cst.Call) and any(words & {*words_of(each.value)} for each in node.args):
                yield node

    def has_size(self, made: cst.Call | None, size: str, tensor: str) -> bool:
        """Whether a new tensor certainly has a dimension of a size: it is like its tensor, or created with it."""
        if made is None:
            return False
        first = made.args[0].value if made.args else made
        if last_name(made.func).endswith("_like"):
            return is_name(first, tensor)
        shape = first.elements if isinstance(first, (cst.Tuple, cst.List)) else made.args
        return any(code_of(each.value) == size for each in shape)

    def uses(self, launch: cst.Call, tensor: Slot) -> Iterator[tuple[cst.CSTNode, str]]:
        """What else is done with a tensor: the calls that get it, and the attributes and elements of it."""
        name = tensor.node.value if isinstance(tensor.node, cst.Name) else ""
        if self.bound[name] != 1:
            yield launch, name
        for node, above in self.parents.items():
            if isinstance(node, cst.Name) and node.value == name:
                call = self.parents[above] if isinstance(above, cst.Arg) else above
                if call is not launch and isinstance(call, (cst.Call, cst.Attribute, cst.Subscript)):
                    if not isinstance(above, cst.Attribute) or above.value is node:
                        yield call, name


_REMAINDERS = (cst.Modulo, cst.BitAnd, cst.Subtract)


def _targets(node: cst.Assign) -> set[str]:
    return {word for each in node.targets for word in words_of(each.target)}
