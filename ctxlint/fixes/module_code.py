"""A whole file as ``ast``: the names that its imports bind, positions of its expressions, and adding imports."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter
from dataclasses import field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ctxlint.fix import Edit
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in
from ctxlint.source.source import Position

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, SourceFile
    from ctxlint.source.source import Source

Import = ast.Import | ast.ImportFrom


@record
class Names:
    """How a file uses names, in any scope: how often it binds and reads each one.

    ``texts`` are its string constants.
    """

    bound: dict[str, int] = field(default_factory=Counter)
    read: dict[str, int] = field(default_factory=Counter)
    texts: set[str] = field(default_factory=set)
    plain_imports: list[ast.Import] = field(default_factory=list)
    decorators: list[ast.expr] = field(default_factory=list)


def names_in(module: ast.Module) -> Names:
    """The names of a file, statement by statement."""
    parts = [_known_names(statement) for statement in module.body]
    return Names(
        _Sums([each.bound for each in parts]),
        _Sums([each.read for each in parts]),
        set().union(*(each.texts for each in parts)),
        [statement for each in parts for statement in each.plain_imports],
        [decorator for each in parts for decorator in each.decorators],
    )


class _Sums(dict[str, int]):
    """The sums of what several counters count, added up when they are asked for."""

    def __init__(self, counters: list[dict[str, int]]) -> None:
        self._counters = counters

    def __missing__(self, name: str) -> int:
        self[name] = found = sum(each.get(name, 0) for each in self._counters)
        return found


def _known_names(statement: ast.stmt) -> Names:
    """Cached as long as the tree: in an editor most statements are the same ones after each keystroke."""
    found = _KNOWN.get(statement)
    if found is None:
        found = _KNOWN[statement] = _names_in(statement)
    return found


def _names_in(statement: ast.stmt) -> Names:
    """The names of a top-level statement, from one walk over it."""
    found = Names()
    node: Any
    for node in nodes_in(statement):
        kind = type(node)
        if kind is ast.Name:
            (found.read if isinstance(node.ctx, ast.Load) else found.bound)[node.id] += 1
        elif kind is ast.Constant:
            if isinstance(node.value, str):
                found.texts.add(node.value)
        elif kind is ast.arg:
            found.bound[node.arg] += 1
        elif kind is ast.alias:
            found.bound[node.asname or node.name.split(".")[0]] += 1
        elif kind in _DEFINITIONS:
            found.bound[node.name] += 1
            found.decorators.extend(node.decorator_list)
        elif kind is ast.ExceptHandler:
            found.bound[node.name or ""] += 1
        elif kind is ast.Import:
            found.plain_imports.append(node)
    return found


_DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_KNOWN: WeakKeyDictionary[ast.stmt, Names] = WeakKeyDictionary()


def module_code(file: FunctionClass | SourceFile) -> ModuleCode | None:
    """The code of a file, or of the file of a Function; None if ``ast`` cannot parse it."""
    file.source.read_whole()
    return None if file.tree is None else _module_code(file.source, file.tree)


@lru_cache(maxsize=1)
def _module_code(source: Source, tree: ast.Module) -> ModuleCode:
    return ModuleCode(source, tree)


@record
class ModuleCode:
    """A file and its tree. Offsets are 0-based characters, ends exclusive."""

    source: Source
    module: ast.Module

    # Names

    @cached_property
    def notes(self) -> dict[object, Any]:
        """Cached results about it."""
        return {}

    @cached_property
    def names(self) -> Names:
        """How the whole file uses each name."""
        return names_in(self.module)

    def times_bound(self, name: str) -> int:
        """How many places in the file bind a name, in any scope."""
        return self.names.bound[name] if self._mentions(name) else 0

    def _mentions(self, name: str) -> bool:
        """Whether the text contains the name: most files do not contain the one that an import would bind."""
        text = self.source.text
        return name in (text if text.isascii() else unicodedata.normalize("NFKC", text))

    def means_package(self, name: str) -> bool:
        """Whether ``name`` is a package everywhere: ``import name`` at the top, and no other binding."""
        plain = any(isinstance(statement, ast.Import) and _binds(statement, name) for statement in self.module.body)
        return plain and self.times_bound(name) == sum(_binds(each, name) for each in self.names.plain_imports)

    def name_for(
        self, targets: tuple[str, ...], before: int, *, import_it: bool = True
    ) -> tuple[str, Edit | None] | None:
        """How to write one of ``targets``, names of one object, from the 1-based line ``before`` on, and its import.

        Prefers a name that an import already binds. Otherwise, the name of the first target with an import, or its full
        name with ``torch.`` or the like; ``import_it`` decides between these. None if the names mean something else, or
        nothing of that package is imported at the top.
        """
        for statement in self._imports(before):
            for alias in statement.names if isinstance(statement, ast.ImportFrom) else ():
                local = alias.asname or alias.name
                if f"{_origin(statement)}.{alias.name}" in targets and self.times_bound(local) == 1:
                    return local, None
        module, _, name = targets[0].rpartition(".")
        line = self._import_line(module, name, before) if not self.times_bound(name) else None
        if line is not None and import_it:
            return name, line
        if self.means_package(module.partition(".")[0]):
            return targets[0], None
        return None if line is None else (name, line)

    def _imports(self, before: int) -> list[Import]:
        """The imports at the top level of the file, above a line."""
        body = self.module.body
        return [each for each in body if isinstance(each, (ast.Import, ast.ImportFrom)) and each.lineno < before]

    def _import_line(self, module: str, name: str, before: int) -> Edit | None:
        """An import on a line of its own, where isort would put it among those next to one of the same package."""
        same = [each for each in self._imports(before) if isinstance(each, ast.ImportFrom) and _origin(each) == module]
        joined = self._joined(same[-1], name) if same else None
        if joined is not None:
            return joined
        package = module.partition(".")[0]
        own = [each for each in self._imports(before) if package in _packages(each) and self._ends_its_line(each)]
        sorted_before = [each for each in own if isinstance(each, ast.Import) or _origin(each) <= module]
        if not own:
            return None
        above = self._last_before((sorted_before or own)[-1], module)
        start = self.source.line_starts[above.end_lineno or above.lineno]
        return Edit(start, start, f"from {module} import {name}\n")

    def _joined(self, statement: ast.ImportFrom, name: str) -> Edit | None:
        """Add a name to the names of a statement on one line, in the order of isort; None if the line gets too long."""
        line = self.source.line(statement.lineno).rstrip("\r\n")
        written = ", ".join(f"{each.name} as {each.asname}" if each.asname else each.name for each in statement.names)
        start = f"from {statement.module} import "
        if line != start + written or written == "*" or len(line) + len(name) + 2 > _WIDTH:
            return None
        after = next((each.name for each in statement.names if _rank(each.name) > _rank(name)), None)
        offset = self.source.line_starts[statement.lineno - 1]
        if after is None:
            return Edit(offset + len(line), offset + len(line), f", {name}")
        at = offset + len(start) + re.search(rf"(?<!\w){after}(?!\w)", written).start()  # type: ignore[union-attr]
        return Edit(at, at, f"{name}, ")

    def _last_before(self, near: Import, module: str) -> Import:
        """Of the adjacent imports around one, the last that isort puts above an import from a module."""
        body = self.module.body
        around = body.index(near)
        first = last = around
        while first > 0 and _follows(body[first], body[first - 1]):
            first -= 1
        while last + 1 < len(body) and _follows(body[last + 1], body[last]):
            last += 1
        block = [each for each in body[first : last + 1] if isinstance(each, (ast.Import, ast.ImportFrom))]
        froms = [isinstance(each, ast.ImportFrom) for each in block]
        modules = [_origin(each).lower() for each in block if isinstance(each, ast.ImportFrom)]
        if froms != sorted(froms) or modules != sorted(modules) or not all(map(self._ends_its_line, block)):
            return near  # in another order
        above = [each for each in block if isinstance(each, ast.Import) or _origin(each).lower() <= module.lower()]
        return above[-1] if above else near

    def _ends_its_line(self, statement: ast.stmt) -> bool:
        """Whether the line after a statement belongs to no other one."""
        last = statement.end_lineno or statement.lineno
        spans = ((each.lineno, each.end_lineno or each.lineno) for each in self.module.body if each is not statement)
        return last < self.source.line_count and not any(first <= last < end for first, end in spans)

    # Positions

    def start(self, node: ast.expr | ast.keyword) -> int:
        """The start of an expression, without its parentheses."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        """The end of an expression, without its parentheses."""
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        """The offset of a position that ``ast`` counts in bytes."""
        before = self.source.line(line).encode("utf-8", "surrogatepass")[:column]
        return self.source.offset(Position(line, len(before.decode("utf-8", "surrogatepass")) + 1))


def _binds(statement: ast.Import, package: str) -> bool:
    return any(alias.asname is None and alias.name.split(".")[0] == package for alias in statement.names)


_WIDTH = 88


def _rank(name: str) -> tuple[int, str]:
    """The position of an imported name for isort: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


def _follows(statement: ast.stmt, before: ast.stmt) -> bool:
    """Whether both are imports, on adjacent lines."""
    adjacent = statement.lineno == (before.end_lineno or before.lineno) + 1
    return adjacent and all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in (statement, before))


def _origin(statement: Import) -> str:
    """The module of a ``from`` import; empty for any other import, and for a relative one."""
    return (statement.module or "") if isinstance(statement, ast.ImportFrom) and statement.level == 0 else ""


def _packages(statement: Import) -> set[str]:
    """The packages of an import."""
    names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [_origin(statement)]
    return {name.partition(".")[0] for name in names}
