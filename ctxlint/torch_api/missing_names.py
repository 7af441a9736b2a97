"""Names that torch and NumPy do not have, and what to write in place of them."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api.operations import OPERATIONS

MODULES = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.autograd",
)
"""The modules whose names are known; what others have depends on how torch was built."""

_words = str.split

_EARLIER = frozenset(
    _words(
        """
        Any Base BinaryIO Callable ContextManager Device DeviceLikeType Dict F Iterator List Literal NamedTuple Number
        Optional Sequence Set Tensor Tuple TypeVar Union align_tensors backends boolean_dispatch csan data_parallel
        deprecated empty_meta fbgemm_is_cpu_supported gather handle_torch_function has_torch_function
        has_torch_function_unary has_torch_function_variadic is_deterministic itertools log_sigmoid
        mkldnn_convolution_backward_weights mkldnn_reshape operator opt_einsum overload parallel_apply pdb product
        py_float py_int quantize_linear register_after_fork replicate scatter set_deterministic set_vital sys sysconfig
        torch unique_dim utils vision warnings weak_script
        """
    )
)
"""Names that one of these modules had in an earlier release, or that earlier releases of torch bind by accident."""

_OF_EXTENSIONS = tuple(_words("dml gcu hpu ipex ipu mlu musa npu sdaa supa tpu txda vacc xla"))
"""How names begin that backends outside of torch add when they are imported."""


class RemovedName(NamedTuple):
    """A name that a release no longer has; ``instead`` is another one for its purpose, and how that differs.

    ``raises`` is what comes of its use.
    """

    release: tuple[int, int]
    instead: str
    differs: str = "takes other arguments"
    raises: str = "AttributeError"


_PAIRS = "takes other arguments, and complex numbers for pairs"
_NO_FACTORS = "takes other arguments, and returns only the solution"
_COMPLEX = "takes other arguments, and returns complex numbers"


REMOVED = {
    "torch.btrifact": RemovedName((1, 2), "torch.linalg.lu_factor"),
    "torch.btrisolve": RemovedName((1, 2), "torch.linalg.lu_solve"),
    "torch.btriunpack": RemovedName((1, 2), "torch.lu_unpack"),
    "torch.eig()": RemovedName((1, 13), "torch.linalg.eig", _COMPLEX, "RuntimeError"),
    "torch.fft()": RemovedName((1, 8), "torch.fft.fft", _PAIRS, "TypeError"),
    "torch.gels": RemovedName((1, 3), "torch.linalg.lstsq"),
    "torch.gesv": RemovedName((1, 2), "torch.linalg.solve", _NO_FACTORS),
    "torch.ifft": RemovedName((1, 8), "torch.fft.ifft", _PAIRS),
    "torch.irfft": RemovedName((1, 8), "torch.fft.irfft", "takes other arguments, and complex numbers"),
    "torch.lstsq()": RemovedName((1, 13), "torch.linalg.lstsq", raises="RuntimeError"),
    "torch.matrix_rank()": RemovedName((1, 13), "torch.linalg.matrix_rank", raises="RuntimeError"),
    "torch.potrf": RemovedName((1, 2), "torch.linalg.cholesky"),
    "torch.potri": RemovedName((1, 2), "torch.cholesky_inverse"),
    "torch.potrs": RemovedName((1, 2), "torch.cholesky_solve"),
    "torch.pstrf": RemovedName((1, 2), ""),
    "torch.rfft": RemovedName((1, 8), "torch.fft.rfft", _COMPLEX),
    "torch.solve()": RemovedName((1, 12), "torch.linalg.solve", _NO_FACTORS, "RuntimeError"),
    "torch.symeig()": RemovedName((2, 0), "torch.linalg.eigh", raises="RuntimeError"),
    "torch.trtrs": RemovedName((1, 2), "torch.linalg.solve_triangular", _NO_FACTORS),
}
"""By the full name; with parentheses if torch still has the name, of a module or of a function that only raises."""

NUMPY_ALIASES = {
    "numpy.complex": "complex",
    "numpy.float": "float",
    "numpy.int": "int",
    "numpy.object": "object",
    "numpy.str": "str",
}
"""The builtins that NumPy had under names of its own before release 1.24."""


def is_missing(module: str, name: str) -> bool:
    """Whether a module of torch or NumPy certainly has no such name, unless something sets it.

    ``fft()`` is the name of what is called.
    """
    if name.endswith("()"):
        return f"{module}.{name}" in REMOVED
    if module == "numpy":
        return f"numpy.{name}" in NUMPY_ALIASES
    if module not in MODULES or name.startswith(("_", *_OF_EXTENSIONS)) or name in _EARLIER:
        return False
    return name not in _names(module)


def meant_by(module: str, name: str) -> str:
    """The dotted name to write in place of a missing one, or ``.name`` for a method of tensors; empty if unknown."""
    full = f"{module}.{name}"
    if full in NUMPY_ALIASES:
        return NUMPY_ALIASES[full]
    if full in REMOVED:
        return REMOVED[full].instead
    is_method = name in OPERATIONS and "M" in OPERATIONS[name].where
    elsewhere = [each for each in MODULES if name in _names(each) and name not in _NOT_CALLED]
    if elsewhere and (elsewhere[0] == "torch" or not is_method):
        return f"{elsewhere[0]}.{name}"
    if elsewhere or is_method:
        return f".{name}" if not elsewhere else ""
    digits = [each for each in name if each.isdigit()]
    names = sorted(
        each
        for each in _names(module) - _NOT_CALLED
        if each.endswith("_") is name.endswith("_") and [one for one in each if one.isdigit()] == digits
    )
    alike = [each for each in names if each.lower() == name.lower() and each[0].isupper() is name[0].isupper()]
    if not alike and len(name) >= _SHORTEST:
        alike = get_close_matches(name, names, 2, _CUTOFF)
    return f"{module}.{alike[0]}" if len(alike) == 1 else ""


_CUTOFF = 0.85
"""How similar a misspelt name is to the right one."""
_SHORTEST = 5
"""The length of names below which others are similar by chance."""
_NOT_CALLED = frozenset(
    _words(
        """
        accelerator amp anomaly_mode ao attention autograd backends builtins classes common common_types
        compiler cpp cpu ctypes cuda dataclasses distributed distributions export fft forward_ad func function
        functional functools futures fx glob grad grad_mode graph hub importlib init inspect intrinsic jit
        library linalg masked math modules monitor mps mtia multiprocessing nested nn np onnx ops optim os
        overrides package parallel parameter platform profiler profiler_legacy profiler_util qat quantizable
        quantization quantized quasirandom random return_types serialization signal sparse special storage sys
        testing textwrap threading torch torch_version types utils variable version warnings windows xpu
        """
    )
)
"""The names of modules."""


@cache
def _names(module: str) -> frozenset[str]:
    from ctxlint.torch_api.torch_names import NAMES

    return frozenset(NAMES[module].split())
