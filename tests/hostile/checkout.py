"""A checkout as an attacker would write it: ``python -m tests.hostile.checkout FOLDER`` builds one to play with.

It has a file named like each module that ctxlint, its dependencies or Python itself could import, which creates a
file when it runs. Names of files are options, argument files, escape sequences and commands of CI systems.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fixture_reader import ROOT

BROKEN = """\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale


y = Scale.apply(x, 2.0)
"""
FILES = 80
"""Enough for a run to start processes."""

_RUNS = """\
with open({marker!r}, "a") as marker:
    marker.write(__name__ + "\\n")
raise SystemExit("code of the checkout runs: " + __name__)
"""
_THIRD_PARTY = (
    "_pytest", "attr", "attrs", "cattrs", "coverage", "flake8", "hatchling", "libcst", "lsprotocol", "packaging",
    "pathspec", "pip", "platformdirs", "pygls", "setuptools", "shtab", "sitecustomize", "tomli", "torch", "tqdm",
    "typing_extensions", "usercustomize", "wheel", "yaml", "yaml_ft",
)  # fmt: skip

ODD_NAMES = (
    "@evil.py",
    "-ohidden.py",
    "--fix",
    "--config=evil.py",
    "::stop-commands::token.py",
    "##[stop-commands]token.py",
    "##vso[task.setvariable variable=PATH]evil.py",
    "a\x1b]0;title\x07\x1b[2J.py",
    "b\n::error::forged.py",
    "c\r##vso[task.complete result=Succeeded].py",
    "d\u202egnp.py",
    "e\x9b31m.py",
)
"""Names of files that no system of CI, terminal or parser of options must take for more than names."""


def shadows(but: frozenset[str] = frozenset()) -> frozenset[str]:
    """The names of all modules whose import could hit the checkout by accident."""
    return (frozenset(sys.stdlib_module_names) | frozenset(_THIRD_PARTY)) - but


def build(folder: Path, marker: Path, *, but: frozenset[str] = frozenset(), odd_names: bool = True) -> None:
    """Write the checkout into ``folder``; what runs of it writes its name into ``marker``.

    ``but`` are modules that are not shadowed: those that Python imports from there before any of ctxlint runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(shadows(but)):
        (folder / f"{name}.py").write_text(_RUNS.format(marker=str(marker)), encoding="utf-8")
    for number in range(FILES):
        (folder / f"program{number}.py").write_text(BROKEN, encoding="utf-8")
    if odd_names and sys.platform != "win32":
        for name in ODD_NAMES:
            (folder / name).write_text(f"#!/usr/bin/env python3\n{BROKEN}", encoding="utf-8")
    (folder / "evil.py").write_text("--fix\n--output-file=hidden\n", encoding="utf-8")


def add_links(folder: Path, outside: Path) -> None:
    """Create links that lead from files that ctxlint may write to out of the checkout."""
    outside.mkdir()
    (outside / "private.py").write_text(BROKEN + "\npassword = 'hunter2' +\n", encoding="utf-8")
    (outside / "secret").write_text("{}\n", encoding="utf-8")
    links = {
        "linked.py": "private.py",
        "report.json": "secret",
        "baseline.json": "new.json",
        ".ctxlint_cache": ".",
        "out": ".",
        "results.bin": "secret",
    }
    for name, target in links.items():
        (folder / name).symlink_to(outside / target)


def imported_first() -> frozenset[str]:
    """What ``python -m ctxlint`` imports before the first line of ctxlint runs."""
    script = "import runpy, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    return frozenset(run.stdout.split())


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(os.path.abspath(sys.argv[1]) + ".marker"))
