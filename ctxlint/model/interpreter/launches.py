"""Launches of kernels, ``kernel[grid](...)``: the kernel that is meant, what it reads, and what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.cut_grids import note_cut_grid
from ctxlint.model.interpreter.effects import record_writes, whole_gradient
from ctxlint.model.interpreter.events import GradientLaunch, MemoryRead, MisfitCall, TrialEffectRun
from ctxlint.model.interpreter.faulty_launches import note_faulty_launch, note_unguarded_launch
from ctxlint.model.interpreter.names import certain_meaning
from ctxlint.model.interpreter.strided_launches import (
    are_alike,
    lent_strides,
    made_alike,
    may_take_alike,
    may_take_strides,
    note_foreign_strides,
    strides_passed,
)
from ctxlint.model.interpreter.summary import KERNEL
from ctxlint.model.interpreter.tensor_calls import Arguments
from ctxlint.model.interpreter.values import (
    Argument,
    Constant,
    Fresh,
    Imported,
    Item,
    Opaque,
    Parameter,
    Sequence,
    Slot,
    View,
)
from ctxlint.model.syntax import code_of, dotted, root_name, single_index

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence as Sequence_

    from ctxlint.model.interpreter.events import KernelParameter
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.interpreter.walk import Walk

WRAP_KERNELS = ("torch.library.wrap_triton", "torch._library.capture_triton", "torch._library.triton.wrap_triton")
"""Functions that return a kernel that is launched in the same way."""

_WARP_LAUNCHES = ("warp.launch", "warp.launch_tiled")

TILE_LAUNCH = "cuda.tile.launch"


def launch(walk: Walk, node: cst.Call, arguments: Arguments) -> None:
    """``kernel[grid](...)``, ``wrap_triton(kernel)[grid](...)``, or a call of a name that holds ``kernel[grid]``."""
    launcher = _launcher(walk, node.func)
    if launcher is None:
        made = node.func.func if isinstance(node.func, cst.Call) else None
        if isinstance(made, cst.Attribute) and made.attr.value == "forall":  # of numba
            _launched(walk, node, _kernels(walk, made.value), arguments)
        return
    launched = _unwrapped(walk, launcher.value)
    kernels = _kernels(walk, launched)
    if is_launch(launcher):
        reader = dotted(launched) or code_of(launched)
        read_by(walk, node, arguments, KERNEL, reader, kernels)
        if len(kernels) == 1:
            note_foreign_strides(walk, node, arguments, kernels[0], reader)
            note_cut_grid(walk, node, launcher, arguments, kernels[0])
            note_faulty_launch(walk, node, launcher, arguments, kernels[0])
            if launched is launcher.value:
                note_unguarded_launch(walk, node, arguments, kernels[0])
    _launched(walk, node, kernels, arguments)
    if walk.resolver is not None and len(kernels) == 1:
        given = (arguments.positional, arguments.keywords, arguments.open_ended)
        misfit = walk.resolver.launch_misfit(kernels[0], *given)
        if misfit is not None:
            walk.record(MisfitCall, node, misfit=misfit)
        effect = walk.resolver.trial_effect(kernels[0], *given)
        if effect is not None:
            walk.record(TrialEffectRun, node, effect=effect)


def launch_by_name(walk: Walk, node: cst.Call, callee: str, arguments: Arguments) -> None:
    """``kernel.run(..., grid=grid)`` of Triton, unless it may only compile, and ``launch`` of warp and cuTile."""
    if callee in _WARP_LAUNCHES:
        _launch_of_warp(walk, node, arguments)
        return
    if callee == TILE_LAUNCH:
        _launch_of_tile(walk, node, arguments)
        return
    warmup = arguments.keywords.get("warmup")
    compiles = warmup is not None and warmup.value != Constant(False, "bool")
    if callee.endswith(".run") and "grid" in arguments.keywords and not compiles:
        _launched(walk, node, [callee.removesuffix(".run")], arguments)


def _launch_of_warp(walk: Walk, node: cst.Call, arguments: Arguments) -> None:
    """The kernel gets the inputs and then the outputs; ``from_torch`` gives it the memory of a tensor."""
    named = arguments.keywords.get("kernel")
    kernel = named.node if named is not None else arguments.node(0)
    given = [arguments.value(at, name) for at, name in ((2, "inputs"), (3, "outputs"))]
    lists = [each for each in given if isinstance(each, Sequence) and each.exact]
    if kernel is None or len(lists) < sum(each is not None for each in given) or "adjoint" in arguments.keywords:
        return
    slots = tuple(Slot(_shared_by(walk, slot), slot.node) for each in lists for slot in each.slots)
    _launched(walk, node, _kernels(walk, kernel), Arguments(slots, {}, open_ended=False))


def _launch_of_tile(walk: Walk, node: cst.Call, arguments: Arguments) -> None:
    """``launch(stream, grid, kernel, arguments)`` of cuTile."""
    kernel, given = arguments.node(2), arguments.value(3)
    if kernel is not None and isinstance(given, Sequence) and given.exact:
        _launched(walk, node, _kernels(walk, kernel), Arguments(given.slots, {}, open_ended=False))


def _shared_by(walk: Walk, slot: Slot) -> Value:
    """The tensor whose memory an argument of a kernel of warp shares."""
    call = slot.node
    if not isinstance(call, cst.Call) or not call.args or certain_meaning(walk, call.func) != "warp.from_torch":
        return slot.value
    return walk.peek(call.args[0].value)


def _launched(walk: Walk, node: cst.Call, kernels: list[str], arguments: Arguments) -> None:
    """Record what a launch of one of these kernels certainly writes."""
    if walk.resolver is None:
        return
    given = (arguments.positional, arguments.keywords, arguments.open_ended)
    first, *others = [walk.resolver.kernel(name, *given) for name in kernels] or [None]
    if first is None or None in others:
        return
    name, writes = first[0].name, first[1]
    targets = [{each.target for each in other[1]} for other in others if other is not None]
    common = tuple(each for each in writes if all(each.target in each_of for each_of in targets))
    record_writes(walk, node, name, common, arguments)


def _launcher(walk: Walk, func: cst.BaseExpression) -> cst.Subscript | None:
    """The ``kernel[grid]`` that is called, also by a name that was bound to it if the method binds no ``kernel``."""
    if isinstance(func, cst.Subscript):
        return func
    made = walk.bound(func.value) if isinstance(func, cst.Name) else None
    node = made.node if isinstance(made, Opaque) else None
    if not isinstance(node, cst.Subscript) or root_name(node) in walk.names.local:
        return None
    return node if certain_meaning(walk, node.value) is not None else None


def _unwrapped(walk: Walk, node: cst.BaseExpression) -> cst.BaseExpression:
    """``kernel`` for ``wrap_triton(kernel)``."""
    wrapped = isinstance(node, cst.Call) and len(node.args) == 1 and certain_meaning(walk, node.func) in WRAP_KERNELS
    return node.args[0].value if isinstance(node, cst.Call) and wrapped else node


def _kernels(walk: Walk, node: cst.BaseExpression) -> list[str]:
    """The resolved names of the kernels that an expression may be; none if one of them is unknown."""
    name = certain_meaning(walk, node)
    if name is not None:
        return [name]
    found = [_kernel_of(walk, value) for value in walk.peek(node).options()]
    names = [each for each in found if each is not None]
    return names if len(names) == len(found) else []


def _kernel_of(walk: Walk, value: Value) -> str | None:
    """The resolved name of the kernel that a value may be: imported, or what the module binds a name to."""
    if isinstance(value, Imported):
        return value.name
    node = value.node if isinstance(value, Opaque) else None
    if not isinstance(node, cst.Name) or node.value in walk.names.local:
        return None
    owner = walk.names.scope.owner(node.value)
    return LOCAL + node.value if owner is not None and owner.kind == "module" else None


def read_by(
    walk: Walk,
    node: cst.Call,
    arguments: Arguments,
    how: str,
    reader: str,
    kernels: Sequence_[str] = (),
) -> None:
    """Compiled code gets the arguments: one of some ``kernels``, or an extension."""
    parameters: Mapping[int, KernelParameter] = {}
    if len(kernels) == 1 and walk.resolver is not None:
        parameters = walk.resolver.kernel_parameters(kernels[0], arguments.positional, arguments.keywords)
    lent = lent_strides(walk, arguments) if how == KERNEL else {}
    strides = frozenset(strides_passed(walk, arguments)) if how == KERNEL else frozenset()
    made = made_alike(walk, parameters, arguments) if parameters else {}
    for slot in (*arguments.positional, *arguments.keywords.values()):
        seen = slot.value.of if isinstance(slot.value, View) else slot.value
        into = parameters.get(id(slot))
        whole = whole_gradient(slot.value) if into is not None and not slot.starred else None
        if whole is not None and into is not None and slot.node is not None:
            walk.record(GradientLaunch, node, gradient=whole, value_node=slot.node, parameter=into, reader=reader)
        plain = isinstance(seen, (Argument, Item, Parameter)) or (into is not None and isinstance(seen, Fresh))
        if not slot.starred and plain:
            alike = into is not None and (are_alike(slot.value, into, made) or may_take_alike(slot, parameters, lent))
            memory = {"value": slot.value, "value_node": slot.node, "parameter": into, "alike": alike}
            others = may_take_strides(slot, parameters, lent)
            walk.record(MemoryRead, node, how=how, reader=reader, others=others, strides=strides, **memory)


def is_launch(launcher: cst.BaseExpression) -> bool:
    """Whether a callee is that of a launch, ``kernel[grid]``, not an element of a table of functions."""
    if not isinstance(launcher, cst.Subscript):
        return False
    index = single_index(launcher)
    if index is None or isinstance(index, (cst.Tuple, cst.Lambda)):
        return True
    if "grid" in (dotted(index) or "").lower():
        return True
    return isinstance(launcher.slice[0].comma, cst.Comma)  # this needs the layout
