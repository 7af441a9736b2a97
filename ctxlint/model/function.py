"""The nouns that every rule reads: a Function class, its methods, inputs, outputs, gradients, and events on ctx.

A fact that is unknown is absent or ``Tri.UNKNOWN``; a rule reports only what is certain.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxlint.config.torch_versions import ALL_RELEASES
from ctxlint.effort import spend
from ctxlint.model.index.apply_calls import ApplyCall, ArgumentKind
from ctxlint.model.index.class_finder import conditional_methods
from ctxlint.model.interpreter.events import (
    Asks,
    Assigned,
    ContextCall,
    ContextRead,
    ContextWrite,
    Escape,
    Event,
    GenericCall,
    GradientsUsedAsTensor,
    Guard,
    Mutation,
    NeedsInputGradRead,
    Question,
    Return,
    SavedItem,
    SavedRead,
    TupleUsedAsTensor,
    UnboundContext,
    Unpacking,
)
from ctxlint.model.interpreter.method import Binding, Decorator, Method, MethodFacts, Param, ParameterKind
from ctxlint.model.interpreter.values import Sequence, Slot, Tri, Value, constant
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Mapping

    import libcst as cst

    from ctxlint.config.torch_versions import Releases
    from ctxlint.model.index.bare_operators import BareOperator
    from ctxlint.model.index.instances import Instances
    from ctxlint.model.index.module_backwards import ModuleBackward
    from ctxlint.model.index.operator_signatures import RejectedPart
    from ctxlint.model.index.parsing import BrokenStatement
    from ctxlint.source.slices import Slice
    from ctxlint.source.source import Position, Source, Span

# ---------------------------------------------------------------------------------------------------------------------
# Inputs, outputs, gradients


class Trust(Enum):
    """How much a piece of evidence weighs, strongest first (survey of real code, section 4)."""

    PROOF = 4
    """Its own gradient slot, a returned output, a literal at a call."""
    STRONG = 3
    """An exact annotation, or a use that only a tensor (or only a number) allows."""
    FAIR = 2
    """A default value, or an annotation that authors use loosely (``float``)."""
    HINT = 1
    """How it is stored on ctx."""


RETURNED = "it is returned"
"""The reason of the evidence that forward returns an input."""


@record
class Evidence:
    """Why an input is, or is not, a tensor. ``reason`` completes "because …".

    ``container``: the input is a container, which may hold tensors. ``own_gradient``: the reason is what backward
    returns for this very input. ``call`` is the span of a call in this file that shows it; all other spans are those of
    ``node``. ``by_default``: the caller passes a parameter of its own, which has this kind by default. ``annotated``:
    the reason is its annotation.
    """

    tensor: bool
    trust: Trust
    reason: str
    node: cst.CSTNode | None = None
    own_gradient: bool = False
    call: Span | None = None
    container: bool = False
    by_default: bool = False
    annotated: bool = False


class InputKind(Enum):
    """What an input of forward is."""

    TENSOR = "tensor"
    OPTIONAL_TENSOR = "optional-tensor"
    NON_TENSOR = "non-tensor"
    UNKNOWN = "unknown"


_COUNT = pattern(r"(?:^|_)(?:num_|n_|n?_?bits?(?:_|$))")
"""Names of numbers: ``num_bits``, ``n_heads``, ``nbits``."""


@record
class Input:
    """One input of forward: a parameter after ctx. ``index`` counts from 0, as ``needs_input_grad`` does."""

    index: int
    name: str
    param: Param
    kind: InputKind
    evidence: tuple[Evidence, ...] = ()
    """Strongest first."""
    gradient: Tri = Tri.UNKNOWN
    """Whether backward returns something other than None for it on some path. No if every slot is None."""
    may_be_none: tuple[Evidence, ...] = ()
    """Why None may be passed for it, whatever its type otherwise."""
    refused: bool = False
    """Whether forward, or a function that it calls, raises unless it is None."""

    @property
    def required(self) -> bool:
        """Whether ``apply`` requires it."""
        return self.param.required

    @property
    def is_tensor(self) -> Tri:
        """Certainly a tensor (or an optional tensor), certainly not, or unknown."""
        if self.kind in (InputKind.TENSOR, InputKind.OPTIONAL_TENSOR):
            return Tri.YES
        return Tri.NO if self.kind is InputKind.NON_TENSOR else Tri.UNKNOWN

    @property
    def only_annotated(self) -> bool:
        """Whether nothing but an annotation says that it is a tensor: callers may pass a number all the same."""
        said = self._said_to_be_tensor
        return bool(said) and all(each.annotated for each in said)

    @property
    def counts(self) -> bool:
        """Whether its name is that of a number, and only annotation or gradient say that it is a tensor."""
        unsure = all(each.own_gradient or each.annotated for each in self._said_to_be_tensor)
        return unsure and _COUNT.search(self.name) is not None

    @property
    def _said_to_be_tensor(self) -> list[Evidence]:
        return [each for each in self.evidence if each.tensor and each.trust is not Trust.HINT]

    @cached_property
    def against_a_gradient(self) -> tuple[Evidence, ...]:
        """Why it certainly is not a tensor, even if backward returns a gradient for it; empty if that is not certain.

        One piece of evidence that authors use loosely (a number as default, ``float`` as annotation) does not suffice;
        two do.
        """
        for_tensor = [each for each in self.evidence if each.tensor and each.trust is not Trust.HINT]
        contained = any(each.container and each.node is None for each in self.evidence)
        if any(not each.own_gradient and not (contained and each.reason == RETURNED) for each in for_tensor):
            return ()  # a container may be returned as well
        strong = tuple(each for each in self.evidence if not each.tensor and each.trust in (Trust.PROOF, Trust.STRONG))
        fair = tuple(each for each in self.evidence if not each.tensor and each.trust is Trust.FAIR)
        return strong or (fair if len(fair) > 1 else ())

    @property
    def is_container(self) -> bool:
        """Whether it is certainly a container that may hold tensors, even if backward returns a gradient for it."""
        return any(each.container for each in self.against_a_gradient)

    @property
    def surely_differentiable(self) -> bool:
        """Certainly a tensor for which backward returns a gradient, without evidence that the gradient is wrong."""
        return self.is_tensor is Tri.YES and self.gradient is Tri.YES and not self.against_a_gradient


@record
class Returned:
    """One alternative of one return statement: what autograd gets.

    ``slots`` are the elements of the tuple, or the single value. ``exact``: the count is known; otherwise ``minimum``
    is a lower bound and the positions after the first starred slot are unknown. ``known`` is False if nothing is known
    about the count.
    """

    node: cst.CSTNode
    event: Return
    value: Value
    slots: tuple[Slot, ...]
    known: bool
    exact: bool

    @property
    def count(self) -> int | None:
        """The number of gradients or outputs; None if unknown."""
        return len(self.slots) if self.known and self.exact else None

    @property
    def minimum(self) -> int:
        """A lower bound of the count."""
        return sum(not slot.starred for slot in self.slots) if self.known else 0

    @property
    def display(self) -> Sequence | None:
        """The tuple, list or set, if the value is one."""
        return self.value if isinstance(self.value, Sequence) else None


class Style(Enum):
    """The protocol that a Function follows."""

    CTX_IN_FORWARD = "forward(ctx, ...)"
    SETUP_CONTEXT = "forward(...) and setup_context(ctx, inputs, output)"
    UNKNOWN = "unknown"


@record
class FunctionClass:
    """A subclass of ``torch.autograd.Function`` and everything that its own source shows.

    Invariants: ``inputs`` are numbered from 0 without gaps. The class is immutable once built, except for ``notes``, a
    cache of facts derived from it.
    """

    name: str
    qualname: str
    node: cst.ClassDef
    slice: Slice
    source: Source
    tree: ast.Module | None
    """The whole file as an ``ast`` tree; None if ``ast`` cannot parse it."""
    style: Style
    methods: Mapping[str, Method]
    """Every method by name, including those inherited from bases in the same file (they have ``inherited`` set)."""
    inputs: tuple[Input, ...]
    variadic_inputs: Param | None
    """forward's ``*args``."""
    outputs: tuple[Returned, ...]
    """What forward returns, one entry for each alternative of each return."""
    gradients: tuple[Returned, ...]
    """What backward (or vjp) returns, one entry for each alternative of each return."""
    tangents: tuple[Returned, ...]
    """What jvp returns."""
    calls: tuple[ApplyCall, ...]
    """The calls of this class in the same file, and the known ones in other files, except those that cannot work.

    ``working_calls`` says which: the positions of their arguments mean nothing.
    """
    calls_fail: bool
    """Whether each call in view passes arguments that torch certainly rejects, and there is one."""
    bases_known: bool
    """Whether every base is torch's Function, harmless (Generic, ABC), or a class that could be read."""
    base_names: frozenset[str]
    """The resolved names of the bases that come from outside the project."""
    class_decorators: tuple[str | None, ...]
    class_decorators_known: bool
    overrides_apply: bool
    patched: bool
    """Methods are assigned after the class or defined under a condition, or setattr modifies the class."""
    one_signature: bool
    """Whether it is patched only so that the parameters are the same: ``if`` and ``else`` define the same methods."""
    has_subclass: bool
    called_directly: frozenset[str]
    """The methods that are called directly: ``Fn.backward(...)``, ``super().forward(...)``; ``BY_OTHERS``, if so."""
    stored_attributes: frozenset[str]
    """Every attribute name that this file assigns, deletes, or names in setattr, hasattr, or getattr with a default."""
    class_attributes: Mapping[str, Value]
    """Plain assignments in the class body (``generate_vmap_rule = True``)."""
    replaced: frozenset[str] = frozenset()
    """The methods that other code replaces, as far as it says which: what runs in their place is unknown."""
    is_redefined: bool = False
    """Whether its name certainly means something else at the end of the file: a later version, as in a notebook."""
    is_replaced: bool = False
    """Whether a later class takes its name before anything uses it: then none of its code ever runs."""
    is_for_errors: bool = False
    """Whether a test defines it, and uses it only where it expects an error: what is wrong is meant to be."""
    repeated_in: tuple[str, tuple[str, ...]] | None = None
    """The function that defines the class in each of its calls, only to use it, and its names that the methods use."""
    legacy_state: str | None = None
    """How the class keeps state on ``self``, in the style before torch 1.5; None if it does not."""
    applied: bool = False
    """Whether this file, or another one of the project, reads its ``apply``, to call or to rebind it."""
    known_in_part: bool = False
    """The project was too large to search, so other files may contain more facts about it. Then no fix is safe."""
    is_alternative: bool = False
    """The class is in an ``except`` clause, or under an ``if`` that tests a version or an attribute."""
    is_one_of_several: bool = False
    """There is another class of the same name, and one of the two is such an alternative: a call may mean either."""
    releases: Releases = ALL_RELEASES
    """The torch releases that define it: it may be under an ``if`` that tests torch's version."""
    taken_names: frozenset[str] = frozenset()
    """Deprecated names of torch that the file imports, and that other files import from it."""
    gathering: tuple[tuple[str, str, str], ...] = ()
    """The functions that forward calls to gather a tensor from all processes: the file, the name and the parameter."""
    communicating: tuple[str, ...] = ()
    """The attributes of ctx that backward passes to functions of the project which communicate in such a group."""
    enclosing_names: frozenset[str] = frozenset()
    """Local names of enclosing functions, which methods can see, and names that other files set in the module."""
    absent_names: frozenset[str] = frozenset()
    """The names in methods of files with star imports that none of these certainly binds."""

    @cached_property
    def notes(self) -> dict[object, Any]:
        """A cache for results that later stages derive from the class: fixes look at a method many times."""
        return {}

    @cached_property
    def lasting_notes(self) -> dict[object, Any]:
        """Like ``notes``, for results that refer neither to nodes nor to the text.

        They stay valid for the next text that has the same class, at the same place and with the same calls.
        """
        return {}

    @cached_property
    def code_notes(self) -> dict[object, Any]:
        """Like ``notes``, for results about the code alone: they stay valid when it moves, and when comments change."""
        return {}

    # Positions

    def span(self, node: cst.CSTNode) -> Span:
        """The span of a node in this class's file; for a node from another file, that of the class's name."""
        found = self.location_of(node)
        if found is None:
            raise KeyError(node)
        source, span = found
        return span if source is self.source else self.slice.span(self.node.name)

    def location_of(self, node: cst.CSTNode) -> tuple[Source, Span] | None:
        """The file and span of a node (another file for inherited methods); None if it is in neither."""
        spend(2)
        definition = self._definitions.get(node)
        if definition is not None:
            part, named = definition
            return part.source, part.span_of_name(named)
        for method in self.methods.values():
            for decorator in method.node.decorators:
                if node in (decorator, decorator.decorator):
                    return method.slice.source, method.slice.span_in(method.node, node, head=True)
        for method in self.methods.values():
            if node in method.parents:
                return method.slice.source, method.slice.span_in(method.node, node)
        for each in self._slices:
            try:
                return each.source, each.span(node)
            except KeyError:
                continue
        return None

    @cached_property
    def _definitions(self) -> dict[cst.CSTNode, tuple[Slice, cst.ClassDef | cst.FunctionDef]]:
        """The names of the class and its methods, each with its definition."""
        methods = ((method.node.name, (method.slice, method.node)) for method in self.methods.values())
        return {self.node.name: (self.slice, self.node), **dict(methods)}

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

    def commented_text(self) -> str:
        """The text of the class, from its name on, with its comments."""
        self.source.read_comments()
        return self.source.lines(self.start(self.node.name).line, self.span(self.node).end.line)

    def line(self, node: cst.CSTNode) -> str:
        """The first line of a node, for a message: ``line 4``."""
        return self.slice.source.line_name(self.start(node).line)

    # The methods

    @property
    def forward(self) -> Method | None:
        """The forward method, own or inherited."""
        return self.methods.get("forward")

    @property
    def backward(self) -> Method | None:
        """The backward method, or vjp if there is only that."""
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

    @cached_property
    def earlier_methods(self) -> tuple[Method, ...]:
        """The methods that run before backward: forward, then setup_context."""
        found = (self.methods.get(name) for name in ("forward", "setup_context"))
        return tuple(method for method in found if method is not None)

    @cached_property
    def context_methods(self) -> tuple[Method, ...]:
        """Own methods that write to ctx before backward: forward (when it takes ctx) and setup_context."""
        return tuple(each for each in self.earlier_methods if each.ctx is not None or each.lacks_ctx)

    @cached_property
    def reading_methods(self) -> tuple[Method, ...]:
        """The methods that read ctx later: backward, vjp, jvp."""
        found = (self.methods.get(name) for name in ("backward", "vjp", "jvp"))
        return tuple(method for method in found if method is not None)

    @property
    def storing_ctx(self) -> str:
        """The name of ctx in the method that stores state on it: setup_context or forward."""
        return next((method.ctx_name for method in reversed(self.context_methods) if method.ctx is not None), "ctx")

    @property
    def reading_ctx(self) -> str:
        """The name of ctx in backward."""
        return self.backward.ctx_name if self.backward is not None else "ctx"

    # What rules may check

    @property
    def signature_judgeable(self) -> bool:
        """Whether rules on signatures apply: bases, class decorators, apply and methods are all known."""
        return self.bases_known and self.class_decorators_known and not self.overrides_apply and not self.patched

    @cached_property
    def conditional_methods(self) -> frozenset[str]:
        """The names of the methods under an ``if`` or ``try`` of the class body."""
        return conditional_methods(self.node)

    @property
    def arguments_judgeable(self) -> bool:
        """Whether the arguments of ``apply`` are those that forward takes, whichever of several runs."""
        known = self.bases_known and self.class_decorators_known and not self.overrides_apply
        return known and (self.one_signature or not self.patched)

    @property
    def saves_replaced(self) -> bool:
        """Whether other code replaces a method that keeps something on ctx."""
        return not self.replaced.isdisjoint(("forward", "setup_context"))

    @property
    def judgeable_backward(self) -> Method | None:
        """The backward that the class itself defines, if rules on signatures apply to it."""
        backward = self.backward
        return None if backward is None or backward.inherited or not self.signature_judgeable else backward

    @property
    def counted_backward(self) -> Method | None:
        """The backward that the class itself defines, if rules that count gradients and outputs apply to it."""
        return self.judgeable_backward if self.count_judgeable else None

    @cached_property
    def count_judgeable(self) -> bool:
        """Whether rules that count gradients and outputs apply: also no decorator that may change them.

        A class that has, or may have, subclasses, or whose forward or backward is called directly, may be a base whose
        results other code unpacks; unless it is applied itself.
        """
        used_by_others = self.shares_backward or "forward" in self.called_directly or self.known_in_part
        return (
            self.signature_judgeable
            and (self.applied or not used_by_others)
            and all(method.signature_known for method in (self.forward, self.backward) if method is not None)
            and not any(
                method.lacks_ctx or (method.receiver is not None and method.binding is not Binding.CLASS)
                for method in self.methods.values()
                if method.name in PROTOCOL
            )
        )

    @property
    def shares_backward(self) -> bool:
        """Whether a subclass, or a direct call, may use what backward returns."""
        return self.has_subclass or bool(self.called_directly & {"backward", "vjp"})

    @cached_property
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
    def writes_by_attribute(self) -> Mapping[str, list[ContextWrite]]:
        """``context_writes`` by the attribute."""
        found: dict[str, list[ContextWrite]] = {}
        for write in self.context_writes:
            found.setdefault(write.attribute, []).append(write)
        return found

    @cached_property
    def reads_by_attribute(self) -> Mapping[str, list[ContextRead]]:
        """``context_reads`` by the attribute."""
        found: dict[str, list[ContextRead]] = {}
        for read in self.context_reads:
            found.setdefault(read.attribute, []).append(read)
        return found

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
        """Does backward get zeros for undefined gradients? Yes unless ``set_materialize_grads`` disables it."""
        calls = self.context_calls("set_materialize_grads")
        literals = [argument.value for call in calls for argument in call.arguments]
        flags = not self.stored_attributes.isdisjoint(("materialize_grads", "_materialize_non_diff_grads"))
        hidden = self.escapes or flags or len(literals) < len(calls)
        return Tri.UNKNOWN if hidden or any(each != constant(True) for each in literals) else Tri.YES

    def outputs_values(self) -> Iterator[Value]:
        """The value of each output, over all returns of forward."""
        for returned in self.outputs:
            for slot in returned.slots:
                yield slot.value


