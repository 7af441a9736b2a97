"""The initial values of the parameters of a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.method import ParameterKind
from ctxlint.model.interpreter.values import CONTEXT, Context, Kind, Opaque, Parameter, Tri, Value, Variadic
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.interpreter.method import Method, Param


def bound_parameters(method: Method, role: str, tensor: Tri, flags: int | None = None) -> dict[str, Value]:
    """The value of each parameter by name: ctx, a receiver, the others in their ``role`` (see ``values.Parameter``).

    ``flags`` is the certain length of ``ctx.needs_input_grad``.
    """
    bindings: dict[str, Value] = {}
    index = 0
    for param in method.params:
        if param is method.receiver:
            bindings[param.name] = Opaque(param.node)
        elif param is method.ctx:
            bindings[param.name] = CONTEXT if flags is None else Context(flags)
        elif param.kind is ParameterKind.POSITIONAL:
            certain = tensor if param.required else Tri.UNKNOWN
            kind = Kind.FLOAT if role == "gradient" else Kind.UNKNOWN
            bindings[param.name] = Parameter(role, index, param.name, certain, kind)
            index += 1
        elif param.kind is ParameterKind.VARIADIC:
            bindings[param.name] = Variadic(role, param.name, index)
        else:
            bindings[param.name] = Opaque(param.node)
    return bindings


def bound_plain(params: Iterable[Param]) -> dict[str, Value]:
    """The parameters of a function that torch calls with the arguments of its caller, by their annotations."""
    tensors = {param: Tri.YES if param.annotation in types.TENSOR_ANNOTATIONS else Tri.UNKNOWN for param in params}
    return {
        param.name: Parameter("plain", at, param.name, tensor) for at, (param, tensor) in enumerate(tensors.items())
    }
