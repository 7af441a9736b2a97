"""The names in the code of a kernel, also those that another file of the project imports: ``from common import tl``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope

Aliases = tuple[tuple[str, str], ...]
"""What resolved names mean elsewhere: ``("common.tl", "triton.language")``."""

_KNOWN = (LOCAL, "builtins.", "triton.", "torch.", "numba.", "warp.", "cuda.")


def meaning_in_kernel(node: ast.expr, scope: Scope, aliases: Aliases) -> str:
    """The dotted name that an expression means; empty if it has none."""
    name = resolve(dotted_name(node) or "", scope) or ""
    return next((meant + name[len(own) :] for own, meant in aliases if f"{name}.".startswith(f"{own}.")), name)


def aliases_in(project: Project, unit: Unit, qualname: str) -> Aliases:
    """What the names in a function and its decorators mean that another file of the project imports."""
    return project.once(("aliases", qualname), lambda: _aliases_in(project, unit, qualname), unit.summaries)


def _aliases_in(project: Project, unit: Unit, qualname: str) -> Aliases:
    record = unit.index.functions[qualname]
    roots = {each.id for each in ast.walk(record.node) if isinstance(each, ast.Name)}
    resolved = {root: resolve(root, record.scope) for root in sorted(roots)}
    found = []
    for own in resolved.values():
        meant = None if own is None or own.startswith(_KNOWN) else project.meaning_elsewhere(unit, own)
        if own is not None and isinstance(meant, str):
            found.append((own, meant))
    return tuple(found)
