"""Several tensors that backward differentiates by, of which one may need no gradient: all parameters of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.values import SavedTensors, Sequence, Tri, Variadic
from ctxlint.model.syntax import dotted, is_name, keywords_of, literal_integer, single_index, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class FrozenTarget:
    """What ``torch.autograd.grad`` differentiates by: all of ``module.parameters()``, or all of ``*args`` as saved.

    ``needs_all``: it raises as well where one of the parameters is not used.
    """

    node: cst.BaseExpression
    name: str
    needs_all: bool = False


def frozen_targets(fn: FunctionClass) -> Iterator[FrozenTarget]:
    """What some call differentiates by, without a test in backward of which tensors need a gradient."""
    backward = fn.judgeable_backward
    if backward is None or backward.home is None or fn.escapes or _decides_flags(backward):
        return
    for call in backward.nodes_of(cst.Call):
        if not _is_grad(backward, call) or any(isinstance(each, _GUARDING) for each in backward.above(call)):
            continue
        named = keywords_of(call)
        plain = [each.value for each in call.args if each.keyword is None and not each.star]
        by = named.get("inputs") or (plain[1] if len(plain) > 1 else None)
        needs_all = named.keys().isdisjoint(("allow_unused", "materialize_grads")) and len(plain) < _WITH_FLAG
        for target in _parts(backward, by, frozenset()) if by is not None else ():
            found = _of_module(backward, target, needs_all) or _of_saved(fn, backward, target)
            if found is not None:
                yield found


_GUARDING = (cst.Try, cst.TryStar)
_WITH_FLAG = 6
"""The number of arguments by position that include ``allow_unused``."""


def _is_grad(method: Method, call: cst.Call) -> bool:
    name = dotted(call.func) or ""
    return name.partition(".")[0] not in method.binders and method.meaning(name) == "torch.autograd.grad"


def _decides_flags(method: Method) -> bool:
    """Whether a method asks which tensors require a gradient, or decides it for parameters."""
    tests = [
        *(each.test for each in method.nodes_of(cst.If)),
        *(each.test for each in method.nodes_of(cst.IfExp)),
        *(each.test for each in method.nodes_of(cst.CompIf)),
        *(each.test for each in method.nodes_of(cst.Assert)),
    ]
    loops = [each for each in method.nodes_of(cst.For) if "parameters" in words_of(each.iter)]
    named = any(not _FLAGS.isdisjoint(words_of(each)) for each in (*tests, *loops))
    return named or any(is_name(each.func, "filter") for each in method.nodes_of(cst.Call))


_FLAGS = frozenset(["requires_grad", "requires_grad_", "is_leaf", "grad_fn"])


def _parts(method: Method, node: cst.BaseExpression, seen: frozenset[str]) -> Iterator[cst.BaseExpression]:
    """The expressions that together give the tensors of one, such as those of a sum of tuples."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from _parts(method, node.left, seen)
        yield from _parts(method, node.right, seen)
    elif isinstance(node, (cst.Tuple, cst.List)):
        for each in node.elements:
            yield from _parts(method, each.value, seen)
    elif isinstance(node, cst.Call) and len(node.args) == 1 and dotted(node.func) in ("tuple", "list"):
        yield from _parts(method, node.args[0].value, seen)
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        inner = node.for_in
        if not inner.ifs and inner.inner_for_in is None and dotted(node.elt) == dotted(inner.target) is not None:
            yield from _parts(method, inner.iter, seen)
    else:
        value = method.bound_to(node.value) if isinstance(node, cst.Name) and node.value not in seen else None
        if isinstance(node, cst.Name) and isinstance(value, _CONTAINERS):
            yield from _parts(method, value, seen | {node.value})
        else:
            yield node


_CONTAINERS = (cst.BinaryOperation, cst.Tuple, cst.List, cst.Call, cst.ListComp)


def _of_module(method: Method, node: cst.BaseExpression, needs_all: bool) -> FrozenTarget | None:
    if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute):
        return None
    name = dotted(node.func)
    if node.func.attr.value != "parameters" or name is None or _is_switched(method, name.partition(".")[0]):
        return None
    return None if _asks_for(method, None) else FrozenTarget(node, f"{name}()", needs_all=needs_all)


def _of_saved(fn: FunctionClass, method: Method, node: cst.BaseExpression) -> FrozenTarget | None:
    if not isinstance(node, cst.Name) or _is_switched(method, node.value):
        return None
    value = method.value_of(node.value)
    parts = value.slots if isinstance(value, Sequence) else ()
    rest = parts[0].value if len(parts) == 1 and parts[0].starred else None
    start = _start_of_rest(fn, rest) if isinstance(rest, SavedTensors) else None
    others = any(each.gradient is Tri.YES for each in fn.inputs if start is not None and each.index < start)
    return FrozenTarget(node, node.value) if others and not _asks_for(method, start) else None


def _start_of_rest(fn: FunctionClass, saved: SavedTensors) -> int | None:
    """The index of the first of ``*args`` if what backward unpacks is all of it."""
    rest = fn.saves[0].arguments[saved.start :] if saved.sliced and len(fn.saves) == 1 else ()
    value = rest[0].value if len(rest) == 1 and rest[0].starred else None
    return value.start if isinstance(value, Variadic) and value.role == "input" else None


def _asks_for(method: Method, index: int | None) -> bool:
    """Whether a method may ask if an input from a place on, or any if the place is not known, needs a gradient."""
    for node in method.nodes_of(cst.Attribute):
        if node.attr.value == "needs_input_grad":
            above = method.parents[node]
            at = single_index(above) if isinstance(above, cst.Subscript) else None
            number = literal_integer(at) if isinstance(at, cst.Integer) else None
            if number is None or (index is not None and number >= index):
                return True
    return False


def _is_switched(method: Method, name: str) -> bool:
    """Whether a method mentions the flag of what a name means: ``x.requires_grad_()``."""
    flags = (each for each in method.nodes_of(cst.Attribute) if each.attr.value in _FLAGS)
    return any(name in words_of(each.value) for each in flags)
