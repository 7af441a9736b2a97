"""CTX106: one of ``custom_fwd`` and ``custom_bwd`` without the other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.autocast_pair import add_other_half, move_to_setup_context
from ctxlint.model.analyses.rejections import decorators_known, lacks_custom_fwd, stores_autocast_state
from ctxlint.model.function import Binding, FunctionClass, GenericCall, Style
from ctxlint.model.syntax import last_name
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.autograd import CAST_UNDER_AUTOCAST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Decorator, Method


class UnpairedCustomFwd(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function that has only one of `custom_fwd` on `forward` and `custom_bwd` on `backward`, and `custom_fwd`
    on the `forward` of a Function with `setup_context`, unless it has `cast_inputs` and `backward` has no `custom_bwd`.
    Also the pair on methods under `@classmethod`.

    ## Why is this bad?
    `custom_fwd` stores the autocast state on ctx, and `custom_bwd` restores it. With `custom_bwd` alone, every backward
    raises `AttributeError: 'FBackward' object has no attribute '_fwd_used_autocast'`, with or without autocast. With
    `custom_fwd` alone, backward runs as it is called, usually with autocast off: a matrix product of two dtypes raises,
    and other operations silently run in another precision. With `cast_inputs`, it is `forward` that runs with autocast
    off, and `backward` runs with autocast on if it is called under autocast. With `setup_context`, `forward` gets no
    ctx: the state is written to the caller's first tensor, and `custom_bwd` raises as above; without `custom_bwd`, only
    `cast_inputs` has an effect.

    Both take the first argument for ctx. For a class method that is the class: all calls share one state, and a `backward`
    silently runs in the autocast mode of the last `forward`. If only one of them is a class method, `backward` raises.

    ## Example
    ```python
    import torch
    from torch.amp import custom_bwd


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch
    from torch.amp import custom_bwd, custom_fwd


    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cuda")
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Unsafe: the missing decorator is added for the same device and imported next to the other one; in a Function with
    `setup_context`, `custom_fwd` moves there from `forward`. `custom_bwd` changes the precision in which `backward`
    runs, and if `forward` has no decorator, removing `custom_bwd` may be the right fix. There is no fix if the name may
    not be torch's, if the other name is taken in the file, or for a `custom_fwd` with `cast_inputs` together with
    `setup_context`: there it would cast the saved tensors instead of the inputs of `forward`.

    ## Known limits
    Not reported if `forward` or `backward` is inherited or has an unknown decorator, because projects wrap the pair in
    their own functions. `custom_bwd` is not reported if other code can set the state: a decorator that uses ctx, a
    function that gets ctx, `ctx._fwd_used_autocast = ...`. `custom_fwd` is not reported if `forward` or `backward`
    sets autocast itself, if `backward` has `custom_fwd` with `cast_inputs` as well, or if it only allocates memory and launches a
    kernel that fills it.

    ## References
    - [Automatic mixed precision: functions that need a particular dtype](https://pytorch.org/docs/stable/notes/amp_examples.html)
    - [pytorch#132388](https://github.com/pytorch/pytorch/issues/132388): `custom_fwd` with `setup_context`
    """

    code = "CTX106"
    name = "unpaired-custom-fwd"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward, backward = fn.methods.get("forward"), fn.methods.get("backward")
        if forward is None or backward is None or not decorators_known(fn, backward):
            return
        entry, exit_ = forward.decorator("custom_fwd"), backward.decorator("custom_bwd")
        if exit_ is not None and stores_autocast_state(fn):
            return
        if entry is not None and fn.style is Style.SETUP_CONTEXT:
            if exit_ is None and "cast_inputs" in entry.keywords:
                return  # it casts what forward gets, and nothing reads the state
            effect = ", where nothing reads it" if exit_ is None else " and raises AttributeError at backward"
            yield Finding(
                fn.span(entry.node),
                f"`custom_fwd` on `forward` of `{fn.name}` gets no ctx, as `setup_context` is defined; it writes "
                f"the autocast state to the first input{effect}. {_advice(fn, entry, exit_)}",
                None if exit_ is None else move_to_setup_context(fn, entry, forward),
            )
        elif exit_ is not None and fn.style is Style.CTX_IN_FORWARD and lacks_custom_fwd(fn, backward):
            yield Finding(
                fn.span(exit_.node),
                f"`backward` of `{fn.name}` has `custom_bwd` but `forward` has no `custom_fwd`; torch raises "
                f"AttributeError (`_fwd_used_autocast`) at backward. Add `custom_fwd` to `forward`.",
                add_other_half(fn, exit_, forward),
            )
        elif entry is not None and exit_ is None and not (backward.raises_only or _sets_autocast(forward, backward)):
            if _only_launches(backward):
                return
            if backward.decorator("custom_fwd") is not None:
                fact = f"`backward` of `{fn.name}` has `custom_fwd` and no `custom_bwd`"
                remedy, fix = "Use `custom_bwd` there.", None
            else:
                fact = f"`forward` of `{fn.name}` has `custom_fwd` but `backward` has no `custom_bwd`"
                remedy, fix = "Add `custom_bwd` to `backward`.", add_other_half(fn, entry, backward)
            yield Finding(fn.span(entry.node), f"{fact}; {_effect(entry, backward)}. {remedy}", fix)
        elif entry is not None and exit_ is not None and not backward.raises_only:
            yield from _state_on_class(fn, entry, exit_)


