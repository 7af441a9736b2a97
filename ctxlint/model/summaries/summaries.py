"""Function summaries, computed on demand, bottom-up over the call graph, each once.

What a function does when it calls itself is unknown, unless it does so with parts of its arguments; functions that call
each other in a circle are unknown. The cost of computing a summary is bounded, and charged to every user, whether or
not it is cached: so results do not depend on the order in which files are read.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import STEPS_OF_A_FILE, limited, spend, steps
from ctxlint.model.analyses.called_code import texts_named
from ctxlint.model.analyses.left_out import left_out_by, may_fit_sizes
from ctxlint.model.analyses.returns import joined
from ctxlint.model.analyses.sums_in_new_memory import unfilled_sums_of
from ctxlint.model.analyses.unguarded_launches import is_guarded
from ctxlint.model.analyses.unwritten_gradients import unwritten_parts
from ctxlint.model.function import Binding, Param
from ctxlint.model.index.device_choices import SETTING
from ctxlint.model.index.file_answers import answer_about
from ctxlint.model.index.fitting_sizes import LIMITS
from ctxlint.model.index.project import Definition
from ctxlint.model.index.python_names import mentions_creation
from ctxlint.model.index.scopes import LOCAL, Scope
from ctxlint.model.interpreter.effects import either
from ctxlint.model.interpreter.events import (
    CutGrid,
    FaultyLaunch,
    FlagTestedInside,
    ForeignStrides,
    GradientLaunch,
    KernelFaultKind,
    LayoutAsked,
    MaybeNone,
    MemoryRead,
    Misfit,
    MisfitCall,
    MisfitKind,
    Mutation,
    Return,
    Step,
    TrialEffectRun,
    UndefinedRead,
    UnfilledInside,
    Yield,
)
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.local_names import bound_names
from ctxlint.model.interpreter.sequences import many_like, spread
from ctxlint.model.interpreter.signatures import binding_of, decorators_of, misfit_of, params_of
from ctxlint.model.interpreter.summary import Summary
from ctxlint.model.interpreter.values import (
    NEVER,
    Argument,
    Choice,
    Context,
    Fresh,
    Imported,
    Mapping,
    NeedsInputGrad,
    Opaque,
    ProjectFunction,
    ProjectObject,
    Sequence,
    Single,
    Slot,
    Tri,
    Value,
    View,
    is_container,
    usual_storage,
)
from ctxlint.model.summaries.argument_binding import bind_arguments
from ctxlint.model.summaries.context_effects import CONTEXT_EVENTS, effects_of, gets_context
from ctxlint.model.summaries.declared import declared_writes, not_shared
from ctxlint.model.summaries.flag_tests import flag_tests_of
from ctxlint.model.summaries.graph_uses import KINDS_FOR_GRAPHS, graph_uses_of, mentions_graph
from ctxlint.model.summaries.memory_reads import launches_of, reads_of, strides_of
from ctxlint.model.summaries.none_reads import none_reads_of
from ctxlint.model.summaries.objects import (
    is_placeholder,
)
from ctxlint.model.summaries.resolver import STEPS_IN_VAIN, CalleeResolver, KnownSummary
from ctxlint.model.summaries.unbound_reads import KINDS_FOR_UNBOUND, none_elements_of, unbound_reads_of
from ctxlint.model.summaries.wrappers import Decorating, changes_nothing, decorated
from ctxlint.model.summaries.writes import writes_of
from ctxlint.model.syntax import last_name, root_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.known_decorators import (
    CONTEXT_MANAGER,
    CONTIGUITY_DECORATORS,
    OPERATOR_DECORATORS,
    SIGNATURE_KEEPING_DECORATORS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Mapping as MappingOf

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.events import Event, Guard, KernelFault, LeftOut, TrialEffect, UnfilledAllocation
    from ctxlint.model.interpreter.method import Decorator, MethodFacts

_KINDS: frozenset[type[Event]] = frozenset(
    [
        *(Return, Yield, Mutation, MemoryRead, LayoutAsked, ForeignStrides, MaybeNone, MisfitCall, FlagTestedInside),
        *(TrialEffectRun, UndefinedRead, CutGrid, FaultyLaunch, UnfilledInside, GradientLaunch),
    ]
)
"""The kinds of event that a summary needs."""

_KINDS_WITH_CONTEXT = _KINDS | CONTEXT_EVENTS

_STEPS = 40_000
"""The maximum cost of one summary, including those that it needs."""

_MOST_STEPS = 3_000_000
"""The maximum of steps that are really taken for one call. A summary in vain, or on a cycle, is charged less."""

_STEPS_OF_A_CIRCLE = 1_000
"""The charge for a function on a cycle of the call graph, wherever the cycle is entered."""

_MOST_KINDS = 8
"""A function may call itself through others with so many kinds of arguments; then it is on a cycle."""

_DEPTH = 16
"""The maximum depth of calls on Python's own stack; deeper callees are summarised first, separately."""

