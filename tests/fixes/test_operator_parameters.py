"""CTX801's fix: names of the parameters of `setup_context`."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_OPERATOR = """import torch


@torch.library.custom_op("demo::f", mutates_args=())
def f(x: torch.Tensor{more}) -> torch.Tensor:
    return x * 2


def backward(ctx, g):
    return g * 2


def keep({parameters}):
    {body}


f.register_autograd(backward, setup_context=keep)
"""
_KEYED = ", *, n: int = 2"


def _operator(parameters: str, body: str = "pass", more: str = "") -> str:
    return _OPERATOR.format(parameters=parameters, body=body, more=more)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("ctx, inputs, outputs", "ctx.x = outputs"), ("ctx, inputs, output", "ctx.x = output")),
        (("c, inputs, output", "c.x = inputs[0]"), ("ctx, inputs, output", "ctx.x = inputs[0]")),
        (("ctx, outputs, inputs", "pass"), ("ctx, output, inputs", "pass")),
        (("ctx, *, inputs, out: 'T'", "pass"), ("ctx, *, inputs, output: 'T'", "pass")),
        (("ctx, inputs, outputs, verbose=0", "pass"), ("ctx, inputs, output, verbose=0", "pass")),
        (("ctx, inputs, keyword_only_inputs, output", "pass"), ("ctx, inputs, output", "pass")),
        (("ctx, inputs, output", "pass", _KEYED), ("ctx, inputs, keyword_only_inputs, output", "pass", _KEYED)),
        (("output, ctx, inputs", "pass", _KEYED), ("output, ctx, inputs, keyword_only_inputs", "pass", _KEYED)),
        (
            ("\n    ctx,\n    inputs,  # all\n    output,\n", "pass", _KEYED),
            ("\n    ctx,\n    inputs,  # all\n    keyword_only_inputs,\n    output,\n", "pass", _KEYED),
        ),
        (
            ("ctx, inputs, kwargs, output", "ctx.n = kwargs['n']", _KEYED),
            ("ctx, inputs, keyword_only_inputs, output", "ctx.n = keyword_only_inputs['n']", _KEYED),
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_is_certain(before: tuple[str, ...], after: tuple[str, ...], ending: str) -> None:
    assert_fixed("CTX801", _operator(*before).replace("\n", ending), _operator(*after).replace("\n", ending))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            ("ctx, i, o", "ctx.save_for_backward(*i, o)"),
            ("ctx, inputs, output", "ctx.save_for_backward(*inputs, output)"),
        ),
        (("a, inputs, b", "b.x = a"), ("ctx, inputs, output", "output.x = ctx")),
        (("ctx, inputs, o=None", "pass"), ("ctx, inputs, output=None", "pass")),
    ],
)
def test_what_is_only_likely(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    assert fixed_by("CTX801", _operator(*before)) == _operator(*before)
    assert_fixed("CTX801", _operator(*before), _operator(*after), unsafe=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ctx, inputs", "pass"),
        ("ctx, *rest", "pass"),
        ("ctx, inputs, out, /", "pass"),
        ("ctx, out, ins", "pass", _KEYED),
        ("ctx, out, inputs, more", "pass"),
        ("c, outputs, inputs", "pass"),
        ("ctx, inputs, out", "output = out"),
        ("ctx, inputs, out", "return lambda: (output, out)"),
        ("ctx, inputs, more, output", "print(more)"),
        ("ctx, inputs=(), output=()", "pass", _KEYED),
        ("ctx, inputs, output", "keyword_only_inputs = 1", _KEYED),
    ],
)
def test_what_is_not_plain_stays(arguments: tuple[str, ...]) -> None:
    assert fixed_by("CTX801", _operator(*arguments), unsafe=True) == _operator(*arguments)


def test_another_use_of_the_function() -> None:
    more = "\nkeep(None, inputs=(), outputs=None)\n"
    text, expected = _operator("ctx, inputs, outputs") + more, _operator("ctx, inputs, output") + more
    assert fixed_by("CTX801", text) == text
    assert_fixed("CTX801", text, expected, unsafe=True)
    text = _operator("ctx, inputs, output", more=_KEYED) + more
    assert fixed_by("CTX801", text, unsafe=True) == text


def test_one_function_for_two_operators() -> None:
    second = (
        '\n\n@torch.library.custom_op("demo::g", mutates_args=())\ndef g(x: torch.Tensor{more}) -> torch.Tensor:\n'
        "    return x * 2\n\n\ng.register_autograd(backward, setup_context=keep)\n"
    )
    both = second.format(more="")
    assert_fixed("CTX801", _operator("ctx, inputs, outs") + both, _operator("ctx, inputs, output") + both)
    text = _operator("ctx, inputs, output") + second.format(more=_KEYED)
    assert fixed_by("CTX801", text, unsafe=True) == text
