"""Tests of what forward keeps on ctx that have the same outcome in every call, as after ``ctx.fused = False``."""

from __future__ import annotations

import ast
import operator as operators
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.model.index.attribute_stores import stored_on_others
from ctxlint.model.interpreter.conditions import certain_parts, is_compound, outcome_of_parts
from ctxlint.model.interpreter.events import ContextWrite
from ctxlint.model.interpreter.values import Constant, Parameter, Tri, is_none
from ctxlint.model.syntax import dotted, leaves, literal_text, signed_integer
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class _Known:
    """What is known of a value in every call: all that it may be, whether it is true, and whether it is None."""

    values: tuple[object, ...] | None = None
    truth: bool | None = None
    none: bool | None = None


_UNKNOWN = _Known()
_FLAGS = _Known(truth=True, none=False)
"""``ctx.needs_input_grad`` itself: a tuple with a flag for each input."""


def outcome(fn: FunctionClass, method: Method, test: cst.BaseExpression | None) -> bool | None:
    """The outcome of a test in every call, if what forward keeps on ctx, or its arguments in all calls, decide it."""
    if is_compound(test):
        return outcome_of_parts(test, lambda part: outcome(fn, method, part))
    if isinstance(test, cst.Comparison):
        known = _kept(fn, method, test.left) if len(test.comparisons) == 1 else _UNKNOWN
        return _compared(known, test.comparisons[0])
    return _kept(fn, method, test).truth


def never_runs(fn: FunctionClass, method: Method, node: cst.CSTNode) -> bool:
    """Whether a node is in an arm of a test that is never taken, or after a ``raise`` or ``return``."""
    untaken = [guard.test for guard in method.facts.untaken if guard.holds]
    inner = node
    for outer in method.above(node):
        if isinstance(outer, cst.IndentedBlock) and _follows_an_end(outer, inner):
            return True
        needed = _needed_outcome(outer, inner)
        if needed is not None:
            test, holds = needed
            if holds and any(part is each for part in _conjuncts(test) for each in untaken):
                return True
            if outcome(fn, method, test) is (not holds):
                return True
        inner = outer
    return False


def _needed_outcome(outer: cst.CSTNode, inner: cst.CSTNode) -> tuple[cst.BaseExpression, bool] | None:
    """The test in a node on which a part of it depends, and the outcome with which that part runs."""
    if isinstance(outer, (cst.If, cst.IfExp)) and inner is not outer.test:
        return outer.test, inner is outer.body
    if isinstance(outer, cst.BooleanOperation) and inner is outer.right:
        return outer.left, isinstance(outer.operator, cst.And)
    return None


def _follows_an_end(block: cst.IndentedBlock, statement: cst.CSTNode) -> bool:
    """Whether an earlier statement of the block leaves it in any case."""
    for each in block.body:
        if each is statement:
            return False
        if leaves(each) or _ends_the_round(each):
            return True
    return False


def _ends_the_round(statement: cst.BaseStatement) -> bool:
    """Whether a line ends with ``break`` or ``continue``."""
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], (cst.Break, cst.Continue))


