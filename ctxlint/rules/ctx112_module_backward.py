"""CTX112: a module defines a backward that autograd never calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ModuleBackwardMethod(Rule[SourceFile]):
    """
    ## What it does
    Reports a `torch.nn.Module` with a `forward` and a `backward(self, grad_output)` that returns a gradient. If `forward`
    returns its input, the parameter may have any name.

    ## Why is this bad?
    Autograd calls `backward` of Functions only, never of modules: it differentiates the operations in the module's
    `forward`, and `backward` never runs. If the two differ, as for a straight-through estimator, training silently uses
    another gradient than the written one.

    ## Example
    ```python
    import torch


    class Round(torch.nn.Module):
        def forward(self, x):
            return x.round()

        def backward(self, grad_output):
            return grad_output.clamp(-1, 1)
    ```

    ## Use instead
    ```python
    import torch


    class RoundFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.clamp(-1, 1)


    class Round(torch.nn.Module):
        def forward(self, x):
            return RoundFunction.apply(x)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Checked only if all base classes are known. Not reported if any file of the project calls a `backward` with an
    argument or passes one on without calling it, because such code passes gradients directly;
    `loss.backward(retain_graph=True)` does not count.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX112"
    name = "module-backward"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.module_backwards:
            yield Finding(
                each.span,
                f"`backward` of the module `{each.module}` is never called by autograd; autograd differentiates `forward` instead. "
                f"Remove it, or move both to static methods of a `torch.autograd.Function`.",
            )
