"""Every use of ctx in a method: what a rewrite must change, and what prevents it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.fixes.method_code import MethodCode


@record
class ContextUses:
    """The uses of ctx in one method.

    ``reads`` are the ``ctx.name`` that are read, by name, in the order of the text; ``stores`` those that are bound,
    modified or deleted. ``plain``: ctx has no other uses, and its name has no other meaning anywhere.
    """

    reads: dict[str, list[cst.Attribute]] = field(default_factory=dict)
    stores: dict[str, list[cst.Attribute]] = field(default_factory=dict)
    plain: bool = True


def context_uses(code: MethodCode, *, in_order: bool = True) -> ContextUses:
    """The uses of ctx in a method; none if it takes no ctx. Sorting them takes more time."""
    key = (ContextUses, in_order)
    if key not in code.notes:
        code.notes[key] = _context_uses(code, in_order=in_order)
    uses: ContextUses = code.notes[key]
    return uses


def _context_uses(code: MethodCode, *, in_order: bool) -> ContextUses:
    ctx = code.method.ctx
    if ctx is None:
        return ContextUses()
    reads: dict[str, list[cst.Attribute]] = {}
    stores: dict[str, list[cst.Attribute]] = {}
    plain = not code.binds(ctx.name)
    for name in code.uses(ctx.name) if in_order else code.named(ctx.name):
        if name is ctx.node.name:
            continue
        attribute = code.parents[name]
        if not isinstance(attribute, cst.Attribute) or attribute.value is not name or not code.in_own_scope(name):
            plain = False
        elif _is_stored(code, attribute):
            stores.setdefault(attribute.attr.value, []).append(attribute)
        else:
            reads.setdefault(attribute.attr.value, []).append(attribute)
    return ContextUses(reads, stores, plain)


def _is_stored(code: MethodCode, attribute: cst.Attribute) -> bool:
    """Whether an attribute is the target of an assignment, a loop, a ``with``, a ``del``; also as part of a tuple."""
    node: cst.CSTNode = attribute
    for above in code.above(attribute):
        if isinstance(above, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
            node = above
            continue
        if isinstance(above, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.Del)):
            return above.target is node
        return isinstance(above, cst.AsName) and above.name is node
    return False
