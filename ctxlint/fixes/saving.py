"""Moving a tensor from an attribute of ctx into ``save_for_backward``: the edits in forward, and the whole fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit
from ctxlint.fixes.appending import append_argument
from ctxlint.fixes.apply import apply_edits
from ctxlint.fixes.context_uses import ContextUses, context_uses
from ctxlint.fixes.method_code import MethodCode, code_of_method
from ctxlint.fixes.unpacking import read_from_saved
from ctxlint.model.analyses.saved_state_uses import uses_of_kept
from ctxlint.model.analyses.stashes import Held
from ctxlint.model.interpreter.events import ContextCall, ContextLent, Mutation
from ctxlint.model.interpreter.values import (
    NONE,
    Fresh,
    Tri,
    is_tensor,
    usual_storage,
)
from ctxlint.model.syntax import dotted, names_in, single_index
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.saved_state_uses import KeptUses
    from ctxlint.model.analyses.stashes import Stash
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextStore, ContextWrite, Event
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def save_instead(fn: FunctionClass, stash: Stash) -> Fix | None:
    """Add the tensor to the only ``save_for_backward``, or to a new one, and unpack it in backward."""
    if stash.contained or stash.held is Held.OUTPUT_VIEW or stash.uses.only_metadata or stash.may_be_a_number:
        return None
    if stash.originals_are_saved and stash.held is not Held.OUTPUT:
        return _read_original(fn, stash)
    if stash.untracked or (stash.held is Held.INPUT and stash.is_noticed):  # another tensor is to be saved
        return None
    keeping = _stored_attribute(fn, stash.write)
    if keeping is None or keeping.mutated_after():
        return None
    saving = _saving_edits(keeping)
    if saving is None:
        return None
    count = len(keeping.save.arguments) if keeping.save is not None else 0
    reading = read_from_saved(keeping.reader, stash.write.attribute, count, None, keeping.names)
    if reading is None:
        return None
    joins = _joins(keeping, saving, reading)
    return keeping.writer.fix(
        "Save it with `save_for_backward`",
        [*saving, *reading],
        Applicability.UNSAFE
        if stash.only_annotated
        else _applicability(stash.uses, stash.write.value, shared=stash.shares_an_output),
        joins=joins,
    )


def _joins(keeping: _StoredAttribute, saving: list[Edit], reading: list[Edit]) -> bool:
    """Whether the only change is that a variable joins the save and the unpacking, and the statement is removed.

    The block of the statement keeps the save, and no other statement is removed.
    """
    if keeping.save_statement is None or not isinstance(keeping.value, cst.Name):
        return False
    code, statement = keeping.writer, keeping.save_statement
    gone = [edit for edit in (*saving, *reading) if not edit.content]
    start, end = code.layout.start(statement), code.layout.end(statement)
    return (
        gone == [code.without(keeping.statement)]
        and code.block(keeping.statement) is code.block(statement)
        and all(start < edit.start == edit.end < end for edit in saving if edit.content)
    )


def drop_attribute(fn: FunctionClass, write: ContextWrite, save: ContextCall) -> Fix | None:
    """Read the saved tensor instead of the attribute that also holds it, and remove the attribute."""
    keeping = _stored_attribute(fn, write)
    if keeping is None or keeping.save is not save or not isinstance(keeping.value, cst.Name):
        return None
    positions = [at for at, argument in enumerate(save.arguments) if argument.value == write.value]
    edits = keeping.reads_as(keeping.value.value)
    if edits is None or not positions:
        return None
    reading = read_from_saved(keeping.reader, write.attribute, len(save.arguments), positions[0], keeping.names)
    if reading is None:
        return None
    return keeping.writer.fix(
        "Drop the attribute and read the saved tensor",
        [keeping.writer.without(keeping.statement), *edits, *reading],
        _applicability(uses_of_kept(fn, write.attribute), None),
    )


def _read_original(fn: FunctionClass, stash: Stash) -> Fix | None:
    """Read the saved tensor instead of its ``.data``; a second derivative then depends on it."""
    keeping, saved = _stored_attribute(fn, stash.write), stash.saved_as[0]
    if keeping is None or keeping.save is None or saved.node is None or len(keeping.statement.targets) > 1:
        return None
    if (
        keeping.mutated_after()
        or stash.write.attribute in keeping.uses.reads
        or dotted(keeping.value) != f"{dotted(saved.node)}.data"
    ):
        return None
    at = next((at for at, each in enumerate(keeping.save.arguments) if each is saved), None)
    if at is None:
        return None
    names = (*((saved.node.value,) if isinstance(saved.node, cst.Name) else ()), *keeping.names)
    reading = read_from_saved(keeping.reader, stash.write.attribute, len(keeping.save.arguments), at, names)
    if reading is None:
        return None
    edits = [keeping.writer.without(keeping.statement), *reading]
    return keeping.writer.fix("Drop the attribute and read the saved tensor", edits, Applicability.UNSAFE)


def _applicability(uses: KeptUses, value: Value | None, *, shared: bool = False) -> Applicability:
    """Unsafe if the fix may change behaviour.

    That is the case if the tensor escapes from backward, because unpacking under saved-tensor hooks returns another
    object; and if backward does not always use a tensor that others can modify, because each unpacking checks for
    modifications: an input, or the ``shared`` memory of an output. One that is stored under a condition is assumed to
    be used under the same.
    """
    options = value.options() if value is not None else ()
    changed_by_others = shared or (NONE not in options and not all(isinstance(each, Fresh) for each in options))
    return Applicability.UNSAFE if uses.as_object or (changed_by_others and not uses.always) else Applicability.SAFE


# ---------------------------------------------------------------------------------------------------------------------
# Preconditions


@record
class _StoredAttribute:
    """An attribute that is set once on every path through ``writer`` and read only by ``reader``, without aliases.

    ``save`` is the only ``save_for_backward``, which also runs on every path; None if there is none.
    """

    fn: FunctionClass
    write: ContextStore
    writer: MethodCode
    uses: ContextUses
    statement: cst.Assign
    save: ContextCall | None
    save_statement: cst.BaseSmallStatement | None
    reader: MethodCode

    @property
    def value(self) -> cst.BaseExpression:
        """The right-hand side."""
        return self.statement.value

    @property
    def ctx(self) -> str:
        """The name of ctx where the attribute is set."""
        return self.writer.method.ctx_name

    @property
    def names(self) -> tuple[str, ...]:
        """Possible names of the tensor in backward, the best name first."""
        attribute = self.write.attribute
        own = (self.value.value,) if isinstance(self.value, cst.Name) else ()
        return (attribute, *own, f"saved_{attribute.lstrip('_')}")

    def mutated_after(self) -> bool:
        """Whether forward modifies the tensor in place after it would be saved."""
        origin = usual_storage(self.write.value) if self.write.value is not None else None
        start = self.writer.layout.start(self.statement)
        if self.save_statement is not None:
            start = min(start, self.writer.layout.start(self.save_statement))
        return any(
            mutation.target is not None
            and usual_storage(mutation.target) == origin
            and self.writer.layout.start(mutation.node) > start
            for mutation in self.writer.method.facts.of(Mutation)
        )

    def more_follow(self) -> bool:
        """Whether forward sets another attribute below that may be moved next: that needs names as arguments."""
        start = self.writer.layout.start(self.statement)
        return any(
            self.writer.layout.start(other.node) > start
            and other.value is not None
            and is_tensor(other.value) is not Tri.NO
            for other in self.fn.context_writes
        )

    def reads_as(self, name: str) -> list[Edit] | None:
        """Edits that replace forward's own reads of the attribute by a variable; None if its value may differ."""
        layout = self.writer.layout
        end = layout.end(self.statement)
        reads = self.uses.reads.get(self.write.attribute, [])
        if any(layout.start(read) < end for read in reads):
            return None
        if reads and self.writer.rebound_between([name], end, len(layout.text)):
            return None
        return [layout.replace(read, name) for read in reads]


