"""The transfer functions of statements: simple ones here, and a table of all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.assignments import execute_annotated, execute_assignment, execute_augmented
from ctxlint.model.interpreter.attribute_access import (
    change_contents,
    delete_context_attribute,
    evaluate_indices,
)
from ctxlint.model.interpreter.branches import execute_if, execute_match, execute_try, execute_with
from ctxlint.model.interpreter.conditions import asks_ctx, decided, enter_arm, guards_of, narrow
from ctxlint.model.interpreter.events import Discarded, Escape, Guard, ResultDropped, Return
from ctxlint.model.interpreter.expressions import evaluate_display
from ctxlint.model.interpreter.loops import execute_for, execute_leave, execute_while
from ctxlint.model.interpreter.names import canonical, captured, handed_on, sees_context
from ctxlint.model.interpreter.sequences import unknown_content
from ctxlint.model.interpreter.values import (
    NEVER,
    NONE,
    UNBOUND,
    Context,
    Imported,
    Opaque,
    Scalar,
    Slot,
    holds_context,
    tensor_when_used,
)
from ctxlint.model.interpreter.wanted_layouts import note_wanted
from ctxlint.model.syntax import dotted, keywords_of, last_name
from ctxlint.patterns import pattern
from ctxlint.torch_api import operations, python

if TYPE_CHECKING:
    from ctxlint.model.interpreter.walk import Executors, Walk


def execute_nothing(walk: Walk, node: cst.BaseSmallStatement) -> None:
    """A statement without an effect of its own."""


def execute_expression(walk: Walk, node: cst.Expr) -> None:
    """An expression statement: code after a call that never returns is unreachable."""
    value = node.value
    result = walk.evaluate(value)
    if not isinstance(value, cst.Call):
        if isinstance(value, (cst.Tuple, cst.BinaryOperation)):
            walk.record(Discarded, node, value=result)
        return
    _note_dropped(walk, node, value)
    if result is NEVER or canonical(walk, value.func) in python.NEVER_RETURNING:
        walk.state.live = False
    elif sounds_final(value.func):
        walk.state.doubt(Guard(id(node), "returns"))


def _note_dropped(walk: Walk, node: cst.Expr, call: cst.Call) -> None:
    """Record the call of a method that has no effect but its result."""
    func = call.func
    if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name):
        return
    called = func.attr.value
    if called in operations.WITHOUT_EFFECT and tensor_when_used(walk.peek(func.value)) and not _writes_out(call):
        walk.record(ResultDropped, node, name=func.value.value)


def _writes_out(call: cst.Call) -> bool:
    """Whether a call has an argument ``out=``, or keywords that are not known."""
    return "out" in keywords_of(call) or any(each.star == "**" for each in call.args)


def execute_return(walk: Walk, node: cst.Return) -> None:
    """``return``."""
    written = node.value
    if isinstance(written, cst.Tuple):
        value = evaluate_display(walk, written, walk.evaluate)
    else:
        value = walk.evaluate(written) if written is not None else NONE
    if holds_context(value):
        walk.record(Escape, node, how="returned")
    if isinstance(value, Scalar) and value.sort == "callable" and not sees_context(walk, value):
        value = handed_on(walk, Slot(value, written)).value
    if value is NEVER:
        walk.state.live = False
        return
    attributes, absent = frozenset(walk.state.attributes), walk.state.absent
    walk.record(Return, node, value=value, bare=node.value is None, attributes=attributes, absent=absent)
    walk.state.live = False


def execute_raise(walk: Walk, node: cst.Raise) -> None:
    """``raise``."""
    if node.exc is not None:
        walk.evaluate(node.exc)
    walk.state.live = False


def execute_assert(walk: Walk, node: cst.Assert) -> None:
    """``assert``: what follows runs under its condition, of which only flags and attributes of ctx matter later."""
    walk.evaluate(node.test)
    _note_asserted(walk, node)
    if node.msg is not None:
        before = walk.state
        enter_arm(walk, before, node, node.test, holds=False)
        walk.evaluate(node.msg)
        walk.state = before
    if decided(walk, node.test) is False:
        walk.state.live = False
        return
    asserted = [each for each in guards_of(walk, node.test, True, node) if asks_ctx(walk, each)]
    if asserted:
        walk.state = walk.state.fork(*asserted)
    narrow(walk, node.test, holds=True)


def _note_asserted(walk: Walk, node: cst.Assert) -> None:
    """Record the tensors that have to be contiguous, or an error is raised, and not handled."""
    note_wanted(walk, node.test, "" if node.msg is None else "AssertionError", holds=True)


def execute_delete(walk: Walk, node: cst.Del) -> None:
    """``del``."""
    for target in _delete_targets(node.target):
        if isinstance(target, cst.Name):
            walk.state.names[target.value] = UNBOUND
        elif isinstance(target, cst.Attribute) and isinstance(walk.evaluate(target.value), Context):
            delete_context_attribute(walk, target, target.attr.value)
        elif isinstance(target, cst.Subscript):
            change_contents(walk, target, walk.evaluate(target.value), unknown_content)
            evaluate_indices(walk, target)
        else:
            walk.evaluate_children(target)


def execute_import(walk: Walk, node: cst.Import | cst.ImportFrom) -> None:
    """An import inside a method binds names that the file's index does not contain."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            path = dotted(alias.name)
            bound = alias.evaluated_alias
            if path is not None:
                name = bound or path.partition(".")[0]
                walk.state.names[name] = Imported(path if bound else name)
        return
    origin = "." * len(node.relative) + ((dotted(node.module) or "") if node.module is not None else "")
    if isinstance(node.names, cst.ImportStar):
        walk.complete = False
        return
    for alias in node.names:
        name = alias.evaluated_name
        target = f"{origin}.{name}" if node.module is not None else f"{origin}{name}"
        walk.state.names[alias.evaluated_alias or name] = Imported(target)


