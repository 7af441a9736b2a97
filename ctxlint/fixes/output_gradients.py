"""Parameters of backward for the outputs of forward: as many as there are outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.edit import Applicability, Fix
from ctxlint.fixes.layout import layout_of
from ctxlint.fixes.parameters import Untraceable, append_parameters, drop_last_parameters, mentions, uses_of
from ctxlint.model.functions import ParameterKind

if TYPE_CHECKING:
    from ctxlint.fixes.layout import Layout
    from ctxlint.model.functions import FunctionClass, Method


def take_gradients(fn: FunctionClass, count: int) -> Fix | None:
    """Let backward take ``count`` gradients: add parameters that are not used, or take away those that are not."""
    backward = fn.backward
    layout = layout_of(fn, backward)
    if layout is None or backward is None or not backward.facts.complete:
        return None
    have = len(backward.positional)
    return _add(layout, backward, count - have) if count > have else _drop(layout, backward, count)


def _add(layout: Layout, backward: Method, more: int) -> Fix | None:
    listed = [param for param in backward.params if param.kind is ParameterKind.POSITIONAL]
    if not listed or listed[-1].has_default or backward.variadic is not None:
        return None
    if not backward.node.params.params:
        return None  # they stand before a slash
    names = _unused_names(backward, more)
    edit = append_parameters(layout, listed[-1].node, names)
    written = ", ".join(f"`{name}`" for name in names)
    return Fix(f"Take {written} too", (edit,), Applicability.UNSAFE)


def _unused_names(backward: Method, more: int) -> list[str]:
    """``_``, or ``_1``, ``_2`` … where there are several or that name is taken."""
    if more == 1 and not mentions(backward.node, "_"):
        return ["_"]
    found: list[str] = []
    number = 0
    while len(found) < more:
        number += 1
        if not mentions(backward.node, f"_{number}"):
            found.append(f"_{number}")
    return found


def _drop(layout: Layout, backward: Method, count: int) -> Fix | None:
    surplus = backward.positional[count:]
    if not surplus or backward.params[-1] is not surplus[-1]:
        return None
    try:
        if any(uses_of(backward.node, param.name) for param in surplus):
            return None
    except Untraceable:
        return None
    nodes = [param.node for param in backward.params]
    if any(node is each.node for node in backward.node.params.posonly_params for each in surplus):
        return None
    edit = drop_last_parameters(layout, nodes, len(nodes) - len(surplus))
    written = ", ".join(f"`{param.name}`" for param in surplus)
    return None if edit is None else Fix(f"Leave {written} out", (edit,), Applicability.UNSAFE)
