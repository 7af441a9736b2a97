"""CTX304: ``save_for_backward`` or a mark called twice on one path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.merging import merge_calls
from ctxlint.model.analyses.repeats import (
    always_follows,
    gradient_stopped,
    is_chosen,
    leaves_differentiable,
    loop_around,
    marks_integers,
    rebound_names,
    repeated,
    repeats_arguments,
    returns_between,
)
from ctxlint.model.analyses.saved_tensors import unpacked_alone
from ctxlint.model.function import ContextCall, FunctionClass
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import names_in
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import at, way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method

_REPLACING = ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable")


class RepeatedCtxCall(Rule[FunctionClass]):
    """
    ## What it does
    Reports a second `save_for_backward`, `save_for_forward`, `mark_dirty` or `mark_non_differentiable` on one path
    through `forward` or `setup_context`, and such a call in a loop over its arguments.

    ## Why is this bad?
    The second call does not add to the first but replaces it, without a warning. After two `save_for_backward` calls,
    only the tensors of the second are saved: unpacking in `backward` raises `ValueError: not enough values to unpack
    (expected 2, got 1)`, or silently yields the wrong tensors. After two `mark_non_differentiable` calls, the outputs
    of the first require grad.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x
    ```

    ## Fix safety
    Two calls in the same block whose arguments are names are merged. This is unsafe, unless `backward` already unpacks
    as many tensors as the merged call saves; if it unpacks another number, as where the first call has to go, if all outputs might be marked
    non-differentiable, or an output is marked whose gradient `backward` reads, there is no fix. A first call all of whose
    arguments are in the second call as well is removed, which is safe.

    ## Known limits
    Calls in different branches of one test, or under tests that look opposite, are not reported. Neither is a second
    call under a test if it has all arguments of the first and more, a call in a loop that can be left early, or under a
    test in a loop, nor a mark of tensors of integers, which never have a gradient.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    - [FunctionCtx.mark_non_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html)
    """

    code = "CTX304"
    name = "repeated-ctx-call"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.context_methods:
            if method.inherited:
                continue
            for name in _REPLACING:
                calls = tuple(call for call in method.facts.of(ContextCall) if call.method == name)
                twice = dict(repeated(calls))
                for call in calls:
                    if call in twice:
                        yield from self.replaces(fn, method, twice[call], call)
                    elif _for_each(method, call):
                        yield Finding(
                            fn.span(call.node),
                            f"Each iteration replaces the arguments of `{name}`; torch silently keeps only the last ones. "
                            f"Collect the tensors, and call it once with a star.",
                            related=way_to(fn, call),
                        )

    def replaces(
        self, fn: FunctionClass, method: Method, earlier: ContextCall, later: ContextCall
    ) -> Iterator[Finding]:
        """The effect of the later of two calls on the earlier one; nothing if that is not missed."""
        line = fn.line(earlier.node)
        if repeats_arguments(earlier, later):
            if earlier.by or not always_follows(method, later, earlier):
                return
            consequence = "that call has no effect, because this one passes all its tensors. Drop that call."
        elif later.method == "mark_non_differentiable":
            consequence = _of_mark(fn, earlier, later)
        else:
            consequence = _of_save(fn, method, earlier, later)
        if not consequence:
            return
        yield Finding(
            fn.span(later.node),
            f"This `{later.method}` replaces the one on {line}; {consequence}",
            None if earlier.by or later.by else merge_calls(fn, method, earlier, later),
            (*at(fn, [earlier.node], "this call is replaced"), *way_to(fn, earlier, later)),
        )


def _of_save(fn: FunctionClass, method: Method, earlier: ContextCall, later: ContextCall) -> str:
    """The effect of a call that replaces another: where backward unpacks only its tensors, that one has to go.

    Empty if that one is in a function that other Functions call, too.
    """
    dropped, alone = "the tensors passed there are silently dropped.", unpacked_alone(fn, later)
    if later.method.startswith("save_for") and not later.happens_with(earlier):
        return f"{dropped} Pass what `backward` reads to one call on each path."
    if alone is Tri.YES and earlier.by:
        return ""
    if alone is Tri.YES and returns_between(method, later, earlier):
        return f"{dropped} Pass what `backward` reads to one call on each path."
    if alone is Tri.YES:
        return "that call has no effect, because `backward` unpacks as many tensors as this one saves. Drop that call."
    if alone is Tri.UNKNOWN:
        return f"{dropped} Pass what `backward` reads to one call."
    return f"{dropped} Pass all tensors to one call."


def _of_mark(fn: FunctionClass, earlier: ContextCall, later: ContextCall) -> str:
    """The effect of a mark that replaces another: one that stops a gradient which backward computes has to go."""
    before, now = (gradient_stopped(fn, each) for each in (earlier, later))
    if now is not None:
        which = "Drop both" if before is not None else "Drop this call"
        return (
            f"that mark is silently dropped, and this one stops the gradient that `backward` reads as `{now}`. {which}."
        )
    if before is not None:
        return f"that mark would stop the gradient that `backward` reads as `{before}`. Drop that call."
    if marks_integers(earlier, later):  # they never have a gradient: that mark changes nothing
        return ""
    if not leaves_differentiable(fn, (earlier, later)):
        return "that mark is silently dropped. Mark all outputs without a gradient in one call."
    return "the tensors passed there are silently dropped. Pass all tensors to one call."


def _for_each(method: Method, call: ContextCall) -> bool:
    """Whether the call is in a loop and gets the loop's elements."""
    loop = loop_around(method, call)
    if loop is None or is_chosen(method, loop, call):
        return False
    turned = rebound_names(loop)
    return any(
        argument.node is not None and not argument.starred and names_in(argument.node) & turned
        for argument in call.arguments
    )
