"""Tensors that have the shape of an input, and how many dimensions an input has by what the code does with it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.kept_values import saved_slot
from ctxlint.model.analyses.shape_unpackings import present_unit
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import Constant, Scalar
from ctxlint.model.syntax import dotted, single_index
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.operations import CONTIGUOUS_FACTORIES, CONTIGUOUS_FACTORY_METHODS, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_FOR_EACH_ELEMENT = frozenset(
    str.split(
        "abs cos erf exp expm1 log log1p log_softmax neg reciprocal relu rsqrt sigmoid sin softmax sqrt square tanh"
    )
)
"""Functions and methods of one tensor, whose result has its shape."""
_MODULES = ("torch", "F", "torch.nn.functional")


def input_like(fn: FunctionClass, method: Method, node: cst.BaseExpression) -> str:
    """The name of the input whose shape an expression certainly has in a method; empty if that is unknown."""
    return _only(_like(fn, method, node, set()))


def _only(found: set[str]) -> str:
    return next(iter(found)) if len(found) == 1 else ""


def _like(fn: FunctionClass, method: Method, node: cst.BaseExpression, seen: set[tuple[str, str]]) -> set[str]:
    """What an expression is like: inputs, and an empty string for what is unknown.

    The names that are ``seen`` add nothing more: ``x = x / 2`` keeps the shape.
    """
    spend()
    node = before_copies(node)
    if isinstance(node, cst.Name):
        return _name_like(fn, method, node.value, seen)
    if isinstance(node, cst.UnaryOperation):
        return _like(fn, method, node.expression, seen)
    if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        tensors = [each for each in (node.left, node.right) if not _is_number(method, each)]
        return {like for each in tensors for like in _like(fn, method, each, seen)} if tensors else {""}
    if isinstance(node, cst.Attribute) and method.is_on_ctx(node):
        return _kept_like(fn, method, node.attr.value, seen)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return {""}
    name, given = node.func.attr.value, [each.value for each in node.args if each.keyword is None and not each.star]
    of_module = dotted(node.func.value) in _MODULES
    if name in LAYOUT_KEEPING_FACTORIES or name in _FOR_EACH_ELEMENT:
        of = given[:1] if of_module else [node.func.value]
        return _like(fn, method, of[0], seen) if of else {""}
    if (name in CONTIGUOUS_FACTORIES and of_module) or name in CONTIGUOUS_FACTORY_METHODS:
        whose = whose_shape(given[0]) if given else None
        return _like(fn, method, whose, seen) if whose is not None else {""}
    return _like(fn, method, given[0], seen) if name in ("expand_as", "view_as", "reshape_as") and given else {""}


def whose_shape(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``x.shape`` and ``x.size()``; None for anything else."""
    called = isinstance(node, cst.Call) and not node.args
    func = node.func if isinstance(node, cst.Call) and called else node
    named = isinstance(func, cst.Attribute) and func.attr.value == ("size" if called else "shape")
    return func.value if isinstance(func, cst.Attribute) and named else None


