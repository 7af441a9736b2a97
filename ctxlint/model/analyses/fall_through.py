"""Does backward reach the end of its body on a path that autograd takes, and lose the gradient there? Does forward?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.attribute_uses import OF_A_TENSOR
from ctxlint.model.analyses.decided_tests import outcome
from ctxlint.model.analyses.reachability import (
    absent_gradients,
    backward_never_runs,
    contradicts_itself,
    never_taken,
)
from ctxlint.model.interpreter.events import Assigned, ContextWrite, Mutation, Question
from ctxlint.model.interpreter.values import (
    NONE,
    Constant,
    ContextAttribute,
    NeedsInputGrad,
    Tri,
    is_gradient,
    is_input,
)
from ctxlint.model.syntax import children, code_of, dotted, is_name, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method


def lost_path(fn: FunctionClass) -> tuple[Guard, ...] | None:
    """The path condition of a path that certainly is taken and certainly should not fall off the end of backward.

    None if there is no such path, or none is certain.
    """
    backward = fn.backward
    if backward is None or fn.forward is None or not fn.count_judgeable or backward_never_runs(fn):
        return None
    facts = backward.facts
    if facts.falls_through is not Tri.YES or not facts.modelled:
        return None
    if _is_stub(backward):
        return None
    gradients = len(backward.positional)
    for path in facts.fall_paths:
        if any(guard.test is None and guard.arm in _UNCERTAIN for guard in path):
            continue
        if never_taken(fn, path) or _is_end_of_a_chain(backward, path) or _flags_excuse(fn, path):
            continue
        if (gradients > 1 or len(fn.inputs) == 1) and 0 < gradients <= len(absent_gradients(path)):
            continue  # no incoming gradient, so none to return, or the tests for several of them are exhaustive
        if any(_state_excuses(fn, guard) for guard in path):
            continue
        return path
    return None


def lost_output(fn: FunctionClass) -> tuple[Guard, ...] | None:
    """As ``lost_path``, for forward: a path to its end although another returns something, or backward a gradient."""
    forward = fn.forward
    if forward is None or fn.backward is None or forward.inherited or not fn.count_judgeable or _is_stub(forward):
        return None
    facts = forward.facts
    returns = any(each.value != NONE for each in facts.returns)
    if facts.falls_through is not Tri.YES or not facts.modelled or any(each.value == NONE for each in facts.returns):
        return None
    if not returns and not any(slot.value != NONE for each in fn.gradients for slot in each.slots):
        return None
    for path in facts.fall_paths:
        if any(guard.test is None and guard.arm in _UNCERTAIN for guard in path):
            continue
        if any(outcome(fn, forward, guard.test) is (not guard.holds) for guard in path) or _lacks_tensors(fn, path):
            continue
        if not contradicts_itself(path) and not _is_end_of_a_chain(forward, path):
            return path
    return None


def _lacks_tensors(fn: FunctionClass, path: tuple[Guard, ...]) -> bool:
    """Whether every input that may have a gradient is None on a path: then None may be what it is to return."""
    absent = {
        each.value.index
        for guard in path
        for each in guard.one_of or ((guard.asks,) if guard.asks is not None else ())
        if each.question is Question.IS_NONE and each.answer and is_input(each.value)
    }
    return bool(absent) and all(each.index in absent for each in fn.inputs if each.gradient is not Tri.NO)


def has_output(fn: FunctionClass) -> bool:
    """Whether forward computes something that it may return: as on another path, or in place, or for a name unused."""
    facts = fn.forward.facts if fn.forward is not None else None
    if facts is None:
        return False
    unused = (each for each in facts.of(Assigned) if each.name not in facts.names_read)
    return bool(facts.returns) or bool(facts.of(Mutation)) or any(_may_be_output(each) for each in unused)


def _may_be_output(each: Assigned) -> bool:
    return not isinstance(each.value, (Constant, ContextAttribute)) and each.value != NONE


def works_on_objects(fn: FunctionClass) -> bool:
    """Whether forward returns nothing at all, and what has a gradient are objects with attributes of their own.

    Without a tensor among its inputs, no output ever has a gradient.
    """
    forward, with_gradient = fn.forward, [each for each in fn.inputs if each.gradient is not Tri.NO]
    if forward is None or forward.facts.returns:
        return False
    read = [
        {
            above.attr.value
            for node in forward.named[each.name]
            if isinstance(above := forward.parents.get(node), cst.Attribute)
        }
        for each in with_gradient
    ]
    return all(names - OF_A_TENSOR for names in read)


_UNCERTAIN = frozenset({"exhausted", "returns", "no case", "unknown"})


def _is_stub(method: Method) -> bool:
    """Whether the body is only ``...``, or abstract: the code that runs is somewhere else."""
    if method.decorator("abstractmethod") is not None:
        return True
    statements: list[cst.CSTNode] = []
    for line in method.node.body.body:
        statements.extend(line.body if isinstance(line, cst.SimpleStatementLine) else [line])
    code = [each.value if isinstance(each, cst.Expr) else each for each in statements]
    return any(isinstance(each, cst.Ellipsis) for each in code) and all(
        isinstance(each, (cst.Ellipsis, cst.SimpleString, cst.ConcatenatedString)) for each in code
    )


def _flags_excuse(fn: FunctionClass, path: tuple[Guard, ...]) -> bool:
    """Whether the path is taken because one input needs no gradient, and no other input certainly needs one.

    An input that certainly has a gradient, and whose flag was not tested, is lost on such a path.
    """
    refused = {
        guard.asks.value.index
        for guard in path
        if guard.asks is not None
        and guard.asks.question is Question.NEEDS_INPUT_GRAD
        and isinstance(guard.asks.value, NeedsInputGrad)
        and not guard.asks.answer
    }
    if not refused:  # a test of the number of flags depends on the call
        return any("needs_input_grad" in guard.text and "len(" in guard.text for guard in path)
    return not any(each.surely_differentiable and each.index not in refused for each in fn.inputs)


def _state_excuses(fn: FunctionClass, guard: Guard) -> bool:
    """Whether a test fails only because ctx keeps None, which forward stores where an input needs no gradient."""
    asked = guard.one_of or ((guard.asks,) if guard.asks is not None else ())
    if not asked or not all(each.question is Question.IS_NONE and each.answer for each in asked):
        return False
    kept = [each.value.name for each in asked if isinstance(each.value, ContextAttribute)]
    others = [each.value for each in asked if not isinstance(each.value, ContextAttribute)]
    gradients = all(map(is_gradient, others))
    return bool(kept) and gradients and all(_is_for_gradients(fn, name) for name in kept)


def _is_for_gradients(fn: FunctionClass, attribute: str) -> bool:
    """Whether ``ctx.attribute`` is ``x if y.requires_grad else None``, perhaps by way of a local name."""
    if fn.forward is None:
        return False
    facts = fn.forward.facts
    writes = [each for each in facts.of(ContextWrite) if each.attribute == attribute]
    for write in writes:
        stored, name = write.value_node, dotted(write.value_node) if write.value_node is not None else None
        bound = [each.value_node for each in facts.of(Assigned) if each.name == name]
        chosen = [each for each in (stored, *bound) if isinstance(each, cst.IfExp)]
        if not any(is_name(each.orelse, "None") and "requires_grad" in words_of(each.test) for each in chosen):
            return False
    return bool(writes)


def _is_end_of_a_chain(method: Method, path: tuple[Guard, ...]) -> bool:
    """Whether two tests of the same thing were false, or two of one ``elif`` chain: they may be exhaustive."""
    chains = dict(_chains(method.node.body, None))
    asked: Counter[str] = Counter()
    for guard in path:
        part_of_another = guard.block == id(guard.test)
        if guard.test is None or guard.holds or part_of_another or _tests_none(guard):
            continue
        asked.update({*_subjects(guard.test), f"chain {chains.get(guard.block, guard.block)}"})
    return any(times > 1 for times in asked.values())


def _tests_none(guard: Guard) -> bool:
    return guard.asks is not None and guard.asks.question is Question.IS_NONE


def _chains(node: cst.CSTNode, first: int | None) -> Iterator[tuple[int, int]]:
    """Each ``if`` and ``elif`` by its identity, with that of the ``if`` that starts the chain."""
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
        return
    if isinstance(node, cst.If):
        first = id(node) if first is None else first
        yield id(node), first
        yield from _chains(node.body, None)
        if node.orelse is not None:
            yield from _chains(node.orelse, first if isinstance(node.orelse, cst.If) else None)
        return
    for child in children(node):
        yield from _chains(child, None)


def _subjects(test: cst.CSTNode) -> Iterator[str]:
    """The names and attributes that a condition tests, as text."""
    if isinstance(test, (cst.Name, cst.Attribute)):
        yield code_of(test)
        return
    if isinstance(test, cst.Call):
        for argument in test.args:
            yield from _subjects(argument.value)
        if isinstance(test.func, cst.Attribute):
            yield from _subjects(test.func.value)
        return
    for child in children(test):
        yield from _subjects(child)
