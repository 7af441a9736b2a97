"""Parameters of backward behind the incoming gradients: torch passes nothing for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.inputs import types_allowed_by
from ctxlint.model.interpreter.values import Constant, Tri, is_input
from ctxlint.model.syntax import is_name, names_in
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
    """Whether backward reads a parameter for more than to replace it by what ctx holds, or to refuse it.

    Only before it binds the name to something else.
    """
    stores = {*backward.binders.get(param.name, ()), param.node}
    around = (each for store in stores for each in (store, *backward.above(store)))
    if any(isinstance(each, _BINDING) and _mentions_ctx(backward, each) for each in around):
        return False
    uses = (each for each in backward.named.get(param.name, ()) if backward.parents.get(each) not in stores)
    return any(
        not isinstance(backward.parents[each], cst.AssignTarget)
        and backward.holds_argument(param.name, each)
        and not _is_given_up(backward, each)
        for each in uses
    )


_BINDING = (cst.Assign, cst.AnnAssign, cst.NamedExpr)


def _is_given_up(backward: Method, use: cst.CSTNode) -> bool:
    """Whether a use asks whether ctx has the value, or is a test that refuses it: ``ctx.n if n < 0 else n``."""
    around = (use, *backward.above(use))
    chosen = (cst.IfExp, cst.BooleanOperation, cst.Call)
    return any(
        isinstance(each, cst.Assert)
        or each in backward.raising_tests
        or (
            isinstance(each, chosen)
            and (not isinstance(each, cst.Call) or is_name(each.func, "getattr"))
            and _mentions_ctx(backward, each)
        )
        for each in around
    )


def _mentions_ctx(backward: Method, node: cst.CSTNode) -> bool:
    return backward.ctx_name in names_in(node)
