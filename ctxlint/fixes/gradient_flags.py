"""Computing a gradient under the flag of the input that it is returned for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit
from ctxlint.fixes.method_code import code_of_method
from ctxlint.fixes.unbound_gradients import returned_position
from ctxlint.model.analyses.flags import computed_under, flag_of_conditional, flags_of
from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.model.syntax import names_in, single_index
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.fix import Fix
    from ctxlint.fixes.method_code import MethodCode
    from ctxlint.model.analyses.flags import Misplaced
    from ctxlint.model.analyses.unconditional_gradients import Unconditional
    from ctxlint.model.function import FunctionClass

Line = cst.CSTNode
"""A statement of a block: a line of small statements, or a compound one."""


def test_own_flag(fn: FunctionClass, misplaced: Misplaced) -> Fix | None:
    """Test the flag of the input that gets the gradient, in a separate test if others share the present one.

    None if the position in the tuple may be wrong instead, and if the computations under the test depend on each other.
    """
    code = None if fn.backward is None else code_of_method(fn, fn.backward)
    named = max(misplaced.slot, *misplaced.flags) < len(fn.inputs)
    if code is None or len(misplaced.flags) != 1 or not named or misplaced.varies or not _flag_is_wrong(fn, misplaced):
        return None
    edits = _in_conditional(fn, code, misplaced) or (_in_block(code, misplaced) if misplaced.name else None)
    message = f"Test `{fn.reading_ctx}.needs_input_grad[{misplaced.slot}]`"
    return None if edits is None else code.fix(message, edits, Applicability.UNSAFE)


# ---------------------------------------------------------------------------------------------------------------------
# Flag or position


def _flag_is_wrong(fn: FunctionClass, misplaced: Misplaced) -> bool:
    """Whether the gradient is in the right position: by its name, or because nothing else can take the other one."""
    (flag,) = misplaced.flags
    if misplaced.name in _names_of_gradient(fn.inputs[misplaced.slot].name):
        return True
    if misplaced.name in _names_of_gradient(fn.inputs[flag].name):
        return False
    return fn.inputs[flag].is_tensor is Tri.NO or _has_its_own(fn, flag)


def _names_of_gradient(name: str) -> frozenset[str]:
    """The usual names of the gradient of an input."""
    return frozenset(
        (f"{name}_grad", f"{name}_gradient", f"grad_{name}", f"grad{name}", f"d{name}", f"d_{name}", f"g{name}")
    )


def _has_its_own(fn: FunctionClass, flag: int) -> bool:
    """Whether every return has a gradient for an input that is computed under its own flag."""
    backward = fn.backward
    slots = [each.slots[flag] for each in fn.gradients if flag < len(each.slots)]
    if backward is None or len(slots) != len(fn.gradients):
        return False
    return all(
        not slot.starred
        and (
            flag_of_conditional(slot.node, backward) == flag
            or (isinstance(slot.node, cst.Name) and computed_under(backward, slot.node.value) == frozenset({flag}))
        )
        for slot in slots
    )


# ---------------------------------------------------------------------------------------------------------------------
# ``gradient if ctx.needs_input_grad[1] else None``


def _in_conditional(fn: FunctionClass, code: MethodCode, misplaced: Misplaced) -> list[Edit] | None:
    for returned in fn.gradients:
        slot = returned.slots[misplaced.slot] if misplaced.slot < len(returned.slots) else None
        conditional = code.method.behind_name(slot.node) if slot is not None else None
        if returned.node is misplaced.node and isinstance(conditional, cst.IfExp):
            test: cst.BaseExpression | None = conditional.test
            if isinstance(test, cst.Name) and len(code.uses(test.value)) == 2:  # bound and tested
                test = code.method.behind_name(test)
            index = _index(test)
            if index is not None and index in code.parents:
                return [code.layout.replace(index, str(misplaced.slot))]
    return None


def _index(test: cst.BaseExpression | None) -> cst.Integer | None:
    """The number in ``….needs_input_grad[1]``, or the same with an alias of it."""
    index = single_index(test) if isinstance(test, cst.Subscript) else None
    return index if isinstance(index, cst.Integer) else None


# ---------------------------------------------------------------------------------------------------------------------
# ``if ctx.needs_input_grad[1]:``


@record
class _Test:
    """An ``if`` under which a gradient is computed. ``own`` are the lines that only this gradient uses."""

    node: cst.If
    lines: Sequence[Line]
    own: Sequence[Line]


def _in_block(code: MethodCode, misplaced: Misplaced) -> list[Edit] | None:
    test = _test_around(code, misplaced)
    index = None if test is None else _index(test.node.test)
    if test is None or index is None:
        return None
    layout, slot = code.layout, str(misplaced.slot)
    renumbered = layout.replace(index, slot)
    if len(test.own) == len(test.lines):
        return [renumbered] if _else_is_none(test.node, misplaced.name) else None
    if test.node.orelse is not None or not isinstance(test.node.body, cst.IndentedBlock):
        return None
    first, end = test.lines.index(test.own[0]), test.lines.index(test.own[-1]) + 1
    if end - first != len(test.own):
        return None
    indentation = layout.indentation(layout.start(test.node))
    condition = layout.code(test.node.test)
    start = layout.start(test.node.test)
    mine = condition[: renumbered.start - start] + slot + condition[renumbered.end - start :]
    if indentation is None or "\n" in condition:
        return None
    edits: list[Edit | None] = [renumbered] if first == 0 else [_head(code, test.own[0], f"{indentation}if {mine}:\n")]
    if end < len(test.lines):
        edits.append(_head(code, test.lines[end], f"{indentation}if {condition}:\n"))
    found = [each for each in edits if each is not None]
    return found if len(found) == len(edits) else None


def _head(code: MethodCode, line: Line, text: str) -> Edit | None:
    """Insert the head of a block above a line and its comments."""
    statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
    place = code.before(statement, "")
    return None if place is None else Edit(place.start, place.start, text)


def _test_around(code: MethodCode, misplaced: Misplaced) -> _Test | None:
    """The only test of the flag under which all values of a gradient are computed, if it can be split."""
    name, (flag,) = misplaced.name, misplaced.flags
    tests: dict[cst.If, None] = {}
    holding: list[cst.CSTNode] = []
    for each in code.method.facts.of(Assigned):
        if each.name != name or (each.value is not None and is_none(each.value) is Tri.YES and not each.augmented):
            continue
        testing = [guard for guard in each.guards if flag in flags_of([guard])]
        around = [node for node in code.above(each.node) if isinstance(node, cst.If)]
        if len(testing) != 1 or all(testing[0].test is not node.test for node in around):
            return None
        tests.update({node: None for node in around if testing[0].test is node.test})
        holding.append(each.node)
    if len(tests) != 1:
        return None
    (node,) = tests
    if isinstance(code.parents[node], cst.If) or not isinstance(
        node.body, (cst.IndentedBlock, cst.SimpleStatementSuite)
    ):
        return None
    lines = tuple(node.body.body)
    own = _lines_of_gradient(code, node, lines, name, holding)
    return None if own is None else _Test(node, lines, own)


def _lines_of_gradient(
    code: MethodCode, test: cst.If, lines: Sequence[Line], name: str, holding: Sequence[cst.CSTNode]
) -> list[Line] | None:
    """The lines of a block that compute one gradient; None if others depend on them, or they on others."""

    def line_of(node: cst.CSTNode) -> Line | None:
        return next((each for each in (node, *code.above(node)) if each in lines), None)

    names_bound = {line: _bound_in(code, line) for line in lines}
    own = {line for line in map(line_of, holding) if line is not None}
    todo = list(own)
    while todo:
        for read in names_in(todo.pop()):
            if read == name:
                continue
            bound = [line for line, names in names_bound.items() if read in names]
            fresh = [each for each in bound if each not in own]
            if not bound and not _bound_before(code, test, read):
                return None
            own.update(fresh)
            todo += fresh
    for bound_here in {each for line in own for each in names_bound[line]}:
        for use in code.uses(bound_here):
            if line_of(use) in own:
                continue
            if bound_here != name or not (_is_none_bound(code, use) or returned_position(code, use) is not None):
                return None
    return [line for line in lines if line in own]


def _bound_in(code: MethodCode, line: Line) -> set[str]:
    """The names that a line binds."""
    start, end = code.layout.start(line), code.layout.end(line)
    return {name for name in names_in(line) if any(start <= at < end for at in code.bindings(name))}


def _bound_before(code: MethodCode, test: cst.If, name: str) -> bool:
    """Whether a name has a value before the test, whatever the flags are; includes names that are not local."""
    if not code.bindings(name) or any(param.name == name for param in code.method.params):
        return True
    blocks = [each for each in code.above(test) if isinstance(each, cst.BaseSuite)]
    return any(
        code.layout.start(use) < code.layout.start(test)
        and code.block(use) in blocks
        and any(isinstance(each, cst.AssignTarget) for each in code.above(use))
        for use in code.uses(name)
    )


def _is_none_bound(code: MethodCode, use: cst.Name) -> bool:
    """Whether a use is a target of ``name = None``, alone or with others."""
    target = code.parents[use]
    statement = code.parents[target]
    return (
        isinstance(target, cst.AssignTarget)
        and isinstance(statement, cst.Assign)
        and isinstance(statement.value, cst.Name)
        and statement.value.value == "None"
    )


def _else_is_none(test: cst.If, name: str) -> bool:
    """Whether there is no ``else``, or one that only binds the name to None."""
    if test.orelse is None:
        return True
    if not isinstance(test.orelse, cst.Else):
        return False
    code = cst.Module(()).code_for_node(test.orelse.body).strip()
    return code == f"{name} = None"


def compute_under_flag(fn: FunctionClass, found: Unconditional) -> Fix | None:
    """Append ``… if ctx.needs_input_grad[1] else None`` to a gradient that is written on one line."""
    code = None if fn.backward is None or found.filled or found.again else code_of_method(fn, fn.backward)
    if code is None or fn.backward is None or fn.backward.ctx is None or code.holds_comment(found.value):
        return None
    start, end = code.layout.start(found.value), code.layout.end(found.value)
    if "\n" in code.layout.text[start:end]:
        return None
    flag = f"{fn.backward.ctx.name}.needs_input_grad[{found.slot}]"
    return code.fix(f"Test `{flag}`", [code.layout.insert(end, f" if {flag} else None")], Applicability.UNSAFE)
