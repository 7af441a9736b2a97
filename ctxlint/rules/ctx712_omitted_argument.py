"""CTX712: a helper works with a default, although the Function has the value that it should get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.omitted_arguments import GROUP, calls_without_group, misplaced_arguments
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OmittedArgument(Rule[FunctionClass]):
    """
    ## What it does
    Reports calls of functions of the project that leave a parameter to its default although the Function has a value
    for it: an argument with the name of the parameter is passed by position for another one, or `backward` omits the
    process group that `forward` gets. The latter also for collectives of `torch.distributed`.

    ## Why is this bad?
    If a function gets new parameters before others, calls that pass those by position go wrong: with
    `norm_backward(grad, x, ctx.is_rms)`, `is_rms` keeps its default, and another parameter gets the flag. Without the
    group, `backward` communicates with other processes than `forward`, or takes the part of another rank: it hangs,
    or silently returns a wrong gradient. With a single group, as in most tests, nobody notices.

    ## Example
    ```python
    import torch


    def norm_backward(grad, x, mask=None, is_rms=False):
        if mask is not None:
            grad = grad * mask
        return grad if is_rms else grad - grad.mean(-1, keepdim=True)


    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, is_rms):
            ctx.save_for_backward(x)
            ctx.is_rms = is_rms
            return x.clone() if is_rms else x - x.mean(-1, keepdim=True)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return norm_backward(grad_output, x, ctx.is_rms), None
    ```

    ## Use instead
    ```python
    import torch


    def norm_backward(grad, x, mask=None, is_rms=False):
        if mask is not None:
            grad = grad * mask
        return grad if is_rms else grad - grad.mean(-1, keepdim=True)


    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, is_rms):
            ctx.save_for_backward(x)
            ctx.is_rms = is_rms
            return x.clone() if is_rms else x - x.mean(-1, keepdim=True)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return norm_backward(grad_output, x, is_rms=ctx.is_rms), None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only functions of modules, under no decorator that may change their parameters. An argument counts as passed for
    another parameter if that is optional, too, and has an unlike name. A group is known by its name
    and by where `forward` passes it: to `torch.distributed`, as `group=`, or for a parameter annotated as `ProcessGroup` or asked
    for its `rank()`; and only of a Function with one, whose `backward` passes none next to. The function works in a default
    group without one, if it has no test of its own for that.

    ## References
    - [Calls](https://docs.python.org/3/reference/expressions.html#calls)
    - [torch.distributed: groups](https://pytorch.org/docs/stable/distributed.html#groups)
    """

    code = "CTX712"
    name = "omitted-argument"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            for each in misplaced_arguments(method):
                code, called = code_of(each.argument), code_of(each.call.func)
                yield Finding(
                    fn.span(each.argument),
                    f"`{called}` gets `{code}` for `{each.taken_by}`, and its own `{each.parameter}` keeps the default; "
                    f"it raises, or computes something else than `{method.name}` means. "
                    f"Pass `{each.parameter}={code}`.",
                )
        backward = fn.judgeable_backward
        for call in calls_without_group(fn, backward) if backward is not None else ():
            kept = next((each for each in fn.writes_by_attribute if GROUP.fullmatch(each)), None)
            remedy = f"Keep `{call.group}` on `{fn.storing_ctx}`, and pass it."
            if kept is not None:
                remedy = f"Pass `{call.parameter}={fn.reading_ctx}.{kept}`."
            yield Finding(
                fn.span(call.call),
                f"`{code_of(call.call.func)}` in `backward` of `{fn.name}` gets no `{call.parameter}`, but `forward` uses "
                f"`{call.group}`; it silently works in its default group if that is another one. {remedy}",
            )
