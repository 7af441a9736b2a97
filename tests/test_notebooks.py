"""Jupyter notebooks, from the command line and the API: findings by cell, and what a fix does not change."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

import ctxlint
from ctxlint.cli import main
from tests import stand_ins
from tests.console import NOTHING_FOUND, passed
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]

PYTHON = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "version": "3.11.7"},
}
R = {"kernelspec": {"display_name": "R", "language": "R", "name": "ir"}, "language_info": {"name": "R"}}
LAYOUTS: dict[str, Callable[[Any], str]] = {
    "jupyter": lambda document: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
    "indented": lambda document: json.dumps(document, indent=4, ensure_ascii=False, sort_keys=True),
    "ascii": lambda document: json.dumps(document, indent=2) + "\n\n",
    "one line": json.dumps,
    "minimal": lambda document: json.dumps(document, separators=(",", ":")),
    "tabs": lambda document: json.dumps(document, indent="\t", ensure_ascii=False).replace("\n", "\r\n"),
}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that look for words."""
    stand_ins.install(monkeypatch)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process; gives exit code, standard output and standard error."""

    def runs(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(arguments)
        out, err = capfd.readouterr()
        return code, out, err

    return runs


def code(source: str | list[str], **metadata: Any) -> dict[str, Any]:
    """A code cell that was run. A string is kept as a list of lines, as Jupyter does it."""
    return {
        "cell_type": "code",
        "execution_count": 3,
        "metadata": metadata,
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["wrong café \u2028 </script>\n"]}],
        "source": source.splitlines(keepends=True) if isinstance(source, str) else source,
    }


def in_one_string(cell: dict[str, Any]) -> dict[str, Any]:
    """``cell`` with its source as one string."""
    return {**cell, "source": "".join(cell["source"])}


def text(source: str) -> dict[str, Any]:
    """A cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}


