"""Validates settings passed by a program, as those of configuration files and the command line are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ctxlint.config.options import BY_KEY, OPTIONS, Option, kind_of
from ctxlint.config.project_files import ConfigurationError
from ctxlint.config.settings import PerFileIgnore, Selection, Settings, per_file_ignores

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFAULTS = Settings()
_PATHS = ("baseline", "cache_dir", "root", "config_file")


def checked(settings: Settings | None) -> Settings:
    """``settings`` with tuples for other sequences, and text for paths; by default, the default settings.

    Raises:
        ConfigurationError: A value that no configuration could have; the message is that of the command line.
    """
    if settings is None:
        return _DEFAULTS
    if not isinstance(settings, Settings):
        raise ConfigurationError(f"settings: expected ctxlint.Settings, got {kind_of(settings)}")
    try:
        return _checked_once(settings)
    except TypeError:  # it contains a list, which no cache accepts
        return _checked(settings)


def checked_jobs(jobs: object) -> int:
    """``jobs`` if it is a number of processes.

    Raises:
        ConfigurationError: It is not.
    """
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 0:
        raise ConfigurationError(f"jobs: expected a positive integer, or 0 for one per processor; got {jobs}")
    return jobs


def _checked(settings: Settings) -> Settings:
    values: dict[str, Any] = {}
    for option in OPTIONS:
        value = getattr(settings, option.field, None)
        if value != getattr(_DEFAULTS, option.field, None):
            values[option.field] = _read(option.field, value, settings, option)
    for name in _PATHS:
        path = getattr(settings, name)
        values[name] = os.fspath(path) if isinstance(path, os.PathLike) else path
    line = settings.command_line
    values["command_line"] = Selection(
        None if line.select is None else _selectors("select", line.select),
        _selectors("extend_select", line.extend_select),
        _selectors("ignore", line.ignore),
    )
    return settings._replace(**values)


_checked_once = lru_cache(maxsize=64)(_checked)


def _read(name: str, value: Any, settings: Settings, option: Option) -> Any:
    """The value of one option."""
    if name == "per_file_ignores":
        return _per_file_ignores(name, value, settings.root)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    with _named(name):
        return option.read(_listed(value))


def _selectors(name: str, value: Any) -> tuple[str, ...]:
    return tuple(_read(name, value, _DEFAULTS, BY_KEY[name.replace("_", "-")]))


def _per_file_ignores(name: str, value: Any, root: str | os.PathLike[str]) -> tuple[PerFileIgnore, ...]:
    """Records unchanged, or a mapping of globs like in a configuration file."""
    if isinstance(value, Mapping):
        with _named(name):
            table = BY_KEY["per-file-ignores"].read({glob: _listed(each) for glob, each in value.items()})
        return per_file_ignores(table.items(), os.fspath(root))
    if isinstance(value, str) or not all(isinstance(each, PerFileIgnore) for each in value):
        raise ConfigurationError(f"{name}: expected a dict of globs and rules, or PerFileIgnore records")
    return tuple(each._replace(selectors=_selectors("ignore", each.selectors)) for each in value)


def _listed(value: Any) -> Any:
    """A list for any other collection, as in TOML."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return list(value) if isinstance(value, tuple) else value


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Prefix a ValueError with the name of the option."""
    try:
        yield
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from None
