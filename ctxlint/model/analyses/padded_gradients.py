"""Gradients that keep the size to which forward has padded an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.saved_state import single_save
from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.values import NONE, Fresh, Parameter, SavedTensor, View
from ctxlint.model.syntax import code_of, dotted, keywords_of, last_name, signed_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def padded_gradients(fn: FunctionClass, backward: Method) -> Iterator[tuple[Returned, Input, cst.CSTNode]]:
    """The inputs that forward pads and saves, each with a returned gradient that is as large as the saved tensor."""
    padded = dict(_padded(fn))
    names = {SavedTensor(at): _names_of(backward, at) for at in padded.values()} if padded else {}
    for returned in judged_gradients(fn) if any(names.values()) else ():
        for entry in fn.inputs:
            at, slot = padded.get(entry.index), returned.slots[entry.index : entry.index + 1]
            if at is None or not slot or not returned.exact or slot[0].value == NONE:
                continue
            like = names[SavedTensor(at)]
            if all(option == NONE or _is_as_large(option, like) for option in slot[0].value.options()):
                yield returned, entry, slot[0].node or returned.node


def _padded(fn: FunctionClass) -> Iterator[tuple[int, int]]:
    """The inputs that ``pad`` may make larger before they are saved, each with the position of the saved tensor."""
    for at, slot in enumerate(single_save(fn) or ()):
        options = slot.value.options()
        pads = [each for each in options if _padded_name(each) is not None]
        names = {_padded_name(each) for each in pads}
        for entry in fn.inputs if len(names) == 1 else ():
            inputs = [each for each in options if isinstance(each, Parameter) and each.index == entry.index]
            certain = bool(inputs) or _only_bound_to(fn, entry.name, pads)
            if entry.name in names and len(inputs) + len(pads) == len(options) and certain:
                yield entry.index, at


def _only_bound_to(fn: FunctionClass, name: str, values: list[Value]) -> bool:
    """Whether forward binds the name of an input to these values alone."""
    bound = fn.forward.assignments.get(name, []) if fn.forward is not None else []
    return len(bound) == len(values) and all(each.value in values for each in bound)


def _padded_name(value: Value) -> str | None:
    """The ``name`` of which a tensor is ``F.pad(name, …)``."""
    call = value.node if isinstance(value, Fresh) else None
    if not isinstance(call, cst.Call) or last_name(call.func) != "pad" or not call.args or _adds_nothing(call):
        return None
    return dotted(call.args[0].value) if call.args[0].keyword is None else None


def _adds_nothing(call: cst.Call) -> bool:
    """Whether a call certainly pads by nothing: ``F.pad(x, (0, 0))``."""
    widths = call.args[1].value if len(call.args) > 1 and not call.args[1].keyword else keywords_of(call).get("pad")
    if not isinstance(widths, (cst.Tuple, cst.List)):
        return False
    return all(signed_integer(each.value) == 0 for each in widths.elements)


def _names_of(backward: Method, at: int) -> frozenset[str]:
    """The names in backward that are bound once, to a saved tensor."""
    bound = backward.facts.of(Assigned)
    names = [each.name for each in bound]
    return frozenset(each.name for each in bound if each.value == SavedTensor(at) and names.count(each.name) == 1)


def _is_as_large(value: Value, like: frozenset[str]) -> bool:
    """Whether a tensor has the shape of the one with these names: made like it, and sliced by nothing but its sizes."""
    if isinstance(value, View) and isinstance(value.node, cst.Subscript):
        return _keeps_all(value.node, like) and _is_as_large(value.of, like)
    call = value.node if isinstance(value, Fresh) else None
    if not isinstance(call, cst.Call) or last_name(call.func) not in _ALIKE or not call.args:
        return False
    return call.args[0].keyword is None and dotted(call.args[0].value) in like


_ALIKE = frozenset(["empty_like", "zeros_like", "ones_like"])


def _keeps_all(node: cst.Subscript, like: frozenset[str]) -> bool:
    """Whether ``x[..., : like.shape[-1]]`` takes all of it."""
    *before, last = [each.slice for each in node.slice]
    whole = all(isinstance(each, cst.Index) and isinstance(each.value, cst.Ellipsis) for each in before)
    if len(before) != 1 or not whole or not isinstance(last, cst.Slice) or last.lower is not None:
        return False
    if last.step is not None or last.upper is None:
        return last.step is None
    return code_of(last.upper).strip() in {f"{name}{size}" for name in like for size in (".shape[-1]", ".size(-1)")}
