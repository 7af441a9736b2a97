"""Intermediates that forward saves and backward multiplies with: a second derivative treats them as constants."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.grad_mode import may_be_on
from ctxlint.model.analyses.mutations import input_written
from ctxlint.model.analyses.saved_state import single_save
from ctxlint.model.analyses.second_order import differentiable_backward, leaves_autograd
from ctxlint.model.interpreter.events import Assigned, GenericCall, Mutation
from ctxlint.model.interpreter.values import (
    CONVERTING,
    NONE,
    ContextAttribute,
    Fresh,
    Kind,
    Parameter,
    SavedTensor,
    Single,
    Tri,
    View,
    before_views,
    is_detached,
    is_input,
    kind_of,
    same_object,
)
from ctxlint.model.syntax import dotted, is_name, keywords_of, names_in
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_words = str.split
_SMOOTH = (
    frozenset(
        _words(
            """
            abs acos acosh add addcdiv addcmul addmm asin asinh atan atan2 atanh baddbmm bmm cat cholesky cholesky_solve
            clamp clamp_max clamp_min clone conv1d conv2d conv3d cos cosh cross cumprod cumsum det diag_embed div divide
            dot eigh eigvalsh einsum elu erf erfc exp expm1 fft fft2 fftn flip gelu hypot ifft ifft2 ifftn inner inv
            irfft irfft2 irfftn kron lerp lgamma linear log log1p log2 log_softmax logaddexp logcumsumexp logdet
            logsumexp matmul maximum mean minimum mm mul multiply mv neg norm outer pow prod qr reciprocal relu rfft
            rfft2 rfftn rsqrt sigmoid silu sin sinh softmax softplus solve solve_triangular
            sqrt square stack std sub subtract sum svd svdvals tan tanh tensordot tril triu true_divide var vector_norm
            """
        )
    )
    | (operations.VIEW_METHODS - frozenset(["detach"]))
    | operations.USUAL_VIEW_METHODS
    | operations.CONVERSIONS
    | operations.FLOAT_CONVERSIONS
)
"""Operations whose derivative is nonzero almost everywhere, with respect to each of their tensors."""

_LIKE_ANOTHER = frozenset(_words("expand_as reshape_as to type_as view_as"))
"""Those that ask their argument for its shape, dtype or device only."""

_AT_INDICES = {
    **dict.fromkeys(_words("gather index_select take_along_dim"), (0,)),
    **dict.fromkeys(_words("index_add index_copy scatter scatter_add"), (0, 3)),
    "sparse_coo_tensor": (1,),
    **dict.fromkeys(_words("sparse_csr_tensor sparse_csc_tensor"), (2,)),
}
"""Those that get indices as well, with the positions of the tensors that they are differentiable in."""

_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power, cst.MatrixMultiply)
_VIEWS = frozenset(_words("T mT H mH real"))
_DIFFERENTIATING = frozenset({"torch.autograd.grad", "autograd.grad"})


class Making(Enum):
    """How forward made an intermediate."""

    COMPUTED = "computed"
    DETACHED = "detached"
    """It is an input, detached."""
    VIEWED = "viewed"
    """It is a view of an input: forward makes it with grad mode off, so that it does not lead to the input."""
    CONVERTED = "converted"
    """It is a copy of an input in another dtype, or the input itself if that has the dtype."""


class Bindings(NamedTuple):
    """The expressions that each name of a method is bound to, and the calls of torch functions by a bare name."""

    values: dict[str, list[cst.BaseExpression | None]]
    functions: frozenset[cst.CSTNode] = frozenset()

    def of(self, name: str) -> list[cst.BaseExpression | None]:
        return self.values.get(name, [])

    def without(self, name: str) -> Bindings:
        return self._replace(values={each: nodes for each, nodes in self.values.items() if each != name})


class Intermediate(NamedTuple):
    """Where backward uses a saved intermediate of forward in a gradient that it returns, by its first name there.

    ``inputs`` are the indices of those that it certainly depends on, ``slots`` those of the gradients that it is in on
    each path.
    """

    node: cst.CSTNode
    name: str
    made: Making
    inputs: frozenset[int]
    slots: frozenset[int]


def intermediates_in_gradients(fn: FunctionClass) -> Iterator[Intermediate]:
    """The intermediates of forward that backward certainly uses in a gradient that it returns.

    An intermediate depends on an input that gets a gradient, and is neither an input nor an output itself. A view or
    copy that is returned as the gradient holds another value then, which a kernel wrote into its memory.
    """
    backward = fn.backward
    if backward is None or fn.escapes or not fn.signature_judgeable:
        return
    slots = [slot for returned in fn.gradients if returned.known for slot in returned.slots]
    memory = {before_views(option) for slot in slots for option in slot.value.options()}
    kinds = ((value, kind) for value, origin in _stored(fn) for kind in _kinds_of_intermediate(fn, origin))
    stored = {value: kind for value, kind in kinds if kind[0] is Making.COMPUTED or value not in memory}
    bound = _bindings(backward)
    places: dict[str, tuple[cst.CSTNode, tuple[Making, frozenset[int]]]] = {
        each.name: (each.node, stored[each.value])
        for each in backward.facts.of(Assigned)
        if each.value in stored and _is_computed_on(backward, each, bound)
    }
    for attribute, reads in backward.context_attributes.items():
        if backward.ctx is not None and ContextAttribute(attribute) in stored:
            kind = stored[ContextAttribute(attribute)]
            places.setdefault(f"{backward.ctx.name}.{attribute}", (reads[0], kind))
    if not places:
        return
    nodes = [slot.node for slot in slots]
    nodes += [each.node.value for each in fn.gradients if not each.known and isinstance(each.node, cst.Return)]
    reached = _reached([each for each in nodes if each is not None], bound)
    first: dict[Value | None, str] = {}
    for each in backward.facts.of(Assigned):
        first.setdefault(each.value, each.name)
    called = {each.name: first[each.value] for each in backward.facts.of(Assigned)}
    for name, (node, (made, inputs)) in places.items():
        if name in reached:
            yield Intermediate(node, called.get(name, name), made, inputs, _slots_with(fn, name, bound))


def _slots_with(fn: FunctionClass, name: str, bound: Bindings) -> frozenset[int]:
    """The indices of the gradients that each return certainly computes with a name."""
    by_return = [
        {at for at, slot in enumerate(each.slots) if slot.node is not None and name in _reached([slot.node], bound)}
        for each in fn.gradients
        if each.known
    ]
    return frozenset(set.intersection(*by_return)) if len(by_return) == len(fn.gradients) > 0 else frozenset()


def second_derivative_of(fn: FunctionClass, used: Intermediate) -> str:
    """Where a caller certainly differentiates a gradient with an intermediate, by what it depends on; or empty."""
    for call in fn.calls:
        for first, second, line in call.second_derivatives if not call.expects_error else ():
            if first in used.slots and second in used.inputs:
                return call.place.replace(call.line, line, 1)
    return ""


def second_derivative_of_marked(fn: FunctionClass) -> str:
    """Where a caller certainly differentiates a gradient that depends on what it differentiates it by; or empty.

    Backward computes it with a saved tensor, by operations that autograd records without the mark.
    """
    again = [(call, *each) for call in fn.calls if not call.expects_error for each in call.second_derivatives]
    backward = fn.backward
    if not again or backward is None or fn.escapes or leaves_autograd(fn, backward) is not None:
        return ""
    bound = _bindings(backward)
    stored = {value: _inputs_behind(fn, origin) for value, origin in _stored(fn)}
    used = {
        each.name: stored[each.value]
        for each in backward.facts.of(Assigned)
        if each.value in stored and _is_computed_on(backward, each, bound)
    }
    for attribute in backward.context_attributes:
        used[f"{backward.ctx_name}.{attribute}"] = stored.get(ContextAttribute(attribute), frozenset())
    pairs = {
        (slot, at) for name, inputs in used.items() if inputs for slot in _slots_with(fn, name, bound) for at in inputs
    }
    found = (call.place.replace(call.line, line, 1) for call, first, second, line in again if (first, second) in pairs)
    return next(found, "")


def _inputs_behind(fn: FunctionClass, value: Value) -> frozenset[int]:
    """The inputs with gradients that a stored value is, or certainly depends on; also if it is an output."""
    origin = before_views(value)
    if is_input(origin):
        named = [each for each in fn.inputs if each.index == origin.index and each.gradient is not Tri.NO]
        return frozenset(each.index for each in named)
    return _inputs_reached(fn, value)


def _is_computed_on(method: Method, assigned: Assigned, bound: Bindings) -> bool:
    """Whether a name has one value, or each later one certainly has a derivative with respect to the one before."""
    name = assigned.name
    first, *later = method.assignments.get(name, ()) or (None,)
    if first is not assigned or len(method.binders.get(name, ())) != len(later) + 1:
        return False
    return _follow_from(bound.of(name)[1:], name, bound)


def _follow_from(values: list[cst.BaseExpression | None], name: str, bound: Bindings) -> bool:
    """Whether each value that a name is bound to is computed from the one before: ``x = x * 2``."""
    return all(each is not None and name in _reached([each], bound.without(name)) for each in values)


def is_half_detached(fn: FunctionClass, method: Method, node: cst.BaseExpression) -> bool:
    """Whether backward computes a value with a detached incoming gradient and a stored tensor that has a graph.

    A second derivative of that value is only a part of the right one.
    """
    if method is not differentiable_backward(fn) or any(map(method.decorator, _UNRECORDED)):
        return False
    if any(each.attr.value in _UNRECORDED for each in method.nodes_of(cst.Attribute)):
        return False
    bound = _bindings(method)
    reached, used = _reached([node], bound), _reached([node], bound, _operands)
    incoming = [each.name for each in method.own_params]
    if used.isdisjoint(incoming) or any(each in reached and not _is_cut(each, bound) for each in incoming):
        return False
    stored = {value for value, origin in _stored(fn) if _has_graph(fn, origin)}
    names = (
        each for name in reached for each in method.assignments.get(name, ()) if len(method.binders.get(name, ())) == 1
    )
    attributes = (
        ContextAttribute(each.partition(".")[2]) for each in reached if method.ctx_name == each.partition(".")[0]
    )
    return any(each.value in stored for each in names) or not stored.isdisjoint(attributes)


_UNRECORDED = ("no_grad", "inference_mode")


def _is_cut(name: str, bound: Bindings) -> bool:
    """Whether a parameter is bound again, each time to something without its graph."""
    values = bound.of(name)
    return bool(values) and all(
        each is not None and name not in _reached([each], bound.without(name)) for each in values
    )


def _has_graph(fn: FunctionClass, value: Value) -> bool:
    """Whether what forward stores is an input that may need a gradient, or an output."""
    origin = before_views(value)
    if is_detached(value) or not is_input(origin) or origin.index >= len(fn.inputs):
        return any(same_object(value, each) is Tri.YES for each in fn.outputs_values())
    entry = fn.inputs[origin.index]
    return entry.gradient is not Tri.NO and entry.is_tensor is not Tri.NO and not _is_overwritten(fn, origin)


def _operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The operands of an operation that is differentiable but for ``detach()`` and ``.data``."""
    owner = node.func if isinstance(node, cst.Call) else node
    detached = isinstance(owner, cst.Attribute) and owner.attr.value == ("detach" if owner is not node else "data")
    return [cst.ensure_type(owner, cst.Attribute).value] if detached else differentiated_in(node)