@record
class Operator:
    """A custom operator and its gradient.

    ``inputs`` are the parameters that get a gradient: those that can be passed by position; ``keyword_only`` are the
    others. ``outputs`` is the number of outputs according to the annotation, None if unknown. ``gradients`` is what
    backward returns, one entry for each alternative of each return.
    """

    name: str
    inputs: tuple[Param, ...]
    keyword_only: tuple[Param, ...]
    outputs: int | None
    backward: Method
    setup_context: Method | None
    gradients: tuple[Returned, ...]
    floating: frozenset[int] = frozenset()
    """The numbers of the outputs that are certainly floating-point tensors."""
    vectors: frozenset[int] = frozenset()
    """The numbers of the outputs that have a single dimension, as the fake shows."""
    function: cst.FunctionDef | None = None
    """The function of the operator."""
    registered_here: bool = True
    """Whether the linted file registers the gradient: otherwise another one does, with functions of this file."""
    setup_used: bool = False
    """Whether another file uses ``setup_context`` for something else."""
    setup_by_position: Span | None = None
    """Where the registration gets ``setup_context`` as a positional argument."""

    def span(self, node: cst.CSTNode) -> Span:
        """The span of a node of backward or setup_context in the file."""
        if self.setup_context is not None:
            try:
                return self.setup_context.slice.span(node)
            except KeyError:
                pass
        return self.backward.slice.span(node)


