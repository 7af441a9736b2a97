"""``python -m ctxlint``: Python has put the current folder first on the path, and nothing else may come from there."""

from __future__ import annotations

from ctxlint.search_path import leave_current_folder

leave_current_folder()

import sys  # noqa: E402

from ctxlint.cli import program  # noqa: E402

sys.exit(program())
