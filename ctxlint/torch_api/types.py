"""Types that determine whether a parameter is a tensor."""

from __future__ import annotations

_OLD_TENSOR_TYPES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")

DISTRIBUTED_TENSORS = frozenset(
    f"torch.distributed.{module}.DTensor" for module in ("tensor", "_tensor", "tensor._api", "_tensor.api")
)
"""Subclasses of Tensor: an argument of another type is usually a plain tensor."""

TENSOR_ANNOTATIONS = DISTRIBUTED_TENSORS | frozenset(
    {
        "torch.Tensor",
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
        "torch.autograd.Variable",
        *(f"torch.{device}{kind}Tensor" for device in ("", "cuda.") for kind in _OLD_TENSOR_TYPES),
    }
)

INTEGRAL_ANNOTATIONS = frozenset(
    f"torch.{device}{kind}Tensor"
    for device in ("", "cuda.")
    for kind in ("Bool", "Byte", "Char", "Int", "Long", "Short")
)
"""Tensors of integers or bools."""

_SHAPED = {
    "Bool": "torch.BoolTensor",
    **{f"{sign}Int{bits}": "torch.IntTensor" for sign in ("", "U") for bits in ("", "8", "16", "32", "64")},
    "Integer": "torch.IntTensor",
    **{
        kind: "torch.Tensor"
        for base in ("Float", "Complex")
        for kind in (base, *(f"{base}{bits}" for bits in ("16", "32", "64", "128")))
    },
    **dict.fromkeys(("BFloat16", "Inexact", "Num", "Real", "Shaped"), "torch.Tensor"),
}


def shaped_tensor(head: str, of: str) -> str | None:
    """The type of torch in an annotation with a shape, ``Float[Tensor, "n 3"]`` of jaxtyping; None for another."""
    if head == "torchtyping.TensorType":
        return "torch.Tensor"
    package, _, kind = head.rpartition(".")
    return _SHAPED.get(kind) if package == "jaxtyping" and of in TENSOR_ANNOTATIONS else None


NON_TENSOR_ANNOTATIONS = frozenset(
    {
        "builtins.int",
        "builtins.bool",
        "builtins.str",
        "builtins.bytes",
        "torch.dtype",
        "torch.device",
        "torch.Size",
        "torch.Generator",
        "torch.nn.Module",
        "torch.distributed.ProcessGroup",
        "torch.distributed.group",
        "torch.cuda.Stream",
        "typing.Callable",
        "collections.abc.Callable",
    }
)

CONTAINER_ANNOTATIONS = frozenset(
    {
        "typing.List",
        "typing.Tuple",
        "typing.Dict",
        "typing.Sequence",
        "typing.Iterable",
        "typing.Mapping",
        "typing.Set",
        "builtins.list",
        "builtins.tuple",
        "builtins.dict",
        "builtins.set",
        "collections.abc.Sequence",
        "collections.abc.Iterable",
        "collections.abc.Mapping",
    }
)
