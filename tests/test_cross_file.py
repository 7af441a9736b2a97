"""Cross-file facts about a Function: callers, aliases, subclasses and changes to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from itertools import permutations
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.cache import stamp
from ctxlint.cli import main
from ctxlint.commands.add_noqa import add_noqa
from ctxlint.config.configuration import Configuration
from ctxlint.config.settings import ALL, Settings
from ctxlint.model.index import project
from ctxlint.model.index.module_unit import Unit, read_unit
from ctxlint.model.reader import Reader
from ctxlint.run import workers
from ctxlint.run.in_project import Surroundings, forget_other_files
from ctxlint.run.lint_file import check_source, lint_file, lint_text
from ctxlint.run.pipeline import lint_paths
from ctxlint.source.reading import OPEN
from ctxlint.source.scanner import Transforming
from tests.subset import together

if TYPE_CHECKING:
    from ctxlint.result import FileResult
    from ctxlint.source.source import Source

OPS = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x + factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output * 1
"""

PASSES_A_NUMBER = "CTX204 `backward` of `Scale` returns a gradient for `factor`, which is not a tensor"
TOO_MANY = "passes 3 arguments but `forward` takes 2; torch raises TypeError at `apply`. Pass only `x` and `factor`."


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")


def found(settings: Settings | None = None) -> list[str]:
    """What a run over the folder finds, one line for each finding."""
    whole = together(["."], settings)
    return [f"{path}:{line}: {code} {message}" for path, line, _column, code, message in sorted(whole)]


def matches(lines: list[str], *patterns: str) -> bool:
    """Whether each line begins with its path and has its text."""
    starts_and_texts = [pattern.split(": ", 1) for pattern in patterns]
    return len(lines) == len(patterns) and all(
        line.startswith(start) and text in line for line, (start, text) in zip(lines, starts_and_texts)
    )


# ---------------------------------------------------------------------------------------------------------------------
# Who calls


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from pkg.ops import Scale", "Scale.apply"),
        ("from pkg.ops import Scale as S", "S.apply"),
        ("from pkg import Scale", "Scale.apply"),
        ("from pkg import *", "Scale.apply"),
        ("from pkg import scale", "scale"),
        ("from pkg.ops import scale as s", "s"),
        ("import pkg", "pkg.Scale.apply"),
        ("import pkg", "pkg.scale"),
        ("import pkg.ops", "pkg.ops.Scale.apply"),
        ("import pkg.ops as m", "m.Scale.apply"),
        ("import pkg.ops as m", "m.scale"),
        ("from pkg import ops", "ops.Scale.apply"),
        ("from pkg import ops", "ops.Kernels.scale"),
        ("from pkg.ops import Kernels as K", "K.scale"),
        ("from pkg.ops import Scale\n\nfast = Scale.apply", "fast"),
        ("from pkg.ops import (  # the kernels\n    Scale,\n    scale as slow,\n)", "slow"),
        ("from pkg.\\\n    ops import Scale", "Scale.apply"),
        ("try:\n    from pkg.ops import Scale\nexcept ImportError:\n    Scale = None", "Scale.apply"),
    ],
)
def test_a_call_in_a_file_that_does_not_look_like_it(imports: str, call: str) -> None:
    """The calls show that `factor` is a number; a call with three arguments is reported at its place."""
    write(
        {
            "pkg/__init__.py": "from .ops import *\nfrom .ops import Scale, scale\n",
            "pkg/ops.py": OPS + "\n\nscale = Scale.apply\n\n\nclass Kernels:\n    scale = Scale.apply\n",
            "train.py": f"{imports}\n\n\ndef train(x):\n    {call}(x, 2)\n    return {call}(x, 2, 3)\n",
        }
    )
    line = 1 + Path("train.py").read_text(encoding="utf-8").splitlines().index(f"    {call}(x, 2)")
    assert matches(
        found(),
        f"pkg/ops.py:12: {PASSES_A_NUMBER} (line {line} of `../train.py` passes a number)",
        f"train.py:{line + 1}: CTX701",
    )


LENDING = """
import torch
from kernels import scale


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, out):
        scale(x, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        return 2 * grad_out, None


class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.out = torch.empty(size)

    def forward(self, x):
        return Scale.apply(x, self.out)
"""


@pytest.mark.parametrize(
    ("other", "reported"),
    [
        ("def run(x):\n    layer = Layer(3)\n    return layer(x), layer(2 * x)\n", True),
        ("def run(x):\n    layer = Layer(3)\n    return layer(x)\n", False),
        ("class Other(Layer):\n    pass\n", False),
        ("def test_shape():\n    layer = Layer(3)\n    assert layer(torch.ones(3)).shape == (3,)\n", True),
        ("def run(x):\n    layer = Layer(3)\n    return layer(x)\n\n\nlayers = [Layer(3), Layer(4)]\n", True),
    ],
)
def test_memory_that_a_module_lends(other: str, reported: bool) -> None:
    """Another file may make the module for one call, or give a subclass other memory."""
    write({"layers.py": LENDING, "other.py": f"from layers import Layer\n\n\n{other}"})
    assert any("CTX315" in each for each in found()) is reported


@pytest.mark.parametrize(
    ("otherwise", "reported"),
    [
        ("from ops import Scale", True),
        ("from .pkg.ops import Scale", True),
        ("from other import Scale", False),
        ("import other as Scale", False),
        ("class Scale:\n        apply = print", False),
    ],
)
def test_a_name_that_may_mean_a_substitute(otherwise: str, reported: bool) -> None:
    """An `except` clause imports another class of the name, whose calls may have three arguments."""
    write(
        {
            "pkg/__init__.py": "",
            "pkg/ops.py": OPS,
            "other.py": OPS.replace("x, factor", "x, factor, shift"),
            "train.py": f"try:\n    from pkg.ops import Scale\nexcept ImportError:\n    {otherwise}\n\n\n"
            "def train(x):\n    return Scale.apply(x, 2, 3)\n",
        }
    )
    assert any("CTX701" in each for each in found()) is reported


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from .ops import Scale", "Scale.apply"),
        ("from . import ops", "ops.Scale.apply"),
        ("from . import scale", "scale"),
        ("from ..pkg.ops import Scale", "Scale.apply"),
    ],
)
def test_relative_imports(imports: str, call: str) -> None:
    write(
        {
            "top/__init__.py": "",
            "top/pkg/__init__.py": "from .ops import Scale\n\nscale = Scale.apply\n",
            "top/pkg/ops.py": OPS,
            "top/pkg/layers.py": f"{imports}\n\n\ndef layer(x):\n    {call}(x, 1)\n    return {call}(x, 1, 2)\n",
        }
    )
    assert matches(found(), f"top/pkg/layers.py:6: {TOO_MANY}", f"top/pkg/ops.py:12: {PASSES_A_NUMBER}")


def test_an_attribute_that_another_file_sets() -> None:
    write(
        {
            "ops.py": '"""Filled when it is loaded."""\n',
            "scale.py": OPS,
            "setup.py": "import ops\nfrom scale import Scale\n\nops.scale = Scale.apply\n",
            "train.py": "import ops\n\n\ndef train(x):\n    return ops.scale(x, 2, 3)\n",
            "test.py": "from ops import scale\n\n\ndef test(x):\n    return scale(x, 2)\n",
        }
    )
    assert matches(
        found(),
        f"scale.py:12: {PASSES_A_NUMBER} (line 5 of `test.py` passes a number)",
        f"train.py:5: `ops.scale` (`Scale.apply`) {TOO_MANY}",
    )


@pytest.mark.parametrize(
    ("other", "known"),
    [
        ("import torch\n\ntorch.linear = torch.nn.functional.linear\n", False),
        ("import torch\n\nsetattr(torch, name, function)\n", False),
        ("def test_it(mocker):\n    mocker.patch('torch.linear')\n", False),
        ("class Model:\n    def __init__(self, layer):\n        self.linear = layer\n", True),
        ("if parse(torch.__version__) > parse('2.20'):\n    from ops import Scale\n", False),
        ("if hasattr(torch, 'compile'):\n    from others import Scale\n", True),
    ],
)
def test_a_name_of_torch_that_another_file_sets(other: str, known: bool) -> None:
    write({"ops.py": OPS.replace("x + factor", "torch.linear(x, factor)"), "other.py": other})
    missing = Settings(select=("CTX604",))
    assert matches(found(missing), *["ops.py:8: CTX604 `torch.linear` in `forward` of `Scale` does not exist"][:known])


def test_what_follows_a_name_that_another_file_may_set() -> None:
    """No finding claims that the name is missing, nor that the code behind it is reached."""
    ops = OPS.replace(
        "return grad_output, grad_output * 1", "grads = torch.linear(grad_output)\n        return grads, grads, grads"
    )
    assert ops != OPS
    write({"ops.py": ops, "other.py": "import torch\n\nsetattr(torch, name, function)\n"})
    assert matches(
        found(Settings()),
        "ops.py:13: CTX202 `backward` of `Scale` returns 3 gradients but `forward` takes 2 inputs (`x`, `factor`); if `backward` gets that far, torch raises RuntimeError",
    )


AMP = """
import torch
from torch.cuda.amp import custom_bwd, custom_fwd


class Double(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @custom_bwd
    def backward(ctx, grad_output):
        return grad_output * 2
"""
BOTH = "import other\nfrom ops import Double\n"