_MOST_RESTARTS = 24
"""Realistic call graphs need no more restarts for one call."""


class _Call(NamedTuple):
    """A function, its arguments, and the values of the names that it captures, abstracted by a ``Shape``."""

    callee: Definition
    arguments: tuple[Slot, ...]
    keywords: tuple[tuple[str, Slot], ...]
    captured: tuple[tuple[str, Slot], ...] = ()
    unwrapped: int = 0
    """So many of its decorators, the outermost first, are not applied."""


def _is_part_of(call: _Call, around: _Call) -> bool:
    """Whether a function that calls itself does so with smaller tuples and lists: it follows their structure."""
    sizes = [sum(_size(slot.value) for slot in each.arguments) for each in (call, around)]
    return sizes[0] < sizes[1] and call.keywords == around.keywords and len(call.arguments) == len(around.arguments)


def _size(value: Value) -> int:
    slots = value.slots if isinstance(value, (Sequence, Mapping)) else ()
    return 1 + sum(_size(slot.value) for slot in slots)


class _TooDeep(Exception):
    """A ``_Call`` has to be summarised before those in progress."""

    def __init__(self, call: _Call) -> None:
        super().__init__(call.callee.qualname)
        self.call = call


class _TooMuch(Exception):
    """The steps for one call are used up."""


_UNKNOWN = KnownSummary(None, 0)


def _name(keyword: tuple[str, Slot]) -> str:
    return keyword[0]