def notebook(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A notebook of format 4, checked by nbformat."""
    document = {"cells": list(cells), "metadata": metadata or PYTHON, "nbformat": 4, "nbformat_minor": 2}
    nbformat.validate(nbformat.from_dict(document))
    return document


def write(document: dict[str, Any], name: str = "nb.ipynb", layout: str = "jupyter") -> str:
    """Write a notebook; gives the JSON."""
    written = LAYOUTS[layout](document)
    Path(name).write_bytes(written.encode())
    return written


def read(name: str = "nb.ipynb") -> str:
    return Path(name).read_bytes().decode()


def sources(written: str) -> list[str]:
    """The cells as nbformat reads them; it checks the notebook as well."""
    document = nbformat.reads(written, as_version=4)
    nbformat.validate(document)
    return [cell["source"] for cell in document["cells"]]


THREE = notebook(
    text("# wrong\n"), code(CANDIDATE), code("x = 1\ny = wrong"), text("wrong"), code("plain\nwrong = 'é'\n")
)


# What is found


@pytest.mark.usefixtures("words")
def test_places_are_given_in_cells_of_which_all_count(run: Run) -> None:
    write(THREE)
    code, out, _ = run("--output-format", "concise", "nb.ipynb")
    assert code == 1
    assert out.split("\n")[:3] == [
        "nb.ipynb:cell 3:2:5: CTX211 [*] `wrong` is found",
        "nb.ipynb:cell 5:1:1: CTX301 `plain` is found",
        "nb.ipynb:cell 5:2:1: CTX211 [*] `wrong` is found",
    ]


@pytest.mark.usefixtures("words")
def test_full_shows_the_cell_as_it_is_written(run: Run) -> None:
    write(notebook(code(CANDIDATE), code("%%time\n!ls\ny = wrong\nz = %time f()")))
    _, out, _ = run("nb.ipynb")
    assert out == (
        "CTX211 [*] `wrong` is found\n"
        " --> nb.ipynb:cell 2:3:5\n"
        "  |\n"
        "2 | !ls\n"
        "3 | y = wrong\n"
        "  |     ^^^^^\n"
        "4 | z = %time f()\n"
        "  |\n"
        "help: Write `right`\n"
        " ::: cell 2\n"
        "  |\n"
        "2 | !ls\n"
        "  - y = wrong\n"
        "3 + y = right\n"
        "4 | z = %time f()\n"
        "  |\n"
        "\n"
        "Found 1 error.\n"
        "[*] 1 fixable with `--fix`.\n"
    )


@pytest.mark.usefixtures("words")
def test_grouped_aligns_the_places(run: Run) -> None:
    write(notebook(code(CANDIDATE), code("x = 1\n" * 9 + "wrong"), code("xxxxxxxx = plain")))
    _, out, _ = run("--output-format", "grouped", "--quiet", "nb.ipynb")
    assert out == ("nb.ipynb:\n  cell 2:10:1  CTX211 [*] `wrong` is found\n   cell 3:1:12 CTX301 `plain` is found\n\n")


@pytest.mark.usefixtures("words")
def test_json_counts_everything_in_cells(run: Run) -> None:
    write(THREE)
    _, out, _ = run("--output-format", "json", "nb.ipynb")
    first, second, third = json.loads(out)
    assert [each["cell"] for each in (first, second, third)] == [3, 5, 5]
    assert first["location"] == {"row": 2, "column": 5}
    assert first["end_location"] == {"row": 2, "column": 10}
    assert first["noqa_row"] == 2
    assert first["fix"]["edits"] == [
        {"cell": 3, "content": "right", "location": {"row": 2, "column": 5}, "end_location": {"row": 2, "column": 10}}
    ]
    assert third["noqa_row"] == 2


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("output_format", ["github", "gitlab", "azure", "pylint", "rdjson", "sarif", "junit"])
def test_programs_are_sent_to_the_start_of_the_file_and_told_the_cell(run: Run, output_format: str) -> None:
    write(THREE)
    _, out, _ = run("--select", "CTX301", "--output-format", output_format, "nb.ipynb")
    place = "cell 5, line 1, col 1" if output_format == "junit" else "cell 5:1:1"
    assert out.count(place) >= 1
    if output_format == "sarif":
        (result,) = json.loads(out)["runs"][0]["results"]
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert _text_at(region) == "plain", "where the code stands in the JSON"
        assert location["physicalLocation"]["region"]["snippet"]["text"] == "plain"
        assert location["logicalLocations"] == [{"name": "cell 5:1:1", "fullyQualifiedName": "nb.ipynb:cell 5:1:1"}]
        assert "fixes" not in result
    if output_format == "github":
        assert ",line=1,col=1,endLine=1,endColumn=1::nb.ipynb:cell 5:1:1: CTX301" in out


def _text_at(region: dict[str, Any]) -> str:
    lines = Path("nb.ipynb").read_text(encoding="utf-8").split("\n")
    assert region["startLine"] == region["endLine"]
    line: str = lines[region["startLine"] - 1]
    return line[region["startColumn"] - 1 : region["endColumn"] - 1]


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sarif_says_where_the_code_stands_in_the_json(run: Run, layout: str) -> None:
    text = CANDIDATE + "\ns = '\U0001f600é\"\\\\'; plain\nwrong = plain"
    write(notebook(code("x = 1"), code(text)), layout=layout)
    for fixes in ([], ["--fix"]):
        out = run("--select", "CTX301", *fixes, "--output-format", "sarif", "nb.ipynb")[1]
        results = json.loads(out)["runs"][0]["results"]
        regions = [each["locations"][0]["physicalLocation"]["region"] for each in results]
        assert [_text_at(each) for each in regions] == ["plain", "plain"]


def test_cells_are_one_module_in_order(run: Run) -> None:
    write(
        notebook(
            code("import torch\nfrom torch.autograd import Function as F"),
            text("## A function"),
            code("class Scale(F):\n    @staticmethod\n    def forward(ctx, x, scale):\n        return x * scale\n"),
            code(
                "class Scale(F):\n    @staticmethod\n    def forward(ctx, x, scale):\n        ctx.scale = scale\n"
                "        return x * scale\n\n    @staticmethod\n    def backward(ctx, grad_output):\n"
                "        return grad_output * ctx.scale"
            ),
            code("y = Scale.apply(torch.ones(2), 2.0, 3)"),
        )
    )
    _, out, _ = run("--output-format", "concise", "--quiet", "nb.ipynb")
    assert [line.split("`")[0] for line in out.splitlines()] == [
        "nb.ipynb:cell 4:9:9: CTX203 [*] ",
        "nb.ipynb:cell 5:1:5: CTX701 ",
    ]


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nwrong",
        "!pip install 'it\nwrong",
        "x = !ls 'a\nwrong",
        "x = %time f(\nwrong",
        "x: int = %time f(\nwrong",
        "d[k], e = !ls (\nwrong",
        "f?\nwrong",
        "?f\nwrong",
        "torch.*ones*??\nwrong",
        "%%time\nwrong",
        "\n%%capture out\nwrong",
        "%%timeit -n 3 x = (\nwrong",
        "!ls \\\n(\nwrong",
        "if x:\n    %time f(\n    !ls )\nwrong",
        "await f()\nwrong",
        "f();\nwrong",
        "print('a=%s' % x)\nwrong",
        "f(\n  x\n  % wrong)",
        "x = '''\n%time\nwrong?\n'''",
        "if x: print('%s=%s' % x, wrong)",
        "x != y\nx %= wrong",
        "x = 'don\\'t?' # !what?\nwrong",
    ],
)
def test_what_is_ipythons_is_passed_over(run: Run, cell: str) -> None:
    write(notebook(code(CANDIDATE), code(cell)))
    _, out, _ = run("--output-format", "concise", "--quiet", "nb.ipynb")
    before = cell.partition("wrong")[0].split("\n")
    assert out == f"nb.ipynb:cell 2:{len(before)}:{len(before[-1]) + 1}: CTX211 [*] `wrong` is found\n"


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("cell", ["%%bash\nwrong", "%%writefile a.py\nwrong (", "  wrong = 1", "%%html\n<b>wrong"])
def test_cells_that_are_not_pythons_are_left_out(run: Run, cell: str) -> None:
    write(notebook(code(CANDIDATE), code(cell), code("wrong", vscode={"languageId": "sql"}), code("plain")))
    _, out, _ = run("--output-format", "concise", "--quiet", "nb.ipynb")
    assert out == "nb.ipynb:cell 4:1:1: CTX301 `plain` is found\n"


def test_the_value_of_a_magic_is_unknown(run: Run) -> None:
    write(
        notebook(
            code(
                "import torch\nclass Scale(torch.autograd.Function):\n    @staticmethod\n"
                "    def forward(ctx, x, scale):\n        return x * scale\n    @staticmethod\n"
                "    def backward(ctx, g):\n        gradients = %time f(g)\n        return gradients\n"
            )
        )
    )
    assert run("nb.ipynb") == (0, passed(1, 1), "")


@pytest.mark.parametrize(
    ("cell", "codes"),
    [
        ("%matplotlib inline", ["CTX223"]),
        ("%time print(1)", ["CTX223"]),
        ("%run common.ipynb", []),
        ("%store -r", []),
        ("%%capture factor\nprint(1)", []),
    ],
)
def test_names_that_magics_bind(run: Run, cell: str, codes: list[str]) -> None:
    function = (
        "import torch\nclass Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x * factor\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
    )
    write(notebook(code(cell), code(function)))
    _, out, _ = run("--output-format", "concise", "--quiet", "nb.ipynb")
    assert re.findall(r"CTX\d+", out) == codes


@pytest.mark.usefixtures("words")
def test_what_a_cell_leaves_open_ends_with_it(run: Run) -> None:
    write(
        notebook(
            code(CANDIDATE), code("f(wrong"), code("x = '''wrong"), code("y = 1  # noqa\nplain  # noqa"), code("wrong)")
        )
    )
    _, out, _ = run("--output-format", "concise", "--quiet", "nb.ipynb")
    found = [line.split(" CTX")[1][:3] + line.split(":")[1] for line in out.splitlines()]
    assert sorted(found) == ["211cell 2", "211cell 3", "211cell 5", "901cell 2", "901cell 3", "901cell 5"]


_KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(p, q):
    tl.store({to}, 0)
"""
_LAUNCH = """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        y, = ctx.saved_tensors
        dx = grad * 2
        kernel[(1,)](dx, y)
        return dx, None
"""
_HELPER = """
def kernel(p, q):
    {to}.zero_()
"""


@pytest.mark.parametrize(("defined", "call"), [(_KERNEL, "kernel[(1,)]"), ("import torch\n" + _HELPER, "kernel")])
def test_a_name_means_what_is_in_force_where_its_cell_runs(run: Run, defined: str, call: str) -> None:
    harmless, writing = defined.format(to="p"), defined.format(to="q")
    launch = _LAUNCH.replace("kernel[(1,)]", call)
    for cells, found in {
        (harmless + launch, writing): [],  # the cell that writes to `y` runs later, or not
        (writing + launch, harmless): [],
        (harmless, writing + launch): ["cell 2"],
        (harmless, writing, launch): ["cell 3"],
        (writing + launch, writing): ["cell 1"],
        (writing + launch,): ["cell 1"],
    }.items():
        write(notebook(*map(code, cells)))
        _, out, _ = run("--output-format", "concise", "--select", "CTX313", "nb.ipynb")
        assert re.findall(r"cell \d", out) == found, (cells, out)


def test_messages_name_lines_with_their_cells(run: Run) -> None:
    write(
        notebook(
            text("intro"),
            code("import torch"),
            code(
                "class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y):\n"
                "        ctx.save_for_backward(x)\n        ctx.save_for_backward(x)\n        return x * y\n\n"
                "    @staticmethod\n    def backward(ctx, g):\n        return g * 2, g * 3\n"
            ),
            code("\nScale.apply(torch.ones(2), 2.0)"),
        )
    )
    _, out, _ = run("--select", "CTX204,CTX304", "--output-format", "concise", "--quiet", "nb.ipynb")
    assert "replaces the one on line 4 of cell 3;" in out
    assert "(line 2 of cell 4 passes a number)" in out


def test_syntax_errors_name_lines_with_their_cells(run: Run) -> None:
    write(notebook(code("import torch\nfrom torch.autograd import Function"), code("x = 1\ny = 'open\n")))
    _exit_code, out, _err = run("check", "--isolated", "--output-format", "concise", "nb.ipynb")
    assert out.startswith(
        "nb.ipynb:cell 2:2:5: CTX901 Syntax error: unterminated string literal (detected at line 2 of cell 2)."
    )


def test_explain_says_that_a_notebook_is_in_another_language(run: Run) -> None:
    write(notebook(code(CANDIDATE), **R))
    code_, _, err = run("explain", "nb.ipynb")
    assert code_ != 0
    assert "nb.ipynb: this is a notebook in R" in err
    Path("a.py").write_text(
        "import torch\nclass Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return 2 * x\n    @staticmethod\n    def backward(ctx, g):\n        return 2 * g\n"
    )
    code_, out, _ = run("explain", ".")
    assert code_ == 0
    assert "Double" in out


# What is no notebook that can be read


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("autograd Function", "The file is not a notebook: it is not valid JSON (Expecting value on line 1, column 1)"),
        ('["autograd Function"]', "The file is not a notebook: its JSON is not an object"),
        ('{"autograd": "Function"}', "The file is not a notebook: its JSON has no nbformat"),
        (
            '{"autograd": "Function", "nbformat": 3, "worksheets": []}',
            "The notebook is in format 3; ctxlint reads format 4",
        ),
        ('{"autograd": "Function", "nbformat": 4}', "The file is not a notebook: its JSON has no list of cells"),
        (
            '{"autograd": "Function", "nbformat": 4, "cells": [3]}',
            "The file is not a notebook: its JSON has no list of",
        ),
        (
            '{"nbformat": 4, "cells": [{"cell_type": "code", "source": "autograd Function \\u0000"}]}',
            "Cell 1 of the notebook contains a character that is not allowed in Python source",
        ),
    ],
)
def test_what_cannot_be_read_is_said_and_the_rest_is_linted(run: Run, content: str, message: str) -> None:
    Path("bad.ipynb").write_text(content)
    Path("empty.ipynb").write_text("")
    write(THREE)
    code, out, _ = run("--output-format", "concise", "--select", "CTX301,CTX9", ".")
    assert code == 1
    assert f"bad.ipynb:1:1: CTX902 {message}" in out
    assert "nb.ipynb:cell 5:1:1: CTX301" in out
    assert "Found 2 errors" in out


