"""The attributes that the code of a file sets on objects of any class, and those that its Functions find unset."""

from __future__ import annotations

import ast
import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.indexer import index_module
from ctxlint.model.index.scopes import LOCAL, dotted_name, meanings
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in, parameter_names, tree_of
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.index.file_index import ClassRecord, FileIndex, FunctionRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition, Project

    _FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def stored_on_others(index: FileIndex, owner: str = "") -> frozenset[str]:
    """The attributes that may be set on the ctx of the class ``owner``; methods of other classes set their own."""
    if stored_on_others not in index.notes:
        by_owner: dict[str, set[str]] = {}
        for name, classes in index.attribute_owners.items():
            for each in classes:
                by_owner.setdefault(each, set()).add(name)
        index.notes[stored_on_others] = {each: frozenset(names) for each, names in by_owner.items()}
    found: dict[str, frozenset[str]] = index.notes[stored_on_others]
    return found.get("", frozenset()) | found.get(owner, frozenset())


def may_store(data: bytes, names: frozenset[str]) -> frozenset[str]:
    """Those of some attributes that a file with these bytes sets on whatever object, or may set."""
    mentioned = frozenset(name for name in names if name.encode("utf-8", "surrogatepass") in data)
    tree = tree_of(data.decode("utf-8", "replace")) if mentioned else None
    return mentioned if tree is None else mentioned & stored_on_others(index_module(tree))


class _Taker(NamedTuple):
    """A function of the file ``home``, and the parameters that get the ctx."""

    home: Unit
    function: _FunctionNode
    contexts: tuple[str, ...]


def _taker(home: Unit, record: FunctionRecord) -> _Taker:
    return _Taker(home, record.node, tuple(filter(_CONTEXT_NAME.search, parameter_names(record.node.args))))


def unset_attributes(unit: Unit, name: str, project: Project) -> list[str]:
    """The attributes that methods of a Function, or helpers of them, read of ctx, and that nothing in the file sets.

    In the next version of the file, they are known if the class and all functions with a ctx are the same.
    """
    index, record = unit.index, unit.index.classes[name]
    if not index.parts:
        return _unset_attributes(unit, name, project)
    taking = _taking_a_context(index)
    functions = tuple(each.node for within in ("", name) for each in taking.get(within, ()))
    depends_on = (functions, stored_on_others(index, name), unit.has_context_calls)
    notes, key = index.parts[record.statement].notes, (unset_attributes, name)
    known: tuple[object, list[str]] | None = notes.get(key)
    if known is None or known[0] != depends_on:
        known = notes[key] = depends_on, _unset_attributes(unit, name, project)
    return known[1]


def _unset_attributes(unit: Unit, name: str, project: Project) -> list[str]:
    record = unit.index.classes[name]
    own = record.body.names
    with_ctx = _WITHOUT_FORWARD if "setup_context" in own else autograd.PROTOCOL
    known = stored_on_others(unit.index, name) | own.keys() | _OF_CTX
    methods = [each for each in record.node.body if isinstance(each, ast.FunctionDef) and each.name in with_ctx]
    takers = [
        _Taker(unit, each, tuple(parameter_names(each.args)[:1]))
        for each in methods
        if _may_get_the_ctx(unit, each, name)
    ]
    takers += _named_in(unit, methods, record)
    takers += list(_imported_by(unit, takers, project))
    read: set[str] = set()
    for taker in takers:
        for context in taker.contexts:
            if not known.issuperset(_mentioned(taker, context)):
                read |= _read_of(taker.function, context)
    return sorted(read - known)


def _may_get_the_ctx(unit: Unit, method: _FunctionNode, owner: str) -> bool:
    """Whether the first parameter may be a ctx: if a Function serves as a namespace, it is a tensor."""
    taker = _Taker(unit, method, tuple(parameter_names(method.args)[:1]))
    if any(_CONTEXT_NAME.search(name) or name == "self" for name in taker.contexts):
        return True
    if unit.has_context_calls:
        return True
    stored = stored_on_others(unit.index, owner)
    return any(stored & _mentioned(taker, name) for name in taker.contexts)


