"""Which of several definitions of a name code of a notebook means: cells run one after the other, and again."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxlint.model.index.module_unit import Unit


def is_in_force(unit: Unit, qualname: str, line: int | None) -> bool:
    """Whether the last definition of a name is the one that code defined on this line certainly means.

    It is in a file that is not a notebook: all of it has run before its functions are called. In a notebook, the code
    may run before a later cell defines the name again, unless that does not change anything.
    """
    if line is None or not unit.source.has_cells:
        return True
    name = qualname.partition(".")[0].partition("@")[0]
    bounds = unit.index.module.names.get(name, ())
    earlier = [bound for bound in bounds if bound.line <= line]
    meant = [*earlier[-1:], *(bound for bound in bounds if bound.line > line)]
    if len(meant) < 2:
        return True
    lines = {bound.line for bound in meant}
    found = [each for each in unit.index.statements if isinstance(each, _DEFINITIONS) and each.lineno in lines]
    return len(found) == len(meant) and len(set(map(ast.dump, found))) == 1


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
