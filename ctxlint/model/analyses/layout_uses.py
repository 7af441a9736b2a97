"""Where backward relies on the layout of incoming gradients, and forward on that of inputs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.merged_dimensions import ALWAYS, needed_by
from ctxlint.model.analyses.output_shapes import is_flat, is_integral, is_without_dimensions
from ctxlint.model.analyses.strides import foreign_strides, without_last_stride
from ctxlint.model.index.kernel_parameters import gets_bare_address, reads_one_element
from ctxlint.model.interpreter.events import ForeignStrides, GenericCall, LayoutAsked, MemoryRead
from ctxlint.model.interpreter.local_names import borrowed_names
from ctxlint.model.interpreter.strided_launches import any_layout
from ctxlint.model.interpreter.summary import ASSERTED, COMPILED, EXTENSION, KERNEL, PARTLY_STRIDED
from ctxlint.model.interpreter.values import NONE, Fresh, Item, Parameter, Tri, Variadic, View, is_input
from ctxlint.model.syntax import code_of, dotted, last_name, parents_below, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from ctxlint.model.function import FunctionClass, Input, Returned
    from ctxlint.model.interpreter.events import Step
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_FROM_OUTSIDE = ("builtins.", "torch.")
"""Prefixes of decorators that certainly preserve the layout of gradients, and of functions that do not look at it.

