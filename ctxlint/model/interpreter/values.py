"""The abstract values of the interpreter, and the queries on them.

A value describes what is *certain*. Every query answers yes, no or unknown; only a yes may lead to a finding.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.index.scopes import LOCAL
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    import libcst as cst

    from ctxlint.model.index.project import Definition


class Tri(Enum):
    """Yes, no, or unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("a Tri has three values: compare it with `is Tri.YES`")

    __hash__ = object.__hash__  # that of an enumeration is written in Python, and part of the hash of most values

    @staticmethod
    def all(answers: Iterable[Tri]) -> Tri:
        """Yes if every answer is yes, no if every answer is no, otherwise unknown (also for no answers at all)."""
        distinct = set(answers)
        return distinct.pop() if len(distinct) == 1 else Tri.UNKNOWN


class Kind(Enum):
    """The kind of a tensor's elements, as far as autograd distinguishes them."""

    FLOAT = "float"
    INTEGRAL = "integral"
    """Integers, bools, and the state of a random generator."""
    UNKNOWN = "unknown"

    __hash__ = object.__hash__


class Value:
    """What an expression may evaluate to. Two equal values are the same object at run time, unless noted otherwise.

    Invariants: a value is immutable, and does not contain itself; a Choice has at least two alternatives, none of which
    is a Choice; UNKNOWN covers every value. ``join`` never drops an alternative of its operands.
    """

    weight: int = 1
    """How many values it is composed of, shared ones counted each time."""

    def options(self) -> tuple[Value, ...]:
        """The alternatives; a value that is not a Choice is its own only alternative."""
        return (self,)


@record
class Opaque(Value):
    """The unknown result of an expression, identified by the node that created it.

    ``called`` is what a name is bound to, if a call of that created it.
    """

    node: cst.CSTNode | None = None
    called: Value | None = field(default=None, compare=False)


@record
class Item(Value):
    """The element ``key`` of an opaque value, as in ``a, b = f()``; otherwise unknown."""

    of: Value
    key: object = None


@record
class Constant(Value):
    """A literal: ``None``, a number, a bool, a string, ``...``."""

    value: object
    type_name: str


@record
class Scalar(Value):
    """Certainly not a tensor, not None and not a container of tensors: a number, flag, dtype, device, function.

    ``sort`` is ``int``, ``bool``, ``float``, ``number``, ``str``, ``shape``, ``callable``, ``array``, ``generator`` or
    ``object``. ``node`` created it. ``kind`` is that of the tensors of a dtype.
    """

    sort: str
    node: cst.CSTNode | None = None
    kind: Kind = Kind.UNKNOWN


def is_attribute_of_class(value: Value) -> TypeGuard[Imported]:
    """Whether it is what ``Fn.buffer`` refers to, for a class of the same file: an attribute, a method or a class."""
    return isinstance(value, Imported) and value.name.startswith(LOCAL) and "." in value.name


def is_array(value: Value) -> bool:
    """Whether a value is certainly an array of numpy."""
    return isinstance(value, Scalar) and value.sort == "array"


@record
class Parameter(Value):
    """The object passed for one parameter, unchanged.

    ``role`` is ``input`` in forward, ``gradient`` in backward, ``tangent`` in jvp, ``plain`` in a helper; ``index``
    counts from 0 without ctx and without a second receiver.
    """

    role: str
    index: int
    name: str
    tensor: Tri = Tri.UNKNOWN
    kind: Kind = Kind.UNKNOWN


@record
class Argument(Value):
    """An argument of a function, in its summary: the caller substitutes its own value.

    The fields are what the caller's value answers; ``plain``: ``x is None`` is decided by ``none``; ``optional``: it is
    a tensor unless it is None.
    """

    number: int
    tensor: Tri = Tri.UNKNOWN
    kind: Kind = Kind.UNKNOWN
    none: Tri = Tri.UNKNOWN
    container: Tri = Tri.UNKNOWN
    type_name: str | None = None
    plain: bool = False
    optional: bool = False


FUNCTION_TYPE = "types.FunctionType"
"""The ``type_name`` of an argument that is a function."""


