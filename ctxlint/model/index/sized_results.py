"""Results of a function that are memory of several elements, as its own statements show; decided with ``ast`` alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import nodes_in, parameter_names
from ctxlint.torch_api.operations import CONTIGUOUS_FACTORIES, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxlint.model.index.project import Definition


def sizing_parameters(definition: Definition, part: int | None) -> frozenset[str]:
    """The parameters of one of which a result has at least one size on every path; none if that is unknown.

    ``part`` numbers the elements of the tuple that the function returns. A parameter that the function binds itself is
    unknown, and so is a name that it binds in another way than by assignment.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain or not isinstance(record.node, ast.FunctionDef):
        return frozenset()
    return _Function(record.node).sizing(part)


class _Function:
    """The names that a function binds."""

    def __init__(self, function: ast.FunctionDef) -> None:
        nodes = [each for statement in function.body for each in nodes_in(statement)]
        self.returned = [each.value for each in nodes if isinstance(each, ast.Return)]
        self._params = frozenset(parameter_names(function.args))
        self._asked: set[str] = set()
        """The names that are being looked at: one that is bound to itself has no size that is known."""
        self._bound: dict[str, list[ast.expr | None]] = {}
        """What each name is bound to; None for anything but the value of an assignment, or its shape taken apart."""
        known: set[ast.Name] = set()
        for each in nodes:
            if isinstance(each, ast.Assign) and len(each.targets) == 1:
                target = each.targets[0]
                parts = target.elts if isinstance(target, ast.Tuple) and _is_shape(each.value) else [target]
                for name in parts:
                    if isinstance(name, ast.Name):
                        known.add(name)
                        self._bound.setdefault(name.id, []).append(each.value)
        for each in nodes:
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in known:
                self._bound.setdefault(each.id, []).append(None)

    def sizing(self, part: int | None) -> frozenset[str]:
        found = [self._of_result(each, part) for each in self.returned]
        return frozenset.union(*found) if found and all(found) else frozenset()

    def _of_result(self, value: ast.expr | None, part: int | None) -> frozenset[str]:
        if part is not None:
            value = value.elts[part] if isinstance(value, ast.Tuple) and part < len(value.elts) else None
        return self._of_tensor(value)

    def _of_name(self, name: str, of: Callable[[ast.expr], frozenset[str]]) -> frozenset[str]:
        """The parameters for all that a name is bound to."""
        if name in self._asked:
            return frozenset()
        self._asked.add(name)
        made = self._bound.get(name, [])
        found = [of(each) for each in made if each is not None and not isinstance(each, ast.Name)]
        self._asked.discard(name)
        return frozenset.union(*found) if found and len(found) == len(made) and all(found) else frozenset()

    def _of_tensor(self, value: ast.expr | None) -> frozenset[str]:
        """The parameters of which memory has a size."""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _WHOLE:
            value = value.func.value
        if isinstance(value, ast.Name):
            return self._of_name(value.id, self._of_tensor)
        name = dotted_name(value.func) if isinstance(value, ast.Call) else None
        if not isinstance(value, ast.Call) or name is None or not value.args or not name.startswith("torch."):
            return frozenset()
        kind = name.removeprefix("torch.")
        if kind in LAYOUT_KEEPING_FACTORIES:
            return self._parameter(value.args[0])
        if kind not in CONTIGUOUS_FACTORIES:
            return frozenset()
        sizes = value.args[:1] if kind == "full" else value.args
        return next(filter(None, map(self._of_size, [one for each in sizes for one in _elements(each)])), frozenset())

    def _of_size(self, size: ast.expr) -> frozenset[str]:
        """The parameter of which it is a size, or all of them."""
        if isinstance(size, ast.Name):
            return self._of_name(size.id, self._of_size)
        if isinstance(size, ast.Subscript) and not isinstance(size.slice, ast.Slice):
            size = size.value
            if isinstance(size, ast.Name):
                return self._of_size(size)
        if isinstance(size, ast.Call) and isinstance(size.func, ast.Attribute) and size.func.attr == "size":
            return self._parameter(size.func.value)
        if isinstance(size, ast.Attribute) and size.attr == "shape":
            return self._parameter(size.value)
        return frozenset()

    def _parameter(self, tensor: ast.expr) -> frozenset[str]:
        """The parameter that a name is, which the function does not bind."""
        known = isinstance(tensor, ast.Name) and tensor.id in self._params and tensor.id not in self._bound
        return frozenset([tensor.id]) if isinstance(tensor, ast.Name) and known else frozenset()


_WHOLE = frozenset(("contiguous", "detach", "permute", "reshape", "t", "transpose", "unsqueeze", "view", "view_as"))
"""Methods that give all elements of a tensor."""


def _is_shape(value: ast.expr) -> bool:
    """Whether it is ``x.shape`` or ``x.size()``."""
    func = value.func if isinstance(value, ast.Call) and not value.args else value
    return isinstance(func, ast.Attribute) and func.attr in ("shape", "size")


def _elements(sizes: ast.expr) -> Iterator[ast.expr]:
    """The sizes in ``(4, n)`` and ``x.shape[:-1] + (4,)``."""
    if isinstance(sizes, (ast.Tuple, ast.List)):
        yield from sizes.elts
    elif isinstance(sizes, ast.BinOp) and isinstance(sizes.op, ast.Add):
        yield from _elements(sizes.left)
        yield from _elements(sizes.right)
    else:
        yield sizes