class Summaries:
    """Computes the summaries of the functions of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._active: list[_Call] = []
        self._most_spent = 0
        """What this thread may have spent at most by the end of the current call."""
        self._waiting: list[list[_Call]] = []
        """The active calls of each round that had to wait for a deeper call."""
        self._waits_in: dict[_Call, int] = {}
        """The first round that each of them waits in."""
        self._recursive: set[_Call] = set()
        """Calls on a cycle of the call graph that is longer than ``_DEPTH``."""
        self._circle = _DEPTH
        """The index of the first active call that the last one, or what it calls, makes again."""
        self._in_circle: dict[_Call, int] = {}
        """Calls that are done but on a cycle with an active one, by the index of that."""

    @property
    def is_at_work(self) -> bool:
        """Whether a summary is being computed."""
        return bool(self._active)

    def of(
        self,
        definition: Definition,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        captured: tuple[tuple[str, Slot], ...] = (),
        unwrapped: int = 0,
    ) -> KnownSummary:
        """The summary of a function for these arguments, abstracted by a ``Shape``."""
        call = _Call(definition, arguments, tuple(sorted(keywords.items(), key=_name)), captured, unwrapped)
        return self._of(call) if self._active else self._from_the_deepest(call)

    def misfit(self, definition: Definition, positional: int, keywords: MappingOf[str, Slot]) -> Misfit | None:
        """What a function certainly does not take of so many arguments by position, and these keywords."""
        record = definition.unit.index.functions[definition.qualname]
        head = self._head(definition) if record.certain and not record.alternatives else None
        names = [each.name if each.certain else None for each in head.decorators] if head is not None else []
        innermost = names[-1] if names else None
        through = self.project.meaning_elsewhere(definition.unit, innermost) if innermost is not None else None
        if head is not None and [through or innermost] in _JITTED:
            return _misfit_of_kernel(definition, names[:-1]) if self._is_of_triton(definition, head) else None
        if head is None or not (_KEEPING | _OPERATORS).issuperset(names) or _has_schema(record.node):
            return None
        raises = "RuntimeError" if not (_COMPILED | _OPERATORS).isdisjoint(names) else "TypeError"
        binding = binding_of(head.decorators)
        taken = positional + (binding is Binding.CLASS)
        passed = {name: last_name(slot.node) if slot.node is not None else "" for name, slot in keywords.items()}
        found = misfit_of(definition.name, head.params, taken, passed, raises)
        if found is None:
            return None
        found = replace(found, params=found.params[binding is Binding.CLASS :], results=_number_of_results(record.node))
        if binding is Binding.CLASS or "." not in definition.qualname or not head.params:
            return found
        first, used = head.params[0].name, {each.id for each in nodes_in(record.node) if isinstance(each, ast.Name)}
        if binding is Binding.STATIC:
            return replace(found, unread=first) if first in ("cls", "self") and first not in used else found
        return replace(found, receiver=first) if first == "cls" or (first == "self" and first not in used) else found

    def _is_of_triton(self, definition: Definition, head: _Head) -> bool:
        """Whether the project imports the innermost decorator, without a replacement if that fails."""
        decorator = head.node.decorators[-1].decorator
        root = root_name(decorator.func if isinstance(decorator, cst.Call) else decorator)
        if root is None:
            return False
        _unit, name, scope = self.project.bound(definition.unit, root, head.scope)
        owner = scope.owner(name)
        bounds = owner.live(name) if owner is not None else []
        replaced = any(each.handler and not each.is_none for each in bounds)
        return not replaced and any(each.target.partition(".")[0] == "triton" for each in bounds)

    def _from_the_deepest(self, call: _Call) -> KnownSummary:
        """The summary of a call; callees that are too deep come first, so that it does not depend on depth."""
        pending = [call]
        self._most_spent = steps.spent + _MOST_STEPS
        try:
            for _ in range(_MOST_RESTARTS):
                try:
                    known = self._of(pending[-1])
                except _TooDeep as deeper:
                    self._in_circle.clear()
                    self._circle = _DEPTH
                    pending.append(deeper.call)
                    continue
                pending.pop()
                if not pending:
                    return known
                self._waiting.pop()
                rounds = len(self._waiting)
                self._waits_in = {each: first for each, first in self._waits_in.items() if first < rounds}
        except _TooMuch:
            spend(STEPS_OF_A_FILE)
        finally:
            self._waiting.clear()
            self._waits_in.clear()
            self._in_circle.clear()
        return KnownSummary(None, _STEPS, too_costly=True)

    def _of(self, call: _Call) -> KnownSummary:
        definition = call.callee
        if (self._recursive and call in self._recursive) or (self._waits_in and self._is_waiting(call)):
            return _UNKNOWN
        again = self._circle_of(call)
        if again is not None:
            self._circle = min(self._circle, again)
            return _UNKNOWN
        key, summaries = (definition.qualname, *call[1:]), definition.unit.summaries
        if len(self._active) >= _DEPTH and key not in summaries:
            for each in self._active:
                self._waits_in.setdefault(each, len(self._waiting))
            self._waiting.append(list(self._active))
            raise _TooDeep(call)
        return self.project.once(key, lambda: self._work_out(call), summaries)

    def _circle_of(self, call: _Call) -> int | None:
        """The index of the first active call on a cycle with this one; ``_DEPTH`` for a function that calls itself."""
        if self._active and self._active[-1].callee == call.callee:
            return None if _is_part_of(call, self._active[-1]) else _DEPTH
        if self._in_circle and call in self._in_circle:
            return self._in_circle[call]
        same = [number for number, each in enumerate(self._active) if each.callee == call.callee]
        if len(same) >= _MOST_KINDS:
            return same[0]
        return next((number for number in same if self._active[number] == call), None)

    def _is_waiting(self, call: _Call) -> bool:
        """Whether a call waits for this one, which is the same, through a cycle. All calls on a cycle are unknown."""
        start = self._waits_in.get(call)
        if start is None:
            return False
        first, *later = self._waiting[start:]
        self._recursive.update(first[first.index(call) :], *later, self._active)
        self._circle = 0
        return True

    def _work_out(self, call: _Call) -> KnownSummary:
        if steps.spent > self._most_spent:
            raise _TooMuch
        around, self._circle = self._circle, _DEPTH
        self._active.append(call)
        try:
            summary, cost = limited(_STEPS, lambda: self._walked(call))
        finally:
            self._active.pop()
            circle, depth = self._circle, len(self._active)
            self._circle = min(around, circle) if circle < depth else around
        if circle < depth:
            self._in_circle[call] = circle
        else:
            self._in_circle = {each: first for each, first in self._in_circle.items() if first < depth}
        if circle <= depth:
            return KnownSummary(None, _STEPS_OF_A_CIRCLE)
        if cost is None:
            return KnownSummary(None, STEPS_IN_VAIN, too_costly=True)
        return KnownSummary(summary, cost)

    def _walked(self, call: _Call) -> Summary | None:
        """The summary of a function, by one walk over its body."""
        definition, arguments, keywords = call.callee, call.arguments, dict(call.keywords)
        unit, qualname = definition.unit, definition.qualname
        several = unit.index.functions[qualname].alternatives
        if several:
            bodies = [each for each in several if not is_placeholder(unit.index.functions[each].node)]
            return self._of_each([call._replace(callee=Definition(unit, each)) for each in bodies])
        head = self._head(definition)
        if head is None:
            return None
        decorators = head.decorators[call.unwrapped :]
        if binding_of(decorators) is Binding.CLASS:
            arguments = (Slot(Imported(LOCAL + qualname.rpartition(".")[0])), *arguments)
        for number, each in enumerate(decorators):
            if not self._keeps_signature(unit, each):
                within = ProjectFunction(definition, call.captured, call.unwrapped + number + 1)
                wrappers = self._wrappers(within, each)
                if wrappers is None:
                    return None
                if wrappers:
                    return self._of_each(
                        _Call(
                            wrapper.definition, (*first, *arguments), call.keywords, wrapper.captured, wrapper.unwrapped
                        )
                        for wrapper, first, _keywords in wrappers
                    )
        bindings = bind_arguments(head.params, arguments, keywords)
        if bindings is None:
            return None
        resolver = CalleeResolver(unit, self, line=unit.index.functions[qualname].node.lineno)
        objects = resolver.declared(head.params, bindings)
        captured = {name: slot.value for name, slot in call.captured}
        bindings = {**captured, **bindings}
        has_context = gets_context((*arguments, *keywords.values(), *(slot for _name, slot in call.captured)))
        kinds = _kinds_for(head, bindings, has_context)
        try:
            facts = interpret(head.node, bindings, head.scope, resolver, head.names, kinds, objects)
        except RecursionError:
            return None
        if not facts.complete:
            return None
        summary = _summary(self.project, definition, head, facts, bindings, decorators, has_context)
        return None if summary is None else self._with_writes_if_given(call, facts, summary)

    def _with_writes_if_given(self, call: _Call, facts: MethodFacts, summary: Summary) -> Summary:
        """A summary with what a second walk writes to arguments that are hardly ever None, where they never are."""
        given = _written_if_given(facts)
        again = _with_given(call, given)  # the same call if they are parts of other arguments
        known = self._walked(again) if again != call else None
        if known is None:
            return summary
        numbers = {each.number for each in given}
        origins = ((each, usual_storage(each.target)) for each in known.writes)
        more = (each for each, origin in origins if isinstance(origin, Argument) and origin.number in numbers)
        return replace(summary, writes=tuple(sorted((*summary.writes, *more), key=lambda write: write.order)))

    def _of_each(self, calls: Iterable[_Call]) -> Summary | None:
        """What several functions of a name have in common; a condition decides between them."""
        found: list[tuple[Definition, Summary] | None] = []
        for call in calls:
            known = self._of(call)
            spend(known.cost)
            found.append((call.callee, known.summary) if known.summary is not None else None)
        common = either(found)
        return common[1] if common is not None else None

    def _keeps_signature(self, unit: Unit, decorator: Decorator) -> bool:
        """Whether the decorated function is called with the same arguments, and nothing else happens to it."""
        name = decorator.name
        if name in OPERATOR_DECORATORS or name == CONTEXT_MANAGER:
            return True
        if decorator.keeps_signature is Tri.YES:
            return name not in CONTIGUITY_DECORATORS
        if name is None or decorator.called:
            return False
        key = ("changes nothing", name)
        return self.project.once(key, lambda: changes_nothing(self.project, unit, name), unit.summaries)

    def _wrappers(self, function: ProjectFunction, decorator: Decorator) -> tuple[Decorating, ...] | None:
        """What calls of a function with a decorator of the project call instead; None if that is unknown.

        If it may be the function itself, a condition in the decorator is about the environment: a wrapper comes first.
        """
        definition = function.definition
        unit = definition.unit
        meant = self._meant(unit, decorator)
        if meant is None:
            return None
        written = unit.index.functions[definition.qualname].node.decorator_list[function.unwrapped - 1]
        call = written if isinstance(written, ast.Call) else None
        made = decorated(meant, call, function, decorator.node.decorator, self._summary_of)
        found = [self._called_as(unit, each) for each in made if each != function]
        known = tuple(each for each in found if each is not None)
        return known if made and len(known) == len(found) else None

    def _called_as(self, unit: Unit, value: Value) -> Decorating | None:
        """What a call of a function or an object of the project calls."""
        if isinstance(value, ProjectObject):
            method = CalleeResolver(unit, self).method(value, "__call__")
            return Decorating(*method) if method is not None else None
        return Decorating(value) if isinstance(value, ProjectFunction) else None

    def _meant(self, unit: Unit, decorator: Decorator) -> Decorating | None:
        """The function of the project that a decorator is, or the method of an object; None if unknown."""
        if decorator.name is None:
            return None
        resolver = CalleeResolver(unit, self)
        meant = resolver.function(decorator.name)
        if meant is not None:
            is_sure = decorator.certain or bool(meant.unit.index.functions[meant.qualname].alternatives)
            return Decorating(ProjectFunction(meant)) if is_sure else None
        name = decorator.name if decorator.certain else f"{LOCAL}{decorator.written}"
        instance = resolver.instance(name)
        method = resolver.method_of_instance(f"{name}.__call__" if instance is not None else name)
        return Decorating(*method) if method is not None else None

    def _summary_of(
        self, function: ProjectFunction, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> Summary | None:
        known = self.of(function.definition, arguments, keywords, function.captured, function.unwrapped)
        spend(known.cost)
        return known.summary

    def _head(self, definition: Definition) -> _Head | None:
        """What is known of a function before a walk, found once, but charged each time; None if it cannot be walked."""
        key, among = ("head", definition.qualname), definition.unit.summaries
        head, cost = self.project.once(key, lambda: limited(_STEPS, lambda: _head_of(definition)), among)
        spend(_STEPS if cost is None else cost)
        return head


def _has_schema(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator gets the schema of an operator, whose parameters may have other names."""
    calls = (each for each in function.decorator_list if isinstance(each, ast.Call))
    return any(each.arg in ("schema", None) for call in calls for each in call.keywords)


