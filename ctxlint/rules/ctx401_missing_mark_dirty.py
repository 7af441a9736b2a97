"""CTX401: forward modifies an input in place without marking it dirty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.in_place import mark_dirty
from ctxlint.model.analyses.conditional_writes import (
    condition_of,
    input_written_if_converted,
    input_written_if_permuted,
)
from ctxlint.model.analyses.deliberate_gradients import works_in_place
from ctxlint.model.analyses.mutations import (
    data_modified,
    input_written,
    inputs_reshaped,
    marked_dirty,
    may_be_marked,
    of_integers,
    on_a_temporary,
    only_fills,
    returns_memory_of,
    used_as_index,
    without_gradient,
)
from ctxlint.model.analyses.outputs import gradient_is_read, marked_non_differentiable
from ctxlint.model.analyses.passed_through import is_identity
from ctxlint.model.analyses.undefined_attributes import happening_mutations, never_happens
from ctxlint.model.analyses.upstream import is_read_instead
from ctxlint.model.analyses.variadic_inputs import element_written, elements_named
from ctxlint.model.function import FunctionClass, Mutation
from ctxlint.model.interpreter.events import ContextCall, GradientFlag
from ctxlint.model.interpreter.summary import FILLED
from ctxlint.model.interpreter.values import Fresh, Kind, Tri, kind_of, usual_storage
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import quoted, under_flag, unless_copied
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Item, Parameter, Value


class MissingMarkDirty(Rule[FunctionClass]):
    """
    ## What it does
    Reports in-place modifications in `forward` of an input that gets a gradient, or that is returned, without
    `mark_dirty`: in-place methods, `op=`, item assignment, `out=`, `inplace=True`, `torch.distributed.all_reduce`. A view
    of the input counts as the input, and so do `contiguous()` and `reshape`. The contiguous view of a permuted input,
    `x.transpose(1, 2).contiguous()`, is the input itself if that is permuted already: reported if `forward` returns the
    result permuted back, since each output of a call is such an input of the next. So is `x.float()` if `x` is float32,
    and what converts to another dtype by its name; where only one path converts, the other modifies tensors of any dtype.
    `inplace=True` means that a function modifies its first argument, and `out=x` that it writes to `x`, also one of another library.
    An input that gets a gradient is also reported if its values are replaced through `.data` by a result:
    `x.data.round_()`, `x.data = x.round()`. And so is an input whose own shape changes: `x.unsqueeze_(0)`.

    ## Why is this bad?
    Autograd runs `forward` without recording, so it does not see the modification. A leaf that requires grad is
    overwritten without the usual error, `a leaf Variable that requires grad has been used in an in-place operation`.
    And if the caller continues with the tensor that it passed in instead of the returned one, the backward of this
    Function is bypassed: the gradient is silently wrong. If `backward` returns its incoming gradient as it came, such a
    caller only reads other values than it passed in.

    ## Example
    ```python
    import torch


    class Double_(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double_(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    The mark is added if `forward` takes ctx, modifies the input on every path, and returns the input itself, and
    nothing else, on every path: with several outputs, a marked input that is a view raises. It is not added if
    `forward` has saved the input before, and it is not only a buffer for the output, or if a call passes what looks like a leaf that requires grad, such as a
    parameter: a mark raises for it; nor if it passes an attribute of another object, which may be one. The fix is unsafe: calls on a leaf that requires grad then raise, as they should, and so
    does backward if the operation that computed the input has saved it, as `tanh` does: there, only a copy helps. A
    second backward through a buffer that is kept between calls raises as well, because the mark makes the buffer part
    of the first graph. Nor is it added if the name of the Function or a
    docstring says that it works in place, and `backward` returns the gradient as it came: it may be there for leaves.
    Nor if `backward` reads the buffer instead of the incoming gradient: the backward of
    another Function may have written the gradient there.

    ## Known limits
    Else, a compiled kernel that writes to an input is not detected, nor is a helper outside the project, unless it is called with
    `inplace=True` or `out=`. Inputs without a
    gradient, such as running statistics, may be modified unless they are returned. Integer tensors, which never have a
    gradient, may always be modified. Not reported if a call passes `x.data` or `x.detach()` as that input, also to a
    function of a module that hands it on to `apply`, if what `x.float()` returns is modified under a test of the dtype or in a method that asserts one, if the ctx is passed to a function that is not known, which may
    mark the input, or if a test checks for gradients first. Values that come from elsewhere through `.data` are not
    reported either: `x.data.copy_(y)`, `x.data[0] = y`; but `x.data[x > 1] = 1` is.

    ## References
    - [FunctionCtx.mark_dirty](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_dirty.html)
    """

    code = "CTX401"
    name = "missing-mark-dirty"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward = fn.forward
        marked = marked_dirty(fn)
        if forward is None or forward.inherited or not forward.arguments_known or marked is None or not fn.gradients:
            return
        changed: dict[int, tuple[Parameter, Mutation]] = {}
        conditional: dict[int, tuple[Parameter, Mutation]] = {}
        for mutation in happening_mutations(fn, forward):
            tensor = input_written(mutation)
            found = changed if tensor is not None else conditional
            tensor = tensor or input_written_if_permuted(fn, mutation) or input_written_if_converted(fn, mutation)
            if tensor is None or tensor in marked or tensor.index in found or tensor.index >= len(fn.inputs):
                continue
            if (
                of_integers(mutation)
                or on_a_temporary(mutation)
                or without_gradient(mutation)
                or _given_detached(fn, tensor)
            ):
                continue
            if fn.inputs[tensor.index].surely_differentiable or _comes_back(fn, tensor, mutation):
                found[tensor.index] = tensor, mutation
        yield from _findings_of_elements(fn, forward, marked)
        yield from _findings_of_shapes(fn, forward, marked)
        yield from _findings_of_data(fn, forward, marked | {tensor for tensor, _mutation in changed.values()})
        for at in {mutation.node: None for _tensor, mutation in changed.values()}:
            together = [each for each in changed.values() if each[1].node is at]
            tensor, mutation = together[0]
            alone = len(together) == 1
            yield Finding(
                fn.span(mutation.node),
                _message(fn, tensor, mutation) if alone else _message_of_several(fn, together),
                mark_dirty(fn, forward, mutation, tensor)
                if alone and _is_fixed_by_mark(fn, tensor, mutation)
                else None,
                way_to(fn, *(each for _tensor, each in together)),
                rests_on=(mutation.target,) if mutation.target is not None else (),
            )
        others = [each for index, each in conditional.items() if index not in changed]
        for place in {(mutation.node, condition_of(mutation)): None for _tensor, mutation in others}:
            together = [each for each in others if (each[1].node, condition_of(each[1])) == place]
            tensor, mutation = together[0]
            message = _message_if_not_copied([each.name for each, _mutation in together], mutation)
            yield Finding(fn.span(mutation.node), message, related=way_to(fn, *(each for _tensor, each in together)))


def _findings_of_data(fn: FunctionClass, forward: Method, known: frozenset[Value]) -> Iterator[Finding]:
    """A finding for each input that forward modifies through ``.data``, at the first place."""
    seen = set(known)
    for tensor, event, fact in data_modified(forward):
        if never_happens(fn, forward, event):
            continue
        if tensor in seen or without_gradient(event) or _given_detached(fn, tensor) or tensor.index >= len(fn.inputs):
            continue
        if not fn.inputs[tensor.index].surely_differentiable or kind_of(tensor) is Kind.INTEGRAL:
            continue
        seen.add(tensor)
        yield Finding(
            fn.span(event.node),
            f"{fact}; the caller's tensor is silently overwritten, and torch does not notice if the backward of another "
            f"operation needs the old values. Work on a new tensor.",
        )


def _findings_of_shapes(fn: FunctionClass, forward: Method, marked: frozenset[Value]) -> Iterator[Finding]:
    """A finding for each input whose own shape forward changes, at the first place."""
    seen = set(marked)
    for tensor, event in inputs_reshaped(forward):
        if tensor in seen or never_happens(fn, forward, event) or _given_detached(fn, tensor):
            continue
        seen.add(tensor)
        yield Finding(
            fn.span(event.node),
            f"`{event.how}` changes the shape of the input `{tensor.name}` itself; the caller's tensor silently keeps the new "
            f"shape. Use `{event.how.removesuffix('_')}`, and continue with its result.",
        )


def _findings_of_elements(fn: FunctionClass, forward: Method, marked: frozenset[Value]) -> Iterator[Finding]:
    """A finding for each statement that modifies elements of ``*args``; each element once."""
    found: dict[cst.CSTNode, dict[Item, Mutation]] = {}
    seen: set[object] = set()
    for mutation in happening_mutations(fn, forward):
        element = element_written(fn, mutation)
        if element is None or marked & {element, element.of} or of_integers(mutation) or without_gradient(mutation):
            continue
        key = element.key if isinstance(element.key, int) else None
        if not seen & {key, None}:
            seen.add(key)
            found.setdefault(mutation.node, {})[element] = mutation
    for node, elements in found.items():
        related = way_to(fn, *elements.values())
        yield Finding(fn.span(node), _message_of_elements(fn, elements), related=related)


def _message_of_elements(fn: FunctionClass, elements: dict[Item, Mutation]) -> str:
    names = elements_named(elements)
    (element, mutation), *more = elements.items()
    several = bool(more) or names[0].startswith("*")
    leaves = "leaves are" if several else "a leaf is"
    copies = "copies" if several else f"`{names[0]}.clone()`"
    mark = (
        f"Call `{fn.storing_ctx}.mark_dirty({names[0]})` if it is no leaf and not saved before, else work"
        if may_be_marked(fn, element)
        else "Work"
    )
    return (
        f"`{mutation.doer}` modifies the input{'s' * several} {quoted(names)} in place without `mark_dirty`; {leaves} silently "
        f"overwritten, and {_uses(fn, elements, 'the inputs' if several else 'the input')}. {mark} on {copies}."
    )


def _uses(fn: FunctionClass, tensors: Iterable[Value], of: str) -> str:
    """What becomes of others that use the inputs: only what forward returns leads to this backward."""
    if any(returns_memory_of(fn, each) for each in tensors):
        return f"later uses of {of} silently bypass this `backward`"
    return f"later uses of {of} silently read the new values"


def _comes_back(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether forward returns an input that is certainly a tensor, and what it returns may get a gradient."""
    entry = fn.inputs[tensor.index]
    in_place = mutation.how in operations.INPLACE_METHODS or mutation.how in operations.IN_PLACE_COLLECTIVES
    in_place = in_place or mutation.how in ("out=", FILLED)
    if not returns_memory_of(fn, tensor) or not (entry.is_tensor is Tri.YES or in_place):
        return False
    return (entry.gradient is not Tri.NO or _is_differentiable_output(fn, tensor)) and not used_as_index(fn, tensor)


def _given_detached(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether a known call passes the input without its graph: ``Fn.apply(weight.data)`` is meant to modify it."""
    return any(tensor.index in call.detached for call in fn.calls)


def _given_a_leaf(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether a known call passes what looks like a leaf that requires grad: there, a mark raises."""
    return any(tensor.index in call.leaves and not call.gradients_off for call in fn.calls)


def _mark_helps(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether ``mark_dirty`` is all that is missing."""
    return may_be_marked(fn, tensor) and not _needs_more(fn, tensor, mutation)


def _is_fixed_by_mark(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether ``mark_dirty`` is all that is missing at each call in view: none passes what another object may keep."""
    stored = any(tensor.index in call.stored for call in fn.calls)
    return _mark_helps(fn, tensor, mutation) and not stored and not _may_be_for_leaves(fn, tensor)


def _may_be_for_leaves(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether a Function may be there to modify leaves, such as weights that it clips, and to pass the gradient on.

    A mark changes nothing for others then, and raises for leaves.
    """
    return is_identity(fn, tensor.index) and works_in_place(fn)


def _gets_what_is_computed(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether a call in view passes the result of an operation, which must not be modified before ``apply``."""
    at = tensor.index
    unnamed = (each for each in fn.calls if each.applies and at < len(each.names) and not each.names[at])
    return any(at not in (*each.frozen, *each.leaves, *each.created, *dict(each.modifiable)) for each in unnamed)


def _needs_more(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether a mark raises, or is not all that is missing."""
    return (
        _given_a_leaf(fn, tensor)
        or any(tensor.index in call.created for call in fn.calls)
        or _made_a_leaf(fn, tensor)
        or _saved_before(fn, tensor, mutation)
        or is_read_instead(fn, tensor)
    )


def _made_a_leaf(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether forward switches ``requires_grad`` of the input: a mark then raises as for any leaf."""
    flags = fn.forward.facts.of(GradientFlag) if fn.forward is not None else ()
    return any(each.switched and each.value == tensor for each in flags)


def _saved_before(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether forward has saved the input: backward reads what the modification leaves, and torch does not notice.

    A buffer for the output, which gets no gradient, is meant to be filled first: only its new values mean anything.
    """
    if fn.inputs[tensor.index].gradient is Tri.NO and returns_memory_of(fn, tensor) and only_fills(mutation):
        return False
    calls = fn.forward.facts.of(ContextCall) if fn.forward is not None else ()
    saves = (call for call in calls if call.method == "save_for_backward" and mutation.may_follow(call))
    return any(usual_storage(each.value) == tensor for call in saves for each in call.arguments)


def _kept_for_backward(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether the new values of an input are meant for backward alone: forward saves them, and does not return them."""
    if returns_memory_of(fn, tensor):
        return False
    calls = fn.forward.facts.of(ContextCall) if fn.forward is not None else ()
    saves = (call for call in calls if call.method == "save_for_backward" and call.may_follow(mutation))
    return any(usual_storage(each.value) == tensor for call in saves for each in call.arguments)


def _is_differentiable_output(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether an input without a gradient leads to an output that has one."""
    hidden = marked_non_differentiable(fn)
    leads = any(each.surely_differentiable for each in fn.inputs)
    wanted = may_be_marked(fn, tensor) or gradient_is_read(fn, tensor)
    return leads and wanted and hidden is not None and tensor not in hidden


def _message_of_several(fn: FunctionClass, changed: list[tuple[Parameter, Mutation]]) -> str:
    names = quoted(tensor.name for tensor, _mutation in changed)
    unless = unless_copied(*(mutation for _tensor, mutation in changed))
    return (
        f"`{changed[0][1].doer}` modifies the inputs {names} in place{unless and f'{unless},'} without `mark_dirty`; leaves are silently overwritten, "
        f"and {_uses(fn, [tensor for tensor, _mutation in changed], 'the inputs')}. Work on copies."
    )


def _message_if_not_copied(names: list[str], mutation: Mutation) -> str:
    """For inputs that may be copied: they are not if they have the layout of the output, or the dtype, or on some paths."""
    modifies, several = f"`{mutation.doer}` modifies", len(names) > 1
    condition = condition_of(mutation, "the outputs are" if several else "the output is", several)
    inputs = f"inputs {quoted(names)}" if several else f"input `{names[0]}`"
    leaves = "leaves are" if several else "a leaf is"
    copies, its = ("copies", "their") if several else (f"`{names[0]}.clone()`", "its")
    if condition.startswith(" unless"):
        how = f"in place{condition}, without `mark_dirty`; {leaves}"
    else:
        how = f"in place without `mark_dirty`{condition}; {leaves} then"
    return f"{modifies} the {inputs} {how} silently overwritten, and {its} later uses read the new values. Work on {copies}."


def _message(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> str:
    name = tensor.name
    where = "" if fn.setup_context is None else " in `setup_context`"
    buffer = fn.inputs[tensor.index].gradient is Tri.NO
    otherwise = (
        " if each call gets a new tensor, else work" if buffer else " if it is no leaf and not saved before, else work"
    )
    markable = _mark_helps(fn, tensor, mutation)
    if buffer and not markable:  # torch refuses the mark of a view if there are other outputs
        markable = gradient_is_read(fn, tensor) and not _needs_more(fn, tensor, mutation)
    if not markable and _is_asked_for(fn, tensor, mutation):
        where, markable = " there", True
    remedy = f"Call `{fn.storing_ctx}.mark_dirty({name})`{where}{otherwise}" if markable else "Work"
    if markable and _may_be_for_leaves(fn, tensor) and not _gets_what_is_computed(fn, tensor):
        remedy = remedy.removesuffix("work") + "modify it before `apply`, under `torch.no_grad()`"
    else:
        remedy += f" on `{name}.clone()`"
    unless = f"{unless_copied(mutation)}," if unless_copied(mutation) else ""
    leaf = "" if buffer else "a leaf is silently overwritten, and "
    effect, also = f"later uses of `{name}` silently bypass this `backward`", ""
    if is_read_instead(fn, tensor):
        leaf, effect = "", f"{effect}, which does not use the values of {_incoming(fn)}"
        also = f", use {_incoming(fn)}, and change Functions that share `{name}`"
    elif _saved_before(fn, tensor, mutation):
        leaf, effect = leaf.replace("silently ", ""), "the saved tensor silently has the new values"
        also = ", and save the one that `backward` needs"
    elif _kept_for_backward(fn, tensor, mutation):
        effect, also = (
            f"later uses of `{name}` silently read the new values",
            ", unless no other use or backward needs the old values",
        )
    elif not returns_memory_of(fn, tensor) or is_identity(fn, tensor.index):
        effect = f"later uses of `{name}` silently read the new values"
    when = unless or under_flag(mutation)
    may_be_meant = _given_a_leaf(fn, tensor) or _clips_a_weight(fn, tensor, mutation)
    before = ", or modify it before `apply`, under `torch.no_grad()`" if may_be_meant and not also else ""
    return f"`{mutation.doer}` modifies the input `{name}` in place{when} without `mark_dirty`; {leaf}{effect}. {remedy}{also or before}."


def _clips_a_weight(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether forward may be meant to clip the weight itself, of which it returns something else."""
    return mutation.how.startswith(("clamp", "clip")) and not returns_memory_of(fn, tensor)


def _is_asked_for(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> bool:
    """Whether forward modifies and returns an input only under a flag ``inplace``: a copy would defeat it."""
    asked = any(guard.holds and (guard.mentions("inplace") or guard.mentions("in_place")) for guard in mutation.guards)
    options = [option for value in fn.outputs_values() for option in value.options()]
    plain = all(each == tensor or isinstance(each, Fresh) for each in options) and tensor in options
    only = all(each.count == 1 for each in fn.outputs) and not fn.context_calls("mark_dirty")
    return asked and plain and only and not _needs_more(fn, tensor, mutation)


def _incoming(fn: FunctionClass) -> str:
    """The incoming gradients of backward."""
    names = [param.name for param in fn.backward.own_params] if fn.backward is not None else []
    return f"`{names[0]}`" if len(names) == 1 and not names[0].startswith("_") else "the incoming gradient"
