"""CTX603's fixes: names of torch 0.3, wherever they may occur."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by
from tests.linting import lint

_CLASS = """{imports}

class F({base}):
    @staticmethod
    def forward(ctx, x, y):
{forward}
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None
"""
_TORCH = "import torch\nfrom torch.autograd import Variable\n"
_INPLACE = "from torch.autograd.function import InplaceFunction\n"


def _class(forward: str = "        pass", base: str = "torch.autograd.Function", imports: str = _TORCH) -> str:
    return _CLASS.format(forward=forward, base=base, imports=imports)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("        z = Variable(x)", "        z = x"),
        ("        x = Variable(x)\n        x = x + y", "        x = x + y"),
        ("        x = Variable(x + y)  # sum", "        x = x + y  # sum"),
        ("        x = Variable(data=x + y).exp()", "        x = (x + y).exp()"),
        ("        x = 2 * torch.autograd.Variable(x + y,)", "        x = 2 * (x + y)"),
        ("        x = f(Variable(x + y), *Variable(x + y))", "        x = f(x + y, *(x + y))"),
        ("        x = [Variable(x + y), (Variable(x + y))]", "        x = [x + y, (x + y)]"),
        ("        x = Variable((x + y)).exp()", "        x = (x + y).exp()"),
        ("        x = Variable(x)if y else Variable(Variable(y))", "        x = (x)if y else y"),
        ("        x = Variable(z := x + y)", "        x = (z := x + y)"),
        ("        z = Variable(x, requires_grad=False, volatile=True)", "        z = x"),
        ("        x = Variable(x + y, requires_grad=True)", "        x = (x + y).detach().requires_grad_()"),
        ("        x = Variable(x, True)", "        x = x.detach().requires_grad_()"),
        ("        x = Variable(x, requires_grad=y.z)", "        x = x.detach().requires_grad_(y.z)"),
        (
            "        x = Variable(  # sum\n            x  # first\n            + y,  # second\n        ).exp()",
            "        x = (  # sum\n            x  # first\n            + y  # second\n        ).exp()",
        ),
        (
            "        x = Variable(\n            f(x,\n              y),\n            requires_grad=False,  # no\n        )",
            "        x = (\n            f(x,\n              y)  # no\n        )",
        ),
        (
            "        with torch.enable_grad():\n            x = Variable(x + y) * 2",
            "        with torch.enable_grad():\n            x = (x + y).detach() * 2",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_variable(before: str, after: str, ending: str) -> None:
    imports = _TORCH if "torch.autograd.Variable" in before else "import torch\n"  # the last use takes its import along
    text, expected = (each.replace("\n", ending) for each in (_class(before), _class(after, imports=imports)))
    assert fixed_by("CTX603", text) == text
    assert_fixed("CTX603", text, expected, unsafe=True)


@pytest.mark.parametrize(
    "call",
    [
        "Variable()",
        "Variable(None)",
        "Variable(2.0)",
        "Variable([x])",
        "Variable(*x)",
        "Variable(**x)",
        "Variable(x, True, False, None)",
        "Variable(x, volatile=f())",
        "Variable(x, name='x')",
        "Variable(\n            x, requires_grad=True\n        )",
        "Variable(\n            x,  # why\n            requires_grad=False)",
        "(Variable\n             (x\n))",
    ],
)
def test_what_is_more_than_one_tensor_stays(call: str) -> None:
    assert fixed_by("CTX603", _class(f"        x = {call}"), unsafe=True) == _class(f"        x = {call}")


@pytest.mark.parametrize(
    ("imports", "before", "after", "left"),
    [
        (f"import torch\n{_INPLACE}", "InplaceFunction", "torch.autograd.Function", "import torch\n"),
        ("import torch\n", "torch.autograd.function.InplaceFunction", "torch.autograd.Function", "import torch\n"),
        (
            "from torch.autograd.function import Function as Base, InplaceFunction\n",
            "InplaceFunction  # old\n",
            "Base  # old\n",
            "from torch.autograd.function import Function as Base\n",
        ),
        (
            f"from typing import Generic, T\nimport torch\n{_INPLACE}",
            "Generic[T], InplaceFunction",
            "Generic[T], torch.autograd.Function",
            "from typing import Generic, T\nimport torch\n",
        ),
    ],
)
def test_inplace_function(imports: str, before: str, after: str, left: str) -> None:
    text = _class(base=before, imports=imports)
    assert fixed_by("CTX603", text) == text
    assert_fixed("CTX603", text, _class(base=after, imports=left), unsafe=True)


def test_function_is_imported_where_the_file_has_no_name_for_it() -> None:
    text = _class(base="InplaceFunction", imports=_INPLACE)
    assert_fixed("CTX603", text, _class(base="Function", imports="from torch.autograd import Function\n"), unsafe=True)


@pytest.mark.parametrize(
    ("imports", "forward", "more"),
    [
        (f"import torch\n{_INPLACE}", "        pass", "\n\nF(True).apply(1, 2)\n"),
        (f"import torch\n{_INPLACE}", "        pass", "\n    def __init__(self):\n        super().__init__(True)\n"),
        (f"{_INPLACE}\n\nclass Function:\n    pass\n", "        pass", ""),
    ],
)
def test_a_base_that_counts_stays(imports: str, forward: str, more: str) -> None:
    text = _class(forward, "InplaceFunction", imports) + more
    assert fixed_by("CTX603", text, unsafe=True) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("        ctx.mark_shared_storage((x, y))\n        x = x + 1", "        x = x + 1"),
        ("        ctx.mark_shared_storage((x, y))  # why\n        y = x", "        # why\n        y = x"),
        ("        ctx.mark_shared_storage([x.t, y]); y = x", "        y = x"),
        ("        if y: ctx.mark_shared_storage()", "        if y: pass"),
    ],
)
def test_shared_storage(before: str, after: str) -> None:
    assert_fixed("CTX603", _class(before), _class(after))


@pytest.mark.parametrize(
    "forward",
    [
        "        y = ctx.mark_shared_storage((x, y))",
        "        ctx.mark_shared_storage((x, f(y)))",
        "        y or ctx.mark_shared_storage((x, y))",
    ],
)
def test_a_call_that_is_more_than_a_statement_stays(forward: str) -> None:
    assert fixed_by("CTX603", _class(forward), unsafe=True) == _class(forward)


def test_a_comment_inside_is_lost_only_where_that_is_asked_for() -> None:
    text = _class("        ctx.mark_shared_storage(\n            (x, y)  # both\n        )\n        y = x")
    assert fixed_by("CTX603", text) == text
    assert fixed_by("CTX603", text, unsafe=True) == _class("        y = x")


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("Variable(x)", "Use the tensor"),
        ("Variable(x.data, requires_grad=True)", "Write `x.detach().requires_grad_()`"),
        (f"Variable({'x + ' * 20}y, requires_grad=True)", "Write the detached tensor"),
    ],
)
def test_the_title_says_what_is_written(given: str, title: str) -> None:
    (found,) = [each for each in lint(_class(f"        z = {given}")) if each.code == "CTX603"]
    assert found.fix is not None
    assert found.fix.message == title
