"""CTX328: ``backward`` uses what may be None without a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.analyses.untested_nones import untested_nones
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting, names_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.untested_nones import NoneUse


class UntestedNone(Rule[FunctionClass]):
    """
    ## What it does
    Reports a use in `backward`, without a test, of what `forward` keeps as `None`: an optional input that is not passed, or a tensor that
    `forward` computes only if some inputs need a gradient, or if a flag is set.

    ## Why is this bad?
    `save_for_backward` accepts `None` and gives it back. An attribute of it raises `AttributeError: 'NoneType' object
    has no attribute 'requires_grad'`, an index or arithmetic raises TypeError. Tests that pass all inputs, or train all of them, never reach this error.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias=None):
            ctx.save_for_backward(x, weight, bias)
            out = x @ weight.t()
            return out if bias is None else out + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, weight, bias = ctx.saved_tensors
            grad_bias = grad_output.sum(0) if bias.requires_grad else None
            return grad_output @ weight, grad_output.t() @ x, grad_bias
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias=None):
            ctx.save_for_backward(x, weight, bias)
            out = x @ weight.t()
            return out if bias is None else out + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, weight, bias = ctx.saved_tensors
            grad_bias = None
            if bias is not None and bias.requires_grad:
                grad_bias = grad_output.sum(0)
            return grad_output @ weight, grad_output.t() @ x, grad_bias
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: not every test that keeps a use from running is known.
    An input counts if a call in view passes `None`, or if that is the default and `forward` tests for it, or the annotation
    says so, or if `forward` itself replaces `None` but the input is kept as it came, as in `setup_context`; a flag counts if a call in view passes `False`, or if that is the default. Where `backward` also returns a gradient for it, CTX204 reports that. Not reported if all calls in view pass a tensor, if any test that is not about gradients of other inputs, or an assertion, comes before the
    use, under `try`, in loops and nested functions, if `backward` sets the attribute itself, or if ctx is passed to a helper.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX328"
    name = "untested-none"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not backward_never_runs(fn):
            for use in untested_nones(fn):
                yield Finding(fn.span(use.node), _message(fn, use))


def _message(fn: FunctionClass, use: NoneUse) -> str:
    deed = (
        f"reads `{use.name}{use.how}`"
        if use.how.startswith(".")
        else f"computes `{' '.join(code_of(use.node).split())}`"
    )
    if len(deed) > _LONG:
        deed = f"uses `{use.name}`"
    remedy, plain = f"Test `{use.name} is not None` first.", "Test it for `None` first."
    if use.entry is not None and use.switch:
        fact, rest = (
            f"`{use.name}` is `None` unless `{use.entry.name}` is set",
            f"without that test; it raises {use.error} then",
        )
        return fitting(
            f"{fact} ({use.reason}), but `backward` of `{fn.name}` {deed} {rest}. {remedy}",
            f"{fact}, but `backward` of `{fn.name}` uses it {rest}. {plain}",
        )
    if use.entry is not None:
        end, named = f"without a test; it raises {use.error} then", f"`{use.entry.name}`"
        used = "it" if use.name == use.entry.name else f"`{use.name}`"
        return fitting(
            f"`{fn.name}` accepts `None` for {named} ({use.reason}), but `backward` {deed} {end}. {remedy}",
            f"{named} can be `None`, but `backward` of `{fn.name}` uses {used} {end}. {plain}",
        )
    names, others = (names_of(fn, sorted(each)) for each in (use.flags, use.needing))
    fact = f"`{use.name}` is `None` unless {quoted(names, 'and')} {'needs a gradient' if len(names) == 1 else 'need gradients'}"
    only = f"{quoted(others, 'and')} {'does' if len(others) == 1 else 'do'}" if others else "another input does"
    rest = f"without that test; it raises {use.error} if only"
    return fitting(
        f"{fact}, but `backward` of `{fn.name}` {deed} {rest} {only}. {remedy}",
        f"{fact}, but `backward` of `{fn.name}` uses it {rest} {only}. {plain}",
        f"{fact}, but `backward` uses it {rest} {'others do' if len(others) > 1 else 'another does'}. {plain}",
    )


_LONG = 60
