"""Decorators of torch and the standard library, by their effect on the decorated function or class."""

from __future__ import annotations

import re

from ctxlint.patterns import pattern

CONTEXT_MANAGER = "contextlib.contextmanager"
"""The decorator that makes a context manager of a generator function."""

CONTIGUITY_DECORATORS = frozenset(
    {"fla.utils.contiguous", "fla.utils.input_guard", "liger_kernel.ops.utils.ensure_contiguous"}
)
"""Decorators of libraries that pass on what ``contiguous`` returns for each tensor."""

DEVICE_KEEPING_DECORATORS = frozenset(
    {
        *("staticmethod", "classmethod", "builtins.staticmethod", "builtins.classmethod"),
        *("torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.autograd.no_grad"),
        *("torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo", "torch.jit.ignore"),
        *("torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph", "functools.lru_cache", "functools.cache"),
        *("torch.compile", "torch.fx.wrap", "torch.jit.unused", "builtins.property", "property"),
        *("typing.override", "typing_extensions.override", "torch.fx._symbolic_trace.wrap"),
        *("triton.testing.perf_report", "pytest.fixture", "pytest.mark.parametrize", "pytest.mark.skipif"),
    }
)
"""Decorators that leave the current GPU alone."""

DEVICE_KEEPING_CONTEXTS = frozenset(
    str.split(
        "autocast catch_warnings enable_grad inference_mode no_grad profile range record_function set_grad_enabled "
        "set_multithreading_enabled suppress"
    )
)
"""The names of context managers that leave the current GPU alone."""

DEVICE_CHOOSING = pattern(
    r"set_device|(?:use|switch|select|enter|activate)_(?:\w+_)?(?:device|gpu)|current_device|exchange_device|device_(?:of|count|index|guard|ctx|context|scope)|enter_context|exitstack|guard"
    r"|__enter__|current_stream|(?<![a-z])npu",
    re.IGNORECASE,
)
"""What a function mentions that sets the current device, asks for it, or enters a context manager directly.

NPUs have a current device of their own.
"""

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
        "torch.jit.script",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.jit.script_if_tracing",
        "torch.compiler.disable",
        "torch.compiler.allow_in_graph",
        "torch.compiler.assume_constant_result",
        "torch._dynamo.disable",
        "torch._dynamo.allow_in_graph",
        "torch._dynamo.assume_constant_result",
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
        "functools.wraps",
        "overrides.overrides",
        "fla.utils.autocast_custom_fwd",
        "fla.utils.autocast_custom_bwd",
        *CONTIGUITY_DECORATORS,
    }
)

AUTOCAST_PAIR = frozenset(
    {
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "torch.amp.autocast_mode.custom_fwd",
        "torch.amp.autocast_mode.custom_bwd",
    }
)
"""Decorators that require the keyword ``device_type``; those of ``torch.cuda.amp`` take none."""

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
"""Decorators that mark their argument and return it, even a staticmethod object."""

COMPILER_DISABLING_DECORATORS = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo"})
"""Decorators whose functions ``torch.compile`` does not trace: with ``fullgraph=True``, calling them raises."""

TRACING_DECORATORS = COMPILER_DISABLING_DECORATORS | {
    "torch.compiler.allow_in_graph",
    "torch.compiler.assume_constant_result",
    "torch._dynamo.allow_in_graph",
    "torch._dynamo.assume_constant_result",
}
"""Decorators that only tell ``torch.compile`` what to do with a function, which they return, or one like it."""

CLASS_DECORATORS = frozenset(
    {
        "builtins.staticmethod",
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
"""Class decorators that do not change the calling convention."""

OPERATOR_DECORATORS = frozenset(
    {
        "torch.library.custom_op",
        "torch._library.custom_ops.custom_op",
        "torch.library.triton_op",
        "torch._library.triton.triton_op",
        "torch._library.triton_op",
    }
)
"""Decorators that create an operator from a function."""

DEPRECATED_DECORATORS = frozenset(
    f"{module}.{name}"
    for module in ("torch.cuda.amp", "torch.cuda.amp.autocast_mode")
    for name in ("custom_fwd", "custom_bwd")
)
"""Replaced by those of the same names in ``torch.amp``, which need a ``device_type``."""
