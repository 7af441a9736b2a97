"""``ctxlint explain``: which contracts are printed, in which format, and the message if there is none."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from ctxlint.cli import main
from tests.fixture_reader import PROGRAMS, ROOT

if TYPE_CHECKING:
    from pathlib import Path

SCALED = """\
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale: float, *, eps=0.0):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y * scale

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y * ctx.scale


class Outer:
    class Negated(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return -x

        @staticmethod
        def backward(ctx, grad_output):
            return -grad_output
"""

EXPLAINED = """\
Scaled  scaled.py:4
  forward(ctx, x, scale: float, *, eps=0.0) (line 6)
  backward(ctx, grad_output) (line 13)

  inputs
    0  x      tensor      gradient  grad_output * y * ctx.scale (line 15)
                          evidence  `backward` returns a gradient for it (line 15), passed to `exp`
                                    (line 7)
    1  scale  non-tensor  gradient  missing (line 15)
                          evidence  annotated `float` (line 6)

  outputs
    0  y * scale  gradient as  grad_output (line 13)
                               differentiable

  backward returns
    line 15  x  grad_output * y * ctx.scale

  saved
    0  y  by       save_for_backward (line 8)
          read as  y (line 14)

  stored on ctx
    ctx.scale  set to   scale (line 9)
               read in  backward (line 15)
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "scaled.py").write_text(SCALED, encoding="utf-8")


