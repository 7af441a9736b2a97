"""What certainly raises in the methods of a Function; code behind it never runs, nor backward behind forward."""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, condition, runs
from ctxlint.model.analyses.decided_tests import never_runs
from ctxlint.model.analyses.differentiated_outputs import Fate, own_output
from ctxlint.model.analyses.extra_attributes import lost_attributes
from ctxlint.model.analyses.foreign_names import (
    may_create_names,
    misused_builtins,
    names_of_forward,
    unbound_names,
    unbound_receivers,
)
from ctxlint.model.analyses.grad_mode import differentiated_untracked
from ctxlint.model.analyses.none_tests import required_nones
from ctxlint.model.analyses.outputs import hidden_outputs
from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.analyses.rejections import is_rejected, lacks_custom_fwd, results_are_rejected, unfit_inputs
from ctxlint.model.analyses.saved_tensors import count_of_last, mismatched, saved_counts, saving_call
from ctxlint.model.analyses.shape_unpackings import shape_mismatches
from ctxlint.model.analyses.unbound_locals import read_too_early
from ctxlint.model.analyses.undefined_attributes import undefined_reads
from ctxlint.model.function import Binding
from ctxlint.model.interpreter.events import (
    ContextEvent,
    ContextWrite,
    Differentiated,
    GenericCall,
    MisfitCall,
    NeedsInputGradRead,
    SavedRead,
    TupleUsedAsTensor,
    UnboundContext,
)
from ctxlint.model.syntax import dotted
from ctxlint.torch_api.autograd import READ_ONLY_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import SavedItem, Unpacking
    from ctxlint.model.interpreter.method import Method
    from ctxlint.source.source import Span

    _Inside: TypeAlias = "ContextEvent | MisfitCall | Unpacking"


def reached(fn: FunctionClass, method: Method, node: cst.CSTNode) -> Runs:
    """When a node is evaluated; what raises before it, perhaps only in newer releases, counts as a condition.

    So does a name that nothing in view binds, also where the file may create names in other ways.
    """
    when = runs(method, node)
    if when is not Runs.ALWAYS:
        return when
    if _never_called(fn, method) or (fn.legacy_state is not None and method in fn.reading_methods):
        return Runs.STATEMENT
    if method in fn.reading_methods and (forward_raises_lately(fn) or _may_lack_names(fn, fn.forward)):
        return Runs.STATEMENT
    removed = (each for each in _removed_names(method) if _comes_first(method, each, node))
    names = (each for each in unbound_names(fn, method) if each in method.parents and _comes_first(method, each, node))
    earlier = {method.statement_around(each) for each in (*_raises_before(fn, method, node), *removed, *names)}
    if not earlier:
        return Runs.ALWAYS
    return Runs.OPERAND if earlier == {method.statement_around(node)} else Runs.STATEMENT


def _may_lack_names(fn: FunctionClass, method: Method | None) -> bool:
    """Whether a method reads, whenever it is called, a name that nothing in view binds."""
    if method is None:
        return False
    notes: dict[str, bool] = fn.notes.setdefault(_may_lack_names, {})
    if method.name not in notes:
        names = [each for each in unbound_names(fn, method) if each in method.parents]
        notes[method.name] = any(
            runs(method, each) is Runs.ALWAYS and not any(map(_is_uncertain, method.above(each))) for each in names
        )
    return notes[method.name]


def _removed_names(method: Method) -> Iterator[cst.CSTNode]:
    """Where a method, or a function that it calls, reads a name that a release removed, or that nothing may set."""
    for call in method.facts.of(MisfitCall):
        if call.misfit is not None and call.misfit.is_doubtful and not (call.misfit.conditional or call.tried):
            yield call.node


def raises_before(fn: FunctionClass, method: Method, node: cst.CSTNode, *, plainly: bool = False) -> bool:
    """Whether something certainly raises on every path to a node: before it in the method, or in forward."""
    return _never_called(fn, method, plainly=plainly) or any(_raises_before(fn, method, node, plainly=plainly))


def is_unreached(fn: FunctionClass, span: Span, *, plainly: bool = False) -> bool:
    """Whether what is at a place in a method of this class never runs, as something before it certainly raises.

    ``plainly``: it raises by itself, not because torch rejects something. For the latter there is a finding as well,
    which hides no other one.
    """
    method = method_at(fn, span)
    if method is None or not (
        certain_raises(fn, method, plainly=plainly) or _never_called(fn, method, plainly=plainly)
    ):
        return False
    node = _node_at(fn, method, span)
    return node is not None and raises_before(fn, method, node, plainly=plainly)


