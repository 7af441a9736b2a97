"""Names that a file sets in modules: ``ops.scale = f``, ``setattr(ops, "scale", f)``, ``vars(ops)["scale"] = f``.

What a name stands for is decided in its scope: a parameter or variable that is called like a module is something else.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.named_patches import replaces
from ctxlint.model.index.scopes import dotted_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import bound_in, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.source.ast_tree import Scoped

ANY_NAME = "*"


class StoredName(NamedTuple):
    """A name that code sets in a module, which may be any name; ``path`` is that of the module, as the file has it."""

    path: str
    name: str


@lru_cache(maxsize=1)
def stores_in(tree: ast.Module) -> frozenset[StoredName]:
    """What a file sets in modules; not if that raises for a name that the module lacks."""
    return frozenset(each for node, names in _concerned(tree) for each in _stored(node, names))


@lru_cache(maxsize=1)
def _concerned(tree: ast.Module) -> list[tuple[ast.AST, Mapping[str, str]]]:
    """The nodes of a file that may set or ask for names, each with the modules that names stand for in its scope."""
    tops, above = list[ast.AST]([tree]), [-1]
    scopes: list[tuple[list[ast.AST], list[Scoped]]] = []
    for at, top in enumerate(tops):  # grows during iteration
        scopes.append(own_nodes(top))
        tops += scopes[at][1]
        above += [at] * len(scopes[at][1])
    known = [_globals_named([own for own, _inner in scopes])]
    found: list[tuple[ast.AST, Mapping[str, str]]] = []
    for top, at, (own, inner) in zip(tops, above, scopes):
        outside = known[at + 1]
        bound = bound_in(top, own, inner) if outside and top is not tree else ()
        names = {**{name: path for name, path in outside.items() if name not in bound}, **_modules_named(own)}
        known.append(outside if isinstance(top, ast.ClassDef) else names)
        found += [(each, names) for each in own if type(each) in _CONCERNED]
    return found


_CONCERNED = frozenset({ast.Assign, ast.Attribute, ast.Call, ast.Constant, ast.Return, ast.Subscript})


def _globals_named(scopes: list[list[ast.AST]]) -> Mapping[str, str]:
    """The modules that names stand for which functions bind for the whole file."""
    shared = {name for own in scopes for each in own if type(each) is ast.Global for name in each.names}
    named = [item for own in scopes for item in _modules_named(own).items()] if shared else []
    return {name: path for name, path in named if name in shared}


def _modules_named(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """The names that some nodes bind to what they import, or get as a module by its own name."""
    found: dict[str, str] = {}
    for node in nodes:
        if type(node) not in _NAMING:
            continue
        match node:
            case ast.Import(names=aliases):
                found.update((each.asname, each.name) if each.asname else (top_of(each.name),) * 2 for each in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                owner = "." * level + (f"{module}." if module else "")
                found.update((each.asname or each.name, owner + each.name) for each in aliases)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (path := _got(value)) is not None:
                found[name] = path
    return found


_NAMING = frozenset({ast.Import, ast.ImportFrom, ast.Assign})


def top_of(path: str) -> str:
    """The first part of a dotted name."""
    return path.partition(".")[0]


def _path_of(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """The path of the module that an expression may mean; None if it is something else."""
    path = dotted_name(node)
    if path is None:
        return _got(node)
    head, _, rest = path.partition(".")
    known = names.get(head, head if head == "__builtins__" else None)
    return None if known is None else f"{known}.{rest}" if rest else known


def _got(node: ast.expr) -> str | None:
    """The path of the module that an expression gets by its name: ``sys.modules[...]``, ``import_module(...)``."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=key):
            name: ast.expr = key
        case ast.Call(func=func, args=[key, *_]) if last_name(dotted_name(func) or "") == "import_module":
            name = key
        case _:
            return None
    if isinstance(name, ast.Constant):
        return str(name.value)
    return None if isinstance(name, ast.Name) and name.id == "__name__" else ANY_NAME


