"""Where backward, or what it calls, unpacks the shape of a saved input into another number of names than forward."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.saved_state import single_save
from ctxlint.model.analyses.saved_tensors import saved_counts, saving_call
from ctxlint.model.interpreter.events import DataReplaced, GenericCall, Reshaped, Step
from ctxlint.model.interpreter.values import Parameter, SavedTensor, is_input
from ctxlint.model.syntax import only_target
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import Method


class ShapeUnpacking(NamedTuple):
    """``a, b = x.shape``: the ``statement``, the ``tensor`` and the number of names.

    Or a call of the function ``by``, which does so with the ``tensor`` that it gets; ``through`` leads there.
    """

    statement: cst.CSTNode
    tensor: cst.Name
    names: int
    by: str = ""
    through: tuple[Step, ...] = ()


class ShapeMismatch(NamedTuple):
    """Two unpackings of the shape of one tensor into different numbers of names: the later one raises ValueError."""

    here: ShapeUnpacking
    in_forward: ShapeUnpacking


def shape_mismatches(fn: FunctionClass, method: Method) -> Iterator[ShapeMismatch]:
    """The unpackings in a method that reads saved tensors that certainly raise if they run."""
    forward = fn.forward
    found = [*_unpackings(method), *_unpackings_of_callees(method)] if forward is not None else ()
    unpacked = [(tensor, each) for each in found if (tensor := _saved_input(fn, method, each)) is not None]
    if not unpacked or forward is None or not (forward.arguments_known and _shapes_stay(fn, method)):
        return
    for there in _unpackings(forward):
        entry = next((each for each in forward.own_params if each.name == there.tensor.value), None)
        always = runs(forward, there.statement) is Runs.ALWAYS and forward.holds_argument(
            there.tensor.value, there.tensor
        )
        for tensor, here in unpacked if always and entry is not None else ():
            if tensor.name == there.tensor.value and here.names != there.names:
                yield ShapeMismatch(here, there)
                break


def _shapes_stay(fn: FunctionClass, method: Method) -> bool:
    """Whether backward gets what forward saves, with its shape."""
    methods = {*fn.context_methods, method, *filter(None, (fn.forward,))}
    changed = any(each.facts.of(kind) for each in methods for kind in (Reshaped, DataReplaced))
    return not changed and saved_counts(fn, saving_call(method)) is not None


def _saved_input(fn: FunctionClass, method: Method, here: ShapeUnpacking) -> Parameter | None:
    """The input that is certainly unpacked: the name is only ever bound to that saved tensor."""
    value = method.value_of(here.tensor.value)
    saved = single_save(fn) if isinstance(value, SavedTensor) and saving_call(method) == "save_for_backward" else None
    if saved is None or not isinstance(value, SavedTensor) or not 0 <= value.index < len(saved):
        return None
    argument = saved[value.index].value
    return argument if is_input(argument) and runs(method, here.statement) is Runs.ALWAYS else None


def _unpackings(method: Method) -> Iterator[ShapeUnpacking]:
    """Every ``a, b = x.shape`` and ``a, b = x.size()`` outside of ``try``, in order."""
    for each in method.nodes_of(cst.Assign):
        tensor = _tensor_of_shape(each.value)
        targets = only_target(each)
        if tensor is None or not isinstance(targets, (cst.Tuple, cst.List)):
            continue
        starred = any(isinstance(element, cst.StarredElement) for element in targets.elements)
        if not starred and not any(isinstance(around, (cst.Try, cst.TryStar)) for around in method.above(each)):
            yield ShapeUnpacking(each, tensor, len(targets.elements))


def _unpackings_of_callees(method: Method) -> Iterator[ShapeUnpacking]:
    """The calls of project functions that certainly unpack the shape of what they get, outside of ``try``, in order."""
    for call in method.facts.of(GenericCall):
        definition = call.definition
        unit = present_unit(method, definition) if definition is not None else None
        record = unit.index.functions.get(definition.qualname) if definition is not None and unit is not None else None
        if (
            definition is None
            or unit is None
            or record is None
            or call.tried
            or not record.certain
            or record.node.decorator_list
        ):
            continue
        if call.replaceable:
            continue
        if any(slot.starred for slot in call.arguments):
            continue
        given = zip([*record.node.args.posonlyargs, *record.node.args.args], call.arguments)
        passed = {param.arg: slot for param, slot in given} | dict(call.keywords)
        for name, targets, statement in _unpacked_params(record.node):
            tensor = passed[name].node if name in passed and "." not in definition.qualname else None
            in_comprehension = tensor is not None and any(
                isinstance(each, cst.BaseComp) for each in method.above(tensor)
            )
            if isinstance(tensor, cst.Name) and not in_comprehension:
                step = Step(unit.path, unit.source.span_of(statement), f"`{definition.name}` unpacks it here")
                yield ShapeUnpacking(call.node, tensor, targets, definition.name, (step,))


def present_unit(method: Method, definition: Definition) -> Unit:
    """The file of a definition as it is now: a walk may be over the same method in an earlier version of the file."""
    home = method.home
    return home.unit if home is not None and home.unit.path == definition.unit.path else definition.unit


@lru_cache(maxsize=64)
def _unpacked_params(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[tuple[str, int, ast.stmt], ...]:
    """The names whose shape a function unpacks wherever it is called, with the number of targets and the statement."""
    found = {each: unpacked for each in function.body if (unpacked := _unpacked(each)) is not None}
    if not found or isinstance(function, ast.AsyncFunctionDef):
        return ()
    if any(isinstance(each, _YIELDS) for each in nodes_in(function)):
        return ()
    return tuple((*found[each], each) for each in _reached_unchanged(function.body, found))


def _unpacked(statement: ast.stmt) -> tuple[str, int] | None:
    """``x`` and 2 of ``a, b = x.shape`` and ``a, b = x.size()``."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(each, ast.Starred) for each in target.elts):
        return None
    attribute = "shape"
    if isinstance(value, ast.Call) and not value.args:
        value, attribute = value.func, "size"
    owner = value.value if isinstance(value, ast.Attribute) and value.attr == attribute else None
    return (owner.id, len(target.elts)) if isinstance(owner, ast.Name) else None