def is_replaced(fn: FunctionClass, span: Span) -> bool:
    """Whether what is at a place is part of a method of this class that other code replaces."""
    method = method_at(fn, span)
    return method is not None and method.name in fn.replaced and span.start < fn.span(method.node).end


def method_at(fn: FunctionClass, span: Span) -> Method | None:
    """The last method that begins before a place."""
    begun = [(start, each) for each in fn.own_protocol_methods if (start := fn.start(each.node.name)) <= span.start]
    return max(begun, key=itemgetter(0))[1] if begun else None


def _node_at(fn: FunctionClass, method: Method, span: Span) -> cst.CSTNode | None:
    """The node in a method at a place, or the largest one that starts there; only statements are asked on the way."""
    nodes = method.body_nodes
    lines = [at for at, each in enumerate(nodes) if isinstance(each, _LINES)]
    last = bisect_right(lines, span.start, key=lambda at: fn.start(nodes[at])) - 1
    if last < 0:
        return None
    end = lines[last + 1] if last + 1 < len(lines) else len(nodes)
    parts = (each for each in nodes[lines[last] : end] if isinstance(each, _WITH_PLACES))
    here = [each for each in parts if fn.start(each) == span.start]
    return next((each for each in reversed(here) if fn.span(each) == span), here[0] if here else None)


_LINES = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
_WITH_PLACES = (*_LINES, cst.BaseSmallStatement, cst.BaseExpression, cst.Arg)
"""The nodes that findings are about: their places are known without those around them."""


def _never_called(fn: FunctionClass, method: Method, *, plainly: bool = False) -> bool:
    """Whether a method never runs, as torch cannot call it, or one that runs before it certainly raises."""
    if not plainly and _is_rejected(fn, method):
        return True
    if method in fn.reading_methods:
        return backward_is_unreached(fn, plainly=plainly) or (not plainly and backward_never_runs(fn))
    return method is fn.setup_context and _always_raises(fn, fn.forward, plainly=plainly)


def _is_rejected(fn: FunctionClass, method: Method) -> bool:
    """Whether torch cannot call a method."""
    notes: dict[str, bool] = fn.notes.setdefault(is_rejected, {})
    if method.name not in notes:
        notes[method.name] = is_rejected(fn, method)
    return notes[method.name]


def _raises_before(
    fn: FunctionClass, method: Method, node: cst.CSTNode, *, plainly: bool = False
) -> Iterator[cst.CSTNode]:
    """What certainly raises before a node of a method, on each path to it."""
    return (each for each in certain_raises(fn, method, plainly=plainly) if _comes_first(method, each, node))


def backward_is_unreached(fn: FunctionClass, *, plainly: bool = False) -> bool:
    """Whether a defect keeps autograd from calling backward: ``apply`` certainly raises, or only returns containers."""
    if any(_always_raises(fn, each, plainly=plainly) for each in (fn.forward, fn.setup_context)):
        return True
    if backward_is_unreached not in fn.notes:
        outputs = fn.outputs if fn.count_judgeable else ()
        hidden = bool(outputs) and all(hidden_outputs(fn, each) for each in outputs)
        fn.notes[backward_is_unreached] = hidden, hidden or results_are_rejected(fn)
    return bool(fn.notes[backward_is_unreached][not plainly])


def is_behind_cast(fn: FunctionClass) -> bool:
    """Whether ``custom_bwd`` raises whenever torch calls it, before it calls backward."""
    return fn.backward is not None and lacks_custom_fwd(fn, fn.backward)


def forward_raises(fn: FunctionClass) -> bool:
    """Whether forward or ``setup_context`` raises whenever it is called: torch never looks at what they did."""
    return any(_always_raises(fn, each) for each in (fn.forward, fn.setup_context))


def backward_raises(fn: FunctionClass) -> bool:
    """Whether backward raises whenever it is called."""
    return _always_raises(fn, fn.backward)


def _always_raises(fn: FunctionClass, method: Method | None, *, plainly: bool = False) -> bool:
    """Whether a method raises whenever it is called."""
    if method is None or (not plainly and _is_rejected(fn, method)):
        return method is not None
    return any(
        runs(method, each) is Runs.ALWAYS and not any(map(_is_uncertain, method.above(each)))
        for each in certain_raises(fn, method, plainly=plainly)
    )


def forward_raises_lately(fn: FunctionClass) -> bool:
    """Whether forward raises whenever it is called with a newer torch, which has no name that it reads any more."""
    return fn.forward is not None and _raises_lately(fn.forward)


def backward_raises_lately(fn: FunctionClass) -> bool:
    """The same about backward."""
    return fn.backward is not None and _raises_lately(fn.backward)


