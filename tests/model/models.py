"""Helpers for tests of the model: source text in; Functions, methods and events out."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ctxlint.model.reader import analyse
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from ctxlint.model.function import Event, FunctionClass, Method, Returned, SourceFile
    from ctxlint.model.interpreter.method import EventType

HEAD = """\
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import extension
"""


def read(text: str, path: str = "example.py") -> SourceFile:
    """The model of a whole file, as written."""
    return analyse(Source(path, text))


def read_code(code: str, path: str = "example.py") -> SourceFile:
    """The model of a file that begins with the usual imports."""
    return read(HEAD + textwrap.dedent(code), path)


def only(file: SourceFile) -> FunctionClass:
    """The one Function of a file."""
    assert [each.qualname for each in file.functions] == [file.functions[0].qualname] if file.functions else False
    return file.functions[0]


def function(forward: str = "", backward: str = "", before: str = "", members: str = "") -> FunctionClass:
    """A Function with these two methods, each given as ``parameters:`` and then the body; ctx is added.

    ``before`` is module-level code above it, ``members`` more code of the class body.
    """
    code = textwrap.dedent(before) + "\nclass Fn(Function):\n"
    code += textwrap.indent(textwrap.dedent(members), "    ")
    code += _method("forward", forward or "x:\n    return x.clone()")
    code += _method("backward", backward or "grad_output:\n    return grad_output")
    return read_code(code).by_name["Fn"]


def _method(name: str, written: str) -> str:
    first, _, body = textwrap.dedent(written).strip("\n").partition("\n")
    parameters = first.rstrip().rstrip(":").strip()
    header = f"def {name}(ctx, {parameters}):" if parameters else f"def {name}(ctx):"
    body = textwrap.dedent(body)
    return textwrap.indent(f"@staticmethod\n{header}\n{textwrap.indent(body, '    ')}\n", "    ")


def forward_of(written: str, before: str = "", backward: str = "", members: str = "") -> Method:
    """The forward method of a Function with this code."""
    method = function(forward=written, backward=backward, before=before, members=members).forward
    assert method is not None
    return method


def backward_of(written: str, before: str = "", forward: str = "", members: str = "") -> Method:
    """The backward method of a Function with this code."""
    method = function(forward=forward, backward=written, before=before, members=members).backward
    assert method is not None
    return method


def counts(returned: tuple[Returned, ...]) -> list[str]:
    """How many gradients or outputs each alternative of each return has: ``2``, ``2+`` for a lower bound, ``?``."""
    return [_count(each) for each in returned]


def _count(returned: Returned) -> str:
    if returned.count is not None:
        return str(returned.count)
    return f"{returned.minimum}+" if returned.known else "?"


def events(method: Method, kind: type[EventType]) -> tuple[EventType, ...]:
    """The events of one kind in a method."""
    return method.facts.of(kind)


def lines(fn: FunctionClass, found: tuple[Event, ...]) -> list[str]:
    """The source lines at which events happen."""
    return [fn.source.line(fn.start(each.node).line).strip() for each in found]
