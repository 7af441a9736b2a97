"""Memory that is allocated without values, and that the first code which gets it adds to."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.unwritten_gradients import allocates
from ctxlint.model.interpreter.events import Mutation, Question, UnfilledAllocation
from ctxlint.model.interpreter.local_names import only_assigned
from ctxlint.model.interpreter.values import Fresh, before_views
from ctxlint.model.syntax import ancestors, compares_identity, is_name, last_name, parents_below
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method, MethodFacts
    from ctxlint.model.syntax import Parents


@record
class UnfilledSum:
    """The ``allocation`` that is bound to ``name``, and the first write to it, which adds."""

    name: str
    allocation: cst.Call
    added: Mutation


def unfilled_sums(method: Method) -> Iterator[UnfilledSum]:
    """The new memory in a method that certainly is added to before anything else is written there."""
    seen: set[cst.CSTNode] = set()
    for added in method.facts.of(Mutation):
        made = before_views(added.target) if added.target is not None else None
        if not isinstance(made, Fresh) or made.node in seen or added.name is None or not adds(added):
            continue
        call, bound = made.node, method.assignments.get(added.name, [])
        plain = [each for each in bound if not each.augmented]
        if len(plain) != 1 or plain[0].value_node is not call or not isinstance(call, cst.Call) or not allocates(call):
            continue
        target = method.parents.get(plain[0].node)
        binders = [each for each in method.binders[added.name] if not isinstance(each, cst.AugAssign)]
        if not isinstance(target, cst.AssignTarget) or len(binders) != 1 or not _alone(method.parents, target):
            continue
        certain = runs_in_any_case(each for each in added.guards if each not in plain[0].guards)
        if certain and is_first_use(method.parents, method.named[added.name], added):
            seen.add(call)
            yield UnfilledSum(added.name, call, added)


def unfilled_sums_of(function: cst.FunctionDef, facts: MethodFacts) -> Iterator[tuple[Mutation, UnfilledAllocation]]:
    """The same in a function, where nothing lies between the allocation and the write: both are in one block."""
    for added in facts.of(Mutation):
        if added.name is None or added.target is None or not (added.adds if added.by else adds(added)):
            continue
        made = before_views(added.target)
        call = made.node if isinstance(made, Fresh) else None
        if not isinstance(call, cst.Call) or not allocates(call) or only_assigned(function, added.name) is not call:
            continue
        parents = parents_below(function)
        uses = [each for each in parents if is_name(each, added.name)]
        if _block_of(parents, call) is _block_of(parents, added.node) and is_first_use(parents, uses, added):
            yield added, UnfilledAllocation(added.name, *made_by(call), added.by or added.how)


def made_by(call: cst.Call) -> tuple[str, str]:
    """The name of the function that allocates, and of the one that allocates the same with values; empty for none."""
    made = last_name(call.func) or ""
    formatted = any(each.keyword is not None and each.keyword.value == "memory_format" for each in call.args)
    return made, _ZEROS.get(made, "") if made == "empty_like" or not formatted else ""


_ZEROS = {"empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros"}


def _block_of(parents: Parents, node: cst.CSTNode) -> cst.CSTNode | None:
    """The block of the statement that a node is in; None within a lambda, a comprehension or a condition."""
    for each in ancestors(parents, node):
        if isinstance(each, cst.BaseSuite):
            return each
        if isinstance(each, (cst.Lambda, cst.BaseComp, cst.IfExp, cst.BooleanOperation)):
            return None
    return None


def adds(mutation: Mutation) -> bool:
    """Whether a write certainly adds to what is there."""
    if mutation.by or mutation.through:
        return mutation.adds
    if mutation.how.rpartition(" ")[2] in ("+=", "-="):
        return True
    call = mutation.node
    if mutation.how not in _ADDING or not isinstance(call, cst.Call):
        return False
    scaled = any(each.keyword is not None and each.keyword.value in ("beta", "include_self") for each in call.args)
    return not scaled and len(call.args) <= _ADDING[mutation.how]


_ADDING = {
    **dict.fromkeys(["add_", "addbmm_", "addmm_", "addmv_", "addr_", "baddbmm_", "sub_", "subtract_"], 2),
    **dict.fromkeys(["addcdiv_", "addcmul_", "index_add_", "scatter_add_"], 3),
}
"""Methods that add to their tensor, each with the number of its arguments, apart from keywords and factors."""


def runs_in_any_case(guards: Iterable[Guard]) -> bool:
    """Whether code under these guards runs in any case, but for loops and gradients that are not needed."""
    return all(
        each.arm == "loop"
        if each.test is None
        else each.asks is not None and each.asks.answer and each.asks.question is Question.NEEDS_INPUT_GRAD
        for each in guards
    )


def is_first_use(parents: Parents, uses: Sequence[cst.CSTNode], added: Mutation) -> bool:
    """Whether a write is the first code that gets the memory of a name with these ``uses``, and gets it once."""
    place = parents.get(added.node) if isinstance(added.node, cst.Subscript) else added.node
    if place is None:
        return False
    real = [each for each in uses if not _is_harmless(parents, each)]
    inside = [each for each in real if place in ancestors(parents, each)]
    return len(inside) == 1 and real[0] is inside[0] and not _is_filled_on_the_way(parents, inside[0], place)


def _is_filled_on_the_way(parents: Parents, use: cst.CSTNode, place: cst.CSTNode) -> bool:
    """Whether a call between a name and the write that gets it may fill the memory: ``add(out.zero_(), x)``."""
    calls = (
        each
        for each in takewhile(lambda each: each is not place, ancestors(parents, use))
        if isinstance(each, cst.Call)
    )
    return any(last_name(each.func) not in operations.VIEW_METHODS | operations.USUAL_VIEW_METHODS for each in calls)


def _is_harmless(parents: Parents, use: cst.CSTNode) -> bool:
    """Whether a name is bound there, or not asked for its memory."""
    above = parents.get(use)
    if isinstance(above, cst.Comparison):
        return compares_identity(above)
    if isinstance(above, cst.Attribute):
        return above.attr.value in operations.SCALAR_ATTRIBUTES or above.attr.value in _ABOUT_SHAPE
    return isinstance(above, (cst.AssignTarget, cst.Param))


_ABOUT_SHAPE = frozenset(["dim", "element_size", "is_contiguous", "nelement", "numel", "size", "stride"])


def _alone(parents: Parents, target: cst.AssignTarget) -> bool:
    """Whether it is the only target of its assignment."""
    statement = parents.get(target)
    return isinstance(statement, cst.Assign) and len(statement.targets) == 1
