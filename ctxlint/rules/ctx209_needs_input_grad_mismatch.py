"""CTX209: a gradient computed under one input's flag and returned for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.gradient_flags import test_own_flag
from ctxlint.model.analyses.flags import (
    counts_from_one,
    input_names,
    misplaced_gradients,
    refused_flags,
    shares_its_test,
    unbound_uses,
    wrong_test,
)
from ctxlint.model.analyses.gradient_names import input_behind_name
from ctxlint.model.analyses.gradient_placements import shortfalls
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MaybeUnbound
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import at
from ctxlint.rules.releases import defaults_are_bound
from ctxlint.rules.wording import first_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.flags import Misplaced


class NeedsInputGradMismatch(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient that `backward` computes only under `ctx.needs_input_grad[i]` and returns only for another input.
    Also under `ctx.a` that `forward`, or a function of the project for it, sets to `weight.requires_grad`.

    ## Why is this bad?
    If input `i` needs no gradient (a frozen weight) and the other input does, the returned gradient is `None`. Torch
    treats `None` as "no gradient", so the other input silently gets none.

    ## Example
    ```python
    import torch


    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return x * weight + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_x = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output * weight
            if ctx.needs_input_grad[1]:
                grad_weight = grad_output * x
                grad_bias = grad_output.clone()
            return grad_x, grad_weight, grad_bias
    ```

    ## Use instead
    ```python
    import torch


    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return x * weight + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_x = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output * weight
            if ctx.needs_input_grad[1]:
                grad_weight = grad_output * x
            if ctx.needs_input_grad[2]:
                grad_bias = grad_output.clone()
            return grad_x, grad_weight, grad_bias
    ```

    ## Fix safety
    Unsafe: the test uses the flag of the input that gets the gradient. If the test also guards other statements, the
    statements that compute this gradient get a test of their own. There is a fix only if the flag is certainly the
    mistake: the gradient is named after its input (`grad_bias`, `dbias` for `bias`), or input `i` has a gradient of its
    own or is not a tensor. Otherwise the position in the tuple may be wrong. There is no fix either if
    several gradients share intermediate results computed under the test.

    ## Known limits
    Not reported if a name is bound under several flags, one of them its own, or under `or`, which usually guards work
    shared by several gradients; or if it is not bound without the flag, which raises (gradient-unbound, CTX210). Nor if
    every call in the project computes both inputs from the same tensor, or if the Function, or a function that gets the flags,
    asserts something about one of the two flags, or raises depending on it.

    ## References
    - [FunctionCtx.needs_input_grad](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX209"
    name = "needs-input-grad-mismatch"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None or counts_from_one(fn, backward):  # CTX208
            return
        names, ctx = input_names(fn), fn.reading_ctx
        raising = {use.name for use, _flags in unbound_uses(fn, backward)}  # CTX210: it is never `None`
        rejected = _flags_of_rejected(fn, settings)
        found = [each for each in misplaced_gradients(fn) if each.name not in raising and each.flags not in rejected]
        together = _together(found)
        for first, *others in together:
            slots = sorted(each.slot for each in (first, *others))
            yield Finding(
                fn.span(first.node),
                f"`{backward.name}` computes the gradients for {first_of([names[slot] for slot in slots], _MOST_NAMES)} only if "
                f"{quoted([names[index] for index in sorted(first.flags)])} requires one; they silently get none if it does not. "
                f"Use `any({ctx}.needs_input_grad)` instead, in both methods.",
            )
        for each in found:
            if any(each in group for group in together):
                continue
            asked = [names[index] for index in sorted(each.flags)]
            receiver = names[each.slot]
            what = f"`{each.name}`" if each.name else "a gradient"
            own = f"{ctx}.needs_input_grad[{each.slot}]"
            tests = quoted([f"{ctx}.needs_input_grad[{index}]" for index in sorted(each.flags)], "or")
            test = wrong_test(fn, each)
            unbound = any(use.name == each.name for use in backward.facts.of(MaybeUnbound))
            effect = (
                f"it raises UnboundLocalError when only `{receiver}` needs a gradient"
                if unbound
                else f"`{receiver}` silently gets no gradient when only it needs one"
            )
            if each.kept:
                remedy = f"Compute it if `{own}` is set."
            elif each.by_return:
                remedy = f"Return it if `{own}` is set."
            elif test is None and shares_its_test(fn, each.name):
                remedy = f"Test `{own}` too."
            else:
                remedy = f"Test `{own}`."
            other = _exchanged(fn, each, found)
            if other is not None and _is_named(fn, (each, other)):
                remedy = f"Return `{other.name}` for `{receiver}`, and {what} for `{names[other.slot]}`."
            elif other is not None:
                remedy = f"Exchange {what} and `{other.name}` in the `return`, or their flags."
            only = f"only under {tests}, the flag{'' if len(asked) == 1 else 's'} of {quoted(asked)}"
            if each.kept:
                only = f"only if {quoted(asked)} {'requires' if len(asked) == 1 else 'require'} a gradient"
            test = test if other is None else None
            yield Finding(
                fn.span(test or each.node),
                f"`{backward.name}` returns {what} for `{receiver}` but computes it {only}; {effect}. {remedy}",
                test_own_flag(fn, each) if not each.kept and other is None else None,
                at(fn, [each.node], "returned here") if test is not None else (),
            )


_MOST_NAMES = 3
"""The maximum number of names to list."""


def _flags_of_rejected(fn: FunctionClass, settings: Settings) -> set[frozenset[int]]:
    """The flags without which backward returns too few gradients, so that it raises: CTX201, CTX203."""
    every = shortfalls(fn, defaults_are_bound=defaults_are_bound(fn, settings))
    return {refused_flags(each.returned.event.guards) for each in every}


def _exchanged(fn: FunctionClass, each: Misplaced, found: list[Misplaced]) -> Misplaced | None:
    """The gradient in the same return that is computed under the flag of the input that gets this one, and vice versa.

    None if a name shows that it is the flags that have changed places.
    """
    for other in found if each.name else ():
        if other.name not in ("", each.name) and not (each.varies or other.varies):
            if other.node is each.node or not (other.by_return or each.by_return):
                if other.flags == {each.slot} and each.flags == {other.slot}:
                    return None if any(_input_named(fn, one) == one.slot for one in (each, other)) else other
    return None


def _is_named(fn: FunctionClass, pair: tuple[Misplaced, Misplaced]) -> bool:
    """Whether the name of one of two gradients is that of the input whose flag it is computed under."""
    return any(_input_named(fn, each) in each.flags for each in pair)


def _input_named(fn: FunctionClass, each: Misplaced) -> int | None:
    return input_behind_name(each.name, fn.inputs)


def _together(found: list[Misplaced]) -> list[list[Misplaced]]:
    """Those of three and more gradients of one return that all depend on the flag of one input, which forward keeps."""
    groups: dict[tuple[cst.CSTNode, frozenset[int]], list[Misplaced]] = {}
    for each in found:
        if each.kept and len(each.flags) == 1:
            groups.setdefault((each.node, each.flags), []).append(each)
    return [group for group in groups.values() if len(group) > 2]
