"""Which classes are Functions: every way to name the base class seen in real code, and look-alikes."""

from __future__ import annotations

import textwrap

import pytest

from tests.model.models import read

BODY = """
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad
"""


def functions_of(code: str) -> list[str]:
    """The qualified names of the Functions of a file, in which ``BODY`` is replaced by the body of one."""
    lines = []
    for line in textwrap.dedent(code).strip("\n").split("\n"):
        if line.strip() == "BODY":
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(textwrap.indent(textwrap.dedent(BODY), indent))
        else:
            lines.append(line)
    return [each.qualname for each in read("\n".join(lines) + "\n").functions]


OURS = {
    "torch.autograd.Function": """
        import torch
        class Fn(torch.autograd.Function):
            BODY
    """,
    "import torch as th": """
        import torch as th
        class Fn(th.autograd.Function):
            BODY
    """,
    "from torch import autograd": """
        from torch import autograd
        class Fn(autograd.Function):
            BODY
    """,
    "from torch import autograd as ag": """
        from torch import autograd as ag
        class Fn(ag.Function):
            BODY
    """,
    "import torch.autograd": """
        import torch.autograd
        class Fn(torch.autograd.Function):
            BODY
    """,
    "import torch.autograd as ag": """
        import torch.autograd as ag
        class Fn(ag.Function):
            BODY
    """,
    "import torch.autograd.function": """
        import torch.autograd.function
        class Fn(torch.autograd.function.Function):
            BODY
    """,
    "from torch.autograd import Function": """
        from torch.autograd import Function
        class Fn(Function):
            BODY
    """,
    "from torch.autograd import Function as F": """
        from torch.autograd import Function as F
        class Fn(F):
            BODY
    """,
    "from torch.autograd.function import several": """
        from torch.autograd.function import Function as F, InplaceFunction
        class Fn(InplaceFunction):
            BODY
    """,
    "once_differentiable beside it": """
        from torch.autograd.function import Function, once_differentiable
        class Fn(Function):
            BODY
    """,
    "star import": """
        from torch.autograd import *
        class Fn(Function):
            BODY
    """,
    "star import of the module": """
        from torch.autograd.function import *
        class Fn(Function):
            BODY
    """,
    "alias by assignment": """
        import torch
        F = torch.autograd.Function
        class Fn(F):
            BODY
    """,
    "alias of a module": """
        import torch
        ag = torch.autograd
        class Fn(ag.Function):
            BODY
    """,
    "alias of an alias": """
        import torch
        A = torch.autograd.Function
        B = A
        class Fn(B):
            BODY
    """,
    "alias in a tuple assignment": """
        import torch
        F, nn = torch.autograd.Function, torch.nn
        class Fn(F):
            BODY
    """,
    "annotated alias": """
        import torch
        F: type = torch.autograd.Function
        class Fn(F):
            BODY
    """,
    "import in try": """
        try:
            from torch.autograd import Function
        except ImportError:
            Function = object
        class Fn(Function):
            BODY
    """,
    "import in except": """
        try:
            from torch.autograd.function import Function
        except ImportError:
            from torch.autograd import Function
        class Fn(Function):
            BODY
    """,
    "import in if": """
        import sys
        if sys.version_info >= (3, 9):
            from torch.autograd import Function
        class Fn(Function):
            BODY
    """,
    "import under TYPE_CHECKING and again": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from torch.autograd import Function
        else:
            import torch
            Function = torch.autograd.Function
        class Fn(Function):
            BODY
    """,
    "import in with": """
        import warnings
        with warnings.catch_warnings():
            from torch.autograd import Function
        class Fn(Function):
            BODY
    """,
    "semicolons": """
        import os; from torch.autograd import Function; x = 1
        class Fn(Function):
            BODY
    """,
    "backslash": """
        from torch.autograd import \\
            Function
        class Fn(Function):
            BODY
    """,
    "generic base": """
        import torch
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Fn(torch.autograd.Function, Generic[T]):
            BODY
    """,
    "mixin before": """
        import torch
        class Mixin:
            pass
        class Fn(Mixin, torch.autograd.Function):
            BODY
    """,
    "unknown mixin": """
        import torch
        from elsewhere import Mixin
        class Fn(Mixin, torch.autograd.Function):
            BODY
    """,
    "rebound to torch's": """
        from sympy import Function
        from torch.autograd import Function
        class Fn(Function):
            BODY
    """,
    "shadowed afterwards": """
        from torch.autograd import Function
        class Fn(Function):
            BODY
        from sympy import Function
    """,
    "shadowed in a function only": """
        from torch.autograd import Function
        def f():
            from sympy import Function
            return Function
        class Fn(Function):
            BODY
    """,
    "shadowed by a comprehension only": """
        from torch.autograd import Function
        names = [Function for Function in ()]
        class Fn(Function):
            BODY
    """,
    "decorated": """
        import torch
        @torch.compiler.allow_in_graph
        class Fn(torch.autograd.Function):
            BODY
    """,
    "type parameters": """
        import torch
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Base(torch.autograd.Function, Generic[T]):
            BODY
        class Fn(Base[int]):
            BODY
    """,
    "on one line": """
        import torch
        class Fn(torch.autograd.Function): pass
    """,
    "bases over several lines": """
        import torch
        class Fn(
            torch.autograd.Function,  # the base
        ):
            BODY
    """,
}


@pytest.mark.parametrize("name", OURS)
def test_a_function_of_torch(name: str) -> None:
    assert "Fn" in functions_of(OURS[name])


FOREIGN = {
    "sympy": """
        from sympy import Function
        class Fn(Function):
            BODY
    """,
    "mxnet": """
        import mxnet as mx
        import torch
        class Fn(mx.autograd.Function):
            BODY
    """,
    "chainer": """
        from chainer.function import Function
        class Fn(Function):
            BODY
    """,
    "a local class": """
        import torch.autograd
        class Function:
            pass
        class Fn(Function):
            BODY
    """,
    "a local class, torch's before": """
        from torch.autograd import Function
        class Function:
            pass
        class Fn(Function):
            BODY
    """,
    "rebound to another": """
        from torch.autograd import Function
        from sympy import Function
        class Fn(Function):
            BODY
    """,
    "rebound by assignment": """
        from torch.autograd import Function
        Function = object
        class Fn(Function):
            BODY
    """,
    "no import at all": """
        class Fn(Function):
            BODY
    """,
    "torch not imported": """
        class Fn(torch.autograd.Function):
            BODY
    """,
    "torch is something else": """
        import something as torch
        class Fn(torch.autograd.Function):
            BODY
    """,
    "torch is a parameter": """
        def make(torch):
            class Fn(torch.autograd.Function):
                BODY
    """,
    "relative import": """
        from .autograd import Function
        class Fn(Function):
            BODY
    """,
    "relative import of torch": """
        from . import torch
        class Fn(torch.autograd.Function):
            BODY
    """,
    "unknown star import": """
        from elsewhere import *
        class Fn(Function):
            BODY
    """,
    "a call": """
        import torch
        class Fn(make(torch.autograd.Function)):
            BODY
    """,
    "a string in a variable": """
        import torch
        F = "torch.autograd.Function"
        class Fn(F):
            BODY
    """,
    "another class of torch": """
        import torch
        class Fn(torch.nn.Module):
            BODY
    """,
    "no base": """
        import torch
        class Fn:
            BODY
    """,
    "imported in a function only": """
        def f():
            from torch.autograd import Function
        class Fn(Function):
            BODY
    """,
    "bound in a class only": """
        import torch
        class Names:
            Function = torch.autograd.Function
            def method(self):
                class Fn(Function):
                    BODY
    """,
    "a loop of bases": """
        class A(B):
            pass
        class B(A):
            pass
        class Fn(A):
            BODY
    """,
    "itself": """
        class Fn(Fn):
            BODY
    """,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_function_of_torch(name: str) -> None:
    assert functions_of(FOREIGN[name]) == []


def test_the_bases_of_torch_itself_are_none() -> None:
    code = """
        from torch import _C
        class FunctionCtx:
            pass
        class FunctionMeta(type):
            pass
        class _SingleLevelFunction(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
            BODY
        class Function(_SingleLevelFunction):
            BODY
        class InplaceFunction(Function):
            BODY
        class NestedIOFunction(Function):
            BODY
    """
    assert functions_of(code) == []


NESTED = {
    "in a function": (
        """
        import torch
        def make():
            class Fn(torch.autograd.Function):
                BODY
            return Fn.apply
        """,
        ["make.Fn"],
    ),
    "in a method": (
        """
        import torch
        class Layer:
            def build(self):
                class Fn(torch.autograd.Function):
                    BODY
        """,
        ["Layer.build.Fn"],
    ),
    "in a class": (
        """
        import torch
        class Layer:
            class Fn(torch.autograd.Function):
                BODY
        """,
        ["Layer.Fn"],
    ),
    "in an if block": (
        """
        import torch
        if torch.cuda.is_available():
            class Fn(torch.autograd.Function):
                BODY
        """,
        ["Fn"],
    ),
    "in try, except, else and finally": (
        """
        import torch
        try:
            class A(torch.autograd.Function):
                BODY
        except ImportError:
            class B(torch.autograd.Function):
                BODY
        else:
            class C(torch.autograd.Function):
                BODY
        finally:
            class D(torch.autograd.Function):
                BODY
        """,
        ["A", "B", "C", "D"],
    ),
    "in loops, with and match": (
        """
        import torch
        for _ in range(1):
            class A(torch.autograd.Function):
                BODY
        else:
            class B(torch.autograd.Function):
                BODY
        while True:
            class C(torch.autograd.Function):
                BODY
            break
        with torch.no_grad():
            class D(torch.autograd.Function):
                BODY
        match torch.__version__:
            case "2":
                class E(torch.autograd.Function):
                    BODY
        """,
        ["A", "B", "C", "D", "E"],
    ),
    "in a Function": (
        """
        import torch
        class Outer(torch.autograd.Function):
            BODY
            class Inner(torch.autograd.Function):
                BODY
        """,
        ["Outer", "Outer.Inner"],
    ),
    "in a method of a Function": (
        """
        import torch
        class Outer(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                class Inner(torch.autograd.Function):
                    BODY
                return Inner.apply(x)
        """,
        ["Outer", "Outer.forward.Inner"],
    ),
    "in an async function": (
        """
        import torch
        async def make():
            class Fn(torch.autograd.Function):
                BODY
        """,
        ["make.Fn"],
    ),
    "with an import in the function": (
        """
        def make():
            from torch.autograd import Function
            class Fn(Function):
                BODY
        """,
        ["make.Fn"],
    ),
    "with an import further down in the module": (
        """
        def make():
            class Fn(Function):
                BODY
        from torch.autograd import Function
        """,
        ["make.Fn"],
    ),
    "with an alias in the enclosing function": (
        """
        import torch
        def outer():
            Base = torch.autograd.Function
            def inner():
                class Fn(Base):
                    BODY
        """,
        ["outer.inner.Fn"],
    ),
    "with an alias in the enclosing class": (
        """
        import torch
        class Names:
            Base = torch.autograd.Function
            class Fn(Base):
                BODY
        """,
        ["Names.Fn"],
    ),
    "with a base of the class around": (
        """
        import torch
        class Layer:
            class Base(torch.autograd.Function):
                BODY
        class Fn(Layer.Base):
            BODY
        """,
        ["Layer.Base", "Fn"],
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_nested(name: str) -> None:
    code, expected = NESTED[name]
    assert functions_of(code) == expected


def test_two_classes_of_one_name_both_count() -> None:
    code = """
        import torch
        if torch.cuda.is_available():
            class Fn(torch.autograd.Function):
                BODY
        else:
            class Fn(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, y):
                    return x.clone()
        """
    first, second = read(textwrap.dedent(code).replace("        BODY\n", textwrap.indent(BODY, "    "))).functions
    assert (first.name, second.name) == ("Fn", "Fn")
    assert (len(first.inputs), len(second.inputs)) == (1, 2)


def test_a_call_of_one_of_two_classes_is_no_evidence() -> None:
    code = """
        import torch
        if torch.cuda.is_available():
            class Fn(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.clone()
        else:
            class Fn(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, y):
                    return x.clone()
        Fn.apply(1)
        """
    file = read(textwrap.dedent(code))
    assert file.calls == ()


SUBCLASSES = """
import torch


class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Child(Base):
    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Grandchild(Child):
    pass


class Mixin:
    @staticmethod
    def forward(ctx, x, y):
        return x * y


class Mixed(Mixin, Base):
    pass


class MixedBehind(Base, Mixin):
    pass
"""


def test_subclasses_of_the_same_file() -> None:
    file = read(SUBCLASSES)
    assert [each.qualname for each in file.functions] == ["Base", "Child", "Grandchild", "Mixed", "MixedBehind"]
    assert all(each.bases_known for each in file.functions)
    assert [each.qualname for each in file.functions if each.has_subclass] == ["Base", "Child"]


def test_methods_are_inherited_nearest_first() -> None:
    by_name = read(SUBCLASSES).by_name
    child, grandchild = by_name["Child"], by_name["Grandchild"]
    assert child.forward is not None
    assert child.forward.inherited
    assert child.backward is not None
    assert not child.backward.inherited
    assert grandchild.backward is not None
    assert grandchild.backward.node is child.backward.node
    assert [len(by_name[name].inputs) for name in ("Base", "Child", "Mixed", "MixedBehind")] == [1, 1, 2, 1]


def test_a_base_before_it_is_defined_is_no_base() -> None:
    code = """
        class Fn(Base):
            BODY
        import torch
        class Base(torch.autograd.Function):
            BODY
    """
    assert "Base" in functions_of(code)


KNOWN = {
    "torch's alone": ("torch.autograd.Function", True),
    "object": ("torch.autograd.Function, object", True),
    "Generic": ("torch.autograd.Function, Generic[T]", True),
    "ABC": ("torch.autograd.Function, ABC", True),
    "Protocol": ("Protocol, torch.autograd.Function", True),
    "unknown mixin": ("Mixin, torch.autograd.Function", False),
    "a call": ("make(), torch.autograd.Function", False),
    "a metaclass": ("torch.autograd.Function, metaclass=Meta", False),
    "starred": ("*bases, torch.autograd.Function", False),
}


@pytest.mark.parametrize("name", KNOWN)
def test_whether_all_bases_are_known(name: str) -> None:
    bases, expected = KNOWN[name]
    head = "import torch\nfrom typing import Generic, Protocol, TypeVar\nfrom abc import ABC\nfrom elsewhere import Mixin\n"
    (fn,) = read(f"{head}\nclass Fn({bases}):{BODY}").functions
    assert fn.bases_known is expected


def test_a_class_whose_base_is_decided_by_a_condition_is_not_known() -> None:
    code = """
        try:
            from torch.autograd import Function
        except ImportError:
            from mxnet.autograd import Function
        class Fn(Function):
    """
    (fn,) = read(textwrap.dedent(code).rstrip() + BODY).functions
    assert not fn.bases_known


PATCHED = {
    "assigned after the class": "Fn.backward = other",
    "assigned in a function": "def f():\n    Fn.forward = staticmethod(other)",
    "setattr": "setattr(Fn, 'backward', other)",
    "apply replaced": "Fn.apply = other",
    "through another name": "G = Fn\nG.backward = other",
    "deleted": "del Fn.backward",
}


@pytest.mark.parametrize("name", PATCHED)
def test_methods_assigned_after_the_class(name: str) -> None:
    (fn,) = read(f"import torch\n\nclass Fn(torch.autograd.Function):{BODY}\n\n{PATCHED[name]}\n").functions
    assert fn.patched
    assert not fn.signature_judgeable


NOT_PATCHED = {
    "another attribute": "Fn.counter = 0",
    "another class": "Other.backward = other",
    "read": "f = Fn.backward",
}


@pytest.mark.parametrize("name", NOT_PATCHED)
def test_what_leaves_a_class_as_it_is(name: str) -> None:
    (fn,) = read(f"import torch\n\nclass Fn(torch.autograd.Function):{BODY}\n\n{NOT_PATCHED[name]}\n").functions
    assert not fn.patched


def test_methods_under_conditions_are_not_certain() -> None:
    code = """
import torch

class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    if torch.cuda.is_available():
        @staticmethod
        def backward(ctx, grad):
            return grad
    else:
        @staticmethod
        def backward(ctx, grad):
            return grad, None
"""
    (fn,) = read(code).functions
    assert not fn.count_judgeable


def test_methods_assigned_in_the_class_are_not_certain() -> None:
    code = """
import torch

class Fn(torch.autograd.Function):
    forward = staticmethod(other)

    @staticmethod
    def backward(ctx, grad):
        return grad
"""
    (fn,) = read(code).functions
    assert not fn.signature_judgeable
