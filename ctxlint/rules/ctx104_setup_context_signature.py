"""CTX104: ``setup_context`` cannot be called as autograd calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.rejections import swapped_in_setup, taken_by_setup
from ctxlint.model.function import Binding, FunctionClass
from ctxlint.model.interpreter.signatures import is_context_name
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method


class SetupContextSignature(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `setup_context` that cannot be called as `setup_context(ctx, inputs, output)`, or that takes the output
    before the inputs.

    ## Why is this bad?
    Torch passes three arguments by position: the ctx, the tuple of all inputs, and the return value of `forward`. With
    any other number of parameters, every `apply` raises `TypeError: F.setup_context() takes 2 positional arguments but
    3 were given` or `F.setup_context() missing 1 required positional argument: 'output'`. The names are free, but the
    order is fixed: with `(ctx, output, inputs)` each of the two gets the other's value, and `save_for_backward can only
    save variables, but argument 0 is of type tuple` is raised only if a gradient is needed. This holds from torch 2.0
    to 2.15.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, x, factor, output):
            ctx.factor = factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None
    ```

    ## Fix safety
    There is no fix: the body has to change with the parameters.

    ## Known limits
    Not reported if a base class or a decorator is unknown, or if `target-torch` ends before 2.0.

    ## References
    - [Extending torch.func with autograd.Function](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX104"
    name = "setup-context-signature"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        method = fn.setup_context
        if method is None or method.inherited or not fn.signature_judgeable or not method.signature_known:
            return
        if _is_about_ctx(fn, method) or method.name in fn.called_directly:
            return
        message = _count_message(method) or _order_message(fn, method)
        if message is not None and settings.torch.reach(2, 0):
            yield Finding(fn.span(method.node.name), f"`setup_context` of `{fn.name}` {message}")


def _is_about_ctx(fn: FunctionClass, method: Method) -> bool:
    """Whether the problem is the first parameter, which CTX101 and CTX102 report."""
    receiver = method.receiver
    if method.binding is Binding.CLASS:
        return receiver is None or is_context_name(receiver.name)
    if receiver is not None and method.binding is Binding.STATIC:
        return fn.applied
    return receiver is not None or method.lacks_ctx


def _count_message(method: Method) -> str | None:
    taken = taken_by_setup(method)
    inputs = method.positional[0].name if taken.number == 2 and method.positional else "inputs"
    advice = f"Write `setup_context({_ctx(method)}, {inputs}, output)`{_others(method, inputs)}."
    if taken.by_keyword:
        return f"takes `{taken.by_keyword}` by keyword; torch passes all arguments by position and raises TypeError at `apply`. {advice}"
    if not taken.fit:
        return f"takes {counted(taken.number, 'argument')}; torch passes 3 and raises TypeError at `apply`. {advice}"
    return None


def _order_message(fn: FunctionClass, method: Method) -> str | None:
    swapped = swapped_in_setup(fn, method)
    if swapped is None:
        return None
    second, third = swapped
    whole = third.name not in [each.name for each in fn.inputs]
    inputs, others = (third.name, "") if whole else ("inputs", f", and take `{third.name}` from `inputs`")
    return (
        f"takes `{second.name}` before `{third.name}`, but torch passes the inputs first; each gets the "
        f"other's value. Write `setup_context({_ctx(method)}, {inputs}, {second.name})`{others}."
    )


def _others(method: Method, inputs: str) -> str:
    """What else to change where the body reads parameters by other names."""
    own = [each.name for each in method.params if not is_context_name(each.name)]
    read = [each for each in own if each not in (inputs, "output") and each in method.facts.names_read]
    if not read:
        return ""
    return f", and take {quoted(read) if len(read) <= _MOST_NAMES else 'the others'} from these"


_MOST_NAMES = 3


def _ctx(method: Method) -> str:
    """The name of ctx; the usual one if the first parameter is something else."""
    whole = len(method.positional) >= 2 or is_context_name(method.ctx_name)
    return method.ctx_name if whole else "ctx"
