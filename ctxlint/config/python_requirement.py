"""The Python versions that a project itself requires: ``requires-python``, and its older forms.

The project is the same as that of the torch requirement. What ``pyproject.toml`` states takes precedence over
``setup.cfg`` and ``setup.py``. Nothing is executed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ctxlint.config.project_files import nearest, project_tables, read_text, table
from ctxlint.config.torch_requirement import SETUP_CFG, SETUP_PY, from_poetry, is_project
from ctxlint.config.torch_versions import LONGEST, is_too_long
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_SPECIFIERS = 50
_PYTHON_REQUIRES = "python_requires"
_SECTION = pattern(r"^\[(?:options|metadata)\][^\n]*\n((?:(?!\[)[^\n]*\n?)*)", re.MULTILINE)
_IN_SETUP_CFG = pattern(r"^python[_-]requires[ \t]*[=:][ \t]*(?:\n[ \t]+)?([^\n#;]+)", re.MULTILINE | re.IGNORECASE)


def python_requirement(folder: str) -> tuple[str, ...]:
    """The Python specifiers of the project around an absolute ``folder``, any of which may apply; often just one.

    Empty if the project has none.
    """
    return nearest(folder, python_requirements, _own_requirement, tuple)


python_requirements: dict[str, tuple[str, ...]] = {}
"""The results of ``python_requirement``, by folder."""


def _own_requirement(folder: str) -> tuple[str, ...] | None:
    """The specifiers of a project with this folder; None if it is not the folder of a project."""
    if not is_project(folder):
        return None
    found = _pyproject(project_tables(folder)) or (*_setup_cfg(folder), *_setup_py(folder))
    specifiers = tuple(dict.fromkeys(re.sub(r"\s", "", each) for each in found if len(each) <= LONGEST))
    return specifiers if len(specifiers) <= _MOST_SPECIFIERS else ()


def _pyproject(document: dict[str, Any]) -> tuple[str, ...]:
    stated = table(document.get("project")).get("requires-python")
    if isinstance(stated, str):
        return (stated,)
    poetry = table(table(document.get("tool")).get("poetry"))
    return tuple(from_poetry(table(poetry.get("dependencies")).get("python")))


def _setup_cfg(folder: str) -> Iterator[str]:
    text = read_text(folder, SETUP_CFG)
    if "requires" in text.lower():
        yield from (each for section in _SECTION.findall(text) for each in _IN_SETUP_CFG.findall(section))


def _setup_py(folder: str) -> tuple[str, ...]:
    text = read_text(folder, SETUP_PY)
    if _PYTHON_REQUIRES not in text:
        return ()
    from ctxlint.config.setup_script import setup_arguments

    return setup_arguments(text).python_requires


@record
class PythonVersions:
    """The versions of Python 3 that satisfy any of ``specifiers``, in PEP 440 syntax; without any, every version."""

    specifiers: tuple[str, ...] = ()

    def fall_below(self, major: int, minor: int) -> bool:
        """Whether any of the versions is, or is not known not to be, older than ``major.minor``."""
        return not self.specifiers or any(_falls_below(each, (major, minor)) for each in self.specifiers)


_AT_LEAST = pattern(r">=(\d+)(?:\.(\d+))?(?:\.\d+)*")
"""The most frequent form, which needs no package to parse."""
_MOST_MICROS = 30
"""More than any version of Python has had."""


@lru_cache(maxsize=64)
def _falls_below(specifier: str, limit: tuple[int, int]) -> bool:
    """Whether a version older than ``limit`` satisfies the specifier, or it is invalid."""
    if is_too_long(specifier):
        return True
    at_least = _AT_LEAST.fullmatch(specifier)
    if at_least:
        return (int(at_least[1]), int(at_least[2] or 0)) < limit
    from packaging.specifiers import SpecifierSet

    try:
        clauses = SpecifierSet(specifier)
    except ValueError:
        return True
    major, minors = limit
    older = (f"{major}.{minor}.{micro}" for minor in range(minors) for micro in range(_MOST_MICROS))
    return any(map(clauses.contains, older))
