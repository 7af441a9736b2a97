"""Moving the statements about ctx from ``forward`` to a new ``setup_context``."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit
from ctxlint.fixes.apply import apply_edits
from ctxlint.fixes.class_layout import Layout, layout_of
from ctxlint.fixes.context_uses import context_uses
from ctxlint.fixes.method_code import MethodCode
from ctxlint.fixes.movable import concerns_ctx_alone, marks_alone
from ctxlint.fixes.parameters import drop_parameter
from ctxlint.model.analyses.returned_inputs import saved_and_returned
from ctxlint.model.function import Binding
from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.local_names import times_bound
from ctxlint.model.interpreter.method import ParameterKind
from ctxlint.model.interpreter.values import Parameter, usual_storage
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.fixes.context_uses import ContextUses
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

Line = cst.CSTNode
"""A statement of a block: a line of small statements, or a compound one."""


def split_forward(fn: FunctionClass) -> Fix | None:
    """Remove ctx from ``forward``, and move the statements about it to ``setup_context``.

    Offered if these are separate statements that need nothing but the inputs and what is returned. None for a method
    that is called or overridden elsewhere, that is decorated, that returns in several places, or that saves an input
    which it returns as it is, and if ``backward`` has no gradients for inputs that a call omits.
    """
    forward = fn.forward
    if forward is None or forward.ctx is None or fn.has_subclass or fn.called_directly:
        return None
    if forward.binding is not Binding.STATIC or forward.receiver is not None or len(forward.decorators) != 1:
        return None
    if any(param.kind is not ParameterKind.POSITIONAL for param in forward.own_params):
        return None
    if not forward.facts.modelled:
        return None
    if _counts_on_omitted_inputs(fn, forward):
        return None
    # Most forwards save intermediates, which can be detected without the text.
    code = MethodCode(Layout(fn.source, fn.slice), forward)
    movable = None if _saves_its_own(fn, forward) or saved_and_returned(fn) else _movable(code)
    if movable is None or layout_of(fn, forward) is None:
        return None
    split = _split(code, movable)
    dropped = drop_parameter(code.layout, forward.node, forward.ctx.node)
    if split is None or dropped is None or "# type:" in code.layout.code(forward.node):
        return None
    edits = [dropped, *_undocumented(code), *split.taken_out(), *split.renamed, *split.method()]
    return code.fix("Move it to `setup_context`", edits, Applicability.UNSAFE)


def _counts_on_omitted_inputs(fn: FunctionClass, forward: Method) -> bool:
    """Whether ``backward`` may return too few gradients once ``apply`` passes defaults, as with ``setup_context``."""
    if not any(param.has_default for param in forward.own_params):
        return False
    counts = [each.count if each.known and each.exact else None for each in fn.gradients]
    return any(count is None or count < len(fn.inputs) for count in counts)


@record
class _Split:
    """The transformation of one forward: ``moved`` are the lines to move, ``last`` is its last line.

    ``inputs`` are the names of the inputs that those lines need; ``outputs`` has, for each returned value, its name in
    those lines, or None. ``single``: one value is returned, not a tuple. ``renamed`` are the edits for attributes of
    ctx that forward reads itself.
    """

    code: MethodCode
    moved: tuple[Line, ...]
    last: Line
    inputs: frozenset[str] = frozenset()
    outputs: tuple[str | None, ...] = ()
    single: bool = True
    renamed: tuple[Edit, ...] = field(default=())

    def taken_out(self) -> list[Edit]:
        """Edits that remove the lines from forward, with their comments, and blank lines that would follow others."""
        places: list[tuple[int, int]] = []
        for start, end in map(self._place, self.moved):
            first = places.pop()[0] if places and places[-1][1] == start else start
            places.append((first, end))
        return [Edit(start, self._below_blank_lines(start, end), "") for start, end in places]

    def _below_blank_lines(self, start: int, end: int) -> int:
        """The end of what is removed: below blank lines if a blank line, or the head of the method, is above it."""
        source, first = self.code.layout.source, self.code.layout.line_number(start)
        body = self.code.layout.line_number(self.code.layout.start(self.code.method.node.body.body[0]))
        if first > body and source.line(first - 1).strip():
            return end
        line = self.code.layout.line_number(end)
        while line < source.line_count and not source.line(line).strip():
            line += 1
        return source.line_starts[line - 1]

    def _place(self, line: Line) -> tuple[int, int]:
        """A line from its first comment to the next line."""
        layout = self.code.layout
        first = layout.line_number(layout.start(line))
        comments = list(getattr(line, "leading_lines", ()))
        while comments and (comment := comments.pop().comment) is not None and not _PRAGMA.match(comment.value):
            first -= 1
        last = layout.line_number(self._end(line))
        return layout.source.line_starts[first - 1], layout.source.line_starts[last]

    def _end(self, line: Line) -> int:
        """The end of the last statement on a line."""
        body: object = line
        while not isinstance(body, cst.BaseSmallStatement):
            if isinstance(body, cst.If):
                body = body.body if body.orelse is None else body.orelse
            else:
                body = getattr(body, "body", ())
                body = body[-1] if isinstance(body, (list, tuple)) else body
        return self.code.layout.end(body)

    def method(self) -> list[Edit]:
        """The edit that inserts ``setup_context`` below forward."""
        layout, method = self.code.layout, self.code.method
        outer = layout.indentation(self.code.start(method.node)) or ""
        inner = layout.indentation(layout.start(self.last)) or ""
        ctx = method.ctx_name
        lines = [f"{outer}@staticmethod", f"{outer}def setup_context({ctx}, inputs, output):"]
        names = [param.name if param.name in self.inputs else "_" for param in method.own_params]
        if self.inputs:
            lines.append(f"{inner}{_targets(names)} = inputs")
        if not self.single and any(self.outputs):
            lines.append(f"{inner}{_targets([name or '_' for name in self.outputs])} = output")
        text = "".join(self._text(line) for line in self.moved).rstrip("\r\n")
        lines.append(text or f'{inner}"""Nothing is kept for `backward`."""')
        at = layout.line_end(self._end(self.last))
        return [layout.insert(at, "\n\n" + re.sub(r"\r\n?", "\n", "\n".join(lines)))]

    def _text(self, line: Line) -> str:
        """A line for ``setup_context``, where a single returned value is called ``output``."""
        layout = self.code.layout
        start, end = self._place(line)
        text = layout.text[start:end]
        name = self.outputs[0] if self.single and self.outputs else None
        if name is None:
            return text
        uses = [use for use in self.code.uses(name) if start <= layout.start(use) < end]
        return apply_edits(text, [Edit(layout.start(use) - start, layout.end(use) - start, "output") for use in uses])


_PRAGMA = pattern(
    r"#\s*(?:fmt|flake8|isort|mypy|pragma|pylint|pyre-\w+|pyright|ruff|type|yapf)\b\s*[:\[]", re.IGNORECASE
)
"""Comments for tools, which are about the method rather than about the statement below."""


def _undocumented(code: MethodCode) -> list[Edit]:
    """The edit that removes the entry of ctx from a docstring with a list of parameters."""
    method, layout = code.method, code.layout
    body = method.node.body.body
    first = body[0].body[0] if body and isinstance(body[0], cst.SimpleStatementLine) else None
    if method.ctx is None or not isinstance(first, cst.Expr) or not isinstance(first.value, cst.SimpleString):
        return []
    start, end = layout.start(first), layout.end(first)
    name = re.escape(method.ctx.name)
    line = rf"^([ \t]+){name}[ \t]*(?:\([^)\n]*\))?:.*\n(?:\1[ \t]+\S.*\n)*"
    entry = re.search(line, layout.text[start:end], re.MULTILINE)
    others = rf"^{entry[1]}\w+[ \t]*(?:\([^)\n]*\))?:" if entry is not None else ""
    if entry is None or not re.match(others, layout.text[start + entry.end() : end]):
        return []
    return [Edit(start + entry.start(), start + entry.end(), "")]


def _targets(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


# ---------------------------------------------------------------------------------------------------------------------
# What can be moved


class _Movable(NamedTuple):
    """The lines about ctx, if they need nothing but inputs and what is returned, by name."""

    lines: tuple[Line, ...]
    uses: ContextUses
    last: Line
    outputs: tuple[str | None, ...]
    single: bool


def _movable(code: MethodCode) -> _Movable | None:
    """What may be moved, as far as that is known without positions."""
    body = code.method.node.body
    if not isinstance(body, cst.IndentedBlock) or any(line.comment is not None for line in body.footer):
        return None
    ctx, lines = code.method.ctx, tuple(body.body)
    returned = _returned(code.method, lines)
    uses = context_uses(code, in_order=False)
    if ctx is None or returned is None or not uses.plain:
        return None
    moved = _with_ctx(code, uses, lines)
    if not all(concerns_ctx_alone(code, line) for line in moved):
        return None
    known = {ctx.name, *returned[0], *(param.name for param in code.method.own_params)}
    others = {name for line in moved for name in code.names_below(line)} - known
    if any(code.binds(name) or name in _OWN for name in others):
        return None
    return _Movable(moved, uses, lines[-1], *returned)


def _split(code: MethodCode, movable: _Movable) -> _Split | None:
    moved, uses, last, outputs, single = movable
    ctx = code.method.ctx
    inputs: set[str] = set()
    needed: set[str] = set()
    for line in moved:
        for name in code.names_below(line) - {ctx.name if ctx is not None else ""}:
            is_parameter = any(param.name == name for param in code.method.own_params)
            if is_parameter and not _bound(code, name, above=line):
                inputs.add(name)
            elif name in outputs and not _bound(code, name, below=line):
                needed.add(name)
            elif is_parameter or code.binds(name) or name in _OWN:
                return None
    if any(_changed_below(code, line) for line in moved) or _clash(code, inputs, needed, single=single):
        return None
    renamed = _reads_of_moved(code, uses, moved)
    if renamed is None:
        return None
    names = tuple(name if name in needed and name not in outputs[:at] else None for at, name in enumerate(outputs))
    return _Split(code, moved, last, frozenset(inputs), names, single, tuple(renamed))


def _saves_its_own(fn: FunctionClass, forward: Method) -> bool:
    """Whether forward saves a name that is neither an input nor returned."""
    body = forward.node.body
    returned = _returned(forward, tuple(body.body)) if isinstance(body, cst.IndentedBlock) else None
    if returned is None:
        return True
    nodes = (argument.node for save in fn.saves for argument in save.arguments)
    saved = {node.value for node in nodes if isinstance(node, cst.Name)}
    saved -= {*returned[0], *(param.name for param in forward.own_params)}
    return not saved.isdisjoint(times_bound(body)) if saved else False


def _returned(method: Method, lines: tuple[Line, ...]) -> tuple[tuple[str | None, ...], bool] | None:
    """The names of the values in the only ``return``, the last line, and whether that is not a tuple."""
    last = lines[-1]
    if len(method.returns) != 1 or not isinstance(last, cst.SimpleStatementLine) or len(last.body) != 1:
        return None
    statement = last.body[0]
    if not isinstance(statement, cst.Return) or statement is not method.returns[0].node or statement.value is None:
        return None
    value = statement.value
    if not isinstance(value, cst.Tuple):
        return (value.value if isinstance(value, cst.Name) else None,), True
    if any(isinstance(each, cst.StarredElement) for each in value.elements):
        return (), False
    return tuple(each.value.value if isinstance(each.value, cst.Name) else None for each in value.elements), False


def _with_ctx(code: MethodCode, uses: ContextUses, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines of forward that use the ctx, except for reading an attribute that forward sets."""
    nodes = [each for found in uses.stores.values() for each in found]
    nodes += [each for name, found in uses.reads.items() if name not in uses.stores for each in found]
    around = {above for each in nodes for above in code.above(each)}
    return tuple(line for line in lines if line in around)


