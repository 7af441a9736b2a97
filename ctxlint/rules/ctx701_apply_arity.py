"""CTX701: ``Fn.apply`` with too few or too many arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.apply_arity import misfit, misplaced, slip, takes_arguments, wrong_length
from ctxlint.model.function import SourceFile
from ctxlint.model.interpreter.signatures import are_shifted
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ApplyCall, FunctionClass, Method, Param


class ApplyArity(Rule[SourceFile]):
    """
    ## What it does
    Reports calls of `Fn.apply` that pass fewer arguments than `forward` needs, or more than it takes, if `Fn` is
    defined in a linted file. Calls through an alias (`relu = ReLU.apply`, `self.relu = ReLU.apply`) count too. Also another
    number of arguments for `*args` than `forward` unpacks, and fewer before a starred argument than `forward` has parameters
    before `*args` if other calls show that one is missing. And an argument that has the name of a parameter with a default, which
    the call omits, but comes at the place of another one, with a default of another sort.

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
    Not reported for calls with `**kwargs`, and for most with `*args`: one with too few arguments before a starred one is
    reported if it passes what another call in the file passes for another parameter, which is certainly not a tensor, or
    gets no gradient from a Function of the same file. Not reported under `pytest.raises` and similar context managers, in a
    `try` that catches `TypeError`, for names that may refer to something else, or for classes with a base, an `apply` or a
    decorator that may change the arguments. Whether the target release accepts keywords is checked by apply-keyword (CTX702).

    ## References
    - [Function.apply](https://pytorch.org/docs/stable/generated/torch.autograd.Function.apply.html)
    """

    code = "CTX701"
    name = "apply-arity"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for call in file.calls:
            fn = file.by_name[call.function]
            forward = fn.forward
            if call.expects_error or forward is None or not (fn.arguments_judgeable and takes_arguments(forward)):
                continue
            problem = _problem(call, forward, _gradients(fn)) or _problem_of_star(call, fn, forward, file)
            problem = problem or _problem_of_place(call, forward)
            if problem is not None and not (fn.is_one_of_several or call.may_mean_another):
                called = f"`{call.alias}` (`{fn.name}.apply`)" if call.alias else f"`{fn.name}.apply`"
                yield Finding(call.span, f"{called} {problem}")


def _gradients(fn: FunctionClass) -> int | None:
    """How many gradients every return of backward has."""
    counts = {each.count for each in fn.gradients}
    return counts.pop() if len(counts) == 1 else None


def _problem(call: ApplyCall, forward: Method, gradients: int | None) -> str | None:
    """The problem with the call, the consequence in torch, and what to write, as predicates; None for nothing."""
    positional, wrong = forward.positional, misfit(call, forward)
    if wrong is None:
        return None
    if wrong.surplus:
        least = "" if all(param.required for param in positional) else "at most "
        passed = counted(call.positional + len(call.keywords), "argument") + _by_keyword(call)
        lacking = "a parameter" if wrong.surplus == 1 else f"{wrong.surplus} parameters"
        advice = f"Add {lacking} to `forward`, as `backward` returns {gradients} gradients"
        if call.keywords or gradients != call.positional:
            advice = _without(call, positional) + (", by position" if call.keywords and positional else "")
        return f"passes {passed} but `forward` takes {least}{len(positional)}; {_RAISES} {advice}."
    if wrong.missing and wrong.unknown:
        what = f"{_keywords(wrong.unknown)}, which `forward` does not take, and omits {quoted(wrong.missing)}"
        return f"passes {what}; {_RAISES} Pass one argument for each input, by position."
    if wrong.missing and wrong.twice:
        what = f"{quoted(wrong.twice)} by position and by keyword, and omits {quoted(wrong.missing)}"
        return f"passes {what}; {_RAISES} Pass one argument for each input, by position."
    if wrong.missing:
        passed = counted(call.positional + len(call.keywords), "argument")
        if _are_shifted(call, positional):
            needed = sum(param.required for param in forward.own_params)
            return f"passes {passed} but `forward` needs {needed}; {_RAISES} Pass one argument for each input."
        slipped = _inside_another(call, wrong.missing)
        if slipped is not None:
            return f"passes {passed} and omits {quoted(wrong.missing)}; it raises TypeError. {slipped}."
        return f"passes {passed} and omits {quoted(wrong.missing)}; {_RAISES} {_rest(call, wrong.missing)}{_if_meant(call, positional)}."
    if wrong.unknown:
        unknown = wrong.unknown
        return f"passes {quoted(unknown)}, which `forward` does not take; {_RAISES} Remove {them(unknown)}."
    twice = wrong.twice
    return f"passes {quoted(twice)} by position and by keyword; {_RAISES} Pass {them(twice)} once."


def _problem_of_place(call: ApplyCall, forward: Method) -> str | None:
    """The problem with an argument that has the name of another parameter than the one that it is for."""
    wrong = misplaced(call, forward)
    if wrong is None:
        return None
    fact = f"passes `{wrong.name}` for `{wrong.takes}`, and nothing for `{wrong.meant}`"
    return f"{fact}; `forward` raises, or silently computes something else. Pass one argument for each parameter."


def _problem_of_star(call: ApplyCall, fn: FunctionClass, forward: Method, file: SourceFile) -> str | None:
    """The problem with the arguments for ``*args``, or around a starred one."""
    if forward.variadic is None:
        return None
    wrong = wrong_length(call, forward)
    if wrong is not None:
        passed, lengths = wrong
        expected = " or ".join(map(str, lengths))
        fact = f"passes {counted(passed, 'argument')} for `*{forward.variadic.name}`, which `forward` unpacks into {expected}"
        return f"{fact}; it raises ValueError at `apply`. Pass one argument for each parameter."
    slipped = slip(call, fn, forward, (each for each in file.calls if each.function == call.function))
    if slipped is None:
        return None
    before = f"passes {counted(call.positional, 'argument')} before the starred one, for {len(forward.positional)} parameters"
    return f"{before}; `{slipped.takes}` gets `{slipped.name}`. Pass one argument for each parameter."


def _by_keyword(call: ApplyCall) -> str:
    """Which arguments are passed by keyword, or how many: ``, `mode` by keyword,``; empty if none."""
    if not call.keywords:
        return ""
    few = len(call.keywords) <= _MOST_NAMES
    return f", {quoted(call.keywords) if few else f'{len(call.keywords)} of them'} by keyword,"


def _keywords(names: Sequence[str]) -> str:
    """The keywords, or how many there are."""
    return quoted(names) if len(names) <= _MOST_NAMES else counted(len(names), "keyword")


def _without(call: ApplyCall, positional: tuple[Param, ...]) -> str:
    """What to pass instead of too many arguments: the surplus need not be the last ones, and is known if all have names.

    Arguments with other names than the parameters are perhaps meant for another Function.
    """
    names, given = [param.name for param in positional], [name.rpartition(".")[2] for name in call.names]
    others = [name for name in given if name not in names]
    complete = len(given) == call.positional and "" not in given and not call.keywords
    if complete and [name for name in given if name in names] == names and len(others) <= _MOST_NAMES:
        parameters = "a parameter" if len(others) == 1 else f"{len(others)} parameters"
        return f"Remove {quoted(others)}, or add {parameters} to `forward`"
    if not 0 < len(names) <= _MOST_NAMES:
        return "Pass one argument for each parameter"
    return f"Pass only {quoted(names)}{', if this Function is meant' if complete and not {*names} <= {*given} else ''}"


_MOST_NAMES = 4
"""The maximum number of parameters to list."""


def _are_shifted(call: ApplyCall, positional: tuple[Param, ...]) -> bool:
    """Whether an argument has the name of a later parameter: then the omitted ones are not the last ones."""
    given = [name.rpartition(".")[2] for name in call.names]
    return are_shifted(given, [param.name for param in positional])


def _if_meant(call: ApplyCall, positional: tuple[Param, ...]) -> str:
    """The condition if an argument after the first, which is often a tensor of any name, has the name of no parameter."""
    parameters, given = {param.name for param in positional}, {name.rpartition(".")[2] for name in call.names[1:]}
    return ", if this Function is meant" * (not given - {""} <= parameters)


def _inside_another(call: ApplyCall, missing: Sequence[str]) -> str | None:
    """The remedy where another call among the arguments gets what is omitted, and raises before ``apply`` is called."""
    found = {name: path for name, path in call.inner if name in missing}
    if not found:
        return None
    others = ", and the other inputs too" if len(found) < len(missing) else ""
    return f"Pass {quoted(found)} to `apply`, not to {quoted(dict.fromkeys(found.values()))}{others}"


def _rest(call: ApplyCall, missing: Sequence[str]) -> str:
    """What to pass; by position, several missing arguments may have shifted the present ones.

    The caller need not have a name for it, or binds that only to the result.
    """
    if not call.positional and not call.keywords:
        return "Drop the `()` if the function itself is meant, or pass one argument for each input"
    if not call.keywords and (len(missing) > 1 or call.positional > _FEW):
        return "Pass one argument for each input"
    return f"Pass {'a value' if len(missing) == 1 else 'values'} for {them(missing)} too"


_FEW = 2
"""Among more arguments, another than the last one may be missing."""


_RAISES = "torch raises TypeError at `apply`."
