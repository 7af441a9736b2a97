"""CTX322: backward reads an attribute of a saved tensor that forward set on the tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.extra_attributes import lost_attributes
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import if_it_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class AttributeOfSavedTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports an attribute that `forward` sets on a tensor, `x.scale = s`, and `backward` reads from the saved tensor.

    ## Why is this bad?
    `save_for_backward` keeps the data of a tensor, not the Python object. For an output, `saved_tensors` always holds
    another tensor without the attribute. For any other tensor, it does as soon as saved-tensor hooks are active: with
    non-reentrant checkpointing, `save_on_cpu`, or the offloading of a training framework. Then `backward` raises
    `AttributeError: 'Tensor' object has no attribute 'scale'`.

    ## Example
    ```python
    import torch


    class Quantized(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.round()
            y.scale = float(x.abs().max())
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * (y.abs() <= y.scale)
    ```

    ## Use instead
    ```python
    import torch


    class Quantized(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.round()
            ctx.scale = float(x.abs().max())
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * (y.abs() <= ctx.scale)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if the attribute is set outside the Function, or read by `getattr` or `hasattr`.

    ## References
    - [Hooks for saved tensors](https://pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors)
    """

    code = "CTX322"
    name = "attribute-of-saved-tensor"
    subject = FunctionClass
    says_if_it_runs = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None or fn.backward.inherited or fn.saves_replaced:
            return
        for read, store, what in lost_attributes(fn):
            name = code_of(store.value_node) if store.value_node is not None else "it"
            when = "" if what == "output" else "under hooks that give back another tensor, "
            yield Finding(
                fn.span(read.node),
                f"`{code_of(read.node)}` is set in `forward` on the {what} `{name}`, which is saved without it; {when}this "
                f"raises AttributeError{if_it_runs(fn, fn.backward, read.node)}. Write `{fn.reading_ctx}.{read.attribute} = ...` there, "
                "or save a tensor.",
                related=at(fn, [store.node], "set here"),
            )
