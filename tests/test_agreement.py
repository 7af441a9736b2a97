"""The whole project is analysed; paths only choose what is reported, so a file has the same findings in every run."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

import ctxlint
from ctxlint.cli import main
from ctxlint.config.configuration import Configuration
from ctxlint.config.settings import ALL, Settings
from ctxlint.editor.checking import Checker
from ctxlint.editor.documents import Document
from ctxlint.editor.workspace import Workspace
from ctxlint.flake8 import Plugin
from ctxlint.run import project_index
from ctxlint.run.in_project import forget_other_files
from ctxlint.run.pipeline import lint_paths
from ctxlint.source.modules import forget
from tests.fixture_reader import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.diagnostic import Diagnostic

Finding = tuple[int, int, str, str, object]
"""Line, column, code, message and fix."""

PROJECT = {
    "pkg/__init__.py": "from .kernels import Exp\nfrom .scale import Weighted\n\nexp = Exp.apply\n",
    "pkg/kernels.py": """
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
    """,
    "pkg/scale.py": """
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


        class Base(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, n):
                ctx.n = n
                return x * n

            @staticmethod
            def backward(ctx, g):
                return g * ctx.n


        class Patched(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, n):
                return x + n

            @staticmethod
            def backward(ctx, g):
                return g
    """,
    "pkg/fills.py": """
        import torch

        from pkg.tables import EXTENDED, HALVING


        def filled(x):
            torch.ops.demo.fill_(x)


        class Filled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y, z, mode):
                filled(x)
                HALVING[mode](y)
                EXTENDED[mode](z)
                return x + y + z

            @staticmethod
            def backward(ctx, g):
                return g, g, g, None
    """,
    "pkg/tables.py": """
        def halve(x):
            x.div_(2)


        def quarter(x):
            x.div_(4)


        HALVING = {"halve": halve, "quarter": quarter}
        EXTENDED = {"halve": halve, "quarter": quarter}
    """,
    "pkg/declares.py": """
        import torch


        @torch.library.custom_op("demo::fill_", mutates_args=("x",))
        def fill_(x: torch.Tensor) -> None:
            x.fill_(1)
    """,
    "pkg/gradient.py": """
        def keep(context, inputs, output):
            context.save_for_backward(*inputs)


        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y
    """,
    "pkg/product.py": """
        import torch


        @torch.library.custom_op("demo::product", mutates_args=())
        def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * y
    """,
    "app/registers.py": """
        import torch

        from pkg import gradient

        torch.library.register_autograd("demo::product", gradient.backward, setup_context=gradient.keep)
    """,
    "app/extend.py": """
        from pkg import tables
        from pkg.tables import HALVING

        tables.EXTENDED["double"] = lambda x: x * 2
        names = list(HALVING.keys())
    """,
    "app/inference.py": """
        from types import SimpleNamespace

        from pkg import Exp, exp


        def run(x, training):
            return exp(x, 2.0) if training else Exp.forward(SimpleNamespace(), x, 2.0)
    """,
    "app/train.py": "from pkg import Weighted\n\n\ndef f(x, w):\n    return Weighted.apply(x, w, 0.1)\n",
    "app/heirs.py": """
        from pkg.scale import Base


        class Whole(Base):
            @staticmethod
            def backward(ctx, g):
                return Base.backward(ctx, g), None


        def f(x):
            return Whole.apply(x, 2)
    """,
    "app/wrong.py": """
        import pkg
        from pkg.scale import Patched as P


        def f(x):
            return pkg.exp(x, 2.0, 3), P.apply(x)
    """,
    "app/patch.py": "from elsewhere import better\nfrom pkg.scale import Patched\n\nPatched.forward = better\n",
    "app/plain.py": "import os\n\nprint(os.sep)\n",
}


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    write(PROJECT)
    forget()
    forget_other_files()


def shown(found: Iterable[Diagnostic]) -> list[Finding]:
    return sorted((*each.span.start, each.code, each.message, each.fix) for each in found)


def whole(settings: Settings | None = None) -> dict[str, list[Finding]]:
    """The findings of a run over the whole project, by file."""
    results = lint_paths(["."], Configuration(fixed=settings or Settings()))
    return {result.path: shown(result.diagnostics) for result in results}


def test_what_the_project_finds() -> None:
    found = {path: [each[2] for each in every] for path, every in whole().items() if every}
    assert found == {
        "pkg/kernels.py": ["CTX301", "CTX203"],
        "pkg/scale.py": ["CTX203"],
        "pkg/fills.py": ["CTX401", "CTX401"],
        "pkg/gradient.py": ["CTX801", "CTX802"],
        "app/wrong.py": ["CTX701"],
    }


def _by_path(path: str) -> list[Finding]:
    (result,) = lint_paths([path], Configuration(fixed=Settings()))
    return shown(result.diagnostics)


def _by_folder(path: str) -> list[Finding]:
    results = lint_paths([os.path.dirname(path)], Configuration(fixed=Settings()))
    return next(shown(each.diagnostics) for each in results if each.path == path)


def _by_api(path: str) -> list[Finding]:
    return shown(ctxlint.lint_paths([path], Settings()))


def _by_text(path: str) -> list[Finding]:
    return shown(ctxlint.lint_source(Path(path).read_text(encoding="utf-8"), path))


def _by_editor(path: str) -> list[Finding]:
    absolute = Path(path).resolve()
    document = Document(absolute.as_uri(), absolute.read_text(encoding="utf-8"), 1, "python")
    return shown(Checker(Workspace(print, folders=(os.getcwd(),))).check(document).diagnostics)


@pytest.mark.parametrize("path", [path for path in PROJECT if path.endswith(".py")])
@pytest.mark.parametrize("way", [_by_path, _by_folder, _by_api, _by_text, _by_editor])
def test_one_file_is_found_the_same_in(path: str, way: Callable[[str], list[Finding]]) -> None:
    assert way(path) == whole()[path]


@pytest.mark.parametrize("path", [path for path in PROJECT if path.endswith(".py")])
def test_flake8_finds_the_same(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = whole()[path]
    monkeypatch.setattr(Plugin, "settings", Settings(leave_noqa=True))
    lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    found = sorted((line, column + 1, text) for line, column, text, _ in Plugin(None, lines, path).run())  # type: ignore[arg-type]
    assert found == [(line, column, f"{code} {message}") for line, column, code, message, _fix in expected]


@pytest.mark.parametrize("path", ["pkg/kernels.py", "app/wrong.py", "app/plain.py"])
@pytest.mark.parametrize("cache", [["--no-cache"], []])
def test_standard_input_is_found_the_same(
    path: str, cache: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = [(code, message) for _line, _column, code, message, _fix in whole()[path]]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))
    main([*cache, "--output-format", "json", "--stdin-filename", path, "-"])
    assert [(each["code"], each["message"]) for each in json.loads(capsys.readouterr().out)] == expected


def test_a_fix_from_standard_input_is_as_safe(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A direct call in another file makes one fix unsafe; the other is applied, in later rounds too."""
    text = Path("pkg/kernels.py").read_text(encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    main(["--fix", "--stdin-filename", "pkg/kernels.py", "-"])
    fixed = capsysbinary.readouterr().out.decode()
    assert fixed == text.replace("* ctx.scale", "* ctx.scale, None")
    assert ctxlint.fix_source(text, "pkg/kernels.py").text == fixed
    assert ctxlint.fix_source(text, "other.py").text != fixed


def test_an_editor_looks_again_when_other_files_change() -> None:
    path = Path("pkg/scale.py").resolve()
    document = Document(path.as_uri(), path.read_text(encoding="utf-8"), 1, "python")
    checker = Checker(Workspace(print, folders=(os.getcwd(),)))
    assert [each.code for each in checker.check(document).diagnostics] == ["CTX203"]
    Path("app/train.py").write_text("", encoding="utf-8")
    Path("app/heirs.py").write_text("", encoding="utf-8")
    write({"app/more.py": "from pkg.scale import Base\n\n\ndef f(x):\n    return Base.apply(x, 2)\n"})
    assert [each.code for each in checker.check(document).diagnostics] == ["CTX203"]
    forget_other_files()
    checker.refresh()
    assert [each.code for each in checker.check(document).diagnostics] == ["CTX201", "CTX203"]


@pytest.mark.parametrize("folder", ["clean", "broken"])
def test_one_by_one_as_all_together(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs as one package, whose Functions other files subclass and call with literals of every kind."""
    (tmp_path / "all" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "all")
    write({"pkg/__init__.py": ""})
    for program in programs(folder):
        name = program.path.stem
        Path(f"pkg/{name}.py").write_text(program.marked.text, encoding="utf-8")
        classes = re.findall(r"^class (\w+)", program.marked.text, re.MULTILINE)
        lines = [f"from pkg.{name} import {each}" for each in classes]
        for number, each in enumerate(classes):
            literals = ", ".join(("x", "1", "'a'", "None", "[x]", "True")[number % 6 :])
            lines += [
                f"{each}.apply({literals})",
                f"{each.lower()} = {each}.apply",
                f"{each}.forward(x)" * (number % 2),
            ]
        write({f"use_{name}.py": "\n".join(lines) + "\n"})
        heirs = "".join(f"class Sub{each}({each}):\n    pass\n" for each in classes[:1])
        write({f"sub_{name}.py": f"from pkg.{name} import {', '.join(classes) or 'torch'}\n{heirs}"})
    settings = Settings(select=(ALL,), ignore=("CTX910",))
    expected = whole(settings)
    assert sum(map(len, expected.values())) > 40
    for path, found in expected.items():
        (result,) = lint_paths([path], Configuration(fixed=settings))
        assert shown(result.diagnostics) == found


# ---------------------------------------------------------------------------------------------------------------------
# What is searched


def test_excluded_files_and_other_repositories_say_nothing() -> None:
    expected = _by_path("pkg/scale.py")
    for name in ("vendor", "ignored", "site-packages", "module"):
        write({f"{name}/use.py": "from pkg.scale import Base\n\n\ndef f(x):\n    return Base.apply(x, 2)\n"})
    Path("module/.git").mkdir()
    write({".gitignore": "/ignored\n", "ctxlint.toml": 'extend-exclude = ["vendor"]\n'})
    forget()
    (result,) = lint_paths(["pkg/scale.py"], Configuration())
    assert shown(result.diagnostics) == expected
    write({"more/use.py": "from pkg.scale import Base\n\n\ndef f(x):\n    return Base.apply(x, 2)\n"})
    (result,) = lint_paths(["pkg/scale.py"], Configuration())
    assert len(result.diagnostics) == len(expected) + 1


def test_links_are_not_followed(tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = _by_path("pkg/scale.py")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "use.py").write_text("from pkg.scale import Base\n\nBase.apply(1, 2)\n", encoding="utf-8")
    try:
        os.symlink(outside, "linked")
        os.symlink(outside / "use.py", "use.py")
        os.mkfifo("waits.py")
    except (OSError, AttributeError):
        pytest.skip("no links here")
    assert _by_path("pkg/scale.py") == expected


@pytest.mark.parametrize("limit", ["MOST_FILES", "MOST_ENTRIES", "MOST_BYTES"])
def test_in_a_project_that_is_too_large_no_fix_is_safe(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a finding reported that a subclass could resolve, unless the class itself is applied."""
    applied = "\n\ndef f(x):\n    return Weighted.apply(x, x, 2.0)\n"
    path = Path("pkg/scale.py")
    path.write_text(path.read_text(encoding="utf-8") + applied, encoding="utf-8")
    for unused in ("app/heirs.py", "app/patch.py", "app/train.py", "app/wrong.py"):
        os.remove(unused)
    codes = [(each.code, each.fix.applicability.value) for each in ctxlint.lint_paths(["pkg/scale.py"]) if each.fix]
    assert codes == [("CTX203", "safe")] * len(codes)
    assert len(codes) > 1
    monkeypatch.setattr(project_index, limit, 1)
    codes = [(each.code, each.fix.applicability.value) for each in ctxlint.lint_paths(["pkg/scale.py"]) if each.fix]
    assert codes == [("CTX203", "unsafe")]


def test_without_a_repository_the_package_is_the_project(tmp_path: Path) -> None:
    (tmp_path / ".git").rmdir()
    call = "from pkg.scale import Weighted\n\n\ndef f(x):\n    return Weighted.apply(x, x, 2)\n"
    write({"pkg/sub/__init__.py": "", "pkg/sub/use.py": call})
    forget()
    assert _by_path("pkg/scale.py")[0][2] == "CTX203"
    write({"pkg/sub/use.py": "", "above.py": call})
    assert _by_path("pkg/scale.py")[0][2] == "CTX201"
