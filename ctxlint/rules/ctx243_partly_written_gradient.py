"""CTX243: a gradient in memory that backward writes only under a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.partly_written import partly_written
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class PartlyWrittenGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient in memory that `backward` allocates with `torch.empty_like` and the like, and uses only under
    one `if` without `else` before it returns it.

    ## Why is this bad?
    `torch.empty_like` does not set the values. Where the condition is false, the gradient is what was in the memory
    before, such as another gradient, large numbers, or NaN. In a fresh process it is often 0, so that a test may pass.

    ## Example
    ```python
    import torch


    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, groups, per_group):
            ctx.save_for_backward(x, weight)
            ctx.groups, ctx.per_group = groups, per_group
            return x @ weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            groups, per_group = ctx.groups, ctx.per_group
            grad_weight = torch.empty_like(weight)
            for first in range(0, groups, per_group):
                part = slice(first, first + per_group)
                result = x[:, part].t() @ grad_output
                if per_group < groups:
                    grad_weight[part] = result
            return grad_output @ weight.t(), grad_weight, None, None
    ```

    ## Use instead
    ```python
    import torch


    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, groups, per_group):
            ctx.save_for_backward(x, weight)
            ctx.groups, ctx.per_group = groups, per_group
            return x @ weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            groups, per_group = ctx.groups, ctx.per_group
            grad_weight = torch.empty_like(weight)
            for first in range(0, groups, per_group):
                part = slice(first, first + per_group)
                result = x[:, part].t() @ grad_output
                grad_weight[part] = result
            return grad_output @ weight.t(), grad_weight, None, None
    ```

    ## Fix safety
    There is no fix: only the author knows what the gradient is in the other case.

    ## Known limits
    Off by default: other code may settle the test, such as a caller that does not call `apply` for one process.
    Reported only for a comparison of what `backward` binds or gets; not with 0, or of a device or a number of
    dimensions. Not reported if the size of the memory depends on what is compared, or if another test that raises,
    returns or asserts mentions the same names.

    ## References
    - [torch.empty](https://pytorch.org/docs/stable/generated/torch.empty.html)
    """

    code = "CTX243"
    name = "partly-written-gradient"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None:
            return
        found = list(partly_written(fn, backward))
        for choice in dict.fromkeys(each.choice for each in found):
            first, *others = (each for each in found if each.choice is choice)
            names = quoted(dict.fromkeys([first.node.value, *(each.node.value for each in others)]))
            test = " ".join(code_of(choice.test).split())
            them, which = ("them", "they are") if others else ("it", "it is")
            many = f"{len(others) + 1} gradients" if others else names
            wordings = [(names, f"`if {test}`")] if len(test) <= _SHORT else []
            yield Finding(
                fn.span(first.node),
                fitting(
                    *(
                        f"`{backward.name}` of `{fn.name}` returns {shown}, allocated without values and written only "
                        f"under {under}; otherwise {which} silently arbitrary. Write {them} in the other case too."
                        for shown, under in (*wordings, (names, "one `if`"), (many, "one `if`"))
                    )
                ),
                related=at(fn, [choice.test], f"the only code that uses {names}"),
            )


_SHORT = 40
"""The length of a test that is quoted."""
