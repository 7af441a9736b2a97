"""Names of a method: their values, their resolution, their bindings, and nested definitions that capture them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.python_names import is_always_bound
from ctxlint.model.index.scopes import LOCAL, resolutions
from ctxlint.model.interpreter.events import (
    Assigned,
    ContextLent,
    ContextRead,
    Escape,
    MaybeUnbound,
    UnboundContext,
    UndefinedRead,
)
from ctxlint.model.interpreter.local_names import rebound_from_inside
from ctxlint.model.interpreter.sequences import is_mutable, literal, unknown_content
from ctxlint.model.interpreter.values import (
    CONTEXT,
    NONE,
    UNBOUND,
    UNKNOWN,
    Context,
    Imported,
    Opaque,
    SavedTensors,
    Scalar,
    Slot,
    Value,
    constant,
    without,
)
from ctxlint.model.syntax import children, dotted
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.local_names import Definition
    from ctxlint.model.interpreter.walk import MethodNames, Walk


def evaluate_name(walk: Walk, node: cst.Name) -> Value:
    """``x``, or ``None``, ``True`` or ``False``."""
    name = node.value
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    walk.names.read.add(name)
    value = walk.bound(name)
    if value is not None:
        bound = without(value, UNBOUND) if value is not UNBOUND else Opaque(node)
        if bound is not value:
            walk.record(MaybeUnbound, node, name=name)
        return bound
    if name in walk.names.local:
        walk.record(MaybeUnbound, node, name=name)
        return Opaque(node)
    return _global_name(walk, name, node)


_CONSTANTS = {"None": NONE, "True": constant(True), "False": constant(False)}


def _global_name(walk: Walk, name: str, node: cst.CSTNode) -> Value:
    """The value of a name that the method does not bind: from an enclosing function, the module or a builtin."""
    owner = walk.names.scope.owner(name)
    if owner is None:
        if name == "ctx" and not walk.names.star_may_bind_ctx:
            walk.record(UnboundContext, node, name=name)
            return CONTEXT  # the author's intention
        found = _resolutions(walk, name)
        if found and found[0] is not None:
            return Imported(found[0])
        if not is_always_bound(name) and not is_behind_a_switch(walk):
            walk.record(UndefinedRead, node, name=name)
        return Opaque(node)
    bounds = owner.live(name)
    if len(bounds) == 1 and not bounds[0].conditional and bounds[0].value is not None and owner.kind == "module":
        if name not in walk.names.constants:
            walk.names.constants[name] = _known_of_module(walk, name, bounds[0].value)
        known = walk.names.constants[name]
        if known is not None or isinstance(bounds[0].value, (ast.Call, ast.Dict)):
            return known or Opaque(node)
    if owner.kind == "function" and walk.resolver is not None:
        instance = walk.resolver.surrounding(owner, name)
        if instance is not None:
            return instance
    target = next((each for each in resolutions(name, walk.names.scope) if each is not None), None)
    if target is None:
        return Opaque(node)
    if name not in walk.names.constants:
        walk.names.constants[name] = walk.resolver.imported_constant(name) if walk.resolver is not None else None
    return walk.names.constants[name] or Imported(target)


def is_behind_a_switch(walk: Walk) -> bool:
    """Whether a test around is about a constant of the module, which may never be set: ``use_cupy = False``."""
    return any(_is_constant(walk, word) for word in {word for guard in walk.state.guards for word in guard.words})


def _is_constant(walk: Walk, word: str) -> bool:
    """Whether a module binds a name to a constant, here or where it is imported from."""
    owner = walk.names.scope.owner(word)
    bounds = owner.names[word] if owner is not None and owner.kind == "module" else []
    if any(each.kind == "import" for each in bounds) and walk.resolver is not None:
        return walk.resolver.imported_constant(word) is not None
    return any(isinstance(each.value, ast.Constant) for each in bounds)


def _known_of_module(walk: Walk, name: str, bound: ast.expr) -> Value | None:
    """The constant, the dict of functions or the object that a module certainly binds to a name."""
    known = literal(bound)
    if known is None and isinstance(bound, ast.Dict) and walk.resolver is not None:
        return walk.resolver.table(LOCAL + name)
    if known is None and isinstance(bound, ast.Call) and walk.resolver is not None:
        return walk.resolver.instance(LOCAL + name)
    return known


def canonical(walk: Walk, node: cst.BaseExpression) -> str | None:
    """The dotted name that an expression means, with imports resolved; None for any other expression.

    Where a condition decides between several, it is the first that could be resolved.
    """
    return next((each for each in meanings(walk, node) if each is not None), None)


def meanings(walk: Walk, node: cst.BaseExpression) -> list[str | None]:
    """Every dotted name that an expression may mean; None among them for what cannot be resolved."""
    path = dotted(node)
    if path is None:
        return []
    head, _, rest = path.partition(".")
    bound = walk.bound(head)
    if isinstance(bound, Imported):
        return [f"{bound.name}.{rest}" if rest else bound.name]
    if bound is not None or head in walk.names.local:
        return []
    return _resolutions(walk, path)


def _resolutions(walk: Walk, path: str) -> list[str | None]:
    """What a name that the method does not bind may mean; the project knows what star imports bind."""
    found = resolutions(path, walk.names.scope)
    if found != [None] or walk.resolver is None:
        return found
    head, _, rest = path.partition(".")
    if walk.names.scope.owner(head) is not None:
        return found
    name = walk.resolver.unbound(head)
    return [f"{name}.{rest}" if name is not None and rest else name]


def certain_meaning(walk: Walk, node: cst.BaseExpression) -> str | None:
    """The dotted name that an expression certainly means; None where there are several, or none is known."""
    found = set(meanings(walk, node))
    return found.pop() if len(found) == 1 else None


def bind_name(
    walk: Walk,
    target: cst.Name,
    value: Value,
    statement: cst.CSTNode | None,
    value_node: cst.BaseExpression | None = None,
) -> None:
    """Bind a name; the other arguments are those of ``assign_target``."""
    name = target.value
    walk.repeated.effects += 1
    walk.state.names[name] = _seen_by_others(walk.names, name, value)
    walk.record(Assigned, target, name=name, value=value, value_node=value_node, statement=statement)
    if isinstance(value, SavedTensors) and not value.sliced:
        walk.recorder.amend_saved_read(lambda read: replace(read, bound_to=name), None)


def _seen_by_others(names: MethodNames, name: str, value: Value) -> Value:
    """The value of a name after it is bound, given that nested definitions can access it, too."""
    if name in names.rebound:
        return UNKNOWN
    if name in names.borrowed and is_mutable(value):
        return unknown_content(value)
    return value


def evaluate_lambda(walk: Walk, node: cst.Lambda) -> Value:
    """``lambda``."""
    captured(walk, node)
    return Scalar("callable", node)


def captured(walk: Walk, node: Definition) -> None:
    """A nested definition: it is not walked, but the names that it captures are recorded, ctx among them.

    It may run at any time: the names that it binds, and the contents of the lists that it sees, are unknown from here
    on.
    """
    walk.repeated.effects += 1
    names = walk.names.borrowed_by(node)
    walk.names.read.update(names)
    walk.names.borrowed.update(names)
    walk.names.rebound.update(rebound_from_inside(node))
    bound = sorted(names & walk.state.names.keys())
    values = [walk.state.names[name] for name in bound]
    contexts = frozenset(name for name, value in zip(bound, values) if sees_context(walk, value))
    if contexts:
        _captured_context(walk, node, contexts)
    for value in values:
        walk.state.escape(value)
    for name in walk.names.rebound & walk.state.names.keys():
        walk.state.names[name] = UNKNOWN


def function_of(walk: Walk, value: Value, name: str = "", around: frozenset[str] = frozenset()) -> Value | None:
    """A function that the method defines, with what it captures now; ``name`` is that of a lambda. None if unknown."""
    if not isinstance(value, Scalar) or value.sort != "callable" or walk.resolver is None:
        return None
    node = value.node
    if isinstance(node, cst.FunctionDef):
        name = node.name.value
    if not isinstance(node, (cst.FunctionDef, cst.Lambda)) or name in around:
        return None
    captured = []
    for each in sorted(walk.names.borrowed_by(node) & walk.state.names.keys()):
        held = walk.bound(each) or UNBOUND
        if isinstance(held, Scalar) and held.sort == "callable":
            function = function_of(walk, held, each, around | {name})
            if function is None and sees_context(walk, held):
                return None
            held = function or Opaque(node)
        captured.append((each, Slot(Opaque(node) if UNBOUND in held.options() else held)))
    around_it = walk.names.scope.qualname
    if isinstance(node, cst.Lambda) and not name:
        return walk.resolver.anonymous(around_it, node, tuple(captured))
    return walk.resolver.nested(around_it, name, tuple(captured), defined=isinstance(node, cst.FunctionDef))


def sees_context(walk: Walk, value: Value | None, around: frozenset[str] = frozenset()) -> bool:
    """Whether it is the ctx, or a function of the method that captures it, or calls one that does."""
    if isinstance(value, Context):
        return True
    node = value.node if isinstance(value, Scalar) and value.sort == "callable" else None
    if not isinstance(node, cst.FunctionDef) or node.name.value in around:
        return False
    inner = around | {node.name.value}
    names = walk.names.borrowed_by(node)
    return any(sees_context(walk, walk.bound(each), inner) for each in names)


def handed_on(walk: Walk, slot: Slot) -> Slot:
    """An argument for a function of the project: of a function, what it captures."""
    if not isinstance(slot.value, Scalar) or slot.value.sort != "callable":
        return slot
    name = slot.node.value if isinstance(slot.node, cst.Name) else ""
    return Slot(function_of(walk, slot.value, name) or slot.value, slot.node, slot.starred)


def _captured_context(walk: Walk, node: Definition, contexts: frozenset[str]) -> None:
    """The ctx is captured under these names: it escapes, unless it is by a lambda that only reads attributes of it."""
    if isinstance(node, cst.FunctionDef) and walk.names.is_only_called(node):
        walk.record(ContextLent, node)
        return
    reads = list(_attributes_of(node.body, contexts)) if isinstance(node, cst.Lambda) else [None]
    if None in reads:
        walk.record(Escape, node, how="captured")
        return
    walk.record(ContextLent, node)
    for read in reads:
        if read is not None:  # it happens later, if at all
            name = read.attr.value
            walk.record(ContextRead, read, attribute=name, guarded=True, own=name in walk.state.attributes)


def _attributes_of(node: cst.CSTNode, names: frozenset[str]) -> Iterator[cst.Attribute | None]:
    """Where an expression reads an attribute of one of these names; None for any other use."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _is_one_of(node.func.value, names):
        yield None
    elif isinstance(node, cst.Attribute) and _is_one_of(node.value, names):
        yield None if node.attr.value in _NOT_JUST_READ else node
    elif _is_one_of(node, names):
        yield None
    else:
        for child in children(node):
            yield from _attributes_of(child, names)


def _is_one_of(node: cst.CSTNode, names: frozenset[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names


_NOT_JUST_READ = frozenset(
    [*autograd.CONTEXT_METHODS, "saved_tensors", "saved_variables", "saved_for_forward", "needs_input_grad", "__dict__"]
)


def evaluate_walrus(walk: Walk, node: cst.NamedExpr) -> Value:
    """``name := value``."""
    value = walk.evaluate(node.value)
    if isinstance(node.target, cst.Name):
        walk.walrus_names.add(node.target.value)
        bind_name(walk, node.target, value, node, node.value)
    return value
