"""Tensors that a method computes with grad mode off, so that they have no graph and require no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.output_dtypes import asserts_a_dtype
from ctxlint.model.index.scopes import Scope, resolve_certainly
from ctxlint.model.interpreter.events import GenericCall, GradientFlag, LayoutAsked
from ctxlint.model.interpreter.local_names import only_assigned
from ctxlint.model.interpreter.values import (
    CONVERTING,
    NONE,
    UNKNOWN,
    Alias,
    Constant,
    Fresh,
    Item,
    Opaque,
    Parameter,
    Sequence,
    Single,
    Tri,
    View,
    detaches,
    is_input,
    same_object,
)
from ctxlint.model.syntax import children, code_of, dotted, is_name, keywords_of, last_name, parents_below, words_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.events import Differentiated
    from ctxlint.model.interpreter.method import Decorator, Method
    from ctxlint.model.interpreter.values import Value

_OFF = frozenset({"forward", "setup_context", "backward", "vjp"})
"""The methods that autograd runs with grad mode off; ``backward`` and ``vjp`` unless ``create_graph=True``."""

_words = str.split

_LEAVE_IT_OFF = frozenset(
    _words(
        """
        staticmethod classmethod custom_fwd custom_bwd once_differentiable no_grad inference_mode autocast device
        device_guard stream nullcontext record_function input_guard contiguous profile range fork_rng
        """
    )
)
"""The last parts of the names of decorators and ``with`` items that do not enable grad mode."""

_ENDS_IT = frozenset({"no_grad", "inference_mode"})
_SWITCHES = frozenset({"enable_grad", "set_grad_enabled", "_set_grad_enabled", "set_grad_mode", "grad_mode"})
_MAY_BE_A_VIEW = frozenset(
    _words(
        """
        alpha_dropout as_tensor atleast_1d atleast_2d atleast_3d block_diag cartesian_prod chalf clip coalesce
        column_stack combinations concat concatenate conj_physical contiguous dequantize diag diff dropout dstack einsum
        feature_alpha_dropout feature_dropout fftshift float_power from_numpy hstack ifftshift interpolate nan_to_num
        new_tensor normalize pad row_stack rrelu sum_to_size tensor tile to_dense to_mkldnn to_padded_tensor to_sparse
        to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr trapezoid trapz unfold unfold_copy upsample vstack
        """
    )
)
"""Operations that return one tensor, but possibly their operand, a view of it, or one with a given flag."""

_LEGACY_CONSTRUCTORS = frozenset(
    _words("BFloat16Tensor BoolTensor ByteTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor Tensor")
)
"""The types of torch that create memory of given sizes, such as ``torch.cuda.FloatTensor(1)``."""

_TAKES_INPLACE = frozenset(_words("hardsigmoid hardswish mish relu relu6 selu silu"))
"""Functions whose second parameter is ``inplace``."""

_MAKES_COPIES = (operations.TENSOR_METHODS | operations.TORCH_SINGLE) - _MAY_BE_A_VIEW


def untracked(fn: FunctionClass, method: Method, value: Value | None) -> bool:
    """Whether a value of a method is certainly a tensor computed with grad mode off: it requires no gradient.

    False if its ``requires_grad`` is set afterwards. A view created with grad mode off has the flag of its base, so it
    counts only if it is detached, or its base is untracked itself.
    """
    homes = (method, fn.forward) if method.name == "setup_context" and fn.forward is not None else (method,)
    if value is None or not all(each.name in _OFF and _keeps_the_mode(each) for each in homes):
        return False
    flags = [each.value for home in homes for each in home.facts.of(GradientFlag) if each.switched]
    wanted = {_origin(option) for each in flags if each is not None for option in each.options()}
    return all(_untracked(homes, option, wanted) for option in value.options())


def untracked_if_copied(fn: FunctionClass, method: Method, value: Value | None) -> CopiedInput | None:
    """The input that a value of a method is, unless a call on the way copies it, and the name of that call.

    ``x.reshape(-1)`` of an input, with grad mode off: a copy requires no gradient, a view has the flag of its base.
    On other paths, the value is such a tensor, too, or requires no gradient anyway, or it is the input, which is copied
    only in other layouts, or where a test holds that is not about gradients.
    """
    options = value.options() if value is not None else ()
    found = [_input_if_not_copied(method, option) for option in options]
    first = next(filter(None, found), None)
    others = (option for option, copied in zip(options, found) if copied is None)
    if first is not None and not first.for_layout and asserts_a_dtype(method):
        return None
    return (
        first
        if first is not None
        and all(
            each == NONE or untracked(fn, method, each) or (first.sometimes and each == first.input) for each in others
        )
        else None
    )


def untracked_if_cast(method: Method, value: Value | None) -> Parameter | None:
    """The input that a value of forward is, or a view of it, if ``custom_fwd(cast_inputs=...)`` may pass a copy of it.

    It does that under autocast, with grad mode off, for an input of another dtype than ``cast_inputs``.
    """
    entry = method.decorator("custom_fwd") if method.name == "forward" and value is not None else None
    if entry is None or not entry.casts_inputs or not _keeps_the_mode(method):
        return None
    base = _origin(value) if value is not None else None
    if any(each.switched and each.value in (value, base) for each in method.facts.of(GradientFlag)):
        return None
    return base if is_input(base) else None


def untracked_if_laid_out(method: Method, value: Value | None) -> tuple[Parameter, Decorator] | None:
    """The input that a value of forward is, or a view of it, and a decorator of the project that may pass a copy of it.

    That calls ``contiguous`` for each argument, with grad mode off.
    """
    if value is None or method.name != "forward":
        return None
    found = next((each for each in method.decorators if each.lays_out and each.certain), None)
    others = (each for each in method.decorators if each is not found)
    if found is None or not all(_leaves_it_off(each.node.decorator) for each in others):
        return None
    base = _origin(value)
    if not is_input(base) or any(map(_switches, method.nodes_of(cst.Name))):
        return None
    if any(each.switched and each.value in (value, base) for each in method.facts.of(GradientFlag)):
        return None
    return base, found


class CopiedInput(NamedTuple):
    """An input, the name of a call that may copy it, and whether that happens only in certain layouts of the input.

    ``sometimes``: or if a test around it holds, which is about something else than gradients. ``tested``: that test
    asks the dtype of what it copies.
    """

    input: Parameter
    name: str
    for_layout: bool
    sometimes: bool
    tested: bool


def _input_if_not_copied(method: Method, value: Value) -> CopiedInput | None:
    if not isinstance(value, View) or method.name not in _OFF or not _keeps_the_mode(method):
        return None
    if any(each.switched and each.value == value for each in method.facts.of(GradientFlag)):
        return None
    call: cst.Call | None = None
    for_dtype = False
    base: Value = value
    while isinstance(base, View) and not detaches(base):
        if isinstance(base.node, cst.Call) and _is_off(method, base.node) and _may_copy(method, base):
            call, for_dtype = base.node, base.alias is not Alias.USUALLY
        base = base.of
    if not is_input(base) or call is None:
        return None
    guards = [guard for each in method.facts.of(LayoutAsked) if each.node is call for guard in each.guards]
    asked = {word for each in guards for word in each.words}
    for_layout = not operations.LAYOUT_QUERIES.isdisjoint(asked) and not any("grad" in each for each in asked)
    tests = _tests_around(method, call)
    under_test = bool(tests) and not any("grad" in word for test in tests for word in words_of(test))
    tested = for_dtype and _is_converted_by_dtype(method, call)
    return CopiedInput(base, last_name(call.func), for_layout, for_layout or under_test, tested)


def _may_copy(method: Method, view: View) -> bool:
    """Whether a view is a copy in some layouts, or unless its base has a dtype already: ``float()``.

    Also ``x.to(dtype)`` where a test shows that the dtype of ``x`` may be another one.
    """
    if view.alias is Alias.USUALLY or view.alias in CONVERTING:
        return True
    call = view.node if isinstance(view.node, cst.Call) else None
    return view.alias is Alias.POSSIBLY and call is not None and _is_converted_by_dtype(method, call)


def _tests_around(method: Method, call: cst.Call) -> list[cst.BaseExpression]:
    """The tests that decide whether a call copies: around it, or in the function of the project that it calls."""
    function = _called_function(method, call)
    return _tests_of((*method.above(call), *(parents_below(function) if function is not None else ())))


def _tests_of(nodes: Iterable[cst.CSTNode]) -> list[cst.BaseExpression]:
    """The tests of those that are conditions."""
    return [each.test for each in nodes if isinstance(each, (cst.If, cst.IfExp))]


def _called_function(method: Method, call: cst.Call) -> cst.FunctionDef | None:
    """The function of the project that a call in a method calls."""
    home = next((each.definition for each in method.facts.of(GenericCall) if each.node is call), None)
    return home.unit.slices.find_bare_function(home.qualname) if home is not None else None


def _is_converted_by_dtype(method: Method, call: cst.Call) -> bool:
    """Whether a call is ``x.to(dtype)`` under a test of ``x.dtype``, or a function of the project that does so."""
    function = _called_function(method, call)
    if function is None:
        return _asks_dtype(call, _tests_of(method.above(call)))
    inside = parents_below(function)
    calls = [each for each in inside if isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute)]
    converting = [each for each in calls if last_name(each.func) == "to"]
    return bool(converting) and all(_asks_dtype(each, _tests_of(inside)) for each in converting)


def _asks_dtype(call: cst.Call, tests: list[cst.BaseExpression]) -> bool:
    """Whether a test compares the dtype of the tensor of which a call is a method."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "to":
        return False
    asked = f"{code_of(call.func.value)}.dtype"
    parts = (part for test in tests for part in (test, *parents_below(test)) if isinstance(part, cst.Comparison))
    return any(
        code_of(side) == asked
        for part in parts
        for side in (part.left, *(each.comparator for each in part.comparisons))
    )


