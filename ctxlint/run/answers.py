"""Answers to what a file has to know of its project: who declares an operator, changes a dict, or derives a class.

The files of a project are searched by their bytes, once for all questions; only those that may answer one are parsed.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

from ctxlint.model.index.module_stores import ANY_NAME, assigned_in, may_set_any, set_by_name
from ctxlint.model.index.named_patches import names_methods
from ctxlint.model.index.outside_facts import Declaration, ProjectQuestion
from ctxlint.model.index.replaced_names import may_replace
from ctxlint.named_tuples import NamedTuple
from ctxlint.run.loaded_together import loaded_with
from ctxlint.source.ast_tree import tree_of
from ctxlint.source.discover import path_of
from ctxlint.source.modules import module_name
from ctxlint.source.reading import content_or_nothing
from ctxlint.source.scanner import Mentions

if TYPE_CHECKING:
    import ast
    from collections.abc import Container, Hashable, Iterable, Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.index.outside_facts import FileFacts, OutsideFacts
    from ctxlint.source.discover import Found
    from ctxlint.source.imports import Imports
    from ctxlint.source.scanner import Search

Other = tuple["Found", "Settings"]
"""A file that was only scanned, with the settings of the folder that it was found from."""

Mentioning = Callable[["Iterable[Other]", "Search"], "Iterable[Other]"]
"""The files that a search finds."""


class ProjectAnswers:
    """What was found for each question about a project, which its root identifies: the files that answer it."""

    def __init__(self) -> None:
        """Nothing is searched before the first question."""
        self._found: dict[tuple[str, ProjectQuestion], list[str]] = {}
        self._packages: dict[tuple[str, ProjectQuestion], list[ProjectQuestion]] = defaultdict(list)
        self._runners: dict[tuple[str, ProjectQuestion], list[_Runner]] = defaultdict(list)
        self._loaded_with: dict[str, dict[str, bool]] = defaultdict(dict)

    def search(
        self, members: Iterable[FileFacts], found_in: Callable[[str, Search | None], Iterable[Other]], which: Mentioning
    ) -> None:
        """Find the answers to the questions of some files.

        ``found_in`` finds files in the project with a root, and ``which`` finds those among some files.
        """
        new: dict[str, set[ProjectQuestion]] = defaultdict(set)
        asking = [facts for facts in members if facts.asked]
        for facts in asking:
            new[facts.root].update(facts.asked)
        for root, asked in new.items():
            todo = asked
            while todo := {each for each in todo if (root, each) not in self._found}:
                self._found.update(((root, each), []) for each in todo)
                found = {path_of(each[0]): each for each in found_in(root, Answering(todo))}
                todo = {
                    lead
                    for path, other in found.items()
                    for each in sorted(todo)
                    if each.path != path
                    for lead in self._learn(root, each, other, which)
                }
            self._relate(root, [facts for facts in asking if facts.root == root], found_in)

    def _relate(
        self, root: str, asking: Iterable[FileFacts], found_in: Callable[[str, Search | None], Iterable[Other]]
    ) -> None:
        """Note which of the files that ask about names of torch may be loaded together with those that replace them."""
        wanted: dict[str, set[str]] = defaultdict(set)
        for facts in asking:
            for each in facts.asked:
                for path in self._found[root, each] if each.deed == "replaces" else ():
                    if facts.path not in self._loaded_with[path]:
                        wanted[path].add(facts.path)
        if not wanted:
            return
        files = _paths(found_in(root, None))
        for path, members in wanted.items():
            related = loaded_with(path, members, files, lambda search: _paths(found_in(root, search)))
            self._loaded_with[path].update((each, each in related) for each in members)

    def _learn(self, root: str, asked: ProjectQuestion, other: Other, which: Mentioning) -> Iterator[ProjectQuestion]:
        """Note whether a file answers a question; the questions that this leads to.

        A package that imports a name is asked about like the file that defines it. Where a function modifies what
        another one returns, it matters who calls it.
        """
        path = path_of(other[0])
        is_left_out = asked.deed == "replaces" and _is_no_part(os.path.relpath(path, root))
        times = 0 if is_left_out else _times_answered(asked, other, which)
        runners = _runners_in(path, asked) if times and asked.deed == "modifies" else ()
        if runners:
            self._runners[root, asked] += runners
            yield from (question for runner in runners for question in (runner.tracked, runner.untracked))
        else:
            self._found[root, asked] += [path] * times
        if os.path.basename(path) in _PACKAGE and _is_passed_on(asked) and which([other], Answering([asked])):
            again = asked._replace(path=path)
            self._packages[root, asked].append(again)
            yield again

    def _answers(self, root: str, asked: ProjectQuestion) -> list[str]:
        """The files that answer a question, also through packages that pass the name on."""
        every, todo = dict[ProjectQuestion, None](), [asked]
        while todo:
            each = todo.pop()
            if each not in every:
                every[each] = None
                todo += self._packages.get((root, each), ())
        found = [path for each in every for path in self._found[root, each]]
        runners = (runner for each in every for runner in self._runners.get((root, each), ()))
        return [*found, *(runner.path for runner in runners if self._may_be_tracked(root, runner))]

    def _may_be_tracked(self, root: str, runner: _Runner) -> bool:
        """Whether grad mode may be on where a function is called; also if nothing calls it."""
        untracked = runner.is_untracked or bool(self._answers(root, runner.untracked))
        return not untracked or bool(self._answers(root, runner.tracked))

    def given_to(self, facts: FileFacts, outside: OutsideFacts, *, complete: bool) -> OutsideFacts:
        """The outside facts of a file with the answers; unless the search was ``complete``, the rest may say no."""
        found = {each: self._answers(facts.root, each) for each in facts.asked}
        for each, paths in found.items():
            if each.deed == "replaces":
                found[each] = [path for path in paths if self._loaded_with[path].get(facts.path, True)]
        operators = ((each.name, paths) for each, paths in found.items() if complete and not each.path)
        declared = (Declaration(name, paths[0]) for name, paths in operators if len(paths) == 1)
        names = ((each, paths) for each, paths in found.items() if each.path and not each.about_a_use)
        changed = [each for each, paths in names if paths or not complete]
        changed += [
            each._replace(name=name)
            for each in changed
            if each.deed == "assigns"
            for name in (_assigned_in(found[each], each) if complete else (ANY_NAME,))
        ]
        using = sorted({path for each, paths in found.items() if each.about_a_use and complete for path in paths})
        return replace(outside, declared=tuple(declared), changed=tuple(changed), using=tuple(using))


class Answering:
    """Finds the files that may answer one of some questions."""

    def __init__(self, asked: Iterable[ProjectQuestion]) -> None:
        """``asked`` are the questions."""
        self.asked = tuple(sorted(asked))
        special = {each._replace(position=-1) for each in self.asked if _is_special(each)}
        self._replaced = tuple(sorted(each.name for each in special if each.deed == "replaces"))
        self._special = frozenset(each for each in special if each.deed != "replaces")
        imported: dict[str, set[str]] = defaultdict(set)
        for each in self.asked:
            if not _is_special(each):
                imported[module_name(each.path)].add(_imported(each))
        self._importing = Mentions(imported)

    @property
    def question(self) -> str:
        """All questions."""
        return repr(self.asked)

    @property
    def parts(self) -> frozenset[Hashable]:
        """The questions."""
        return frozenset(self.asked)

    def limited_to(self, parts: Container[Hashable]) -> Answering:
        """A search for some of these questions."""
        return Answering(each for each in self.asked if each in parts)

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes may answer one."""
        return (
            self._importing.in_data(data)
            or any(_mentions(data, each) for each in self._special)
            or (bool(self._replaced) and may_replace(data, self._replaced))
        )

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        if self._importing.in_file(path, imports) or any(
            all(imports.holds(path, word) for word in _words_for(each)) and _mentions(imports.content(path), each)
            for each in self._special
        ):
            return True
        return bool(self._replaced) and may_replace(imports.content(path), self._replaced)


