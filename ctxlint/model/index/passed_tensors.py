"""Arguments that are a tensor without its graph, or a leaf: ``Fn.apply(weight.data)``, ``Fn.apply(self.weight)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import Collected
from ctxlint.torch_api.operations import USUAL_VIEW_METHODS, VIEW_ATTRIBUTES, VIEW_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from typing import TypeGuard

    from ctxlint.model.index.file_index import CallRecord

OF_LAYERS = frozenset(["weight", "bias"])
"""The parameters that layers of ``torch.nn`` have."""

SAME_MEMORY = (VIEW_METHODS | USUAL_VIEW_METHODS | VIEW_ATTRIBUTES) - {"data", "detach"}
"""Methods and attributes whose result is a view, with a graph."""


def is_detached(node: ast.expr) -> bool:
    """Whether an argument is written as a tensor without a graph: ``x.data``, ``x.detach()``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "detach" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "data"


def passes_detached(call: ast.Call, position: int) -> bool:
    """Whether a call certainly passes such an argument at this position."""
    passed = passed_at(call, position)
    return passed is not None and is_detached(passed)


def passes_leaf(call: ast.Call, position: int, parameters: AbstractSet[str]) -> bool:
    """Whether a call certainly passes what looks like a leaf that requires grad, or a view of one, at this position.

    ``parameters`` are the attributes of ``self`` that are parameters in the file.
    """
    passed = passed_at(call, position)
    while passed is not None:
        if isinstance(passed, ast.Call):
            passed = passed.func if isinstance(passed.func, ast.Attribute) and passed.func.attr in SAME_MEMORY else None
        elif isinstance(passed, ast.Subscript):
            passed = passed.value
        elif not isinstance(passed, ast.Attribute):
            return False
        elif passed.attr in SAME_MEMORY:
            passed = passed.value
        else:
            is_own = isinstance(passed.value, ast.Name) and passed.value.id == "self"
            return passed.attr in (parameters if is_own else OF_LAYERS)
    return False


def passes_created(call: ast.Call, position: int, created: AbstractSet[str]) -> bool:
    """Whether a call passes what is created with a ``requires_grad=`` that may be true, perhaps under a name."""
    passed = passed_at(call, position)
    return creates_possible_leaf(passed) or (isinstance(passed, ast.Name) and passed.id in created)


def creates_possible_leaf(node: ast.expr | None) -> bool:
    """Whether an expression is ``torch.empty(..., requires_grad=flag)``, unless the flag is written as False."""
    if not isinstance(node, ast.Call) or creates_parameter(node):
        return False
    return any(not _is_literal(each, False) for each in flags_of(node))


