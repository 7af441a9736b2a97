"""Importing lsprotocol in less time.

It defines 550 classes with attrs, which compiles the methods of each at every start. A session needs about a hundred of
them: the fields of a class are made, and its methods compiled, when it is used first. Nor does cattrs compile how to
read and write what is in the first messages only.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cattrs import Converter

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


def make_converter() -> Converter:
    """The converter of pygls; it reads and writes capabilities and options, which are many, without compiling it."""
    from pygls.protocol import default_converter

    made: Converter = default_converter()  # type: ignore[no-untyped-call]
    made.register_unstructure_hook_factory(_is_met_once, partial(_writer, made))
    made.register_structure_hook_factory(_is_met_once, partial(_reader, made))
    return made


def _is_met_once(kind: Any) -> bool:
    name, module = getattr(kind, "__name__", ""), getattr(kind, "__module__", "")
    return module == "lsprotocol.types" and name.endswith(("Capabilities", "Options"))


def _writer(converter: Converter, kind: Any) -> Callable[[Any], dict[str, Any]]:
    from lsprotocol.types import is_special_property

    def write(value: Any) -> dict[str, Any]:
        found = {}
        for each in kind.__attrs_attrs__:
            part = getattr(value, each.name)
            if part != each.default or is_special_property(kind, each.name):
                found[_in_camel_case(each.name)] = converter.unstructure(part)
        return found

    return write


def _reader(converter: Converter, kind: Any) -> Callable[[Any, Any], Any]:
    def read(value: Any, _: object) -> Any:
        keys = [(_in_camel_case(each.name), each) for each in kind.__attrs_attrs__]
        return kind(**{each.name: converter.structure(value[key], each.type) for key, each in keys if key in value})

    return read


def _in_camel_case(name: str) -> str:
    first, *others = name.removesuffix("_").split("_")
    return first + "".join(map(str.title, others))


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
