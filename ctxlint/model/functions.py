"""The nouns that every rule reads: a Function class, its methods, inputs, outputs, gradients, and what happens on ctx.

A fact that cannot be known is absent or ``Tri.UNKNOWN``; a rule speaks only on what is certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from ctxlint.model.values import NONE, Sequence, Slot, Tri, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import libcst as cst

    from ctxlint.files.slices import Slice
    from ctxlint.model.project import Definition
    from ctxlint.files.source import Position, Source, Span

PROTOCOL = ("forward", "backward", "vjp", "setup_context", "jvp", "vmap")
"""The static methods that autograd calls."""


# ---------------------------------------------------------------------------------------------------------------------
# Paths


@dataclass(frozen=True)
class Guard:
    """One test that had to come out as ``holds`` for an event to happen.

    ``block`` tells the statement that tests: two events under the same block and another ``arm`` exclude each other.
    ``test`` is the condition; None for the body of a loop, a ``try``, a ``case``. ``text`` is its code and
    ``bindings`` the identities of the names in it, so that two guards with both equal test the same thing.
    ``subject`` is what the condition asks about, where it is a known kind (see ``Asks``).
    """

    block: int
    arm: str
    test: cst.BaseExpression | None = field(default=None, compare=False)
    holds: bool = True
    asks: Asks | None = None
    text: str = field(default="", compare=False)


class Question(Enum):
    """The kinds of condition that change what a path means to autograd."""

    NEEDS_INPUT_GRAD = "needs_input_grad[i]"
    REQUIRES_GRAD = "x.requires_grad"
    IS_NONE = "x is None"
    GRAD_MODE = "torch.is_grad_enabled()"


@dataclass(frozen=True)
class Asks:
    """What a condition asks: the question, about which value, and the answer on this path."""

    question: Question
    value: Value
    answer: bool


@dataclass(frozen=True)
class Event:
    """Something that a method does. ``order`` counts events in the order in which they are met.

    ``guards`` are the tests on the way to it; none means that it happens on every path that gets that far.
    ``before`` holds the orders of the events that certainly happened earlier on every path to this one, and
    ``maybe_before`` of those that happened on some path to it. ``in_loop`` says that it may happen many times.
    """

    node: cst.CSTNode
    order: int
    guards: tuple[Guard, ...] = ()
    before: frozenset[int] = frozenset()
    maybe_before: frozenset[int] = frozenset()
    in_loop: bool = False

    def excludes(self, other: Event) -> bool:
        """Whether no path has both: they stand in different arms of one test, or under tests that look opposite."""
        return any(
            (mine.block == its.block and mine.arm != its.arm)
            or (mine.text != "" and mine.text == its.text and mine.holds != its.holds)
            for mine in self.guards
            for its in other.guards
        )

    def implies(self, earlier: Event) -> bool:
        """Whether ``earlier`` certainly happened, on each path on which this event happens."""
        return earlier.order in self.before

    def certainly_with(self, other: Event) -> bool:
        """Whether there is certainly a path that has both: the guards of one are all among those of the other."""
        mine, its = set(self.guards), set(other.guards)
        return not self.excludes(other) and (mine <= its or its <= mine)


@dataclass(frozen=True)
class Return(Event):
    """A ``return``; ``value`` is None's value for a bare one. ``slots`` etc. are of the alternatives, see ``returned``."""

    value: Value = NONE
    bare: bool = False
    attributes: frozenset[str] = frozenset()
    """The ctx attributes that are certainly set when it runs."""


@dataclass(frozen=True)
class ContextCall(Event):
    """``ctx.method(...)`` for a method that FunctionCtx has: save_for_backward, mark_dirty, set_materialize_grads …"""

    method: str = ""
    arguments: tuple[Slot, ...] = ()
    has_keywords: bool = False
    statement: cst.CSTNode | None = None

    @property
    def exact(self) -> bool:
        """Whether the number of arguments is known (no star)."""
        return not self.has_keywords and not any(argument.starred for argument in self.arguments)


@dataclass(frozen=True)
class ContextWrite(Event):
    """``ctx.attribute = value``. ``value_node`` is the right-hand side where it is this target's alone.

    ``simple`` says that the statement is exactly ``ctx.attribute = name_or_expression``, one target, nothing chained.
    """

    attribute: str = ""
    value: Value | None = None
    value_node: cst.BaseExpression | None = None
    statement: cst.CSTNode | None = None
    simple: bool = False
    deletes: bool = False


@dataclass(frozen=True)
class ContextRead(Event):
    """``ctx.attribute`` read or called. ``guarded`` where ``hasattr``/``getattr`` or an except clause protects it."""

    attribute: str = ""
    called: bool = False
    guarded: bool = False
    own: bool = False
    """Whether this method itself certainly wrote the attribute earlier."""