_COMPILED = frozenset(["torch.jit.script", "torch.jit.script_if_tracing"])

_OPERATORS = frozenset(["torch.library.custom_op", "torch.library.triton_op"])
"""Decorators that make an operator of a function, which torch calls by its schema."""

_KEEPING = SIGNATURE_KEEPING_DECORATORS - {"functools.wraps"}
"""Decorators whose results are called with the very same arguments."""


class _Head(NamedTuple):
    """A function apart from its body, and the ``names`` that it binds."""

    node: cst.FunctionDef
    scope: Scope
    decorators: tuple[Decorator, ...]
    params: tuple[Param, ...]
    names: frozenset[str]
    asking: str
    """Its code if it may use a graph; otherwise empty."""


def _kinds_for(head: _Head, bindings: MappingOf[str, Value], has_context: bool) -> frozenset[type[Event]]:
    """The kinds of event that the summary of a function needs for its arguments."""
    kinds = _KINDS_WITH_CONTEXT if has_context else _KINDS
    if head.asking:
        return kinds | KINDS_FOR_GRAPHS | KINDS_FOR_UNBOUND
    flagged = any(isinstance(each, NeedsInputGrad) for each in bindings.values())
    return kinds | KINDS_FOR_UNBOUND if flagged or has_context else kinds


