"""The lines of code under a finding."""

from __future__ import annotations

import pytest

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.report.frame import Frame, columns
from ctxlint.report.full import fix_diff
from ctxlint.report.style import TextStyle
from ctxlint.report.visible import visible
from ctxlint.source.source import Position, Source, Span

PLAIN = TextStyle(on=False)


def _frame(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    frame = Frame(Source("x.py", text), Span(Position(*start), Position(*end)), PLAIN)
    return "\n".join(frame.lines())


def test_one_line_with_its_neighbours() -> None:
    assert _frame("a\nb = c\nd\n", (2, 5), (2, 6)) == "  |\n1 | a\n2 | b = c\n  |     ^\n3 | d\n  |"


def test_blank_neighbours_are_left_out() -> None:
    assert _frame("a\n\nb = c\n  \nd\n", (3, 1), (3, 2)) == "  |\n3 | b = c\n  | ^\n  |"


def test_the_gutter_is_as_wide_as_the_last_number() -> None:
    text = "x\n" * 12
    assert _frame(text, (9, 1), (9, 2)) == "   |\n 8 | x\n 9 | x\n   | ^\n10 | x\n   |"


@pytest.mark.parametrize(
    ("line", "column", "shown"),
    [
        ("\tx", 2, "1 |     x\n  |     ^"),
        ("a\tx", 3, "1 | a    x\n  |      ^"),
        ("'日本' + x", 8, "1 | '日本' + x\n  |          ^"),
        ("'e\u0301' + x", 8, "1 | 'e\u0301' + x\n  |       ^"),
        ("'\x1b[31m' + x", 11, "1 | '\u241b[31m' + x\n  |           ^"),
        ("'\x9b' + x", 7, "1 | '\ufffd' + x\n  |       ^"),
    ],
)
def test_the_mark_stands_under_its_character(line: str, column: int, shown: str) -> None:
    assert _frame(line, (1, column), (1, column + 1)) == f"  |\n{shown}\n  |"


def test_an_empty_span_gets_one_mark() -> None:
    assert _frame("ab", (1, 3), (1, 3)) == "  |\n1 | ab\n  |   ^\n  |"


def test_several_lines() -> None:
    assert _frame("a = f(\n    1,\n    2,\n) + 1\nb\n", (1, 5), (4, 2)) == (
        "  |\n1 |   a = f(\n  |  _____^\n2 | |     1,\n3 | |     2,\n4 | | ) + 1\n  | |_^\n5 |   b\n  |"
    )


def test_many_lines_lose_their_middle() -> None:
    text = "f(\n" + "".join(f"    {number},\n" for number in range(2, 11)) + ")\n"
    assert _frame(text, (1, 1), (11, 2)) == (
        "   |\n 1 |   f(\n   |  _^\n 2 | |     2,\n... |\n10 | |     10,\n11 | | )\n   | |_^\n   |"
    )


def test_an_end_at_the_start_of_a_line_belongs_to_the_line_before() -> None:
    assert _frame("ab\ncd\n", (1, 1), (2, 1)) == "  |\n1 | ab\n  | ^^\n2 | cd\n  |"


def test_lines_end_where_python_ends_them() -> None:
    assert _frame("a\x0c\u2028b\r\nc\rd", (2, 1), (2, 2)) == "  |\n1 | a\u240c\ufffdb\n2 | c\n  | ^\n3 | d\n  |"


def test_columns_agree_with_what_is_visible() -> None:
    assert columns("a\tb") == len(visible("a\tb")) == 6


def _diff(text: str, *edits: tuple[int, int, str]) -> str:
    fix = Fix("Fix", tuple(Edit(*edit) for edit in edits), Applicability.SAFE)
    return "\n".join(fix_diff(Source("x.py", text), fix, PLAIN))


def test_a_replaced_line() -> None:
    assert _diff("a\nb\nc\n", (2, 3, "B")) == "  |\n1 | a\n  - b\n2 + B\n3 | c\n  |"


def test_inserted_and_removed_lines() -> None:
    assert _diff("a\nb\nc\n", (2, 2, "new\n")) == "  |\n1 | a\n2 + new\n3 | b\n  |"
    assert _diff("a\nb\nc\n", (2, 4, "")) == "  |\n1 | a\n  - b\n2 | c\n  |"
    assert _diff("a", (1, 1, "\nb")) == "  |\n1 | a\n2 + b\n  |"


def test_edits_far_apart() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 21))
    assert _diff(text, (0, 4, "LINE"), (text.index("line 15"), text.index("line 15") + 4, "LINE")) == (
        "   |\n   - line 1\n 1 + LINE 1\n 2 | line 2\n...\n14 | line 14\n   - line 15\n15 + LINE 15\n16 | line 16\n   |"
    )
