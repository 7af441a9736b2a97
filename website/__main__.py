"""``python -m website [FOLDER]``: build the site, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

from website.build import build

if __name__ == "__main__":
    given = sys.argv[1:]
    print(build(Path(given[0] if given else "build/website")))
