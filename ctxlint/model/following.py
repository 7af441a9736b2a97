"""What a function of the same file returns when it is called so: followed one level, no further."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.functions import Binding, Param, ParameterKind
from ctxlint.model.interpreter import interpret
from ctxlint.model.returns import joined
from ctxlint.model.scopes import Scope
from ctxlint.model.signatures import binding_of, decorators_of, params_of
from ctxlint.model.values import NEVER, Opaque, Sequence, Slot, Tri, Value, is_container

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctxlint.model.events import Return
    from ctxlint.model.unit import Unit


class Follower:
    """Follows the functions of one file; see ``calls.Followed``."""

    def __init__(self, unit: Unit) -> None:
        """Follow the functions of ``unit``."""
        self.unit = unit
        self._busy = False

    def __call__(self, qualname: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> Value | None:
        """The value that the function returns for these arguments; NEVER where it only raises, None where unknown."""
        if self._busy or self.unit.is_stub:
            return None
        node = self.unit.slices.find_bare_function(qualname)
        if node is None or node.asynchronous is not None:
            return None
        around = self.unit.index.functions[qualname].scope
        decorators = decorators_of(node, around)
        if any(each.keeps_signature is not Tri.YES for each in decorators) or binding_of(decorators) is Binding.CLASS:
            return None
        scope = Scope("function", qualname, around)
        bindings = bind_arguments(params_of(node, scope), arguments, keywords)
        if bindings is None:
            return None
        self._busy = True
        try:
            facts = interpret(node, bindings, scope)
        except RecursionError:
            return None
        finally:
            self._busy = False
        if facts.is_generator or not facts.complete:
            return None
        if facts.falls_through is Tri.NO and not facts.returns:
            return NEVER
        return joined(replace(facts, events=tuple(_as_told(event) for event in facts.returns)))


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
