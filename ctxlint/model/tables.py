"""Closed lists: what the names of torch mean to autograd.

A name that is not here means nothing in particular. Lists are preferred to patterns (a trailing underscore, a prefix),
because users' own methods are spelled the same way.
"""

from __future__ import annotations

TORCH_FUNCTION_BASES = frozenset(
    {
        "torch.autograd.Function",
        "torch.autograd.function.Function",
        "torch.autograd.function.InplaceFunction",
        "torch.autograd.function._SingleLevelFunction",
        "torch.autograd.function.NestedIOFunction",
    }
)

HARMLESS_BASES = frozenset(
    {
        "builtins.object",
        "typing.Generic",
        "typing.Protocol",
        "typing_extensions.Generic",
        "typing_extensions.Protocol",
        "abc.ABC",
    }
)

CONTEXT_METHODS = frozenset(
    {
        "save_for_backward",
        "save_for_forward",
        "mark_dirty",
        "mark_non_differentiable",
        "mark_shared_storage",
        "set_materialize_grads",
    }
)

CONTEXT_ONLY = CONTEXT_METHODS | {"needs_input_grad", "saved_tensors", "saved_variables", "saved_for_forward"}
"""What only a ctx has: by it a parameter is known for one."""

CONTEXT_NAMES = frozenset(
    {
        "needs_input_grad",
        "saved_tensors",
        "saved_variables",
        "saved_for_forward",
        "materialize_grads",
        "_materialize_non_diff_grads",
        "dirty_tensors",
        "to_save",
        "non_differentiable",
        "next_functions",
        "metadata",
        "name",
        "requires_grad",
        "register_hook",
        "register_prehook",
        "_register_hook_dict",
        "_sequence_nr",
        "_set_sequence_nr",
        "_raw_saved_tensors",
        "_input_metadata",
        "_is_pure_view",
        "maybe_clear_saved_tensors",
        "_get_compiled_autograd_symints",
        "_is_compiled_autograd_tracing",
        "_autograd_function_id",
        "_get_compiled_autograd_symint",
        "_compiled_autograd_key",
        "_compiled_autograd_backward_state",
        "_forward_cls",
        "apply",
        "apply_boxed",
        "apply_jvp",
        "_register_hook",
        "_get_user_fn",
        "generate_vmap_rule",
        "boxed_grads_call",
        "_fwd_used_autocast",
        "_dtype",
    }
)
"""What a ctx has without anybody setting it (``_dtype`` and ``_fwd_used_autocast`` come from ``custom_fwd``)."""

FUNCTION_CTX_ATTRIBUTES = CONTEXT_NAMES | CONTEXT_METHODS

SIGNATURE_KEEPING_DECORATORS = frozenset(
    {
        "builtins.staticmethod",
        "builtins.classmethod",
        "torch.autograd.function.once_differentiable",
        "torch.autograd.once_differentiable",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "torch.cuda.amp.custom_fwd",
        "torch.cuda.amp.custom_bwd",
        "torch.amp.autocast_mode.custom_fwd",
        "torch.amp.autocast_mode.custom_bwd",
        "torch.cuda.amp.autocast_mode.custom_fwd",
        "torch.cuda.amp.autocast_mode.custom_bwd",
        "torch.no_grad",
        "torch.enable_grad",
        "torch.inference_mode",
        "torch.set_grad_enabled",
        "torch.autograd.no_grad",
        "torch.cuda.amp.autocast",
        "torch.amp.autocast",
        "torch.autocast",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.compiler.disable",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.disable",
        "torch._dynamo.allow_in_graph",
        "torch._disable_dynamo",
        "torch.compile",
        "torch.profiler.record_function",
        "torch.autograd.profiler.record_function",
        "abc.abstractmethod",
        "typing.override",
        "typing.no_type_check",
        "typing_extensions.override",
        "typing_extensions.deprecated",
        "warnings.deprecated",
        "functools.lru_cache",
        "functools.cache",
    }
)

DESCRIPTOR_KEEPING_DECORATORS = frozenset(
    {
        "builtins.staticmethod",
        "builtins.classmethod",
        "typing.final",
        "typing.override",
        "typing.no_type_check",
        "typing_extensions.final",
        "typing_extensions.override",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.jit.export",
    }
)
"""Decorators that mark what they are put on and give it back, a staticmethod object too."""

CLASS_DECORATORS = frozenset(
    {
        "torch._dynamo.allow_in_graph",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.disable",
        "torch.compiler.disable",
        "typing.final",
        "typing_extensions.final",
        "typing_extensions.deprecated",
        "warnings.deprecated",
    }
)
"""Class decorators that leave the calling convention alone."""

