"""One walk over a method's body: statement by statement, with an environment that joins where branches meet.

The walk follows every path once. At a branch the state is copied and joined afterwards; a loop body is walked twice, first
silently to see what it changes, then with those names widened. Nested functions are not walked.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Callable

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.calls import Calls
from ctxlint.model.functions import (
    Assigned,
    ContextWrite,
    Escape,
    Guard,
    MethodFacts,
    Mutation,
    Return,
    SavedRead,
    Unpacking,
)
from ctxlint.model.state import State, merge, widen
from ctxlint.model.values import (
    NEVER,
    NONE,
    UNBOUND,
    UNKNOWN,
    Choice,
    Constant,
    Context,
    Imported,
    InputsTuple,
    Item,
    Mapping,
    Opaque,
    SavedTensor,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    Tri,
    Value,
    is_container,
    is_tensor,
    join,
)
from ctxlint.model.expressions import iterated_item

if TYPE_CHECKING:
    from ctxlint.model.calls import Followed
    from ctxlint.model.scopes import Scope


def interpret(
    function: cst.FunctionDef, bindings: dict[str, Value], scope: Scope, follow: Followed | None = None
) -> MethodFacts:
    """Walk a method or function whose parameters hold ``bindings``; free names are looked up in ``scope``.

    ``follow`` gives what a function of the same file returns. Raises RecursionError on absurdly deep expressions.
    """
    walk = Interpreter(scope, bound_names(function))
    walk.follow = follow
    walk.state = State(dict(bindings))
    walk.block(function.body)
    end = walk.state
    falls = Tri.NO if not end.live else Tri.YES
    return MethodFacts(
        events=tuple(walk.events),
        falls_through=falls,
        fall_guards=end.guards if end.live else (),
        fall_paths=end.paths if end.live else (),
        names_read=frozenset(walk.names_read),
        is_generator=walk.is_generator,
        is_async=function.asynchronous is not None,
        complete=walk.complete,
        end_done=end.done,
    )


class _Loop:
    """The states in which a loop is left or begun again."""

    def __init__(self) -> None:
        self.breaks: list[State] = []
        self.continues: list[State] = []


class Interpreter(Calls):
    """Walks statements."""

    def __init__(self, scope: Scope, method_names: frozenset[str]) -> None:
        super().__init__(scope, method_names)
        self.is_generator = False
        self.complete = True
        self.loop_stack: list[_Loop] = []

    # Blocks

    def block(self, body: cst.BaseSuite) -> None:
        for statement in body.body:
            if not self.state.live:
                return
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    if self.state.live:
                        self.small(small, statement)
            elif isinstance(statement, cst.BaseSmallStatement):
                self.small(statement, body)
            else:
                self.compound(statement)

    def small(self, node: cst.BaseSmallStatement, line: cst.CSTNode) -> None:
        self.statement = line
        handler = _SMALL.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.walk_children(node)

    def compound(self, node: cst.CSTNode) -> None:
        self.statement = node
        handler = _COMPOUND.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.complete = False

    # Simple statements

    def expression_statement(self, node: cst.Expr) -> None:
        value = node.value
        if isinstance(value, (cst.Yield, cst.Await)):
            self.is_generator |= isinstance(value, cst.Yield)
            self.walk_children(value)
            return
        result = self.evaluate(value)
        if not isinstance(value, cst.Call):
            return
        if result is NEVER or self.canonical(value.func) in tables.NEVER_RETURNING:
            self.state.live = False
        elif _sounds_final(value.func):
            self.state.doubt(Guard(id(node), "returns"))

    def return_(self, node: cst.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else NONE
        if isinstance(value, Context):
            self.record(Escape, node, how="returned")
        if value is NEVER:
            self.state.live = False
            return
        self.record(
            Return, node, value=value, bare=node.value is None, attributes=frozenset(self.state.attributes)
        )
        self.state.live = False

    def raise_(self, node: cst.Raise) -> None:
        if node.exc is not None:
            self.evaluate(node.exc)
        self.state.live = False

    def assert_(self, node: cst.Assert) -> None:
        self.evaluate(node.test)
        if isinstance(node.test, (cst.Name, cst.Integer)) and node.test.value in ("False", "0"):
            self.state.live = False
            return
        self.narrow(node.test, True)

    def leave_loop(self, node: cst.BaseSmallStatement) -> None:
        if self.loop_stack:
            loop = self.loop_stack[-1]
            (loop.breaks if isinstance(node, cst.Break) else loop.continues).append(self.state.fork())
        self.state.live = False

    def delete(self, node: cst.Del) -> None:
        for target in _delete_targets(node.target):
            if isinstance(target, cst.Name):
                self.state.names.pop(target.value, None)
                self.state.names[target.value] = UNBOUND
            elif isinstance(target, cst.Attribute) and isinstance(self.evaluate(target.value), Context):
                self.state.attributes.pop(target.attr.value, None)
                self.record(
                    ContextWrite, target, attribute=target.attr.value, statement=self.statement, deletes=True
                )
            else:
                self.walk_children(target)

    def import_(self, node: cst.Import | cst.ImportFrom) -> None:
        """An import inside a method binds names that the file's index knows nothing of."""
        from ctxlint.model.expressions import dotted

        if isinstance(node, cst.Import):
            for alias in node.names:
                path = dotted(alias.name)  # type: ignore[arg-type]
                bound = alias.evaluated_alias
                if path is not None:
                    name = bound or path.partition(".")[0]
                    self.state.names[name] = Imported(path if bound else name)
            return
        origin = "." * len(node.relative) + ((dotted(node.module) or "") if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            self.complete = False
            return
        for alias in node.names:
            name = alias.evaluated_name
            target = f"{origin}.{name}" if node.module is not None else f"{origin}{name}"
            self.state.names[alias.evaluated_alias or name] = Imported(target)

    # Assignments

    def assign(self, node: cst.Assign) -> None:
        value = self.evaluate(node.value)
        simple = len(node.targets) == 1
        for target in node.targets:
            self.assign_target(target.target, value, node, node.value if simple else None)

    def annotated(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self.assign_target(node.target, self.evaluate(node.value), node, node.value)

    def assign_target(
        self,
        target: cst.BaseExpression,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None = None,
    ) -> None:
        """Bind one target. ``value_node`` is the right-hand side where it belongs to this target alone."""
        if isinstance(target, cst.Name):
            self.state.names[target.value] = value
            self.record(Assigned, target, name=target.value, value=value)
            if isinstance(value, SavedTensors):
                self.bound_saved_tensors(target.value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self.unpack(target, value, statement, value_node)
        elif isinstance(target, cst.Attribute):
            self.store_attribute(target, value, statement, value_node)
        elif isinstance(target, cst.Subscript):
            self.store_item(target, value)
        elif isinstance(target, cst.StarredElement):
            self.assign_target(target.value, Sequence("list", (Slot(value, starred=True),)), statement)

    def unpack(
        self,
        target: cst.Tuple | cst.List,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None,
    ) -> None:
        if isinstance(value, SavedTensors):
            self.unpacked_saved_tensors(target, value_node.value if isinstance(value_node, cst.Name) else None)
        star = next((at for at, each in enumerate(target.elements) if isinstance(each, cst.StarredElement)), None)
        paired: tuple[cst.BaseExpression | None, ...] = (None,) * len(target.elements)
        if isinstance(value_node, (cst.Tuple, cst.List)) and len(value_node.elements) == len(target.elements):
            if star is None and not any(isinstance(each, cst.StarredElement) for each in value_node.elements):
                paired = tuple(each.value for each in value_node.elements)
        for at, element in enumerate(target.elements):
            if isinstance(element, cst.StarredElement):
                rest = Sequence("list", (Slot(Opaque(element), starred=True),))
                self.assign_target(element.value, rest, statement)
            else:
                part = element_of(value, at, len(target.elements), star, element)
                self.assign_target(element.value, part, statement, paired[at])

    def bound_saved_tensors(self, name: str) -> None:
        """``saved = ctx.saved_tensors``: note the name on the event."""
        self.amend_saved_read(lambda read: replace(read, bound_to=name), None)

    def unpacked_saved_tensors(self, target: cst.Tuple | cst.List, holder: str | None) -> None:
        """The saved tuple, or the name ``holder`` that it is bound to, is taken apart."""
        names = tuple(
            each.value.value if isinstance(each.value, cst.Name) and isinstance(each, cst.Element) else None
            for each in target.elements
        )
        starred = any(isinstance(each, cst.StarredElement) for each in target.elements)
        unpacking = Unpacking(names, starred, target, self.statement)
        self.amend_saved_read(lambda read: replace(read, unpackings=(*read.unpackings, unpacking)), holder)

    def amend_saved_read(self, change: Callable[[SavedRead], SavedRead], holder: str | None) -> None:
        """Add to what is known of the last read of the saved tuple, or of the one bound to ``holder``."""
        if self.muted:
            return
        for at in range(len(self.events) - 1, -1, -1):
            event = self.events[at]
            if isinstance(event, SavedRead) and (holder is None or event.bound_to == holder):
                self.events[at] = change(event)
                return

    def store_attribute(
        self,
        target: cst.Attribute,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None,
    ) -> None:
        owner = self.evaluate(target.value)
        if isinstance(owner, Context):
            name = target.attr.value
            self.state.attributes[name] = value
            simple = isinstance(statement, cst.Assign) and len(statement.targets) == 1
            simple = simple and statement.targets[0].target is target  # type: ignore[union-attr]
            self.record(
                ContextWrite,
                target,
                attribute=name,
                value=value,
                value_node=value_node,
                statement=self.statement,
                simple=simple,
            )
            if isinstance(value, Context):
                self.record(Escape, target, how="stored")
            return
        if isinstance(value, Context):
            self.record(Escape, target, how="stored")

    def store_item(self, target: cst.Subscript, value: Value) -> None:
        holder = self.evaluate(target.value)
        self.indices(target)
        if isinstance(value, Context):
            self.record(Escape, target, how="stored")
        if isinstance(holder, Sequence):
            self.rebind(target.value, _replaced(holder, self.constant_index(target), value))
        elif isinstance(holder, (Mapping, Choice)) or is_container(holder) is Tri.YES:
            return
        elif not isinstance(holder, (Imported, Scalar, Constant)):
            self.mutated(target, target.value, holder, "[...] =")

    def constant_index(self, target: cst.Subscript) -> int | None:
        if len(target.slice) != 1 or not isinstance(target.slice[0].slice, cst.Index):
            return None
        value = self.peek(target.slice[0].slice.value)
        return value.value if isinstance(value, Constant) and type(value.value) is int else None

    def augmented(self, node: cst.AugAssign) -> None:
        change = self.use(node.value)
        target = node.target
        how = _operator_text(node.operator)
        if isinstance(target, cst.Name):
            value = self.evaluate(target)
            self.state.names[target.value] = self.after_augmented(node, target, value, change, how)
            self.record(Assigned, target, name=target.value, value=self.state.names[target.value], augmented=True)
        elif isinstance(target, cst.Subscript):
            holder = self.evaluate(target.value)
            self.indices(target)
            if isinstance(holder, Sequence):
                self.rebind(target.value, _replaced(holder, self.constant_index(target), Opaque(node)))
            elif is_container(holder) is not Tri.YES and not isinstance(holder, Choice):
                self.mutated(target, target.value, holder, f"[...] {how}")
        elif isinstance(target, cst.Attribute):
            value = self.evaluate(target)
            if isinstance(self.peek(target.value), Context):
                result = self.after_augmented(node, target, value, change, how)
                self.state.attributes[target.attr.value] = result
                self.record(
                    ContextWrite, target, attribute=target.attr.value, value=result, statement=self.statement
                )
            elif is_tensor(value) is Tri.YES:
                self.mutated(node, target, value, how)

    def after_augmented(
        self, node: cst.AugAssign, target: cst.BaseExpression, value: Value, change: Value, how: str
    ) -> Value:
        """The value of ``x`` after ``x op= change``; a tensor is changed in place and stays what it was."""
        if is_tensor(value) is Tri.YES:
            self.mutated(node, target, value, how)
            return value
        if is_tensor(value) is Tri.NO or isinstance(value, Choice):
            return self.combine(value, change, node.operator, node)
        self.record(
            Mutation,
            node,
            target=value,
            target_node=target,
            how=how,
            name=target.value if isinstance(target, cst.Name) else None,
            statement=self.statement,
        )
        return Opaque(node)

    # Branches

    def if_(self, node: cst.If) -> None:
        self.evaluate(node.test)
        before = self.state
        constant = self.constant_test(node.test)
        arms: list[State] = []
        if constant is not False:
            arms.append(self.arm(before, node, node.test, True, node.body))
        if constant is not True:
            orelse = node.orelse
            if isinstance(orelse, cst.If):
                self.enter(before, node, node.test, False)
                self.if_(orelse)
                arms.append(self.state)
            else:
                arms.append(self.arm(before, node, node.test, False, orelse.body if orelse is not None else None))
        self.state = merge(before, arms)

    def constant_test(self, test: cst.BaseExpression) -> bool | None:
        """Whether a test is a literal (``if True``); ``TYPE_CHECKING`` counts as False."""
        if isinstance(test, cst.Name) and test.value in ("True", "False"):
            return test.value == "True"
        if isinstance(test, cst.Integer):
            return test.value != "0"
        return None

    def enter(self, before: State, node: cst.CSTNode, test: cst.BaseExpression, holds: bool) -> None:
        self.state = before
        guards = self.guards_of(test, holds, node)
        self.state = before.fork(*guards)
        self.narrow(test, holds)

    def arm(
        self, before: State, node: cst.CSTNode, test: cst.BaseExpression, holds: bool, body: cst.BaseSuite | None
    ) -> State:
        self.enter(before, node, test, holds)
        if body is not None:
            self.block(body)
        return self.state

    def with_(self, node: cst.With) -> None:
        for item in node.items:
            value = self.evaluate(item.item)
            if item.asname is not None:
                self.assign_target(item.asname.name, value if isinstance(value, Context) else Opaque(item), None)
        self.block(node.body)

    def try_(self, node: cst.Try | cst.TryStar) -> None:
        before = self.state
        handlers = tuple(node.handlers)
        self.state = before.fork(*((Guard(id(node), "try"),) if handlers else ()))
        self.block(node.body)
        after_body = self.state
        if node.orelse is not None and self.state.live:
            self.block(node.orelse.body)
        results = [self.state]
        for handler in handlers:
            interrupted = merge(before, [before.fork(), _revived(after_body)])
            interrupted.guards = (*before.guards, Guard(id(handler), "except"))
            interrupted.paths = tuple((*path, Guard(id(handler), "except")) for path in before.paths)
            interrupted.done = before.done
            self.state = interrupted
            if handler.name is not None and isinstance(handler.name.name, cst.Name):
                self.state.names[handler.name.name.value] = Opaque(handler)
            self.block(handler.body)
            results.append(self.state)
        self.state = merge(before, results)
        if not handlers and self.state.live:
            self.state.guards = before.guards if self.state.guards[: len(before.guards)] == before.guards else ()
        if node.finalbody is not None:
            alive = self.state.live
            self.state.live = True
            self.block(node.finalbody.body)
            self.state.live = self.state.live and alive

    def match(self, node: cst.Match) -> None:
        self.evaluate(node.subject)
        before = self.state
        arms: list[State] = []
        irrefutable = False
        for number, case in enumerate(node.cases):
            self.state = before.fork(Guard(id(node), f"case {number}"))
            for name in _captures(case.pattern):
                self.state.names[name] = Opaque(case)
            if case.guard is not None:
                self.evaluate(case.guard)
            self.block(case.body)
            arms.append(self.state)
            wildcard = isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None
            irrefutable = irrefutable or (wildcard and case.guard is None)
        if not irrefutable:
            arms.append(before.fork(Guard(id(node), "no case")))
        self.state = merge(before, arms)

    # Loops

    def for_(self, node: cst.For) -> None:
        iterated = self.evaluate(node.iter)
        item = iterated_item(iterated, node.iter)
        self.loop(node, lambda: self.assign_target(node.target, item, None), node.body, endless=False)
        self.loop_else(node.orelse)

    def while_(self, node: cst.While) -> None:
        endless = self.constant_test(node.test) is True
        self.loop(node, lambda: self.while_test(node), node.body, endless)
        self.loop_else(node.orelse)

    def while_test(self, node: cst.While) -> None:
        self.evaluate(node.test)
        self.narrow(node.test, True)

    def loop_else(self, orelse: cst.Else | None) -> None:
        if orelse is not None and self.state.live:
            self.block(orelse.body)

    def loop(self, node: cst.CSTNode, begin: Callable[[], None], body: cst.BaseSuite, endless: bool) -> None:
        before = self.state
        self.loops += 1
        if self.loops <= 3:  # the first, silent turn: what does the body change?
            self.muted += 1
            after = self.turn(node, before, begin, body)
            self.muted -= 1
            names = {
                name: widen(value, after.names.get(name, UNBOUND)) for name, value in before.names.items()
            }
            attributes = {
                name: value for name, value in before.attributes.items() if after.attributes.get(name) == value
            }
        else:
            changed = _assigned_in(body)
            names = {name: UNKNOWN if name in changed else value for name, value in before.names.items()}
            attributes = {}
        start = before.fork()
        start.names, start.attributes = names, attributes
        first = len(self.events)
        loop = _Loop()
        self.loop_stack.append(loop)
        after = self.run_body(node, start, begin, body)
        self.loop_stack.pop()
        self.loops -= 1
        skipped = [] if endless else [start.fork()]
        ends = [] if endless else [after, *loop.continues]
        self.state = merge(start, [*skipped, *ends, *loop.breaks])
        self.state.guards, self.state.paths = before.guards, before.paths
        if any(isinstance(event, Return) for event in self.events[first:]):
            self.state.doubt(Guard(id(node), "exhausted"))

    def turn(self, node: cst.CSTNode, before: State, begin: Callable[[], None], body: cst.BaseSuite) -> State:
        """One silent turn of a loop: the state after it, joined over its ends."""
        loop = _Loop()
        self.loop_stack.append(loop)
        after = self.run_body(node, before.fork(), begin, body)
        self.loop_stack.pop()
        joined = merge(before, [after, *loop.continues, *loop.breaks])
        return joined if joined.live else before

    def run_body(self, node: cst.CSTNode, start: State, begin: Callable[[], None], body: cst.BaseSuite) -> State:
        self.state = start.fork(Guard(id(node), "loop"))
        begin()
        self.block(body)
        return self.state

    # Nested definitions

    def nested(self, node: cst.FunctionDef | cst.ClassDef) -> None:
        for decorator in node.decorators:
            self.evaluate(decorator.decorator)
        self.captured(node)
        self.state.names[node.name.value] = Scalar("callable", node) if isinstance(node, cst.FunctionDef) else Opaque(node)


# ---------------------------------------------------------------------------------------------------------------------
# Pieces that need no state


def element_of(value: Value, at: int, count: int, star: int | None, node: cst.CSTNode) -> Value:
    """The value that target number ``at`` of ``count`` gets when ``value`` is unpacked; ``star`` is the starred one."""
    if isinstance(value, Choice):
        parts = [element_of(option, at, count, star, node) for option in value.alternatives]
        result = parts[0]
        for part in parts[1:]:
            result = join(result, part)
        return result
    if star is not None and at > star:
        if isinstance(value, Sequence) and value.exact and len(value.slots) >= count - 1:
            return value.slots[at - count].value
        return Item(value, at - count)
    if isinstance(value, Sequence):
        if any(slot.starred for slot in value.slots[: at + 1]):
            return Opaque(node)
        return value.slots[at].value if at < len(value.slots) else Opaque(node)
    if isinstance(value, SavedTensors):
        return SavedTensor(at)
    if isinstance(value, Scalar) and value.sort == "shape":
        return Scalar("int", node)
    if isinstance(value, InputsTuple) and at < len(value.inputs):
        return value.inputs[at]
    return Item(value, at)


def bound_names(function: cst.FunctionDef) -> frozenset[str]:
    """Every name that a function binds: parameters, targets, imports, nested definitions. ``global`` names are not."""
    found: set[str] = set()
    free: set[str] = set()
    for param in _parameters(function.params):
        found.add(param.name.value)
    _bind_block(function.body, found, free)
    return frozenset(found - free)


def _parameters(params: cst.Parameters) -> list[cst.Param]:
    listed = [*params.posonly_params, *params.params, *params.kwonly_params]
    if isinstance(params.star_arg, cst.Param):
        listed.append(params.star_arg)
    if params.star_kwarg is not None:
        listed.append(params.star_kwarg)
    return listed


def _assigned_in(body: cst.BaseSuite) -> frozenset[str]:
    found: set[str] = set()
    _bind_block(body, found, set())
    return frozenset(found)


def _bind_block(node: cst.CSTNode, found: set[str], free: set[str]) -> None:
    for child in node.children:
        if isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            found.add(child.name.value)
        elif isinstance(child, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)):
            _bind_target(child.target, found)
            _bind_block(child, found, free)
        elif isinstance(child, cst.AsName):
            _bind_target(child.name, found)
        elif isinstance(child, cst.ImportAlias):
            name = child.evaluated_alias or child.evaluated_name.partition(".")[0]
            found.add(name)
        elif isinstance(child, cst.Global):
            free.update(item.name.value for item in child.names)
        elif isinstance(child, (cst.MatchAs, cst.MatchStar)) and child.name is not None:
            found.add(child.name.value)
            _bind_block(child, found, free)
        elif isinstance(child, (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)):
            continue
        elif not isinstance(child, _LEAVES):
            _bind_block(child, found, free)


_LEAVES = (
    cst.Name,
    cst.SimpleString,
    cst.Integer,
    cst.Float,
    cst.Attribute,
    cst.SimpleWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Newline,
    cst.Return,
)


def _bind_target(target: cst.CSTNode, found: set[str]) -> None:
    if isinstance(target, cst.Name):
        found.add(target.value)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            _bind_target(element.value, found)
    elif isinstance(target, cst.StarredElement):
        _bind_target(target.value, found)


def _captures(pattern: cst.CSTNode) -> list[str]:
    found: list[str] = []
    if isinstance(pattern, (cst.MatchAs, cst.MatchStar, cst.MatchMapping)):
        name = pattern.rest if isinstance(pattern, cst.MatchMapping) else pattern.name
        if name is not None:
            found.append(name.value)
    for child in pattern.children:
        found.extend(_captures(child))
    return found


def _delete_targets(target: cst.CSTNode) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [each for element in target.elements for each in _delete_targets(element.value)]
    return [target] if isinstance(target, cst.BaseExpression) else []


def _revived(state: State) -> State:
    copy = state.fork()
    copy.live = True
    return copy


def _replaced(holder: Sequence, at: int | None, value: Value) -> Sequence:
    """A list after ``list[at] = value``; with an unknown index any element may have changed."""
    if at is not None and holder.exact and -len(holder.slots) <= at < len(holder.slots):
        slots = list(holder.slots)
        slots[at] = Slot(value)
        return Sequence(holder.kind, tuple(slots), holder.node)
    slots = [Slot(join(slot.value, value), starred=slot.starred) for slot in holder.slots]
    return Sequence(holder.kind, tuple(slots), holder.node)


def _sounds_final(func: cst.BaseExpression) -> bool:
    """Whether the name of a function says that it raises; its body may be in another file."""
    name = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
    return _FINAL.search(name) is not None


_FINAL = re.compile(
    r"raise|error|exception|fail|abort|unreach|unsupported|not_?impl|not_supported|exit|skip|fatal|assert", re.IGNORECASE
)


def _operator_text(operator: cst.BaseAugOp) -> str:
    return _OPERATORS.get(type(operator), "op=")


_OPERATORS: dict[type, str] = {
    cst.AddAssign: "+=",
    cst.SubtractAssign: "-=",
    cst.MultiplyAssign: "*=",
    cst.DivideAssign: "/=",
    cst.FloorDivideAssign: "//=",
    cst.ModuloAssign: "%=",
    cst.PowerAssign: "**=",
    cst.MatrixMultiplyAssign: "@=",
    cst.BitAndAssign: "&=",
    cst.BitOrAssign: "|=",
    cst.BitXorAssign: "^=",
    cst.LeftShiftAssign: "<<=",
    cst.RightShiftAssign: ">>=",
}

_SMALL: dict[type, Callable[..., None]] = {
    cst.Expr: Interpreter.expression_statement,
    cst.Return: Interpreter.return_,
    cst.Raise: Interpreter.raise_,
    cst.Assert: Interpreter.assert_,
    cst.Break: Interpreter.leave_loop,
    cst.Continue: Interpreter.leave_loop,
    cst.Del: Interpreter.delete,
    cst.Import: Interpreter.import_,
    cst.ImportFrom: Interpreter.import_,
    cst.Assign: Interpreter.assign,
    cst.AnnAssign: Interpreter.annotated,
    cst.AugAssign: Interpreter.augmented,
    cst.Pass: lambda self, node: None,
    cst.Global: lambda self, node: None,
    cst.Nonlocal: lambda self, node: None,
}

_COMPOUND: dict[type, Callable[..., None]] = {
    cst.If: Interpreter.if_,
    cst.With: Interpreter.with_,
    cst.Try: Interpreter.try_,
    cst.TryStar: Interpreter.try_,
    cst.Match: Interpreter.match,
    cst.For: Interpreter.for_,
    cst.While: Interpreter.while_,
    cst.FunctionDef: Interpreter.nested,
    cst.ClassDef: Interpreter.nested,
}
