"""CTX107: members of a Function that exclude or require each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.misnamed import Misnamed, misnamed
from ctxlint.model.function import FunctionClass, ParameterKind, Style
from ctxlint.model.interpreter.values import Constant
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted, them, to_setup_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ConflictingMembers(Rule[FunctionClass]):
    """
    ## What it does
    Reports members of a Function that exclude each other: `backward` and `vjp`; `vmap` and `generate_vmap_rule = True`;
    either of these two without `setup_context`; a keyword-only parameter of `forward` together with `setup_context`;
    `boxed_grads_call = True` and a `backward` with several gradient parameters; two methods called `forward`, of which one
    has to be the missing `backward`.

    ## Why is this bad?
    The last method of a name replaces the others: torch calls a `forward` that is meant to be `backward`, and there is no
    `backward`. Torch checks the others late, when `apply`, backward or a transform runs, and always raises:

    - `Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of
      them.`
    - `You tried to vmap over F, but it has both generate_vmap_rule=True and an overridden vmap staticmethod.`
    - `In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override
      the setup_context staticmethod.`
    - `forward() got an unexpected keyword argument 'n'`, at every `apply` since torch 2.13, even if `n` is not passed
    - With `boxed_grads_call` (torch 2.13), `backward` gets one list of all gradients, and a second parameter gets no
      value.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: only the author knows which of the two is intended.

    ## Known limits
    Not reported if a base class cannot be resolved, or if no release in `target-torch` is affected.

    ## References
    - [Extending torch.func with autograd.Function](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX107"
    name = "conflicting-members"
    subject = FunctionClass
    holds_unreached = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable:
            return
        wrong = misnamed(fn)
        if wrong is not None:
            yield _twice(fn, wrong)
        own = {method.name: method for method in fn.own_protocol_methods}
        if "backward" in fn.methods and "vjp" in fn.methods and ("backward" in own or "vjp" in own):
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` has both `backward` and `vjp`; torch raises RuntimeError at backward. Keep one of them.",
            )
        generates = fn.class_attributes.get("generate_vmap_rule") == Constant(True, "bool")
        transforms = settings.torch.reach(2, 0)
        if transforms and generates and "vmap" in fn.methods:
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` has both `vmap` and `generate_vmap_rule = True`; torch raises RuntimeError under "
                f"`torch.vmap`. Keep one of them.",
            )
        if transforms and fn.style is Style.CTX_IN_FORWARD and (generates or "vmap" in own) and fn.forward is not None:
            member = "generate_vmap_rule = True" if generates else "vmap"
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` has `{member}` but no `setup_context`; torch raises RuntimeError under every transform "
                f"of `torch.func`. {to_setup_context(fn)}.",
            )
        yield from self._keyword_only(fn, settings)
        yield from self._boxed(fn, settings)

    def _keyword_only(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward = fn.forward
        if fn.style is not Style.SETUP_CONTEXT or forward is None or forward.inherited:
            return
        names = [param.name for param in forward.params if param.kind is ParameterKind.KEYWORD_ONLY]
        since = " since 2.13" if settings.torch.fall_below(2, 13) else ""
        if names and forward.signature_known and settings.torch.reach(2, 13):
            yield Finding(
                fn.span(forward.node.name),
                f"`forward` of `{fn.name}` takes {quoted(names)} by keyword only although `setup_context` is defined; torch raises "
                f"TypeError at `apply`{since}. Take {them(names)} by position.",
            )

    def _boxed(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.methods.get("backward")
        if fn.class_attributes.get("boxed_grads_call") != Constant(True, "bool") or backward is None:
            return
        required = [param for param in backward.positional if param.required]
        since = " since 2.13" if settings.torch.fall_below(2, 13) else ""
        if len(required) > 1 and backward.signature_known and settings.torch.reach(2, 13):
            yield Finding(
                fn.span(backward.node.name if not backward.inherited else fn.node.name),
                f"`backward` of `{fn.name}` takes {len(required)} gradients with `boxed_grads_call = True`; torch passes "
                f"one list{since} and raises TypeError at backward. Take one parameter, `grads`.",
            )


def _twice(fn: FunctionClass, wrong: Misnamed) -> Finding:
    """A finding for the one of two methods of a name that has the wrong name."""
    name = wrong.node.name.value
    called = "this one replaces the first, so torch calls it at `apply`"
    lost = called if wrong.replaces else "the second replaces this one"
    return Finding(
        fn.span(wrong.node.name),
        f"`{fn.name}` defines `{name}` twice, and no `{wrong.meant}`; {lost}. Rename this one to `{wrong.meant}`.",
    )
