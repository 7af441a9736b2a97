"""A protocol method that a class defines twice, while the one that belongs to it is missing: one has the wrong name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.class_finder import conditional_methods, members
from ctxlint.model.syntax import children
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass

_SAVED = ("saved_tensors", "saved_variables")


@record
class Misnamed:
    """A method whose name another one has, too: ``meant`` is the name that it should have.

    ``replaces``: it is the one that torch calls.
    """

    node: cst.FunctionDef
    meant: str
    replaces: bool


def misnamed(fn: FunctionClass) -> Misnamed | None:
    """The one of two methods of a name in the body of a class that has the wrong name; None if that is not certain."""
    if (fn.forward is None) is (fn.backward is None):
        return None
    name, other = ("forward", "backward") if fn.backward is None else ("backward", "forward")
    method = fn.methods.get(name)
    if method is None or method.inherited or name in conditional_methods(fn.node):
        return None
    found = [each for each in members(fn.node)[0] if each.name.value == name]
    if len(found) != 2:
        return None
    first, last = found
    if _reads_saved(first) or not (_reads_saved(last) or (name == "forward" and _takes_gradients(last))):
        return None
    return Misnamed(last, other, replaces=True) if name == "forward" else Misnamed(first, other, replaces=False)


def _reads_saved(node: cst.CSTNode) -> bool:
    """Whether code reads saved tensors."""
    if isinstance(node, cst.Attribute) and node.attr.value in _SAVED:
        return True
    return any(map(_reads_saved, children(node)))


def _takes_gradients(node: cst.FunctionDef) -> bool:
    """Whether all parameters after the ctx are called gradients."""
    names = [each.name.value for each in node.params.params[1:]]
    return bool(names) and all(each.startswith("grad") for each in names)
