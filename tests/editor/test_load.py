"""Many files, many edits, large files."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.settings import Settings
from ctxlint.run.lint_file import check_source
from ctxlint.source.reading import MOST_CHARACTERS
from ctxlint.source.source import Source
from tests.editor.texts import HEAD, ONE, missing_none

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.client import Client

_HELPER = """

def helper_{number}(x, weight, bias=None, *, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    y = (x - mean) / (var + eps) ** 0.5
    if bias is not None:
        y = y * weight + bias
    for step in range(3):
        y = y + step * {number}
    return {{"y": y, "mean": mean, "var": [each for each in var]}}
"""


def large_file() -> str:
    """1,600 lines with five Functions."""
    parts = [HEAD]
    for number in range(5):
        parts += [_HELPER.format(number=100 * number + each) for each in range(25)]
        parts.append(missing_none(f"Layer{number}"))
    text = "".join(parts)
    return text + "\n" + "# the end\n" * (1600 - text.count("\n") - 1)


def test_two_hundred_files_at_once(client: Client, tmp_path: Path) -> None:
    uris = [(tmp_path / f"many_{number}.py").as_uri() for number in range(200)]
    for uri in uris:
        client.open(uri, ONE)
    waiting = set(uris)
    while waiting:
        message = client.until(lambda each: each.get("method") == "textDocument/publishDiagnostics")
        assert [each["code"] for each in message["params"]["diagnostics"]] == ["CTX203"]
        waiting.discard(message["params"]["uri"])
    for uri in uris:
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_what_is_typed_on_top_of_is_not_checked(client: Client, tmp_path: Path) -> None:
    uri = client.open((tmp_path / "typed.py").as_uri(), large_file())
    for version in range(2, 60):
        client.change(uri, large_file().replace("the end", "the end" * version), version)
    client.pushed(uri, version=59)
    shown = [each for each in client.notifications if each["params"].get("uri") == uri]
    assert len(shown) < 20


def test_a_request_is_answered_while_a_large_file_is_checked(client: Client, tmp_path: Path) -> None:
    large = HEAD + "".join(missing_none(f"Layer{number}") for number in range(60))
    client.open((tmp_path / "large.py").as_uri(), large)
    asked = client.ask("textDocument/hover", {"textDocument": {"uri": "file:///not/open.py"}, "position": {}})
    assert "error" in client.answer(asked)
    assert not [each for each in client.notifications if each["params"].get("uri", "").endswith("/large.py")]


def test_memory_does_not_grow_with_edits(client: Client, tmp_path: Path) -> None:
    text = HEAD + missing_none().partition("\n\n\ndef")[0]
    uri = client.open((tmp_path / "edited.py").as_uri(), text)

    def edit(first: int, last: int) -> None:
        for version in range(first, last):
            client.change(uri, text.replace("x * scale", f"x * scale * {version}"), version)
            client.pushed(uri, version=version)

    edit(2, 1000)  # what is kept of earlier versions, and what Python keeps for itself, grows at first
    before = memory_of(client.process.pid)
    edit(1000, 2000)
    grown = memory_of(client.process.pid) - before
    assert grown < 2_000_000, f"{grown:,} bytes more after 1,000 edits"


def memory_of(pid: int) -> int:
    """The resident memory of a process in bytes."""
    with open(f"/proc/{pid}/status") as file:
        (line,) = (each for each in file if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def processor_seconds(pid: int) -> float:
    """What a process has used of the processors; they may be busy with other things."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("typed_in", ["y * weight + bias", "ctx.scale", "return grad_output * ctx.scale"])
def test_a_keystroke_costs_no_more_than_twice_what_the_core_takes(
    client: Client, tmp_path: Path, typed_in: str
) -> None:
    text = large_file()
    at = text.index(typed_in, len(text) // 2)
    versions = [f"{text[:at]}{'z' * number}{text[at:]}" for number in range(1, 6)]
    uri = client.open((tmp_path / f"{len(typed_in)}.py").as_uri(), text)
    client.pushed(uri, version=1)
    check_source(Source("large.py", text), Settings())
    start = time.process_time()
    for changed in versions:
        check_source(Source("large.py", changed), Settings())
    core = time.process_time() - start
    before = processor_seconds(client.process.pid)
    for version, changed in enumerate(versions, start=2):
        client.change(uri, changed, version)
        client.pushed(uri, version=version)
    server = processor_seconds(client.process.pid) - before
    assert server < 2 * core + 0.05


def test_a_text_that_is_too_long_is_said_and_the_others_are_checked(client: Client, tmp_path: Path) -> None:
    long = f"{ONE}\nx = '{'x' * MOST_CHARACTERS}'\n"
    (found,) = client.pushed(client.open((tmp_path / "long.py").as_uri(), long), version=1)
    assert (found["code"], found["message"].split(",")[0]) == ("CTX902", "The code has more than 2")
    (found,) = client.pushed(client.open((tmp_path / "short.py").as_uri(), ONE), version=1)
    assert found["code"] == "CTX203"


def test_a_configuration_that_is_too_large_is_said_and_changes_nothing(client: Client, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "large/ctxlint.toml").write_text("#" * 1_000_001)
    uri = client.open((tmp_path / "large/a.py").as_uri(), ONE)
    shown = client.until(lambda each: each.get("method") == "window/showMessage")
    assert "Larger than 1 MB, the most that ctxlint reads" in shown["params"]["message"]
    (found,) = client.pushed(uri, version=1)
    assert found["code"] == "CTX203"
