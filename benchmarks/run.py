"""Time ctxlint and other tools on the same files: ``python benchmarks/run.py FOLDER [--rounds N] [--scaling]``.

FOLDER holds checkouts side by side. Every round runs each command once, one after the other, so that other load on the
machine affects all of them; the table has the median of each, and ratios. ``ruff``, ``rg`` and ``torchfix`` are timed
where they are installed. ``--scaling`` also lints 1, 4 and 16 copies of the files that hold Functions.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import ctxlint

if TYPE_CHECKING:
    import resource

FLOOR = Path(__file__).with_name("floor.py")


class Timed(NamedTuple):
    """One command: seconds on the clock, processor seconds of all its processes, and the largest process in MB."""

    seconds: float
    processor: float
    peak: float


def main() -> None:
    """Read the arguments, run, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    # As it is after an installation: pip compiles what it installs.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(os.path.dirname(ctxlint.__file__), quiet=2)
    with tempfile.TemporaryDirectory() as kept:
        rounds(options.folder.resolve(), options.rounds, Path(kept))
        small(options.rounds, Path(kept))
        if options.scaling:
            scaling(options.folder.resolve(), options.rounds, Path(kept))


def rounds(folder: Path, times: int, kept: Path) -> None:
    """All tools on the whole folder."""
    default = [sys.executable, "-m", "ctxlint", "check", "--isolated", "--output-format", "concise"]
    lint = [*default, "--select", "ALL"]
    warm = [*lint, "--cache-dir", str(kept / "ctxlint"), str(folder)]
    ruff = ["ruff", "check", "--isolated", "--output-format", "concise", str(folder)]
    cached = [*ruff, "--cache-dir", str(kept / "ruff")]
    commands = {
        "ctxlint, cold": [*lint, "--no-cache", str(folder)],
        "ctxlint, cold, one process": [*lint, "--no-cache", "-j1", str(folder)],
        "ctxlint, default rules, cold": [*default, "--no-cache", str(folder)],
        "ctxlint, default rules, cold, one process": [*default, "--no-cache", "-j1", str(folder)],
        "ctxlint, warm": warm,
        "scan, ast and LibCST alone": [sys.executable, str(FLOOR), str(folder)],
        "ruff, cold": [*ruff, "--no-cache"],
        "ruff, only parsing": [*ruff, "--no-cache", "--select", "E9"],
        "ruff, warm": cached,
        "rg -l autograd": ["rg", "-l", "autograd", str(folder)],
    }
    commands = {name: command for name, command in commands.items() if shutil.which(command[0])}
    for command in (warm, *([cached] if shutil.which("ruff") else [])):
        timed(command)
    medians = interleaved(commands, times)
    print(f"\n## {sum(1 for _ in folder.rglob('*.py'))} Python files, {times} rounds, {os.cpu_count()} processors\n")
    print("| command | median seconds | processor seconds | largest process, MB | to ruff, cold | processor, to ruff |")
    print("|---|---|---|---|---|---|")
    base = medians.get("ruff, cold")
    for name, (seconds, processor, peak) in medians.items():
        ratios = (seconds / base.seconds, processor / base.processor) if base else (0, 0)
        print(f"| {name} | {seconds:.2f} | {processor:.2f} | {peak:.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    for one, other in (
        ("ctxlint, cold", "ruff, only parsing"),
        ("ctxlint, cold, one process", "scan, ast and LibCST alone"),
        ("ctxlint, warm", "ruff, warm"),
        ("ctxlint, warm", "rg -l autograd"),
    ):
        if one in medians and other in medians:
            print(f"\n{one} / {other}: {medians[one].seconds / medians[other].seconds:.2f}")


def small(times: int, kept: Path) -> None:
    """One file, and the start of Python itself."""
    plain, function = kept / "plain.py", kept / "function.py"
    plain.write_text("import os\n\n\ndef f():\n    return os.getcwd()\n")
    function.write_text(
        "import torch\n\n\nclass Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x * 2\n\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
    )
    lint = [sys.executable, "-m", "ctxlint", "check", "--isolated", "--no-cache"]
    medians = interleaved(
        {
            "python -c pass": [sys.executable, "-c", "pass"],
            'python -c "import libcst"': [sys.executable, "-c", "import libcst"],
            "ctxlint --version": [sys.executable, "-m", "ctxlint", "--version"],
            "one file without a Function": [*lint, str(plain)],
            "one file with a Function": [*lint, str(function)],
        },
        times * 3,
    )
    print("\n| command | median milliseconds |\n|---|---|")
    for name, found in medians.items():
        print(f"| {name} | {found.seconds * 1000:.0f} |")
    nothing, libcst = medians["python -c pass"].seconds, medians['python -c "import libcst"'].seconds
    print(f"\nwithout a Function / python -c pass: {medians['one file without a Function'].seconds / nothing:.2f}")
    print(f"\nwith a Function / import libcst: {medians['one file with a Function'].seconds / libcst:.2f}")


def scaling(folder: Path, times: int, kept: Path) -> None:
    """The files with Functions, copied into separate projects."""
    tree = kept / "copies"
    matter = [path for path in sorted(folder.rglob("*.py")) if _holds_function(path)][:100]
    medians = {}
    for copies in (1, 4, 16):
        for number in range(copies):
            project = tree / f"project{number}"
            if project.exists():
                continue
            project.mkdir(parents=True)
            (project / "pyproject.toml").write_text("")
            for at, path in enumerate(matter):
                shutil.copyfile(path, project / f"m{at}.py")
        lint = [sys.executable, "-m", "ctxlint", "check", "--isolated", "--no-cache", "-j1", "--statistics", str(tree)]
        medians[copies] = interleaved({"lint": lint}, max(1, times // 2))["lint"]
    print(f"\n| copies of {len(matter)} files | seconds | each | largest process, MB |\n|---|---|---|---|")
    for copies, found in medians.items():
        print(f"| {copies} | {found.seconds:.2f} | {found.seconds / copies:.2f} | {found.peak:.0f} |")


def _holds_function(path: Path) -> bool:
    data = path.read_bytes() if path.is_file() else b""
    return b"autograd" in data and b"Function" in data


def interleaved(commands: dict[str, list[str]], times: int) -> dict[str, Timed]:
    """The median of each command over rounds in which each runs once."""
    every: dict[str, list[Timed]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            every[name].append(timed(command))
    return {
        name: Timed(
            statistics.median(each.seconds for each in found),
            statistics.median(each.processor for each in found),
            max(each.peak for each in found),
        )
        for name, found in every.items()
    }


def timed(command: list[str]) -> Timed:
    """Run a command; its output and exit code are ignored, but it must start."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}")
    return Timed(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, _megabytes(usage))


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)


if __name__ == "__main__":
    main()