def differentiated_untracked(fn: FunctionClass, method: Method, value: Value | None) -> Method | None:
    """The method that computes, with grad mode off, a tensor that another one or it itself differentiates, if any."""
    if untracked(fn, method, value):
        return method
    stored = kept_untouched(fn, method, value) if fn.backward is method else None
    if stored is None or any(isinstance(option, View) and detaches(option) for option in stored.options()):
        return None
    homes = (each for each in fn.earlier_methods if not each.inherited and each.name not in fn.called_directly)
    return next((each for each in homes if untracked(fn, each, stored)), None)


def views_behind(method: Method, value: Value | None, call: cst.CSTNode | None = None) -> tuple[cst.CSTNode, ...]:
    """The statements that make, with grad mode off, views from which a method computes a tensor.

    Such a view has no graph, even if its base requires a gradient. One whose own flag is set is a leaf. Views of others
    than the tensors that a ``call`` differentiates with respect to need no graph.
    """
    leaves = _differentiated_by(method, call)
    flagged = {each.value for each in method.facts.of(GradientFlag) if each.switched}
    found: dict[cst.CSTNode, None] = {}
    node = value.node if isinstance(value, (Fresh, Single, View)) else None
    todo = list(_names_in(method, node))
    for name in todo:
        for each in method.assignments.get(name, ()):
            bound = each.value
            parts = [slot.value for slot in bound.slots] if isinstance(bound, Sequence) else [bound]
            kept = [part for part in parts if isinstance(part, (Fresh, Single, View)) and part not in flagged]
            if not kept or not _is_off(method, each.node):
                continue
            views = [part for part in kept if isinstance(part, View)]
            graphless = [view for view in views if not detaches(view) and not (leaves and _origin(view) not in leaves)]
            if graphless:
                found[each.statement or each.node] = None
            elif views and views == kept:
                continue
            todo += [other for other in _names_in(method, each.value_node) if other not in todo]
    return tuple(found)


