"""An incremental store of analysed Functions: a keystroke changes at most one of them, and usually none.

What is known of a Function depends on its statement, on all statements of the file that its names lead to, on what the
rest of the file does with it (its calls, the attributes that are stored, …), and on other files. A Function is rebuilt
and checked again if any of this differs; one that has only moved is moved.

All names in the code are followed, whether or not an analysis looks them up, so the key does not depend on cached
results. What rules read from the whole text is recorded when they read it.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from bisect import bisect_right
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property, lru_cache, partial
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import libcst as cst

from ctxlint.effort import spend, steps
from ctxlint.model.analyses.apply_arity import working_calls
from ctxlint.model.index.expected_errors import is_for_errors
from ctxlint.model.index.file_answers import answer_about
from ctxlint.model.index.file_index import is_one_of_several
from ctxlint.model.index.free_names import free_names
from ctxlint.model.index.project import Definition
from ctxlint.model.index.python_names import mentions_creation
from ctxlint.model.index.repeated_classes import repeated_in
from ctxlint.model.interpreter.events import ContextRead
from ctxlint.model.interpreter.trail import Move, Trail
from ctxlint.model.summaries.callables import tables_in
from ctxlint.model.syntax import KnownParents
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import changed
from ctxlint.source.recorded import RecordedSource
from ctxlint.source.slices import Slice
from ctxlint.source.source import Position, Source, Span
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.input_uses import InputUses, WalkedUses
    from ctxlint.model.builder import Builder, Known
    from ctxlint.model.finding import Finding
    from ctxlint.model.function import Evidence, FunctionClass, Input, Method, MethodFacts
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.index.file_index import ClassRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.outside_facts import ProjectQuestion
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.events import Event, Step

Result = TypeVar("Result")

_WORD = pattern(r"[^\W\d]\w*")
_STRING_OR_COMMENT = pattern(
    r"""
    \#(?:(?<=\s\#)|(?<![\s\S]\#))[^\r\n]*
    | \"{3}(?:[^\\]|\\[\s\S])*?\"{3} | \'{3}(?:[^\\]|\\[\s\S])*?\'{3}
    | "(?:[^"\\\r\n]|\\[\s\S])*" | '(?:[^'\\\r\n]|\\[\s\S])*'
    """,
    re.VERBOSE,
)
"""Strings and comments. All begin with one of three characters, so that ``re`` finds them fast."""
_TRIPLE = (3 * '"', 3 * "'")
_GOES_ON = (*_TRIPLE, "\\\n", "\\\r")
"""What is in code with a string of several lines."""
_STAR = pattern(r"\bimport\s*\*|\bimport\s*\(\s*\*")
_LINE = pattern(r"\bline \d")
_OPERATOR_NAMES = ("custom_op", "triton_op", "register_autograd", "register_fake", "impl_abstract")
_DEFINED = pattern(r"def(?<=\bdef)\s+\w+")
_WALKS_KEPT = 32
_TRAILS_KEPT = 2
"""The walks over versions of a method to keep: over the current text, and with fixes applied."""
_VERSIONS_KEPT = 3
"""Versions of a Function to keep: the current text, the one before, and the one with fixes applied."""


class _Kept(NamedTuple):
    """The findings of one rule about a Function, its steps, and what it queries about the whole text."""

    findings: tuple[Finding, ...]
    steps: int
    queries: dict[tuple[str, str], object]


@dataclass(eq=False)
class _Entry:
    """A position-independent Function, the steps that its analysis took, and its former position.

    ``names`` are those by which its code may read attributes of ctx, and ``stored`` those of them that other code of
    the project stores. ``homes`` maps the names of its methods to the classes of the file that contain them.
    ``has_places``: the summaries of helpers name positions in the file, ``places``: where its statements began then.
    """

    function: FunctionClass
    steps: int
    queries: dict[tuple[str, str], object]
    names: frozenset[str]
    stored: frozenset[str]
    firsts: tuple[int, ...]
    calls: tuple[ApplyCall, ...]
    homes: dict[str, str]
    has_places: bool
    places: tuple[int, ...]
    findings: dict[Hashable, _StoredFindings] = field(default_factory=dict)
    noted: _Noted | None = None
    code_notes: dict[object, Any] = field(default_factory=dict)

    def move_places(self, path: str, firsts: tuple[int, ...]) -> None:
        """Let the summaries name positions in statements that now begin on other lines, all of them as far away."""
        move = partial(_moved_step, path=path, lines=firsts[0] - self.places[0])
        methods = {
            name: replace(
                each, facts=replace(each.facts, events=tuple(_with_steps(event, move) for event in each.facts.events))
            )
            for name, each in self.function.methods.items()
        }
        self.function = replace(self.function, methods=methods)
        self.places, self.noted, self.code_notes = firsts, None, {}

    def note(self, function: FunctionClass, firsts: tuple[int, ...]) -> None:
        """Give a Function the notes of the last one, if that had the same place and calls."""
        place = (function.source.path, firsts, function.calls)
        if self.noted is None or self.noted[:3] != place:
            self.noted = _Noted(*place, function.lasting_notes)
        vars(function).update(lasting_notes=self.noted.notes, code_notes=self.code_notes)


class _Noted(NamedTuple):
    """The lasting notes of a Function at a place."""

    path: str
    firsts: tuple[int, ...]
    calls: tuple[ApplyCall, ...]
    notes: dict[object, object]


@dataclass(eq=False)
class _StoredFindings:
    """What rules reported about a Function at its position at that time."""

    firsts: tuple[int, ...]
    own: int
    start: int
    calls: tuple[ApplyCall, ...]
    rules: dict[str, _Kept] = field(default_factory=dict)
    whole: _Whole | None = None


class _Whole(NamedTuple):
    """The result of all of some rules: their steps, and the codes of those that report something, or query the text."""

    codes: tuple[str, ...]
    steps: int
    reported: frozenset[str]
    watched: tuple[str, ...]


@dataclass(eq=False)
class _Stored(Generic[Result]):
    """What is known of a method, and what that depends on: what was given, and the code around."""

    given: object
    around: _Given
    result: Result
    steps: int


class _OfMethods(Generic[Result]):
    """The latest results about the nodes of methods."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Stored[Result]] = OrderedDict()

    def of(
        self,
        key: Hashable,
        given: object,
        around: _Given,
        work: Callable[[], Result],
        holds: Callable[[Result], bool] = lambda _: True,
        events: Callable[[Result], Iterable[Event]] = lambda _: (),
    ) -> Result:
        """The result of ``work``, or that of an earlier call for the same that still ``holds``, for as many steps.

        ``key`` is a node, or has one; ``events`` are those of a result.
        """
        known = self._kept.pop(key, None)
        if known is not None and not known.around.allows(around, events(known.result)):
            known = None
        if known is None or known.given != given or not holds(known.result):
            left, result = steps.left, work()
            known = _Stored(given, around, result, left - steps.left)
        else:
            spend(known.steps)
        self._kept[key] = known
        while len(self._kept) > _WALKS_KEPT:
            self._kept.popitem(last=False)
        return known.result

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()


