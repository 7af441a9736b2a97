"""The effective settings of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxlint.config.options import OPTIONS
from ctxlint.report.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


def describe(path: str, settings: Settings) -> Iterator[str]:
    """The lines of ``--show-settings``: the value of every option, and the enabled rules."""
    from ctxlint.rules import all_rules

    yield f"Resolved settings for: {visible(path)}\n"
    yield f"Configuration file: {visible(settings.config_file or 'none')}\n\n"
    shown: dict[str, Any] = {
        option.key: getattr(settings, option.field) for option in OPTIONS if hasattr(settings, option.field)
    }
    shown["target-torch"] = str(settings.torch)
    shown["exclude"] = settings.exclude_globs
    for key in ("per-file-ignores", "extend-per-file-ignores"):
        shown[key] = {("!" if each.negated else "") + each.pattern: list(each.selectors) for each in shown[key]}
    for key in ("select", "extend-select", "ignore", "extend-ignore"):
        del shown[key]
    for key, value in shown.items():
        yield visible(f"{key} = {_toml(value)}") + "\n"
    yield "\nRules that are on:\n"
    for rule in all_rules():
        if settings.is_selected(rule.code, rule.name, default=rule.default):
            yield f"  {rule.code} {rule.name}\n"


def _toml(value: object) -> str:
    """``value`` in approximate TOML syntax."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + "}"
    return f'"{value}"'
