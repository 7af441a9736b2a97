"""CTX803: backward of a custom operator cannot take one gradient per output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorBackwardParameterCount(Rule[SourceFile]):
    """
    ## What it does
    Reports a custom operator's backward that cannot take one gradient for each output in the operator's return
    annotation.

    ## Why is this bad?
    Torch passes one gradient for each output, where a list of tensors counts as one output. The backward pass raises
    `TypeError: backward() takes 2 positional arguments but 3 were given`.

    ## Example
    ```python
    from typing import Tuple

    import torch


    @torch.library.custom_op("demo::both", mutates_args=())
    def both(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x + 2


    def setup_context(ctx, inputs, output):
        pass


    def backward(ctx, grad_first):
        return grad_first


    both.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    from typing import Tuple

    import torch


    @torch.library.custom_op("demo::both", mutates_args=())
    def both(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x + 2


    def setup_context(ctx, inputs, output):
        pass


    def backward(ctx, grad_first, grad_second):
        return grad_first + grad_second


    both.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only functions without decorators are checked, apart from those that tell `torch.compile` what to do with a function.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX803"
    name = "operator-backward-parameter-count"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            backward = operator.backward
            required = sum(param.required for param in backward.positional)
            most = None if backward.variadic is not None else len(backward.positional)
            if operator.outputs is None or backward.raises_only:
                continue
            if required > operator.outputs or (most is not None and most < operator.outputs):
                yield Finding(
                    operator.span(backward.node.name),
                    f"`{backward.node.name.value}` takes {counted(len(backward.positional), 'gradient')} but "
                    f"`{operator.name}` returns {counted(operator.outputs, 'output')}; torch raises TypeError at backward. "
                    f"Take one gradient for each output.",
                )
