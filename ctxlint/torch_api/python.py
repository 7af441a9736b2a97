"""Facts about Python's own functions and string methods."""

from __future__ import annotations

BUILTIN_SCALARS = {
    **dict.fromkeys(str.split("int len round hash id ord"), "int"),
    **dict.fromkeys(str.split("bool isinstance issubclass hasattr callable any all"), "bool"),
    "float": "float",
    "complex": "number",
    "str": "str",
    "repr": "str",
    "format": "str",
    "type": "object",
    "slice": "object",
    "range": "range",
}

SCALAR_FUNCTIONS = frozenset(
    f"random.{name}"
    for name in str.split("random randint randrange uniform gauss normalvariate triangular getrandbits")
)
"""Functions of other modules whose result is a number, in addition to those of ``math``."""

NUMBER_BUILTINS = frozenset(str.split("abs int float round complex"))
"""Builtins that raise TypeError for a tuple as their first argument, but accept a tensor."""

CONTEXT_SAFE_BUILTINS = frozenset(
    str.split("isinstance hasattr getattr id type print repr str callable issubclass hash bool")
)
"""Builtins that keep no reference to a ctx argument and set nothing on it."""

UNFATHOMABLE_BUILTINS = frozenset(str.split("exec eval locals globals"))
"""Builtins that read or bind names that are not written in the code."""

NEVER_RETURNING = frozenset({"sys.exit", "os._exit", "os.abort", "builtins.exit", "builtins.quit"})

STRING_METHODS = frozenset(str.split("format join lower upper strip replace"))

TENSOR_ATTRIBUTES_TO_SET = frozenset({"data", "grad", "imag", "names", "real", "requires_grad"})
"""What an assignment to an attribute of a tensor changes in the tensor itself."""
