"""Named tuples behave like those of ``typing``, before and after they are completed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from ctxlint.named_tuples import NamedTuple


class Place(NamedTuple):
    """A line and a column."""

    line: int
    column: int = 1
    names: tuple[str, ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether nothing is before it."""
        return self == (1, 1, ())


class Marked(Place):
    """A place that derives from one."""


class Received(NamedTuple):
    """Never created here by its name."""

    value: int


class Empty(NamedTuple):
    """Without a field."""


def test_is_created_by_position_and_by_name() -> None:
    """With defaults; as a tuple."""
    assert Place(1) == Place(column=1, line=1) == (1, 1, ())
    assert Place(1).is_first
    assert Place(3, names=("a",)).names == ("a",)
    assert Place._fields == Place.__match_args__ == ("line", "column", "names")
    assert Place._field_defaults == {"column": 1, "names": ()}
    assert {Place(1): 2}[Place(1, 1)] == 2
    assert Place(1) < Place(2)
    assert Empty() == ()
    assert repr(Empty()) == "Empty()"
    assert type(Marked(2)) is Marked
    assert Marked(2).line == 2
    assert not hasattr(Place(1), "__dict__")


def test_wrong_arguments_raise() -> None:
    """As for any function, also at the first call."""
    calls: list[Any] = [Received, lambda: Received(1, 2), lambda: Received(1, other=2), lambda: Place._make([1])]  # type: ignore[call-arg]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="Place has no field other"):
        Place(1)._replace(other=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Place(1).line = 2  # type: ignore[misc]


def test_is_replaced_shown_and_taken_apart() -> None:
    """The methods of all named tuples."""
    assert Place(1)._replace(column=5, line=2) == (2, 5, ())
    assert type(Place(1)._replace(column=5)) is Place
    assert Place(1)._asdict() == {"line": 1, "column": 1, "names": ()}
    assert repr(Place(1, names=("a",))) == "Place(line=1, column=1, names=('a',))"
    match Place(4, 7):
        case Place(line, column):
            assert (line, column) == (4, 7)


def test_is_pickled() -> None:
    """Also where the class has no instance yet."""
    assert pickle.loads(pickle.dumps(Place(1, 2))) == Place(1, 2)
    received = pickle.loads(pickle.dumps(Received(1)).replace(b"K\x01", b"K\x07"))
    assert type(received) is Received
    assert received.value == 7
