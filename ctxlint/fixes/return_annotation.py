"""Edits that keep the return annotation of a method correct when its number of gradients changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import dotted
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxlint.fix import Edit
    from ctxlint.fixes.class_layout import Layout
    from ctxlint.model.interpreter.method import Method

_IMPORTED = pattern(r"^from typing import [^#\n]*\bTuple\b|^from typing import \([^)#]*\bTuple\b", re.MULTILINE)
_NEWER = pattern(
    r"^from __future__ import [^#\n]*\bannotations\b|(?:->|:)[^#\n'\"=]*(?:\b(?:tuple|list|dict|set|type)\[|\| None\b)",
    re.MULTILINE,
)
"""Annotations that are not evaluated, or that only newer releases of Python can evaluate."""
_TUPLES = ("tuple", "Tuple", "typing.Tuple")
_WRAPPERS = ("Optional", "typing.Optional")


def annotate_more(layout: Layout, method: Method, count: int, additions: Iterable[tuple[int, int]]) -> list[Edit]:
    """Edits for ``count`` gradients with None inserted before some of them, if the annotation has as many elements."""
    annotation = _annotation(layout, method)
    if annotation is None:
        return []
    listed = _elements(annotation, count)
    if listed is None:
        if count != 1 or not _is_one_tensor(annotation):
            return []
        before, after = (sum(times for at, times in additions if at == place) for place in (0, 1))
        written = ", ".join([*["None"] * before, layout.code(annotation), *["None"] * after])
        return [layout.replace(annotation, _tuple_of(layout, written))]
    edits = []
    for at, times in additions:
        if at < count:
            edits.append(layout.insert(layout.start(listed[at]), "None, " * times))
        else:
            edits.append(layout.insert(layout.end(listed[-1]), ", None" * times))
    return edits


def annotate_fewer(layout: Layout, method: Method, count: int, left: int) -> list[Edit]:
    """Edits for the first ``left`` of ``count`` gradients, if the annotation has as many elements."""
    annotation = _annotation(layout, method)
    listed = None if annotation is None else _elements(annotation, count)
    if annotation is None or listed is None:
        return []
    if left == 1:
        return [layout.replace(annotation, layout.code(listed[0]))]
    return [layout.delete(layout.end(listed[left - 1]), layout.end(listed[-1]))]


def annotate_none(layout: Layout, method: Method, count: int, positions: Iterable[int]) -> list[Edit]:
    """Edits for gradients that become None, if the annotation has ``count`` elements."""
    annotation = _annotation(layout, method)
    listed = None if annotation is None else _elements(annotation, count)
    if listed is None:
        return []
    return [layout.replace(listed[at], "None") for at in positions if layout.code(listed[at]) != "None"]


def _annotation(layout: Layout, method: Method) -> cst.BaseExpression | None:
    """The return annotation of a method; None if there is none, or it contains a comment."""
    returns = method.node.returns
    if returns is None or "#" in layout.code(returns.annotation):
        return None
    return returns.annotation


def _elements(annotation: cst.BaseExpression, count: int) -> Sequence[cst.BaseExpression] | None:
    """The elements of ``tuple[A, B]``, if there are ``count``."""
    if not isinstance(annotation, cst.Subscript) or dotted(annotation.value) not in _TUPLES:
        return None
    slices = [each.slice.value for each in annotation.slice if isinstance(each.slice, cst.Index)]
    if len(slices) != count or len(annotation.slice) != count or isinstance(slices[-1], cst.Ellipsis):
        return None
    return slices


def _is_one_tensor(annotation: cst.BaseExpression) -> bool:
    """Whether an annotation denotes one tensor, or None."""
    if isinstance(annotation, cst.Subscript) and dotted(annotation.value) in _WRAPPERS and len(annotation.slice) == 1:
        inner = annotation.slice[0].slice
        return isinstance(inner, cst.Index) and _is_one_tensor(inner.value)
    if isinstance(annotation, cst.BinaryOperation) and isinstance(annotation.operator, cst.BitOr):
        return all(
            _is_one_tensor(each) or (isinstance(each, cst.Name) and each.value == "None")
            for each in (annotation.left, annotation.right)
        )
    return (dotted(annotation) or "").rpartition(".")[2] == "Tensor"


def _tuple_of(layout: Layout, elements: str) -> str:
    """``tuple[...]``, unless the file may run on a Python on which that is an error: before 3.9, if it is evaluated."""
    if _IMPORTED.search(layout.text):
        return f"Tuple[{elements}]"
    return f"tuple[{elements}]" if _NEWER.search(layout.text) else "tuple"