def _stored(node: ast.AST, names: Mapping[str, str]) -> Iterator[StoredName]:
    match node:
        case ast.Attribute(value=receiver, attr=name, ctx=ast.Store()):
            yield from _in(_path_of(receiver, names), name)
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Constant(value=str(text)), ctx=ast.Store()):
            owner, _, name = text.rpartition(".")
            yield StoredName(owner, name)
        case ast.Subscript(value=table, slice=key, ctx=ast.Store()):
            yield from _in(_table_of(table, names), _text_of(key))
        case ast.Assign(value=table) | ast.Return(value=table):
            yield from _in(_table_of(table, names), ANY_NAME)
        case ast.Call() if not _needs_name(node):
            yield from _stored_by(node, names)


def _in(path: str | None, *found: str) -> Iterator[StoredName]:
    if path is not None:
        yield from (StoredName(path, name) for name in found)


def _stored_by(call: ast.Call, names: Mapping[str, str]) -> Iterator[StoredName]:
    last = last_name(dotted_name(call.func) or "")
    for each in call.args:
        yield from _in(_table_of(each, names), ANY_NAME)
    if isinstance(call.func, ast.Attribute) and last not in _READING_TABLES:
        given = [*(each.arg or ANY_NAME for each in call.keywords), *(ANY_NAME for _ in call.args)]
        yield from _in(_table_of(call.func.value, names), *given)
    path = _path_of(call.args[0], names) if len(call.args) > 1 else None
    if path is not None:
        name = _text_of(call.args[1])
        yield from _in(path, *[name] * (_sets(call) if name == ANY_NAME else last not in _READING))
    elif call.args and _sets(call):
        owner, _, name = _text_of(call.args[0]).rpartition(".")  # ``"pkg.ops.scale"``
        yield StoredName(owner, name)


def _sets(call: ast.Call) -> bool:
    """Whether a call sets the attribute with a name that it gets."""
    path = (dotted_name(call.func) or "").split(".")
    return path[-1] in ("setattr", "__setattr__") or "patch" in path or replaces(call.func)


def _needs_name(call: ast.Call) -> bool:
    """Whether a call raises for a name that the module lacks, as by pytest and ``unittest.mock``."""
    path = (dotted_name(call.func) or "").split(".")
    told = any(each.arg in ("create", "raising", None) for each in call.keywords)
    return not told and ("patch" in path or (len(path) > 1 and path[-1] == "setattr"))


def _text_of(node: ast.expr) -> str:
    """The text of a string; any name for what is none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ANY_NAME


def _table_of(node: ast.expr | None, names: Mapping[str, str]) -> str | None:
    """The path of the module of whose names an expression is the dict: ``ops.__dict__``, ``vars(ops)``."""
    match node:
        case ast.Name(id="__builtins__"):
            return "__builtins__"
        case ast.Attribute(value=receiver, attr="__dict__") | ast.Call(func=ast.Name("vars"), args=[receiver]):
            return _path_of(receiver, names)
    return None


_READING = ("getattr", "hasattr")
_READING_TABLES = ("copy", "get", "items", "keys", "values")


def assigned_in(tree: ast.Module | None, module: str) -> frozenset[str]:
    """The names that a file may set in a module, whose own name has this last part, or in Python's builtins."""
    if tree is None:
        return frozenset({ANY_NAME})
    lasts = (module, ANY_NAME, "builtins", "__builtins__")
    return frozenset(each.name for each in stores_in(tree) if last_name(each.path) in lasts)


def may_set(tree: ast.Module | None, name: str) -> bool:
    """Whether a file may give a module of torch or NumPy a name that it lacks, or asks whether it has it."""
    if tree is None or any(each.name in (name, ANY_NAME) and _is_of_torch(each.path) for each in stores_in(tree)):
        return True
    return any(_asks(node, name, names) for node, names in _concerned(tree))


