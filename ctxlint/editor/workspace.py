"""The settings of a document: those of the project's files, and those of the client."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ctxlint.config.configuration import Configuration
from ctxlint.config.load import apply_table
from ctxlint.config.options import BY_KEY
from ctxlint.config.project_files import ConfigurationError
from ctxlint.config.settings import Settings
from ctxlint.source.boundary import is_inside
from ctxlint.source.reading import Unreadable
from ctxlint.suppression.baseline_file import Baseline, MalformedBaseline, read_baseline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

BASELINE = ".ctxlint-baseline.json"
OWN_SECTION = "ctxlint"
_ORIGIN = "the editor's settings"
_FOR_THE_CLIENT = frozenset(
    {"args", "fix-on-save", "import-strategy", "interpreter", "path", "show-notifications", "trace"}
)
"""Settings that extensions store in the same section for themselves."""


@dataclass(frozen=True)
class ClientSettings:
    """The client's settings: ``file`` replaces the nearest configuration file, ``table`` takes precedence over it.

    Those from ``enable`` to ``noqa_actions`` switch features on and off. ``run`` is when to check: ``onType``,
    ``onSave``. ``preference`` decides which settings take precedence: ``editorFirst``, ``filesystemFirst`` or
    ``editorOnly``. ``mistakes`` describes invalid settings.
    """

    file: str | None = None
    table: tuple[tuple[str, Any], ...] = ()
    enable: bool = True
    inlay_hints: bool = True
    hover: bool = True
    show_syntax_errors: bool = True
    fix_all: bool = True
    quick_fixes: bool = True
    noqa_actions: bool = True
    run: str = "onType"
    preference: str = "editorFirst"
    log_level: str = "error"
    log_file: str = ""
    mistakes: tuple[str, ...] = ()


def read_client_settings(message: object) -> ClientSettings:
    """The settings in a client's message: keys as in ctxlint.toml or in camel case, and ``configuration``."""
    message = _unwrapped(message)
    if not isinstance(message, dict):
        return ClientSettings()
    known: dict[str, Any] = {}
    mistakes: list[str] = []
    chosen: dict[str, Any] = {}
    file = None
    for name, value in _flat(message):
        key = _kebab(str(name))
        if value is None or key in _FOR_THE_CLIENT:
            continue
        if key == "configuration" and isinstance(value, str):
            file = value or None
        elif key == "configuration" and isinstance(value, dict):
            known.update(value)
        elif key in _SWITCHES and isinstance(value, bool):
            chosen[_SWITCHES[key]] = value
        elif key in _CHOICES and value in _CHOICES[key][1]:
            chosen[_CHOICES[key][0]] = value
        elif key == "log-file" and isinstance(value, str):
            chosen["log_file"] = value
        elif key in BY_KEY and key != "extend":
            known[key] = value
        else:
            mistakes.append(f"{_ORIGIN}: `{name}` is not a setting of ctxlint, or has an invalid value")
    return ClientSettings(file, tuple(known.items()), **chosen, mistakes=tuple(mistakes))


_SWITCHES = {
    "enable": "enable",
    "inlay-hints": "inlay_hints",
    "hover": "hover",
    "show-syntax-errors": "show_syntax_errors",
    "fix-all": "fix_all",
    "code-action.fix-violation.enable": "quick_fixes",
    "code-action.disable-rule-comment.enable": "noqa_actions",
}
"""Boolean settings, with the field of ``ClientSettings``."""

_CHOICES = {
    "run": ("run", ("onType", "onSave")),
    "configuration-preference": ("preference", ("editorFirst", "filesystemFirst", "editorOnly")),
    "log-level": ("log_level", ("error", "warning", "info", "debug")),
}
"""Settings with a fixed set of values."""


