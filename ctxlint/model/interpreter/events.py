"""The events of a method: the facts that one walk over its body records, with the path condition of each."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.interpreter.values import NONE, UNKNOWN, Slot, Value
from ctxlint.model.syntax import code_of, words_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.index.kernel_names import Aliases
    from ctxlint.model.index.project import Definition
    from ctxlint.source.source import Span


@record
class Guard:
    """One test that had to have the outcome ``holds`` for an event to happen.

    ``block`` identifies the statement: two events under the same block and another ``arm`` exclude each other.
    ``test`` is the condition; None for the body of a loop, a ``try``, a ``case``. ``asks`` is what the condition asks,
    where that is one of the known questions. ``one_of`` is for ``a and b`` that does not hold, and ``a or b`` that
    does: what its parts ask, with the answers of which one at least was given; empty where some part asks other things.
    """

    block: int
    arm: str
    test: cst.BaseExpression | None = field(default=None, compare=False)
    holds: bool = True
    asks: Asks | None = None
    one_of: tuple[Asks, ...] = field(default=(), compare=False)

    @cached_property
    def text(self) -> str:
        """The code of the condition; empty if there is none."""
        return code_of(self.test).strip() if self.test is not None else ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The names, numbers and strings in the condition, in order; equal if ``text`` is."""
        return tuple(words_of(self.test)) if self.test is not None else ()

    def mentions(self, part: str) -> bool:
        """Whether a name or a string in the condition contains ``part``; unlike ``text``, that needs no layout."""
        return any(part in word for word in self.words)

    def reads_like(self, other: Guard) -> bool:
        """Whether both conditions are written the same; False if there is none."""
        return self.test is not None and self.words == other.words and self.text == other.text

    @property
    def is_case(self) -> bool:
        """Whether the test is a pattern of ``match``, which has no question that is known."""
        return self.arm.startswith("case ")

    @property
    def has_parts(self) -> bool:
        """Whether the parts of a compound test are guards of their own: all of ``a and b`` hold if it does."""
        return isinstance(self.test, cst.BooleanOperation) and isinstance(self.test.operator, cst.And) is self.holds

    def is_opposite_of(self, other: Guard) -> bool:
        """Whether the two cannot both hold, or at least look so: the same text may mean another value later."""
        if self.block == other.block:
            return self.arm != other.arm
        if self.asks is not None and other.asks is not None and self.asks.is_opposite_of(other.asks):
            return True
        return self.holds != other.holds and self.reads_like(other)

    def holds_with(self, other: Guard) -> bool:
        """Whether it certainly holds if ``other`` does: it is the same, or asks the same."""
        same = self.asks is not None and self.asks == other.asks and self.asks.value != UNKNOWN
        return same or self == other


class Question(Enum):
    """The kinds of condition that matter to autograd."""

    NEEDS_INPUT_GRAD = "needs_input_grad[i]"
    REQUIRES_GRAD = "x.requires_grad"
    IS_NONE = "x is None"
    GRAD_MODE = "torch.is_grad_enabled()"


@record
class Asks:
    """The question of a condition: its kind, its subject, and the answer on this path."""

    question: Question
    value: Value
    answer: bool

    @property
    def about_flag(self) -> bool:
        """Whether the question is if a tensor needs a gradient."""
        return self.question in (Question.NEEDS_INPUT_GRAD, Question.REQUIRES_GRAD)

    def is_opposite_of(self, other: Asks) -> bool:
        """Whether the same question has the other answer."""
        same = self.question is other.question and self.value == other.value and self.value != UNKNOWN
        return same and self.answer != other.answer


Orders = int
"""A set of events, one bit for each ``order``: every event has two such sets, of most of the events before it."""


def orders_of(events: Iterable[Event]) -> Orders:
    """The set of their ``order`` numbers."""
    found = 0
    for event in events:
        found |= 1 << event.order
    return found


