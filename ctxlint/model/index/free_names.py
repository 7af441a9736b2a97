"""Names that classes read and that nothing in their file binds, and files that set such names for another one."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.named_patches import replaces
from ctxlint.model.index.python_names import is_always_bound
from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import bound_names, nodes_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from ctxlint.model.index.file_index import ClassRecord, FileIndex


def free_names(index: FileIndex, classes: Iterable[str]) -> frozenset[str]:
    """The names that some classes of a file read, and that neither they nor the module nor Python binds."""
    read = (
        _free_in(index, record) - record.scope.function_locals() for record in map(index.classes.__getitem__, classes)
    )
    return frozenset(each for names in read for each in names if each not in index.module.names)


def _free_in(index: FileIndex, record: ClassRecord) -> frozenset[str]:
    """The names that a class reads and does not bind; known as long as its code is the same."""
    part = index.parts[record.statement] if index.parts else index
    known: dict[str, frozenset[str]] = part.notes.setdefault(free_names, {})
    if record.qualname not in known:
        nodes = nodes_in(record.node)
        read = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        params = (each.arg for each in nodes if isinstance(each, ast.arg))
        free = read.difference(bound_names(nodes), params)
        known[record.qualname] = frozenset(each for each in free if not is_always_bound(each))
    return known[record.qualname]


ANY_NAME = "*"


def assigned_in(tree: ast.Module | None, module: str) -> frozenset[str]:
    """The names that a file may set in a module, whose own name has this last part, or in Python's builtins."""
    if tree is None:
        return frozenset({ANY_NAME})
    nodes = nodes_in(tree)
    modules = {"__builtins__", *_names_of_modules(nodes, (module, "builtins"))}
    return frozenset(name for node in nodes for name in _assigned(node, modules, module))


def _names_of_modules(nodes: Sequence[ast.AST], lasts: Container[str]) -> Iterator[str]:
    """The dotted names that a file has for modules whose names have one of some last parts.

    A parameter or variable with such a name is something else.
    """
    roots: set[str] = set()
    for node in nodes:
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (each.asname or each.name for each in aliases if last_name(each.name) in lasts)
                roots.update((each.asname or each.name).partition(".")[0] for each in aliases)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_got(value, lasts):
                yield name
    for node in nodes:  # ``import pkg`` is enough for ``pkg.ops`` if something else imports the latter
        if isinstance(node, ast.Attribute) and node.attr in lasts:
            path = dotted_name(node) or ""
            if path.partition(".")[0] in roots:
                yield path


def _is_got(node: ast.expr, lasts: Container[str]) -> bool:
    """Whether an expression may get a module by its name: ``sys.modules[...]``, ``import_module(...)``."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=key):
            name: ast.expr = key
        case ast.Call(func=func, args=[key, *_]) if last_name(dotted_name(func) or "") == "import_module":
            name = key
        case _:
            return False
    if isinstance(name, ast.Constant):
        return last_name(str(name.value)) in lasts
    return not (isinstance(name, ast.Name) and name.id == "__name__")


def _assigned(node: ast.AST, modules: set[str], module: str) -> Iterator[str]:
    match node:
        case ast.Attribute(value=receiver, attr=name, ctx=ast.Store()) if _is_among(modules, receiver, module):
            yield name
        case ast.Subscript(value=names, slice=key, ctx=ast.Store()) if _is_dict_of(modules, names, module):
            yield _text_of(key)
        case ast.Subscript(value=ast.Name("__builtins__"), slice=key, ctx=ast.Store()):  # a dict in what is imported
            yield _text_of(key)
        case ast.Assign(value=names) | ast.Return(value=names) if _is_dict_of(modules, names, module):
            yield ANY_NAME
        case ast.Call() if not _needs_name(node):
            yield from _assigned_by(node, modules, module)


def _assigned_by(call: ast.Call, modules: set[str], module: str) -> Iterator[str]:
    of_dict = isinstance(call.func, ast.Attribute) and _is_dict_of(modules, call.func.value, module)
    if any(_is_dict_of(modules, each, module) for each in call.args):
        yield ANY_NAME
    elif of_dict and last_name(dotted_name(call.func) or "") not in _READING_DICTS:
        yield from (each.arg or ANY_NAME for each in call.keywords)
        yield from (ANY_NAME for _ in call.args)
    elif len(call.args) > 1 and _is_among(modules, call.args[0], module):
        name = _text_of(call.args[1])
        if _sets(call) if name == ANY_NAME else last_name(dotted_name(call.func) or "") not in _READING:
            yield name
    elif call.args and _sets(call):
        owner, _, name = _text_of(call.args[0]).rpartition(".")  # ``"pkg.ops.scale"``
        if f".{owner}".endswith(f".{module}"):
            yield name


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


def _is_dict_of(modules: set[str], node: ast.expr | None, module: str) -> bool:
    """Whether an expression is the dict of the names of a module: ``ops.__dict__``, ``vars(ops)``."""
    match node:
        case ast.Attribute(value=receiver, attr="__dict__") | ast.Call(func=ast.Name("vars"), args=[receiver]):
            return _is_among(modules, receiver, module)
    return False


_READING = ("getattr", "hasattr")
_READING_DICTS = ("copy", "get", "items", "keys", "values")


def _is_among(modules: set[str], node: ast.expr, module: str) -> bool:
    """Whether an expression is a name of one of some modules, or gets the module by its own name."""
    return dotted_name(node) in modules or _is_got(node, (module, "builtins"))


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


_READ = rb"(?!\s*\.\s*(?:%b)\b)" % "|".join(_READING_DICTS).encode()
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
