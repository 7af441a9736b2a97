"""Removing names from imports: those that fixes have moved, or that nothing uses any more."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ctxlint.fix import Edit
from ctxlint.fixes.class_layout import layout_of_import
from ctxlint.fixes.module_code import module_code, names_in
from ctxlint.source.ast_tree import tree_of
from ctxlint.torch_api.autograd import LEGACY_IMPORTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import libcst as cst

    from ctxlint.fixes.class_layout import Layout
    from ctxlint.model.function import FunctionClass
    from ctxlint.source.source import Source


def released(fn: FunctionClass, name: str) -> tuple[str, ...]:
    """The ``name`` that a fix uses once less, if its import can go with its last use: no other file needs it."""
    code = module_code(fn)
    if code is None or name in fn.taken_names:
        return ()
    imports = (each for each in code.module.body if isinstance(each, ast.ImportFrom) and each.level == 0)
    targets = (f"{each.module}.{alias.name}" for each in imports for alias in each.names if _local(alias) == name)
    return (name,) if any(target in LEGACY_IMPORTS for target in targets) else ()


def unused_imports(source: Source, names: Collection[str]) -> list[Edit]:
    """Edits that remove the imports of those names that nothing in a file uses any more.

    An import stays that has a comment, shares its line, or imports a name as itself.
    """
    tree = tree_of(source.text) if names and not source.has_cells and not source.path.endswith("__init__.py") else None
    if tree is None:
        return []
    used = names_in(tree)
    unused = {name for name in names if used.bound[name] == 1 and not used.read[name]}
    texts = [*used.texts, *re.findall(r"#\s*type:.*", source.text)]
    unused -= {name for name in unused if any(re.search(rf"\b{name}\b", text) for text in texts)}
    froms = (each for each in tree.body if isinstance(each, ast.ImportFrom))
    return [edit for each in froms for edit in _without_unused(source, each, unused)]


def _without_unused(source: Source, statement: ast.ImportFrom, unused: Collection[str]) -> Iterator[Edit]:
    gone = [alias for alias in statement.names if _local(alias) in unused and alias.asname != alias.name]
    found = layout_of_import(source, statement) if gone else None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    if found is None or "#" in source.lines(first, last):
        return
    layout, _node, aliases = found
    staying = [alias for alias in aliases if local_name(alias) not in map(_local, gone)]
    if staying:
        yield from keep_only(layout, aliases, staying)
        return
    above, below = _blank_lines(source, first - 1, -1), _blank_lines(source, last + 1, 1)
    last += below if above == first - 1 else min(above, below)
    starts = [*source.line_starts, len(source.text)]
    yield Edit(starts[first - 1], starts[min(last, len(starts) - 1)], "")


def _blank_lines(source: Source, line: int, step: int) -> int:
    """The number of blank lines from a line on, downwards or upwards."""
    count = 0
    while 0 < line <= source.line_count and not source.line(line).strip():
        count, line = count + 1, line + step
    return count


def keep_only(layout: Layout, aliases: Sequence[cst.ImportAlias], staying: list[cst.ImportAlias]) -> list[Edit]:
    """Edits that remove all aliases but those in ``staying``; a comma after the last one stays too."""
    last_kept = max(at for at, alias in enumerate(aliases) if alias in staying)
    edits = [
        layout.delete(layout.start(alias), layout.start(aliases[at + 1]))
        for at, alias in enumerate(aliases[:last_kept])
        if alias not in staying
    ]
    if last_kept < len(aliases) - 1:
        edits.append(layout.delete(_end(layout, aliases[last_kept]), _end(layout, aliases[-1])))
    return edits


def _end(layout: Layout, alias: cst.ImportAlias) -> int:
    return layout.end(alias.asname.name if alias.asname is not None else alias.name)


def _local(alias: ast.alias) -> str:
    return alias.asname or alias.name


def local_name(alias: cst.ImportAlias) -> str:
    """The name that an import binds."""
    return alias.evaluated_alias or alias.evaluated_name
