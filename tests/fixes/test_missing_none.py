"""CTX203's fix: where None is inserted, for all ways to write gradients."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by
from tests.linting import lint

_CLASS = """import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {inputs}):
        ctx.save_for_backward(x, y)
        ctx.n = n
        return x * n + y

    @staticmethod
    def backward(ctx, g):
{body}"""


def _in(body: str, inputs: str) -> str:
    return _CLASS.format(inputs=inputs, body=body)


_LAST, _MIDDLE, _FIRST = "x, y, n: int", "x, n: int, y", "n: int, x, y"


@pytest.mark.parametrize(
    ("inputs", "before", "after"),
    [
        (_LAST, "return g * 1, g", "return g * 1, g, None"),
        (_MIDDLE, "return g * 1, g", "return g * 1, None, g"),
        (_FIRST, "return g * 1, g", "return None, g * 1, g"),
        (_LAST, "return (g, g)", "return (g, g, None)"),
        (_FIRST, "return (g, g)", "return (None, g, g)"),
        (_FIRST, "return(g, g)", "return(None, g, g)"),
        (_LAST, "return ((g), (g),)", "return ((g), (g), None,)"),
        (_MIDDLE, "return (g) , (g)", "return (g), None , (g)"),
        (_LAST, "return g, \\\n            g", "return g, \\\n            g, None"),
        (_MIDDLE, "return g, \\\n            g", "return g, None, \\\n            g"),
        (_LAST, "a = g; return a, g  # both", "a = g; return a, g, None  # both"),
        (_LAST, "return (g,) + (g,)", "return (g,) + (g, None)"),
        (_MIDDLE, "return (g,) + (g,)", "return (g, None) + (g,)"),
        (_LAST, "return tuple([g, g])", "return tuple([g, g, None])"),
        (_LAST, "return (g,) * 2", "return (g,) * 2 + (None,)"),
        (_LAST, "return g, *(g,)", "return g, *(g, None)"),
        (_LAST, "return (*(g,) * 2,)", "return (*(g,) * 2, None)"),
        (_LAST, "grads = g, g\n        return grads", "grads = g, g, None\n        return grads"),
        (_MIDDLE, "grads = (g, g)\n        return grads", "grads = (g, None, g)\n        return grads"),
        (_LAST, "grads = [g, g]\n        return tuple(grads)", "grads = [g, g, None]\n        return tuple(grads)"),
        (
            _LAST,
            "grads = g, g\n        print(grads)\n        return grads",
            "grads = g, g\n        print(grads)\n        return (*grads, None)",
        ),
        (
            _LAST,
            "grads = [g]\n        grads.append(g)\n        return tuple(grads)",
            "grads = [g]\n        grads.append(g)\n        return (*tuple(grads), None)",
        ),
        (
            _LAST,
            "if ctx.n:\n            a = g, g\n        else:\n            a = (g * 2, g)\n        return a",
            "if ctx.n:\n            a = g, g, None\n        else:\n            a = (g * 2, g, None)\n        return a",
        ),
        (
            _LAST,
            "grads = g, g\n        if ctx.n:\n            return grads\n        return grads",
            "grads = g, g, None\n        if ctx.n:\n            return grads\n        return grads",
        ),
        (
            _MIDDLE,
            "return (g, g) if ctx.n else (g, None, g)",
            "return (g, None, g) if ctx.n else (g, None, g)",
        ),
        (_LAST, "\u00e9 = '\u00fc'; return g, g", "\u00e9 = '\u00fc'; return g, g, None"),
    ],
)
def test_two_gradients(inputs: str, before: str, after: str) -> None:
    assert_fixed("CTX203", _in(f"        {before}\n", inputs), _in(f"        {after}\n", inputs))


def test_several_lines_keep_their_layout() -> None:
    before = "        return (\n            g,  # of x\n            # of y\n            g * 2,\n        )\n"
    last = before.replace("g * 2,\n", "g * 2,\n            None,\n")
    middle = before.replace("# of x\n", "# of x\n            None,\n")
    first = before.replace("(\n", "(\n            None,\n", 1)
    assert_fixed("CTX203", _in(before, _LAST), _in(last, _LAST))
    assert_fixed("CTX203", _in(before, _MIDDLE), _in(middle, _MIDDLE))
    assert_fixed("CTX203", _in(before, _FIRST), _in(first, _FIRST))


def test_the_last_element_without_a_comma_gets_one() -> None:
    before = "        return (  # both\n            g,\n            g * 2  # of y\n        )\n"
    after = before.replace("g * 2  # of y\n", "g * 2,  # of y\n            None\n")
    assert_fixed("CTX203", _in(before, _LAST), _in(after, _LAST))
    bare = "        return (\n            g,\n            g\n        )\n"
    assert_fixed(
        "CTX203", _in(bare, _LAST), _in(bare.replace("g\n        )", "g,\n            None\n        )"), _LAST)
    )


def test_elements_that_share_lines_stay_where_they_are() -> None:
    before = "        return (g,\n                g)\n"
    assert_fixed("CTX203", _in(before, _LAST), _in(before.replace("g)", "g, None)"), _LAST))
    assert_fixed("CTX203", _in(before, _MIDDLE), _in(before.replace("g,\n", "g, None,\n"), _MIDDLE))


def test_tabs_and_other_line_endings_stay() -> None:
    before = _in("        return (\n            g,\n            g,\n        )\n", _LAST)
    after = before.replace("            g,\n        )", "            g,\n            None,\n        )")
    for old, new in (("    ", "\t"), ("\n", "\r\n"), ("        )\n", "        )")):
        assert_fixed("CTX203", before.replace(old, new), after.replace(old, new))


_ONE = """import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {inputs}):
        ctx.n = n
        return x * n

    @staticmethod
    def backward(ctx, g):{body}"""


@pytest.mark.parametrize(
    ("inputs", "before", "after"),
    [
        ("x, n: int", " return g * ctx.n", " return g * ctx.n, None"),
        ("n: int, x", " return g * ctx.n", " return None, g * ctx.n"),
        ("n: int, x", " return-g", " return None, -g"),
        ("n: int, x", " return-g,", " return None, -g,"),
        ("n: int, x", " return(g * ctx.n)", " return None, (g * ctx.n)"),
        ("n: int, x, m: bool", " return(g)", " return None, (g), None"),
        ("n: int, x, m: bool", " return g,", " return None, g, None"),
        ("x, n: int", " return g,", " return g, None"),
        ("x, n: int", " return (g,)", " return (g, None)"),
        ("x, n: int, m: int", " return (g,)", " return (g, None, None)"),
        ("x, n: int", " return g if ctx.n else -g", " return g if ctx.n else -g, None"),
        ("x, n: int", " return g if ctx.n else None", " return g if ctx.n else None, None"),
        ("x, n: int", "\n        return g * \\\n            ctx.n", "\n        return g * \\\n            ctx.n, None"),
        (
            "x, n: int",
            "\n        return (\n            g\n            * ctx.n  # twice\n        )",
            "\n        return (\n            g\n            * ctx.n,  # twice\n            None,\n        )",
        ),
        (
            "n: int, x",
            "\n        return (  # why\n            g\n            * ctx.n\n        )",
            "\n        return (  # why\n            None,\n            g\n            * ctx.n,\n        )",
        ),
        ("x, n: int, m, k: int", " return (g,) + (None,) * 2", " return (g,) + (None,) * 3"),
        ("x, n: int, m: int, k: int", " return g, *[None] * 1", " return g, *[None] * 3"),
        ("x, n: int, m: int, k: int", " return g, *((None,) * 2)", " return g, *((None,) * 3)"),
        (
            "x, n: int, m: int, k: int",
            "\n        rest = (None,) * 2\n        return (g, *rest)",
            "\n        rest = (None,) * 3\n        return (g, *rest)",
        ),
        (
            "x, n: int, m: int, k: int",
            "\n        rest = (None, None)\n        return (g, *rest)",
            "\n        rest = (None, None, None)\n        return (g, *rest)",
        ),
    ],
)
def test_one_gradient(inputs: str, before: str, after: str) -> None:
    text = _ONE.format(inputs=inputs, body=f"{before}\n").replace("m, k", "m: int, k")
    assert_fixed("CTX203", text, text.replace(before, after))


def test_every_return_is_fixed_in_one_run() -> None:
    text = _ONE.format(
        inputs="x, n: int",
        body="""
        if ctx.n == 1:
            return g
        elif ctx.n == 2:
            return (
                g * 2,
            )
        grads = -g,
        return grads
