"""What a call does and what it returns: methods of ctx, of tensors, functions of torch, helpers of the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.expressions import Expressions, as_sequence, spread
from ctxlint.model.functions import ContextCall, Escape, GenericCall, Mutation
from ctxlint.model.scopes import LOCAL
from ctxlint.model.values import (
    NONE,
    UNKNOWN,
    Alias,
    Choice,
    Constant,
    Context,
    Fresh,
    Imported,
    Item,
    Kind,
    Mapping,
    Opaque,
    SavedTensors,
    Scalar,
    Sequence,
    Single,
    Slot,
    TensorTuple,
    Tri,
    Value,
    View,
    is_container,
    is_none,
    is_tensor,
    join,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf


class Followed(Protocol):
    """Gives the value that a function of the same file returns for these arguments; None where it is not followed."""

    def __call__(self, qualname: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]) -> Value | None: ...


class Arguments:
    """The evaluated arguments of a call."""

    def __init__(self, positional: tuple[Slot, ...], keywords: dict[str, Slot], open_ended: bool) -> None:
        self.positional = positional
        self.keywords = keywords
        self.open_ended = open_ended
        """Whether ``**`` may bring in more keywords."""

    def value(self, position: int, name: str = "") -> Value | None:
        """One argument by position or name; None where it is not passed or hidden behind a star."""
        for at, slot in enumerate(self.positional):
            if slot.starred:
                break
            if at == position:
                return slot.value
        slot_by_name = self.keywords.get(name)
        return slot_by_name.value if slot_by_name is not None else None

    def node(self, position: int) -> cst.BaseExpression | None:
        """The expression of one positional argument."""
        return self.positional[position].node if position < len(self.positional) else None


class Calls(Expressions):
    """Evaluates calls."""

    statement: cst.CSTNode | None = None
    """The statement that is being walked."""
    follow: Followed | None = None
    """Follows a function of the same file, where that is allowed."""

    def call(self, node: cst.Call) -> Value:
        func = node.func
        if isinstance(func, cst.Attribute):
            receiver = self.evaluate(func.value)
            if isinstance(receiver, Context):
                return self.context_method(node, func.attr.value)
            if not isinstance(receiver, Imported):
                return self.method(node, func, receiver)
        callee = self.canonical(func)
        if callee is None:
            self.evaluate(func)
        elif isinstance(func, cst.Name):
            self.names_read.add(func.value)
        return self.function(node, callee)

    # Arguments

    def arguments(self, node: cst.Call, callee: str | None, keeps_context: bool = False) -> Arguments:
        """Evaluate the arguments; a ctx among them escapes, unless the callee is known to let go of it."""
        positional: list[Slot] = []
        keywords: dict[str, Slot] = {}
        open_ended = False
        for argument in node.args:
            value = self.evaluate(argument.value)
            if isinstance(value, Context) and not keeps_context:
                self.record(Escape, node, how="passed", callee=callee)
            if argument.star == "*":
                positional.extend(spread(value, argument.value))
            elif argument.star == "**":
                open_ended = True
            elif argument.keyword is not None:
                keywords[argument.keyword.value] = Slot(value, argument.value)
            else:
                positional.append(Slot(value, argument.value))
        return Arguments(tuple(positional), keywords, open_ended)

    # ctx

    def context_method(self, node: cst.Call, name: str) -> Value:
        """``ctx.name(...)``."""
        if name in tables.CONTEXT_METHODS:
            arguments = self.arguments(node, name)
            self.record(
                ContextCall,
                node,
                method=name,
                arguments=arguments.positional,
                has_keywords=bool(arguments.keywords) or arguments.open_ended,
                statement=self.statement,
            )
            return NONE
        self.context_attribute(node, name, called=True)
        self.arguments(node, f"ctx.{name}")
        return Opaque(node)

    def context_access_by_string(self, node: cst.Call, callee: str, arguments: Arguments) -> Value | None:
        """``getattr(ctx, "x", …)`` and its like; None where this is no such call."""
        owner = arguments.value(0)
        if not isinstance(owner, Context):
            return None
        attribute = arguments.value(1)
        name = attribute.value if isinstance(attribute, Constant) and isinstance(attribute.value, str) else None
        if callee in ("builtins.setattr", "builtins.delattr", "builtins.vars"):
            self.record(Escape, node, how="stored", callee=callee)
            return NONE
        if callee == "builtins.getattr":
            if name is None:
                self.record(Escape, node, how="stored", callee=callee)
                return Opaque(node)
            return self.context_attribute(node, name, guarded=len(arguments.positional) > 2)
        if callee == "builtins.hasattr" and name is not None:
            self.context_attribute(node, name, guarded=True)
            return Scalar("bool", node)
        return None

    # Methods of values

    def method(self, node: cst.Call, func: cst.Attribute, receiver: Value) -> Value:
        """``receiver.name(...)`` for a receiver that is no module."""
        name = func.attr.value
        if isinstance(receiver, SavedTensors):
            if name not in ("count", "index"):
                self.saved_tuple_used(node, func.value, f".{name}()")
            self.arguments(node, None)
            return Opaque(node)
        if isinstance(receiver, Sequence) and receiver.kind == "list":
            return self.list_method(node, func, receiver, name)
        if isinstance(receiver, Mapping):
            return self.mapping_method(node, func)
        keeps = isinstance(receiver, Item) and isinstance(receiver.of, Imported)
        arguments = self.arguments(node, f".{name}", keeps_context=keeps)
        if is_container(receiver) is Tri.YES:
            return Opaque(node)
        return self.tensor_method(node, func, receiver, name, arguments)

    def tensor_method(
        self, node: cst.Call, func: cst.Attribute, receiver: Value, name: str, arguments: Arguments
    ) -> Value:
        """A method of what may be a tensor."""
        if name in tables.INPLACE_METHODS:
            self.mutated(node, func.value, receiver, name)
            return receiver
        if name in tables.SELF_RETURNING_METHODS:
            return receiver
        if isinstance(receiver, (Constant, Scalar)):
            return self.scalar_method(node, receiver, name)
        if name == "size":
            return Scalar("int" if arguments.positional or arguments.keywords else "shape", node)
        if name == "stride":
            return Scalar("int" if arguments.positional or arguments.keywords else "shape", node)
        if name in tables.SCALAR_METHODS:
            return Scalar(tables.SCALAR_METHODS[name], node)
        if name in tables.INTEGRAL_CONVERSIONS:
            return Fresh(node, Kind.INTEGRAL)
        if name in tables.VIEW_METHODS:
            return View(receiver, node)
        if name in tables.USUAL_VIEW_METHODS:
            return View(receiver, node, Alias.USUALLY)
        if name in tables.CONVERSIONS:
            return View(receiver, node, Alias.POSSIBLY)
        if name in tables.TUPLE_METHODS and is_tensor(receiver) is Tri.YES:
            return TensorTuple(node)
        if name in ("max", "min") and not arguments.positional and not arguments.keywords:
            return Fresh(node, kind_of(receiver))
        if name in tables.TENSOR_METHODS:
            return self.fresh(node, name, receiver, arguments)
        if name == "apply" or name in ("max", "min", "sort", "topk", "median", "mode"):
            return Opaque(node)
        return Opaque(node)

    def scalar_method(self, node: cst.Call, receiver: Value, name: str) -> Value:
        if isinstance(receiver, Constant) and receiver.value is None:
            return Opaque(node)
        if name in ("format", "join", "lower", "upper", "strip", "replace"):
            return Scalar("str", node)
        return Opaque(node)

    def fresh(self, node: cst.Call, name: str, source: Value | None, arguments: Arguments) -> Fresh:
        """A new tensor, with what can be told about its elements."""
        if "dtype" in arguments.keywords:
            dtype = arguments.keywords["dtype"].value
            written = dtype.name.rpartition(".")[2] if isinstance(dtype, Imported) else ""
            integral = written.startswith(("int", "uint", "long", "bool", "short"))
            floating = written.startswith(("float", "bfloat", "half", "double"))
            return Fresh(node, Kind.INTEGRAL if integral else Kind.FLOAT if floating else Kind.UNKNOWN)
        if name in tables.INTEGRAL_METHODS:
            return Fresh(node, Kind.INTEGRAL)
        if name in tables.FLOAT_METHODS:
            return Fresh(node, Kind.FLOAT)
        if name in ("rand", "randn"):
            return Fresh(node, Kind.FLOAT)
        return Fresh(node, kind_of(source) if source is not None else Kind.UNKNOWN)

    def list_method(self, node: cst.Call, func: cst.Attribute, receiver: Sequence, name: str) -> Value:
        """A method of a list display: what it holds afterwards is known where it hangs on a plain name."""
        arguments = self.arguments(node, f".{name}")
        for slot in arguments.positional:
            if isinstance(slot.value, Context):
                return Opaque(node)
        changed: tuple[Slot, ...] | None = None
        if name == "append" and len(arguments.positional) == 1:
            changed = (*receiver.slots, arguments.positional[0])
        elif name == "extend" and len(arguments.positional) == 1:
            changed = (*receiver.slots, *spread(arguments.positional[0].value, arguments.positional[0].node))
        elif name in ("count", "index", "copy"):
            return receiver if name == "copy" else Scalar("int", node)
        elif name == "reverse":
            changed = tuple(reversed(receiver.slots))
        elif name == "clear":
            changed = ()
        elif name == "insert" and len(arguments.positional) == 2 and receiver.exact:
            position = arguments.value(0)
            at = position.value if isinstance(position, Constant) else None
            if type(at) is int:
                changed = (*receiver.slots[:at], arguments.positional[1], *receiver.slots[at:])
        result: Value = NONE
        if name == "pop" and receiver.exact and not arguments.positional and receiver.slots:
            changed, result = receiver.slots[:-1], receiver.slots[-1].value
        elif changed is None:
            changed, result = (Slot(UNKNOWN, starred=True),), Opaque(node)
        self.rebind(func.value, Sequence("list", changed, receiver.node))
        return result

    def mapping_method(self, node: cst.Call, func: cst.Attribute) -> Value:
        self.arguments(node, None)
        self.rebind(func.value, Mapping((Slot(UNKNOWN, starred=True),)))
        return Opaque(node)

    def rebind(self, holder: cst.BaseExpression, value: Value) -> None:
        """A container changed: every name that held it holds the new content now."""
        if isinstance(holder, cst.Name):
            old = self.state.names.get(holder.value)
            for name, held in self.state.names.items():
                if held is old:
                    self.state.names[name] = value
        elif isinstance(holder, cst.Attribute) and isinstance(self.peek(holder.value), Context):
            if holder.attr.value in self.state.attributes:
                self.state.attributes[holder.attr.value] = value

    def mutated(self, node: cst.CSTNode, target: cst.BaseExpression | None, value: Value, how: str) -> None:
        """A tensor is written into."""
        if is_tensor(value) is Tri.NO:
            return
        self.record(
            Mutation,
            node,
            target=value,
            target_node=target,
            how=how,
            name=_root_name(target),
            statement=self.statement,
        )

    # Functions

    def function(self, node: cst.Call, callee: str | None) -> Value:
        """A call of anything but a method of a value."""
        builtin = callee[len("builtins.") :] if callee is not None and callee.startswith("builtins.") else None
        keeps = builtin in tables.CONTEXT_SAFE_BUILTINS or builtin in ("setattr", "delattr", "vars")
        arguments = self.arguments(node, callee, keeps_context=keeps)
        if callee is None:
            return Opaque(node)
        if builtin == "super":
            self.record(GenericCall, node, callee=callee, arguments=arguments.positional, statement=self.statement)
        if builtin is not None:
            by_string = self.context_access_by_string(node, callee, arguments)
            return by_string if by_string is not None else self.builtin(node, builtin, arguments)
        self.record(
            GenericCall,
            node,
            callee=callee,
            arguments=arguments.positional,
            keywords=tuple(arguments.keywords.items()),
            statement=self.statement,
        )
        if callee.startswith(LOCAL):
            if self.follow is not None and not arguments.open_ended:
                returned = self.follow(callee[len(LOCAL) :], arguments.positional, arguments.keywords)
                if returned is not None:
                    return _renamed(returned, node)
            return Opaque(node)
        return self.torch_function(node, callee, arguments)

    def builtin(self, node: cst.Call, name: str, arguments: Arguments) -> Value:
        first = arguments.value(0)
        if name in ("tuple", "list"):
            if first is None:
                return Sequence(name, (), node) if not arguments.positional else Opaque(node)
            return as_sequence(first, name, node)
        if name in ("dict", "set", "frozenset", "sorted", "reversed", "zip", "enumerate", "map", "filter"):
            kind = "list" if name == "sorted" else "set" if name in ("set", "frozenset") else "generator"
            return Mapping((Slot(UNKNOWN, starred=True),), node) if name == "dict" else _unknown_many(kind, node)
        if name in tables.BUILTIN_SCALARS:
            return Scalar(tables.BUILTIN_SCALARS[name], node)
        if name in ("abs", "pow", "round") and first is not None and is_tensor(first) is Tri.YES:
            return Fresh(node, kind_of(first))
        return Opaque(node)

    def torch_function(self, node: cst.Call, callee: str, arguments: Arguments) -> Value:
        if callee in tables.TORCH_SCALARS:
            return Scalar(tables.TORCH_SCALARS[callee], node)
        if callee.startswith("math."):
            return Scalar("number", node)
        if callee == "torch.autograd.grad":
            return TensorTuple(node)
        if callee in tables.IN_PLACE_COLLECTIVES:
            target = arguments.value(0, "tensor")
            if target is not None:
                written = arguments.node(0) or arguments.keywords["tensor"].node
                self.mutated(node, written, target, callee.rpartition(".")[2])
            return Opaque(node)
        if callee in ("torch.Tensor", "torch.FloatTensor", "torch.nn.Parameter"):
            return Fresh(node, Kind.FLOAT)
        if callee in ("torch.LongTensor", "torch.IntTensor", "torch.BoolTensor", "torch.ByteTensor"):
            return Fresh(node, Kind.INTEGRAL)
        space, _, name = callee.rpartition(".")
        if callee.endswith(".get_rng_state"):
            return Fresh(node, Kind.INTEGRAL)
        if f"{space}." not in tables.TORCH_NAMESPACES:
            return Opaque(node)
        return self.tensor_function(node, name, arguments)

    def tensor_function(self, node: cst.Call, name: str, arguments: Arguments) -> Value:
        """A function of torch, torch.nn.functional, torch.linalg, torch.special."""
        first = arguments.value(0, "input")
        out = arguments.keywords.get("out")
        if out is not None and is_none(out.value) is Tri.NO:
            self.mutated(node, out.node, out.value, "out=")
            return out.value
        inplace = arguments.keywords.get("inplace")
        if name in tables.INPLACE_METHODS or (inplace is not None and inplace.value == Constant(True, "bool")):
            if first is not None:
                self.mutated(node, arguments.node(0), first, name if name.endswith("_") else f"{name}(inplace=True)")
            return first if first is not None else Opaque(node)
        if inplace is not None and inplace.value != Constant(False, "bool"):
            return Opaque(node)  # inplace=flag: the input itself or a new tensor
        if first is not None and name in tables.TORCH_VIEWS:
            return View(first, node)
        if first is not None and name in tables.TORCH_USUAL_VIEWS:
            return View(first, node, Alias.USUALLY)
        if name in ("max", "min") and len(arguments.positional) == 1 and not arguments.keywords:
            return Fresh(node, kind_of(first) if first is not None else Kind.UNKNOWN)
        if name in tables.TUPLE_METHODS or name == "broadcast_tensors":
            return TensorTuple(node)
        if name in ("zeros", "ones", "empty", "full", "linspace") and "dtype" not in arguments.keywords:
            return Fresh(node, Kind.FLOAT if name != "full" else Kind.UNKNOWN)
        if name in tables.TORCH_SINGLE:
            return self.fresh(node, name, _float_among(arguments) or first, arguments)
        return Opaque(node)


def _float_among(arguments: Arguments) -> Value | None:
    """A floating tensor among the arguments, or in a list of them: the result is floating too."""
    for slot in arguments.positional:
        values = [slot.value]
        if isinstance(slot.value, Sequence):
            values = [each.value for each in slot.value.slots]
        for value in values:
            if kind_of(value) is Kind.FLOAT:
                return value
    return None


def _unknown_many(kind: str, node: cst.CSTNode) -> Sequence:
    return Sequence(kind, (Slot(UNKNOWN, starred=True),), node)


def _root_name(node: cst.BaseExpression | None) -> str | None:
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None


def _renamed(value: Value, node: cst.Call) -> Value:
    """What a followed function returned, as a value of the caller: its nodes stand in another place."""
    if isinstance(value, Choice):
        options = [_renamed(option, node) for option in value.alternatives]
        result = options[0]
        for other in options[1:]:
            result = join(result, other)
        return result
    if isinstance(value, Sequence):
        slots = tuple(Slot(_element(slot.value, node, at), None, slot.starred) for at, slot in enumerate(value.slots))
        return Sequence(value.kind, slots, node)
    return _element(value, node, None)


def _element(value: Value, node: cst.Call, position: int | None) -> Value:
    """One returned value: what was passed in comes out as it is; what the function made is told apart by its place."""
    if isinstance(value, Fresh):
        return Fresh(node, value.kind, position)
    if isinstance(value, Single):
        return Single(node, position)
    if isinstance(value, (Opaque, Item)):
        return Opaque(node) if position is None else Item(Opaque(node), position)
    if isinstance(value, View):
        return View(_element(value.of, node, position), node, value.alias)
    return value
