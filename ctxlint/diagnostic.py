"""The record of a finding, for every report, editor and test."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.addresses import REPOSITORY, rule_page
from ctxlint.config.settings import INTERNAL_ERROR
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.source.source import Span


class Severity(Enum):
    """How prominently a report should show a finding."""

    ERROR = "error"
    WARNING = "warning"


@record
class Related:
    """A second place that explains a finding, for example where the tensor was saved.

    ``path`` is that of another file of the project; empty for the file of the finding.
    """

    span: Span
    message: str
    cell: int | None = None
    path: str = ""


@record
class Diagnostic:
    """One finding in one file, ready to be reported. Sorts by position, then code.

    ``cell`` is the cell of a notebook in which lines and columns count, unless they count in the whole text.
    """

    path: str
    span: Span
    code: str
    name: str
    message: str
    severity: Severity = Severity.ERROR
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    cell: int | None = None

    @property
    def url(self) -> str:
        """The rule's page on the website; for a bug in ctxlint, the place to report it."""
        return f"{REPOSITORY}/issues" if self.code == INTERNAL_ERROR else rule_page(self.code)

    @property
    def sort_key(self) -> tuple[str, int, Span, str, str]:
        """Path, position, code, message: the order of all reports."""
        return (self.path, self.cell or 0, self.span, self.code, self.message)


@record
class Fixed:
    """How many findings of one rule were fixed in a file."""

    code: str
    name: str
    count: int
