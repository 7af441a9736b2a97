"""The addresses that a kernel of Triton reads and writes, as sums of its parameters."""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Kernel = ast.FunctionDef | ast.AsyncFunctionDef


@record
class Sum:
    """What an address, or a part of one, is the sum of."""

    pointer: str | None = None
    """The parameter that the sum begins with, or the first one in it."""
    terms: frozenset[str] = frozenset()
    """The parameters among the terms, and ``STEP`` if one is a range that nothing multiplies."""
    factors: frozenset[str] = frozenset()
    """The parameters that are multiplied in the terms; and ``UNSURE``, if one of the names has several values."""

    def plus(self, other: Sum) -> Sum:
        """The sum of both, of which this one comes first."""
        pointer = self.pointer if self.pointer is not None else other.pointer
        return Sum(pointer, self.terms | other.terms, self.factors | other.factors)


@record
class Access:
    """A call that reads or writes memory."""

    called: str
    """What it calls: ``triton.language.load``."""
    address: Sum
    node: ast.Call


@record
class HandedOn:
    """What a kernel passes to a function of the project, by the names of keywords and the positions of others."""

    function: str
    positional: tuple[Sum, ...]
    keywords: tuple[tuple[str, Sum], ...]


@lru_cache(maxsize=64)
def accesses_in(kernel: Kernel, parent: Scope, aliases: Aliases) -> tuple[Access, ...]:
    """What a kernel reads and writes itself; ``parent`` is the scope that it is defined in."""
    addresses = _addresses_of(kernel, parent, aliases)
    calls = [(each, addresses.called(each)) for each in _calls_in(kernel) if each.args]
    return tuple(
        Access(called, addresses.sum_of(each.args[0]), each) for each, called in calls if called.startswith(_ACCESSES)
    )


@lru_cache(maxsize=64)
def handed_on_by(kernel: Kernel, parent: Scope, aliases: Aliases) -> tuple[HandedOn, ...]:
    """What a kernel passes to functions of its file, or of those among ``aliases``, which are compiled into it."""
    addresses = _addresses_of(kernel, parent, aliases)
    elsewhere = frozenset(own for own, meant in aliases if not isinstance(meant, str))
    calls = [(each, addresses.called(each)) for each in _calls_in(kernel)]
    return tuple(
        HandedOn(
            called,
            tuple(addresses.sum_of(arg) for arg in each.args),
            tuple((given.arg, addresses.sum_of(given.value)) for given in each.keywords if given.arg is not None),
        )
        for each, called in calls
        if (called.startswith(LOCAL) or called in elsewhere)
        and not any(isinstance(arg, ast.Starred) for arg in each.args)
    )


def within(access: Access, given: Mapping[str, Sum]) -> Access:
    """What a function reads or writes, in the names of the kernel that has ``given`` it these arguments."""
    address, nothing = access.address, Sum()
    found = given.get(address.pointer or "", nothing)
    terms, factors = address.terms & {STEP}, address.factors & {UNSURE}
    for each in address.terms - {STEP}:
        terms |= given.get(each, nothing).terms
        factors |= given.get(each, nothing).factors
    for each in address.factors - {UNSURE}:
        of_factor = given.get(each, nothing)
        factors |= (of_factor.terms - {STEP}) | of_factor.factors
    return Access(access.called, Sum(found.pointer, terms, factors), access.node)


@lru_cache(maxsize=64)
def _addresses_of(kernel: Kernel, parent: Scope, aliases: Aliases) -> _Addresses:
    nodes = nodes_of_kernel(kernel)
    changes = [each for each in nodes if isinstance(each, ast.AugAssign)]
    added = frozenset([each.value for each in changes if isinstance(each.op, (ast.Add, ast.Sub))])
    parameters, own = frozenset(parameter_names(kernel.args)), Scope("function", kernel.name, parent)
    return _Addresses(own, aliases, parameters, _rebound(nodes, parameters), values_in(kernel), added)


def _calls_in(kernel: Kernel) -> list[ast.Call]:
    return [each for each in nodes_of_kernel(kernel) if each.__class__ is ast.Call]


@lru_cache(maxsize=64)
def nodes_of_kernel(kernel: Kernel) -> Sequence[ast.AST]:
    """The code in the body of a kernel; it is asked for at each launch."""
    return tuple([each for statement in kernel.body for each in nodes_in(statement)])


def has_same_lanes(load: ast.Call, store: ast.Call) -> bool:
    """Whether a load certainly reads all that a store at the same address writes: it has no mask, or the same one."""
    masks = [_mask_of(each, at) for each, at in ((load, _MASK_OF_LOAD), (store, _MASK_OF_STORE))]
    return masks[0] in ("", masks[1])


