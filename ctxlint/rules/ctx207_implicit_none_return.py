"""CTX207: a path through backward that ends without return and without raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.fall_through import lost_path
from ctxlint.model.analyses.outputs import unfit_outputs
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.releases import refusing_torch
from ctxlint.rules.wording import own_place, when

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class ImplicitNoneReturn(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` (or `vjp`) in which some path reaches the end of the body without `return` or `raise`.

    ## Why is this bad?
    Python then returns `None`. For a Function with one input, this means "no gradient": nothing raises, and all layers
    before it silently stop learning. With more inputs, `loss.backward()` raises `RuntimeError: function FBackward
    returned an incorrect number of gradients (expected 2, got 1)`; under `torch.compile`, that case is silent too since
    torch 2.11.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = 2 * x * grad_output
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = 2 * x * grad_output
            return grad_input
    ```

    ## Fix safety
    There is no fix: only the author knows what the path should return.

    ## Known limits
    An explicit `return None` counts as intended, and so does the end of a chain of tests of one value (`if mode ==
    "sum": … elif mode == "mean": …`), which may be exhaustive. Not reported if the end is reached only when no input
    needs a gradient, or when none of several gradients arrives, after a loop that returns, after a call whose name says
    that it raises, if no output of `forward` can have a gradient, or if `backward` cannot take one gradient for each
    output (CTX205).

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX207"
    name = "implicit-none-return"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        path = lost_path(fn)
        if path is None or fn.backward is None or unfit_outputs(fn):  # CTX205: torch cannot even call it
            return
        empty = _is_empty(fn.backward)
        what = "is empty" if empty else f"ends without `return`{when(path)}"
        yield Finding(
            own_place(fn, fn.backward),
            f"`{fn.backward.name}` of `{fn.name}` {what}; {_effect(fn, settings, 'raise `NotImplementedError`' if empty else '')}.",
        )


def _effect(fn: FunctionClass, settings: Settings, otherwise: str) -> str:
    """The consequence, and the remedy: to return gradients, or ``otherwise``."""
    also = f", or {otherwise}" if otherwise else ""
    if fn.variadic_inputs is not None:
        error, take = (
            ("an error", "Take a gradient for each output and return")
            if _may_lack_gradients(fn)
            else ("RuntimeError", "Return")
        )
        return f"{refusing_torch(fn, settings)} raises {error} at backward, or silently gives no gradient. {take} one for each input{also}"
    if len(fn.inputs) == 1:
        name = fn.inputs[0].name
        return f"`{name}` silently gets no gradient. Return a gradient, or {otherwise or 'write `return None`'}"
    return f"{refusing_torch(fn, settings)} raises RuntimeError at backward. Return one gradient for each input{also}"


def _may_lack_gradients(fn: FunctionClass) -> bool:
    """Whether backward takes a fixed number of gradients, though the number of outputs is unknown."""
    return fn.backward is not None and fn.backward.variadic is None and any(each.count is None for each in fn.outputs)


def _is_empty(method: Method) -> bool:
    """Whether a method does nothing, perhaps with a docstring that says what it would do."""
    lines = method.node.body.body[1:] if method.node.get_docstring() is not None else method.node.body.body
    statements = [
        each for line in lines for each in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))
    ]
    return all(isinstance(each, cst.Pass) for each in statements)
