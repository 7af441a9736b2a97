"""The summary of a project function, for its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    import libcst as cst

    from ctxlint.model.index.kernel_blocks import KernelBlocks
    from ctxlint.model.index.kernel_faults import KernelFaults
    from ctxlint.model.index.project import Definition
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.events import (
        ContextEvent,
        KernelFault,
        KernelParameter,
        LeftOut,
        Misfit,
        Orders,
        Step,
        TrialEffect,
        UnfilledAllocation,
    )
    from ctxlint.model.interpreter.values import Mapping as Mapping_
    from ctxlint.model.interpreter.values import ProjectFunction, ProjectObject, Slot, Value


KERNEL = "kernel"
"""The ``how`` of a kernel's writes."""

OPERATOR = "operator"
"""The ``how`` of a custom operator's writes."""

FILLED = "unknown code"
"""The ``how`` of what code outside of the project writes, by its keyword ``out``, or as nothing else can do that."""

EXTENSION = "extension"
"""The ``how`` of what a compiled extension reads."""

COLLECTIVE = "collective"
"""The ``how`` of what a collective sends."""

PARTLY_STRIDED = "kernel without the last stride"
"""The ``how`` of what a kernel gets without its last stride."""

SENT = "point to point"
"""The ``how`` of what is sent to another process, for which every backend wants it contiguous."""

ASSERTED = "is_contiguous"
"""The ``how`` of an assertion that a tensor is contiguous."""

COMPILED = (KERNEL, PARTLY_STRIDED, EXTENSION, COLLECTIVE, SENT)
"""Each ``how`` of what compiled code gets."""


@record
class Write:
    """The function certainly writes to ``target`` by ``how``. ``steps`` lead there; the statement is the last.

    ``order`` is that of the event in the function, and so is ``chosen``; ``adds``: see ``Mutation``.
    """

    target: Value
    how: str
    steps: tuple[Step, ...]
    order: int = 0
    chosen: bool = False
    adds: bool = False


@record
class Read:
    """The function reads the memory of ``target`` on some path, whatever its layout is; as for a ``MemoryRead``."""

    target: Value
    how: str
    reader: str
    steps: tuple[Step, ...]
    parameter: KernelParameter | None = None
    alike: bool = False
    others: bool = False
    view: tuple[cst.FunctionDef, cst.CSTNode, str] | None = None


@record
class StridesUse:
    """The function has a kernel compute addresses in ``value`` by strides of ``owner``; as for ``ForeignStrides``.

    ``name`` is what the function calls a tensor of its own.
    """

    value: Value
    owner: Value
    made: str
    like: Value | None
    name: str
    reader: str
    steps: tuple[Step, ...]


@record
class Launch:
    """The function has a kernel get all elements of ``target``; as for a ``GradientLaunch``."""

    target: Value
    parameter: KernelParameter
    reader: str
    steps: tuple[Step, ...]


@record
class NoneRead:
    """The function certainly fails if ``target`` is None: it reads ``how``, ``.attribute``, of it."""

    target: Value
    how: str
    steps: tuple[Step, ...]


@record
class UnboundRead:
    """The function reads its local ``name`` under no condition, but binds it only where ``needed`` need a gradient."""

    name: str
    needed: tuple[Value, ...]
    steps: tuple[Step, ...]


@record
class NoneElement:
    """The function returns None as element ``at`` of a tuple unless all of ``needed`` need a gradient."""

    at: int
    needed: tuple[Value, ...]
    steps: tuple[Step, ...]


@record
class GraphUse:
    """The function tests, as ``test``, whether a tensor that it computes requires a gradient, or differentiates it.

    ``how`` names the call that does that.
    """

    steps: tuple[Step, ...]
    test: str = ""
    how: str = ""


@record
class ArgumentFlagTest:
    """What a function ``by`` does depends on ``test``: whether ``target`` requires a gradient."""

    target: Value
    test: str
    by: str
    steps: tuple[Step, ...]


@record
class ContextEffects:
    """What a function does with the ctx that it gets.

    ``events`` are those of its body, numbered and under conditions as there; ``done`` are those that certainly happened
    when it returns. ``attributes`` are those of ctx that it certainly sets, with their values then.
    """

    events: tuple[ContextEvent, ...]
    attributes: tuple[tuple[str, Value], ...]
    done: Orders


