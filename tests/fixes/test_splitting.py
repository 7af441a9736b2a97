"""Splitting forward: in odd layouts, with other names, and where moving a statement would change its meaning."""

from __future__ import annotations

import pytest

from ctxlint.config.settings import Settings
from tests.fixes.fixing import assert_fixed, fixed_by
from tests.linting import lint, only_rule

CODE = "CTX110"


def fn(forward: str, params: str = "ctx, x, y", decorator: str = "", tail: str = "") -> str:
    """A Function with these lines in forward."""
    lines = "".join(f"        {line}\n" if line else "\n" for line in forward.split("\n"))
    return f"""import torch


class Fn(torch.autograd.Function):
    @staticmethod
{decorator}    def forward({params}):
{lines}
    @staticmethod
    def backward(ctx, grad):
        return grad, grad
{tail}"""


def split(forward: str, setup: str, params: str = "x, y", signature: str = "ctx, inputs, output") -> str:
    """The same with a ``setup_context`` of these lines."""
    lines = "".join(f"        {line}\n" if line else "\n" for line in setup.split("\n"))
    method = f"\n    @staticmethod\n    def setup_context({signature}):\n{lines}"
    text = fn(forward, params)
    at = text.index("\n    @staticmethod\n    def backward")
    return text[:at] + method + text[at:]


