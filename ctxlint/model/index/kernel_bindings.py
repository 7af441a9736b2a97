"""Names that a kernel of Triton reads where a flag of the launch has left out the code that binds them."""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import nodes_of_kernel
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.scopes import Scope


class Flag(NamedTuple):
    """What an ``if`` of a kernel asks about a parameter: whether it is true, or ``given``, which is not None."""

    parameter: str
    given: bool = False

    def written(self, value: bool) -> str:
        """The condition that holds if the flag has a value."""
        if self.given:
            return f"{self.parameter} is {'not ' * value}None"
        return self.parameter if value else f"not {self.parameter}"


class UnboundUnderFlag(NamedTuple):
    """A name that is read although it is bound only if a ``flag`` has another ``value``."""

    name: ast.Name
    flag: Flag
    value: bool


@lru_cache(maxsize=64)
def unbound_reads(kernel: Kernel, scope: Scope) -> tuple[UnboundUnderFlag, ...]:
    """The first read of each name that is certainly unbound in a kernel, if one of its flags has one of its values.

    ``scope`` is the one that the kernel is defined in: Triton looks there for a name that the kernel has not bound.
    """
    found = []
    arms = _arms_of_flags(kernel)
    names = _names_bound_in(kernel, arms) if arms else {}
    flags = frozenset(flag.parameter for flag, _value in arms)
    if len(names) > _MOST:
        return ()
    for (flag, bound_if), local in names.items():
        walk = _Walk(flag, not bound_if, flags)
        walk.block(kernel.body, certain=True)
        unbound = sorted((local - walk.bound) & walk.reads.keys())
        reads = [walk.reads[name] for name in unbound if scope.owner(name) is None]
        found += [UnboundUnderFlag(name, flag, not bound_if) for name in reads]
    return tuple(found)


_MOST = 64
"""How many flags are asked about, for each of which the kernel is walked."""


def _names_bound_in(
    kernel: Kernel, arms: Mapping[tuple[Flag, bool], frozenset[int]]
) -> Mapping[tuple[Flag, bool], set[str]]:
    """The names that are bound only in the arms of a flag for one value, and read elsewhere as well."""
    inside = frozenset[int]().union(*arms.values())
    names = [each for each in nodes_of_kernel(kernel) if each.__class__ is ast.Name]
    stored = [each for each in names if each.ctx.__class__ is ast.Store]
    others = {*parameter_names(kernel.args), *[each.id for each in stored if each.lineno not in inside]}
    local = {each.id for each in stored if each.id not in others}
    names = [each for each in names if each.id in local]
    found = {}
    for key, lines in arms.items():
        outside = {each.id for each in names if each.ctx.__class__ is ast.Store and each.lineno not in lines}
        read = {each.id for each in names if each.id not in outside and each.lineno not in lines}
        if read:
            found[key] = read
    return found


def _arms_of_flags(kernel: Kernel) -> Mapping[tuple[Flag, bool], frozenset[int]]:
    """The lines of the arms of each flag, by the value for which they are compiled."""
    tests = [each for each in nodes_of_kernel(kernel) if each.__class__ is ast.If]
    flags = _flags_tested(kernel, tests) if tests else frozenset()
    found: dict[tuple[Flag, bool], set[int]] = {}
    for each in tests if flags else ():
        for flag, value in _flag(each.test):
            for arm, holds in ((each.body, value), (each.orelse, not value)):
                if arm and flag in flags:
                    lines = range(arm[0].lineno, (arm[-1].end_lineno or arm[-1].lineno) + 1)
                    found.setdefault((flag, holds), set()).update(lines)
    return {key: frozenset(lines) for key, lines in sorted(found.items())}


def _flags_tested(kernel: Kernel, tests: list[ast.If]) -> frozenset[Flag]:
    """The flags that an ``if`` tests by themselves, of parameters that the kernel asserts and rebinds nothing about.

    Triton decides an ``if`` when it compiles only by constants: parameters that are declared so, and None.
    """
    every = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    declared = {each.arg: ast.unparse(each.annotation) for each in every if each.annotation is not None}
    constant = {name for name, annotation in declared.items() if "constexpr" in annotation}
    tested = {flag for each in tests for flag, _value in _flag(each.test)}
    parameters = {each.arg for each in every}
    tested = {each for each in tested if each.parameter in (parameters if each.given else constant)}
    if not tested:
        return frozenset()
    nodes = nodes_of_kernel(kernel)
    stored = {each.id for each in nodes if each.__class__ is ast.Name and each.ctx.__class__ is ast.Store}
    asserted: list[ast.AST] = [each for each in nodes if each.__class__ is ast.Assert]
    asserted += [each for each in nodes if each.__class__ is ast.Call and _is_static_assert(each)]
    required = {part.id for each in asserted for part in nodes_in(each) if isinstance(part, ast.Name)}
    return frozenset(each for each in tested if each.parameter not in stored | required)


