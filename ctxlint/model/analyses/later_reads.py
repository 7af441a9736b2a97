"""Reads of a tensor after a modification through another name, or one whose result got another name.

They look as if the old values were wanted: ``grad_x = grad.mul_(w); grad_w = grad * x``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned, GenericCall
from ctxlint.model.interpreter.values import Parameter, usual_storage
from ctxlint.model.syntax import compares_identity, is_name, last_name, leaves
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.events import Mutation
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


def wants_old_values(method: Method, mutation: Mutation, name: str) -> bool:
    """Whether code that may run after the modification of a parameter reads it, as if it still had its old values."""
    renamed = _is_bound_by_a_call if mutation.by else _has_another_name
    if mutation.in_loop or not renamed(method, mutation, name):
        return False
    return any(_is_value(method, each) for each in _read_after(method, mutation.node, name))


def is_shared_before(method: Method, mutation: Mutation, parameter: str) -> bool:
    """Whether a copy of a parameter where it is modified comes too late: its memory is in use before.

    Another name for it is read afterwards, as ``flat`` in ``flat = grad.view(-1); grad.mul_(2); use(flat)``, or a
    statement that only calls a function has passed it on, which is there for what it writes.
    """
    if any(_is_memory_of(parameter, slot.value) for slot in _passed_before(method, mutation)):
        return True
    names = {
        each.name
        for each in method.facts.of(Assigned)
        if mutation.may_follow(each) and each.value is not None and _is_memory_of(parameter, each.value)
    }
    others = names - {mutation.name, parameter}
    return any(_is_value(method, each) for name in others for each in _read_after(method, mutation.node, name))


def _passed_before(method: Method, mutation: Mutation) -> Iterator[Slot]:
    """What calls get that are statements of their own, before a modification."""
    for call in method.facts.of(GenericCall):
        alone = isinstance(method.parents.get(call.node), cst.Expr) and call.definition is None
        if alone and mutation.may_follow(call) and not (call.callee or "").startswith(("torch.", "builtins.")):
            yield from (*call.arguments, *dict(call.keywords).values())


def _is_memory_of(parameter: str, value: Value) -> bool:
    """Whether a value certainly shares memory with a parameter."""
    origin = usual_storage(value)
    return isinstance(origin, Parameter) and origin.name == parameter


def _has_another_name(method: Method, mutation: Mutation, name: str) -> bool:
    """Whether the modified tensor is used by another name than that of the parameter."""
    if mutation.name != name:
        return mutation.name is not None
    node = mutation.node
    if mutation.how in operations.IN_PLACE_COLLECTIVES:
        return False  # the result is a handle, if anything
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or mutation.how == "out=":
        return False
    small = method.statement_around(node)
    if isinstance(small, cst.Assign):
        return all(not is_name(target.target, name) for target in small.targets)
    return isinstance(small, cst.BaseSmallStatement) and not isinstance(small, cst.Expr)


def _is_bound_by_a_call(method: Method, mutation: Mutation, name: str) -> bool:
    """Whether the result of a function that modifies a parameter and returns it gets another name."""
    bound = [each for each in method.facts.of(Assigned) if each.value_node is mutation.node]
    others = [each for each in bound if each.name != name and each.value is not None]
    return len(bound) == 1 and any(_is_memory_of(name, each.value) for each in others if each.value is not None)


def _read_after(method: Method, node: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """The reads of a name in statements that may run after a node, up to one that binds the name again."""
    variables = method.variables
    last = max((at for at, each in enumerate(variables) if node in method.above(each)), default=len(variables))
    stopped_by: cst.CSTNode | None = None
    for each in variables[last + 1 :]:
        if each.value != name or _excluded(method, node, each):
            continue
        statement = method.statement_around(each)
        if stopped_by is not None and statement is not stopped_by:
            return
        if isinstance(method.parents.get(each), cst.AssignTarget):
            stopped_by = statement
        elif not isinstance(method.parents.get(each), cst.Del):
            yield each


def _is_value(method: Method, node: cst.Name) -> bool:
    """Whether a read is of the values of a tensor, not of its shape or the like."""
    around = method.parents.get(node)
    if isinstance(around, cst.Arg):
        call = method.parents.get(around)
        return not isinstance(call, cst.Call) or last_name(call.func) not in _LIKE
    if isinstance(around, cst.Comparison):
        return not compares_identity(around)
    return not isinstance(around, cst.Attribute) or around.attr.value not in _OTHER_THAN_VALUES


_OTHER_THAN_VALUES = frozenset(
    str.split("device dim dtype element_size is_contiguous is_cuda layout ndim numel requires_grad shape size stride")
)

_LIKE = operations.TORCH_LIKE | frozenset(str.split("expand_as isinstance reshape_as type_as view_as"))
"""Functions, and methods of another tensor, that do not read the values of their argument."""


def _excluded(method: Method, node: cst.CSTNode, later: cst.CSTNode) -> bool:
    """Whether a later node runs only where the other one does not: in another arm, or after its arm has returned."""
    above = set(method.above(later))
    for block in method.above(node):
        around = method.parents.get(block)
        if block in above or not isinstance(block, cst.IndentedBlock) or not isinstance(around, (cst.If, cst.Else)):
            continue
        if (isinstance(around, cst.If) and around in above) or leaves(block.body[-1]):
            return True
    return False