def _head_of(definition: Definition) -> _Head | None:
    unit, qualname = definition.unit, definition.qualname
    node = unit.slices.find_bare_function(qualname) if not unit.is_stub else None
    if node is None or node.asynchronous is not None:
        return None
    record = unit.index.functions[qualname]
    scope = Scope("function", qualname, record.scope)
    try:
        names = bound_names(node, unit.source.has_walrus)
    except RecursionError:
        return None
    first = min(each.lineno for each in (record.node, *record.node.decorator_list))
    text = unit.source.lines(first, record.node.end_lineno or record.node.lineno)
    return _Head(
        node,
        scope,
        decorators_of(node, record.scope),
        params_of(node, scope),
        names,
        text if mentions_graph(text) is not None else "",
    )


def _written_if_given(facts: MethodFacts) -> frozenset[Argument]:
    """The arguments that are hardly ever None, and that are written to unless something replaces them: if they are.

    As ``out`` is by ``if out is None: out = torch.empty_like(x)`` and ``out.copy_(x)``.
    """
    options = (each.target.alternatives for each in facts.of(Mutation) if isinstance(each.target, Choice))
    origins = ([usual_storage(option) for option in each] for each in options)
    return frozenset(
        origin
        for each in origins
        if any(isinstance(other, (Fresh, Single)) for other in each)
        for origin in each
        if isinstance(origin, Argument) and origin.none is Tri.NO and not origin.plain
    )


