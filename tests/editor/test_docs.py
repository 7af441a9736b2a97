"""The configuration snippets of docs/editors.md."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from ctxlint.editor.workspace import ClientSettings, read_client_settings
from tests.editor.texts import FIXED, ONE

PAGE = Path(__file__).parents[2] / "docs" / "editors.md"


def blocks(language: str) -> list[str]:
    tokens = MarkdownIt().parse(PAGE.read_text())
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def test_the_snippet_for_neovim_is_the_one_that_is_tested() -> None:
    assert blocks("lua")[0] == (PAGE.parents[1] / "editors" / "neovim" / "ctxlint.lua").read_text()


def test_the_extension_for_vs_code_sends_what_is_understood() -> None:
    folder = PAGE.parents[1] / "editors" / "vscode"
    known = json.loads((folder / "package.json").read_text())["contributes"]["configuration"]["properties"]
    sent: dict[str, Any] = {}
    for name, described in known.items():
        *sections, key = name.split(".")
        into = sent
        for section in sections:
            into = into.setdefault(section, {})
        into[key] = described["default"]
        if "trace" not in name:
            assert f"| `{name}` |" in PAGE.read_text()
            assert f"| `{name}` |" in (folder / "README.md").read_text()
    assert read_client_settings(sent) == ClientSettings()


def test_settings_are_understood() -> None:
    settings, _, zed = (json.loads(block) for block in blocks("json"))
    assert read_client_settings(settings).mistakes == ()
    assert read_client_settings(settings).inlay_hints is False
    (formatter,) = zed["languages"]["Python"]["formatter"]
    arguments = ["f.py" if part == "{buffer_path}" else part for part in formatter["external"]["arguments"]]
    assert piped(arguments, ONE) == (0, FIXED)
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    (helix,) = (toml.loads(block) for block in blocks("toml"))
    assert [helix["language-server"]["ctxlint"]["command"], *helix["language-server"]["ctxlint"]["args"]] == [
        "ctxlint",
        "server",
    ]


def test_commands_for_any_editor_work() -> None:
    install, fix, check = blocks("sh")
    assert install == 'pip install "ctxlint[lsp]"\n'
    assert piped(shlex.split(fix)[1:], ONE) == (0, FIXED)
    assert piped(shlex.split(fix)[1:], "x = 1\r\n") == (0, "x = 1\r\n")
    code, found = piped(shlex.split(check)[1:], ONE)
    assert code == 1
    assert found.startswith("f.py:12:9: CTX203 ")


def piped(arguments: list[str], text: str) -> tuple[int, str]:
    run = subprocess.run(
        [sys.executable, "-m", "ctxlint", *arguments], check=False, input=text.encode(), capture_output=True
    )
    return run.returncode, run.stdout.decode()