@record
class SharedResult:
    """A return of the operator ``name``, defined by ``function``, that torch rejects; or of its ``fake``.

    ``by_schema``: a string defines the operator, and torch does not compare its memory.
    ``parameters`` are those that the results share memory with; empty if two results share it. ``whole``: the results
    are these tensors themselves, not views of them; ``always``: on every path of this return.
    """

    span: Span
    name: str
    function: str
    parameters: tuple[str, ...]
    whole: bool
    always: bool
    fake: bool = False
    by_schema: bool = False


@record
class UndeclaredWrite:
    """A write of the operator ``function`` to the inputs ``parameters``, none of which it names.

    ``named`` are those that it names. ``returns_nothing``: it certainly has no result. ``written_at`` is the write,
    with its file, if the ``span`` is that of an argument: of ``keyword``, or of the implementation of an operator with
    a schema, which has the parameters ``declared`` and is ``declared_at`` a place. ``has_fake``: torch itself makes its
    fake, as for a ``triton_op``.
    """

    span: Span
    function: str
    parameters: tuple[str, ...]
    returns_nothing: bool
    keyword: str = "mutates_args"
    declared: tuple[str, ...] = ()
    written_at: tuple[str, Span] | None = None
    declared_at: tuple[str, Span] | None = None
    has_fake: bool = False
    named: tuple[str, ...] = ()


