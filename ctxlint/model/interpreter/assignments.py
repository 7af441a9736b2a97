"""Assignments: names, attributes of ctx, items of lists and tensors, and unpacking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.attribute_access import (
    change_contents,
    evaluate_indices,
    note_none_operand,
    set_context_attribute,
)
from ctxlint.model.interpreter.events import (
    Assigned,
    ClassAttribute,
    ContextWrite,
    DataReplaced,
    Escape,
    ExtraAttribute,
    GradientFlag,
    Mutation,
    NeedsInputGradRead,
    Unpacking,
)
from ctxlint.model.interpreter.expressions import combine, without_reading
from ctxlint.model.interpreter.names import bind_name
from ctxlint.model.interpreter.sequences import (
    element_of,
    integer,
    is_mutable,
    rest_of,
    unknown_content,
    with_item,
    with_key,
)
from ctxlint.model.interpreter.tensor_calls import changes_nothing, mutated
from ctxlint.model.interpreter.values import (
    Choice,
    Constant,
    Context,
    Imported,
    Mapping,
    NeedsInputGrad,
    Opaque,
    ProjectObject,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    Tri,
    Value,
    is_attribute_of_class,
    is_container,
    is_none,
    is_tensor,
    tensor_when_used,
)
from ctxlint.model.syntax import literal_text, names_in, parents_below, root_name, single_index
from ctxlint.torch_api import python

if TYPE_CHECKING:
    from ctxlint.model.interpreter.walk import Walk


def execute_assignment(walk: Walk, node: cst.Assign) -> None:
    """``a = b = value``."""
    kept = all(isinstance(each.target, cst.Attribute) for each in node.targets)
    value = without_reading(walk, node.value) if kept else walk.evaluate(node.value)
    simple = len(node.targets) == 1
    for target in node.targets:
        assign_target(walk, target.target, value, node, node.value if simple else None)


def execute_annotated(walk: Walk, node: cst.AnnAssign) -> None:
    """``name: kind = value``."""
    if node.value is not None:
        assign_target(walk, node.target, walk.evaluate(node.value), node, node.value)


def assign_target(
    walk: Walk,
    target: cst.BaseExpression,
    value: Value,
    statement: cst.CSTNode | None,
    value_node: cst.BaseExpression | None = None,
) -> None:
    """Bind one target. ``value_node`` is the right-hand side if it belongs to this target alone."""
    if isinstance(target, cst.Name):
        bind_name(walk, target, value, statement, value_node)
    elif isinstance(target, (cst.Tuple, cst.List)):
        _unpack(walk, target, value, statement, value_node)
    elif isinstance(target, cst.Attribute):
        _store_attribute(walk, target, value, statement, value_node)
    elif isinstance(target, cst.Subscript):
        _store_item(walk, target, value, value_node)
    elif isinstance(target, cst.StarredElement):
        assign_target(walk, target.value, Sequence("list", (Slot(value, starred=True),)), statement)


def _unpack(
    walk: Walk,
    target: cst.Tuple | cst.List,
    value: Value,
    statement: cst.CSTNode | None,
    value_node: cst.BaseExpression | None,
) -> None:
    if isinstance(value, SavedTensors) and not value.sliced:
        _unpacked_saved_tensors(walk, target, value_node.value if isinstance(value_node, cst.Name) else None)
    star = next((at for at, each in enumerate(target.elements) if isinstance(each, cst.StarredElement)), None)
    if value == NeedsInputGrad() and star is None:
        walk.record(NeedsInputGradRead, target, whole=True, unpacked=len(target.elements))
    paired: tuple[cst.BaseExpression | None, ...] = (None,) * len(target.elements)
    if isinstance(value_node, (cst.Tuple, cst.List)) and len(value_node.elements) == len(target.elements):
        if star is None and not any(isinstance(each, cst.StarredElement) for each in value_node.elements):
            paired = tuple(each.value for each in value_node.elements)
    for at, element in enumerate(target.elements):
        if isinstance(element, cst.StarredElement):
            assign_target(walk, element.value, rest_of(value, at, len(target.elements), element), statement)
        else:
            part = element_of(value, at, len(target.elements), star, element)
            assign_target(walk, element.value, part, statement, paired[at])


def _unpacked_saved_tensors(walk: Walk, target: cst.Tuple | cst.List, holder: str | None) -> None:
    """Record that the saved tuple, or the name ``holder`` that it is bound to, is unpacked."""
    names = tuple(
        each.value.value if isinstance(each.value, cst.Name) and isinstance(each, cst.Element) else None
        for each in target.elements
    )
    starred = any(isinstance(each, cst.StarredElement) for each in target.elements)
    unpacking = Unpacking(names, starred, target, walk.statement, walk.state.guards)
    walk.recorder.amend_saved_read(lambda read: replace(read, unpackings=(*read.unpackings, unpacking)), holder)


def _store_attribute(
    walk: Walk,
    target: cst.Attribute,
    value: Value,
    statement: cst.CSTNode | None,
    value_node: cst.BaseExpression | None,
) -> None:
    owner = walk.evaluate(target.value)
    if isinstance(owner, Context):
        simple = isinstance(statement, cst.Assign) and len(statement.targets) == 1
        simple = simple and statement.targets[0].target is target  # type: ignore[union-attr]
        set_context_attribute(walk, target, target.attr.value, value, value_node, simple)
        return
    if isinstance(owner, Imported):
        name = target.attr.value
        cleared = is_none(value) is Tri.YES
        home = owner.name.removeprefix(LOCAL)
        walk.record(ClassAttribute, target, owner=home, attribute=name, written=True, cleared=cleared, value=value)
    if isinstance(owner, ProjectObject):
        walk.state.escape(owner)
    if not isinstance(owner, Imported) and target.attr.value not in python.TENSOR_ATTRIBUTES_TO_SET:
        walk.record(
            ExtraAttribute, target, value=owner, value_node=target.value, attribute=target.attr.value, written=True
        )
    if target.attr.value == "data":
        walk.record(DataReplaced, target, target=owner, value=value)
    if target.attr.value == "requires_grad":
        walk.record(GradientFlag, target, value=owner, value_node=target.value, switched=True)
    if isinstance(value, Context):
        walk.record(Escape, target, how="stored")
    walk.state.escape(value)


def _store_item(walk: Walk, target: cst.Subscript, value: Value, node: cst.BaseExpression | None = None) -> None:
    """``holder[...] = value``."""
    if isinstance(value, Context):
        walk.record(Escape, target, how="stored")
    holder = walk.evaluate(target.value)
    evaluate_indices(walk, target)
    if not _item_changed(walk, target, holder, value, node):
        walk.state.escape(value)
        if isinstance(holder, Choice) or is_container(holder) is Tri.YES:
            return
        if is_attribute_of_class(holder) or not isinstance(holder, (Imported, Scalar, Constant)):
            mutated(walk, target, target.value, holder, "[...] =", chosen=_is_chosen_by_values(target))


def _is_chosen_by_values(target: cst.Subscript) -> bool:
    """Whether the elements are chosen by the values that are there: ``x.data[x > 1]``."""
    data = target.value
    if not isinstance(data, cst.Attribute) or data.attr.value != "data":
        return False
    compared = [each for part in target.slice for each in parents_below(part) if isinstance(each, cst.Comparison)]
    return any(root_name(data) in names_in(each) for each in compared)


def _item_changed(
    walk: Walk, target: cst.Subscript, holder: Value, value: Value, node: cst.BaseExpression | None = None
) -> bool:
    """Put ``value`` into a list or dict; False if the holder is neither."""
    if not any(is_mutable(option) for option in holder.options()):
        return False
    single = len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index)
    at = _constant_index(walk, target)
    key = _known_key(walk, target) if single else None

    def after(container: Value) -> Value:
        if single and isinstance(container, Sequence) and container.kind == "list":
            return with_item(container, at, value, node)
        if key is not None and isinstance(container, Mapping) and len(container.keys) == len(container.slots):
            return with_key(container, key, value, node)
        return unknown_content(container)

    change_contents(walk, target, holder, after)
    return True


def _known_key(walk: Walk, target: cst.Subscript) -> str | None:
    """The literal string in brackets, or that of a name."""
    index = single_index(target)
    value = walk.peek(index) if isinstance(index, cst.Name) else None
    text = value.value if isinstance(value, Constant) else literal_text(index)
    return text if isinstance(text, str) else None


def _constant_index(walk: Walk, target: cst.Subscript) -> int | None:
    """The literal integer in brackets."""
    if len(target.slice) != 1 or not isinstance(target.slice[0].slice, cst.Index):
        return None
    return integer(walk.peek(target.slice[0].slice.value))


def execute_augmented(walk: Walk, node: cst.AugAssign) -> None:
    """``target += value`` and the like."""
    change = walk.use(node.value)
    target = node.target
    how = _operator_text(node.operator)
    if isinstance(target, cst.Name):
        value = walk.evaluate(target)
        if tensor_when_used(change) and how.rstrip("=") in _ARITHMETIC:
            note_none_operand(walk, node, target, value, how)
        walk.state.names[target.value] = _after_augmented(walk, node, target, value, change, how)
        after = walk.state.names[target.value]
        walk.record(Assigned, target, name=target.value, value=after, augmented=True, statement=node)
    elif isinstance(target, cst.Subscript):
        holder = walk.evaluate(target.value)
        evaluate_indices(walk, target)
        if isinstance(holder, Sequence):
            mutated(walk, node, target, walk.peek(target), how)
        if _item_changed(walk, target, holder, Opaque(node)):
            return
        if is_container(holder) is not Tri.YES and not (isinstance(holder, Choice) or changes_nothing(how, change)):
            mutated(walk, target, target.value, holder, f"[...] {how}")
    elif isinstance(target, cst.Attribute):
        value = walk.evaluate(target)
        if isinstance(walk.peek(target.value), Context):
            result = _after_augmented(walk, node, target, value, change, how)
            walk.state.attributes[target.attr.value] = result
            walk.record(ContextWrite, target, attribute=target.attr.value, value=result, statement=walk.statement)
        elif tensor_when_used(value) and not changes_nothing(how, change):
            mutated(walk, node, target, value, how)


def _after_augmented(
    walk: Walk, node: cst.AugAssign, target: cst.BaseExpression, value: Value, change: Value, how: str
) -> Value:
    """The value of ``x`` after ``x op= change``; a tensor is modified in place and stays the same object."""
    if tensor_when_used(value):
        if not changes_nothing(how, change):
            mutated(walk, node, target, value, how)
        return value
    if any(is_mutable(option) for option in value.options()):
        change_contents(walk, target, value, lambda old: combine(walk, old, change, node.operator, node))
        return walk.peek(target)
    if is_tensor(value) is Tri.NO or isinstance(value, Choice):
        return combine(walk, value, change, node.operator, node)
    walk.record(
        Mutation,
        node,
        target=value,
        target_node=target,
        how=how,
        name=target.value if isinstance(target, cst.Name) else None,
        statement=walk.statement,
    )
    return Opaque(node)


def _operator_text(operator: cst.BaseAugOp) -> str:
    return _OPERATORS.get(type(operator), "op=")


_ARITHMETIC = ("+", "-", "*", "/", "@", "**")

_OPERATORS: dict[type, str] = {
    cst.AddAssign: "+=",
    cst.SubtractAssign: "-=",
    cst.MultiplyAssign: "*=",
    cst.DivideAssign: "/=",
    cst.FloorDivideAssign: "//=",
    cst.ModuloAssign: "%=",
    cst.PowerAssign: "**=",
    cst.MatrixMultiplyAssign: "@=",
    cst.BitAndAssign: "&=",
    cst.BitOrAssign: "|=",
    cst.BitXorAssign: "^=",
    cst.LeftShiftAssign: "<<=",
    cst.RightShiftAssign: ">>=",
}
