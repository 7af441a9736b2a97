"""CTX814: the backward of a custom operator removes its own state, so that it can run only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.removed_state import removed_state
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorSingleUseState(Rule[SourceFile]):
    """
    ## What it does
    Reports a backward, registered with `register_autograd`, that removes its state from a container outside of ctx:
    `STATES.pop(ctx.key)`.

    ## Why is this bad?
    With `retain_graph=True`, or for each output of `torch.autograd.grad` in a loop, the backward of one call runs several
    times. The second run does not find the state. Without any run, nothing removes it.

    ## Example
    ```python
    import itertools

    import torch

    NUMBERS = itertools.count()
    STATES = {}


    @torch.library.custom_op("demo::square", mutates_args=())
    def square(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        number = next(NUMBERS)
        STATES[number] = 2 * x
        return x * x, torch.tensor(number)


    def setup_context(ctx, inputs, output):
        ctx.number = int(output[1])


    def backward(ctx, grad, _):
        slope = STATES.pop(ctx.number)
        return slope * grad


    square.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    import itertools
    import weakref

    import torch

    NUMBERS = itertools.count()
    STATES = {}


    @torch.library.custom_op("demo::square", mutates_args=())
    def square(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        number = next(NUMBERS)
        STATES[number] = 2 * x
        return x * x, torch.tensor(number)


    def setup_context(ctx, inputs, output):
        ctx.number = int(output[1])
        weakref.finalize(ctx, STATES.pop, ctx.number)


    def backward(ctx, grad, _):
        slope = STATES[ctx.number]
        return slope * grad


    square.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: most graphs are used once. Not reported under a condition, in a loop or a `try`, for a state that is
    dropped with a default, or if backward also stores or looks for something in the container.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX814"
    name = "operator-single-use-state"
    subject = SourceFile
    category = Category.PEDANTIC
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            for removed in removed_state(operator.backward):
                doer, ctx = operator.backward.node.name.value, operator.backward.ctx_name
                yield Finding(
                    operator.span(removed.node),
                    f"`{doer}` of `{operator.name}` removes its state from `{removed.container}`; a second backward "
                    f"(`retain_graph=True`) does not find it. Remove it with `weakref.finalize({ctx}, ...)`.",
                )
