"""Gradients that begin in backward on purpose: a caller or other code supplies them, or the class says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import ContextAttribute, Tri, before_views, is_input, is_tensor
from ctxlint.model.syntax import last_name
from ctxlint.patterns import pattern
from ctxlint.source.source import comments_in
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def may_begin_in(fn: FunctionClass, method: Method) -> bool:
    """Whether what ``backward`` or ``jvp`` returns may, on purpose, depend on none of its arguments.

    A synthetic gradient, an error that is fed back, and a target come from an input that forward only keeps, from
    another process, or from a place where other code leaves it; or forward has multiplied by the scale of a GradScaler.
    """
    return (
        (any(_is_handed_over(fn, each) for each in fn.inputs) and not _passes_a_loss_on(fn))
        or any(_receives(each.callee or "") for each in method.facts.of(GenericCall))
        or any(each.attr.value == "get_scale" for home in fn.earlier_methods for each in home.nodes_of(cst.Attribute))
        or any(_is_of_object(fn, method, name) for name in method.context_attributes)
        or any(_is_left_outside(method, name) for name in method.named)
        or states_it(fn, method)
    )


def _receives(called: str) -> bool:
    """Whether a function of ``torch.distributed`` gets the values of a tensor from another process."""
    package, _, name = called.rpartition(".")
    receiving = name in ("P2POp", "batch_isend_irecv", "broadcast", "irecv", "recv", "scatter")
    return receiving and package.startswith("torch.distributed")


def returns_an_input(fn: FunctionClass, value: Value) -> bool:
    """Whether a value of backward is an input of forward, as the caller passes it."""
    return is_input(kept_value(fn, before_views(value)))


def _passes_a_loss_on(fn: FunctionClass) -> bool:
    """Whether the output is an input without a gradient, or one called a loss: other gradients are those of that loss.

    Such as ``return loss.detach()``, with the gradient of the hidden states as another input, which the code around the
    Function has computed: it is that of the loss itself, not of what follows.
    """
    options = [before_views(option) for value in fn.outputs_values() for option in value.options()]
    alone = bool(options) and all(each.count == 1 for each in fn.outputs)
    return alone and all(
        is_input(each) and each.index < len(fn.inputs) and _is_loss(fn.inputs[each.index]) for each in options
    )


def _is_loss(entry: Input) -> bool:
    """Whether an input is a loss that is passed on."""
    return entry.gradient is Tri.NO or "loss" in entry.name.lower().split("_")


def _is_handed_over(fn: FunctionClass, entry: Input) -> bool:
    """Whether forward only keeps an input, a tensor that gets no gradient: it is there for backward alone."""
    forward = fn.forward
    if entry.gradient is not Tri.NO or forward is None or not _is_kept(fn, entry):
        return False
    return only_keeps(forward, entry.name)


def only_keeps(forward: Method, name: str) -> bool:
    """Whether forward uses the tensor in a name for nothing but its shape, an assertion, or to keep it on ctx."""
    bound = set(forward.binders.get(name, ()))
    return all(use in bound or _keeps(forward, use) for use in forward.named.get(name, ()))


def _is_kept(fn: FunctionClass, entry: Input) -> bool:
    """Whether forward saves an input, or keeps one in an attribute that is a tensor, or that backward returns."""
    saved = [each.value for call in fn.saves for each in call.arguments]
    stored = [each.value for each in fn.context_writes if each.value is not None]
    returned = [kept_value(fn, before_views(slot.value)) for each in fn.gradients for slot in each.slots]
    kept = map(before_views, (*saved, *(stored if entry.is_tensor is Tri.YES else filter(None, returned))))
    return any(is_input(each) and each.index == entry.index for each in kept)


def _keeps(forward: Method, use: cst.CSTNode) -> bool:
    """Whether forward uses an input only for its shape, to assert something, or to keep it on ctx."""
    above = forward.parents[use]
    call, name = forward.called_on(use)
    if isinstance(above, cst.Attribute):
        return forward.is_measured(use) or (call is not None and name in _SAME and _keeps(forward, call))
    if isinstance(above, cst.Arg):
        called = forward.parents[above]
        return isinstance(called, cst.Call) and last_name(called.func) in ("save_for_backward", "save_for_forward")
    if isinstance(above, cst.Assign) and above.value is use:
        return all(forward.is_on_ctx(each.target) for each in above.targets)
    return isinstance(above, cst.Param) or forward.around(use, cst.Assert) is not None


_SAME = frozenset(["clone", "contiguous", "detach"])


def _is_of_object(fn: FunctionClass, method: Method, attribute: str) -> bool:
    """Whether a method reads something of an object on ctx that a tensor does not have: ``ctx.sink.pop()``."""
    kept = kept_value(fn, ContextAttribute(attribute))
    if kept is not None and is_tensor(before_views(kept)) is Tri.YES:
        return False
    above = (method.parents[node] for node in method.context_attributes[attribute])
    return any(isinstance(each, cst.Attribute) and each.attr.value not in _OF_TENSORS for each in above)


_OF_TENSORS = (
    frozenset(["H", "T", "data", "device", "dtype", "imag", "is_cuda", "mH", "mT", "ndim", "numpy", "real", "shape"])
    | operations.SIZE_METHODS
    | _SAME
    | operations.TENSOR_METHODS
    | operations.VIEW_METHODS
    | operations.USUAL_VIEW_METHODS
    | frozenset(operations.SCALAR_ATTRIBUTES)
)


def _is_left_outside(method: Method, name: str) -> bool:
    """Whether a method reads a value, not a constant, through a name from outside of it: ``Holder.error``."""
    if name in method.binders or any(param.name == name for param in method.params) or _is_library(method, name):
        return False
    uses = (use for use in method.named[name] if any(each is method.node.body for each in method.above(use)))
    return any(_leads_to_value(method, use) for use in uses)


def _leads_to_value(method: Method, name: cst.Name) -> bool:
    """Whether the expression around a name from outside may be a gradient that other code has left there."""
    node: cst.CSTNode = name
    above, of_item, words = method.parents[node], False, name.value
    while isinstance(above, (cst.Attribute, cst.Subscript)) and above.value is node:
        of_item = of_item or isinstance(node, cst.Subscript)
        words += f" {above.attr.value}" if isinstance(above, cst.Attribute) else ""
        node, above = above, method.parents[above]
    if isinstance(above, cst.Call) and above.func is node:  # ``kernel[grid](…)`` launches a kernel
        launched = isinstance(node, cst.Subscript)
        owner = words.rpartition(" ")[0] if above.args else words
        return not launched and (of_item or _OF_GRADIENT.search(owner) is not None)
    if isinstance(node, cst.Name):
        return _OF_GRADIENT.search(words) is not None
    if isinstance(above, cst.Assign) and all(_is_only_called(method, each.target) for each in above.targets):
        return False
    return isinstance(node, cst.Subscript) or of_item or not words.rpartition(" ")[2].isupper()


def _is_only_called(method: Method, target: cst.BaseExpression) -> bool:
    """Whether what is bound to a name is a function: ``kernel = extension.backward_float``."""
    uses = method.named.get(target.value, ()) if isinstance(target, cst.Name) else ()
    around = [(use, method.parents[use]) for use in uses]
    reads = [(use, above) for use, above in around if not isinstance(above, cst.AssignTarget)]
    return bool(reads) and all(isinstance(above, cst.Call) and above.func is use for use, above in reads)


_OF_GRADIENT = pattern(r"grad|delta|error|(?:^|[_ ])err(?:[_ ]|$)|feedback|target|teach", re.IGNORECASE)
"""Parts of names that suggest a gradient, or what stands for one."""


def _is_library(method: Method, name: str) -> bool:
    """Whether a name is certainly that of a module, or something in it, that keeps no gradients."""
    return method.meaning(name).partition(".")[0] in ("torch", "math", "numpy", "builtins", "triton")


def states_it(fn: FunctionClass, method: Method) -> bool:
    """Whether the docstring of the class or of the method says that the incoming gradient is not used."""
    names = "|".join(re.escape(each.name) for each in method.own_params if len(each.name) > 2)
    incoming = re.compile(rf"\b(?:{_INCOMING}{'|' * bool(names)}{names})\b", re.IGNORECASE)
    texts = (each.get_docstring() or "" for each in (fn.node, method.node))
    sentences = (part for text in texts for part in re.split(r"[.;:]\s|\n\s*\n", text))
    return any(incoming.search(each) and _DISMISSED.search(each) for each in sentences)


def says_unused(fn: FunctionClass, method: Method, name: str) -> bool:
    """Whether a comment in a method, or a docstring, says that a parameter is not used."""
    mentioned = re.compile(rf"\b{re.escape(name)}\b")

    def dismisses(text: str) -> bool:
        return bool(mentioned.search(text) and _DISMISSED.search(text))

    if any(map(dismisses, re.split(r"[.;:]\s|\n", method.node.get_docstring() or ""))):
        return True
    if not _may_comment(fn, dismisses):
        return False
    first, last = fn.start(method.node.name).line, fn.span(method.node.body).end.line
    return any(map(dismisses, comments_in(fn.source.lines(first, last))))


def _may_comment(fn: FunctionClass, says: Callable[[str], bool]) -> bool:
    """Whether a comment in the statement around a class says something; where the class ends needs the layout."""
    fn.source.read_comments()
    return any(map(says, comments_in(fn.slice.statement.text)))


def works_in_place(fn: FunctionClass) -> bool:
    """Whether the name of a Function or a docstring says that it works in place."""
    words = _IN_PLACE.search(fn.name) is not None or fn.name.endswith("_")
    return words or any(_IN_PLACE.search(each) and not _REFUSED.search(each) for each in _sentences(fn))


_IN_PLACE = pattern(r"in[-_ ]?place(?!d|ment)", re.IGNORECASE)


def _sentences(fn: FunctionClass) -> list[str]:
    """The sentences of the docstrings of the class and of its methods."""
    docstrings = [fn.node.get_docstring(), *(method.node.get_docstring() for method in fn.own_protocol_methods)]
    return [part for text in filter(None, docstrings) for part in re.split(r"\.\s|\n\s*\n", text)]


def refuses_to_save(fn: FunctionClass) -> bool:
    """Whether a docstring, or a comment in the class, says why ``save_for_backward`` is not used."""

    def refuses(text: str) -> bool:
        return bool(_SAVING.search(text) and _REFUSED.search(text))

    if any(map(refuses, _sentences(fn))):
        return True
    return _may_comment(fn, refuses) and any(map(refuses, comments_in(fn.commented_text())))


_SAVING = pattern(r"\bsave_for_backward\b(?!\()")
_REFUSED = pattern(r"\b(?:rather than|instead of|not|never|cannot|avoid|without)\b|n't\b", re.IGNORECASE)

_INCOMING = (
    r"(?:out(?:put|going|coming)?|up(?:per|stream)?|incoming|previous|true|real|actual|usual)(?:[\s_-]+\w+)?[\s_-]+"
    r"(?:gradient|grad|derivative|tangent)s?|grad_?out\w*|chain rule"
)

_DISMISSED = pattern(
    r"\b(?:ignor|discard|disregard|dropp|replac|substitut|overrid|overwrit|regardless|irrespective|independent|unused)"
    r"|(?:\b(?:not|never|without|no)|n't)\s+(?:\w+\s+){0,2}?(?:us|need|depend|read|propagat|multipl|scal|appl|requir)",
    re.IGNORECASE,
)
