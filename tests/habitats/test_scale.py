"""The programs in docs/api.md and docs/scale.md run, and find what the command finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.console import run_ctxlint
from tests.fixture_reader import ROOT, fenced_blocks

if TYPE_CHECKING:
    from pathlib import Path

_SHOW = """
if __name__ == "__main__":
    import json

    print(json.dumps([[finding.path, finding.span.start, finding.code, finding.message] for finding in findings]))
"""


def _run(document: str, folder: Path, more: str = "") -> str:
    """The output of all ``run`` blocks of a page as one script, which must not fail."""
    blocks = fenced_blocks((ROOT / "docs" / document).read_text(encoding="utf-8"))
    program = folder / "program.py"
    program.write_text("".join(block.text for block in blocks if "run" in block.words) + more, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_about_the_api(tmp_path: Path) -> None:
    assert "returns 1 gradient but `forward` takes 2 inputs" in _run("api.md", tmp_path)


def test_dask_finds_what_the_command_finds(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for program in (ROOT / "fixtures" / "programs" / "broken").glob("*.py"):
        (tmp_path / "src" / program.name).write_bytes(program.read_bytes())
    found = json.loads(_run("scale.md", tmp_path, _SHOW))
    _, output = run_ctxlint(["--isolated", "--output-format", "json", "src"], tmp_path)
    expected = [
        [
            os.path.relpath(each["filename"], tmp_path),
            [each["location"]["row"], each["location"]["column"]],
            each["code"],
            each["message"],
        ]
        for each in json.loads(output)
    ]
    assert len(found) > 40
    assert sorted(found) == sorted(expected)