def execute_definition(walk: Walk, node: cst.FunctionDef | cst.ClassDef) -> None:
    """A function or class inside the method."""
    for decorator in node.decorators:
        walk.evaluate(decorator.decorator)
    captured(walk, node)
    walk.state.names[node.name.value] = Scalar("callable", node) if isinstance(node, cst.FunctionDef) else Opaque(node)


# ---------------------------------------------------------------------------------------------------------------------
# Pure helpers


def _delete_targets(target: cst.CSTNode) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [each for element in target.elements for each in _delete_targets(element.value)]
    return [target] if isinstance(target, cst.BaseExpression) else []


def sounds_final(func: cst.BaseExpression) -> bool:
    """Whether a function raises by its name; its body may be in another file."""
    return _FINAL.search(last_name(func)) is not None


_FINAL = pattern(
    r"raise|error|exception|fail|abort|unreach|unsupported|not_?impl|not_supported|exit|skip|fatal|assert",
    re.IGNORECASE,
)


EXECUTORS: Executors = {
    cst.Expr: execute_expression,
    cst.Return: execute_return,
    cst.Raise: execute_raise,
    cst.Assert: execute_assert,
    cst.Break: execute_leave,
    cst.Continue: execute_leave,
    cst.Del: execute_delete,
    cst.Import: execute_import,
    cst.ImportFrom: execute_import,
    cst.Assign: execute_assignment,
    cst.AnnAssign: execute_annotated,
    cst.AugAssign: execute_augmented,
    cst.Pass: execute_nothing,
    cst.Global: execute_nothing,
    cst.Nonlocal: execute_nothing,
    cst.If: execute_if,
    cst.With: execute_with,
    cst.Try: execute_try,
    cst.TryStar: execute_try,
    cst.Match: execute_match,
    cst.For: execute_for,
    cst.While: execute_while,
    cst.FunctionDef: execute_definition,
    cst.ClassDef: execute_definition,
}
"""The transfer functions of statements, by node type."""
