"""Results as bytes and back. What comes from disk is not trusted: it can make nothing but records of ctxlint."""

from __future__ import annotations

import dataclasses
import io
import pickle
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from ctxlint.result import FileResult
from ctxlint.settings import Settings


class Refused(Exception):
    """The bytes are not what ctxlint wrote."""


def pack(result: FileResult) -> bytes:
    """A result without its text and its settings, which are known to whoever asks for it."""
    kept = result._replace(source=None, settings=Settings(), consulted=None, read=(), alone=None)
    return pickle.dumps(kept, protocol=4)


def unpack(data: bytes) -> FileResult:
    """The result that was packed. Raises Refused."""
    found = _load(data, _Records)
    if not isinstance(found, FileResult):
        raise Refused
    return found


def pack_table(table: dict[str, Any]) -> bytes:
    """A table of texts, numbers, bytes, tuples, lists and dicts."""
    return pickle.dumps(table, protocol=4)


def unpack_table(data: bytes) -> dict[str, Any]:
    """The table that was packed. Raises Refused."""
    found = _load(data, _Nothing)
    if not isinstance(found, dict):
        raise Refused
    return found


def _load(data: bytes, unpickler: type[pickle.Unpickler]) -> object:
    try:
        return unpickler(io.BytesIO(data)).load()
    except Exception as error:
        raise Refused from error


class _Nothing(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise Refused(f"{module}.{name}")


class _Records(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _record(module, name)


@cache
def _record(module: str, name: str) -> type:
    if module.startswith("ctxlint.") and name.isidentifier():
        found = getattr(import_module(module), name, None)
        if isinstance(found, type) and found.__module__ == module and _is_record(found):
            return found
    raise Refused(f"{module}.{name}")


def _is_record(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or issubclass(kind, Enum) or (issubclass(kind, tuple) and kind is not tuple)
