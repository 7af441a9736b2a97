"""CTX310: the tuple ``ctx.saved_tensors``, or that of all gradients, used as if it were one tensor, or called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.saved_tuple import index_the_one, unpack_the_one, without_call
from ctxlint.model.analyses.saved_tensors import saved_counts, saving_call
from ctxlint.model.function import FunctionClass, GradientsUsedAsTensor, SavedRead, TupleUsedAsTensor
from ctxlint.model.interpreter.values import SavedTensors
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import if_it_happens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import Assigned
    from ctxlint.model.interpreter.method import Method


class SavedTupleAsTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports a name that holds all of `ctx.saved_tensors`, or a slice of it, but is used as only a tensor can be, and the call
    `ctx.saved_tensors()`. Also reports such uses of the gradients of a `backward(ctx, *grads)`.

    ## Why is this bad?
    `saved_tensors` is a tuple even if only one tensor was saved. `backward` raises, often with a misleading message:
    `AttributeError: 'tuple' object has no attribute 'mul'`, `TypeError: only integer tensors of a single element can be
    converted to an index`, and for the call `TypeError: 'tuple' object is not callable`.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            y = ctx.saved_tensors
            return grad_output * y
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * y
    ```

    ## Fix safety
    Safe, because the existing code raises: the name is unpacked if exactly one tensor is saved and every use may be
    that of a tensor; without a name, `[0]` is added; a call loses its parentheses.

    ## Known limits
    Only arithmetic, attributes, methods and torch functions show that a tensor is meant. Using the tuple as an index,
    taking its length and iterating over it are legal.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX310"
    name = "saved-tuple-as-tensor"
    subject = FunctionClass
    says_if_it_runs = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.reading_methods:
            if method.inherited:
                continue
            for read in method.facts.of(SavedRead):
                if read.called:
                    yield Finding(
                        fn.span(read.node),
                        f"`{read.via}` is a tuple; calling it raises TypeError{if_it_happens(fn, method, read)}. "
                        "Write it without the parentheses.",
                        None if read.by else without_call(fn, method, read),
                        way_to(fn, read),
                    )
            yield from self.used(fn, method)
            yield from self.gradients_used(fn, method)

    def used(self, fn: FunctionClass, method: Method) -> Iterator[Finding]:
        """One finding for each name, where it is bound to the tuple; or at the use itself if there is no name."""
        reported: set[SavedRead | Assigned] = set()
        for use in method.facts.of(TupleUsedAsTensor):
            if use.sliced:
                yield from _sliced(fn, method, use, reported)
                continue
            if not use.name:
                yield Finding(
                    fn.span(use.node),
                    f"`saved_tensors` is a tuple, used as one tensor here ({use.how}); this raises"
                    f"{if_it_happens(fn, method, use)}. {_unpacking(fn, method)}.",
                    None if use.by else index_the_one(fn, method, use),
                    way_to(fn, use),
                )
                continue
            read = _bound_before(method, use)
            if read is None or read in reported:
                continue
            reported.add(read)
            unless = " if that code runs" * bool(if_it_happens(fn, method, use))
            yield Finding(
                fn.span(read.node),
                f"`{use.name}` is the tuple of all saved tensors; using it as one tensor raises ({use.how}, "
                f"{fn.line(use.node)}){unless}. {_remedy(fn, method, use.name)}.",
                None if read.by else unpack_the_one(fn, method, read, use),
                way_to(fn, read),
            )

    def gradients_used(self, fn: FunctionClass, method: Method) -> Iterator[Finding]:
        """The first use of ``*grads`` as one tensor."""
        for use in method.facts.of(GradientsUsedAsTensor):
            asked = any(use.name in guard.words for guard in use.guards)
            if not use.name or asked or (use.may_repeat and not _is_one_gradient(method, use.node)):
                continue
            one = all(each.exact and each.count == 1 for each in fn.outputs)
            effect = (
                "multiplying it raises TypeError, except by an int, where torch raises RuntimeError for the result"
                if use.may_repeat
                else f"using it as one tensor raises ({use.how})"
            )
            yield Finding(
                fn.span(use.node),
                f"`*{use.name}` is the tuple of all gradients; {effect}. "
                f"{f'Take `{use.name}` without the star' if one else 'Use its elements'}.",
            )
            return


def _sliced(
    fn: FunctionClass, method: Method, use: TupleUsedAsTensor, reported: set[SavedRead | Assigned]
) -> Iterator[Finding]:
    """A slice that is used as one tensor: where a name gets it, once, or at the use itself."""
    before = (each for each in method.assignments.get(use.name, ()) if each.order < use.order)
    bound = max(before, key=lambda each: each.order, default=None)
    if bound is None:
        what = "A slice of `saved_tensors` is a tuple, used as one tensor here"
        yield Finding(
            fn.span(use.node), f"{what} ({use.how}); this raises. Write an index instead.", related=way_to(fn, use)
        )
    elif bound not in reported and isinstance(bound.value, SavedTensors) and bound.value_node is not None:
        reported.add(bound)
        yield Finding(
            fn.span(bound.value_node),
            f"`{use.name}` is a slice of the saved tensors, a tuple; using it as one tensor raises ({use.how}, "
            f"{fn.line(use.node)}). Write an index instead of the slice.",
        )


def _is_one_gradient(method: Method, node: cst.CSTNode) -> bool:
    """Whether an expression is returned as the gradient for one input: then it may be no tuple either."""
    element = method.parents.get(node)
    whole = method.parents.get(element) if isinstance(element, cst.Element) else None
    return isinstance(whole, cst.Tuple) and isinstance(method.parents.get(whole), cst.Return)


def _remedy(fn: FunctionClass, method: Method, name: str) -> str:
    """Unpack the tensor, and save one first where forward certainly saves nothing."""
    saving = saving_call(method)
    if saved_counts(fn, saving) == frozenset({0}):
        return f"Call `{fn.storing_ctx}.{saving}` in `forward`, which saves nothing, and write `{name}, = ...`"
    if _may_be_one(fn, method):
        return f"Write `{name}, = ...`"
    return "Unpack it, or write an index"


def _may_be_one(fn: FunctionClass, method: Method) -> bool:
    """Whether forward saves one tensor, as far as is known."""
    calls = fn.context_calls(saving_call(method))
    counts = saved_counts(fn, saving_call(method))
    several = any(len(each.arguments) > 1 or any(slot.starred for slot in each.arguments) for each in calls)
    return 1 in counts if counts is not None else not several


def _unpacking(fn: FunctionClass, method: Method) -> str:
    """What to write where the tuple has no name."""
    saved = f"`{method.ctx_name}.saved_tensors`"
    return f"Write `(x,) = {saved[1:]} first" if _may_be_one(fn, method) else f"Unpack {saved}, or write an index"


def _bound_before(method: Method, use: TupleUsedAsTensor) -> SavedRead | None:
    """The last read of the tuple that was bound to the name."""
    bound = [read for read in method.facts.of(SavedRead) if read.bound_to == use.name and read.order < use.order]
    return bound[-1] if bound else None
