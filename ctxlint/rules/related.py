"""Related places that explain a finding: where a stored value is read, where a saved tensor was saved."""

from __future__ import annotations

from dataclasses import replace
from os.path import abspath
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Related
from ctxlint.model.interpreter.events import ContextCall, SavedRead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from ctxlint.model.analyses.layout_uses import LayoutUse
    from ctxlint.model.analyses.shape_unpackings import ShapeUnpacking
    from ctxlint.model.analyses.unread_arguments import Unread
    from ctxlint.model.finding import Finding
    from ctxlint.model.function import FunctionClass, Mutation
    from ctxlint.model.interpreter.events import (
        ContextEvent,
        CutGrid,
        FaultyLaunch,
        FlagTestedInside,
        ForeignStrides,
        GradientLaunch,
        GraphUseInside,
        MaybeNone,
        MemoryRead,
        MisfitCall,
        NoneInside,
        TrialEffectRun,
        UnboundInside,
        UnfilledInside,
        Unpacking,
    )
    from ctxlint.source.source import Source


def at(fn: FunctionClass, nodes: Iterable[cst.CSTNode], message: str) -> tuple[Related, ...]:
    """The positions of ``nodes`` that are in the file of ``fn``, in order."""
    found = (fn.location_of(node) for node in nodes)
    spans = {span for source, span in (each for each in found if each is not None) if source is fn.source}
    return tuple(Related(span, message) for span in sorted(spans))


def way_to(
    fn: FunctionClass,
    *events: Mutation
    | MaybeNone
    | MemoryRead
    | MisfitCall
    | TrialEffectRun
    | CutGrid
    | FaultyLaunch
    | UnfilledInside
    | GraphUseInside
    | FlagTestedInside
    | GradientLaunch
    | NoneInside
    | UnboundInside
    | ForeignStrides
    | LayoutUse
    | ShapeUnpacking
    | ContextEvent
    | Unpacking,
) -> tuple[Related, ...]:
    """From the calls of project functions to the statements that modify tensors, or use ctx."""
    distinct = {(abspath(step.path), step.span, step.note): None for event in events for step in event.through}
    return tuple(Related(span, note, path=elsewhere(fn.source, path)) for path, span, note in distinct)


def elsewhere(source: Source, path: str) -> str:
    """The path of a note; empty for one in the file of the finding."""
    path = abspath(path)
    return "" if path == abspath(source.path) else path


def unread_by(fn: FunctionClass, parameters: Iterable[Unread]) -> tuple[Related, ...]:
    """The parameters of functions that never read them."""
    distinct = ((each, elsewhere(fn.source, each.path)) for each in dict.fromkeys(parameters))
    return tuple(
        Related(each.span, f"`{each.name}` never reads `{each.parameter}`", path=path) for each, path in distinct
    )


def merged(findings: Iterable[Finding], note: str) -> Iterator[Finding]:
    """Findings with the same message as one, at the first place; the others become notes."""
    by_message: dict[str, list[Finding]] = {}
    for each in findings:
        by_message.setdefault(each.message, []).append(each)
    for first, *others in by_message.values():
        notes = tuple(Related(each.span, note) for each in others)
        yield replace(first, related=(*notes, *first.related)) if notes else first


def reads_of(fn: FunctionClass, attribute: str) -> tuple[Related, ...]:
    """Where an attribute of ctx is read."""
    reads = fn.reads_by_attribute.get(attribute, ())
    return at(fn, (read.node for read in reads), f"`{fn.reading_ctx}.{attribute}` is read here")


def saves(fn: FunctionClass, name: str = "save_for_backward") -> tuple[Related, ...]:
    """Where tensors are saved."""
    calls = (call for method in fn.context_methods for call in method.facts.of(ContextCall))
    return at(fn, (call.node for call in calls if call.method == name), "saved here")


def reads_of_saved(fn: FunctionClass) -> tuple[Related, ...]:
    """Where the saved tensors are read."""
    reads = (read for method in fn.reading_methods for read in method.facts.of(SavedRead))
    return at(fn, (read.node for read in reads), "read here")
