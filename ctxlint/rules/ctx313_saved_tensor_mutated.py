"""CTX313: backward modifies a saved input or output in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode import is_on
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.mutations import computes, through_data
from ctxlint.model.analyses.saved_state import Buffer, ChangedInBackward, changed_in_backward, restored_in_backward
from ctxlint.model.analyses.undefined_attributes import never_happens
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.summary import FILLED, KERNEL
from ctxlint.model.interpreter.values import SavedTensor, Tri, is_detached, storage
from ctxlint.model.syntax import code_of, words_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import fitting, quoted, under_flag
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Related
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class SavedTensorMutated(Rule[FunctionClass]):
    """
    ## What it does
    Reports an in-place modification, in `backward`, of a tensor from ctx that is an input or an output of `forward`. Code of another library
    modifies what it gets as `out=x`, and what it gets together with the incoming gradient, in a statement, if `backward` returns that and nothing else can have filled it.

    ## Why is this bad?
    A saved input or output is the caller's own tensor, not a copy. Grad mode is off in `backward`, so nothing is
    checked: the user's weight, or the activation that another layer still needs, silently changes its value. Torch
    raises RuntimeError only in a later backward that has saved the same tensor. Under `torch.enable_grad`, torch raises RuntimeError for a leaf that requires grad.

    A buffer of the caller, which `backward` fills or overwrites before it reads it, must not be saved either: a second
    backward raises `RuntimeError: one of the variables needed for gradient computation has been modified by an inplace
    operation`, and with hooks that give back another tensor, such as `save_on_cpu` on a GPU, nothing is written to the
    buffer. Store it as an attribute of ctx.

    A modification that `backward` itself reverts, such as `x.sub_(y)` and then `x.add_(y)`, has the same effect on a saved input:
    torch counts modifications, not values. The error also occurs in the backward pass of any other operation that saved that tensor.

    ## Example
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
            return x.mul_(2) * grad_output
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
            return x * 2 * grad_output
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported: an intermediate of `forward`, which may be overwritten to save memory; a tensor that is one of
    several, depending on the path; a modification of an output that a later one reverts; one
    that changes nothing, because `forward` has already done the same, such as `x.clamp_(max=1)`, or its kernel has stored the output
    through a parameter of the same name, unless the new values are computed from those that were there; a buffer stored as an attribute, if it is an input without gradient and `backward` either does not read what it writes
    or overwrites all of it before it reads it. Further modifications in the same class are notes of the first finding.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX313"
    name = "saved-tensor-mutated"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.backward
        if backward is None or backward.inherited or fn.saves_replaced:
            return
        for change, back, name in list(restored_in_backward(fn))[:1]:
            others = {_storage(each) for each in backward.facts.of(Mutation)} - {_storage(change)}
            several = any(isinstance(each, SavedTensor) for each in others)
            copies = "copies of what is saved" if several else "a copy"
            yield Finding(
                fn.span(change.node),
                f"`{change.doer}` modifies the saved input `{name}` in place; though `{back.doer}` restores it, torch raises RuntimeError "
                f"in a second backward, and in later backward passes of others that saved it. Work on {copies}.",
                related=at(fn, [back.node], f"`{back.doer}` restores it here"),
            )
        happening = (each for each in changed_in_backward(fn) if not never_happens(fn, backward, each.mutation))
        changes = sorted(happening, key=lambda each: fn.start(each.mutation.node))
        kinds = (None, *Buffer)
        kind_of = {
            each.name: min((other.buffer for other in changes if other.name == each.name), key=kinds.index)
            for each in changes
        }
        for kind in kinds:
            alike = [replace(each, buffer=kind) for each in changes if kind_of[each.name] is kind]
            for first in alike[:1]:
                same = [each.mutation for each in alike if each.name == first.name]
                counted = any(map(_is_counted, same))
                if kind is Buffer.SCRATCH and not counted:
                    continue  # nothing notices it, and nothing is lost
                noticed = counted if kind is not None else any(map(_is_noticed, same))
                yield Finding(
                    fn.span(first.mutation.node),
                    _message(fn, first, [each.name for each in alike], noticed=noticed),
                    related=(*way_to(fn, first.mutation), *_related(fn, alike[1:])),
                    rests_on=_written(first),
                )


def _storage(mutation: Mutation) -> Value | None:
    return storage(mutation.target) if mutation.target is not None else None


def _written(change: ChangedInBackward) -> tuple[Value, ...]:
    return (change.mutation.target,) if change.mutation.target is not None else ()