_WORDS = str.split

INPLACE_METHODS = frozenset(
    _WORDS(
        """
        abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ arccos_ arccosh_ arcsin_ arcsinh_
        arctan2_ arctan_ arctanh_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ bernoulli_ bitwise_and_ bitwise_left_shift_
        bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ cauchy_ ceil_ clamp_ clamp_max_ clamp_min_ clip_
        conj_physical_ copy_ copysign_ cos_ cosh_ cumprod_ cumsum_ deg2rad_ digamma_ div_ divide_ eq_ erf_ erfc_ erfinv_
        exp2_ exp_ expm1_ exponential_ fill_ fill_diagonal_ fix_ float_power_ floor_ floor_divide_ fmod_ frac_ gcd_ ge_
        geometric_ greater_ greater_equal_ gt_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_ index_fill_
        index_put_ index_reduce_ lcm_ ldexp_ le_ lerp_ less_ less_equal_ lgamma_ log10_ log1p_ log2_ log_ log_normal_
        logical_and_ logical_not_ logical_or_ logical_xor_ logit_ lt_ masked_fill_ masked_scatter_ mul_ multiply_
        mvlgamma_ nan_to_num_ ne_ neg_ negative_ nextafter_ normal_ not_equal_ polygamma_ pow_ put_ rad2deg_ random_
        reciprocal_ relu_ remainder_ renorm_ round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sgn_ sigmoid_ sign_
        sin_ sinc_ sinh_ sqrt_ square_ sub_ subtract_ tan_ tanh_ tril_ triu_ true_divide_ trunc_ uniform_ xlogy_ zero_
        """
    )
)
"""Tensor methods that write into their tensor."""

INPLACE_FUNCTIONS = INPLACE_METHODS | frozenset(
    _WORDS(
        """
        alpha_dropout_ celu_ dropout_ elu_ feature_alpha_dropout_ feature_dropout_ hardtanh_ leaky_relu_ rrelu_ selu_
        threshold_
        """
    )
)
"""Functions of torch and torch.nn.functional that write into their first argument."""

SELF_RETURNING_METHODS = frozenset(
    _WORDS(
        """
        requires_grad_ detach_ share_memory_ retain_grad rename_ as_strided_ resize_ resize_as_ set_ squeeze_ swapaxes_
        swapdims_ t_ transpose_ unsqueeze_
        """
    )
)
"""Tensor methods that give back the tensor itself, and change flags and shape only."""

VIEW_METHODS = frozenset(
    _WORDS(
        """
        view view_as t transpose permute squeeze unsqueeze expand expand_as narrow select diagonal unfold swapaxes
        swapdims movedim moveaxis detach unflatten as_strided adjoint view_as_real view_as_complex
        """
    )
)
"""Tensor methods whose result certainly shares memory with their tensor."""

USUAL_VIEW_METHODS = frozenset(_WORDS("contiguous reshape reshape_as flatten ravel"))
"""Tensor methods whose result shares memory with their tensor unless that is laid out in an unusual way."""

CONVERSIONS = frozenset(_WORDS("to type type_as cuda cpu xpu npu conj resolve_conj resolve_neg"))
"""Tensor methods that give back the tensor itself when there is nothing to convert."""

FLOAT_CONVERSIONS = frozenset(_WORDS("float double half bfloat16"))
"""Conversions whose result is floating."""

PAIR_METHODS = frozenset(_WORDS("sort topk kthvalue mode cummax cummin"))
"""Methods and functions that give values and their indices."""

PAIR_ALONG_DIMENSION = frozenset(_WORDS("max min median nanmedian"))
"""Those that do so where a dimension is given."""

INTEGRAL_CONVERSIONS = frozenset(_WORDS("long int short byte bool char"))

FLOAT_METHODS = frozenset(
    _WORDS(
        """
        exp exp2 expm1 log log1p log2 log10 sigmoid softmax log_softmax tanh sqrt rsqrt reciprocal mean var std norm
        erf erfc erfinv sin cos tan asin acos atan sinh cosh lgamma digamma logsumexp cross_entropy gelu silu div
        true_divide softplus elu selu celu logit sinc normalize bernoulli
        """
    )
)
"""Single-result methods and functions whose result is a floating tensor whatever goes in."""

INTEGRAL_METHODS = frozenset(
    _WORDS(
        """
        argmax argmin argsort nonzero eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_not
        logical_xor bincount searchsorted bucketize randperm randint get_rng_state signbit count_nonzero any
        all isclose greater less greater_equal less_equal not_equal one_hot multinomial
        """
    )
)
"""Single-result methods and functions whose result is an integer, bool or state tensor."""

