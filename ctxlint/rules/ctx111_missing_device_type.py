"""CTX111: ``torch.amp.custom_fwd`` or ``custom_bwd`` without ``device_type``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MissingDeviceType(Rule[FunctionClass]):
    """
    ## What it does
    Reports methods of a Function that are decorated with `torch.amp.custom_fwd` or `torch.amp.custom_bwd` without
    `device_type`.

    ## Why is this bad?
    `device_type` is a required keyword-only argument. Without it, the decorator raises `TypeError: custom_fwd() missing
    1 required keyword-only argument: 'device_type'` when Python reads the class, so the module cannot be imported.
    `torch.cuda.amp.custom_fwd` is another function: it takes no `device_type`, and is deprecated since torch 2.4.

    ## Example
    ```python
    import torch
    from torch.amp import custom_bwd, custom_fwd


    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch
    from torch.amp import custom_bwd, custom_fwd


    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cuda")
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: the device is not known.

    ## Known limits
    Not reported if a condition decides what the decorator is, or if it is given `**options`. A name that falls back to
    `torch.cuda.amp` in an `except` clause is reported, because torch 2.4 and newer use the first import.
    Not reported if a file of the project may replace the names for the class (see CTX602).

    ## References
    - [torch.amp.custom_fwd](https://pytorch.org/docs/stable/amp.html#torch.amp.custom_fwd)
    """

    code = "CTX111"
    name = "missing-device-type"
    subject = FunctionClass
    about_definition = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.is_alternative or not settings.torch.reach(2, 4):
            return
        for method in fn.methods.values():
            for decorator in () if method.inherited else method.decorators:
                if decorator.lacks_device_type:
                    yield Finding(
                        fn.span(decorator.node),
                        f"`@{decorator.written}` on `{method.name}` of `{fn.name}` has no `device_type`; torch raises TypeError "
                        f'when the class is defined. Pass `device_type="cuda"`, or another device type.',
                    )
