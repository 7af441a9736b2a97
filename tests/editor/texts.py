"""Source texts for the tests of the editor."""

from __future__ import annotations

HEAD = "import torch\n"


def missing_none(name: str = "Scale") -> str:
    """A Function with one finding, CTX203, which has a safe fix."""
    return f"""

class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale


def {name.lower()}(x):
    return {name}.apply(x, 2.0)
"""


ONE = HEAD + missing_none()
TWO = HEAD + missing_none("First") + missing_none("Second")
FIXED = ONE.replace("return grad_output * ctx.scale", "return grad_output * ctx.scale, None")
