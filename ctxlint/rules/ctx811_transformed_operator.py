"""CTX811: a transform of ``torch.func`` differentiates a custom operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.torch_api.transforms import REFUSES_OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class TransformedOperator(Rule[SourceFile]):
    """
    ## What it does
    Reports a function that is passed to a transform of `torch.func` and calls a custom operator of `torch.library` with
    what the transform differentiates, or such an operator itself.

    ## Why is this bad?
    The gradient of a custom operator is registered for `backward()` only:

    - `grad`, `grad_and_value`, `vjp`, `jacrev` and `hessian` raise `RuntimeError: In order to use an autograd.Function
      with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context staticmethod.`,
      whatever was passed to `register_autograd`;
    - `jvp`, `jacfwd` and `linearize` treat the result as a constant: the derivative is silently 0.

    A `torch.autograd.Function` with `setup_context` supports both; its `forward` may call the operator. `backward()` and
    `torch.autograd.functional` work with the operator itself.

    This holds for torch 2.13.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    def gradient(ctx, grad_output):
        return grad_output * 2


    double.register_autograd(gradient)


    def slope(x):
        return torch.func.grad(lambda x: double(x).sum())(x)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    class Double(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return double(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2


    def slope(x):
        return torch.func.grad(lambda x: Double.apply(x).sum())(x)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Operators are those of the decorators `torch.library.custom_op` and `triton_op`, also in other files of the project,
    called by the name of their function or in `torch.ops`; there also those whose gradient the same file registers by
    name. As for CTX114, only calls that are certainly executed count, and arguments that are the first parameter of the
    transformed function (for `vjp`, one of those that it gets), or computed from it by operators and usual methods.

    ## References
    - [torch.library](https://pytorch.org/docs/stable/library.html)
    - [Extending torch.func with autograd.Function](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX811"
    name = "transformed-operator"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.transformed_operators if settings.torch.reach(2, 4) else ():
            transform = call.transforms[0]
            if transform.name in REFUSES_OPERATORS:
                found = "torch raises RuntimeError there, whatever is registered for it"
            else:
                found = "its derivative is silently 0 there"
            yield Finding(
                call.span,
                f"`{transform.written}` differentiates the custom operator `{call.alias}`; {found}. Call it in a "
                f"`torch.autograd.Function` with `setup_context`{_also_jvp(transform.name)}.",
            )


def _also_jvp(name: str) -> str:
    return "" if name in REFUSES_OPERATORS else " and `jvp`"
