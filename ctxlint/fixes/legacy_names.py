"""Replacing names from torch 0.3 by their modern equivalents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.class_layout import layout_of
from ctxlint.fixes.imported_names import released
from ctxlint.fixes.method_code import code_of_method
from ctxlint.fixes.module_code import module_code
from ctxlint.model.analyses.double_backward import is_half_detached
from ctxlint.model.function import GenericCall
from ctxlint.model.syntax import dotted
from ctxlint.torch_api.autograd import FUNCTION

if TYPE_CHECKING:
    from typing import TypeGuard

    from ctxlint.fixes.method_code import MethodCode
    from ctxlint.model.function import ContextCall, FunctionClass, Method

_GRADIENTS_ON = ("torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.enable_grad")
_NO_EFFECT = ("None", "False")


def rename_attribute(fn: FunctionClass, method: Method, node: cst.CSTNode, new: str) -> Fix | None:
    """Write ``….new`` for an attribute that has two names; None if ``node`` is not a plain attribute."""
    layout = layout_of(fn, method)
    if layout is None or not isinstance(node, cst.Attribute):
        return None
    return Fix(f"Use `{new}`", (layout.replace(node.attr, new),), Applicability.SAFE)


# ---------------------------------------------------------------------------------------------------------------------
# Variable


def use_the_tensor(fn: FunctionClass, method: Method, call: GenericCall) -> Fix | None:
    """Replace ``Variable(x)`` by ``x``, or by its effect on ``x`` if that is intended.

    That is ``x.detach().requires_grad_()`` with ``requires_grad=True``, and ``x.detach()`` if that matters. None for
    anything but one tensor and these keywords.
    """
    code, node = code_of_method(fn, method), call.node
    if code is None or not isinstance(node, cst.Call):
        return None
    tensor, requires_grad, understood = variable_arguments(node)
    if tensor is None or not understood or isinstance(tensor, _NO_TENSORS):
        return None
    requires_grad = None if is_output(method, node) else requires_grad
    detaches = needs_detach(fn, method, call)
    bare_flag = requires_grad is not None and not detaches
    start = code.layout.start(node.func)
    end = code.layout.source.offset(code.layout.slice.span(node).end)
    title = "Use the tensor"
    if code.layout.line_number(start) != code.layout.line_number(end):
        edits = None if detaches or bare_flag else _without_name(code, node, start)
    elif not detaches and not bare_flag and _assigns_to(around := code.parents[node], tensor):
        title, edits = "Drop the statement", [code.without(around)]
    else:
        tensor = before_detach(tensor) if detaches else tensor
        text = code.layout.code(tensor)
        bare = bool(tensor.lpar) or isinstance(tensor, _ATOMS)
        if detaches or bare_flag:
            text = f"{text if bare else f'({text})'}{'.detach()' if detaches else ''}"
            if requires_grad is not None:
                value = code.layout.code(requires_grad)
                text += f".requires_grad_({'' if value == 'True' else value})"
            title = f"Write `{text}`" if len(text) <= 60 else f"Write the {'detached tensor' if detaches else 'tensor'}"
        elif not bare and not _is_delimited(code, node, tensor):
            text = f"({text})"
        joined = code.layout.text[end : end + 1].isalnum() and not text.endswith(")")
        edits = [Edit(start, end, f"({text})" if joined else text)]
    fix = None if edits is None else code.fix(title, edits, Applicability.UNSAFE)
    used = (dotted(node.func) or "").partition(".")[0]
    return None if fix is None else replace(fix, releases=released(fn, used))


def _assigns_to(node: cst.CSTNode, tensor: cst.BaseExpression) -> TypeGuard[cst.Assign]:
    """Whether a statement only assigns what remains to the same name: ``x = Variable(x)``."""
    if not isinstance(node, cst.Assign) or len(node.targets) != 1 or not isinstance(tensor, cst.Name):
        return False
    target = node.targets[0].target
    return isinstance(target, cst.Name) and target.value == tensor.value


_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
_NO_TENSORS = (
    cst.BaseNumber,
    cst.BaseString,
    cst.BaseDict,
    cst.BaseSet,
    cst.List,
    cst.ListComp,
    cst.Tuple,
    cst.GeneratorExp,
    cst.Lambda,
    cst.Yield,
)


def needs_detach(fn: FunctionClass, method: Method, call: GenericCall) -> bool:
    """Whether ``detach()`` has to replace ``Variable``: not for a new tensor, nor where torch tracks nothing anyway."""
    tensor, requires_grad, _understood = variable_arguments(call.node)
    if isinstance(tensor, cst.Call) and dotted(tensor.func) in _NEW_TENSORS:
        return False
    is_new = is_output(method, call.node) and not isinstance(tensor, (cst.Name, cst.Attribute))  # nor an input itself
    return (requires_grad is not None and not is_new) or detaching_matters(fn, method, tensor)


def is_output(method: Method, node: cst.CSTNode) -> bool:
    """Whether forward returns an expression: torch sets ``requires_grad`` of its outputs itself."""
    while isinstance(above := method.parents.get(node), (cst.Tuple, cst.Element)):
        node = above
    return method.name == "forward" and isinstance(above, cst.Return)


_NEW_TENSORS = frozenset(
    f"torch.{name}"
    for name in str.split("tensor Tensor FloatTensor DoubleTensor zeros ones empty full rand randn from_numpy linspace")
)
"""Functions whose result is a tensor of its own, without a graph."""


def detaching_matters(fn: FunctionClass, method: Method, tensor: cst.BaseExpression | None) -> bool:
    """Whether a tensor has to stay detached: the method enables gradients itself, or has only a part of its graph."""
    if any(each.callee in _GRADIENTS_ON for each in method.facts.of(GenericCall)):
        return True
    return tensor is not None and is_half_detached(fn, method, tensor)


def variable_arguments(node: cst.CSTNode) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None, bool]:
    """The tensor, and ``requires_grad`` if it may be true; and whether these are all arguments."""
    tensor: cst.BaseExpression | None = None
    requires_grad: cst.BaseExpression | None = None
    for number, arg in enumerate(node.args if isinstance(node, cst.Call) else ()):
        name = arg.keyword.value if arg.keyword is not None else "".join(_PARAMETERS[number : number + 1])
        if arg.star or name not in _PARAMETERS:
            return None, None, False
        constant = isinstance(arg.value, cst.Name) and arg.value.value in (*_NO_EFFECT, "True")
        if name == "data":
            tensor = None if constant else arg.value
        elif name == "volatile" and not constant:
            return None, None, False
        elif name == "requires_grad" and not (constant and dotted(arg.value) in _NO_EFFECT):
            requires_grad = arg.value
    return tensor, requires_grad, True


_PARAMETERS = ("data", "requires_grad", "volatile")


def before_detach(tensor: cst.BaseExpression) -> cst.BaseExpression:
    """What is detached: ``x`` for ``x.detach()`` and ``x.data``, otherwise the expression itself."""
    if isinstance(tensor, cst.Attribute):
        return before_detach(tensor.value) if tensor.attr.value == "data" else tensor
    if isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute) and not tensor.args:
        return before_detach(tensor.func.value) if tensor.func.attr.value == "detach" else tensor
    return tensor


def _without_name(code: MethodCode, node: cst.Call, start: int) -> list[Edit] | None:
    """``(x)`` for ``Variable(x)`` over several lines, which keeps its lines and comments."""
    layout, first, last = code.layout, node.args[0], node.args[-1]
    opening, end = layout.end(node.func), layout.end(first.value)
    after = layout.after_comma(last.comma) if isinstance(last.comma, cst.Comma) else layout.end(last.value)
    rest = layout.text[end:after].rstrip(" \t")
    if first.keyword is not None or layout.text[opening : opening + 1] != "(" or "#" in rest:
        return None
    return [Edit(start, opening, ""), Edit(end, end + len(rest), "")]


def _is_delimited(code: MethodCode, node: cst.Call, tensor: cst.BaseExpression) -> bool:
    """Whether any expression may replace the call, without parentheses."""
    if isinstance(tensor, cst.NamedExpr):
        return False
    parent = code.parents[node]
    if isinstance(parent, cst.Arg):
        return not parent.star
    return bool(node.lpar) or isinstance(parent, (cst.Return, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Element))


# ---------------------------------------------------------------------------------------------------------------------
# InplaceFunction


def derive_from_function(fn: FunctionClass, old: str) -> Fix | None:
    """Replace the base ``old`` by ``Function``.

    None if instances matter: the class has an ``__init__``, or an instance is created with arguments or keeps state.
    """
    layout, code = layout_of(fn), module_code(fn)
    made = any(each.how.startswith("construct") and (each.positional or each.keywords) for each in fn.calls)
    if layout is None or code is None or made or "__init__" in fn.methods or fn.legacy_state is not None:
        return None
    bases = [arg.value for arg in fn.node.bases if not arg.star]
    if len(bases) > 1:
        bases = [each for each in bases if (dotted(each) or "").endswith(old.rpartition(".")[2])]
    elif fn.base_names != {old}:
        return None  # an `if` decides between several
    if len(bases) != 1:
        return None
    written = code.name_for(FUNCTION, fn.slice.first_line, import_it=False)
    if written is None:
        return None
    name, imported = written
    edits = [layout.replace(bases[0], name)]
    edits = edits if imported is None else [imported, *edits]
    used = (dotted(bases[0]) or "").partition(".")[0]
    return Fix(f"Derive from `{name}`", tuple(edits), Applicability.UNSAFE, releases=released(fn, used))


# ---------------------------------------------------------------------------------------------------------------------
# mark_shared_storage


def drop_shared_storage(fn: FunctionClass, method: Method, call: ContextCall) -> Fix | None:
    """Remove the statement; None if the call is part of an expression, or its arguments may have side effects."""
    code = code_of_method(fn, method)
    if code is None or not isinstance(call.node, cst.Call):
        return None
    statement = code.statement(call.node)
    if not isinstance(statement, cst.Expr) or statement.value is not call.node:
        return None
    if not all(_does_nothing(arg.value) for arg in call.node.args):
        return None
    return code.fix("Drop the call", [code.without(statement)])


def _does_nothing(node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_does_nothing(each.value) for each in node.elements)
    return dotted(node) is not None
