"""The rules: one file each, found by listing this folder.

A module named ``ctxNNN_some_name.py`` holds exactly one subclass of ``Rule``. No other registration is needed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ctxlint.rule_names import rule_modules
from ctxlint.rules.base import Rule


@cache
def all_rules() -> tuple[Rule[Any], ...]:
    """Every rule, sorted by code.

    Raises:
        ValueError: Two rules share a code or a name.
    """
    found = map(_rule_in, rule_modules())
    rules = tuple(sorted(found, key=lambda rule: rule.code))
    for label in ("code", "name"):
        labels = [getattr(rule, label) for rule in rules]
        repeated = sorted({each for each in labels if labels.count(each) > 1})
        if repeated:
            raise ValueError(f"two rules share the {label} {', '.join(repeated)}")
    return rules


def _rule_in(module_name: str) -> Rule[Any]:
    module = import_module(f"{__name__}.{module_name}")
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and issubclass(value, Rule)
    ]
    if len(classes) != 1:
        raise ValueError(f"{module.__name__} must hold exactly one Rule, not {len(classes)}")
    rule: Rule[Any] = classes[0]()
    if f"{rule.code}-{rule.name}".lower().replace("-", "_") != module_name:
        raise ValueError(f"{module.__name__} must be named after its rule, {rule.code} {rule.name}")
    return rule
