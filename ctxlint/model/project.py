"""What other files of the project say: where an imported name is defined, and what a class descends from.

A file that is linted alone sees the same as in a run over the whole project, since names are followed through its own
imports. What cannot be followed is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Union

from ctxlint.files.modules import locate
from ctxlint.model.scopes import LOCAL, resolutions
from ctxlint.model.tables import HARMLESS_BASES, TORCH_FUNCTION_BASES
from ctxlint.model.unit import Unit, read_unit

if TYPE_CHECKING:
    from ctxlint.files.source import Source
    from ctxlint.model.index import ClassRecord

Load = Callable[[str], "Source | None"]
"""Gives the text of a file of the project; None where it cannot be read."""

_MAX_HOPS = 16


@dataclass(frozen=True)
class Definition:
    """A class or function of the project: the file, and its qualified name there."""

    unit: Unit
    qualname: str

    @property
    def record(self) -> ClassRecord | None:
        """The class, where it is one."""
        return self.unit.index.classes.get(self.qualname)


Meaning = Union[Definition, str, None]
"""What a name means: a definition of the project, a dotted name from outside it, or unknown."""


class Project:
    """Reads other files when a name leads there, once each."""

    def __init__(self, load: Load | None = None, extra_bases: frozenset[str] = frozenset()) -> None:
        self.load = load
        self.torch_bases = TORCH_FUNCTION_BASES | extra_bases
        self._units: dict[str, Unit | None] = {}

    def unit(self, path: str) -> Unit | None:
        """Another file, parsed and indexed."""
        if path not in self._units:
            source = self.load(path) if self.load is not None else None
            self._units[path] = read_unit(source) if source is not None else None
        return self._units[path]

    # Names

    def meaning(self, unit: Unit, name: str | None, hops: int = 0) -> Meaning:
        """What a resolved name of ``unit`` (see ``scopes.resolve``) means once imports are followed."""
        if name is None or hops > _MAX_HOPS:
            return None
        if name.startswith(LOCAL):
            return Definition(unit, name[len(LOCAL) :])
        if name in self.torch_bases or name in HARMLESS_BASES or self.load is None:
            return name
        place = locate(unit.path, name)
        if place is None:
            return name if not name.startswith(".") else None
        other = self.unit(place.path)
        if other is None or not place.rest:
            return None
        return self._inside(other, place.rest, hops + 1)

    def _inside(self, unit: Unit, dotted: str, hops: int) -> Meaning:
        module = unit.index.module
        found = [each for each in resolutions(dotted, module) if each is not None]
        for each in found:
            if not each.startswith("builtins."):
                return self.meaning(unit, each, hops)
        if dotted.partition(".")[0] not in module.names:
            for star in module.stars:
                through = self.meaning(unit, f"{star}.{dotted}" if star.strip(".") else f"{star}{dotted}", hops + 1)
                if isinstance(through, Definition) or through in self.torch_bases:
                    return through
        return None

    # Classes

    def bases(self, definition: Definition) -> list[list[Meaning]]:
        """For each base expression of a class, what it may mean (several where imports are conditional)."""
        record = definition.record
        if record is None:
            return []
        return [[self.meaning(definition.unit, base) for base in alternatives] for alternatives in record.bases]

    def is_function(self, definition: Definition, seen: tuple[Definition, ...] = ()) -> bool:
        """Whether a class certainly descends from torch's Function."""
        if definition in seen or definition.record is None:
            return False
        for alternatives in self.bases(definition):
            for base in alternatives:
                if isinstance(base, Definition):
                    if self.is_function(base, (*seen, definition)):
                        return True
                elif base in self.torch_bases:
                    return True
        return False

    def bases_known(self, definition: Definition, seen: tuple[Definition, ...] = ()) -> bool:
        """Whether every base of a class, at any height, is torch's, harmless, or a class that could be read."""
        record = definition.record
        if record is None or definition in seen or record.node.keywords:
            return False
        for alternatives in self.bases(definition):
            known = [base for base in alternatives if base is not None]
            if not known:
                return False
            for base in known:
                if isinstance(base, Definition):
                    if not self.bases_known(base, (*seen, definition)):
                        return False
                elif base not in TORCH_FUNCTION_BASES and base not in HARMLESS_BASES:
                    return False
        return True

    def ancestry(self, definition: Definition) -> list[Definition]:
        """The class and its bases in the project, nearest first, as attribute look-up goes (depth first)."""
        found: list[Definition] = []
        self._ascend(definition, found)
        return found

    def _ascend(self, definition: Definition, found: list[Definition]) -> None:
        if definition in found or definition.record is None:
            return
        found.append(definition)
        for alternatives in self.bases(definition):
            for base in alternatives:
                if isinstance(base, Definition):
                    self._ascend(base, found)
