"""Builds a FunctionClass: methods and their walks, inputs, gradients, outputs, and the calls in the same file."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import EffortExceeded
from ctxlint.model.analyses.apply_arity import all_fail, working_calls
from ctxlint.model.analyses.context_parameter import lacks_context
from ctxlint.model.analyses.helper_collectives import communicating_attributes
from ctxlint.model.analyses.helper_uses import Code, used_by_functions, used_in_backward
from ctxlint.model.analyses.input_uses import InputUses, Uses, WalkedUses
from ctxlint.model.analyses.inputs import describe, from_calls, inputs_covered, none_from_calls
from ctxlint.model.analyses.legacy import legacy_state
from ctxlint.model.analyses.mutations import inputs_among
from ctxlint.model.analyses.objects_on_ctx import inputs_on_ctx, objects_on_ctx, reads_any
from ctxlint.model.analyses.omitted_arguments import GROUP
from ctxlint.model.analyses.reachability import without_untaken_arms
from ctxlint.model.analyses.returns import joined, returned_by, with_every_gradient
from ctxlint.model.analyses.shifted import is_shifted
from ctxlint.model.analyses.tensor_containers import declares_fields
from ctxlint.model.analyses.unsummed_gathers import gathering_functions
from ctxlint.model.function import (
    ApplyCall,
    Binding,
    Evidence,
    FunctionClass,
    Input,
    Method,
    MethodFacts,
    Param,
    ParameterKind,
    Returned,
    Style,
    Trust,
)
from ctxlint.model.index.attribute_stores import stored_on_others, unset_attributes
from ctxlint.model.index.class_finder import conditional_methods, differ_only_in_code, members
from ctxlint.model.index.decorator_summaries import may_change_methods
from ctxlint.model.index.expected_errors import is_for_errors
from ctxlint.model.index.file_answers import is_replaced
from ctxlint.model.index.project import MAX_ANCESTORS, Definition
from ctxlint.model.index.repeated_classes import repeated_in
from ctxlint.model.index.scopes import LOCAL, Scope, resolve, resolve_certainly
from ctxlint.model.index.version_tests import releases_with
from ctxlint.model.interpreter.events import ContextRead, Escape, GenericCall, Mutation
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.local_names import bound_names
from ctxlint.model.interpreter.parameter_binding import bound_parameters
from ctxlint.model.interpreter.signatures import BoundName, binding_of, decorators_of, params_of, split_params
from ctxlint.model.interpreter.values import (
    UNKNOWN,
    Fresh,
    Imported,
    InputsTuple,
    Kind,
    Opaque,
    Parameter,
    ProjectFunction,
    ProjectObject,
    Tri,
    Value,
    constant,
)
from ctxlint.model.interpreter.walk import NO_OBJECTS
from ctxlint.model.summaries.resolver import CalleeResolver
from ctxlint.model.summaries.summaries import Summaries
from ctxlint.model.syntax import dotted
from ctxlint.torch_api import known_decorators as decorators
from ctxlint.torch_api import types
from ctxlint.torch_api.autograd import PROTOCOL
from ctxlint.torch_api.operations import CONVERSIONS, FACTORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping

    from ctxlint.model.index.decorator_summaries import Wrapping
    from ctxlint.model.index.file_index import ClassRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.outside_facts import Deed
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.method import Decorator
    from ctxlint.model.interpreter.trail import Trail
    from ctxlint.model.interpreter.walk import External
    from ctxlint.source.slices import Slice

    Walk = Callable[[Method, dict[str, Value]], Method]
    """Walks the body of a method, with the abstract values of its parameters, and adds the resulting facts."""

    Known = tuple[dict[str, Value], Mapping[Value, External]]
    """What is known before the walk: the values of parameters, and which values are objects of project classes."""

    FactsOf = Callable[[Method, Known, Callable[[Trail | None], MethodFacts]], MethodFacts]
    UsesIn = Callable[[Method, tuple[str, ...], Callable[[WalkedUses | None], WalkedUses]], InputUses]

    Found = tuple[cst.ClassDef, Slice]
    """A class and the slice that contains it."""

    Find = Callable[[Definition], Found | None]
    """Finds a class; None if it cannot be read."""


class Builder:
    """Builds the Functions of one file; bases and decorators are resolved in the project."""

    def __init__(
        self,
        unit: Unit,
        project: Project,
        calls: Iterable[ApplyCall],
        direct_calls: Mapping[str, set[str]],
        patched: Mapping[str, set[str]],
        applied: frozenset[str],
        subclassed_elsewhere: Iterable[str] = (),
        stored_elsewhere: Iterable[tuple[str, str]] = (),
        *,
        known_in_part: bool = False,
        taken_names: frozenset[str] = frozenset(),
        assigned_names: frozenset[str] = frozenset(),
    ) -> None:
        self.unit = unit
        self.project = project
        self.index = unit.index
        self.calls: dict[str, list[ApplyCall]] = {}
        for call in calls:
            self.calls.setdefault(call.function, []).append(call)
        self.direct_calls = direct_calls
        self.patched = patched
        self.applied = applied
        self.known_in_part = known_in_part
        self.taken_names = taken_names
        self.assigned_names = assigned_names
        self.subclassed = frozenset(
            base[len(LOCAL) :]
            for record in unit.index.classes.values()
            for alternatives in record.bases
            for base in alternatives
            if base is not None and base.startswith(LOCAL)
        ).union(subclassed_elsewhere)
        self.stored_elsewhere = tuple(stored_elsewhere)
        self.summaries = Summaries(project)
        self.facts_of: FactsOf = lambda _method, _known, work: work(None)
        """Walks a method of the class that is built, or finds what an earlier walk recorded."""
        self.uses_in: UsesIn = lambda _method, _names, work: work(None).uses
        """Collects how a method uses its inputs, or finds what was collected earlier."""
        self._facts: tuple[Hashable, ...] | None = None

    def once_for_all(self, facts_of: Callable[[Builder], tuple[Hashable, ...]]) -> tuple[Hashable, ...]:
        """The result of ``facts_of``, computed once for all Functions."""
        if self._facts is None:
            self._facts = facts_of(self)
        return self._facts

    # Classes

    def build(self, record: ClassRecord) -> FunctionClass | None:
        """The Function of a class record; None if LibCST cannot parse its statement.

        Raises:
            TooComplex: The analysis takes too much work.
        """
        return self._build(record, self.walk, _as_written)

    def outline(self, record: ClassRecord) -> FunctionClass | None:
        """Like ``build``, but the methods have no facts about their bodies, and the nodes have no positions."""
        return self._build(record, lambda method, _bindings: _changed(method, facts=MethodFacts(complete=False)), _bare)

    def _build(self, record: ClassRecord, walk: Walk, find: Find) -> FunctionClass | None:
        definition = Definition(self.unit, record.qualname)
        found = find(definition)
        if found is None:
            return None
        node, slice_ = found
        ancestry = self.project.ancestry(definition)
        if len(ancestry) > MAX_ANCESTORS:
            raise EffortExceeded
        drafts, class_attributes = self.collect(ancestry, find)
        bases_known = self.project.bases_known(definition)
        style = _style(drafts, bases_known)
        methods, inputs, gradients, calls = self.walk_all(drafts, style, self.calls.get(record.qualname, ()), walk)
        forward = methods.get("forward")
        outputs = tuple(returned_by(forward)) if forward is not None else ()
        calls = self.with_callers(calls, forward, outputs)
        if "backward" not in methods and "vjp" not in methods and not self.known_in_part:
            calls = tuple(map(self._with_parameters, calls))
        names = tuple(_decorator_name(decorator, record.scope) for decorator in node.decorators)
        patched = self.is_patched(record, map(find, ancestry), class_attributes)
        stored = self.stored_for(ancestry) | self.not_asked_for(record, methods)
        function = FunctionClass(
            name=node.name.value,
            qualname=record.qualname,
            node=node,
            slice=slice_,
            source=self.unit.source,
            tree=self.unit.tree,
            style=style,
            methods=methods,
            inputs=inputs,
            variadic_inputs=forward.variadic if forward is not None else None,
            outputs=outputs,
            gradients=gradients,
            tangents=tuple(returned_by(methods["jvp"])) if "jvp" in methods else (),
            calls=calls,
            calls_fail=all_fail(self.calls.get(record.qualname, ()), methods, style),
            bases_known=bases_known,
            base_names=frozenset(
                base
                for alternatives in self.project.bases(definition)
                for base in alternatives
                if isinstance(base, str)
            ),
            class_decorators=names,
            class_decorators_known=all(map(self.keeps_class, names)),
            overrides_apply="apply" in methods or "apply" in class_attributes,
            patched=patched,
            one_signature=patched
            and not self.is_overwritten(record, class_attributes)
            and not any(_changes_signatures(each[0]) for each in map(find, ancestry) if each is not None),
            replaced=frozenset(self.patched.get(record.qualname, ())),
            has_subclass=record.qualname in self.subclassed,
            called_directly=frozenset(self.direct_calls.get(record.qualname, ())),
            stored_attributes=stored,
            class_attributes=class_attributes,
            legacy_state=legacy_state(
                methods,
                lambda: self.overridden(ancestry, find),
                stored,
                lambda: any(call.how == "construct-call" or call.instance_called for call in calls),
            ),
            is_redefined=record.is_redefined,
            is_replaced=record.is_replaced_unused(self.unit.source),
            is_for_errors=is_for_errors(record, self.unit.index),
            repeated_in=repeated_in(record, self.unit.index),
            applied=record.qualname in self.applied,
            known_in_part=self.known_in_part,
            is_alternative=record.alternative,
            is_one_of_several=record.has_alternative(self.unit.index.classes),
            releases=releases_with(record, self.unit.index),
            taken_names=self.taken_names,
            enclosing_names=record.scope.function_locals() | self.assigned_names,
            absent_names=self.absent_names(methods.values()),
            gathering=self.gathering(forward, methods.get("backward")),
            communicating=self.communicating(inputs, methods.get("backward")),
        )
        return without_untaken_arms(function)

    def gathering(self, forward: Method | None, backward: Method | None) -> tuple[tuple[str, str, str], ...]:
        """The functions that forward calls to gather a tensor, if backward chooses a part of the gradient."""
        if forward is None or backward is None:
            return ()
        return tuple(gathering_functions(forward, backward, self._find))

    def communicating(self, inputs: Iterable[Input], backward: Method | None) -> tuple[str, ...]:
        """The attributes of ctx that are groups in which functions communicate, if an input is a group."""
        if backward is None or not any(GROUP.fullmatch(each.name) for each in inputs):
            return ()
        return tuple(communicating_attributes(backward, self._find))

    def _find(self, unit: Unit, name: str) -> Definition | None:
        """The project function that a resolved name of a file certainly denotes."""
        return CalleeResolver(unit, self.summaries).function(name)

    def absent_names(self, methods: Iterable[Method]) -> frozenset[str]:
        """The names in methods of files with star imports that none of these certainly binds."""
        homes = [(method.home.unit, method) for method in methods if method.home is not None]
        starred = [(unit, method) for unit, method in homes if unit.index.module.stars]
        return frozenset(
            name
            for unit, method in starred
            for name in method.named
            if name not in unit.index.module.names and name not in method.binders and self.project.lacks(unit, name)
        )

    def with_callers(
        self, calls: tuple[ApplyCall, ...], forward: Method | None, outputs: tuple[Returned, ...]
    ) -> tuple[ApplyCall, ...]:
        """The calls, with what other files pass to functions that hand on an input that is modified and returned.

        And what is not a tensor among that which they pass on to be saved.
        """
        if forward is None or not any(call.handed_on or call.rest is not None for call in calls):
            return calls
        if forward.variadic is not None and not self.known_in_part:
            calls = tuple(self._with_rest(call) for call in calls)
        written = [each.target for each in forward.facts.of(Mutation) if each.target is not None]
        returned = (slot.value for each in outputs for slot in each.slots)
        modified = inputs_among(written) & inputs_among(returned) if written else frozenset()
        return tuple(self._with_callers(call, modified) for call in calls)

    def _with_rest(self, call: ApplyCall) -> ApplyCall:
        """A call with what calls in other files pass for its last arguments that is not a tensor."""
        if call.rest is None or call.relayed:
            return call
        path = os.path.join(os.path.dirname(self.unit.path), call.path) if call.path else self.unit.path
        asked = {each: self.project.ask(deed, path, call.inside, call.rest) for each, deed in _PASSING.items()}
        found = (each for each, question in asked.items() if question in self.project.changed)
        return replace(call, relayed=next(found, ""))

    def _with_parameters(self, call: ApplyCall) -> ApplyCall:
        """A call with the parameters of modules that other files pass to the function around it."""
        path = os.path.join(os.path.dirname(self.unit.path), call.path) if call.path else self.unit.path
        asked = {
            at: self.project.ask("passes-parameter", path, call.inside, position)
            for at, position in (call.handed_on if call.returned else ())
        }
        found = [at for at, question in asked.items() if question in self.project.changed]
        return replace(call, given_parameters=(*call.given_parameters, *found)) if found else call

    def _with_callers(self, call: ApplyCall, modified: Container[int]) -> ApplyCall:
        path = os.path.join(os.path.dirname(self.unit.path), call.path) if call.path else self.unit.path
        open_ones = [each for each in call.handed_on if each[0] in modified and each[0] not in call.detached]

        def passed(deed: Deed) -> list[int]:
            asked = {at: self.project.ask(deed, path, call.inside, position) for at, position in open_ones}
            return [at for at, question in asked.items() if question in self.project.changed]

        detached, leaves, created = passed("passes-detached"), passed("passes-leaf"), passed("passes-created")
        return replace(
            call,
            detached=(*call.detached, *detached),
            leaves=(*call.leaves, *leaves),
            created=(*call.created, *created),
        )

    def stored_for(self, ancestry: Iterable[Definition]) -> frozenset[str]:
        """The attributes that code in these files may set on the ctx of a class with these bases."""
        classes = tuple(ancestry)
        elsewhere = (name for function, name in self.stored_elsewhere if function == classes[0].qualname)
        return frozenset(elsewhere).union(*(stored_on_others(each.unit.index, each.qualname) for each in classes))

    def not_asked_for(self, record: ClassRecord, methods: Mapping[str, Method]) -> frozenset[str]:
        """The attributes that functions of other files read of the ctx, and that the project is not searched for."""
        read = {
            each.attribute
            for method in methods.values()
            for each in method.facts.of(ContextRead)
            if any(step.path != self.unit.path for step in each.through)
        }
        return frozenset(read.difference(unset_attributes(self.unit, record.qualname, self.project) if read else ()))

    def is_patched(self, record: ClassRecord, classes: Iterable[Found | None], attributes: Mapping[str, Value]) -> bool:
        """Whether the protocol methods may differ from those that the class bodies define."""
        return self.is_overwritten(record, attributes) or any(
            _changes_methods(each[0]) for each in classes if each is not None
        )

    def is_overwritten(self, record: ClassRecord, attributes: Mapping[str, Value]) -> bool:
        """Whether other code, or an assignment in the class body, replaces a protocol method."""
        return record.qualname in self.patched or any(name in attributes for name in PROTOCOL)

    def collect(self, ancestry: list[Definition], find: Find) -> tuple[dict[str, Method], dict[str, Value]]:
        """The class attributes and the methods, not walked yet, of a class and its bases, nearest first."""
        methods: dict[str, Method] = {}
        attributes: dict[str, Value] = {}
        for distance, definition in enumerate(ancestry):
            found = find(definition)
            if found is None:
                continue
            node, slice_ = found
            functions, assignments = members(node)
            own = {function.name.value: function for function in functions}
            for name, function in own.items():
                if name not in methods:
                    methods[name] = self.draft(function, slice_, definition, inherited=distance > 0)
            for name, value in assignments:
                attributes.setdefault(name, _made_in_class(value, _class_scope(definition)))
        return methods, attributes

    def overridden(self, ancestry: list[Definition], find: Find) -> Iterator[Method]:
        """The methods of the bases of a class, nearest first, whether or not the class overrides them."""
        for definition in ancestry[1:]:
            found = find(definition)
            if found is not None:
                node, slice_ = found
                yield from (self.draft(each, slice_, definition, inherited=True) for each in members(node)[0])

    def draft(self, node: cst.FunctionDef, slice_: Slice, home: Definition, inherited: bool) -> Method:
        """A method with its signature; which parameter is ctx is decided once the style of the class is known."""
        scope = _class_scope(home)
        found = decorators_of(node, scope, lambda name, scope: self.place(home.unit, name, scope))
        own = tuple(self.in_force(each, home.unit) for each in found)
        return Method(
            name=node.name.value,
            node=node,
            slice=slice_,
            binding=binding_of(own),
            decorators=own,
            params=params_of(node, scope),
            receiver=None,
            ctx=None,
            facts=MethodFacts(),
            inherited=inherited,
            home=home,
        )

    def in_force(self, decorator: Decorator, unit: Unit) -> Decorator:
        """A decorator; one of torch's autocast that a file of the project may replace may do nothing."""
        name = decorator.name or ""
        if name not in decorators.DEPRECATED_DECORATORS and not decorator.lacks_device_type:
            return decorator
        return replace(decorator, certain=False, optional=True) if is_replaced(unit, self.project, name) else decorator

    def place(self, unit: Unit, name: str, scope: Scope) -> BoundName:
        """Where a decorator's name is bound."""
        unit, name, scope = self.project.bound(unit, name, scope)
        return BoundName(name, scope, lambda resolved: self.decorator(unit, resolved))

    def decorator(self, unit: Unit, name: str, hops: int = 0) -> Wrapping | str | None:
        """The project function that a decorator's name resolves to, or the dotted name of an external one."""
        meaning = self.project.meaning(unit, name)
        if meaning is None or isinstance(meaning, str):
            return meaning
        found = meaning.unit.slices.find_decorator(meaning.qualname)
        if found is None or found.by is None or hops == _MOST_DECORATORS:
            return found
        scope = meaning.unit.index.functions[meaning.qualname].scope
        unit, name, scope = self.project.bound(meaning.unit, found.by, scope)
        other = resolve_certainly(name, scope)
        return self.decorator(unit, other, hops + 1) if other is not None else found

    def keeps_class(self, decorator: str | None) -> bool:
        """Whether a class decorator is known to return the class with the same methods."""
        if decorator is None or decorator in decorators.CLASS_DECORATORS:
            return decorator is not None
        known = self.decorator(self.unit, decorator)
        return not isinstance(known, str) and known is not None and known.keeps_class

    # Walks

    def walk_all(
        self, drafts: dict[str, Method], style: Style, calls: Iterable[ApplyCall], walk: Walk
    ) -> tuple[dict[str, Method], tuple[Input, ...], tuple[Returned, ...], tuple[ApplyCall, ...]]:
        """The walked methods, the inputs, what backward returns, and the calls that work: each helps to know the next.

        What backward returns and what calls pass shows what the inputs are, with which forward is walked. If that keeps
        objects of project classes on ctx, backward is walked again, with these.
        """
        methods = self.walk_methods(drafts, style, walk)
        forward, backward = methods.get("forward"), methods.get("backward") or methods.get("vjp")
        gradients = tuple(returned_by(backward)) if backward is not None else ()
        working = working_calls(calls, forward)
        inputs = self.inputs(forward, methods.get("setup_context"), backward, gradients, working)
        methods.update(self.walk_forward(methods, inputs, walk))
        if self.walk_with_objects(methods):
            gradients = tuple(returned_by(methods["backward"]))
            inputs = self.inputs(forward, methods.get("setup_context"), methods["backward"], gradients, working)
            methods.update(self.walk_forward(methods, inputs, walk))
        every = with_every_gradient(gradients, methods.get("forward"))
        if every is not gradients:
            gradients = every
            inputs = self.inputs(forward, methods.get("setup_context"), methods.get("backward"), gradients, working)
            methods.update(self.walk_forward(methods, inputs, walk))
        if "forward" in methods and inputs_among(methods["forward"].facts.absent):
            forward = methods["forward"]
            inputs = self.inputs(forward, methods.get("setup_context"), methods.get("backward"), gradients, working)
            methods.update(self.walk_forward(methods, inputs, walk))
        functions = self.passed_functions(methods.get("forward"), inputs, working)
        if functions:
            methods.update(self.walk_forward(methods, inputs, partial(self.walk, objects=functions)))
        return {name: _with_hidden_ctx(each, style) for name, each in methods.items()}, inputs, gradients, working

    def walk_methods(self, drafts: dict[str, Method], style: Style, walk: Walk) -> dict[str, Method]:
        """Determine receiver and ctx of every method, and walk all methods but forward and setup_context."""
        methods: dict[str, Method] = {}
        for name, draft in drafts.items():
            receiver, ctx = split_params(draft.node, draft.params, draft.binding, style is not Style.SETUP_CONTEXT)
            methods[name] = _with_ctx_checked(_changed(draft, receiver=receiver, ctx=ctx), style)
        flags = _count_of_flags(methods.get("forward"))
        for name, method in methods.items():
            if name in ("backward", "vjp"):
                methods[name] = walk(method, bound_parameters(method, "gradient", Tri.YES, flags))
            elif name == "jvp":
                methods[name] = walk(method, bound_parameters(method, "tangent", Tri.UNKNOWN, flags))
            elif name == "symbolic":
                methods[name] = walk(method, bound_parameters(method, "plain", Tri.UNKNOWN))
        return methods

    def walk_with_objects(self, methods: dict[str, Method]) -> bool:
        """Walk backward again if forward keeps objects of project classes on ctx for it; whether that is so."""
        backward, forward = methods.get("backward"), methods.get("forward")
        passed: dict[Value, ProjectObject] = {}
        if forward is not None and forward.home is not None:
            resolver = CalleeResolver(forward.home.unit, self.summaries)
            passed = resolver.declared(forward.params, inputs_on_ctx(methods.values()))
        objects = objects_on_ctx(methods.values(), passed)
        if backward is None or not reads_any(backward, objects):
            return False
        bindings = bound_parameters(backward, "gradient", Tri.YES, _count_of_flags(forward))
        methods["backward"] = self.walk(backward, bindings, objects)
        return True

    def passed_functions(
        self, forward: Method | None, inputs: tuple[Input, ...], calls: tuple[ApplyCall, ...]
    ) -> dict[Value, ProjectFunction]:
        """The inputs that forward calls and for which all calls pass the same function of the project."""
        if forward is None or not any(each.of_module for each in calls):
            return {}
        called = {dotted(each.node.func) for each in forward.facts.of(GenericCall) if isinstance(each.node, cst.Call)}
        calls = tuple(each for each in calls if each.how != "construct" or each.instance_called)
        found: dict[Value, ProjectFunction] = {}
        for each in inputs if all(call.applies for call in calls) else ():
            if each.name in called and all(each.index in call.of_module for call in calls):
                passed = {self.function_passed(call, each.index) for call in calls}
                definition = passed.pop() if len(passed) == 1 else None
                if definition is not None:
                    found[_value_of(each)] = ProjectFunction(definition)
        return found

    def function_passed(self, call: ApplyCall, at: int) -> Definition | None:
        """The function of the project that a call certainly passes."""
        folder = os.path.dirname(os.path.abspath(self.unit.path))
        unit = self.project.unit(os.path.normpath(os.path.join(folder, call.path))) if call.path else self.unit
        name = resolve_certainly(call.names[at], unit.index.module) if unit is not None else None
        return CalleeResolver(unit, self.summaries).function(name) if unit is not None and name is not None else None

    def walk_forward(self, methods: Mapping[str, Method], inputs: tuple[Input, ...], walk: Walk) -> dict[str, Method]:
        """Walk forward and vmap with what is known of the inputs, and setup_context with what forward returns."""
        walked: dict[str, Method] = {}
        forward = methods.get("forward")
        values: dict[str, Value] = {}
        returned: Value = UNKNOWN
        if forward is not None:
            bindings = bound_parameters(forward, "input", Tri.UNKNOWN)
            for each in inputs:
                values[each.name] = _value_of(each)
            bindings.update(values)
            walked["forward"] = walk(forward, bindings)
            returned = joined(walked["forward"].facts)
        setup = methods.get("setup_context")
        if setup is not None:
            exact = forward is not None and forward.variadic is None
            bindings = bound_parameters(setup, "plain", Tri.UNKNOWN)
            is_callable = setup.signature_known and sum(param.required for param in setup.positional) <= 2
            positional = setup.positional if is_callable else ()
            if len(positional) > 0:
                bindings[positional[0].name] = InputsTuple(tuple(values.values()), exact)
            if len(positional) > 1:
                bindings[positional[1].name] = returned
            walked["setup_context"] = walk(setup, bindings)
        vmap = methods.get("vmap")
        if vmap is not None:
            bindings = bound_parameters(vmap, "plain", Tri.UNKNOWN)
            for param, each in zip(vmap.positional[2:], inputs):  # after info and in_dims
                bindings[param.name] = Parameter("plain", each.index, param.name, each.is_tensor)
            walked["vmap"] = walk(vmap, bindings)
        return walked

    def walk(
        self,
        method: Method,
        bindings: dict[str, Value],
        objects: Mapping[Value, External] = NO_OBJECTS,
    ) -> Method:
        """A method with the facts of its body; without any if the body is a stub."""
        home = method.home
        if _is_stub(method):
            return _changed(method, facts=MethodFacts(complete=False))
        line = home.record.node.lineno if home is not None and home.record is not None else None
        resolver = CalleeResolver(home.unit, self.summaries, line=line) if home is not None else None
        qualname = f"{home.qualname}.{method.name}" if home is not None else ""
        scope = Scope("function", qualname, _class_scope(home) if home is not None else None)
        if resolver is not None:
            objects = {**resolver.declared(method.params, bindings), **objects}
        if home is not None and method.receiver is not None and _is_called_on(home, method):
            bindings = {**bindings, method.receiver.name: Imported(LOCAL + home.qualname)}
        try:
            walrus = home is None or home.unit.source.has_walrus
            facts = self.facts_of(
                method,
                (bindings, objects),
                lambda trail: interpret(
                    method.node, bindings, scope, resolver, bound_names(method.node, walrus), None, objects, trail
                ),
            )
        except RecursionError:
            facts = MethodFacts(complete=False)
        return _changed(method, facts=facts)

    # Inputs

    def from_record(self, forward: Method, param: Param) -> tuple[Evidence, ...]:
        """Evidence that an input is annotated with a project class that has fields, and so may hold tensors."""
        meaning = (
            self.project.meaning(forward.home.unit, param.annotation) if forward.home and param.annotation else None
        )
        record = None if meaning is None or isinstance(meaning, str) else meaning.record
        if record is None or not declares_fields(record.node):
            return ()
        return (
            Evidence(
                False,
                Trust.STRONG,
                f"it is annotated `{record.node.name}`, a record",
                param.node,
                container=True,
                annotated=True,
            ),
        )

    def used_elsewhere(
        self, forward: Method, backward: Method | None, names: frozenset[str]
    ) -> Mapping[str, list[Evidence]]:
        """How the functions that forward calls, and backward, use some inputs, by name."""
        evidence: defaultdict[str, list[Evidence]] = defaultdict(list)
        if not names or forward.home is None:
            return evidence
        scope = _class_scope(forward.home)
        code = Code(
            self.project,
            forward.home.unit,
            scope if scope is not None else forward.home.unit.index.module,
            self._find,
        )
        found = used_by_functions(forward, names, code)
        if backward is not None and backward.home == forward.home:
            found += used_in_backward(forward, backward, names, code)
        for name, each in found:
            evidence[name].append(each)
        return evidence

    def inputs(
        self,
        forward: Method | None,
        setup: Method | None,
        backward: Method | None,
        gradients: tuple[Returned, ...],
        calls: tuple[ApplyCall, ...],
    ) -> tuple[Input, ...]:
        if forward is None:
            return ()
        params = forward.positional
        scope = Scope("function", "", _class_scope(forward.home) if forward.home is not None else None)

        def uses_in(method: Method, names: tuple[str, ...], earlier: WalkedUses | None) -> WalkedUses:
            found = Uses(names, lambda node: _canonical(node, scope))
            if _is_stub(method):
                return WalkedUses(InputUses(found.evidence, found.none_tests))
            return found.walk_body(method.node.body, earlier)

        names = tuple(param.name for param in params)
        uses = self.uses_in(forward, names, partial(uses_in, forward, names))
        required = sum(param.required or setup is not None for param in params)
        in_doubt = frozenset() if _is_stub(forward) else _in_doubt(params, uses, gradients, calls, required)
        elsewhere = self.used_elsewhere(forward, backward, in_doubt)
        items: tuple[str, ...] = ()
        if setup is not None and setup.positional and forward.variadic is None:
            items = tuple(f"{setup.positional[0].name}[{index}]" for index in range(len(params)))
        set_up = self.uses_in(setup, items, partial(uses_in, setup, items)) if setup is not None and items else None

        if forward.variadic is None:
            gradients = tuple(each for each in gradients if not is_shifted(each, len(params)))

        refused = inputs_among(forward.facts.absent)

        def described(wanted: int) -> tuple[Input, ...]:
            return tuple(
                describe(
                    index,
                    param,
                    gradients,
                    wanted,
                    [
                        *from_calls(index, calls),
                        *uses.evidence[param.name],
                        *elsewhere.get(param.name, ()),
                        *(set_up.evidence[items[index]] if set_up is not None else ()),
                        *self.from_record(forward, param),
                    ],
                    [*none_from_calls(index, calls), *uses.none_tests[param.name]],
                    alone=len(params) == 1 and forward.variadic is None,
                    refused=index in refused,
                )
                for index, param in enumerate(params)
            )

        inputs = described(required)
        meant = inputs_covered(inputs, required, gradients)
        return inputs if meant == required else described(meant)