@pytest.mark.parametrize(
    ("other", "known"),
    [
        ("import torch_npu\nfrom torch_npu.contrib import transfer_to_npu\n", False),
        ("try:\n    import torch_npu.contrib.transfer_to_npu\nexcept ImportError:\n    pass\n", False),
        ("def start():\n    import torchada\n", False),
        ("import torch_npu\n", True),
        ("from .torchada import nothing\n", True),
        ("import intel_extension_for_pytorch\n", True),
        ("# import torchada\n", True),
        ("import torch\n\ntorch.cuda = torch.npu\n", False),
        ("import torch\n\n\ndef patch():\n    torch.cuda.amp = torch.xpu.amp\n", False),
        ("def patch():\n    import torch\n\n    torch.cuda.amp.custom_fwd = plain\n", False),
        ("from torch.cuda import amp\n\namp.custom_fwd = plain\n", False),
        ("import sys\n\nsys.modules['torch.cuda'] = cuda\n", False),
        ("def patch(patches):\n    patches.register_patch('torch.cuda.amp.custom_fwd', plain)\n", False),
        ("import torch\n\nfor name in names:\n    setattr(torch.cuda.amp, name, plain)\n", False),
        ("import torch\n\nsetattr(torch.cuda, 'is_available', yes)\n", True),
        ("import torch\n\ntorch.cuda.is_available = yes\n", True),
        ("def configure(self, args):\n    args.cuda = self.amp = True\n", True),
        ("import torch\n\nprint('torch.cuda.amp.custom_fwd', hasattr(torch.amp, 'custom_fwd'))\n", True),
        ("def test_it(monkeypatch):\n    monkeypatch.setattr('torch.cuda', fake)\n", True),
    ],
)
def test_a_name_of_torch_that_another_file_replaces(other: str, known: bool) -> None:
    """What the decorators are cannot be known then: not whether they warn, nor what to write instead."""
    write({"ops.py": AMP, "other.py": other, "main.py": BOTH})
    expected = [f"ops.py:{line}: CTX602 `torch.cuda.amp.custom_{half}`" for line, half in ((8, "fwd"), (13, "bwd"))]
    fwd_only = "custom_fwd" in other and not known
    assert matches(found(), *(expected if known else expected[1:] if fwd_only else []))
    Path("other.py").unlink()
    write({"ops.py": other.replace("from . ", "from x ") + "\n\n" + AMP})
    assert [line.rpartition(": CTX")[2][:3] for line in found()] == ["602"] * (2 if known else 1 if fwd_only else 0)


PATCH = "import torch\n\ntorch.cuda = torch.npu\n"
LOADED = {
    "by nothing": {"patch.py": PATCH, "main.py": "import ops, tools\n", "tools.py": "patch = 1\n"},
    "by a script": {"patch.py": PATCH, "run.py": "import patch, model\n", "model.py": "import numpy\n"},
    "to install": {"setup.py": PATCH + "import ops\n"},
    "to document": {"docs/conf.py": PATCH + "from ops import Double\n"},
    "to test": {"tests/tools.py": PATCH + "import ops\n", "tests/main.py": "import tools\n"},
    "as a mention": {"patch.py": PATCH, "main.py": "import ops\n\n# do import patch\nprint('patch')\n"},
    "of a package": {"a/__init__.py": "from . import patch\n", "a/patch.py": PATCH, "b.py": "import a.patch, sys\n"},
}
LOADED_TOGETHER = {
    "it imports": {"patch.py": PATCH + "from ops import (\n    Double,\n)\n"},
    "it imports what imports": {
        "patch.py": PATCH + "import model\n",
        "model.py": "try: from ops import *\nexcept: 1\n",
    },
    "is imported": {"ops.py": "import patch\n" + AMP, "patch.py": PATCH},
    "is imported in a function": {"patch.py": PATCH, "main.py": "def f():\n    import ops\n    import patch as p\n"},
    "from one package": {
        "a/__init__.py": "",
        "a/patch.py": PATCH,
        "b.py": "import ops\nfrom c import d\n",
        "c/__init__.py": "",
        "c/d.py": "from a.patch import x\n",
    },
    "the package": {
        "a/__init__.py": PATCH,
        "a/b/__init__.py": "",
        "a/b/c.py": "",
        "d.py": "from a.b import c\nimport ops\n",
    },
    "in a package": {
        "ops.py": "",
        "pkg/ops.py": AMP,
        "pkg/__init__.py": "",
        "pkg/a/__init__.py": "",
        "pkg/a/b.py": PATCH,
    },
    "by a name": {"patch.py": PATCH, "main.py": "import importlib, ops\n\nimportlib.import_module('patch')\n"},
    "by any name": {"patch.py": PATCH, "main.py": "import ops\n\nfor name in names:\n    __import__(name)\n"},
    "by Python": {"sitecustomize.py": PATCH},
}


@pytest.mark.parametrize("way", [*LOADED, *LOADED_TOGETHER])
def test_a_file_replaces_a_name_of_torch_for_what_may_be_loaded_with_it(way: str) -> None:
    """A script that nothing imports, and that imports nothing of this, leaves torch as it is in other processes."""
    write({"ops.py": AMP, **LOADED.get(way, {}), **LOADED_TOGETHER.get(way, {})})
    assert [line.split()[1] for line in found()] == ["CTX602"] * (2 if way in LOADED else 0)


def test_a_replaced_decorator_keeps_what_the_other_half_reads() -> None:
    """`custom_bwd` of another module need not read the state that `custom_fwd` of torch keeps (CTX106)."""
    unpaired = AMP.replace("    @custom_fwd\n", "")
    write({"ops.py": unpaired, "other.py": "import torch\n", "main.py": BOTH})
    assert matches(found(), "ops.py:12: CTX106", "ops.py:12: CTX602")
    write({"other.py": "from torch_npu.contrib import transfer_to_npu\n"})
    assert not found()


@pytest.mark.parametrize("other", ["", "import torch\n\ntorch.amp.custom_fwd = plain\n"])
def test_a_decorator_that_needs_a_device_unless_another_file_replaces_it(other: str) -> None:
    write({"ops.py": AMP.replace("torch.cuda.amp", "torch.amp"), "other.py": other, "main.py": BOTH})
    expected = ["ops.py:8: CTX111 `@custom_fwd` on", "ops.py:13: CTX111 `@custom_bwd` on"]
    assert matches(found(), *(expected[1:] if other else expected))


TUNED = """
import torch
import triton
import triton.language as tl
from configs import CONFIGS


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + at % 8, tl.load(x + at, mask=at < n), mask=at < n)


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.zeros(8, device=x.device)
        add[(1,)](x, y, x.numel())
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad.sum()
"""


@pytest.mark.parametrize(
    ("other", "known"),
    [
        ("from configs import CONFIGS\n\nfor each in CONFIGS:\n    each.pre_hook = clear\n", False),
        ("from configs import CONFIGS as all_of_them\n\ndel all_of_them[1:]\n", False),
        ("import configs\n\nconfigs.CONFIGS.clear()\n", False),
        ("from configs import CONFIGS\n\nkernel = autotune(configs=CONFIGS)(kernel)\n", True),
    ],
)
def test_a_list_of_configurations_that_another_file_changes(other: str, known: bool) -> None:
    configs = "import triton\n\nCONFIGS = [triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})]\n"
    write({"configs.py": configs, "ops.py": TUNED, "other.py": other})
    assert matches(found(Settings(select=("CTX709",))), *["ops.py:19: CTX709"][:known])


def test_an_attribute_that_two_files_set_differently_is_unknown() -> None:
    write(
        {
            "ops.py": "",
            "scale.py": OPS,
            "fast.py": OPS.replace("Scale", "Fast"),
            "setup.py": "import ops\nfrom scale import Scale\n\nops.scale = Scale.apply\n",
            "quick.py": "import ops\nfrom fast import Fast\n\nops.scale = Fast.apply\n",
            "train.py": "import ops\n\n\ndef train(x):\n    return ops.scale(x, 2, 3)\n",
        }
    )
    assert found() == []


@pytest.mark.parametrize(
    "binding",
    [
        "if fast:\n    from ops import Scale\nelse:\n    from slow import Scale",
        "from ops import Scale\n\nScale = wrapped(Scale)",
        "from elsewhere import Scale",
        "from ops import Scale\n\n\ndef other(Scale):\n    return Scale.apply(1, 2, 3)\n\n\nScale = object()",
    ],
)
def test_a_name_that_may_mean_something_else_is_unknown(binding: str) -> None:
    write(
        {
            "ops.py": OPS,
            "slow.py": OPS.replace("x, factor", "x, factor, bias"),
            "train.py": f"{binding}\n\n\ndef train(x):\n    return Scale.apply(x, 2, 3)\n",
        }
    )
    assert [line for line in found() if "slow.py" not in line] == []


@pytest.mark.parametrize(
    ("init", "known"),
    [
        ("from .ops import *\nfrom .more import *\n", True),
        ("from .more import *\nfrom .ops import *\n", True),
        ("from .ops import *\nfrom torch import *\n", False),
        ("from .ops import *\nfrom .fast import *\n", False),
    ],
)
def test_several_star_imports(init: str, known: bool) -> None:
    """One module of the project has the name, and no other can."""
    write(
        {
            "pkg/__init__.py": init,
            "pkg/ops.py": OPS,
            "pkg/more.py": "from math import pi\n",
            "pkg/fast.py": "def Scale(x):\n    return x\n",
            "train.py": "from pkg import Scale\n\n\ndef train(x):\n    return Scale.apply(x, 2, 3)\n",
        }
    )
    assert any("CTX701" in line for line in found()) is known


