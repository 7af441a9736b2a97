"""CTX301: an input or output stored in an attribute of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.saving import save_instead
from ctxlint.model.analyses.arrays_on_ctx import arrays_on_ctx
from ctxlint.model.analyses.attribute_uses import released_explicitly
from ctxlint.model.analyses.certain_raises import backward_raises
from ctxlint.model.analyses.deliberate_gradients import refuses_to_save
from ctxlint.model.analyses.given_results import given_results_on_ctx
from ctxlint.model.analyses.saved_state_uses import uses_of_kept
from ctxlint.model.analyses.stashes import Held, Stash, moved_to_cpu, stashes
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import NONE, Kind, Parameter, Sequence, Tri, is_tensor, kind_of, leaves
from ctxlint.model.syntax import signed_integer, single_index, words_of
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import merged, reads_of, way_to
from ctxlint.rules.stash_wording import metadata_clause, remedy, saved_codes
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class TensorStashedOnCtx(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.a = t` if `backward` reads `ctx.a` and `t` is an input that gets a gradient, or an output. Tuples,
    lists and dicts that hold such a tensor count as well, and so do an output in an attribute that nothing in the file
    reads, also if it is `y.cpu()`, and the NumPy array of an input, `x.detach().cpu().numpy()`, which shares memory with it on the CPU.

    ## Why is this bad?
    Autograd provides `save_for_backward` for these tensors. An attribute

    - holding an input is not checked: if the tensor is modified in place between forward and backward, the gradient is
      silently wrong; a saved tensor raises `RuntimeError: one of the variables needed for gradient computation has been
      modified by an inplace operation`;
    - is not seen by saved-tensor hooks: `save_on_cpu` does not move it, and checkpointing does not free it;
    - holding an output creates a reference cycle, output → grad_fn → ctx → output, which only the cyclic garbage
      collector frees, together with everything that the graph holds; a chain of Functions takes one collection for each
      of them. A *view* of an output is never freed, nor is an output that is modified in place later. With torch 2.13,
      two kept outputs of one call are never freed either.

    This holds from torch 1.13 to 2.15.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.y
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

    The message says that modifications "silently give wrong gradients" if `backward` certainly computes with the values, and
    that they "go unnoticed" if it only tests them, or passes the tensor to code that ctxlint does not know. Where
    another view of the tensor is saved and `backward` unpacks it, torch notices them, and so does a `backward` that compares `_version`.

    If `backward` does not read the values of an input but, for example, only its shape, the gradients are right, but
    the whole tensor stays alive. Store the shape instead: saving the tensor would turn a legal in-place operation into
    an error.

    ## Fix safety
    The tensor is added to the existing `save_for_backward`, or to a new one, and `backward` unpacks it. Offered only if
    the attribute and the save are written once, on every path through `forward`, and `backward` unpacks all saved
    tensors at once before it reads the attribute. There is no fix for containers, inputs with a default that is not a
    tensor or with the name of a number, such as `num_bits`, views of outputs, `.data` of what is not saved, tensors that `forward` modifies afterwards, attributes that `jvp` reads, if `backward`
    reads no values, or if ctx is passed to another function.

    Unsafe if `backward` passes the tensor to a call that may store it or compare its identity: under saved-tensor
    hooks, unpacking returns a different object, and a gradient attached to it is lost. Also unsafe for the `.data` of a
    tensor that is saved, as a second derivative then depends on that, if only an annotation says that it is a tensor, and if `backward` uses
    the tensor only under a condition: unpacking always checks whether it was modified. Otherwise safe, with exceptions
    that every saved tensor has: a second `backward()` without `retain_graph` raises, and so does an input that is
    modified in place before `backward`, that was created under `torch.inference_mode()`, or that is a number in a call
    without `backward`.

    ## Known limits
    An input counts if `backward` returns a gradient for it that is not just zeros. Index tensors, masks, frozen weights
    and other inputs whose gradient is `None` are left to CTX327; a buffer that `backward` writes to may be stored on ctx, and so may a
    tensor of which `backward` only tests `is None` or reads an attribute that the program set, or that it only passes
    to a function of the project that keeps the object itself, in a list or by setting an attribute on it, or to a method
    that gets nothing else and whose result is dropped, such as `engine.use(ctx.weight)`. What a callable of the
    caller returns, `y = run(x)` for an argument `run`, may be `x`: it counts only if it is all that `forward` returns, and `backward`
    takes one gradient, as either is to be saved. Not reported is a tensor that is saved as another view, such as `weight.detach()`, which `backward` unpacks, if it only passes the tensor on, a
    weight or bias of which `backward` only reads `requires_grad`, and what a docstring or comment says is not saved on purpose. Nor if a nested
    function replaces or deletes what `forward` stored, under a condition on the torch version, or under one that a
    tensor has no elements.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    - [Reference cycle through ctx](https://github.com/pytorch/pytorch/issues/25340)
    """

    code = "CTX301"
    name = "tensor-stashed-on-ctx"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        yield from merged(self.each(fn), "and here")

    def each(self, fn: FunctionClass) -> Iterator[Finding]:
        """A finding for each assignment."""
        found = tuple(each for each in stashes(fn) if each.held is not Held.UNDIFFERENTIATED)
        if found and refuses_to_save(fn):
            return
        copied = any(decorator.copies for method in fn.context_methods for decorator in method.decorators)
        for stash in found:
            if copied and stash.held is Held.INPUT:
                continue
            freed = released_explicitly(fn, stash.write.attribute)
            if stash.held is Held.COMPUTED or (freed and stash.held is Held.INPUT and stash.uses.only_metadata):
                continue
            if _are_trained(stash):
                continue
            related = (*way_to(fn, stash.write), *reads_of(fn, stash.write.attribute))
            yield Finding(
                fn.span(stash.write.node),
                _message(stash, found),
                save_instead(fn, stash),
                related,
                stash.rests_on,
            )
        given = [*given_results_on_ctx(fn)]
        for write in given if given and not refuses_to_save(fn) else ():
            until = "backward or " * released_explicitly(fn, write.attribute)
            unread = write.attribute not in fn.reads_by_attribute
            uses = uses_of_kept(fn, write.attribute, contained=False)
            asked = uses.only_metadata and len(uses.metadata) + len(uses.tests)
            needed = (
                f"Keep only what `{fn.backward.name}` reads of it"
                if asked and fn.backward
                else "Use `save_for_backward`"
            )
            yield Finding(
                fn.span(write.node),
                f"`{fn.storing_ctx}.{write.attribute}` keeps an output, unless that is an input as it came; this reference cycle "
                f"keeps the graph alive until {until}the garbage collector frees it. {'Drop it' if unread else needed}.",
                related=reads_of(fn, write.attribute),
            )
        for each in arrays_on_ctx(fn):
            kept, name = f"`{fn.storing_ctx}.{each.write.attribute}`", each.input.name
            effect = "go unnoticed" if backward_raises(fn) else "silently give wrong gradients"
            yield Finding(
                fn.span(each.write.node),
                f"{kept} shares memory with the input `{name}` if that is on the CPU; in-place modifications "
                f"{effect}. Save `{name}` with `save_for_backward`, and convert it in `backward`.",
                related=reads_of(fn, each.write.attribute),
            )


