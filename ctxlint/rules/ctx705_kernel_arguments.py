"""CTX705: a kernel of Triton that is launched with other arguments than it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MisfitLaunch
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import counted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import LaunchMisfit


class KernelArguments(Rule[FunctionClass]):
    """
    ## What it does
    Reports launches of Triton kernels, `kernel[grid](...)`, that pass too many arguments, omit a parameter without a
    default, or pass one by position and by keyword. Launches in functions that the Function calls count too.

    ## Why is this bad?
    The launch binds its arguments to the parameters of the kernel as Python does for a call: `TypeError: dynamic_func()
    missing 1 required positional argument: 'BLOCK'`.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            double[(triton.cdiv(x.numel(), 128),)](x, y, BLOCK=128)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: only the author knows which argument is missing.

    ## Known limits
    Not reported: unknown keywords, which may be options of a backend; missing parameters of a kernel under `autotune`
    or `heuristics`, which pass some; launches with `*args` or `**kwargs` that may hold the rest; launches under `try`;
    kernels that a name is bound to later, or that the project decorates itself.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX705"
    name = "kernel-arguments"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            when = "`apply`" if method in fn.context_methods else "backward"
            seen = set()
            for launch in method.facts.of(MisfitLaunch):
                key = (launch.misfit, None if launch.by else launch.node)
                if launch.misfit is None or launch.is_in_try or key in seen:
                    continue
                seen.add(key)
                by = f"`{launch.by}`" if launch.by else f"`{method.name}` of `{fn.name}`"
                yield Finding(
                    fn.span(launch.node),
                    f"{by} launches `{launch.misfit.kernel}` {_problem(launch.misfit, when)}.",
                    related=way_to(fn, launch),
                )


def _problem(misfit: LaunchMisfit, when: str) -> str:
    """What is wrong, the consequence, and what to write."""
    raises = f"Triton raises TypeError at {when}."
    if misfit.surplus:
        passed = counted(misfit.takes + misfit.surplus, "argument")
        if not misfit.takes:
            return f"with {passed}, but it has no parameters; {raises} Add them to the kernel"
        takes = counted(misfit.takes, "parameter")
        return f"with {passed} by position, but it has {takes}; {raises} Pass one argument for each parameter"
    if misfit.missing:
        few = len(misfit.missing) <= _MOST_NAMES
        missing = quoted(misfit.missing, "and") if few else f"{len(misfit.missing)} of its parameters"
        mistaken = [each for each in misfit.unknown if each.isupper()]  # options are in lower case
        if len(mistaken) == len(misfit.missing) == 1:
            return f"without {missing}; {raises} Write {missing} for `{mistaken[0]}`"
        return f"without {missing}; {raises} Pass {'it' if len(misfit.missing) == 1 else 'them'} too"
    twice = misfit.twice
    pronoun = "it" if len(twice) == 1 else "them"
    return f"with {quoted(twice, 'and')} by position and by keyword; {raises} Pass {pronoun} once"


_MOST_NAMES = 4
"""The maximum number of parameters to list."""