def test_callers_that_contradict_each_other_say_nothing() -> None:
    call = "import torch\nfrom ops import Scale\n\n\ndef use(x):\n    return Scale.apply(x, {})\n"
    files = {"ops.py": OPS, "a.py": call.format("2"), "b.py": call.format("torch.ones(3)")}
    write(files)
    assert found() == []
    write({"b.py": call.format("x")})
    assert matches(found(), f"ops.py:12: {PASSES_A_NUMBER} (line 6 of `a.py` passes a number)")


@pytest.mark.parametrize(
    "other",
    ["from importlib import import_module", "from importlib.metadata import version", 'way = "from"; import os'],
)
def test_modules_whose_names_begin_with_import(other: str) -> None:
    """A file that only mentions a module is searched as bytes, which contain the word more than once."""
    call = "\n\n\ndef train(x):\n    Scale.apply(x, 1)\n    return Scale.apply(x, 1, 2)\n"
    write({"important.py": OPS, "train.py": f"{other}\nfrom important import Scale{call}", "other.py": f"{other}\n"})
    assert matches(found(), f"important.py:12: {PASSES_A_NUMBER}", f"train.py:7: {TOO_MANY}")


@pytest.mark.parametrize(
    ("call", "again"),
    [
        ("Scale.apply(self.weight, x)", False),
        ("Scale.apply(x.detach(), x)", False),
        ("Scale.apply(x, x).sum().backward()", False),
        ("Scale.apply(self.weight, 2)", True),
    ],
)
def test_a_file_is_analysed_again_only_for_facts_that_may_add_findings(
    call: str, *, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf, a detached tensor and a use of the result only qualify findings, and this Function has none."""
    read_again: list[str] = []
    original = Reader.read_again

    def noting(self: Reader, *arguments: Any) -> Any:
        read_again.append(self.unit.path)
        return original(self, *arguments)

    monkeypatch.setattr(Reader, "read_again", noting)
    layer = (
        f"from ops import Scale\n\n\nclass Layer:\n    def step(self, x):\n        x.requires_grad_()\n        {call}\n"
    )
    write({"ops.py": OPS, "layer.py": layer})
    found()
    assert bool(read_again) is again


def test_under_raises_a_call_says_nothing() -> None:
    write(
        {
            "ops.py": OPS,
            "test_ops.py": """
                import pytest
                from ops import Scale


                def test_numbers(x):
                    with pytest.raises(TypeError):
                        Scale.apply(x, 2, 3)
                    with pytest.raises(RuntimeError):
                        Scale.apply(x, 2)
            """,
        }
    )
    assert found() == []


def test_inputs_that_only_a_caller_passes() -> None:
    """An input with a default counts once a call in any file passes it."""
    text = OPS.replace("factor):", "factor, bias=0):")
    write({"ops.py": text, "train.py": "from ops import Scale\n\n\ndef f(x, y):\n    return Scale.apply(x, y, 3)\n"})
    (line,) = found()
    assert "ops.py:12: CTX203" in line
    assert "passes 3 inputs; torch raises RuntimeError at backward. Return `None` for `bias`" in line


def test_an_instance_is_made_elsewhere() -> None:
    write({"ops.py": OPS, "train.py": "from ops import Scale\n\n\ndef f(x, y):\n    return Scale()(x, y)\n"})
    assert matches(found(), "train.py:5: CTX703 An instance of `Scale` is called")


def test_an_instance_is_made_under_another_name() -> None:
    """The file may not have the class's own name."""
    write({"ops.py": OPS, "train.py": "import ops\nfrom ops import Scale as S\n\nS()(1, 2)\nops.Scale()(1, 2)\n"})
    first, second = found()
    assert first.endswith("CTX703 An instance of `S` is called; torch raises RuntimeError. Write `S.apply(...)`.")
    assert second.endswith("Write `ops.Scale.apply(...)`.")


def test_instances_of_a_class_that_keeps_state_on_them() -> None:
    """``apply`` does not work before its methods are static, in whichever file it is defined."""
    legacy = """
        from torch.autograd import Function


        class Scale(Function):
            def __init__(self, factor):
                self.factor = factor

            def forward(self, x):
                return x * self.factor

            def backward(self, grad_output):
                return grad_output * self.factor
        """
    caller = "def f(x):\n    scale = Scale(2)\n    return scale(x)\n\n\ndef g(x):\n    return Scale(2)(x)\n"
    write({"ops.py": legacy, "train.py": f"from ops import Scale\n\n\n{caller}"})
    remedy = "Make its methods static (CTX108), with its state as inputs; then use `Scale.apply`."
    _legacy, stored, called = found()
    assert stored.startswith("train.py:5: CTX703")
    assert stored.endswith(remedy)
    assert called.startswith("train.py:10: CTX703")
    assert called.endswith(remedy)


def test_apply_of_an_instance_made_elsewhere() -> None:
    """There is one finding, for the whole call; none for the instance in it, which only a run over both files resolves."""
    write({"ops.py": OPS, "train.py": "from ops import Scale\n\n\ndef f(x, y):\n    return Scale().apply(x, y)\n"})
    assert matches(found(), "train.py:5: CTX703 An instance of `Scale` is created only for its `apply`")


def test_keywords_in_a_call_elsewhere() -> None:
    write({"ops.py": OPS, "train.py": "from ops import Scale\n\n\ndef f(x):\n    Scale.apply(x, factor=x)\n"})
    assert matches(found(), "train.py:5: CTX702 `Scale.apply` gets `factor` by keyword")


def test_comments_hide_what_callers_say() -> None:
    write({"ops.py": OPS, "train.py": "from ops import Scale\n\n\ndef f(x):\n    return Scale.apply(x, 2)\n"})
    assert len(found()) == 1
    hidden = OPS.replace("grad_output * 1\n", "grad_output * 1  # noqa: CTX204\n")
    write({"ops.py": hidden})
    assert found() == []


# ---------------------------------------------------------------------------------------------------------------------
# Who descends


def test_two_imports_on_one_line() -> None:
    write({"ops.py": OPS, "use.py": "from os import sep; from ops import Scale\n\ny = Scale.apply(1, 2, sep)\n"})
    assert any(line.startswith("use.py:3: ") and TOO_MANY in line for line in found())


def test_a_subclass_of_a_subclass_over_three_files() -> None:
    """None of the later files contains the words that the scanner looks for."""
    write(
        {
            "pkg/__init__.py": "",
            "pkg/base.py": """
                from torch.autograd import Function


                class Base(Function):
                    @staticmethod
                    def setup_context(ctx, inputs, output):
                        pass
            """,
            "pkg/middle.py": "from .base import Base\n\n\nclass Middle(Base):\n    pass\n",
            "pkg/last.py": """
                from .middle import Middle as M


                class Last(M):
                    @staticmethod
                    def forward(ctx, x):
                        return x * 2

                    @staticmethod
                    def backward(ctx, grad_output):
                        return grad_output * 2
            """,
            "train.py": "from pkg.last import Last\n\n\ndef f(x):\n    return Last.apply(x, 1, 2)\n",
        }
    )
    lines = found()
    assert [line.split(" ")[1] for line in lines if line.startswith("pkg/last.py")] == ["CTX103"]


def test_a_base_that_is_applied_elsewhere() -> None:
    """A class with a subclass may be a mere base whose results are unpacked, unless it is applied itself."""
    text = OPS.replace("grad_output * 1", "grad_output * 1, grad_output * 2")
    more = "\n\nclass More(Scale):\n" + OPS.partition("Function):\n")[2]
    write({"ops.py": text + more, "train.py": "x = 1\n"})
    assert found() == []
    write({"train.py": "from ops import Scale\n\n\ndef f(x, y):\n    return Scale.apply(x, y)\n"})
    assert matches(found(), "ops.py:12: CTX202 ")


def test_files_that_import_each_other() -> None:
    write(
        {
            "a.py": "from b import Scale\n\nscale = Scale.apply\n",
            "b.py": OPS + "\n\ndef use(x):\n    from c import scale\n\n    return scale(x, 2)\n",
            "c.py": "from a import scale\nfrom c import twice\n\n\ndef twice(x):\n    return scale(x, 2, 3)\n",
            "d.py": "from e import lost\n\nlost(1)\n",
            "e.py": "from d import lost\n",
        }
    )
    assert matches(found(), f"b.py:12: {PASSES_A_NUMBER}", f"c.py:6: `scale` (`Scale.apply`) {TOO_MANY}")


# ---------------------------------------------------------------------------------------------------------------------
# What silences

EXP = """
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch.exp(x * scale)
        ctx.y = y
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y * ctx.scale
"""
APPLIED = "from exp import Exp\n\n\ndef run(x):\n    return Exp.apply(x, 2.0)\n"


def fixes() -> dict[str, str]:
    """How safe the fix of each finding is, by code."""
    results = lint_paths(["."], Configuration())
    return {
        each.code: each.fix.applicability.value if each.fix is not None else ""
        for result in results
        for each in result.diagnostics
    }


def test_a_fix_that_only_the_calls_in_view_allow() -> None:
    write({"exp.py": EXP, "use.py": APPLIED})
    assert fixes() == {"CTX203": "safe", "CTX301": "safe"}


@pytest.mark.parametrize(
    "other",
    [
        "from exp import Exp\n\n\ndef f(x):\n    return Exp.forward(object(), x, 2.0)\n",
        "import exp\n\n\ndef f(x):\n    return exp.Exp.forward(object(), x, 2.0)\n",
        "from exp import Exp as E\n\nclass Mine(E):\n    def forward(ctx, x):\n        return E.forward(ctx, x, 2.0)\n",
    ],
)
def test_a_call_by_hand_elsewhere_takes_the_safety_from_a_fix(other: str) -> None:
    """A direct call of forward passes some object as ctx, which may not have save_for_backward."""
    write({"exp.py": EXP, "use.py": APPLIED, "other.py": other})
    found = fixes()
    assert "CTX301" in found
    assert found["CTX301"] != "safe"


@pytest.mark.parametrize(
    ("other", "imported", "decorators"),
    [
        (
            "import amp\n\nprint(amp.Double)\n",
            ["from torch.amp import custom_bwd, custom_fwd"],
            ["custom_fwd", "custom_bwd"],
        ),
        (
            "from amp import custom_fwd\n",
            ["from torch.amp import custom_bwd", "from torch.cuda.amp import custom_fwd"],
            ["torch.amp.custom_fwd", "custom_bwd"],
        ),
        (
            "import amp\n\nprint(amp.custom_bwd)\n",
            ["from torch.amp import custom_fwd", "from torch.cuda.amp import custom_bwd"],
            ["custom_fwd", "torch.amp.custom_bwd"],
        ),
        (
            "from amp import *\n\nprint(custom_fwd, custom_bwd)\n",
            ["from torch.cuda.amp import custom_bwd, custom_fwd"],
            ["torch.amp.custom_fwd", "torch.amp.custom_bwd"],
        ),
    ],
)
def test_names_that_another_file_imports_from_this_one_keep_their_meaning(
    other: str, imported: list[str], decorators: list[str]
) -> None:
    """Moving their import would break the other file."""
    write({"amp.py": AMP, "other.py": other, "ctxlint.toml": 'target-torch = ">=2.4"\n'})
    assert main(["--fix", "--quiet", "."]) == 0
    lines = Path("amp.py").read_text(encoding="utf-8").splitlines()
    assert [each for each in lines if each.startswith("from")] == imported
    assert [each.strip() for each in lines if "@custom" in each or "@torch" in each] == [
        f'@{each}(device_type="cuda")' for each in decorators
    ]


def test_a_subclass_elsewhere_that_completes_the_gradients() -> None:
    completes = """
        from exp import Exp


        class Whole(Exp):
            @staticmethod
            def backward(ctx, grad_output):
                return Exp.backward(ctx, grad_output), None


        def run(x):
            return Whole.apply(x, 2.0)
    """
    write({"exp.py": EXP, "whole.py": completes})
    assert "CTX203" not in fixes()
    write({"use.py": APPLIED})
    assert fixes()["CTX203"] == "safe"


@pytest.mark.parametrize(
    "change", ["Exp.backward = staticmethod(better)", "setattr(Exp, 'backward', staticmethod(better))"]
)
def test_a_method_that_another_file_replaces(change: str) -> None:
    write(
        {"exp.py": EXP, "use.py": APPLIED, "patch.py": f"from better import better\nfrom exp import Exp\n\n{change}\n"}
    )
    assert "CTX203" not in fixes()


VIEWS = """
import torch


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Flatten(torch.nn.Module):
    def forward(self, x):
        return Flat.apply(x)


def flat(x):
    return Flat.apply(x)
"""

SHIFTS = "def shifted(x):\n    y = {}(x)\n    y += 1\n    return y\n"


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("from .views import Flatten", "from pkg import Flatten\n\nflatten = Flatten()\n" + SHIFTS.format("flatten")),
        ("from .views import *", "from pkg import Flatten\n\nflatten = Flatten()\n" + SHIFTS.format("flatten")),
        ("from .views import Flatten", "import pkg\n\nflatten = pkg.Flatten()\n" + SHIFTS.format("flatten")),
        ("from .views import flat", "from pkg import flat\n\n" + SHIFTS.format("flat")),
        ("from .views import flat", "from pkg.inner import flat\n\n" + SHIFTS.format("flat")),
    ],
)
def test_a_result_is_modified_that_comes_through_a_package(package: str, use: str) -> None:
    write({"pkg/__init__.py": f"{package}\n", "pkg/views.py": VIEWS, "pkg/inner/__init__.py": "from pkg import flat\n"})
    assert found() == []
    write({"use.py": use})
    assert [line.split()[1] for line in found()] == ["CTX406"]


