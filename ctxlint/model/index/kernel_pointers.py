"""The parameters that a kernel of Triton certainly uses as addresses, and those whose address it uses as a number."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import (
    STEP,
    accesses_in,
    may_return_early,
    nodes_of_kernel,
    values_in,
)
from ctxlint.model.index.kernel_bindings import always_compiled
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.records import record
from ctxlint.source.ast_tree import parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.scopes import Scope


@record
class PointerUses:
    """What a kernel does on every path, for whatever flags."""

    addresses: frozenset[str] = frozenset()
    """The parameters through which it loads or stores: a number there raises."""
    numbers: tuple[tuple[str, str], ...] = ()
    """The parameters that it computes with as no address can be, each with the address that it should load from."""


@lru_cache(maxsize=64)
def pointer_uses(kernel: Kernel, scope: Scope, aliases: Aliases) -> PointerUses:
    """How a kernel uses its parameters; ``scope`` is the one that it is defined in."""
    if may_return_early(kernel):
        return PointerUses()
    always = frozenset(each for each in always_compiled(kernel.body) if type(each) in _COMPUTING)
    own = frozenset(parameter_names(kernel.args))
    found = set[str]()
    for each in accesses_in(kernel, scope, aliases) if always else ():
        terms = each.address.terms - {STEP}
        if each.node in always and each.address.pointer is not None and terms == {each.address.pointer}:
            found.add(each.address.pointer)
    stored = _stored(kernel)
    addresses = _Addresses(own - stored.keys(), values_in(kernel), stored)
    numbers: dict[str, str] = {}
    computing = [each for each in nodes_of_kernel(kernel) if type(each) in _COMPUTING]
    converted = {addresses.pointer(each) for node in computing for each in _converted(node)}
    for node in computing:
        for used in _used_as_number(node, scope, aliases) if node in always else ():
            pointer = addresses.pointer(used)
            if pointer is not None:
                numbers.setdefault(pointer, addresses.code(used))
    return PointerUses(frozenset(found - stored.keys() - converted), tuple(numbers.items()))


def _stored(kernel: Kernel) -> Mapping[str, int]:
    """How often each name is bound."""
    found: dict[str, int] = {}
    for each in nodes_of_kernel(kernel):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found[each.id] = found.get(each.id, 0) + 1
    return found


def _converted(node: ast.AST) -> Iterator[ast.expr]:
    """What a conversion may make an address of: ``x.to(tl.pointer_type(tl.float32))``, ``tl.cast(x, ...)``."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(called, ast.Attribute) and called.attr in ("to", "cast"):
        yield from (called.value, *node.args[:1])


def _used_as_number(node: ast.AST, scope: Scope, aliases: Aliases) -> Iterator[ast.expr]:
    """The operands for which Triton does not compile an address."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Sub)):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        dtype = meaning_in_kernel(node.args[0], scope, aliases) if len(node.args) == 1 else ""
        if dtype.removeprefix(_LANGUAGE) in _NARROW:
            yield node.func.value
    elif isinstance(node, ast.Call):
        function = meaning_in_kernel(node.func, scope, aliases).removeprefix(_LANGUAGE)
        if function in _RANDOM:
            yield from (*node.args[:1], *(each.value for each in node.keywords if each.arg == "seed"))


_COMPUTING = frozenset([ast.Call, ast.BinOp])
_LANGUAGE = "triton.language."
_RANDOM = frozenset(["rand", "rand4x", "randint", "randint4x", "randn", "randn4x"])
_NARROW = frozenset(
    str.split("int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 float64 float8e4nv float8e5")
)


@record
class _Addresses:
    """The names that certainly hold addresses."""

    parameters: frozenset[str]
    values: Mapping[str, list[ast.expr]]
    stored: Mapping[str, int]

    def pointer(self, node: ast.expr, depth: int = 0) -> str | None:
        """The parameter that an expression is an address of, if that is an address at all; None if it may not be."""
        if isinstance(node, ast.Name):
            if node.id in self.parameters:
                return node.id
            values = self.values.get(node.id, [])
            only = values[0] if len(values) == self.stored.get(node.id) == 1 and depth < _DEEPEST else None
            return self.pointer(only, depth + 1) if only is not None else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.pointer(node.left, depth + 1)
        return None

    def code(self, node: ast.expr) -> str:
        """The code of an address, without names for it."""
        while isinstance(node, ast.Name) and node.id not in self.parameters:
            node = self.values[node.id][0]
        return ast.unparse(node)


_DEEPEST = 8
