"""Comments are distinguished from strings, and physical lines are joined to logical ones."""

from __future__ import annotations

import io
import tokenize

import pytest

from ctxlint.source.source import Source
from ctxlint.suppression.comment_layout import Lines, read_layout
from tests.fixture_reader import ROOT


def _comments(text: str) -> list[str]:
    return [comment.text for comment in read_layout(Source("x.py", text)).comments]


@pytest.mark.parametrize(
    "text",
    [
        "x = '# no'  # yes",
        'x = "# no"  # yes',
        "x = '\\'# no'  # yes",
        "x = '\\\\'  # yes",
        "x = r'\\'# no'  # yes",
        "x = b'# no'  # yes",
        "x = '''\n# no\n'# no\n'''  # yes",
        'x = """\\""" # no"""  # yes',
        "x = '''a''' '''# no'''  # yes",
        "x = ''  # yes",
        "x = f'{y}# no'  # yes",
        "x = f'{{# no'  # yes",
        "x = f'{y:#x}'  # yes",
        "x = f'{y!r:>{width}}# no'  # yes",
        "x = f'{y[\"#\"]}'  # yes",
        "x = f'{y['# no']}'  # yes",
        "x = f'{f'{'# no'}'}# no'  # yes",
        "x = f'{y:{'# no'}}'  # yes",
        "x = f'{(lambda: 1)()}# no'  # yes",
        "x = f'{ {1: 2}[1] }# no'  # yes",
        "x = f'\\N{NUMBER SIGN}# no'  # yes",
        "x = rf'\\{y}# no'  # yes",
        "x = f'''{y}\n# no {y:%d\n}'''  # yes",
        "x = f'{y:%H:%M}# no'  # yes",
        "x = t'{y}# no'  # yes",
        "x = Rb'# no'  # yes",
        "x = 1 if'{# no'else 2  # yes",
        "x = 1 \\\n  # yes",
        "x = '\\\n# no'  # yes",
        "x = 'cut off\n# yes",
        "x = f'{y:cut off\n# yes",
        "x = f'cut off {{\n# yes",
        "x = (\n# yes",
        "x = ')'\n# yes",
        "x = '# no'\r\n# yes",
        "x = '# no'\r# yes",
        "x = '\u2028# no'  # yes",
        "# yes",
    ],
)
def test_comments(text: str) -> None:
    assert _comments(text) == ["# yes"]


def test_a_comment_in_the_braces_of_an_f_string() -> None:
    assert _comments("x = f'''{\n    y  # yes\n}# no'''") == ["# yes"]


def test_alone() -> None:
    layout = read_layout(Source("x.py", "# a\nx = 1  # b\n\t# c\nx = '''\n'''  # d\nf(\n  # e\n  1,  # f\n)"))
    assert [(comment.text, comment.alone) for comment in layout.comments] == [
        ("# a", True),
        ("# b", False),
        ("# c", True),
        ("# d", False),
        ("# e", True),
        ("# f", False),
    ]


def test_lines_that_belong_together() -> None:
    text = "a = 1\nb = '''\n'''; c = '''\n'''\nd = 1 + \\\n  2\nf(\n  1,\n\n  # x\n)\n\n@g\n\ndef h():\n    i\n"
    layout = read_layout(Source("x.py", text))
    assert layout.statements == (
        Lines(1, 1),
        Lines(2, 4),
        Lines(5, 6),
        Lines(7, 11),
        Lines(13, 13),
        Lines(15, 15),
        Lines(16, 16),
    )
    assert [layout.noqa_row(line) for line in range(1, 9)] == [1, 4, 4, 4, 6, 6, 7, 8]
    assert layout.statement_at(9) == Lines(7, 11)
    assert layout.statement_at(12) == Lines(12, 12)
    assert layout.statement_below(4) == Lines(5, 6)
    assert layout.statement_below(12) == Lines(13, 15)
    assert layout.statement_below(16) is None


def test_a_bracket_that_is_never_closed_swallows_no_lines() -> None:
    layout = read_layout(Source("x.py", "a\nf(\n\nb\n# c\n"))
    assert layout.statements == (Lines(1, 1), Lines(2, 2), Lines(4, 4), Lines(5, 5))


@pytest.mark.parametrize("path", sorted((ROOT / "ctxlint").rglob("*.py")), ids=lambda path: path.name)
def test_agrees_with_tokenize(path: object) -> None:
    with tokenize.open(str(path)) as file:
        text = file.read()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    expected = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    assert [(comment.line, comment.text) for comment in read_layout(Source("x.py", text)).comments] == expected
