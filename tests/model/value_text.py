"""Abstract values as short text, for expectations of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import (
    CONVERTING,
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

if TYPE_CHECKING:
    from collections.abc import Callable


def told(value: Value | None) -> str:
    """A value as text: ``x``, ``view(x)``, ``new``, ``saved[0]``, ``(x, None)``, ``new | None``, ``?``."""
    word = _WORDS.get(type(value))
    return word if word is not None else _TELLERS[type(value)](value)


def _sequence(value: Sequence) -> str:
    elements = [("*" if slot.starred else "") + told(slot.value) for slot in value.slots]
    inside = ", ".join(elements) + ("," if value.kind == "tuple" and len(elements) == 1 else "")
    return {"tuple": f"({inside})", "list": f"[{inside}]", "set": f"{{{inside}}}", "generator": f"<{inside}>"}[
        value.kind
    ]


_VIEWS = {
    Alias.ALWAYS: "view",
    Alias.USUALLY: "reshaped",
    Alias.IF_PERMUTED: "laid out",
    Alias.POSSIBLY: "converted",
    **{alias: alias.value for alias in CONVERTING},
}

_WORDS: dict[type, str] = {
    Context: "ctx",
    Fresh: "new",
    InputsTuple: "inputs",
    Item: "?",
    Mapping: "{...}",
    Opaque: "?",
    SavedTensors: "saved",
    Single: "one",
    SomeTensor: "tensor",
    TensorTuple: "tensors",
    Unbound: "unbound",
}

_TELLERS: dict[type, Callable[..., str]] = {
    Choice: lambda value: " | ".join(told(option) for option in value.alternatives),
    Constant: lambda value: repr(value.value),
    ContextAttribute: lambda value: f"ctx.{value.name}",
    Imported: lambda value: value.name,
    NeedsInputGrad: lambda value: "needs" if value.index is None else f"needs[{value.index}]",
    Parameter: lambda value: value.name,
    SavedTensor: lambda value: f"saved[{value.index}]",
    Scalar: lambda value: value.sort,
    Sequence: _sequence,
    Variadic: lambda value: f"*{value.name}",
    View: lambda value: f"{_VIEWS[value.alias]}({told(value.of)})",
}
