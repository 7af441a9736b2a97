"""From a keystroke to the findings: ``python -m benchmarks.keystrokes [--times N]``.

A large file is open in the server; a letter is typed into one of its Functions, then half a line that does not parse.
For comparison, the time of ctxlint's core for the same text, without a server and without cached results.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from ctxlint.config.settings import Settings
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source
from tests.editor.client import Client
from tests.editor.test_load import large_file


def main() -> None:
    """Read the arguments, type, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    times = parser.parse_args().times
    text = large_file()
    print(f"{text.count(chr(10))} lines, {times} keystrokes\n")
    print("| typed | median ms | p95 ms | core alone, median ms |\n|---|---|---|---|")
    for what, before, typed in (
        ("a letter of a name", "ctx.scale", "z"),
        ("a letter that breaks the line", "return grad_output", "z"),
        ("half a method", "return grad_output", "\n    def half("),
    ):
        at = text.index(before, len(text) // 2)
        versions = [f"{text[:at]}{typed}{'z' * number}{text[at:]}" for number in range(times)]
        seconds, core = in_server(text, versions), alone(versions[:20])
        medians = [1000 * statistics.median(each) for each in (seconds, core)]
        p95 = 1000 * statistics.quantiles(seconds, n=20)[-1]
        print(f"| {what} | {medians[0]:.0f} | {p95:.0f} | {medians[1]:.0f} |")


def in_server(text: str, versions: list[str]) -> list[float]:
    """Seconds from each change to the findings for it."""
    client = Client()
    client.initialize([Path.cwd()])
    uri = client.open(Path("large.py").absolute().as_uri(), text)
    client.pushed(uri, version=1)
    found = []
    for version, changed in enumerate(versions, start=2):
        start = time.perf_counter()
        client.change(uri, changed, version)
        client.pushed(uri, version=version)
        found.append(time.perf_counter() - start)
    client.stop()
    client.close()
    return found


def alone(versions: list[str]) -> list[float]:
    """Seconds that the core takes for each text."""
    found = []
    for text in versions:
        start = time.perf_counter()
        check_source(Source("large.py", text), Settings())
        found.append(time.perf_counter() - start)
    return found


if __name__ == "__main__":
    main()
