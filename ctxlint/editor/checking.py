"""The findings in a document, as an editor wants them: quickly, and also while it is half typed."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctxlint.model.index.parsing import ParsedPieces
from ctxlint.model.index.statement_pieces import Lines, statements
from ctxlint.result import FileResult
from ctxlint.run.check_file import check_file
from ctxlint.run.in_project import Surroundings
from ctxlint.run.lint_file import read_source
from ctxlint.run.pipeline import is_left_out
from ctxlint.source.modules import forget
from ctxlint.source.scanner import holds_candidate
from ctxlint.source.slices import ParsedStatements
from ctxlint.source.source import Position, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.configuration import Configuration
    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.editor.documents import Opened
    from ctxlint.editor.workspace import Workspace
    from ctxlint.fixes.fix import Edit, Fix
    from ctxlint.model.function import SourceFile

_FILES_KEPT = 4
_PROJECTS_KEPT = 4


@dataclass(frozen=True, eq=False)
class Checked:
    """One version of a document with what is to be shown for it. ``serial`` is another for every check."""

    document: Opened
    result: FileResult
    diagnostics: tuple[Diagnostic, ...]
    serial: int

    @property
    def source(self) -> Source:
        """The text that the places of the findings are in."""
        return self.result.source or self.document.source


class Checker:
    """Checks documents, and remembers what makes the next check of nearly the same text quick."""

    def __init__(self, workspace: Workspace) -> None:
        """Begin with nothing remembered."""
        self.workspace = workspace
        self._parsed = ParsedStatements()
        self._pieces = ParsedPieces()
        self._whole: dict[str, FileResult] = {}
        self._files: OrderedDict[Opened, SourceFile | None] = OrderedDict()
        self._serial = 0
        self._surroundings: OrderedDict[Configuration, Surroundings] = OrderedDict()
        self._stale = False

    def check(self, document: Opened) -> Checked:
        """Check one version of a document."""
        self._serial += 1
        settings = self.workspace.settings_for(document.path)
        result, file = self._read(document.source, settings)
        self._keep(document, file)
        diagnostics = result.diagnostics
        if not result.broken:
            self._whole[document.uri] = result
        elif document.uri in self._whole:
            diagnostics = with_untouched(result, self._whole[document.uri])
        return Checked(document, result, diagnostics, self._serial)

    def understood(self, document: Opened) -> SourceFile | None:
        """What the Functions of a document are; None where there is nothing to understand."""
        if document not in self._files:
            settings = self.workspace.settings_for(document.path)
            self._keep(document, self._read(document.source, settings)[1])
        return self._files[document]

    def _keep(self, document: Opened, file: SourceFile | None) -> None:
        """Keep what was understood of the documents that are worked on: it is large."""
        self._files[document] = file
        while len(self._files) > _FILES_KEPT:
            self._files.popitem(last=False)

    def result(self, source: Source, settings: Settings) -> FileResult:
        """What the pipeline says about a text, without what is known."""
        return self._read(source, settings)[0]

    def _read(self, source: Source, settings: Settings) -> tuple[FileResult, SourceFile | None]:
        data = source.text.encode("utf-8", "surrogatepass")
        around = self._around(source.path)
        leads = around.leads(source.path, data) if around is not None else frozenset[str]()
        if not (leads or holds_candidate(data)) or is_left_out(source.path, settings):
            return FileResult(source.path, source, settings=settings), None
        ask = around.asking(settings, leads) if around is not None else None
        with self._parsed.in_use(), self._pieces.in_use():
            file = read_source(source, settings, ask)
            if isinstance(file, FileResult):
                return file, None
            result = check_file(file, settings)
        baseline = self.workspace.baseline_for(settings)
        return (result if baseline is None else baseline.leave_out(result)), file

    def _around(self, path: str) -> Surroundings | None:
        """The project that a file belongs to; None for a text that is no file yet."""
        if not (os.path.isabs(path) and os.path.isdir(os.path.dirname(path))):
            return None
        configuration = self.workspace.configuration_for(path)
        if self._stale:
            self._stale = False
            forget()
            for around in self._surroundings.values():
                around.refresh()
        if configuration not in self._surroundings:
            while len(self._surroundings) >= _PROJECTS_KEPT:
                self._surroundings.popitem(last=False)
            self._surroundings[configuration] = Surroundings(configuration)
        return self._surroundings[configuration]

    def refresh(self) -> None:
        """Other files may have changed: the next check looks which of them did."""
        self._stale = True

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._whole.pop(uri, None)


# Half-typed code


def with_untouched(result: FileResult, before: FileResult) -> tuple[Diagnostic, ...]:
    """The findings of a text that does not parse, and those of ``before`` in statements that are as they were.

    What can be read of a half-typed text says less than the whole: a name may have lost its meaning.
    """
    if result.source is None or before.source is None or not before.diagnostics:
        return result.diagnostics
    found = {(each.code, each.span, each.message): each for each in result.diagnostics}
    for each in _moved(before.source, before.diagnostics, result.source):
        found.setdefault((each.code, each.span, each.message), each)
    return tuple(sorted(found.values(), key=lambda each: each.sort_key))


def _moved(old: Source, diagnostics: tuple[Diagnostic, ...], new: Source) -> Iterator[Diagnostic]:
    """The findings of ``old`` at the places where their statements stand in ``new``; none for those that changed."""
    at = 0
    for piece in statements(old, Lines(1, old.line_count)):
        inside = [each for each in diagnostics if piece.first <= each.span.start.line <= piece.last]
        if not inside:
            continue
        text = old.lines(*piece).rstrip()
        start = new.text.find(text, at)
        while start > 0 and new.text[start - 1] not in "\r\n":
            start = new.text.find(text, start + 1)
        if start < 0 or new.text[start + len(text) : start + len(text) + 1] not in ("", "\r", "\n"):
            continue
        at = start + len(text)
        lines = new.position(start).line - piece.first
        characters = start - old.line_starts[piece.first - 1]
        end = old.line_starts[piece.first - 1] + len(text)
        for each in inside:
            related = tuple(
                replace(other, span=_below(other.span, lines))
                for other in each.related
                if piece.first <= other.span.start.line <= piece.last
            )
            fix = _fix_below(each.fix, characters, old.line_starts[piece.first - 1], end)
            yield replace(each, span=_below(each.span, lines), related=related, fix=fix)


def _below(span: Span, lines: int) -> Span:
    start, end = span
    return Span(Position(start.line + lines, start.column), Position(end.line + lines, end.column))


def _fix_below(fix: Fix | None, characters: int, start: int, end: int) -> Fix | None:
    """A fix moved down with its statement, which goes from ``start`` to ``end``; None where it reaches beyond it."""
    if fix is None or any(edit.start < start or edit.end > end for edit in fix.edits):
        return None

    def moved(edit: Edit) -> Edit:
        return replace(edit, start=edit.start + characters, end=edit.end + characters)

    return replace(fix, edits=tuple(moved(edit) for edit in fix.edits))
