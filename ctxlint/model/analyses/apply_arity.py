"""Does a call of ``apply`` pass the arguments that ``forward`` takes? One that does not shows nothing of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.function import Binding, ParameterKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.function import ApplyCall, Method


class Misfit(NamedTuple):
    """What a call passes or omits, so that ``apply`` certainly raises TypeError.

    ``surplus`` is the number of arguments by position that ``forward`` does not take; ``missing`` are the parameters
    that get nothing, ``unknown`` the keywords that it does not take, and ``twice`` those it has by position already.
    """

    surplus: int
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    twice: tuple[str, ...]


def takes_arguments(forward: Method) -> bool:
    """Whether the arguments of ``apply`` are those of ``forward`` after its ctx, as far as the method itself shows."""
    by_class = forward.receiver is None or forward.binding is Binding.CLASS
    return forward.signature_known and not forward.lacks_ctx and by_class


def misfit(call: ApplyCall, forward: Method) -> Misfit | None:
    """What is wrong with the arguments of a call of ``apply``; None if nothing, or if the number is unknown."""
    if not call.applies or call.starred or call.double_starred:
        return None
    positional = forward.positional
    surplus = call.positional - len(positional) if forward.variadic is None else 0
    by_position = {param.name for param in positional[: call.positional]}
    bound = by_position | set(call.keywords)
    takes_any = any(param.kind is ParameterKind.KEYWORDS for param in forward.own_params)
    known = {param.name for param in forward.own_params}
    found = Misfit(
        max(surplus, 0),
        tuple(param.name for param in forward.own_params if param.required and param.name not in bound),
        tuple(name for name in call.keywords if not takes_any and name not in known),
        tuple(name for name in call.keywords if not takes_any and name in by_position),
    )
    return found if any(found) else None


def working_calls(calls: Iterable[ApplyCall], forward: Method | None) -> tuple[ApplyCall, ...]:
    """The calls without those whose arguments ``forward`` certainly does not take: their positions mean nothing."""
    if forward is None or not takes_arguments(forward):
        return tuple(calls)
    return tuple(call for call in calls if misfit(call, forward) is None)
