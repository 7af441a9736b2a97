"""CTX216: a gradient is returned for a container of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.tensor_containers import (
    container_inputs_with_gradient,
    containers_alone,
    enclosed_tensors,
    holds_tensors,
    is_tensor_container,
    passed_as_tuple,
    returns_element,
    with_a_tensor,
)
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Input


class TensorListInput(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient that `backward` returns for an input that is a list, tuple or dict of tensors. The annotation
    shows this, or a call of `apply` in the linted files that passes such a container (a literal, a name, an attribute
    of `self`, a `ParameterList`, what `split`, `chunk` or `unbind` returns). For the latter, other calls may pass a
    tensor, and `forward` may handle both. So does a `forward` that passes it to `torch.cat`, `torch.stack` or the like
    on every path: these refuse a tensor.
    A list or tuple that a call passes is reported as well if it holds a parameter, or a tensor that the caller has
    created with `requires_grad`, and `backward` returns `None` for it.

    ## Why is this bad?
    Autograd does not look inside containers: to it, the argument is not a tensor. If `backward` returns something for
    it, torch raises `RuntimeError: function FBackward returned a gradient different than None at position 1, but the
    corresponding forward input was not a Variable`. Without any other tensor among the inputs, the outputs silently do
    not require a gradient.

    ## Example
    ```python
    from typing import List

    import torch


    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scale: torch.Tensor, parts: List[torch.Tensor]):
            ctx.count = len(parts)
            return scale * sum(parts)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, [grad_output] * ctx.count
    ```

    ## Use instead
    ```python
    import torch


    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *parts):
            ctx.count = len(parts)
            return sum(parts)

        @staticmethod
        def backward(ctx, grad_output):
            return (grad_output,) * ctx.count
    ```

    ## Fix safety
    There is no fix: the calls have to change with the signature.

    ## Known limits
    An input without such an annotation or call may be anything, and one of which `forward` only reads the sizes of the
    elements is not reported. Containers of numbers and strings are reported by
    gradient-for-non-tensor (CTX204).

    ## References
    - [torch.autograd.Function.forward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html)
    """

    code = "CTX216"
    name = "tensor-list-input"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.count_judgeable or fn.forward is None or fn.forward.inherited:
            return
        gradients = _surplus(fn)
        found = container_inputs_with_gradient(fn)
        for each in found:
            raises = with_a_tensor(fn, each)
            # With a surplus, another input may hold the tensors that the gradients are for.
            shifted = raises and gradients > 0
            numbers = f" ({counted(gradients, 'gradient')} for {counted(len(fn.inputs), 'input')})" if shifted else ""
            starred = each is fn.inputs[-1] and len(each.name) <= _SHORT and not returns_element(fn, each)
            consequence = _RAISES if raises else _silent(fn, each)
            remedy = _STARRED.format(each.name) if starred else _remedy(fn, each)
            containers = [other for other in found if other is not each] if shifted else _beside(fn, each)
            remedy = _ALL_SEPARATE if shifted or containers else remedy
            others = [other.param.node.name for other in containers]
            yield Finding(
                fn.span(each.param.node.name),
                f"`{each.name}` of `{fn.name}` is {_fact(each)} but `backward` returns a gradient for it{numbers}; "
                f"{consequence}. {remedy}",
                related=at(fn, others, "this is a container, too"),
            )
            if shifted:  # the gradients of the inputs that follow are in wrong positions
                return
        for each, call in passed_as_tuple(fn) if not found else ():
            raises = with_a_tensor(fn, each)
            yield Finding(
                fn.span(each.param.node.name),
                f"`{each.name}` of `{fn.name}` is a tuple of tensors on {call.place} but `backward` returns a gradient for it; "
                f"{_RAISES if raises else _silent(fn, each)}. {_remedy(fn, each)}",
            )
            return
        for each, call, name in enclosed_tensors(fn) if not found else ():
            held, it = (f"`{name}`", f"`{name}`") if name else ("a tensor", "it")
            yield Finding(
                fn.span(each.param.node.name),
                f"`{each.name}` of `{fn.name}` is a container on {call.place} that holds {held}, which requires a gradient; "
                f"torch does not look inside, and {it} silently gets none. {_SEPARATE}",
            )
            return
        for each in containers_alone(fn) if not found else ():
            yield Finding(
                fn.span(each.param.node.name),
                f"`{each.name}` of `{fn.name}` is {_fact(each)} but `backward` returns gradients at other positions; "
                f"{_silent(fn, each)}. {_remedy(fn, each)}",
            )


_ALL_SEPARATE = "Pass tensors in containers to `apply` as separate inputs."
_SEPARATE = "Pass each tensor to `apply` as a separate input."
_STARRED = "Pass each tensor to `apply`, take `*{}` in `forward`, and return as many gradients."
_SHORT = 20
"""A name that is mentioned once more has at most so many letters."""
_RAISES = "torch raises RuntimeError at backward"


def _beside(fn: FunctionClass, container: Input) -> list[Input]:
    """The other containers, of each of which backward may return the gradient of an element, or of all."""
    returned = [each.slots for each in fn.gradients]
    return [
        each
        for each in fn.inputs
        if each is not container
        and holds_tensors(each)
        and any(is_none(slots[each.index].value) is not Tri.YES for slots in returned if each.index < len(slots))
    ]


def _remedy(fn: FunctionClass, container: Input) -> str:
    return "Pass each tensor separately." if returns_element(fn, container) else _SEPARATE


def _silent(fn: FunctionClass, container: Input) -> str:
    """What comes of a container if no other input requires a gradient: an element that is returned keeps its graph."""
    if returns_element(fn, container):
        return "torch does not look inside, and a returned element silently bypasses `backward`"
    return "torch does not look inside, and its tensors get no gradient"


def _surplus(fn: FunctionClass) -> int:
    """How many gradients backward returns, if that is more than there are inputs; 0 otherwise."""
    most = max((len(each.slots) for each in fn.gradients if each.known), default=0)
    return most if fn.variadic_inputs is None and most > len(fn.inputs) else 0


def _fact(entry: Input) -> str:
    """The kind of the input; if its annotation does not show it, the evidence for it."""
    if is_tensor_container(entry.param.annotation):
        return "a container of tensors"
    return f"not a tensor ({next(each.reason for each in entry.against_a_gradient if each.container).removeprefix('it is ')})"
