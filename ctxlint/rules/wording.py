"""Phrases that the messages of several rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.certain_raises import backward_is_unreached, is_behind_cast, raises_inside_before, reached
from ctxlint.model.analyses.conditional_code import Runs
from ctxlint.model.analyses.context_parameter import works_by_accident
from ctxlint.model.analyses.mutations import usually_no_copy
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Sized

    from ctxlint.model.analyses.gradient_placements import Expectation
    from ctxlint.model.analyses.unconditional_gradients import Unconditional
    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import ContextEvent, Event, Guard, Mutation, Unpacking
    from ctxlint.model.interpreter.method import Method
    from ctxlint.source.source import Span


def quoted(names: Iterable[str], conjunction: str = "and") -> str:
    """```a`, `b` and `c```: names in code quotes, joined as in a sentence."""
    marked = [f"`{name}`" for name in names]
    if len(marked) < 2:
        return "".join(marked)
    return f"{', '.join(marked[:-1])} {conjunction} {marked[-1]}"


LONGEST = 235
"""The maximum length of a message with names of usual length."""


def fitting(*messages: str) -> str:
    """The first of several wordings, from the best to the shortest, that is not too long with the user's names.

    If none is short enough, the last one in fewer words. Where something is does not count: the same program in
    other files gets the same words.
    """
    found = next(filter(_fits, messages), None)
    if found is None:
        from ctxlint.rules.fewer_words import in_fewer_words

        found = in_fewer_words(messages[-1], _fits)
    return found


def _fits(message: str) -> bool:
    return len(message) <= LONGEST or length_of(message) <= LONGEST


def length_of(message: str) -> int:
    """The length of a message with short names for lines and files."""
    return len(_PLACE.sub("line 1", message))


_PLACE = pattern(r"\bline \d+(?: of cell \d+)?(?: of `[^`]*\.py`)?")


def first_of(names: Sequence[str], most: int) -> str:
    """Some names in quotes; of more than ``most``, the first ones, and how many there are besides."""
    if len(names) <= most:
        return quoted(names)
    return f"{', '.join(f'`{each}`' for each in names[:most])} and {len(names) - most} more"


def counted(number: int, noun: str) -> str:
    """``1 input``, ``2 inputs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def them(things: Sized) -> str:
    """``it`` or ``them``."""
    return "it" if len(things) == 1 else "them"


def listed(number: int, noun: str, names: Sequence[str]) -> str:
    """``2 inputs (`x`, `slope`)``; with the names if each has one and they are few and short."""
    named = len(names) == number <= _FEW and 0 < sum(map(len, names)) <= _SHORT
    return f"{counted(number, noun)} ({', '.join(f'`{name}`' for name in names)})" if named else counted(number, noun)


_FEW = 4
_SHORT = 40


def names_of(fn: FunctionClass, indices: Iterable[int]) -> list[str]:
    """The names of inputs; ``input 3`` for one that has none."""
    return [fn.inputs[each].name if each < len(fn.inputs) else f"input {each + 1}" for each in indices]


def all_inputs(fn: FunctionClass) -> str:
    """What ``forward`` takes: ``2 inputs (`x`, `slope`)``."""
    return listed(len(fn.inputs), "input", [each.name for each in fn.inputs])


def wanted_inputs(fn: FunctionClass, expected: Expectation) -> str:
    """The reason for the number of gradients: ``` `forward` takes 2 inputs (`x`, `slope`)```."""
    if expected.call is not None:
        return f"the call on {expected.call.place} passes {counted(expected.count, 'input')}"
    if expected.count == len(fn.inputs) and fn.variadic_inputs is None:
        return f"`forward` takes {all_inputs(fn)}"
    if expected.count > len(fn.inputs) and fn.variadic_inputs is not None:
        unpacked = counted(expected.count - len(fn.inputs), "input")
        before = f"takes {all_inputs(fn)} and " if fn.inputs else ""
        return f"`forward` {before}unpacks {unpacked} from `*{fn.variadic_inputs.name}`"
    names = [each.name for each in fn.inputs[: expected.count]]
    return f"`forward` takes at least {listed(expected.count, 'input', names)}"


