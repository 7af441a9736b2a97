"""What forward keeps for a backward that never reads it: flags and numbers on ctx, tensors, and saved tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.attribute_uses import only_tested_for_none
from ctxlint.model.analyses.same_values import gives_the_same_values
from ctxlint.model.analyses.undefined_attributes import attributes_known
from ctxlint.model.analyses.unread_arguments import unread_by_callee
from ctxlint.model.interpreter.events import ContextCall, ContextRead, ContextWrite, SavedItem, SavedRead
from ctxlint.model.interpreter.values import NONE, Constant, Scalar, Tri, is_input
from ctxlint.model.syntax import compares_identity, dotted, only_target
from ctxlint.records import record
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.analyses.unread_arguments import Unread
    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


@record
class UnreadAttribute:
    """``ctx.attribute = value``, which backward never reads.

    ``tested``: the input that is kept, if forward computes other values by it. ``given_to`` are the parameters of
    functions that backward passes it to, if none of them is read. ``bound`` are the statements
    ``name = ctx.attribute``, if nothing reads ``name``, and ``instead`` is ``name=1.0``, if backward passes that to
    a call.
    """

    write: ContextWrite
    tested: Input | None
    given_to: tuple[Unread, ...] = ()
    bound: tuple[cst.Assign, ...] = ()
    instead: cst.Arg | None = None


def unread_attributes(fn: FunctionClass, backward: Method) -> Iterator[UnreadAttribute]:
    """The flags, numbers, shapes and types that forward keeps in attributes of ctx, and that nothing reads."""
    if not attributes_known(fn) or fn.called_directly:
        return
    read = {each.attribute: each for method in fn.methods.values() for each in method.facts.of(ContextRead)}
    for name, writes in fn.writes_by_attribute.items():
        first = writes[0]
        if name in autograd.FUNCTION_CTX_ATTRIBUTES or any(each.by or each.deletes for each in writes):
            continue
        entry = _input(fn, first)
        tested = entry if entry is not None and _changes_values(fn, entry.name) else None
        if not all(_is_plain(fn, each) for each in writes):
            continue
        bound = _bound_for_nothing(fn, backward, name) if name in read else ()
        if bound:
            yield UnreadAttribute(first, tested, bound=bound, instead=_passed_instead(backward, bound[0]))
            continue
        given_to = () if name not in read else _given_to(fn, backward, name)
        if given_to is not None and (name not in read or tested is not None):
            yield UnreadAttribute(first, tested, given_to)


def unread_save(fn: FunctionClass, backward: Method) -> ContextCall | None:
    """The first ``save_for_backward`` that saves a tensor, if no method of the class reads ``ctx.saved_tensors``."""
    if not attributes_known(fn) or fn.called_directly or backward.raises_only or fn.source.mentions("grad_fn"):
        return None
    if any(method.facts.of(SavedRead) or method.facts.of(SavedItem) for method in fn.methods.values()):
        return None
    own = {id(each) for method in fn.context_methods if not method.inherited for each in method.facts.of(ContextCall)}
    saves = (each for each in fn.saves if id(each) in own and not each.by)
    found = next((each for each in saves if any(slot.value != NONE for slot in each.arguments)), None)
    return found if found is not None and _sees_a_tensor(fn, found) else None


def _sees_a_tensor(fn: FunctionClass, save: ContextCall) -> bool:
    """Whether an input may be a tensor, not only hold some: else ``apply`` creates no node that keeps what is saved."""
    containers = {slot.value.index for slot in save.arguments if slot.starred and is_input(slot.value)}
    inputs = [each for each in fn.inputs if each.is_tensor is not Tri.NO and each.index not in containers]
    return bool(inputs) or fn.variadic_inputs is not None


def kept_for_a_test(fn: FunctionClass, backward: Method) -> Iterator[tuple[ContextWrite, Input]]:
    """The inputs with a gradient that attributes of ctx keep, although backward only tests them for None."""
    if not attributes_known(fn) or fn.called_directly:
        return
    elsewhere = {each.attribute for each in _reads_elsewhere(fn, backward)}
    for name, (write, *others) in fn.writes_by_attribute.items():
        entry = _input(fn, write)
        if entry is None or others or write.by or name in elsewhere or entry.against_a_gradient:
            continue
        read = bool(backward.context_attributes.get(name)) and only_tested_for_none(backward, name)
        if read and entry.is_tensor is Tri.YES and entry.gradient is Tri.YES:
            yield write, entry


def _input(fn: FunctionClass, write: ContextWrite) -> Input | None:
    """The input that an attribute keeps."""
    value = write.value
    at = value.index if is_input(value) else len(fn.inputs)
    return fn.inputs[at] if at < len(fn.inputs) else None


def _is_plain(fn: FunctionClass, write: ContextWrite) -> bool:
    """Whether it is a flag, a number, a shape or a type: other objects may be kept alive on purpose."""
    entry = _input(fn, write)
    if entry is None:
        return isinstance(write.value, Constant) or (isinstance(write.value, Scalar) and write.value.sort in _PLAIN)
    if entry.is_tensor is Tri.YES:
        return False
    default = entry.param.default
    by_default = isinstance(default, Constant) and default.value is not None
    return by_default or entry.param.annotation in _ANNOTATIONS or _is_tested(fn, entry.name)


_PLAIN = frozenset(["bool", "float", "int", "number", "shape", "str"])
_ANNOTATIONS = frozenset(f"builtins.{each}" for each in ("bool", "float", "int", "str"))


def _is_tested(fn: FunctionClass, name: str) -> bool:
    """Whether forward decides something by the value of an input: ``if causal``, ``… if kind == "mean" else …``."""
    return any(_conditions(fn, name))


def _changes_values(fn: FunctionClass, name: str) -> bool:
    """Whether that may be more than the memory in which the same values are, as for ``inplace``."""
    return not all(map(gives_the_same_values, _conditions(fn, name)))


def _conditions(fn: FunctionClass, name: str) -> Iterator[cst.If | cst.IfExp]:
    """The conditions of forward that ask for the value of an input."""
    forward = fn.forward
    if forward is None:
        return
    for node in forward.named.get(name, ()):
        test: cst.CSTNode = node
        parent = forward.parents[test]
        while isinstance(parent, _IN_CONDITIONS) and not compares_identity(parent):
            test, parent = parent, forward.parents[parent]
        if isinstance(parent, (cst.If, cst.IfExp)) and parent.test is test:
            yield parent


_IN_CONDITIONS = (cst.UnaryOperation, cst.BooleanOperation, cst.Comparison, cst.ComparisonTarget)


def _given_to(fn: FunctionClass, backward: Method, name: str) -> tuple[Unread, ...] | None:
    """The parameters that backward passes an attribute to, if that is all it does, and none is read; else None."""
    if any(each.attribute == name for each in _reads_elsewhere(fn, backward)):
        return None
    found: list[Unread] = []
    for node in backward.context_attributes.get(name, ()):
        for use in _uses(backward, node):
            argument = backward.parents[use]
            unread = unread_by_callee(backward, argument) if isinstance(argument, cst.Arg) else None
            if unread is None:
                return None
            found.append(unread)
    return tuple(found) or None


def _bound_for_nothing(fn: FunctionClass, backward: Method, name: str) -> tuple[cst.Assign, ...]:
    """The statements that bind names to an attribute, if that is all that backward does with it."""
    nodes = backward.context_attributes.get(name, ())
    found = [node for node in (backward.parents[each] for each in nodes) if isinstance(node, cst.Assign)]
    idle = len(found) == len(nodes) and not any(_uses(backward, each) for each in nodes)
    return tuple(found) if idle and all(each.attribute != name for each in _reads_elsewhere(fn, backward)) else ()


def _passed_instead(backward: Method, bound: cst.Assign) -> cst.Arg | None:
    """The argument ``name=1.0`` of a call in backward, for the name that a statement binds."""
    name = dotted(bound.targets[0].target)
    given = (each for each in backward.nodes_of(cst.Arg) if each.keyword is not None and each.keyword.value == name)
    return next((each for each in given if isinstance(each.value, _LITERALS) or dotted(each.value) in _FLAGS), None)


_LITERALS = (cst.BaseNumber, cst.SimpleString)
_FLAGS = ("True", "False")


def _reads_elsewhere(fn: FunctionClass, backward: Method) -> Iterator[ContextRead]:
    """The reads of ctx in other methods, and in functions that get the ctx."""
    for method in fn.methods.values():
        yield from (each for each in method.facts.of(ContextRead) if method is not backward or each.by)


def _uses(method: Method, node: cst.CSTNode) -> list[cst.CSTNode]:
    """An expression, or the reads of the only name that it is bound to."""
    target = only_target(method.parents[node])
    named = method.named.get(dotted(target) or "", ()) if target is not None else ()
    stores = [each for each in named if isinstance(method.parents[each], cst.AssignTarget)]
    if len(stores) != 1:
        return [node]
    return [each for each in named if each is not stores[0]]