# ---------------------------------------------------------------------------------------------------------------------
# Pieces


def _value_of(each: Input) -> Parameter:
    """The abstract value of an input, with what is known of it."""
    integral = Kind.INTEGRAL if each.param.annotation in types.INTEGRAL_ANNOTATIONS else Kind.UNKNOWN
    kind = Kind.FLOAT if each.surely_differentiable else integral
    return Parameter("input", each.index, each.name, each.is_tensor, kind)


def _as_written(definition: Definition) -> Found | None:
    return definition.unit.slices.find_class(definition.qualname)


def _bare(definition: Definition) -> Found | None:
    return definition.unit.slices.find_bare_class(definition.qualname)


def _count_of_flags(forward: Method | None) -> int | None:
    """The number of flags in ``ctx.needs_input_grad``, if every call passes the same number of inputs."""
    known = forward is not None and forward.signature_known and forward.variadic is None
    inputs = forward.positional if known and forward is not None else ()
    return len(inputs) if inputs and all(each.required for each in inputs) else None


def _is_stub(method: Method) -> bool:
    return method.home is not None and method.home.unit.is_stub


def _is_called_on(home: Definition, method: Method) -> bool:
    """Whether ``cls`` of a method is certainly its class: not of one that leaves methods to its subclasses."""
    if method.binding is not Binding.CLASS or method.inherited or home.record is None:
        return False
    functions = (each for each in home.record.node.body if isinstance(each, ast.FunctionDef))
    return not any(isinstance(each.body[-1], (ast.Raise, ast.Pass)) for each in functions)