def under_flag(event: Event) -> str:
    """`` under `ctx.inplace` `` if the event depends on that flag alone; empty if it depends on nothing or on more."""
    tests = {guard.text: guard for guard in event.guards}
    flags = [guard for guard in tests.values() if guard.holds and isinstance(guard.test, (cst.Name, cst.Attribute))]
    return f" under `{flags[0].text}`" if len(flags) == len(tests) == 1 else ""


def unless_copied(*mutations: Mutation) -> str:
    """`` unless `contiguous` copies it``, if the tensors come from such a method; it copies only unusual layouts."""
    methods = {usually_no_copy(each) for each in mutations}
    method = methods.pop() if len(methods) == 1 else ""
    return f" unless `{method}` copies {them(mutations)}" if method else ""


def doer(fn: FunctionClass, method: Method, event: ContextEvent | Unpacking) -> str:
    """Who uses the ctx: the method, or a function that the method calls."""
    own = f"`{method.name}` of `{fn.name}`"
    helper = event.captured_by or event.by
    return f"`{helper}`, called by {own}," if helper else own


def name_with_the_words_of(method: Method, name: str) -> str | None:
    """The name in a method that has the words of another one in another order, as ``x_grad`` for ``grad_x``.

    Or with underscores at other ends, as ``scale`` for ``scale_``.
    """
    words = _words(name)
    names = sorted({*method.binders, *(each.name for each in method.own_params)} - {name})
    return next((each for each in names if words and "_" in name + each and _words(each) == words), None)


def _words(name: str) -> list[str]:
    return sorted(filter(None, name.split("_")))


def moment(method: Method) -> str:
    """When torch calls a method: ``at backward``."""
    return _MOMENTS.get(method.name, "at `apply`")


_MOMENTS = {
    "backward": "at backward",
    "vjp": "at backward",
    "jvp": "under forward-mode AD",
    "symbolic": "when `torch.onnx` calls it",
    "vmap": "under `torch.vmap`",
}


def if_it_runs(fn: FunctionClass, method: Method, node: cst.CSTNode) -> str:
    """`` if this line runs`` unless code always runs: a condition may skip it, or something before it raises."""
    return _IF_IT_RUNS[reached(fn, method, node)]


def if_it_happens(fn: FunctionClass, method: Method, use: ContextEvent | Unpacking) -> str:
    """The same for a use of ctx: a function that the method calls may not get to it."""
    there = use.conditional or raises_inside_before(fn, method, use)
    return " if that code runs" if there else if_it_runs(fn, method, use.node)


_IF_IT_RUNS = {Runs.ALWAYS: "", Runs.STATEMENT: " if this line runs", Runs.OPERAND: " if this is evaluated"}


def if_backward_gets_there(fn: FunctionClass, message: str) -> str:
    """A message about what happens at backward, with the condition that nothing raises before it."""
    return if_it_gets_there(fn.backward.name if fn.backward is not None else "backward", message)


def if_it_gets_there(method: str, message: str) -> str:
    """A message about what a method does, with the condition that nothing raises before it.

    What a reference keeps in memory does not depend on that, and one condition is enough.
    """
    fact, mark, rest = message.partition("; ")
    consequence, end, remedy = rest.partition(". ")
    if _IN_ANY_CASE.search(consequence) or not _AT_RUN_TIME.search(consequence):
        return message
    unless = _UNLESS.fullmatch(consequence)
    if unless is not None:  # "unless it is dense, it raises"
        consequence = f"{unless[2]} {unless[1]}"
    consequence = consequence.replace(" at backward", "", 1)
    if consequence.startswith(f"`{method}` "):
        consequence = f"it {consequence.removeprefix(f'`{method}` ')}"
    and_if = " and " if consequence.startswith("if ") else ", "
    rest = f"{consequence.removeprefix('if ')}{end}{remedy}"
    conditions = (f"if `{method}` gets that far", "if it gets that far", "if reached")
    return fitting(*(f"{fact}{mark}{condition}{and_if}{rest}" for condition in conditions))


def once_counted(message: str) -> str:
    """A message about what becomes of a gradient, where torch rejects the number of gradients of that return."""
    fact, mark, rest = message.partition("; ")
    if "silently" not in rest.partition(". ")[0]:
        return message
    conditions = ("once the number of gradients is right", "once their number is right")
    return fitting(*(f"{fact}{mark}{each}, {rest}" for each in conditions))


