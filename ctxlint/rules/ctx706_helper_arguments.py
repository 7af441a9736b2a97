"""CTX706: a function of the project that is called with other arguments than it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.certain_raises import certain_raises
from ctxlint.model.analyses.foreign_names import names_of_forward, undefined_names
from ctxlint.model.analyses.undefined_attributes import never_happens
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MisfitKind
from ctxlint.model.interpreter.signatures import are_shifted
from ctxlint.model.syntax import code_of, last_name
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import fact, misfits, remedy
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.rules.misfit_wording import MisfitFound


class HelperArguments(Rule[FunctionClass]):
    """
    ## What it does
    Reports calls of functions of the project, in the Function or in functions that it calls, that pass too many
    arguments, omit a parameter without a default, pass one by position and by keyword, or pass an unknown keyword.

    ## Why is this bad?
    The call raises `TypeError: backward_of_scale() missing 1 required positional argument: 'scale'`, in `backward` perhaps
    only after a long forward pass. A function under `torch.jit.script` raises `RuntimeError`.

    ## Example
    ```python
    import torch


    def backward_of_scale(grad_output, scale):
        return grad_output * scale


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return backward_of_scale((grad_output, ctx.scale)), None
    ```

    ## Use instead
    ```python
    import torch


    def backward_of_scale(grad_output, scale):
        return grad_output * scale


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return backward_of_scale(grad_output, ctx.scale), None
    ```

    ## Fix safety
    There is no fix: only the author knows which argument is missing, or too many.

    ## Known limits
    Not reported: calls with `*args` or `**kwargs`; calls under `try`; methods of objects; functions that a name is bound
    to again, that have several definitions, or that a decorator of the project changes; in `backward`, a call in another
    function that `forward` always runs into.

    ## References
    - [Calls](https://docs.python.org/3/reference/expressions.html#calls)
    """

    code = "CTX706"
    name = "helper-arguments"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for found in misfits(fn, MisfitKind.CALL):
            event, misfit = found.event, found.misfit
            if not (never_happens(fn, found.method, event) or _raises_before(fn, found)):
                consequence = f"it raises {misfit.raises} {found.when}{found.unless_skipped}. {_remedy(fn, found)}"
                wrong = "with too few arguments" if _is_shifted(found) else fact(misfit)
                if misfit.surplus and misfit.takes and misfit.unknown:
                    wrong += f", none of them {quoted(misfit.unknown, 'or')}"
                message = f"{found.by} calls `{misfit.callee}` {wrong}; {consequence}"
                unpack = f", and unpack the {misfit.results} results" if misfit.results > 1 else ""
                wording = fitting(f"{message}{unpack}.", f"{message}.")
                yield Finding(fn.span(event.node), wording, related=way_to(fn, event))


def _raises_before(fn: FunctionClass, found: MisfitFound) -> bool:
    """Whether an argument of the call is a name that is not defined, or raises otherwise: a name behind its ``del``."""
    method = found.method
    elsewhere = names_of_forward(fn, method) if method is fn.backward else ()
    names = (*undefined_names(fn, method), *(node for node, _error in elsewhere))
    raising = (*names, *certain_raises(fn, method, plainly=True))
    return any(found.event.node in method.above(each) for each in raising)


def _is_shifted(found: MisfitFound) -> bool:
    """Whether the call passes what has the name of a missing parameter, for another one: ``run(size)``."""
    call = found.event.node if not found.event.by else None
    by_position = [each.value for each in call.args if each.keyword is None] if isinstance(call, cst.Call) else []
    names = [last_name(each) for each in by_position]
    if not {*names, *(each.rstrip("0123456789") for each in names)}.isdisjoint(found.misfit.missing):
        return True
    misfit = found.misfit
    of_object = misfit.receiver or misfit.unread
    return bool(misfit.missing) and not (misfit.surplus or of_object) and are_shifted(names, misfit.params)


def _graph_not_given(found: MisfitFound) -> str | None:
    """The graph that ``symbolic`` gets, if it returns what a function computes without it: from nodes, not tensors."""
    call, params = found.event.node, found.method.own_params
    if found.method.name != "symbolic" or found.event.by or not isinstance(call, cst.Call) or not params:
        return None
    graph = params[0].name
    is_returned = isinstance(found.method.parents[call], cst.Return)
    return graph if is_returned and graph not in map(code_of, (each.value for each in call.args)) else None


def _lacks_inputs(fn: FunctionClass, found: MisfitFound) -> bool:
    """Whether ``symbolic`` itself makes the call, and takes a graph but fewer inputs than forward."""
    return not found.event.by and 0 < len(found.method.own_params) <= fn.required_inputs


def _remedy(fn: FunctionClass, found: MisfitFound) -> str:
    """What to write; one tuple of all arguments has a pair of parentheses too many."""
    misfit = found.misfit
    if (graph := _graph_not_given(found)) is not None:
        node = f"a node from `{graph}.op(...)`"
        return (
            f"Take the inputs of `forward`, and return {node}" if _lacks_inputs(fn, found) else f"Return {node} instead"
        )
    if misfit.missing and found.method.name == "symbolic" and _lacks_inputs(fn, found):
        graph = found.method.own_params[0].name
        return f"Take the inputs of `forward` after `{graph}`, and pass {them(misfit.missing)} too"
    if misfit.wrapped:
        return "Remove the inner parentheses"
    if misfit.receiver and len(misfit.missing) == 1 and not misfit.surplus:
        kind = "classmethod" if misfit.receiver == "cls" else "staticmethod"
        without = "" if misfit.receiver == "cls" else f", and drop `{misfit.receiver}`"
        return f"Write `@{kind}` above `{misfit.callee}`{without}"
    if misfit.unread and len(misfit.missing) == 1 and not misfit.surplus:
        return f"Drop the parameter `{misfit.unread}` of `{misfit.callee}`, and what other calls pass for it"
    if misfit.meant:
        pairs = [f"`{new}` for `{old}`" for old, new in zip(misfit.unknown, misfit.meant, strict=True)]
        return f"Write {', '.join(pairs[:-1])}{' and ' * (len(pairs) > 1)}{pairs[-1]}"
    if len(misfit.missing) == len(misfit.unknown) == 1:
        return f"Pass `{misfit.missing[0]}`, not `{misfit.unknown[0]}`"
    if misfit.surplus and misfit.unknown:
        return "Call a function that takes these arguments, or pass what it takes"
    if _is_shifted(found) or (misfit.missing and misfit.unknown):
        others = f", and none for {quoted(misfit.unknown, 'or')}" if misfit.unknown else ""
        return f"Pass one argument for each parameter{others}"
    return remedy(misfit)