def _with_given(call: _Call, given: frozenset[Argument]) -> _Call:
    """The same call, where some of the arguments certainly are not None."""

    def sure(slot: Slot) -> Slot:
        value = slot.value
        return (
            replace(slot, value=replace(value, plain=True)) if isinstance(value, Argument) and value in given else slot
        )

    keywords = tuple((name, sure(slot)) for name, slot in call.keywords)
    return call._replace(arguments=tuple(map(sure, call.arguments)), keywords=keywords)


def _summary(
    project: Project,
    definition: Definition,
    head: _Head,
    facts: MethodFacts,
    bindings: MappingOf[str, Value],
    decorators: tuple[Decorator, ...],
    has_context: bool,
) -> Summary | None:
    """What the facts of a walk mean for callers."""
    if facts.is_generator:
        return Summary(_yielded(facts, head.node), deferred=tuple(writes_of(definition, head.names, facts)))
    reads = tuple(reads_of(definition, head.node, facts))
    if any(each.name in OPERATOR_DECORATORS for each in decorators):
        return Summary(not_shared(_returned(facts)), tuple(declared_writes(definition, bindings)), reads)
    effects = effects_of(definition, facts, _name_of_context(bindings)) if has_context else None
    writes = tuple(writes_of(definition, head.names, facts))
    none_reads = tuple(none_reads_of(definition, bindings, facts))
    unbound_reads = tuple(unbound_reads_of(definition, facts))
    uses = tuple(graph_uses_of(definition, facts, head.asking)) if head.asking else ()
    misfits = (*_undefined(project, definition, facts), *_misfits(definition, facts))
    strides = tuple(strides_of(definition, facts))
    flags = tuple(flag_tests_of(definition, head.node, facts, asking=bool(head.asking)))
    sums = tuple(_trial_effects(definition, facts))
    others = (none_reads, unbound_reads, uses, misfits, strides, flags, sums)
    faults = tuple(_kernel_faults(project, definition, head.node, facts, decorators))
    unfilled = (
        tuple(_unfilled(definition, head.node, facts)) if facts.has(Mutation) or facts.has(UnfilledInside) else ()
    )
    filled = (tuple(_left_out(definition, head.node, facts)), faults, unwritten_parts(head.node, facts), unfilled)
    nones = tuple(none_elements_of(definition, bindings, facts))
    launches = tuple(launches_of(definition, facts))
    return Summary(_returned(facts), writes, reads, effects, (), *others, *filled, facts.absent, nones, launches)


def _number_of_results(function: ast.AST) -> int:
    """The number of values that a function ending with ``return`` returns as a tuple wherever it does; 0 if unknown."""
    if not isinstance(function, ast.FunctionDef) or not isinstance(function.body[-1], ast.Return):
        return 0
    inside = [each for statement in function.body for each in nodes_in(statement)]
    if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in inside):
        return 0
    tuples = [each.value for each in inside if isinstance(each, ast.Return)]
    counts = {len(each.elts) if isinstance(each, ast.Tuple) else 0 for each in tuples}
    starred = any(isinstance(part, ast.Starred) for each in tuples if isinstance(each, ast.Tuple) for part in each.elts)
    return counts.pop() if len(counts) == 1 and not starred else 0


