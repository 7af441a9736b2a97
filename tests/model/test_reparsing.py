"""Parsing again only what has changed gives the tree that parsing the whole gives."""

from __future__ import annotations

import ast
import random
import re
from functools import cache
from pathlib import Path

import pytest

from ctxlint.model.index.reparsing import reparsed

FILES = sorted((Path(__file__).parents[2] / "ctxlint" / "model").glob("*/*.py"))[::7]
ODD = '''
class Odd:
    x = 1; y = 2
    if x: z = 3
    elif y:
        z = 4
    else:
        z = 5

    @decorated
    def method(
        self, a
    ): return a

    def other(self):
        """Text
    with lines."""
        try:
            a = (1,
                 2)
        except ValueError: pass
        except (TypeError,
                KeyError):
            b = """
        x"""
        finally:
            c = f"""{a
            }""" if 0 else f"{a!r:>{b}} {c}"

        for i in a:
            while i:
                i -= 1

            # the end
        else:
            pass
        match a:
            case 1:
                d = a \\
                    + 1
            case _:
                with a as b, \\
                        c:
                    return b
        return c
'''
TYPED = [
    "",
    "x",
    "x = 1",
    "else:",
    "if a:",
    "(",
    '"""',
    "x = [",
    "]",
    "# ]",
    "return",
    "x =",
    "x = a.",
    "if",
    "if a",
    "while a.b(c)",
    "for i in",
    "x = f(a, b) c",
    "def f(a)",
    "elif a",
    "x = [1, 2",
    "f() =",
    "x = 'a",
    "x = (1, ]",
    "a b",
    ")",
    "lambda",
    "x = f(a b)",
    "\\",
    "x = \\",
    "@x",
    "a; b",
    "é = 'é'",
]


def parse(text: str, first: int) -> ast.Module:
    return ast.parse("\n" * (first - 1) + text)


def statement(text: str) -> ast.stmt | None:
    try:
        (found,) = parse(text, 5).body
    except (SyntaxError, ValueError):
        return None
    return found


def described(error: SyntaxError) -> tuple[object, ...]:
    return error.msg, error.lineno, error.offset


def error_in(text: str) -> tuple[object, ...]:
    with pytest.raises(SyntaxError) as found:
        parse(text, 5)
    return described(found.value)


def edits(chance: random.Random, text: str, number: int) -> list[str]:
    """Texts in which one line differs."""
    lines, found = text.split("\n"), []
    for _ in range(number):
        at, changed = chance.randrange(1, len(lines)), list(lines)
        line = changed[at]
        indent = " " * chance.choice([0, 4, 8, 12, 16, len(line) - len(line.lstrip())])
        place = chance.randrange(len(line) + 1)
        word = chance.choice(re.findall(r"\w+", text))
        changed[at] = chance.choice(
            [
                indent + chance.choice(TYPED),
                line[:place] + chance.choice([word, " ", ")", ""]) + line[place:],
                line[:place],
                line[place:],
            ]
        )
        if chance.random() < 0.3:  # another number of lines
            changed[at:at] = [changed[at]] if chance.random() < 0.5 else lines[at : at + chance.randrange(6)]
        if chance.random() < 0.2:  # the statements below, for a text that does not close a bracket
            changed += [
                "x = (1, 2)",
                "def f(a):",
                '    """(text"""',
                "    return a",
                *chance.choice([[], ["y = 'a", ")"]]),
            ]
        found.append("\n".join(changed))
    return found


@cache
def texts() -> list[str]:
    found = [ODD.strip("\n")]
    for path in FILES:
        source = path.read_text()
        lines = source.split("\n")
        found += [
            "\n".join(lines[each.lineno - 1 : each.end_lineno])
            for each in ast.parse(source).body
            if isinstance(each, (ast.ClassDef, ast.FunctionDef))
        ]
    return [each for each in found if each.count("\n") > 3 and not each.startswith("@")]


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_is_that_of_the_whole(seed: int) -> None:
    chance, reused, broken = random.Random(seed), 0, 0
    for number, text in enumerate(texts()):
        before = statement(text)
        assert before is not None
        shape = ast.dump(before, include_attributes=True)
        for new in edits(chance, text, 400 if number == 0 else 12):
            found = reparsed(before, text, new, 5, parse)
            if isinstance(found, SyntaxError):
                broken += 1
                assert described(found) == error_in(new), new
            elif found is not None:
                reused += 1
                whole = statement(new)
                assert whole is not None, new
                assert ast.dump(found, include_attributes=True) == ast.dump(whole, include_attributes=True), new
        assert ast.dump(before, include_attributes=True) == shape
    assert reused > 300
    assert broken > 20


@pytest.mark.parametrize(("old", "new"), [("    elif b:", "    if b:"), ("        x = 1", "    if c:")])
def test_what_begins_a_block(old: str, new: str) -> None:
    text = "def f():\n    if a:\n        w = 1\n        x = 1\n        y = 1\n    elif b:\n        z = 2\n    return x"
    before, changed = statement(text), text.replace(old, new)
    assert before is not None
    found, whole = reparsed(before, text, changed, 5, parse), statement(changed)
    assert whole is not None
    assert not isinstance(found, SyntaxError)
    assert found is None or ast.dump(found, include_attributes=True) == ast.dump(whole, include_attributes=True)


