"""A whole file as ``ast`` sees it: which names its imports bind, where its expressions stand, and imports put in."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Union

from ctxlint.files.nesting import too_deep_for_ast
from ctxlint.files.source import Position
from ctxlint.fixes.edit import Edit

if TYPE_CHECKING:
    from ctxlint.files.source import Source

Import = Union[ast.Import, ast.ImportFrom]


@lru_cache(maxsize=1)
def module_code(source: Source) -> ModuleCode | None:
    """The code of a file; None where ``ast`` cannot read it."""
    if too_deep_for_ast(source.text) is not None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the user's string is not ours to report
            return ModuleCode(source, ast.parse(source.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True)
class ModuleCode:
    """A file and its tree. Offsets are 0-based characters, ends exclusive."""

    source: Source
    module: ast.Module

    # Names

    @cached_property
    def times_bound(self) -> Counter[str]:
        """How many places in the file bind each name, in any scope."""
        found: Counter[str] = Counter()
        for node in ast.walk(self.module):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found[node.id] += 1
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
                found[node.name or ""] += 1
            elif isinstance(node, ast.arg):
                found[node.arg] += 1
            elif isinstance(node, ast.alias):
                found[node.asname or node.name.split(".")[0]] += 1
        return found

    def times_used(self, name: str) -> int:
        """How many places in the file read a name, in any scope."""
        return sum(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            for node in ast.walk(self.module)
        )

    def means_package(self, name: str) -> bool:
        """Whether ``name`` is a package wherever it stands: ``import name`` at the top, and no other binding."""
        plain = any(isinstance(statement, ast.Import) and _binds(statement, name) for statement in self.module.body)
        imports = sum(_binds(node, name) for node in ast.walk(self.module) if isinstance(node, ast.Import))
        return plain and self.times_bound[name] == imports

    def name_for(
        self, targets: tuple[str, ...], before: int, *, import_it: bool = True
    ) -> tuple[str, Edit | None] | None:
        """How to write one of ``targets``, names of one thing, from the 1-based line ``before`` on, and its import.

        The name that an import gives it already. Else the name of the first one with an import, or all of it after
        ``torch.`` or the like; ``import_it`` says which of these is better. None where the names mean something else,
        or nothing of that package is imported at the top.
        """
        for statement in self._imports(before):
            for alias in statement.names if isinstance(statement, ast.ImportFrom) else ():
                local = alias.asname or alias.name
                if f"{_origin(statement)}.{alias.name}" in targets and self.times_bound[local] == 1:
                    return local, None
        module, _, name = targets[0].rpartition(".")
        spelled = targets[0] if self.means_package(module.partition(".")[0]) else None
        line = self._import_line(module, name, before) if not self.times_bound[name] else None
        if line is not None and (import_it or spelled is None):
            return name, line
        return None if spelled is None else (spelled, None)

    def _imports(self, before: int) -> list[Import]:
        """The imports at the top level of the file, above a line."""
        body = self.module.body
        return [each for each in body if isinstance(each, (ast.Import, ast.ImportFrom)) and each.lineno < before]

    def _import_line(self, module: str, name: str, before: int) -> Edit | None:
        """An import in a line of its own, below the last one of the same package that sorts before it."""
        package = module.partition(".")[0]
        own = [each for each in self._imports(before) if package in _packages(each) and self._ends_its_line(each)]
        sorted_before = [each for each in own if isinstance(each, ast.Import) or _origin(each) <= module]
        if not own:
            return None
        above = (sorted_before or own)[-1]
        start = self.source.line_starts[above.end_lineno or above.lineno]
        return Edit(start, start, f"from {module} import {name}\n")

    def _ends_its_line(self, statement: ast.stmt) -> bool:
        """Whether the line after a statement is no part of another one."""
        last = statement.end_lineno or statement.lineno
        spans = ((each.lineno, each.end_lineno or each.lineno) for each in self.module.body if each is not statement)
        return last < self.source.line_count and not any(first <= last < end for first, end in spans)

    # Places

    def start(self, node: ast.expr | ast.keyword) -> int:
        """Where an expression starts, its parentheses not included."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        """Where an expression ends, its parentheses not included."""
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        """The offset of a place that ``ast`` counts in bytes."""
        before = self.source.line(line).encode("utf-8", "surrogatepass")[:column]
        return self.source.offset(Position(line, len(before.decode("utf-8", "surrogatepass")) + 1))


def _binds(statement: ast.Import, package: str) -> bool:
    return any(alias.asname is None and alias.name.split(".")[0] == package for alias in statement.names)


def _origin(statement: Import) -> str:
    """The module that ``from`` names; empty for any other import, and for one that is relative."""
    return (statement.module or "") if isinstance(statement, ast.ImportFrom) and statement.level == 0 else ""


def _packages(statement: Import) -> set[str]:
    """The packages that an import takes from."""
    names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [_origin(statement)]
    return {name.partition(".")[0] for name in names}
