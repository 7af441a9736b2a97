"""Diagnostics: their content, and how they reach the editor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.editor.client import Client, Message, marked
from tests.editor.texts import FIXED, HEAD, ONE, TWO, missing_none

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.conftest import Start

PULLS: Message = {"textDocument": {"diagnostic": {}}}


def test_findings_are_pushed_to_a_client_that_does_not_ask(client: Client, tmp_path: Path) -> None:
    uri = client.open((tmp_path / "a.py").as_uri(), ONE)
    (found,) = client.pushed(uri, version=1)
    assert found["code"] == "CTX203"
    assert found["source"] == "ctxlint"
    assert found["severity"] == 1
    assert found["codeDescription"]["href"].endswith("/rules/CTX203/")
    assert marked(ONE, found["range"]) == "return grad_output * ctx.scale"
    client.change(uri, FIXED, 2)
    assert client.pushed(uri, version=2) == []
    client.change(uri, ONE, 3)
    assert len(client.pushed(uri, version=3)) == 1
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert client.pushed(uri) == []


def test_findings_are_never_pushed_to_a_client_that_asks(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "a.py").as_uri(), ONE)
    assert [each["code"] for each in pulling.pulled(uri)] == ["CTX203"]
    pulling.change(uri, TWO, 2)
    assert [each["code"] for each in pulling.pulled(uri)] == ["CTX203", "CTX203"]
    report = pulling.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    asked = {"textDocument": {"uri": uri}, "previousResultId": report["resultId"]}
    assert pulling.request("textDocument/diagnostic", asked)["kind"] == "unchanged"
    pulling.change(uri, ONE, 3)
    assert pulling.request("textDocument/diagnostic", asked)["kind"] == "full"
    assert uri not in {each["params"].get("uri") for each in pulling.notifications}


def test_a_document_that_is_not_open_has_no_findings(pulling: Client, tmp_path: Path) -> None:
    assert pulling.pulled((tmp_path / "never_opened.py").as_uri()) == []


def test_what_is_old_or_useless_is_tagged(start: Start, tmp_path: Path) -> None:
    text = HEAD + (
        "\n\nclass Square(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x, y):\n        ctx.save_for_backward(x, y)\n        return x * x\n\n"
        "    @staticmethod\n    def backward(ctx, grad_output):\n        x, y = ctx.saved_variables\n"
        "        return 2 * x * grad_output, None\n"
    )
    (tmp_path / "ctxlint.toml").write_text('extend-select = ["CTX312"]\n')
    client = start(folders=[tmp_path], capabilities=PULLS)
    uri = client.open((tmp_path / "a.py").as_uri(), text)
    found = {each["code"]: each for each in client.pulled(uri)}
    assert found["CTX601"]["tags"] == [2]
    assert found["CTX312"]["tags"] == [1]
    assert marked(text, found["CTX312"]["range"]) == "y"
    (related,) = found["CTX312"]["relatedInformation"]
    assert related["location"]["uri"] == uri
    assert related["message"] == "read here"
    assert marked(text, related["location"]["range"]) == "ctx.saved_variables"


def test_related_places_are_shown(pulling: Client, tmp_path: Path) -> None:
    text = HEAD + (
        "\n\nclass Square(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        y = x * x\n"
        "        ctx.y = y\n        return y\n\n"
        "    @staticmethod\n    def backward(ctx, grad_output):\n        x, z = ctx.saved_tensors\n"
        "        return 2 * x * ctx.y * grad_output\n"
    )
    uri = pulling.open((tmp_path / "related.py").as_uri(), text)
    shown = {
        each["code"]: [
            (other["message"], marked(text, other["location"]["range"])) for other in each["relatedInformation"]
        ]
        for each in pulling.pulled(uri)
    }
    assert shown == {
        "CTX301": [("`ctx.y` is read here", "ctx.y")],
        "CTX305": [("saved here", "ctx.save_for_backward(x)")],
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_places_are_counted_as_agreed(start: Start, tmp_path: Path, encoding: str) -> None:
    capabilities = {**PULLS, "general": {"positionEncodings": [encoding]}}
    client = start(capabilities=capabilities)
    assert client.capabilities["positionEncoding"] == encoding
    tabs = ONE.replace("    ", "\t")
    text = tabs.replace("\t\treturn grad", "\t\tnote = '\U0001f600 \u6f22\u5b57 \t\xfc'; return grad")
    assert text != tabs
    uri = client.open((tmp_path / "a.py").as_uri(), text)
    found = [each for each in client.pulled(uri) if each["code"] == "CTX203"]
    assert [marked(text, each["range"], encoding) for each in found] == ["return grad_output * ctx.scale"]


def test_what_is_too_complex_to_analyse_is_shown(pulling: Client, tmp_path: Path) -> None:
    chain = "".join(f"class C{at}(C{at - 1}):\n    pass\n\n\n" for at in range(1, 101))
    text = f"{HEAD}class C0(torch.autograd.Function):\n    pass\n\n\n{chain}"
    (found,) = [
        each for each in pulling.pulled(pulling.open((tmp_path / "a.py").as_uri(), text)) if each["code"] == "CTX903"
    ]
    assert found["severity"] == 2
    assert text.splitlines()[found["range"]["start"]["line"]] == "class C100(C99):"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_only_line_endings_end_lines(pulling: Client, tmp_path: Path, ending: str) -> None:
    strange = "# form feed \f, U+2028 \u2028, next line \x85\n\f\nNOTE = 'vertical tab \x0b and \u2029'\n"
    text = (HEAD + strange + missing_none()).replace("\n", ending)
    uri = pulling.open((tmp_path / f"{ord(ending[-1])}{len(ending)}.py").as_uri(), text)
    (found,) = pulling.pulled(uri)
    assert marked(text, found["range"]) == "return grad_output * ctx.scale"


def test_a_byte_order_mark_counts_as_the_client_counts_it(pulling: Client, tmp_path: Path) -> None:
    text = "\ufeffimport torch; X = torch.autograd.Function(\n"
    uri = pulling.open((tmp_path / "bom.py").as_uri(), text)
    (found,) = pulling.pulled(uri)
    assert found["code"] == "CTX901"
    line = text.split("\n", maxsplit=1)[0]
    assert 0 < found["range"]["start"]["character"] <= len(line)
    uri = pulling.open((tmp_path / "bom2.py").as_uri(), "\ufeff" + ONE)
    (found,) = pulling.pulled(uri)
    assert marked("\ufeff" + ONE, found["range"]) == "return grad_output * ctx.scale"


@pytest.mark.parametrize(
    "typed",
    ["    def backward(ctx, grad", "    x = (", '    """', "    y = '", "    @", "    if x:", "    return [{", "def"],
)
def test_half_typed_code_keeps_the_findings_of_what_was_not_touched(client: Client, tmp_path: Path, typed: str) -> None:
    first, second, third = missing_none("First"), missing_none("Second"), missing_none("Third")
    uri = client.open((tmp_path / "half.py").as_uri(), HEAD + first + second + third)
    assert len(client.pushed(uri, version=1)) == 3
    broken = HEAD + first + second.rstrip().rpartition("\n\n\n")[0] + f"\n{typed}\n" + third
    client.change(uri, broken, 2)
    found = client.pushed(uri, version=2)
    names = {name for name in ("First", "Second", "Third") for each in found if f"`{name}`" in each["message"]}
    assert {"First", "Third"} <= names
    for each in found:
        if each["code"] == "CTX203":
            assert marked(broken, each["range"]) == "return grad_output * ctx.scale"
    client.change(uri, HEAD + first, 3)
    assert len(client.pushed(uri, version=3)) == 1


@pytest.mark.parametrize("typed", ["x = (", "if ", "y = '", "return ctx.("])
def test_the_class_that_is_half_typed_keeps_its_findings_until_it_parses(
    client: Client, tmp_path: Path, typed: str
) -> None:
    text = HEAD + missing_none("First") + missing_none("Second")
    uri = client.open((tmp_path / "half.py").as_uri(), text)
    assert len(client.pushed(uri, version=1)) == 2
    before, _, after = text.partition("        return x * scale")
    broken = f"{before}        {typed}\n        return x * scale{after}"
    client.change(uri, broken, 2)
    found = [each for each in client.pushed(uri, version=2) if each["code"] == "CTX203"]
    assert [marked(broken, each["range"]) for each in found] == ["return grad_output * ctx.scale"] * 2
    client.change(uri, text.replace("ctx.scale\n", "ctx.scale, None\n"), 3)
    assert client.pushed(uri, version=3) == []


def test_findings_come_while_somebody_types_faster_than_texts_are_checked(client: Client, tmp_path: Path) -> None:
    text = HEAD + "".join(missing_none(f"Layer{number}") for number in range(60))
    uri = client.open((tmp_path / "typed.py").as_uri(), text)
    assert len(client.pushed(uri, version=1)) == 60
    for version in range(2, 40):
        client.change(uri, "#" * version + "\n" + text, version)
        time.sleep(0.05)
    client.pushed(uri, version=39)
    shown = [each["params"] for each in client.notifications if each["params"].get("uri") == uri]
    assert len(shown) > 4
    assert all(len(each["diagnostics"]) == 60 for each in shown)
    versions = [each["version"] for each in shown]
    assert versions == sorted(versions)
    for each in shown:
        there = "#" * each["version"] + "\n" + text if each["version"] > 1 else text
        assert {marked(there, found["range"]) for found in each["diagnostics"]} == {"return grad_output * ctx.scale"}


def test_what_lost_its_meaning_while_typing_is_kept(client: Client, tmp_path: Path) -> None:
    uri = client.open((tmp_path / "import.py").as_uri(), ONE)
    assert len(client.pushed(uri, version=1)) == 1
    client.change(uri, "import torch as (\n" + missing_none(), 2)
    codes = [each["code"] for each in client.pushed(uri, version=2)]
    assert "CTX203" in codes
    assert "CTX901" in codes


def test_the_json_of_a_notebook_and_its_markdown_are_not_read_as_python(pulling: Client, tmp_path: Path) -> None:
    address = (tmp_path / "nb.ipynb").as_uri()
    assert pulling.pulled(pulling.open(address, ONE, language="json")) == []
    cell = address.replace("file:", "vscode-notebook-cell:") + "#W0"
    assert pulling.pulled(pulling.open(cell, ONE, language="markdown")) == []


def test_other_languages_are_left_alone(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "a.md").as_uri(), ONE, language="markdown")
    assert pulling.pulled(uri) == []


def test_a_text_that_is_no_file_yet_is_checked(pulling: Client) -> None:
    uri = pulling.open("untitled:Untitled-1", ONE)
    assert [each["code"] for each in pulling.pulled(uri)] == ["CTX203"]


def test_names_with_strange_characters_are_understood(pulling: Client, tmp_path: Path) -> None:
    path = tmp_path / "a b#ü%.py"
    uri = pulling.open(path.as_uri(), ONE)
    assert len(pulling.pulled(uri)) == 1


@pytest.mark.parametrize(
    "nested", ["(" * 5000 + ")" * 5000, "[" * 900 + "]" * 900, " + ".join("1" * 5000), "-" * 5000 + "1"]
)
def test_deeply_nested_code_does_not_end_the_server(pulling: Client, tmp_path: Path, nested: str) -> None:
    inside = ONE.replace("return x * scale", f"y = {nested}\n        return x * scale")
    for number, text in enumerate((f"{ONE}\nz = {nested}\n", inside)):
        uri = pulling.open((tmp_path / f"deep_{number}.py").as_uri(), text)
        pulling.pulled(uri)
    assert len(pulling.pulled(pulling.open((tmp_path / "flat.py").as_uri(), ONE))) == 1
