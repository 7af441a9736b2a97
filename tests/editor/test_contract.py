"""The contract in an editor: hover text, inlay hints and definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.editor.client import Client, Message, applied, lines_of, marked
from tests.editor.texts import HEAD, ONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.conftest import Start

PULLS: Message = {"textDocument": {"diagnostic": {}}}
TEXT = HEAD + (
    "\n\nclass Product(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x, weight, shape):\n"
    "        ctx.save_for_backward(x, weight)\n        ctx.shape = shape\n        return x * weight\n\n"
    "    @staticmethod\n    def backward(ctx, grad):  # \U0001f600\n        '\U0001f600'; a, b = ctx.saved_tensors\n"
    "        print(ctx.shape)\n        return grad * b, grad * a, None\n"
)


def at(text: str, snippet: str, inside: int = 0) -> Message:
    """The place of a snippet, in utf-16."""
    before = lines_of(text[: text.index(snippet) + inside])
    return {"line": len(before) - 1, "character": len(before[-1].encode("utf-16-le")) // 2}


def asked(uri: str, text: str, snippet: str, inside: int = 0) -> Message:
    return {"textDocument": {"uri": uri}, "position": at(text, snippet, inside)}


def test_hover_shows_the_contract_of_a_class(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "a.py").as_uri(), TEXT)
    shown = pulling.request("textDocument/hover", asked(uri, TEXT, "Product", 2))
    assert shown["contents"]["kind"] == "markdown"
    assert "weight" in shown["contents"]["value"]
    assert marked(TEXT, shown["range"]).strip() == "Product"
    assert pulling.request("textDocument/hover", asked(uri, TEXT, "import")) is None


def test_hover_on_a_code_in_a_comment_shows_the_page(pulling: Client, tmp_path: Path) -> None:
    text = ONE.replace("* ctx.scale\n", "* ctx.scale  # noqa: CTX203\n")
    uri = pulling.open((tmp_path / "noqa.py").as_uri(), text)
    shown = pulling.request("textDocument/hover", asked(uri, text, "CTX203", 3))
    assert shown["contents"]["value"].startswith("# CTX203: missing-none")


def test_hints_name_inputs_saved_tensors_and_outputs(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "b.py").as_uri(), TEXT)
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
    hints = pulling.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": everything})
    edits = [
        {"range": {"start": each["position"], "end": each["position"]}, "newText": f" /* {each['label']} */"}
        for each in hints
    ]
    shown = applied(TEXT, {"changes": {uri: edits}})
    assert "a /* x */, b /* weight */ = ctx.saved_tensors" in shown
    assert "return grad * b /* x */, grad * a /* weight */, None /* shape */" in shown
    first = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    assert pulling.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": first}) == []


def test_hints_stay_in_the_class_that_is_half_typed(pulling: Client, tmp_path: Path) -> None:
    def shown(text: str, version: int) -> list[tuple[str, str]]:
        pulling.change(uri, text, version)
        everything = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
        found = pulling.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": everything})
        lines = lines_of(text)
        return [(lines[each["position"]["line"]].strip(), each["label"]) for each in found]

    other = TEXT.removeprefix(HEAD).replace("Product", "Other")
    uri = pulling.open((tmp_path / "half_typed.py").as_uri(), TEXT + other)
    whole = shown(TEXT + other, 2)
    assert len(whole) == 10
    for version, typed in enumerate(("        x =\n", "        y = (\n"), start=3):
        before = "        return grad * b"
        assert shown(TEXT.replace(before, typed + before) + other, version) == whole
    assert (
        shown(TEXT.replace("return grad * b", "return grad * ") + other, 5)
        == whole[:2] + [("return grad * , grad * a, None", label) for label in ("x", "weight", "shape")] + whole[5:]
    )
    assert shown(TEXT.replace("return grad * b, grad * a, None", "return") + other, 6) == whole[:2] + whole[5:]


def test_a_client_without_markdown_gets_plain_text(start: Start, tmp_path: Path) -> None:
    client = start(capabilities={"textDocument": {"hover": {"contentFormat": ["plaintext"]}}})
    uri = client.open((tmp_path / "a.py").as_uri(), TEXT)
    assert client.request("textDocument/hover", asked(uri, TEXT, "Product", 2))["contents"]["kind"] == "plaintext"


def test_the_client_turns_hints_and_hover_off(start: Start, tmp_path: Path) -> None:
    client = start(capabilities=PULLS, options={"settings": {"inlayHints": False, "hover": False}})
    uri = client.open((tmp_path / "b.py").as_uri(), TEXT)
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
    assert client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": everything}) == []
    assert client.request("textDocument/hover", asked(uri, TEXT, "Product", 2)) is None


def test_an_attribute_of_ctx_leads_to_where_it_was_set_and_back(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "c.py").as_uri(), TEXT)
    (kept,) = pulling.request("textDocument/definition", asked(uri, TEXT, "print(ctx.shape", 11))
    assert kept["uri"] == uri
    assert kept["range"]["start"]["line"] == at(TEXT, "ctx.shape = shape")["line"]
    params = {**asked(uri, TEXT, "ctx.shape = shape", 5), "context": {"includeDeclaration": False}}
    (used,) = pulling.request("textDocument/references", params)
    assert used["range"]["start"]["line"] == at(TEXT, "print(ctx.shape")["line"]
    both = {**params, "context": {"includeDeclaration": True}}
    assert len(pulling.request("textDocument/references", both)) == 2


def test_an_unpacked_name_leads_to_what_was_saved(pulling: Client, tmp_path: Path) -> None:
    uri = pulling.open((tmp_path / "d.py").as_uri(), TEXT)
    (kept,) = pulling.request("textDocument/definition", asked(uri, TEXT, "b = ctx.saved"))
    assert marked(TEXT, kept["range"]) == "weight"


def test_what_is_inherited_leads_to_the_other_file(pulling: Client, tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        HEAD + "\n\nclass Base(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        'ü\U0001f600'; ctx.kept = 3\n        return x * 3\n"
    )
    text = (
        "from base import Base\nimport torch.autograd  # Function\n\n\nclass Triple(Base):\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        return grad * ctx.kept\n"
    )
    uri = pulling.open((tmp_path / "sub.py").as_uri(), text)
    (kept,) = pulling.request("textDocument/definition", asked(uri, text, "ctx.kept", 5))
    assert kept["uri"] == (tmp_path / "base.py").as_uri()
    other = (tmp_path / "base.py").read_text()
    assert marked(other, kept["range"]) == "kept"


def test_while_half_typed_nothing_fails(pulling: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "half.py").as_uri()
    pulling.open(uri, TEXT)
    for version, length in enumerate(range(30, len(TEXT), 23), start=2):
        pulling.change(uri, TEXT[:length], version)
        place = {"textDocument": {"uri": uri}, "position": {"line": 5, "character": 12}}
        pulling.request("textDocument/hover", place)
        pulling.request("textDocument/definition", place)
        everything = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        pulling.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": everything})
        pulling.pulled(uri)
