"""The settings that findings depend on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxlint.config.settings import Settings

_IRRELEVANT_SETTINGS = frozenset(
    ["output_format", "show_fixes", "cache_dir", "no_cache", "config_file", "baseline", "required_version", "fix"]
)
"""The settings that do not affect findings."""


@lru_cache(maxsize=256)
def relevant_settings(settings: Settings) -> str:
    """The settings that affect findings, as a text."""
    return repr([each for each in settings._asdict().items() if each[0] not in _IRRELEVANT_SETTINGS])