@record
class Event:
    """Something that a method does. ``order`` numbers the events as the walk records them.

    ``guards`` are the tests on the way to it; none means that it happens on every path that gets that far.
    ``before`` holds the orders of the events that certainly happened earlier on every path to this one, and
    ``maybe_before`` of those that happened on some path to it: see ``Orders``. ``in_loop``: it may happen many
    times.

    Invariants: ``order`` is unique in a method; ``before`` is a subset of ``maybe_before``, and both contain smaller
    orders only. An event is recorded only on a live path, never in code that certainly does not run.
    """

    node: cst.CSTNode
    order: int
    guards: tuple[Guard, ...] = ()
    before: Orders = 0
    maybe_before: Orders = 0
    in_loop: bool = False

    @property
    def tried(self) -> bool:
        """Whether an ``except`` clause may catch what it raises."""
        return any(guard.arm == "try" for guard in self.guards)

    def excludes(self, other: Event) -> bool:
        """Whether no path has both: they are in different arms of one test, or under tests that look opposite."""
        spend(1 + (len(self.guards) * len(other.guards) >> 1))
        if any(mine.is_opposite_of(its) for mine in self.guards for its in other.guards):
            return True
        both = (*self.guards, *other.guards)
        return any(_fails(guard, both) for guard in both if guard.one_of)

    def implies(self, earlier: Event) -> bool:
        """Whether ``earlier`` certainly happened on each path on which this event happens."""
        return bool(self.before >> earlier.order & 1)

    def may_follow(self, earlier: Event) -> bool:
        """Whether ``earlier`` happened on some path to this event."""
        return bool(self.maybe_before >> earlier.order & 1)

    def certainly_with(self, other: Event) -> bool:
        """Whether a path with both certainly exists: the guards of one are a subset of those of the other.

        A test that an input needs a gradient excludes nothing: there are calls in which every input needs one.
        """
        spend(2)
        mine, its = self._chosen, other._chosen
        return (mine <= its or its <= mine) and not self.excludes(other)

    def happens_with(self, other: Event) -> bool:
        """Whether each test on the way to this event is on the way to ``other`` as well, with the same outcome."""
        spend(2)
        return all(any(mine.holds_with(its) for its in other.guards) for mine in self.guards)

    @cached_property
    def _chosen(self) -> frozenset[Guard | Asks]:
        return _choosing(self.guards)


def _fails(guard: Guard, path: Iterable[Guard]) -> bool:
    """Whether none of the answers of which a guard needs one is possible on a path."""
    given = [each.asks for each in path if each.asks is not None]
    return all(any(each.is_opposite_of(other) for other in given) for each in guard.one_of)


def _choosing(guards: tuple[Guard, ...]) -> frozenset[Guard | Asks]:
    """The questions of the guards, or the guards themselves, except those that hold if every input needs a gradient."""
    asked: set[Guard | Asks] = set()
    for guard in guards:
        asks = guard.asks
        if asks is None or asks.value == UNKNOWN:
            asked.add(guard)
        elif asks.question is not Question.NEEDS_INPUT_GRAD or not asks.answer:
            asked.add(asks)
    return frozenset(asked)


@record
class Step:
    """A step on the way from a call to the actual operation: a position in the file ``path``, with a note about it.

    ``{}`` in ``text`` is the code of ``quoted``, which is written only if the note is shown: that needs its layout.
    ``pointer`` is the parameter through which a kernel writes there. ``updates``: it computes what it writes from what
    it has loaded through the same parameter.
    """

    path: str
    span: Span
    text: str
    quoted: cst.CSTNode | None = field(default=None, compare=False)
    pointer: str = ""
    updates: bool = False

    @property
    def note(self) -> str:
        """What happens there."""
        return self.text if self.quoted is None else self.text.replace("{}", code_of(self.quoted))


@record
class Return(Event):
    """A ``return``; for a ``bare`` one, ``value`` is None's value."""

    value: Value = NONE
    bare: bool = False
    attributes: frozenset[str] = frozenset()
    """The ctx attributes that are certainly set when it runs."""
    absent: frozenset[Value] = frozenset()
    """The parameters that are certainly None when it runs."""


@record
class Yield(Event):
    """A ``yield``; ``many`` for ``yield from`` an iterable ``value``."""

    value: Value = NONE
    many: bool = False


@record
class ContextEvent(Event):
    """Something that happens to the ctx.

    If a project function that gets the ctx does it, ``node`` is the call of that function, ``by`` is its name, and
    ``through`` are the positions from there to the actual use. ``captured_by``: no call passes the ctx there, but this
    function sees it, as it is defined in the method. ``conditional``: that function may not get there.
    """

    by: str = ""
    through: tuple[Step, ...] = ()
    captured_by: str = ""
    conditional: bool = False


