"""One program in several files: the same text, cut between top-level statements, with imports of what each part needs.

``python -m tests.splitting FILE [FILE ...]`` compares the findings of files of your own with those of their parts.
"""

from __future__ import annotations

import ast
import re
import sys
from itertools import combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.config.configuration import Configuration
from ctxlint.config.settings import ALL, Settings
from ctxlint.result import FileResult
from ctxlint.run.in_project import forget_other_files
from ctxlint.run.pipeline import lint_paths
from ctxlint.source.decode import decode
from ctxlint.source.modules import forget
from ctxlint.source.reading import read_bytes
from ctxlint.source.slices import ParsedStatements
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.diagnostic import Diagnostic

EVERY_RULE = Settings(select=(ALL,), ignore=("CTX910",))
WITH_LAYOUT_ON_DEMAND = EVERY_RULE._replace(ignore=("CTX110", "CTX910"))
"""All rules but the one for which LibCST parses everything: files are read as with the rules that are on by default."""
NAMES = ("part_a", "part_b", "part_c")


class Found(NamedTuple):
    """A finding, with the places that the whole program has."""

    place: tuple[int, ...]
    code: str
    message: str
    fix: tuple[object, ...]


class Part(NamedTuple):
    """Some top-level statements: the lines they take, the names they bind, and those that they mention."""

    lines: range
    bound: frozenset[str]
    used: frozenset[str]


def parts_of(text: str) -> tuple[list[Part], list[range]]:
    """The top-level statements of a program, and the lines of its import statements, which every part gets."""
    statements, imports = [], []
    begin = 0
    for node in ast.parse(text).body:
        lines = range(begin, node.end_lineno or node.lineno)
        begin = lines.stop
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_for_types(node):
            imports.append(range(node.lineno - 1, lines.stop))
        else:
            statements.append(Part(lines, frozenset(_bound(node)), frozenset(_used(node))))
    return statements, imports


def _is_for_types(node: ast.stmt) -> bool:
    """Whether a statement imports names for type checkers, which no other file can import from there."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement binds in the module, also when a function in it is called."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        yield from (name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names)
        return
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef, ast.MatchAs, ast.MatchStar)) and each.name is not None:
            yield each.name
        elif isinstance(each, ast.MatchMapping) and each.rest is not None:
            yield each.rest
        elif isinstance(each, ast.alias):
            yield (each.asname or each.name).partition(".")[0]


def _used(node: ast.stmt) -> Iterator[str]:
    """The names that a statement mentions, in strings too: annotations, ``__all__``, ``globals()[...]``."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, (ast.Global, ast.Nonlocal)):
            yield from each.names
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and len(each.value) < 200:
            yield from re.findall(r"\w+", each.value)


def splits(text: str, files: int) -> Iterator[dict[str, str]]:
    """The program split into this many files, at every place where no file needs a later one or rebinds a name.

    Every part keeps its lines where they were: the others are blank, but for the import of what earlier parts define.
    """
    if "\f" in text or "\r" in text or re.search(r"import \*|__all__|globals\(\)|[ =]__name__\)", text):
        return
    statements, imports = parts_of(text)
    for cuts in combinations(range(1, len(statements)), files - 1):
        bounds = [0, *cuts, len(statements)]
        groups = [statements[start:end] for start, end in pairwise(bounds)]
        made = _files(text, groups, imports)
        if made is not None:
            yield made