def _misfit_of_kernel(definition: Definition, around: list[str | None]) -> Misfit | None:
    """What is wrong with any call of a kernel of Triton, perhaps with decorators ``around`` it, by the host."""
    if not _TUNING.issuperset(around):
        return None
    raises = "TypeError" if around else "RuntimeError"
    statements = definition.unit.index.functions[definition.qualname].node.body
    nodes = (each for statement in statements for each in nodes_in(statement))
    valued = any(isinstance(each, ast.Return) and each.value is not None for each in nodes)
    return Misfit(definition.name, 0, 0, (), (), raises=raises, kind=MisfitKind.KERNEL_CALL, valued=valued)


_JITTED = (["triton.jit"], ["triton.runtime.jit.jit"])

_TUNING = frozenset(["triton.autotune", "triton.heuristics"])


def _undefined(project: Project, definition: Definition, facts: MethodFacts) -> Iterator[Misfit]:
    """The reads of names that certainly nothing defines, outside of ``try``; the first of each name."""
    seen: set[str] = set()
    for each in facts.of(UndefinedRead):
        if each.name in seen or each.tried or may_be_bound(project, definition.unit, each.name):
            continue
        seen.add(each.name)
        note = f"`{each.name}` {MisfitKind.UNDEFINED_NAME.value} here"
        span = definition.unit.slices.span_in_function(definition.qualname, each.node)
        yield Misfit(
            each.name,
            takes=0,
            surplus=0,
            missing=(),
            twice=(),
            steps=(Step(definition.unit.path, span, note),),
            raises="NameError",
            kind=MisfitKind.UNDEFINED_NAME,
            conditional=each.in_loop or any(guard.test is not None for guard in each.guards),
            inside=definition.name,
        )


def may_be_bound(project: Project, unit: Unit, name: str) -> bool:
    """Whether a name that no statement of a file binds may be bound all the same: by a star import, or at run time."""
    if unit.tree is None or unit.is_stub or unit.source.runs_other_code:
        return True
    if unit.index.module.stars and not project.lacks(unit, name):
        return True
    return mentions_creation(unit.source) and answer_about(unit, ("creates", ""))


