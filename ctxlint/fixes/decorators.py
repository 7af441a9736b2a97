"""Adding, moving and replacing decorators, each with its comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.class_layout import layout_of
from ctxlint.fixes.module_code import module_code
from ctxlint.fixes.parameters import drop_parameter, mentions
from ctxlint.model.analyses.context_parameter import works_by_accident
from ctxlint.model.function import Binding
from ctxlint.model.interpreter.values import Tri

if TYPE_CHECKING:
    from ctxlint.fixes.class_layout import Layout
    from ctxlint.model.function import FunctionClass, Method

_ONCE_DIFFERENTIABLE = ("torch.autograd.function.once_differentiable",)


def make_static(fn: FunctionClass, method: Method) -> Fix | None:
    """Add ``@staticmethod`` as the outermost decorator; a receiver before the ctx is removed.

    None if the body uses that receiver: its purpose is unknown.
    """
    layout = layout_of(fn, method)
    if layout is None or mentions(method.node, "staticmethod"):
        return None
    start = layout.start(method.node.decorators[0] if method.node.decorators else method.node)
    indentation = layout.indentation(start)
    if indentation is None:
        return None
    edits = [layout.insert(start, f"@staticmethod\n{indentation}")]
    message = "Add `@staticmethod`"
    receiver = method.receiver
    if receiver is not None:
        dropped = without_receiver(layout, method)
        if dropped is None:
            return None
        edits.append(dropped)
        message += f" and drop `{receiver.name}`"
    by_hand = method.name in fn.called_directly
    unsafe = by_hand or (receiver is not None and works_by_accident(fn, method))
    return Fix(message, tuple(edits), Applicability.UNSAFE if unsafe else Applicability.SAFE)


def without_receiver(layout: Layout, method: Method) -> Edit | None:
    """Remove the receiver before the ctx; None if the body uses it."""
    receiver = method.receiver
    if receiver is None or not method.facts.complete or mentions(method.node.body, receiver.name):
        return None
    return drop_parameter(layout, method.node, receiver.node)


def put_binding_first(fn: FunctionClass, method: Method, outer: int, binding: int) -> Fix | None:
    """Move the decorator number ``binding``, which binds the method, above the one number ``outer``."""
    layout = layout_of(fn, method)
    nodes = method.node.decorators
    if layout is None or outer >= binding:
        return None
    name = "staticmethod" if method.binding is Binding.STATIC else "classmethod"
    start, end = lines_of_decorator(layout, nodes[binding])
    target, _ = lines_of_decorator(layout, nodes[outer], first=outer == 0)
    edits = (layout.insert(target, layout.text[start:end]), layout.delete(start, end))
    known = all(_wraps_as_found(each.name, each.keeps_signature) for each in method.decorators[outer:binding])
    safe = known and method.binding is Binding.STATIC
    return Fix(f"Put `@{name}` first", edits, Applicability.SAFE if safe else Applicability.UNSAFE)


def _wraps_as_found(name: str | None, keeps_signature: Tri) -> bool:
    return name is not None and name.startswith("torch.") and keeps_signature is Tri.YES


def lines_of_decorator(layout: Layout, node: cst.Decorator, *, first: bool = False) -> tuple[int, int]:
    """The lines of a decorator, with the comments above it; those above the first one belong to the method."""
    start = layout.line_start(layout.start(node))
    for line in [] if first else node.leading_lines:
        start = min(start, layout.line_start(layout.start(line)))
    number = layout.line_number(layout.end(node))
    following = layout.source.line_starts
    return start, following[number] if number < len(following) else len(layout.text)


def static_for_class(fn: FunctionClass, method: Method) -> Fix | None:
    """Write ``@staticmethod`` for the ``@classmethod`` of a method that has no ``cls``."""
    layout = layout_of(fn, method)
    if layout is None or method.name in fn.called_directly:
        return None
    for decorator in method.node.decorators:
        expression = decorator.decorator
        if isinstance(expression, cst.Name) and expression.value == "classmethod":
            loose = works_by_accident(fn, method)
            return Fix(
                "Use `@staticmethod`",
                (layout.replace(expression, "staticmethod"),),
                Applicability.UNSAFE if loose else Applicability.SAFE,
            )
    return None


def mark_once_differentiable(fn: FunctionClass, method: Method) -> Fix | None:
    """Add ``@once_differentiable`` below ``@staticmethod``, or as the first decorator, and import it if necessary.

    None for a class method, and for one with a receiver before the ctx: the decorated function must take the ctx first.
    """
    layout, code = layout_of(fn, method, head=bool(method.node.decorators)), module_code(fn)
    if layout is None or code is None or method.binding is Binding.CLASS or method.receiver is not None:
        return None
    written = code.name_for(_ONCE_DIFFERENTIABLE, fn.slice.first_line)
    marked = method.decorator("staticmethod")
    static = marked.node if marked is not None else None
    first = method.node.decorators[0] if method.node.decorators else method.node
    start = layout.start(static if static is not None else first)
    indentation = layout.indentation(start)
    if written is None or indentation is None:
        return None
    name, imported = written
    if static is not None:
        at, text = lines_of_decorator(layout, static)[1], f"{indentation}@{name}\n"
    else:
        at, text = start, f"@{name}\n{indentation}"
    edits = (layout.insert(at, text),) if imported is None else (imported, layout.insert(at, text))
    message = f"Add `@{name}`" if imported is None else f"Add `@{name}` and its import"
    return Fix(message, edits, Applicability.UNSAFE)