@dataclass(frozen=True)
class Unpacking:
    """``a, b = ctx.saved_tensors``: the names in order (None for a target that is no plain name)."""

    names: tuple[str | None, ...]
    starred: bool
    node: cst.CSTNode
    statement: cst.CSTNode | None = None


@dataclass(frozen=True)
class SavedRead(Event):
    """``ctx.saved_tensors`` read. ``via`` is ``saved_tensors``, ``saved_variables`` or ``saved_for_forward``.

    ``unpackings`` are the places where the tuple is taken apart, at once or through the name ``bound_to`` that it was
    bound to. ``called`` is ``ctx.saved_tensors()``.
    """

    via: str = "saved_tensors"
    called: bool = False
    unpackings: tuple[Unpacking, ...] = ()
    bound_to: str | None = None


@dataclass(frozen=True)
class TupleUsedAsTensor(Event):
    """A use that only a tensor allows, of a name that holds the whole tuple of saved tensors."""

    name: str = ""
    how: str = ""


@dataclass(frozen=True)
class Mutation(Event):
    """A tensor changed in place. ``how`` is ``mul_``, ``+=``, ``[...] =``, ``out=``, ``all_reduce`` …

    ``target`` is the value that is written into; ask ``values.storage`` what it shares memory with. ``name`` is the
    variable it was reached through. ``statement`` is the statement that does it.
    """

    target: Value | None = None
    target_node: cst.BaseExpression | None = None
    how: str = ""
    name: str | None = None
    statement: cst.CSTNode | None = None


@dataclass(frozen=True)
class NeedsInputGradRead(Event):
    """``ctx.needs_input_grad``: ``index`` for one constant subscript, else None (``whole`` where taken without one)."""

    index: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Escape(Event):
    """The ctx goes where it cannot be followed. ``how`` is ``passed``, ``stored``, ``returned`` or ``captured``."""

    how: str = ""
    callee: str | None = None


@dataclass(frozen=True)
class Assigned(Event):
    """``name = value``, by any kind of target; ``augmented`` for ``name += …``."""

    name: str = ""
    value: Value | None = None
    augmented: bool = False


@dataclass(frozen=True)
class UnboundContext(Event):
    """The name ``ctx`` used in a method that has no such parameter and no such enclosing name."""

    name: str = "ctx"


@dataclass(frozen=True)
class GenericCall(Event):
    """Any other call: ``callee`` is the dotted name with imports resolved, None when it is no dotted name."""

    callee: str | None = None
    arguments: tuple[Slot, ...] = ()
    keywords: tuple[tuple[str, Slot], ...] = ()
    statement: cst.CSTNode | None = None


# ---------------------------------------------------------------------------------------------------------------------
# Methods


class Binding(Enum):
    """How a function in a class body is bound."""

    STATIC = "staticmethod"
    CLASS = "classmethod"
    INSTANCE = "instance"


class ParameterKind(Enum):
    """The kinds of parameter that a Python function has."""

    POSITIONAL = "positional"
    KEYWORD_ONLY = "keyword-only"
    VARIADIC = "*args"
    KEYWORDS = "**kwargs"


@dataclass(frozen=True)
class Param:
    """One parameter as written. ``annotation`` is its code, with imports resolved where it is a dotted name."""

    name: str
    kind: ParameterKind
    node: cst.Param
    has_default: bool = False
    default: Value | None = None
    annotation: str | None = None

    @property
    def required(self) -> bool:
        """Whether a call must pass it."""
        return not self.has_default and self.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)


@dataclass(frozen=True)
class Decorator:
    """A decorator: ``name`` is the dotted name with imports resolved (None for an expression that is none).

    ``called`` says whether it is written with parentheses. ``keeps_signature`` is yes for those known to pass all
    arguments on, unknown for others.
    """

    node: cst.Decorator
    name: str | None
    called: bool
    keeps_signature: Tri