class Explained:
    """What a run printed, and how it ended."""

    def __init__(self, capfd: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = main(["explain", *arguments])
        self.out, self.err = capfd.readouterr()

    @property
    def classes(self) -> list[str]:
        return [line.split("  ")[0] for line in self.out.splitlines() if line and not line.startswith(" ")]


def test_a_class_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    found = Explained(capfd, "scaled.py::Scaled")
    assert (found.code, found.err) == (0, "")
    assert found.out == EXPLAINED


def test_a_file_a_folder_and_several_targets(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(SCALED.replace("Scaled", "Other"), encoding="utf-8")
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    assert Explained(capfd, "scaled.py").classes == ["Scaled", "Outer.Negated"]
    assert Explained(capfd, ".").classes == ["Other", "Outer.Negated", "Scaled", "Outer.Negated"]
    assert Explained(capfd).classes == Explained(capfd, ".").classes
    assert Explained(capfd, "scaled.py::Negated", "other.py::Other").classes == ["Outer.Negated", "Other"]
    assert Explained(capfd, "scaled.py::Outer.Negated", "scaled.py::Negated").classes == ["Outer.Negated"]


def test_no_line_is_wider_than_the_terminal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("40", 80), ("100", 100), ("300", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        lines = Explained(capfd, str(PROGRAMS / "clean" / "layer_norm.py"), "scaled.py").out.splitlines()[1:]
        assert max(map(len, lines)) <= width


def test_colours_only_where_they_are_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    assert "\x1b[" not in Explained(capfd, "scaled.py").out
    assert "\x1b[1mScaled\x1b[0m" in Explained(capfd, "scaled.py", "--color", "always").out


def test_standard_input(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def explained(*arguments: str) -> Explained:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SCALED.encode())))
        return Explained(capfd, *arguments)

    assert explained("-").out.startswith("Scaled  -:4\n")
    assert explained("--stdin-filename", "in/kernel.py").out.startswith("Scaled  in/kernel.py:4\n")
    assert explained("-::Negated", "--stdin-filename", "kernel.py").classes == ["Outer.Negated"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("scaled.py::Scald", "scaled.py: no Function `Scald` found; did you mean `Scaled`?"),
        ("scaled.py::Nothing", "scaled.py: no Function `Nothing` found"),
        ("scald.py", "scald.py: No such file or directory; did you mean `scaled.py`?"),
        ("scald.py::Scaled", "scald.py: No such file or directory; did you mean `scaled.py`?"),
        ("nowhere/scaled.py", "nowhere/scaled.py: No such file or directory"),
        (".::Scaled", ". is a folder; select a class with FILE::Scaled"),
        ("latin.py", "latin.py: The file is not valid UTF-8 (line 1, byte 0xe9) and declares no other encoding"),
    ],
)
def test_what_is_not_there(target: str, message: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# \xe9 autograd Function\n")
    found = Explained(capfd, target, "scaled.py::Scaled")
    assert found.code == 2
    assert found.err == f"ctxlint: error: {message}\n"
    assert found.out == EXPLAINED, "what is there is shown all the same"


def test_a_file_without_functions_is_no_error(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    found = Explained(capfd, "plain.py")
    assert (found.code, found.out) == (0, "")
    assert found.err == "ctxlint: plain.py: no Function found\n"


def test_files_without_functions_in_a_folder_are_passed_over(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Files that only use a Function are candidates until they are parsed."""
    (tmp_path / "user.py").write_text(
        "from scaled import Scaled\n\nautograd_Function = Scaled.apply\n", encoding="utf-8"
    )
    assert (Explained(capfd, ".").classes, Explained(capfd, ".").err) == (["Scaled", "Outer.Negated"], "")
    (tmp_path / "scaled.py").unlink()
    found = Explained(capfd, ".")
    assert (found.code, found.out, found.err) == (0, "", "ctxlint: .: no Function found\n")


def test_a_file_that_cannot_be_read_does_not_hide_the_others(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# \xe9 autograd Function\n")
    (tmp_path / "book.ipynb").write_text("autograd Function", encoding="utf-8")
    found = Explained(capfd, ".")
    assert (found.code, found.classes) == (2, ["Scaled", "Outer.Negated"])
    assert [line.partition(": The file is not")[0] for line in found.err.splitlines()] == [
        "ctxlint: error: book.ipynb",
        "ctxlint: error: latin.py",
    ]


def test_a_link_that_leads_nowhere_is_not_taken_for_a_slip(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "round.py").symlink_to("round.py")
    assert "did you mean" not in Explained(capfd, "round.py").err


def test_statements_that_cannot_be_read_are_named(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(f"{SCALED}\n\ndef half(:\n    pass\n", encoding="utf-8")
    found = Explained(capfd, "broken.py")
    assert (found.code, found.classes) == (0, ["Scaled", "Outer.Negated"])
    assert found.err.startswith("ctxlint: broken.py:29: ")


def test_a_base_class_of_another_package_is_known_by_the_configuration(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = SCALED.replace("import torch\n", "import torch\nfrom kernels import Base\n", 1)
    (tmp_path / "foreign.py").write_text(code.replace("class Scaled(torch.autograd.Function)", "class Scaled(Base)"))
    assert Explained(capfd, "foreign.py").classes == ["Outer.Negated"]
    (tmp_path / "ctxlint.toml").write_text('extra-bases = ["kernels.Base"]\n')
    assert Explained(capfd, "foreign.py").classes == ["Scaled", "Outer.Negated"]
    assert Explained(capfd, "foreign.py", "--isolated").classes == ["Outer.Negated"]


def test_methods_of_another_file_are_shown_with_its_name(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "from scaled import Scaled\n\n\nclass Child(Scaled):\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad, None\n"
    )
    found = Explained(capfd, "child.py")
    assert "  inherited forward(ctx, x, scale: float, *, eps=0.0) (scaled.py:6)\n" in found.out
    assert "set to   scale (scaled.py:9)" in found.out


# For programs


def _document(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found = Explained(capfd, *arguments, "--output-format", "json")
    document: dict[str, Any] = json.loads(found.out)
    schema = json.loads((ROOT / "docs" / "explain.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(_closed(schema)).validate(document)
    return document


def _closed(schema: Any) -> Any:
    """The schema, without additional properties."""
    if isinstance(schema, dict):
        closed = {key: _closed(value) for key, value in schema.items()}
        return {**closed, "additionalProperties": False} if schema.get("type") == "object" else closed
    return [_closed(each) for each in schema] if isinstance(schema, list) else schema


def test_json_is_as_the_schema_says(capfd: pytest.CaptureFixture[str]) -> None:
    document = _document(capfd, str(PROGRAMS), "scaled.py")
    assert document["version"] == 1
    assert len(document["functions"]) > 40


def test_json_holds_the_same_facts(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (function,) = _document(capfd, "scaled.py::Scaled")["functions"]
    assert (function["class"], function["file"], function["line"]) == ("Scaled", str(tmp_path / "scaled.py"), 4)
    assert [(each["name"], each["kind"]) for each in function["inputs"]] == [("x", "tensor"), ("scale", "non-tensor")]
    assert function["inputs"][1]["gradients"] == [{"return": 0, "state": "missing", "expression": None}]
    assert function["returns"][0]["slots"][0]["expression"] == "grad_output * y * ctx.scale"
    assert function["saves"][0]["reads"][0]["name"] == "y"
    assert function["attributes"][0]["set"][0]["location"] == {
        "file": str(tmp_path / "scaled.py"),
        "cell": None,
        "line": 9,
        "column": 13,
        "end_line": 9,
        "end_column": 18,
    }


def test_json_without_functions_is_an_empty_document(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    assert _document(capfd, "plain.py") == {"version": 1, "functions": []}


def test_places_in_a_notebook_are_those_of_its_cells(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    head, body = SCALED.split("\n\n\n", 1)
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": str(at), "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for at, source in enumerate((head, body))
    ]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (tmp_path / "kernels.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    found = Explained(capfd, "kernels.ipynb::Scaled")
    assert found.out.startswith("Scaled  kernels.ipynb:cell 2:1\n")
    assert "  backward(ctx, grad_output) (cell 2, line 10)\n" in found.out
    (function,) = _document(capfd, "kernels.ipynb::Scaled")["functions"]
    assert (function["cell"], function["line"]) == (2, 1)
    assert (function["saves"][0]["location"]["cell"], function["saves"][0]["location"]["line"]) == (2, 5)


def test_markdown_for_pull_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scaled.py").write_text(SCALED, encoding="utf-8")
    (tmp_path / "empty.py").write_text("x = 1\n", encoding="utf-8")
    assert main(["explain", "--output-format", "markdown", "scaled.py"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("### `Scaled` (`scaled.py:4`)\n\n|  | input |")
    assert "\n\n### `Outer.Negated` (`scaled.py:19`)\n\n" in out
    assert "| 0 | `x` | tensor | `grad_output * y * ctx.scale` |" in out
    assert main(["explain", "--output-format", "markdown", "empty.py"]) == 0
    assert capsys.readouterr().out == ""