WITHOUT_GRAPH = """
import torch
from use import shifted


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shifted(x)

    @staticmethod
    def backward(ctx, grad):
        return grad
"""


@pytest.mark.parametrize(
    ("callers", "codes"),
    [
        ([], ["CTX406"]),
        ([WITHOUT_GRAPH], []),
        (["import torch\nfrom use import shifted\n\nwith torch.no_grad():\n    shifted(torch.ones(2))\n"], []),
        (["from use import shifted\n\n\ndef train(x):\n    return shifted(x)\n"], ["CTX406"]),
        ([WITHOUT_GRAPH, "from use import shifted\n\n\ndef train(x):\n    return shifted(x)\n"], ["CTX406"]),
    ],
)
@pytest.mark.parametrize("called", ["flat", "Flat.apply"])
def test_who_calls_what_modifies_a_result(callers: list[str], codes: list[str], called: str) -> None:
    """Nothing raises where grad mode is off, in whichever file that is."""
    name = called.partition(".")[0]
    write({"views.py": VIEWS, "use.py": f"from views import {name}\n\n\n{SHIFTS.format(called)}"})
    write({f"caller{number}.py": text for number, text in enumerate(callers)})
    assert [line.split()[1] for line in found()] == codes


@pytest.mark.parametrize(
    ("use", "codes"),
    [
        ("import torch\n\nrun = torch.compile(shifted)", ["CTX406"]),
        ("class Layer:\n    run = staticmethod(shifted)", ["CTX406"]),
        ("OPS = {'shifted': shifted}", ["CTX406"]),
        ("def step(x, checkpoint):\n    return checkpoint(shifted, x, use_reentrant=False)", ["CTX406"]),
        ("assert shifted.__name__ == 'shifted'", []),
        ("import torch\n\nrun = torch.no_grad()(shifted)", []),
        ("def step(other):\n    return other.shifted", []),
    ],
)
@pytest.mark.parametrize("where", ["use.py", "another.py"])
def test_what_modifies_a_result_is_handed_on(use: str, codes: list[str], where: str) -> None:
    """It may be called with grad mode on then, whatever the calls are that the project has."""
    texts = {
        "use.py": f"from views import flat\n\n\n{SHIFTS.format('flat')}",
        "another.py": "from use import shifted\n",
    }
    texts[where] += f"\n\n{use}\n"
    write({"views.py": VIEWS, "caller.py": WITHOUT_GRAPH, **texts})
    assert [line.split()[1] for line in found()] == codes


PLACEHOLDER = """
import torch


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sizes):
        ctx.sizes = counts
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, None
"""

REPLACEMENTS = {
    "a name": "from lib import register_patch\n\nregister_patch('pkg.ops.Gather.forward', print)",
    "the name in another project": "from lib import register\n\nname = 'core.ops.Gather.forward'\nregister(name, print)",
    "the package": "from lib import register_patch\n\nregister_patch('pkg.Gather.forward', print)",
    "the end of a name": "from lib import root, replace\n\nreplace(f'{root}.Gather.forward', print)",
    "without the module": "from lib import patch_method\n\npatch_method('Gather.forward', print)",
    "a registry": "from lib import Adaptation\n\nAdaptation.register('pkg.ops.Gather.forward', print)",
    "a class": "from lib import MethodPatcher\n\nMethodPatcher(target='pkg.ops.Gather.forward', new=print)",
    "a table": "from lib import apply_patches\n\napply_patches({'pkg.ops.Gather.forward': print})",
    "a table with a name": (
        "from lib import patch\n\nREPLACED = {'pkg.ops.Gather.forward': print}\n\n"
        "for name, new in REPLACED.items():\n    patch(name, new)"
    ),
    "a table that grows": "from lib import override\n\nnew = {}\nnew['pkg.ops.Gather.forward'] = print\noverride(new)",
    "a decorator": "from lib import replaces\n\n\n@replaces('pkg.ops.Gather.forward')\ndef new(ctx, x, sizes): ...",
    "an attribute": "import pkg.ops\n\npkg.ops.Gather.forward = print",
    "setattr": "from pkg import ops\n\nsetattr(ops.Gather, 'forward', print)",
    "each of several": "from pkg import ops\n\nfor each in (ops.Gather, *ops.more):\n    each.backward = print",
    "a function": "from lib import patch\nfrom pkg.ops import Gather\n\npatch(Gather, 'forward', print)",
    "a function that sets it": (
        "from pkg.ops import Gather\n\n\ndef add(owner, name, new):\n    setattr(owner, name, new)\n\n\n"
        "add(Gather, 'forward', print)"
    ),
    "a function of another file": "from pkg.tools import put\nfrom pkg import ops\n\nput(ops.Gather, 'forward', print)",
    "a function that sets it by its name": (
        "from pkg import ops\n\n\ndef add(path, new):\n    owner, _, name = path.rpartition('.')\n"
        "    setattr(find(owner), name, new)\n\n\nadd('pkg.ops.Gather.forward', print)"
    ),
    "a function that takes the parts of its name": (
        "from pkg import ops\n\n\ndef add(path, new):\n    *path, last = path.split('.')\n    where = ops\n"
        "    for part in path[2:]:\n        where = getattr(where, part)\n    setattr(where, last, new)\n\n\n"
        "add('pkg.ops.Gather.forward', print)"
    ),
    "the name of the new one": "from lib import patch\n\npatch('pkg.ops.Gather.forward', 'pkg.new.forward')",
    "an object to begin": "from lib import Patch\n\nPatch('pkg.ops.Gather.forward').begin()",
    "a function of another file by its name": "from pkg.tools import by_name as n\n\nn('pkg.ops.Gather.forward', print)",
    "a decorator that sets it": (
        "from pkg.ops import Gather\nfrom pkg.tools import into\n\n\n@into(Gather, 'forward')\ndef new(ctx, x): ..."
    ),
}


