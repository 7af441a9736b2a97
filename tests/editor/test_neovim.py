"""The snippet for Neovim in a real Neovim: diagnostics, fixes and saving."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.editor.neovim import Neovim
from tests.editor.texts import FIXED, HEAD, ONE, TWO, missing_none
from tests.hostile.checkout import build

if TYPE_CHECKING:
    from collections.abc import Iterator

SNIPPET = (Path(__file__).parents[2] / "editors" / "neovim" / "ctxlint.lua").read_text(encoding="utf-8")
SHOWN_HINTS = """vim.iter(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {details = true, type = 'virt_text'})):map(
    function(mark) return {mark[2] + 1, vim.iter(mark[4].virt_text):map(function(part) return part[1] end):join('')} end
):totable()"""
FLOATING = "vim.api.nvim_list_wins()[2]"

Open = Callable[..., Neovim]


@pytest.fixture
def edit(tmp_path: Path) -> Iterator[Open]:
    """Starts Neovim, with the snippet in its init.lua, on a file with a text."""
    started: list[Neovim] = []

    def begin(text: str, more: str = "") -> Neovim:
        (tmp_path / "a.py").write_text(text, encoding="utf-8")
        started.append(Neovim(tmp_path, SNIPPET + more, tmp_path / "a.py"))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def findings(editor: Neovim, text: str) -> list[tuple[str, int, str]]:
    """Code, line and marked text of each finding; Neovim counts columns in bytes of UTF-8."""
    lines = text.encode().split(b"\n")
    return [
        (each["code"], each["lnum"] + 1, lines[each["lnum"]][each["col"] : each["end_col"]].decode())
        for each in editor.lua("vim.diagnostic.get(0)")
    ]


def test_findings_stand_where_they_are_and_one_is_fixed_by_hand(edit: Open) -> None:
    text = (ONE + missing_none("Other")).replace("    ", "\t").replace("return grad", "'\U0001f600ü';\treturn grad")
    editor = edit(text)
    editor.wait("#vim.diagnostic.get(0) == 2")
    assert findings(editor, text) == [
        ("CTX203", 12, "return grad_output * ctx.scale"),
        ("CTX203", 27, "return grad_output * ctx.scale"),
    ]
    assert "`backward` of `Scale` returns 1 gradient" in editor.lua("vim.diagnostic.get(0)")[0]["message"]
    editor.lua("vim.fn.cursor(27, 1)")  # anywhere on the line
    editor.keys("gra")  # Neovim's own keys for code actions
    question = editor.wait_for_question("empty cancels): ")
    assert "1: ctxlint (CTX203): Return `None` for `scale`" in question
    assert "2: ctxlint (CTX203): Disable for this line" in question
    editor.keys("1<CR>")
    editor.wait("#vim.diagnostic.get(0) == 1")
    above, below = text.rsplit("ctx.scale\n", 1)
    assert editor.text() == f"{above}ctx.scale, None\n{below}"


def test_saving_applies_safe_fixes(edit: Open, tmp_path: Path) -> None:
    text = TWO.replace("import torch", "import torch  # \U0001f600", 1)
    editor = edit(text)
    editor.wait("#vim.diagnostic.get(0) == 2")
    editor.keys(":write<CR>")
    editor.wait("#vim.diagnostic.get(0) == 0 and not vim.bo.modified")
    assert (tmp_path / "a.py").read_text() == text.replace("* ctx.scale\n", "* ctx.scale, None\n")
    assert editor.text() == (tmp_path / "a.py").read_text()
    assert editor.quit() == 0


def test_a_class_is_typed(edit: Open) -> None:
    editor = edit(HEAD + missing_none("Ready"))
    editor.wait("#vim.diagnostic.get(0) == 1")
    half, rest = missing_none("Typed").split("(ctx, grad_output)")
    editor.keys(":setlocal indentexpr= noautoindent<CR>Go")
    editor.keys(half.replace("\n", "<CR>"))
    editor.wait("#vim.diagnostic.get(0) == 2")
    assert editor.lua("vim.api.nvim_get_mode().mode") == "i"
    ready = ("CTX203", 12, "return grad_output * ctx.scale")
    assert findings(editor, editor.text()) == [ready, ("CTX901", 26, "")]
    editor.wait("#vim.lsp.inlay_hint.get({bufnr = 0}) > 0")  # of the class that is ready
    editor.keys(f"(ctx, grad_output){rest}<Esc>".replace("\n", "<CR>"))
    editor.wait("#vim.diagnostic.get(0, {severity = 1}) == 2 and vim.diagnostic.get(0)[2].code == 'CTX203'")
    assert findings(editor, editor.text()) == [ready, ("CTX203", 27, "return grad_output * ctx.scale")]
    assert "rror" not in editor.log()


def test_hover_and_hints_show_the_contract(edit: Open) -> None:
    editor = edit(FIXED)
    editor.wait("#vim.lsp.inlay_hint.get({bufnr = 0}) == 2")
    editor.lua("vim.cmd.redraw()")
    assert editor.lua(SHOWN_HINTS) == [[12, " x"], [12, " scale"]]
    editor.lua("vim.fn.cursor(4, 9)")
    editor.keys("K")
    editor.wait("#vim.api.nvim_list_wins() == 2")
    shown = "\n".join(editor.lua(f"vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf({FLOATING}), 0, -1, true)"))
    assert "**Scale**: contract with autograd" in shown
    assert "| 1 | `scale` | non-tensor | `None` |" in shown
    editor.keys("<C-w>o")
    editor.lua("vim.fn.cursor(11, 1)")
    editor.keys("ox =<Esc>")
    editor.wait("#vim.diagnostic.get(0) == 1 and vim.diagnostic.get(0)[1].code == 'CTX901'")
    editor.wait(f"vim.deep_equal({SHOWN_HINTS}, {{{{13, ' x'}}, {{13, ' scale'}}}})".replace("\n", " "))


def test_settings_come_from_the_configuration_of_neovim(edit: Open) -> None:
    own = "{ ctxlint = { extendSelect = { 'CTX109' }, inlayHints = false } }"
    editor = edit(FIXED.replace("ctx", "context"), f"vim.lsp.config('ctxlint', {{ settings = {own} }})")
    editor.wait("#vim.diagnostic.get(0) == 2")
    assert {each["code"] for each in editor.lua("vim.diagnostic.get(0)")} == {"CTX109"}
    assert editor.lua("vim.lsp.inlay_hint.get({bufnr = 0})") == []


def test_nothing_of_a_checkout_runs(edit: Open, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    build(tmp_path, marker)
    lua = f"io.open('{marker}', 'w'):close()\n"
    for name in (".nvim.lua", "lsp/ctxlint.lua", "lua/ctxlint.lua", "plugin/a.lua", "after/ftplugin/python.lua"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(lua)
    (tmp_path / ".exrc").write_text(f"call writefile([], '{marker}')\n")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for script in (tmp_path / "ctxlint", tmp_path / ".venv" / "bin" / "ctxlint", tmp_path / "python"):
        script.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
        script.chmod(0o755)
    editor = edit(TWO, "vim.g.loaded_python3_provider = 0")  # Neovim's own search for Python imports `importlib` here
    editor.wait("#vim.diagnostic.get(0) == 2")
    editor.keys(":write<CR>")
    editor.wait("#vim.diagnostic.get(0) == 0 and not vim.bo.modified")
    assert not marker.exists()