def _is_number(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an operand certainly is one number: a literal, a size, or a name for one."""
    if isinstance(node, (cst.Integer, cst.Float)):
        return True
    if isinstance(node, cst.Subscript):
        return whose_shape(node.value) is not None and single_index(node) is not None
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return (node.func.attr.value, len(node.args)) in (("numel", 0), ("size", 1), ("item", 0))
    value = method.value_of(node.value) if isinstance(node, cst.Name) else None
    return isinstance(value, (Constant, Scalar))


def _name_like(fn: FunctionClass, method: Method, name: str, seen: set[tuple[str, str]]) -> set[str]:
    if (method.name, name) in seen:
        return set()
    seen.add((method.name, name))
    bound = [each for each in method.assignments.get(name, ()) if not each.augmented]
    binders = [each for each in method.binders.get(name, ()) if not isinstance(each, cst.AugAssign)]
    found = {name} if method is fn.forward and any(each.name == name for each in fn.inputs) else set()
    if len(bound) != len(binders) or not (bound or found):
        return {""}
    for each in bound:
        saved = saved_slot(fn, each.value)
        if saved is not None:
            found |= _in_forward(fn, saved.node, seen)
        else:
            found |= _like(fn, method, each.value_node, seen) if each.value_node is not None else {""}
    return found


def _kept_like(fn: FunctionClass, method: Method, attribute: str, seen: set[tuple[str, str]]) -> set[str]:
    """What a tensor is like that forward keeps on ctx."""
    writes = [*fn.writes_by_attribute.get(attribute, ())]
    once = len(writes) == 1 and method is not fn.forward and not writes[0].by
    return _in_forward(fn, writes[0].value_node, seen) if once else {""}


def _in_forward(fn: FunctionClass, node: cst.BaseExpression | None, seen: set[tuple[str, str]]) -> set[str]:
    """What an expression is like if it is one of forward."""
    forward = fn.forward
    known = forward is not None and node is not None and node in forward.parents
    return _like(fn, forward, node, seen) if forward is not None and node is not None and known else {""}


class Dimensions(NamedTuple):
    """How many dimensions a tensor has at least, and exactly; 0 if that is unknown."""

    least: int = 0
    exactly: int = 0


def dimensions_of(fn: FunctionClass, name: str) -> Dimensions:
    """How many dimensions an input has by what forward, backward and functions that get it read of it.

    What they read under a test counts. Unknown if one of them asks for the number, other than to refuse others.
    """
    found = [
        _dimensions(function, names)
        for method in (fn.forward, fn.backward)
        if method is not None
        for function, names in _readers(fn, method, name)
    ]
    if any(each is None for each in found):
        return Dimensions()
    known = [each for each in found if each is not None]
    least, exactly = max((each.least for each in known), default=0), {each.exactly for each in known} - {0}
    return Dimensions(least, exactly.pop() if len(exactly) == 1 else 0)


def are_matrices(fn: FunctionClass, name: str) -> bool:
    """Whether code that gets an input shows that it has two dimensions at most, or compares their number."""
    if dimensions_of(fn, name).exactly in (1, 2):
        return True
    methods = [each for each in (fn.forward, fn.backward) if each is not None]
    readers = [function for method in methods for function, _names in _readers(fn, method, name)]
    return any(isinstance(each, ast.Compare) and _asks_for_number(each) for node in readers for each in nodes_in(node))


def _asks_for_number(compared: ast.Compare) -> bool:
    attributes = {each.attr for each in ast.walk(compared) if isinstance(each, ast.Attribute)}
    called = {
        each.func.id for each in ast.walk(compared) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    }
    return not attributes.isdisjoint(_NUMBERS) or ("len" in called and not attributes.isdisjoint(("shape", "size")))


_NUMBERS = ("dim", "ndim", "ndimension")


def _readers(fn: FunctionClass, method: Method, name: str) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """The code of a method, and of the functions that it calls, with their names for tensors like an input."""
    if method.home is None:
        return
    functions = method.home.unit.index.functions
    own = functions.get(f"{method.home.qualname}.{method.name}")
    if own is not None:
        yield (
            own.node,
            frozenset(each for each in _names(fn, method) if _only(_name_like(fn, method, each, set())) == name),
        )
    for call in method.facts.of(GenericCall):
        if call.definition is None:
            continue
        unit = present_unit(method, call.definition)
        record = unit.index.functions.get(call.definition.qualname)
        if record is None or any(slot.starred for slot in call.arguments):
            continue
        given = zip([*record.node.args.posonlyargs, *record.node.args.args], call.arguments, strict=False)
        passed = [(each.arg, slot.node) for each, slot in given]
        passed += [(keyword, slot.node) for keyword, slot in call.keywords]
        like = frozenset(each for each, node in passed if node is not None and input_like(fn, method, node) == name)
        if like:
            yield record.node, like


def _names(fn: FunctionClass, method: Method) -> Iterable[str]:
    return {*method.assignments, *(each.name for each in fn.inputs)} if method is fn.forward else {*method.assignments}


def _dimensions(function: ast.AST, names: frozenset[str]) -> Dimensions | None:
    """What a function shows of the dimensions of tensors; None if it tests their number, and accepts several."""
    least, exactly = 0, 0
    parents = {child: node for node in nodes_in(function) for child in ast.iter_child_nodes(node)}
    for node in nodes_in(function):
        if not isinstance(node, ast.Name) or node.id not in names or node not in parents:
            continue
        above = parents[node]
        if isinstance(above, ast.Attribute) and above.attr in _NUMBERS:
            exactly = _asserted(above, parents)
            if not exactly:
                return None
            least = max(least, exactly)
        elif isinstance(above, ast.Attribute):
            measured, exact = _measured(above, parents)
            least, exactly = max(least, measured), exact or exactly
        elif isinstance(above, ast.Subscript) and above.value is node and isinstance(above.slice, ast.Tuple):
            least = max(least, _indexed(above.slice))
        elif isinstance(above, ast.Call) and node in above.args[:1] and _called(above) in _ALONG:
            least = max(least, _least(_dimension_given(above, 1)))
    return Dimensions(least, exactly)


def _asserted(asked: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> int:
    """2 for ``x.dim()`` in ``assert x.dim() == 2``; 0 for any other question."""
    above = parents[asked]
    compared = parents.get(above) if isinstance(above, ast.Call) else above
    if not isinstance(compared, ast.Compare) or len(compared.ops) != 1 or not isinstance(compared.ops[0], ast.Eq):
        return 0
    number = compared.comparators[0]
    known = isinstance(number, ast.Constant) and isinstance(number.value, int)
    return number.value if known and isinstance(parents.get(compared), ast.Assert) else 0  # type: ignore[attr-defined]


def _measured(attribute: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> tuple[int, int]:
    """How many dimensions there are at least, and exactly, by ``x.shape[1]``, ``a, b = x.shape``, ``x.sum(dim=1)``."""
    above = parents[attribute]
    sizes: ast.AST = attribute
    if isinstance(above, ast.Call) and above.func is attribute:
        if attribute.attr == "size" and above.args:
            return _least(above.args[0]), 0
        if attribute.attr in _ALONG:
            return _least(_dimension_given(above, 0)), 0
        sizes = above
    if attribute.attr not in ("shape", "size"):
        return 0, 0
    around = parents.get(sizes)
    if isinstance(around, ast.Subscript) and around.value is sizes:
        return _least(around.slice), 0
    target = around.targets[0] if isinstance(around, ast.Assign) and around.value is sizes else None
    if not isinstance(target, (ast.Tuple, ast.List)):
        return 0, 0
    starred = any(isinstance(each, ast.Starred) for each in target.elts)
    return len(target.elts) - starred, 0 if starred else len(target.elts)


def _indexed(indices: ast.Tuple) -> int:
    """How many dimensions a subscript takes: 2 for ``x[i, :]``."""
    none = (each for each in indices.elts if isinstance(each, ast.Constant) and each.value in (None, ...))
    starred = any(isinstance(each, ast.Starred) for each in indices.elts)
    return 0 if starred else len(indices.elts) - sum(1 for _ in none)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _dimension_given(call: ast.Call, place: int) -> ast.expr | None:
    """The dimension that a call names."""
    named = (each.value for each in call.keywords if each.arg in ("dim", "axis"))
    return next(named, call.args[place] if len(call.args) > place else None)


def _least(number: ast.expr | None) -> int:
    """How many dimensions there are if there is one with that number: 2 for 1 and for -2."""
    negative = isinstance(number, ast.UnaryOp) and isinstance(number.op, ast.USub)
    operand = number.operand if isinstance(number, ast.UnaryOp) and negative else number
    if not isinstance(operand, ast.Constant) or not isinstance(operand.value, int) or isinstance(operand.value, bool):
        return 0
    return operand.value if negative else operand.value + 1


_ALONG = frozenset(
    str.split("amax amin argmax argmin cumsum log_softmax logsumexp max mean min prod softmax std sum unbind var")
)
"""Functions and methods that take a dimension as the first argument after the tensor."""