class Storing:
    """Finds the files that set, or may set, one of some attributes of whatever object."""

    def __init__(self, names: frozenset[str]) -> None:
        """``names`` are the attributes."""
        self.names = names

    @property
    def question(self) -> str:
        """The attributes."""
        return f"stores {sorted(self.names)}"

    @property
    def parts(self) -> frozenset[Hashable]:
        """The attributes."""
        return frozenset((Storing, name) for name in self.names)

    def limited_to(self, parts: Container[Hashable]) -> Storing:
        """A search for some of these attributes."""
        return Storing(frozenset(name for name in self.names if (Storing, name) in parts))

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes may set one."""
        from ctxlint.model.index.attribute_stores import may_store

        return bool(may_store(data, self.names))

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        return self.in_data(imports.content(path))


class NamingMethods:
    """Finds the files with strings that name a method of the protocol, which may replace it."""

    question = "names methods"

    @property
    def parts(self) -> frozenset[Hashable]:
        """It has only one."""
        return frozenset({NamingMethods})

    def limited_to(self, parts: Container[Hashable]) -> NamingMethods:  # noqa: ARG002
        """The same."""
        return self

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes has one."""
        return names_methods(data)

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        return self.in_data(imports.content(path))


class AnsweringOften:
    """Finds the files that answer one question so many times; those whose bytes may answer it are parsed."""

    def __init__(self, asked: ProjectQuestion, times: int) -> None:
        """``times`` may be more than 1 for declarations."""
        self._asked = asked
        self._times = times

    @property
    def question(self) -> str:
        """The question, and how often it is answered."""
        return repr((self._asked, self._times))

    @property
    def parts(self) -> frozenset[Hashable]:
        """It has only one."""
        return frozenset({(self._asked, self._times)})

    def limited_to(self, parts: Container[Hashable]) -> AnsweringOften:  # noqa: ARG002
        """The same."""
        return self

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes answers it."""
        if not _mentions(data, self._asked):
            return False
        if self._asked.answered_by_bytes:
            return True
        if self._asked.deed == "assigns":
            return bool(_names_assigned(data, module_name(self._asked.path)))
        from ctxlint.model.index.project_answers import times_answered

        return times_answered(self._asked, _tree_of(data)) >= self._times

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        return self.in_data(imports.content(path))


def _times_answered(asked: ProjectQuestion, other: Other, which: Mentioning) -> int:
    """How often a file answers a question; a second declaration of an operator is as bad as a third."""
    most = 2 if asked.deed == "declares" else 1
    return sum(1 for _ in takewhile(lambda times: [*which([other], AnsweringOften(asked, times))], range(1, most + 1)))


class _Runner(NamedTuple):
    """A function in which something happens, and whether its file calls it where grad mode is off."""

    path: str
    name: str
    is_untracked: bool

    @property
    def tracked(self) -> ProjectQuestion:
        """Who else calls it where grad mode may be on."""
        return ProjectQuestion("tracks", self.path, self.name)

    @property
    def untracked(self) -> ProjectQuestion:
        """Who else calls it where grad mode is off."""
        return ProjectQuestion("untracks", self.path, self.name)


def _assigned_in(paths: Iterable[str], asked: ProjectQuestion) -> list[str]:
    """The names that some files set in the module that a question is about."""
    module = module_name(asked.path)
    return sorted({name for path in paths for name in _names_assigned(content_or_nothing(path), module)})


@lru_cache(maxsize=256)
def _names_assigned(data: bytes, module: str) -> frozenset[str]:
    """The names that a file sets in a module: in an editor, one is asked for after each of many keystrokes."""
    of_builtins = set_by_name(data) if module.encode("utf-8", "surrogatepass") not in data else None
    return assigned_in(_tree_of(data), module) if of_builtins is None else of_builtins


def _runners_in(path: str, asked: ProjectQuestion) -> list[_Runner]:
    """The functions of a file that modify a result, if no other code does, and it calls none with grad mode on."""
    from ctxlint.model.index.project_answers import runners_in

    tree = _tree_of(content_or_nothing(path))
    found = [_Runner(path, *each) for each in runners_in(tree, asked.name)] if tree is not None else []
    return found if all(each.name for each in found) else []


def _is_no_part(path: str) -> bool:
    """Whether a file tests, documents or installs its project: what it replaces, it replaces for that time."""
    *folders, name = path.split(os.sep)
    in_folder = not {"test", "tests", "doc", "docs"}.isdisjoint(folders)
    return in_folder or name.startswith(("test_", "conftest.")) or path == "setup.py"


def _paths(others: Iterable[Other]) -> list[str]:
    """The absolute paths of some files."""
    return [path_of(each) for each, _settings in others]


_PACKAGE = ("__init__.py", "__init__.pyi")


def _is_passed_on(asked: ProjectQuestion) -> bool:
    """Whether a question is about those who import a name: they may import it from a package that does."""
    return bool(asked.path) and asked.deed not in _WITHOUT_IMPORTS


_WITHOUT_IMPORTS = ("assigns", "chooses", "differentiates", "passes-created", "replaces", "sets")
"""The deeds of files that need not import the name."""


@contextmanager
def knowing(text: str, tree: ast.Module | None) -> Iterator[None]:
    """During this context, a text, whose tree this is, and other files are not parsed again."""
    token = _TREES.set({} if tree is None else {text.encode("utf-8", "surrogatepass"): tree})
    try:
        yield
    finally:
        _TREES.reset(token)


_TREES: ContextVar[dict[bytes, ast.Module | None] | None] = ContextVar("_TREES", default=None)
_MOST_TREES = 16


def _tree_of(data: bytes) -> ast.Module | None:
    """The tree of a file, for several questions in succession."""
    known = _TREES.get()
    if known is None or (data not in known and len(known) >= _MOST_TREES):
        return _parsed(data)
    if data not in known:
        known[data] = _parsed(data)
    return known[data]


@lru_cache(maxsize=1)
def _parsed(data: bytes) -> ast.Module | None:
    return tree_of(data.decode("utf-8", "replace"))


def _mentions(data: bytes, asked: ProjectQuestion) -> bool:
    """Whether a file may answer a question, according to its bytes: it imports the name, or declares an operator."""
    if not all(word in data for word in _words_for(asked)):
        return False
    if asked.deed == "differentiates":
        return any(each in data for each in (b"Autograd", b"register_autograd"))
    if not asked.path:
        return _DECLARES(data) is not None
    if asked.deed == "sets":
        return asked.name.encode() in data or any(each in data for each in (b"setattr", b"__dict__", b"sys.modules"))
    if asked.deed == "replaces":
        return may_replace(data, (asked.name,))
    if asked.deed == "assigns":
        return may_set_any(data, module_name(asked.path))
    if asked.deed == "chooses":
        return any(each in data for each in (b"ersion", b"ERSION", b"hasattr"))
    if asked.deed == "passes-created":  # it may import the name from a package that does, as the answer only silences
        return True
    named = _imported(asked).encode() in data or b"import *" in data
    return named and _mentions_of(asked).in_data(data)


@lru_cache(maxsize=256)
def _words_for(asked: ProjectQuestion) -> tuple[bytes, ...]:
    """The words that a file contains if it may answer a question."""
    if asked.deed in ("sets", "assigns", "replaces"):
        return ()
    if not asked.path and asked.deed != "differentiates":
        return tuple(map(str.encode, reversed(asked.name.split("::"))))  # that of its namespace is less rare
    if asked.deed == "registers":
        return (b"register_autograd",)
    if asked.deed not in _WITHOUT_IMPORTS:
        return ()
    more = (b"requires_grad",) if asked.deed == "passes-created" else ()
    return (asked.name.rpartition(".")[2].encode() if asked.deed == "chooses" else asked.name.encode(), *more)


def _is_special(asked: ProjectQuestion) -> bool:
    """Whether more than the imports of a file decide whether it may answer a question."""
    return not asked.path or asked.deed in ("registers", *_WITHOUT_IMPORTS)


def _imported(asked: ProjectQuestion) -> str:
    """What a file that answers a question imports: the class, if it is about a method."""
    return asked.name.partition(".")[0] if asked.deed == "modifies" else asked.name


@lru_cache(maxsize=64)
def _mentions_of(asked: ProjectQuestion) -> Mentions:
    return Mentions({module_name(asked.path): [_imported(asked)]})


_DECLARES = re.compile(rb"custom_op|triton_op|\bdefine\b").search
