"""One file in the model: its text, its index, and the statements that LibCST has parsed so far."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.model.index.ast_places import AstPlaces
from ctxlint.model.index.bare_nodes import BareLayout, may_be_bare
from ctxlint.model.index.class_finder import Definitions
from ctxlint.model.index.decorator_summaries import in_common, wrapping_of
from ctxlint.model.index.file_index import lambda_record
from ctxlint.model.index.from_ast import NotMade, class_from_ast, function_from_ast, statement_from_ast
from ctxlint.model.index.instances import Instances
from ctxlint.model.index.kept_index import index_of
from ctxlint.model.index.nested_parts import nested_in, parts_of
from ctxlint.model.index.parsing import BrokenStatement, parse
from ctxlint.model.index.python_names import passes_its_name
from ctxlint.model.index.scopes import Scope
from ctxlint.model.syntax import code_of
from ctxlint.records import entity
from ctxlint.source.ast_tree import gives_back, nodes_in
from ctxlint.source.nesting import part_too_deep, too_deep
from ctxlint.source.slices import Slice, Statement, kept_statement, parse_slice, parse_text, replaced_statement
from ctxlint.source.source import Position
from ctxlint.torch_api import autograd
from ctxlint.torch_api.transforms import may_use_transforms

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ctxlint.model.index.decorator_summaries import Wrapping
    from ctxlint.model.index.file_index import ClassRecord, FileIndex, FunctionRecord
    from ctxlint.model.index.from_ast import Pieces
    from ctxlint.source.source import Source, Span


@entity
class Unit:
    """A file that was parsed and indexed. ``broken`` are the statements that ``ast`` cannot parse."""

    source: Source
    module: ast.Module
    index: FileIndex
    slices: Slices
    broken: tuple[BrokenStatement, ...] = ()

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.source.path

    @property
    def tree(self) -> ast.Module | None:
        """The whole file as an ``ast`` tree; None if ``ast`` cannot parse it, or only after rewriting newer syntax."""
        return self.module if self.slices.as_written and not self.broken else None

    @property
    def is_stub(self) -> bool:
        """Whether it is a stub file (``.pyi``), whose bodies have no content."""
        return self.path.endswith(".pyi")

    @cached_property
    def summaries(self) -> dict[Hashable, Any]:
        """The cached summaries of its functions; see ``summaries``."""
        return {}

    @cached_property
    def has_context_calls(self) -> bool:
        """Whether the text mentions a method that only a ctx has."""
        return any(map(self.source.holds, autograd.CONTEXT_ONLY))

    @cached_property
    def may_define_operators(self) -> bool:
        """Whether the text mentions what makes a custom operator of a function."""
        return any(map(self.source.holds, ("custom_op", "triton_op")))

    @cached_property
    def may_use_transforms(self) -> bool:
        """Whether the code may use a transform of ``torch.func``."""
        return may_use_transforms(self.source.text.encode("utf-8", "surrogatepass"))

    @cached_property
    def may_bind_more(self) -> bool:
        """Whether the code, not only a comment, mentions what binds names without a statement, or may call it."""
        if any(map(self.source.mentions, _BINDING_MORE)) and any(map(_binds_more, nodes_in(self.module))):
            return True
        return passes_its_name(self.module, self.source.path)

    @cached_property
    def instances(self) -> Instances:
        """The instances of Functions that the file creates."""
        return Instances(self.source, self.tree)

    def with_source(self, source: Source) -> Unit:
        """The unit of another ``source`` with the same text: it has LibCST nodes of its own."""
        return replace(self, source=source, slices=Slices(source, self.index, self.slices.as_written))


_BINDING_MORE = ("exec", "globals", "vars", "__dict__", "modules")


def _binds_more(node: ast.AST) -> bool:
    """Whether a node is one of these names, as a variable, an attribute, a text or an import."""
    written = (getattr(node, each, None) for each in ("id", "attr", "value", "name"))
    return any(each in _BINDING_MORE for each in written if isinstance(each, str))


def read_unit(source: Source) -> Unit:
    """Parse and index a file. Bad code raises nothing."""
    parsed = parse(source)
    index = index_of(source.path, parsed.module)
    return Unit(source, parsed.module, index, Slices(source, index, parsed.as_written), parsed.broken)


class Slices:
    """Parses top-level statements with LibCST on demand, once each.

    ``as_written`` is False if ``ast`` has parsed the file after newer syntax was rewritten.
    """

    def __init__(self, source: Source, index: FileIndex, as_written: bool = True) -> None:
        self.source = source
        self.index = index
        self.as_written = as_written
        self.broken: list[BrokenStatement] = []
        self._slices: dict[int, Slice | None] = {}
        self._found: dict[int, Definitions] = {}
        self._bare: dict[str, cst.FunctionDef | None] = {}
        self._made_from: dict[int, ast.AST] = {}
        """The origins of the nodes of functions, by their identity."""
        self._bare_classes: dict[str, tuple[cst.ClassDef, Slice] | None] = {}
        self._decorators: dict[str, Wrapping | None] = {}

    def find_class(self, qualname: str) -> tuple[cst.ClassDef, Slice] | None:
        """The LibCST node of a class, and the slice that contains it; None if LibCST cannot parse it."""
        record = self.index.classes[qualname]
        finder, part = self._look_up(record.statement)
        if part is None or record.ordinal >= len(finder.classes):
            return None
        return finder.classes[record.ordinal], part

    def find_bare_class(self, qualname: str) -> tuple[cst.ClassDef, Slice] | None:
        """Like ``find_class``, for a class that is never shown: its slice may lack layout and other statements."""
        record = self.index.classes[qualname]
        if record.statement in self._found or not self.as_written:
            return self.find_class(qualname)
        if qualname not in self._bare_classes:
            self._bare_classes[qualname] = self._bare_class(record)
        return self._bare_classes[qualname]

    def _bare_class(self, record: ClassRecord) -> tuple[cst.ClassDef, Slice] | None:
        try:
            node = class_from_ast(record.node, self.source)
        except (NotMade, RecursionError):
            return self.find_class(record.qualname)
        first, last = record.node.lineno, record.node.end_lineno or record.node.lineno
        statement = Statement(self.source.lines(first, last), lambda: cst.Module([node]))
        return node, Slice(self.source, first, last, statement)

    def find_function(self, qualname: str) -> cst.FunctionDef | None:
        """The LibCST node of a function or method of this file; None if a condition decides between several."""
        found = self.find_function_in_slice(qualname)
        return found[0] if found is not None else None

    def find_function_in_slice(self, qualname: str) -> tuple[cst.FunctionDef, Slice] | None:
        """Like ``find_function``, with the slice that contains the function."""
        record = self.index.functions.get(qualname)
        return self.function_of(record) if record is not None and record.certain else None

    def function_of(self, record: FunctionRecord) -> tuple[cst.FunctionDef, Slice] | None:
        """The function of a record, with the slice that contains it."""
        finder, part = self._look_up(record.statement)
        if part is None or record.ordinal >= len(finder.functions):
            return None
        return finder.functions[record.ordinal], part

    def find_bare_function(self, qualname: str) -> cst.FunctionDef | None:
        """Like ``find_function``, for a function that is never shown: it may lack layout and positions."""
        record = self.index.functions.get(qualname)
        if record is None:
            return None
        if qualname not in self._bare:
            self._bare[qualname] = self._bare_function(record) if record.certain else None
        return self._bare[qualname]

    def span_in_function(self, qualname: str, statement: cst.CSTNode) -> Span:
        """The span of a statement or expression from ``find_bare_function``; that of the function if it is unknown."""
        found = self._made_from.get(id(statement))
        return self.source.span_of(
            found if isinstance(found, (ast.stmt, ast.expr)) else self.index.functions[qualname].node
        )

    def name_of_lambda(self, function: str, node: cst.Lambda) -> str | None:
        """The qualified name of a lambda without a name in a function: it is among the functions of the file then."""
        record = self.index.functions.get(function)
        made = self._made_from.get(id(node))
        if not isinstance(made, ast.Lambda) and record is not None:
            written = ast.dump(ast.parse(code_of(node), mode="eval").body)
            lambdas = (each for each in nodes_in(record.node) if isinstance(each, ast.Lambda))
            made = next((each for each in lambdas if ast.dump(each) == written), None)
        if record is None or not isinstance(made, ast.Lambda):
            return None
        qualname = f"{function}.<lambda {made.lineno}:{made.col_offset}>"
        if qualname not in self.index.functions:
            scope = Scope("function", function, record.scope)
            self.index.functions[qualname] = lambda_record("<lambda>", made, scope, record.statement, conditional=False)
        return qualname

    def _bare_function(self, record: FunctionRecord) -> cst.FunctionDef | None:
        if self.as_written:
            with suppress(NotMade, RecursionError):
                made_from: dict[int, ast.AST] = {}
                function = function_from_ast(record.node, self.source, made_from)
                self._made_from.update(made_from)
                return function
        found = self.function_of(record)
        return found[0] if found is not None else None

    def find_decorator(self, qualname: str) -> Wrapping | None:
        """The summary of a function as a decorator, also of one of several; None if there is none."""
        if qualname not in self._decorators:
            record = self.index.functions.get(qualname)
            names = (record.alternatives or (qualname,)) if record is not None else ()
            nodes = [(self.find_bare_function(each), self.index.functions[each].node) for each in names]
            known = [wrapping_of(node, gives_back=gives_back(tree)) for node, tree in nodes if node is not None]
            several = in_common(known) if len(known) > 1 else next(iter(known), None)
            self._decorators[qualname] = several if len(known) == len(names) else None
        return self._decorators[qualname]

    def _look_up(self, statement: int) -> tuple[Definitions, Slice | None]:
        if statement not in self._found:
            finder, part = Definitions(), None
            read = self._read(self.index.statements[statement])
            if read is not None:
                top, part = read
                finder.add(top)
            self._found[statement], self._slices[statement] = finder, part
        return self._found[statement], self._slices[statement]

    def _read(self, statement: ast.stmt) -> tuple[cst.CSTNode, Slice] | None:
        """A statement, bare where possible; None if LibCST cannot parse it."""
        decorators = getattr(statement, "decorator_list", None) or [statement]
        first = min(statement.lineno, *(decorator.lineno for decorator in decorators))
        last = statement.end_lineno or statement.lineno
        text = self.source.lines(first, last)
        if self.as_written and may_be_bare() and "\f" not in text:
            with suppress(NotMade, RecursionError):
                bare = kept_statement(_bare_statement, text, statement, self.source, first)
                return bare.top, Slice(self.source, first, last, bare)
        reason = too_deep(text)
        if reason is None:
            try:
                part = parse_slice(self.source, first, last)
            except cst.ParserSyntaxError as error:
                reason = error.message
            except RecursionError:
                reason = "nested too deeply"
            else:
                return part.module, part
        self.broken.append(BrokenStatement(Position(first, 1), reason, is_syntax=False))
        return None


@entity
class _BareStatement(Statement):
    """A statement whose nodes have no layout yet."""

    top: cst.CSTNode = field(kw_only=True)
    layout: BareLayout = field(kw_only=True)
    methods: Pieces = field(kw_only=True)
    """Those of a class, for its next version."""
    first: int = field(kw_only=True)
    """The line that it began on when it was created."""
    origin: ast.stmt = field(kw_only=True)
    made_from: dict[int, ast.AST] = field(kw_only=True)
    """The ``ast`` origins of its nodes, by identity."""

    def release(self) -> Pieces:
        """The methods, to be used in the next version."""
        if not self.layout.release():
            return {}
        object.__setattr__(self, "released", True)
        return dict(self.methods)


def _bare_statement(text: str, statement: ast.stmt, source: Source, first: int) -> _BareStatement:
    made_from: dict[int, ast.AST] = {}
    methods: Pieces = {}
    before = None
    if isinstance(statement, ast.ClassDef):
        before = replaced_statement(_bare_statement, text, (source.path, statement.name))
    if isinstance(statement, ast.ClassDef) and before is not None and isinstance(before.origin, ast.ClassDef):
        if any(map(part_too_deep, parts_of(statement, source, nested_in(before.origin)))):
            raise NotMade
    elif too_deep(text):
        raise NotMade
    top, replaces = None, None
    if before is not None and before.first == first:
        methods = before.release()
        if before.released and before.origin is statement:
            top, made_from, replaces = before.top, before.made_from, before
            object.__setattr__(before, "replaces", None)
    if top is None:
        top = statement_from_ast(statement, source, made_from, methods)
    layout = BareLayout(top, partial(parse_text, text), AstPlaces(text, first, made_from))
    return _BareStatement(
        text,
        lambda: layout.module,
        layout.span,
        replaces,
        top=top,
        layout=layout,
        methods=methods,
        first=first,
        origin=statement,
        made_from=made_from,
    )
