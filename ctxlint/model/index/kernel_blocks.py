"""The blocks of memory that each program of a kernel of Triton writes: ``program_id(0) * BLOCK + arange(0, BLOCK)``."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import accesses_in, nodes_of_kernel, sources_by_name
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.kernel_sums import STORE, lent_names
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.model.index.kernel_addresses import Access, Kernel
    from ctxlint.model.index.scopes import Scope

    Term = tuple[str, ...]
    """The factors of a product, sorted: names, ``program 0``, ``range BLOCK``; ``UNKNOWN`` for anything else."""


@record
class Block:
    """Along an ``axis`` of the grid, each program writes to ``pointer`` only at ``size`` places: n * size and next.

    If one of each of the ``lengths`` is that of the whole axis: ``batch * length * stride`` then leads to other rows.
    """

    pointer: str
    axis: int
    size: str
    lengths: frozenset[frozenset[str]] = frozenset()


@record
class KernelBlocks:
    """What a kernel with these ``parameters`` writes: ``blocks``, and nothing else of the same memory.

    ``written`` are all parameters that it may write through, ``ranges`` those that are the length of an ``arange``, and
    so a power of two.
    """

    parameters: tuple[str, ...]
    blocks: frozenset[Block]
    written: frozenset[str]
    ranges: frozenset[str]

    def of_axes(self, axes: Iterable[int]) -> frozenset[Block]:
        """The blocks along some axes of the grid."""
        wanted = set(axes)
        return frozenset(each for each in self.blocks if each.axis in wanted)


@lru_cache(maxsize=64)
def blocks_in(kernel: Kernel, scope: Scope, aliases: Aliases) -> KernelBlocks | None:
    """What a kernel writes block by block; None if some of it is unknown. ``scope`` is that of its definition."""
    nodes = nodes_of_kernel(kernel)
    addresses = _Addresses(
        frozenset(parameter_names(kernel.args)), sources_by_name(kernel), _plain(nodes), scope, aliases
    )
    writes: dict[str | None, list[Access]] = {}
    for each in accesses_in(kernel, scope, aliases):
        if each.called.startswith(_WRITING):
            writes.setdefault(each.address.pointer, []).append(each)
    lent = {each for name in lent_names(nodes, scope, aliases) for term in addresses.of_name(name, 0) for each in term}
    if None in writes or UNKNOWN in lent:
        return None
    found = set[Block]()
    for pointer, accesses in writes.items():
        if pointer is not None and pointer not in lent and all(each.called == STORE for each in accesses):
            found |= frozenset.intersection(*(_blocks(addresses, pointer, each.node.args[0]) for each in accesses))
    written = frozenset(each for each in writes if each is not None) | (lent & addresses.parameters)
    return KernelBlocks(tuple(parameter_names(kernel.args)), frozenset(found), written, _ranges(nodes))


@lru_cache(maxsize=64)
def unmasked_in(kernel: Kernel, scope: Scope, aliases: Aliases) -> KernelBlocks | None:
    """The blocks that each program of a kernel stores as a whole, perhaps besides others; None if there are none."""
    nodes = nodes_of_kernel(kernel)
    always = {*_always_run(kernel)}
    stores = [
        each
        for each in accesses_in(kernel, scope, aliases)
        if each.called == STORE and each.node in always and not _is_masked(each.node)
    ]
    if not stores:
        return None
    parameters = parameter_names(kernel.args)
    addresses = _Addresses(frozenset(parameters), sources_by_name(kernel), _plain(nodes), scope, aliases)
    found = {
        block
        for each in stores
        if each.address.pointer is not None
        for block in _blocks(addresses, each.address.pointer, each.node.args[0])
    }
    return KernelBlocks(tuple(parameters), frozenset(found), frozenset(), _ranges(nodes)) if found else None


def _ranges(nodes: Sequence[ast.AST]) -> frozenset[str]:
    calls = (each for each in nodes if isinstance(each, ast.Call) and dotted_end(each.func) == "arange")
    return frozenset(each.id for call in calls for each in call.args[1:] if isinstance(each, ast.Name))


def _is_masked(store: ast.Call) -> bool:
    """Whether a store may leave out elements of its block."""
    return len(store.args) > _OF_PLAIN_STORE or any(each.arg not in ("value", "pointer") for each in store.keywords)


_OF_PLAIN_STORE = 2


def _always_run(kernel: Kernel) -> Iterator[ast.AST]:
    """What each program of a kernel runs, apart from loops; nothing if some may return before, or it asserts sizes."""
    waiting: list[ast.stmt] = [*kernel.body]
    if any(isinstance(each, ast.Return) or _asserts_remainder(each) for each in nodes_of_kernel(kernel)):
        return
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, (ast.With, ast.For)):
            waiting += statement.body
        elif not isinstance(statement, (ast.If, ast.While, ast.FunctionDef)):
            yield from nodes_in(statement)


_WRITING = (STORE, "triton.language.atomic_")


def _blocks(addresses: _Addresses, pointer: str, address: ast.expr) -> frozenset[Block]:
    """The axes along which an address is in one block for each program."""
    terms = addresses.of(address, 0)
    found = set[Block]()
    for axis in range(3):
        program, hidden = f"{_PROGRAM}{axis}", f"{UNKNOWN}{axis}"
        own = [term for term in terms if program in term]
        if len(own) == 1 and own[0].count(program) == 1 and not any(hidden in term for term in terms):
            for size in {*own[0]} & addresses.parameters:
                stride = _without(own[0], program, size)
                others = [term for term in terms if term is not own[0]]
                rows = [term for term in others if stride and _is_of_row(term, size, stride)]
                lanes = tuple(sorted((f"{_RANGE}{size}", *stride)))
                near = [term for term in others if term != lanes and term not in rows]
                if others.count(lanes) == 1 and not any(_is_along(term, size, stride) for term in near):
                    lengths = frozenset(frozenset(_without(term, *stride)) & addresses.parameters for term in rows)
                    found.add(Block(pointer, axis, size, lengths))
    return frozenset(found)


def _is_of_row(term: Term, size: str, stride: Term) -> bool:
    """Whether a term has the whole stride as a factor, besides the program of another axis: it may lead to its row."""
    programs = [each for each in term if each.startswith(_PROGRAM)]
    return len(programs) == 1 and size not in term and all(term.count(each) >= stride.count(each) for each in stride)


def _is_along(term: Term, size: str, stride: Term) -> bool:
    """Whether another term of an address may lead to other blocks: by the same stride, or by the size of a block."""
    if any(each.startswith(UNKNOWN) for each in term) and not stride:
        return len(term) == 1
    return size in term or (bool(stride) and not {*stride}.isdisjoint(term))


def _without(term: Term, *factors: str) -> Term:
    rest = list(term)
    for each in factors:
        rest.remove(each)
    return tuple(rest)


def _plain(nodes: Sequence[ast.AST]) -> Mapping[str, tuple[list[ast.expr], list[ast.expr]]]:
    """What each name is assigned alone, and what is added to it; of names that are bound in no other way."""
    found: dict[str, tuple[list[ast.expr], list[ast.expr]]] = {}
    known = set[ast.AST]()
    for each in nodes:
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            found.setdefault(each.targets[0].id, ([], []))[0].append(each.value)
            known.add(each.targets[0])
        elif isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add) and isinstance(each.target, ast.Name):
            found.setdefault(each.target.id, ([], []))[1].append(each.value)
            known.add(each.target)
    others = (each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    for name in [each.id for each in others if each not in known]:
        found.pop(name, None)
    return found


def _asserts_remainder(node: ast.AST) -> bool:
    """Whether it is ``assert n % BLOCK == 0``, or ``tl.device_assert(n % BLOCK == 0)``."""
    asserts = isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and dotted_end(node.func).endswith("_assert"))
    return asserts and any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod) for each in nodes_in(node))


@record
class _Addresses:
    """Writes addresses as sums of products."""

    parameters: frozenset[str]
    sources: Mapping[str, Sequence[ast.expr | None]]
    plain: Mapping[str, tuple[list[ast.expr], list[ast.expr]]]
    scope: Scope
    aliases: Aliases

    def of(self, node: ast.expr, depth: int) -> list[Term]:
        """The terms of an expression; one that is unknown is a single one."""
        if depth > _DEEPEST:
            return [self._unknown(node)]
        if isinstance(node, ast.Name):
            return self.of_name(node.id, depth)
        if isinstance(node, ast.Subscript):
            return self.of(node.value, depth + 1)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return [] if node.value == 0 else [() if node.value == 1 else (f"#{node.value}",)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [*self.of(node.left, depth + 1), *self.of(node.right, depth + 1)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = self.of(node.left, depth + 1), self.of(node.right, depth + 1)
            products = [tuple(sorted((*one, *other))) for one in left for other in right]
            return products if len(products) < _MANY else [self._unknown(node)]
        return self._of_call(node, depth) if isinstance(node, ast.Call) else [self._unknown(node)]

    def of_name(self, name: str, depth: int) -> list[Term]:
        """The terms of a name: what it is bound to and what is added to it; a parameter also is one itself."""
        own: list[Term] = [(name,)] if name in self.parameters else []
        if name not in self.sources:
            return own or [(UNKNOWN,)]
        assigned, added = self.plain.get(name, ([], []))
        if name not in self.plain or len(assigned) + len(own) != 1:
            loop = self._loop_over(name)
            return [(loop,)] if loop else [self._unknown(ast.Name(name, ast.Load()))]
        return [*own, *(term for each in (*assigned, *added) for term in self.of(each, depth + 1))]

    def _loop_over(self, name: str) -> str:
        """``range BLOCK`` for the variable of ``for i in range(BLOCK)``."""
        sources = self.sources[name]
        only = sources[0] if len(sources) == 1 else None
        if not isinstance(only, ast.Call) or getattr(only.func, "id", "") != "range" or not only.args or only.args[2:]:
            return ""
        starts = [each for each in only.args[:-1] if not (isinstance(each, ast.Constant) and each.value == 0)]
        last = only.args[-1]
        return f"{_RANGE}{last.id}" if isinstance(last, ast.Name) and not starts else ""

    def _of_call(self, node: ast.Call, depth: int) -> list[Term]:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.of(node.func.value, depth + 1)
        called = meaning_in_kernel(node.func, self.scope, self.aliases)
        function = called.removeprefix("triton.language.")
        given = [*node.args, *(each.value for each in node.keywords)]
        if function == "program_id" and len(given) == 1 and isinstance(given[0], ast.Constant):
            return [(f"{_PROGRAM}{given[0].value!r}",)]
        if function == "arange" and len(given) == 2 and isinstance(given[1], ast.Name):
            return [(f"{_RANGE}{given[1].id}",)]
        if function == "make_block_ptr":
            return self._of_block(node, depth)
        same = function in ("multiple_of", "max_contiguous") and node.args
        return self.of(node.args[0], depth + 1) if same else [self._unknown(node)]

    def _of_block(self, node: ast.Call, depth: int) -> list[Term]:
        """The terms of a block pointer: its base, and along each dimension the offset and the range, by the stride."""
        given = {each.arg: each.value for each in node.keywords} | dict(zip(_OF_BLOCKS, node.args))
        strides, offsets, shape = (
            getattr(given.get(each), "elts", []) for each in ("strides", "offsets", "block_shape")
        )
        if "base" not in given or not len(strides) == len(offsets) == len(shape) > 0:
            return [self._unknown(node)]
        terms = self.of(given["base"], depth + 1)
        for stride, offset, length in zip(strides, offsets, shape):
            lanes = (f"{_RANGE}{length.id}",) if isinstance(length, ast.Name) else self._unknown(length)
            products = (
                (*one, *each) for each in self.of(stride, depth + 1) for one in (*self.of(offset, depth + 1), lanes)
            )
            terms += [tuple(sorted(each)) for each in products]
        return terms

    def _unknown(self, node: ast.expr) -> Term:
        """The term for an expression that is not taken apart, with the axes of the programs that it may depend on."""
        return (UNKNOWN, *(f"{UNKNOWN}{axis}" for axis in sorted({*self._programs(node)})))

    def _programs(self, node: ast.expr) -> Iterator[int]:
        """The axes of which an expression may depend on the program; all of them for an unknown one."""
        seen, waiting = set[str](), [node]
        while waiting:
            for each in nodes_in(waiting.pop()):
                if isinstance(each, ast.Call) and dotted_end(each.func) in ("program_id", "num_programs"):
                    given = [*each.args, *(keyword.value for keyword in each.keywords)]
                    axis = given[0].value if given and isinstance(given[0], ast.Constant) else None
                    yield from (axis,) if isinstance(axis, int) else range(3)
                if isinstance(each, ast.Name) and each.id not in seen:
                    seen.add(each.id)
                    sources = self.sources.get(each.id, ())
                    yield from range(3) if None in sources else ()
                    waiting += [source for source in sources if source is not None]


def dotted_end(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


UNKNOWN = "?"
_PROGRAM, _RANGE = "program ", "range "
_OF_BLOCKS = ("base", "shape", "strides", "offsets", "block_shape", "order")
_DEEPEST = 40
_MANY = 200
"""The number of terms of a product that are looked at."""
