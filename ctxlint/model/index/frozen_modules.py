"""Modules and tensors that code freezes: ``head.requires_grad_(False)``, or the same for all its parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.scopes import dotted_name, is_on_self
from ctxlint.source.ast_tree import bound_names, nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REQUEST = "requires_grad"
"""What the text of code contains that freezes anything."""


class Frozen(NamedTuple):
    """What is frozen, by its dotted name; ``whole``: with all parameters in it, if it is a module."""

    path: str
    whole: bool

    def has(self, path: str) -> bool:
        """Whether a dotted name is that of it, or of a part of it."""
        return path == self.path or (self.whole and path.startswith(f"{self.path}."))


def frozen_by(statements: Iterable[ast.stmt]) -> frozenset[Frozen]:
    """What is certainly frozen after these statements, which run in this order."""
    found = frozenset[Frozen]()
    for statement in statements:
        frozen = frozenset(_frozen(statement))
        if not found and not frozen:
            continue
        nodes = nodes_in(statement)
        if not frozen and any(map(_sets_flag, nodes)):
            found = frozenset()  # it may be about any of them
        replaced = {*bound_names(nodes), *_attributes_set(nodes)}
        found = frozen.union(
            each for each in found if not any(f"{each.path}.".startswith(f"{one}.") for one in replaced)
        )
    return found


def frozen_in(module: ast.ClassDef) -> frozenset[Frozen]:
    """The attributes of ``self`` that a class certainly freezes when it is made, if no method of it may undo that."""
    methods = [each for each in module.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    initial = next((each for each in methods if each.name == "__init__"), None)
    others = [node for method in methods if method is not initial for node in nodes_in(method)]
    if initial is None or any(map(_sets_flag, others)):
        return frozenset()
    replaced = {*_attributes_set(each for each in others if is_on_self(each))}
    found = (each for each in frozen_by(initial.body) if each.path.partition(".")[0] == "self")
    return frozenset(each for each in found if not any(f"{each.path}.".startswith(f"{one}.") for one in replaced))


def _sets_flag(node: ast.AST) -> bool:
    """Whether it sets whether a gradient is required."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "requires_grad_" or (node.attr == "requires_grad" and not isinstance(node.ctx, ast.Load))


def _frozen(statement: ast.stmt) -> Iterator[Frozen]:
    """What a statement certainly freezes."""
    match statement:
        case ast.For(target, ast.Call(ast.Attribute(owner, "parameters" | "named_parameters"), [], []), body):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            inside = frozen_by(body) if not any(isinstance(each, _LEAVING) for each in nodes_in(statement)) else ()
            path = dotted_name(owner)
            if path is not None and any(each.path == getattr(names[-1], "id", "") for each in inside):
                yield Frozen(path, whole=True)
        case ast.Expr(ast.Call(ast.Attribute(owner, "requires_grad_"), [ast.Constant(False)], [])):
            yield from (Frozen(path, whole=True) for path in [dotted_name(owner)] if path is not None)
        case ast.Assign([ast.Attribute(owner, "requires_grad")], ast.Constant(False)):
            yield from (Frozen(path, whole=False) for path in [dotted_name(owner)] if path is not None)


_LEAVING = (ast.Break, ast.Continue, ast.Return)


def _attributes_set(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The dotted names of the attributes that code sets or deletes."""
    for each in nodes:
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
            yield from (path for path in [dotted_name(each)] if path is not None)
