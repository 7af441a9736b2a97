"""CTX241: forward runs a backward pass through the graph of its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.callers_graph import inputs_run_through
from ctxlint.model.analyses.undefined_attributes import never_happens
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class BackwardInForward(Rule[FunctionClass]):
    """
    ## What it does
    Reports `y.backward()` and `torch.autograd.backward(y)` in `forward` if `y` was computed under `torch.enable_grad()`
    from an input that is not detached.

    ## Why is this bad?
    Inside `forward`, an input still has the graph of the caller. The inner backward pass runs through all of it: it adds to
    the `.grad` of leaves, and frees the graph, so that the caller's own backward raises `RuntimeError: Trying to backward
    through the graph a second time`.

    ## Example
    ```python
    import torch


    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            scale = torch.ones(1, requires_grad=True)
            with torch.enable_grad():
                y = torch.tanh(x * scale)
                y.sum().backward()
            ctx.slope = scale.grad.item()
            return x * ctx.slope

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.slope
    ```

    ## Use instead
    ```python
    import torch


    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            scale = torch.ones(1, requires_grad=True)
            with torch.enable_grad():
                y = torch.tanh(x.detach() * scale)
                y.sum().backward()
            ctx.slope = scale.grad.item()
            return x * ctx.slope

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.slope
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only operations of torch between the input and `y` are followed. Not reported: `torch.autograd.grad` and
    `backward(inputs=...)`, which run through no more than they need.

    ## References
    - [torch.Tensor.backward](https://pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    """

    code = "CTX241"
    name = "backward-in-forward"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward = fn.forward
        for call, entry in inputs_run_through(fn):
            if forward is not None and not forward.inherited and not never_happens(fn, forward, call):
                yield Finding(
                    fn.span(call.node),
                    f"`backward` in `forward` of `{fn.name}` runs through the graph of the input `{entry.name}`; a leaf silently "
                    f"gets this gradient too, and for others the caller's backward raises RuntimeError if their graph saves tensors. "
                    f"Use `{entry.name}.detach()`.",
                )
