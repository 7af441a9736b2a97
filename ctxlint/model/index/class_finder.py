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
        for name in _BLOCKS:
            block = getattr(node, name, None)
            for each in block if isinstance(block, (tuple, list)) else (block,):
                if type(each) in _HOLD_STATEMENTS:
                    self.add(each)


_HOLD_STATEMENTS = frozenset(
    {
        cst.Module,
        cst.ClassDef,
        cst.FunctionDef,
        cst.IndentedBlock,
        cst.If,
        cst.Else,
        cst.For,
        cst.While,
        cst.With,
        cst.Try,
        cst.TryStar,
        cst.ExceptHandler,
        cst.ExceptStarHandler,
        cst.Finally,
        cst.Match,
        cst.MatchCase,
    }
)


_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


def conditional_methods(class_node: cst.ClassDef) -> frozenset[str]:
    """The names of the methods under an ``if`` or ``try`` of the class body."""
    always = {id(statement) for statement in class_node.body.body}
    return frozenset(node.name.value for node in members(class_node)[0] if id(node) not in always)


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
