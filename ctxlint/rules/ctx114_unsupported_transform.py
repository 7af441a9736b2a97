"""CTX114: a call of a Function is under a transform that the Function does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.splitting import split_forward
from ctxlint.model.function import FunctionClass, Style
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.wording import to_setup_context
from ctxlint.torch_api.transforms import NEEDS_JVP, NEEDS_SETUP_CONTEXT, NEEDS_VMAP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.index.apply_calls import ApplyCall, Transform


class UnsupportedTransform(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function that a transform of `torch.func`, or forward-mode AD, certainly runs, but that lacks what this
    needs: `setup_context` for all of them, `vmap` or `generate_vmap_rule = True` for `vmap`, `jacfwd` and `hessian`,
    and `jvp` for `jvp`, `jacfwd`, `hessian`, `linearize` and `torch.autograd.forward_ad`.

    ## Why is this bad?
    `apply` and `backward()` work without these, but the transforms raise:

    - `RuntimeError: In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it
      must override the setup_context staticmethod.`
    - `RuntimeError: You tried to vmap over F, but it does not have vmap support. Please override and implement the vmap
      staticmethod or set generate_vmap_rule=True.`
    - `NotImplementedError: You must implement the jvp function for custom autograd.Function to use it with forward mode
      AD.`

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result


    def total(x):
        return Exp.apply(x).sum()


    gradients = torch.func.vmap(torch.func.grad(total))
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result


    def total(x):
        return Exp.apply(x).sum()


    gradients = torch.func.vmap(torch.func.grad(total))
    ```

    ## Fix safety
    Unsafe: the code that uses the ctx moves to `setup_context`, as for CTX110. There is no fix for a missing `vmap` or
    `jvp`: `generate_vmap_rule = True` is right only if all methods use nothing but operations of torch.

    ## Known limits
    The function that is transformed is followed through the project: functions, lambdas, methods, and modules that are
    created in view, also in `torch.nn.Sequential`. Calls that a condition, a loop or a `try` may skip do not count, nor
    do those under `pytest.raises`. A missing `jvp` is reported if an input is the first parameter of the transformed
    function, or computed from it by operators and usual methods.

    ## References
    - [Extending torch.func with autograd.Function](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX114"
    name = "unsupported-transform"
    subject = FunctionClass
    holds_unreached = True
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.forward is None or not settings.torch.reach(2, 0):
            return
        if any(base.endswith("_SingleLevelFunction") for base in fn.base_names):
            return  # its `apply` knows no transforms
        run = [(call, each) for call in fn.calls if not call.expects_error for each in call.transforms]
        for call, transform in sorted(run, key=lambda pair: (pair[0].path, pair[1].start)):
            found = _missing(fn, call, transform)
            if found is not None:
                fixable = fn.style is Style.CTX_IN_FORWARD and not settings.torch.fall_below(2, 2)
                yield Finding(fn.span(fn.node.name), found, split_forward(fn) if fixable else None)
                return


def _missing(fn: FunctionClass, call: ApplyCall, transform: Transform) -> str | None:
    """What the Function lacks for a transform of a call, and what to write."""
    place = f"{transform.line} of `{call.path}`" if call.path else transform.line
    run = f"`{transform.written}` ({place}) transforms `{fn.name}`"
    maps = transform.name in NEEDS_VMAP and "vmap" not in fn.methods and "generate_vmap_rule" not in fn.class_attributes
    if fn.style is Style.CTX_IN_FORWARD and transform.name in NEEDS_SETUP_CONTEXT:
        if "vmap" in fn.methods or "generate_vmap_rule" in fn.class_attributes:
            return None  # CTX107
        remedy = to_setup_context(fn)
        if maps:
            first = "Move its use of the ctx to" if remedy.startswith("Move") else "Remove its ctx, define"
            remedy = f"{first} `setup_context`, and set `generate_vmap_rule = True` or define `vmap`"
        return f"{run}, which has no `setup_context`; torch raises RuntimeError. {remedy}."
    if maps:
        return (
            f"{run}, which has no `vmap`; torch raises RuntimeError. Set `generate_vmap_rule = True` if its methods "
            f"use only operations of torch, else define `vmap`."
        )
    if transform.name in NEEDS_JVP and transform.tangent and "jvp" not in fn.methods:
        if transform.name == "make_dual":
            run = f"`{fn.name}` gets a tangent from `{transform.written}` ({place})"
            return f"{run}, and has no `jvp`; torch raises NotImplementedError. Define `jvp`."
        return f"{run}, which has no `jvp`; torch raises NotImplementedError. Define `jvp`."
    return None
