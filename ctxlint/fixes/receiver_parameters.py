"""The ctx parameter of a method: renaming, adding, or removing it, and the receiver before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.class_layout import layout_of
from ctxlint.fixes.decorators import without_receiver
from ctxlint.fixes.parameters import (
    Untraceable,
    append_parameters,
    drop_parameter,
    insert_parameter,
    mentions,
    rename_parameter,
    uses_of,
)
from ctxlint.model.analyses.context_parameter import works_by_accident
from ctxlint.model.function import ParameterKind, UnboundContext
from ctxlint.model.interpreter.local_names import bound_names

if TYPE_CHECKING:
    import libcst as cst

    from ctxlint.model.function import FunctionClass, Method

_NAME = "ctx"


def call_it_ctx(fn: FunctionClass, method: Method) -> Fix | None:
    """Rename the parameter that gets the ctx, and its uses; None if ``ctx`` means something else in the method.

    Nor if a known call passes it by its name.
    """
    layout, param = layout_of(fn, method), method.ctx
    if layout is None or param is None or not method.facts.complete:
        return None
    taken = mentions(method.node.body, _NAME) or any(each.name == _NAME for each in method.params)
    direct = (each for each in fn.calls if each.method == method.name)
    if (taken and not _only_unbound(method)) or any(param.name in each.keywords for each in direct):
        return None
    try:
        edits = rename_parameter(layout, method.node, param.node, _NAME)
    except Untraceable:
        return None
    return Fix(f"Rename `{param.name}` to `{_NAME}`", tuple(edits), _unsafe_if_called_directly(fn, method))


def write_ctx(fn: FunctionClass, method: Method, names: list[cst.Name]) -> Fix | None:
    """Replace unbound names by that of the ctx."""
    layout = layout_of(fn, method)
    if layout is None or method.ctx is None:
        return None
    edits = tuple(layout.replace(node, method.ctx.name) for node in names)
    return Fix(f"Write `{method.ctx.name}`", edits, _unsafe_if_called_directly(fn, method))


def add_ctx(fn: FunctionClass, method: Method) -> Fix | None:
    """Add ``ctx`` as the first parameter; None if the name is taken.

    Safe if the body uses an unbound ``ctx``; otherwise it is likely, but not certain, that this is intended.
    """
    layout = layout_of(fn, method)
    if layout is None or not method.facts.complete:
        return None
    used = bool(method.facts.of(UnboundContext))
    if any(each.name == _NAME for each in method.params) or _NAME in bound_names(method.node):
        return None
    if mentions(method.node.body, _NAME) and not used:
        return None
    others = [param for param in method.params if param is not method.receiver]
    if not others and method.name in ("backward", "vjp"):
        return None  # its gradients are missing as well
    before = others[0] if others else None
    if before is not None and before.kind not in (ParameterKind.POSITIONAL, ParameterKind.VARIADIC):
        return None
    if before is None and method.receiver is not None:
        edit = append_parameters(layout, method.receiver.node, [_NAME])
    else:
        edit = insert_parameter(layout, method.node, before.node if before is not None else None, _NAME)
    applicability = _unsafe_if_called_directly(fn, method) if used else Applicability.UNSAFE
    return Fix(f"Add `{_NAME}`", (edit,), applicability)


def drop_receiver(fn: FunctionClass, method: Method) -> Fix | None:
    """Remove the receiver before the ctx; None if the body uses it."""
    layout = layout_of(fn, method)
    if layout is None or method.receiver is None:
        return None
    edit = without_receiver(layout, method)
    if edit is None:
        return None
    applicability = Applicability.UNSAFE if works_by_accident(fn, method) else _unsafe_if_called_directly(fn, method)
    return Fix(f"Drop `{method.receiver.name}`", (edit,), applicability)


def drop_ctx(fn: FunctionClass, method: Method, *, ignored_setup_context: bool = False) -> Fix | None:
    """Remove the ctx from a method that gets none; None if the body uses it.

    Unsafe if a call may currently work by accident, with each input in the next parameter, and if the code may run on a
    torch that ignores ``setup_context``.
    """
    layout, param = layout_of(fn, method), method.ctx
    if layout is None or param is None or not method.facts.complete:
        return None
    try:
        if uses_of(method.node, param.name):
            return None
    except Untraceable:
        return None
    edit = drop_parameter(layout, method.node, param.node)
    if edit is None:
        return None
    exact = all(each.required and each.kind is ParameterKind.POSITIONAL for each in method.own_params)
    certain = exact and not ignored_setup_context
    return Fix(
        f"Drop `{param.name}`", (edit,), _unsafe_if_called_directly(fn, method) if certain else Applicability.UNSAFE
    )


def _unsafe_if_called_directly(fn: FunctionClass, method: Method) -> Applicability:
    """Safe, unless the same file calls the method directly, and so may depend on its parameters."""
    return Applicability.UNSAFE if method.name in fn.called_directly else Applicability.SAFE


def _only_unbound(method: Method) -> bool:
    """Whether every ``ctx`` in the method is unbound."""
    if not method.facts.of(UnboundContext) or any(each.name == _NAME for each in method.params):
        return False
    return _NAME not in bound_names(method.node)
