"""Notebooks: the cells form one module, and each shows its own findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.editor.client import Client, Message, applied, marked
from tests.editor.texts import missing_none

if TYPE_CHECKING:
    from pathlib import Path


PULLS: Message = {"textDocument": {"diagnostic": {}}}
CELLS = [
    "import torch\n%matplotlib inline",
    "# A heading",
    "!pip install torch  # \U0001f600\n" + missing_none("First").strip(),
    missing_none("Second").strip().replace("return grad", "'\U0001f600'; return grad"),
    "%%bash\nls",
    "x = (",
]


class Notebook:
    """A notebook in the editor, whose second cell is Markdown."""

    def __init__(self, client: Client, path: Path, cells: list[str]) -> None:
        self.client = client
        self.uri = path.as_uri()
        self.texts = {self.cell(at): text for at, text in enumerate(cells)}
        document = {
            "uri": self.uri,
            "notebookType": "jupyter-notebook",
            "version": 1,
            "cells": [{"kind": 1 if at == 1 else 2, "document": self.cell(at)} for at in range(len(cells))],
        }
        items = [
            {"uri": uri, "languageId": "markdown" if at == 1 else "python", "version": 1, "text": text}
            for at, (uri, text) in enumerate(self.texts.items())
        ]
        params = {"notebookDocument": document, "cellTextDocuments": items}
        client.notify("notebookDocument/didOpen", params)

    def cell(self, at: int) -> str:
        return f"{self.uri.replace('file:', 'vscode-notebook-cell:')}#W{at}"

    def change(self, version: int, changes: Message) -> None:
        params = {"notebookDocument": {"uri": self.uri, "version": version}, "change": {"cells": changes}}
        self.client.notify("notebookDocument/didChange", params)


@pytest.fixture
def notebook(pulling: Client, tmp_path: Path) -> Notebook:
    return Notebook(pulling, tmp_path / "a.ipynb", CELLS[:5])


def test_each_cell_is_pushed_even_to_a_client_that_pulls(notebook: Notebook) -> None:
    for at, expected in ((0, 0), (2, 1), (3, 1)):
        cell = notebook.cell(at)
        found = notebook.client.pushed(cell)
        assert len(found) == expected
        for each in found:
            assert marked(notebook.texts[cell], each["range"]) == "return grad_output * ctx.scale"
    assert notebook.client.pulled(notebook.cell(2)) == []


def test_fixes_stay_in_their_cell(notebook: Notebook) -> None:
    client, cell = notebook.client, notebook.cell(3)
    assert len(client.pushed(cell)) == 1
    fix, disable = client.actions(cell, ["quickfix"])
    text = notebook.texts[cell]
    fixed = text.replace("return grad_output * ctx.scale", "return grad_output * ctx.scale, None")
    assert applied(text, fix["edit"]) == fixed
    assert applied(text, disable["edit"]).count("ctx.scale  # noqa: CTX203\n") == 1
    (all_of_cell,) = client.actions(cell, ["source.fixAll"])
    assert list(all_of_cell["edit"]["changes"]) == [cell]
    assert applied(text, all_of_cell["edit"]) == fixed
    (all_of_notebook,) = client.actions(notebook.cell(0), ["notebook.source.fixAll"])
    assert set(all_of_notebook["edit"]["changes"]) == {notebook.cell(2), cell}


def test_a_fix_at_the_end_of_a_cell_needs_no_line_after_it(pulling: Client, tmp_path: Path) -> None:
    last = missing_none().strip().rpartition("\n\n\ndef")[0]
    notebook = Notebook(pulling, tmp_path / "end.ipynb", ["import torch", "", last])
    assert len(pulling.pushed(notebook.cell(2))) == 1
    (action,) = pulling.actions(notebook.cell(2), ["source.fixAll.ctxlint"])
    assert applied(last, action["edit"]) == f"{last}, None"


def test_cells_change_come_and_go(notebook: Notebook) -> None:
    client, second, third = notebook.client, notebook.cell(2), notebook.cell(3)
    assert len(client.pushed(third)) == 1
    # VS Code sends stretches for cells, whatever was agreed for other documents.
    text = notebook.texts[third]
    line = next(at for at, each in enumerate(text.split("\n")) if "return grad" in each)
    end = len(text.split("\n")[line].encode("utf-16-le")) // 2
    place = {"line": line, "character": end}
    typed = [{"range": {"start": place, "end": place}, "rangeLength": 0, "text": ", None"}]
    identifier = {"uri": third, "version": 2}
    notebook.change(2, {"textContent": [{"document": identifier, "changes": typed}]})
    assert len(client.pushed(second)) == 1
    assert client.pushed(third, version=2) == []
    new = f"{notebook.uri}#new"
    item = {"uri": new, "languageId": "python", "version": 1, "text": missing_none("New")}
    array = {"start": 2, "deleteCount": 1, "cells": [{"kind": 2, "document": new}]}
    notebook.change(3, {"structure": {"array": array, "didOpen": [item], "didClose": [{"uri": second}]}})
    assert client.pushed(second) == []
    assert len(client.pushed(new)) == 1
    closed = {"notebookDocument": {"uri": notebook.uri}, "cellTextDocuments": [{"uri": new}, {"uri": third}]}
    client.notify("notebookDocument/didClose", closed)
    assert client.pushed(new) == []


def test_half_typed_cells_do_not_silence_the_others(pulling: Client, tmp_path: Path) -> None:
    notebook = Notebook(pulling, tmp_path / "half.ipynb", CELLS)
    assert len(pulling.pushed(notebook.cell(2))) == 1
    assert [each["code"] for each in pulling.pushed(notebook.cell(5))] == ["CTX901"]


def test_hover_and_hints_in_a_cell(notebook: Notebook) -> None:
    client, cell = notebook.client, notebook.cell(3)
    position = {"line": 0, "character": 8}
    shown = client.request("textDocument/hover", {"textDocument": {"uri": cell}, "position": position})
    assert marked(notebook.texts[cell], shown["range"]) == "Second"
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = client.request("textDocument/inlayHint", {"textDocument": {"uri": cell}, "range": everything})
    assert [each["label"] for each in hints]
    assert all(each["position"]["line"] < len(notebook.texts[cell].split("\n")) for each in hints)
    place = {"textDocument": {"uri": cell}, "position": {"line": 8, "character": 55}}
    (kept,) = client.request("textDocument/definition", place)
    assert kept["uri"] == cell
