"""What the ``apply`` of a Function returns, by what its ``forward`` returns.

Source: ``process_outputs`` in ``torch/csrc/autograd/python_function.cpp``. Each tensor that ``forward`` returns, alone
or in a tuple, becomes a new one on the same memory (a dirty input stays the same object). Anything else is returned as
it is, also a list of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import (
    Constant,
    Fresh,
    Never,
    Opaque,
    Scalar,
    Sequence,
    Single,
    Slot,
    SomeTensor,
    Tri,
    Value,
    is_tensor,
    join_all,
    kind_of,
)

if TYPE_CHECKING:
    import libcst as cst


def applied_result(returned: Value, call: cst.BaseExpression) -> Value:
    """The result of ``apply`` if ``forward`` returns ``returned``."""
    return join_all(_outputs(option, call) for option in returned.options())


def _outputs(returned: Value, call: cst.BaseExpression) -> Value:
    if not isinstance(returned, Sequence) or returned.kind != "tuple":
        return _output(returned, call)
    slots = (Slot(_output(slot.value, call), None, slot.starred) for slot in returned.slots)
    return Sequence("tuple", tuple(slots), call)


def _output(value: Value, call: cst.BaseExpression) -> Value:
    if isinstance(value, (Fresh, Single, Scalar, Constant, Never)):
        return value
    return SomeTensor(kind_of(value)) if is_tensor(value) is Tri.YES else Opaque(call)