def may_collect_views(method: Method, value: Value | None) -> bool:
    """Whether containers from which a method computes a tensor may hold views that are made with grad mode off."""
    todo = list(_names_in(method, value.node if isinstance(value, (Fresh, Single, View)) else None))
    for name in todo:
        for each in method.assignments.get(name, ()):
            if isinstance(each.value, Sequence) and _is_off(method, each.node) and _may_index(each.value_node):
                return True
            todo += [other for other in _names_in(method, each.value_node) if other not in todo]
    return False


def _may_index(node: cst.CSTNode | None) -> bool:
    """Whether code may take views of tensors: by an index, or by a method for that."""
    if isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value in _VIEWS):
        return True
    return node is not None and any(map(_may_index, children(node)))


def makes_views(method: Method) -> bool:
    """Whether code of a method may make views with grad mode off: ``x[None, :]``, ``x.view(-1)`` and the like."""
    indexed = (each for each in method.nodes_of(cst.Subscript) if any(map(_makes_a_view, each.slice)))
    called = (
        each
        for each in method.nodes_of(cst.Call)
        if last_name(each.func) in _VIEWS and isinstance(each.func, cst.Attribute)
    )
    return any(_is_off(method, each) for each in (*indexed, *called))


def _makes_a_view(element: cst.SubscriptElement) -> bool:
    index = element.slice
    return not isinstance(index, cst.Index) or is_name(index.value, "None")


