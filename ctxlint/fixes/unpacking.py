"""Reading a tensor from ``ctx.saved_tensors`` in backward: instead of from an attribute, or too."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.appending import append_target
from ctxlint.fixes.class_layout import layout_of
from ctxlint.fixes.context_uses import context_uses
from ctxlint.fixes.displays import insert_elements
from ctxlint.model.analyses.attribute_uses import OF_A_TENSOR
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence as SequenceOf

    from ctxlint.fix import Edit
    from ctxlint.fixes.method_code import MethodCode
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


def read_from_saved(
    code: MethodCode, attribute: str, saved: int, position: int | None, wanted: tuple[str, ...]
) -> list[Edit] | None:
    """Edits that replace each read of ``ctx.attribute`` by a name that the saved tensor is unpacked to.

    ``saved`` tensors are saved so far. ``position`` is that of the tensor; None for one that will be saved as the last
    one. ``wanted`` are names for it, the best one first. Returns None if the method reads the saved tensors in another
    way than by one plain unpacking, or uses the attribute in a way that no saved tensor allows.
    """
    uses = context_uses(code)
    reads = uses.reads.get(attribute, [])
    taken = uses.reads.get("saved_tensors", [])
    if not uses.plain or attribute in uses.stores or {"saved_variables", "saved_for_forward"} & uses.reads.keys():
        return None
    if not reads:
        return None if position is None else []
    if len(taken) > 1 or not all(_is_replaceable(code, read) for read in reads):
        return None
    if not taken:
        return _new_unpacking(code, reads, saved, position, wanted)
    target = plain_unpacking(code, taken[0], saved)
    if target is None:
        return None
    if position is None:
        return _append_to_unpacking(code, reads, target, wanted)
    return _take_from_unpacking(code, reads, target, position, wanted)


def _is_replaceable(code: MethodCode, read: cst.Attribute) -> bool:
    """Whether a name can replace a read, and a tensor without attributes of its own suffices there."""
    parent = code.parents[read]
    if isinstance(parent, cst.FormattedStringExpression) and parent.equal is not None:
        return False
    if isinstance(parent, cst.Assign) and any(
        not _needs_tensor(code.parents[use], use)
        for each in parent.targets
        if isinstance(each.target, cst.Name)
        for use in code.uses(each.target.value)
    ):
        return False
    return _needs_tensor(parent, read) and not code.holds_comment(read)


def _needs_tensor(parent: cst.CSTNode, used: cst.CSTNode) -> bool:
    return not isinstance(parent, cst.Attribute) or parent.value is not used or parent.attr.value in OF_A_TENSOR


def unpack_all(fn: FunctionClass, method: Method, target: cst.CSTNode, names: SequenceOf[str]) -> Fix | None:
    """Unpack all saved tensors, whose names these are in order, where ``target`` leaves out some of them.

    None if the target binds anything else, or in another order.
    """
    layout = layout_of(fn, method)
    if layout is None or not isinstance(target, (cst.Tuple, cst.List)):
        return None
    bound = [each.value.value if isinstance(each.value, cst.Name) else "" for each in target.elements]
    if [name for name in names if name in bound] != bound:
        return None
    edits: list[Edit] = []
    if "\n" in layout.code(target):
        for before, left_out in groupby((name for name in names if name not in bound), partial(_place, names, bound)):
            edits += insert_elements(layout, target, before, ", ".join(left_out), 1)
    else:
        opening, closing = "[]" if isinstance(target, cst.List) else "()" if target.lpar and bound[1:] else ("", "")
        edits.append(layout.replace(target, f"{opening}{', '.join(names)}{closing}"))
    left = ", ".join(f"`{name}`" for name in names if name not in bound)
    return Fix(f"Unpack {left} too", tuple(edits), Applicability.SAFE)


def _place(names: SequenceOf[str], bound: SequenceOf[str], name: str) -> int:
    """How many of the bound names come before a name."""
    return sum(each in bound for each in names[: names.index(name)])


# ---------------------------------------------------------------------------------------------------------------------
# A new unpacking


def _new_unpacking(
    code: MethodCode, reads: list[cst.Attribute], saved: int, position: int | None, wanted: tuple[str, ...]
) -> list[Edit] | None:
    """Unpack after the docstring; unused tensors are bound to ``_``."""
    others = saved if position is None else saved - 1
    if (others and code.uses("_")) or code.method.ctx is None:
        return None
    alias = _alias(code, reads)
    name = code.fresh(*wanted) if alias is None else alias.name
    names = ["_"] * others
    names.insert(others if position is None else position, name)
    targets = f"({name},)" if len(names) == 1 else ", ".join(names)
    unpacking = code.first(f"{targets} = {code.method.ctx.name}.saved_tensors")
    if unpacking is None:
        return None
    return [unpacking, *_reads_become(code, reads, name, alias)]


# ---------------------------------------------------------------------------------------------------------------------
# An existing unpacking


def plain_unpacking(code: MethodCode, read: cst.Attribute, saved: int) -> cst.Tuple | cst.List | None:
    """The target of ``a, b = ctx.saved_tensors``, if it unpacks exactly the tensors that are saved."""
    statement = code.parents[read]
    if not isinstance(statement, cst.Assign) or statement.value is not read or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) != saved or not saved:
        return None
    plain = all(isinstance(each, cst.Element) and isinstance(each.value, cst.Name) for each in target.elements)
    return target if plain else None


def _append_to_unpacking(
    code: MethodCode, reads: list[cst.Attribute], target: cst.Tuple | cst.List, wanted: tuple[str, ...]
) -> list[Edit] | None:
    alias = _alias(code, reads, unpacking=target)
    name = code.fresh(*wanted) if alias is None else alias.name
    if not _all_follow(code, target, _uses_afterwards(code, reads, alias, target)):
        return None
    return [*_with_one_more(code, target, name), *_reads_become(code, reads, name, alias)]


def _with_one_more(code: MethodCode, target: cst.Tuple | cst.List, name: str) -> list[Edit]:
    """``(a,)`` becomes ``a, b``: its brackets were there for the comma."""
    text, first = code.layout.code(target), target.elements[0].value
    if isinstance(target, cst.Tuple) and len(target.elements) == 1 and target.lpar and "\n" not in text:
        return [code.layout.replace(target, f"{code.layout.code(first)}, {name}")]
    return append_target(code.layout, target, name)


def _take_from_unpacking(
    code: MethodCode,
    reads: list[cst.Attribute],
    target: cst.Tuple | cst.List,
    position: int,
    wanted: tuple[str, ...],
) -> list[Edit] | None:
    """Read the name that the unpacking binds to the tensor; it gets one if that is ``_``."""
    element = target.elements[position].value
    if not isinstance(element, cst.Name):
        return None
    name, renamed = element.value, []
    alias = _alias(code, reads, also=name)
    if name == "_" or len(code.uses(name)) == 1:
        name = code.fresh(*wanted) if alias is None else alias.name
        renamed = [code.layout.replace(element, name)]
    else:
        alias = alias if alias is not None and alias.name == name else None
        if len(code.bindings(name)) != 1 + (alias is not None):
            return None
    if not _all_follow(code, target, _uses_afterwards(code, reads, alias, target)):
        return None
    return [*renamed, *_reads_become(code, reads, name, alias)]


def _uses_afterwards(
    code: MethodCode, reads: list[cst.Attribute], alias: _Alias | None, target: cst.CSTNode
) -> list[cst.CSTNode]:
    """What will read the unpacked name: the remaining reads, and the uses of the variable that replaces others."""
    found: list[cst.CSTNode] = [read for read in reads if alias is None or read is not alias.statement.value]
    if alias is not None:
        uses = (use for use in code.uses(alias.name) if use is not alias.target)
        found += [use for use in uses if target not in code.above(use)]
    return found


def _all_follow(code: MethodCode, target: cst.CSTNode, nodes: list[cst.CSTNode]) -> bool:
    """Whether nodes are in the block of an unpacking, after it: it has run wherever they do."""
    statement = code.statement(target)
    if statement is None:
        return False
    block, end = code.block(statement), code.layout.end(statement)
    return all(block in tuple(code.above(node)) and code.layout.start(node) >= end for node in nodes)


# ---------------------------------------------------------------------------------------------------------------------
# Existing names


@record
class _Alias:
    """``name = ctx.attribute``, if it binds the name first: the unpacking can bind it, and the statement is removed."""

    name: str
    target: cst.Name
    statement: cst.Assign


def _alias(
    code: MethodCode, reads: list[cst.Attribute], also: str | None = None, unpacking: cst.CSTNode | None = None
) -> _Alias | None:
    """The first such statement. ``also`` is a name that the unpacking already binds.

    The name may be rebound later if the statement and the ``unpacking`` are in the body of the method.
    """
    parameters = {param.name for param in code.method.params}
    for read in reads:
        statement = code.parents[read]
        if not isinstance(statement, cst.Assign) or statement.value is not read or len(statement.targets) != 1:
            continue
        target = statement.targets[0].target
        if not isinstance(target, cst.Name) or target.value in parameters:
            continue
        bound = code.bindings(target.value)
        once = len(bound) == 1 + (target.value == also) and code.in_own_scope(read)
        if (once or _binds_first(code, statement, bound, unpacking)) and not code.is_only_statement(statement):
            return _Alias(target.value, target, statement)
    return None


def _binds_first(code: MethodCode, statement: cst.Assign, bound: list[int], unpacking: cst.CSTNode | None) -> bool:
    """Whether both statements run once, with nothing that binds the name before or between them."""
    other = code.statement(unpacking) if unpacking is not None else None
    body = code.method.node.body
    if other is None or code.block(statement) is not body or code.block(other) is not body:
        return False
    last = max(code.layout.end(statement), code.layout.end(other))
    return bound[0] == code.layout.start(statement.targets[0].target) and all(at >= last for at in bound[1:])


def _reads_become(code: MethodCode, reads: list[cst.Attribute], name: str, alias: _Alias | None) -> list[Edit]:
    edits = [code.layout.replace(read, name) for read in reads if alias is None or read is not alias.statement.value]
    return edits if alias is None else [*edits, code.without(alias.statement)]
