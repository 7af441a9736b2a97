"""The length of a message chooses its words: that of the names in it, not of the places."""

from __future__ import annotations

import re

import pytest

from ctxlint.rules.wording import LONGEST, fitting
from tests.fixture_reader import rule_fixtures
from tests.linting import findings_in

CALLED = (
    "`forward` of `{}` gets a list from the call on line {}{}; torch raises RuntimeError at backward. "
    + "Pass it. " * 13
)


def test_a_place_does_not_change_the_words() -> None:
    shorter = "Shorter."
    for name in ("F", "F" * 10, "F" * 20, "F" * 30, "F" * 40):
        chosen = {
            fitting(CALLED.format(name, *place), shorter) == shorter
            for place in ((4, ""), (1234, ""), (12, " of cell 3"), (7, " of `a/rather/long/path/of/a/file.py`"))
        }
        assert len(chosen) == 1, name
    assert fitting(CALLED.format("F" * 40, 4, ""), shorter) == shorter
    assert fitting(CALLED.format("F", 4, ""), shorter) != shorter


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            (
                "`backward` of `{}` returns 1 gradient but `forward` takes 2 inputs (`{}`, `{}`), as returned by `{}`; torch raises "
                "RuntimeError at backward. Return one gradient for each input, `None` if there is none."
            ),
            (
                "`backward` of `{}` returns 1 gradient but `forward` takes 2 inputs, as returned by `{}`; torch raises RuntimeError "
                "at backward. Return one gradient for each input."
            ),
        ),
        (
            (
                "`{}` modifies the input `{}` in place without `mark_dirty`; a leaf is silently overwritten, and later uses of `{}` "
                "silently bypass this `backward`. Call `ctx.mark_dirty({})` if it is no leaf, else work on `{}.clone()`."
            ),
            (
                "`{}` modifies the input `{}` in place without `mark_dirty`; a leaf is silently overwritten, and its later uses "
                "bypass this `backward`. Call `ctx.mark_dirty` if it is no leaf, else work on a copy."
            ),
        ),
        (
            (
                "`backward` of `{}{}` uses `{}` only in a denominator; the gradient for `{}` is silently not proportional to it, and "
                "twice the loss does not double it. Multiply by `{}`."
            ),
            (
                "`backward` of `{}{}` uses `{}` only in a denominator; the gradient for `{}` is silently not proportional to it. "
                "Multiply by it."
            ),
        ),
        (
            (
                "`forward` of `{}` launches `{}{}` with the tensor `{}` for `{}{}`, whose address it uses as a number; Triton raises "
                "CompilationError at `apply`. Write `tl.load({}{})` in the kernel."
            ),
            (
                "`forward` launches a kernel with a tensor for `{}{}`, whose address it uses as a number; Triton raises "
                "CompilationError at `apply`. Use `tl.load` in the kernel."
            ),
        ),
    ],
)
def test_phrases_give_way_to_long_names(message: str, expected: str) -> None:
    name = "a_name_of_20_letters"
    assert fitting(message.replace("{}", name)) == expected.replace("{}", name)
    assert len(fitting(message.replace("{}", name))) <= LONGEST
    assert fitting(message.replace("{}", "x")) == message.replace("{}", "x")


def test_fewer_words_are_a_sentence_too() -> None:
    """Whatever gives way: names and code are kept or left out as a whole."""
    from ctxlint.rules.fewer_words import in_fewer_words

    for fixture in rule_fixtures():
        for case in fixture.cases[:3]:
            for each in findings_in(case):
                text = in_fewer_words(each.message, lambda _message: False)
                assert text.count("`") % 2 == 0, text
                assert text.endswith("."), text
                assert not re.search(r"  | [,.;]|[,;]{2}", re.sub("`[^`]*`", "`_`", text)), text
