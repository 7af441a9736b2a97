"""From a source text to the model of its Functions: the only entry point of ``ctxlint.model``."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ctxlint.effort import Effort, EffortExceeded
from ctxlint.model.analyses.open_questions import own
from ctxlint.model.analyses.returned_views import may_return_view, returns_view
from ctxlint.model.builder import Builder
from ctxlint.model.function import (
    Binding,
    FakeMismatch,
    GivenUp,
    GradModeTest,
    RejectedOperator,
    SharedResult,
    SourceFile,
    UndeclaredWrite,
)
from ctxlint.model.function_store import STORE
from ctxlint.model.index.attribute_stores import stored_on_others, unset_attributes
from ctxlint.model.index.bare_operators import bare_operators, possible_names
from ctxlint.model.index.call_sites import CallSites, functions_of
from ctxlint.model.index.foreign_functions import Elsewhere, facts_of
from ctxlint.model.index.free_names import free_names
from ctxlint.model.index.instances import InstanceUse
from ctxlint.model.index.method_calls import changes_calls
from ctxlint.model.index.module_backwards import has_a_backward, module_backwards
from ctxlint.model.index.module_stores import ANY_NAME
from ctxlint.model.index.named_patches import NamedMethods, named_methods, names_methods
from ctxlint.model.index.outside_facts import MODULE_BACKWARDS, NOTHING, OF_NO_FUNCTION, OutsideFacts, Own, Target
from ctxlint.model.index.project import Definition, Project
from ctxlint.model.index.project_answers import modifying_functions, tracked_calls
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.operator_kernels import function_applied_in, kernels_below_autograd
from ctxlint.model.operator_results import operator_results
from ctxlint.model.operator_schemas import may_register, registers_by_calls
from ctxlint.model.operators import (
    cast_backwards,
    has_fakes_of_others,
    in_source,
    needs_project,
    operators_of,
    registrable,
)
from ctxlint.model.summaries.resolver import CalleeResolver
from ctxlint.model.summaries.summaries import Summaries
from ctxlint.named_tuples import NamedTuple
from ctxlint.profiling import stage
from ctxlint.records import changed
from ctxlint.source.source import Position
from ctxlint.torch_api.autograd import LEGACY_IMPORTS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from ctxlint.model.function import ApplyCall, BackwardWithCast, FunctionClass, KernelBelowAutograd, Operator
    from ctxlint.model.index.bare_operators import BareOperator
    from ctxlint.model.index.file_index import ClassRecord
    from ctxlint.model.index.module_backwards import ModuleBackward
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.outside_facts import FileFacts, KnownNames, ProjectQuestion
    from ctxlint.model.operator_results import OperatorResult
    from ctxlint.source.source import Source

    _Sites = tuple[list[ApplyCall], dict[str, set[str]], dict[str, set[str]], frozenset[str]]
    """The fields of ``_Calls`` but the first."""

    FindOutsideFacts = Callable[["Reader"], OutsideFacts]
    """Finds the facts that other files contribute to the one that is being read."""


def analyse(source: Source, project: Project | None = None, find_outside: FindOutsideFacts | None = None) -> SourceFile:
    """Parse ``source`` and analyse its Functions and their calls.

    Args:
        source: The text; bad code raises nothing: statements that cannot be parsed become ``SourceFile.broken``.
        project: Resolves names in other files; without one they are unknown.
        find_outside: Finds the facts that other files contribute.
    """
    return _analysed(source, project if project is not None else Project(), find_outside)


@stage("analyse")
def _analysed(source: Source, project: Project, find_outside: FindOutsideFacts | None) -> SourceFile:
    reader = Reader(source, project)
    outside = find_outside(reader) if find_outside is not None else NOTHING
    file = reader.whole_file(outside)
    while find_outside is not None and reader.asks_more():
        before, outside = outside, find_outside(reader)
        if not project.learn(outside) and outside.without_answers == before.without_answers:
            break
        reader = reader.afresh()
        file = reader.whole_file(outside)
    return file


class Reading(NamedTuple):
    """The facts of a file, given the ``outside`` facts; None for a file without any relation to Functions.

    If the facts of the file alone were known before, ``file`` holds only what the outside facts may change or add, and
    ``again`` are the keys of the Functions for which only the content of ``file`` is valid. ``functions`` are all of
    the file's own, also those that no other file can name.
    """

    file: SourceFile | None
    facts: FileFacts
    outside: OutsideFacts | None
    again: frozenset[str] = frozenset()
    functions: tuple[Own, ...] = ()


@stage("analyse")
def read(
    source: Source, project: Project, outside: OutsideFacts | None = None, functions: Iterable[Own] | None = None
) -> Reading:
    """Read a file that may contain Functions, given the facts of others.

    ``functions`` are those that it is known to define; then only those that have outside facts are read.
    """
    reader = Reader(source, project)
    return reader.read(outside) if outside is None or functions is None else reader.read_again(outside, functions)


@stage("analyse")
def read_if_concerned(source: Source, project: Project, known: KnownNames) -> Reading:
    """Read a file that looks unrelated to Functions, given those names that it calls.

    Whether it defines or calls any is decided with ``ast`` alone.
    """
    reader = Reader(source, project)
    given_facts = known.relevant_to(os.path.abspath(source.path), reader.unit.index.called)
    outside = given_facts if given_facts != NOTHING else None
    facts = reader.facts(given_facts, ())
    if not reader.functions and not facts.calls and not reader.transforms_operators(given_facts):
        return Reading(None, facts, outside)
    return reader.read(outside)


@stage("analyse")
def read_finding_facts(source: Source, project: Project, find_outside: FindOutsideFacts, *, concerned: bool) -> Reading:
    """Read a file and find the outside facts meanwhile; one that is not ``concerned`` only if it proves related."""
    reader = Reader(source, project)
    outside = find_outside(reader)
    given_facts = outside if outside != NOTHING else None
    facts = reader.facts(outside, ())
    if not (concerned or reader.functions or facts.calls or reader.transforms_operators(outside)):
        return Reading(None, facts, given_facts)
    found = reader.read(given_facts)
    while reader.asks_more():
        outside = find_outside(reader)
        project.learn(outside)
        reader = reader.afresh()
        found = reader.read(outside if outside != NOTHING else None)
    return found


@stage("analyse")
def read_facts(source: Source, project: Project, known: KnownNames) -> Reading:
    """The facts of a file about the Functions of other files; and about its own Functions that descend from them."""
    reader = Reader(source, project)
    given_facts = known.relevant_to(os.path.abspath(source.path), reader.unit.index.called)
    heirs = [name for name in reader.functions if any(each.unit is not reader.unit for each in reader.above(name))]
    facts = reader.facts(given_facts, [Own(name, 0, (), (), waits=False) for name in heirs])
    return Reading(None, facts, given_facts if given_facts != NOTHING else None)


class _Calls(NamedTuple):
    """What ``CallSites`` finds in a file; ``elsewhere`` are the Functions of other files among it."""

    elsewhere: Elsewhere
    calls: list[ApplyCall]
    direct_calls: dict[str, set[str]]
    patched: dict[str, set[str]]
    applied: frozenset[str]

    def changed(self, later: _Calls) -> frozenset[str]:
        """The keys of the Functions for which ``later`` has different facts."""
        calls = {call.function for call in set(later.calls).symmetric_difference(self.calls)}
        direct_calls = {name for name, methods in later.direct_calls.items() if methods != self.direct_calls.get(name)}
        patched = {name for name, methods in later.patched.items() if methods != self.patched.get(name)}
        return frozenset(calls | direct_calls | patched | (self.applied ^ later.applied))


class _Kept(NamedTuple):
    """What is known of a file, and what that depends on, apart from its statements; nothing that refers to the file."""

    depends_on: tuple[object, ...]
    calls: dict[tuple[object, ...], tuple[_Sites, dict[str, Target]]]
    all_facts: dict[OutsideFacts | None, FileFacts]


def _kept(unit: Unit, project: Project) -> _Kept:
    """What an earlier reading of the same statements has found, next to others that cannot be parsed."""
    notes = unit.index.notes
    about_text = (unit.has_context_calls, has_a_backward(unit.source), unit.tree is None)
    depends_on = (project, dict(project.declared), set(project.changed), about_text)
    known: _Kept | None = notes.get(_Kept)
    if known is None or known.depends_on != depends_on:
        known = _Kept(depends_on, {}, {})
        if unit.index.parts:  # otherwise it is read once, and nothing may refer to the project, which refers to it
            notes[_Kept] = known
    return known


class Reader:
    """Reads one file: by itself, and with the facts of others."""

    def __init__(self, source: Source, project: Project) -> None:
        self.unit = project.linted_unit(source)
        self.project = project
        self.functions = functions_of(self.unit, project)
        self.asked: set[ProjectQuestion] = set()
        kept = _kept(self.unit, project)
        self._known_calls, self._all_facts = kept.calls, kept.all_facts
        self._calls: dict[tuple[object, ...], _Calls] = {}

    def afresh(self) -> Reader:
        """A reader of the same file after the project has learned more; it has asked as much."""
        reader = Reader(self.unit.source, self.project)
        reader.asked |= self.asked
        return reader

    def read(self, outside: OutsideFacts | None) -> Reading:
        """Read the whole file."""
        given_facts = NOTHING if outside is None else outside
        file = self.whole_file(given_facts)
        functions = tuple(map(own, file.functions))
        return Reading(file, self.facts(given_facts, functions), outside, functions=functions)

    def read_again(self, outside: OutsideFacts, functions: Iterable[Own]) -> Reading:
        """Read what outside facts may change or add; by itself, the file has these ``functions``."""
        before, found = self.calls(NOTHING), self.calls(outside)
        again = outside.subjects | before.changed(found)
        if outside.partial:
            again |= self.functions
        if outside.calls_backward:
            again |= {MODULE_BACKWARDS}
        if outside.declared or outside.changed or outside.using:
            again |= self.functions | {OF_NO_FUNCTION}
            again |= {call.function for call in found.calls if call.modified is not None}
        known = set(before.calls)
        calls = [call for call in found.calls if call.function in again or call not in known]
        file = self.file(outside, self.functions & again, calls)
        latest = {each.qualname: each for each in (*functions, *map(own, file.functions))}
        return Reading(file, self.facts(outside, latest.values()), outside, again, tuple(latest.values()))

    def all_facts(self, outside: OutsideFacts | None) -> FileFacts:
        """The facts of the file, if all outside facts about its Functions are wanted."""
        if outside not in self._all_facts:
            functions = [Own(name, 0, (), (), waits=False) for name in self.functions]
            facts = self.facts(NOTHING if outside is None else outside, functions)
            self._all_facts[outside] = replace(facts, at_stake=tuple(sorted(facts.all_keys)))
        return changed(self._all_facts[outside], asked=tuple(sorted(self.asked)))

    def asks_more(self) -> bool:
        """Whether reading the file has led to new questions about the project."""
        new = self.project.trace.asked - self.asked
        self.asked |= new
        return bool(new)

    def whole_file(self, outside: OutsideFacts) -> SourceFile:
        """All Functions of the file and all calls in it, given the facts of others."""
        return self.file(outside, self.functions, self.calls(outside).calls)

    def file(self, outside: OutsideFacts, functions: frozenset[str], calls: Iterable[ApplyCall]) -> SourceFile:
        """Some Functions of the file and some calls in it, given the facts of others."""
        unit = self.unit
        built, given_up = self.built(outside, functions)
        by_name = {function.qualname: function for function in built}
        self.add_outlines(by_name, outside, calls)
        registered = self.operators(outside)
        concerned = unit.may_define_operators or unit.source.holds("register_fake") or may_register(unit)
        results = self.operator_results() if concerned else ()
        return SourceFile(
            source=unit.source,
            tree=unit.tree,
            instances=unit.instances,
            functions=built,
            calls=self.with_tracked_changes(call for call in calls if call.function in by_name),
            modified_results=self.modified_results(outside, calls, by_name),
            transformed_operators=tuple(call for call in calls if call.how == "operator"),
            by_name=by_name,
            operators=tuple(each for each in registered if not isinstance(each, GivenUp)),
            bare_operators=self.bare_operators(outside) if unit.may_define_operators else (),
            shared_results=tuple(each for each in results if isinstance(each, SharedResult)),
            undeclared_writes=tuple(each for each in results if isinstance(each, UndeclaredWrite)),
            rejected_operators=tuple(each for each in results if isinstance(each, RejectedOperator)),
            fake_mismatches=tuple(each for each in results if isinstance(each, FakeMismatch)),
            grad_mode_tests=tuple(each for each in results if isinstance(each, GradModeTest)),
            kernels_below_autograd=self.kernels_below_autograd(outside),
            cast_backwards=self.cast_backwards if unit.source.holds("register_autograd") else (),
            module_backwards=() if outside.calls_backward else self.module_backwards,
            broken=(*unit.broken, *unit.slices.broken),
            too_complex=(*given_up, *(each for each in registered if isinstance(each, GivenUp))),
        )

    def modified_results(
        self, outside: OutsideFacts, calls: Iterable[ApplyCall], by_name: Mapping[str, FunctionClass]
    ) -> tuple[ApplyCall, ...]:
        """The calls that a function of the file returns, whose results are views that a caller modifies in place."""
        path, changed = self.unit.path, self.project.changed
        return tuple(
            call
            for call in calls
            if call.returned_by
            and self.gives_result(call.returned_by)
            and (fn := by_name.get(call.function)) is not None
            and returns_view(fn, None) is not None
            if any(map(self.may_be_tracked, modifying_functions(self.unit.index, LOCAL + call.returned_by)))
            or (self.project.ask("modifies", path, call.returned_by) in changed and not outside.partial)
        )

    def gives_result(self, name: str) -> bool:
        """Whether a call gives what a function, or ``forward`` of a module, returns: no ``__call__`` or hook does."""
        owner, _, method = name.rpartition(".")
        if method != "forward":
            return True
        above = self.project.ancestry(Definition(self.unit, owner))
        records = [each.unit.index.classes.get(each.qualname) for each in above]
        return not any(each is not None and changes_calls(each) for each in records)

    def may_be_tracked(self, function: str) -> bool:
        """Whether grad mode may be on where the project calls a function of the file; also if nothing calls it."""
        if "." in function or not function:
            return True
        here, path, changed = tracked_calls(self.unit.index, LOCAL + function), self.unit.path, self.project.changed
        if "tracks" in here or self.project.ask("tracks", path, function) in changed:
            return True
        return not (here or self.project.ask("untracks", path, function) in changed)

    def with_tracked_changes(self, calls: Iterable[ApplyCall]) -> tuple[ApplyCall, ...]:
        """The calls, without what happens to their results in functions that the project calls with grad mode off."""
        return tuple(
            replace(call, modified=None) if call.modified is not None and not self.may_be_tracked(call.inside) else call
            for call in calls
        )

    def operators(self, outside: OutsideFacts) -> tuple[Operator | GivenUp, ...]:
        """The custom operators whose gradient is registered in the file, or consists of functions of it."""
        is_concerned = self.unit.source.holds("register_autograd") or bool(outside.using)
        for name in registrable(self.unit):
            self.project.ask("uses" if is_concerned else "registers", self.unit.path, name)
        if not is_concerned:
            return ()
        summaries, store = Summaries(self.project), STORE.get()

        def work() -> tuple[Operator | GivenUp, ...]:
            resolver_of = partial(CalleeResolver, summaries=summaries)
            return tuple(operators_of(self.unit, self.project, resolver_of, outside.using))

        if store is None or needs_project(self.unit, outside.using):
            return work()
        found = store.of_operators("gradients", self.unit, work)
        return tuple(each if isinstance(each, GivenUp) else in_source(each, self.unit.source) for each in found)

    def bare_operators(self, outside: OutsideFacts) -> tuple[BareOperator, ...]:
        """The operators without a gradient that modules of the project call."""
        for name in possible_names(self.unit):
            self.project.ask("registers", self.unit.path, name)
        if outside.partial:
            return ()
        others = [other for path in outside.using if (other := self.project.unit(path)) is not None]
        path, changed = self.unit.path, self.project.changed
        return tuple(
            bare_operators(
                self.unit,
                others,
                lambda name: self.project.ask("calls", path, name) in changed,
                lambda node: function_applied_in(node, self.unit, self.project),
            )
        )

    @property
    def cast_backwards(self) -> tuple[BackwardWithCast, ...]:
        """The gradients of custom operators that have ``custom_bwd``."""
        return tuple(
            cast_backwards(self.unit, self.project, partial(CalleeResolver, summaries=Summaries(self.project)))
        )

    def kernels_below_autograd(self, outside: OutsideFacts) -> tuple[KernelBelowAutograd, ...]:
        """The Functions that are registered as kernels of a device for operators without a gradient in the project."""
        found = tuple(kernels_below_autograd(self.unit, self.project))
        asked = [self.project.ask("differentiates", self.unit.path, each.operator) for each in found]
        if outside.partial:
            return ()
        return tuple(each for each, question in zip(found, asked) if question not in self.project.changed)

    def operator_results(self) -> tuple[OperatorResult, ...]:
        """The returns of custom operators that torch rejects, and the writes that it does not know of."""
        store, resolver_of = STORE.get(), partial(CalleeResolver, summaries=Summaries(self.project))

        def work() -> tuple[OperatorResult, ...]:
            return tuple(operator_results(self.unit, self.project, resolver_of))

        if store is None or has_fakes_of_others(self.unit) or registers_by_calls(self.unit):
            return work()
        return store.of_operators("results", self.unit, work)

    def calls(self, outside: OutsideFacts) -> _Calls:
        """The calls in the file that can be followed with the names from outside."""
        key = (outside.names, outside.aliases)
        if key not in self._calls:
            elsewhere = Elsewhere(self.unit, self.project, outside)
            if key in self._known_calls:
                found, elsewhere.targets = self._known_calls[key]
            else:
                sites = CallSites(elsewhere)
                calls, direct_calls, patched = sites.collect()
                found = ([self._with_use(call) for call in calls], direct_calls, patched, sites.applied())
                self._known_calls[key] = (found, elsewhere.targets)
            self._calls[key] = _Calls(elsewhere, *found)
        return self._calls[key]

    def transforms_operators(self, outside: OutsideFacts) -> bool:
        """Whether a transform in the file differentiates a custom operator."""
        return any(call.how == "operator" for call in self.calls(outside).calls)

    def _with_use(self, call: ApplyCall) -> ApplyCall:
        """A call, with what becomes of the instance if it creates one: another file may call it, too."""
        if call.how != "construct":
            return call
        called = self.unit.instances.made_by(call).use in (InstanceUse.CALLED, InstanceUse.SHARED)
        return replace(call, instance_called=True) if called else call

    def built(
        self, outside: OutsideFacts, names: Container[str]
    ) -> tuple[tuple[FunctionClass, ...], tuple[GivenUp, ...]]:
        """The Functions of the file with one of the names, given the facts of others; and those given up."""
        found = self.calls(outside)
        builder = Builder(
            self.unit,
            self.project,
            [*found.calls, *outside.calls],
            _merged(found.direct_calls, outside.direct_calls),
            _merged(found.patched, (*outside.patched, *self.replaced_by_name)),
            found.applied.union(outside.applied),
            outside.subclassed,
            outside.stored,
            known_in_part=outside.partial,
            taken_names=self.taken_names(),
            assigned_names=self.assigned_names(),
        )
        effort, store = Effort(), STORE.get()
        functions: list[FunctionClass] = []
        given_up: list[GivenUp] = []
        for record in self.unit.index.classes.values():
            if record.qualname not in names:
                continue
            try:
                with effort.on(record.qualname):
                    function = builder.build(record) if store is None else store.built(builder, record)
            except (EffortExceeded, RecursionError):
                given_up.append(_given_up(self.unit.source, record))
                continue
            if function is not None:
                functions.append(function)
        return tuple(functions), tuple(given_up)

    @cached_property
    def replaced_by_name(self) -> tuple[tuple[str, str], ...]:
        """The methods of Functions of the file that strings in it name, as if to replace them."""
        unit = self.unit
        if not names_methods(unit.source.text.encode("utf-8", "replace")):
            return ()
        named, place = NamedMethods(named_methods(unit.tree, unit.path)), os.path.basename(unit.path)
        return tuple((key, method) for key in self.functions for method in sorted(named.of(place, key)))

    def taken_names(self) -> frozenset[str]:
        """The deprecated names of torch that the file imports, and that other files of the project import from it."""
        path, bounds = self.unit.path, self.unit.index.module.names.items()
        imported = [name for name, found in bounds if any(each.target in LEGACY_IMPORTS for each in found)]
        asked = [name for name in imported if any(name in text for text in self.texts)]
        return frozenset(name for name in asked if self.project.ask("takes", path, name) in self.project.changed)

    def assigned_names(self) -> frozenset[str]:
        """The names that Functions of the file read, that it does not bind, and that another file may set for it."""
        free = free_names(self.unit, self.functions)
        if not free:
            return free
        asked, assigned = self.project.ask("assigns", self.unit.path, ""), self.project.assigned
        if asked._replace(name=ANY_NAME) in assigned:
            return free
        return frozenset(name for name in free if asked._replace(name=name) in assigned)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The code of the Functions of the file, with decorators inside it."""
        nodes = (self.unit.index.classes[name].node for name in sorted(self.functions))
        return tuple(self.unit.source.lines(node.lineno, node.end_lineno or node.lineno) for node in nodes)

    def add_outlines(
        self, by_name: dict[str, FunctionClass], outside: OutsideFacts, calls: Iterable[ApplyCall]
    ) -> None:
        """Add the called Functions of other files, with the facts of this file and of others."""
        found = self.calls(outside)
        examined = {call.function for call in calls if call.modified is not None or call.discarded}
        returned = {call.function for call in calls if call.returned_by}
        made = {call.function for call in calls if call.how.startswith("construct")}
        direct_calls = _merged(found.direct_calls, outside.direct_calls)
        patches = _merged(found.patched, outside.patched)
        for key in {call.function: None for call in calls}:
            target = found.elsewhere.targets.get(key)
            if target is None:
                continue
            outline = outline_of(target, self.project)
            in_doubt = outline is not None and (
                _too_many(outline, key, calls) or (key in made and _may_keep_state(outline))
            )
            if key in examined or in_doubt or (key in returned and outline is not None and may_return_view(outline)):
                outline = self.function_of(target, found.calls) or outline
            if outline is not None:
                directly = outline.called_directly | direct_calls.get(key, frozenset())
                patched = outline.patched or key in patches
                applied = outline.applied or key in found.applied or key in outside.applied
                if (directly, patched, applied) != (outline.called_directly, outline.patched, outline.applied):
                    one = outline.one_signature and key not in patches
                    outline = replace(
                        outline, called_directly=directly, patched=patched, one_signature=one, applied=applied
                    )
                by_name[key] = outline

    def function_of(self, target: Target, calls: Iterable[ApplyCall]) -> FunctionClass | None:
        """A fully analysed Function of another file; ``calls`` are those in this file."""
        unit = self.project.unit(target.path)
        record = unit.index.classes.get(target.qualname) if unit is not None else None
        if unit is None or record is None:
            return None
        here = [replace(call, function=target.qualname) for call in calls if call.function == target.key]
        try:
            with Effort().on(target):
                stored = [(target.qualname, name) for name in stored_on_others(self.unit.index)]
                return _outliner(unit, self.project, here, stored).build(record)
        except (EffortExceeded, RecursionError):
            return None

    def facts(self, outside: OutsideFacts, functions: Iterable[Own]) -> FileFacts:
        """The facts of the file that matter to others; ``functions`` are its own."""
        found = self.calls(outside)
        heirs = self.functions
        facts = facts_of(
            found.elsewhere, functions, heirs, found.calls, found.direct_calls, found.patched, found.applied
        )
        return replace(
            facts,
            module_backwards=bool(self.module_backwards),
            unset=self.unset,
            operators=self.unit.may_define_operators,
        )

    @cached_property
    def unset(self) -> tuple[tuple[str, str], ...]:
        """The attributes that Functions of the file read of ctx, and that nothing in the file sets."""
        return tuple(
            (name, each) for name in sorted(self.functions) for each in unset_attributes(self.unit, name, self.project)
        )

    @cached_property
    def module_backwards(self) -> tuple[ModuleBackward, ...]:
        """The methods of modules that look as if autograd called them, as far as the file itself shows."""
        return tuple(module_backwards(self.unit, self.project))

    def above(self, name: str) -> list[Definition]:
        """The project classes that a Function of the file descends from."""
        return self.project.ancestry(Definition(self.unit, name))[1:]


