"""The torch versions that a project itself requires: the default of ``target-torch``.

The nearest folder with a ``pyproject.toml``, ``setup.py``, ``.git``, or a ``setup.cfg`` of a package is the project.
Its install requirements take precedence; if they have no version of torch, its extras count, then the files that
define environments. Of several requirements any one may apply, so the oldest version counts: markers and platforms are
ignored. Nothing is executed.
"""

from __future__ import annotations

import os
import re
from itertools import chain, islice
from typing import TYPE_CHECKING

from ctxlint.config.project_files import PROJECT_FILE, nearest, project_tables, read_text, table
from ctxlint.config.torch_versions import LONGEST
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SETUP_CFG = "setup.cfg"
SETUP_PY = "setup.py"
_MARKS = (PROJECT_FILE, SETUP_PY, ".git")
_OF_A_PACKAGE = pattern(r"^\[(?:metadata|options)\b", re.MULTILINE)
_MOST_FILES = 100
_MOST_LINES = 5_000
"""A ``setup.cfg`` with more is ignored: the standard library's parser needs time quadratic in the number of errors."""
_MOST_REQUIREMENTS = 1_000
_MOST_SPECIFIERS = 50
"""A project with more specifiers counts as having none: each takes time, and no real one has that many."""


class _TorchSpecifiers(NamedTuple):
    """The torch specifiers in one file, ordered by how directly they apply to the package."""

    required: Iterable[str] = ()
    extras: Iterable[str] = ()


def torch_requirement(folder: str) -> tuple[str, ...]:
    """The torch specifiers of the project around an absolute ``folder``, any of which may apply; often just one.

    Empty if the project has none.
    """
    return nearest(folder, torch_requirements, _own_requirement, tuple)


torch_requirements: dict[str, tuple[str, ...]] = {}
"""The results of ``torch_requirement``, by folder."""


def is_project(folder: str) -> bool:
    """Whether a folder is that of a project: a ``setup.cfg`` may have nothing but the options of a linter."""
    if any(os.path.exists(os.path.join(folder, name)) for name in _MARKS):
        return True
    found = os.path.exists(os.path.join(folder, SETUP_CFG))
    return found and _OF_A_PACKAGE.search(read_text(folder, SETUP_CFG)) is not None


def _own_requirement(folder: str) -> tuple[str, ...] | None:
    """The specifiers of a project with this folder; None if it is not the folder of a project."""
    if not is_project(folder):
        return None
    sources = (_pyproject(folder), _setup_cfg(folder), _setup_py(folder))
    places: tuple[Iterable[Iterable[str]], ...] = (
        (each.required for each in sources),
        (each.extras for each in sources),
        (_environments(folder),),
    )
    every = (tuple(dict.fromkeys(islice(chain(*place), _MOST_REQUIREMENTS))) for place in places)
    specifiers = next((found for found in every if found), ())
    return specifiers if len(specifiers) <= _MOST_SPECIFIERS else ()


# Sources


def _pyproject(folder: str) -> _TorchSpecifiers:
    document = project_tables(folder)
    project = table(document.get("project"))
    poetry = table(table(document.get("tool")).get("poetry"))
    optional = (table(project.get("optional-dependencies")), table(document.get("dependency-groups")))
    return _TorchSpecifiers(
        (
            *_specifiers(_strings(project.get("dependencies"))),
            *from_poetry(table(poetry.get("dependencies")).get("torch")),
        ),
        tuple(_specifiers(each for extras in optional for extra in extras.values() for each in _strings(extra))),
    )


def _setup_cfg(folder: str) -> _TorchSpecifiers:
    text = read_text(folder, SETUP_CFG)
    if "torch" not in text.lower() or text.count("\n") > _MOST_LINES:
        return _TorchSpecifiers()
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(_SPACE_INSIDE.sub(" ", text))
    except Error:
        return _TorchSpecifiers()
    extras = parser["options.extras_require"].values() if parser.has_section("options.extras_require") else ()
    return _TorchSpecifiers(
        tuple(_specifiers(parser.get("options", "install_requires", fallback="").splitlines())),
        tuple(_specifiers(line for extra in extras for line in extra.splitlines())),
    )


def _setup_py(folder: str) -> _TorchSpecifiers:
    text = read_text(folder, SETUP_PY)
    if "torch" not in text.lower():
        return _TorchSpecifiers()
    from ctxlint.config.setup_script import setup_arguments

    found = setup_arguments(text)
    return _TorchSpecifiers(tuple(_specifiers(found.install_requires)), tuple(_specifiers(found.extras_require)))


