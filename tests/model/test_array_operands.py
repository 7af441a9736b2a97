"""An operand of ``@`` is a tensor, unless the other side is an array."""

from __future__ import annotations

import pytest

from tests.explain.contracts import contract_of

_CODE = """
import numpy as np
import scipy.sparse


class Fn(Function):
    @staticmethod
    def forward(ctx, x, other):
        {body}
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx, g):
        return g * 1, None
"""


def _kind(body: str) -> str:
    (_x, other) = contract_of(_CODE.format(body=body)).inputs
    return other.kind


@pytest.mark.parametrize(
    "body",
    [
        "out = other @ x.detach().numpy()",
        "out = x.cpu().numpy().T @ other",
        "array = x.numpy()\n        out = other @ array.astype('float32')",
        "array = np.asarray(x)\n        rows = array[1:] * 2\n        out = rows @ other",
        "out = scipy.sparse.eye(3) @ other",
        "out = np.linalg.inv(x) @ other",
    ],
)
def test_beside_an_array_it_is_no_tensor(body: str) -> None:
    assert _kind(body) == "non-tensor"


@pytest.mark.parametrize(
    "body",
    [
        "out = (other @ x).numpy()",
        "array = x.numpy()\n        array = x\n        out = other @ array",
        "out = x @ other",
    ],
)
def test_else_it_is_one(body: str) -> None:
    assert _kind(body) == "tensor"