def _too_many(fn: FunctionClass, key: str, calls: Iterable[ApplyCall]) -> bool:
    """Whether a call passes more than forward takes: what backward returns then matters."""
    most = len(fn.inputs)
    return fn.variadic_inputs is None and any(call.function == key and call.positional > most for call in calls)


def _may_keep_state(fn: FunctionClass) -> bool:
    """Whether a Function may keep its state on instances: that depends on what its methods read, and on its calls."""
    walked = (fn.methods.get(name) for name in ("forward", "backward"))
    return any(method is not None and method.binding is Binding.INSTANCE for method in walked)


def _given_up(source: Source, record: ClassRecord) -> GivenUp:
    """A class that takes too much work, at its name."""
    node = record.node
    column = source.line(node.lineno).find(node.name, node.col_offset + len("class"))
    return GivenUp(Position(node.lineno, max(column, 0) + 1), node.name, record.qualname)


def outline_of(target: Target, project: Project) -> FunctionClass | None:
    """A Function of another file as far as its callers need it: its methods are not walked."""
    return project.once(target, lambda: _outline(target, project))


def _outline(target: Target, project: Project) -> FunctionClass | None:
    unit = project.unit(target.path)
    record = unit.index.classes.get(target.qualname) if unit is not None else None
    if unit is None or record is None:
        return None
    try:
        with Effort().on(target):
            return project.once(("outlines", target.path), lambda: _outliner(unit, project)).outline(record)
    except (EffortExceeded, RecursionError):
        return None


def _outliner(
    unit: Unit,
    project: Project,
    more_calls: Iterable[ApplyCall] = (),
    stored: Iterable[tuple[str, str]] = (),
) -> Builder:
    """The builder of a file's Functions, or their outlines, with ``more_calls`` and attributes of another file."""
    sites = CallSites(Elsewhere(unit, project, NOTHING))
    calls, direct_calls, patched = sites.collect()
    every = [*calls, *more_calls]
    return Builder(unit, project, every, direct_calls, patched, sites.applied(), stored_elsewhere=stored)


def _merged(by_function: Mapping[str, set[str]], outside: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Methods of Functions, with those that other files tell of."""
    merged = {name: set(methods) for name, methods in by_function.items()}
    for name, method in outside:
        merged.setdefault(name, set()).add(method)
    return merged
