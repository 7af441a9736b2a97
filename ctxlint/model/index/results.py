"""How a function uses the result of a call in the statements after it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product, takewhile
from typing import TYPE_CHECKING

from ctxlint.model.index.passed_tensors import creates_parameter, flags_of
from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve_certainly
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.ast_tree import Collected, bound_names, nodes_in, positional_names
from ctxlint.torch_api.operations import (
    CONVERSIONS,
    FLOAT_CONVERSIONS,
    INPLACE_METHODS,
    INTEGRAL_METHODS,
    TORCH_LIKE,
    TORCH_SINGLE,
    TUPLE_METHODS,
    USUAL_VIEW_METHODS,
    VIEW_ATTRIBUTES,
    VIEW_METHODS,
)
from ctxlint.torch_api.python import BUILTIN_SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ctxlint.model.index.file_index import FileIndex
    from ctxlint.model.index.scopes import Scope

_MOST_STATEMENTS = 60
"""The maximum number of statements after a call to examine."""


@record
class Written:
    """A statement that modifies a result in place: output number ``output``, or the only output if None.

    If ``argument`` is a number, it modifies that argument of the call, and the result is read afterwards. ``later``:
    grad mode is off there, so that torch raises only when the result is used afterwards. ``in_branch``: it is in an
    ``if`` or a loop, and may not run. ``undone``: nothing before it, after the call, seems to run ``backward``.
    """

    node: ast.stmt | ast.Call
    output: int | None
    argument: int | None = None
    later: bool = False
    in_branch: bool = False
    undone: bool = False


class CallPlace(NamedTuple):
    """A call, the innermost block around it, and the index of the statement that contains it."""

    call: ast.Call
    block: Sequence[ast.stmt]
    at: int

    @property
    def discards(self) -> bool:
        """Whether the call is a statement of its own."""
        statement = self.block[self.at]
        return isinstance(statement, ast.Expr) and statement.value is self.call

    @property
    def before(self) -> Sequence[ast.stmt]:
        """The statements before it."""
        return self.block[max(self.at - _MOST_STATEMENTS, 0) : self.at]

    def until(self, node: ast.AST) -> Sequence[ast.stmt]:
        """The statements from it on, before the one that ends where a node does, or later."""
        end = (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))
        return [each for each in self.rest if (each.end_lineno or 0, each.end_col_offset or 0) < end]

    @property
    def rest(self) -> Sequence[ast.stmt]:
        """The statement that contains it, and those after."""
        return self.block[self.at : self.at + _MOST_STATEMENTS]


def located(body: Sequence[ast.stmt], call: ast.Call) -> CallPlace | None:
    """The place of a call in a body; None if it is not in a simple statement of it."""
    at = bisect_left(body, _end_of(call), key=_end_of)
    if at == len(body) or _start_of(body[at]) > _start_of(call):
        return None
    statement = body[at]
    blocks = [getattr(statement, name, None) or [] for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", ())]
    blocks += [case.body for case in getattr(statement, "cases", ())]
    if not any(blocks):
        return CallPlace(call, body, at)
    return next((found for block in blocks if (found := located(block, call)) is not None), None)


def goes_on_with(arguments: Sequence[ast.AST], place: CallPlace, function: ast.AST) -> bool:
    """Whether a function uses what a call got that is a statement of its own: after it, or in a loop around it.

    Not if it also takes the result of such a call: this is a trial. Nor if it only measures others that get the same.
    """
    parts = [each for argument in arguments for each in nodes_in(argument)]
    if any(isinstance(each, ast.Attribute) for each in parts):
        return True  # other methods may use it
    names = {each.id for each in parts if isinstance(each, ast.Name)}
    nodes, called = nodes_in(function), ast.dump(place.call.func)
    dropped = [each.value for each in nodes if isinstance(each, ast.Expr) and _is_plain_call(each.value)]
    alike = [each for each in nodes if isinstance(each, ast.Call) and ast.dump(each.func) == called]
    if any(all(each is not other for other in dropped) for each in alike):
        return False
    measured = {id(part) for each in dropped for part in nodes_in(each)}
    loops = [each for each in nodes if isinstance(each, _LOOPS) and each.lineno <= place.call.lineno]
    around = [_start_of(each) for each in loops if _end_of(each) >= _end_of(place.call)]
    start = min(around, default=_end_of(place.call))
    return any(
        isinstance(each, ast.Name) and each.id in names and id(each) not in measured and _start_of(each) >= start
        for each in nodes
    )


_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _is_plain_call(node: ast.expr) -> bool:
    """Whether a node calls a function, or ``apply``, not another method of an object."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Name) or (isinstance(func, ast.Attribute) and func.attr == "apply")


