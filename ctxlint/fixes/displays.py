"""Inserting elements into a tuple or list: on the same line, or on lines of their own like the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.fix import Edit
    from ctxlint.fixes.class_layout import Layout


def insert_elements(layout: Layout, display: cst.Tuple | cst.List, before: int, new: str, times: int) -> list[Edit]:
    """Edits that insert ``new`` as ``times`` elements before element number ``before`` of a non-empty display."""
    indentation = _indentation_of_own_lines(layout, display)
    if indentation is None:
        return list(_on_the_line(layout, display, before, [new] * times))
    return list(_on_lines_of_their_own(layout, display, before, f"\n{indentation}{new},", times))


def _on_the_line(layout: Layout, display: cst.Tuple | cst.List, before: int, new: list[str]) -> Iterator[Edit]:
    joined = ", ".join(new)
    if before == 0:
        yield layout.insert_word(start_of_element(layout, display.elements[0]), f"{joined}, ")
        return
    element = display.elements[before - 1]
    if len(display.elements) == 1 and isinstance(element.comma, cst.Comma):
        # The comma of ``(a,)`` makes the tuple; a longer one needs none at its end.
        yield layout.insert(layout.after_comma(element.comma), f" {joined}")
    else:
        yield layout.insert(end_of_element(layout, element), f", {joined}")


def _on_lines_of_their_own(
    layout: Layout, display: cst.Tuple | cst.List, before: int, line: str, times: int
) -> Iterator[Edit]:
    opening = _after_opening(layout, display)
    if before == 0 and opening is not None:
        yield layout.insert(layout.line_end(opening), line * times)
        return
    element = display.elements[before - 1]
    if isinstance(element.comma, cst.Comma):
        yield layout.insert(layout.line_end(layout.after_comma(element.comma)), line * times)
        return
    # The last one without a comma gets one, and the new last one has none.
    end = end_of_element(layout, element)
    rest = (line * times)[:-1]
    if layout.line_end(end) == end:
        yield layout.insert(end, f",{rest}")
    else:
        yield layout.insert(end, ",")
        yield layout.insert(layout.line_end(end), rest)


def _indentation_of_own_lines(layout: Layout, display: cst.Tuple | cst.List) -> str | None:
    """The whitespace before each element if all are on lines of their own, in brackets that are on other lines."""
    opening, closing = _after_opening(layout, display), _before_closing(layout, display)
    if opening is None or closing is None or not layout.nothing_but_a_comment_follows(opening):
        return None
    if layout.indentation(closing) is None:
        return None
    indentations = []
    for element in display.elements:
        after = end_of_element(layout, element)
        if isinstance(element.comma, cst.Comma):
            after = layout.after_comma(element.comma)
        if not layout.nothing_but_a_comment_follows(after):
            return None
        indentations.append(layout.indentation(start_of_element(layout, element)))
    return indentations[-1] if all(each is not None for each in indentations) else None


def start_of_element(layout: Layout, element: cst.BaseElement) -> int:
    """The start of an element, including its star."""
    return layout.start(element) if isinstance(element, cst.StarredElement) else layout.start(element.value)


def end_of_element(layout: Layout, element: cst.BaseElement) -> int:
    """The end of an element, without its comma."""
    return layout.end(element.value)


def _after_opening(layout: Layout, display: cst.Tuple | cst.List) -> int | None:
    opening = display.lbracket if isinstance(display, cst.List) else display.lpar[-1] if display.lpar else None
    return None if opening is None else layout.start(opening) + 1


def _before_closing(layout: Layout, display: cst.Tuple | cst.List) -> int | None:
    closing = display.rbracket if isinstance(display, cst.List) else display.rpar[0] if display.rpar else None
    return None if closing is None else layout.end(closing) - 1