def _misfits(definition: Definition, facts: MethodFacts) -> Iterator[Misfit]:
    """The calls and launches that raise by what they pass, outside of ``try``.

    A condition around the whole function may be about the names that torch has.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    for each in facts.of(MisfitCall):
        if each.misfit is None or each.tried:
            continue
        if each.misfit.kind not in _KINDS_OF_NAMES or (record is not None and not record.conditional):
            step = _step(definition, each, f"`{each.misfit.callee}` {each.misfit.kind.value} here")
            skipped = each.misfit.conditional or any(guard.test is not None for guard in each.guards)
            inside = each.misfit.inside or definition.name
            yield replace(each.misfit, steps=(step, *each.misfit.steps), conditional=skipped, inside=inside)


_KINDS_OF_NAMES = (MisfitKind.MISSING_NAME, MisfitKind.SETTABLE_NAME)


def _trial_effects(definition: Definition, facts: MethodFacts) -> Iterator[TrialEffect]:
    """The launches whose trials change the same memory again."""
    for each in facts.of(TrialEffectRun):
        if each.effect is not None:
            step = _step(definition, each, f"`{each.effect.callee}` is launched here")
            inside = each.effect.inside or definition.name
            yield replace(each.effect, steps=(step, *each.effect.steps), inside=inside)


def _left_out(definition: Definition, function: cst.FunctionDef, facts: MethodFacts) -> Iterator[LeftOut]:
    """The launches that leave out elements of what it returns, unless it may make the sizes fit."""
    for event, found in left_out_by(function, facts):
        if not may_fit_sizes(function):
            step = _step(definition, event, f"`{found.kernel}` is launched here")
            yield replace(found, steps=(step, *found.steps), inside=found.inside or definition.name)


def _unfilled(definition: Definition, function: cst.FunctionDef, facts: MethodFacts) -> Iterator[UnfilledAllocation]:
    """The memory that it, or a function that it calls, adds to before it has values."""
    for added, found in unfilled_sums_of(function, facts):
        step = _step(definition, added, "added here")
        yield replace(found, steps=(step, *added.through), inside=definition.name)
    for each in facts.of(UnfilledInside) if facts.has(UnfilledInside) else ():
        if each.found is not None:
            yield replace(each.found, steps=(_step(definition, each, "added here"), *each.through))


def _kernel_faults(
    project: Project,
    definition: Definition,
    function: cst.FunctionDef,
    facts: MethodFacts,
    decorators: tuple[Decorator, ...],
) -> Iterator[KernelFault]:
    """The launches of kernels that get to a fault in them; one that needs None only if no test may rule that out.

    Of those that nothing puts on a GPU, the first one of each kernel.
    """
    if not facts.has(FaultyLaunch):
        return
    keeps_device, unguarded = all(each.keeps_device for each in decorators), set[str]()
    faults = {each.fault.kind for each in facts.of(FaultyLaunch) if each.fault is not None}
    asked = not faults.isdisjoint((KernelFaultKind.NARROW, KernelFaultKind.UNGUARDED))
    texts = [*texts_named(project, definition)] if asked else []
    keeps_device = keeps_device and not any(map(SETTING.search, texts))
    limited = any(map(LIMITS.search, texts))
    for each in facts.of(FaultyLaunch):
        if each.fault is not None and each.fault.kind is KernelFaultKind.NARROW and limited:
            continue
        if each.fault is not None and each.fault.kind is KernelFaultKind.UNGUARDED:
            if not keeps_device or each.fault.callee in unguarded or is_guarded(function, each):
                continue
            unguarded.add(each.fault.callee)
        if each.fault is not None and (each.fault.absent is None or not each.is_chosen):
            step = _step(definition, each, f"`{each.fault.callee}` is launched here")
            inside = each.fault.inside or definition.name
            yield replace(each.fault, steps=(step, *each.fault.steps), inside=inside)


def _step(
    definition: Definition,
    event: MisfitCall | TrialEffectRun | CutGrid | FaultyLaunch | Mutation | UnfilledInside,
    at_once: str,
) -> Step:
    """The step to an event in a function; ``at_once`` says what happens there, unless it calls another function."""
    note = f"`{definition.name}` calls `{event.by}` here" if event.by else at_once
    return Step(definition.unit.path, definition.unit.slices.span_in_function(definition.qualname, event.node), note)


def _name_of_context(bindings: MappingOf[str, Value]) -> str:
    return next((name for name, value in bindings.items() if isinstance(value, Context)), "ctx")


def _returned(facts: MethodFacts) -> Value:
    if facts.falls_through is Tri.NO and not facts.returns:
        return NEVER
    return joined(replace(facts, events=tuple(_for_any_type(event) for event in facts.returns)))


def _yielded(facts: MethodFacts, node: cst.FunctionDef) -> Value:
    """What a generator function returns, with its elements if they are the same on every path."""
    yields = facts.of(Yield)
    if any(each.in_loop or each.guards for each in yields):
        values = [each.value for each in yields]
        only = values[0] if len(values) == 1 and isinstance(values[0], View) else many_like(values)
        return Sequence("generator", (Slot(only, starred=True),), node)
    slots = (spread(each.value, None) if each.many else (Slot(each.value),) for each in yields)
    return Sequence("generator", tuple(slot for each in slots for slot in each), node)


def _for_any_type(event: Return) -> Return:
    """A return, without the containers that it yields only for arguments of a type which these cannot have.

    A function that maps over any structure returns a dict for a dict, and a tensor for a tensor.
    """
    if is_container(event.value) is not Tri.YES or not any(map(_asks_type, event.guards)):
        return event
    return replace(event, value=Opaque(event.node))


def _asks_type(guard: Guard) -> bool:
    """Whether a condition asks for the type of something: ``isinstance``, ``torch.is_tensor``, ``type(x) is dict``."""
    words = guard.words
    return "isinstance" in words or "is_tensor" in words or ("type" in words and bool(_TYPE_OF.search(guard.text)))


_TYPE_OF = pattern(r"(?<![\w.])type\(")
