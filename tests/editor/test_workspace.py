"""Which settings apply: those of the project or of the client, in several folders, and after changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.editor.workspace import Workspace, read_client_settings
from ctxlint.run import lint_file
from ctxlint.source.source import Source
from tests.editor.client import Client
from tests.editor.texts import HEAD, ONE, missing_none

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.client import Message
    from tests.editor.conftest import Start

PULLS: Message = {"textDocument": {"diagnostic": {}}}
WATCHES: Message = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
ASKED: Message = {**PULLS, "workspace": {"configuration": True}}


def codes(found: list[Message]) -> list[str]:
    return [each["code"] for each in found]


def changed(client: Client, *paths: Path) -> None:
    changes = [{"uri": path.as_uri(), "type": 2} for path in paths]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})


def test_each_folder_has_its_own_settings(start: Start, tmp_path: Path) -> None:
    loud, silent = tmp_path / "loud", tmp_path / "silent"
    for folder in (loud, silent):
        folder.mkdir()
    (silent / "pyproject.toml").write_text('[tool.ctxlint]\nignore = ["CTX203"]\n')
    client = start(folders=[loud, silent], capabilities=PULLS)
    assert codes(client.pulled(client.open((loud / "a.py").as_uri(), ONE))) == ["CTX203"]
    assert codes(client.pulled(client.open((silent / "a.py").as_uri(), ONE))) == []


def test_a_changed_configuration_applies_at_once(start: Start, tmp_path: Path) -> None:
    client = start(folders=[tmp_path], capabilities=WATCHES)
    registered = client.until(lambda message: message.get("method") == "client/registerCapability")
    patterns = [each["globPattern"] for each in registered["params"]["registrations"][0]["registerOptions"]["watchers"]]
    assert "**/*.toml" in patterns
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    assert codes(client.pushed(uri)) == ["CTX203"]
    file = tmp_path / "ctxlint.toml"
    file.write_text('ignore = ["CTX2"]\n')
    changed(client, file)
    assert codes(client.pushed(uri)) == []
    file.unlink()
    changed(client, file)
    assert codes(client.pushed(uri)) == ["CTX203"]


def test_a_client_that_pulls_is_asked_to_pull_again(start: Start, tmp_path: Path) -> None:
    client = start(folders=[tmp_path], capabilities={**PULLS, "workspace": {"diagnostics": {"refreshSupport": True}}})
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    assert codes(client.pulled(uri)) == ["CTX203"]
    (tmp_path / "ctxlint.toml").write_text('ignore = ["CTX2"]\n')
    changed(client, tmp_path / "ctxlint.toml")
    client.until(lambda message: message.get("method") == "workspace/diagnostic/refresh")
    assert codes(client.pulled(uri)) == []


def test_a_wrong_configuration_is_said_once_and_the_last_one_stays(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "ctxlint.toml"
    file.write_text('ignore = ["CTX203"]\n')
    client = start(folders=[tmp_path], capabilities=PULLS)
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    assert codes(client.pulled(uri)) == []
    file.write_text('ignroe = ["CTX203"]\n')
    changed(client, file)
    assert codes(client.pulled(uri)) == []
    assert "unknown key `ignroe`; did you mean `ignore`?" in client.told("window/showMessage")["message"]
    client.change(uri, ONE + "\n", 2)
    assert codes(client.pulled(uri)) == []
    messages = [each for each in client.notifications if each["method"] == "window/showMessage"]
    assert len(messages) == 1


def complaints(client: Client) -> list[str]:
    return [each["params"]["message"] for each in client.notifications if each["method"] == "window/showMessage"]


def test_a_wrong_configuration_is_not_said_again_at_each_save(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "ctxlint.toml"
    client = start(folders=[tmp_path], capabilities=PULLS)
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    for text, messages in (("x = 1\n", 1), ("x = 1\n", 1), ("x = 1\n", 1), ("", 1), ("x = 1\n", 2)):
        file.write_text(text)
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        client.pulled(uri)
        client.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}})
        assert len(complaints(client)) == messages


def test_an_unknown_setting_is_said_once_for_all_folders(tmp_path: Path) -> None:
    answers: dict[str, Any] = {"colour": "red"}
    client = Client()
    client.configuration = lambda scope: dict(answers) if scope is not None else None
    client.initialize([tmp_path], ASKED)
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    for number in range(3):
        assert codes(client.pulled(uri)) == (["CTX203"] if number != 1 else [])
        answers["ignore"] = ["CTX203"] if number == 0 else []
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        client.until(lambda message: message.get("method") == "workspace/configuration")
        client.pulled(uri)
    client.close()
    (message,) = complaints(client)
    assert "`colour`" in message


@pytest.mark.parametrize(
    "options",
    [
        {"ignore": ["CTX203"]},
        {"settings": {"ignore": ["missing-none"], "path": ["/usr/bin/ctxlint"], "trace": {"server": "off"}}},
        {"settings": {"ctxlint": {"perFileIgnores": {"*.py": ["CTX2"]}}}},
        {"configuration": {"ignore": ["CTX2"]}},
        {"configuration": "settings/other.toml"},
    ],
)
def test_the_client_may_say_more(tmp_path: Path, options: Any) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "other.toml").write_text('ignore = ["CTX203"]\n')
    mistakes: list[str] = []
    workspace = Workspace(mistakes.append, (str(tmp_path),), read_client_settings(options))
    settings = workspace.settings_for(str(tmp_path / "a.py"))
    assert lint_file.lint_source(Source(str(tmp_path / "a.py"), ONE), settings) == []
    assert not mistakes
    assert not workspace.client.mistakes


def test_a_setting_that_makes_no_sense_is_said_and_the_others_count(start: Start, tmp_path: Path) -> None:
    client = start(capabilities=PULLS, options={"ignore": ["CTX203"], "select": "CTX9999", "colour": "red"})
    said = client.told("window/showMessage")
    assert said["type"] == 2
    assert "`colour`" in said["message"]
    assert codes(client.pulled(client.open((tmp_path / "a.py").as_uri(), ONE))) == []
    messages = complaints(client)
    assert len(messages) == 2
    assert "`select`: expected a list of strings" in messages[1]


@pytest.mark.parametrize("name", ["logFile", "log-file", "log_file", "settings"])
def test_settings_of_a_workspace_choose_no_file_to_write_to(start: Start, tmp_path: Path, name: str) -> None:
    """Editors send what a checkout has in ``.vscode/settings.json`` or ``.dir-locals.el``, too."""
    log = str(tmp_path / "log")
    client = start(capabilities=ASKED)
    hostile: Message = {name: {"logFile": log} if name == "settings" else log, "logLevel": "debug"}
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    client.configuration = lambda _: hostile
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    assert "`logFile` has no effect here" in client.told("window/showMessage")["message"]
    client.pulled(client.open((tmp_path / "a.py").as_uri(), ONE))
    assert not (tmp_path / "log").exists()


def test_the_editor_itself_chooses_a_file_to_log_to(start: Start, tmp_path: Path) -> None:
    log: Message = {"logFile": str(tmp_path / "log"), "logLevel": "debug"}
    client = start(capabilities=ASKED, options=log)
    client.configuration = lambda _: log
    client.pulled(client.open((tmp_path / "a.py").as_uri(), ONE))
    assert "DEBUG" in (tmp_path / "log").read_text(encoding="utf-8")
    assert not any(each["method"] == "window/showMessage" for each in client.notifications)


def test_a_cache_that_cannot_be_used_is_said_and_the_file_is_checked(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ctxlint.toml").write_text('cache-dir = "notes"\n')
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("")
    path = tmp_path / "a.py"
    path.write_text(ONE)
    client = start(folders=[tmp_path])
    assert client.pushed(client.open(path.as_uri(), ONE), version=1)
    assert "contains other files" in client.told("window/showMessage")["message"]


@pytest.mark.parametrize("inside", [True, False])
def test_a_cache_in_the_settings_is_inside_of_the_folder(tmp_path: Path, inside: bool) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    cache = str((folder if inside else tmp_path) / "cache")
    for options in ({"cacheDir": cache}, {"configuration": {"cache-dir": cache}}):
        mistakes: list[str] = []
        workspace = Workspace(mistakes.append, (str(folder),), read_client_settings(options))
        assert workspace.settings_for(str(folder / "a.py")).cache_dir == (cache if inside else None)
        told = f"the editor's settings: `cache-dir`: expected a path inside of {folder}"
        assert mistakes == ([] if inside else [told])


def test_settings_of_editors(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ctxlint.toml").write_text("ignore = ['CTX901']\n")
    only, both, none = {"configurationPreference": "editorOnly"}, ["CTX203", "CTX901"], dict[str, object]()
    client = start(folders=[tmp_path], capabilities=PULLS, options=only)
    uri = client.open((tmp_path / "a.py").as_uri(), f"{ONE}\nclass Half(:\n")
    assert codes(client.pulled(uri)) == both
    client.notify("workspace/didChangeConfiguration", {"settings": {"ctxlint": none}})
    assert codes(client.pulled(uri)) == ["CTX203"]
    (tmp_path / "ctxlint.toml").write_text("ignore = ['CTX1']\n")
    changed(client, tmp_path / "ctxlint.toml")
    for options, shown in (
        (none, both),
        ({"enable": False}, []),
        ({"showSyntaxErrors": False}, ["CTX203"]),
        ({"ignore": ["CTX203"]}, ["CTX901"]),
        ({"ignore": ["CTX203"], "configurationPreference": "filesystemFirst"}, both),
    ):
        client.notify("workspace/didChangeConfiguration", {"settings": {"ctxlint": options}})
        assert codes(client.pulled(uri)) == shown, options


def test_actions_are_turned_off(start: Start, tmp_path: Path) -> None:
    off = {"fixAll": False, "codeAction": {"disableRuleComment": {"enable": False}}}
    client = start(folders=[tmp_path], options={"settings": off})
    actions = client.actions(client.open((tmp_path / "a.py").as_uri(), ONE))
    assert [each["title"] for each in actions] == ["ctxlint (CTX203): Return `None` for `scale`"]


def test_checking_on_save_only(start: Start, tmp_path: Path) -> None:
    client = start(folders=[tmp_path], capabilities=PULLS, options={"run": "onSave"})
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    report = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    assert codes(report["items"]) == ["CTX203"]
    client.change(uri, HEAD, 2)
    asked = {"textDocument": {"uri": uri}, "previousResultId": report["resultId"]}
    assert client.request("textDocument/diagnostic", asked)["kind"] == "unchanged"
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert client.request("textDocument/diagnostic", asked)["items"] == []


def test_what_is_open_counts_instead_of_what_is_on_disk(start: Start, tmp_path: Path) -> None:
    base = HEAD + missing_none("Base")
    (tmp_path / "base.py").write_text(base)
    heir = (
        "import torch.autograd  # Function\nfrom base import Base\n\n\nclass Heir(Base):\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad\n"
    )
    client = start(folders=[tmp_path])
    uri = client.open((tmp_path / "heir.py").as_uri(), heir)
    assert codes(client.pushed(uri, version=1)) == ["CTX203"]
    other = client.open((tmp_path / "base.py").as_uri(), base)
    unsaved = base.replace("torch.autograd.Function", "object")
    client.change(other, unsaved, 2)
    assert codes(client.pushed(uri, version=1)) == []
    client.notify("textDocument/didClose", {"textDocument": {"uri": other}})
    assert codes(client.pushed(uri, version=1)) == ["CTX203"]


def test_the_configuration_is_read_at_save_where_nothing_is_watched(start: Start, tmp_path: Path) -> None:
    client = start(folders=[tmp_path])
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    assert codes(client.pushed(uri, version=1)) == ["CTX203"]
    (tmp_path / "ctxlint.toml").write_text("ignore = ['CTX203']\n")
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert codes(client.pushed(uri, version=1)) == []


def test_settings_that_the_client_pushes(start: Start, tmp_path: Path) -> None:
    client = start(folders=[tmp_path])
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    assert codes(client.pushed(uri)) == ["CTX203"]
    client.notify("workspace/didChangeConfiguration", {"settings": {"ctxlint": {"ignore": ["CTX203"]}}})
    assert codes(client.pushed(uri)) == []


def test_settings_that_the_client_is_asked_for(start: Start, tmp_path: Path) -> None:
    loud, silent = tmp_path / "loud", tmp_path / "silent"
    loud.mkdir()
    silent.mkdir()
    answers: dict[str | None, object] = {loud.as_uri(): None, silent.as_uri(): {"ignore": ["CTX203"]}, None: {}}
    client = start(folders=[loud, silent], capabilities={"workspace": {"configuration": True}})
    client.configuration = answers.get
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    first = client.open((loud / "a.py").as_uri(), ONE)
    second = client.open((silent / "a.py").as_uri(), ONE)
    while client.pushed(second):
        continue
    answers[loud.as_uri()] = {"ignore": ["CTX2"]}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    while client.pushed(first):
        continue


def test_settings_that_the_client_has_no_more(start: Start, tmp_path: Path) -> None:
    client = start(
        folders=[tmp_path], capabilities={"workspace": {"configuration": True}}, options={"ignore": ["CTX1"]}
    )
    client.configuration = lambda _: {"ignore": ["CTX203"]}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    while client.pushed(uri):
        continue
    client.configuration = lambda _: None
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    assert codes(client.pushed(uri)) == ["CTX203"]


def test_the_first_findings_wait_for_the_settings_that_the_client_is_asked_for(start: Start, tmp_path: Path) -> None:
    """Neovim pulls diagnostics once, and again only when the text changes."""
    client = start(capabilities={**PULLS, "workspace": {"configuration": True}})
    client.configuration = lambda _: {"ignore": ["CTX203"]}
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    asked = client.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    time.sleep(1)  # the client is busy: it has not answered yet
    assert client.answer(asked)["result"]["items"] == []


def test_a_client_that_never_says_its_settings_gets_findings(start: Start, tmp_path: Path) -> None:
    client = start(capabilities={"workspace": {"configuration": True}})
    client.answers = False
    assert codes(client.pushed(client.open((tmp_path / "a.py").as_uri(), ONE))) == ["CTX203"]


def test_folders_come_and_go(start: Start, tmp_path: Path) -> None:
    client = start(folders=[tmp_path / "first"], capabilities=PULLS)
    assert client.capabilities["workspace"]["workspaceFolders"]["supported"]
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / "ctxlint.toml").write_text('ignore = ["CTX203"]\n')
    added = {"uri": folder.as_uri(), "name": "second"}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [added], "removed": []}})
    assert codes(client.pulled(client.open((folder / "a.py").as_uri(), ONE))) == []


def test_excluded_files_and_known_findings_are_silent(start: Start, tmp_path: Path) -> None:
    from ctxlint.cli import main

    (tmp_path / "ctxlint.toml").write_text('extend-exclude = ["third_party"]\n')
    (tmp_path / "old.py").write_text(ONE)
    assert main([f"--write-baseline={tmp_path / '.ctxlint-baseline.json'}", str(tmp_path / "old.py")]) == 0
    client = start(folders=[tmp_path], capabilities=PULLS)
    assert client.pulled(client.open((tmp_path / "third_party" / "a.py").as_uri(), ONE)) == []
    assert client.pulled(client.open((tmp_path / "old.py").as_uri(), ONE)) == []
    new = ONE + missing_none("New")
    client.change((tmp_path / "old.py").as_uri(), new, 2)
    (found,) = client.pulled((tmp_path / "old.py").as_uri())
    assert "`New`" in found["message"]


def test_another_file_that_is_saved_counts(start: Start, tmp_path: Path) -> None:
    base = HEAD + "\n\nclass Base(torch.autograd.Function):\n    pass\n"
    (tmp_path / "base.py").write_text(base.replace("torch.autograd.Function", "object"))
    text = ONE.replace("torch.autograd.Function", "Base").replace(HEAD, "from base import Base  # autograd Function\n")
    client = start(folders=[tmp_path])
    uri = client.open((tmp_path / "sub.py").as_uri(), text)
    assert codes(client.pushed(uri)) == []
    (tmp_path / "base.py").write_text(base)
    client.notify("textDocument/didSave", {"textDocument": {"uri": (tmp_path / "base.py").as_uri()}})
    assert codes(client.pushed(uri)) == ["CTX203"]


_BY_KEYWORD = f"""{HEAD}

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


y = Double.apply(x=torch.ones(2))
"""


def test_the_torch_that_the_project_requires_counts(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[project]\ndependencies = ['torch>=2.13']\n")
    client = start(folders=[tmp_path], capabilities=WATCHES)
    uri = client.open((tmp_path / "a.py").as_uri(), _BY_KEYWORD)
    assert codes(client.pushed(uri)) == []
    file.write_text("[project]\ndependencies = ['torch>=2.1']\n")
    changed(client, file)
    assert codes(client.pushed(uri)) == ["CTX702"]
