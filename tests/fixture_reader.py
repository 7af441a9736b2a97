"""Reads the fixture of a rule: Markdown in, cases to check out.

A fixture is ``fixtures/rules/CTXNNN-name.md``. Its fenced blocks are cases, which CONTRIBUTING.md describes.
Expectations are comments in the code; they are taken out before it is linted, and so never change what ctxlint does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
RULE_FIXTURES = ROOT / "fixtures" / "rules"
PROGRAMS = ROOT / "fixtures" / "programs"

_MARK = re.compile(r"[ \t]*# error(?:\[(\d+)-(\d+)\])?: \[([^\]\n]*)\]")
_MESSAGE = re.compile(r"[ \t]*# message: (.*?)[ \t]*$", re.MULTILINE)
_NOTE = re.compile(r"[ \t]*# note: (.*?)[ \t]*$", re.MULTILINE)
_LANGUAGES = frozenset({"py", "pyi", "fixed", "toml", "run", "console"})


class MalformedFixture(Exception):
    """A fixture from which no case can be built."""


@dataclass(frozen=True, order=True)
class Mark:
    """A finding that must start on a line (1-based, in the text without marks)."""

    line: int
    code: str


@dataclass(frozen=True)
class Extent:
    """Where a finding starts and ends: columns as reports show them, on the line of the mark."""

    mark: Mark
    start: int
    end: int


@dataclass(frozen=True)
class Marked:
    """Code and its expected findings. ``messages`` are texts in their messages, ``notes`` lines and texts of their notes."""

    text: str
    marks: tuple[Mark, ...]
    messages: tuple[str, ...]
    extents: tuple[Extent, ...] = ()
    notes: tuple[tuple[int, str], ...] = ()


def read_marks(text: str) -> Marked:
    r"""Take the expectations out of ``text``.

    ``# error: [CTX203, CTX201]`` at the end of a line refers to that line; alone on a line, to the next line that is
    left. ``# error[9-14]: [CTX203]`` also says from which column to which. ``# message: some text`` may stand anywhere.
    ``# note: some text`` at the end of a line: a finding has a note there.
    Lines that hold nothing else go, other lines keep their rest. Lines end at ``\n`` only here.
    """
    kept: list[str] = []
    marks: list[Mark] = []
    messages: list[str] = []
    extents: list[Extent] = []
    notes: list[tuple[int, str]] = []
    waiting: list[tuple[str, str, str]] = []
    for line in text.split("\n"):
        codes = [(start, end, code.strip()) for start, end, found in _MARK.findall(line) for code in found.split(",")]
        said = _MESSAGE.findall(line)
        messages += said
        noted = _NOTE.findall(line)
        rest = _NOTE.sub("", _MESSAGE.sub("", _MARK.sub("", line)))
        if (codes or said) and not rest.strip():
            waiting += codes
            continue
        kept.append(rest)
        notes += [(len(kept), text) for text in noted]
        marks += [Mark(len(kept), code) for _start, _end, code in waiting + codes]
        extents += [
            Extent(Mark(len(kept), code), int(start), int(end)) for start, end, code in waiting + codes if start
        ]
        waiting = []
    if waiting:
        raise MalformedFixture(f"no line follows the mark for {', '.join(code for *_, code in waiting)}")
    return Marked("\n".join(kept), tuple(sorted(marks)), tuple(messages), tuple(extents), tuple(notes))


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the other words after the fence, its text, and the 1-based line of the fence."""

    language: str
    words: frozenset[str]
    text: str
    line: int


def fenced_blocks(text: str) -> list[Block]:
    """Every fenced block of a Markdown text, in order; the language is empty where none is given."""
    found = []
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.map is not None:
            language, *words = token.info.split() or [""]
            found.append(Block(language, frozenset(words), token.content, token.map[0] + 1))
    return found


@dataclass(frozen=True)
class Place:
    """The place of a case; used as the id of its test, so that a failure names the fixture and line."""

    fixture: Path
    line: int

    def __str__(self) -> str:
        """``CTX203-missing-none:17``."""
        return f"{self.fixture.stem}:{self.line}"


@dataclass(frozen=True)
class Case:
    """A ``py`` block. With ``only``, findings of other rules are ignored; ``options`` is TOML."""

    place: Place
    code: str
    marked: Marked
    only: bool
    suffix: str
    options: str

    @property
    def path(self) -> str:
        """The name under which the text is linted."""
        return f"example{self.suffix}"


