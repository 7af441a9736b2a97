"""The JSON Schema of a configuration file, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

from ctxlint.config.options import OPTIONS, Option
from ctxlint.config.settings import ALL, FORMATS
from ctxlint.rule_names import rule_names

_TYPES: dict[str, dict[str, Any]] = {
    "bool": {"type": "boolean"},
    "str": {"type": "string"},
    "list[str]": {"type": "array", "items": {"type": "string"}},
    "list[glob]": {"type": "array", "items": {"type": "string"}},
    "list[selector]": {"type": "array", "items": {"$ref": "#/definitions/selector"}},
    "dict[glob, list[selector]]": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"$ref": "#/definitions/selector"}},
    },
}


def json_schema() -> dict[str, Any]:
    """The schema of ``ctxlint.toml`` and of ``[tool.ctxlint]``; only the keys in ``OPTIONS`` are allowed."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "ctxlint",
        "description": "The configuration of ctxlint: ctxlint.toml, .ctxlint.toml, [tool.ctxlint] of pyproject.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": {option.key: _property(option) for option in OPTIONS},
        "definitions": {
            "selector": {"description": "A code, a prefix of codes, the name of a rule, or ALL.", "enum": _selectors()}
        },
    }


def _property(option: Option) -> dict[str, Any]:
    described = {"description": " ".join(option.text.split()), **_TYPES[option.type]}
    return {**described, "enum": list(FORMATS)} if option.key == "output-format" else described


def _selectors() -> list[str]:
    names = rule_names()
    beginnings = {code[:length] for code in names for length in range(len("CTX"), len(code) + 1)}
    return [ALL, *sorted(beginnings), *names.values()]
