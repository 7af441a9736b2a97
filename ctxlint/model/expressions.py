"""What an expression evaluates to. Calls are in ``calls.py``, statements and paths in ``interpreter.py``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Callable

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.code import children, dotted, literal_integer, literal_text
from ctxlint.model.events import (
    ClassAttribute,
    ContextRead,
    Escape,
    MaybeUnbound,
    NeedsInputGradRead,
    SavedItem,
    SavedRead,
    TupleUsedAsTensor,
    UnboundContext,
)
from ctxlint.model.nested_scopes import NestedScopes
from ctxlint.model.scopes import LOCAL, Scope, resolutions
from ctxlint.model.sequences import (
    concatenation,
    fold,
    integer,
    literal,
    repetition,
    sequence_item,
    slice_start,
    spread,
)
from ctxlint.model.state import merge
from ctxlint.model.values import (
    CONTEXT,
    NONE,
    UNBOUND,
    UNKNOWN,
    Alias,
    Choice,
    Constant,
    Context,
    ContextAttribute,
    Fresh,
    Imported,
    InputsTuple,
    Item,
    Kind,
    Mapping,
    NeedsInputGrad,
    Opaque,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    Single,
    Slot,
    Tri,
    Value,
    Variadic,
    View,
    constant,
    is_container,
    is_tensor,
    join,
    kind_of,
    tensor_when_used,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Sequence as SequenceOf

SAVED_NAMES = ("saved_tensors", "saved_variables", "saved_for_forward")


class Expressions(NestedScopes):
    """Evaluates expressions in the current state."""

    def __init__(self, scope: Scope, method_names: frozenset[str]) -> None:
        """Begin in the scope of a method that binds ``method_names``."""
        super().__init__()
        self.scope = scope
        """The scope in which the method's free names are looked up."""
        self.local_names = method_names
        """Every name that the method binds anywhere: such a name is never a global."""
        self.protected = 0
        """How many ``try`` statements around take care of a missing attribute."""

    @abstractmethod
    def assign_target(
        self,
        target: cst.BaseExpression,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None = None,
    ) -> None:
        """Bind a target; see ``assignments``."""

    # Entry

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """The value of an expression; records what happens on the way."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return self.walk_children(node)
        return handler(self, node)

    def walk_children(self, node: cst.CSTNode) -> Value:
        """Evaluate what is inside an expression of a kind that nothing is known about."""
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self.evaluate(child)
            else:
                self.walk_children(child)
        return Opaque(node)

    def use(self, node: cst.BaseExpression) -> Value:
        """Evaluate an operand: a place where a tensor, a number or the like is needed."""
        value = self.evaluate(node)
        if isinstance(value, Context):
            self.record(Escape, node, how="stored")
        return value

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
            known = literal(bounds[0].value)
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
        if isinstance(base, Imported):
            if base.name.startswith(LOCAL):
                self.record(ClassAttribute, node, owner=base.name[len(LOCAL) :], attribute=name)
            return Imported(f"{base.name}.{name}")
        if isinstance(base, SavedTensors):
            self.saved_tuple_used(node, node.value, f".{name}")
            return Opaque(node)
        if name in tables.SCALAR_ATTRIBUTES and is_container(base) is not Tri.YES:
            return Scalar(tables.SCALAR_ATTRIBUTES[name], node)
        if name in tables.VIEW_ATTRIBUTES and tensor_when_used(base):
            return View(base, node)
        return Item(base, f".{name}") if not isinstance(base, Opaque) else Opaque(node)

    def context_attribute(self, node: cst.CSTNode, name: str, called: bool = False, guarded: bool = False) -> Value:
        """``ctx.name`` read."""
        if name in SAVED_NAMES:
            self.record(SavedRead, node, via=name, called=called)
            return SavedTensors(name)
        if name == "needs_input_grad":
            self.record(NeedsInputGradRead, node, whole=True)
            return NeedsInputGrad()
        if name == "__dict__" or (name in tables.CONTEXT_METHODS and not called):
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
        if tensor_when_used(value):
            if _basic_index(node):
                return View(value, node)
            picked = self.peek(index) if index is not None else UNKNOWN
            if is_tensor(picked) is Tri.YES or isinstance(picked, Sequence):
                return Fresh(node, kind_of(value))
            return View(value, node, Alias.POSSIBLY)
        if isinstance(value, Imported) or is_container(value) is Tri.YES:
            return Opaque(node)
        return Item(value, number if number is not None else node)

    # Displays

    def display(self, node: cst.Tuple | cst.List | cst.Set) -> Value:
        kind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        slots: list[Slot] = []
        for element in node.elements:
            slots.extend(self.slot(element))
        return Sequence(kind, tuple(slots), node)

    def slot(self, element: cst.BaseElement) -> SequenceOf[Slot]:
        """The slots that one element of a display gives: several for a star of known length."""
        value = self.use(element.value)
        if isinstance(element, cst.StarredElement):
            return spread(value, element.value)
        return (Slot(value, element.value),)

    def dictionary(self, node: cst.Dict) -> Value:
        slots: list[Slot] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                self.evaluate(element.key)
            slots.append(Slot(self.use(element.value), element.value, isinstance(element, cst.StarredDictElement)))
        return Mapping(tuple(slots), node)

    # Operators

    def binary(self, node: cst.BinaryOperation) -> Value:
        left, right = self.use(node.left), self.use(node.right)
        return self.combine(left, right, node.operator, node)

    def combine(self, left: Value, right: Value, operator: cst.CSTNode, node: cst.CSTNode) -> Value:
        """``left operator right``."""
        if isinstance(operator, (cst.Add, cst.AddAssign)):
            both = concatenation(left, right, node)
            if both is not None:
                return both
        if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
            repeated = repetition(left, right, node) or repetition(right, left, node)
            if repeated is not None:
                return repeated
        for operand, other, side in ((left, right, "left"), (right, left, "right")):
            expression = getattr(node, side, None)
            if isinstance(operand, SavedTensors) and expression is not None and integer(other) is None:
                self.saved_tuple_used(node, expression, "in arithmetic")
        if tensor_when_used(left) or tensor_when_used(right):
            return Fresh(node, self.arithmetic_kind(left, right, operator))
        folded = fold(left, right, operator)
        if folded is not None:
            return folded
        if _is_number(left) and _is_number(right):
            return Scalar("number", node)
        return Single(node) if _gives_one_object(left, right, operator) else Opaque(node)

    def arithmetic_kind(self, left: Value, right: Value, operator: cst.CSTNode) -> Kind:
        if isinstance(operator, (cst.Divide, cst.DivideAssign)):
            return Kind.FLOAT
        kinds = {kind_of(left), kind_of(right)}
        if Kind.FLOAT in kinds:
            return Kind.FLOAT
        return Kind.INTEGRAL if kinds == {Kind.INTEGRAL} else Kind.UNKNOWN

    def unary(self, node: cst.UnaryOperation) -> Value:
        if isinstance(node.operator, cst.Not):
            self.evaluate(node.expression)
            return Scalar("bool", node)
        value = self.use(node.expression)
        if isinstance(value, SavedTensors):
            self.saved_tuple_used(node, node.expression, "in arithmetic")
        if isinstance(value, Constant) and isinstance(value.value, (int, float)):
            if isinstance(node.operator, cst.Minus):
                return constant(-value.value)
            return value if isinstance(node.operator, cst.Plus) else Scalar("number", node)
        if tensor_when_used(value):
            return Fresh(node, kind_of(value))
        return Scalar("number", node) if _is_number(value) else Single(node)

    def comparison(self, node: cst.Comparison) -> Value:
        values = [self.evaluate(node.left)]  # a comparison does not keep a ctx
        identity = False
        for part in node.comparisons:
            values.append(self.evaluate(part.comparator))
            identity |= isinstance(part.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        if identity or all(_is_scalar(value) for value in values):
            return Scalar("bool", node)
        if any(tensor_when_used(value) for value in values):
            return Fresh(node, Kind.INTEGRAL)
        if any(isinstance(value, Constant) and isinstance(value.value, str) for value in values):
            return Scalar("bool", node)
        return Single(node)

    def boolean(self, node: cst.BooleanOperation) -> Value:
        left = self.use(node.left)
        guards = self.guards_of(node.left, isinstance(node.operator, cst.And), node)
        before = self.state
        self.state = before.fork(*guards)
        right = self.use(node.right)
        self.state = merge(before, [before.fork(), self.state])
        if _is_flag(left) and _is_flag(right):
            return Scalar("bool", node)
        if isinstance(left, Constant):
            return right if bool(left.value) is isinstance(node.operator, cst.And) else left
        if isinstance(node.operator, cst.Or):  # ``x or ()``: None on the left never comes out
            left = without(left, NONE)
        return join(left, right)

    def conditional(self, node: cst.IfExp) -> Value:
        """``a if test else b``."""
        self.evaluate(node.test)
        outcome = self.decided(node.test)
        if outcome is not None:
            return self.use(node.body if outcome else node.orelse)
        before = self.state
        self.state = before.fork(*self.guards_of(node.test, True, node))
        self.narrow(node.test, True)
        first = self.use(node.body)
        taken = self.state
        self.state = before.fork(*self.guards_of(node.test, False, node))
        self.narrow(node.test, False)
        second = self.use(node.orelse)
        self.state = merge(before, [taken, self.state])
        return join(first, second)

    def walrus(self, node: cst.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        if isinstance(node.target, cst.Name):
            self.walrus_names.add(node.target.value)
            self.assign_target(node.target, value, node, node.value)
        return value

    # Literals

    def string(self, node: cst.BaseString) -> Value:
        """A string, the text of which matters only where it is written in one piece."""
        text = literal_text(node) if isinstance(node, cst.SimpleString) else None
        if text is not None:
            return constant(text)
        self.walk_children(node)
        return Scalar("str", node)

    def integer(self, node: cst.Integer) -> Value:
        """A whole number."""
        number = literal_integer(node)
        return Scalar("int", node) if number is None else constant(number)

    def float_(self, node: cst.Float) -> Value:
        """A number with a point."""
        return constant(float(node.value.replace("_", "")))

    def call(self, node: cst.Call) -> Value:
        """See ``calls``."""
        raise NotImplementedError


# ---------------------------------------------------------------------------------------------------------------------
# Pieces that need no state


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


def _is_number(value: Value) -> bool:
    if isinstance(value, Constant):
        return isinstance(value.value, (int, float, complex))
    return isinstance(value, Scalar) and value.sort in ("int", "float", "number", "bool")


def _is_scalar(value: Value) -> bool:
    return isinstance(value, (Constant, Scalar, NeedsInputGrad))


def _is_flag(value: Value) -> bool:
    if isinstance(value, Choice):
        return all(_is_flag(option) for option in value.alternatives)
    if isinstance(value, Constant):
        return isinstance(value.value, bool)
    if isinstance(value, NeedsInputGrad):
        return value.index is not None
    return isinstance(value, Scalar) and value.sort == "bool"


def _gives_one_object(left: Value, right: Value, operator: cst.CSTNode) -> bool:
    """Whether an operator certainly gives no tuple or list: ``+`` joins them and ``*`` repeats them, no other does."""
    if isinstance(operator, (cst.Add, cst.AddAssign)):
        return Tri.NO in (is_container(left), is_container(right))
    if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
        if any(isinstance(side, Constant) and isinstance(side.value, float) for side in (left, right)):
            return True
        return is_container(left) is Tri.NO and is_container(right) is Tri.NO
    return True


def _constant_name(self: Expressions, node: cst.Name) -> Value:
    if node.value == "None":
        return NONE
    if node.value in ("True", "False"):
        return constant(node.value == "True")
    return self.name(node)


_HANDLERS: dict[type, Callable[..., Value]] = {
    cst.Name: _constant_name,
    cst.Attribute: Expressions.attribute,
    cst.Subscript: Expressions.subscript,
    cst.Call: lambda self, node: self.call(node),
    cst.Tuple: Expressions.display,
    cst.List: Expressions.display,
    cst.Set: Expressions.display,
    cst.Dict: Expressions.dictionary,
    cst.BinaryOperation: Expressions.binary,
    cst.UnaryOperation: Expressions.unary,
    cst.Comparison: Expressions.comparison,
    cst.BooleanOperation: Expressions.boolean,
    cst.IfExp: Expressions.conditional,
    cst.NamedExpr: Expressions.walrus,
    cst.Lambda: Expressions.lambda_,
    cst.Yield: Expressions.yield_,
    cst.ListComp: Expressions.comprehension,
    cst.SetComp: Expressions.comprehension,
    cst.GeneratorExp: Expressions.comprehension,
    cst.DictComp: Expressions.dict_comprehension,
    cst.SimpleString: Expressions.string,
    cst.ConcatenatedString: Expressions.string,
    cst.FormattedString: Expressions.string,
    cst.Integer: Expressions.integer,
    cst.Float: Expressions.float_,
    cst.Ellipsis: lambda self, node: constant(...),
}
