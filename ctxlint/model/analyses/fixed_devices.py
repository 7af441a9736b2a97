"""Tensors that a method puts on the current GPU, whatever device its arguments are on."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import SavedTensor, Tri, before_views
from ctxlint.model.syntax import dotted, last_name, names_in, words_of
from ctxlint.records import record
from ctxlint.torch_api.operations import FACTORIES, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class FixedDevice:
    """The first such call in a method, and the name of an argument whose device is the right one."""

    method: Method
    node: cst.Call
    like: str
    others: tuple[cst.Call, ...]


def fixed_devices(fn: FunctionClass) -> Iterator[FixedDevice]:
    """The calls of ``cuda()`` without a device on a new or a saved tensor, and of ``torch.cuda.FloatTensor``."""
    for method in fn.own_protocol_methods:
        like = _tensor_of(fn, method) if _CUDA in words_of(method.node.body) else None
        if like is None or not _ASKING.isdisjoint(words_of(method.node)) or _calls_others(method):
            continue
        moved = islice((each for each in method.nodes_of(cst.Call) if _is_on_gpu(method, each)), _MOST)
        found = [each for each in moved if _is_read(method, each)]
        if found:
            yield FixedDevice(method, found[0], like, tuple(found[1:]))


_MOST = 20
"""How many such calls are looked at in a method."""

_CUDA = "cuda"
_ASKING = frozenset(
    str.split(
        "Event Stream amp current_device custom_bwd custom_fwd device device_count device_of get_device is_available "
        "is_cuda set_device stream synchronize triton"
    )
)
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
    if method.meaning(dotted(func) or "").startswith(f"torch.{_CUDA}.") and last_name(func).endswith("Tensor"):
        return True
    if not isinstance(func, cst.Attribute) or func.attr.value != _CUDA:
        return False
    return not any(each.keyword is None for each in call.args) and _is_tensor(method, func.value)


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
