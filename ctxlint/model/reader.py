"""From a source text to the model of its Functions: the one entry into ``ctxlint.model``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.builder import Builder
from ctxlint.model.call_sites import CallSites
from ctxlint.model.callers import NOTHING, OutsideFacts, Target
from ctxlint.model.elsewhere import Elsewhere, facts_of
from ctxlint.model.functions import SourceFile
from ctxlint.model.operators import operators_of
from ctxlint.model.project import Definition, Project
from ctxlint.model.unit import read_unit
from ctxlint.stages import stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.files.source import Source
    from ctxlint.model.functions import FunctionClass
    from ctxlint.model.unit import Unit


def understand(source: Source, project: Project | None = None) -> SourceFile:
    """Read ``source`` and say everything that its Functions and the calls on them tell.

    ``project`` reads the other files that names lead to; without one they are unknown. Statements that cannot be parsed
    become ``SourceFile.broken``; nothing is raised for bad code.
    """
    return readings(source, project if project is not None else Project())[0]


@stage("understand")
def readings(source: Source, project: Project, outside: OutsideFacts | None = None) -> tuple[SourceFile, ...]:
    """What a file says by itself, as ``understand``; and then, with ``outside``, what is different or new by that.

    The second reading has only the Functions that others say something about, and only the calls that would not be
    followed without them.
    """
    unit = read_unit(source)
    alone = _understand(unit, project)
    if outside is None:
        return (alone,)
    informed = _understand(unit, project, outside, alone)
    known = set(alone.calls)
    return alone, replace(
        informed,
        functions=tuple(each for each in informed.functions if each.qualname in outside.functions),
        calls=tuple(call for call in informed.calls if call not in known),
        operators=(),
    )


def _understand(
    unit: Unit, project: Project, outside: OutsideFacts = NOTHING, before: SourceFile | None = None
) -> SourceFile:
    """The model of a file; Functions that ``outside`` says nothing about are taken from the reading ``before``."""
    functions = functions_of(unit, project)
    elsewhere = Elsewhere(unit, project, outside)
    sites = call_sites(unit, project, elsewhere, functions)
    calls, by_hand, patched = sites.collect()
    applied = sites.applied()
    builder = Builder(
        unit,
        project,
        [*calls, *outside.calls],
        _merged(by_hand, outside.by_hand),
        patched.union(outside.patched),
        applied.union(outside.applied),
        outside.subclassed,
    )
    built = [
        before.by_name.get(record.qualname)
        if before is not None and record.qualname not in outside.functions
        else builder.build(record)
        for record in unit.index.classes.values()
        if record.qualname in functions
    ]
    own = tuple(function for function in built if function is not None)
    by_name = {function.qualname: function for function in own}
    for key, target in elsewhere.targets.items():
        outline = outline_of(target, project)
        if outline is not None:
            by_name[key] = outline
    return SourceFile(
        source=unit.source,
        functions=own,
        calls=tuple(call for call in calls if call.function in by_name),
        by_name=by_name,
        operators=tuple(operators_of(unit)) if "register_autograd" in unit.source.text else (),
        broken=(*unit.broken, *unit.slices.broken),
        facts=facts_of(elsewhere, own, calls, by_hand, patched, applied),
    )


def functions_of(unit: Unit, project: Project) -> frozenset[str]:
    """The qualified names of the Functions that a file defines."""
    return frozenset(name for name in unit.index.classes if project.is_function(Definition(unit, name)))


def call_sites(unit: Unit, project: Project, elsewhere: Elsewhere, functions: frozenset[str]) -> CallSites:
    """What finds the calls of Functions in a file."""

    def bases(qualname: str) -> list[str]:
        above = project.ancestry(Definition(unit, qualname))[1:]
        return [elsewhere.key_of(Target(os.path.abspath(each.unit.path), each.qualname)) for each in above]

    return CallSites(unit.source, unit.index, functions, bases, elsewhere)


def outline_of(target: Target, project: Project) -> FunctionClass | None:
    """A Function of another file as far as its callers need it: its methods are not walked."""
    return project.once(target, lambda: _outline(target, project))


def _outline(target: Target, project: Project) -> FunctionClass | None:
    unit = project.unit(target.path)
    record = unit.index.classes.get(target.qualname) if unit is not None else None
    if unit is None or record is None:
        return None
    sites = call_sites(unit, project, Elsewhere(unit, project, NOTHING), functions_of(unit, project))
    calls, by_hand, patched = sites.collect()
    return Builder(unit, project, calls, by_hand, patched, sites.applied()).outline(record)


def _merged(by_hand: Mapping[str, set[str]], outside: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    merged = {name: set(methods) for name, methods in by_hand.items()}
    for name, method in outside:
        merged.setdefault(name, set()).add(method)
    return merged