_VIEWS = operations.VIEW_METHODS | operations.USUAL_VIEW_METHODS


def _differentiated_by(method: Method, node: cst.CSTNode | None) -> set[Value]:
    """The tensors to which ``torch.autograd.grad`` differentiates in a call; empty if they are not known."""
    call = next((each for each in method.facts.of(GenericCall) if each.node is node), None)
    if call is None or call.callee != "torch.autograd.grad":
        return set()
    by = call.arguments[1] if len(call.arguments) > 1 else dict(call.keywords).get("inputs")
    slots = by.value.slots if by is not None and isinstance(by.value, Sequence) else (by,)
    values = [option for slot in slots if slot is not None for option in slot.value.options()]
    return set() if UNKNOWN in values else {_origin(each) for each in values}


def _names_in(method: Method, node: cst.CSTNode | None) -> list[str]:
    """The variables in an expression of a method, each once."""
    names = (each for each in method.variables if each is node or node in method.above(each)) if node else ()
    return list(dict.fromkeys(each.value for each in names))


def fate_of_leaf(method: Method, each: Differentiated) -> str:
    """What ``torch.autograd.grad`` does with a tensor that is computed with grad mode off, and requires_grad set then.

    The flag makes it a leaf without a graph. With ``allow_unused`` torch returns None for its operands, otherwise it
    raises RuntimeError. Empty if it is not certainly such a tensor.
    """
    call = next((call for call in method.facts.of(GenericCall) if call.node is each.node), None)
    if call is None or call.callee != "torch.autograd.grad" or not isinstance(each.value, (Fresh, Single)):
        return ""
    if not any(flag.switched and flag.value == each.value for flag in method.facts.of(GradientFlag)):
        return ""
    if method.name not in _OFF or not _keeps_the_mode(method) or not _untracked((method,), each.value, set()):
        return ""
    keywords = dict(call.keywords)
    by = call.arguments[1] if len(call.arguments) > 1 else keywords.get("inputs")
    slots = by.value.slots if by is not None and isinstance(by.value, Sequence) else (by,)
    if any(slot is None or slot.value in (UNKNOWN, each.value) or slot.starred for slot in slots):
        return ""
    allowed = keywords["allow_unused"].value if "allow_unused" in keywords else Constant(False, "bool")
    if not isinstance(allowed, Constant) or "materialize_grads" in keywords:
        return ""
    return "returns `None`" if allowed.value else "raises RuntimeError"


def kept_untouched(fn: FunctionClass, method: Method, value: Value | None) -> Value | None:
    """What a stored tensor that backward reads is in forward, if it comes back with the flag that it has there.

    None for an output, which has a graph by then, and if backward itself sets its flag.
    """
    stored = kept_value(fn, value)
    if stored is None or any(each.switched and each.value == value for each in method.facts.of(GradientFlag)):
        return None
    outputs = [option for output in fn.outputs_values() for option in output.options()]
    outputs = [each for each in outputs if not _is_saved_too(fn, each, stored)]
    if any(same_object(option, _origin(each)) is not Tri.NO for option in stored.options() for each in outputs):
        return None
    return stored