""",
    )
    after = (
        text.replace("return g\n", "return g, None\n")
        .replace("g * 2,\n", "g * 2,\n                None,\n")
        .replace("-g,\n", "-g, None\n")
    )
    assert_fixed("CTX203", text, after)


def test_what_a_form_feed_hides_from_the_parser_is_left_alone() -> None:
    text = _ONE.format(inputs="x, n: int", body="\n        return g * ctx.n\n").replace("    @static", "\f    @static")
    assert fixed_by("CTX203", text) in (text, text.replace("g * ctx.n", "g * ctx.n, None"))


def test_a_tuple_that_others_see_too_is_not_changed() -> None:
    text = _ONE.format(
        inputs="x, n: int",
        body="""
        grads = g if ctx.n else (g, None)
        print(grads)
        return grads
""",
    )
    assert fixed_by("CTX203", text, unsafe=True) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (" return g, None, None", " return g, None"),
        (" return (g, None, None)", " return (g, None)"),
        (" return g, None, None,", " return g, None,"),
        (" return (g,) + (None,) * 3", " return (g,) + (None,) * 1"),
        (" return g, *(None,) * 2", " return g, *(None,) * 1"),
        ("\n        a = (g, None, None)\n        return a", "\n        a = (g, None)\n        return a"),
        (
            "\n        return (\n            g,\n            None,\n            None,\n        )",
            "\n        return (\n            g,\n            None,\n        )",
        ),
    ],
)
def test_surplus_none_is_left_out(before: str, after: str) -> None:
    text = _ONE.format(inputs="x, n: int", body=f"{before}\n")
    assert_fixed("CTX206", text, text.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (" return g, None", " return g"),
        (" return g, None,", " return g"),
        (" return (g, None)", " return (g,)"),
        (" return (g, None,)", " return (g,)"),
        (" return g, None, None", " return g"),
    ],
)
def test_one_gradient_alone_is_left(before: str, after: str) -> None:
    text = _ONE.format(inputs="x", body=f"{before}\n").replace("ctx.n = n", "n = 2")
    assert_fixed("CTX206", text, text.replace(before, after))


def test_a_comment_among_the_surplus_goes_only_where_that_is_asked_for() -> None:
    body = (
        "\n        return (\n            g,\n            None,\n            # no more\n            None,\n        )\n"
    )
    text = _ONE.format(inputs="x, n: int", body=body)
    assert fixed_by("CTX206", text) == text
    assert_fixed("CTX206", text, text.replace("            # no more\n            None,\n", ""), unsafe=True)
    text = _ONE.format(inputs="x, n: int", body=" return g, None, None  # one for the flag\n")
    assert fixed_by("CTX206", text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (" return g, -g", " return g, None"),
        (" return (g,\n                g * 2)", " return (g,\n                None)"),
        (" return tuple([g, g])", " return tuple([g, None])"),
        ("\n        a = g, g\n        return a", "\n        a = g, None\n        return a"),
    ],
)
def test_a_gradient_for_what_is_no_tensor_becomes_none(before: str, after: str) -> None:
    text = _ONE.format(inputs="x, n: int", body=f"{before}\n")
    assert fixed_by("CTX204", text) == text
    assert_fixed("CTX204", text, text.replace(before, after), unsafe=True)


_ANNOTATED = """from typing import Optional, Tuple

