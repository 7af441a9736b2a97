"""CTX105: a decorator outside ``@staticmethod`` or ``@classmethod``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.decorators import put_binding_first
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.torch_api.known_decorators import COMPILER_DISABLING_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method

_BINDING = ("staticmethod", "classmethod")
_OLD_PYTHON = "before Python 3.10"
_COMPILED = "under `torch.compile(fullgraph=True)`"


class DecoratorOrder(Rule[FunctionClass]):
    """
    ## What it does
    Reports a decorator above `@staticmethod` or `@classmethod` on a method that autograd calls.

    ## Why is this bad?
    The outer decorator gets the `staticmethod` object instead of the function. Before Python 3.10 that object is not
    callable (`TypeError: 'staticmethod' object is not callable`). Since then, eager mode works, but the class attribute
    is a plain function that wraps a descriptor, and `torch.compile(fullgraph=True)` raises `Unsupported` (under
    `torch.compiler.disable`, it does so in either order). A `classmethod` object is never callable: `TypeError:
    'classmethod' object is not callable`.

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
    project's own decorators that do so or that handle `staticmethod` explicitly, nor for `functools.partial`. Methods
    that autograd does not call are not checked. What holds before Python 3.10 is not said if the project requires
    Python 3.10 (`requires-python`) or torch 2.9, which does so itself; a decorator that is not one of torch or Python is
    not reported then, as it may not compile in any order.

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
            effect = _effect(method, outer, binding, settings)
            if effect is None:
                continue
            yield Finding(
                fn.span(method.node.name),
                f"{shown} is above `@{binding}` on `{method.name}` of `{fn.name}`; {effect}. Put `@{binding}` first.",
                fix=put_binding_first(fn, method, outer, bound),
            )


def _effect(method: Method, outer: int, binding: str, settings: Settings) -> str | None:
    """What happens; None if all works: torch 2.9 wants Python 3.10, and disabled code never compiles.

    What another decorator than those of torch and Python does may not compile in any order.
    """
    if binding == "classmethod":
        return "calling the class method raises TypeError"
    old = settings.python.fall_below(3, 10) and settings.torch.fall_below(2, 9)
    compiled = all(decorator.name not in COMPILER_DISABLING_DECORATORS for decorator in method.decorators)
    if not old and (method.decorators[outer].name or "").partition(".")[0] not in _TRACED:
        return None
    when = [*([_OLD_PYTHON] if old else []), *([_COMPILED] if compiled else [])]
    return f"this raises {' and '.join(when)}" if when else None


_TRACED = frozenset(["builtins", "contextlib", "functools", "torch"])


def _outside(method: Method) -> tuple[int, int, str] | None:
    """The position of the outermost decorator above the binding one, and the position and name of the latter."""
    names = [(decorator.name or "").rpartition(".")[2] for decorator in method.decorators]
    bound = next((at for at, name in enumerate(names) if name in _BINDING), 0)
    for at, decorator in enumerate(method.decorators[:bound]):
        if decorator.name == "functools.partial":
            return None  # it stands for what it calls
        if not decorator.takes_descriptors:
            return at, bound, names[bound]
    return None
