"""What the result of a method or function is computed from by differentiable operations, also in functions it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.double_backward import differentiated_in
from ctxlint.model.analyses.helper_places import present, walk_alone
from ctxlint.model.analyses.input_uses import Uses
from ctxlint.model.function import ParameterKind
from ctxlint.model.index.scopes import Scope, resolve_certainly
from ctxlint.model.interpreter.events import Assigned, GenericCall, MethodCall, Mutation, Return
from ctxlint.model.interpreter.values import Item, Variadic
from ctxlint.model.syntax import dotted, literal_integer, single_index
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts, Param


class Part(NamedTuple):
    """An expression, or one element of the tuple that it yields."""

    node: cst.BaseExpression
    position: int | None = None


class Flow:
    """The names, and elements ``args[0]``, that parts of a body are differentiable in, on some path.

    ``tensors`` are those that functions of the project use as tensors.
    """

    def __init__(self, facts: MethodFacts, home: Definition | None = None) -> None:
        self.tensors: set[str] = set()
        self.bound: dict[str, list[Part]] = {}
        self.filled: dict[str, list[Part]] = {}
        """What is written into the memory of a name, or added to it."""
        self.elements: dict[str, str] = {}
        """The names that an element of ``*args`` is unpacked into, with that element."""
        for each in facts.of(Assigned):
            self._bind(each)
        for write in facts.of(Mutation):
            if write.name is not None and not write.by:
                self.filled.setdefault(write.name, []).extend(map(Part, _written(write)))
        self._home = home
        self._called: dict[cst.CSTNode, Definition] = {}
        calls: list[GenericCall | MethodCall] = [*facts.of(GenericCall), *facts.of(MethodCall)]
        for call in calls if home is not None else ():
            if call.definition is not None:
                self._called[call.node] = call.definition
        self._known: dict[Definition, _Helper | None] = {}

    def _bind(self, each: Assigned) -> None:
        if each.value_node is not None:
            self.bound.setdefault(each.name, []).append(Part(each.value_node))
        elif isinstance(each.statement, cst.Assign):
            position = _position(each.statement, each.name)
            if position is not None:
                self.bound.setdefault(each.name, []).append(Part(each.statement.value, position))
        elif isinstance(each.statement, cst.AugAssign) and isinstance(each.statement.operator, _ADDING):
            self.bound.setdefault(each.name, []).append(Part(each.statement.value))
        if isinstance(each.value, Item) and isinstance(each.value.of, Variadic) and isinstance(each.value.key, int):
            self.elements[each.name] = f"{each.value.of.name}[{each.value.key}]"

    def reached(self, parts: Iterable[Part]) -> set[str]:
        """The names and elements that some parts are differentiable in."""
        found: set[str] = set()
        todo = list(parts)
        while todo:
            spend()
            node, position = todo.pop()
            if isinstance(node, cst.Name):
                if node.value not in found:
                    found.add(node.value)
                    found.update([self.elements[node.value]] if node.value in self.elements else [])
                    todo += [*self.bound.get(node.value, ()), *self.filled.get(node.value, ())]
            elif isinstance(node, cst.Call) and node in self._called:
                passed, elements = self._passed(node, position)
                found |= elements
                todo += map(Part, passed)
            elif position is None:
                found.update(_element(node))
                todo += map(Part, differentiated_in(node))
            elif isinstance(node, (cst.Tuple, cst.List)) and position < len(node.elements):
                todo.append(Part(node.elements[position].value))
        return found

    def _passed(self, call: cst.Call, position: int | None) -> tuple[list[cst.BaseExpression], set[str]]:
        """The arguments that the result of a project function is differentiable in, and elements of ``*args``."""
        definition = self._called[call]
        if definition not in self._known:
            self._known[definition] = _helper(present(definition, self._home) if self._home else definition)
        helper = self._known[definition]
        if helper is None:
            return [], set()
        reached = helper.reached.get(position, frozenset())
        found, elements = list[cst.BaseExpression](), set[str]()
        for name, node, element in _bound_arguments(helper, call):
            if name in helper.tensors:
                self.tensors.update([element] if element else [node.value] if isinstance(node, cst.Name) else [])
            if name in reached:
                elements.update([element] if element else [])
                found += [] if element else [node]
        return found, elements


class _Helper(NamedTuple):
    """The positional parameters of a function, what parts of its result are differentiable in, and its tensors."""

    params: tuple[str, ...]
    reached: dict[int | None, frozenset[str]]
    tensors: frozenset[str]


def _helper(definition: Definition) -> _Helper | None:
    """What is known of a function; None if it may return something else than what its body shows."""
    unit, qualname = definition.unit, definition.qualname
    record = unit.index.functions.get(qualname)
    if record is None or not record.certain or record.alternatives or unit.is_stub:
        return None
    walked = walk_alone(unit, qualname, frozenset([Assigned, Mutation, Return]))
    if walked is None or walked.facts.is_generator:
        return None
    flow = Flow(walked.facts)
    results = [each.node.value for each in walked.facts.of(Return) if isinstance(each.node, cst.Return)]
    reached: dict[int | None, frozenset[str]] = {}
    for node in results:
        parts: list[tuple[int | None, Part]] = []
        if isinstance(node, cst.Tuple):
            parts = [(at, Part(each.value)) for at, each in enumerate(node.elements)]
        elif node is not None:
            parts = [(None, Part(node))]
        for position, part in parts:
            reached[position] = reached.get(position, frozenset()) | flow.reached([part])
    scope = Scope("function", qualname, record.scope)
    names = tuple(each.name for each in walked.params if each.kind is ParameterKind.POSITIONAL)
    return _Helper(names, reached, frozenset(_tensors(walked.node, walked.params, scope)))


def _tensors(node: cst.FunctionDef, params: tuple[Param, ...], scope: Scope) -> Iterator[str]:
    """The parameters that a function uses as a tensor, and as nothing else."""
    uses = Uses([each.name for each in params], lambda called: resolve_certainly(dotted(called) or "", scope))
    uses.walk(node.body)
    for name, found in uses.evidence.items():
        if found and all(each.tensor for each in found):
            yield name


def _bound_arguments(helper: _Helper, call: cst.Call) -> Iterator[tuple[str, cst.BaseExpression, str]]:
    """The parameters of a call, each with its argument, or with the element of a starred one."""
    at = 0
    for each in call.args:
        if each.keyword is not None:
            yield each.keyword.value, each.value, ""
        elif each.star == "*":
            for element, name in enumerate(helper.params[at:]):
                yield name, each.value, f"{dotted(each.value)}[{element}]"
            return
        elif not each.star and at < len(helper.params):
            yield helper.params[at], each.value, ""
            at += 1


def _position(statement: cst.Assign, name: str) -> int | None:
    """The position at which a statement unpacks its value into a name, and nothing else."""
    target = statement.targets[0].target
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) and len(statement.targets) == 1 else ()
    if any(not isinstance(each.value, cst.Name) or isinstance(each, cst.StarredElement) for each in elements):
        return None
    return next((at for at, each in enumerate(elements) if cst.ensure_type(each.value, cst.Name).value == name), None)


def _written(write: Mutation) -> list[cst.BaseExpression]:
    """What a write into memory puts there, or adds: ``out[i] = x``, ``out.copy_(x)``, ``torch.mm(a, b, out=out)``."""
    node, line = write.node, write.statement
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if isinstance(node, cst.Call):
        if write.how == "out=":
            return [node]
        alone = isinstance(only, cst.Expr) and only.value is node  # not `out.mul_(x).round_()`
        plain = [each.value for each in node.args if each.keyword is None and not each.star]
        return plain if alone and write.how in _PUTTING else []
    if isinstance(only, cst.AugAssign):
        return [only.value] if isinstance(only.operator, _ADDING) else []
    return [only.value] if isinstance(only, cst.Assign) and only.targets[0].target is node else []


_PUTTING = ("add_", "copy_", "div_", "mul_", "sub_")


def _element(node: cst.BaseExpression) -> list[str]:
    """``args[0]`` if it is that."""
    index = single_index(node) if isinstance(node, cst.Subscript) else None
    number = literal_integer(index) if isinstance(index, cst.Integer) else None
    name = node.value.value if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) else None
    return [f"{name}[{number}]"] if name is not None and number is not None and number >= 0 else []


_ADDING = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign, cst.MatrixMultiplyAssign)
