"""The LibCST visitor that finds the classes of a slice, and what their bodies hold."""

from __future__ import annotations

import libcst as cst


class ClassFinder(cst.CSTVisitor):
    """Collects the class statements of a slice in source order, nested ones included.

    Expressions hold no classes, so the walk stops at simple statements.
    """

    def __init__(self) -> None:
        super().__init__()
        self.classes: list[cst.ClassDef] = []
        self.functions: list[cst.FunctionDef] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.classes.append(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.append(node)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False

    def visit_SimpleStatementSuite(self, node: cst.SimpleStatementSuite) -> bool:
        return False

    def visit_Parameters(self, node: cst.Parameters) -> bool:
        return False

    def visit_Decorator(self, node: cst.Decorator) -> bool:
        return False


def conditional_methods(class_node: cst.ClassDef) -> frozenset[str]:
    """The names of the methods that stand under an ``if`` or ``try`` of the class body."""
    always = {id(statement) for statement in class_node.body.body}
    return frozenset(node.name.value for node in members(class_node)[0] if id(node) not in always)


def members(class_node: cst.ClassDef) -> tuple[list[cst.FunctionDef], list[tuple[str, cst.BaseExpression]]]:
    """The methods of a class body, and its plain assignments; those under ``if`` and ``try`` count, in source order."""
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
