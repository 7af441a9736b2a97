"""What a text holds, given an earlier version of it."""

import random

from ctxlint.source.recorded import RecordedSource

WORDS = ("ab", "abc", "ca", "b", "cc")


def test_edited_texts_hold_what_is_in_them() -> None:
    chance = random.Random(7)
    text = ""
    for _ in range(3000):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 4))
        typed = "".join(chance.choices("abc\n", k=chance.randint(0, 4)))
        text = text[:start] + typed + text[end:]
        if len(text) > 12:
            text = text[chance.randint(1, 12) :]
        source = RecordedSource("edited.py", text)
        asked = chance.sample(WORDS, 4)
        assert {word: source.holds(word) for word in asked} == {word: word in text for word in asked}


def test_texts_of_other_files_hold_their_own_words() -> None:
    for number in range(20):
        assert RecordedSource(f"{number}.py", "one" * (number % 2)).holds("one") is bool(number % 2)
    assert RecordedSource("1.py", "two").holds("one") is False