def if_it_is_called(message: str) -> str:
    """A message about what torch does when it calls backward, with the condition that autograd gets there."""
    fact, mark, rest = message.partition("; ")
    consequence, end, remedy = rest.partition(". ")
    if not _ALWAYS_AT_BACKWARD.search(consequence):
        return message
    condition = "it is called" if fact.startswith("`backward` of ") else "autograd gets there"
    return fitting(f"{fact}{mark}{consequence} if {condition}{end}{remedy}")


_ALWAYS_AT_BACKWARD = pattern(r"\braises \w+(?: \([^)]*\))? at backward$")
_IN_ANY_CASE = pattern(r"\b(?:lines? runs?|gets that far|if reached|that (?:runs|does not run)|without backward)\b")
_AT_RUN_TIME = pattern(r"\b(?:raises?|silently)\b")
_UNLESS = pattern(r"(unless [^,]*), (.*)")


def to_setup_context(fn: FunctionClass) -> str:
    """What to do if ``setup_context`` is missing: a ``forward`` may take a ctx that it has no use for."""
    ctx = fn.storing_ctx
    if fn.forward is not None and ctx not in fn.forward.facts.names_read:
        return f"Remove `{ctx}` from `forward`, and define `setup_context({ctx}, inputs, output)`"
    return f"Move the code that uses the ctx to `setup_context({ctx}, inputs, output)`"


def refusal(fn: FunctionClass, method: Method) -> str:
    """The clause about what torch passes, if a method takes one parameter too many."""
    if works_by_accident(fn, method):
        return (
            " and shifts every input by one" if method.name == "forward" else " and shifts the other arguments by one"
        )
    return f" and raises TypeError {moment(method)}{if_called(fn, method)}"


def if_called(fn: FunctionClass, method: Method) -> str:
    """`` if it is called`` for a method that runs after ``apply``, if that raises, or its decorator does."""
    never = backward_is_unreached(fn) or (method is fn.backward and is_behind_cast(fn))
    return " if it is called" if method in fn.reading_methods and never else ""


def place_of_gradients(fn: FunctionClass, returned: Returned) -> Span:
    """Where to report what backward returns: at the return, or at this class's own part if it is inherited."""
    if fn.backward is None or fn.backward.inherited:
        return own_place(fn, fn.backward)
    return fn.span(returned.node)


def own_place(fn: FunctionClass, method: Method | None) -> Span:
    """The name of a method, or of another part of this class if the method is inherited."""
    for each in (method, fn.forward):
        if each is not None and not each.inherited:
            return fn.span(each.node.name)
    return fn.span(fn.node.name)


def gradient_for(name: str | None, input_name: str) -> str:
    """The gradient of an input, by its own name if it has one."""
    return f"`{name}`" if name is not None else f"the gradient of `{input_name}`"


def computed_in_vain(found: Unconditional, input_name: str, ctx: str, frozen: str = "") -> str:
    """What backward computes even if nobody needs it, and the remedy; ``frozen``: where the input is a frozen one."""
    what, flag = gradient_for(found.name, input_name), f"`{ctx}.needs_input_grad[{found.slot}]`"
    where = f" in `{found.helper}`" if found.helper else ""
    remedy = f"Test {flag}" if found.has_ctx else f"Pass {flag} to it"
    unneeded = (
        f"though the call on {frozen} passes a frozen `{input_name}`"
        if frozen
        else f"even if `{input_name}` needs no gradient"
    )
    return f"computes {what} with `{found.operation}`{where} {unneeded}; autograd drops the result. {remedy}."


def when(path: tuple[Guard, ...]) -> str:
    """When a path is taken, in words; empty if always."""
    if not path:
        return ""
    last = path[-1]
    if last.test is None:
        return " after an exception is caught" if last.arm == "except" else " on some path"
    if "\n" in last.text or len(last.text) > _LONGEST_TEST:
        return " on some path"
    return f" when `{last.text}` is {'true' if last.holds else 'false'}"


_LONGEST_TEST = 40
