"""Inputs that hold parameters: backward gives those their gradients itself, and autograd does not know of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import Differentiated
from ctxlint.model.interpreter.values import ContextAttribute, Tri, is_input
from ctxlint.model.syntax import last_name, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method

_ACCUMULATES = pattern(r"\w*(?:wgrad|accum)\w*|(?:add|put|set|store|update)_\w*grad\w*")
"""What a method is called that takes a gradient for an optimizer."""

_BACKWARD = pattern(r"backward|back_?prop|pull_?back")
"""Part of the name of a method that runs the backward pass of a block."""

_PARAMETER = pattern(r"(?:\w+_)?(?:weight|bias)s?\d*")
_ANCHOR = pattern(r"dummy|anchor|param|weight|bias|phantom", re.IGNORECASE)
"""What an input or a local name is called that may be a parameter, or there only to require a gradient."""

_ITERATES = frozenset({"enumerate", "list", "reversed", "tuple", "zip"})


@record
class HiddenParameters:
    """A call in backward through which the parameters in ``input`` get their gradients."""

    node: cst.Call
    input: Input


def hidden_parameters(fn: FunctionClass) -> HiddenParameters | None:
    """The first such call, if no input is a parameter, or there only to require a gradient."""
    backward, forward = fn.judgeable_backward, fn.forward
    if backward is None or forward is None or forward.inherited or not fn.signature_judgeable or fn.escapes:
        return None
    if any(call.leaves or call.parameter for call in fn.calls) or _may_be_anchored(fn, forward):
        return None
    inner = [each.node for each in backward.facts.of(Differentiated) if each.reaches_leaves]
    found: list[HiddenParameters] = []
    for call in backward.nodes_of(cst.Call):
        holder = input_behind(fn, backward, call.func) if call.args else None
        if holder is None or holder.is_tensor is Tri.YES or holder.gradient is Tri.YES:
            continue
        if not _gives_gradients(backward, call, inner):
            continue
        if is_differentiated(backward, call, inner):
            return HiddenParameters(call, holder)
        if _calls(forward, holder.name):
            found.append(HiddenParameters(call, holder))
    return found[0] if found else None


def _may_be_anchored(fn: FunctionClass, forward: Method) -> bool:
    """Whether an input may be a parameter, or there only to require a gradient."""
    plain = {each.name for each in fn.inputs if each.is_tensor is Tri.NO}
    named = any(_ANCHOR.search(name) for name in forward.named if name not in plain)
    return named or any(each.name not in forward.facts.names_read or _ANCHOR.search(each.name) for each in fn.inputs)


def input_behind(fn: FunctionClass, method: Method, node: cst.BaseExpression) -> Input | None:
    """The input that a callee is, or that it is a part of, if forward keeps that on ctx."""
    part = _origin(method, node)
    if not isinstance(part, cst.Attribute):
        return None
    stored = kept_value(fn, ContextAttribute(part.attr.value))
    return fn.inputs[stored.index] if is_input(stored) and stored.index < len(fn.inputs) else None


def _origin(method: Method, node: cst.BaseExpression) -> cst.BaseExpression:
    """``ctx.blocks`` for ``block.run`` in ``for block in reversed(ctx.blocks)``; a parameter for a part of it."""
    for _ in range(_STEPS):
        spend()
        if isinstance(node, cst.Attribute) and node in method.context_attributes.get(node.attr.value, ()):
            return node
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            node = node.value
        elif isinstance(node, cst.Call) and last_name(node.func) in _ITERATES and node.args:
            node = node.args[-1].value
        elif isinstance(node, cst.Name):
            source = _source(method, node.value)
            if source is None:
                return node
            node = source
        else:
            return node
    return node


_STEPS = 8


def _source(method: Method, name: str) -> cst.BaseExpression | None:
    """What a name is bound to, or an element of, if one statement binds it."""
    binders = method.binders.get(name, ())
    binder = binders[0] if len(binders) == 1 else None
    while binder is not None and not isinstance(binder, (cst.For, cst.Assign, cst.FunctionDef)):
        binder = method.parents.get(binder)
    if isinstance(binder, cst.For):
        return binder.iter
    return binder.value if isinstance(binder, cst.Assign) else None


def _gives_gradients(method: Method, call: cst.Call, inner: list[cst.CSTNode]) -> bool:
    """Whether a call of what an input holds gives the parameters in it their gradients."""
    attribute = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    own = isinstance(call.func, cst.Attribute) and call.func in method.context_attributes.get(attribute, ())
    if own or not isinstance(call.func, cst.Attribute) or attribute == "forward":
        return any(method.is_written_before(call, each) for each in inner)
    if _BACKWARD.search(attribute):
        return any(isinstance(each, cst.For) for each in method.above(call))
    return isinstance(method.parents.get(call), cst.Expr) and _ACCUMULATES.fullmatch(attribute) is not None


def is_differentiated(method: Method, call: cst.Call, inner: list[cst.CSTNode]) -> bool:
    """Whether the result of a call is bound to a name that is differentiated."""
    statement = method.parents.get(call)
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    names = {each.target.value for each in targets if isinstance(each.target, cst.Name)}
    return any(not names.isdisjoint(words_of(each)) for each in inner)


def runs_input(fn: FunctionClass, forward: Method, held: Input) -> bool:
    """Whether forward calls an input, or a part of it, by its name or where ctx keeps it, or reads a weight of it."""
    called = (each.func for each in forward.nodes_of(cst.Call))
    return _calls(forward, held.name) or any(input_behind(fn, forward, each) is held for each in called)


def _calls(forward: Method, name: str) -> bool:
    """Whether forward calls an input by its name, or a part of it, or reads a weight of it."""
    called = [each.func for each in forward.nodes_of(cst.Call)]
    read = (each for each in forward.nodes_of(cst.Attribute) if _PARAMETER.fullmatch(each.attr.value))
    origins = (_origin(forward, each) for each in (*called, *read))
    return any(isinstance(each, cst.Name) and each.value == name for each in origins)
