"""Whether one run over all files finds everything that runs over single files find.

``python -m tests.subset FOLDER [FOLDER ...]`` asks that of folders of your own, for example checkouts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ctxlint.config.configuration import Configuration
from ctxlint.config.settings import Settings
from ctxlint.run.in_project import forget_other_files
from ctxlint.run.pipeline import lint_paths
from ctxlint.source.modules import forget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxlint.result import FileResult

Finding = tuple[str, int, int, str, str]
"""Path, line, column, code and message."""


def findings(results: Iterable[FileResult]) -> set[Finding]:
    """Findings in a form that can be compared."""
    return {(each.path, *each.span.start, each.code, each.message) for result in results for each in result.diagnostics}


def together(paths: Sequence[str], settings: Settings | None = None, jobs: int = 1) -> set[Finding]:
    """What one run finds."""
    forget()
    forget_other_files()
    return findings(lint_paths(paths, Configuration(fixed=settings or Settings()), jobs=jobs))


def one_by_one(paths: Sequence[str], settings: Settings | None = None) -> set[Finding]:
    """What is found when each file is linted for itself."""
    configuration = Configuration(fixed=settings or Settings())
    everything = [result.path for result in lint_paths(paths, configuration) if not result.skipped]
    forget()
    forget_other_files()
    return {each for path in everything for each in findings(lint_paths([path], configuration))}


def main(folders: Sequence[str]) -> int:
    """Print what a run over each folder adds and loses; return 1 if it loses anything."""
    lost_any = False
    for folder in folders:
        alone, whole = one_by_one([folder]), together([folder])
        for sign, some in (("lost", alone - whole), ("added", whole - alone)):
            for path, line, column, code, message in sorted(some):
                print(f"{sign}: {path}:{line}:{column}: {code} {message}")
        print(f"{folder}: {len(alone)} one by one, {len(whole)} together")
        lost_any |= not alone <= whole
    return int(lost_any)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