def _is_saved_too(fn: FunctionClass, output: Value, stored: Value) -> bool:
    """Whether an unknown output is saved as well as a stored tensor: nobody saves one tensor twice."""
    others = [slot.value for save in fn.saves for slot in save.arguments if slot.value != stored]
    of = output.of if isinstance(output, Item) else output
    called = isinstance(of, Opaque) and isinstance(of.node, cst.Call)
    return called and output not in stored.options() and any(output in each.options() for each in others)


def _untracked(homes: tuple[Method, ...], value: Value, wanted: set[Value]) -> bool:
    if value in wanted or not isinstance(value, (Fresh, Single, View)):
        return False
    if isinstance(value, View):
        return detaches(value) or all(_untracked(homes, option, wanted) for option in value.of.options())
    method = next((each for each in homes if value.node in each.parents), None)
    if method is None:
        return False
    return value.part is None and _computes(method, value.node) and _is_off(method, value.node)


def _origin(value: Value) -> Value:
    """The tensor whose ``requires_grad`` matters: for a detached view, the view itself."""
    while isinstance(value, View) and not detaches(value):
        value = value.of
    return value


def _computes(method: Method, node: cst.CSTNode | None) -> bool:
    """Whether an expression certainly computes a new tensor from others."""
    if isinstance(node, cst.BinaryOperation):
        return True
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus)
    if not isinstance(node, cst.Call) or not isinstance(node.func, (cst.Attribute, cst.Name)):
        return False
    home = next((each.definition for each in method.facts.of(GenericCall) if each.node is node), None)
    if home is not None:
        return _computed_by(home)
    name = last_name(node.func)
    if name in _LEGACY_CONSTRUCTORS:  # of a tensor, it may return that itself
        return bool(node.args) and all(isinstance(each.value, cst.Integer) for each in node.args)
    if name not in _MAKES_COPIES or any(argument.star == "**" for argument in node.args):
        return False
    if name in _TAKES_INPLACE and len(node.args) > 1:
        return False
    if not keywords_of(node).keys().isdisjoint(_NOT_COPYING):
        return False
    called = next((each.callee for each in method.facts.of(GenericCall) if each.node is node), None)
    return called.startswith("torch.") if called is not None else isinstance(node.func, cst.Attribute)


_NOT_COPYING = ("out", "requires_grad", "inplace")
"""Keywords with which an operation may not return a new tensor with a graph."""


def is_copied_by(node: cst.CSTNode | None) -> bool:
    """Whether an expression certainly computes a new tensor from others, in code without a model."""
    if isinstance(node, cst.BinaryOperation):
        return True
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    plain = keywords_of(node).keys().isdisjoint(_NOT_COPYING) and not any(each.star == "**" for each in node.args)
    return plain and node.func.attr.value in _MAKES_COPIES - _TAKES_INPLACE


def is_off(method: Method, node: cst.CSTNode) -> bool:
    """Whether grad mode is certainly off at a node of ``forward`` or ``setup_context``."""
    return method.runs_before_backward and _keeps_the_mode(method) and _is_off(method, node)


def is_off_at_first(method: Method, node: cst.CSTNode) -> bool:
    """Whether grad mode is off at a node; in ``backward`` and ``vjp``, unless ``create_graph=True``."""
    return method.name in _OFF and _keeps_the_mode(method) and _is_off(method, node)


def _computed_by(home: Definition) -> bool:
    """Whether a function of the project certainly returns a tensor that it computes, and leaves grad mode as it is."""
    unit, qualname = home.unit, home.qualname
    node = unit.slices.find_bare_function(qualname)
    if node is None or any(last_name(each.decorator) != "staticmethod" for each in node.decorators):
        return False
    below = parents_below(node)
    if any(isinstance(each, (cst.Lambda, cst.FunctionDef)) or _switches(each) or _asks(each) for each in below):
        return False
    returned = [each.value for each in below if isinstance(each, cst.Return)]
    scope = Scope("function", qualname, unit.index.functions[qualname].scope)
    return bool(returned) and all(_is_computed(each, node, scope) for each in returned)


