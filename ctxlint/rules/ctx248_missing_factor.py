"""CTX248: a gradient without a number that forward multiplies by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Edit
from ctxlint.fixes.method_code import code_of_method
from ctxlint.model.analyses.missing_factors import missing_factors
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.missing_factors import MissingFactor


class MissingFactorRule(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns the incoming gradient as it is for an input that `forward` multiplies by another one, or
    divides by it, if `forward` keeps that number on ctx and nothing reads it.

    ## Why is this bad?
    The derivative of `x * scale` is `scale`: unless that is 1, the gradient of `x` is silently wrong. It was kept for `backward`,
    which has forgotten it.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.scale, None
    ```

    ## Fix safety
    The fix is unsafe, as it changes gradients. It is offered if `backward` returns the gradient by its name.

    ## Known limits
    Only the product itself is known, also `torch.mul(x, scale)` and `x / scale`, and what is a copy of it. Not reported if the class
    says that it passes gradients straight through, or if the number is not kept: both may be on purpose.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX248"
    name = "missing-factor"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        for each in missing_factors(fn) if backward is not None else ():
            deed, sign = ("divides", "/") if each.divides else ("multiplies", "*")
            kept = f"{fn.reading_ctx}.{each.write.attribute}"
            yield Finding(
                fn.span(each.returned[0]),
                f"`backward` of `{fn.name}` gives the incoming gradient for `{fn.inputs[each.index].name}`, which `forward` {deed} "
                f"by `{each.factor}`; it is silently wrong unless that is 1, as no method reads `{kept}`. "
                f"Return `{each.returned[0].value} {sign} {kept}`.",
                fix=_with_factor(fn, each),
                related=at(fn, [each.product], f"`forward` {deed} by `{each.factor}` here"),
            )


def _with_factor(fn: FunctionClass, found: MissingFactor) -> Fix | None:
    """Multiply the gradients by the number where they are returned."""
    code = code_of_method(fn, fn.backward) if fn.backward is not None else None
    direct = {slot.node for each in fn.gradients for slot in each.slots}
    if code is None or not direct.issuperset(found.returned):
        return None
    text = f" {'/' if found.divides else '*'} {fn.reading_ctx}.{found.write.attribute}"
    edits = [Edit(code.layout.end(each), code.layout.end(each), text) for each in found.returned]
    return code.fix(f"Return `{found.returned[0].value}{text}`", edits, Applicability.UNSAFE)
