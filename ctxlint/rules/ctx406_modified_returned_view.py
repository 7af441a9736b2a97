"""CTX406: a caller modifies in place an output that is a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.modified_saves import may_require_gradient
from ctxlint.model.analyses.returned_views import returns_optional_input, returns_view
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.apply_calls import Modified


class ModifiedReturnedView(Rule[SourceFile]):
    """
    ## What it does
    Reports a call of a Function whose result is later modified in place, if `forward` returns an input unchanged, or a
    view, on some path; also if that input is modified before the result is used.

    ## Why is this bad?
    Autograd would have to rewrite the graph of the view, and would thereby drop the `backward` of the Function. It
    refuses: if an input requires a gradient, the modification raises `RuntimeError: Output 0 of ViewBackward is a view
    and is being modified inplace. This view was created inside a custom Function`.

    ## Example
    ```python
    import torch


    class Flatten(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor):
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.reshape(ctx.shape)


    def flattened_plus_one(x):
        y = Flatten.apply(x)
        y += 1
        return y
    ```

    ## Use instead
    ```python
    import torch


    class Flatten(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor):
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.reshape(ctx.shape)


    def flattened_plus_one(x):
        y = Flatten.apply(x)
        return y + 1
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only modifications after the call in the same block, or in a branch or loop there, and through the name that is bound to
    the result, or to a view of it, are detected, also in a function, or another method of the same class, that gets it; where a
    function or method does nothing but return the result of `apply`, also in its callers, for a module those that call it, or
    its method, by `super()`, `self`, or an attribute or name that is only bound to an instance; and `inplace=True` of functions of
    `torch.nn.functional`, or of layers that `__init__` creates. Not reported for
    `contiguous`, or for `reshape` of what may not be contiguous, which may copy, if anything is marked as dirty, or for what the
    `forward` of a Function modifies, which torch runs with grad mode off.

    ## References
    - [In-place operations on views](https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
    """

    code = "CTX406"
    name = "modified-returned-view"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.modified_results:
            fn = file.by_name[call.function]
            what = returns_view(fn, None) if may_require_gradient(fn, call) and not returns_optional_input(fn) else None
            if what is not None:
                yield Finding(
                    call.span,
                    f"`{call.returned_by}` returns the output of `{fn.name}`, which is {what}, and a caller modifies it in "
                    f"place; {'there, ' * what.endswith('path')}that raises RuntimeError if an input requires a gradient. "
                    f"Return a copy, as by `{fn.name}.apply(...).clone()`.",
                )
        for call in file.calls:
            fn, change = file.by_name[call.function], call.modified
            if change is None or not may_require_gradient(fn, call):
                continue
            what = returns_view(fn, change.output, change.argument, call)
            if what is None:
                continue
            short = bool(change.code) and len(change.code) <= _LONGEST and not set(change.code) & set("\n`")
            yield Finding(change.span, _message(fn, f"`{change.code}`" if short else "This", what, change))


def _message(fn: FunctionClass, code: str, what: str, change: Modified) -> str:
    argument = change.argument
    if argument is None:
        raises = "using it afterwards raises" if change.later else "it raises"
        raises = f"there, {raises}" if what.endswith("path") else raises
        raises = f"where this runs, {raises.removeprefix('there, ')}" if change.in_branch else raises
        fact = f"{code} modifies the output of `{fn.name}` in place, which is {what}; {raises} RuntimeError"
        return f"{fact} if an input requires a gradient. {_remedy(fn, change)}"
    return (
        f"{code} modifies `{fn.inputs[argument].name}` of `{fn.name}` in place, and the output is {what}; using the output "
        f"afterwards raises RuntimeError if an input requires a gradient (for a leaf, this already raises). Write it out of "
        f"place."
    )


def _remedy(fn: FunctionClass, change: Modified) -> str:
    """What to write: where grad mode is off, a new tensor would have no graph."""
    if change.later and change.output is None:
        return f"Work on a copy, as by `{fn.name}.apply(...).clone()`."
    return "Work on a copy of it." if change.later else "Write it out of place."


_LONGEST = 30
