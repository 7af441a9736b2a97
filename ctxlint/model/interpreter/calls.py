"""What a call does and what it returns: methods of ctx, of tensors, functions of torch, helpers of the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import libcst as cst

from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.events import ContextCall, ContextLent, Escape, GenericCall, Mutation
from ctxlint.model.interpreter.sequences import (
    after_method,
    as_sequence,
    is_mutable,
    mutable_parts,
    spread,
    substitute,
    unknown_content,
    unknown_many,
)
from ctxlint.model.interpreter.tensor_calls import Arguments, TensorCalls
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Choice,
    Constant,
    Context,
    Fresh,
    Imported,
    Item,
    Mapping,
    Opaque,
    SavedTensors,
    Scalar,
    Sequence,
    Slot,
    Tri,
    Value,
    View,
    is_container,
    is_tensor,
    join,
    join_all,
    kind_of,
    leaves,
    tensor_when_used,
)
from ctxlint.model.syntax import root_name
from ctxlint.torch_api import autograd, operations, python

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Mapping as MappingOf

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.summary import Summary, Write


class Told(Protocol):
    """Turns what a summary says into values of the caller."""

    def back(self, value: Value) -> Value: ...

    def returned(self, value: Value, node: cst.Call) -> Value: ...


class Followed(Protocol):
    """Gives a function of the project and its summary for these arguments; None where it is unknown."""

    def __call__(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> tuple[Definition, Summary, Told] | None: ...

    def kernel(
        self, name: str, arguments: tuple[Slot, ...], keywords: MappingOf[str, Slot]
    ) -> tuple[Definition, tuple[Write, ...]] | None:
        """A kernel and what it writes when it is launched with these arguments; None for anything else."""

    def only_reads(self, qualname: str, given: int | str) -> bool:
        """Whether the function certainly only reads attributes of what it is ``given`` there."""


class Calls(TensorCalls):
    """Evaluates calls."""

    follow: Followed | None = None
    """Follows a function of the project, by its resolved name, where that is allowed."""

    def call(self, node: cst.Call) -> Value:
        func = node.func
        if isinstance(func, cst.Attribute):
            receiver = self.evaluate(func.value)
            if isinstance(receiver, Context):
                return self.context_method(node, func.attr.value)
            if not isinstance(receiver, Imported):
                self.note_none(func, receiver)
                return self.method(node, func, receiver)
        callee = self.canonical(func)
        if callee is None:
            self.evaluate(func)
        elif isinstance(func, cst.Name):
            self.names_read.add(func.value)
        return self.function(node, callee)

    # Arguments

    def arguments(self, node: cst.Call, callee: str | None, keeps_context: bool = False) -> Arguments:
        """Evaluate the arguments; a ctx among them escapes, unless the callee is known to let go of it."""
        positional: list[Slot] = []
        keywords: dict[str, Slot] = {}
        open_ended = False
        for argument in node.args:
            value = self.evaluate(argument.value)
            if isinstance(value, Context) and not keeps_context:
                self.pass_context(node, argument, callee)
            if argument.star == "*":
                positional.extend(spread(value, argument.value))
            elif argument.star == "**":
                open_ended = True
            elif argument.keyword is not None:
                keywords[argument.keyword.value] = Slot(value, argument.value)
            else:
                positional.append(Slot(value, argument.value))
        return Arguments(tuple(positional), keywords, open_ended)

    # ctx

    def pass_context(self, node: cst.Call, argument: cst.Arg, callee: str | None) -> None:
        """The ctx is an argument: it escapes, unless the callee is seen to read attributes of it and no more."""
        if not self.is_lent(node, argument, callee):
            self.record(Escape, node, how="passed", callee=callee)
            return
        self.record(ContextLent, node)
        for kept in tuple(self.state.attributes.values()):
            self.share(kept)

    def is_lent(self, node: cst.Call, argument: cst.Arg, callee: str | None) -> bool:
        before = node.args[: next(at for at, each in enumerate(node.args) if each is argument)]
        if self.follow is None or callee is None or not callee.startswith(LOCAL):
            return False
        if any(each.star for each in (*before, argument)) or len(set(self.meanings(node.func))) != 1:
            return False
        given = len(before) if argument.keyword is None else argument.keyword.value
        return self.follow.only_reads(callee, given)

    def context_method(self, node: cst.Call, name: str) -> Value:
        """``ctx.name(...)``."""
        if name in autograd.CONTEXT_METHODS:
            arguments = self.arguments(node, name)
            self.record(
                ContextCall,
                node,
                method=name,
                arguments=arguments.positional,
                has_keywords=bool(arguments.keywords) or arguments.open_ended,
                statement=self.statement,
            )
            return NONE
        self.context_attribute(node, name, called=True)
        self.arguments(node, f"ctx.{name}")
        return Opaque(node)

    def context_access_by_string(self, node: cst.Call, callee: str, arguments: Arguments) -> Value | None:
        """``getattr(ctx, "x", …)`` and its like; None where this is no such call."""
        owner = arguments.value(0)
        if not isinstance(owner, Context):
            return None
        attribute = arguments.value(1)
        name = attribute.value if isinstance(attribute, Constant) and isinstance(attribute.value, str) else None
        if callee in ("builtins.setattr", "builtins.delattr", "builtins.vars"):
            self.record(Escape, node, how="stored", callee=callee)
            return NONE
        if callee == "builtins.getattr":
            if name is None:
                self.record(Escape, node, how="stored", callee=callee)
                return Opaque(node)
            return self.context_attribute(node, name, guarded=len(arguments.positional) > 2)
        if callee == "builtins.hasattr" and name is not None:
            self.context_attribute(node, name, guarded=True)
            return Scalar("bool", node)
        return None

    # Methods of values

    def method(self, node: cst.Call, func: cst.Attribute, receiver: Value) -> Value:
        """``receiver.name(...)`` for a receiver that is no module."""
        name = func.attr.value
        if isinstance(receiver, SavedTensors):
            if name not in ("count", "index"):
                self.saved_tuple_used(node, func.value, f"`.{name}()`")
            self.arguments(node, None)
            return Opaque(node)
        keeps = isinstance(receiver, Item) and isinstance(receiver.of, Imported)
        arguments = self.arguments(node, f".{name}", keeps_context=keeps)
        if any(is_mutable(option) for option in receiver.options()):
            return self.container_method(node, receiver, name, arguments)
        if not tensor_when_used(receiver):
            self.lend(arguments)
        if is_container(receiver) is Tri.YES:
            return Opaque(node)
        return self.tensor_method(node, func, receiver, name, arguments)

    # Lists and dicts, and who holds them

    def container_method(self, node: cst.Call, receiver: Value, name: str, arguments: Arguments) -> Value:
        """A method of a list, set or dict, or of one of several."""
        results: list[Value] = []

        def after(container: Value) -> Value:
            if not isinstance(container, Sequence) or container.kind != "list":
                self.lend(arguments)
                results.append(Opaque(node))
                return unknown_content(container)
            changed, result = after_method(container, name, arguments.positional, node)
            results.append(result)
            return changed

        self.change(receiver, after)
        return join_all(results)

    def change(self, holder: Value, after: Callable[[Value], Value]) -> None:
        """A list, set or dict, or one of several, is changed: whoever holds it sees it as it is ``after``."""
        replacements: dict[int, Value] = {}
        for option in holder.options():
            if is_mutable(option):
                replacements[id(option)] = after(option)
        if isinstance(holder, Choice):
            whole = join_all(replacements.get(id(option), option) for option in holder.alternatives)
            for option in holder.alternatives:  # a name that holds this very one may or may not see the change
                if id(option) in replacements:
                    replacements[id(option)] = join(option, replacements[id(option)])
            replacements[id(holder)] = whole
        for holders in (self.state.names, self.state.attributes):
            for name, value in holders.items():
                holders[name] = substitute(value, replacements)

    def lend(self, arguments: Arguments) -> None:
        """Lists and dicts are given to code that may change them."""
        for slot in (*arguments.positional, *arguments.keywords.values()):
            self.share(slot.value)

    def share(self, value: Value) -> None:
        """Others hold a value from now on: what is in it, where that can change, is not known any more."""
        if isinstance(value, (Choice, Sequence, Mapping)):
            for part in mutable_parts(value):
                self.change(part, unknown_content)

    # Functions

    def function(self, node: cst.Call, callee: str | None) -> Value:
        """A call of anything but a method of a value."""
        builtin = callee[len("builtins.") :] if callee is not None and callee.startswith("builtins.") else None
        keeps = builtin in python.CONTEXT_SAFE_BUILTINS or builtin in ("setattr", "delattr", "vars")
        arguments = self.arguments(node, callee, keeps_context=keeps)
        if builtin is None and (callee is None or not callee.startswith(operations.TORCH_NAMESPACES)):
            self.lend(arguments)
        if callee is None:
            self.launch(node, arguments)
            return Opaque(node)
        if builtin == "super":
            self.record(GenericCall, node, callee=callee, arguments=arguments.positional, statement=self.statement)
        if builtin is not None:
            by_string = self.context_access_by_string(node, callee, arguments)
            return by_string if by_string is not None else self.builtin(node, builtin, arguments)
        followed = self.followed(node, callee, arguments)
        self.record(
            GenericCall,
            node,
            callee=callee,
            arguments=arguments.positional,
            keywords=tuple(arguments.keywords.items()),
            statement=self.statement,
            followed=followed[0] if followed is not None else None,
        )
        if followed is None:
            return Opaque(node) if callee.startswith(LOCAL) else self.torch_function(node, callee, arguments)
        definition, summary, told = followed
        for write in summary.writes:
            self.written_by(node, definition.name, write, told.back(write.target), arguments)
        return told.returned(summary.returned, node)

    def launch(self, node: cst.Call, arguments: Arguments) -> None:
        """``kernel[grid](...)``."""
        kernel = node.func.value if isinstance(node.func, cst.Subscript) else None
        names = set(self.meanings(kernel)) if kernel is not None else set()
        name = names.pop() if len(names) == 1 else None
        if name is None or self.follow is None or arguments.open_ended:
            return
        launched = self.follow.kernel(name, arguments.positional, arguments.keywords)
        for write in launched[1] if launched is not None else ():
            self.written_by(node, launched[0].name, write, write.target, arguments)  # type: ignore[index]

    def followed(self, node: cst.Call, name: str, arguments: Arguments) -> tuple[Definition, Summary, Told] | None:
        """What is known of a function of the project, where the name certainly means one."""
        if name.startswith(_NEVER_FOLLOWED) or name in operations.WRITING_FUNCTIONS:
            return None
        if self.follow is None or arguments.open_ended or len(set(self.meanings(node.func))) != 1:
            return None
        return self.follow(name, arguments.positional, arguments.keywords)

    def written_by(self, node: cst.Call, by: str, write: Write, target: Value, arguments: Arguments) -> None:
        """A function of the project writes into what it is given, or into what ctx has."""
        if is_tensor(target) is Tri.NO:
            return
        written = _given_as(target, (*arguments.positional, *arguments.keywords.values()))
        self.record(
            Mutation,
            node,
            target=target,
            target_node=written,
            how=write.how,
            name=root_name(written),
            statement=self.statement,
            by=by,
            through=write.steps,
        )

    def builtin(self, node: cst.Call, name: str, arguments: Arguments) -> Value:
        first = arguments.value(0)
        if name in python.UNFATHOMABLE_BUILTINS:
            self.complete = False
        if name in ("tuple", "list"):
            if first is None:
                return Sequence(name, (), node) if not arguments.positional else Opaque(node)
            return as_sequence(first, name, node)
        if name == "dict":
            more = () if not arguments.positional and not arguments.open_ended else (Slot(UNKNOWN, starred=True),)
            return Mapping((*arguments.keywords.values(), *more), node)
        if name in _MAKERS:
            return unknown_many(_MAKERS[name], node)
        if name in python.BUILTIN_SCALARS:
            return Scalar(python.BUILTIN_SCALARS[name], node)
        if name in ("abs", "pow", "round") and first is not None and tensor_when_used(first):
            return Fresh(node, kind_of(first))
        return Opaque(node)


_NEVER_FOLLOWED = ("torch.", "builtins.", ".torch.")
"""How names begin that are not those of functions of the project."""

_MAKERS = {
    "sorted": "list",
    "set": "set",
    "frozenset": "set",
    **dict.fromkeys(("reversed", "zip", "enumerate", "map", "filter"), "generator"),
}
"""Builtins that make something to walk over, by the kind of it."""


def _given_as(target: Value, slots: tuple[Slot, ...]) -> cst.BaseExpression | None:
    """The argument that a value is, is in, or is a view of."""
    while True:
        for slot in slots:
            if slot.value == target or target in leaves(slot.value):
                return slot.node
        if not isinstance(target, (View, Item)):
            return None
        target = target.of
