"""Gathered tensors of whose gradients backward keeps the part of its own process, without a sum over the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.returns import names_behind_returns
from ctxlint.model.analyses.unconditional_gradients import as_method
from ctxlint.model.index.scopes import resolve_certainly
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.syntax import (
    children,
    code_of,
    dotted,
    keywords_of,
    last_name,
    names_in,
    passed_for,
    root_name,
    words_of,
)
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.analyses.helper_uses import Find
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.project import Definition
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.method import Method

_GATHERS = {"all_gather": "tensor_list", "all_gather_into_tensor": "output_tensor", "_all_gather_base": "output_tensor"}
"""The collectives that give every process the tensors of all, by the parameter for these."""

_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d")
_XLA = "torch_xla.core.xla_model"
"""The module of which ``all_gather`` returns the joined tensors."""

_LOCAL = frozenset(
    str.split(
        "chunk clone contiguous copy_ cumsum detach empty_like get_ordinal get_rank get_world_size int item len narrow "
        "rank range reshape size slice split sum tensor_split to unbind view world_size xrt_world_size zeros_like"
    )
)
"""Functions and methods without which ``backward`` cannot choose a part, and that tell the other processes nothing."""


class Gather(NamedTuple):
    """A call of forward that gathers the tensor ``name``, perhaps a function of the project."""

    call: cst.Call
    name: str | None


def unsummed_gathers(fn: FunctionClass, backward: Method) -> Iterator[tuple[cst.CSTNode, Gather]]:
    """The gradient that backward returns for a tensor that forward gathers, and that call of forward."""
    forward = fn.forward
    if forward is None or fn.escapes or not forward.signature_known or not backward.signature_known or not fn.outputs:
        return
    if not _chooses_by_rank(backward):
        return
    if not all(last_name(each.func) in _LOCAL for each in backward.nodes_of(cst.Call)):
        return
    gather = _own_gather(forward) or _gather_in_helper(fn, forward)
    for returned in fn.gradients if gather is not None else ():
        for index, slot in enumerate(returned.slots if returned.known else ()):
            taken = gather and index < len(fn.inputs) and fn.inputs[index].name == gather.name and not slot.starred
            if gather is not None and taken and slot.node is not None and _takes_a_part(backward, slot.node):
                yield slot.node, gather


def late_reductions(fn: FunctionClass, backward: Method) -> Iterator[tuple[cst.Call, Gather]]:
    """The ``all_reduce`` of backward that certainly gets only the part of its own process, and what forward gathers.

    In the same group: each process has taken another part, and none is the sum of the gradients of one tensor.
    """
    forward = fn.forward
    if forward is None or fn.escapes or not forward.signature_known or not backward.signature_known or not fn.outputs:
        return
    gather = _own_gather(forward) if _mentions_reduction(backward) else None
    for call in backward.nodes_of(cst.Call) if gather is not None and module_of(forward, gather.call) != _XLA else ():
        given = call.args[0].value if last_name(call.func) == _REDUCES and call.args else None
        if gather is None or not isinstance(given, cst.Name) or module_of(backward, call) not in _MODULES:
            continue
        if _group_of(call) == _group_of(gather.call) and _is_own_part(backward, given):
            yield call, gather


_REDUCES = "all_reduce"


def _mentions_reduction(backward: Method) -> bool:
    return any(last_name(each.func) == _REDUCES for each in backward.nodes_of(cst.Call))


def _group_of(call: cst.Call) -> str | None:
    """The code of the group that a collective runs in, None for all processes; the third argument by position."""
    places = [each.value for each in call.args if each.keyword is None]
    group = keywords_of(call).get("group") or (places[2] if len(places) > 2 else None)
    return code_of(group) if group is not None else None


def _is_own_part(backward: Method, tensor: cst.Name) -> bool:
    """Whether a name is certainly bound to what ``grads[rank]`` gives, perhaps as a copy."""
    node: cst.BaseExpression | None = tensor
    incoming = {each.name for each in backward.params}
    for _step in range(_STEPS):
        if isinstance(node, cst.Name) and node.value in incoming:  # the only assignment to it may come later
            return False
        node = backward.behind_name(node)
        if not isinstance(node, cst.Call) or last_name(node.func) not in _COPYING:
            break
        node = node.func.value if isinstance(node.func, cst.Attribute) else None
    if not isinstance(node, cst.Subscript) or root_name(node) not in {each.name for each in backward.own_params}:
        return False
    words = {word for each in node.slice for part in _computing(backward, each) for word in words_of(part)}
    turns = {word for each in backward.nodes_of(cst.For) for word in words_of(each.target)}  # of all, one by one
    return words.isdisjoint(turns) and any("rank" in word or word in _ORDINALS for word in words)


_STEPS = 8
_COPYING = ("clone", "contiguous", "detach")
"""Methods that keep all values."""


def _own_gather(forward: Method) -> Gather | None:
    """The first collective that forward calls, if it returns what that has gathered."""
    call = _collective_in(forward)
    module = module_of(forward, call) if call is not None else ""
    if call is None or module not in (*_MODULES, _XLA) or not _gives_output(forward, call, module):
        return None
    return Gather(call, _gathered(forward, call, module))


def _gather_in_helper(fn: FunctionClass, forward: Method) -> Gather | None:
    """The first call of a project function that gathers a tensor which forward passes, and returns the result of."""
    gathering = {(path, qualname): inside for path, qualname, inside in fn.gathering}
    for call in forward.facts.of(GenericCall) if gathering else ():
        home, node = call.definition, call.node
        inside = gathering.get((home.unit.path, home.qualname)) if home is not None else None
        if home is None or inside is None or not isinstance(node, cst.Call) or call.guards or call.in_loop:
            continue
        helper = as_method(forward, home)
        passed = _passed(helper, node, inside) if helper is not None else None
        if passed is not None and _is_returned(forward, node):
            return Gather(node, _origin(forward, root_name(passed)))
    return None


def gathering_functions(forward: Method, backward: Method, find: Find) -> Iterator[tuple[str, str, str]]:
    """The functions of the project that forward calls and that gather a parameter: the file, the name, the parameter.

    Only if backward may choose a part by the number of the process.
    """
    if forward.inherited or backward.inherited or backward.home is None:
        return
    unit = backward.home.unit
    record = unit.index.functions.get(f"{backward.home.qualname}.{backward.name}")
    code = unit.source.lines(record.node.lineno, record.node.end_lineno or 0) if record is not None else ""
    if not ("rank" in code or "ordinal" in code) or not _chooses_by_rank(backward):
        return
    homes = [call.definition for call in forward.facts.of(GenericCall) if call.definition is not None]
    for home in {(each.unit.path, each.qualname): each for each in homes}.values():
        inside = _gathered_parameter(forward, home, find, _MOST_LEVELS)
        if inside is not None:
            yield home.unit.path, home.qualname, inside


_MOST_LEVELS = 2
"""How many functions that a function of the project calls are followed."""


def _gathered_parameter(forward: Method, home: Definition, find: Find, levels: int) -> str | None:
    """The parameter that a function gathers, or has gathered by another one, if it returns the result of that."""
    record = home.unit.index.functions.get(home.qualname)
    helper = as_method(forward, home) if record is not None else None
    if record is None or helper is None:
        return None
    names, found = [each.name for each in helper.params], _collective_in(helper)
    if found is not None:
        module = _module_in(record.scope, found)
        known = module in (*_MODULES, _XLA) and _gives_output(helper, found, module)
        inside = _gathered(helper, found, module) if known else None
        return inside if inside in names else None
    for call in helper.nodes_of(cst.Call) if levels else ():
        meant = resolve_certainly(dotted(call.func) or "", record.scope) or ""
        if not meant or meant.startswith(_NOT_OF_PROJECTS) or not _is_returned(helper, call):
            continue
        inner = find(home.unit, meant)
        parameter = _gathered_parameter(forward, inner, find, levels - 1) if inner is not None else None
        called = as_method(forward, inner) if inner is not None and parameter is not None else None
        passed = _passed(called, call, parameter) if called is not None and parameter is not None else None
        inside = _origin(helper, root_name(passed)) if passed is not None else None
        if inside in names:
            return inside
    return None


_NOT_OF_PROJECTS = ("torch.", "builtins.", "einops.", "math.", "numpy.")


def _passed(helper: Method, call: cst.Call, parameter: str) -> cst.BaseExpression | None:
    """The argument of a call for a parameter of a function."""
    return passed_for(call, (each.name for each in helper.params), parameter)


def _chooses_by_rank(backward: Method) -> bool:
    return any("rank" in word or word in _ORDINALS for word in words_of(backward.node.body))


_ORDINALS = ("get_ordinal", "ordinal")
"""What else than a rank the number of a process is called."""


def _collective_in(method: Method) -> cst.Call | None:
    return next((each for each in method.nodes_of(cst.Call) if last_name(each.func) in _GATHERS), None)


def module_of(method: Method, call: cst.Call) -> str:
    """The module of the function that a call in a method certainly means."""
    return method.meaning(dotted(call.func) or "").rpartition(".")[0]


def _module_in(scope: Scope, call: cst.Call) -> str:
    return (resolve_certainly(dotted(call.func) or "", scope) or "").rpartition(".")[0]


def _gathered(method: Method, call: cst.Call, module: str) -> str | None:
    """The name of the tensor that is gathered, or copied for that."""
    by_position = [each.value for each in call.args if each.keyword is None and not each.star]
    own = {"all_gather": "tensor"}.get(last_name(call.func), "input_tensor") if module != _XLA else "value"
    at = int(module != _XLA)
    node = by_position[at] if len(by_position) > at else keywords_of(call).get(own)
    return _origin(method, root_name(node))


def _origin(method: Method, name: str | None) -> str | None:
    """What a name is computed from, if it is only bound once."""
    bound = method.bound_to(name) if name is not None else None
    return root_name(bound) if bound is not None else name


def _gives_output(method: Method, call: cst.Call, module: str) -> bool:
    """Whether a method returns what it has gathered, or joins."""
    if module == _XLA:
        return _is_returned(method, call)
    first = call.args[0].value if call.args and call.args[0].keyword is None else None
    into = root_name(first if first is not None else keywords_of(call).get(_GATHERS[last_name(call.func)]))
    return into in names_behind_returns(method)


def _is_returned(method: Method, call: cst.Call) -> bool:
    """Whether a method returns the result of a call, at once or by a name."""
    statement = method.parents[call]
    targets = [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else []
    made = {word for target in targets for word in names_in(target)}
    return isinstance(statement, cst.Return) or not names_behind_returns(method).isdisjoint(made)


def _takes_a_part(backward: Method, node: cst.CSTNode) -> bool:
    """Whether a gradient is computed from an element or a slice of an incoming one."""
    incoming, nodes = {each.name for each in backward.own_params}, [*_computing(backward, node)]
    names = {each.value for each in nodes if isinstance(each, cst.Name)}
    cuts = any(isinstance(each, cst.Subscript) or _is_cut(each) for each in nodes)
    return cuts and not incoming.isdisjoint(names)


def _computing(backward: Method, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The code that a gradient is computed with, also that of the names in it."""
    names, todo = set[str](), [node]
    while todo:
        part = todo.pop()
        yield part
        todo += children(part)
        if isinstance(part, cst.Name) and part.value not in names:
            names.add(part.value)
            todo += _given_to(backward, part.value)


