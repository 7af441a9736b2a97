"""Methods that torch certainly cannot call with its arguments, and what it rejects once forward has returned.

Nothing in such a method runs, and backward never does where ``apply`` raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.context_parameter import takes_class_as_context, works_by_accident
from ctxlint.model.analyses.input_unpackings import unfit_unpackings
from ctxlint.model.analyses.legacy import may_mean_an_instance
from ctxlint.model.analyses.misnamed import misnamed
from ctxlint.model.analyses.mutations import is_returned
from ctxlint.model.analyses.outputs import hides_tensors, never_wants_gradients, takes_nothing, unfit_outputs
from ctxlint.model.analyses.unreturned_marks import always_marks_unreturned, is_unmarkable
from ctxlint.model.analyses.unsavable_values import is_unsavable, never_saves
from ctxlint.model.function import Binding, Style
from ctxlint.model.interpreter.events import Escape
from ctxlint.model.interpreter.method import ParameterKind
from ctxlint.model.interpreter.signatures import is_context_name
from ctxlint.model.interpreter.values import Constant, Parameter, Tri, is_tensor
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from ctxlint.model.function import FunctionClass, Method, Param
    from ctxlint.model.interpreter.values import Value


def is_rejected(fn: FunctionClass, method: Method) -> bool:
    """Whether each call of a method by torch raises before its body runs."""
    if method is fn.backward:
        both = fn.signature_judgeable and "vjp" in fn.methods and "backward" in fn.methods
        unfit = _is_misfit(fn, method) or takes_no_outputs(fn) or (fn.signature_judgeable and takes_nothing(method))
        return both or unfit or lacks_custom_fwd(fn, method)
    if method is fn.forward:
        unfit = _is_misfit(fn, method) or _takes_a_context(fn, method) or _needs_keywords(fn, method)
        return unfit or _is_undefined(fn) or (fn.calls_fail and fn.signature_judgeable)
    if method is not fn.setup_context:
        return False
    judged = fn.signature_judgeable and method.signature_known and not method.inherited
    about_ctx = method.lacks_ctx or (method.receiver is not None and method.binding is not Binding.CLASS)
    direct = method.name in fn.called_directly
    unfit = judged and not (about_ctx or direct or taken_by_setup(method).fit)
    return unfit or _is_misfit(fn, method)


class Taken(NamedTuple):
    """The arguments that ``setup_context`` takes: how many, perhaps at least, if they are not three by position.

    ``by_keyword`` is a parameter that must be passed by keyword.
    """

    number: int
    fit: bool
    by_keyword: str = ""


def taken_by_setup(method: Method) -> Taken:
    """What ``setup_context`` takes; torch passes three arguments by position."""
    receiver = method.receiver if method.binding is Binding.CLASS else None
    taken = [each for each in method.params if each is not receiver]
    positional = [each for each in taken if each.kind is ParameterKind.POSITIONAL]
    keywords = [each.name for each in taken if each.kind is ParameterKind.KEYWORD_ONLY and each.required]
    required = sum(each.required for each in positional)
    any_number = any(each.kind is ParameterKind.VARIADIC for each in taken)
    fit = required <= 3 and (any_number or len(positional) >= 3) and not keywords
    return Taken(required if required > 3 else len(positional), fit, next(iter(keywords), ""))


def swapped_in_setup(fn: FunctionClass, method: Method) -> tuple[Param, Param] | None:
    """The parameters of ``setup_context`` for output and inputs, if their names say that they are swapped."""
    if method.name != "setup_context" or len(method.positional) < 2:
        return None
    second, third = method.positional[:2]
    of_inputs = _is_called(third, "input") or any(third.name == each.name for each in fn.inputs)
    return (second, third) if _is_called(second, "output") and of_inputs else None


def _is_called(param: Param, word: str) -> bool:
    return param.name.strip("_").rstrip("s") == word


def results_are_rejected(fn: FunctionClass) -> bool:
    """Whether ``apply`` raises for what forward or setup_context does, wherever a gradient is needed."""
    return always_marks_unreturned(fn) or never_saves(fn) or any(saved_returned_inputs(fn)) or _misuses_ctx(fn)


def _misuses_ctx(fn: FunctionClass) -> bool:
    """Whether each call of ``apply`` passes a value to a method of ctx that this certainly does not take."""
    flags = _always_passed(fn, "set_materialize_grads")
    if any(isinstance(each, Constant) and type(each.value) is not bool for each in flags):
        return True
    return any(is_unmarkable(each) or is_unsavable(fn, each) for name in _MARKS for each in _always_passed(fn, name))


_MARKS = ("mark_dirty", "mark_non_differentiable")


def _always_passed(fn: FunctionClass, name: str) -> Iterator[Value]:
    """What every call of ``apply`` passes to a method of ctx."""
    calls = (call for call in fn.context_calls(name) if not call.guards)
    return (each.value for call in calls for each in call.arguments if not each.starred)


def saved_returned_inputs(fn: FunctionClass) -> Iterator[tuple[str, str, cst.BaseExpression]]:
    """The inputs that forward returns as they are and ``setup_context`` saves: torch raises RuntimeError at ``apply``.

    Each as the name of the method that saves it, its own, and the argument.
    """
    setup = fn.methods.get("setup_context")
    if setup is None or setup.inherited or fn.escapes or not fn.outputs or not fn.signature_judgeable:
        return
    if fn.context_calls("mark_dirty") or fn.context_calls("mark_non_differentiable"):
        return
    for name in ("save_for_backward", "save_for_forward"):
        for call in fn.context_calls(name):
            for argument in call.arguments if not call.guards else ():
                value = argument.value
                if not isinstance(value, Parameter) or is_tensor(value) is not Tri.YES or argument.node is None:
                    continue
                if all(is_returned([each], value) is Tri.YES for each in fn.outputs):
                    yield name, value.name, argument.node


def takes_no_outputs(fn: FunctionClass) -> bool:
    """Whether backward cannot take one gradient for each output, whichever return of forward is taken."""
    backward = fn.counted_backward
    if backward is None or backward.raises_only or fn.forward is None or "boxed_grads_call" in fn.class_attributes:
        return False
    outputs = unfit_outputs(fn)
    if not outputs or never_wants_gradients(fn):
        return False
    return not any(hides_tensors(option) for each in outputs for option in each.value.options())


def _is_misfit(fn: FunctionClass, method: Method) -> bool:
    """Whether a method of this class has no parameter for the ctx, or one in front of it, and none to spare.

    With the ctx in another place, each parameter gets the value of another.
    """
    if not fn.signature_judgeable or fn.legacy_state is not None or method.inherited or not method.signature_known:
        return False
    if method.name in fn.called_directly or may_mean_an_instance(fn) or misnamed(fn):
        return False
    if method.lacks_ctx:
        used_as_base = method.name == "forward" and (fn.has_subclass or not (fn.applied or fn.backward is not None))
        unknown = method is fn.backward and (not fn.outputs or any(each.count is None for each in fn.outputs))
        late = any(is_context_name(each.name) for each in method.own_params[1:])
        return late or not (used_as_base or unknown or works_by_accident(fn, method))
    if method.binding is Binding.CLASS:
        return takes_class_as_context(method) and not works_by_accident(fn, method)
    second = method.receiver is not None and method.binding is Binding.STATIC and fn.applied
    return second and not works_by_accident(fn, method)


def _needs_keywords(fn: FunctionClass, forward: Method) -> bool:
    """Whether forward has a parameter that takes no argument by position, without a default: torch passes no other.

    With ``setup_context``, newer releases pass the default as well, and reject it.
    """
    only = [each for each in forward.params if each.kind is ParameterKind.KEYWORD_ONLY]
    rejected = bool(only) if fn.style is Style.SETUP_CONTEXT else any(each.required for each in only)
    return rejected and fn.signature_judgeable and forward.signature_known and not forward.inherited


def _is_undefined(fn: FunctionClass) -> bool:
    """Whether a decorator raises when the class is defined, in all releases but old ones."""
    return any(each.lacks_device_type for method in fn.own_protocol_methods for each in method.decorators)


def _takes_a_context(fn: FunctionClass, forward: Method) -> bool:
    """Whether forward has a parameter for the ctx, which torch passes only to ``setup_context``."""
    if not fn.signature_judgeable or fn.style is not Style.SETUP_CONTEXT or forward.ctx is None:
        return False
    spare = forward.variadic is not None or any(each.has_default for each in forward.own_params)
    return forward.signature_known and not spare


def lacks_custom_fwd(fn: FunctionClass, backward: Method) -> bool:
    """Whether ``custom_bwd`` decorates backward, but nothing keeps the state that it reads on the ctx."""
    if fn.forward is None or backward.raises_only or fn.style is Style.UNKNOWN or not decorators_known(fn, backward):
        return False
    kept = fn.forward.decorator("custom_fwd") is not None and fn.style is Style.CTX_IN_FORWARD
    lacks = backward.decorator("custom_bwd") is not None and not kept
    return lacks and not stores_autocast_state(fn)


def decorators_known(fn: FunctionClass, backward: Method) -> bool:
    """Whether the decorators of forward and backward are known; no if one may do nothing, or raises for the class."""
    if fn.forward is None or not fn.signature_judgeable:
        return False
    pair = (fn.forward, backward)
    if any(each.inherited or not each.signature_known for each in pair):
        return False
    return not any(each.lacks_device_type or each.optional for method in pair for each in method.decorators)


def stores_autocast_state(fn: FunctionClass) -> bool:
    """Whether something other than ``custom_fwd`` on forward writes what ``custom_bwd`` reads, or may."""
    if "_fwd_used_autocast" in fn.stored_attributes or "_fwd_used_autocast" in fn.writes_by_attribute:
        return True
    return any(
        not method.context_known
        or method.facts.of(Escape)
        or (method.name == "setup_context" and method.decorator("custom_fwd"))
        for method in fn.context_methods
    )


def unfit_inputs(fn: FunctionClass) -> Iterator[cst.CSTNode]:
    """Where ``setup_context`` always unpacks another number of inputs than forward takes, since torch 2.2."""
    setup, forward = fn.setup_context, fn.forward
    if setup is None or forward is None or setup.inherited or len(setup.positional) < 2 or not fn.signature_judgeable:
        return
    if not forward.signature_known or fn.variadic_inputs is not None:
        return
    yield from (each.node for each in unfit_unpackings(setup, setup.positional[0].name, len(fn.inputs)))
