"""Names by which a file may call Functions of other files, according to their bytes: only imports are parsed.

A run over a whole project knows the names of all its Functions. For a single file, its imports are followed instead,
through files that re-export a name, to a class or an alias of ``apply``. Too many names do no harm: the model resolves
them precisely.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ctxlint.patterns import pattern
from ctxlint.source.imports import imports_in
from ctxlint.source.modules import holds, locate
from ctxlint.source.reading import Unreadable, content_of
from ctxlint.source.scanner import holds_candidate

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

_MOST_FILES = 512
"""The number of files whose content is kept, to be searched for further names."""

_MAX_HOPS = 16
"""After so many imports a name may be anything: ``from .a import a`` for a missing module ``a`` leads to itself."""

_ENDINGS = (".apply", ".forward", ".backward")


class Leads:
    """Follows imports. Each name of a module is followed once."""

    def __init__(self) -> None:
        """Nothing is read before the first request."""
        self._files: dict[str, _File] = {}
        self._known: dict[tuple[str, str], bool] = {}
        self._names: dict[str, frozenset[str]] = {}

    def names(self, path: str, data: bytes | None = None) -> frozenset[str]:
        """The last parts of the names that a file uses and that may denote Functions of other files.

        ``data`` is its content, if that differs from the disk.
        """
        if data is not None:
            return self._names_in(path, _File(data))
        if path not in self._names:
            self._names[path] = self._names_in(path, self._read(path))
        return self._names[path]

    def _names_in(self, path: str, file: _File) -> frozenset[str]:
        found: set[str] = set()
        if not any(_may_lead(path, statement) for statement in file.statements):
            return frozenset()
        for target, bound in file.imports:
            if bound != "*" and locate(path, target) is not None:
                found.update(name for name in _uses(target, bound, file) if self._leads(path, name))
        for module in self._star_modules(path, file):
            found.update(word for word in map(bytes.decode, file.called) if self._may_be(module, word))
        return frozenset(name.rpartition(".")[2] for name in found)

    def _star_modules(self, path: str, file: _File) -> list[str]:
        """The modules of the project that a file star-imports."""
        names = (target[:-2] if target.strip(".*") else target[:-1] for target in file.bound_to("*"))
        places = (locate(path, name) for name in names)
        return [place.path for place in places if place is not None and not place.rest]

    def _read(self, path: str) -> _File:
        if path not in self._files:
            while len(self._files) >= _MOST_FILES:
                self._files.pop(next(iter(self._files)))
            try:
                self._files[path] = _File(content_of(path))
            except Unreadable:
                self._files[path] = _File(b"")
        return self._files[path]

    def _leads(self, importer: str, name: str, hops: int = 0) -> bool:
        """Whether a name that a file imports may denote a Function of the project, or its ``apply``."""
        place = locate(importer, name)
        return place is not None and bool(place.rest) and self._may_be(place.path, place.rest, hops)

    def _may_be(self, path: str, rest: str, hops: int = 0) -> bool:
        if hops > _MAX_HOPS:
            return True
        key = (path, rest)
        if key not in self._known:
            self._known[key] = False  # for circular imports
            self._known[key] = self._search(path, rest, hops + 1)
        return self._known[key]

    def _search(self, path: str, rest: str, hops: int) -> bool:
        file = self._read(path)
        head, _, tail = rest.partition(".")
        word = head.encode("utf-8", "surrogatepass")
        if word in file.words:
            if file.is_candidate or word in file.given:
                return True
            if any(self._is_from(path, base.decode(), file, hops) for base in file.bases.get(word, ())):
                return True
            ends = f".{tail}" if tail else ""
            if any(self._leads(path, target + ends, hops) for target in file.bound_to(head)):
                return True
        return any(self._may_be(module, rest, hops) for module in self._star_modules(path, file))

    def _is_from(self, path: str, base: str, file: _File, hops: int) -> bool:
        """Whether a class with this base may descend from a Function of another file."""
        head, dot, rest = base.partition(".")
        found = file.bound_to(head)
        if not found:
            return self._may_be(path, head, hops)
        return any(self._leads(path, target + dot + rest, hops) for target in found)


class _File:
    """The content of a file, and its imports: dotted names, each with the name it is bound to; a star ends both."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def statements(self) -> tuple[bytes, ...]:
        return tuple(imports_in(self.data))

    @cached_property
    def imports(self) -> tuple[tuple[str, str], ...]:
        return tuple(pair for statement in self.statements for pair in _read_statement(statement))

    @cached_property
    def words(self) -> frozenset[bytes]:
        return frozenset(re.findall(_WORDS, self.data))

    @cached_property
    def is_candidate(self) -> bool:
        return holds_candidate(self.data)

    @cached_property
    def bases(self) -> dict[bytes, list[bytes]]:
        """The names of the bases of its classes."""
        return {name: re.findall(_NAME, bases) for name, bases in re.findall(_CLASS, self.data)}

    @cached_property
    def given(self) -> frozenset[bytes]:
        """The names that are assigned something that may be an ``apply``."""
        if b".apply" not in self.data:
            return _NO_WORDS
        return frozenset(re.findall(_WORDS, b" ".join(re.findall(_ASSIGNED, self.data))))

    @cached_property
    def called(self) -> frozenset[bytes]:
        """The names that are called, or used with an attribute."""
        return frozenset(re.findall(_CALLED_OR_READ, self.data))

    @cached_property
    def _bound(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for target, bound in self.imports:
            found.setdefault(bound, []).append(target)
        return found

    def bound_to(self, name: str) -> list[str]:
        return self._bound.get(name, [])

    def places(self, name: str) -> Iterator[tuple[int, int]]:
        """The occurrences of a name as a word."""
        word, data = name.encode("utf-8", "surrogatepass"), self.data
        at = data.find(word)
        while at >= 0:
            end = at + len(word)
            if not (_WORD.match(data, at - 1) if at else None) and not _WORD.match(data, end):
                yield at, end
            at = data.find(word, end)


_WORD = pattern(rb"[\w\x80-\xff]")
_ATTRIBUTES = pattern(rb"(?:\s*\.\s*[A-Za-z_]\w*)*")
# Compiled at first use: a file without imports from its project needs none of them.
_WORDS = rb"[\w\x80-\xff]+"
_NAME = rb"[A-Za-z_][\w.]*"
_CALLED_OR_READ = rb"\b([A-Za-z_]\w*)\s*[.(]"
_ASSIGNED = rb"(?m:^)([^=\n(]*)="
_CLASS = rb"\bclass\s+(\w+)\s*\(([^()]*)"
_NO_WORDS: frozenset[bytes] = frozenset()


def _uses(target: str, bound: str, file: _File) -> Iterator[str]:
    """The uses of an imported name: the name itself, and the attributes that are read from it."""
    chains = {_ATTRIBUTES.match(file.data, end)[0] for _start, end in file.places(bound)}  # type: ignore[index]
    for chain in sorted(chains):
        name = target + re.sub(r"\s", "", chain.decode())
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        yield name


def _may_lead(path: str, statement: bytes) -> bool:
    """Whether an import statement of a file may lead into its project, without parsing it."""
    absolute = re.match(_ABSOLUTE, statement)
    return absolute is None or holds(path, (absolute[1] or absolute[2]).decode())


_ABSOLUTE = rb"[ \t]*(?:from[ \t]+([A-Za-z_]\w*)[ \t.]|import[ \t]+([A-Za-z_]\w*)[\w.]*[ \t]*(?:as\b[^,]*)?$)"
"""An import from one module; others are parsed."""


@lru_cache(maxsize=16384)
def _read_statement(statement: bytes) -> tuple[tuple[str, str], ...]:
    import ast  # start-up: a file without imports from its project does not need them
    from textwrap import dedent

    text = dedent(statement.decode("utf-8", "replace"))
    _, colon, rest = text.partition(":")
    for each in (text, rest.strip()) if colon else (text,):
        try:
            nodes = ast.parse(each).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return tuple(pair for node in nodes for pair in _pairs(node))
    return ()


def _pairs(node: ast.stmt) -> Iterator[tuple[str, str]]:
    import ast  # start-up, as above

    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is not None:
                yield alias.name, alias.asname
            else:
                head = alias.name.partition(".")[0]
                yield head, head
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            yield (f"{module}.{alias.name}" if node.module else module + alias.name), alias.asname or alias.name
