"""Cross-file facts: how other files call the Functions of a file, subclass them, or modify them.

Each file is first linted by itself, which yields its facts for others (``FileFacts``). Names then lead to further files
that only call a Function, or only have a base in the project; and their facts lead back to the files of the Functions,
which are linted again if the facts may add a finding, suppress one, or make a fix unsafe. The final result uses all
facts. It depends only on the set of files, not on their order.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from ctxlint.config.project_files import ConfigurationError
from ctxlint.model.index.named_patches import NamedMethods, named_methods
from ctxlint.model.index.outside_facts import NOTHING, KnownNames, OutsideFacts, Target
from ctxlint.result import Candidate, FileResult
from ctxlint.run.answers import Mentioning, NamingMethods, Other, ProjectAnswers, Storing
from ctxlint.run.batches import Batches
from ctxlint.run.facts_about import FactsAboutOne, facts_about, joined
from ctxlint.run.function_names import ProjectNames, names_in
from ctxlint.source.ast_tree import tree_of
from ctxlint.source.discover import Found, path_of
from ctxlint.source.modules import root_of, root_of_file
from ctxlint.source.reading import content_or_nothing
from ctxlint.source.scanner import Mentions, Transforming

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from ctxlint.config.settings import Settings
    from ctxlint.model.index.outside_facts import FileFacts
    from ctxlint.run.project_index import ProjectIndex
    from ctxlint.source.scanner import Search

Lint = Callable[["Sequence[Candidate]"], "Iterable[FileResult]"]
"""Lints files, and yields their results in the same order."""

Admit = Callable[["Found", "Settings"], Candidate | None]
"""A scanned file as a candidate, unless its nearest settings exclude it."""


def lint_together(
    candidates: Sequence[Candidate],
    others: Sequence[Other],
    mentioning: Mentioning,
    admit: Admit,
    lint: Lint,
    index: ProjectIndex,
    at_once: int = 1,
) -> Iterator[FileResult]:
    """One result for each file: for ``candidates``, and for ``others``, whose bytes do not look like a Function's.

    ``index`` finds the other files of their projects, which may contain further facts about their Functions;
    ``at_once`` is as for ``Batches``.
    """
    run = _Run(candidates, others, mentioning, admit, lint, index)
    try:
        for todo in run.by_project(at_once):
            run.do(todo)
            roots = {root_of_file(each.path) for each in todo}
            run.spread_names(roots)
            run.spread_facts(roots)
        run.spread_facts()  # projects may call each other's Functions
    except KeyboardInterrupt:  # what is known so far; but no fix is applied that facts of another file may rule out
        yield from (each for each in run.results() if each.before is None)
        raise
    yield from run.results()


def outside_facts(
    own: Candidate, leads: Iterable[str], mentioning: Mentioning, admit: Admit, lint: Lint, index: ProjectIndex
) -> OutsideFacts:
    """The project's facts about the Functions that one file defines or calls; ``lint`` yields facts alone.

    ``leads`` are the names by which it may call Functions of other files.
    """
    run = _Run([own], (), mentioning, admit, lint, index)
    run.leads[root_of_file(own.path)].update(leads)
    run.do([own])
    run.spread_names({root_of_file(own.path)})
    newly_named = run.candidates[own.path].outside or NOTHING
    return replace(run.outside().get(own.path, NOTHING), names=newly_named.names, aliases=newly_named.aliases)


class _Run:
    """The files of a run: linted ones, by path, and all others. Only ``reported`` ones have results."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        others: Sequence[Other],
        mentioning: Mentioning,
        admit: Admit,
        lint: Lint,
        index: ProjectIndex,
    ) -> None:
        self.which_mention = mentioning
        self.admit = admit
        self.lint = lint
        self.index = index
        self.reported = {os.path.abspath(each.path) for each in candidates}
        self.reported.update(path_of(found) for found, _settings in others)
        self.given = candidates
        self.candidates: dict[str, Candidate] = {}
        self.linted: dict[str, FileResult] = {}
        self.facts_before: dict[str, FileFacts] = {}
        """The facts of the files that were linted again with those of others, as they were before."""
        self.others = others
        self.perhaps_related: dict[str, Settings] = {}
        self.leads: dict[str, set[str]] = defaultdict(set)
        self.others_by_root: dict[str, list[Other]] = defaultdict(list)
        self.passing_gradients: dict[str, tuple[str, ...]] = {}
        self.stores: dict[str, dict[str, set[str]]] = defaultdict(dict)
        self.named: dict[str, NamedMethods] = {}
        self.rests: dict[tuple[object, ...], list[Other]] = {}
        self.answers = ProjectAnswers()
        for each in others:
            self.others_by_root[root_of(each[0].folder)].append(each)

    def led(self) -> Iterator[Candidate]:
        """The other files that are reported on and may call Functions of files that are not."""
        if all(map(self.index.covers, {os.path.dirname(path) for path in self.reported})):
            return
        for path in self.reported:
            self.leads[root_of_file(path)] |= self.index.leads(path)
        for found, settings in self.others:
            names = self.index.leads(path_of(found))
            candidate = self.admit(found, settings) if names else None
            if candidate is not None:
                self.perhaps_related[candidate.path] = settings
                yield _if_related(candidate, KnownNames(tuple(sorted(names))))

    def by_project(self, at_once: int) -> list[list[Candidate]]:
        """The files to begin with, in batches."""
        batches, found = Batches(at_once), defaultdict[int, list[Candidate]](list)
        for each in (*self.given, *self.led()):
            found[batches.add(each)].append(each)
        return [found[number] for number in sorted(found)]

    def do(self, todo: Sequence[Candidate]) -> None:
        """Lint files, or lint them again."""
        for candidate, result in zip(todo, self.lint(todo)):
            self.candidates[candidate.path] = candidate._replace(outside=result.outside)
            self.linted[candidate.path] = result

    def again(self, path: str, outside: OutsideFacts) -> Candidate:
        """A linted file, to be linted again with outside facts."""
        return self.candidates[path]._replace(outside=outside, known=None, alone=self.linted[path].alone)

    def facts(self) -> Iterator[tuple[str, FileFacts]]:
        """The facts of each file that could be read, after its path."""
        for path, result in self.linted.items():
            facts = self.facts_before.get(path, result.facts)
            if facts is not None:
                yield path, facts

    def results(self) -> Iterator[FileResult]:
        """The result for each file."""
        for path, result in self.linted.items():
            if self.candidates[path].facts_only:
                continue
            if path not in self.perhaps_related or _is_about_functions(result):
                yield result._replace(facts=None, consulted=None, read=(), alone=None)
            else:
                yield FileResult(path, settings=self.perhaps_related[path])
        for found, settings in self.others:
            if found.path not in self.linted:
                yield FileResult(found.path, settings=settings)

    # Names

    def spread_names(self, roots: Container[str]) -> None:
        """Lint the files that use Functions of other files, according to names, until there are no new names."""
        before: dict[str, ProjectNames] = {}
        while True:
            names = self.names(roots)
            todo = [*self.newly_named(names), *self.mentioning(names, before)]
            if not todo:
                return
            self.do(todo)
            before = names

    def names(self, roots: Container[str]) -> dict[str, ProjectNames]:
        """By the root of a project, the names found in it so far."""
        projects: dict[str, list[FileFacts]] = defaultdict(list)
        for _path, facts in self.facts():
            root = facts.root
            if root in roots:
                projects[root].append(facts)
        return {root: names_in(members, self.leads[root]) for root, members in projects.items()}

    def newly_named(self, names: Mapping[str, ProjectNames]) -> Iterator[Candidate]:
        """The files that call something by a name that is worth resolving, and were linted without it."""
        for path, facts in self.facts():
            candidate = self.candidates[path]
            found = names.get(facts.root)
            if found is None:
                continue
            known = found.known
            outside = known.relevant_to(facts.path, facts.called)
            if outside != (candidate.outside or NOTHING):
                yield self.again(path, outside) if candidate.known is None else _if_related(candidate, known)

    def mentioning(self, names: Mapping[str, ProjectNames], before: Mapping[str, ProjectNames]) -> Iterator[Candidate]:
        """The other files that mention a new name; those that settings exclude are read once."""
        for root, each in names.items():
            new = each.since(before.get(root))
            searches: list[Search] = [Mentions(new)] if each.known.names and new else []
            if root not in before and self.defines_any(root):
                searches.append(Transforming())
            if not searches:
                continue
            for other in self.found_by(searches, self.others_by_root[root]):
                candidate = self.admit(*other)
                if candidate is not None:
                    self.perhaps_related[candidate.path] = other[1]
                    yield _if_related(candidate, each.known)
            for other in self.found_by(searches, self.rest(root)):
                with suppress(ConfigurationError):  # it is about files outside the run
                    candidate = self.admit(*other)
                    if candidate is not None:
                        yield _if_related(candidate, each.known)._replace(facts_only=True)

    def defines_any(self, root: str) -> bool:
        """Whether a file of the project defines what transforms may run: a Function, or a custom operator."""
        return any((facts.functions or facts.operators) and facts.root == root for _path, facts in self.facts())

    def found_by(self, searches: Sequence[Search], others: Iterable[Other]) -> Iterator[Other]:
        """The files that were not read yet and that one of some searches finds."""
        unread = self.unread(others)
        for search in searches:
            found = list(self.which_mention(unread, search))
            yield from found
            paths = {path_of(each) for each, _settings in found}
            unread = [each for each in unread if path_of(each[0]) not in paths] if found else unread

    def unread(self, others: Iterable[Other]) -> list[Other]:
        """The files that were not read yet."""
        return [each for each in others if each[0].path not in self.linted]

    def rest(self, root: str) -> Sequence[Other]:
        """The files of a project that are not reported on."""
        folders = {os.path.dirname(facts.path) for _path, facts in self.facts()}
        rests = {id(each): each for each in (self.index.rest(folder) for folder in folders if root_of(folder) == root)}
        known = (root, *rests)
        if known not in self.rests:
            files = (each for rest in rests.values() for each in rest.files if each[0].path not in self.reported)
            self.rests[known] = [each for each in files if root_of(each[0].folder) == root]
        return self.rests[known]

    # Facts

    def spread_facts(self, roots: Container[str] | None = None) -> None:
        """Lint files again if facts of others about their Functions may change the findings: all, or of these roots.

        The answer to one question may lead to another: who registers a function, and who declares that operator.
        """
        while self.spread_once(roots):
            pass

    def spread_once(self, roots: Container[str] | None) -> bool:
        """Whether files that were linted again ask what they did not ask before."""
        todo = []
        for path, facts in self.outside(roots).items():
            before = self.candidates[path].outside or NOTHING
            outside = replace(facts, names=before.names, aliases=before.aliases)
            if outside == before:
                continue
            known = self.linted[path].facts
            if known is not None:
                self.facts_before.setdefault(path, known)
            todo.append(self.again(path, outside))
        self.do(todo)
        asking = [each.path for each in todo if self.asks_more(each.path)]
        return bool(asking)

    def asks_more(self, path: str) -> bool:
        """Whether a file that was linted again asks more; its facts from before then ask it, too."""
        before, now = self.facts_before.get(path), self.linted[path].facts
        if before is None or now is None or set(now.asked) <= set(before.asked):
            return False
        self.facts_before[path] = replace(before, asked=tuple(sorted({*before.asked, *now.asked})))
        return True

    def outside(self, roots: Container[str] | None = None) -> dict[str, OutsideFacts]:
        """For each file, by its linted path, the facts of others about the Functions that matter there."""
        by_target = self.by_target()
        for target, method in self.replaced_by_name(roots):
            by_target[target].patched.add(("", method))
        reported = [
            (path, facts)
            for path, facts in self.facts()
            if not self.candidates[path].facts_only and (roots is None or facts.root in roots)
        ]
        found = {
            path: joined(facts_about(facts, by_target), partial=self.is_partial(facts)) for path, facts in reported
        }
        for path, facts in reported:
            if facts.module_backwards and self.calls_backward(facts):
                found[path] = replace(found[path], calls_backward=True)
            stored = self.stored_elsewhere(facts)
            if stored:
                found[path] = replace(found[path], stored=stored)
        self.answers.search((facts for _path, facts in reported), self.found_in, self.which_mention)
        for path, facts in reported:
            if facts.asked:
                found[path] = self.answers.given_to(facts, found[path], complete=self.is_complete(facts))
        return {path: each for path, each in found.items() if each != NOTHING}

    def by_target(self) -> dict[Target, FactsAboutOne]:
        """The facts of all files about each Function."""
        found: dict[Target, FactsAboutOne] = defaultdict(FactsAboutOne)
        for _path, facts in self.facts():
            for target, call in facts.calls:
                found[target].calls.append((facts.path, call))
            for target in facts.applied:
                found[target].applied.add(facts.path)
            for target, method in facts.direct_calls:
                found[target].direct_calls.add(method)
            for target in facts.subclassed:
                found[target].subclassed = True
            for target, method in facts.patched:
                found[target].patched.add((facts.path, method))
        return found

    def is_partial(self, facts: FileFacts) -> bool:
        """Whether facts about a file may be missing, because its project was too large to search."""
        return bool(facts.at_stake) and not self.is_complete(facts)

    def is_complete(self, facts: FileFacts) -> bool:
        """Whether all of the project of a file can be searched."""
        return self.index.rest(os.path.dirname(facts.path)).complete

    def calls_backward(self, facts: FileFacts) -> bool:
        """Whether another file of the project passes a gradient to some ``backward``, or may do so."""
        root = facts.root
        if not self.is_complete(facts):
            return True
        if root not in self.passing_gradients:
            self.passing_gradients[root] = tuple(islice(filter(_may_pass_gradients, self.files_of(root)), 2))
        return any(path != facts.path for path in self.passing_gradients[root])

    def stored_elsewhere(self, facts: FileFacts) -> tuple[tuple[str, str], ...]:
        """The attributes that Functions of a file read of ctx and only another file sets, or may set."""
        if not facts.unset or not self.is_complete(facts):
            return facts.unset
        storing = self.storing(facts.root)
        return tuple(each for each in facts.unset if storing[each[1]] - {facts.path})

    def replaced_by_name(self, roots: Container[str] | None) -> Iterator[tuple[Target, str]]:
        """The methods of Functions with findings that some file of their project may replace by their dotted names."""
        for _path, facts in self.facts():
            if facts.at_stake and (roots is None or facts.root in roots):
                for target in map(facts.target, facts.at_stake):
                    named = self.named_methods(root_of_file(target.path))
                    place = os.path.relpath(target.path, facts.root)
                    yield from ((target, method) for method in named.of(place, target.qualname))

    def named_methods(self, root: str) -> NamedMethods:
        """The methods that strings in the files of a project name."""
        if root not in self.named:
            paths = self.files_of(root, NamingMethods())
            texts = ((content_or_nothing(path).decode("utf-8", "replace"), path) for path in paths)
            self.named[root] = NamedMethods(each for text, path in texts for each in named_methods(tree_of(text), path))
        return self.named[root]

    def storing(self, root: str) -> Mapping[str, set[str]]:
        """The files of a project that set, or may set, the attributes which Functions find unset."""
        from ctxlint.model.index.attribute_stores import may_store

        unset = {
            name
            for _path, facts in self.facts()
            if facts.unset and facts.root == root
            for _function, name in facts.unset
        }
        known = self.stores[root]
        new = frozenset(unset - known.keys())
        known.update((name, set()) for name in new)
        for path in self.files_of(root, Storing(new)) if new else ():
            for name in may_store(content_or_nothing(path), new):
                known[name].add(path)
        return known

    def files_of(self, root: str, search: Search | None = None) -> Iterator[str]:
        """The absolute paths of the files of a project, or of those that a ``search`` finds."""
        yield from dict.fromkeys(path_of(each) for each, _settings in self.found_in(root, search))

    def found_in(self, root: str, search: Search | None) -> Iterable[Other]:
        """The files of a project, or those that a ``search`` finds."""
        files = [_as_found(each) for each in self.candidates.values() if root_of_file(each.path) == root]
        files += self.unread((*self.others_by_root[root], *self.rest(root)))
        return files if search is None else self.which_mention(files, search)


def _as_found(candidate: Candidate) -> Other:
    return Found(candidate.path, os.path.dirname(os.path.abspath(candidate.path))), candidate.settings


def _may_pass_gradients(path: str) -> bool:
    """Whether a file may pass a gradient to a ``backward``."""
    data = content_or_nothing(path)
    if not _READS_BACKWARD(data):
        return False
    from ctxlint.model.index.module_backwards import may_pass_gradients

    return may_pass_gradients(data)


_READS_BACKWARD = re.compile(rb"\.\s*backward\b(?!\s*\(\s*\))").search


def _if_related(candidate: Candidate, known: KnownNames) -> Candidate:
    """A scanned file, to be checked for a relation to Functions."""
    return candidate._replace(outside=None, known=known)


def _is_about_functions(result: FileResult) -> bool:
    """Whether a file that does not look like it is related to Functions after all."""
    facts = result.facts
    found = result.diagnostics or result.hidden
    return result.failed or (facts is not None and bool(facts.functions or facts.calls or found))
