"""Which values are the same object, which share memory, and which events happen twice on one path."""

from __future__ import annotations

import libcst as cst
import pytest

from ctxlint.model.analyses.repeats import loop_around, repeated
from ctxlint.model.interpreter.events import ContextCall, Mutation, SavedRead
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Alias,
    Choice,
    Fresh,
    Opaque,
    Parameter,
    SomeTensor,
    Tri,
    View,
    same_object,
    storage,
    usual_storage,
)
from tests.model.models import backward_of, forward_of

A, B = cst.Name("a"), cst.Name("b")
X, Y = Parameter("input", 0, "x", Tri.YES), Parameter("input", 1, "y", Tri.YES)
MADE, CALLED = Fresh(A), Opaque(B)
FLAT, USUAL, CAST = View(X, A), View(X, A, Alias.USUALLY), View(X, A, Alias.POSSIBLY)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (X, Tri.YES),
        (Y, Tri.NO),
        (MADE, Tri.NO),
        (NONE, Tri.NO),
        (FLAT, Tri.NO),
        (USUAL, Tri.UNKNOWN),
        (CAST, Tri.UNKNOWN),
        (CALLED, Tri.UNKNOWN),
        (Choice((X, MADE)), Tri.UNKNOWN),
        (Choice((Y, MADE)), Tri.NO),
    ],
)
def test_same_object_as_an_input(value: object, answer: Tri) -> None:
    assert same_object(value, X) is answer  # type: ignore[arg-type]
    assert same_object(X, value) is answer  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [UNKNOWN, SomeTensor()])
def test_two_unknowns_need_not_be_one(value: object) -> None:
    assert same_object(value, value) is Tri.UNKNOWN  # type: ignore[arg-type]


def test_memory_of_views() -> None:
    assert storage(FLAT) == X
    assert storage(USUAL) is None
    assert usual_storage(View(USUAL, B)) == X
    assert usual_storage(CAST) is None


def test_a_choice_has_the_memory_that_all_its_options_share() -> None:
    assert usual_storage(Choice((X, USUAL))) == X
    assert storage(Choice((X, USUAL))) is None
    assert usual_storage(Choice((X, MADE))) is None


def test_what_is_copied_onto_itself_is_not_changed() -> None:
    method = forward_of("x, y:\n    x.copy_(x)\n    y.copy_(x)\n    return x + y")
    assert [each.name for each in method.facts.of(Mutation)] == ["y"]


SAVES = {
    "two in a row": ("ctx.save_for_backward(x)\n    ctx.save_for_backward(y)", 1),
    "two arms": ("if y:\n        ctx.save_for_backward(x)\n    else:\n        ctx.save_for_backward(y)", 0),
    "one arm and after": ("if y:\n        ctx.save_for_backward(x)\n    ctx.save_for_backward(y)", 1),
    "after an arm that returns": (
        "if y:\n        ctx.save_for_backward(x)\n        return x\n    ctx.save_for_backward(y)",
        0,
    ),
    "two tests": ("if y:\n        ctx.save_for_backward(x)\n    if x:\n        ctx.save_for_backward(y)", 0),
    "two flags": (
        (
            "if ctx.needs_input_grad[0]:\n        ctx.save_for_backward(x)\n"
            "    if ctx.needs_input_grad[1]:\n        ctx.save_for_backward(y)"
        ),
        1,
    ),
    "two opposite flags": (
        (
            "if ctx.needs_input_grad[0]:\n        ctx.save_for_backward(x)\n"
            "    if not ctx.needs_input_grad[0]:\n        ctx.save_for_backward(y)"
        ),
        0,
    ),
    "the same question twice": (
        (
            "if y is None:\n        ctx.save_for_backward(x)\n    z = x * 2\n"
            "    if y is None:\n        ctx.save_for_backward(z)"
        ),
        1,
    ),
    "a handler": ("try:\n        ctx.save_for_backward(x)\n    except OSError:\n        ctx.save_for_backward(y)", 0),
}


@pytest.mark.parametrize("name", SAVES)
def test_repeated(name: str) -> None:
    body, count = SAVES[name]
    calls = forward_of(f"x, y:\n    {body}\n    return x * y").facts.of(ContextCall)
    assert len(list(repeated(calls))) == count


LOOPS = {
    "in no loop": ("t = ctx.saved_tensors", False),
    "what a loop runs over": ("for t in ctx.saved_tensors:\n        g = g * t", False),
    "in a loop": ("for i in range(2):\n        g = g * ctx.saved_tensors[i]", True),
    "in a condition": ("while len(ctx.saved_tensors) > 9:\n        g = g * 2", True),
    "in a comprehension": ("t = [ctx.saved_tensors[i] for i in range(2)]", True),
    "what a comprehension runs over": ("t = [each for each in ctx.saved_tensors]", False),
    "in a loop for one turn": ("for i in range(2):\n        g = g * ctx.saved_tensors[i]\n        break", False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop_around(name: str) -> None:
    body, expected = LOOPS[name]
    method = backward_of(f"g:\n    {body}\n    return g")
    (read,) = method.facts.of(SavedRead)
    assert (loop_around(method, read) is not None) is expected
