"""How the modules of compiled extensions are named."""

from __future__ import annotations

import re
from sys import stdlib_module_names

from ctxlint.patterns import pattern

_NAMES = frozenset({"_C", "_ext"})
_ENDINGS = ("_cpp", "_cuda", "_ext", "_gpu", "_hip", "_native")

EXTENSION_LOADERS = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline", "ext_loader.load_ext")
"""Ends of the names of functions that return the module of a compiled extension."""

OPERATORS_OF_TORCH = frozenset(
    ["aten", "c10d", "_c10d_functional", "c10d_functional", "higher_order", "inductor", "prim", "prims", "quantized"]
)
"""The namespaces under ``torch.ops`` that torch itself fills."""


def is_of_extension(callee: str) -> bool:
    """Whether a dotted name is that of a function in a compiled extension, by the names of its modules."""
    modules = callee.split(".")[:-1]
    return any(each in _NAMES or each.endswith(_ENDINGS) for each in modules)


def may_be_of_extension(callee: str) -> bool:
    """Whether a dotted name is that of a backward function in a top-level module: ``chamfer.backward``.

    Packages in Python keep theirs in submodules, and call what is private ``_backward``.
    """
    return is_in_module(callee) and _BACKWARD.search(callee.partition(".")[2]) is not None


def is_in_module(callee: str) -> bool:
    """Whether a dotted name is that of a public function in a top-level module that may be compiled."""
    module, _, function = callee.partition(".")
    is_python = module in _PYTHON or module in stdlib_module_names
    return not (is_python or "." in function or function.startswith("_") or not function)


_BACKWARD = pattern(r"backward|(^|_)bwd(_|$)", re.IGNORECASE)
_PYTHON = frozenset(str.split("builtins cupy einops flash_attn jax numpy opt_einsum scipy torch triton"))