def _are_trained(stash: Stash) -> bool:
    """Whether backward only asks for the flag of a weight or bias: as a parameter, that stays in memory anyway."""
    named = all(name.endswith(("weight", "bias")) for name in stash.names)
    return (
        stash.held is Held.INPUT
        and bool(stash.names)
        and named
        and stash.uses.only_metadata
        and stash.uses.metadata == {"requires_grad"}
    )


_LONGEST = 40


def _message(stash: Stash, found: tuple[Stash, ...]) -> str:
    attribute, them = (
        f"`{stash.fn.storing_ctx}.{stash.write.attribute}`",
        "them" if _are_several(stash) else "it",
    )
    if stash.held is Held.OUTPUT_VIEW:
        view = "Save the output with `save_for_backward`, and take the view in `backward`."
        advice = remedy(stash) if stash.uses.only_metadata else view
        return (
            f"{attribute} keeps a view of an output{_paths(stash)}{metadata_clause(stash)}; "
            f"this reference cycle is never freed. {advice}"
        )
    if stash.held is Held.OUTPUT:
        what = f"{len(stash.outputs)} outputs" if len(stash.outputs) > 1 else f"an output{_paths(stash)}"
        what += " if that is on the CPU, where `cpu()` does not copy it" if moved_to_cpu(stash.write.value) else ""
        effect = _cycle(stash, found)
    else:
        several = "inputs" if them == "them" else "input"
        named = " or ".join(f"`{name}`" for name in stash.names) if stash.one_of else quoted(stash.names)
        what = f"the {several} {named}{_paths(stash)}"
        stays = f"{'they stay' if them == 'them' else 'it stays'} in memory as long as the graph"
        if stash.uses.only_metadata:
            effect = stays
        elif stash.is_noticed or _checks_versions(stash.fn):
            what += _saved(stash) if stash.is_noticed else ""
            effect = f"{stays}, and saved-tensor hooks do not see {them}"
        elif stash.uses.computes and not backward_raises(stash.fn):
            effect = f"in-place modifications silently give wrong gradients, and saved-tensor hooks do not see {them}"
        else:
            effect = f"in-place modifications go unnoticed, and saved-tensor hooks do not see {them}"
    return f"{attribute} keeps {what}{metadata_clause(stash)}; {effect}. {remedy(stash)}"


