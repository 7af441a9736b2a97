"""Results of earlier sessions for documents that were just opened: shown before anything heavy is imported."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ctxlint.config.project_files import ConfigurationError
from ctxlint.editor.checked import Checked
from ctxlint.editor.documents import Document
from ctxlint.result import Candidate, FileResult
from ctxlint.run.pipeline import is_left_out
from ctxlint.run.stored_result import earlier_result, store_result
from ctxlint.source.decode import decode
from ctxlint.source.reading import OPEN, NotPython, Undecodable, Unreadable, read_bytes
from ctxlint.source.scanner import holds_candidate

if TYPE_CHECKING:
    from ctxlint.editor.documents import Opened
    from ctxlint.editor.workspace import Workspace


class EarlierResults:
    """The stored results of documents that are as they are on the disk, while all other open ones are as well."""

    def __init__(self, workspace: Workspace) -> None:
        """Nothing is read before the first request."""
        self._workspace = workspace
        self._serial = 0

    def checked(self, document: Opened) -> Checked | None:
        """The stored result of a document; None if there is none that still holds."""
        file = self._file(document)
        if file is None:
            return None
        try:
            found = earlier_result(file, self._workspace.configuration_for(file.path))
        except ConfigurationError as error:
            self._workspace.complain(str(error))
            return None
        if found is None or found.failed:
            return None
        baseline = self._workspace.baseline_for(file.settings)
        found = found if baseline is None else baseline.leave_out(found)
        self._serial -= 1  # those of the checker are positive
        result = FileResult(
            file.path,
            document.source,
            found.diagnostics,
            found.hidden,
            found.warnings,
            broken=found.broken,
            linted=True,
            settings=file.settings,
        )
        return Checked(document, result, found.diagnostics, self._serial)

    def store(self, document: Opened) -> None:
        """Store the result of a document for later sessions."""
        file = self._file(document)
        if file is not None:
            with suppress(ConfigurationError):  # the user has been told when the document was opened
                store_result(file, self._workspace.configuration_for(file.path))

    def _file(self, document: Opened) -> Candidate | None:
        """The file of a document; None if its text, or that of another open document, is not that of the file."""
        path = document.path
        if not isinstance(document, Document) or not os.path.isabs(path) or document.source.bom:
            return None
        settings = self._workspace.settings_for(path)
        if is_left_out(path, settings) or not _is_on_disk(path, document.source.text):
            return None
        if not holds_candidate(document.source.text.encode("utf-8", "surrogatepass")):
            return None
        others = ((other, text) for other, text in tuple(OPEN.items()) if other != path)
        return Candidate(path, settings) if all(_is_on_disk(*each) for each in others) else None


def _is_on_disk(path: str, text: str) -> bool:
    """Whether a file has this text."""
    try:
        return decode(path, read_bytes(path)).text == text
    except (Unreadable, Undecodable, NotPython):
        return False
