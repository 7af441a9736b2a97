"""``python -m ctxlint``."""

from __future__ import annotations

import sys

from ctxlint.cli import main

sys.exit(main())
