"""What a function of the project returns when it is called so: followed one level, no further."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.analyses.returns import joined
from ctxlint.model.function import Binding, Param, ParameterKind
from ctxlint.model.index.scopes import LOCAL, Scope
from ctxlint.model.interpreter.attribute_access import SAVED_NAMES
from ctxlint.model.interpreter.values import NEVER, Opaque, Sequence, Slot, Tri, Value, is_container
from ctxlint.model.interpreter.walk import interpret
from ctxlint.model.signatures import binding_of, decorators_of, params_of
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Mapping

    import libcst as cst

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.events import Return


class Follower:
    """Follows the functions that one file defines or imports; see ``calls.Followed``."""

    def __init__(self, unit: Unit, project: Project) -> None:
        """Follow the functions of ``unit``."""
        self.unit = unit
        self.project = project
        self._homes: dict[Unit, Follower] = {}
        self._busy = False
        self._reads: dict[tuple[str, int | str], bool] = {}
        self._callable: dict[str, tuple[Param, ...] | None] = {}

    def __call__(self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> Value | None:
        """The value that the function returns for these arguments; NEVER where it only raises, None where unknown."""
        found = self._home(name)
        return found[0].returned(found[1], arguments, keywords) if found is not None else None

    def _home(self, name: str) -> tuple[Follower, str] | None:
        """What follows the functions of the file that defines one, and its qualified name there."""
        if name.startswith(LOCAL):
            return self, name[len(LOCAL) :]
        meant = self.project.certainly(self.unit, name)
        if meant is None or meant.qualname not in meant.unit.index.functions:
            return None
        if meant.unit is self.unit:
            return self, meant.qualname
        if meant.unit not in self._homes:
            self._homes[meant.unit] = Follower(meant.unit, self.project)
        return self._homes[meant.unit], meant.qualname

    def returned(self, qualname: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> Value | None:
        """As when it is called, for a function of the file itself."""
        if self._busy or self.unit.is_stub:
            return None
        node = self.unit.slices.find_bare_function(qualname)
        if node is None or node.asynchronous is not None:
            return None
        scope = Scope("function", qualname, self.unit.index.functions[qualname].scope)
        params = self._params(qualname, node, scope)
        bindings = bind_arguments(params, arguments, keywords) if params is not None else None
        if bindings is None:
            return None
        self._busy = True
        try:
            facts = interpret(node, bindings, scope, walrus=self.unit.source.has_walrus, returns_only=True)
        except RecursionError:
            return None
        finally:
            self._busy = False
        if facts.is_generator or not facts.complete:
            return None
        if facts.falls_through is Tri.NO and not facts.returns:
            return NEVER
        return joined(replace(facts, events=tuple(_as_told(event) for event in facts.returns)))

    def _params(self, qualname: str, node: cst.FunctionDef, scope: Scope) -> tuple[Param, ...] | None:
        """The parameters of a function; None where its decorators may change what they mean."""
        if qualname not in self._callable:
            decorators = decorators_of(node, self.unit.index.functions[qualname].scope)
            kept = all(each.keeps_signature is Tri.YES for each in decorators)
            plain = kept and binding_of(decorators) is not Binding.CLASS
            self._callable[qualname] = params_of(node, scope) if plain else None
        return self._callable[qualname]

    def only_reads(self, name: str, given: int | str) -> bool:
        """Whether a function certainly only reads attributes of what it is ``given`` there, by position or name.

        Not where it reads what is saved, which is counted, or calls a method of the ctx.
        """
        key = (name, given)
        if key not in self._reads:
            found = self._home(name)
            self._reads[key] = found is not None and found[0]._only_reads(found[1], given)  # noqa: SLF001
        return self._reads[key]

    def _only_reads(self, qualname: str, given: int | str) -> bool:
        record = self.unit.index.functions.get(qualname)
        if record is None or not record.certain or self.unit.is_stub:
            return False
        node = record.node
        if any(not isinstance(each, ast.Name) or each.id != "staticmethod" for each in node.decorator_list):
            return False
        by_position = [*node.args.posonlyargs, *node.args.args]
        by_name = [*node.args.args, *node.args.kwonlyargs]
        if isinstance(given, int):
            names = [param.arg for param in by_position][given : given + 1]
        else:
            names = [param.arg for param in by_name if param.arg == given]
        return bool(names) and all(_reads_attributes(each, names[0]) for each in node.body)


def _reads_attributes(node: ast.AST, name: str) -> bool:
    """Whether all that a piece of code does with a name is to read attributes: ``name.attribute``."""
    if isinstance(node, ast.Call) and _attribute_of(node.func, name) is not None:
        return False
    attribute = _attribute_of(node, name)
    if attribute is not None:
        return isinstance(attribute.ctx, ast.Load) and attribute.attr not in _NOT_JUST_READ
    if isinstance(node, ast.Name) and node.id == name:
        return False
    return all(_reads_attributes(child, name) for child in ast.iter_child_nodes(node))


def _attribute_of(node: ast.AST, name: str) -> ast.Attribute | None:
    found = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    return node if found and isinstance(node, ast.Attribute) else None


_NOT_JUST_READ = frozenset([*SAVED_NAMES, *autograd.CONTEXT_METHODS, "__dict__"])


def _as_told(event: Return) -> Return:
    """A return, without the container that it gives only for arguments of a type which these may not be of.

    A function that walks over anything has a dict for a dict, and a tensor for a tensor.
    """
    if is_container(event.value) is not Tri.YES or not any("isinstance(" in guard.text for guard in event.guards):
        return event
    return replace(event, value=Opaque(event.node))


def bind_arguments(
    params: tuple[Param, ...], arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
) -> dict[str, Value] | None:
    """What the parameters of a function hold when it is called so; None where the call does not fit or is unknown."""
    spend(len(params) + (len(arguments) >> 2))
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
        elif param.has_default:
            bindings[param.name] = param.default if param.default is not None else Opaque(param.node)
        else:
            return None
    return None if given else bindings
