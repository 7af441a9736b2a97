"""Offsets in a kernel of Triton that are computed in 32 bits: the index of a program times a size or a stride."""

from __future__ import annotations

import ast
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import accesses_in, nodes_of_kernel, values_in
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.scopes import Scope


class NarrowOffset(NamedTuple):
    """A product of the ``program``'s index in 32 bits and the parameter ``size``, added to the address ``pointer``."""

    node: ast.BinOp
    pointer: str
    program: ast.expr
    size: str


@lru_cache(maxsize=64)
def narrow_offsets(kernel: Kernel, scope: Scope, aliases: Aliases) -> tuple[NarrowOffset, ...]:
    """The products that are certainly computed in 32 bits and added to an address."""
    nodes = nodes_of_kernel(kernel)
    if any(isinstance(each, ast.Attribute) and each.attr == "int64" for each in nodes):
        return ()  # where it matters, its author has thought of it
    stored = Counter(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    given = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    pointers = {each.address.pointer for each in accesses_in(kernel, scope, aliases)} & {each.arg for each in given}
    numbers = {each.arg for each in given if _may_be_narrow(each.annotation)} - pointers - stored.keys()
    indices = _Indices(frozenset(numbers), values_in(kernel), stored, scope, aliases)
    return tuple(
        NarrowOffset(part, pointer, *found)
        for pointer, added in _added(nodes)
        if pointer in pointers
        for part in _parts(added)
        if isinstance(part, ast.BinOp)
        for found in indices.factors(part)
    )


def _may_be_narrow(annotation: ast.expr | None) -> bool:
    """Whether Triton passes a number that fits in 32 bits as one of 32 bits: the annotation is no other type."""
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")
    return annotation is None or name in ("constexpr", "int", "int32")


def _added(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """What is added to each name: ``pointer + x``, ``pointer += x``."""
    for node in nodes:
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            first = node.left
            while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
                first = first.left
            if isinstance(first, ast.Name):
                yield first.id, node.right


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The terms of a sum, without ``[:, None]`` and the hints about their values."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts(node.left)
        yield from _parts(node.right)
    elif isinstance(node, ast.Subscript):
        yield from _parts(node.value)
    else:
        yield node


@record
class _Indices:
    """The indices of programs, and the ``numbers``: the parameters that keep what is passed."""

    numbers: frozenset[str]
    values: Mapping[str, list[ast.expr]]
    stored: Mapping[str, int]
    scope: Scope
    aliases: Aliases

    def factors(self, product: ast.BinOp) -> Iterator[tuple[ast.expr, str]]:
        """The index of the program in a product, and the name of the size that it is multiplied by."""
        if not isinstance(product.op, ast.Mult):
            return
        for index, size in ((product.left, product.right), (product.right, product.left)):
            if isinstance(size, ast.Name) and size.id in self.numbers and self._is_program(index):
                yield index, size.id

    def _is_program(self, node: ast.expr) -> bool:
        """Whether an expression is ``tl.program_id(...)``, or a name that is bound once, to that."""
        if isinstance(node, ast.Name):
            values = self.values.get(node.id, [])
            only = values[0] if len(values) == self.stored.get(node.id) == 1 else None
            return only is not None and not isinstance(only, ast.Name) and self._is_program(only)
        meant = meaning_in_kernel(node.func, self.scope, self.aliases) if isinstance(node, ast.Call) else ""
        return meant == _PROGRAM


_PROGRAM = "triton.language.program_id"
