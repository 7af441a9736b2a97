"""Methods that code replaces by their dotted names: ``register_patch("pkg.ops.Scale.forward", new)``."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.scopes import dotted_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in, positional_names, tree_of
from ctxlint.source.modules import locate
from ctxlint.source.reading import content_or_nothing
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping


class NamedMethod(NamedTuple):
    """A method that a string names, with its class, and the module before these as the string has it."""

    module: str
    owner: str
    method: str


class NamedMethods:
    """Methods that strings name, by their classes: there may be many, and many Functions."""

    def __init__(self, named: Iterable[NamedMethod]) -> None:
        """The methods, in any order, also repeatedly."""
        self._by_owner: dict[str, set[NamedMethod]] = {}
        for each in named:
            self._by_owner.setdefault(each.owner, set()).add(each)

    def of(self, path: str, qualname: str) -> set[str]:
        """The methods of a class with this name in a file: the module may be a package that imports it.

        A class in a module of another name is another one, as is that in the project from which the code was copied.
        """
        named = self._by_owner.get(last_name(qualname))
        if not named:
            return set()
        places = {"", *re.split(r"[\\/]", path.removesuffix(".py")), *qualname.split(".")}
        return {each.method for each in named if last_name(each.module) in places}


def names_methods(data: bytes) -> bool:
    """Whether a file with these bytes may have such a string: it ends with the name of a method."""
    return _NAMED.search(data) is not None


def named_methods(tree: ast.Module | None, path: str) -> Iterator[NamedMethod]:
    """The methods that strings of a file name where a call gets them that says that it replaces something.

    Or a function that does so, whatever it is called. A string without the module is only that of a method if the call
    gets it directly.
    """
    nodes = nodes_in(tree) if tree is not None else []
    mocks = {"mock", "mocker", *_mocks_in(nodes)}
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    bound = _values_in(nodes) if calls else {}
    dropped = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    giving = (each for each in calls if id(each) not in dropped or _gives_another(each, bound))
    given = [each for call in giving for each in _given(call, mocks)]
    given += [call.args[0] for call in calls if _gets_method(call) and _sets_by_text(call.func, nodes, path)]
    direct = {id(each) for each in given}
    found = {id(part): part for each in (*given, *_values_of(given, bound)) for part in nodes_in(each)}
    for node in found.values():
        text = node.value if isinstance(node, ast.Constant) else None
        named = _DOTTED.fullmatch(text) if isinstance(text, str) else None
        if named is not None and (named["module"] is not None or id(node) in direct):
            yield NamedMethod(named["module"] or "", named["owner"], named["method"])


def _gets_method(call: ast.Call) -> bool:
    """Whether the first argument of a call is a string with the dotted name of a method."""
    first = call.args[0] if call.args else None
    return (
        isinstance(first, ast.Constant) and isinstance(first.value, str) and _DOTTED.fullmatch(first.value) is not None
    )


def _sets_by_text(func: ast.expr, nodes: Iterable[ast.AST], path: str) -> bool:
    """Whether a function of a file, or one that it imports, sets an attribute whose name it gets as a text."""
    name = dotted_name(func) or ""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return _sets_an_attribute(node)
        if isinstance(node, ast.ImportFrom):
            alias = next((each for each in node.names if (each.asname or each.name) == name), None)
            place = locate(path, f"{'.' * node.level}{node.module or ''}.{alias.name}") if alias is not None else None
            if place is not None:
                tree = tree_of(content_or_nothing(place.path).decode("utf-8", "replace"))
                defined = [
                    each for each in (tree.body if tree is not None else ()) if isinstance(each, ast.FunctionDef)
                ]
                return any(each.name == place.rest and _sets_an_attribute(each) for each in defined)
    return False


def _sets_an_attribute(function: ast.FunctionDef) -> bool:
    """Whether a function sets an attribute by a name that it works out from its first parameter."""
    params, nodes = positional_names(function.args)[:1], [*nodes_in(function)]
    computed = _computed_from(params, nodes)
    return any(
        last_name(dotted_name(each.func) or "") in ("setattr", "__setattr__")
        and len(each.args) > 2
        and dotted_name(each.args[1]) not in params
        and not computed.isdisjoint(_names_in(each.args[1]))
        for each in nodes
        if isinstance(each, ast.Call)
    )


def _computed_from(names: Iterable[str], nodes: Iterable[ast.AST]) -> set[str]:
    """Some names, and those that code gives a value in which they occur, or which a value with them runs through."""
    found, pairs = {*names}, [(target, value) for target, value in _bindings_in(nodes)]
    while True:
        new = {
            name for target, value in pairs if not found.isdisjoint(_names_in(value)) for name in _names_in(target)
        } - found
        if not new:
            return found
        found |= new


def _names_in(node: ast.expr) -> set[str]:
    return {each.id for each in nodes_in(node) if isinstance(each, ast.Name)}


def replaces(func: ast.expr) -> bool:
    """Whether a function says that it replaces something: ``register_patch``, ``MonkeyPatcher``, not ``dispatch``."""
    return any(_REPLACING.fullmatch(each) for each in _words_of(func))


def _words_of(func: ast.expr) -> list[str]:
    """The words of the name of a function, in lower case."""
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return [each.lower() for each in _WORDS.findall(name)]


def _given(call: ast.Call, mocks: Container[str]) -> list[ast.expr]:
    """What a call gets that may replace a method by its name; not for the time of a test only."""
    if any(each in mocks for each in (dotted_name(call.func) or "").split(".")):
        return []
    if _words_of(call.func) == ["replace"]:  # of a text, or of a field by its name
        return call.args if not all(isinstance(each, ast.Constant) for each in call.args) else []
    given = [*call.args, *(each.value for each in call.keywords)]
    registers = "register" in _words_of(call.func) and len(given) > 1
    return given if registers or replaces(call.func) else []


def _mocks_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names under which a file has ``unittest.mock``, or what it imports from there."""
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            of = (getattr(node, "module", None) or "").split(".")
            yield from (
                each.asname or each.name for each in node.names if "mock" in of or "mock" in each.name.split(".")
            )


