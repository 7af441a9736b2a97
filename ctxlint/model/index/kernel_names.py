"""The names in the code of a kernel, also those that another file of the project imports: ``from common import tl``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    import ast

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition, Project
    from ctxlint.model.index.scopes import Scope

Aliases = tuple[tuple[str, "str | Definition"], ...]
"""What resolved names mean elsewhere: ``("common.tl", "triton.language")``, or a function of another file."""

_WORD = pattern(r"[^\W\d]\w*")
_KNOWN = (LOCAL, "builtins.", "triton.", "torch.", "numba.", "warp.", "cuda.")


def meaning_in_kernel(node: ast.expr, scope: Scope, aliases: Aliases) -> str:
    """The dotted name that an expression means; empty if it has none."""
    name = resolve(dotted_name(node) or "", scope) or ""
    outside = ((own, meant) for own, meant in aliases if isinstance(meant, str))
    return next((meant + name[len(own) :] for own, meant in outside if f"{name}.".startswith(f"{own}.")), name)


def aliases_in(project: Project, unit: Unit, qualname: str) -> Aliases:
    """What the names in a function and its decorators mean that another file of the project imports."""
    return project.once(("aliases", qualname), lambda: _aliases_in(project, unit, qualname), unit.summaries)


def _aliases_in(project: Project, unit: Unit, qualname: str) -> Aliases:
    record = unit.index.functions[qualname]
    first = min((each.lineno for each in record.node.decorator_list), default=record.node.lineno)
    words = set(_WORD.findall(unit.source.lines(first, record.node.end_lineno or record.node.lineno)))
    resolved = {word: resolve(word, record.scope) for word in sorted(words)}
    found = []
    for own in resolved.values():
        meant = None if own is None or own.startswith(_KNOWN) else project.meaning_elsewhere(unit, own)
        if own is not None and meant is not None:
            found.append((own, meant))
    return tuple(found)