def _asks(node: ast.AST, name: str, names: Mapping[str, str]) -> bool:
    """Whether code asks whether torch or NumPy has a name, or may set it in another way."""
    match node:
        case ast.Attribute(value=receiver, attr="__dict__"):
            return _is_of_torch(_path_of(receiver, names))
        case ast.Call(func=ast.Name("hasattr" | "getattr" | "delattr"), args=[receiver, ast.Constant(value=key), *_]):
            return key == name and _is_of_torch(_path_of(receiver, names))
        case ast.Call(args=[ast.Constant(value=str(text))], keywords=given):
            return text.endswith(f".{name}") or (text in _MODULES and any(each.arg == name for each in given))
        case ast.Call(func=func, args=[receiver, key, *_]) if last_name(dotted_name(func) or "") == "setattr":
            is_it = isinstance(receiver, ast.Name) or _is_of_torch(_path_of(receiver, names))
            return is_it and _text_of(key) in (name, ANY_NAME)
        case ast.Call(args=given):  # what gets torch or NumPy itself may do anything with it
            return any(isinstance(each, ast.Name) and _path_of(each, names) in _MODULES for each in given)
        case ast.Constant(value=str(text)):
            return text.endswith(f".{name}") and _is_of_torch(text)
    return False


def _is_of_torch(path: str | None) -> bool:
    return path is not None and top_of(path) in _MODULES


_MODULES = ("torch", "numpy")


def may_set_any(data: bytes, module: str) -> bool:
    """Whether a file with these bytes may set some name of a module, or of Python's builtins."""
    if b"builtins" in data and any(_matches(data, name, _SETTING) for name in _names_of_builtins(data)):
        return True
    name = module.encode("utf-8", "surrogatepass")
    if name not in data:
        return False
    return any(each in data for each in _BY_NAME) or any(
        _matches(data, each, (*_SETTING, *_PASSING)) for each in (name, *_other_names(data, name))
    )


def set_by_name(data: bytes) -> frozenset[str] | None:
    """The names of Python's builtins that a file sets as attributes; None if it may set others, too."""
    names = _names_of_builtins(data)
    if any(_matches(data, name, _SETTING[1:]) for name in names):
        return None
    found = (each for name in names for each in _about(_SETTING[0], name).findall(data))
    return frozenset(each.decode("utf-8", "replace") for each in found)


def _names_of_builtins(data: bytes) -> tuple[bytes, ...]:
    return (b"builtins", b"__builtins__", *_other_names(data, b"builtins"))


def _other_names(data: bytes, module: bytes) -> list[bytes]:
    """The names under which a file imports a module."""
    return re.findall(rb"%b(?<=\b%b)\s+as\s+(\w+)" % (re.escape(module), re.escape(module)), data)


def _matches(data: bytes, name: bytes, patterns: Iterable[bytes]) -> bool:
    """Whether one of some patterns about a name matches. Each begins with fixed text, which ``re`` finds fast."""
    return name in data and any(re.search(_about(each, name), data) is not None for each in patterns)


@lru_cache(maxsize=64)
def _about(pattern: bytes, name: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern.replace(b"NAME", re.escape(name)))


_READ = rb"(?!\s*\.\s*(?:%b)\b)" % "|".join(_READING_TABLES).encode()
_SETTING = (
    rb"NAME(?<=\bNAME)\s*\.\s*(\w+)\s*[^\s\w()=]{0,3}=(?!=)",
    rb"NAME(?<=\bNAME)\s*(?:\.\s*__dict__\b%b|\[[^\]\n]*\]\s*[^\s\w()=]{0,3}=(?!=))" % _READ,
    rb"setattr(?<![.\w]setattr)\s*\(\s*[\w.]*\bNAME\s*,",
    rb"vars\s*\(\s*[\w.]*\bNAME\s*\)%b" % _READ,
)
"""How code sets a name of a module: as an attribute, or in another way."""
_PASSING = (rb"NAME\.\w+['\"]", rb"\(\s*[\w.]*\bNAME\s*,")
"""How code passes the module, or one of its names, to a function that may set the latter."""
_BY_NAME = (b"sys.modules", b"import_module")
