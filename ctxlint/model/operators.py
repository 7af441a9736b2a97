"""Custom operators: ``custom_op`` or ``triton_op``, in any file, with a gradient from ``register_autograd``.

The contract is that of a Function with the differences that the rules CTX801 to CTX803 describe.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.effort import Effort, EffortExceeded
from ctxlint.model.analyses.outputs import is_floating
from ctxlint.model.analyses.returns import returned_by
from ctxlint.model.function import Binding, GivenUp, Method, MethodFacts, Operator, ParameterKind
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, resolutions
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.parameter_binding import bound_parameters, bound_plain
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.interpreter.values import Kind, Parameter, Sequence, Tri, is_tensor
from ctxlint.source.source import Position
from ctxlint.torch_api.known_decorators import OPERATOR_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    import libcst as cst

    from ctxlint.model.function import Returned
    from ctxlint.model.index.file_index import CallRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.method import Param
    from ctxlint.model.interpreter.summary import Resolver
    from ctxlint.source.source import Source

_REGISTER = "torch.library.register_autograd"


class _Owner(NamedTuple):
    """An operator: its name, and the function that ``custom_op`` decorates, with its file."""

    name: str
    function: Definition


def operators_of(unit: Unit, project: Project, resolver: Resolver) -> Iterator[Operator | GivenUp]:
    """The operators whose gradient is registered in this file, in call order; and those given up."""
    effort = Effort()
    registrations = _registrations(unit)
    names = _operator_names(unit) if registrations else {}
    for call in registrations:
        try:
            with effort.on(call):
                found = _operator(unit, project, resolver, call, names)
        except EffortExceeded:
            yield GivenUp(Position(call.node.lineno, 1), dotted_name(call.node.func) or call.name)
            continue
        if found is not None:
            yield found


def registers_own(unit: Unit) -> bool:
    """Whether the file creates every operator whose gradient it registers."""
    registrations = _registrations(unit)
    names = _operator_names(unit) if registrations else {}
    arguments = map(_holder, registrations)
    return all(each is None or _own_operator(unit, *each, names) is not None for each in arguments)


def _registrations(unit: Unit) -> list[CallRecord]:
    registering = unit.index.names_for({"register_autograd"})
    return [call for call in unit.index.calls if call.name in registering and _registers(call)]


def in_source(operator: Operator, source: Source) -> Operator:
    """An operator of an earlier text, which is at the same lines of ``source``."""

    def there(method: Method) -> Method:
        return replace(method, slice=replace(method.slice, source=source))

    setup = operator.setup_context
    return replace(
        operator, backward=there(operator.backward), setup_context=there(setup) if setup is not None else None
    )


def _registers(call: CallRecord) -> bool:
    func = call.node.func
    if isinstance(func, ast.Attribute):
        return func.attr == "register_autograd"
    return isinstance(func, ast.Name) and _resolved(func, call.scope) == _REGISTER


def _operator_names(unit: Unit) -> dict[str, str]:
    """The functions of the file that make operators, by the operator's name (``"lib::op"``)."""
    return {str(name.value): qualname for qualname, _, name in _decorated(unit, OPERATOR_DECORATORS)}


def decorated_operators(unit: Unit) -> Iterator[tuple[str, str]]:
    """The operators that a single decorator creates from a function, by name, with that function.

    Tags and a schema may allow results that share memory with inputs.
    """
    for qualname, decorator, name in _decorated(unit, OPERATOR_DECORATORS):
        if len(unit.index.functions[qualname].node.decorator_list) == 1 and all(
            keyword.arg in ("mutates_args", "device_types") for keyword in decorator.keywords
        ):
            yield str(name.value), qualname


def _decorated(unit: Unit, makers: AbstractSet[str]) -> Iterator[tuple[str, ast.Call, ast.Constant]]:
    """The functions that one of the ``makers`` of operators decorates, with that call and the operator's name."""
    for qualname, record in unit.index.functions.items():
        for decorator in getattr(record.node, "decorator_list", ()):
            if not isinstance(decorator, ast.Call) or not decorator.args or "@" in qualname:
                continue  # one of several of the same name
            name = decorator.args[0]
            if _resolved(decorator.func, unit.index.module) in makers and isinstance(name, ast.Constant):
                yield qualname, decorator, name