@record
class RejectedOperator:
    """The operator ``function``, which torch does not define because of a part of its signature, at the ``span``.

    ``parameter``, ``instead``: see ``Rejection``. ``written`` is the code of the part; ``others`` are
    further ones. ``element`` is the code of what torch rejects in a tuple.
    """

    span: Span
    function: str
    reason: RejectedPart
    parameter: str
    instead: str
    written: str
    others: tuple[Span, ...] = ()
    element: str = ""


class FakeFault(Enum):
    """What does not fit between an operator and its fake."""

    NOT_TAKEN = "the operator passes arguments that the fake does not take"
    REQUIRED = "the fake needs arguments that the operator does not have"
    DEFAULT = "the fake has no default where the operator has one"
    SHIFTED = "a parameter of the fake gets the argument for another one, as one before it is missing"
    ORDER = "the fake has the same parameters in another order"
    UNDEFINED = "the fake reads a name that nothing defines"
    NO_TENSOR = "the fake takes an element of its ``*args`` for a tensor, which is a number"
    RESULTS = "the fake returns another number of tensors"
    DIMENSIONS = "the fake returns a tensor with another number of dimensions"
    SIZES = "the fake returns a tensor with other sizes"
    DTYPE = "the fake returns a tensor of another dtype"
    LAYOUT = "the fake returns a tensor with other strides"


