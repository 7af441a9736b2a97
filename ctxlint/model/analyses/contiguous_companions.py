"""The other tensors that compiled code gets with a gradient: contiguous copies of them, or inputs as they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import GenericCall, LayoutAsked, MemoryRead
from ctxlint.model.interpreter.strided_launches import any_layout
from ctxlint.model.interpreter.summary import EXTENSION, KERNEL
from ctxlint.model.interpreter.values import Fresh, Item, Parameter, SavedTensor, Variadic, View
from ctxlint.model.syntax import last_name, signed_integer, words_of
from ctxlint.torch_api.operations import LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from ctxlint.model.analyses.layout_uses import LayoutUse
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def gets_copies_of_others(fn: FunctionClass, use: LayoutUse) -> bool:
    """Whether an extension that gets a gradient as it came gets contiguous copies of other tensors, in either method.

    Not if backward passes such a copy of a gradient: it is known which ones need it. Nor if the gradient is that of a
    single number, nor under ``try``, which may handle what is not contiguous, nor if it is an operator of torch.
    """
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or forward.inherited or use.how != EXTENSION:
        return False
    if use.position is None or _may_be_a_number(fn, use.position):
        return False
    if any(isinstance(each, (cst.Try, cst.TryStar)) and each.handlers for each in backward.above(use.node)):
        return False
    reads = [(method, read) for method in (forward, backward) for read in method.facts.of(MemoryRead)]
    copies = [(method, read) for method, read in reads if isinstance(read.value, View) and _is_copy(read.value)]
    if not copies or any(_is_of_gradient(read.value) for _method, read in copies):
        return False
    own = (read for method, read in reads if method is backward and use.node in (read.value_node, read.node))
    module = next((_module_of(backward, read.node, use.reader) for read in own), "")
    others = {_module_of(method, read.node, read.reader) for method, read in copies}
    return module != "" and not module.startswith(_OF_TORCH) and module in others


def gets_inputs_as_they_came(fn: FunctionClass, use: LayoutUse) -> bool:
    """Whether a kernel that gets a gradient gets an input as well, in the layout that a caller chooses.

    If it reads both in the order of memory, it is right about two that are transposed alike.
    """
    backward = fn.backward
    if backward is None or use.how != KERNEL:
        return False
    reads = backward.facts.of(MemoryRead)
    launches = {each.node for each in reads if use.node in (each.value_node, each.node)}
    asked = {option for each in backward.facts.of(LayoutAsked) for option in each.value.options()}
    others = [each.value for each in reads if each.node in launches and each.how == KERNEL]
    calls = (each for each in backward.facts.of(GenericCall) if each.node in launches)
    slots = [slot for each in calls for slot in (*each.arguments, *(slot for _name, slot in each.keywords))]
    others += [slot.value for slot in slots if isinstance(any_layout(slot.value), SavedTensor)]
    return any(each not in asked and _is_input_as_it_came(fn, each) for each in others)


def _is_input_as_it_came(fn: FunctionClass, value: Value) -> bool:
    """Whether a tensor is an input that nothing has made contiguous, or new with the layout of another tensor."""
    base = any_layout(value)
    kept = kept_value(fn, base)
    base = any_layout(kept) if kept is not None else base
    if isinstance(base, Fresh) and isinstance(base.node, cst.Call):
        return last_name(base.node.func) in LAYOUT_KEEPING_FACTORIES and kept is not None
    whole = base.of if isinstance(base, Item) else base
    return isinstance(whole, (Parameter, Variadic)) and whole.role == "input"


def _may_be_a_number(fn: FunctionClass, position: int) -> bool:
    """Whether an output may have one element, and its gradient one layout: a loss, by what is called so, or a sum."""
    if "loss" in fn.name.lower():
        return True
    known = [each.slots[position] for each in fn.outputs if position < len(each.slots)]
    written: list[cst.CSTNode] = [each.node for each in known if each.node is not None]
    written += [each.value.node for each in known if isinstance(each.value, Fresh) and each.value.node is not None]
    calls = [each for each in written if isinstance(each, cst.Call)]
    reduced = (last_name(each.func) in ("mean", "sum") and all(arg.keyword for arg in each.args) for each in calls)
    sized = (each.args and signed_integer(each.args[0].value) == 1 and len(each.args) == 1 for each in calls)
    return any(reduced) or any(sized) or any("loss" in word for each in written for word in words_of(each))


_OF_TORCH = ("torch._C", "torch.ops.aten")


def _module_of(method: Method, node: cst.CSTNode, reader: str) -> str:
    """The module of the function that a call runs: as its imports say, or else as it is written."""
    callees = (each.callee for each in method.facts.of(GenericCall) if each.node is node)
    return (next(callees, None) or reader).rpartition(".")[0]


def _is_copy(view: View) -> bool:
    """Whether it is ``x.contiguous()``."""
    return isinstance(view.node, cst.Call) and last_name(view.node.func) == "contiguous" and not view.node.args


def _is_of_gradient(value: Value) -> bool:
    of = value
    while isinstance(of, View):
        of = of.of
    whole = of.of if isinstance(of, Item) else of
    return isinstance(whole, (Parameter, Variadic)) and whole.role == "gradient"