def _related(fn: FunctionClass, others: list[ChangedInBackward]) -> tuple[Related, ...]:
    notes = (at(fn, [each.mutation.node], f"`{each.mutation.doer}` modifies `{each.name}` here") for each in others)
    return tuple(note for found in notes for note in found)


def _is_counted(mutation: Mutation) -> bool:
    """Whether a modification is one by torch, which changes the version that a second backward compares."""
    return mutation.how not in (FILLED, KERNEL) and not through_data(mutation.target)


def _is_noticed(mutation: Mutation) -> bool:
    """Whether it certainly is one, whenever backward runs."""
    return _is_counted(mutation) and mutation.how.endswith(("_", "=")) and not mutation.guards


def _message(fn: FunctionClass, change: ChangedInBackward, alike: list[str], *, noticed: bool) -> str:
    """The finding about a change; ``noticed``: torch notices one of the changes of the same tensor.

    ``alike`` are the names of it and of others for which the same holds.
    """
    name = change.name
    if change.buffer is not None:
        in_part = change.mutation.how in (FILLED, KERNEL) or change.mutation.how.startswith("[")
        verb = "updates" if computes(change.mutation) else "writes to" if in_part else "fills"
        fact = f"{verb if change.buffer is Buffer.RESULT else 'overwrites'} the saved input `{name}`"
        lost = "hooks that give back another tensor silently lose the result" if change.buffer is Buffer.RESULT else ""
        effects = ", and ".join(filter(None, (lost, "a second backward raises RuntimeError" if noticed else "")))
        names = list(dict.fromkeys(alike))
        kept = (
            f"Keep {quoted(names)} on `{fn.reading_ctx}`" if len(names) > 1 else f"Keep it as `{fn.reading_ctx}.{name}`"
        )
        them = "them" if len(names) > 1 else "it"
        remedy = f"{kept} instead of saving {them}."
        if _reads_first(fn, change):
            remedy = f"Move the update of {quoted(names)} out of `{fn.backward.name if fn.backward else 'backward'}`."
        if change.buffer is Buffer.RESULT and computes(change.mutation):
            remedy = f"{kept} if the result is wanted, else make a new tensor."
        return f"`{change.mutation.doer}` {fact}; {effects}. {remedy}"
    partly = ", which `forward` returns on some paths" if change.partly else ""
    elsewhere = f"Write to a new tensor, or a copy if it is read first{_exception(fn, change)}"
    if change.mutation.how == KERNEL and change.saved and noticed:
        return (
            f"`{change.mutation.doer}` overwrites the saved {change.what} `{name}`{partly}; torch raises RuntimeError in a second "
            f"backward, and whatever else uses that tensor gets the new values. {elsewhere}."
        )
    if change.mutation.how == KERNEL:
        return (
            f"`{change.mutation.doer}` overwrites the {'saved' if change.saved else 'kept'} {change.what} `{name}`"
            f"{_condition(change) if change.chosen is not None or change.copier else ''}{partly}; whatever reads that "
            f"tensor later, also in a second backward, silently gets the new values. {elsewhere}."
        )
    if change.mutation.how == FILLED:
        overwrites = f"overwrites the {'saved' if change.saved else 'kept'} {change.what} `{name}`"
        start = f"`{change.mutation.doer}` {overwrites}{_condition(change)}{partly}; if torch does not count the write,"
        return fitting(
            f"{start} whatever else uses that tensor silently gets the new values. Write to a new tensor.",
            f"{start} other uses silently read it. Write to a new tensor.",
        )
    overwritten = change.mutation.how in operations.OVERWRITING - {"[...] ="}  # which may keep some elements
    advice = "Leave it unchanged" if change.left else "Write to a new tensor" if overwritten else "Work on a copy"
    if _adds_a_gradient(fn, change):
        advice = f"Call `{change.mutation.how}` on `torch.zeros_like({name})`"
    if change.left:
        advice += _exception(fn, change)
    if change.saved and _is_memory(fn, change):
        advice += f", or keep it as `{fn.reading_ctx}.{name}` if the caller wants that"
    kept = f"{'saved' if change.saved else 'kept'} {change.what} `{name}`{partly and f'{partly},'}"
    fact = f"`{change.mutation.doer}` modifies the {kept} in place"
    if _is_checked(fn, change):
        return (
            f"{fact}{_condition(change)} with grad mode on; torch raises RuntimeError if it is a leaf that requires grad, "
            f"else the caller's tensor silently has another value after backward. {advice}."
        )
    factor = _incoming_factor(fn, change)
    effect = "the caller's tensor has another value after backward"
    start = f"{fact}{_condition(change)};" + (f" unless `{factor}` is 1," if factor else "")
    if not _is_counted(change.mutation):
        return f"{start} {effect.replace('has', 'silently has', 1)}. {advice}."
    unnoticed = "if no later backward has" if factor else "unless a later backward has"
    return f"{start} {effect}, silently {unnoticed} saved it. {advice}."