CASES = {
    "nothing": (fn("return x * y"), split("return x * y", '"""Nothing is kept for `backward`."""')),
    "both inputs": (
        fn("ctx.save_for_backward(x, y)\nreturn x * y"),
        split("return x * y", "x, y = inputs\nctx.save_for_backward(x, y)"),
    ),
    "one of them, in one line with another": (
        fn("ctx.save_for_backward(y); ctx.dim = y.dim()  # kept\nreturn x * y"),
        split("return x * y", "_, y = inputs\nctx.save_for_backward(y); ctx.dim = y.dim()  # kept"),
    ),
    "an input that is returned changed": (
        fn("x = x * y\nctx.save_for_backward(x)\nreturn x"),
        split("x = x * y\nreturn x", "ctx.save_for_backward(output)"),
    ),
    "an input that is changed afterwards": (
        fn("ctx.save_for_backward(x)\nx = x * y\nreturn x"),
        split("x = x * y\nreturn x", "x, _ = inputs\nctx.save_for_backward(x)"),
    ),
    "a blank line below what goes": (
        fn("ctx.save_for_backward(x, y)\nctx.dim = y.dim()\n\nreturn x * y"),
        split("return x * y", "x, y = inputs\nctx.save_for_backward(x, y)\nctx.dim = y.dim()"),
    ),
    "a blank line below a docstring": (
        fn('"""Multiply."""\n\nctx.save_for_backward(x, y)\n\nreturn x * y'),
        split('"""Multiply."""\n\nreturn x * y', "x, y = inputs\nctx.save_for_backward(x, y)"),
    ),
    "a comment for a tool": (
        fn("# pylint: disable=arguments-differ\n# For backward.\nctx.save_for_backward(x, y)\nreturn x * y"),
        split(
            "# pylint: disable=arguments-differ\nreturn x * y",
            "x, y = inputs\n# For backward.\nctx.save_for_backward(x, y)",
        ),
    ),
    "ctx in the docstring": (
        fn('"""Multiply.\n\nArgs:\n    ctx (Context): for\n        backward\n    x: a factor\n"""\nreturn x * y'),
        split('"""Multiply.\n\nArgs:\n    x: a factor\n"""\nreturn x * y', '"""Nothing is kept for `backward`."""'),
    ),
    "ctx alone in the docstring": (
        fn('"""Multiply.\n\nArgs:\n    ctx: kept\n"""\nreturn x * y'),
        split('"""Multiply.\n\nArgs:\n    ctx: kept\n"""\nreturn x * y', '"""Nothing is kept for `backward`."""'),
    ),
    "an object that changes": (
        fn("ctx.y = y\ny.n = 1\nreturn x * 2"),
        split("y.n = 1\nreturn x * 2", "_, y = inputs\nctx.y = y"),
    ),
    "a tuple of one": (
        fn("z = x * y\nctx.save_for_backward(z)\nreturn (z,)"),
        split("z = x * y\nreturn (z,)", "(z,) = output\nctx.save_for_backward(z)"),
    ),
    "a whole test": (
        fn("if x.dim() > 1:\n    # deep\n    ctx.deep = True\nelif len(y):\n    ctx.deep = None\n\nreturn x * y"),
        split(
            "return x * y",
            "x, y = inputs\nif x.dim() > 1:\n    # deep\n    ctx.deep = True\nelif len(y):\n    ctx.deep = None",
        ),
    ),
    "an attribute that forward reads": (
        fn("ctx.y = y\n# product\nz = x * ctx.y\nreturn z * ctx.y"),
        split("# product\nz = x * y\nreturn z * y", "_, y = inputs\nctx.y = y"),
    ),
    "an output that is filled first": (
        fn("z = torch.empty_like(x)\ntorch.mul(x, y, out=z)\nctx.save_for_backward(z)\nreturn z"),
        split("z = torch.empty_like(x)\ntorch.mul(x, y, out=z)\nreturn z", "ctx.save_for_backward(output)"),
    ),
    "another name for the ctx": (
        fn("c.save_for_backward(x)\nreturn x * y", "c, x, y"),
        split("return x * y", "x, _ = inputs\nc.save_for_backward(x)", signature="c, inputs, output"),
    ),
    "annotations": (
        fn("ctx.y = y\nreturn x * y", "ctx: Any, x: torch.Tensor, y: int = 2"),
        split("return x * y", "_, y = inputs\nctx.y = y", "x: torch.Tensor, y: int = 2"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_split(case: tuple[str, str], end: str, indent: str) -> None:
    text, expected = (each.replace("    ", indent).replace("\n", end) for each in case)
    assert_fixed(CODE, text, expected, unsafe=True)
    assert fixed_by(CODE, text) == text


NO_FIX = {
    "an input that is returned and saved": fn("ctx.save_for_backward(x)\nctx.y = y\nreturn x"),
    "an input that may be returned as it is": fn(
        "out = x.contiguous()\nctx.save_for_backward(out, y)\nreturn out, y * 2"
    ),
    "an input that is saved, and may be returned": fn("ctx.save_for_backward(x)\nreturn x.float()"),
    "an intermediate result": fn("z = x.exp()\nctx.save_for_backward(z)\nreturn z * y"),
    "a result that is bound anew": fn("z = x.exp()\nctx.save_for_backward(z)\nz = z * y\nreturn z"),
    "an input that was bound anew": fn("x = x.exp()\nctx.save_for_backward(x)\nreturn x * y"),
    "changed in place afterwards": fn("ctx.save_for_backward(x)\nx.mul_(2)\nreturn x * y"),
    "an attribute that is bound anew": fn("ctx.n = y.n\ny.n = 1\nreturn x * 2"),
    "a list that grows": fn("ctx.n = len(y)\ny.append(1)\nreturn x * 2"),
    "two returns": fn("ctx.y = y\nif y is None:\n    return x\nreturn x * y"),
    "in a loop": fn("for each in y:\n    ctx.last = each\nreturn x * 2"),
    "a test that does more": fn("if x.dim():\n    ctx.y = y\n    x = x * 2\nreturn x"),
    "a call that may not give the same later": fn("ctx.rng = torch.get_rng_state()\nreturn torch.rand_like(x) * x"),
    "a tensor that is computed": fn("ctx.mask = x > 0\nreturn x * y"),
    "what torch sets": fn("ctx.needs = x.requires_grad\nreturn x * y"),
    "the ctx goes elsewhere": fn("keep(ctx, x)\nreturn x * y"),
    "forward asks the ctx": fn("if ctx.needs_input_grad[0]:\n    x = x * 2\nreturn x"),
    "an attribute with two values": fn("ctx.y = y\nif x.dim():\n    ctx.y = None\nreturn x * ctx.y"),
    "a name of its own": fn("ctx.save_for_backward(output)\nreturn output * inputs", "ctx, output, inputs"),
    "a global of that name": fn("ctx.inputs = inputs\nreturn x * y"),
    "a keyword": fn("return x * y", "ctx, x, *, y"),
    "a star": fn("return args[0]", "ctx, *args"),
    "a decorator": fn("return x * y", decorator="    @torch.no_grad()\n"),
    "a type comment": fn("# type: (Any, Tensor, Tensor) -> Tensor\nreturn x * y"),
    "a comment at the end": fn("return x * y\n# as above"),
    "a subclass": fn("return x * y", tail="\n\nclass Second(Fn):\n    pass\n"),
    "one line with the return": fn("ctx.y = y; return x * y"),
    "too few gradients for the defaults": fn("ctx.y = y\nreturn x * 2", "ctx, x, y=2").replace(
        "grad, grad\n", "grad\n"
    ),
}


@pytest.mark.parametrize("text", NO_FIX.values(), ids=list(NO_FIX))
def test_no_fix(text: str) -> None:
    assert [each.code for each in lint(text, settings=only_rule(Settings(), CODE))] == [CODE]
    assert fixed_by(CODE, text, unsafe=True) == text


def test_an_older_torch_has_none_or_does_not_bind_defaults() -> None:
    plain, default = fn("return x * y"), fn("return x * y", "ctx, x, y=2")
    for text, version, fixed in (
        (plain, "1.13", False),
        (plain, "2.0", True),
        (default, "2.1", False),
        (default, "2.2", True),
    ):
        result = fixed_by(CODE, text, unsafe=True, options=f'target-torch = "{version}"\n')
        assert ("setup_context" in result) is fixed, (text, version)
