"""The findings in a document for an editor: quickly, and also for half-typed code."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from ctxlint.editor.checked import Checked
from ctxlint.editor.moving import with_untouched
from ctxlint.editor.projects import Projects
from ctxlint.fixes.apply import apply_fixes
from ctxlint.model.function_store import FunctionStore
from ctxlint.model.index.bare_nodes import UnlikeLibCST, layout_on_demand
from ctxlint.model.index.kept_index import IndexedStatements
from ctxlint.model.index.parsing import ParsedPieces
from ctxlint.result import FileResult
from ctxlint.run.check_file import check_file
from ctxlint.run.lint_file import read_source
from ctxlint.run.pipeline import is_left_out
from ctxlint.source.modules import forget
from ctxlint.source.scanner import holds_candidate
from ctxlint.source.slices import ParsedStatements

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.config.settings import Settings
    from ctxlint.editor.documents import Opened
    from ctxlint.editor.workspace import Workspace
    from ctxlint.model.function import SourceFile
    from ctxlint.model.reader import FindOutsideFacts
    from ctxlint.run.in_project import Surroundings
    from ctxlint.source.source import Source

Result = TypeVar("Result")

_FILES_KEPT = 4


class Checker:
    """Checks documents, and caches what speeds up the next check of a similar text."""

    def __init__(self, workspace: Workspace, projects: Projects | None = None) -> None:
        """Start with an empty cache. ``projects`` are those around the documents, as far as they are known."""
        self.workspace = workspace
        self._projects = projects or Projects(workspace)
        self._parsed = ParsedStatements()
        self._pieces = ParsedPieces()
        self._indexes = IndexedStatements()
        self._functions = FunctionStore()
        self._whole: dict[str, FileResult] = {}
        self._files: OrderedDict[Opened, SourceFile | None] = OrderedDict()
        self._serial = 0
        self._stale = False
        self._trusts_ast = True

    def check(self, document: Opened, go_on: Callable[[], object] = bool) -> Checked:
        """Check one version of a document, as long as ``go_on`` raises nothing."""
        self._serial += 1
        settings = self.workspace.settings_for(document.path)
        self._functions.go_on = go_on
        try:
            result, file = self._read(document.source, settings)
        finally:
            self._functions.go_on = bool
        self._keep(document, file)
        diagnostics = result.diagnostics
        if not result.broken:
            self._whole[document.uri] = result
        elif document.uri in self._whole:
            diagnostics = with_untouched(result, self._whole[document.uri])
        return Checked(document, result, diagnostics, self._serial)

    def fixed(self, checked: Checked, between_rounds: Callable[[], None]) -> Source | None:
        """The text after all safe fixes; None if there are none."""
        settings = checked.result.settings._replace(fix=True, unsafe_fixes=False)

        def check(source: Source) -> FileResult:
            between_rounds()
            return self._read(source, settings)[0]

        result = apply_fixes(checked.result, settings, check)
        return result.source if result.before is not None else None

    def ask_ahead(self, document: Opened, go_on: Callable[[], None]) -> None:
        """Search the project for what a later keystroke may ask, as long as ``go_on`` raises nothing."""
        around = self._around(document.path)
        if around is not None:
            around.ask_ahead(document.path, go_on)

    def model_of(self, document: Opened) -> SourceFile | None:
        """The model of a document; None if it has none."""
        if document not in self._files:
            settings = self.workspace.settings_for(document.path)
            self._keep(document, self._read(document.source, settings)[1])
        return self._files[document]

    def _keep(self, document: Opened, file: SourceFile | None) -> None:
        """Keep the models of the documents that are being edited: they are large."""
        self._files[document] = file
        while len(self._files) > _FILES_KEPT:
            self._files.popitem(last=False)

    def _read(self, source: Source, settings: Settings) -> tuple[FileResult, SourceFile | None]:
        data = source.text.encode("utf-8", "surrogatepass")
        around = self._around(source.path)
        leads = around.leads(source.path, data) if around is not None else frozenset[str]()
        if not (leads or holds_candidate(data)) or is_left_out(source.path, settings):
            return FileResult(source.path, source, settings=settings), None
        find_outside = around.finder(settings, leads) if around is not None else None
        result, file = self.retried(lambda: self._checked(source, settings, find_outside))
        if file is None:
            return result, None
        baseline = self.workspace.baseline_for(settings)
        return (result if baseline is None else baseline.leave_out(result)), file

    def _checked(
        self, source: Source, settings: Settings, find_outside: FindOutsideFacts | None
    ) -> tuple[FileResult, SourceFile | None]:
        layout = layout_on_demand() if self._trusts_ast else nullcontext()
        parsed = self._parsed.in_use(replaces=not settings.fix)
        pieces, indexes = self._pieces.in_use(source.path), self._indexes.in_use(source.path)
        with layout, parsed, pieces, indexes, self._functions.in_use():
            file = read_source(source, settings, find_outside)
            return (file, None) if isinstance(file, FileResult) else (check_file(file, settings), file)

    def retried(self, work: Callable[[], Result]) -> Result:
        """The result of ``work``; if LibCST rejects what ``ast`` has parsed, retry with LibCST parsing everything."""
        try:
            with self._functions.parents.in_use():
                return work()
        except UnlikeLibCST:
            self._trusts_ast = False
            self._indexes.clear()
            self._functions.clear()
            self._files.clear()
            return work()

    def _around(self, path: str) -> Surroundings | None:
        """The project of a file; None for a text that is not a file yet."""
        if self._stale:
            self._stale = False
            forget()
            self._indexes.clear()
            self._functions.clear()
            self._projects.refresh()
        return self._projects.around(path)

    def refresh(self) -> None:
        """Other files may have changed: the next check finds out which."""
        self._stale = True

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._whole.pop(uri, None)