def _bound(code: MethodCode, name: str, *, above: Line | None = None, below: Line | None = None) -> bool:
    """Whether a name is bound above or below a line."""
    places = code.bindings(name)
    if above is not None:
        return any(at < code.layout.start(above) for at in places)
    return below is not None and any(at > code.layout.start(below) for at in places)


def _changed_below(code: MethodCode, line: Line) -> bool:
    """Whether forward modifies in place, further down, what a line uses for more than marking."""
    if marks_alone(line):
        return False
    ctx, start = code.method.ctx, code.layout.start(line)
    names = code.names_below(line) - {ctx.name if ctx is not None else ""}
    for mutation in code.method.facts.of(Mutation):
        origin = None if mutation.target is None else usual_storage(mutation.target)
        changed = {mutation.name, origin.name if isinstance(origin, Parameter) else None}
        if code.layout.start(mutation.node) > start and (mutation.name is None or names & changed):
            return True
    for name in names:
        for use in code.uses(name):
            parent = code.parents[use]
            if isinstance(parent, cst.Attribute) and parent.attr.value in _CHANGING and code.layout.start(use) > start:
                return True
        if _reads_part_of(code, name, line) and any(
            _stored_into(code, use) for use in code.uses(name) if code.layout.start(use) > start
        ):
            return True
    return False