def created_among(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names to which code assigns such tensors, and nothing shows that they are another one's."""
    made = (each for each in nodes if isinstance(each, ast.Assign) and creates_possible_leaf(each.value))
    return frozenset(target.id for each in made for target in each.targets if isinstance(target, ast.Name))


def parameters_among(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The attributes of ``self`` that a file creates as parameters that require grad."""
    created = (each for each in nodes if isinstance(each, ast.Assign) and is_new_parameter(each.value))
    targets = (target for each in created for target in each.targets if isinstance(target, ast.Attribute))
    return frozenset(each.attr for each in targets if isinstance(each.value, ast.Name) and each.value.id == "self")


def is_new_parameter(node: ast.expr | None) -> bool:
    """Whether an expression creates a parameter that requires grad."""
    return creates_parameter(node) and all(_is_literal(each, True) for each in flags_of(node))


def is_frozen_parameter(node: ast.expr | None) -> bool:
    """Whether an expression is ``Parameter(..., requires_grad=False)``."""
    flags = flags_of(node) if creates_parameter(node) else []
    return bool(flags) and all(_is_literal(each, False) for each in flags)


def creates_parameter(node: ast.expr | None) -> TypeGuard[ast.Call]:
    """Whether an expression is ``Parameter(...)``."""
    return isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] == "Parameter"


def flags_of(call: ast.Call) -> list[ast.expr]:
    """The values that a call passes for ``requires_grad``, the second parameter of ``Parameter``."""
    by_position = call.args[1:2] if creates_parameter(call) else []
    return [*by_position, *(each.value for each in call.keywords if each.arg == "requires_grad")]


def _is_literal(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def makes_without_gradient(node: ast.expr | None) -> bool:
    """Whether an expression certainly makes a tensor that requires no gradient: ``torch.randn(3, device=d).half()``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if any(each.arg in ("requires_grad", None) for each in node.keywords):
            return False
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
            return node.func.attr in _MAKING
        if node.func.attr not in _CONVERTING:
            return False
        node = node.func.value
    return False


_MAKING = frozenset(str.split("arange empty eye full linspace normal ones rand randint randn randperm tensor zeros"))
_CONVERTING = frozenset(
    str.split("bfloat16 bool clone contiguous cpu cuda double float half int long reshape t to view")
)


def takes_one(node: ast.expr) -> bool:
    """Whether a call, if it is one of torch, takes only one argument by position: ``torch.zeros(x.size(), …)``."""
    name = (dotted_name(node.func) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""
    if name in _OF_A_SIZE and isinstance(node, ast.Call):
        first = node.args[0] if node.args else None
        size = first.func if isinstance(first, ast.Call) and not first.args else first
        return isinstance(size, ast.Attribute) and size.attr in ("shape", "size")
    return name in _OF_ONE


_OF_A_SIZE = frozenset(["empty", "ones", "rand", "randn", "zeros"])
_OF_ONE = frozenset(["empty_like", "ones_like", "rand_like", "randn_like", "tensor", "zeros_like"])


def takes_requests(node: ast.AST) -> bool:
    """Whether code mentions ``requires_grad``: then a tensor that it makes may get a gradient later."""
    return bool(_MENTIONED.within(node))


def _mentioned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (each.attr for each in nodes if isinstance(each, ast.Attribute) and each.attr.startswith("requires_grad"))


_MENTIONED = Collected(_mentioned)


NOT_TENSORS = ("container", "number", "bool", "string")


def what_is_passed(record: CallRecord, first: int) -> str:
    """What a call certainly passes from a position on that is not a tensor, one of ``NOT_TENSORS``; empty for none."""
    given = record.node.args
    if record.expects_error or any(isinstance(each, ast.Starred) for each in given):
        return ""
    found = {_sort_of(each, record) for each in given[first:]}
    return next((each for each in NOT_TENSORS if each in found), "")


def _sort_of(node: ast.expr, record: CallRecord) -> str:
    if record.is_hidden(node):
        return ""
    if isinstance(node, ast.Name):
        owner = record.scope.owner(node.id)
        bounds = owner.names[node.id] if owner is not None else []
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "assign" else None
        return _sort_of(value, record) if value is not None and not isinstance(value, ast.Name) else ""
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        return "container"
    return _SORTS.get(type(node.value), "") if isinstance(node, ast.Constant) else ""


_SORTS = {int: "number", float: "number", bool: "bool", str: "string"}


def names_requested(node: ast.AST) -> frozenset[str]:
    """The names that code requests a gradient of: ``x.requires_grad_()``, ``x = y.detach().requires_grad_()``."""
    return _REQUESTED.within(node)


def _requested(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for each in nodes:
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            if each.attr == "requires_grad_" or (each.attr == "requires_grad" and isinstance(each.ctx, ast.Store)):
                yield each.value.id
        elif isinstance(each, ast.Assign) and takes_requests(each.value):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))


_REQUESTED = Collected(_requested)


def passed_at(call: ast.Call, position: int) -> ast.expr | None:
    """The argument at a position; None if there is none, or if it is uncertain which one it is."""
    before = call.args[:position]
    if len(call.args) <= position or any(isinstance(each, ast.Starred) for each in before):
        return None
    return call.args[position]
