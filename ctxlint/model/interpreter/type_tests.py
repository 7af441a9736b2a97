"""``isinstance(x, list)``: what it shows about a value. No state, no events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.values import (
    FUNCTION_TYPE,
    Argument,
    Choice,
    Constant,
    Context,
    Fresh,
    InputsTuple,
    Mapping,
    SavedTensors,
    Scalar,
    Sequence,
    SomeTensor,
    TensorTuple,
    Tri,
    Variadic,
    View,
    is_container,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.values import Value

TENSOR = "torch.Tensor"
_PLAIN = frozenset(f"builtins.{name}" for name in ("list", "tuple", "set", "dict", "int", "float", "bool", "str"))
"""Types that have no common instances with each other and with tensors, except bool, which is an int."""


_CONTAINERS = frozenset(f"builtins.{name}" for name in ("list", "tuple", "set", "dict"))


_OF_CTX = frozenset(["torch.autograd.function.FunctionCtx", "torch.autograd.function.BackwardCFunction"])
"""Classes of every ctx."""


def type_test(
    test: cst.BaseExpression, canonical: Callable[[cst.BaseExpression], str | None]
) -> tuple[cst.BaseExpression, tuple[str, ...]] | None:
    """The subject of ``isinstance(x, C)``, and the dotted names of the classes; None for any other test."""
    if not isinstance(test, cst.Call):
        return None
    callee = canonical(test.func)
    if callee == "torch.is_tensor" and len(test.args) == 1:
        return test.args[0].value, (TENSOR,)
    if callee != "builtins.isinstance" or len(test.args) != 2:
        return None
    kinds = test.args[1].value
    written = [each.value for each in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
    return test.args[0].value, tuple(canonical(each) or "" for each in written)


def is_instance(value: Value, classes: Collection[str]) -> Tri:
    """Is the value an instance of one of these classes, given by their dotted names?"""
    if isinstance(value, Choice):
        return Tri.all(is_instance(option, classes) for option in value.alternatives)
    if isinstance(value, Context):
        return Tri.UNKNOWN if _OF_CTX.isdisjoint(classes) else Tri.YES
    own = type_of(value)
    if own is None:
        return Tri.NO if is_container(value) is Tri.NO and _CONTAINERS.issuperset(classes) else Tri.UNKNOWN
    if own in classes or (own == "builtins.bool" and "builtins.int" in classes):
        return Tri.YES
    if own == FUNCTION_TYPE:
        return Tri.UNKNOWN if any("Callable" in each or "Type" in each or not each for each in classes) else Tri.NO
    others = _PLAIN if own == TENSOR else _PLAIN | {TENSOR, "torch.nn.Parameter", "torch.nn.parameter.Parameter"}
    return Tri.NO if all(each in others for each in classes) else Tri.UNKNOWN


def only_instances(value: Value, classes: Collection[str], holds: bool) -> Value:
    """The alternatives of a value for which ``isinstance`` may have the outcome ``holds``; all, if there is none."""
    refused = Tri.NO if holds else Tri.YES
    left = tuple(option for option in value.options() if is_instance(option, classes) is not refused)
    if not left or len(left) == len(value.options()):
        return value
    return left[0] if len(left) == 1 else Choice(left)


def looks_excluded_as_tensor(name: str, guards: Iterable[Guard]) -> bool:
    """Whether the text of a guard on the path implies that ``name`` is not a tensor.

    Used only to suppress findings: neither ``isinstance`` nor ``Tensor`` is resolved.
    """
    return any(
        not guard.holds and guard.text.startswith((f"isinstance({name},", f"torch.is_tensor({name})"))
        for guard in guards
        if any("ensor" in word for word in guard.words)
    )


def type_of(value: Value) -> str | None:
    """The dotted name of a value's type, if it is certain."""
    if isinstance(value, Argument):
        return value.type_name
    if isinstance(value, Sequence):
        return f"builtins.{value.kind}" if value.kind in ("list", "tuple", "set") else None
    if isinstance(value, (Variadic, TensorTuple, SavedTensors, InputsTuple)):
        return "builtins.tuple"
    if isinstance(value, Mapping):
        return "builtins.dict"
    if isinstance(value, (Fresh, View, SomeTensor)):
        return TENSOR
    if isinstance(value, Constant):
        return f"builtins.{value.type_name}"
    if isinstance(value, Scalar) and value.sort in ("int", "bool", "float", "str"):
        return f"builtins.{value.sort}"
    return None
