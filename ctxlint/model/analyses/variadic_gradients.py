"""Gradients for ``*args``: how many does backward return for the named inputs before them?

A return such as ``(None,) + tuple(x.grad for x in xs)`` has an unknown number of gradients. But if it has exactly one
for each of ``*args``, the rest belongs to the named inputs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.function import Style
from ctxlint.model.interpreter.effects import may_stop
from ctxlint.model.interpreter.events import ContextWrite
from ctxlint.model.interpreter.local_names import only_assigned, times_bound
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.model.syntax import code_of, dotted, literal_integer, names_in
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.function import ApplyCall, FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method


class _Length(NamedTuple):
    """``fixed`` elements, and as many as the parts of ``*args`` have: "" is all of it, "[:n]" and "[n:]" are slices."""

    fixed: int
    parts: tuple[str, ...] = ()


_ALL = _Length(0, ("",))


def gradients_before_variadic(fn: FunctionClass, *, at_most: bool = False) -> Iterator[tuple[Returned, int]]:
    """The returns of backward that certainly have one gradient for each of ``*args``, and how many before these.

    ``at_most``: one for each, or fewer.
    """
    for returned in judged_gradients(fn):
        before = before_variadic(fn, returned, at_most=at_most) if returned.count is None else None
        if before is not None:
            yield returned, before


def returns_without_variadic(fn: FunctionClass) -> list[Returned]:
    """The returns of backward, if each has a gradient for the named inputs alone, and a call passes what it gets on.

    Such as ``Fn.apply(x, y, *args)`` for ``forward(ctx, x, y, *args)``: as many gradients are missing as there are.
    """
    named = len(fn.inputs)
    passed = (call.starred and call.applies and call.positional >= named for call in _calls_with_gradients(fn))
    if fn.variadic_inputs is None or not named or fn.required_inputs != named or not any(passed):
        return []
    returns = [*judged_gradients(fn)]
    short = all(each.known and each.count == named and not _is_empty(each) for each in fn.gradients)
    return returns if short and len(returns) == len(fn.gradients) else []


def _calls_with_gradients(fn: FunctionClass) -> Iterator[ApplyCall]:
    """The calls after which backward may run."""
    return (each for each in fn.calls if not (each.expects_error or each.gradients_off or each.double_starred))


def _is_empty(returned: Returned) -> bool:
    """Whether all gradients of a return are None, or some are spread from a sequence."""
    slots = returned.slots
    return all(is_none(each.value) is Tri.YES for each in slots) or any(each.starred for each in slots)


def before_variadic(fn: FunctionClass, returned: Returned, *, at_most: bool = False) -> int | None:
    """How many elements a returned sequence has apart from exactly one for each of ``*args``; None if unknown."""
    lengths, node = _lengths(fn), returned.event.node
    if lengths is not None:
        lengths.at_most = at_most
    value = node.value if isinstance(node, cst.Return) else None
    length = lengths.of(value, lengths.backward) if lengths is not None and value is not None else None
    return length.fixed if length is not None and length.parts == ("",) else None


def ends_with_variadic(fn: FunctionClass, returned: Returned) -> bool:
    """Whether the last elements of a returned sequence are certainly those for ``*args``."""
    lengths, node = _lengths(fn), returned.event.node
    value = node.value if isinstance(node, cst.Return) else None
    return lengths is not None and value is not None and lengths.end_of(value) == _ALL


def _lengths(fn: FunctionClass) -> _Lengths | None:
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or forward.inherited or backward.inherited:
        return None
    if fn.variadic_inputs is None or fn.required_inputs != len(fn.inputs) or fn.style is not Style.CTX_IN_FORWARD:
        return None
    return _Lengths(fn, forward, backward)


class _Lengths:
    """The lengths of expressions, as far as they follow from ``*args``."""

    def __init__(self, fn: FunctionClass, forward: Method, backward: Method) -> None:
        self.fn, self.forward, self.backward = fn, forward, backward
        self.open: set[tuple[str, str]] = set()
        """The variables and attributes whose length is being determined, with the method."""
        self.at_most = False
        """Whether the greatest possible length will do."""

    def of(self, node: cst.BaseExpression | None, method: Method) -> _Length | None:
        """The length of a sequence; None if unknown."""
        if isinstance(node, (cst.Tuple, cst.List)):
            return _sum(
                self.of(each.value, method) if isinstance(each, cst.StarredElement) else _Length(1)
                for each in node.elements
            )
        if isinstance(node, cst.BinaryOperation):
            return self.of_operation(node, method)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            clause = node.for_in
            if clause.ifs or clause.inner_for_in is not None:
                return None
            tests = [node.elt.test] if isinstance(node.elt, cst.IfExp) else []
            return self.of(clause.iter, method) or self.of_flags(clause.target, clause.iter, tests)
        if isinstance(node, cst.Call):
            return self.of_call(node, method)
        if isinstance(node, cst.Subscript):
            return self.of_slice(node, method)
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self.of_name(node, method)
        return None

    def end_of(self, node: cst.BaseExpression) -> _Length | None:
        """The length of the last part of a sequence that backward returns: of ``grads`` in ``(None, *grads)``."""
        if isinstance(node, (cst.Tuple, cst.List)) and node.elements:
            return self.end_of(node.elements[-1].value) if isinstance(node.elements[-1], cst.StarredElement) else None
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return self.end_of(node.right)
        if isinstance(node, cst.Call) and dotted(node.func) in ("tuple", "list") and len(node.args) == 1:
            return self.end_of(node.args[0].value)
        assigned = only_assigned(self.backward.node, node.value) if isinstance(node, cst.Name) else None
        return self.end_of(assigned) if assigned is not None else self.of(node, self.backward)

    def of_operation(self, node: cst.BinaryOperation, method: Method) -> _Length | None:
        """``a + b``, ``(None,) * 2``, ``[None] * len(args)``."""
        if isinstance(node.operator, cst.Add):
            return _sum(self.of(each, method) for each in (node.left, node.right))
        if isinstance(node.operator, cst.Multiply) and self.of(node.left, method) == _Length(1):
            number = self.of_number(node.right, method)
            if number is not None:
                return number
        times = literal_integer(node.right) if isinstance(node.right, cst.Integer) else None
        length = self.of(node.left, method) if isinstance(node.operator, cst.Multiply) and times is not None else None
        return _Length(length.fixed * times) if length is not None and not length.parts and times is not None else None

    def of_call(self, node: cst.Call, method: Method) -> _Length | None:
        """What keeps the length of an argument: ``tuple(x)``, ``map(f, x)``, ``torch.autograd.grad(y, x)``."""
        if dotted(node.func) == "range" and len(node.args) == 1:
            return self.of_number(node.args[0].value, method)
        known = _KEEPS_LENGTH.get(dotted(node.func) or "")
        if known is None or any(each.star for each in node.args) or (known == _MAP and len(node.args) != 2):
            return None
        passed = {each.keyword.value if each.keyword is not None else at: each for at, each in enumerate(node.args)}
        argument = passed.get(known[0], passed.get(known[1]))
        return self.of(argument.value, method) if argument is not None else None

    def of_number(self, node: cst.BaseExpression, method: Method) -> _Length | None:
        """``len(x)``, or a variable or an attribute of ctx that is such a number."""
        if isinstance(node, cst.Call):
            single = dotted(node.func) == "len" and len(node.args) == 1 and not node.args[0].star
            return self.of(node.args[0].value, method) if single else None
        if isinstance(node, cst.Name):
            written = only_assigned(method.node, node.value)
            return self.of_number(written, method) if isinstance(written, cst.Call) else None
        if not method.is_on_ctx(node):
            return None
        writes = [each for each in self.forward.facts.of(ContextWrite) if each.attribute == node.attr.value]
        writes += [each for each in self.backward.facts.of(ContextWrite) if each.attribute == node.attr.value]
        written = writes[0].value_node if len(writes) == 1 and not writes[0].by else None
        return self.of_number(written, self.forward) if isinstance(written, cst.Call) else None

    def of_slice(self, node: cst.Subscript, method: Method) -> _Length | None:
        """``args[:n]`` and ``args[n:]``; ``saved[1:]`` and ``saved[:-1]`` if there are as many others."""
        piece = node.slice[0].slice if len(node.slice) == 1 else None
        whole = self.of(node.value, method) if isinstance(piece, cst.Slice) and piece.step is None else None
        if whole is None or not isinstance(piece, cst.Slice):
            return None
        dropped = _dropped(piece)
        if dropped is not None and 0 < dropped <= whole.fixed:
            return _Length(whole.fixed - dropped, whole.parts)
        if whole != _ALL:
            return None
        if (piece.lower is None) == (piece.upper is None):
            return None
        lower = code_of(piece.lower) if piece.lower is not None else ""
        return _Length(0, (f"[{lower}:{code_of(piece.upper) if piece.upper is not None else ''}]",))

    def of_name(self, node: cst.Name | cst.Attribute, method: Method) -> _Length | None:
        """A variable, ``ctx.name`` or ``ctx.saved_tensors``."""
        name = dotted(node) or code_of(node)
        if (method.name, name) in self.open:
            return None
        collected = self.of_collected(name, method) if isinstance(node, cst.Name) else None
        if collected is not None or self.resized(name):
            return collected
        self.open.add((method.name, name))
        try:
            if isinstance(node, cst.Name):
                return self.of_variable(name, method)
            if name == f"{method.ctx_name}.saved_tensors":
                return self.of_saved()
            if name == f"{method.ctx_name}.needs_input_grad":
                return _Length(len(self.fn.inputs), ("",))
            return self.of_attribute(node.attr.value) if name == f"{method.ctx_name}.{node.attr.value}" else None
        finally:
            self.open.discard((method.name, name))

    def of_variable(self, name: str, method: Method) -> _Length | None:
        """A variable that is bound once."""
        times = times_bound(method.node.body)[name]
        variadic = self.fn.variadic_inputs
        if method is self.forward and variadic is not None and name == variadic.name:
            return _ALL if times == 0 else None
        assigned = only_assigned(method.node, name)
        return self.of(assigned, method) if assigned is not None else self.of_rest(name, method)

    def of_rest(self, name: str, method: Method) -> _Length | None:
        """``args`` of ``*args, last = …``."""
        for each in method.nodes_of(cst.Assign):
            target = each.targets[0].target if len(each.targets) == 1 else None
            elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
            starred = [part for part in elements if isinstance(part, cst.StarredElement)]
            if not starred or code_of(starred[0].value) != name or times_bound(method.node.body)[name] != 1:
                continue
            whole = self.of(each.value, method)
            fixed = whole.fixed - len(elements) + 1 if whole is not None else -1
            return _Length(fixed, whole.parts) if whole is not None and fixed >= 0 else None
        return None

    def of_collected(self, name: str, method: Method) -> _Length | None:
        """A list that starts empty, and to which one loop appends one element for each that it iterates over."""
        uses = [each for each in method.nodes_of(cst.Attribute) if dotted(each.value) == name]
        loops = [
            around
            for around in (method.above(uses[0]) if uses else ())
            if isinstance(around, cst.For) and all(around in method.above(each) for each in uses)
        ]
        starts = [each for each in method.nodes_of(cst.Assign) if dotted(each.targets[0].target) == name]
        if len(loops) != 1 or len(starts) != times_bound(method.node.body)[name] or len(starts) != 1:
            return None
        empty = isinstance(starts[0].value, cst.List) and not starts[0].value.elements
        inside = any(isinstance(each, (cst.For, cst.While)) for each in method.above(starts[0]))
        outermost = method.parents[loops[0]] is method.node.body
        if not empty or inside or not outermost or loops[0].orelse is not None:
            return None
        appended = _appended(loops[0].body, name)
        if appended is None or appended.at_end | appended.at_continue != {1}:
            return None
        first = loops[0].body.body[0]
        tests = [first.test] if isinstance(first, cst.If) else []
        return self.of(loops[0].iter, method) or self.of_flags(loops[0].target, loops[0].iter, tests)

    def of_flags(
        self, target: cst.BaseExpression, iterated: cst.BaseExpression, tests: Sequence[cst.BaseExpression]
    ) -> _Length | None:
        """At most one for each of ``*args``, as every round asks for the flag of another: ``needs_input_grad[i + 2]``.

        For one round more, that raises.
        """
        flags = f"{self.backward.ctx_name}.needs_input_grad"
        called = dotted(iterated.func) if isinstance(iterated, cst.Call) and self.at_most else None
        if called == "zip" and isinstance(iterated, cst.Call) and not any(each.star for each in iterated.args):
            return _ALL if any(self.of(each.value, self.backward) == _ALL for each in iterated.args) else None
        if called not in ("enumerate", "range") or not isinstance(iterated, cst.Call) or len(iterated.args) != 1:
            return None
        counter = target.elements[0].value if isinstance(target, cst.Tuple) else target
        first, name = len(self.fn.inputs), code_of(counter)
        asked = {f"{flags}[{name} + {first}]", f"{flags}[{first} + {name}]", f"{flags}[{first}:][{name}]"}
        always = [each.expression if isinstance(each, cst.UnaryOperation) else each for each in tests]
        return _ALL if any(code_of(each) in asked for each in always) else None

    def of_saved(self) -> _Length | None:
        """``ctx.saved_tensors``."""
        calls = self.fn.context_calls("save_for_backward")
        if len(calls) != 1 or calls[0].has_keywords or calls[0].by:
            return None
        return _sum(
            (self.of(each.node, self.forward) if isinstance(each.node, cst.BaseExpression) else None)
            if each.starred
            else _Length(1)
            for each in calls[0].arguments
        )

    def of_attribute(self, attribute: str) -> _Length | None:
        """``ctx.attribute``: what forward sets, if backward sets nothing of another length."""
        found: list[_Length | None] = []
        for method in (self.forward, self.backward):
            writes = [each for each in method.facts.of(ContextWrite) if each.attribute == attribute]
            if method is self.forward and len(writes) != 1:
                return None
            for write in writes:
                own = method is self.backward and self.is_of_itself(write.value_node, attribute)
                found.append(found[0] if own else None if write.by else self.of(write.value_node, method))
        return found[0] if len(set(found)) == 1 else None

    def is_of_itself(self, node: cst.BaseExpression | None, attribute: str) -> bool:
        """``[f(x) for x in ctx.attribute]``."""
        if not isinstance(node, (cst.ListComp, cst.GeneratorExp)) or node.for_in.ifs or node.for_in.inner_for_in:
            return False
        return code_of(node.for_in.iter) == f"{self.backward.ctx_name}.{attribute}"

    def resized(self, name: str) -> bool:
        """Whether a method adds or removes elements."""
        return any(
            node.attr.value in _RESIZING and dotted(node.value) == name
            for method in (self.forward, self.backward)
            for node in method.nodes_of(cst.Attribute)
        )


def _dropped(piece: cst.Slice) -> int | None:
    """How many elements ``[2:]`` or ``[:-2]`` leaves out; None for another slice."""
    bound = piece.lower if piece.upper is None else piece.upper if piece.lower is None else None
    if piece.upper is not None:
        negative = isinstance(bound, cst.UnaryOperation) and isinstance(bound.operator, cst.Minus)
        bound = bound.expression if negative and isinstance(bound, cst.UnaryOperation) else None
    return literal_integer(bound) if isinstance(bound, cst.Integer) else None


class _Appended(NamedTuple):
    """How often a block appends to a list: on the paths to its end, and on those to ``continue``."""

    at_end: frozenset[int]
    at_continue: frozenset[int] = frozenset()

    def then(self, others: Iterable[_Appended]) -> _Appended:
        """These, followed by one of some others."""
        ends, goes_on = set[int](), set(self.at_continue)
        for other in others:
            ends.update(first + second for first in self.at_end for second in other.at_end)
            goes_on.update(first + second for first in self.at_end for second in other.at_continue)
        return _Appended(frozenset(ends), frozenset(goes_on))


def _appended(block: cst.BaseSuite, name: str) -> _Appended | None:
    """How often a block appends to a list; None if that is unknown."""
    found = _Appended(frozenset([0]))
    for statement in block.body:
        arms: list[_Appended | None] = []
        if isinstance(statement, cst.If):
            arm: cst.If | cst.Else | None = statement
            while isinstance(arm, cst.If):
                arms.append(_appended(arm.body, name))
                arm = arm.orelse
            arms.append(_appended(arm.body, name) if arm is not None else _Appended(frozenset([0])))
        elif isinstance(statement, cst.With):
            arms.append(_appended(statement.body, name))
        elif isinstance(statement, cst.SimpleStatementLine):
            arms.append(_appended_in_line(statement, name))
        elif name in names_in(statement) or may_stop(statement):
            return None
        known = [each for each in arms if each is not None]
        if len(known) < len(arms):
            return None
        found = found.then(known) if arms else found
    return found


def _appended_in_line(line: cst.SimpleStatementLine, name: str) -> _Appended | None:
    count = 0
    for small in line.body:
        if isinstance(small, (cst.Break, cst.Return)):
            return None
        if isinstance(small, (cst.Continue, cst.Raise)):
            return _Appended(frozenset(), frozenset([count] if isinstance(small, cst.Continue) else []))
        call = small.value if isinstance(small, cst.Expr) else None
        count += isinstance(call, cst.Call) and dotted(call.func) == f"{name}.append"
    return _Appended(frozenset([count]))


def _sum(lengths: Iterable[_Length | None]) -> _Length | None:
    fixed, parts = 0, Counter[str]()
    for length in lengths:
        if length is None:
            return None
        fixed += length.fixed
        parts.update(length.parts)
    for part in [each for each in parts if each.startswith("[:")]:
        rest = f"[{part[2:-1]}:]"
        both = min(parts[part], parts[rest])
        parts[""] += both
        parts[part] -= both
        parts[rest] -= both
    return _Length(fixed, tuple(sorted(parts.elements())))


_MAP = (1, "iterable")
_KEEPS_LENGTH: dict[str, tuple[int, str]] = {
    "tuple": (0, "iterable"),
    "list": (0, "iterable"),
    "reversed": (0, "sequence"),
    "enumerate": (0, "iterable"),
    "map": _MAP,
    "autograd.grad": (1, "inputs"),
    "torch.autograd.grad": (1, "inputs"),
    "detach_variable": (0, "inputs"),
    "torch.utils.checkpoint.detach_variable": (0, "inputs"),
}
"""The functions whose result has as many elements as one of their arguments, with its position and name."""

_RESIZING = frozenset(["append", "extend", "insert", "pop", "remove", "clear"])
