"""What a call of a project function does: the writes and the effects on ctx in its summary, as events of the caller."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.model.index.python_names import RECEIVERS
from ctxlint.model.interpreter.events import (
    ContextCall,
    ContextLent,
    ContextRead,
    ContextWrite,
    CutGrid,
    Escape,
    FaultyLaunch,
    FlagTestedInside,
    GradientLaunch,
    GraphUseInside,
    MaybeNone,
    MemoryRead,
    MisfitCall,
    MisfitKind,
    Mutation,
    NoneInside,
    SavedRead,
    TrialEffectRun,
    UnboundInside,
    UnfilledInside,
    UnwrittenResult,
)
from ctxlint.model.interpreter.name_reads import is_tested_for_names
from ctxlint.model.interpreter.names import is_behind_a_switch
from ctxlint.model.interpreter.ranks import is_sent_by
from ctxlint.model.interpreter.signatures import are_moved
from ctxlint.model.interpreter.strided_launches import record_foreign_strides
from ctxlint.model.interpreter.summary import ASSERTED, Summary, Write
from ctxlint.model.interpreter.values import (
    NEVER,
    NONE,
    UNKNOWN,
    Argument,
    Choice,
    Context,
    Item,
    Parameter,
    ProjectFunction,
    Sequence,
    Slot,
    Tri,
    View,
    holds_context,
    is_tensor,
    join_all,
    leaves,
    parameters_among,
    usual_storage,
)
from ctxlint.model.syntax import children, last_name, root_name
from ctxlint.source.ast_tree import parameter_names
from ctxlint.torch_api.operations import SAME_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Sequence_

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.events import ContextEvent, Misfit, Orders, Unpacking
    from ctxlint.model.interpreter.summary import ContextEffects, Launch, NoneRead, Read
    from ctxlint.model.interpreter.tensor_calls import Arguments
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.interpreter.walk import Walk


def either(found: Sequence_[tuple[Definition, Summary] | None]) -> tuple[Definition, Summary] | None:
    """What a call of one of several functions does, whichever it is; named after the first. None if unknown."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    (definition, first), *others = [each for each in known if each[1].returned != NEVER] or known[:1]
    if not others:
        return definition, first
    if any(each.on_context is not None for _definition, each in known):
        return None
    written = [{_memory(each.target) for each in summary.writes} for _definition, summary in others]
    writes = tuple(each for each in first.writes if all(_memory(each.target) in memory for memory in written))
    reads = tuple(read for summary in (first, *(each for _definition, each in others)) for read in summary.reads)
    results = [first.returned, *(summary.returned for _definition, summary in others)]
    alike = len({_forms(each) for each in results}) == 1
    return definition, Summary(join_all(results) if alike else UNKNOWN, writes, reads)


def _memory(target: Value) -> Value:
    """What a write changes, also through a view: one function may take another view of it first."""
    return usual_storage(target) or target


def _forms(returned: Value) -> frozenset[int]:
    """The numbers of values that a result may have: 0 for None, 1 for anything but a tuple or list."""
    return frozenset(
        len(option.slots) if isinstance(option, Sequence) else int(option != NONE) for option in returned.options()
    )


def apply_summary(
    walk: Walk, node: cst.BaseExpression, known: tuple[Definition, Summary], arguments: Arguments
) -> Value:
    """Record the effects of a call of a function with this summary, and return what it returns."""
    definition, summary = known
    by = definition.name
    if by == "__call__" and isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        by = node.func.value
    if not (summary.reads and _are_shifted(definition, node)):
        record_reads(walk, node, by, summary.reads, arguments)
    _record_none_reads(walk, by, summary.none_reads, arguments)
    walk.state.absent |= parameters_among(summary.absent)
    record_foreign_strides(walk, node, by, summary.strides, arguments)
    for use in summary.graph_uses:
        walk.record(GraphUseInside, node, test=use.test, how=use.how, by=by, through=use.steps)
    for flag in summary.flag_tests:
        walk.record(FlagTestedInside, node, value=flag.target, test=flag.test, by=flag.by, through=flag.steps)
    _record_misfits(walk, node, by, summary.misfits)
    _record_results(walk, node, by, summary)
    _record_launches(walk, node, by, summary.launches, arguments)
    for each in summary.unbound_reads if not walk.protected else ():
        walk.record(UnboundInside, node, name=each.name, needed=each.needed, by=by, through=each.steps)
    for element in summary.none_elements:
        walk.record(NoneInside, node, at=element.at, needed=element.needed, by=by, through=element.steps)
    if summary.on_context is not None:
        _lend_context(walk, node, by, summary, arguments)
    else:
        if arguments.lends_context:
            walk.record(Escape, node, how="passed", callee=by)
        record_writes(walk, node, by, summary.writes, arguments)
    if summary.deferred and walk.statement is not None and _takes_all(walk.statement, node):
        record_writes(walk, node, by, summary.deferred, arguments)
    if isinstance(summary.returned, (Sequence, Choice)) and holds_context(summary.returned):
        if not _is_taken_apart(walk.statement, node):
            walk.record(Escape, node, how="stored", callee=by)
    return summary.returned