def display_before(place: CallPlace, name: str) -> ast.Tuple | ast.List | None:
    """The tuple or list that a name is bound to before the call, in its block, if nothing between uses the name.

    None either if another name in it is bound again.
    """
    bound = set[str]()
    for statement in reversed(place.before):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if isinstance(target, ast.Name) and target.id == name and isinstance(statement, ast.Assign):
            value = statement.value
            shown = value if isinstance(value, (ast.Tuple, ast.List)) else None
            return shown if shown is not None and bound.isdisjoint(_named(shown)) else None
        if name in _named(statement):
            return None
        bound.update(_stored(statement))
    return None


def _named(node: ast.AST) -> set[str]:
    """The names in code."""
    return {each.id for each in nodes_in(node) if isinstance(each, ast.Name)}


def _start_of(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end_of(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def written(
    place: CallPlace,
    meant: Callable[[ast.Call], ast.FunctionDef | None],
    overwritten: Callable[[ast.Call], ast.expr | None] | None,
) -> Written | None:
    """The first statement after a call in the same block that certainly modifies its result, or an argument of it.

    Result and arguments are tracked by name, also into a method that ``meant`` gives for a call of it, and into a call
    that modifies what ``overwritten`` gives for it.
    """
    found = _first_written(place, meant, overwritten)
    return (
        replace(found, undone=not any(map(_may_differentiate, place.until(found.node)))) if found is not None else None
    )


def _first_written(
    place: CallPlace,
    meant: Callable[[ast.Call], ast.FunctionDef | None],
    overwritten: Callable[[ast.Call], ast.expr | None] | None,
) -> Written | None:
    call, block = place.call, place.rest
    around = _by_first_argument(block[0]).get(call) if overwritten is not None else None
    if around is not None and overwritten is not None and overwritten(around) is call:
        return Written(around, None)
    names = _result_names(block[0], call)
    passed = _names_passed(block[0], call) if names else {}
    for at, statement in enumerate(block[1:], 2):
        if not names:
            return None
        for name, output in names.items():
            writing = _writing(statement, name, meant, overwritten)
            if writing is not None:
                return Written(writing, output, in_branch=isinstance(statement, _BRANCHING))
            hidden = next((each for each in _without_grad_mode(statement) if _writes(each, name)), None)
            if hidden is not None and _is_used(block[at:], name):
                return Written(hidden, output, later=True)
        stored, viewed = _stored(statement), _view_bound(statement, names)
        names = {name: output for name, output in names.items() if name not in stored} | viewed
        for name, argument in passed.items() if not isinstance(statement, _BRANCHING) else ():
            writing = _overwriting(statement, name, overwritten) if overwritten is not None else None
            if writing is None and not _writes(statement, name):
                continue
            for result, output in names.items():
                if _is_used(block[at:], result):
                    return Written(writing or statement, output, argument)
        passed = {name: argument for name, argument in passed.items() if name not in stored}
    return None


def _may_differentiate(statement: ast.stmt) -> bool:
    """Whether a statement mentions what may run ``backward``, or expects it to fail."""
    names = (getattr(each, "attr", "") or getattr(each, "id", "") for each in nodes_in(statement))
    return any(word in str(name) for name in names for word in _RUNS_BACKWARD)


_RUNS_BACKWARD = ("backward", "grad", "step", "raises", "Raises")


def returned_as(place: CallPlace) -> ast.Return | None:
    """The statement that returns the result of a call, at once or by a name that nothing binds again."""
    first, last = place.rest[0], place.rest[-1]
    if isinstance(first, ast.Return):
        return first if first.value is place.call else None
    names = [name for name, output in _result_names(first, place.call).items() if output is None]
    if not names or not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return None
    rebound = any(names[0] in _stored(each) for each in place.rest[1:])
    return last if last.value.id == names[0] and not rebound else None


def _writing(
    statement: ast.stmt,
    name: str,
    meant: Callable[[ast.Call], ast.FunctionDef | None],
    overwritten: Callable[[ast.Call], ast.expr | None] | None,
) -> ast.stmt | ast.Call | None:
    """The part of a statement that certainly modifies the tensor that a name refers to, where it runs."""
    if isinstance(statement, _BRANCHING):
        return _writing_inside(statement, name, meant, overwritten)
    if _writes(statement, name):
        return statement
    passed_on = _call_with(statement, name)
    if passed_on is not None and _writes_argument(passed_on, name, meant):
        return passed_on
    return _overwriting(statement, name, overwritten) if overwritten is not None else None


def _overwriting(statement: ast.stmt, name: str, overwritten: Callable[[ast.Call], ast.expr | None]) -> ast.Call | None:
    """The call in a statement that certainly overwrites a tensor since a flag says so."""
    tensors = ((each, overwritten(each)) for each in _certain_calls(statement))
    return next((each for each, tensor in tensors if isinstance(tensor, ast.Name) and tensor.id == name), None)


_BRANCHING = (ast.If, ast.For, ast.While)


def _writing_inside(
    statement: ast.If | ast.For | ast.While,
    name: str,
    meant: Callable[[ast.Call], ast.FunctionDef | None],
    overwritten: Callable[[ast.Call], ast.expr | None] | None,
) -> ast.stmt | ast.Call | None:
    """The part of a branch, or of the first round of a loop, that modifies a tensor before its name is bound again.

    Not under a test that may be about gradients, or about the tensor itself.
    """
    if isinstance(statement, ast.For):
        if name in _stored_by(statement.target):
            return None
    else:
        nodes = nodes_in(statement.test)
        asked = {str(getattr(each, part, "")) for each in nodes for part in ("id", "attr")}
        if name in asked or any(word in part.lower() for part in asked for word in _ABOUT_GRADIENTS):
            return None
    blocks = [statement.body, statement.orelse] if isinstance(statement, ast.If) else [statement.body]
    for block in blocks:
        for inner in block:
            writing = _writing(inner, name, meant, overwritten)
            if writing is not None:
                return writing
            if name in _stored(inner):
                break
    return None


_ABOUT_GRADIENTS = ("grad", "train", "infer", "inplace", "leaf", "eval")


def _call_with(statement: ast.stmt, name: str) -> ast.Call | None:
    """The call that is all that a simple statement evaluates, if a name is among its arguments."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) else None
    named = isinstance(value, ast.Call) and any(isinstance(each, ast.Name) and each.id == name for each in value.args)
    return value if named and isinstance(value, ast.Call) else None


@lru_cache(maxsize=1)
def _by_first_argument(statement: ast.stmt) -> dict[ast.expr, ast.Call]:
    """The calls that a statement certainly makes, by their first argument: many calls of one statement ask."""
    return {each.args[0]: each for each in _certain_calls(statement) if each.args}


def _certain_calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that a simple statement certainly makes, if nothing raises."""
    if isinstance(node, ast.Call):
        yield node
    if isinstance(node, _EVALUATES_ALL):
        for each in ast.iter_child_nodes(node):
            yield from _certain_calls(each)


_EVALUATES_ALL = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Call, ast.keyword, ast.Starred),
    *(ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List),
)


