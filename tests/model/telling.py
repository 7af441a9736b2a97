"""Abstract values in few words, so that a test can say what it expects of one."""

from __future__ import annotations

from typing import Callable

from ctxlint.model.values import (
    Alias,
    Choice,
    Constant,
    Context,
    ContextAttribute,
    Fresh,
    Imported,
    InputsTuple,
    Item,
    Mapping,
    NeedsInputGrad,
    Opaque,
    Parameter,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    Single,
    SomeTensor,
    TensorTuple,
    Unbound,
    Value,
    Variadic,
    View,
)


def told(value: Value | None) -> str:
    """A value in words: ``x``, ``view(x)``, ``new``, ``saved[0]``, ``(x, None)``, ``new | None``, ``?``."""
    for kind, tell in _WORDS.items():
        if isinstance(value, kind):
            return tell(value)
    raise AssertionError(value)


def _sequence(value: Sequence) -> str:
    elements = [("*" if slot.starred else "") + told(slot.value) for slot in value.slots]
    inside = ", ".join(elements) + ("," if value.kind == "tuple" and len(elements) == 1 else "")
    return {"tuple": f"({inside})", "list": f"[{inside}]", "set": f"{{{inside}}}", "generator": f"<{inside}>"}[value.kind]


_VIEWS = {Alias.ALWAYS: "view", Alias.USUALLY: "reshaped", Alias.POSSIBLY: "converted"}

_WORDS: dict[type, Callable[..., str]] = {
    Choice: lambda value: " | ".join(told(option) for option in value.alternatives),
    Constant: lambda value: repr(value.value),
    Context: lambda value: "ctx",
    ContextAttribute: lambda value: f"ctx.{value.name}",
    Fresh: lambda value: "new",
    Imported: lambda value: value.name,
    InputsTuple: lambda value: "inputs",
    Item: lambda value: "?",
    Mapping: lambda value: "{...}",
    NeedsInputGrad: lambda value: "needs" if value.index is None else f"needs[{value.index}]",
    Opaque: lambda value: "?",
    Parameter: lambda value: value.name,
    SavedTensor: lambda value: f"saved[{value.index}]",
    SavedTensors: lambda value: "saved",
    Scalar: lambda value: value.sort,
    Sequence: _sequence,
    Single: lambda value: "one",
    SomeTensor: lambda value: "tensor",
    TensorTuple: lambda value: "tensors",
    Unbound: lambda value: "unbound",
    Variadic: lambda value: f"*{value.name}",
    View: lambda value: f"{_VIEWS[value.alias]}({told(value.of)})",
}