def _record_results(walk: Walk, node: cst.BaseExpression, by: str, summary: Summary) -> None:
    """Record what is wrong with the launches of kernels in a function, and that it does not write what it returns."""
    if summary.unwritten:
        walk.record(UnwrittenResult, node, parts=summary.unwritten)
    for effect in summary.trial_effects:
        walk.record(TrialEffectRun, node, effect=effect, by=by)
    for unfilled in summary.unfilled:
        walk.record(UnfilledInside, node, found=unfilled, by=by)
    for left_out in summary.left_out:
        walk.record(CutGrid, node, found=left_out, by=by)
    for fault in summary.kernel_faults:
        walk.record(FaultyLaunch, node, fault=fault, by=by)


def _are_shifted(definition: Definition, node: cst.BaseExpression) -> bool:
    """Whether a call passes arguments in another order than the function takes them, which may raise first of all."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not isinstance(node, cst.Call):
        return False
    given = takewhile(lambda each: each.keyword is None and not each.star, node.args)
    names, params = [last_name(each.value) for each in given], parameter_names(record.node.args)
    return are_moved(*([each for each in one if each not in RECEIVERS] for one in (names, params)))


def _record_misfits(walk: Walk, node: cst.BaseExpression, by: str, misfits: tuple[Misfit, ...]) -> None:
    """Record what raises in a function; a test around its call may be about the names that it reads."""
    for misfit in misfits:
        is_about_it = _TESTS_OF_NAMES.get(misfit.kind)
        if is_about_it is None or not is_about_it(walk):
            walk.record(MisfitCall, node, misfit=misfit, by=by)


_TESTS_OF_NAMES = {
    MisfitKind.MISSING_NAME: is_tested_for_names,
    MisfitKind.SETTABLE_NAME: is_tested_for_names,
    MisfitKind.UNDEFINED_NAME: is_behind_a_switch,
}


def _is_taken_apart(statement: cst.CSTNode | None, call: cst.BaseExpression) -> bool:
    """Whether the result of a call is only unpacked into names, or returned."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Return) and small.value is call:
            return True
        if isinstance(small, cst.Assign) and small.value is call:
            return all(isinstance(each.target, cst.Tuple) for each in small.targets)
    return False


def _takes_all(around: cst.CSTNode, call: cst.BaseExpression) -> bool:
    """Whether code certainly takes everything that a generator yields: a loop, ``list(...)``, unpacking, ``with``."""
    if isinstance(around, cst.For) and around.iter is call:
        return not may_stop(around.body)
    if isinstance(around, cst.With):
        return any(item.item is call for item in around.items)
    if isinstance(around, cst.Call) and any(each.value is call for each in around.args):
        return isinstance(around.func, cst.Name) and around.func.value in _TAKING_ALL
    if isinstance(around, cst.Assign) and around.value is call:
        return all(isinstance(each.target, (cst.Tuple, cst.List)) for each in around.targets)
    if isinstance(around, cst.StarredElement) and around.value is call:
        return True
    if isinstance(around, (cst.BaseSuite, cst.FunctionDef, cst.Lambda, cst.BaseComp, cst.BooleanOperation, cst.IfExp)):
        return False
    return any(_takes_all(child, call) for child in children(around))


