"""Adding, removing and renaming parameters, and finding their uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.local_names import bound_names, target_names
from ctxlint.model.syntax import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.fix import Edit
    from ctxlint.fixes.class_layout import Layout

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


class Untraceable(Exception):
    """A use of a name that may refer to another binding."""


# ---------------------------------------------------------------------------------------------------------------------
# The signature


def drop_parameter(layout: Layout, function: cst.FunctionDef, param: cst.Param) -> Edit | None:
    """Remove a positional parameter, with its comma, and a comment after it on its own line.

    None if the syntax would not allow that.
    """
    params = function.params
    if any(each is param for each in params.posonly_params) and len(params.posonly_params) == 1:
        return None
    start = layout.start(param)
    if isinstance(param.comma, cst.Comma):
        end = layout.after_comma(param.comma)
        blank = end
        while layout.text[blank : blank + 1] in (" ", "\t"):
            blank += 1
        own_line = layout.indentation(start) is not None
        if layout.text[blank : blank + 1] != "#":
            end = blank
        elif own_line:
            end = layout.line_end(blank)
        if layout.line_end(end) == end and own_line and end < len(layout.text):
            # It had its own lines: the next one takes its place.
            following = end
            while layout.text[following : following + 1].isspace():
                following += 1
            end = following
        return layout.delete(start, end)
    listed = [*params.posonly_params, *params.params]
    if len(listed) > 1 or params.kwonly_params or isinstance(params.star_arg, cst.Param) or params.star_kwarg:
        return None
    return layout.delete(start, _end_of(layout, param))


def insert_parameter(layout: Layout, function: cst.FunctionDef, before: cst.Param | None, name: str) -> Edit:
    """Insert a parameter before another one, or as the only one."""
    if before is None:
        return layout.insert(layout.start(function.params), name)
    return insert_parameters(layout, before, [name])


def insert_parameters(layout: Layout, before: cst.Param, names: list[str]) -> Edit:
    """Insert parameters before another one, each on its own line if that one is."""
    start = layout.start(before)
    indentation = layout.indentation(start)
    space = " " if indentation is None else f"\n{indentation}"
    return layout.insert(start, "".join(f"{name},{space}" for name in names))


def append_parameters(layout: Layout, after: cst.Param, names: list[str]) -> Edit:
    """Insert parameters after another one without default."""
    end = _end_of(layout, after)
    indentation = layout.indentation(layout.start(after))
    comma = layout.after_comma(after.comma) if isinstance(after.comma, cst.Comma) else None
    if indentation is not None and comma is not None and layout.nothing_but_a_comment_follows(comma):
        return layout.insert(layout.line_end(comma), "".join(f"\n{indentation}{name}," for name in names))
    return layout.insert(end, "".join(f", {name}" for name in names))


def drop_last_parameters(layout: Layout, params: list[cst.Param], left: int) -> Edit | None:
    """Remove the parameters after the first ``left`` ones, all positional; None if comments would be lost."""
    if left < 1:
        return None
    start, end = _end_of(layout, params[left - 1]), _end_of(layout, params[-1])
    return None if "#" in layout.text[start:end] else layout.delete(start, end)


def _end_of(layout: Layout, param: cst.Param) -> int:
    """The end of a parameter, including its annotation and default, without its comma."""
    last: cst.CSTNode = param.name
    if param.annotation is not None:
        last = param.annotation.annotation
    if param.default is not None:
        last = param.default
    return layout.end(last)


# ---------------------------------------------------------------------------------------------------------------------
# The uses


def rename_parameter(layout: Layout, function: cst.FunctionDef, param: cst.Param, new: str) -> list[Edit]:
    """Edits that rename a parameter and all its uses.

    Raises:
        Untraceable: The binding of a use is ambiguous.
    """
    return [layout.replace(node, new) for node in (param.name, *uses_of(function, param.name.value))]


def uses_of(function: cst.FunctionDef, name: str) -> list[cst.Name]:
    """Where the body of a function uses, binds or deletes its own local ``name``, including nested scopes that see it.

    Raises:
        Untraceable: A nested class mentions it, or an import binds it.
    """
    found: list[cst.Name] = []
    _collect(function.body, name, found)
    return found


def mentions(node: cst.CSTNode, name: str) -> bool:
    """Whether ``name`` occurs anywhere in the code of a node, as a name of any scope; attributes do not count."""
    if isinstance(node, cst.Name):
        return node.value == name
    if isinstance(node, cst.Attribute):
        return mentions(node.value, name)
    if isinstance(node, cst.Arg):
        return mentions(node.value, name)
    return any(mentions(child, name) for child in children(node))


def _collect(node: cst.CSTNode, name: str, found: list[cst.Name]) -> None:
    if isinstance(node, cst.Name):
        found.extend([node] if node.value == name else [])
    elif isinstance(node, (cst.Import, cst.ImportFrom, cst.Global, cst.ClassDef)):
        if mentions(node, name):
            raise Untraceable(name)
    else:
        for part in _parts_that_see(node, name):
            _collect(part, name, found)


def _parts_that_see(node: cst.CSTNode, name: str) -> Iterator[cst.CSTNode]:
    """The parts of a node in which ``name`` has the same binding as around the node."""
    if isinstance(node, (cst.Attribute, cst.Arg)):
        yield node.value
    elif isinstance(node, cst.MatchKeywordElement):
        yield node.pattern
    elif isinstance(node, cst.FunctionDef):
        yield node.name
        yield from (*node.decorators, *_outside_of(node.params))
        if node.returns is not None:
            yield node.returns
        if name not in bound_names(node):
            yield node.body
    elif isinstance(node, cst.Lambda):
        yield from _outside_of(node.params)
        if all(param.name.value != name for param in _all_params(node.params)):
            yield node.body
    elif isinstance(node, _COMPREHENSIONS) and name in _targets(node.for_in):
        if any(mentions(later, name) for later in _later_iterables(node.for_in)):
            raise Untraceable(name)
        yield node.for_in.iter
    else:
        yield from children(node)


def _all_params(params: cst.Parameters) -> Iterator[cst.Param]:
    yield from params.posonly_params
    yield from params.params
    yield from params.kwonly_params
    if isinstance(params.star_arg, cst.Param):
        yield params.star_arg
    if params.star_kwarg is not None:
        yield params.star_kwarg


def _outside_of(params: cst.Parameters) -> Iterator[cst.CSTNode]:
    """The defaults and annotations, which are evaluated in the enclosing scope."""
    for param in _all_params(params):
        if param.default is not None:
            yield param.default
        if param.annotation is not None:
            yield param.annotation


def _targets(clause: cst.CompFor | None) -> set[str]:
    found: set[str] = set()
    while clause is not None:
        found.update(target_names(clause.target))
        clause = clause.inner_for_in
    return found


def _later_iterables(clause: cst.CompFor) -> Iterator[cst.BaseExpression]:
    inner = clause.inner_for_in
    while inner is not None:
        yield inner.iter
        inner = inner.inner_for_in
