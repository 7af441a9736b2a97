"""Time a Dask cluster of processes on this machine: ``python -m benchmarks.projects FOLDER [--workers 1 2]``.

Each folder in FOLDER is a project. The table has the projects in a minute, the share of the time of all workers in
which they do not lint, and the memory of the scheduler's process before and after.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import ctxlint

dask: Any = import_module("dask.distributed")


def scan(project: Path, out: Path) -> float:
    """Lint a project, write its records, and return the seconds that takes."""
    start = time.perf_counter()
    records = ctxlint.lint_project(project, ctxlint.Settings(), timeout=600, memory=4000)
    (out / f"{project.name}.json").write_text(json.dumps(records))
    return time.perf_counter() - start


def main() -> None:
    """Read the arguments, run, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    projects = [each for each in sorted(options.folder.iterdir()) if each.is_dir()]
    print("| workers | projects | seconds | projects in a minute | not linting | scheduler before, MB | after, MB |")
    print("|---|---|---|---|---|---|---|")
    for count in options.workers:
        cluster = dask.LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0")
        with tempfile.TemporaryDirectory() as out, cluster, dask.Client(cluster) as client:
            before, start = _memory(), time.perf_counter()
            futures = client.map(scan, projects, out=Path(out), pure=False)
            busy = sum(seconds for _, seconds in dask.as_completed(futures, with_results=True))
            took = time.perf_counter() - start
            share = 1 - busy / (took * count)
            minute = 60 * len(projects) / took
            held = f"{before:.0f} | {_memory():.0f}"
            print(f"| {count} | {len(projects)} | {took:.1f} | {minute:.0f} | {share:.0%} | {held} |")


def _memory() -> float:
    """The memory of this process, in which the scheduler runs, in MB (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


if __name__ == "__main__":
    main()
