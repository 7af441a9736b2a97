"""Tensors that a kernel addresses with the strides of another, whose layout callers or autograd choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.layout_uses import given_elsewhere, input_of_any_layout, keeps_arguments
from ctxlint.model.analyses.strides import foreign_strides
from ctxlint.model.interpreter.strided_launches import any_layout
from ctxlint.model.interpreter.values import before_views, is_gradient, is_input
from ctxlint.records import record
from ctxlint.torch_api.operations import LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import ForeignStrides, Step
    from ctxlint.model.interpreter.values import Value


@record
class ForeignLayout:
    """A call by which a kernel addresses the tensors ``names`` with the strides of ``owner``.

    ``owner_varies`` and ``others_vary``: callers choose its layout, and theirs. ``alike``: these are the results of
    ``empty_like`` and the like, so that they have the strides of a dense ``owner``.
    """

    use: ForeignStrides
    names: tuple[str, ...]
    owner: str
    owner_varies: bool
    others_vary: bool
    alike: bool

    @property
    def through(self) -> tuple[Step, ...]:
        """The way to the launch."""
        return self.use.through


def foreign_layouts(fn: FunctionClass) -> Iterator[ForeignLayout]:
    """Where a kernel addresses an input, or a tensor that the Function creates, with the strides of another one.

    Only if the layout of one of them is that of an input as callers pass it, and no function of the project gets that
    input too, which may check it. What is addressed with strides of an incoming gradient is not among them, nor is such
    a gradient.
    """
    if not fn.signature_judgeable or fn.forward is None or not keeps_arguments(fn.forward):
        return
    checked: set[int] | None = None
    for method in (fn.forward, fn.backward):
        if method is None or method.inherited:
            continue
        groups: dict[tuple[cst.CSTNode, str, Value], list[tuple[ForeignStrides, _Layouts]]] = {}
        for use in foreign_strides(method.facts):
            layouts = _layouts(fn, use)
            if layouts is not None and checked is None:
                checked = {each.index for each in given_elsewhere(fn.forward) if is_input(each)}
            if layouts is not None and checked is not None and checked.isdisjoint(layouts.inputs):
                groups.setdefault((use.node, use.reader, before_views(use.owner)), []).append((use, layouts))
        for found in groups.values():
            yield _grouped(found)


@record
class _Layouts:
    """Whose layout callers choose; as for ``ForeignLayout``."""

    owner: Input | None
    other: Input | None
    alike: bool

    @property
    def inputs(self) -> list[int]:
        """The positions of these inputs."""
        return [each.index for each in (self.owner, self.other) if each is not None]


def _layouts(fn: FunctionClass, use: ForeignStrides) -> _Layouts | None:
    """Whose layout callers choose; None if a difference is not certain to matter."""
    if is_gradient(before_views(use.value)) or is_gradient(before_views(use.owner)):
        return None
    owner, other, like = (_chosen(fn, each) for each in (use.owner, use.value, use.like))
    if not use.made:
        return _Layouts(owner, other, alike=False) if other is not None else None
    if use.made in LAYOUT_KEEPING_FACTORIES and use.like is not None:
        same = _origin(fn, use.like) == _origin(fn, use.owner)
        chosen = owner if same else owner or like
        return _Layouts(owner, None if same else like, same) if chosen is not None else None
    return _Layouts(owner, None, alike=False) if owner is not None else None


def _origin(fn: FunctionClass, value: Value) -> Value:
    """What a tensor is a view of, as forward has it."""
    base = before_views(value)
    return before_views(kept_value(fn, base) or base)


def _chosen(fn: FunctionClass, value: Value | None) -> Input | None:
    """The input that a tensor is, or is a view of, if it has the layout that a caller chooses."""
    base = any_layout(value) if value is not None else None
    kept = kept_value(fn, base)
    base = any_layout(kept) if kept is not None else base
    return input_of_any_layout(fn, base) if base is not None else None


def _grouped(found: list[tuple[ForeignStrides, _Layouts]]) -> ForeignLayout:
    first, layouts = found[0]
    names = dict.fromkeys(_name(use.value_node) or use.name for use, _layouts in found)
    return ForeignLayout(
        first,
        tuple(each for each in names if each),
        _name(first.owner_node) or (layouts.owner.name if layouts.owner is not None else ""),
        any(each.owner is not None for _use, each in found),
        any(each.other is not None for _use, each in found),
        all(each.alike for _use, each in found),
    )


def _name(node: cst.BaseExpression | None) -> str:
    return node.value if isinstance(node, cst.Name) else ""
