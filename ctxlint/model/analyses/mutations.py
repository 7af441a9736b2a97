"""Which of the caller's tensors a method writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import DataReplaced, Escape, Mutation, Question, Reshaped
from ctxlint.model.interpreter.summary import FILLED, KERNEL
from ctxlint.model.interpreter.type_tests import looks_excluded_as_tensor
from ctxlint.model.interpreter.values import (
    Alias,
    Choice,
    Fresh,
    Item,
    Kind,
    Parameter,
    Single,
    Tri,
    Variadic,
    View,
    is_gradient,
    is_input,
    kind_of,
    leaves,
    same_object,
    usual_storage,
)
from ctxlint.model.syntax import children, dotted, keywords_of, last_name
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def gradient_written(mutation: Mutation) -> str | None:
    """The incoming gradient that is modified, by the author's name for it; None if it is not one, or possibly not."""
    origin = usual_storage(mutation.target) if mutation.target is not None else None
    if raises_for_overlap(mutation):
        return None
    if is_gradient(origin):
        return origin.name
    if isinstance(origin, Item) and isinstance(origin.of, Variadic) and origin.of.role == "gradient":
        return f"{origin.of.name}[{origin.key}]" if isinstance(origin.key, int) else origin.of.name
    return None


def gradient_written_on_a_path(method: Method, mutation: Mutation) -> str | None:
    """Like ``gradient_written``, if another path has computed a new tensor, other than a copy, for the same name.

    That a loop before it has computed one does not count: it is meant to run.
    """
    target = mutation.target
    if not isinstance(target, Choice):
        return None
    gradients = [each for each in target.alternatives if is_gradient(each)]
    others = [each for each in target.alternatives if each not in gradients]
    if len(gradients) != 1 or not all(map(_is_computed, others)):
        return None
    around = set(method.above(mutation.node))
    loops = (
        [at for at in method.above(each.node) if isinstance(at, _LOOPS)] for each in others if isinstance(each, Fresh)
    )
    return None if any(around.isdisjoint(each) for each in loops if each) else gradients[0].name


_LOOPS = (cst.For, cst.While)


def _is_computed(value: Value) -> bool:
    """Whether a tensor is the result of a computation, not a copy that may be made for the write."""
    node = value.node if isinstance(value, Fresh) else None
    name = last_name(node.func) if isinstance(node, cst.Call) else ""
    return isinstance(node, cst.BinaryOperation) or name in operations.COMPUTING


def input_written(mutation: Mutation) -> Parameter | None:
    """The input of forward that is modified; None if it is not one, or possibly not.

    A write through ``.data`` does not count: it bypasses autograd's checks on purpose.
    """
    origin = usual_storage(mutation.target) if mutation.target is not None else None
    if not is_input(origin) or through_data(mutation.target) or raises_for_overlap(mutation):
        return None
    return None if looks_excluded_as_tensor(origin.name, mutation.guards) else origin


def inputs_among(values: Iterable[Value]) -> frozenset[int]:
    """The positions of the inputs whose memory values certainly share on some path, also through ``.data``."""
    origins = (usual_storage(option) for value in values for option in value.options())
    return frozenset(each.index for each in origins if is_input(each))


def data_modified(method: Method) -> Iterator[tuple[Parameter, Event, str]]:
    """The inputs to which a method gives other values through ``.data``, and how.

    Only values that are certainly computed: not those of a buffer, ``x.data.copy_(…)``, nor memory that is released.
    """
    for written in method.facts.of(Mutation):
        origin = usual_storage(written.target) if written.target is not None and through_data(written.target) else None
        if computes(written) and is_input(origin) and not looks_excluded_as_tensor(origin.name, written.guards):
            yield origin, written, f"`{written.doer}` modifies the input `{origin.name}` in place through `.data`"
    for replaced in method.facts.of(DataReplaced):
        origin = replaced.target
        if is_input(origin) and not looks_excluded_as_tensor(origin.name, replaced.guards):
            if all(map(_is_result, replaced.value.options())):
                yield origin, replaced, f"`{origin.name}.data = …` replaces the values of the input `{origin.name}`"


def inputs_reshaped(method: Method) -> Iterator[tuple[Parameter, Reshaped]]:
    """The inputs whose own shape a method changes, except those for which another call may change it back."""
    changes = method.facts.of(Reshaped)
    for each in changes:
        value, others = each.value, {other.how for other in changes if other.value == each.value} - {each.how}
        if is_input(value) and not (others or each.how == "squeeze_"):
            yield value, each


