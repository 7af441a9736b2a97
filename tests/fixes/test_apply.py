"""The fix engine: which fixes are applied, in which order, when it stops, and how it handles a bad fix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.config.settings import Settings
from ctxlint.diagnostic import Fixed
from ctxlint.fix import Applicability, Edit, Fix, with_line_endings_of
from ctxlint.fixes.apply import apply_edits, apply_fixes, plan
from ctxlint.result import FileResult
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import WHOLE_FILE, Source
from tests import stand_ins
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.install(monkeypatch)


def _fixed(text: str, *, encoding: str = "utf-8", **settings: Any) -> FileResult:
    asked = Settings(fix=True, **settings)
    source = Source("x.py", CANDIDATE + text, encoding)
    return apply_fixes(check_source(source, asked), asked, lambda each: check_source(each, asked))


def _text(result: FileResult) -> str:
    assert result.source is not None
    return result.source.text[len(CANDIDATE) :]


def test_safe_fixes_only() -> None:
    result = _fixed("wrong = risky = vague = plain\n")
    assert _text(result) == "right = risky = vague = plain\n"
    assert [each.code for each in result.diagnostics] == ["CTX212", "CTX213", "CTX301"]
    assert result.fixed == (Fixed("CTX211", "wrong-word", 1),)
    assert result.before is not None
    assert result.before.text == CANDIDATE + "wrong = risky = vague = plain\n"


def test_unsafe_fixes_too() -> None:
    result = _fixed("wrong = risky = vague\n", unsafe_fixes=True)
    assert _text(result) == "right = tame = vague\n"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"unfixable": ("CTX211",)}, "wrong = risky"),
        ({"fixable": ("CTX3",)}, "wrong = risky"),
        ({"extend_safe_fixes": ("CTX212",)}, "right = tame"),
        ({"extend_unsafe_fixes": ("wrong-word",)}, "wrong = risky"),
        ({"ignore": ("CTX211",)}, "wrong = risky"),
    ],
)
def test_settings_decide(settings: dict[str, Any], expected: str) -> None:
    assert _text(_fixed("wrong = risky\n", **settings)) == expected + "\n"


def test_hidden_findings_are_left_alone() -> None:
    assert _text(_fixed("wrong = 1  # noqa\nwrong = 2\n")) == "wrong = 1  # noqa\nright = 2\n"


def test_nothing_to_do_gives_the_same_result() -> None:
    asked = Settings(fix=True)
    result = check_source(Source("x.py", CANDIDATE + "plain = 1\n"), asked)
    assert apply_fixes(result, asked, lambda each: check_source(each, asked)) is result


def test_as_many_rounds_as_it_takes_while_something_is_gained() -> None:
    """Each round fixes one of these, because its edits overlap those of all others."""
    text = "".join(f"wrong{number} = 0\n" for number in range(25))

    def check(source: Source) -> FileResult:
        found = [
            replace(_finding((source.text.index(f"wrong{number} "), source.text.index(f"wrong{number} ") + 5, "right")))
            for number in range(25)
            if f"wrong{number} " in source.text
        ]
        spread = [
            replace(
                each,
                fix=Fix("Fix", (Edit(0, 0, ""), *_edits(each)), Applicability.SAFE) if number else each.fix,
            )
            for number, each in enumerate(found)
        ]
        return FileResult("x.py", source, tuple(spread))

    result = apply_fixes(check(Source("x.py", text)), Settings(), check)
    assert result.source is not None
    assert "wrong" not in result.source.text
    assert result.fixed == (Fixed("CTX211", "wrong-word", 25),)


def test_a_countdown_within_the_cap_ends() -> None:
    result = _fixed("step_9 = 0\n")
    assert _text(result) == "done = 0\n"
    assert result.fixed == (Fixed("CTX406", "countdown", 9),)


def test_a_countdown_beyond_the_cap_is_a_bug() -> None:
    result = _fixed("step_50 = 0\nwrong = 1\n")
    assert _text(result) == "step_50 = 0\nwrong = 1\n"
    assert result.failed
    assert "The fixes of CTX406 (countdown) do not converge" in result.diagnostics[0].message


def test_fixes_that_undo_each_other_are_a_bug() -> None:
    result = _fixed("ping = 0\nwrong = 1\n")
    assert _text(result) == "ping = 0\nwrong = 1\n"
    assert result.failed
    assert result.before is None
    assert result.fixed == ()


def test_a_fix_that_breaks_the_syntax_is_undone_and_reported() -> None:
    result = _fixed("harmless = 0\nwrong = 1\n")
    assert _text(result) == "harmless = 0\nwrong = 1\n"
    assert [each.code for each in result.diagnostics] == ["CTX900", "CTX401", "CTX211"]
    assert result.diagnostics[0].message == (
        "The fixes of CTX211 (wrong-word), CTX401 (breaking-fix) introduce a syntax error; nothing was changed. "
        "This is a bug in ctxlint; report it."
    )


def test_a_file_that_never_parsed_can_be_fixed() -> None:
    result = _fixed("def f(:\n    pass\n\n\nwrong = 1\n")
    assert _text(result) == "def f(:\n    pass\n\n\nright = 1\n"


def test_a_fix_that_breaks_another_statement_of_such_a_file_is_undone() -> None:
    text = "def f(:\n    pass\n\n\nimport os\nharmless = 1\n"
    result = _fixed(text)
    assert _text(result) == text
    assert result.failed


def test_a_text_that_the_encoding_cannot_hold_is_not_written() -> None:
    result = _fixed("foreign = 1\nwrong = 2\n", encoding="latin-1")
    assert _text(result) == "foreign = 1\nwrong = 2\n"
    assert result.diagnostics[0].code == "CTX902"
    assert result.diagnostics[0].message == (
        "The file's encoding latin-1 cannot encode '日', so CTX211 (wrong-word), CTX405 (foreign-word) cannot be fixed; "
        "nothing was changed."
    )


def test_a_rule_that_crashed_keeps_fixes_away() -> None:
    result = _fixed("crash = wrong\n")
    assert _text(result) == "crash = wrong\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_inserted_lines_end_as_the_others_do(ending: str) -> None:
    result = _fixed(f"x = 1{ending}terse = 2{ending}")
    assert _text(result) == f"x = 1{ending}first{ending}second = 2{ending}"


def test_inserted_lines_in_a_file_of_mixed_endings() -> None:
    source = Source("x.py", "a\r\nb\nc")
    endings = [with_line_endings_of(source, _fix((at, at, "1\n2\r\n3"))).edits[0].content for at in (0, 3, 5)]
    assert endings == ["1\r\n2\r\n3", "1\n2\r\n3", "1\n2\r\n3"]


# ---------------------------------------------------------------------------------------------------------------------
# One round


def _fix(*edits: tuple[int, int, str]) -> Fix:
    return Fix("Fix it", tuple(Edit(*edit) for edit in edits), Applicability.SAFE)


def _finding(*edits: tuple[int, int, str]) -> Diagnostic:
    from ctxlint.diagnostic import Diagnostic

    return Diagnostic("x.py", WHOLE_FILE, "CTX211", "wrong-word", str(edits), fix=_fix(*edits))


def _edits(diagnostic: Diagnostic) -> tuple[Edit, ...]:
    assert diagnostic.fix is not None
    return diagnostic.fix.edits


def test_edits_apart_are_made_in_one_round() -> None:
    first, second = _finding((6, 7, "B"), (0, 1, "A")), _finding((9, 9, "!"))
    taken, edits = plan([second, first])
    assert taken == [first, second]
    assert apply_edits("a....xb..end", edits) == "A....xB..!end"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([(0, 5, "A")], [(3, 8, "B")]),  # overlapping
        ([(0, 5, "A")], [(5, 8, "B")]),  # touching
        ([(3, 3, "A")], [(3, 3, "B")]),  # inserted at the same place
        ([(0, 1, "A"), (8, 9, "A")], [(4, 5, "B")]),  # between the edits of another fix
    ],
)
def test_a_fix_that_runs_into_another_waits(
    first: list[tuple[int, int, str]], second: list[tuple[int, int, str]]
) -> None:
    taken, _ = plan([_finding(*second), _finding(*first)])
    assert taken == [_finding(*first)]


def test_the_same_edit_is_made_once() -> None:
    first, second = _finding((0, 0, "import x\n"), (9, 10, "A")), _finding((0, 0, "import x\n"), (20, 21, "B"))
    taken, edits = plan([first, second])
    assert taken == [first, second]
    assert edits == [Edit(0, 0, "import x\n"), Edit(9, 10, "A"), Edit(20, 21, "B")]


def test_the_same_fix_for_two_findings_counts_for_both() -> None:
    taken, edits = plan([_finding((3, 4, "A")), _finding((3, 4, "A"))])
    assert (len(taken), edits) == (2, [Edit(3, 4, "A")])


def test_a_fix_that_overlaps_with_itself_is_a_bug() -> None:
    def check(source: Source) -> FileResult:
        return FileResult("x.py", source, (_finding((0, 5, "A"), (3, 6, "B")),))

    result = apply_fixes(check(Source("x.py", "0123456789")), Settings(), check)
    assert result.failed
    assert "overlaps with itself" in result.diagnostics[-1].message + result.diagnostics[0].message
