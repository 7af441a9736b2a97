"""Exclude patterns from untrusted projects: their meaning, and that none takes long."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest
from pathspec import GitIgnoreSpec

from ctxlint.source.gitignore import IgnoreFile, without_backtracking
from ctxlint.source.globs import Globs, check_globs
from tests.growth import is_linear, is_quick

if TYPE_CHECKING:
    from collections.abc import Callable


def fits(glob: str, path: str) -> bool:
    absolute = f"/root/{path}"
    return Globs([glob], "/root").fit(absolute, absolute.rpartition("/")[2])


@pytest.mark.parametrize(
    ("glob", "fitting", "others"),
    [
        ("*.py", ["a.py", "b/a.py", ".py"], ["a.pyi", "a.py/b"]),
        ("a*b*c", ["abc", "aXbYc", "abcabc", "d/abbc"], ["acb", "abcd"]),
        ("*a*a*", ["aa", "baba"], ["ab", "a/b"]),
        ("[!a]*[ab]", ["ca", "cxb"], ["aa", "cc"]),
        ("[a-c", ["[a-c"], ["a"]),
        ("{a,b}{c,d}", ["ac", "bd"], ["ab", "c"]),
        ("x{a,b{c,d}e}y", ["xay", "xbcey", "xbdey"], ["xbey", "xy"]),
        ("x{a,*}y", ["xay", "xy", "xzy"], ["xa"]),
        ("x{a,b", ["x{a,b"], ["xa"]),
        ("{a,{b}", ["a", "b"], ["{a"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("a/*.py", ["a/b.py", "a/b/c.py"], ["b/a/c.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "ab"]),
        ("**/b/c", ["b/c", "a/b/c", "a/a/b/c"], ["xb/c", "b/x/c"]),
        ("a/**/b/**/c*d", ["a/b/cd", "a/x/b/y/cxd", "a/b/b/c/d"], ["a/c/b/d", "a/bc/d"]),
        ("./a?b/", ["axb", "a/b"], ["ab"]),
        ("../root/a/b", ["a/b"], ["b"]),
        ("/root/a", ["a"], ["b/a"]),
    ],
)
def test_what_a_glob_fits(glob: str, fitting: list[str], others: list[str]) -> None:
    check_globs([glob])
    assert [path for path in fitting if not fits(glob, path)] == []
    assert [path for path in others if fits(glob, path)] == []


@pytest.mark.parametrize("seed", range(3))
def test_stars_mean_what_they_mean_to_everybody(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(300):
        glob = "".join(choose.choice(("a", "b", "*", "*", "?", "[ab]", "[!a]")) for _ in range(choose.randint(1, 8)))
        for _ in range(10):
            name = "".join(choose.choice("abc") for _ in range(choose.randint(1, 10)))
            assert fits(glob, name) is fnmatchcase(name, glob), (glob, name)


@pytest.mark.parametrize("part", ["*a", "**/a/", "*[ab]", "*a?", "**/*/", "***"])
def test_no_glob_takes_long(part: str) -> None:
    def work(size: int) -> Callable[[], object]:
        globs = Globs([part * 20 + "b", "x/" + part * 20 + "b"], "/root")
        return lambda: globs.fit(f"/root/x/{'a/' * size}{'a' * size}", "a" * size)

    assert is_quick(work, 50, most=20)


@pytest.mark.parametrize("part", ["*a", "**/a/", "*[ab]", "*[!b]", "*a?", "a*/", "***", "**"])
@pytest.mark.parametrize("start", ["", "/x/"])
def test_no_line_of_a_gitignore_takes_long(part: str, start: str) -> None:
    def work(size: int) -> Callable[[], object]:
        name = f"{'a' * size}b.b.a"
        return lambda: IgnoreFile([f"{start}{part * 20}*b"], "/root").verdict(f"/root/x/{'a/' * size}{name}", name)

    assert is_quick(work, 50, most=20)


def test_a_long_gitignore_costs_what_its_length_says() -> None:
    def work(size: int) -> Callable[[], object]:
        lines = [f"a*{number}*b" for number in range(size)] + ["[" + "a" * size + "]*x", "/**" * size, " " * size + "x"]
        return lambda: IgnoreFile(lines, "/root").verdict("/root/a1b", "a1b")

    assert is_linear(work, 300)


@pytest.mark.parametrize("seed", range(3))
def test_patterns_without_backtracking_mean_the_same(seed: int) -> None:
    import re

    choose = random.Random(seed)
    atoms = ("a", "b", "*", "*", "?", "[ab]", "**/", "/", "/**/", "\\*", "(", "]")
    compared = 0
    for _ in range(500):
        (pattern,) = GitIgnoreSpec.from_lines(["a" + "".join(choose.choices(atoms, k=choose.randint(1, 8)))]).patterns
        found = pattern.regex
        if pattern.include is None or found is None:
            continue
        regex = without_backtracking(found.pattern)
        for _ in range(10 if regex is not None else 0):
            path = "a" + "".join(choose.choices(("a", "b", "/", "*", "("), k=choose.randint(0, 8)))
            before, after = found.search(path), re.search(regex or "", path)
            assert (before is None) is (after is None), (found.pattern, regex, path)
            compared += 1
    assert compared > 3000
