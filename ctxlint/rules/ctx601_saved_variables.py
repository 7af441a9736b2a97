"""CTX601: ``ctx.saved_variables``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.legacy_names import rename_attribute
from ctxlint.model.analyses.certain_raises import raises_before
from ctxlint.model.function import Escape, FunctionClass, SavedRead
from ctxlint.model.interpreter.events import ContextLent
from ctxlint.model.interpreter.signatures import is_context_name
from ctxlint.model.syntax import children, dotted
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method


class SavedVariables(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.saved_variables`.

    ## Why is this bad?
    It is the name of `ctx.saved_tensors` from before torch 0.4, when variables and tensors were different types. Every
    backward warns (`DeprecationWarning: 'saved_variables' is deprecated; use 'saved_tensors'`, up to torch 2.15), and
    `torch.compile(fullgraph=True)` raises.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_variables
            return grad_output * 2 * x
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x
    ```

    ## Fix safety
    Safe: the two names give the same tensors. A name in a string, as in `getattr`, is not changed.

    ## Known limits
    Functions outside the class that get the ctx are not checked.

    ## References
    - [FunctionCtx](https://pytorch.org/docs/stable/autograd.html#context-method-mixins)
    """

    code = "CTX601"
    name = "saved-variables"
    subject = FunctionClass
    says_if_it_runs = True
    category = Category.MODERNIZE
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.methods.values():
            if method.inherited:
                continue
            for node in _reads(method):
                ctx = dotted(node.value) if isinstance(node, cst.Attribute) else method.ctx_name
                runs = " if this line runs" if raises_before(fn, method, node) else ""
                yield Finding(
                    fn.span(node),
                    f"`{ctx}.saved_variables` is deprecated; torch warns at backward{runs}, and "
                    f"`torch.compile(fullgraph=True)` raises. Use `{ctx}.saved_tensors`.",
                    fix=rename_attribute(fn, method, node, "saved_tensors"),
                )


def _reads(method: Method) -> Iterator[cst.CSTNode]:
    """Where the method, or a function nested in it, reads the attribute."""
    for read in method.facts.of(SavedRead):
        if read.via == "saved_variables" and not read.by:
            yield read.node
    for param in method.params:
        if method.name not in PROTOCOL and is_context_name(param.name):
            yield from _attributes(method.node.body, param.name)
    captured = (each.node for each in method.facts.of(Escape) if each.how == "captured")
    lent = (each.node for each in method.facts.of(ContextLent) if isinstance(each.node, cst.FunctionDef))
    for node in (*captured, *lent):
        if method.ctx is not None:
            yield from _attributes(node, method.ctx.name)


def _attributes(node: cst.CSTNode, ctx: str) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.Attribute) and dotted(node) == f"{ctx}.saved_variables":
        yield node
    for child in children(node):
        yield from _attributes(child, ctx)
