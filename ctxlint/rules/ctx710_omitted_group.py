"""CTX710: ``apply`` without the process group that the caller has, where backward communicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.helper_collectives import COLLECTIVE
from ctxlint.model.analyses.unsummed_gathers import module_of
from ctxlint.model.function import SourceFile
from ctxlint.model.interpreter.values import NONE
from ctxlint.model.syntax import is_name, last_name, words_of
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ApplyCall, FunctionClass, Method


class OmittedGroup(Rule[SourceFile]):
    """
    ## What it does
    Reports `apply` without the process group `group` in a function that has a parameter of this name, where the one of
    `forward` is `None` by default and `backward` uses it.

    ## Why is this bad?
    `None` means the default group, usually all processes. If the caller gets another one, `backward` communicates with
    the wrong processes: it hangs, or silently mixes the gradients of different groups. With a single group, as in most
    tests, nobody notices.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, group=None):
            ctx.group = group
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            grad_output = grad_output.clone()
            dist.all_reduce(grad_output, group=ctx.group)
            return grad_output, None


    def shared(x, group=None):
        return Sum.apply(x)
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, group=None):
            ctx.group = group
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            grad_output = grad_output.clone()
            dist.all_reduce(grad_output, group=ctx.group)
            return grad_output, None


    def shared(x, group=None):
        return Sum.apply(x, group)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only parameters called `group` or `pg`, or whose name ends in `_group`, of the functions around the call, and
    collectives of `torch.distributed`, also in functions of the project that `backward` passes the group to. Not
    reported if such a function, or the Function, tests or rebinds it.

    ## References
    - [torch.distributed: groups](https://pytorch.org/docs/stable/distributed.html#groups)
    """

    code = "CTX710"
    name = "omitted-group"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.calls:
            fn = file.by_name[call.function]
            for name, around in call.groups:
                if _is_omitted(fn, call, name) and _is_used(fn, name):
                    yield Finding(
                        call.span,
                        f"`{fn.name}.apply` omits `{name}`, which `{around}` has; `backward` silently communicates in the default "
                        f"group if that is another one. Pass `{name}`.",
                    )


def _is_omitted(fn: FunctionClass, call: ApplyCall, name: str) -> bool:
    """Whether a call that may need gradients leaves a parameter of forward to its default, None."""
    if fn.forward is None or not fn.signature_judgeable or call.starred or call.double_starred:
        return False
    if call.expects_error or call.under_no_grad or name in call.keywords:
        return False
    entry = next((each for each in fn.inputs if each.name == name), None)
    return entry is not None and entry.index >= call.positional and entry.param.default == NONE


def _is_used(fn: FunctionClass, name: str) -> bool:
    """Whether backward communicates in the group that it gets from an attribute of ctx, which keeps a parameter as it is.

    By the code alone: the methods of a Function in another file are not analysed for this one.
    """
    if fn.forward is None or name in fn.forward.binders:
        return False
    stores = [each for method in fn.context_methods for each in _stores(method) if is_name(each[1], name)]
    backward = fn.backward
    tested = {name, *(attribute for attribute, _value in stores)}
    if any(not tested.isdisjoint(words_of(test)) for method in fn.own_protocol_methods for test in _tests(method)):
        return False
    return backward is not None and any(
        attribute in fn.communicating
        or any(
            each.attr.value == attribute and backward.is_on_ctx(each) and _communicates(backward, each)
            for each in backward.nodes_of(cst.Attribute)
        )
        for attribute, _value in stores
    )


def _tests(method: Method) -> Iterator[cst.BaseExpression]:
    """What decides in a method: without a group, it may do something else."""
    yield from (each.test for each in method.nodes_of(cst.If))
    yield from (each.test for each in method.nodes_of(cst.IfExp))
    yield from (each.test for each in method.nodes_of(cst.Assert))


def _communicates(method: Method, group: cst.CSTNode) -> bool:
    """Whether a collective of torch gets the group itself, for which None is the default group."""
    argument = method.parents[group]
    call = method.parents[argument] if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or COLLECTIVE.search(last_name(call.func)) is None:
        return False
    return module_of(method, call).startswith("torch.distributed")


def _stores(method: Method) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The attributes of ctx that a method sets, each with the code of its value."""
    for statement in method.nodes_of(cst.Assign):
        for each in statement.targets:
            if isinstance(each.target, cst.Attribute) and method.is_on_ctx(each.target):
                yield each.target.attr.value, statement.value