_REQUIREMENTS = pattern(r"(?:requirements|constraints).*\.txt")
_CONDA = pattern(r"(?:environment|conda).*\.ya?ml")


def _environments(folder: str) -> Iterator[str]:
    """The specifiers in the plain lines of requirement files, constraint files and conda environments."""
    pinned = [(folder, name) for name in _names(folder) if _REQUIREMENTS.fullmatch(name) or _CONDA.fullmatch(name)]
    below = os.path.join(folder, "requirements")
    pinned += [(below, name) for name in _names(below) if name.endswith(".txt")]
    for where, name in pinned[:_MOST_FILES]:
        lines = read_text(where, name).splitlines()
        yield from _specifiers(lines) if name.endswith(".txt") else _conda(lines)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


# Formats

_SPACE_INSIDE = pattern(r"(?<=\S)[ \t]+")
"""The standard library's parser needs time quadratic in the length of such whitespace."""
_REQUIREMENT = pattern(r"\s*torch\s*(?:\[[^\]]*\]\s*)?\(?\s*([<>=!~][^;#)\\]*?)\s*(?:[;#)\\]|\s--|$)", re.IGNORECASE)


def _specifiers(requirements: Iterable[str]) -> Iterator[str]:
    """The versions in requirements on torch: ``>=2.1`` for ``torch>=2.1; sys_platform == "linux"``."""
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement) if len(requirement) <= LONGEST else None
        if found:
            yield re.sub(r"\s", "", found[1])


_CONDA_ITEM = pattern(r"""\s*-\s*["']?(?:[\w./-]+::)?(?:pytorch(?:-[cg]pu)?)\b(?!-)\s*([^"'#]*)""")


def _conda(lines: Iterable[str]) -> Iterator[str]:
    """The versions of pytorch, or of torch from pip, in list items: ``- pytorch=2.1``."""
    for line in lines:
        if len(line) > LONGEST:
            continue
        item = re.match(r"""\s*-\s*["']?(torch\b(?!-)[^"']*)""", line)
        if item:
            yield from _specifiers([item[1]])
        item = _CONDA_ITEM.match(line)
        for alternative in item[1].split("|") if item else ():
            specifier = ",".join(filter(None, map(_from_conda, alternative.split(","))))
            if specifier:
                yield specifier


def _from_conda(clause: str) -> str:
    """A conda clause in PEP 440: ``==2.1.*`` for ``=2.1``, with and without a build after it."""
    found = re.match(r"\s*(==|>=|<=|!=|~=|<|>|=|)\s*(\d+(?:\.\d+)*)((?:\.?\*)?)", clause)
    if found is None:
        return ""
    operator, version = found[1], found[2]
    if operator in ("", "="):
        exact = not operator or version.count(".") > 1
        return f"=={version}" if exact and not found[3] else f"=={version}.*"
    return f"{operator}{version}{'.*' if found[3] and operator in ('==', '!=') else ''}"


def from_poetry(value: object) -> Iterator[str]:
    """The versions in a dependency of poetry: a string, a table with one, or a list of such tables."""
    for each in value if isinstance(value, list) else [value]:
        text = each.get("version") if isinstance(each, dict) else each
        if isinstance(text, str) and len(text) <= LONGEST:
            for alternative in re.split(r"\|\|?", text):
                clauses = [_clause_of_poetry(clause.strip()) for clause in alternative.split(",")]
                if any(clauses):
                    yield ",".join(filter(None, clauses))


def _clause_of_poetry(clause: str) -> str:
    """A poetry clause in PEP 440: ``>=2.1,<3`` for ``^2.1``, ``>=2.1,<2.2`` for ``~2.1``, ``==2.1`` for ``2.1``."""
    found = re.fullmatch(r"([~^]|)\s*v?(\d+(?:\.\d+)*)((?:\.\*)?)", clause)
    if found is None:
        return "" if clause == "*" else clause
    operator, version = found[1], found[2]
    if not operator:
        return f"=={version}{found[3]}"
    numbers = [int(number) for number in version.split(".")]
    if operator == "~":
        fixed = min(len(numbers), 2)
    else:
        fixed = next((at for at, number in enumerate(numbers, start=1) if number), len(numbers))
    following = [*numbers[: fixed - 1], numbers[fixed - 1] + 1]
    return f">={version},<{'.'.join(map(str, following))}"