def _mask_of(call: ast.Call, at: int) -> str:
    given = [*call.args[at : at + 1], *(each.value for each in call.keywords if each.arg == "mask")]
    return ast.dump(given[0]) if given else ""


_MASK_OF_LOAD, _MASK_OF_STORE = 1, 2
"""The positions of ``mask`` in ``load(pointer, mask)`` and ``store(pointer, value, mask)``."""


def may_return_early(kernel: Kernel) -> bool:
    """Whether a flag that the launch passes may end a kernel, which then does nothing that is written below."""
    parameters = set(parameter_names(kernel.args))
    tests = [each.test for each in nodes_of_kernel(kernel) if isinstance(each, ast.If) and _returns(each)]
    named = ({name.id for name in nodes_in(test) if isinstance(name, ast.Name)} for test in tests)
    return any(names and names <= parameters for names in named)


def _returns(test: ast.If) -> bool:
    return any(isinstance(each, ast.Return) for each in test.body)


@lru_cache(maxsize=64)
def values_in(kernel: Kernel) -> dict[str, list[ast.expr]]:
    """What is assigned or added to each name in a kernel."""
    values: dict[str, list[ast.expr]] = {}
    for each in nodes_of_kernel(kernel):
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for name, value in (pair for target in targets for pair in _paired(target, each.value)):
                values.setdefault(name, []).append(value)
    return values


@lru_cache(maxsize=64)
def sources_by_name(kernel: Kernel) -> Mapping[str, Sequence[ast.expr | None]]:
    """What each name may depend on: all that it is assigned, added, unpacked from or iterated over; None if unknown."""
    nodes = nodes_of_kernel(kernel)
    bound = [pair for each in nodes if isinstance(each, ast.stmt) for pair in _bound_by(each)]
    known = {name for name, _value in bound}
    others = [each for each in nodes if each.__class__ is ast.Name and each.ctx.__class__ is ast.Store]
    sources: dict[str, list[ast.expr | None]] = {}
    for name, value in (*bound, *((each, None) for each in others if each not in known)):
        sources.setdefault(name.id, []).append(value)
    return sources


def _bound_by(node: ast.stmt) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The names that a statement binds, each with what its value is computed from."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _spread(target, node.value)
    elif isinstance(node, ast.For):
        yield from _spread(node.target, node.iter)


