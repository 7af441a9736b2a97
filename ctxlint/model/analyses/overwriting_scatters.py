"""Gradients of a gather that backward scatters without adding: of those for one place, it keeps only one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_values import tells_no_values
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.returns import names_behind_returns
from ctxlint.model.analyses.upstream import is_call_for_zeros
from ctxlint.model.interpreter.values import ContextAttribute, Tri, is_input
from ctxlint.model.syntax import children, is_name, keywords_of, last_name, names_in, words_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method

_ADDING = {
    "index_copy": "index_add",
    "index_copy_": "index_add_",
    "scatter": "scatter_add",
    "scatter_": "scatter_add_",
}
"""What writes to places, each with what adds to them."""
_GATHERING = ("gather", "index_select", "take_along_dim")
_ONE_EACH = frozenset(["None", "argmax", "argmin", "keepdim", "newaxis", "unsqueeze", "view", "reshape"])
"""Words of an expression that may be an index with one element along the dimension, or of which none is twice."""


@record
class OverwritingScatter:
    """The call ``zeros.scatter_(0, indices, grad)`` for an input that forward gathers by ``indices``."""

    node: cst.Call
    input: Input
    index: Input

    @property
    def name(self) -> str:
        """The name of the function."""
        return last_name(self.node.func)

    @property
    def adding(self) -> str:
        """The name of that which adds."""
        return _ADDING[self.name]


class _Operands(NamedTuple):
    """The tensor, the places in it and the source, if any, of a call that gathers or scatters."""

    tensor: cst.BaseExpression
    places: cst.BaseExpression
    source: cst.BaseExpression | None


def overwriting_scatters(fn: FunctionClass) -> Iterator[OverwritingScatter]:
    """Such calls, to new zeros that are returned, with an incoming gradient and an index that is an input."""
    forward, backward = fn.forward, fn.counted_backward
    if forward is None or backward is None or forward.inherited or fn.escapes:
        return
    scattering = [each for each in backward.nodes_of(cst.Call) if last_name(each.func) in _ADDING]
    gathered = {*_gathered(fn, forward)} if scattering else set()
    for call in scattering if gathered else ():
        operands = _operands(call)
        if operands is None or operands.source is None or not _is_of_incoming(backward, operands.source):
            continue
        index = _saved_index(fn, backward, operands.places)
        for at, by in gathered:
            if by == index and _is_gradient(fn, backward, operands.tensor, call, at):
                yield OverwritingScatter(call, fn.inputs[at], fn.inputs[by])


def _gathered(fn: FunctionClass, forward: Method) -> Iterator[tuple[int, int]]:
    """The inputs with a gradient that forward gathers for an output, each with the input that is the index."""
    behind = names_behind_returns(forward)
    for call in forward.nodes_of(cst.Call):
        operands = _operands(call) if last_name(call.func) in _GATHERING else None
        if operands is None or not _ONE_EACH.isdisjoint(words_of(operands.places)):
            continue
        tensor, index = (_only_input(fn, forward, each) for each in operands[:2])
        if tensor is None or index is None or tensor.gradient is not Tri.YES or index.gradient is Tri.YES:
            continue
        statement = forward.statement_around(call)
        bound = [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else []
        if isinstance(statement, cst.Return) or any(not behind.isdisjoint(names_in(each)) for each in bound):
            yield tensor.index, index.index


def _operands(call: cst.Call) -> _Operands | None:
    """The operands of ``torch.gather(x, dim, index)`` or ``x.gather(dim, index)``; None with other keywords."""
    if not isinstance(call.func, cst.Attribute) or any(each.star for each in call.args):
        return None
    named, given = keywords_of(call), [each.value for each in call.args if each.keyword is None]
    if not is_name(call.func.value, "torch"):
        given.insert(0, call.func.value)
    parts = dict(zip(("input", "dim", "index", "src"), given, strict=False))
    parts |= {"src" if name == "source" else name: node for name, node in named.items()}
    if not parts.keys() <= {"input", "dim", "index", "src"} or not parts.keys() >= {"input", "dim", "index"}:
        return None
    return _Operands(parts["input"], parts["index"], parts.get("src"))


def _only_input(fn: FunctionClass, forward: Method, node: cst.BaseExpression) -> Input | None:
    """The only input whose values an expression reads, if it is not bound again."""
    names = {*_read(node)}
    found = [each for each in fn.inputs if each.name in names and not forward.binders.get(each.name)]
    return found[0] if len(found) == 1 else None


def _read(node: cst.CSTNode) -> Iterator[str]:
    """The names in an expression, but for those that are only asked for a shape or the like."""
    if isinstance(node, cst.Attribute) and tells_no_values(node):
        return
    if isinstance(node, cst.Name):
        yield node.value
    for each in children(node):
        yield from _read(each)


def _is_of_incoming(backward: Method, source: cst.BaseExpression) -> bool:
    """Whether the name of an incoming gradient, or what is bound to one, is in an expression."""
    incoming = {each.name for each in backward.own_params}
    names = {*_read(source)}
    names |= {
        word
        for name in names
        for each in backward.assignments.get(name, ())
        if each.value_node is not None
        for word in names_in(each.value_node)
    }
    return not names.isdisjoint(incoming)


def _saved_index(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> int | None:
    """The index of the only input of forward in an expression, which backward has from ctx."""
    if not _ONE_EACH.isdisjoint(words_of(node)):
        return None
    values = [backward.value_of(name) for name in names_in(node)]
    for attribute, reads in backward.context_attributes.items():
        if any(each is node or node in backward.above(each) for each in reads):
            values.append(ContextAttribute(attribute))
    kept = (kept_value(fn, value) for value in values)
    found = {each.index for each in kept if each is not None and is_input(each)}
    return found.pop() if len(found) == 1 else None


def _is_gradient(fn: FunctionClass, backward: Method, tensor: cst.BaseExpression, call: cst.Call, at: int) -> bool:
    """Whether new zeros that a call writes to, and nothing else does, are in the gradient for an input on each path."""
    made = backward.behind_name(tensor)
    if not isinstance(made, cst.Call) or not is_call_for_zeros(made):
        return False
    name = tensor.value if isinstance(tensor, cst.Name) else ""
    uses = [each for each in backward.named.get(name, ()) if each is not tensor]
    statements = [backward.statement_around(each) for each in uses]
    if any(isinstance(each, (cst.Expr, cst.AugAssign)) for each in statements):
        return False  # it is written to again
    slots = [each.slots[at] for each in fn.gradients if each.known and at < len(each.slots)]
    nodes = [each.node for each in slots if each.node is not None and not is_name(each.node, "None")]
    return bool(nodes) and all(_is_behind(backward, each, name, call) for each in nodes)


def _is_behind(backward: Method, node: cst.BaseExpression, name: str, call: cst.Call) -> bool:
    """Whether an expression has a name, or a call, in it, or what it names is bound to such an expression."""
    todo, seen = [node], set[str]()
    while todo:
        found = todo.pop()
        if found is call or found in backward.above(call) or name in names_in(found):
            return True
        new = names_in(found) - seen
        seen |= new
        todo += [each.value_node for word in new for each in backward.assignments.get(word, ()) if each.value_node]
    return False
