"""Room for the calls of a deep recursion.

Since 3.11, Python keeps the frames of a thread in pieces of 16 KB, each of which goes back to the system as soon as the
first frame in it ends. Where a loop calls functions across the edge of a piece, each call asks the system for one. A
frame that fits into no piece gets a larger one, which has room for what it calls.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import ParamSpec

    Given = ParamSpec("Given")

Result = TypeVar("Result")

_VALUES = (1 << 17) + 64
"""The size of the frame in values of eight bytes: just above a power of two, so that half of the piece is left."""


def with_room(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function, and what it calls, in a piece of a megabyte, of which only what is used takes memory."""

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        return function(*args, **kwargs)

    made: Any = called
    made.__code__ = made.__code__.replace(co_stacksize=_VALUES)
    return called
