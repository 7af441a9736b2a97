"""CTX709: a kernel of Triton that adds to, or transforms, memory which the trials of ``autotune`` leave as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import TrialEffectRun
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import innermost
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import TrialEffect


class AccumulatingTrials(Rule[FunctionClass]):
    """
    ## What it does
    Reports launches of Triton kernels under `triton.autotune` that add to what one of their pointers points to, by
    `tl.atomic_add` or by a load, a sum and a store, if `autotune` neither sets it to zero nor restores it. Also those of
    kernels that store a function of what they load in its place, as `tl.exp` of it, through one pointer or through two
    that get the same tensor. Launches in functions that the Function calls count too.

    ## Why is this bad?
    For each new value of its `key`, `autotune` runs the kernel many times with the same arguments to measure each
    configuration, and then once more. All these runs add to the same memory: the first gradient of each shape is silently a
    multiple of the right one, and the next ones are right.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
    @triton.jit
    def sum_rows(g_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + tl.program_id(0) * n + at, mask=at < n)
        tl.atomic_add(out_ptr + at, g, mask=at < n)


    class AddBias(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bias):
            return x + bias

        @staticmethod
        def backward(ctx, grad_output):
            grad_output = grad_output.contiguous()
            rows, n = grad_output.shape
            grad_bias = grad_output.new_zeros(n)
            sum_rows[lambda meta: (rows, triton.cdiv(n, meta["BLOCK"]))](grad_output, grad_bias, n)
            return grad_output, grad_bias
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.autotune(
        configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"], restore_value=["out_ptr"]
    )
    @triton.jit
    def sum_rows(g_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + tl.program_id(0) * n + at, mask=at < n)
        tl.atomic_add(out_ptr + at, g, mask=at < n)


    class AddBias(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bias):
            return x + bias

        @staticmethod
        def backward(ctx, grad_output):
            grad_output = grad_output.contiguous()
            rows, n = grad_output.shape
            grad_bias = grad_output.new_zeros(n)
            sum_rows[lambda meta: (rows, triton.cdiv(n, meta["BLOCK"]))](grad_output, grad_bias, n)
            return grad_output, grad_bias
    ```

    Name the other memory that it writes to as well, if the sizes of the blocks decide how much of that a trial fills. If the memory certainly holds zeros before each launch, `reset_to_zero=["out_ptr"]` does the same without a copy.

    ## Fix safety
    There is no fix: the kernel may be in another file.

    ## Known limits
    Reported only if `autotune` certainly has two configurations or more: a list, or a comprehension over lists, of
    `Config(...)` without `pre_hook`, perhaps returned by a function that does nothing else; not with `prune_configs_by` or hooks, which may leave one or clear the memory. Not
    reported if the kernel also writes there in another way, or gives the pointer to another kernel. What it stores in
    the place of what it loads must have an exponential, `tl.sigmoid` or the like of that as a factor or term, or its square,
    and no logarithm or root: a maximum, a selection or a normalization may be the same if it is done again.

    ## References
    - [triton.autotune](https://triton-lang.org/main/python-api/generated/triton.autotune.html)
    """

    code = "CTX709"
    name = "accumulating-trials"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for method in fn.own_protocol_methods:
            for event in method.facts.of(TrialEffectRun):
                found = event.effect
                if found is None or (found.callee, found.parameters) in seen:
                    continue
                seen.add((found.callee, found.parameters))
                by = innermost(fn, method, event, found)
                yield Finding(fn.span(event.node), fitting(*_messages(by, found)), related=way_to(fn, event))


def _messages(by: str, found: TrialEffect) -> Iterator[str]:
    """The defect, its consequence and the remedy, from the most to the least explicit wording."""
    names = ", ".join(f'"{each}"' for each in found.parameters)
    does, again = ("updates", "continues from the last") if found.transforms else ("adds to", "adds as well")
    fact = f"{by} launches `{found.callee}`, which {does} {quoted(found.parameters)}"
    consequence = f"each trial of `autotune` {again}, and the first result for each key is silently wrong"
    explicit = (
        f"Add {quoted(found.parameters)} to `restore_value`"
        if found.others_restored
        else f"Write `restore_value=[{names}]` there"
    )
    for remedy in (explicit, "Use `restore_value` there"):
        yield f"{fact}; {consequence}. {remedy}."
