"""Conditions: the guards of their arms, the question they ask, and how they narrow values."""

from __future__ import annotations

import operator as operators
from functools import partial
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.model.interpreter.events import Asks, Assigned, Escape, FlagsTested, Guard, Question
from ctxlint.model.interpreter.names import canonical
from ctxlint.model.interpreter.type_tests import TENSOR, is_instance, only_instances, type_of, type_test
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Argument,
    Choice,
    Constant,
    Context,
    Fresh,
    Mapping,
    NeedsInputGrad,
    Opaque,
    Scalar,
    Sequence,
    SomeTensor,
    Tri,
    Value,
    is_container,
    is_none,
    join_all,
    parameters_among,
    taken_from,
    without,
)
from ctxlint.model.syntax import literal_text, without_negations, words_of
from ctxlint.torch_api.autograd import CONTEXT_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

    from ctxlint.model.interpreter.state import State
    from ctxlint.model.interpreter.walk import Walk


def enter_arm(walk: Walk, before: State, node: cst.CSTNode, test: cst.BaseExpression, holds: bool) -> None:
    """Begin the arm of ``node`` on which ``test`` has the outcome ``holds``."""
    walk.state = before
    guards = guards_of(walk, test, holds, node)
    walk.state = before.fork(*guards)
    narrow(walk, test, holds)


def guards_of(walk: Walk, test: cst.BaseExpression, holds: bool, block: cst.CSTNode) -> tuple[Guard, ...]:
    """The guards of an arm: the whole test, and each part of it that certainly holds there."""
    if holds:
        _note_flags(walk, test)
    guards = [_make_guard(walk, test, holds, id(block))]
    for part, part_holds in certain_parts(test, holds):
        if part is not test:
            guards.append(_make_guard(walk, part, part_holds, id(part)))
    return tuple(guards)


def asks_ctx(walk: Walk, guard: Guard) -> bool:
    """Whether a condition asks which inputs need a gradient, or for an attribute of ctx."""
    if guard.asks is not None and guard.asks.about_flag:
        return True
    asked = guard.test.left if isinstance(guard.test, cst.Comparison) else guard.test
    while isinstance(asked, cst.UnaryOperation):
        asked = asked.expression
    return isinstance(asked, cst.Attribute) and isinstance(walk.peek(asked.value), Context)


def _note_flags(walk: Walk, test: cst.BaseExpression) -> None:
    """Record every operand of a test that is ``ctx.needs_input_grad`` as a whole."""
    if isinstance(test, cst.BooleanOperation):
        _note_flags(walk, test.left)
        _note_flags(walk, test.right)
    elif isinstance(test, cst.UnaryOperation):
        _note_flags(walk, test.expression)
    elif isinstance(test, (cst.Name, cst.Attribute)) and walk.peek(test) == NeedsInputGrad():
        walk.record(FlagsTested, test)


def _make_guard(walk: Walk, test: cst.BaseExpression, holds: bool, block: int) -> Guard:
    return Guard(block, str(holds), test, holds, asked_by(walk, test, holds), _asked_by_parts(walk, test, holds))


def _asked_by_parts(walk: Walk, test: cst.BaseExpression, holds: bool) -> tuple[Asks, ...]:
    """The questions of the parts of a compound test one of which decided it; see ``Guard``."""
    parts = _deciding_parts(_test_held_by(walk, test), holds)
    asked = [asked_by(walk, part, part_holds) for part, part_holds in parts] if len(parts) > 1 else []
    known = tuple(each for each in asked if each is not None)
    return known if len(known) == len(asked) else ()


def _test_held_by(walk: Walk, test: cst.BaseExpression) -> cst.BaseExpression:
    """The compound test whose outcome a name holds; any other test itself."""
    node = held_test(walk, test, walk.peek(test)) if isinstance(test, cst.Name) else None
    return node if isinstance(node, cst.BooleanOperation) else test


