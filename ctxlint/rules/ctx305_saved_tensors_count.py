"""CTX305: backward unpacks another number of tensors from ``ctx.saved_tensors`` than forward saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.unpacking import unpack_all
from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.saved_tensors import mismatched, saved_counts, saving_call
from ctxlint.model.analyses.shape_unpackings import shape_mismatches
from ctxlint.model.function import ContextCall, FunctionClass, Trust, Unpacking
from ctxlint.model.interpreter.method import ParameterKind
from ctxlint.model.interpreter.values import Mapping, Sequence, Tri, is_input, is_tensor
from ctxlint.model.syntax import only_target
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import at, saves, way_to
from ctxlint.rules.wording import counted, doer, if_it_happens, if_it_runs, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.shape_unpackings import ShapeUnpacking
    from ctxlint.model.function import Input, SavedItem
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value
    from ctxlint.source.source import Position


class SavedTensorsCount(Rule[FunctionClass]):
    """
    ## What it does
    Reports an unpacking of `ctx.saved_tensors` into a number of names other than the number of tensors that
    `save_for_backward` was given, and an index past the last saved tensor. Also an unpacking of the shape of a saved input
    into another number of names than `forward` unpacks it into: `n, c = x.shape` after `n, c, length = x.shape`.

    ## Why is this bad?
    `backward` raises `ValueError: not enough values to unpack (expected 2, got 1)`, `ValueError: too many values to
    unpack (expected 1)` or `IndexError: tuple index out of range`. `None` counts as a saved tensor and is returned as
    `None`.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y, product = ctx.saved_tensors
            return grad_output * y, grad_output * x
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x
    ```

    ## Fix safety
    The fix is safe: it unpacks what `forward` saves and `backward` reads under the same name. There is none for other
    numbers: only the author knows whether to save more or to unpack less.

    ## Known limits
    Not reported if a number is not certain: a starred argument, a ctx that is passed to another function, an unpacking
    that matches one of several calls of `save_for_backward`, a test of the length; nor if a list or dict is saved, for
    which `apply` raises (save-non-tensor, CTX303).

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX305"
    name = "saved-tensors-count"
    subject = FunctionClass
    says_if_it_runs = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.reading_methods:
            call = saving_call(method)
            saved = saved_counts(fn, call)
            if saved is None or (method.inherited and (fn.forward is None or fn.forward.inherited)):
                continue
            wrong = list(mismatched(method, saved))
            for taken in wrong if wrong and not _passes_container(fn, call) else ():
                message = (
                    f"{doer(fn, method, taken)} {_taken(taken)} but {_given(fn, method, call, saved)}; it raises "
                    f"{_error(fn, method, call, taken)}. {_advice(fn, method, call, taken, saved)}"
                )
                fix = _fix(fn, method, call, taken)
                yield Finding(fn.span(taken.node), message, fix, related=(*way_to(fn, taken), *saves(fn, call)))
            yield from _shapes(fn, method)


def _shapes(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """The unpackings of shapes."""
    for here, there in shape_mismatches(fn, method):
        if here.by:
            yield Finding(
                fn.span(here.statement),
                f"`{method.name}` of `{fn.name}` passes `{here.tensor.value}` to `{here.by}`, which unpacks its shape into "
                f"{counted(here.names, 'name')} but `forward` unpacks it into {there.names}; it raises "
                f"ValueError{if_it_runs(fn, method, here.statement)}. Pass a tensor with {counted(here.names, 'dimension')}.",
                related=(*way_to(fn, here), *at(fn, (there.statement,), "unpacked here")),
            )
            continue
        yield Finding(
            fn.span(here.statement),
            f"`{method.name}` of `{fn.name}` unpacks the shape of `{here.tensor.value}` into {counted(here.names, 'name')} "
            f"but `forward` unpacks it into {there.names}; it raises ValueError{if_it_runs(fn, method, here.statement)}. "
            f"Unpack it into {there.names}{_without(method, here, there)}.",
            related=at(fn, (there.statement,), "unpacked here"),
        )


def _without(method: Method, here: ShapeUnpacking, there: ShapeUnpacking) -> str:
    """The only name that is too many, if the others are those of forward; other code may use it."""
    surplus = [each for each in _targets(here) if each not in _targets(there)]
    if not len(surplus) == 1 == here.names - there.names:
        return ""
    used = len(method.named.get(surplus[0], ())) > 1
    return f", without `{surplus[0]}`{', and change what uses that' * used}"


def _targets(unpacking: ShapeUnpacking) -> list[str]:
    target = only_target(unpacking.statement)
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return [each.value.value for each in elements if isinstance(each.value, cst.Name)]


def _passes_container(fn: FunctionClass, call: str) -> bool:
    """Whether a list or dict is passed: ``apply`` raises (CTX303), and how many tensors belong there is unknown."""
    passed = (argument.value for each in fn.context_calls(call) for argument in each.arguments if not argument.starred)
    return any(isinstance(each, (Sequence, Mapping)) for each in passed)


def _fix(fn: FunctionClass, method: Method, call: str, taken: Unpacking | SavedItem) -> Fix | None:
    """Unpack what is left out, if that is the advice."""
    names = _names_saved(fn, call)
    if not isinstance(taken, Unpacking) or taken.by or names is None or not _left_out(fn, method, call, taken):
        return None
    return unpack_all(fn, method, taken.node, names)


def _taken(taken: Unpacking | SavedItem) -> str:
    if not isinstance(taken, Unpacking):
        return f"reads item {taken.index} of its saved tensors"
    return f"unpacks {'at least ' if taken.starred else ''}{counted(taken.minimum, 'saved tensor')}"


def _given(fn: FunctionClass, method: Method, call: str, saved: frozenset[int]) -> str:
    if saved == {0}:
        late = any(each.method == call for method in fn.reading_methods for each in method.facts.of(ContextCall))
        never = f"`{(fn.setup_context or fn.forward or method).name}` never calls" if late else "nothing calls"
        return f"`{call}` saves none" if fn.context_calls(call) else f"{never} `{call}`"
    numbers = " or ".join(str(count) for count in sorted(saved))
    return f"`{call}` saves {numbers}"


def _error(fn: FunctionClass, method: Method, call: str, taken: Unpacking | SavedItem) -> str:
    error = "ValueError" if isinstance(taken, Unpacking) else "IndexError"
    error += if_it_happens(fn, method, taken)
    others = _others_saved(fn, call)
    if not others:
        return error
    not_tensors = f"{quoted(others)} {'is not a tensor' if len(others) == 1 else 'are not tensors'}"
    sure = all(
        each.is_tensor is Tri.NO and each.evidence[0].trust in (Trust.PROOF, Trust.STRONG) for each in others.values()
    )
    return f"TypeError at `apply`, as {not_tensors}" if sure else f"{error}, or TypeError at `apply` if {not_tensors}"


def _others_saved(fn: FunctionClass, call: str) -> dict[str, Input]:
    """The inputs in the only call that are not tensors, as far as is known: with these, `apply` raises."""
    calls = fn.context_calls(call)
    values = [argument.value for argument in calls[0].arguments] if len(calls) == 1 else []
    inputs = [fn.inputs[each.index] for each in values if is_input(each)]
    return {each.name: each for each in inputs if _is_not_a_tensor(each, call)}


def _is_not_a_tensor(entry: Input, call: str) -> bool:
    """Whether all that is known of an input, apart from this call, is that it is not a tensor."""
    weighty = [each for each in entry.evidence if each.trust is not Trust.HINT and call not in each.reason]
    return bool(weighty) and not any(each.tensor or each.container for each in weighty)


def _advice(fn: FunctionClass, method: Method, call: str, taken: Unpacking | SavedItem, saved: frozenset[int]) -> str:
    if not isinstance(taken, Unpacking):
        return "Save it, or use another index."
    least = "at least " if taken.starred else ""
    if saved == {0}:
        names = [name for name in taken.names if name is not None]
        known = not taken.starred and len(names) == len(taken.names) and _binds(fn, names)
        return f"{_kept(fn, names)}." if known else f"Save {least}{taken.minimum}."
    others = _others_saved(fn, call)
    if others and not taken.starred and saved == {taken.minimum + len(others)}:
        writes = quoted(f"{fn.storing_ctx}.{name} = {name}" for name in others)
        return f"Write {writes} instead of saving {them(others)}."
    left = _left_out(fn, method, call, taken)
    if left:
        return f"Unpack {quoted(left)} too."
    names_saved = _names_saved(fn, call)
    unpacked = [name for name in taken.names if name is not None]
    if taken.starred or taken.by or None in taken.names or names_saved is None:
        return _other_number(method, saved, least, taken)
    more = [name for name in unpacked if name not in names_saved and name in method.facts.names_read]
    if len(more) != len(unpacked) - len(names_saved):
        return _other_number(method, saved, least, taken)
    if more and _binds(fn, more):
        return f"{_kept(fn, more, ' too')}."
    if not more or not _are_all_read(method, unpacked):
        return _other_number(method, saved, least, taken)
    writer = fn.setup_context or fn.forward
    rest = writer.variadic if writer is not None else None
    if rest is not None and more == [rest.name] == unpacked[-1:]:
        return f"Save and unpack `*{rest.name}`."
    if any(_is_container(fn, name) or _is_other(fn, name) for name in more):
        return _other_number(method, saved, least, taken)
    return f"Save {'a tensor' if len(more) == 1 else 'tensors'} for {quoted(more)} too."


def _other_number(method: Method, saved: frozenset[int], least: str, taken: Unpacking) -> str:
    """What to write where either side may be wrong: not to unpack fewer than what the method reads."""
    names = [name for name in taken.names if name is not None]
    if not taken.by and names and max(saved) < taken.minimum and _are_all_read(method, names):
        return f"Save {least}{taken.minimum}, as `{method.name}` uses them all."
    return f"Unpack {' or '.join(str(count) for count in sorted(saved))}, or save {least}{taken.minimum}."


def _are_all_read(method: Method, names: list[str]) -> bool:
    """Whether a method reads all names that it unpacks, and binds them nowhere else: none can be left out."""
    return all(name in method.facts.names_read and len(method.binders.get(name, ())) == 1 for name in names)


def _kept(fn: FunctionClass, names: list[str], too: str = "") -> str:
    """How the method that saves has to keep what has these names: torch saves only tensors."""
    containers = [name for name in names if _is_container(fn, name)]
    others = [name for name in names if name not in containers and _is_other(fn, name)]
    tensors = [name for name in names if name not in containers and name not in others]
    if len(names) == len(tensors) == 1 and _may_be_other(fn, names[0]):
        return f"Save `{names[0]}`{too} if it is a tensor, else keep it as `{fn.storing_ctx}.{names[0]}`"
    parts = [quoted(tensors)] if tensors else []
    parts += [f"the tensors in {quoted(containers)} one by one"] if containers else []
    saved = f"Save {' and '.join(parts)}{too}{', and unpack as many' if containers else ''}" if parts else ""
    attributes = quoted(f"{fn.storing_ctx}.{name}" for name in others)
    if not others:
        return saved
    return (
        f"{saved}, and keep {quoted(others)} as {attributes}"
        if saved
        else f"Keep {quoted(others)} as {attributes} instead"
    )


def _is_container(fn: FunctionClass, name: str) -> bool:
    """Whether the method that saves binds a list, tuple or dict to a name, or seems to get one: it reads only items."""
    return isinstance(_value_of(fn, name), (Sequence, Mapping)) or _gives_items(fn, name)


def _gives_items(fn: FunctionClass, name: str) -> bool:
    """Whether the method that saves takes an input apart: reads several items by number, unpacks or passes it with a star."""
    writer = fn.setup_context or fn.forward
    if writer is None or all(each.name != name for each in fn.inputs):
        return False
    uses = [(each, writer.parents.get(each)) for each in writer.named.get(name, ())]
    around = [each for _use, each in uses]
    if any(isinstance(each, cst.StarredElement) or (isinstance(each, cst.Arg) and each.star) for each in around):
        return True
    unpacked = (each.value for each in around if isinstance(each, cst.Assign) and _is_sequence(only_target(each)))
    if any(each is use for each in unpacked for use, _around in uses):
        return True
    read = [each.slice[0].slice for each in around if isinstance(each, cst.Subscript) and len(each.slice) == 1]
    numbers = {each.value.value for each in read if isinstance(each, cst.Index) and isinstance(each.value, cst.Integer)}
    return len(numbers) > 1


def _is_sequence(target: cst.CSTNode | None) -> bool:
    return isinstance(target, (cst.Tuple, cst.List))


def _is_other(fn: FunctionClass, name: str) -> bool:
    """Whether a name is certainly that of a number, a shape or the like."""
    value, entry = _value_of(fn, name), next((each for each in fn.inputs if each.name == name), None)
    if value is not None:
        return is_tensor(value) is Tri.NO
    return entry is not None and (entry.is_tensor is Tri.NO or bool(entry.against_a_gradient))


def _may_be_other(fn: FunctionClass, name: str) -> bool:
    """Whether a name may be that of an input that is not a tensor: nothing shows one, and it gets no gradient."""
    entry = next((each for each in fn.inputs if each.name == name), None)
    return entry is not None and entry.is_tensor is not Tri.YES and entry.gradient is not Tri.YES


def _value_of(fn: FunctionClass, name: str) -> Value | None:
    """What the only assignment in the method that saves binds a name to."""
    writer = fn.setup_context or fn.forward
    return writer.value_of(name) if writer is not None else None


def _binds(fn: FunctionClass, names: list[str]) -> bool:
    """Whether the method that saves certainly has all of these names, where it saves: not as ``*args``."""
    writer = fn.setup_context or fn.forward
    if writer is None:
        return False
    given = {each.name for each in writer.params if each.kind is not ParameterKind.VARIADIC}
    first = min((fn.start(each.node) for each in fn.saves), default=None)
    return all(name in given or _is_always_bound(fn, writer, name, first) for name in names)


def _is_always_bound(fn: FunctionClass, writer: Method, name: str, place: Position | None) -> bool:
    """Whether a method binds a name before a place, on every path, as far as single assignments and tests show."""
    bound = writer.assignments.get(name, ())
    if any(place is not None and fn.start(each.node) > place for each in bound):
        return False
    return name in writer.binders and (not bound or any(runs(writer, each.node) is Runs.ALWAYS for each in bound))


def _left_out(fn: FunctionClass, method: Method, call: str, taken: Unpacking) -> list[str]:
    """The names that forward saves and that the method reads but does not unpack, if these are all that it leaves out."""
    names_saved = _names_saved(fn, call)
    if taken.starred or None in taken.names or names_saved is None or _others_saved(fn, call):
        return []
    left = [name for name in names_saved if name not in taken.names and _needs(fn, method, name)]
    return left if len(left) == len(names_saved) - len(taken.names) else []


def _names_saved(fn: FunctionClass, call: str) -> list[str] | None:
    """The names that forward saves; None if there are several calls, or other expressions."""
    calls = fn.context_calls(call)
    nodes = [argument.node for argument in calls[0].arguments] if len(calls) == 1 else []
    names = [node.value for node in nodes if isinstance(node, cst.Name) and node.value != "None"]
    return names if names and len(set(names)) == len(nodes) else None


def _needs(fn: FunctionClass, method: Method, name: str) -> bool:
    """Whether the body reads a name before binding it, or never binds it."""
    uses = [[each, *method.above(each)] for each in method.named.get(name, ())]
    reads = [chain for chain in uses if not any(isinstance(each, cst.AssignTarget) for each in chain)]
    if not reads or any(param.name == name for param in method.params):
        return False
    first = min(reads, key=lambda chain: fn.start(chain[0]))
    binders = (each for each in method.binders.get(name, ()) if fn.start(each) < fn.start(first[0]))
    return all(isinstance(each, cst.AssignTarget) and method.parents[each] in first for each in binders)
