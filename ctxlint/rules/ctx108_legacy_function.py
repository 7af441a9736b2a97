"""CTX108: a Function in the style that torch removed in 1.5: state on ``self``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.legacy import read_only_attribute
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class LegacyFunction(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose methods use state of an instance: attributes that `__init__` sets, or, if instances of the
    class are called, attributes of `self` that only other code sets.

    ## Why is this bad?
    This is the style of torch before 1.5. Instances can no longer be called: `RuntimeError: Legacy autograd function
    with non-static forward method is deprecated`. Under `.apply`, the parameter called `self` is the ctx, which has
    none of the attributes that `__init__` sets: `AttributeError: 'FBackward' object has no attribute 'scale'`.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        def __init__(self, scale):
            self.scale = scale

        def forward(self, x):
            return x * self.scale

        def backward(self, grad_output):
            return grad_output * self.scale
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale: float):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.scale, None
    ```

    ## Fix safety
    There is no fix: the call sites have to change with the class.

    ## Known limits
    Not reported if `forward` and `backward` use nothing that `__init__` sets. Methods that only save on `self` work
    under `.apply`, where `self` is the ctx: missing-staticmethod (CTX101) and wrong-first-parameter (CTX102) report and
    fix them, and function-instantiated (CTX703) reports calls of an instance. A class that inherits both methods is
    reported once, with the class that defines them.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX108"
    name = "legacy-function"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        reason = fn.legacy_state
        inherited = all(method.inherited for method in (fn.forward, fn.backward) if method is not None)
        if reason is not None and not inherited and settings.torch.reach(1, 5):
            fixed = read_only_attribute(fn)
            raises = (
                "RuntimeError when an instance is called" if fixed is None else f"AttributeError at `{fn.name}(...)`"
            )
            remedy = "Make the methods static with `ctx`, and pass the state as inputs"
            if not reason.startswith("`__init__` sets"):
                remedy = "Make the methods static; pass the state as inputs or keep it on `ctx`"
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` stores its state on the instance ({reason}); torch passes a ctx instead at `apply` and "
                f"raises {raises}. {remedy}.",
            )