import torch
from elsewhere import x


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {inputs}):
        ctx.n = n
        return x * n

    @staticmethod
    def backward(ctx, g) -> {returns}:  # comment
        {body}
"""


@pytest.mark.parametrize(
    ("code", "inputs", "before", "after"),
    [
        ("CTX203", "x, n: int", ("torch.Tensor", "return g * 1"), ("Tuple[torch.Tensor, None]", "return g * 1, None")),
        ("CTX203", "n: int, x", ("torch.Tensor", "return g * 1"), ("Tuple[None, torch.Tensor]", "return None, g * 1")),
        (
            "CTX203",
            "x, n: int",
            ("Optional[torch.Tensor]", "return g * 1"),
            ("Tuple[Optional[torch.Tensor], None]", "return g * 1, None"),
        ),
        ("CTX203", "x, n: int", ("object", "return g * 1"), ("object", "return g * 1, None")),
        (
            "CTX203",
            "x, n: int, y",
            ("tuple[torch.Tensor, torch.Tensor]", "return g * 1, g + 1"),
            ("tuple[torch.Tensor, None, torch.Tensor]", "return g * 1, None, g + 1"),
        ),
        (
            "CTX203",
            "x, y, n: int",
            ("tuple[torch.Tensor, torch.Tensor, None]", "return g * 1, g + 1"),
            ("tuple[torch.Tensor, torch.Tensor, None]", "return g * 1, g + 1, None"),
        ),
        (
            "CTX203",
            "x, y, n: int",
            ("tuple[torch.Tensor, ...]", "return g * 1, g + 1"),
            ("tuple[torch.Tensor, ...]", "return g * 1, g + 1, None"),
        ),
        (
            "CTX203",
            "x, y, n: int",
            (
                "tuple[torch.Tensor, torch.Tensor]",
                "if ctx.n:\n            return g, g * 1\n        return g * 1, g + 1",
            ),
            (
                "tuple[torch.Tensor, torch.Tensor, None]",
                "if ctx.n:\n            return g, g * 1, None\n        return g * 1, g + 1, None",
            ),
        ),
        (
            "CTX206",
            "x, n: int",
            ("tuple[torch.Tensor, None, None]", "return g * 1, None, None"),
            ("tuple[torch.Tensor, None]", "return g * 1, None"),
        ),
        (
            "CTX206",
            "n",
            ("Tuple[torch.Tensor, None]", "x = n\n        return g * 1, None"),
            ("torch.Tensor", "x = n\n        return g * 1"),
        ),
        (
            "CTX206",
            "x, n: int",
            ("Tuple[torch.Tensor, None]", "return g * 1, None, None"),
            ("Tuple[torch.Tensor, None]", "return g * 1, None"),
        ),
        (
            "CTX204",
            "x, n: int",
            ("Tuple[torch.Tensor, torch.Tensor]", "return g * 1, g * 2"),
            ("Tuple[torch.Tensor, None]", "return g * 1, None"),
        ),
    ],
)
def test_the_return_annotation_stays_true(
    code: str, inputs: str, before: tuple[str, str], after: tuple[str, str]
) -> None:
    old, new = (_ANNOTATED.format(inputs=inputs, returns=returns, body=body) for returns, body in (before, after))
    assert_fixed(code, old, new, unsafe=code == "CTX204")


@pytest.mark.parametrize(
    ("header", "written"),
    [
        ("import torch\n", "tuple"),
        ("import torch\n\nname: Optional[list[str]] = None\n", "tuple[torch.Tensor, None]"),
        ("import torch\n\n\ndef f(x: int | None) -> int: ...\n", "tuple[torch.Tensor, None]"),
        ("import torch\n\nfirst = {1: names[0]}\nsecond = {1: list[0]}\n", "tuple[torch.Tensor, None]"),
        ("from __future__ import annotations\n\nimport torch\n", "tuple[torch.Tensor, None]"),
    ],
)
def test_an_annotation_that_the_python_of_the_file_can_evaluate(header: str, written: str) -> None:
    body = _ANNOTATED.partition("\n\n\n")[2]
    old, new = (
        f"{header}\n\n{body.format(inputs='x, n: int', returns=returns, body=gradients)}"
        for returns, gradients in (("torch.Tensor", "return g * 1"), (written, "return g * 1, None"))
    )
    assert_fixed("CTX203", old, new)


QUANTIZE = """
import torch
from quantization import quantize