def test_only_the_changed_statement_is_parsed() -> None:
    text = "class A:\n    def f(self):\n        x = 1\n        y = 2\n\n    def g(self):\n        z = 3"
    before, parsed = statement(text), []
    assert before is not None

    def noted(text: str, first: int) -> ast.Module:
        parsed.append(text)
        return parse(text, first)

    found = reparsed(before, text, text.replace("y = 2", "y = 22"), 5, noted)
    assert parsed == ["if 1:\n        y = 22\n        pass\n"]
    assert isinstance(found, ast.ClassDef)
    assert isinstance(before, ast.ClassDef)
    assert found.body[1] is before.body[1]


@pytest.mark.parametrize(
    ("line", "is_apart"),
    [
        pytest.param("        # above", True, id="in a body, above the first statement"),
        pytest.param("        # between", True, id="between statements"),
        pytest.param("    # else", True, id="between blocks"),
        pytest.param("        # in brackets", False, id="in an expression"),
        pytest.param("        # in a string", False, id="in a string"),
        pytest.param("        # in a default", False, id="in a string of the head"),
        pytest.param("        # goes on", False, id="after a backslash"),
        pytest.param("# the end", True, id="below"),
    ],
)
@pytest.mark.parametrize("new", ["", "  ", "# other", '            # ("""'])
def test_comments_and_blank_lines_leave_the_statement_as_it_is(line: str, is_apart: bool, new: str) -> None:
    text = """def f(a, b='''
        # in a default
    '''):
        # above
        if a:
            b = 1
        # between
        c = (a,
        # in brackets
             b)
        d = '''
        # in a string
        '''
        x = c \\
        # goes on
        for i in x:
            pass
    # else
        else:
            pass
# the end"""
    if line == "        # goes on":
        text = text.replace(line, "")
        changed = text.replace("x = c \\\n\n", f"x = c \\\n{new}\n")
    else:
        text = text.replace("        x = c \\\n        # goes on\n", "        x = c\n")
        changed = text.replace(line, new, 1)
    before, whole = statement(text), statement(changed)
    assert before is not None
    found = reparsed(before, text, changed, 5, parse)
    assert (found is before) is (is_apart or changed == text)
    if isinstance(found, ast.AST) and whole is not None:
        assert ast.dump(found, include_attributes=True) == ast.dump(whole, include_attributes=True)


@pytest.mark.parametrize(
    ("new", "is_same"),
    [
        ("x = 1  # one", True),
        ("x = 1 ", True),
        ("x = 1#", True),
        ("x = 1  # 'one\"", True),
        ("x = 1\t", False),
        ("x = 1  \\", False),
        ("x = 1  ; # one", False),
        (" x = 1", False),
    ],
)
def test_comments_behind_statements(new: str, is_same: bool) -> None:
    text = "class A:\n    def f(self):\n        x = 1\n        y = '''\n        z = 1\n'''"
    before, changed = statement(text), text.replace("x = 1", new)
    assert before is not None
    found = reparsed(before, text, changed, 5, parse)
    assert (found is before) is is_same
    inside = text.replace("z = 1", new.replace("x", "z"))
    assert reparsed(before, text, inside, 5, parse) is not before


@pytest.mark.parametrize("new", ['x = "a" "#b"', 'x = "a"  # b'])
def test_comments_behind_strings_are_not_told_apart(new: str) -> None:
    text = 'def f():\n    x = "a"  #\n    return x'
    before, changed = statement(text), text.replace('x = "a"  #', new)
    assert before is not None
    assert reparsed(before, text, changed, 5, parse) is not before


@pytest.mark.parametrize(
    ("new", "name"), [("        y = 3\n        w = 3", "ClassDef"), ("        y = (2", "SyntaxError")]
)
def test_what_ends_above_the_change_is_not_parsed(new: str, name: str) -> None:
    text = "class A:\n    def f(self):\n        x = 1\n\n    def g(self):\n        x = 1\n        z = 1\n        y = 2\n\n    h = 4"
    before, parsed = statement(text), []
    assert before is not None

    def noted(text: str, first: int) -> ast.Module:
        parsed.append(text)
        return parse(text, first)

    found = reparsed(before, text, text.replace("        y = 2", new), 5, noted)
    assert parsed[-1] == "class A:\n\n\n\n    def g(self):\n\n        z = 1\n" + new + "\n\n    h = 4"
    assert type(found).__name__ == name
    if isinstance(found, ast.ClassDef) and isinstance(before, ast.ClassDef):
        assert found.body[0] is before.body[0]
        assert ast.dump(found, include_attributes=True) == ast.dump(
            parse(text.replace("        y = 2", new), 5).body[0], include_attributes=True
        )
