"""Intermediates that forward saves and backward multiplies with: a second derivative treats them as constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.mutations import input_written
from ctxlint.model.analyses.saved_state import single_save
from ctxlint.model.analyses.second_order import differentiable_backward
from ctxlint.model.interpreter.events import Assigned, Mutation
from ctxlint.model.interpreter.values import (
    ContextAttribute,
    Fresh,
    Kind,
    Parameter,
    SavedTensor,
    Single,
    Tri,
    View,
    before_views,
    detaches,
    is_detached,
    is_input,
    kind_of,
    same_object,
)
from ctxlint.model.syntax import dotted, is_name, keywords_of, names_in
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
            dot eigh eigvalsh einsum elu erf erfc exp expm1 flip gelu hypot inner inv kron lerp lgamma linear log log1p
            log2 log_softmax logaddexp logcumsumexp logdet logsumexp matmul maximum mean minimum mm mul multiply mv neg
            norm outer pow prod qr reciprocal relu rsqrt sigmoid silu sin sinh softmax softplus solve solve_triangular
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
}
"""Those that get indices as well, with the positions of the tensors that they are differentiable in."""

_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power, cst.MatrixMultiply)
_VIEWS = frozenset(_words("T mT H mH real"))
_DIFFERENTIATING = frozenset({"torch.autograd.grad", "autograd.grad"})


class Intermediate(NamedTuple):
    """Where backward uses a saved intermediate of forward in a gradient that it returns, by its name.

    ``detached``: it is an input, detached. ``inputs`` are the indices of those that it certainly depends on, ``slots``
    those of the gradients that it is in on each path.
    """

    node: cst.CSTNode
    name: str
    detached: bool
    inputs: frozenset[int]
    slots: frozenset[int]


def intermediates_in_gradients(fn: FunctionClass) -> Iterator[Intermediate]:
    """The intermediates of forward that backward certainly uses in a gradient that it returns.

    An intermediate depends on an input that gets a gradient, and is neither an input nor an output itself.
    """
    backward = fn.backward
    if backward is None or fn.escapes or not fn.signature_judgeable:
        return
    stored = {value: kind for value, origin in _stored(fn) for kind in _kinds_of_intermediate(fn, origin)}
    bound = _bindings(backward)
    places: dict[str, tuple[cst.CSTNode, tuple[bool, frozenset[int]]]] = {
        each.name: (each.node, stored[each.value])
        for each in backward.facts.of(Assigned)
        if each.value in stored and _is_computed_on(backward, each, bound)
    }
    for attribute, nodes in backward.context_attributes.items():
        if backward.ctx is not None and ContextAttribute(attribute) in stored:
            kind = stored[ContextAttribute(attribute)]
            places.setdefault(f"{backward.ctx.name}.{attribute}", (nodes[0], kind))
    if not places:
        return
    slots = [slot.node for returned in fn.gradients if returned.known for slot in returned.slots]
    slots += [each.node.value for each in fn.gradients if not each.known and isinstance(each.node, cst.Return)]
    reached = _reached([each for each in slots if each is not None], bound)
    for name, (node, (detached, inputs)) in places.items():
        if name in reached:
            yield Intermediate(node, name, detached, inputs, _slots_with(fn, name, bound))


def _slots_with(fn: FunctionClass, name: str, bound: dict[str, list[cst.BaseExpression | None]]) -> frozenset[int]:
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


def _is_computed_on(method: Method, assigned: Assigned, bound: dict[str, list[cst.BaseExpression | None]]) -> bool:
    """Whether a name has one value, or each later one certainly has a derivative with respect to the one before."""
    name = assigned.name
    first, *later = method.assignments.get(name, ()) or (None,)
    if first is not assigned or len(method.binders.get(name, ())) != len(later) + 1:
        return False
    others = {each: values for each, values in bound.items() if each != name}
    return all(value is not None and name in _reached([value], others) for value in bound[name][1:])


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


def _is_cut(name: str, bound: dict[str, list[cst.BaseExpression | None]]) -> bool:
    """Whether a parameter is bound again, each time to something without its graph."""
    values = bound.get(name, [])
    others = {each: nodes for each, nodes in bound.items() if each != name}
    return bool(values) and all(each is not None and name not in _reached([each], others) for each in values)


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


def _kinds_of_intermediate(fn: FunctionClass, value: Value) -> Iterator[tuple[bool, frozenset[int]]]:
    """Whether what forward stored is a detached input, and the inputs it depends on; nothing if not an intermediate."""
    origin = value.of if isinstance(value, View) and detaches(value) else None
    if is_input(origin) and origin.index < len(fn.inputs):
        entry = fn.inputs[origin.index]
        if entry.gradient is not Tri.NO and entry.is_tensor is not Tri.NO and not _is_overwritten(fn, origin):
            yield True, frozenset([origin.index])
    elif inputs := _inputs_of_intermediate(fn, value):
        yield False, inputs


def _is_overwritten(fn: FunctionClass, origin: Parameter) -> bool:
    """Whether forward writes to an input: what is stored may be something else than the input."""
    return any(input_written(each) == origin for method in fn.earlier_methods for each in method.facts.of(Mutation))


def _inputs_of_intermediate(fn: FunctionClass, value: Value) -> frozenset[int]:
    """The inputs with gradients that an intermediate certainly depends on; none if it is not one."""
    if not isinstance(value, (Fresh, Single)) or kind_of(value) is Kind.INTEGRAL:
        return frozenset()
    if any(same_object(value, each) is not Tri.NO for each in fn.outputs_values()):
        return frozenset()
    method = next((each for each in fn.earlier_methods if value.node in each.parents), None)
    if method is None or not isinstance(value.node, cst.BaseExpression):
        return frozenset()
    reached = _reached([value.node], _bindings(method))
    wanted = (each for each in fn.inputs if each.gradient is Tri.YES and each.name not in method.binders)
    return frozenset(each.index for each in wanted if each.name in reached)


def _bindings(method: Method) -> dict[str, list[cst.BaseExpression | None]]:
    """The expressions that each name of a method is bound to."""
    return {
        name: [None if each.augmented else each.value_node or _gradients_unpacked(each) for each in assigned]
        for name, assigned in method.assignments.items()
    }


def _gradients_unpacked(assigned: Assigned) -> cst.BaseExpression | None:
    """The call in ``(a, b) = torch.autograd.grad(...)``: each result depends on all of it."""
    value = assigned.statement.value if isinstance(assigned.statement, cst.Assign) else None
    return value if isinstance(value, cst.Call) and dotted(value.func) in _DIFFERENTIATING else None


def _reached(
    nodes: Iterable[cst.BaseExpression],
    bound: dict[str, list[cst.BaseExpression | None]],
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
            values = bound.get(node.value, [])
            spend(len(values))
            if len(values) < 2 or all(each is not None and node.value in names_in(each) for each in values[1:]):
                todo.extend(each for each in values if each is not None)
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
    return [node.func.value, *(each.value for each in node.args if each.keyword is None and not each.star)]


def _differentiated_at(node: cst.Call, func: cst.Attribute) -> list[cst.BaseExpression]:
    """The operands of a call that takes indices or a condition as well: ``torch.where(c, a, b)``, ``a.where(c, b)``."""
    given = [each.value for each in node.args if each.keyword is None and not each.star]
    of_torch = is_name(func.value, "torch")
    operands = given if of_torch else [func.value, *given]
    positions = _AT_INDICES.get(func.attr.value) or ((1, 2) if of_torch else (0, 2))
    return [operands[at] for at in positions if at < len(operands)]


def _records_gradients(call: cst.Call) -> bool:
    """Whether ``torch.autograd.grad`` gives gradients that have a graph: ``create_graph=True``."""
    return is_name(keywords_of(call).get("create_graph"), "True")
