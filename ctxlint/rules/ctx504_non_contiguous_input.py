"""CTX504: compiled code gets an input as it came, in any layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.flattened_writes import flattened_writes
from ctxlint.model.analyses.layout_uses import ADDRESS, compiled_reads_of_inputs
from ctxlint.model.analyses.sliced_inputs import sliced_inputs
from ctxlint.model.analyses.uncopied_saves import uncopied_saves
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.summary import KERNEL, PARTLY_STRIDED
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.layout_wording import lost_write
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class NonContiguousInput(Rule[FunctionClass]):
    """
    ## What it does
    Reports a compiled extension, an operator that torch itself does not have, or the launch of a kernel,
    `kernel[grid]`, that gets an input in `forward` as it came, if `forward` neither makes it contiguous nor asks for its
    layout, or a call that gets its `data_ptr()` with those of other tensors; extensions and operators also in a function of the project that `forward` passes the input to. Also a Triton kernel
    of the project that gets an input with the strides of its rows, and adds a range to the address. And one that gets a
    saved input in `backward` as it came, if `forward` gives compiled code a contiguous copy of it. Also a new tensor with
    the layout of an input or incoming gradient, its `clone()` or `torch.zeros_like(x)`, that is written by way of `flatten()` or the like, which copies what is
    not contiguous, and read later. Reported by default is
    a `view` of an input that merges dimensions, where a call passes a part of them: `x[:, 1:]`. And an assertion that such
    an input is contiguous.

    ## Why is this bad?
    Callers may pass a transposed, sliced or expanded tensor. Compiled code that computes addresses from sizes, as most
    code with `data_ptr` does, then reads other elements, or out of bounds: the output is silently wrong, and so are the
    gradients. Code that checks its arguments raises.

    ## Example
    ```python
    import torch
    import warp_cuda


    class Warp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return warp_cuda.forward(x)

        @staticmethod
        def backward(ctx, grad_output):
            return warp_cuda.backward(grad_output.contiguous())
    ```

    ## Use instead
    ```python
    import torch
    import warp_cuda


    class Warp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return warp_cuda.forward(x.contiguous())

        @staticmethod
        def backward(ctx, grad_output):
            return warp_cuda.backward(grad_output.contiguous())
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default but for such calls: compiled code may handle strides, or check them. Of views, only `x.view(-1)` and `x.view(-1, x.shape[-1])` are
    checked, of an input that `forward` has not bound again. Only inputs that get a gradient count, and none that
    is called like a parameter (`weight`, `bias`). Not reported if `forward` mentions strides, unless a Triton kernel certainly does not use the last one, if every call in view
    passes a tensor that its function has computed, or rows that a tensor selects, or if a decorator of the project may change the arguments. Extensions are known as for CTX502.

    ## References
    - [torch.Tensor.contiguous](https://pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
    """

    code = "CTX504"
    name = "non-contiguous-input"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    default_in_view = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return any(each.sliced for each in subject.calls)

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for read, inputs in compiled_reads_of_inputs(fn):
            names, several = _named([each.name for each in inputs]), len(inputs) > 1
            passed = f"gets the input{'s' * several} {names}"
            passed = f"`{read.by}` passes {names} to `{read.reader}`" if read.by else f"`{read.reader}` {passed}"
            if read.how == ADDRESS:
                passed = f"A launch gets the address{'es' * several} of the input{'s' * several} {names}"
            if read.how == PARTLY_STRIDED:
                passed += ", which takes" if read.by else " and takes"
                what = (
                    f"{'their last strides' if several else 'its last stride'} to be 1; it silently reads wrong values of "
                    f"others, such as `{inputs[0].name}[..., ::2]`"
                )
            elif read.how in (KERNEL, ADDRESS):
                what = "but none of the strides; it silently reads wrong values of transposed or sliced ones"
            else:
                what = (
                    "in any layout; unless the callee handles strides, the call raises, or silently reads wrong values of "
                    "transposed or sliced ones"
                )
            yield Finding(
                fn.span(read.value_node or read.node),
                fitting(f"{passed} {what}. Call `.contiguous()` on {'them' if several else 'it'} first."),
                related=way_to(fn, read),
            )
        for use, read in uncopied_saves(fn):
            reader = f"`{read.reader}`" if read.reader and read.how != "data_ptr" else "Compiled code"
            fact = f"{reader} gets the saved input `{use.value}` as it came, though `forward` passes a contiguous copy"
            effect = "it silently reads wrong values" if read.how == KERNEL else _UNLESS_HANDLED
            yield Finding(fn.span(use), f"{fact}; {effect} of a transposed or sliced one. Save the copy.")
        for method in fn.own_protocol_methods:
            for written in flattened_writes(fn, method):
                yield Finding(fn.span(written.copy), lost_write(written))
        for sliced in sliced_inputs(fn):
            fact = f"`{code_of(sliced.node)}` in `forward` of `{fn.name}`"
            effect = "it raises RuntimeError unless a merged size is 1 or that takes everything. Use `reshape`."
            if sliced.asserted:
                effect = "it raises AssertionError unless the sizes before are 1 or that takes everything. Call `.contiguous()` there."
            yield Finding(
                fn.span(sliced.node),
                fitting(
                    f"{fact} gets `{sliced.passed}` from the call on {sliced.call.place}; {effect}",
                    f"{fact} gets part of a tensor from the call on {sliced.call.place}; {effect}",
                ),
                in_view=True,
            )


def _named(names: list[str]) -> str:
    """The names, or the first ones of many."""
    return quoted(names) if len(names) <= _MOST_NAMES else f"{', '.join(f'`{each}`' for each in names[:2])} and others"


_MOST_NAMES = 3
_UNLESS_HANDLED = "unless it handles strides, the call raises, or silently reads wrong values"