def _resolved(node: ast.expr, scope: Scope) -> str | None:
    path = dotted_name(node)
    found = resolutions(path, scope) if path is not None else []
    return found[0] if len(found) == 1 else None


def _holder(call: CallRecord) -> tuple[ast.expr, Scope] | None:
    """The expression that denotes the operator of a registration, and its scope."""
    func = call.node.func
    if _resolved(func, call.scope) == _REGISTER:
        return (call.node.args[0], call.scope) if call.node.args else None
    return func.value if isinstance(func, ast.Attribute) else func, call.scope


def _operator(
    unit: Unit, project: Project, resolver: Resolver, call: CallRecord, names: Mapping[str, str]
) -> Operator | None:
    arguments = list(call.node.args)
    if any(isinstance(each, ast.Starred) for each in arguments):
        return None
    holder = _holder(call)
    if holder is not None and holder[0] in arguments[:1]:
        arguments.pop(0)
    owner = _named_operator(unit, project, *holder, names) if holder is not None else None
    keywords = {keyword.arg: keyword.value for keyword in call.node.keywords}
    backward = arguments[0] if arguments else keywords.get("backward")
    if owner is None or backward is None or None in keywords:
        return None
    return _assembled(unit, resolver, call, owner, backward, keywords.get("setup_context"))


def _named_operator(
    unit: Unit, project: Project, node: ast.expr, scope: Scope, names: Mapping[str, str]
) -> _Owner | None:
    """The operator that its name as a string, or its function, denotes: of this file, or of one that it imports.

    ``names`` are those of this file.
    """
    own = _own_operator(unit, node, scope, names)
    if own is not None:
        return own
    if isinstance(node, ast.Constant):
        found = [_own_operator(each, node, scope, _operator_names(each)) for each in project.imported(unit)]
        known = [each for each in found if each is not None]
        return known[0] if len(known) == 1 else None
    meant = _resolved(node, scope)
    function = project.certainly(unit, meant) if meant is not None and not meant.startswith(LOCAL) else None
    if function is None:
        return None
    theirs = _operator_names(function.unit).items()
    return next((_Owner(name, function) for name, qualname in theirs if qualname == function.qualname), None)


def _own_operator(unit: Unit, node: ast.expr, scope: Scope, names: Mapping[str, str]) -> _Owner | None:
    if isinstance(node, ast.Constant):
        qualname = names.get(str(node.value))
        return _Owner(str(node.value), Definition(unit, qualname)) if qualname is not None else None
    meant = _resolved(node, scope)
    return next((_Owner(name, Definition(unit, at)) for name, at in names.items() if meant == LOCAL + at), None)


def _assembled(
    unit: Unit, resolver: Resolver, call: CallRecord, owner: _Owner, backward: ast.expr, setup: ast.expr | None
) -> Operator | None:
    home, qualname = owner.function.unit, owner.function.qualname
    function = home.slices.find_function(qualname)
    certain = Tri.YES if gives_tensors(home, qualname) else Tri.UNKNOWN
    method = _method(unit, resolver, backward, call.scope, "backward", certain)
    if function is None or method is None:
        return None
    params = params_of(function, home.index.module)
    if any(param.kind in (ParameterKind.VARIADIC, ParameterKind.KEYWORDS) for param in params):
        return None
    returns = function.returns.annotation if function.returns is not None else None
    return Operator(
        name=owner.name,
        inputs=tuple(param for param in params if param.kind is ParameterKind.POSITIONAL),
        keyword_only=tuple(param for param in params if param.kind is ParameterKind.KEYWORD_ONLY),
        outputs=_outputs(home, qualname) if returns is not None else None,
        backward=method,
        setup_context=_method(unit, resolver, setup, call.scope, "setup_context") if setup is not None else None,
        gradients=tuple(returned_by(method)),
        floating=_floating(function, params, returned_by(method), Scope("function", qualname, home.index.module)),
    )


