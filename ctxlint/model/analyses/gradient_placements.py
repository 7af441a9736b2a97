"""How many gradients torch expects, and which inputs got no None if backward returns too few.

Authors who forget a gradient usually forget the None of an input that is not a tensor. If that explains the shortfall,
it also determines where the missing None belong.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from ctxlint.model.analyses.flags import refused_flags
from ctxlint.model.analyses.gradient_names import leaves_out, named_input
from ctxlint.model.analyses.input_unpackings import unpacked_count
from ctxlint.model.analyses.input_uses import Uses
from ctxlint.model.analyses.missing_gradients import may_depend_on
from ctxlint.model.analyses.outputs import has_unfit_outputs
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.refused_gradients import refused_gradient
from ctxlint.model.function import Style, Trust
from ctxlint.model.interpreter.events import Assigned, ContextRead, NeedsInputGradRead
from ctxlint.model.interpreter.values import (
    NONE,
    Constant,
    ContextAttribute,
    Item,
    Sequence,
    Slot,
    Tri,
    is_input,
    is_none,
    storage,
)
from ctxlint.model.syntax import children, dotted, without_not
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    import libcst as cst

    from ctxlint.model.function import ApplyCall, FunctionClass, Input, Returned
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.source.source import Span

_MAX_PLACEMENTS = 64
"""The maximum number of placements to try; beyond it the shortfall counts as unexplained."""


@record
class Expectation:
    """The least number of gradients that torch expects; ``call`` is the call that requires so many, if there is one.

    ``counts_defaults``: the return is too short only if inputs that a call may leave out are counted. ``if_passed``:
    the input that a call would have to pass, as none in view does. Others with a default have a gradient.
    """

    count: int
    call: ApplyCall | None = None
    counts_defaults: bool = False
    if_passed: str = ""


@record
class Shortfall:
    """A return with too few gradients; ``placement`` explains it, if possible.

    Otherwise, ``guess`` is where the missing None likely belong.
    """

    returned: Returned
    expected: Expectation
    placement: Placement | None
    guess: Placement | None = None

    @property
    def likely(self) -> Placement | None:
        """The explanation, or else the guess."""
        return self.placement or self.guess


@record
class Placement:
    """The explanation of a shortfall: ``missing`` are the indices of the inputs that got no None.

    ``slots`` are the gradients after inserting the missing None, one entry for each input, None for an inserted one.
    ``unique``: the return has no other reading, neither one that gives another tuple, nor one in which the written None
    belong to these inputs and the gradient of a tensor is missing. ``certain``: the inputs are certainly not tensors.
    ``likely``: each written gradient is in the position of its own input, so that only the last None are missing; or
    the names of the gradients single out this reading.
    """

    missing: tuple[int, ...]
    slots: tuple[Slot | None, ...]
    unique: bool
    certain: bool
    likely: bool = False


def shortfalls(fn: FunctionClass, *, defaults_are_bound: bool) -> Iterator[Shortfall]:
    """Every return of backward that certainly has too few gradients.

    ``defaults_are_bound``: inputs that a call leaves out count if there is a ``setup_context``, as they do since torch
    2.2.
    """
    for returned in judged_gradients(fn):
        refused = refused_gradient(fn, returned) if returned.count is not None else None
        always_refused = refused is not None and not refused.if_needed
        if returned.count is None or always_refused or _is_without_gradients(fn, returned):
            continue
        expected = expected_gradients(fn, returned, defaults_are_bound=defaults_are_bound)
        if returned.count < expected.count:
            placement = explain(fn, returned, expected.count)
            guess = guessed(fn, returned, expected.count) if placement is None else None
            if _skips_a_parameter(fn, returned, placement or guess):
                placement = guess = None
            yield Shortfall(
                returned, expected, _with_optional(fn, placement, expected), _with_optional(fn, guess, expected)
            )


def is_in_miscounted(fn: FunctionClass, span: Span) -> bool:
    """Whether a place is in a return of backward with another number of gradients than torch takes after any call."""
    spans = ((each, fn.span(each.node)) for each in fn.gradients)
    returns = [each for each, around in spans if around.start <= span.start and span.end <= around.end]
    if not returns or fn.counted_backward is None:
        return False
    short = {id(each.returned) for each in shortfalls(fn, defaults_are_bound=False) if not _fits_a_call(fn, each)}
    return all(id(each) in short or _has_surplus(fn, each) for each in returns)


def _fits_a_call(fn: FunctionClass, shortfall: Shortfall) -> bool:
    """Whether a return has enough gradients for a call in view, or for one that passes no input with a default."""
    actual = shortfall.returned.count or 0
    return bool(shortfall.expected.if_passed) or any(passed <= actual for _call, passed in exact_calls(fn))


def _has_surplus(fn: FunctionClass, returned: Returned) -> bool:
    """Whether a return certainly has a gradient that is for no input, and not None, which torch would drop."""
    surplus = returned.slots[len(fn.inputs) :] if returned.known and fn.variadic_inputs is None else ()
    return any(not each.starred and is_none(each.value) is Tri.NO for each in surplus)


def one_for_each_place(found: Iterable[Shortfall]) -> list[Shortfall]:
    """One for all values that a call may return where backward returns it: a project function with several returns.

    Of those, the last one in which the missing gradients are known.
    """
    by_place: dict[tuple[object, ...], Shortfall] = {}
    for each in found:
        slots = (slot.node for slot in each.returned.slots)
        key = (each.returned.node, each.returned.count, each.returned.value == NONE, *slots)
        if key not in by_place or each.placement is not None or by_place[key].placement is None:
            by_place[key] = each
    return [*by_place.values()]


def _is_unless_needed(fn: FunctionClass, guard: Guard) -> bool:
    """Whether a test asks for a false ``ctx.a``, which forward only makes true where an input needs a gradient."""
    flag = without_not(guard.test)
    if flag is None or fn.backward is None or not fn.backward.is_on_ctx(flag) or (flag is guard.test) is guard.holds:
        return False
    writes = fn.writes_by_attribute.get(flag.attr.value, ())
    true = [each for each in writes if not (isinstance(each.value, Constant) and not each.value.value)]
    return bool(true) and all(any(map(partial(_asks_one_of_several, fn), each.guards)) for each in true)


def _asks_one_of_several(fn: FunctionClass, guard: Guard) -> bool:
    """Whether a test is ``each.requires_grad`` of what a loop runs over: perhaps of any input."""
    asked = guard.test if guard.holds else None
    path = dotted(asked) if asked is not None else None
    name, _, attribute = (path or "").rpartition(".")
    return attribute == "requires_grad" and "." not in name and all(each.name != name for each in fn.inputs)


def _is_without_gradients(fn: FunctionClass, returned: Returned) -> bool:
    """Whether the inputs that need no gradient on the way to a return seem to be the only tensors.

    Or perhaps no input needs one there, by what forward keeps on ctx: then torch never gets to the return.
    """
    if any(map(partial(_is_unless_needed, fn), returned.event.guards)):
        return True
    refused = refused_flags(returned.event.guards)
    if not refused or fn.variadic_inputs is not None:
        return False
    others = (each for each in fn.inputs if each.index not in refused)
    return all(each.is_tensor is Tri.NO or _seems_plain(fn, each) for each in others)


def _seems_plain(fn: FunctionClass, entry: Input) -> bool:
    """Whether forward keeps an input as a plain value, or makes no use of it, and no call shows a tensor."""
    if any(each.tensor for each in entry.evidence) or fn.forward is None:
        return False
    return _kept_as_plain_value(fn, entry.index) or len(fn.forward.named.get(entry.name, ())) < 2


def _skips_a_parameter(fn: FunctionClass, returned: Returned, way: Placement | None) -> bool:
    """Whether a reading gives None to a parameter that a call passes, and a missing None in front of it another one.

    That is: an input there shows no sign of a tensor, and a gradient that is not named after the input that it faces
    then moves to the parameter.
    """
    if way is None:
        return False
    lacking = len(way.slots) - len(returned.slots)
    tensors = _tensors(fn, Trust.HINT)
    passed = (call.leaves for call in fn.calls if call.applies and not (call.expects_error or call.under_no_grad))
    for at in frozenset[int]().union(*passed):
        gets = way.slots[at] if at < len(way.slots) else None
        if at >= len(way.slots) or (gets is not None and is_none(gets.value) is not Tri.YES):
            continue
        before = [*enumerate(returned.slots)][max(at - lacking, 0) : at]
        moved = (each for each in before if is_none(each[1].value) is not Tri.YES)
        if not tensors.issuperset(range(1, at)) and any(
            named_input(slot.node, fn.inputs) != position for position, slot in moved
        ):
            return True
    return False


def _with_optional(fn: FunctionClass, placement: Placement | None, expected: Expectation) -> Placement | None:
    """The explanation, with None for the optional inputs after the expected ones that are certainly not tensors.

    A call that passes them expects these as well; to any other, a surplus None does no harm.
    """
    if placement is None or fn.variadic_inputs is not None:
        return placement
    optional = takewhile(lambda each: each.is_tensor is Tri.NO, fn.inputs[expected.count :])
    added = tuple(each.index for each in optional)
    missing, slots = (*placement.missing, *added), (*placement.slots, *(None for _each in added))
    return replace(placement, missing=missing, slots=slots)


# ---------------------------------------------------------------------------------------------------------------------
# How many


def exact_calls(fn: FunctionClass) -> Iterator[tuple[ApplyCall, int]]:
    """The known calls of ``apply`` that pass a known and valid number of inputs, with that number.

    Without those in its own methods: the gradients of a second backward are another matter.
    """
    for call in fn.calls:
        if _is_own(fn, call):
            continue
        if not call.applies or call.starred or call.double_starred:
            continue
        if call.expects_error or call.gradients_off:
            continue
        passed = call.positional + len(call.keywords)
        if passed >= fn.required_inputs and (passed <= len(fn.inputs) or fn.variadic_inputs is not None):
            yield call, passed


def _is_own(fn: FunctionClass, call: ApplyCall) -> bool:
    """Whether a method of the Function makes the call."""
    return call.inside.startswith(f"{fn.qualname}.") and not call.path


def expected_gradients(fn: FunctionClass, returned: Returned, *, defaults_are_bound: bool) -> Expectation:
    """How many gradients torch expects of this return after every call, or some known call; see ``shortfalls``."""
    least = fn.required_inputs + unpacked_count(fn)
    if fn.style is Style.SETUP_CONTEXT and defaults_are_bound:
        return Expectation(len(fn.inputs), counts_defaults=returned.count is not None and returned.count >= least)
    if returned.count is None or returned.count < least:
        return Expectation(least)
    # A call that passes more inputs counts only if no return has enough gradients for it: which return belongs to which
    # call is unknown.
    longest = max((other.count if other.count is not None else len(fn.inputs) + 99) for other in fn.gradients)
    for call, passed in exact_calls(fn):
        if passed > longest and not has_unfit_outputs(fn, call):  # for which torch raises TypeError first
            return Expectation(passed, call)
    for_some = least < returned.count == longest < len(fn.inputs)  # of the inputs with defaults
    in_view = len(fn.calls) > 0 and len(fn.calls) == len(list(exact_calls(fn)))  # and none passes it
    if for_some and not in_view and fn.variadic_inputs is None and not any(_is_own(fn, call) for call in fn.calls):
        return Expectation(len(fn.inputs), if_passed=fn.inputs[longest].name)
    return Expectation(least)


# ---------------------------------------------------------------------------------------------------------------------
# Which


def explain(fn: FunctionClass, returned: Returned, expected: int) -> Placement | None:
    """Why ``returned`` has fewer gradients than ``expected``: exactly the inputs that are not tensors got no None.

    None if that is not the reason, or unknown.
    """
    if returned.count is None or returned.count >= expected or expected > len(fn.inputs):
        return None
    plain = frozenset(index for index in range(expected) if is_plain(fn, index))
    wanted = [(at, slot) for at, slot in enumerate(returned.slots) if is_none(slot.value) is not Tri.YES]
    if not wanted or any(_is_contradictory(fn, index) for index in range(expected)):
        return None
    as_written = all(at not in plain for at, _slot in wanted)
    if as_written and not all(index in plain for index in range(returned.count, expected)):
        return None  # the present gradients fit: that of a tensor is missing at the end
    ways = _ways(returned, expected, plain)
    named = [named_input(slot.node, fn.inputs) for _at, slot in wanted]
    if not ways or (None not in named and tuple(named) not in ways and _rises(named)):
        return None
    likely = _likely_way(fn, wanted, named, ways, as_written=as_written)
    way = likely or ways[0]
    if leaves_out(fn, [slot.node for _at, slot in wanted], frozenset(range(expected)) - plain.union(way)):
        return None
    slots: list[Slot | None] = [None] * expected
    for (_at, slot), position in zip(wanted, way):
        slots[position] = slot
    missing = _without_none(returned, expected, plain, way)
    certain = all(fn.inputs[index].is_tensor is Tri.NO for index in missing)
    unique = len(ways) == 1 and not _may_be_another(returned, expected, plain, ways[0])
    return Placement(missing, tuple(slots), unique, certain, likely is not None)


def _likely_way(
    fn: FunctionClass,
    gradients: list[tuple[int, Slot]],
    named: list[int | None],
    ways: list[tuple[int, ...]],
    *,
    as_written: bool,
) -> tuple[int, ...] | None:
    """The reading in which each gradient is that of the input it is named after: as written, or the only such one."""
    fitting = [way for way in ways if all(index in (None, at) for index, at in zip(named, way))]
    written = tuple(at for at, _slot in gradients)
    tensors = _tensors(fn)
    others = [at for at, index in zip(written, named) if index is None and at not in tensors]
    if tensors - set(written) and any(fn.inputs[at].param.annotation is not None for at in others):
        fitting = [way for way in fitting if way != written]  # a tensor would get None, and something else a gradient
    if as_written and written in fitting:
        return written
    return fitting[0] if len(fitting) == 1 else None


def _rises(named: Iterable[int | None]) -> bool:
    known = [each for each in named if each is not None]
    return known == sorted(set(known))


def guessed(fn: FunctionClass, returned: Returned, expected: int) -> Placement | None:
    """Where the missing None likely belong: each gradient faces the input that it is named after.

    A gradient without such a name counts if it faces the only input that appears to be a tensor, or if it is the only
    one of those for the first inputs, followed by None. The inserted None join written ones, or are for inputs that do
    not look like tensors with a gradient. Backward computes nothing for these.
    """
    if expected > len(fn.inputs):
        return None  # some are for `*args`
    wanted = [(at, slot) for at, slot in enumerate(returned.slots) if is_none(slot.value) is not Tri.YES]
    named = _named_way(fn, wanted)
    way = named or _way_of_first(fn, returned, wanted)
    if not way or way[-1] >= expected:
        return None
    slots: list[Slot | None] = [None] * expected
    missing: list[int] = []
    for (_at, slot), position in zip(wanted, way):
        slots[position] = slot
    for between, written in _gaps(returned, expected, way):
        if len(between) < written:
            return None
        inserted = between[written:]
        if (written == 0 or not named) and not all(_likely_without_gradient(fn, index) for index in inserted):
            return None
        missing.extend(inserted)
    others = [index for index in range(expected) if index not in way and not is_plain(fn, index)]
    if leaves_out(fn, [slot.node for _at, slot in wanted], others):
        return None
    return Placement(tuple(missing), tuple(slots), unique=False, certain=False, likely=True)


def _named_way(fn: FunctionClass, gradients: list[tuple[int, Slot]]) -> tuple[int, ...]:
    """The inputs that the gradients are for according to their names, in order; empty if unknown."""
    named = [named_input(slot.node, fn.inputs) for _at, slot in gradients]
    if None in named:
        unnamed = {at for (at, _slot), index in zip(gradients, named) if index is None}
        others = frozenset(named)
        if unnamed != (_tensors(fn) - others or _tensors(fn, Trust.HINT) - others) or any(
            index not in (None, at) for (at, _slot), index in zip(gradients, named)
        ):
            return ()
        named = [at for at, _slot in gradients]
    found = tuple(each for each in named if each is not None)
    return found if _rises(found) else ()


def _way_of_first(fn: FunctionClass, returned: Returned, gradients: list[tuple[int, Slot]]) -> tuple[int, ...]:
    """The first inputs, if all gradients before some None face them, and at most one is not named after its own."""
    way = tuple(range(len(gradients)))
    named = [named_input(slot.node, fn.inputs) for _at, slot in gradients]
    if tuple(at for at, _slot in gradients) != way or returned.count == len(way) or named.count(None) > 1:
        return ()
    if any(index not in (None, at) for index, at in zip(named, way)) or any(is_plain(fn, at) for at in way):
        return ()
    return way


def _tensors(fn: FunctionClass, least: Trust = Trust.FAIR) -> set[int]:
    """The inputs that appear to be tensors, whatever backward returns for them."""
    return {
        each.index
        for each in fn.inputs
        if any(it.tensor and it.trust.value >= least.value and not it.own_gradient for it in each.evidence)
    }


def _likely_without_gradient(fn: FunctionClass, index: int) -> bool:
    """Whether an input shows no sign of a tensor, or has a name typical of integer tensors and masks.

    In a formula of the result, it may well be one.
    """
    entry = fn.inputs[index]
    if _NO_GRADIENT.search(entry.name.lower()) is not None or is_plain(fn, index):
        return True
    shows_none = not any(each.tensor for each in entry.evidence)
    return shows_none and (fn.forward is None or not may_depend_on(fn, fn.forward, entry))


_NO_GRADIENT = pattern(r"(?:^|_)(?:idx|index|indexes|indices|inds|ids|mask|masks|lens|lengths|seqlens|offsets)\d*$")
"""Typical names of tensors of indices, lengths and flags."""


def _ways(returned: Returned, expected: int, plain: frozenset[int]) -> list[tuple[int, ...]]:
    """The possible positions of the gradients that are not None, in order, if only plain inputs get None.

    Between two of them are the None that were returned there and those to be inserted.
    """
    gaps = _written_between(returned)
    found: list[tuple[int, ...]] = []

    def place(chosen: tuple[int, ...], start: int) -> None:
        if len(found) > _MAX_PLACEMENTS:
            return
        if len(chosen) == len(gaps) - 1:
            if fits(range(start, expected), gaps[-1]):
                found.append(chosen)
            return
        for position in range(start + gaps[len(chosen)], expected):
            if not fits(range(start, position), gaps[len(chosen)]):
                continue
            if position not in plain:
                place((*chosen, position), position + 1)

    def fits(between: range, written: int) -> bool:
        """Whether these inputs can get the ``written`` None of this gap, and inserted None for the rest."""
        return len(between) >= written and sum(index not in plain for index in between) <= written

    place((), 0)
    return found if len(found) <= _MAX_PLACEMENTS else []


def _without_none(returned: Returned, expected: int, plain: frozenset[int], way: tuple[int, ...]) -> tuple[int, ...]:
    """The plain inputs that got no None: if several share a gap with written None, the last ones."""
    missing: list[int] = []
    for between, written in _gaps(returned, expected, way):
        missing.extend([index for index in between if index in plain][::-1][: len(between) - written])
    return tuple(sorted(missing))


def _may_be_another(returned: Returned, expected: int, plain: frozenset[int], way: tuple[int, ...]) -> bool:
    """Whether a gap has both written and missing None, and one of its inputs may be a tensor."""
    return any(
        0 < written < len(between) and any(index not in plain for index in between)
        for between, written in _gaps(returned, expected, way)
    )


def _gaps(returned: Returned, expected: int, way: tuple[int, ...]) -> Iterator[tuple[range, int]]:
    """The inputs before, between and after those that get a gradient, with the number of None written for them."""
    edges = (-1, *way, expected)
    for before, after, written in zip(edges, edges[1:], _written_between(returned)):
        yield range(before + 1, after), written


def _written_between(returned: Returned) -> list[int]:
    """The number of None before the first gradient, between each two, and after the last."""
    counts = [0]
    for slot in returned.slots:
        if is_none(slot.value) is Tri.YES:
            counts[-1] += 1
        else:
            counts.append(0)
    return counts


# ---------------------------------------------------------------------------------------------------------------------
# Inputs that do not look like tensors


def is_plain(fn: FunctionClass, index: int) -> bool:
    """Whether None is the right gradient of an input, as far as the code shows.

    It is certainly not a tensor; or it is stored on ctx as a plain attribute, never saved, and never used as only a
    tensor can be; or the other returns with enough gradients have None for it, and backward does not ask whether it
    needs a gradient. How it is stored does not count if the
    first input, which is a tensor as a rule, is stored so as well: some authors store tensors as attributes, too.
    """
    entry = fn.inputs[index]
    if entry.is_tensor is Tri.NO:
        return True
    if any(each.tensor for each in entry.evidence) or _asks_for_gradient(fn, index):
        return False
    return _always_none_in_other_returns(fn, index) or (
        _kept_as_plain_value(fn, index) and not _kept_as_plain_value(fn, 0)
    )


def _asks_for_gradient(fn: FunctionClass, index: int) -> bool:
    """Whether backward reads the ``needs_input_grad`` flag of an input."""
    reads = fn.backward.facts.of(NeedsInputGradRead) if fn.backward is not None else ()
    return any(each.index == index for each in reads)


def _is_contradictory(fn: FunctionClass, index: int) -> bool:
    """Whether some evidence shows a tensor and some shows none, such as ``alpha: float`` that is saved."""
    entry = fn.inputs[index]
    weighty = {each.tensor for each in entry.evidence if each.trust is not Trust.HINT}
    return entry.is_tensor is Tri.UNKNOWN and len(weighty) == 2


def _always_none_in_other_returns(fn: FunctionClass, index: int) -> bool:
    complete = [each for each in fn.gradients if each.count is not None and each.count >= fn.required_inputs]
    answers = {is_none(each.slots[index].value) for each in complete if index < len(each.slots)}
    return answers == {Tri.YES}


def _kept_as_plain_value(fn: FunctionClass, index: int) -> bool:
    def is_it(value: object) -> bool:
        return is_input(value) and value.index == index

    names = [write.attribute for write in fn.context_writes if is_it(write.value)]
    places = {
        (write.attribute, at)
        for write in fn.context_writes
        if isinstance(write.value, Sequence) and write.value.exact
        for at, slot in enumerate(write.value.slots)
        if is_it(slot.value)
    }
    if not names and not places:
        return False
    saved = (argument.value for call in fn.context_calls("save_for_backward") for argument in call.arguments)
    if any(is_it(storage(value)) for value in saved):
        return False
    return not any(_used_as_tensor(method, frozenset(names), places) for method in fn.reading_methods)


def _used_as_tensor(method: Method, attributes: frozenset[str], places: AbstractSet[tuple[str, int]]) -> bool:
    """Whether a method uses one of these attributes of ctx as only a tensor can be used.

    ``places`` are those in tuples that attributes hold; they can be tracked only where the method unpacks them by name.
    """
    if method.ctx is None:
        return False
    unpacked = {
        each.name: (each.value.of.name, each.value.key)
        for each in method.facts.of(Assigned)
        if isinstance(each.value, Item) and isinstance(each.value.of, ContextAttribute)
    }
    held = {attribute for attribute, _ in places}
    if any(each.attribute in held for each in method.facts.of(ContextRead)) and not places <= set(unpacked.values()):
        return True
    names = [name for name, place in unpacked.items() if place in places]
    body = method.node.body
    uses = Uses((f"{method.ctx.name}.{name}" for name in attributes), lambda _node: None)
    uses.walk(body)
    local = Uses(names, lambda _node: None)
    for statement in body.body if names else ():
        binds = any(each.name in names for each in method.facts.of(Assigned) if each.statement in _inside(statement))
        if not binds:
            local.walk(statement)
    found = [*uses.evidence.values(), *local.evidence.values()]
    return any(each.tensor for evidence in found for each in evidence)


def _inside(statement: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    return (statement, *children(statement))
