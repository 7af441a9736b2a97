"""Named tuples that are completed when they are first used: there are many, and a short run uses few of them.

``typing.NamedTuple`` compiles a method for each class and the type of each field, which takes a tenth of a millisecond.
Here the method is compiled for the first instance, and the types remain strings. Type checkers see no difference.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NamedTuple
else:
    NamedTuple = None

__all__ = ["NamedTuple"]

_NAMES = [f"field{at}" for at in range(40)]  # more than any of them has
_GETTERS = [*map(vars(namedtuple("_Template", _NAMES)).get, _NAMES)]  # noqa: PYI024  (these are written in C)


class _Meta(type):
    """Makes the class that a ``class`` statement with this base declares."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        """``body`` has the annotations of the fields, and the values of those that have a default."""
        if NamedTuple not in bases:  # it is that class itself, or derives from a named tuple
            return super().__new__(cls, name, bases, body)
        fields = tuple(body.get("__annotations__", ()))
        defaults = {each: body[each] for each in fields if each in body}
        own = dict(zip(fields, _GETTERS[: len(fields)], strict=True))
        own |= {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields, "__slots__": ()}

        def __new__(kind: type, /, *values: Any, **named: Any) -> Any:  # noqa: N807
            made.__new__ = staticmethod(_compiled(fields, defaults))
            return made.__new__(kind, *values, **named)

        made: Any = super().__new__(cls, name, bases, {"__new__": __new__, **body, **own})
        return made


class _NamedTuple(tuple[Any, ...], metaclass=_Meta):
    """The methods of all named tuples."""

    __slots__ = ()
    _fields: tuple[str, ...]

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
        return made

    def _replace(self, /, **named: Any) -> Any:
        made = self._make(map(named.pop, self._fields, self))
        if named:
            raise ValueError(f"{type(self).__name__} has no field {', '.join(named)}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


def _compiled(fields: tuple[str, ...], defaults: dict[str, Any]) -> Callable[..., Any]:
    """The ``__new__`` of a named tuple with these fields."""
    known: dict[str, Any] = {f"_default_{name}": value for name, value in defaults.items()}
    parameters = ", ".join(f"{name}=_default_{name}" if name in defaults else name for name in fields)
    values = "".join(f"{name}, " for name in fields)
    made: Callable[..., Any] = eval(
        f"lambda _kind, {parameters}: _new(_kind, ({values}))", {"_new": tuple.__new__, **known}
    )
    made.__name__ = "__new__"
    return made


if not TYPE_CHECKING:
    NamedTuple = _NamedTuple