def _stored_attribute(fn: FunctionClass, write: ContextStore) -> _StoredAttribute | None:
    methods, readers = fn.context_methods, [fn.methods.get(name) for name in ("backward", "vjp")]
    reader = next((each for each in readers if each is not None), None)
    if len(methods) != 1 or reader is None or None not in readers or not _only_methods_read(fn, write.attribute):
        return None
    writer, read = code_of_method(fn, methods[0]), code_of_method(fn, reader)
    if writer is None or read is None or not _transparent(methods[0]) or not _transparent(reader):
        return None
    jvp = fn.methods.get("jvp")
    if jvp is not None and _names_attribute(fn, jvp, write.attribute):
        return None
    statement = writer.statement(write.node)
    if not isinstance(statement, cst.Assign) or not all(_is_plain(each.target) for each in statement.targets):
        return None
    if len(fn.saves) > 1 or not _on_every_path(writer, write):
        return None
    uses = context_uses(writer)
    if not uses.plain or uses.stores.get(write.attribute) != [write.node] or "saved_tensors" in uses.reads:
        return None
    save = fn.saves[0] if fn.saves else None
    save_statement = None if save is None else writer.statement(save.node)
    if save is not None:
        if not save.exact or not _on_every_path(writer, save):
            return None
        if not isinstance(save_statement, cst.Expr) or save_statement.value is not save.node:
            return None
    return _StoredAttribute(fn, write, writer, uses, statement, save, save_statement, read)


