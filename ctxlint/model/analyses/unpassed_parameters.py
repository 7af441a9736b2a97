"""Parameters of backward behind the incoming gradients: torch passes nothing for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.inputs import types_allowed_by
from ctxlint.model.interpreter.values import Constant, Tri, is_input
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method, Param
    from ctxlint.model.interpreter.values import Value


def unpassed_parameters(fn: FunctionClass) -> Iterator[Param]:
    """Those named like an input that forward reads, with a number, flag or string as default, which backward reads.

    The input is not a tensor. Backward keeps the default, whatever forward gets.
    """
    forward, backward = fn.forward, fn.counted_backward
    if forward is None or backward is None or backward.name in fn.called_directly:
        return
    counts = [1 if _is_one_tensor(fn, each.value) else each.count for each in fn.outputs]
    most = max((each for each in counts if each is not None), default=0)
    if None in counts or not most:
        return
    inputs = {each.name: each for each in fn.inputs if each.is_tensor is not Tri.YES}
    for param in backward.own_params:
        default = param.default
        if param in backward.positional[:most] or not isinstance(default, Constant) or default.value is None:
            continue
        if param.name in inputs and param.name in forward.facts.names_read and _reads_argument(backward, param):
            yield param


def _is_one_tensor(fn: FunctionClass, value: Value) -> bool:
    """Whether a value is an input that is annotated as a tensor, or an optional one: ``Tensor | None``."""
    annotation = fn.inputs[value.index].param.annotation if is_input(value) and value.index < len(fn.inputs) else None
    kinds = {*types_allowed_by(annotation or "")} - {"None"}
    return bool(kinds) and kinds <= types.TENSOR_ANNOTATIONS


def _reads_argument(backward: Method, param: Param) -> bool:
    """Whether backward reads a parameter before it binds the name to something else."""
    stores = {*backward.binders.get(param.name, ()), param.node}
    uses = (each for each in backward.named.get(param.name, ()) if backward.parents.get(each) not in stores)
    return any(
        not isinstance(backward.parents[each], cst.AssignTarget) and backward.holds_argument(param.name, each)
        for each in uses
    )
