"""The codes and names of the rules, derived from the files in ``ctxlint/rules``.

No rule is imported, so that a run without Functions can validate ``--select`` at no cost.
"""

from __future__ import annotations

import os
from functools import cache

_MODULES = "ctxlint.rules"


def rule_names() -> dict[str, str]:
    """The name of every rule by its code, in order of code."""
    return _rule_names()


@cache
def _rule_names() -> dict[str, str]:
    parts = (name.partition("_") for name in rule_modules())
    return {code.upper(): words.replace("_", "-") for code, _, words in parts}


def rule_modules() -> list[str]:
    """The names of the modules that hold the rules, in order of code."""
    from pkgutil import iter_modules  # start-up: not before a selector is validated, or there is a finding

    folder = os.path.join(os.path.dirname(__file__), "rules")
    return sorted(entry.name for entry in iter_modules([folder]) if entry.name.startswith("ctx"))


@cache
def opt_in_codes() -> tuple[str, ...]:
    """The codes of the rules that are off by default, in order, from their sources.

    To import the rules is to import LibCST, in every run of flake8; a list here would be a second place to keep.
    """
    from pkgutil import get_data

    def is_opt_in(module: str) -> bool:
        return b"\n    default = False" in (get_data(_MODULES, f"{module}.py") or b"")

    return tuple(name.partition("_")[0].upper() for name in rule_modules() if is_opt_in(name))
