"""Stores of a kernel of Triton at addresses that are the same in all programs of a launch."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.kernel_addresses import UNSURE, accesses_in, nodes_of_kernel, sources_by_name
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.kernel_sums import STORE, lent_names
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    nodes, programs = nodes_of_kernel(kernel), _Programs(sources_by_name(kernel), scope, aliases)
    axes = sorted({axis for each in nodes if isinstance(each, ast.Call) for axis in programs.axes_of(each)})
    always = frozenset(_outside_tests(kernel.body)) if axes else frozenset()
    accesses = accesses_in(kernel, scope, aliases) if axes else ()
    found = [each for axis in axes for each in _shared_along(axis, accesses, always, programs)]
    if not found or any(map(programs.takes_turns, nodes)) or any(map(programs.chooses, nodes)):
        return ()
    lent = lent_names(nodes, scope, aliases)
    return tuple(each for each in found if each.pointer not in lent)


def _shared_along(
    axis: int, accesses: Sequence[Access], always: frozenset[ast.AST], programs: _Programs
) -> Iterator[SharedStore]:
    stores: dict[str, list[ast.Call]] = {}
    moved: dict[str, None] = {}
    for each in accesses:
        pointer = each.address.pointer
        if pointer is None or UNSURE in each.address.factors:
            return
        if programs.is_reached_by(axis, each.node.args[0]) or "atomic" in each.called:
            moved[pointer] = None
        elif each.called == STORE and each.node in always and len(each.node.args) > 1:
            stores.setdefault(pointer, []).append(each.node)
    for pointer, nodes in stores.items():
        if pointer not in moved and all(programs.is_shared(axis, each) for each in nodes):
            yield SharedStore(nodes[0], pointer, axis, tuple(moved))


def _outside_tests(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The calls in statements that no test decides about."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _outside_tests(statement.body)
        elif not isinstance(statement, (ast.If, ast.While, ast.Try, ast.FunctionDef)):
            yield from (each for each in nodes_in(statement) if isinstance(each, ast.Call))


@record
class _Programs:
    """What differs between the programs of a launch."""

    sources: Mapping[str, Sequence[ast.expr | None]]
    scope: Scope
    aliases: Aliases

    def is_shared(self, axis: int, store: ast.Call) -> bool:
        """Whether a store is at one address along an axis, with the same mask, and its value is not the same."""
        address, value, *others = [*store.args, *(each.value for each in store.keywords)]
        return not any(self.may_differ(axis, each) for each in (address, *others)) and self.is_reached_by(axis, value)

    def is_reached_by(self, axis: int, node: ast.expr) -> bool:
        """Whether an expression is computed with ``program_id(axis)``."""
        return any(axis in self.axes_of(each) for each in self._parts(node) if each is not None)

    def may_differ(self, axis: int, node: ast.expr) -> bool:
        """Whether an expression may depend on the program along an axis: by ``program_id``, or by something unknown."""
        return any(each is None or self._may_tell(axis, each) for each in self._parts(node))

    def axes_of(self, call: ast.Call) -> tuple[int, ...]:
        """The axis of ``program_id(axis)``; none for anything else."""
        if meaning_in_kernel(call.func, self.scope, self.aliases) != _PROGRAM:
            return ()
        given = [*call.args, *(each.value for each in call.keywords)]
        axis = given[0].value if given and isinstance(given[0], ast.Constant) else None
        return (axis,) if isinstance(axis, int) else ()

    def takes_turns(self, node: ast.AST) -> bool:
        """Whether programs may wait for each other, or count those that are done."""
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _IN_TURN

    def chooses(self, node: ast.AST) -> bool:
        """Whether a test may end all programs but one: one with ``return`` in it that compares with a number."""
        if not isinstance(node, ast.If) or not any(isinstance(each, ast.Return) for each in nodes_in(node)):
            return False
        return any(isinstance(each, ast.Constant) for each in nodes_in(node.test))

    def _parts(self, node: ast.expr) -> Iterator[ast.Call | None]:
        """The calls that an expression is computed with; None for something unknown."""
        seen, waiting = set[str](), [node]
        while waiting:
            for each in nodes_in(waiting.pop()):
                if isinstance(each, ast.Call):
                    yield each
                elif isinstance(each, ast.Name) and each.id not in seen:
                    seen.add(each.id)
                    found = self.sources.get(each.id, ())
                    if None in found:
                        yield None
                    waiting += [source for source in found if source is not None]

    def _may_tell(self, axis: int, call: ast.Call) -> bool:
        meant = meaning_in_kernel(call.func, self.scope, self.aliases)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_VALUES:
            return False
        if meant == _PROGRAM:
            return self.axes_of(call) in ((), (axis,))
        return not meant.startswith("builtins.") and meant not in _ALIKE


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
