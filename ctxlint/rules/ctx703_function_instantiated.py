"""CTX703: a Function is instantiated, or its ``forward`` called without ``apply``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Related
from ctxlint.fixes.function_calls import DOTTED_NAME, call_apply, may_be_inputs, take_apply
from ctxlint.model.analyses.legacy import attributes_set_by, read_only_attribute
from ctxlint.model.function import Binding, SourceFile, Style
from ctxlint.model.index.instances import InstanceUse
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.source.ast_tree import tree_of
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.function import ApplyCall, FunctionClass
    from ctxlint.model.index.instances import Instance


class FunctionInstantiated(Rule[SourceFile]):
    """
    ## What it does
    Reports `Fn(x)`, `Fn()(x)` and `Fn().apply(x)` for a Function `Fn` defined in a linted file, and, if it has
    `setup_context`, `Fn.forward(x)` outside of any Function.

    ## Why is this bad?
    A Function is never meant to be instantiated.

    - `Fn(x)` computes nothing: it returns an object instead of a tensor, with a DeprecationWarning (`<class 'Fn'>
      should not be instantiated`) that Python hides by default.
    - `Fn()(x)` raises `RuntimeError: Legacy autograd function with non-static forward method is deprecated`.
    - `Fn().apply(x)` works, warns, and loses the state of the instance. This includes an instance of which only `apply`
      is used.
    - Methods that are called on an instance run like plain functions: autograd does not run `backward`.
    - `Fn.forward(x)` with `setup_context` runs, but autograd silently bypasses `backward`, and records what the body
      computes.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2


    def double(x):
        return Double()(x)
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


    def double(x):
        return Double.apply(x)
    ```

    ## Fix safety
    Safe for `Fn().apply`, which is equivalent without the parentheses, unless the class has an `__init__`. Unsafe for
    the others. There is no fix for an instance that is stored, for one that is created with arguments and then called,
    for `Fn(...)` with arguments that `forward` cannot take, or for a class that legacy-function (CTX108) reports:
    `apply` does not work until its methods are static.

    ## Known limits
    A class without `backward` whose `apply` is not used serves as a namespace and may be instantiated. Not reported
    under `pytest.raises` and similar context managers, under `torch.no_grad()`, in kernels of operators, in functions
    that test whether gradients are needed, if the project itself calls the `backward` or `setup_context` of the class,
    or for classes with their own `__new__`, `__call__` or `apply`, or with an unknown base class or decorator. Nor if
    code outside of the class reads attributes that its `__init__` sets, or may do so.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX703"
    name = "function-instantiated"
    subject = SourceFile
    fix = FixAvailability.SOMETIMES

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        if not settings.torch.reach(1, 5):  # in these releases, instances were called
            return
        for call in file.calls:
            fn = file.by_name[call.function]
            if call.expects_error or not fn.signature_judgeable or "__new__" in fn.methods:
                continue
            if call.how == "construct":
                yield from _of_instance(file, fn, call)
                continue
            yield from _of_call(file, fn, call)


def _of_instance(file: SourceFile, fn: FunctionClass, call: ApplyCall) -> Iterator[Finding]:
    """Findings for an instance that is neither called nor applied where it is created."""
    if "__call__" in fn.methods or (fn.backward is None and not fn.applied):  # or a class that serves as a namespace
        return
    name, instance = _called_as(file, fn, call), file.instances.made_by(call)
    has_arguments = bool(call.positional or call.starred or call.keywords or call.double_starred)
    made = f"{name}(...)" if has_arguments else f"{name}()"
    fix, related = None, tuple(Related(span, _USED_HERE[instance.use]) for span in instance.calls)
    related += tuple(Related(span, "the instance is tested here") for span in instance.tests)
    only_warns = True
    if read_only_attribute(fn) is not None:
        fact, remedy = _cannot_be_created(fn, call, name)
        only_warns = False
    elif instance.use is InstanceUse.APPLY_TAKEN:
        fact, remedy = (
            f"`{made}.apply` creates an unnecessary instance; torch deprecates instances{_lost(fn)}.",
            f"Use `{name}.apply`{_moved(fn, call) if has_arguments else ''}.",
        )
        fix = take_apply(file.source, fn, call)
    elif instance.use is InstanceUse.APPLIED:
        fact = f"`{made}` creates an instance, of which `apply` is used; torch deprecates instances{_lost(fn)}."
        remedy = (
            f"Use `{name}.apply`, with {_given(fn, call)}." if has_arguments else f"Drop the `{made[len(name) :]}`."
        )
        remedy = _with_test(file, instance, remedy)
    elif instance.use is InstanceUse.CALLED:
        fact, only_warns = f"`{made}` creates an instance; torch raises RuntimeError when it is called.", False
        remedy = f"Use `{name}.apply`{_moved(fn, call) if has_arguments else ''}."
    elif _is_namespace(fn, instance):
        fact = f"`{made}` creates an instance only for its static methods; torch deprecates instances."
        remedy = f"Drop the `{made[len(name) :]}`."
    elif instance.use is InstanceUse.METHOD_CALLED:
        if "__del__" in fn.methods:  # what the instance is there for
            return
        fact = f"`{made}` creates an instance whose methods are called directly; autograd does not run its `backward`."
        calls_backward = any(method in ("backward", "vjp") for method, _count in instance.methods)
        given = " on inputs that require a gradient" * calls_backward + f", with {_given(fn, call)}" * has_arguments
        remedy = f"Call `{name}.apply`{given}{', and `torch.autograd.grad` with its result' * calls_backward}."
    elif _means_apply(fn, call, instance):
        fact, only_warns = f"`{made}` creates an instance of the class; it silently computes nothing.", False
        remedy = f"Write `{name}.apply(...)`."
        fix = call_apply(file, fn, call)
    elif _serves_as_object(file, fn, instance.use):
        return
    else:
        fact = f"`{made}` creates an instance; torch deprecates instances, and raises RuntimeError when one is called."
        remedy = _with_test(file, instance, _of_unknown_use(fn, call, name, has_arguments))
    yield _finding(fn, call, name, fact, remedy, fix, related, only_warns)


def _of_unknown_use(fn: FunctionClass, call: ApplyCall, name: str, has_arguments: bool) -> str:
    """What to write for an instance of which it is unknown whether it is called, or only its ``apply`` is used."""
    if (own := _own_method(fn)) is not None:
        return f"Use `{name}.apply`, and move `{own}` out of the class."
    if has_arguments:
        return f"Use `{name}.apply` if it is called, else `{name}`, with {_given(fn, call)}."
    wanted = " and what expects an instance" * (not _OF_INSTANCES.isdisjoint(fn.methods))
    return f"Use `{name}.apply` if it is called, else drop the `()`{wanted}."


def _means_apply(fn: FunctionClass, call: ApplyCall, instance: Instance) -> bool:
    """Whether ``Fn(x)`` passes what ``forward`` takes, and nothing keeps the instance: only ``apply`` is missing."""
    if not (call.positional or call.starred) or call.keywords or call.double_starred or "__init__" in fn.methods:
        return False
    return instance.use is InstanceUse.UNKNOWN and not instance.wanted and may_be_inputs(fn, call)


def _with_test(file: SourceFile, instance: Instance, remedy: str) -> str:
    """The remedy, with the first test that expects an instance, if there is one."""
    if not instance.tests:
        return remedy
    at = file.source.line_name(instance.tests[0].start.line)
    return f"{remedy[:-1]}, and change the test on {at}, which expects an instance."


def _called_as(file: SourceFile, fn: FunctionClass, call: ApplyCall) -> str:
    """The class as the call writes it: ``ops.Double`` or, after ``import ... as``, another name."""
    place = call.callee_span or call.span
    start, end = file.source.offset(place.start), file.source.offset(place.end)
    written = DOTTED_NAME.match(file.source.text, start, end)
    return written[0] if written is not None else fn.name


def _own_method(fn: FunctionClass) -> str | None:
    """A method that needs an instance, and that autograd does not call; None if there is none."""
    own = (name for name, each in fn.methods.items() if each.binding is Binding.INSTANCE and name not in PROTOCOL)
    return next((name for name in own if not name.startswith("__")), None)


def _serves_as_object(file: SourceFile, fn: FunctionClass, use: InstanceUse) -> bool:
    """Whether code outside of the class reads, or may read, what ``__init__`` sets: the instance is made on purpose."""
    names = {attribute for _instance, attribute in attributes_set_by(fn.methods.get("__init__"))}
    if not names or use is InstanceUse.SHARED:
        return bool(names)
    return use is InstanceUse.UNKNOWN and any(file.instances.is_read(name, outside=fn.name) for name in names)


_OF_INSTANCES = frozenset({"__repr__", "__str__", "__name__", "__hash__", "__eq__", "__len__", "__getattr__"})
"""Methods that only an instance has a use for: it is made on purpose."""


def _is_namespace(fn: FunctionClass, instance: Instance) -> bool:
    """Whether only static methods are called on it, each with a ctx that the caller passes: on purpose."""
    called = [(fn.methods.get(name), count) for name, count in instance.methods]
    return bool(called) and all(
        method is not None
        and method.binding is Binding.STATIC
        and method.ctx is not None
        and method.variadic is None
        and sum(param.required for param in method.positional) < count <= len(method.positional) + 1
        for method, count in called
    )


def _of_call(file: SourceFile, fn: FunctionClass, call: ApplyCall) -> Iterator[Finding]:
    """Findings for a call of an instance where it is created, or a direct call of ``forward``."""
    name, fix = _called_as(file, fn, call), call_apply(file, fn, call)
    given = (
        _moved(fn, call, _arguments(file, call)) if fix is None else ""
    )  # a fix is there only if nothing is passed to `__init__`
    remedy = f"Write `{name}.apply(...)`{given}."
    if call.how in ("construct-apply", "construct-call") and read_only_attribute(fn) is not None:
        fact, remedy = _cannot_be_created(fn, call, name)
    elif call.how == "construct-apply":
        fact = f"An instance of `{name}` is created only for its `apply`; torch deprecates instances{_lost(fn)}."
    elif call.how == "direct":
        if call.method != "forward" or fn.style is not Style.SETUP_CONTEXT:
            return
        if call.inside_function_class or call.gradients_off or fn.called_directly & {"backward", "setup_context"}:
            return  # on purpose, where the caller runs its backward, too
        remedy = f"Write `{name}.apply(...)`."
        fact = f"`{name}.forward(...)` calls the body directly; autograd silently never runs `backward` of `{name}` for it."
    elif call.how == "construct-call" and "__call__" not in fn.methods:
        fact = f"An instance of `{name}` is called; torch raises RuntimeError."
    else:
        return
    only_warns = call.how == "construct-apply" and read_only_attribute(fn) is None
    yield _finding(fn, call, name, fact, remedy, fix, (), only_warns)


def _lost(fn: FunctionClass) -> str:
    """What becomes of the state of an instance of which only ``apply`` is used."""
    return ", and the ctx has nothing of what `__init__` sets" * bool(attributes_set_by(fn.methods.get("__init__")))


def _cannot_be_created(fn: FunctionClass, call: ApplyCall, name: str) -> tuple[str, str]:
    """What happens, and the remedy, if ``__init__`` sets a read-only attribute."""
    attribute = read_only_attribute(fn)
    fact = f"`__init__` of `{name}` sets `{attribute}`, which is read-only; creating an instance raises AttributeError."
    return fact, f"Use `{name}.apply`{_moved(fn, call, 0)}."


def _arguments(file: SourceFile, call: ApplyCall) -> int:
    """How many arguments the instance that is called is created with: ``Fn(k)(x)``."""
    place = call.callee_span if call.how in ("construct-call", "construct-apply") else None
    if place is None:
        return 0
    tree = tree_of(f"({file.source.text[file.source.offset(place.start) : file.source.offset(place.end)]})")
    made = tree.body[0].value if tree is not None and isinstance(tree.body[0], ast.Expr) else None
    return len(made.args) + len(made.keywords) if isinstance(made, ast.Call) else 0


def _moved(fn: FunctionClass, call: ApplyCall, own: int | None = None) -> str:
    """Where to pass the arguments of ``__init__`` instead, of which there are ``own``; that of torch ignores them."""
    initial = fn.methods.get("__init__")
    takes_some = len(initial.params) > 1 if initial is not None else own != 0
    return f", with {_given(fn, call, own)}" * takes_some


def _given(fn: FunctionClass, call: ApplyCall, own: int | None = None) -> str:
    """The arguments that create an instance; the ``__init__`` of torch ignores them.

    There are ``own`` of them, which ``forward`` gets after those that it gets already, if it can. If one is called like
    an input, they are the inputs.
    """
    if "__init__" in fn.methods:
        return "the arguments of `__init__` as inputs"
    are_inputs = any(each.name in call.keywords for each in fn.inputs)
    applied = call.positional if call.how != "construct" else 0 if are_inputs else 1
    own = call.positional + len(call.keywords) if own is None else own
    fit = fn.variadic_inputs is not None or own + applied <= len(fn.inputs)
    return "these arguments as inputs" if fit else "new inputs for these arguments, or without them"


_USED_HERE = {
    InstanceUse.CALLED: "the instance is called here",
    InstanceUse.METHOD_CALLED: "a method of the instance is called here",
    InstanceUse.SHARED: "the instance is used here",
}


def _finding(
    fn: FunctionClass,
    call: ApplyCall,
    name: str,
    fact: str,
    remedy: str,
    fix: Fix | None,
    related: tuple[Related, ...],
    only_warns: bool,
) -> Finding:
    """What to write instead; a class with state on instances (CTX108) must be rewritten before it can use ``apply``."""
    if fn.legacy_state is not None:
        inherited = all(method.inherited for method in (fn.forward, fn.backward) if method is not None)
        # CTX108 is about the class that contains the methods.
        kept = "" if fn.legacy_state.startswith("`__init__` sets") else " or on `ctx`"
        rewrite = f"Make its methods static (CTX108), with its state as inputs{kept}"
        if inherited:  # they may call what subclasses override
            rewrite = f"Write it with static methods, which get no instance ({fn.legacy_state})"
        remedy, fix = f"{rewrite}; then use `{name}.apply`.", None
    return Finding(call.span, f"{fact} {remedy}", fix, related, only_warns=only_warns)
