"""The attributes of a module that hold the same memory in each call of one of its methods."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import is_on_self
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Function = ast.FunctionDef | ast.AsyncFunctionDef


def lasting_attributes(owners: Sequence[ast.ClassDef]) -> frozenset[str]:
    """The attributes of ``self`` that certainly hold the same memory, ``torch.empty(n)``, in each call of a method.

    ``owners`` are the class and its bases. They create it in ``__init__``, or where it is missing, and bind or remove
    these attributes nowhere else. None at all if the classes may reach attributes in another way: ``self.__dict__``.
    """
    if any(map(_may_reach_any, owners)):
        return frozenset()
    named = {each.name for owner in owners for each in owner.body if isinstance(each, _NAMED)}
    known, in_doubt = set[str](), named.union(*map(_names_in_body, owners))
    for function in (each for owner in owners for each in owner.body):
        at_first = isinstance(function, _FUNCTIONS) and function.name == "__init__"
        for name, lasts in _bound(ast.iter_child_nodes(function), at_first=at_first):
            (known if lasts else in_doubt).add(name)
    return frozenset(known - in_doubt)


def handed_back(method: Function) -> frozenset[ast.expr]:
    """The calls whose result a method returns as it is: directly, or by names that are bound once.

    None if the method copies tensors.
    """
    nodes = [*nodes_in(method)]
    if method.name == "__init__" or any(isinstance(each, ast.Attribute) and each.attr in _COPYING for each in nodes):
        return frozenset()
    returned = [each.value for each in nodes if isinstance(each, ast.Return) and each.value is not None]
    given = {each.id for value in returned for each in _elements(value) if isinstance(each, ast.Name)}
    bound = Counter(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    kept = {each for each in given if bound[each] == 1}
    assigned = (each for each in nodes if isinstance(each, ast.Assign) and len(each.targets) == 1)
    by_name = (
        each.value
        for each in assigned
        if all(isinstance(name, ast.Name) and name.id in kept for name in _elements(each.targets[0]))
    )
    return frozenset((*returned, *by_name))


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _names_in_body(owner: ast.ClassDef) -> Iterator[str]:
    """What statements of a class bind, such as a descriptor."""
    for statement in owner.body:
        if not isinstance(statement, _NAMED):
            yield from (each.id for each in nodes_in(statement) if isinstance(each, ast.Name))


def _may_reach_any(owner: ast.ClassDef) -> bool:
    """Whether a class hands on ``self``, or has other ways to set attributes than ``self.name = ...``."""
    if any(isinstance(each, _FUNCTIONS) and each.name in _SPECIAL for each in owner.body):
        return True
    allowed: set[ast.AST] = set()
    for each in nodes_in(owner):
        if isinstance(each, ast.Attribute):
            if each.attr in _SPECIAL or (each.attr == "__init__" and isinstance(each.value, ast.Name)):
                return True
            allowed.add(each.value)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "super":
            allowed |= {*each.args}
        elif isinstance(each, ast.Call) and _is_registering(each) and _registered(each) is None:
            return True
    selves = (each for each in nodes_in(owner) if isinstance(each, ast.Name) and each.id == "self")
    return any(each not in allowed for each in selves)


def _bound(nodes: Iterable[ast.AST], *, at_first: bool) -> Iterator[tuple[str, bool]]:
    """The attributes of ``self`` that code may bind, remove or change, and whether it creates lasting memory for them.

    ``at_first``: it is the code of ``__init__``. Elsewhere, it must run only if the attribute is None, or does not fit.
    """
    waiting = [(each, at_first, frozenset[str]()) for each in nodes]
    while waiting:
        node, first, missing = waiting.pop()
        if isinstance(node, ast.If):
            there = missing | _missing_if(node.test)
            waiting += [(each, first, missing) for each in (node.test, *node.orelse)]
            waiting += [(each, first, there) for each in node.body]
            continue
        stored = _plainly_stored(node)
        if stored is not None:
            name, value = stored
            if not (first and isinstance(value, ast.Constant) and value.value is None):
                yield name, (first or name in missing) and _is_blank(value)
            waiting.append((value, False, frozenset()))
            continue
        changed = _changed(node)
        if changed is not None:
            yield changed, False
        if isinstance(node, (*_NAMED, ast.Lambda)):
            first, missing = False, frozenset()
        waiting += [(each, first, missing) for each in ast.iter_child_nodes(node)]


def _plainly_stored(node: ast.AST) -> tuple[str, ast.expr] | None:
    """``self.x = value``, or ``self.register_buffer("x", value)``."""
    if isinstance(node, ast.Call) and _is_registering(node):
        name = _registered(node)
        value = next((each.value for each in node.keywords if each.arg == "tensor"), (*node.args, None, None)[1])
        return (name, value) if name is not None and value is not None else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, given = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, given = node.target, node.value
    else:
        return None
    return (target.attr, given) if is_on_self(target) else None


def _is_registering(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in ("register_buffer", "register_parameter")


def _registered(node: ast.Call) -> str | None:
    first = node.args[0] if node.args else None
    on_self = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    name = first.value if on_self and isinstance(first, ast.Constant) else None
    return name if isinstance(name, str) else None


def _changed(node: ast.AST) -> str | None:
    """``x`` of whatever else binds or removes ``self.x``, sets an attribute of it, or gives it other memory."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _attribute_of_self(node.func.value) if node.func.attr in _REPLACING else None
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return _attribute_of_self(node)
    return None


def _attribute_of_self(node: ast.expr) -> str | None:
    while not is_on_self(node):
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return None
        node = node.value
    return node.attr


def _missing_if(test: ast.expr) -> frozenset[str]:
    """The attributes that certainly are None, or have another size than what is asked for, if a test holds."""
    if isinstance(test, ast.BoolOp):
        each_side = [_missing_if(each) for each in test.values]
        met = frozenset.intersection if isinstance(test.op, ast.Or) else frozenset.union
        return met(*each_side)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return frozenset()
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, ast.Is) and is_on_self(left) and isinstance(right, ast.Constant) and right.value is None:
        return frozenset({left.attr})
    sized = _sized(left) or _sized(right) if isinstance(op, ast.NotEq) else None
    return frozenset() if sized is None else frozenset({sized})


def _sized(node: ast.expr) -> str | None:
    """``x`` of ``self.x.shape``, ``self.x.size(0)`` and the like."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    on_self = isinstance(node, ast.Attribute) and node.attr in _SIZES and is_on_self(node.value)
    return node.value.attr if on_self and isinstance(node, ast.Attribute) and is_on_self(node.value) else None


def _is_blank(node: ast.expr) -> bool:
    """``torch.empty(n)`` and the like, perhaps moved or converted: memory that has no meaning until it is filled."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CONVERTING:
        node = node.func.value
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _BLANK


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMED = (*_FUNCTIONS, ast.ClassDef)
_BLANK = frozenset({"empty", "zeros", "empty_like", "zeros_like", "new_empty", "new_zeros", "empty_strided"})
_CONVERTING = frozenset({"to", "cuda", "cpu", "float", "half", "double", "contiguous", "view", "reshape"})
_COPYING = frozenset({"clone", "deepcopy"})
_SIZES = frozenset({"shape", "size", "numel", "device", "dtype"})
_REPLACING = frozenset({"set_", "resize_", "resize_as_"})
_SPECIAL = frozenset(
    {
        "__dict__",
        "_buffers",
        "_parameters",
        "__class__",
        "__getattr__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
    }
)
"""What may set any attribute, or change what one means."""
