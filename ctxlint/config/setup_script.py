"""What a ``setup.py`` requires, as far as that is written there: it is parsed, never executed.

Supported are literals, their sums, variables, lists that are extended, functions that return them, f-strings and
``join``. A variable stands for everything that is ever assigned to it, and a function for everything that it may
return: each of these is a requirement in some environment.
"""

from __future__ import annotations

import ast
from collections import deque
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Strings = tuple[str, ...]

_LONGEST_SCRIPT = 200_000
"""A longer one, three times that of PyTorch, is ignored: parsing it takes memory."""
_MOST_STRINGS = 1_000
_LONGEST_STRING = 1_000
_MOST_STEPS = 300_000
_DEEPEST = 20
_GROWING = ("append", "extend", "add", "update")


class SetupArguments(NamedTuple):
    """The values of three arguments of ``setup``."""

    install_requires: Strings = ()
    extras_require: Strings = ()
    python_requires: Strings = ()


@lru_cache(maxsize=1)
def setup_arguments(text: str) -> SetupArguments:
    """The arguments in a script; empty for a text that cannot be parsed."""
    from ctxlint.source.ast_tree import tree_of

    tree = tree_of(text) if len(text) <= _LONGEST_SCRIPT else None
    if tree is None:
        return SetupArguments()
    script = _Script(tree)
    found = SetupArguments(*map(script.keyword, SetupArguments._fields))
    return found if script.steps_left > 0 else SetupArguments()


class _Script:
    """The values of expressions in one module. Names are not distinguished by scope.

    ``steps_left`` is the work left; once there is none, every expression is unknown.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.assigned: dict[str, list[ast.expr]] = {}
        self.setups: list[ast.Call] = []
        self._read(tree)
        self.steps_left = _MOST_STEPS
        self._known: dict[str, Strings] = {}
        self._entries: dict[tuple[str, str], Strings] = {}
        self._active: set[str] = set()

    def _read(self, tree: ast.Module) -> None:
        """Note every statement and call, and what each function returns."""
        todo: deque[tuple[ast.AST, str | None]] = deque([(tree, None)])
        while todo:
            node, function = todo.popleft()
            self._note(node)
            if isinstance(node, ast.FunctionDef):
                function = node.name
            elif isinstance(node, ast.Return) and node.value is not None and function is not None:
                self.assigned.setdefault(function, []).append(node.value)
            todo.extend((child, function) for child in ast.iter_child_nodes(node))

    def _note(self, node: ast.AST) -> None:
        """Record a call of ``setup``, and what a statement assigns or adds to a variable."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            self._assign(node.target, node.value)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "setup":
                self.setups.append(node)
            elif name in _GROWING and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
                self._assign(node.func.value, node.args[0])

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        while isinstance(target, ast.Subscript):  # an entry of a dictionary counts as part of the dictionary
            target = target.value
        if isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append(value)

    def keyword(self, name: str) -> Strings:
        """The values of a keyword in the calls of ``setup``, passed directly or by ``**`` of a dictionary."""
        return self._limited(string for call in self.setups for string in self._given(call.keywords, name))

    def _given(self, keywords: list[ast.keyword], name: str) -> Iterator[str]:
        for keyword in keywords:
            if keyword.arg == name:
                yield from self.strings(keyword.value)
            elif keyword.arg is None:
                yield from self._entry_of(keyword.value, name)

    def _entry_of(self, node: ast.expr, name: str) -> Iterable[str]:
        if not isinstance(node, ast.Name):
            return self._entry([node], name)
        key = (node.id, name)
        if key not in self._entries:
            self._entries[key] = self._limited(self._entry(self.assigned.get(node.id, []), name))
        return self._entries[key]

    def _entry(self, values: list[ast.expr], name: str) -> Iterator[str]:
        for value in values:
            if isinstance(value, ast.Dict):
                for key, entry in zip(value.keys, value.values):
                    if isinstance(key, ast.Constant) and key.value == name:
                        yield from self.strings(entry)
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
                yield from (
                    string
                    for keyword in value.keywords
                    if keyword.arg == name
                    for string in self.strings(keyword.value)
                )

    def strings(self, node: ast.expr | None, depth: int = 0) -> Strings:
        """Every string that an expression may be, or may contain; empty for unsupported expressions."""
        self.steps_left -= 1
        if node is None or depth > _DEEPEST or self.steps_left < 0:
            return ()
        return self._limited(self._strings(node, depth + 1))

    def _strings(self, node: ast.expr, depth: int) -> Iterable[str]:
        match node:
            case ast.Constant(value=str(text)):
                return text.splitlines() if "\n" in text else (text,)
            case ast.Name(id=name):
                return self._variable(name, depth)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return (string for each in elements for string in self.strings(each, depth))
            case ast.Dict(values=values):
                return (string for each in values for string in self.strings(each, depth))
            case ast.Starred(value=value) | ast.Subscript(value=value):
                return self.strings(value, depth)
            case ast.IfExp(body=body, orelse=other):
                return (*self.strings(body, depth), *self.strings(other, depth))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum(left, right, depth)
            case ast.JoinedStr(values=parts):
                return self._joined(parts, depth)
            case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "sorted" | "dict"), args=args, keywords=keywords):
                passed = (*args, *(each.value for each in keywords))
                return (string for each in passed for string in self.strings(each, depth))
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(between)), attr="join"), args=[parts]):
                return self._join(between, self.strings(parts, depth))
            case ast.Call(func=ast.Name(id=name)):
                return self._variable(name, depth)
        return ()

    def _variable(self, name: str, depth: int) -> Strings:
        if name in self._known:
            return self._known[name]
        if name in self._active:  # it is computed from itself
            return ()
        self._active.add(name)
        found = self._limited(string for each in self.assigned.get(name, ()) for string in self.strings(each, depth))
        self._active.discard(name)
        self._known[name] = found
        return found

    def _sum(self, left: ast.expr, right: ast.expr, depth: int) -> Iterable[str]:
        first, second = self.strings(left, depth), self.strings(right, depth)
        if self._is_text(left) and self._is_text(right):
            return (one + other for one in first for other in second)
        return (*first, *second)

    def _joined(self, parts: list[ast.expr], depth: int) -> Iterable[str]:
        texts: Strings = ("",)
        for part in parts:
            value = part.value if isinstance(part, ast.FormattedValue) else part
            values = self.strings(value, depth)
            texts = self._limited(text + each for text in texts for each in values)
        return texts

    def _join(self, between: str, parts: Strings) -> Strings:
        length = sum(map(len, parts)) + len(between) * (len(parts) - 1)
        return (between.join(parts),) if length <= _LONGEST_STRING else ()

    def _is_text(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is a string rather than a list of them, as far as the code shows."""
        match node:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.BinOp(left=left):
                return depth < _DEEPEST and self._is_text(left, depth + 1)
            case ast.Name(id=name) if depth < _DEEPEST:
                return any(self._is_text(each, depth + 1) for each in self.assigned.get(name, [])[:1])
        return False

    def _limited(self, strings: Iterable[str]) -> Strings:
        """The first strings, up to the limit for a project, that are short enough to be requirements."""
        found = list(islice(strings, max(min(_MOST_STRINGS, self.steps_left), 0)))
        self.steps_left -= len(found)
        return tuple(each for each in found if len(each) <= _LONGEST_STRING)