Those of a project may make gradients contiguous, or check that they are.
"""

ADDRESS = "data_ptr"
"""The ``how`` of the address of a tensor."""

_NEEDS_LAYOUT = ("view", ADDRESS)

LENT = "strides for another tensor"
"""The ``how`` of strides of a gradient with which a kernel addresses another tensor."""


FOREIGN = "strides of another tensor"
"""The ``how`` of a gradient that a kernel addresses with strides of another tensor."""


OTHERS = "strides of other tensors"
"""The ``how`` of a gradient that a kernel addresses with strides of several others, or perhaps of another tensor."""


@record
class LayoutUse:
    """An incoming gradient, written as ``name``, whose layout matters.

    ``how`` is ``ASSERTED``, ``LENT``, ``FOREIGN``, ``OTHERS``, or as in a ``MemoryRead``, like ``reader``, ``by`` and
    ``through``. ``compiled``: compiled code gets the view that it creates. ``silent``: the reader certainly takes it to
    be contiguous, and does not raise. ``other`` is the tensor that a kernel addresses with its strides, or whose
    strides it takes for it. ``alike``: see ``MemoryRead``.
    """

    node: cst.CSTNode
    name: str
    how: str
    reader: str = ""
    by: str = ""
    through: tuple[Step, ...] = ()
    compiled: bool = False
    silent: bool = False
    other: str = ""
    position: int | None = None
    """The position of the output that the gradient is of; None if it is unknown."""
    alike: bool = False
    reshaped: str = ""
    """``reshape`` or ``flatten``, if the gradient is passed on after that: it may keep its strides."""
    passed: str = ""
    """What a kernel gets if it is not the gradient itself, but has the strides of a transposed one."""
    also: tuple[LayoutUse, ...] = ()
    """The other gradients that the same assertion is about."""

    @property
    def names(self) -> tuple[str, ...]:
        """The gradient, and the others that the assertion is about."""
        return (self.name, *(each.name for each in self.also))


def layout_uses(
    backward: Method, outputs: Sequence[Returned] = (), dimensions: Callable[[int | None], int] = lambda _position: 0
) -> Iterator[LayoutUse]:
    """The uses of incoming gradients, as they come, that assume a contiguous one, in the order of the code.

    The gradients of ``outputs`` without dimensions have one element, which is contiguous. A view counts if it merges
    dimensions: the output at a position has so many in ``dimensions``, or backward says it of the gradient.

    Only the first among the arguments of compiled code and helpers counts; and none if the body asks for the layout
    of the gradient, for it treats that on purpose.
    """
    if not keeps_arguments(backward):
        return
    asked = {option for each in backward.facts.of(LayoutAsked) if not each.changed for option in each.value.options()}
    seen: set[tuple[Value, bool]] = set()
    passed = {
        each.value.of
        for each in backward.facts.of(MemoryRead)
        if each.how in COMPILED and type(each.value) is View and not is_of_one_element(each)
    }
    asserted = _asserted_views(backward)
    plain = {param.name for param in backward.positional if param.default not in (None, NONE)}
    for read, node, value in _reads_of_gradients(backward, asked):
        if isinstance(value, Parameter) and value.name in plain:
            continue
        position = _position(value)
        if position is not None and _has_one_layout(outputs, position, read.how):
            continue
        if is_of_one_element(read) or not _may_copy(backward, read, dimensions, position):
            continue
        if not read.by and read.how not in COMPILED:
            use = _use(read.node, code_of(node), read, position)
            use = replace(use, silent=read.how == ADDRESS and _launch_with(backward, read.node) is not None)
            yield replace(use, compiled=True) if value in passed or read.node in asserted else use
            continue
        use = _use(node, _name(value, node, is_whole=value != read.value), read, position)
        use = _with_foreign_strides(backward, read, use)
        if (value, use.silent) not in seen:
            seen.add((value, use.silent))
            yield use
    yield from _lent_strides(backward, outputs, seen)
    yield from _asserted(backward, outputs)
    handled = {each.index for each in asked if isinstance(each, Parameter)}
    for index, param in enumerate(backward.positional):
        if index not in handled and param.name not in backward.binders:
            uses = _uses_inside(backward, param.name, index)
            for use in uses:
                merges = use.how != "view" or _merges(needed_by(backward.node, use.node, use.name), dimensions, index)
                if merges and not _has_one_layout(outputs, index, use.how):
                    yield use


def _may_copy(
    backward: Method, read: MemoryRead, dimensions: Callable[[int | None], int], position: int | None
) -> bool:
    """Whether it is no view, or one that merges dimensions."""
    if read.how != "view" or _only_adds_dimensions(read.node):
        return read.how != "view"
    name = read.value_node.value if isinstance(read.value_node, cst.Name) else ""
    view = read.view if read.by else (backward.node, read.node, name)
    return view is not None and _merges(needed_by(*view), dimensions, position)


def _merges(needed: int, dimensions: Callable[[int | None], int], position: int | None) -> bool:
    """Whether a view merges dimensions of a gradient: it works with any strides otherwise."""
    return needed == ALWAYS or (needed > ALWAYS and dimensions(position) >= needed)


def _asserted_views(backward: Method) -> set[cst.CSTNode]:
    """The views whose layout is asserted."""
    asked = ((each.node, each.value) for each in backward.facts.of(LayoutAsked))
    return {
        view.node for node, view in asked if isinstance(view, View) and backward.around(node, cst.Assert) is not None
    }


def _asserted(backward: Method, outputs: Sequence[Returned]) -> Iterator[LayoutUse]:
    """The assertions that gradients are contiguous: one for all gradients that one asks about."""
    found: dict[cst.CSTNode, dict[Value, LayoutUse]] = {}
    for asking in backward.facts.of(LayoutAsked):
        func = asking.node.func if isinstance(asking.node, cst.Call) else None
        if not isinstance(func, cst.Attribute) or not _is_gradient(asking.value):
            continue
        position = _position(asking.value)
        if position is not None and _has_one_layout(outputs, position, ASSERTED):
            continue
        if asking.node in found or is_asserted(backward, asking.node):
            name = _name(asking.value, func.value, is_whole=_is_inside_all(backward, asking.node))
            use = LayoutUse(asking.node, name, ASSERTED, position=position)
            found.setdefault(asking.node, {}).setdefault(asking.value, use)
    for first, *others in (each.values() for each in found.values()):
        yield replace(first, also=tuple(others))


def _with_foreign_strides(backward: Method, read: MemoryRead, use: LayoutUse) -> LayoutUse:
    """A use, with the tensor whose strides the kernel takes for the gradient: that layout need not be contiguous."""
    for each in foreign_strides(backward.facts) if read.how == KERNEL else ():
        if each.node is read.node and each.value == read.value:
            if not _may_have_any_layout(each.owner):
                return use
            owner = each.owner_node.value if isinstance(each.owner_node, cst.Name) else ""
            return replace(use, how=FOREIGN, other=owner)
    return replace(use, how=OTHERS) if read.how == KERNEL and read.others else use


def _may_have_any_layout(owner: Value) -> bool:
    """Whether a tensor is neither a gradient nor certainly contiguous."""
    origin = any_layout(owner)
    made = origin.node if isinstance(origin, Fresh) else None
    contiguous = isinstance(made, cst.Call) and last_name(made.func) in operations.CONTIGUOUS_FACTORIES
    return origin is not None and not contiguous and not _is_gradient(origin)


def _lent_strides(backward: Method, outputs: Sequence[Returned], seen: set[tuple[Value, bool]]) -> Iterator[LayoutUse]:
    """The gradients by whose strides kernels address other tensors, unless such a finding tells it already."""
    for use in foreign_strides(backward.facts):
        gradient = any_layout(use.owner)
        known = gradient is None or (gradient, True) in seen or not _is_gradient(gradient)
        if known or not isinstance(gradient, Parameter) or _has_one_layout(outputs, gradient.index, KERNEL):
            continue
        seen.add((gradient, True))
        other = use.value_node.value if isinstance(use.value_node, cst.Name) else use.name
        node = use.owner_node or use.node
        way = (LENT, use.reader, use.by, use.through)
        yield LayoutUse(node, gradient.name, *way, silent=True, other=other, position=gradient.index)


def silent_uses(backward: Method, outputs: Sequence[Returned]) -> list[LayoutUse]:
    """Those that certainly go wrong in silence. Most Functions have no kernel, and are not searched.

    None of a gradient that another function of the project gets too, which may look at its layout; nor of that of an
    output that may be None, for it is None as well.
    """
    reads, lent = backward.facts.of(MemoryRead), backward.facts.of(ForeignStrides)
    if not lent and not any(each.parameter is not None or each.how == "data_ptr" for each in reads):
        return []
    elsewhere = given_elsewhere(backward)
    none = {
        at
        for each in outputs
        for at, slot in enumerate(each.slots)
        if NONE in slot.value.options() and not slot.starred
    }
    handled = none.union(at for each in elsewhere if _is_gradient(each) for at in [_position(each)] if at is not None)
    return [each for each in layout_uses(backward, outputs) if each.silent and each.position not in handled]


def given_elsewhere(method: Method, followed: Container[cst.CSTNode] = ()) -> set[Value]:
    """What functions get that read no memory of it, as far as is known: they may check its layout.

    Not those that are ``followed``.
    """
    reads = (each for each in method.facts.of(MemoryRead) if each.how != ASSERTED)
    readers = {each.node for each in (*reads, *method.facts.of(ForeignStrides))}
    return {
        option
        for call in method.facts.of(GenericCall)
        if call.node not in readers and call.node not in followed and not (call.callee or "").startswith(_FROM_OUTSIDE)
        for slot in (*call.arguments, *(slot for _name, slot in call.keywords))
        for option in slot.value.options()
    }


def _reads_of_gradients(backward: Method, asked: set[Value]) -> Iterator[tuple[MemoryRead, cst.BaseExpression, Value]]:
    """What reads incoming gradients without their layout, the expression, and the gradient."""
    in_a_view = {each.of for each in asked if isinstance(each, View)}
    for read in backward.facts.of(MemoryRead):
        node, value = read.value_node, without_last_stride(backward.facts, read)
        if value is not None:
            read = replace(read, how=PARTLY_STRIDED)  # noqa: PLW2901
        elif (
            (read.how == ASSERTED and (not read.by or any(guard.arm == "try" for guard in read.guards)))
            or read.value in asked
            or (read.how == KERNEL and read.value in in_a_view)
        ):
            continue
        value = value or read.value
        if read.how in (EXTENSION, ASSERTED) and _reshaping(value) and isinstance(value, View):
            value = value.of if value.of not in asked else value
        if node is not None and _is_gradient(value) and not read.is_for_a_shape:
            yield read, node, value


def _reshaping(value: Value) -> str:
    """``reshape`` or ``flatten``, if a value is a tensor after that: an expanded one stays so."""
    called = last_name(value.node.func) if isinstance(value, View) and isinstance(value.node, cst.Call) else ""
    return called if called in ("reshape", "flatten") else ""


def _has_one_layout(outputs: Sequence[Returned], position: int, how: str) -> bool:
    """Whether the gradient of an output is as good as contiguous for such a use."""
    if is_without_dimensions(outputs, position) or (how == "view" and is_flat(outputs, position)):
        return True
    return is_integral(outputs, position)  # torch passes zeros for it


def _only_adds_dimensions(node: cst.CSTNode) -> bool:
    """Whether it is ``x.view(-1, 1, 1)``: written for one dimension, of which each layout allows that."""
    if not isinstance(node, cst.Call) or last_name(node.func) != "view":
        return False
    sizes = [code_of(each.value) for each in node.args]
    return sizes.count("-1") == 1 and sizes.count("1") == len(sizes) - 1 > 0


def compiled_reads_of_inputs(fn: FunctionClass) -> Iterator[tuple[MemoryRead, list[Input]]]:
    """The calls in forward through which compiled code gets inputs as they come, with the inputs of each.

    Only the first call for each input with a gradient counts, and none if forward makes it contiguous, all calls of the
    Function in view pass a new tensor for it, or it has the name of a parameter. One that mentions strides treats
    them on purpose, unless the kernel certainly does not use the last one: then it is ``PARTLY_STRIDED``. What an
    extension gets as ``stride``, or a launch with addresses, is that of a convolution, unless forward asks a tensor.
    """
    forward = fn.forward
    if forward is None or forward.inherited or not fn.signature_judgeable or not keeps_arguments(forward):
        return
    asked = {option for each in forward.facts.of(LayoutAsked) for option in each.value.options()}
    found: dict[cst.CSTNode, tuple[MemoryRead, list[Input]]] = {}
    seen: set[Value] = set()
    handled = any("stride" in word or word == ASSERTED for word in words_of(forward.node))
    asks = handled and any(
        "stride" in last_name(each.func) or last_name(each.func) == ASSERTED for each in forward.nodes_of(cst.Call)
    )
    for read in forward.facts.of(MemoryRead):
        partly = read.value if read.how == PARTLY_STRIDED else without_last_stride(forward.facts, read)
        value = read.value if partly is None else partly
        launch = _launch_with(forward, read.node) if read.how == ADDRESS and not read.by else None
        on_purpose = asks if read.how == EXTENSION or launch is not None else handled
        if read.is_for_a_shape or value in seen or (partly is None and (on_purpose or value in asked)):
            continue
        if partly is None and (
            (launch is None and read.how not in (KERNEL, EXTENSION))
            or (read.how == KERNEL and (read.by or is_of_one_element(read)))
        ):
            continue  # it may get strides that another function has computed
        seen.add(value)
        entry = input_of_any_layout(fn, value)
        if entry is not None:
            known = read if partly is None else replace(read, how=PARTLY_STRIDED)
            found.setdefault(launch or read.node, (known, []))[1].append(entry)
    yield from found.values()


def is_of_one_element(read: MemoryRead) -> bool:
    """Whether a kernel reads at most the first element of what it gets, whose layout does not matter then."""
    into = read.parameter
    return into is not None and into.name in reads_one_element(into.kernel, into.aliases)


def keeps_arguments(method: Method) -> bool:
    """Whether the decorators of a method certainly pass tensors as they come."""
    return all((each.name or "").startswith(_FROM_OUTSIDE) for each in method.decorators)


def input_of_any_layout(fn: FunctionClass, value: Value) -> Input | None:
    """The input that a value is, if it gets a gradient, and callers may pass any layout."""
    if not is_input(value) or value.index >= len(fn.inputs):
        return None
    entry = fn.inputs[value.index]
    calls = [call for call in fn.calls if call.applies and not (call.starred and entry.index >= len(call.arguments))]
    if entry.gradient is not Tri.YES or entry.against_a_gradient or _PARAMETER.fullmatch(entry.name):
        return None
    return entry if not calls or any(entry.index in call.any_layout for call in calls) else None


_PARAMETER = pattern(r"(?:\w+_)?(?:weight|bias|gamma|beta|kernel|filter)s?\d*|[wb]\d*", re.IGNORECASE)
"""What a layer calls its parameters, which are contiguous."""


def _use(node: cst.CSTNode, name: str, read: MemoryRead, position: int | None) -> LayoutUse:
    silent = read.parameter is not None and gets_bare_address(*read.parameter)
    way = (read.reader, read.by, read.through)
    reshaped = _reshaping(read.value) if read.how in (EXTENSION, ASSERTED) else ""
    return LayoutUse(node, name, read.how, *way, False, silent, position=position, alike=read.alike, reshaped=reshaped)


def _name(value: Value, node: cst.BaseExpression, *, is_whole: bool) -> str:
    """What the code calls a gradient: its parameter if ``node`` is a view of the whole; ``g[0]`` or all of ``*g``."""
    if is_whole and isinstance(value, Parameter):
        return value.name
    if is_whole and isinstance(value, Item) and isinstance(value.of, Variadic) and not isinstance(value.key, int):
        return f"*{value.of.name}"
    written = code_of(node)
    if isinstance(value, Item) and isinstance(value.of, Variadic) and isinstance(value.key, int):
        return f"{written}[{value.key}]" if value.of.name == written else written
    return written


def _position(gradient: Value) -> int | None:
    """The position of the output that an incoming gradient is of."""
    if isinstance(gradient, Parameter):
        return gradient.index
    of = gradient.of if isinstance(gradient, Item) else None
    if isinstance(gradient, Item) and isinstance(of, Variadic) and isinstance(gradient.key, int) and gradient.key >= 0:
        return of.start + gradient.key
    return None


def _launch_with(method: Method, node: cst.CSTNode) -> cst.Call | None:
    """The call that gets an address together with those of other tensors, possibly in a list: it is a launch."""
    for around in method.above(node):
        if isinstance(around, cst.Call):
            inside = [each.func for each in parents_below(around) if isinstance(each, cst.Call)]
            owners = [
                each.value for each in inside if isinstance(each, cst.Attribute) and last_name(each) == "data_ptr"
            ]
            launches = len(set(map(code_of, owners))) > 1 and last_name(around.func) not in _NO_LAUNCH
            return around if launches else None
        if not isinstance(around, (cst.Arg, cst.BaseElement, cst.Tuple, cst.List)):
            return None
    return None


_NO_LAUNCH = frozenset(["print", "hash", "set", "format", "add", "append", "debug", "info", "warning", "tensor"])


def _uses_inside(backward: Method, name: str, position: int) -> Iterator[LayoutUse]:
    """Those of a gradient in the functions that backward defines; none if one of them asks for its layout."""
    calls = [backward.called_on(node) for node in backward.named.get(name, ())]
    if any(method in operations.LAYOUT_QUERIES for _call, method in calls):
        return
    for call, method in calls:
        if call is None or method not in _NEEDS_LAYOUT:
            continue
        inside = [each for each in backward.above(call) if isinstance(each, (cst.FunctionDef, cst.Lambda))]
        inside.remove(backward.node)
        if inside and all(name in borrowed_names(each) for each in inside):
            yield LayoutUse(call, name, method, position=position)


def _is_gradient(value: Value) -> bool:
    """Whether it is an incoming gradient itself."""
    whole = value.of if isinstance(value, Item) else value
    return isinstance(whole, (Variadic if isinstance(value, Item) else Parameter)) and whole.role == "gradient"


def is_asserted(method: Method, node: cst.CSTNode) -> bool:
    """Whether an assertion raises unless a call returns True: ``assert g.is_contiguous() and n``, or one with ``all``.

    Not with ``memory_format``, where another layout is meant, nor under ``try``, which may handle the error.
    """
    inside: cst.CSTNode = node
    if not isinstance(node, cst.Call) or node.args or not (dotted(node.func) or "").endswith(f".{ASSERTED}"):
        return False
    if any(isinstance(each, (cst.Try, cst.TryStar)) and each.handlers for each in method.above(node)):
        return False
    for around in method.above(node):
        if isinstance(around, cst.Assert):
            return around.test is inside
        if _is_of_all(method, around, inside) or isinstance(inside, (cst.GeneratorExp, cst.ListComp, cst.Arg)):
            inside = around
            continue
        if isinstance(around, cst.Comparison):
            if around.left is not inside or not all(map(_is_true, around.comparisons)):
                return False
        elif not isinstance(around, cst.BooleanOperation) or not isinstance(around.operator, cst.And):
            return False
        inside = around
    return False


def _is_inside_all(method: Method, node: cst.CSTNode) -> bool:
    """Whether an expression is what ``all(… for each in …)`` asks of each."""
    return _is_of_all(method, method.parents[node], node)


def _is_of_all(method: Method, around: cst.CSTNode, inside: cst.CSTNode) -> bool:
    """Whether ``around`` computes ``inside`` for each of several, without conditions, and ``all`` gets the results."""
    if not isinstance(around, (cst.GeneratorExp, cst.ListComp)) or around.elt is not inside:
        return False
    call = method.parents[method.parents[around]]
    conditions = around.for_in.ifs or around.for_in.inner_for_in is not None
    return isinstance(call, cst.Call) and dotted(call.func) == "all" and len(call.args) == 1 and not conditions


def _is_true(target: cst.ComparisonTarget) -> bool:
    equal = isinstance(target.operator, (cst.Equal, cst.Is))
    return equal and isinstance(target.comparator, cst.Name) and target.comparator.value == "True"
