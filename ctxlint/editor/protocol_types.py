"""Importing lsprotocol in less time.

It defines 550 classes with attrs, which compiles the methods of each at every start. A session needs about a hundred of
them: the fields of a class are made, and its methods compiled, when it is used first.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import RLock
from typing import Any

_LOCK = RLock()


def import_protocol_types() -> None:
    """Import ``lsprotocol.types``; its instances are compared by identity from then on."""
    attrs: Any = import_module("attrs")
    define, field = attrs.define, attrs.field
    attrs.define = partial(_deferred, partial(define, init=True, slots=False, eq=False, repr=False))
    attrs.field = partial(partial, field)
    try:
        from lsprotocol import types
    finally:
        attrs.define, attrs.field = define, field
    _Fields.all_types = types.ALL_TYPES_MAP
    with suppress(ImportError):  # a private module: without it, all classes are used
        hooks: Any = import_module("lsprotocol._hooks")
        hooks._resolved_forward_references = True  # noqa: SLF001


_READ = {
    "general": ("positionEncodings",),
    "textDocument": ("codeAction", "diagnostic", "hover", "inlayHint", "publishDiagnostics", "synchronization"),
    "workspace": (
        "applyEdit",
        "configuration",
        "diagnostics",
        "didChangeConfiguration",
        "didChangeWatchedFiles",
        "inlayHint",
        "workspaceEdit",
        "workspaceFolders",
    ),
    "notebookDocument": ("synchronization",),
}
"""The capabilities of a client that the server reads."""


def drop_unread(parameters: object) -> None:
    """Drop the capabilities that nothing reads from the parameters of ``initialize``.

    An editor declares a hundred kinds, and the class of each would be completed.
    """
    declared = parameters.get("capabilities") if isinstance(parameters, dict) else None
    if isinstance(declared, dict):
        for group, members in tuple(declared.items()):
            if isinstance(members, dict):
                declared[group] = {name: members[name] for name in _READ.get(group, ()) if name in members}


def _deferred(complete: partial[Any], cls: type) -> type:
    """A class that is completed when it is instantiated, or when cattrs asks for its fields."""
    fields = _Fields(complete)

    def create(self: object, *values: object, **named: object) -> None:
        fields.__get__(None, cls)
        cls.__init__(self, *values, **named)  # type: ignore[misc]

    cls.__init__, cls.__attrs_attrs__ = create, fields  # type: ignore[misc,attr-defined]
    return cls


class _Fields:
    """The attribute of a deferred class in which attrs looks for its fields."""

    all_types: dict[str, Any]

    def __init__(self, complete: partial[Any]) -> None:
        self._complete = complete

    def __get__(self, _instance: object, cls: type) -> object:
        import attrs

        with _LOCK:
            if vars(cls)["__attrs_attrs__"] is self:
                for name, field in tuple(vars(cls).items()):
                    if type(field) is partial:
                        setattr(cls, name, field())
                self._complete(cls)
                attrs.resolve_types(cls, dict(self.all_types), {})
        return attrs.fields(cls)