def _spread(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The names in a target; those of ``a, b = c, d`` each with its own value, others with all of it."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for pair in zip(target.elts, value.elts):
            yield from _spread(*pair)
    else:
        for each in nodes_in(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                yield each, value


def may_depend(node: ast.expr, load: ast.Call, sources: Mapping[str, Sequence[ast.expr | None]]) -> bool:
    """Whether a value may depend on what is loaded, by the ``sources`` of the names in it."""
    seen, waiting = set[str](), [node]
    while waiting:
        for each in nodes_in(waiting.pop()):
            if each is load:
                return True
            if isinstance(each, ast.Name) and each.id not in seen:
                seen.add(each.id)
                found = sources.get(each.id, ())
                if None in found:
                    return True
                waiting += [source for source in found if source is not None]
    return False


def _rebound(nodes: Sequence[ast.AST], parameters: frozenset[str]) -> frozenset[str]:
    """The parameters that are bound to something else than an expression with their own name, or ``+=`` it."""
    named = [each for each in nodes if type(each) is ast.Name and each.id in parameters]
    bound: dict[ast.expr, str] = {each: each.id for each in named if type(each.ctx) is ast.Store}
    for each in nodes if bound else ():
        if type(each) is ast.AugAssign:
            bound.pop(each.target, None)
        elif type(each) is ast.Assign and len(each.targets) == 1 and each.targets[0] in bound:
            name = bound[each.targets[0]]
            if any(type(part) is ast.Name and part.id == name for part in nodes_in(each.value)):
                del bound[each.targets[0]]
    return frozenset(bound.values())


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment binds, each with its own value: those of ``a, b = c, d``, too."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for pair in zip(target.elts, value.elts):
            yield from _paired(*pair)


@record
class _Addresses:
    """The sums that a kernel computes addresses as."""

    scope: Scope
    aliases: Aliases
    parameters: frozenset[str]
    rebound: frozenset[str]
    """The parameters that are bound to something else than a sum with what they were."""
    values: dict[str, list[ast.expr]]
    added: frozenset[ast.expr]
    """Those of ``x += n``."""
    meanings: dict[str, str] = field(default_factory=dict)
    """What the dotted names that were looked at mean."""
    several: dict[str, bool] = field(default_factory=dict)
    """Of the names that were looked at, whether they have several starts."""

    def called(self, node: ast.Call) -> str:
        path = dotted_name(node.func) or ""
        if path not in self.meanings:
            self.meanings[path] = meaning_in_kernel(node.func, self.scope, self.aliases)
        return self.meanings[path]

    def sum_of(self, node: ast.expr, seen: set[str] | None = None) -> Sum:
        """What an expression is the sum of, without the names that were ``seen`` in the same one."""
        seen = set() if seen is None else seen
        if isinstance(node, ast.BinOp):
            return self._of_operation(node, seen)
        if isinstance(node, ast.Subscript):
            return self.sum_of(node.value, seen)
        if isinstance(node, ast.Call):
            return self._of_call(node, seen)
        return self._of_name(node.id, seen) if isinstance(node, ast.Name) and node.id not in seen else Sum()

    def _of_operation(self, node: ast.BinOp, seen: set[str]) -> Sum:
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return self.sum_of(node.left, seen).plus(self.sum_of(node.right, seen))
        if isinstance(node.op, ast.Mod):
            return Sum(terms=self.sum_of(node.left, seen).terms)
        if isinstance(node.op, ast.Mult):
            return Sum(factors=self._multiplied(node.left) | self._multiplied(node.right))
        return Sum()

    def _of_call(self, node: ast.Call, seen: set[str]) -> Sum:
        """That of ``tl.arange(0, n)``, ``x.to(tl.int64)``, or a block pointer: its literal stride 1 is a range."""
        called = self.called(node)
        if called == "triton.language.arange":
            return Sum(terms=frozenset([STEP]))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.sum_of(node.func.value, seen)
        given = {each.arg: each.value for each in node.keywords} | dict(zip(("base", "shape", "strides"), node.args))
        if called not in _BLOCK_POINTERS or "base" not in given:
            return Sum()
        strides = getattr(given.get("strides"), "elts", [])
        step = frozenset(STEP for each in strides if isinstance(each, ast.Constant) and each.value == 1)
        factors = frozenset(name for each in strides for name in self._multiplied(each))
        return self.sum_of(given["base"], seen).plus(Sum(terms=step, factors=factors))

    def _of_name(self, name: str, seen: set[str]) -> Sum:
        seen.add(name)
        is_own = name in self.parameters and name not in self.rebound
        anew = is_own and self._is_computed_anew(name)
        found = Sum(name, frozenset(() if anew else (name,))) if is_own else Sum()
        for each in self.values.get(name, ()):
            found = found.plus(self.sum_of(each, seen))
        return found.plus(Sum(factors=frozenset([UNSURE]))) if anew or self._has_several_starts(name) else found

    def _has_several_starts(self, name: str) -> bool:
        """Whether the values of a name begin with different parameters, or add other ones."""
        if name not in self.several:
            starts = [each for each in self.values.get(name, []) if not self._continues(each, name)]
            self.several[name] = False  # as far as the values depend on it themselves
            parts = (self.sum_of(each, {name}) for each in starts) if len(starts) > 1 else ()
            self.several[name] = len({(each.terms, each.factors) for each in parts}) > 1
        return self.several[name]

    def _is_computed_anew(self, parameter: str) -> bool:
        """Whether a parameter is bound to more than a sum with what it was: ``offset = offset * stride``."""
        return not all(self._continues(each, parameter) for each in self.values.get(parameter, []))

    def _continues(self, node: ast.expr, name: str) -> bool:
        """Whether a value is ``x + n``, or added to ``x``: no other start of the pointer ``x``."""
        while node not in self.added and _keeps_start(node):
            node = node.left if isinstance(node, ast.BinOp) else node.func.value  # type: ignore[attr-defined]
        return node in self.added or (isinstance(node, ast.Name) and node.id == name)

    def _multiplied(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """The parameters in a product; ``stride.to(tl.int64)``, also by a name, is one."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._multiplied(node.left, seen) | self._multiplied(node.right, seen)
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            node = node.func.value
        if not isinstance(node, ast.Name) or node.id in seen:
            return frozenset()
        if node.id in self.parameters:
            return frozenset([node.id])
        values = self.values.get(node.id, [])
        only = values[0] if len(values) == 1 and isinstance(values[0], (ast.Name, ast.Call)) else None
        return self._multiplied(only, seen | {node.id}) if only is not None else frozenset()


def _keeps_start(node: ast.expr) -> bool:
    """Whether it is a sum, which starts with its first part, or ``x.to(...)``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))


LOAD = "triton.language.load"
STEP = "tl.arange"
"""Among terms: a range that nothing multiplies."""
UNSURE = "?"
"""Among factors: a term of the sum has several values."""
_BLOCK_POINTERS = ("triton.language.make_block_ptr", "triton.language.advance")
_ACCESSES = (LOAD, "triton.language.store", "triton.language.atomic_")