def _checks_versions(fn: FunctionClass) -> bool:
    """Whether backward itself asks if a tensor was modified: ``ctx.x._version != ctx.version``."""
    reads = (node for method in fn.reading_methods for node in method.nodes_of(cst.Attribute))
    return any(node.attr.value == "_version" for node in reads)


def _saved(stash: Stash) -> str:
    """What is saved of the same memory."""
    if stash.originals_are_saved:
        return f", which {'are' if _are_several(stash) else 'is'} saved"
    codes = saved_codes(stash)
    verb = "is" if len(codes) == 1 else "are"
    return f", of which {quoted(codes)} {verb} saved" if 0 < sum(map(len, codes)) <= _LONGEST else ""


def _are_several(stash: Stash) -> bool:
    """Whether it keeps several inputs, or those of ``*args``."""
    return (len(stash.names) > 1 and not stash.one_of) or any(name.startswith("*") for name in stash.names)


def _paths(stash: Stash) -> str:
    """On which paths the attribute keeps that."""
    if stash.on_some_paths or (stash.held is Held.OUTPUT and _is_returned_on_some_paths(stash)):
        return " on some paths"
    kept = stash.write.value
    if stash.held is Held.OUTPUT and not stash.contained and kept is not None and NONE in kept.options():
        return " where that is not `None`"
    return ", depending on the path" if stash.one_of else ""


def _is_returned_on_some_paths(stash: Stash) -> bool:
    """Whether forward returns what is kept on some paths only, and something else on others."""
    kept = stash.write.value
    every = [each for each in stash.fn.outputs if each.value != NONE]
    if stash.contained or kept is None or any(not each.known for each in every):
        return False
    certain = [any({*slot.value.options()} == {kept} for slot in each.slots) for each in every]
    possible = [any(kept in slot.value.options() for slot in each.slots) for each in every]
    return any(possible) and not all(certain)


def _cycle(stash: Stash, found: tuple[Stash, ...]) -> str:
    """When the reference cycle of a stored output is freed: with two of them, the garbage collector frees none."""
    freed = released_explicitly(stash.fn, stash.write.attribute)
    outputs = {output for each in found for output in each.outputs}
    still_kept = {
        output for each in found if not released_explicitly(each.fn, each.write.attribute) for output in each.outputs
    }
    if len(outputs) > 1 and stash.outputs:
        before = " before backward runs" if freed or len(still_kept) < 2 else ""
        return f"{'' if len(stash.outputs) > 1 else 'with two outputs, '}this reference cycle is never freed{before}"
    if _of_unknown_number(stash):
        first = "without backward, " if freed else ""
        return (
            f"{first}this reference cycle is freed only by the garbage collector, and never if several outputs are kept"
        )
    return f"this reference cycle keeps the graph alive until {'backward or ' * freed}the garbage collector frees it"


def _of_unknown_number(stash: Stash) -> bool:
    """Whether the attribute keeps an unknown number of outputs: backward may get several gradients."""
    value, backward = stash.write.value, stash.fn.backward
    if backward is not None and backward.signature_known and _takes_one(stash.fn, backward):
        return False
    if _may_keep_another(stash):
        return True
    if isinstance(value, Sequence):
        return not value.exact
    returned = [each.value for each in stash.fn.outputs if not (each.known and each.exact)]
    return value is not None and any(option in returned for option in value.options())


def _takes_one(fn: FunctionClass, backward: Method) -> bool:
    """Whether backward takes one gradient; or uses the first of ``*grads`` alone, if forward is annotated as a tensor."""
    if backward.variadic is None:
        return len(backward.positional) == 1
    uses = [
        backward.parents[each] for each in backward.named.get(backward.variadic.name, ()) if each in backward.parents
    ]
    items = [each for each in uses if not isinstance(each, cst.Param)]
    first = (each for each in items if isinstance(each, cst.Subscript) and signed_integer(single_index(each)) == 0)
    returns = fn.forward.node.returns if fn.forward is not None else None
    words = {*words_of(returns)} if returns is not None else set()
    one = "Tensor" in words and words.isdisjoint(("tuple", "list", "Tuple", "List", "Sequence"))
    return one and not backward.positional and 0 < len(items) == sum(1 for _ in first)


def _may_keep_another(stash: Stash) -> bool:
    """Whether ctx keeps two of the returned values that may be tensors with a gradient; one certainly is."""
    fn = stash.fn
    marked = {argument.value for call in fn.context_calls("mark_non_differentiable") for argument in call.arguments}
    returned = {
        option
        for option in fn.outputs_values()
        if is_tensor(option) is not Tri.NO and kind_of(option) is not Kind.INTEGRAL and option not in marked
    }
    stored = {leaf for write in fn.context_writes if write.value is not None for leaf in leaves(write.value)}
    return len({each for each in returned & stored if not isinstance(each, Parameter)}) > 1