def _flag(test: ast.expr) -> Iterator[tuple[Flag, bool]]:
    """The flag that a test is, and the value for which it holds: ``HAS``, ``not HAS``, ``bias is not None``."""
    if isinstance(test, ast.Name):
        yield Flag(test.id), True
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from ((flag, not value) for flag, value in _flag(test.operand))
    elif isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1:
        name, operator, right = test.left.id, test.ops[0], test.comparators[0]
        asked = right.value if isinstance(right, ast.Constant) else ...
        if asked is None and isinstance(operator, (ast.Is, ast.IsNot)):
            yield Flag(name, given=True), isinstance(operator, ast.IsNot)
        elif isinstance(asked, bool) and isinstance(operator, (ast.Eq, ast.Is)):
            yield Flag(name), asked


def _is_static_assert(node: ast.Call) -> bool:
    return getattr(node.func, "attr", "") == "static_assert"


def optional_in(nodes: Sequence[ast.AST]) -> frozenset[ast.AST]:
    """What the expressions among some nodes evaluate on some paths only."""
    arms: list[ast.expr] = []
    for each in nodes:
        if each.__class__ is ast.IfExp:
            arms += (each.body, each.orelse)
        elif each.__class__ is ast.BoolOp:
            arms += each.values[1:]
    return frozenset(part for arm in arms for part in nodes_in(arm))


def always_compiled(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """What Triton compiles for every launch: not the arms of tests, nor what a return may end."""
    for statement in body:
        if isinstance(statement, (ast.For, ast.With)):
            unrolled = isinstance(statement, ast.For) and _is_static_range(statement.iter)
            yield from () if unrolled else always_compiled(statement.body)
        elif not isinstance(statement, (ast.If, ast.While, ast.Try, ast.FunctionDef)):
            nodes = nodes_in(statement)
            optional = optional_in(nodes)
            yield from (each for each in nodes if each not in optional)
        if any(isinstance(each, ast.Return) for each in nodes_in(statement)):
            return


def _is_static_range(iterated: ast.expr) -> bool:
    return getattr(getattr(iterated, "func", None), "attr", "") == "static_range"


_LIKE_A_FLAG = pattern(r"(?i)(has|use|is|do|with|enable|apply)_")


@record
class _Walk:
    """Follows a kernel for one value of a flag: what it binds on some path, and what it reads on every path."""

    flag: Flag
    value: bool
    flags: frozenset[str]
    """The parameters that the kernel tests."""
    bound: set[str] = field(default_factory=set)
    reads: dict[str, ast.Name] = field(default_factory=dict)

    def block(self, body: Iterable[ast.stmt], *, certain: bool) -> bool:
        """Walk statements; whether what follows them is still certain to be compiled."""
        for statement in body:
            certain = self.statement(statement, certain=certain)
        return certain

    def statement(self, node: ast.stmt, *, certain: bool) -> bool:
        """Walk one statement, as ``block``."""
        if isinstance(node, ast.If):
            return self.branch(node, certain=certain)
        if isinstance(node, (ast.For, ast.While, ast.With)):
            heads = [node.test] if isinstance(node, ast.While) else []
            heads += [node.target, node.iter] if isinstance(node, ast.For) else []
            for head in heads:
                self.expression(head, certain=certain)
            may_not_run = isinstance(node, ast.While) or (isinstance(node, ast.For) and self.may_be_empty(node.iter))
            inside = certain and not may_not_run
            after = self.block(node.body, certain=inside)
            return certain and (after or not inside)
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            self.expression(node, certain=certain)
            return False
        if isinstance(node, (ast.FunctionDef, ast.Try, ast.Match)):
            self.expression(node, certain=False)
            return certain
        added = node.target if isinstance(node, ast.AugAssign) else None
        self.expression(node, certain=certain, added=added)
        return certain

    def may_be_empty(self, iterated: ast.expr) -> bool:
        """Whether Triton may leave out the body of a loop: it unrolls ``static_range(FLAG)``."""
        if not _is_static_range(iterated):
            return False
        names = {each.id for each in nodes_in(iterated) if isinstance(each, ast.Name)}
        return not self.flags.isdisjoint(names) or any(map(_LIKE_A_FLAG.match, names))

    def branch(self, node: ast.If, *, certain: bool) -> bool:
        """Walk the arm that the flag chooses, or both."""
        chosen = [on is self.value for flag, on in _flag(node.test) if flag == self.flag]
        if chosen:
            return self.block(node.body if chosen[0] else node.orelse, certain=certain)
        self.expression(node.test, certain=certain)
        ends = [not self.block(arm, certain=True) if arm else False for arm in self._uncertain(node)]
        return certain and not any(ends)

    def _uncertain(self, node: ast.If) -> Iterator[list[ast.stmt]]:
        """Both arms; what they read may not be compiled."""
        for arm in (node.body, node.orelse):
            before = dict(self.reads)
            yield arm
            self.reads.clear()
            self.reads.update(before)

    def expression(self, node: ast.AST, *, certain: bool, added: ast.expr | None = None) -> None:
        """Note the names in code without branches; what is added to is read."""
        nodes = nodes_in(node)
        optional = optional_in(nodes) if certain else frozenset()
        for each in nodes:
            if each.__class__ is ast.Name:
                reads = isinstance(each.ctx, ast.Load) or each is added
                if not reads:
                    self.bound.add(each.id)
                elif certain and each not in optional:
                    self.reads.setdefault(each.id, each)