TOOLS = """\
def put(owner, name, new):
    if new is not None:
        assign(owner, name, new)


def assign(owner, name, new):
    setattr(owner, name, new)


def into(owner, name):
    def decorate(new):
        setattr(owner, name, new)
        return new

    return decorate


def by_name(path, new):
    owner, _, name = path.rpartition(".")
    setattr(find(owner), name, new)


def log(path, new):
    print(path, new)


def show(owner, name, new):
    print(getattr(owner, name), new)
    setattr(new, name, owner)
"""


@pytest.mark.parametrize("way", REPLACEMENTS)
def test_a_method_that_another_file_replaces_in_some_way(way: str) -> None:
    """What is found in the method, and what depends on it, is unknown then."""
    write({"pkg/__init__.py": "from .ops import Gather\n", "pkg/ops.py": PLACEHOLDER, "pkg/tools.py": TOOLS})
    assert [line.split()[1] for line in found()] == ["CTX223", "CTX306"]
    write({"patch.py": REPLACEMENTS[way]})
    assert found() == []


SETTING_A_NAME = {
    "an attribute": "import pkg.ops\n\npkg.ops.counts = 2",
    "under another name": "def prepare():\n    from pkg import ops as o\n    o.counts = 2",
    "setattr": "from pkg import ops\n\nsetattr(ops, 'counts', 2)",
    "any name": "from pkg import ops\n\nfor name in ('counts', 'sizes'):\n    setattr(ops, name, 2)",
    "a dict": "from pkg import ops\n\nops.__dict__['counts'] = 2",
    "vars": "from pkg import ops\n\nvars(ops).update(counts=2)",
    "modules": "import sys\n\nsys.modules['pkg.ops'].counts = 2",
    "a module by its name": "import importlib\n\nm = importlib.import_module('pkg.ops')\nm.counts = 2",
    "through the package": "import pkg\n\npkg.ops.counts = 2",
    "builtins": "import builtins\n\nbuiltins.counts = 2",
    "builtins under another name": "import builtins as b\n\nb.counts: int = 1\nb.counts += 1",
    "setattr of builtins": "import builtins\n\nfor name in ('counts', 'sizes'):\n    setattr(builtins, name, 2)",
    "the dict of builtins": "import builtins\n\nbuiltins.__dict__.update(counts=2)",
    "builtins as a dict": "__builtins__['counts'] = 2",
    "vars of builtins": "import builtins\n\nvars(builtins)['counts'] = 2",
    "in a function of a function": "def outer():\n    from pkg import ops\n\n    def inner():\n        ops.counts = 2",
    "next to a variable": "from pkg import ops\n\n\ndef f(ops):\n    pass\n\n\ndef g():\n    ops.counts = 2",
    "a global": "def f():\n    global ops\n    import pkg.ops as ops\n\n\ndef g():\n    ops.counts = 2",
    "in a method": "from pkg import ops\n\n\nclass Loader:\n    def load(self):\n        ops.counts = 2",
    "pytest": "def test(monkeypatch):\n    monkeypatch.setattr('pkg.ops.counts', 2, raising=False)",
    "mock": "from unittest import mock\n\nwith mock.patch('pkg.ops.counts', 2, create=True):\n    pass",
}


@pytest.mark.parametrize("way", SETTING_A_NAME)
def test_a_name_that_another_file_sets_for_the_module(way: str) -> None:
    text = PLACEHOLDER.replace("grad_output * ctx.scale", "grad_output * 2")
    write({"pkg/__init__.py": "", "pkg/ops.py": text, "other.py": "def f(x, counts):\n    x.counts = counts\n"})
    assert [line.split()[1] for line in found()] == ["CTX223"]
    write({"patch.py": SETTING_A_NAME[way]})
    assert found() == []


NEEDING_A_NAME = {
    "pytest": "def test(monkeypatch):\n    monkeypatch.setattr('pkg.ops.counts', 2)",
    "pytest, by module": "from pkg import ops\n\n\ndef test(monkeypatch):\n    monkeypatch.setattr(ops, 'counts', 2)",
    "mock": "from unittest import mock\n\nwith mock.patch('pkg.ops.counts', 2):\n    pass",
    "another name": "import pkg.ops\n\npkg.ops.sizes = 2",
    "read": "import pkg.ops\n\nassert pkg.ops.counts == 2",
    "read of builtins": (
        "import builtins\n\nassert builtins.__dict__.get('counts') == vars(builtins).get('counts')\n"
        "assert __builtins__['counts'] == 2 or builtins.counts == 2"
    ),
    "an imported file": "import importlib\n\nm = importlib.import_module(name)\nsetattr(m, name, __builtins__['open'])",
    "a variable of another function": (
        "def load():\n    from pkg import ops\n\n    ops.load()\n\n\ndef run(ops):\n    ops.counts = 2"
    ),
    "a variable of a function inside": "from pkg import ops\n\n\ndef run():\n    ops = lib\n    ops.counts = 2",
    "a name of a class": "class Loader:\n    from pkg import ops\n\n    def load(self):\n        ops.counts = 2",
    "a variable with the name": "def run(ops, counts):\n    evaluate(ops, counts)\n    setattr(counts, ops, 2)",
    "an attribute of a variable": "def run(ops):\n    ops.counts = 2",
    "an attribute of an attribute": "class Model:\n    def run(self):\n        self.ops.counts = 2",
    "vars of a variable": "def run(ops):\n    return vars(ops)  # counts",
    "a call with the module": "from pkg import ops\n\nfor counts in vars():\n    ops.run(ops, counts)",
    "a text": "import logging\n\nlogging.info('pkg.ops.counts', 2)",
    "its own module": "import sys\n\nimport pkg.ops\n\nsetattr(sys.modules[__name__], 'counts', 2)",
}


@pytest.mark.parametrize("read_in", ["forward", "backward"])
def test_a_name_that_another_method_binds_as_its_own(read_in: str) -> None:
    """The module does not have it then, so another file may still set it there."""
    lines = {read_in: "return x * counts, None", ({"forward", "backward"} - {read_in}).pop(): "counts = 2"}
    methods = "".join(
        f"    @staticmethod\n    def {name}(ctx, x):\n        {lines[name]}\n        return x * 2\n\n"
        for name in ("forward", "backward")
    )
    text = f"import torch\n\n\nclass Gather(torch.autograd.Function):\n{methods}"
    write({"pkg/__init__.py": "", "pkg/ops.py": text})
    assert "CTX223" in [line.split()[1] for line in found()]
    write({"patch.py": SETTING_A_NAME["an attribute"]})
    assert "CTX223" not in [line.split()[1] for line in found()]


@pytest.mark.parametrize("way", NEEDING_A_NAME)
def test_a_name_that_another_file_does_not_create(way: str) -> None:
    """Pytest and ``unittest.mock`` raise AttributeError for a name that the module lacks."""
    text = PLACEHOLDER.replace("grad_output * ctx.scale", "grad_output * 2")
    write({"pkg/__init__.py": "", "pkg/ops.py": text, "patch.py": NEEDING_A_NAME[way]})
    assert [line.split()[1] for line in found()] == ["CTX223"]


