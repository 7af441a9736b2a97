"""CTX230: backward writes the gradient of a tensor itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reachability import always_has_gradient
from ctxlint.model.analyses.side_gradients import (
    is_frozen,
    may_never_run,
    returns_written,
    returns_zeros,
    side_gradients,
)
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import Differentiated
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import code_of, last_name
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.side_gradients import SideGradient
    from ctxlint.model.interpreter.method import Method


class GradientAsSideEffect(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that writes to an attribute such as `weight.grad` or `weight.main_grad` itself, if the weight is
    held by an input that is not a tensor, or if all calls in view pass a frozen one. Also reports `weight.grad += ...`
    for an input whose gradient `backward` always returns, too, or for which it returns `weight.grad` itself.

    ## Why is this bad?
    Autograd runs `backward` only if one of the tensors among the inputs requires a gradient. It does not look into
    modules and lists. In the first layer, where the data requires no gradient, `backward` never runs, and the weight
    silently keeps the gradient it had: it is not trained. Hooks, such as those of `DistributedDataParallel`, do not see
    such a gradient either.

    A gradient that is returned is added to the `.grad` of a leaf by autograd. If `backward` adds to it as well, it
    counts twice.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, layer):
            ctx.save_for_backward(x)
            ctx.layer = layer
            return x @ layer.weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            ctx.layer.weight.grad = grad_output.t() @ x
            return grad_output @ ctx.layer.weight, None
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output @ weight, grad_output.t() @ x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    A loop over `parameters()` or `buffers()` of an input counts, also through a list of them or `zip`.
    Not reported if another input may be a tensor for which `backward` returns `None`, as it may require a gradient; if
    a call in view passes a parameter, or a tensor of which the caller requests a gradient, or that a layer returns; or if `backward` sets such an attribute to `None`. Of what a module holds, only
    `grad` and `main_grad` count. A kernel that gets `weight.main_grad` and fills it is not seen.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX230"
    name = "gradient-as-side-effect"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None or not fn.signature_judgeable:
            return
        for each in side_gradients(fn, backward):
            message = _twice(fn, backward, each) or _untracked(fn, backward, each)
            if message is not None:
                yield Finding(fn.span(each.node), message)
                return


def _twice(fn: FunctionClass, backward: Method, written: SideGradient) -> str | None:
    """What to say of an input whose gradient is returned as well."""
    name = written.input.name
    if written.held or written.node.attr.value != "grad" or not written.input.surely_differentiable:
        return None
    certain = always_has_gradient(fn, written.input.index) and not returns_zeros(fn, written.input.index)
    if not (certain or returns_written(fn, written)):
        return None  # perhaps where it writes, it returns None
    return (
        f"`{backward.name}` of `{fn.name}` writes to `{code_of(written.node)}` and returns a gradient for `{name}`; autograd "
        f"adds that to the `grad` of a leaf, so it silently counts twice. Drop one of the two."
    )


def _of_those_that_need_one(backward: Method) -> str:
    """What else to do where ``torch.autograd.grad`` raises for a copy of an input that needs no gradient."""
    asks = any(each.how == "torch.autograd.grad" for each in backward.facts.of(Differentiated))
    flagged = any(last_name(each.func) == "requires_grad_" and each.args for each in backward.nodes_of(cst.Call))
    return "; differentiate only what needs one" * (asks and flagged)


def _untracked(fn: FunctionClass, backward: Method, written: SideGradient) -> str | None:
    """What to say of a tensor whose gradient autograd does not ask for."""
    entry = written.input
    others = may_never_run(fn, entry)
    if not others or entry.gradient is not Tri.NO:
        return None
    needs = "need" if len(others) > 1 else "needs"
    if written.among is not None:
        them = "buffers" if written.is_buffer else "parameters"
        silent = f"if {quoted(others)} {needs} no gradient, it silently never runs"
        if written.is_buffer:
            silent = f"what computes a buffer silently gets no gradient, and if {quoted(others)} {needs} none, this never runs"
        return (
            f"`{backward.name}` of `{fn.name}` writes the `{written.node.attr.value}` of {them} of `{entry.name}` itself; "
            f"{silent}. Pass the {them} to `apply`, and return their gradients{'' if written.is_buffer else _of_those_that_need_one(backward)}."
        )
    fact = (
        f"`{backward.name}` of `{fn.name}` writes to `{code_of(written.node)}` itself; if {quoted(others)} {needs} no gradient, "
        f"it silently never runs"
    )
    if written.held:
        return f"{fact}. Pass the tensor to `apply` as an input, and return its gradient."
    if not is_frozen(fn, entry):
        return None
    frozen = f"the call on {fn.calls[0].place} passes a frozen `{entry.name}`"
    return f"{fact}, as {frozen}. Pass another input that requires a gradient."
