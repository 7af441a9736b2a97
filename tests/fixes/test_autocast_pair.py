"""CTX106's fix adds the missing decorator: imports, spellings and layouts, and where there is no fix."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

CODE = "CTX106"
NEW = '(device_type="cuda")'


def fn(imports: str, fwd: str = "", bwd: str = "", setup: str | None = None) -> str:
    """A Function with these decorators, each a whole line or none."""
    methods = [("forward", fwd, "ctx, x" if setup is None else "x", "x * 2"), ("backward", bwd, "ctx, g", "g * 2")]
    if setup is not None:
        methods.insert(1, ("setup_context", setup, "ctx, inputs, output", "None"))
    body = "\n".join(
        f"    @staticmethod\n{f'    {decorator}{chr(10)}' if decorator else ''}"
        f"    def {name}({params}):\n        return {value}\n"
        for name, decorator, params, value in methods
    )
    return f"{imports}\n\nimport torch\n\n\nclass Fn(torch.autograd.Function):\n{body}"


@pytest.mark.parametrize(
    ("before", "after", "spelled", "decorator"),
    [
        (
            "from torch.amp import custom_bwd",
            "from torch.amp import custom_bwd, custom_fwd",
            "custom_bwd",
            "custom_fwd",
        ),
        (
            "from torch.amp import (\n    custom_bwd,  # backward\n    GradScaler,\n)",
            "from torch.amp import (\n    custom_bwd,  # backward\n    custom_fwd,\n    GradScaler,\n)",
            "custom_bwd",
            "custom_fwd",
        ),
        (
            "from torch.amp import (custom_bwd as bwd)  # amp",
            "from torch.amp import (custom_bwd as bwd, custom_fwd)  # amp",
            "bwd",
            "custom_fwd",
        ),
        (
            "from torch.amp import custom_fwd as fwd, custom_bwd as bwd",
            "from torch.amp import custom_fwd as fwd, custom_bwd as bwd",
            "bwd",
            "fwd",
        ),
        ("import torch.amp", "import torch.amp", "torch.amp.custom_bwd", "torch.amp.custom_fwd"),
        ("import torch as t", "import torch as t", "t.amp.custom_bwd", "t.amp.custom_fwd"),
        ("from torch import amp", "from torch import amp", "amp.custom_bwd", "amp.custom_fwd"),
        (
            "x = 'é'; from torch.amp import custom_bwd; y = 1",
            "x = 'é'; from torch.amp import custom_bwd; y = 1",
            "custom_bwd",
            "",
        ),
    ],
)
def test_imports(before: str, after: str, spelled: str, decorator: str) -> None:
    text = fn(before, bwd=f"@{spelled}{NEW}")
    if not decorator:
        assert fixed_by(CODE, text, unsafe=True) == text
        return
    expected = fn(after, f"@{decorator}{NEW}", f"@{spelled}{NEW}")
    assert_fixed(CODE, text, expected, unsafe=True)
    assert fixed_by(CODE, text) == text
    assert_fixed(CODE, text.replace("\n", "\r\n"), expected.replace("\n", "\r\n"), unsafe=True)
    assert_fixed(CODE, text.replace("    ", "\t"), expected.replace("    ", "\t"), unsafe=True)


def test_two_classes_share_one_import() -> None:
    one = fn("from torch.amp import custom_fwd", f"@custom_fwd{NEW}")
    two = fn("from torch.amp import custom_bwd, custom_fwd", f"@custom_fwd{NEW}", f"@custom_bwd{NEW}")
    text, expected = (
        each + "\n\n" + each[each.index("class Fn") :].replace("class Fn", "class Second") for each in (one, two)
    )
    assert_fixed(CODE, text, expected, unsafe=True)


def test_the_old_ones_and_their_arguments() -> None:
    old = "from torch.cuda.amp import custom_bwd, custom_fwd"
    fwd = "@custom_fwd(cast_inputs=torch.float16)"
    assert_fixed(CODE, fn(old, fwd), fn(old, fwd, "@custom_bwd"), unsafe=True)
    new = "from torch.amp import custom_bwd, custom_fwd"
    fwd = "@custom_fwd(cast_inputs=torch.float16, device_type=torch.device(0).type)"
    assert_fixed(CODE, fn(new, fwd), fn(new, fwd, "@custom_bwd(device_type=torch.device(0).type)"), unsafe=True)


def test_moving_keeps_the_comments() -> None:
    imports, setup = "from torch.amp import custom_bwd, custom_fwd", "# the ctx\n    @torch.no_grad()"
    fwd = f"# mixed precision\n    @custom_fwd{NEW}  # cuda"
    text = fn(imports, fwd, f"@custom_bwd{NEW}", setup)
    expected = fn(imports, "", f"@custom_bwd{NEW}", f"{fwd}\n    {setup}")
    assert_fixed(CODE, text, expected, unsafe=True)
    assert_fixed(CODE, text.replace("\n", "\r\n"), expected.replace("\n", "\r\n"), unsafe=True)


@pytest.mark.parametrize(
    "text",
    [
        fn("from torch.amp import custom_bwd\ncustom_fwd = None", bwd=f"@custom_bwd{NEW}"),
        fn("from torch.amp import custom_bwd\nfrom kernels import custom_fwd", bwd=f"@custom_bwd{NEW}"),
        fn("from torch.amp import custom_bwd\nfrom kernels import *", bwd=f"@custom_bwd{NEW}"),
        fn("from kernels import custom_bwd", bwd=f"@custom_bwd{NEW}"),
        fn("if True:\n    from torch.amp import custom_bwd", bwd=f"@custom_bwd{NEW}"),
        fn("from torch.amp import custom_bwd", bwd=f"@custom_bwd{NEW}").replace("@staticmethod\n    def", "def"),
        fn("from torch.amp import custom_fwd", '@custom_fwd(**{"device_type": "cuda"})'),
        fn(
            "from torch.amp import custom_bwd, custom_fwd",
            '@custom_fwd(device_type="cuda", cast_inputs=torch.float16)',
            f"@custom_bwd{NEW}",
            "@torch.no_grad()",
        ),
        fn("from torch.amp import custom_bwd, custom_fwd", f"@custom_fwd{NEW}", "", "@torch.no_grad()"),
    ],
)
def test_no_fix(text: str) -> None:
    """The name has another meaning, the import is not plain, the method is not static, arguments are unknown, a cast."""
    assert fixed_by(CODE, text, unsafe=True) == text
