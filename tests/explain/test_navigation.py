"""From ``ctx.a`` to where it is set, from an unpacked name to the tensor that was saved, and back."""

from __future__ import annotations

from ctxlint.explain.definitions import definition, references
from tests.explain.contracts import file_of, point, shown

CODE = """
class Fn(Function):
    @staticmethod
    def forward(ctx, x, scale):
        if scale is None:
            ctx.scale = 1.0
        else:
            ctx.scale = scale
        ctx.save_for_backward(x, x * 2)
        return x * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        first, second = ctx.saved_tensors
        factor = ctx.scale + getattr(ctx, "extra", 0)
        return grad * factor + first + ctx.saved_tensors[1], None


class Other(Function):
    @staticmethod
    def forward(ctx, y):
        ctx.scale = 3
        return y

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y * ctx.scale * 3
"""
FILE = file_of(CODE)


def test_an_attribute_leads_to_every_place_that_sets_it() -> None:
    line, column = point(FILE, "factor = ctx.sc|ale")
    assert shown(FILE, definition(FILE, line, column)) == ["5: scale", "7: scale"]
    assert shown(FILE, references(FILE, line, column)) == ["5: scale", "7: scale", "9: scale", "14: scale"]
    assert shown(FILE, references(FILE, line, column, include_definition=False)) == ["9: scale", "14: scale"]


def test_classes_are_kept_apart() -> None:
    line, column = point(FILE, "grad_y * ctx.scale| * 3")
    assert shown(FILE, definition(FILE, line, column)) == ["21: scale"]


def test_an_unpacked_name_leads_to_its_saved_tensor() -> None:
    line, column = point(FILE, "first, |second =")
    assert shown(FILE, definition(FILE, line, column)) == ["8: x * 2"]
    assert shown(FILE, references(FILE, line, column)) == ["8: x * 2", "13: second", "15: ctx.saved_tensors[1]"]


def test_every_use_of_an_unpacked_name_leads_to_its_saved_tensor() -> None:
    line, column = point(FILE, "factor + fi|rst +")
    assert shown(FILE, definition(FILE, line, column)) == ["8: x"]
    assert shown(FILE, references(FILE, line, column)) == ["8: x", "13: first", "15: first"]


def test_a_starred_name_leads_to_the_saved_tensors_in_it() -> None:
    code = CODE.replace("save_for_backward(x, x * 2)", "save_for_backward(x, scale, x * 2)")
    file = file_of(code.replace("first, second =", "first, *rest =").replace("ctx.saved_tensors[1]", "rest[1]"))
    for place in ("first, *re|st =", "re|st[1]"):
        line, column = point(file, place)
        assert shown(file, definition(file, line, column)) == ["8: scale", "8: x * 2"]
        assert shown(file, references(file, line, column, include_definition=False)) == ["13: rest", "15: rest"]


def test_a_name_that_is_bound_again_leads_nowhere() -> None:
    for again in ("first = first * 2", "for first in grad: pass", "[first for first in grad]", "def f(first): ..."):
        file = file_of(CODE.replace("        factor =", f"        {again}\n        factor ="))
        assert definition(file, *point(file, "factor + fi|rst +")) == (), again


def test_a_saved_tensor_leads_to_where_it_is_read() -> None:
    line, column = point(FILE, "save_for_backward(|x, x")
    assert shown(FILE, references(FILE, line, column, include_definition=False)) == ["13: first", "15: first"]


def test_what_is_set_nowhere_in_view_has_no_definition() -> None:
    line, column = point(FILE, 'getattr(|ctx, "extra", 0)')
    assert definition(FILE, line, column) == ()
    assert shown(FILE, references(FILE, line, column)) == ['14: getattr(ctx, "extra", 0)']


def test_other_code_has_neither() -> None:
    line, column = point(FILE, "grad |* factor")
    assert definition(FILE, line, column) == ()
    assert references(FILE, line, column) == ()
