"""Functions in the style before torch 1.5, which keep their state on ``self``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.code import children
from ctxlint.model.functions import Binding, ContextCall, ContextRead, SavedRead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.functions import Method


def legacy_state(methods: Mapping[str, Method]) -> str | None:
    """Where the state is, in words: set in ``__init__``, or saved on ``self``. None for a Function of today.

    Only methods that are not static count, and only where the parameter in ctx's place is called ``self``: a static
    ``forward(self, x)`` names its ctx oddly and is no more than that.
    """
    walked = [methods[name] for name in ("forward", "backward") if name in methods]
    legacy = [
        method
        for method in walked
        if method.binding is Binding.INSTANCE and method.ctx is not None and method.ctx.name == "self"
    ]
    if not legacy or any(method.inherited for method in legacy):
        return None
    initial = methods.get("__init__")
    if initial is not None:
        set_there = set(_attributes_set(initial.node.body))
        for method in legacy:
            for read in method.facts.of(ContextRead):
                if read.attribute in set_there:
                    return f"`__init__` sets `self.{read.attribute}`"
    for method in legacy:
        if any(call.method == "save_for_backward" for call in method.facts.of(ContextCall)):
            return "`self.save_for_backward`"
        if method.facts.of(SavedRead):
            return "`self.saved_tensors`"
    return None


def _attributes_set(node: cst.CSTNode) -> Iterator[str]:
    for child in children(node):
        if isinstance(child, (cst.AssignTarget, cst.AnnAssign)):
            target = child.target
            if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
                yield target.attr.value
        else:
            yield from _attributes_set(child)
