"""LibCST, imported in half the time.

Its nodes are some 180 frozen dataclasses. Compiling their methods takes half of the import, and a run needs few of
them: here ``__init__`` is compiled for the first instance of a type, and all types share the methods that reject
assignments. Nor are they abstract classes, which take four times as long to say that a node is none of theirs. The
providers of metadata are imported for callers that read ``libcst.metadata``. Where LibCST was imported before, nothing
changes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from types import ModuleType
from typing import Any

from ctxlint.records import compiled_init


def import_libcst() -> None:
    """Import LibCST, if that was not done."""
    if "libcst" in sys.modules:
        return
    import abc
    import dataclasses

    original: Any = dataclasses.dataclass
    abstract: Any = abc.ABC
    quick = _Quick(original)
    dataclasses.dataclass, abc.ABC = quick, _Concrete(abstract)  # type: ignore[assignment, misc]
    sys.modules[_METADATA] = _bare_package(_METADATA)
    try:
        import libcst
    finally:
        dataclasses.dataclass, abc.ABC = original, abstract  # type: ignore[misc]
        del sys.modules[_METADATA]
    vars(libcst)["__getattr__"] = _metadata
    for each in quick.made:
        each.frozen = True  # for those who derive from them


_METADATA = "libcst.metadata"


def _bare_package(name: str) -> ModuleType:
    """A package without its own code: what it contains can be imported."""
    from importlib.util import find_spec

    parent, _, last = name.rpartition(".")
    spec, package = find_spec(parent), ModuleType(name)
    places = spec.submodule_search_locations if spec is not None else None
    package.__path__ = [os.path.join(each, last) for each in places or ()]
    return package


def _metadata(name: str) -> ModuleType:
    """The attribute ``metadata`` of LibCST, for other code in this process."""
    if name != "metadata":
        raise AttributeError(f"module 'libcst' has no attribute {name!r}")
    from importlib import import_module

    return import_module(_METADATA)


_NO_TEXT = " "


class _Concrete:
    """The base class ``ABC`` during the import: no base for LibCST's nodes, and the original one for other classes."""

    def __init__(self, original: type) -> None:
        self._original = original

    def __mro_entries__(self, _bases: tuple[type, ...]) -> tuple[type, ...]:
        defined_in: str = sys._getframe(1).f_globals["__name__"]  # noqa: SLF001
        return () if defined_in.startswith("libcst._nodes.") else (self._original,)


class _Quick:
    """The decorator ``dataclass`` during the import; other threads may use it meanwhile for classes of their own."""

    def __init__(self, original: Any) -> None:
        self._original = original
        self.made: list[Any] = []

    def __call__(self, kind: Any = None, /, **options: Any) -> Any:
        if kind is None:
            return lambda each: self(each, **options)
        if options != {"frozen": True} or not kind.__module__.startswith("libcst._nodes."):
            return self._original(kind, **options)
        kind.__doc__ = kind.__doc__ or _NO_TEXT  # otherwise it is made from the signature, which takes long
        made = self._original(kind, init=False, repr=False, eq=False)
        self.made.append(made.__dataclass_params__)
        made.__init__ = _init_on_demand(made)
        made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
        return made


def _init_on_demand(kind: Any) -> Any:
    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        has_check = hasattr(kind, "__post_init__")
        compiled = compiled_init(fields(kind), "_assign(self, '{0}', {1})", calls_post_init=has_check)
        for each in type(self).__mro__:  # LibCST made another class of it, with slots
            if vars(each).get("__init__") is __init__:
                each.__init__ = compiled  # type: ignore[misc]
        compiled(self, *values, **named)

    return __init__


def _refuse_assignment(self: object, name: str, _value: object) -> None:  # noqa: ARG001
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:  # noqa: ARG001
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")
