"""JUnit's XML: a test suite for each file with findings, a failed test for each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from ctxlint.patterns import pattern
from ctxlint.report.paths import absolute
from ctxlint.result import locate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report
    from ctxlint.result import FileResult

_NOT_XML = pattern("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> Iterator[str]:
    """One XML document; a clean run is one suite with one passed test."""
    count = len(report.diagnostics)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="ctxlint" tests="{max(count, 1)}" failures="{count}" errors="0">\n'
    for result in report.results:
        if result.diagnostics:
            yield from _suite(result)
    if not count:
        yield '    <testsuite name="ctxlint" tests="1" failures="0" errors="0" skipped="0">\n'
        yield '        <testcase name="No errors found" classname="ctxlint"/>\n'
        yield "    </testsuite>\n"
    yield "</testsuites>\n"


def _suite(result: FileResult) -> Iterator[str]:
    name = _attribute(absolute(result.path))
    count = len(result.diagnostics)
    yield f'    <testsuite name={name} tests="{count}" failures="{count}" errors="0" skipped="0">\n'
    for each in result.diagnostics:
        located = locate(each, result.source)
        line, column = located.span.start
        cell = "" if located.cell is None else f"cell {located.cell}, "
        message = _valid(each.message)
        yield (
            f"        <testcase name={_attribute(each.code)} classname={name}>\n"
            f"            <failure message={quoteattr(message)} type={_attribute(each.name)}>"
            f"{cell}line {line}, col {column}, {escape(message)}</failure>\n"
            "        </testcase>\n"
        )
    yield "    </testsuite>\n"


def _attribute(text: str) -> str:
    return quoteattr(_valid(text))


def _valid(text: str) -> str:
    return _NOT_XML.sub("�", text)