def _reads_part_of(code: MethodCode, name: str, line: Line) -> bool:
    """Whether a line reads an attribute or an item of a name."""
    return any(
        isinstance(code.parents[use], (cst.Attribute, cst.Subscript))
        for use in code.uses(name)
        if line in code.above(use)
    )


def _stored_into(code: MethodCode, use: cst.CSTNode) -> bool:
    """Whether an attribute or an item of a name is bound: ``name.a = …``, ``name.a[0] += …``."""
    node, parent = use, code.parents[use]
    while isinstance(parent, (cst.Attribute, cst.Subscript)) and parent.value is node:
        node, parent = parent, code.parents[parent]
    return node is not use and isinstance(parent, (cst.AssignTarget, cst.AugAssign)) and parent.target is node


_CHANGING = frozenset(
    {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "setdefault", "sort", "update"}
)
"""Methods that modify a list or a dict."""
_OWN = frozenset({"inputs", "output", "_"})
"""Names of ``setup_context`` itself."""


def _clash(code: MethodCode, inputs: set[str], needed: set[str], *, single: bool) -> bool:
    """Whether a name would have two meanings in ``setup_context``."""
    ctx = code.method.ctx
    if ctx is None or ctx.name in _OWN or inputs & _OWN or "_" in needed or inputs & needed:
        return True
    return not single and bool(needed & _OWN)


def _reads_of_moved(code: MethodCode, uses: ContextUses, moved: tuple[Line, ...]) -> list[Edit] | None:
    """Edits that replace forward's reads of an attribute by its variable; None if that may have another value."""
    edits: list[Edit] = []
    for attribute, stores in uses.stores.items():
        reads = [each for each in uses.reads.get(attribute, ()) if not any(line in code.above(each) for line in moved)]
        inside = [each for each in uses.reads.get(attribute, ()) if each not in reads]
        if not reads and not inside:
            continue
        statement = code.statement(stores[0])
        if inside or len(stores) != 1 or not isinstance(statement, cst.Assign) or not code.always_runs(statement):
            return None
        value = statement.value
        end = code.layout.end(statement)
        if not isinstance(value, cst.Name) or any(code.layout.start(each) < end for each in reads):
            return None
        if any(at > end for at in code.bindings(value.value)):
            return None
        edits += [code.layout.replace(each, value.value) for each in reads]
    others = {name for name in uses.reads if name not in uses.stores}
    return edits if others <= {"needs_input_grad", *_CALLS} else None


_CALLS = frozenset(
    {"save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads"}
)
