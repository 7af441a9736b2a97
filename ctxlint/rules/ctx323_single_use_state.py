"""CTX323: backward uses up its own state, so that it can run only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.single_use import End, used_up
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.patterns import pattern
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import first_of, them, unless_copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.single_use import UsedUp


class SingleUseState(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that uses up what `forward` stored for it: it deletes an attribute of ctx or sets it to `None`
    or to a result computed from it, modifies a stored intermediate in place or gives it other memory, frees a graph that
    `forward` built, or removes the state under a key of ctx from a container outside of it. Also code of another library to which `backward` passes a
    stored intermediate as `out=x`, or in a statement with the incoming gradient, if it returns that and nothing else can have filled it. The backward of a custom operator
    is checked by CTX814.

    ## Why is this bad?
    With `retain_graph=True`, or for each output of `torch.autograd.grad` in a loop, `backward` of one call runs several
    times. The second run raises, or silently computes with what the first one has left.

    Torch frees tensors that are saved with `save_for_backward` after `backward` by itself, unless `retain_graph` is set.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.grad_x = torch.cos(x) * weight
            return torch.sin(x) * weight

        @staticmethod
        def backward(ctx, grad_output):
            return ctx.grad_x.mul_(grad_output), None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(torch.cos(x) * weight)
            return torch.sin(x) * weight

        @staticmethod
        def backward(ctx, grad_output):
            (grad_x,) = ctx.saved_tensors
            return grad_x * grad_output, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: many Functions give memory back like this on purpose, and most graphs are used once. Reported by default where a
    function calls `apply` and differentiates the result twice, in the same block. Inputs and outputs that
    `backward` modifies are reported by CTX313. What happens under a condition other than whether gradients are needed, such as
    whether the incoming gradient is 1, is not reported, unless the saved tensors are read under the same condition, or both arms modify them.

    ## References
    - [torch.Tensor.backward](https://pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    """

    code = "CTX323"
    name = "single-use-state"
    subject = FunctionClass
    category = Category.PEDANTIC
    default = False
    default_in_view = True
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return any(each.differentiated_again for each in subject.calls)

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None:
            return
        first, *others = used_up(fn, backward) or (None,)
        if first is None:
            return
        notes = at(fn, (each.node for each in others if each is not None), "and more of it here")
        way = way_to(fn, first.mutation) if first.mutation is not None else ()
        again = next((each for each in fn.calls if each.differentiated_again and not each.expects_error), None)
        place = again.place.replace(again.line, again.differentiated_again, 1) if again is not None else ""
        alike = [each for each in others if each is not None and (each.end, each.doer) == (first.end, first.doer)]
        adds = first.doer.rpartition(".")[2] == "backward" and _READS_GRAD.search(code_of(backward.node))
        message = _message(first, alike, place, adds_to_grad=bool(adds))
        yield Finding(fn.span(first.node), message, related=(*way, *notes), in_view=again is not None)


def _message(found: UsedUp, alike: list[UsedUp], place: str, *, adds_to_grad: bool) -> str:
    """What is wrong; ``alike`` are others that the same function drops in the same way.

    ``adds_to_grad``: it runs ``backward()`` and reads ``.grad``, to which a second run adds.
    """
    name, doer, end = found.name, found.doer, found.end
    second = f"the second backward on {place}" if place else "a second backward (`retain_graph=True`)"
    if end in (End.DELETED, End.RESET):
        dropped = list({each.name: each for each in (found, *alike)}.values())
        names, remedy = first_of([each.name for each in dropped], _MOST_NAMES), _keep(dropped, end)
        if end is End.DELETED:
            return f"`{doer}` deletes {names}, which it reads; {second} raises AttributeError. {remedy}"
        return f"`{doer}` sets {names}, which it reads, to `None`; {second} reads `None`. {remedy}"
    if end is End.EMPTIED:
        return (
            f"`{doer}` replaces the data of the saved tensor `{name}`; {second} computes with the new data. Leave it to "
            f"torch, which frees it."
        )
    if end is End.ADVANCED:
        return (
            f"`{doer}` sets `{name}` to a result computed from it; {second} silently computes with that. Bind a local name "
            f"instead."
        )
    if end is End.REMOVED:
        return f"`{doer}` removes its state from `{name}`; {second} does not find it. Set the state on ctx."
    if end is End.FREED:
        return (
            f"`{doer}` frees the graph of `{name}`, which `forward` built; {second} raises RuntimeError if it has saved "
            f"tensors. Pass `retain_graph=True`{', and clear the `.grad` it reads' * adds_to_grad}."
        )
    effect = "silently computes with the new values"
    if end in (End.NOTICED, End.MAYBE_NOTICED):
        effect = f"raises RuntimeError, or {effect}" if end is End.MAYBE_NOTICED else "raises RuntimeError"
    what = f"`{name}`" if end is End.CHANGED else f"the saved tensor `{name}`"
    unless = unless_copied(found.mutation) if found.mutation is not None else ""
    return f"`{doer}` modifies {what} in place{unless}; {second} {effect}. Write to a new tensor."


def _keep(dropped: list[UsedUp], end: End) -> str:
    """How to keep what backward drops: tensors are saved."""
    tensors = [each.name for each in dropped if each.tensor]
    if len(tensors) == len(dropped):
        return f"Use `save_for_backward`, which frees {them(tensors)} too."
    statement = "the `del`" if end is End.DELETED else "the assignment" + "s" * (len(dropped) > 1)
    return (
        f"Use `save_for_backward` for {first_of(tensors, _MOST_NAMES)}, and drop {statement}."
        if tensors
        else f"Drop {statement}."
    )


_MOST_NAMES = 2
_READS_GRAD = pattern(r"(?<!\bautograd)\.grad\b(?!\s*\()")
