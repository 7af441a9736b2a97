"""Facts from other files: bases, setup_context and decorators that are defined elsewhere in the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctxlint.config.settings import Settings
from ctxlint.model.index.project import Project
from ctxlint.run.in_project import forget_other_files
from ctxlint.run.lint_file import lint_source
from ctxlint.source.modules import forget
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget()
    forget_other_files()
    yield
    forget_other_files()


BASE = """
import torch


class Base(torch.autograd.Function):
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
"""

SUBCLASS = """
# autograd, Function
{imports}


class Double({base}):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""


def codes(folder: Path, files: dict[str, str], linted: str, settings: Settings | None = None) -> list[str]:
    """The codes found in one file among others."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    source = Source(str(folder / linted), files[linted])
    return [each.code for each in lint_source(source, settings or Settings())]


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("from pkg.base import Base", "Base"),
        ("from .base import Base as B", "B"),
        ("from . import base", "base.Base"),
        ("from pkg import Base", "Base"),
        ("import pkg.base", "pkg.base.Base"),
        ("import pkg.base as b", "b.Base"),
        ("from pkg import *", "Base"),
        ("try:\n    from pkg.base import Base\nexcept ImportError:\n    from .base import Base", "Base"),
    ],
)
def test_a_base_in_another_file(tmp_path: Path, imports: str, base: str) -> None:
    """forward takes ctx although the base in another file has setup_context."""
    files = {
        "pkg/__init__.py": "from .base import *\nfrom .base import Base\n",
        "pkg/base.py": BASE,
        "pkg/double.py": SUBCLASS.format(imports=imports, base=base),
    }
    assert codes(tmp_path, files, "pkg/double.py") == ["CTX103"]


def test_several_levels_and_a_cycle(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/base.py": BASE,
        "pkg/middle.py": "from pkg.base import Base\nfrom pkg.double import Double\n\n\nclass Middle(Base):\n    pass\n",
        "pkg/double.py": SUBCLASS.format(imports="from pkg.middle import Middle", base="Middle"),
    }
    assert codes(tmp_path, files, "pkg/double.py") == ["CTX103"]


def test_the_src_layout_from_a_test(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/base.py": BASE,
        "tests/test_double.py": SUBCLASS.format(imports="from pkg.base import Base", base="Base"),
    }
    assert codes(tmp_path, files, "tests/test_double.py") == ["CTX103"]


@pytest.mark.parametrize("imports", ["from pkg.sub.base import Base", "from pkg import Base"])
def test_a_module_named_like_its_package(tmp_path: Path, imports: str) -> None:
    """An absolute import means the package around the file, not the module ``pkg.pkg``."""
    files = {
        "pkg/__init__.py": "from .sub.base import Base\n",
        "pkg/pkg.py": "",
        "pkg/sub/__init__.py": "",
        "pkg/sub/base.py": BASE,
        "pkg/sub/double.py": SUBCLASS.format(imports=imports, base="Base"),
    }
    (tmp_path / "pyproject.toml").touch()
    assert codes(tmp_path, files, "pkg/sub/double.py") == ["CTX103"]


def test_a_package_named_like_another_one_further_up(tmp_path: Path) -> None:
    """The nearest ``models`` has none of the modules of the name; that around it has."""
    files = {
        "models/net/sparse/lib/base.py": BASE,
        "models/net/sparse/models/__init__.py": "",
        "models/net/sparse/models/double.py": SUBCLASS.format(
            imports="from models.net.sparse.lib.base import Base", base="Base"
        ),
    }
    (tmp_path / "pyproject.toml").touch()
    assert codes(tmp_path, files, "models/net/sparse/models/double.py") == ["CTX103"]


def test_a_module_named_like_a_folder_above_that_is_no_package(tmp_path: Path) -> None:
    files = {
        "scripts/base/base.py": BASE,
        "scripts/base/double.py": SUBCLASS.format(imports="from base import Base", base="Base"),
    }
    (tmp_path / "pyproject.toml").touch()
    assert codes(tmp_path, files, "scripts/base/double.py") == ["CTX103"]


@pytest.mark.parametrize("imports", ["from elsewhere.base import Base", "from .missing import Base"])
def test_a_base_that_cannot_be_followed_is_unknown(tmp_path: Path, imports: str) -> None:
    files = {"pkg/__init__.py": "", "pkg/double.py": SUBCLASS.format(imports=imports, base="Base")}
    assert codes(tmp_path, files, "pkg/double.py") == []


def test_a_base_that_the_configuration_names(tmp_path: Path) -> None:
    text = """
# autograd, Function
import torch
from elsewhere.base import Base


class Square(Base):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2 * ctx.saved_variables[0]
"""
    assert codes(tmp_path, {"a.py": text}, "a.py") == []
    settings = Settings(extra_bases=("elsewhere.base.Base",))
    assert codes(tmp_path, {"a.py": text}, "a.py", settings) == ["CTX601"]


DECORATED = """
import torch
from .wrappers import {name}


class Double(torch.autograd.Function):
    @staticmethod
    @{name}
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    @{name}
    def backward(ctx, grad_output, surplus):
        return grad_output * 2, None
"""

WRAPPERS = """
import functools


def contiguous(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args, **kwargs):
        args = [each.contiguous() for each in args]
        return fn(ctx, *args, **kwargs)

    return wrapper


