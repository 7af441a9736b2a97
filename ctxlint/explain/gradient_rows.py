"""What backward returns, slot by slot, and which input each is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.explain.contract_rows import Gradient, GuardRow, ReturnRow, SlotRow, StepRow
from ctxlint.explain.locations import one_line, place_of, place_with_parentheses
from ctxlint.model.analyses.gradient_sources import FlagTest, computed_by, conditional_flag, flag_tests
from ctxlint.model.interpreter import values
from ctxlint.model.interpreter.method import Binding
from ctxlint.model.interpreter.values import NONE, Tri, is_none, join_all
from ctxlint.model.syntax import children
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method


@record
class _Merged:
    """One slot of several returned tuples: its values, and the expressions of those other than None."""

    options: tuple[values.Value, ...]
    nodes: tuple[cst.BaseExpression | None, ...]
    starred: bool


def return_rows(fn: FunctionClass) -> tuple[ReturnRow, ...]:
    """One row for each return of backward; several if one return has tuples of different lengths."""
    backward = fn.backward
    if backward is None:
        return ()
    rows: list[ReturnRow] = []
    for event in backward.returns:
        alternatives = [each for each in fn.gradients if each.event is event]
        value = event.node.value if isinstance(event.node, cst.Return) else None
        text = one_line(fn, value) if value is not None else ""
        place, guards = place_of(fn, event.node), _guards(fn, flag_tests(event.guards))
        if not alternatives or not all(each.known for each in alternatives):
            rows.append(ReturnRow(text, place, guards, None))
            continue
        tuples = [tuple(_slots(fn, backward, event.node, merged)) for merged in _merged(alternatives, value)]
        rows.extend(ReturnRow(text, place, guards, slots) for slots in tuples)
    return tuple(rows)


def gives_one(alternatives: Sequence[Returned]) -> bool:
    """Whether a return has a single value on every path, so that its whole expression represents it."""
    return all(each.known and len(each.slots) == 1 for each in alternatives)


def _merged(alternatives: Sequence[Returned], written: cst.BaseExpression | None) -> Iterator[list[_Merged]]:
    """Alternatives of equal length with stars at equal positions, merged. ``written`` is the returned expression."""
    whole = written if gives_one(alternatives) else None
    groups: dict[tuple[bool, ...], list[Returned]] = {}
    for each in alternatives:
        groups.setdefault(tuple(slot.starred for slot in each.slots), []).append(each)
    for same in groups.values():
        yield [_merged_slot([each.slots[at] for each in same], whole) for at in range(len(same[0].slots))]


def _merged_slot(slots: list[values.Slot], whole: cst.BaseExpression | None) -> _Merged:
    telling = [slot for slot in slots if is_none(slot.value) is not Tri.YES] or slots
    nodes = {id(node): node for node in (slot.node or whole for slot in telling)}
    options = dict.fromkeys(option for slot in slots for option in slot.value.options())
    return _Merged(tuple(options), tuple(nodes.values()), slots[0].starred)


def _slots(fn: FunctionClass, backward: Method, statement: cst.CSTNode, merged: list[_Merged]) -> Iterator[SlotRow]:
    certain = positions_certain(fn)
    inside = set(_ids_under(statement))
    behind_star = False
    for at, each in enumerate(merged):
        node = each.nodes[0] if len(each.nodes) == 1 else None
        place = place_with_parentheses(fn, node) if node is not None else None
        shown = values.Slot(join_all(each.options), node if place is not None else None, each.starred)
        computed = computed_by(backward, shown)
        index, name = _input(fn, at, each.starred) if certain and not behind_star else (None, None)
        yield SlotRow(
            position=None if behind_star else at,
            text=_text(fn, each),
            none=_whether_none(each.options),
            starred=each.starred,
            input=index,
            input_name=name,
            place=place,
            written_here=place is not None and id(node) in inside,
            computed=tuple(StepRow(one_line(fn, step.node), place_of(fn, step.node)) for step in computed),
            guards=_slot_guards(fn, shown, [tuple(flag_tests(step.guards)) for step in computed if step.binds]),
        )
        behind_star = behind_star or each.starred


def positions_certain(fn: FunctionClass) -> bool:
    """Whether what backward returns corresponds to forward's inputs one to one."""
    methods = [method for method in (fn.forward, fn.backward) if method is not None]
    return len(methods) == 2 and not fn.patched and all(_is_as_written(method) for method in methods)


