"""Which versions of Python a project supports, and what is not said about the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxlint import lint_paths
from ctxlint.config.configuration import Configuration
from ctxlint.config.python_requirement import PythonVersions
from ctxlint.run.in_project import forget_other_files


@pytest.mark.parametrize(
    ("specifier", "expected"),
    [
        (">=3.10", False),
        (">=3.9", True),
        (">=3", True),
        (">3.9", True),  # 3.9.1
        (">=3.9.7", True),
        (">=3.10.4,<3.13", False),
        ("==3.11.*", False),
        ("~=3.8", True),
        ("~=3.12", False),
        ("<3.13", True),
        ("!=3.9.*", True),
        (">=4", False),
        ("", True),
        ("new", True),
    ],
)
def test_what_is_older_than_python_3_10(specifier: str, expected: bool) -> None:
    assert PythonVersions((specifier,)).fall_below(3, 10) is expected


def test_any_of_several_and_none() -> None:
    assert PythonVersions().fall_below(3, 10)
    assert PythonVersions((">=3.10", ">=3.8")).fall_below(3, 10)
    assert not PythonVersions((">=3.10", "==3.12.*")).fall_below(3, 10)


# ---------------------------------------------------------------------------------------------------------------------
# What the project says


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_other_files()
    monkeypatch.chdir(tmp_path)


def _required(**files: str) -> tuple[str, ...]:
    """Which Python a project with these files requires; ``__`` is the dot in their names."""
    forget_other_files()
    for name, text in files.items():
        Path(name.replace("__", ".")).write_text(text, encoding="utf-8")
    return Configuration().settings_for_file("package/module.py").project_python


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[project]\nrequires-python = '>= 3.10'\n", (">=3.10",)),
        ("[project]\nname = 'python'\n", ()),
        ("[project]\nrequires-python = 3.10\n", ()),
        ("[tool.poetry.dependencies]\npython = '^3.9'\n", (">=3.9,<4",)),
        ("[tool.poetry.dependencies]\npython = '>=3.8,<3.9 || ~3.11'\n", (">=3.8,<3.9", ">=3.11,<3.12")),
        ("[project\nrequires-python = '>=3.10'\n", ()),
    ],
)
def test_pyproject(text: str, expected: tuple[str, ...]) -> None:
    assert _required(pyproject__toml=text) == expected


def test_setup_cfg_and_setup_py() -> None:
    assert _required(setup__cfg="[options]\npython_requires = >=3.8  # as tested\n") == (">=3.8",)
    assert _required(setup__cfg="[options]\npython_requires =\n    >=3.9, <4\npackages = find:\n") == (">=3.9,<4",)
    assert _required(setup__cfg="[options]\nPython_Requires = >=3.10\n\n[flake8]\nmax-line-length = 88\n") == (
        ">=3.10",
    )
    assert _required(setup__cfg="[metadata]\nname = a\n[other]\npython_requires = >=3.10\n") == ()
    _required(setup__cfg="[options]\npython_requires =\n    >=3.9, <4\npackages = find:\n")
    script = "from setuptools import setup\nOLDEST = '>=3.10'\nsetup(python_requires=OLDEST)\n"
    assert _required(setup__py=script) == (">=3.9,<4", ">=3.10")
    assert _required(pyproject__toml="[build-system]\nrequires = ['setuptools']\n") == (">=3.9,<4", ">=3.10")
    assert _required(pyproject__toml="[project]\nrequires-python = '>=3.12'\n") == (">=3.12",)
    assert Configuration(isolated=True).settings_for_file("m.py").project_python == ()


def test_a_folder_with_the_options_of_a_linter_is_no_project() -> None:
    Path("pyproject.toml").write_text("[project]\nrequires-python = '>=3.10'\n", encoding="utf-8")
    Path("package").mkdir()
    for text, expected in (("[flake8]\nmax-line-length = 88\n", (">=3.10",)), ("[metadata]\nname = package\n", ())):
        Path("package", "setup.cfg").write_text(text, encoding="utf-8")
        forget_other_files()
        assert Configuration().settings_for_file("package/module.py").project_python == expected


_OUTSIDE = """
import torch
from torch.autograd.function import once_differentiable


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @once_differentiable
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""


def test_nothing_is_said_about_a_python_that_the_project_does_not_support() -> None:
    """Also if a cache has the findings of an earlier requirement."""
    Path("module.py").write_text(_OUTSIDE, encoding="utf-8")
    for oldest, expected in ((">=3.9", True), (">=3.10", False), (">=3.8", True)):
        Path("pyproject.toml").write_text(f"[project]\nrequires-python = '{oldest}'\n", encoding="utf-8")
        forget_other_files()
        (found,) = lint_paths(["module.py"])
        assert found.code == "CTX105"
        assert ("before Python 3.10" in found.message) is expected
        assert "under `torch.compile(fullgraph=True)`" in found.message