@record
class ContextCall(ContextEvent):
    """``ctx.method(...)`` for a method that FunctionCtx has: save_for_backward, mark_dirty and the like."""

    method: str = ""
    arguments: tuple[Slot, ...] = ()
    has_keywords: bool = False
    statement: cst.CSTNode | None = None

    @property
    def exact(self) -> bool:
        """Whether the number of arguments is known (no star)."""
        return not self.has_keywords and not any(argument.starred for argument in self.arguments)


@record
class ContextStore(ContextEvent):
    """``ctx.attribute`` holds ``value`` from here on.

    ``value_node`` is the right-hand side if it belongs to this target alone. ``simple``: the statement is exactly
    ``ctx.attribute = name_or_expression``, one target, nothing chained.
    """

    attribute: str = ""
    value: Value | None = None
    value_node: cst.BaseExpression | None = None
    statement: cst.CSTNode | None = None
    simple: bool = False
    deletes: bool = False


@record
class ContextWrite(ContextStore):
    """``ctx.attribute = value``."""


@record
class ContextItemWrite(ContextStore):
    """``ctx.attribute["a"] = x``, ``ctx.attribute.append(x)``: ``value`` is the whole list or dict afterwards."""


@record
class ContextRead(ContextEvent):
    """``ctx.attribute`` read or called. ``guarded`` if ``hasattr``/``getattr`` or an except clause protects it."""

    attribute: str = ""
    called: bool = False
    guarded: bool = False
    own: bool = False
    """Whether this method itself certainly wrote the attribute earlier."""


@record
class Unpacking:
    """``a, b = ctx.saved_tensors``: the names in order (None for a target that is not a plain name).

    ``guards`` is the path condition. ``by``, ``through``, ``captured_by`` and ``conditional`` are as for a
    ``ContextEvent``.
    """

    names: tuple[str | None, ...]
    starred: bool
    node: cst.CSTNode
    statement: cst.CSTNode | None = None
    guards: tuple[Guard, ...] = ()
    by: str = ""
    through: tuple[Step, ...] = ()
    captured_by: str = ""
    conditional: bool = False

    @property
    def minimum(self) -> int:
        """The least number of tensors that it takes; the exact number unless it is ``starred``."""
        return len(self.names) - self.starred


@record
class SavedRead(ContextEvent):
    """``ctx.saved_tensors`` read. ``via`` is ``saved_tensors``, ``saved_variables`` or ``saved_for_forward``.

    ``unpackings`` are the places where the tuple is unpacked, directly or through the name ``bound_to``. ``called`` is
    ``ctx.saved_tensors()``.
    """

    via: str = "saved_tensors"
    called: bool = False
    unpackings: tuple[Unpacking, ...] = ()
    bound_to: str | None = None


@record
class SavedItem(ContextEvent):
    """``ctx.saved_tensors[index]``, directly or through a name that is bound to the tuple."""

    index: int = 0
    via: str = "saved_tensors"


@record
class TupleUsedAsTensor(ContextEvent):
    """A use that only a tensor allows, of a name that is bound to the tuple of saved tensors, or a slice of it."""

    name: str = ""
    how: str = ""
    sliced: bool = False


@record
class GradientsUsedAsTensor(Event):
    """Such a use of the tuple of gradients, the parameter ``*grads`` with this ``name``.

    ``may_repeat``: it may be the tuple repeated, ``grads * n``, which Python allows.
    """

    name: str = ""
    how: str = ""
    may_repeat: bool = False


@record
class Mutation(Event):
    """A tensor modified in place. ``how`` is ``mul_``, ``+=``, ``[...] =``, ``out=``, ``all_reduce`` or the like.

    ``target`` is the value that is written to; ``values.storage`` returns what it shares memory with. ``name`` is the
    variable through which it is accessed. ``statement`` is the modifying statement. If that is the call of a project
    function, ``by`` is its name, and ``through`` are the positions from there to the actual write. ``chosen``: the
    values that were there choose the elements, ``x.data[x > 1] = 1``. ``adds``: that function adds to what is there
    before it does anything else with it.
    """

    target: Value | None = None
    target_node: cst.BaseExpression | None = None
    how: str = ""
    name: str | None = None
    statement: cst.CSTNode | None = None
    by: str = ""
    through: tuple[Step, ...] = ()
    chosen: bool = False
    adds: bool = False

    @property
    def doer(self) -> str:
        """What modifies the tensor, from the point of view of the method's author."""
        return self.by or self.how


