"""Every option of ``[tool.ctxlint]``: its key, type, default, description, and parser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ctxlint.config.settings import ALL, FORMATS, is_prefix
from ctxlint.records import record
from ctxlint.rule_names import rule_names
from ctxlint.source.globs import check_globs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@record
class Option:
    """One key. ``read`` converts a TOML value to the setting; its ValueError describes what is wrong."""

    key: str
    type: str
    default: str
    example: str
    text: str
    read: Callable[[Any], Any]

    @property
    def field(self) -> str:
        """The name of the attribute of Settings."""
        return self.key.replace("-", "_")


_LONGEST_WORD = 100
"""A longer word is not a typo of any other; finding the nearest takes quadratic time."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean `X`?`` with the known word most similar to ``word``, or nothing."""
    near = nearest_of(word, known)
    return "" if near is None else f"; did you mean `{near}`?"


def nearest_of(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` is probably a typo of, if any.

    A different number is not a typo: a code has many neighbours, all equally similar.
    """
    if len(word) > _LONGEST_WORD:
        return None
    from difflib import get_close_matches

    def spelt(text: str) -> str:
        return text.lower().replace("_", "-")

    def digits(text: str) -> list[str]:
        return [each for each in text if each.isdigit()]

    by_spelling = {spelt(each): each for each in known if digits(each) == digits(word)}
    close = get_close_matches(spelt(word), by_spelling, n=1, cutoff=0.8)
    return by_spelling[close[0]] if close else None


def check_selectors(selectors: Iterable[str]) -> None:
    """Raise ValueError for a selector that is neither ``ALL`` nor a code, a prefix or a name of any rule."""
    names = rule_names()
    for each in selectors:
        if each == ALL or each in names.values():
            continue
        if not (is_prefix(each) and any(code.startswith(each) for code in names)):
            raise ValueError(f"unknown rule selector `{each}`{nearest(each, [ALL, *names, *names.values()])}")


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"expected a list of strings, got {kind_of(value)}")
    return tuple(value)


def _globs(value: object) -> tuple[str, ...]:
    globs = _strings(value)
    check_globs(globs)
    return globs


def _dotted_names(value: object) -> tuple[str, ...]:
    names = _strings(value)
    for each in names:
        parts = each.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            raise ValueError(f'expected names such as "mylib.autograd.KernelFunction", got "{each}"')
    return names


def _selectors(value: object) -> tuple[str, ...]:
    selectors = tuple(dict.fromkeys(_strings(value)))
    check_selectors(selectors)
    return selectors


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {kind_of(value)}")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a string, got {kind_of(value)}")
    return value


def _output_format(value: object) -> str:
    return check_format(_string(value))


def check_format(value: str) -> str:
    """``value`` if it is an output format; raises ValueError if not."""
    if value not in FORMATS:
        raise ValueError(f"unknown output format `{value}`{nearest(value, FORMATS)}")
    return value


def _torch(value: object) -> str:
    from ctxlint.config.torch_versions import read_target

    text = _string(value)
    read_target(text)
    return text


def _required_version(value: object) -> str:
    required = _string(value)
    version_allowed("0", required)
    return required


_LONGEST_VERSION = 1000
"""The maximum length of a version."""


def version_allowed(version: str, required: str) -> bool:
    """Whether ``version`` satisfies a list of comparisons such as ``>=0.1,<1``; a bare version means ``==``.

    Raises:
        ValueError: ``required`` is not such a list.
    """
    comparisons = {
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        ">=": lambda a, b: a >= b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        "<": lambda a, b: a < b,
    }
    met = True
    if len(required) > _LONGEST_VERSION:
        raise ValueError(f"expected at most {_LONGEST_VERSION} characters")
    for clause in required.split(","):
        found = re.fullmatch(r"\s*(==|!=|>=|<=|>|<)?\s*(\d+(?:\.\d+)*)\s*", clause)
        if found is None:
            raise ValueError(f'expected a version range such as ">=0.1,<1", got "{required}"')
        met = met and comparisons[found[1] or "=="](_release(version), _release(found[2]))
    return met


def _release(version: str) -> tuple[int, ...]:
    """``(0, 1)`` for ``0.1.0``: trailing zeros are insignificant."""
    numbers = [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _per_file_ignores(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a table of globs and lists of rules, got {kind_of(value)}")

    check_globs(value)
    read = {}
    for glob, selectors in value.items():
        try:
            read[glob] = _selectors(selectors)
        except ValueError as error:
            raise ValueError(f"`{glob}`: {error}") from None
    return read


def kind_of(value: object) -> str:
    """The type of a value from TOML, for a message."""
    if isinstance(value, list):
        strange = next((each for each in value if not isinstance(each, str)), None)
        return "a list" if strange is None else f"a list that contains {kind_of(strange)}"
    words = {bool: "a boolean", int: "a number", float: "a number", str: "a string", dict: "a table"}
    return words.get(type(value), f"a {type(value).__name__}")


OPTIONS: tuple[Option, ...] = (
    Option(
        "select",
        "list[selector]",
        "the default rules",
        'select = ["CTX2", "tensor-stashed-on-ctx"]',
        "The rules to enable. A selector is a code, a prefix of codes, the name of a rule, or `ALL`. The most\n"
        "specific selector takes precedence, and `ignore` over `select`. An empty list disables all rules.",
        _selectors,
    ),
    Option(
        "extend-select",
        "list[selector]",
        "[]",
        'extend-select = ["CTX206"]',
        "Rules to enable in addition to the default ones.",
        _selectors,
    ),
    Option("ignore", "list[selector]", "[]", 'ignore = ["CTX102"]', "Rules to disable.", _selectors),
    Option(
        "extend-ignore",
        "list[selector]",
        "[]",
        'extend-ignore = ["CTX102"]',
        "Rules to disable in addition to `ignore`.",
        _selectors,
    ),
    Option(
        "per-file-ignores",
        "dict[glob, list[selector]]",
        "{}",
        'per-file-ignores = { "tests/*" = ["CTX2"] }',
        "Rules to disable in the files that a glob matches. A glob that starts with `!` matches all other files.",
        _per_file_ignores,
    ),
    Option(
        "extend-per-file-ignores",
        "dict[glob, list[selector]]",
        "{}",
        'extend-per-file-ignores = { "tests/*" = ["CTX2"] }',
        "The same, in addition to `per-file-ignores`.",
        _per_file_ignores,
    ),
    Option(
        "fixable",
        "list[selector]",
        '["ALL"]',
        'fixable = ["CTX1"]',
        "The rules whose fixes may be applied.",
        _selectors,
    ),
    Option(
        "extend-fixable",
        "list[selector]",
        "[]",
        'extend-fixable = ["CTX401"]',
        "Rules whose fixes may be applied, in addition to `fixable`.",
        _selectors,
    ),
    Option(
        "unfixable",
        "list[selector]",
        "[]",
        'unfixable = ["CTX301"]',
        "Rules whose fixes are never applied.",
        _selectors,
    ),
    Option(
        "extend-safe-fixes",
        "list[selector]",
        "[]",
        'extend-safe-fixes = ["CTX401"]',
        "Rules whose unsafe fixes count as safe.",
        _selectors,
    ),
    Option(
        "extend-unsafe-fixes",
        "list[selector]",
        "[]",
        'extend-unsafe-fixes = ["CTX301"]',
        "Rules whose safe fixes count as unsafe.",
        _selectors,
    ),
    Option("fix", "bool", "false", "fix = true", "Apply fixes, as `--fix` does.", _boolean),
    Option("unsafe-fixes", "bool", "false", "unsafe-fixes = true", "Let `--fix` apply unsafe fixes too.", _boolean),
    Option(
        "show-fixes", "bool", "false", "show-fixes = true", "List what was fixed, as `--show-fixes` does.", _boolean
    ),
    Option(
        "exclude",
        "list[glob]",
        "the folders that ruff excludes except dist: .git, .venv, node_modules, site-packages and similar ones",
        'exclude = ["third_party"]',
        "Paths to exclude (replaces the default list). A glob without a slash matches a file or folder name at any\n"
        "level; a glob with a slash is relative to the folder of the configuration file.",
        _globs,
    ),
    Option(
        "extend-exclude",
        "list[glob]",
        "[]",
        'extend-exclude = ["third_party"]',
        "Paths to exclude in addition to `exclude`.",
        _globs,
    ),
    Option(
        "force-exclude",
        "bool",
        "false",
        "force-exclude = true",
        "Also apply excludes to files that are passed on the command line.",
        _boolean,
    ),
    Option(
        "respect-gitignore",
        "bool",
        "true",
        "respect-gitignore = false",
        "Skip files that git ignores: `.gitignore` files, `.git/info/exclude` and the user's global excludes.",
        _boolean,
    ),
    Option(
        "target-torch",
        "str",
        'the project\'s requirement on torch, otherwise ">=2.4"',
        'target-torch = ">=2.1,<2.7"',
        "The torch versions that the code supports; a bare `2.4` means `>=2.4`. A finding is reported if it applies\n"
        "to any of them, and a fix is safe if it is right for all of them. By default, the requirement comes from the\n"
        "nearest `pyproject.toml`, `setup.cfg` and `setup.py` (parsed, never run): from the dependencies, otherwise\n"
        "from the extras; otherwise from `requirements*.txt`, `requirements/*.txt`, `constraints*.txt`,\n"
        "`environment*.yml` and `conda*.yml` in the same folder. If these state several ranges, a version in any of\n"
        "them counts. Without a lower bound, the oldest version is 2.4, if the requirement allows it.",
        _torch,
    ),
    Option(
        "extra-bases",
        "list[str]",
        "[]",
        'extra-bases = ["mylib.autograd.KernelFunction"]',
        "Dotted names of classes in other packages that derive from `torch.autograd.Function`.",
        _dotted_names,
    ),
    Option(
        "output-format",
        "str",
        '"full"',
        'output-format = "concise"',
        f"The output format of findings: {', '.join(FORMATS)}.",
        _output_format,
    ),
    Option(
        "baseline",
        "str",
        ".ctxlint-baseline.json next to the configuration file, if it exists",
        'baseline = "lint/ctxlint-baseline.json"',
        "The baseline file: findings in it are not reported. `--write-baseline` creates it.",
        _string,
    ),
    Option(
        "cache-dir",
        "str",
        "ctxlint in the user's cache folder",
        'cache-dir = ".cache/ctxlint"',
        "The cache folder: next to this file or below, and used for nothing else. Cache entries are authenticated\n"
        "with a secret of the user who runs ctxlint. `ctxlint clean` removes the cache.",
        _string,
    ),
    Option(
        "required-version",
        "str",
        "not set",
        'required-version = ">=0.1"',
        "The required versions of ctxlint; any other version exits with an error.",
        _required_version,
    ),
    Option(
        "extend",
        "str",
        "not set",
        'extend = "../pyproject.toml"',
        "A configuration file to inherit from; the options of this file take precedence.",
        _string,
    ),
)

BY_KEY = {option.key: option for option in OPTIONS}
