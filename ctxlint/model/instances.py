"""What a file does with an instance of a Function: calls it, takes only its ``apply``, or who knows."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.files.source import Source, Span
    from ctxlint.model.apply_calls import ApplyCall


class InstanceUse(Enum):
    """What becomes of an instance."""

    APPLY_TAKEN = "Fn().apply, which is not called at once"
    ONLY_APPLIED = "it is kept under a name of which only apply is taken"
    CALLED = "it is called by the name that it is kept under, or by torch"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Instance:
    """An instance that a file makes; ``calls`` are the places where it is called."""

    use: InstanceUse
    calls: tuple[Span, ...] = ()


def instance_made_by(call: ApplyCall, source: Source, tree: ast.Module | None) -> Instance:
    """What becomes of the instance that ``call`` makes in this file, as far as the name it is kept under shows."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)} if tree else {}
    line = call.span.start.line
    here = (each for each in parents if isinstance(each, ast.Call) and each.lineno == line)
    made = next((each for each in here if source.span_of(each) == call.span), None)
    if made is None:
        return Instance(InstanceUse.UNKNOWN)
    place = _chosen(made, parents)
    parent = parents[place]
    if isinstance(parent, ast.Attribute):
        return Instance(InstanceUse.APPLY_TAKEN if parent.attr == "apply" else InstanceUse.UNKNOWN)
    checkers = _gradcheck_names(parents)
    if (called := _called_at(place, parent, checkers, source)) is not None:
        return Instance(InstanceUse.CALLED, (called,))
    name = _kept_as(parent)
    if name is None or _in_class_body(name, parents):
        return Instance(InstanceUse.UNKNOWN)
    uses = [each for each in parents if _reads(each, name)]
    known = [each for each in uses if _home(each, name, parents) is _home(name, name, parents)]
    called_at = (_called_at(each, parents[each], checkers, source) for each in known)
    calls = tuple(sorted(each for each in called_at if each is not None))
    if calls:
        return Instance(InstanceUse.CALLED, calls)
    applied = bool(known) and all(_takes_apply(parents[each]) for each in uses)
    return Instance(InstanceUse.ONLY_APPLIED if applied else InstanceUse.UNKNOWN)


def _chosen(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """The outermost conditional expression that may give the node as its value."""
    while isinstance(around := parents[node], ast.IfExp) and node is not around.test:
        node = around
    return node


def _called_at(node: ast.AST, parent: ast.AST, checkers: frozenset[str], source: Source) -> Span | None:
    """Where the instance is called, or given to a function of torch that calls it; None where neither is so."""
    if not isinstance(parent, ast.Call):
        return None
    if node is parent.func:
        return source.span_of(parent)
    place = source.span_of(parent.func)
    written = source.text[source.offset(place.start) : source.offset(place.end)]
    return source.span_of(parent) if node in parent.args[:1] and written in checkers else None


def _gradcheck_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """What the file calls ``torch.autograd.gradcheck`` and ``gradgradcheck``."""
    modules = {"torch.autograd", "torch.autograd.gradcheck"}
    imported = (
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for alias in node.names
        if alias.name in _GRADCHECK
    )
    return frozenset(f"{module}{name}" for name in _GRADCHECK for module in _AUTOGRAD) | frozenset(imported)


_GRADCHECK = ("gradcheck", "gradgradcheck")
_AUTOGRAD = ("torch.autograd.", "autograd.", "torch.autograd.gradcheck.")


def _in_class_body(name: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return isinstance(next((each for each in _above(name, parents) if isinstance(each, scopes)), None), ast.ClassDef)


def _takes_apply(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "apply"


def _kept_as(parent: ast.AST) -> ast.Name | ast.Attribute | None:
    """The one name, or attribute of a name, that an assignment gives the instance."""
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target: ast.AST = parent.targets[0]
    elif isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
        target = parent.target
    else:
        return None
    if isinstance(target, ast.Name):
        return target
    return target if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else None


def _reads(node: ast.AST, kept: ast.Name | ast.Attribute) -> bool:
    """Whether a node reads the name, or an attribute of that name of anything."""
    if isinstance(kept, ast.Name):
        return isinstance(node, ast.Name) and node.id == kept.id and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr == kept.attr and isinstance(node.ctx, ast.Load)


def _home(node: ast.AST, kept: ast.Name | ast.Attribute, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """The function or module whose name is meant there; for ``self.name``, the class; None for what is neither."""
    if isinstance(kept, ast.Attribute):
        same = isinstance(node, ast.Attribute) and ast.dump(node.value) == ast.dump(kept.value)
        return next((each for each in _above(node, parents) if isinstance(each, ast.ClassDef)), None) if same else None
    above = list(_above(node, parents))
    functions = (each for each in above if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))
    return next((each for each in functions if _binds(each, kept.id)), above[-1])


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _binds(function: ast.AST, name: str) -> bool:
    return any(
        (isinstance(each, ast.arg) and each.arg == name)
        or (isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store))
        for each in ast.walk(function)
    )