@record
class Discarded(Event):
    """A tuple, or the result of an operator, as a statement: ``a, b``, ``a * b``."""

    value: Value = UNKNOWN


@record
class ResultDropped(Event):
    """The call of a method of the tensor ``name``, which only gives a result, as a statement: ``x.contiguous()``."""

    name: str = ""


@record
class DataReplaced(Event):
    """``target.data = value``: other memory for the same tensor."""

    target: Value = UNKNOWN
    value: Value = UNKNOWN


class KernelParameter(NamedTuple):
    """A parameter of a kernel. ``aliases``: see ``ctxlint.model.index.kernel_names``."""

    kernel: Definition
    name: str
    aliases: Aliases = ()


@record
class Reshaped(Event):
    """The shape of ``value`` itself changed by the method ``how``: ``value.unsqueeze_(0)``."""

    value: Value = UNKNOWN
    how: str = ""


@record
class MemoryRead(Event):
    """The memory of ``value`` read without regard to its layout, or so it seems.

    ``how`` is ``view`` or ``data_ptr`` for these methods, or else what ``reader`` is, which gets it: ``KERNEL``,
    ``EXTENSION`` or ``COLLECTIVE``. ``by`` and ``through`` are as for a ``Mutation``. ``parameter`` is the kernel's, if
    known: of some, the kernel reads the first element alone. ``alike``: its other tensors are created
    with the layout of this one, which they have unless it is expanded: ``empty_like(x)``. ``others``: it may take
    strides of others for this one. ``strides`` are the calls of ``stride`` whose results the kernel gets. ``view`` is
    the call in a helper, with its function and what that calls the tensor. For ``ASSERTED``, ``reader`` is the error
    that is raised, unless it is an assertion without a message. ``each``: a loop does that with each of several.
    """

    value: Value = UNKNOWN
    value_node: cst.BaseExpression | None = None
    how: str = ""
    reader: str = ""
    by: str = ""
    through: tuple[Step, ...] = ()
    parameter: KernelParameter | None = None
    alike: bool = False
    others: bool = False
    strides: frozenset[cst.CSTNode] = frozenset()
    view: tuple[cst.FunctionDef, cst.CSTNode, str] | None = None
    each: bool = False

    @property
    def is_for_a_shape(self) -> bool:
        """Whether a test leads to it that may be about the shape, except for ``view``.

        A tensor without dimensions, such as the gradient of a loss, has only one layout; it may be compared with 1. But
        a call that tests the number of elements expects several.
        """
        asked = {word for guard in self.guards for word in _SHAPES.intersection(guard.words)}
        compared = asked <= _EQUAL and bool(asked) and _SIZES.isdisjoint(words_of(self.node))
        return self.how != "view" and (compared or bool(asked - _EQUAL))


_SIZES = frozenset(["dim", "ndim", "numel"])
_EQUAL = frozenset(["eq", "equal", "ne"])
_SHAPES = _SIZES | _EQUAL | {"shape", "size"}


@record
class GradientLaunch(Event):
    """A kernel gets all elements of an incoming gradient, perhaps in a view or a contiguous copy.

    It is its ``parameter``, and ``reader`` is what the kernel is called. ``by`` and ``through`` are as for a
    ``Mutation``.
    """

    gradient: Value = UNKNOWN
    value_node: cst.BaseExpression | None = None
    parameter: KernelParameter | None = None
    reader: str = ""
    by: str = ""
    through: tuple[Step, ...] = ()


@record
class ForeignStrides(Event):
    """A kernel computes addresses in ``value`` with strides of ``owner``, and none of its own.

    ``made`` is the name of the function of torch that has created ``value``, and ``like`` what it gets for its layout.
    ``stride_nodes`` are the strides that the kernel gets. ``name`` is what the launching function calls ``value``;
    ``by`` and ``through`` are as for a ``Mutation``.
    """

    value: Value = UNKNOWN
    value_node: cst.BaseExpression | None = None
    owner: Value = UNKNOWN
    owner_node: cst.BaseExpression | None = None
    made: str = ""
    like: Value | None = None
    name: str = ""
    reader: str = ""
    stride_nodes: frozenset[cst.CSTNode] = frozenset()
    by: str = ""
    through: tuple[Step, ...] = ()


@record
class LayoutAsked(Event):
    """The layout of ``value`` asked for: ``value.stride()``, ``value.is_contiguous()``; or ``changed``, by a copy."""

    value: Value = UNKNOWN
    changed: bool = False


