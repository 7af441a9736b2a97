"""What an expression reaches for: names, attributes, items."""

from __future__ import annotations

import libcst as cst

from ctxlint.model.index.scopes import LOCAL, Scope, resolutions
from ctxlint.model.interpreter.events import (
    ClassAttribute,
    ContextRead,
    Escape,
    GradientFlag,
    MaybeNone,
    MaybeUnbound,
    NeedsInputGradRead,
    SavedItem,
    SavedRead,
    TupleUsedAsTensor,
    UnboundContext,
)
from ctxlint.model.interpreter.nested_scopes import NestedScopes
from ctxlint.model.interpreter.sequences import (
    integer,
    literal,
    sequence_item,
    slice_start,
    unknown_many,
)
from ctxlint.model.interpreter.values import (
    CONTEXT,
    NONE,
    UNBOUND,
    UNKNOWN,
    Alias,
    Context,
    ContextAttribute,
    Fresh,
    Imported,
    InputsTuple,
    Item,
    Kind,
    NeedsInputGrad,
    Opaque,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    View,
    is_container,
    is_tensor,
    kind_of,
    tensor_when_used,
    without,
)
from ctxlint.model.syntax import dotted
from ctxlint.torch_api import autograd, operations

SAVED_NAMES = ("saved_tensors", "saved_variables", "saved_for_forward")


