"""The baseline of a run: its location, messages about it, and rewriting it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.commands.output import path_shown, say
from ctxlint.config.project_files import ConfigurationError
from ctxlint.source.boundary import is_in_project
from ctxlint.source.modules import root_of
from ctxlint.source.reading import Unreadable
from ctxlint.source.writing import write_report

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Sequence

    from ctxlint.config.settings import Settings
    from ctxlint.result import FileResult, Known
    from ctxlint.suppression.baseline_file import Baseline

DEFAULT_NAME = ".ctxlint-baseline.json"


def baseline_path(options: Namespace, settings: Settings) -> str:
    """The path of the baseline: from the command line, from the configuration, or from ``_nearest``."""
    named = options.write_baseline or options.baseline or settings.baseline
    return os.path.abspath(named or _nearest(os.path.abspath(settings.root)))


def _nearest(root: str) -> str:
    """The baseline next to the configuration or in the nearest folder above, up to the root of the project.

    ``root`` is the folder of the configuration, or the current one: the place for a new baseline.
    """
    top, folder = root_of(root), root
    while not os.path.lexists(os.path.join(folder, DEFAULT_NAME)) and folder not in (top, os.path.dirname(folder)):
        folder = os.path.dirname(folder)
    path = os.path.join(folder, DEFAULT_NAME)
    return path if os.path.lexists(path) else os.path.join(root, DEFAULT_NAME)


def load(options: Namespace, settings: Settings) -> Baseline | None:
    """The baseline that findings are compared with.

    Raises:
        ConfigurationError: An explicit one does not exist.
    """
    if options.no_baseline or options.write_baseline is not None:
        return None
    path = baseline_path(options, settings)
    if options.isolated and not options.baseline:
        return None
    if not os.path.exists(path):
        if options.baseline or settings.baseline or options.prune_baseline:
            raise ConfigurationError(f"{path_shown(path)}: no such baseline; create it with --write-baseline")
        return None
    return _read(path)


def _read(path: str) -> Baseline:
    from ctxlint.suppression.baseline_file import MalformedBaseline, read_baseline

    try:
        return read_baseline(path)
    except Unreadable as error:
        raise ConfigurationError(f"{path_shown(path)}: cannot be read: {error}") from None
    except MalformedBaseline as error:
        raise ConfigurationError(f"{path_shown(path)}: {error}") from None


def write(results: Sequence[FileResult], options: Namespace, settings: Settings) -> None:
    """Write these findings to the baseline, and report it. Entries of files outside the run are kept."""
    from ctxlint.report import counted
    from ctxlint.suppression.baseline_file import Baseline

    path = baseline_path(options, settings)
    before = _read(path) if os.path.exists(path) else Baseline(path)
    after = before.with_results(results)
    _write(after, options, settings)
    say(f"Wrote {counted(after.count(), 'finding')} to {path_shown(path)}.")


def prune(baseline: Baseline, results: Sequence[FileResult], options: Namespace, settings: Settings) -> None:
    """Remove stale entries from the baseline, and report it."""
    from ctxlint.report import counted

    after = baseline.without_stale(results)
    removed = baseline.count() - after.count()
    if removed:
        _write(after, options, settings)
    say(f"Removed {counted(removed, 'finding')} from {path_shown(baseline.path)}.")


def report_stale_entries(baseline: Baseline, results: Iterable[FileResult], *, silent: bool) -> bool:
    """Whether the baseline has stale entries; each is reported, so that the baseline can shrink."""
    gone = {result.path: result.gone for result in results if result.gone}
    folder = os.path.dirname(baseline.path)
    for name, known in baseline.missing_files().items():
        gone[path_shown(os.path.join(folder, name))] = known
    count = sum(number for known in gone.values() for _, number in known)
    if silent or not count:
        return bool(count)
    for path, known in sorted(gone.items()):
        for each, number in known:
            times = f" ({number} times)" if number > 1 else ""
            say(f"{path}: stale entry: {each.code}{_place(each)}{times}")
    entries, them = ("entry", "it") if count == 1 else ("entries", "them")
    say(f"{path_shown(baseline.path)} has {count} stale {entries}; --prune-baseline removes {them}.")
    return True


def _place(known: Known) -> str:
    return f" in `{known.scope}`" if known.scope else ""


def _write(baseline: Baseline, options: Namespace, settings: Settings) -> None:
    """Write the baseline as a whole; if that fails, the old one stays.

    The author of the configuration must not choose a place outside of the project.
    """
    from ctxlint.suppression.baseline_file import text_of

    named = options.write_baseline or options.baseline
    if not named and not is_in_project(baseline.path, settings.root):
        raise ConfigurationError(f"{path_shown(baseline.path)}: outside of this project; pass it on the command line")
    try:
        write_report(baseline.path, text_of(baseline).encode("utf-8", "surrogatepass"), settings.root)
    except OSError as error:
        raise ConfigurationError(f"{path_shown(baseline.path)}: cannot be written: {error.strerror or error}") from None
