"""The calls of Functions that a transform of ``torch.func``, or forward-mode AD, certainly runs.

From the function that is transformed, calls that are executed whatever happens are followed: of functions and lambdas,
methods, and modules that are created in view, also in other files of the project.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ctxlint.model.index.apply_calls import ApplyCall, Transform
from ctxlint.model.index.certain_calls import certain_calls, computes_with
from ctxlint.model.index.denoted_code import MOST_HOPS, Applied, Called, CalledCode, CalledOperator, DenotedCode
from ctxlint.model.index.outside_facts import OF_NO_FUNCTION
from ctxlint.model.index.scopes import dotted_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.transforms import DERIVATIVES, FUNCTIONAL_CALLS, NEEDS_JVP, TRANSFORMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.model.index.denoted_code import Sites
    from ctxlint.model.index.file_index import CallRecord
    from ctxlint.source.source import Span


class _Place(NamedTuple):
    """A transform, and the expression of the file that stands for what it transforms."""

    transform: Transform
    node: ast.expr
    seen: set[tuple[int, frozenset[str]]]
    """The functions that it is known to run, each with the parameters that carry a tangent."""


class Transforms:
    """Finds the calls that one file transforms."""

    def __init__(self, sites: Sites) -> None:
        """``sites`` are those of the file."""
        self.sites = sites
        self.index = sites.index
        self.code = DenotedCode(sites)
        self.found: dict[Span, tuple[ApplyCall, list[Transform]]] = {}
        self.passed: dict[tuple[str, Span], list[Transform]] = {}
        self.operated: dict[tuple[str, Span], Transform] = {}

    @cached_property
    def guarded(self) -> set[int]:
        """The identities of the calls in a ``try`` with handlers."""
        return {
            id(each)
            for statement in self.index.statements
            for tried in nodes_in(statement)
            if isinstance(tried, ast.Try) and tried.handlers
            for inner in tried.body
            for each in nodes_in(inner)
            if isinstance(each, ast.Call)
        }

    def transformed(self) -> list[ApplyCall]:
        """The calls that are transformed, and a record of each other ``apply`` and custom operator that one runs."""
        names = self.index.names_for(TRANSFORMS.values())
        for record in self.index.calls:
            if record.name in names and not record.expects_error:
                self._of_call(record)
        for function in self.index.functions.values():
            for decorator in function.node.decorator_list:
                name = self.code.decorated_with(decorator, function.scope)
                if name is not None:
                    place = self._place(name, ast.unparse(decorator), decorator)
                    self._run([CalledCode(self.code, function.node)], place, first=1)
        self.code.others.clear()  # they refer to each other
        found = [replace(call, transforms=tuple(transforms)) for call, transforms in self.found.values()]
        found += [self._record_of("transform", *key, tuple(each)) for key, each in self.passed.items()]
        operated = [
            replace(self._record_of("operator", OF_NO_FUNCTION, span, (each,)), alias=name)
            for (name, span), each in self.operated.items()
        ]
        return found + operated

    def _place(self, name: str, written: str, node: ast.expr) -> _Place:
        start = self.sites.source.span_of(node).start
        return _Place(Transform(name, written, start, self.sites.source.line_name(start.line)), node, set())

    def _of_call(self, record: CallRecord) -> None:
        """Follow what a call of a transform transforms."""
        node, scope = record.node, record.scope
        name = self.code.transform(node.func, scope)
        if name is None or id(node) in self.guarded:
            return
        place = self._place(name, dotted_name(node.func) or name, node)
        if name == "make_dual":
            self._with_duals(record, place)
            return
        passed = node.args[0] if node.args else next((each.value for each in node.keywords if each.arg == "func"), None)
        if passed is None or isinstance(passed, ast.Starred):
            return
        self._run(self.code.called(passed, scope), place._replace(node=passed), first=_differentiated(name, node))

    def _run(self, targets: Sequence[Called], place: _Place, *, first: int) -> None:
        """Record the calls that the targets certainly execute; their ``first`` parameters carry a tangent."""
        carries = first > 0 and place.transform.name in NEEDS_JVP
        for target in targets:
            if isinstance(target, Applied):
                self._pass(self.sites.elsewhere.key_of(target.function), place, tangent=carries)
            elif isinstance(target, CalledOperator):
                self._operate(target, place, tracked=first > 0)
            else:
                self._follow_code(target, frozenset(target.parameters[:first]), place, MOST_HOPS)

    def _with_duals(self, record: CallRecord, place: _Place) -> None:
        """Follow the tangents that ``make_dual`` attaches in a function, or in the module."""
        self._follow(self.code, self.index.body_of(record.scope), frozenset(), place, MOST_HOPS, record.node)

    def _follow_code(self, target: CalledCode, given: frozenset[str], place: _Place, hops: int) -> None:
        if hops and (id(target.node), given) not in place.seen:
            place.seen.add((id(target.node), given))
            self._follow(target.file, target.body, given, place, hops)

    def _follow(
        self,
        code: DenotedCode,
        body: Sequence[ast.stmt],
        flowing: frozenset[str],
        place: _Place,
        hops: int,
        dual: ast.Call | None = None,
    ) -> None:
        """Record the calls that a body certainly executes, and follow those of functions; ``dual`` makes a tangent."""
        for call, carrying in certain_calls(body, flowing, dual):
            record = code.records.get(id(call))
            if record is None:
                continue
            carries = [computes_with(each, carrying, dual) for each in call.args]
            known = code.sites.call(record)
            if known is not None and known.applies:
                if place.transform.name != "make_dual" or any(carries):
                    self._reach(code, known, place, tangent=any(carries))
                continue
            functional = code.meaning(call.func, record.scope) in FUNCTIONAL_CALLS and bool(call.args)
            for target in code.called(call.args[0] if functional else call.func, record.scope):
                if isinstance(target, CalledOperator):
                    self._operate(target, place, tracked=any(carries) and not code.sites.gradients_off(record))
                elif isinstance(target, CalledCode):
                    passed = zip(target.parameters, [] if functional else carries)
                    self._follow_code(target, frozenset(name for name, each in passed if each), place, hops - 1)

    def _operate(self, operator: CalledOperator, place: _Place, *, tracked: bool) -> None:
        """Record that a transform runs a custom operator; ``tracked``: on what it differentiates."""
        if tracked and place.transform.name in DERIVATIVES:
            self.operated.setdefault((operator.name, self.sites.source.span_of(place.node)), place.transform)

    def _reach(self, code: DenotedCode, call: ApplyCall, place: _Place, *, tangent: bool) -> None:
        """Record a call that a transform runs, of this file or another one."""
        if code is self.code:
            _add(self.found.setdefault(call.span, (call, []))[1], replace(place.transform, tangent=tangent))
        elif not call.expects_error:
            key = self.sites.elsewhere.key_of(code.sites.elsewhere.target_of(call.function))
            self._pass(key, place, tangent=tangent)

    def _pass(self, function: str, place: _Place, *, tangent: bool) -> None:
        """Record that a transform runs the ``apply`` of a Function, without a call in this file."""
        key = function, self.sites.source.span_of(place.node)
        _add(self.passed.setdefault(key, []), replace(place.transform, tangent=tangent))

    def _record_of(self, how: str, function: str, span: Span, transforms: tuple[Transform, ...]) -> ApplyCall:
        """A record of an ``apply``, or of a custom operator, that a transform runs."""
        return ApplyCall(
            function=function,
            how=how,
            span=span,
            positional=0,
            starred=True,
            keywords=(),
            double_starred=True,
            arguments=(),
            line=self.sites.source.line_name(span.start.line),
            transforms=transforms,
        )


def _differentiated(name: str, node: ast.Call) -> int:
    """How many of the first parameters of the transformed function a transform certainly differentiates."""
    if any(each.arg in ("argnums", None) for each in node.keywords):
        return 0
    if name == "vjp":  # all that it gets after the function
        starred = [isinstance(each, ast.Starred) for each in node.args[1:]]
        return starred.index(True) if True in starred else len(starred)
    return len(node.args) < 2 or name in ("jvp", "linearize")  # their second argument is no `argnums`


def _add(known: list[Transform], transform: Transform) -> None:
    if transform not in known:
        known.append(transform)
