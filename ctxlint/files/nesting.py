from __future__ import annotations


def too_deep(text: str) -> str | None:
    """Placeholder."""
    return None