@pytest.mark.usefixtures("words")
def test_notebooks_in_other_languages_are_skipped(run: Run) -> None:
    write(notebook(code(CANDIDATE), code("wrong"), **R))
    code_, out, err = run("--verbose", ".")
    assert (code_, out) == (0, "")
    assert err.startswith(NOTHING_FOUND)
    assert "nb.ipynb: skipped: a notebook in R\n" in err


# What is fixed


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", [code, lambda source: in_one_string(code(source))], ids=["list", "string"])
def test_a_fix_changes_nothing_but_the_line(run: Run, layout: str, form: Callable[[str], dict[str, Any]]) -> None:
    document = notebook(
        text("wrong\n"),
        form(CANDIDATE),
        form("x = 'é'\ny = wrong"),
        form("z = 1"),
        form("only = wrong"),
        form("wrong = '\U0001f600\u2028'\n"),
        form(""),
    )
    before = write(document, layout=layout)
    assert run("--fix", "--quiet", "nb.ipynb") == (0, "", "")
    after = read()
    assert after == before.replace(" = wrong", " = right").replace("wrong = '", "right = '")
    assert sources(after)[2:] == ["x = 'é'\ny = right", "z = 1", "only = right", "right = '\U0001f600\u2028'\n", ""]


@pytest.mark.usefixtures("words")
def test_unusual_escapes_outside_of_the_line_stay(run: Run) -> None:
    source = '["x = \\u0022\\/\\u00e9\\u0022\\n", "wrong\\u000a" ,\n "z = 1"]'
    document = LAYOUTS["ascii"](notebook(code(CANDIDATE), code("SOURCE"))).replace(
        '[\n        "SOURCE"\n      ]', source
    )
    assert source in document
    Path("nb.ipynb").write_text(document)
    assert run("--fix", "--quiet", "nb.ipynb") == (0, "", "")
    assert read() == document.replace('"wrong\\u000a"', '"right\\n"')


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lines_come_and_go(run: Run, layout: str) -> None:
    cell = (
        "class Scale(Function):\n    @staticmethod\n    def forward(ctx, x, scale):\n        y = torch.exp(x)\n"
        "        ctx.y = y\n        return y\n\n    @staticmethod\n    def backward(ctx, grad_output):\n"
        "        return grad_output * ctx.y"
    )
    document = notebook(
        code("import torch\nfrom torch.autograd import Function"), code(cell), code("# noqa: CTX203"), code("1")
    )
    write(document, layout=layout)
    run("--fix", "--unsafe-fixes", "--extend-select", "CTX910", "--quiet", "nb.ipynb")
    after = read()
    fixed = [
        "import torch\nfrom torch.autograd import Function",
        cell.replace("ctx.y = y", "ctx.save_for_backward(y)").replace(
            "        return grad_output * ctx.y",
            "        (y,) = ctx.saved_tensors\n        return grad_output * y, None",
        ),
        "",
        "1",
    ]
    assert sources(after) == fixed
    for each, source in zip(document["cells"], fixed):
        each["source"] = source.splitlines(keepends=True)
    assert after == LAYOUTS[layout](document)


