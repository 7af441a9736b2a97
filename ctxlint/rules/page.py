"""A rule's documentation page: its docstring, as Markdown."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from ctxlint.rules.base import FixAvailability

if TYPE_CHECKING:
    from ctxlint.rules.base import Rule

_FIX = {
    FixAvailability.ALWAYS: "A fix is always available.",
    FixAvailability.SOMETIMES: "A fix is sometimes available.",
    FixAvailability.NEVER: "",
}


EXCEPT_IN_VIEW = ", except where a use in the project makes a finding certain"
"""What the pages of some rules that are off by default add."""


def explanation_of(rule: Rule[Any]) -> str:
    """The docstring without its indentation; it starts with ``## What it does``."""
    return cleandoc(type(rule).__doc__ or "")


def page_of(rule: Rule[Any]) -> str:
    """The whole page: title, category, whether it is on by default, whether it has fixes, and the explanation."""
    state = "on by default" if rule.default else f"off by default{EXCEPT_IN_VIEW * rule.default_in_view}"
    facts = f"Category: {rule.category.value}, {state}. Since {rule.since}."
    parts = [f"# {rule.name} ({rule.code})", facts, _FIX[rule.fix], explanation_of(rule)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary_of(rule: Rule[Any]) -> str:
    """The first sentence of ``What it does``, on one line."""
    text = " ".join(section_of(rule, "What it does").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0] or rule.name


def section_of(rule: Rule[Any], heading: str) -> str:
    """The text below one heading of the page; empty if there is none."""
    found = re.search(rf"^## {re.escape(heading)}\n+(.*?)(?=\n## |\Z)", explanation_of(rule), re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""
