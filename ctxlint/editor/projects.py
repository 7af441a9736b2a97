"""The projects around documents: what was found in their files, until one of these changes."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING

from ctxlint.run.in_project import Surroundings

if TYPE_CHECKING:
    from ctxlint.config.configuration import Configuration
    from ctxlint.editor.workspace import Workspace
    from ctxlint.run.second_process import SecondProcess

_KEPT = 4


class Projects:
    """The projects around the latest documents."""

    def __init__(self, workspace: Workspace, second: SecondProcess | None = None) -> None:
        """Nothing is searched before the first request. The ``second`` process helps with that."""
        self._workspace = workspace
        self._second = second
        self._known: OrderedDict[Configuration, Surroundings] = OrderedDict()

    def around(self, path: str) -> Surroundings | None:
        """The project of a file; None for a text that is not a file yet."""
        if not (os.path.isabs(path) and os.path.isdir(os.path.dirname(path))):
            return None
        configuration = self._workspace.configuration_for(path)
        if configuration not in self._known:
            while len(self._known) >= _KEPT:
                self._known.popitem(last=False)
            share = self._second.answers if self._second is not None else None
            self._known[configuration] = Surroundings(configuration, resumes=True, share=share)
        return self._known[configuration]

    def prepare(self, path: str) -> None:
        """Let the second process begin to search the project of a file, while this one imports the checker."""
        second = self._second
        if second is not None and second.can_prepare:
            around = self.around(path)
            second.prepare(around.paths(path) if around is not None else ())

    def prepare_around(self, folder: str) -> None:
        """Let the second process begin to search the project around a folder of the client."""
        if self._second is not None:
            self._second.prepare_around(folder)

    def refresh(self) -> None:
        """Files may have changed."""
        for each in self._known.values():
            each.refresh()