def test_a_fix_may_change_several_cells(run: Run) -> None:
    write(
        notebook(
            code("%%time\nimport torch\nfrom torch.cuda.amp import custom_fwd"),
            text("between"),
            code(
                "class Scale(torch.autograd.Function):\n    @staticmethod\n    @custom_fwd\n    def forward(ctx, x):\n"
                "        return 2 * x\n\n    @staticmethod\n    def backward(ctx, grad_output):\n"
                "        return 2 * grad_output"
            ),
        )
    )
    (finding,) = ctxlint.lint_source(read(), "nb.ipynb", ctxlint.Settings(select=("CTX602",)))
    assert finding.cell == 3
    assert finding.fix is not None
    assert finding.fix.edits == ()
    _, out, _ = run("--select", "CTX602", "--unsafe-fixes", "--diff", "nb.ipynb")
    assert out == (
        "--- nb.ipynb:cell 1\n+++ nb.ipynb:cell 1\n@@ -1,3 +1,3 @@\n %%time\n import torch\n"
        "-from torch.cuda.amp import custom_fwd\n+from torch.amp import custom_fwd\n"
        "--- nb.ipynb:cell 3\n+++ nb.ipynb:cell 3\n@@ -1,6 +1,6 @@\n class Scale(torch.autograd.Function):\n"
        '     @staticmethod\n-    @custom_fwd\n+    @custom_fwd(device_type="cuda")\n'
        "     def forward(ctx, x):\n         return 2 * x\n \n"
    )
    run("--select", "CTX602", "--unsafe-fixes", "--fix", "nb.ipynb")
    assert [each.split("\n")[2] for each in sources(read()) if "\n" in each] == [
        "from torch.amp import custom_fwd",
        '    @custom_fwd(device_type="cuda")',
    ]


