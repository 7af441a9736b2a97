"""CTX101: a protocol method without ``@staticmethod``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.decorators import make_static
from ctxlint.model.analyses.legacy import (
    is_called_as_instance,
    is_called_on_instance,
    may_mean_an_instance,
    runs_own_forward,
)
from ctxlint.model.analyses.misnamed import misnamed
from ctxlint.model.function import Binding, FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.wording import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method


class MissingStaticmethod(Rule[FunctionClass]):
    """
    ## What it does
    Reports `forward`, `backward`, `vjp`, `setup_context`, `jvp` and `vmap` of a `torch.autograd.Function` that have
    neither `@staticmethod` nor `@classmethod`.

    ## Why is this bad?
    Autograd takes these methods from the class and calls them as plain functions, so `.apply` works without the
    decorator on every torch from 1.13 to 2.15. But the documented form is a static method: without the decorator,
    editors, type checkers and readers take `ctx` for `self`. Code written before torch 1.5 has this form and calls an
    instance, `F()(x)`; that raises `RuntimeError: Legacy autograd function with non-static forward method is
    deprecated`, even if the methods are static.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
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
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Safe: `@staticmethod` is added as the outermost decorator, which changes nothing for `.apply`. Unsafe if the
    method is called directly on the class, and not offered if the project calls it on an instance: a static method
    would lack an argument there. A `self` before `ctx` is removed, because every call with it raises; there is no
    fix if the body uses it. Removing `self` is unsafe if defaults or `*args` make a call work by accident.

    ## Known limits
    Not reported if a base class, a class decorator or a decorator of the method is unknown, because it may bind the
    function itself; nor if the methods read attributes of `self` that only a subclass may define. A Function in the
    style of torch before 1.5, with state on an instance, is reported once, by legacy-function (CTX108). In a
    project for these releases, a Function whose instances are called is right. Not reported for a class with two
    methods called `forward` and no `backward`, or the other way round: conflicting-members (CTX107) says which to
    rename.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX101"
    name = "missing-staticmethod"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.legacy_state is not None or may_mean_an_instance(fn) or misnamed(fn):
            return
        if not settings.torch.reach(1, 5) and not fn.applied and any(each.how == "construct-call" for each in fn.calls):
            return  # these releases call the instance, which needs bound methods
        if "__del__" in fn.methods and any(is_called_on_instance(fn, each) for each in fn.own_protocol_methods):
            return  # its instances are there for that
        for method in fn.own_protocol_methods:
            if method.binding is Binding.INSTANCE and method.signature_known:
                if is_called_on_instance(fn, method):
                    yield Finding(fn.span(method.node.name), _called_on_instance(fn, method))
                    continue
                caller = runs_own_forward(fn) if method.name == "forward" else None
                message = _message(fn, method) if caller is None else _called_by(fn, caller)
                yield Finding(fn.span(method.node.name), message, None if caller else make_static(fn, method))


def _called_on_instance(fn: FunctionClass, method: Method) -> str:
    """What to do with a method that the project calls on an instance: a static one would lack an argument."""
    instead = (
        f"`{fn.name}.apply(...)` there"
        if method.name == "forward"
        else "`torch.autograd.grad(...)` there, for inputs that require a gradient"
    )
    return (
        f"`{method.name}` of `{fn.name}` is not a static method, and it is called on an instance, past autograd. Write "
        f"{instead}, and then add `@staticmethod`."
    )


def _called_by(fn: FunctionClass, caller: Method) -> str:
    """What to do with a forward that another method calls on the instance: a static one would lack an argument."""
    instance = caller.node.params.params[0].name.value
    return (
        f"`forward` of `{fn.name}` is not a static method, and `{caller.name}` calls it without autograd, which never "
        f"runs `backward` then. Write `{instance}.apply(...)` there, and add `@staticmethod`."
    )


def _message(fn: FunctionClass, method: Method) -> str:
    what = f"`{method.name}` of `{fn.name}` is not a static method"
    if method.receiver is not None and method.ctx is not None:
        return (
            f"{what}; torch passes the ctx as `{method.receiver.name}`{refusal(fn, method)}. Add `@staticmethod` and drop "
            f"`{method.receiver.name}`."
        )
    if is_called_as_instance(fn):  # which raises in any case
        return f"{what}, but torch calls it like one under `apply`, and documents it as one. Add `@staticmethod`, and call `{fn.name}.apply(...)`."
    return f"{what}, but torch calls it like one, and documents it as one. Add `@staticmethod`."
