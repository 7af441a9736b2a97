"""What a comment hides, and what it does not."""

from __future__ import annotations

import pytest

from ctxlint.diagnostic import Diagnostic
from ctxlint.source.source import Position, Source, Span
from ctxlint.suppression.noqa import suppress

NAMES = {"CTX101": "missing-staticmethod", "CTX203": "missing-none", "CTX301": "tensor-stashed-on-ctx"}


def _finding(line: int, code: str = "CTX203") -> Diagnostic:
    place = Position(line, 1)
    return Diagnostic("x.py", Span(place, place), code, NAMES[code], "message")


def _hidden(text: str, line: int = 1, code: str = "CTX203") -> bool:
    return suppress(Source("x.py", text), [_finding(line, code)], NAMES).kept == ()


def _warnings(text: str, line: int = 1) -> list[tuple[int, str]]:
    return list(suppress(Source("x.py", text), [_finding(line)], NAMES).warnings)


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "#noqa",
        "# NoQA",
        "#  noqa",
        "# noqa because it is so",
        "# noqa # pylint: disable=all",
        "# noqa: CTX203",
        "# noqa:CTX203",
        "# noqa : CTX203",
        "# NOQA: ctx203",
        "# noqa: CTX203 with a reason",
        "# noqa: CTX203: with a reason",
        "# noqa: E501, CTX203",
        "# noqa: E501 CTX203",
        "# noqa: E501,CTX203,W1",
        "# noqa: E501CTX203",
        "# noqa: CTX2",
        "# noqa: CTX",
        "# type: ignore[misc]  # noqa: CTX203",
        "# noqa: E501  # noqa: CTX203",
        "# ctxlint: ignore[CTX203]",
        "# ctxlint: ignore[CTX203] for a reason",
        "# ctxlint:ignore[ctx203]",
        "# CTXLINT: Ignore [ CTX101 , CTX203 ]",
        "# ctxlint: ignore[missing-none]",
        "# ctxlint: ignore[CTX101, missing-none] for a reason",
        "# ctxlint: ignore[CTX2]",
        "# pragma: no cover  # ctxlint: ignore[missing-none]",
    ],
)
def test_hides(comment: str) -> None:
    assert _hidden(f"x = 1  {comment}\n")
    assert _warnings(f"x = 1  {comment}\n") == []


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: E501",
        "# noqa: CTX301",
        "# noqa: E501 and then CTX203",
        "# noqas",
        "# no qa",
        "# see noqa",
        "# type: noqa",
        "# ctxlint: ignore[CTX301]",
        "# ctxlint: ignore[tensor-stashed-on-ctx]",
        "# ruff: noqa",
        "# flake8: noqa",
        "'# noqa'",
    ],
)
def test_does_not_hide(comment: str) -> None:
    assert not _hidden(f"x = 1  {comment}\n")
    assert _warnings(f"x = 1  {comment}\n") == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# noqa:", "`# noqa:` needs codes after the colon, such as `# noqa: CTX301`"),
        ("# noqa: missing-none", "`# noqa:` needs codes after the colon, such as `# noqa: CTX301`"),
        ("# noqa, CTX203", "`# noqa` needs a colon before codes, such as `# noqa: CTX301`"),
        ("# noqa-CTX203", "`# noqa` needs a colon before codes, such as `# noqa: CTX301`"),
        (
            "# ctxlint: ignore",
            "`ctxlint: ignore` needs rules in brackets, such as `# ctxlint: ignore[CTX301]`",
        ),
        (
            "# ctxlint: ignore[]",
            "`ctxlint: ignore` needs rules in brackets, such as `# ctxlint: ignore[CTX301]`",
        ),
        ("# ctxlint: ignore[nope]", "`ctxlint: ignore`: unknown rule `nope`"),
        (
            "# ctxlint: ignore[missing-nun]",
            "`ctxlint: ignore`: unknown rule `missing-nun`; did you mean `missing-none`?",
        ),
        ("# ctxlint: disable=CTX203", "`ctxlint: disable` is not a directive; write `# ctxlint: ignore[CTX301]`"),
        ("# ctxlint: noqa", "`# ctxlint: noqa` must be on a line of its own"),
    ],
)
def test_a_mistake_hides_nothing_and_is_warned_about(comment: str, message: str) -> None:
    assert not _hidden(f"x = 1  {comment}\n")
    assert _warnings(f"x = 1  {comment}\n") == [(1, message)]