def guard(fn=None, *, skip=False):
    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            processed = []
            for number, each in enumerate(args):
                processed.append(each)
            with fn.device:
                return fn(*processed, **kwargs)

        return wrapper

    if fn is not None:
        return decorator(fn)
    return decorator


def drops_the_last(fn):
    def wrapper(ctx, *args):
        args = args[:-1]
        return fn(ctx, *args)

    return wrapper


def some(fn):
    def wrapper(ctx, *args):
        args = [each for each in args if each is not None]
        return fn(ctx, *args)

    return wrapper
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("contiguous", ["CTX205"]), ("guard", ["CTX205"]), ("drops_the_last", []), ("some", []), ("missing", [])],
)
def test_a_decorator_in_another_file(tmp_path: Path, name: str, expected: list[str]) -> None:
    """Counts are checked only if the decorator passes every argument on."""
    files = {"pkg/__init__.py": "", "pkg/wrappers.py": WRAPPERS, "pkg/double.py": DECORATED.format(name=name)}
    assert codes(tmp_path, files, "pkg/double.py") == expected


def test_a_file_that_another_has_led_to_is_linted_as_it_is_now(tmp_path: Path) -> None:
    base = SUBCLASS.format(imports="import torch", base="torch.autograd.Function")
    files = {"base.py": base, "sub.py": SUBCLASS.format(imports="from base import Double as Base", base="Base")}
    codes(tmp_path, files, "sub.py")
    unchanged = lint_source(Source(str(tmp_path / "base.py"), base), Settings())
    changed = lint_source(Source(str(tmp_path / "base.py"), base.replace("grad_output * 2", "(1, 2)")), Settings())
    assert [each.code for each in unchanged] == []
    assert "CTX202" in [each.code for each in changed]


def test_module_of_a_package_does_not_hide_one_of_python(tmp_path: Path) -> None:
    """``typing`` is Python's, although a package further up has a module of that name."""
    double = SUBCLASS.format(imports="import torch\nfrom typing import no_type_check", base="torch.autograd.Function")
    double = double.replace(
        "    @staticmethod\n    def backward", "    @no_type_check\n    @staticmethod\n    def backward"
    )
    files = {"lib/__init__.py": "", "lib/typing.py": "", "lib/ops/__init__.py": "", "lib/ops/double.py": double}
    assert codes(tmp_path, files, "lib/ops/double.py") == []
    script = {
        "typing.py": "def no_type_check(function):\n    return lambda *args: function(*args)\n",
        "double.py": double,
    }
    assert "CTX105" in codes(tmp_path / "scripts", script, "double.py")


def test_package_with_the_name_of_torch_inside_another_does_not_hide_torch(tmp_path: Path) -> None:
    """``import torch`` in ``lib.torch.ops`` is PyTorch; only a top-level package of that name hides it."""
    double = SUBCLASS.format(imports="import torch", base="torch.autograd.Function")
    double = double.replace("return grad_output * 2", "return torch.linear(grad_output, grad_output)")
    names = ("__init__.py", "torch/__init__.py", "torch/ops/__init__.py")
    files = {**{f"lib/{name}": "" for name in names}, "lib/torch/ops/double.py": double}
    assert codes(tmp_path, files, "lib/torch/ops/double.py") == ["CTX604"]
    own = {"torch/__init__.py": "def linear(x, y): ...\n", "double.py": double}
    assert codes(tmp_path / "own", own, "double.py") == []


@pytest.mark.parametrize(
    ("helpers", "found"),
    [
        ("def helper(x):\n    return x\n", True),
        ("def helper(x):\n    return x\n\n\nsize = 2\n", False),
        ("from .more import *\n\n\ndef helper(x):\n    return x\n", True),
        ("from math import *\n\n\ndef helper(x):\n    return x\n", False),
        ("from outside import *\n\n\ndef helper(x):\n    return x\n", False),
        ("def helper(x):\n    return x\n\n\nfor name in ('size',):\n    globals()[name] = 2\n", False),
        ("def helper(x):\n    return x\n\n\nif helper is None:\n    from sizes import size\n", False),
        ("from tools import load\n\n\ndef helper(x):\n    return x\n\n\nload('lib.helpers')\n", False),
        ("from tools import load\n\n\ndef helper(x):\n    return x\n\n\nload('lib.others')\n", True),
    ],
)
def test_name_that_no_star_import_binds(tmp_path: Path, helpers: str, found: bool) -> None:
    """The names of a file of the project are known, also where it is star-imported."""
    double = SUBCLASS.format(imports="import torch\nfrom .helpers import *", base="torch.autograd.Function")
    double = double.replace("return x * 2", "return helper(x) * size")
    files = {"lib/__init__.py": "", "lib/helpers.py": helpers, "lib/more.py": "", "lib/double.py": double}
    assert ("CTX223" in codes(tmp_path, files, "lib/double.py")) is found


@pytest.mark.parametrize("first", ["linted", "imported"])
@pytest.mark.parametrize("is_relative", [False, True])
def test_a_file_that_is_linted_and_imported_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, is_relative: bool
) -> None:
    """Then its functions are walked once for both."""
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "ops.py")
    project = Project(lambda name: Source(name, BASE))
    project.linted_unit(Source("main.py" if is_relative else str(tmp_path / "main.py"), "import ops\n"))
    own = Source("ops.py" if is_relative else path, BASE)
    if first == "linted":
        assert project.linted_unit(own) is project.unit(path)
    else:
        assert project.unit(path) is project.linted_unit(own)
