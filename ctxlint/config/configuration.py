"""The settings of a folder: the nearest configuration file above it, and the command line."""

from __future__ import annotations

import os
from typing import Any

from ctxlint.config.project_files import PROJECT_FILE, bytes_of, nearest
from ctxlint.config.settings import Settings, added

_OWN_FILES = (".ctxlint.toml", "ctxlint.toml")


class Configuration:
    """Finds and caches the settings of folders.

    ``overrides`` are attributes of Settings that the command line sets; they take precedence over files. With
    ``isolated``, no file is read. ``file`` replaces the nearest file; ``inline`` are additional ``key = value`` lines
    of TOML, which take precedence over it. ``fixed`` are settings to use everywhere, regardless of all others. ``root``
    is that of settings without a file, instead of the working directory.
    """

    def __init__(
        self,
        overrides: dict[str, Any] | None = None,
        *,
        isolated: bool = False,
        file: str | None = None,
        inline: tuple[str, ...] = (),
        fixed: Settings | None = None,
        root: str | None = None,
    ) -> None:
        """Nothing is read before the first request."""
        self.overrides = overrides or {}
        self.isolated = isolated
        self.file = file
        self.inline = inline
        self.fixed = fixed
        self.root = root
        self._by_folder: dict[str, Settings] = {}

    def settings_for(self, folder: str) -> Settings:
        """The settings for the files in ``folder``: those of the nearest configuration file above.

        Raises:
            ConfigurationError: The file cannot be used.
        """
        if self.fixed is not None:
            return self.fixed
        folder = "" if self.isolated or self.file is not None else os.path.abspath(folder)
        return nearest(folder, self._by_folder, self._settings_in, lambda: self._load(self.file))

    def settings_for_file(self, path: str) -> Settings:
        """``settings_for`` the folder of a file, completed by what the project requires and its line length.

        Only worth the cost for files that will be linted.

        Raises:
            ConfigurationError: The file cannot be used.
        """
        folder = os.path.dirname(path)
        settings = self.settings_for(folder)
        if self.fixed is not None or self.isolated:
            return settings
        from ctxlint.config.line_length import line_length
        from ctxlint.config.python_requirement import python_requirement

        folder = os.path.abspath(folder)
        settings = settings._replace(line_length=line_length(folder), project_python=python_requirement(folder))
        if settings.target_torch is not None:
            return settings
        from ctxlint.config.torch_requirement import torch_requirement

        return settings._replace(project_torch=torch_requirement(folder))

    def _settings_in(self, folder: str) -> Settings | None:
        file = _own_file(folder) if folder else None
        return None if file is None else self._load(file)

    def _load(self, file: str | None) -> Settings:
        settings = Settings(root=self.root or os.getcwd()) if file is None else read_configuration(file)
        if self.inline:
            from ctxlint.config.load import apply_inline

            for line in self.inline:
                settings = apply_inline(settings, line)
        return settings._replace(**added(settings, self.overrides))


def _own_file(folder: str) -> str | None:
    """The configuration file in ``folder`` itself, if any."""
    for name in _OWN_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    path = os.path.join(folder, PROJECT_FILE)
    if not os.path.isfile(path):
        return None
    data = bytes_of(path)
    if b"ctxlint" not in data:  # most projects do not configure ctxlint: they should not cost a TOML parser
        return None
    from ctxlint.config.load import holds_table

    return path if holds_table(path, data) else None


def read_configuration(path: str | os.PathLike[str]) -> Settings:
    """The settings in one file; for pyproject.toml, those in its ``[tool.ctxlint]`` table.

    Raises:
        ConfigurationError: It cannot be read, or has an unknown key or a value of the wrong type.
    """
    from ctxlint.config.load import read

    return read(os.path.abspath(path))
