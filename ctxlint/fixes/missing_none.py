"""Inserting None for inputs that are not tensors: into a display, into ``(None,) * 3``, or around a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.class_layout import layout_of
from ctxlint.fixes.displays import end_of_element, insert_elements
from ctxlint.fixes.return_annotation import annotate_fewer, annotate_more, annotate_none
from ctxlint.model.interpreter.values import Sequence, Tri, is_none
from ctxlint.model.syntax import branches_of, children, dotted
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Sequence as SequenceOf

    from ctxlint.fixes.class_layout import Layout
    from ctxlint.model.analyses.gradient_placements import Placement, Shortfall
    from ctxlint.model.function import FunctionClass, Method, Returned
    from ctxlint.model.interpreter.values import Slot

Additions = tuple[tuple[int, int], ...]
"""Pairs of a slot and the number of None to insert before it; the number of slots means at the end."""


def put_none_in(fn: FunctionClass, shortfall: Shortfall, every: SequenceOf[Shortfall]) -> Fix | None:
    """Insert None according to ``shortfall``; None if the positions, or how to write it, are unknown.

    ``every`` has the shortfalls of the class: returns with several alternatives are fixed for all of them or not at
    all. Unsafe if it is only likely that just the last None are missing.
    """
    placement, method = shortfall.likely, fn.backward
    layout = layout_of(fn, method)
    if placement is None or not _is_known(placement) or method is None or layout is None:
        return None
    edits = _NoneWriter(layout, fn, method, every).edits(shortfall)
    if not edits:
        return None
    returned = shortfall.returned
    edits += annotate_more(layout, method, len(returned.slots), additions(returned, placement))
    names = ", ".join(f"`{fn.inputs[index].name}`" for index in placement.missing)
    alternatives = [each.likely for each in every if each.returned.event is returned.event]
    certain = all(each is None or each.unique for each in alternatives)
    return Fix(f"Return `None` for {names}", tuple(edits), Applicability.SAFE if certain else Applicability.UNSAFE)


def _is_known(placement: Placement | None) -> bool:
    """Whether the positions of the missing None are certain enough."""
    return placement is not None and (placement.unique or placement.likely)


def write_none(fn: FunctionClass, returned: Returned, positions: tuple[int, ...]) -> Fix | None:
    """Write None for the gradients at these positions; None if one of them is not a separate expression."""
    layout, method = layout_of(fn, fn.backward), fn.backward
    if layout is None or method is None:
        return None
    edits = _NoneWriter(layout, fn, method, ()).replaced(returned, positions)
    if edits:
        edits += annotate_none(layout, method, len(returned.slots), positions)
    return Fix("Return `None` instead", tuple(edits), Applicability.UNSAFE) if edits else None


def drop_surplus(fn: FunctionClass, returned: Returned, count: int) -> Fix | None:
    """Remove the last ``count`` None; None if they are not written at the end."""
    layout, method = layout_of(fn, fn.backward), fn.backward
    if layout is None or method is None or count >= len(returned.slots):
        return None
    edits = _NoneWriter(layout, fn, method, ()).shortened(returned, count)
    # A comment after them, or among them, is probably about them.
    lost = any("#" in layout.text[edit.start : layout.line_end(edit.end)] for edit in edits)
    if edits:
        have = len(returned.slots)
        edits += annotate_fewer(layout, method, have, have - count)
    message = "Remove the surplus `None`"
    return Fix(message, tuple(edits), Applicability.UNSAFE if lost else Applicability.SAFE) if edits else None


def additions(returned: Returned, placement: Placement) -> Additions:
    """Where to insert the None: after the present ones, before the next gradient."""
    written = [at for at, slot in enumerate(returned.slots) if is_none(slot.value) is not Tri.YES]
    wanted = [at for at, slot in enumerate(placement.slots) if slot is not None]
    found: list[tuple[int, int]] = []
    before, wanted_before = -1, -1
    for at, position in zip((*written, len(returned.slots)), (*wanted, len(placement.slots))):
        have, need = at - before - 1, position - wanted_before - 1
        if need > have:
            found.append((at, need - have))
        before, wanted_before = at, position
    return tuple(found)


@record
class _Atom:
    """The code of a slot: element ``at`` of ``display``, or what ``count`` in ``(None,) * 3`` repeats.

    Without ``node``, it represents an unknown number of slots.
    """

    node: cst.BaseExpression | None
    display: cst.Tuple | cst.List | None = None
    at: int = 0
    count: cst.Integer | None = None


class _NoneWriter:
    """Finds the code that creates the gradients of one class."""

    def __init__(self, layout: Layout, fn: FunctionClass, method: Method, every: SequenceOf[Shortfall]) -> None:
        self.layout = layout
        self.fn = fn
        self.method = method
        self.every = every
        self.names = _names_in(method.node)

    def edits(self, shortfall: Shortfall) -> list[Edit]:
        """The edits that fix one return; empty if it is unknown how to write it."""
        returned, placement = shortfall.returned, shortfall.likely
        statement = returned.node
        if placement is None or not isinstance(statement, cst.Return) or statement.value is None:
            return []
        wanted = additions(returned, placement)
        value = returned.value
        if isinstance(value, Sequence):
            display = self._written(statement.value, value)
            if display is not None:
                edits = self._in_expression(display, returned.slots, wanted)
                if edits:
                    return edits
            return self._around_tuple(statement.value, returned, wanted)
        return self._around_value(statement.value, returned, wanted)

    def replaced(self, returned: Returned, positions: tuple[int, ...]) -> list[Edit]:
        """The edits that write None at some positions; empty if these are not elements of a display."""
        statement, value = returned.node, returned.value
        if not isinstance(statement, cst.Return) or statement.value is None:
            return []
        if not isinstance(value, Sequence):
            alternatives = [each for each in self.fn.gradients if each.event is returned.event]
            return [self.layout.replace_by_word(statement.value, "None")] if len(alternatives) == 1 else []
        atoms = self._written_atoms(statement.value, returned)
        edits = []
        for position in positions:
            atom = atoms[position] if atoms else None
            if atom is None or atom.node is None or atom.display is None:
                return []
            edits.append(self.layout.replace_by_word(atom.node, "None"))
        return edits

    def shortened(self, returned: Returned, count: int) -> list[Edit]:
        """The edits that remove the last slots; empty if they are not the last elements of one display."""
        statement = returned.node
        if not isinstance(statement, cst.Return) or statement.value is None:
            return []
        atoms = self._written_atoms(statement.value, returned)
        if not atoms:
            return []
        last, dropped = atoms[-count - 1], atoms[-count:]
        number = dropped[0].count
        if number is not None and all(each.count is number for each in dropped):
            left = number.evaluated_value - count
            return [self.layout.replace(number, str(left))] if left > 0 else []
        display = dropped[-1].display
        if display is None or any(each.display is not display or each.node is None for each in dropped):
            return []
        if last.display is not display or last.at != len(display.elements) - count - 1:
            return []
        return self._without_last(display, count)

    def _without_last(self, display: cst.Tuple | cst.List, count: int) -> list[Edit]:
        """Remove the last elements of a display; what follows their last comma is unchanged."""
        last_left = display.elements[-count - 1]
        end = end_of_element(self.layout, display.elements[-1])
        alone = len(display.elements) - count == 1 and isinstance(display, cst.Tuple)
        if alone and not display.lpar and not isinstance(last_left, cst.StarredElement):
            last = display.elements[-1].comma
            stop = self.layout.after_comma(last) if isinstance(last, cst.Comma) else end
            return [self.layout.delete(end_of_element(self.layout, last_left), stop)]
        start = end_of_element(self.layout, last_left)
        if alone and not isinstance(display.elements[-1].comma, cst.Comma) and isinstance(last_left.comma, cst.Comma):
            start = self.layout.after_comma(last_left.comma)
        return [self.layout.delete(start, end)]

    def _written_atoms(self, expression: cst.BaseExpression, returned: Returned) -> list[_Atom]:
        """The code of the gradients in a tuple without aliases; empty if it is unknown."""
        value = returned.value
        written = self._written(expression, value) if isinstance(value, Sequence) else None
        return [] if written is None else _fitted(list(self._atoms(written)), returned.slots) or []

    # Where the code is

    def _written(self, expression: cst.BaseExpression, value: Sequence) -> cst.BaseExpression | None:
        """The expression that creates this alternative of the returned value, if it has no aliases."""
        node = value.node
        for leaf in branches_of(expression):
            if leaf is node:
                return leaf
            if isinstance(leaf, cst.Name) and isinstance(node, cst.BaseExpression):
                assigned = self.names.assigned.get(leaf.value, [])
                if any(each is node for each in assigned) and self._only_returned(leaf.value):
                    return node
        return None

    def _only_returned(self, name: str) -> bool:
        """Whether a local name is only bound by plain assignments, and only returned."""
        returned = sum(
            isinstance(leaf, cst.Name) and leaf.value == name
            for event in self.method.returns
            if isinstance(event.node, cst.Return) and event.node.value is not None
            for leaf in branches_of(event.node.value)
        )
        return self.names.occurrences.get(name, 0) == len(self.names.assigned.get(name, ())) + returned

    def _used_once(self, name: str) -> cst.BaseExpression | None:
        """The value of a local name that is assigned once and read once."""
        assigned = self.names.assigned.get(name, [])
        return assigned[0] if len(assigned) == 1 and self.names.occurrences.get(name) == 2 else None

    # In a display

    def _in_expression(self, expression: cst.BaseExpression, slots: tuple[Slot, ...], wanted: Additions) -> list[Edit]:
        atoms = _fitted(list(self._atoms(expression)), slots)
        if atoms is None:
            return []
        edits: list[Edit] = []
        for before, times in wanted:
            found = self._edits_between(atoms, before, times)
            if not found:
                return []
            edits += found
        return edits

    def _edits_between(self, atoms: list[_Atom], before: int, times: int) -> list[Edit]:
        """Insert ``times`` None before the slot ``before``."""
        previous = atoms[before - 1] if before > 0 else None
        following = atoms[before] if before < len(atoms) else None
        for near in (previous, following):
            if near is not None and near.count is not None:
                return [self.layout.replace(near.count, str(near.count.evaluated_value + times))]
        if previous is not None and previous.display is not None:
            return insert_elements(self.layout, previous.display, previous.at + 1, "None", times)
        if following is not None and following.display is not None:
            return insert_elements(self.layout, following.display, following.at, "None", times)
        return []

    def _atoms(self, expression: cst.BaseExpression) -> Iterator[_Atom]:
        """The code of the elements of a tuple or list."""
        if isinstance(expression, (cst.Tuple, cst.List)):
            for at, element in enumerate(expression.elements):
                if not isinstance(element, cst.StarredElement):
                    yield _Atom(element.value, expression, at)
                    continue
                for atom in self._atoms(element.value):
                    # A starred value whose own code cannot be changed is one element of the display around it.
                    itself = atom.display is not None or atom.count is not None
                    yield atom if itself else _Atom(atom.node, expression, at)
        elif isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Add):
            yield from self._atoms(expression.left)
            yield from self._atoms(expression.right)
        elif isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Multiply):
            yield from _repeated(expression)
        elif isinstance(expression, cst.Name) and self._used_once(expression.value) is not None:
            yield from self._atoms(self._used_once(expression.value) or expression)
        elif isinstance(expression, cst.Call) and _makes_sequence(expression):
            yield from self._atoms(expression.args[0].value)
        else:
            yield _Atom(None)

    # Around the returned value

    def _around_tuple(self, expression: cst.BaseExpression, returned: Returned, wanted: Additions) -> list[Edit]:
        """``return *gradients, None``, if all possible values of the return lack the same."""
        front, behind = _edges(wanted, len(returned.slots))
        if not self._same_for_all(returned, front, behind) or front + behind != sum(times for _at, times in wanted):
            return []
        start, end = self.layout.start(expression), self.layout.end(expression)
        if isinstance(expression, cst.BinaryOperation) and not expression.lpar and not front:
            content = "(None,)" if behind == 1 else f"({_nones(behind)})"
            if isinstance(returned.value, Sequence) and returned.value.kind == "tuple":
                return [self.layout.insert(end, f" + {content}")]
        if isinstance(expression, (cst.Name, cst.Call, cst.BinaryOperation)):
            before = "".join("None, " for _ in range(front))
            after = "".join(", None" for _ in range(behind))
            return [self.layout.insert_word(start, f"({before}*"), self.layout.insert(end, f"{after})")]
        return []

    def _around_value(self, expression: cst.BaseExpression, returned: Returned, wanted: Additions) -> list[Edit]:
        """``return gradient, None``, if all possible values of the return are one gradient or None."""
        front, behind = _edges(wanted, 1)
        if not self._same_for_all(returned, front, behind):
            return []
        if len(expression.lpar) == 1:
            inside = self._inside_parentheses(expression, front, behind)
            if inside:
                return inside
        start, end = self.layout.start(expression), self.layout.end(expression)
        edits = []
        if front:
            edits.append(self.layout.insert_word(start, f"{_nones(front)}, "))
        if behind:
            edits.append(self.layout.insert(end, f", {_nones(behind)}"))
        return edits

    def _inside_parentheses(self, expression: cst.BaseExpression, front: int, behind: int) -> list[Edit]:
        """Turn one gradient in parentheses on lines of their own into a tuple in these."""
        layout = self.layout
        opening, closing = layout.start(expression) + 1, layout.end(expression) - 1
        first = self.layout.source.offset(self.fn.span(expression).start)
        last = self.layout.source.offset(self.fn.span(expression).end)
        indentation = layout.indentation(first)
        if indentation is None or layout.indentation(closing) is None:
            return []
        if not layout.nothing_but_a_comment_follows(opening) or not layout.nothing_but_a_comment_follows(last):
            return []
        line = f"\n{indentation}None,"
        edits = [layout.insert(layout.line_end(opening), line * front)] if front else []
        edits.append(layout.insert(last, ","))
        if behind and layout.line_end(last) == last:
            edits[-1] = layout.insert(last, f",{line * behind}")
        elif behind:
            edits.append(layout.insert(layout.line_end(last), line * behind))
        return edits

    def _same_for_all(self, returned: Returned, front: int, behind: int) -> bool:
        """Whether every other alternative of this return lacks the same number of None before and after."""
        is_tuple = isinstance(returned.value, Sequence)
        explained = {id(each.returned): each for each in self.every}
        for other in self.fn.gradients:
            if other.event is not returned.event or other is returned:
                continue
            if not other.known or isinstance(other.value, Sequence) is not is_tuple:
                return False
            if not is_tuple and is_none(other.value) is Tri.YES:
                continue
            shortfall = explained.get(id(other))
            placement = shortfall.likely if shortfall is not None else None
            if placement is None or not _is_known(placement):
                return False
            if _edges(additions(other, placement), len(other.slots)) != (front, behind):
                return False
        return True


def _edges(wanted: Additions, count: int) -> tuple[int, int]:
    """The number of None to insert at the front, and at the end."""
    found = dict(wanted)
    return found.get(0, 0), found.get(count, 0)


def _nones(count: int) -> str:
    return ", ".join(["None"] * count)


def _fitted(atoms: list[_Atom], slots: tuple[Slot, ...]) -> list[_Atom] | None:
    """One atom for each slot; None if the code does not correspond to the computed value."""
    unknown = [at for at, atom in enumerate(atoms) if atom.node is None]
    if len(unknown) > 1:
        return None
    if unknown:
        at = unknown[0]
        atoms = [*atoms[:at], *[atoms[at]] * (len(slots) - len(atoms) + 1), *atoms[at + 1 :]]
    if len(atoms) != len(slots):
        return None
    for atom, slot in zip(atoms, slots):
        if atom.node is not None and slot.node is not None and atom.node is not slot.node:
            return None
    return atoms


def _repeated(expression: cst.BinaryOperation) -> Iterator[_Atom]:
    for display, count in ((expression.left, expression.right), (expression.right, expression.left)):
        if isinstance(display, (cst.Tuple, cst.List)) and isinstance(count, cst.Integer):
            if any(isinstance(element, cst.StarredElement) for element in display.elements):
                break
            nones = len(display.elements) == 1 and _is_none_literal(display.elements[0].value)
            for _ in range(min(count.evaluated_value, 1_000)):
                for element in display.elements:
                    yield _Atom(element.value, count=count if nones else None)
            return
    yield _Atom(None)


def _makes_sequence(call: cst.Call) -> bool:
    return (
        dotted(call.func) in ("tuple", "list")
        and len(call.args) == 1
        and call.args[0].keyword is None
        and not call.args[0].star
    )


def _is_none_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


@record
class _Names:
    """The local names of a method: their plain assignments, and how often each occurs anywhere in it."""

    assigned: Mapping[str, list[cst.BaseExpression]]
    occurrences: Mapping[str, int]


def _names_in(node: cst.FunctionDef) -> _Names:
    assigned: dict[str, list[cst.BaseExpression]] = {}
    occurrences: dict[str, int] = {}

    def visit(each: cst.CSTNode) -> None:
        if isinstance(each, cst.Name):
            occurrences[each.value] = occurrences.get(each.value, 0) + 1
        elif isinstance(each, cst.Attribute):
            visit(each.value)
            return
        elif isinstance(each, cst.Assign) and len(each.targets) == 1:
            target = each.targets[0].target
            if isinstance(target, cst.Name):
                assigned.setdefault(target.value, []).append(each.value)
        for child in children(each):
            visit(child)

    visit(node)
    return _Names(assigned, occurrences)
