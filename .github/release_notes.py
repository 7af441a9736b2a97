"""The notes of a release: ``python .github/release_notes.py vX.Y.Z`` prints the section of the changelog."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def version() -> str:
    """The version in ``ctxlint/version.py``, without importing it."""
    text = (ROOT / "ctxlint" / "version.py").read_text(encoding="utf-8")
    [found] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(found)


def notes(wanted: str) -> str:
    """The section of one version, without its heading. Raises ValueError where it is missing or empty."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(wanted)}\] - \d{{4}}-\d\d-\d\d\n"
    found = re.search(rf"{heading}(.*?)(?=^## |^\[|\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None or not found[1].strip():
        raise ValueError(f"CHANGELOG.md has no section for {wanted}")
    return found[1].strip() + "\n"


def main() -> int:
    """Print the notes for the tag, or say why there can be no release."""
    tag = sys.argv[1]
    if tag != f"v{version()}":
        print(f"the tag is {tag}, the version {version()}", file=sys.stderr)
        return 1
    try:
        sys.stdout.write(notes(version()))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
