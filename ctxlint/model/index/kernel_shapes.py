"""Sums over each row of a block in a kernel of Triton that are combined with the block as if they were a row."""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.kernel_addresses import nodes_of_kernel
from ctxlint.model.index.kernel_bindings import always_compiled
from ctxlint.model.index.kernel_names import Aliases, meaning_in_kernel
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.scopes import Scope

    Shape = tuple[str, ...] | None
    """The sizes of a block, each a parameter or a number; empty for a number, None if unknown."""


class Misaligned(NamedTuple):
    """An operand with a value for each row, next to a block of ``rows`` and ``columns``: it counts as one row."""

    vector: ast.expr
    block: ast.expr
    rows: str
    columns: str


@lru_cache(maxsize=64)
def misaligned_operands(kernel: Kernel, scope: Scope, aliases: Aliases) -> tuple[Misaligned, ...]:
    """The operands that certainly have the first dimension of a block in place of the last."""
    nodes = nodes_of_kernel(kernel)
    reducing = [each for each in nodes if each.__class__ is ast.Call and _reduces_rows(each)]
    if not reducing:
        return ()
    shapes = _Shapes(frozenset(parameter_names(kernel.args)), *_bindings(nodes), scope, aliases)
    if not any(len(shapes.of(each) or ()) == 1 for each in reducing):
        return ()
    found = (
        _misaligned(shapes, each)
        for each in always_compiled(kernel.body)
        if isinstance(each, (ast.BinOp, ast.AugAssign))
    )
    return tuple(each for each in found if each is not None)


def _reduces_rows(call: ast.Call) -> bool:
    """Whether a call may reduce each row of a block: ``tl.sum(x, axis=1)``, ``tl.max(x, -1)``."""
    if getattr(call.func, "attr", getattr(call.func, "id", "")) not in _REDUCING:
        return False
    axes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "axis")]
    return any(ast.unparse(each) in ("1", "-1") for each in axes)


def _misaligned(shapes: _Shapes, node: ast.BinOp | ast.AugAssign) -> Misaligned | None:
    if isinstance(node, ast.BinOp):
        operands = [(each, shapes.of(each)) for each in (node.left, node.right)]
    else:
        operands = [(node.value, shapes.of(node.value)), (node.target, shapes.assigned_to(node.target))]
    for (one, vector), (other, block) in (operands, operands[::-1]):
        if vector is not None and block is not None and len(vector) == 1 and len(block) == 2:
            rows, columns = block
            known = all(shapes.is_size(each) for each in block) and "1" not in block
            if vector == (rows,) and rows != columns and known and shapes.is_per_row(one):
                return Misaligned(one, other, rows, columns)
    return None