_TAKING_ALL = frozenset(["list", "tuple", "set", "sum", "sorted", "dict", "max", "min"])
"""Builtins that take all elements of their argument."""


def may_stop(node: cst.CSTNode) -> bool:
    """Whether a loop may end, or skip the rest of its body, before it has run for each element."""
    if isinstance(node, (cst.Break, cst.Continue, cst.Return)):
        return True
    return not isinstance(node, cst.BaseExpression) and any(map(may_stop, children(node)))


def record_reads(walk: Walk, node: cst.BaseExpression, by: str, reads: Iterable[Read], arguments: Arguments) -> None:
    """Record whose memory a project function or operator reads, whatever its layout is."""
    slots = (*arguments.positional, *arguments.keywords.values())
    for each in reads:
        if each.how == ASSERTED and walk.protected:
            continue
        walk.record(
            MemoryRead,
            node,
            value=each.target,
            value_node=_given_as(each.target, slots),
            how=each.how,
            reader=each.reader,
            by=by,
            through=each.steps,
            parameter=each.parameter,
            alike=each.alike,
            others=each.others,
            view=each.view,
        )


def _record_none_reads(walk: Walk, by: str, reads: Iterable[NoneRead], arguments: Arguments) -> None:
    """Record the names that may be None among the arguments that a project function reads an attribute of."""
    slots = (*arguments.positional, *arguments.keywords.values())
    for each in reads:
        for slot in slots:
            options = slot.value.options()
            if isinstance(slot.node, cst.Name) and each.target in options and NONE in options and not walk.protected:
                name, value = slot.node.value, slot.value
                walk.record(MaybeNone, slot.node, name=name, how=each.how, value=value, by=by, through=each.steps)


def whole_gradient(value: Value) -> Value | None:
    """The incoming gradient of which a value certainly has all elements, and no others; or an argument."""
    value = whole_of(value)
    return value if isinstance(value, Argument) or (isinstance(value, Parameter) and value.role == "gradient") else None


def whole_of(value: Value) -> Value:
    """The tensor of which a value has all elements, and no others: ``x`` of ``x.contiguous().view(-1)``."""
    while isinstance(value, View) and isinstance(value.node, cst.Call) and last_name(value.node.func) in SAME_ELEMENTS:
        value = value.of
    return value


def _record_launches(
    walk: Walk, node: cst.BaseExpression, by: str, launches: Iterable[Launch], arguments: Arguments
) -> None:
    """Record that a project function has kernels get all of a gradient."""
    given = (*arguments.positional, *arguments.keywords.values())
    for launch in launches:
        whole = whole_gradient(launch.target)
        if whole is not None:
            walk.record(
                *(GradientLaunch, node),
                gradient=whole,
                value_node=_given_as(launch.target, given),
                parameter=launch.parameter,
                reader=launch.reader,
                by=by,
                through=launch.steps,
            )


def record_writes(walk: Walk, node: cst.BaseExpression, by: str, writes: Iterable[Write], arguments: Arguments) -> None:
    """Record what a project function, kernel or operator writes to."""
    for write in writes:
        _written_by(walk, node, by, write, arguments)


def _written_by(walk: Walk, node: cst.BaseExpression, by: str, write: Write, arguments: Arguments) -> None:
    """Record that a project function writes to its argument, or to an attribute of ctx."""
    slots = (*arguments.positional, *arguments.keywords.values())
    if is_tensor(write.target) is Tri.NO or is_sent_by(walk, write.how, slots):
        return
    written = _given_as(write.target, slots)
    walk.record(
        Mutation,
        node,
        target=write.target,
        target_node=written,
        how=write.how,
        name=root_name(written),
        statement=walk.statement,
        by=by,
        through=write.steps,
        chosen=write.chosen,
        adds=write.adds,
    )


def _lend_context(walk: Walk, node: cst.BaseExpression, by: str, summary: Summary, arguments: Arguments) -> None:
    """Record what a function does with the ctx, and what it writes to, in the order of its code."""
    effects = summary.on_context
    if effects is None:
        return
    walk.record(ContextLent, node)
    for value in tuple(walk.state.attributes.values()):
        walk.state.escape(value)
    replay = _Replay(walk, node, by, arguments, effects)
    in_order: list[ContextEvent | Write] = [*effects.events, *summary.writes]
    for each in sorted(in_order, key=lambda each: each.order):
        if isinstance(each, Write):
            _written_by(walk, node, by, each, arguments)
        else:
            replay.event(each)
    replay.end()