TENSOR_METHODS = (
    frozenset(
        _WORDS(
            """
        abs add addmm addmv baddbmm bmm mm mv matmul mul multiply sub subtract neg negative pow square sum prod cumsum
        cumprod clone clamp clamp_min clamp_max clip ceil floor round trunc frac sign sgn relu masked_fill
        masked_select masked_scatter gather scatter scatter_add scatter_reduce index_select index_add index_copy
        index_fill index_put take repeat repeat_interleave tile roll flip flipud fliplr rot90 tril triu dot outer ger
        inner cross diag diag_embed amax amin nan_to_num new_zeros new_ones new_empty new_full new_tensor
        new_empty_strided zeros_like ones_like lerp addcmul addcdiv remainder fmod floor_divide where inverse pinverse
        trace cholesky det logdet dist kron to_sparse to_dense coalesce hardtanh leaky_relu rsub maximum minimum
        """
        )
    )
    | FLOAT_METHODS
    | INTEGRAL_METHODS
)
"""Tensor methods that give exactly one new tensor."""

KIND_KEEPING = frozenset(
    _WORDS(
        """
        abs neg negative square sum prod cumsum cumprod clone ceil floor round trunc sign sgn relu masked_fill
        masked_select masked_scatter gather scatter scatter_add scatter_reduce index_select index_add index_copy
        index_fill index_put take repeat repeat_interleave tile roll flip flipud fliplr rot90 tril triu diag diag_embed
        amax amin nan_to_num new_zeros new_ones new_empty new_full new_empty_strided zeros_like ones_like empty_like
        full_like randint_like to_sparse to_dense coalesce trace pad atleast_1d diff unfold
        """
    )
)
"""Methods and functions that give whole numbers for a tensor of whole numbers, whatever else goes in."""

TWO_OPERANDS = frozenset(
    _WORDS("add sub subtract mul multiply div true_divide matmul mm bmm mv dot outer maximum minimum fmod remainder")
)
"""Methods and functions with two operands, neither of which can be a tuple."""

SCALAR_METHODS = {
    **dict.fromkeys(_WORDS("dim ndimension numel nelement element_size data_ptr get_device storage_offset"), "int"),
    **dict.fromkeys(
        _WORDS(
            """
            is_contiguous is_floating_point is_complex is_signed is_pinned is_shared equal allclose is_inference
            startswith endswith
            """
        ),
        "bool",
    ),
    **dict.fromkeys(_WORDS("item bit_length"), "number"),
    **dict.fromkeys(_WORDS("lower upper strip"), "str"),
    "numpy": "array",
}
"""Methods whose result is certainly a plain number, flag or string, by the sort of it."""

STRING_METHODS = frozenset(_WORDS("format join lower upper strip replace"))

FLOAT_BY_DEFAULT = frozenset(_WORDS("zeros ones empty linspace"))
"""Functions of torch that give floats unless they are told otherwise."""

TUPLE_METHODS = frozenset(_WORDS("split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes"))
"""Tensor methods that give a tuple of tensors, of a length that the call alone does not tell."""

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
"""Attributes of a tensor that are certainly no tensor."""

VIEW_ATTRIBUTES = frozenset(_WORDS("data T mT H mH real imag"))
"""Attributes that are a tensor over the same memory."""

TORCH_NAMESPACES = ("torch.", "torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.Tensor.")

TORCH_SINGLE = TENSOR_METHODS | frozenset(
    _WORDS(
        """
        zeros ones empty full arange rand randn tensor as_tensor from_numpy linspace logspace eye cat concat concatenate
        stack
        hstack vstack dstack einsum tensordot bilinear linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d pad interpolate grid_sample affine_grid embedding layer_norm group_norm batch_norm
        instance_norm rms_norm dropout mse_loss l1_loss smooth_l1_loss nll_loss kl_div binary_cross_entropy
        binary_cross_entropy_with_logits cosine_similarity pairwise_distance cdist empty_like full_like rand_like
        randn_like randint_like empty_strided zeros_like ones_like scaled_dot_product_attention addr addbmm polar
        complex clone sparse_coo_tensor sparse_csr_tensor avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool2d unfold
        fold pixel_shuffle pixel_unshuffle hardswish mish relu6 threshold glu logsigmoid softmin softsign
        vector_norm matrix_norm solve inv multi_dot matrix_power vander vecdot atleast_1d bartlett_window hann_window
        chain_matmul cartesian_prod combinations cov corrcoef diff heaviside histc hypot
        """
    )
)
"""Functions of torch, torch.nn.functional and torch.linalg that give exactly one tensor."""

