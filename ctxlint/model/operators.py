"""Custom operators: ``custom_op`` or ``triton_op``, in any file, with a gradient from ``register_autograd``.

The operator, the functions of its gradient, and their registration may be in three files. The contract is that of a
Function with the differences that the rules CTX801 to CTX803 describe.
"""

from __future__ import annotations

import ast
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.effort import Effort, EffortExceeded
from ctxlint.model.analyses.outputs import is_floating
from ctxlint.model.analyses.returns import returned_by
from ctxlint.model.function import BackwardWithCast, Binding, GivenUp, Method, MethodFacts, Operator, ParameterKind
from ctxlint.model.index.file_answers import is_replaced
from ctxlint.model.index.file_index import is_one_of_several
from ctxlint.model.index.project import Definition
from ctxlint.model.index.project_answers import operator_decorators
from ctxlint.model.index.result_layouts import results_of
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, resolutions
from ctxlint.model.interpreter.interpret import interpret
from ctxlint.model.interpreter.parameter_binding import bound_parameters, bound_plain
from ctxlint.model.interpreter.signatures import params_of
from ctxlint.model.interpreter.values import Kind, Parameter, Sequence, Tri, is_tensor
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import nodes_in, parameter_names
from ctxlint.source.scanner import NAMES_OF_CTX
from ctxlint.source.source import Position
from ctxlint.torch_api.extensions import OPERATORS_OF_TORCH
from ctxlint.torch_api.known_decorators import SIGNATURE_KEEPING_DECORATORS, TRACING_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    import libcst as cst

    from ctxlint.model.function import Returned
    from ctxlint.model.index.file_index import CallRecord, FileIndex, FunctionRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.method import Param
    from ctxlint.model.interpreter.summary import Resolver
    from ctxlint.source.source import Source, Span

_REGISTER = "torch.library.register_autograd"
_FAKES = ("torch.library.register_fake", "torch.library.impl_abstract")


class _Owner(NamedTuple):
    """An operator: its name, and the function that ``custom_op`` decorates, with its file."""

    name: str
    function: Definition


