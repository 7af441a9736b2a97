"""CTX409: the result of ``apply`` is dropped, though forward only returns an input."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.analyses.attached_gradients import passed_inputs
from ctxlint.model.function import SourceFile
from ctxlint.model.index.scopes import dotted_name
from ctxlint.rules.base import Finding, Rule
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ApplyCall, FunctionClass
    from ctxlint.model.interpreter.values import Parameter


class DiscardedOutput(Rule[SourceFile]):
    """
    ## What it does
    Reports a statement that only calls `apply` of a Function whose `forward` returns its inputs and does nothing else: one that adds the
    gradient of an auxiliary loss, reverses or scales gradients.

    ## Why is this bad?
    `apply` gives the input a new node in the graph, as a new tensor. The tensor that was passed does not have it. If nothing takes the result,
    nothing is computed from it, and autograd never runs `backward`: the auxiliary loss silently has no effect.

    ## Example
    ```python
    import torch


    class AddLoss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, loss):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, torch.ones(())


    def gate(scores, loss):
        AddLoss.apply(scores, loss)
        return scores
    ```

    ## Use instead
    ```python
    import torch


    class AddLoss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, loss):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, torch.ones(())


    def gate(scores, loss):
        scores = AddLoss.apply(scores, loss)
        return scores
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only if `forward` certainly returns its inputs, or views of them, and has no effect besides: a Function that writes to a tensor, a class
    or a file may be applied for that. Not reported outside of functions, in tests, where an error is expected, under `torch.no_grad()`,
    or if the function does not go on with what it passes, as if it only measures the call.

    ## References
    - [Function.apply](https://pytorch.org/docs/stable/generated/torch.autograd.Function.apply.html)
    """

    code = "CTX409"
    name = "discarded-output"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.calls:
            fn = file.by_name[call.function]
            if (
                not (call.discarded and call.goes_on)
                or call.expects_error
                or call.under_no_grad
                or not fn.signature_judgeable
            ):
                continue
            if fn.forward is None or fn.backward is None or call.inside.rpartition(".")[2].startswith("test"):
                continue
            inputs = passed_inputs(fn)
            if inputs:
                yield Finding(call.span, _message(file, call, fn, inputs))


def _message(file: SourceFile, call: ApplyCall, fn: FunctionClass, inputs: list[Parameter]) -> str:
    called = call.alias or f"{fn.name}.apply"
    names = [call.names[each.index] if each.index < len(call.names) else "" for each in inputs]
    remedy = f"Write `{', '.join(names)} = {called}(...)`" if all(map(str.isidentifier, names)) else "Use the result"
    module = next((name for name in names if name.startswith("self.") and _is_called(file, call, name)), None)
    if module is not None:
        remedy = f"Pass tensors, unlike `{module}`, and use the result"
    return (
        f"The result of `{called}` is dropped, but autograd runs `{fn.backward.name if fn.backward else 'backward'}` of `{fn.name}` only for "
        f"what is computed from it; so it silently never runs. {remedy}."
    )


def _is_called(file: SourceFile, call: ApplyCall, name: str) -> bool:
    """Whether the class around a call also calls an attribute ``self.name``, as it does a module, not a tensor."""
    around = call.inside.partition(".")[0]
    classes = (each for each in file.tree.body if isinstance(each, ast.ClassDef)) if file.tree is not None else ()
    nodes = (node for each in classes if each.name == around for node in nodes_in(each))
    return any(isinstance(node, ast.Call) and dotted_name(node.func) == name for node in nodes)
