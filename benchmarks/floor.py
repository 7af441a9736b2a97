"""The least that a linter of Functions must do: scan, find classes with ``ast``, parse their statements with LibCST.

``python benchmarks/floor.py FOLDER``. Whatever ctxlint takes beyond this is the cost of its analysis.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
import warnings

import libcst as cst


def main(folder: str) -> None:
    """Run it in one process."""
    gc.disable()
    warnings.simplefilter("ignore")
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if name.endswith((".py", ".pyi")) and os.path.isfile(path) and not os.path.islink(path):
                read(path)


def read(path: str) -> None:
    """Parse the classes of a file that look like Functions."""
    with open(path, "rb") as file:
        data = file.read()
    if b"autograd" not in data or b"Function" not in data:
        return
    text = data.decode("utf-8", "replace")
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.splitlines(keepends=True)
    for statement in module.body:
        inside = "".join(lines[statement.lineno - 1 : statement.end_lineno])
        if "Function" in inside and any(isinstance(node, ast.ClassDef) and node.bases for node in ast.walk(statement)):
            try:
                cst.parse_module(inside)
            except cst.ParserSyntaxError:
                continue


if __name__ == "__main__":
    main(sys.argv[1])
