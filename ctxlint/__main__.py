"""``python -m ctxlint``."""

from __future__ import annotations

import sys

from ctxlint.cli import program

sys.exit(program())
