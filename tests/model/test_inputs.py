"""Whether an input is a tensor: each kind of evidence alone, in order of strength, and contradictions."""

from __future__ import annotations

import pytest

from ctxlint.model.function import Input, InputKind, Trust
from ctxlint.model.interpreter.values import Tri
from tests.model.models import function, read_code

TENSOR, OPTIONAL = InputKind.TENSOR, InputKind.OPTIONAL_TENSOR
NO_TENSOR, UNKNOWN = InputKind.NON_TENSOR, InputKind.UNKNOWN


def second_input(parameter: str, body: str = "return x * 2", backward: str = "") -> Input:
    """The input ``w`` of a Function ``forward(ctx, x, w)``; the default backward is no evidence about it."""
    return function(f"x, {parameter}:\n {body}", backward or "*grads:\n return ctx.run(*grads)").inputs[1]


# ---------------------------------------------------------------------------------------------------------------------
# Its own gradient slot

SLOTS = {
    "a computed gradient": ("grad:\n return grad, grad * 2", TENSOR, Tri.YES),
    "an unknown result": ("grad:\n dx, dw = extension.f(grad)\n return dx, dw", TENSOR, Tri.YES),
    "under a condition": ("grad:\n return grad, (grad if ctx.needs_input_grad[1] else None)", TENSOR, Tri.YES),
    "in one of two returns": ("grad:\n if ctx.a:\n  return grad, None\n return grad, grad", TENSOR, Tri.YES),
    "None": ("grad:\n return grad, None", UNKNOWN, Tri.NO),
    "a name that is None": ("grad:\n dw = None\n return grad, dw", UNKNOWN, Tri.NO),
    "unknown count": ("grad:\n return extension.f(grad)", UNKNOWN, Tri.UNKNOWN),
    "after a star": ("grad:\n return (*extension.f(grad), grad)", UNKNOWN, Tri.UNKNOWN),
    "too few": ("grad:\n return grad", UNKNOWN, Tri.UNKNOWN),
    "raises only": ("grad:\n raise NotImplementedError", UNKNOWN, Tri.UNKNOWN),
    "a number is no gradient": ("grad:\n return grad, 0", UNKNOWN, Tri.YES),
    "a flag is no gradient": ("grad:\n return grad, False", UNKNOWN, Tri.YES),
}


@pytest.mark.parametrize("name", SLOTS)
def test_the_gradient_slot(name: str) -> None:
    backward, kind, gradient = SLOTS[name]
    given = second_input("w", backward=backward)
    assert (given.kind, given.gradient) == (kind, gradient)


def test_without_backward_nothing_is_known_of_gradients() -> None:
    file = read_code("class Fn(Function):\n    @staticmethod\n    def forward(ctx, x, w):\n        return x * 2\n")
    assert [each.gradient for each in file.functions[0].inputs] == [Tri.UNKNOWN, Tri.UNKNOWN]


# ---------------------------------------------------------------------------------------------------------------------
# Annotations and defaults

