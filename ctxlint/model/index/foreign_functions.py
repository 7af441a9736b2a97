"""Functions of other files, as one file refers to them, and the facts that it contributes about them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.model.index.outside_facts import NOTHING, FileFacts, NameAlias, OutsideFacts, Own, Target
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import Scope, dotted_name, meanings

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project


class Elsewhere:
    """Resolves expressions of one file to Functions of other files, and stores those found by their keys."""

    def __init__(self, unit: Unit, project: Project, outside: OutsideFacts) -> None:
        self.unit = unit
        self.project = project
        self.path = os.path.abspath(unit.path)
        self.targets: dict[str, Target] = {}
        self.names = frozenset(outside.names)
        self.attached = {(each.path, each.name): each.target for each in outside.aliases}
        self.resolves_all = False
        """Whether any name may be that of a Function, not only ``names``."""

    def in_file(self, unit: Unit) -> Elsewhere:
        """The same for a file that this one leads to."""
        other = Elsewhere(unit, self.project, NOTHING)
        other.attached, other.resolves_all = self.attached, True
        return other

    @property
    def depends_on(self) -> tuple[object, ...]:
        """What the results depend on, apart from the file: the files of the project are read once for each project."""
        return self.project, self.names, self.attached

    def function(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function that an expression certainly denotes: its key, or its qualified name if it is in this file."""
        return self._denoted(node, scope, through_apply=False)

    def constructed(self, node: ast.expr, scope: Scope) -> str | None:
        """Like ``function``, for callees: resolved only if the name is known to be that of a Function."""
        return self._denoted(node, scope, through_apply=False) if self._is_known(node, scope) else None

    def aliased(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function whose ``apply`` is called through another name, if the name is known to be one."""
        return self._denoted(node, scope, through_apply=True) if self._is_known(node, scope) else None

    def module(self, node: ast.expr, scope: Scope) -> str | None:
        """The path of the module that an expression certainly denotes."""
        path = dotted_name(node)
        found = self.project.module_denoted(self.unit, path, scope, node.lineno) if path is not None else None
        return found if found != self.path else None

    def functions_of_module(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        """The keys of the Functions of the module that an expression certainly denotes."""
        path = self.module(node, scope)
        unit = self.project.unit(path) if path is not None else None
        for name in unit.index.classes if unit is not None else ():
            if unit is not None and self.project.is_function(Definition(unit, name)):
                yield self.key_of(Target(os.path.abspath(unit.path), name))

    def _is_known(self, node: ast.expr, scope: Scope) -> bool:
        path = dotted_name(node) if self.names or self.resolves_all else None
        if path is None or self.resolves_all:
            return path is not None
        found = meanings(path, scope, node.lineno)
        return any(name is not None and name.rpartition(".")[2] in self.names for name in found)

    def _denoted(self, node: ast.expr, scope: Scope, *, through_apply: bool) -> str | None:
        path = dotted_name(node)
        if path is None:
            return None
        definition = self.project.denoted(self.unit, path, scope, node.lineno, self.attached)
        found = self.project.function_denoted(definition)
        if found is None or found[1] is not through_apply:
            return None
        return self.key_of(Target(os.path.abspath(found[0].unit.path), found[0].qualname))

    def bases(self, qualname: str) -> list[str]:
        """The base classes of a class of this file."""
        above = self.project.ancestry(Definition(self.unit, qualname))[1:]
        return [self.key_of(Target(os.path.abspath(each.unit.path), each.qualname)) for each in above]

    def external(self, name: str) -> str:
        """What a resolved name of this file denotes outside of the project, if other files of the project import it."""
        found = self.project.meaning(self.unit, name)
        return found if isinstance(found, str) else name

    def home(self, name: str) -> tuple[Unit, str] | None:
        """The file that binds an imported name, and the name there."""
        place = self.project.locate(self.unit, name) if self.project.load is not None else None
        other = self.project.unit(place.path) if place is not None else None
        if place is None or other is None or not place.rest:
            return None
        unit, dotted, _scope = self.project.bound(other, place.rest, other.index.module)
        return unit, dotted

    def target_of(self, key: str) -> Target:
        """The Function that this file refers to by a name."""
        return self.targets.get(key) or Target(self.path, key)

    def key_of(self, target: Target) -> str:
        """The name by which this file refers to a Function."""
        if target.path == self.path:
            return target.qualname
        self.targets[target.key] = target
        return target.key


# ---------------------------------------------------------------------------------------------------------------------
# The facts of a file


def facts_of(
    elsewhere: Elsewhere,
    functions: Iterable[Own],
    heirs: Iterable[str],
    calls: Iterable[ApplyCall],
    direct_calls: Mapping[str, set[str]],
    patched: Mapping[str, set[str]],
    applied: Iterable[str],
) -> FileFacts:
    """The facts of the file about Functions of other files, and how others may refer to its own ``functions``.

    ``heirs`` are all classes of the file that may descend from one of another file.
    """
    unit, targets = elsewhere.unit, elsewhere.targets
    aliases = tuple(sorted(set(_attached(elsewhere))))
    own = sorted(each for each in functions if not unit.index.classes[each.qualname].scope.is_in_function)
    return FileFacts(
        path=elsewhere.path,
        functions=tuple(own),
        names=tuple(sorted(set(_names(unit)))),
        stars=tuple(sorted({star.rpartition(".")[2] for star in unit.index.module.stars if star.strip(".")})),
        called=unit.index.called,
        aliases=aliases,
        calls=tuple((targets[call.function], call) for call in calls if call.function in targets),
        applied=tuple(sorted({targets[name] for name in applied if name in targets})),
        direct_calls=_by_target(direct_calls, targets),
        subclassed=tuple(sorted(set(_subclassed(elsewhere, heirs)))),
        patched=_by_target(patched, targets),
    )


def _by_target(methods: Mapping[str, set[str]], targets: Mapping[str, Target]) -> tuple[tuple[Target, str], ...]:
    """Some methods of Functions of other files, given those by the names of these Functions here."""
    return tuple(sorted((targets[name], each) for name in methods if name in targets for each in methods[name]))


def _names(unit: Unit) -> Iterator[tuple[str, str]]:
    """Each name bound by an import or to a dotted name, in the module or a class body, preceded by its target."""
    index = unit.index
    if _names not in index.of_classes:
        bodies = (record.body for record in index.classes.values())
        index.of_classes[_names] = frozenset(each for scope in (index.module, *bodies) for each in _bound_in(scope))
    yield from index.of_classes[_names]
    for _owner, attribute, node, _scope in index.attribute_aliases:
        value = dotted_name(node)
        if value is not None:
            yield _last(value), attribute


def _bound_in(scope: Scope) -> Iterator[tuple[str, str]]:
    for name, bounds in scope.names.items():
        for bound in bounds:
            value = dotted_name(bound.value) if bound.value is not None else None
            meant = bound.target if bound.kind == "import" else value
            if meant:
                yield _last(meant), name


def _last(dotted: str) -> str:
    """The last part of a name; for ``Softmax.apply``, the part before."""
    rest, _, last = dotted.rpartition(".")
    return rest.rpartition(".")[2] if last == "apply" and rest else last


def _attached(elsewhere: Elsewhere) -> Iterator[NameAlias]:
    """``ops.softmax = Softmax.apply``, where ``ops`` is another module and ``Softmax`` any Function."""
    for owner, attribute, value, scope in elsewhere.unit.index.attribute_aliases:
        module = elsewhere.module(owner, scope)
        key = elsewhere.function(value.value, scope) if module is not None else None
        if module is not None and key is not None:
            yield NameAlias(module, attribute, elsewhere.targets.get(key) or Target(elsewhere.path, key))


def _subclassed(elsewhere: Elsewhere, functions: Iterable[str]) -> Iterator[Target]:
    for qualname in functions:
        for above in elsewhere.project.ancestry(Definition(elsewhere.unit, qualname))[1:]:
            path = os.path.abspath(above.unit.path)
            if path != elsewhere.path:
                yield Target(path, above.qualname)
