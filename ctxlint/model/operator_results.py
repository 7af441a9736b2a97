"""What custom operators return and write against their declaration.

Torch rejects results that share memory with an input, or with each other, and trusts ``mutates_args``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

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
from ctxlint.model.index.project_answers import meant, operator_decorator, rejected_operators
from ctxlint.model.index.scopes import Scope
from ctxlint.model.interpreter.events import Assigned, Mutation, UndefinedRead
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
    Scalar,
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
from ctxlint.model.summaries.summaries import may_be_bound
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping
    from collections.abc import Sequence as Sequence_

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.events import Return
    from ctxlint.model.interpreter.method import MethodFacts, Param
    from ctxlint.model.interpreter.summary import Resolver
    from ctxlint.model.operator_schemas import Registered
    from ctxlint.model.operators import Fake
    from ctxlint.source.slices import Slice


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
                yield from _results_of_fake(unit, project, resolver, fake)
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
        element = ast.unparse(first.element) if first.element is not None else ""
        yield RejectedOperator(
            span, node.name, first.reason, first.parameter, first.instead, written, tuple(rest), element
        )


def _results_of_fake(
    unit: Unit, project: Project, resolver: Resolver, fake: Fake
) -> Iterator[SharedResult | FakeMismatch]:
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
    if facts.complete and not unit.index.module.stars:
        seen = set[str]()
        for read in facts.of(UndefinedRead):
            if not (read.name in seen or read.tried or may_be_bound(project, unit, read.name)):
                seen.add(read.name)
                meant = (a.name for a, b in zip(params, given, strict=True) if b.name == read.name)
                names, some = (read.name, *meant), bool(read.guards) or read.in_loop
                yield FakeMismatch(
                    part.span(read.node), declared.name.value, FakeFault.UNDEFINED, names, sometimes=some
                )
    for event in facts.returns if facts.complete and not facts.is_generator else ():
        counts = unfit_result(event.value, home.index.functions[fake.operator.qualname].node)
        if counts is not None:
            span, fault = part.span(event.node), FakeFault.RESULTS
            yield FakeMismatch(span, declared.name.value, fault, **counts._asdict())
            continue
        shared = _shared(event, facts, tensors, promised=True)
        if shared is not None:
            yield SharedResult(part.span(event.node), fake.name, declared.name.value, *shared, fake=True)


def _results_of(unit: Unit, resolver: Resolver, name: str, qualname: str) -> Iterator[OperatorResult]:
    walked = _walked(unit, resolver, qualname)
    if walked is None:
        return
    node, part, params, facts = walked
    tensors = _annotated_tensors(params)
    promised = gives_tensors(unit, qualname)
    for event in facts.returns:
        shared = _shared(event, facts, tensors, promised)
        if shared is not None:
            yield SharedResult(part.span(event.node), name, node.name.value, *shared)
    for call in grad_mode_tests(facts):
        yield GradModeTest(part.span(call.node), node.name.value)
    declared, looked_into = declared_by(Definition(unit, qualname)), _is_triton_op(unit, qualname)
    if declared is None or (declared.named and looked_into):
        return
    writes = {name: each for name, each in _lasting_writes(facts, tensors).items() if name not in declared.named}
    if writes:
        parameters = _in_order(params, writes)
        span = part.span(next(iter(writes.values())).node)
        named = tuple(each.name for each in params if each.name in declared.named)
        nothing = _returns_nothing(unit, qualname)
        made = looked_into or (nothing and bool(named))  # torch makes that of an operator that only writes
        yield UndeclaredWrite(span, node.name.value, parameters, nothing, has_fake=made, named=named)


class _Walked(NamedTuple):
    """A function of a file that is an operator, and what it does."""

    node: cst.FunctionDef
    part: Slice
    params: Sequence_[Param]
    facts: MethodFacts


def _walked(unit: Unit, resolver: Resolver, qualname: str) -> _Walked | None:
    """A function and the facts about it; None if it is a coroutine or a generator, or not modelled as a whole."""
    found = unit.slices.find_function_in_slice(qualname)
    if found is None or found[0].asynchronous is not None:
        return None
    node, part = found
    scope = Scope("function", qualname, unit.index.functions[qualname].scope)
    params = params_of(node, scope)
    plain = [each for each in params if each.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)]
    whole = {each.name: Scalar("int") for each in plain if each.annotation in ("builtins.int", "int", "torch.SymInt")}
    facts = interpret(node, bound_plain(plain) | whole, scope, resolver, bound_names(node, unit.source.has_walrus))
    return _Walked(node, part, params, facts) if facts.complete and not facts.is_generator else None


def _annotated_tensors(params: Iterable[Param]) -> set[str]:
    return {each.name for each in params if _TENSOR.search(each.annotation or "")}


def _in_order(params: Iterable[Param], writes: Mapping[str, Mutation]) -> tuple[str, ...]:
    return tuple(each.name for each in params if each.name in writes)


def _lasting_writes(facts: MethodFacts, tensors: Container[str]) -> dict[str, Mutation]:
    """The inputs that are written to, and not restored before the end, in order; each with the first write."""
    found: dict[str, Mutation] = {}
    restored = set[str]()
    for each in lasting(facts.of(Mutation)):
        name = _written(each, tensors)
        first = found.setdefault(name, each) if name is not None else each
        if name is not None and first is not each and each.how in _RESTORING and not _are_other_elements(first, each):
            restored.add(name)  # perhaps its old values
    return {name: each for name, each in found.items() if name not in restored}


def _are_other_elements(first: Mutation, second: Mutation) -> bool:
    """Whether two writes are to parts of a tensor with different numbers: ``cache[0, at]``, ``cache[1, at]``."""
    numbers = [_first_index(each.target_node) for each in (first, second)]
    return None not in numbers and numbers[0] != numbers[1]


def _first_index(node: cst.CSTNode | None) -> str | None:
    part = node.slice[0].slice if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) else None
    return part.value.value if isinstance(part, cst.Index) and isinstance(part.value, cst.Integer) else None


_RESTORING = frozenset(["copy_", "bitwise_not_", "logical_not_", "neg_", "negative_", "reciprocal_"])
"""Writes that may give a tensor its old values back, as the second of two alike does."""


def _undeclared_by_call(
    unit: Unit, resolver_of: Callable[[Unit], Resolver], registered: Registered
) -> Iterator[UndeclaredWrite | SharedResult]:
    """What a function that a call makes an operator writes, although the call says that it writes nothing.

    And what it returns that shares memory with an input, although its schema does not say so.
    """
    home, qualname, schema = registered.function.unit, registered.function.qualname, registered.schema
    walked = _walked(home, resolver_of(home), qualname)
    if walked is None:
        return
    node, part, params, facts = walked
    in_schema = schema.tensors if schema is not None else ()
    declared = {params[at].name: f"{kind} {name}" for at, kind, name in in_schema if at < len(params)}
    by_call = not home.index.functions[qualname].node.decorator_list
    for event in facts.returns if schema is not None else ():
        shared = _shared(event, facts, set(declared), promised=False)
        if shared is not None:
            span = unit.source.span_of(registered.at) if by_call else part.span(event.node)
            yield SharedResult(span, "", node.name.value, *shared, by_schema=True)
            if by_call:
                break
    writes = _lasting_writes(facts, declared if schema is not None else _annotated_tensors(params))
    if writes:
        parameters = _in_order(params, writes)
        first = next(iter(writes.values()))
        yield UndeclaredWrite(
            unit.source.span_of(registered.at),
            node.name.value,
            parameters,
            schema.returns_nothing if schema is not None else _returns_nothing(home, qualname),
            registered.keyword,
            tuple(declared[each] for each in parameters) if schema is not None else (),
            (home.path, part.span(first.node)),
            (schema.path, schema.span) if schema is not None else None,
        )


def _returns_nothing(unit: Unit, qualname: str) -> bool:
    """Whether the annotation promises no result."""
    returns = getattr(unit.index.functions[qualname].node, "returns", None)
    return isinstance(returns, ast.Constant) and returns.value is None


def _is_triton_op(unit: Unit, qualname: str) -> bool:
    """Whether ``torch.compile`` looks into the operator, and needs no fake of it."""
    decorator = operator_decorator(unit.index.functions[qualname].node, unit.index.module)
    return decorator is not None and (meant(decorator.func, unit.index.module) or "").endswith("triton_op")


def _written(mutation: Mutation, tensors: Container[str]) -> str | None:
    """The input that is certainly written to, if the operator gets it: another path may have made a new tensor."""
    origins = list(_origins(mutation.target)) if mutation.target is not None else []
    found = {each.name for origin in origins if (each := _parameter(origin)) is not None}
    known = all(isinstance(each, Fresh) or _parameter(each) is not None for each in origins)
    name = found.pop() if known and len(found) == 1 else None
    return name if name in tensors else None


def _shared(
    event: Return, facts: MethodFacts, tensors: set[str], promised: bool
) -> tuple[tuple[str, ...], bool, bool] | None:
    """What a return shares, as the fields of ``SharedResult``; None if nothing is certain."""
    options = event.value.options()
    if NONE in options and len(options) > 2:  # one flag may decide both what the tensor is and that it is returned
        return None
    every = [option.slots if isinstance(option, Sequence) else (Slot(option),) for option in options]
    found: dict[str, bool] = {}
    always = False
    for at, result in ((at, slot.value) for slots in every for at, slot in enumerate(slots)):
        origins = list(_origins(result))
        there = [origin for slots in every if at < len(slots) for origin in _origins(slots[at].value)]
        for parameter in map(_parameter, origins):
            if parameter is not None and parameter.name in tensors and not _is_replaced(facts, event, there):
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


def _is_replaced(facts: MethodFacts, event: Return, origins: Sequence_[Value | None]) -> bool:
    """Whether a return is where another of its tensors is bound: under a test as which that binding reads.

    Or after the loop that binds it, which is meant to run.
    """
    bindings = [
        each
        for each in (facts.of(Assigned) if len(origins) > 1 else ())
        if each.value is not None and event.may_follow(each) and not isinstance(storage(each.value), Parameter)
        if storage(each.value) in origins
    ]
    if not event.in_loop and any(each.in_loop for each in bindings):
        return True
    tests = [guard for each in bindings for guard in each.guards]
    return any(mine.holds == its.holds and mine.reads_like(its) for mine in event.guards for its in tests)


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
