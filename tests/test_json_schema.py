"""The JSON Schema and ctxlint accept the same configurations."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ctxlint.cli import main
from ctxlint.config.json_schema import json_schema
from ctxlint.config.options import OPTIONS
from ctxlint.source.formats import toml
from tests.fixture_reader import ROOT, fenced_blocks

VALIDATOR = jsonschema.Draft7Validator(json_schema())


def _read(text: str) -> Any:
    return toml().loads(text)


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_the_example_of_each_option_is_valid(option: Any) -> None:
    document = _read(option.example)
    VALIDATOR.validate(document)
    option.read(document[option.key])


@pytest.mark.parametrize(
    "document", ["README.md", *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md"))]
)
def test_the_configurations_of_the_documents_are_valid(document: str) -> None:
    for block in fenced_blocks((ROOT / document).read_text(encoding="utf-8")):
        if block.language == "toml" and "[tool.ctxlint]" in block.text:
            VALIDATOR.validate(_read(block.text)["tool"]["ctxlint"])


@pytest.mark.parametrize(
    "text",
    [
        "selct = []",
        "select = 'CTX1'",
        "select = ['CTX999']",
        "ignore = ['missing-none', 'E501']",
        "fix = 'yes'",
        "output-format = 'pretty'",
        "per-file-ignores = { 'tests' = 'CTX1' }",
        "per-file-ignores = { 'tests' = ['E501'] }",
        "extra-bases = [1]",
        "cache-dir = true",
    ],
)
def test_what_ctxlint_refuses_is_refused(text: str) -> None:
    from ctxlint.config.load import apply_inline
    from ctxlint.config.project_files import ConfigurationError
    from ctxlint.config.settings import Settings

    assert not VALIDATOR.is_valid(_read(text))
    with pytest.raises(ConfigurationError):
        apply_inline(Settings(), text)


def test_the_command_prints_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--schema"]) == 0
    assert json.loads(capfd.readouterr().out) == json_schema()
