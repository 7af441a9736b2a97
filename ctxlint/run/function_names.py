"""The names that Functions have in the files of a project: imports, star imports and aliases followed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import reached
from ctxlint.model.index.outside_facts import KnownNames, Target
from ctxlint.records import record
from ctxlint.source.modules import module_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxlint.model.index.outside_facts import FileFacts, NameAlias


@record
class ProjectNames:
    """The names in one project of its Functions and their ``apply``, and the modules that have them."""

    known: KnownNames
    by_module: tuple[tuple[str, tuple[str, ...]], ...]

    def since(self, before: ProjectNames | None) -> dict[str, frozenset[str]]:
        """The names, by module, that were not known ``before``."""
        known = {module: frozenset(names) for module, names in before.by_module} if before is not None else {}
        new = {module: frozenset(names).difference(known.get(module, ())) for module, names in self.by_module}
        return {module: names for module, names in new.items() if names}


def names_in(members: Sequence[FileFacts], leads: Iterable[str]) -> ProjectNames:
    """The names of Functions in the files of one project, however they import them; ``leads`` are worth resolving."""
    own = {Target(facts.path, each.qualname) for facts in members for each in facts.functions}
    targets = own.union(facts.target(key) for facts in members for key in facts.at_stake)
    pairs = {pair for facts in members for pair in facts.names}
    names = reached({_last(target.qualname) for target in targets}, pairs)
    by_module: dict[str, set[str]] = defaultdict(set)
    for target in targets:
        by_module[module_name(target.path)].add(_last(target.qualname))
    for facts in members:
        by_module[module_name(facts.path)].update(name for origin, name in facts.names if origin in names)
    _spread_stars(by_module, [(module_name(facts.path), facts.stars) for facts in members if facts.stars])
    aliases: dict[tuple[str, str], set[NameAlias]] = defaultdict(set)
    for facts in members:
        for alias in facts.aliases:
            aliases[alias.path, alias.name].add(alias)
            by_module[module_name(alias.path)].add(alias.name)
    agreed = sorted(next(iter(found)) for found in aliases.values() if len(found) == 1)
    modules = tuple((module, tuple(sorted(found))) for module, found in sorted(by_module.items()) if found)
    return ProjectNames(KnownNames(tuple(sorted(names.union(leads))), tuple(agreed)), modules)


def _spread_stars(by_module: dict[str, set[str]], stars: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    """Give modules the names that they star-import."""
    grown = True
    while grown:
        grown = False
        for module, origins in stars:
            new = set[str]().union(*(by_module[origin] for origin in origins)) - by_module[module]
            by_module[module] |= new
            grown = grown or bool(new)


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]
