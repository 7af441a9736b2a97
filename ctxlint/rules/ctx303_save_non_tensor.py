"""CTX303: an argument of ``save_for_backward`` that is not a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.save_arguments import save_properly
from ctxlint.model.analyses.certain_raises import raises_before
from ctxlint.model.analyses.gradient_placements import exact_calls
from ctxlint.model.analyses.inputs import from_calls, passes_no_tensor
from ctxlint.model.analyses.rejections import swapped_in_setup
from ctxlint.model.analyses.saved_tensors import hides_an_input
from ctxlint.model.analyses.unsavable_values import evidence_against, is_unsavable, may_be_rejected, omits_number
from ctxlint.model.function import ContextCall, Evidence, FunctionClass, Trust
from ctxlint.model.interpreter.values import (
    Constant,
    Imported,
    Mapping,
    Scalar,
    Sequence,
    Tri,
    Variadic,
    is_container,
    is_input,
    is_tensor,
)
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


class SaveNonTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports arguments of `save_for_backward` and `save_for_forward` that are certainly neither a tensor nor `None`:
    numbers, strings, shapes, and lists or tuples without a star.

    ## Why is this bad?
    If a gradient is needed, `apply` raises `TypeError: save_for_backward can only save variables, but argument 1 is of
    type int`. Under `torch.no_grad()` and `torch.compile`, nothing is checked, so the defect shows up only in training.
    `save_for_forward` always raises `AssertionError`.

    ## Example
    ```python
    import torch


    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n: int):
            ctx.save_for_backward(x, n)
            return x**n

        @staticmethod
        def backward(ctx, grad_output):
            x, n = ctx.saved_tensors
            return grad_output * n * x ** (n - 1), None
    ```

    ## Use instead
    ```python
    import torch


    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n: int):
            ctx.save_for_backward(x)
            ctx.n = n
            return x**n

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * ctx.n * x ** (ctx.n - 1), None
    ```

    ## Fix safety
    A list of tensors gets a star; this is safe if `backward` unpacks exactly that many tensors, and not offered if it
    unpacks another number. Moving a number to an attribute of ctx is unsafe, and offered if `forward` saves once and
    `backward` unpacks once, each on a single line.

    ## Known limits
    Whether an input is a tensor is inferred from its annotation, its default, its uses and the calls in the linted
    files; where an input may be `None`, or is one of `*args`, only the calls count. An input annotated `float` is not reported: a model parameter may be passed for it.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX303"
    name = "save-non-tensor"
    subject = FunctionClass
    about_context = True
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.context_methods:
            if method.inherited or swapped_in_setup(fn, method) is not None:
                continue
            for call in method.facts.of(ContextCall):
                if call.method in ("save_for_backward", "save_for_forward"):
                    found = [*self.arguments(fn, method, call)]
                    if found and not raises_before(fn, method, call.node, plainly=True):  # such as another argument
                        yield from found

    def arguments(self, fn: FunctionClass, method: Method, call: ContextCall) -> Iterator[Finding]:
        """A finding for each argument that is not a tensor."""
        for argument in call.arguments:
            if argument.node is None:
                continue
            if argument.starred:
                passed = _passed_among(fn, argument.value) if not call.guards else None
                if passed is not None:
                    alone = bool(fn.calls) and all(map(passes_no_tensor, fn.calls))
                    message = _message_of_several(call.method, argument, passed, alone=alone)
                    yield Finding(fn.span(argument.node), message, related=way_to(fn, call))
                elif _holds_plain_values(fn, argument.value):
                    message = _message_of_plain(fn, method, call.method, argument.node)
                    yield Finding(fn.span(argument.node), message, related=way_to(fn, call))
                continue
            kind = _certain_kind(fn, argument.value) or _number_by_default(fn, method, call, argument.value)
            if kind is not None:
                written = isinstance(call.node, cst.Call) and any(
                    argument.node is each.value for each in call.node.args
                )
                place = argument.node if written else call.node
                builtin = isinstance(argument.value, Imported)
                yield Finding(
                    fn.span(place),
                    (
                        _message_of_builtin(fn, method, call.method, argument.node)
                        if builtin
                        else _message(fn, method, call, argument, kind)
                    ),
                    (
                        None
                        if builtin or call.by or _is_passed_elsewhere(fn, argument.value)
                        else save_properly(fn, method, call, argument)
                    ),
                    way_to(fn, call),
                    () if call.by else (argument.value,),
                )


def _effect(method: str) -> str:
    if method == "save_for_forward":
        return "`save_for_forward` raises AssertionError at `apply`"
    return "`save_for_backward` raises TypeError at `apply` when a gradient is needed"


def _message(fn: FunctionClass, home: Method, call: ContextCall, argument: Slot, kind: str) -> str:
    name = code_of(argument.node) if argument.node is not None else ""
    effect = _effect(call.method)
    if isinstance(argument.node, cst.Set):
        remedy = "Drop the braces, as a set has no order"
    elif _is_mixed(argument.value):
        remedy = f"Save only the tensors in it, and keep the rest as attributes of `{home.ctx_name}`"
    elif is_container(argument.value) is Tri.YES and not _is_plain(argument.value):
        remedy = f"{_taken_apart(argument, name)}{_starred_target(fn, call, argument)}"
        if _may_hold_anything(argument.value) and remedy.startswith("Write") and ", if it holds tensors" in remedy:
            written = remedy.replace("Write", "write", 1).replace(", if it holds tensors", "")
            remedy = f"Keep it on `{home.ctx_name}`, or, if it holds tensors, {written}"
    elif hides_an_input(fn, home, argument):
        remedy = "Give it another name, and save the input"
    elif _is_passed_elsewhere(fn, argument.value):
        remedy = f"Save it only if it is a tensor, and write `{home.ctx_name}.{name} = {name}` otherwise"
    elif _is_tensor_elsewhere(home, call, argument):
        remedy = "Make it a tensor, as the other call passes one there"
    else:
        remedy = _kept_instead(fn, home, name)
    subject = f"`{name}`" if "\n" not in name else "This argument"
    return f"{subject} is {kind}; {effect}. {remedy}."


def _taken_apart(argument: Slot, name: str) -> str:
    """How to save what a list, tuple, dict or generator holds."""
    if isinstance(argument.value, Mapping):
        named = isinstance(argument.node, cst.Name)
        return f"Write `*{name}.values()`, if it holds tensors" if named else "Save the tensors in it one by one"
    if "\n" in name:
        return "Put a star before it, if it holds tensors"
    bare = isinstance(argument.node, cst.GeneratorExp) and not argument.node.lpar
    return f"Write `*{f'({name})' if bare else name}`, if it holds tensors"


def _place_of(argument: Slot, call: ContextCall) -> int | None:
    """The position of an argument in a call; None if it is not one of it."""
    return next((at for at, each in enumerate(call.arguments) if each is argument), None)


def _starred_target(fn: FunctionClass, call: ContextCall, argument: Slot) -> str:
    """What else to change where backward unpacks as many tensors as there are arguments without the star."""
    at = _place_of(argument, call)
    if at is None or call.method != "save_for_backward" or any(each.starred for each in call.arguments):
        return ""
    unpacked = (each for read in fn.saved_reads for each in read.unpackings if not each.by)
    alike = next((each for each in unpacked if not each.starred and len(each.names) == len(call.arguments)), None)
    if alike is None:
        return ""
    return f", and unpack {f'`*{alike.names[at]}`' if alike.names[at] else 'it flat'} in `backward`"


def _is_tensor_elsewhere(home: Method, call: ContextCall, argument: Slot) -> bool:
    """Whether another call of the same name saves as much, and at this place a tensor: backward unpacks both alike."""
    at = _place_of(argument, call)
    others = [each for each in home.facts.of(ContextCall) if each.method == call.method and each is not call]
    alike = [each.arguments for each in others if len(each.arguments) == len(call.arguments)]
    plain = [each for each in alike if not any(slot.starred for slot in each)]
    return at is not None and any(is_tensor(each[at].value) is Tri.YES for each in plain)


def _is_passed_elsewhere(fn: FunctionClass, value: Value) -> bool:
    """Whether a call passes an input that another one leaves to a number as default: it may be a tensor there."""
    if not is_input(value) or omits_number(fn, value.index) is None:
        return False
    return any(passed > value.index or call.keywords for call, passed in exact_calls(fn))


def _kept_instead(fn: FunctionClass, home: Method, name: str) -> str:
    """What to write in place of an argument that is not a tensor, and where the saved tensors are read."""
    written = f"write `{home.ctx_name}.{name} = {name}`" if name.isidentifier() else "keep it as an attribute of ctx"
    if fn.saved_reads:
        return f"{written[0].upper()}{written[1:]} instead, and read that"
    return f"Drop it from the call, and {written}"


def _is_plain(value: Value) -> bool:
    """Whether a container certainly holds numbers, strings and shapes only."""
    slots = value.slots if isinstance(value, Sequence) else ()
    return bool(slots) and all(isinstance(slot.value, (Constant, Scalar)) for slot in slots)


def _is_mixed(value: Value) -> bool:
    """Whether a container certainly holds something else than tensors, but not only such things."""
    slots = value.slots if isinstance(value, Sequence) else ()
    return any(isinstance(slot.value, (Constant, Scalar)) for slot in slots) and not _is_plain(value)


def _may_hold_anything(value: Value) -> bool:
    """Whether the elements of a tuple or list are written, and none is a tensor or an input as far as is known."""
    slots = value.slots if isinstance(value, Sequence) else ()
    known = (is_tensor(slot.value) is not Tri.UNKNOWN or is_input(slot.value) or slot.starred for slot in slots)
    return bool(slots) and not any(known)


def _message_of_builtin(fn: FunctionClass, method: Method, called: str, node: cst.BaseExpression) -> str:
    """The message for the name of a builtin, where that of a tensor is meant."""
    name = code_of(node)
    alone = method is fn.forward and len(fn.inputs) == 1 and fn.variadic_inputs is None
    remedy = f"Save `{fn.inputs[0].name}`" if alone else "Save the tensor that is meant"
    return f"`{name}` is Python's builtin, not a tensor; {_effect(called)}. {remedy}."


def _message_of_several(method: str, argument: Slot, passed: Evidence, *, alone: bool) -> str:
    """The message for a starred argument with an element that is not a tensor; ``alone``: no call passes any."""
    name = f"`*{code_of(argument.node)}`" if argument.node is not None else "This argument"
    if alone:
        return (
            f"{name} holds a value that is not a tensor ({passed.reason}, and no tensor); torch saves nothing, and the output "
            f"silently has no gradient. Pass {'those in it one by one' if passed.container else 'a tensor'}."
        )
    remedy = (
        "Save only tensors, and pass those in it one by one" if passed.container else "Save only the tensors among them"
    )
    return f"{name} holds a value that is not a tensor ({passed.reason}); {_effect(method)}. {remedy}."


def _message_of_plain(fn: FunctionClass, home: Method, method: str, node: cst.BaseExpression) -> str:
    """About a starred argument without any tensor."""
    name = code_of(node)
    remedy = _kept_instead(fn, home, name)
    return f"`*{name}` passes values that are not tensors; {_effect(method)}. {remedy}."


def _holds_plain_values(fn: FunctionClass, value: Value) -> bool:
    """Whether what a star takes apart is certainly a shape, or an input that is annotated as a tuple of numbers."""
    if is_input(value):
        entry = fn.inputs[value.index]
        plain = [each for each in entry.evidence if each.trust is Trust.STRONG and not each.container]
        annotated = any(each.reason.endswith(", a container") for each in plain)
        return entry.is_tensor is Tri.NO and annotated
    return isinstance(value, Scalar) and value.sort == "shape"


def _passed_among(fn: FunctionClass, value: Value) -> Evidence | None:
    """What a known call passes for a ``*args`` of forward that is not a tensor, if any."""
    if not isinstance(value, Variadic) or value.role != "input":
        return None
    most = max((len(call.arguments) for call in fn.calls), default=0)
    calls = sorted(fn.calls, key=passes_no_tensor)  # for one that passes none, torch saves nothing
    found = (each for call in calls for index in range(value.start, most) for each in from_calls(index, [call]))
    passed = next((each for each in found if not each.tensor), None)
    whole = (call for call in fn.calls if call.relayed and len(call.arguments) >= value.start)
    relaying = next((call for call in whole if call.applies and not call.expects_error), None)
    if passed is not None or relaying is None:
        return passed
    reason = f"a call of `{relaying.inside}` passes a {relaying.relayed}"
    return Evidence(False, Trust.STRONG, reason, container=relaying.relayed == "container")


def _certain_kind(fn: FunctionClass, value: Value) -> str | None:
    """The kind of a value that is certainly neither a tensor nor None."""
    if is_input(value):
        return _kind_of_input(fn, value.index)
    if isinstance(value, Imported) and value.name.startswith("builtins."):
        return "a builtin"
    if not is_unsavable(fn, value):
        return None
    kinds = {_kind(option) for option in value.options()}
    return f"{kinds.pop() if len(kinds) == 1 else 'a number or a container'}, not a tensor"


def _kind_of_input(fn: FunctionClass, index: int) -> str | None:
    """An input counts if there is strong evidence against a tensor: a call, if None is allowed for it."""
    against = evidence_against(fn, index)
    if against is None:
        return None
    default = " by default" * against.by_default
    return f"not a tensor{default} ({against.reason.replace('it is annotated', 'annotated')})"


def _number_by_default(fn: FunctionClass, method: Method, call: ContextCall, value: Value) -> str | None:
    """What an input is if a call, or for one without a gradient a function around a call, leaves it to a number as default."""
    entry = fn.inputs[value.index] if is_input(value) and value.index < len(fn.inputs) else None
    if entry is None or may_be_rejected(method, call, entry.name):
        return None
    omitted = omits_number(fn, entry.index)
    if omitted is not None and not call.guards:
        default = code_of(entry.param.node.default) if entry.param.node.default is not None else ""
        return f"not a tensor by default ({omitted.place} omits it, and it is `{default}` then)"
    if entry.gradient is not Tri.NO or entry.is_tensor is Tri.NO:
        return None
    for each in fn.calls:
        number = dict(each.defaults).get(entry.index) if each.applies and not each.expects_error else None
        if number not in (None, "None") and not each.under_no_grad:
            return (
                f"not a tensor by default ({each.place} passes `{each.names[entry.index]}`, which is `{number}` then)"
            )
    return None


def _kind(value: Value) -> str:
    if isinstance(value, Sequence):
        return "a generator" if value.kind == "generator" else f"a {value.kind}"
    if isinstance(value, Mapping):
        return "a dict"
    if isinstance(value, Constant):
        return f"an {value.type_name}" if value.type_name == "int" else f"a {value.type_name}"
    if isinstance(value, Scalar):
        return _SORTS.get(value.sort, "a plain object")
    return "a tuple" if is_container(value) is Tri.YES else "a plain object"


_SORTS = {
    "int": "an int",
    "bool": "a bool",
    "float": "a float",
    "number": "a number",
    "str": "a string",
    "shape": "a shape",
    "callable": "a function",
    "array": "an array",
    "generator": "a generator",
}
