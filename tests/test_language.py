"""The words of all texts: plain technical English, without the words that the project has replaced."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/*.md",
        "website/kinds.md",
        ".github/**/*.md",
        "editors/*/README.md",
        "editors/*/package.json",
    )
    for path in ROOT.glob(pattern)
)
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("ctxlint/**/*.py"))
TOOLS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("tests", "website", "benchmarks")
    for path in (ROOT / folder).glob("**/*.py")
    if path != Path(__file__)
)
"""The modules that are not part of the package: their docstrings and comments follow the same vocabulary."""

REPLACED = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again",
    r"beside": "next to",
    r"pass(es|ed|ing)? over": "skip, exclude",
    r"hang(s|ing)? on": "depends on",
    r"(is|are) no (tensors?|formatter|part|input)": "is not a",
    r"in line (\d+|\{)": "on line 12",
    r"(is|are) told": "call graph, function summary",
    r"(the )?mouse rests": "hover text",
    r"speaks?": "reports",
    r"stands? (for|there|alone)": "sets defaults, cannot be combined",
    r"come(s)? on top of": "extends, takes precedence",
    r"keeps? (its|their) word": "a plain statement",
    r"goes without": "disables",
    r"says where": "reports",
    r"for ever": "never freed",
    r"left as it is": "not changed",
    r"by hand": "directly, manually",
    r"without a word": "silently",
    r"is (for the author to say|not looked at)": "only the author knows, is not checked",
}
DIALECT = {
    **{words: use for words, use in REPLACED.items() if not words.startswith(("stands?", "pass"))},
    r"whoever": "callers, the user",
    r"what is said|(is|are|was) said": "is reported, the findings",
    r"stands? (in|under|at|where|beside|before|behind|below)": "is in",
    r"(that|which|who|it|what) (asks|tells|knows)": "tests, determines, has",
    r"is told( of)?": "receives, gets",
    r"(is|are) made of": "consists of",
    r"(?<!there )(is|are) no (\w+ )?(tensors?|names?|files?|containers?|tuples?|lists?|modules?|inputs?|outputs?)": "is not a",
    r"who knows": "unknown",
    r"nobody (asks|asked|knows)": "not needed, unknown",
    r"lies (in|below|there|beside)": "is in",
    r"what (it|that|this|they) (says?|stands? for|hangs? on)": "its content, its meaning, its dependencies",
}
"""For docstrings and comments: words of a private dialect, with the usual terms of static analysis."""
ALLOWED = {"by hand": ("docs/tutorial.md", "docs/suppression.md")}


def _found(text: str, document: str = "", replaced: Mapping[str, str] = REPLACED) -> dict[str, str]:
    return {
        match[0]: use
        for words, use in replaced.items()
        if document not in ALLOWED.get(words, ())
        for match in re.finditer(rf"\b(?:{words})\b", text, re.IGNORECASE)
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_replaced_word_in_a_document(document: str) -> None:
    text = re.sub(r"```.*?```", "", Path(ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not _found(text, document)


def _texts(module: ast.Module, *, of_a_rule: bool) -> str:
    """The strings of a module, without docstrings: messages, titles of fixes, help, options, errors; a rule's page."""
    documentation = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(module) if isinstance(node, ast.Constant) and id(node) not in documentation)
    text = "\n".join(each.value for each in strings if isinstance(each.value, str))
    pages = (node for node in module.body if isinstance(node, ast.ClassDef)) if of_a_rule else ()
    return text + "".join(ast.get_docstring(node) or "" for node in pages)


def _documentation(code: str, module: ast.Module) -> str:
    """The docstrings and comments of a module, on one line."""
    strings = (node.value for node in ast.walk(module) if isinstance(node, ast.Expr))
    found = [each.value for each in strings if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = (token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT)
    return " ".join(" ".join([*found, *comments]).split())


def test_no_replaced_word_in_the_code() -> None:
    """One test for hundreds of modules, each of which is parsed once."""
    texts: dict[str, dict[str, str]] = {}
    documentation: dict[str, dict[str, str]] = {}
    for path in (*MODULES, *TOOLS):
        code = (ROOT / path).read_text(encoding="utf-8")
        module = ast.parse(code)
        if path in MODULES:
            texts[path] = _found(_texts(module, of_a_rule=path.startswith("ctxlint/rules/ctx")))
        documentation[path] = _found(_documentation(code, module), path, DIALECT)
    assert {path: found for path, found in texts.items() if found} == {}, "texts for users"
    assert {path: found for path, found in documentation.items() if found} == {}, "docstrings and comments"
