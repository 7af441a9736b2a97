"""Whether backward reads the values of an incoming gradient, not only its shape, or where it is zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import compares_identity, dotted, only_target, words_of
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from ctxlint.model.interpreter.method import Method, Param

_METHODS = frozenset(
    str.split(
        """
        dim element_size get_device is_complex is_contiguous is_floating_point is_pinned ndimension nelement new_empty
        new_full new_ones new_tensor new_zeros numel size storage_offset stride
        """
    )
)

_RESIZING = frozenset(str.split("resize_ resize_as_"))
"""Methods that return the tensor itself, without a use of its values."""

_COPYING = frozenset(["clone", "contiguous"])
"""Methods whose result has the same values, and no use of them."""

_OVERWRITING = frozenset(str.split("copy_ fill_ normal_ uniform_ zero_"))
"""Methods that replace all values."""

_TYPE_TESTS = frozenset(["is_storage", "is_tensor"])
"""Functions of torch that only ask what an object is."""

_ABOUT_TYPES = frozenset(["isinstance", "len", "type"])

_AS = frozenset(str.split("expand_as reshape_as resize_as_ type_as view_as"))
"""Methods of a tensor that ask their argument only for its shape or dtype."""


def reads_values(method: Method, param: Param) -> bool:
    """Whether a body reads a parameter for more than its shape, its dtype, its zeros, and what replaces its values."""
    if param.name not in method.facts.names_read:
        return False
    return _one_reads(method, [node for node in method.named.get(param.name, ()) if node is not param.node.name])


def compared_with_zero(method: Method, param: Param) -> bool:
    """Whether a body compares a parameter with 0."""
    return any(_zero_test(method, use) is not None for use in method.named.get(param.name, ()))


def is_checked(method: Method, param: Param) -> bool:
    """Whether a body asserts something about the values of a parameter, or raises depending on them: ``assert g == 1``.

    That they are finite does not count.
    """
    tests = [test for test in method.raising_tests if _FINITE.isdisjoint(words_of(test))]
    uses = method.named.get(param.name, ()) if tests else ()
    return any(test in (use, *method.above(use)) and _reads(method, use) for use in uses for test in tests)


_FINITE = frozenset(["isnan", "isinf", "isfinite"])


def _zero_test(method: Method, use: cst.CSTNode) -> cst.CSTNode | None:
    """``g == 0`` or ``g.ne(0)``, for a use of ``g``: all that this tells about a gradient is where it is zero."""
    above = method.parents.get(use)
    if isinstance(above, cst.Comparison):
        [part, *others] = above.comparisons
        equality = isinstance(part.operator, (cst.Equal, cst.NotEqual)) and above.left is use
        return above if equality and not others and _is_zero(part.comparator) else None
    call, name = method.called_on(use)
    equality = call is not None and name in ("eq", "ne") and len(call.args) == 1
    return call if call is not None and equality and _is_zero(call.args[0].value) else None


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and node.evaluated_value == 0


def _one_reads(method: Method, uses: list[cst.Name]) -> bool:
    """Whether one of the uses of a name, in order, reads the values that it has at first."""
    gone = next((at for at, node in enumerate(uses) if _is_replaced(method, node)), len(uses))
    return any(_reads(method, node) for node in uses[: gone + 1] + _in_statement(method, uses, gone))


def _in_statement(method: Method, uses: list[cst.Name], gone: int) -> list[cst.Name]:
    """The later uses in the statement that replaces the values: it may read them before."""
    if gone >= len(uses):
        return []
    around = method.line_of_body(uses[gone])
    return [node for node in uses[gone + 1 :] if method.line_of_body(node) is around]


def _is_replaced(method: Method, use: cst.Name) -> bool:
    """Whether after this statement, which always runs, the name holds other values: ``g = …``, ``g.copy_(…)``."""
    if method.line_of_body(use) is None:
        return False
    above = method.parents[use]
    if isinstance(above, cst.AssignTarget):
        return True
    called, name = method.called_on(use)
    while called is not None and name in _RESIZING:
        called, name = method.called_on(called)
    return name in _OVERWRITING


def tells_no_values(node: cst.Attribute | cst.Call) -> bool:
    """Whether an attribute or a method of a tensor tells its shape, its dtype or its place: ``g.size(0)``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in operations.SCALAR_ATTRIBUTES
    return isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS


def _reads(method: Method, use: cst.CSTNode) -> bool:
    """Whether an expression that evaluates to the gradient is used for its values."""
    above = method.parents.get(use)
    if isinstance(above, (cst.AssignTarget, cst.Del, cst.Expr)) or _zero_test(method, use) is not None:
        return False
    if isinstance(above, cst.Attribute) and above.value is use:
        call, name = method.called_on(use)
        if call is None:
            return name in _METHODS or above.attr.value not in operations.SCALAR_ATTRIBUTES
        if name in _COPYING:
            return _copy_reads(method, call)
        return _reads(method, call) if name in _RESIZING else name not in _METHODS | _OVERWRITING
    if isinstance(above, cst.Comparison):
        return not compares_identity(above)
    return not isinstance(above, cst.Arg) or bool(above.star) or not asks_for_shape(method.parents[above], above)


def _copy_reads(method: Method, copy: cst.CSTNode) -> bool:
    """Whether a copy of the gradient is used for its values: that in a name, until others replace them."""
    above = method.parents.get(copy)
    target = only_target(above)
    statement = method.line_of_body(copy)
    if not isinstance(target, cst.Name) or statement is None:
        return _reads(method, copy)
    uses = list(method.named.get(target.value, ()))
    later = uses[uses.index(target) + 1 :]
    return _one_reads(method, [each for each in later if method.line_of_body(each) is not statement])


def asks_for_shape(call: cst.CSTNode, argument: cst.Arg) -> bool:
    """Whether a call does not use the values of its argument."""
    if not isinstance(call, cst.Call) or argument.keyword is not None:
        return False
    first = call.args[0] is argument
    if isinstance(call.func, cst.Attribute):
        name, of_torch = call.func.attr.value, dotted(call.func.value) == "torch"
        return (name in operations.TORCH_LIKE | _METHODS | _TYPE_TESTS and first) if of_torch else name in _AS
    return isinstance(call.func, cst.Name) and first and call.func.value in operations.TORCH_LIKE | _ABOUT_TYPES
