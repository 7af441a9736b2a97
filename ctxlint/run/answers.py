"""Answers to what a file has to know of its project: who declares an operator, changes a dict, or derives a class.

The files of a project are searched by their bytes, once for all questions; only those that may answer one are parsed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.outside_facts import Declaration
from ctxlint.source.modules import module_name
from ctxlint.source.reading import content_or_nothing
from ctxlint.source.scanner import Mentions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.model.index.outside_facts import FileFacts, OutsideFacts, ProjectQuestion
    from ctxlint.source.imports import Imports
    from ctxlint.source.scanner import Search


class ProjectAnswers:
    """What was found for each question about a project, which its root identifies: the files that answer it."""

    def __init__(self) -> None:
        """Nothing is searched before the first question."""
        self._found: dict[tuple[str, ProjectQuestion], list[str]] = {}

    def search(self, members: Iterable[FileFacts], files_of: Callable[[str, Search], Iterable[str]]) -> None:
        """Find the answers to the questions of some files; ``files_of`` finds files in the project with a root."""
        new: dict[str, set[ProjectQuestion]] = defaultdict(set)
        for facts in members:
            if facts.asked:
                new[facts.root].update(each for each in facts.asked if (facts.root, each) not in self._found)
        for root, asked in new.items():
            self._found.update(((root, each), []) for each in asked)
            for path in files_of(root, Answering(asked)) if asked else ():
                for each in _answered_by(path, asked):
                    self._found[root, each].append(path)

    def given_to(self, facts: FileFacts, outside: OutsideFacts, *, complete: bool) -> OutsideFacts:
        """The outside facts of a file with the answers; unless the search was ``complete``, the rest may say no."""
        found = {each: self._found[facts.root, each] for each in facts.asked}
        operators = ((each.name, paths) for each, paths in found.items() if complete and not each.path)
        declared = (Declaration(name, paths[0]) for name, paths in operators if len(paths) == 1)
        names = ((each, paths) for each, paths in found.items() if each.path and not each.about_a_use)
        changed = (each for each, paths in names if paths or not complete)
        using = sorted({path for each, paths in found.items() if each.about_a_use and complete for path in paths})
        return replace(outside, declared=tuple(declared), changed=tuple(changed), using=tuple(using))


class Answering:
    """Finds the files that may answer one of some questions."""

    def __init__(self, asked: Iterable[ProjectQuestion]) -> None:
        """``asked`` are the questions."""
        self.asked = tuple(sorted(asked))

    @property
    def question(self) -> str:
        """All questions."""
        return repr(self.asked)

    def covers(self, other: Search) -> bool:
        """Whether the other search asks nothing else."""
        return isinstance(other, Answering) and set(self.asked).issuperset(other.asked)

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes may answer one."""
        return any(_mentions(data, each) for each in self.asked)

    def in_file(self, path: str, imports: Imports, *, once: bool = False) -> bool:  # noqa: ARG002
        """Like ``in_data`` for a file."""
        return self.in_data(imports.content(path))


class Storing:
    """Finds the files that set, or may set, one of some attributes of whatever object."""

    def __init__(self, names: frozenset[str]) -> None:
        """``names`` are the attributes."""
        self.names = names

    @property
    def question(self) -> str:
        """The attributes."""
        return f"stores {sorted(self.names)}"

    def covers(self, other: Search) -> bool:
        """Whether the other search asks for nothing else."""
        return isinstance(other, Storing) and self.names >= other.names

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes may set one."""
        from ctxlint.model.index.attribute_stores import may_store

        return bool(may_store(data, self.names))

    def in_file(self, path: str, imports: Imports, *, once: bool = False) -> bool:  # noqa: ARG002
        """Like ``in_data`` for a file."""
        return self.in_data(imports.content(path))


def _answered_by(path: str, asked: Iterable[ProjectQuestion]) -> list[ProjectQuestion]:
    """The questions that a file answers: once for each declaration, as it may change a dict, or use a function."""
    data = content_or_nothing(path)
    named = [each for each in asked if each.path != path and _mentions(data, each)]
    if all(each.about_a_use for each in named):
        return named
    from ctxlint.model.index.project_answers import times_answered
    from ctxlint.source.ast_tree import tree_of

    tree = tree_of(data.decode("utf-8", "replace"))
    return [each for each in named for _ in range(times_answered(each, tree))]


def _mentions(data: bytes, asked: ProjectQuestion) -> bool:
    """Whether a file may answer a question, according to its bytes: it imports the name, or declares an operator."""
    if not asked.path:
        words = reversed(asked.name.split("::"))  # the name of the operator is rarer than its namespace
        return all(word.encode() in data for word in words) and _DECLARES(data) is not None
    if asked.deed == "registers" and b"register_autograd" not in data:
        return False
    if asked.deed == "sets":
        return asked.name.encode() in data or any(each in data for each in (b"setattr", b"__dict__", b"sys.modules"))
    if asked.deed == "chooses":
        last = asked.name.rpartition(".")[2]
        return last.encode() in data and any(each in data for each in (b"ersion", b"ERSION", b"hasattr"))
    if asked.deed == "passes-created":  # it may import the name from a package that does, as the answer only silences
        return asked.name.encode() in data and b"requires_grad" in data
    return _imported(asked).encode() in data and _mentions_of(asked).in_data(data)


def _imported(asked: ProjectQuestion) -> str:
    """What a file that answers a question imports: the class, if it is about a method."""
    return asked.name.partition(".")[0] if asked.deed == "modifies" else asked.name


@lru_cache(maxsize=64)
def _mentions_of(asked: ProjectQuestion) -> Mentions:
    return Mentions({module_name(asked.path): [_imported(asked)]})


_DECLARES = re.compile(rb"custom_op|triton_op|\bdefine\b").search