def _stored(fn: FunctionClass) -> Iterator[tuple[Value, Value]]:
    """What backward reads of the saved state, with its value in forward."""
    for position, slot in enumerate(single_save(fn) or ()):
        yield SavedTensor(position), slot.value
    for attribute, writes in fn.writes_by_attribute.items():
        if len(writes) == 1 and writes[0].value is not None:
            yield ContextAttribute(attribute), writes[0].value


def _kinds_of_intermediate(fn: FunctionClass, value: Value) -> Iterator[tuple[Making, frozenset[int]]]:
    """How forward made what it stored, and the inputs that it depends on; nothing if not an intermediate."""
    made, origin = _making(value)
    if made is not Making.DETACHED and _may_be_recorded(fn, value):
        return
    if is_input(origin) and origin.index < len(fn.inputs) and made is not Making.COMPUTED:
        entry = fn.inputs[origin.index]
        returned = any(same_object(value, each) is not Tri.NO for each in fn.outputs_values())
        differentiable = entry.gradient is not Tri.NO and entry.is_tensor is not Tri.NO
        if differentiable and (made is Making.DETACHED or not returned) and not _is_overwritten(fn, origin):
            yield made, frozenset([origin.index])
    elif inputs := _inputs_of_intermediate(fn, value):
        yield Making.COMPUTED, inputs


