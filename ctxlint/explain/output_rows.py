"""What forward returns, and which parameter of backward gets the gradient of each output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.explain.contract_rows import OutputRow, PlaceRow, StepRow
from ctxlint.explain.gradient_rows import gives_one
from ctxlint.explain.locations import one_line, place_of
from ctxlint.model.analyses.outputs import marked_non_differentiable, output_values, surely_differentiable
from ctxlint.model.interpreter.values import NONE, Kind, Tri, is_tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method


def outputs_known(fn: FunctionClass) -> bool:
    """Whether every return of forward has the same, known number of outputs."""
    return bool(fn.outputs) and len({each.count for each in fn.outputs}) == 1 and fn.outputs[0].count is not None


def output_rows(fn: FunctionClass) -> Iterator[OutputRow]:
    """One row for each output that forward certainly returns or backward has a parameter for."""
    receivers = fn.backward.positional if fn.backward is not None else ()
    open_ended = fn.backward is None or fn.backward.variadic is not None
    count = max((_positions(each) for each in fn.outputs if each.known), default=0)
    if not outputs_known(fn):
        count = max(count, len(receivers), bool(fn.outputs))
    for at in range(count):
        steps, starred = _expressions(fn, at, alone=count == 1)
        starred = starred or (open_ended and count == 1 and not any(each.known for each in fn.outputs))
        answer, because = _differentiable(fn, at) if not starred else ("unknown", None)
        name, place = _receiver(fn, fn.backward, at, starred) if fn.backward is not None else (None, None)
        yield OutputRow(at, steps, starred, answer, because, name, place)


def _first_star(returned: Returned) -> int:
    """The position of the first starred output of a return; the number of outputs if there is none."""
    return next((place for place, slot in enumerate(returned.slots) if slot.starred), len(returned.slots))


def _positions(returned: Returned) -> int:
    """The number of rows for a return: one for all outputs from the first star on."""
    return min(_first_star(returned) + 1, len(returned.slots))


def _code(fn: FunctionClass, returned: Returned, at: int, node: cst.CSTNode) -> str:
    """The code of an output; of a starred one, together with those behind it."""
    rest = returned.slots[at + 1 :] if returned.known and at == _first_star(returned) else ()
    nodes = [slot.node for slot in rest if slot.node is not None]
    if not rest or len(nodes) < len(rest):
        return one_line(fn, node)
    behind = [f"{'*' if slot.starred else ''}{one_line(fn, each)}" for slot, each in zip(rest, nodes)]
    return ", ".join([f"*{one_line(fn, node)}", *behind])


def _expressions(fn: FunctionClass, at: int, alone: bool) -> tuple[tuple[StepRow, ...], bool]:
    """The code of an output over all returns, and whether a star makes it any number of them."""
    found: dict[str, StepRow] = {}
    starred = False
    for returned in fn.outputs:
        written = returned.node.value if isinstance(returned.node, cst.Return) else None
        node: cst.CSTNode | None = None
        if returned.known:
            if at >= _positions(returned):
                continue
            slot = returned.slots[at]
            starred = starred or slot.starred
            alternatives = [each for each in fn.outputs if each.event is returned.event]
            node = slot.node or (written if gives_one(alternatives) else None)
        elif alone:
            node = written
        place = place_of(fn, node) if node is not None else None
        if node is not None and place is not None:
            text = _code(fn, returned, at, node)
            found.setdefault(text, StepRow(text, place))
    return tuple(found.values()), starred


def _differentiable(fn: FunctionClass, at: int) -> tuple[str, str | None]:
    """Whether an output gets a gradient, and why not."""
    output = output_values(fn, at)
    marked = marked_non_differentiable(fn)
    if output is None:
        return "unknown", None
    options = [option for value in output for option in value.options() if option != NONE]
    if not options:
        return "no", "None"
    if all(is_tensor(option) is Tri.NO for option in options):
        return "no", "not a tensor"
    if marked and all(option in marked for option in options):
        always = not any(call.guards for call in fn.context_calls("mark_non_differentiable"))
        return ("no", "marked non-differentiable") if always else ("unknown", None)
    if all(kind_of(option) is Kind.INTEGRAL for option in options):
        return "no", "holds integers or bools"
    return ("yes" if surely_differentiable(fn, at) else "unknown"), None


def _receiver(fn: FunctionClass, backward: Method, at: int, starred: bool) -> tuple[str | None, PlaceRow | None]:
    if not backward.signature_known or backward.lacks_ctx or fn.patched:
        return None, None
    if at < len(backward.positional):
        param = backward.positional[at]
        return param.name, place_of(fn, param.node.name)
    if backward.variadic is not None:
        first = at - len(backward.positional)
        name = f"{backward.variadic.name}[{first}]"
        if starred:
            name = f"*{backward.variadic.name}" + (f"[{first}:]" if first else "")
        return name, place_of(fn, backward.variadic.node.name)
    return None, None