NO_REPLACEMENTS = {
    "another class": "from lib import register_patch\n\nregister_patch('pkg.ops.Scatter.forward', print)",
    "a class of that name": "from lib import register_patch\n\nregister_patch('lib.layers.Gather.forward', print)",
    "what is shown": "from lib import trace\n\nwith trace('pkg.ops.Gather.forward'): ...",
    "a title": "TITLE = 'Gather.forward'",
    "a question": "from pkg.ops import Gather\n\nprint(hasattr(Gather, 'forward'))",
    "a mock": "from unittest import mock\n\n\n@mock.patch('pkg.ops.Gather.forward')\ndef test(new): ...",
    "a mock for some lines": "from unittest.mock import patch as p\n\nwith p('pkg.ops.Gather.forward', print): ...",
    "a mock of pytest": "def test(mocker):\n    mocker.patch('pkg.ops.Gather.forward', print)",
    "a mock of the class": (
        "from unittest import mock\nfrom pkg import ops\n\n\ndef test():\n"
        "    with mock.patch.object(ops.Gather, 'forward', print): ..."
    ),
    "pytest": "from pkg.ops import Gather\n\n\ndef test(monkeypatch):\n    monkeypatch.setattr(Gather, 'forward', print)",
    "pytest, by its name": "def test(monkeypatch):\n    monkeypatch.setattr('pkg.ops.Gather.forward', print)",
    "a parameter": "import pytest\n\n\n@pytest.mark.parametrize('name', ['pkg.ops.Gather.forward'])\ndef test(name): ...",
    "a log": "import logging\n\nlogging.info('in %s', 'pkg.ops.Gather.forward')",
    "a dict": "API = {'title': 'pkg.ops.Gather.forward'}",
    "a list": "from lib import show\n\nNAMES = ['pkg.ops.Gather.forward', 3]\nshow(NAMES, 2)",
    "another word": "from lib import dispatch\n\ndispatch('pkg.ops.Gather.forward', 3)",
    "a function that sets itself": (
        "def add(self, name):\n    setattr(self, name, 1)\n\n\nadd('pkg.ops.Gather.forward', 1)"
    ),
    "a function that sets nothing by its name": "from pkg.tools import log\n\nlog('pkg.ops.Gather.forward', print)",
    "a function that sets nothing of it": (
        "from pkg.ops import Gather\nfrom pkg.tools import show\n\nshow(Gather, 'forward', print)"
    ),
    "another word with the class": "from lib import count\nfrom pkg.ops import Gather\n\ncount(Gather, 'forward', 3)",
    "a function that sets something by it": (
        "def log(text, level, new):\n    setattr(level, text, new)\n\n\nlog('pkg.ops.Gather.forward', {}, print)"
    ),
    "a function that sets other names": (
        "def profile(name, options):\n    for key, value in options.items():\n        setattr(profiler, key, value)\n"
        "    profiler.begin(name)\n\n\nprofile('pkg.ops.Gather.forward', {})"
    ),
    "such a word without a new one": "from lib import patch_notes\n\npatch_notes('pkg.ops.Gather.forward')",
    "such a word with a text": "from lib import registry\n\nregistry.register('pkg.ops.Gather.forward', 'its page')",
    "such a word with a name": "from lib import swap\n\nNAME = 'pkg.ops.Gather.forward'\nswap(NAME, key=3)",
    "a text": "def short(name):\n    return name.replace('pkg.ops.Gather.forward', 'forward')",
}


@pytest.mark.parametrize("way", NO_REPLACEMENTS)
def test_what_only_names_a_method(way: str) -> None:
    write({"pkg/__init__.py": "", "pkg/ops.py": PLACEHOLDER, "pkg/tools.py": TOOLS, "other.py": NO_REPLACEMENTS[way]})
    assert [line.split()[1] for line in found()] == ["CTX223", "CTX306"]


@pytest.mark.parametrize(
    ("new", "codes"),
    [("Gather.backward = print", []), ("Gather.backward = staticmethod(Gather.backward)", ["CTX404"])],
)
def test_a_new_method_that_calls_the_old_one(new: str, codes: list[str]) -> None:
    text = PLACEHOLDER.replace("ctx.sizes = counts", "").replace("grad_output * ctx.scale", "grad_output.mul_(2)")
    write({"ops.py": text, "patch.py": f"from ops import Gather\n\n{new}\n"})
    assert [line.split()[1] for line in found()] == codes


def test_a_call_of_what_a_third_file_changes() -> None:
    """Calls in other files are not checked against a replaced signature either."""
    call = "from exp import Exp\n\n\ndef run(x):\n    return Exp.apply(x, 2.0, 3)\n"
    write({"exp.py": EXP, "use.py": call})
    assert "CTX701" in fixes()
    write({"patch.py": "from better import better\nfrom exp import Exp\n\nExp.forward = staticmethod(better)\n"})
    assert "CTX701" not in fixes()


def test_a_more_specific_finding_takes_the_place_of_a_general_one() -> None:
    text = """
        import torch
        from elsewhere import prepare


        class Weighted(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w, factor):
                rest = prepare(factor)
                ctx.save_for_backward(x, w)
                return x * w

            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return g * w, g * x
    """
    write({"weighted.py": text})
    assert fixes() == {"CTX201": "unsafe"}
    write({"use.py": "from weighted import Weighted\n\n\ndef f(x, w):\n    return Weighted.apply(x, w, 0.1)\n"})
    assert fixes() == {"CTX203": "safe"}


@pytest.mark.parametrize(
    ("helper", "never"),
    [
        ("def refuse(x):\n    raise NotImplementedError(x)\n", True),
        ("def refuse(x):\n    print(x)\n", False),
        ("from deeper import refuse\n", True),
        ("from deeper import *\n", True),
    ],
)
def test_a_helper_in_another_file_that_never_returns(helper: str, never: bool) -> None:
    text = """
        import torch
        from helpers import refuse


        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                if g.dim() == 1:
                    return g * 2
                refuse(g)
    """
    write({"helpers.py": helper, "deeper.py": "def refuse(x):\n    raise ValueError(x)\n", "double.py": text})
    assert ("CTX207" in fixes()) is not never


def test_torch_by_a_star_import() -> None:
    text = """
        from imports import *


        class Penalty(torch.autograd.Function):
            @staticmethod
            def forward(ctx, loss, y):
                ctx.save_for_backward(y)
                return loss

            @staticmethod
            def backward(ctx, grad_output):
                (y,) = ctx.saved_tensors
                greatest = torch.amax(y, -1, keepdim=True)
                return grad_output, torch.where(y == greatest, y, 0.0)
    """
    write({"imports.py": "import torch\n", "penalty.py": text})
    assert "CTX212" in fixes()


@pytest.mark.parametrize(
    ("constants", "known"),
    [
        ("COUNT = 2\n", True),
        ("import os\nCOUNT = 2\nif os.name:\n    COUNT = 3\n", False),
        ("COUNT = int(input())\n", False),
    ],
)
@pytest.mark.parametrize("access", ["constants.COUNT", "COUNT"])
def test_a_constant_of_another_file(constants: str, access: str, known: bool) -> None:
    text = f"""
        import torch
        import constants
        from constants import COUNT


        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return (g, *[g] * {access})
    """
    write({"constants.py": constants, "double.py": text})
    assert ("CTX202" in fixes()) is known


# ---------------------------------------------------------------------------------------------------------------------
# What stays as it is


@pytest.mark.parametrize("text", ["from ops import Scale\nprint 'python 2'\n", "from ops import Scale\n\xff = (\n"])
def test_a_file_that_only_mentions_a_name_is_not_spoken_of(text: str) -> None:
    """It does not need to be parsed, so that it cannot be is not reported."""
    write({"ops.py": OPS})
    Path("train.py").write_bytes(text.encode("latin-1"))
    assert found() == []


def test_excluded_files_are_not_looked_at() -> None:
    write(
        {
            "ops.py": OPS,
            "sub/ctxlint.toml": 'extend-exclude = ["generated.py"]\n',
            "sub/generated.py": "from ops import Scale\n\n\ndef f(x):\n    return Scale.apply(x, 2, 3)\n",
        }
    )
    assert list(lint_paths(["."], Configuration())) != []
    assert [each for result in lint_paths(["."], Configuration()) for each in result.diagnostics] == []


def test_another_repository_is_another_world() -> None:
    write({"one/ops.py": OPS, "two/train.py": "from ops import Scale\n\n\ndef f(x):\n    Scale.apply(x, 2, 3)\n"})
    Path("one/.git").mkdir()
    Path("two/.git").mkdir()
    assert found() == []