SIGNATURES = {
    "w": UNKNOWN,
    "w: torch.Tensor": TENSOR,
    "w: Tensor": TENSOR,
    "w: 'torch.Tensor'": TENSOR,
    "w: 'Tensor'": TENSOR,
    "w: torch.nn.Parameter": TENSOR,
    "w: torch.LongTensor": TENSOR,
    "w: Union[torch.LongTensor, torch.cuda.LongTensor]": TENSOR,
    "w: Optional[torch.Tensor]": OPTIONAL,
    "w: Optional[Tensor] = None": OPTIONAL,
    "w: torch.Tensor | None": OPTIONAL,
    "w: None | torch.Tensor": OPTIONAL,
    "w: Union[torch.Tensor, None]": OPTIONAL,
    "w: Union[None, torch.Tensor]": OPTIONAL,
    "w: typing.Optional[torch.Tensor]": OPTIONAL,
    "w: 'Optional[torch.Tensor]'": OPTIONAL,
    "w: torch.Tensor = None": OPTIONAL,
    "w: Float[Tensor, 'n 3']": TENSOR,
    "w: jaxtyping.Int64[torch.Tensor, 'n']": TENSOR,
    "w: Optional[Float[Tensor, 'n']]": OPTIONAL,
    "w: Float[Tensor, 'n'] | None": OPTIONAL,
    "w: TensorType['n', 3]": TENSOR,
    "w: Float[numpy.ndarray, 'n']": UNKNOWN,
    "w: Float[jax.Array, 'n']": UNKNOWN,
    "w: Float[Elsewhere, 'n']": UNKNOWN,
    "w: jaxtyping.PyTree[Tensor]": UNKNOWN,
    "w: Float": UNKNOWN,
    "w: int": NO_TENSOR,
    "w: bool": NO_TENSOR,
    "w: str": NO_TENSOR,
    "w: Optional[int] = None": NO_TENSOR,
    "w: int | None": NO_TENSOR,
    "w: torch.dtype": NO_TENSOR,
    "w: torch.device": NO_TENSOR,
    "w: dist.ProcessGroup": NO_TENSOR,
    "w: Callable": NO_TENSOR,
    "w: Callable[[int], int]": NO_TENSOR,
    "w: List[torch.Tensor]": NO_TENSOR,
    "w: list[torch.Tensor]": NO_TENSOR,
    "w: Tuple[int, ...]": NO_TENSOR,
    "w: Dict[str, torch.Tensor]": NO_TENSOR,
    "w: Sequence[torch.Tensor]": NO_TENSOR,
    "w: Union[int, torch.Tensor]": UNKNOWN,
    "w: int | torch.Tensor": UNKNOWN,
    "w: Union[torch.Tensor, Sequence[torch.Tensor]]": UNKNOWN,
    "w: Request[torch.Tensor]": UNKNOWN,
    "w: BlockSparseTensor": UNKNOWN,
    "w: MyTensor": UNKNOWN,
    "w: Any": UNKNOWN,
    "w: None": UNKNOWN,
    "w: float": NO_TENSOR,
    "w: 'not an expression ['": UNKNOWN,
    "w=None": UNKNOWN,
    "w=True": NO_TENSOR,
    "w=False": NO_TENSOR,
    "w='mean'": NO_TENSOR,
    "w=1": NO_TENSOR,
    "w=-1": NO_TENSOR,
    "w=1e-5": NO_TENSOR,
    "w=()": UNKNOWN,
    "w=torch.float32": UNKNOWN,
    "w: torch.Tensor = 1.0": TENSOR,
}


@pytest.mark.parametrize("parameter", SIGNATURES)
def test_annotations_and_defaults(parameter: str) -> None:
    code = f"""
        import typing
        from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union
        import jaxtyping
        from jaxtyping import Float
        from torch import Tensor
        from torchtyping import TensorType

        class Fn(Function):
            @staticmethod
            def forward(ctx, x, {parameter}):
                return x * 2
    """
    (fn,) = read_code(code).functions
    assert fn.inputs[1].kind is SIGNATURES[parameter]


def test_a_tensor_of_another_package_is_none_of_torch() -> None:
    code = """
        from elsewhere import Tensor

        class Fn(Function):
            @staticmethod
            def forward(ctx, x: Tensor):
                return x
    """
    (fn,) = read_code(code).functions
    assert not any(each.trust is Trust.STRONG for each in fn.inputs[0].evidence)


# ---------------------------------------------------------------------------------------------------------------------
# Uses

