"""The attributes that the code of a file sets on objects of any class, and those that its Functions find unset."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ctxlint.model.index.indexer import index_module
from ctxlint.source.ast_tree import tree_of
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from ctxlint.model.index.file_index import FileIndex
    from ctxlint.model.index.module_unit import Unit


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
    """The attributes that methods of a Function read of ctx, and that nothing in the file sets."""
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
            read |= _read_of_first(method)
    return sorted(read - known)


def _read_by_its_text(unit: Unit, method: ast.FunctionDef) -> frozenset[str]:
    """The attributes that a method may read of its first parameter."""
    params = (*method.args.posonlyargs, *method.args.args)
    text = unit.source.lines(method.lineno, method.end_lineno or method.lineno)
    return frozenset(re.findall(rf"\b{params[0].arg}[\s\\]*\.[\s\\]*(\w+)", text) if params else ())


def _read_of_first(method: ast.FunctionDef) -> set[str]:
    """The attributes that a method reads of its first parameter."""
    params = (*method.args.posonlyargs, *method.args.args)
    return {
        node.attr
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == params[0].arg
    }


_OF_CTX = autograd.FUNCTION_CTX_ATTRIBUTES | autograd.CONTEXT_METHODS
_WITHOUT_FORWARD = frozenset(autograd.PROTOCOL) - {"forward"}
