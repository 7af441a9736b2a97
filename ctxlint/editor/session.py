"""A client's session: the documents, the settings and the results that every feature reads."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from ctxlint.config.project_files import ConfigurationError
from ctxlint.editor.documents import NOTEBOOK_SYNCHRONISATION, Document, Documents, path_of
from ctxlint.editor.earlier import EarlierResults
from ctxlint.editor.projects import Projects
from ctxlint.editor.protocol_types import make_converter
from ctxlint.editor.views import DocumentView
from ctxlint.editor.worker import Worker
from ctxlint.editor.workspace import Workspace
from ctxlint.fix import is_safe
from ctxlint.run.lint_file import has_changed
from ctxlint.source.reading import OPEN, content_or_nothing
from ctxlint.source.scanner import holds_candidate
from ctxlint.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ctxlint.editor.checked import Checked
    from ctxlint.editor.checking import Checker
    from ctxlint.editor.documents import Opened
    from ctxlint.run.second_process import SecondProcess

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_SECONDS_FOR_SETTINGS = 2.0
"""How long the first results wait for the settings that were requested from the client."""

_SECONDS_BEFORE_OTHERS = 0.4
"""How long typing in a file has to pause before the documents that use it are checked again."""


@dataclass(frozen=True, eq=False)
class FixedDocument:
    """The edits of all safe fixes for a checked document."""

    checked: Checked
    edits: tuple[lsp.TextDocumentEdit, ...]


_SECONDS_BEFORE_ONE_PROCESS = 5.0
"""How long there has to be nothing to do before the second process ends."""

_SECONDS_BEFORE_STORING = 20.0
"""How long the user has to pause before a result is stored: that may take a second, and a keystroke would wait."""


_SECONDS_OF_A_CHECK = 1.0
"""How long Functions of an outdated text are checked: its findings are shown, moved, until there are newer ones."""


class _Outdated(BaseException):
    """There is a newer text. As an ``Exception``, it would be a failure of the analysis."""


class Session(LanguageServer):
    """The server of one client. Its state changes on the thread of the event loop; the worker only reads it."""

    def __init__(self, second: SecondProcess | None = None) -> None:
        """Start without documents. The ``second`` process helps with the first of them."""
        super().__init__(
            "ctxlint",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
            notebook_document_sync=NOTEBOOK_SYNCHRONISATION,
            converter_factory=make_converter,
        )
        self.documents = Documents()
        self.settings = Workspace(self._complain_from_worker)
        self.worker = Worker()
        self._second = second
        self.projects = Projects(self.settings, second)
        self.earlier = EarlierResults(self.settings)
        self._checker: Checker | None = None
        self.on_result: list[Callable[[str], Coroutine[Any, Any, None]]] = []
        """Called for a document whose text or whose settings changed."""
        self.on_refresh: list[Callable[[], None]] = []
        """Called when results may differ although no text changed."""
        self.on_close: list[Callable[[str], None]] = []
        """Called when a document was closed."""
        self.unsaved: set[str] = set()
        """The URIs of the texts that were changed since they were opened or saved."""
        self.initial_settings: object = None
        """What the client sent with its first request, for when it has no others."""
        self.awaited_settings: asyncio.Event | None = None
        """Set once the client has sent its settings; None if they were not requested."""
        self._results: dict[str, tuple[int, Checked]] = {}
        self._fixed: dict[str, FixedDocument] = {}
        self._generation = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._complaints: set[str] = set()
        self._earlier_complaints: set[str] = set()
        """Those before the configuration was reloaded: what is still wrong is not shown again."""

    @property
    def checker(self) -> Checker:
        """The checker, for the worker: it is imported there, with LibCST, after the client got its first answer."""
        if self._checker is None:
            from ctxlint.libcst_import import import_libcst

            import_libcst()
            from ctxlint.editor.checking import Checker

            second = self._second
            self._checker = Checker(self.settings, self.projects)
            if second is not None:
                self.worker.when_idle(second.end, key=second, after=_SECONDS_BEFORE_ONE_PROCESS)
        return self._checker

    # Results

    async def checked(self, uri: str) -> Checked | None:
        """The result for the newest text of a document, or of the notebook of a cell; None if it is not open."""
        await self._settings_are_known()
        while (document := self.documents.holder(uri)) is not None:
            with suppress(_Outdated):
                return await self._submitted(
                    partial(self.check_now, document.uri, may_end=True), key=("check", document.uri)
                )
        return None

    async def _settings_are_known(self) -> None:
        """Wait for the settings: a client may request findings only once, before it has sent its settings."""
        awaited = self.awaited_settings
        if awaited is not None and not awaited.is_set():
            try:
                await asyncio.wait_for(awaited.wait(), _SECONDS_FOR_SETTINGS)
            except asyncio.TimeoutError:
                awaited.set()

    async def after_check(self) -> None:
        """Wait for the check that runs now, if any."""
        await self._submitted(lambda: None, key=None)

    async def on_worker(self, work: Callable[[], Result], key: object = None) -> Result:
        """Run something on the worker; see ``Worker.submit``."""
        return await self._submitted(lambda: self.checker.retried(work), key)

    async def _submitted(self, work: Callable[[], Result], key: object) -> Result:
        return await asyncio.shield(asyncio.wrap_future(self.worker.submit(work, key)))

    def check_now(self, uri: str, *, may_end: bool = False) -> Checked | None:
        """Like ``checked``, for the thread of the worker; if it ``may_end``, it raises if there is a newer text."""
        document = self.documents.holder(uri)
        if document is None or not document.is_python or not self.settings.client_settings_for(document.path).enable:
            return None
        generation, uri = self._generation, document.uri
        known = self._results.get(uri)
        if known is not None and known[0] == generation and known[1].document is document:
            return known[1]
        earlier = self.earlier.checked(document) if known is None else None
        if earlier is not None:
            self._results[uri] = (generation, earlier)
            self.worker.when_idle(lambda: self._check_again(earlier), key=uri)
            return earlier
        if known is None and holds_candidate(document.source.text.encode("utf-8", "surrogatepass")):
            self.projects.prepare(document.path)
        checked = self.checker.check(document, self._while_current(document) if may_end else bool)
        self._results[uri] = (generation, checked)
        if any(is_safe(each.fix) for each in checked.result.diagnostics):
            self.worker.when_idle(lambda: self._fix_ahead(checked), key=uri)
        if checked.result.linted:
            self.worker.when_idle(lambda: self._ask_ahead(checked), key=("ask", uri))
            self.worker.when_idle(lambda: self._store(checked), key=("store", uri), after=_SECONDS_BEFORE_STORING)
        return checked

    def _while_current(self, document: Opened) -> Callable[[], None]:
        """What raises if a text is outdated, or its document closed, after it has been checked for some time."""
        begun: list[float] = []

        def go_on() -> None:
            now = time.monotonic()
            if not begun:  # what comes before the first Function is needed for each version
                begun.append(now)
            if now > begun[0] + _SECONDS_OF_A_CHECK and self.documents.holder(document.uri) is not document:
                raise _Outdated

        return go_on

    def _check_again(self, earlier: Checked) -> None:
        """Check a document of which an earlier result is shown, so that the next keystroke only checks the change."""
        document = earlier.document
        if self.documents.holder(document.uri) is not document or self._results[document.uri][1] is not earlier:
            return
        generation, checked = self._generation, self.checker.check(document)
        self._results[document.uri] = (generation, checked)
        if checked.diagnostics != earlier.diagnostics and self._loop is not None:
            self._loop.call_soon_threadsafe(self.changed, document)

    def _store(self, checked: Checked) -> None:
        """Store the result of a document for later sessions."""
        if self.documents.holder(checked.document.uri) is checked.document:
            with suppress(OSError, ConfigurationError):
                self.earlier.store(checked.document)

    def fixed_now(self, uri: str) -> FixedDocument | None:
        """The newest text of a document after all safe fixes. For the thread of the worker."""
        checked = self.check_now(uri)
        if checked is None:
            return None
        known = self._fixed.get(checked.document.uri)
        if known is None or known.checked is not checked:
            known = self._fix(checked, lambda: None)
        return known

    def _fix(self, checked: Checked, between_rounds: Callable[[], None]) -> FixedDocument:
        after = self.checker.fixed(checked, between_rounds)
        edits = () if after is None else tuple(self.view(checked).edits_to(after))
        found = self._fixed[checked.document.uri] = FixedDocument(checked, edits)
        return found

    def _fix_ahead(self, checked: Checked) -> None:
        """Compute the fixes of a checked document before it is saved; nothing if typing continues."""
        with suppress(_Outdated):
            self._go_on(checked)
            self._fix(checked, lambda: self._go_on(checked))

    def _ask_ahead(self, checked: Checked) -> None:
        """Search the project for what the next keystroke may ask; nothing if typing continues."""
        with suppress(_Outdated):
            self.checker.ask_ahead(checked.document, lambda: self._go_on(checked))

    def _go_on(self, checked: Checked) -> None:
        """Raise if there is a newer text, or something else to do."""
        if self.worker.is_needed or self.documents.holder(checked.document.uri) is not checked.document:
            raise _Outdated

    def waits_for_save(self, uri: str) -> bool:
        """Whether a text was changed, and will be checked when it is saved."""
        return uri in self.unsaved and self.settings.client_settings_for(path_of(uri)).run == "onSave"

    def view(self, checked: Checked) -> DocumentView:
        """A result as the client sees it."""
        return DocumentView(checked.document, checked.source, self.documents.encoding)

    # Changes

    def changed(self, document: Opened) -> None:
        """A document was opened or changed."""
        for react in self.on_result:
            self.start(react(document.uri))
        if isinstance(document, Document) and OPEN.get(document.path) != document.text:
            self.start(self._recheck_dependents(document))

    async def _recheck_dependents(self, document: Document) -> None:
        """This document may contain a base or a helper of other documents, which are checked again after a pause."""
        OPEN[document.path] = document.text
        await asyncio.sleep(_SECONDS_BEFORE_OTHERS)
        others = [each for each in self.documents if each is not document]
        if others and has_changed(document.path, document.text) and self.documents.get(document.uri) is document:
            self.refresh()

    def forget(self, uri: str) -> None:
        """A document was closed; if it was not saved, what is on the disk counts for the others from now on."""
        self.documents.close(uri)
        self.drop(uri)
        for react in self.on_close:
            react(uri)
        path = path_of(uri)
        if OPEN.pop(path, None) is not None and has_changed(path, content_or_nothing(path).decode("utf-8", "replace")):
            self.refresh()

    def drop(self, uri: str) -> None:
        """Drop the results of a document that was closed."""
        self.unsaved.discard(uri)
        self._results.pop(uri, None)
        self._fixed.pop(uri, None)
        if self._checker is not None:
            self._checker.forget(uri)

    def refresh(self) -> None:
        """Settings or other files changed: check everything again."""
        from ctxlint.run.in_project import forget_other_files

        forget_other_files()  # at once: the worker would do it after the checks that are requested below
        if self._second is not None:
            self._second.forget()
        if self._checker is not None:
            self._checker.refresh()
        self._generation += 1
        for react in self.on_refresh:
            react()
        for document in self.documents:
            self.changed(document)

    def reload(self) -> None:
        """Configuration files changed: reload them, and check everything again."""
        self._earlier_complaints, self._complaints = self._complaints, set()
        self.complain_about_settings()
        self.settings.reload()
        self.refresh()

    # Tasks and messages

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task in the background."""
        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A task failed", exc_info=task.exception())

    def complain(self, message: str, kind: lsp.MessageType = lsp.MessageType.Error) -> None:
        """Show the user an error in the configuration, once until it is corrected."""
        if message in self._complaints:
            return
        self._complaints.add(message)
        if message not in self._earlier_complaints:
            self.window_show_message(lsp.ShowMessageParams(kind, f"ctxlint: {message}"))

    def complain_about_settings(self) -> None:
        """Show the user what is wrong with the client's settings."""
        for settings in (self.settings.client, *self.settings.by_folder.values()):
            for mistake in settings.mistakes:
                self.complain(mistake, lsp.MessageType.Warning)

    def _complain_from_worker(self, message: str) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.complain, message)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a failure of a message handler; a pop-up for each would not help anybody."""
        logger.error("%s: %s", getattr(source, "__name__", source), error)