def _is_as_written(method: Method) -> bool:
    as_called = method.receiver is None or method.binding is Binding.CLASS
    return method.signature_known and not method.lacks_ctx and as_called


def _input(fn: FunctionClass, at: int, starred: bool) -> tuple[int | None, str | None]:
    """The input of a slot; for a starred one, the ``*args`` that begin at the same position."""
    if starred:
        variadic = fn.variadic_inputs
        return (at, f"*{variadic.name}") if variadic is not None and at == len(fn.inputs) else (None, None)
    if at < len(fn.inputs):
        return at, fn.inputs[at].name
    if fn.variadic_inputs is not None:
        return at, f"{fn.variadic_inputs.name}[{at - len(fn.inputs)}]"
    return None, None


def _text(fn: FunctionClass, merged: _Merged) -> str | None:
    """The code of a slot; several pieces if it depends on the path. None if some of it is somewhere else."""
    if all(is_none(option) is Tri.YES for option in merged.options):
        return "None"
    codes: list[str] = []
    for node in merged.nodes:
        if node is None or fn.location_of(node) is None:
            return None
        codes.append(one_line(fn, node))
    return ("*" if merged.starred else "") + " or ".join(dict.fromkeys(codes))


def _whether_none(options: Iterable[values.Value]) -> str:
    answers = {is_none(option) for option in options}
    if NONE in options and len(answers) > 1:
        return "sometimes"
    return answers.pop().value if len(answers) == 1 else "unknown"


def _ids_under(node: cst.CSTNode) -> Iterator[int]:
    yield id(node)
    for child in children(node):
        yield from _ids_under(child)


# The flags that a gradient depends on


def _slot_guards(fn: FunctionClass, slot: values.Slot, steps: list[tuple[FlagTest, ...]]) -> tuple[GuardRow, ...]:
    """The flags without which a gradient is not computed; none if one of the ways to compute it depends on none."""
    conditional = conditional_flag(slot)
    if conditional is not None:
        return _guards(fn, (conditional,))
    if not steps or not all(steps):
        return ()
    return _guards(fn, (test for tests in steps for test in tests))


def _guards(fn: FunctionClass, tests: Iterable[FlagTest]) -> tuple[GuardRow, ...]:
    found = [GuardRow(_test_text(fn, each), each.index, place_of(fn, each.test)) for each in tests]
    by_text: dict[str, GuardRow] = {}
    for guard in found:
        by_text.setdefault(guard.text, guard)
    return tuple(by_text.values())


def _test_text(fn: FunctionClass, test: FlagTest) -> str:
    """The test as it must hold: the operand of ``not`` if it must fail."""
    node = test.test
    if test.holds:
        return one_line(fn, node)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return one_line(fn, node.expression)
    code = one_line(fn, node)
    return f"not {code}" if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) else f"not ({code})"


# The view of an input


def gradients_for(position: int, returns: tuple[ReturnRow, ...], variadic: bool = False) -> tuple[Gradient, ...]:
    """What each return has for the input at ``position``; for ``*args``, for the first and all after it."""
    return tuple(found for row in returns for found in _gradients_of(position, row, variadic))


def _gradients_of(position: int, row: ReturnRow, variadic: bool) -> list[Gradient]:
    if row.slots is None:
        return [Gradient("unknown", row)]
    mine = [each for each in row.slots if each.input == position]
    if variadic:
        mine = [each for each in row.slots if each.position is not None and each.position >= position]
    if mine:
        return [Gradient("returned", row, each) for each in mine]
    open_ended = any(each.starred or each.input is None for each in row.slots[: position + 1])
    return [Gradient("unknown" if open_ended or variadic else "missing", row)]
