"""Custom operators without a registered gradient that a module calls. All is decided with ``ast`` alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.module_backwards import span_of_name
from ctxlint.model.index.project_answers import is_called_in_module, operator_decorators
from ctxlint.model.index.scopes import LOCAL, dotted_name
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.source.source import Span


@record
class BareOperator:
    """An operator, made of ``function``, that has no gradient; ``span`` is the name of that.

    ``applied`` is the Function whose ``apply`` gives what it returns, if that is all that it does.
    """

    span: Span
    function: str
    applied: str = ""


def bare_operators(
    unit: Unit,
    others: Iterable[Unit],
    called_elsewhere: Callable[[str], bool],
    applied_in: Callable[[ast.FunctionDef | ast.AsyncFunctionDef], str],
) -> Iterator[BareOperator]:
    """The operators of a file without a gradient that the ``forward`` of a module calls, or that apply a Function.

    ``others`` are files that may register gradients for operators of this one.
    """
    for function, name in _candidates(unit):
        given = [each for other in others for each in _registered(other)]
        if None in given or not {function, name, name.rpartition("::")[2]}.isdisjoint(given):
            continue
        node = unit.index.functions[function].node
        applied = applied_in(node) if unit.source.holds("apply") else ""
        if applied or is_called_in_module(unit.index, LOCAL + function) or called_elsewhere(function):
            yield BareOperator(span_of_name(unit, node), function, applied)


def possible_names(unit: Unit) -> Iterator[str]:
    """The names under which other files may register gradients for such operators of a file."""
    for function, name in _candidates(unit):
        yield from {function, name.rpartition("::")[2]} - {""}


def _candidates(unit: Unit) -> tuple[tuple[str, str], ...]:
    """The operators that compute tensors from tensors, and whose gradient the file itself does not register."""
    if unit.source.holds("Autograd"):
        return ()  # a kernel for the key of autograd
    notes = unit.index.notes
    if _candidates not in notes:
        notes[_candidates] = tuple(_without_gradient(unit))
    found: tuple[tuple[str, str], ...] = notes[_candidates]
    return found


def _without_gradient(unit: Unit) -> Iterator[tuple[str, str]]:
    operators = list(operator_decorators(unit.index))
    own = _registered(unit)
    known = {function for function, _decorator in operators}
    if any(each is None or ("::" not in each and each not in known) for each in own):
        return  # some name may stand for any of them
    for function, decorator in operators:
        name = _name(decorator)
        if _is_pure(decorator) and {function, name}.isdisjoint(own) and _takes_and_gives_tensors(unit, function):
            yield function, name


def _name(decorator: ast.Call) -> str:
    name = decorator.args[0] if decorator.args else None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _is_pure(decorator: ast.Call) -> bool:
    """Whether the operator certainly modifies no argument: others have no gradient at all."""
    written = next((each.value for each in decorator.keywords if each.arg == "mutates_args"), None)
    if isinstance(written, ast.Call):
        return not written.args and dotted_name(written.func) in ("set", "tuple", "list")
    if isinstance(written, ast.Dict):
        return not written.keys
    return isinstance(written, (ast.Tuple, ast.List)) and not written.elts


def _registered(unit: Unit) -> tuple[str | None, ...]:
    """The names of the operators whose gradient a file registers; None for one that is not written out."""
    notes = unit.index.notes
    if _registered not in notes:
        notes[_registered] = tuple(_registrations(unit)) if unit.source.holds("register_autograd") else ()
    found: tuple[str | None, ...] = notes[_registered]
    return found


def _registrations(unit: Unit) -> Iterator[str | None]:
    for part in unit.index.parts or (unit.index,):
        for each in part.functions.values():
            for decorator in each.node.decorator_list:
                if isinstance(decorator, ast.Attribute) and decorator.attr == "register_autograd":
                    yield _written_out(unit, dotted_name(decorator.value))
    for node in (each.node for each in unit.index.calls_named(frozenset({"register_autograd"}))):
        func = node.func
        owner = dotted_name(func.value) if isinstance(func, ast.Attribute) else "library"
        if owner is None or not owner.endswith("library"):
            yield _written_out(unit, owner)
            continue
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value
        else:
            yield _written_out(unit, dotted_name(first) if first is not None else None)


def _written_out(unit: Unit, path: str | None) -> str | None:
    """The last part of a name that the file imports, or that of a function which it defines."""
    bounds = unit.index.module.names.get(path.partition(".")[0], ()) if path is not None else ()
    certain = bool(bounds) and all(each.kind in ("import", "def") for each in bounds)
    return path.rpartition(".")[2] if path is not None and certain else None


def _takes_and_gives_tensors(unit: Unit, function: str) -> bool:
    node = unit.index.functions[function].node
    parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    taken = [ast.unparse(each.annotation) for each in parameters if each.annotation is not None]
    gives = node.returns is not None and "Tensor" in ast.unparse(node.returns)
    return gives and any("Tensor" in each for each in taken)