@record
class Variadic(Value):
    """The tuple of a ``*args`` parameter, or the mapping of a ``**kwargs`` one; its length is unknown."""

    role: str
    name: str
    start: int = 0


@record
class Context(Value):
    """The ctx itself. ``flags`` is the length of its ``needs_input_grad``, if that is certain."""

    flags: int | None = None


@record
class ContextAttribute(Value):
    """``ctx.name`` as it was at the start of the method."""

    name: str


@record
class NeedsInputGrad(Value):
    """``ctx.needs_input_grad``, or the flag of one input if ``index`` is not None.

    ``sliced`` if it is only a part of the flags, starting at number ``start``.
    """

    index: int | None = None
    start: int = 0
    sliced: bool = False


@record
class SavedTensors(Value):
    """The tuple ``ctx.saved_tensors`` (``via`` names the attribute).

    ``sliced`` if it is only a part of it, starting at number ``start``.
    """

    via: str = "saved_tensors"
    start: int = 0
    sliced: bool = False


@record
class SavedTensor(Value):
    """The tensor at ``index`` of the saved tuple; None at run time if None was saved."""

    index: int


@record
class InputsTuple(Value):
    """The ``inputs`` of ``setup_context``: all inputs of forward; ``exact`` unless forward takes ``*args``."""

    inputs: tuple[Value, ...] = ()
    exact: bool = True


@record
class Fresh(Value):
    """A tensor that ``node`` computed: certainly a tensor, with storage of its own.

    ``part`` numbers the elements if one call returns several.
    """

    node: cst.CSTNode
    kind: Kind = Kind.UNKNOWN
    part: int | None = None


@record
class SomeTensor(Value):
    """A tensor of which only the kind may be known, not even its identity: what a loop computes repeatedly."""

    kind: Kind = Kind.UNKNOWN


@record
class Single(Value):
    """One object that is certainly neither None nor a container; a tensor or a number: ``a / b``."""

    node: cst.CSTNode
    part: int | None = None


@record
class TensorTuple(Value):
    """A tuple of tensors (or None) whose length is unknown: ``torch.autograd.grad(...)``, ``x.split(n)``.

    ``of`` is the tensor of which they are views, as those of ``x.split(n)``.
    """

    node: cst.CSTNode
    of: Value | None = None


@record
class Imported(Value):
    """What a dotted name refers to (see ``scopes``): a module, function or class, or data in a module."""

    name: str


class Alias(Enum):
    """Whether a view shares memory with its base."""

    ALWAYS = "always"
    USUALLY = "usually"
    """Unless the base has an unusual layout: ``contiguous``, ``reshape``."""
    IF_PERMUTED = "if permuted"
    """If the base of the permutation is permuted itself: ``contiguous`` and ``reshape`` after ``transpose``."""
    IF_FLOAT32 = "float32"
    """If it has that dtype already, as for the next ones: ``float()``, ``to(torch.float32)``."""
    IF_FLOAT64 = "float64"
    IF_FLOAT16 = "float16"
    IF_BFLOAT16 = "bfloat16"
    POSSIBLY = "possibly"
    """If no conversion is needed: ``to(dtype)``, ``cuda()``."""


CONVERTING = frozenset((Alias.IF_FLOAT32, Alias.IF_FLOAT64, Alias.IF_FLOAT16, Alias.IF_BFLOAT16))
"""The aliases of conversions to one dtype, which is the value of each."""


@record
class View(Value):
    """An array that may share the storage of ``of``, and is a tensor if ``of`` is one.

    ``shown``: only tensors have such a view; ``kind`` is what its elements are, None for the same as those
    of ``of``. ``layout`` is the code that changes the layout, ``transpose(1, 2)``, if a view of a contiguous tensor is
    usually not contiguous. ``detached``: a function called at ``node`` has detached it.
    """

    of: Value
    node: cst.CSTNode
    alias: Alias = Alias.ALWAYS
    shown: bool = False
    kind: Kind | None = None
    layout: str = ""
    detached: bool = False


