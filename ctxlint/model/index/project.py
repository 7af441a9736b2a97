"""Name resolution across files: where an imported name is defined, and what a class descends from.

A file that is linted alone sees the same as in a run over the whole project, because names are resolved through its own
imports. What cannot be resolved is unknown.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakSet

from ctxlint.effort import spend
from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.module_unit import Unit, read_unit
from ctxlint.model.index.outside_facts import OutsideFacts, ProjectQuestion
from ctxlint.model.index.scopes import LOCAL, Scope, bindings, dotted_name, is_builtin, meanings, resolutions
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import changed, record
from ctxlint.source.modules import ModulePlace, locate
from ctxlint.torch_api.autograd import HARMLESS_BASES, TORCH_FUNCTION_BASES

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Iterator

    from ctxlint.model.index.file_index import ClassRecord
    from ctxlint.model.index.outside_facts import Deed
    from ctxlint.model.index.scopes import Bound
    from ctxlint.source.source import Source

    WorkedOut = dict[Hashable, tuple[object, "Trace"]]
    """Cached results, each with the disk look-ups that it depends on."""

    Attached = Mapping[tuple[str, str], tuple[str, str]]
    """By module (its file) and attribute: the Function (file and qualified name) whose ``apply`` it was assigned."""

Load = Callable[[str], "Source | None"]
"""Returns the text of a file of the project; None if it cannot be read."""

Result = TypeVar("Result")

_MAX_HOPS = 16

_MOST_KEPT = 700_000
"""The total length of the linted files to keep, in characters. Their trees and nodes take some 80 bytes for each."""

_FEW_NAMES: Mapping[str, frozenset[str]] = {
    "typing": frozenset(),
    "typing_extensions": frozenset(),
    "math": frozenset(["pow"]),
}
"""Modules outside the project that are star-imported, with the builtins that they replace."""

MAX_ANCESTORS = 100
"""A class with more ancestors in the project than this is not resolved."""


@record
class Definition:
    """A class or function of the project: the file, and its qualified name there."""

    unit: Unit
    qualname: str

    @property
    def name(self) -> str:
        """The last part of the qualified name; ``lambda`` for a function without one."""
        name = last_name(self.qualname)
        return "lambda" if name.startswith("<") else name

    @property
    def record(self) -> ClassRecord | None:
        """The class, if it is one."""
        return self.unit.index.classes.get(self.qualname)


Meaning = Definition | str | None
"""What a name denotes: a definition of the project, an external dotted name, or unknown."""


class LookUp(NamedTuple):
    """A module that a file imports, and the file that was found for it; None if there is none in the project."""

    importer: str
    name: str
    found: str | None


class Consulted(NamedTuple):
    """The disk look-ups of a file: the files that its imports resolve to, read or not, and the module look-ups.

    As long as these files and the results of the look-ups are the same, so are the facts of the file.
    """

    files: tuple[str, ...]
    look_ups: tuple[LookUp, ...]


class Trace:
    """A record of disk accesses: the other files that were, or would be, read, and the module look-ups.

    Results that were computed meanwhile, and stay valid for this trace, are kept with it.
    """

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.look_ups: set[LookUp] = set()
        self.asked: set[ProjectQuestion] = set()
        self.bases: dict[Definition, list[list[Meaning]]] = {}
        self.parents: dict[Definition, list[Definition]] = {}
        self.functions: dict[Definition, bool] = {}
        self.meanings: dict[tuple[Unit, str, int], Meaning] = {}
        self.denoted: dict[tuple[object, ...], tuple[Definition | None, Attached]] = {}

    def add(self, other: Trace) -> None:
        """Add the content of another trace."""
        self.files |= other.files
        self.look_ups |= other.look_ups
        self.asked |= other.asked

    def take(self, consulted: Consulted) -> None:
        """Add earlier look-ups."""
        self.files.update(consulted.files)
        self.look_ups.update(consulted.look_ups)

    def sorted(self) -> Consulted:
        """Everything in a fixed order, to be stored."""
        return Consulted(tuple(sorted(self.files)), tuple(sorted(self.look_ups, key=str)))


class Project:
    """Reads other files on demand, once each. ``trace`` records look-ups, cached ones included."""

    def __init__(
        self, load: Load | None = None, extra_bases: frozenset[str] = frozenset(), *, asks_kernels: bool = True
    ) -> None:
        self.load = load
        self.asks_kernels = asks_kernels
        """Whether some rule asks what may be wrong in kernels: their code is not analysed for nothing."""
        self.torch_bases = TORCH_FUNCTION_BASES | extra_bases
        self.trace = Trace()
        self.declared: dict[str, str] = {}
        """The files that declare operators, as far as other files have shown."""
        self.changed: set[ProjectQuestion] = set()
        """The dicts of functions that some file may change, likewise."""
        self.assigned: set[ProjectQuestion] = set()
        """The names of modules that some file may set, likewise: they matter to Functions that read an unbound name."""
        self._units: dict[str, Unit | None] = {}
        self._linted: dict[str, Unit] = {}
        """The files that were linted themselves, which imports of others, or facts from there, may lead to again."""
        self._read_to_lint: WeakSet[Unit] = WeakSet()
        self._room = _MOST_KEPT
        self._names_are_relative = False
        self._worked_out: WorkedOut = {}

    def start_trace(self) -> Trace:
        """Record look-ups in a new trace from now on."""
        self.trace = Trace()
        return self.trace

    def learn(self, outside: OutsideFacts) -> bool:
        """Use what the search of the whole project has found, and drop results without it; whether that is new."""
        declared = {name: path for name, path in outside.declared if self.declared.get(name) != path}
        assigned = {each for each in outside.changed if each.deed == "assigns"}
        changed = set(outside.changed) - assigned
        is_new = not self.assigned.issuperset(assigned)
        self.assigned |= assigned
        if not declared and self.changed.issuperset(changed):
            return is_new
        self.declared.update(declared)
        self.changed |= changed
        self.forget_results()
        return True

    def ask(self, deed: Deed, path: str, name: str, position: int = -1) -> ProjectQuestion:
        """Record that results depend on what the whole project does with a name."""
        asked = ProjectQuestion(deed, os.path.abspath(path) if path else "", name, position)
        self.trace.asked.add(asked)
        return asked

    def forget_results(self) -> None:
        """Drop what was computed, which refers to the files and they to it: then all is freed with the project."""
        self.start_trace()
        self._worked_out.clear()
        for unit in (*self._units.values(), *self._read_to_lint):
            if unit is not None:
                unit.summaries.clear()

    def unit(self, path: str) -> Unit | None:
        """Another file, parsed and indexed."""
        self.trace.files.add(path)
        if path not in self._units:
            source = self.load(path) if self.load is not None else None
            self._units[path] = self._read(self._named(source)) if source is not None else None
        return self._units[path]

    def _named(self, source: Source) -> Source:
        """Another file as those that are linted are named: then it is the same unit if it is linted, too."""
        return changed(source, path=os.path.relpath(source.path)) if self._names_are_relative else source

    def linted_unit(self, source: Source) -> Unit:
        """A file that is linted itself; the same unit if that was done before."""
        self._names_are_relative = not os.path.isabs(source.path)
        path = os.path.abspath(source.path)
        before = self._linted.get(path)
        if before is not None and before.path == source.path and _has_text_of(before, source):
            return before
        unit = self._read(source)
        self._room += len(before.source.text) if before is not None else 0
        if path not in self._units and self._room >= len(source.text):
            self._linted[path] = unit
            self._room -= len(source.text)
        self._read_to_lint.add(unit)
        return unit

    def _read(self, source: Source) -> Unit:
        """A file, parsed and indexed if the same text was not read before, for itself or through imports."""
        path = os.path.abspath(source.path)
        known = self._units.get(path) or self._linted.get(path)
        if known is None or not _has_text_of(known, source):
            return read_unit(source)
        return known if known.path == source.path else known.with_source(source)

    def once(self, target: Hashable, work_out: Callable[[], Result], among: WorkedOut | None = None) -> Result:
        """The result of ``work_out`` for ``target``, computed once; its look-ups are recorded each time.

        It is cached in the project, or ``among`` other results.
        """
        results = self._worked_out if among is None else among
        known = results.get(target)
        if known is None:
            before, self.trace = self.trace, Trace()
            try:
                known = results[target] = (work_out(), self.trace)
            finally:
                self.trace = before
        found, trace = known
        self.trace.add(trace)
        return cast("Result", found)

    def locate(self, unit: Unit, name: str) -> ModulePlace | None:
        """The file that an imported name resolves to, and the remaining name there."""
        place = locate(unit.path, name)
        self.trace.look_ups.add(LookUp(unit.path, name, place.path if place is not None else None))
        return place

    # Names

    def meaning(self, unit: Unit, name: str | None, hops: int = 0) -> Meaning:
        """What a resolved name of ``unit`` (see ``scopes.resolve``) denotes after following imports."""
        if name is None or hops > _MAX_HOPS:
            return None
        if name.startswith(LOCAL):
            return Definition(unit, name[len(LOCAL) :])
        if name in self.torch_bases or name in HARMLESS_BASES or self.load is None:
            return name
        key = (unit, name, hops)
        if key not in self.trace.meanings:
            self.trace.meanings[key] = self._imported(unit, name, hops)
        return self.trace.meanings[key]

    def meaning_elsewhere(self, unit: Unit, name: str) -> Meaning:
        """Like ``meaning``, for a name that another file of the project binds; None for any other.

        Nothing is kept of ``unit``, which may be a file that is linted and then dropped.
        """
        place = self.locate(unit, name)
        other = self.unit(place.path) if place is not None else None
        return self._inside(other, place.rest, 1) if place is not None and other is not None and place.rest else None

    def _imported(self, unit: Unit, name: str, hops: int) -> Meaning:
        place = self.locate(unit, name)
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
                name = f"{star}.{dotted}" if star.strip(".") else f"{star}{dotted}"
                place = self.locate(unit, name)
                if place is not None and place.rest != dotted:
                    continue  # a compiled module: only its package was found
                through = self.meaning(unit, name, hops + 1)
                if isinstance(through, Definition) or through in self.torch_bases:
                    return through
        return None

    def bound(self, unit: Unit, dotted: str, scope: Scope) -> tuple[Unit, str, Scope]:
        """The file, the name there, and the scope that binds a name, following only imports."""
        for _ in range(_MAX_HOPS if self.load is not None else 0):
            head, _, rest = dotted.partition(".")
            owner = scope.owner(head)
            bounds = owner.live(head) if owner is not None else ()
            if len(bounds) != 1 or bounds[0].kind != "import":
                break
            place = self.locate(unit, _bound_to(bounds[0], rest) or "")
            other = self.unit(place.path) if place is not None else None
            if place is None or other is None or place.rest.partition(".")[0] not in other.index.module.names:
                break
            unit, dotted, scope = other, place.rest, other.index.module
        return unit, dotted, scope

    def denoted(
        self, unit: Unit, dotted: str, scope: Scope, line: int, attached: Attached, hops: int = 0
    ) -> Definition | None:
        """The only definition that ``dotted`` denotes for code at ``line``; None if it is conditional or unknown.

        The ``qualname`` of the result extends to attributes of a class: ``Softmax.apply``. Aliases of it are followed,
        including those that another file has ``attached`` to a module.
        """
        if hops > _MAX_HOPS or self.load is None:
            return None
        key = (unit, dotted, scope, line, id(attached), hops)
        if key not in self.trace.denoted:
            self.trace.denoted[key] = (self._denoted(unit, dotted, scope, line, attached, hops), attached)
        return self.trace.denoted[key][0]

    def _denoted(
        self, unit: Unit, dotted: str, scope: Scope, line: int, attached: Attached, hops: int
    ) -> Definition | None:
        head, _, rest = dotted.partition(".")
        owner = scope.owner(head)
        if owner is None:
            (name,) = meanings(dotted, scope, line)
            if name is None:
                return self._through_stars(unit, dotted, attached, hops + 1)
            return self._certainly(unit, name, attached, hops + 1)
        found: set[Definition | None] = set()
        for bound in bindings(head, owner, scope, line):
            if bound.kind == "assign":
                value = dotted_name(bound.value) if bound.value is not None else None
                whole = f"{value}.{rest}" if rest else value
                there = whole is not None and self.denoted(unit, whole, owner, bound.line, attached, hops + 1)
                found.add(there or None)
            else:
                found.add(self._certainly(unit, _bound_to(bound, rest), attached, hops + 1))
        return found.pop() if len(found) == 1 else None

    def _through_stars(self, unit: Unit, dotted: str, attached: Attached, hops: int) -> Definition | None:
        """What an unbound name denotes if several modules are star-imported and one of them binds it."""
        found: set[Definition | None] = set()
        for star in unit.index.module.stars:
            name = f"{star}.{dotted}" if star.strip(".") else f"{star}{dotted}"
            place = self.locate(unit, name)
            other = self.unit(place.path) if place is not None else None
            if place is None or other is None or place.rest != dotted:
                return None  # external, or compiled: it may bind the name as well
            module = other.index.module
            if place.rest.partition(".")[0] in module.names or module.stars or (place.path, place.rest) in attached:
                found.add(self._certainly(unit, name, attached, hops + 1))
        return found.pop() if len(found) == 1 else None

    def imported(self, unit: Unit) -> Iterator[Unit]:
        """The files of the project that a file imports from, each once."""
        seen = {os.path.abspath(unit.path)}
        for bounds in unit.index.module.names.values():
            for bound in bounds:
                place = self.locate(unit, bound.target) if bound.kind == "import" and bound.target else None
                other = self.unit(place.path) if place is not None and place.path not in seen else None
                if place is not None and other is not None:
                    seen.add(place.path)
                    yield other

    def starred(self, unit: Unit, name: str) -> str | None:
        """What a name that a file does not bind resolves to: a star import binds it, or it is a builtin.

        None if that is unknown: a module outside the project may bind any name.
        """
        found = self.once(("starred", name), lambda: self._starred(unit, name, 0), unit.summaries)
        if found is not None:
            return found
        return f"builtins.{name}" if is_builtin(name) and self._binds_none(unit, name, 0) else None

    def _starred(self, unit: Unit, name: str, hops: int) -> str | None:
        """The name with the star-imported module that binds it, if all others lack it, or mean the same by it."""
        stars = unit.index.module.stars
        found = [
            f"{star}.{name}" if star.strip(".") else f"{star}{name}"
            for star in stars
            if not self._star_lacks(unit, star, name, hops)
        ]
        if not found or any(self.locate(unit, each) is None for each in found):
            return None
        meant = {self.meaning_elsewhere(unit, each) for each in found} if len(found) > 1 else {None}
        return found[0] if len(found) == 1 or (len(meant) == 1 and None not in meant) else None

    def _binds_none(self, unit: Unit, name: str, hops: int, *, of_project: bool = False) -> bool:
        return all(self._star_lacks(unit, star, name, hops, of_project) for star in unit.index.module.stars)

    def lacks(self, unit: Unit, name: str) -> bool:
        """Whether the star imports of a file certainly do not bind a name: they are those of files of the project."""
        return self.once(("lacks", name), lambda: self._binds_none(unit, name, 0, of_project=True), unit.summaries)

    def _star_lacks(self, unit: Unit, star: str, name: str, hops: int, of_project: bool = False) -> bool:
        """Whether a star-imported module certainly does not bind a name; ``of_project``: it is one of the project."""
        if star.partition(".")[0] in _FEW_NAMES and not of_project:
            return name not in _FEW_NAMES[star.partition(".")[0]]
        place = self.locate(unit, f"{star}.{name}" if star.strip(".") else f"{star}{name}") if self.load else None
        other = self.unit(place.path) if place is not None else None
        if place is None or other is None or place.rest != name or hops > _MAX_HOPS:
            return False
        if other.may_bind_more:
            return False
        return name not in other.index.module.names and self._binds_none(other, name, hops + 1, of_project=of_project)

    def certainly(self, unit: Unit, name: str) -> Definition | None:
        """The only definition that a resolved name of ``unit`` denotes; see ``denoted``."""
        if self.load is None:
            return None
        return self.once(("certainly", name), lambda: self._certainly(unit, name, {}, 0), unit.summaries)

    def _certainly(self, unit: Unit, name: str | None, attached: Attached, hops: int) -> Definition | None:
        """The only definition that a resolved name of ``unit`` denotes."""
        if name is None or name.startswith("builtins.") or name in self.torch_bases:
            return None
        if name.startswith(LOCAL):
            return self._member(unit, name[len(LOCAL) :], attached, hops)
        place = self.locate(unit, name)
        other = self.unit(place.path) if place is not None else None
        if place is None or other is None or not place.rest:
            return None
        module = other.index.module
        if place.rest.partition(".")[0] in module.names:
            return self.denoted(other, place.rest, module, sys.maxsize, attached, hops)
        where = attached.get((place.path, place.rest))
        if where is not None:
            home = self.unit(where[0])
            return Definition(home, f"{where[1]}.apply") if home is not None else None
        return self.denoted(other, place.rest, module, sys.maxsize, attached, hops) if module.stars else None

    def _member(self, unit: Unit, qualname: str, attached: Attached, hops: int) -> Definition:
        """What a qualified name of a file denotes, following aliases in class bodies: ``ops.softmax``."""
        owner, _, name = qualname.rpartition(".")
        record = unit.index.classes.get(owner)
        if record is None or name not in record.body.names or qualname in unit.index.classes:
            return Definition(unit, qualname)
        return self.denoted(unit, name, record.body, sys.maxsize, attached, hops) or Definition(unit, qualname)

    def module_denoted(self, unit: Unit, dotted: str, scope: Scope, line: int) -> str | None:
        """The path of the project module that ``dotted`` certainly denotes."""
        found = set(meanings(dotted, scope, line))
        name = found.pop() if len(found) == 1 else None
        if name is None or name.startswith((LOCAL, "builtins.")) or self.load is None:
            return None
        place = self.locate(unit, name)
        return place.path if place is not None and not place.rest else None

    def function_denoted(self, definition: Definition | None) -> tuple[Definition, bool] | None:
        """The Function that a definition is, and whether it is its ``apply``; None for anything else."""
        if definition is None:
            return None
        owner, _, name = definition.qualname.rpartition(".")
        through_apply = definition.record is None and name == "apply"
        found = Definition(definition.unit, owner) if through_apply else definition
        return (found, through_apply) if self.is_function(found) else None

    # Classes

    def bases(self, definition: Definition) -> list[list[Meaning]]:
        """For each base expression of a class, what it may denote (several if imports are conditional)."""
        record = definition.record
        if record is None:
            return []
        known = self.trace.bases.get(definition)
        if known is None:
            known = [[self.meaning(definition.unit, base) for base in alternatives] for alternatives in record.bases]
            self.trace.bases[definition] = known
        return known

    def is_function(self, definition: Definition) -> bool:
        """Whether a class certainly descends from torch's Function."""
        if definition not in self.trace.functions:
            above = self._above(definition, self.trace.functions)
            self.trace.functions.update(dict.fromkeys(above, False))
            self.trace.functions.update(dict.fromkeys(self._functions_among(above), True))
        return self.trace.functions.get(definition, False)

    def _functions_among(self, classes: Iterable[Definition]) -> set[Definition]:
        """The ``classes`` that descend from torch's Function; their ancestors are known or among them."""
        below: dict[Definition, list[Definition]] = defaultdict(list)
        found: dict[Definition, None] = {}
        for each in classes:
            for base in self._named_bases(each):
                if isinstance(base, Definition):
                    below[base].append(each)
                if self.trace.functions.get(base) if isinstance(base, Definition) else base in self.torch_bases:
                    found[each] = None
        pending = list(found)
        for each in pending:
            more = [child for child in below[each] if child not in found]
            found.update(dict.fromkeys(more))
            pending += more
        return set(found)

    def bases_known(self, definition: Definition) -> bool:
        """Whether every ancestor of a class is torch's, harmless, or a class that could be read.

        A class that descends from itself is not known.
        """
        if definition.record is None:
            return False
        above = self._above(definition)
        return all(map(self._direct_bases_known, above)) and not self._in_circles(above)

    def _direct_bases_known(self, definition: Definition) -> bool:
        record = definition.record
        if record is None or record.node.keywords:
            return False
        for alternatives in self.bases(definition):
            known = [base for base in alternatives if base is not None]
            if not known:
                return False
            for base in known:
                if isinstance(base, Definition):
                    if base.record is None:
                        return False
                elif base not in TORCH_FUNCTION_BASES and base not in HARMLESS_BASES:
                    return False
        return True

    def _in_circles(self, classes: Iterable[Definition]) -> bool:
        """Whether some of ``classes``, which include all their ancestors, descend from themselves."""
        below: dict[Definition, list[Definition]] = defaultdict(list)
        waiting = dict.fromkeys(classes, 0)
        for each in waiting:
            for base in self._parents(each):
                if base in waiting:
                    below[base].append(each)
                    waiting[each] += 1
        settled = [each for each, count in waiting.items() if not count]
        for each in settled:
            for child in below[each]:
                waiting[child] -= 1
                if not waiting[child]:
                    settled.append(child)
        return len(settled) < len(waiting)

    def ancestry(self, definition: Definition) -> list[Definition]:
        """The class and its project bases, nearest first, in the order of attribute look-up (depth first).

        If there are more than ``MAX_ANCESTORS``, some of them.
        """
        return self._above(definition, at_most=MAX_ANCESTORS + 1)

    def _above(
        self, definition: Definition, known: Container[Definition] = (), at_most: int = sys.maxsize
    ) -> list[Definition]:
        """A class and its project bases, depth first, without ``known`` ones and their bases."""
        found: dict[Definition, None] = {}
        pending = [definition]
        while pending:
            each = pending.pop()
            if each in found or each in known or each.record is None:
                continue
            found[each] = None
            if len(found) == at_most:
                break
            above = self._parents(each)
            spend(1 + (len(above) >> 2))
            pending += [base for base in reversed(above) if base not in found]
        return list(found)

    def _parents(self, definition: Definition) -> list[Definition]:
        """The direct bases of a class that are project classes."""
        known = self.trace.parents.get(definition)
        if known is None:
            known = [base for base in self._named_bases(definition) if isinstance(base, Definition)]
            self.trace.parents[definition] = known
        return known

    def _named_bases(self, definition: Definition) -> list[Meaning]:
        return [base for alternatives in self.bases(definition) for base in alternatives]


def _has_text_of(unit: Unit, source: Source) -> bool:
    return type(unit.source) is type(source) and unit.source.text == source.text


def _bound_to(bound: Bound, rest: str) -> str | None:
    """The resolved name of ``rest``, an attribute of what an import or a definition binds."""
    if bound.kind == "other":
        return None
    local = LOCAL if bound.kind in ("class", "def") else ""
    return f"{local}{bound.target}.{rest}" if rest else f"{local}{bound.target}"
