"""Frozen dataclasses at a third of the cost: there are many, and creating the classes is a good part of a short run.

``dataclass(frozen=True)`` compiles six methods for each class. Here only ``__init__`` is compiled, and the others are
shared. Immutability is enforced by the type checker only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """The signature of ``record`` for type checkers."""
        return lambda function: function


Record = TypeVar("Record")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[Record]) -> type[Record]:
    """Like ``dataclass(frozen=True)``."""
    made: Any = dataclass(eq=False, repr=False)(kind)
    names = [each.name for each in fields(made) if each.compare]
    made._compared = attrgetter(*names) if names else type  # noqa: SLF001
    made.__eq__, made.__hash__ = _equal, _hash
    if "__repr__" not in vars(kind):
        made.__repr__ = _repr
    return kind


def _equal(self: Any, other: Any) -> bool:
    return self is other or (type(self) is type(other) and self._compared(self) == self._compared(other))


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
