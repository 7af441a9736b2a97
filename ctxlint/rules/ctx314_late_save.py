"""CTX314: saving or marking in backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.function import ContextCall, FunctionClass
from ctxlint.model.interpreter.values import NONE, ContextAttribute, storage
from ctxlint.model.syntax import code_of, dotted
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method
    from ctxlint.model.interpreter.values import Slot

_ONLY_BEFORE_BACKWARD = (
    "save_for_backward",
    "save_for_forward",
    "mark_dirty",
    "mark_non_differentiable",
    "set_materialize_grads",
)


class LateSave(Rule[FunctionClass]):
    """
    ## What it does
    Reports `save_for_backward`, `save_for_forward`, `mark_dirty`, `mark_non_differentiable` and `set_materialize_grads`
    called in `backward` or `vjp`.

    ## Why is this bad?
    Autograd evaluates these calls once, when `forward` returns. Later calls save and mark nothing, without an error;
    the tensors passed to `save_for_backward` stay alive as long as the graph. `set_materialize_grads` affects not
    the current backward but the next one through the same graph.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            ctx.set_materialize_grads(False)
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Incoming gradients and results of `backward` cannot be saved in `forward`, what `forward` already saves need not be
    saved again, and only outputs can be marked: in these cases the advice is to remove the call.

    ## References
    - [torch.autograd.function.FunctionCtx](https://pytorch.org/docs/stable/autograd.html#context-method-mixins)
    """

    code = "CTX314"
    name = "late-save"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        where = "forward" if fn.setup_context is None else "setup_context"
        for method in fn.own_protocol_methods:
            if method.name not in ("backward", "vjp"):
                continue
            for call in method.facts.of(ContextCall):
                if call.method in _ONLY_BEFORE_BACKWARD and not (call.by and _repeats(fn, call)):
                    message = f"{_fact(call, method)} {_advice(fn, call, where)}"
                    yield Finding(fn.span(call.node), message, related=way_to(fn, call))


def _fact(call: ContextCall, method: Method) -> str:
    name = f"`{method.ctx_name}.{call.method}` in `{method.name}`"
    if call.method == "set_materialize_grads":
        return f"{name} is too late; it silently affects only the next backward through the same graph."
    if not call.method.startswith("save_for"):
        return f"{name} marks nothing; torch reads the marks only at `apply`."
    if not call.has_keywords and all(argument.value == NONE for argument in call.arguments):
        return f"{name} does nothing; torch saves tensors only at `apply`."
    return (
        f"{name} saves nothing, because torch saves tensors only at `apply`; its arguments silently stay in memory "
        f"as long as the graph."
    )


def _advice(fn: FunctionClass, call: ContextCall, where: str) -> str:
    """What forward can do instead: save what it left on ctx unsaved, or mark its outputs."""
    if call.by and not call.captured_by:
        written = dotted(call.node.func) if isinstance(call.node, cst.Call) else None
        return f"Pass another object than `{fn.reading_ctx}` to `{written or call.by}`."
    if _repeats(fn, call) or (call.method == "set_materialize_grads" and _never_tests_gradients(fn)):
        return "Drop the call."
    belongs = [_belongs_before(fn, call, each) for each in call.arguments if not each.starred]
    if call.method == "set_materialize_grads" or (belongs and all(belongs)):
        return f"Call it in `{where}`."
    names = [code_of(each.node) for each, fits in zip(call.arguments, belongs) if fits and each.node is not None]
    if not names or call.method.startswith("save_for") or any(each.starred for each in call.arguments):
        return "Drop the call."
    return f"Call it in `{where}` for the {'output' if len(names) == 1 else 'outputs'} {quoted(names)} only."


def _repeats(fn: FunctionClass, call: ContextCall) -> bool:
    """Whether forward has set the same already."""
    values = [argument.value for argument in call.arguments]
    before = fn.context_calls(call.method) if call.method == "set_materialize_grads" else ()
    return any([argument.value for argument in each.arguments] == values for each in before)


def _never_tests_gradients(fn: FunctionClass) -> bool:
    """Whether backward gets several gradients and asks for none of them whether it is None."""
    backward = fn.backward
    if backward is None or len(backward.positional) < 2:
        return False
    names = {param.name for param in backward.positional}
    tests = (node for node in backward.nodes_of(cst.Comparison) if isinstance(node.left, cst.Name))
    return not any(node.left.value in names for node in tests)  # type: ignore[attr-defined]


def _belongs_before(fn: FunctionClass, call: ContextCall, argument: Slot) -> bool:
    value = storage(argument.value)
    if call.method.startswith("save_for"):
        return isinstance(value, ContextAttribute)
    origin = kept_value(fn, value)
    outputs = (storage(option) for output in fn.outputs_values() for option in output.options())
    return origin is not None and storage(origin) in outputs
