"""CTX218: ``jvp`` with the wrong number of tangents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Tri
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import all_inputs, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class JvpArity(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `jvp` that cannot take one tangent for each input of `forward`, or that does not return one tangent for
    each output, or a list of them, or nothing at all.

    ## Why is this bad?
    Torch passes one tangent for each argument, `None` for those that are not tensors; a `jvp` that takes another number
    raises `TypeError`. The number of returned tangents must match exactly, without the tolerance for trailing `None`s
    that `backward` has: `RuntimeError: Function's jvp returned an invalid number of forward gradients (expected 2 but
    got 1)`.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, x_t):
            x, y = ctx.saved_tensors
            return x_t * y
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, x_t, y_t):
            x, y = ctx.saved_tensors
            return x_t * y + x * y_t
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if a call may omit inputs with defaults, if a number is unknown, or if `jvp` only raises.

    ## References
    - [torch.autograd.Function.jvp](https://pytorch.org/docs/stable/generated/torch.autograd.Function.jvp.html)
    """

    code = "CTX218"
    name = "jvp-arity"
    subject = FunctionClass
    holds_unreached = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        jvp = fn.methods.get("jvp")
        if jvp is None or jvp.inherited or jvp.raises_only or not jvp.signature_known:
            return
        if fn.forward is None or not fn.count_judgeable:
            return
        if fn.variadic_inputs is None:
            required = sum(param.required for param in jvp.positional)
            most = len(jvp.positional) if jvp.variadic is None else len(fn.inputs)
            if required > len(fn.inputs) or most < fn.required_inputs:
                yield Finding(
                    fn.span(jvp.node.name),
                    f"`jvp` of `{fn.name}` takes {counted(len(jvp.positional), 'tangent')} but `forward` takes {all_inputs(fn)}; "
                    f"torch raises TypeError under forward-mode AD. Take one tangent for each input.",
                )
                return  # what it returns matters only then
        if jvp.facts.modelled and not jvp.facts.returns and jvp.facts.falls_through is Tri.YES:
            yield Finding(
                fn.span(jvp.node.name),
                f"`jvp` of `{fn.name}` ends without `return`; torch raises RuntimeError under forward-mode AD. Return one "
                f"tangent for each output, or remove the method.",
            )
        counts = {returned.count for returned in fn.outputs}
        if len(counts) != 1 or None in counts:
            return
        outputs = counts.pop()
        for returned in fn.tangents:
            display = returned.display
            if display is not None and display.kind == "list":
                yield Finding(
                    fn.span(returned.node),
                    f"`jvp` of `{fn.name}` returns a list, which torch treats as one tangent; it raises RuntimeError under "
                    f"forward-mode AD. Return a tuple.",
                    rests_on=(returned,),
                )
            elif returned.count is not None and returned.count != outputs:
                yield Finding(
                    fn.span(returned.node),
                    f"`jvp` of `{fn.name}` returns {counted(returned.count, 'tangent')} but `forward` returns "
                    f"{counted(outputs or 0, 'output')}; torch raises RuntimeError under forward-mode AD. Return one "
                    f"tangent for each output, `None` if there is none.",
                    rests_on=(returned, *fn.outputs),
                )