@record
class Summary:
    """The effect of a function for certain arguments. ``returned`` is NEVER if it always raises.

    ``on_context`` is None if it does not get the ctx. ``deferred`` are the writes of a generator function: they happen
    once all that it yields is taken. ``none_reads`` fail if what they read is None, and
    ``unbound_reads`` if an argument needs no gradient.
    """

    returned: Value
    writes: tuple[Write, ...] = ()
    reads: tuple[Read, ...] = ()
    on_context: ContextEffects | None = None
    deferred: tuple[Write, ...] = ()
    none_reads: tuple[NoneRead, ...] = ()
    unbound_reads: tuple[UnboundRead, ...] = ()
    graph_uses: tuple[GraphUse, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    strides: tuple[StridesUse, ...] = ()
    flag_tests: tuple[ArgumentFlagTest, ...] = ()
    trial_effects: tuple[TrialEffect, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    kernel_faults: tuple[KernelFault, ...] = ()
    unwritten: tuple[int, ...] = ()
    """The elements of what it returns that are memory which nothing writes to, unless None."""
    unfilled: tuple[UnfilledAllocation, ...] = ()
    """The memory that it adds to before it has values."""
    absent: frozenset[Value] = frozenset()
    """The arguments that are certainly None once it returns."""
    none_elements: tuple[NoneElement, ...] = ()
    launches: tuple[Launch, ...] = ()


@record
class OperatorCalled:
    """A call of a custom operator: what it is declared to write, and what its Python code reads as a ``Read``."""

    name: str
    writes: tuple[Write, ...] = ()
    reads: tuple[Read, ...] = ()


class Resolver(Protocol):
    """Resolves the names of a file to project functions and their summaries."""

    def callee(
        self,
        name: str,
        arguments: tuple[Slot, ...],
        keywords: Mapping[str, Slot],
        call: cst.BaseExpression,
        attributes: Mapping[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """A function and its summary for this call, in values of the caller; None if unknown.

        ``attributes`` are the values of those of ctx that the caller has set.
        """

    def refused(self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> frozenset[Value]:
        """The arguments for which a function without a known summary raises unless they are None."""

    def call(
        self,
        function: ProjectFunction,
        arguments: tuple[Slot, ...],
        keywords: Mapping[str, Slot],
        call: cst.BaseExpression,
        attributes: Mapping[str, Value],
    ) -> tuple[Definition, Summary] | None:
        """Like ``callee``, for a function as a value."""

    def custom_parameters(self, definition: Definition) -> frozenset[str]:
        """The parameters of a function of whose arguments an attribute is used that no other tensor has."""

    def nested(
        self, around: str, name: str, captured: tuple[tuple[str, Slot], ...], defined: bool
    ) -> ProjectFunction | None:
        """The function of a name in one of the file, with what it captures; ``defined``: it is not a lambda."""

    def anonymous(
        self, function: str, node: cst.Lambda, captured: tuple[tuple[str, Slot], ...]
    ) -> ProjectFunction | None:
        """A lambda without a name in a function of the file, with what it captures."""

    def method(self, instance: ProjectObject, name: str) -> tuple[ProjectFunction, tuple[Slot, ...]] | None:
        """A method of an object, and the first argument of its calls if it takes the object; None if unknown."""

    def above(self, owner: str, name: str) -> ProjectFunction | None:
        """The static or class method ``name`` of the base of a class of the file: of ``super()``."""

    def instance(self, name: str) -> ProjectObject | None:
        """The object that a name of the module is certainly bound to."""

    def surrounding(self, scope: Scope, name: str) -> ProjectObject | None:
        """The object whose method surrounds the code, if a name in the scope of that method certainly means it."""

    def attribute(self, instance: ProjectObject, name: str) -> Value | None:
        """The object that an attribute of an object holds, or perhaps None."""

    def property(self, instance: ProjectObject, name: str, node: cst.BaseExpression) -> Value | None:
        """What a property of an object returns, if it does nothing else; None if it is unknown, or no property."""

    def table(self, name: str) -> Mapping_ | None:
        """The dict of functions that a resolved name certainly denotes, if nothing in the project changes it."""

    def imported_constant(self, name: str) -> Value | None:
        """The value of a constant of another file, by its imported or dotted name; None for anything else."""

    def unbound(self, name: str) -> str | None:
        """The resolved name of one that only a star import, or Python itself, can bind."""

    def of_torch(self, name: str) -> str | None:
        """The name in torch of what another file of the project imports from there: ``dist`` of ``common``."""

    def kernel(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], open_ended: bool = False
    ) -> tuple[Definition, tuple[Write, ...]] | None:
        """A kernel and its writes when launched with these arguments; None for anything else."""

    def launch_misfit(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], open_ended: bool
    ) -> Misfit | None:
        """What a kernel certainly does not take of these arguments; None for nothing, or anything else."""

    def trial_effect(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], open_ended: bool
    ) -> TrialEffect | None:
        """What each trial of ``autotune`` certainly changes again, with these arguments; None for nothing."""

    def kernel_faults(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], open_ended: bool
    ) -> tuple[Definition, KernelFaults, Mapping[str, Slot]] | None:
        """A kernel of Triton, what may be wrong in it, and what each parameter gets; None for nothing."""

    def launched_kernel(self, name: str) -> Definition | None:
        """A kernel that certainly is one of Triton; None for anything else, or if no rule asks."""

    def kernel_blocks(self, name: str, *, unmasked: bool = False) -> KernelBlocks | None:
        """The blocks of memory that each program of a kernel of Triton writes; None for anything else."""

    def kernel_parameters(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
    ) -> dict[int, KernelParameter]:
        """The parameters of a kernel that get these arguments, by the identity of the slot; none if it is unknown."""

    def has_fallback(self, name: str, scope: Scope) -> bool:
        """Whether an ``except`` clause, here or where a name is imported from, binds it to something else."""

    def call_misfit(self, name: str, positional: int, keywords: Mapping[str, Slot]) -> Misfit | None:
        """What a project function certainly does not take of these arguments; None for nothing, or anything else."""

    def name_misfit(self, module: str, name: str, code: str) -> Misfit | None:
        """What a read of a name of torch or NumPy, written as ``code``, lacks; None if the module may have it."""

    def is_loaded(self, name: str) -> bool:
        """Whether a name is one in a compiled extension that another file of the project loads."""

    def operator(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], call: cst.Call
    ) -> OperatorCalled | None:
        """A custom operator of the project, and what it writes and reads of these arguments; None for anything else."""
