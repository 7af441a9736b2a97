"""CTX212: a gradient is returned although no incoming gradient is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.gradient_values import compared_with_zero
from ctxlint.model.analyses.missing_gradients import depends_on
from ctxlint.model.analyses.outputs import arriving_gradients, is_read
from ctxlint.model.analyses.returned_saved_inputs import operands_returned, returned_saved_inputs
from ctxlint.model.analyses.size_divisions import divisors_of_gradients
from ctxlint.model.analyses.unwritten_gradients import unwritten_gradients
from ctxlint.model.analyses.upstream import (
    Factor,
    common_factor,
    factor,
    gradients_without_upstream,
    is_local_rule,
    output_gradients,
    passes_on,
    returns_an_output,
    slots_without_upstream,
    tangents_without_incoming,
)
from ctxlint.model.analyses.zero_gradients import zero_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import names_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import libcst as cst

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method, Param


class GradientIgnoresUpstream(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns a gradient without reading any incoming gradient, and a `jvp` that returns a
    tangent without reading any incoming one. The shape, `torch.ones_like(grad_output)`, a comparison with 0, and values that
    `backward` has replaced, as by `grad_output.copy_(…)`, in it or in a copy, do not count. Also reports one gradient of
    several that `backward` computes from saved tensors only, or that `forward` computed and `backward` returns unchanged,
    although it reads the incoming gradient for others, and one that is memory from `torch.empty_like` or the like, which
    nothing writes. So are zeros, for an input from which `forward` computes an output, or which a function gets that is
    not in view; and a saved input that is returned as its own gradient.

    ## Why is this bad?
    By the chain rule, the gradient is a product with the incoming gradient. Without that factor, `loss.backward()` on
    the output itself is right only because the incoming gradient is 1. `(1024 * loss).backward()`, as in gradient
    scaling, gives a gradient that is 1024 times too small; a weighted or averaged loss is silently wrong in the same
    way. One that is also divided by a size, by which `forward` does not divide, is right for a mean of the output at best.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if the result may be the gradient on purpose: if `forward` only keeps a tensor for it, as for a synthetic
    gradient or a target, and does not only pass on a loss, if it comes from an object on ctx, a class, a container or another process, or if a docstring
    says that the incoming gradient is not used. Nor where it is evidently a learning rule of its own, not a derivative: no incoming
    gradient is read, and the first input gets zeros, unless the output is reduced like a loss. Nor if the only result is zeros that `backward` itself does not modify, if
    `forward` returns random numbers, or if it may have computed the tangent from tangents. One gradient of several is not
    reported if a constant such as `torch.ones_like(x)`, or anything but saved tensors and numbers of ctx, takes part in it:
    an auxiliary loss gets its gradient in this way. Zeros are not reported where a path returns another gradient for that
    input, where it may hold integers, or is called like what often does, such as `index`, or where all calls in view detach it.
    Memory that a function allocates is reported only if its result is returned at once, or unpacked into names that are
    only returned.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX212"
    name = "gradient-ignores-upstream"
    subject = FunctionClass
    about_backward = True
    about_values = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward, jvp = fn.judgeable_backward, fn.methods.get("jvp")
        tangents = tangents_without_incoming(fn)[:1] if fn.signature_judgeable else []
        for node, tangent in ((each, jvp) for each in tangents if jvp is not None):
            yield Finding(
                fn.span(node),
                f"`jvp` of `{fn.name}` returns a tangent without reading {_unread(tangent, tangent.own_params)}; the result is silently wrong "
                "unless the incoming tangent is 1. Multiply by it.",
            )
        if backward is None or not backward.signature_known:
            return
        unwritten = dict(unwritten_gradients(fn, backward))
        yield from _of_unwritten(fn, backward, unwritten)
        if is_local_rule(fn):
            return
        yield from _of_zeros(fn, backward)
        yield from _of_inputs(fn, backward)
        ignored = gradients_without_upstream(fn) if not unwritten else []
        yield from _of_some(fn, backward) if not ignored else ()
        arriving = arriving_gradients(fn, backward)
        compared = quoted(each.name for each in backward.own_params if compared_with_zero(backward, each))
        how = (
            f"that uses {compared} only to compare with 0"
            if compared
            else f"without reading {_unread(backward, arriving)}"
        )
        several = len(arriving) > 1
        for node in ignored[:1]:
            if not several and passes_on(fn, node):
                yield Finding(
                    fn.span(node),
                    f"`{backward.name}` of `{fn.name}` returns a gradient {how}, although `forward` passes its input on; the "
                    f"gradients of all that follows are silently lost. Compute the gradient from {_incoming(fn, backward)}.",
                )
                continue
            output = next(output_gradients(fn, node), None)
            if output is not None:
                yield _of_output(fn, backward, *output)
                continue
            itself = [
                code_of(each[1])
                for returned in fn.gradients
                if returned.node is node
                for each in operands_returned(fn, returned)
            ]
            if itself:
                yield Finding(
                    fn.span(node),
                    f"`{backward.name}` of `{fn.name}` returns the saved input `{itself[0]}` itself as the gradient for it, {how}; that "
                    f"is right for one incoming gradient at best. Compute it from {_incoming(fn, backward)}.",
                )
                continue
            divisors = divisors_of_gradients(fn, node) if not several and not compared else []
            if divisors:
                yield Finding(
                    fn.span(node),
                    f"`{backward.name}` of `{fn.name}` returns a gradient {how}; it is right for one incoming gradient only. "
                    f"{_REMEDIES[factor(fn)]}; divide by {_written(divisors)} only if `forward` does.",
                )
                continue
            yield Finding(
                fn.span(node),
                f"`{backward.name}` of `{fn.name}` returns a gradient {how}; the result is silently wrong unless the incoming "
                f"{'gradients are' if several else 'gradient is'} {'0 or ' * bool(compared)}1. "
                f"{'Compute it from them' if several else _REMEDIES[factor(fn)]}.",
            )


_REMEDIES = {
    Factor.MULTIPLIED: "Multiply by it",
    Factor.EXPANDED: "Multiply by it, expanded to the input's shape",
    Factor.GIVEN: "Multiply by it, or raise an error unless it is 1",
    Factor.UNKNOWN: "Compute the gradient from it",
}


def _of_unwritten(fn: FunctionClass, backward: Method, slots: Mapping[int, cst.BaseExpression]) -> Iterator[Finding]:
    """A finding for the gradients that are memory which nothing writes, at the first of them."""
    forward = fn.forward
    entries = [fn.inputs[index] for index in slots if index < len(fn.inputs)]
    wanted = (
        forward is not None and len(entries) == len(slots) and all(depends_on(fn, forward, each) for each in entries)
    )
    for first in [*slots.values()][:1]:
        yield Finding(
            fn.span(first),
            f"`{backward.name}` of `{fn.name}` returns memory that nothing writes as the gradient for {quoted(names_of(fn, slots))}; its "
            f"values are silently arbitrary. Compute it{'' if wanted else ', or return `None`'}.",
        )


def _of_zeros(fn: FunctionClass, backward: Method) -> Iterator[Finding]:
    """A finding for the gradients that are zeros which nothing writes, at the first of them."""
    zeros = zero_gradients(fn, backward)
    for certain in {each.certain: None for each in zeros}:
        first, *others = (each for each in zeros if each.certain is certain)
        names = quoted(names_of(fn, [first.index, *(each.index for each in others)]))
        fact = f"`{backward.name}` of `{fn.name}` always returns zeros for {names}"
        if certain:
            lost = f"{'their gradients are' if others else 'its gradient is'} silently lost. Compute {'them' if others else 'it'}"
            message = f"{fact}, from which `forward` computes an output; {lost}."
        else:
            which = "one of them" if others else "it"
            message = (
                f"{fact}, which nothing writes; if an output depends on {which}, its gradient is silently lost. "
                "Compute it, or return `None`."
            )
        yield Finding(fn.span(first.node), message)


def _of_inputs(fn: FunctionClass, backward: Method) -> Iterator[Finding]:
    """A finding for the first input that is returned as its own gradient."""
    for _index, node in [*returned_saved_inputs(fn, backward)][:1]:
        yield Finding(
            fn.span(node),
            f"`{backward.name}` of `{fn.name}` returns the saved input `{code_of(node)}` itself as the gradient for it; that is "
            f"right for one incoming gradient at best. Compute it from {_incoming(fn, backward)}.",
        )


def _of_some(fn: FunctionClass, backward: Method) -> Iterator[Finding]:
    """A finding for the gradients that ignore the upstream gradient although others do not, at the first of them."""
    slots = dict(slots_without_upstream(fn))
    outputs = {index: node for index, node in slots.items() if returns_an_output(fn, node)}
    for index, node in [*outputs.items()][:1]:
        yield _of_output(fn, backward, index, node)
    slots = {index: node for index, node in slots.items() if index not in outputs}
    several, expanded = len(slots) > 1, Factor.EXPANDED
    by = common_factor(fn, backward, slots)
    remedy = f"Multiply by `{by}`" if by else _REMEDIES[expanded if factor(fn) is expanded else Factor.MULTIPLIED]
    for first in [*slots.values()][:1]:
        yield Finding(
            fn.span(first),
            f"`{backward.name}` of `{fn.name}` returns {'gradients' if several else 'a gradient'} for {quoted(names_of(fn, slots))} that "
            f"{'do' if several else 'does'} not depend on {_incoming(fn, backward)}; {'they are' if several else 'it is'} silently "
            f"wrong unless the incoming gradient is 1. {remedy}.",
        )


def _of_output(fn: FunctionClass, backward: Method, index: int, node: cst.BaseExpression) -> Finding:
    """A finding for an output of forward that backward returns as a gradient: no factor makes it one."""
    return Finding(
        fn.span(node),
        f"`{backward.name}` of `{fn.name}` returns an output of `forward` as the gradient for {quoted(names_of(fn, [index]))}; it is "
        f"silently wrong. Compute the gradient from {_incoming(fn, backward)}.",
    )


def _written(divisors: list[cst.BaseExpression]) -> str:
    """Divisors as they are written, if that is short."""
    codes = dict.fromkeys(" ".join(code_of(each.with_changes(lpar=(), rpar=())).split()) for each in divisors)
    short = sum(map(len, codes)) <= 30 and len(codes) <= 2
    return quoted(codes, "and") if short else "sizes" if len(codes) > 1 else "a size"


def _incoming(fn: FunctionClass, backward: Method) -> str:
    """The names of the incoming gradients."""
    return quoted([param.name for param in arriving_gradients(fn, backward)], "or")


def _unread(method: Method, params: tuple[Param, ...]) -> str:
    """What is not read: only the values, if the shape is, or if the values are replaced."""
    some = any(is_read(method, param) for param in params)
    if len(params) > 3:
        return f"{'the values of ' * some}any of the {len(params)} incoming {_KINDS[method.name == 'jvp']}"
    return "the values of " * some + quoted([param.name for param in params], "or")


_KINDS = ("gradients", "tangents")
