"""The same program gets the same findings and fixes, in however many files it lies."""

from __future__ import annotations

import pytest

from tests.fixture_reader import Program, programs
from tests.splitting import differences, splits

PROGRAMS = [program for folder in ("broken", "clean") for program in programs(folder)]


@pytest.mark.parametrize("files", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.path.parent.name}-{program.path.stem}")
def test_programs_in_several_files(program: Program, files: int) -> None:
    if program.path.stem == "half_typed":
        return
    assert list(differences(program.marked.text, files)) == []


def test_most_programs_can_be_split() -> None:
    split = [
        program for program in PROGRAMS if program.path.stem != "half_typed" and any(splits(program.marked.text, 2))
    ]
    assert len(split) > len(PROGRAMS) // 2
