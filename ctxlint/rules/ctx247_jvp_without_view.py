"""CTX247: jvp gives no view of the tangent for an output that is an input, or a view of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.integral_inputs import holds_integers
from ctxlint.model.analyses.returned_views import input_behind
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Fresh, Parameter, Tri, is_tensor
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class JvpWithoutView(Rule[FunctionClass]):
    """
    ## What it does
    Reports a tangent of `jvp` that is no view of the tangent of an input, for an output of `forward` that is that input
    itself, or a view of it.

    ## Why is this bad?
    The tangent of a view must be a view of the tangent. In `torch.autograd.forward_ad`, torch raises `RuntimeError: A
    custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.`

    ## Example
    ```python
    import torch


    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

        @staticmethod
        def jvp(ctx, x_tangent):
            return x_tangent
    ```

    ## Use instead
    ```python
    import torch


    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

        @staticmethod
        def jvp(ctx, x_tangent):
            return x_tangent.view_as(x_tangent)
    ```

    ## Fix safety
    There is no fix: `forward` may have been meant to return a copy.

    ## Known limits
    Not reported if `forward` marks an input as dirty, or returns the view only on one path. `torch.func.jvp` accepts any
    tangent.

    ## References
    - [torch.autograd.Function.jvp](https://pytorch.org/docs/stable/generated/torch.autograd.Function.jvp.html)
    - [pytorch#100574](https://github.com/pytorch/pytorch/issues/100574)
    """

    code = "CTX247"
    name = "jvp-without-view"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        jvp = fn.methods.get("jvp")
        if jvp is None or jvp.inherited or not jvp.signature_known or not fn.count_judgeable:
            return
        marks = (*fn.context_calls("mark_dirty"), *fn.context_calls("mark_non_differentiable"))
        for returned in fn.tangents if not (marks or fn.escapes) else ():
            for at, slot in enumerate(returned.slots if returned.known and returned.exact else ()):
                index, whole = input_behind(fn, at) or (None, False)
                if index is None or not _never_is_view(fn, returned, at) or holds_integers(fn, fn.inputs[index]):
                    continue
                name, tangent = fn.inputs[index].name, _tangent(jvp, index)
                what = "the input" if whole else "a view of the input"
                which = f"output {at + 1}" if len(returned.slots) > 1 else "the output"
                remedy = f"`{tangent}.view_as({tangent})`" if whole and tangent else "the same view of its tangent"
                fact = f"{which} of `{fn.name}` is {what} `{name}`, but `jvp` returns no view of its tangent"
                raises = "torch raises RuntimeError under `torch.autograd.forward_ad`"
                yield Finding(
                    fn.span(slot.node or returned.node),
                    fitting(f"{fact[0].upper()}{fact[1:]}; {raises}. Return {remedy}."),
                    rests_on=(returned, *fn.outputs),
                )


def _never_is_view(fn: FunctionClass, returned: Returned, at: int) -> bool:
    """Whether no alternative of what a return gives for an output may be a view."""
    alternatives = [each for each in fn.tangents if each.node is returned.node]
    return all(at < len(each.slots) and _is_no_view(each.slots[at].value) for each in alternatives)


def _is_no_view(value: Value) -> bool:
    """Whether a tangent certainly is one that ``jvp`` gets, as it is, or a new tensor."""
    own = isinstance(value, Parameter) and value.role == "tangent"
    return own or (isinstance(value, Fresh) and is_tensor(value) is Tri.YES)


def _tangent(jvp: Method, index: int) -> str:
    """The name of the tangent of an input; empty if it has none."""
    return jvp.positional[index].name if index < len(jvp.positional) else ""
