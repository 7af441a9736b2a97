"""CTX404: backward modifies an incoming gradient in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.in_place import copy_gradient
from ctxlint.model.analyses.conditional_writes import (
    condition_of,
    gradient_written_if_converted,
    gradient_written_if_permuted,
)
from ctxlint.model.analyses.later_reads import is_shared_before, wants_old_values
from ctxlint.model.analyses.mutations import (
    gradient_written,
    gradient_written_on_a_path,
    on_a_temporary,
    refuses_expanded,
    through_expansion,
)
from ctxlint.model.analyses.saved_state import chosen_gradient
from ctxlint.model.analyses.undefined_attributes import happening_mutations
from ctxlint.model.function import FunctionClass, Mutation
from ctxlint.model.syntax import code_of, is_name
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted, under_flag, unless_copied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class ModifiedGradOutput(Rule[FunctionClass]):
    """
    ## What it does
    Reports in-place modifications of an incoming gradient in `backward` and `vjp`: in-place methods, `op=`, item
    assignment, `out=`, `inplace=True`, `torch.distributed.all_reduce`. An alias or a view of the gradient, `contiguous()`
    and `reshape` count as the gradient. The contiguous view of a permuted gradient is the gradient itself if that is permuted already:
    reported if `backward` returns the result permuted back.

    ## Why is this bad?
    Autograd passes the same tensor to every consumer of a gradient. In `y = F(x); loss = (y + other).sum()`, the branch
    of `other` gets the modified values, and so does a caller's tensor that was passed to `backward(...)`. Nothing
    checks this; `gradcheck` passes. The gradient that `sum()` sends back is an expanded tensor: writing one element, or
    those of a mask, writes all of them, and most in-place methods and slices raise `RuntimeError: unsupported operation: more than one element of
    the written-to tensor refers to a single memory location`.

    ## Example
    ```python
    import torch


    class ClippedIdentity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = grad_output
            grad_input[x.abs() > 1] = 0
            return grad_input
    ```

    ## Use instead
    ```python
    import torch


    class ClippedIdentity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output.masked_fill(x.abs() > 1, 0)
    ```

    ## Fix safety
    Unsafe: the out-of-place form, or a `.clone()` before the modification, costs memory that the author may have meant
    to save. There is no fix where later code reads the gradient as if it were unmodified.

    ## Known limits
    A compiled kernel that writes to a gradient is not detected, nor is a helper outside the project, unless it is called with
    `inplace=True`. Not reported if
    the gradient may be a copy: after a conversion, except to a dtype by its name without a test of the dtype around both or an assertion about one, or if one branch copies it. If one branch replaces it
    with a product or a sum, the others are still checked. Nor is a modification of all of `grad.expand(...)`, which raises. Where a flag decides whether a result uses the memory of the
    gradient, only its default is checked.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX404"
    name = "modified-grad-output"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if "boxed_grads_call" in fn.class_attributes:
            return  # backward gets one list of all gradients, which is its own
        for name in ("backward", "vjp"):
            method = fn.methods.get(name)
            if method is None or method.inherited or not method.arguments_known:
                continue
            changed: dict[str, Mutation] = {}
            for mutation in happening_mutations(fn, method):
                gradient = gradient_written(mutation) or gradient_written_on_a_path(method, mutation)
                if gradient is not None and not on_a_temporary(mutation):
                    changed.setdefault(gradient, mutation)
            for at in {each.node: None for each in changed.values()}:
                together = {gradient: each for gradient, each in changed.items() if each.node is at}
                gradient, mutation = next(iter(together.items()))
                alone = len(together) == 1
                copied = alone and gradient_written(mutation) and not wants_old_values(method, mutation, gradient)
                copied = copied and not _is_lost(method, mutation, gradient) and not through_expansion(mutation.target)
                yield Finding(
                    fn.span(mutation.node),
                    _message(method, gradient, mutation) if alone else _message_of_several(method, together),
                    copy_gradient(fn, method, mutation, gradient) if copied else None,
                    way_to(fn, *together.values()),
                    rests_on=(mutation.target,) if mutation.target is not None else (),
                )
            yield from _by_default(fn, method, set(changed))
            yield from _if_not_copied(fn, method, set(changed))


