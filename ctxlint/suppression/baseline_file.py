"""Findings that a project accepts for now, in a file next to its configuration.

A finding is identified by its file, its code, the class and method that contain it, and its statement, without spaces,
comments, brackets and commas: never by a line number. So code can be moved and reformatted.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ctxlint.config.settings import INTERNAL_ERROR
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.result import FileResult, Gone, Known
from ctxlint.rule_names import opt_in_codes, rule_names
from ctxlint.source.formats import Malformed, from_json
from ctxlint.source.reading import read_bytes
from ctxlint.suppression.comment_layout import read_layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import Source
    from ctxlint.suppression.comment_layout import CommentLayout, Lines

VERSION = 1
_MOST_BYTES = 50_000_000
"""The maximum size of a baseline, which corresponds to some 300,000 findings."""
_NEVER_KNOWN = (INTERNAL_ERROR, "CTX902")
_HEADER = pattern(r"(?:async\s+)?(?:def|class)\s+(\w+)")
_FORMATTING = pattern(r"[\s(),\\]+")


class MalformedBaseline(Exception):
    """A file that is not a valid baseline; the message gives the reason."""


@record
class Baseline:
    """The known findings of each file with their counts; ``path`` is where they are stored.

    File names are relative to the folder of ``path``, with slashes.
    """

    path: str
    files: Mapping[str, Mapping[Known, int]] = field(default_factory=dict)

    def name_of(self, path: str) -> str:
        """The name of a file in the baseline."""
        try:
            return os.path.relpath(path, os.path.dirname(self.path)).replace(os.sep, "/")
        except ValueError:  # another drive
            return os.path.abspath(path)

    def known_in(self, path: str) -> Counter[Known]:
        """The known findings of a file."""
        return Counter(dict(self.files.get(self.name_of(path), {})))

    def leave_out(self, result: FileResult) -> FileResult:
        """``result`` without the known findings, which become its ``baselined``.

        Known findings that are not there any more are ``gone``, if their rules checked the file completely.
        """
        left = self.known_in(result.path)
        if not left or result.skipped or any(each.code == "CTX902" for each in result.diagnostics):
            return result
        new, known = [], []
        for diagnostic, key in _keyed(result):
            if key is not None and left[key]:
                left[key] -= 1
                known.append(diagnostic)
            else:
                new.append(diagnostic)
        complete = not result.broken and not result.failed
        gone = [(each, count) for each, count in left.items() if count and complete and _is_on(each.code, result)]
        return result._replace(diagnostics=tuple(new), baselined=tuple(known), gone=tuple(sorted(gone)))

    def missing_files(self) -> dict[str, Gone]:
        """The known findings of files that do not exist any more."""
        folder = os.path.dirname(self.path)
        return {
            name: tuple(sorted((each, count) for each, count in known.items() if count))
            for name, known in self.files.items()
            if known and not os.path.exists(os.path.join(folder, name))
        }

    def with_results(self, results: Iterable[FileResult]) -> Baseline:
        """The baseline with exactly these findings for these files."""
        missing = self.missing_files()
        files = {name: known for name, known in self.files.items() if name not in missing}
        for result in results:
            if result.skipped or any(each.code in _NEVER_KNOWN for each in result.diagnostics):
                continue
            files[self.name_of(result.path)] = Counter(key for _, key in _keyed(result) if key is not None)
        return replace(self, files=files)

    def without_stale(self, results: Iterable[FileResult]) -> Baseline:
        """The baseline without stale entries."""
        missing = self.missing_files()
        files = {name: Counter(dict(known)) for name, known in self.files.items() if name not in missing}
        for result in results:
            if result.gone:
                files[self.name_of(result.path)].subtract(dict(result.gone))
        return replace(self, files=files)

    def count(self) -> int:
        """The number of known findings."""
        return sum(sum(known.values()) for known in self.files.values())


def _is_on(code: str, result: FileResult) -> bool:
    """Whether a rule checked the file; if it did not, its known findings may still be there."""
    settings: Settings = result.settings
    name = rule_names().get(code, "")
    on = settings.is_selected(code, name, default=code not in opt_in_codes())
    return on and not settings.is_ignored_in(result.path, code, name)


# Identity of findings


def _keyed(result: FileResult) -> Iterator[tuple[Diagnostic, Known | None]]:
    """Each finding with its identity; None for those that a baseline cannot contain."""
    if result.source is None:
        yield from ((each, None) for each in result.diagnostics)
        return
    layout = read_layout(result.source) if result.diagnostics else None
    scopes = None if layout is None else _scopes(layout)
    for diagnostic in result.diagnostics:
        if layout is None or scopes is None or diagnostic.code in _NEVER_KNOWN:
            yield diagnostic, None
            continue
        line = diagnostic.span.start.line
        statement = layout.statement_at(line)
        yield diagnostic, Known(diagnostic.code, scopes.get(statement, ""), _digest(layout, statement))


def _scopes(layout: CommentLayout) -> dict[Lines, str]:
    """The dotted names of the classes and functions that enclose each statement, including its own name."""
    found: dict[Lines, str] = {}
    stack: list[tuple[int, str]] = []
    for statement in layout.statements:
        line = layout.source.line(statement.first)
        code = line.lstrip()
        indentation = len(line[: len(line) - len(code)].expandtabs())
        while stack and stack[-1][0] >= indentation:
            stack.pop()
        header = _HEADER.match(code)
        if header:
            stack.append((indentation, header[1]))
        found[statement] = ".".join(name for _, name in stack)
    return found


def _digest(layout: CommentLayout, statement: Lines) -> str:
    """A hash of a statement that does not depend on its formatting."""
    text = _without_comments(layout, statement)
    normal = _FORMATTING.sub("", text).replace("'", '"')
    return sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _without_comments(layout: CommentLayout, statement: Lines) -> str:
    source: Source = layout.source
    at = source.line_starts[statement.first - 1]
    end = at + len(source.lines(statement.first, min(statement.last, source.line_count)))
    pieces = []
    for comment in layout.comments_between(at, end):
        pieces.append(source.text[at : comment.offset])
        at = comment.offset + len(comment.text)
    return "".join([*pieces, source.text[at:end]])


# File format


def read_baseline(path: str) -> Baseline:
    """The baseline in a file.

    Raises:
        Unreadable: The file cannot be read.
        MalformedBaseline: It is not a baseline.
    """
    data = read_bytes(path, _MOST_BYTES)
    try:
        document = from_json(data.decode("utf-8-sig", "surrogatepass"))  # a path may not be valid Unicode
    except UnicodeDecodeError as error:
        raise MalformedBaseline(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except Malformed as error:
        raise MalformedBaseline(str(error)) from None
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        raise MalformedBaseline("not a baseline of ctxlint")
    if document.get("version") != VERSION:
        raise MalformedBaseline(f"version {document.get('version')} of the format is not supported by this ctxlint")
    try:
        files = {name: _known(records) for name, records in document["files"].items()}
    except (TypeError, KeyError, ValueError) as error:
        raise MalformedBaseline(f"not a baseline of ctxlint: {error}") from None
    return Baseline(os.path.abspath(path), files)


def _known(records: list[dict[str, Any]]) -> Counter[Known]:
    counts: Counter[Known] = Counter()
    for each in records:
        count = each["count"]
        if type(count) is not int or count < 0:
            raise ValueError("a count is a whole number")
        counts[Known(str(each["code"]), str(each["scope"]), str(each["statement"]))] += count
    return counts


def text_of(baseline: Baseline) -> str:
    """The content of the file: sorted, one finding per line, so that versions can be compared and merged."""
    files = []
    for name, known in sorted(baseline.files.items()):
        records = [
            json.dumps({**key._asdict(), "count": count}, ensure_ascii=False)
            for key, count in sorted(known.items())
            if count > 0
        ]
        if records:
            listed = ",\n      ".join(records)
            files.append(f"    {json.dumps(name, ensure_ascii=False)}: [\n      {listed}\n    ]")
    listed = ",\n".join(files)
    return f'{{\n  "version": {VERSION},\n  "files": {{{chr(10) + listed + chr(10) + "  " if files else ""}}}\n}}\n'
