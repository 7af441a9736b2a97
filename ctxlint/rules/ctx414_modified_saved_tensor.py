"""CTX414: a caller modifies in place what forward has saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.modified_saves import is_saved, may_require_gradient
from ctxlint.model.analyses.returned_views import returns_view
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.apply_calls import Modified


class ModifiedSavedTensor(Rule[SourceFile]):
    """
    ## What it does
    Reports a caller that modifies in place an input or output of a Function which `forward` has saved with `save_for_backward`:
    by `y += 1`, `y.relu_()` or `y[0] = 0`, or with a function or layer that has `inplace=True`.

    ## Why is this bad?
    Autograd counts the writes to a tensor, also those under `torch.no_grad()`. When `backward` reads `ctx.saved_tensors`, it raises `RuntimeError: one
    of the variables needed for gradient computation has been modified by an inplace operation`.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * y


    def shifted(x):
        y = Exp.apply(x)
        y -= 1
        return y
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * y


    def shifted(x):
        y = Exp.apply(x)
        return y - 1
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: what happens between the call and the write may run `backward`, and hooks for saved tensors allow the write. Only where the call and the write are in one function, by the same name, and nothing between them seems to run `backward`. The tensor must be
    saved and read under no condition, and exactly be that input or output. A write to an input counts if the result is used after it.

    ## References
    - [In-place correctness checks](https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
    """

    code = "CTX414"
    name = "modified-saved-tensor"
    subject = SourceFile
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.calls:
            fn, change = file.by_name[call.function], call.modified
            if change is None or not is_saved(fn, change) or not may_require_gradient(fn, call):
                continue
            if returns_view(fn, change.output, change.argument, call) is None:  # else it is of CTX406
                yield Finding(change.span, fitting(*_messages(fn, change)))


def _messages(fn: FunctionClass, change: Modified) -> Iterator[str]:
    """The defect, its consequence and the remedy, from the most to the least explicit wording."""
    where = "where this runs, " * change.in_branch
    what = f"an output of `{fn.name}`"
    if change.argument is not None:
        what = f"the input `{fn.inputs[change.argument].name}` of `{fn.name}`"
    elif change.output is None:
        what = f"the output of `{fn.name}`"
    remedy = "Work on a copy of it." if change.later else "Write it out of place."
    for code in (f"`{change.code}`", "This"):
        if not set(change.code) & set("\n`") or code == "This":
            yield (
                f"{code} modifies {what} in place, which `forward` saves for `backward`; {where}reading `saved_tensors` raises "
                f"RuntimeError. {remedy}"
            )
