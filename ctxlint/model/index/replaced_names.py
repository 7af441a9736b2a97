"""Files that may replace a name of torch: they set it or the module that it is in, or import what does."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.module_stores import ANY_NAME, StoredName, stores_in, top_of
from ctxlint.model.index.named_patches import replaces
from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.replacements import REPLACED_BY, owners_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def replaces_name(tree: ast.Module | None, name: str) -> bool:
    """Whether a file may replace what a dotted name of torch means; not for the time of a test only."""
    if tree is None:
        return True
    nodes, owners = nodes_in(tree), owners_of(name)
    if any(REPLACED_BY.get(each) in owners for each in _imported(nodes)):
        return True
    if any(_patched(each) in owners for each in nodes if isinstance(each, ast.Call)):
        return True
    parts = [each.rpartition(".") for each in owners]
    meant = {StoredName(owner, each) for owner, _, last in parts for each in (last, ANY_NAME)}
    return not meant.isdisjoint(stores_in(tree))


def _patched(call: ast.Call) -> str | None:
    """The dotted name that a call gets first, if the call says that it replaces something; not in a text."""
    first = call.args[0] if call.args else None
    path = (dotted_name(call.func) or "").split(".")
    says = replaces(call.func) and path[-1] != "replace" and {"mock", "mocker"}.isdisjoint(path)
    return str(first.value) if says and isinstance(first, ast.Constant) else None


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules that a file imports from outside its package, and the modules that these are in."""
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                found = [each.name for each in aliases]
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                found = [f"{module}.{each.name}" for each in aliases]
            case _:
                continue
        yield from (each for path in found for each in (top_of(path), *owners_of(path)))


def may_replace(data: bytes, names: tuple[str, ...]) -> bool:
    """Whether a file with these bytes may replace one of some dotted names of torch."""
    if any(each in data for each in _NOT_IN_TORCH) and any(each in data for each in _REPLACING):
        return True
    if b"torch" not in data:
        return False
    of_torch, *setting = _setting(names)
    for found in of_torch.finditer(data):
        if not found["package"] or any(each in data for each in _REPLACING):
            return True
    return any(each.search(data) is not None for each in setting)


_REPLACING = tuple(sorted({each.rpartition(".")[2].encode() for each in REPLACED_BY}))
_PACKAGES = tuple(sorted({top_of(each) for each in REPLACED_BY}))
_NOT_IN_TORCH = tuple(each.encode() for each in _PACKAGES if not each.startswith("torch"))
_LIKE_TORCH = "|".join(each.removeprefix("torch") for each in _PACKAGES if each.startswith("torch"))


@lru_cache(maxsize=64)
def _setting(names: tuple[str, ...]) -> tuple[re.Pattern[bytes], ...]:
    """How a file may set names of torch or modules that they are in; each begins with plain text, so as to be fast."""
    paths = [each.split(".")[1:] for each in names]
    last = "|".join(sorted({part for path in paths for part in path}))
    modules = ("torch", *sorted({part for path in paths for part in path[:-1]}))
    quoted = "|".join("".join(rf"(?:\.{part}" for part in path) + ")?" * (len(path) - 1) + ")" for path in paths)
    dicts = "|".join(rf"(?<=\b{each}\.__dict__)" for each in modules)
    passed = "|".join(modules)
    patterns = (
        rf"torch(?:(?P<package>{_LIKE_TORCH})\b|(?:{quoted})['\"])",
        rf"\.(?:{last})\s*=(?!=)",
        rf"setattr\s*\(\s*(?:\w+\.)*(?:{passed})\b",
        rf"vars\s*\(\s*(?:\w+\.)*(?:{passed})\b",
        rf"\.__dict__(?:{dicts})",
    )
    return tuple(re.compile(each.encode()) for each in patterns)
