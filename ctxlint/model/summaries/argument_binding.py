"""The arguments of a call as the values of the function's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.function import Param, ParameterKind
from ctxlint.model.interpreter.sequences import part_of
from ctxlint.model.interpreter.values import Item, Mapping, Opaque, Sequence, Slot, Value, before_star

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf


def bind_arguments(
    params: tuple[Param, ...], arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
) -> dict[str, Value] | None:
    """The values of a function's parameters for a call; None if the call does not match or is unknown.

    What a starred argument of unknown length, and those after it, fill is unknown.
    """
    spend(len(params) + (len(arguments) >> 2))
    bindings: dict[str, Value] = {}
    known = before_star(arguments)
    positional, open_ended = list(known), len(known) < len(arguments)
    rest = _Rest(arguments[-1].value if open_ended and len(known) + 1 == len(arguments) else None)
    for param in params:
        if param.kind is ParameterKind.VARIADIC:
            bindings[param.name] = Sequence("tuple", (*positional, *([rest.all(param)] if open_ended else [])))
            positional = []
        elif param.kind is ParameterKind.KEYWORDS:
            bindings[param.name] = _other_keywords(params, keywords)
        elif param.kind is ParameterKind.POSITIONAL and positional and param.name not in keywords:
            bindings[param.name] = positional.pop(0).value
        elif param.name in keywords:
            if param.kind is ParameterKind.POSITIONAL and positional:
                return None
            bindings[param.name] = keywords[param.name].value
        elif open_ended and param.kind is ParameterKind.POSITIONAL:
            bindings[param.name] = rest.next(param)
        elif param.has_default:
            bindings[param.name] = param.default if param.default is not None else Opaque(param.node)
        else:
            return None
    return None if positional or (keywords and not _are_taken(params, keywords)) else bindings


def _are_taken(params: tuple[Param, ...], keywords: MappingOf[str, Slot]) -> bool:
    """Whether each keyword is that of a parameter."""
    names = {each.name for each in params if each.kind is not ParameterKind.VARIADIC}
    return names.issuperset(keywords) or any(each.kind is ParameterKind.KEYWORDS for each in params)


def _other_keywords(params: tuple[Param, ...], keywords: MappingOf[str, Slot]) -> Value:
    """The dict of ``**kwargs``."""
    own = {each.name for each in params if each.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)}
    others = {name: slot for name, slot in keywords.items() if name not in own}
    return Mapping(tuple(others.values()), keys=tuple(others))


class _Rest:
    """What the only starred argument of a call, the last one, fills; None if the call has others."""

    def __init__(self, starred: Value | None) -> None:
        self.starred = starred
        self.taken = 0

    def next(self, param: Param) -> Value:
        """The value of one parameter; unknown if its default may apply."""
        at, self.taken = self.taken, self.taken + 1
        return Opaque(param.node) if self.starred is None or param.has_default else part_of(self.starred, at)

    def all(self, param: Param) -> Slot:
        """What is left for ``*args``."""
        if self.starred is None:
            return Slot(Opaque(param.node), starred=True)
        return Slot(Item(self.starred, param.node) if self.taken else self.starred, starred=True)