def factor_of_processes(fn: FunctionClass, backward: Method, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The number of processes that backward multiplies a gradient by: too much after a sum."""
    for each in _computing(backward, node):
        if isinstance(each, cst.BinaryOperation) and isinstance(each.operator, cst.Multiply):
            for operand in (each.left, each.right):
                if _is_number_of_processes(fn, backward, operand):
                    return operand
    return None


def _is_number_of_processes(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> bool:
    """Whether code asks for it, or is a name or an attribute of ctx that is bound to nothing else."""
    if isinstance(node, cst.Call):
        return last_name(node.func) in _NUMBERS
    if isinstance(node, cst.Name):
        bound = backward.bound_to(node.value)
        return bound is not None and not isinstance(bound, cst.Name) and _is_number_of_processes(fn, backward, bound)
    owner, _, name = (dotted(node) or "").rpartition(".")
    writes = fn.writes_by_attribute.get(name, ()) if owner == backward.ctx_name else ()
    given = [_behind_name(fn, each.value_node) for each in writes]
    return bool(given) and all(isinstance(each, cst.Call) and last_name(each.func) in _NUMBERS for each in given)


def _behind_name(fn: FunctionClass, node: cst.CSTNode | None) -> cst.CSTNode | None:
    """What a name in forward is bound to, if it is one."""
    return fn.forward.bound_to(node.value) if isinstance(node, cst.Name) and fn.forward is not None else node


_NUMBERS = ("get_world_size", "world_size", "xrt_world_size")


def _given_to(method: Method, name: str) -> Iterator[cst.CSTNode]:
    """What a name is bound to, and what is stored in the tensor: ``name[:] = x``, ``name.copy_(x)``."""
    yield from (each.value_node for each in method.assignments.get(name, ()) if each.value_node is not None)
    for assign in method.nodes_of(cst.Assign):
        if any(isinstance(each.target, cst.Subscript) and root_name(each.target) == name for each in assign.targets):
            yield assign.value
    calls = (each for each in method.nodes_of(cst.Call) if last_name(each.func) == "copy_" and each.args)
    yield from (each.args[0].value for each in calls if root_name(each.func) == name)


def _is_cut(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and last_name(node.func) in ("chunk", "narrow", "split", "tensor_split", "unbind")
