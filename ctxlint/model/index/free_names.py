"""Names that classes read and that nothing in their file binds, and files that set such names for another one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.python_names import is_always_bound
from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.index.file_index import ClassRecord, FileIndex


def free_names(index: FileIndex, classes: Iterable[str]) -> frozenset[str]:
    """The names that some classes of a file read, and that neither they nor the module nor Python binds."""
    read = (
        _free_in(index, record) - record.scope.function_locals() for record in map(index.classes.__getitem__, classes)
    )
    return frozenset(each for names in read for each in names if each not in index.module.names)


def _free_in(index: FileIndex, record: ClassRecord) -> frozenset[str]:
    """The names that a class reads and does not bind; known as long as its code is the same."""
    part = index.parts[record.statement] if index.parts else index
    known: dict[str, frozenset[str]] = part.notes.setdefault(free_names, {})
    if record.qualname not in known:
        nodes = nodes_in(record.node)
        read = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        free = read.difference(_bound(nodes))
        known[record.qualname] = frozenset(each for each in free if not is_always_bound(each))
    return known[record.qualname]


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that some nodes bind, in whatever scope."""
    for each in nodes:
        match each:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield (other or name).partition(".")[0]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def sets_in(tree: ast.Module | None, module: str, name: str) -> bool:
    """Whether a file may set a name of a module, whose own name has this last part, or of Python's builtins."""
    if tree is None:
        return True
    nodes = nodes_in(tree)
    imported = (each for each in nodes if isinstance(each, ast.alias) and each.asname is not None)
    modules = {module, "builtins", "__builtins__"}
    modules.update(each.asname for each in imported if each.asname is not None and last_name(each.name) in modules)
    return any(_may_set(node, modules, module, name) for node in nodes)


def _may_set(node: ast.AST, modules: set[str], module: str, name: str) -> bool:
    match node:
        case ast.Attribute(value=receiver, attr=attribute, ctx=ast.Store()) if attribute == name:
            return _is_among(modules, receiver)
        case ast.Attribute(value=receiver, attr="__dict__") | ast.Call(func=ast.Name("vars"), args=[receiver]):
            return _is_among(modules, receiver)
        case ast.Call(func=func, args=[receiver, key, *_]) if last_name(dotted_name(func) or "") not in _READING:
            named = not isinstance(key, ast.Constant) or key.value == name
            return (named and _is_among(modules, receiver)) or _names(receiver, module, name)
        case ast.Call(args=[text]):
            return _names(text, module, name)
    return False


_READING = ("getattr", "hasattr")


def _is_among(modules: set[str], node: ast.expr) -> bool:
    """Whether an expression may mean one of some modules, by the last part of its name, or one of ``sys.modules``."""
    if isinstance(node, ast.Subscript):
        return (dotted_name(node.value) or "").endswith("modules")
    return last_name(dotted_name(node) or "") in modules


def _names(node: ast.expr, module: str, name: str) -> bool:
    """Whether an argument is the dotted name: ``"pkg.ops.scale"``."""
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and f".{text}".endswith(f".{module}.{name}")
