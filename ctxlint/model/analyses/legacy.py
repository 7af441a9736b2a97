"""Functions in the style before torch 1.5, which keep their state on ``self``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.function import Binding, ContextRead, ContextWrite
from ctxlint.model.syntax import children, dotted
from ctxlint.torch_api import autograd
from ctxlint.torch_api.autograd import PROTOCOL, READ_ONLY_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from ctxlint.model.function import FunctionClass, Method


def legacy_state(
    methods: Mapping[str, Method],
    overridden: Callable[[], Iterable[Method]],
    stored: AbstractSet[str],
    is_called: Callable[[], bool],
) -> str | None:
    """Where the state is, in words: set in ``__init__``, or from outside. None for a modern Function.

    Attributes that the protocol methods store on ``self`` are no such state: with ``apply``, ``self`` is a ctx of
    another name. An attribute that is read but set by no method counts only if an instance is called, which
    ``is_called`` decides. Only methods that are not static count, and only if the parameter in ctx's place has the name
    of an instance, ``self`` or the one in ``__init__``: a static ``forward(self, x)`` merely has an odd name for its
    ctx. ``overridden`` gives the methods of the base classes, which ``super()`` calls; ``stored`` are the attributes
    that the file sets.
    """
    walked = [methods[name] for name in ("forward", "backward") if name in methods]
    instances = [method for method in walked if method.binding is Binding.INSTANCE and method.ctx is not None]
    initial = methods.get("__init__")
    set_by_init = attributes_set_by(initial)
    if instances and initial is not None and _calls_super(initial):
        above = (attributes_set_by(each) for each in overridden() if each.name == "__init__")
        set_by_init = set_by_init.union(*above)
    read = [each for method in instances if set_by_init for each in _read_of(set_by_init, method, methods, overridden)]
    if read:
        replaced = {write.attribute for method in walked for write in method.facts.of(ContextWrite)}
        instance, attribute = min(read, key=lambda each: each[1] in replaced)
        return f"`__init__` sets `{instance}.{attribute}`"
    filled_in = _filled_in(instances, methods)
    if filled_in is not None and is_called():
        return filled_in
    sets_any = _sets_any(methods.get("__init__"))
    return _set_elsewhere(instances, methods, None if sets_any else stored, is_called)


def _read_of(
    set_by_init: AbstractSet[tuple[str, str]],
    method: Method,
    methods: Mapping[str, Method],
    overridden: Callable[[], Iterable[Method]],
) -> Iterator[tuple[str, str]]:
    """What ``__init__`` sets, and a method reads, a method that it calls, or the method that it overrides."""
    instance = {attribute: instance for instance, attribute in set_by_init}
    name = method.ctx.name if method.ctx is not None else ""
    is_instance = name in ("self", *instance.values())
    for attribute in _attributes_read(method, name):
        if is_instance and attribute in instance:
            yield instance[attribute], attribute
        elif attribute in methods:
            yield from ((instance[each], each) for each in _state_read(methods[attribute], set(instance)))
    for above in overridden() if _calls_super(method) else ():
        if above.name == method.name:
            yield from ((instance[each], each) for each in _state_read(above, set(instance)))


def _set_elsewhere(
    instances: Iterable[Method],
    methods: Mapping[str, Method],
    stored: AbstractSet[str] | None,
    is_called: Callable[[], bool],
) -> str | None:
    """Which attribute that the file sets, but no method of the class, a method reads; None: it may set any."""
    legacy = [method for method in instances if method.ctx is not None and method.ctx.name == "self"]
    known = autograd.FUNCTION_CTX_ATTRIBUTES | autograd.CONTEXT_METHODS | methods.keys()
    known |= {write.attribute for method in legacy for write in method.facts.of(ContextWrite)}
    for method in legacy:
        for read in method.facts.of(ContextRead):
            may_be_set = (stored is None or read.attribute in stored) and read.attribute not in known
            if may_be_set and not read.own and is_called():
                return f"`{method.name}` reads `self.{read.attribute}`"
    return None


def _filled_in(instances: Iterable[Method], methods: Mapping[str, Method]) -> str | None:
    """Which method of the class an inherited ``forward`` or ``backward`` calls on ``self``: no ctx has one."""
    for method in instances:
        name = method.ctx.name if method.ctx is not None else ""
        for attribute in _attributes_read(method, name) if method.inherited and name == "self" else ():
            if attribute in methods and methods[attribute].binding is Binding.INSTANCE:
                return f"`{method.name}` calls `self.{attribute}`"
    return None


def may_mean_an_instance(fn: FunctionClass) -> bool:
    """Whether a method reads of ``self`` what only the instances of a subclass may have."""
    walked = [method for method in fn.own_protocol_methods if method.binding is Binding.INSTANCE]
    known = autograd.FUNCTION_CTX_ATTRIBUTES | autograd.CONTEXT_METHODS | fn.stored_attributes
    return fn.has_subclass and any(
        attribute not in known
        for method in walked
        if method.ctx is not None and method.ctx.name == "self"
        for attribute in _attributes_read(method, "self")
    )


def runs_own_forward(fn: FunctionClass) -> Method | None:
    """A method that calls ``self.forward(...)``, past autograd: ``__call__`` of a class used like a module."""
    for method in fn.methods.values():
        instance = _instance_of(method) if method.binding is Binding.INSTANCE else None
        if instance is None or method.inherited or method.name in PROTOCOL:
            continue
        if any(dotted(call.func) == f"{instance}.forward" for call in method.nodes_of(cst.Call)):
            return method
    return None


def is_called_on_instance(fn: FunctionClass, method: Method) -> bool:
    """Whether all known direct calls of a method are on instances that the project creates: ``F().forward(x)``."""
    hows = {call.how for call in fn.calls if call.how != "direct" or call.method == method.name}
    by_hand = method.name in fn.called_directly and method.receiver is None
    return by_hand and "construct" in hows and "direct" not in hows and not fn.has_subclass


def is_called_as_instance(fn: FunctionClass) -> bool:
    """Whether the calls in view are of instances, and none is of ``apply``: torch raises before it calls any method."""
    return not fn.applied and any(call.how == "construct-call" or call.instance_called for call in fn.calls)


def _calls_super(method: Method) -> bool:
    return any(node.value == "super" for node in method.nodes_of(cst.Name))


def _attributes_read(method: Method, instance: str) -> Iterator[str]:
    """The attributes of the instance that a method reads; by name alone if its body was not walked (outlines)."""
    if method.facts.complete:
        return (read.attribute for read in method.facts.of(ContextRead))
    return _attributes_named(method, instance)


def _attributes_named(method: Method, instance: str) -> Iterator[str]:
    return (node.attr.value for node in method.nodes_of(cst.Attribute) if dotted(node.value) == instance)


def _state_read(helper: Method, attributes: set[str]) -> Iterator[str]:
    """The attributes among ``attributes`` that a method of the instance reads."""
    if helper.binding is Binding.INSTANCE and helper.params:
        yield from (each for each in _attributes_named(helper, helper.params[0].name) if each in attributes)


def read_only_attribute(fn: FunctionClass) -> str | None:
    """The read-only attribute that ``__init__`` always sets, so that no instance can be created; None without one."""
    initial = fn.methods.get("__init__")
    if initial is None or not initial.params or not isinstance(initial.node.body, cst.IndentedBlock):
        return None
    lines = (each for each in initial.node.body.body if isinstance(each, cst.SimpleStatementLine))
    found = (attribute for line in lines for owner, attribute in _targets(line) if owner == initial.params[0].name)
    return next((each for each in found if each in READ_ONLY_ATTRIBUTES and each not in fn.class_attributes), None)


def attributes_set_by(initial: Method | None) -> frozenset[tuple[str, str]]:
    """What ``__init__`` sets on the instance: pairs of the instance's name and an attribute."""
    if initial is None or (instance := _instance_of(initial)) is None:
        return frozenset()
    names = {instance, *_copied_to(initial, instance)}
    return frozenset(each for each in _targets(initial.node.body) if each[0] in names)


