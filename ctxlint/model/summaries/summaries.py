"""Function summaries, computed on demand, bottom-up over the call graph, each once.

A recursive function is unknown. The cost of computing a summary is bounded, and charged to every user, whether or not
it is cached: so results do not depend on the order in which files are read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.effort import limited, spend
from ctxlint.model.analyses.returns import joined
from ctxlint.model.function import Binding, Param
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, Scope
from ctxlint.model.interpreter.events import LayoutAsked, MemoryRead, Mutation, Return
from ctxlint.model.interpreter.extension_calls import loads_extension
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.signatures import binding_of, decorators_of, params_of
from ctxlint.model.interpreter.summary import KERNEL, OPERATOR, Summary, Write
from ctxlint.model.interpreter.values import (
    CONTEXT,
    NEVER,
    UNKNOWN,
    Argument,
    Constant,
    Imported,
    Mapping,
    Opaque,
    Parameter,
    ProjectFunction,
    ProjectObject,
    Slot,
    Tri,
    Value,
    is_container,
    is_tensor,
)
from ctxlint.model.summaries.argument_binding import bind_arguments
from ctxlint.model.summaries.callables import made_callable, table_of_functions
from ctxlint.model.summaries.context_effects import CONTEXT_EVENTS, effects_of, gets_context
from ctxlint.model.summaries.declared import declared_as, declared_by
from ctxlint.model.summaries.kernels import is_kernel, kernel_writes, parameters_of
from ctxlint.model.summaries.memory_reads import reads_of
from ctxlint.model.summaries.objects import (
    attribute_of,
    declared_class,
    instance_of_module,
    member,
    new_object,
    only_base,
)
from ctxlint.model.summaries.shapes import Shape
from ctxlint.model.summaries.wrappers import wrapper_of
from ctxlint.model.summaries.writes import writes_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as MappingOf

    import libcst as cst

    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Decorator, MethodFacts
    from ctxlint.model.summaries.wrappers import Wrapper

    Launched = tuple[Definition, tuple[Write, ...]]
    """A kernel and its writes."""

_KINDS: frozenset[type[Event]] = frozenset([Return, Mutation, MemoryRead, LayoutAsked])
"""The kinds of event that a summary needs."""

_KINDS_WITH_CONTEXT = _KINDS | CONTEXT_EVENTS

_STEPS = 40_000
"""The maximum cost of one summary, including those that it needs."""

_STEPS_IN_VAIN = _STEPS // 8
"""The charge for one that costs more, which is unknown then."""

_TIMES_IN_VAIN = 2
"""After so many kinds of arguments for which a function costs too much, a walk does not try it again."""

_STEPS_OF_A_CIRCLE = 1_000
"""The charge for a function on a cycle of the call graph, wherever the cycle is entered."""

_MOST_KINDS = 8
"""A function may call itself through others with so many kinds of arguments; then it is on a cycle."""

_OF_ANY_FILE = ("torch.", "builtins.")
"""Prefixes of resolved names that mean the same in every file."""

_DEPTH = 16
"""The maximum depth of calls on Python's own stack; deeper callees are summarised first, separately."""

_MOST_RESTARTS = 24
"""Realistic call graphs need no more restarts for one call."""


class _Known(NamedTuple):
    """A summary, None if unknown, and the steps that are charged for it."""

    summary: Summary | None
    cost: int
    too_costly: bool = False


class _Call(NamedTuple):
    """A function, its arguments, and the values of the names that it captures, abstracted by a ``Shape``."""

    callee: Definition
    arguments: tuple[Slot, ...]
    keywords: tuple[tuple[str, Slot], ...]
    captured: tuple[tuple[str, Slot], ...] = ()
    unwrapped: int = 0
    """So many of its decorators, the outermost first, are not applied."""


class _TooDeep(Exception):
    """A ``_Call`` has to be summarised before those in progress."""

    def __init__(self, call: _Call) -> None:
        super().__init__(call.callee.qualname)
        self.call = call


_UNKNOWN = _Known(None, 0)


def _name(keyword: tuple[str, Slot]) -> str:
    return keyword[0]


