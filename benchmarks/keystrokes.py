"""From a keystroke to an answer: ``python -m benchmarks.keystrokes [FILE:LINE] [--times N]``.

A large file is open in the server; a letter is typed into one of its Functions, then half a line that does not parse.
For comparison, the time of ctxlint's core for the same text, without a server and without cached results. With a
``FILE``, letters are typed below that line, and hover, hints, quick fixes and all fixes are requested right after each.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ctxlint.config.settings import Settings
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source
from tests.editor.client import Client
from tests.editor.test_load import large_file

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Read the arguments, type, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", nargs="?", help="FILE:LINE, the line to type below")
    parser.add_argument("--times", type=int, default=100)
    options = parser.parse_args()
    if options.place is not None:
        file, _, line = options.place.rpartition(":")
        requested_after_keys(Path(file).absolute(), int(line), options.times)
    else:
        typed_into_generated_file(options.times)


def typed_into_generated_file(times: int) -> None:
    """The times until the findings come, with the core alone for comparison."""
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
        print(f"| {what} | {medians[0]:.0f} | {_p95(seconds):.0f} | {medians[1]:.0f} |")


def requested_after_keys(path: Path, line: int, times: int) -> None:
    """The times until requests are answered that come right after a keystroke."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    indent = re.match(r"\s*", lines[line - 1])
    typed = f"{indent[0] if indent else ''}name = "
    client = Client().initialize([path.parent])
    uri = client.open(path.as_uri(), text)
    client.pushed(uri, version=1)
    position = {"textDocument": {"uri": uri}, "position": {"line": line - 1, "character": len(lines[line - 1])}}
    ends = {"start": {"line": 0, "character": 0}, "end": {"line": len(lines), "character": 0}}
    everything = {"textDocument": {"uri": uri}, "range": ends}
    requests: dict[str, Callable[[], object]] = {
        "nothing, but findings come": lambda: client.pushed(uri, version),
        "hover": lambda: client.request("textDocument/hover", position),
        "inlay hints in the whole file": lambda: client.request("textDocument/inlayHint", everything),
        "quick fixes in the whole file": lambda: client.actions(uri, ["quickfix"]),
        "all safe fixes": lambda: client.actions(uri, ["source.fixAll"]),
    }
    version = 1
    print(f"{len(lines)} lines, {times} keystrokes\n\n| requested | median ms | p95 ms |\n|---|---|---|")
    for what, request in requests.items():
        seconds = []
        for number in range(times):
            version += 1
            now = "\n".join([*lines[:line], typed + "z" * (number + 1), *lines[line:]])
            start = time.perf_counter()
            client.change(uri, now, version)
            request()
            seconds.append(time.perf_counter() - start)
        print(f"| {what} | {1000 * statistics.median(seconds):.0f} | {_p95(seconds):.0f} |")
    client.stop()
    client.close()


def _p95(seconds: list[float]) -> float:
    return 1000 * statistics.quantiles(seconds, n=20)[-1]


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