def held_test(walk: Walk, test: cst.BaseExpression, value: Value) -> cst.BaseExpression | None:
    """The other test whose outcome a value is; None if that is unknown, or may have been about other values.

    It was about the values at the time: those of names that were bound again since are not known any more.
    """
    held = value.node if isinstance(value, Scalar) else None
    if not isinstance(held, cst.BaseExpression) or held is test:
        return None
    names = frozenset(words_of(held))
    for event in reversed(walk.recorder.events):
        if isinstance(event, Assigned):
            if event.value_node is held:
                break
            if event.name in names:
                return None
    return held


def asked_by(walk: Walk, test: cst.BaseExpression, holds: bool) -> Asks | None:
    """The question of a condition, if it is one of the known ones."""
    test, holds = without_negations(test, holds)
    if isinstance(test, cst.Comparison):
        negated = _tests_none(test)
        return None if negated is None else Asks(Question.IS_NONE, walk.peek(test.left), holds is not negated)
    if isinstance(test, cst.Attribute):
        required = test.attr.value == "requires_grad"
        return Asks(Question.REQUIRES_GRAD, walk.peek(test.value), holds) if required else None
    if isinstance(test, (cst.Name, cst.Subscript)):
        return _value_asks(walk, test, walk.peek(test), holds)
    return _call_asks(walk, test, holds) if isinstance(test, cst.Call) else None


def _value_asks(walk: Walk, test: cst.BaseExpression, value: Value, holds: bool) -> Asks | None:
    """The question of a tested value: that of a flag, or of a name that holds the outcome of another test."""
    if isinstance(value, NeedsInputGrad) and value.index is not None:
        return Asks(Question.NEEDS_INPUT_GRAD, value, holds)
    held = held_test(walk, test, value)
    return asked_by(walk, held, holds) if held is not None else None


def _call_asks(walk: Walk, test: cst.Call, holds: bool) -> Asks | None:
    """The question of ``torch.is_grad_enabled()`` and ``any(ctx.needs_input_grad)``."""
    callee = canonical(walk, test.func)
    if callee == "torch.is_grad_enabled":
        return Asks(Question.GRAD_MODE, UNKNOWN, holds)
    if callee != "builtins.any" or len(test.args) != 1:
        return None
    flags = walk.peek(test.args[0].value)
    return Asks(Question.NEEDS_INPUT_GRAD, flags, holds) if flags == NeedsInputGrad() else None


def is_compound(test: cst.BaseExpression | None) -> TypeGuard[cst.UnaryOperation | cst.BooleanOperation]:
    """Whether a condition is ``not a``, ``a and b`` or ``a or b``."""
    negated = isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)
    return negated or isinstance(test, cst.BooleanOperation)


def outcome_of_parts(
    test: cst.UnaryOperation | cst.BooleanOperation, outcome: Callable[[cst.BaseExpression], bool | None]
) -> bool | None:
    """The outcome of a compound condition, of those of its parts; None if they do not decide it."""
    if isinstance(test, cst.UnaryOperation):
        inner = outcome(test.expression)
        return None if inner is None else not inner
    found = {outcome(test.left), outcome(test.right)}
    decisive = isinstance(test.operator, cst.Or)
    return decisive if decisive in found else None if None in found else not decisive


def decided(walk: Walk, test: cst.BaseExpression) -> bool | None:
    """The outcome of a test on every path: a literal, or a question about a name or an attribute of ctx that holds one.

    The method itself has bound it; constants of the module do not count, because users are meant to change them.
    """
    if is_compound(test):
        return outcome_of_parts(test, lambda part: decided(walk, part))
    if isinstance(test, cst.Integer) or _is_local(walk, test):
        value = walk.peek(test)
        if isinstance(value, Constant):
            return bool(value.value)
    if isinstance(test, cst.Comparison) and _is_local(walk, test.left):
        negated = _tests_none(test)
        value = walk.peek(test.left)
        if negated is not None:
            return (is_none(value) is Tri.YES) is not negated if is_plain(value) else None
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        part = test.comparisons[0]
        numbers = _known_number(walk, test.left), _known_number(walk, part.comparator)
        texts = _known_text(walk, test.left), _known_text(walk, part.comparator)
        return _compared(part.operator, *numbers) if None in texts else _compared(part.operator, *texts)
    asked = type_test(test, partial(canonical, walk))
    if asked is not None:
        answer = is_instance(walk.peek(asked[0]), asked[1])
        return None if answer is Tri.UNKNOWN else answer is Tri.YES
    if _asks_for_own_attribute(walk, test):
        return True
    return False if canonical(walk, test) == "typing.TYPE_CHECKING" else None


