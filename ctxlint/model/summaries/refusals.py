"""Which arguments a function refuses at once unless they are None: known also where its summary is too much work."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in, positional_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.values import Slot, Value


def refused_arguments(
    definition: Definition, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
) -> frozenset[Value]:
    """The arguments for which a function raises, in its first statements, unless they are None."""
    record = definition.unit.index.functions[definition.qualname]
    if (
        not record.certain
        or record.alternatives
        or record.node.decorator_list
        or isinstance(record.node, ast.AsyncFunctionDef)
        or any(each.starred for each in arguments)
    ):
        return frozenset()
    refused = frozenset(_refused(record.node.body))
    if refused and any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes_in(record.node)):
        return frozenset()  # a generator, which runs later, if at all
    bound = {**dict(zip(positional_names(record.node.args), arguments)), **keywords} if refused else {}
    return frozenset(slot.value for name, slot in bound.items() if name in refused)


def _refused(body: list[ast.stmt]) -> Iterator[str]:
    """The names that have to be None for the code behind the assertions at the start of a body to run."""
    for statement in body:
        if isinstance(statement, ast.Assert):
            yield from _absent(statement.test, holds=True)
        elif isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Raise):
            yield from _absent(statement.test, holds=False)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            return


def _absent(test: ast.expr, *, holds: bool) -> Iterator[str]:
    """The names that are None where a test has this outcome."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _absent(inner, holds=not holds)
        case ast.BoolOp(op=operator, values=values) if isinstance(operator, ast.And) is holds:
            for each in values:
                yield from _absent(each, holds=holds)
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as asked], comparators=[ast.Constant(None)]
        ):
            if isinstance(asked, ast.Is) is holds:
                yield name
