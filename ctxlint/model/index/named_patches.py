"""Methods that code replaces by their dotted names: ``register_patch("pkg.ops.Scale.forward", new)``."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.scopes import dotted_name
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator


class NamedMethod(NamedTuple):
    """A method that a string names, with its class, and the module before these as the string has it."""

    module: str
    owner: str
    method: str

    def may_be_of(self, path: str, qualname: str) -> bool:
        """Whether the class may be the one with this name in a file: the module may be a package that imports it.

        A class in a module of another name is another one, as is that in the project from which the code was copied.
        """
        places = re.split(r"[\\/]", path.removesuffix(".py"))
        last = last_name(self.module)
        return self.owner == last_name(qualname) and (not last or last in places or last in qualname.split("."))


def names_methods(data: bytes) -> bool:
    """Whether a file with these bytes may have such a string: it ends with the name of a method."""
    return any(each in data for each in _ENDS) and _NAMED.search(data) is not None


def named_methods(tree: ast.Module | None) -> Iterator[NamedMethod]:
    """The methods that strings of a file name, unless they are only shown: what gets the string may replace them.

    A string without the module is only that of a method if what gets it says so.
    """
    nodes = nodes_in(tree) if tree is not None else []
    given = {id(each) for node in nodes if isinstance(node, ast.Call) and _replaces(node) for each in node.args}
    shown = {id(each) for node in nodes for each in _shown(node)} - given
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in shown:
            continue
        found = _DOTTED.fullmatch(node.value)
        if found is not None and (found["module"] is not None or id(node) in given):
            yield NamedMethod(found["module"] or "", found["owner"], found["method"])


def _replaces(call: ast.Call) -> bool:
    """Whether a function says that it replaces something."""
    return _REPLACING.search(last_name(dotted_name(call.func) or "").lower()) is not None


def _shown(node: ast.AST) -> Iterator[ast.expr]:
    """The strings of a statement or call that nothing replaces a method by: documentation, or all that a call gets."""
    match node:
        case ast.Expr(value=ast.Constant() as text) | ast.Call(args=[ast.Constant() as text], keywords=[]):
            yield text
        case ast.Raise(exc=ast.expr() as said) | ast.Assert(msg=ast.expr() as said):
            yield from (each for each in nodes_in(said) if isinstance(each, ast.Constant))


_METHODS = "|".join(PROTOCOL)
_ENDS = tuple(f".{each}{quote}".encode() for each in PROTOCOL for quote in "'\"")
_NAMED = pattern(rb"\w\.(?:%b)['\"]" % _METHODS.encode())
_DOTTED = pattern(rf"(?:(?P<module>[\w.]*)\.)?(?P<owner>\w+)\.(?P<method>{_METHODS})")
_REPLACING = pattern(r"patch|replac|overrid|mock|stub")
