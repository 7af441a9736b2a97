"""The parts of an input that forward gives to each process, if they are as long as a quotient that rounds down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.left_out import may_fit_sizes, sizes_may_fit
from ctxlint.model.analyses.unconditional_gradients import as_method
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.syntax import code_of, is_name, keywords_of, last_name, root_name, words_of
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


class FlooredSplit(NamedTuple):
    """Where forward takes the part of its process, the size and the number of parts, and the function that does so."""

    node: cst.CSTNode
    size: cst.BaseExpression
    parts: cst.BaseExpression
    by: str = ""


def floored_split(fn: FunctionClass) -> FlooredSplit | None:
    """The first part of an input with ``size // parts`` elements, if nothing in view makes the size a multiple."""
    forward = fn.forward
    if forward is None or forward.inherited or fn.escapes:
        return None
    found = next(_splits(forward), None) if _has_quotient(forward) else None
    found = found or next(_in_helpers(forward), None)
    return found if found is not None and not sizes_may_fit(fn) else None


def _in_helpers(forward: Method) -> Iterator[FlooredSplit]:
    """Those in functions of the project that forward calls and returns the result of."""
    for call in forward.facts.of(GenericCall):
        home = call.definition
        record = home.unit.index.functions.get(home.qualname) if home is not None else None
        if home is None or record is None or not isinstance(forward.parents[call.node], cst.Return):
            continue
        code = home.unit.source.lines(record.node.lineno, record.node.end_lineno or record.node.lineno)
        helper = as_method(forward, home) if "//" in code and _RANK in code else None
        if helper is not None and not may_fit_sizes(helper.node):
            yield from (each._replace(node=call.node, by=home.name) for each in _splits(helper))


_RANK = "rank"


def _has_quotient(method: Method) -> bool:
    return any(isinstance(each.operator, cst.FloorDivide) for each in method.nodes_of(cst.BinaryOperation))


def _treats_last(method: Method) -> bool:
    """Whether a function asks if its process is the last one, which may get the rest."""
    tests = (each.test for kind in (cst.If, cst.IfExp) for each in method.nodes_of(kind))  # type: ignore[attr-defined]
    return any(_is_of_rank(each) and "-" in code_of(each) for each in tests)


def _splits(method: Method) -> Iterator[FlooredSplit]:
    """The parts that a function takes by the number of its process."""
    params = {each.name for each in method.params} - method.binders.keys() if not _treats_last(method) else ()
    for node in (*method.nodes_of(cst.Subscript), *method.nodes_of(cst.Call)):
        taken = _taken(method, node)
        quotient = _quotient(method, taken[1]) if taken is not None and root_name(taken[0]) in params else None
        if taken is not None and quotient is not None:
            size, parts = quotient
            of_tensor = _sized(method, size)
            if of_tensor == root_name(taken[0]) and any(map(_counts_processes, words_of(parts))):
                yield FlooredSplit(node, size, parts)


def _taken(method: Method, node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The tensor and the length, in ``x.split(n)[rank]``, ``x.narrow(0, rank * n, n)`` and ``x[rank * n : ...]``."""
    if isinstance(node, cst.Call):
        given = [each.value for each in node.args if each.keyword is None]
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "narrow" or len(given) != 3:
            return None
        return (node.func.value, given[2]) if _begins_at(given[1], given[2]) else None
    if not isinstance(node, cst.Subscript):
        return None
    only = node.slice[-1].slice if node.slice else None
    if isinstance(only, cst.Slice):
        begin, end = method.behind_name(only.lower), method.behind_name(only.upper)
        if not isinstance(end, cst.BinaryOperation) or only.step is not None:
            return None
        if isinstance(begin, cst.BinaryOperation) and isinstance(begin.operator, cst.Add):  # after a part for all
            begin = begin.left
        if not isinstance(begin, cst.BinaryOperation) or not isinstance(begin.operator, cst.Multiply):
            return None
        sides = (begin.left, begin.right)
        length = next((each for each in sides if not _is_of_rank(each)), None)
        cut = any(map(_is_of_rank, sides)) and code_of(length or end) in code_of(end)
        return (node.value, length) if length is not None and cut else None
    whole = method.behind_name(node.value) if isinstance(only, cst.Index) and _is_of_rank(only) else None
    return _split(whole) if isinstance(whole, cst.Call) and last_name(whole.func) == "split" else None


def _split(call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The tensor and the length of ``x.split(n, dim)`` or ``torch.split(x, n, dim)``."""
    given = [each.value for each in call.args if each.keyword is None]
    if not isinstance(call.func, cst.Attribute) or any(each.star for each in call.args):
        return None
    if not is_name(call.func.value, "torch"):
        given.insert(0, call.func.value)
    length = given[1] if len(given) > 1 else keywords_of(call).get("split_size")
    return (given[0], length) if length is not None and given else None


def _begins_at(begin: cst.BaseExpression, length: cst.BaseExpression) -> bool:
    """Whether a part begins at ``rank * length``."""
    if not isinstance(begin, cst.BinaryOperation) or not isinstance(begin.operator, cst.Multiply):
        return False
    sides = (begin.left, begin.right)
    return any(each.deep_equals(length) for each in sides) and any(map(_is_of_rank, sides))


def _is_of_rank(node: cst.CSTNode) -> bool:
    return any(word == _RANK or word.endswith(f"_{_RANK}") for word in words_of(node))


def _counts_processes(word: str) -> bool:
    return "world" in word or word in _NUMBERS or ("parallel" in word and "size" in word)


_NUMBERS = frozenset(str.split("cp_size dp_size ep_size mp_size num_ranks sp_size tp_size"))


def _quotient(method: Method, node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The operands of ``a // b``, by a name too."""
    found = method.behind_name(node)
    if not isinstance(found, cst.BinaryOperation) or not isinstance(found.operator, cst.FloorDivide):
        return None
    return found.left, found.right


def _sized(method: Method, node: cst.BaseExpression) -> str | None:
    """The tensor whose size an expression is: ``x`` for ``x.shape[0]`` and ``x.size(dim)``, by a name too."""
    found = method.behind_name(node)
    if isinstance(found, cst.BinaryOperation) and isinstance(found.operator, cst.Subtract):  # without a part for all
        found = method.behind_name(found.left)
    if isinstance(found, cst.Call) and found.args:
        return _measured(found.func, "size")
    if not isinstance(found, cst.Subscript):
        return None
    of = found.value
    return _measured(of.func, "size") if isinstance(of, cst.Call) and not of.args else _measured(of, "shape")


def _measured(node: cst.BaseExpression, attribute: str) -> str | None:
    """The name of which an expression is an attribute."""
    known = isinstance(node, cst.Attribute) and node.attr.value == attribute and isinstance(node.value, cst.Name)
    return root_name(node) if known else None