USES = {
    # only tensors have these
    "w.contiguous()": TENSOR,
    "w.data_ptr()": TENSOR,
    "w.is_cuda": TENSOR,
    "w.requires_grad": TENSOR,
    "w.new_zeros(3)": TENSOR,
    "w.detach()": TENSOR,
    "w.add_(1)": TENSOR,
    "w.size(0)": TENSOR,
    "x @ w": TENSOR,
    "w @ x": TENSOR,
    "torch.exp(w)": TENSOR,
    "torch.empty_like(w)": TENSOR,
    "F.softmax(w, dim=-1)": TENSOR,
    "torch.sum(w)": TENSOR,
    # numpy has these as well
    "w.shape": UNKNOWN,
    "w.sum()": UNKNOWN,
    "w.reshape(-1)": UNKNOWN,
    "w.dtype": UNKNOWN,
    "w.size": UNKNOWN,
    "w.size(-1)": TENSOR,
    "w.size(dim=1)": TENSOR,
    # a process group has this, and any class may
    "w.size()": UNKNOWN,
    "w.size(x)": UNKNOWN,
    # a module has these
    "w.to(x.device)": UNKNOWN,
    "w.cuda()": UNKNOWN,
    "w.data": UNKNOWN,
    # numbers may stand there as well
    "x * w": UNKNOWN,
    "x + w": UNKNOWN,
    "torch.add(x, w)": UNKNOWN,
    "torch.where(x > 0, x, w)": UNKNOWN,
    "extension.forward(x, w)": UNKNOWN,
    # only something else fits
    "range(w)": NO_TENSOR,
    "w(x)": NO_TENSOR,
    "w == 'mean'": NO_TENSOR,
    "'mean' == w": NO_TENSOR,
    "w != 'mean'": NO_TENSOR,
    "w in ('a', 'b')": NO_TENSOR,
    "w not in ['a']": NO_TENSOR,
    "x.shape[w]": NO_TENSOR,
    "x.sum(dim=w)": NO_TENSOR,
    "torch.sum(x, dim=w)": NO_TENSOR,
    "dist.all_reduce(x, group=w)": NO_TENSOR,
    "torch.zeros(3, dtype=w)": NO_TENSOR,
    "torch.zeros(w, 3)": NO_TENSOR,
    "torch.empty(w)": NO_TENSOR,
    "x.unsqueeze(w)": NO_TENSOR,
    "w == 1": UNKNOWN,
    "w in (1, 2)": UNKNOWN,
    # its type is asked
    "isinstance(w, torch.Tensor)": UNKNOWN,
    "isinstance(w, int)": UNKNOWN,
    "torch.is_tensor(w)": UNKNOWN,
    "callable(w)": UNKNOWN,
    # other names
    "[w.data_ptr() for w in x]": UNKNOWN,
    "(lambda w: w.data_ptr())(x)": UNKNOWN,
    "ctx.w.data_ptr()": UNKNOWN,
    "extension.f(w=x.data_ptr())": UNKNOWN,
    "[w.data_ptr() for v in x]": TENSOR,
    "{k: w.data_ptr() for k in x}": TENSOR,
    "f'{w.data_ptr()}'": TENSOR,
    "x[w.data_ptr()]": TENSOR,
    "(y := w.contiguous())": TENSOR,
}


@pytest.mark.parametrize("expression", USES)
def test_uses(expression: str) -> None:
    assert second_input("w", f"y = {expression}\n return x * 2").kind is USES[expression]


