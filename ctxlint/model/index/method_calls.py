"""The calls of a method of a class in a file: on ``super()``, ``self``, an attribute of it, or a local name."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.results import class_around
from ctxlint.model.index.scopes import LOCAL, dotted_name, is_on_self, resolve
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ctxlint.model.index.file_index import CallRecord, ClassRecord, FileIndex
    from ctxlint.model.index.scopes import Scope

    IsMeant = Callable[[str | None], bool]
    """Whether a resolved name is that of the class."""


def calls_of_method(index: FileIndex, is_meant: IsMeant, owner: str, method: str) -> Iterator[CallRecord]:
    """The calls in a file that certainly run a method of a class, unless a subclass elsewhere replaces it.

    ``owner`` is the name of the class; ``forward`` is what an instance that is called runs.
    """
    for call in index.calls_named(frozenset([method])):
        func = call.node.func
        if isinstance(func, ast.Attribute) and _gives_method(func.value, method, call.scope, index, is_meant):
            yield call
    if method != "forward":
        return
    made = index.names_for([last_name(owner.removeprefix(LOCAL))])
    if any(True for _ in index.calls_named(made)):
        for maker, calls in _calls_of_instances(index).items():
            if is_meant(maker):
                yield from calls


def _gives_method(receiver: ast.expr, method: str, scope: Scope, index: FileIndex, is_meant: IsMeant) -> bool:
    """Whether ``receiver.method`` is that of the class: of ``super()``, ``self``, an instance, or the class itself."""
    around = class_around(scope)
    record = index.classes.get(around) if around is not None else None
    if isinstance(receiver, ast.Call):
        of_super = isinstance(receiver.func, ast.Name) and receiver.func.id == "super"
        return of_super and record is not None and _is_first_base(record, is_meant)
    if isinstance(receiver, ast.Name) and receiver.id == "self" and record is not None:
        inherits = method not in record.body.names and _is_first_base(record, is_meant)
        return inherits or is_meant(f"{LOCAL}{record.qualname}")
    path = dotted_name(receiver)
    if path is not None and is_meant(resolve(path, scope)):
        return True
    maker = _maker_of_instance(receiver, scope, _attributes_of(index)) if path is not None else None
    return maker is not None and is_meant(maker)


def _attributes_of(index: FileIndex) -> Mapping[tuple[str, str], str]:
    """The attributes of ``self`` that are only ever an instance, by the class around: the class that makes it."""
    if _attributes_of not in index.notes:
        index.notes[_attributes_of] = {
            (name, attribute): maker
            for name, record in index.classes.items()
            for attribute, maker in _instances_on_self(record)
        }
    known: Mapping[tuple[str, str], str] = index.notes[_attributes_of]
    return known


def _is_first_base(record: ClassRecord, is_meant: IsMeant) -> bool:
    """Whether a class certainly has the class as its first base."""
    return bool(record.bases) and len(record.bases[0]) == 1 and is_meant(record.bases[0][0])


def _calls_of_instances(index: FileIndex) -> dict[str, list[CallRecord]]:
    """The calls in a file that call an instance, by the resolved name of the class that makes it."""
    if _calls_of_instances not in index.notes:
        attributes = _attributes_of(index)
        hooked = {_receiver(call) for call in index.calls_named(_HOOKS)}
        found: dict[str, list[CallRecord]] = {}
        for part in index.parts or (index,):
            for call in part.calls:
                maker = _maker_of_instance(call.node.func, call.scope, attributes)
                if maker is not None and dotted_name(call.node.func) not in hooked:
                    found.setdefault(maker, []).append(call)
        index.notes[_calls_of_instances] = found
    known: dict[str, list[CallRecord]] = index.notes[_calls_of_instances]
    return known


def changes_calls(record: ClassRecord) -> bool:
    """Whether a call of an instance may give something else than its ``forward`` returns."""
    attributes = (each for each in nodes_in(record.node) if isinstance(each, ast.Attribute))
    return "__call__" in record.body.names or any(is_on_self(each) and each.attr in _HOOKS for each in attributes)


_HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})
"""Methods of modules that change what a call of the module gives."""


def _receiver(call: CallRecord) -> str:
    """The object whose method a call calls; empty if it has no name."""
    func = call.node.func
    return dotted_name(func.value) or "" if isinstance(func, ast.Attribute) else ""


def _instances_on_self(record: ClassRecord) -> Iterator[tuple[str, str]]:
    """The attributes of ``self`` only ever assigned an instance, ``self.base = Linear()``, and its class."""
    nodes = nodes_in(record.node)
    stored = Counter(each.attr for each in nodes if is_on_self(each) and not isinstance(each.ctx, ast.Load))
    for node in nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.Assign) and target is not None and is_on_self(target) and stored[target.attr] == 1:
            maker = _maker(node.value, record.body)
            if maker is not None:
                yield target.attr, maker


def _maker(node: ast.expr, scope: Scope) -> str | None:
    """The resolved name of what a call calls; None for another expression."""
    path = dotted_name(node.func) if isinstance(node, ast.Call) else None
    return resolve(path, scope) if path is not None else None


def _maker_of_instance(node: ast.expr, scope: Scope, attributes: Mapping[tuple[str, str], str]) -> str | None:
    """What makes an instance: that of an attribute of ``self``, of a local name, or a new one."""
    if is_on_self(node):
        return attributes.get((class_around(scope) or "", node.attr))
    if isinstance(node, ast.Name):
        owner = scope.owner(node.id)
        bounds = owner.names[node.id] if owner is not None else ()
        value = bounds[0].value if len(bounds) == 1 else None
        return _maker(value, owner) if value is not None and owner is not None else None
    return _maker(node, scope)