@pytest.mark.usefixtures("words")
def test_standard_input_is_a_notebook_and_comes_back_as_one(run: Run) -> None:
    written = LAYOUTS["jupyter"](THREE)
    code_, out, err = run("--fix", "--stdin-filename", "nb.ipynb", "-", stdin=written)
    assert (code_, out) == (1, written.replace("y = wrong", "y = right").replace("wrong = ", "right = "))
    assert "nb.ipynb:cell 5:1:1" in err
    clean = LAYOUTS["indented"](notebook(code("x = 1")))
    assert run("--fix", "--stdin-filename", "nb.ipynb", "-", stdin=clean) == (0, clean, passed(0, 1))
    _, out, _ = run("--diff", "--stdin-filename", "nb.ipynb", "-", stdin=written)
    assert out.startswith("--- nb.ipynb:cell 3\n+++ nb.ipynb:cell 3\n@@ -1,2 +1,2 @@\n x = 1\n-y = wrong\n+y = right\n")


@pytest.mark.usefixtures("words")
def test_a_byte_order_mark_stays(run: Run) -> None:
    Path("nb.ipynb").write_bytes(b"\xef\xbb\xbf" + LAYOUTS["ascii"](notebook(code(CANDIDATE), code("wrong"))).encode())
    assert run("--fix", "--quiet", "nb.ipynb") == (0, "", "")
    after = Path("nb.ipynb").read_bytes()
    assert after.startswith(b"\xef\xbb\xbf{")
    assert b'"right"' in after