def _writes_argument(call: ast.Call, name: str, meant: Callable[[ast.Call], ast.FunctionDef | None]) -> bool:
    """Whether a function or method certainly modifies a tensor that it gets, before it returns or rebinds the name."""
    method = meant(call)
    if method is None or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    of_self = isinstance(call.func, ast.Attribute) and dotted_name(call.func.value) == "self"
    params = positional_names(method.args)[of_self:]
    named = [each.id if isinstance(each, ast.Name) else "" for each in call.args]
    param = next((own for own, each in zip(params, named, strict=False) if each == name), "")
    for statement in method.body:
        if _writes(statement, param):
            return True
        leaves = any(isinstance(each, (ast.Return, ast.Raise)) for each in nodes_in(statement))
        if leaves or param in _stored(statement):
            return False
    return False


def modifies_result(body: Sequence[ast.stmt], call: ast.Call, index: FileIndex, scope: Scope) -> Written | None:
    """The statement after a call of any function in a body that certainly modifies its only result in place.

    ``index`` is that of the file; a function that gets the result is known if it is in the file, too.
    """
    place = located(body, call)
    found = written(place, partial(function_meant, index, scope), None) if place is not None else None
    alone = found is not None and found.output is None and found.argument is None and not found.later
    return found if alone else None


def function_meant(index: FileIndex, scope: Scope, call: ast.Call) -> ast.FunctionDef | None:
    """The function of a file that ``name(...)`` certainly means; ``self.name(...)``, unless a subclass replaces it."""
    func = call.func
    if isinstance(func, ast.Name):
        meant = resolve_certainly(func.id, scope) or ""
        found = index.functions.get(meant.removeprefix(LOCAL)) if meant.startswith(LOCAL) else None
    else:
        on_self = isinstance(func, ast.Attribute) and dotted_name(func.value) == "self"
        enclosing = class_around(scope) if on_self else None
        named = f"{enclosing}.{func.attr}" if isinstance(func, ast.Attribute) and enclosing else ""
        found = index.functions.get(named)
    if found is None or not found.certain or not isinstance(found.node, ast.FunctionDef):
        return None
    return found.node if not found.node.decorator_list else None


