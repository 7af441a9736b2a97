"""The Python API: lint a text, lint paths, mend a text.

What comes back is made of plain frozen records that can be pickled, so that any engine can map these functions over
many files. Nothing is raised for bad code: what ctxlint itself fails on comes back as a finding with the code CTX900.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctxlint.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.files.source import Source

_BOM = "\ufeff"


@dataclass(frozen=True)
class FixedSource:
    """A mended text: the findings that are left in it, and how many of each code were mended."""

    text: str
    diagnostics: tuple[Diagnostic, ...]
    fixed: dict[str, int]


def lint_source(text: str, path: str = "<string>", settings: Settings | None = None) -> list[Diagnostic]:
    """The findings in ``text``, sorted by place.

    ``path`` is the name that the findings carry, and that ``per-file-ignores`` look at. No configuration file is read;
    without ``settings`` the rules that are on by default are run. Lines and columns are 1-based, columns count
    characters, ends are exclusive.
    """
    from ctxlint import pipeline

    return pipeline.lint_source(_source(text, path), settings or Settings())


def lint_paths(
    paths: Iterable[str | os.PathLike[str]], settings: Settings | None = None, *, jobs: int = 1
) -> list[Diagnostic]:
    """The findings in all files under ``paths``, sorted by path and place.

    Without ``settings``, those of the nearest configuration file apply to each file. ``jobs`` is how many processes to
    use at most, 0 for one per processor. A file that cannot be read is a finding. Raises
    ``ctxlint.configuration.ConfigurationError`` for a configuration file that is wrong.
    """
    from ctxlint import pipeline
    from ctxlint.configuration import Configuration

    results = pipeline.lint_paths([os.fspath(path) for path in paths], Configuration(fixed=settings), jobs=jobs)
    return sorted((each for result in results for each in result.diagnostics), key=lambda each: each.sort_key)


def fix_source(
    text: str, path: str = "<string>", settings: Settings | None = None, *, unsafe_fixes: bool = False
) -> FixedSource:
    """``text`` after its safe fixes (with ``unsafe_fixes``, all that are to be applied), and what is left to say.

    Lines keep their endings, and what no fix touches stays as it is. A text in which a fix does harm comes back
    unchanged, with a finding CTX900.
    """
    from ctxlint.files.scan import holds_candidate
    from ctxlint.fixes.apply import mend
    from ctxlint.pipeline import check_source

    if not holds_candidate(text.encode("utf-8", "surrogatepass")):
        return FixedSource(text, (), {})
    asked = replace(settings or Settings(), fix=True)
    if unsafe_fixes:
        asked = replace(asked, unsafe_fixes=True)
    result = mend(check_source(_source(text, path), asked), asked, lambda source: check_source(source, asked))
    mended = text if result.source is None else _BOM * result.source.bom + result.source.text
    return FixedSource(mended, result.diagnostics, {each.code: each.count for each in result.fixed})


def _source(text: str, path: str) -> Source:
    from ctxlint.files.source import Source

    return Source(path, text[1:], bom=True) if text.startswith(_BOM) else Source(path, text)
