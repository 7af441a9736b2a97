"""The parameters of a kernel written in Python, and how it reads them."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.model.index.scopes import Scope
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.index.project import Definition


def parameters_of(definition: Definition) -> list[str]:
    """The names of the parameters, in order."""
    return _names(definition.unit.index.functions[definition.qualname].node.args)


def _names(arguments: ast.arguments) -> list[str]:
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def gets_bare_address(definition: Definition, parameter: str, aliases: Aliases) -> bool:
    """Whether a kernel gets a tensor as an address alone: it is one of Triton, not of numba or warp.

    Heuristics of the kernel may ask for strides, or test whether the tensor is None.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    asking = _heuristics(record.node) if record is not None else ""
    if record is None or ".stride(" in asking or f"'{parameter}'] is " in asking:
        return False
    called = (each.func if isinstance(each, ast.Call) else each for each in record.node.decorator_list)
    return any(meaning_in_kernel(each, record.scope, aliases) == "triton.jit" for each in called)


@lru_cache(maxsize=64)
def _heuristics(kernel: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The code of the calls among the decorators; each argument of each launch is looked up there."""
    return "".join(ast.unparse(each) for each in kernel.decorator_list if isinstance(each, ast.Call))


def reads_one_element(definition: Definition, aliases: Aliases) -> frozenset[str]:
    """The parameters of which a kernel reads at most the first element: the layout of such a tensor does not matter."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return frozenset()
    source, parameters = definition.unit.source, set(parameters_of(definition))
    text = source.lines(record.node.lineno, record.node.end_lineno or record.node.lineno)
    written = Counter(_WORD.findall(text))
    if parameters.isdisjoint(_LOADED.findall(text)) and all(written[each] > 1 for each in parameters):
        return frozenset()
    scope = Scope("function", definition.qualname, record.scope)
    spend(100)
    nodes = [each for statement in record.node.body for each in ast.walk(statement)]
    calls = (each for each in nodes if isinstance(each, ast.Call) and len(each.args) == 1 and not each.keywords)
    of_names = (each for each in calls if isinstance(each.args[0], ast.Name))
    loads = [each for each in of_names if meaning_in_kernel(each.func, scope, aliases) == _LOAD]
    loaded = {each.args[0] for each in loads}
    used = {each.id for each in nodes if isinstance(each, ast.Name) and each not in loaded}
    return frozenset(parameters - used)


_WORD = pattern(r"\w+")
_LOADED = pattern(r"\bload\(\s*(\w+)\s*\)")


def reads_neighbours(definition: Definition, aliases: Aliases) -> frozenset[str]:
    """The parameters that a kernel of Triton reads with stride 1: ``load(p + row * stride + tl.arange(0, N))``."""
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return frozenset()
    spend(100)
    return _neighbours(record.node, definition.qualname, record.scope, aliases)


@lru_cache(maxsize=64)
def _neighbours(
    kernel: ast.FunctionDef | ast.AsyncFunctionDef, qualname: str, parent: Scope, aliases: Aliases
) -> frozenset[str]:
    nodes = [each for statement in kernel.body for each in ast.walk(statement)]
    scope = Scope("function", qualname, parent)
    addresses = _Addresses(scope, aliases, frozenset(_names(kernel.args)), _rebound(nodes), _values_by_name(nodes))
    loads = (each for each in nodes if isinstance(each, ast.Call) and addresses.called(each) == _LOAD and each.args)
    found = (addresses.terms(each.args[0]) for each in loads)
    return frozenset(name for terms in found if _STEP in terms for name in terms if name != _STEP)


def strides_by_pointer(definition: Definition, aliases: Aliases) -> Mapping[str, frozenset[str]]:
    """The parameters that a kernel of Triton multiplies in addresses, by the one that it adds them to.

    ``{"x": {"stride"}}`` for ``load(x + row * stride + tl.arange(0, N))``. None of an address with a name that has
    several values.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain:
        return {}
    spend(100)
    return _strides(record.node, definition.qualname, record.scope, aliases)


@lru_cache(maxsize=64)
def _strides(
    kernel: ast.FunctionDef | ast.AsyncFunctionDef, qualname: str, parent: Scope, aliases: Aliases
) -> Mapping[str, frozenset[str]]:
    nodes = [each for statement in kernel.body for each in ast.walk(statement)]
    scope = Scope("function", qualname, parent)
    added = frozenset(each.value for each in nodes if isinstance(each, ast.AugAssign))
    addresses = _Addresses(
        scope, aliases, frozenset(_names(kernel.args)), _rebound(nodes), _values_by_name(nodes), added
    )
    found: dict[str, frozenset[str]] = {}
    for each in nodes:
        if isinstance(each, ast.Call) and each.args and addresses.called(each).startswith(_ACCESSES):
            pointer, factors = addresses.pointer(each.args[0]), addresses.factors(each.args[0])
            if pointer is not None and _UNSURE not in factors:
                found[pointer] = found.get(pointer, frozenset()) | factors
    return found


def _values_by_name(nodes: list[ast.AST]) -> dict[str, list[ast.expr]]:
    """What is assigned or added to each name."""
    values: dict[str, list[ast.expr]] = {}
    for each in nodes:
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and each.value is not None:
            for name, value in (pair for target in targets for pair in _paired(target, each.value)):
                values.setdefault(name, []).append(value)
    return values


def _rebound(nodes: list[ast.AST]) -> frozenset[str]:
    """The names that are bound to something else than an expression with their own name, or ``+=`` it."""
    bound = {each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    for each in nodes:
        if isinstance(each, ast.AugAssign):
            bound.discard(each.target)
        elif isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            name = each.targets[0]
            if any(isinstance(part, ast.Name) and part.id == name.id for part in ast.walk(each.value)):
                bound.discard(name)
    return frozenset(each.id for each in bound)


def _paired(target: ast.expr | None, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment binds, each with its own value: those of ``a, b = c, d``, too."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for pair in zip(target.elts, value.elts):
            yield from _paired(*pair)


def _block_pointer(node: ast.Call) -> dict[str | None, ast.expr]:
    """The arguments that tell the memory of a block pointer."""
    return {each.arg: each.value for each in node.keywords} | dict(zip(("base", "shape", "strides"), node.args))


@record
class _Addresses:
    """The sums that a kernel computes addresses as."""

    scope: Scope
    aliases: Aliases
    parameters: frozenset[str]
    rebound: frozenset[str]
    """The parameters that are bound to something else than a sum with what they were."""
    values: dict[str, list[ast.expr]]
    added: frozenset[ast.expr] = frozenset()
    """Those of ``x += n``."""
    several: dict[str, bool] = field(default_factory=dict)
    """Of the names that were looked at, whether they have several starts."""

    def called(self, node: ast.Call) -> str:
        return meaning_in_kernel(node.func, self.scope, self.aliases)

    def terms(self, node: ast.expr, seen: set[str] | None = None) -> frozenset[str]:
        """The parameters among the terms of a sum, and ``_STEP`` if one is a range that nothing multiplies."""
        seen = set() if seen is None else seen
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.terms(node.left, seen) | self.terms(node.right, seen)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.terms(node.left, seen)
        if isinstance(node, ast.Subscript):
            return self.terms(node.value, seen)
        if isinstance(node, ast.Call):
            return self._of_call(node, seen)
        if not isinstance(node, ast.Name) or node.id in seen:
            return frozenset()
        seen.add(node.id)
        own = frozenset([node.id]) & (self.parameters - self.rebound)
        return own.union(*(self.terms(each, seen) for each in self.values.get(node.id, ())))

    def pointer(self, node: ast.expr, seen: set[str] | None = None) -> str | None:
        """The parameter that a sum begins with, or the first one in it."""
        seen = set() if seen is None else seen
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.pointer(node.left, seen) or self.pointer(node.right, seen)
        if isinstance(node, ast.Subscript):
            return self.pointer(node.value, seen)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                return self.pointer(node.func.value, seen)
            base = _block_pointer(node).get("base") if self.called(node) in _BLOCK_POINTERS else None
            return self.pointer(base, seen) if base is not None else None
        if not isinstance(node, ast.Name) or node.id in seen:
            return None
        if node.id in self.parameters - self.rebound:
            return node.id
        seen.add(node.id)
        found = (self.pointer(each, seen) for each in self.values.get(node.id, ()))
        return next((each for each in found if each is not None), None)

    def factors(self, node: ast.expr, seen: set[str] | None = None) -> frozenset[str]:
        """The parameters that are multiplied in the terms of a sum."""
        seen = set() if seen is None else seen
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.factors(node.left, seen) | self.factors(node.right, seen)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._multiplied(node.left) | self._multiplied(node.right)
        if isinstance(node, ast.Subscript):
            return self.factors(node.value, seen)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                return self.factors(node.func.value, seen)
            if self.called(node) not in _BLOCK_POINTERS:
                return frozenset()
            given = _block_pointer(node)
            steps = [self._multiplied(each) for each in getattr(given.get("strides"), "elts", [])]
            return (self.factors(given["base"], seen) if "base" in given else frozenset()).union(*steps)
        if not isinstance(node, ast.Name) or node.id in seen:
            return frozenset()
        seen.add(node.id)
        values = self.values.get(node.id, [])
        found = frozenset().union(*(self.factors(each, seen) for each in values))
        return found | {_UNSURE} if self._has_several_starts(node.id) else found

    def _has_several_starts(self, name: str) -> bool:
        """Whether the values of a name begin with different parameters, or add other ones."""
        if name not in self.several:
            starts = [each for each in self.values.get(name, []) if not self._continues(each, name)]
            self.several[name] = False  # as far as the values depend on it themselves
            self.several[name] = len(starts) > 1 and len({self._parts(each, name) for each in starts}) > 1
        return self.several[name]

    def _parts(self, node: ast.expr, name: str) -> tuple[frozenset[str], frozenset[str]]:
        return self.terms(node, {name}), self.factors(node, {name})

    def _continues(self, node: ast.expr, name: str) -> bool:
        """Whether a value is ``x + n``, or added to ``x``: no other start of the pointer ``x``."""
        while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
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

    def _of_call(self, node: ast.Call, seen: set[str]) -> frozenset[str]:
        """The same of ``tl.arange(0, n)``, ``x.to(tl.int64)``, or a block pointer: a literal stride 1 is a range."""
        called = self.called(node)
        if called == "triton.language.arange":
            return frozenset([_STEP])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.terms(node.func.value, seen)
        if called not in _BLOCK_POINTERS:
            return frozenset()
        given = _block_pointer(node)
        strides = getattr(given.get("strides"), "elts", [])
        step = [_STEP for each in strides if isinstance(each, ast.Constant) and each.value == 1]
        return self.terms(given["base"], seen).union(step) if "base" in given else frozenset()


_BLOCK_POINTERS = ("triton.language.make_block_ptr", "triton.language.advance")
_LOAD = "triton.language.load"
_ACCESSES = (_LOAD, "triton.language.store", "triton.language.atomic_")
_STEP = "tl.arange"
_UNSURE = "?"
"""Among factors: a term of the sum has several values."""
