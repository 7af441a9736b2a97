"""CTX501's fix: the decorator on backward and its import, for all ways to import torch."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_IMPORT = "from torch.autograd.function import once_differentiable\n"
_BACKWARD = "    def backward(ctx, g):\n        return g.detach()\n"
_SPELLED = "@torch.autograd.function.once_differentiable"


def _class(backward: str, base: str = "torch.autograd.Function") -> str:
    return f"\n\nclass F({base}):\n{backward}"


def _marked(mark: str) -> str:
    return f"    @staticmethod\n    {mark}\n{_BACKWARD}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\n", f"import torch\n{_IMPORT}"),
        ("import torch.nn as nn, torch, os\n\nx = 1\n", f"import torch.nn as nn, torch, os\n{_IMPORT}\nx = 1\n"),
        ("import torch\nimport triton\n", f"import torch\nimport triton\n{_IMPORT}"),
        (
            "import torch\nimport triton\nfrom packaging import version\nfrom triton import jit\n",
            f"import torch\nimport triton\nfrom packaging import version\n{_IMPORT}from triton import jit\n",
        ),
        ("import torch\n\nimport triton\n", f"import torch\n{_IMPORT}\nimport triton\n"),
        (
            "import torch\nfrom torch.autograd.function import FunctionCtx\n",
            "import torch\nfrom torch.autograd.function import FunctionCtx, once_differentiable\n",
        ),
        (
            "import torch\nfrom torch.autograd.function import Function as F, vjp\n",
            "import torch\nfrom torch.autograd.function import Function as F, once_differentiable, vjp\n",
        ),
        (
            "import torch\nfrom torch.autograd.function import (\n    FunctionCtx,\n)\n",
            f"import torch\nfrom torch.autograd.function import (\n    FunctionCtx,\n)\n{_IMPORT}",
        ),
        ("import torch; import os  # both\n", f"import torch; import os  # both\n{_IMPORT}"),
        ("from torch import nn\nimport torch\n", f"from torch import nn\nimport torch\n{_IMPORT}"),
        (
            "import torch\nfrom torch import (\n    nn,  # layers\n)\nfrom torch.utils import data\n",
            f"import torch\nfrom torch import (\n    nn,  # layers\n)\n{_IMPORT}from torch.utils import data\n",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_import_joins_those_of_torch(before: str, after: str, ending: str) -> None:
    text = before + _class(f"    @staticmethod\n{_BACKWARD}")
    expected = after + _class(_marked("@once_differentiable"))
    assert fixed_by("CTX501", text) == text
    assert_fixed("CTX501", text.replace("\n", ending), expected.replace("\n", ending), unsafe=True)


def test_any_base_and_no_import_that_sorts_before() -> None:
    text = "from torch.nn.functional import relu\nfrom base import Base\n" + _class(_BACKWARD, "Base")
    assert fixed_by("CTX501", text, unsafe=True) == text  # Base is unknown
    head = "from torch.utils.checkpoint import CheckpointFunction\n"
    import_torch = "try:\n    import torch\nexcept ImportError:\n    torch = None\n"
    text = head + import_torch + _class(f"    @staticmethod\n{_BACKWARD}")
    assert_fixed("CTX501", text, head + _IMPORT + import_torch + _class(_marked("@once_differentiable")), unsafe=True)


@pytest.mark.parametrize(
    "head",
    [
        "import torch\n\nonce_differentiable = None\n",
        "import torch\n\ntry:\n    from torch.autograd.function import once_differentiable\nexcept ImportError:\n    pass\n",
        "import torch\n\n\ndef f():\n    from torch.autograd.function import once_differentiable\n",
        'import torch; text = """\n"""\n',
    ],
)
def test_where_the_name_is_not_to_be_had_all_of_it_is_written(head: str) -> None:
    assert_fixed(
        "CTX501", head + _class(f"    @staticmethod\n{_BACKWARD}"), head + _class(_marked(_SPELLED)), unsafe=True
    )


@pytest.mark.parametrize(
    "head",
    [
        "import torch\nfrom torch.autograd.function import once_differentiable as once\n",
        "import torch\nfrom torch.autograd.function import Function, once_differentiable as once\n",
    ],
)
def test_the_name_that_the_file_has_for_it(head: str) -> None:
    assert_fixed(
        "CTX501", head + _class(f"    @staticmethod\n{_BACKWARD}"), head + _class(_marked("@once")), unsafe=True
    )


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n" + _class(f"    @staticmethod\n{_BACKWARD}"),
        "import torch\n" + _class("    @classmethod\n    def backward(cls, ctx, g):\n        return g.detach()\n"),
        "import torch\n" + _class("    def backward(self, ctx, g):\n        return g.detach()\n"),
        "import torch; once_differentiable = torch = None\n" + _class(f"    @staticmethod\n{_BACKWARD}"),
    ],
)
def test_what_cannot_be_marked_stays(text: str) -> None:
    assert fixed_by("CTX501", text, unsafe=True) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_BACKWARD, f"    @once_differentiable\n{_BACKWARD}"),
        (
            f"    # a\n    @torch.jit.ignore\n{_BACKWARD}",
            f"    # a\n    @once_differentiable\n    @torch.jit.ignore\n{_BACKWARD}",
        ),
        (
            f"    @torch.jit.ignore\n    @staticmethod  # b\n    # c\n{_BACKWARD}",
            f"    @torch.jit.ignore\n    @staticmethod  # b\n    @once_differentiable\n    # c\n{_BACKWARD}",
        ),
        (
            "\t@staticmethod\n\tdef backward(ctx, g): return g.detach()\n",
            "\t@staticmethod\n\t@once_differentiable\n\tdef backward(ctx, g): return g.detach()\n",
        ),
    ],
)
def test_where_the_mark_goes(before: str, after: str) -> None:
    assert_fixed("CTX501", f"import torch\n{_class(before)}", f"import torch\n{_IMPORT}{_class(after)}", unsafe=True)


def test_a_whole_file_is_marked_with_one_import() -> None:
    def classes(body: str) -> str:
        return "".join(_class(body).replace("class F(", f"class F{number}(") for number in range(15))

    text = "import torch\n" + classes(f"    @staticmethod\n{_BACKWARD}")
    fixed = f"import torch\n{_IMPORT}" + classes(_marked("@once_differentiable"))
    assert_fixed("CTX501", text, fixed, unsafe=True)
