"""How many gradients are expected, why some are missing, and which returns of backward lose one."""

from __future__ import annotations

import pytest

from ctxlint.model.analyses.fall_through import lost_path
from ctxlint.model.analyses.gradient_placements import Placement, shortfalls
from tests.model.models import function, read_code

_KEPT = """
{parameters}:
    ctx.n = n
    ctx.m = m
    return x * n + m
"""


def _placement(forward: str, gradients: str) -> Placement | None:
    """The explanation of the one shortfall of a Function whose backward returns ``gradients``."""
    fn = function(forward, f"g:\n    return {gradients}")
    (shortfall,) = shortfalls(fn, defaults_are_bound=True)
    return shortfall.placement


def _filled(placement: Placement | None) -> str | None:
    """The gradients with None put in: ``.`` for a None, ``g`` for a gradient."""
    return None if placement is None else "".join("." if slot is None else "g" for slot in placement.slots)


@pytest.mark.parametrize(
    ("parameters", "gradients", "filled", "missing"),
    [
        ("x, n: int, m: int", "g", "g..", (1, 2)),
        ("x, n: int, m: int", "g, None", "g..", (2,)),
        ("n: int, x, m: int", "g", ".g.", (0, 2)),
        ("n: int, x, m: int", "g, None", ".g.", (0,)),
        ("n: int, m: int, x", "g", "..g", (0, 1)),
        ("n: int, m: int, x", "None, g", "..g", (1,)),
        ("x, n: int, y, m: int", "g, g", "g.g.", (1, 3)),
        ("x, n: int, y, m: int", "g, None, g", "g.g.", (3,)),
        ("x, n: int, y, m: int", "g, g, None", "g.g.", (1,)),
    ],
)
def test_none_goes_to_what_is_no_tensor(parameters: str, gradients: str, filled: str, missing: tuple[int, ...]) -> None:
    placement = _placement(_KEPT.format(parameters=parameters), gradients)
    assert placement is not None
    assert (_filled(placement), placement.missing) == (filled, missing)
    assert placement.unique
    assert placement.certain


@pytest.mark.parametrize("gradients", ["g", "None", "None, None", "g, None, None"])
def test_a_gradient_that_is_missing_is_not_explained(gradients: str) -> None:
    assert _placement("x, n: int, y, z:\n    return x * n + y + z", gradients) is None


def test_what_is_kept_on_ctx_as_it_is_looks_like_no_tensor() -> None:
    placement = _placement(_KEPT.format(parameters="x, n, m"), "g")
    assert placement is not None
    assert not placement.certain


@pytest.mark.parametrize(
    "forward",
    [
        "x, n:\n    ctx.n = n\n    ctx.save_for_backward(n)\n    return x * n",
        "x, n:\n    ctx.n = n\n    return x @ n",
        "x, n:\n    ctx.n = n\n    return x * n.sum()",
        "x, n:\n    ctx.n = n * 2\n    return x * n",
        "x, n: torch.Tensor:\n    ctx.n = n\n    return x * n",
    ],
)
def test_what_may_be_a_tensor_does_not(forward: str) -> None:
    assert _placement(forward, "g * ctx.n") is None


@pytest.mark.parametrize("use", ["ctx.n.t()", "ctx.n.to(g.dtype)", "g @ ctx.n"])
def test_nor_does_what_backward_uses_as_a_tensor(use: str) -> None:
    fn = function("x, n:\n    ctx.n = n\n    return x * n", f"g:\n    kept = {use}\n    return g * kept")
    (shortfall,) = shortfalls(fn, defaults_are_bound=True)
    assert shortfall.placement is None


def test_none_beside_a_missing_one_may_be_read_in_two_ways() -> None:
    placement = _placement("x, weight, n: int:\n    return x * weight * n", "g, None")
    assert _filled(placement) == "g.."
    assert placement is not None
    assert not placement.unique


