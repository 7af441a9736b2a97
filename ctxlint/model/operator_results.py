"""Results of custom operators that share memory with an input, or with each other: torch rejects them at every call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctxlint.effort import Effort, EffortExceeded
from ctxlint.model.function import SharedResult
from ctxlint.model.index.scopes import Scope
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.method import ParameterKind
from ctxlint.model.interpreter.parameter_binding import bound_plain
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.interpreter.values import (
    Alias,
    Choice,
    Fresh,
    Item,
    Opaque,
    Parameter,
    Sequence,
    Value,
    View,
    storage,
)
from ctxlint.model.operators import decorated_operators, gives_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.interpreter.events import Return
    from ctxlint.model.interpreter.summary import Resolver


def shared_results(unit: Unit, resolver: Resolver) -> Iterator[SharedResult]:
    """The returns of the operators of a file that torch certainly rejects, at most one for each return."""
    for name, qualname in decorated_operators(unit):
        try:
            with Effort().on(qualname):
                yield from _shared_by(unit, resolver, name, qualname)
        except (EffortExceeded, RecursionError):
            continue


def _shared_by(unit: Unit, resolver: Resolver, name: str, qualname: str) -> Iterator[SharedResult]:
    found = unit.slices.find_function_in_slice(qualname)
    if found is None or found[0].asynchronous is not None:
        return
    node, part = found
    scope = Scope("function", qualname, unit.index.functions[qualname].scope)
    params = params_of(node, scope)
    tensors = {param.name for param in params if _TENSOR.search(param.annotation or "")}
    positional = [param for param in params if param.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)]
    facts = interpret(node, bound_plain(positional), scope, resolver, unit.source.has_walrus)
    if not facts.complete or facts.is_generator:
        return
    promised = gives_tensors(unit, qualname)
    for event in facts.returns:
        shared = _shared(event, tensors, promised)
        if shared is not None:
            yield SharedResult(part.span(event.node), name, node.name.value, *shared)


def _shared(event: Return, tensors: set[str], promised: bool) -> tuple[str | None, bool, bool] | None:
    """What a return shares, as the fields of ``SharedResult``; None if nothing is certain."""
    options = event.value.options()
    for option in options:
        results = [slot.value for slot in option.slots] if isinstance(option, Sequence) else [option]
        for result in results:
            origins = list(_origins(result))
            for origin in origins:
                given = _parameter(origin)
                if given is not None and given.name in tensors:
                    return given.name, result == given or given in result.options(), len(options) == len(origins) == 1
        again = _same_twice(results) if promised else None
        if again is not None:
            return None, again[0], again[1] and len(options) == 1
    return None


def _origins(value: Value) -> Iterator[Value | None]:
    """What a value certainly shares memory with, separately for each path; None if unknown."""
    while isinstance(value, View):
        if value.alias is not Alias.ALWAYS:
            yield None
            return
        value = value.of
    if isinstance(value, Choice):
        for option in value.alternatives:
            yield from _origins(option)
    else:
        yield storage(value)


def _parameter(origin: Value | None) -> Parameter | None:
    """The parameter that a tensor is, or is an element of."""
    while isinstance(origin, Item):
        origin = storage(origin.of)
    return origin if isinstance(origin, Parameter) else None


def _same_twice(results: list[Value]) -> tuple[bool, bool] | None:
    """Whether two results are one tensor, and whether they always are; None if no two share memory.

    For two that depend on the path, it is unknown whether both take the same one.
    """
    for at, first in enumerate(results):
        for second in results[at + 1 :]:
            ones, others = list(_origins(first)), list(_origins(second))
            if min(len(ones), len(others)) > 1:
                continue
            if any(isinstance(each, _COMPUTED) and each in others for each in ones):
                return not isinstance(first, View) and not isinstance(second, View), len(ones) == len(others) == 1
    return None


_COMPUTED = (Fresh, Opaque, Item)
_TENSOR = re.compile(r"\bTensor\b")


def names_operators(text: str) -> bool:
    """Whether a text may define a custom operator."""
    return "custom_op" in text or "triton_op" in text
