"""The entry point of the interpreter: one walk over a method's body.

The walk follows every path once. At a branch the state is forked and joined afterwards; a loop body is walked twice,
first silently to find what it changes, then with those names widened. Nested functions are not walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.expressions import EVALUATORS
from ctxlint.model.interpreter.local_names import bound_names
from ctxlint.model.interpreter.method import MethodFacts
from ctxlint.model.interpreter.recorder import Recorder
from ctxlint.model.interpreter.signatures import used_as_context
from ctxlint.model.interpreter.state import State
from ctxlint.model.interpreter.statements import EXECUTORS
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.interpreter.walk import NO_OBJECTS, MethodNames, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.summary import Resolver
    from ctxlint.model.interpreter.trail import Trail
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.interpreter.walk import External


def interpret(
    function: cst.FunctionDef,
    bindings: dict[str, Value],
    scope: Scope,
    resolver: Resolver | None = None,
    local: frozenset[str] | None = None,
    kinds: frozenset[type[Event]] | None = None,
    objects: Mapping[Value, External] = NO_OBJECTS,
    trail: Trail | None = None,
) -> MethodFacts:
    """Walk a method or function.

    Args:
        function: The definition.
        bindings: The abstract values of its parameters.
        scope: Resolves free names.
        resolver: Resolves the functions that are called.
        local: The names that it binds, if they are known.
        kinds: As for ``Recorder``.
        objects: As for ``Walk``.
        trail: Keeps the walk, and may know an earlier one.

    Raises:
        RecursionError: An expression is absurdly deep.
    """
    star_may_bind_ctx = scope.sees_star_import() and not used_as_context(function.body, "ctx")
    names = MethodNames(function, scope, bound_names(function) if local is None else local, star_may_bind_ctx)
    walk = Walk(EVALUATORS, EXECUTORS, names, State(dict(bindings)), Recorder(kinds), resolver, objects)
    if trail is not None and isinstance(function.body, cst.IndentedBlock):
        trail.walk(walk, function.body)
    else:
        walk.execute(function.body)
    end = walk.state
    return MethodFacts(
        events=tuple(walk.recorder.events),
        falls_through=Tri.YES if end.live else Tri.NO,
        fall_guards=end.guards if end.live else (),
        fall_paths=end.paths if end.live else (),
        names_read=frozenset(names.read),
        is_generator=walk.is_generator,
        is_async=function.asynchronous is not None,
        complete=walk.complete,
        end_done=end.done,
        end_attributes=frozenset(end.attributes),
        end_absent=end.absent,
    )