class _Trailed(NamedTuple):
    """The statements of a walk over a method, which another version of it may continue; as for ``_Stored``."""

    given: _Placeless
    around: _Given
    trail: Trail


class FunctionStore:
    """The Functions of some files, valid while nothing that they depend on has changed."""

    def __init__(self, files: int = 4) -> None:
        """Start empty."""
        self.files = files
        self._entries: OrderedDict[str, dict[Hashable, OrderedDict[Hashable, _Entry]]] = OrderedDict()
        self._words: _Words = {}
        self._names: _Names = {}
        self._closures: _Closures = {}
        self._reach: tuple[Unit, _Reach] | None = None
        self._of: dict[int, tuple[FunctionClass, _Entry, tuple[int, ...]]] = {}
        self._operators: dict[tuple[str, str], tuple[Hashable, object]] = {}
        self._walked: _OfMethods[MethodFacts] = _OfMethods()
        self._used: _OfMethods[InputUses] = _OfMethods()
        self._uses: OrderedDict[Hashable, tuple[_Given, WalkedUses]] = OrderedDict()
        self._trails: OrderedDict[tuple[str, str, str], list[_Trailed]] = OrderedDict()
        self.parents = KnownParents()
        """Of the nodes in the statements, for all that looks at a Function."""
        self.go_on: Callable[[], object] = bool
        """Called again and again between Functions. What it raises ends the work; what is known until then is kept."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """During this context, Functions and findings are looked up and stored here. For one reading of one file."""
        token, answers = STORE.set(self), list[_Answers]()
        opened = _OPEN_ANSWERS.set(answers)
        self._of = {}
        try:
            with self.parents.in_use():
                yield
        finally:
            for each in answers:
                each.complete()
            _OPEN_ANSWERS.reset(opened)
            STORE.reset(token)
            self._of, self._reach = {}, None

    def clear(self) -> None:
        """Other files changed: drop everything."""
        self._entries.clear()
        self._operators.clear()
        self._walked.clear()
        self._used.clear()
        self._uses.clear()
        self._trails.clear()
        self.parents.clear()

    # The model

    def built(self, builder: Builder, record: ClassRecord) -> FunctionClass | None:
        """As ``builder.build``."""
        self.go_on()
        unit = builder.unit
        if not isinstance(unit.source, RecordedSource) or is_one_of_several(record.qualname):
            return builder.build(record)
        reach, source = self._reach_of(unit), unit.source
        source.note_parsed(is_whole=unit.tree is not None)
        statements, _nodes, firsts, texts = reach.closure(record.statement)
        assigned = _assigned(builder, record, statements)
        facts = (*_facts(builder, record), assigned, builder.once_for_all(_facts_of_file))
        key = (statements.index(record.statement), texts, *facts)
        versions = self._versions(unit, record.qualname)
        stored = builder.stored_for(builder.project.ancestry(Definition(unit, record.qualname)))
        broken = len(unit.slices.broken)
        entry = versions.get(key) or _with_other_comments(versions, key, unit, record)
        if (
            entry is not None
            and not _is_released(entry.function)
            and entry.stored == stored & entry.names
            and _has_same_answers(entry.queries, source)
            and (not entry.has_places or len({now - then for now, then in zip(firsts, entry.places)}) == 1)
        ):
            if entry.has_places and entry.places != firsts:
                entry.move_places(unit.path, firsts)
            del versions[key]
            versions[key] = entry  # with the key of this reading
            spend(entry.steps)
            function = _placed(entry, unit, dict(zip(entry.firsts, firsts)), builder.calls.get(record.qualname, ()))
        else:
            before = steps.left
            source.queries.clear()
            builder.facts_of = partial(self._facts_of, reach, record, facts)
            builder.uses_in = partial(self._uses_in, reach, record, facts)
            built = builder.build(record)
            if built is None or len(unit.slices.broken) > broken:
                return built
            function, homes = built, _homes(built, unit)
            taken_out, queries = _taken_out(built, homes), dict(source.queries)
            taken = before - steps.left
            names = reach.words_in(statements) | _read_of_ctx(built)
            found = (taken_out, taken, queries, names, stored & names, firsts, built.calls, homes)
            entry = _Entry(*found, _has_places(built), firsts)
            versions[key] = entry
            while len(versions) > _VERSIONS_KEPT:
                versions.popitem(last=False)
        entry.note(function, firsts)
        self._of[id(function)] = (function, entry, firsts)
        return function

    def _facts_of(
        self,
        reach: _Reach,
        record: ClassRecord,
        facts: tuple[Hashable, ...],
        method: Method,
        before: Known,
        work: Callable[[Trail | None], MethodFacts],
    ) -> MethodFacts:
        """The result of ``work``, or that of an earlier walk over the same nodes with the same code around them.

        So a keystroke in ``backward`` does not walk ``forward`` again, unless it changes what is known of the inputs,
        and walks ``backward`` from the statement on that it changes.
        """
        home = method.home
        if home is None or not _is_own(method, reach, record):
            return work(None)
        given, led_to = reach.without_versions(before, record)
        unit, around = home.unit, _Given(facts, reach.around(record, method.name, led_to))
        return self._walked.of(
            (method.node, bool(before[1])),  # backward is walked with and without the objects that forward keeps
            given,
            around,
            lambda: work(self._trail(unit, reach, record, method, given, around)),
            lambda known: not _is_bound_to_old_text(method, known),
            lambda known: known.events,
        )

    def _uses_in(
        self,
        reach: _Reach,
        record: ClassRecord,
        facts: tuple[Hashable, ...],
        method: Method,
        names: tuple[str, ...],
        work: Callable[[WalkedUses | None], WalkedUses],
    ) -> InputUses:
        """As ``_facts_of``, for how a method uses its inputs."""
        if not _is_own(method, reach, record):
            return work(None).uses
        around = _Given(facts, reach.around(record, method.name, frozenset()))
        key = (reach.source.path, record.qualname, method.name, names)

        def walked() -> InputUses:
            before = self._uses.pop(key, None)
            found = work(before[1] if before is not None and before[0].allows(around, ()) else None)
            self._uses[key] = (around, found)
            while len(self._uses) > _WALKS_KEPT:
                self._uses.popitem(last=False)
            return found.uses

        return self._used.of(method.node, names, around, walked)

    def _trail(
        self,
        unit: Unit,
        reach: _Reach,
        record: ClassRecord,
        method: Method,
        given: _Placeless,
        around: _Given,
    ) -> Trail:
        """A new trail, which continues one over an earlier version of the method if there is one."""
        key = (unit.path, record.qualname, method.name)
        trails = self._trails.setdefault(key, [])
        self._trails.move_to_end(key)
        while len(self._trails) > _WALKS_KEPT:
            self._trails.popitem(last=False)
        known = (each for each in trails if each.trail.begins_like(method.node) and each.given == given)
        known = (each for each in known if each.around.allows(around, each.trail.events))
        found = None if reach.may_call(record, method.name, around.code) else next(known, None)
        trail = Trail(unit, found.trail if found is not None else None)
        trails.insert(0, _Trailed(given, around, trail))
        del trails[_TRAILS_KEPT:]
        return trail

    def _versions(self, unit: Unit, qualname: str) -> OrderedDict[Hashable, _Entry]:
        of_file = self._entries.setdefault(unit.path, {})
        self._entries.move_to_end(unit.path)
        while len(self._entries) > self.files:
            self._entries.popitem(last=False)
        return of_file.setdefault((qualname, unit.slices.as_written), OrderedDict())

    def _reach_of(self, unit: Unit) -> _Reach:
        if self._reach is None or self._reach[0] is not unit:
            self._reach = (unit, _Reach(unit, self._words, self._names, self._closures))
            self._words, self._names, self._closures = self._reach[1].learned
        return self._reach[1]

    # Custom operators

    def of_operators(self, kind: str, unit: Unit, work: Callable[[], Result]) -> Result:
        """The result of ``work`` about the custom operators of a file, while they stay where and as they are.

        It may refer to the unit only by positions.
        """
        reach = self._reach_of(unit)
        whole = (
            unit.source.has_walrus,
            unit.source.has_cells,
            mentions_creation(unit.source),
            *unit.index.module.stars,
        )
        key = (reach.of_operators, unit.slices.as_written, whole)
        known = self._operators.get((unit.path, kind))
        if known is not None and known[0] == key:
            return cast("Result", known[1])
        broken, found = len(unit.slices.broken), work()
        if len(unit.slices.broken) == broken:
            self._operators[unit.path, kind] = (key, found)
            while len(self._operators) > 2 * self.files:
                del self._operators[next(iter(self._operators))]
        return found

    # The findings

    def known_findings(self, function: FunctionClass, settings: Settings) -> KnownFindings | None:
        """The known findings about a Function, and where new ones are kept; None if it cannot be stored."""
        found = self._of.get(id(function))
        source = function.source
        if found is None or not isinstance(source, RecordedSource):
            return None
        _function, entry, firsts = found
        own = function.slice.first_line
        now = _StoredFindings(firsts, own, source.line_starts[own - 1], function.calls)
        known = entry.findings.pop(settings, None)
        if known is not None:
            number = len(known.rules)
            now.rules = _at(known, now, function.slice, source)
            now.whole = known.whole if len(now.rules) == number else None
        entry.findings[settings] = now
        while len(entry.findings) > _VERSIONS_KEPT:
            del entry.findings[next(iter(entry.findings))]
        return KnownFindings(now, source, self.go_on)


@dataclass(eq=False)
class KnownFindings:
    """The findings about a Function under some settings."""

    known: _StoredFindings
    source: RecordedSource
    go_on: Callable[[], object]
    reported: frozenset[str] | None = None
    """The codes of the rules that report something, once the steps of all rules are counted."""

    def get(self, code: str) -> _Kept | None:
        """What a rule reported before; None if the rule has to run."""
        found = self.known.rules.get(code)
        if found is None:
            self.go_on()
            self.source.queries.clear()
        return found

    def whole(self, codes: tuple[str, ...]) -> _Whole | None:
        """The result of all these rules; None if one of them has to run."""
        known = self.known.whole
        if known is None or known.codes != codes:
            found = [self.known.rules.get(code) for code in codes]
            if None in found:
                return None
            taken = sum(each.steps for each in found if each is not None)
            watched = tuple(code for code, each in self.known.rules.items() if each.findings or each.queries)
            reported = frozenset(code for code in watched if self.known.rules[code].findings)
            known = self.known.whole = _Whole(codes, taken, reported, watched)
        return known

    def keep(self, code: str, findings: Iterable[Finding], taken: int) -> None:
        """Store what a rule reports."""
        self.known.rules[code] = _Kept(tuple(findings), taken, dict(self.source.queries))


STORE: ContextVar[FunctionStore | None] = ContextVar("STORE", default=None)


# What a Function depends on


class _Around(NamedTuple):
    """What is in a class but in no method, some methods and statements of the file, and how many of these are above.

    ``firsts`` are the first lines of the class and of the statements.
    """

    rest: str
    methods: tuple[tuple[str, str], ...]
    statements: tuple[str, ...]
    above: int
    firsts: tuple[int, ...]


class _Given(NamedTuple):
    """What a walk over a method depends on, apart from the method: facts about the Function, and code."""

    facts: tuple[Hashable, ...]
    code: _Around

    def allows(self, now: _Given, events: Iterable[Event]) -> bool:
        """Whether a walk with these events is the same for what is given ``now``: code may move if none is in it."""
        same = self.facts == now.facts and self.code[:-1] == now.code[:-1]
        return same and (self.code.firsts == now.code.firsts or not _have_places(events))


_NO_UNIT = cast("Unit", None)
_Placeless: TypeAlias = "tuple[dict[Any, Any], dict[Any, Any]]"
"""What a walk is given, where definitions of the file have no unit."""
_Words: TypeAlias = "dict[tuple[str, re.Pattern[str] | None], frozenset[str]]"
"""The words in texts, all of them or without what a pattern finds."""
_Names: TypeAlias = "dict[ast.stmt, frozenset[str]]"
"""The words in statements; those that have not changed are the same nodes in the next version of a file."""


class _Closure(NamedTuple):
    """Some statements of a file: their numbers, the nodes, the first lines and the texts."""

    statements: tuple[int, ...]
    nodes: tuple[ast.stmt, ...]
    firsts: tuple[int, ...]
    texts: tuple[str, ...]


_Closures: TypeAlias = "dict[tuple[Scope, int], _Closure]"
"""What the names in a statement lead to. A module stays the same while every statement binds the same where it did."""


class _Reach:
    """The statements of a file, and which of them the names in a statement lead to."""

    def __init__(self, unit: Unit, words: _Words, names: _Names, closures: _Closures) -> None:
        self._unit, self.source = unit, unit.source
        self._statements, self._module = unit.index.statements, unit.index.module
        self._imports_stars = any(name == "*" for _origin, name in unit.index.renamed)
        self.lines: list[tuple[int, int]] = []
        for each in unit.index.statements:
            decorators = getattr(each, "decorator_list", None) or [each]
            first = min(each.lineno, *(decorator.lineno for decorator in decorators))
            self.lines.append((first, each.end_lineno or each.lineno))
        starts = [first for first, _last in self.lines]
        self.bound: dict[str, set[int]] = {}
        for name, bounds in unit.index.module.names.items():
            self.bound[name] = {max(bisect_right(starts, bound.line) - 1, 0) for bound in bounds}
        self._known_words = words
        self.words: _Words = {}
        self._known_names = names
        self.names: _Names = {}
        self._known_closures = closures
        self._closures: _Closures = {}
        self._texts: dict[int, str] = {}
        self._next: dict[int, frozenset[int]] = {}
        self._members: dict[str, tuple[dict[str, str], str]] = {}
        self._around: dict[tuple[str, str, frozenset[int]], _Around] = {}

    @property
    def learned(self) -> tuple[_Words, _Names, _Closures]:
        """What the next version of the file may use."""
        return self.words, self.names, self._closures

    def text(self, statement: int) -> str:
        """The lines of a statement."""
        if statement not in self._texts:
            self._texts[statement] = self.source.lines(*self.lines[statement])
        return self._texts[statement]

    @cached_property
    def _stars(self) -> frozenset[int]:
        """The statements that may bind any name."""
        if not self._imports_stars:
            return frozenset()
        return frozenset(at for at in range(len(self.lines)) if _STAR.search(self.text(at)))

    def closure(self, statement: int) -> _Closure:
        """A statement and all statements that its names lead to, transitively, in order."""
        key = (self._module, statement)
        if key not in self._closures:
            known = self._known_closures.get(key)
            same = known is not None and all(map(is_, known.nodes, map(self._statements.__getitem__, known.statements)))
            if known is not None and same:  # comments in them may have changed
                self._closures[key] = known._replace(texts=tuple(map(self.text, known.statements)))
            else:
                self._closures[key] = self._found_closure(statement)
        return self._closures[key]

    def _found_closure(self, statement: int) -> _Closure:
        found = {statement, *self._stars}
        pending = list(found)
        while pending:
            new = self._named_in(pending.pop()) - found
            found |= new
            pending += new
        statements = tuple(sorted(found))
        firsts = tuple(self.lines[each][0] for each in statements)
        nodes = tuple(map(self._statements.__getitem__, statements))
        return _Closure(statements, nodes, firsts, tuple(map(self.text, statements)))

    def words_in(self, statements: Iterable[int]) -> frozenset[str]:
        """The words in some statements."""
        return frozenset().union(*map(self._words_of, statements))

    @cached_property
    def of_operators(self) -> tuple[tuple[tuple[int, int], str], ...]:
        """The lines and the texts of the statements with custom operators, and of those that these lead to."""
        words = self._unit.index.names_for(_OPERATOR_NAMES)
        roots = (each for each in range(len(self.lines)) if not words.isdisjoint(self._words_of(each)))
        statements = sorted({each for root in roots for each in self.closure(root).statements})
        return tuple((self.lines[each], self.text(each)) for each in statements)

    def around(self, record: ClassRecord, method: str, led_to: frozenset[int]) -> _Around:
        """The code that a walk over a method of a class may depend on, apart from the method, and where it is.

        That are the statements that its names, and what it is given, lead to, the other methods that are named there,
        and what is in the class but in no method.
        """
        key = (record.qualname, method, led_to)
        if key not in self._around:
            self._around[key] = self._found_around(record, method, led_to)
        return self._around[key]

    def _found_around(self, record: ClassRecord, method: str, led_to: frozenset[int]) -> _Around:
        own, methods, rest = record.statement, *self._members_of(record)
        found, statements = {method}, self._stars.union(led_to)
        pending = [rest, methods.get(method, ""), *map(self.text, statements)]
        while pending:
            words = self._code_words(pending.pop())
            new = methods.keys() & words - found
            more = frozenset().union(*(self.bound[name] for name in words & self.bound.keys())) - statements - {own}
            found |= new
            statements |= more
            pending += [*(methods[name] for name in new), *map(self.text, more)]
        found.discard(method)
        numbers = sorted(statements)
        return _Around(
            rest,
            tuple((name, methods[name]) for name in sorted(found)),
            tuple(map(self.text, numbers)),
            bisect_right(numbers, own),
            tuple(self.lines[each][0] for each in (own, *numbers)),
        )

    def without_versions(self, given: Known, record: ClassRecord) -> tuple[_Placeless, frozenset[int]]:
        """What a walk is given, comparable with that in other versions of the file, and the statements it leads to.

        It cannot be compared if it leads to the class itself, whose text is not compared either.
        """
        led_to: set[int] = set()
        index = self._unit.index

        def placeless(old: Definition) -> Definition:
            found = index.classes.get(old.qualname) or index.functions.get(old.qualname)
            if old.unit is not self._unit or found is None or found.statement == record.statement:
                return old
            led_to.add(found.statement)
            return Definition(_NO_UNIT, old.qualname)

        move = Move(placeless, {}).move
        values, objects = ({move(key): move(each) for key, each in part.items()} for part in given)
        return (values, objects), frozenset(led_to)

    def may_call(self, record: ClassRecord, method: str, around: _Around) -> bool:
        """Whether a method, or the code ``around`` it, mentions a method of that name.

        ``codecs.forward.encode(x)`` does not: a method has no such attributes.
        """
        own = self._members_of(record)[0].get(method, "")
        texts = (own, around.rest, *(text for _name, text in around.methods), *around.statements)
        code = [_DEFINED.sub("", text) for text in texts if method in self._code_words(text)]
        mentioned = re.compile(rf"(?<!\w){method}(?!\w)(?!(?<=\.{method})\.[^\W_])")
        return any(mentioned.search(_STRING_OR_COMMENT.sub(_without_prose, each)) for each in code)

    def _members_of(self, record: ClassRecord) -> tuple[dict[str, str], str]:
        """The text of each method of a class, and of the rest."""
        if record.qualname not in self._members:
            self._members[record.qualname] = self._split(record.node, *self.lines[record.statement])
        return self._members[record.qualname]

    def _split(self, node: ast.ClassDef, first: int, last: int) -> tuple[dict[str, str], str]:
        """As ``_members_of``, for the lines of the statement with the class."""
        methods: dict[str, str] = {}
        rest: list[str] = []
        for each in node.body:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                start = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)])
                end = each.end_lineno or each.lineno
                rest.append(self.source.lines(first, start - 1) if start > first else "")
                methods[each.name] = methods.get(each.name, "") + self.source.lines(start, end)
                first = end + 1
        rest.append(self.source.lines(first, last) if first <= last else "")
        return methods, "\n".join(rest)

    def _words_of(self, statement: int) -> frozenset[str]:
        node = self._statements[statement]
        if node not in self.names:
            known = self._known_names.get(node)
            self.names[node] = self._found_words(statement, node) if known is None else known
        return self.names[node]

    def _found_words(self, statement: int, node: ast.stmt) -> frozenset[str]:
        if not isinstance(node, ast.ClassDef):
            return self._words_in(self.text(statement))
        methods, rest = self._split(node, *self.lines[statement])
        return self._code_words(rest).union(*map(self._code_words, methods.values()))

    def _code_words(self, text: str) -> frozenset[str]:
        """The words in a part of a class, without the names of its functions: a definition leads nowhere."""
        return self._words_in(text, _DEFINED)

    def _words_in(self, text: str, without: re.Pattern[str] | None = None) -> frozenset[str]:
        if (text, without) not in self.words:
            words = self._known_words.get((text, without))
            self.words[text, without] = _words_by_line(text, without) if words is None else words
        return self.words[text, without]

    def _named_in(self, statement: int) -> frozenset[int]:
        if statement not in self._next:
            named = self._words_of(statement) & self.bound.keys()
            self._next[statement] = frozenset().union(*(self.bound[name] for name in named))
        return self._next[statement]


def _words_by_line(text: str, without: re.Pattern[str] | None) -> frozenset[str]:
    """The words in some code: line by line, most are those of the last version. A string may have several lines."""
    lines = (text,) if any(each in text for each in _GOES_ON) else text.split("\n")
    return frozenset().union(*(_words(line, without) for line in lines))


@lru_cache(maxsize=512)  # a keystroke brings a new line, and memory must not grow
def _words(code: str, without: re.Pattern[str] | None) -> frozenset[str]:
    code = _STRING_OR_COMMENT.sub(_without_prose, code)
    code = code if without is None else without.sub("", code)
    words = frozenset(_WORD.findall(code))
    return words if code.isascii() else words.union(_WORD.findall(unicodedata.normalize("NFKC", code)))


def _without_prose(found: re.Match[str]) -> str:
    """A string; nothing for the prose among them, comments and docstrings, which lead nowhere."""
    start, written = found.start(), found[0]
    if written.startswith("#"):
        return ""
    line = found.string[max(found.string.rfind("\n", 0, start), found.string.rfind("\r", 0, start)) + 1 : start]
    is_docstring = written[:3] in _TRIPLE and line.strip(" \t") in ("", "r", "R")
    return "" if is_docstring else written


def _facts(builder: Builder, record: ClassRecord) -> tuple[Hashable, ...]:
    """What the rest of the file, and other files, do with a Function."""
    name = record.qualname
    calls = builder.calls.get(name, ())
    return (
        tuple(changed(call, span=_NOWHERE, callee_span=None, line="") for call in calls if not call.path),
        tuple(call for call in calls if call.path),
        frozenset(builder.direct_calls.get(name, ())),
        frozenset(builder.patched[name]) if name in builder.patched else None,
        name in builder.applied,
        name in builder.subclassed,
        builder.known_in_part,
        record.is_redefined,
        record.has_alternative(builder.unit.index.classes),
        record.is_replaced_unused(builder.unit.source),
        is_for_errors(record, builder.unit.index),
        repeated_in(record, builder.unit.index),
    )


def _assigned(builder: Builder, record: ClassRecord, statements: Container[int]) -> frozenset[ProjectQuestion]:
    """What other files set for the file, if a Function, or a class that its names lead to, reads an unbound name."""
    index, assigned = builder.unit.index, builder.project.assigned
    if not assigned:
        return frozenset()
    classes = (name for name, each in index.classes.items() if each is record or each.statement in statements)
    return frozenset(assigned if free_names(builder.unit, classes) else ())


def _facts_of_file(builder: Builder) -> tuple[Hashable, ...]:
    """What of the file, and of others, may matter to each of its Functions, with the answers that some asked for."""
    unit, project = builder.unit, builder.project
    answers = _Answers(unit)
    _OPEN_ANSWERS.get().append(answers)
    return (
        unit.source.has_walrus,
        answers,
        project.torch_bases,
        frozenset(base for each in unit.index.classes.values() for bases in each.bases for base in bases),
        project.once(("tables",), lambda: tables_in(unit), unit.summaries),
        tuple(project.declared.items()),
        frozenset(project.changed),
    )


class _Answers:
    """The answers to all questions about a file that were asked up to the end of a reading; see ``answer_about``.

    What is found early in a reading is looked up with the questions that came up later: one question more must not make
    all that is known of the same text worthless. So the answers are added at the end, and the hash is without them.
    """

    def __init__(self, unit: Unit) -> None:
        self._unit: Unit | None = unit
        self._known: dict[tuple[str, str], bool] = {}
        self._ask()

    def _ask(self) -> None:
        if self._unit is not None and isinstance(self._unit.source, RecordedSource):
            self._known = {each: answer_about(self._unit, each) for each in self._unit.source.questions}

    def complete(self) -> None:
        """Add the answers to the questions that were asked since; the file is not needed any more."""
        self._ask()
        self._unit = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Answers) and self._known == other._known

    def __hash__(self) -> int:
        return hash(_Answers)


_OPEN_ANSWERS: ContextVar[list[_Answers]] = ContextVar("_OPEN_ANSWERS")
"""Those of the reading that goes on."""
_NOWHERE = Span(Position(1, 1), Position(1, 1))


def _with_other_comments(
    versions: OrderedDict[Hashable, _Entry], key: tuple[Any, ...], unit: Unit, record: ClassRecord
) -> _Entry | None:
    """The entry of a Function in which only comments and blank lines have changed; it is that of the new text then."""
    at, texts, *facts = key
    found = unit.slices.find_class(record.qualname)
    before = found[1].statement.replaces if found is not None else None
    if found is None or before is None:
        return None
    now = found[1].statement
    key_before = (at, (*texts[:at], before.text, *texts[at + 1 :]), *facts)
    entry = versions.get(key_before)
    if entry is None or entry.function.slice.statement is not before:
        return None
    del versions[key_before]
    parts = _Parts(lambda old: replace(old, statement=now) if old.statement is before else old)
    methods = {name: replace(each, slice=parts.of(each.slice)) for name, each in entry.function.methods.items()}
    entry.function = replace(entry.function, methods=methods, slice=parts.of(entry.function.slice))
    for known in entry.findings.values():  # comments matter to fixes
        known.rules = {code: each for code, each in known.rules.items() if not each.findings}
        known.whole = None
    versions[key] = entry
    return entry


def _has_same_answers(queries: dict[tuple[str, str], object], source: RecordedSource) -> bool:
    return all(source.answer_to(query) == answer for query, answer in queries.items())


# Positions


def _homes(function: FunctionClass, unit: Unit) -> dict[str, str]:
    """The classes of a file that contain the methods."""
    homes = ((name, method.home) for name, method in function.methods.items())
    return {name: home.qualname for name, home in homes if home is not None and home.unit is unit}


def _is_own(method: Method, reach: _Reach, record: ClassRecord) -> bool:
    """Whether a method is in the class itself, and not inherited."""
    home = method.home
    return home is not None and home.unit.source is reach.source and home.qualname == record.qualname


def _is_released(function: FunctionClass) -> bool:
    """Whether nodes of a Function are those of a later version now."""
    slices = (function.slice, *(method.slice for method in function.methods.values()))
    return any(each.statement.released for each in slices)


def _is_bound_to_old_text(method: Method, facts: MethodFacts) -> bool:
    """Whether a later method may get a function or object of the earlier version of the file: from ``forward``."""
    seen: set[int] = set()
    handed_on = facts.returns if method.name == "forward" else ()
    pending: list[object] = [each.value for each in handed_on]
    while pending:
        each = pending.pop()
        if isinstance(each, Definition):
            return True
        if id(each) in seen or isinstance(each, (str, int, Enum, cst.CSTNode)):
            continue
        seen.add(id(each))
        pending += each if isinstance(each, (tuple, frozenset)) else getattr(each, "__dict__", {}).values()
    return False


def _read_of_ctx(function: FunctionClass) -> frozenset[str]:
    """The attributes of ctx that methods read, even if their names are not written there, or that torch reads."""
    read = (each.attribute for method in function.methods.values() for each in method.facts.of(ContextRead))
    return autograd.FUNCTION_CTX_ATTRIBUTES.union(read)


def _has_places(function: FunctionClass) -> bool:
    """Whether an event of a method has a position in a helper (the chain of calls that leads to it)."""
    return any(_have_places(method.facts.events) for method in function.methods.values())


def _have_places(events: Iterable[Event]) -> bool:
    """Whether one of some events has a position in a helper."""
    placed = [event for event in events if _MAY_HAVE_PLACES[type(event)]]
    parts = (part for event in placed for part in (event, *getattr(event, "unpackings", ())))
    return any(getattr(part, "through", ()) for part in parts)


def _with_steps(event: Event, move: Callable[[Step], Step]) -> Event:
    """An event whose way through helpers leads to other positions."""
    if not _MAY_HAVE_PLACES[type(event)]:
        return event
    changes: dict[str, Any] = {}
    for name in ("through", "misfit", "effect", "fault", "found", "unpackings"):
        part = vars(event).get(name)
        if not part:
            continue
        if name == "through":
            changes[name] = tuple(map(move, part))
        elif name == "unpackings":
            changes[name] = tuple(replace(each, through=tuple(map(move, each.through))) for each in part)
        else:
            changes[name] = replace(part, steps=tuple(map(move, part.steps)))
    return replace(event, **changes) if changes else event


def _moved_step(step: Step, path: str, lines: int) -> Step:
    """A step at its new position, if it is in this file."""
    return replace(step, span=step.span.moved(lines)) if step.path == path else step


class _MayHavePlaces(dict[type, bool]):
    """By type, whether events may have positions in a helper."""

    def __missing__(self, kind: type) -> bool:
        names = {each.name for each in fields(kind)}.union(dir(kind))  # ``through`` may be a property
        self[kind] = found = not names.isdisjoint(("through", "unpackings"))
        return found


_MAY_HAVE_PLACES = _MayHavePlaces()


def _taken_out(function: FunctionClass, homes: Container[str]) -> FunctionClass:
    """A Function that keeps nothing of its file alive but its own statements."""
    parts = _Parts(lambda old: replace(old, source=_NO_TEXT))
    methods = {
        name: replace(each, home=None, slice=parts.of(each.slice)) if name in homes else each
        for name, each in function.methods.items()
    }
    part = parts.of(function.slice)
    return replace(function, methods=methods, slice=part, source=_NO_TEXT, tree=None, calls=())


class _Parts:
    """New slices for a Function, one for each old one, because rules compare slices by identity."""

    def __init__(self, copied: Callable[[Slice], Slice]) -> None:
        self.copied = copied
        self.made: dict[int, Slice] = {}

    def of(self, old: Slice) -> Slice:
        """The slice that replaces an old one."""
        if id(old) not in self.made:
            self.made[id(old)] = self.copied(old)
        return self.made[id(old)]


_NO_TEXT = Source("", "")


def _placed(entry: _Entry, unit: Unit, firsts: dict[int, int], calls: Sequence[ApplyCall]) -> FunctionClass:
    """A Function that was detached from its file, at its present position."""
    function = entry.function

    def copied(old: Slice) -> Slice:
        first = firsts[old.first_line]
        return Slice(unit.source, first, first + old.last_line - old.first_line, old.statement)

    parts = _Parts(copied)
    methods = {
        name: changed(each, home=Definition(unit, entry.homes[name]), slice=parts.of(each.slice))
        if name in entry.homes
        else each
        for name, each in function.methods.items()
    }
    inputs = function.inputs
    calls = working_calls(calls, function.forward)
    moved = {old.span: (old, new) for old, new in zip(entry.calls, calls) if old != new}
    if moved:
        inputs = tuple(_with_calls(each, moved) for each in inputs)
    return changed(
        function,
        methods=methods,
        inputs=inputs,
        slice=parts.of(function.slice),
        source=unit.source,
        tree=unit.tree,
        calls=calls,
    )


def _with_calls(each: Input, moved: dict[Span, tuple[ApplyCall, ApplyCall]]) -> Input:
    """An input, with the calls that are evidence at their new positions."""

    def there(evidence: Evidence) -> Evidence:
        if evidence.call is None or evidence.call not in moved:
            return evidence
        old, new = moved[evidence.call]
        return changed(evidence, call=new.span, reason=evidence.reason.replace(old.place, new.place, 1))

    return changed(each, evidence=tuple(map(there, each.evidence)), may_be_none=tuple(map(there, each.may_be_none)))


def _at(known: _StoredFindings, now: _StoredFindings, part: Slice, source: RecordedSource) -> dict[str, _Kept]:
    """The known results, moved to the present position of the Function; without those of rules to run again."""
    own = range(known.own, known.own + part.last_line - part.first_line + 1)
    end = known.start + len(part.statement.text)
    as_is = (known.firsts, known.calls) == (now.firsts, now.calls)
    lines, characters = now.own - known.own, now.start - known.start

    def stays(each: Finding) -> bool:
        is_within = each.fix is None or each.fix.is_within(known.start, end)
        return is_within and (as_is or _mentions_only(each, own))

    def there(verdict: _Kept) -> _Kept:
        if not verdict.findings or not (lines or characters):
            return verdict
        return verdict._replace(findings=tuple(_moved(each, lines, characters) for each in verdict.findings))

    found = known.rules
    for code in known.whole.watched if known.whole is not None else tuple(found):
        verdict = found[code]
        if _has_same_answers(verdict.queries, source) and all(map(stays, verdict.findings)):
            found[code] = there(verdict)
        else:
            del found[code]
    return found


def _mentions_only(finding: Finding, own: range) -> bool:
    """Whether a finding refers only to places within some lines, and without line numbers in its texts."""
    spans = (finding.span, *(each.span for each in finding.related))
    words = (finding.message, *(each.message for each in finding.related), finding.fix.message if finding.fix else "")
    return all(span.start.line in own and span.end.line in own for span in spans) and not any(map(_LINE.search, words))


def _moved(finding: Finding, lines: int, characters: int) -> Finding:
    fix = finding.fix.moved(characters) if finding.fix is not None else None
    related = tuple(replace(each, span=each.span.moved(lines)) for each in finding.related)
    return replace(finding, span=finding.span.moved(lines), related=related, fix=fix)