def _state_on_class(fn: FunctionClass, entry: Decorator, exit_: Decorator) -> Iterator[Finding]:
    """The pair on class methods: it keeps the state on the first argument, which is the class then."""
    by_class = [name for name in ("forward", "backward") if _gets_class(fn.methods[name])]
    if by_class == ["forward", "backward"]:
        if "cast_inputs" in entry.keywords:
            return  # the state is the same for all calls
        problem = "keeps the autocast mode on the class; `backward` runs in that of the last `forward`, not in its own"
        remedy = "Make both static methods"
    elif by_class:
        elsewhere = "keeps the autocast mode on the class, but `custom_bwd` looks on ctx"
        if by_class == ["backward"]:
            elsewhere = "looks for the autocast mode on the class, but `custom_fwd` keeps it on ctx"
        problem, remedy = f"{elsewhere}; torch raises AttributeError at backward", "Make it a static method"
    else:
        return
    decorator, name = (entry, "custom_fwd") if by_class[0] == "forward" else (exit_, "custom_bwd")
    yield Finding(
        fn.span(decorator.node), f"`{name}` on the class method `{by_class[0]}` of `{fn.name}` {problem}. {remedy}."
    )


def _gets_class(method: Method) -> bool:
    """Whether what the decorators of a method get as first argument is the class."""
    outermost = method.decorators[0].name if method.decorators else None
    return method.binding is Binding.CLASS and outermost in ("classmethod", "builtins.classmethod")


def _effect(entry: Decorator, backward: Method) -> str:
    """How the autocast mode of backward differs from forward's, which with ``cast_inputs`` runs with it off."""
    result = ", which raises or silently changes the precision" if _is_cast(backward) else ""
    if entry.casts_inputs:
        return f"torch runs `backward` with autocast on if it is called under autocast{result}"
    return f"if only `apply` is under autocast, `backward` runs with it off{result}"


def _is_cast(backward: Method) -> bool:
    """Whether backward, or a function of the project that it calls, runs an operation that autocast affects."""
    called = (call.definition for call in backward.facts.of(GenericCall) if call.definition is not None)
    records = (each.unit.index.functions.get(each.qualname) for each in called)
    return any(
        isinstance(getattr(node, "operator", None), _AFFECTED_OPERATORS)
        or (isinstance(node, cst.Call) and last_name(node.func) in CAST_UNDER_AUTOCAST)
        for node in backward.parents
    ) or any(
        isinstance(getattr(node, "op", None), (ast.MatMult, ast.Pow))
        or getattr(node, "attr", "") in CAST_UNDER_AUTOCAST
        for record in records
        for node in (nodes_in(record.node) if record is not None else ())
    )


def _only_launches(backward: Method) -> bool:
    """Whether backward only allocates memory, and calls what fills it: autocast does not affect a kernel."""
    computes = any(isinstance(node, (cst.BinaryOperation, cst.AugAssign)) for node in backward.parents)
    launched = [
        each.value
        for each in backward.nodes_of(cst.Expr)
        if isinstance(each.value, cst.Call) and len(each.value.args) > 1 and not backward.is_on_ctx(each.value.func)
    ]
    return bool(launched) and not computes and not _is_cast(backward)


def _advice(fn: FunctionClass, entry: Decorator, exit_: Decorator | None) -> str:
    """What to do with a ``custom_fwd`` next to ``setup_context``: its ``cast_inputs`` would not affect forward."""
    if exit_ is None:
        return "Drop it, or move it to `setup_context` and add `custom_bwd`."
    if not entry.casts_inputs:
        return "Move it to `setup_context`."
    transformed = "vmap" in fn.methods or "generate_vmap_rule" in fn.class_attributes or "jvp" in fn.methods
    if transformed:  # a transform of torch.func needs `setup_context`
        return "Drop both, and cast the inputs of `apply`."
    return f"Write `forward({fn.storing_ctx}, ...)`, and move the code of `setup_context` there."


def _sets_autocast(forward: Method, backward: Method) -> bool:
    """Whether one of them sets autocast by itself, or ``custom_fwd`` with ``cast_inputs`` turns it off in both."""
    entry = backward.decorator("custom_fwd")
    if entry is not None and entry.casts_inputs:
        return True
    calls = (call for method in (forward, backward) for call in method.facts.of(GenericCall))
    return any(call.callee is not None and call.callee.rpartition(".")[2] in _AUTOCAST for call in calls)


_AFFECTED_OPERATORS = (cst.MatrixMultiply, cst.Power, cst.MatrixMultiplyAssign, cst.PowerAssign)
_AUTOCAST = frozenset(["autocast", "set_autocast_enabled", "set_autocast_gpu_dtype", "autocast_decorator"])