def _may_be_recorded(fn: FunctionClass, value: Value) -> bool:
    """Whether forward may compute a value with grad mode on, so that it leads to the input."""
    node = value.node if isinstance(value, (Fresh, Single, View)) else None
    return node is not None and any(node in each.parents and may_be_on(each, node) for each in fn.earlier_methods)


def _making(value: Value) -> tuple[Making, Value]:
    """How a value was made from another one, and that."""
    if is_detached(value):
        return Making.DETACHED, before_views(value)
    converted = False
    while isinstance(value, View):
        owner = value.node.func if isinstance(value.node, cst.Call) else value.node
        by_name = isinstance(owner, cst.Attribute) and owner.attr.value in _NEW_VIEWS
        if by_name or isinstance(owner, cst.Subscript):
            return Making.VIEWED, before_views(value)
        converted = converted or value.alias in CONVERTING
        value = value.of
    return Making.CONVERTED if converted else Making.COMPUTED, value


_NEW_VIEWS = frozenset(_words("T expand mT permute reshape select squeeze t transpose unflatten unsqueeze view"))
"""Methods and attributes that give another tensor even if they change nothing."""


def _is_overwritten(fn: FunctionClass, origin: Parameter) -> bool:
    """Whether forward writes to an input: what is stored may be something else than the input."""
    return any(input_written(each) == origin for method in fn.earlier_methods for each in method.facts.of(Mutation))


