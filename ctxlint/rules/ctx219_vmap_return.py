"""CTX219: ``vmap`` that does not return a pair, or ignores which dimension is mapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Constant, Fresh, Mapping, Scalar, Sequence, Single, Tri, View, is_tensor
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class VmapReturn(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `vmap` that certainly returns something other than a tuple of two elements, `(output, out_dims)`, and one that returns
    a constant dimension but never reads `in_dims`; also `out_dims` whose structure is not that of the output, such as three dimensions
    for two outputs.

    ## Why is this bad?
    Torch unpacks the result into the output and the mapped dimension. Anything but a tuple of two elements raises under
    `torch.vmap`, even a list of two: `RuntimeError: Expected the vmap staticmethod to have two returns, ...`

    `out_dims` is a number or `None` for all outputs, or a tuple with one for each: other numbers, or a tuple for one tensor, raise
    `RuntimeError: The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple`.

    `torch.vmap(f, in_dims=1)` maps over dimension 1 of the input. A `vmap` that computes with the input as it is, and returns 0 for
    the output, silently swaps the mapped dimension with another one.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 2, in_dims[0]
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Return values of helpers are not checked, nor is a constant dimension in a `vmap` that checks something itself. Not reported if `target-torch` ends before 2.0.

    ## References
    - [Extending torch.func: the vmap staticmethod](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX219"
    name = "vmap-return"
    subject = FunctionClass
    holds_unreached = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        vmap = fn.methods.get("vmap")
        if vmap is None or vmap.inherited or not fn.signature_judgeable or not vmap.signature_known:
            return
        for returned in vmap.returns if settings.torch.reach(2, 0) else ():
            if all(_is_not_pair(option) for option in returned.value.options()):
                yield Finding(
                    fn.span(returned.node),
                    f"`vmap` of `{fn.name}` does not return a tuple of 2 elements; torch raises RuntimeError under `torch.vmap`. Return "
                    "`(output, out_dims)`.",
                    rests_on=(returned.value,),
                )
            elif (mismatch := _mismatch(returned.value)) is not None:
                fact, remedy = mismatch
                yield Finding(
                    fn.span(returned.node),
                    f"`vmap` of `{fn.name}` returns {fact}; torch raises RuntimeError under `torch.vmap`. Return {remedy}.",
                    rests_on=(returned.value,),
                )
            elif _ignores_dimension(vmap, returned.value):
                yield Finding(
                    fn.span(returned.node),
                    f"`vmap` of `{fn.name}` returns a constant dimension but never reads `{_names(vmap)[1]}`; where `torch.vmap` maps over another "
                    f"dimension, the result is silently wrong. Derive it from `{_names(vmap)[1]}`.",
                )


def _names(vmap: Method) -> list[str]:
    """The parameters for `info` and `in_dims`, as far as the method has them."""
    return [each.name.value for each in vmap.node.params.params[:2]]


def _ignores_dimension(vmap: Method, value: Value) -> bool:
    """Whether a pair has a number as its second element, and nothing reads which dimension is mapped.

    A check may refuse all others.
    """
    if vmap.raising_tests:
        return False
    slots = value.slots if isinstance(value, Sequence) and value.exact else ()
    dimension = slots[1].value if len(slots) == 2 else None
    names = _names(vmap)
    if not isinstance(dimension, Constant) or not isinstance(dimension.value, int) or len(names) < 2:
        return False
    reads = (node for name in names for node in vmap.named.get(name, ()))
    return not any(not isinstance(vmap.parents[node], cst.Param) for node in reads)


def _mismatch(value: Value) -> tuple[str, str] | None:
    """What does not fit in the pair of outputs and their dimensions, and what to return; None if they may fit."""
    slots = value.slots if isinstance(value, Sequence) and value.exact else ()
    output, dimensions = (slots[0].value, slots[1].value) if len(slots) == 2 else (None, None)
    if output is None or not isinstance(dimensions, Sequence) or not dimensions.exact:
        return None
    number = counted(len(dimensions.slots), "dimension")
    if is_tensor(output) is Tri.YES:
        return f"one tensor, and a {dimensions.kind} of {number}", "a number, as for one output"
    if not isinstance(output, Sequence) or not output.exact or output.kind != "tuple":
        return None
    outputs = counted(len(output.slots), "output")
    if len(output.slots) != len(dimensions.slots):
        return f"{outputs} but {number}", "one dimension for each output"
    return (f"a list of dimensions for a tuple of {outputs}", "a tuple") if dimensions.kind == "list" else None


def _is_not_pair(value: Value) -> bool:
    """Whether a value is certainly not a tuple of two."""
    if isinstance(value, Sequence):
        return value.kind != "tuple" or (len(value.slots) != 2 if value.exact else value.minimum > 2)
    return isinstance(value, (Constant, Fresh, View, Single, Mapping)) or (
        isinstance(value, Scalar) and value.sort not in ("shape", "object")
    )
