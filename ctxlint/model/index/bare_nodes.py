"""LibCST nodes that are created without layout, and get it from LibCST on demand.

LibCST validates each node that it creates, and gives it whitespace, commas and parentheses: ten times the work of
``ast`` for the same text. Most Functions have no findings, so the layout and positions of their nodes are never needed.
A bare node has no value for these fields. Reading one of them makes LibCST parse the statement, and all its nodes copy
what LibCST parsed.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import MISSING, fields
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import libcst as cst

from ctxlint.model.index.layout_pieces import LayoutPiece, nodes_in, owners_of, read_piece
from ctxlint.model.syntax import FIELDS_OF_CODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxlint.model.index.ast_places import AstPlaces
    from ctxlint.source.source import Span


class UnlikeLibCST(BaseException):
    """The nodes of a statement differ from those of LibCST, or LibCST cannot parse it: the file must be read again.

    This is not a failure of the linted code or of a rule, so it must not be reported as one.
    """


class BareLayout:
    """The layout of a top-level statement, parsed on demand."""

    def __init__(self, top: cst.CSTNode, parse: Callable[[], cst.Module], places: AstPlaces | None = None) -> None:
        """``top`` is bare; ``parse`` parses its text; ``places`` has the ``ast`` origins of its nodes."""
        self._top = top
        self._parse = parse
        self._places = places
        self._pieces: dict[int, LayoutPiece | None] = {}
        self._filled: set[int] = set()
        self._number = next(_NUMBERS)
        _WAITING[self._number] = self

    @cached_property
    def module(self) -> cst.Module:
        """The statement as LibCST parses it, composed of the nodes that were bare."""
        _WAITING.pop(self._number, None)
        try:
            module = self._parse()
        except (cst.ParserSyntaxError, RecursionError) as error:
            raise UnlikeLibCST from error
        if len(module.body) != 1:
            raise UnlikeLibCST
        _complete(self._top, module.body[0])
        _set(module, "body", (self._top,))
        return module

    def span(self, node: cst.CSTNode) -> Span | None:
        """The span of a node, with lines counted from the first one; None if only the whole statement determines it."""
        found = self._places.span(node) if self._places is not None else None
        if found is not None:
            return found
        if id(node) in self.owners:
            piece = self._piece_of(node)
            return piece.span(node) if piece is not None else None
        spans = (each.span(node) for each in self._pieces.values() if each is not None)
        return next((each for each in spans if each is not None), None)

    def read_piece(self, node: cst.CSTNode) -> bool:
        """Parse the layout of the piece that contains a node; False if there is none, or it was parsed before."""
        owner = self.owners[id(node)]
        if owner is None or id(owner) in self._filled:
            return False
        self._filled.add(id(owner))
        piece = self._piece_of(node)
        for bare, read in piece.pairs if piece is not None else ():
            code = FIELDS_OF_CODE[type(read)]
            for name in type(read).__slots__:
                value = getattr(read, name)
                if name not in code or not nodes_in(value):
                    _set(bare, name, value)
        return piece is not None

    def release(self) -> bool:
        """Make its nodes bare again, for a later version of the statement; False if the whole layout was parsed."""
        if "module" in vars(self):
            return False
        _WAITING.pop(self._number, None)
        for owner in self._filled:
            piece = self._pieces[owner]
            for bare, _read in piece.pairs if piece is not None else ():
                if not isinstance(bare, _OPERATORS):
                    for name in frozenset(type(bare).__slots__).difference(FIELDS_OF_CODE[type(bare)], _WORDS):
                        with suppress(AttributeError):
                            getattr(type(bare), name).__delete__(bare)
        self._filled.clear()
        return True

    def _piece_of(self, node: cst.CSTNode) -> LayoutPiece | None:
        owner = self.owners[id(node)]
        if owner is None or self._places is None:
            return None
        if id(owner) not in self._pieces:
            made_from = self._places.nodes.get(id(owner))
            read = read_piece(owner, made_from, self._places.source, self._places.first)
            self._pieces[id(owner)] = read
        return self._pieces[id(owner)]

    @cached_property
    def owners(self) -> dict[int, cst.CSTNode | None]:
        """The statement whose piece contains each node, by the identity of the node."""
        return owners_of(self._top)


_OPERATORS = (cst.BaseBinaryOp, cst.BaseAugOp, cst.BaseUnaryOp, cst.BaseBooleanOp, cst.BaseCompOp)
"""All statements share one node for each operator."""

_NUMBERS = count()
_WAITING: WeakValueDictionary[int, BareLayout] = WeakValueDictionary()
"""The layouts that have not been requested yet, in order."""


@contextmanager
def layout_on_demand() -> Iterator[None]:
    """During this context, statements may be read without their layout."""
    token = _ON_DEMAND.set(True)
    try:
        yield
    finally:
        _ON_DEMAND.reset(token)


def may_be_bare() -> bool:
    """Whether statements may be read without their layout now."""
    return _ON_DEMAND.get()


_ON_DEMAND: ContextVar[bool] = ContextVar("_ON_DEMAND", default=False)


def _complete(bare: cst.CSTNode, read: cst.CSTNode) -> None:
    """Copy to a bare node, and its descendants, the fields of the node that LibCST parsed.

    Raises:
        UnlikeLibCST: The trees differ.
    """
    kind = type(read)
    if type(bare) is not kind:
        raise UnlikeLibCST
    code = FIELDS_OF_CODE[kind]
    for name in kind.__slots__:
        value = getattr(read, name)
        if name in code:
            here, there = nodes_in(getattr(bare, name)), nodes_in(value)
            if len(here) != len(there):
                raise UnlikeLibCST
            for one, other in zip(here, there):
                _complete(one, other)
            if there:
                continue
        _set(bare, name, value)


def _set(node: cst.CSTNode, name: str, value: object) -> None:
    getattr(type(node), name).__set__(node, value)


def _missing(node: cst.CSTNode, name: str, read: Callable[[cst.CSTNode], object]) -> object:
    """A missing field of a node: what LibCST parsed there; its default if it parsed nothing."""
    for layout in reversed(tuple(_WAITING.values())):
        if id(node) in layout.owners:
            if layout.read_piece(node):
                with suppress(AttributeError):
                    return read(node)
            _ = layout.module
            return read(node)
    field = next(each for each in fields(node) if each.name == name)
    if field.default_factory is MISSING and field.default is MISSING:
        raise AttributeError(name)
    value = field.default if field.default_factory is MISSING else field.default_factory()
    _set(node, name, value)
    return value


def _look_for(kind: type[cst.CSTNode], name: str) -> None:
    """Let a field of a type look for its value where a node has none.

    A ``__getattr__`` of all nodes would do, but makes each access to any of their attributes ten times as slow.
    """
    slot: Any = getattr(kind, name)
    read = slot.__get__

    def get(node: cst.CSTNode) -> object:
        try:
            return read(node)
        except AttributeError:
            return _missing(node, name, read)

    setattr(kind, name, property(get, slot.__set__, slot.__delete__))


def _maker(kind: type[cst.CSTNode]) -> Callable[..., Any]:
    """The factory of bare nodes from some values: code, operator and stars. None represents a missing one."""
    code = (*FIELDS_OF_CODE[kind], *_WORDS)
    names = [name for name in kind.__slots__ if name in code]
    setters = {f"set_{name}": getattr(kind, name).__set__ for name in names}
    for name in kind.__slots__:
        if name not in code:
            _look_for(kind, name)
    signature = ", ".join(f"{name}=None" for name in names)
    body = "".join(f" set_{name}(node, {name})\n" for name in names)
    made: dict[str, Any] = {"kind": kind, "new": object.__new__, **setters}
    exec(f"def make({signature}):\n node = new(kind)\n{body} return node\n", made)
    make: Callable[..., Any] = made["make"]
    return make


_WORDS = ("operator", "asynchronous", "star", "value", "start", "end")
"""The fields of code that do not hold nodes of code."""


class _Makers(SimpleNamespace):
    """The factories of bare nodes, by the name of their type; they take the fields in LibCST's order."""

    def __getattr__(self, name: str) -> Any:
        make = _maker(getattr(cst, name))
        setattr(self, name, make)
        return make


if TYPE_CHECKING:
    bare = cst
else:
    bare = _Makers()