def _by_default(fn: FunctionClass, method: Method, certain: set[str]) -> Iterator[Finding]:
    """Gradients that a conditional expression takes for the memory of a result."""
    for mutation in happening_mutations(fn, method):
        chosen = chosen_gradient(fn, method, mutation)
        written = replace(mutation, target=chosen.value) if chosen is not None else mutation
        gradient = gradient_written(written) if chosen is not None else None
        if chosen is not None and gradient is not None and gradient not in certain:
            certain.add(gradient)
            copied = unless_copied(written)
            test = f"`{code_of(chosen.test)}`"
            condition = (
                f" if {test}{copied}" if chosen.holds else f" unless {test}{copied.replace(' unless', ', or if')}"
            )
            yield Finding(
                fn.span(mutation.node),
                _message(method, gradient, written, condition),
                related=way_to(fn, mutation),
                rests_on=(chosen.value,),
            )


def _if_not_copied(fn: FunctionClass, method: Method, certain: set[str]) -> Iterator[Finding]:
    """Gradients that may be copied first: they are not if they have the layout of the returned ones, or the dtype."""
    found: dict[str, Mutation] = {}
    for mutation in happening_mutations(fn, method):
        gradient = gradient_written_if_permuted(fn, mutation) or gradient_written_if_converted(fn, mutation)
        if gradient is not None and gradient not in certain and not on_a_temporary(mutation):
            found.setdefault(gradient, mutation)
    for at in {(each.node, condition_of(each)): None for each in found.values()}:
        together = {gradient: each for gradient, each in found.items() if (each.node, condition_of(each)) == at}
        mutation = next(iter(together.values()))
        message = _message_if_not_copied(list(together), mutation)
        yield Finding(fn.span(mutation.node), message, related=way_to(fn, *together.values()))


def _message_if_not_copied(gradients: list[str], mutation: Mutation) -> str:
    modifies, several = f"`{mutation.doer}` modifies", len(gradients) > 1
    condition = condition_of(mutation, "the returned ones are" if several else "the returned one is", several)
    if several:
        subject = f"the incoming gradients {quoted(gradients)} in place{condition}"
        others, remedy = "the same tensors on to others", "Work on copies"
    else:
        subject = f"the incoming gradient `{gradients[0]}` in place{condition}"
        others, remedy = "the same tensor on to others", f"Work on `{gradients[0]}.clone()`"
    return f"{modifies} {subject}; if torch passes {others}, their gradients are silently wrong. {remedy}."


def _message_of_several(method: Method, written: dict[str, Mutation]) -> str:
    gradients, mutation = list(written), next(iter(written.values()))
    if mutation.target_node is None:
        remedy = "Work on copies"
    elif _is_read_after(method, mutation, gradients):
        remedy = "Copy them before the call, and continue with the copies"
    else:
        remedy = f"Pass copies to `{mutation.doer}`"
    return (
        f"`{mutation.doer}` modifies the incoming gradients {quoted(gradients)} in place{unless_copied(*written.values())}; if torch "
        f"passes the same tensors on to others, their gradients are silently wrong. {remedy}."
    )


def _is_read_after(method: Method, mutation: Mutation, gradients: list[str]) -> bool:
    """Whether the call is there for what it writes: its result is dropped, or a later statement reads the gradient."""
    if isinstance(method.parents.get(mutation.node), cst.Expr):
        return True
    names = {*gradients, mutation.name}
    variables = method.variables
    last = max((at for at, each in enumerate(variables) if mutation.node in method.above(each)), default=-1)
    return any(each.value in names for each in variables[last + 1 :])