def _inputs_of_intermediate(fn: FunctionClass, value: Value) -> frozenset[int]:
    """The inputs with gradients that an intermediate certainly depends on; none if it is not one."""
    if any(same_object(value, each) is not Tri.NO for each in fn.outputs_values()):
        return frozenset()
    return _inputs_reached(fn, value)


def _inputs_reached(fn: FunctionClass, value: Value) -> frozenset[int]:
    """The inputs with gradients that a new tensor certainly depends on."""
    if not isinstance(value, (Fresh, Single)) or kind_of(value) is Kind.INTEGRAL:
        return frozenset()
    method = next((each for each in fn.earlier_methods if value.node in each.parents), None)
    if method is None or not isinstance(value.node, cst.BaseExpression):
        return frozenset()
    bound = _bindings(method)
    reached = _reached([value.node], bound)
    wanted = (each for each in fn.inputs if each.gradient is Tri.YES and each.name in reached)
    return frozenset(each.index for each in wanted if _keeps_its_input(method, each.name, bound))


def _keeps_its_input(method: Method, name: str, bound: Bindings) -> bool:
    """Whether all that a method binds to the name of an input is computed from it."""
    values = bound.of(name)
    return len(method.binders.get(name, ())) == len(values) and _follow_from(values, name, bound)