@dataclass(frozen=True)
class FixedCase:
    """A ``fixed`` block: the expected result of fixing ``case``; with ``safe``, of its safe fixes alone."""

    place: Place
    case: Case
    text: str
    safe: bool


@dataclass(frozen=True)
class Proof:
    """A ``run`` block: executed on torch. ``source`` and ``fixed`` are the nearest texts above it."""

    place: Place
    text: str
    source: str
    fixed: str


@dataclass(frozen=True)
class Session:
    """A ``console`` block: commands and what they print."""

    place: Place
    text: str


@dataclass(frozen=True)
class Fixture:
    """One file of fixtures/rules."""

    path: Path
    code: str
    name: str
    cases: tuple[Case, ...]
    fixed: tuple[FixedCase, ...]
    proofs: tuple[Proof, ...]
    sessions: tuple[Session, ...]

    @property
    def expectations(self) -> int:
        """How many findings of its own rule the fixture expects."""
        marked = sum(mark.code == self.code for case in self.cases for mark in case.marked.marks)
        return marked + sum(session.text.count(self.code) for session in self.sessions)


def read_fixture(path: Path) -> Fixture:
    """Read one fixture. Raises MalformedFixture for a name or a block that makes no sense."""
    code, dash, name = path.stem.partition("-")
    if not dash or not re.fullmatch(r"CTX\d{3}", code):
        raise MalformedFixture(f"{path.name}: a fixture is called CTXNNN-rule-name.md")
    cases: list[Case] = []
    fixed: list[FixedCase] = []
    proofs: list[Proof] = []
    sessions: list[Session] = []
    options = ""
    previous = ""
    for block in fenced_blocks(path.read_text(encoding="utf-8")):
        place = Place(path, block.line)
        if block.language not in _LANGUAGES:
            raise MalformedFixture(f"{place}: a block of kind {block.language!r} is none of {sorted(_LANGUAGES)}")
        if previous == "toml" and block.language not in ("py", "pyi"):
            raise MalformedFixture(f"{place}: options are for a py block, which must follow them")
        if block.language in ("py", "pyi"):
            marked = _marked(place, block)
            cases.append(Case(place, code, marked, "only" in block.words, f".{block.language}", options))
        elif block.language == "fixed":
            if previous not in ("py", "pyi", "fixed"):
                raise MalformedFixture(f"{place}: a fixed block stands right after the py block that it fixes")
            fixed.append(FixedCase(place, cases[-1], _marked(place, block).text, "safe" in block.words))
        elif block.language == "run":
            source = cases[-1].marked.text if cases else ""
            proofs.append(Proof(place, block.text, source, fixed[-1].text if fixed else ""))
        elif block.language == "console":
            sessions.append(Session(place, block.text))
        options = block.text if block.language == "toml" else ""
        previous = block.language
    return Fixture(path, code, name, tuple(cases), tuple(fixed), tuple(proofs), tuple(sessions))


def _marked(place: Place, block: Block) -> Marked:
    try:
        return read_marks(block.text)
    except MalformedFixture as error:
        raise MalformedFixture(f"{place}: {error}") from None


@cache
def rule_fixtures() -> tuple[Fixture, ...]:
    """Every rule fixture, sorted by name."""
    return tuple(read_fixture(path) for path in sorted(RULE_FIXTURES.glob("*.md")))


@dataclass(frozen=True)
class Program:
    """A file of fixtures/programs, without its marks."""

    path: Path
    marked: Marked

    def __str__(self) -> str:
        """``broken/sort.py``."""
        return self.path.relative_to(PROGRAMS).as_posix()


def programs(folder: str) -> Iterator[Program]:
    """The programs of ``clean`` or ``broken``, sorted by name."""
    for path in sorted((PROGRAMS / folder).glob("*.py")):
        yield Program(path, read_marks(path.read_text(encoding="utf-8")))


def write_tree(root: Path) -> None:
    """Write all programs and all cases of all fixtures as files into the new folder ``root``.

    Each fixture is a project: of a thousand files in one, each would be searched for the names of each.
    """
    texts = {path.relative_to(PROGRAMS): path.read_bytes() for path in PROGRAMS.rglob("*.py")}
    texts |= {
        Path(fixture.path.stem, f"line_{case.place.line}{case.suffix}"): case.marked.text.encode()
        for fixture in rule_fixtures()
        for case in fixture.cases
    }
    for folder in {path.parent for path in texts}:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "pyproject.toml").touch()
    for path, text in texts.items():
        (root / path).write_bytes(text)  # with the line ends that it has
