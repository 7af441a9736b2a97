"""What a project itself says about the torch that it runs on: the default of ``target-torch``.

The nearest folder with a ``pyproject.toml``, a ``setup.cfg`` or a ``setup.py`` is the project. Its files are asked one
after the other, and the first that names versions of torch answers. Markers are not looked at: where a requirement
differs by platform, any of its versions counts. Nothing is raised: what cannot be read says nothing, and what is wrong
with a ``pyproject.toml`` is for others to say.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from ctxlint.configuration import PROJECT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SETUP_CFG = "setup.cfg"
_PROJECT_FILES = (PROJECT_FILE, _SETUP_CFG, "setup.py")


@cache
def torch_requirement(folder: str) -> tuple[str, ...]:
    """The specifiers, any of which the torch of the project around an absolute ``folder`` may meet; often just one.

    None where the project does not say it.
    """
    if not any(os.path.isfile(os.path.join(folder, name)) for name in _PROJECT_FILES):
        parent = os.path.dirname(folder)
        return () if parent == folder else torch_requirement(parent)
    places = (*_pyproject(folder), _setup_cfg(folder), _requirement_files(folder))
    return next((tuple(dict.fromkeys(found)) for found in map(list, places) if found), ())


# The places


def _pyproject(folder: str) -> Iterator[Iterable[str]]:
    """What each table of a ``pyproject.toml`` says."""
    text = _read(folder, PROJECT_FILE)
    if "torch" not in text.lower():  # most files should not cost a TOML parser
        return
    from ctxlint.configuration_file import toml

    try:
        document: dict[str, Any] = toml().loads(text)
    except ValueError:
        return
    project = _table(document.get("project"))
    yield _specifiers(_strings(project.get("dependencies")))
    extras = _table(project.get("optional-dependencies"))
    yield _specifiers(requirement for extra in extras.values() for requirement in _strings(extra))
    poetry = _table(_table(document.get("tool")).get("poetry"))
    yield _poetry(_table(poetry.get("dependencies")).get("torch"))


def _setup_cfg(folder: str) -> Iterator[str]:
    text = _read(folder, _SETUP_CFG)
    if "torch" not in text.lower():
        return
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except Error:
        return
    yield from _specifiers(parser.get("options", "install_requires", fallback="").splitlines())


def _requirement_files(folder: str) -> Iterator[str]:
    """What the plain lines of ``requirements*.txt`` say."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if re.fullmatch(r"requirements.*\.txt", name):
            yield from _specifiers(_read(folder, name).splitlines())


def _read(folder: str, name: str) -> str:
    """The text of a file; empty where there is none that can be read."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8-sig", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


# Their languages

_REQUIREMENT = re.compile(r"\s*torch\s*(?:\[[^\]]*\]\s*)?\(?\s*([<>=!~][^;#)\\]*?)\s*(?:[;#)\\]|\s--|$)", re.IGNORECASE)


def _specifiers(requirements: Iterable[str]) -> Iterator[str]:
    """The versions that requirements on torch name: ``>=2.1`` of ``torch>=2.1; sys_platform == "linux"``."""
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found:
            yield re.sub(r"\s", "", found[1])


def _poetry(value: object) -> Iterator[str]:
    """The versions that a dependency of poetry's names: a string, a table with one, or a list of such tables."""
    for each in value if isinstance(value, list) else [value]:
        text = each.get("version") if isinstance(each, dict) else each
        if isinstance(text, str):
            for alternative in re.split(r"\|\|?", text):
                clauses = [_from_poetry(clause.strip()) for clause in alternative.split(",")]
                if any(clauses):
                    yield ",".join(filter(None, clauses))


def _from_poetry(clause: str) -> str:
    """A clause as PEP 440 has it: ``>=2.1,<3`` for ``^2.1``, ``>=2.1,<2.2`` for ``~2.1``, ``==2.1`` for ``2.1``."""
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
