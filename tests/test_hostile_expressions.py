"""Every regular expression of ctxlint takes linear time on hostile text."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import ctxlint
from ctxlint.config.configuration import read_configuration
from ctxlint.config.options import version_allowed
from ctxlint.config.project_files import ConfigurationError
from ctxlint.config.python_requirement import PythonVersions, python_requirement, python_requirements
from ctxlint.config.torch_requirement import torch_requirement, torch_requirements
from ctxlint.config.torch_versions import read_target
from tests.growth import is_quick
from tests.test_hostile_input import FUNCTION, notebook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("line", ["a ", "a.\n", " ", '"', "'", '"a" ', "[", "[a ", "[ [", "a=", "=", "[a.", "\\"])
def test_the_place_of_a_mistake_is_found_soon(tmp_path: Path, line: str) -> None:
    def work(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.toml"
        path.write_text(f"x = 1\ny = '''\n{line.replace(chr(39), chr(34)) * size}x\n'''\n")

        def fails() -> None:
            with pytest.raises(ConfigurationError, match="unknown key `x`"):
                read_configuration(path)

        return fails

    assert is_quick(work, 2000, most=12)


@pytest.mark.parametrize("text", [">=2.1,", "!=2.1.*,", ">", " ", "1.", "1.1.1.1rc", "==1.1.*", "a", "1+a.", "0!"])
def test_versions_that_a_configuration_asks_for(text: str) -> None:
    def work(size: int) -> Callable[[], object]:
        def reads() -> None:
            for read in (read_target, lambda given: version_allowed("0.1", given)):
                with suppress(ValueError):
                    read(text * size + "2.1")

        return reads

    assert is_quick(work, 5, most=40)
    assert is_quick(work, 1000, most=6)


@pytest.mark.parametrize(
    "text",
    ["torch>{}x", "torch{}x", "torch[{}", "torch({}", "torch>=2{},<3", "torch>=2 ;{}", "{}torch>2", "torch>{}--"],
)
@pytest.mark.parametrize("fill", [" ", "1", "1.", "[", "\t", ",", "=="])
def test_requirements(tmp_path: Path, text: str, fill: str) -> None:
    def work(size: int) -> Callable[[], object]:
        folder = tmp_path / str(size)
        folder.mkdir(exist_ok=True)
        line = text.format(fill * size)
        (folder / "setup.cfg").write_text(f"[options]\n{line}\n  {line}\n[x]\na = b{fill * size}c\n")
        (folder / "requirements.txt").write_text(f"{line}\n")

        def reads() -> object:
            torch_requirements.clear()
            return torch_requirement(str(folder))

        return reads

    assert is_quick(work, 2000, most=12)


@pytest.mark.parametrize(
    "line", ["python_requires{}x", "python_requires ={}\n", "python_requires=\n{}", "{}=", "p{}\n"]
)
@pytest.mark.parametrize("fill", [" ", "\n", "=", "\t", "#", ">=3,", "\n python_requires="])
def test_requirements_of_python(tmp_path: Path, line: str, fill: str) -> None:
    def work(size: int) -> Callable[[], object]:
        folder = tmp_path / str(size)
        folder.mkdir(exist_ok=True)
        (folder / "setup.cfg").write_text(line.format(fill * size))

        def reads() -> object:
            python_requirements.clear()
            return PythonVersions(python_requirement(str(folder))).fall_below(3, 10)

        return reads

    assert is_quick(work, 2000, most=12)


def test_a_project_that_names_many_versions_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    for count, expected in ((50, 50), (51, 0)):
        (tmp_path / "requirements.txt").write_text("".join(f"torch=={number}.0\n" for number in range(count)))
        torch_requirements.clear()
        assert len(torch_requirement(str(tmp_path))) == expected


@pytest.mark.parametrize(
    "fill",
    [
        "#noqa",
        "# noqa:",
        "# noqa: CTX101",
        "# noqa: A1,",
        "# noqa: A1A1 ,",
        "# ctxlint",
        "# ctxlint: ignore[",
        "# ctxlint: ignore[a,",
        "# ctxlint: ignore[CTX101]",
        "# ctxlint: noqa",
        "# ctxlint:",
        "#",
        "# ",
        "#\t",
        "A1",
        "CTX",
        " ,",
        "#ctxlint=",
    ],
)
def test_comments(fill: str) -> None:
    def work(size: int) -> Callable[[], object]:
        line = fill * size
        text = f"{FUNCTION}x = 1  # noqa: {line}\n{line}\n# ctxlint: {line}\n"
        text = text.replace("def forward(ctx, x):", f"def forward(ctx, x):  # noqa {line}")
        return lambda: ctxlint.lint_source(text, settings=ctxlint.Settings(extend_select=("CTX910",)))

    assert is_quick(work, 300, most=14)


@pytest.mark.parametrize(
    "fill",
    ["a.", "a ", "a,", "x[1", "x[", "[1]", "a:", "a: b", " ", "?", "? ", "!", "%", "%%", "\\", "\\\n", "(", '"', "'", '"""',
     '"\\', "#", "=", "a=", "_", "__ ", "!a\\\n", "(?\n", "x?\n", "x = !a\n"],
)  # fmt: skip
def test_magics_of_notebooks(fill: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = notebook(f"{FUNCTION}\n", f"{fill * size}", f"x = 1\n{fill * size}\n", f"a{fill * size}=!x\n")
        return lambda: ctxlint.lint_source(text, "a.ipynb")

    assert is_quick(work, 300, most=14)


@pytest.mark.parametrize(
    "fill",
    ["(", "[(", "{", "'", '"', "'''", '"""', "f'", "f'{", "f'{x:", "f'''{", "f'{x:{", "rb'", "t'{", "\\", "\\\n", "'\\", "'\\\n",
     "l", "lambda", "lambda:", "lambda x=", "else", "elif x:\n", "@", "@x\n", "\\N{", "f'\\N{", "#", "\r", "\f", "x;", "import ",
     "import(", "import(\n", "from x import ", "\\\nimport", "class A(Function):\n", "def forward"],
)  # fmt: skip
def test_code(fill: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = f"{FUNCTION}\n{fill * size}\nx  # noqa\n"
        return lambda: ctxlint.lint_source(text)

    assert is_quick(work, 300, most=14)