@record
class Slot:
    """One element of a display: its value and the expression that wrote it. A starred one is any number of elements."""

    value: Value
    node: cst.BaseExpression | None = field(default=None, compare=False)
    starred: bool = False


def before_star(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """The elements whose places are known: those before the first starred one."""
    return tuple(takewhile(lambda each: not each.starred, slots))


@record
class Sequence(Value):
    """A tuple, list or set whose elements are known; ``kind`` is ``tuple``, ``list`` or ``set``.

    If a slot is starred, only a lower bound of the length is known. ``node`` is the expression that created it.
    ``names`` are those of the elements of a named tuple.
    """

    kind: str
    slots: tuple[Slot, ...]
    node: cst.CSTNode | None = field(default=None, compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Forget the elements if there are too many."""
        vars(self)["slots"], vars(self)["weight"] = _weighed(self.slots)

    @property
    def exact(self) -> bool:
        """Whether the length is known."""
        return not any(slot.starred for slot in self.slots)

    @property
    def minimum(self) -> int:
        """The minimum length."""
        return sum(not slot.starred for slot in self.slots)


@record
class Mapping(Value):
    """A dict; ``slots`` are its values if it is a display. ``keys`` are theirs, if all are known strings."""

    slots: tuple[Slot, ...] = ()
    node: cst.CSTNode | None = field(default=None, compare=False)
    keys: tuple[str, ...] = ()
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Forget the values, and the keys, if there are too many."""
        slots, weight = _weighed(self.slots)
        keys = self.keys if slots is self.slots else ()
        vars(self).update(slots=slots, weight=weight, keys=keys)


_MAX_WEIGHT = 2_000
"""Containers and choices of more values than this are unknown: repeated doubling would never end."""


def _weighed(slots: tuple[Slot, ...]) -> tuple[tuple[Slot, ...], int]:
    """The elements of a container and its weight; too many elements are replaced by any number of unknown ones."""
    spend(len(slots) >> 2)
    weight = 1 + sum([slot.value.weight for slot in slots])
    return (slots, weight) if weight <= _MAX_WEIGHT else ((Slot(UNKNOWN, starred=True),), 2)


@record
class Choice(Value):
    """One of several values, depending on the path; in the order in which they were joined."""

    alternatives: tuple[Value, ...]
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the weight."""
        vars(self)["weight"] = sum([each.weight for each in self.alternatives])

    def options(self) -> tuple[Value, ...]:
        """The alternatives."""
        return self.alternatives


@record
class ProjectFunction(Value):
    """A function of the project as a value. ``captured`` are the names that it sees of the function around it.

    ``unwrapped`` of its decorators, the outermost first, are not applied: their wrappers call it.
    """

    definition: Definition
    captured: tuple[tuple[str, Slot], ...] = ()
    unwrapped: int = 0
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the weight."""
        vars(self)["weight"] = 1 + sum([slot.value.weight for _name, slot in self.captured])


@record
class ProjectObject(Value):
    """An object of a project class that descends from no external one.

    ``attributes`` are those that are set when it is created, and never again. ``origin`` is what created it, or the
    value from outside that it is.
    """

    definition: Definition
    attributes: tuple[tuple[str, Slot], ...] = ()
    origin: object = None
    weight: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the weight."""
        vars(self)["weight"] = 1 + sum([slot.value.weight for _name, slot in self.attributes])


@record
class Unbound(Value):
    """No value at all: the name is unbound on this path."""


@record
class Never(Value):
    """No value at all: the call always raises."""


NONE = Constant(None, "NoneType")
UNKNOWN = Opaque()
CONTEXT = Context()
UNBOUND = Unbound()
NEVER = Never()


def constant(value: object) -> Constant:
    """The value of a Python literal."""
    return Constant(value, type(value).__name__)


_MAX_ALTERNATIVES = 8


def join_all(values: Iterable[Value]) -> Value:
    """The join of the values of a name on several paths; UNKNOWN for none at all."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def join(first: Value, second: Value) -> Value:
    """The join of the values of a name on two paths."""
    if first is second:
        return first
    spend(first.weight + second.weight >> 2)
    if first == second:
        return first
    merged: list[Value] = []
    for value in (*first.options(), *second.options()):
        if value not in merged:
            merged.append(value)
    if len(merged) > _MAX_ALTERNATIVES or first.weight + second.weight > _MAX_WEIGHT:
        return UNKNOWN
    return Choice(tuple(merged))


_CONTAINERS = (Sequence, Mapping, SavedTensors, InputsTuple, Variadic, TensorTuple)
_OF_PROJECT = (ProjectFunction, ProjectObject)
_NEVER_TENSOR = (*_CONTAINERS, *_OF_PROJECT, Constant, Scalar, Context, NeedsInputGrad)
_NEVER_NONE = (*_CONTAINERS, *_OF_PROJECT, Scalar, Context, NeedsInputGrad, Fresh, SomeTensor, View, Single)
_NEVER_CONTAINER = (*_OF_PROJECT, Constant, Fresh, SomeTensor, View, Context, SavedTensor, Single)


def _is_of_torch(value: Value) -> bool:
    """Whether it is a module, function, class or dtype of torch, or a builtin; other imports may be anything."""
    return isinstance(value, Imported) and value.name.startswith(("torch.", "builtins."))


def parameters_among(values: Iterable[Value]) -> frozenset[Value]:
    """Those of some values that are, unchanged, what a parameter gets."""
    return frozenset([each for each in values if isinstance(each, (Argument, Parameter))])


def is_input(value: object) -> TypeGuard[Parameter]:
    """Whether a value is an input of ``forward``."""
    return isinstance(value, Parameter) and value.role == "input"


def is_gradient(value: object) -> TypeGuard[Parameter]:
    """Whether a value is an incoming gradient, with a parameter of its own."""
    return isinstance(value, Parameter) and value.role == "gradient"


def is_none(value: Value) -> Tri:
    """Is it None?"""
    if isinstance(value, Choice):
        return Tri.all(is_none(option) for option in value.alternatives)
    if isinstance(value, Constant):
        return Tri.YES if value.value is None else Tri.NO
    if isinstance(value, _NEVER_NONE):
        return Tri.NO
    if isinstance(value, Parameter) and value.tensor is Tri.YES:
        return Tri.NO
    return value.none if isinstance(value, Argument) else Tri.UNKNOWN


def is_tensor(value: Value) -> Tri:
    """Is it one tensor?"""
    if isinstance(value, Choice):
        return Tri.all(is_tensor(option) for option in value.alternatives)
    if isinstance(value, (Fresh, SomeTensor)):
        return Tri.YES
    if isinstance(value, View):
        return Tri.YES if value.shown or tensor_when_used(value.of) else Tri.UNKNOWN
    if isinstance(value, (Parameter, Argument)):
        return value.tensor
    if isinstance(value, _NEVER_TENSOR) or _is_of_torch(value):
        return Tri.NO
    return Tri.UNKNOWN


def tensor_when_used(value: Value) -> bool:
    """Whether it is a tensor wherever it is used in a way that None does not allow: a tensor or an optional tensor."""
    options = [option for option in value.options() if option != NONE]
    return bool(options) and all(_is_optional(option) or is_tensor(option) is Tri.YES for option in options)


def _is_optional(value: Value) -> bool:
    return value.optional if isinstance(value, Argument) else isinstance(value, SavedTensor)


def is_whole_tuple(value: Value) -> bool:
    """Whether it is all of ``ctx.saved_tensors``, or all gradients: ``*grads``."""
    return isinstance(value, SavedTensors) or (isinstance(value, Variadic) and value.role == "gradient")


def is_container(value: Value) -> Tri:
    """Is it a tuple, list, set or dict?"""
    if isinstance(value, Choice):
        return Tri.all(is_container(option) for option in value.alternatives)
    if isinstance(value, _CONTAINERS):
        return Tri.YES
    if isinstance(value, NeedsInputGrad):
        return Tri.YES if value.index is None else Tri.NO
    if isinstance(value, Scalar):
        return Tri.UNKNOWN if value.sort in ("shape", "object") else Tri.NO
    if isinstance(value, _NEVER_CONTAINER) or _is_of_torch(value):
        return Tri.NO
    if isinstance(value, Parameter):
        return Tri.NO if value.tensor is Tri.YES or value.role in ("gradient", "tangent") else Tri.UNKNOWN
    if isinstance(value, Item) and isinstance(value.of, Variadic):
        return Tri.NO if value.of.role in ("gradient", "tangent") else Tri.UNKNOWN
    return value.container if isinstance(value, Argument) else Tri.UNKNOWN


def is_function(value: Value | None) -> bool:
    """Whether it is certainly a function that Python code defines."""
    if isinstance(value, Argument):
        return value.type_name == FUNCTION_TYPE
    return isinstance(value, ProjectFunction) or (isinstance(value, Scalar) and value.sort == "callable")


def storage(value: Value) -> Value | None:
    """The value whose memory a write to ``value`` certainly modifies: the origin of a chain of views.

    None where it is unknown (a choice between several, a view that may be a copy).
    """
    return _origin(value, (Alias.ALWAYS,))


def usual_storage(value: Value) -> Value | None:
    """Like ``storage``, but following views that are rarely a copy (``contiguous``, ``reshape``)."""
    return _origin(value, (Alias.ALWAYS, Alias.USUALLY))


def _origin(value: Value, followed: tuple[Alias, ...]) -> Value | None:
    while isinstance(value, View):
        if value.alias not in followed:
            return None
        value = value.of
    if isinstance(value, Choice):
        origins = {_origin(option, followed) for option in value.alternatives}
        return origins.pop() if len(origins) == 1 else None
    return None if isinstance(value, SomeTensor) or value == UNKNOWN else value


def permuted_storage(value: Value | None) -> tuple[Parameter | Argument, View] | None:
    """The tensor that a write modifies if it is permuted already, with the contiguous view of its permutation.

    ``x.transpose(1, 2).contiguous()`` is a copy of a contiguous ``x``, and ``x`` itself if that is transposed.
    """
    while isinstance(value, View) and value.alias in (Alias.ALWAYS, Alias.USUALLY):
        value = value.of
    if not isinstance(value, View) or value.alias is not Alias.IF_PERMUTED:
        return None
    origin = value.of.of if isinstance(value.of, View) and value.of.layout else None
    return (origin, value) if isinstance(origin, (Parameter, Argument)) else None


def converted_storage(value: Value | None) -> tuple[Value, View] | None:
    """The tensor that a write modifies if it has a dtype already, with the view that converts any other to that dtype.

    ``x.float() if flag else x`` is ``x`` itself on either path if that is float32.
    """
    origin, converted = _unless_converted(value)
    return (origin, converted) if isinstance(origin, (Parameter, Argument)) and converted is not None else None


def _unless_converted(value: Value | None) -> tuple[Value | None, View | None]:
    """The origin of views that copy nothing of a tensor of one dtype, and the first of them that converts any other.

    The origin is None if the views are to several dtypes: one of them copies.
    """
    converted = None
    while isinstance(value, View) and (value.alias in (Alias.ALWAYS, Alias.USUALLY) or value.alias in CONVERTING):
        if value.alias in CONVERTING:
            if converted is not None and converted.alias is not value.alias:
                return None, converted
            converted = value
        value = value.of
    if not isinstance(value, Choice):
        return value, converted
    origins, conversions = zip(*map(_unless_converted, value.alternatives))
    found = [each for each in (converted, *conversions) if each is not None]
    same = len(set(origins)) == 1 and len({each.alias for each in found}) <= 1
    return origins[0] if same else None, next(iter(found), None)


def before_views(value: Value) -> Value:
    """The origin of a chain of views, whether or not each of them shares its memory."""
    while isinstance(value, View):
        value = value.of
    return value


def whole(value: Value) -> Value:
    """What a value was taken from, as an item, at any depth; otherwise the value itself."""
    while isinstance(value, Item):
        value = value.of
    return value


def taken_from(value: Value) -> Value:
    """What a value is a view or an item of, at any depth; otherwise the value itself."""
    while isinstance(value, (View, Item)):
        value = value.of
    return value


def detaches(view: View) -> bool:
    """Whether this view itself, not its base, is detached from the graph: ``detach()``, ``.data``."""
    function = getattr(view.node, "func", view.node)
    return view.detached or getattr(getattr(function, "attr", None), "value", "") in ("detach", "data")


def is_detached(value: Value) -> bool:
    """Whether a chain of views is detached from the graph of its origin at any step."""
    while isinstance(value, View):
        if detaches(value):
            return True
        value = value.of
    return False


_NEW_OBJECTS = (*_OF_PROJECT, Constant, Scalar, Fresh, Single, Sequence, Mapping, TensorTuple, Context, NeedsInputGrad)


def same_object(first: Value, second: Value) -> Tri:
    """Are they the same object? A view of a tensor is another object, unless it may be the tensor itself."""
    if isinstance(first, Choice):
        return Tri.all(same_object(option, second) for option in first.alternatives)
    if isinstance(second, Choice):
        return same_object(second, first)
    if first == second:
        return Tri.UNKNOWN if isinstance(first, SomeTensor) or first == UNKNOWN else Tri.YES
    if isinstance(first, Parameter) and isinstance(second, Parameter):
        return Tri.NO
    for value in (first, second):
        if isinstance(value, _NEW_OBJECTS) or (isinstance(value, View) and value.alias is Alias.ALWAYS):
            return Tri.NO
    ours, theirs = _possible_objects(first), _possible_objects(second)
    if len(ours) + len(theirs) > 2 and set(ours).isdisjoint(theirs):
        return Tri.NO if same_object(ours[-1], theirs[-1]) is Tri.NO else Tri.UNKNOWN
    return Tri.UNKNOWN


def _possible_objects(value: Value) -> list[Value]:
    """The value, and the tensors that it may be itself: ``x.contiguous()`` is a copy, or ``x``."""
    found = [value]
    while isinstance(value, View) and value.alias is not Alias.ALWAYS:
        value = value.of
        found.append(value)
    return found


def kind_of(value: Value) -> Kind:
    """Whether a tensor has floating or integral elements, as far as the code shows."""
    if isinstance(value, (Fresh, SomeTensor, Parameter, Argument)):
        return value.kind
    if isinstance(value, Choice):
        kinds = {kind_of(option) for option in value.alternatives}
        return kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN
    if isinstance(value, View):
        return kind_of(value.of) if value.kind is None else value.kind
    return Kind.UNKNOWN


def is_whole_number(value: Value) -> bool:
    """Whether it is certainly a Python int or bool."""
    if isinstance(value, Constant):
        return isinstance(value.value, int)
    return isinstance(value, Scalar) and value.sort in ("int", "bool")


def leaves(value: Value) -> Iterator[Value]:
    """The value itself, or the contents of a container or a choice, at any depth."""
    if isinstance(value, Choice):
        for option in value.alternatives:
            yield from leaves(option)
    elif isinstance(value, (Sequence, Mapping)):
        for slot in value.slots:
            yield from leaves(slot.value)
    elif isinstance(value, ProjectFunction):
        for _name, slot in value.captured:
            yield from leaves(slot.value)
    elif isinstance(value, ProjectObject):
        for _name, slot in value.attributes:
            yield from leaves(slot.value)
    else:
        yield value


def holds_context(value: Value) -> bool:
    """Whether it is the ctx, or a tuple or list that may contain it."""
    if isinstance(value, Sequence):
        return any(holds_context(slot.value) for slot in value.slots)
    if isinstance(value, Choice):
        return any(map(holds_context, value.alternatives))
    return isinstance(value, Context)


def without(value: Value, unwanted: Value) -> Value:
    """``value`` without one alternative, refined by a test; unchanged if nothing would be left."""
    if not isinstance(value, Choice):
        return value
    left = tuple(option for option in value.alternatives if option != unwanted)
    if not left or len(left) == len(value.alternatives):
        return value
    return left[0] if len(left) == 1 else Choice(left)