@record
class FakeMismatch:
    """A fake that does not fit its operator ``function``, at the ``span``.

    ``names`` are the parameters in question; of ``SHIFTED``, the missing one, and the one that gets its argument; of
    ``ORDER``, those from the first to the last in another place, with ``spans``, and ``ordered`` as they belong; of
    ``NO_TENSOR``, the element, the parameter of the operator that it is, and its type; of ``UNDEFINED``, the name, and
    the parameter that may be meant. ``sometimes``: see below, or a condition may skip that read.
    ``default`` is the code of the operator's default, if it is one parameter. ``sometimes``: only calls that pass the
    arguments are concerned; ``stray``: the fake has others before some of the operator's, or lacks several there;
    with the missing ones, its ``*args`` would still not begin where it takes a tensor from them.
    ``untaken``: those of the operator whose arguments are too many for the fake; ``instead`` is the parameter of the
    fake that gets the argument for the first missing one.
    ``expected`` and ``returned`` are the numbers of tensors, None for a single one;
    ``annotated``: only the annotation of the operator shows the former, its body does not.

    ``at`` is the number of the result in question, None for the only one; ``here`` and ``there`` are its sizes, dtype
    or layout in the fake and in the operator. They differ only for some tensors if ``of`` is a parameter that decides,
    and only on the path of a return that is ``on_a_path``, in this file.
    """

    span: Span
    function: str
    fault: FakeFault
    names: tuple[str, ...] = ()
    default: str = ""
    sometimes: bool = False
    stray: bool = False
    untaken: tuple[str, ...] = ()
    instead: str = ""
    expected: int | None = None
    returned: int | None = None
    annotated: bool = False
    at: int | None = None
    here: str = ""
    there: str = ""
    of: str = ""
    on_a_path: tuple[str, Span] | None = None
    spans: tuple[Span, ...] = ()
    ordered: tuple[str, ...] = ()