# What is hidden


def test_comments_hide_findings_and_those_that_hide_nothing_are_found(run: Run) -> None:
    write(
        notebook(
            code("import torch"),
            code(
                "class Double(torch.autograd.Function):\n    def forward(ctx, x):  # noqa: CTX101\n"
                "        return 2 * x  # noqa: CTX203\n"
            ),
            code("# ctxlint: ignore[CTX301]\nx = 1"),
        )
    )
    _, out, _ = run("--output-format", "concise", "--extend-select", "CTX910", "--quiet", "nb.ipynb")
    assert [line.split(" `")[0] for line in out.splitlines()] == [
        "nb.ipynb:cell 2:3:23: CTX910 [*]",
        "nb.ipynb:cell 3:1:1: CTX910 [*]",
    ]


@pytest.mark.usefixtures("words")
def test_a_comment_that_is_a_mistake_is_warned_about_in_its_cell(run: Run) -> None:
    write(notebook(code(CANDIDATE), code("x = 1\nwrong  # noqa:")))
    _, _, err = run("nb.ipynb")
    assert err.startswith("warning: nb.ipynb:cell 2:2: `# noqa:` needs codes")


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_add_noqa(run: Run, layout: str) -> None:
    write(THREE, layout=layout)
    assert run("--add-noqa", ".") == (0, "", "Added 3 noqa comments.\n")
    assert run("-q", ".") == (0, "", "")
    assert sources(read())[2:] == [
        "x = 1\ny = wrong  # noqa: CTX211",
        "wrong",
        "plain  # noqa: CTX301\nwrong = 'é'  # noqa: CTX211\n",
    ]


