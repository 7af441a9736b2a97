"""Products of an incoming gradient that lacks a dimension, with a tensor that has it: torch aligns the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, condition
from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.like_inputs import dimensions_of, input_like, whose_shape
from ctxlint.model.analyses.squeezed import keeps_dimensions
from ctxlint.model.analyses.unreduced_paths import ABOUT_TENSORS, leaves_unreduced
from ctxlint.model.interpreter.events import DataReplaced, Reshaped
from ctxlint.model.interpreter.values import Fresh, Tri, View
from ctxlint.model.syntax import (
    children,
    dotted,
    is_name,
    keywords_of,
    last_name,
    only_target,
    signed_integer,
    single_index,
    words_of,
)
from ctxlint.records import record
from ctxlint.torch_api.operations import CONTIGUOUS_FACTORIES, CONTIGUOUS_FACTORY_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class UnalignedProduct:
    """A product ``node`` of the incoming ``gradient`` with ``other``, which has the shape of an ``input``.

    The output has one dimension, if ``missing`` is None, or lacks that one of the input; ``always``: on every path.
    ``dimensions`` is how many the input has, 0 if that is unknown. ``shown``: forward shows that callers get there.
    """

    node: cst.CSTNode
    gradient: str
    other: cst.BaseExpression
    input: str
    missing: int | None
    always: bool
    dimensions: int
    shown: bool


@record
class _Output:
    """An output that has one dimension, the first one of an input ``of``, or lacks dimension ``missing`` of it."""

    of: str
    missing: int | None


def unaligned_products(fn: FunctionClass) -> Iterator[UnalignedProduct]:
    """Such products, if the input has several dimensions, and backward does not ask for those of the gradient."""
    forward, backward = fn.forward, fn.judgeable_backward
    if forward is None or backward is None or forward.inherited or not (forward.arguments_known and fn.outputs):
        return
    if fn.context_calls("mark_non_differentiable"):
        return
    found = [each for position in range(len(backward.positional)) for each in _found(fn, forward, backward, position)]
    methods = (forward, backward, *fn.context_methods) if found else ()
    if any(each.facts.of(kind) for each in methods for kind in (Reshaped, DataReplaced)):
        return
    yield from found


def _found(fn: FunctionClass, forward: Method, backward: Method, position: int) -> Iterator[UnalignedProduct]:
    outputs = _outputs(fn, forward, position)
    lacking = {each for each in outputs if each is not None}
    gradient = backward.positional[position].name
    if len(lacking) != 1 or not _keeps_its_dimensions(backward, gradient):
        return
    output, always = lacking.pop(), None not in outputs
    products = [each for each in _products(backward, gradient) if input_like(fn, backward, each[1]) == output.of]
    shown = Tri.YES if always else leaves_unreduced(fn, forward) if products else Tri.NO
    if shown is Tri.NO or any(_is_about_sizes(fn, forward, output.of, each) for each in forward.raising_tests):
        return
    dimensions = dimensions_of(fn, output.of) if products else None
    if (
        dimensions is None
        or max(dimensions.least, (output.missing or 0) + 1) < 2
        or _holds_columns(fn, forward, output)
    ):
        return
    for node, other in products:
        yield UnalignedProduct(
            node, gradient, other, output.of, output.missing, always, dimensions.exactly, shown is Tri.YES
        )


def _is_about_sizes(fn: FunctionClass, forward: Method, name: str, test: cst.CSTNode) -> bool:
    """Whether a refusal is about two sizes of an input, which have to be equal, or one that has to be 1."""
    sides = [test.left, *(each.comparator for each in test.comparisons)] if isinstance(test, cst.Comparison) else []
    sizes = sum(_size_of(fn, forward, each) == name for each in sides)
    fixed = sizes > 1 or (sizes == 1 and any(signed_integer(each) == 1 for each in sides))
    return fixed or any(_is_about_sizes(fn, forward, name, each) for each in children(test))


def _size_of(fn: FunctionClass, forward: Method, node: cst.BaseExpression) -> str:
    """The input of which an expression is a size, whichever: ``x.shape[1]``, ``n`` after ``n, c = x.shape``."""
    bound = forward.only_assignment(node.value) if isinstance(node, cst.Name) else None
    if bound is not None and isinstance(bound.statement, cst.Assign):
        node = bound.statement.value
    tensor = whose_shape(node.value if isinstance(node, cst.Subscript) else node)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "size":
        tensor = node.func.value
    return input_like(fn, forward, tensor) if tensor is not None else ""


def _holds_columns(fn: FunctionClass, forward: Method, output: _Output) -> bool:
    """Whether forward uses an input as a square matrix, or adds a row of it, or a sum over the rows, to new memory."""
    squares = any(each.attr.value in _OF_SQUARES for each in forward.nodes_of(cst.Attribute))
    rows = (before_copies(each.value) for each in forward.nodes_of(cst.AugAssign)) if output.missing is None else ()
    return squares or any(_is_of_columns(fn, forward, output.of, each) for each in rows)


_OF_SQUARES = frozenset(
    str.split("cholesky det inverse linalg logdet matrix_exp matrix_power slogdet trace trapz tril triu")
)


def _is_of_columns(fn: FunctionClass, forward: Method, name: str, node: cst.BaseExpression) -> bool:
    """Whether it is ``x[i]``, ``x[i, :]``, ``x.sum(0)`` of a tensor like an input."""
    if isinstance(node, cst.Subscript):
        first = node.slice[0].slice
        return not isinstance(first, cst.Slice) and input_like(fn, forward, node.value) == name
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    given = [node.func.value, *(each.value for each in node.args)]
    zero = any(signed_integer(each) in (0, -2) for each in given)
    return zero and any(input_like(fn, forward, each) == name for each in given)


def _outputs(fn: FunctionClass, forward: Method, position: int) -> set[_Output | None]:
    """What an output is on each path; None for anything else."""
    if not all(each.exact and position < len(each.slots) for each in fn.outputs):
        return set()
    options = (option for each in fn.outputs for option in each.slots[position].value.options())
    return {_output(fn, forward, each) for each in options}


def _output(fn: FunctionClass, forward: Method, value: Value) -> _Output | None:
    while isinstance(value, View) and isinstance(value.node, cst.Call) and before_copies(value.node) is not value.node:
        value = value.of
    node = value.node if isinstance(value, Fresh) and value.part is None else None
    if not isinstance(node, cst.Call) or node not in forward.parents or not isinstance(node.func, cst.Attribute):
        return None
    name = node.func.attr.value
    if name in CONTIGUOUS_FACTORIES or name in CONTIGUOUS_FACTORY_METHODS:
        of = _first_size_of(fn, forward, _only_size(node))
        return _Output(of, None) if of else None
    return _reduced(fn, forward, node) if name in _REDUCTIONS else None


_REDUCTIONS = frozenset(str.split("amax amin logsumexp mean prod sum"))


def _only_size(call: cst.Call) -> cst.BaseExpression | None:
    """The size of a new tensor with one dimension."""
    sizes = [each.value for each in call.args if each.keyword is None and not each.star]
    filled = last_name(call.func) in ("full", "new_full")
    if len(sizes) != 1 + filled or any(each.star or is_name(each.keyword, "size") for each in call.args):
        return None
    size = sizes[0]
    if isinstance(size, (cst.Tuple, cst.List)):
        return size.elements[0].value if len(size.elements) == 1 and isinstance(size.elements[0], cst.Element) else None
    return size


def _first_size_of(fn: FunctionClass, forward: Method, size: cst.BaseExpression | None) -> str:
    """The input of which a size is the first one: ``x.shape[0]``, ``len(x)``, ``n`` after ``n, c = x.shape``."""
    tensor: cst.BaseExpression | None = None
    if isinstance(size, cst.Name):
        binders = forward.binders.get(size.value, ())
        assignment = forward.parents[binders[0]] if len(binders) == 1 else None
        target = only_target(assignment) if isinstance(assignment, cst.Assign) else None
        if isinstance(assignment, cst.Assign) and isinstance(target, (cst.Tuple, cst.List)):
            first = target.elements[0] if target.elements else None
            named = isinstance(first, cst.Element) and is_name(first.value, size.value)
            tensor = whose_shape(assignment.value) if named else None
        elif (
            isinstance(assignment, cst.Assign)
            and isinstance(target, cst.Name)
            and not isinstance(assignment.value, cst.Name)
        ):
            return _first_size_of(fn, forward, assignment.value)
    elif isinstance(size, cst.Subscript):
        tensor = whose_shape(size.value) if signed_integer(single_index(size)) == 0 else None
    elif isinstance(size, cst.Call) and len(size.args) == 1:
        argument = size.args[0].value
        if is_name(size.func, "len"):
            tensor = argument
        elif isinstance(size.func, cst.Attribute) and size.func.attr.value == "size" and signed_integer(argument) == 0:
            tensor = size.func.value
    return input_like(fn, forward, tensor) if tensor is not None else ""


def _reduced(fn: FunctionClass, forward: Method, call: cst.Call) -> _Output | None:
    """What a reduction leaves of a tensor like an input, if that certainly is not its last dimensions."""
    if not isinstance(call.func, cst.Attribute):
        return None
    of_torch = dotted(call.func.value) == "torch"
    operand = call.args[0].value if of_torch and call.args else call.func.value
    options = call.with_changes(args=call.args[of_torch:])
    named = keywords_of(options)
    first = options.args[0] if options.args and options.args[0].keyword is None else None
    dimension = signed_integer(named.get("dim") or named.get("axis") or (first.value if first is not None else None))
    if dimension is None or not (dimension > 0 or dimension == -1) or keeps_dimensions(options) is not False:
        return None
    of = input_like(fn, forward, operand)
    return _Output(of, dimension) if of else None


def _keeps_its_dimensions(backward: Method, name: str) -> bool:
    """Whether the name of an incoming gradient is that of one with its dimensions, for which backward does not ask."""
    for use in backward.named.get(name, ()):
        around = backward.parents[use]
        if isinstance(around, cst.Attribute) and around.attr.value in _ASKING:
            return False
    bound = backward.assignments.get(name, ())
    known = len(bound) == len(backward.binders.get(name, ()))
    return known and all(
        each.value_node is not None and not each.augmented and is_name(before_copies(each.value_node), name)
        for each in bound
    )


_ASKING = frozenset(("dim", "ndim", "ndimension", "shape", "size"))


def _products(backward: Method, gradient: str) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """The products of a gradient with something that backward computes whenever it needs a gradient, with that."""
    for kind in (cst.BinaryOperation, cst.AugAssign, cst.Call):
        for node in backward.nodes_of(kind):
            sides = _factors(node)
            for one, other in (sides, sides[::-1]) if sides else ():
                if is_name(before_copies(one), gradient) and _is_reached(backward, node):
                    yield node, other


def _factors(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The two factors of a product of single elements; None for anything else."""
    if isinstance(node, cst.BinaryOperation):
        return (node.left, node.right) if isinstance(node.operator, cst.Multiply) else None
    if isinstance(node, cst.AugAssign):
        return (node.target, node.value) if isinstance(node.operator, cst.MultiplyAssign) else None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if node.func.attr.value not in ("mul", "mul_", "expand_as") or any(each.keyword or each.star for each in node.args):
        return None
    given = [each.value for each in node.args]
    given = given if dotted(node.func.value) == "torch" else [node.func.value, *given]
    return (given[0], given[1]) if len(given) == 2 else None


