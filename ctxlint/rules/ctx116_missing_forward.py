"""CTX116: ``apply`` of a Function without ``forward``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import words_of
from ctxlint.patterns import pattern
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MissingForward(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose `apply` is used, although neither the class nor one of its bases defines `forward`.

    ## Why is this bad?
    `apply` raises `NotImplementedError: You must implement the forward function for custom autograd.Function.` Often the
    class is meant to derive from another Function, whose `forward` it shares.

    ## Example
    ```python
    import torch


    class Round(torch.autograd.Function):
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output


    def rounded(x):
        return Round.apply(x)
    ```

    ## Use instead
    ```python
    import torch


    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output


    def rounded(x):
        return Round.apply(x)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: code of another file may set `forward` of a class that it does not name. Not reported for a class with subclasses,
    which may define `forward`, if the class mentions `forward` at all, or runs code that may bind it, if the file sets `forward` of
    anything, or if all calls in view are under `pytest.raises`, or under `try` for this error.

    ## References
    - [torch.autograd.Function.forward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html)
    """

    code = "CTX116"
    name = "missing-forward"
    subject = FunctionClass
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.forward is not None or fn.has_subclass or not (fn.applied and fn.signature_judgeable):
            return
        if not _MAY_BIND.isdisjoint(words_of(fn.node)) or _SETS_FORWARD.search(fn.source.text):
            return
        if fn.legacy_state is not None or (fn.calls and all(call.expects_error for call in fn.calls)):
            return
        yield Finding(
            fn.span(fn.node.name),
            f"`{fn.name}` has no `forward`, but its `apply` is used; torch raises NotImplementedError at `apply`. "
            "Define `forward`, or derive the class from the Function that has it.",
        )


_MAY_BIND = frozenset(["forward", "exec", "locals", "vars", "setattr", "__init_subclass__"])
"""Words of a class body that may define the method in another way."""
_SETS_FORWARD = pattern(r"\.forward\s*[=,:]|setattr\(|\bforward\b[\"']\]?\s*=")
"""How a file may set the method of a class that it reaches by another name."""
