"""What kernels of Triton store where they have loaded it from: another run with the same arguments starts from that."""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import (
    LOAD,
    UNSURE,
    accesses_in,
    has_same_lanes,
    may_depend,
    may_return_early,
    nodes_of_kernel,
    sources_by_name,
)
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.kernel_sums import STORE, lent_names
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctxlint.model.index.kernel_addresses import Access, Kernel
    from ctxlint.model.index.scopes import Scope


@record
class InPlaceTransforms:
    """What a kernel does with the memory behind its parameters."""

    pairs: frozenset[tuple[str, str]] = frozenset()
    """The parameters that it loads from and stores to at the same address, if the memory is the same, a value that is
    certainly another one if that is done again."""
    loaded: frozenset[str] = frozenset()
    stored: frozenset[str] = frozenset()


@lru_cache(maxsize=64)
def transforms_in(kernel: Kernel, scope: Scope, aliases: Aliases) -> InPlaceTransforms:
    """What a kernel transforms by a load and one store; ``scope`` is the one that it is defined in."""
    accesses = accesses_in(kernel, scope, aliases)
    if any(each.address.pointer is None for each in accesses) or may_return_early(kernel):
        return InPlaceTransforms()
    nodes = nodes_of_kernel(kernel)
    loads = [each for each in accesses if each.called == LOAD]
    stores = [each for each in accesses if each.called == STORE and len(each.node.args) > 1]
    written = [each.address.pointer for each in accesses if each.called != LOAD]
    lent = lent_names(nodes, scope, aliases)
    once = [each for each in stores if written.count(each.address.pointer) == 1 and not lent & each.address.terms]
    values = _Values(
        frozenset(parameter_names(kernel.args)), _bindings(kernel), sources_by_name(kernel), scope, aliases
    )
    pairs = [pair for store in once for load in loads for pair in _transformed(values, load, store)]
    pairs = [(one, other) for one, other in pairs if one == other or one not in written]
    pointers = [[each.address.pointer for each in some if each.address.pointer] for some in (loads, stores)]
    return InPlaceTransforms(frozenset(pairs), *map(frozenset, pointers)) if once and loads else InPlaceTransforms()


def _transformed(values: _Values, load: Access, store: Access) -> Iterator[tuple[str, str]]:
    one, other = load.address.pointer, store.address.pointer
    if one is None or other is None or UNSURE in load.address.factors | store.address.factors:
        return
    same = values.address(load) == values.address(store) and has_same_lanes(load.node, store.node)
    if load.node.lineno < store.node.lineno and same:
        masks = [*store.node.args[2:3], *(each.value for each in store.node.keywords)]
        if values.is_another(store.node.args[1], load.node) and not any(
            may_depend(each, load.node, values.sources) for each in masks
        ):
            yield one, other


def _bindings(kernel: Kernel) -> dict[str, list[tuple[ast.expr | None, int, int]]]:
    """What each name is bound to, None if that is not plain, with the line and the block of the statement."""
    found: dict[str, list[tuple[ast.expr | None, int, int]]] = {}
    plain: set[int] = set()
    for block in _blocks(kernel):
        for each in block:
            targets = each.targets if isinstance(each, ast.Assign) else []
            if isinstance(each, ast.Assign) and len(targets) == 1 and isinstance(targets[0], ast.Name):
                found.setdefault(targets[0].id, []).append((each.value, each.lineno, id(block)))
                plain.add(id(targets[0]))
    for name in nodes_of_kernel(kernel):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and id(name) not in plain:
            found.setdefault(name.id, []).append((None, name.lineno, 0))
    return found


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse"):
        block = getattr(node, name, [])
        if isinstance(block, list) and block:
            yield block
            for each in block:
                yield from _blocks(each)


@record
class _Values:
    """What the names in a kernel stand for."""

    parameters: frozenset[str]
    bindings: dict[str, list[tuple[ast.expr | None, int, int]]]
    sources: Mapping[str, Sequence[ast.expr | None]]
    scope: Scope
    aliases: Aliases
    steps: list[int] = field(default_factory=lambda: [0])

    def address(self, access: Access) -> str:
        """An address without its pointer, written with what its names stand for; empty if that is open."""
        return self._written(access.node.args[0], access.node.lineno, access.address.pointer or "") or str(id(access))

    def _written(self, node: ast.expr, line: int, pointer: str) -> str:
        if isinstance(node, ast.Name):
            if node.id not in self.bindings:
                return "*" if node.id == pointer else node.id
            bound, at = self._bound(node, line)
            return self._written(bound, at, pointer) if bound is not None else ""
        if isinstance(node, ast.BinOp):
            sides = [self._written(each, line, pointer) for each in (node.left, node.right)]
            return f"({sides[0]} {type(node.op).__name__} {sides[1]})" if all(sides) else ""
        names = [each for each in nodes_in(node) if isinstance(each, ast.Name)]
        settled = all(each.id not in self.bindings and each.id != pointer for each in names)
        return ast.dump(node) if settled else ""

    def _bound(self, name: ast.Name, line: int) -> tuple[ast.expr | None, int]:
        """What a name certainly stands for on a line, and the line where it was bound to that."""
        found = self.bindings.get(name.id, [])
        earlier = [each for each in found if each[1] < line]
        self.steps[0] += 1
        one_block = len({each[2] for each in found}) == 1
        if not earlier or not one_block or name.id in self.parameters or self.steps[0] > _MANY:
            return None, line
        value, at, _block = max(earlier, key=lambda each: each[1])
        return value, at

    def is_another(self, value: ast.expr, load: ast.Call) -> bool:
        """Whether a function of what is loaded certainly gives another result if it is applied to its own.

        It is, if it has an exponential or the like of that, or a product of two factors that depend on it; not a
        selection, a maximum, or a sum of a logarithm, which may undo an exponential.
        """
        through: set[str] = set()
        depends = self._passes(value, value.lineno, load, through)
        return depends and bool(through & _SMOOTH) and not through & _INVERSE

    def _passes(self, node: ast.expr, line: int, load: ast.Call, through: set[str]) -> bool:
        """Whether a value certainly depends on what is loaded, and ``through`` which functions."""
        if node is load:
            return True
        if isinstance(node, ast.Name):
            bound, at = self._bound(node, line)
            return bound is not None and self._passes(bound, at, load, through)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._passes(node.operand, line, load, through)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            sides = [self._passes(each, line, load, through) for each in (node.left, node.right)]
            through.update(["square"] if all(sides) and isinstance(node.op, ast.Mult) else [])
            return any(sides)
        return isinstance(node, ast.Call) and self._call_passes(node, line, load, through)

    def _call_passes(self, node: ast.Call, line: int, load: ast.Call, through: set[str]) -> bool:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self._passes(node.func.value, line, load, through)
        called = meaning_in_kernel(node.func, self.scope, self.aliases)
        function = called.rpartition(".")[2] if called.startswith("triton.language.") else ""
        if function == "where" and len(node.args) == 3:
            passed = [self._passes(each, line, load, through) for each in node.args[1:]]
            return any(passed) and not may_depend(node.args[0], load, self.sources)  # it may end after one run
        if function in _SMOOTH | _INVERSE and len(node.args) == 1 and self._passes(node.args[0], line, load, through):
            through.add(function)
            return True
        return False


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SMOOTH = frozenset(["exp", "exp2", "sigmoid", "tanh", "erf", "sin", "cos", "square"])
_INVERSE = frozenset(["log", "log2", "log1p", "sqrt", "rsqrt"])
_MANY = 2_000
"""The number of names that are followed in one kernel."""