@record
class Differentiated(Event):
    """``value`` is differentiated: ``value.backward()``, ``torch.autograd.grad(value, …)``; ``how`` names the call."""

    value: Value | None = None
    value_node: cst.BaseExpression | None = None
    how: str = ""

    @property
    def reaches_leaves(self) -> bool:
        """Whether it adds to the ``grad`` of every leaf: not ``backward(inputs=...)``, nor ``torch.autograd.grad``."""
        if "backward" not in self.how or not isinstance(self.node, cst.Call):
            return False
        keywords = [(each.star, each.keyword and each.keyword.value) for each in self.node.args]
        return all(star != "**" and name != "inputs" for star, name in keywords)


@record
class GradientFlag(Event):
    """``value.requires_grad`` read; or ``switched``, by ``requires_grad_()`` or by assignment."""

    value: Value | None = None
    value_node: cst.BaseExpression | None = None
    switched: bool = False


@record
class ExtraAttribute(Event):
    """An attribute, which tensors do not have by themselves, ``written`` on ``value``, or read from a saved tensor."""

    value: Value = UNKNOWN
    value_node: cst.BaseExpression | None = None
    attribute: str = ""
    written: bool = False


@record
class NeedsInputGradRead(ContextEvent):
    """``ctx.needs_input_grad``: ``index`` for one constant subscript, else None (``whole`` where taken without one).

    ``unpacked`` is the number of targets of ``a, b = ctx.needs_input_grad``, where none of them is starred.
    """

    index: int | None = None
    whole: bool = False
    unpacked: int | None = None


@record
class ContextLent(Event):
    """The ctx is passed to a function of the project, and what that does with it is known."""


@record
class Escape(ContextEvent):
    """The ctx escapes. ``how`` is ``passed``, ``stored``, ``returned`` or ``captured``."""

    how: str = ""
    callee: str | None = None


@record
class Assigned(Event):
    """``name = value``, by any kind of target; ``augmented`` for ``name += …``. ``statement`` is the assignment."""

    name: str = ""
    value: Value | None = None
    value_node: cst.BaseExpression | None = None
    augmented: bool = False
    statement: cst.CSTNode | None = None


@record
class MaybeUnbound(Event):
    """A local name read on a path on which some or every branch has not bound it."""

    name: str = ""


@record
class UndefinedRead(Event):
    """A read of a ``name`` that no statement of the file binds for this code, nor Python itself."""

    name: str = ""


@record
class UnboundInside(Event):
    """A call of a function ``by`` that reads its local ``name``, bound only where all ``needed`` need a gradient."""

    name: str = ""
    needed: tuple[Value, ...] = ()
    by: str = ""
    through: tuple[Step, ...] = ()


@record
class NoneInside(Event):
    """A call of a function ``by`` whose result has None as element ``at``, unless all ``needed`` need a gradient."""

    at: int = 0
    needed: tuple[Value, ...] = ()
    by: str = ""
    through: tuple[Step, ...] = ()


class MisfitKind(Enum):
    """How a function or a kernel is called, or a name read."""

    CALL = "is called"
    LAUNCH = "is launched"
    KERNEL_CALL = "is called without a grid"
    MISSING_NAME = "is read"
    SETTABLE_NAME = "is read, a name that another file may set"
    UNDEFINED_NAME = "is not defined"