def _only_methods_read(fn: FunctionClass, attribute: str) -> bool:
    """Whether only the methods of the class can read what is stored on ctx, as far as this file shows."""
    if not fn.signature_judgeable or fn.has_subclass or fn.called_directly or fn.escapes:
        return False
    if any(method.facts.of(ContextLent) for method in fn.methods.values()):
        return False
    if any(map(fn.source.mentions, ("grad_fn", "next_functions", "to_save"))):
        return False
    return not fn.source.quotes(attribute)


def _transparent(method: Method) -> bool:
    return method.signature_known and method.facts.complete and not method.facts.is_generator


def _names_attribute(fn: FunctionClass, method: Method, attribute: str) -> bool:
    code = code_of_method(fn, method)
    if code is None:
        return True
    uses = context_uses(code)
    return not uses.plain or attribute in uses.reads or attribute in uses.stores


def _on_every_path(code: MethodCode, event: Event) -> bool:
    """Whether an event happens exactly once before each exit of the method."""
    facts = code.method.facts
    through = facts.falls_through.value == "no" or bool(facts.end_done >> event.order & 1)
    return (
        code.always_runs(event.node)
        and not event.in_loop
        and through
        and all(each.implies(event) for each in code.method.returns)
    )


def _is_plain(target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Name) or (isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name))


# ---------------------------------------------------------------------------------------------------------------------
# In forward


def _saving_edits(keeping: _StoredAttribute) -> list[Edit] | None:
    """The edits that save the tensor instead of setting the attribute."""
    if len(keeping.statement.targets) > 1:
        return _with_other_targets(keeping)
    if isinstance(keeping.value, cst.Name):
        return _of_variable(keeping, keeping.value.value)
    return _of_expression(keeping)


def _of_variable(keeping: _StoredAttribute, name: str) -> list[Edit] | None:
    """``ctx.x = x``: the statement is removed, becomes the save, or keeps the value if the name is rebound."""
    writer, statement = keeping.writer, keeping.statement
    reads = keeping.reads_as(name)
    if reads is not None and keeping.save is None:
        return [_instead_of_it(keeping, _call(keeping, name)), *reads]
    joined = _join_in_place(keeping, name, [name])
    if reads is not None and joined is not None:
        return [writer.without(statement), *joined, *reads]
    if _save_is_later(keeping):
        variable = writer.fresh(f"saved_{name}")
        reads, joined = keeping.reads_as(variable), _join_in_place(keeping, variable, [])
        return (
            None
            if reads is None or joined is None
            else [_instead_of_it(keeping, f"{variable} = {name}"), *joined, *reads]
        )
    moved = _moved_save(keeping, name)
    return None if reads is None or moved is None else [_instead_of_it(keeping, moved[0]), moved[1], *reads]


def _of_expression(keeping: _StoredAttribute) -> list[Edit] | None:
    """``ctx.x = expression``: it becomes an argument, or is bound to a variable if forward needs it again."""
    layout, used = keeping.writer.layout, keeping.write.attribute in keeping.uses.reads
    text = _as_argument(keeping)
    if text is None:
        return None
    if not used and (_is_fixed(keeping, keeping.value) or not keeping.more_follow()):
        if keeping.save is None:
            return [_instead_of_it(keeping, _call(keeping, text))]
        if _is_fixed(keeping, keeping.value):
            joined = _join_in_place(keeping, text, sorted(names_in(keeping.value)))
            if joined is not None:
                return [keeping.writer.without(keeping.statement), *joined]
        if not _save_is_later(keeping):
            moved = _moved_save(keeping, text)
            return None if moved is None else [_instead_of_it(keeping, moved[0]), moved[1]]
    attribute = keeping.write.attribute
    name = keeping.writer.fresh(attribute, f"saved_{attribute.lstrip('_')}")
    reads = keeping.reads_as(name)
    saved = _save_after(keeping, name)
    if reads is None or saved is None:
        return None
    return [layout.replace(keeping.statement.targets[0].target, name), *saved, *reads]


def _with_other_targets(keeping: _StoredAttribute) -> list[Edit] | None:
    """``y = ctx.y = expression``: the attribute is removed, the variable is saved."""
    layout, targets = keeping.writer.layout, keeping.statement.targets
    name = next((each.target.value for each in targets if isinstance(each.target, cst.Name)), None)
    if name is None:
        return None
    at = next(at for at, each in enumerate(targets) if each.target is keeping.write.node)
    following = targets[at + 1].target if at + 1 < len(targets) else keeping.value
    reads, saved = keeping.reads_as(name), _save_after(keeping, name)
    if reads is None or saved is None:
        return None
    return [Edit(layout.start(targets[at].target), layout.start(following), ""), *saved, *reads]


