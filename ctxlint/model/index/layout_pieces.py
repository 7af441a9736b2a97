"""The layout of one simple statement, or of the head of a compound one, parsed separately.

LibCST takes ten times as long for a class as for its longest statement, and a message or a fix usually needs only one.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import FIELDS_OF_CODE
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import entity
from ctxlint.source.positions import Places
from ctxlint.source.slices import kept_statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.source import Source, Span

_BODIES = frozenset({"body", "orelse", "handlers", "finalbody", "cases"})
_ABOVE = "if 1:\n"
_ABOVE_ELIF = "if 1: pass\n"


@entity
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
        kind = _KINDS[type(node)]
        owner = node if kind.is_statement else inside
        owners[id(node)] = None if kind.is_compound else owner
        for name in FIELDS_OF_CODE[type(node)]:
            value = getattr(node, name)
            if value is not None:
                within = owner if kind.is_simple or name not in _BODIES else None
                pending += [(child, within) for child in nodes_in(value)]
    return owners


class _Kind(NamedTuple):
    """A type of node: ``is_simple`` for expressions and simple statements."""

    is_statement: bool
    is_compound: bool
    is_simple: bool


class _Kinds(dict[type[cst.CSTNode], _Kind]):
    """By type, because ``isinstance`` is slow with LibCST's abstract classes."""

    def __missing__(self, kind: type[cst.CSTNode]) -> _Kind:
        bases = kind.__mro__  # issubclass() asks every subclass of an abstract class
        small, compound = cst.BaseSmallStatement in bases, cst.BaseCompoundStatement in bases
        self[kind] = found = _Kind(small or compound, compound, small or cst.BaseExpression in bases)
        return found


_KINDS = _Kinds()


def nodes_in(value: object) -> tuple[cst.CSTNode, ...]:
    """The nodes in a field."""
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(value)  # type: ignore[arg-type]
    return (value,) if isinstance(value, cst.CSTNode) else ()


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
        parsed = kept_statement(_parsed, prefix + whole)
    except Exception:  # noqa: BLE001  (LibCST has many ways to refuse; the caller then parses the whole)
        return None
    read = _statement_in(parsed.module, wrapped=bool(before), is_elif=is_elif)
    if read is None or type(read) is not type(owner):
        return None
    pairs = tuple(_pairs(owner, read, is_owner=True))
    if any(type(one) is not type(other) for one, other in pairs):
        return None
    return LayoutPiece(parsed.places, line - 1 - prefix.count("\n"), pairs)


class _Parsed(NamedTuple):
    """A piece that LibCST has parsed, and the positions in it."""

    module: cst.Module
    places: Places


def _parsed(text: str) -> _Parsed:
    module = cst.parse_module(text)
    return _Parsed(module, Places(module, text))


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
