"""CTX222: an expensive gradient is computed even if its input needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.gradient_flags import compute_under_flag
from ctxlint.model.analyses.accumulated_gradients import accumulated_gradients
from ctxlint.model.analyses.precomputed_gradients import precomputed_gradients
from ctxlint.model.analyses.unconditional_gradients import unconditional_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.wording import computed_in_vain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.accumulated_gradients import Accumulated
    from ctxlint.model.analyses.unconditional_gradients import Unconditional


class UnconditionalGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a matrix product or a convolution in `backward` that computes the gradient of a single input without a test
    of `ctx.needs_input_grad`, if another input gets a gradient, too. Also one in `forward`, of which `backward` only scales
    the result, as fused losses do, and a `weight.main_grad` that `backward` adds such a gradient to.

    ## Why is this bad?
    Autograd runs `backward` if any input needs a gradient, and drops the gradients of the others. With a frozen weight
    (LoRA, prompt tuning), or if an input is data, half of the work of `backward` is wasted. Libraries that accumulate in `main_grad` attach it to
    the parameters that they train: reading it of a frozen one raises `AttributeError`.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_x = grad_output @ weight.t()
            grad_weight = x.t() @ grad_output
            return grad_x, grad_weight
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_x = grad_output @ weight.t() if ctx.needs_input_grad[0] else None
            grad_weight = x.t() @ grad_output if ctx.needs_input_grad[1] else None
            return grad_x, grad_weight
    ```

    ## Fix safety
    Unsafe: code that calls `backward` directly may need every gradient. Offered for an expression on one line.

    ## Known limits
    Off by default, as most Functions train all their inputs. Reported by default where a call of `apply` passes a frozen tensor, next to others that may need a
    gradient: a buffer, `Parameter(..., requires_grad=False)`, or what `requires_grad_(False)` froze, or a loop over `parameters()`,
    before the call in the same function. Only matrix products, convolutions, and sums of products or of what one call writes into a new tensor
    count as expensive, also where they are written into a new tensor, or computed by a function of the project that
    returns several gradients; and only a `backward` with one `return` is checked. Not reported if the flags are used as a whole, or under a test that mentions gradients or
    training.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX222"
    name = "unconditional-gradient"
    subject = FunctionClass
    category = Category.PERFORMANCE
    default = False
    default_in_view = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return any(each.frozen for each in subject.calls)

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None or fn.backward.inherited or fn.called_directly & {"backward", "vjp"}:
            return
        for each in unconditional_gradients(fn):
            yield _finding(fn, each, fn.backward.name, fn.reading_ctx, compute_under_flag(fn, each))
        for added in accumulated_gradients(fn):
            yield _of_main_grad(fn, added, fn.backward.name)
        for each in precomputed_gradients(fn) if fn.judgeable_backward is not None else ():
            yield _finding(fn, each, "forward", fn.storing_ctx)


def _finding(fn: FunctionClass, found: Unconditional, method: str, ctx: str, fix: Fix | None = None) -> Finding:
    name, frozen = fn.inputs[found.slot].name, _where_frozen(fn, found.slot)
    message = f"`{method}` of `{fn.name}` {computed_in_vain(found, name, ctx, frozen)}"
    return Finding(fn.span(found.value), message, fix=fix, in_view=bool(frozen))


def _of_main_grad(fn: FunctionClass, found: Accumulated, method: str) -> Finding:
    name, frozen = fn.inputs[found.slot].name, _where_frozen(fn, found.slot)
    why = f"though the call on {frozen} passes a frozen `{name}`" if frozen else f"even if `{name}` needs no gradient"
    message = (
        f"`{method}` of `{fn.name}` reads `{code_of(found.node)}` {why}; it raises AttributeError where a frozen one has none. "
        f"Test `{fn.reading_ctx}.needs_input_grad[{found.slot}]`."
    )
    return Finding(fn.span(found.node), message, in_view=bool(frozen))


def _where_frozen(fn: FunctionClass, index: int) -> str:
    """The first call that passes a frozen input, where another one may need a gradient; empty if there is none."""
    for call in fn.calls:
        unneeded = (*call.frozen, *call.detached)
        others = [at for at, kind in enumerate(call.arguments) if kind in _MAY_NEED_ONE and at not in unneeded]
        if call.applies and others and index in call.frozen and not (call.gradients_off or call.expects_error):
            return call.place
    return ""


_MAY_NEED_ONE = (ArgumentKind.TENSOR, ArgumentKind.TENSORS, ArgumentKind.OTHER)
