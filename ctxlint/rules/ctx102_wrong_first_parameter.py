"""CTX102: the first parameter is not the ctx, or does not look like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.decorators import static_for_class
from ctxlint.fixes.receiver_parameters import add_ctx, call_it_ctx, drop_receiver, write_ctx
from ctxlint.model.analyses.context_parameter import takes_class_as_context
from ctxlint.model.analyses.foreign_names import unbound_receivers
from ctxlint.model.analyses.legacy import is_called_as_instance, may_mean_an_instance
from ctxlint.model.analyses.misnamed import misnamed
from ctxlint.model.function import Binding, FunctionClass, GenericCall, ParameterKind, Style, UnboundContext
from ctxlint.model.index.python_names import RECEIVERS
from ctxlint.model.interpreter.signatures import is_context_name
from ctxlint.model.syntax import dotted
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.wording import if_called, if_it_runs, moment, refusal
from ctxlint.torch_api.autograd import CONTEXT_ONLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.function import Method


class WrongFirstParameter(Rule[FunctionClass]):
    """
    ## What it does
    Reports methods that autograd calls with the ctx but whose first parameter is something else: it is called `self` or
    `cls`; it is missing; another receiver precedes it; a class method has no `cls`. Also reports a method that reads a
    `self` it does not have, and `super()` without arguments in a static method.

    ## Why is this bad?
    Autograd takes `forward`, `backward`, `vjp`, `setup_context` and `jvp` from the class and passes the ctx first. A
    ctx called `self` works but misleads: it has no attribute that the class or `__init__` sets (`AttributeError:
    'FBackward' object has no attribute 'scale'`). In the other cases the call raises: `TypeError: F.forward() takes 1
    positional argument but 2 were given`, `F.forward() missing 1 required positional argument: 'x'`, `NameError: name
    'ctx' is not defined`, `super(type, obj): obj must be an instance or subtype of type`. Or, worse, the ctx is passed
    where the first tensor is expected. All torch releases from 1.13 to 2.15 behave the same.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(self, x):
            return x * 2

        @staticmethod
        def backward(grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Safe: `self` or `cls` and all its uses are renamed to `ctx` if that name is free, also where it is unbound and used
    as only the ctx can be; `ctx` is added if the body uses it
    unbound; a receiver before `ctx` is removed if the body does not use it; `@classmethod` without `cls` becomes
    `@staticmethod`. Adding a `ctx` that nothing uses is unsafe, and so are the last two fixes if defaults or `*args`
    make a call work by accident. `super()` has no fix.

    ## Known limits
    `forward(cls, ctx, x)` as a static method is legal if a subclass calls it directly; it is reported only for classes
    whose `apply` is used in a linted file. A first parameter with any other name counts as the ctx unless it is used as
    only a tensor can be. Not reported if a base class or a decorator is unknown, if the method is called directly,
    or if the methods read attributes of `self` that only a subclass may define.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX102"
    name = "wrong-first-parameter"
    subject = FunctionClass
    says_if_it_runs = True
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.legacy_state is not None or may_mean_an_instance(fn) or misnamed(fn):
            return
        for method in fn.own_protocol_methods:
            if not method.signature_known or (method.name in fn.called_directly and not _is_just_named(fn, method)):
                continue
            message = _message(fn, method)
            if message is not None:
                yield Finding(fn.span(method.node.name), message, _fix(fn, method))
            yield from _bare_super(fn, method)
            yield from _unbound_receiver(fn, method)


def _is_just_named(fn: FunctionClass, method: Method) -> bool:
    """Whether the ctx is certainly the first parameter, also if other code calls the method: only its name misleads."""
    static = method.receiver is None and method.binding is Binding.STATIC and not method.lacks_ctx
    return fn.applied and static and not method.facts.of(UnboundContext)


def _fix(fn: FunctionClass, method: Method) -> Fix | None:
    """The fix for the case in ``_message``."""
    if method.binding is Binding.CLASS and takes_class_as_context(method):
        return None if method.receiver is None or method.receiver.name in RECEIVERS else static_for_class(fn, method)
    if method.binding is not Binding.CLASS and method.receiver is not None:
        return drop_receiver(fn, method)
    if method.lacks_ctx:
        return add_ctx(fn, method)
    return call_it_ctx(fn, method) if method.ctx is not None else None


def _message(fn: FunctionClass, method: Method) -> str | None:
    """The problem with the first parameters of a method; None if there is none."""
    if method.name == "vmap":
        return None
    what = f"`{method.name}` of `{fn.name}`"
    receiver = method.receiver
    if method.binding is Binding.CLASS:
        if receiver is not None and takes_class_as_context(method):
            return (
                f"{what} is a class method; torch passes the class as `{receiver.name}`{refusal(fn, method)}. Use "
                f"`@staticmethod`, or put `cls` first."
            )
    elif receiver is not None:
        # Without @staticmethod, CTX101 reports it, and its fix removes the receiver too.
        if method.binding is Binding.INSTANCE or not fn.applied:
            return None
        return (
            f"{what} is a static method; torch passes the ctx as `{receiver.name}`{refusal(fn, method)}. Drop "
            f"`{receiver.name}`."
        )
    if method.lacks_ctx:
        return _without_ctx(fn, method, what)
    unbound = bool(method.facts.of(UnboundContext))
    if unbound and method.name == "forward" and fn.style is Style.SETUP_CONTEXT and method.ctx is None:
        return (
            f"{what} uses `ctx`, which torch passes only to `setup_context`; it raises NameError at `apply`. Move this code "
            f"to `setup_context`."
        )
    ctx = method.ctx
    if ctx is None or (ctx.name not in RECEIVERS and not unbound) or fn.style is Style.UNKNOWN:
        return None
    if method.name == "forward" and fn.style is Style.SETUP_CONTEXT:
        return None  # CTX103
    if unbound:
        return f"{what} uses `ctx` but names the parameter `{ctx.name}`; it raises NameError. Rename it to `ctx`."
    given = f"is the ctx{' under `apply`' * is_called_as_instance(fn)}"
    return f"`{ctx.name}` in {what} {given}; torch accepts any name, but `{ctx.name}` misleads readers. Rename it to `ctx`."


def _without_ctx(fn: FunctionClass, method: Method, what: str) -> str | None:
    if method.name == "forward" and (fn.has_subclass or not (fn.applied or fn.backward is not None)):
        return None  # a base whose subclasses define setup_context, or a class that is used as a namespace
    receiver = [method.receiver.name] if method.receiver is not None else []
    written = ", ".join([*receiver, "ctx", *(_written(param.node) for param in method.own_params)])
    advice = f"Write `{method.name}({written})`."
    if not method.own_params:
        return f"{what} takes no parameters; torch passes the ctx and raises TypeError {moment(method)}{if_called(fn, method)}. {advice}"
    first = method.own_params[0].name
    later = next((param for param in method.own_params[1:] if is_context_name(param.name)), None)
    if later is not None and len(method.own_params) == len(method.positional):
        others = ", ".join(_written(param.node) for param in method.own_params if param is not later)
        return (
            f"{what} takes `{later.name}` after `{first}`, but torch passes the ctx first; each gets the value of another. "
            f"Write `{method.name}({later.name}, {others})`."
        )
    effect = f"torch passes the ctx as `{first}`{_without_room(fn, method)}"
    if method.facts.of(UnboundContext):
        return f"{what} uses `ctx` but takes no parameter for it; {effect}. {advice}"
    return f"{what} takes no parameter for the ctx; {effect}. {advice}"


def _without_room(fn: FunctionClass, method: Method) -> str:
    """The consequence if a method has no parameter for the ctx: torch raises, unless another one can take it."""
    room = len(method.positional) - 1
    if method.name in ("backward", "vjp") and room > 0 and method.variadic is None:
        counts = [returned.count for returned in fn.outputs]
        if not counts or None in counts:
            return ""
        if any(count <= room for count in counts if count is not None):
            return " and shifts the other arguments by one"
    return refusal(fn, method)


def _written(param: cst.Param) -> str:
    star = param.star if isinstance(param.star, str) else ""
    return star + param.name.value


def _bare_super(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    if method.binding is Binding.CLASS or method.receiver is not None:
        return
    if not any(param.kind is ParameterKind.POSITIONAL for param in method.params):
        return
    for call in method.facts.of(GenericCall):
        if call.callee == "builtins.super" and isinstance(call.node, cst.Call) and not call.node.args:
            first = method.params[0].name
            yield Finding(
                fn.span(call.node),
                f"`super()` treats `{first}`, the first argument of `{method.name}` of `{fn.name}`, as an instance; it "
                f"raises TypeError. Name the base class instead.",
            )


def _unbound_receiver(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """An instance that the method uses, but that torch does not pass."""
    reads = list(unbound_receivers(fn, method))
    if not reads:
        return
    name = reads[0].value
    message = f"`{name}` is not defined in `{method.name}` of `{fn.name}`; it raises NameError {moment(method)}"
    message += f"{if_it_runs(fn, method, reads[0])}. "
    if method.ctx is None:
        yield Finding(fn.span(reads[0]), f"{message}Pass what it holds to `apply` as an input.")
    elif all(_is_of_ctx(fn, method, node) for node in reads):
        yield Finding(fn.span(reads[0]), f"{message}Write `{method.ctx.name}`.", write_ctx(fn, method, reads))
    else:
        kept = f", and keep it on `{method.ctx.name}`" if _needed_later(fn, method) else ""
        yield Finding(fn.span(reads[0]), f"{message}Pass what it holds to `apply` as an input{kept}.")


def _needed_later(fn: FunctionClass, method: Method) -> bool:
    """Whether a method that gets no inputs uses the instance: this one, or another."""
    others = (each for each in fn.reading_methods if each not in fn.context_methods)
    return method not in fn.context_methods or any(next(unbound_receivers(fn, each), None) for each in others)


def _is_of_ctx(fn: FunctionClass, method: Method, node: cst.Name) -> bool:
    """Whether a name is used for an attribute that only a ctx has, or that the Function has set on its ctx by then."""
    around = next(method.above(node), None)
    if not isinstance(around, cst.Attribute) or around.value is not node:
        return False
    name = around.attr.value
    if name in CONTEXT_ONLY or isinstance(method.parents.get(around), _STORES):
        return True
    if method not in (fn.forward, fn.setup_context):
        return name in fn.writes_by_attribute or any(_stored_in(each, name) for each in (fn.forward, fn.setup_context))
    statement = method.around(node, cst.SimpleStatementLine)
    earlier = method.variables[: next(at for at, each in enumerate(method.variables) if each is node)]
    return any(
        each in earlier and method.around(each, cst.SimpleStatementLine) is not statement
        for each in _stored_in(method, name)
    )


def _stored_in(method: Method | None, name: str) -> list[cst.BaseExpression]:
    """What a method sets this attribute of, if that is the ctx, or an instance that torch does not pass."""
    if method is None:
        return []
    stores = (each for each in method.nodes_of(cst.Attribute) if isinstance(method.parents.get(each), _STORES))
    owners = (*RECEIVERS, method.ctx_name)
    return [each.value for each in stores if each.attr.value == name and dotted(each.value) in owners]


_STORES = (cst.AssignTarget, cst.AnnAssign)
