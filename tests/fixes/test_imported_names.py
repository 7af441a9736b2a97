"""A fixing run removes the imports of legacy names that it has made unused, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main
from tests.fixes.fixing import fixed_by

if TYPE_CHECKING:
    from pathlib import Path

BODY = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {}x * 2{}

    @staticmethod
    def backward(ctx, grad_output):
        return {}grad_output * 2{}
"""
OLD, NEW = BODY.format("Variable(", ")", "Variable(", ")"), BODY.format("", "", "", "")


def imports_after(imports: str, more: str = "") -> str:
    """What becomes of the lines above a class whose uses of ``Variable`` are fixed."""
    fixed = fixed_by("CTX603", imports + OLD + more, unsafe=True)
    head, found, rest = fixed.partition(NEW)
    assert found
    assert rest == more
    return head


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\nfrom torch.autograd import Variable\n\n", "import torch\n\n"),
        ("import torch\n\nfrom torch.autograd import Variable\n\n", "import torch\n\n"),
        ("from torch.autograd import Variable\n\nimport torch\n\n", "import torch\n\n"),
        (
            "import torch\nfrom torch.autograd import Function, Variable\n\n",
            "import torch\nfrom torch.autograd import Function\n\n",
        ),
        (
            "import torch\nfrom torch.autograd import Variable, grad\n\n",
            "import torch\nfrom torch.autograd import grad\n\n",
        ),
        (
            "import torch\nfrom torch.autograd import (\n    Function,\n    Variable,\n    grad,\n)\n\n",
            "import torch\nfrom torch.autograd import (\n    Function,\n    grad,\n)\n\n",
        ),
        (
            "import torch\nfrom torch.autograd import (\n    Function,\n    Variable,\n)\n\n",
            "import torch\nfrom torch.autograd import (\n    Function,\n)\n\n",
        ),
        ("import torch\nfrom torch.autograd import (\n    Variable,\n)\n\n", "import torch\n\n"),
    ],
)
def test_the_import_goes(before: str, after: str) -> None:
    assert imports_after(before) == after


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("import torch\nfrom torch.autograd import Variable\n\n", "\n\nprint(Variable)\n"),
        ("import torch\nfrom torch.autograd import Variable\n\n", '\n\n__all__ = ["Double", "Variable"]\n'),
        ("import torch\nfrom torch.autograd import Variable\n\n", '\n\ndef f(x: "list[Variable]"): ...\n'),
        ("import torch\nfrom torch.autograd import Variable\n\n", "\n\nx = []  # type: list[Variable]\n"),
        ("import torch\nfrom torch.autograd import Variable  # noqa: F401\n\n", ""),
        ("import torch\nfrom torch.autograd import (\n    Variable,  # for others\n)\n\n", ""),
        ("import torch\nfrom torch.autograd import Variable as Variable\n\n", ""),
        ("import torch; from torch.autograd import Variable\n\n", ""),
        ("import torch\n\nif True:\n    from torch.autograd import Variable\n\n", ""),
    ],
)
def test_the_import_stays(before: str, more: str) -> None:
    assert imports_after(before, more) == before


def test_an_import_that_was_unused_before_stays() -> None:
    before = "import torch\nfrom torch.autograd import Variable, gradcheck\n\n"
    assert imports_after(before) == "import torch\nfrom torch.autograd import gradcheck\n\n"


@pytest.mark.parametrize("name", ["ops.py", "__init__.py"])
@pytest.mark.parametrize(
    ("other", "takes"),
    [
        ("", False),
        ("from ops import Variable\n", True),
        ("from ops import *\n\nprint(Variable)\n", True),
        ("import ops\n\nprint(ops.Variable)\n", True),
        ("import torch\nfrom ops import Double\n\nprint(Double, torch.autograd.Variable)\n", False),
        ("from ops import Double\nfrom torch import autograd as a\n\nprint(Double, a.Variable)\n", False),
        ("from ops import Double\nfrom torch.autograd import Variable\n\nprint(Double, Variable)\n", False),
    ],
)
def test_what_other_files_may_import_stays(
    name: str, other: str, takes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / name
    file.write_text(f"import torch\nfrom torch.autograd import Variable\n\n{OLD}")
    (tmp_path / "other.py").write_text(other)
    assert main(["--select", "CTX603", "--fix", "--unsafe-fixes", "--quiet", "."]) == 0
    assert ("import Variable" in file.read_text()) == (name == "__init__.py" or takes)


def test_the_module_of_a_deprecated_decorator() -> None:
    before = (
        "import torch\nfrom torch.cuda import amp\n\n\nclass Double(torch.autograd.Function):\n    @staticmethod\n"
        "    @amp.custom_fwd\n    def forward(ctx, x):\n        return x * 2\n\n    @staticmethod\n"
        "    @amp.custom_bwd\n    def backward(ctx, grad_output):\n        return grad_output * 2\n"
    )
    after = before.replace("from torch.cuda import amp\n", "").replace(
        "amp.custom_fwd", 'torch.amp.custom_fwd(device_type="cuda")'
    )
    after = after.replace("@amp.custom_bwd", '@torch.amp.custom_bwd(device_type="cuda")')
    assert fixed_by("CTX602", before, options='target-torch = ">=2.4"') == after
