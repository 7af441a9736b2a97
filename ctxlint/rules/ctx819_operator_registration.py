"""CTX819: setup_context of a custom operator as a positional argument, and a Function as the kernel of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorRegistration(Rule[SourceFile]):
    """
    ## What it does
    Reports a call of `register_autograd` that passes `setup_context` as a positional argument. Also `apply` of a Function, or
    a function that only calls it, registered as the kernel of an operator for a device: `lib.impl("f", F.apply, "CPU")`.
    And a gradient under `custom_bwd`.

    ## Why is this bad?
    `register_autograd` takes `setup_context` by keyword only. The call raises `TypeError: register_autograd() takes 2
    positional arguments but 3 were given` as soon as the file is imported.

    `custom_bwd` reads the autocast mode that `custom_fwd` keeps on the ctx of a Function. An operator has no ctx when it runs:
    its backward raises `AttributeError: '...' object has no attribute '_fwd_used_autocast'`.

    A kernel for a device runs below autograd. Torch warns at backward that `an autograd kernel was not registered to the
    Autograd key(s)`, and that this `may lead to silently incorrect behavior`: `torch.func.grad` gives 0, and so does code that
    `torch.compile` traces with a fake of the operator.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


    square.register_autograd(backward, setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


    square.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    Safe: the call raises without it. Not offered for an argument in parentheses of its own.

    ## Known limits
    Only operators whose definition is in the project, by their name as a string, or if a single decorator makes them. A kernel
    counts if its name and its dispatch key are strings, and the file registers none for autograd.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX819"
    name = "operator-registration"
    subject = SourceFile
    fix = FixAvailability.SOMETIMES

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operators if settings.torch.reach(2, 4) else ():
            span = operator.setup_by_position
            if span is None or not operator.registered_here:
                continue
            start = file.source.offset(span.start)
            written = file.source.text[start : file.source.offset(span.end)]
            shown = f"`setup_context={written}`" if written.isidentifier() else "`setup_context=`"
            fix = Fix("Pass it by keyword", (Edit(start, start, "setup_context="),), Applicability.SAFE)
            in_parentheses = not file.source.text[:start].rstrip().endswith(",")
            yield Finding(
                span,
                f"`register_autograd` takes `setup_context` by keyword only; this call for `{operator.name}` raises "
                f"TypeError. Write {shown}{'' if written.isidentifier() else ' in front of it'}.",
                None if in_parentheses else fix,
            )
        for each in file.cast_backwards if settings.torch.reach(2, 4) else ():
            yield Finding(
                each.span,
                f"`{each.function}` has `custom_bwd`, but nothing keeps the autocast mode on the ctx of `{each.operator}`; torch "
                "raises AttributeError (`_fwd_used_autocast`) at backward. Drop `custom_bwd`.",
            )
        for kernel in file.kernels_below_autograd if settings.torch.reach(2, 1) else ():
            runs = "" if kernel.kernel.endswith(".apply") else f", which runs `{kernel.function}.apply`,"
            wanted = _AUTOGRAD_KEYS.get(kernel.key.upper(), "Autograd")
            yield Finding(
                kernel.span,
                f"`{kernel.kernel}`{runs} is registered for `{kernel.key}`, below autograd; torch warns at backward, and "
                f"`torch.func.grad`, or `torch.compile` with a fake, silently loses the gradient. Use `{wanted}` as well.",
            )


_AUTOGRAD_KEYS = {key.upper(): f"Autograd{key}" for key in ("CPU", "CUDA", "XPU", "MPS", "HPU", "XLA", "PrivateUse1")}
"""The dispatch keys of autograd for the devices, by theirs in capitals."""