def _class_scope(definition: Definition) -> Scope:
    record = definition.record
    return record.body if record is not None else definition.unit.index.module


def _style(methods: Mapping[str, Method], bases_known: bool) -> Style:
    if "setup_context" in methods:
        return Style.SETUP_CONTEXT
    if bases_known:
        return Style.CTX_IN_FORWARD
    forward = methods.get("forward")
    positional = [param for param in forward.params if param.kind is ParameterKind.POSITIONAL] if forward else []
    return Style.CTX_IN_FORWARD if any(param.name == "ctx" for param in positional[:2]) else Style.UNKNOWN


def _with_ctx_checked(method: Method, style: Style) -> Method:
    """The method, with no ctx if the parameter in its place is certainly something else."""
    if method.name == "forward" and style is Style.SETUP_CONTEXT:
        return method
    scope = Scope("function", "", _class_scope(method.home) if method.home is not None else None)
    return _changed(method, lacks_ctx=True, ctx=None) if lacks_context(method, scope) else method


def _with_hidden_ctx(method: Method, style: Style) -> Method:
    """``def forward(*args)``: the ctx is among the arguments, where it is not tracked."""
    takes_ctx = ("backward", "vjp", "jvp", "setup_context", *(("forward",) if style is not Style.SETUP_CONTEXT else ()))
    if method.ctx is not None or method.variadic is None or method.name not in takes_ctx or _is_stub(method):
        return method
    escape = Escape(method.variadic.node, order=-1, how="captured")
    return _changed(method, facts=replace(method.facts, events=(escape, *method.facts.events)))