def _imported_by(unit: Unit, takers: Iterable[_Taker], project: Project) -> Iterator[_Taker]:
    """The functions of other files than ``unit`` that get the ctx first in ``takers``, or in such functions."""
    todo = list(takers)
    seen: set[Definition] = set()
    while todo and len(seen) < _MOST_HELPERS:
        home, function, _contexts = todo.pop()
        for dotted in sorted(_called_with_ctx(_text_of(home, function))):
            found = set(meanings(dotted, home.index.module, sys.maxsize))
            name = found.pop() if len(found) == 1 else None
            if name is None or name.startswith(("torch.", "builtins.")) or (home is unit and name.startswith(LOCAL)):
                continue
            helper = project.certainly(home, name)
            record = helper.unit.index.functions.get(helper.qualname) if helper is not None else None
            if helper is not None and record is not None and helper not in seen:
                seen.add(helper)
                todo.append(_taker(helper.unit, record))
                yield todo[-1]


def _named_in(unit: Unit, methods: Sequence[_FunctionNode], owner: ClassRecord) -> Iterator[_Taker]:
    """The functions of the file, and of the class ``owner``, with a ctx that methods, or such functions, may call."""
    taking = _taking_a_context(unit.index)
    others: dict[str, list[FunctionRecord]] = {}
    for each in (*taking.get("", ()), *taking.get(owner.qualname, ())):
        others.setdefault(each.node.name, []).append(each)
    todo = list(methods)
    while todo and others:
        words = _words_in(_text_of(unit, todo.pop()))
        for name in [name for name in others if name in words]:
            found = others.pop(name)
            todo += [each.node for each in found]
            yield from (_taker(unit, each) for each in found)


def _taking_a_context(index: FileIndex) -> dict[str, list[FunctionRecord]]:
    """The functions with a ctx among their parameters, by the qualified name of what they are defined in."""
    if _taking_a_context not in index.notes:
        found: dict[str, list[FunctionRecord]] = {}
        for part in index.parts:
            for within, functions in _taking_a_context(part).items():
                found.setdefault(within, []).extend(functions)
        for at, each in index.functions.items() if not index.parts else ():
            if any(map(_CONTEXT_NAME.search, parameter_names(each.node.args))):
                found.setdefault(at.rpartition(".")[0], []).append(each)
        index.notes[_taking_a_context] = found
    known: dict[str, list[FunctionRecord]] = index.notes[_taking_a_context]
    return known


def _mentioned(taker: _Taker, param: str) -> frozenset[str]:
    """The attributes that a function may read of a parameter."""
    read = _found(taker.home, taker.function, rf"{param}(?<!\w{param})[\s\\]*\.[\s\\]*(\w+)")
    return read | _found(taker.home, taker.function, rf"getattr(?<=\bgetattr)\(\s*{param}\s*,\s*['\"](\w+)")


def _found(unit: Unit, function: _FunctionNode, expression: str) -> frozenset[str]:
    """What a regular expression finds in the text of a function."""
    return _matches(expression, _text_of(unit, function))


def _text_of(unit: Unit, function: _FunctionNode) -> str:
    return unit.source.lines(function.lineno, function.end_lineno or function.lineno)


@lru_cache(maxsize=512)  # by the text: an editor parses all methods of a class again when one of them changes
def _matches(expression: str, text: str) -> frozenset[str]:
    return frozenset(re.findall(expression, text))


@lru_cache(maxsize=512)  # as above
def _words_in(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


@lru_cache(maxsize=512)  # as above
def _called_with_ctx(text: str) -> frozenset[str]:
    """The dotted names of what is called with the ctx first."""
    # Searched for the rare end first: a pattern that begins with any name would be tried at every one.
    before = (text[max(given.start() - _LONGEST_NAME, 0) : given.start()] for given in _GIVEN_CTX.finditer(text))
    named = filter(None, map(_DOTTED_AT_END.search, before))
    return frozenset(found[0] for found in named)


def _read_of(function: _FunctionNode, param: str) -> set[str]:
    """The attributes that a function reads of a parameter."""
    found: set[str] = set()
    for node in nodes_in(function):
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif isinstance(node, ast.Call) and len(node.args) == 2 and dotted_name(node.func) == "getattr":
            owner, written = node.args
            text = written.value if isinstance(written, ast.Constant) else None
            name = text if isinstance(text, str) else ""
        else:
            continue
        if isinstance(owner, ast.Name) and owner.id == param and name:
            found.add(name)
    return found


_GIVEN_CTX = pattern(r"\(\s*(?:ctx|context)\s*[,)]")
_DOTTED_AT_END = pattern(r"\b[A-Za-z_][\w.]*\Z")
_LONGEST_NAME = 200
_MOST_HELPERS = 100

_CONTEXT_NAME = pattern(r"ctx|context", re.IGNORECASE)
_OF_CTX = autograd.FUNCTION_CTX_ATTRIBUTES | autograd.CONTEXT_METHODS
_WITHOUT_FORWARD = frozenset(autograd.PROTOCOL) - {"forward"}
