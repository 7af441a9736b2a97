"""CTX319: ``requires_grad`` tested for a tensor for which it is always False."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.diagnostic import Related
from ctxlint.model.analyses.flags_of_copies import flags_of_copies
from ctxlint.model.analyses.grad_mode import (
    is_off,
    kept_untouched,
    untracked,
    untracked_if_cast,
    untracked_if_copied,
    untracked_if_laid_out,
)
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import FlagTestedInside, GradientFlag, GraphUseInside
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import code_of, last_name, names_in
from ctxlint.records import record
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method
    from ctxlint.model.interpreter.values import Parameter, Value


class DeadRequiresGradTest(Rule[FunctionClass]):
    """
    ## What it does
    Reports `.requires_grad` of a tensor that `forward` itself computed: the result of arithmetic, `clone()`, `detach()`
    or any other torch operation that copies; also of an input after `reshape`, `contiguous`, `float()` or `half()`, which
    may copy, and of one that `custom_fwd(cast_inputs=...)` casts under autocast. Checked in `forward` and `setup_context`, in functions of the
    project that these call, and in `backward` if the tensor is stored and is not an output, also in a function that it
    is passed to, and that may return `None` as a gradient; or of an element of a list that `forward` has filled with copies.

    ## Why is this bad?
    Autograd runs both methods with grad mode off. Tensors computed there do not require a gradient, even if an input
    does, so `.requires_grad` is always `False`: state saved under this test is never saved, a flag stored for
    `backward` is never set, and a gradient is silently missing.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            weight = weight.clone()
            ctx.weight_needs_grad = weight.requires_grad
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output * weight, grad_output * x if ctx.weight_needs_grad else None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output * weight, grad_output * x if ctx.needs_input_grad[1] else None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    In a function that is called, only one tensor that certainly is a copy or a result counts, and only if the function
    sets neither flags nor grad mode. Not reported for views (`view`, `transpose`, an index) and conversions by `to` of an input, which have the
    flag of the input if they copy nothing, unless `to` has a floating dtype such as `torch.float32`, or a test asks `x.dtype` before `x.to(dtype)`; if the method enables gradients itself
    (`requires_grad_()`); or if it may switch grad mode on. A copy that only some layouts need is not reported if no call
    in view passes on a tensor that it was passed, or a view such as `x.t()`. Nor is a flag that the method only gives to a
    tensor that it creates, as in `torch.zeros(n, requires_grad=x.requires_grad)`, nor that of a conversion where the method
    asserts a dtype.

    ## References
    - [FunctionCtx and needs_input_grad](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX319"
    name = "dead-requires-grad-test"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.called_directly & {"forward", "setup_context"}:
            return
        for method in fn.own_protocol_methods:
            copies: list[Finding] = []
            for each in _tests(method) if method.name in _METHODS else ():
                home = method if method.runs_before_backward else fn.methods.get("setup_context", fn.forward)
                if home is None:
                    continue
                value = each.value if home is method else kept_untouched(fn, method, each.value)
                copied = _copied(fn, method, home, value, each)
                if copied is not None:
                    copies.append(copied)
                if value is None or not untracked(fn, home, value):
                    continue
                remedy = _remedy(fn, home, value) if home is method else _ask(method)
                reason = (
                    f", which computes {each.what} with grad mode off"
                    if home is method and method is fn.forward
                    else " because it was computed with grad mode off"
                )
                said = f"{each.fact} always `False` in `{method.name}`{reason}. {each.ask(remedy)}"
                yield Finding(fn.span(each.node), said, related=each.way(fn))
            yield from _inside(fn, method)
            first, *others = copies or (None,)
            if first is not None:
                notes = (
                    each.related or (Related(each.span, "and this flag, if that is a copy"),)
                    for each in others
                    if each is not None
                )
                yield replace(first, related=(*first.related, *chain.from_iterable(notes)))
        yield from _of_elements(fn)


def _of_elements(fn: FunctionClass) -> Iterator[Finding]:
    """The flags that backward reads of elements of a list, which forward has filled with copies."""
    for each in flags_of_copies(fn):
        if fn.backward is None or _is_asserted_or_shown(fn.backward, each.node):
            continue
        fact = f"`{code_of(each.tensor)}.requires_grad`" if len(code_of(each.tensor)) < _LONG else "`requires_grad`"
        extent = "always `False`" if each.always else "`False`"
        copies = f"`{code_of(each.copy)}`" if len(code_of(each.copy)) < _LONG else "a copy"
        where = "as" if each.always else "where"
        yield Finding(
            fn.span(each.node),
            f"{fact} is {extent} in `{fn.backward.name}` {where} `forward` keeps {copies}, which requires no gradient. "
            f"Ask `{fn.backward.ctx_name}.needs_input_grad` instead.",
            related=at(fn, [each.copy], "this requires no gradient, as grad mode is off"),
        )


@record
class _Test:
    """A test of the flag of ``value``, which the code calls ``what``; ``inside`` a function that it is passed to."""

    node: cst.CSTNode
    value: Value | None
    what: str
    inside: FlagTestedInside | None = None

    @property
    def fact(self) -> str:
        """The start of a sentence that ends in what the flag is."""
        if self.inside is None:
            return f"`requires_grad` of {self.what} is"
        test = self.inside.test if len(self.inside.test) < _LONG else "requires_grad"
        return f"`{self.inside.by}` tests `{test}`, which is"

    def ask(self, remedy: str) -> str:
        """The remedy, for the function that tests."""
        return remedy if self.inside is None else remedy.replace("Test ", "Pass it ", 1)

    def way(self, fn: FunctionClass) -> tuple[Related, ...]:
        """Where that function tests it."""
        return way_to(fn, self.inside) if self.inside is not None else ()


_LONG = 50


def _tests(method: Method) -> Iterator[_Test]:
    """The tests of flags on which anything depends; in functions that backward calls, if it loses a gradient there."""
    for each in method.facts.of(GradientFlag):
        if not each.switched and _decides(method, each.node):
            what = f"`{each.value_node.value}`" if isinstance(each.value_node, cst.Name) else "this tensor"
            yield _Test(each.node, each.value, what)
    for inside in method.facts.of(FlagTestedInside) if not method.runs_before_backward else ():
        yield _Test(inside.node, inside.value, "it", inside)


def _copied(fn: FunctionClass, method: Method, home: Method, value: Value | None, test: _Test) -> Finding | None:
    """What to say about a test that misses the flag of an input if that is copied."""
    found = untracked_if_copied(fn, home, value)
    if found is not None:
        if (found.tested and _gets_a_gradient(fn, found.input)) or _is_worth_asking(fn, found.input):
            message = _message_if_copied(method, home, test, found.input, found.name)
            return Finding(fn.span(test.node), message, related=test.way(fn))
    laid_out = untracked_if_laid_out(home, value)
    if laid_out is not None and _is_worth_asking(fn, laid_out[0]):
        copied, decorator = laid_out
        message = (
            f"{test.fact} `False` in `{method.name}` if `@{last_name(decorator.node.decorator)}` copies the input "
            f"`{copied.name}`, as grad mode is off there. "
        )
        asked = test.ask(f"Test `{method.ctx_name}.needs_input_grad[{copied.index}]`.")
        return Finding(fn.span(test.node), message + asked, related=test.way(fn))
    cast = untracked_if_cast(home, value)
    if cast is None or cast.index >= len(fn.inputs) or fn.inputs[cast.index].gradient is not Tri.YES:
        return None
    message = (
        f"{test.fact} `False` in `{method.name}` if `cast_inputs` of `custom_fwd` casts the input `{cast.name}` under "
        f"autocast, as grad mode is off there. "
    )
    remedy = test.ask(f"Test `{method.ctx_name}.needs_input_grad[{cast.index}]`.")
    return Finding(fn.span(test.node), message + remedy, related=test.way(fn))


def _inside(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """Calls of functions that ask a tensor which they compute with grad mode off."""
    for call in method.facts.of(GraphUseInside):
        if call.test and is_off(method, call.node):
            yield Finding(
                fn.span(call.node),
                f"`{call.by}` tests `requires_grad` of a tensor that it computes with grad mode off (`{call.test}`); it is "
                f"always `False` in `{method.name}`. Ask an input, or pass its flag in `{method.ctx_name}.needs_input_grad`.",
                related=way_to(fn, call),
            )


def _message_if_copied(method: Method, home: Method, test: _Test, parameter: Parameter, call: str) -> str:
    """What is wrong with a flag that is lost if ``call`` copies an input in ``home``, where grad mode is off."""
    if home is method:
        where, remedy = "copies", f"Ask the input itself, before `{call}`"
    else:
        asked = [each for each in method.facts.of(GradientFlag) if each.value == test.value and not each.switched]
        places = "both places" if len(asked) == 2 else f"all {len(asked)} places"
        everywhere = f" in {places}" * (len(asked) > 1 and test.inside is None)
        flag = f"{method.ctx_name}.needs_input_grad[{parameter.index}]"
        where, remedy = f"in `{home.name}` copies", f"Test `{flag}`{everywhere}"
    return (
        f"{test.fact} `False` in `{method.name}` if `{call}` {where} the input `{parameter.name}`, "
        f"as grad mode is off there. {test.ask(remedy)}."
    )


def _gets_a_gradient(fn: FunctionClass, parameter: Parameter) -> bool:
    return parameter.index < len(fn.inputs) and fn.inputs[parameter.index].gradient is Tri.YES


def _is_worth_asking(fn: FunctionClass, parameter: Parameter) -> bool:
    """Whether an input gets a gradient, and a call in view may pass one that is copied, if there is any call."""
    if not _gets_a_gradient(fn, parameter):
        return False
    calls = [call for call in fn.calls if call.applies]
    return not calls or any(parameter.index in call.any_layout for call in calls)


_METHODS = ("forward", "setup_context", "backward", "vjp")


def _remedy(fn: FunctionClass, method: Method, value: Value | None) -> str:
    """What to test instead: the flags of the inputs with a gradient that the tensor was computed from, if there are any."""
    indices = {each.name: each.index for each in fn.inputs}
    names = {name for option in (value.options() if value else ()) for name in names_in(option.node)}  # type: ignore[attr-defined]
    local = [name for name in names if name in indices or name in method.binders]
    if not local or all(each.gradient is Tri.NO for each in fn.inputs):
        return "Drop the test."
    if not indices.keys() >= set(local):
        return _ask(method)
    local = [name for name in local if fn.inputs[indices[name]].gradient is not Tri.NO]
    if not local:
        return "Drop the test."
    if len(local) == 1:
        return f"Test `{method.ctx_name}.needs_input_grad[{indices[local[0]]}]`, the flag of the input `{local[0]}`."
    inputs = quoted(sorted(local, key=indices.__getitem__), "or")
    return f"Test the flag of the input {inputs} in `{method.ctx_name}.needs_input_grad`."


def _ask(method: Method) -> str:
    return f"Test the flag of an input in `{method.ctx_name}.needs_input_grad`, or drop the test."


def _decides(method: Method, node: cst.CSTNode) -> bool:
    """Whether anything depends on the value: more than the flag of a tensor that the method creates."""
    return not _is_asserted_or_shown(method, node) and not _is_handed_on(method, node)


def _is_handed_on(method: Method, node: cst.CSTNode) -> bool:
    """Whether it is only passed as such a flag, perhaps through a name: ``torch.zeros(n, requires_grad=flag)``.

    Or it gets a name that nothing reads.
    """
    around = method.parents.get(node)
    while isinstance(around, cst.BooleanOperation):  # `x.requires_grad or weight.requires_grad`
        node, around = around, method.parents.get(around)
    if isinstance(around, cst.Arg):
        call = method.parents[around]
        named = around.keyword.value if around.keyword is not None else ""
        sets_it = isinstance(call, cst.Call) and last_name(call.func) == "requires_grad_"
        return named == "requires_grad" or (sets_it and named in ("", "requires_grad"))
    if not isinstance(around, (cst.Assign, cst.AnnAssign)):
        return False
    target = around.target if isinstance(around, cst.AnnAssign) else around.targets[0].target
    if not isinstance(target, cst.Name) or method.bound_to(target.value) is not node:
        return False
    reads = [each for each in method.named[target.value] if each is not target]
    return all(_is_handed_on(method, each) for each in reads)


def _is_asserted_or_shown(method: Method, node: cst.CSTNode) -> bool:
    """Whether the value is only printed, or asserted to be False: then nothing depends on it."""
    for around in method.above(node):
        if isinstance(around, cst.Call) and isinstance(around.func, cst.Name) and around.func.value == "print":
            return True
        if isinstance(around, cst.BaseSmallStatement):
            return isinstance(around, cst.Assert) and _is_negated(around.test)
    return False


def _is_negated(test: cst.BaseExpression) -> bool:
    """``not …``, ``… is False``, ``… == False``."""
    if not isinstance(test, cst.Comparison):
        return isinstance(test, cst.UnaryOperation)
    last = test.comparisons[-1].comparator
    return isinstance(last, cst.Name) and last.value == "False"
