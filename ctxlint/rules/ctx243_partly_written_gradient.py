"""CTX243: a gradient in memory that backward writes only under a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.partly_written import partly_written
from ctxlint.model.analyses.sliced_writes import sliced_writes
from ctxlint.model.analyses.unwritten_gradients import allocates
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
    one `if` without `else` before it returns it. Also one of which it writes a part only, as in `grad[:, 1:] = …`.

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
    Off by default, but for a part that certainly leaves elements, such as `[1:]`: other code may settle the test, such as
    a caller that does not call `apply` for one process. A part counts if a number that the caller passes bounds it, or a
    literal, and nothing else uses the memory. A test is reported only for a comparison of what `backward` binds or gets; not with 0, or of a device or a number of
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
    default_in_view = True
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return subject.backward is not None and any(map(allocates, subject.backward.nodes_of(cst.Call)))

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
        for each in sliced_writes(fn, backward):
            part = code_of(each.part)
            rest = "the rest" if each.certain else "unless that is all of it, the rest"
            yield Finding(
                fn.span(each.node),
                fitting(
                    *(
                        f"`{backward.name}` of `{fn.name}` returns `{each.node.value}`, allocated without values and {written}; "
                        f"{rest} is silently arbitrary. Call `torch.zeros` instead."
                        for written in (f"written only at `{part}`", "written only in one part")
                    )
                ),
                related=at(fn, [each.part], f"the only code that uses `{each.node.value}`"),
                in_view=each.certain,
            )


_SHORT = 40
"""The length of a test that is quoted."""