def _raises_lately(method: Method) -> bool:
    return any(
        runs(method, each) is Runs.ALWAYS and not any(map(_is_uncertain, method.above(each)))
        for each in _removed_names(method)
    )


def certain_raises(fn: FunctionClass, method: Method, *, plainly: bool = False) -> tuple[cst.CSTNode, ...]:
    """The nodes of a method that raise whenever they are evaluated."""
    notes: dict[tuple[str, bool], tuple[tuple[cst.CSTNode, ...], ...]] = fn.notes.setdefault(certain_raises, {})
    key = (method.name, plainly)
    if key not in notes:
        rejected = () if plainly else _rejected(fn, method)
        both = unbound_names(fn, method), chain(_raising(fn, method), rejected)
        names, others = (tuple(each for each in nodes if each in method.parents) for nodes in both)
        notes[key] = _with_tests(method, (*names, *others)), _with_tests(method, others)
    found, without_names = notes[key]
    if found != without_names and may_create_names(fn):  # the whole text decides: asked again for each rule
        return without_names
    return found


def _with_tests(method: Method, raising: tuple[cst.CSTNode, ...]) -> tuple[cst.CSTNode, ...]:
    """What certainly raises, with the tests both of whose arms do."""
    if len(raising) < 2:
        return raising
    for test in reversed(method.nodes_of(cst.If)):  # the innermost first
        other = test.orelse
        arms = (test.body, other.body if isinstance(other, cst.Else) else other)
        if all(arm and any(_always_in(method, arm, each) for each in raising) for arm in arms):
            raising = (*raising, test)
    return raising