def computes(mutation: Mutation) -> bool:
    """Whether a write computes with the values that were there, or they choose its elements."""
    augmented = mutation.how.endswith("=") and not mutation.how.startswith("[") and mutation.how != "out="
    resizes = mutation.how.startswith("resize")
    return (
        augmented
        or mutation.chosen
        or (mutation.how in operations.INPLACE_METHODS - operations.OVERWRITING and not resizes)
    )


def _is_result(value: Value) -> bool:
    """Whether a tensor is the result of a computation, not memory that is only allocated, nor a copy."""
    if not isinstance(value, (Fresh, Single)):
        return False
    name = last_name(value.node.func) if isinstance(value.node, cst.Call) else ""
    return not (name in _NO_RESULTS or name.startswith("new_") or name.endswith("_like"))


_NO_RESULTS = frozenset(str.split("Parameter Tensor clone empty empty_strided full ones rand randn tensor zeros"))
"""Functions that allocate memory, or copy the values."""


def through_data(value: Value | None) -> bool:
    """Whether a value is reached through ``.data``."""
    while isinstance(value, View):
        if isinstance(value.node, cst.Attribute) and value.node.attr.value == "data":
            return True
        value = value.of
    return False


def through_expansion(value: Value | None) -> bool:
    """Whether a value is reached through ``expand``, after which several elements are one in memory."""
    while isinstance(value, View) and isinstance(value.node, cst.Call):  # of items, each may be there once
        if last_name(value.node.func) in operations.EXPANSIONS:
            return True
        value = value.of
    return False


def raises_for_overlap(mutation: Mutation) -> bool:
    """Whether torch refuses a write to all elements of an expanded tensor, unless no size has changed.

    A kernel does not refuse, and of items, one may be written, or those of a mask.
    """
    return mutation.how != KERNEL and not mutation.how.startswith("[") and through_expansion(mutation.target)


_TEMPORARY = (cst.Call, cst.BinaryOperation, cst.UnaryOperation)
"""Expressions whose result nothing else can reference."""


def refuses_expanded(mutation: Mutation) -> bool:
    """Whether torch raises if the tensor is expanded, as the gradient of a sum is: nothing copies it before."""
    return mutation.how in operations.REFUSED_FOR_EXPANDED and not isinstance(mutation.target, (View, Choice))


def usually_no_copy(mutation: Mutation) -> str:
    """The method on the way to the modified tensor that copies it if its layout is unusual; empty if there is none.

    It may be on one of several paths: ``if not x.is_contiguous(): x = x.contiguous()``.
    """
    return copying_method(mutation.target) if mutation.target is not None else ""


def copying_method(value: Value) -> str:
    """The method on the way to a value that copies only unusual layouts; empty if there is none.

    Of several, it is the first that runs: what it gives is laid out as usual, so that the others copy nothing.
    """
    found = ""
    while isinstance(value, View):
        called = getattr(value.node, "func", None)
        if value.alias is Alias.USUALLY and isinstance(called, (cst.Attribute, cst.Name)):
            found = last_name(called) or found
        value = value.of
    inner = map(copying_method, value.alternatives) if isinstance(value, Choice) else ()
    return next(filter(None, inner), "") or found


def on_a_temporary(mutation: Mutation) -> bool:
    """Whether a collective writes into an unreferenced result of a call: ``all_reduce(x.contiguous())``."""
    written = written_node(mutation)
    made_there = getattr(mutation.target, "node", None) is written  # the second `contiguous()` makes nothing
    return mutation.how in operations.IN_PLACE_COLLECTIVES and isinstance(written, _TEMPORARY) and made_there


def written_node(mutation: Mutation) -> cst.CSTNode | None:
    """The expression that is written to, in the function that writes."""
    return mutation.through[-1].quoted if mutation.through else mutation.target_node


def of_integers(mutation: Mutation) -> bool:
    """Whether only a tensor of integers or bools can be modified like this: it never has a gradient."""
    integral = mutation.target is not None and kind_of(mutation.target) is Kind.INTEGRAL
    return integral or mutation.how in operations.INTEGRAL_WRITES or _gets_indices(mutation)


def only_fills(mutation: Mutation) -> bool:
    """Whether a write depends on nothing that was there: ``out=x``, ``x.copy_(y)``, ``launch(outputs=[x])``."""
    if mutation.how in operations.OVERWRITING or mutation.how == FILLED:
        return True
    passed = keywords_of(mutation.node) if isinstance(mutation.node, cst.Call) else {}
    given = [value for name, value in passed.items() if name in ("out", "output", "outputs")]
    return any(_has(each, mutation.target_node) for each in given)


