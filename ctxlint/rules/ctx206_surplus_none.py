"""CTX206: more gradients than inputs, the surplus all None."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.fixes.missing_none import drop_surplus
from ctxlint.model.analyses.helper_places import helpers_behind
from ctxlint.model.analyses.misplaced_gradients import misplaced_gradients
from ctxlint.model.analyses.tensor_containers import container_inputs_with_gradient
from ctxlint.model.function import FunctionClass
from ctxlint.model.index.scopes import dotted_name
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.wording import all_inputs, counted
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class SurplusNone(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns more gradients than `forward` has inputs, if all surplus gradients are `None`.

    ## Why is this bad?
    This is legal: torch drops trailing `None`s, and code shared between Functions may rely on it. But the tuple no
    longer shows which gradient belongs to which input, and an input that is added later gets `None` without anyone
    deciding so. A surplus that is not `None` raises (too-many-gradients, CTX202).

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2, None, None
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Safe: torch computes the same gradients with and without them. Unsafe if a comment mentions them or would be removed
    with them.

    ## Known limits
    Off by default, because it is legal and used on purpose. Not reported if a subclass, or a direct call, uses the result,
    nor if it comes from another function that the file calls more than once.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX206"
    name = "surplus-none"
    subject = FunctionClass
    holds_unreached = True
    category = Category.PEDANTIC
    default = False
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.count_judgeable or fn.forward is None or fn.variadic_inputs is not None:
            return
        if fn.backward is None or fn.backward.inherited or fn.shares_backward:
            return
        misplaced = [each.returned for each in misplaced_gradients(fn)]
        passed = {call.positional for call in fn.calls if call.how == "apply" and not call.starred}
        for returned in fn.gradients:
            if returned in misplaced:
                continue  # another one is surplus, which is CTX235
            if len(returned.slots) in passed:
                continue  # a call passes so many: `forward` lacks a parameter, which is CTX701
            if any(_serves_others(fn, each.called) for each in helpers_behind(fn, (returned,))):
                continue
            surplus = returned.slots[len(fn.inputs) :] if returned.count is not None else ()
            if surplus and all(is_none(slot.value) is Tri.YES for slot in surplus):
                if container_inputs_with_gradient(fn):
                    return  # the surplus is for the tensors inside, which is CTX216
                yield Finding(
                    fn.span(returned.node),
                    f"`{fn.backward.name}` of `{fn.name}` returns {counted(len(returned.slots), 'gradient')} but `forward` takes "
                    f"{all_inputs(fn)}; torch drops the surplus `None`. Remove it.",
                    fix=drop_surplus(fn, returned, len(surplus)),
                    rests_on=(returned,),
                )


def _serves_others(fn: FunctionClass, called: str) -> bool:
    """Whether the file calls a helper more than once: other Functions may have more inputs."""
    calls = (each for each in nodes_in(fn.tree) if isinstance(each, ast.Call)) if fn.tree is not None else ()
    return sum(dotted_name(each.func) == called for each in calls) > 1
