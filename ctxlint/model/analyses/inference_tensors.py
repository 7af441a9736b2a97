"""Tensors created in inference mode that a Function gives to autograd, which cannot work with them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import Fresh, storage
from ctxlint.model.syntax import code_of, dotted
from ctxlint.records import record
from ctxlint.torch_api.autograd import INFERENCE_MODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot


class Use(Enum):
    """What autograd does with a tensor."""

    GRADIENT = "gradient"
    OUTPUT = "output"
    SAVED = "saved"


@record
class InferenceTensors:
    """Tensors that ``method`` creates in inference mode, by the ``names`` under which it gives them to autograd."""

    node: cst.CSTNode
    method: Method
    names: tuple[str, ...]
    use: Use


def inference_tensors(fn: FunctionClass) -> Iterator[InferenceTensors]:
    """The first such tensors of each use, in the methods that the class itself defines."""
    for method in fn.own_protocol_methods:
        modes = _modes(method)
        for use, slots in _given(fn, method) if modes else ():
            found = [slot for slot in slots if _created_in(method, slot, modes)]
            if found and found[0].node is not None:
                names = tuple(dict.fromkeys(code_of(slot.node) for slot in found if slot.node is not None))
                yield InferenceTensors(found[0].node, method, names, use)
                break


def _given(fn: FunctionClass, method: Method) -> Iterator[tuple[Use, Iterable[Slot]]]:
    """What a method gives to autograd at once."""
    if method is fn.backward:
        yield from ((Use.GRADIENT, each.slots) for each in fn.gradients)
        return
    saves = (each for each in fn.saves if each.node in method.parents)
    yield from ((Use.SAVED, each.arguments) for each in saves)
    if method is fn.forward:
        yield from ((Use.OUTPUT, each.slots) for each in fn.outputs)


def _modes(method: Method) -> dict[cst.CSTNode, bool]:
    """The calls and decorators that switch inference mode, and whether they switch it on."""
    calls = (each.node for each in method.facts.of(GenericCall) if each.callee in INFERENCE_MODE)
    decorators = (each.node.decorator for each in method.decorators if each.name in INFERENCE_MODE)
    return {node: _switches_on(node) for node in (*calls, *decorators)}


def _switches_on(node: cst.CSTNode) -> bool:
    """Whether it is ``inference_mode``, ``inference_mode()`` or ``inference_mode(True)``."""
    given = node.args if isinstance(node, cst.Call) else ()
    return all(dotted(each.value) == "True" for each in given)


def _created_in(method: Method, slot: Slot, modes: dict[cst.CSTNode, bool]) -> bool:
    """Whether a tensor is certainly created in inference mode on some path; a view has the mode of its base."""
    if slot.starred:
        return False
    origins = (storage(option) for option in slot.value.options())
    created = [each.node for each in origins if isinstance(each, Fresh) and each.node in method.parents]
    return any(_mode_at(method, node, modes) for node in created)


def _mode_at(method: Method, node: cst.CSTNode, modes: dict[cst.CSTNode, bool]) -> bool:
    """Whether inference mode is on at a node: the nearest ``with`` or decorator that switches it decides."""
    for around in method.above(node):
        switches = [item.item for item in around.items if item.item in modes] if isinstance(around, cst.With) else []
        if switches:
            return modes[switches[-1]]
    return any(modes.get(each.node.decorator, False) for each in method.decorators)