def _flat(message: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The settings one by one; those of code actions are in nested tables."""
    for name, value in message.items():
        if isinstance(value, dict) and _kebab(f"{above}{name}") in _TABLES:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


_TABLES = frozenset({"code-action", "code-action.fix-violation", "code-action.disable-rule-comment"})


def _unwrapped(message: object) -> object:
    """The content of ``{"settings": ...}`` and ``{"ctxlint": ...}``."""
    for wrapper in ("settings", OWN_SECTION):
        if isinstance(message, dict) and isinstance(message.get(wrapper), dict):
            message = message[wrapper]
    return message


def _kebab(name: str) -> str:
    return re.sub(r"([a-z])([A-Z])", r"\1-\2", name).replace("_", "-").lower()


@dataclass
class Workspace:
    """The open folders and their settings. ``complain`` is called with errors of a configuration."""

    complain: Callable[[str], None]
    folders: tuple[str, ...] = ()
    client: ClientSettings = ClientSettings()
    by_folder: Mapping[str, ClientSettings] = field(default_factory=dict)
    _settings: dict[str, Settings] = field(default_factory=dict)
    _configurations: dict[str, Configuration] = field(default_factory=dict)
    _baselines: dict[str, Baseline | None] = field(default_factory=dict)
    _last: dict[str, Settings] = field(default_factory=dict)

    def reload(self) -> None:
        """Read all configuration files and baselines again from now on."""
        self._settings, self._configurations, self._baselines = {}, {}, {}

    def folder_of(self, path: str) -> str:
        """The innermost open folder that contains a file; the first one if none does."""
        around = [folder for folder in self.folders if path == folder or path.startswith(os.path.join(folder, ""))]
        return max(around, key=len, default=self.folders[0] if self.folders else os.getcwd())

    def client_settings_for(self, path: str) -> ClientSettings:
        """The client's settings for a file."""
        return self.by_folder.get(self.folder_of(path), self.client)

    def settings_for(self, path: str) -> Settings:
        """The settings for a file. If its configuration is invalid, the previous ones."""
        place = os.path.dirname(path) if os.path.isabs(path) else self.folder_of(path)
        known = self._settings.get(place)
        if known is None:
            try:
                known = self._last[place] = self._read(place)
            except ConfigurationError as error:
                self.complain(str(error))
                known = self._last.get(place) or Settings(root=self.folder_of(path))
            self._settings[place] = known
        return known

    def configuration_for(self, path: str) -> Configuration:
        """The configuration of the open folder that contains a file."""
        folder = self.folder_of(path)
        if folder not in self._configurations:
            client = self.client_settings_for(path)
            file = client.file and os.path.join(folder, os.path.expanduser(client.file))
            self._configurations[folder] = Configuration(file=file, root=folder)
        return self._configurations[folder]

    def _read(self, place: str) -> Settings:
        folder = self.folder_of(place)
        client = self.client_settings_for(place)
        if client.preference == "editorOnly":
            settings = Settings(root=folder)
        else:
            settings = self.configuration_for(place).settings_for_file(os.path.join(place, ""))
        for key, value in client.table:
            try:
                applied = apply_table(settings, {key: value}, folder, _ORIGIN)
                _check_cache_dir(applied, settings, folder)
                if (
                    client.preference != "filesystemFirst"
                    or settings.config_file is None
                    or _is_unset(settings, applied)
                ):
                    settings = applied
            except ConfigurationError as error:
                self.complain(str(error))
        return settings

    def baseline_for(self, settings: Settings) -> Baseline | None:
        """The baseline of the project."""
        path = os.path.abspath(settings.baseline or os.path.join(settings.root, BASELINE))
        if path not in self._baselines:
            self._baselines[path] = self._read_baseline(path)
        return self._baselines[path]

    def _read_baseline(self, path: str) -> Baseline | None:
        try:
            return read_baseline(path) if os.path.exists(path) else None
        except (Unreadable, MalformedBaseline) as error:
            self.complain(f"{path}: {error}")
            return None


def _check_cache_dir(applied: Settings, before: Settings, folder: str) -> None:
    """Raise ConfigurationError for a new ``cache-dir`` outside of the folder: the settings may come with a checkout."""
    cache = applied.cache_dir
    if cache is not None and cache != before.cache_dir and not is_inside(os.path.abspath(cache), folder):
        raise ConfigurationError(f"{_ORIGIN}: `cache-dir`: expected a path inside of {folder}")


def _is_unset(settings: Settings, applied: Settings) -> bool:
    """Whether the settings that ``applied`` changes have their default values in ``settings``."""
    plain = Settings()
    return all(before == default for before, after, default in zip(settings, applied, plain) if before != after)


def matters(paths: Iterable[str]) -> bool:
    """Whether one of these files may be a configuration, a baseline, or a source of the torch requirement."""
    return any(path.endswith((".toml", ".json", "setup.cfg", "setup.py", ".txt", ".yml", ".yaml")) for path in paths)
