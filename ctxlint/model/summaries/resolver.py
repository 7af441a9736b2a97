"""What the names of a file mean for a walk: functions and their summaries, objects, tables, kernels and operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.function import Binding, Param
from ctxlint.model.index.file_answers import answer_about
from ctxlint.model.index.file_index import as_written
from ctxlint.model.index.kernel_faults import faults_of, is_of_triton
from ctxlint.model.index.kernel_names import aliases_in
from ctxlint.model.index.kernel_parameters import blocks_of, parameters_of
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.events import Escape, KernelParameter, Misfit, MisfitKind, Step, TrialEffect
from ctxlint.model.interpreter.extension_calls import loads_extension
from ctxlint.model.interpreter.sequences import literal, mutable_parts, part_of
from ctxlint.model.interpreter.summary import KERNEL, OPERATOR, OperatorCalled, Summary, Write
from ctxlint.model.interpreter.values import (
    CONTEXT,
    UNKNOWN,
    Argument,
    Constant,
    Imported,
    Item,
    Mapping,
    Opaque,
    Parameter,
    ProjectFunction,
    ProjectObject,
    SavedTensors,
    Scalar,
    Single,
    Slot,
    Tri,
    Value,
    Variadic,
    is_attribute_of_class,
    is_tensor,
)
from ctxlint.model.summaries.applied import applied_result
from ctxlint.model.summaries.callables import imported_table, made_callable, owner_of, table_of_functions
from ctxlint.model.summaries.context_effects import gets_context
from ctxlint.model.summaries.custom_attributes import custom_parameters
from ctxlint.model.summaries.declared import declared_as, declared_by
from ctxlint.model.summaries.in_force import is_in_force
from ctxlint.model.summaries.kernels import (
    ONE_OF,
    bound_to_kernel,
    is_kernel,
    kernel_bound,
    kernel_writes,
    launch_misfit,
)
from ctxlint.model.summaries.objects import (
    attribute_of,
    declared_class,
    getter,
    initialiser,
    instance_of_module,
    is_set_at_first,
    makes_tensors,
    member,
    new_object,
    only_base,
    promised_class,
    surrounding_object,
)
from ctxlint.model.summaries.refusals import refused_arguments
from ctxlint.model.summaries.shapes import Shape
from ctxlint.model.summaries.tuned_kernels import added_to_by, trials_of
from ctxlint.model.syntax import dotted
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.modules import module_name
from ctxlint.torch_api.extensions import is_in_module, may_be_of_extension
from ctxlint.torch_api.missing_names import NUMPY_ALIASES, REMOVED, meant_by

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as MappingOf

    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.kernel_blocks import KernelBlocks
    from ctxlint.model.index.kernel_faults import KernelFaults
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope

    Launched = tuple[Definition, tuple[Write, ...]]
    """A kernel and its writes."""

STEPS_IN_VAIN = 5_000
"""The charge for a summary that costs more than a summary may, and is unknown then."""

_TIMES_IN_VAIN = 2
"""After so many kinds of arguments for which a function costs too much, a walk does not try it again."""

_OF_ANY_FILE = ("torch.", "builtins.")
"""Prefixes of resolved names that mean the same in every file."""


class KnownSummary(NamedTuple):
    """A summary, None if unknown, and the steps that are charged for it."""

    summary: Summary | None
    cost: int
    too_costly: bool = False


class SummarySource(Protocol):
    """Where the resolver gets summaries from."""

    project: Project

    @property
    def is_at_work(self) -> bool:
        """Whether a summary is being computed."""

    def of(
        self,
        definition: Definition,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        captured: tuple[tuple[str, Slot], ...] = (),
        unwrapped: int = 0,
    ) -> KnownSummary:
        """The summary of a function for these arguments, abstracted by a ``Shape``."""

    def misfit(self, definition: Definition, positional: int, keywords: MappingOf[str, Slot]) -> Misfit | None:
        """What a function certainly does not take of so many arguments by position, and these keywords."""


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
    values = (*arguments, *keywords.values(), *(slot for _name, slot in captured))
    shape = Shape(attributes, gets_context=gets_context(values))
    return _Passed(
        shape,
        tuple(map(shape.slot, _opened(arguments))),
        {name: shape.slot(slot) for name, slot in keywords.items()},
        tuple((name, shape.slot(slot)) for name, slot in captured),
    )


def _opened(arguments: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """The arguments with the first incoming gradient, or saved tensor, of ``*saved, n`` by itself: there is one."""
    at = next((at for at, slot in enumerate(arguments) if slot.starred), len(arguments))
    first = arguments[at].value if at + 1 < len(arguments) else None
    if isinstance(first, SavedTensors) or (isinstance(first, Variadic) and first.role == "gradient"):
        return (*arguments[:at], Slot(part_of(first, 0), arguments[at].node), *arguments[at:])
    return arguments


class CalleeResolver:
    """Resolves the names of one file to functions and their summaries, for one walk: a ``summary.Resolver``."""

    def __init__(self, unit: Unit, summaries: SummarySource, hops: int = 0, line: int | None = None) -> None:
        self.unit = unit
        self.summaries = summaries
        self._hops = hops
        """How many partial functions lead here."""
        self._line = line
        """Where the class or function is defined whose code the names are in, if that matters."""
        self._too_costly: Counter[Definition] = Counter()

    def callee(
        self,
        name: str,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        call: cst.BaseExpression,
        attributes: MappingOf[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """A function and its summary for this call, in values of the caller; None if unknown.

        ``attributes`` are the values of those of ctx that the caller has set.
        """
        arguments, keywords = self._with_attributes(arguments, keywords)
        if not name.startswith(LOCAL):
            arguments, keywords = self._for_another_file(arguments, keywords)
        passed = _passed(attributes, arguments, keywords)
        if self.summaries.is_at_work and not passed.shape.objects and not name.startswith(LOCAL):
            if not gets_context((*arguments, *keywords.values())):
                return None  # reading another file is not worth it for numbers
        applied = self._applied(name, arguments, keywords, call) if name.endswith(".apply") else None
        if applied is not None:
            return applied
        meant = self._meant(name)
        definition = self._function(meant)
        if definition is None:
            made = made_callable(self.summaries.project, self.unit, name, self._hops)
            if made is None:
                return self._made(name, meant, arguments, keywords, call, attributes)
            resolver = CalleeResolver(
                made.unit, self.summaries, self._hops + 1, self._line if made.unit is self.unit else None
            )
            return resolver.callee(
                made.name, (*made.arguments, *arguments), {**made.keywords, **keywords}, call, attributes
            )
        return self._called(definition, passed, call)

    def refused(self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]) -> frozenset[Value]:
        """The arguments for which a function without a known summary raises unless they are None."""
        definition = self.function(name)
        return refused_arguments(definition, arguments, keywords) if definition is not None else frozenset()

    def _applied(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], call: cst.BaseExpression
    ) -> tuple[Definition, Summary] | None:
        """A call of the ``apply`` of a Function: what its ``forward`` writes and returns."""
        project = self.summaries.project
        definition = self._meant(name.removesuffix(".apply"))
        if definition is None or definition.record is None or not project.is_function(definition):
            return None
        forward = member(project, definition, "forward")
        if forward is None or member(project, definition, "apply"):
            return None
        ctx = () if member(project, definition, "setup_context") else (Slot(Opaque(call)),)
        known = self.call(ProjectFunction(forward[0]), (*ctx, *arguments), keywords, call, {})
        if known is None:
            return None
        return definition, Summary(applied_result(known[1].returned, call), known[1].writes)

    def call(
        self,
        function: ProjectFunction,
        arguments: tuple[Slot, ...],
        keywords: MappingOf[str, Slot],
        call: cst.BaseExpression,
        attributes: MappingOf[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """Like ``callee``, for a function as a value."""
        arguments, keywords = self._with_attributes(arguments, keywords)
        if function.definition.unit is not self.unit:
            arguments, keywords = self._for_another_file(arguments, keywords)
        passed = _passed(attributes, arguments, keywords, function.captured)
        if self.summaries.is_at_work and not passed.shape.objects:
            return None
        return self._called(function.definition, passed, call, function.unwrapped)

    def _called(
        self, definition: Definition, passed: _Passed, call: cst.BaseExpression, unwrapped: int = 0
    ) -> tuple[Definition, Summary] | None:
        if self._too_costly[definition] >= _TIMES_IN_VAIN:
            spend(STEPS_IN_VAIN)
            return None
        known = self.summaries.of(definition, passed.arguments, passed.keywords, passed.captured, unwrapped)
        self._too_costly[definition] += known.too_costly
        spend(known.cost)
        if known.summary is None:
            return None
        summary = passed.shape.applied(known.summary, call)
        if isinstance(summary.returned, (Imported, Opaque)):
            made = promised_class(self.summaries.project, definition)
            summary = summary if made is None else replace(summary, returned=ProjectObject(made, (), call))
        return definition, summary

    def _with_attributes(
        self, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> tuple[tuple[Slot, ...], MappingOf[str, Slot]]:
        """Arguments with an attribute of a class of this file, ``Fn.buffer``, as an object, unless it is a function."""
        if any(is_attribute_of_class(each.value) for each in (*arguments, *keywords.values())):
            keywords = {name: self._as_object(slot) for name, slot in keywords.items()}
            return tuple(map(self._as_object, arguments)), keywords
        return arguments, keywords

    def _as_object(self, slot: Slot) -> Slot:
        value, index = slot.value, self.unit.index
        if not is_attribute_of_class(value):
            return slot
        owner, _, attribute = value.name.rpartition(".")
        if any(value.name[len(LOCAL) :] in each for each in (index.functions, index.classes)):
            return slot
        return Slot(Item(Imported(owner), f".{attribute}"), slot.node, slot.starred)

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
        call: cst.BaseExpression,
        attributes: MappingOf[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """A call of a class, or of a method of an object that a module creates."""
        if not gets_context((*arguments, *keywords.values())):
            found = new_object(self.summaries.project, self.unit, name, meant, arguments, keywords, call)
            if found is not None:
                return found[0], self._initialised(found[1], arguments, keywords, call)
        method = self.method_of_instance(name)
        if method is None:
            if meant is None or not makes_tensors(self.summaries.project, meant):
                return None
            return meant, Summary(Single(call))
        function, receiver = method
        return self.call(function, (*receiver, *arguments), keywords, call, attributes)

    def _initialised(
        self, made: Value, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], call: cst.BaseExpression
    ) -> Summary:
        """A call of a class that makes an object, with what the method that initialises it does.

        That method sets attributes of the object as a function sets attributes of a ctx.
        """
        method = initialiser(self.summaries.project, made.definition) if isinstance(made, ProjectObject) else None
        if method is None or not isinstance(made, ProjectObject):
            return Summary(made)
        held = dict(made.attributes)
        passed = ((), {}) if method.name == "__post_init__" else (arguments, keywords)
        values = {name: slot.value for name, slot in held.items()}
        known = self.call(ProjectFunction(method), (Slot(CONTEXT), *passed[0]), passed[1], call, values)
        effects = known[1].on_context if known is not None else None
        if known is None or effects is None:
            return Summary(made)
        if not any(isinstance(event, Escape) for event in effects.events):
            for name, value in effects.attributes:
                if is_set_at_first(made.definition, name) and not mutable_parts(value):
                    held[name] = Slot(value)
        return Summary(replace(made, attributes=tuple(held.items())), known[1].writes, known[1].reads)

    def method_of_instance(self, name: str) -> tuple[ProjectFunction, tuple[Slot, ...]] | None:
        """The method that the name of an object of a module, and of its method, certainly denotes."""
        owner, _, method = name.rpartition(".")
        instance = self.instance(owner) if owner else None
        return self.method(instance, method) if instance is not None else None

    def nested(
        self, around: str, name: str, captured: tuple[tuple[str, Slot], ...], defined: bool
    ) -> ProjectFunction | None:
        """The function of a name in one of the file, with what it captures; ``defined``: it is not a lambda."""
        definition = self.function(f"{LOCAL}{around}.{name}") or (self._nested(around, name) if defined else None)
        return ProjectFunction(definition, captured) if definition is not None else None

    def _nested(self, around: str, name: str) -> Definition | None:
        """The only ``def`` of a name in a function, which may be one of several, and may bind the name again."""
        functions = self.unit.index.functions
        qualname = f"{as_written(around)}.{name}"
        outer, inner = functions.get(around), functions.get(qualname)
        if outer is None or inner is None or not inner.certain or inner.node not in outer.node.body:
            return None
        defined = [each for each in inner.scope.names.get(name, ()) if each.kind == "def"]
        return Definition(self.unit, qualname) if len(defined) == 1 else None

    def anonymous(
        self, function: str, node: cst.Lambda, captured: tuple[tuple[str, Slot], ...]
    ) -> ProjectFunction | None:
        """A lambda without a name in a function of the file, with what it captures."""
        name = self.unit.slices.name_of_lambda(function, node)
        return ProjectFunction(Definition(self.unit, name), captured) if name is not None else None

    def method(self, instance: ProjectObject, name: str) -> tuple[ProjectFunction, tuple[Slot, ...]] | None:
        """A method of an object, and the first argument of its calls if it takes the object; None if unknown."""
        found = member(self.summaries.project, instance.definition, name)
        stored = instance.definition.unit.index.attribute_owners.get(name)
        if found is None or found[1] is None or stored:
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
        """The dict of functions that a resolved name certainly denotes, if nothing in the project changes it."""
        unit, project = self.unit, self.summaries.project
        if not name.startswith(LOCAL):
            return project.once(("table", name), lambda: imported_table(project, unit, name), unit.summaries)
        last = name[len(LOCAL) :]
        table = project.once(("table", last), lambda: table_of_functions(unit, last), unit.summaries)
        return None if table is None or project.ask("changes", unit.path, last) in project.changed else table

    def surrounding(self, scope: Scope, name: str) -> ProjectObject | None:
        """The object whose method surrounds the code, if a name in the scope of that method certainly means it."""
        project = self.summaries.project
        found = surrounding_object(project, self.unit, scope, name)
        if found is None or project.ask("derives", self.unit.path, found.definition.name) in project.changed:
            return None
        return found

    def attribute(self, instance: ProjectObject, name: str) -> Value | None:
        """The object that an attribute of an object holds, or perhaps None."""
        return attribute_of(self.summaries.project, instance, name)

    def property(self, instance: ProjectObject, name: str, node: cst.BaseExpression) -> Value | None:
        """What a property of an object returns, if it does nothing else; None if it is unknown, or no property."""
        function = getter(self.summaries.project, instance.definition, name)
        if function is None:
            return None
        known = self.call(ProjectFunction(function, unwrapped=1), (Slot(instance),), {}, node, {})
        return known[1].returned if known is not None and not known[1].writes else None

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

    def imported_constant(self, name: str) -> Value | None:
        """The value of a constant of another file, by its imported or dotted name; None for anything else."""
        unit, project = self.unit, self.summaries.project
        return project.once(("constant", name), lambda: _imported_constant(project, unit, name), unit.summaries)

    def has_fallback(self, name: str, scope: Scope) -> bool:
        """Whether an ``except`` clause, here or where a name is imported from, binds it to something else."""
        _unit, last, scope = self.summaries.project.bound(self.unit, name, scope)
        owner = scope.owner(last)
        return owner is not None and any(each.handler and not each.is_none for each in owner.live(last))

    def unbound(self, name: str) -> str | None:
        """The resolved name of one that only a star import, or Python itself, can bind."""
        return self.summaries.project.starred(self.unit, name)

    def of_torch(self, name: str) -> str | None:
        """The name in torch of what another file of the project imports from there: ``dist`` of ``common``."""
        meant = self.summaries.project.meaning_elsewhere(self.unit, name)
        return meant if isinstance(meant, str) and meant.startswith("torch.") else None

    def kernel(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], open_ended: bool = False
    ) -> Launched | None:
        """The writes of a kernel when launched with these arguments, and perhaps more; None for anything else."""
        found = self._launched(name, arguments, keywords, open_ended)
        if found is None:
            return None
        definition, bound, ways = found
        written = [
            (params, _one_of([bound.get(each) for each in params.split(ONE_OF)]), way) for params, way in ways.items()
        ]
        passed = [slot.value for slot in bound.values()]
        sums = added_to_by(self.summaries.project, definition) if written else frozenset()
        return definition, tuple(
            Write(value, KERNEL, way, adds=params in sums and passed.count(value) == 1)
            for params, value, way in written
            if value is not None
        )

    def _launched(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], open_ended: bool
    ) -> tuple[Definition, MappingOf[str, Slot], MappingOf[str, tuple[Step, ...]]] | None:
        """A kernel, what its parameters get, and those that it writes through, with the steps; None if unknown."""
        project, definition = self.summaries.project, self._kernel(name)
        passed = bound_to_kernel(definition, arguments, keywords, open_ended) if definition is not None else None
        if definition is None or passed is None:
            return None
        bound, unknown = passed
        if definition != self.function(name):  # what has made a kernel of it may pass any other
            unknown |= frozenset(parameters_of(definition)).difference(bound)
        values = {param: known for param, slot in bound.items() for known in _launch_value(slot.value)}
        values |= {param: True for param, slot in bound.items() if _asks_for_gradient(slot.value, bound.values())}
        ways = project.once(
            ("kernel", definition.qualname, tuple(sorted(values.items(), key=str)), unknown),
            lambda: kernel_writes(project, definition, values, unknown=unknown),
            definition.unit.summaries,
        )
        return definition, bound, ways

    def launch_misfit(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], open_ended: bool
    ) -> Misfit | None:
        """What a kernel certainly does not take of these arguments; None for nothing, or anything else."""
        definition = self.function(name)
        if definition is None or not is_kernel(self.summaries.project, definition):
            return None
        return launch_misfit(self.summaries.project, definition, arguments, keywords, open_ended)

    def trial_effect(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], open_ended: bool
    ) -> TrialEffect | None:
        """What each trial of ``autotune`` certainly changes again, with these arguments; None for nothing."""
        definition = self.function(name)
        trials = trials_of(self.summaries.project, definition) if definition is not None else None
        launched = self._launched(name, arguments, keywords, open_ended) if trials is not None else None
        if trials is None or launched is None:
            return None
        kernel, passed, written = launched
        transformed = trials.transformed(passed, written)
        changed = transformed | trials.added_to(passed, written)
        found = [each for each in passed if each in changed]
        steps = written[found[0]] if found else ()
        return TrialEffect(kernel.name, tuple(found), steps, bool(transformed), trials.restores) if found else None

    def kernel_faults(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], open_ended: bool
    ) -> tuple[Definition, KernelFaults, MappingOf[str, Slot]] | None:
        """A kernel of Triton, what may be wrong in it, and what each parameter gets; None for nothing."""
        definition = self.function(name)
        faults = faults_of(self.summaries.project, definition) if definition is not None else None
        if definition is None or faults is None:
            return None
        bound = bound_to_kernel(definition, arguments, keywords, open_ended)
        return (definition, faults, bound[0]) if bound is not None and not bound[1] else None

    def launched_kernel(self, name: str) -> Definition | None:
        """A kernel that certainly is one of Triton; None for anything else, or if no rule asks."""
        project, definition = self.summaries.project, self.function(name)
        asked = definition is not None and project.asks_kernels
        return definition if definition is not None and asked and is_of_triton(project, definition) else None

    def kernel_blocks(self, name: str, *, unmasked: bool = False) -> KernelBlocks | None:
        """The blocks of memory that each program of a kernel of Triton writes; None for anything else.

        Or those that it stores without a mask.
        """
        definition = self._kernel(name)
        if definition is None:
            return None
        aliases = aliases_in(self.summaries.project, definition.unit, definition.qualname)
        return blocks_of(definition, aliases, unmasked=unmasked)

    def _kernel(self, name: str) -> Definition | None:
        """The kernel that a name means."""
        project, definition = self.summaries.project, self.function(name)
        if definition is not None and is_kernel(project, definition):
            return definition
        return kernel_bound(project, self.unit, name) if self._is_in_force(name) else None

    def kernel_parameters(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> dict[int, KernelParameter]:
        """The parameters of a kernel that get these arguments, by the identity of the slot; none if it is unknown."""
        definition = self._kernel(name)
        passed = bound_to_kernel(definition, arguments, keywords) if definition is not None else None
        if definition is None or passed is None:
            return {}
        aliases = aliases_in(self.summaries.project, definition.unit, definition.qualname)
        return {id(slot): KernelParameter(definition, param, aliases) for param, slot in passed[0].items()}

    def call_misfit(self, name: str, positional: int, keywords: MappingOf[str, Slot]) -> Misfit | None:
        """What a project function certainly does not take of these arguments; None for nothing, or anything else."""
        definition = self.function(name)
        return self.summaries.misfit(definition, positional, keywords) if definition is not None else None

    def name_misfit(self, module: str, name: str, code: str) -> Misfit | None:
        """What a read of a name of torch or NumPy, written as ``code``, lacks; None if this file may set that name."""
        project, path, attribute = self.summaries.project, self.unit.path, name.removesuffix("()")
        if answer_about(self.unit, ("sets", attribute)):
            return None
        if project.locate(self.unit, module.partition(".")[0]) is not None:  # torch itself, which may have any name
            return None
        questions = (project.ask("sets", path, attribute), project.ask("chooses", path, module_name(path)))
        settable = not project.changed.isdisjoint(questions)
        full, meant = f"{module}.{name}", meant_by(module, name)
        if meant.startswith(f"{module}."):
            meant = code.rpartition(".")[0] + meant[len(module) :]  # as the author calls the module
        elif meant.startswith("torch."):
            meant = _as_imported(meant, self.unit.index.module)
        return Misfit(
            code,
            takes=0,
            surplus=0,
            missing=(),
            twice=(),
            unknown=(full,),
            meant=(meant,) if meant else (),
            raises=REMOVED[full].raises if full in REMOVED else "AttributeError",
            kind=MisfitKind.SETTABLE_NAME if settable else MisfitKind.MISSING_NAME,
            newer_only=full in REMOVED or full in NUMPY_ALIASES,
        )

    def is_loaded(self, name: str) -> bool:
        """Whether a name is one in a compiled extension that another file of the project loads.

        Or a function of a top-level module that the project does not have, if that is called like a backward one, or
        the file makes tensors contiguous for it.
        """
        project = self.summaries.project
        if project.load is None or name.startswith((LOCAL, "torch.", "builtins.")):
            return False
        place = project.locate(self.unit, name)
        if place is None:
            in_a_module = self.unit.source.holds(".contiguous()") and is_in_module(name)
            return may_be_of_extension(name) or (in_a_module and answer_about(self.unit, ("copies", name)))
        other = project.unit(place.path) if "." in place.rest else None
        return other is not None and loads_extension(place.rest.partition(".")[0], other.index.module)

    def operator(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot], call: cst.Call
    ) -> OperatorCalled | None:
        """A custom operator, and what it writes and reads among these arguments; None for anything else."""
        definition = self.function(name)
        declared = (
            declared_by(definition) if definition is not None else declared_as(self.summaries.project, self.unit, name)
        )
        if declared is None:
            return None
        if any(slot.starred for slot in arguments):
            return OperatorCalled(declared.name)
        bound = {**dict(zip(declared.params, arguments)), **keywords}
        written = [param for param in declared.params if param in declared.written and param in bound]
        writes = tuple(Write(bound[param].value, OPERATOR, (declared.step,)) for param in written)
        body = self._called(definition, _passed({}, arguments, keywords), call, 1) if definition is not None else None
        return OperatorCalled(declared.name, writes, body[1].reads if body is not None else ())

    def custom_parameters(self, definition: Definition) -> frozenset[str]:
        """The parameters of a function of whose arguments an attribute is used that no other tensor has."""
        return custom_parameters(self.summaries.project, definition)

    def function(self, name: str) -> Definition | None:
        """The project function that a resolved name certainly denotes."""
        return self._function(self._meant(name))

    def _meant(self, name: str) -> Definition | None:
        """What a resolved name certainly denotes."""
        if name.startswith(LOCAL):
            return Definition(self.unit, name[len(LOCAL) :]) if self._is_in_force(name) else None
        return self.summaries.project.certainly(self.unit, name)

    def _is_in_force(self, name: str) -> bool:
        """Whether the last definition of a name of the file is the one that the code means."""
        return not name.startswith(LOCAL) or is_in_force(self.unit, name[len(LOCAL) :], self._line)

    def _function(self, meant: Definition | None) -> Definition | None:
        record = meant.unit.index.functions.get(meant.qualname) if meant is not None else None
        return meant if meant is not None and record is not None and _is_bound_once(meant.name, record) else None


def _as_imported(full: str, scope: Scope) -> str:
    """A name of torch as a module has to write it: ``F.linear`` where it only imports ``torch.nn.functional as F``."""
    imported = {
        bounds[-1].target: name
        for name, bounds in scope.names.items()
        if len(bounds) == 1 and bounds[-1].kind == "import" and f"{full}.".startswith(f"{bounds[-1].target}.")
    }
    if not imported or imported.get("torch") == "torch":
        return full
    longest = max(imported, key=len)
    return imported[longest] + full[len(longest) :]


def _is_bound_once(name: str, record: FunctionRecord) -> bool:
    """Whether a name inside a function, or of a lambda, is bound nowhere else; others are looked up by position."""
    bounds = record.scope.names.get(name, ())
    return len(bounds) == 1 or not (record.scope.kind == "function" or any(each.kind == "assign" for each in bounds))


def _one_of(passed: list[Slot | None]) -> Value | None:
    """The argument that covers all of these, one of which is written; None if there is none."""
    values = [each.value for each in passed if each is not None]
    covered = set[Value]().union(*(each.options() for each in values))
    return next((each for each in values if len(values) == len(passed) and covered <= set(each.options())), None)


def _launch_value(value: Value) -> tuple[object, ...]:
    """What is known of a kernel's argument: a number, a flag, None, or something that is not None."""
    if isinstance(value, Constant):
        return (value.value,)
    return ("tensor",) if is_tensor(value) is Tri.YES else ()


def _asks_for_gradient(flag: Value, arguments: Iterable[Slot]) -> bool:
    """Whether a flag is ``x.requires_grad`` for an argument ``x``: there are calls in which it is set."""
    node = flag.node if isinstance(flag, Scalar) else None
    asked = dotted(node.value) if isinstance(node, cst.Attribute) and node.attr.value == "requires_grad" else None
    return asked is not None and any(each.node is not None and dotted(each.node) == asked for each in arguments)


def _imported_constant(project: Project, unit: Unit, name: str) -> Value | None:
    if "." in name:
        found = owner_of(project, unit, name)
        home, last, scope = (found[0], found[2], found[3]) if found is not None and not found[1] else (unit, "", None)
    else:
        home, last, scope = project.bound(unit, name, unit.index.module)
    bounds = scope.live(last) if scope is not None and home is not unit else ()
    value = bounds[0].value if len(bounds) == 1 and not bounds[0].conditional else None
    return literal(value) if value is not None else None