class Summaries:
    """Computes the summaries of the functions of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._active: list[_Call] = []
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
    ) -> _Known:
        """The summary of a function for these arguments, abstracted by a ``Shape``."""
        call = _Call(definition, arguments, tuple(sorted(keywords.items(), key=_name)), captured, unwrapped)
        return self._of(call) if self._active else self._from_the_deepest(call)

    def _from_the_deepest(self, call: _Call) -> _Known:
        """The summary of a call; callees that are too deep come first, so that it does not depend on depth."""
        pending = [call]
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
        finally:
            self._waiting.clear()
            self._waits_in.clear()
            self._in_circle.clear()
        return _Known(None, _STEPS, too_costly=True)

    def _of(self, call: _Call) -> _Known:
        definition = call.callee
        if call in self._recursive or self._is_waiting(call):
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
            return _DEPTH
        if call in self._in_circle:
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

    def _work_out(self, call: _Call) -> _Known:
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
            return _Known(None, _STEPS_OF_A_CIRCLE)
        if cost is None:
            return _Known(None, _STEPS_IN_VAIN, too_costly=True)
        return _Known(summary, cost)

    def _walked(self, call: _Call) -> Summary | None:
        """The summary of a function, by one walk over its body."""
        definition, arguments, keywords = call.callee, call.arguments, dict(call.keywords)
        unit, qualname = definition.unit, definition.qualname
        node = unit.slices.find_bare_function(qualname) if not unit.is_stub else None
        if node is None or node.asynchronous is not None:
            return None
        record = unit.index.functions[qualname]
        scope = Scope("function", qualname, record.scope)
        decorators = decorators_of(node, record.scope)[call.unwrapped :]
        if binding_of(decorators) is Binding.CLASS:
            arguments = (Slot(Imported(LOCAL + qualname.rpartition(".")[0])), *arguments)
        for number, each in enumerate(decorators):
            if each.keeps_signature is not Tri.YES:
                wrapper = self._wrapper(unit, each)
                if wrapper is None:
                    return None
                if wrapper.definition is not None:
                    within = ProjectFunction(definition, call.captured, call.unwrapped + number + 1)
                    known = self.of(wrapper.definition, arguments, keywords, ((wrapper.wrapped, Slot(within)),))
                    spend(known.cost)
                    return known.summary
        params = params_of(node, scope)
        bindings = bind_arguments(params, arguments, keywords)
        if bindings is None:
            return None
        resolver = CalleeResolver(unit, self)
        objects = resolver.declared(params, bindings)
        captured = {name: slot.value for name, slot in call.captured}
        bindings = {**captured, **bindings}
        has_context = gets_context((*arguments, *keywords.values(), *(slot for _name, slot in call.captured)))
        kinds = _KINDS_WITH_CONTEXT if has_context else _KINDS
        try:
            facts = interpret(node, bindings, scope, resolver, unit.source.has_walrus, kinds, objects)
        except RecursionError:
            return None
        if facts.is_generator or not facts.complete:
            return None
        effects = effects_of(definition, facts, _name_of_context(bindings)) if has_context else None
        writes, reads = writes_of(definition, node, facts), reads_of(definition, facts)
        return Summary(_returned(facts), tuple(writes), tuple(reads), effects)

    def _wrapper(self, unit: Unit, decorator: Decorator) -> Wrapper | None:
        """What a decorator of the project makes of a function."""
        meant = CalleeResolver(unit, self).function(decorator.name) if decorator.certain and decorator.name else None
        return wrapper_of(meant, decorator.called) if meant is not None else None


def _name_of_context(bindings: MappingOf[str, Value]) -> str:
    return next((name for name, value in bindings.items() if value == CONTEXT), "ctx")


def _returned(facts: MethodFacts) -> Value:
    if facts.falls_through is Tri.NO and not facts.returns:
        return NEVER
    return joined(replace(facts, events=tuple(_for_any_type(event) for event in facts.returns)))


class _Passed(NamedTuple):
    """What a function gets for its parameters and captured names, abstracted by ``shape``."""

    shape: Shape
    arguments: tuple[Slot, ...]
    keywords: MappingOf[str, Slot]
    captured: tuple[tuple[str, Slot], ...]


def _passed(
    attributes: MappingOf[str, Value],
    arguments: tuple[Slot, ...],
    keywords: MappingOf[str, Slot],
    captured: tuple[tuple[str, Slot], ...] = (),
) -> _Passed:
    shape = Shape(attributes)
    return _Passed(
        shape,
        tuple(map(shape.slot, arguments)),
        {name: shape.slot(slot) for name, slot in keywords.items()},
        tuple((name, shape.slot(slot)) for name, slot in captured),
    )


class CalleeResolver:
    """Resolves the names of one file to functions and their summaries, for one walk: a ``summary.Resolver``."""

    def __init__(self, unit: Unit, summaries: Summaries, hops: int = 0) -> None:
        self.unit = unit
        self.summaries = summaries
        self._hops = hops
        """How many partial functions lead here."""
        self._too_costly: Counter[Definition] = Counter()

    def callee(
        self,
        name: str,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        call: cst.Call,
        attributes: MappingOf[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """A function and its summary for this call, in values of the caller; None if unknown.

        ``attributes`` are the values of those of ctx that the caller has set.
        """
        if not name.startswith(LOCAL):
            arguments, keywords = self._for_another_file(arguments, keywords)
        passed = _passed(attributes, arguments, keywords)
        if self.summaries.is_at_work and not passed.shape.objects and not name.startswith(LOCAL):
            if not gets_context((*arguments, *keywords.values())):
                return None  # reading another file is not worth it for numbers
        meant = self._meant(name)
        definition = self._function(meant)
        if definition is None:
            made = made_callable(self.summaries.project, self.unit, name, self._hops)
            if made is None:
                return self._made(name, meant, arguments, keywords, call, attributes)
            resolver = CalleeResolver(made.unit, self.summaries, self._hops + 1)
            return resolver.callee(
                made.name, (*made.arguments, *arguments), {**made.keywords, **keywords}, call, attributes
            )
        return self._called(definition, passed, call)

    def call(
        self,
        function: ProjectFunction,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        call: cst.Call,
        attributes: MappingOf[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """Like ``callee``, for a function as a value."""
        if function.definition.unit is not self.unit:
            arguments, keywords = self._for_another_file(arguments, keywords)
        passed = _passed(attributes, arguments, keywords, function.captured)
        if self.summaries.is_at_work and not passed.shape.objects:
            return None
        return self._called(function.definition, passed, call, function.unwrapped)

    def _called(
        self, definition: Definition, passed: _Passed, call: cst.Call, unwrapped: int = 0
    ) -> tuple[Definition, Summary] | None:
        if self._too_costly[definition] >= _TIMES_IN_VAIN:
            spend(_STEPS_IN_VAIN)
            return None
        known = self.summaries.of(definition, passed.arguments, passed.keywords, passed.captured, unwrapped)
        self._too_costly[definition] += known.too_costly
        spend(known.cost)
        return (definition, passed.shape.applied(known.summary, call)) if known.summary is not None else None

    def _for_another_file(
        self, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> tuple[tuple[Slot, ...], MappingOf[str, Slot]]:
        """Arguments for a function of another file, where the names of this one mean something else."""
        return tuple(map(self._elsewhere, arguments)), {name: self._elsewhere(slot) for name, slot in keywords.items()}

    def _elsewhere(self, slot: Slot) -> Slot:
        value = slot.value
        if not isinstance(value, Imported) or value.name.startswith(_OF_ANY_FILE):
            return slot
        function = self.function(value.name)
        if function is not None:
            return Slot(ProjectFunction(function), slot.node, slot.starred)
        return Slot(UNKNOWN, slot.node, slot.starred) if value.name.startswith((LOCAL, ".")) else slot

    def _made(
        self,
        name: str,
        meant: Definition | None,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        call: cst.Call,
        attributes: MappingOf[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """A call of a class, or of a method of an object that a module creates."""
        if not gets_context((*arguments, *keywords.values())):
            found = new_object(self.summaries.project, self.unit, name, meant, arguments, keywords, call)
            if found is not None:
                return found[0], Summary(found[1])
        method = self._method_of_instance(name)
        if method is None:
            return None
        function, receiver = method
        return self.call(function, (*receiver, *arguments), keywords, call, attributes)

    def _method_of_instance(self, name: str) -> tuple[ProjectFunction, tuple[Slot, ...]] | None:
        owner, _, method = name.rpartition(".")
        instance = self.instance(owner) if owner else None
        return self.method(instance, method) if instance is not None else None

    def nested(self, qualname: str, captured: tuple[tuple[str, Slot], ...]) -> ProjectFunction | None:
        """A function of the file that is certainly meant by a name, with what it captures."""
        definition = self.function(LOCAL + qualname)
        return ProjectFunction(definition, captured) if definition is not None else None

    def anonymous(
        self, function: str, node: cst.Lambda, captured: tuple[tuple[str, Slot], ...]
    ) -> ProjectFunction | None:
        """A lambda without a name in a function of the file, with what it captures."""
        name = self.unit.slices.name_of_lambda(function, node)
        return ProjectFunction(Definition(self.unit, name), captured) if name is not None else None

    def method(self, instance: ProjectObject, name: str) -> tuple[ProjectFunction, tuple[Slot, ...]] | None:
        """A method of an object, and the first argument of its calls if it takes the object; None if unknown."""
        found = member(self.summaries.project, instance.definition, name)
        if found is None or found[1] is None:
            return None
        return ProjectFunction(found[0]), (Slot(instance),) if found[1] is Binding.INSTANCE else ()

    def above(self, owner: str, name: str) -> ProjectFunction | None:
        """The static or class method ``name`` of the base of a class of the file: of ``super()``."""
        base = only_base(self.summaries.project, Definition(self.unit, owner))
        found = member(self.summaries.project, base, name) if base is not None else None
        return ProjectFunction(found[0]) if found is not None and found[1] is not Binding.INSTANCE else None

    def instance(self, name: str) -> ProjectObject | None:
        """The object that a name of the module is certainly bound to."""
        return instance_of_module(self.summaries.project, self.unit, name)

    def table(self, name: str) -> Mapping | None:
        """The dict of functions that a name of the module is certainly bound to, if nothing in the file changes it."""
        unit = self.unit
        return self.summaries.project.once(("table", name), lambda: table_of_functions(unit, name), unit.summaries)

    def attribute(self, instance: ProjectObject, name: str) -> ProjectObject | None:
        """The object that an attribute of an object certainly holds."""
        return attribute_of(self.summaries.project, instance, name)

    def declared(self, params: Iterable[Param], bindings: MappingOf[str, Value]) -> dict[Value, ProjectObject]:
        """The values from outside of parameters whose annotation names a project class, as objects of it."""
        found: dict[Value, ProjectObject] = {}
        for param in params:
            value = bindings.get(param.name) if param.annotation is not None and not param.has_default else None
            if param.annotation is None or not isinstance(value, (Argument, Parameter)) or is_tensor(value) is Tri.YES:
                continue
            definition = declared_class(self.summaries.project, self.unit, param.annotation)
            if definition is not None:
                found[value] = ProjectObject(definition, (), value)
        return found

    def unbound(self, name: str) -> str | None:
        """The resolved name of one that only a star import, or Python itself, can bind."""
        return self.summaries.project.starred(self.unit, name)

    def kernel(self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]) -> Launched | None:
        """The writes of a kernel when launched with these arguments; None for anything else."""
        definition = self.function(name)
        if definition is None or not is_kernel(definition) or any(slot.starred for slot in arguments):
            return None
        bound = {**dict(zip(parameters_of(definition), arguments)), **keywords}
        values = {param: known for param, slot in bound.items() for known in _launch_value(slot.value)}
        project = self.summaries.project
        found = project.once(
            ("kernel", definition.qualname, tuple(sorted(values.items(), key=str))),
            lambda: kernel_writes(project, definition, values),
            definition.unit.summaries,
        )
        return definition, tuple(
            Write(bound[param].value, KERNEL, way) for param, way in found.items() if param in bound
        )

    def is_loaded(self, name: str) -> bool:
        """Whether a name is one in a compiled extension that another file of the project loads."""
        project = self.summaries.project
        if project.load is None or name.startswith((LOCAL, "torch.", "builtins.")):
            return False
        place = project.locate(self.unit, name)
        other = project.unit(place.path) if place is not None and "." in place.rest else None
        return (
            place is not None
            and other is not None
            and loads_extension(place.rest.partition(".")[0], other.index.module)
        )

    def operator(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> tuple[str, tuple[Write, ...]] | None:
        """A custom operator, and what it writes among these arguments; None for anything else."""
        definition = self.function(name)
        declared = (
            declared_by(definition) if definition is not None else declared_as(self.summaries.project, self.unit, name)
        )
        if declared is None:
            return None
        if any(slot.starred for slot in arguments):
            return declared.name, ()
        bound = {**dict(zip(declared.params, arguments)), **keywords}
        written = [param for param in declared.params if param in declared.written and param in bound]
        return declared.name, tuple(Write(bound[param].value, OPERATOR, (declared.step,)) for param in written)

    def function(self, name: str) -> Definition | None:
        """The project function that a resolved name certainly denotes."""
        return self._function(self._meant(name))

    def _meant(self, name: str) -> Definition | None:
        """What a resolved name certainly denotes."""
        if name.startswith(LOCAL):
            return Definition(self.unit, name[len(LOCAL) :])
        return self.summaries.project.certainly(self.unit, name)

    def _function(self, meant: Definition | None) -> Definition | None:
        record = meant.unit.index.functions.get(meant.qualname) if meant is not None else None
        return meant if meant is not None and record is not None and _is_bound_once(meant.name, record) else None


def _is_bound_once(name: str, record: FunctionRecord) -> bool:
    """Whether a name inside a function, or of a lambda, is bound nowhere else; others are looked up by position."""
    bounds = record.scope.names.get(name, ())
    return len(bounds) == 1 or not (record.scope.kind == "function" or any(each.kind == "assign" for each in bounds))


def _launch_value(value: Value) -> tuple[object, ...]:
    """What is known of a kernel's argument: a number, a flag, None, or something that is not None."""
    if isinstance(value, Constant):
        return (value.value,)
    return ("tensor",) if is_tensor(value) is Tri.YES else ()


def _for_any_type(event: Return) -> Return:
    """A return, without the containers that it yields only for arguments of a type which these cannot have.

    A function that maps over any structure returns a dict for a dict, and a tensor for a tensor.
    """
    if is_container(event.value) is not Tri.YES or not any("isinstance" in guard.words for guard in event.guards):
        return event
    return replace(event, value=Opaque(event.node))
