"""The attributes that the code of a file sets on objects of any class, and those that its Functions find unset."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ctxlint.model.index.indexer import index_module
from ctxlint.source.ast_tree import tree_of
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.index.file_index import FileIndex
    from ctxlint.model.index.module_unit import Unit

    _FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def stored_on_others(index: FileIndex, owner: str = "") -> frozenset[str]:
    """The attributes that may be set on the ctx of the class ``owner``; methods of other classes set their own."""
    own = {"", owner}
    return frozenset(name for name, classes in index.attribute_owners.items() if not own.isdisjoint(classes))


def may_store(data: bytes, names: frozenset[str]) -> frozenset[str]:
    """Those of some attributes that a file with these bytes sets on whatever object, or may set."""
    mentioned = frozenset(name for name in names if name.encode("utf-8", "surrogatepass") in data)
    tree = tree_of(data.decode("utf-8", "replace")) if mentioned else None
    return mentioned if tree is None else mentioned & stored_on_others(index_module(tree))


def unset_attributes(unit: Unit, name: str) -> list[str]:
    """The attributes that methods of a Function, or helpers in the file, read of ctx, and that nothing there sets."""
    record = unit.index.classes[name]
    own = record.body.names
    with_ctx = _WITHOUT_FORWARD if "setup_context" in own else autograd.PROTOCOL
    known = stored_on_others(unit.index, name) | own.keys() | _OF_CTX
    methods = [each for each in record.node.body if isinstance(each, ast.FunctionDef) and each.name in with_ctx]
    notes = unit.index.part_of(record).notes
    read: set[str] = set()
    for method in methods:
        if method not in notes:
            notes[method] = _read_by_its_text(unit, method)
        if not known.issuperset(notes[method]):
            read |= _read_of(method, _params(method)[0])
    for helper in _named_in(unit, methods, name):
        for param in filter(_CONTEXT_NAME.search, _params(helper)):
            if not known.issuperset(_mentioned(unit, helper, param)):
                read |= _read_of(helper, param)
    return sorted(read - known)


def _named_in(unit: Unit, methods: Sequence[_FunctionNode], owner: str) -> Iterator[_FunctionNode]:
    """The functions of the file, and of the class ``owner``, with a ctx that methods, or such functions, may call."""
    others = {
        each.node: re.compile(rf"\b{each.node.name}\b")
        for at, each in unit.index.functions.items()
        if at.rpartition(".")[0] in ("", owner) and any(map(_CONTEXT_NAME.search, _params(each.node)))
    }
    todo = list(methods)
    while todo and others:
        text = _text_of(unit, todo.pop())
        for helper in [each for each, named in others.items() if named.search(text)]:
            del others[helper]
            todo.append(helper)
            yield helper


def _text_of(unit: Unit, function: _FunctionNode) -> str:
    return unit.source.lines(function.lineno, function.end_lineno or function.lineno)


def _read_by_its_text(unit: Unit, method: ast.FunctionDef) -> frozenset[str]:
    """The attributes that a method may read of its first parameter."""
    params = _params(method)
    return _mentioned(unit, method, params[0]) if params else frozenset()


def _mentioned(unit: Unit, function: _FunctionNode, param: str) -> frozenset[str]:
    """The attributes that a function may read of a parameter."""
    return frozenset(re.findall(rf"\b{param}[\s\\]*\.[\s\\]*(\w+)", _text_of(unit, function)))


def _params(function: _FunctionNode) -> list[str]:
    return [param.arg for param in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _read_of(function: _FunctionNode, param: str) -> set[str]:
    """The attributes that a function reads of a parameter."""
    return {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == param
    }


_CONTEXT_NAME = re.compile(r"ctx|context", re.IGNORECASE)
_OF_CTX = autograd.FUNCTION_CTX_ATTRIBUTES | autograd.CONTEXT_METHODS
_WITHOUT_FORWARD = frozenset(autograd.PROTOCOL) - {"forward"}
