"""Does a method have a parameter for the ctx that autograd passes first?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.function import Binding
from ctxlint.model.index.python_names import RECEIVERS
from ctxlint.model.index.scopes import resolve
from ctxlint.model.interpreter.local_names import borrowed_names, times_bound
from ctxlint.model.interpreter.signatures import is_context_name, used_as_context
from ctxlint.model.syntax import children, dotted, is_name
from ctxlint.torch_api import operations, types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Method
    from ctxlint.model.index.scopes import Scope

_CALLED_ON_TENSORS = (
    operations.TENSOR_ONLY_METHODS | operations.TENSOR_METHODS | operations.VIEW_METHODS | {"size", "contiguous"}
)


def lacks_context(method: Method, scope: Scope) -> bool:
    """Whether a method that autograd calls with the ctx certainly has no parameter for it.

    Then the ctx arrives in the parameter of the first input or gradient: the body uses an unbound ``ctx``, or uses its
    first parameter as only a tensor can be used. Runs before the body is walked: ``method.ctx`` is the first parameter.
    """
    ctx = method.ctx
    if ctx is None:
        return not method.own_params and method.name in ("forward", "backward", "vjp", "setup_context", "jvp")
    if not ctx.name.strip("_") or ctx.name in RECEIVERS or _has_context_name(ctx.name):
        return False
    body = method.node.body
    if used_as_context(body, ctx.name):
        return False
    if ctx.annotation in types.TENSOR_ANNOTATIONS or uses_unbound_context(method.node, scope):
        return True
    bound = times_bound(body)
    if ctx.name in bound:
        return False
    second = [name for name in _second_names(body, ctx.name) if bound[name] == 1]
    return any(_used_as_tensor(body, name, scope) for name in (ctx.name, *second))


def uses_unbound_context(node: cst.FunctionDef, scope: Scope) -> bool:
    """Whether a method reads a ``ctx`` that neither it nor an enclosing scope binds.

    A star import may bind a ``ctx``, but not one that the method uses as autograd's.
    """
    if "ctx" not in borrowed_names(node) or scope.owner("ctx") is not None:
        return False
    return not scope.sees_star_import() or used_as_context(node.body, "ctx")


def _second_names(node: cst.CSTNode, name: str) -> Iterator[str]:
    """The names that the body binds to the same object: ``grad_input = grad_output``."""
    if isinstance(node, cst.Assign) and is_name(node.value, name):
        yield from (each.target.value for each in node.targets if isinstance(each.target, cst.Name))
    elif isinstance(node, (cst.BaseSuite, cst.BaseStatement)) and not isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        for child in children(node):
            yield from _second_names(child, name)


def _has_context_name(name: str) -> bool:
    return "ctx" in name.lower() or "context" in name.lower()


def _used_as_tensor(node: cst.CSTNode, name: str, scope: Scope) -> bool:
    """Whether ``name`` is used in arithmetic, indexed, returned, or passed to a torch function."""
    if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
        return False
    if any(is_name(part, name) for part in _parts_for_tensors(node, scope)):
        return True
    return any(_used_as_tensor(child, name, scope) for child in children(node))


def _parts_for_tensors(node: cst.CSTNode, scope: Scope) -> list[cst.CSTNode | None]:
    """The parts of a node that cannot be a ctx."""
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, cst.AugAssign):
        return [node.value]
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return [node.expression]
    if isinstance(node, (cst.Subscript, cst.Return)):
        elements = node.value.elements if isinstance(node.value, cst.Tuple) else ()
        return [node.value, *(element.value for element in elements)]
    if isinstance(node, cst.Call):
        return _parts_of_call(node, scope)
    return []


def _parts_of_call(node: cst.Call, scope: Scope) -> list[cst.CSTNode | None]:
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value in _CALLED_ON_TENSORS and isinstance(func.value, cst.Name):
        return [func.value]
    path = dotted(func)
    callee = resolve(path, scope) if path is not None else None
    space, _, function = (callee or "").rpartition(".")
    if f"{space}." in operations.TORCH_NAMESPACES and function in operations.TORCH_SINGLE:
        return [argument.value for argument in node.args]
    return []


def takes_class_as_context(method: Method) -> bool:
    """Whether the first parameter of a class method, which gets the class, is meant to be the ctx."""
    receiver = method.receiver
    return receiver is not None and (is_context_name(receiver.name) or used_as_context(method.node.body, receiver.name))


def works_by_accident(fn: FunctionClass, method: Method) -> bool:
    """Whether a call may work in spite of an extra parameter: each argument arrives in the next parameter."""
    if method.variadic is not None or any(param.has_default for param in method.positional):
        return True
    room = len(method.params) - (2 if method.binding is Binding.CLASS else 1)
    if method.name == "forward":
        return any(call.applies and not call.starred and call.positional == room for call in fn.calls)
    return any(returned.count == room for returned in fn.outputs)