JOINING = frozenset(_WORDS("cat concat concatenate stack hstack vstack dstack column_stack row_stack"))
"""Functions of torch that put tensors of a sequence together."""

TORCH_LIKE = frozenset(_WORDS("zeros_like ones_like empty_like full_like rand_like randn_like"))

TORCH_VIEWS = frozenset(
    _WORDS(
        """
        transpose permute squeeze unsqueeze narrow select diagonal swapaxes swapdims movedim moveaxis detach
        view_as_real view_as_complex real imag t as_strided unflatten adjoint
        """
    )
)
TORCH_USUAL_VIEWS = frozenset(_WORDS("reshape flatten ravel"))

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

GRADIENTS_OFF = frozenset(
    {
        "torch.no_grad",
        "torch.autograd.no_grad",
        "torch.inference_mode",
        "torch.autograd.inference_mode",
        "torch.autograd.grad_mode.no_grad",
        "torch.autograd.grad_mode.inference_mode",
        "torch.library.custom_op",
        "torch.library.triton_op",
        "torch.library.impl",
        "torch.library.register_kernel",
        "torch.library.register_fake",
    }
)
"""What makes autograd record nothing, as a ``with`` item or as a decorator."""

OPERATOR_KERNELS = frozenset({"register_kernel", "register_fake", "register_vmap", "impl"})
"""Decorators that an operator object gives: ``@op.register_kernel("cuda")``."""

IN_PLACE_COLLECTIVES = frozenset(
    {
        "torch.distributed.all_reduce",
        "torch.distributed.distributed_c10d.all_reduce",
        "deepspeed.comm.all_reduce",
    }
)
"""Collectives that certainly write into their first argument, on every rank."""

BUILTIN_SCALARS = {
    **dict.fromkeys(_WORDS("int len round hash id ord"), "int"),
    **dict.fromkeys(_WORDS("bool isinstance issubclass hasattr callable any all"), "bool"),
    "float": "float",
    "complex": "number",
    "str": "str",
    "repr": "str",
    "format": "str",
    "type": "object",
    "slice": "object",
    "range": "range",
}

CONTEXT_SAFE_BUILTINS = frozenset(
    _WORDS("isinstance hasattr getattr id type print repr str callable issubclass hash bool")
)
"""Builtins that keep no hold of a ctx that they are given and set nothing on it."""

UNFATHOMABLE_BUILTINS = frozenset(_WORDS("exec eval locals globals"))
"""Builtins that read or bind names that are not written in the code."""

NEVER_RETURNING = frozenset({"sys.exit", "os._exit", "os.abort", "builtins.exit", "builtins.quit"})

VARIABLE = ("torch.autograd.Variable", "torch.autograd.variable.Variable")
"""What once made a tensor differentiable, and gives an alias of it now."""

_OLD_TENSOR_TYPES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")

DISTRIBUTED_TENSORS = frozenset(
    f"torch.distributed.{module}.DTensor" for module in ("tensor", "_tensor", "tensor._api", "_tensor.api")
)
"""A subclass of Tensor: what is none is as a rule a plain tensor."""

TENSOR_ANNOTATIONS = DISTRIBUTED_TENSORS | frozenset(
    {
        "torch.Tensor",
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
        "torch.autograd.Variable",
        *(f"torch.{device}{kind}Tensor" for device in ("", "cuda.") for kind in _OLD_TENSOR_TYPES),
    }
)

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

TENSOR_ONLY_METHODS = (
    frozenset(
        _WORDS(
            """
        data_ptr is_contiguous contiguous new_zeros new_ones new_empty new_full new_tensor view_as reshape_as unsqueeze
        permute masked_fill masked_select index_select gather expand_as expand type_as numel element_size detach
        requires_grad_ mm bmm addmm matmul softmax log_softmax sigmoid tanh exp clamp narrow unbind chunk
        """
        )
    )
    | INPLACE_METHODS
)
"""Methods by whose call a name is shown to be a tensor. Numpy's and process groups' own names are left out."""

TENSOR_ONLY_ATTRIBUTES = frozenset(_WORDS("is_cuda requires_grad is_leaf is_sparse"))

TENSOR_LIKE_NAMES = (
    TENSOR_METHODS
    | VIEW_METHODS
    | USUAL_VIEW_METHODS
    | CONVERSIONS
    | INTEGRAL_CONVERSIONS
    | TUPLE_METHODS
    | frozenset(_WORDS("shape dtype device ndim T mT data grad dim item tolist numpy size stride"))
) - frozenset(_WORDS("type all any index_put"))
"""Methods and attributes that speak for a tensor, or an array; other objects have some of them too."""