class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, centers, sigma, layout):
        return quantize(x, centers, sigma, layout)

    @staticmethod
    def backward(ctx, grad_output):
        return {gradients}
"""


def test_none_after_those_that_follow_the_gradient_of_the_first_input() -> None:
    old, new = (QUANTIZE.format(gradients=f"grad_output.clamp(-1, 1){more}") for more in (", None, None", ", None" * 3))
    assert fixed_by("CTX201", old) == old
    assert_fixed("CTX201", old, new, unsafe=True)


@pytest.mark.parametrize("gradients", ["grad_output * 2", "None, grad_output", "grad_output * 2, grad_output, None"])
def test_no_none_if_the_gradients_may_be_those_of_other_inputs(gradients: str) -> None:
    text = QUANTIZE.format(gradients=gradients)
    assert fixed_by("CTX201", text, unsafe=True) == text


AFFINE = """
import torch


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {inputs}):
        ctx.save_for_backward(x, weight)
        return x * weight + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x, grad_weight, grad_bias = grad_output * weight, grad_output * x, grad_output.clone()
        return {gradients}
"""


@pytest.mark.parametrize(
    ("inputs", "gradients"),
    [
        ("x, weight, bias, eps: float", "grad_x, grad_weight, None"),
        ("x, weight, bias, steps", "grad_weight, grad_bias, None"),
        ("x, weight, bias", "grad_x, grad_weight"),
        ("x, weight, bias", "grad_output * weight, None"),
        ("mask, x, weight, bias", "grad_weight, grad_x, grad_bias"),
    ],
)
def test_no_none_in_place_of_a_gradient(inputs: str, gradients: str) -> None:
    found = lint(AFFINE.format(inputs=inputs, gradients=gradients))
    assert [(each.code, each.fix) for each in found if each.code in ("CTX201", "CTX203")] == [("CTX201", None)]