def test_projects_are_linted_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is parsed once, however the projects are mixed, though facts of one are found after others."""
    parsed: list[str] = []

    def read(source: Source) -> Unit:
        parsed.append(os.path.relpath(source.path))
        return read_unit(source)

    names = ("one", "two", "three")
    for name in names:
        write({f"{name}/{path}": text for path, text in PROJECT.items()})
        Path(name, ".git").mkdir()
    expected = [finding for name in names for finding in together([name])]
    paths = [f"{name}/{path}" for path in PROJECT for name in names]
    forget_other_files()
    monkeypatch.setattr(project, "read_unit", read)
    assert sorted(together(paths)) == sorted(expected)
    assert sorted(parsed) == sorted(set(parsed))


PROJECT = {
    "pkg/__init__.py": "from .ops import Scale, scale\nfrom .more import Last\n",
    "pkg/ops.py": OPS + "\n\nscale = Scale.apply\n",
    "pkg/more.py": "from .ops import Scale\n\n\nclass Last(Scale):\n    pass\n",
    "train.py": "from pkg import scale\n\n\ndef train(x):\n    return scale(x, 2, 3)\n",
    "test.py": "import pkg\n\n\ndef test(x):\n    pkg.Last.apply(x)\n    return pkg.Scale.apply(x, 'a')\n",
    "setup.py": "import train\nfrom pkg.ops import Scale\n\ntrain.fast = Scale.apply\n",
    "late.py": "from train import fast\n\n\ndef late(x):\n    return fast(x, True)\n",
}


def test_the_order_of_files_changes_nothing() -> None:
    write(PROJECT)
    expected = together(["."])
    assert len(expected) == 3
    for order in permutations(["pkg", "setup.py", "late.py"]):
        assert together(["train.py", *order, "test.py"]) == expected
    assert together(list(reversed(PROJECT))) == expected


def test_processes_and_hash_seeds_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "three"):
        write({f"{name}/{path}": text for path, text in PROJECT.items()})
    expected = together(["."])
    monkeypatch.setattr(workers, "WORTH_SHARING", 3)
    monkeypatch.setattr(workers, "_CHUNK", 1)
    assert together(["."], jobs=2) == expected
    assert together(["."], jobs=3) == expected
    outputs = set()
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-m", "ctxlint", "one", "--output-format", "json"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 1
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_file_that_is_told_the_same_is_the_same() -> None:
    """The findings of a file depend only on its bytes, the settings, the cross-file facts it receives and its look-ups."""
    write(PROJECT)
    result = lint_file("train.py", Settings())
    assert result.diagnostics == ()
    assert result.consulted is not None
    assert [os.path.relpath(path) for path in result.consulted.files] == []
    (told,) = [each for each in lint_paths(["."], Configuration()) if each.path.endswith("train.py")]
    assert told.outside is not None
    assert told.outside.names == ("scale",)
    again = lint_file("train.py", Settings(), told.outside)
    assert [each.message for each in again.diagnostics] == [each.message for each in told.diagnostics] != []
    assert again.consulted is not None
    looked_at = [os.path.relpath(path) for path in again.consulted.files]
    assert looked_at == [str(Path("pkg/__init__.py")), str(Path("pkg/ops.py"))]
    assert hash(told.outside) == hash(again.outside)


def test_what_is_looked_up_and_missing_is_told() -> None:
    write({"train.py": "from pkg.ops import Scale\n\nScale.apply(1)\n"})
    result = lint_file("train.py", Settings())
    assert result.consulted is not None
    (look_up,) = result.consulted.look_ups
    assert (look_up.name, look_up.found) == ("pkg.ops.Scale", None)


@pytest.mark.parametrize(
    "text",
    [
        OPS,
        OPS.replace("grad_output * 1\n", "grad_output * 1  # noqa: CTX204\n"),
        OPS.replace("x + factor\n", "x + factor  # noqa: CTX204\n"),
        OPS.replace("grad_output * 1\n", "grad_output * 1  # noqa:CTX\n"),
        OPS + "\n\ndef f(:\n    pass\n",
        "from base import Base\n" + OPS.replace("torch.autograd.Function", "Base"),
    ],
)
def test_what_a_file_is_alone_is_found_out_once(text: str) -> None:
    """Adding cross-file facts to the result of a single file equals a new analysis."""
    write({"ops.py": text, "base.py": "import torch\n\n\nclass Base(torch.autograd.Function):\n    pass\n"})
    write({"train.py": "from ops import Scale\n\n\ndef train(x):\n    return Scale.apply(x, 2)\n"})
    settings = Settings(select=(ALL,))
    forget_other_files()
    alone = lint_file("ops.py", settings).alone
    (told,) = (each for each in lint_paths(["."], Configuration(fixed=settings)) if each.path == "ops.py")
    forget_other_files()
    in_full = lint_file("ops.py", settings, told.outside)
    added = lint_file("ops.py", settings, told.outside, alone=alone)
    assert told.outside is not None
    assert added._replace(source=None, alone=None) == in_full._replace(source=None, alone=None)
    assert added.diagnostics == told.diagnostics


def test_noqa_comments_hide_what_neighbours_tell(capsys: pytest.CaptureFixture[str]) -> None:
    write({"ops.py": OPS, "use.py": "from ops import Scale\n\n\ndef use(x):\n    return Scale.apply(x, 2)\n"})
    assert matches(found(), f"ops.py:12: {PASSES_A_NUMBER}")
    assert main(["--add-noqa"]) == 0
    assert found() == []
    assert capsys.readouterr().err == "Added 1 noqa comment.\n"


def test_noqa_comments_are_checked_with_what_neighbours_tell() -> None:
    """A comment that would not hide the finding is not written, even if the finding comes from another file."""
    write({"ops.py": OPS, "use.py": "from ops import Scale\n\n\ndef use(x):\n    return Scale.apply(x, 2)\n"})
    checked: list[list[str]] = []

    def check(source: Source, result: FileResult) -> FileResult:
        after = check_source(source, result.settings._replace(ignore_noqa=True), result.outside)
        checked.append([each.code for each in after.diagnostics])
        return after

    results = list(lint_paths(["."], Configuration()))
    assert add_noqa(results, "", check) == 1
    assert checked == [["CTX204"]]
    assert Path("ops.py").read_text(encoding="utf-8") == dedent(OPS)


def test_a_file_whose_name_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    if sys.platform != "linux":
        return
    name = os.fsdecode(b"caf\xe9.py")
    write({name: OPS, "use.py": "from ops import Scale\n\n\ndef use(x):\n    return Scale.apply(x, 2)\n"})
    assert main([".", "--quiet", "--no-cache", "--select", "CTX2"]) == 0
    assert capsys.readouterr() == ("", "")


def test_no_name_is_taken_from_a_file_that_may_not_have_it() -> None:
    text = """
    import torch
    import compat


    class Double(torch.autograd.Function):
        @staticmethod
        @compat.custom_fwd
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    """
    write({"compat.py": "from torch.cuda.amp import custom_fwd\n", "ops.py": text})
    (result,) = (each for each in lint_paths(["ops.py"], Configuration()) if each.diagnostics)
    assert [each.fix for each in result.diagnostics if each.code == "CTX106"] == [None]


ROUND = """
import torch


class Round(torch.nn.Module):
    def forward(self, x):
        return x.round()

    def backward(self, grad_output):
        return grad_output
"""


@pytest.mark.parametrize(
    ("other", "reported"),
    [
        ("def train(loss):\n    loss.backward(retain_graph=True)\n", True),
        ("import torch\n\n\ndef train(loss):\n    torch.autograd.backward(loss)\n", True),
        ("def train(layer, grad):\n    return layer.backward(grad)\n", False),
        ("def train(layer):\n    return layer.backward\n", False),
    ],
)
def test_a_backward_that_another_file_calls_by_hand(other: str, *, reported: bool) -> None:
    write({"layers.py": ROUND, "train.py": other})
    for paths in (["."], ["layers.py"]):
        forget_other_files()
        codes = [each.code for result in lint_paths(paths, Configuration()) for each in result.diagnostics]
        assert codes == ["CTX112"] * reported


GRADIENT = "def keep(ctx, inputs, result):\n    pass\n\n\ndef backward(ctx, grad):\n    return grad, grad\n"
SCALE = """
    import torch
    from gradient import backward, keep


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    scale.register_autograd(backward, setup_context=keep)
"""


@pytest.mark.parametrize(
    ("other", "safety"),
    [
        ("", "safe"),
        ("from gradient import backward\n\nprint(backward)\n", "safe"),
        ("from gradient import keep\n\nkeep(1, inputs=2, result=3)\n", "unsafe"),
        ("import gradient as g\n\ng.keep(1, inputs=2, result=3)\n", "unsafe"),
    ],
)
def test_the_gradient_of_an_operator_that_another_file_registers(other: str, safety: str) -> None:
    write({"gradient.py": GRADIENT, "scale.py": SCALE, "other.py": other})
    assert matches(
        found(), "gradient.py:1: CTX801 `keep` of `demo::scale` takes", "gradient.py:6: CTX802 `backward` returns"
    )
    assert fixes() == {"CTX801": safety, "CTX802": ""}


def test_a_use_in_another_file_takes_the_safety_from_the_fix_of_a_registered_function() -> None:
    write({"gradient.py": f"{dedent(SCALE).replace('from gradient import backward, keep', GRADIENT)}", "other.py": ""})
    assert fixes() == {"CTX801": "safe", "CTX802": ""}
    write({"other.py": "from gradient import keep\n\nkeep(1, inputs=2, result=3)\n"})
    forget_other_files()
    assert fixes() == {"CTX801": "unsafe", "CTX802": ""}


def test_python_warns_of_nothing_in_the_other_files() -> None:
    write({"layers.py": ROUND, "train.py": "DIGIT = '\\d'\n\n\ndef train(layer, grad):\n    layer.backward(grad)\n"})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lint_paths(["layers.py"], Configuration())
    assert [str(each.message) for each in found] == []


SURPLUS = """
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2, None
"""


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("train.py", "def train(layer, grad):\n    return layer.backward(grad)\n", "CTX112"),
        ("heir.py", "from ops import Double\n\n\nclass Heir(Double):\n    pass\n", "CTX206"),
    ],
)
def test_open_texts_take_precedence_over_the_disk(name: str, text: str, code: str) -> None:
    own, program = ("layers.py", ROUND) if code == "CTX112" else ("ops.py", SURPLUS)
    for on_disk, opened in ((text, "x = 1\n"), ("x = 1\n", text), (text, None), ("x = 1\n", None)):
        write({own: program, name: on_disk})
        forget_other_files()
        known = opened if opened is not None else on_disk
        if opened is not None:
            OPEN[os.path.abspath(name)] = opened
        try:
            around = Surroundings(Configuration())
            found = {
                each.code
                for each in lint_text(os.path.abspath(own), program, Settings(select=(ALL,)), around).diagnostics
            }
        finally:
            OPEN.clear()
        assert (code in found) is (known != text), (on_disk, opened)


@pytest.mark.parametrize("resumes", [False, True])
def test_open_texts_take_precedence_in_what_others_import(resumes: bool) -> None:
    both = SURPLUS + SURPLUS.replace("Double", "Triple").replace("import torch\n", "")
    names = "from ops import Double as Base\n"
    write({"ops.py": both, "names.py": names, "heir.py": "from names import Base\n\n\nclass Heir(Base):\n    pass\n"})
    around = Surroundings(Configuration(), resumes=resumes)

    def found() -> list[str]:
        forget_other_files()
        around.refresh()
        every = lint_text(os.path.abspath("ops.py"), both, Settings(select=("CTX206",)), around).diagnostics
        return [re.findall("of `(\\w+)`", each.message)[0] for each in every]

    if resumes:
        assert main(["ops.py", "--select", "CTX206", "-q"]) == 1
    try:
        for text, surplus in ((names, "Triple"), (names.replace("Double", "Triple"), "Double"), (names, "Triple")):
            OPEN[os.path.abspath("names.py")] = text
            assert found() == [surplus]
    finally:
        OPEN.clear()


def test_what_an_earlier_run_has_searched_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def in_file(_self: Transforming, path: str, _imports: object, **_: object) -> bool:
        searched.append(os.path.basename(path))
        return False

    monkeypatch.setattr(stamp, "_SETTLED", -1)
    monkeypatch.setattr(Transforming, "in_file", in_file)
    write({"ops.py": SURPLUS, "other.py": "x = 1\n"})

    def lint() -> list[str]:
        searched.clear()
        forget_other_files()
        lint_text(os.path.abspath("ops.py"), SURPLUS, Settings(), Surroundings(Configuration(), resumes=True))
        return searched

    assert (list(lint()), lint()) == (["other.py"], ["other.py"])  # nothing is stored by that
    assert main(["ops.py", "-q"]) == 0
    assert lint() == []
    write({"other.py": "xy = 1\n"})
    assert lint() == ["other.py"]


@pytest.mark.parametrize(
    "files",
    [
        {"pkg/__init__.py": "from .compiled import compiled\n"},
        {"pkg/__init__.py": "from .m0 import compiled\n"}
        | {f"pkg/m{at}.py": f"from .m{at + 1} import compiled\n" for at in range(2000)},
    ],
    ids=["a module that is not there", "a long chain"],
)
def test_imports_that_lead_on_and_on(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    write(files | {"use.py": "from pkg import compiled\n\n\nprint(compiled.run(2))\n", "ops.py": OPS})
    for path in ("use.py", "."):
        assert main([path, "--no-cache", "--exit-zero"]) == 0
        assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------------------------------------------------------
# Who transforms

LAYERS = """
from torch import nn

