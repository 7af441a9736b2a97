"""CTX308: assignment to a ctx attribute that autograd uses itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import ContextWrite, FunctionClass
from ctxlint.model.interpreter.values import Constant, Parameter, Sequence, Tri, is_tensor
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.torch_api.autograd import READ_ONLY_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_TUPLES = frozenset({"dirty_tensors", "non_differentiable", "to_save"})
_FLAGS = frozenset({"materialize_grads", "_is_pure_view", "_materialize_non_diff_grads"})
_BROKEN_AT_BACKWARD = frozenset({"apply", "_forward_cls"})
_METHODS = {
    "save_for_backward": "saves nothing",
    "save_for_forward": "saves nothing",
    "mark_dirty": "marks nothing",
    "mark_non_differentiable": "marks nothing",
    "set_materialize_grads": "sets nothing",
}


class ReservedCtxAttribute(Rule[FunctionClass]):
    """
    ## What it does
    Reports an assignment to an attribute of ctx that is read-only or used by autograd.

    ## Why is this bad?
    - `saved_tensors`, `saved_variables`, `metadata`, `next_functions`, `requires_grad`: `apply` raises `AttributeError:
      attribute 'requires_grad' of 'torch._C._FunctionBase' objects is not writable`.
    - `to_save`, `dirty_tensors`, `non_differentiable` with anything but a tuple, `materialize_grads` with anything but
      a bool: `apply` raises.
    - `needs_input_grad`: accepted, but overrides the value that `backward` reads (read-only up to torch 2.0).
    - `saved_for_forward`: overwritten by torch; `backward` reads `None`.
    - `apply`, `_forward_cls`: backward raises.
    - `save_for_backward`, `mark_dirty` and the other methods: the value is an attribute like any other, and torch neither
      saves nor marks anything.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.requires_grad = x.requires_grad
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
            ctx.x_requires_grad = x.requires_grad
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: the attribute needs a new name.

    ## Known limits
    Names of methods (`name`, `register_hook`) may be overridden and are not reported; nor is anything in a file that
    mentions `mindspore`, whose package `torch` has attributes of its own.

    ## References
    - [torch.autograd.function.FunctionCtx](https://pytorch.org/docs/stable/autograd.html#context-method-mixins)
    """

    code = "CTX308"
    name = "reserved-ctx-attribute"
    subject = FunctionClass
    holds_unreached = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.source.mentions("mindspore"):
            return
        for method in fn.own_protocol_methods:
            for write in method.facts.of(ContextWrite):
                consequence = _read_back(fn, write, method) or _consequence(write, method, settings)
                if consequence is not None:
                    message = f"`{method.ctx_name}.{write.attribute}` {consequence}"
                    yield Finding(fn.span(write.node), message, related=way_to(fn, write))


def _read_back(fn: FunctionClass, write: ContextWrite, method: Method) -> str | None:
    """The consequence of an assignment that hides a method, where backward reads the value by that name."""
    name, ctx = write.attribute, method.ctx_name
    read = any(name in each.context_attributes for each in fn.reading_methods)
    if not read or name not in _READ_WITH or not method.runs_before_backward or write.deletes:
        return None
    return (
        f"is a method of ctx; what is assigned to it is a plain attribute that saved-tensor hooks do not see. Call "
        f"`{ctx}.{name}(...)`, and read `{fn.reading_ctx}.{_READ_WITH[name]}` instead."
    )


_READ_WITH = {"save_for_backward": "saved_tensors", "save_for_forward": "saved_tensors"}


def _consequence(write: ContextWrite, method: Method, settings: Settings) -> str | None:
    """The consequence of this assignment in torch; None if there is none."""
    name, ctx = write.attribute, method.ctx_name
    if write.deletes:
        return None
    before_backward = method.runs_before_backward
    if name in READ_ONLY_ATTRIBUTES or (name == "needs_input_grad" and not settings.torch.reach(2, 1)):
        when = "at `apply`" if before_backward else f"in `{method.name}`"
        saves = name == "saved_tensors" and before_backward
        remedy = f"Call `{ctx}.save_for_backward(...)` instead" if saves else "Use another name"
        return f"is read-only; torch raises AttributeError {when}. {remedy}."
    if name in _METHODS and before_backward and write.value is not None:
        return f"is a method of ctx; assigning to it silently {_METHODS[name]}. Call `{ctx}.{name}(...)` instead."
    if name in _TUPLES and before_backward and write.value is not None and _is_not_tuple(write.value):
        return (
            f"takes only a tuple; torch raises RuntimeError at `apply`. Call `{ctx}.{_method_for(name)}(...)` instead."
        )
    if name in _FLAGS and before_backward and write.value is not None and _is_not_bool(write.value):
        return "takes only a bool; torch raises TypeError at `apply`. Write `True` or `False`."
    if name == "needs_input_grad" and before_backward:
        return "is set by torch for `backward`; this silently overrides it. Use another name."
    if name == "saved_for_forward" and before_backward:
        return (
            f"is set by torch after `forward`; this value is silently lost. Call `{ctx}.save_for_forward(...)` instead."
        )
    if name in _BROKEN_AT_BACKWARD and before_backward:
        return "is called by torch at backward, which then raises. Use another name."
    return None


def _method_for(name: str) -> str:
    return {"to_save": "save_for_backward", "dirty_tensors": "mark_dirty"}.get(name, "mark_non_differentiable")


def _is_not_tuple(value: Value) -> bool:
    if isinstance(value, Sequence):
        return value.kind != "tuple"
    return isinstance(value, Constant) or is_tensor(value) is Tri.YES


def _is_not_bool(value: Value) -> bool:
    if isinstance(value, Constant):
        return not isinstance(value.value, bool)
    return not isinstance(value, Parameter) and is_tensor(value) is Tri.YES
