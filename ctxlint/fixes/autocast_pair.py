"""Adds the missing one of ``custom_fwd`` and ``custom_bwd``, in the style of the present one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.class_layout import layout_of, layout_of_import
from ctxlint.fixes.decorators import lines_of_decorator
from ctxlint.fixes.module_code import module_code
from ctxlint.model.function import Binding
from ctxlint.model.syntax import code_of, dotted, keywords_of
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.fix import Edit
    from ctxlint.fixes.module_code import ModuleCode
    from ctxlint.model.function import Decorator, FunctionClass, Method

_OLD = ("torch.cuda.amp", "torch.cuda.amp.autocast_mode")
_MODULES = ("torch.amp", "torch.amp.autocast_mode", *_OLD)
_OTHER = {"custom_fwd": "custom_bwd", "custom_bwd": "custom_fwd"}


def add_other_half(fn: FunctionClass, decorator: Decorator, method: Method) -> Fix | None:
    """Add the other decorator of the pair to ``method``, for the same device, and import it if necessary.

    None if the present one is not a plain name of torch's, if the other name means something else in the file, and if
    ``method`` is not static.
    """
    expression = decorator.node.decorator
    path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
    module, _, name = (decorator.name or "").rpartition(".")
    arguments = _device(decorator, old=module in _OLD)
    if (
        path is None
        or module not in _MODULES
        or not decorator.certain
        or decorator.through_project
        or arguments is None
    ):
        return None
    other = _OTHER[name]
    importing: list[Edit] = []
    if "." in path:
        spelled = f"{path.rpartition('.')[0]}.{other}"
    else:
        code = module_code(fn)
        found = None if code is None else _File(code).spelling(path, name, fn.start(fn.node).line)
        if found is None:
            return None
        spelled, importing = found
    placed = _below_staticmethod(fn, method, f"@{spelled}{arguments}")
    if placed is None:
        return None
    return Fix(f"Add `{other}` to `{method.name}`", (*importing, placed), Applicability.UNSAFE)


def move_to_setup_context(fn: FunctionClass, decorator: Decorator, forward: Method) -> Fix | None:
    """Move ``custom_fwd`` from forward to ``setup_context``, which gets the ctx; None where it casts the inputs."""
    layout, setup = layout_of(fn, forward), fn.setup_context
    expression = decorator.node.decorator
    casts = isinstance(expression, cst.Call) and any(
        each.keyword is None or each.keyword.value != "device_type" for each in expression.args
    )
    if layout is None or setup is None or casts or not decorator.certain or not setup.signature_known:
        return None
    if setup.decorator("custom_fwd") is not None:
        return None
    nodes = forward.node.decorators
    at = next((at for at, node in enumerate(nodes) if node is decorator.node), None)
    placed = _below_staticmethod(fn, setup, layout.code(decorator.node))
    if at is None or placed is None:
        return None
    start, end = lines_of_decorator(layout, nodes[at], first=at == 0)
    lines = layout.text[start:end].rstrip("\r\n")
    dropped = layout.delete(start, end)
    first_line = lines.lstrip()
    indentation = lines[: len(lines) - len(first_line)]
    moved = layout.insert(placed.start, f"\n{indentation}{first_line}")
    return Fix("Move it to `setup_context`", (dropped, moved), Applicability.UNSAFE)


def _device(decorator: Decorator, *, old: bool) -> str | None:
    """The arguments for the other decorator, including brackets; None if they are not the documented ones."""
    expression = decorator.node.decorator
    if not isinstance(expression, cst.Call):
        return "" if old else None
    by_keyword = keywords_of(expression)
    if len(by_keyword) != len(expression.args) or not by_keyword.keys() <= {"device_type", "cast_inputs"}:
        return None
    if old:
        return "" if "device_type" not in by_keyword else None
    if "device_type" not in by_keyword:
        return None
    return f"(device_type={code_of(by_keyword['device_type'])})"


def _below_staticmethod(fn: FunctionClass, method: Method, text: str) -> Edit | None:
    """Add a decorator on the line below ``@staticmethod``; None if the ctx would not be the first argument."""
    layout = layout_of(fn, method)
    if layout is None or method.binding is not Binding.STATIC or method.receiver is not None or method.ctx is None:
        return None
    for decorator in method.decorators:
        if decorator.name == "builtins.staticmethod":
            start, end = layout.start(decorator.node), layout.end(decorator.node)
            indentation = layout.indentation(start)
            return None if indentation is None else layout.insert(layout.line_end(end), f"\n{indentation}{text}")
    return None


@record
class _File:
    code: ModuleCode

    def spelling(self, path: str, name: str, line: int) -> tuple[str, list[Edit]] | None:
        """The name of the other one of a pair in a line of this file, and the edits that import it."""
        other = _OTHER[name]
        statement = self._import_of(path, name)
        if statement is None:
            return None
        for alias in statement.names:
            local = alias.asname or alias.name
            if alias.name == other and self.code.times_bound(local) == 1:
                return local, []
        if self.code.times_bound(other):
            others = [
                each for each in self.code.module.body if isinstance(each, ast.ImportFrom) and each is not statement
            ]
            same = any(
                each.module == statement.module and each.lineno < line and alias.name == other and alias.asname is None
                for each in others
                for alias in each.names
            )
            return (other, []) if same and self.code.times_bound(other) == 1 else None
        if self.code.times_bound("*"):
            return None
        importing = self._imported_with(statement, path, other)
        return None if importing is None else (other, [importing])

    def _import_of(self, path: str, name: str) -> ast.ImportFrom | None:
        """The only statement that binds ``path``, if it imports it at the top of the file."""
        found = [
            each
            for each in self.code.module.body
            if isinstance(each, ast.ImportFrom)
            and each.level == 0
            and each.module in _MODULES
            and any((alias.asname or alias.name) == path and alias.name == name for alias in each.names)
        ]
        return found[0] if len(found) == 1 and self.code.times_bound(path) == 1 else None

    def _imported_with(self, statement: ast.ImportFrom, path: str, other: str) -> Edit | None:
        """Import one more name from the same module, in alphabetical order."""
        found = layout_of_import(self.code.source, statement)
        if found is None:
            return None
        layout, _node, aliases = found
        alias = next(each for each in aliases if (each.evaluated_alias or each.evaluated_name) == path)
        start = layout.start(alias)
        indentation = layout.indentation(start)
        if other == "custom_bwd":
            return layout.insert(start, f"{other}, " if indentation is None else f"{other},\n{indentation}")
        if indentation is not None and isinstance(alias.comma, cst.Comma):
            after = layout.after_comma(alias.comma)
            if layout.nothing_but_a_comment_follows(after):
                return layout.insert(layout.line_end(after), f"\n{indentation}{other},")
        end = layout.end(alias.asname.name if alias.asname is not None else alias.name)
        return layout.insert(end, f", {other}")
