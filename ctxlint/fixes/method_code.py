"""The code of one method as a tree with parents, and edits that insert, remove or change statements."""

from __future__ import annotations

import itertools
from dataclasses import field
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.class_layout import layout_of
from ctxlint.model.syntax import all_children, parents_below
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.fixes.class_layout import Layout
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement

_SEMICOLON = pattern(r"[ \t]*;")
_SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef)


def code_of_method(fn: FunctionClass, method: Method) -> MethodCode | None:
    """The code of a method that a fix may change; None if it may not."""
    key = (MethodCode, id(method))
    if key not in fn.notes:
        layout = layout_of(fn, method)
        fn.notes[key] = None if layout is None else MethodCode(layout, method)
    code: MethodCode | None = fn.notes[key]
    return code


@record
class MethodCode:
    """One method and the text around its nodes. Offsets are 0-based characters, ends exclusive."""

    layout: Layout
    method: Method
    notes: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """Cached results about it."""

    def fix(
        self,
        message: str,
        edits: Iterable[Edit | None],
        applicability: Applicability = Applicability.SAFE,
        *,
        joins: bool = False,
    ) -> Fix | None:
        """A fix of these edits, at best unsafe if a comment would be lost; ``joins`` as in ``Fix``.

        None if an edit is None, two of them overlap, or there are none.
        """
        every = set(edits)
        ordered = tuple(sorted(edit for edit in every if edit is not None))
        if not ordered or None in every or any(one.end > other.start for one, other in itertools.pairwise(ordered)):
            return None
        before = sum(self.layout.text.count("#", edit.start, edit.end) for edit in ordered)
        after = sum(edit.content.count("#") for edit in ordered)
        if after < before and applicability is Applicability.SAFE:
            applicability = Applicability.UNSAFE
        return Fix(message, ordered, applicability, joins)

    @property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The parent of each node of code, up to the method itself."""
        return self.method.parents

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The ancestors of a node, the nearest first; the method is the last."""
        return self.method.above(node)

    def nodes(self) -> Iterable[cst.CSTNode]:
        """Every node of code inside the method."""
        return self.parents.keys()

    # Names

    @property
    def names(self) -> tuple[cst.Name, ...]:
        """Every name of a variable: no attributes, no keywords of calls."""
        return self.method.variables

    def names_below(self, node: cst.CSTNode) -> set[str]:
        """The names of variables in a node of code."""
        below = parents_below(node)
        return {each.value for each in below if isinstance(each, cst.Name) and not self.method.is_label(each)}

    def uses(self, name: str) -> list[cst.Name]:
        """Every occurrence of a variable, in the order of the text."""
        if name not in self.notes:
            self.notes[name] = sorted(self.named(name), key=lambda each: self.layout.slice.span(each).start)
        return list(self.notes[name])

    def named(self, name: str) -> Sequence[cst.Name]:
        """Like ``uses``, in no particular order."""
        return self.method.named.get(name, ())

    def fresh(self, *wanted: str) -> str:
        """The first of some names, numbered if all are taken, that is unused in this method."""
        taken = self.method.named
        for name in wanted:
            if name not in taken and name.isidentifier():
                return name
        number = 2
        while f"{wanted[0]}_{number}" in taken:
            number += 1
        return f"{wanted[0]}_{number}"

    def bindings(self, name: str) -> list[int]:
        """The offsets at which a variable is bound or deleted anywhere in the method, except as a parameter."""
        return sorted(self.layout.start(node) for node in self.method.binders.get(name, ()))

    def binds(self, name: str) -> bool:
        """Whether a variable is bound or deleted anywhere in the method, except as a parameter."""
        return name in self.method.binders

    def rebound_between(self, names: Iterable[str], start: int, end: int) -> bool:
        """Whether one of some variables is bound in a range of the text."""
        return any(start <= at < end for name in names for at in self.bindings(name))

    # Positions

    def statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
        """The simple statement that contains a node; None for one in the head of a compound statement."""
        for each in (node, *self.above(node)):
            if isinstance(each, cst.BaseSmallStatement):
                return each
            if isinstance(each, cst.BaseCompoundStatement):
                return None
        return None

    def up_to(self, block: cst.CSTNode, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A node and its ancestors inside a block, the nearest first."""
        return list(itertools.takewhile(lambda each: each is not block, (node, *self.above(node))))

    def statement_in(self, block: cst.CSTNode, node: cst.CSTNode) -> Statement | None:
        """The statement of a block that contains a node, which is not the block itself."""
        inside = self.up_to(block, node)
        if isinstance(inside[-1], cst.BaseCompoundStatement):
            return inside[-1]
        return next((each for each in reversed(inside) if isinstance(each, cst.BaseSmallStatement)), None)

    def always_runs(self, node: cst.CSTNode) -> bool:
        """Whether a node is in the body of the method itself, or only in ``with`` blocks of it."""
        around = [each for each in self.above(node) if isinstance(each, (cst.BaseCompoundStatement, *_SCOPES))]
        return all(isinstance(each, cst.With) for each in around[:-1]) and around[-1:] == [self.method.node]

    def in_own_scope(self, node: cst.CSTNode) -> bool:
        """Whether a node is in no nested function, lambda or class."""
        return not any(isinstance(each, _SCOPES) and each is not self.method.node for each in self.above(node))

    def block(self, node: cst.CSTNode) -> cst.BaseSuite | None:
        """The innermost block that contains a node."""
        return next((each for each in self.above(node) if isinstance(each, cst.BaseSuite)), None)

    # Edits

    def first(self, text: str) -> Edit | None:
        """Insert a statement as the first one, after a docstring."""
        body = self.method.node.body
        if isinstance(body, cst.SimpleStatementSuite):
            small = next((each for each in body.body if not _is_string(each)), None)
            return None if small is None else self.layout.insert(self.layout.start(small), f"{text}; ")
        statements = body.body
        if not statements:
            return None
        line = statements[0]
        if isinstance(line, cst.SimpleStatementLine) and _is_string(line.body[0]):
            if len(line.body) > 1:
                return self.layout.insert(self.layout.start(line.body[1]), f"{text}; ")
            if len(statements) == 1:
                return None
            line = statements[1]
        indentation = self.layout.indentation(self.start(line))
        if indentation is None:
            return None
        own = self.layout.line_number(self.start(line))
        above = range(own - len(getattr(line, "leading_lines", ())), own)
        number = next((each for each in above if not _keeps_its_place(self.layout.source.line(each))), own)
        return self.layout.insert(self.layout.source.line_starts[number - 1], f"{indentation}{text}\n")

    def start(self, statement: cst.CSTNode) -> int:
        """The start of a statement, including its decorators."""
        decorators = getattr(statement, "decorators", ())
        return self.layout.start(decorators[0] if decorators else statement)

    def before(self, statement: cst.CSTNode, text: str) -> Edit | None:
        """Insert a statement before another one, and before the comment right above that."""
        start = self.start(statement)
        indentation = self.layout.indentation(start)
        if indentation is not None:
            number = self.layout.line_number(start)
            while self._comment_of_its_own(statement, number - 1):
                number -= 1
            return self.layout.insert(self.layout.source.line_starts[number - 1], f"{indentation}{text}\n")
        if isinstance(statement, cst.BaseSmallStatement):
            return self.layout.insert(start, f"{text}; ")
        return None

    def _comment_of_its_own(self, statement: cst.CSTNode, number: int) -> bool:
        """Whether a line is one of the comments above a statement."""
        if number < 1 or not self.layout.source.line(number).lstrip().startswith("#"):
            return False
        owner = self.parents[statement] if isinstance(statement, cst.BaseSmallStatement) else statement
        above = len(getattr(owner, "leading_lines", ()))  # this needs the layout
        return number >= self.layout.line_number(self.start(statement)) - above

    def after(self, statement: cst.BaseSmallStatement, text: str) -> Edit:
        """Insert a statement after a simple one: on the next line if that one shares its line with no other."""
        end = self.layout.end(statement)
        line = self.parents[statement]
        indentation = self.layout.indentation(self.layout.start(statement))
        alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
        if indentation is None or not alone or not self.layout.nothing_but_a_comment_follows(end):
            return self.layout.insert(end, f"; {text}")
        return self.layout.insert(self.layout.line_end(end), f"\n{indentation}{text}")

    def is_only_statement(self, statement: cst.BaseSmallStatement) -> bool:
        """Whether a block contains only this statement, so that ``pass`` must replace it."""
        line = self.parents[statement]
        if len(getattr(line, "body", ())) > 1:
            return False
        return isinstance(line, cst.SimpleStatementSuite) or len(getattr(self.parents[line], "body", ())) == 1

    def without(self, statement: cst.BaseSmallStatement) -> Edit:
        """Remove a simple statement; a comment after it stays."""
        start, end = self.layout.start(statement), self.layout.end(statement)
        line = self.parents[statement]
        others = list(getattr(line, "body", ()))
        at = others.index(statement)
        if at + 1 < len(others):
            return Edit(start, self.layout.start(others[at + 1]), "")
        semicolon = _SEMICOLON.match(self.layout.text, end)
        if semicolon is not None:
            end = semicolon.end()
        if at > 0:
            return Edit(self.layout.end(others[at - 1]), end, "")
        if self.is_only_statement(statement):
            return Edit(start, end, "pass")
        rest = self.layout.text[end : self.layout.line_end(end)]
        if rest.strip():
            return Edit(start, end + len(rest) - len(rest.lstrip()), "")
        number = self.layout.line_number(end)
        starts = self.layout.source.line_starts
        below = starts[number] if number < len(starts) else len(self.layout.text)
        return Edit(self.layout.line_start(start), below, "")

    def holds_comment(self, node: cst.CSTNode) -> bool:
        """Whether there is a comment inside a node."""
        return isinstance(node, cst.Comment) or any(self.holds_comment(child) for child in all_children(node))


def _keeps_its_place(line: str) -> bool:
    """Whether a line after the head stays there: it is blank, or a type comment of the parameters."""
    return not line.strip() or line.lstrip().startswith("# type:")


def _is_string(statement: cst.BaseSmallStatement) -> bool:
    return isinstance(statement, cst.Expr) and isinstance(statement.value, (cst.SimpleString, cst.ConcatenatedString))
