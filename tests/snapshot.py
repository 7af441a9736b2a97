"""Everything that ctxlint reports, as text, to compare before and after a change that must not change behaviour.

``python -m tests.snapshot before.txt [FOLDER ...]`` writes what the commands below print for the code of all fixtures and
programs, and for each FOLDER; ``python -m tests.snapshot after.txt [FOLDER ...] --against before.txt`` also
prints the first difference, and exits with 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fixture_reader import write_tree

COMMANDS = (
    ("check", "--isolated", "--no-cache", "--select", "ALL", "--output-format", "json", "."),
    ("check", "--isolated", "--no-cache", "--select", "ALL", "--diff", "--unsafe-fixes", "."),
    ("explain", "--isolated", "--output-format", "json", "."),
    ("explain", "--isolated", "--color", "never", "."),
)
LINES_AROUND = 10
"""How much is printed around the first difference."""


def snapshot(folders: list[Path]) -> str:
    """What all commands print for the fixtures and for each folder."""
    with tempfile.TemporaryDirectory() as fixtures:
        write_tree(Path(fixtures))
        parts = [_printed(Path(fixtures), "fixtures", command) for command in COMMANDS]
    return "".join(parts + [_printed(folder, folder.name, command) for folder in folders for command in COMMANDS])


def _printed(folder: Path, name: str, command: tuple[str, ...]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", *command], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )
    text = f"== {name}: {' '.join(command)}\n{done.stdout}-- {done.returncode}\n{done.stderr}\n"
    return text.replace(str(folder.resolve()), name)


def main() -> int:
    """Write a snapshot and compare it with an older one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--against", type=Path, metavar="FILE")
    options = parser.parse_args()
    text = snapshot(options.folders)
    options.file.write_text(text, encoding="utf-8")
    if options.against is None:
        return 0
    before = options.against.read_text(encoding="utf-8")
    if before == text:
        print(f"the same: {text.count(chr(10))} lines")
        return 0
    _show_first_difference(before.splitlines(), text.splitlines())
    return 1


def _show_first_difference(before: list[str], after: list[str]) -> None:
    """Print the first difference of both; ``diff`` shows the rest."""
    pairs = zip(before, after)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(before), len(after)))
    for lines, sign in ((before, "-"), (after, "+")):
        print(*(f"{sign} {line}" for line in lines[max(at - LINES_AROUND, 0) : at + LINES_AROUND]), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
