"""The classes and names of ``torch.autograd``, and the attributes of a ctx.

Source: torch 2.13, ``torch/autograd/function.py``.
"""

from __future__ import annotations

from ctxlint.torch_api.known_decorators import DEPRECATED_DECORATORS

PROTOCOL = ("forward", "backward", "vjp", "setup_context", "jvp", "vmap")
"""The static methods that autograd calls."""

FUNCTION = ("torch.autograd.Function", "torch.autograd.function.Function")
"""The names of the class."""

TORCH_FUNCTION_BASES = frozenset(
    {
        *FUNCTION,
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
"""Attributes that only a ctx has: their use identifies a parameter as the ctx."""

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
"""Attributes that a ctx has without being set (``_dtype`` and ``_fwd_used_autocast`` come from ``custom_fwd``)."""

FUNCTION_CTX_ATTRIBUTES = CONTEXT_NAMES | CONTEXT_METHODS

INFERENCE_MODE = frozenset(
    {"torch.inference_mode", "torch.autograd.inference_mode", "torch.autograd.grad_mode.inference_mode"}
)
"""The context manager and decorator for inference mode, by each of its names."""

GRADIENTS_OFF = INFERENCE_MODE.union(
    {
        "torch.no_grad",
        "torch.autograd.no_grad",
        "torch.autograd.grad_mode.no_grad",
        "torch.library.custom_op",
        "torch.library.triton_op",
        "torch.library.impl",
        "torch.library.register_kernel",
        "torch.library.register_fake",
    }
)
"""Context managers and decorators that disable recording by autograd."""

OPERATOR_KERNELS = frozenset({"register_kernel", "register_fake", "register_vmap", "impl"})
"""Decorators of an operator object: ``@op.register_kernel("cuda")``."""

VARIABLE = ("torch.autograd.Variable", "torch.autograd.variable.Variable")
"""Once made a tensor differentiable; now returns an alias of it."""

LEGACY_IMPORTS = frozenset(
    {*VARIABLE, *DEPRECATED_DECORATORS, "torch.autograd.function.InplaceFunction", "torch.cuda.amp"}
)
"""What fixes replace: another file may import it from a file that imports it."""

CAST_UNDER_AUTOCAST = frozenset(
    str.split(
        """
        acos addbmm addcdiv addcmul addmm addmv addr asin atan2 baddbmm bilinear binary_cross_entropy
        binary_cross_entropy_with_logits bmm cdist chain_matmul conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d cosh cosine_similarity cross cross_entropy cumprod cumsum dist dot einsum erfinv exp expm1
        grid_sample group_norm index_put kl_div l1_loss layer_norm linear log log10 log1p log2 log_softmax matmul mm
        mse_loss multi_dot mv nll_loss norm normalize pdist pow prelu prod reciprocal renorm rsqrt
        scaled_dot_product_attention scatter_add sinh smooth_l1_loss softmax softmin softplus sum tan tensordot
        """
    )
)
"""The functions and methods whose tensors autocast converts, on CUDA or CPU; operators of Python: ``@`` and ``**``."""

READ_ONLY_ATTRIBUTES = frozenset(
    {
        "saved_tensors",
        "saved_variables",
        "metadata",
        "next_functions",
        "requires_grad",
        "_raw_saved_tensors",
        "_input_metadata",
    }
)
"""Attributes of a ctx, and of an instance, that cannot be set: AttributeError."""

BY_OTHERS = "forward by others"
"""Stands for ``Fn.forward`` outside of Functions among the methods that code calls directly."""
