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

from ctxlint.configuration import MOST_BYTES, PROJECT_FILE
from ctxlint.files.decode import Unreadable, read_bytes
from ctxlint.torch_versions import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SETUP_CFG = "setup.cfg"
_PROJECT_FILES = (PROJECT_FILE, _SETUP_CFG, "setup.py")
_MOST_FILES = 100
_MOST_SPECIFIERS = 50
"""A project that names more versions says nothing: each takes time, and none has that many."""


@cache
def torch_requirement(folder: str) -> tuple[str, ...]:
    """The specifiers, any of which the torch of the project around an absolute ``folder`` may meet; often just one.

    None where the project does not say it.
    """
    if not any(os.path.isfile(os.path.join(folder, name)) for name in _PROJECT_FILES):
        parent = os.path.dirname(folder)
        return () if parent == folder else torch_requirement(parent)
    places = (*_pyproject(folder), _setup_cfg(folder), _requirement_files(folder))
    found = next((found for found in map(list, places) if found), [])
    specifiers = tuple(dict.fromkeys(found))
    return specifiers if len(specifiers) <= _MOST_SPECIFIERS else ()


# The places


def _pyproject(folder: str) -> Iterator[Iterable[str]]:
    """What each table of a ``pyproject.toml`` says."""
    text = _read(folder, PROJECT_FILE)
    if "torch" not in text.lower():  # most files should not cost a TOML parser
        return
    from ctxlint.files.formats import Malformed, from_toml

    try:
        document = from_toml(text)
    except Malformed:
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
        parser.read_string(_SPACE_INSIDE.sub(" ", text))
    except Error:
        return
    yield from _specifiers(parser.get("options", "install_requires", fallback="").splitlines())


def _requirement_files(folder: str) -> Iterator[str]:
    """What the plain lines of ``requirements*.txt`` say."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in [each for each in names if re.fullmatch(r"requirements.*\.txt", each)][:_MOST_FILES]:
        yield from _specifiers(_read(folder, name).splitlines())


def _read(folder: str, name: str) -> str:
    """The text of a file; empty where there is none that can be read."""
    try:
        return read_bytes(os.path.join(folder, name), MOST_BYTES).decode("utf-8-sig", "replace")
    except Unreadable:
        return ""


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


# Their languages

_SPACE_INSIDE = re.compile(r"(?<=\S)[ \t]+")
"""Where it is long, the standard library's reader takes the square of its length in time."""
_REQUIREMENT = re.compile(r"\s*torch\s*(?:\[[^\]]*\]\s*)?\(?\s*([<>=!~][^;#)\\]*?)\s*(?:[;#)\\]|\s--|$)", re.IGNORECASE)


def _specifiers(requirements: Iterable[str]) -> Iterator[str]:
    """The versions that requirements on torch name: ``>=2.1`` of ``torch>=2.1; sys_platform == "linux"``."""
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement) if len(requirement) <= LONGEST else None
        if found:
            yield re.sub(r"\s", "", found[1])


def _poetry(value: object) -> Iterator[str]:
    """The versions that a dependency of poetry's names: a string, a table with one, or a list of such tables."""
    for each in value if isinstance(value, list) else [value]:
        text = each.get("version") if isinstance(each, dict) else each
        if isinstance(text, str) and len(text) <= LONGEST:
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
