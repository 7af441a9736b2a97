"""What a function certainly writes to, as its callers see it."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reverted_writes import lasting
from ctxlint.model.analyses.sums_in_new_memory import adds, is_first_use, runs_in_any_case
from ctxlint.model.interpreter.certain_paths import is_on_all_paths, without_parts
from ctxlint.model.interpreter.conditions import certain_parts
from ctxlint.model.interpreter.effects import may_stop
from ctxlint.model.interpreter.events import Mutation, Question, Step
from ctxlint.model.interpreter.summary import Write
from ctxlint.model.interpreter.values import (
    Argument,
    Choice,
    ContextAttribute,
    Item,
    SavedTensor,
    Tri,
    Variadic,
    View,
    converted_storage,
    is_none,
    join_all,
    permuted_storage,
    usual_storage,
)
from ctxlint.model.syntax import is_name, parents_below
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping as MappingOf

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.syntax import Parents


def writes_of(definition: Definition, own: frozenset[str], facts: MethodFacts) -> Iterator[Write]:
    """The writes of a function with its ``own`` names to its arguments, in the order of its code, each tensor once."""
    seen: set[Value] = set()
    doubted: dict[Value, list[tuple[Guard, ...]]] = {}
    tests: _Tests | None = None
    for mutation in lasting(facts.of(Mutation)):
        target = mutation.target
        origin = _written(target)
        if target is None or origin is None or origin in seen:
            continue
        tests = tests or _Tests(definition, own)
        doubts = doubted.setdefault(origin, [])
        doubts.append(tuple(guard for guard in mutation.guards if not tests.let(guard)))
        if not is_on_all_paths(doubts):
            either = _written_or_converted(origin, doubted)
            if either is None:
                continue
            target = either
        seen.add(origin)
        steps = (_step(definition, mutation), *mutation.through)
        adds_first = tests.adds_first(mutation, origin)
        yield Write(target, mutation.how, steps, mutation.order, mutation.chosen, adds_first)


def _written_or_converted(origin: Value, doubted: MappingOf[Value, list[tuple[Guard, ...]]]) -> Value | None:
    """An argument and what converts it, if one or the other certainly is written to; None if neither may be."""
    argument = origin.of if isinstance(origin, View) else origin
    converted = [each for each in doubted if isinstance(each, View) and each.of == argument]
    if argument not in doubted or len(converted) != 1 or converted_storage(converted[0]) is None:
        return None
    paths = [without_parts(guards) for each in (argument, *converted) for guards in doubted[each]]
    return join_all([argument, *converted]) if is_on_all_paths(paths) else None


def _written(target: Value | None) -> Value | None:
    """What a caller knows of the memory that is written to: its own value, or a view that may copy it; else None."""
    origin = usual_storage(target) if target is not None else None
    if origin is None:
        copied = permuted_storage(target) or converted_storage(target)
        if copied is None and isinstance(target, Choice):  # one of several tensors of the caller
            return target if all(_written(each) is not None for each in target.options()) else None
        return copied[1] if copied is not None else None
    base = origin
    while isinstance(base, (Item, View)):
        base = base.of
    return origin if isinstance(base, (Argument, ContextAttribute, SavedTensor, Variadic)) else None


def _step(definition: Definition, mutation: Mutation) -> Step:
    unit = definition.unit
    span = unit.slices.span_in_function(definition.qualname, mutation.statement or mutation.node)
    name = definition.name
    target = "{}" if mutation.target_node is not None else mutation.name or "it"
    if mutation.by:
        note = f"`{name}` passes `{target}` to `{mutation.by}` here"
    else:
        note = f"`{name}` modifies `{target}` with `{mutation.how}` here"
    return Step(unit.path, span, note, mutation.target_node)


class _Tests:
    """Decides whether a write under some guards counts for callers.

    It does under tests of the environment: the number of processes, installed packages. It does not under what the
    caller determines: a flag, a shape, a type.
    """

    def __init__(self, definition: Definition, own: frozenset[str]) -> None:
        """For a function with its ``own`` names, which depend on the caller."""
        self.definition = definition
        self.own = own
        self.module = definition.unit.index.module
        self.body = definition.unit.index.functions[definition.qualname].node.body

    def let(self, guard: Guard) -> bool:
        """Whether a write under this guard counts."""
        if guard.test is None:
            return guard.arm in ("loop", "try", "not broken")
        asks = guard.asks
        if asks is not None:
            if asks.question is Question.IS_NONE and asks.answer:
                return is_none(asks.value) is Tri.YES
            return asks.answer is (asks.question is not Question.IS_NONE) and asks.question is not Question.GRAD_MODE
        text = guard.text
        if len(text) > _LONGEST_TEST:
            return False
        if _OTHER_BUSINESS.search(text) is None and (guard.block, guard.holds) in self.demanded:
            return True
        if _COUNTS_PROCESSES.search(text) or _PLACE.search(text):
            return True
        compared = _NAME_COMPARED.fullmatch(text)
        if compared is not None and self.counts_processes(compared["name"]):
            return True
        return _OTHER_BUSINESS.search(text) is None and not any(map(self.is_chosen, _NAME.findall(text)))

    @cached_property
    def parents(self) -> Parents:
        """The parent of each node of the function."""
        node = self.definition.unit.slices.find_bare_function(self.definition.qualname)
        return parents_below(node) if node is not None else {}

    def adds_first(self, mutation: Mutation, origin: Value) -> bool:
        """Whether a write to an argument adds to it before the function does anything else with its memory."""
        if not isinstance(origin, Argument) or mutation.name is None or not adds(mutation):
            return False
        uses = [each for each in self.parents if is_name(each, mutation.name)]
        return runs_in_any_case(mutation.guards) and is_first_use(self.parents, uses, mutation)

    @cached_property
    def demanded(self) -> frozenset[tuple[int, bool]]:
        """The guards of what the function does unless it raises: ``block`` and ``holds``."""
        tests = [each for each in self.parents if isinstance(each, cst.If)]
        found = [(each, False) for each in tests if _raises(each.body)]
        found += [(each, True) for each in tests if isinstance(each.orelse, cst.Else) and _raises(each.orelse.body)]
        parts = ((part, answer) for each, holds in found for part, answer in certain_parts(each.test, holds))
        return frozenset((id(each), holds) for each, holds in (*found, *parts))

    def counts_processes(self, name: str) -> bool:
        """Whether a name of the function is bound once, to the number of processes."""
        bound = [
            node
            for statement in self.body
            for node in nodes_in(statement)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        ]
        calls = [
            each.value
            for each in self.body
            if isinstance(each, ast.Assign) and bound == each.targets and isinstance(each.value, ast.Call)
        ]
        return len(calls) == 1 and _NUMBER_OF_PROCESSES.search(ast.unparse(calls[0].func)) is not None

    def is_chosen(self, name: str) -> bool:
        """Whether a name is one of the function's own, or a switch of the module."""
        switches = self.module.names.get(name, ())
        if name in self.own or any(type(each.value).__name__ == "Constant" for each in switches):
            return True
        return name in self.rebound

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The names of other scopes that the function binds itself, so that they differ from call to call."""
        nodes = (each for statement in self.body for each in nodes_in(statement))
        declared = (each for each in nodes if isinstance(each, (ast.Global, ast.Nonlocal)))
        return frozenset(name for each in declared for name in each.names)


def _raises(block: cst.BaseSuite) -> bool:
    """Whether a block has no other end than ``raise``."""
    last = block.body[-1] if block.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, cst.Raise) and not may_stop(block)


_LONGEST_TEST = 1000
"""A longer test is not read: the patterns need quadratic time."""

_COUNTS_PROCESSES = pattern(
    r"\b\w*(?:world|group|parallel|tp|sp|cp|dp|mp|ep|pp)_?(?:world_)?size\w*(?:\(.*\))?\s*(?:==|!=|<=|>=|<|>)\s*[12]\b"
    r"|\.size\(\)\s*(?:==|!=|<=|>=|<|>)\s*[12]\b"
    r"|\b[12]\s*(?:==|!=|<=|>=|<|>)\s*\w*(?:world|group|parallel)_?size"
)
"""Tests of the number of processes: a single process has nothing to send; users have several."""

_NAME_COMPARED = pattern(r"(?P<name>[A-Za-z_]\w*)\s*(?:==|!=|<=|>=|<|>)\s*[12]")

_NUMBER_OF_PROCESSES = pattern(r"(?:world|group|parallel)_?(?:world_)?size$|group\w*\.size$")

_PLACE = pattern(r"\.is_cuda$|\.is_contiguous\(\)$")

_OTHER_BUSINESS = pattern(r"grad|training|inference|debug|test|\brand|random|bernoulli", re.IGNORECASE)

_NAME = pattern(r"(?<![\w.])[A-Za-z_]\w*")
