"""The parameters of kernels of Triton that these add to: another run with the same arguments adds once more."""

from __future__ import annotations

import ast
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
    values_in,
)
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.scopes import Scope


@lru_cache(maxsize=64)
def parameters_added_to(kernel: Kernel, scope: Scope, aliases: Aliases) -> frozenset[str]:
    """The parameters that a kernel adds to, and writes in no other way; ``scope`` is the one that it is defined in."""
    if may_return_early(kernel):
        return frozenset()
    accesses = accesses_in(kernel, scope, aliases)
    nodes, loads = nodes_of_kernel(kernel), [each.node for each in accesses if each.called == LOAD]
    dropped = {each.value for each in nodes if isinstance(each, ast.Expr)}
    loaded = _Loaded(nodes, loads, values_in(kernel), sources_by_name(kernel))
    sums: set[str] = set()
    others = lent_names(nodes, scope, aliases)
    for each in accesses:
        if each.called == LOAD:
            continue
        if each.address.pointer is None:
            return frozenset()
        adds = each.called == _ADD or (each.called == STORE and loaded.is_added_to(each.node))
        if adds and each.node in dropped and UNSURE not in each.address.factors:
            sums.add(each.address.pointer)
        else:
            others |= each.address.terms
    return frozenset(sums - others)


_ADD = "triton.language.atomic_add"
STORE = "triton.language.store"


def lent_names(nodes: Sequence[ast.AST], scope: Scope, aliases: Aliases) -> set[str]:
    """The names that a kernel gives to anything but the language: to other kernels, or to descriptors."""
    calls = (each for each in nodes if isinstance(each, ast.Call) and getattr(each.func, "attr", "") != "to")
    others = (each for each in calls if not meaning_in_kernel(each.func, scope, aliases).startswith(_LANGUAGE))
    return {name.id for call in others for name in nodes_in(call) if isinstance(name, ast.Name)}


_LANGUAGE = ("triton.language.", "builtins.")


@record
class _Loaded:
    """What a kernel loads, and whether it stores that, plus something else, at the same address."""

    nodes: Sequence[ast.AST]
    loads: list[ast.Call]
    values: dict[str, list[ast.expr]]
    sources: Mapping[str, Sequence[ast.expr | None]]

    def is_added_to(self, store: ast.Call) -> bool:
        """Whether a store certainly adds to what is at its address, something that does not depend on it."""
        if len(store.args) < 2 or not self.loads:
            return False
        load = next(
            (each for each in self.loads if _has_same_address(each, store) and has_same_lanes(each, store)), None
        )
        if load is None or self._moves(store.args[0], load, store):
            return False
        value = store.args[1]
        if isinstance(value, ast.Name):
            if self._grows(value.id, load):
                return True
            value = self._only_value(value)
        return self._is_sum(value, load)

    def _moves(self, address: ast.expr, load: ast.Call, store: ast.Call) -> bool:
        """Whether a name in an address is bound between a load and a store, or the store comes first."""
        names = {each.id for each in nodes_in(address) if isinstance(each, ast.Name)}
        bound = (each for each in self.nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
        return load.lineno > store.lineno or any(
            each.id in names and load.lineno < each.lineno < store.lineno for each in bound
        )

    def _grows(self, name: str, load: ast.Call) -> bool:
        """Whether a name is bound to what is loaded, and then only added to."""
        added = [each for each in self.nodes if isinstance(each, ast.AugAssign) and _is_name(each.target, name)]
        first = [each for each in self.values.get(name, ()) if all(each is not one.value for one in added)]
        return (
            bool(added)
            and [_before_conversion(each) for each in first] == [load]
            and all(isinstance(each.op, _SUMS) and not may_depend(each.value, load, self.sources) for each in added)
        )

    def _is_sum(self, value: ast.expr, load: ast.Call) -> bool:
        """Whether it is what is loaded plus, or minus, something else."""
        value = _before_conversion(value)
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, _SUMS):
            return False
        sides = [(value.left, value.right), (value.right, value.left)][: 1 + isinstance(value.op, ast.Add)]
        return any(self._is_loaded(one, load) and not may_depend(other, load, self.sources) for one, other in sides)

    def _is_loaded(self, node: ast.expr, load: ast.Call) -> bool:
        node = _before_conversion(node)
        return node is load or (isinstance(node, ast.Name) and _before_conversion(self._only_value(node)) is load)

    def _only_value(self, node: ast.Name) -> ast.expr:
        """What a name is bound to, if that is its only binding; itself otherwise."""
        found = self.values.get(node.id, [])
        return found[0] if len(found) == 1 else node


_SUMS = (ast.Add, ast.Sub)


def _has_same_address(load: ast.Call, store: ast.Call) -> bool:
    return ast.dump(load.args[0]) == ast.dump(store.args[0])


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _before_conversion(node: ast.expr) -> ast.expr:
    """What ``.to(dtype)`` converts."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        node = node.func.value
    return node
