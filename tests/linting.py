"""Helpers for tests of ctxlint: text in; findings or fixed text out."""

from __future__ import annotations

import os
import pickle
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ctxlint.config.configuration import read_configuration
from ctxlint.config.settings import ALL, INTERNAL_ERROR, Selection, Settings
from ctxlint.run.lint_file import check_source, lint_source
from ctxlint.source.source import Source
from tests.fixture_reader import Extent, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxlint.diagnostic import Diagnostic
    from tests.fixture_reader import Case, Fixture

SHARED_BY_WORKERS = "CTXLINT_TESTS_FINDINGS"
"""The environment variable with the folder for what one worker of pytest finds and the others read."""


def settings_from(options: str) -> Settings:
    """The settings of a configuration file with these lines of TOML."""
    if not options:
        return Settings()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ctxlint.toml"
        file.write_text(options, encoding="utf-8")
        return read_configuration(file)


def with_rule(settings: Settings, code: str) -> Settings:
    """``settings`` with one more rule on."""
    return settings._replace(command_line=Selection(extend_select=(code,)))


def only_rule(settings: Settings, code: str) -> Settings:
    """``settings`` with one rule on and all others off."""
    return settings._replace(command_line=Selection(select=(code,)))


def lint(text: str, path: str = "example.py", settings: Settings | None = None) -> list[Diagnostic]:
    """The findings in ``text``, by the rules that are on by default unless ``settings`` say otherwise.

    Raises AssertionError for an internal error of ctxlint, which is never what a test wants.
    """
    diagnostics = lint_source(Source(path, text), settings or Settings())
    failures = [each.message for each in diagnostics if each.code == INTERNAL_ERROR]
    assert not failures, failures
    return diagnostics


def apply_fixes(text: str, path: str, settings: Settings, *, unsafe: bool) -> str:
    """``text`` after ``--fix``, or after ``--fix --unsafe-fixes``."""
    from ctxlint.fixes import apply

    settings = settings._replace(fix=True, unsafe_fixes=unsafe)
    result = apply.apply_fixes(
        check_source(Source(path, text), settings), settings, lambda source: check_source(source, settings)
    )
    assert not result.failed, listing(result.diagnostics)
    assert result.source is not None
    return result.source.text


def found_marks(diagnostics: Iterable[Diagnostic]) -> tuple[Mark, ...]:
    """Where the findings start, as marks of fixtures."""
    return tuple(sorted(Mark(each.span.start.line, each.code) for each in diagnostics))


def extent_of(diagnostic: Diagnostic) -> Extent:
    """Where on its line a finding starts and ends."""
    span = diagnostic.span
    return Extent(Mark(span.start.line, diagnostic.code), span.start.column, span.end.column)


def listing(diagnostics: Iterable[Diagnostic]) -> str:
    """The findings, one a line, for the message of a failed test."""
    return "\n".join(f"{each.span.start.line}: {each.code} {each.message}" for each in diagnostics) or "no findings"


@cache
def findings_in(case: Case) -> tuple[Diagnostic, ...]:
    """The findings of all rules in a case of a fixture, with its options; several test files and workers read them."""
    if SHARED_BY_WORKERS not in os.environ:
        return tuple(lint(case.marked.text, case.path, every_rule(case.options)))
    kept = Path(os.environ[SHARED_BY_WORKERS], f"{case.place}.pickle")
    if not kept.exists():
        found = tuple(lint(case.marked.text, case.path, every_rule(case.options)))
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(found))
        unfinished.replace(kept)
    diagnostics: tuple[Diagnostic, ...] = pickle.loads(kept.read_bytes())
    return diagnostics


def shared_out(fixtures: Sequence[Fixture]) -> list[Fixture]:
    """The fixtures, from another place on in each worker of pytest: so none waits for what another is linting."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    start = worker * len(fixtures) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return [*fixtures[start:], *fixtures[:start]]


def every_rule(options: str = "") -> Settings:
    """The settings of these lines of TOML, with all rules on."""
    return settings_from(options)._replace(command_line=Selection(select=(ALL,)))


def lint_everything(text: str) -> list[Diagnostic]:
    """The findings of all rules."""
    return lint(text, settings=every_rule())