@record
class Misfit:
    """A call of a function, or launch of a kernel of Triton, that raises: what is wrong with its arguments.

    A call of a kernel without a grid raises with any arguments; ``valued``: the kernel returns something. Any use of
    a name that a module of torch or NumPy does not have raises, too: ``unknown`` is its full name, ``meant`` another
    one, and ``newer_only``: earlier releases had it. A name that nothing defines is itself the ``callee``.

    It passes ``surplus`` arguments more by position than the ``takes`` parameters, none for those ``missing``, and two
    for those ``twice``. ``unknown`` are keywords that are none of its parameters: for a kernel, options of a
    backend, or mistakes; ``meant`` are parameters that get nothing, and that these seem to mean, if all of them do.
    ``wrapped``: the only argument is a tuple with one element for each parameter. ``steps`` lead there. ``raises`` is
    the exception; Triton raises that of a launch.
    ``conditional``: a condition in the function that makes the call may skip it. ``receiver``: the parameter ``cls``,
    or an unused ``self``, of a method without a decorator, to which the first argument goes; ``unread``: an unused one
    of a static method. ``inside``: the function that makes the call, if it is not the method itself.
    ``params`` are the names of all parameters, unless there is ``*args`` or ``**kwargs``. ``results`` is the number of
    values that the function returns, if the call is unpacked into another number.
    ``shifted``: the names of the arguments show that others are left out than the last ones.
    ``unloaded``: the kernel computes with the address of a tensor: the code of that, the parameter, and what the kernel
    should load. ``number``: what is passed for a parameter that the kernel loads from, and the parameter.
    """

    callee: str
    takes: int
    surplus: int
    missing: tuple[str, ...]
    twice: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()
    wrapped: bool = False
    steps: tuple[Step, ...] = ()
    raises: str = "TypeError"
    kind: MisfitKind = MisfitKind.LAUNCH
    conditional: bool = False
    receiver: str = ""
    unread: str = ""
    valued: bool = False
    newer_only: bool = False
    inside: str = ""
    params: tuple[str, ...] = ()
    results: int = 0
    shifted: bool = False
    unloaded: tuple[str, str, str] = ("", "", "")
    number: tuple[str, str] = ("", "")

    @property
    def is_certain(self) -> bool:
        """Whether it raises whenever it is reached, in all releases."""
        return not (self.conditional or self.is_doubtful)

    @property
    def is_doubtful(self) -> bool:
        """Whether it raises only in newer releases, or unless another file sets the name."""
        return self.newer_only or self.kind is MisfitKind.SETTABLE_NAME


@record
class MisfitCall(Event):
    """A call with arguments that the function or kernel does not take, perhaps in a function ``by`` that is called."""

    misfit: Misfit | None = None
    by: str = ""

    @property
    def through(self) -> tuple[Step, ...]:
        """The way there from the call of a function."""
        return self.misfit.steps if self.misfit is not None else ()


@record
class TrialEffect:
    """A launch of a kernel of Triton that changes what ``parameters`` point to, again in each trial of ``autotune``.

    It adds to that, or ``transforms`` it: replaces it by a function of it. ``steps`` lead to the first such statement.
    ``others_restored``: ``autotune`` restores other parameters. ``inside`` is as for a ``Misfit``.
    """

    callee: str
    parameters: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    transforms: bool = False
    others_restored: bool = False
    inside: str = ""


@record
class TrialEffectRun(Event):
    """Such a launch, perhaps in a function ``by`` that is called."""

    effect: TrialEffect | None = None
    by: str = ""

    @property
    def through(self) -> tuple[Step, ...]:
        """The way to the first statement that does so."""
        return self.effect.steps if self.effect is not None else ()


@record
class LeftOut:
    """A launch of ``kernel`` for ``size // block`` programs, each of which fills one block of the tensors ``names``.

    The last elements keep ``zeros``, or what was in memory, if ``size`` is not a multiple of ``block``. That is written
    as ``block_name``. ``steps`` lead there, to the function ``inside``. If it goes ``beyond``, it is one for
    ``triton.cdiv(size, block)`` programs, which store whole blocks; then ``block`` is 0.
    """

    kernel: str
    size: str
    block: int
    block_name: str
    names: tuple[str, ...]
    zeros: bool = False
    steps: tuple[Step, ...] = ()
    inside: str = ""
    beyond: bool = False


@record
class CutGrid(Event):
    """Such a launch, perhaps in a function ``by`` that is called; ``tensors`` are those that it fills."""

    found: LeftOut | None = None
    tensors: tuple[Value, ...] = ()
    by: str = ""

    @property
    def through(self) -> tuple[Step, ...]:
        """The way to the launch."""
        return self.found.steps if self.found is not None else ()


class KernelFaultKind(Enum):
    """What is wrong in a kernel of Triton, as it is launched."""

    UNBOUND = "a name is bound only for one value of a flag, and read for the other"
    SHARED = "all programs along an axis store to the same addresses"
    MISALIGNED = "a value for each row of a block gets its columns"
    NARROW = "an offset is computed in 32 bits"
    UNGUARDED = "nothing around it makes the GPU of the tensors the current one"


