"""CTX306: an attribute of ctx that nothing sets."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.legacy import attributes_set_by
from ctxlint.model.analyses.undefined_attributes import absent_inputs, undefined_reads
from ctxlint.model.function import Binding, FunctionClass
from ctxlint.model.interpreter.values import Tri, is_container, is_tensor
from ctxlint.model.syntax import is_name, only_target
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import doer, if_it_happens
from ctxlint.torch_api import autograd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import ContextRead
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


class UndefinedCtxAttribute(Rule[FunctionClass]):
    """
    ## What it does
    Reports the use of an attribute or method of ctx that nothing in the file sets: a misspelt name, an attribute that
    `forward` forgets to set, an attribute or a helper method of the class itself.

    ## Why is this bad?
    It raises `AttributeError: 'FBackward' object has no attribute 'foo'`, in `backward` only at the first
    training step. The ctx is a node of the autograd graph, an instance of a class that torch generates. It is not an
    instance of the Function, so it does not have the Function's class attributes and methods.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        factor = 2.0

        @staticmethod
        def forward(ctx, x):
            return x * Scale.factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        factor = 2.0

        @staticmethod
        def forward(ctx, x):
            return x * Scale.factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * Scale.factor
    ```

    ## Fix safety
    There is no fix: only the author knows what the attribute should hold.

    ## Known limits
    Not reported if the file sets the name on any object that is neither the ctx nor an instance of another class, if
    the name is read through `hasattr`, or `getattr` with a default, if the ctx is passed to a function that is not known, which may set
    it, or if a function of another file reads it that does not get the ctx as its first argument. Neither is one in a method that
    other code calls directly or hands on, as in `backward = staticmethod(Other.forward)`, and an attribute that is set on some
    paths only.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX306"
    name = "undefined-ctx-attribute"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        reported: set[str] = set()
        for method, read in undefined_reads(fn):
            name = read.attribute
            if name in reported:
                continue
            reported.add(name)
            yield Finding(
                fn.span(read.node),
                f"{doer(fn, method, read)} {'calls' if read.called else 'reads'} `{method.ctx_name}.{name}`, which "
                f"{_reason(fn, name)}; it raises AttributeError{if_it_happens(fn, method, read)}. {_remedy(fn, method, read)}",
                related=way_to(fn, read),
            )


def _reason(fn: FunctionClass, name: str) -> str:
    if _on_the_class(fn, name):
        return "is an attribute of the class, not of ctx"
    if _on_the_instance(fn, name):
        return "`__init__` sets on an instance, not on ctx"
    return "it sets only later" if name in fn.writes_by_attribute else "nothing sets"


def _on_the_instance(fn: FunctionClass, name: str) -> bool:
    """Whether ``__init__`` sets it on an instance, which static methods never receive."""
    return name in {attribute for _, attribute in attributes_set_by(fn.methods.get("__init__"))}


def _on_the_class(fn: FunctionClass, name: str) -> bool:
    return name in fn.class_attributes or name in fn.methods


def _remedy(fn: FunctionClass, method: Method, read: ContextRead) -> str:
    name, ctx = read.attribute, method.ctx_name
    idle = _idle(method, read)
    if idle:
        return f"Drop the line, {idle}."
    if _on_the_class(fn, name):
        return f"Write `{fn.name}.{name}`{_as_static_method(fn.methods.get(name))}."
    if _on_the_instance(fn, name):
        where = (fn.setup_context or fn.forward or method).name
        if method.name == where:
            return f"Take it as an input of `{where}`, and pass it to `apply`."
        return f"Pass it to `apply` as an input, write `{ctx}.{name} = {name}` in `{where}`, and return `None` for it."
    if name in fn.writes_by_attribute:
        absent = next(absent_inputs(read), None)
        other = f"pass `{absent}` to `apply`" if absent is not None else f"take it as an input of `{method.name}`"
        return f"Set it first, or {other}."
    writer = fn.setup_context or fn.forward
    meant = _NAMES if read.called else _NAMES - autograd.CONTEXT_METHODS
    known = sorted({write.attribute for write in fn.context_writes} | meant)
    is_local = writer is not None and name in writer.assignments
    similar = get_close_matches(name, known, n=1, cutoff=0.8) if not is_local else []
    where = writer.name if writer is not None else "forward"
    if similar:
        own = "" if similar[0] in _NAMES else f", or set `{ctx}.{name}` in `{where}`"
        return f"Write `{ctx}.{similar[0]}`{own}."
    saved = any(is_name(slot.node, name) for call in fn.saves for slot in call.arguments)
    if method in fn.reading_methods and not read.called and _is_tensor_of(fn, writer, name):
        if saved:
            return f"Take `{name}` from `{ctx}.saved_tensors`."
        save = f"Pass `{name}` to `{fn.storing_ctx}.save_for_backward` in `{where}`"
        return f"{save}, and take it from `{ctx}.saved_tensors`."
    if method in fn.reading_methods and "tensors" in name and fn.saves and not fn.saved_reads and not read.called:
        return f"Write `{ctx}.saved_tensors`."
    if saved and method in fn.reading_methods and not read.called:
        entry = next((each for each in fn.inputs if each.name == name), None)
        plain = entry is not None and entry.is_tensor is Tri.NO
        otherwise = "" if plain else f", or take it from `{ctx}.saved_tensors` if it is a tensor"
        return f"Write `{ctx}.{name} = {name}` in `{where}` instead of saving it{otherwise}."
    called = _called_remedy(method, name, where) if read.called else ""
    if called:
        return called
    return _plain_remedy(fn, method, read, writer)


def _plain_remedy(fn: FunctionClass, method: Method, read: ContextRead, writer: Method | None) -> str:
    """What to write where it is not known to be a tensor."""
    name, ctx, where = read.attribute, method.ctx_name, writer.name if writer is not None else "forward"
    if _is_known(fn, writer, name):
        return f"Write `{ctx}.{name} = {name}` in `{where}`."
    meant = _set_under_its_name(fn, method, read)
    if meant:
        kept = ", ".join(f"{ctx}.{each}" for each in meant)
        return f"Write `{', '.join(meant)} = {kept}`, or set `{ctx}.{name}` in `{where}`."
    tensor = f", or save it there and read `{ctx}.saved_tensors` if it is a tensor" * (
        method is fn.backward and _is_operand(fn, read)
    )
    return f"Write `{ctx}.{name} = ...` in `{where}`{tensor}."


def _is_operand(fn: FunctionClass, read: ContextRead) -> bool:
    """Whether backward itself computes with it, perhaps as with a tensor: that is saved, not kept (CTX301, CTX302)."""
    around = fn.backward.parents.get(read.node) if fn.backward is not None and not read.by else None
    return isinstance(around, (cst.BinaryOperation, cst.UnaryOperation, cst.Arg))


def _set_under_its_name(fn: FunctionClass, method: Method, read: ContextRead) -> list[str]:
    """The names that a read gives its value to, if ctx has attributes of the same names that nothing reads.

    Apart from names that nothing reads, as in ``_, scale = ctx.others``.
    """
    statement = None if read.by or read.called else method.parents.get(read.node)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or method not in fn.reading_methods:
        return []
    target = statement.targets[0].target
    nodes = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    names = [each.value for each in nodes if isinstance(each, cst.Name)]
    wanted = [each for each in names if each in method.facts.names_read]
    unread = {
        name
        for name, writes in fn.writes_by_attribute.items()
        if name not in fn.reads_by_attribute
        and any(not each.guards and is_name(each.value_node, name) for each in writes)
    }
    return wanted if len(names) == len(nodes) and unread.issuperset(wanted) else []


def _as_static_method(helper: Method | None) -> str:
    """What else a method needs in order to be called on the class."""
    if helper is None or helper.binding is not Binding.INSTANCE:
        return ""
    has_self = bool(helper.params) and helper.params[0].name == "self"
    return f", and make it a static method{' without `self`' * has_self}"


def _called_remedy(method: Method, name: str, where: str) -> str:
    """What to write where something is called that nothing sets, a method of ctx or a function; else empty."""
    ctx = method.ctx_name
    if _is_function(method, name):
        return f"Write `{name}`, without `{ctx}.`, or set `{ctx}.{name}` in `{where}`."
    if method.name != where:
        return ""
    meant = get_close_matches(name, autograd.CONTEXT_METHODS, n=1, cutoff=0.6)
    return f"Write `{ctx}.{meant[0]}`." if meant else f"Call a function, or set `{ctx}.{name}` first."


def _idle(method: Method, read: ContextRead) -> str:
    """Why the statement of a read does nothing; empty if it does."""
    statement = None if read.by or read.called else method.parents.get(read.node)
    bound = only_target(statement)
    if isinstance(bound, cst.Name) and bound.value not in method.facts.names_read:
        return f"as nothing reads `{bound.value}`"
    return "which does nothing else" if isinstance(statement, cst.Expr) else ""


def _is_known(fn: FunctionClass, writer: Method | None, name: str) -> bool:
    """Whether the method that sets attributes certainly has a name."""
    if any(entry.name == name for entry in fn.inputs):
        return True
    bound = writer.assignments.get(name, ()) if writer is not None else ()
    return writer is not None and any(runs(writer, each.node) is Runs.ALWAYS for each in bound)


def _is_function(method: Method, name: str) -> bool:
    """Whether the module defines a function of this name."""
    bounds = method.home.unit.index.module.names.get(name, ()) if method.home is not None else ()
    return bool(bounds) and all(bound.kind in ("def", "import") for bound in bounds)


def _is_tensor_of(fn: FunctionClass, writer: Method | None, name: str) -> bool:
    """Whether a name is that of an input with a gradient, of a tensor that forward computes, or of an output.

    On ctx, these are CTX301 and CTX302.
    """
    bound = writer.assignments.get(name, ()) if writer is not None else ()
    is_input = any(each.name == name and each.surely_differentiable for each in fn.inputs)
    given = {*_differentiated_outputs(fn)}
    values = [each.value for each in bound]
    known = all(each is not None and (is_tensor(each) is Tri.YES or each in given) for each in values)
    return known if bound else is_input


def _differentiated_outputs(fn: FunctionClass) -> Iterator[Value]:
    """The outputs that may be tensors, and whose gradients backward reads: so they are."""
    backward = fn.backward
    if backward is None or backward.variadic is not None:
        return
    read = [each.name in backward.facts.names_read for each in backward.positional]
    for returned in fn.outputs:
        values = [slot.value for slot in returned.slots] if returned.known else [returned.value]
        if len(values) != len(read):
            continue
        for option in (option for value, used in zip(values, read) if used for option in value.options()):
            if is_tensor(option) is not Tri.NO and is_container(option) is not Tri.YES:
                yield option


_NAMES = autograd.CONTEXT_METHODS | {"saved_tensors", "needs_input_grad"}