def _gives_another(call: ast.Call, bound: Mapping[str, list[ast.expr]]) -> bool:
    """Whether a call gets more than one dotted name and plain values: something that may come in the place of that."""
    given = [*call.args, *(each.value for each in call.keywords)]
    parts = [part for each in (*given, *_values_of(given, bound)) for part in nodes_in(each)]
    texts = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return sum(_IS_DOTTED.fullmatch(each) is not None for each in texts) > 1 or any(
        isinstance(part, ast.expr)
        and not isinstance(part, (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict))
        and not (isinstance(part, ast.Name) and part.id in bound)
        for part in parts
    )


def _values_of(given: Iterable[ast.expr], bound: Mapping[str, list[ast.expr]]) -> list[ast.expr]:
    """What the names among some arguments stand for, also through others."""
    values: list[ast.expr] = []
    seen: set[str] = set()
    todo = [*given]
    while todo:
        names = set[str]().union(*map(_names_in, todo)) - seen
        seen |= names
        todo = [value for name in names for value in bound.get(name, ())]
        values += todo
    return values


def _values_in(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """By name, what a file assigns to it, or what a loop with it runs through, in any scope."""
    bound: dict[str, list[ast.expr]] = {}
    for target, value in _bindings_in(nodes):
        _bind(target, value, bound)
    return bound


def _bindings_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of assignments and loops, each with the assigned value, or what the loop runs through."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield target, value


def _bind(target: ast.expr, value: ast.expr, bound: dict[str, list[ast.expr]]) -> None:
    """Note a value for each name in a target; the keys of what is set in a dict belong to the latter."""
    parts = [each for each in nodes_in(target) if isinstance(each, ast.Name)]
    for name in parts:
        bound.setdefault(name.id, []).append(value)
        if isinstance(target, ast.Subscript):
            bound[name.id].append(target.slice)


_METHODS = "|".join(PROTOCOL)
_NAMED = pattern(rb"\.(?<=\w\.)(?:%b)['\"]" % _METHODS.encode())
"""It begins with one fixed character, for which ``re`` searches fastest."""
_DOTTED = pattern(rf"(?:(?P<module>[\w.]*)\.)?(?P<owner>\w+)\.(?P<method>{_METHODS})")
_IS_DOTTED = pattern(r"\w+(?:\.\w+)+")
_WORDS = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_REPLACING = pattern(
    r"(?:monkey)?patch(?:e[drs]|ing)?|replace(?:[drs]|ments?)?|replacing|overrid(?:e[drs]?|ing)|overwrit(?:es?|ten|ing)"
    r"|substitut(?:e[ds]?|ion)|swap(?:ped|s)?"
)
