"""How backward uses a tensor that forward stores in an attribute of ctx: whether it reads its values at all."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.attribute_uses import OF_A_TENSOR
from ctxlint.model.analyses.kept_by_helpers import (
    HANDING_OVER,
    PUTTING,
    keeps_argument,
    parameter_of,
    uses_custom_attribute,
)
from ctxlint.model.analyses.unread_arguments import asked_by_callee, unread_by_callee
from ctxlint.model.interpreter.events import ContextLent, ContextRead, Escape, GenericCall
from ctxlint.model.interpreter.values import ContextAttribute
from ctxlint.model.syntax import code_of, dotted, last_name, literal_text
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


class Asked(Enum):
    """What a condition asks about a stored object without reading a tensor."""

    IS_NONE = auto()
    IS_EMPTY = auto()
    TYPE = auto()


@dataclass
class KeptUses:
    """How the reading methods use a stored tensor.

    ``reads_values`` is certain; ``computes`` if that is for more than a condition, or a graph that backward
    differentiates. ``handed_on``: it, or a view of it, escapes. ``as_object``: this very object escapes,
    for instance to a call that may keep or compare it. ``put_away``: a function of the project keeps it, or an unknown
    method gets nothing else, and its result is dropped. ``custom``: an attribute of it is used that no other tensor
    has. ``as_target``: ``torch.autograd.grad`` differentiates with respect to this very object. ``unread``: a function
    of the project gets it and never reads it; that counts as ``handed_on`` if there is no other use. ``always``: it is
    read or handed on on every path. ``metadata`` is what else is read: ``shape``, ``dtype`` and the like. ``tests`` are
    what else conditions ask.
    """

    reads_values: bool = False
    computes: bool = False
    handed_on: bool = False
    as_object: bool = False
    put_away: bool = False
    custom: bool = False
    as_target: bool = False
    unread: bool = False
    always: bool = False
    metadata: set[str] = field(default_factory=set)
    tests: set[Asked] = field(default_factory=set)

    @property
    def of_this_object(self) -> bool:
        """Whether backward needs this very object, where a saved tensor has the same values only."""
        return self.custom or self.put_away

    @property
    def only_metadata(self) -> bool:
        """Whether its values are certainly never read."""
        return not self.reads_values and not self.handed_on


@record
class Place:
    """Where a list or tuple of ``count`` elements, a dict or an object holds a tensor; ``name`` is the attribute."""

    index: int | str
    count: int
    name: str = ""


def uses_of_kept(
    fn: FunctionClass, attribute: str, *, contained: bool = False, places: Sequence[Place | None] = (None,)
) -> KeptUses:
    """How the methods that read ctx use ``ctx.attribute``, or the items of it that are ``contained``.

    ``places`` restricts this to some items; None stands for all of them.
    """
    key = (uses_of_kept, attribute, contained, tuple(places))
    if key not in fn.notes:  # cached because several rules need it
        fn.notes[key] = _uses_of_kept(fn, attribute, contained, places)
    found: KeptUses = fn.notes[key]
    return found


def _uses_of_kept(fn: FunctionClass, attribute: str, contained: bool, places: Sequence[Place | None]) -> KeptUses:
    uses = KeptUses()
    for method in fn.reading_methods:
        nodes = method.context_attributes.get(attribute, [])
        reads = (each for each in method.facts.of(ContextRead) if each.attribute == attribute)
        hidden = any(each.node not in nodes for each in reads)
        if hidden or not method.facts.complete or _lets_ctx_escape(method):
            uses.handed_on = uses.as_object = True
        for place in places:
            _Uses(fn, method, uses, place).visit_all(nodes, contained)
            for name in _results_of_helpers(method, attribute) if hidden else ():
                _Uses(fn, method, uses, place).follow(name, contained)
    uses.handed_on = uses.handed_on or (uses.unread and not (uses.metadata or uses.tests))
    return uses


def uses_of_name(fn: FunctionClass, method: Method, name: str) -> KeptUses:
    """How a method uses the saved tensor that it has unpacked to a name."""
    uses = KeptUses()
    if not method.facts.complete:
        uses.handed_on = uses.as_object = True
    _Uses(fn, method, uses, None).follow(name, contained=False)
    return uses


def _results_of_helpers(method: Method, attribute: str) -> list[str]:
    """The names that are certainly bound to an attribute that another function reads: ``x, w = load(ctx)``."""
    bound = (each[0] for each in method.assignments.values() if len(each) == 1)
    return [each.name for each in bound if each.value == ContextAttribute(attribute)]


def _lets_ctx_escape(method: Method) -> bool:
    return bool(method.facts.of(Escape)) or bool(method.facts.of(ContextLent))


_WORDS = str.split

_METADATA = {
    **dict.fromkeys(_WORDS("shape size dim ndim ndimension numel nelement view_as expand_as reshape_as"), ("shape",)),
    "is_same_size": ("shape",),
    **dict.fromkeys(_WORDS("dtype type_as is_floating_point is_complex is_signed result_type"), ("dtype",)),
    **dict.fromkeys(_WORDS("device is_cuda is_cpu is_meta is_mps is_xpu get_device"), ("device",)),
    **dict.fromkeys(operations.TORCH_LIKE, ("shape", "dtype", "layout", "device", "stride()")),
    **dict.fromkeys(_WORDS("new new_zeros new_ones new_empty new_full new_tensor to type"), ("dtype", "device")),
    **{name: (name,) for name in _WORDS("layout requires_grad is_leaf itemsize nbytes is_sparse is_quantized")},
    **{name: (f"{name}()",) for name in _WORDS("stride is_contiguous element_size")},
}
"""The metadata that an attribute, a method, or a function or method with the tensor as argument reads."""

_METADATA_OF_RECEIVER = (
    frozenset(_METADATA)
    - operations.CONVERSIONS
    - operations.VIEW_METHODS
    - operations.USUAL_VIEW_METHODS
    - operations.TORCH_LIKE
)
"""Attributes and methods that only read metadata of the tensor they are accessed on."""

_METADATA_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in _WORDS("numel is_floating_point is_complex is_signed is_same_size result_type get_device")
) | {f"torch.Tensor.{name}" for name in _METADATA_OF_RECEIVER}
"""Functions that only read metadata of their arguments."""

_METADATA_OF_ARGUMENT = frozenset(_WORDS("view_as expand_as reshape_as type_as to type")) | operations.TORCH_LIKE
"""Methods that only read metadata of their argument."""

_TYPE_TESTS = frozenset(["isinstance", "type", "callable"])
_VIEWS = operations.VIEW_METHODS | operations.USUAL_VIEW_METHODS | operations.CONVERSIONS | operations.FLOAT_CONVERSIONS
_OF_TENSORS = (
    operations.TENSOR_METHODS
    | operations.INTEGRAL_CONVERSIONS
    | operations.TUPLE_METHODS
    | operations.PAIR_METHODS
    | operations.PAIR_ALONG_DIMENSION
    | operations.INPLACE_METHODS
    | frozenset(_WORDS("item tolist numpy equal allclose data_ptr"))
)
_READING_ARGUMENT = _OF_TENSORS - frozenset(["add"])
"""Names of methods that accept only a tensor or an array as argument."""
_KEEPING = frozenset(["torch.autograd.backward", "torch.autograd.grad", "torch.utils.checkpoint.checkpoint"])


class _Uses:
    """Follows a stored tensor to its uses, through the names that it is bound to."""

    def __init__(self, fn: FunctionClass, method: Method, uses: KeptUses, place: Place | None) -> None:
        self.fn = fn
        self.method = method
        self.uses = uses
        self.place = place
        self.calls = {id(call.node): call for call in method.facts.of(GenericCall)}
        self.names: set[str] = set()
        self.same = True
        """Whether the tracked value is the stored object itself, not a view of it."""
        self.start: cst.CSTNode | None = None
        """The attribute or name that is tracked."""

    def read_values(self) -> None:
        self.uses.reads_values = True
        self.uses.computes = self.uses.computes or self.takes_part()
        self.uses.always = self.uses.always or self.always_runs()

    def takes_part(self) -> bool:
        """Whether what is read may become part of a gradient: not of a test, nor of ``y.sum().backward()``."""
        child = self.start
        for node in self.method.above(child) if child is not None else ():
            if isinstance(node, (cst.If, cst.While, cst.IfExp)):
                return node.test is not child
            if isinstance(node, cst.Expr):
                return not (isinstance(node.value, cst.Call) and last_name(node.value.func) == "backward")
            if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return not isinstance(node, (cst.Assert, cst.Raise))
            child = node
        return True

    def always_runs(self) -> bool:
        """Whether every call of the method reaches the current use, unless something raises."""
        child = self.start
        if child is None:
            return False
        for node in self.method.above(child):
            if isinstance(node, _AT_TIMES) and node is not self.method.node:
                if all(child is not getattr(node, name, None) for name in ("test", "iter", "left")):
                    return False
            if isinstance(node, cst.IndentedBlock) and child not in self.always_reached(node):
                return False
            child = node
        return True

    def always_reached(self, block: cst.IndentedBlock) -> set[cst.CSTNode]:
        """The statements of a block up to the first one that may return, inclusive."""
        reached: dict[cst.CSTNode, set[cst.CSTNode]] = self.fn.notes.setdefault(_Uses.always_reached, {})
        if block not in reached:
            leaving = self.leaving()
            first = next((at for at, each in enumerate(block.body) if each in leaving), len(block.body))
            reached[block] = set(block.body[: first + 1])
        return reached[block]

    def leaving(self) -> set[cst.CSTNode]:
        """The statements that may leave the method: its returns, and what contains them."""
        known: dict[str, set[cst.CSTNode]] = self.fn.notes.setdefault(_Uses.leaving, {})
        if self.method.name not in known:
            found = known[self.method.name] = set()
            for each in self.method.nodes_of(cst.Return):
                around = list(self.method.above(each))
                if not any(isinstance(node, (cst.FunctionDef, cst.ClassDef)) for node in around[:-1]):
                    found.update((each, *around))
        return known[self.method.name]

    def hand_on(self) -> None:
        self.uses.handed_on = True
        self.uses.always = self.uses.always or self.always_runs()
        self.uses.as_object = self.uses.as_object or self.same

    def visit_all(self, nodes: Iterable[cst.CSTNode], contained: bool) -> None:
        before = self.start
        for node in nodes:
            self.start = node
            if self.is_in_nested_function(node):
                self.hand_on()
            self.visit(node, contained)
        self.start = before

    def is_in_nested_function(self, node: cst.CSTNode) -> bool:
        """Whether code that runs later uses it: what is saved may be freed by then."""
        return any(
            isinstance(each, (cst.FunctionDef, cst.Lambda)) and each is not self.method.node
            for each in self.method.above(node)
        )

    def visit(self, node: cst.CSTNode, contained: bool) -> None:
        """One occurrence of the tensor, or of the container that holds it."""
        spend()
        parent = self.method.parents[node]
        if isinstance(parent, cst.Attribute):
            self.attribute(parent, contained)
        elif isinstance(parent, cst.Arg):
            self.argument(parent, contained)
        elif isinstance(parent, (cst.Assign, cst.AnnAssign, cst.NamedExpr)):
            self.bound(node, parent, contained)
        elif isinstance(parent, cst.Subscript) and parent.value is node and contained:
            if self.place is None or _may_take(parent, self.place):
                self.visit(parent, contained=False)
        elif isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
            self.comparison(parent)
        elif isinstance(parent, (cst.Element, cst.StarredElement)):
            self.element(parent, contained)
        elif isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is node and contained:
            self.aliases(parent.target, contained=False)
        elif isinstance(parent, cst.IfExp) and parent.test is not node:
            self.visit(parent, contained)
        else:
            self.elsewhere(parent, contained)

    def elsewhere(self, parent: cst.CSTNode, contained: bool) -> None:
        """In an operation, a condition, or code that is not followed."""
        if isinstance(parent, _READING) and not contained:
            self.read_values()
        elif isinstance(parent, _CONDITIONS):
            self.uses.tests.add(Asked.IS_EMPTY)
        elif not isinstance(parent, (cst.Expr, cst.AssignTarget, cst.Del)):
            self.hand_on()

    def attribute(self, parent: cst.Attribute, contained: bool) -> None:
        """``x.name``, called or not."""
        name, around = parent.attr.value, self.method.parents[parent]
        called = isinstance(around, cst.Call) and around.func is parent
        if contained and not called and self.place is not None and self.place.name:
            if name == self.place.name:
                self.visit(parent, contained=False)
        elif contained:
            self.hand_on()
        elif name in _METADATA_OF_RECEIVER:
            self.uses.metadata.update(_METADATA[name])
        elif name in (_VIEWS if called else operations.VIEW_ATTRIBUTES):
            before, self.same = self.same, self.same and name not in _NEW_OBJECTS
            self.visit(around if called else parent, contained=False)
            self.same = before
        elif called and name in _OF_TENSORS:
            self.read_values()
        elif not (called and name in operations.TORCH_LIKE):
            self.hand_on()
            self.uses.custom |= self.same and name not in OF_A_TENSOR

    def argument(self, parent: cst.Arg, contained: bool) -> None:
        """``f(x)``."""
        call = self.method.parents[parent]
        if not isinstance(call, cst.Call):
            self.hand_on()
            return
        known, written = self.calls.get(id(call)), dotted(call.func)
        callee = known.callee if known is not None else None
        called = f".{call.func.attr.value}" if isinstance(call.func, cst.Attribute) else written or ""
        name = called.rpartition(".")[2]
        of_torch = callee is not None and callee.startswith(operations.TORCH_NAMESPACES)
        if (written in _TYPE_TESTS and callee is None) or callee == "torch.is_tensor":
            self.uses.tests.add(Asked.TYPE)
        elif callee in _METADATA_FUNCTIONS:
            self.uses.metadata.update(_METADATA[name])
        elif written == "len" and callee is None:
            self.uses.metadata.add("shape")
        elif name in _METADATA_OF_ARGUMENT and (of_torch or callee is None):
            self.uses.metadata.update(_METADATA[name])
        elif (of_torch and callee not in _KEEPING) or (callee is None and "." in called and name in _READING_ARGUMENT):
            self.read_values()
        elif known is not None and unread_by_callee(self.method, parent) is not None:
            self.uses.unread = True
        elif known is not None and (asked := asked_by_callee(self.method, parent, _METADATA_OF_RECEIVER)) is not None:
            self.uses.metadata.update(*(_METADATA[each] for each in asked - {""}))
            self.uses.tests.update({Asked.IS_NONE} if "" in asked else ())
        else:
            self.hand_on()
            self.uses.as_target |= self.same and callee == "torch.autograd.grad" and _is_target(call, parent)
            if self.same and known is not None and known.definition is not None:
                self.uses.put_away |= keeps_argument(known.definition, call, parent)
                self.uses.custom |= uses_custom_attribute(known.definition, call, parent)
                self.uses.custom |= parameter_of(known.definition, call, parent) in known.custom
            elif self.same and isinstance(call.func, cst.Attribute) and name not in PUTTING:
                alone = len(call.args) == 1 or HANDING_OVER(name) is not None
                self.uses.put_away |= alone and isinstance(self.method.parents[call], cst.Expr)

    def bound(self, node: cst.CSTNode, parent: cst.Assign | cst.AnnAssign | cst.NamedExpr, contained: bool) -> None:
        """``y = x``."""
        targets = [each.target for each in parent.targets] if isinstance(parent, cst.Assign) else [parent.target]
        if any(target is node for target in targets):
            return
        for target in targets:
            if isinstance(target, (cst.Tuple, cst.List)):
                if not contained:
                    self.read_values()
                elif self.taken_by_star(target.elements):
                    continue
                for element in self.taken(target.elements) if contained else target.elements:
                    self.aliases(element.value, contained=False)
            else:
                self.aliases(target, contained)
        if isinstance(parent, cst.NamedExpr):
            self.visit(parent, contained)

    def taken_by_star(self, targets: Sequence[cst.BaseElement]) -> bool:
        """Follow the starred target of an unpacking, if that certainly gets the tensor: a list."""
        star = next((at for at, each in enumerate(targets) if isinstance(each, cst.StarredElement)), None)
        place = self.place
        if star is None or place is None or isinstance(place.index, str):
            return False
        inside = place.count - len(targets) + 1
        if not star <= place.index < star + inside:
            return False
        self.place = Place(place.index - star, inside)
        self.aliases(targets[star].value, contained=True)
        self.place = place
        return True

    def taken(self, targets: Sequence[cst.BaseElement]) -> Sequence[cst.BaseElement]:
        """The targets of an unpacking that may get the tensor."""
        if self.place is None or isinstance(self.place.index, str):
            return targets
        star = next((at for at, each in enumerate(targets) if isinstance(each, cst.StarredElement)), None)
        at = self.place.index if star is None or self.place.index < star else self.place.index - self.place.count
        return targets[at : at + 1 or None] if star is not None or len(targets) == self.place.count else targets

    def aliases(self, target: cst.CSTNode, contained: bool) -> None:
        """Follow a target that it is bound to; anything but a name lets it escape."""
        if not isinstance(target, cst.Name):
            self.hand_on()
        else:
            self.follow(target.value, contained)

    def follow(self, name: str, contained: bool) -> None:
        """Follow a name that it is bound to."""
        if name not in self.names:
            self.names.add(name)
            uses = (each for each in self.method.nodes_of(cst.Name) if each.value == name)
            self.visit_all([each for each in uses if self.reads(each)], contained)

    def reads(self, node: cst.Name) -> bool:
        parent = self.method.parents[node]
        if isinstance(parent, (cst.AssignTarget, cst.Del, cst.Param, cst.NameItem)):
            return False
        if isinstance(parent, (cst.For, cst.CompFor)) and parent.target is node:
            return False
        if isinstance(parent, (cst.Attribute, cst.Arg)):
            return getattr(parent, "attr", getattr(parent, "keyword", None)) is not node
        return not (isinstance(parent, (cst.Element, cst.StarredElement)) and self.is_target(parent))

    def is_target(self, element: cst.CSTNode) -> bool:
        display = self.method.parents[element]
        around = self.method.parents[display]
        return isinstance(around, (cst.AssignTarget, cst.Del)) or (
            isinstance(around, (cst.For, cst.CompFor)) and around.target is display
        )

    def comparison(self, parent: cst.Comparison | cst.ComparisonTarget) -> None:
        if isinstance(parent, cst.Comparison):
            for each in parent.comparisons:
                self.compared(each.operator, each.comparator)
        else:
            around = self.method.parents[parent]
            self.compared(parent.operator, around.left if isinstance(around, cst.Comparison) else parent.comparator)

    def compared(self, operator: cst.BaseCompOp, other: cst.BaseExpression) -> None:
        """``x > other``: only ``is`` and ``in`` compare the object and not its values."""
        if isinstance(operator, (cst.Is, cst.IsNot)):
            if isinstance(other, cst.Name) and other.value == "None":
                self.uses.tests.add(Asked.IS_NONE)
            else:
                self.hand_on()
        elif isinstance(operator, (cst.In, cst.NotIn)):
            self.hand_on()
        else:
            self.read_values()

    def element(self, parent: cst.Element | cst.StarredElement, contained: bool) -> None:
        """An element of a tuple or list: followed to where that is used."""
        display = self.method.parents[parent]
        around = self.method.parents[display]
        if isinstance(around, cst.Return):
            self.read_values()
        elif isinstance(around, cst.Arg):
            self.argument(around, contained)
        elif isinstance(around, cst.Assign) and isinstance(display, (cst.Tuple, cst.List)):
            at = next(at for at, each in enumerate(display.elements) if each is parent)
            for target in around.targets:
                elements = target.target.elements if isinstance(target.target, (cst.Tuple, cst.List)) else ()
                if _one_for_one(elements, display.elements):
                    self.aliases(elements[at].value, contained)
                else:
                    self.hand_on()
        elif not isinstance(around, cst.Del):
            self.hand_on()


def _is_target(call: cst.Call, argument: cst.Arg) -> bool:
    """Whether an argument of ``torch.autograd.grad`` is ``inputs``."""
    named = argument.keyword.value if argument.keyword is not None else ""
    return named == "inputs" or (not named and any(each is argument for each in call.args[1:2]))


def _may_take(subscript: cst.Subscript, place: Place) -> bool:
    """Whether ``ctx.tensors[i]`` or ``ctx.tensors["name"]`` may be the element at a place."""
    index = subscript.slice[0].slice if len(subscript.slice) == 1 else None
    if isinstance(place.index, str):
        key = index.value if isinstance(index, cst.Index) else None
        return not isinstance(key, cst.SimpleString) or literal_text(key) == place.index
    if isinstance(index, cst.Slice):
        taken = _literal_slice(index)
        return taken is None or place.index in range(place.count)[taken]
    written = code_of(index.value) if isinstance(index, cst.Index) else ""
    return re.fullmatch(r"-?[0-9]{1,9}", written) is None or int(written) % place.count == place.index


def _literal_slice(node: cst.Slice) -> slice | None:
    """The slice that ``[1:]`` or ``[:-1]`` takes; None unless its bounds are literals, or if it has a step."""
    bounds = [code_of(each) if each is not None else "" for each in (node.lower, node.upper)]
    if node.step is not None or not all(re.fullmatch(r"(-?[0-9]{1,9})?", each) for each in bounds):
        return None
    return slice(*(int(each) if each else None for each in bounds))


def _one_for_one(targets: Sequence[cst.BaseElement], values: Sequence[cst.BaseElement]) -> bool:
    return len(targets) == len(values) and not any(isinstance(each, cst.StarredElement) for each in (*targets, *values))


_NEW_OBJECTS = operations.VIEW_METHODS | operations.VIEW_ATTRIBUTES
_READING = (
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.AugAssign,
    cst.Return,
    cst.Subscript,
    cst.Index,
    cst.Slice,
    cst.If,
    cst.While,
    cst.IfExp,
    cst.Assert,
    cst.BooleanOperation,
    cst.FormattedStringExpression,
)
"""The parents of a tensor that read its values."""
_AT_TIMES = (
    cst.If,
    cst.IfExp,
    cst.Else,
    cst.For,
    cst.While,
    cst.Try,
    cst.TryStar,
    cst.Match,
    cst.BooleanOperation,
    cst.Assert,
    cst.BaseComp,
    cst.FunctionDef,
    cst.Lambda,
)
"""Nodes that do not always run all their children."""
_CONDITIONS = (cst.If, cst.While, cst.IfExp, cst.Assert, cst.BooleanOperation, cst.UnaryOperation)
"""Contexts that only test whether a container is empty."""
