"""LibCST nodes as text."""

from __future__ import annotations

import libcst as cst

_CODE = cst.Module([])


def code_of(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return _CODE.code_for_node(node)


def dotted(node: cst.BaseExpression) -> str | None:
    """``a.b.c`` of an attribute chain; None for any other expression."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))
