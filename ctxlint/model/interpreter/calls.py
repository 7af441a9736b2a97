"""The effect and the result of a call: methods of ctx, of tensors, functions of torch, helpers of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.attribute_access import (
    attribute_by_name,
    change_contents,
    context_attribute,
    delete_context_attribute,
    note_none,
    set_context_attribute,
    tuple_used,
)
from ctxlint.model.interpreter.effects import apply_summary, either, record_reads, record_writes
from ctxlint.model.interpreter.events import ContextCall, Escape, ForeignCall, GenericCall, MethodCall, MisfitCall
from ctxlint.model.interpreter.extension_calls import calls_extension, calls_loaded_extension
from ctxlint.model.interpreter.launches import TILE_LAUNCH, WRAP_KERNELS, launch, launch_by_name, read_by
from ctxlint.model.interpreter.name_reads import note_missing
from ctxlint.model.interpreter.names import canonical, certain_meaning, function_of, handed_on, meanings, sees_context
from ctxlint.model.interpreter.repeated_calls import Evaluated
from ctxlint.model.interpreter.sequences import (
    after_dict_method,
    after_method,
    as_sequence,
    is_mutable,
    iterated_item,
    named_items,
    spread,
    unknown_content,
    unknown_many,
)
from ctxlint.model.interpreter.summary import EXTENSION, Summary
from ctxlint.model.interpreter.tensor_calls import Arguments, saved_tuple_given, tensor_method, torch_function
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Argument,
    Choice,
    Constant,
    Context,
    ContextAttribute,
    Fresh,
    Imported,
    Item,
    Mapping,
    Opaque,
    Parameter,
    ProjectFunction,
    ProjectObject,
    Scalar,
    Sequence,
    Slot,
    Tri,
    Value,
    is_container,
    is_function,
    is_whole_tuple,
    join_all,
    kind_of,
    parameters_among,
    tensor_when_used,
    without,
)
from ctxlint.model.syntax import code_of, dotted, root_name
from ctxlint.records import changed
from ctxlint.torch_api import autograd, operations, python
from ctxlint.torch_api import known_decorators as decorators

if TYPE_CHECKING:
    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.state import State
    from ctxlint.model.interpreter.walk import Walk


def evaluate_call(walk: Walk, node: cst.Call) -> Value:
    """``func(...)``, or ``receiver.name(...)``."""
    return _call_in_loop(walk, node) if walk.loops else _call(walk, node)


def _call_in_loop(walk: Walk, node: cst.Call) -> Value:
    """A call that may have been evaluated in an earlier turn, with the same operands."""
    repeated, recorder, state = walk.repeated, walk.recorder, walk.state
    if recorder.muted:  # some events are recorded all the same
        return _call(walk, node)
    captured = len(walk.names.borrowed) + len(walk.names.rebound)
    known = repeated.find(node, walk.statement, captured, state)
    if known is not None:
        repeated.read += known.read
        for make, at, facts in known.recorded:
            walk.record(make, at, **facts)
        return known.value
    read, recorded = len(repeated.read), len(repeated.recorded)
    before = (repeated.effects, recorder.amended, state.changes, state.paths)
    value = _call(walk, node)
    after = (repeated.effects, recorder.amended, state.changes, state.paths)
    if walk.state is state and before == after:
        names = {name: state.names.get(name) for name in repeated.read[read:]}
        events = tuple(repeated.recorded[recorded:])
        repeated.keep(node, Evaluated(walk.statement, captured, names, dict(state.attributes), value, events))
    return value


def _call(walk: Walk, node: cst.Call) -> Value:
    func = _called_by_name(walk, node.func) if isinstance(node.func, cst.Call) else node.func
    if isinstance(func, cst.Attribute):
        receiver = walk.evaluate(func.value)
        if isinstance(receiver, Context):
            return _context_method(walk, node, func.attr.value)
        instance = object_of(walk, receiver)
        if instance is not None:
            return _instance_method(walk, node, instance, func.attr.value)
        if isinstance(func.value, cst.Call) and canonical(walk, func.value.func) == "builtins.super":
            return _method_of_base(walk, node, func.value, func.attr.value)
        if not isinstance(receiver, Imported):
            if func is node.func:
                note_none(walk, func, receiver)
            return _method_call(walk, node, func, receiver)
        if func is node.func:
            note_missing(walk, func, receiver.name, called=True)
    callee = canonical(walk, func)
    if callee is None:
        walk.evaluate(node.func)
    elif isinstance(func, cst.Name):
        walk.names.read.add(func.value)
    return _function_call(walk, node, callee)


def _called_by_name(walk: Walk, func: cst.Call) -> cst.BaseExpression:
    """``receiver.name`` for a callee ``getattr(receiver, "name")``; any other callee itself."""
    if not isinstance(func.func, cst.Name) or func.func.value != "getattr" or len(func.args) != 2:
        return func
    owner, attribute = func.args
    if owner.star or attribute.star or canonical(walk, func.func) != "builtins.getattr":
        return func
    name = _name_in(walk.peek(attribute.value))
    return cst.Attribute(owner.value, cst.Name(name)) if name is not None else func


def _name_in(value: Value | None) -> str | None:
    """The name that a constant string is."""
    text = value.value if isinstance(value, Constant) else None
    return text if isinstance(text, str) and text.isidentifier() else None


# Arguments


def _evaluate_arguments(
    walk: Walk, node: cst.Call, callee: str | None, keeps_context: bool = False, lends_context: bool = False
) -> Arguments:
    """Evaluate the arguments; a ctx among them escapes, unless the callee is known not to keep it, or it is lent."""
    lent = False
    positional: list[Slot] = []
    keywords: dict[str, Slot] = {}
    open_ended = False
    for argument in node.args:
        value = walk.evaluate(argument.value)
        if isinstance(value, Context) and not keeps_context:
            if lends_context and not argument.star:
                lent = True
            else:
                walk.record(Escape, node, how="passed", callee=callee)
        if argument.star == "*":
            positional.extend(spread(value, argument.value))
        elif argument.star == "**":
            named = named_items(value)
            open_ended = open_ended or named is None
            keywords.update(named or {})
        elif argument.keyword is not None:
            keywords[argument.keyword.value] = Slot(value, argument.value)
        else:
            positional.append(Slot(value, argument.value))
    return Arguments(tuple(positional), keywords, open_ended, lent)


# ctx


def _context_method(walk: Walk, node: cst.Call, name: str) -> Value:
    """``ctx.name(...)``."""
    if name in autograd.CONTEXT_METHODS:
        arguments = _evaluate_arguments(walk, node, name)
        walk.record(
            ContextCall,
            node,
            method=name,
            arguments=arguments.positional,
            has_keywords=bool(arguments.keywords) or arguments.open_ended,
            statement=walk.statement,
        )
        return NONE
    context_attribute(walk, node, name, called=True)
    _evaluate_arguments(walk, node, f"ctx.{name}")
    return Opaque(node)


def _access_by_string(walk: Walk, node: cst.Call, builtin: str, arguments: Arguments) -> Value | None:
    """``getattr(x, "name", …)`` and the like; None for any other call."""
    owner, name = arguments.value(0), _name_in(arguments.value(1))
    if owner is None:
        return None
    if isinstance(owner, Context):
        return _context_access_by_string(walk, node, builtin, name, arguments)
    if builtin in ("setattr", "delattr"):
        _lend(walk.state, arguments)
    if builtin == "getattr" and name is not None and len(arguments.positional) == 2:
        return attribute_by_name(walk, node, owner, name)
    return None


def _context_access_by_string(
    walk: Walk, node: cst.Call, builtin: str, name: str | None, arguments: Arguments
) -> Value | None:
    """The same for the ctx."""
    if builtin == "hasattr":
        if name is not None and name not in autograd.CONTEXT_METHODS:  # which it only asks for
            context_attribute(walk, node, name, guarded=True)
        return Scalar("bool", node)
    if name is None or builtin == "vars":
        walk.record(Escape, node, how="stored", callee=f"builtins.{builtin}")
        return Opaque(node)
    if builtin == "getattr":  # other files are asked who sets the names that are written out
        written_out = isinstance(arguments.node(1), cst.SimpleString)
        return context_attribute(walk, node, name, guarded=len(arguments.positional) > 2 or not written_out)
    walk.repeated.effects += 1
    if builtin == "delattr":
        delete_context_attribute(walk, node, name)
    else:
        set_context_attribute(walk, node, name, arguments.value(2) or UNKNOWN, arguments.node(2))
    return NONE


_ACCESS_BY_STRING = frozenset(["delattr", "getattr", "hasattr", "setattr", "vars"])
"""Builtins that access an attribute by its name, or all of them."""


# Methods of values


def _method_call(walk: Walk, node: cst.Call, func: cst.Attribute, receiver: Value) -> Value:
    """``receiver.name(...)`` for a receiver that is not a module."""
    name = func.attr.value
    if is_whole_tuple(receiver):
        if not hasattr((), name):
            tuple_used(walk, node, receiver, func.value, f"`.{name}()`")
        _evaluate_arguments(walk, node, None)
        return Opaque(node)
    keeps = isinstance(receiver, Item) and isinstance(receiver.of, Imported)
    arguments = _evaluate_arguments(walk, node, f".{name}", keeps_context=keeps)
    if calls_loaded_extension(walk, func):
        read_by(walk, node, arguments, EXTENSION, dotted(func) or code_of(func))
    if _is_foreign(walk, node, func):
        walk.record(ForeignCall, node, arguments=(*arguments.positional, *arguments.keywords.values()))
    if any(is_mutable(option) for option in receiver.options()):
        return _container_method(walk, node, receiver, name, arguments)
    if not tensor_when_used(receiver):
        _lend(walk.state, arguments)
    if is_container(receiver) is Tri.YES:
        return Opaque(node)
    return tensor_method(walk, node, func, receiver, name, arguments)


def _is_foreign(walk: Walk, node: cst.Call, func: cst.Attribute) -> bool:
    """Whether a statement calls a method that tensors do not have, of what a name of the module is bound to."""
    line = walk.statement.body if isinstance(walk.statement, cst.SimpleStatementLine) else ()
    if not any(isinstance(each, cst.Expr) and each.value is node for each in line):
        return False
    name = root_name(func.value)
    return name is not None and not (
        name in walk.names.local or name in walk.state.names or hasattr([], func.attr.value)
    )


# Lists and dicts, and their aliases


def _container_method(walk: Walk, node: cst.Call, receiver: Value, name: str, arguments: Arguments) -> Value:
    """A method of a list, set or dict, or of one of several."""
    results: list[Value] = []

    def after(container: Value) -> Value:
        if isinstance(container, Mapping) and not arguments.open_ended:
            known = after_dict_method(container, name, arguments.positional, arguments.keywords, node)
            if known is not None:
                results.append(known[1])
                return known[0]
        if not isinstance(container, Sequence) or container.kind != "list":
            _lend(walk.state, arguments)
            results.append(Opaque(node))
            return unknown_content(container)
        changed, result = after_method(container, name, arguments.positional, node)
        results.append(result)
        return changed

    change_contents(walk, node, receiver, after)
    return join_all(results)


def _lend(state: State, arguments: Arguments) -> None:
    """Forget the contents of lists and dicts that are passed to code which may modify them."""
    for slot in (*arguments.positional, *arguments.keywords.values()):
        state.escape(slot.value)


# Methods of objects and of bases


def _instance_method(walk: Walk, node: cst.Call, receiver: ProjectObject, name: str) -> Value:
    """``receiver.name(...)`` for an object of a project class."""
    arguments = _evaluate_arguments(walk, node, f".{name}", lends_context=True)
    method = walk.resolver.method(receiver, name) if walk.resolver is not None else None
    held = dict(receiver.attributes).get(name) if method is None and receiver.attributes else None
    if held is not None and isinstance(held.value, ProjectFunction):
        return _call_value(walk, node, held.value, arguments)
    return _call_value(walk, node, method and method[0], arguments, method[1] if method else ())


def call_method(walk: Walk, node: cst.BaseExpression, receiver: ProjectObject, name: str, *more: Slot) -> Value | None:
    """What a method returns that Python calls by itself at ``node``; None if the method is unknown."""
    method = walk.resolver.method(receiver, name) if walk.resolver is not None else None
    if walk.resolver is None or method is None:
        return None
    arguments = Arguments((*(Slot(slot.value, node) for slot in method[1]), *more), {}, open_ended=False)
    known = walk.resolver.call(method[0], arguments.positional, {}, node, walk.state.attributes)
    return apply_summary(walk, node, known, arguments) if known is not None else None


def object_of(walk: Walk, value: Value) -> ProjectObject | None:
    """The object of a project class that a value is, by itself or as known from outside; None has no methods."""
    value = without(value, NONE) if isinstance(value, Choice) else value
    if isinstance(value, ProjectObject):
        return value
    from_outside = isinstance(value, (Argument, ContextAttribute, Parameter))
    known = walk.objects.get(value) if walk.objects and from_outside else None
    return known if isinstance(known, ProjectObject) else None


def _method_of_base(walk: Walk, node: cst.Call, base: cst.Call, name: str) -> Value:
    """``super().name(...)``, or ``super(Class, …).name(...)``."""
    arguments = _evaluate_arguments(walk, node, f"super().{name}", lends_context=True)
    owner = None
    if base.args:
        meant = certain_meaning(walk, base.args[0].value)
        owner = meant[len(LOCAL) :] if meant is not None and meant.startswith(LOCAL) else None
    elif walk.names.scope.parent is not None and walk.names.scope.parent.kind == "class":
        owner = walk.names.scope.parent.qualname
    function = walk.resolver.above(owner, name) if walk.resolver is not None and owner is not None else None
    return _call_value(walk, node, function, arguments)


def _call_value(
    walk: Walk, node: cst.Call, function: ProjectFunction | None, arguments: Arguments, receiver: tuple[Slot, ...] = ()
) -> Value:
    """A call of a function of the project as a value; None if it is unknown."""
    _lend(walk.state, arguments)
    passed = Arguments((*receiver, *arguments.positional), arguments.keywords, arguments.open_ended)
    found = _summary_of(walk, node, function, passed) if function is not None else None
    if found is None:
        if arguments.lends_context:
            walk.record(Escape, node, how="passed")
        walk.record(GenericCall, node, arguments=arguments.positional, statement=walk.statement)
        return Opaque(node)
    walk.record(MethodCall, node, definition=found[0], arguments=arguments.positional)
    return apply_summary(walk, node, found, arguments)


def _summary_of(
    walk: Walk, node: cst.Call, function: str | ProjectFunction, arguments: Arguments
) -> tuple[Definition, Summary] | None:
    """A function by its resolved name, or as a value, and its summary for a call."""
    if walk.resolver is None or arguments.open_ended:
        return None
    slots = tuple(handed_on(walk, each) for each in arguments.positional)
    keywords = {name: handed_on(walk, each) for name, each in arguments.keywords.items()}
    if isinstance(function, str):
        return walk.resolver.callee(function, slots, keywords, node, walk.state.attributes)
    return walk.resolver.call(function, slots, keywords, node, walk.state.attributes)


# Functions


def _function_call(walk: Walk, node: cst.Call, callee: str | None) -> Value:
    """A call of anything but a method of a value."""
    builtin = callee[len("builtins.") :] if callee is not None and callee.startswith("builtins.") else None
    keeps = builtin in python.CONTEXT_SAFE_BUILTINS or builtin in ("setattr", "delattr", "vars")
    arguments = _evaluate_arguments(walk, node, callee, keeps_context=keeps, lends_context=builtin is None)
    if builtin is None and (callee is None or not callee.startswith(operations.TORCH_NAMESPACES)):
        _lend(walk.state, arguments)
    if callee is None:
        launch(walk, node, arguments)
        return _call_bound(walk, node, arguments)
    if builtin == "super":
        walk.record(GenericCall, node, callee=callee, arguments=arguments.positional, statement=walk.statement)
    if builtin is not None:
        by_string = _access_by_string(walk, node, builtin, arguments) if builtin in _ACCESS_BY_STRING else None
        return by_string if by_string is not None else _builtin_call(walk, node, builtin, arguments)
    if callee.endswith(_LAUNCHING):
        launch_by_name(walk, node, callee, arguments)
    known = _callee(walk, node, callee, arguments)
    walk.record(
        GenericCall,
        node,
        callee=callee,
        arguments=arguments.positional,
        keywords=tuple(arguments.keywords.items()),
        statement=walk.statement,
        definition=known[0] if known is not None else None,
        replaceable=known is not None and _has_fallback(walk, node.func),
        custom=_custom_parameters(walk, known[0], arguments) if known is not None else frozenset(),
    )
    if known is None:
        if callee in WRAP_KERNELS:
            return arguments.value(0) or Opaque(node)
        if walk.resolver is not None and not (arguments.open_ended or callee.startswith(_NEVER_RESOLVED)):
            refused = walk.resolver.refused(callee, arguments.positional, arguments.keywords)
            walk.state.absent |= parameters_among(refused)
        if arguments.lends_context:
            walk.record(Escape, node, how="passed", callee=callee)
        if not _call_operator(walk, node, callee, arguments) and _is_compiled(walk, callee):
            read_by(walk, node, arguments, EXTENSION, dotted(node.func) or code_of(node.func))
        return _outside_function(walk, node, callee, arguments)
    return apply_summary(walk, node, known, arguments)


def _custom_parameters(walk: Walk, definition: Definition, arguments: Arguments) -> frozenset[str]:
    """What a ``GenericCall`` says of a function that gets what ctx keeps."""
    slots = (*arguments.positional, *arguments.keywords.values())
    if walk.resolver is None or not any(isinstance(each.value, ContextAttribute) for each in slots):
        return frozenset()
    return walk.resolver.custom_parameters(definition)


def _outside_function(walk: Walk, node: cst.Call, callee: str, arguments: Arguments) -> Value:
    """What a function returns that the project does not define, as far as its name shows."""
    if callee.startswith(LOCAL):
        return _method_of_attribute(walk, node, arguments)
    same = _same_function(callee, arguments)
    if same is not None:
        return same
    if walk.resolver is not None and not callee.startswith(_NEVER_RESOLVED):
        callee = walk.resolver.of_torch(callee) or callee
    return torch_function(walk, node, callee, arguments)


def _method_of_attribute(walk: Walk, node: cst.Call, arguments: Arguments) -> Value:
    """``Fn.buffer.copy_(x)``, for an attribute of a class that is in this file."""
    func = node.func
    if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Attribute):
        return Opaque(node)
    return tensor_method(walk, node, func, walk.peek(func.value), func.attr.value, arguments)


def _same_function(callee: str | None, arguments: Arguments) -> Value | None:
    """The function that a call returns with the same signature: ``torch.compile(f)``; None for any other call.

    A custom operator does what its function does.
    """
    at = _GIVING_FUNCTIONS.get(callee or "", 0 if callee in decorators.SIGNATURE_KEEPING_DECORATORS else None)
    given = arguments.value(at) if at is not None else None
    return given if is_function(given) else None


_GIVING_FUNCTIONS = {
    "functools.update_wrapper": 0,
    "typing.cast": 1,
    **dict.fromkeys(decorators.OPERATOR_DECORATORS, 1),
}
"""The functions that return a function that they get, or one like it, by the position of that."""


_MAKING_DECORATORS = decorators.SIGNATURE_KEEPING_DECORATORS | decorators.OPERATOR_DECORATORS
"""The functions that return decorators, if they get options."""


def _is_compiled(walk: Walk, callee: str) -> bool:
    return calls_extension(callee) or (walk.resolver is not None and walk.resolver.is_loaded(callee))


def _call_operator(walk: Walk, node: cst.Call, name: str, arguments: Arguments) -> bool:
    """Whether a call is one of a custom operator of the project: its function, or ``torch.ops.namespace.name``."""
    if walk.resolver is None or arguments.open_ended:
        return False
    if not name.startswith(_OPERATORS) and name.startswith(_NEVER_RESOLVED):
        return False
    called = walk.resolver.operator(name, arguments.positional, arguments.keywords, node)
    if called is not None:
        record_reads(walk, node, called.name, called.reads, arguments)
        record_writes(walk, node, called.name, called.writes, arguments)
    return called is not None


def _call_bound(walk: Walk, node: cst.Call, arguments: Arguments) -> Value:
    """A call of what a name is bound to: a partial function, a lambda, a function inside the method."""
    chosen = _result_of_either(walk, node, arguments)
    if chosen is not None:
        walk.record(GenericCall, node, arguments=arguments.positional, statement=walk.statement)
        return chosen
    found = _summary_of_bound(walk, node, arguments)
    if found is None:
        func = node.func
        maker = canonical(walk, func.func) if isinstance(func, cst.Call) else None
        if maker in _MAKING_DECORATORS and is_function(arguments.value(0)):
            return arguments.value(0) or Opaque(node)
        if arguments.lends_context or (isinstance(func, cst.Name) and sees_context(walk, walk.bound(func.value))):
            walk.record(Escape, node, how="passed")
        walk.record(GenericCall, node, arguments=arguments.positional, statement=walk.statement)
        return Opaque(node, walk.bound(func.value) if isinstance(func, cst.Name) else None)
    return apply_summary(walk, node, found, arguments)


def _summary_of_bound(walk: Walk, node: cst.Call, arguments: Arguments) -> tuple[Definition, Summary] | None:
    if walk.resolver is None:
        return None
    if isinstance(node.func, cst.Subscript):
        return _summary_of_either(walk, node, list(walk.peek(node.func).options()), arguments)
    if not isinstance(node.func, cst.Name):
        return None
    name, scope = node.func.value, walk.names.scope
    made = walk.bound(name)
    if isinstance(made, Parameter) and isinstance(walk.objects.get(made), ProjectFunction):
        made = walk.objects[made]
    if isinstance(made, Opaque):
        return _partial_of_method(walk, made.node, node, arguments)
    if isinstance(made, ProjectObject):
        method = walk.resolver.method(made, "__call__")
        passed = Arguments((*method[1], *arguments.positional), arguments.keywords, False) if method else arguments
        return _summary_of(walk, node, method[0], passed) if method and not arguments.open_ended else None
    if isinstance(made, Scalar):
        made = function_of(walk, made, name) if scope.qualname else None
    if isinstance(made, ProjectFunction):
        return _summary_of(walk, node, made, arguments)
    if isinstance(made, Choice):
        return _summary_of_either(walk, node, list(made.alternatives), arguments)
    owner = scope.owner(name) if name not in walk.state.names and name not in walk.names.local else None
    return _summary_of(walk, node, LOCAL + name, arguments) if owner is not None and owner.kind == "module" else None


def _partial_of_method(
    walk: Walk, made: cst.CSTNode | None, node: cst.Call, arguments: Arguments
) -> tuple[Definition, Summary] | None:
    """The summary of what ``functools.partial`` made of a function of the project, in the same method."""
    if walk.resolver is None or not isinstance(made, cst.Call) or not made.args:
        return None
    function, *preset = made.args
    name = certain_meaning(walk, function.value)
    if certain_meaning(walk, made.func) != "functools.partial" or name is None or name.startswith(_NEVER_RESOLVED):
        return None
    if any(each.star for each in made.args):
        return None
    bound = [(each.keyword, _plain_slot(walk, each.value)) for each in preset]
    keywords = {keyword.value: slot for keyword, slot in bound if keyword is not None}
    positional = tuple(slot for keyword, slot in bound if keyword is None)
    slots = (*positional, *arguments.positional)
    return _summary_of(walk, node, name, Arguments(slots, {**keywords, **arguments.keywords}, arguments.open_ended))


def _plain_slot(walk: Walk, node: cst.BaseExpression) -> Slot:
    """What a name or a literal holds; nothing is known of what any other expression gave before."""
    plain = isinstance(node, (cst.Name, cst.BaseNumber, cst.SimpleString))
    return Slot(walk.evaluate(node) if plain else Opaque(node), node)


def _callee(walk: Walk, node: cst.Call, name: str, arguments: Arguments) -> tuple[Definition, Summary] | None:
    """A project function and its summary for this call, if the name certainly denotes one."""
    if name.startswith(_NEVER_RESOLVED) or name in operations.WRITING_FUNCTIONS:
        return None
    if walk.resolver is None or arguments.open_ended:
        return None
    names = dict.fromkeys(meanings(walk, node.func))
    found = _summary_of_either(
        walk, node, [Imported(each) if each is not None else UNKNOWN for each in names], arguments
    )
    if found is None and len(names) == 1 and not any(each.star for each in node.args):
        misfit = walk.resolver.call_misfit(name, len(arguments.positional), arguments.keywords)
        if misfit is not None:
            wrapped = bool(misfit.missing) and _passes_tuple(node, misfit.takes)
            results = misfit.results if _number_of_targets(walk, node) not in (None, misfit.results) else 0
            walk.record(MisfitCall, node, misfit=changed(misfit, wrapped=wrapped, results=results))
    return found


def _has_fallback(walk: Walk, func: cst.BaseExpression) -> bool:
    """Whether an ``except`` clause binds the name of a function to another one."""
    root = root_name(func)
    return root is not None and walk.resolver is not None and walk.resolver.has_fallback(root, walk.names.scope)


def _number_of_targets(walk: Walk, call: cst.Call) -> int | None:
    """Into how many targets the statement that is being walked unpacks a call; None if that is unknown, or not so."""
    line = walk.statement.body if isinstance(walk.statement, cst.SimpleStatementLine) else ()
    found = next((each for each in line if isinstance(each, cst.Assign) and each.value is call), None)
    target = found.targets[0].target if found is not None else None
    parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return None if any(isinstance(each, cst.StarredElement) for each in parts) else len(parts) or None


def _passes_tuple(call: cst.Call, size: int) -> bool:
    """Whether the only argument of a call is a tuple of this size, as written."""
    only = call.args[0].value if len(call.args) == 1 else None
    return isinstance(only, cst.Tuple) and len(only.elements) == size


def _summary_of_either(
    walk: Walk, node: cst.Call, functions: list[Value], arguments: Arguments
) -> tuple[Definition, Summary] | None:
    """What a call of one of several functions does."""
    if len(functions) > _MOST_FUNCTIONS or not functions:
        return None
    found: list[tuple[Definition, Summary] | None] = []
    for each in functions:
        function = function_of(walk, each) if isinstance(each, Scalar) and walk.names.scope.qualname else each
        known = isinstance(function, ProjectFunction)
        known = known or (isinstance(function, Imported) and not function.name.startswith(_NEVER_RESOLVED))
        if not known or not isinstance(function, (Imported, ProjectFunction)):
            return None
        meant = function.name if isinstance(function, Imported) else function
        found.append(_summary_of(walk, node, meant, arguments))
        if found[-1] is None:
            return None
    return either(found)


def _result_of_either(walk: Walk, node: cst.Call, arguments: Arguments) -> Value | None:
    """What a name gives that stands for one of several functions, ``torch.clone`` among them; None if it is unknown.

    None of them writes to a tensor, or to the ctx.
    """
    made = walk.bound(node.func.value) if isinstance(node.func, cst.Name) else None
    if not isinstance(made, Choice) or arguments.open_ended or not any(map(_is_pure, made.alternatives)):
        return None
    if arguments.keywords or len(made.alternatives) > _MOST_FUNCTIONS:
        return None
    results: list[Value] = []
    for each in made.alternatives:
        found = None if _is_pure(each) else _summary_of_either(walk, node, [each], arguments)
        if isinstance(each, Imported) and _is_pure(each):
            walk.recorder.muted += 1
            results.append(torch_function(walk, node, each.name, arguments))
            walk.recorder.muted -= 1
        elif found is None or found[1] != Summary(found[1].returned):
            return None
        else:
            results.append(found[1].returned)
    return join_all(results)


def _is_pure(function: Value) -> bool:
    """Whether it is a function of torch that only computes a tensor, unless keywords tell it to write."""
    if not isinstance(function, Imported):
        return False
    space, _, name = function.name.rpartition(".")
    return f"{space}." in operations.TORCH_NAMESPACES and name in _PURE


_PURE = (operations.TORCH_SINGLE | operations.TORCH_VIEWS) - operations.INPLACE_FUNCTIONS


def _builtin_call(walk: Walk, node: cst.Call, name: str, arguments: Arguments) -> Value:
    first = arguments.value(0)
    if name in python.UNFATHOMABLE_BUILTINS:
        walk.complete = False
    if name in python.NUMBER_BUILTINS:
        saved_tuple_given(walk, node, name, arguments.positional[:1])
    if name in ("tuple", "list"):
        if first is None:
            return Sequence(name, (), node) if not arguments.positional else Opaque(node)
        return as_sequence(first, name, node)
    if name == "next":
        return _first_of(walk, node, arguments)
    if name == "dict":
        more = () if not arguments.positional and not arguments.open_ended else (Slot(UNKNOWN, starred=True),)
        return Mapping((*arguments.keywords.values(), *more), node, () if more else tuple(arguments.keywords))
    if name in _MAKERS:
        return unknown_many(_MAKERS[name], node)
    if name in python.BUILTIN_SCALARS:
        return Scalar(python.BUILTIN_SCALARS[name], node)
    if name in ("abs", "pow", "round") and first is not None and tensor_when_used(first):
        return Fresh(node, kind_of(first))
    return Opaque(node)


def _first_of(walk: Walk, node: cst.Call, arguments: Arguments) -> Value:
    """``next(iter(values))`` and ``next(generator())``: the first element; a name may stand for an iterator in use."""
    value, given = arguments.value(0), arguments.node(0)
    if not isinstance(given, cst.Call) or len(arguments.positional) != 1:
        return Opaque(node)
    if canonical(walk, given.func) == "builtins.iter" and len(given.args) == 1 and not given.args[0].star:
        value = walk.peek(given.args[0].value)
    if not isinstance(value, Sequence) or value.kind == "set" or not value.slots:
        return Opaque(node)
    return value.slots[0].value if not value.slots[0].starred else iterated_item(value, node)


_MOST_FUNCTIONS = 8
"""A call of more functions than this is unknown."""

_LAUNCHING = (".run", "warp.launch", "warp.launch_tiled", TILE_LAUNCH)
"""How the names of functions end that launch a kernel."""

_OPERATORS = "torch.ops."

_NEVER_RESOLVED = ("torch.", "builtins.", ".torch.")
"""Prefixes of names that are never those of project functions."""

_MAKERS = {
    "sorted": "list",
    "set": "set",
    "frozenset": "set",
    **dict.fromkeys(("reversed", "zip", "enumerate", "map", "filter"), "generator"),
}
"""Builtins that create an iterable, by its kind."""