def _save_after(keeping: _StoredAttribute, name: str) -> list[Edit] | None:
    """Save a variable that the statement binds: extend a later save, or save right after it."""
    if keeping.save is None:
        return [keeping.writer.after(keeping.statement, _call(keeping, name))]
    if _save_is_later(keeping):
        return _join_in_place(keeping, name, [name], after=True)
    moved = _moved_save(keeping, name)
    return None if moved is None else [keeping.writer.after(keeping.statement, moved[0]), moved[1]]


def _call(keeping: _StoredAttribute, argument: str) -> str:
    return f"{keeping.ctx}.save_for_backward({argument})"


def _instead_of_it(keeping: _StoredAttribute, text: str) -> Edit:
    layout = keeping.writer.layout
    return Edit(layout.start(keeping.statement), layout.end(keeping.statement), text)


def _save_is_later(keeping: _StoredAttribute) -> bool:
    layout = keeping.writer.layout
    return keeping.save_statement is not None and layout.start(keeping.save_statement) > layout.start(keeping.statement)


def _join_in_place(keeping: _StoredAttribute, text: str, names: list[str], *, after: bool = False) -> list[Edit] | None:
    """Append an argument to the save in place, if the variables in it have the same values there.

    ``after``: the statement itself binds them.
    """
    save, statement = keeping.save, keeping.save_statement
    if save is None or statement is None or not isinstance(save.node, cst.Call):
        return None
    layout = keeping.writer.layout
    here = layout.end(keeping.statement) if after else layout.start(keeping.statement)
    first, last = sorted((layout.start(statement), here))
    if keeping.writer.rebound_between(names, first, last):
        return None
    return append_argument(layout, save.node, text)


def _moved_save(keeping: _StoredAttribute, text: str) -> tuple[str, Edit] | None:
    """The save with one more argument, to be moved down to where the attribute is set now.

    And the edit that removes it from its old place. An argument whose value differs further down gets a variable.
    """
    save, statement, writer = keeping.save, keeping.save_statement, keeping.writer
    if save is None or statement is None or not isinstance(save.node, cst.Call) or _save_is_later(keeping):
        return None
    layout = writer.layout
    start, end, below = layout.start(statement), layout.end(statement), layout.start(keeping.statement)
    if layout.text.count("\n", start, end) and writer.block(statement) is not writer.block(keeping.statement):
        return None
    edits, bound = append_argument(layout, save.node, text), []
    for argument in save.node.args:
        if _is_fixed(keeping, argument.value) and not writer.rebound_between(names_in(argument.value), start, below):
            continue
        if not isinstance(argument.value, cst.Name) or argument.star:
            return None
        name = writer.fresh(f"saved_{argument.value.value}")
        bound.append(f"{name} = {argument.value.value}")
        edits.append(layout.replace(argument.value, name))
    moved = [Edit(edit.start - start, edit.end - start, edit.content) for edit in sorted(edits)]
    indentation = layout.indentation(start)
    between = "; " if indentation is None else f"\n{indentation}"
    taken = Edit(start, end, between.join(bound)) if bound else writer.without(statement)
    return apply_edits(layout.text[start:end], moved), taken


def _is_fixed(keeping: _StoredAttribute, expression: cst.BaseExpression) -> bool:
    """Whether an expression is the same object as long as its variables are: a name, one of the inputs."""
    if isinstance(expression, cst.Subscript) and isinstance(expression.value, cst.Name):
        method = keeping.writer.method
        tuples = {param.name for param in method.positional[:1] if method.name == "setup_context"}
        return expression.value.value in tuples and isinstance(single_index(expression), cst.Integer)
    return isinstance(expression, cst.Name)


_WITHOUT_BRACKETS = (
    cst.Attribute,
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.Call,
    cst.Comparison,
    cst.IfExp,
    cst.Subscript,
    cst.UnaryOperation,
)


def _as_argument(keeping: _StoredAttribute) -> str | None:
    """The text of the value as an argument; None if it cannot be one."""
    layout, value = keeping.writer.layout, keeping.value
    if not isinstance(value, _WITHOUT_BRACKETS):
        return None
    span = layout.slice.span(value)
    text = layout.text[layout.source.offset(span.start) : layout.source.offset(span.end)]
    return layout.code(value) if "#" in layout.code(value) and "#" not in text else text
