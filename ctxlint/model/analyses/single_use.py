"""State that one run of backward uses up: a second one, after ``retain_graph=True``, does not find it as it was."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode import differentiated_untracked, kept_untouched
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.lasting_writes import is_left_for_others, is_overwritten_first, replaces_all
from ctxlint.model.analyses.mutations import through_data
from ctxlint.model.analyses.removed_state import removed_state
from ctxlint.model.analyses.reverted_writes import lasting
from ctxlint.model.analyses.saved_state import changed_in_backward
from ctxlint.model.analyses.unknown_fills import filled_gradients
from ctxlint.model.interpreter.certain_paths import is_on_all_paths, without_parts
from ctxlint.model.interpreter.events import (
    ContextRead,
    ContextWrite,
    DataReplaced,
    Differentiated,
    Mutation,
    SavedRead,
)
from ctxlint.model.interpreter.summary import FILLED, KERNEL
from ctxlint.model.interpreter.values import (
    NONE,
    ContextAttribute,
    Fresh,
    Opaque,
    SavedTensor,
    Tri,
    is_input,
    is_tensor,
    storage,
    usual_storage,
)
from ctxlint.model.syntax import code_of, dotted, keywords_of, last_name, parents_below, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Method
    from ctxlint.model.interpreter.events import Event, Guard
    from ctxlint.model.interpreter.values import Value


class End(Enum):
    """What a second run of backward finds."""

    DELETED = "no such attribute"
    RESET = "`None`"
    CHANGED = "other values, which nothing notices"
    NOTICED = "other values, which torch notices"
    MAYBE_NOTICED = "other values, which torch may notice"
    EMPTIED = "other memory, which nothing notices"
    REMOVED = "nothing where the state was, outside of ctx"
    FREED = "a graph without its saved tensors"
    ADVANCED = "what the first run has computed from it"


@record
class UsedUp:
    """``doer``, at ``node`` in backward, uses up the state that the author calls ``name``.

    ``tensor``: it is certainly a tensor, which ``save_for_backward`` can keep. ``mutation`` is set if it is modified.
    """

    node: cst.CSTNode
    doer: str
    name: str
    end: End
    tensor: bool = True
    mutation: Mutation | None = None


def used_up(fn: FunctionClass, backward: Method) -> list[UsedUp]:
    """What backward certainly uses up on every run that reads it, in the order of the code.

    The inputs and outputs that it modifies are those of ``changed_in_backward``.
    """
    if fn.escapes or backward.name in fn.called_directly:
        return []
    found = [*_dropped(fn, backward), *_modified(fn, backward), *_emptied(fn, backward), *_freed(fn, backward)]
    found += _advanced(fn, backward)
    found += [UsedUp(each.node, backward.name, each.container, End.REMOVED) for each in removed_state(backward)]
    return sorted(found, key=lambda each: fn.start(each.node))


def _dropped(fn: FunctionClass, backward: Method) -> Iterator[UsedUp]:
    """The attributes of ctx that backward reads, and then deletes or sets to None."""
    for write in backward.facts.of(ContextWrite):
        reset = not write.deletes and write.value == NONE
        if not (write.deletes or reset) or write.guards or write.attribute not in fn.writes_by_attribute:
            continue
        reads = [read for read in backward.facts.of(ContextRead) if read.attribute == write.attribute]
        if any(_fails_without(read) and read.order < write.order for read in reads):
            kept = kept_value(fn, ContextAttribute(write.attribute))
            tensor = kept is not None and (is_tensor(kept) is Tri.YES or _is_the_output(fn, backward, kept))
            name, end = f"{backward.ctx_name}.{write.attribute}", End.RESET if reset else End.DELETED
            yield UsedUp(write.node, backward.name, name, end, tensor)


def _is_the_output(fn: FunctionClass, backward: Method, kept: Value) -> bool:
    """Whether a value is all that forward returns: a tensor, as backward gets one gradient."""
    alone = not backward.variadic and len(backward.own_params) == 1
    returned = {option for each in fn.outputs for option in each.value.options()}
    return alone and returned == set(kept.options())


def _fails_without(read: ContextRead) -> bool:
    tested = any(guard.mentions(read.attribute) for guard in read.guards)
    return not (read.guarded or read.own or tested or _has_unknown_guard(read))


def _has_unknown_guard(event: Event) -> bool:
    """Whether another condition than whether gradients are needed, or tensors are None, decides an event."""
    return any(guard.asks is None for guard in event.guards)


def _tests_before(backward: Method, mutation: Mutation) -> tuple[Guard, ...]:
    """The tests that decide whether state that is read is modified.

    Not whether gradients are needed or tensors are None; nor what decides whether the saved tensors
    are read, unless that is called after such modifications.
    """
    reads = [each for each in backward.facts.of(SavedRead) if each.order < mutation.order]
    shared = [each.guards for each in reads if set(each.guards) <= set(mutation.guards)]
    known = {each for each in (shared[-1] if shared else ()) if _IN_PLACE.search(each.text) is None}
    guards = without_parts(mutation.guards)
    return tuple(each for each in guards if each.asks is None and each not in known)


_IN_PLACE = pattern(r"in_?place|reuse", re.IGNORECASE)


def _advanced(fn: FunctionClass, backward: Method) -> Iterator[UsedUp]:
    """The attributes of ctx that backward sets to a result computed from them: ``ctx.state = undo(ctx.state)``."""
    named = set[str]()
    for write in backward.facts.of(ContextWrite):
        attribute, computed = write.attribute, write.value_node
        if attribute in named or attribute not in fn.writes_by_attribute or write.by:
            continue
        if not all(guard.asks is not None or guard.arm == "loop" for guard in write.guards):
            continue
        if not isinstance(computed, (cst.Call, cst.BinaryOperation)) or _is_conversion(computed):
            continue
        reads = [each for each in backward.facts.of(ContextRead) if each.attribute == attribute]
        operands = {
            each for each in parents_below(computed) if backward.is_on_ctx(each) and each.attr.value == attribute
        }
        kept = any(each.node in operands and not (each.own or each.guarded) for each in reads)
        if (
            kept and not _gets_a_buffer(computed, attribute) and any(each.node not in operands for each in reads)
        ):  # no counter
            named.add(attribute)
            yield UsedUp(write.node, backward.name, f"{backward.ctx_name}.{attribute}", End.ADVANCED)


def _gets_a_buffer(node: cst.BaseExpression, attribute: str) -> bool:
    """Whether a call gets an attribute behind other arguments, as memory for its result: ``grad(x, ctx.buffer)``."""
    if not isinstance(node, cst.Call):
        return False
    return all(attribute not in words_of(each) for each in (node.func, *node.args[:1]))


def _is_conversion(node: cst.BaseExpression) -> bool:
    """Whether a second call changes nothing more: ``ctx.x.contiguous()``, ``tuple(ctx.sizes)``."""
    return isinstance(node, cst.Call) and last_name(node.func) in _CONVERSIONS


_CONVERSIONS = frozenset(
    str.split(
        "as_tensor clone contiguous cpu cuda detach dict flatten float half int list reshape tensor to tuple view"
    )
)


def _modified(fn: FunctionClass, backward: Method) -> Iterator[UsedUp]:
    """The intermediates from ctx that backward modifies in place, and whose values it uses."""
    reported = {(id(each.mutation.node), each.mutation.target) for each in changed_in_backward(fn)}
    paths: dict[Value, list[tuple[Guard, ...]]] = {}
    for mutation in (*lasting(backward.facts.of(Mutation)), *filled_gradients(fn, backward)):
        read = usual_storage(mutation.target) if mutation.target is not None else None
        if not isinstance(read, (SavedTensor, ContextAttribute)) or (id(mutation.node), mutation.target) in reported:
            continue
        kept = kept_value(fn, read)
        origin = storage(kept) if kept is not None else None
        by_torch = mutation.how not in (FILLED, KERNEL) and not through_data(mutation.target)
        noticed = isinstance(read, SavedTensor) and by_torch
        tests = _tests_before(backward, mutation)
        if tests and not noticed and replaces_all(mutation):
            continue
        paths.setdefault(read, []).append(tests)
        if is_input(origin) or not is_on_all_paths(paths[read]):
            continue
        method = mutation.how in operations.INPLACE_METHODS and not mutation.through
        known = isinstance(read, SavedTensor) or (origin is not None and is_tensor(origin) is Tri.YES)
        if not noticed and not method and not known:
            continue
        if not noticed and (is_overwritten_first(backward, mutation) or is_left_for_others(backward, mutation)):
            continue
        node = mutation.target_node
        name = (dotted(node) if node is not None else None) or mutation.name or _code(node)
        end = End.NOTICED if noticed else End.MAYBE_NOTICED if mutation.how == FILLED else End.CHANGED
        yield UsedUp(mutation.node, mutation.doer, name, end, mutation=mutation)


def _emptied(fn: FunctionClass, backward: Method) -> Iterator[UsedUp]:
    """The saved intermediates for which backward allocates other memory: ``saved.data = torch.empty(0)``."""
    for each in backward.facts.of(DataReplaced):
        read, node = storage(each.target), each.node
        kept = kept_value(fn, read) if isinstance(read, SavedTensor) else None
        made = each.value.node if isinstance(each.value, Fresh) else None
        allocated = isinstance(made, cst.Call) and last_name(made.func) in operations.BUFFERS
        if kept is None or is_input(storage(kept)) or not allocated or _has_unknown_guard(each):
            continue
        if not any(storage(kept) == storage(option) for value in fn.outputs_values() for option in value.options()):
            yield UsedUp(
                node, backward.name, _code(node.value if isinstance(node, cst.Attribute) else None), End.EMPTIED
            )


def _freed(fn: FunctionClass, backward: Method) -> Iterator[UsedUp]:
    """The graphs built by forward that backward differentiates once."""
    for each in backward.facts.of(Differentiated):
        kept = kept_untouched(fn, backward, each.value)
        from_outside = is_input(kept)
        if kept is None or from_outside or _has_unknown_guard(each) or _retains(each) or _is_made_by_a_class(kept):
            continue
        if differentiated_untracked(fn, backward, each.value) is None:
            yield UsedUp(each.node, each.how, _code(each.value_node), End.FREED)


def _is_made_by_a_class(value: Value) -> bool:
    """Whether a class outside the project made it, such as ``wp.Tape()``: its ``backward()`` may mean anything."""
    callee = last_name(value.node.func) if isinstance(value, Opaque) and isinstance(value.node, cst.Call) else None
    return callee is not None and callee[:1].isupper()


def _code(node: cst.CSTNode | None) -> str:
    return code_of(node) if node is not None else "tensor"


def _retains(differentiated: Differentiated) -> bool:
    """Whether the graph is kept, or may be."""
    node = differentiated.node
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return True
    positional = [arg for arg in node.args if arg.keyword is None]
    if len(positional) > _BEFORE_RETAIN_GRAPH[differentiated.how.rpartition(".")[2]]:
        return True
    keywords = keywords_of(node)
    flags = (keywords.get("retain_graph"), keywords.get("create_graph"))
    return any(each is not None and dotted(each) not in ("False", "None") for each in flags)


_BEFORE_RETAIN_GRAPH = {"grad": 3, "backward": 2, "backward()": 1}
"""The number of parameters before ``retain_graph``, by the last part of ``Differentiated.how``."""
