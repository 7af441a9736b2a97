"""The line length of a project, from the configuration of its formatter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxlint.config.configuration import Configuration
from ctxlint.run.in_project import forget_other_files


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_other_files()
    monkeypatch.chdir(tmp_path)
    Path("package").mkdir()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, 100),
        ({"pyproject.toml": "[tool.black]\nline-length = 100\n"}, 100),
        ({"pyproject.toml": "[tool.black]\nline-length = 100\n[tool.ruff]\nline-length = 120\n"}, 100),
        (
            {"pyproject.toml": "[tool.black]\nline-length = 100\n[tool.ruff]\nline-length = 120\n[tool.ruff.format]\n"},
            120,
        ),
        ({"ruff.toml": "line-length = 79\n", "pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, 79),
        ({".ruff.toml": "[lint]\n", "pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n", "package/pyproject.toml": "[tool.ruff]\n"}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n", "package/pyproject.toml": "[project]\n"}, 100),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 'long'\n"}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = true\n"}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = -1\n"}, 88),
        ({"pyproject.toml": "[tool.ruff\nline-length = 100\n"}, 88),
        ({"pyproject.toml": "tool = 'ruff'\n"}, 88),
    ],
)
def test_the_nearest_formatter(files: dict[str, str], expected: int) -> None:
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    assert Configuration().settings_for_file("package/module.py").line_length == expected
