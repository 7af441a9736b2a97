"""CTX407: an in-place operation on a copy that is discarded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.lost_writes import lost_writes
from ctxlint.model.analyses.writes_to_copies import only_copied, writes_to_copies
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class DiscardedInplaceWrite(Rule[FunctionClass]):
    """
    ## What it does
    Reports in-place operations on the result of indexing with a mask or a list, or of `index_select` and the like:
    `x[x < 0].zero_()`, `x.index_select(0, i).add_(y)`, `x[[0, 2]][1:] = y`. Also a function, or `apply`, that makes its argument
    contiguous before it writes to it, if `backward` drops the result, and passes a new tensor with the layout of an incoming
    gradient: `torch.empty_like(grad_output)`. And such a tensor that `backward` returns, if all else only gets its `contiguous()`.

    ## Why is this bad?
    Indexing with a slice or a number gives a view, with a mask or a list a copy. The operation modifies that copy, which
    nothing refers to, and `x` silently stays as it is: the gradient is not clipped, the output not filled. `contiguous()` copies
    what is not contiguous, as the gradient of a transposed tensor.

    ## Example
    ```python
    import torch


    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = grad_output.clone()
            grad_x[x < 0].zero_()
            return grad_x
    ```

    ## Use instead
    ```python
    import torch


    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = grad_output.clone()
            grad_x[x < 0] = 0
            return grad_x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported for an index that is a tensor of integers: one without dimensions gives a view. Nor for a list with other
    elements than numbers and lists: torch takes one with a slice or a tensor in it for a tuple.

    ## References
    - [Tensor views](https://pytorch.org/docs/stable/tensor_view.html)
    """

    code = "CTX407"
    name = "discarded-inplace-write"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            for mutation, copy in lost_writes(method):
                base, part = copy.func if isinstance(copy, cst.Call) else copy, "a part of "
                remedy = "Write to `{}` itself."
                if isinstance(base, cst.Attribute) and base.attr.value == "clone":
                    part = ""
                elif isinstance(copy, cst.Subscript):
                    nested = mutation.how.startswith("[...]")
                    remedy = "Write to `{}` with one index." if nested else f"Write `{code_of(copy)} = ...`."
                name = code_of(base.value) if isinstance(base, (cst.Attribute, cst.Subscript)) else ""
                if any(param.name == name for param in method.own_params):  # others may have the tensor, too
                    remedy = "Bind the copy to a name, and use that."
                yield Finding(
                    fn.span(mutation.node),
                    f"`{mutation.how}` modifies `{code_of(copy)}`, a copy of {part}`{name}`; `{name}` silently stays as it is. "
                    f"{remedy.format(name)}",
                )
        backward = fn.backward
        if backward is None or backward.inherited:
            return
        written = list(writes_to_copies(backward))
        for each in written:
            fact = f"`{each.mutation.by}` writes to the `contiguous()` of `{each.name}`"
            effect = f"if `{each.like}` is transposed, that is a copy, and the result is silently lost"
            make = f"ake `{each.name}` with `memory_format=torch.contiguous_format`."
            message = fitting(f"{fact} here; {effect}. Use what it returns, or m{make}", f"{fact}; {effect}. M{make}")
            yield Finding(fn.span(each.mutation.node), message, related=way_to(fn, each.mutation))
        for copied in only_copied(backward):
            if all(each.name != copied.name for each in written):
                user = f"`{copied.by}`" if copied.by else f"`{backward.name}` of `{fn.name}`"
                yield Finding(
                    fn.span(copied.use),
                    f"{user} only uses the `contiguous()` of `{copied.name}`; if `{copied.like}` is transposed, that is a copy, and the "
                    f"gradient silently stays as it was created. Make `{copied.name}` with `memory_format=torch.contiguous_format`.",
                )
