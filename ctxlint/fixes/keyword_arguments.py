"""Passing arguments of ``apply`` by position instead of by keyword."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.module_code import module_code
from ctxlint.model.function import Binding, ParameterKind, Style
from ctxlint.model.syntax import code_of
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Container

    from ctxlint.fixes.module_code import ModuleCode
    from ctxlint.model.function import ApplyCall, FunctionClass, Input, SourceFile
    from ctxlint.source.source import Span


def pass_by_position(file: SourceFile, fn: FunctionClass, call: ApplyCall) -> Fix | None:
    """Remove the names, order the arguments, and insert the defaults of inputs that were left out between them.

    None if the inputs or the arguments are not certain, and if their order changes and they may have side effects.
    """
    code = module_code(file)
    inputs = _inputs(fn)
    if code is None or inputs is None or call.starred or call.double_starred:
        return None
    node = _call_at(code, call.span)
    if node is None:
        return None
    by_keyword = {keyword.arg: keyword for keyword in node.keywords}
    places = {each.name: at for at, each in enumerate(inputs)}
    if any(name not in places or places[name] < call.positional for name in by_keyword if name is not None):
        return None
    last = max(places[name] for name in by_keyword if name is not None)
    slots = inputs[call.positional : last + 1]
    ordered = [by_keyword[each.name] for each in slots if each.name in by_keyword]
    defaults = _defaults_before(slots, by_keyword)
    if defaults is None:
        return None
    if ordered == node.keywords:
        edits = _in_place(code, ordered, defaults)
    else:
        edits = _reordered(code, ordered, defaults, node.keywords)
    return None if edits is None else Fix("Pass by position", tuple(edits), Applicability.SAFE)


def _inputs(fn: FunctionClass) -> tuple[Input, ...] | None:
    """The inputs that ``apply`` takes, if they are certain."""
    forward = fn.forward
    if forward is None or fn.style is Style.UNKNOWN or forward.binding is not Binding.STATIC:
        return None
    if not forward.signature_known or forward.lacks_ctx or forward.receiver is not None:
        return None
    if forward.node.params.posonly_params and forward.own_params:
        return None  # these have reserved names
    return tuple(each for each in fn.inputs if each.param.kind is ParameterKind.POSITIONAL)


def _call_at(code: ModuleCode, span: Span) -> ast.Call | None:
    start, end = code.source.offset(span.start), code.source.offset(span.end)
    for node in nodes_in(code.module):
        if isinstance(node, ast.Call) and node.lineno == span.start.line:
            if code.start(node) == start and code.end(node) == end:
                return node
    return None


def _defaults_before(slots: tuple[Input, ...], passed: Container[str | None]) -> list[list[str]] | None:
    """The source text of the defaults to insert before each argument, in order."""
    found: list[list[str]] = []
    left_out: list[str] = []
    for each in slots:
        if each.name in passed:
            found.append(left_out)
            left_out = []
            continue
        default = _literal_default(each)
        if default is None:
            return None
        left_out.append(default)
    return found


def _written_before(code: ModuleCode, start: int, defaults: list[str]) -> str:
    """The code of defaults to insert there: on lines of their own, if the argument is on one."""
    before = code.source.text[:start].rpartition("\n")[2]
    separator = f",\n{before}" if before.isspace() else ", "
    return "".join(f"{each}{separator}" for each in defaults)


def _in_place(code: ModuleCode, ordered: list[ast.keyword], defaults: list[list[str]]) -> list[Edit] | None:
    """Every argument keeps its position and loses its name."""
    edits: list[Edit] = []
    for keyword, before in zip(ordered, defaults):
        value = _after_equals(code, keyword)
        if value is None:
            return None
        start = code.start(keyword)
        edits.append(Edit(start, value, _written_before(code, start, before)))
    return edits


def _reordered(
    code: ModuleCode, ordered: list[ast.keyword], defaults: list[list[str]], keywords: list[ast.keyword]
) -> list[Edit] | None:
    """The arguments are reordered; none of them may have side effects."""
    text = code.source.text
    edits: list[Edit] = []
    for there, keyword, before in zip(keywords, ordered, defaults):
        start, end = _after_equals(code, keyword), _plain_end(code, keyword)
        if start is None or end is None:
            return None
        written = _written_before(code, code.start(there), before) + text[start:end]
        edits.append(Edit(code.start(there), code.end(there.value), written))
    return None if "#" in text[edits[0].start : edits[-1].end] else edits


def _after_equals(code: ModuleCode, keyword: ast.keyword) -> int | None:
    """The start of the value in ``name=value``, including parentheses; None if the name is spelled differently."""
    found = re.compile(rf"{keyword.arg}[ \t]*=[ \t]*").match(code.source.text, code.start(keyword))
    return None if found is None else found.end()


def _plain_end(code: ModuleCode, keyword: ast.keyword) -> int | None:
    """The end of ``name=value``, for a name, an attribute or a constant without parentheses around it."""
    value: ast.expr = keyword.value
    while isinstance(value, ast.Attribute):
        value = value.value
    if isinstance(value, ast.UnaryOp) and value is keyword.value:
        value = value.operand
    start, end = code.start(keyword.value), code.end(keyword.value)
    plain = isinstance(value, (ast.Name, ast.Constant)) and start == _after_equals(code, keyword)
    return end if plain and re.compile(r"\s*[,)]").match(code.source.text, end) else None


def _literal_default(each: Input) -> str | None:
    """The default of an input, if it means the same in every scope."""
    default = each.param.node.default
    value = default.expression if isinstance(default, cst.UnaryOperation) else default
    literal = isinstance(value, (cst.Integer, cst.Float, cst.SimpleString)) or (
        isinstance(value, cst.Name) and value is default and value.value in ("None", "True", "False")
    )
    return code_of(default) if default is not None and literal else None
