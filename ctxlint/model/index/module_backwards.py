"""Modules with a ``backward`` that looks as if autograd called it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import dotted_name
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, positional_names, tree_of
from ctxlint.source.source import Position, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.source.source import Source


@record
class ModuleBackward:
    """A ``backward`` of a ``torch.nn.Module`` that takes a gradient and returns one; ``span`` is its name."""

    module: str
    span: Span


_GRADIENT = pattern(r"grad|^d_?(out|y|z|l)\w*$|^delta", re.IGNORECASE)
"""Typical names of a parameter that takes the gradient of an output."""


_OF_A_TRAINER = pattern(r"loss|graph|optim", re.IGNORECASE)
"""Names of what a method gets that starts the backward pass itself."""


def module_backwards(unit: Unit, project: Project) -> Iterator[ModuleBackward]:
    """The modules of a file that define ``forward`` and such a ``backward`` that nothing in the file calls.

    A file that passes a gradient to any ``backward``, or passes one on, may well work without autograd.
    """
    if unit.tree is None or unit.is_stub or not has_a_backward(unit.source):
        return
    found = list(_of_modules(unit, project))
    if found and not passes_gradients(unit.tree):
        yield from found


def has_a_backward(source: Source) -> bool:
    """Whether a text may define a ``backward``."""
    return source.holds("def backward")


def _of_modules(unit: Unit, project: Project) -> Iterator[ModuleBackward]:
    for made in unit.index.classes.values():
        methods = {each.name: each for each in made.node.body if isinstance(each, ast.FunctionDef)}
        backward = methods.get("backward")
        if backward is None or "forward" not in methods or not _looks_called(backward, methods["forward"]):
            continue
        if _is_module(Definition(unit, made.qualname), project):
            yield ModuleBackward(made.node.name, span_of_name(unit, backward))


def span_of_name(unit: Unit, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Span:
    """The span of the name of a function, where it is defined."""
    start = Position(function.lineno, max(unit.source.line(function.lineno).find(function.name, len("def")), 0) + 1)
    return Span(start, Position(start.line, start.column + len(function.name)))


def _is_module(definition: Definition, project: Project) -> bool:
    """Whether a class certainly descends from ``torch.nn.Module``, and from nothing unknown."""
    named = []
    for each in project.ancestry(definition):
        if each.record is None:
            return False
        for alternatives in project.bases(each):
            if len(alternatives) != 1 or alternatives[0] is None:
                return False
            named += [base for base in alternatives if isinstance(base, str)]
    return bool(named) and all(name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper() for name in named)


def _looks_called(backward: ast.FunctionDef, forward: ast.FunctionDef) -> bool:
    """Whether a method takes gradients after ``self``, and returns something.

    Next to a ``forward`` that returns its input, whatever it takes is a gradient: no other direction, as in a flow.
    """
    names = positional_names(backward.args)
    if backward.decorator_list or names[:1] != ["self"] or len(names) < 2:
        return False
    returned = _returned(backward)
    if _GRADIENT.search(names[1]) is None:
        if _OF_A_TRAINER.search(names[1]) or not _is_identity(forward) or _is_identity(backward):
            return False
    return any(not isinstance(each, ast.Constant) for each in returned)


def _is_identity(method: ast.FunctionDef) -> bool:
    """Whether a method does nothing but return its input: ``x``, ``x.clone()`` or a view of it."""
    names, returned, body = positional_names(method.args), _returned(method), method.body
    code = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if len(names) != 2 or len(code) != 1 or len(returned) != 1:
        return False
    value = returned[0]
    func = value.func if isinstance(value, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr in ("clone", "view_as"):
        value = func.value
    return isinstance(value, ast.Name) and value.id == names[1]


def _returned(method: ast.FunctionDef) -> list[ast.expr]:
    return [each.value for each in nodes_in(method) if isinstance(each, ast.Return) and each.value is not None]


def passes_gradients(tree: ast.Module) -> bool:
    """Whether a file calls a ``backward`` with a gradient, or reads one without calling it."""
    plain = {id(each.func) for each in nodes_in(tree) if isinstance(each, ast.Call) and _is_plain(each)}
    return any(
        isinstance(each, ast.Attribute) and each.attr == "backward" and id(each) not in plain for each in nodes_in(tree)
    )


def may_pass_gradients(data: bytes) -> bool:
    """Whether the bytes of a file leave it open that it does so."""
    tree = tree_of(data.decode("utf-8", "replace"))
    return tree is None or passes_gradients(tree)


def _is_plain(call: ast.Call) -> bool:
    """Whether a call passes no gradient: ``loss.backward(retain_graph=True)``, ``torch.autograd.backward(loss)``."""
    if isinstance(call.func, ast.Attribute) and dotted_name(call.func.value) in ("torch.autograd", "autograd"):
        return True
    return not call.args and all(each.arg in ("retain_graph", "create_graph", "inputs") for each in call.keywords)
