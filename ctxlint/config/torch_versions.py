"""The releases of torch that code has to run on: a range, and the two questions that rules ask of it.

What torch does hangs on its release. A rule reports what is true of any release in the range; a fix is safe when it is
right for all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.version import Version

Release = tuple[int, int]
"""A feature release, such as ``(2, 4)``: what torch does changes with these, and not within them."""

DEFAULT_OLDEST: Release = (2, 4)
"""Where nothing says which torch the code is for."""

NO_LIMIT: Release = (10_000, 0)
"""Newer than any release."""


LONGEST = 1000
"""The length of the longest requirement that is read."""
_MOST_CLAUSES = 50

_FARTHEST: Release = (3, 99)
"""Who asks for something newer than this has mistyped it."""


@dataclass(frozen=True)
class TorchVersions:
    """The releases that meet any of ``specifiers``, each as PEP 440 writes it; none stands for the default."""

    specifiers: tuple[str, ...] = ()

    def reach(self, major: int, minor: int) -> bool:
        """Whether any of the releases is ``major.minor`` or newer."""
        return _bounds(self.specifiers)[1] >= (major, minor)

    def fall_below(self, major: int, minor: int) -> bool:
        """Whether any of the releases is older than ``major.minor``."""
        return _bounds(self.specifiers)[0] < (major, minor)

    def __str__(self) -> str:
        """The range as a person writes it."""
        return " or ".join(self.specifiers) or ">={}.{}".format(*DEFAULT_OLDEST)


def read_target(text: str) -> TorchVersions:
    """The versions that ``target-torch`` means: a range, or the oldest version that counts.

    Raises ValueError where it is neither, or where no version is in the range, nor will be soon.
    """
    if _is_too_long(text):
        raise ValueError(f"expected at most {_MOST_CLAUSES} comparisons in {LONGEST} characters")
    specifier = normal(text)
    bounds = _bounds_of(specifier)
    if bounds is None and not _is_range(specifier):
        raise ValueError(f'expected a version such as "2.4" or a range such as ">=2.1,<2.7", got "{text}"')
    if bounds is None or bounds[0] > _FARTHEST:
        raise ValueError(f'expected a torch version such as "2.4", got "{text}", which matches no version')
    return TorchVersions((specifier,))


def _is_range(specifier: str) -> bool:
    """Whether it says something about versions, met by some or not."""
    from packaging.specifiers import SpecifierSet

    try:
        return len(SpecifierSet(specifier)) > 0
    except ValueError:
        return False


def _is_too_long(specifier: str) -> bool:
    """Whether it would take long to find out what a range means: each comparison is made with each version."""
    return len(specifier) > LONGEST or specifier.count(",") >= _MOST_CLAUSES


def normal(text: str) -> str:
    """``>=2.4`` for the bare ``2.4``; anything else as it is."""
    text = text.strip()
    return f">={text}" if re.fullmatch(r"\d+(?:\.\d+)*", text) else text


_AT_LEAST = re.compile(r">=\s*(\d+)(?:\.(\d+))?(?:\.\d+)*")
"""What is written most; it needs no package to be understood."""


@lru_cache(maxsize=64)
def _bounds(specifiers: tuple[str, ...]) -> tuple[Release, Release]:
    """The oldest and the newest release that meet any of ``specifiers``; those that make no sense say nothing."""
    found = [bounds for bounds in map(_bounds_of, specifiers) if bounds is not None]
    if not found:
        return DEFAULT_OLDEST, NO_LIMIT
    return min(oldest for oldest, _ in found), max(newest for _, newest in found)


def _bounds_of(specifier: str) -> tuple[Release, Release] | None:
    """The oldest and the newest release that meet one specifier; None where it is no specifier, or nothing does.

    One that has no lower bound says nothing about the oldest release: the default takes its place, if that is possible.
    """
    if _is_too_long(specifier):
        return None
    at_least = _AT_LEAST.fullmatch(specifier)
    if at_least:
        return (int(at_least[1]), int(at_least[2] or 0)), NO_LIMIT
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    try:
        clauses = SpecifierSet(specifier)
        mentioned = [Version(clause.version.removesuffix(".*")) for clause in clauses]
    except ValueError:
        return None
    if not mentioned:
        return None
    candidates = (*_known(), *(near for version in mentioned for near in _around(version)))
    met = {(each.major, each.minor) for each in candidates if clauses.contains(each, prereleases=True)}
    if all(clause.operator in ("<", "<=", "!=") for clause in clauses):
        met = {release for release in met if release >= DEFAULT_OLDEST} or met
    return (min(met), max(met)) if met else None


def _known() -> Iterator[Version]:
    """The versions of torch that there are, and some that there may be."""
    from packaging.version import Version

    minors = ((0, range(5)), (1, range(14)), (2, range(41)), (NO_LIMIT[0], range(1)))
    yield from (Version(f"{major}.{minor}.{micro}") for major, those in minors for minor in those for micro in range(3))


def _around(version: Version) -> Iterator[Version]:
    """A version that a specifier names, and those next to it: what they are decides where the range ends."""
    from packaging.version import Version

    major, minor, micro = version.major, version.minor, version.micro
    yield version
    yield from map(
        Version,
        (f"{major}.{minor}.{micro + 1}", f"{major}.{minor}.0", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"),
    )