@pytest.mark.usefixtures("words")
def test_a_baseline_knows_findings_when_cells_move(run: Run) -> None:
    write(THREE)
    run("--write-baseline", "--quiet", ".")
    assert run("-q", ".") == (0, "", "")
    cells = THREE["cells"]
    write(notebook(cells[1], code("1 + 1"), cells[4], cells[2], code("plain = 2")))
    _, out, _ = run("--output-format", "concise", "--quiet", ".")
    assert out == "nb.ipynb:cell 5:1:1: CTX301 `plain` is found\n"


@pytest.mark.usefixtures("words")
def test_settings_for_files_hold_for_notebooks(run: Run) -> None:
    write(THREE)
    Path("ctxlint.toml").write_text('per-file-ignores = { "*.ipynb" = ["CTX211"] }\n')
    _, out, _ = run("--output-format", "concise", "--quiet", ".")
    assert out == "nb.ipynb:cell 5:1:1: CTX301 `plain` is found\n"
    code, out, _ = run("--show-files", ".")
    assert (code, out) == (0, f"{Path('nb.ipynb').absolute()}\n")


# From Python


@pytest.mark.usefixtures("words")
def test_the_api_counts_in_cells() -> None:
    written = LAYOUTS["jupyter"](THREE)
    findings = ctxlint.lint_source(written, "nb.ipynb")
    assert [(each.cell, *each.span.start, each.code) for each in findings] == [
        (3, 2, 5, "CTX211"),
        (5, 1, 1, "CTX301"),
        (5, 2, 1, "CTX211"),
    ]
    assert findings[0].fix is not None
    assert findings[0].fix.edits == (ctxlint.Edit(10, 15, "right"),)
    Path("nb.ipynb").write_text(written, encoding="utf-8")
    assert ctxlint.lint_paths(["nb.ipynb"]) == findings
    fixed = ctxlint.fix_source(written, "nb.ipynb")
    assert fixed.text == written.replace("y = wrong", "y = right").replace("wrong = ", "right = ")
    assert [(each.cell, each.code) for each in fixed.diagnostics] == [(5, "CTX301")]
    (broken,) = ctxlint.lint_source("autograd Function", "nb.ipynb")
    assert (broken.code, broken.cell) == ("CTX902", None)
    assert ctxlint.lint_source(LAYOUTS["ascii"](notebook(code(CANDIDATE + "wrong"), **R)), "nb.ipynb") == []