STATEMENTS = {
    "rebound before": ("w = extension.f(w)\n w.data_ptr()", UNKNOWN),
    "used, then rebound": ("w.data_ptr()\n w = 3\n range(w)", TENSOR),
    "rebound in a branch": ("if x is None:\n  w = x\n w.data_ptr()", UNKNOWN),
    "rebound by a loop": ("for w in x:\n  w.data_ptr()", UNKNOWN),
    "rebound by with": ("with x as w:\n  w.data_ptr()", UNKNOWN),
    "rebound by except": ("try:\n  pass\n except ValueError as w:\n  w.data_ptr()", UNKNOWN),
    "rebound by walrus": ("if (w := x):\n  w.data_ptr()", UNKNOWN),
    "rebound by import": ("import w\n w.data_ptr()", UNKNOWN),
    "rebound by def": ("def w(): pass\n w.data_ptr()", UNKNOWN),
    "rebound by unpacking": ("w, y = x\n w.data_ptr()", UNKNOWN),
    "rebound by a starred target": ("y, *w = x\n w.data_ptr()", UNKNOWN),
    "rebound by match": ("match x:\n  case w:\n   w.data_ptr()", UNKNOWN),
    "deleted": ("del w\n w = x\n w.data_ptr()", UNKNOWN),
    "a second name": ("y = w\n y.data_ptr()", TENSOR),
    "another name": ("y = x\n y.data_ptr()", UNKNOWN),
    "in a nested function": ("def f(w):\n  return w.data_ptr()", UNKNOWN),
    "augmented": ("w += 1\n w.data_ptr()", TENSOR),
    "asserted to be a tensor": ("assert isinstance(w, torch.Tensor)", TENSOR),
    "asserted to be a tensor, with torch's own test": ("assert torch.is_tensor(w)", TENSOR),
    "asserted to be a tensor, and more": ("assert isinstance(w, torch.Tensor) and w.ndim == 4", TENSOR),
    "asserted to be a tensor or more": ("assert isinstance(w, torch.Tensor) or w.ndim == 4", UNKNOWN),
    "asserted to be a tensor of some kind": ("assert isinstance(w, (torch.HalfTensor, torch.cuda.LongTensor))", TENSOR),
    "asserted to be a number": ("assert isinstance(w, int)", NO_TENSOR),
    "asserted to be one of several": ("assert isinstance(w, (int, torch.Tensor))", UNKNOWN),
    "asserted and used": ("assert isinstance(w, (int, torch.Tensor))\n w.data_ptr()", UNKNOWN),
    "saved": ("ctx.save_for_backward(x, w)", TENSOR),
    "marked": ("ctx.mark_dirty(w)", TENSOR),
    "returned alone": ("return w", TENSOR),
    "returned with others": ("return x, w", UNKNOWN),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_uses_over_several_statements(name: str) -> None:
    body, expected = STATEMENTS[name]
    assert second_input("w", f"{body}\n return x * 2").kind is expected


# ---------------------------------------------------------------------------------------------------------------------
# Calls

CALLS = {
    "Fn.apply(x, 3)": NO_TENSOR,
    "Fn.apply(x, -3)": NO_TENSOR,
    "Fn.apply(x, 0.5)": NO_TENSOR,
    "Fn.apply(x, True)": NO_TENSOR,
    "Fn.apply(x, 'mean')": NO_TENSOR,
    "Fn.apply(x, None)": UNKNOWN,
    "Fn.apply(x, [1, 2])": NO_TENSOR,
    "Fn.apply(x, torch.ones(3))": TENSOR,
    "Fn.apply(x, something)": UNKNOWN,
    "Fn.apply(x, something())": UNKNOWN,
    "Fn.apply(*args, 3)": UNKNOWN,
    "Fn.apply(x, *args)": UNKNOWN,
    "Fn.apply(x)": UNKNOWN,
    "fn(x, 3)": NO_TENSOR,
    "Fn().apply(x, 3)": NO_TENSOR,
    "Fn.forward(None, x, 3)": UNKNOWN,
    "Other.apply(x, 3)": UNKNOWN,
    "Fn.apply(x, 3) + Fn.apply(x, torch.ones(3))": UNKNOWN,
    "with pytest.raises(TypeError):\n    Fn.apply(x, 3)": UNKNOWN,
}


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    code = f"""
class Fn(Function):
    @staticmethod
    def forward(ctx, x, w):
        return x * 2

fn = Fn.apply
{call}
"""
    (fn,) = read_code(code).functions
    assert fn.inputs[1].kind is CALLS[call]


# ---------------------------------------------------------------------------------------------------------------------
# Several pieces together


def test_strong_pieces_go_before_fair_ones() -> None:
    assert second_input("w=1.0", "w.data_ptr()\n return x").kind is TENSOR
    assert second_input("w: float", backward="grad:\n return grad, grad").kind is TENSOR


CONTRADICTIONS = {
    "annotated int, gets a gradient": ("w: int", "return x * 2", "grad:\n return grad, grad"),
    "annotated as a list, gets a gradient": ("w: list", "return x * 2", "grad:\n return grad, grad"),
    "annotated int, used as a tensor": ("w: int", "w.data_ptr()\n return x * 2", ""),
    "annotated as a tensor, counted to": ("w: torch.Tensor", "range(w)\n return x * 2", ""),
    "a flag by default, gets a gradient": ("w=False", "return x * 2", "grad:\n return grad, grad"),
    "used both ways": ("w", "w.data_ptr()\n range(w)\n return x * 2", ""),
    "asked for its type and used": ("w", "if isinstance(w, torch.Tensor):\n  w.data_ptr()\n return x * 2", ""),
    "fair pieces": ("w=1.0", "ctx.save_for_backward(w)\n return x * 2", ""),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_come_out_unknown(name: str) -> None:
    parameter, body, backward = CONTRADICTIONS[name]
    assert second_input(parameter, body, backward).kind is UNKNOWN


def test_the_evidence_is_kept_strongest_first() -> None:
    given = second_input("w: torch.Tensor", "ctx.save_for_backward(w)\n return x * 2", "grad:\n return grad, grad")
    assert [each.trust for each in given.evidence] == [Trust.PROOF, Trust.STRONG, Trust.FAIR]
    assert [each.reason for each in given.evidence] == [
        "`backward` returns a gradient for it",
        "it is annotated `Tensor`",
        "it is passed to `save_for_backward`",
    ]


def test_an_optional_default_makes_a_tensor_optional() -> None:
    assert second_input("w=None", backward="grad:\n return grad, grad").kind is OPTIONAL
    assert second_input("w", backward="grad:\n return grad, grad").kind is TENSOR


# ---------------------------------------------------------------------------------------------------------------------
# Which inputs there are


def test_inputs_are_counted_without_ctx() -> None:
    fn = function("x, w, *rest, flag=False, **options:\n return x")
    assert [(each.index, each.name) for each in fn.inputs] == [(0, "x"), (1, "w")]
    assert fn.variadic_inputs is not None
    assert fn.variadic_inputs.name == "rest"
    assert fn.required_inputs == 2


def test_inputs_with_setup_context() -> None:
    code = """
        class Fn(Function):
            @staticmethod
            def forward(x, w: int, bias=None):
                return x * w

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def backward(ctx, grad):
                return grad, None, grad
    """
    (fn,) = read_code(code).functions
    assert [(each.name, each.kind) for each in fn.inputs] == [("x", TENSOR), ("w", NO_TENSOR), ("bias", OPTIONAL)]
    assert fn.required_inputs == 2


@pytest.mark.parametrize(
    "body",
    [
        "x, flag = inputs\n ctx.flag = x.is_cuda",
        "with helper():\n  x, flag = inputs\n  ctx.flag = x.is_cuda",
        "x, *rest = inputs\n ctx.flag = x.is_cuda",
        "x = inputs[0]\n ctx.flag = x.is_cuda",
        "max = inputs[0]\n ctx.flag = max.is_cuda",
        "ctx.flag = inputs[0].is_cuda",
        "first, second = inputs\n x = first\n ctx.flag = x.is_cuda",
    ],
)
def test_setup_context_shows_what_an_input_is(body: str) -> None:
    assert _reasons_in_setup(body) == ["`.is_cuda` is read"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x.pow(2)", "`.pow()` is called"),
        ("x.pow", "`.pow` is read"),
        ("x.data.clone()", "`.data` is read"),
    ],
)
def test_a_method_is_called_or_only_read(code: str, reason: str) -> None:
    assert _reasons_in_setup(f"x, flag = inputs\n ctx.flag = {code}") == [reason]


@pytest.mark.parametrize(
    "body",
    [
        "x, flag, more = inputs\n ctx.flag = x.is_cuda",
        "*rest, x, y = inputs\n ctx.flag = y.is_cuda",
        "inputs = helper(inputs)\n x, flag = inputs\n ctx.flag = x.is_cuda",
        "x, flag = inputs\n x = helper(x)\n ctx.flag = x.is_cuda",
        "x = inputs[index]\n ctx.flag = x.is_cuda",
        "ctx.flag = output[0].is_cuda",
    ],
)
def test_setup_context_does_not_show_what_an_input_is(body: str) -> None:
    assert _reasons_in_setup(body) == []


def _reasons_in_setup(body: str) -> list[str]:
    methods = (
        ("forward", "x, flag", "return helper(x, flag)"),
        ("setup_context", "ctx, inputs, output", body),
        ("backward", "ctx, grad", "return helper(grad)"),
    )
    code = "".join(
        f"    @staticmethod\n    def {name}({params}):\n     {text.replace(chr(10), chr(10) + '    ')}\n"
        for name, params, text in methods
    )
    (fn,) = read_code(f"class Fn(Function):\n{code}").functions
    return [evidence.reason for evidence in fn.inputs[0].evidence]


def test_inputs_of_a_classmethod() -> None:
    code = """
        class Fn(Function):
            @classmethod
            def forward(cls, ctx, x, w):
                return x

            @staticmethod
            def backward(ctx, grad):
                return grad, None
    """
    (fn,) = read_code(code).functions
    assert [each.name for each in fn.inputs] == ["x", "w"]


def test_positional_only_inputs() -> None:
    fn = function("x, w, /, n=2:\n return x", "grad:\n return grad, grad, None")
    assert [(each.name, each.kind) for each in fn.inputs] == [("x", TENSOR), ("w", TENSOR), ("n", NO_TENSOR)]


def test_a_parameter_with_the_name_of_a_builtin_is_a_parameter() -> None:
    fn = function(forward="input:\n    return input.contiguous()", backward="grad:\n    return helper(grad)")
    assert "`.contiguous()` is called" in [each.reason for each in fn.inputs[0].evidence]
    assert fn.inputs[0].kind is InputKind.TENSOR
