"""CTX602: ``torch.cuda.amp.custom_fwd`` and ``custom_bwd``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.autocast import use_torch_amp
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.torch_api.known_decorators import DEPRECATED_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Decorator, Method


class DeprecatedCustomFwd(Rule[FunctionClass]):
    """
    ## What it does
    Reports methods of a Function that are decorated with `torch.cuda.amp.custom_fwd` or `torch.cuda.amp.custom_bwd`,
    under any imported name.

    ## Why is this bad?
    Both are deprecated since torch 2.4, which has `torch.amp.custom_fwd(device_type=...)` for all device types. The old
    decorators warn when the class is defined, that is, when the module is imported: ``FutureWarning:
    `torch.cuda.amp.custom_fwd(args...)` is deprecated. Please use `torch.amp.custom_fwd(args..., device_type='cuda')`
    instead.``

    ## Example
    ```python
    import torch
    from torch.cuda.amp import custom_bwd, custom_fwd


    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch
    from torch.amp import custom_bwd, custom_fwd


    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cuda")
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Safe if `target-torch` is set to 2.4 or newer, or the project requires it: the old functions only call the new ones
    with `device_type="cuda"`. Unsafe if older releases are included, or if no torch release is specified, because older
    releases do not have the new functions. The import changes too, and `from torch.cuda import amp` is removed if
    nothing else uses it. If the old names have other uses, or other files import them from this one, the import stays
    and the decorator becomes `torch.amp.custom_fwd`. There is no fix if the project requires a torch before 2.4, for an
    import under a condition, or for a name that the module itself assigns.

    ## Known limits
    Not reported if `target-torch` is set and ends before 2.4, where nothing is deprecated, or for a name that is bound
    in one branch of an `if` or only in an `except` clause, because such code supports both. A class in such a branch is
    skipped too if the `if` tests a version or an attribute. An import that no Function uses is not reported. Not reported if a
    file of the project that a process may load together with the class may replace the names: it sets `torch.cuda.amp`,
    or imports a module that does, such as `torch_npu.contrib.transfer_to_npu` or `torchada`. A script that does so is
    another matter, unless it leads to the class by its imports, or something leads to both.

    ## References
    - [torch.amp.custom_fwd](https://pytorch.org/docs/stable/amp.html#torch.amp.custom_fwd)
    - [pytorch#126531](https://github.com/pytorch/pytorch/pull/126531)
    """

    code = "CTX602"
    name = "deprecated-custom-fwd"
    subject = FunctionClass
    holds_unreached = True
    about_definition = True
    category = Category.MODERNIZE
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        warned = settings.torch.reach(2, 4)
        if fn.is_alternative:
            return
        everywhere = bool(settings.torch.specifiers) and not settings.torch.fall_below(2, 4)  # not by default: a guess
        applicability = Applicability.SAFE if everywhere else Applicability.UNSAFE
        missing = "" if everywhere else ", which older releases do not have"
        warns = "torch warns" if warned else "that and newer releases warn"
        for method in fn.methods.values():
            if method.inherited or method.name in fn.conditional_methods:
                continue
            for decorator in method.decorators:
                if not decorator.certain or decorator.name not in DEPRECATED_DECORATORS:
                    continue
                name = decorator.name.rpartition(".")[2]
                if "device_type" in decorator.keywords:
                    fact = f"`torch.cuda.amp.{name}` takes no `device_type`; torch raises TypeError"
                elif warned or settings.target_torch is None:
                    fact = f"`torch.cuda.amp.{name}` is deprecated since torch 2.4; {warns}"
                else:
                    continue
                meant = _meant(fn, method, decorator, name)
                yield Finding(
                    fn.span(decorator.node),
                    f"{fact} when `{fn.name}` is defined. Use `torch.amp.{meant}({_arguments(decorator)})`{missing}.",
                    fix=use_torch_amp(fn, method, decorator, applicability) if warned and meant == name else None,
                )


def _meant(fn: FunctionClass, method: Method, decorator: Decorator, name: str) -> str:
    """The decorator of the pair that belongs there: ``custom_fwd`` on both methods is a slip (CTX106)."""
    forward = fn.methods.get("forward")
    both = name == "custom_fwd" and method.name == "backward" and not method.decorator("custom_bwd")
    slip = both and not decorator.casts_inputs and forward is not None and forward.decorator("custom_fwd")
    return "custom_bwd" if slip else name


def _arguments(decorator: Decorator) -> str:
    """The arguments of the new decorator: those of the old one, and the device."""
    expression = decorator.node.decorator
    arguments = (
        [code_of(argument.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for argument in expression.args]
        if isinstance(expression, cst.Call)
        else []
    )
    device = [] if "device_type" in decorator.keywords else ['device_type="cuda"']
    return ", ".join([*device, *(each.strip() for each in arguments)])