from ops import Scale

half = Scale.apply


class Layer(nn.Module):
    def forward(self, x):
        return self.scaled(x).sum()

    def scaled(self, x):
        return half(x, 2)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        return self.layer(x)


class Other(Layer):
    def scaled(self, x):
        return x


def loss(x):
    return model(x)


def make():
    return Layer()


model = nn.Sequential(nn.Tanh(), Head())
"""


@pytest.mark.parametrize(
    "program",
    [
        "from torch.func import grad\n\nfrom layers import loss\n\nslope = grad(loss)\n",
        "import torch\n\nimport layers as l\n\nslope = torch.func.grad(l.loss)\n",
        "from torch.func import grad\n\nfrom layers import make\n\nslope = grad(make())\n",
        "from torch.func import grad\n\nfrom api import model\n\nslope = grad(lambda x: model(x) * 2)\n",
        "from api import model, vmap\n\nslope = vmap(model)\n",
        "from torch.func import grad\n\nfrom layers import Head\n\n\nclass Tail(Head):\n    pass\n\n\nslope = grad(Tail())\n",
        (
            "from torch.func import functional_call, grad\n\nfrom layers import Head\n\nhead = Head()\n\n\n"
            "def run(w, x):\n    return functional_call(head, w, (x,))\n\n\nslope = grad(run)\n"
        ),
        "from torch.func import grad\n\nfrom layers import *\n\nslope = grad(loss)\n",
    ],
)
def test_transforms_in_a_third_file(program: str) -> None:
    api = "from functorch import vmap as vmap\n\nfrom layers import model as model\n"
    write({"ops.py": OPS, "layers.py": LAYERS, "api.py": api, "use.py": program})
    last = program.count("\n")
    name = next(each for each in ("torch.func.grad", "vmap", "grad") if f"= {each}(" in program)
    text = f"CTX114 `{name}` (line {last} of `use.py`) transforms `Scale`, which has no `setup_context`; torch raises RuntimeError"
    assert any(line.startswith(f"ops.py:5: {text}") for line in found())


@pytest.mark.parametrize(
    "program",
    [
        "from torch.func import grad\n\nfrom layers import Other\n\nslope = grad(Other())\n",
        (
            "from torch.func import grad\n\nfrom layers import Layer\n\n\nclass Mine(Layer):\n"
            "    def scaled(self, x):\n        return x\n\n\nslope = grad(Mine())\n"
        ),
        "from elsewhere import grad\n\nfrom layers import loss\n\nslope = grad(loss)\n",
        "from torch.func import grad\n\nfrom layers import missing\n\nslope = grad(missing)\n",
        (
            "import pytest\nfrom torch.func import grad\n\nfrom layers import loss\n\n\n"
            "def test():\n    with pytest.raises(RuntimeError):\n        grad(loss)(1)\n"
        ),
        (
            "from torch.func import grad\n\nfrom layers import loss\n\n\n"
            "def run(x, fast):\n    return grad(lambda x: loss(x) if fast else x)(x)\n"
        ),
    ],
)
def test_what_a_third_file_may_not_transform(program: str) -> None:
    write({"ops.py": OPS, "layers.py": LAYERS, "use.py": program})
    assert not any("CTX114" in line for line in found())


OPERATOR = """
import torch


@torch.library.custom_op("third::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def total(x):
    return double(x).sum()
"""


@pytest.mark.parametrize("name", ["double", "total"])
def test_transforms_of_operators_of_another_file(name: str) -> None:
    write(
        {
            "ops.py": OPERATOR,
            "use.py": f"from torch.func import grad\n\nfrom ops import {name}\n\nslope = grad({name})\n",
        }
    )
    assert matches(
        found(), "use.py:5: CTX811 `grad` differentiates the custom operator `double`; torch raises RuntimeError"
    )


CLAMP = """\
import torch


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, most: float):
        x[x > most] = most
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


def clamp(x, most):
    return Clamp.apply(x, most)
"""


@pytest.mark.parametrize(
    ("program", "is_reported"),
    [
        ("import ops\n\n\ndef limit(layer):\n    layer.weight.data = ops.clamp(layer.weight.data, 1.0)\n", False),
        ("from ops import clamp\n\n\ndef limit(x):\n    clamp(x.detach(), 1.0)\n", False),
        ("from ops import clamp\n\n\ndef limit(x):\n    return clamp(x, 1.0)\n", True),
        ("from ops import clamp\n\n\ndef limit(x):\n    return clamp(x, x.data)\n", True),
        ("from elsewhere import clamp\n\n\ndef limit(x):\n    return clamp(x.data, 1.0)\n", True),
    ],
)
def test_what_is_passed_to_a_function_that_hands_it_on(program: str, is_reported: bool) -> None:
    write({"ops.py": CLAMP, "use.py": program})
    assert any(line.startswith("ops.py:7: CTX401") for line in found()) is is_reported
    if "elsewhere" not in program:
        alone = program.replace("from ops import clamp", "").replace("import ops", "").replace("ops.", "")
        write({"alone.py": CLAMP + alone})
        assert any(line.startswith("alone.py:7: CTX401") for line in found()) is is_reported


LEAF = """

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.limits = torch.nn.Parameter(torch.ones(3))

    def forward(self):
        return PASSED
"""


@pytest.mark.parametrize(
    ("passed", "is_marked"),
    [
        ("clamp(self.limits.view(-1)[:2], 1.0)", False),
        ("clamp(self.linear.weight, 1.0)", False),
        ("clamp(self.limits * 2, 1.0)", True),
        ("clamp(self.running_mean, self.limits)", True),
    ],
)
def test_a_leaf_that_is_passed_to_a_function_that_hands_it_on(passed: str, is_marked: bool) -> None:
    alone = CLAMP + LEAF.replace("PASSED", passed)
    write({"ops.py": CLAMP, "use.py": "import torch\n\nfrom ops import clamp\n" + LEAF.replace("PASSED", passed)})
    (in_two,) = (line for line in found() if "CTX401" in line)
    write({"ops.py": alone, "use.py": ""})
    (in_one,) = (line for line in found() if "CTX401" in line)
    assert in_one == in_two
    assert ("Call `ctx.mark_dirty(x)`" in in_one) is is_marked


PICK = """\
import torch


class Pick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs):
        count = len(xs) if isinstance(xs, tuple) else xs.shape[0]
        return xs[0] * count

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""


def test_a_tuple_that_another_file_passes_although_forward_takes_tensors_too() -> None:
    write({"ops.py": PICK, "use.py": "from ops import Pick\n\n\ndef use(x):\n    return Pick.apply(x.split(2))\n"})
    assert any(line.startswith("ops.py:6: CTX216") for line in found())