def _always_in(method: Method, arm: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether a node is evaluated whenever an arm runs; an ``elif`` is an arm itself."""
    return node is arm or (arm in method.above(node) and _comes_first(method, node, arm))


def _raising(fn: FunctionClass, method: Method) -> Iterator[cst.CSTNode]:
    yield from (node for node, _error in misused_builtins(fn, method))
    yield from (read.node for read in read_too_early(fn, method))
    yield from _deleted(method)
    yield from (each.node for each in _raising_events(fn, method) if not each.conditional)
    for call in method.facts.of(MisfitCall):
        if call.misfit is not None and call.misfit.is_certain and not call.tried:
            yield call.node
    if method is fn.backward or method is fn.setup_context:
        yield from (node for node, _error in names_of_forward(fn, method))
    if method in fn.reading_methods:
        yield from (each.node for each in _misread(fn, method) if not each.conditional)
        yield from (each.here.statement for each in shape_mismatches(fn, method))
    if method is fn.backward:
        yield from (read.node for read, _store, what in lost_attributes(fn) if what == "output")
    ends = chain(method.nodes_of(cst.Raise), _ends(method))
    yield from (each for each in ends if not never_runs(fn, method, each))


def _rejected(fn: FunctionClass, method: Method) -> Iterator[cst.CSTNode]:
    """What torch rejects in a method."""
    yield from _refused_flags(fn, method)
    yield from _untracked(fn, method)
    yield from _bare_supers(method)
    yield from unbound_receivers(fn, method)
    yield from (each.node for each in method.facts.of(UnboundContext))
    if method is fn.setup_context:
        yield from unfit_inputs(fn)
    left = count_of_last(fn, saving_call(method)) if method in fn.reading_methods else None
    yield from (each.node for each in (mismatched(method, left) if left is not None else ()) if not each.conditional)
    if method is fn.backward:
        yield from (each.node for each in required_nones(fn))


def _refused_flags(fn: FunctionClass, method: Method) -> Iterator[cst.CSTNode]:
    """The reads of flags of inputs that forward does not have, whichever defaults are bound."""
    if not fn.count_judgeable or fn.forward is None or fn.variadic_inputs is not None:
        return
    inputs = len(fn.inputs)
    for read in method.facts.of(NeedsInputGradRead):
        beyond = read.index is not None and not -inputs <= read.index < inputs
        unfit = read.unpacked is not None and not fn.required_inputs <= read.unpacked <= inputs
        if (beyond or unfit) and not (read.tried or read.conditional):
            yield read.node


def _untracked(fn: FunctionClass, method: Method) -> Iterator[cst.CSTNode]:
    """The calls that differentiate a tensor without a graph, or an output."""
    if not fn.signature_judgeable or method.name in fn.called_directly:
        return
    for each in (each for each in method.facts.of(Differentiated) if not each.tried):
        own = own_output(fn, method, each)
        raises = own.fate in (Fate.ERROR, Fate.RECURSION, Fate.UNKNOWN) if own is not None else None
        if raises if raises is not None else differentiated_untracked(fn, method, each.value) is not None:
            yield each.node


def _bare_supers(method: Method) -> Iterator[cst.CSTNode]:
    """The calls of ``super()`` in a static method, which has no instance."""
    if method.binding is Binding.CLASS or method.receiver is not None:
        return
    for call in method.facts.of(GenericCall):
        if call.callee == "builtins.super" and isinstance(call.node, cst.Call) and not (call.node.args or call.tried):
            yield call.node


def _raising_events(fn: FunctionClass, method: Method) -> list[ContextEvent]:
    """The uses of ctx that raise, in a method or in a function that it calls."""
    called = (read for read in method.facts.of(SavedRead) if read.called)
    found: list[ContextEvent] = [use for use in (*method.facts.of(TupleUsedAsTensor), *called) if not use.tried]
    writes = (each for each in method.facts.of(ContextWrite) if each.attribute in READ_ONLY_ATTRIBUTES)
    found.extend(each for each in writes if not (each.deletes or each.tried))
    return [*found, *(read for reader, read in undefined_reads(fn) if reader is method)]


def _misread(fn: FunctionClass, method: Method) -> list[Unpacking | SavedItem]:
    """Where a method that reads saved tensors, or a function that it calls, reads another number of them."""
    saved = saved_counts(fn, saving_call(method)) if method in fn.reading_methods else None
    return [] if saved is None else [*mismatched(method, saved)]


def raises_inside_before(fn: FunctionClass, method: Method, use: _Inside) -> bool:
    """Whether a function that a method calls certainly raises before a use of ctx, or a call, there."""
    if not use.by:
        return False
    misfits = (each for each in method.facts.of(MisfitCall) if not each.tried)
    raising = (*_raising_events(fn, method), *_misread(fn, method), *misfits)
    return any(_comes_first_inside(each, use) for each in raising if each.node is use.node and each is not use)


def _comes_first_inside(first: _Inside, use: _Inside) -> bool:
    """Whether one of two events in a function that a method calls certainly comes before the other."""
    if isinstance(first, ContextEvent) and isinstance(use, ContextEvent) and use.implies(first):
        return True
    conditional = (
        first.misfit is None or not first.misfit.is_certain if isinstance(first, MisfitCall) else first.conditional
    )
    parted = ((a, b) for a, b in zip(first.through, use.through) if a.span != b.span)
    mine, its = next(parted, (None, None))
    if conditional or mine is None or its is None:
        return False
    return mine.path == its.path and mine.span.end < its.span.end  # the operands end before the operation


def _deleted(method: Method) -> Iterator[cst.Name]:
    """The reads of names behind the ``del`` after which nothing binds them."""
    for statement in method.nodes_of(cst.Del):
        for name, nodes in method.named.items():
            binders = method.binders.get(name, ())
            if statement not in binders or not all(
                each is statement or method.precedes(each, statement) for each in binders
            ):
                continue
            yield from (each for each in nodes if _comes_first(method, statement, each))


def _ends(method: Method) -> Iterator[cst.Call]:
    """The calls that end the program."""
    if method.named.keys().isdisjoint(_ENDING):
        return
    module = method.home.unit.index.module.names if method.home is not None else ()
    own = {*method.binders, *module}
    for call in method.nodes_of(cst.Call):
        name = dotted(call.func)
        if name in ("sys.exit", "os._exit") or (name in ("exit", "quit") and name not in own):
            yield call


_ENDING = frozenset({"exit", "os", "quit", "sys"})
"""The variables with which such calls begin."""


def _comes_first(method: Method, first: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether a node is certainly evaluated before another, on each path to it; the parts of a node come before it."""
    above = [node, *method.above(node)]
    if first in above:
        return False
    inner = first
    for outer in method.above(first):
        conditional = condition(outer, inner) is not Runs.ALWAYS or _is_uncertain(outer)
        if outer is node:
            return not conditional
        if outer in above:
            return (not conditional or inner in above) and method.is_written_before(first, node)
        if conditional:
            return False
        inner = outer
    return False


def _is_uncertain(node: cst.CSTNode) -> bool:
    """Whether a node may catch what its body raises, or may not run its body."""
    if isinstance(node, cst.With):  # such as `contextlib.suppress`
        calls = [each.item.func for each in node.items if isinstance(each.item, cst.Call)]
        return len(calls) < len(node.items) or not all((dotted(each) or "").startswith("torch.") for each in calls)
    return isinstance(node, (cst.Try, cst.TryStar, cst.BaseComp, cst.For, cst.While))
