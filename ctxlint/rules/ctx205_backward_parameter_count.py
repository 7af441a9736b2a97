"""CTX205: backward cannot take one gradient for each output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.output_gradients import take_gradients
from ctxlint.model.analyses.outputs import (
    gradients_taken,
    hides_tensors,
    is_read,
    never_wants_gradients,
    takes_nothing,
    unfit_flag,
    unfit_outputs,
)
from ctxlint.model.function import FunctionClass, Style
from ctxlint.model.interpreter.values import Tri
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.wording import counted, own_place, quoted, when

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.function import Method, Returned


class BackwardParameterCount(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` (or `vjp`) that does not take one gradient for each output, whichever return of `forward` is
    executed. Also reports one that has code for both values of a flag, but cannot take the gradients of one of them.

    ## Why is this bad?
    Each element of the tuple that `forward` returns is an output, and `backward` needs a parameter for it, even if the
    output is a number, `None` or an index tensor. With another number, `loss.backward()` raises `TypeError:
    F.backward() takes 2 positional arguments but 3 were given`, or `missing 1 required positional argument: 'g2'`.

    ## Example
    ```python
    import torch


    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, order = torch.sort(x)
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, grad_values):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(grad_values).scatter(-1, order, grad_values)
    ```

    ## Use instead
    ```python
    import torch


    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, order = torch.sort(x)
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, grad_values, grad_order):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(grad_values).scatter(-1, order, grad_values)
    ```

    ## Fix safety
    Unsafe: parameters named after the outputs are added, or parameters that are never read are removed. The names of the
    existing parameters decide which outputs have one; if they are ambiguous, there is no fix. `backward` may have to use
    the gradient of an output that now has a parameter; ignored-output-gradient (CTX211) reports it if that is certain.

    ## Known limits
    Not reported if one return of `forward` fits, because the others may never be used in training, unless `backward`
    tests the flag that decides it, `if ctx.flag:`, or the other return is for an empty input. Also not reported if the number of outputs of a return is unknown (`return kernel(x)`), or if no output can have a gradient. Also not reported if
    `backward` returns only `None` and no output is certainly floating point, because the outputs may be integers. A
    `backward` that only raises is not checked: calling it is an error in any case.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX205"
    name = "backward-parameter-count"
    subject = FunctionClass
    holds_unreached = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.backward
        if (
            not fn.count_judgeable
            or backward is None
            or backward.raises_only
            or fn.forward is None
            or "boxed_grads_call" in fn.class_attributes
        ):
            return
        outputs = unfit_outputs(fn)
        flagged = unfit_flag(fn) if not outputs else None
        if flagged is not None:
            outputs = [flagged[0]]
        if never_wants_gradients(fn):
            return
        if not outputs:
            if takes_nothing(backward):
                fact = f"`{backward.name}` of `{fn.name}` takes no gradient, but torch passes one for each output"
                consequence = "it raises TypeError at backward"
                yield Finding(own_place(fn, backward), f"{fact}; {consequence}. Take one gradient for each output.")
            return
        if any(hides_tensors(option) for each in outputs for option in each.value.options()):  # CTX215: it never runs
            return
        least, most = gradients_taken(backward)
        too_many = most is not None and all(each.minimum > most for each in outputs)
        takes = most if most is not None and too_many else least
        under, remedy = ("", "Take one gradient for each output")
        if flagged is not None:
            under = when((flagged[1],))
            remedy = f"Take the {'other' if too_many else 'last'} ones with the default `None`"
        if any(each.minimum > len(fn.inputs) for each in fn.gradients) and fn.variadic_inputs is None:
            remedy += f", and return one for each of the {counted(len(fn.inputs), 'input')}"
        elif not too_many and (taken := _inputs_taken(fn, backward, takes - max(each.minimum for each in outputs))):
            remedy += f", and save {quoted(taken)} in `forward`"
        elif flagged is None and not too_many and (read := _read_beyond(fn, backward, outputs)):
            remedy += f", and change what reads {quoted(read)}"
        yield Finding(
            own_place(fn, backward),
            f"`{backward.name}` of `{fn.name}` takes {counted(takes, 'gradient')} but `forward` returns "
            f"{_number_of(outputs)}{under}; torch raises TypeError at backward. {remedy}.",
            fix=_fix(fn, outputs) if flagged is None else None,
            rests_on=tuple(outputs),
        )


def _inputs_taken(fn: FunctionClass, backward: Method, surplus: int) -> list[str]:
    """The surplus parameters of backward, if they are tensors that it reads and forward does not save yet."""
    inputs = {each.name for each in fn.inputs if each.is_tensor is Tri.YES}
    taken = [each.name for each in backward.own_params if each.name in inputs and is_read(backward, each)]
    saves_nothing = not fn.saves and fn.style is not Style.SETUP_CONTEXT
    return taken if len(taken) == surplus and saves_nothing else []


def _read_beyond(fn: FunctionClass, backward: Method, outputs: list[Returned]) -> list[str]:
    """The last parameters of backward that it reads, if there are more than outputs; none if another one is an input."""
    if any(each.name == entry.name for each in backward.own_params for entry in fn.inputs):
        return []
    surplus = backward.own_params[max(each.minimum for each in outputs) :]
    return [each.name for each in surplus if is_read(backward, each) and _reads_argument(backward, each.name)]


def _reads_argument(backward: Method, name: str) -> bool:
    """Whether backward may read a parameter before it binds the name to something else."""
    bound = {*backward.binders.get(name, ()), *(each.node for each in backward.params)}
    uses = (each for each in backward.named.get(name, ()) if bound.isdisjoint((each, backward.parents.get(each))))
    return any(backward.holds_argument(name, each) for each in uses)


def _fix(fn: FunctionClass, outputs: list[Returned]) -> Fix | None:
    """As many parameters as there are outputs, if all returns agree on that."""
    counts = {each.count for each in outputs}
    count = counts.pop() if len(counts) == 1 else None
    return take_gradients(fn, count) if count else None


def _number_of(outputs: list[Returned]) -> str:
    """``2 outputs``, ``2 or 3 outputs``, ``at least 2 outputs``."""
    counts = sorted({each.minimum for each in outputs})
    before = "".join(f"{count} or " for count in counts[:-1])
    return f"{'' if all(each.exact for each in outputs) else 'at least '}{before}{counted(counts[-1], 'output')}"
