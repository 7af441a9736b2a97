"""Stores of a kernel of Triton at addresses that are the same in all programs of a launch."""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import UNSURE, accesses_in, nodes_of_kernel, sources_by_name
from ctxlint.model.index.kernel_bindings import always_compiled
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.kernel_sums import STORE, lent_names
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctxlint.model.index.kernel_addresses import Access, Kernel
    from ctxlint.model.index.scopes import Scope


class SharedStore(NamedTuple):
    """A store through a parameter whose value differs along an ``axis`` of the grid, and whose address does not.

    ``moved`` are the pointers whose addresses do.
    """

    node: ast.Call
    pointer: str
    axis: int
    moved: tuple[str, ...]


@lru_cache(maxsize=64)
def shared_stores(kernel: Kernel, scope: Scope, aliases: Aliases) -> tuple[SharedStore, ...]:
    """The first such store through each parameter, if none through it is at another address."""
    programs = _Programs(sources_by_name(kernel), scope, aliases)
    accesses = accesses_in(kernel, scope, aliases)
    if any(each.address.pointer is None or UNSURE in each.address.factors for each in accesses):
        return ()
    found = [*_shared(accesses, programs)]
    always = frozenset(always_compiled(kernel.body)) if found else frozenset()
    found = [each for each in found if each.node in always]
    nodes = nodes_of_kernel(kernel) if found else ()
    if not found or any(map(programs.takes_turns, nodes)) or any(map(programs.chooses, nodes)):
        return ()
    lent = lent_names(nodes, scope, aliases)
    return tuple(each for each in found if each.pointer not in lent)


def _shared(accesses: Sequence[Access], programs: _Programs) -> Iterator[SharedStore]:
    """The stores through each pointer that all have one address along an axis, which differ in what they store."""
    stores: dict[str, list[ast.Call]] = {}
    for each in accesses:
        if each.called == STORE and len(each.node.args) > 1 and each.address.pointer is not None:
            stores.setdefault(each.address.pointer, []).append(each.node)
    for pointer, calls in stores.items():
        axes = programs.shared_axes(calls)
        for axis in axes:
            moved = dict.fromkeys(
                each.address.pointer or ""
                for each in accesses
                if "atomic" in each.called or axis in programs.of(each.node.args[0]).axes
            )
            if pointer not in moved:
                yield SharedStore(calls[0], pointer, axis, tuple(moved))


class _Origin(NamedTuple):
    """What an expression is computed from: the axes of ``program_id``, perhaps something ``unknown``, and names."""

    axes: frozenset[int] = frozenset()
    unknown: bool = False
    names: tuple[str, ...] = ()


@record
class _Programs:
    """What differs between the programs of a launch."""

    sources: Mapping[str, Sequence[ast.expr | None]]
    scope: Scope
    aliases: Aliases
    read: dict[str, _Origin] = field(default_factory=dict)
    """Of the names that were looked at."""

    def shared_axes(self, stores: Sequence[ast.Call]) -> list[int]:
        """The axes along which stores have the same address, and the same mask, but not the same value."""
        axes = {0, 1, 2}
        for store in stores:
            for each in (store.args[0], *store.args[2:], *(each.value for each in store.keywords)):
                found = self.of(each)
                axes = set() if found.unknown else axes - found.axes
                if not axes:
                    return []
        return sorted(axes.intersection(*(self.of(store.args[1]).axes for store in stores)))

    def of(self, node: ast.expr) -> _Origin:
        """What an expression is computed from."""
        axes, unknown, names = self._read(node)
        waiting, seen = [*names], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                found = self._of_name(name)
                axes, unknown = axes | found.axes, unknown or found.unknown
                waiting += found.names
        return _Origin(axes, unknown)

    def takes_turns(self, node: ast.AST) -> bool:
        """Whether programs may wait for each other, or count those that are done."""
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _IN_TURN

    def chooses(self, node: ast.AST) -> bool:
        """Whether a test may end all programs but one: one with ``return`` in it that compares with a number."""
        if not isinstance(node, ast.If) or not any(isinstance(each, ast.Return) for each in nodes_in(node)):
            return False
        return any(isinstance(each, ast.Constant) for each in nodes_in(node.test))

    def _of_name(self, name: str) -> _Origin:
        """What a name is bound to, without what the names in that are."""
        if name not in self.read:
            sources = self.sources.get(name, ())
            parts = [self._read(each) for each in sources if each is not None]
            axes = frozenset[int]().union(*(each.axes for each in parts))
            names = tuple(other for each in parts for other in each.names)
            self.read[name] = _Origin(axes, None in sources or any(each.unknown for each in parts), names)
        return self.read[name]

    def _read(self, node: ast.expr) -> _Origin:
        """What is written in an expression."""
        nodes = nodes_in(node)
        calls = [each for each in nodes if each.__class__ is ast.Call]
        names = tuple([each.id for each in nodes if each.__class__ is ast.Name])
        axes, unknown = set[int](), False
        for call in calls:
            meant = meaning_in_kernel(call.func, self.scope, self.aliases)
            if meant == _PROGRAM:
                axis = self._axis(call)
                axes.update(axis)
                unknown = unknown or not axis
            elif not (isinstance(call.func, ast.Attribute) and call.func.attr in _OF_VALUES):
                unknown = unknown or not (meant.startswith("builtins.") or meant in _ALIKE)
        return _Origin(frozenset(axes), unknown, names)

    def _axis(self, call: ast.Call) -> list[int]:
        """The axis of ``program_id(axis)``; none if it is unknown."""
        given = [*call.args, *(each.value for each in call.keywords)]
        axis = given[0].value if given and isinstance(given[0], ast.Constant) else None
        return [axis] if isinstance(axis, int) else []


_PROGRAM = "triton.language.program_id"
_IN_TURN = frozenset(["atomic_cas", "atomic_xchg", "debug_barrier", "inline_asm_elementwise", "extern_elementwise"])
_OF_VALUES = frozenset(["to"])
_ALIKE = frozenset(
    f"triton.language.{each}"
    for each in str.split(
        "arange cast cdiv exp exp2 expand_dims full load log log2 max max_contiguous maximum min minimum multiple_of "
        "num_programs range sqrt static_range sum where zeros"
    )
)
"""Functions whose result differs between programs only if an argument does."""
