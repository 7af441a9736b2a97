"""CTX405: an in-place collective on a temporary that is discarded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.dropped_handles import dropped_handles
from ctxlint.model.analyses.mutations import on_a_temporary, written_node
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.layouts import never_copied
from ctxlint.model.interpreter.values import Alias, Fresh, View, before_views
from ctxlint.model.syntax import code_of, is_name, last_name
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.values import Value


class DiscardedInplaceCollective(Rule[FunctionClass]):
    """
    ## What it does
    Reports `dist.all_reduce(...)` of a temporary tensor such as `x.contiguous()`, also in a helper that gets the tensor. Also
    reports `dist.all_reduce(x, async_op=True)` whose handle is discarded, if the method returns `x`, also through a function that
    only passes `async_op` on.

    ## Why is this bad?
    The collective writes its result to its argument. If `contiguous()` copies (a transposed or expanded tensor), the
    sum is written to the copy and lost, and every rank silently continues with its local values. If it does not copy,
    the input or the incoming gradient itself is modified.

    With `async_op=True`, the result is there after `wait()` of the handle that the call returns. Until then, whatever reads the
    tensor silently gets its old values, or any others.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    class Reduce(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            dist.all_reduce(y.contiguous())
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    class Reduce(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.contiguous().clone()
            dist.all_reduce(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only collectives that certainly write on every rank count. An asynchronous one is not reported in a method that waits for
    anything, or under a context manager. A temporary tensor of constants only makes the ranks wait for each other, and is not reported.

    ## References
    - [torch.distributed.all_reduce](https://pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce)
    """

    code = "CTX405"
    name = "discarded-inplace-collective"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            for mutation in dropped_handles(method):
                yield Finding(
                    fn.span(mutation.node),
                    f"`{mutation.how}` writes to `{mutation.name}` asynchronously, and nothing waits for it; `{method.name}` silently "
                    f"returns `{mutation.name}` before the result is there. Drop `async_op=True`.",
                    related=way_to(fn, mutation),
                )
            for mutation in method.facts.of(Mutation):
                written = written_node(mutation)
                if written is not None and _is_temporary_copy(mutation):
                    always = isinstance(mutation.target, Fresh)
                    place = f" in `{mutation.by}`" if mutation.by else ""
                    yield Finding(
                        fn.span(mutation.node),
                        f"`{mutation.how}`{place} writes its result to `{code_of(written)}`, a temporary tensor; "
                        f"{'' if always else 'if that is a copy, '}the result is silently lost. Bind it to a name first, and use that name.",
                        related=way_to(fn, mutation),
                    )


def _is_temporary_copy(mutation: Mutation) -> bool:
    """Whether a collective gets the result of a call that may be a copy; a certain view is not a copy."""
    target = mutation.target
    viewed = isinstance(target, View) and target.alias is not Alias.ALWAYS and not never_copied(target)
    copied = viewed or isinstance(target, Fresh)
    return on_a_temporary(mutation) and copied and target is not None and not _is_signal(target, written_node(mutation))


def _is_signal(target: Value, written: cst.CSTNode | None) -> bool:
    """Whether a tensor is made for a collective alone, of constants: only to wait for the other ranks."""
    made = before_views(target)
    node = made.node if isinstance(made, Fresh) else None
    while written is not node and isinstance(written, cst.Call) and isinstance(written.func, cst.Attribute):
        written = written.func.value
    if written is not node or not isinstance(node, cst.Call):
        return False
    name = last_name(node.func)
    if name in ("tensor", "as_tensor"):
        return bool(node.args) and _is_constant(node.args[0].value)
    return name in _FILLED or (
        name in ("full", "full_like", "new_full") and len(node.args) > 1 and _is_constant(node.args[1].value)
    )


_FILLED = frozenset(
    f"{prefix}{value}{suffix}"
    for value in ("empty", "ones", "zeros")
    for prefix, suffix in (("", ""), ("new_", ""), ("", "_like"))
)
"""Functions and methods that make a tensor without values of its own."""


def _is_constant(node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(_is_constant(each.value) for each in node.elements)
    inner = node.expression if isinstance(node, cst.UnaryOperation) else node
    return isinstance(inner, cst.BaseNumber) or is_name(inner, "True") or is_name(inner, "False")
