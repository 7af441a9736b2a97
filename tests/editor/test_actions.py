"""Code actions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.settings import Settings
from ctxlint.editor.actions import prepare
from ctxlint.editor.language_server import create
from ctxlint.rule_names import rule_names
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source
from ctxlint.suppression.add import noqa_edits
from ctxlint.suppression.comment_layout import read_layout
from tests.editor.client import Client, Message, applied
from tests.editor.texts import FIXED, HEAD, ONE, TWO, missing_none

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.conftest import Start

PULLS: Message = {"textDocument": {"diagnostic": {}}}
RESOLVES: Message = {
    "textDocument": {"diagnostic": {}, "codeAction": {"resolveSupport": {"properties": ["edit"]}}},
    "workspace": {"workspaceEdit": {"documentChanges": True}},
}
UNSAFE = HEAD + (
    "\n\nclass Double(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n\n"
    "    @staticmethod\n    def backward(ctx, grad_output):\n        grad_output.mul_(2)\n        return grad_output\n"
)


def test_a_safe_fix_is_preferred_and_works(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "a.py").as_uri(), ONE)
    fix, disable = pulling.actions(uri, ["quickfix"])
    assert fix["title"] == "ctxlint (CTX203): Return `None` for `scale`"
    assert fix["kind"] == "quickfix"
    assert fix["isPreferred"] is True
    assert fix["diagnostics"][0]["code"] == "CTX203"
    assert applied(ONE, fix["edit"]) == FIXED
    assert "isPreferred" not in disable


def test_a_client_without_code_actions_gets_commands(start: Start, tmp_path: Path) -> None:
    client = start(capabilities={"textDocument": {"codeAction": {}}, "workspace": {"applyEdit": True}})
    assert client.capabilities["executeCommandProvider"]["commands"] == ["ctxlint.applyEdit"]
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    for only in ("quickfix", "source.fixAll"):
        offered = client.actions(uri, [only])[0]
        assert set(offered) == {"title", "command", "arguments"}
        client.request("workspace/executeCommand", {key: offered[key] for key in ("command", "arguments")})
        asked = client.requests[-1]
        assert asked["method"] == "workspace/applyEdit"
        assert applied(ONE, asked["params"]["edit"]) == FIXED


def test_a_client_that_applies_no_edits_gets_no_commands(start: Start, tmp_path: Path) -> None:
    client = start(capabilities={"textDocument": {"codeAction": {}}})
    assert client.actions(client.open((tmp_path / "a.py").as_uri(), ONE)) == []


def test_a_fix_that_is_not_safe_says_so(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "unsafe.py").as_uri(), UNSAFE)
    fix, _ = pulling.actions(uri, ["quickfix"])
    assert fix["title"].endswith(" (unsafe)")
    assert "isPreferred" not in fix
    assert pulling.actions(uri, ["source.fixAll"]) == []


def test_disable_for_this_line_hides_the_finding(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "hide.py").as_uri(), ONE)
    disable = pulling.actions(uri)[1]
    assert disable["title"] == "ctxlint (CTX203): Disable for this line"
    hidden = applied(ONE, disable["edit"])
    assert "return grad_output * ctx.scale  # noqa: CTX203\n" in hidden
    pulling.change(uri, hidden, 2)
    assert pulling.pulled(uri) == []
    assert pulling.actions(uri) == []


def test_only_what_stands_in_the_stretch_is_offered(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "two.py").as_uri(), TWO)
    first, second = (each["range"] for each in pulling.pulled(uri))
    assert len(pulling.actions(uri, ["quickfix"], first)) == 2
    middle = {"start": second["start"], "end": second["start"]}
    (fix, _) = pulling.actions(uri, ["quickfix"], middle)
    assert applied(TWO, fix["edit"]).count("ctx.scale, None") == 1
    top = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    assert pulling.actions(uri, ["quickfix"], top) == []


@pytest.mark.parametrize(
    ("only", "kind"),
    [
        (["source.fixAll"], "source.fixAll"),
        (["source.fixAll.ctxlint"], "source.fixAll.ctxlint"),
        (["source"], "source.fixAll.ctxlint"),
        (["source.fixAll", "source.fixAll.ctxlint"], "source.fixAll.ctxlint"),
    ],
)
def test_all_safe_fixes_at_once(pulling: Client, tmp_path: Path, only: list[str], kind: str) -> None:
    uri = pulling.open((tmp_path / f"{only}.py").as_uri(), TWO)
    (action,) = pulling.actions(uri, only)
    assert action["kind"] == kind
    assert applied(TWO, action["edit"]) == TWO.replace("* ctx.scale\n", "* ctx.scale, None\n")
    assert pulling.actions(uri, ["source.fixAll.ruff"]) == []
    assert pulling.actions(uri, ["source.organizeImports"]) == []


def test_the_empty_kind_stands_for_all(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "empty.py").as_uri(), ONE)
    assert pulling.actions(uri, [""]) == pulling.actions(uri)


def test_fixes_on_save_are_worked_out_when_asked_for(start: Start, tmp_path: Path) -> None:
    client = start(capabilities=RESOLVES)
    text = TWO.replace("\n", "\r\n").replace("import torch", "import torch  # \u2028 \f \U0001f600", 1)
    uri = client.open((tmp_path / "save.py").as_uri(), text, version=7)
    (action,) = client.actions(uri, ["source.fixAll.ctxlint"])
    assert "edit" not in action
    resolved = client.request("codeAction/resolve", action)
    assert resolved["edit"]["documentChanges"][0]["textDocument"] == {"uri": uri, "version": 7}
    assert applied(text, resolved["edit"]) == text.replace("* ctx.scale\r\n", "* ctx.scale, None\r\n")
    client.change(uri, applied(text, resolved["edit"]), 8)
    assert client.pulled(uri) == []
    assert client.actions(uri, ["source.fixAll.ctxlint"]) == []
    # Only the lines that change are touched, so that the cursor and marks stay where they are.
    assert len(resolved["edit"]["documentChanges"][0]["edits"]) == 2


def test_the_project_may_not_make_fixes_on_save_unsafe(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ctxlint.toml").write_text("unsafe-fixes = true\n")
    client = start(folders=[tmp_path], capabilities=PULLS)
    uri = client.open((tmp_path / "a.py").as_uri(), UNSAFE + missing_none())
    (action,) = client.actions(uri, ["source.fixAll"])
    assert applied(UNSAFE + missing_none(), action["edit"]) == UNSAFE + missing_none().replace(
        "* ctx.scale\n", "* ctx.scale, None\n"
    )


def test_fixes_of_untouched_classes_work_while_another_is_half_typed(client: Client, tmp_path: Path) -> None:
    uri = client.open((tmp_path / "half.py").as_uri(), ONE)
    client.pushed(uri, version=1)
    broken = "import torch as (\n\n# moved\n" + missing_none()
    client.change(uri, broken, 2)
    assert "CTX203" in [each["code"] for each in client.pushed(uri, version=2)]
    fix = next(each for each in client.actions(uri, ["quickfix"]) if "CTX203" in each["title"])
    assert applied(broken, fix["edit"]) == broken.replace("* ctx.scale\n", "* ctx.scale, None\n")


def test_nothing_is_offered_as_formatting(pulling: Client) -> None:
    assert not [name for name in pulling.capabilities if "ormatting" in name]


def test_preparing_the_first_request_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(prepare(create()))
    assert not caplog.records


def test_the_comments_of_a_text_are_read_once_for_all_findings() -> None:
    source, scans = Source("a.py", TWO), read_layout.cache_info().misses
    findings = check_source(source, Settings()).diagnostics
    for each in findings:
        assert list(noqa_edits(source, [each], rule_names()))
    assert len(findings) == 2
    assert read_layout.cache_info().misses == scans + 1
