"""What the files of a project tell about the Functions of one of them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.index.outside_facts import OutsideFacts, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.model.function import ApplyCall
    from ctxlint.model.index.outside_facts import FileFacts, Own


class FactsAboutOne:
    """The facts of other files about one Function, with the files that contributed them if that matters."""

    def __init__(self) -> None:
        """Start without facts."""
        self.calls: list[tuple[str, ApplyCall]] = []
        self.applied: set[str] = set()
        self.direct_calls: set[str] = set()
        self.subclassed = False
        self.patched: set[tuple[str, str]] = set()

    def may_add_findings(self, own: Own) -> bool:
        """Whether it may add a finding about the Function in its own file."""
        if self.direct_calls or self.subclassed or self.patched:
            return True
        return (bool(self.applied) and own.waits) or any(own.learns_from(call) for _path, call in self.calls)

    def about(self, target: Target, facts: FileFacts) -> OutsideFacts:
        """The facts that are not already among those of the file itself."""
        if target.path != facts.path:  # callers of a Function need no more
            patched = {method for path, method in self.patched if path != facts.path}
            applied = self.applied - {facts.path}
            return OutsideFacts(
                applied=(target.key,) * bool(applied),
                direct_calls=tuple((target.key, method) for method in self.direct_calls),
                patched=tuple((target.key, method) for method in patched),
            )
        name = target.qualname
        return OutsideFacts(
            calls=tuple(_seen_from(target, call, path) for path, call in self.calls),
            applied=(name,) * bool(self.applied),
            direct_calls=tuple((name, method) for method in self.direct_calls),
            subclassed=(name,) * self.subclassed,
            patched=tuple({(name, method) for _path, method in self.patched}),
        )


def facts_about(facts: FileFacts, by_target: Mapping[Target, FactsAboutOne]) -> Iterator[OutsideFacts]:
    """The facts about the Functions that matter in a file."""
    at_stake = {facts.target(key) for key in facts.at_stake}
    own = {Target(facts.path, each.qualname): each for each in facts.functions}
    for target in sorted(at_stake.union(own)):
        if target in by_target and (target in at_stake or by_target[target].may_add_findings(own[target])):
            yield by_target[target].about(target, facts)


def joined(parts: Iterable[OutsideFacts], *, partial: bool) -> OutsideFacts:
    """All facts, in an order independent of that of the files; ``partial`` if there may be more."""
    every = tuple(parts)
    return OutsideFacts(
        calls=tuple(sorted((call for each in every for call in each.calls), key=lambda call: (call.path, call.span))),
        applied=tuple(sorted(name for each in every for name in each.applied)),
        direct_calls=tuple(sorted(pair for each in every for pair in each.direct_calls)),
        subclassed=tuple(sorted(name for each in every for name in each.subclassed)),
        patched=tuple(sorted(pair for each in every for pair in each.patched)),
        partial=partial,
    )


def _seen_from(target: Target, call: ApplyCall, path: str) -> ApplyCall:
    """A call in the file ``path`` as the file of the Function refers to it."""
    try:
        relative = os.path.relpath(path, os.path.dirname(target.path))
    except ValueError:  # another drive
        relative = os.path.basename(path)
    return replace(call, function=target.qualname, path=relative.replace(os.sep, "/"))
