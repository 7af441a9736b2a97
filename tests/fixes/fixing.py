"""Builds small classes around the lines that a fix concerns."""

from __future__ import annotations

from tests.linting import apply_fixes, lint, listing, only_rule, settings_from


def fixed_by(code: str, text: str, *, unsafe: bool = False, options: str = "") -> str:
    """``text`` after ``--fix`` with one rule on. Raises AssertionError where a second run would change more."""
    settings = only_rule(settings_from(options), code)
    fixed = apply_fixes(text, "example.py", settings, unsafe=unsafe)
    assert apply_fixes(fixed, "example.py", settings, unsafe=unsafe) == fixed
    return fixed


def assert_fixed(code: str, text: str, expected: str, *, unsafe: bool = False) -> None:
    """The fix of a rule gives ``expected``, in which the rule finds nothing more."""
    assert fixed_by(code, text, unsafe=unsafe) == expected
    diagnostics = lint(expected, settings=only_rule(settings_from(""), code))
    assert diagnostics == [], listing(diagnostics)
