"""CTX604: names that torch or NumPy does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MisfitKind
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import misfits
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, moment
from ctxlint.torch_api.missing_names import NUMPY_ALIASES, REMOVED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.rules.misfit_wording import MisfitFound


class MissingName(Rule[FunctionClass]):
    """
    ## What it does
    Reports names that torch does not have in the methods of a Function and in functions of the project that they call:
    `torch.linear`, or `torch.rfft`, which torch 1.8 removed, and calls of `torch.fft`, a module since then, or of `torch.symeig`,
    `eig`, `solve`, `lstsq` and `matrix_rank`, which only raise an error now. Also `np.float` and the other names of builtins that
    NumPy 1.24 removed.

    ## Why is this bad?
    Reading the name raises `AttributeError: module 'torch' has no attribute 'linear'`. No import and no type checker of
    the class shows it, and in `backward` it takes a gradient to get there.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return torch.linear(grad_output, weight.t()), grad_output.t() @ x
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return torch.nn.functional.linear(grad_output, weight.t()), grad_output.t() @ x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    The names of `torch`, `torch.nn`, `torch.nn.functional`, `torch.linalg`, `torch.fft`, `torch.special` and
    `torch.autograd` are known, those of torch 2.13 and of all earlier releases. A name that a release removed is not
    reported if `target-torch` includes an older one. Of torch, only what is called is reported, as a backend may add a
    module. Names that NumPy removed are reported whatever its release. Not reported are names that a file of the project may set, names that backends outside of torch add, such as `torch.npu`, those with an
    underscore in front, names under `try`, `except`, `hasattr` or a test that may be about a release, names in a file that is
    imported only under such a test or that skips its tests under one, and those in torch itself.

    ## References
    - [torch](https://pytorch.org/docs/stable/torch.html)
    - [NumPy 1.24: expired deprecations](https://numpy.org/doc/stable/release/1.24.0-notes.html#expired-deprecations)
    """

    code = "CTX604"
    name = "missing-name"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        seen = set()
        forward_ends = True
        if fn.is_alternative:
            return
        for found in misfits(fn, MisfitKind.MISSING_NAME):
            misfit = found.misfit
            removed = REMOVED.get(misfit.unknown[0])
            key = (found.method.name, found.by, misfit.callee)
            if key in seen or (removed is not None and settings.torch.fall_below(*removed.release)):
                continue
            seen.add(key)
            through = f" through `{found.event.by}`" * (len(misfit.steps) > 1)
            calls = f", which `{found.method.name}` of `{fn.name}` calls{through}," * bool(found.event.by)
            skipped = found.unless_skipped
            if found.method.runs_before_backward:
                forward_ends = forward_ends and bool(skipped)
            elif not (forward_ends or skipped):
                skipped = f" if `{found.method.name}` gets that far"
            since = "since then " * (misfit.unknown[0] in NUMPY_ALIASES)  # which release a project uses is not known
            raises = f"{since}it raises {misfit.raises} {moment(found.method)}{skipped}"
            where = (f"{found.by}{calls}", found.by)
            facts = [f"`{misfit.callee}` in {each} {_what_became_of(misfit.unknown[0])}; {raises}" for each in where]
            message = fitting(*(f"{fact}. {_remedy(found)}." for fact in facts))
            yield Finding(fn.span(found.event.node), message, related=way_to(fn, found.event))


def _what_became_of(name: str) -> str:
    """What torch or NumPy has in place of a name, and since when."""
    if name in NUMPY_ALIASES:
        return "was removed in NumPy 1.24"
    if name not in REMOVED:
        return "does not exist"
    change = "has been a module since" if REMOVED[name].raises == "TypeError" else "was removed in"
    return "{} torch {}.{}".format(change, *REMOVED[name].release)


def _remedy(found: MisfitFound) -> str:
    """What to write."""
    misfit = found.misfit
    if not misfit.meant:
        return "Write one that torch has"
    if misfit.meant[0].startswith("."):
        return f"Call the method of the tensor: `{misfit.meant[0]}(...)`"
    removed = REMOVED.get(misfit.unknown[0])
    return f"Write `{misfit.meant[0]}`{f', which {removed.differs}' if removed is not None else ''}"
