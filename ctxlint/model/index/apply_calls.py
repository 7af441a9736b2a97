"""Calls of Functions. Light to import: the cache consists of these records, and needs no LibCST."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.source.source import Position, Span


@record
class Modified:
    """A statement that modifies a result in place: output number ``output``, or the whole result if None.

    If ``argument`` is a number, it modifies that argument of the call, and the result is read afterwards. ``later``:
    grad mode is off there, so that torch raises only when the result is used afterwards. ``in_branch``: it is in an
    ``if`` or a loop, and may not run. ``undone``: nothing between the two seems to run ``backward``.
    """

    span: Span
    code: str
    line: str
    output: int | None = None
    argument: int | None = None
    later: bool = False
    in_branch: bool = False
    undone: bool = False


APPLIES = ("apply", "construct-apply")
"""The kinds of calls that run autograd's ``apply``; see ``ApplyCall.how``."""


@record
class Transform:
    """A transform of ``torch.func`` that certainly runs a call: the last part of its name, and how it is written.

    ``start`` and ``line``: where it is applied. ``make_dual`` stands for forward-mode AD without a transform.
    ``tangent``: an input of the call certainly carries a tangent.
    """

    name: str
    written: str
    start: Position
    line: str
    tangent: bool = False


@record
class ApplyCall:
    """A call of, or on, a Function class. Created from ``ast``; positions are those of the calling file.

    ``how`` is ``apply`` (``Fn.apply(...)`` or through an alias), ``construct`` (``Fn(...)``), ``construct-call``
    (``Fn()(x)``), ``construct-apply`` (``Fn().apply(x)``) or ``direct`` (``Fn.forward(...)``, ``method`` names it);
    ``transform`` stands for an ``apply`` that a transform gets, or reaches in another file: ``vmap(Fn.apply)``, and
    ``operator`` for a custom operator that one runs: ``alias`` is its name, and it is a call of no Function.
    """

    function: str
    """Qualified name of the class in this file; for a class of another file, its key in ``SourceFile.by_name``."""
    how: str
    span: Span
    positional: int
    starred: bool
    keywords: tuple[str, ...]
    double_starred: bool
    arguments: tuple[ArgumentKind, ...]
    """One per positional argument, in order, up to the first starred one."""
    names: tuple[str, ...] = ()
    """Those of the arguments in ``arguments``, or ``owner.name``; empty for one that is neither."""
    inner: tuple[tuple[str, str], ...] = ()
    """Names that a call among the arguments gets but certainly does not take, each with the name of that call."""
    detached: tuple[int, ...] = ()
    """Positions of arguments that certainly require no gradient: ``x.data``, ``x.detach()``."""
    handed_on: tuple[tuple[int, int], ...] = ()
    """Positions of arguments that are parameters of the module's function around the call, with those of the latter."""
    literals: tuple[tuple[int, str], ...] = ()
    """Positions of arguments that are ``None``, a bool, a whole number or a short string, with its code."""
    defaults: tuple[tuple[int, str], ...] = ()
    """Positions of arguments that are parameters of the function around the call with a number or ``None`` as default,
    which that function does not test, and it; ``None`` only if nothing may keep it from getting there."""
    of_module: tuple[int, ...] = ()
    """Positions of arguments that are names of the module of the call: its functions, what it imports."""
    settled: tuple[int, ...] = ()
    """Positions of arguments that are parameters of the function around the call with None as default, if it tests them
    or binds them again: None may never get here."""
    asked: tuple[int, ...] = ()
    """Positions of arguments whose flag the function around the call tests by itself, as in ``if x.requires_grad:``."""
    frozen: tuple[int, ...] = ()
    """Positions of arguments that are certainly frozen parameters or buffers of a module: ``self.weight``."""
    leaves: tuple[int, ...] = ()
    """Positions of arguments that look like a leaf that requires grad, or a view of one: ``self.weight``."""
    modifiable: tuple[tuple[int, str], ...] = ()
    """Positions of arguments that certainly are a leaf that requires grad, or a view of one, each with its code."""
    created: tuple[int, ...] = ()
    """Positions of arguments that the caller creates with a ``requires_grad=`` that may be true: leaves, if it is."""
    tracked: tuple[int, ...] = ()
    """Positions of arguments for which the caller requests a gradient, or that a module of ``self`` returns."""
    stored: tuple[int, ...] = ()
    """Positions of arguments that another object may hold: ``node.data``; it may be a leaf, as it is used elsewhere."""
    lasting: tuple[int, ...] = ()
    """Positions of arguments that certainly are the same memory in each call of a module: ``self.buffer``."""
    handed_back: bool = False
    """Whether the method around a call with such arguments returns the result as it is."""
    any_layout: tuple[int, ...] = ()
    """Positions of arguments that the caller was passed, or that are usually not contiguous: ``x.t()``."""
    sliced: tuple[tuple[int, int, int, str], ...] = ()
    """Positions of arguments such as ``x[:, 1:, :]``, each with the first dimension but 0 of which it takes a part, how
    many dimensions it names, and its code."""
    parameter: str = ""
    """The first argument that is certainly a parameter that a module creates to train it: ``self.weight``."""
    returned: bool = False
    """Whether the function around it certainly returns what is differentiable by the result; for a Function without
    ``backward`` in its file, and a parameter of a module or of that function."""
    given_parameters: tuple[int, ...] = ()
    """Positions of arguments in ``handed_on`` for which a call of that function certainly passes a parameter."""
    trained: tuple[int, ...] = ()
    """Positions of arguments that are such parameters, which the module reads for nothing else."""
    enclosed: tuple[tuple[int, str], ...] = ()
    """Positions of lists and tuples that hold a tensor which requires grad and is passed nowhere else in the call.

    Each comes with the name of the tensor, which is empty if it has none."""
    incoming: tuple[tuple[int, str], ...] = ()
    """Positions of arguments that are incoming gradients of the backward around the call, each with its class."""
    origins: tuple[str, ...] = ()
    """The tensors of the caller that they are computed from, if two of them come from the same one; see ``origins``."""
    rest: int | None = None
    """The number of arguments before the ``*args`` of the module's function around it, if it passes those on."""
    relayed: str = ""
    """What a call of that function passes for these arguments that is not a tensor: ``container``, ``number`` ..."""
    method: str | None = None
    inside: str = ""
    """Qualified name of the enclosing function or class; empty at module level."""
    inside_function_class: bool = False
    in_module: bool = False
    """Whether it is in a method of a class of which a base is called ``Module``."""
    groups: tuple[tuple[str, str], ...] = ()
    """Parameters of the functions around the call that are process groups by name, and that it does not pass, each with
    that function, unless this tests it."""
    compiled: bool = False
    """Whether a function around the call is certainly decorated with ``torch.compile``."""
    limits_elements: bool = False
    """Whether the outermost function or class around the call mentions the number of elements that fit in 32 bits."""
    may_fit_sizes: bool = False
    """Whether the outermost function or class around the call may pad tensors to a size, or test theirs."""
    alias: str | None = None
    """The name that is called, if it is not ``Fn.apply``."""
    callee_span: Span | None = None
    """The ``Fn`` or ``Fn(...)`` part of the callee."""
    expects_error: bool = False
    """Whether it is under something like ``pytest.raises(...)``."""
    may_mean_another: bool = False
    """Whether an ``except`` clause binds the name of the class as well, to another class or module than this one."""
    line: str = ""
    """Where it starts, for a message: ``line 4``."""
    gradients_off: bool = False
    """Whether possibly no gradient is wanted: ``torch.no_grad()``, the kernel of an operator, a function that tests."""
    under_no_grad: bool = False
    """Whether certainly no gradient is recorded: it is under ``torch.no_grad()`` or ``torch.inference_mode()``."""
    on_device: bool = False
    """Whether it is under a context manager or in a function that may make a GPU the current one."""
    uncast: tuple[int, ...] = ()
    """Positions of arguments that are what ``self`` holds, in its own dtype: ``self.weight.t()``. Only if the function
    around the call enters autocast, or asks whether it is on."""
    modified: Modified | None = None
    """Where the caller modifies the result in place."""
    returned_by: str = ""
    """The function of the module that returns nothing but its result: ``return Fn.apply(x)``."""
    discarded: bool = False
    """Whether it is a statement of its own in a function, so that nothing takes its result."""
    goes_on: bool = False
    """Whether that function then uses what it has passed: it does not only measure the call, or try it."""
    differentiated: str = ""
    """Where the caller differentiates the result, after requesting the gradient of an argument: ``line 6``."""
    differentiated_inputs: tuple[int, ...] = ()
    """Positions of arguments whose gradient the caller itself requests before that: ``x.requires_grad_()``."""
    differentiated_outputs: tuple[int, ...] = ()
    """The outputs of which it then differentiates at least one; empty if the result is not unpacked."""
    differentiated_again: str = ""
    """Where the caller differentiates the result a second time: ``line 7``."""
    second_derivatives: tuple[tuple[int, int, str], ...] = ()
    """Where it differentiates a gradient of the result by an argument once more, with the positions of that argument
    and of the one that the second gradient certainly is by: ``(0, 0, "line 8")``."""
    transforms: tuple[Transform, ...] = ()
    """The transforms that certainly run it, as far as its file shows."""
    instance_called: bool = False
    """Whether it creates an instance that its file certainly calls by the name that it is kept under."""
    path: str = ""
    """The path of the calling file, relative to the folder of the class; empty if it is the class's own file."""

    @property
    def applies(self) -> bool:
        """Whether it calls ``apply``, of the class or of an instance."""
        return self.how in APPLIES

    @property
    def trained_here(self) -> tuple[int, ...]:
        """``trained``, if the call is in the ``forward`` of a module, with gradients."""
        used = self.in_module and not self.discarded and not self.gradients_off
        return self.trained if used and self.inside.rpartition(".")[2] == "forward" else ()

    @property
    def place(self) -> str:
        """Its position, for a message: ``line 3``, or ``line 3 of `train.py```."""
        return f"{self.line} of `{self.path}`" if self.path else self.line


class ArgumentKind(Enum):
    """What a call passes, according to a literal, or to the signature of the calling function."""

    NUMBER = "number"
    STRING = "string"
    BOOL = "bool"
    NONE = "None"
    TENSOR = "tensor"
    CONTAINER = "container"
    TENSORS = "tuple of tensors"
    PLAIN_CONTAINER = "container of numbers"
    """Or of strings and the like: certainly without a tensor."""
    FLAG = "flag"
    """A parameter of the caller with a bool as default."""
    OPTION = "option"
    """A parameter of the caller with a string as default."""
    TUPLE = "tuple"
    """A parameter of the caller with a tuple of numbers and the like as default."""
    OTHER = "other"

    @property
    def is_evidence(self) -> bool:
        """Whether it shows what kind of input it is."""
        return self not in (ArgumentKind.OTHER, ArgumentKind.NONE)
