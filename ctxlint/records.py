"""Frozen dataclasses that are completed when they are first used: there are many, and a short run uses few of them.

``dataclass(frozen=True)`` compiles six methods for each class. Here only ``__init__`` is compiled, for the first
instance, and the others are shared. Immutability is enforced by the type checker only.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field, field

    from typing_extensions import dataclass_transform
else:
    field = None

    def dataclass_transform(**_: Any) -> Any:
        """The signature of ``record`` for type checkers."""
        return lambda function: function


Record = TypeVar("Record")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[Record]) -> type[Record]:
    """Like ``dataclass(frozen=True)``."""
    made: Any = entity(kind)
    made._compared = _Later("_compared", kind)  # noqa: SLF001
    for name, method in (("__eq__", _equal), ("__hash__", _hash)):
        if name not in vars(kind):
            setattr(made, name, method)
    return kind


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def entity(kind: type[Record]) -> type[Record]:
    """Like ``dataclass(frozen=True, eq=False)``."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        _complete(kind)
        made.__init__(self, *values, **named)

    made: Any = kind
    made.__init__ = __init__
    for name in _COMPLETED:
        setattr(made, name, _Later(name, kind))
    if "__repr__" not in vars(kind):
        made.__repr__ = _repr
    return kind


def changed(old: Record, **values: Any) -> Record:
    """Like ``dataclasses.replace`` in a fraction of the time, for a record without ``__post_init__``."""
    kind: Any = type(old)
    own, made = vars(old), object.__new__(kind)
    vars(made).update({name: own[name] for name in kind.__dataclass_fields__}, **values)
    return made  # type: ignore[no-any-return]


_COMPLETED = ("__match_args__", "__dataclass_params__", "__dataclass_fields__")


class _Later:
    """An attribute of a class that was not completed here, although it may have instances from another process."""

    def __init__(self, name: str, kind: type) -> None:
        self._name = name
        self._kind = kind

    def __get__(self, instance: object, owner: type) -> Any:
        _complete(self._kind)
        return getattr(self._kind, self._name)


def _complete(kind: Any) -> None:
    """Copy what ``dataclass`` makes of the fields. Another thread may do so at the same time."""
    from dataclasses import dataclass, fields

    own = vars(kind)
    names = (*own.get("__annotations__", ()), "__annotations__", "__module__", "__doc__", "__post_init__")
    body = {name: own[name] for name in names if name in own}
    made: Any = dataclass(init=False, eq=False, repr=False)(type(kind.__name__, kind.__bases__, body))
    made.__init__ = compiled_init(fields(made), "self.{0} = {1}", calls_post_init=hasattr(kind, "__post_init__"))
    if "_compared" in own:
        compared = [each.name for each in fields(made) if each.compare]
        kind._compared = attrgetter(*compared) if compared else type  # noqa: SLF001
    for name in (*_COMPLETED, "__init__"):
        setattr(kind, name, vars(made)[name])


def compiled_init(fields: Sequence[Field[Any]], assign: str, *, calls_post_init: bool) -> Callable[..., None]:
    """The ``__init__`` that ``dataclass`` would make of these fields, in a fourth of the time.

    ``assign`` is the format of a statement that assigns {1} to the attribute {0} of ``self``.
    """
    from dataclasses import MISSING

    known: dict[str, Any] = {"_missing": MISSING, "_assign": object.__setattr__}
    positional, keywords, body = ["self"], ["*"], []
    for each in fields:
        name, has_factory = each.name, each.default_factory is not MISSING
        if has_factory:
            known[f"_make_{name}"] = each.default_factory
        elif each.default is not MISSING:
            known[f"_default_{name}"] = each.default
        if each.init:
            default = "_missing" if has_factory else f"_default_{name}"
            declared = name if default not in known else f"{name}={default}"
            (keywords if each.kw_only else positional).append(declared)
            made = f"_make_{name}() if {name} is _missing else {name}" if has_factory else name
            body.append(assign.format(name, made))
        elif has_factory:
            body.append(assign.format(name, f"_make_{name}()"))
    if calls_post_init:
        body.append("self.__post_init__()")
    parameters = positional + (keywords if len(keywords) > 1 else [])
    exec("\n ".join([f"def __init__({', '.join(parameters)}):", *(body or ["pass"])]), known)
    init: Callable[..., None] = known["__init__"]
    return init


def _equal(self: Any, other: Any) -> bool:
    return self is other or (type(self) is type(other) and self._compared(self) == self._compared(other))


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _repr(self: Any) -> str:
    from dataclasses import fields

    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
