"""CTX602's fix: the decorators of a file change together with their shared import."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_CLASS = """

class F(torch.autograd.Function):
    @staticmethod
    @{fwd}
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @{bwd}  # the other way
    def backward(ctx, g):
        return g * 2
"""


def _file(imports: str, fwd: str, bwd: str) -> str:
    return f"import torch\n{imports}{_CLASS.format(fwd=fwd, bwd=bwd)}"


_NEW = ('custom_fwd(device_type="cuda")', 'custom_bwd(device_type="cuda")')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch.cuda.amp import custom_fwd, custom_bwd\n", "from torch.amp import custom_fwd, custom_bwd\n"),
        (
            "from torch.cuda.amp import (  # both\n    custom_bwd,\n    custom_fwd,  # forward\n)\n",
            "from torch.amp import (  # both\n    custom_bwd,\n    custom_fwd,  # forward\n)\n",
        ),
        (
            "from torch.cuda.amp import custom_bwd, autocast, custom_fwd\n",
            "from torch.amp import custom_bwd, custom_fwd\nfrom torch.cuda.amp import autocast\n",
        ),
        (
            "from torch.cuda.amp import (\n    autocast,\n    custom_bwd,\n    custom_fwd,\n)\n",
            "from torch.amp import custom_bwd, custom_fwd\nfrom torch.cuda.amp import (\n    autocast,\n)\n",
        ),
        (
            "from torch.cuda.amp import (\n    custom_bwd,\n    custom_fwd,\n    autocast,  # why\n)\n",
            "from torch.amp import custom_bwd, custom_fwd\nfrom torch.cuda.amp import (\n    autocast,  # why\n)\n",
        ),
    ],
)
def test_the_import_changes_with_the_decorators(before: str, after: str) -> None:
    for ending in ("\n", "\r\n"):
        text, expected = (
            _file(before, "custom_fwd", "custom_bwd()").replace("\n", ending),
            _file(after, *_NEW).replace("\n", ending),
        )
        assert fixed_by("CTX602", text, options='target-torch = "2.3"') == text
        assert fixed_by("CTX602", text) == text
        assert fixed_by("CTX602", text, options='target-torch = "2.4"') == expected
        assert_fixed("CTX602", text, expected, unsafe=True)


@pytest.mark.parametrize(
    "imports",
    [
        "from torch.cuda.amp import (\n    autocast,\n    custom_bwd,  # b\n    custom_fwd,  # f\n)\n",
        "from torch.cuda.amp import custom_bwd, custom_fwd\n\nboth = custom_bwd, custom_fwd\n",
        "import os; from torch.cuda.amp import custom_bwd, custom_fwd\n",
    ],
)
def test_an_import_that_must_stay(imports: str) -> None:
    text = _file(imports, "custom_fwd", "custom_bwd")
    expected = _file(imports, *(f"torch.amp.{each}" for each in _NEW))
    assert_fixed("CTX602", text, expected, unsafe=True)


def test_a_whole_file_changes_at_once() -> None:
    text = _file("from torch.cuda.amp import custom_bwd, custom_fwd\n", "custom_fwd", "custom_bwd")
    text += _CLASS.format(fwd="custom_fwd", bwd="custom_bwd").replace("F(", "G(")
    assert "cuda.amp" not in fixed_by("CTX602", text, unsafe=True)


def test_without_a_name_for_torch_nothing_changes() -> None:
    text = _file("from torch.cuda import amp\n", "amp.custom_fwd", "amp.custom_bwd")
    text = text.replace("import torch\n", "from torch import autograd\n", 1).replace("torch.autograd.", "autograd.")
    assert fixed_by("CTX602", text, unsafe=True) == text


def test_a_decorator_that_is_given_the_function_is_left_alone() -> None:
    text = _file("from torch.cuda.amp import custom_bwd, custom_fwd\n", "custom_fwd(None)", "custom_bwd")
    fixed = fixed_by("CTX602", text, unsafe=True)
    assert "@custom_fwd(None)" in fixed
