"""CTX701: ``Fn.apply`` with too few or too many arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import Binding, ParameterKind, SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ApplyCall, FunctionClass, Method, Param


class ApplyArity(Rule[SourceFile]):
    """
    ## What it does
    Reports calls of `Fn.apply` that pass fewer arguments than `forward` needs, or more than it takes, if `Fn` is
    defined in a linted file. Calls through an alias (`relu = ReLU.apply`) count too.

    ## Why is this bad?
    `apply` passes its arguments to `forward` by position: `TypeError: F.forward() missing 1 required positional
    argument: 'w'`, `F.forward() takes from 2 to 4 positional arguments but 5 were given`; with `setup_context`,
    `missing a required argument: 'w'` and `too many positional arguments`. This holds on every torch.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None


    def double(x):
        return Scale.apply(x)
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None


    def double(x):
        return Scale.apply(x, 2)
    ```

    ## Fix safety
    There is no fix: only the author knows which argument is missing.

    ## Known limits
    Not reported for calls with `*args` or `**kwargs`, under `pytest.raises` and similar context managers, for names
    that may refer to something else, or for classes with a base, an `apply` or a decorator that may change the
    arguments. Whether the target release accepts keywords is checked by apply-keyword (CTX702).

    ## References
    - [Function.apply](https://pytorch.org/docs/stable/generated/torch.autograd.Function.apply.html)
    """

    code = "CTX701"
    name = "apply-arity"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.calls:
            fn = file.by_name[call.function]
            if not call.applies or call.expects_error or not _is_judgeable(fn):
                continue
            forward = fn.forward
            if forward is None or call.starred or call.double_starred:
                continue
            problem = _problem(call, forward, _gradients(fn))
            if problem is not None:
                called = f"`{call.alias}` (`{fn.name}.apply`)" if call.alias else f"`{fn.name}.apply`"
                yield Finding(call.span, f"{called} {problem}")


def _is_judgeable(fn: FunctionClass) -> bool:
    forward = fn.forward
    if forward is None or not fn.signature_judgeable or not forward.signature_known or forward.lacks_ctx:
        return False
    return forward.receiver is None or forward.binding is Binding.CLASS


def _gradients(fn: FunctionClass) -> int | None:
    """How many gradients every return of backward has."""
    counts = {each.count for each in fn.gradients}
    return counts.pop() if len(counts) == 1 else None


def _problem(call: ApplyCall, forward: Method, gradients: int | None) -> str | None:
    """The problem with the call, the consequence in torch, and what to write, as predicates; None for nothing."""
    positional = forward.positional
    most = len(positional)
    if call.positional > most and forward.variadic is None:
        least = "" if all(param.required for param in positional) else "at most "
        passed = counted(call.positional, "argument")
        lacking = "a parameter" if call.positional == most + 1 else f"{call.positional - most} parameters"
        advice = f"Add {lacking} to `forward`, as `backward` returns {gradients} gradients"
        advice = advice if gradients == call.positional else _those(positional)
        return f"passes {passed} but `forward` takes {least}{most}; {_RAISES} {advice}."
    by_position = {param.name for param in positional[: call.positional]}
    bound = by_position | set(call.keywords)
    missing = [param.name for param in forward.own_params if param.required and param.name not in bound]
    takes_any = any(param.kind is ParameterKind.KEYWORDS for param in forward.own_params)
    known = {param.name for param in forward.own_params}
    unknown = [name for name in call.keywords if not takes_any and name not in known]
    if missing and unknown:
        what = f"{_keywords(unknown)}, which `forward` does not take, and omits {quoted(missing)}"
        return f"passes {what}; {_RAISES} Pass one argument for each input, by position."
    if missing:
        passed = counted(call.positional + len(call.keywords), "argument")
        if _are_shifted(call, positional):
            needed = sum(param.required for param in forward.own_params)
            return f"passes {passed} but `forward` needs {needed}; {_RAISES} Pass one argument for each input."
        return f"passes {passed} and omits {quoted(missing)}; {_RAISES} {_rest(call, missing)}."
    if takes_any:
        return None
    if unknown:
        return f"passes {quoted(unknown)}, which `forward` does not take; {_RAISES} Remove {_pronoun(unknown)}."
    twice = [name for name in call.keywords if name in by_position]
    if not twice:
        return None
    return f"passes {quoted(twice)} by position and by keyword; {_RAISES} Pass {_pronoun(twice)} once."


def _keywords(names: list[str]) -> str:
    """The keywords, or how many there are."""
    return quoted(names) if len(names) <= _MOST_NAMES else counted(len(names), "keyword")


def _those(positional: tuple[Param, ...]) -> str:
    """What to pass instead of too many arguments: the surplus need not be the last ones."""
    names = [param.name for param in positional]
    return f"Pass only {quoted(names)}" if 0 < len(names) <= _MOST_NAMES else "Remove the surplus"


_MOST_NAMES = 4
"""The maximum number of parameters to list."""


def _are_shifted(call: ApplyCall, positional: tuple[Param, ...]) -> bool:
    """Whether an argument has the name of a later parameter: then the omitted ones are not the last ones."""
    parameters = [param.name for param in positional]
    return any(
        name != meant and name in parameters[at:] for at, (name, meant) in enumerate(zip(call.names, parameters))
    )


def _rest(call: ApplyCall, missing: list[str]) -> str:
    """What to pass; by position, several missing arguments may have shifted the present ones."""
    if not call.positional and not call.keywords:
        return "Drop the `()` if the function itself is meant, or pass one argument for each input"
    if len(missing) > 1 and not call.keywords:
        return "Pass one argument for each input"
    return f"Pass {_pronoun(missing)} too"


def _pronoun(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


_RAISES = "torch raises TypeError at `apply`."
