"""Stand-in rules for tests of everything around rules: each looks for a word in the text of the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ctxlint.diagnostic import Related
from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.source.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from ctxlint.config.settings import Settings

CANDIDATE = "from torch.autograd import Function\n"
"""A line that makes a file a candidate."""


class _WordRule(Rule[SourceFile]):
    word: ClassVar[str]
    replacement: ClassVar[str] = ""
    applicability: ClassVar[Applicability] = Applicability.SAFE
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:  # noqa: ARG002
        for found in re.finditer(rf"\b{self.word}\b", file.source.text):
            span = Span(file.source.position(found.start()), file.source.position(found.end()))
            fix = None
            if self.replacement:
                message = f"Write `{self.replacement}`"
                fix = Fix(message, (Edit(found.start(), found.end(), self.replacement),), self.applicability)
            yield Finding(span, f"`{found[0]}` is found", fix, self.related(span))

    def related(self, span: Span) -> tuple[Related, ...]:  # noqa: ARG002
        return ()


class Wrong(_WordRule):
    code, name, word, replacement = "CTX211", "wrong-word", "wrong", "right"


class Risky(_WordRule):
    code, name, word, replacement = "CTX212", "risky-word", "risky", "tame"
    applicability = Applicability.UNSAFE
    category = Category.SUSPICIOUS


class Advice(_WordRule):
    code, name, word, replacement = "CTX213", "advised-word", "vague", "exact"
    applicability = Applicability.DISPLAY


class Plain(_WordRule):
    code, name, word = "CTX301", "plain-word", "plain"

    def related(self, span: Span) -> tuple[Related, ...]:
        return (Related(Span(span.start._replace(column=1), span.start._replace(column=2)), "the line starts here"),)


class OptIn(_WordRule):
    code, name, word = "CTX302", "opt-in-word", "optional"
    default = False


class Breaks(_WordRule):
    code, name, word, replacement = "CTX401", "breaking-fix", "harmless", "(("


class Ping(_WordRule):
    code, name, word, replacement = "CTX402", "ping", "ping", "pong"


class Pong(_WordRule):
    code, name, word, replacement = "CTX403", "pong", "pong", "ping"


class Wordy(_WordRule):
    """Its fix brings two new lines."""

    code, name, word, replacement = "CTX404", "terse-word", "terse", "first\nsecond"


class Unwritable(_WordRule):
    code, name, word, replacement = "CTX405", "foreign-word", "foreign", "日本"


class Counts(_WordRule):
    """Its fix needs a round for each step down."""

    code, name, word = "CTX406", "countdown", r"step_\d+"

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for finding in super().check(file, settings):
            start, end = (file.source.offset(place) for place in finding.span)
            number = int(file.source.text[start:end].partition("_")[2])
            content = f"step_{number - 1}" if number > 1 else "done"
            yield Finding(
                finding.span, finding.message, Fix("Count down", (Edit(start, end, content),), Applicability.SAFE)
            )


class Crashes(_WordRule):
    code, name, word = "CTX501", "crashing-rule", "crash"

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for finding in super().check(file, settings):
            yield finding
            raise KeyError("lost")


class Recurses(_WordRule):
    code, name, word = "CTX502", "recursing-rule", "deep"

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for _ in super().check(file, settings):
            yield from self.check(file, settings)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the rules of this module, and those about files, instead of the real ones."""
    from ctxlint import rule_names, rules
    from ctxlint.rules.ctx901_invalid_syntax import InvalidSyntax
    from ctxlint.rules.ctx902_io_error import IoError
    from ctxlint.run import check_file

    kinds = (
        Wrong,
        Risky,
        Advice,
        Plain,
        OptIn,
        Breaks,
        Ping,
        Pong,
        Wordy,
        Unwritable,
        Counts,
        Crashes,
        Recurses,
        InvalidSyntax,
        IoError,
    )
    made: tuple[Rule[Any], ...] = tuple(kind() for kind in kinds)
    for module in (rules, check_file):
        monkeypatch.setattr(module, "all_rules", lambda: made)
    monkeypatch.setattr(rule_names, "_rule_names", lambda: {rule.code: rule.name for rule in made})
