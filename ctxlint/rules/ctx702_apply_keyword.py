"""CTX702: keyword arguments to ``apply`` on a torch release that does not accept them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.keyword_arguments import pass_by_position
from ctxlint.model.analyses.apply_arity import hides_parameters, never_by_position
from ctxlint.model.function import ParameterKind, SourceFile, Style
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ApplyCall, Method


class ApplyKeyword(Rule[SourceFile]):
    """
    ## What it does
    Reports keyword arguments in a call of `apply`, unless `target-torch` is 2.13 or newer and accepts them.

    ## Why is this bad?
    Up to torch 2.12, every such call raises `TypeError: apply() takes no keyword arguments`. Since 2.13, they are
    accepted for parameters that can be passed by position. Keyword-only parameters and `**kwargs` still raise
    `TypeError: forward() got an unexpected keyword argument 'factor'`. So does every parameter if a decorator such as
    `custom_fwd` or `torch.no_grad()` wraps `forward(ctx, ...)`: torch inspects the code of the wrapper.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2.0):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None


    def scale(x):
        return Scale.apply(x, factor=3.0)
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2.0):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None


    def scale(x):
        return Scale.apply(x, 3.0)
    ```

    ## Fix safety
    Safe: the keywords are removed, and the defaults of omitted inputs are inserted. Arguments are reordered only if
    evaluating them has no side effects and there is no comment among them. There is no fix together with `*args` or
    `**kwargs`, for keyword-only parameters, or if a decorator may change the parameters of `forward`.

    ## Known limits
    `**kwargs` in a call may be empty and is not reported. Keywords that `forward` does not take are reported by
    apply-arity (CTX701). A Function with its own `apply` is not checked.

    ## References
    - [pytorch#16940](https://github.com/pytorch/pytorch/issues/16940)
    """

    code = "CTX702"
    name = "apply-keyword"
    subject = SourceFile
    fix = FixAvailability.SOMETIMES

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.calls:
            fn = file.by_name[call.function]
            if not call.applies or not call.keywords or not fn.signature_judgeable:
                continue
            if call.expects_error:
                continue
            names = _accepted(call, fn.forward)
            never = never_by_position(names, fn.forward)
            wrapped = fn.style is Style.CTX_IN_FORWARD and fn.forward is not None and hides_parameters(fn.forward)
            always = bool(wrapped or never)
            names = never or names
            if not names or not (always or settings.torch.fall_below(2, 13)):
                continue
            them = "it" if len(names) == 1 else "them"
            positional = "a positional parameter" if len(names) == 1 else "positional parameters"
            place = f"Make {them} {positional} of `forward`, and pass" if never else "Pass"
            yield Finding(
                call.span,
                f"`{fn.name}.apply` gets {quoted(names)} by keyword; torch raises TypeError{'' if always else ' before 2.13'}. "
                f"{place} {them} by position.",
                fix=pass_by_position(file, fn, call),
            )


def _accepted(call: ApplyCall, forward: Method | None) -> list[str]:
    """The keywords that ``forward`` takes and does not get by position: CTX701 reports the others."""
    if forward is None or not forward.signature_known or forward.lacks_ctx or call.starred or call.double_starred:
        return list(call.keywords)
    taken = {param.name for param in forward.positional[: call.positional]}
    known = {param.name for param in forward.own_params}
    takes_any = any(param.kind is ParameterKind.KEYWORDS for param in forward.own_params)
    return [name for name in call.keywords if name not in taken and (takes_any or name in known)]