def _conjuncts(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """A condition and, of ``a and b``, its parts."""
    yield test
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from _conjuncts(test.left)
        yield from _conjuncts(test.right)


def _kept(fn: FunctionClass, method: Method, node: cst.BaseExpression | None) -> _Known:
    """What is known of ``ctx.name``, ``getattr(ctx, "name", …)``, the only name for it or a literal, or an argument."""
    if isinstance(node, cst.Name) and node.value in _NAMED:
        return _one_of((_NAMED[node.value],))
    if isinstance(node, cst.Name) and node in method.parents:
        if method is fn.forward and node.value not in method.binders:
            return _passed(fn, node.value, _asserted(method))
        name = node.value
        if any(each.name == name for each in method.params):
            return _UNKNOWN
        node = method.bound_to(name)
        if isinstance(node, cst.Name) and node.value in _NAMED:
            is_fixed = len(method.binders.get(name, ())) == 1  # a flag that nothing else sets
            return _one_of((_NAMED[node.value],)) if is_fixed else _UNKNOWN
    if isinstance(node, cst.Call):
        return _asked_for(fn, method, node)
    if node is None or not method.is_on_ctx(node):
        return _UNKNOWN
    is_own = node.attr.value == "needs_input_grad" and node.attr.value not in fn.writes_by_attribute
    return _FLAGS if is_own else _attribute(fn, node.attr.value)


def _attribute(fn: FunctionClass, name: str) -> _Known:
    """What is known of an attribute of ctx."""
    notes = fn.notes.setdefault(_attribute, {})
    if name not in notes:
        notes[name] = _what_is_kept(fn, name)
    found: _Known = notes[name]
    return found


def _asked_for(fn: FunctionClass, method: Method, call: cst.Call) -> _Known:
    """What is known of ``getattr(ctx, "name", default)`` and ``hasattr(ctx, "name")``."""
    values = [each.value for each in call.args]
    function = call.func.value if isinstance(call.func, cst.Name) else ""
    if function not in ("getattr", "hasattr") or len(values) < 2 or dotted(values[0]) != method.ctx_name:
        return _UNKNOWN
    name = literal_text(values[1])
    if not isinstance(name, str) or fn.escapes:
        return _UNKNOWN
    if fn.writes_by_attribute.get(name):
        return _attribute(fn, name) if function == "getattr" else _UNKNOWN
    if any(each.attribute == name for one in fn.reading_methods for each in one.facts.of(ContextWrite)):
        return _UNKNOWN
    if function == "hasattr":
        return _one_of((False,))
    is_literal, otherwise = _literal(values[2]) if len(values) == 3 else (False, None)
    return _one_of((otherwise,)) if is_literal else _UNKNOWN


def _what_is_kept(fn: FunctionClass, name: str) -> _Known:
    writes = fn.writes_by_attribute.get(name, [])
    if not writes or fn.escapes or any(write.deletes for write in writes):
        return _UNKNOWN
    later = (write for method in fn.reading_methods for write in method.facts.of(ContextWrite))
    homes = [method.home for method in fn.context_methods if method.home is not None]
    elsewhere = any(name in stored_on_others(home.unit.index) for home in homes)
    if any(write.attribute == name for write in later) or (elsewhere and not any(write.by for write in writes)):
        return _UNKNOWN
    return _merged(
        _what_is(fn, method, option, write)
        for method in fn.context_methods
        for write in method.facts.of(ContextWrite)
        if write.attribute == name
        for option in (write.value.options() if write.value is not None else (None,))
    )


def _what_is(fn: FunctionClass, method: Method, value: Value | None, write: ContextWrite) -> _Known:
    """What is known of a value that a method keeps on ctx."""
    if isinstance(value, Constant):
        return _one_of((value.value,))
    if isinstance(value, Parameter):
        ends = [returned.event.guards for returned in fn.outputs] if method is fn.forward else []
        passed = (*write.guards, *(guard for guard in (ends[0] if ends else ()) if all(guard in each for each in ends)))
        tests = [(guard.test, guard.holds) for guard in passed if guard.test is not None]
        known = _passed(fn, value.name, (*tests, *_asserted(method)))
        return known if known is _UNKNOWN or value.name not in method.binders else _UNKNOWN
    none = is_none(value) if value is not None else Tri.UNKNOWN
    return _Known(none=None if none is Tri.UNKNOWN else none is Tri.YES)


def _passed(fn: FunctionClass, name: str, tests: Iterable[tuple[cst.BaseExpression, bool]]) -> _Known:
    """What is known of an argument of forward: by what all calls pass, or by tests that it has passed."""
    index = next((each.index for each in fn.inputs if each.name == name), None)
    given = _given(fn, index) if index is not None else None
    return _one_of(given) if given is not None else _narrowed(name, tests)


def decided_by_calls(fn: FunctionClass) -> bool:
    """Whether forward keeps an input on ctx for which all calls in view pass constants."""
    if not any(call.literals or call.positional < len(fn.inputs) for call in fn.calls):
        return False
    kept = (write.value for write in fn.context_writes)
    inputs = (each.index for each in kept if isinstance(each, Parameter) and each.role == "input")
    return any(_given(fn, index) is not None for index in inputs)


def _given(fn: FunctionClass, index: int) -> tuple[object, ...] | None:
    """The constants that all calls in view pass for an input, or leave to its default; None if that is unknown."""
    calls = [call for call in fn.calls if call.applies and not call.expects_error]
    found: list[object] = []
    for call in calls if index < len(fn.inputs) else ():
        default = fn.inputs[index].param.default
        if call.starred or call.double_starred or call.keywords:
            return None
        if index < len(call.arguments):
            code = dict(call.literals).get(index)
            if code is None:
                return None
            found.append(ast.literal_eval(code))
        elif isinstance(default, Constant):
            found.append(default.value)
        else:
            return None
    return tuple(found) or None


def _asserted(method: Method) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The conditions without which a method certainly raises."""
    for each in method.nodes_of(cst.Assert):
        around = [*method.above(each)]
        if not any(isinstance(node, (cst.If, cst.For, cst.While, cst.Try)) for node in around):
            yield from certain_parts(each.test, holds=True)


def _narrowed(name: str, tests: Iterable[tuple[cst.BaseExpression, bool]]) -> _Known:
    """What some tests that a parameter has passed say about it."""
    known = _UNKNOWN
    for test, holds in tests:
        if dotted(test) == name:
            known = known if known.values is not None else _Known(truth=holds, none=False if holds else known.none)
        elif isinstance(test, cst.Comparison) and dotted(test.left) == name and len(test.comparisons) == 1:
            kind, (is_literal, value) = type(test.comparisons[0].operator), _literal(test.comparisons[0].comparator)
            if is_literal and (kind, holds) in _SINGLE:
                return _one_of((value,))
            if is_literal and (kind, holds) in _SEVERAL and isinstance(value, tuple):
                return _one_of(value)
            if value is None and is_literal and kind in (cst.Is, cst.IsNot) and known.values is None:
                known = _Known(truth=known.truth, none=False)
    return known


_SINGLE = ((cst.Equal, True), (cst.NotEqual, False), (cst.Is, True), (cst.IsNot, False))
_SEVERAL = ((cst.In, True), (cst.NotIn, False))


def _one_of(values: tuple[object, ...]) -> _Known:
    truths, nones = {bool(each) for each in values}, {each is None for each in values}
    return _Known(values, _only(truths), _only(nones))


def _merged(found: Iterable[_Known]) -> _Known:
    """What is known of a value that is one of several."""
    every = [*found]
    values = [each.values for each in every if each.values is not None]
    if every and len(values) == len(every):
        return _one_of(tuple(value for some in values for value in some))
    return _Known(None, _only({each.truth for each in every}), _only({each.none for each in every}))


def _only(answers: set[bool] | set[bool | None]) -> bool | None:
    return next(iter(answers)) if len(answers) == 1 else None


def _compared(known: _Known, part: cst.ComparisonTarget) -> bool | None:
    """The outcome of a comparison with a literal."""
    compare = _COMPARISONS.get(type(part.operator))
    is_literal, other = _literal(part.comparator) if compare is not None and known is not _UNKNOWN else (False, None)
    identity = type(part.operator) in (cst.Is, cst.IsNot)
    if compare is None or not is_literal or (identity and not (other is None or isinstance(other, bool))):
        return None
    if other is None and known.none is not None and identity:
        return known.none is isinstance(part.operator, cst.Is)
    try:
        return _only({bool(compare(value, other)) for value in known.values or ()})
    except TypeError:
        return None


_COMPARISONS: dict[type[cst.BaseCompOp], Callable[[Any, Any], object]] = {
    cst.Equal: operators.eq,
    cst.NotEqual: operators.ne,
    cst.Is: operators.is_,
    cst.IsNot: operators.is_not,
    cst.In: lambda value, several: value in several,
    cst.NotIn: lambda value, several: value not in several,
    cst.LessThan: operators.lt,
    cst.LessThanEqual: operators.le,
    cst.GreaterThan: operators.gt,
    cst.GreaterThanEqual: operators.ge,
}


def _literal(node: cst.BaseExpression) -> tuple[bool, object]:
    """Whether an expression is a literal, and its value."""
    if isinstance(node, (cst.Tuple, cst.List, cst.Set)):
        elements = [_literal(each.value) for each in node.elements]
        return all(known for known, _value in elements), tuple(value for _known, value in elements)
    if isinstance(node, cst.Name):
        return node.value in _NAMED, _NAMED.get(node.value)
    number = signed_integer(node)
    text = literal_text(node)
    return (number, text) != (None, None), text if number is None else number


_NAMED = {"None": None, "True": True, "False": False}