def _files(text: str, groups: Sequence[Sequence[Part]], imports: Sequence[range]) -> dict[str, str] | None:
    lines = text.split("\n")
    bound = [frozenset[str]().union(*(each.bound for each in group)) for group in groups]
    used = [frozenset[str]().union(*(each.used for each in group)) for group in groups]
    made: dict[str, str] = {}
    for number, group in enumerate(groups):
        later = frozenset[str]().union(*bound[number + 1 :])
        if used[number] & later or bound[number] & later:
            return None
        kept = {line for rows in (*imports, *(each.lines for each in group)) for line in rows}
        part = [line if at in kept else "" for at, line in enumerate(lines)]
        needed = [
            f"from {NAMES[at]} import {', '.join(sorted(used[number] & bound[at]))}"
            for at in range(number)
            if used[number] & bound[at]
        ]
        free = [
            at
            for at in range(group[0].lines.start)
            if at not in kept and at >= max((r.stop for r in imports if "__future__" in lines[r.start]), default=0)
        ]
        if needed and not free:
            return None
        if needed:
            part[free[-1]] = "; ".join(needed)
        made[f"{NAMES[number]}.py"] = "\n".join(part)
    return made


def findings(files: dict[str, str], settings: Settings = EVERY_RULE) -> set[Found]:
    """What one run over these files finds."""
    forget()
    forget_other_files()
    with TemporaryDirectory() as folder:
        Path(folder, ".git").mkdir()
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8", newline="")
        results = list(lint_paths([folder], Configuration(fixed=settings)))
        return {_found(each, result) for result in results for each in result.diagnostics}


def found_in(text: str, diagnostics: Iterable[Diagnostic]) -> set[Found]:
    """What all rules found in a program that was linted as one text, but for those that ``EVERY_RULE`` ignores."""
    result = FileResult("whole.py", Source("whole.py", text))
    return {_found(each, result) for each in diagnostics if each.code not in EVERY_RULE.ignore}


def _found(diagnostic: Diagnostic, result: FileResult) -> Found:
    source = result.source or decode(result.path, read_bytes(result.path))
    fix: tuple[object, ...] = ()
    if diagnostic.fix is not None:
        edits = [
            (*source.position(edit.start), *source.position(edit.end), _SPELLING.sub(r"\1", edit.content))
            for edit in diagnostic.fix.edits
            if not source.line(source.position(edit.start)[0]).startswith("from torch")
            and not _IMPORT.fullmatch(edit.content)
        ]
        title = _SPELLING.sub(r"\1", diagnostic.fix.message).removesuffix(" and its import")
        fix = (diagnostic.fix.applicability.value, title, *sorted(edits))
    message = re.sub(r" of `(?:part_.|whole)\.py`", "", diagnostic.message)
    return Found((*diagnostic.span.start, *diagnostic.span.end), diagnostic.code, message, fix)


_SPELLING = re.compile(r"\btorch\.(?:\w+\.)*(\w+)")
_IMPORT = re.compile(r"from torch[\w.]* import \w+\n")
"""Which names are free in a file decides how a fix writes one of torch: in full, or with an import."""


def differences(
    text: str, files: int, whole: set[Found] | None = None, settings: Settings = EVERY_RULE
) -> Iterator[tuple[dict[str, str], set[Found], set[Found]]]:
    """The splits with different findings: the files, lost findings and added findings.

    ``whole`` are the findings of the program as one file, if they are known. LibCST parses a statement once for all
    splits: its tree depends on nothing but its text.
    """
    parsed = ParsedStatements(readings=1_000, limit=10 * len(text))
    for split in splits(text, files):
        if whole is None:
            whole = findings({"whole.py": text}, settings)
        with parsed.in_use():
            parts = findings(split, settings)
        if parts != whole:
            yield split, whole - parts, parts - whole


def main(paths: Sequence[str]) -> int:
    """Print the differences; 1 if there are any."""
    total = different = 0
    for path in paths:
        text = Path(path).read_text(encoding="utf-8")
        total += sum(1 for _ in splits(text, 2))
        for split, lost, added in differences(text, 2):
            different += 1
            print(
                f"{path}: {[next((n for n, line in enumerate(each.split(chr(10)), 1) if line and 'import' not in line), 0) for each in split.values()]}"
            )
            for sign, some in (("lost", lost), ("added", added)):
                for each in sorted(some, key=str):
                    print(f"  {sign}: {each.place} {each.code} {each.message} {each.fix}")
    print(f"{different} of {total} splits differ")
    return int(different > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
