"""Conditions on the torch release, such as ``if torch.__version__ < "2.0":``, and the releases that run a class."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.config.torch_versions import ALL_RELEASES, Releases
from ctxlint.model.index.scopes import dotted_name, resolutions
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import ClassRecord, FileIndex
    from ctxlint.model.index.scopes import Scope


def releases_with(record: ClassRecord, index: FileIndex) -> Releases:
    """The torch releases with which a file defines a class: those that the conditions around it allow."""
    found = ALL_RELEASES
    for test, holds in _conditions(record.node, index.statements[record.statement]):
        answer = _Reader(record.scope).answer(test)
        found = found.and_only(answer.yes if holds else answer.no)
    return found


def _conditions(node: ast.ClassDef, around: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions around a class in a statement, and whether they hold where it is defined."""
    while around is not node:
        inside: ast.AST | None = None
        for name, value in ast.iter_fields(around):
            for each in value if isinstance(value, list) else ():
                if isinstance(each, _HOLDERS) and each.lineno <= node.lineno <= (each.end_lineno or 0):
                    inside = each
                    if isinstance(around, ast.If):
                        yield around.test, name == "body"
        if inside is None:
            return
        around = inside


_HOLDERS = (ast.stmt, ast.ExceptHandler)


class _Answer(NamedTuple):
    """The releases for which a condition may hold, and those for which it may not."""

    yes: Releases = ALL_RELEASES
    no: Releases = ALL_RELEASES


class _Reader:
    """Reads a condition of one scope, and the values of the names in it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.left = _MOST_STEPS

    def answer(self, test: ast.expr) -> _Answer:
        """What a condition says about the release; nothing if it is of no known form."""
        test = self.value(test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yes, no = self.answer(test.operand)
            return _Answer(no, yes)
        if isinstance(test, ast.BoolOp):
            return self.combined(test)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return _Answer()
        left, right, operator = test.left, test.comparators[0], type(test.ops[0])
        found = self.compared(left, operator, right)
        return found or self.compared(right, _MIRRORED.get(operator, operator), left) or _Answer()

    def combined(self, test: ast.BoolOp) -> _Answer:
        """The answer of several conditions with ``and`` or ``or``."""
        first, *others = map(self.answer, test.values)
        for each in others:
            if isinstance(test.op, ast.And):
                first = _Answer(first.yes.and_only(each.yes), first.no.or_else(each.no))
            else:
                first = _Answer(first.yes.or_else(each.yes), first.no.and_only(each.no))
        return first

    def compared(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr) -> _Answer | None:
        """What a comparison says if its left side is torch's version, or the first number of that."""
        depth = self.depth(left)
        parts = self.version(right) if depth is not None else None
        if depth is None or parts is None or operator not in _COMPARISONS or (depth == 1 and len(parts) > 1):
            return None
        minor = parts[1] if len(parts) > 1 else 0
        this, following = (parts[0], minor), (parts[0] + 1, 0) if depth == 1 else (parts[0], minor + 1)
        if operator in (ast.Eq, ast.NotEq):
            equal = Releases(this, following)
            return _Answer(yes=equal) if operator is ast.Eq else _Answer(no=equal)
        if operator in (ast.Lt, ast.GtE):
            older, newer = Releases(limit=following if any(parts[2:]) else this), Releases(oldest=this)
        else:
            older, newer = Releases(limit=following), Releases(oldest=following if depth == 1 else this)
        return _Answer(older, newer) if operator in (ast.Lt, ast.LtE) else _Answer(newer, older)

    def depth(self, node: ast.expr) -> int | None:
        """How many parts of torch's version a value has: 3 for all, 1 for the first number; None for another value."""
        node = self.value(node)
        if self.left < 0:
            return None
        if self.is_text(node):
            return 3
        inner = _inside(node)
        whole = self.depth(inner) if inner is not None else None
        if inner is None or whole != 3:
            return whole
        if isinstance(node, ast.Attribute):
            return {"major": 1, "release": 3, "base_version": 3}.get(node.attr)
        if not isinstance(node, ast.Subscript):
            return 3
        if isinstance(node.slice, ast.Slice):
            return None if self.is_text(self.value(inner)) else 3
        return 1 if isinstance(node.slice, ast.Constant) and node.slice.value == 0 else None

    def is_text(self, node: ast.expr) -> bool:
        """Whether an expression is ``torch.__version__``."""
        path = dotted_name(node)
        found = resolutions(path, self.scope) if path is not None else []
        return len(found) == 1 and found[0] in _TORCH

    def version(self, node: ast.expr) -> tuple[int, ...] | None:
        """The release that a literal denotes: ``"2.0"``, ``(2, 0)``, ``parse("2.0")``, 2."""
        node = self.value(node)
        if isinstance(node, ast.Call):
            node = _inside(node) or node
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        found = [each.value if isinstance(each, ast.Constant) else None for each in parts]
        if len(found) == 1 and isinstance(found[0], str):
            number = _NUMBERS.match(found[0])
            return tuple(map(int, number[0].split("."))) if number is not None else None
        numbers = tuple(each for each in found if type(each) is int)
        return numbers if len(numbers) == len(found) > 0 else None

    def value(self, node: ast.expr) -> ast.expr:
        """What the only assignment of a name gives it; otherwise the expression itself."""
        self.left -= 1
        while isinstance(node, ast.Name) and self.left > 0:
            owner = self.scope.owner(node.id)
            found = owner.names[node.id] if owner is not None else []
            if len(found) != 1 or found[0].kind != "assign" or found[0].value is None:
                break
            node = found[0].value
            self.left -= 1
        return node


def _inside(node: ast.expr) -> ast.expr | None:
    """The value that an expression takes parts of, or converts: ``x`` of ``x.split(".")[:2]`` and ``parse(x)``."""
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return node.value
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return node.generators[0].iter if _converts(node.elt) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        return node.func.value
    return node.args[-1] if isinstance(node, ast.Call) and node.args and _converts(node) else None


def _converts(node: ast.expr) -> bool:
    """Whether an expression is a call that converts a version: ``int(x)``, ``version.parse(x)``."""
    name = (dotted_name(node.func) or "").rpartition(".")[2].lower() if isinstance(node, ast.Call) else ""
    return name in _CONVERTERS or "version" in name


_MOST_STEPS = 50
_TORCH = ("torch.__version__", "torch.version.__version__")
_CONVERTERS = frozenset({"parse", "str", "int", "tuple", "list", "map"})
_NUMBERS = pattern(r"\d{1,4}(?:\.\d{1,4}){0,2}")
_COMPARISONS = frozenset({ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq})
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
