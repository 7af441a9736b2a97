"""State that backward needs and that some path through forward does not store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import outcome
from ctxlint.model.analyses.inputs import slot_values
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.reachability import returns_no_gradient
from ctxlint.model.interpreter.conditions import certain_parts
from ctxlint.model.interpreter.events import (
    Assigned,
    ContextCall,
    ContextRead,
    ContextWrite,
    GenericCall,
    MaybeUnbound,
    Question,
    SavedItem,
    SavedRead,
    orders_of,
)
from ctxlint.model.interpreter.values import NeedsInputGrad, Opaque, Tri, before_views, is_input
from ctxlint.model.syntax import compares_identity, dotted, is_name, only_target, parents_below, without_not, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import ContextEvent, Event, Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_NO_GRADIENT_WORDS = ("grad", "train", "infer", "eval", "save", "backward", "compil", "scripting", "export")
"""Words which show that a test is about whether backward will run at all."""

_TRAINING = frozenset(("training", "is_training", "train", "is_train", "train_mode", "training_mode"))
"""Names of flags for training: gradients are needed in evaluation mode as well, and without them nothing is kept."""


@record
class SkippedState:
    """Something that backward needs on every path and that forward does not store on one.

    ``what`` is ``ctx.name`` or ``ctx.save_for_backward``; ``node`` the early return, or the statement under the test;
    ``condition`` the text of the test, and ``holds`` its outcome on the way to the node; ``returns`` means that the
    node is a return that comes too early. ``flags`` are the inputs whose flags decide, if so. ``error`` is what
    backward raises then, first of all. ``suffices``: to store it there as well is all that is missing, as nothing else
    that backward reads is skipped, what is stored exists there, and forward computes nothing else instead.
    ``of_absent``: it is computed from an input that is None there. ``decides_more``: the test of flags, or the flag for
    training, decides about other code, too. ``others``: further returns that come too early. ``events`` store it
    elsewhere. ``only`` is the input under whose flag alone backward reads it, if not on
    every path. ``inputs`` are those of ``flags``, if backward reads it on every path, at ``read``. ``unserved`` is
    another input that may need a gradient although backward returns none for it. ``trains``: the test is a flag for
    training. ``handles_none``: backward reads it in order to test for None, first of all.
    """

    node: cst.CSTNode
    what: str
    condition: str
    returns: bool
    holds: bool = True
    flags: tuple[str, ...] = ()
    error: str = "AttributeError"
    suffices: bool = False
    of_absent: bool = False
    decides_more: bool = False
    others: tuple[cst.CSTNode, ...] = ()
    events: tuple[ContextEvent, ...] = ()
    only: str = ""
    inputs: frozenset[int] = frozenset()
    read: cst.CSTNode | None = None
    unserved: str = ""
    trains: bool = False
    handles_none: bool = False


@record
class _Needed:
    """Something that backward reads, and the events in forward that store it; ``node`` reads it.

    ``flags`` are the inputs that make backward read it if only one of them needs a gradient; None for every path.
    """

    what: str
    events: list[ContextEvent]
    node: cst.CSTNode
    error: str
    flags: frozenset[int] | None = None


def skipped_state(fn: FunctionClass) -> list[SkippedState]:
    """The skipped state that backward reads first: there it raises. Empty if ctx escapes."""
    if skipped_state not in fn.notes:
        fn.notes[skipped_state] = tuple(_skipped_state(fn))
    return list(fn.notes[skipped_state])


def storing_method(fn: FunctionClass) -> Method | None:
    """The method that keeps state for backward: forward, or ``setup_context`` if forward takes no ctx."""
    separate = fn.forward is not None and fn.forward.ctx is None
    return fn.methods.get("setup_context") if separate else fn.forward


def may_lack_state(fn: FunctionClass) -> bool:
    """Whether some arguments alone make backward raise: not which inputs need a gradient, nor training."""
    return any(not (each.flags or each.trains) for each in skipped_state(fn))


def _skipped_state(fn: FunctionClass) -> list[SkippedState]:
    forward, backward = storing_method(fn), fn.backward
    if forward is None or backward is None or forward.ctx is None or fn.escapes or backward.raises_only:
        return []
    if not forward.facts.complete or not fn.bases_known or fn.patched or _tests_for_inference(forward):
        return []
    needed = _needed(forward, backward)
    found = _found([each for each in needed if each.flags is None], lambda each: _on_a_path(fn, forward, each))
    found = found or _found([each for each in needed if each.flags is not None], lambda each: _by_flags(fn, each))
    if not found:
        return []
    _node, first = min(found, key=lambda pair: fn.start(pair[0]))
    alone = all(each.what == first.what for _node, each in found if each.node is first.node)
    suffices = first.suffices and alone and not _keeps_more(forward, backward, first)
    by_flags = bool(first.flags) and not first.returns
    decides_more = first.decides_more or (by_flags and _decides_more(fn, first.events[0]))
    handles_none = alone and first.error == "AttributeError" and _handles_none(backward, first.read)
    return [replace(first, suffices=suffices, decides_more=decides_more, handles_none=handles_none)]


def _handles_none(backward: Method, read: cst.CSTNode | None) -> bool:
    """Whether what is read, or the only name that gets it, is compared with None before any use; no error follows."""
    name = only_target(backward.parents.get(read) if read is not None else None)
    named = backward.named.get(name.value, ()) if isinstance(name, cst.Name) else ()
    uses = [each for each in named if each is not name] if name is not None else [each for each in (read,) if each]
    tests = {at: each for at, each in enumerate(map(backward.parents.get, uses)) if _is_test_for_none(each)}
    raising = {node for test in backward.raising_tests for node in (test, *parents_below(test))}
    if not tests or not raising.isdisjoint(tests.values()):
        return False
    first = next(iter(tests))
    choices = {each for each in backward.above(uses[first]) if isinstance(each, cst.IfExp)}  # their tests come first
    return all(choices.intersection(backward.above(each)) for each in uses[:first])


def _is_test_for_none(node: cst.CSTNode | None) -> bool:
    return (
        isinstance(node, cst.Comparison) and compares_identity(node) and is_name(node.comparisons[0].comparator, "None")
    )


def _keeps_more(forward: Method, backward: Method, skipped: SkippedState) -> bool:
    """Whether forward stores, only under the same test, something else that backward reads on some path at least.

    Or whether it computes only there what it stores.
    """
    stored: dict[str, list[ContextEvent]] = {}
    for write in forward.facts.of(ContextWrite):
        stored.setdefault(write.attribute, []).append(write)
    read = {each.attribute for each in backward.facts.of(ContextRead)}
    if any(each.via == "saved_tensors" for each in backward.facts.of(SavedRead)):
        read.add("save_for_backward")
        stored["save_for_backward"] = [
            each for each in forward.facts.of(ContextCall) if each.method == "save_for_backward"
        ]
    others = (stored.get(each, []) for each in read if f"{forward.ctx_name}.{each}" != skipped.what)
    if any(events and all(_is_under(each, skipped) for each in events) for events in others):
        return True
    calls = [each for each in stored.get("save_for_backward", ()) if isinstance(each, ContextCall)]
    kept = {each.node.value for call in calls for each in call.arguments if isinstance(each.node, cst.Name)}
    for each in skipped.events:
        if isinstance(each, ContextWrite) and each.value_node is not None:
            kept.update(words_of(each.value_node))
    bindings = [forward.assignments.get(name, ()) for name in kept - {param.name for param in forward.params}]
    return any(bound and all(_is_under(each, skipped) for each in bound) for bound in bindings)


def _is_under(event: Event, skipped: SkippedState) -> bool:
    return any((each.text, each.holds) == (skipped.condition, skipped.holds) for each in event.guards)


def lacks_state_before(
    fn: FunctionClass, node: cst.CSTNode, flags: frozenset[int], needing: frozenset[int] = frozenset()
) -> bool:
    """Whether backward lacks state, and raises before ``node``, if none of the inputs in ``flags`` needs a gradient.

    And those in ``needing`` do.
    """
    refused, wanted = ({entry.name for entry in fn.inputs if entry.index in each} for each in (flags, needing))
    return any(
        (each.inputs or each.only in wanted)
        and refused.issuperset(each.flags)
        and each.read is not None
        and fn.start(each.read) < fn.start(node)
        for each in skipped_state(fn)
    )


def _found(
    needed: Iterable[_Needed], skipped: Callable[[_Needed], SkippedState | None]
) -> list[tuple[cst.CSTNode, SkippedState]]:
    """What is skipped, with the nodes that read it."""
    found: list[tuple[cst.CSTNode, SkippedState]] = []
    known: dict[tuple[str, frozenset[int] | None], SkippedState | None] = {}
    for each in needed:
        key = (each.what, each.flags)  # which also say what stores it
        if key not in known:
            known[key] = skipped(each)
        state = known[key]
        if state is not None:
            found.append((each.node, replace(state, error=each.error, events=tuple(each.events), read=each.node)))
    return found


def _on_a_path(fn: FunctionClass, forward: Method, each: _Needed) -> SkippedState | None:
    skipped = _early_return(fn, forward, each.what, each.events) or _by_flags(fn, each)
    return skipped or _one_arm(fn, forward, each.what, each.events)


def _needed(forward: Method, backward: Method) -> list[_Needed]:
    """What backward reads on every path, or whenever one certain input needs a gradient."""
    found = _tensors_needed(forward, backward)
    preconditions, ctx = _preconditions(backward), forward.ctx_name
    for read in backward.facts.of(ContextRead):
        flags = _flags_around(read.guards, preconditions)
        if flags == frozenset() or read.guarded or read.own or read.called or read.in_loop:
            continue
        if any(each.attribute == read.attribute and read.may_follow(each) for each in backward.facts.of(ContextWrite)):
            continue  # set by backward itself, where forward did not
        writes: list[ContextEvent] = [
            write for write in forward.facts.of(ContextWrite) if write.attribute == read.attribute and not write.deletes
        ]
        what = f"{ctx}.{read.attribute}"
        if writes and all((each.what, each.flags) != (what, flags) for each in found):
            found.append(_Needed(what, writes, read.node, "AttributeError", flags))
    return found


def _tensors_needed(forward: Method, backward: Method) -> list[_Needed]:
    """The saved tensors, for each such read in backward: by unpacking, or by index."""
    preconditions = _preconditions(backward)
    saves: list[ContextEvent] = [call for call in forward.facts.of(ContextCall) if call.method == "save_for_backward"]
    unpacked = [
        (each.node, _flags_around((*read.guards, *each.guards), preconditions))
        for read in backward.facts.of(SavedRead)
        if read.via == "saved_tensors"
        for each in read.unpackings
        if each.minimum > 0
    ]
    items = [
        (item.node, _flags_around(item.guards, preconditions))
        for item in backward.facts.of(SavedItem)
        if item.via == "saved_tensors" and not item.in_loop
    ]
    errors = (("ValueError", unpacked), ("IndexError", items))
    return [
        _Needed(f"{forward.ctx_name}.save_for_backward", saves, node, error, flags)
        for error, nodes in errors
        for node, flags in nodes
        if saves and flags != frozenset()
    ]


def _flags_around(guards: Iterable[Guard], preconditions: frozenset[Guard]) -> frozenset[int] | None:
    """The inputs each of which makes all guards hold if it alone needs a gradient; None if nothing is tested."""
    tested = [_flags_tested(guard) for guard in guards if guard not in preconditions]
    return frozenset.intersection(*tested) if tested else None


def _preconditions(backward: Method) -> frozenset[Guard]:
    """Guards on the incoming gradients without which backward always raises: ``if not g.is_cuda: raise ...``."""
    if not backward.returns or backward.facts.fall_paths:
        return frozenset()
    gradients = {param.name for param in backward.own_params}
    ctx = backward.ctx.name if backward.ctx is not None else ""
    first, *others = (frozenset(each.guards) for each in backward.returns)
    tests = (each for each in first.intersection(*others) if each.words and ctx not in each.words)
    return frozenset(each for each in tests if each.words[0] in gradients)


def _early_return(fn: FunctionClass, forward: Method, what: str, events: list[ContextEvent]) -> SkippedState | None:
    """The returns before anything is stored, on paths that backward may well follow."""
    first, *others = _early_returns(fn, forward, what, events) or (None,)
    return replace(first, others=tuple(each.node for each in others if each)) if first is not None else None


def _early_returns(fn: FunctionClass, forward: Method, what: str, events: list[ContextEvent]) -> list[SkippedState]:
    orders = orders_of(events)
    counts = {returned.event.order: returned.count for returned in fn.outputs}
    in_vain = _without_backward(fn)
    provided = {counts.get(each.order) for each in forward.returns if orders & each.maybe_before}
    found: list[SkippedState] = []
    for each in forward.returns:
        count = counts.get(each.order)
        if orders & each.maybe_before or not each.guards or each.order in in_vain:
            continue
        if count is not None and None not in provided and count not in provided:
            continue
        refused = _refused_inputs(each.guards)
        if each.bare or refused is None or not _others_get_gradients(fn, refused):
            continue
        if any(_always_passed(fn, forward, guard) is False for guard in each.guards):
            continue
        names = tuple(fn.inputs[at].name for at in sorted(refused) if at < len(fn.inputs))
        test = _nearest(each.guards)
        found.append(SkippedState(each.node, what, test.text, returns=True, holds=test.holds, flags=names))
    return found


def _without_backward(fn: FunctionClass) -> frozenset[int]:
    """The orders of the returns of forward after which backward never runs."""
    return frozenset(each.event.order for each in fn.outputs if returns_no_gradient(fn, each))


def _others_get_gradients(fn: FunctionClass, refused: set[int]) -> bool:
    return any(each.gradient is Tri.YES and each.index not in refused for each in fn.inputs)


def _refused_inputs(guards: tuple[Guard, ...]) -> set[int] | None:
    """The inputs that certainly need no gradient under this path condition; None if backward may not run at all."""
    refused: set[int] = set()
    for guard in guards:
        asks = guard.asks
        if asks is None:
            text = guard.text
            if guard.has_parts:  # its parts about flags have guards of their own
                text = text.replace("requires_grad", "").replace("needs_input_grad", "")
            if _about_gradients(text):
                return None
        elif asks.question is Question.GRAD_MODE:
            return None
        elif asks.about_flag and not asks.answer:
            index = _input_tested(guard)
            if index is None:
                return None
            refused.add(index)
    return refused


def _about_gradients(text: str) -> bool:
    """Whether a test is about whether backward will run at all."""
    return any(word in text.lower() for word in _NO_GRADIENT_WORDS)


def _asks_for_training(guard: Guard) -> bool:
    """Whether a test is a flag for training, and nothing else: ``training``, ``not self.training``."""
    flag = without_not(guard.test)
    return flag is not None and (dotted(flag) or "").rpartition(".")[2] in _TRAINING


def _input_tested(guard: Guard) -> int | None:
    """The input whose flag a guard tests; None for anything else."""
    return _input_of(guard.asks.value) if guard.asks is not None else None


def _input_of(value: Value) -> int | None:
    """The input that a value, or the flag that it is, belongs to; None for anything else.

    What forward computes from an input, as in ``x = x.contiguous()``, needs a gradient only if the input does.
    """
    value = before_views(value)
    if isinstance(value, NeedsInputGrad):
        return value.index
    return value.index if is_input(value) else None


def _by_flags(fn: FunctionClass, needed: _Needed) -> SkippedState | None:
    """Every event that stores it depends on the flags of some inputs, but another input gets a gradient, too.

    If only that one needs a gradient, each of the events has a guard that fails, and backward reads it.
    """
    what, events, always = needed.what, needed.events, _always(fn)
    tested = [
        [flags for guard in event.guards if guard not in always and (flags := _flags_for(fn, event, guard))]
        for event in events
    ]
    if not all(tested):  # an event that no flag guards
        return None
    differentiable = (each.index for each in fn.inputs if each.gradient is Tri.YES and not _is_from_a_list(fn, each))
    for other in [*differentiable, *_asked_for_by_backward(fn)]:
        if needed.flags is not None and other not in needed.flags:
            continue
        failing = [next((flags for flags in tests if other not in flags), None) for tests in tested]
        if failing and failing[0] is not None and None not in failing:
            refused = frozenset[int]().union(*filter(None, failing))
            if any(_excludes(guard, other, refused) for guard in always):
                continue
            if any(at >= len(fn.inputs) for at in refused):
                continue  # an element of ``*args``, or none: CTX208
            names = tuple(fn.inputs[at].name for at in sorted(refused))
            only = fn.inputs[other].name if needed.flags is not None else ""
            inputs = refused if needed.flags is None else frozenset[int]()
            unserved = fn.inputs[other].name if fn.inputs[other].gradient is Tri.NO else ""
            skipped = SkippedState(events[0].node, what, _nearest(events[0].guards).text, False, flags=names)
            return replace(skipped, only=only, inputs=inputs, unserved=unserved)
    return None


def _is_from_a_list(fn: FunctionClass, entry: Input) -> bool:
    """Whether backward returns what a list has for an input after unknown writes, ``grads[2]``: perhaps None."""
    values = [*slot_values(entry.index, fn.gradients)]
    return bool(values) and all(isinstance(each, Opaque) and isinstance(each.node, cst.Subscript) for each in values)


def _always(fn: FunctionClass) -> frozenset[Guard]:
    """The guards on every path through forward, or ``setup_context``, that ends: otherwise it has raised."""
    found: frozenset[Guard] = frozenset()
    for method in fn.earlier_methods:
        paths = [frozenset(each.guards) for each in method.returns]
        if method is not fn.forward:
            paths += map(frozenset, method.facts.fall_paths)
        elif method.facts.fall_paths:
            paths = []
        found |= frozenset.intersection(*paths) if paths else frozenset()
    return found


def _excludes(guard: Guard, needing: int, refused: frozenset[int]) -> bool:
    """Whether a guard certainly fails if one input needs a gradient and some others need none."""
    asks = guard.one_of or ((guard.asks,) if guard.asks is not None else ())
    indices = [_input_of(each.value) if each.about_flag else None for each in asks]
    return bool(asks) and all(
        index in refused if each.answer else index == needing for each, index in zip(asks, indices)
    )


def _asked_for_by_backward(fn: FunctionClass) -> Iterator[int]:
    """The saved inputs that need a gradient where backward returns: ``if y.requires_grad: return ...``."""
    for returned in fn.backward.returns if fn.backward is not None else ():
        for asks in (guard.asks for guard in returned.guards if guard.asks is not None):
            if asks.question is Question.REQUIRES_GRAD and asks.answer:
                saved = kept_value(fn, asks.value)
                if is_input(saved):
                    yield saved.index


def _decides_more(fn: FunctionClass, event: ContextEvent) -> bool:
    """Whether one of the tests of flags on the way to an event decides about more than what is stored on ctx.

    That is, it belongs to an ``if`` with an ``else``, or with other statements.
    """
    forward = storing_method(fn)
    if forward is None:
        return False
    tests = [guard.test for guard in event.guards if _flags_for(fn, event, guard)]
    ifs = [node for node in forward.nodes_of(cst.If) if any(node.test is test for test in tests)]
    return any(node.orelse is not None or not _only_stores(forward, node.body) for node in ifs)


def _computes_by(forward: Method, guard: Guard) -> bool:
    """Whether a flag is used for more than to decide what is stored on ctx: a kernel may compute less without it."""
    flag = without_not(guard.test)
    nodes: list[cst.BaseExpression] = [*forward.nodes_of(cst.Name), *forward.nodes_of(cst.Attribute)]
    uses = [each for each in nodes if flag is not None and dotted(each) == dotted(flag)]
    ifs = [each for each in forward.nodes_of(cst.If) if each.orelse is None and _only_stores(forward, each.body)]
    return any(all(each is not node.test for node in ifs) for each in uses)


def _only_stores(forward: Method, body: cst.BaseSuite) -> bool:
    """Whether statements only set attributes of ctx and call its methods."""

    def stores(statement: cst.CSTNode) -> bool:
        if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            return forward.is_on_ctx(statement.value.func)
        return isinstance(statement, cst.Assign) and all(forward.is_on_ctx(each.target) for each in statement.targets)

    statements = body.body if isinstance(body, cst.SimpleStatementSuite) else _lines(body)
    return all(map(stores, statements))


def _lines(body: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    """The statements of a block: the parts of simple ones, and compound ones as they are."""
    for line in body.body:
        yield from line.body if isinstance(line, cst.SimpleStatementLine) else (line,)


def _flags_for(fn: FunctionClass, event: ContextEvent, guard: Guard) -> frozenset[int]:
    """The inputs of which at least one needs a gradient if a guard of an event in forward holds; empty if unknown."""
    found = _flags_tested(guard)
    keeper = storing_method(fn)
    if found or keeper is None or guard.test is None or not guard.holds:
        return found
    test, bound = guard.test, keeper.facts.of(Assigned)
    asked: Event = event
    if isinstance(test, cst.Name):
        only = keeper.only_assignment(test.value)
        if only is None or only.value_node is None:
            return found
        test, asked = only.value_node, only
    rebound = {each.name for each in bound if asked.may_follow(each) or each is asked}
    inputs = {entry.name: entry.index for entry in fn.inputs if entry.name not in rebound}
    return _inputs_asked(test, inputs)


def _inputs_asked(test: cst.BaseExpression, inputs: Mapping[str, int]) -> frozenset[int]:
    """The inputs of which at least one needs a gradient if a test holds; empty if unknown."""
    if isinstance(test, cst.BooleanOperation):
        left, right = _inputs_asked(test.left, inputs), _inputs_asked(test.right, inputs)
        either = left | right if left and right else frozenset[int]()
        return either if isinstance(test.operator, cst.Or) else left or right
    owner, _, attribute = (dotted(test) or "").rpartition(".")
    names = [owner] if attribute == "requires_grad" else _names_in_any(test)
    return frozenset(inputs[name] for name in names) if inputs.keys() >= set(names) else frozenset()


def _names_in_any(test: cst.BaseExpression) -> list[str]:
    """The names ``a`` and ``b`` of ``any(x.requires_grad for x in (a, b))`` or ``any([a.requires_grad, …])``."""
    if not isinstance(test, cst.Call) or dotted(test.func) != "any" or len(test.args) != 1:
        return []
    given = test.args[0].value
    if isinstance(given, (cst.GeneratorExp, cst.ListComp)):
        clause = given.for_in
        flag = f"{dotted(clause.target)}.requires_grad"
        asks = any(dotted(part) == flag for part, holds in certain_parts(given.elt, True) if holds)
        return _names_of(clause.iter) if asks and clause.inner_for_in is None else []
    flags = _names_of(given)
    asks = all(each.endswith(".requires_grad") for each in flags)
    return [each.removesuffix(".requires_grad") for each in flags] if asks else []


def _names_of(display: cst.BaseExpression) -> list[str]:
    """The dotted names that a tuple or list consists of; none if it holds anything else."""
    elements = display.elements if isinstance(display, (cst.Tuple, cst.List)) else ()
    names = [dotted(each.value) if isinstance(each, cst.Element) else None for each in elements]
    return [] if None in names else [each for each in names if each is not None]


def _flags_tested(guard: Guard) -> frozenset[int]:
    """The inputs of which at least one needs a gradient if a guard holds; empty if it tests anything else."""
    asks = guard.one_of or ((guard.asks,) if guard.asks is not None else ())
    found: set[int] = set()
    for each in asks:
        index = _input_of(each.value)
        if index is None or not each.answer or not each.about_flag:
            return frozenset()
        found.add(index)
    return frozenset(found)


def _one_arm(fn: FunctionClass, forward: Method, what: str, events: list[ContextEvent]) -> SkippedState | None:
    """Every event that stores it is in one branch of a test of an input, or of a choice between two computations."""
    first, *others = events
    always = _always(fn)
    guards = tuple(
        guard
        for guard in first.guards
        if guard not in always
        and not _always_passed(fn, forward, guard)
        and all(any(_is_same(forward, guard, each) for each in event.guards) for event in others)
    )
    if any(not {*guard.words}.isdisjoint(other.words) for guard in guards for other in always):
        return None  # a test that raises otherwise may decide it
    if not guards:
        return None
    plain = [each for each in guards if _tests_type(each) or _tests_input_for_none(each)]
    known = plain + [each for each in guards if _compares(forward, each) or _trains(fn, forward, each)]
    if len(known) < len(guards) and not all(_chooses(forward, guard) for guard in _whole(guards)):
        return None
    orders, in_vain = orders_of(events), _without_backward(fn)
    if forward is fn.forward and all(orders & each.before or each.order in in_vain for each in forward.returns):
        return None
    test = _nearest([guard for guard in guards if guard.holds] or guards)
    if _raises_otherwise(forward, test):
        return None
    of_absent = _tests_input_for_none(test) and _is_made_of(first, test)
    unsure = of_absent or _asks_for_types(guards, events) or any(_chooses(forward, each) for each in guards)
    trains = _asks_for_training(test) and test.holds
    state = SkippedState(first.node, what, test.text, returns=False, holds=test.holds, suffices=not unsure)
    return replace(state, of_absent=of_absent, trains=trains, decides_more=trains and _computes_by(forward, test))


def _raises_otherwise(forward: Method, test: Guard) -> bool:
    """Whether a method reads, under no test, a name that it binds only under this one: elsewhere that raises."""
    unbound = [each.name for each in forward.facts.of(MaybeUnbound) if not each.guards]
    bound = (forward.assignments.get(name, ()) for name in unbound)
    return any(
        each and all(any(_is_same(forward, guard, test) for guard in one.guards) for one in each) for each in bound
    )


def _is_same(forward: Method, guard: Guard, other: Guard) -> bool:
    """Whether two guards are the same, or ask the same of names that keep their values: ``if training:``, twice."""
    if guard == other or guard.holds != other.holds or not guard.reads_like(other):
        return guard == other
    return "(" not in guard.text and forward.binders.keys().isdisjoint(guard.words)


def _chooses(forward: Method, guard: Guard) -> bool:
    """Whether a test, not about gradients or training, chooses between two branches that both compute something."""
    if guard.test is None or _about_gradients(guard.text):
        return False
    node = next((each for each in forward.nodes_of(cst.If) if each.test is guard.test), None)
    other = node and (node.orelse if guard.holds else node.body)
    block: cst.CSTNode | None = other.body if isinstance(other, cst.Else) else other
    if block is None:
        return node is not None and _rebinds(forward, node.body)
    return any(block in forward.above(each.node) for each in forward.facts.of(Assigned))


def _rebinds(forward: Method, block: cst.BaseSuite) -> bool:
    """Whether a branch computes another value for a name that has one without it: ``out = out.sum()``."""
    found: dict[bool, set[str]] = {True: set(), False: {param.name for param in forward.own_params}}
    for each in forward.facts.of(Assigned):
        found[block in forward.above(each.node)].add(each.name)
    return not found[True].isdisjoint(found[False])


def _compares(forward: Method, guard: Guard) -> bool:
    """Whether a test, not about gradients or training, compares an input with a number or string: ``eps > 0``.

    Not an input that forward also tests in order to raise.
    """
    test = guard.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
        return False
    other, name = test.comparisons[0].comparator, test.left.value
    if any(name in words_of(each) for each in forward.raising_tests):
        return False
    literal = isinstance(other, (cst.Integer, cst.Float, cst.SimpleString))
    own = name not in forward.binders and any(param.name == name for param in forward.own_params)
    return literal and own and not _about_gradients(guard.text)


def _always_passed(fn: FunctionClass, forward: Method, guard: Guard) -> bool | None:
    """Whether what all calls in view pass for a flag lets a guard hold; None if that is unknown."""
    decided = outcome(fn, forward, guard.test) if guard.test is not None else None
    return None if decided is None else decided is guard.holds


def _trains(fn: FunctionClass, forward: Method, guard: Guard) -> bool:
    """Whether a test is a flag for training that forward does not test in order to raise.

    Where forward is also called as a plain function, that may be how it runs in evaluation mode.
    """
    tests = (each for method in fn.earlier_methods for each in method.raising_tests)
    raising = any(set(guard.words) <= set(words_of(each)) for each in tests)
    return _asks_for_training(guard) and not raising and forward.name not in fn.called_directly


def _tests_type(guard: Guard) -> bool:
    return guard.words[:1] == ("isinstance",) and guard.text.startswith("isinstance(")


def _asks_for_types(guards: Iterable[Guard], events: Iterable[ContextEvent]) -> bool:
    """Whether a test asks for the type of something that ``save_for_backward`` gets."""
    saved = (slot.node for each in events if isinstance(each, ContextCall) for slot in each.arguments)
    names = {node.value for node in saved if isinstance(node, cst.Name)}
    return any(_tests_type(guard) and guard.words[1] in names for guard in guards)


def _is_made_of(event: ContextEvent, test: Guard) -> bool:
    """Whether what an event stores, perhaps in a helper, is computed from the input that a test asks for."""
    asked = test.asks.value if test.asks is not None else None
    if not (isinstance(event, ContextWrite) and is_input(asked)):
        return False
    return asked.name in words_of(event.node if event.value_node is None else event.value_node)


def _tests_input_for_none(guard: Guard) -> bool:
    return guard.asks is not None and guard.asks.question is Question.IS_NONE and _input_tested(guard) is not None


def _nearest(guards: Sequence[Guard]) -> Guard:
    """The nearest test on a path."""
    return _whole(guards)[-1]


def _whole(guards: Sequence[Guard]) -> list[Guard]:
    """The tests on a path without the parts of compound ones."""
    texts = [guard.text for guard in guards]
    return [each for each in guards if not any(each.text != other and each.text in other for other in texts)]


def _tests_for_inference(forward: Method) -> bool:
    """Whether forward itself tests whether it runs for inference only."""
    return any(call.callee == "torch.is_inference_mode_enabled" for call in forward.facts.of(GenericCall))
