"""The effect and the result of tensor methods and torch functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.attribute_access import tuple_used
from ctxlint.model.interpreter.events import Differentiated, GradientFlag, LayoutAsked, MemoryRead, Mutation, Reshaped
from ctxlint.model.interpreter.layouts import (
    changed_layout,
    changes_dtype,
    is_contiguous,
    only_adds_ones,
    shared_by,
    unless_copied,
)
from ctxlint.model.interpreter.ranks import only_reads_here, raises_for_group
from ctxlint.model.interpreter.sequences import integer, iterated_item
from ctxlint.model.interpreter.summary import COLLECTIVE, FILLED, SENT
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Alias,
    Argument,
    Constant,
    Fresh,
    Imported,
    Item,
    Kind,
    Opaque,
    Parameter,
    Scalar,
    Sequence,
    Single,
    Slot,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    View,
    is_array,
    is_none,
    is_tensor,
    is_whole_number,
    is_whole_tuple,
    join,
    kind_of,
    tensor_when_used,
    without,
)
from ctxlint.model.syntax import code_of, dotted, root_name
from ctxlint.patterns import pattern
from ctxlint.torch_api import autograd, einops, operations, python
from ctxlint.torch_api.einops import read_pattern

if TYPE_CHECKING:
    from ctxlint.model.interpreter.walk import Walk


class Arguments:
    """The evaluated arguments of a call."""

    def __init__(
        self, positional: tuple[Slot, ...], keywords: dict[str, Slot], open_ended: bool, lends_context: bool = False
    ) -> None:
        self.positional = positional
        self.keywords = keywords
        self.open_ended = open_ended
        """Whether ``**`` may add more keywords."""
        self.lends_context = lends_context
        """Whether the ctx is among them, and whether it escapes is not recorded yet."""

    def value(self, position: int, name: str = "") -> Value | None:
        """An argument by position or name; None if not passed, or hidden in a star other than a last ``*args``."""
        for at, slot in enumerate(self.positional):
            if slot.starred:
                if position == at == len(self.positional) - 1 and isinstance(slot.value, Variadic):
                    return Item(slot.value, 0)
                break
            if at == position:
                return slot.value
        slot_by_name = self.keywords.get(name)
        return slot_by_name.value if slot_by_name is not None else None

    def node(self, position: int) -> cst.BaseExpression | None:
        """The expression of one positional argument."""
        return self.positional[position].node if position < len(self.positional) else None

    def is_true(self, name: str) -> bool:
        """Whether a keyword is literally True."""
        return name in self.keywords and self.keywords[name].value == Constant(True, "bool")


def tensor_method(
    walk: Walk, node: cst.Call, func: cst.Attribute, receiver: Value, name: str, arguments: Arguments
) -> Value:
    """A method of a value that may be a tensor."""
    if (name in operations.TWO_OPERANDS or name in _LIKE_ANOTHER) and is_tensor(receiver) is Tri.YES:
        saved_tuple_given(walk, node, name, arguments.positional[:1])
    if name in operations.INPLACE_METHODS:
        alone = len(arguments.positional) == 1 and not arguments.keywords
        operand = arguments.positional[0].value if alone else UNKNOWN
        onto_itself = name == "copy_" and arguments.value(0) == receiver
        if not (onto_itself or changes_nothing(name, operand)):
            mutated(walk, node, func.value, receiver, name)
        return receiver
    if name in operations.INPLACE_OPERATORS and not isinstance(receiver, Sequence):
        return _operator_method(walk, node, func, receiver, arguments)
    if name in operations.SELF_RETURNING_METHODS:
        _note_change(walk, node, func, receiver, name)
        return receiver
    _note_use(walk, node, func, receiver, name)
    if isinstance(receiver, (Constant, Scalar)):
        return _scalar_method(node, receiver, name)
    scalar = _scalar_of(name, arguments)
    if scalar is not None:
        return Scalar(scalar, node)
    if name in ("to", "type", "type_as") and _converts_to_itself(walk, receiver, arguments):
        return receiver
    if name == "contiguous" and not node.args and is_contiguous(receiver):
        return receiver
    shown = operations.shows_tensor(name, len(arguments.positional)) or (name == "view" and _is_a_shape(arguments))
    view = _view_of(receiver, name, node, arguments, shown)
    if view is not None:
        return view
    if not shown and not tensor_when_used(receiver):
        return Single(node) if name in operations.TENSOR_METHODS else Opaque(node)
    return _tensor_result(node, name, receiver, arguments)


def _operator_method(walk: Walk, node: cst.Call, func: cst.Attribute, receiver: Value, arguments: Arguments) -> Value:
    """``x.__iadd__(y)`` is ``x += y``, and gives ``x``."""
    operator, operand = operations.INPLACE_OPERATORS[func.attr.value], arguments.value(0)
    if operand is None or not changes_nothing(operator, operand):
        mutated(walk, node, func.value, receiver, operator)
    return NONE if operator == "__setitem__" else receiver


def _note_change(walk: Walk, node: cst.Call, func: cst.Attribute, receiver: Value, name: str) -> None:
    """Record a change of the flag or the shape of a tensor."""
    if name == "requires_grad_":
        walk.record(GradientFlag, node, value=receiver, value_node=func.value, switched=True)
    elif name in operations.RESHAPING_METHODS:
        walk.record(Reshaped, node, value=receiver, how=name)


def _is_a_shape(arguments: Arguments) -> bool:
    """Whether ``view`` certainly gets sizes: that of an array of numpy takes a dtype."""
    first = arguments.value(0)
    return first is not None and all(map(_is_size, first.options()))


def _is_size(value: Value) -> bool:
    """Whether it is a size, a shape, or a sequence that starts with a size."""
    if isinstance(value, Sequence) and value.slots:
        value = value.slots[0].value
    if isinstance(value, Scalar):
        return value.sort in ("int", "shape")
    return isinstance(value, Constant) and type(value.value) is int


def _note_use(walk: Walk, node: cst.Call, func: cst.Attribute, receiver: Value, name: str) -> None:
    """Record what a method tells about the layout or the graph of its tensor."""
    if name == "backward":
        walk.record(Differentiated, node, value=receiver, value_node=func.value, how=".backward()")
    elif name == "data_ptr" or (name == "view" and not (only_adds_ones(node) or changes_dtype(node))):
        walk.record(MemoryRead, node, value=receiver, value_node=func.value, how=name)
    elif name == "contiguous" or name in operations.LAYOUT_QUERIES:
        muted, walk.recorder.muted = walk.recorder.muted, 0  # a comprehension asks each of its elements
        walk.record(LayoutAsked, node, value=receiver, changed=name == "contiguous")
        walk.recorder.muted = muted


def _tensor_result(node: cst.Call, name: str, receiver: Value, arguments: Arguments) -> Value:
    """The result of a tensor method that is not a view."""
    if name in operations.INTEGRAL_CONVERSIONS:
        return Fresh(node, Kind.INTEGRAL)
    if name in operations.FLOAT_CONVERSIONS:
        return Fresh(node, Kind.FLOAT)
    if _gives_pair(name, arguments.positional, arguments):
        return _pair(node, receiver)
    if name in operations.TUPLE_METHODS:
        return TensorTuple(node, receiver if name in operations.TUPLES_OF_VIEWS else None)
    if name in ("max", "min") and not arguments.positional and not arguments.keywords:
        return Fresh(node, kind_of(receiver))
    if name == "nonzero" and "as_tuple" in arguments.keywords:
        return TensorTuple(node) if arguments.is_true("as_tuple") else Opaque(node)
    if name in operations.SEVERAL_RESULTS:
        return _several(node, name)
    return _fresh_tensor(node, name, receiver, arguments) if name in operations.TENSOR_METHODS else Opaque(node)


def _scalar_method(node: cst.Call, receiver: Value, name: str) -> Value:
    """A method of a number or a string."""
    if isinstance(receiver, Constant) and receiver.value is None:
        return Opaque(node)
    return Scalar("str", node) if name in python.STRING_METHODS else Opaque(node)


def _fresh_tensor(node: cst.Call, name: str, source: Value | None, arguments: Arguments) -> Fresh:
    """A new tensor, with what is known of its elements."""
    if "dtype" in arguments.keywords:
        return Fresh(node, _kind_of_dtype(arguments.keywords["dtype"].value))
    if name == "bincount" and not _counts_only(node):
        return Fresh(node)
    if name in operations.INTEGRAL_METHODS or _whole_numbers(name, arguments):
        return Fresh(node, Kind.INTEGRAL)
    if name in operations.FLOAT_METHODS and "rounding_mode" not in arguments.keywords:
        return Fresh(node, Kind.FLOAT)
    if name in ("rand", "randn") or (name in operations.FLOAT_BY_DEFAULT and not arguments.open_ended):
        return Fresh(node, Kind.FLOAT)
    kind = kind_of(source) if source is not None else Kind.UNKNOWN
    # Integers and floats together give floats; only operations whose dtype is that of one tensor certainly keep
    # integers.
    keeps_kind = not arguments.open_ended and (
        name in operations.KIND_KEEPING or (name in operations.KIND_OF_ALL and _has_only_whole_numbers(arguments))
    )
    return Fresh(node, kind if kind is Kind.FLOAT or keeps_kind else Kind.UNKNOWN)


def _counts_only(node: cst.Call) -> bool:
    """Whether a ``bincount`` certainly has no weights, whose sums are floats: ``torch.bincount(x, minlength=3)``."""
    plain = [each for each in node.args if each.keyword is None]
    named = {each.keyword.value for each in node.args if each.keyword is not None}
    given = isinstance(node.func, cst.Attribute) and dotted(node.func.value) == "torch"
    return len(plain) <= given and not any(each.star for each in node.args) and named <= {"input", "minlength"}


def changes_nothing(how: str, operand: Value) -> bool:
    """Whether a modification in place leaves every value as it is: ``x.mul_(1)``, ``x += 0``."""
    if not isinstance(operand, Constant) or isinstance(operand.value, str):
        return False
    return how in operations.NEUTRAL_OPERANDS and operand.value == operations.NEUTRAL_OPERANDS[how]


def mutated(
    walk: Walk,
    node: cst.CSTNode,
    target: cst.BaseExpression | None,
    value: Value,
    how: str,
    by: str = "",
    *,
    chosen: bool = False,
) -> None:
    """Record a write to a tensor; ``by`` a function that is not known otherwise."""
    for written in value.options() if id(value) in walk.each else (value,):
        if is_tensor(written) is Tri.NO:
            continue
        walk.record(
            Mutation,
            node,
            target=written,
            target_node=target,
            how=how,
            name=root_name(target),
            statement=walk.statement,
            by=by,
            chosen=chosen,
        )


def _writing_function(walk: Walk, node: cst.Call, callee: str, arguments: Arguments) -> Value:
    """A collective, or a function of ``torch.nn.init``."""
    if callee in operations.CONTIGUOUS_OPERANDS:
        _sent(walk, node, COLLECTIVE, arguments, 1, operations.CONTIGUOUS_OPERANDS[callee])
    elif callee in operations.SENDING_FUNCTIONS:
        _sent(walk, node, SENT, arguments, 0, "tensor")
    parameter = operations.WRITING_FUNCTIONS.get(callee)
    target = arguments.value(0, parameter) if parameter is not None else None
    how = callee.rpartition(".")[2]
    sends = only_reads_here(walk, how, arguments.positional, arguments.keywords)
    if target is not None and parameter is not None and not (sends or raises_for_group(walk, arguments.keywords)):
        written = arguments.node(0) or arguments.keywords[parameter].node
        mutated(walk, node, written, target, how)
    return target if target is not None and callee.startswith("torch.nn.init.") else Opaque(node)


def _sent(walk: Walk, node: cst.Call, how: str, arguments: Arguments, at: int, parameter: str) -> None:
    """Record that a collective, or a function that sends, gets a tensor which has to be contiguous."""
    value = arguments.value(at, parameter)
    if isinstance(value, (Argument, Item, Parameter)):
        given = arguments.node(at) or arguments.keywords[parameter].node
        reader = dotted(node.func) or code_of(node.func)
        walk.record(MemoryRead, node, value=value, value_node=given, how=how, reader=reader)


def _each_mutated(walk: Walk, node: cst.Call, how: str, arguments: Arguments) -> None:
    """Record that ``torch._foreach_mul_(tensors, 2)`` and the like write to each tensor of a list."""
    tensors, written = arguments.value(0, "self"), arguments.node(0)
    slots = tensors.slots if isinstance(tensors, Sequence) else ()
    for slot in slots or (Slot(tensors or UNKNOWN, starred=True),):
        mutated(walk, node, written, iterated_item(slot.value, node) if slot.starred else slot.value, how)


def differentiated(walk: Walk, node: cst.Call, callee: str, arguments: Arguments) -> None:
    """Record the first argument of ``torch.autograd.grad`` and the like: one tensor, or several in a list or tuple."""
    name = "outputs" if callee.endswith(".grad") else "tensors"
    slots = [
        *arguments.positional[:1],
        *(arguments.keywords[each] for each in (name,) if each in arguments.keywords),
    ]
    for argument in slots:
        for slot in argument.value.slots if isinstance(argument.value, Sequence) else (argument,):
            walk.record(Differentiated, node, value=slot.value, value_node=slot.node, how=callee)


def saved_tuple_given(walk: Walk, node: cst.Call, name: str, operands: tuple[Slot, ...]) -> None:
    """Record the whole tuple of saved tensors, or of gradients, as an argument of a function that takes tensors."""
    for slot in operands:
        if is_whole_tuple(slot.value) and not slot.starred and slot.node is not None:
            tuple_used(walk, node, slot.value, slot.node, f"passed to `{name}`")


def _gradients(node: cst.Call, arguments: Arguments) -> Value:
    """The result of ``torch.autograd.grad``: one gradient for each input, if these are written out."""
    whole, by = TensorTuple(node), arguments.value(1, "inputs")
    if isinstance(by, Sequence) and by.exact:
        count = len(by.slots)
    elif by is not None and is_tensor(by) is Tri.YES:
        count = 1
    else:
        return whole
    return Sequence("tuple", tuple(Slot(Item(whole, at)) for at in range(count)), node)


_GIVING_VIEWS = frozenset(autograd.VARIABLE) | operations.SHARING_FUNCTIONS
"""Functions of one argument whose result shares its memory; ``Variable`` accepts only a tensor."""


def torch_function(walk: Walk, node: cst.Call, callee: str, arguments: Arguments) -> Value:
    """A function of torch or ``math``, or any other import."""
    if callee in operations.TORCH_SCALARS:
        return Scalar(operations.TORCH_SCALARS[callee], node)
    if callee.startswith("math."):
        return Scalar("number", node)
    if callee in ("torch.autograd.grad", "torch.autograd.backward"):
        differentiated(walk, node, callee, arguments)
        return _gradients(node, arguments) if callee == "torch.autograd.grad" else NONE
    if callee in operations.COMMUNICATING_FUNCTIONS:
        return _writing_function(walk, node, callee, arguments)
    if callee.startswith(operations.FOREACH) and callee.endswith("_"):
        _each_mutated(walk, node, callee.rpartition(".")[2], arguments)
        return NONE
    if callee in ("torch.Tensor", "torch.nn.Parameter"):
        return Fresh(node, Kind.FLOAT)
    if callee in _GIVING_VIEWS and arguments.positional and not arguments.positional[0].starred:
        return View(arguments.positional[0].value, node, Alias.ALWAYS, shown=callee in autograd.VARIABLE)
    space, _, name = callee.rpartition(".")
    if name.endswith("Tensor") and space in ("torch", "torch.cuda"):
        kind = _kind_of_dtype(Imported(callee))
        if kind is not Kind.UNKNOWN:
            return Fresh(node, kind)
    if callee.endswith(".get_rng_state"):
        return Fresh(node, Kind.INTEGRAL)
    if f"{space}." not in operations.TORCH_NAMESPACES:
        return _function_of_library(walk, node, callee, arguments)
    return _tensor_function(walk, node, name, arguments)


_ATEN = "torch.ops.aten."
"""The operators behind the functions of torch, by the same names: ``torch.ops.aten.sin``, also ``….sin.default``."""


def _function_of_library(walk: Walk, node: cst.Call, callee: str, arguments: Arguments) -> Value:
    """A function of another library than torch, or of a part of torch that is not among ``TORCH_NAMESPACES``."""
    if callee.startswith(_ATEN):
        return _tensor_function(walk, node, callee[len(_ATEN) :].partition(".")[0], arguments)
    if callee in einops.REARRANGING:
        return _rearranged(node, arguments)
    _written_as_asked(walk, node, callee.rpartition(".")[2], arguments)
    return Scalar("array", node) if _gives_array(callee, arguments) else Opaque(node)


def _rearranged(node: cst.Call, arguments: Arguments) -> Value:
    """The result of ``einops.rearrange(x, "b (h d) -> b h d")``; unknown if the pattern is, or a list is stacked."""
    tensor, written = arguments.value(0, "tensor"), arguments.value(1, "pattern")
    text = written.value if isinstance(written, Constant) else None
    pattern = read_pattern(text) if isinstance(text, str) else None
    if tensor is None or pattern is None or isinstance(tensor, Sequence):
        return Opaque(node)
    if not pattern.changes:
        return tensor
    ordered = View(tensor, node, layout=f"rearrange({text!r})" if pattern.permutes else "")
    return View(ordered, node, unless_copied(ordered)) if pattern.merges else ordered


def _gives_array(callee: str, arguments: Arguments) -> bool:
    """Whether a function of numpy certainly gives an array; ``np.exp(tensor)`` gives a tensor."""
    first = arguments.value(0)
    of_array = callee in operations.ARRAY_FUNCTIONS and first is not None and is_array(first)
    return callee in operations.ARRAY_CREATORS or (of_array and not arguments.keywords)


def _written_as_asked(walk: Walk, node: cst.Call, name: str, arguments: Arguments) -> None:
    """Record what other libraries write to, as torch: the first argument of ``f(x, inplace=True)``, and ``out``."""
    asked = next(filter(arguments.is_true, _ASKING_TO_WRITE), None) if arguments.keywords else None
    first = arguments.positional[0] if arguments.positional else None
    if asked is not None and first is not None and not (first.starred or name[:1].isupper()):  # a class writes nothing
        mutated(walk, node, first.node, first.value, f"{asked}=True", by=name)
    out = arguments.keywords.get("out")
    if out is not None and not (name[:1].isupper() or _takes_result(name, arguments)):
        mutated(walk, node, out.node, without(out.value, NONE), FILLED, by=dotted(node.func) or name)


def _takes_result(name: str, arguments: Arguments) -> bool:
    """Whether a function computes gradients, so that ``out`` may be a result that it reads: ``bwd(dout, q, out=o)``."""
    return any(_OF_GRADIENTS.search(each) is not None for each in (name, *arguments.keywords))


_OF_GRADIENTS = pattern(r"(?i)backward|bwd|grad|^d_?(?:o|y|z|out|outputs?)$|^d_")
_ASKING_TO_WRITE = ("inplace", "in_place", "inplace_")


def _tensor_function(walk: Walk, node: cst.Call, name: str, arguments: Arguments) -> Value:
    """A function of torch, torch.nn.functional, torch.linalg, torch.special."""
    first = arguments.value(0, "input")
    if name in operations.TENSOR_METHODS and name != "where":
        saved_tuple_given(walk, node, name, arguments.positional[: 2 if name in operations.TWO_OPERANDS else 1])
    out = arguments.keywords.get("out")
    if out is not None and is_none(without(out.value, NONE)) is not Tri.YES:
        return _written_to(walk, node, out)
    inplace = arguments.keywords.get("inplace")
    if name in operations.INPLACE_FUNCTIONS or arguments.is_true("inplace"):
        if first is not None:
            mutated(walk, node, arguments.node(0), first, name if name.endswith("_") else f"{name}(inplace=True)")
        return first if first is not None else Opaque(node)
    if inplace is not None and inplace.value != Constant(False, "bool"):
        return Opaque(node)  # inplace=flag: the input itself or a new tensor
    if first is not None and name in operations.TORCH_VIEWS:
        return View(first, node, layout=changed_layout(node, of_torch=True))
    if first is not None and name in operations.TORCH_USUAL_VIEWS:
        return View(first, node, shared_by(name, first))
    several = _gives_several(name, arguments)
    if several is not Tri.NO:
        whole = first if name in operations.TUPLES_OF_VIEWS else None
        return TensorTuple(node, whole) if several is Tri.YES else Opaque(node)
    if first is not None and _gives_pair(name, arguments.positional[1:], arguments):
        return _pair(node, first)
    if name in ("max", "min") and len(arguments.positional) == 1 and not arguments.keywords:
        return Fresh(node, kind_of(first) if first is not None else Kind.UNKNOWN)
    if name in operations.TORCH_SINGLE:
        return _fresh_tensor(node, name, _float_among(arguments) or first, arguments)
    return _several(node, name) if name in operations.SEVERAL_RESULTS else Opaque(node)


def _written_to(walk: Walk, node: cst.Call, out: Slot) -> Value:
    """What a function writes to and gives back: a tensor, or one for each of its results."""
    written = without(out.value, NONE)  # ``out=x if inplace else None``: x is written if it is passed
    for each in written.slots if isinstance(written, Sequence) else (Slot(written, out.node),):
        mutated(walk, node, each.node, each.value, "out=")
    return written if written == out.value and is_none(written) is Tri.NO else join(written, Fresh(node))


def _scalar_of(name: str, arguments: Arguments) -> str | None:
    """The sort of number, flag or shape that a method of a tensor returns; None if it returns anything else."""
    if name in ("size", "stride"):
        return "int" if arguments.positional or arguments.keywords else "shape"
    if name == "type" and not arguments.positional and not arguments.keywords:
        return "str"
    return operations.SCALAR_METHODS.get(name)


def _view_of(receiver: Value, name: str, node: cst.Call, arguments: Arguments, shown: bool) -> View | None:
    """The view that a method returns; None if it does not return one."""
    if name in operations.VIEW_METHODS:
        first = arguments.value(0, "dtype")
        retyped = isinstance(first, Imported) or (isinstance(first, Scalar) and first.sort == "object")
        kind = (_kind_of_dtype(first) if first is not None else Kind.UNKNOWN) if name == "view" and retyped else None
        return View(receiver, node, Alias.ALWAYS, shown, kind, changed_layout(node))
    if name in operations.USUAL_VIEW_METHODS:
        return View(receiver, node, shared_by(name, receiver), shown)
    if name in operations.FLOAT_CONVERSIONS:
        converts = kind_of(receiver) is Kind.INTEGRAL
        alias = Alias.POSSIBLY if arguments.keywords else _FLOATING[name]
        return None if converts else View(receiver, node, alias, shown, Kind.FLOAT)
    if name in operations.CONVERSIONS:
        keeps = name in ("cuda", "cpu", "conj") or (name == "to" and _only_moves(arguments))
        kind = None if keeps else _converted(arguments)
        only = arguments.value(0, "dtype") if len(arguments.positional) + len(arguments.keywords) == 1 else None
        package, _, dtype = only.name.rpartition(".") if isinstance(only, Imported) else ("", "", "")
        alias = _FLOATING.get(dtype, Alias.POSSIBLY) if package == "torch" else Alias.POSSIBLY
        return View(receiver, node, alias, shown, kind)
    return None


_FLOATING = {
    "float": Alias.IF_FLOAT32,
    "float32": Alias.IF_FLOAT32,
    "double": Alias.IF_FLOAT64,
    "float64": Alias.IF_FLOAT64,
    "half": Alias.IF_FLOAT16,
    "float16": Alias.IF_FLOAT16,
    "bfloat16": Alias.IF_BFLOAT16,
}
"""The alias of a conversion, by its method, or by the name of the dtype."""


def _converts_to_itself(walk: Walk, receiver: Value, arguments: Arguments) -> bool:
    """Whether a conversion is a no-op: ``x.to(x.dtype)`` and ``x.type_as(x)`` return the object itself."""
    passed = [
        *arguments.positional,
        *(slot for name, slot in arguments.keywords.items() if name in ("dtype", "device")),
    ]
    if not passed or "copy" in arguments.keywords or "memory_format" in arguments.keywords or arguments.open_ended:
        return False
    return all(not slot.starred and _is_as(walk, slot, receiver) for slot in passed)


def _is_as(walk: Walk, slot: Slot, tensor: Value) -> bool:
    node = slot.node
    if isinstance(node, cst.Attribute) and node.attr.value in ("dtype", "device"):
        return walk.peek(node.value) == tensor
    return slot.value == tensor


def _only_moves(arguments: Arguments) -> bool:
    """Whether ``to(...)`` changes only the device: ``x.to("cuda", non_blocking=True)``, ``x.to(y.device)``."""
    passed = [*arguments.positional, *(slot for name, slot in arguments.keywords.items() if name == "device")]
    moves = {"device", "non_blocking", "copy", "memory_format"}.issuperset(arguments.keywords)
    return moves and not arguments.open_ended and bool(passed) and all(_is_device(slot) for slot in passed)


def _is_device(slot: Slot) -> bool:
    if isinstance(slot.value, Constant):
        return isinstance(slot.value.value, (str, bool))
    return isinstance(slot.node, cst.Attribute) and slot.node.attr.value == "device"


def _converted(arguments: Arguments) -> Kind:
    """The kind of elements after ``to(...)`` or ``type(...)``, if a dtype, or a tensor that has it, is passed."""
    values = [slot.value for slot in (*arguments.positional, *arguments.keywords.values())]
    kinds = (kind_of(each) if is_tensor(each) is Tri.YES else _kind_of_dtype(each) for each in values)
    return next((kind for kind in kinds if kind is not Kind.UNKNOWN), Kind.UNKNOWN)


def _kind_of_dtype(dtype: Value) -> Kind:
    """The kind of a dtype, ``torch.int32`` or ``x.dtype``, or of a tensor type, ``torch.cuda.IntTensor``.

    That of ``float8`` and smaller is unknown: they are floats to torch, but hold the codes of a quantized tensor.
    """
    if isinstance(dtype, Scalar):
        return dtype.kind
    written = dtype.name.rpartition(".")[2] if isinstance(dtype, Imported) else ""
    if written.endswith("Tensor"):
        written = written[: -len("Tensor")].lower()
    if written.startswith(("float8", "float4")):
        return Kind.UNKNOWN
    if written.startswith(("int", "uint", "long", "bool", "short", "char", "byte")):
        return Kind.INTEGRAL
    return Kind.FLOAT if written.startswith(("float", "bfloat", "half", "double")) else Kind.UNKNOWN


def _gives_several(name: str, arguments: Arguments) -> Tri:
    """Whether a torch function returns a tuple of tensors here."""
    if name in operations.TUPLE_METHODS or name == "broadcast_tensors":
        return Tri.YES
    starred = any(slot.starred for slot in arguments.positional) or arguments.open_ended
    if name == "nonzero" and ("as_tuple" in arguments.keywords or starred):
        return Tri.YES if arguments.is_true("as_tuple") else Tri.UNKNOWN
    if name == "where":
        single = len(arguments.positional) == 1 and not arguments.keywords
        return Tri.UNKNOWN if starred else Tri.YES if single else Tri.NO
    if name.startswith("atleast_"):
        return Tri.UNKNOWN if starred else Tri.YES if len(arguments.positional) > 1 else Tri.NO
    return Tri.NO


def _gives_pair(name: str, options: tuple[Slot, ...], arguments: Arguments) -> bool:
    """Whether a function of one tensor, called with these further arguments, returns values and their indices."""
    if name in operations.PAIR_METHODS:
        return True
    along = "dim" in arguments.keywords or (bool(options) and integer(options[0].value) is not None)
    return name in operations.PAIR_ALONG_DIMENSION and along


def _pair(node: cst.Call, source: Value) -> Sequence:
    values, indices = Fresh(node, kind_of(source), 0), Fresh(node, Kind.INTEGRAL, 1)
    return Sequence("tuple", (Slot(values), Slot(indices)), node)


def _several(node: cst.Call, name: str) -> Sequence:
    """The results of a decomposition: ``values, vectors = torch.linalg.eigh(x)``."""
    parts = range(operations.SEVERAL_RESULTS[name])
    return Sequence("tuple", tuple(Slot(Fresh(node, part=part)) for part in parts), node)


def _float_among(arguments: Arguments) -> Value | None:
    """A floating tensor among the arguments, or in a list of them: the result is floating, too."""
    for slot in arguments.positional:
        values = [slot.value]
        if isinstance(slot.value, Sequence):
            values = [each.value for each in slot.value.slots]
        for value in values:
            if kind_of(value) is Kind.FLOAT:
                return value
    return None


def _is_whole(value: Value) -> bool:
    return is_whole_number(value) or kind_of(value) is Kind.INTEGRAL


def _has_only_whole_numbers(arguments: Arguments) -> bool:
    return all(_is_whole(slot.value) for slot in (*arguments.positional, *arguments.keywords.values()))


def _whole_numbers(name: str, arguments: Arguments) -> bool:
    """Whether a function that creates or joins tensors gets only integers, or integer tensors."""
    values = [slot.value for slot in arguments.positional]
    if arguments.open_ended:
        return False
    if name == "arange":
        bounds = [
            *values,
            *(arguments.keywords[each].value for each in ("start", "end", "step") if each in arguments.keywords),
        ]
        return bool(bounds) and all(is_whole_number(value) for value in bounds)
    if name == "where" and len(values) == 3:
        return all(map(_is_whole, values[1:]))
    if not values or not isinstance(values[0], Sequence) or not values[0].slots:
        return False
    parts = [slot.value for slot in values[0].slots]
    if name in ("tensor", "as_tensor"):
        return all(is_whole_number(part) for part in parts)
    return name in operations.JOINING and all(kind_of(part) is Kind.INTEGRAL for part in parts)


_LIKE_ANOTHER = frozenset({"expand_as", "reshape_as", "type_as", "view_as"})
"""Methods that take one tensor."""
