"""Constraints for pip: the lowest version of each runtime dependency, for the Python that runs this."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

TEXT = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")


def main() -> None:
    """Print ``name==version`` for each dependency that applies here."""
    table = re.findall(r"^dependencies = \[\n(.*?)^\]", TEXT, re.DOTALL | re.MULTILINE)[0]
    listed = re.findall(r'^    "(.+)",', table, re.MULTILINE)
    for text in listed:
        needed = Requirement(text)
        if needed.marker is None or needed.marker.evaluate():
            lowest = next(each.version for each in needed.specifier if each.operator == ">=")
            sys.stdout.write(f"{needed.name}=={lowest}\n")


if __name__ == "__main__":
    main()