def _reads_first(fn: FunctionClass, change: ChangedInBackward) -> bool:
    """Whether backward reads a tensor before it writes what other code has to it: a second one would read the new values.

    Another one would raise no error if the tensor were kept as an attribute.
    """
    backward, mutation = fn.backward, change.mutation
    if backward is None or change.buffer is not Buffer.RESULT or _needs_a_gradient(backward, mutation.node):
        return False
    uses = [each for each in backward.named.get(mutation.name or "", ()) if not backward.is_measured(each)]
    read = [each for each in uses if backward.around(each, cst.AssignTarget) is None]
    return any(backward.precedes(each, mutation.node) for each in read)


def _needs_a_gradient(backward: Method, node: cst.CSTNode) -> bool:
    """Whether the statement of a node uses incoming gradients, or what backward computes from them."""
    statement = backward.statement_around(node)
    names, seen = [*words_of(statement)] if statement is not None else [], set[str]()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            bound = backward.bound_to(name)
            names += words_of(bound) if bound is not None else ()
    return not seen.isdisjoint(each.name for each in backward.own_params)


def _incoming_factor(fn: FunctionClass, change: ChangedInBackward) -> str:
    """The incoming gradient with which backward multiplies the tensor: that of a loss is usually 1."""
    node = change.mutation.node
    if isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.MultiplyAssign):
        factor: cst.BaseExpression | None = node.value
    else:
        factor = (
            node.args[0].value if isinstance(node, cst.Call) and node.args and change.mutation.how == "mul_" else None
        )
    incoming = {each.name for each in fn.backward.own_params} if fn.backward is not None else set()
    return factor.value if isinstance(factor, cst.Name) and factor.value in incoming else ""


def _exception(fn: FunctionClass, change: ChangedInBackward) -> str:
    """What the change of an input may be for: a gradient buffer of several Functions, or a step of an optimizer."""
    if change.what != "input" or change.copier:
        return ""
    returned = {storage(slot.value) for each in fn.gradients for slot in each.slots}
    if change.mutation.how in (FILLED, KERNEL) and _storage(change.mutation) in returned - {None}:
        return ", unless this reuse of memory is meant"
    known = all(each.name != change.name or each.gradient is not Tri.UNKNOWN for each in fn.inputs)
    return "" if known else ", unless the update is meant"


def _adds_a_gradient(fn: FunctionClass, change: ChangedInBackward) -> bool:
    """Whether backward only adds an incoming gradient to a tensor, at indices, and returns that: its values do not belong there."""
    mutation, backward = change.mutation, fn.backward
    if mutation.how not in ("index_add_", "scatter_add_") or mutation.by or backward is None:
        return False
    given = mutation.node.args if isinstance(mutation.node, cst.Call) else ()
    incoming = {each.name for each in backward.own_params}
    written = [each for each in backward.facts.of(Mutation) if _storage(each) == _storage(mutation)]
    returned = [storage(slot.value) for each in fn.gradients for slot in each.slots]
    adds = any(isinstance(each.value, cst.Name) and each.value.value in incoming for each in given)
    return adds and written == [mutation] and _storage(mutation) in returned


def _is_memory(fn: FunctionClass, change: ChangedInBackward) -> bool:
    """Whether an input without a gradient may be for the next call: backward writes to some of its elements, in a loop."""
    of_items = change.mutation.in_loop and change.mutation.how.startswith("[...]")
    return of_items and any(each.name == change.name and each.gradient is Tri.NO for each in fn.inputs)


def _is_checked(fn: FunctionClass, change: ChangedInBackward) -> bool:
    """Whether backward modifies an input itself, no view of it, with grad mode on: torch refuses that for a leaf."""
    mutation, backward = change.mutation, fn.backward
    kept = kept_value(fn, mutation.target)
    direct = kept is not None and not is_detached(kept) and not mutation.by
    return backward is not None and direct and change.what == "input" and is_on(backward, mutation.node)


def _condition(change: ChangedInBackward) -> str:
    """When the modified tensor is the stored one: its layout, a conditional expression, a flag around the statement."""
    if change.copier:
        return f" unless `{change.copier}` copies it"
    if change.chosen is None:
        return under_flag(change.mutation)
    return f" {'if' if change.chosen.holds else 'unless'} `{code_of(change.chosen.test)}`"
