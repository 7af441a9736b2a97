"""From a source text to the model of its Functions: the one entry into ``ctxlint.model``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.builder import Builder
from ctxlint.model.call_sites import CallSites
from ctxlint.model.functions import SourceFile
from ctxlint.model.operators import operators_of
from ctxlint.model.project import Definition, Project
from ctxlint.model.unit import read_unit

if TYPE_CHECKING:
    from ctxlint.files.source import Source


def understand(source: Source, project: Project | None = None) -> SourceFile:
    """Read ``source`` and say everything that its Functions and the calls on them tell.

    ``project`` reads the other files that names lead to; without one they are unknown. Statements that cannot be parsed
    become ``SourceFile.broken``; nothing is raised for bad code.
    """
    project = project if project is not None else Project()
    unit = read_unit(source)
    index = unit.index
    functions = frozenset(name for name in index.classes if project.is_function(Definition(unit, name)))

    def bases(qualname: str) -> list[str]:
        above = project.ancestry(Definition(unit, qualname))[1:]
        return [each.qualname for each in above if each.unit is unit]

    sites = CallSites(source, index, functions, bases)
    calls, by_hand, patched = sites.collect()
    builder = Builder(unit, project, calls, by_hand, patched, sites.applied())
    built = [builder.build(record) for record in index.classes.values() if record.qualname in functions]
    by_name = {function.qualname: function for function in built if function is not None}
    return SourceFile(
        source=source,
        functions=tuple(by_name.values()),
        calls=tuple(call for call in calls if call.function in by_name),
        by_name=by_name,
        operators=tuple(operators_of(unit)) if "register_autograd" in source.text else (),
        broken=(*unit.broken, *unit.slices.broken),
    )