def _asks_for_own_attribute(walk: Walk, test: cst.BaseExpression) -> bool:
    """Whether a test is ``hasattr(ctx, "save_for_backward")``: every ctx has it."""
    if not isinstance(test, cst.Call) or len(test.args) != 2 or canonical(walk, test.func) != "builtins.hasattr":
        return False
    owner, name = (each.value for each in test.args)
    text = literal_text(name)
    return text in _OF_EVERY_CTX and isinstance(walk.peek(owner), Context)


_OF_EVERY_CTX = CONTEXT_METHODS - {"mark_shared_storage"} | {"needs_input_grad", "saved_tensors"}


def _known_number(walk: Walk, node: cst.BaseExpression) -> float | None:
    """The known value of a number, a local name, or the length of what a local name holds."""
    if isinstance(node, cst.Call) and len(node.args) == 1 and canonical(walk, node.func) == "builtins.len":
        held = node.args[0].value
        value = walk.peek(held) if isinstance(held, cst.Name) and _is_local(walk, held) else UNKNOWN
        return len(value.slots) if isinstance(value, Sequence) and value.exact and value.kind != "set" else None
    if isinstance(node, (cst.Integer, cst.Float)) or _is_local(walk, node):
        value = walk.peek(node)
        return value.value if isinstance(value, Constant) and type(value.value) in (int, float) else None  # type: ignore[return-value]
    return None


def _known_text(walk: Walk, node: cst.BaseExpression) -> str | None:
    """The known value of a string, or of what holds one."""
    value = walk.peek(node) if isinstance(node, cst.SimpleString) or _is_local(walk, node) else None
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else None


def asks_unknown_type(walk: Walk, test: cst.BaseExpression) -> bool:
    """Whether a test asks for the type of what the caller gives, or of an unknown result."""
    if isinstance(test, cst.UnaryOperation):
        return asks_unknown_type(walk, test.expression)
    if isinstance(test, cst.BooleanOperation):
        return asks_unknown_type(walk, test.left) or asks_unknown_type(walk, test.right)
    if isinstance(test, cst.Name):
        held = held_test(walk, test, walk.peek(test))
        return held is not None and asks_unknown_type(walk, held)
    subject = _subject_of_type(walk, test)
    value = walk.peek(subject) if subject is not None else NONE
    return isinstance(taken_from(value), (Argument, Opaque))


def tensor_asked_for(walk: Walk, test: cst.BaseExpression) -> Argument | None:
    """The argument of a function that a test asks to be a tensor, if it is one for the caller in question."""
    asked = type_test(test, partial(canonical, walk))
    if asked is None or TENSOR not in asked[1]:
        return None
    value = walk.peek(asked[0])
    return value if isinstance(value, Argument) and value.tensor is Tri.YES else None


