"""CTX705: a kernel of Triton that is launched with other arguments than it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MisfitKind
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import fact, misfits, remedy
from ctxlint.rules.related import way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import Misfit


class KernelArguments(Rule[FunctionClass]):
    """
    ## What it does
    Reports launches of Triton kernels that pass too many arguments, omit a parameter without a default, or pass one by
    position and by keyword. Also a tensor for a parameter that the kernel uses as a number without `tl.load`, as the seed of
    `tl.rand`, and a number for one that it loads from or stores to. Launches in functions that the Function calls count too.

    ## Why is this bad?
    The launch binds its arguments to the parameters of the kernel as Python does for a call: `TypeError: dynamic_func()
    missing 1 required positional argument: 'BLOCK'`. Inside the kernel, a tensor is the address of its first element. Triton compiles no
    arithmetic with that but the sum with an offset, and no access to a number.

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
    or `heuristics` whose tables are not written out; launches with `*args` or `**kwargs` that may hold the rest; launches under `try`;
    kernels that a name is bound to later, or that the project decorates itself.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX705"
    name = "kernel-arguments"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for found in misfits(fn, MisfitKind.LAUNCH):
            when = f"{found.when}{found.unless_skipped}"
            yield Finding(
                fn.span(found.event.node),
                f"{found.by} launches `{found.misfit.callee}` {_problem(found.misfit, when)}.",
                related=way_to(fn, found.event),
            )


def _problem(misfit: Misfit, when: str) -> str:
    """What is wrong, the consequence, and what to write."""
    if any(misfit.unloaded):
        given, name, address = misfit.unloaded
        what = f"with the tensor `{given}` for `{name}`, whose address it uses as a number"
        return f"{what}; Triton raises {misfit.raises} {when}. Write `tl.load({address})` in the kernel"
    if any(misfit.number):
        what = f"with the number `{misfit.number[0]}` for `{misfit.number[1]}`, which it uses as an address"
        return f"{what}; Triton raises {misfit.raises} {when}. Pass a tensor"
    raises = f"Triton raises TypeError {when}."
    if misfit.surplus and not misfit.takes:
        return f"{fact(misfit)}; {raises} Write the kernel with parameters for them"
    mistaken = [each for each in misfit.unknown if each.isupper()]  # options are in lower case
    if len(mistaken) == len(misfit.missing) == 1 and not misfit.surplus:
        return f"{fact(misfit)}; {raises} Write `{misfit.missing[0]}` for `{mistaken[0]}`"
    return f"{fact(misfit)}; {raises} {remedy(misfit)}"
