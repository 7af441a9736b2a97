"""Whether autograd can ever run backward: some output may have a gradient, and some input may need one."""

from __future__ import annotations

import pytest

from ctxlint.model.analyses.reachability import backward_never_runs
from tests.model.models import function

INTEGRAL = {
    "type of the GPU": "torch.cuda.IntTensor(3)",
    "type of the GPU, filled": "torch.cuda.LongTensor(3).zero_()",
    "short type": "torch.ShortTensor(3)",
    "char type": "torch.CharTensor(3)",
    "dtype argument": "torch.zeros(3, dtype=torch.int32)",
    "dtype of new tensor": "x.new_zeros(3, dtype=torch.uint8)",
    "dtype of like": "torch.empty_like(x, dtype=torch.bool)",
    "conversion": "x.round().long()",
    "conversion with to": "x.round().to(torch.int64)",
    "conversion with to, last": "x.round().to(x.device, torch.int64)",
    "conversion with type": "x.round().type(torch.LongTensor)",
    "conversion by view": "x.detach().view(torch.int32)",
    "comparison": "x > 0",
    "comparison of columns": "x[:, 0] == -1",
    "both": "(x > 0) & (x < 1)",
    "either": "(x > 1) | (x < 0)",
    "not": "~(x > 0)",
    "arithmetic": "x.argmax(-1) + 1",
    "sum of flags": "(x > 0).sum()",
    "index": "x.argmax(-1)",
    "part": "x.argsort(-1)[:2]",
    "view": "x.argsort(-1).view(-1)",
    "copy": "x.argsort(-1).clone().contiguous()",
    "indices of a sort": "torch.sort(x)[1]",
    "indices of the largest": "x.topk(2).indices",
    "whole numbers": "torch.arange(3)",
    "whole numbers as a tensor": "torch.tensor([1, 2])",
    "random whole numbers": "torch.randint(3, (2,))",
    "rows of whole numbers": "torch.stack([x.argmax(-1), x.argmin(-1)])",
    "new of a whole tensor": "x.argmax(-1).new_zeros(3)",
    "like a whole tensor": "torch.zeros_like(x.argmax(-1))",
    "a number": "x.shape[0]",
}


@pytest.mark.parametrize("output", INTEGRAL.values(), ids=INTEGRAL)
def test_whole_numbers_have_no_gradient(output: str) -> None:
    assert backward_never_runs(function(f"x: torch.Tensor:\n    return {output}"))


@pytest.mark.parametrize("output", [each for each in INTEGRAL.values() if "cuda" not in each])
def test_torch_agrees(output: str) -> None:
    import torch

    x = torch.rand(4, 4)
    value = eval(output, {"torch": torch, "x": x})
    assert not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex())


@pytest.mark.parametrize(
    "output",
    [
        "torch.cuda.FloatTensor(3)",
        "torch.zeros(3)",
        "torch.zeros(3, dtype=x.dtype)",
        "x.argmax(-1) * 0.5",
        "x.argmax(-1) / 2",
        "x.argmax(-1).float()",
        "x.argmax(-1).to(x.dtype)",
        "x.argmax(-1).type_as(x)",
        "x.argmax(-1).new_zeros(3, dtype=x.dtype)",
        "x.argmax(-1) + x",
        "x.argmax(-1).double().sum()",
        "(x > 0).to(x)",
        "(x > 0).sum(dtype=x.dtype)",
        "(x > 0) * x",
        "(x > 0).float()",
        "torch.where(x > 0, x, 0)",
        "F.embedding(x.argmax(-1), x)",
        "x.argmax(-1).pow(0.5)",
        "x.argmax(-1).clamp(min=0.5)",
        "x.argmax(-1).sum(**options)",
        "torch.arange(3.0)",
        "torch.arange(0, 1, 0.5)",
        "torch.tensor([1, 2.5])",
        "torch.tensor([1, 2], dtype=x.dtype)",
        "torch.stack([x.argmax(-1), x.sum(-1)])",
        "x.argmax(-1).view(torch.float32)",
        "x.topk(2).values",
        "extension.f(x)",
        "torch.tensor([1, n])",
        "torch.arange(n)",
        "torch.arange(0, end=n)",
        "x.argmax(-1) + n",
        "x.argmax(-1) ** 0.5",
    ],
)
def test_others_may_have_one(output: str) -> None:
    assert not backward_never_runs(function(f"x: torch.Tensor, n:\n    return {output}"))
