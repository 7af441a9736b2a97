"""CTX113: forward reads ``**kwargs``, which apply never fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import is_read
from ctxlint.model.function import FunctionClass, ParameterKind, Style
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class ForwardKeywords(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` that reads its `**kwargs`, or that has a keyword-only parameter without a default.

    ## Why is this bad?
    Before torch 2.13, `apply` takes no keyword arguments at all; since then, it raises `TypeError: forward() got an
    unexpected keyword argument` for those that do not name a positional parameter. So `**kwargs` is always empty, and
    `kwargs.get(...)` silently returns the default. A required keyword-only parameter gets no value either, so that each
    call raises TypeError; with `setup_context`, conflicting-members (CTX107) reports it.

    ## Example
    ```python
    import torch


    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, **options):
            ctx.save_for_backward(x)
            ctx.exponent = options.get("exponent", 2)
            return x**ctx.exponent

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * ctx.exponent * x ** (ctx.exponent - 1)
    ```

    ## Use instead
    ```python
    import torch


    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, exponent=2):
            ctx.save_for_backward(x)
            ctx.exponent = exponent
            return x**ctx.exponent

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * ctx.exponent * x ** (ctx.exponent - 1), None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if the project subclasses the Function or calls its `forward` directly, because such calls may pass keyword
    arguments, or if all parameters are passed on to one call: `f(*args, **kwargs)`, or, with ctx, `f(ctx, x, n, **kwargs)`
    or `f(ctx, converted, *args, **kwargs)`. Nor if `forward` only raises where there are any.

    ## References
    - [pytorch#182206](https://github.com/pytorch/pytorch/pull/182206): keywords at `apply`
    """

    code = "CTX113"
    name = "forward-keywords"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward = fn.forward
        if forward is None or forward.inherited or not forward.signature_known or not fn.signature_judgeable:
            return
        if fn.has_subclass or "forward" in fn.called_directly:
            return
        others = fn.style is Style.SETUP_CONTEXT and settings.torch.reach(2, 13)  # CTX107
        only = [param for param in forward.params if param.kind is ParameterKind.KEYWORD_ONLY and not others]
        needed = [param for param in only if param.required]
        if needed and (fn.applied or fn.backward is not None):
            names = quoted(each.name for each in needed)
            yield Finding(
                fn.span(needed[0].node.name),
                f"`forward` of `{fn.name}` takes {names} by keyword only, but `apply` passes no such keyword; it raises TypeError. "
                f"Take {them(needed)} by position.",
            )
        for param in forward.params:
            if (
                param.kind is ParameterKind.KEYWORDS
                and is_read(forward, param)
                and not _expects_none(forward, param.name)
            ):
                yield Finding(
                    fn.span(param.node.name),
                    f"`forward` of `{fn.name}` reads `**{param.name}`, which is always empty; torch raises TypeError for "
                    f"keywords at `apply`. {_remedy(fn, param.name)}",
                )


def _remedy(fn: FunctionClass, name: str) -> str:
    """What to do about ``**kwargs``: it can go if no call passes a keyword."""
    calls = [call for call in fn.calls if call.applies]
    if calls and not any(call.keywords or call.double_starred for call in calls):
        return f"Drop `**{name}`, as no call in view passes a keyword."
    if fn.backward is None:
        return "Take a dict or named parameters, and pass them by position."
    return "Take a dict or named parameters, pass them by position, and return `None` for each."


def _expects_none(forward: Method, name: str) -> bool:
    """Whether nothing is expected of the keywords: they go on as they come, or forward refuses them."""
    return _passes_on(forward, name) or all(
        _is_refused(forward, node) for node in forward.nodes_of(cst.Name) if node.value == name
    )


def _is_refused(forward: Method, node: cst.CSTNode) -> bool:
    """Whether a read only decides about an error, or is for its text."""
    for around in forward.above(node):
        if isinstance(around, (cst.Raise, cst.Assert, cst.Param)):
            return True
        if isinstance(around, (cst.If, cst.For)):
            return around.orelse is None and _raises(around.body)
    return False


def _raises(body: cst.BaseSuite) -> bool:
    """Whether a body ends with a ``raise``."""
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Raise)


def _passes_on(forward: Method, name: str) -> bool:
    """Whether all arguments go on as they come, ``f(ctx, x, **kwargs)``: then nothing is expected of the keywords."""
    uses = sum(node.value == name for node in forward.nodes_of(cst.Name))
    others = {each.name for each in forward.params if each.name != name}
    rest = {each.name for each in forward.params if each.kind is ParameterKind.VARIADIC}
    ctx = forward.ctx.name if forward.ctx is not None and rest else ""
    others.discard(ctx)  # ``f(*args, **kwargs)`` wraps any function
    passed = 0
    for node in forward.nodes_of(cst.Call):
        names = {_name(each) for each in node.args if each.star != "**"}
        if others <= names or (ctx and {ctx, *rest} <= names):
            passed += sum(each.star == "**" and _name(each) == name for each in node.args)
    return bool(others) and uses == passed


def _name(argument: cst.Arg) -> str:
    """The name that an argument is; empty for any other expression."""
    return argument.value.value if isinstance(argument.value, cst.Name) else ""
