"""CTX603: names that torch keeps for backward compatibility."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.legacy_names import (
    before_detach,
    derive_from_function,
    drop_shared_storage,
    is_output,
    needs_detach,
    use_the_tensor,
    variable_arguments,
)
from ctxlint.model.function import ContextCall, FunctionClass, GenericCall
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to
from ctxlint.torch_api.autograd import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method

_INPLACE_FUNCTION = "torch.autograd.function.InplaceFunction"


class LegacyNames(Rule[FunctionClass]):
    """
    ## What it does
    Reports `Variable(...)` in the methods of a Function, the base `InplaceFunction`, and `ctx.mark_shared_storage(...)`.

    ## Why is this bad?
    They are left over from torch 0.3. `Variable(x)` is `x.detach()`: in `forward`, where nothing is recorded, it has no
    effect, and in `backward` it loses the second derivative. `InplaceFunction` behaves like `Function`; its `inplace`
    attribute belongs to instances, which autograd no longer creates. `mark_shared_storage` does nothing but warn.

    `Variable(x, requires_grad=True)` creates a leaf that requires grad, as `torch.autograd.grad` needs it.
    `x.detach().requires_grad_()` is its current form.

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
    Safe for `mark_shared_storage`, if the call is a statement and its arguments are plain names.

    Unsafe for `Variable(x)`, which becomes `x`: what was detached is then differentiated. `x = Variable(x)` is removed. If the method enables
    gradients, or `x` is computed from a detached incoming gradient and a tensor that has a graph, it becomes `x.detach()`, and
    `Variable(x, requires_grad=True)` becomes `x.detach().requires_grad_()`, which is equivalent. There is no fix for other arguments.

    Unsafe for `InplaceFunction`: other files may create instances of the class. There is no fix if this file does so
    with arguments, or for a class with `__init__`.

    A run with `--fix` also removes the imports of `Variable` and `InplaceFunction` that it has made unused. They stay if
    another file imports the name from this one, in `__init__.py` and in notebooks, and if a string or a comment needs them.

    ## Known limits
    `Variable` outside Functions is not checked.

    ## References
    - [Variable (deprecated)](https://pytorch.org/docs/stable/autograd.html#variable-deprecated)
    """

    code = "CTX603"
    name = "legacy-names"
    subject = FunctionClass
    holds_unreached = True
    category = Category.MODERNIZE
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if _INPLACE_FUNCTION in fn.base_names:
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` derives from `InplaceFunction`, which torch keeps only for old code. Derive from "
                f"`torch.autograd.Function`.",
                fix=derive_from_function(fn, _INPLACE_FUNCTION),
            )
        for method in fn.methods.values():
            if method.inherited:
                continue
            for call in method.facts.of(GenericCall):
                if call.callee in VARIABLE:
                    fix, message = use_the_tensor(fn, method, call), _about_variable(fn, method, call)
                    yield Finding(fn.span(call.node), message, fix)
            for context_call in method.facts.of(ContextCall):
                if context_call.method == "mark_shared_storage":
                    yield Finding(
                        fn.span(context_call.node),
                        "`mark_shared_storage` does nothing since torch 0.4; torch tracks shared storage by itself. Drop "
                        "the call.",
                        fix=None if context_call.by else drop_shared_storage(fn, method, context_call),
                        related=way_to(fn, context_call),
                    )


def _about_variable(fn: FunctionClass, method: Method, call: GenericCall) -> str:
    """The effect of ``Variable(...)`` there, and its replacement."""
    tensor, requires_grad, understood = variable_arguments(call.node)
    given_tensor = before_detach(tensor) if tensor is not None else None
    written = code_of(given_tensor).strip() if isinstance(given_tensor, (cst.Name, cst.Attribute)) else "tensor"
    if not understood:
        return (
            "`Variable(...)` is obsolete since torch 0.4. Write `tensor.detach()`, and `requires_grad_()` if a gradient is "
            "needed."
        )
    detached = ".detach()" if needs_detach(fn, method, call) else ""
    if requires_grad is not None:
        flag = code_of(requires_grad).strip()
        fact = f"`Variable(..., requires_grad={flag})` is the old form of creating a leaf tensor"
        if is_output(method, call.node):
            advice = f"Write `{written}{detached}`." if detached else "Return the tensor."
            return f"{fact}, and torch sets `requires_grad` of what `forward` returns. {advice}"
        return f"{fact}. Write `{written}{detached}.requires_grad_({'' if flag == 'True' else flag})`."
    advice = f"Write `{written}{detached}`." if detached else "Use the tensor."
    return f"Since torch 0.4, `Variable(...)` only detaches a tensor. {advice}"
