"""CTX502: an incoming gradient is assumed to be contiguous."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.contiguity import allow_any_layout
from ctxlint.model.analyses.contiguous_companions import gets_copies_of_others
from ctxlint.model.analyses.layout_uses import layout_uses
from ctxlint.model.analyses.merged_dimensions import dimensions_of_gradient, dimensions_of_output
from ctxlint.model.analyses.output_sizes import has_several_elements
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import LayoutAsked, MemoryRead, Question
from ctxlint.model.interpreter.summary import ASSERTED, SENT
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.layout_wording import assumed_contiguous
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.layout_uses import LayoutUse
    from ctxlint.model.interpreter.events import Guard


class NonContiguousGradOutput(Rule[FunctionClass]):
    """
    ## What it does
    Reports `.view(...)` that merges dimensions of an incoming gradient that was not made contiguous first, and the launch of a kernel from
    outside of the project, `kernel[grid]`, that gets one, if `backward` does not ask for its strides; in `backward`, or
    in a function of the project that `backward` passes the gradient to. Also an assertion that a gradient is contiguous,
    or such a function that raises unless it is, also after `reshape`, and a compiled extension, an operator that torch itself does not have, or a collective such as `dist.all_gather`,
    that gets one as it came, an extension also after `reshape`, and `dist.send`. What certainly goes wrong in silence is CTX410.

    ## Why is this bad?
    Autograd does not guarantee the memory layout of a gradient. If the output is transposed afterwards, so is its
    gradient, and `view` raises `RuntimeError: view size is not compatible with input tensor's size and stride`. After
    `y.sum()`, the gradient is one value expanded to the shape of `y`, with stride 0: a kernel that gets the raw pointer
    reads wrong values, or out of bounds, and with NCCL, a collective raises `ValueError: Tensors must be contiguous`.
    `dist.send` raises with Gloo; NCCL warns once, and sends the memory as it is.

    ## Example
    ```python
    import torch


    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.reshape(2, -1)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.view(-1)
    ```

    ## Use instead
    ```python
    import torch


    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.reshape(2, -1)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.reshape(-1)
    ```

    ## Fix safety
    Safe for `view`: `reshape` gives the same view if possible, and a copy where `view` raises. If compiled code gets the
    view, or an assertion asks for its layout, `view(...)` becomes `contiguous().view(...)`. Unsafe for `data_ptr`, and if
    `backward` writes to tensors that may be the gradient: `grad_output = grad_output.contiguous()` is inserted before
    it, because `grad_output.contiguous().data_ptr()` would point to memory that is already freed. There is no fix for
    these two if `set_materialize_grads` is called: the gradient may be `None`.

    ## Known limits
    Off by default: compiled code may handle strides. Reported by default is an extension that gets `x.contiguous()` of
    another tensor, in `forward` or `backward`: it takes layouts for granted, or checks them. Not if `backward` makes some
    gradient contiguous for it, nor under `try`, nor for a loss or a sum, which may be a single number. A `view` counts
    only if the code shows that the gradient has dimensions that it merges: one that keeps or splits them works with any
    strides. Also reported by default are
    an assertion without a message, a function that raises and `dist.send` with the gradient of an output that is created like an input, with its sizes, or with a size above 1,
    as they fail after `y.sum()`, and such a function if `backward` reads sizes of the gradient; not behind a flag, under `try`, or with `memory_format`. A `backward` under
    a decorator of the project, which may make the gradient contiguous, is not checked. Extensions are known by the names
    of their modules (`_C`, `_ext`, `..._cuda`), because the file loads them with `torch.utils.cpp_extension.load` or by
    such a name, `load_ext("_ext", …)`, or because the function, in a top-level module that the project does not have, is called `backward`, or similar, or gets `x.contiguous()` in that file.

    ## References
    - [torch.Tensor.view](https://pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    """

    code = "CTX502"
    name = "non-contiguous-grad-output"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    default_in_view = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return subject.backward is not None and any(map(subject.backward.facts.of, (LayoutAsked, MemoryRead)))

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None or fn.backward.inherited:
            return
        uses = list(layout_uses(fn.backward, fn.outputs, partial(dimensions_of_output, fn)))
        silent = {use.name for use in uses if use.silent}
        for use in uses:
            if use.silent or ((use.compiled or use.by) and use.name in silent):
                continue  # of CTX410
            alone = gets_copies_of_others(fn, use)
            message = assumed_contiguous(use, alone=alone)
            if use.how == ASSERTED:
                by = f"`{use.by}`" if use.by else f"`{fn.backward.name}` of `{fn.name}`"
                asserts = "has it asserted" if len(use.through) > 1 else "asserts"
                several = len(use.names) > 1 or use.name.startswith("*")
                after = f" after `{use.reshaped}`" * bool(use.reshaped)
                gradients = f"gradients {quoted(use.names)} are" if several else f"gradient `{use.name}` is"
                fact = f"{by} {asserts} that the incoming {gradients} contiguous{after}"
                effect = "it raises AssertionError for transposed or expanded ones, such as that of a sum"
                if use.reader:
                    fact = f"{by} checks that the incoming {gradients} contiguous{after}"
                    effect = effect.replace("AssertionError", use.reader)
                if use.reshaped:
                    effect = f"it raises {use.reader or 'AssertionError'} for that of a sum, which stays expanded"
                remedy = f"Call `.contiguous()` {'on each ' * several}first."
                message = fitting(
                    f"{fact}; {effect}. {remedy}",
                    f"{fact}; {effect.partition(',')[0]}. {remedy}",
                )
            fix = allow_any_layout(fn, use)
            yield Finding(
                fn.span(use.node), message, related=way_to(fn, use), fix=fix, in_view=alone or _certainly_fails(fn, use)
            )


def _certainly_fails(fn: FunctionClass, use: LayoutUse) -> bool:
    """Whether an assertion without a message of its own, or what sends, fails for the gradient of a sum of that output.

    Unless ``try`` handles the error.
    """
    positions = [each.position for each in (use, *use.also) if each.position is not None]
    if use.how not in (ASSERTED, SENT) or not positions or fn.backward is None:
        return False
    asserting = fn.backward.around(use.node, cst.Assert)
    if isinstance(asserting, cst.Assert) and asserting.msg is not None:
        return False
    if any(isinstance(each, (cst.Try, cst.TryStar)) and each.handlers for each in fn.backward.above(use.node)):
        return False
    asked = [each for each in fn.backward.facts.of(LayoutAsked) if each.node is use.node]
    reads = [each for each in fn.backward.facts.of(MemoryRead) if each.value_node is use.node]
    asserted = list(_asserted_with(asserting.test)) if isinstance(asserting, cst.Assert) else []
    guards = [guard for each in (*asked, *reads) for guard in each.guards if guard.test not in asserted]
    return all(map(_is_usual, guards)) and any(
        has_several_elements(fn, each) or (bool(use.by) and dimensions_of_gradient(fn, each, use.name) > 0)
        for each in positions
    )


def _asserted_with(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The parts of ``assert x.is_cuda and x.is_contiguous()``: if one of them is false, the assertion fails as well."""
    yield test
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield test.expression
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from _asserted_with(test.left)
        yield from _asserted_with(test.right)


def _is_usual(guard: Guard) -> bool:
    """Whether a test usually has this outcome: an input needs its gradient, or a gradient is not None."""
    asks = guard.asks
    return asks is not None and asks.answer is (asks.question is not Question.IS_NONE)