def _has(node: cst.CSTNode, part: cst.CSTNode | None) -> bool:
    return node is part or any(_has(each, part) for each in children(node))


def _gets_indices(mutation: Mutation) -> bool:
    """Whether a write is that of the indices in ``torch.sort(x, out=(values, indices))``."""
    call = mutation.node if mutation.how == "out=" and isinstance(mutation.node, cst.Call) else None
    out = keywords_of(call).get("out") if call is not None else None
    if call is None or not isinstance(out, (cst.Tuple, cst.List)) or len(out.elements) != 2:
        return False
    pairs = operations.PAIR_METHODS | operations.PAIR_ALONG_DIMENSION
    return last_name(call.func) in pairs and out.elements[1].value is mutation.target_node


_TAKES_INDEX = frozenset(
    [
        "gather",
        "index_add",
        "index_add_",
        "index_copy",
        "index_copy_",
        "index_fill",
        "index_fill_",
        "index_select",
        "scatter",
        "scatter_",
        "scatter_add",
        "scatter_add_",
    ]
)
"""Functions and methods that take the values, a dimension and an index."""


def used_as_index(fn: FunctionClass, tensor: Parameter) -> bool:
    """Whether forward indexes another tensor with an input, which then has integers or bools."""
    return fn.forward is not None and any(
        isinstance(each, cst.Name) and each.value == tensor.name for each in _indices(fn.forward.node.body)
    )


def _indices(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The expressions by which tensors are indexed: ``x[i]``, ``x[:, i]``, ``x.gather(1, i)``."""
    if isinstance(node, cst.Subscript):
        yield from (each.slice.value for each in node.slice if isinstance(each.slice, cst.Index))
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _TAKES_INDEX:
        at = 2 if dotted(node.func.value) == "torch" else 1
        yield from (each.value for each in node.args[at : at + 1])
    for child in children(node):
        yield from _indices(child)


def without_gradient(mutation: Event) -> bool:
    """Whether a guard may imply that no gradient is wanted: then modifications have no consequences."""
    for guard in mutation.guards:
        if guard.has_parts:
            continue  # they are guards of their own
        asked = (guard.asks,) if guard.asks is not None else guard.one_of
        answers = [each.answer for each in asked if each.question is not Question.IS_NONE]
        if not all(answers):
            return True
        about_gradients = bool(asked) and len(answers) == len(asked)
        if not about_gradients and any(guard.mentions(part) for part in ("grad", "training", "inference")):
            return True
    return False


def marked_dirty(fn: FunctionClass) -> frozenset[Value] | None:
    """The tensors passed to ``mark_dirty`` on any path; None if unknown."""
    if "dirty_tensors" in fn.stored_attributes or any(method.facts.of(Escape) for method in fn.context_methods):
        return None
    found: set[Value] = set()
    for call in fn.context_calls("mark_dirty"):
        if not call.exact:
            return None
        for option in (each for argument in call.arguments for each in leaves(argument.value)):
            found.add(option)
            origin = usual_storage(option)
            if origin is not None:
                found.add(origin)
    return frozenset(found)


def may_be_marked(fn: FunctionClass, tensor: Value) -> bool:
    """Whether ``mark_dirty`` of an input is always right: every path returns this very object, and nothing else.

    torch refuses marked inputs that are views if there are other outputs. If one is marked already, no other is
    offered.
    """
    alone = all(returned.count == 1 for returned in fn.outputs) or bool(fn.context_calls("mark_dirty"))
    return bool(fn.outputs) and alone and all(is_returned([each], tensor) is Tri.YES for each in fn.outputs)


def returns_memory_of(fn: FunctionClass, tensor: Value) -> bool:
    """Whether some output is certainly the tensor or a view of it."""
    return any(usual_storage(option) == tensor for output in fn.outputs_values() for option in output.options())


def is_returned(returns: Iterable[Returned], tensor: Value) -> Tri:
    """Is ``tensor``, the very object, among the outputs? ``returns`` are the alternatives of one return statement."""
    return Tri.all(_among(returned, tensor) for returned in returns)


def _among(returned: Returned, tensor: Value) -> Tri:
    if not returned.known:
        return Tri.UNKNOWN
    answers = {Tri.UNKNOWN if slot.starred else same_object(slot.value, tensor) for slot in returned.slots}
    if Tri.YES in answers:
        return Tri.YES
    return Tri.UNKNOWN if Tri.UNKNOWN in answers else Tri.NO
