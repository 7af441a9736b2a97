"""Serialisation of records as plain JSON, by their type hints. The reader is strict: any other shape is refused.

It can read only the requested records, composed of strings, numbers, bytes, tuples, enumerations, literals and records.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Reader = Callable[[Any], Any]


class Refused(Exception):
    """A value of another shape."""


def dump(value: object) -> bytes:
    """Records, in lists and dicts, as JSON: a record is the list of its fields."""
    return json.dumps(value, default=_plain, separators=(",", ":")).encode("ascii")


def load(data: bytes) -> object:
    """The lists, dicts and plain values that were dumped.

    Raises:
        Refused: It is not such data.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused from error


def _plain(value: Any) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Enum):
        return value.value
    kind: Any = type(value)
    return [getattr(value, name) for name in _names(kind)]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a dataclass.

    Raises:
        TypeError: It is not a dataclass.
    """
    from dataclasses import fields  # a run without Functions has none of them

    return tuple(each.name for each in fields(kind))


def reader(kind: Any) -> Reader:
    """A function that converts loaded data to a value of this type; it raises Refused for anything else."""
    return _reader(kind)


@cache
def _reader(kind: Any) -> Reader:
    if kind in (str, int, bool, type(None)):
        return _exactly(kind)
    if kind is bytes:
        return _bytes
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _one_of({each: each for each in inner})
    if origin in (Union, types.UnionType):
        [other] = [each for each in inner if each is not type(None)]
        return _optional(reader(other))
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return _every(reader(inner[0]))
        return _fields(tuple, tuple(map(reader, inner)))
    if issubclass(kind, Enum):
        return _one_of({each.value: each for each in kind})
    try:
        hints = get_type_hints(kind)
    except NameError:
        hints = get_type_hints(kind, localns=_known())
    names = getattr(kind, "_fields", None) or _names(kind)
    return _fields(lambda values: kind(*values), tuple(reader(hints[name]) for name in names))


@cache
def _known() -> dict[str, type]:
    """The types in the hints of records, which their own modules import for type checkers only."""
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.fix import Fix
    from ctxlint.model.index.apply_calls import ApplyCall, Modified
    from ctxlint.model.index.outside_facts import FileFacts, OutsideFacts
    from ctxlint.source.source import Position, Span

    known = (ApplyCall, Diagnostic, FileFacts, Fix, Modified, OutsideFacts, Position, Span)
    return {each.__name__: each for each in known}


def _exactly(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise Refused
        return value

    return read


def _bytes(value: Any) -> bytes:
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError) as error:
        raise Refused from error


def _optional(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _every(read: Reader) -> Reader:
    def read_all(value: Any) -> Any:
        if type(value) is not list:
            raise Refused
        return tuple([read(each) for each in value])

    return read_all


def _fields(make: Callable[[Any], Any], readers: tuple[Reader, ...]) -> Reader:
    count = len(readers)

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != count:
            raise Refused
        return make([each(part) for each, part in zip(readers, value)])

    return read


def _one_of(members: dict[str, Any]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not str or value not in members:
            raise Refused
        return members[value]

    return read
