"""Writes to what may be a copy of a tensor: they modify the tensor itself if nothing has to be copied.

The contiguous view of a permuted tensor copies it unless it is permuted already, and ``float()`` unless it is float32;
so do conversions to other dtypes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.mutations import through_data, usually_no_copy
from ctxlint.model.analyses.output_dtypes import asserts_a_dtype, has_another_dtype
from ctxlint.model.interpreter.type_tests import looks_excluded_as_tensor
from ctxlint.model.interpreter.values import (
    CONVERTING,
    Choice,
    Parameter,
    View,
    converted_storage,
    is_gradient,
    is_input,
    permuted_storage,
)
from ctxlint.model.syntax import last_name

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Guard, Mutation
    from ctxlint.model.interpreter.values import Value


def input_written_if_permuted(fn: FunctionClass, mutation: Mutation) -> Parameter | None:
    """The input that is modified if it has the layout of the output, which permutes the result back; None if none is.

    So it is if the input is the output of another call.
    """
    found = permuted_storage(mutation.target)
    if found is None or not is_input(found[0]):
        return None
    back = any(_permutes_back(value, found[1]) for value in fn.outputs_values())
    return found[0] if back and not looks_excluded_as_tensor(found[0].name, mutation.guards) else None


def input_written_if_converted(fn: FunctionClass, mutation: Mutation) -> Parameter | None:
    """The input that is modified if it has a dtype, so that the conversion returns it as it is; None if none is."""
    found = converted_storage(mutation.target)
    if found is None or not is_input(found[0]) or through_data(mutation.target) or _may_be_for_copies(fn, mutation):
        return None
    return None if looks_excluded_as_tensor(found[0].name, mutation.guards) else found[0]


def _may_be_for_copies(fn: FunctionClass, mutation: Mutation) -> bool:
    """Whether a test of the dtype, or of the identity, may let only what the conversion has copied be modified."""
    return _is_converted(mutation.target) and (
        any(
            guard.mentions("dtype") or guard.mentions("data_ptr") or _asks_for_identity(guard)
            for guard in mutation.guards
        )
        or any(map(asserts_a_dtype, fn.methods.values()))
    )


def _asks_for_identity(guard: Guard) -> bool:
    """Whether a condition compares with ``is``, other than with None."""
    compared = guard.test.comparisons if isinstance(guard.test, cst.Comparison) and guard.asks is None else ()
    return any(isinstance(each.operator, (cst.Is, cst.IsNot)) for each in compared)


def gradient_written_if_permuted(fn: FunctionClass, mutation: Mutation) -> str | None:
    """Like ``input_written_if_permuted``, for an incoming gradient and the returned ones."""
    found = permuted_storage(mutation.target)
    if found is None or not is_gradient(found[0]):
        return None
    values = (slot.value for returned in fn.gradients for slot in returned.slots)
    return found[0].name if any(_permutes_back(value, found[1]) for value in values) else None


def gradient_written_if_converted(fn: FunctionClass, mutation: Mutation) -> str | None:
    """Like ``input_written_if_converted``, for an incoming gradient, which has the dtype of its output."""
    found = converted_storage(mutation.target)
    tensor = found[0] if found is not None and not _may_be_for_copies(fn, mutation) else None
    if found is None or not is_gradient(tensor):
        return None
    return None if has_another_dtype(fn, tensor.index, found[1].alias.value) else tensor.name


def condition_of(mutation: Mutation, others: str = "the others are", several: bool = False) -> str:
    """When a tensor is modified itself, in words: `` if it is float32, which `float` does not copy``.

    ``others`` have the layout: "the output is".
    """
    it, them = ("they are", "them") if several else ("it is", "it")
    (by, dtype), copying = _converter(mutation), usually_no_copy(mutation)
    if not by:
        return f" if {it} {_how_permuted(mutation)}, as {others}"
    if not _is_converted(mutation.target):
        copying = f" or `{copying}`" if copying not in ("", by) else ""
        return f" unless `{by}`{copying} copies {them}"
    if copying:
        return f" if {it} {dtype} and `{copying}` does not copy {them}"
    return f" if {it} {dtype}, which `{by}` does not copy"


def _is_converted(value: Value | None) -> bool:
    """Whether a value is converted to one dtype on every path."""
    while isinstance(value, View):
        if value.alias in CONVERTING:
            return True
        value = value.of
    return isinstance(value, Choice) and all(map(_is_converted, value.alternatives))


def _how_permuted(mutation: Mutation) -> str:
    """The word for the layout: transposed, or permuted."""
    found = permuted_storage(mutation.target)
    there = _permutation(found[1].of.layout) if found is not None and isinstance(found[1].of, View) else None
    return "permuted" if there is not None and there[0] == "permute" else "transposed"


def _converter(mutation: Mutation) -> tuple[str, str]:
    """The method, or function of the project, that converts what is then modified, and its dtype; or nothing."""
    found = converted_storage(mutation.target)
    called = getattr(found[1].node, "func", None) if found is not None else None
    return (last_name(called), found[1].alias.value) if found is not None and called is not None else ("", "")


def _permutes_back(value: Value, contiguous: View) -> bool:
    """Whether a value is the contiguous view of a permuted tensor, permuted back."""
    there = contiguous.of
    return isinstance(there, View) and any(
        isinstance(option, View)
        and _are_alike(option.of, contiguous)
        and _are_inverse(_permutation(there.layout), _permutation(option.layout))
        for option in value.options()
    )


def _are_alike(first: Value, second: Value) -> bool:
    """Whether two chains of views differ at most in their nodes: a result has the node of the call."""
    while isinstance(first, View) and isinstance(second, View):
        if (first.alias, first.layout) != (second.alias, second.layout):
            return False
        first, second = first.of, second.of
    return first == second


def _permutation(layout: str) -> tuple[str, tuple[str, ...]] | None:
    """The method and its arguments if a change of layout only permutes dimensions."""
    name, _, arguments = layout.rstrip(")").partition("(")
    names = {"swapaxes": "transpose", "swapdims": "transpose", "mT": "t", "T": "t"}
    if name not in ("transpose", "permute", "t", *names):
        return None
    return names.get(name, name), tuple(each.strip(" ()") for each in arguments.split(",") if each.strip(" ()"))


def _are_inverse(first: tuple[str, tuple[str, ...]] | None, second: tuple[str, tuple[str, ...]] | None) -> bool:
    if first is None or second is None or first[0] != second[0]:
        return False
    if first[0] != "permute":
        return set(first[1]) == set(second[1])
    order = [str(at) for at in range(len(first[1]))]
    return sorted(first[1]) == sorted(second[1]) == order and [first[1][int(at)] for at in second[1]] == order
