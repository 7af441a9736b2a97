"""Flags that backward reads of elements of a list which forward has filled with copies: they are all False."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode import is_copied_by, is_off
from ctxlint.model.interpreter.events import GradientFlag
from ctxlint.model.syntax import dotted, is_name, keywords_of, last_name
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_SAVED = "saved_tensors"


@record
class FlagOfCopies:
    """A read of ``x.requires_grad`` in backward, and the copy in forward that ``x`` is, ``always`` or sometimes."""

    node: cst.CSTNode
    tensor: cst.BaseExpression
    copy: cst.BaseExpression
    always: bool


def flags_of_copies(fn: FunctionClass) -> Iterator[FlagOfCopies]:
    """The flags in backward of elements of ``ctx.saved_tensors``, or of a list on ctx, that are copies."""
    backward, forward = fn.backward, fn.setup_context or fn.forward
    if backward is None or forward is None or backward.inherited or forward.inherited or fn.escapes:
        return
    if any(each.switched for each in forward.facts.of(GradientFlag)) or _switches(backward):
        return
    for each in backward.facts.of(GradientFlag):
        if each.switched or each.value_node is None:
            continue
        kept = _container(backward, each.value_node)
        filled = _filled_with(fn, forward, kept) if kept is not None else ()
        copies = [node for node in filled if _is_copy(node) and is_off(forward, node)]
        if copies:
            yield FlagOfCopies(each.node, each.value_node, copies[0], len(copies) == len(filled))


def _switches(backward: Method) -> bool:
    """Whether backward sets the flag of an element of what forward keeps."""
    switched = [each.value_node for each in backward.facts.of(GradientFlag) if each.switched]
    return any(node is None or _container(backward, node) is not None for node in switched)


def _container(method: Method, element: cst.BaseExpression) -> str | None:
    """The attribute of ctx of which an expression is an element: ``tensors[i]``, or a name that a loop binds."""
    if isinstance(element, cst.Subscript):
        return _attribute(method, element.value)
    if not isinstance(element, cst.Name):
        return None
    for around in method.above(element):
        loops = [around] if isinstance(around, cst.For) else []
        clause = getattr(around, "for_in", None)
        while isinstance(clause, cst.CompFor):
            loops.append(clause)  # type: ignore[arg-type]
            clause = clause.inner_for_in
        for loop in loops:
            iterated = _iterated(loop.target, loop.iter, element.value)
            if iterated is not None:
                return _attribute(method, iterated)
    bound = method.bound_to(element.value)
    return _container(method, bound) if isinstance(bound, cst.Subscript) else None


def _iterated(target: cst.BaseExpression, over: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """What a loop runs through for the part of its target that has a name, also in ``enumerate`` and ``zip``."""
    if is_name(target, name):
        return over
    if not isinstance(target, cst.Tuple) or not isinstance(over, cst.Call) or not isinstance(over.func, cst.Name):
        return None
    place = next((at for at, each in enumerate(target.elements) if is_name(each.value, name)), None)
    if place is None:
        return None
    shift = {"zip": 0, "enumerate": 1}.get(over.func.value)
    at = place - shift if shift is not None else -1
    return over.args[at].value if 0 <= at < len(over.args) else None


def _attribute(method: Method, node: cst.BaseExpression) -> str | None:
    """The attribute of ctx that an expression is, by a name as well, or a list or tuple of it."""
    found = method.behind_name(node)
    while isinstance(found, cst.Call) and isinstance(found.func, cst.Name) and found.func.value in ("list", "tuple"):
        found = method.behind_name(found.args[0].value) if len(found.args) == 1 else None
    return found.attr.value if found is not None and method.is_on_ctx(found) else None


def _filled_with(fn: FunctionClass, forward: Method, attribute: str) -> tuple[cst.BaseExpression, ...]:
    """The expressions for the elements of what forward saves, or keeps in an attribute; empty if some are unknown."""
    if attribute == _SAVED:
        call = fn.saves[0].node if len(fn.saves) == 1 and not fn.saves[0].by else None
        only = call.args[0] if isinstance(call, cst.Call) and len(call.args) == 1 else None
        return _elements(forward, only.value) if only is not None and only.star == "*" else ()
    writes = fn.writes_by_attribute.get(attribute, ())
    if len(writes) != 1 or writes[0].by or writes[0].value_node is None:
        return ()
    return _elements(forward, writes[0].value_node)


def _elements(forward: Method, node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """The expressions for the elements of a list: of a comprehension, or what is appended to it; empty if unknown."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in ("list", "tuple"):
        if len(node.args) != 1:
            return ()
        node = node.args[0].value
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return _alternatives(node.elt)
    if not isinstance(node, cst.Name):
        return ()
    bound = forward.bound_to(node.value)
    if isinstance(bound, (cst.ListComp, cst.GeneratorExp)) or (isinstance(bound, cst.Call) and bound.args):
        return _elements(forward, bound) if _is_only_kept(forward, node.value) else ()
    begun = (isinstance(bound, cst.List) and not bound.elements) or (bound is not None and dotted(bound) == "list()")
    return _appended(forward, node.value) if begun else ()


def _appended(forward: Method, name: str) -> tuple[cst.BaseExpression, ...]:
    """What is appended to a list, if it is used for nothing else but to be kept; empty otherwise."""
    calls = [call for use in forward.named.get(name, ()) if (call := forward.called_on(use)[0]) is not None]
    if not _is_only_kept(forward, name) or any(len(each.args) != 1 for each in calls):
        return ()
    return tuple(each for call in calls for each in _alternatives(call.args[0].value))


def _is_only_kept(forward: Method, name: str) -> bool:
    """Whether a list is only appended to, copied, saved and kept on ctx: nothing may change its elements."""
    for use in forward.named.get(name, ()):
        around = forward.parents[use]
        if isinstance(around, cst.Arg):
            call = forward.parents[around]
            func = last_name(call.func) if isinstance(call, cst.Call) else None
            if func not in ("list", "tuple", "save_for_backward"):
                return False
        elif isinstance(around, cst.Attribute):
            if forward.called_on(use)[1] != "append":
                return False
        elif not isinstance(around, (cst.Assign, cst.AssignTarget)):
            return False
    return True


def _alternatives(node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """An expression, or both parts of ``x.clone() if is_tensor(x) else x``; without None."""
    parts = (node.body, node.orelse) if isinstance(node, cst.IfExp) else (node,)
    return tuple(each for each in parts if not is_name(each, "None"))


def _is_copy(node: cst.BaseExpression) -> bool:
    """Whether an expression certainly is a new tensor, or one without a graph."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name = last_name(node.func)
    if name == "to":
        return dotted(keywords_of(node).get("copy") or node.func) == "True"
    return name == "detach" or is_copied_by(node) or (_is_converted(name) and _is_copy(node.func.value))


def _is_converted(name: str) -> bool:
    """Whether a method gives the same tensor, or a copy of it."""
    return name in ("contiguous", "cpu", "cuda", "pin_memory", "view", "reshape")
