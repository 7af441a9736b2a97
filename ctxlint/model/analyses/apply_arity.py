"""Does a call of ``apply`` pass the arguments that ``forward`` takes? One that does not shows nothing of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.omitted_arguments import are_alike
from ctxlint.model.function import Binding, ParameterKind, Style
from ctxlint.model.index.apply_calls import APPLIES
from ctxlint.model.interpreter.signatures import are_moved, misfit_of
from ctxlint.model.interpreter.values import Constant, Opaque, Tri
from ctxlint.model.syntax import children
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api import known_decorators as decorators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.model.function import ApplyCall, FunctionClass, Input, Method
    from ctxlint.model.interpreter.events import Misfit
    from ctxlint.model.interpreter.values import Value


def takes_arguments(forward: Method) -> bool:
    """Whether the arguments of ``apply`` are those of ``forward`` after its ctx, as far as the method itself shows."""
    by_class = forward.receiver is None or forward.binding is Binding.CLASS
    return forward.signature_known and not forward.lacks_ctx and by_class


def all_are_shifted(fn: FunctionClass) -> bool:
    """Whether each call in view passes arguments in another order than forward takes them: it may raise."""
    inputs = [each.name for each in fn.inputs]
    calls = [call for call in fn.calls if call.applies]
    named = ((name.rpartition(".")[2] for name in call.names) for call in calls)
    return bool(calls) and all(are_moved(names, inputs) for names in named)


def misfit(call: ApplyCall, forward: Method) -> Misfit | None:
    """What is wrong with the arguments of a call of ``apply``; None if nothing, or if the number is unknown."""
    if not call.applies or call.starred or call.double_starred:
        return None
    return misfit_of(forward.name, forward.own_params, call.positional, dict.fromkeys(call.keywords, ""))


class Slip(NamedTuple):
    """An argument ``name`` for the parameter ``meant``, which ``takes`` gets: too few precede it, or a starred one."""

    name: str
    meant: str
    takes: str


def slip(call: ApplyCall, fn: FunctionClass, forward: Method, calls: Iterable[ApplyCall]) -> Slip | None:
    """The first argument before a starred one that one of ``calls`` passes for a later parameter, or an earlier one.

    It is not a tensor, or gets no gradient, and some argument is in its place: tensors may be swapped on purpose.
    """
    params, given = [param.name for param in forward.positional], call.names
    if not call.starred or call.keywords or call.double_starred or forward.variadic is None:
        return None
    if not call.applies or call.positional != len(given) or not 0 < len(given) < len(params):
        return None
    names, full = _parameters(call), [each for each in calls if len(each.names) >= len(params) and each.applies]
    passed = {name: at for each in full for at, name in enumerate(_parameters(each)[: len(params)])}
    meant = {params[at]: at for name, at in passed.items() if name == params[at]}
    if all(name != param for name, param in zip(names, params)):
        return None
    for at, name in enumerate(names):
        right = meant.get(name, at)
        if right != at and names[right : right + 1] != (name,) and Tri.NO in _tensor_or_gradient(fn.inputs[right]):
            return Slip(given[at], name, params[at])
    return None


def misplaced(call: ApplyCall, forward: Method) -> Slip | None:
    """The first argument with the name of an optional parameter that gets none, for another optional one.

    Their defaults are of different sorts, and several arguments have all moved by as many places. A single one may be
    meant for a parameter that is None by default: forward may take either.
    """
    if not call.applies or call.starred or call.double_starred or call.positional != len(call.names):
        return None
    params = {param.name: param for param in forward.positional if param.has_default}
    omitted = {param.name for param in forward.positional[call.positional :]} & params.keys() - {*call.keywords}
    found = [
        Slip(given, name, param.name)
        for given, name, param in zip(call.names, _parameters(call), forward.positional)
        if name in omitted and param.has_default and not are_alike(name, param.name)
    ]
    places = {param.name: at for at, param in enumerate(forward.positional)}
    moved = {places[each.meant] - places[each.takes] for each in found}
    unknown = ("", "NoneType") if len(found) == 1 else ("",)
    sorts = [{_sort(params[name].default) for name in (each.meant, each.takes)} for each in found]
    differ = any(len(each) > 1 and each.isdisjoint(unknown) for each in sorts)
    return found[0] if differ and len(moved) == 1 else None


def _sort(default: Value | None) -> str:
    """What sort of thing a default is; empty if unknown."""
    if isinstance(default, Constant):
        return "number" if default.type_name in ("int", "float") else default.type_name
    is_display = isinstance(default, Opaque) and isinstance(default.node, (cst.Tuple, cst.List, cst.Dict))
    return "container" if is_display else ""


def _tensor_or_gradient(each: Input) -> tuple[Tri, Tri]:
    """Whether an input is a tensor, and gets a gradient, which is unknown if another file defines the Function."""
    return each.is_tensor, each.gradient


def _parameters(call: ApplyCall) -> tuple[str, ...]:
    """What the arguments may be called in forward: ``training`` for ``self.training``."""
    return tuple(name.rpartition(".")[2] for name in call.names)


def all_fail(calls: Iterable[ApplyCall], methods: Mapping[str, Method], style: Style) -> bool:
    """Whether torch certainly rejects each call in view that is meant to run the Function, and there is one."""
    forward, meant = methods.get("forward"), [call for call in calls if call.how in _MEANT and not _is_own(call)]
    meant = [call for call in meant if not call.expects_error]
    if forward is None or not meant:
        return False
    instances = {"__call__", "__new__"}.isdisjoint(methods)
    return all(instances if call.how == _INSTANCE else _fails(call, forward, style) for call in meant)


def _is_own(call: ApplyCall) -> bool:
    """Whether a call is in the class that it calls, such as in its ``vmap``: another call comes first."""
    return not call.path and call.inside.startswith(f"{call.function}.")


_INSTANCE = "construct-call"
_MEANT = (*APPLIES, "transform", _INSTANCE)


def _fails(call: ApplyCall, forward: Method, style: Style) -> bool:
    """Whether a call of ``apply`` certainly raises for its arguments, whichever the release of torch."""
    if not call.applies:
        return False
    by_keyword = style is Style.CTX_IN_FORWARD and hides_parameters(forward) and bool(call.keywords)
    if by_keyword or never_by_position(call.keywords, forward):
        return True
    return takes_arguments(forward) and misfit(call, forward) is not None


def never_by_position(names: Iterable[str], forward: Method | None) -> list[str]:
    """The names that only ``**kwargs`` or a keyword-only parameter of ``forward`` takes, which torch never passes."""
    if forward is None or not forward.signature_known or forward.lacks_ctx:
        return []
    kinds = {param.name: param.kind for param in forward.own_params if param.kind is not ParameterKind.VARIADIC}
    takes_any = ParameterKind.KEYWORDS in kinds.values()
    never = (ParameterKind.KEYWORD_ONLY, *((None, ParameterKind.KEYWORDS) if takes_any else ()))
    return [name for name in names if kinds.get(name) in never]


def hides_parameters(forward: Method) -> bool:
    """Whether torch certainly sees the wrapper of a torch decorator instead of ``forward``: that takes no keywords."""
    names = (each.name for each in forward.decorators if not each.takes_descriptors)
    return any(name is not None and (name in _WRAPPING or name.endswith("custom_fwd")) for name in names)


_WRAPPING = (
    decorators.SIGNATURE_KEEPING_DECORATORS
    - decorators.DESCRIPTOR_KEEPING_DECORATORS
    - {"torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph"}
)


def wrong_length(call: ApplyCall, forward: Method) -> tuple[int, tuple[int, ...]] | None:
    """How many arguments a call passes for ``*args``, and into how many forward unpacks them, if it cannot."""
    if call.starred or call.double_starred or call.keywords or not call.applies or forward.variadic is None:
        return None
    passed, name = call.positional - len(forward.positional), forward.variadic.name
    counts = _unpacked(forward.node.body.body, name) if passed >= 0 and name not in forward.binders else None
    return (passed, tuple(sorted(counts))) if counts and passed not in counts else None


def _unpacked(body: Sequence[cst.CSTNode], name: str) -> set[int] | None:
    """Into how many targets every path through some statements unpacks a name; None if a path may not do so."""
    for statement in body:
        if isinstance(statement, cst.If):
            arms = [_unpacked(arm.body, name) if arm is not None else None for arm in _arms(statement)]
            known = [arm for arm in arms if arm is not None]
            if len(known) == len(arms):
                return set().union(*known)
        if isinstance(statement, cst.With):
            found = _unpacked(statement.body.body, name)
            if found is not None:
                return found
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            count = _targets(small, name)
            if count is not None:
                return {count}
        if _may_leave(statement):
            return None
    return None


def _arms(node: cst.If) -> Iterator[cst.BaseSuite | None]:
    yield node.body
    if isinstance(node.orelse, cst.If):
        yield from _arms(node.orelse)
    else:
        yield node.orelse.body if node.orelse is not None else None


def _targets(small: cst.CSTNode, name: str) -> int | None:
    """The number of targets of ``a, b = name``."""
    if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Name) or small.value.value != name:
        return None
    target = small.targets[0].target
    if not isinstance(target, (cst.Tuple, cst.List)):
        return None
    starred = any(isinstance(each, cst.StarredElement) for each in target.elements)
    return None if starred else len(target.elements)


def _may_leave(node: cst.CSTNode) -> bool:
    """Whether a statement may end the function."""
    return isinstance(node, (cst.Return, cst.Raise, cst.Try)) or any(map(_may_leave, children(node)))


def working_calls(calls: Iterable[ApplyCall], forward: Method | None) -> tuple[ApplyCall, ...]:
    """The calls without those whose arguments ``forward`` certainly does not take: their positions mean nothing."""
    if forward is None or not takes_arguments(forward):
        return tuple(calls)
    return tuple(call for call in calls if misfit(call, forward) is None)