@record
class KernelFault:
    """A fault in the code of a kernel of Triton that a launch gets to: of ``code``, at the last of the ``steps``.

    ``others`` are the condition under which a name is bound, and that of the fault; or a pointer that does move; or the
    block and the operand to index; or the pointer and the index of the program. ``sizes`` are those of the block, as
    numbers if they are known, or the words for the axis. ``absent`` is what has to be None. ``inside`` is as for a
    ``Misfit``. The launch itself is at fault if it is ``UNGUARDED``.
    """

    kind: KernelFaultKind
    callee: str
    code: str
    others: tuple[str, str]
    sizes: tuple[str, str] = ("", "")
    absent: Value | None = None
    steps: tuple[Step, ...] = ()
    inside: str = ""


@record
class FaultyLaunch(Event):
    """Such a launch, perhaps in a function ``by`` that is called."""

    fault: KernelFault | None = None
    by: str = ""

    @property
    def through(self) -> tuple[Step, ...]:
        """The way to the code that is at fault."""
        return self.fault.steps if self.fault is not None else ()

    @property
    def is_chosen(self) -> bool:
        """Whether a test on the way there may be about what has to be None: it is not about gradients."""
        tests = (guard for guard in self.guards if guard.test is not None)
        return any(guard.asks is None or not guard.asks.about_flag for guard in tests)


@record
class UnfilledAllocation:
    """Memory that ``made`` allocates without values for ``name``, which the first code that gets it, ``by``, adds to.

    ``zeros`` is what allocates the same with values, empty for none. ``steps`` lead there, to the function ``inside``.
    """

    name: str
    made: str
    zeros: str
    by: str
    steps: tuple[Step, ...] = ()
    inside: str = ""


@record
class UnfilledInside(Event):
    """A call of a function ``by`` in which that happens."""

    found: UnfilledAllocation | None = None
    by: str = ""

    @property
    def through(self) -> tuple[Step, ...]:
        """The way to the first write."""
        return self.found.steps if self.found is not None else ()


@record
class UnwrittenResult(Event):
    """A call of a function that returns memory which it allocates, and nothing writes to, as elements ``parts``."""

    parts: tuple[int, ...] = ()


@record
class GraphUseInside(Event):
    """A call of a function ``by`` that tests ``requires_grad`` of a tensor that it computes, or calls ``how`` on it."""

    test: str = ""
    how: str = ""
    by: str = ""
    through: tuple[Step, ...] = ()


@record
class FlagTestedInside(Event):
    """A call through which a function ``by`` gets ``value``, and asks by ``test`` whether it requires a gradient."""

    value: Value = UNKNOWN
    test: str = ""
    by: str = ""
    through: tuple[Step, ...] = ()


@record
class MaybeNone(Event):
    """What None does not support, with a name that is None on some path; ``how`` is ``.attribute`` or an operator.

    ``value`` is what the name holds. ``by`` and ``through`` are as for a ``Mutation``.
    """

    name: str = ""
    how: str = ""
    value: Value = UNKNOWN
    by: str = ""
    through: tuple[Step, ...] = ()


@record
class FlagsTested(Event):
    """``ctx.needs_input_grad`` itself used as a condition: a tuple that is never empty."""


@record
class ClassAttribute(Event):
    """An attribute of a class or module read, or ``written``, through its name: ``Fn.calls += 1``.

    ``cleared``: it is set to None; ``value`` is what it is set to.
    """

    owner: str = ""
    attribute: str = ""
    written: bool = False
    cleared: bool = False
    value: Value | None = None


@record
class UnboundContext(Event):
    """The name ``ctx`` used in a method that has no such parameter and no such enclosing name."""

    name: str = "ctx"


@record
class GenericCall(Event):
    """Any other call, except of a builtin other than ``super``: ``callee`` is the resolved dotted name, if known.

    ``definition`` is the project function whose summary was applied. ``replaceable``: an ``except`` clause binds the
    name to another function. ``custom`` are its parameters of whose arguments an attribute is used that no other tensor
    has, if it gets what ctx keeps.
    """

    callee: str | None = None
    arguments: tuple[Slot, ...] = ()
    keywords: tuple[tuple[str, Slot], ...] = ()
    statement: cst.CSTNode | None = None
    definition: Definition | None = None
    replaceable: bool = False
    custom: frozenset[str] = frozenset()


@record
class ForeignCall(Event):
    """A statement that calls a method of an object of the file, of which nothing is known: ``lib.fill(x, y)``."""

    arguments: tuple[Slot, ...] = ()


@record
class MethodCall(Event):
    """A call of a method of the project, ``definition``, of an object or a base class, with positional arguments."""

    definition: Definition | None = None
    arguments: tuple[Slot, ...] = ()