class _Replay:
    """Records the events of a function at its call: what happens in it happens there."""

    def __init__(
        self, walk: Walk, node: cst.BaseExpression, by: str, arguments: Arguments, effects: ContextEffects
    ) -> None:
        self.walk, self.node, self.by, self.effects = walk, node, by, effects
        self.slots = (*arguments.positional, *arguments.keywords.values())
        passed = (each.value for each in self.slots if not isinstance(each.value, ProjectFunction))
        passes_context = any(isinstance(leaf, Context) for value in passed for leaf in leaves(value))
        self.captured_by = "" if passes_context else by
        self.before, self.maybe = walk.state.done, walk.state.maybe
        self.orders: dict[int, int] = {}
        """The order of each event here, by that in the function."""

    def event(self, event: ContextEvent) -> None:
        """Record one event of the function."""
        walk = self.walk
        captured_by = event.captured_by or self.captured_by
        conditional = event.conditional or self._may_be_skipped(event)
        changes: dict[str, Any] = {
            "node": self.node,
            "by": self.by,
            "captured_by": captured_by,
            "conditional": conditional,
        }
        if isinstance(event, (ContextCall, ContextWrite)):
            changes["statement"] = walk.statement
        if isinstance(event, Escape):
            changes["how"], changes["callee"] = "passed", self.by
        elif isinstance(event, ContextCall):
            changes["arguments"] = tuple(
                Slot(each.value, _given_as(each.value, self.slots), each.starred) for each in event.arguments
            )
        elif isinstance(event, ContextRead):
            changes["own"] = event.own or event.attribute in walk.state.attributes
            changes["guarded"] = event.guarded or walk.protected > 0
        elif isinstance(event, SavedRead):
            changes["unpackings"] = tuple(self.unpacking(each, conditional) for each in event.unpackings)
        before, maybe = self.before | self._here(event.before), self.maybe | self._here(event.maybe_before)
        order = walk.recorder.replay(
            replace(event, **changes),
            walk.state,
            before,
            maybe,
            event.in_loop or walk.loops > 0,
        )
        if order is not None:
            self.orders[event.order] = order
            walk.state.maybe |= 1 << order
            if self.effects.done >> event.order & 1:
                walk.state.done |= 1 << order

    def _may_be_skipped(self, event: ContextEvent) -> bool:
        """Whether the function may not get to an event; that loops run is assumed."""
        if self.effects.done >> event.order & 1:
            return False
        return not event.in_loop or _is_tested(event)

    def unpacking(self, unpacking: Unpacking, conditional: bool) -> Unpacking:
        """The saved tensors are unpacked in the function, if they are read there or under another test."""
        conditional = conditional or unpacking.conditional or _is_tested(unpacking)
        guards = (*self.walk.state.guards, *unpacking.guards)
        captured_by = unpacking.captured_by or self.captured_by
        statement = self.walk.statement
        return replace(
            unpacking,
            node=self.node,
            statement=statement,
            guards=guards,
            by=self.by,
            captured_by=captured_by,
            conditional=conditional,
        )

    def end(self) -> None:
        """Update the attributes of ctx."""
        attributes = self.walk.state.attributes
        for event in self.effects.events:
            if isinstance(event, ContextWrite):
                attributes.pop(event.attribute, None)
        attributes.update(self.effects.attributes)

    def _here(self, orders: Orders) -> Orders:
        """Events of the function, by their orders here."""
        found = 0
        for there, here in self.orders.items():
            if orders >> there & 1:
                found |= 1 << here
        return found


def _is_tested(event: ContextEvent | Unpacking) -> bool:
    """Whether a test in the function decides about an event."""
    return any(guard.test is not None for guard in event.guards)


def _given_as(target: Value, slots: tuple[Slot, ...]) -> cst.BaseExpression | None:
    """The argument that a value is, is contained in, or is a view of."""
    while True:
        for slot in slots:
            if slot.value == target or target in leaves(slot.value):
                return slot.node
        if not isinstance(target, (View, Item)):
            return None
        target = target.of