def test_a_mistake_away_from_findings_may_be_of_another_tool() -> None:
    assert _warnings("x = 1\ny = 2  # noqa: whatever\n") == []
    assert _warnings("x = 1\ny = 2  # noqa-whatever\n") == []


def test_prose_about_ctxlint_is_no_mistake() -> None:
    assert _warnings("x = 1\ny = 2  # ctxlint: it does not see the kernel\n") == []


@pytest.mark.parametrize("comment", ["# ctxlint: ignore[nope]", "# ctxlint: ignore", "# ctxlint: ignor[CTX203]"])
def test_a_mistake_that_is_addressed_to_ctxlint_is_told_of_anyway(comment: str) -> None:
    assert [line for line, _ in _warnings(f"x = 1\ny = 2  {comment}\n")] == [2]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # a noqa refers to its physical line; strings and backslashes join lines
        ("f(\n  1,  # noqa\n  2,\n)\n", {2}),
        ("f(\n  1,\n)  # noqa\n", {3}),
        ("x = '''\n\n'''  # noqa\n", {1, 2, 3}),
        ("x = 1 + \\\n  2  # noqa\n", {1, 2}),
        ("# noqa\nx = 1\n", {1}),
        # our own refers to its statement, or to the one below
        ("f(\n  1,\n)  # ctxlint: ignore[CTX203]\n", {1, 2, 3}),
        ("f(\n  1,  # ctxlint: ignore[CTX203]\n)\n", {1, 2, 3}),
        ("# ctxlint: ignore[CTX203]\nf(\n  1,\n)\ng\n", {2, 3, 4}),
        ("# ctxlint: ignore[CTX203]\n\n# more words\nx = 1\ny\n", {4}),
        ("# ctxlint: ignore[CTX203]\n@a\n@b(\n)\ndef f():\n    pass\n", {2, 3, 4, 5}),
        ("def f():  # ctxlint: ignore[CTX203]\n    pass\n", {1}),
        ("x = 1\n# ctxlint: ignore[CTX203]\n", set()),
        # whole files
        ("x\n# ctxlint: noqa\ny\n", {1, 2, 3}),
        ("x\n    # ctxlint: noqa: CTX203\ny\n", {1, 2, 3}),
        ("# flake8: noqa\ny\n", {1, 2}),
        ("# flake8: noqa: E501, CTX2\ny\n", {1, 2}),
        ("# flake8: noqa: E501\ny\n", set()),
        ("# ctxlint: noqa: banana\ny\n", set()),
        ("x = '''\n# ctxlint: noqa\n'''\n", set()),
        ("x = '''\n# noqa\n'''\n", set()),
    ],
)
def test_reach(text: str, lines: set[int]) -> None:
    count = text.count("\n")
    assert {line for line in range(1, count + 1) if _hidden(text, line)} == lines


def test_a_malformed_file_level_comment_is_warned_about() -> None:
    warnings = _warnings("# ctxlint: noqa: banana\nx\n", 2)
    assert warnings == [(1, "`# ctxlint: noqa:` needs codes after the colon, such as `# noqa: CTX301`")]


def test_what_is_left_keeps_its_order() -> None:
    findings = [_finding(1), _finding(2), _finding(2, "CTX101"), _finding(3)]
    suppression = suppress(Source("x.py", "a\nb  # noqa: CTX101\nc\n"), findings, NAMES)
    assert suppression.kept == (findings[0], findings[1], findings[3])
    assert suppression.hidden == (findings[2],)
