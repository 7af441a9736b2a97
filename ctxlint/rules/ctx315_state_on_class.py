"""CTX315: forward leaves state on the class that backward reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.lent_memory import lent_gradients, lent_outputs
from ctxlint.model.analyses.shared_state import shared_gradients, shared_outputs, shared_saves, shared_writes
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.lent_memory import LentMemory
    from ctxlint.model.analyses.shared_state import SharedBuffer
    from ctxlint.model.interpreter.method import Method


class StateOnClass(Rule[FunctionClass]):
    """
    ## What it does
    Reports an attribute of the Function class itself that `forward` (or `setup_context`) writes and `backward` reads. Also
    an attribute of another class, a global variable, and an item of a global dict that gets an input or a tensor. And one
    of the module that calls the Function, `Fn.apply(self, x)`, which `forward` sets, and `backward` reads as `ctx.module.buffer`.

    Reports gradients, outputs and saved tensors that are a buffer of the class, of the file, or of the module around the
    class (`self.buffer`), which each run overwrites. Also an input that is returned, or that is kept and returned as the gradient of
    another one, if a call in view passes memory of its module for it, and functions that are not known fill it.

    ## Why is this bad?
    There is one class, and one module, for all calls. Each backward reads what the last forward wrote: with two calls before
    `backward()`, the first silently gets the second's value. A gradient that is kept until others are ready is overwritten,
    too, and so is the output of the call before.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor: float):
            Scale.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * Scale.factor, None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor: float):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None
    ```

    ## Fix safety
    There is no fix: other code may read the attribute.

    ## Known limits
    Attributes of a class count if they are accessed through its name, not through `cls`, those of a module if each call in
    view passes `self`, and items if their key is a string. A buffer that is created once, under `if Fn.buffer is None:`, is
    reported only where it is returned or saved. What a call passes counts only if a module creates it by `torch.empty()` or the
    like, in `__init__` or where it is None, binds it nowhere else, and returns the result of the call as it is. An attribute
    that `backward` sets again is not reported: in a reversible network, each call hands its inputs on to the one before. Nor
    is one that each call sets to the same literal, such as a flag for what is done once.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX315"
    name = "state-on-class"
    subject = FunctionClass
    about_gradients = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward, forward, ctx = fn.judgeable_backward, fn.forward, fn.storing_ctx
        for each in shared_gradients(fn, backward) if backward is not None else ():
            what, name = _named(each)
            yield Finding(
                fn.span(each.node),
                f"`backward` returns {what} as a gradient, and overwrites it on each run; if the next run comes before that "
                f"gradient is used, it is silently lost. Return `{name}.clone()`.",
            )
        if forward is not None and fn.signature_judgeable and not forward.inherited:
            yield from _buffers_of_forward(fn, forward)
        if fn.signature_judgeable:
            yield from _buffers_of_callers(fn)
        for write in shared_writes(fn):
            stored = any(each.attribute == write.attribute for each in fn.context_writes)
            advice = f"Use `{ctx}.{write.attribute}`" if stored else f"Write `{ctx}.{write.attribute} = ...`"
            if write.lasts and not stored:
                advice = f"Write `{ctx}.{write.attribute} = {code_of(write.node)}` on each call as well, and read that"
            if write.saves and not stored:
                advice = f"Pass it to `{ctx}.save_for_backward`"
            yield Finding(
                fn.span(write.node),
                f"`{write.name}` is shared by all calls, and `backward` reads it; "
                f"with two calls in flight it silently reads the value of the last. {advice}.",
            )


def _buffers_of_forward(fn: FunctionClass, forward: Method) -> Iterator[Finding]:
    for each in shared_outputs(fn, forward):
        what, name = _named(each)
        then = "the next call silently replaces the values of this output"
        if each.view and not each.unnoticed:
            then = "after the next call, a use of this output that needs a gradient raises RuntimeError"
        yield Finding(
            fn.span(each.node),
            f"`forward` returns {what.removesuffix(',')} and overwrites it on each call; {then}. Return `{name}.clone()`.",
        )
    for each in shared_saves(fn, forward):
        what, name = _named(each)
        then = "raises RuntimeError" if each.saved and not each.unnoticed else "silently reads its values"
        yield Finding(
            fn.span(each.node),
            f"`forward` keeps {what.removesuffix(',')} for `backward` and overwrites it on each call; after the next call, "
            f"`backward` of this one {then}. Keep `{name}.clone()`.",
        )


def _buffers_of_callers(fn: FunctionClass) -> Iterator[Finding]:
    outputs = list(lent_outputs(fn))
    if outputs:
        yield Finding(fn.span(outputs[0].node), _of_lent_outputs(outputs))
    for each in [*lent_gradients(fn, fn.judgeable_backward)][:1] if fn.judgeable_backward is not None else ():
        name = code_of(each.node)
        yield Finding(
            fn.span(each.node),
            f"`backward` returns `{name}` as a gradient, for which {each.call.place} passes its `{each.given}`; if the next run "
            f"comes before that gradient is used, it is silently lost. Return `{name}.clone()`.",
        )


def _of_lent_outputs(outputs: list[LentMemory]) -> str:
    """The message for the outputs that are memory of a caller."""
    names = [*dict.fromkeys(code_of(each.node) for each in outputs)]
    given, place = [*dict.fromkeys(each.given for each in outputs)], outputs[0].call.place
    saved = [*dict.fromkeys(code_of(each.node) for each in outputs if each.saved)]
    if len(names) > 1:
        deed = "returns and saves" if saved == names else "returns"
        copies = "Save and return copies" if saved == names else "Return copies"
        if saved and saved != names:
            copies = f"{copies}, and save that of {quoted(saved)}"
        fact = f"`forward` {deed} the inputs {quoted(names)}, for which {place} passes {quoted(given)}"
        return f"{fact}; the next call silently replaces their values. {copies}."
    deed, what, advice = "returns", "the values of this output", "Return"
    if saved:
        deed, what, advice = "saves and returns", "its values", "Save and return"
    fact = f"`forward` {deed} the input `{names[0]}`, for which {place} passes its `{given[0]}`"
    return f"{fact}; the next call silently replaces {what}. {advice} `{names[0]}.clone()`."


def _named(shared: SharedBuffer) -> tuple[str, str]:
    """What is returned or kept, as messages name it, and its code."""
    name = code_of(shared.node)
    in_it = "" if name.startswith(shared.buffer) else f", in the memory of `{shared.buffer}`,"
    return f"`{name}`{in_it}", name