def _bindings(nodes: Iterable[ast.AST]) -> tuple[Mapping[str, list[ast.expr]], Mapping[str, list[ast.expr]], set[str]]:
    """What each name is assigned, what is added to it, and the names that are bound in any other way."""
    assigned: dict[str, list[ast.expr]] = {}
    added: dict[str, list[ast.expr]] = {}
    known = set[int]()
    numbers = set[str]()
    stores = []
    for each in nodes:
        if each.__class__ is ast.Assign and len(each.targets) == 1:
            for target, value in _pairs(each.targets[0], each.value):
                assigned.setdefault(target.id, []).append(value)
                known.add(id(target))
        elif each.__class__ is ast.AugAssign and isinstance(each.target, ast.Name):
            added.setdefault(each.target.id, []).append(each.value)
            known.add(id(each.target))
        elif each.__class__ is ast.For and isinstance(each.target, ast.Name) and isinstance(each.iter, ast.Call):
            if getattr(each.iter.func, "attr", getattr(each.iter.func, "id", "")) in ("range", "static_range"):
                numbers.add(each.target.id)
                known.add(id(each.target))
        elif each.__class__ is ast.Name and each.ctx.__class__ is ast.Store:
            stores.append(each)
    other = {each.id for each in stores if id(each) not in known}
    for name in numbers - other:
        assigned.setdefault(name, []).append(ast.Constant(0))
    return assigned, added, other


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.Name, ast.expr]]:
    if isinstance(target, ast.Name):
        return [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [pair for one, other in zip(target.elts, value.elts) for pair in _pairs(one, other)]
    return []


@record
class _Shapes:
    """The sizes of what a kernel computes."""

    parameters: frozenset[str]
    assigned: Mapping[str, list[ast.expr]]
    added: Mapping[str, list[ast.expr]]
    unknown: set[str]
    scope: Scope
    aliases: Aliases
    names: dict[str, Shape] = field(default_factory=dict)
    depth: list[int] = field(default_factory=lambda: [0])
    """How deep the expression is that is looked at."""

    def is_size(self, name: str) -> bool:
        """Whether it is a number, or a parameter that is what the launch passes."""
        return name.isdigit() or (name in self.parameters and name not in {*self.assigned, *self.added, *self.unknown})

    def is_per_row(self, node: ast.expr) -> bool:
        """Whether a vector is computed from sums over rows; others of that size may be for as many columns."""
        waiting, seen = [node], set[str]()
        while waiting:
            for each in nodes_in(waiting.pop()):
                if isinstance(each, ast.Call) and _reduces_rows(each) and self.of(each) not in (None, ()):
                    return True
                if isinstance(each, ast.Name) and each.id not in seen:
                    seen.add(each.id)
                    waiting += [*self.assigned.get(each.id, []), *self.added.get(each.id, [])]
        return False

    def of(self, node: ast.expr) -> Shape:
        """The sizes of an expression; None for one that is deeply nested, too."""
        self.depth[0] += 1
        found = self._of(node) if self.depth[0] < _DEEPEST else None
        self.depth[0] -= 1
        return found

    def _of(self, node: ast.expr) -> Shape:
        if isinstance(node, ast.Constant):
            return ()
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                self.names[node.id] = None  # while its own values are looked at
                self.names[node.id] = self._of_name(node.id)
            return self.names[node.id]
        if isinstance(node, ast.BinOp):
            return self._together([node.left, node.right])
        if isinstance(node, ast.Compare):
            return self._together([node.left, *node.comparators])
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.Subscript):
            return self._of_index(node)
        return self._of_call(node) if isinstance(node, ast.Call) else None

    def _of_name(self, name: str) -> Shape:
        """The sizes of what a name is bound to, which is one thing; a parameter is a number, or an address."""
        values = self.assigned.get(name, [])
        if name in self.unknown or (name in self.parameters) is bool(values):
            return None
        start: Shape = self.assigned_to(ast.Name(name)) if values else ()
        # what is added may come later, or on some paths only
        return start if self._all([start, *map(self.of, self.added.get(name, []))]) == start else None

    def assigned_to(self, target: ast.expr) -> Shape:
        """The sizes of what a name is assigned, before anything is added to it."""
        values = self.assigned.get(target.id, []) if isinstance(target, ast.Name) else []
        shapes = {self.of(each) for each in values}
        return shapes.pop() if len(shapes) == 1 else None

    def _together(self, nodes: Iterable[ast.expr]) -> Shape:
        return self._all([self.of(each) for each in nodes])

    def _all(self, shapes: Iterable[Shape]) -> Shape:
        """What several operands become: dimensions are added in front, and single elements repeated."""
        result: Shape = ()
        for shape in shapes:
            if result is None or shape is None:
                return None
            count = max(len(result), len(shape))
            pairs = zip(("1",) * (count - len(result)) + result, ("1",) * (count - len(shape)) + shape)
            sizes = [b if a == "1" else a if b in ("1", a) else None for a, b in pairs]
            result = None if None in sizes else tuple(each for each in sizes if each is not None)
        return result

    def _of_index(self, node: ast.Subscript) -> Shape:
        """``x[:, None]``: a new dimension for each ``None``."""
        shape = self.of(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if shape is None:
            return None
        rest, found = list(shape), list[str]()
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                found.append("1")
            elif isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None and rest:
                found.append(rest.pop(0))
            else:
                return None
        return tuple(found) if not rest else None

    def _of_call(self, node: ast.Call) -> Shape:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.of(node.func.value)
        meant = meaning_in_kernel(node.func, self.scope, self.aliases)
        function = meant.removeprefix("triton.language.")
        if function in _NUMBERS:
            return ()
        if function == meant and not meant.startswith("builtins."):
            return None
        names = _PARAMETERS.get(function, ())
        if names and len(node.args) > len(names):
            return None
        given = dict(zip(names, node.args)) | {each.arg or "": each.value for each in node.keywords}
        if function == "arange" and len(node.args) == 2:
            size = _size(node.args[1])
            return (size,) if size and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0 else None
        if function in ("zeros", "full"):
            sizes = [_size(each) for each in getattr(given.get("shape"), "elts", [None])]
            return tuple(sizes) if all(sizes) else None
        if function == "load":
            return self._together([given[each] for each in ("pointer", "mask") if each in given])
        if function in _REDUCING:
            return self._reduced(given)
        if function == "dot" and len(node.args) > 1:
            first, second = self.of(node.args[0]), self.of(node.args[1])
            both = first is not None and second is not None and len(first) == len(second) == 2
            return (first[0], second[1]) if first and second and both else None
        return self._together(node.args) if function in _ELEMENTWISE and node.args and not node.keywords else None

    def _reduced(self, given: Mapping[str, ast.expr]) -> Shape:
        shape = self.of(given["input"]) if "input" in given else None
        axis = given.get("axis")
        if shape is None or axis is None or given.keys() - _REDUCING_ONE:
            return None
        kept = given.get("keep_dims", ast.Constant(False))
        number = axis.operand if isinstance(axis, ast.UnaryOp) and isinstance(axis.op, ast.USub) else axis
        at = number.value if isinstance(number, ast.Constant) else None
        if not isinstance(at, int) or not isinstance(kept, ast.Constant):
            return None
        at = len(shape) - at if number is not axis else at
        if not 0 <= at < len(shape):
            return None
        return (*shape[:at], *(["1"] if kept.value else []), *shape[at + 1 :])


def _size(node: ast.expr | None) -> str:
    """A size that is a parameter, or a number; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int) else ""


_NUMBERS = frozenset(["program_id", "num_programs", "cdiv"])
_REDUCING = frozenset(["sum", "max", "min"])
_PARAMETERS = {
    "sum": ("input", "axis", "keep_dims", "dtype"),
    **dict.fromkeys(("max", "min"), ("input", "axis", "return_indices", "return_indices_tie_break_left", "keep_dims")),
    "zeros": ("shape", "dtype"),
    "full": ("shape", "value", "dtype"),
    "load": ("pointer", "mask", "other"),
}
_REDUCING_ONE = frozenset(("input", "axis", "keep_dims", "dtype"))
"""The parameters of a reduction that returns one block."""
_ELEMENTWISE = frozenset(
    str.split(
        "abs cast ceil cos erf exp exp2 floor fma log log2 maximum minimum rsqrt sigmoid sin sqrt where float int"
    )
) | frozenset(("builtins.float", "builtins.int", "builtins.min", "builtins.max"))
_DEEPEST = 100
