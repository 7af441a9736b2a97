"""CTX326: a flag decides what forward computes, and backward does not know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.forgotten_flags import forgotten_flags
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class IgnoredFlag(Rule[FunctionClass]):
    """
    ## What it does
    Reports a flag `causal` that decides what `forward` computes, or a flag `training` that it passes to a dropout or
    batch norm of torch, if nothing that `backward` reads depends on it.

    ## Why is this bad?
    Attention with a causal mask has another gradient than attention without. A `backward` that does not know which of them
    `forward` has computed is silently wrong for one. The same holds for dropout, which is the identity unless it trains. Tests
    of one value of the flag do not show it.

    ## Example
    ```python
    import torch


    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, causal):
            scores = q @ k.transpose(-1, -2)
            if causal:
                scores = scores.tril()
            ctx.save_for_backward(q, k)
            ctx.causal = causal
            return scores

        @staticmethod
        def backward(ctx, grad):
            q, k = ctx.saved_tensors
            grad = grad.tril()
            return grad @ k, grad.transpose(-1, -2) @ q, None
    ```

    ## Use instead
    ```python
    import torch


    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, causal):
            scores = q @ k.transpose(-1, -2)
            if causal:
                scores = scores.tril()
            ctx.save_for_backward(q, k)
            ctx.causal = causal
            return scores

        @staticmethod
        def backward(ctx, grad):
            q, k = ctx.saved_tensors
            if ctx.causal:
                grad = grad.tril()
            return grad @ k, grad.transpose(-1, -2) @ q, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    The flag is known by its name. Not reported if `forward` or what it calls may refuse one of its values, if it decides
    no output, if a tensor or attribute that `backward` reads may depend on it or be written by a call with it, apart from statistics such as `lse` and the result of attention, or if `backward` uses a name that
    contains that of the flag. Other attributes that `backward` never reads are reported by CTX325, which is off by default.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html#how-to-use)
    """

    code = "CTX326"
    name = "ignored-flag"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        for flag, write in forgotten_flags(fn, backward) if backward is not None else ():
            node, ctx = write.node if write is not None else flag.param.node.name, fn.storing_ctx
            unread = f"never reads `{ctx}.{write.attribute}`" if write is not None else f"does not know `{flag.name}`"
            keep = f"Write `{ctx}.{flag.name} = {flag.name}`, and use it" if write is None else "Use it"
            yield Finding(
                fn.span(node),
                f"`backward` of `{fn.name}` {unread}, which decides what `forward` computes; gradients are silently "
                f"wrong for one of its values. {keep} in `backward`.",
            )
