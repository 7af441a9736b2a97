"""Replacing ``custom_fwd`` and ``custom_bwd`` of ``torch.cuda.amp`` by those of ``torch.amp``, with imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.class_layout import layout_of, layout_of_import
from ctxlint.fixes.imported_names import keep_only, local_name, released
from ctxlint.fixes.module_code import module_code
from ctxlint.model.syntax import dotted
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.fixes.module_code import ModuleCode
    from ctxlint.model.function import Decorator, FunctionClass, Method
    from ctxlint.source.source import Position, Source

_OLD_MODULES = ("torch.cuda.amp", "torch.cuda.amp.autocast_mode")
_MOVED = ("custom_fwd", "custom_bwd")
_DEVICE = 'device_type="cuda"'


def use_torch_amp(fn: FunctionClass, method: Method, decorator: Decorator, applicability: Applicability) -> Fix | None:
    """Write the decorator of ``torch.amp``, and import it where the old one was imported.

    If the old name has other uses, here or in a file that imports it from here, its import stays and the new one is
    written ``torch.amp.…``. None if neither is possible: no plain ``import torch``, a conditional import, a name that
    the module rebinds.
    """
    expression = decorator.node.decorator
    path = dotted(expression.func if isinstance(expression, cst.Call) else expression)
    if path is None or decorator.name is None or layout_of(fn, method, head=True) is None:
        return None
    code = module_code(fn)
    if code is None:
        return None
    file = _File(code)
    new = decorator.name.rpartition(".")[2]
    edits: list[Edit] | None = None
    if "." in path:
        edits = file.spelled_out(fn.span(expression).start, new)
    elif file.import_of(path) is not None:
        edits = file.moved(path, fn.taken_names) or file.spelled_out(fn.span(expression).start, new)
    if not edits:
        return None
    return Fix(f"Use `torch.amp.{new}`", tuple(edits), applicability, releases=released(fn, path.partition(".")[0]))


@record
class _File:
    code: ModuleCode

    @property
    def source(self) -> Source:
        return self.code.source

    @property
    def module(self) -> ast.Module:
        return self.code.module

    def import_of(self, name: str) -> ast.ImportFrom | None:
        """The only statement that binds ``name``, if it imports it from the old module at the top of the file."""
        key = (ast.ImportFrom, name)
        if key not in self.code.notes:
            self.code.notes[key] = self._import_of(name)
        found: ast.ImportFrom | None = self.code.notes[key]
        return found

    def _import_of(self, name: str) -> ast.ImportFrom | None:
        found = [
            statement
            for statement in self.module.body
            if isinstance(statement, ast.ImportFrom)
            and statement.level == 0
            and statement.module in _OLD_MODULES
            and any((alias.asname or alias.name) == name and alias.name in _MOVED for alias in statement.names)
        ]
        return found[0] if len(found) == 1 and self.code.times_bound(name) == 1 else None

    def spelled_out(self, start: Position, new: str) -> list[Edit] | None:
        """``torch.amp.custom_fwd(...)`` in place of the decorator that starts there."""
        if not self.code.means_package("torch"):
            return None
        offset = self.source.offset(start)
        for node in self.code.names.decorators:
            named = node.func if isinstance(node, ast.Call) else node
            if self.code.start(named) == offset:
                with_device = self._with_device(node)
                return (
                    None
                    if with_device is None
                    else [Edit(offset, self.code.end(named), f"torch.amp.{new}"), *with_device]
                )
        return None

    def moved(self, name: str, taken: frozenset[str]) -> list[Edit] | None:
        """The edits of the import of ``name`` and its pair, and of every decorator that uses them.

        Names that other files have ``taken`` from this one stay what they are.
        """
        key = (_File, name, taken)
        if key not in self.code.notes:
            self.code.notes[key] = self._moved(name, taken)
        edits: list[Edit] | None = self.code.notes[key]
        return edits

    def _moved(self, name: str, taken: frozenset[str]) -> list[Edit] | None:
        statement = self.import_of(name)
        if statement is None:
            return None
        local = {alias.asname or alias.name: alias.name for alias in statement.names if alias.name in _MOVED}
        edits: list[Edit] = []
        moving = []
        for each in (name for name in local if name not in taken):
            changed = self._decorators_called(each) if self.import_of(each) is statement else None
            if changed is not None:
                moving.append(each)
                edits += changed
        if name not in moving:
            return None
        imported = self._import_moved(statement, moving)
        return None if imported is None else [*imported, *edits]

    # The decorators

    def _decorators_called(self, name: str) -> list[Edit] | None:
        """The device for every decorator of that name; None if the name has other uses."""
        edits: list[Edit] = []
        changed = 0
        for node in self.code.names.decorators:
            named = node.func if isinstance(node, ast.Call) else node
            if isinstance(named, ast.Name) and named.id == name:
                with_device = self._with_device(node)
                if with_device is None:
                    return None
                edits += with_device
                changed += 1
        names = self.code.names
        return edits if changed == names.read[name] and name not in names.texts else None

    def _with_device(self, decorator: ast.expr) -> list[Edit] | None:
        """The edits that add the device to a decorator; None if it has incompatible arguments."""
        if not isinstance(decorator, ast.Call):
            end = self.code.end(decorator)
            return [Edit(end, end, f"({_DEVICE})")]
        if decorator.args or any(keyword.arg is None for keyword in decorator.keywords):
            return None
        if any(keyword.arg == "device_type" for keyword in decorator.keywords):
            return []
        opening = self.source.text.index("(", self.code.end(decorator.func)) + 1
        if not decorator.keywords:
            return [Edit(opening, opening, _DEVICE)]
        first = self.code.start(decorator.keywords[0])
        before = self.source.text[:first].rpartition("\n")[2]
        own_line = before.isspace()
        return [Edit(first, first, f"{_DEVICE},\n{before}" if own_line else f"{_DEVICE}, ")]

    # The import

    def _import_moved(self, statement: ast.ImportFrom, names: list[str]) -> list[Edit] | None:
        """The edits that import some names from ``torch.amp`` and leave the others unchanged."""
        found = layout_of_import(self.source, statement)
        if found is None:
            return None
        layout, node, aliases = found
        staying = [alias for alias in aliases if local_name(alias) not in names]
        if node.module is None:
            return None
        if not staying:
            return [layout.replace(node.module, "torch.amp")]
        moved = ", ".join(layout.code(alias).rstrip(" ,") for alias in aliases if local_name(alias) in names)
        start = layout.line_start(layout.start(node))
        edits = [Edit(start, start, f"from torch.amp import {moved}\n"), *keep_only(layout, aliases, staying)]
        lost = any("#" in self.source.text[edit.start : edit.end] for edit in edits)
        return None if lost else edits
