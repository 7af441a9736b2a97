"""Which attributes of a module certainly are parameters that it creates to train them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.passed_tensors import is_new_parameter
from ctxlint.model.index.results import class_around
from ctxlint.model.index.scopes import is_on_self
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ctxlint.model.index.file_index import FileIndex
    from ctxlint.model.index.scopes import Scope


TRAINS = pattern(r"training|\b(?:is_|do_)?(?:eval|infer|train)\b")
"""What code mentions that tests whether a module is trained."""


def is_own_parameter(node: ast.expr, scope: Scope, index: FileIndex) -> bool:
    """Whether an expression is ``self.weight``, certainly such a parameter of the class around it."""
    record = index.classes.get(class_around(scope) or "") if is_on_self(node) else None
    if record is None or not isinstance(node, ast.Attribute):
        return False
    return creates_to_train(assigned_in(record.node).get(node.attr, ()), record.node)


def is_in_forward(scope: Scope) -> bool:
    """Whether code is in the ``forward`` of a class: other methods may run where nothing is differentiated."""
    return scope.kind == "function" and scope.qualname.endswith(".forward")


def creates_to_train(values: Collection[ast.expr | None], module: ast.ClassDef) -> bool:
    """Whether all values of an attribute are parameters that require grad, of a class that freezes none."""
    return bool(values) and all(map(is_new_parameter, values)) and not _mentions_flag(module)


def assigned_in(module: ast.ClassDef) -> dict[str, list[ast.expr | None]]:
    """What a class assigns to the attributes of objects; None for anything not that simple."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in nodes_in(module):
        targets = node.targets if isinstance(node, ast.Assign) else [node] if isinstance(node, _TARGETS) else []
        for target in targets:
            stored = target.target if isinstance(target, _TARGETS) else target
            for each in _changed_in(stored):
                if isinstance(each, ast.Attribute):
                    simple = each is stored and not isinstance(node, ast.AugAssign)
                    found.setdefault(each.attr, []).append(getattr(node, "value", None) if simple else None)
    return found


def _changed_in(stored: ast.expr) -> Iterator[ast.AST]:
    """The nodes of what is assigned, without ``self.weight`` in ``self.weight.scale``: the tensor stays what it is."""
    nodes = [*nodes_in(stored)]
    targets = (each for each in nodes if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load))
    holders = {id(each.value) for each in targets if each.attr not in _OF_ITS_VALUE}
    return (each for each in nodes if id(each) not in holders)


_OF_ITS_VALUE = frozenset({"data", "grad", "requires_grad", "weight", "bias"})
"""Attributes that change the tensor or the layer that they belong to."""

_TARGETS = (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)


def _mentions_flag(module: ast.ClassDef) -> bool:
    """Whether a class mentions ``requires_grad``."""
    for node in nodes_in(module):
        named = node.attr if isinstance(node, ast.Attribute) else node.arg if isinstance(node, ast.keyword) else None
        if named in _FREEZING:
            return True
    return False


_FREEZING = frozenset({"requires_grad", "requires_grad_"})
