"""CTX402: ``mark_dirty`` of something that is not returned, or not an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import gradients_taken
from ctxlint.model.analyses.unreturned_marks import (
    is_unmarkable,
    is_unmodified,
    marks_of,
    none_returns,
    passed_to,
    returns_with,
)
from ctxlint.model.function import ContextCall, FunctionClass, Mutation
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import (
    Alias,
    Fresh,
    Parameter,
    Tri,
    View,
    before_views,
    is_detached,
    is_input,
    is_tensor,
    leaves,
    same_object,
    usual_storage,
)
from ctxlint.model.syntax import code_of, dotted
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import quoted
from ctxlint.torch_api.operations import TORCH_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


class MarkDirtyMisuse(Rule[FunctionClass]):
    """
    ## What it does
    Reports `mark_dirty` of a tensor that `forward` does not return, of a tensor that is not an input, and of a value
    that is not a tensor. Also of an input that `forward` does not modify, and of one for which a call in view passes a leaf that requires a gradient, or a view of one.

    ## Why is this bad?
    A marked tensor must be an input, and the same object must be an output; a view of it is not enough. Otherwise
    `apply` raises `RuntimeError: Some elements marked as dirty during the forward method were not returned as output`,
    in evaluation as well. A tensor that is returned but is not an input causes a UserWarning, `ctx.mark_dirty()
    received a tensor that was not an input`, or, if it is a view, a RuntimeError with the same words. A list raises
    `RuntimeError: mark_dirty can only accept variables`, and a leaf `RuntimeError: a leaf Variable that requires grad has been
    used in an in-place operation`.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            y.mul_(2)
            ctx.mark_dirty(y)
            return y

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
            y = x.clone()
            y.mul_(2)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: only the author knows whether to return the tensor or to remove the mark.

    ## Known limits
    Not reported if the returned tensor may be the marked one: the result of `.contiguous()`, of `.to(...)`, or of an
    unknown function, unless the functions that `forward` calls get only other tensors and numbers, or several inputs are
    marked and one tensor is returned.

    ## References
    - [FunctionCtx.mark_dirty](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_dirty.html)
    """

    code = "CTX402"
    name = "mark-dirty-misuse"
    subject = FunctionClass
    about_context = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward = fn.forward
        if forward is None or not forward.signature_known or not forward.facts.complete:
            return
        for method in fn.context_methods:
            for call in marks_of(method):
                judged = [_judged(fn, method, call, argument) for argument in call.arguments]
                messages = [message for message in judged if message is not None]
                too_many = _more_than_outputs(fn, method, call) if not messages else None
                for message in messages if too_many is None else [too_many]:
                    yield Finding(fn.span(call.node), message, related=way_to(fn, call))
                leaf = _passed_leaf(fn, call) if not messages and too_many is None else None
                if leaf is not None:
                    yield Finding(fn.span(call.node), leaf, related=way_to(fn, call))


def _passed_leaf(fn: FunctionClass, mark: ContextCall) -> str | None:
    """The problem with a call that passes a leaf that requires a gradient, or a view of one, for a marked input."""
    if mark.guards or not fn.signature_judgeable:
        return None
    marked = {each.value.index: each.value.name for each in mark.arguments if is_input(each.value)}
    for call in fn.calls if marked else ():
        if not call.applies or call.gradients_off or call.under_no_grad or call.expects_error:
            continue
        for at, code in call.modifiable:
            if at in marked:
                view, own = "a view of " * code.endswith("]"), code.startswith("self.")
                if own and call.inside.rpartition(".")[2] != "forward":
                    continue  # its callers may turn grad mode off: this is how parameters are updated
                passed = f"`{code}`, {view}{'a parameter' if own else 'a leaf that requires a gradient'}"
                unless = " unless that is frozen" * own
                return (
                    f"`{marked[at]}` is marked dirty, but the call on {call.place} passes {passed}; "
                    f"torch raises RuntimeError there{unless}. Pass `{code}.clone()`."
                )
    return None


def _judged(fn: FunctionClass, method: Method, call: ContextCall, argument: Slot) -> str | None:
    """The problem with one argument; None if there certainly is none."""
    if argument.starred or argument.node is None:
        return None
    name = code_of(argument.node)
    value = argument.value
    if is_tensor(value) is Tri.NO:
        if not is_unmarkable(value):
            return None
        return f"`{name}` is not a tensor; {_raises(call)}. Pass each tensor as an argument."
    if not is_input(value) and is_tensor(value) is not Tri.YES:
        return None
    groups = list(returns_with(fn, method, call))
    failing = [group for group in groups if none_returns(fn, group, value)]
    if failing and groups[0] not in failing and is_input(value):
        return _unreturned_there(fn, name, value, call, [each for group in failing for each in group])
    if failing:
        if is_input(value):
            return f"`{name}` is marked dirty but not returned; {_raises(call)}. {_remedy(fn, name, value, call)}"
        return (
            f"`{name}` is marked dirty but is neither an input nor returned; {_raises(call)}. Mark the "
            f"inputs that are modified in place and returned."
        )
    if _certainly_new(value):
        effect = f"{_raises(call)} if a gradient is needed" if _is_view(value) else _WARNS
        effect = _RAISES_OR_WARNS if _may_be_view(value) else effect
        origin = usual_storage(value)
        changed = _is_view(value) and is_input(origin) and _may_be_changed(fn, origin, call)
        remedy = "Work on a copy, and drop the mark" if changed else "Drop the mark"
        return f"`{name}` is marked dirty but is not an input; {effect}. {remedy}."
    if is_input(value) and is_unmodified(fn, call, value):
        fact = f"`{name}` is marked dirty but `forward` does not modify it"
        return f"{fact}; {_raises(call)} for a leaf that requires a gradient. Drop the mark."
    return None


def _unreturned_there(fn: FunctionClass, name: str, tensor: Value, mark: ContextCall, returns: list[Returned]) -> str:
    """The message for a marked input that some returns after the mark lack."""
    changes = list(fn.forward.facts.of(Mutation)) if fn.forward is not None else []
    own = [each for each in changes if each.target is None or usual_storage(each.target) == tensor]
    apart = bool(own) and all(each.event.excludes(change) for each in returns for change in own)
    remedy = (
        "Mark it only where it is modified" if apart else f"Return `{name}` itself, or modify a copy and drop the mark"
    )
    place, runs = fn.line(returns[0].event.node), " if this line runs" * bool(mark.guards)
    return f"`{name}` is marked dirty{runs} but not returned on {place}; there, torch raises RuntimeError at `apply`. {remedy}."


_WARNS = "torch warns if a gradient is needed, and does nothing"
_RAISES_OR_WARNS = "if a gradient is needed, torch raises RuntimeError if it is a view, and warns otherwise"


def _more_than_outputs(fn: FunctionClass, method: Method, call: ContextCall) -> str | None:
    """The problem with several marked inputs if forward returns a single value, whichever that is."""
    marked = {each.value: each.node for each in call.arguments if _is_tensor_input(each.value) and not each.starred}
    names = [code_of(node) for node in marked.values() if node is not None]
    if len(names) < 2 or not any(all(_is_one(fn, each) for each in group) for group in returns_with(fn, method, call)):
        return None
    remedy = "Drop the mark" if all(_is_buffer(fn, each) for each in marked) else "Return all of them, or drop the mark"
    return f"{quoted(names)} are marked dirty, but `forward` returns only one tensor; {_raises(call)}. {remedy}."


def _is_tensor_input(value: Value) -> bool:
    """Whether it is an input that certainly is a tensor."""
    return is_input(value) and value.tensor is Tri.YES


def _is_one(fn: FunctionClass, returned: Returned) -> bool:
    """Whether forward returns one output here: backward takes only one gradient, if the value does not show it."""
    if returned.known:
        return returned.count == 1
    backward = fn.judgeable_backward
    return backward is not None and backward.signature_known and gradients_taken(backward)[1] == 1


def _raises(call: ContextCall) -> str:
    """The consequence in torch, and when: a mark under a condition may never be made."""
    return f"torch raises RuntimeError at `apply`{' if this line runs' if call.guards else ''}"


def _remedy(fn: FunctionClass, name: str, tensor: Value, mark: ContextCall) -> str:
    """What to write for an input that is marked but not returned; a buffer, whose gradient is None, needs no mark."""
    if not _may_be_changed(fn, tensor, mark):
        return "Drop the mark."
    changes = [each.target for each in fn.forward.facts.of(Mutation)] if fn.forward is not None else []
    if not any(target is not None and usual_storage(target) == tensor for target in changes):
        return "Drop the mark, and work on a copy if it is modified in place."
    return (
        "Drop the mark." if _is_buffer(fn, tensor) else f"Return `{name}` itself, or modify a copy and drop the mark."
    )


def _is_buffer(fn: FunctionClass, tensor: Value) -> bool:
    """Whether an input never gets a gradient, like running statistics: as an output, backward would get one for it."""
    index = tensor.index if isinstance(tensor, Parameter) else None
    return any(each.index == index and each.gradient is Tri.NO for each in fn.inputs)


def _may_be_changed(fn: FunctionClass, tensor: Value, mark: ContextCall) -> bool:
    """Whether forward may write to an input on a path with a mark: it does, perhaps through a view, or unknown code."""
    return any(_may_be(each, tensor) for method in fn.context_methods for each in _perhaps_written(method, mark))


def _perhaps_written(method: Method, mark: ContextCall) -> Iterator[Value | None]:
    """What a method writes to, None for something unknown, and what it passes to code that is not torch's."""
    yield from (each.target for each in method.facts.of(Mutation) if not each.excludes(mark))
    for call in method.facts.of(GenericCall):
        if call.excludes(mark):
            continue
        if call.callee is None or not call.callee.startswith(TORCH_NAMESPACES):
            yield from (leaf for slot in passed_to(call) for leaf in leaves(slot.value))


def _may_be(value: Value | None, tensor: Value) -> bool:
    return value is None or same_object(before_views(value), tensor) is not Tri.NO


def _is_view(value: Value) -> bool:
    """Whether autograd treats it as a view; it does not track the aliases from ``detach()``."""
    return all(isinstance(option, View) and not is_detached(option) for option in value.options())


def _may_be_view(value: Value) -> bool:
    """Whether it is the result of ``repeat_interleave``, which is a view of a new tensor if the repeats are a number."""
    nodes = (option.node for option in value.options() if isinstance(option, Fresh))
    called = (node.func for node in nodes if isinstance(node, cst.Call))
    return any((dotted(func) or "").rpartition(".")[2] == "repeat_interleave" for func in called)


def _certainly_new(value: Value) -> bool:
    return all(
        isinstance(option, Fresh) or (isinstance(option, View) and option.alias is Alias.ALWAYS)
        for option in value.options()
    )
