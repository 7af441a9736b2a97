"""CTX603: names that torch keeps for old code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.functions import ContextCall, FunctionClass, GenericCall
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.settings import Settings

_VARIABLE = ("torch.autograd.Variable", "torch.autograd.variable.Variable")
_INPLACE_FUNCTION = "torch.autograd.function.InplaceFunction"


class LegacyNames(Rule[FunctionClass]):
    """
    ## What it does
    Reports `Variable(...)` in the methods of a Function, the base `InplaceFunction`, and `ctx.mark_shared_storage(...)`.

    ## Why is this bad?
    They are left over from torch 0.3. `Variable(x)` gives the tensor back and does nothing else; `InplaceFunction` works as
    `Function` does, and its `inplace` attribute belongs to the instances that autograd no longer makes;
    `mark_shared_storage` does nothing and warns.

    ## Example
    ```python
    import torch
    from torch.autograd import Variable


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return Variable(grad_output * 2)
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
    There is no fix yet.

    ## Known limits
    `Variable` outside Functions is other linters' business.

    ## References
    - [Variable (deprecated)](https://pytorch.org/docs/stable/autograd.html#variable-deprecated)
    """

    code = "CTX603"
    name = "legacy-names"
    subject = FunctionClass
    category = Category.MODERNIZE
    fix = FixAvailability.NEVER

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if _INPLACE_FUNCTION in fn.base_names:
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` descends from `InplaceFunction`, which does nothing that `Function` does not. Derive from "
                f"`torch.autograd.Function`.",
            )
        for method in fn.methods.values():
            if method.inherited:
                continue
            for call in method.facts.of(GenericCall):
                if call.callee in _VARIABLE:
                    yield Finding(
                        fn.span(call.node),
                        "`Variable(...)` gives back the tensor itself since torch 0.4. Use the tensor.",
                    )
            for context_call in method.facts.of(ContextCall):
                if context_call.method == "mark_shared_storage":
                    yield Finding(
                        fn.span(context_call.node),
                        "`mark_shared_storage` does nothing since torch 0.4: shared storage is tracked by itself. Drop "
                        "the call.",
                    )
