"""CTX802: backward of a custom operator returns the wrong number of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.input_unpackings import never_unpacks
from ctxlint.model.analyses.tensor_containers import is_tensor_container
from ctxlint.model.function import SourceFile
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Operator, Param


class OperatorGradientCount(Rule[SourceFile]):
    """
    ## What it does
    Reports a return of a custom operator's backward with fewer or more gradients than the operator has inputs. A
    surplus `None` counts if `target-torch` includes 2.14.

    ## Why is this bad?
    The operator's signature determines the number: one gradient for each parameter that can be passed by position,
    including those with defaults, `None` for those that are not tensors, and none for keyword-only parameters. Backward
    raises `RuntimeError: ... returned an incorrect number of gradients (expected 2, got 1)`. Surplus `None`s, which
    torch 2.13 still drops, are rejected since torch 2.14.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor


    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]


    def backward(ctx, grad_output):
        return grad_output * ctx.factor


    scale.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor


    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]


    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


    scale.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix: only the author knows which gradient is missing or surplus.

    ## Known limits
    Only functions without decorators are checked. Trailing inputs that a call leaves at their defaults need no
    gradient, so missing gradients for them raise only in other calls.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX802"
    name = "operator-gradient-count"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            names = [param.name for param in operator.inputs]
            if never_unpacks(operator):
                continue  # the call raises: CTX815
            for returned in operator.gradients:
                count = returned.count
                if count is None:
                    continue
                surplus = [slot.value for slot in returned.slots[len(names) :]]
                if count < len(names) or any(is_none(value) is Tri.NO for value in surplus):
                    since = ""
                    few = count < len(names)
                elif (
                    surplus
                    and all(is_none(value) is Tri.YES for value in surplus)
                    and _refuses_none(operator, settings)
                ):
                    since = " since 2.14" if settings.torch.fall_below(2, 14) and not _takes_list(operator) else ""
                    few = False
                else:
                    continue
                yield Finding(
                    operator.span(returned.node),
                    f"`{operator.backward.node.name.value}` returns {counted(count, 'gradient')} but `{operator.name}` "
                    f"takes {listed(len(names), 'input', names)}; torch raises RuntimeError at backward{since}"
                    f"{_when_set(operator.inputs[count:]) if few else ''}. "
                    f"{_remedy(file, operator, count) or (_RETURN_ALL if few else 'Remove the surplus.')}",
                )


def _refuses_none(operator: Operator, settings: Settings) -> bool:
    """Whether a surplus None raises: since 2.14; in every release if an input is a list of tensors."""
    return settings.torch.reach(2, 14) or _takes_list(operator)


def _takes_list(operator: Operator) -> bool:
    return any(is_tensor_container(each.annotation) for each in operator.inputs)


def _remedy(file: SourceFile, operator: Operator, count: int) -> str:
    """What to write if the number is right for another operator that the same function is registered for."""
    here = operator.backward.node.name
    for other in file.operators:
        if len(other.inputs) == count and other.span(other.backward.node.name) == operator.span(here):
            return f"Write another function; {count} is the number for `{other.name}`."
    return ""


def _when_set(missing: Sequence[Param]) -> str:
    """The calls for which gradients are missing: trailing inputs with their default values need none."""
    if not missing or not all(param.has_default for param in missing):
        return ""
    later = " or a later one" if len(missing) > 1 else ""
    return f" if a call sets `{missing[0].name}`{later}"


_RETURN_ALL = "Return a gradient or `None` for each input."
