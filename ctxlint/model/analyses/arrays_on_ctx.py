"""NumPy arrays that forward keeps on ctx and that share memory with an input on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.attribute_uses import written_by_backward
from ctxlint.model.interpreter.values import Parameter, Scalar, Tri
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import ContextRead, ContextWrite
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class ArrayOnContext:
    """``ctx.attribute = x.detach().cpu().numpy()``, for an input ``x`` with a gradient."""

    write: ContextWrite
    input: Input


def arrays_on_ctx(fn: FunctionClass) -> Iterator[ArrayOnContext]:
    """The arrays whose values backward reads, each from an input that is not saved as well.

    None of an attribute that another statement writes.
    """
    arrays = [each for each in fn.context_writes if isinstance(each.value, Scalar) and each.value.sort == "array"]
    written = written_by_backward(fn) if arrays else ()
    for write in arrays:
        method = next((each for each in fn.context_methods if write.node in each.parents), None)
        if method is None or write.by or len(fn.writes_by_attribute[write.attribute]) > 1 or write.attribute in written:
            continue
        entry = _input_behind(fn, method, write.value)
        if entry is not None and any(
            _reads_values(fn, each) for each in fn.reads_by_attribute.get(write.attribute, ())
        ):
            yield ArrayOnContext(write, entry)


def _input_behind(fn: FunctionClass, method: Method, value: Value | None) -> Input | None:
    """The input with a gradient whose memory an array shares if the input is on the CPU."""
    node = value.node if isinstance(value, Scalar) and value.sort == "array" else None
    while True:
        if isinstance(node, cst.Call) and not node.args and isinstance(node.func, cst.Attribute):
            sharing, node = node.func.attr.value in _SHARING, node.func.value
        elif isinstance(node, cst.Attribute):
            sharing, node = node.attr.value == "data", node.value
        else:
            break
        if not sharing:
            return None
    if not isinstance(node, cst.Name) or not method.holds_argument(node.value, node):
        return None
    entry = next((each for each in fn.inputs if each.name == node.value), None)
    if entry is None or entry.gradient is not Tri.YES or entry.against_a_gradient:
        return None
    saved = [slot.value for save in fn.saves for slot in save.arguments]
    return None if any(isinstance(each, Parameter) and each.index == entry.index for each in saved) else entry


_SHARING = frozenset({"cpu", "detach", "numpy"})
"""Methods that copy nothing of a tensor on the CPU."""


def _reads_values(fn: FunctionClass, read: ContextRead) -> bool:
    """Whether a read in backward is not only about the shape or the dtype."""
    backward = fn.backward
    around = backward.parents.get(read.node) if backward is not None else None
    return around is not None and not (isinstance(around, cst.Attribute) and around.attr.value in _METADATA)


_METADATA = frozenset({"dtype", "ndim", "nbytes", "shape", "size", "strides"})
