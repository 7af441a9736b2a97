"""The effect of a decorator of the project on the function that it decorates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.device_choices import mentions_device
from ctxlint.model.syntax import children, dotted, last_name, words_of
from ctxlint.records import record
from ctxlint.torch_api import autograd, operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@record
class Wrapping:
    """The summary of a decorator.

    ``passes_arguments_on``: its wrapper passes all arguments to the function, one for one, and returns the result. The
    wrapper may convert each argument (``args = [arg.contiguous() for arg in args]``), and it may be inside the
    decorator that a decorator with options creates. ``takes_descriptors``: it accepts static and class methods.
    ``works_on_ctx``: it sets attributes of anything, or calls methods of ctx. ``gives_back``: it returns the function
    unchanged and does nothing else. ``by``: it returns what the decorator of this name makes of the function.
    ``keeps_class``: it returns the class that it decorates, with the same methods.
    ``copies``: it calls what copies a tensor, perhaps for the function. ``lays_out``: it passes on what ``contiguous``
    returns for each of several values, and does not switch grad mode. ``keeps_device``: it mentions no device, and
    enters no context manager but those of torch for grad mode and the like.
    """

    passes_arguments_on: bool
    takes_descriptors: bool
    works_on_ctx: bool
    gives_back: bool = False
    keeps_class: bool = False
    copies: bool = False
    lays_out: bool = False
    keeps_device: bool = False
    by: str | None = None


def in_common(several: Iterable[Wrapping]) -> Wrapping | None:
    """What is known of a decorator if a condition decides between several."""
    found = list(several)
    if not found:
        return None
    return Wrapping(
        passes_arguments_on=all(each.passes_arguments_on for each in found),
        takes_descriptors=all(each.takes_descriptors for each in found),
        works_on_ctx=any(each.works_on_ctx for each in found),
        gives_back=all(each.gives_back for each in found),
        keeps_class=all(each.keeps_class for each in found),
        copies=any(each.copies for each in found),
        lays_out=all(each.lays_out for each in found),
        keeps_device=all(each.keeps_device for each in found),
    )


def wrapping_of(decorator: cst.FunctionDef, *, gives_back: bool) -> Wrapping:
    """The summary of a function as a decorator, which certainly returns what it gets if it ``gives_back``."""
    names_descriptors = _names_descriptors(decorator.body)
    same = _gives_back_what_it_gets(decorator)
    return Wrapping(
        passes_arguments_on=not names_descriptors and (same or _hands_on(decorator, frozenset())),
        takes_descriptors=names_descriptors or same,
        works_on_ctx=_works_on_ctx(decorator),
        gives_back=gives_back,
        keeps_class=same and not names_descriptors and not may_change_methods(decorator.body),
        copies=_copies(decorator.body, _names_of_functions(decorator.body)),
        lays_out=_lays_out(decorator.body) and "grad" not in "".join(words_of(decorator.body)),
        keeps_device=not mentions_device(decorator),
        by=None if names_descriptors else _other_decorator(decorator),
    )


def _other_decorator(decorator: cst.FunctionDef) -> str | None:
    """The name of the decorator that a function applies to what it gets: ``return guard(fn)``; None for any other."""
    returned = _only_returned(decorator)
    name = dotted(returned.func) if isinstance(returned, cst.Call) else None
    first = returned.args[0] if isinstance(returned, cst.Call) and returned.args else None
    if name is None or first is None or first.keyword is not None or not isinstance(first.value, cst.Name):
        return None
    star = decorator.params.star_arg
    if first.star == "*":
        taken = star.name.value if isinstance(star, cst.Param) else None
    else:
        params = (*decorator.params.posonly_params, *decorator.params.params)
        taken = params[0].name.value if params else None
    return name if first.value.value == taken else None


def _copies(node: cst.CSTNode, own: frozenset[str]) -> bool:
    """Whether a decorator calls what copies a tensor, also to another type, or a function for each of several values.

    ``contiguous`` copies unusual tensors only. ``own`` are functions of the decorator itself.
    """
    if isinstance(node, cst.Call):
        name = last_name(node.func)
        mapped = node.args[0].value if name in _MAPPING and node.args else None
        if name in _COPYING or (mapped is not None and _is_of_others(mapped, own)):
            return True
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        if any(isinstance(each, cst.Call) and _is_of_others(each.func, own) for each in _arms(node.elt)):
            return True
    return any(_copies(child, own) for child in children(node))


def _lays_out(node: cst.CSTNode) -> bool:
    """Whether some code has a comprehension of ``arg.contiguous()`` for the arguments, perhaps only for tensors."""
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)) and isinstance(node.for_in.target, cst.Name):
        calls = (each for each in _arms(node.elt) if isinstance(each, cst.Call))
        if any(dotted(each.func) == f"{node.for_in.target.value}.contiguous" for each in calls):
            return True
    return any(map(_lays_out, children(node)))


def _names_of_functions(node: cst.CSTNode) -> frozenset[str]:
    """The functions that a decorator defines, and ``isinstance``."""
    own = {node.name.value} if isinstance(node, cst.FunctionDef) else {"isinstance"}
    return frozenset(own).union(*map(_names_of_functions, children(node)))


def _arms(node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    return (*_arms(node.body), *_arms(node.orelse)) if isinstance(node, cst.IfExp) else (node,)


def _is_of_others(function: cst.BaseExpression, own: frozenset[str]) -> bool:
    return isinstance(function, cst.Name) and function.value not in own


_MAPPING = frozenset({"map", "tree_map", "tree_map_only"})


_COPYING = frozenset({"clone", "deepcopy", "to", "type", "type_as", *operations.FLOAT_CONVERSIONS})


def may_change_methods(node: cst.CSTNode) -> bool:
    """Whether a class decorator, or ``__init_subclass__``, sets a method of Function.

    Or passes anything by name to what may do so.
    """
    if isinstance(node, cst.Attribute) and node.attr.value in (*autograd.PROTOCOL, "apply", "__dict__"):
        return True
    if isinstance(node, cst.Call):
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        passes = any(isinstance(argument.value, cst.Name) for argument in node.args)
        if passes and method not in ("append", "add", "setdefault", "__init_subclass__"):
            return True
    return any(may_change_methods(child) for child in children(node))


def _only_returned(function: cst.FunctionDef) -> cst.BaseExpression | None:
    """What a plain function returns in its only statement, apart from a docstring."""
    statements = function.body.body[function.get_docstring() is not None :]
    if len(statements) != 1 or function.decorators or function.asynchronous is not None:
        return None
    line = statements[0]
    small = line.body if isinstance(line, cst.SimpleStatementLine) else statements
    return small[0].value if len(small) == 1 and isinstance(small[0], cst.Return) else None


def _works_on_ctx(node: cst.CSTNode) -> bool:
    """Whether a decorator sets attributes of anything, or calls methods of ctx."""
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)) and isinstance(node.target, cst.Attribute):
        return True
    if isinstance(node, cst.Call):
        name = last_name(node.func)
        if name == "setattr" or name in autograd.CONTEXT_METHODS:
            return True
    return any(_works_on_ctx(child) for child in children(node))


def _names_descriptors(node: cst.CSTNode) -> bool:
    """Whether a decorator mentions static or class methods itself."""
    if isinstance(node, cst.Name):
        return node.value in ("staticmethod", "classmethod", "__func__", "__get__")
    return any(_names_descriptors(child) for child in children(node))


def _gives_back_what_it_gets(decorator: cst.FunctionDef) -> bool:
    """Whether a decorator, or the one that it creates, only returns the very object that it decorates."""
    returned = list(_returned(decorator.body))
    inner = {each.name.value: each for each in _functions_in(decorator.body)}
    if not returned or not all(isinstance(value, cst.Name) for value in returned):
        return False
    params = [param.name.value for param in (*decorator.params.posonly_params, *decorator.params.params)]
    names = {value.value for value in returned if isinstance(value, cst.Name)}
    if names == set(params[:1]):
        return not _times_bound(decorator.body, params[0])
    return all(name in inner and _gives_back_what_it_gets(inner[name]) for name in names)


def _hands_on(function: cst.FunctionDef, wrapped: frozenset[str]) -> bool:
    """Whether a function nested in this one calls a parameter of an enclosing function with all its arguments."""
    params = (*function.params.posonly_params, *function.params.params)
    callables = wrapped | {param.name.value for param in params}
    return any(_is_wrapper(inner, callables) or _hands_on(inner, callables) for inner in _functions_in(function.body))


def _is_wrapper(function: cst.FunctionDef, wrapped: frozenset[str]) -> bool:
    star = function.params.star_arg
    if not isinstance(star, cst.Param):
        return False
    leading = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
    values = [_result(value, function.body) for value in _returned(function.body) if value is not None]
    for value in values:
        if not isinstance(value, cst.Call) or dotted(value.func) not in wrapped:
            return False
        if not _same_arguments(value, leading, star.name.value, function.body):
            return False
    return bool(values)


def _result(value: cst.BaseExpression, body: cst.BaseSuite) -> cst.BaseExpression:
    """What is returned: the value of a local variable, which is bound once, or again to its own converted elements."""
    if not isinstance(value, cst.Name):
        return value
    assigned = list(_bound_to(body, value.value))
    if len(assigned) != _times_bound(body, value.value) or not assigned:
        return value
    return assigned[0] if all(_maps(each, value.value) for each in assigned[1:]) else value


def _times_bound(node: cst.CSTNode, name: str) -> int:
    """How often a body binds a name in any way, nested functions included."""
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)):
        own = _names(node.target, name)
    elif isinstance(node, (cst.AsName, cst.NameItem)):
        own = _names(node, name)
    else:
        own = 0
    return own + sum(_times_bound(child, name) for child in children(node))


def _names(node: cst.CSTNode, name: str) -> int:
    if isinstance(node, cst.Name):
        return node.value == name
    return 0 if isinstance(node, (cst.Attribute, cst.Subscript)) else sum(_names(each, name) for each in children(node))


def _same_arguments(call: cst.Call, leading: list[str], star: str, body: cst.BaseSuite) -> bool:
    """Whether a call passes the leading parameters and then ``*args``, unchanged or converted one by one."""
    plain = [argument for argument in call.args if argument.keyword is None and argument.star != "**"]
    if len(plain) != len(leading) + 1 or plain[-1].star != "*":
        return False
    names = [argument.value.value for argument in plain[:-1] if isinstance(argument.value, cst.Name)]
    if names != leading or any(argument.star for argument in plain[:-1]):
        return False
    rest = plain[-1].value
    if not isinstance(rest, cst.Name):
        return _maps(rest, star) and not _rebinds(body, star)
    return _one_for_one(body, rest.value, star) if rest.value != star or _rebinds(body, star) else True


def _one_for_one(node: cst.CSTNode, name: str, star: str) -> bool:
    """Whether ``name`` is only bound to sequences with one element for each of ``*args``."""
    sources = list(_bound_to(node, name))
    if not sources or _times_bound(node, name) > len(sources) or _calls(node, name, _RESIZING):
        return False
    appended = _calls(node, name, ("append",))
    return all((not appended and _maps(source, star)) or _grows(source, node, name, star) for source in sources)


_RESIZING = ("insert", "extend", "pop", "remove", "clear")


def _calls(node: cst.CSTNode, name: str, methods: tuple[str, ...]) -> int:
    """How often a body calls one of these methods of ``name``."""
    own = isinstance(node, cst.Call) and dotted(node.func) in {f"{name}.{method}" for method in methods}
    return own + sum(_calls(child, name, methods) for child in children(node))


def _rebinds(node: cst.CSTNode, name: str) -> bool:
    return any(True for _ in _bound_to(node, name))


def _bound_to(node: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """What ``name`` is assigned, anywhere in a body except in nested functions."""
    for child in children(node):
        if isinstance(child, cst.Assign):
            if any(isinstance(each.target, cst.Name) and each.target.value == name for each in child.targets):
                yield child.value
        elif isinstance(child, (cst.BaseSuite, cst.BaseStatement, cst.Else, cst.SimpleStatementLine)):
            if not isinstance(child, cst.FunctionDef):
                yield from _bound_to(child, name)


def _maps(value: cst.BaseExpression, star: str) -> bool:
    """``args``, ``[f(arg) for arg in args]``, ``map(f, args)``, ``tree_map(f, args)``; also in ``tuple(...)``."""
    if isinstance(value, cst.Name):
        return value.value == star
    callee = dotted(value.func) if isinstance(value, cst.Call) else None
    if isinstance(value, cst.Call) and callee in ("tuple", "list") and len(value.args) == 1:
        value = value.args[0].value
        if isinstance(value, cst.Name):
            return value.value == star
    if isinstance(value, cst.Call) and len(value.args) >= 2 and not any(each.star for each in value.args):
        mapping = {"map": 2, "tree_map": 2, "tree_map_only": 3}.get((dotted(value.func) or "").rpartition(".")[2])
        return mapping == len(value.args) and _iterates(value.args[-1].value, star)
    if not isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        return False
    clause = value.for_in
    return not clause.ifs and clause.inner_for_in is None and _iterates(clause.iter, star)


def _iterates(node: cst.BaseExpression, star: str) -> bool:
    if isinstance(node, cst.Call) and dotted(node.func) == "enumerate" and node.args:
        node = node.args[0].value
    return isinstance(node, cst.Name) and node.value == star


def _grows(value: cst.BaseExpression, body: cst.CSTNode, name: str, star: str) -> bool:
    """``name = []`` and then, in a loop over the arguments, one ``name.append(...)`` in each iteration."""
    if not isinstance(value, cst.List) or value.elements:
        return False
    loops = [each for each in _loops_in(body) if _iterates(each.iter, star) and _appends(each.body, name)]
    appended = sum(_calls(loop, name, ("append",)) for loop in loops)
    return len(loops) == 1 and appended == _calls(body, name, ("append",))


def _loops_in(node: cst.CSTNode) -> Iterator[cst.For]:
    for child in children(node):
        if isinstance(child, cst.For):
            yield child
        elif isinstance(child, (cst.BaseSuite, cst.With)):
            yield from _loops_in(child)


def _appends(body: cst.BaseSuite, name: str) -> bool:
    """Whether a loop body appends to ``name`` once in every iteration."""
    return _times_appended(body, name) == 1


def _times_appended(node: cst.CSTNode, name: str) -> int | None:
    """How often a node appends to ``name``; None if that depends on the path, or if a path may leave the loop."""
    if isinstance(node, (cst.Continue, cst.Break, cst.Return, cst.Try, cst.For, cst.While)):
        return None
    if isinstance(node, cst.Call):
        return int(dotted(node.func) == f"{name}.append")
    if isinstance(node, cst.If):
        ways = {_times_appended(node.body, name), _times_appended(node.orelse, name) if node.orelse is not None else 0}
        return ways.pop() if len(ways) == 1 else None
    times = [_times_appended(child, name) for child in children(node)]
    return None if None in times else sum(each for each in times if each is not None)


def _functions_in(body: cst.BaseSuite) -> list[cst.FunctionDef]:
    return [statement for statement in body.body if isinstance(statement, cst.FunctionDef)]


def _returned(node: cst.CSTNode) -> Iterator[cst.BaseExpression | None]:
    """The values of the ``return`` statements inside a node, without those of nested functions."""
    for child in children(node):
        if isinstance(child, cst.Return):
            yield child.value
        elif isinstance(child, cst.FunctionDef):
            continue
        elif isinstance(child, (cst.BaseStatement, cst.BaseSuite, cst.Else, cst.ExceptHandler, cst.Finally)):
            yield from _returned(child)
