"""Parameters of backward behind the incoming gradients: torch passes nothing for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.inputs import types_allowed_by
from ctxlint.model.interpreter.values import Constant, Tri, is_input
from ctxlint.model.syntax import code_of, is_name, names_in
from ctxlint.named_tuples import NamedTuple
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
        if param.name in inputs and param.name in forward.facts.names_read and _reads_argument(fn, backward, param):
            yield param


def _is_one_tensor(fn: FunctionClass, value: Value) -> bool:
    """Whether a value is an input that is annotated as a tensor, or an optional one: ``Tensor | None``."""
    annotation = fn.inputs[value.index].param.annotation if is_input(value) and value.index < len(fn.inputs) else None
    kinds = {*types_allowed_by(annotation or "")} - {"None"}
    return bool(kinds) and kinds <= types.TENSOR_ANNOTATIONS


def _reads_argument(fn: FunctionClass, backward: Method, param: Param) -> bool:
    """Whether backward reads a parameter for more than to replace it by what ctx holds, or to refuse it.

    Only before it binds the name to something else.
    """
    stores = {*backward.binders.get(param.name, ()), param.node}
    kept = _Kept(backward, param.name, _attributes_with(fn, param.name))
    if any(kept.fills(each) for store in stores for each in (store, *backward.above(store))):
        return False
    uses = (each for each in backward.named.get(param.name, ()) if backward.parents.get(each) not in stores)
    return any(
        not isinstance(backward.parents[each], cst.AssignTarget)
        and backward.holds_argument(param.name, each)
        and not any(kept.replaces(around) for around in (each, *backward.above(each)))
        for each in uses
    )


def _attributes_with(fn: FunctionClass, name: str) -> frozenset[str]:
    """The attributes of ctx that have the value of an input, or its name."""
    inputs = {each.index for each in fn.inputs if each.name == name}
    written = (each for each in fn.context_writes if each.value is not None)
    same = (each.attribute for each in written if is_input(each.value) and each.value.index in inputs)
    return frozenset([name, *same])


class _Kept(NamedTuple):
    """What of backward replaces a parameter by one of some attributes of ctx."""

    backward: Method
    name: str
    attributes: frozenset[str]

    def fills(self, node: cst.CSTNode) -> bool:
        """Whether a statement around a binding of the name takes the value from ctx, or depends on the parameter."""
        if isinstance(node, cst.If):
            return self.name in names_in(node.test) and self.asks(node)
        return isinstance(node, (cst.Assign, cst.AnnAssign, cst.NamedExpr)) and self.takes(node)

    def replaces(self, node: cst.CSTNode) -> bool:
        """Whether code around a read is a choice of what ctx has: ``ctx.n if n < 0 else n``, or a test that refuses."""
        if isinstance(node, cst.IfExp):
            return self.takes(node) or (self.name in names_in(node.test) and self.asks(node))
        if isinstance(node, cst.BooleanOperation):
            return self.takes(node) or (is_name(node.left, self.name) and self.asks(node.right))
        refuses = isinstance(node, cst.Assert) or node in self.backward.raising_tests
        return refuses or (isinstance(node, cst.Call) and is_name(node.func, "getattr") and self.asks(node))

    def asks(self, node: cst.CSTNode) -> bool:
        """Whether code mentions ctx."""
        return self.backward.ctx_name in names_in(node)

    def takes(self, node: cst.CSTNode) -> bool:
        """Whether code reads one of the attributes, or asks for it by its name."""
        reads = (each for name in self.attributes for each in self.backward.context_attributes.get(name, ()))
        return any(node in self.backward.above(each) for each in reads) or (
            self.asks(node)
            and any(code in code_of(node) for name in self.attributes for code in (f'"{name}"', f"'{name}'"))
        )
