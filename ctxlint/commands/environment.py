"""The environment variables that set options. An empty one counts as not set."""

from __future__ import annotations

import os

_NO = ("", "0", "f", "false", "n", "no", "off")


def value(name: str) -> str | None:
    """The value of ``CTXLINT_<name>``."""
    return os.environ.get(f"CTXLINT_{name}") or None


def switched_on(name: str) -> bool:
    """Whether ``CTXLINT_<name>`` is set to something that does not mean no."""
    return os.environ.get(f"CTXLINT_{name}", "").strip().lower() not in _NO
