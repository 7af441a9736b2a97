"""CTX224: backward or forward differentiates with respect to several inputs, of which some may need no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.frozen_inputs import frozen_inputs
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.frozen_inputs import FrozenElement


class FrozenInput(Rule[FunctionClass]):
    """
    ## What it does
    Reports `torch.autograd.grad(y, (x, w), ...)` in `backward` with respect to two or more inputs as they were saved, or
    their copies from `x.detach().requires_grad_(x.requires_grad)` in `forward`; also in a `forward` that computes the
    gradients itself, with respect to an input as it was passed.

    ## Why is this bad?
    A saved input keeps its `requires_grad`, and so does what `forward` gets. As soon as one of the inputs is frozen, `torch.autograd.grad` raises
    `RuntimeError: One of the differentiated Tensors does not require grad`, even with `allow_unused=True`.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, grad_output):
            x, w = ctx.saved_tensors
            with torch.enable_grad():
                y = x * w
            grad_x, grad_w = torch.autograd.grad(y, (x, w), grad_output)
            return grad_x, grad_w
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, grad_output):
            x, w = (each.detach().requires_grad_() for each in ctx.saved_tensors)
            with torch.enable_grad():
                y = x * w
            grad_x, grad_w = torch.autograd.grad(y, (x, w), grad_output)
            return grad_x, grad_w
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Checked only if the call lists the inputs in a tuple or a list: what is passed as `*args` is often filtered by
    `requires_grad` first. Not reported if the method tests `ctx.needs_input_grad`, or reads or sets `requires_grad`
    anywhere, except that of a detached copy in `forward`.

    ## References
    - [torch.autograd.grad](https://pytorch.org/docs/stable/generated/torch.autograd.grad.html)
    """

    code = "CTX224"
    name = "frozen-input"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward, forward = fn.judgeable_backward, fn.forward
        for method in (forward, backward) if backward is not None else ():
            frozen = {code_of(each.node): each for each in frozen_inputs(fn, method)} if method is not None else {}
            if method is not None and not method.inherited and frozen:
                first = next(iter(frozen.values()))
                saved = [name for name, each in frozen.items() if each.copied is None]
                names = saved if first.copied is None else [code_of(first.node)]
                yield Finding(fn.span(first.node), _message(names, first, "passed" if method is forward else "saved"))


def _message(names: list[str], first: FrozenElement, came: str) -> str:
    """What to say of the inputs, or the copy, that calls of ``torch.autograd.grad`` differentiate with respect to."""
    if first.copied is not None:
        what = f"a copy with the flag of the input `{first.parameter.name}`"
        remedy = f"`{first.copied}.requires_grad_()` for it"
    elif len(names) > 1:
        what, remedy = f"inputs as they were {came}", "`.detach().requires_grad_()` of each"
    else:
        what, remedy = f"the input `{first.parameter.name}` as it was {came}", f"`{names[0]}.detach().requires_grad_()`"
    return (
        f"`torch.autograd.grad` differentiates with respect to {quoted(names)}, {what}; it raises RuntimeError unless "
        f"{'each of them' if len(names) > 1 else 'that input'} needs a gradient. Use {remedy}."
    )
