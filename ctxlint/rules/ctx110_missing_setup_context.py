"""CTX110: forward takes ctx, so the transforms of ``torch.func`` raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.splitting import split_forward
from ctxlint.model.analyses.returned_inputs import is_always_returned, saved_and_returned
from ctxlint.model.function import FunctionClass, Style
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.wording import to_setup_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Decorator, Method


class MissingSetupContext(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose `forward` takes ctx instead of leaving it to `setup_context`.

    ## Why is this bad?
    Both forms work with `backward()`. But under the transforms of `torch.func` (`vmap`, `grad`, `jvp`, `jacrev`), a
    `forward` with ctx raises: `RuntimeError: In order to use an autograd.Function with functorch transforms (vmap,
    grad, jvp, jacrev, ...), it must override the setup_context staticmethod.` `setup_context` is available since torch
    2.0.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result
    ```

    ## Fix safety
    Unsafe: the statements that save, mark and set attributes move to a `setup_context` below `forward`, which no longer
    takes ctx, so direct calls of `forward` break. There is a fix if these statements need only the unmodified inputs
    and the return value, `forward` has a single return at its end, the statements can run last, and `forward` has only
    positional parameters and no decorator but `@staticmethod`. There is no fix if `target-torch` includes releases
    before 2.0, or, for an input with a default, before 2.2: those releases did not pass the default to `setup_context`. Newer
    ones want a gradient for it: there is no fix if `backward` returns fewer gradients than there are inputs.

    ## Known limits
    Off by default: a Function that is never transformed does not need it; CTX114 reports those that certainly are. Not reported if `target-torch` ends before
    2.0, or if `forward` is decorated with `custom_fwd(cast_inputs=...)`, which does not work with `setup_context`.

    ## References
    - [Extending torch.func with autograd.Function](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX110"
    name = "missing-setup-context"
    subject = FunctionClass
    category = Category.PEDANTIC
    default = False
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward, backward = fn.forward, fn.backward
        if fn.style is not Style.CTX_IN_FORWARD or not fn.signature_judgeable or forward is None or backward is None:
            return
        if forward.inherited or forward.ctx is None or backward.raises_only or not settings.torch.reach(2, 0):
            return
        if "forward" in fn.called_directly:  # such callers pass a ctx
            return
        if any(call.transforms and not call.expects_error for call in fn.calls):  # CTX114
            return
        entry = forward.decorator("custom_fwd")
        if entry is not None and entry.casts_inputs:
            return  # with `setup_context` it would cast nothing (CTX106)
        oldest = (2, 2) if any(param.has_default for param in forward.own_params) else (2, 0)
        yield Finding(
            fn.span(forward.node.name),
            f"`forward` of `{fn.name}` takes `{forward.ctx.name}`; torch raises RuntimeError under every transform of "
            f"`torch.func`. {_advice(fn, forward, entry)}.",
            None if settings.torch.fall_below(*oldest) else split_forward(fn),
        )


def _advice(fn: FunctionClass, forward: Method, entry: Decorator | None) -> str:
    """What to do; ``entry`` is a ``custom_fwd``, which needs the ctx."""
    ctx, returned = forward.ctx_name, saved_and_returned(fn)
    if returned and entry is None and is_always_returned(fn, returned[0]):  # `setup_context` could not save them
        name = returned[0].name
        view = f"`{name}.view_as({name})`" if returned[0] in fn.outputs_values() else f"a view of `{name}`"
        return f"Return {view}, and move the code that uses the ctx to `setup_context({ctx}, inputs, output)`"
    if entry is not None:
        return f"Move `@{entry.written}` and the code that uses the ctx to `setup_context({ctx}, inputs, output)`"
    return to_setup_context(fn)
