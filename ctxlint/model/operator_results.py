"""What custom operators return and write against their declaration.

Torch rejects results that share memory with an input, or with each other, and trusts ``mutates_args``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.effort import Effort, EffortExceeded
from ctxlint.model.analyses.grad_mode_tests import grad_mode_tests
from ctxlint.model.analyses.reverted_writes import lasting
from ctxlint.model.function import (
    FakeFault,
    FakeMismatch,
    GradModeTest,
    RejectedOperator,
    SharedResult,
    UndeclaredWrite,
)
from ctxlint.model.index.module_backwards import span_of_name
from ctxlint.model.index.operator_signatures import unquoted
from ctxlint.model.index.project import Definition
from ctxlint.model.index.project_answers import rejected_operators
from ctxlint.model.index.scopes import Scope
from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.local_names import bound_names
from ctxlint.model.interpreter.method import ParameterKind
from ctxlint.model.interpreter.parameter_binding import bound_plain
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.interpreter.values import (
    NONE,
    Alias,
    Choice,
    Fresh,
    Item,
    Opaque,
    Parameter,
    Sequence,
    Slot,
    Value,
    View,
    storage,
)
from ctxlint.model.operator_fakes import unfit_arguments, unfit_result, unlike_results
from ctxlint.model.operator_schemas import registered_without_writes
from ctxlint.model.operators import decorated_operators, fakes_of, gives_tensors
from ctxlint.model.summaries.declared import declared_by
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Sequence as Sequence_

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.events import Return
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.summary import Resolver
    from ctxlint.model.operator_schemas import Registered
    from ctxlint.model.operators import Fake


OperatorResult = SharedResult | UndeclaredWrite | GradModeTest | RejectedOperator | FakeMismatch


def operator_results(unit: Unit, project: Project, resolver_of: Callable[[Unit], Resolver]) -> Iterator[OperatorResult]:
    """The returns of the operators of a file that torch certainly rejects, and the writes that it does not know of.

    And where they ask for grad mode. Then the returns of fakes that share memory as no operator's may. Before all, the
    operators that torch does not even define.
    """
    resolver = resolver_of(unit)
    yield from _rejected(unit)
    for each in registered_without_writes(unit, project):
        try:
            with Effort().on(each.function.qualname):
                yield from _undeclared_by_call(unit, resolver_of, each)
        except (EffortExceeded, RecursionError):
            continue
    for name, qualname in decorated_operators(unit):
        try:
            with Effort().on(qualname):
                yield from _results_of(unit, resolver, name, qualname)
        except (EffortExceeded, RecursionError):
            continue
    for fake in fakes_of(unit, project, resolver):
        try:
            with Effort().on(fake.function.node):
                yield from _results_of_fake(unit, resolver, fake)
        except (EffortExceeded, RecursionError):
            continue


def _rejected(unit: Unit) -> Iterator[RejectedOperator]:
    for qualname, (first, *others) in rejected_operators(unit.index):
        node = unit.index.functions[qualname].node
        span, *rest = (
            span_of_name(unit, node) if each.node is node else unit.source.span_of(each.node)
            for each in (first, *others)
        )
        written = ast.unparse(unquoted(first.node)) if isinstance(first.node, ast.expr) else ""
        yield RejectedOperator(span, node.name, first.reason, first.parameter, first.instead, written, tuple(rest))


def _results_of_fake(unit: Unit, resolver: Resolver, fake: Fake) -> Iterator[SharedResult | FakeMismatch]:
    unfit = unfit_arguments(unit, fake)
    if unfit is not None:
        yield unfit
    else:
        yield from unlike_results(unit, fake)
    found, home = unit.slices.function_of(fake.function), fake.operator.unit
    declared = home.slices.find_bare_function(fake.operator.qualname)
    if found is None or declared is None or not gives_tensors(home, fake.operator.qualname):
        return
    node, part = found
    scope = Scope("function", node.name.value, fake.function.scope)
    params, given = params_of(node, scope), params_of(declared, home.index.module)
    if len(params) != len(given) or any(a.kind is not b.kind for a, b in zip(params, given, strict=True)):
        return
    facts = interpret(node, bound_plain(params), scope, resolver, bound_names(node, unit.source.has_walrus))
    tensors = {a.name for a, b in zip(params, given, strict=True) if _TENSOR.search(b.annotation or "")}
    for event in facts.returns if facts.complete and not facts.is_generator else ():
        counts = unfit_result(event.value, home.index.functions[fake.operator.qualname].node)
        if counts is not None:
            span, fault = part.span(event.node), FakeFault.RESULTS
            yield FakeMismatch(span, declared.name.value, fault, **counts._asdict())
            continue
        shared = _shared(event, tensors, promised=True)
        if shared is not None:
            yield SharedResult(part.span(event.node), fake.name, declared.name.value, *shared, fake=True)


def _results_of(unit: Unit, resolver: Resolver, name: str, qualname: str) -> Iterator[OperatorResult]:
    found = unit.slices.find_function_in_slice(qualname)
    if found is None or found[0].asynchronous is not None:
        return
    node, part = found
    scope = Scope("function", qualname, unit.index.functions[qualname].scope)
    params = params_of(node, scope)
    tensors = {param.name for param in params if _TENSOR.search(param.annotation or "")}
    positional = [param for param in params if param.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)]
    facts = interpret(node, bound_plain(positional), scope, resolver, bound_names(node, unit.source.has_walrus))
    if not facts.complete or facts.is_generator:
        return
    promised = gives_tensors(unit, qualname)
    for event in facts.returns:
        shared = _shared(event, tensors, promised)
        if shared is not None:
            yield SharedResult(part.span(event.node), name, node.name.value, *shared)
    for call in grad_mode_tests(facts):
        yield GradModeTest(part.span(call.node), node.name.value)
    declared = declared_by(Definition(unit, qualname))
    if declared is None or declared.names_some:
        return
    written = _lasting_writes(facts, tensors)
    if written:
        names = {_written(each, tensors) for each in written}
        parameters = tuple(param.name for param in params if param.name in names)
        nothing = _returns_nothing(unit, qualname)
        yield UndeclaredWrite(part.span(written[0].node), node.name.value, parameters, nothing)


def _lasting_writes(facts: MethodFacts, tensors: set[str]) -> list[Mutation]:
    """The writes to inputs that are not undone before the end."""
    changes = [(name, each) for each in lasting(facts.of(Mutation)) if (name := _written(each, tensors)) is not None]
    written, restored = set[str](), set[str]()
    for name, each in changes:
        if each.how == "copy_" and name in written:  # perhaps its old values
            restored.add(name)
        written.add(name)
    return [each for name, each in changes if name not in restored]


def _undeclared_by_call(
    unit: Unit, resolver_of: Callable[[Unit], Resolver], registered: Registered
) -> Iterator[UndeclaredWrite]:
    """What a function that a call makes an operator writes, although the call says that it writes nothing."""
    home, qualname = registered.function.unit, registered.function.qualname
    found = home.slices.find_function_in_slice(qualname)
    if found is None or found[0].asynchronous is not None:
        return
    node, part = found
    scope = Scope("function", qualname, home.index.functions[qualname].scope)
    params = params_of(node, scope)
    schema = registered.schema
    if schema is None:
        tensors = {each.name: each.name for each in params if _TENSOR.search(each.annotation or "")}
    else:
        tensors = {params[at].name: f"{kind} {name}" for at, kind, name in schema.tensors if at < len(params)}
    positional = [each for each in params if each.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)]
    facts = interpret(
        node, bound_plain(positional), scope, resolver_of(home), bound_names(node, home.source.has_walrus)
    )
    written = _lasting_writes(facts, {*tensors})
    if facts.complete and not facts.is_generator and written:
        names = {_written(each, {*tensors}) for each in written}
        parameters = tuple(each.name for each in params if each.name in names)
        yield UndeclaredWrite(
            unit.source.span_of(registered.at),
            node.name.value,
            parameters,
            schema.returns_nothing if schema is not None else _returns_nothing(home, qualname),
            registered.keyword,
            tuple(tensors[each] for each in parameters) if schema is not None else (),
            (home.path, part.span(written[0].node)),
            (schema.path, schema.span) if schema is not None else None,
        )


def _returns_nothing(unit: Unit, qualname: str) -> bool:
    """Whether the annotation promises no result."""
    returns = getattr(unit.index.functions[qualname].node, "returns", None)
    return isinstance(returns, ast.Constant) and returns.value is None


def _written(mutation: Mutation, tensors: set[str]) -> str | None:
    """The input that is certainly written to, if the operator gets it: another path may have made a new tensor."""
    origins = list(_origins(mutation.target)) if mutation.target is not None else []
    found = {each.name for origin in origins if (each := _parameter(origin)) is not None}
    known = all(isinstance(each, Fresh) or _parameter(each) is not None for each in origins)
    return found.pop() if known and len(found) == 1 and found <= tensors else None


def _shared(event: Return, tensors: set[str], promised: bool) -> tuple[tuple[str, ...], bool, bool] | None:
    """What a return shares, as the fields of ``SharedResult``; None if nothing is certain."""
    options = event.value.options()
    if NONE in options and len(options) > 2:  # one flag may decide both what the tensor is and that it is returned
        return None
    every = [option.slots if isinstance(option, Sequence) else (Slot(option),) for option in options]
    found: dict[str, bool] = {}
    always = False
    for result in (slot.value for slots in every for slot in slots):
        origins = list(_origins(result))
        for parameter in map(_parameter, origins):
            if parameter is not None and parameter.name in tensors:
                whole = result == parameter or parameter in result.options()
                found[parameter.name] = found.get(parameter.name, True) and whole
                always = always or len(options) == len(origins) == 1
    if found:
        return tuple(found), all(found.values()), always
    for slots in every if promised else ():
        again = _same_twice(slots)
        if again is not None:
            return (), again[0], again[1] and len(options) == 1
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


def _same_twice(slots: Sequence_[Slot]) -> tuple[bool, bool] | None:
    """Whether two results are one tensor, and whether they always are; None if no two share memory.

    For two that depend on the path, it is unknown whether both take the same one. A comprehension makes a new element
    each time.
    """
    for at, one in enumerate(slots):
        for other in slots[at + 1 :]:
            first, second = one.value, other.value
            if one.node is None or one.node is other.node:
                continue
            ones, others = list(_origins(first)), list(_origins(second))
            if min(len(ones), len(others)) > 1:
                continue
            if any(isinstance(each, _COMPUTED) and each in others for each in ones):
                return not isinstance(first, View) and not isinstance(second, View), len(ones) == len(others) == 1
    return None


_COMPUTED = (Fresh, Opaque, Item)
_TENSOR = pattern(r"\bTensor\b")
