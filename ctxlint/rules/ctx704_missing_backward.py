"""CTX704: the result of a Function without backward is differentiated."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import surely_differentiable
from ctxlint.model.analyses.reachability import backward_never_runs, never_taken
from ctxlint.model.function import ArgumentKind, FunctionClass
from ctxlint.model.interpreter.values import Kind, Tri, is_tensor, kind_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ApplyCall
    from ctxlint.model.interpreter.method import Method


class MissingBackward(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function without `backward` and without `vjp` that calls `save_for_backward`, that is applied to a
    parameter or a tensor with `requires_grad=True`, and whose result is differentiated in the same function, or that a
    module applies to a parameter of its own, in `forward` also through a function that takes it; if torch computes with the
    result. Those are on by default. Also one that the `forward` of a module applies with grad mode on.

    ## Why is this bad?
    A Function for inference needs no `backward`, and `apply` works without one, in training as well. The backward pass
    raises `NotImplementedError: You must implement either the backward or vjp method for your custom autograd.Function
    to use it with backward mode AD.`

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x**2


    def slope():
        x = torch.ones(3, requires_grad=True)
        y = Square.apply(x)
        y.sum().backward()
        return x.grad
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x


    def slope():
        x = torch.ones(3, requires_grad=True)
        y = Square.apply(x)
        y.sum().backward()
        return x.grad
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default where only the `forward` of a module shows that it is applied: the module may be there for inference alone, or
    run where nothing is differentiated. Calls are checked only within one block of one function: the parameter, or the tensor with `requires_grad=True`, the
    call, and `backward()` on a value that operators, and usual methods and functions of torch, compute from the result.
    Of several outputs, all that have a name (`_` is none) must be floating tensors. A parameter of a module counts if the class
    assigns `Parameter(...)` to the attribute and never mentions `requires_grad`, operators and functions of torch compute what
    its method returns from the result, the Function has no `symbolic` for an
    export, and the call is not under a test of gradients or `torch.no_grad()`. Not reported under
    `pytest.raises`, nor is a saved tensor in a class that the file later defines again, or where no input
    needs a gradient: `if any(ctx.needs_input_grad): raise`.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX704"
    name = "missing-backward"
    subject = FunctionClass
    default = False
    default_in_view = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return subject.backward is None

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.backward is not None or fn.forward is None or fn.has_subclass:
            return
        if fn.forward.lacks_ctx or fn.context_calls("mark_non_differentiable") or backward_never_runs(fn):
            return
        every = (_saving(fn), _differentiated(fn), _passing_parameters(fn), _in_modules(fn))
        yield from islice(chain.from_iterable(every), 1)


def _saving(fn: FunctionClass) -> Iterator[Finding]:
    for save in fn.context_calls("save_for_backward") if not fn.is_redefined else ():
        if never_taken(fn, save.guards):  # where no input needs a gradient
            continue
        use = "forward mode" if "jvp" in fn.methods else "inference"
        remedy = f"Define `backward`, or drop the call if the Function is for {use} only"
        written = _indented_too_far(fn.forward) if fn.forward is not None else ""
        yield Finding(
            fn.span(save.node),
            f"`{fn.name}` saves tensors, but has neither `backward` nor `vjp`; torch raises NotImplementedError at "
            f"backward. {written or remedy}.",
            related=way_to(fn, save),
            in_view=True,
        )


def _differentiated(fn: FunctionClass) -> Iterator[Finding]:
    for call in fn.calls:
        if not call.differentiated or call.expects_error or call.gradients_off:
            continue
        if all(surely_differentiable(fn, each) for each in call.differentiated_outputs):
            place = f"{call.differentiated} of `{call.path}`" if call.path else call.differentiated
            yield Finding(
                fn.span(fn.node.name),
                f"`{fn.name}` has neither `backward` nor `vjp`, but its result is differentiated on {place}; torch raises "
                f"NotImplementedError there. Define `backward`.",
                in_view=True,
            )


def _passing_parameters(fn: FunctionClass) -> Iterator[Finding]:
    for call in fn.calls if "symbolic" not in fn.methods else ():
        if not call.applies or call.expects_error or call.gradients_off:
            continue
        if call.parameter:
            fact = f"the call on {call.place} passes the parameter `{call.parameter}`; torch raises NotImplementedError when it"
        elif call.given_parameters:
            through, given = call.inside, call.names[min(call.given_parameters)]
            fact = (
                f"a module passes a parameter for `{given}` of `{through}`, which applies it on {call.place}; torch raises "
                "NotImplementedError when that"
            )
        else:
            continue
        yield Finding(
            fn.span(fn.node.name),
            fitting(*_or_for_inference(f"`{fn.name}` has neither `backward` nor `vjp`, but {fact} is trained")),
            in_view=True,
        )


def _or_for_inference(fact: str) -> Iterator[str]:
    """A fact with its remedy, in fewer and fewer words: what is there for inference alone needs no ``backward``."""
    for each in (fact, fact.replace("neither `backward` nor `vjp`", "no `backward`")):
        yield f"{each}. Define `backward`, or call it under `torch.no_grad()` for inference."
        yield f"{each}. Define `backward`, or use `torch.no_grad()` for inference."


def _in_modules(fn: FunctionClass) -> Iterator[Finding]:
    for call in fn.calls if "symbolic" not in fn.methods else ():
        if _may_be_trained(fn, call):
            where = call.inside.rpartition(".")[0].rpartition(".")[2].partition("@")[0]
            fact = (
                f"`{fn.name}` has neither `backward` nor `vjp`, but `forward` of `{where}` applies it on {call.place}; "
                "torch raises NotImplementedError if a loss is differentiated through it"
            )
            yield Finding(fn.span(fn.node.name), fitting(*_or_for_inference(fact)))


def _may_be_trained(fn: FunctionClass, call: ApplyCall) -> bool:
    """Whether the ``forward`` of a module applies a Function, with gradients, to what may need one, for floats."""
    if not (call.applies and call.in_module and call.inside.endswith(".forward")):
        return False
    if call.expects_error or call.gradients_off or call.discarded:
        return False
    cut = {*call.detached, *call.frozen}
    tensors = (at for at, kind in enumerate(call.arguments) if kind in (ArgumentKind.TENSOR, ArgumentKind.OTHER))
    floats = any(kind_of(value) is not Kind.INTEGRAL and is_tensor(value) is Tri.YES for value in fn.outputs_values())
    return floats and any(at not in cut for at in tensors)


def _indented_too_far(forward: Method) -> str:
    """What to write where ``backward`` is defined inside forward; empty where it is not."""
    inside = [each.name.value for each in forward.nodes_of(cst.FunctionDef) if each.name.value in ("backward", "vjp")]
    return f"Move `{inside[0]}`, which is defined inside `forward`, to the class" if inside else ""
