"""CTX109: the ctx has another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.receiver_parameters import call_it_ctx
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings

_LEFT_TO_OTHERS = ("self", "cls")
_UNUSED = ("_", "_ctx", "__", "unused_ctx")


class UnconventionalCtxName(Rule[FunctionClass]):
    """
    ## What it does
    Reports a method whose ctx parameter is not called `ctx`.

    ## Why is this bad?
    Torch passes the ctx by position, so any name works. But every example uses `ctx`, and readers expect it; another
    name is often left over from a copied signature, as in `backward(xyz, a=None)`.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x * 2

        @staticmethod
        def backward(context, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Safe: the parameter and its uses are renamed if `ctx` is free. Unsafe for a method that the same file calls
    directly.

    ## Known limits
    `self` and `cls` are reported by wrong-first-parameter (CTX102). `_` and `_ctx` state that the ctx is unused, and
    are not reported.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX109"
    name = "unconventional-ctx-name"
    subject = FunctionClass
    category = Category.PEDANTIC
    default = False
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.backward is None:
            return
        for method in fn.own_protocol_methods:
            ctx = method.ctx
            if ctx is None or ctx.name in ("ctx", *_LEFT_TO_OTHERS, *_UNUSED) or not method.treats_ctx_as_ctx:
                continue
            yield Finding(
                fn.span(ctx.node.name),
                f"`{method.name}` of `{fn.name}` names its ctx `{ctx.name}`; torch accepts any name, but readers "
                f"expect `ctx`. Rename it to `ctx`.",
                fix=call_it_ctx(fn, method),
            )