def _indexed(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """``x`` of ``x[0]``, which has the flag of ``x``."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def _is_computed(node: cst.BaseExpression | None, function: cst.FunctionDef, scope: Scope) -> bool:
    """The same of an expression in the function: a torch operation, arithmetic, or an index of such a tensor."""
    node = _indexed(node)
    if isinstance(node, cst.Name):
        node = _indexed(only_assigned(function, node.value))
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return isinstance(node, cst.BinaryOperation)
    meant = resolve_certainly(dotted(node.func) or "", scope) or ""
    copies = node.func.attr.value in _MAKES_COPIES - _TAKES_INPLACE
    return copies and keywords_of(node).keys().isdisjoint(_NOT_COPYING) and meant.startswith("torch.")


def _keeps_the_mode(method: Method) -> bool:
    """Whether only ``with`` statements can switch grad mode in a method, and it does not ask for the mode.

    Before backward, the answer is always False. In ``backward``, it is True under ``create_graph=True``, as is the flag
    of an incoming gradient.
    """
    if not method.runs_before_backward and _asks_for_the_mode(method):
        return False
    if not all(_leaves_it_off(each.node.decorator) for each in method.decorators):
        return False
    return all(_is_with_item(method, each) for each in method.nodes_of(cst.Name) if _switches(each))


def _switches(node: cst.CSTNode) -> bool:
    """Whether a node names something that may switch grad mode."""
    return isinstance(node, cst.Name) and node.value in _SWITCHES


def _asks(node: cst.CSTNode) -> bool:
    """Whether a node is the name of ``torch.is_grad_enabled``."""
    return is_name(node, "is_grad_enabled")


def _asks_for_the_mode(backward: Method) -> bool:
    gradients = [param.name for param in backward.own_params]
    asked = (each.value for each in backward.nodes_of(cst.Attribute) if each.attr.value == "requires_grad")
    of_gradient = any(isinstance(each, cst.Name) and each.value in gradients for each in asked)
    return of_gradient or any(map(_asks, backward.nodes_of(cst.Name)))


def _is_with_item(method: Method, node: cst.CSTNode) -> bool:
    while isinstance(node, (cst.Name, cst.Attribute)):
        node = method.parents[node]
    return isinstance(node, cst.Call) and isinstance(method.parents[node], cst.WithItem)


def _is_off(method: Method, node: cst.CSTNode) -> bool:
    """Whether no ``with`` statement or function around a node can have enabled grad mode."""
    for around in method.above(node):
        if isinstance(around, cst.With) and not all(_leaves_it_off(each.item) for each in around.items):
            return False
        if isinstance(around, (cst.Lambda, cst.FunctionDef)) and around is not method.node:
            return False
    return True


def is_on(method: Method, node: cst.CSTNode) -> bool:
    """Whether the innermost ``with`` item around a node that says something about grad mode certainly enables it."""
    for around in method.above(node):
        if isinstance(around, (cst.Lambda, cst.FunctionDef)):
            return False
        if isinstance(around, cst.With):
            for each in reversed(around.items):
                call = each.item
                if isinstance(call, cst.Call) and last_name(call.func) == "enable_grad" and not call.args:
                    return True
                if not _leaves_it_off(call) or not _ENDS_IT.isdisjoint(words_of(call)):
                    return False
    return False


def may_be_on(method: Method, node: cst.CSTNode) -> bool:
    """Whether something in a method that switches grad mode may have enabled it for a node."""
    if any(not _SWITCHES.isdisjoint(words_of(each.node.decorator)) for each in method.decorators):
        return True
    switches = [each for each in method.nodes_of(cst.Name) if _switches(each)]
    around = {*method.above(node)} if switches else set()
    return any(not _is_with_item(method, each) or method.around(each, cst.With) in around for each in switches)


def _leaves_it_off(node: cst.BaseExpression) -> bool:
    name = dotted(node.func if isinstance(node, cst.Call) else node)
    return name is not None and name.rpartition(".")[2].removeprefix("autocast_") in _LEAVE_IT_OFF
