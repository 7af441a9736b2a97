"""Names that a kernel of Triton reads where a flag of the launch has left out the code that binds them."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.kernel_addresses import nodes_of_kernel
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.index.kernel_addresses import Kernel


class UnboundUnderFlag(NamedTuple):
    """A name that is read although it is bound only if a ``flag`` has another value."""

    name: ast.Name
    flag: str


def flags_tested(kernel: Kernel) -> frozenset[str]:
    """The parameters that an ``if`` of a kernel tests by themselves, and that it asserts nothing about."""
    parameters = frozenset(parameter_names(kernel.args))
    nodes = nodes_of_kernel(kernel)
    tested = {name for each in nodes if isinstance(each, ast.If) for name, _on in _flag(each.test)} & parameters
    if not tested:
        return frozenset()
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    asserted = [each for each in nodes if isinstance(each, ast.Assert) or _is_static_assert(each)]
    required = {part.id for each in asserted for part in nodes_in(each) if isinstance(part, ast.Name)}
    return frozenset(tested - stored - required)


def unbound_reads(kernel: Kernel, flag: str, value: bool) -> Iterator[UnboundUnderFlag]:
    """The first read of each name that is certainly unbound in a kernel if a flag has this value."""
    walk = _Walk(flag, value)
    walk.block(kernel.body, certain=True)
    local = {
        each.id for each in nodes_of_kernel(kernel) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    unbound = local - walk.bound - {*parameter_names(kernel.args)}
    for name in sorted(unbound & walk.reads.keys()):
        yield UnboundUnderFlag(walk.reads[name], flag)


def _flag(test: ast.expr) -> Iterator[tuple[str, bool]]:
    """The flag that a test is, and the value for which it holds: ``HAS_BIAS``, ``not HAS_BIAS``."""
    if isinstance(test, ast.Name):
        yield test.id, True
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Name):
        yield test.operand.id, False
    elif isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1:
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, bool):
            if isinstance(test.ops[0], (ast.Eq, ast.Is)):
                yield test.left.id, right.value


def _is_static_assert(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "static_assert"


def arms_of(node: ast.AST) -> Iterator[ast.expr]:
    """What an expression evaluates on some paths only."""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from node.values[1:]


@record
class _Walk:
    """Follows a kernel for one value of a flag: what it binds on some path, and what it reads on every path."""

    flag: str
    value: bool
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
            inside = certain and not isinstance(node, ast.While)
            after = self.block(node.body, certain=inside)
            return certain and (after or not inside)
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return False
        if isinstance(node, (ast.FunctionDef, ast.Try, ast.Match)):
            self.expression(node, certain=False)
            return certain
        added = node.target if isinstance(node, ast.AugAssign) else None
        self.expression(node, certain=certain, added=added)
        return certain

    def branch(self, node: ast.If, *, certain: bool) -> bool:
        """Walk the arm that the flag chooses, or both."""
        chosen = [on is self.value for name, on in _flag(node.test) if name == self.flag]
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
        optional = {part for each in nodes_in(node) for arm in arms_of(each) for part in nodes_in(arm)}
        for each in nodes_in(node):
            if isinstance(each, ast.Name):
                reads = isinstance(each.ctx, ast.Load) or each is added
                if not reads:
                    self.bound.add(each.id)
                elif certain and each not in optional:
                    self.reads.setdefault(each.id, each)