def _changed(method: Method, **changes: object) -> Method:
    return replace(method, **changes)  # type: ignore[arg-type]


def _decorator_name(node: cst.Decorator, scope: Scope) -> str | None:
    expression = node.decorator
    path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
    return (resolve(path, scope) or path) if path is not None else None


def _in_doubt(
    params: tuple[Param, ...],
    uses: InputUses,
    gradients: tuple[Returned, ...],
    calls: tuple[ApplyCall, ...],
    required: int,
) -> frozenset[str]:
    """The inputs of which nothing is known, if backward returns too few gradients."""
    if not any(each.known and each.exact and len(each.slots) < required for each in gradients):
        return frozenset()
    return frozenset(
        param.name
        for index, param in enumerate(params)
        if param.annotation is None and param.required and not uses.evidence[param.name]
        if not from_calls(index, calls)
    )


def _canonical(node: cst.BaseExpression, scope: Scope) -> str | None:
    path = dotted(node)
    return resolve(path, scope) if path is not None else None


def _made_in_class(node: cst.BaseExpression, scope: Scope) -> Value:
    """The value of an attribute of a class: a literal, a tensor that torch creates, or unknown."""
    call = node
    while isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        if call.func.attr.value not in CONVERSIONS:
            break
        call = call.func.value  # ``torch.zeros(4).cuda()``
    space, _, name = (_canonical(call.func, scope) or "").rpartition(".") if isinstance(call, cst.Call) else ("",) * 3
    return Fresh(node) if space == "torch" and name in FACTORIES else _literal(node)


def _literal(node: cst.BaseExpression) -> Value:
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return constant(node.value == "True")
    if isinstance(node, cst.Integer):
        return constant(node.evaluated_value)
    return Opaque(node)


_MOST_DECORATORS = 4
"""So many decorators that only apply another one are followed."""

_PASSING: dict[str, Deed] = {
    "container": "passes-container",
    "number": "passes-number",
    "bool": "passes-bool",
    "string": "passes-string",
}
"""What is not a tensor, with the question about it."""


def _changes_methods(node: cst.ClassDef) -> bool:
    """Whether a class defines protocol methods under a condition, or may change those of its subclasses."""
    return not conditional_methods(node).isdisjoint(PROTOCOL) or _changes_subclasses(node)


def _changes_signatures(node: cst.ClassDef) -> bool:
    """Whether that may change the parameters of a protocol method."""
    return not differ_only_in_code(node, frozenset(PROTOCOL)) or _changes_subclasses(node)


def _changes_subclasses(node: cst.ClassDef) -> bool:
    return any(each.name.value == "__init_subclass__" and may_change_methods(each.body) for each in members(node)[0])
