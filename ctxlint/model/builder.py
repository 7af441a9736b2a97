"""Puts a FunctionClass together: methods, their walks, inputs, gradients, outputs, and the calls in the same file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Callable

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.expressions import dotted
from ctxlint.model.finder import members
from ctxlint.model.functions import (
    PROTOCOL,
    ApplyCall,
    FunctionClass,
    Input,
    Method,
    MethodFacts,
    Param,
    ParameterKind,
    Return,
    Returned,
    Style,
)
from ctxlint.model.inputs import Uses, describe, from_calls, gradient_of
from ctxlint.model.interpreter import interpret
from ctxlint.model.methods import binding_of, decorators_of, params_of, passes_arguments_on, split_params
from ctxlint.model.scopes import LOCAL, Scope, resolve
from ctxlint.model.values import (
    CONTEXT,
    NONE,
    UNKNOWN,
    InputsTuple,
    Kind,
    Opaque,
    Parameter,
    Sequence,
    Slot,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    constant,
    is_container,
    join,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.files.slices import Slice
    from ctxlint.files.source import Source
    from ctxlint.model.index import ClassRecord, FileIndex

FindClass = Callable[[str], "tuple[cst.ClassDef, Slice] | None"]
FindFunction = Callable[[str], "cst.FunctionDef | None"]


class Builder:
    """Builds the Functions of one file. ``find_class`` and ``find_function`` parse on demand; None where they cannot."""

    def __init__(
        self,
        source: Source,
        index: FileIndex,
        find_class: FindClass,
        find_function: FindFunction,
        calls: Iterable[ApplyCall],
        by_hand: Mapping[str, set[str]],
        patched: set[str],
    ) -> None:
        self.source = source
        self.index = index
        self.find_class = find_class
        self.find_function = find_function
        self.calls: dict[str, list[ApplyCall]] = {}
        for call in calls:
            self.calls.setdefault(call.function, []).append(call)
        self.by_hand = by_hand
        self.patched = patched
        self.stored_attributes = frozenset(index.attributes)
        self.subclassed = frozenset(
            base[len(LOCAL) :]
            for record in index.classes.values()
            for alternatives in record.bases
            for base in alternatives
            if base is not None and base.startswith(LOCAL)
        )
        self.following: list[str] = []

    # Classes

    def build(self, record: ClassRecord) -> FunctionClass | None:
        """The Function of one class record; None where its statement cannot be parsed by LibCST."""
        found = self.find_class(record.qualname)
        if found is None:
            return None
        node, slice_ = found
        drafts, class_attributes = self.collect(record)
        style = self.style(record, drafts)
        methods = self.walk_methods(record, drafts, style)
        forward, backward = methods.get("forward"), methods.get("backward") or methods.get("vjp")
        gradients = tuple(returned_by(backward)) if backward is not None else ()
        calls = tuple(self.calls.get(record.qualname, ()))
        inputs = self.inputs(record, forward, gradients, calls)
        methods.update(self.walk_forward(record, methods, inputs))
        forward = methods.get("forward")
        names = tuple(_decorator_name(decorator, record.scope) for decorator in node.decorators)
        return FunctionClass(
            name=node.name.value,
            qualname=record.qualname,
            node=node,
            slice=slice_,
            source=self.source,
            style=style,
            methods=methods,
            inputs=inputs,
            variadic_inputs=forward.variadic if forward is not None else None,
            outputs=tuple(returned_by(forward)) if forward is not None else (),
            gradients=gradients,
            calls=calls,
            bases_known=self.index.bases_known(record.qualname),
            class_decorators=names,
            class_decorators_known=all(name in tables.CLASS_DECORATORS for name in names),
            overrides_apply="apply" in methods or "apply" in class_attributes,
            patched=record.qualname in self.patched or any(name in class_attributes for name in PROTOCOL),
            has_subclass=record.qualname in self.subclassed,
            called_directly=frozenset(self.by_hand.get(record.qualname, ())),
            stored_attributes=self.stored_attributes,
            class_attributes=class_attributes,
            enclosing_names=record.scope.function_locals(),
        )

    def collect(self, record: ClassRecord) -> tuple[dict[str, Method], dict[str, Value]]:
        """Methods not walked yet, and class attributes, of the class and its bases in this file."""
        methods: dict[str, Method] = {}
        attributes: dict[str, Value] = {}
        for qualname in self.index.ancestry(record.qualname):
            found = self.find_class(qualname)
            if found is None:
                continue
            node, slice_ = found
            scope = self.index.classes[qualname].body
            inherited = qualname != record.qualname
            functions, assignments = members(node)
            own: dict[str, Method] = {}
            for function in functions:
                own[function.name.value] = self.draft(function, slice_, scope, inherited)
            for name, method in own.items():
                methods.setdefault(name, method)
            for name, value in assignments:
                attributes.setdefault(name, _literal(value))
        return methods, attributes

    def draft(self, node: cst.FunctionDef, slice_: Slice, scope: Scope, inherited: bool) -> Method:
        """A method with its signature; which parameter is ctx is decided when the style of the class is known."""
        decorators = decorators_of(node, scope, self.keeps_signature)
        return Method(
            name=node.name.value,
            node=node,
            slice=slice_,
            binding=binding_of(decorators),
            decorators=decorators,
            params=params_of(node, scope),
            receiver=None,
            ctx=None,
            facts=MethodFacts(),
            inherited=inherited,
        )

    def keeps_signature(self, name: str) -> Tri:
        """Whether a decorator of this file passes arguments and result on."""
        if not name.startswith(LOCAL):
            return Tri.UNKNOWN
        node = self.find_function(name[len(LOCAL) :])
        return Tri.YES if node is not None and passes_arguments_on(node) else Tri.UNKNOWN

    def style(self, record: ClassRecord, methods: Mapping[str, Method]) -> Style:
        if "setup_context" in methods:
            return Style.SETUP_CONTEXT
        if self.index.bases_known(record.qualname):
            return Style.CTX_IN_FORWARD
        forward = methods.get("forward")
        positional = [param for param in forward.params if param.kind is ParameterKind.POSITIONAL] if forward else []
        named = any(param.name == "ctx" for param in positional[:2])
        return Style.CTX_IN_FORWARD if named else Style.UNKNOWN

    # Walks

    def walk_methods(self, record: ClassRecord, drafts: dict[str, Method], style: Style) -> dict[str, Method]:
        """Settle receiver and ctx of every method, and walk all but forward and setup_context."""
        methods: dict[str, Method] = {}
        for name, draft in drafts.items():
            receiver, ctx = split_params(name, draft.params, draft.binding, style is not Style.SETUP_CONTEXT)
            method = _changed(draft, receiver=receiver, ctx=ctx)
            if name in ("backward", "vjp"):
                method = self.walk(record, method, _bindings(method, "gradient", Tri.YES))
            elif name == "jvp":
                method = self.walk(record, method, _bindings(method, "tangent", Tri.UNKNOWN))
            elif name == "vmap":
                method = self.walk(record, method, _bindings(method, "plain", Tri.UNKNOWN))
            methods[name] = method
        return methods

    def walk_forward(
        self, record: ClassRecord, methods: Mapping[str, Method], inputs: tuple[Input, ...]
    ) -> dict[str, Method]:
        """Walk forward with what is known of its inputs, then setup_context with what forward returns."""
        walked: dict[str, Method] = {}
        forward = methods.get("forward")
        values: dict[str, Value] = {}
        returned: Value = UNKNOWN
        if forward is not None:
            bindings = _bindings(forward, "input", Tri.UNKNOWN)
            for each in inputs:
                kind = Kind.FLOAT if each.surely_differentiable else Kind.UNKNOWN
                values[each.name] = Parameter("input", each.index, each.name, each.is_tensor, kind)
            bindings.update(values)
            walked["forward"] = self.walk(record, forward, bindings)
            returned = _all_returned(walked["forward"])
        setup = methods.get("setup_context")
        if setup is not None:
            exact = forward is not None and forward.variadic is None
            bindings = _bindings(setup, "plain", Tri.UNKNOWN)
            positional = setup.positional
            if len(positional) > 0:
                bindings[positional[0].name] = InputsTuple(tuple(values.values()), exact)
            if len(positional) > 1:
                bindings[positional[1].name] = returned
            walked["setup_context"] = self.walk(record, setup, bindings)
        return walked

    def walk(self, record: ClassRecord, method: Method, bindings: dict[str, Value]) -> Method:
        try:
            facts = interpret(method.node, bindings, Scope("function", "", record.body), self.follow)
        except RecursionError:
            facts = MethodFacts(complete=False)
        return _changed(method, facts=facts)

    def follow(self, qualname: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> Value | None:
        """What a function of this file returns for these arguments, one level deep; None where that is unknown."""
        if self.following:
            return None
        node = self.find_function(qualname)
        if node is None or node.asynchronous is not None or _has_other_decorators(node):
            return None
        scope = Scope("function", "", self.scope_around(qualname))
        params = params_of(node, scope)
        bindings = _bind_call(params, arguments, keywords)
        if bindings is None:
            return None
        self.following.append(qualname)
        try:
            facts = interpret(node, bindings, scope, self.follow)
        except RecursionError:
            return None
        finally:
            self.following.pop()
        if facts.is_generator or not facts.complete:
            return None
        return _joined(facts)

    def scope_around(self, qualname: str) -> Scope:
        """The scope that a function is defined in: the class body for a method, else the module."""
        owner = qualname.rpartition(".")[0]
        record = self.index.classes.get(owner)
        return record.body if record is not None else self.index.module

    # Inputs

    def inputs(
        self,
        record: ClassRecord,
        forward: Method | None,
        gradients: tuple[Returned, ...],
        calls: tuple[ApplyCall, ...],
    ) -> tuple[Input, ...]:
        if forward is None:
            return ()
        params = forward.positional
        scope = Scope("function", "", record.body)
        uses = Uses((param.name for param in params), lambda node: _canonical(node, scope))
        uses.walk(forward.node.body)
        required = sum(param.required for param in params)
        return tuple(
            describe(
                index,
                param,
                gradient_of(index, len(params), required, gradients),
                [*from_calls(index, calls), *uses.evidence[param.name]],
            )
            for index, param in enumerate(params)
        )


# ---------------------------------------------------------------------------------------------------------------------
# Returns


def returned_by(method: Method) -> list[Returned]:
    """What autograd gets from each return of a method: one entry for each alternative."""
    found: list[Returned] = []
    if not method.facts.complete:
        return found
    for event in method.returns:
        for value in event.value.options():
            slots, known = _slots(value)
            exact = known and not any(slot.starred for slot in slots)
            found.append(Returned(event.node, event, value, slots, known, exact))
    return found


def _slots(value: Value) -> tuple[tuple[Slot, ...], bool]:
    """The elements that autograd sees, and whether anything is known about their number."""
    if isinstance(value, Sequence) and value.kind == "tuple":
        return value.slots, True
    if isinstance(value, (Variadic, TensorTuple)):
        return (Slot(value, starred=True),), True
    if isinstance(value, Sequence) or is_container(value) is Tri.NO:
        return (Slot(value),), True
    return (), False


def _all_returned(method: Method) -> Value:
    facts = method.facts
    return _joined(facts) if facts.complete else UNKNOWN


def _joined(facts: MethodFacts) -> Value:
    """One value for all returns of a walk."""
    values = [event.value for event in facts.of(Return)]
    if facts.falls_through is not Tri.NO:
        values.append(NONE)
    if not values:
        return UNKNOWN
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Pieces


def _changed(method: Method, **changes: object) -> Method:
    return replace(method, **changes)  # type: ignore[arg-type]


def _bindings(method: Method, role: str, tensor: Tri) -> dict[str, Value]:
    """What the parameters of a method hold when it begins."""
    bindings: dict[str, Value] = {}
    index = 0
    for param in method.params:
        if param is method.receiver:
            bindings[param.name] = Opaque(param.node)
        elif param is method.ctx:
            bindings[param.name] = CONTEXT
        elif param.kind is ParameterKind.POSITIONAL:
            certain = tensor if param.required else Tri.UNKNOWN
            kind = Kind.FLOAT if role == "gradient" else Kind.UNKNOWN
            bindings[param.name] = Parameter(role, index, param.name, certain, kind)
            index += 1
        elif param.kind is ParameterKind.VARIADIC:
            bindings[param.name] = Variadic(role, param.name, index)
        else:
            bindings[param.name] = Opaque(param.node)
    return bindings


def _bind_call(
    params: tuple[Param, ...], arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
) -> dict[str, Value] | None:
    """What the parameters of a function hold when it is called so; None where the call does not fit."""
    bindings: dict[str, Value] = {}
    given = list(arguments)
    for param in params:
        if param.kind is ParameterKind.VARIADIC:
            bindings[param.name] = Sequence("tuple", tuple(given))
            given = []
        elif param.kind is ParameterKind.KEYWORDS:
            bindings[param.name] = Opaque(param.node)
        elif param.kind is ParameterKind.POSITIONAL and given:
            slot = given.pop(0)
            if slot.starred:
                return None
            bindings[param.name] = slot.value
        elif param.name in keywords:
            bindings[param.name] = keywords[param.name].value
        else:
            bindings[param.name] = param.default if param.default is not None else Opaque(param.node)
    return None if given else bindings


def _has_other_decorators(node: cst.FunctionDef) -> bool:
    return any(dotted(each.decorator) not in ("staticmethod",) for each in node.decorators)


def _decorator_name(node: cst.Decorator, scope: Scope) -> str | None:
    expression = node.decorator
    path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
    return (resolve(path, scope) or path) if path is not None else None


def _canonical(node: cst.BaseExpression, scope: Scope) -> str | None:
    path = dotted(node)
    return resolve(path, scope) if path is not None else None


def _literal(node: cst.BaseExpression) -> Value:
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return constant(node.value == "True")
    if isinstance(node, cst.Integer):
        return constant(node.evaluated_value)
    return Opaque(node)