def _bindings(method: Method) -> Bindings:
    """The expressions that each name of a method is bound to, without ``None``, which has no derivative to lose."""
    values = {
        name: [
            None if each.augmented else each.value_node or _gradients_unpacked(each)
            for each in assigned
            if each.value != NONE
        ]
        for name, assigned in method.assignments.items()
    }
    called = (each for each in method.facts.of(GenericCall) if isinstance(getattr(each.node, "func", None), cst.Name))
    return Bindings(values, frozenset(each.node for each in called if _is_smooth(each.callee or "")))


def _is_smooth(callee: str) -> bool:
    package, _, name = callee.rpartition(".")
    return package.partition(".")[0] == "torch" and name in _SMOOTH


def _gradients_unpacked(assigned: Assigned) -> cst.BaseExpression | None:
    """The call in ``(a, b) = torch.autograd.grad(...)``: each result depends on all of it."""
    value = assigned.statement.value if isinstance(assigned.statement, cst.Assign) else None
    return value if isinstance(value, cst.Call) and dotted(value.func) in _DIFFERENTIATING else None


def _reached(
    nodes: Iterable[cst.BaseExpression],
    bound: Bindings,
    operands: Callable[[cst.BaseExpression], list[cst.BaseExpression]] | None = None,
) -> set[str]:
    """The names and attributes that expressions certainly have a derivative with respect to, by their operands."""
    found: set[str] = set()
    todo = list(nodes)
    while todo:
        spend()
        node = todo.pop()
        name = dotted(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if name is not None:
            if name in found:
                continue
            found.add(name)
        if isinstance(node, cst.Name):
            values = bound.of(node.value)
            spend(len(values))
            if len(values) < 2 or all(each is not None and node.value in names_in(each) for each in values[1:]):
                todo.extend(each for each in values if each is not None)
        elif isinstance(node, cst.Call) and node in bound.functions:
            todo.extend(_given(node))
        else:
            todo.extend((operands or differentiated_in)(node))
    return found


def differentiated_in(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The operands that an operation is differentiable in."""
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right] if isinstance(node.operator, _OPERATORS) else []
    if isinstance(node, cst.UnaryOperation):
        return [node.expression] if isinstance(node.operator, cst.Minus) else []
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, cst.Subscript):
        return [node.value]
    if isinstance(node, cst.Attribute):
        return [node.value] if node.attr.value in _VIEWS else []
    if isinstance(node, (cst.List, cst.Tuple)):
        return [each.value for each in node.elements]
    if isinstance(node, cst.Call) and dotted(node.func) in _DIFFERENTIATING:
        return [each.value for each in node.args if each.keyword is None] if _records_gradients(node) else []
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return []
    if node.func.attr.value in _AT_INDICES or node.func.attr.value == "where":
        return _differentiated_at(node, node.func)
    if node.func.attr.value not in _SMOOTH:
        return []
    if node.func.attr.value in _LIKE_ANOTHER:
        return [node.func.value]
    return [node.func.value, *_given(node)]


def _given(call: cst.Call) -> list[cst.BaseExpression]:
    """The arguments that a call passes by position."""
    return [each.value for each in call.args if each.keyword is None and not each.star]


def _differentiated_at(node: cst.Call, func: cst.Attribute) -> list[cst.BaseExpression]:
    """The operands of a call that takes indices or a condition as well: ``torch.where(c, a, b)``, ``a.where(c, b)``."""
    given = _given(node)
    of_torch = is_name(func.value, "torch")
    operands = given if of_torch else [func.value, *given]
    positions = _AT_INDICES.get(func.attr.value) or ((1, 2) if of_torch else (0, 2))
    return [operands[at] for at in positions if at < len(operands)]


def _records_gradients(call: cst.Call) -> bool:
    """Whether ``torch.autograd.grad`` gives gradients that have a graph: ``create_graph=True``."""
    return is_name(keywords_of(call).get("create_graph"), "True")
