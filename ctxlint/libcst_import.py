"""Importing LibCST in half of the time.

It defines 200 classes of nodes, and ``dataclasses`` compiles six methods for each at every start. Only ``__init__`` is
used: the nodes inherit ``__eq__``, ``__hash__`` and ``__repr__``, and nothing assigns to their attributes.
"""

from __future__ import annotations

import sys
from typing import Any


def import_libcst() -> None:
    """Import ``libcst`` in a process that is only for ctxlint: its nodes are not protected against assignments."""
    if "libcst" in sys.modules:
        return
    import dataclasses

    dataclass: Any = dataclasses.dataclass

    def without_methods(cls: type | None = None, **options: Any) -> Any:
        if cls is None:
            return lambda cls: without_methods(cls, **options)
        if cls.__module__.startswith("libcst._nodes."):
            options.update(eq=False, repr=False, frozen=False, match_args=False)
        return dataclass(cls, **options)

    dataclasses.dataclass = without_methods
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass = dataclass