def _is_reached(backward: Method, node: cst.CSTNode) -> bool:
    """Whether backward evaluates a node whenever the gradient is needed for which it does."""
    around = {*backward.above(node)}
    asserts = [each for each in backward.nodes_of(cst.Assert) if ABOUT_TENSORS.isdisjoint(words_of(each))]
    jumps = [*backward.nodes_of(cst.Return), *backward.nodes_of(cst.Raise), *asserts]
    leaving = [each for each in jumps if backward.is_written_before(each, node) and each not in around]
    tried = any(isinstance(each, (cst.Try, cst.TryStar)) for each in around)
    return (
        not tried
        and all(map(_is_about_need, _conditions(backward, node)))
        and all(
            any(
                isinstance(each, cst.If) and _is_about_need((each, each.body))
                for each, _child in _conditions(backward, jump)
            )
            for jump in leaving
        )
    )


def _conditions(method: Method, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """What is around a node that may not evaluate it, with the child that contains it."""
    at = node
    for each in method.above(node):
        if each is method.node:
            return
        if condition(each, at) is not Runs.ALWAYS:
            yield each, at
        at = each


def _is_about_need(conditional: tuple[cst.CSTNode, cst.CSTNode]) -> bool:
    """Whether it is the body of ``if ctx.needs_input_grad[0]``."""
    around, child = conditional
    return isinstance(around, cst.If) and child is around.body and "needs_input_grad" in words_of(around.test)
