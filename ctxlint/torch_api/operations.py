"""One row for each function and method of torch: what it writes, what its result aliases, what it returns.

The rows of ``schemas`` are generated; those here are for operations without a schema. The sets below, which the model
uses, are derived from both. CONTRIBUTING describes how to add an operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api.schemas import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

_ROWS_BY_HAND = """\
# Methods that torch writes in Python or C++ without a schema
apply_ M self - tensor -
map_ M self - tensor -
map2_ M self - tensor -
rename_ M self - tensor -
share_memory_ M self - tensor -
type_as M - self tensor -
type M - self varies -
xpu M - self tensor same
npu M - self tensor same
cuda M - self tensor same
cpu M - self tensor same
to M - self tensor -
float M - self tensor floating
double M - self tensor floating
half M - self tensor floating
bfloat16 M - self tensor floating
long M - self tensor integral
int M - self tensor integral
short M - self tensor integral
byte M - self tensor integral
bool M - self tensor integral
char M - self tensor integral
# With a probability, it takes integers and gives integers; alone, it refuses them
bernoulli MT - - tensor -
# Views whose samples are complex or that are not tried out
detach MT - self* tensor same
view_as_complex T - self* tensor floating
view_as_real T - self* tensor floating
imag T - self* tensor floating
unfold M - self* tensor same
# conj and its kin give back a real tensor itself
conj MT - self tensor same
resolve_conj MT - self tensor same
resolve_neg MT - self tensor same
"""


class Operation(NamedTuple):
    """The behaviour of one torch name, in all of its namespaces.

    ``where`` has a letter for each namespace (``schemas`` has the list). ``writes`` are the parameters that every
    overload writes, unconditionally. ``aliases`` is the parameter that the result shares memory with, followed by ``*``
    if it always does, ``~`` if it does except for unusual memory layouts, by nothing if it may. ``result`` is
    ``tensor``, ``tensors``, a number of tensors, ``int``, ``bool``, ``number`` …; ``dtype`` is ``floating``
    (``float-only``: integers are refused), ``integral``, ``same`` as the only operand, or ``promoted``.
    """

    name: str
    where: str
    writes: tuple[str, ...]
    aliases: str
    result: str
    dtype: str


def _read(rows: str) -> dict[str, Operation]:
    found = {}
    for line in rows.splitlines():
        if not line.startswith("#"):
            name, where, writes, aliases, result, dtype = line.split(" ")
            written = () if writes == "-" else tuple(writes.split(","))
            found[name] = Operation(name, where, written, "" if aliases == "-" else aliases, result, dtype)
    return found


OPERATIONS = {**_read(ROWS), **_read(_ROWS_BY_HAND)}
"""All operations, by name; those of ``torch.linalg`` and other submodules with its name as prefix."""


_METHODS = {name: each for name, each in OPERATIONS.items() if "M" in each.where}
_OF_MODULES = [(name.rpartition(".")[2], each) for name, each in OPERATIONS.items() if each.where not in ("M", "I")]


def _methods(holds: Callable[[Operation], bool]) -> frozenset[str]:
    """The methods of Tensor with some property."""
    return frozenset(name for name, each in _METHODS.items() if holds(each))


def _functions(holds: Callable[[Operation], bool]) -> frozenset[str]:
    """The functions of torch, torch.nn.functional, torch.linalg and torch.special with some property."""
    return frozenset(name for name, each in _OF_MODULES if holds(each))


def _gives_one(each: Operation) -> bool:
    """Whether it returns one new tensor."""
    return each.result == "tensor" and not each.writes and not each.aliases


_words = str.split


# Writes

SELF_RETURNING_METHODS = frozenset(
    _words(
        """
        requires_grad_ detach_ share_memory_ retain_grad rename_ as_strided_ set_ squeeze_ swapaxes_ swapdims_ t_
        transpose_ unsqueeze_
        """
    )
)
"""Tensor methods that return the tensor itself, and change only flags and shape."""

RESHAPING_METHODS = frozenset(_words("squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_"))
"""Those that change the shape of the tensor itself; ``squeeze_`` leaves many as they are."""

INPLACE_METHODS = _methods(lambda each: bool(each.writes) and each.result == "tensor") - SELF_RETURNING_METHODS
"""Tensor methods that modify their tensor in place."""

INPLACE_OPERATORS = {
    "__setitem__": "__setitem__",
    **dict(zip(_words("__iadd__ __isub__ __imul__ __itruediv__ __idiv__ __ifloordiv__"), _words("+= -= *= /= /= //="))),
    **dict(zip(_words("__imod__ __ipow__ __iand__ __ior__ __ixor__"), _words("%= **= &= |= ^="))),
    **dict(zip(_words("__ilshift__ __irshift__"), _words("<<= >>="))),
}
"""The methods of a tensor behind operators that modify it in place, with these."""

INPLACE_FLAGS = {
    **dict.fromkeys(("relu", "relu6", "selu", "silu", "mish", "hardsigmoid", "hardswish"), 1),
    **dict.fromkeys(("leaky_relu", "elu", "celu"), 2),
    **dict.fromkeys(("hardtanh", "threshold"), 3),
    "rrelu": 4,
    **dict.fromkeys(("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish"), 0),
    **dict.fromkeys(("LeakyReLU", "ELU", "CELU"), 1),
    **dict.fromkeys(("Hardtanh", "Threshold", "RReLU"), 2),
}
"""The position of ``inplace`` among the arguments of functions and layers of ``torch.nn`` that it makes write."""

NEUTRAL_OPERANDS = {
    **dict.fromkeys(("add_", "sub_", "subtract_", "+=", "-="), 0),
    **dict.fromkeys(("mul_", "multiply_", "div_", "divide_", "true_divide_", "pow_", "*=", "/=", "**="), 1),
}
"""The operands with which operations in place leave a tensor as it is."""

INTEGRAL_ARGUMENTS = {
    **dict.fromkeys(("bincount", "embedding", "embedding_bag", "one_hot"), 0),
    **dict.fromkeys(("nll_loss", "take", "take_along_dim"), 1),
    **dict.fromkeys(("gather", "index_add", "index_copy", "index_fill", "index_reduce", "index_select"), 2),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), 2),
}
"""Functions of torch and the number of their argument that must be a tensor of integers."""

INTEGRAL_WRITES = frozenset(
    _words(
        """
        bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ gcd_ lcm_
        &= |= ^= <<= >>=
        """
    )
)
"""In-place operations that raise for a floating-point tensor."""

REFUSED_FOR_EXPANDED = frozenset(
    _words(
        """
        += -= *= /= //= %= **= abs_ add_ addcdiv_ addcmul_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ copy_ cos_ div_
        divide_ exp_ floor_ fmod_ index_add_ lerp_ log_ mul_ multiply_ nan_to_num_ neg_ negative_ pow_ reciprocal_
        relu_ remainder_ round_ rsqrt_ scatter_ scatter_add_ sigmoid_ sign_ sin_ sqrt_ square_ sub_ subtract_ tanh_
        true_divide_ trunc_
        """
    )
)
"""In-place operations that raise for an expanded tensor, of which several elements are one; ``zero_`` does not."""

INPLACE_FUNCTIONS = (_functions(lambda each: bool(each.writes)) | INPLACE_METHODS) - SELF_RETURNING_METHODS
"""Functions of torch and torch.nn.functional that write to their first argument."""

_COLLECTIVES_THAT_WRITE = {
    "all_reduce": "tensor",
    "broadcast": "tensor",
    "reduce": "tensor",
    "recv": "tensor",
    "irecv": "tensor",
    "scatter": "tensor",
    "all_gather_into_tensor": "output_tensor",
    "_all_gather_base": "output_tensor",
    "all_to_all_single": "output",
    "reduce_scatter": "output",
    "reduce_scatter_tensor": "output",
    "_reduce_scatter_base": "output",
}
"""Collectives of ``torch.distributed`` by the parameter that they write, their first.