def _message(method: Method, gradient: str, mutation: Mutation, condition: str = "") -> str:
    node = mutation.target_node
    written = code_of(node) if node is not None else gradient
    lost = _is_lost(method, mutation, gradient)
    does = "overwrites all values of" if lost else "modifies"
    subject = f"`{mutation.doer}` {does} the incoming gradient `{gradient}` in place"
    through = written != gradient and not gradient.startswith(f"{written}[") and "\n" not in written
    if through and (condition or not unless_copied(mutation)):
        subject += f" through `{written}`"
    subject += " if no branch has replaced it" if gradient_written(mutation) is None else under_flag(mutation)
    subject += " if the sizes agree" * _is_multiplied_by_a_mask(mutation)
    wrong = "wrong, or torch raises" if mutation.how in _RESHAPING else "silently wrong"
    if wants_old_values(method, mutation, gradient):
        remedy = f"Pass a copy to `{mutation.by}`" if mutation.by else "Write to a new tensor"
        return (
            f"{subject}{condition or unless_copied(mutation)}; later reads of `{gradient}`, and others to which torch passes the "
            f"same tensor, silently get the new values. {remedy}."
        )
    if mutation.how.startswith("[...]") and not (mutation.by or condition or unless_copied(mutation)):
        copy = (
            "Copy it" if not through_expansion(mutation.target) else f"Copy `{written}`" if through else "Copy the view"
        )
        return f"{subject}{_OF_ITEMS} {copy} first."
    if lost:
        remedy = "Write to a new tensor" + f"; if `{gradient}` counts as well, add it" * (mutation.how == "copy_")
    elif condition:  # a kernel may get the gradient in another argument, too
        remedy = f"Copy `{gradient}` first, and continue with the copy" if mutation.by else "Write to a new tensor"
    elif not mutation.by and mutation.how.isidentifier() and not mutation.how.endswith("_"):
        remedy = "Copy it first"  # a collective has no other form
    elif is_shared_before(method, mutation, gradient):
        remedy = f"Copy {f'`{gradient}`' if through else 'it'} at the start of `{method.name}`"  # a new tensor here would leave that as it is
    elif not mutation.by or node is None:  # a nested function may see it without
        remedy = "Write to a new tensor, or `.clone()` it first"
    elif _is_read_after(method, mutation, [gradient]):
        remedy = f"Copy `{gradient}` before the call, and continue with the copy"
    else:
        remedy = f"Pass a copy to `{mutation.by}`"
    subject += condition or unless_copied(mutation)
    message = f"{subject}; if torch passes the same tensor on to others, their gradients are {wrong}. {remedy}."
    if condition or wrong != "silently wrong" or not refuses_expanded(mutation):
        return message
    expanded, others = (
        ("an expanded one", "an expanded one, as after `sum()`,"),
        "others that get the same tensor silently",
    )
    told = (
        f"{subject}; {each} raises RuntimeError, and {others} get wrong gradients. {remedy}." for each in expanded[::-1]
    )
    return fitting(*told, message)


def _is_lost(method: Method, mutation: Mutation, gradient: str) -> bool:
    """Whether a method replaces all values of a gradient, which nothing has read before: a copy would lose them, too."""
    if mutation.by or mutation.how not in ("copy_", "fill_", "zero_") or not is_name(mutation.target_node, gradient):
        return False
    variables = method.variables
    last = max((at for at, each in enumerate(variables) if mutation.node in method.above(each)), default=-1)
    return sum(each.value == gradient for each in variables[: last + 1]) == 2  # the parameter, and what it writes to


def _is_multiplied_by_a_mask(mutation: Mutation) -> bool:
    """Whether a function that also gets a comparison of another tensor multiplies: torch raises for other sizes."""
    given = mutation.node.args if mutation.by and isinstance(mutation.node, cst.Call) else ()
    return mutation.how in ("*=", "mul_") and any(isinstance(each.value, cst.Comparison) for each in given)


_OF_ITEMS = (
    "; if it is expanded, as after `sum()`, all elements change or torch raises, and others that get it silently get wrong "
    "gradients."
)
"""What an assignment to items does: they may be one number."""

_RESHAPING = ("resize_", "resize_as_")
"""Methods that may change the shape of a tensor so that it does not fit elsewhere; ``t_`` only transposes it."""