def _instance_of(method: Method) -> str | None:
    parameters = method.node.params
    first = (*parameters.posonly_params, *parameters.params)[:1]
    return first[0].name.value if first else None


def _copied_to(method: Method, instance: str) -> Iterator[str]:
    """The other names that a method gives the instance: ``ctx = self``."""
    for node in method.nodes_of(cst.Assign):
        if isinstance(node.value, cst.Name) and node.value.value == instance:
            yield from (each.target.value for each in node.targets if isinstance(each.target, cst.Name))


def _sets_any(initial: Method | None) -> bool:
    """Whether ``__init__`` sets attributes whose names are not known: ``setattr(self, name, value)``."""
    instance = _instance_of(initial) if initial is not None else None
    if initial is None or instance is None:
        return False
    return any(dotted(node) == f"{instance}.__dict__" for node in initial.nodes_of(cst.Attribute)) or any(
        isinstance(node.func, cst.Name)
        and node.func.value in ("setattr", "vars")
        and bool(node.args)
        and dotted(node.args[0].value) == instance
        for node in initial.nodes_of(cst.Call)
    )


def _targets(node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    for child in children(node):
        if isinstance(child, (cst.AssignTarget, cst.AnnAssign)):
            target = child.target
            parts = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
            for each in parts:
                if isinstance(each, cst.Attribute) and isinstance(each.value, cst.Name):
                    yield each.value.value, each.attr.value
        else:
            yield from _targets(child)
