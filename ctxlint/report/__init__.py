"""Output formats: one module each, with one function ``render(report)`` that yields text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.report.visible import in_json, in_xml, visible_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.fix import Applicability
    from ctxlint.result import FileResult

FOR_PEOPLE = ("concise", "full", "grouped")
"""The formats that end in a summary; the others are read by programs."""

_JSON = ("json", "json-lines", "gitlab", "rdjson", "sarif")

_MODULES = {"json": "json_list"}


class Report(NamedTuple):
    """The content of a report: the files in order of path, whether unsafe fixes would be applied, and how to show it.

    ``quiet`` omits the summary.
    """

    results: tuple[FileResult, ...]
    unsafe_fixes: bool = False
    show_fixes: bool = False
    quiet: bool = False
    color: bool = False

    @property
    def findings(self) -> Iterator[tuple[FileResult, Diagnostic]]:
        """Every finding with its file, in order."""
        for result in self.results:
            for diagnostic in result.diagnostics:
                yield result, diagnostic

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding, in order."""
        return tuple(diagnostic for _, diagnostic in self.findings)

    def visible(self) -> Report:
        """The report with non-printable characters in names and messages replaced."""
        return self._replace(results=tuple(map(visible_result, self.results)))

    def is_fixable(self, diagnostic: Diagnostic) -> bool:
        """Whether ``--fix``, with the current options, would fix it: the meaning of ``[*]``."""
        applicability = applicability_of(diagnostic)
        if applicability is None:
            return False
        return applicability.value == "safe" or (self.unsafe_fixes and applicability.value == "unsafe")


def applicability_of(diagnostic: Diagnostic) -> Applicability | None:
    """The applicability of a finding's fix; None if it has none."""
    return None if diagnostic.fix is None or not diagnostic.fix.edits else diagnostic.fix.applicability


def render(report: Report, output_format: str) -> Iterator[str]:
    """The text of ``report`` in one of the formats of ``ctxlint.config.settings.FORMATS``, in pieces."""
    name = _MODULES.get(output_format, output_format.replace("-", "_"))
    rendered: Callable[[Report], Iterator[str]] = import_module(f"{__name__}.{name}").render
    if output_format in _JSON:
        return map(in_json, rendered(report))
    if output_format == "junit":
        return map(in_xml, rendered(report))
    return rendered(report.visible())


def counted(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``, ``2 fixes``."""
    plural = "es" if noun.endswith("x") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"
