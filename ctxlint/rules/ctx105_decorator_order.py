"""CTX105: a decorator outside ``@staticmethod`` or ``@classmethod``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.decorators import put_binding_first
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method

_BINDING = ("staticmethod", "classmethod")
_EFFECT = {
    "staticmethod": "this raises before Python 3.10 and under `torch.compile(fullgraph=True)`",
    "classmethod": "calling the class method raises TypeError",
}
_EFFECT_FROM_2_13 = {
    **_EFFECT,
    "staticmethod": "this raises under `torch.compile(fullgraph=True)`",
}  # it wants Python 3.10


class DecoratorOrder(Rule[FunctionClass]):
    """
    ## What it does
    Reports a decorator above `@staticmethod` or `@classmethod` on a method that autograd calls.

    ## Why is this bad?
    The outer decorator gets the `staticmethod` object instead of the function. Before Python 3.10 that object is not
    callable (`TypeError: 'staticmethod' object is not callable`). Since then, eager mode works, but the class attribute
    is a plain function that wraps a descriptor, and `torch.compile(fullgraph=True)` raises `Unsupported`. A
    `classmethod` object is never callable: `TypeError: 'classmethod' object is not callable`.

    ## Example
    ```python
    import torch
    from torch.autograd.function import once_differentiable


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @once_differentiable
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch
    from torch.autograd.function import once_differentiable


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    The `@staticmethod` line moves up, together with its comments. Safe if all decorators in between are torch's own;
    unsafe for other decorators and for `@classmethod`.

    ## Known limits
    Not reported for decorators that mark an object and return it (`typing.override`, `torch.jit.ignore`), or for the
    project's own decorators that do so or that handle `staticmethod` explicitly. Methods that autograd does not call
    are not checked.

    ## References
    - [`staticmethod` objects are callable since Python
      3.10](https://docs.python.org/3/library/functions.html#staticmethod)
    """

    code = "CTX105"
    name = "decorator-order"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            found = _outside(method)
            if found is None:
                continue
            outer, bound, binding = found
            written = method.decorators[outer].written
            shown = f"`@{written}`" if written is not None else "A decorator"
            effect = _EFFECT[binding] if settings.torch.fall_below(2, 13) else _EFFECT_FROM_2_13[binding]
            yield Finding(
                fn.span(method.decorators[outer].node),
                f"{shown} is above `@{binding}` on `{method.name}` of `{fn.name}`; {effect}. Put `@{binding}` first.",
                fix=put_binding_first(fn, method, outer, bound),
            )


def _outside(method: Method) -> tuple[int, int, str] | None:
    """The position of the outermost decorator above the binding one, and the position and name of the latter."""
    names = [(decorator.name or "").rpartition(".")[2] for decorator in method.decorators]
    bound = next((at for at, name in enumerate(names) if name in _BINDING), 0)
    for at, decorator in enumerate(method.decorators[:bound]):
        if not decorator.takes_descriptors:
            return at, bound, names[bound]
    return None