def test_the_longest_call_counts_where_no_return_has_enough_for_it() -> None:
    fn = read_code(
        """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, n=1, m=2):
                return x * n * m

            @staticmethod
            def backward(ctx, g):
                if g.dim():
                    return g * 1
                return g * 1, None

        def call(x):
            Fn.apply(x)
            Fn.apply(x, 2)
            Fn.apply(x, 2, 3)
            Fn.apply(x, *x)
        """
    ).by_name["Fn"]
    found = [(each.returned.count, each.expected.count) for each in shortfalls(fn, defaults_are_bound=True)]
    assert found == [(1, 3), (2, 3)]


# ---------------------------------------------------------------------------------------------------------------------
# Ends of backward


def _lost(body: str, forward: str = "x:\n    return x.clone()") -> list[str] | None:
    """The conditions on the path to the return that loses a gradient."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    path = lost_path(function(forward, f"g:\n{lines}"))
    return None if path is None else [f"{'' if guard.holds else 'not '}{guard.text or guard.arm}" for guard in path]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("pass", []),
        ("if ctx.a:\n    return g", ["not ctx.a"]),
        ("if ctx.a:\n    g = g * 2\nif ctx.b:\n    return g", ["not ctx.b"]),
        ("if ctx.a:\n    if ctx.b:\n        return g\nelse:\n    return g", ["ctx.a", "not ctx.b"]),
        ("if ctx.a:\n    return g\nelif ctx.b:\n    g = g * 2\nelse:\n    return g", ["not ctx.a", "ctx.b"]),
        ("try:\n    return g\nexcept ValueError:\n    pass", ["except"]),
        ("try:\n    raise ValueError\nfinally:\n    pass", None),
        ("while True:\n    if ctx.a:\n        return g", None),
        ("for each in ctx.many:\n    if each:\n        return g", None),
        ("if ctx.a:\n    return g\nelif ctx.b:\n    return g", None),
        ("if ctx.a == 1:\n    return g\nif ctx.a == 2:\n    return g", None),
        ("if ctx.a:\n    return g\nif not ctx.a:\n    return g", None),
        ("if ctx.needs_input_grad[0]:\n    return g", None),
        ("if any(ctx.needs_input_grad):\n    return g", None),
        ("if g is not None:\n    return g", None),
        ("raise_not_supported()", None),
    ],
)
def test_the_end_of_backward(body: str, path: list[str] | None) -> None:
    assert _lost(body) == path


def test_a_helper_that_always_raises_is_an_end() -> None:
    code = "g:\n    if ctx.a:\n        return g\n    refuse(g)"
    fn = function(backward=code, before="def refuse(what):\n    raise ValueError(what)\n")
    assert lost_path(fn) is None


def test_the_flag_of_one_input_does_not_excuse_the_gradient_of_another() -> None:
    forward = "x: torch.Tensor, y: torch.Tensor:\n    return x + y"
    assert _lost("if ctx.needs_input_grad[0]:\n    return g, g * 2", forward) == ["not ctx.needs_input_grad[0]"]
    assert _lost("if ctx.needs_input_grad[0]:\n    return g, None", forward) is None


@pytest.mark.parametrize(
    ("parameters", "gradients", "filled"),
    [
        ("x, y, n: int", "g, None", "g.."),  # as it is written
        ("x, y, n: int", "None, g", ".g."),
        ("x, y, z, n: int", "dx, None, None", "g..."),
        ("x, y, z, n: int", "None, dy, None", ".g.."),
        ("n: int, x, m: int, y, k: int", "None, dx, None, dy", ".g.g."),
        ("x, n: int, y, z, m: int", "dx, None, dz, None", "g..g."),  # as the names say
        ("x, n: int, y, z, m: int", "dx.sum(), None, grad_z[0], None", "g..g."),
        ("x, n: int, y, z, m: int", "x_grad, None, g_y, None", "g.g.."),
        ("x, y, n: int", "None, dx", None),  # no way does
    ],
)
def test_where_none_likely_belongs(parameters: str, gradients: str, filled: str | None) -> None:
    names = {each.split(":")[0] for each in parameters.split(", ")} - {"n", "m", "k"}
    used = " + ".join(sorted(names))
    fn = function(f"{parameters}:\n    return {used}", f"g:\n    return {gradients}")
    (shortfall,) = shortfalls(fn, defaults_are_bound=True)
    placement = shortfall.placement
    assert (_filled(placement) if placement is not None and placement.likely else None) == filled
