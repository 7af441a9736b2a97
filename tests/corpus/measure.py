"""Measure ctxlint on real repositories: ``python tests/corpus/measure.py FOLDER [FOLDER ...] [--select RULES]``.

FOLDER holds checkouts side by side (``FOLDER/apex``, ``FOLDER/torchrec`` …); a folder that holds an installed ``torch``
package (site-packages) counts torch as one of them. Nothing of them belongs into this repository. The report says how
many findings each rule has, and which of the defects in ``known_defects.toml`` are found.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KNOWN = Path(__file__).with_name("known_defects.toml")


@dataclass(frozen=True)
class Found:
    """One finding: where, on which class, by which rule."""

    path: str
    line: int
    class_name: str
    code: str
    message: str


@dataclass(frozen=True)
class Defect:
    """One entry of ``known_defects.toml``."""

    row: int
    path: str
    class_name: str
    rules: tuple[str, ...]
    note: str


def known_defects() -> list[Defect]:
    """The defects that were confirmed manually."""
    with KNOWN.open("rb") as file:
        entries = tomllib.load(file)["defect"]
    return [Defect(each["row"], each["path"], each["class"], tuple(each["rules"]), each["note"]) for each in entries]


def checkouts(folder: Path) -> list[Path]:
    """The repositories in a folder: all its sub-folders, or torch alone where it is a site-packages folder."""
    torch = folder / "torch"
    if (torch / "autograd").is_dir():
        return [torch]
    return sorted(each for each in folder.iterdir() if each.is_dir())


def lint(folder: Path, select: str) -> list[Found]:
    """Everything ctxlint finds in the checkouts of a folder."""
    command = [sys.executable, "-m", "ctxlint", "check", "--isolated", "--no-cache", "--exit-zero", "--ignore-noqa"]
    command += ["--output-format", "json", "--no-respect-gitignore"]
    if select:
        command += ["--select", select]
    command += [str(each) for each in checkouts(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ctxlint failed with {done.returncode} on {folder}:\n{done.stderr}")
    classes = Classes()
    found = []
    for each in json.loads(done.stdout):
        path = Path(each["filename"])
        line = each["location"]["row"]
        found.append(
            Found(
                path.relative_to(folder.resolve()).as_posix(),
                line,
                classes.around(path, line),
                each["code"],
                each["message"],
            )
        )
    return found


class Classes:
    """Maps a line to the class around it."""

    def __init__(self) -> None:
        self._spans: dict[Path, list[tuple[int, int, str]]] = {}

    def around(self, path: Path, line: int) -> str:
        """The innermost class statement around a line; empty for none."""
        if path not in self._spans:
            self._spans[path] = self._read(path)
        inside = [span for span in self._spans[path] if span[0] <= line <= span[1]]
        return max(inside)[2] if inside else ""

    def names(self, path: Path) -> set[str]:
        """The names of all classes of a file."""
        if path not in self._spans:
            self._spans[path] = self._read(path)
        return {name for _first, _last, name in self._spans[path]}

    @staticmethod
    def _read(path: Path) -> list[tuple[int, int, str]]:
        try:
            module = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            return []
        return [
            (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or 0, node.name)
            for node in ast.walk(module)
            if isinstance(node, ast.ClassDef)
        ]


def status(defect: Defect, findings: list[Found], folders: list[Path]) -> str:
    """``found``, ``missed``, ``gone`` (no such file or class here any more) or ``no rule``."""
    if not defect.rules:
        return "no rule"
    for each in findings:
        same_class = defect.class_name in ("*", each.class_name)
        if each.path == defect.path and same_class and each.code in defect.rules:
            return "found"
    for folder in folders:
        path = folder / defect.path
        if path.is_file() and (defect.class_name == "*" or defect.class_name in Classes().names(path)):
            return "missed"
    return "gone"


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--select", default="", help="rules, as ctxlint's --select takes them")
    parser.add_argument("--list", action="store_true", help="print every finding")
    options = parser.parse_args()
    findings = [each for folder in options.folders for each in lint(folder, options.select)]
    if options.list:
        for each in findings:
            print(f"{each.path}:{each.line}: {each.class_name}: {each.code} {each.message}")
        print()
    print("findings by rule")
    for code, count in sorted(Counter(each.code for each in findings).items()):
        print(f"  {code} {count:5}")
    print("known defects")
    folders = [folder.resolve() for folder in options.folders]
    answers: Counter[str] = Counter()
    rows: dict[int, set[str]] = {}
    for defect in known_defects():
        answer = status(defect, findings, folders)
        answers[answer] += 1
        rows.setdefault(defect.row, set()).add(answer)
        where = f"{defect.path} {defect.class_name}"
        print(f"  {answer:8} row {defect.row:2} {'/'.join(defect.rules):14} {where}: {defect.note}")
    found = sum("found" in each for each in rows.values())
    print(f"{dict(sorted(answers.items()))}; {found} of {len(rows)} rows have a finding")


if __name__ == "__main__":
    main()
