"""Tensors that a method puts on the current GPU, whatever device its arguments are on."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import SavedTensor, Tri, before_views
from ctxlint.model.syntax import dotted, names_in, words_of
from ctxlint.records import record
from ctxlint.torch_api.operations import FACTORIES, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class OnCurrentGpu:
    """The first such call in a method, and the name of an argument whose device is the right one.

    ``passed_to``: what gets both, if the method calls other code than that of torch.
    """

    method: Method
    node: cst.Call
    like: str
    others: tuple[cst.Call, ...]
    passed_to: str = ""


def fixed_devices(fn: FunctionClass) -> Iterator[OnCurrentGpu]:
    """The calls of ``cuda()`` without a device on a new or a saved tensor, and of ``torch.cuda.FloatTensor``."""
    for method in fn.own_protocol_methods:
        words = set(words_of(method.node)) if _CUDA in words_of(method.node.body) else set[str]()
        if method is fn.forward and _CHOOSING.isdisjoint(words) and words and _calls_others(method):
            yield from _passed_on(fn, method)
        like = _tensor_of(fn, method) if words else None
        if like is None or not _ASKING.isdisjoint(words) or _calls_others(method):
            continue
        moved = islice((each for each in method.nodes_of(cst.Call) if _is_on_gpu(method, each)), _MOST)
        found = [each for each in moved if _is_read(method, each)]
        if found:
            yield OnCurrentGpu(method, found[0], like, tuple(found[1:]))


def _passed_on(fn: FunctionClass, forward: Method) -> Iterator[OnCurrentGpu]:
    """The tensors that forward allocates on the current GPU, and passes on with an input, which decides the device.

    In backward, the current GPU is that of the incoming gradient: autograd sees to that.
    """
    inputs = {each.name for each in fn.inputs if each.is_tensor is Tri.YES}.difference(forward.binders)
    found: dict[cst.Call, tuple[str, str]] = {}
    for call in islice((each for each in forward.nodes_of(cst.Call) if _is_made_by_class(forward, each)), _MOST):
        name = _bound_to(forward, call)
        for use in _uses_of(forward, call, name):
            around = forward.parents[forward.parents[use]]
            given = [each.value for each in around.args] if isinstance(around, cst.Call) else []
            like = next((each.value for each in given if isinstance(each, cst.Name) and each.value in inputs), None)
            if use in given and like is not None and isinstance(around, cst.Call):
                found.setdefault(call, (like, dotted(around.func) or ""))
    for call, (like, passed_to) in list(found.items())[:1]:
        yield OnCurrentGpu(forward, call, like, tuple(found)[1:], passed_to)


def _is_made_by_class(method: Method, call: cst.Call) -> bool:
    """Whether it is ``torch.cuda.FloatTensor(…)`` or the like, not in a block that may choose a GPU."""
    if any(isinstance(each, (cst.Try, cst.With)) for each in method.above(call)):
        return False
    return _is_class_of_cuda(method, call)


def _bound_to(method: Method, call: cst.Call) -> str:
    """The name to which a statement binds memory that a call allocates, also through ``zero_()`` or ``resize_(n)``."""
    statement = method.statement_around(call)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) and len(statement.targets) == 1 else None
    value = statement.value if isinstance(statement, cst.Assign) else None
    while isinstance(value, cst.Call) and value is not call and isinstance(value.func, cst.Attribute):
        value = value.func.value if value.func.attr.value.endswith("_") else None
    return target.value if isinstance(target, cst.Name) and value is call else ""


def _uses_of(method: Method, call: cst.Call, name: str) -> Iterator[cst.Name]:
    """The uses of a name in or below the block in which a call is assigned to it, before anything else is."""
    line = next((each for each in method.above(call) if isinstance(each, cst.BaseStatement)), None)
    block = method.parents.get(line) if line is not None else None
    binders = [each for each in method.binders.get(name, ()) if method.is_written_before(call, each)]
    for use in method.named.get(name, ()):
        rebound = any(method.is_written_before(each, use) for each in binders)
        if method.is_written_before(call, use) and not rebound and block in tuple(method.above(use)):
            yield use


_CHOOSING = frozenset(str.split("Stream current_device device device_count device_of get_device set_device stream"))
"""Words of a method that may choose the GPU."""

_MOST = 20
"""How many such calls are looked at in a method."""

_CUDA = "cuda"
_ASKING = _CHOOSING.union(str.split("Event amp custom_bwd custom_fwd is_available is_cuda synchronize triton"))
"""Words of a method that may choose the device, or that is for a GPU only."""


def _tensor_of(fn: FunctionClass, method: Method) -> str | None:
    """The first argument of a method that certainly is a tensor and keeps its name."""
    if method is fn.forward:
        names = [each.name for each in fn.inputs if each.is_tensor is Tri.YES and each.gradient is not Tri.NO]
    else:
        names = [each.name for each in method.own_params] if method in fn.reading_methods else []
    return names[0] if names and names[0] not in method.binders else None


def _calls_others(method: Method) -> bool:
    """Whether a method calls code that is perhaps for a GPU only: an extension, a kernel, a function of the project."""
    if any(isinstance(each.func, cst.Subscript) for each in method.nodes_of(cst.Call)):
        return True
    return not all((each.callee or "").startswith(_KNOWN) for each in method.facts.of(GenericCall))


_KNOWN = ("torch.", "builtins.", "math.")


def _is_on_gpu(method: Method, call: cst.Call) -> bool:
    """Whether a call that no test may skip puts a tensor on the current GPU."""
    if any(isinstance(each, _CONDITIONS) for each in method.above(call)):
        return False
    func = call.func
    if _is_class_of_cuda(method, call):
        return True
    if not isinstance(func, cst.Attribute) or func.attr.value != _CUDA:
        return False
    return not any(each.keyword is None for each in call.args) and _is_tensor(method, func.value)


def _is_class_of_cuda(method: Method, call: cst.Call) -> bool:
    meant = method.meaning(dotted(call.func) or "")
    return meant.startswith(f"torch.{_CUDA}.") and meant.endswith("Tensor")


_CONDITIONS = (cst.If, cst.IfExp, cst.Try, cst.Match, cst.With)


def _is_tensor(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is a new tensor, or a saved one."""
    made = method.behind_name(node)
    if isinstance(made, cst.Call):
        module, _, name = method.meaning(dotted(made.func) or "").rpartition(".")
        return module == "torch" and name in FACTORIES | LAYOUT_KEEPING_FACTORIES
    assigned = method.assignments.get(node.value, ()) if isinstance(node, cst.Name) else ()
    value = assigned[0].value if assigned else None
    return value is not None and isinstance(before_views(value), SavedTensor)


def _is_read(method: Method, call: cst.Call) -> bool:
    """Whether a method uses the result of a call, perhaps by a name, before it binds that to something else."""
    statement = method.statement_around(call)
    if statement is None or not _MOVING.isdisjoint(words_of(statement)):
        return False
    if not isinstance(statement, cst.Assign):
        return not (isinstance(statement, cst.Expr) and statement.value is call)
    for name in {word for each in statement.targets for word in names_in(each.target)}:
        later = [each for each in method.named.get(name, ()) if method.is_written_before(statement, each)]
        later = [each for each in later if method.statement_around(each) is not statement]
        if later and not _is_bound(method, later[0]):
            return True
    return not all(isinstance(each.target, (cst.Name, cst.Tuple)) for each in statement.targets)


_MOVING = frozenset(str.split("copy_ cpu item numpy to tolist type_as"))
"""What moves a tensor to another device again."""


def _is_bound(method: Method, name: cst.Name) -> bool:
    """Whether a statement binds a name to a value that it does not compute from the old one."""
    statement = method.statement_around(name)
    target = isinstance(method.parents[name], (cst.AssignTarget, cst.Element))
    return target and isinstance(statement, cst.Assign) and name.value not in names_in(statement.value)
