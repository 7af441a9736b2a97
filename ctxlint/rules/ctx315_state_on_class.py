"""CTX315: forward leaves state on the class that backward reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.shared_state import shared_gradients, shared_writes
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class StateOnClass(Rule[FunctionClass]):
    """
    ## What it does
    Reports an attribute of the Function class itself that `forward` (or `setup_context`) writes and `backward` reads. Also
    an attribute of another class, a global variable, and an item of a global dict that gets an input or a tensor. And one
    of the module that calls the Function, `Fn.apply(self, x)`, which `forward` sets, and `backward` reads as `ctx.module.buffer`.

    Reports gradients that are a buffer of the module around the class, `self.buffer`, which each run of `backward` overwrites.

    ## Why is this bad?
    There is one class, and one module, for all calls. Each backward reads what the last forward wrote: with two calls before
    `backward()`, the first silently gets the second's value. A gradient that is kept until others are ready is overwritten, too.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor: float):
            Scale.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * Scale.factor, None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor: float):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None
    ```

    ## Fix safety
    There is no fix: other code may read the attribute.

    ## Known limits
    Attributes of a class count if they are accessed through its name, not through `cls`, those of a module if each call in
    view passes `self`, and items if their key is a string. A buffer that is created once, under `if Fn.buffer is None:`, is
    not reported, nor is an attribute that `backward` sets again: in a reversible network, each call hands its inputs on to
    the one before.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX315"
    name = "state-on-class"
    subject = FunctionClass
    about_gradients = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward, ctx = fn.judgeable_backward, fn.storing_ctx
        for node, buffer in shared_gradients(fn, backward) if backward is not None else ():
            name = code_of(node.value) if isinstance(node, cst.Return) and node.value is not None else code_of(node)
            what = f"`{buffer}`" if name == buffer else f"`{name}`, which is `{buffer}`,"
            yield Finding(
                fn.span(node),
                f"`backward` returns {what} as a gradient, and overwrites it on each run; with two calls in one graph, the first "
                f"gradient is silently lost. Return `{name}.clone()`.",
            )
        for write in shared_writes(fn):
            stored = any(each.attribute == write.attribute for each in fn.context_writes)
            advice = f"Use `{ctx}.{write.attribute}`" if stored else f"Write `{ctx}.{write.attribute} = ...`"
            if write.lasts and not stored:
                advice = f"Write `{ctx}.{write.attribute} = {code_of(write.node)}` on each call as well, and read that"
            if write.saves and not stored:
                advice = f"Pass it to `{ctx}.save_for_backward`"
            yield Finding(
                fn.span(write.node),
                f"`{write.name}` is shared by all calls, and `backward` reads it; "
                f"with two calls in flight it silently reads the value of the last. {advice}.",
            )