def _floating(
    function: cst.FunctionDef, params: tuple[Param, ...], gradients: list[Returned], scope: Scope
) -> frozenset[int]:
    """The outputs that each return computes as floating-point tensors, given that inputs with a gradient are such."""
    wanted = {
        params[at].name
        for each in gradients
        for at, slot in enumerate(each.slots[: len(params)])
        if each.known and each.exact and is_tensor(slot.value) is Tri.YES
    }
    bindings = {
        name: replace(value, kind=Kind.FLOAT) if name in wanted and isinstance(value, Parameter) else value
        for name, value in bound_plain(params).items()
    }
    try:
        facts = interpret(function, bindings, scope)
    except RecursionError:
        return frozenset()
    found: list[set[int]] = []
    for event in facts.returns if facts.complete else ():
        for option in event.value.options():
            exact = isinstance(option, Sequence) and option.exact
            results = [slot.value for slot in option.slots] if exact else [option]  # type: ignore[attr-defined]
            found.append({at for at, each in enumerate(results) if is_floating(each)})
    return frozenset(set.intersection(*found)) if found else frozenset()


def _method(
    unit: Unit, resolver: Resolver, node: ast.expr, scope: Scope, name: str, gradient: Tri = Tri.UNKNOWN
) -> Method | None:
    """The walked function of the file that serves as backward or setup_context; None for any other expression.

    ``gradient``: whether the gradients that backward gets are certainly tensors.
    """
    meant = _resolved(node, scope)
    if meant is None or not meant.startswith(LOCAL):
        return None
    qualname = meant[len(LOCAL) :]
    found = unit.slices.find_function_in_slice(qualname)
    if found is None or found[0].decorators:
        return None
    if scope.kind == "module" and unit.index.functions[qualname].node.lineno > node.lineno:
        return None  # an earlier function of this name
    function, part = found
    inner = Scope("function", "", unit.index.module)
    params = params_of(function, inner)
    positional = [param for param in params if param.kind is ParameterKind.POSITIONAL]
    method = Method(
        name=name,
        node=function,
        slice=part,
        binding=Binding.STATIC,
        decorators=(),
        params=params,
        receiver=None,
        ctx=positional[0] if positional else None,
        facts=MethodFacts(),
    )
    try:
        facts = interpret(function, bound_parameters(method, "gradient", gradient), inner, resolver)
    except RecursionError:
        facts = MethodFacts(complete=False)
    return replace(method, facts=facts)


def gives_tensors(unit: Unit, qualname: str) -> bool:
    """Whether the annotation promises only tensors, and no list of them: then backward gets one tensor for each."""
    returns = getattr(unit.index.functions[qualname].node, "returns", None)
    if isinstance(returns, ast.Subscript) and isinstance(returns.slice, ast.Tuple):
        return all(_resolved(each, unit.index.module) == "torch.Tensor" for each in returns.slice.elts)
    return returns is not None and _resolved(returns, unit.index.module) == "torch.Tensor"


def _outputs(unit: Unit, qualname: str) -> int | None:
    """The number of outputs according to the operator's annotation; a list of tensors counts as one."""
    returns = getattr(unit.index.functions[qualname].node, "returns", None)
    if returns is None:
        return None
    if isinstance(returns, ast.Constant) and returns.value is None:
        return 0
    if isinstance(returns, ast.Subscript):
        container = _resolved(returns.value, unit.index.module)
        inside = returns.slice
        if container in ("builtins.tuple", "typing.Tuple") and isinstance(inside, ast.Tuple):
            return None if any(isinstance(each, ast.Constant) for each in inside.elts) else len(inside.elts)
        return 1 if container in ("builtins.list", "typing.List") else None
    return 1 if _resolved(returns, unit.index.module) == "torch.Tensor" else None
