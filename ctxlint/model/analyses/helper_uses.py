"""How functions of the project use what a method passes to them, as evidence that an input is not a tensor.

Only uses that no tensor allows count, and only if no other use in the same function suggests a tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.input_uses import Uses
from ctxlint.model.function import Evidence, Param, ParameterKind, Trust
from ctxlint.model.index.scopes import Scope, resolve_certainly
from ctxlint.model.interpreter.local_names import times_bound
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.syntax import children, dotted
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition, Project
    from ctxlint.model.interpreter.method import Method

    Find = Callable[[Unit, str], Definition | None]
    """Finds the project function that a resolved name of a file certainly denotes."""

_MOST_LEVELS = 6
"""Functions that call others are followed this far."""

_DECORATORS = ("builtins.staticmethod", "torch.no_grad", "torch.compiler.disable", "torch.jit.script", "torch.compile")
"""Decorators that leave the parameters as they are."""


class Code(NamedTuple):
    """Where code is: its file, the scope that resolves its names, and how the functions are found that it calls."""

    project: Project
    unit: Unit
    scope: Scope
    find: Find


class _Helper(NamedTuple):
    """The positional parameters of a function, and why the values of some parameters are not tensors.

    Each reason comes with whether it shows that the value is a container.
    """

    params: tuple[str, ...]
    reasons: Mapping[str, tuple[str, bool]]


class HelperUses(Uses):
    """Uses that follow names into the project functions that they are passed to."""

    def __init__(self, names: Iterable[str], code: Code, levels: int = 0) -> None:
        """Watch ``names`` in some code, ``levels`` calls below the method."""
        super().__init__(names, lambda node: resolve_certainly(dotted(node) or "", code.scope))
        self.code = code
        self.levels = levels

    def function(self, node: cst.Call, callee: str) -> None:
        """A call of something with a known name."""
        super().function(node, callee)
        if callee.startswith(_NOT_OF_PROJECTS) or self.levels >= _MOST_LEVELS:
            return
        helper = self._helper(node, callee) if any(map(self._is_open, node.args)) else None
        if helper is None:
            return
        for at, argument in enumerate(node.args):
            if argument.keyword is not None:
                name = argument.keyword.value
            else:
                name = helper.params[at] if at < len(helper.params) else ""
            reason, container = helper.reasons.get(name, ("", False))
            if reason and self._is_open(argument) and (self.certain or not container):
                self.add(argument.value, False, Trust.STRONG, reason, container=container)

    def _is_open(self, argument: cst.Arg) -> bool:
        """Whether an argument is one of the names, and nothing decides yet whether it is a tensor."""
        name = self.known(argument.value)
        return name is not None and not any(each.trust is Trust.STRONG for each in self.evidence[name])

    def _helper(self, node: cst.Call, callee: str) -> _Helper | None:
        definition = self.code.find(self.code.unit, callee)
        if definition is None or any(each.star for each in node.args):
            return None
        unit, project, levels = definition.unit, self.code.project, self.levels + 1
        key = ("uses", definition.qualname, levels)
        return project.once(key, lambda: _uses_in(definition, self.code, levels), unit.summaries)


def _uses_in(definition: Definition, caller: Code, levels: int) -> _Helper | None:
    """How a function uses its parameters; None if that is unknown."""
    unit, record = definition.unit, definition.unit.index.functions[definition.qualname]
    if unit.is_stub or not record.certain or record.alternatives:
        return None
    node = unit.slices.find_bare_function(definition.qualname)
    if node is None or not all(_keeps_parameters(each, record.scope) for each in node.decorators):
        return None
    scope = Scope("function", definition.qualname, record.scope)
    params = params_of(node, scope)
    watched = [each.name for each in params if each.kind in _PLAIN_KINDS]
    uses = HelperUses(watched, caller._replace(unit=unit, scope=scope), levels)
    try:
        uses.walk(node.body)
    except RecursionError:
        return None
    reasons = {param.name: reason for param in params for reason in _not_a_tensor(param, uses, definition.name)}
    positional = tuple(each.name for each in params if each.kind is ParameterKind.POSITIONAL)
    return _Helper(positional, reasons)


def _keeps_parameters(decorator: cst.Decorator, scope: Scope) -> bool:
    expression = decorator.decorator
    called = expression.func if isinstance(expression, cst.Call) else expression
    return resolve_certainly(dotted(called) or "", scope) in _DECORATORS


def _not_a_tensor(param: Param, uses: Uses, function: str) -> Iterator[tuple[str, bool]]:
    """Why a parameter is not a tensor; at most one reason."""
    if param.name in uses.evidence and param.annotation not in types.TENSOR_ANNOTATIONS:
        for each in _against(uses, param.name)[:1]:
            yield each.reason if " in `" in each.reason else f"{each.reason} in `{function}`", each.container


def used_by_functions(forward: Method, names: AbstractSet[str], code: Code) -> list[tuple[str, Evidence]]:
    """How the functions that forward calls use inputs, if no tensor allows that."""
    uses = HelperUses(names, code)
    uses.walk(forward.node.body)
    return [(name, each) for name in sorted(names) for each in _against(uses, name)]


def used_in_backward(
    forward: Method, backward: Method, names: AbstractSet[str], code: Code
) -> list[tuple[str, Evidence]]:
    """How backward uses the inputs that forward keeps on ctx, if no tensor allows that."""
    kept = _kept_on_ctx(forward, names)
    if not kept or backward.ctx is None:
        return []
    paths = {f"{backward.ctx.name}.{attribute}": name for attribute, name in kept.items()}
    uses = HelperUses(paths, code)
    uses.walk(backward.node.body)
    return [(name, each) for path, name in paths.items() for each in _against(uses, path)]


def _against(uses: Uses, name: str) -> list[Evidence]:
    """The strong evidence that a name is not a tensor, if none suggests that it is one."""
    found = uses.evidence[name]
    return [] if any(each.tensor for each in found) else [each for each in found if each.trust is Trust.STRONG]


def _kept_on_ctx(forward: Method, wanted: AbstractSet[str]) -> dict[str, str]:
    """``ctx.a = b`` of an input that forward does not bind again: ``a`` and ``b``; not an attribute set twice."""
    stores = list(_stores_on(forward, forward.node.body))
    times = times_bound(forward.node.body)
    names = [attribute for attribute, _value in stores]
    return {
        attribute: value.value
        for attribute, value in stores
        if isinstance(value, cst.Name) and value.value in wanted and not times[value.value]
        if names.count(attribute) == 1
    }


def _stores_on(forward: Method, node: cst.CSTNode) -> Iterator[tuple[str, cst.BaseExpression | None]]:
    """The attributes of ctx that statements set, with their values."""
    if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
        for target in targets:
            for each in target.elements if isinstance(target, (cst.Tuple, cst.List)) else (target,):
                attribute = each.value if isinstance(each, cst.Element) else each
                if forward.is_on_ctx(attribute):
                    yield attribute.attr.value, node.value if attribute in targets else None
    elif not isinstance(node, (cst.BaseExpression, cst.FunctionDef, cst.ClassDef)):
        for child in children(node):
            yield from _stores_on(forward, child)


_NOT_OF_PROJECTS = ("torch.", "builtins.", "math.", "numpy.", "triton.")
_PLAIN_KINDS = (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)