@dataclass(frozen=True)
class MethodFacts:
    """What one walk over a method's body found; see ``interpreter.py``."""

    events: tuple[Event, ...] = ()
    falls_through: Tri = Tri.UNKNOWN
    """Does some path reach the end of the body without ``return`` and without ``raise``?"""
    fall_guards: tuple[Guard, ...] = ()
    """The tests that every way to the end of the body has passed."""
    fall_paths: tuple[tuple[Guard, ...], ...] = ()
    """The ways to the end of the body, each with all its tests. A guard without test has an ``arm`` that says what
    the way hangs on: ``except`` (something raised), ``exhausted`` (a loop that may return did not), ``returns`` (a call
    whose name says that it raises), ``no case``, ``unknown``."""
    end_done: frozenset[int] = frozenset()
    """The orders of the events that certainly happened when the end of the body is reached."""
    names_read: frozenset[str] = frozenset()
    """Every name that the body reads, nested functions included; ``del`` is no read."""
    is_generator: bool = False
    is_async: bool = False
    complete: bool = True
    """False where the walk met something that it cannot follow at all (``exec``, ``locals()``, a star import)."""

    def of(self, kind: type[EventType]) -> tuple[EventType, ...]:
        """The events of one kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))


if TYPE_CHECKING:
    from typing import TypeVar

    EventType = TypeVar("EventType", bound=Event)


@dataclass(frozen=True)
class Method:
    """A method as written in one class body."""

    name: str
    node: cst.FunctionDef
    slice: Slice
    binding: Binding
    decorators: tuple[Decorator, ...]
    params: tuple[Param, ...]
    receiver: Param | None
    """``cls`` of a classmethod, or a receiver written before ctx by mistake or for calls by hand."""
    ctx: Param | None
    """The parameter that gets the ctx; None where the method takes none (forward beside setup_context, or by mistake)."""
    facts: MethodFacts
    inherited: bool = False
    home: Definition | None = None
    """The class whose body it is written in."""

    @property
    def own_params(self) -> tuple[Param, ...]:
        """The parameters without receiver and ctx: forward's inputs, backward's gradients."""
        return tuple(param for param in self.params if param is not self.receiver and param is not self.ctx)

    @property
    def positional(self) -> tuple[Param, ...]:
        """``own_params`` that take one positional argument each."""
        return tuple(param for param in self.own_params if param.kind is ParameterKind.POSITIONAL)

    @property
    def variadic(self) -> Param | None:
        """The ``*args`` parameter."""
        return next((param for param in self.own_params if param.kind is ParameterKind.VARIADIC), None)

    @property
    def signature_known(self) -> bool:
        """Whether every decorator is known to pass the arguments and the result on as they are."""
        return all(decorator.keeps_signature is Tri.YES for decorator in self.decorators)

    @property
    def returns(self) -> tuple[Return, ...]:
        """The return statements, in order."""
        return self.facts.of(Return)

    @property
    def raises_only(self) -> bool:
        """Whether no path returns anything: the body raises, whatever happens."""
        return not self.returns and self.facts.falls_through is Tri.NO


# ---------------------------------------------------------------------------------------------------------------------
# Inputs, outputs, gradients


class Trust(Enum):
    """How much a piece of evidence weighs, strongest first (survey of real code, section 4)."""

    PROOF = 4
    """Its own gradient slot, a returned output, a literal at a call."""
    STRONG = 3
    """An exact annotation, a use that only a tensor (or only a number) allows."""
    FAIR = 2
    """A default value, an annotation that authors stretch (``float``)."""
    HINT = 1
    """How it is kept on ctx."""


@dataclass(frozen=True)
class Evidence:
    """Why an input is, or is not, a tensor. ``reason`` completes "because …"."""

    tensor: bool
    trust: Trust
    reason: str
    node: cst.CSTNode | None = None


class InputKind(Enum):
    """What an input of forward is."""

    TENSOR = "tensor"
    OPTIONAL_TENSOR = "optional-tensor"
    NON_TENSOR = "non-tensor"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Input:
    """One input of forward: a parameter after ctx. ``index`` counts from 0, as ``needs_input_grad`` does."""

    index: int
    name: str
    param: Param
    kind: InputKind
    evidence: tuple[Evidence, ...] = ()
    """Strongest first."""
    gradient: Tri = Tri.UNKNOWN
    """Does backward return something other than None for it, on some path? No where every slot is None."""

    @property
    def required(self) -> bool:
        """Whether ``apply`` must be given it."""
        return self.param.required

    @property
    def is_tensor(self) -> Tri:
        """Certainly a tensor (or an optional one), certainly not, or unknown."""
        if self.kind in (InputKind.TENSOR, InputKind.OPTIONAL_TENSOR):
            return Tri.YES
        return Tri.NO if self.kind is InputKind.NON_TENSOR else Tri.UNKNOWN

    @property
    def surely_differentiable(self) -> bool:
        """Certainly a tensor for which backward returns a gradient."""
        return self.is_tensor is Tri.YES and self.gradient is Tri.YES


@dataclass(frozen=True)
class Returned:
    """One alternative of one return: what autograd gets.

    ``slots`` are the elements of the tuple, or the one value. ``exact`` says that the count is known; else
    ``minimum`` is a lower bound and the positions after the first starred slot are unknown. ``known`` is False where
    nothing at all can be said about the count.
    """

    node: cst.CSTNode
    event: Return
    value: Value
    slots: tuple[Slot, ...]
    known: bool
    exact: bool

    @property
    def count(self) -> int | None:
        """How many gradients or outputs there are; None when unknown."""
        return len(self.slots) if self.known and self.exact else None

    @property
    def minimum(self) -> int:
        """At least so many."""
        return sum(not slot.starred for slot in self.slots) if self.known else 0

    @property
    def display(self) -> Sequence | None:
        """The tuple, list or set, where the value is one."""
        return self.value if isinstance(self.value, Sequence) else None


class Style(Enum):
    """Which of the two protocols a Function follows."""

    CTX_IN_FORWARD = "forward(ctx, ...)"
    SETUP_CONTEXT = "forward(...) and setup_context(ctx, inputs, output)"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ApplyCall:
    """A call of, or on, a Function class found in the same file. Read from ``ast``; positions are the file's.

    ``how`` is ``apply`` (``Fn.apply(...)`` or through an alias), ``construct`` (``Fn(...)``), ``construct-call``
    (``Fn()(x)``), ``construct-apply`` (``Fn().apply(x)``) or ``direct`` (``Fn.forward(...)``, ``method`` names it).
    """

    function: str
    """Qualified name of the class in this file."""
    how: str
    span: Span
    positional: int
    starred: bool
    keywords: tuple[str, ...]
    double_starred: bool
    arguments: tuple[ArgumentKind, ...]
    """One per positional argument without star, in order, up to the first star."""
    method: str | None = None
    inside: str = ""
    """Qualified name of the enclosing function or class; empty at module level."""
    inside_function_class: bool = False
    alias: str | None = None
    """The name it is called through, where that is not ``Fn.apply``."""
    callee_span: Span | None = None
    """The ``Fn`` or ``Fn(...)`` part of the callee."""


class ArgumentKind(Enum):
    """What a call passes, as far as the literal shows."""

    NUMBER = "number"
    STRING = "string"
    BOOL = "bool"
    NONE = "None"
    TENSOR = "tensor"
    CONTAINER = "container"
    OTHER = "other"


@dataclass(frozen=True)
class FunctionClass:
    """A subclass of ``torch.autograd.Function`` and all that its own source says."""

    name: str
    qualname: str
    node: cst.ClassDef
    slice: Slice
    source: Source
    style: Style
    methods: Mapping[str, Method]
    """Every method by name, inherited ones from bases in the same file included (``inherited`` is set on those)."""
    inputs: tuple[Input, ...]
    variadic_inputs: Param | None
    """forward's ``*args``."""
    outputs: tuple[Returned, ...]
    """What forward returns, one entry for each alternative of each return."""
    gradients: tuple[Returned, ...]
    """What backward (or vjp) returns, one entry for each alternative of each return."""
    calls: tuple[ApplyCall, ...]
    """The calls of this class in the same file."""
    bases_known: bool
    """Whether every base is torch's Function, harmless (Generic, ABC), or a class of this file whose bases are known."""
    class_decorators: tuple[str | None, ...]
    class_decorators_known: bool
    overrides_apply: bool
    patched: bool
    """Methods are assigned after the class, or the class is changed by setattr."""
    has_subclass: bool
    called_directly: frozenset[str]
    """The methods that are called by hand (``Fn.backward(...)``, ``super().forward``), which makes it no plain Function."""
    stored_attributes: frozenset[str]
    """Every attribute name that anything in this file assigns, deletes, or names in getattr/setattr/hasattr."""
    class_attributes: Mapping[str, Value]
    """Plain assignments in the class body (``generate_vmap_rule = True``)."""
    enclosing_names: frozenset[str] = frozenset()
    """Local names of enclosing functions, which methods can see."""

    # Where things are

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of this class stands in the file. What is inherited from another file stands at the class's name."""
        for each in self._slices:
            try:
                found = each.span(node)
            except KeyError:
                continue
            return found if each.source is self.source else self.slice.span(self.node.name)
        raise KeyError(node)

    @cached_property
    def _slices(self) -> tuple[Slice, ...]:
        found = [self.slice]
        for method in self.methods.values():
            if all(method.slice is not each for each in found):
                found.append(method.slice)
        return tuple(found)

    def start(self, node: cst.CSTNode) -> Position:
        """Where a node starts."""
        return self.span(node).start

    # The methods

    @property
    def forward(self) -> Method | None:
        """The forward method, also an inherited one."""
        return self.methods.get("forward")

    @property
    def backward(self) -> Method | None:
        """The backward method, or vjp where only that is there."""
        return self.methods.get("backward") or self.methods.get("vjp")

    @property
    def setup_context(self) -> Method | None:
        """The setup_context method."""
        return self.methods.get("setup_context")

    @property
    def own_protocol_methods(self) -> tuple[Method, ...]:
        """The protocol methods written in this class, in the order of PROTOCOL."""
        found = (self.methods.get(name) for name in PROTOCOL)
        return tuple(method for method in found if method is not None and not method.inherited)

    @property
    def context_methods(self) -> tuple[Method, ...]:
        """Own methods in which ctx is written before backward: forward (when it takes ctx) and setup_context."""
        found = (self.methods.get(name) for name in ("forward", "setup_context"))
        return tuple(method for method in found if method is not None and method.ctx is not None)

    @property
    def reading_methods(self) -> tuple[Method, ...]:
        """The methods that read ctx afterwards: backward, vjp, jvp."""
        found = (self.methods.get(name) for name in ("backward", "vjp", "jvp"))
        return tuple(method for method in found if method is not None)

    # What may be judged

    @property
    def signature_judgeable(self) -> bool:
        """Whether rules on signatures may speak: bases, class decorators, apply and methods are what they seem."""
        return (
            self.bases_known and self.class_decorators_known and not self.overrides_apply and not self.patched
        )

    @property
    def count_judgeable(self) -> bool:
        """Whether rules that count gradients and outputs may speak: also no decorator that may change them, and no
        forward or backward that is called by hand (an abstract base whose result a subclass slices)."""
        return (
            self.signature_judgeable
            and not self.has_subclass
            and not (self.called_directly & {"forward", "backward", "vjp"})
            and all(method.signature_known for method in (self.forward, self.backward) if method is not None)
            and not any(method.receiver is not None and method.binding is Binding.STATIC
                        for method in self.methods.values() if method.name in PROTOCOL)
        )

    @property
    def required_inputs(self) -> int:
        """How many inputs have no default."""
        return sum(each.required for each in self.inputs)

    # What happens on ctx

    @cached_property
    def saves(self) -> tuple[ContextCall, ...]:
        """Every ``save_for_backward`` in forward and setup_context."""
        return self.context_calls("save_for_backward")

    def context_calls(self, name: str) -> tuple[ContextCall, ...]:
        """Every ``ctx.name(...)`` in forward and setup_context, in order."""
        return tuple(
            call for method in self.context_methods for call in method.facts.of(ContextCall) if call.method == name
        )

    @cached_property
    def context_writes(self) -> tuple[ContextWrite, ...]:
        """Every ``ctx.a = …`` in forward and setup_context."""
        return tuple(write for method in self.context_methods for write in method.facts.of(ContextWrite))

    @cached_property
    def context_reads(self) -> tuple[ContextRead, ...]:
        """Every ``ctx.a`` read in backward, vjp and jvp."""
        return tuple(read for method in self.reading_methods for read in method.facts.of(ContextRead))

    @cached_property
    def saved_reads(self) -> tuple[SavedRead, ...]:
        """Every ``ctx.saved_tensors`` in backward, vjp and jvp."""
        return tuple(read for method in self.reading_methods for read in method.facts.of(SavedRead))

    @cached_property
    def escapes(self) -> tuple[Escape, ...]:
        """Every place at which a ctx leaves a method."""
        return tuple(each for method in self.methods.values() for each in method.facts.of(Escape))

    @cached_property
    def materializes_grads(self) -> Tri:
        """Does backward get zeros for undefined gradients? Yes unless ``set_materialize_grads`` is called."""
        if self.context_calls("set_materialize_grads") or self.escapes or "materialize_grads" in self.stored_attributes:
            return Tri.UNKNOWN
        return Tri.YES

    def outputs_values(self) -> Iterator[Value]:
        """The value of each output, over all returns of forward."""
        for returned in self.outputs:
            for slot in returned.slots:
                yield slot.value


@dataclass(frozen=True)
class BrokenStatement:
    """A top-level statement that no parser can read, in a file that holds a Function."""

    position: Position
    message: str


@dataclass(frozen=True)
class SourceFile:
    """One file: its Functions, the calls on them, and what could not be read."""

    source: Source
    functions: tuple[FunctionClass, ...] = ()
    calls: tuple[ApplyCall, ...] = ()
    """Every call on one of ``functions``, in source order."""
    by_name: Mapping[str, FunctionClass] = field(default_factory=dict)
    """The Functions by qualified name, for looking up what a call calls."""
    broken: tuple[BrokenStatement, ...] = ()