For ``reduce`` and ``broadcast`` this holds on some ranks (see ``ROOTS``): code cannot rely on the rank of its process.
"""


class Root(NamedTuple):
    """The second parameter of a collective: a rank, and whether the collective writes there, or only elsewhere."""

    name: str
    writes: bool


ROOTS = {"broadcast": Root("src", writes=False), "reduce": Root("dst", writes=True)}
"""The collectives that write to the tensor of some ranks only. ``scatter`` writes on all of them."""

_COLLECTIVES_THAT_READ = {
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "_all_gather_base": "input_tensor",
    "all_to_all_single": "input",
    "reduce_scatter_tensor": "input",
    "_reduce_scatter_base": "input",
}
"""Collectives of ``torch.distributed`` by the parameter that has to be contiguous with NCCL, their second."""

SENDING_FUNCTIONS = frozenset(
    f"{module}.{name}"
    for module in ("torch.distributed", "torch.distributed.distributed_c10d")
    for name in ("send", "isend")
)
"""Functions that raise unless their first argument, ``tensor``, is contiguous, whatever the backend."""

CONTIGUOUS_OPERANDS = {
    f"{module}.{name}": parameter
    for module in ("torch.distributed", "torch.distributed.distributed_c10d")
    for name, parameter in _COLLECTIVES_THAT_READ.items()
}
"""The same, by full name."""

OVERWRITING = frozenset(
    {"copy_", "fill_", "zero_", "out=", "[...] =", "recv", "irecv", "scatter"}
    | {name for name, written in _COLLECTIVES_THAT_WRITE.items() if written.startswith("output")}
)
"""The writes whose result does not depend on what was there."""

IDEMPOTENT = frozenset(
    str.split("abs_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ floor_ nan_to_num_ relu_ round_ sign_ trunc_ tril_ triu_")
)
"""The in-place methods that change nothing when they are applied again with the same arguments."""

WRITING_FUNCTIONS = {
    **{
        f"{module}.{name}": parameter
        for module in ("torch.distributed", "torch.distributed.distributed_c10d", "deepspeed.comm")
        for name, parameter in _COLLECTIVES_THAT_WRITE.items()
    },
    **{f"torch.nn.{name}": each.writes[0] for name, each in OPERATIONS.items() if each.where == "I"},
    "deepspeed.comm.inference_all_reduce": "tensor",
}
"""Functions that certainly write to their first argument, by full name, with the name of that parameter."""

COMMUNICATING_FUNCTIONS = frozenset(WRITING_FUNCTIONS) | SENDING_FUNCTIONS | CONTIGUOUS_OPERANDS.keys()
"""Functions that write to an argument, or need a contiguous one."""

SHARING_FUNCTIONS = frozenset({"numba.cuda.as_cuda_array", "numba.cuda.api.as_cuda_array"})
"""Functions of other libraries whose result shares memory with their first argument."""

FOREACH = "torch._foreach_"
"""Functions of lists of tensors; those whose names end in ``_`` write to each tensor of the first list."""

IN_PLACE_COLLECTIVES = frozenset(_COLLECTIVES_THAT_WRITE)
"""The last names of collectives that write to their first argument."""

# Aliasing of results

VIEW_METHODS = _methods(lambda each: each.aliases.endswith("*") and each.result == "tensor")
"""Tensor methods whose result certainly shares memory with their tensor."""

USUAL_VIEW_METHODS = _methods(lambda each: each.aliases.endswith("~") and each.result == "tensor")
"""Tensor methods whose result shares memory with their tensor unless that has an unusual layout."""

LAYOUT_CHANGING_VIEWS = frozenset(
    _words(
        """
        H T adjoint broadcast_to diagonal expand expand_as mH mT moveaxis movedim permute swapaxes swapdims t transpose
        unfold
        """
    )
)
"""Methods, functions and attributes whose result is usually not contiguous: ``contiguous`` and ``reshape`` copy it."""

EXPANSIONS = frozenset(_words("broadcast_to expand expand_as"))
"""Methods and functions whose result has several elements at one place in memory."""

GRADIENT_SWITCHES = frozenset(_words("enable_grad requires_grad_ set_grad_enabled"))
"""What makes new tensors require a gradient, whatever those that they are computed from need."""

FLOAT_CONVERSIONS = frozenset(_words("float double half bfloat16"))
"""Conversions whose result is floating."""

INTEGRAL_CONVERSIONS = frozenset(_words("long int short byte bool char"))

CONVERSIONS = frozenset(_words("to type type_as cuda cpu xpu npu conj resolve_conj resolve_neg"))
"""Tensor methods that return the tensor itself if no conversion is needed."""

SAME_ELEMENTS = frozenset(_words("contiguous detach flatten ravel reshape to type_as view")) | FLOAT_CONVERSIONS
"""Methods whose result has all elements of a tensor in the same order, whatever its shape or dtype."""

SELECTING_METHODS = frozenset(_words("index_select masked_select gather take take_along_dim clone"))
"""Methods that select elements of a tensor into a copy."""

TORCH_VIEWS = _functions(lambda each: each.aliases.endswith("*") and each.result == "tensor")
TORCH_USUAL_VIEWS = _functions(lambda each: each.aliases.endswith("~") and each.result == "tensor")

# Number of results

TUPLE_METHODS = _methods(lambda each: each.result == "tensors")
"""Tensor methods that return a tuple of tensors, whose length the call alone does not determine."""

TUPLES_OF_VIEWS = frozenset(
    name
    for name in TUPLE_METHODS
    if OPERATIONS[name].aliases.endswith("*") or name in ("unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes")
)
"""Those whose results share the memory of their tensor; the functions of the same names as well."""

PAIR_METHODS = frozenset(
    name for name, each in OPERATIONS.items() if each.result == "2" and each.dtype == "same" and "M" in each.where
)
"""Methods and functions that return values and their indices."""

PAIR_ALONG_DIMENSION = frozenset(_words("max min median nanmedian"))
"""Those that do so if a dimension is given."""

SEVERAL_RESULTS = {
    name.rpartition(".")[2]: int(each.result)
    for name, each in OPERATIONS.items()
    if each.result.isdigit() and each.dtype == "float-only" and "F" not in each.where
    if name not in ("linalg.eig", "linalg.lstsq", "linalg.lu")  # others of torch have these names
}
"""Methods and functions that return so many new tensors, not values with their indices: ``torch.linalg.eigh``."""

TENSOR_METHODS = (
    _methods(_gives_one) - frozenset(_words("index put fill resize resize_as hash_tensor int_repr"))
) | frozenset(
    _words(
        """
        bucketize celu coalesce cross_entropy elu gelu get_rng_state hardtanh leaky_relu new new_tensor normalize
        one_hot ones_like randint randperm rsub searchsorted selu silu softplus where zeros_like
        """
    )
)
"""Tensor methods that return exactly one new tensor; and functions that are looked up here as well."""

COMPUTING = frozenset(
    each for each in TENSOR_METHODS | {"pad"} if not each.startswith("new") and not each.endswith("_like")
) - frozenset(_words("clone get_rng_state randint randperm"))
"""Operations that compute a new tensor from their operand: neither a copy of it nor made without it."""

TORCH_SINGLE = (
    TENSOR_METHODS
    | _functions(_gives_one)
    | frozenset(
        _words(
            """
            affine_grid arange as_tensor bartlett_window empty empty_strided eye fold from_numpy full grid_sample
            hann_window interpolate logsigmoid ones rand randn softmin softsign tensor unfold zeros
            """
        )
    )
)
"""Functions of torch, torch.nn.functional and torch.linalg that return exactly one tensor."""

TWO_OPERANDS = frozenset(
    _words("add sub subtract mul multiply div true_divide matmul mm bmm mv dot outer maximum minimum fmod remainder")
)
"""Methods and functions with two operands, neither of which can be a tuple."""

JOINING = frozenset(_words("cat concat concatenate stack hstack vstack dstack column_stack row_stack"))
"""Torch functions that join a sequence of tensors."""

TORCH_LIKE = frozenset(_words("zeros_like ones_like empty_like full_like rand_like randn_like"))
"""Functions of torch that ask their first argument only for its shape, dtype and device."""

ALLOCATIONS = frozenset(_words("empty empty_like empty_strided new_empty new_empty_strided"))
"""Functions and methods that return memory without writing it."""

LAYOUT_KEEPING_FACTORIES = frozenset(_words("empty_like full_like ones_like zeros_like"))
"""Functions of torch whose result has the strides of their argument, if that is dense."""

CONTIGUOUS_FACTORIES = frozenset(_words("empty full ones zeros"))
"""Functions of torch whose result is contiguous."""

FACTORIES = CONTIGUOUS_FACTORIES | frozenset(_words("arange eye linspace rand randint randn randperm tensor"))
"""Functions of torch that create a tensor from nothing but numbers."""

CONTIGUOUS_FACTORY_METHODS = frozenset(_words("new_empty new_full new_ones new_zeros"))
"""Methods of tensors whose result is contiguous."""

BUFFERS = ALLOCATIONS | frozenset(_words("new_zeros zeros zeros_like"))
"""Functions and methods that return memory to be written by others, or added to."""

PRODUCTS = frozenset(["bmm", "dot", "matmul", "mm", "mul", "multiply", "mv"])
LINEAR = frozenset(
    _words(
        "bfloat16 clone contiguous cpu cuda double expand expand_as flatten float half mean movedim narrow neg permute "
        "repeat reshape reshape_as squeeze sum swapaxes t to transpose type type_as unsqueeze view view_as"
    )
)
"""Functions and methods of tensors whose result is linear in the first operand."""

LAYOUT_QUERIES = frozenset(["is_contiguous", "stride"])
"""Methods that tell the layout of a tensor."""

TORCH_NAMESPACES = ("torch.", "torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.fft.", "torch.Tensor.")

# Kinds of results

FLOAT_METHODS = frozenset(
    name.rpartition(".")[2]
    for name, each in OPERATIONS.items()
    if each.dtype in ("floating", "float-only") and _gives_one(each)
) - frozenset(["to"]) | frozenset(
    _words(
        """
        cross_entropy digamma div erf erfc erfinv exp2 expm1 log1p log_softmax logit logsumexp normalize silu sinc
        softmax
        """
    )
)
"""Single-result methods and functions whose result is a floating tensor for any input."""

INTEGRAL_METHODS = frozenset(
    name.rpartition(".")[2] for name, each in OPERATIONS.items() if each.dtype == "integral" and _gives_one(each)
) | frozenset(_words("bincount get_rng_state randint randperm"))
"""Single-result methods and functions whose result is an integer, bool or state tensor."""

KIND_KEEPING = frozenset(
    name.rpartition(".")[2] for name, each in OPERATIONS.items() if each.dtype == "same" and _gives_one(each)
) | frozenset(
    _words(
        """
        sum prod cumsum cumprod clone round masked_fill masked_select masked_scatter gather scatter scatter_add
        scatter_reduce index_select index_add index_copy index_fill index_put take repeat_interleave new new_zeros
        new_ones new_empty new_full new_empty_strided new_tensor zeros_like ones_like empty_like full_like randint_like
        to_sparse to_dense coalesce pad diff unfold
        """
    )
)
"""Methods and functions that return integers for an integer tensor, whatever the other arguments are."""

KIND_OF_ALL = frozenset(_words("clamp clip clamp_min clamp_max maximum minimum floor_divide remainder fmod"))
"""Methods and functions that return integers if all arguments are integers."""

FLOAT_BY_DEFAULT = frozenset(_words("zeros ones empty linspace"))
"""Torch functions that return floats by default."""

WITHOUT_EFFECT = (
    TENSOR_METHODS | VIEW_METHODS | USUAL_VIEW_METHODS | CONVERSIONS | FLOAT_CONVERSIONS | INTEGRAL_CONVERSIONS
) - frozenset(
    _words(
        """
        bernoulli cpu expand expand_as get_rng_state multinomial new nonzero randint randperm reshape reshape_as view
        view_as
        """
    )
)
"""Methods that only give a result, without those that may be called to check a size, to wait, or for random numbers."""

SCALAR_METHODS = {
    **{name: OPERATIONS[name].result for name in _methods(lambda each: each.result in ("int", "bool", "number"))},
    **dict.fromkeys(_words("data_ptr ndimension nelement"), "int"),
    **dict.fromkeys(_words("is_shared startswith endswith"), "bool"),
    "bit_length": "number",
    **dict.fromkeys(_words("lower upper strip"), "str"),
    "numpy": "array",
}
"""Methods whose result is certainly a plain number, flag or string, by its sort."""

SIZE_METHODS = frozenset(_words("dim nelement numel size"))
"""Methods that ask for nothing but the size of a tensor."""

ARRAY_CREATORS = frozenset(f"numpy.{name}" for name in _words("arange array asarray empty full linspace ones zeros"))
"""Functions of numpy that create an array of whatever they get."""

ARRAY_FUNCTIONS = frozenset(
    f"numpy.{name}"
    for name in _words(
        """
        abs add clip cos divide exp log matmul maximum minimum multiply power reshape round sign sin sqrt square
        subtract tan tanh transpose
        """
    )
)
"""Functions of numpy that give an array for an array."""

SCALAR_ATTRIBUTES = {
    "shape": "shape",
    "dtype": "object",
    "device": "object",
    "layout": "object",
    "ndim": "int",
    "is_cuda": "bool",
    "is_sparse": "bool",
    "is_leaf": "bool",
    "is_quantized": "bool",
    "requires_grad": "bool",
    "itemsize": "int",
    "nbytes": "int",
    "__name__": "str",
    "__class__": "object",
}
"""Attributes of a tensor that are certainly not tensors."""

VIEW_ATTRIBUTES = frozenset(_words("data T mT H mH real imag"))
"""Attributes that are tensors sharing its memory."""

TORCH_SCALARS = {
    "torch.is_grad_enabled": "bool",
    "torch.is_inference_mode_enabled": "bool",
    "torch.is_tensor": "bool",
    "torch.is_autocast_enabled": "bool",
    "torch.is_autocast_cache_enabled": "bool",
    "torch.get_autocast_gpu_dtype": "object",
    "torch.get_autocast_dtype": "object",
    "torch.get_default_dtype": "object",
    "torch.device": "object",
    "torch.Size": "shape",
    "torch.finfo": "object",
    "torch.iinfo": "object",
    "torch.numel": "int",
    "torch.cuda.is_available": "bool",
    "torch.cuda.current_device": "int",
    "torch.distributed.get_rank": "int",
    "torch.distributed.get_world_size": "int",
    "torch.distributed.is_initialized": "bool",
    "torch.distributed.is_available": "bool",
    "torch.jit.is_scripting": "bool",
    "torch.compiler.is_compiling": "bool",
}

# Evidence for tensors

TENSOR_ONLY_METHODS = frozenset(
    _words(
        """
        data_ptr is_contiguous contiguous new_zeros new_ones new_empty new_full new_tensor view_as reshape_as unsqueeze
        permute masked_fill masked_select index_select gather expand_as expand type_as numel element_size detach
        requires_grad_ mm bmm addmm matmul softmax log_softmax sigmoid tanh exp clamp narrow unbind chunk long int bool
        short byte char
        """
    )
) | (INPLACE_METHODS - frozenset(["apply_", "map_", "resize_"]))
"""Methods whose call is evidence that a name is a tensor. Names shared with numpy and process groups are excluded."""

MOST_ARGUMENTS = {
    **dict.fromkeys(_words("data_ptr numel element_size detach sigmoid tanh exp long int bool short byte char"), 0),
    **dict.fromkeys(_words("mm bmm matmul view_as unsqueeze expand_as type_as"), 1),
}
"""The maximum number of arguments of such a tensor method; with more, it belongs to a namespace or a semiring."""


def shows_tensor(method: str, arguments: int) -> bool:
    """Whether a call of ``method`` with a number of arguments is evidence that its receiver is a tensor.

    That of an array of numpy is ``view(dtype, type)``.
    """
    if method == "view" and arguments > 2:
        return True
    return method in TENSOR_ONLY_METHODS and arguments <= MOST_ARGUMENTS.get(method, arguments)


TENSOR_ONLY_ATTRIBUTES = frozenset(_words("is_cuda requires_grad is_leaf is_sparse"))

TENSOR_LIKE_NAMES = (
    TENSOR_METHODS
    | VIEW_METHODS
    | USUAL_VIEW_METHODS
    | CONVERSIONS
    | INTEGRAL_CONVERSIONS
    | TUPLE_METHODS
    | frozenset(_words("shape dtype device ndim T mT data grad dim item tolist numpy size stride"))
) - frozenset(_words("type all any index_put"))
"""Methods and attributes that suggest a tensor, or an array; other objects have some of them too."""
