"""CTX246: backward of a gather keeps its own part of the gradient, without a sum over the processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.unsummed_gathers import factor_of_processes, late_reductions, unsummed_gathers
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of, last_name
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnsummedGather(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose `forward` gathers a tensor from all processes with `torch.distributed.all_gather`, also in
    a function of the project, and whose `backward` returns only the part of the gradient that belongs to its own process, as it arrives there,
    or as the sum of the parts that all processes have taken so.

    ## Why is this bad?
    Each process computes a loss from the tensors of all, so that a tensor has a gradient from each of these losses.
    `backward` gets the one from its own loss. If all compute the same loss, that is the whole gradient. But if each computes
    another one, such as a contrastive loss of its own samples against those of all, the gradients from the losses of the
    others are silently lost. `torch.distributed.nn.functional.all_gather` sums them.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            gathered = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(gathered, x.contiguous())
            return tuple(gathered)

        @staticmethod
        def backward(ctx, *grads):
            return grads[dist.get_rank()]
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            gathered = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(gathered, x.contiguous())
            return tuple(gathered)

        @staticmethod
        def backward(ctx, *grads):
            total = torch.stack(grads)
            dist.all_reduce(total)
            return total[dist.get_rank()]
    ```

    ## Fix safety
    There is no fix: only the author knows what the processes compute.

    ## Known limits
    Off by default: tensor parallelism, and losses that each process computes as a whole, want it like this. A `backward`
    that calls anything but functions that cut, copy or measure tensors is not checked. Of other libraries, only `all_gather` of torch_xla is known.

    ## References
    - [torch.distributed.all_gather](https://pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather)
    """

    code = "CTX246"
    name = "unsummed-gather"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None:
            return
        incoming = quoted([each.name for each in backward.own_params][:1])
        for node, gather in [*unsummed_gathers(fn, backward)][:1]:
            factor = factor_of_processes(fn, backward, node)
            remedy = f"Call `all_reduce` on a copy of all of {incoming} first."
            if factor is not None:
                remedy = f"Call `all_reduce` on a copy of {incoming}, not `* {code_of(factor)}`."
            yield Finding(
                fn.span(node),
                f"`backward` of `{fn.name}` returns its own part of {incoming}; unless all processes compute the same loss, "
                f"the gradients from the losses of the others are silently lost. {remedy}",
                related=at(fn, [gather.call], f"`{last_name(gather.call.func)}` here"),
            )
        for call, gather in [*late_reductions(fn, backward)][:1]:
            yield Finding(
                fn.span(call),
                f"`backward` of `{fn.name}` calls `all_reduce` on its own part of {incoming}, where each process has another "
                f"one; the result is silently the sum of different parts. Call `all_reduce` on a copy of all of {incoming} "
                f"first.",
                related=at(fn, [gather.call], f"`{last_name(gather.call.func)}` here"),
            )
