"""The code of an expression is the same whether it is cut out of the text or written by LibCST."""

from __future__ import annotations

import libcst as cst

from ctxlint.explain.locations import _as_written, _generated, parameters_of
from tests.model.models import read

_ODD = """\
import torch


class Odd(torch.autograd.Function):
    @staticmethod
    def forward( ctx, x,y , * rest, ):
        z = (x)+( y ) ; w = f((x), g(y for y in rest)); v = ((x, y)), (w,), ( # why
            x+y  # )
        ), (
            x
            - y)
        u = x, y,
        return (x) if (y  # why
            ) else not (\\
            z), "é)" + u[0 : (1)], v

    @staticmethod
    def backward(ctx, grad: "Tensor" = (None), *, # why
                 more=")"):
        return (grad)* 2 , - grad

    @staticmethod
    def vmap ():
        return ()
"""


def test_expressions_and_parameters_are_as_libcst_writes_them() -> None:
    [fn] = read(_ODD).functions
    cut: dict[str, bool] = {}
    for method in fn.methods.values():
        assert parameters_of(fn, method) == _generated(method.node.params)
        for node in method.parents:
            if isinstance(node, cst.BaseExpression):
                code, written = _as_written(fn, node), _generated(node)
                assert code in (None, written)
                cut[written] = code is not None
    assert cut["(x)+( y )"]
    assert cut["u[0 : (1)]"]
    assert cut["- grad"]
