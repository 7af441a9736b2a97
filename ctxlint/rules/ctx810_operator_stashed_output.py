"""CTX810: setup_context of a custom operator stores an output in an attribute of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.outputs import are_kept_together, stored_operator_outputs
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorStashedOutput(Rule[SourceFile]):
    """
    ## What it does
    Reports `ctx.a = output` in the `setup_context` of a custom operator, if the output is a floating-point tensor.

    ## Why is this bad?
    The output references its node in the graph, which references ctx, and ctx now references the output. Reference
    counting never frees such a cycle: output and graph stay in memory until Python's garbage collector runs, which does
    not look at how much GPU memory is in use. With torch 2.13, two kept outputs of one call are never freed, not even by
    the garbage collector. `save_for_backward` stores outputs without a cycle.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::exp", mutates_args=())
    def exp(x: torch.Tensor) -> torch.Tensor:
        return x.exp()


    def setup_context(ctx, inputs, output):
        ctx.result = output


    def backward(ctx, grad):
        return grad * ctx.result


    exp.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::exp", mutates_args=())
    def exp(x: torch.Tensor) -> torch.Tensor:
        return x.exp()


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


    exp.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Checked only for outputs that the operator's own Python code certainly computes as floating-point tensors. A detached
    output references nothing, and is not reported.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX810"
    name = "operator-stashed-output"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_setups if settings.torch.reach(2, 4) else ():
            setup, stored = operator.setup_context, list(stored_operator_outputs(operator))
            several = setup is not None and are_kept_together(stored, setup)
            until = "keeps the graph alive until the garbage collector frees it"
            cycle = (
                "with two outputs, this reference cycle is never freed" if several else f"this reference cycle {until}"
            )
            for write, index in stored:
                which = f"output {index + 1}" if operator.outputs != 1 else "the output"
                ctx = setup.ctx_name if setup is not None else "ctx"
                yield Finding(
                    operator.span(write.node),
                    f"`{ctx}.{write.attribute}` keeps {which} of `{operator.name}`; {cycle}. Use `{ctx}.save_for_backward`.",
                )
