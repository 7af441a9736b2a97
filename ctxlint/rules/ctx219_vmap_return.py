"""CTX219: ``vmap`` that does not return a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Constant, Fresh, Mapping, Scalar, Sequence, Single, View
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.values import Value


class VmapReturn(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `vmap` that certainly returns something other than a tuple of two elements, `(output, out_dims)`.

    ## Why is this bad?
    Torch unpacks the result into the output and the mapped dimension. Anything but a tuple of two elements raises under
    `torch.vmap`, even a list of two: `RuntimeError: Expected the vmap staticmethod to have two returns, ...`

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
    Return values of helpers are not checked. Not reported if `target-torch` ends before 2.0.

    ## References
    - [Extending torch.func: the vmap staticmethod](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX219"
    name = "vmap-return"
    subject = FunctionClass

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


def _is_not_pair(value: Value) -> bool:
    """Whether a value is certainly not a tuple of two."""
    if isinstance(value, Sequence):
        return value.kind != "tuple" or (len(value.slots) != 2 if value.exact else value.minimum > 2)
    return isinstance(value, (Constant, Fresh, View, Single, Mapping)) or (
        isinstance(value, Scalar) and value.sort not in ("shape", "object")
    )
