"""The words of the documents: plain technical English, without the words that the project has replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixture_reader import ROOT

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "README.md",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "docs/*.md",
        "website/kinds.md",
        ".github/**/*.md",
    )
    for path in ROOT.glob(pattern)
)

REPLACED = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again",
    r"beside": "next to",
    r"pass(es|ed|ing)? over": "skip, exclude",
    r"hang(s|ing)? on": "depends on",
    r"(is|are) no (tensors?|formatter|part)": "is not a",
    r"in line \d+": "on line 12",
    r"(is|are) told": "call graph, function summary",
    r"(the )?mouse rests": "hover text",
    r"speaks?": "reports",
    r"stands? (for|there|alone)": "sets defaults, cannot be combined",
    r"come(s)? on top of": "extends, takes precedence",
    r"keeps? (its|their) word": "a plain statement",
    r"goes without": "disables",
    r"says where": "reports",
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_replaced_word_comes_back(document: str) -> None:
    text = re.sub(r"```.*?```", "", Path(ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    found = {
        match[0]: use
        for words, use in REPLACED.items()
        for match in re.finditer(rf"\b(?:{words})\b", text, re.IGNORECASE)
    }
    assert not found