class _Home(NamedTuple):
    """A file that registers gradients, as it is read for the ``linted`` file: that one itself, or another.

    ``names`` are the functions that make operators there, by the operator's name (``"lib::op"``).
    """

    unit: Unit
    linted: Unit
    project: Project
    resolver_of: Callable[[Unit], Resolver]
    names: Mapping[str, str]

    def function(self, node: ast.expr, scope: Scope) -> Definition | None:
        """The function of the project that an expression certainly denotes."""
        meant = _resolved(node, scope)
        if meant is not None and meant.startswith(LOCAL):
            return Definition(self.unit, meant[len(LOCAL) :])
        found = self.project.certainly(self.unit, meant) if meant is not None else None
        return replace(found, unit=self.linted) if found is not None and self._is_linted(found.unit) else found

    def is_of_linted(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression denotes a function of the linted file."""
        found = self.function(node, scope)
        return found is not None and self._is_linted(found.unit)

    def _is_linted(self, unit: Unit) -> bool:
        return os.path.abspath(unit.path) == os.path.abspath(self.linted.path)


class _Registration(NamedTuple):
    """The arguments of a call of ``register_autograd``."""

    operator: ast.expr
    backward: ast.expr
    setup: ast.expr | None
    by_position: bool = False
    """Whether ``setup`` is a positional argument, which torch does not take."""

    @property
    def functions(self) -> list[ast.expr]:
        """The expressions for functions."""
        return [self.backward, *([self.setup] if self.setup is not None else [])]


def operators_of(
    unit: Unit, project: Project, resolver_of: Callable[[Unit], Resolver], using: Iterable[str] = ()
) -> Iterator[Operator | GivenUp]:
    """The operators whose gradient is registered in a file, in call order, and those given up.

    Then those that other files register with functions of this one: files ``using`` its functions.
    """
    effort = Effort()
    others = [other for path in using if (other := project.unit(path)) is not None]
    used = {name for other in others for name in _otherwise_used(unit, other)}
    registrations = _registrations(unit)
    own = _Home(unit, unit, project, resolver_of, _operator_names(unit) if registrations else {})
    for call in registrations:
        try:
            with effort.on(call):
                found = _operator(own, call, used)
        except (EffortExceeded, RecursionError):
            yield GivenUp(Position(call.node.lineno, 1), dotted_name(call.node.func) or call.name)
            continue
        if found is not None:
            yield found
    for other in others:
        home = _Home(other, unit, project, resolver_of, _operator_names(other))
        for call in _registrations(other):
            given = _registration(call)
            if given is None or not any(home.is_of_linted(each, call.scope) for each in given.functions):
                continue
            with suppress(EffortExceeded, RecursionError), effort.on(call):
                found = _operator(home, call, used)
                if found is not None:
                    yield replace(found, registered_here=False)


def cast_backwards(unit: Unit, project: Project, resolver_of: Callable[[Unit], Resolver]) -> Iterator[BackwardWithCast]:
    """The gradients under ``custom_bwd`` that a file registers: no ctx has the state that it reads."""
    registrations = _registrations(unit)
    home = _Home(unit, unit, project, resolver_of, _operator_names(unit) if registrations else {})
    for call in registrations:
        given = _registration(call)
        owner = _named_operator(home, given.operator, call.scope) if given is not None else None
        if given is None or owner is None or call.expects_error:
            continue
        backward = _record(home, given.backward, call.scope)
        if backward is None or not _has_custom_bwd(backward, unit, project):
            continue
        setup = _record(home, given.setup, call.scope) if given.setup is not None else None
        if given.setup is None or (setup is not None and not _may_keep_state(setup)):
            yield BackwardWithCast(unit.source.span_of(given.backward), owner.name, backward.node.name)


def _has_custom_bwd(backward: FunctionRecord, unit: Unit, project: Project) -> bool:
    """Whether torch's ``custom_bwd`` is the only decorator."""
    names = [_resolved(_called(each), backward.scope) or "" for each in backward.node.decorator_list]
    is_torch = len(names) == 1 and names[0].endswith(".custom_bwd") and names[0] in SIGNATURE_KEEPING_DECORATORS
    return is_torch and not is_replaced(unit, project, names[0])


def _record(home: _Home, node: ast.expr, scope: Scope) -> FunctionRecord | None:
    """The function of the project that an expression certainly denotes."""
    found = home.function(node, scope)
    record = found.unit.index.functions.get(found.qualname) if found is not None else None
    return record if record is not None and record.certain else None


def _may_keep_state(setup: FunctionRecord) -> bool:
    """Whether a ``setup_context`` may keep what ``custom_bwd`` reads: it does more than to save and set attributes."""
    nodes = nodes_in(setup.node)
    ctx = next(iter(parameter_names(setup.node.args)), "")
    owners = [each.value for each in nodes if isinstance(each, ast.Attribute)]
    used = [each for each in nodes if isinstance(each, ast.Name) and each.id == ctx]
    mentioned = any(isinstance(each, ast.Attribute) and each.attr == "_fwd_used_autocast" for each in nodes)
    return bool(setup.node.decorator_list) or mentioned or not all(each in owners for each in used)


def _otherwise_used(unit: Unit, other: Unit) -> Iterator[str]:
    """The functions of a file that another file uses, and not only to register them."""
    bound = ((name, each.target) for name, bounds in other.index.module.names.items() for each in bounds)
    functions = {name: name for name in unit.index.functions}
    functions |= {name: last for name, target in bound if target and (last := target.rpartition(".")[2]) in functions}
    registered = [_registration(call) for call in _registrations(other)]
    given = {node for each in registered if each is not None for node in each.functions}
    for node in nodes_in(other.module):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and node not in given:
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in functions:
                yield functions[name]


def registrable(unit: Unit) -> Iterator[str]:
    """The functions of a file that another one may register: those that are registered here, or look like it."""
    given = [(each, call) for call in _registrations(unit) if (each := _registration(call)) is not None]
    meant = {_resolved(node, call.scope) for each, call in given for node in each.functions}
    for part in unit.index.parts or (unit.index,):
        if registrable not in part.notes:
            functions = ((name, each.node) for name, each in part.functions.items() if each.scope.kind == "module")
            part.notes[registrable] = [(name, _looks_like_a_gradient(node)) for name, node in functions]
        yield from (name for name, looks_like_it in part.notes[registrable] if looks_like_it or LOCAL + name in meant)


def _looks_like_a_gradient(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    taken = set(parameter_names(arguments))
    if any((dotted_name(_called(each)) or "").rpartition(".")[2] not in _TRACING for each in function.decorator_list):
        return False
    return "setup_context" in function.name or not taken.isdisjoint(NAMES_OF_CTX)


_TRACING = frozenset(each.rpartition(".")[2] for each in TRACING_DECORATORS)


def _is_only_traced(function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> bool:
    """Whether decorators of a function, if it has any, only tell ``torch.compile`` what to do with it."""
    return all(_resolved(_called(each), scope) in TRACING_DECORATORS for each in function.decorator_list)


def _called(decorator: ast.expr) -> ast.expr:
    """The decorator without its arguments."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def needs_project(unit: Unit, using: Iterable[str]) -> bool:
    """Whether the operators of a file depend on other files: on functions or operators there, or on registrations."""
    registrations = _registrations(unit)
    names = _operator_names(unit) if registrations else {}
    for call in registrations:
        given = _registration(call)
        if given is not None:
            meant = [_resolved(each, call.scope) or LOCAL for each in given.functions]
            own = _own_operator(unit, names, given.operator, call.scope)
            if own is None or not all(each.startswith(LOCAL) for each in meant):
                return True
    return any(True for _path in using)


def _registrations(unit: Unit) -> list[CallRecord]:
    notes = unit.index.notes
    if _registrations not in notes:
        registering = unit.index.names_for({"register_autograd"})
        notes[_registrations] = [each for each in unit.index.calls_named(registering) if _registers(each)]
    found: list[CallRecord] = notes[_registrations]
    return found


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
    return {str(name.value): qualname for qualname, _, name in _decorated(unit)}


def decorated_operators(unit: Unit) -> Iterator[tuple[str, str]]:
    """The operators that a single decorator creates from a function, by name, with that function.

    Tags and a schema may allow results that share memory with inputs.
    """
    for qualname, decorator, name in _decorated(unit):
        if len(unit.index.functions[qualname].node.decorator_list) == 1 and all(
            keyword.arg in ("mutates_args", "device_types") for keyword in decorator.keywords
        ):
            yield str(name.value), qualname


class Fake(NamedTuple):
    """A function that computes what an operator returns on fake tensors; ``operator`` is the operator's function."""

    function: FunctionRecord
    name: str
    operator: Definition


def fakes_of(unit: Unit, project: Project, resolver: Resolver) -> Iterator[Fake]:
    """The functions of a file that are registered as fakes of operators that a single decorator creates."""
    if not unit.source.holds("register_fake") and not unit.source.holds("impl_abstract"):
        return
    home = _Home(unit, unit, project, lambda _unit: resolver, _operator_names(unit))
    for node, function in _registered_fakes(unit):
        owner = _named_operator(home, node, unit.index.module)
        if owner is not None and (owner.name, owner.function.qualname) in decorated_operators(owner.function.unit):
            yield Fake(function, owner.name, owner.function)


def has_fakes_of_others(unit: Unit) -> bool:
    """Whether a file registers a fake of an operator that it does not define itself."""
    names = _operator_names(unit)
    return any(_own_operator(unit, names, node, unit.index.module) is None for node, _ in _registered_fakes(unit))


def _registered_fakes(unit: Unit) -> Iterator[tuple[ast.expr, FunctionRecord]]:
    """The functions that a single decorator registers as fakes, each after the expression for its operator."""
    for part in unit.index.parts or (unit.index,):
        if _registered_fakes not in part.notes:
            part.notes[_registered_fakes] = list(_fakes_in(part, unit.index.module))
        yield from part.notes[_registered_fakes]


def _fakes_in(part: FileIndex, module: Scope) -> Iterator[tuple[ast.expr, FunctionRecord]]:
    """Those in a part of a file."""
    for record in part.functions.values():
        decorator = record.node.decorator_list[0] if len(record.node.decorator_list) == 1 else None
        if isinstance(decorator, ast.Attribute) and decorator.attr == "register_fake":
            yield decorator.value, record
        elif isinstance(decorator, ast.Call) and decorator.args and _resolved(decorator.func, module) in _FAKES:
            yield decorator.args[0], record


def _decorated(unit: Unit) -> Iterator[tuple[str, ast.Call, ast.Constant]]:
    """The functions that a decorator makes operators, with that call and the operator's name."""
    for qualname, decorator in operator_decorators(unit.index):
        name = decorator.args[0] if decorator.args else None
        if isinstance(name, ast.Constant) and not is_one_of_several(qualname):
            yield qualname, decorator, name


def _resolved(node: ast.expr, scope: Scope) -> str | None:
    path = dotted_name(node)
    found = resolutions(path, scope) if path is not None else []
    return found[0] if len(found) == 1 else None


def _registration(call: CallRecord) -> _Registration | None:
    """The arguments of a registration; None if some are not written out, or it decorates the backward function."""
    func, arguments = call.node.func, list(call.node.args)
    keywords = {keyword.arg: keyword.value for keyword in call.node.keywords}
    if None in keywords or any(isinstance(each, ast.Starred) for each in arguments):
        return None
    if _resolved(func, call.scope) == _REGISTER:
        operator = arguments.pop(0) if arguments else None
    else:
        operator = func.value if isinstance(func, ast.Attribute) else func
    backward = arguments.pop(0) if arguments else keywords.get("backward")
    if operator is None or backward is None:
        return None
    if len(arguments) == 1 and "setup_context" not in keywords:
        return _Registration(operator, backward, arguments[0], by_position=True)
    return _Registration(operator, backward, keywords.get("setup_context"))


def _operator(home: _Home, call: CallRecord, used: Container[str]) -> Operator | None:
    given = _registration(call)
    owner = _named_operator(home, given.operator, call.scope) if given is not None else None
    return _assembled(home, call, owner, given, used) if owner is not None and given is not None else None


def _named_operator(home: _Home, node: ast.expr, scope: Scope) -> _Owner | None:
    """The operator that its name as a string, or its function, denotes, in whichever file."""
    own = _own_operator(home.unit, home.names, node, scope)
    if own is not None:
        return own
    if isinstance(node, ast.Constant):
        return _operator_of_project(home, str(node.value))
    function = home.function(node, scope)
    if function is None or function.unit is home.unit:
        return None
    theirs = _operator_names(function.unit).items()
    return next((_Owner(name, function) for name, qualname in theirs if qualname == function.qualname), None)


def _operator_of_project(home: _Home, name: str) -> _Owner | None:
    """The operator of that name in a file that the home imports, or in the only one of the project that has it."""
    imported = [_operator_in(each, name) for each in home.project.imported(home.unit)]
    known = [each for each in imported if each is not None]
    if known or name.partition("::")[0] in OPERATORS_OF_TORCH:
        return known[0] if len(known) == 1 else None
    home.project.ask("declares", "", name)
    path = home.project.declared.get(name)
    unit = home.project.unit(path) if path is not None else None
    return _operator_in(unit, name) if unit is not None else None


def _operator_in(unit: Unit, name: str) -> _Owner | None:
    qualname = _operator_names(unit).get(name)
    return _Owner(name, Definition(unit, qualname)) if qualname is not None else None


def _own_operator(unit: Unit, names: Mapping[str, str], node: ast.expr, scope: Scope) -> _Owner | None:
    """The operator of a file that an expression denotes; ``names`` are those of its operators."""
    if isinstance(node, ast.Constant):
        qualname = names.get(str(node.value))
        return _Owner(str(node.value), Definition(unit, qualname)) if qualname is not None else None
    meant = _resolved(node, scope)
    return next((_Owner(name, Definition(unit, at)) for name, at in names.items() if meant == LOCAL + at), None)


def _assembled(
    home: _Home, call: CallRecord, owner: _Owner, given: _Registration, used: Container[str]
) -> Operator | None:
    unit, qualname = owner.function.unit, owner.function.qualname
    function = unit.slices.find_function(qualname)
    certain = Tri.YES if gives_tensors(unit, qualname) else Tri.UNKNOWN
    method = _method(home, given.backward, call.scope, "backward", certain)
    if function is None or method is None:
        return None
    params = params_of(function, unit.index.module)
    if any(param.kind in (ParameterKind.VARIADIC, ParameterKind.KEYWORDS) for param in params):
        return None
    returns = function.returns.annotation if function.returns is not None else None
    setup = _method(home, given.setup, call.scope, "setup_context") if given.setup is not None else None
    return Operator(
        name=owner.name,
        inputs=tuple(param for param in params if param.kind is ParameterKind.POSITIONAL),
        keyword_only=tuple(param for param in params if param.kind is ParameterKind.KEYWORD_ONLY),
        outputs=_outputs(unit, qualname) if returns is not None else None,
        backward=method,
        setup_context=setup,
        gradients=tuple(returned_by(method)),
        floating=_floating(function, params, returned_by(method), Scope("function", qualname, unit.index.module)),
        vectors=_vectors(home, owner.function),
        function=function,
        setup_used=setup is not None and setup.node.name.value in used,
        setup_by_position=_by_position(home.unit, call, owner, given),
    )


def _vectors(home: _Home, operator: Definition) -> frozenset[int]:
    """The results of an operator with a single dimension, as its fake shows, in a file that the registration knows."""
    others = home.project.imported(home.unit) if operator.unit is not home.unit else ()
    units = {id(each): each for each in (operator.unit, home.unit, *others)}
    for unit in units.values():
        if not unit.source.holds("register_fake") and not unit.source.holds("impl_abstract"):
            continue
        there = home._replace(unit=unit, names=_operator_names(unit))
        for node, fake in _registered_fakes(unit):
            owner = _named_operator(there, node, unit.index.module)
            if owner is not None and owner.function.qualname == operator.qualname:
                return _vectors_of(fake)
    return frozenset()


def _vectors_of(fake: FunctionRecord) -> frozenset[int]:
    """The results of a function that have a single dimension on each path."""
    names = {name: name for name in parameter_names(fake.node.args)}
    found = results_of(fake.node, names, frozenset())
    vectors = [[laid is not None and laid.is_vector for _node, laid in each] for each in found.returns]
    if not found.complete or len({len(each) for each in vectors}) != 1:
        return frozenset()
    return frozenset(at for at, each in enumerate(zip(*vectors)) if all(each))


def _by_position(unit: Unit, call: CallRecord, owner: _Owner, given: _Registration) -> Span | None:
    """Where a registration gets ``setup_context`` by position, which certainly raises an error that nothing expects."""
    made = owner.function.unit.index.functions[owner.function.qualname].node
    is_torchs = isinstance(given.operator, ast.Constant) or len(made.decorator_list) == 1
    sure = given.by_position and is_torchs and not call.expects_error
    return unit.source.span_of(given.setup) if sure and given.setup is not None else None


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


def _method(home: _Home, node: ast.expr, scope: Scope, name: str, gradient: Tri = Tri.UNKNOWN) -> Method | None:
    """The walked function that serves as backward or setup_context; None for any other expression.

    ``gradient``: whether the gradients that backward gets are certainly tensors.
    """
    definition = home.function(node, scope)
    if definition is None:
        return None
    unit, qualname = definition.unit, definition.qualname
    found = unit.slices.find_function_in_slice(qualname)
    if found is None or not _is_only_traced(unit.index.functions[qualname].node, unit.index.module):
        return None
    if unit is home.unit and scope.kind == "module" and unit.index.functions[qualname].node.lineno > node.lineno:
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
        facts = interpret(function, bound_parameters(method, "gradient", gradient), inner, home.resolver_of(unit))
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
