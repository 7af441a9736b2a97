"""The torch releases that code has to support: a range, and the two queries on it that rules need.

The behaviour of torch depends on its release. A rule reports what is true for any release in the range; a fix is safe
if it is right for all of them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.version import Version

Release = tuple[int, int]
"""A feature release, such as ``(2, 4)``: the behaviour of torch changes between these, not within them."""

DEFAULT_OLDEST: Release = (2, 4)
"""The default if nothing specifies the torch versions."""

NO_LIMIT: Release = (10_000, 0)
"""Newer than any release."""


LONGEST = 1000
"""The maximum length of a requirement."""
_MOST_CLAUSES = 50

_FARTHEST: Release = (3, 99)
"""A requirement of something newer than this is a typo."""


class Releases(NamedTuple):
    """The releases from ``oldest`` on that are older than ``limit``."""

    oldest: Release = (0, 0)
    limit: Release = (NO_LIMIT[0] + 1, 0)

    def and_only(self, others: Releases) -> Releases:
        """Those that are also among ``others``."""
        return Releases(max(self.oldest, others.oldest), min(self.limit, others.limit))

    def or_else(self, others: Releases) -> Releases:
        """These and ``others``, and those between them."""
        if not (self.exist and others.exist):
            return self if self.exist else others
        return Releases(min(self.oldest, others.oldest), max(self.limit, others.limit))

    @property
    def exist(self) -> bool:
        """Whether there are any."""
        return self.oldest < self.limit


ALL_RELEASES = Releases()


@record
class TorchVersions:
    """The releases that satisfy any of ``specifiers``, in PEP 440 syntax; without any, the default range."""

    specifiers: tuple[str, ...] = ()

    def reach(self, major: int, minor: int) -> bool:
        """Whether any of the releases is ``major.minor`` or newer."""
        return _bounds(self.specifiers)[1] >= (major, minor)

    def fall_below(self, major: int, minor: int) -> bool:
        """Whether any of the releases is older than ``major.minor``."""
        return _bounds(self.specifiers)[0] < (major, minor)

    def limited_to(self, releases: Releases) -> TorchVersions:
        """Those among ``releases``; all of ``releases`` if there is none: the code is for these, then."""
        oldest, newest = _bounds(self.specifiers)
        both = releases.and_only(Releases(oldest, (newest[0], newest[1] + 1)))
        found = both if both.exist else releases
        below = f",<{found.limit[0]}.{found.limit[1]}" if found.limit < NO_LIMIT else ""
        return TorchVersions((f">={found.oldest[0]}.{found.oldest[1]}{below}",))

    def __str__(self) -> str:
        """The range in a readable form."""
        return " or ".join(self.specifiers) or ">={}.{}".format(*DEFAULT_OLDEST)


def read_target(text: str) -> TorchVersions:
    """The versions that ``target-torch`` denotes: a range, or the oldest version.

    Raises:
        ValueError: It is neither, or contains no version that exists or is to be expected.
    """
    if is_too_long(text):
        raise ValueError(f"expected at most {_MOST_CLAUSES} comparisons in {LONGEST} characters")
    specifier = normal(text)
    bounds = _bounds_of(specifier)
    if bounds is None and not _is_range(specifier):
        raise ValueError(f'expected a version such as "2.4" or a range such as ">=2.1,<2.7", got "{text}"')
    if bounds is None or bounds[0] > _FARTHEST:
        raise ValueError(f'expected a torch version such as "2.4", got "{text}", which matches no version')
    return TorchVersions((specifier,))


def _is_range(specifier: str) -> bool:
    """Whether it restricts versions: some satisfy it and some do not."""
    from packaging.specifiers import SpecifierSet

    try:
        return len(SpecifierSet(specifier)) > 0
    except ValueError:
        return False


def is_too_long(specifier: str) -> bool:
    """Whether evaluating a range would take long: each comparison is made with each version."""
    return len(specifier) > LONGEST or specifier.count(",") >= _MOST_CLAUSES


def normal(text: str) -> str:
    """``>=2.4`` for the bare ``2.4``; anything else as it is."""
    text = text.strip()
    return f">={text}" if re.fullmatch(r"\d+(?:\.\d+)*", text) else text


_AT_LEAST = pattern(r">=\s*(\d+)(?:\.(\d+))?(?:\.\d+)*")
"""The most frequent form, which needs no package to parse."""


@lru_cache(maxsize=64)
def _bounds(specifiers: tuple[str, ...]) -> tuple[Release, Release]:
    """The oldest and the newest release that satisfy any of ``specifiers``; invalid ones are ignored."""
    found = [bounds for bounds in map(_bounds_of, specifiers) if bounds is not None]
    if not found:
        return DEFAULT_OLDEST, NO_LIMIT
    return min(oldest for oldest, _ in found), max(newest for _, newest in found)


def _bounds_of(specifier: str) -> tuple[Release, Release] | None:
    """The oldest and the newest release that satisfy one specifier; None if it is invalid or unsatisfiable.

    Without a lower bound, the default is used as the oldest release, if it satisfies the specifier.
    """
    if is_too_long(specifier):
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
    """All versions of torch, and some that may be released."""
    from packaging.version import Version

    minors = ((0, range(5)), (1, range(14)), (2, range(41)), (NO_LIMIT[0], range(1)))
    yield from (Version(f"{major}.{minor}.{micro}") for major, those in minors for minor in those for micro in range(3))


def _around(version: Version) -> Iterator[Version]:
    """A version in a specifier, and its neighbours: they determine where the range ends."""
    from packaging.version import Version

    major, minor, micro = version.major, version.minor, version.micro
    yield version
    yield from map(
        Version,
        (f"{major}.{minor}.{micro + 1}", f"{major}.{minor}.0", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"),
    )
