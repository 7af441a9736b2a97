"""Reading a configuration file: converting its keys to settings, and locating errors."""

from __future__ import annotations

import os
import re
from typing import Any

from ctxlint.config.options import BY_KEY, kind_of, nearest, version_allowed
from ctxlint.config.project_files import PROJECT_FILE, ConfigurationError, bytes_of, shown
from ctxlint.config.settings import Settings, added, anchored, per_file_ignores
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.boundary import is_inside
from ctxlint.source.formats import Malformed, from_toml, text_of
from ctxlint.version import __version__

_TABLE = ("tool", "ctxlint")
_MOST_EXTENDED = 20


def read(path: str, *, _extended_by: tuple[str, ...] = (), _referenced_by: _Place | None = None) -> Settings:
    """The settings in the file at an absolute path.

    Raises:
        ConfigurationError: The file cannot be used.
    """
    try:
        data = bytes_of(path)
    except ConfigurationError as error:
        if _referenced_by is None:
            raise
        raise _referenced_by.error(("extend",), f"`extend`: {error}") from None
    document = _parse(path, data)
    if os.path.basename(path) == PROJECT_FILE:
        own = _own_table(document)
        table: object = {} if own is None else own
        above: tuple[str, ...] = _TABLE
    else:
        table, above = document, ()
    place = _Place(path, data.decode("utf-8", "replace"), above)
    if not isinstance(table, dict):
        raise place.error((), f"`{'.'.join(above)}`: expected a table, got {kind_of(table)}")
    return _read_table(table, place, (*_extended_by, path))


@record
class _Place:
    """The position of a table, for the line numbers of errors."""

    path: str
    text: str
    above: tuple[str, ...]

    def error(self, keys: tuple[str, ...], message: str) -> ConfigurationError:
        line = _line_of(self.text, (*self.above, *keys))
        return ConfigurationError(f"{shown(self.path)}:{line}: {message}")


def _read_table(table: dict[str, Any], place: _Place, chain: tuple[str, ...]) -> Settings:
    values = _values(table, place)
    root = os.path.dirname(place.path)
    base = Settings()
    extended = values.pop("extend", None)
    if extended is not None:
        target = os.path.abspath(os.path.join(root, os.path.expanduser(extended)))
        if target in chain:
            raise place.error(("extend",), "the configuration files extend each other in a cycle")
        if len(chain) >= _MOST_EXTENDED:
            raise place.error(("extend",), f"more than {_MOST_EXTENDED} files extend each other")
        base = read(target, _extended_by=chain, _referenced_by=place)
    required = values.get("required_version")
    if required is not None and not version_allowed(__version__, required):
        raise place.error(("required-version",), f"this is ctxlint {__version__}, but `{required}` is required")
    anchored_values = _anchored(values, root, base)
    _check_cache_dir(anchored_values, root, place)
    return base._replace(**anchored_values, root=root, config_file=place.path)


def _check_cache_dir(values: dict[str, Any], root: str, place: _Place) -> None:
    """Raise ConfigurationError for a folder outside: the author of the file must not choose where to write."""
    folder = values.get("cache_dir")
    if folder is not None and not is_inside(os.path.abspath(folder), root):
        reason = "expected a folder next to this file or below; for other folders use --cache-dir"
        raise place.error(("cache-dir",), f"`cache-dir`: {reason}")


def _values(table: dict[str, Any], place: _Place) -> dict[str, Any]:
    """The attributes of Settings that a table sets.

    Raises:
        ConfigurationError: A key or value is invalid.
    """
    values = {}
    for key, value in table.items():
        option = BY_KEY.get(key)
        if option is None:
            raise place.error((key,), f"unknown key `{key}`{_advice(key, place)}")
        try:
            values[option.field] = option.read(value)
        except ValueError as error:
            raise place.error((key,), f"`{key}`: {error}") from None
    return values


def _advice(key: str, place: _Place) -> str:
    if key == _TABLE[0] and not place.above:
        return f"; this file takes the options themselves, without `[{'.'.join(_TABLE)}]`"
    return nearest(key, BY_KEY)


def _anchored(values: dict[str, Any], root: str, base: Settings) -> dict[str, Any]:
    """``values`` with absolute globs, and with values that extend those of an extended file joined to them."""
    values = dict(values)
    for key in ("exclude", "extend_exclude"):
        if key in values:
            values[key] = tuple(anchored(glob, root) for glob in values[key])
    for key in ("baseline", "cache_dir"):
        if key in values:
            values[key] = os.path.join(root, os.path.expanduser(values[key]))
    for key in ("per_file_ignores", "extend_per_file_ignores"):
        if key in values:
            values[key] = per_file_ignores(values[key].items(), root)
    return added(base, values)


def apply_inline(settings: Settings, line: str) -> Settings:
    """``--config 'key = value'``: the key takes precedence over the file's."""
    try:
        table = from_toml(line)
    except Malformed as error:
        raise ConfigurationError(
            f"--config {line!r} is neither an existing file nor a `key = value` pair of TOML: {error}"
        ) from None
    return apply_table(settings, table, os.getcwd(), "--config")


def apply_table(settings: Settings, table: dict[str, Any], root: str, origin: str) -> Settings:
    """``settings`` updated by the keys of ``table``; globs are relative to ``root``.

    Raises:
        ConfigurationError: A key or value is invalid; the message begins with ``origin``.
    """
    values = {}
    for key, value in table.items():
        option = BY_KEY.get(key)
        if option is None or key == "extend":
            raise ConfigurationError(f"{origin}: unknown key `{key}`{nearest(key, BY_KEY)}")
        try:
            values[option.field] = option.read(value)
        except ValueError as error:
            raise ConfigurationError(f"{origin}: `{key}`: {error}") from None
    return settings._replace(**_anchored(values, root, Settings()))


def holds_table(path: str, data: bytes) -> bool:
    """Whether a pyproject.toml with this content has a ``[tool.ctxlint]`` table.

    Raises:
        ConfigurationError: It is not TOML.
    """
    return _own_table(_parse(path, data)) is not None


def _own_table(document: dict[str, Any]) -> object:
    """The ``[tool.ctxlint]`` table of a pyproject.toml, if any."""
    tool = document.get("tool")
    return tool.get("ctxlint") if isinstance(tool, dict) else None


def _parse(path: str, data: bytes) -> dict[str, Any]:
    try:
        return from_toml(text_of(data))
    except Malformed as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f":{found[1]}:{found[2]}" if found else ""
        raise ConfigurationError(f"{shown(path)}{place}: {error}") from None


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """The 1-based line that sets ``keys``, or opens the deepest table above it: TOML readers do not report lines."""
    best, best_depth = 1, 0
    table: tuple[str, ...] = ()
    for number, line in enumerate(re.split(r"\r?\n", text), start=1):
        header = _HEADER.match(line)
        if header:
            table = here = _split_key(header[1])
        else:
            key, equals, _ = line.partition("=")
            if not equals:
                continue
            here = (*table, *_split_key(key))
        depth = len(here) if keys[: len(here)] == here else (len(keys) if here[: len(keys)] == keys else 0)
        if depth > best_depth:
            best, best_depth = number, depth
    return best


_HEADER = pattern(r"\s*\[\[?([^\[\]]+)\]")


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(r""""[^"]*"|'[^']*'|[\w\-]+""", dotted))
