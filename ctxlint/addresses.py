"""The URLs of the project: its website, its repository, and the page of each rule."""

from __future__ import annotations

SITE = "https://ctxlint.github.io/ctxlint/"
REPOSITORY = "https://github.com/ctxlint/ctxlint"


def rule_page(code: str) -> str:
    """The page of a rule. It is named after the code, because a rule's name may change."""
    return f"{SITE}rules/{code}/"
