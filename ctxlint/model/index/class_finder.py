"""The classes and functions of a statement, and the contents of class bodies."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst


@dataclass
class Definitions:
    """The class and function statements of a slice in source order, nested ones included."""

    classes: list[cst.ClassDef] = field(default_factory=list)
    functions: list[cst.FunctionDef] = field(default_factory=list)

    def add(self, node: cst.CSTNode) -> None:
        """Record a definition, and those in the blocks below a node."""
        if isinstance(node, cst.ClassDef):
            self.classes.append(node)
        elif isinstance(node, cst.FunctionDef):
            self.functions.append(node)
        for name in _BLOCKS.get(type(node), ()):
            block = getattr(node, name)
            for each in block if isinstance(block, (tuple, list)) else (block,):
                if type(each) in _BLOCKS:
                    self.add(each)


_BODY = ("body",)
_LOOP = ("body", "orelse")
_TRY = ("body", "handlers", "orelse", "finalbody")

_BLOCKS = {
    cst.Module: _BODY,
    cst.ClassDef: _BODY,
    cst.FunctionDef: _BODY,
    cst.IndentedBlock: _BODY,
    cst.If: _LOOP,
    cst.Else: _BODY,
    cst.For: _LOOP,
    cst.While: _LOOP,
    cst.With: _BODY,
    cst.Try: _TRY,
    cst.TryStar: _TRY,
    cst.ExceptHandler: _BODY,
    cst.ExceptStarHandler: _BODY,
    cst.Finally: _BODY,
    cst.Match: ("cases",),
    cst.MatchCase: _BODY,
}
"""The fields that hold statements, by the type of the node."""


def conditional_methods(class_node: cst.ClassDef) -> frozenset[str]:
    """The names of the methods under an ``if`` or ``try`` of the class body."""
    always = {id(statement) for statement in class_node.body.body}
    return frozenset(node.name.value for node in members(class_node)[0] if id(node) not in always)


def differ_only_in_code(class_node: cst.ClassDef, names: frozenset[str]) -> bool:
    """Whether each of these methods that an ``if`` defines has the same signature in all arms, one of which runs."""
    for name in conditional_methods(class_node) & names:
        choices = [each for each in class_node.body.body if isinstance(each, cst.If) and _arms_with(each, name)]
        found = [each for each in members(class_node)[0] if each.name.value == name]
        arms = _arms_with(choices[0], name) if len(choices) == 1 else []
        if not arms or len(arms) != len(found) or not all(_are_alike(each, arms[0]) for each in arms):
            return False
    return True


def _arms_with(choice: cst.If, name: str) -> list[cst.FunctionDef]:
    """The definition of a method in each arm of an ``if`` with ``else``; empty if an arm has none, or several."""
    arms: list[cst.BaseSuite] = []
    at: cst.If | cst.Else | None = choice
    while at is not None:
        arms.append(at.body)
        at = at.orelse if isinstance(at, cst.If) else None
    inside = [
        [each for each in arm.body if isinstance(each, cst.FunctionDef) and each.name.value == name] for arm in arms
    ]
    complete = len(arms) > 1 and all(len(each) == 1 for each in inside)
    return [each for arm in inside for each in arm] if complete else []


def _are_alike(one: cst.FunctionDef, other: cst.FunctionDef) -> bool:
    """Whether two methods have the same parameters and decorators."""
    decorators = (one.decorators, other.decorators)
    return (
        one.params.deep_equals(other.params)
        and len(one.decorators) == len(other.decorators)
        and all(a.decorator.deep_equals(b.decorator) for a, b in zip(*decorators))
    )


def members(class_node: cst.ClassDef) -> tuple[list[cst.FunctionDef], list[tuple[str, cst.BaseExpression]]]:
    """The methods and plain assignments of a class body, including those under ``if`` and ``try``, in source order."""
    methods: list[cst.FunctionDef] = []
    assignments: list[tuple[str, cst.BaseExpression]] = []
    _members_of(class_node.body, methods, assignments)
    return methods, assignments


def _members_of(
    suite: cst.BaseSuite, methods: list[cst.FunctionDef], assignments: list[tuple[str, cst.BaseExpression]]
) -> None:
    for statement in suite.body:
        if isinstance(statement, cst.FunctionDef):
            methods.append(statement)
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                _assignment(small, assignments)
        elif isinstance(statement, cst.BaseSmallStatement):
            _assignment(statement, assignments)
        elif isinstance(statement, (cst.If, cst.Else, cst.Try, cst.With)):
            _members_of(statement.body, methods, assignments)
            rest = getattr(statement, "orelse", None)
            while rest is not None:
                _members_of(rest.body, methods, assignments)
                rest = getattr(rest, "orelse", None)
            for handler in getattr(statement, "handlers", ()):
                _members_of(handler.body, methods, assignments)


def _assignment(small: cst.CSTNode, assignments: list[tuple[str, cst.BaseExpression]]) -> None:
    if isinstance(small, cst.Assign):
        names = [target.target.value for target in small.targets if isinstance(target.target, cst.Name)]
        assignments.extend((name, small.value) for name in names)
    elif isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name) and small.value is not None:
        assignments.append((small.target.value, small.value))