def _subject_of_type(walk: Walk, test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The subject of ``isinstance(x, C)``, and of ``type(x) is C``; None for any other test."""
    if not isinstance(test, cst.Comparison):
        asked = type_test(test, partial(canonical, walk))
        return None if asked is None else asked[0]
    call = test.left
    if not isinstance(call, cst.Call) or len(call.args) != 1 or canonical(walk, call.func) != "builtins.type":
        return None
    return call.args[0].value


def by_type(walk: Walk, value: Value) -> Value:
    """What a test of an unknown type decides: which of the containers and other values it may be is unknown, too.

    A function that maps over any structure gives a list for a list, and a tensor for a tensor.
    """
    containers = [option for option in value.options() if is_container(option) is Tri.YES]
    if not containers or (len(containers) == len(value.options()) and len(set(map(type_of, containers))) == 1):
        return value
    walk.state.escape(value)
    return join_all(Opaque(getattr(each, "node", None)) if each in containers else each for each in value.options())


def _is_local(walk: Walk, node: cst.BaseExpression) -> bool:
    """Whether the method itself determines the value of a name, or of an attribute of ctx that no other code sets."""
    if isinstance(node, cst.Attribute):
        own = node.attr.value in walk.state.attributes and isinstance(walk.peek(node.value), Context)
        return own and not any(isinstance(event, Escape) for event in walk.recorder.events)
    return isinstance(node, cst.Name) and (node.value in ("True", "False") or node.value in walk.state.names)


def narrow(walk: Walk, test: cst.BaseExpression, holds: bool) -> None:
    """Refine values by a test: after ``if x is None``, x is None in one arm and not None in the other."""
    for part, part_holds in certain_parts(test, holds):
        _narrow_one(walk, part, part_holds)


def _narrow_one(walk: Walk, test: cst.BaseExpression, holds: bool) -> None:
    if isinstance(test, cst.Name):
        value = walk.state.names.get(test.value)
        if value is not None and holds:
            walk.state.names[test.value] = without(value, NONE)
        return
    asked = type_test(test, partial(canonical, walk))
    if asked is not None and isinstance(asked[0], cst.Name) and asked[0].value in walk.state.names:
        name = asked[0].value
        walk.state.names[name] = only_instances(walk.state.names[name], asked[1], holds)
        return
    if not isinstance(test, cst.Comparison) or not isinstance(test.left, cst.Name):
        return
    negated = _tests_none(test)
    name = test.left.value
    value = walk.state.names.get(name)
    if negated is None or value is None:
        return
    if holds is negated:
        walk.state.names[name] = without(value, NONE)
    elif is_none(value) is not Tri.NO and isinstance(value, Choice):
        walk.state.names[name] = NONE
    else:
        walk.state.absent |= parameters_among((value,))


def is_plain(value: Value) -> bool:
    """Whether it is certain that it is None, or that it is not. A gradient may be undefined, so it never is."""
    if isinstance(value, Argument):
        return value.plain
    return isinstance(value, (Constant, Fresh, SomeTensor, Sequence, Mapping, Context))


def _compared(operator: cst.BaseCompOp, left: float | str | None, right: float | str | None) -> bool | None:
    """The outcome of comparing two numbers or strings; None if one of them is unknown."""
    compare = _COMPARISONS.get(type(operator))
    return None if compare is None or left is None or right is None else compare(left, right)


_COMPARISONS: dict[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.Equal: operators.eq,
    cst.NotEqual: operators.ne,
    cst.LessThan: operators.lt,
    cst.LessThanEqual: operators.le,
    cst.GreaterThan: operators.gt,
    cst.GreaterThanEqual: operators.ge,
}


def _tests_none(test: cst.Comparison) -> bool | None:
    """False for ``… is None``, True for ``… is not None``, None for any other comparison."""
    part = test.comparisons[0]
    if len(test.comparisons) != 1 or type(part.operator) not in (cst.Is, cst.IsNot):
        return None
    if not isinstance(part.comparator, cst.Name) or part.comparator.value != "None":
        return None
    return isinstance(part.operator, cst.IsNot)


def certain_parts(test: cst.BaseExpression, holds: bool) -> list[tuple[cst.BaseExpression, bool]]:
    """The parts of a test that certainly hold (or certainly do not) on the arm with the outcome ``holds``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return certain_parts(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.And) is holds:
            return [*certain_parts(test.left, holds), *certain_parts(test.right, holds)]
        return []
    return [(test, holds)]


def _deciding_parts(test: cst.BaseExpression, holds: bool) -> list[tuple[cst.BaseExpression, bool]]:
    """The parts of a test of which at least one caused the outcome ``holds``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _deciding_parts(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And) is not holds:
        return [*_deciding_parts(test.left, holds), *_deciding_parts(test.right, holds)]
    return [(test, holds)]