@record
class GradModeTest:
    """A call of ``torch.is_grad_enabled()`` in the operator ``function``."""

    span: Span
    function: str


@record
class BackwardWithCast:
    """The gradient ``function`` of an ``operator``, with ``custom_bwd``, at the registration."""

    span: Span
    operator: str
    function: str


@record
class KernelBelowAutograd:
    """A kernel of an operator, registered for a device, that is ``apply`` of a Function, or returns what that gives.

    ``kernel`` is its code or name, ``operator`` the name without a namespace, and ``key`` as it is written.
    """

    span: Span
    kernel: str
    function: str
    operator: str
    key: str


@record
class GivenUp:
    """A Function, or the gradient of an operator, whose analysis takes too much work."""

    position: Position
    name: str
    qualname: str = ""


@record
class SourceFile:
    """One file: its Functions, their calls, and what could not be read."""

    source: Source
    instances: Instances
    """How the instances of Functions that the file creates are used."""
    tree: ast.Module | None = None
    """The whole file as an ``ast`` tree; None if ``ast`` cannot parse it."""
    functions: tuple[FunctionClass, ...] = ()
    calls: tuple[ApplyCall, ...] = ()
    """Every call of a Function in ``by_name``, in source order."""
    modified_results: tuple[ApplyCall, ...] = ()
    """The calls that a function of the file returns, and whose result some caller of that modifies in place."""
    by_name: Mapping[str, FunctionClass] = field(default_factory=dict)
    """The Functions that are called: by qualified name, or by a separate key for those of other files."""
    operators: tuple[Operator, ...] = ()
    """The custom operators whose gradient is registered in this file, or consists of functions of this file."""
    shared_results: tuple[SharedResult, ...] = ()
    """The returns of custom operators that torch rejects."""
    transformed_operators: tuple[ApplyCall, ...] = ()
    """The custom operators that transforms of ``torch.func`` differentiate."""
    bare_operators: tuple[BareOperator, ...] = ()
    """The custom operators without a gradient that modules call."""
    undeclared_writes: tuple[UndeclaredWrite, ...] = ()
    """The writes of custom operators that ``torch.compile`` drops."""
    rejected_operators: tuple[RejectedOperator, ...] = ()
    """The custom operators that torch does not define."""
    fake_mismatches: tuple[FakeMismatch, ...] = ()
    """The fakes that do not fit their operators."""
    grad_mode_tests: tuple[GradModeTest, ...] = ()
    """Where custom operators ask for grad mode."""
    kernels_below_autograd: tuple[KernelBelowAutograd, ...] = ()
    """The Functions that are registered as kernels of a device."""
    cast_backwards: tuple[BackwardWithCast, ...] = ()
    """The gradients of custom operators that have ``custom_bwd``."""
    module_backwards: tuple[ModuleBackward, ...] = ()
    """The methods of modules that look as if autograd called them."""
    broken: tuple[BrokenStatement, ...] = ()
    too_complex: tuple[GivenUp, ...] = ()
    """What is missing from ``functions`` and ``operators`` because it takes too much work."""

    @property
    def operator_gradients(self) -> list[Operator]:
        """The operators whose backward is in this file."""
        return [each for each in self.operators if self._contains(each.backward)]

    @property
    def operator_setups(self) -> list[Operator]:
        """The operators whose ``setup_context`` is in this file."""
        return [each for each in self.operators if each.setup_context and self._contains(each.setup_context)]

    def _contains(self, method: Method) -> bool:
        return method.slice.source is self.source


__all__ = [
    "ApplyCall",
    "ArgumentKind",
    "Asks",
    "Assigned",
    "Binding",
    "ContextCall",
    "ContextRead",
    "ContextWrite",
    "Decorator",
    "Escape",
    "Event",
    "Evidence",
    "FunctionClass",
    "GenericCall",
    "GradientsUsedAsTensor",
    "Guard",
    "Input",
    "InputKind",
    "Method",
    "MethodFacts",
    "Mutation",
    "NeedsInputGradRead",
    "Param",
    "ParameterKind",
    "Question",
    "Return",
    "Returned",
    "SavedItem",
    "SavedRead",
    "SourceFile",
    "Style",
    "Trust",
    "TupleUsedAsTensor",
    "UnboundContext",
    "Unpacking",
]
