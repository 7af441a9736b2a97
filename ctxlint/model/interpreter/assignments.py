"""Assignments: names, attributes of ctx, items of lists and tensors, and taking tuples apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.calls import Calls
from ctxlint.model.interpreter.events import (
    Assigned,
    ClassAttribute,
    ContextWrite,
    Escape,
    GradientFlag,
    Mutation,
    NeedsInputGradRead,
    SavedRead,
    Unpacking,
)
from ctxlint.model.interpreter.sequences import element_of, integer, is_mutable, rest_of, unknown_content, with_item
from ctxlint.model.interpreter.values import (
    UNKNOWN,
    Choice,
    Constant,
    Context,
    Imported,
    NeedsInputGrad,
    Opaque,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    Tri,
    Value,
    is_container,
    is_tensor,
    tensor_when_used,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Assignments(Calls):
    """Binds targets."""

    def assign(self, node: cst.Assign) -> None:
        value = self.evaluate(node.value)
        simple = len(node.targets) == 1
        for target in node.targets:
            self.assign_target(target.target, value, node, node.value if simple else None)

    def annotated(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self.assign_target(node.target, self.evaluate(node.value), node, node.value)

    def assign_target(
        self,
        target: cst.BaseExpression,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None = None,
    ) -> None:
        """Bind one target. ``value_node`` is the right-hand side where it belongs to this target alone."""
        if isinstance(target, cst.Name):
            self.state.names[target.value] = self.seen_by_others(target.value, value)
            self.record(Assigned, target, name=target.value, value=value, value_node=value_node, statement=statement)
            if isinstance(value, SavedTensors) and not value.sliced:
                self.bound_saved_tensors(target.value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self.unpack(target, value, statement, value_node)
        elif isinstance(target, cst.Attribute):
            self.store_attribute(target, value, statement, value_node)
        elif isinstance(target, cst.Subscript):
            self.store_item(target, value, value_node)
        elif isinstance(target, cst.StarredElement):
            self.assign_target(target.value, Sequence("list", (Slot(value, starred=True),)), statement)

    def seen_by_others(self, name: str, value: Value) -> Value:
        """What a name holds after it is bound, where definitions inside the method see it too."""
        if name in self.rebound:
            return UNKNOWN
        if name in self.borrowed and is_mutable(value):
            return unknown_content(value)
        return value

    def unpack(
        self,
        target: cst.Tuple | cst.List,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None,
    ) -> None:
        if isinstance(value, SavedTensors) and not value.sliced:
            self.unpacked_saved_tensors(target, value_node.value if isinstance(value_node, cst.Name) else None)
        star = next((at for at, each in enumerate(target.elements) if isinstance(each, cst.StarredElement)), None)
        if value == NeedsInputGrad() and star is None:
            self.record(NeedsInputGradRead, target, whole=True, unpacked=len(target.elements))
        paired: tuple[cst.BaseExpression | None, ...] = (None,) * len(target.elements)
        if isinstance(value_node, (cst.Tuple, cst.List)) and len(value_node.elements) == len(target.elements):
            if star is None and not any(isinstance(each, cst.StarredElement) for each in value_node.elements):
                paired = tuple(each.value for each in value_node.elements)
        for at, element in enumerate(target.elements):
            if isinstance(element, cst.StarredElement):
                self.assign_target(element.value, rest_of(value, at, len(target.elements), element), statement)
            else:
                part = element_of(value, at, len(target.elements), star, element)
                self.assign_target(element.value, part, statement, paired[at])

    def bound_saved_tensors(self, name: str) -> None:
        """``saved = ctx.saved_tensors``: note the name on the event."""
        self.amend_saved_read(lambda read: replace(read, bound_to=name), None)

    def unpacked_saved_tensors(self, target: cst.Tuple | cst.List, holder: str | None) -> None:
        """The saved tuple, or the name ``holder`` that it is bound to, is taken apart."""
        names = tuple(
            each.value.value if isinstance(each.value, cst.Name) and isinstance(each, cst.Element) else None
            for each in target.elements
        )
        starred = any(isinstance(each, cst.StarredElement) for each in target.elements)
        unpacking = Unpacking(names, starred, target, self.statement, self.state.guards)
        self.amend_saved_read(lambda read: replace(read, unpackings=(*read.unpackings, unpacking)), holder)

    def amend_saved_read(self, change: Callable[[SavedRead], SavedRead], holder: str | None) -> None:
        """Add to what is known of the last read of the saved tuple, or of the one bound to ``holder``."""
        if self.muted:
            return
        for at in reversed(self.saved_reads):
            spend()
            event = self.events[at]
            if isinstance(event, SavedRead) and (holder is None or event.bound_to == holder):
                self.events[at] = change(event)
                return

    def store_attribute(
        self,
        target: cst.Attribute,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None,
    ) -> None:
        owner = self.evaluate(target.value)
        if isinstance(owner, Context):
            name = target.attr.value
            self.state.attributes[name] = value
            simple = isinstance(statement, cst.Assign) and len(statement.targets) == 1
            simple = simple and statement.targets[0].target is target  # type: ignore[union-attr]
            self.record(
                ContextWrite,
                target,
                attribute=name,
                value=value,
                value_node=value_node,
                statement=self.statement,
                simple=simple,
            )
            if isinstance(value, Context):
                self.record(Escape, target, how="stored")
            return
        if isinstance(owner, Imported) and owner.name.startswith(LOCAL):
            name = target.attr.value
            self.record(ClassAttribute, target, owner=owner.name[len(LOCAL) :], attribute=name, written=True)
        if target.attr.value == "requires_grad":
            self.record(GradientFlag, target, value=owner, value_node=target.value, switched=True)
        if isinstance(value, Context):
            self.record(Escape, target, how="stored")
        self.share(value)

    def store_item(self, target: cst.Subscript, value: Value, node: cst.BaseExpression | None = None) -> None:
        """``holder[...] = value``."""
        if isinstance(value, Context):
            self.record(Escape, target, how="stored")
        holder = self.evaluate(target.value)
        self.indices(target)
        if not self.item_changed(target, holder, value, node):
            self.share(value)
            if isinstance(holder, Choice) or is_container(holder) is Tri.YES:
                return
            if not isinstance(holder, (Imported, Scalar, Constant)):
                self.mutated(target, target.value, holder, "[...] =")

    def item_changed(
        self, target: cst.Subscript, holder: Value, value: Value, node: cst.BaseExpression | None = None
    ) -> bool:
        """Put ``value`` into a list or dict; False where the holder is neither."""
        if not any(is_mutable(option) for option in holder.options()):
            return False
        single = len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index)
        at = self.constant_index(target)

        def after(container: Value) -> Value:
            if single and isinstance(container, Sequence) and container.kind == "list":
                return with_item(container, at, value, node)
            return unknown_content(container)

        self.change(holder, after)
        return True

    def constant_index(self, target: cst.Subscript) -> int | None:
        """The literal whole number in brackets."""
        if len(target.slice) != 1 or not isinstance(target.slice[0].slice, cst.Index):
            return None
        return integer(self.peek(target.slice[0].slice.value))

    def augmented(self, node: cst.AugAssign) -> None:
        change = self.use(node.value)
        target = node.target
        how = _operator_text(node.operator)
        if isinstance(target, cst.Name):
            value = self.evaluate(target)
            self.state.names[target.value] = self.after_augmented(node, target, value, change, how)
            after = self.state.names[target.value]
            self.record(Assigned, target, name=target.value, value=after, augmented=True, statement=node)
        elif isinstance(target, cst.Subscript):
            holder = self.evaluate(target.value)
            self.indices(target)
            if isinstance(holder, Sequence):
                self.mutated(node, target, self.peek(target), how)
            if self.item_changed(target, holder, Opaque(node)):
                return
            if is_container(holder) is not Tri.YES and not isinstance(holder, Choice):
                self.mutated(target, target.value, holder, f"[...] {how}")
        elif isinstance(target, cst.Attribute):
            value = self.evaluate(target)
            if isinstance(self.peek(target.value), Context):
                result = self.after_augmented(node, target, value, change, how)
                self.state.attributes[target.attr.value] = result
                self.record(ContextWrite, target, attribute=target.attr.value, value=result, statement=self.statement)
            elif tensor_when_used(value):
                self.mutated(node, target, value, how)

    def after_augmented(
        self, node: cst.AugAssign, target: cst.BaseExpression, value: Value, change: Value, how: str
    ) -> Value:
        """The value of ``x`` after ``x op= change``; a tensor is changed in place and stays what it was."""
        if tensor_when_used(value):
            self.mutated(node, target, value, how)
            return value
        if any(is_mutable(option) for option in value.options()):
            self.change(value, lambda old: self.combine(old, change, node.operator, node))
            return self.peek(target)
        if is_tensor(value) is Tri.NO or isinstance(value, Choice):
            return self.combine(value, change, node.operator, node)
        self.record(
            Mutation,
            node,
            target=value,
            target_node=target,
            how=how,
            name=target.value if isinstance(target, cst.Name) else None,
            statement=self.statement,
        )
        return Opaque(node)


def _operator_text(operator: cst.BaseAugOp) -> str:
    return _OPERATORS.get(type(operator), "op=")


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
