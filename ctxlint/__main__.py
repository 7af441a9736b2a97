"""``python -m ctxlint``: Python has put the current folder first on the path; nothing else may be imported from it."""

from ctxlint.search_path import leave_current_folder

leave_current_folder()

import sys  # noqa: E402

from ctxlint.cli import program  # noqa: E402

sys.exit(program())