class Access(NestedScopes):
    """Evaluates names, attributes and subscripts."""

    def __init__(self, scope: Scope, method_names: frozenset[str]) -> None:
        """Begin in the scope of a method that binds ``method_names``."""
        super().__init__()
        self.scope = scope
        """The scope in which the method's free names are looked up."""
        self.local_names = method_names
        """Every name that the method binds anywhere: such a name is never a global."""
        self.constants: dict[str, Value | None] = {}
        """What names of the module hold that are bound to a literal once."""
        self.protected = 0
        """How many ``try`` statements around take care of a missing attribute."""

    # Names

    def name(self, node: cst.Name) -> Value:
        name = node.value
        self.names_read.add(name)
        value = self.state.names.get(name)
        if value is not None:
            bound = without(value, UNBOUND) if value is not UNBOUND else Opaque(node)
            if bound is not value:
                self.record(MaybeUnbound, node, name=name)
            return bound
        if name in self.local_names:
            self.record(MaybeUnbound, node, name=name)
            return Opaque(node)
        return self.global_name(name, node)

    def global_name(self, name: str, node: cst.CSTNode) -> Value:
        """The value of a name that the method does not bind: an enclosing function's, the module's or a builtin."""
        owner = self.scope.owner(name)
        if owner is None:
            found = resolutions(name, self.scope)
            if found and found[0] is not None:
                return Imported(found[0])
            if name == "ctx" and not self.scope.sees_star_import():
                self.record(UnboundContext, node, name=name)
                return CONTEXT  # what the author means
            return Opaque(node)
        bounds = owner.live(name)
        if len(bounds) == 1 and not bounds[0].conditional and bounds[0].value is not None and owner.kind == "module":
            if name not in self.constants:
                self.constants[name] = literal(bounds[0].value)
            known = self.constants[name]
            if known is not None:
                return known
        target = next((each for each in resolutions(name, self.scope) if each is not None), None)
        return Imported(target) if target is not None else Opaque(node)

    def canonical(self, node: cst.BaseExpression) -> str | None:
        """The dotted name that an expression stands for, with imports resolved; None where it is no such thing.

        Where a condition decides between several, it is the first that could be followed.
        """
        return next((each for each in self.meanings(node) if each is not None), None)

    def meanings(self, node: cst.BaseExpression) -> list[str | None]:
        """Every dotted name that an expression may stand for; None among them for what cannot be followed."""
        path = dotted(node)
        if path is None:
            return []
        head, _, rest = path.partition(".")
        bound = self.state.names.get(head)
        if isinstance(bound, Imported):
            return [f"{bound.name}.{rest}" if rest else bound.name]
        if bound is not None or head in self.local_names:
            return []
        return resolutions(path, self.scope)

    # Attributes

    def attribute(self, node: cst.Attribute) -> Value:
        base = self.evaluate(node.value)
        name = node.attr.value
        if isinstance(base, Context):
            return self.context_attribute(node, name)
        self.note_none(node, base)
        if isinstance(base, Imported):
            if base.name.startswith(LOCAL):
                self.record(ClassAttribute, node, owner=base.name[len(LOCAL) :], attribute=name)
            return Imported(f"{base.name}.{name}")
        if isinstance(base, SavedTensors):
            self.saved_tuple_used(node, node.value, f"`.{name}`")
            return Opaque(node)
        if name == "requires_grad":
            self.record(GradientFlag, node, value=base, value_node=node.value)
        if name in operations.SCALAR_ATTRIBUTES and is_container(base) is not Tri.YES:
            return Scalar(operations.SCALAR_ATTRIBUTES[name], node, kind_of(base) if name == "dtype" else Kind.UNKNOWN)
        if name in operations.VIEW_ATTRIBUTES and tensor_when_used(base):
            return View(base, node)
        if name in ("values", "indices") and isinstance(base, Sequence) and len(base.slots) == 2 and base.exact:
            return base.slots[name == "indices"].value  # of a sort and its like; a plain tuple has no such attribute
        return Item(base, f".{name}") if not isinstance(base, Opaque) else Opaque(node)

    def note_none(self, node: cst.Attribute, base: Value) -> None:
        """Record an attribute of what may be None."""
        name = node.attr.value
        if (
            isinstance(node.value, cst.Name)
            and NONE in base.options()
            and not hasattr(None, name)
            and not self.protected
        ):
            self.record(MaybeNone, node, name=node.value.value, how=f".{name}")

    def context_attribute(self, node: cst.CSTNode, name: str, called: bool = False, guarded: bool = False) -> Value:
        """``ctx.name`` read."""
        if name in SAVED_NAMES:
            self.record(SavedRead, node, via=name, called=called)
            return SavedTensors(name)
        if name == "needs_input_grad":
            self.record(NeedsInputGradRead, node, whole=True)
            return NeedsInputGrad()
        if name == "__dict__" or (name in autograd.CONTEXT_METHODS and not called):
            self.record(Escape, node, how="stored")
            return Opaque(node)
        own = name in self.state.attributes
        self.record(ContextRead, node, attribute=name, called=called, guarded=guarded or self.protected > 0, own=own)
        return self.state.attributes[name] if own else ContextAttribute(name)

    def saved_tuple_used(self, node: cst.CSTNode, holder: cst.BaseExpression, how: str) -> None:
        """The whole tuple of saved tensors is used as if it were one tensor."""
        name = holder.value if isinstance(holder, cst.Name) else ""
        self.record(TupleUsedAsTensor, node, name=name, how=how)

    # Subscripts

    def subscript(self, node: cst.Subscript) -> Value:
        base = node.value
        index = _single_index(node)
        number = integer(self.evaluate(index)) if index is not None else None
        if isinstance(base, cst.Attribute) and base.attr.value == "needs_input_grad":
            if isinstance(self.peek(base.value), Context):
                self.evaluate(base.value)
                return self.needs_input_grad_item(node, NeedsInputGrad(), index, number)
        value = self.evaluate(base)
        if index is None:
            self.indices(node)
        if isinstance(value, NeedsInputGrad) and value.index is None:
            return self.needs_input_grad_item(node, value, index, number)
        return self.item(value, node, index, number)

    def needs_input_grad_item(
        self, node: cst.Subscript, flags: NeedsInputGrad, index: cst.BaseExpression | None, number: int | None
    ) -> Value:
        """``ctx.needs_input_grad[...]``, or an item of a part of it."""
        if flags.sliced and number is not None:
            number = flags.start + number if number >= 0 else None
        self.record(NeedsInputGradRead, node, index=number, whole=index is None)
        if index is not None:
            return Scalar("bool", node) if number is None or number < 0 else NeedsInputGrad(number)
        start = slice_start(node)
        return Scalar("object", node) if start is None else NeedsInputGrad(None, flags.start + start, sliced=True)

    def saved_item(self, node: cst.Subscript, saved: SavedTensors, index: bool, number: int | None) -> Value:
        """``ctx.saved_tensors[...]``, or an item of a part of it."""
        if number is not None and not saved.sliced:
            self.record(SavedItem, node, index=number, via=saved.via)
        if index:
            return Opaque(node) if number is None or number < 0 else SavedTensor(saved.start + number)
        start = slice_start(node)
        return Opaque(node) if start is None else SavedTensors(saved.via, saved.start + start, sliced=True)

    def indices(self, node: cst.Subscript) -> None:
        """Evaluate a subscript that is more than one plain index."""
        for element in node.slice:
            part = element.slice
            if isinstance(part, cst.Index):
                self.evaluate(part.value)
            elif isinstance(part, cst.Slice):
                for bound in (part.lower, part.upper, part.step):
                    if bound is not None:
                        self.evaluate(bound)

    def item(self, value: Value, node: cst.Subscript, index: cst.BaseExpression | None, number: int | None) -> Value:
        """``value[...]``."""
        if isinstance(value, Sequence):
            return sequence_item(value, node, number)
        if isinstance(value, SavedTensors):
            return self.saved_item(node, value, index is not None, number)
        if isinstance(value, InputsTuple):
            known = number is not None and -len(value.inputs) <= number < len(value.inputs)
            return value.inputs[number] if known and number is not None else Opaque(node)
        if isinstance(value, Scalar) and value.sort == "shape":
            return Scalar("int", node) if index is not None else Scalar("shape", node)
        if isinstance(value, (Variadic, Opaque, Item, ContextAttribute)) and number is not None:
            return Item(value, number)
        if isinstance(value, (Variadic, TensorTuple)) and isinstance(node.slice[0].slice, cst.Slice):
            return unknown_many("tuple", node)
        if tensor_when_used(value):
            if _basic_index(node):
                return View(value, node)
            picked = self.peek(index) if index is not None else UNKNOWN
            if isinstance(picked, Scalar) and picked.sort == "int":
                return View(value, node)
            if is_tensor(picked) is Tri.YES or isinstance(picked, Sequence):
                return Fresh(node, kind_of(value))
            return View(value, node, Alias.POSSIBLY)
        if isinstance(value, Imported) or is_container(value) is Tri.YES:
            return Opaque(node)
        return Item(value, number if number is not None else node)


def _single_index(node: cst.Subscript) -> cst.BaseExpression | None:
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        index = node.slice[0].slice
        return None if index.star else index.value
    return None


def _basic_index(node: cst.Subscript) -> bool:
    """Whether a subscript is made of slices, whole numbers, None and ``...`` only, so that it gives a view."""
    for element in node.slice:
        part = element.slice
        if isinstance(part, cst.Slice):
            continue
        value = part.value if isinstance(part, cst.Index) else None
        if isinstance(value, cst.UnaryOperation):
            value = value.expression
        if isinstance(value, (cst.Integer, cst.Ellipsis)):
            continue
        if isinstance(value, cst.Name) and value.value == "None":
            continue
        return False
    return True
