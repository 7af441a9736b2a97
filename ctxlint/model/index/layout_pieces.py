"""The layout of one simple statement, or of the head of a compound one, parsed separately.

LibCST takes ten times as long for a class as for its longest statement, and a message or a fix usually needs only one.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import FIELDS_OF_CODE
from ctxlint.source.positions import Places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.source import Source, Span

_BODIES = frozenset({"body", "orelse", "handlers", "finalbody", "cases"})
_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
_ABOVE = "if 1:\n"
_ABOVE_ELIF = "if 1: pass\n"


@dataclass(frozen=True, eq=False)
class LayoutPiece:
    """A statement that LibCST has parsed separately. ``pairs`` are nodes of its code, each with the one to complete.

    ``above`` is the line offset between the file and the parsed text.
    """

    places: Places
    above: int
    pairs: tuple[tuple[cst.CSTNode, cst.CSTNode], ...]

    def span(self, node: cst.CSTNode) -> Span | None:
        """The span of a node of the code, or of its layout; None for those of other pieces."""
        try:
            return self.places.span(self._read.get(id(node), node)).moved(self.above)
        except KeyError:
            return None

    @cached_property
    def _read(self) -> dict[int, cst.CSTNode]:
        return {id(one): other for one, other in self.pairs}


def owners_of(top: cst.CSTNode) -> dict[int, cst.CSTNode | None]:
    """The statement whose piece contains each node, by the identity of the node; None for nodes outside of pieces."""
    owners: dict[int, cst.CSTNode | None] = {id(top): None}
    pending: list[tuple[cst.CSTNode, cst.CSTNode | None]] = [(top, top)]
    for node, inside in pending:
        owner = node if isinstance(node, _STATEMENTS) else inside
        owners[id(node)] = None if isinstance(node, cst.BaseCompoundStatement) else owner
        is_code = isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement))
        for name in FIELDS_OF_CODE[type(node)]:
            within = owner if is_code or name not in _BODIES else None
            pending += [(child, within) for child in nodes_in(getattr(node, name))]
    return owners


def nodes_in(value: object) -> tuple[cst.CSTNode, ...]:
    """The nodes in a field."""
    if isinstance(value, cst.CSTNode):
        return (value,)
    return tuple(value) if isinstance(value, (tuple, list)) else ()


def read_piece(owner: cst.CSTNode, node: ast.AST | None, text: Source, first: int) -> LayoutPiece | None:
    """The piece of a statement that was created from ``node``; ``text`` begins at line ``first`` of the file.

    None if it shares its line with another one, or LibCST parses it differently.
    """
    if not isinstance(node, ast.stmt) or "\r" in text.text:
        return None
    decorators = getattr(node, "decorator_list", None) or [node]
    line = min(node.lineno, decorators[0].lineno) - first + 1
    start = text.span_of(node, first - 1)
    before = text.line(start.start.line)[: start.start.column - 1]
    if before.strip():
        return None
    body = getattr(node, "body", None)
    if isinstance(body, list):
        within = min([body[0], *getattr(body[0], "decorator_list", ())], key=lambda each: each.lineno)
        end = text.offset(text.span_of(within, first - 1).start) - (within is not body[0])
        if within is not body[0] and text.text[end] != "@":
            return None
        whole = text.text[text.line_starts[line - 1] : end] + "pass"
    else:
        end = text.offset(start.end)
        if text.line(start.end.line)[start.end.column - 1 :].lstrip().startswith(";"):
            return None
        whole = text.text[text.line_starts[line - 1] : end]
    is_elif = isinstance(node, ast.If) and text.text.startswith("elif", text.offset(start.start))
    prefix = (_ABOVE if before else "") + (before + _ABOVE_ELIF if is_elif else "")
    try:
        module = cst.parse_module(prefix + whole)
    except Exception:  # noqa: BLE001  (LibCST has many ways to refuse; the caller then parses the whole)
        return None
    read = _statement_in(module, wrapped=bool(before), is_elif=is_elif)
    if read is None or type(read) is not type(owner):
        return None
    pairs = tuple(_pairs(owner, read, is_owner=True))
    if any(type(one) is not type(other) for one, other in pairs):
        return None
    return LayoutPiece(Places(module, prefix + whole), line - 1 - prefix.count("\n"), pairs)


def _statement_in(module: cst.Module, *, wrapped: bool, is_elif: bool) -> cst.CSTNode | None:
    """The statement of a piece, without the code added above it."""
    found: cst.CSTNode = module.body[0]
    if wrapped and isinstance(found, cst.If):
        found = found.body.body[0]
    if is_elif and isinstance(found, cst.If) and found.orelse is not None:
        found = found.orelse
    if isinstance(found, cst.SimpleStatementLine):
        return found.body[0] if len(found.body) == 1 else None
    return found


def _pairs(
    bare: cst.CSTNode, read: cst.CSTNode, *, is_owner: bool = False
) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """The nodes of a piece, each with the one that LibCST has parsed; paired with itself if they differ."""
    if type(bare) is not type(read):
        yield bare, _UNLIKE
        return
    if not is_owner or isinstance(bare, cst.BaseSmallStatement):
        yield bare, read
    for name in FIELDS_OF_CODE[type(bare)]:
        if is_owner and name in _BODIES and not isinstance(bare, cst.BaseSmallStatement):
            continue
        ours, theirs = nodes_in(getattr(bare, name)), nodes_in(getattr(read, name))
        if len(ours) != len(theirs):
            yield bare, _UNLIKE
        for one, other in zip(ours, theirs):
            yield from _pairs(one, other)


_UNLIKE = cst.Pass()
"""Represents a node that differs from the other one."""