def class_around(scope: Scope | None) -> str | None:
    """The qualified name of the innermost class around a scope."""
    while scope is not None:
        if scope.kind == "class":
            return scope.qualname
        scope = scope.parent
    return None


def _without_grad_mode(statement: ast.stmt) -> Sequence[ast.stmt]:
    """The statements under ``with torch.no_grad():``."""
    if not isinstance(statement, ast.With) or len(statement.items) != 1:
        return ()
    entered = statement.items[0].context_expr
    func = entered.func if isinstance(entered, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return statement.body if name == "no_grad" else ()


def _names_passed(statement: ast.stmt, call: ast.Call) -> dict[str, int]:
    """The names that a call passes by position, with their indices, except those that the statement binds."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return {}
    stored = _stored(statement)
    named = {each.id: at for at, each in enumerate(call.args) if isinstance(each, ast.Name)}
    return {name: at for name, at in named.items() if name not in stored}


def _is_used(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether one of the statements reads the values of a tensor, before its name is rebound."""
    for statement in statements:
        nodes = nodes_in(statement)
        asked = [each.value for each in nodes if isinstance(each, ast.Attribute) and each.attr in _SHAPE]
        reads = (each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
        if any(each.id == name and each not in asked for each in reads):
            return True
        if name in _stored(statement):
            return False
    return False


_SHAPE = frozenset(["shape", "dtype", "device", "ndim", "requires_grad", "grad_fn"])


class Differentiation(NamedTuple):
    """A statement that differentiates a result; ``outputs`` are those that have a name, if it is unpacked.

    ``requested`` are the positions of arguments, before the first starred one, that are names of tensors which require
    gradients; none of them if the code after the call expects a gradient to be None.
    """

    node: ast.stmt
    outputs: tuple[int, ...] = ()
    requested: tuple[int, ...] = ()


def differentiated(place: CallPlace) -> Differentiation | None:
    """The statement after or around a call that certainly differentiates its result: ``loss.backward()``.

    Only if the gradient of an argument is requested before, in the same block: otherwise the graph may not reach the
    call.
    """
    call = place.call
    if not any(map(_calls_backward, place.rest)):
        return None
    asked = _requiring_gradients(place.before)
    if not any(_computes_with(each, asked, call) for each in call.args):
        return None
    unpacked = _result_names(place.rest[0], call)
    outputs = tuple(at for name, at in unpacked.items() if at is not None and not name.startswith("_"))
    flowing: set[str] = set()
    for statement in place.rest:
        if _differentiates(statement, flowing, call):
            return Differentiation(statement, outputs, _requested(place, asked))
        flowing = _after(statement, flowing, call)
        if statement is place.rest[0] and outputs:
            flowing = {name for name, at in unpacked.items() if at in outputs}
    return None


def is_returned(body: Sequence[ast.stmt], call: ast.Call) -> bool:
    """Whether a function certainly returns what operators and functions of torch compute from a call's result."""
    flowing: set[str] = set()
    for statement in _in_order(body):
        if isinstance(statement, ast.Return):
            parts = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            if any(each is not None and _carries(each, flowing, call) for each in parts):
                return True
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
        if _without_grad_mode(statement):
            flowing -= _stored(statement)
        elif value is not None and _carries(value, flowing, call):
            flowing |= _stored(statement)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            flowing -= _stored(statement)
    return False


def _in_order(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, also those in blocks, as they are written; none under ``torch.no_grad()``."""
    for statement in body:
        yield statement
        nested = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if not nested and not _without_grad_mode(statement):
            for name in ("body", "orelse", "handlers", "finalbody"):
                for each in getattr(statement, name, ()):
                    yield from _in_order(each.body if isinstance(each, ast.ExceptHandler) else [each])


def _carries(node: ast.expr, flowing: set[str], call: ast.Call) -> bool:
    """Whether an expression certainly depends on the result of a call, or on a name, for its gradient."""
    if isinstance(node, ast.Name):
        return node.id in flowing
    if isinstance(node, ast.BinOp):
        return _carries(node.left, flowing, call) or _carries(node.right, flowing, call)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _carries(node.operand, flowing, call)
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _VIEWS):
        return _carries(node.value, flowing, call)
    if isinstance(node, ast.IfExp):
        return _carries(node.body, flowing, call) or _carries(node.orelse, flowing, call)
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(_carries(each, flowing, call) for each in node.elts)
    if node is call:
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    name, of = (node.func.attr, [node.func.value]) if isinstance(node.func, ast.Attribute) else (node.func.id, [])
    given = (*of, *node.args, *(each.value for each in node.keywords))
    number = (isinstance(node.func, ast.Name) and name in BUILTIN_SCALARS) or any(map(_is_integral_dtype, given))
    return name in _DIFFERENTIABLE and not number and any(_carries(each, flowing, call) for each in given)


_VIEWS = VIEW_ATTRIBUTES - {"data"}


def _is_integral_dtype(node: ast.expr) -> bool:
    """Whether an argument is ``torch.int8`` or the like."""
    return (dotted_name(node) or "").rpartition(".")[2].startswith(("bool", "int", "long", "short", "uint"))


_DIFFERENTIABLE = (
    TORCH_SINGLE | TUPLE_METHODS | VIEW_METHODS | USUAL_VIEW_METHODS | CONVERSIONS | FLOAT_CONVERSIONS
) - (
    INTEGRAL_METHODS
    | TORCH_LIKE
    | frozenset(
        str.split(
            "arange as_tensor bartlett_window detach detach_copy empty empty_strided eye from_numpy full hann_window "
            "histc int_repr linspace logspace new new_empty new_empty_strided new_full new_ones new_tensor new_zeros "
            "ones rand randint_like randn tensor zeros"
        )
    )
)
"""Methods and functions whose result certainly has a gradient for their tensors, if they have floats."""


def _requested(place: CallPlace, asked: set[str]) -> tuple[int, ...]:
    """The positions of the arguments that are one of some names."""
    if any(map(_expects_no_gradient, place.rest)):
        return ()
    plain = takewhile(lambda each: not isinstance(each, ast.Starred), place.call.args)
    return tuple(at for at, each in enumerate(plain) if isinstance(each, ast.Name) and each.id in asked)


def _expects_no_gradient(statement: ast.stmt) -> bool:
    """Whether a statement compares a gradient with None, or asserts that it is None."""
    for node in nodes_in(statement):
        compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        called = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "assertIsNone"
        )
        given = node.args if isinstance(node, ast.Call) and called else compared
        if any(isinstance(each, ast.Attribute) and each.attr == "grad" for each in given):
            return True
    return False


def differentiated_again(place: CallPlace) -> ast.stmt | None:
    """The statement after a call that certainly differentiates its result a second time, or in each round of a loop.

    Only if the first time keeps the graph: otherwise torch itself raises.
    """
    call, flowing, retained = place.call, set[str](), False
    if not any(_retains(each) for each in map(_differentiating, _with_loops(place.rest[1:]))):
        return None
    for statement in place.rest:
        inside: Sequence[ast.stmt] = statement.body if isinstance(statement, (ast.For, ast.While)) else ()
        kept = flowing.difference(_stored(statement)) if inside else flowing
        for each in (statement, *inside):
            found = _differentiating(each)
            if found is not None and _computes_with(found[0], kept, call):
                if retained or (inside and _retains(found)):
                    return each
                retained = retained or _retains(found)
        flowing = _after(statement, flowing, call)
    return None


def second_derivatives(place: CallPlace) -> Iterator[tuple[int, int, ast.stmt]]:
    """The statements after a call that certainly differentiate a gradient of its result by an argument once more.

    Each comes with the position of that argument, and of the one that the second gradient is by. Of all leaves, that
    is the first one again, which certainly requires a gradient. The vector of a product may be what else is asked for,
    of which the gradient is a linear function.
    """
    call, flowing = place.call, set[str]()
    plain = takewhile(lambda each: not isinstance(each, ast.Starred), call.args)
    arguments = [(at, each.id) for at, each in enumerate(plain) if isinstance(each, ast.Name)]
    if not arguments or not any(_retains(each, "create_graph") for each in map(_differentiating, place.rest[1:])):
        return
    gradients: dict[str, set[str]] = {}
    for statement in place.rest:
        found = _differentiating(statement)
        of, wanted = (found[0], _wanted(found[1])) if found is not None else (None, None)
        for first, names in gradients.items():
            if of is not None and wanted is not None and _computes_with(of, names, _NO_CALL):
                pairs = product(arguments, arguments)
                yield from ((one, two, statement) for (one, a), (two, b) in pairs if a == first and b == (wanted or a))
        stored = _stored(statement)
        arguments = [(at, name) for at, name in arguments if name not in stored]
        gradients = {first: _after(statement, names, _NO_CALL) for first, names in gradients.items()}
        if wanted and of is not None and _retains(found, "create_graph") and _computes_with(of, flowing, call):
            gradients[wanted] = gradients.get(wanted, set()) | stored
        flowing = _after(statement, flowing, call)


def _wanted(differentiation: ast.Call) -> str | None:
    """The name of the only tensor that a gradient is wanted by; empty for all leaves, None for anything else."""
    if isinstance(differentiation.func, ast.Attribute) and differentiation.func.attr == "backward":
        return (
            "" if not differentiation.args and all(each.arg != "inputs" for each in differentiation.keywords) else None
        )
    wanted = differentiation.args[1] if len(differentiation.args) > 1 else None
    each_of = wanted.elts if isinstance(wanted, (ast.List, ast.Tuple)) else [wanted]
    return each_of[0].id if len(each_of) == 1 and isinstance(each_of[0], ast.Name) else None


def _with_loops(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Some statements, and those of loops among them."""
    for each in statements:
        yield each
        if isinstance(each, (ast.For, ast.While)):
            yield from each.body


def _differentiating(statement: ast.stmt) -> tuple[ast.expr, ast.Call] | None:
    """What a statement differentiates, and the call: ``loss.backward()``, ``g = torch.autograd.grad(loss, x)``."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    value = value.value if isinstance(value, ast.Subscript) else value
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr == "backward":
        return value.func.value, value
    if dotted_name(value.func) in ("torch.autograd.grad", "autograd.grad") and value.args:
        return value.args[0], value
    return None


def _retains(found: tuple[ast.expr, ast.Call] | None, *flags: str) -> bool:
    """Whether the graph is certainly kept: ``retain_graph=True``; or what one of some ``flags`` asks for is done."""
    asked = {each.arg: each.value for each in found[1].keywords} if found is not None else {}
    flag = next((asked[each] for each in flags or ("retain_graph", "create_graph") if each in asked), None)
    return flag is not None and _is_true(flag)


def _after(statement: ast.stmt, flowing: set[str], call: ast.Call) -> set[str]:
    """The names that certainly compute with the result of a call, or with a tensor, after a statement."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
    if value is not None and _computes_with(value, flowing, call):
        return flowing.union(_stored(statement))
    return flowing if isinstance(statement, ast.AugAssign) or not flowing else flowing.difference(_stored(statement))


def _result_names(statement: ast.stmt, call: ast.Call) -> dict[str, int | None]:
    """The names that an assignment binds to the result of a call, with the output that each refers to."""
    if isinstance(statement, ast.AnnAssign) and statement.value is call and isinstance(statement.target, ast.Name):
        return {statement.target.id: None}
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return {}
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        return {target.id: None}
    if isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts):
        return {each.id: at for at, each in enumerate(target.elts) if isinstance(each, ast.Name)}
    return {}


def _view_bound(statement: ast.stmt, names: dict[str, int | None]) -> dict[str, int | None]:
    """The name that a statement binds to a view of a tensor with one of some names, which torch protects like it."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return {}
    target, viewed = statement.targets[0], _viewed(statement.value)
    while viewed is not None and not isinstance(viewed, ast.Name):
        viewed = _viewed(viewed)
    return {target.id: names[viewed.id]} if viewed and viewed.id in names and isinstance(target, ast.Name) else {}


def _viewed(node: ast.expr) -> ast.expr | None:
    """The tensor of which an expression is certainly a view, if it is one at all."""
    match node:
        case ast.Call(func=ast.Attribute(value, method)) if method in VIEW_METHODS and method != "detach":
            return value
        case ast.Attribute(value, "T" | "mT"):
            return value
        case ast.Subscript(value, index) if _copies_nothing(index):
            return value
    return None


def _copies_nothing(index: ast.expr) -> bool:
    """Whether it is a slice, a number, ``None`` or ``...``, or several of these."""
    if isinstance(index, ast.Tuple):
        return all(map(_copies_nothing, index.elts))
    written = index.operand if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) else index
    number = isinstance(written, ast.Constant) and not isinstance(written.value, (bool, str))
    return number or isinstance(index, ast.Slice)


def _writes(statement: ast.stmt, name: str) -> bool:
    """Whether a statement certainly writes to the tensor that a name refers to."""
    if isinstance(statement, ast.AugAssign):
        target = statement.target
        return _is_of(target.value if isinstance(target, ast.Subscript) else target, name)
    if isinstance(statement, ast.Assign):
        return any(isinstance(each, ast.Subscript) and _is_of(each.value, name) for each in statement.targets)
    value = statement.value if isinstance(statement, ast.Expr) else None
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in INPLACE_METHODS and _is_of(called.value, name)


def _is_of(node: ast.expr, name: str) -> bool:
    """Whether an expression is a name, or an item of it that is certainly a view: not by a list or a mask."""
    while isinstance(node, ast.Subscript) and _copies_nothing(node.slice):
        node = node.value
    return isinstance(node, ast.Name) and node.id == name


def _stored(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement may bind or delete."""
    return _STORED.within(statement)


def _stored_by(target: ast.expr) -> frozenset[str]:
    """The names that a target binds."""
    return _STORED.within(target)


_STORED = Collected(bound_names)


def _requiring_gradients(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of parameters, of tensors created with ``requires_grad=True`` or whose flag is set later.

    And of what operators and the like compute from them.
    """
    found: set[str] = set()
    for statement in statements:
        found = _after(statement, found, _NO_CALL)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            if isinstance(target, ast.Name) and isinstance(value, ast.Call) and _requires_gradient(value):
                found.add(target.id)
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and _is_true(value):
                found |= {target.value.id} if isinstance(target.value, ast.Name) else set()
        called = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(called, ast.Call) and _requires_gradient(called) and isinstance(called.func, ast.Attribute):
            found |= {called.func.value.id} if isinstance(called.func.value, ast.Name) else set()
    return found


def _requires_gradient(call: ast.Call) -> bool:
    """Whether a call returns what requires a gradient: ``torch.ones(2, requires_grad=True)``, ``Parameter(x)``."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return all(map(_is_true, (*call.args, *(each.value for each in call.keywords))))
    flags = flags_of(call)
    return all(map(_is_true, flags)) if flags or (creates_parameter(call) and len(call.args) < 2) else False


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _differentiates(statement: ast.stmt, flowing: set[str], call: ast.Call) -> bool:
    tensor = _calls_backward(statement)
    return tensor is not None and _computes_with(tensor, flowing, call)


def _calls_backward(statement: ast.stmt) -> ast.expr | None:
    """The tensor that a statement calls ``backward`` of."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    func = value.func if isinstance(value, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "backward" else None


def _computes_with(node: ast.expr, flowing: set[str], call: ast.Call) -> bool:
    """Whether an expression certainly computes with the result of the call: by operators and methods of tensors."""
    if node is call:
        return True
    if isinstance(node, ast.Name):
        return node.id in flowing
    if isinstance(node, ast.BinOp):
        return _computes_with(node.left, flowing, call) or _computes_with(node.right, flowing, call)
    if isinstance(node, ast.UnaryOp):
        return _computes_with(node.operand, flowing, call)
    if isinstance(node, ast.Subscript):
        return _computes_with(node.value, flowing, call)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_GRAPH:
        of_torch = dotted_name(node.func.value) in _MODULES
        tensor = (node.args[0] if node.args else None) if of_torch else node.func.value
        return tensor is not None and _computes_with(tensor, flowing, call)
    return False


_NO_CALL = ast.Call(ast.Name("", ast.Load()), [], [])
_MODULES = frozenset(["F", "nn.functional", "torch", "torch.nn.functional"])
_KEEPS_GRAPH = frozenset(
    str.split(
        "abs add clone contiguous cos cross_entropy div exp flatten l1_loss log log_softmax mean mse_loss mul nll_loss "
        "norm permute pow prod relu reshape sigmoid sin smooth_l1_loss softmax sqrt square squeeze sub sum tanh "
        "transpose unsqueeze view"
    )
)
"""Methods that propagate gradients to their tensor, and functions, to their first argument."""
