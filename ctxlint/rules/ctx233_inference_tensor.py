"""CTX233: a Function gives autograd tensors that it creates in inference mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.inference_tensors import Use, inference_tensors
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.inference_tensors import InferenceTensors


class InferenceTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports tensors that are created under `torch.inference_mode()` and that `backward` returns, `forward` returns, or
    `save_for_backward` gets.

    ## Why is this bad?
    Autograd cannot work with such a tensor. As a gradient, it raises `RuntimeError: Inplace update to inference tensor outside
    InferenceMode is not allowed` once torch adds another gradient to it, as for an input that is passed twice. As an output, most
    operations on it record no graph, so that gradients are silently lost, and others raise. `save_for_backward` refuses it.

    Grad mode is off in `forward` and `backward` anyway, and a normal tensor can be filled in inference mode.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            with torch.inference_mode():
                grad_x = torch.empty_like(x)
                torch.mul(grad_output, y, out=grad_x)
            return grad_x, grad_output * x
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            grad_x = torch.empty_like(x)
            with torch.inference_mode():
                torch.mul(grad_output, y, out=grad_x)
            return grad_x, grad_output * x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only tensors that the method itself creates count.

    ## References
    - [Inference mode](https://pytorch.org/docs/stable/notes/autograd.html#inference-mode)
    - [torch.inference_mode](https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html)
    """

    code = "CTX233"
    name = "inference-tensor"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable:
            return
        for each in inference_tensors(fn):
            yield Finding(fn.span(each.node), _message(each))


def _message(found: InferenceTensors) -> str:
    several = len(found.names) > 1
    names, are, them = quoted(found.names), "are" if several else "is", "them" if several else "it"
    if found.use is Use.GRADIENT:
        return (
            f"{names} {are} created in inference mode; torch raises RuntimeError when it adds another gradient to "
            f"{'one' if several else 'it'}, as for an input with two uses. Make {them} outside of `torch.inference_mode()`."
        )
    does = "returns" if found.use is Use.OUTPUT else "saves"
    effect = (
        "most operations on it silently record no graph, or raise RuntimeError"
        if found.use is Use.OUTPUT
        else "torch raises RuntimeError at `apply` if a gradient is needed"
    )
    return (
        f"`{found.method.name}` {does} {names}, created in inference mode; {effect}. Make {them} outside of "
        f"`torch.inference_mode()`."
    )