def _reached_unchanged(body: Iterable[ast.stmt], unpackings: Mapping[ast.stmt, tuple[str, int]]) -> Iterator[ast.stmt]:
    """The unpackings before anything that may end the function, of names that still have the shape of the argument."""
    bound: set[str] = set()
    for statement in body:
        if statement in unpackings and unpackings[statement][0] not in bound:
            yield statement
        for each in nodes_in(statement):
            if isinstance(each, (ast.Return, ast.Raise, ast.Try)):
                return
            bound.update(_may_be_reshaped(each))


def _may_be_reshaped(node: ast.AST) -> Iterator[str]:
    """The names that are bound at a node, or whose tensor may get another shape there, also by another name."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.attr.endswith("_") or isinstance(node.ctx, ast.Store):  # `x.unsqueeze_(0)`, `x.data = y`
            yield node.value.id
    elif isinstance(node, ast.Call):
        out = [each.value for each in node.keywords if each.arg == "out"]
        handed = out if _is_of_torch(node.func) else [*node.args, *(each.value for each in node.keywords)]
        yield from (each.id for each in handed if isinstance(each, ast.Name))
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Tuple, ast.List, ast.Dict)):
        held = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [getattr(node, "value", None)])
        yield from (each.id for each in held if isinstance(each, ast.Name))


def _is_of_torch(func: ast.expr) -> bool:
    """Whether a call is written as one of torch, or of a builtin that only looks: ``torch.sin``, ``len``."""
    while isinstance(func, ast.Attribute):
        func = func.value
    return isinstance(func, ast.Name) and func.id in ("torch", "F", "len", "isinstance", "print", "type", "range")


_YIELDS = (ast.Yield, ast.YieldFrom)


def _tensor_of_shape(node: cst.BaseExpression) -> cst.Name | None:
    """``x`` of ``x.shape`` and ``x.size()``."""
    attribute = "shape"
    if isinstance(node, cst.Call) and not node.args:
        node, attribute = node.func, "size"
    is_shape = isinstance(node, cst.Attribute) and node.attr.value == attribute
    return node.value if is_shape and isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) else None
