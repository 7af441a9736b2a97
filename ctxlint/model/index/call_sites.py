"""The calls of Functions in a file: of its own, and of those that its imports resolve to."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cached_property, partial
from itertools import takewhile
from typing import TYPE_CHECKING

from ctxlint.model.index.apply_calls import APPLIES, ApplyCall, ArgumentKind, Modified
from ctxlint.model.index.autocast_calls import may_be_under_autocast
from ctxlint.model.index.certain_calls import certain_calls
from ctxlint.model.index.file_index import FileIndex, Patch, last_name
from ctxlint.model.index.fitting_sizes import LIMITS, MAY_FIT, may_fit_sizes
from ctxlint.model.index.frozen_modules import REQUEST, Freezing
from ctxlint.model.index.inplace_calls import overwritten
from ctxlint.model.index.lasting_memory import handed_back, lasting_attributes
from ctxlint.model.index.module_parameters import TRAINS, assigned_in, creates_to_train, is_in_forward
from ctxlint.model.index.origins import origins
from ctxlint.model.index.passed_layouts import may_have_any_layout, sliced_dimensions
from ctxlint.model.index.passed_tensors import (
    NOT_TENSORS,
    OF_LAYERS,
    SAME_MEMORY,
    created_among,
    creates_parameter,
    creates_possible_leaf,
    flags_of,
    is_detached,
    is_frozen_parameter,
    makes_without_gradient,
    names_requested,
    parameters_among,
    passes_created,
    passes_detached,
    passes_leaf,
    takes_one,
    takes_requests,
    what_is_passed,
)
from ctxlint.model.index.project import Definition
from ctxlint.model.index.results import (
    class_around,
    differentiated,
    differentiated_again,
    display_before,
    function_meant,
    goes_on_with,
    is_returned,
    located,
    returned_as,
    second_derivatives,
    written,
)
from ctxlint.model.index.scopes import (
    LOCAL,
    Scope,
    bindings,
    dotted_name,
    is_on_self,
    mentions,
    resolutions,
    resolve_certainly,
)
from ctxlint.model.index.setters import sets_attribute
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in, parameter_names, positional_names
from ctxlint.torch_api.autograd import BY_OTHERS, GRADIENTS_OFF, OPERATOR_KERNELS, PROTOCOL
from ctxlint.torch_api.known_decorators import DEVICE_CHOOSING, DEVICE_KEEPING_CONTEXTS, DEVICE_KEEPING_DECORATORS
from ctxlint.torch_api.operations import INPLACE_FLAGS, TORCH_SINGLE, TUPLE_METHODS
from ctxlint.torch_api.python import BUILTIN_SCALARS, SCALAR_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    from ctxlint.model.index.file_index import CallRecord, ClassRecord
    from ctxlint.model.index.foreign_functions import Elsewhere
    from ctxlint.model.index.frozen_modules import Frozen
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.outside_facts import Deed, Target
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.results import CallPlace, Differentiation, Written

_MODULE = "torch.nn.Module"
_MOST_BASES = 8
_ABOUT_MODULES: tuple[Deed, ...] = ("derives", "makes", "keeps")
_GRADIENTS = pattern(
    r"req\w*grad|need\w*grad|grad_?(?:enabled?|mode|required)|^grad(?:s|ients?)?$|autograd|checkpoint|training|inference"
    r"|(?:^|_)(?:is|no|with|wants?|enable|disable|ignore|compute|has|use|return)_(?:\w+_)?grad",
    re.IGNORECASE,
)
"""What a condition mentions that tests whether gradients are wanted; not any buffer of gradients."""
_INFERENCE = pattern(r"inference")
_FLAG = pattern(f"^{REQUEST}$")


class CallSites:
    """Finds the calls on Functions."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        """``elsewhere`` resolves the names of the file."""
        self.source = elsewhere.unit.source
        self.index = elsewhere.unit.index
        self.functions = functions_of(elsewhere.unit, elsewhere.project)
        self.elsewhere = elsewhere
        self.requested: dict[str, frozenset[str]] = {}
        """By function, once requested, the names of which it requests gradients."""
        self.assigned: dict[str, dict[str, list[ast.expr | None]]] = {}
        """By class, once requested, what its attributes are assigned; None for anything not that simple."""
        self.memory: dict[str, frozenset[str]] = {}
        """By class, once requested, its attributes that hold the same memory in all calls."""
        self.returning: dict[str, frozenset[ast.expr]] = {}
        """By function, once requested, the calls whose result it returns as it is."""
        self.registered: dict[str, frozenset[str]] = {}
        """By class, once requested, the names of its buffers."""
        self.tested: dict[str, frozenset[str]] = {}
        """By function, once requested, the names in its tests."""
        self.freezing: dict[str, Freezing] = {}
        """By function, once requested, what it freezes, and where."""
        self.fitting: dict[str, bool] = {}
        """By outermost function or class, once requested, whether it may make sizes fit."""
        self.testing: dict[Scope, bool] = {}
        """By function, once requested, whether it tests whether gradients are wanted."""

    def collect(self) -> tuple[list[ApplyCall], dict[str, set[str]], dict[str, set[str]]]:
        """The calls in source order; by class, the protocol methods called directly, or taken, and those replaced.

        A class that is modified in another way has ``ANYTHING`` among the latter.

        ``Fn()(x)`` and ``Fn().apply(x)`` are one call.
        """
        matter = self.relevant_names()
        followed = tuple(self.is_made(patch) for part in self.index.parts for patch in part.patches if patch.by)
        depends_on: tuple[object, ...] = ()
        if self.index.parts:
            kept = self.index.made_to_last.intersection(each.node.name for each in self.index.classes.values())
            others = (self.index.stored_by_others, self.index.used_at_once, kept)
            depends_on = (matter, self.functions, self.elsewhere.depends_on, self._classes(), *others, followed)
        concerned = (
            part
            for part in self.index.parts or (self.index,)
            if part.patches or part.taken or not matter.isdisjoint(part.call_names)
        )
        parts = [self._known_part(part, matter, depends_on) for part in concerned]
        calls = [call for part in parts for call in part.calls]
        direct_calls: dict[str, set[str]] = {}
        patched: dict[str, set[str]] = {}
        for part in parts:
            for name, methods in part.direct_calls.items():
                direct_calls.setdefault(name, set()).update(methods)
            for name, methods in part.patched.items():
                patched.setdefault(name, set()).update(methods)
            self.elsewhere.targets.update(part.targets)
        within = {call.callee_span for call in calls if call.how in ("construct-call", "construct-apply")}
        whole = [call for call in calls if call.how != "construct" or call.span not in within]
        whole = [self.with_callers(call) for call in whole]
        if self.elsewhere.unit.may_use_transforms:
            whole = self.transformed(whole)
        return sorted(whole, key=lambda call: call.span), direct_calls, patched

    def with_callers(self, call: ApplyCall) -> ApplyCall:
        """A call in a function of the module, with what the calls of that function in this file pass to it."""
        name = call.inside
        records = [
            record
            for part in (self.index.parts or (self.index,) if call.handed_on or call.rest is not None else ())
            if name in part.call_names
            for record in part.calls
            if record.name == name and isinstance(record.node.func, ast.Name)
        ]
        if not records:
            return call
        if call.rest is not None and self.index.functions[name].certain:
            found_kinds = {what_is_passed(record, call.rest) for record in records}
            call = replace(call, relayed=next((each for each in NOT_TENSORS if each in found_kinds), ""))
        callers = [record.node for record in records]
        parameters = frozenset[str]().union(*map(_parameters_in, self.index.parts or (self.index,)))
        found = [at for at, position in call.handed_on if any(passes_detached(each, position) for each in callers)]
        leaves = [
            at for at, at_caller in call.handed_on if any(passes_leaf(each, at_caller, parameters) for each in callers)
        ]
        near = [(each, self.created_near(each)) for each in callers] if call.handed_on else []
        created = [
            at
            for at, at_caller in call.handed_on
            if any(passes_created(each, at_caller, names) for each, names in near)
        ]
        open_ones = records if call.returned else []
        given = {each for record in open_ones for each in self.parameters_given(record)}
        return replace(
            call,
            detached=(*call.detached, *found),
            leaves=(*call.leaves, *leaves),
            created=(*call.created, *created),
            given_parameters=tuple(at for at, position in call.handed_on if position in given),
        )

    def has_own_backward(self, function: str) -> bool:
        """Whether it is a Function of the file that defines ``backward``, so that it may be trained."""
        found = self.index.classes.get(function)
        return found is not None and any(getattr(each, "name", "") == "backward" for each in found.node.body)

    def parameters_given(self, record: CallRecord) -> list[int]:
        """The positions at which a call of a function of the module certainly passes a parameter that is trained."""
        given = takewhile(lambda each: not isinstance(each, ast.Starred), record.node.args)
        found = [at for at, each in enumerate(given) if self.is_parameter(each, record.scope)]
        meant = resolve_certainly(record.name, record.scope) if found else None
        trains = meant == LOCAL + record.name and is_in_forward(record.scope) and self.may_train(record)
        return found if trains and is_returned(self.index.body_of(record.scope), record.node) else []

    def may_train(self, record: CallRecord) -> bool:
        """Whether a call is where gradients are wanted, for all that the code shows."""
        return not (record.expects_error or self.gradients_off(record))

    def created_near(self, node: ast.Call) -> frozenset[str]:
        """The names to which the top-level statement around a call assigns what may be a new leaf."""
        statements = (each for part in self.index.parts or (self.index,) for each in part.statements)
        around = (each for each in statements if each.lineno <= node.lineno <= (each.end_lineno or each.lineno))
        statement = next(around, None)
        return created_among(nodes_in(statement)) if statement is not None else frozenset()

    def in_file(self, elsewhere: Elsewhere) -> CallSites:
        """The search in a file that this one leads to."""
        return CallSites(elsewhere)

    def transformed(self, calls: list[ApplyCall]) -> list[ApplyCall]:
        """The calls, with the transforms of ``torch.func`` that run them."""
        from ctxlint.model.index.transformed_calls import Transforms

        found = Transforms(self).transformed()
        spans = {call.span for call in found}
        return [*(call for call in calls if call.span not in spans or call.how not in APPLIES), *found]

    def _known_part(self, part: FileIndex, matter: frozenset[str], depends_on: tuple[object, ...]) -> _Found:
        """What a part of the file calls; known if it is a definition that was searched before, with the same facts.

        What other parts call a result, and what names of the module they use, does not depend on the rest of the file:
        the part would be another one. But classes may have other bases and attributes, and thus ``depends_on``.
        """
        if not isinstance(part.statements[0] if part.statements else None, _DEFINITIONS) or not self.index.parts:
            return self._part(part, matter)
        if self.source.has_cells:  # the names of lines depend on all cells
            return self._part(part, matter)
        known: list[tuple[object, _Found]] = part.notes.setdefault(CallSites, [])
        found = next((found for facts, found in known if facts == depends_on), None)
        if found is None:
            found = self._part(part, matter)
            known.insert(0, (depends_on, found))
            del known[_FACTS_KEPT:]
        return found

    def _part(self, part: FileIndex, matter: frozenset[str]) -> _Found:
        calls: list[ApplyCall] = []
        direct_calls: dict[str, set[str]] = {}
        patched: dict[str, set[str]] = {}
        before, self.elsewhere.targets = self.elsewhere.targets, {}
        for record in part.calls:
            if record.name not in matter:
                continue
            self.patches(record, patched)
            call = self.call(record)
            if call is not None:
                calls.append(call)
        for node, scope in part.taken:
            self.direct_calls(node, scope, direct_calls)
        for patch in part.patches:
            if (patch.attribute in PROTOCOL or patch.attribute in _SWITCHES) and self.is_made(patch):
                self.patch(patch, patched)
        targets, self.elsewhere.targets = self.elsewhere.targets, before
        return _Found(tuple(calls), direct_calls, patched, targets)

    def _classes(self) -> tuple[object, ...]:
        """The bases and attributes of all classes."""
        shared = self.index.of_classes
        if CallSites not in shared:
            shared[CallSites] = tuple(part.shape_of_classes for part in self.index.parts)
        found: tuple[object, ...] = shared[CallSites]
        return found

    def relevant_names(self) -> frozenset[str]:
        """The last parts of the names through which a Function may be called or modified.

        An empty name stands for callees that are not names: an instance, for example.
        """
        named = frozenset({"apply"}.union(map(last_name, self.functions), self.elsewhere.names))
        known: dict[frozenset[str], frozenset[str]] = self.index.shared.setdefault("relevant", {})
        if named not in known:
            known[named] = self.index.names_for(named).union(PROTOCOL, ("", "setattr"))
        return known[named].union(attribute for _owner, attribute, _value, _scope in self.index.attribute_aliases)

    def patches(self, record: CallRecord, patched: dict[str, set[str]]) -> None:
        """``setattr(Fn, ...)``."""
        func = record.node.func
        if isinstance(func, ast.Name) and func.id == "setattr" and record.node.args:
            name = record.node.args[1] if len(record.node.args) > 1 else None
            attribute = name.value if isinstance(name, ast.Constant) else ANYTHING
            self.patch(Patch(record.node.args[0], str(attribute), record.scope, wraps=True), patched)

    def is_made(self, patch: Patch) -> bool:
        """Whether a patch is one: the called function says so by its name, or sets the attribute, as its code shows."""
        elsewhere = self.elsewhere
        return patch.by is None or sets_attribute(patch.by, patch.scope, elsewhere.unit, elsewhere.project)

    def patch(self, patch: Patch, patched: dict[str, set[str]]) -> None:
        """Record that the class that ``owner`` may be is modified: any of the file, if ``cls.backward`` is assigned."""
        owner, attribute, scope = patch.owner, patch.attribute, patch.scope
        imported = self.elsewhere.function(owner, scope)
        found = self.classes_of(owner, scope) if imported is None else {imported}
        for name in found:
            patched.setdefault(name, set()).add(ANYTHING if patch.wraps else attribute)
        guesses = attribute in _OF_FUNCTIONS and not patch.by_call
        if not found and guesses and isinstance(owner, ast.Name) and owner.id != "self":
            bound = scope.owner(owner.id)
            if (
                bound is not None
                and bound.kind != "class"
                and all(each.kind == "other" for each in bound.names[owner.id])
                and not self.takes(owner.id, bound)
            ):
                for name in (*self.functions, *self.imported_functions(owner)):
                    patched.setdefault(name, set()).add(ANYTHING)

    def takes(self, name: str, scope: Scope) -> bool:
        """Whether a name is a parameter of the function of a scope: what it patches is known where it is called."""
        record = self.index.function_of(scope)
        params = nodes_in(record.node.args) if record is not None else ()
        return any(isinstance(each, ast.arg) and each.arg == name for each in params)

    def imported_functions(self, at: ast.expr) -> Iterator[str]:
        """The keys of the Functions that the module imports, also with their module, for code at a place."""
        module = self.index.module
        for name, bounds in module.names.items():
            if any(each.kind == "import" for each in bounds):
                node = ast.copy_location(ast.Name(name, ast.Load()), at)
                key = self.elsewhere.function(node, module)
                yield from (key,) if key is not None else self.elsewhere.functions_of_module(node, module)

    def direct_calls(self, node: ast.Attribute, scope: Scope, found: dict[str, set[str]]) -> None:
        """``Fn.backward``, ``Fn().backward``, ``super().forward``, ``cls.forward``, to call it or to hand it on.

        ``backward = staticmethod(Fn.forward)`` lets another class call it.
        """
        value = node.value
        imported = self.elsewhere.function(value, scope)
        owners = self.classes_of(value, scope) | ({imported} if imported is not None else set())
        owners |= self.classes_of_instance(value, scope)
        if owners:
            by_hand = () if node.attr != "forward" or self.inside_function(scope) else (BY_OTHERS,)
            for owner in owners:
                found.setdefault(owner, set()).update((node.attr, *by_hand))
            return
        enclosing = class_around(scope)
        if enclosing is None:
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
            for ancestor in self.elsewhere.bases(enclosing):
                found.setdefault(ancestor, set()).add(node.attr)
        elif isinstance(value, ast.Name) and value.id in ("cls", "self"):
            found.setdefault(enclosing, set()).add(node.attr)

    def class_of(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function class that an expression certainly denotes."""
        path = dotted_name(node)
        name = self.index.class_of(path, scope, node.lineno) if path is not None else None
        return name if name in self.functions else None

    def classes_of(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        """The Function classes that an expression may denote."""
        path = dotted_name(node)
        return self.functions & self.index.classes_of(path, scope) if path is not None else frozenset()

    def classes_of_instance(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        """The Functions that an expression may be an instance of: ``Fn()``, or the value of a name."""
        if isinstance(node, ast.Call):
            made = self.class_of(node.func, scope) or self.elsewhere.constructed(node.func, scope)
            return frozenset() if made is None else frozenset({made})
        values: list[ast.expr | None] = []
        if isinstance(node, ast.Name):
            owner = scope.owner(node.id)
            values = [bound.value for bound in owner.names[node.id]] if owner is not None else []
        elif is_on_self(node):
            values = self.attribute_values(node.attr, scope)
        made_by = [self.classes_of_instance(value, scope) for value in values if isinstance(value, ast.Call)]
        return frozenset[str]().union(*made_by)

    def applied(self) -> frozenset[str]:
        """The Functions whose ``apply`` the file reads, to call or to rebind it."""
        found = (self.function_of(node, scope) for node, scope in self.index.applied)
        return frozenset(name for name in found if name is not None)

    def function_of(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function that an expression certainly denotes, of this file or (its key) of another one."""
        return self.class_of(node, scope) or self.elsewhere.function(node, scope)

    def function_of_instance(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function of the instance that a name or an attribute of ``self`` certainly holds: ``fn = Fn()``."""
        if isinstance(node, ast.Name):
            values, owner = [self.bound_value(node, scope)], scope.owner(node.id)
        elif is_on_self(node):
            values, owner = self.attribute_values(node.attr, scope), scope
        else:
            return None
        made = {
            self.function_of(each.func, owner) if isinstance(each, ast.Call) and owner is not None else None
            for each in values
        }
        return made.pop() if len(made) == 1 else None

    def call(self, record: CallRecord) -> ApplyCall | None:
        """The call as one on a Function; None if it is not one."""
        node, func = record.node, record.node.func
        if record.is_hidden(func):
            return None
        if isinstance(func, ast.Attribute):
            called = func.attr == "apply" or func.attr in PROTOCOL
            owner = self.function_of(func.value, record.scope) if called else None
            if owner is None and func.attr == "apply":
                owner = self.function_of_instance(func.value, record.scope)
            if owner is not None and func.attr == "apply":
                return self.build(record, owner, "apply", func.value)
            if owner is not None:
                return self.build(record, owner, "direct", func.value, method=func.attr)
            if isinstance(func.value, ast.Call) and func.attr == "apply":
                made = self.function_of(func.value.func, record.scope)
                return self.build(record, made, "construct-apply", func.value) if made is not None else None
        elif isinstance(func, ast.Call):
            made = self.class_of(func.func, record.scope) or self.elsewhere.constructed(func.func, record.scope)
            return self.build(record, made, "construct-call", func) if made is not None else None
        owner = self.class_of(func, record.scope) or self.elsewhere.constructed(func, record.scope)
        if owner is not None:
            return self.build(record, owner, "construct", func)
        path = dotted_name(func)
        if path is None:
            return None
        owner = self.aliased(path, record.scope, node.lineno) or self.elsewhere.aliased(func, record.scope)
        owner = owner or self.applied_by_attribute(func, record.scope)
        return self.build(record, owner, "apply", func, alias=path) if owner is not None else None

    def applied_by(self, node: ast.Name, scope: Scope) -> str | None:
        """The Function whose ``apply`` a name certainly denotes, of this file or another one."""
        return self.aliased(node.id, scope, node.lineno) or self.elsewhere.aliased(node, scope)

    def aliased(self, name: str, scope: Scope, line: int, hops: int = 0) -> str | None:
        """The class whose ``apply`` a name certainly denotes for code at ``line``."""
        owner = scope.owner(name)
        found = bindings(name, owner, scope, line) if owner is not None else []
        if owner is None or len(found) != 1 or found[0].kind != "assign" or hops > 8:
            return None
        value = found[0].value
        if isinstance(value, ast.Attribute) and value.attr == "apply":
            return self.function_of(value.value.func if isinstance(value.value, ast.Call) else value.value, owner)
        return self.aliased(value.id, owner, found[0].line, hops + 1) if isinstance(value, ast.Name) else None

    def applied_by_attribute(self, node: ast.expr, scope: Scope) -> str | None:
        """The Function whose ``apply`` an attribute of ``self`` certainly is: ``self.relu = ReLU.apply``."""
        if not is_on_self(node):
            return None
        values = self.attribute_values(node.attr, scope)
        taken = {self.function_of(each.value, scope) if _is_apply(each) else None for each in values}
        return taken.pop() if len(taken) == 1 else None

    def build(
        self,
        record: CallRecord,
        owner: str,
        how: str,
        callee: ast.expr,
        method: str | None = None,
        alias: str | None = None,
    ) -> ApplyCall:
        """A call on the class ``owner``; ``callee`` is the part of it that denotes the class or an instance."""
        node = record.node
        plain: list[ArgumentKind] = []
        names: list[str] = []
        detached: list[int] = []
        handed_on: list[tuple[int, int]] = []
        literals: list[tuple[int, str]] = []
        of_module: list[int] = []
        settled: list[int] = []
        frozen: list[int] = []
        leaves: list[int] = []
        stored: list[int] = []
        any_layout: list[int] = []
        rest: int | None = None
        arguments = list(self.spread(record))
        for argument in arguments:
            if isinstance(argument, ast.Starred):
                rest = self.rest(argument.value, record.scope)
                break
            if is_detached(argument):
                detached.append(len(plain))
            elif self.is_frozen(argument, record.scope):
                frozen.append(len(plain))
            elif self.is_leaf(argument, record.scope):
                leaves.append(len(plain))
            if self.may_be_stored(argument, record.scope):
                stored.append(len(plain))
            if may_have_any_layout(argument, record.scope, self.index):
                any_layout.append(len(plain))
            position = self.parameter_handed_on(argument, record.scope)
            if position is not None:
                handed_on.append((len(plain), position))
            if isinstance(argument, ast.Constant) and _is_short(argument.value):
                literals.append((len(plain), repr(argument.value)))
            elif isinstance(argument, ast.Name) and _is_of_module(argument.id, record.scope):
                of_module.append(len(plain))
            elif isinstance(argument, ast.Name) and self.settles(argument.id, record.scope):
                settled.append(len(plain))
            plain.append(self.kind(argument, record.scope))
            names.append(_name_of(argument))
        parameters = [each for each in node.args if self.is_parameter(each, record.scope)]
        body = self.index.body_of(record.scope) if how in APPLIES and (parameters or handed_on) else ()
        returned = len(body) > 0 and not self.has_own_backward(owner) and is_returned(body, node)
        place = self.place(record) if how in APPLIES else None
        again = differentiated_again(place) if place is not None else None
        modified, at, of_same = self.result(record, place)
        lasting = self.lasting(arguments[: len(plain)], record.scope) if how in APPLIES else ()
        return ApplyCall(
            function=owner,
            how=how,
            span=self.source.span_of(node),
            positional=sum(not isinstance(argument, ast.Starred) for argument in arguments),
            starred=any(isinstance(argument, ast.Starred) for argument in arguments),
            keywords=tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None),
            double_starred=any(keyword.arg is None for keyword in node.keywords),
            arguments=tuple(plain),
            names=tuple(names),
            inner=tuple(_names_inside(arguments, record.scope)),
            detached=tuple(detached),
            handed_on=tuple(handed_on),
            literals=tuple(literals),
            defaults=tuple(self.left_to_defaults(arguments[: len(plain)], record)) if how in APPLIES else (),
            of_module=tuple(of_module),
            settled=tuple(settled),
            asked=self.asked(names, record.scope) if how in APPLIES else (),
            frozen=tuple(frozen),
            leaves=tuple(leaves),
            tracked=tuple(at for at, each in enumerate(arguments[: len(plain)]) if self.is_tracked(each, record.scope)),
            modifiable=tuple(self.leaves_given(arguments[: len(plain)], record)) if how in APPLIES else (),
            created=self.created(arguments[: len(plain)], record.scope),
            stored=tuple(stored),
            lasting=lasting,
            handed_back=len(lasting) > 0 and self.is_handed_back(node, record.scope),
            any_layout=tuple(any_layout),
            sliced=tuple(self.sliced(arguments[: len(plain)], record.scope)) if how in APPLIES else (),
            rest=rest,
            parameter=ast.unparse(parameters[0]) if returned and parameters else "",
            returned=returned,
            trained=self.trained(arguments[: len(plain)], parameters, record.scope) if parameters else (),
            enclosed=tuple(self.enclosed(arguments, record)) if how in APPLIES else (),
            incoming=self.incoming(arguments[: len(plain)], record.scope),
            origins=of_same,
            method=method,
            inside=record.scope.qualname,
            inside_function_class=self.inside_function(record.scope),
            in_module=self.is_in_module(record.scope),
            groups=tuple(self.groups_around(record)) if how in APPLIES else (),
            compiled=self.is_compiled(record.scope),
            limits_elements=LIMITS.search(self.text_around(record.scope)) is not None,
            may_fit_sizes=self.may_fit_sizes(record.scope),
            alias=alias,
            callee_span=self.source.span_of(callee),
            expects_error=record.expects_error,
            may_mean_another=_has_substitute(callee, record.scope),
            gradients_off=self.gradients_off(record) or self.without_gradients(record, arguments),
            under_no_grad=self.under_no_grad(record),
            on_device=self.may_be_on_device(record),
            uncast=tuple(self.uncast(arguments[: len(plain)], record)) if how in APPLIES else (),
            modified=modified,
            returned_by=self.returned_by(place, record.scope),
            discarded=place is not None and place.discards and record.scope.kind == "function",
            goes_on=place is not None and place.discards and self.goes_on_with(arguments, place, record.scope),
            differentiated=self.source.line_name(at.node.lineno) if at is not None else "",
            differentiated_inputs=self.requested_among(at, arguments, record.scope) if at is not None else (),
            differentiated_outputs=at.outputs if at is not None else (),
            differentiated_again=self.source.line_name(again.lineno) if again is not None else "",
            second_derivatives=tuple(
                (first, second, self.source.line_name(statement.lineno))
                for first, second, statement in (second_derivatives(place) if place is not None else ())
            ),
            line=self.source.line_name(self.source.span_of(node).start.line),
        )

    def sliced(self, arguments: list[ast.expr], scope: Scope) -> Iterator[tuple[int, int, int, str]]:
        """The positions of arguments that are parts of all dimensions but the first; see ``ApplyCall.sliced``."""
        for at, each in enumerate(arguments):
            if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Tuple):
                dimension, named = sliced_dimensions(each, lambda name: self.bound_value(name, scope))
                if dimension:
                    yield at, dimension, named, ast.unparse(each)

    def asked(self, names: list[str], scope: Scope) -> tuple[int, ...]:
        """The positions of arguments with these names whose flag decides alone about some condition around the call."""
        tests = [test for test in scope.conditions if mentions(test, _FLAG)]
        tests += [
            each.test
            for each in self.index.body_of(scope)
            if isinstance(each, ast.Assert) and mentions(each.test, _FLAG)
        ]
        decided = {name for test in tests for holds in (True, False) for name in _flags_set(test, holds=holds)}
        return tuple(at for at, name in enumerate(names) if name in decided)

    def trained(self, arguments: list[ast.expr], parameters: list[ast.expr], scope: Scope) -> tuple[int, ...]:
        """The positions of parameters that a module creates to train them, and reads only there."""
        found = [at for at, each in enumerate(arguments) if each in parameters]
        enclosing = class_around(scope)
        owner = self.index.classes.get(enclosing) if found and enclosing is not None else None
        if owner is None:
            return ()
        reads = [each.attr for each in _reads_on_self(owner.node)]
        return tuple(at for at in found if reads.count(getattr(arguments[at], "attr", "")) == 1)

    def enclosed(self, arguments: list[ast.expr], record: CallRecord) -> Iterator[tuple[int, str]]:
        """The positions of displays with a tensor that requires grad and is passed nowhere else, each with its name."""
        if any(isinstance(each, ast.Starred) for each in arguments):
            return
        for at, argument in enumerate(arguments):
            shown = self.bound_value(argument, record.scope) if isinstance(argument, ast.Name) else argument
            if not isinstance(shown, (ast.List, ast.Tuple)) or record.is_hidden(argument):
                continue
            tensors = [each for each in shown.elts if self.requires_gradient(each, record.scope)]
            others_given = [each for each in arguments if each is not argument]
            computed = (self.bound_value(each, record.scope) for each in others_given if isinstance(each, ast.Name))
            rest = (node for each in (*others_given, *computed) if each is not None for node in nodes_in(each))
            others = {_name_of(each) for each in rest} if tensors else ()
            alone = [name for name in map(_name_of, tensors) if name not in others or not name]
            if alone:
                yield at, alone[0]

    def leaves_given(self, arguments: list[ast.expr], record: CallRecord) -> Iterator[tuple[int, str]]:
        """The positions of arguments that certainly are leaves that require grad, or views of some, with their code."""
        for at, argument in enumerate(arguments):
            leaf = argument
            while isinstance(leaf, ast.Subscript) and _is_basic(leaf.slice):
                leaf = leaf.value
            if not isinstance(leaf, (ast.Name, ast.Attribute)) or record.is_hidden(leaf):
                continue
            value = self.bound_value(leaf, record.scope) if isinstance(leaf, ast.Name) else None
            made = isinstance(value, ast.Call) and (creates_parameter(value) or _is_of_torch(value))
            flags = flags_of(value) if isinstance(value, ast.Call) and made else []
            created = bool(flags) and all(isinstance(each, ast.Constant) and each.value is True for each in flags)
            if created or self.is_parameter(leaf, record.scope):
                yield at, ast.unparse(argument)

    def requires_gradient(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression certainly is a tensor that is created to require grad, or a parameter of ``self``."""
        value = self.bound_value(node, scope) if isinstance(node, ast.Name) else node
        if isinstance(value, ast.Attribute):
            return value is node and self.is_parameter(node, scope)
        if not isinstance(value, ast.Call):
            return False
        flags = flags_of(value)
        if flags or creates_parameter(value):
            return all(isinstance(each, ast.Constant) and each.value is True for each in flags)
        return isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_" and not value.args

    def incoming(self, arguments: list[ast.expr], scope: Scope) -> tuple[tuple[int, str], ...]:
        """The positions of incoming gradients, if the function around the call is the backward of a Function."""
        enclosing, _, name = scope.qualname.rpartition(".")
        if scope.kind != "function" or name not in _OF_FUNCTIONS or enclosing not in self.functions:
            return ()
        record = self.index.function_of(scope)
        parameters = record.node.args.args[1:] if record is not None else []
        taken = {each.arg for each in parameters}
        named = [(at, each.id) for at, each in enumerate(arguments) if isinstance(each, ast.Name) and each.id in taken]
        own = [(at, each) for at, each in named if len(scope.names.get(each, ())) == 1]
        return tuple((at, enclosing.rpartition(".")[2]) for at, _name in own)

    def result(
        self, record: CallRecord, place: CallPlace | None
    ) -> tuple[Modified | None, Differentiation | None, tuple[str, ...]]:
        """What the function around a call of ``apply`` modifies, and where it differentiates its result.

        And the origins of the arguments.
        """
        if place is None:
            return None, None, ()
        overwrites = partial(self.overwritten, scope=record.scope) if self.may_overwrite else None
        found = written(place, partial(self.function_meant, scope=record.scope), overwrites)
        at = differentiated(place)
        modified = self.modified(found) if found is not None else None
        return modified, at, origins(place, record.node.args)

    def place(self, record: CallRecord) -> CallPlace | None:
        """Where a call is in the function or module around it."""
        return located(self.index.body_of(record.scope), record.node)

    def function_meant(self, call: ast.Call, scope: Scope) -> ast.FunctionDef | None:
        """The method of the enclosing class, or function of the project, that a call certainly means."""
        found = function_meant(self.index, scope, call)
        path = dotted_name(call.func) if found is None and not is_on_self(call.func) else None
        name = resolve_certainly(path, scope) if path is not None else None
        home = self.elsewhere.home(name) if name is not None and not name.startswith(("torch.", LOCAL)) else None
        other = home[0].index.functions.get(home[1]) if home is not None else None
        if other is None or not other.certain or not isinstance(other.node, ast.FunctionDef):
            return found
        return other.node if not other.node.decorator_list else None

    def goes_on_with(self, arguments: list[ast.expr], place: CallPlace, scope: Scope) -> bool:
        """Whether the function around a call that is a statement of its own uses its arguments afterwards."""
        found = self.index.function_of(scope)
        return found is not None and goes_on_with(arguments, place, found.node)

    def returned_by(self, place: CallPlace | None, scope: Scope) -> str:
        """The function of the module, or method of one of its classes, that returns nothing but the result of a call.

        Empty if there is none.
        """
        returned = returned_as(place) if place is not None else None
        found = self.index.function_of(scope) if returned is not None else None
        if found is None or not found.certain or found.node.decorator_list:
            return ""
        owner, _, _method = scope.qualname.rpartition(".")
        if owner and (owner not in self.index.classes or owner in self.functions or "." in owner):
            return ""
        leaving = [each for each in nodes_in(found.node) if isinstance(each, _LEAVING)]
        return scope.qualname if leaving == [returned] else ""

    @cached_property
    def may_overwrite(self) -> bool:
        """Whether the text mentions a function or layer that overwrites its argument if a flag says so."""
        return any(map(self.source.holds, INPLACE_FLAGS))

    def overwritten(self, call: ast.Call, scope: Scope) -> ast.expr | None:
        """The tensor that a call certainly overwrites since a flag says so."""
        owner = self.index.classes.get(class_around(scope) or "") if is_on_self(call.func) else None
        keeps = owner is not None and not self.may_change_layers(owner.node)
        return overwritten(call, scope, owner.node if owner is not None and keeps else None)

    def may_change_layers(self, module: ast.ClassDef) -> bool:
        """Whether a class may replace its layers, or change their flags, other than by ``self.a = …``."""
        text = self.source.lines(module.lineno, module.end_lineno or module.lineno)
        return any(each in text for each in (".inplace", "setattr", "_module", "modules(", "children("))

    def modified(self, found: Written) -> Modified:
        """The record of a statement that modifies a result."""
        span = self.source.span_of(found.node)
        code = self.source.text[self.source.offset(span.start) : self.source.offset(span.end)]
        line = self.source.line_name(span.start.line)
        return Modified(span, code, line, found.output, found.argument, found.later, found.in_branch, found.undone)

    def gradients_off(self, record: CallRecord) -> bool:
        """Whether possibly no gradient is wanted: ``with torch.no_grad():``, below autograd, or the code checks it."""
        if any(self.turns_gradients_off(item, record.scope) for item in record.within):
            return True
        scope: Scope | None = record.scope
        while scope is not None:
            if scope.kind == "function" and self.tests_gradients(scope):
                return True
            entry = self.index.function_of(scope)
            decorators = entry.node.decorator_list if entry is not None else ()
            if any(self.turns_gradients_off(each, record.scope) for each in decorators):
                return True
            scope = scope.parent
        return False

    def without_gradients(self, record: CallRecord, arguments: list[ast.expr]) -> bool:
        """Whether no argument of a call certainly requires a gradient, or its result is detached at once."""
        entry = self.index.function_of(record.scope)
        code = [entry.node] if entry is not None else self.index.statements if record.scope.kind == "module" else []
        tensors = [each for each in arguments if not isinstance(each, ast.Constant)]
        if tensors and all(self.requires_no_gradient(each, record.scope) for each in tensors):
            return bool(code) and not any(map(self.requests, code))
        end = self.source.offset(self.source.span_of(record.node).end)
        return self.source.text.startswith((".detach()", ".data"), end)

    def requests(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.stmt) -> bool:
        """Whether code mentions ``requires_grad``."""
        code = self.source.lines(node.lineno, node.end_lineno or node.lineno)
        return _REQUEST.search(code) is not None and takes_requests(node)

    def requires_no_gradient(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an argument certainly is a tensor that requires no gradient, unless other code requests one."""
        value = self.bound_value(node, scope) if isinstance(node, ast.Name) else node
        return is_detached(node) or makes_without_gradient(value)

    def tests_gradients(self, scope: Scope) -> bool:
        """Whether a condition in a function tests whether gradients are wanted."""
        if scope not in self.testing:
            asserted = [each.test for each in self.index.body_of(scope) if isinstance(each, ast.Assert)]
            excluded = map(_denies_gradients, asserted)
            self.testing[scope] = (
                any(excluded)
                or any(mentions(test, _GRADIENTS) for test in scope.conditions)
                or any(mentions(test, TRAINS) for test in (*scope.conditions, *asserted))
            )
        return self.testing[scope]

    def under_no_grad(self, record: CallRecord) -> bool:
        """Whether certainly no gradient is recorded, by the last ``with`` item around the call."""
        meant = _entered(record.within[-1], record.scope)[1] if record.within else []
        return bool(meant) and all(each in GRADIENTS_OFF for each in meant)

    def turns_gradients_off(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a ``with`` item or a decorator disables autograd, or marks the kernel of an operator."""
        name, meant = _entered(node, scope)
        return name in OPERATOR_KERNELS or any(each in GRADIENTS_OFF for each in meant)

    def inside_function(self, scope: Scope | None) -> bool:
        """Whether a scope is in the body of a Function."""
        while scope is not None:
            if scope.kind == "class" and scope.qualname in self.functions:
                return True
            scope = scope.parent
        return False

    def spread(self, record: CallRecord) -> Iterator[ast.expr]:
        """The arguments of a call; a starred display, or a name bound to one, is replaced by its elements.

        What a comprehension or a lambda binds is a name that means nothing here.
        """
        for argument in record.node.args:
            value = argument.value if isinstance(argument, ast.Starred) else None
            if record.is_hidden(argument):
                yield argument if value is not None or is_detached(argument) else _UNKNOWN_NAME
                continue
            shown = self.display_of(value, record) if isinstance(value, ast.Name) else value
            if isinstance(shown, (ast.Tuple, ast.List)):
                yield from shown.elts
            else:
                yield argument

    def display_of(self, node: ast.Name, record: CallRecord) -> ast.expr | None:
        """The tuple or list that a name certainly holds in a call."""
        scope = record.scope
        shown = self.bound_value(node, scope)
        if isinstance(shown, ast.Tuple) or (isinstance(shown, ast.List) and self.is_only_spread(node, scope)):
            return shown
        place = self.place(record) if scope.owner(node.id) is scope else None
        return display_before(place, node.id) if place is not None else None

    def is_only_spread(self, node: ast.expr | None, scope: Scope) -> bool:
        """Whether nothing but a call that spreads it reads a name of a function: then its list stays as it is."""
        entry = self.index.function_of(scope)
        if entry is None or not isinstance(node, ast.Name) or scope.owner(node.id) is not scope:
            return False
        reads = [each for each in nodes_in(entry.node) if isinstance(each, ast.Name) and each.id == node.id]
        return [each for each in reads if isinstance(each.ctx, ast.Load)] == [node]

    def bound_value(self, node: ast.Name, scope: Scope) -> ast.expr | None:
        """What a name is assigned, if that is its only binding, or its last one before and none is conditional."""
        owner = scope.owner(node.id)
        found = owner.names[node.id] if owner is not None else []
        if len(found) > 1 and owner is scope and not any(bound.conditional for bound in found):
            found = scope.live(node.id, node.lineno)
        return found[0].value if len(found) == 1 and found[0].kind == "assign" else None

    def kind_of_name(self, node: ast.Name, scope: Scope, hops: int) -> ArgumentKind:
        """The certain kind of what a name holds."""
        value, owner = self.bound_value(node, scope), scope.owner(node.id)
        if owner is None:
            return ArgumentKind.OTHER
        return self.kind(value, owner, hops + 1) if value is not None else self.kind_of_parameter(node, owner)

    def kind_of_parameter(self, node: ast.Name, owner: Scope) -> ArgumentKind:
        """What the signature of a function shows of the parameter that a name certainly is there."""
        record = self.index.function_of(owner)
        if record is None or [each.line for each in owner.live(node.id, node.lineno)] != [record.node.lineno]:
            return ArgumentKind.OTHER
        parameters = record.node.args
        if parameters.vararg is not None and parameters.vararg.arg == node.id:
            return ArgumentKind.CONTAINER
        return _kind_by_default(_default_of(parameters, node.id))

    def left_to_defaults(self, arguments: list[ast.expr], call: CallRecord) -> Iterator[tuple[int, str]]:
        """The arguments that certainly are parameters with a number or None as default of the function around the call.

        Not those that this function tests, or of one with a decorator: what it passes may be something else then.
        """
        scope = call.scope
        record = self.index.function_of(scope)
        if record is None or record.node.decorator_list:
            return
        for at, node in enumerate(arguments):
            given = self.given_to_function(node, scope)
            if given is None or not isinstance(node, ast.Name):
                continue
            default = _default_of(given, node.id)
            plain = isinstance(default, ast.Constant) and type(default.value) in (int, float, type(None))
            if not isinstance(default, ast.Constant) or not plain or self.tests(node.id, scope):
                continue
            if default.value is not None or _only_hands_on(record.node, node.id, call.node):
                yield at, ast.unparse(default)

    def parameter_handed_on(self, node: ast.expr, scope: Scope) -> int | None:
        """The position of the parameter of a function of the module that an argument in its body certainly is."""
        given = self.given_to_function(node, scope)
        names = positional_names(given) if given is not None else []
        return names.index(node.id) if isinstance(node, ast.Name) and node.id in names else None

    def rest(self, node: ast.expr, scope: Scope) -> int | None:
        """The number of parameters before the ``*args`` of the function of the module around it, if it is these."""
        given = self.given_to_function(node, scope)
        if given is None or given.vararg is None or not isinstance(node, ast.Name) or given.vararg.arg != node.id:
            return None
        return len(given.posonlyargs) + len(given.args)

    def given_to_function(self, node: ast.expr, scope: Scope) -> ast.arguments | None:
        """The parameters of the function of the module around a name that it does not bind, except as one of them."""
        if not isinstance(node, ast.Name) or scope.kind != "function" or "." in scope.qualname:
            return None
        record = self.index.functions.get(scope.qualname)
        if record is None or scope.owner(node.id) is not scope:
            return None
        if any(each.line != record.node.lineno for each in scope.names[node.id]):
            return None  # it is bound again
        return record.node.args

    def groups_around(self, record: CallRecord) -> Iterator[tuple[str, str]]:
        """The process groups that the functions around a call get, test for nothing and that it does not pass."""
        scope: Scope | None = record.scope
        while scope is not None:
            function = self.index.function_of(scope)
            for each in parameter_names(function.node.args) if function is not None else ():
                if _GROUP.fullmatch(each) and record.scope.owner(each) is scope and len(scope.names[each]) == 1:
                    passed = any(isinstance(part, ast.Name) and part.id == each for part in nodes_in(record.node))
                    if not passed and not self.tests(each, scope):
                        yield each, scope.qualname.rpartition(".")[2]
            scope = scope.parent

    def text_around(self, scope: Scope) -> str:
        """The text of the outermost function or class around some code; none for code of the module."""
        while scope.parent is not None and scope.parent.kind != "module":
            scope = scope.parent
        record = self.index.function_of(scope) or self.index.classes.get(scope.qualname)
        if record is None:
            return ""
        return self.source.lines(record.node.lineno, record.node.end_lineno or record.node.lineno)

    def is_compiled(self, scope: Scope | None) -> bool:
        """Whether a function around some code is certainly decorated with ``torch.compile`` that is not disabled."""
        while scope is not None and scope.parent is not None:
            function = self.index.function_of(scope)
            for each in function.node.decorator_list if function is not None else ():
                path = dotted_name(each.func if isinstance(each, ast.Call) else each)
                disabled = isinstance(each, ast.Call) and any(part.arg in ("disable", None) for part in each.keywords)
                if path is not None and resolve_certainly(path, scope.parent) == "torch.compile" and not disabled:
                    return True
            scope = scope.parent
        return False

    def may_be_on_device(self, record: CallRecord) -> bool:
        """Whether a context manager, a function around a call or a decorator of that may make a GPU the current one."""
        if any(_entered(each, record.scope)[0] not in DEVICE_KEEPING_CONTEXTS for each in record.within):
            return True
        scope: Scope | None = record.scope
        while scope is not None:
            function = self.index.function_of(scope)
            for each in function.node.decorator_list if function is not None and scope.parent is not None else ():
                meant = _entered(each, scope.parent or scope)[1]
                if not meant or not DEVICE_KEEPING_DECORATORS.issuperset(meant):
                    return True
            scope = scope.parent
        return DEVICE_CHOOSING.search(self.text_around(record.scope)) is not None

    def may_fit_sizes(self, scope: Scope) -> bool:
        """Whether the outermost function or class around some code may make sizes fit, or refuse some."""
        while scope.parent is not None and scope.parent.kind != "module":
            scope = scope.parent
        record = self.index.function_of(scope) or self.index.classes.get(scope.qualname)
        if record is None:
            return False
        if scope.qualname not in self.fitting:
            text = self.source.lines(record.node.lineno, record.node.end_lineno or record.node.lineno)
            self.fitting[scope.qualname] = bool(MAY_FIT.search(text)) and may_fit_sizes(record.node)
        return self.fitting[scope.qualname]

    def uncast(self, arguments: list[ast.expr], record: CallRecord) -> Iterator[int]:
        """The positions of what an object holds in no certain dtype, or of its transpose, where autocast may be on."""
        around = self.index.function_of(record.scope) if self.source.holds("autocast") else None
        held: dict[int, ast.expr] = {}
        for at, each in enumerate(arguments if around is not None else ()):
            called = each.func if isinstance(each, ast.Call) else each
            transposed = isinstance(called, ast.Attribute) and called.attr in ("t", "T", "transpose")
            kept = called.value if isinstance(called, ast.Attribute) and transposed else each
            if is_on_self(kept):
                held[at] = kept
        if around is not None and held and may_be_under_autocast(around.node, record.node):
            for at, each in held.items():
                name = each.attr if isinstance(each, ast.Attribute) else ""
                values = self.attribute_values(name, record.scope)
                if not any("dtype" in ast.unparse(value) for value in values if value is not None):
                    yield at

    def settles(self, name: str, scope: Scope) -> bool:
        """Whether a function tests, or binds again, its parameter with None as default."""
        record = self.index.function_of(scope)
        if record is None or not _is_none_by_default(name, record.node.args):
            return False
        if any(each.line != record.node.lineno for each in scope.names.get(name, ())):
            return True
        return self.tests(name, scope)

    def tests(self, name: str, scope: Scope) -> bool:
        """Whether a function has a test with this name in it."""
        record = self.index.function_of(scope)
        if record is None:
            return False
        if scope.qualname not in self.tested:
            tests = [test for node in nodes_in(record.node) for test in _tests_in(node)]
            names = (part.id for test in tests for part in nodes_in(test) if isinstance(part, ast.Name))
            self.tested[scope.qualname] = frozenset(names)
        return name in self.tested[scope.qualname]

    def attribute_values(self, name: str, scope: Scope) -> list[ast.expr | None]:
        """What ``self.name`` is assigned in the class that encloses ``scope``."""
        enclosing = class_around(scope)
        record = self.index.classes.get(enclosing) if enclosing is not None else None
        if record is None or name not in self.index.attributes:
            return []
        if record.qualname not in self.assigned:
            self.assigned[record.qualname] = assigned_in(record.node)
        return self.assigned[record.qualname].get(name, [])

    def is_frozen(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an argument is certainly a buffer, a parameter with ``requires_grad=False``, or frozen afterwards."""
        if is_on_self(node):
            values = self.attribute_values(node.attr, scope)
            if all(map(is_frozen_parameter, values)) if values else node.attr in self.buffers(scope):
                return True
        path = dotted_name(node) if self.may_freeze else None
        name, _, parts = (path or "").partition(".")
        found = self.frozen_before(node, name, scope) if path is not None else frozenset()
        if path is None or not found or not self.index.stored_by_others.isdisjoint(parts.split(".")):
            return False
        return any(each.has(path) for each in found)

    @cached_property
    def may_freeze(self) -> bool:
        """Whether the text mentions what freezes tensors and modules."""
        return self.source.holds(REQUEST)

    def frozen_before(self, node: ast.expr, name: str, scope: Scope) -> frozenset[Frozen]:
        """What the function around an argument freezes before it: other code may thaw what an object keeps."""
        record = self.index.function_of(scope) if scope.owner(name) is scope and name != "self" else None
        if record is None:
            return frozenset()
        if scope.qualname not in self.freezing:
            freezes = self.mentions_flag(record.node) and not scope.is_of_a_test
            self.freezing[scope.qualname] = Freezing(record.node.body if freezes else ())
        return self.freezing[scope.qualname].at(name, node.lineno)

    def mentions_flag(self, node: ast.stmt) -> bool:
        """Whether the code of a class or function mentions what freezes tensors and modules."""
        return REQUEST in self.source.lines(node.lineno, node.end_lineno or node.lineno)

    def lasting(self, passed: list[ast.expr], scope: Scope) -> tuple[int, ...]:
        """The positions of arguments that are ``self.buffer``, the same memory in each call of the module."""
        on_self = {at: each.attr for at, each in enumerate(passed) if is_on_self(each)}
        owner = self.index.classes.get(class_around(scope) or "") if on_self else None
        if owner is None:
            return ()
        if owner.qualname not in self.memory:
            self.memory[owner.qualname] = self.memory_of(owner)
        lasting = self.memory[owner.qualname]
        return tuple(at for at, name in on_self.items() if name in lasting)

    def memory_of(self, owner: ClassRecord) -> frozenset[str]:
        """The attributes that hold the same memory in all calls of a module that is not made again for each."""
        name, classes = owner.node.name, [*self.module_and_bases(owner)]
        lasting = lasting_attributes(classes) - self.index.stored_by_others if classes else frozenset()
        if not lasting or self.index.has_derived(owner):
            return frozenset()
        project, path = self.elsewhere.project, self.elsewhere.unit.path
        derives, makes, keeps = (project.ask(deed, path, name) in project.changed for deed in _ABOUT_MODULES)
        at_once = makes or name in self.index.used_at_once
        kept = keeps or name in self.index.made_to_last
        return frozenset() if derives or (at_once and not kept) else lasting

    def is_handed_back(self, call: ast.Call, scope: Scope) -> bool:
        """Whether the function around a call returns its result as it is."""
        function = self.index.function_of(scope)
        if function is None:
            return False
        if scope.qualname not in self.returning:
            self.returning[scope.qualname] = handed_back(function.node)
        return call in self.returning[scope.qualname]

    def module_and_bases(self, owner: ClassRecord) -> Iterator[ast.ClassDef]:
        """A class and those that it descends from, of any file; nothing unless all of them and ``Module`` are known."""
        index, found, classes = self.index, owner, list[ast.ClassDef]()
        for _hops in range(_MOST_BASES):
            classes.append(found.node)
            path = dotted_name(found.node.bases[0]) if len(found.node.bases) == 1 else None
            name = resolve_certainly(path, found.scope) if path is not None and not found.node.keywords else None
            if name is None or name == _MODULE:
                yield from classes if name is not None else ()
                return
            base = index.classes.get(name.removeprefix(LOCAL)) if name.startswith(LOCAL) else None
            home = self.elsewhere.home(name) if base is None and index is self.index else None
            if home is not None:
                index, base = home[0].index, home[0].index.classes.get(home[1])
            if base is None:
                return
            found = base

    def is_parameter(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an argument is ``self.weight``, certainly a parameter, of a class that freezes none."""
        if not is_on_self(node):
            return False
        record = self.index.classes.get(class_around(scope) or "")
        return record is not None and creates_to_train(self.attribute_values(node.attr, scope), record.node)

    def is_in_module(self, scope: Scope) -> bool:
        """Whether the class around it has a base that is called ``Module``."""
        enclosing = class_around(scope)
        record = self.index.classes.get(enclosing) if enclosing is not None else None
        bases = record.node.bases if record is not None else []
        return any((dotted_name(base) or "").rpartition(".")[2] == "Module" for base in bases)

    def buffers(self, scope: Scope) -> frozenset[str]:
        """The names that the class that encloses ``scope`` registers buffers under."""
        enclosing = class_around(scope)
        record = self.index.classes.get(enclosing) if enclosing is not None else None
        if record is None:
            return frozenset()
        if record.qualname not in self.registered:
            calls = [each for each in nodes_in(record.node) if isinstance(each, ast.Call) and each.args]
            self.registered[record.qualname] = frozenset(
                str(each.args[0].value)
                for each in calls
                if dotted_name(each.func) == "self.register_buffer" and isinstance(each.args[0], ast.Constant)
            )
        return self.registered[record.qualname]

    def is_leaf(self, node: ast.expr, scope: Scope, hops: int = 0) -> bool:
        """Whether an argument looks like a leaf that requires grad, or a view of one: ``conv.weight``."""
        if hops > 4:
            return False
        if isinstance(node, ast.Name):
            value, owner = self.bound_value(node, scope), scope.owner(node.id)
            return value is not None and owner is not None and self.is_leaf(value, owner, hops + 1)
        if isinstance(node, ast.Subscript):
            return self.is_leaf(node.value, scope, hops + 1)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                values = self.attribute_values(node.attr, scope)
                return any(each is not None and self.is_leaf(each, scope, hops + 1) for each in values)
            return node.attr in OF_LAYERS or (node.attr in SAME_MEMORY and self.is_leaf(node.value, scope, hops + 1))
        if not isinstance(node, ast.Call):
            return False
        flags = flags_of(node)
        if flags or creates_parameter(node):
            return all(isinstance(each, ast.Constant) and each.value is True for each in flags)
        method = node.func if isinstance(node.func, ast.Attribute) else None
        if method is None or method.attr not in SAME_MEMORY:
            return method is not None and method.attr == "requires_grad_"
        return self.is_leaf(method.value, scope, hops + 1)

    def is_tracked(self, node: ast.expr, scope: Scope) -> bool:
        """Whether the caller requests a gradient of an argument, or a module of ``self`` computes it."""
        value: ast.expr | None = node
        if isinstance(node, ast.Name):
            if scope.kind != "function" or scope.owner(node.id) is not scope:
                return False
            if node.id in self.requested_in(scope):
                return True
            value = self.bound_value(node, scope)
        path = dotted_name(value.func) if isinstance(value, ast.Call) else None
        return path is not None and path.startswith("self.") and self.is_in_module(scope)

    def requested_in(self, scope: Scope) -> frozenset[str]:
        """The names of a function of which it requests gradients."""
        entry = self.index.functions.get(scope.qualname)
        if entry is None:
            return frozenset()
        if scope.qualname not in self.requested:
            code = self.source.lines(entry.node.lineno, entry.node.end_lineno or entry.node.lineno)
            self.requested[scope.qualname] = names_requested(entry.node) if _REQUEST.search(code) else frozenset()
        return self.requested[scope.qualname]

    def requested_among(self, at: Differentiation, passed: list[ast.expr], scope: Scope) -> tuple[int, ...]:
        """The positions of arguments whose own gradient the function around the call requests."""
        by_name = self.requested_in(scope)
        found = [(each, passed[each]) for each in at.requested if each < len(passed)]
        return tuple(each for each, node in found if _name_of(node) in by_name or self.is_leaf(node, scope))

    def created(self, passed: list[ast.expr], scope: Scope) -> tuple[int, ...]:
        """The positions of arguments that are, or are names that were last assigned, what may be a new leaf."""
        values = (self.bound_value(each, scope) if isinstance(each, ast.Name) else each for each in passed)
        return tuple(at for at, value in enumerate(values) if creates_possible_leaf(value))

    def may_be_stored(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an argument is, or a name in a function was assigned, what an attribute of another object holds."""
        if isinstance(node, ast.Name):
            owner = scope.owner(node.id)
            bounds = owner.names[node.id] if owner is not None and owner.kind == "function" else ()
            return any(isinstance(each.value, ast.Attribute) and _is_of_another(each.value) for each in bounds)
        return isinstance(node, ast.Attribute) and not is_detached(node) and _is_of_another(node)

    def kind(self, node: ast.expr, scope: Scope, hops: int = 0) -> ArgumentKind:
        """The certain kind of an argument."""
        if hops > 4:
            return ArgumentKind.OTHER
        if isinstance(node, ast.Name):
            return self.kind_of_name(node, scope, hops)
        if is_on_self(node):
            values = self.attribute_values(node.attr, scope)
            if node.attr in self.index.stored_by_others:
                return ArgumentKind.OTHER  # other code may set it to something else
            kinds = {ArgumentKind.OTHER if each is None else self.kind(each, scope, hops + 1) for each in values}
            if len(kinds) == 1 and kinds <= _LASTING and all(each is not None and _is_fixed(each) for each in values):
                return kinds.pop()
            return ArgumentKind.CONTAINER if kinds and kinds <= _CONTAINING else ArgumentKind.OTHER
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            node = node.operand
        if isinstance(node, ast.Constant):
            return _CONSTANTS.get(type(node.value), ArgumentKind.OTHER)
        if hops == 0 and not any(ast.iter_child_nodes(node)) and isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
            return ArgumentKind.PLAIN_CONTAINER  # what a name holds may be filled later
        if isinstance(node, (ast.List, ast.Tuple)):
            inside = {self.kind(each, scope, hops + 1) for each in node.elts}
            return ArgumentKind.PLAIN_CONTAINER if inside and inside <= _PLAIN else ArgumentKind.CONTAINER
        if isinstance(node, (ast.Dict, ast.Set, ast.ListComp, ast.DictComp)):
            return ArgumentKind.CONTAINER
        return _kind_of_result(node, scope) if isinstance(node, ast.Call) else ArgumentKind.OTHER


def _is_fixed(stored: ast.expr) -> bool:
    """Whether an attribute holds no list, which may be filled later, and no name, which means another value here."""
    return not any(isinstance(each, (ast.List, ast.Name)) for each in nodes_in(stored))


def _kind_by_default(default: ast.expr | None) -> ArgumentKind:
    """What a parameter with this default is passed."""
    if isinstance(default, ast.Tuple) and default.elts and all(isinstance(each, ast.Constant) for each in default.elts):
        return ArgumentKind.TUPLE
    kind = _BY_DEFAULT.get(type(default.value)) if isinstance(default, ast.Constant) else None
    return kind if kind is not None else ArgumentKind.OTHER


def _kind_of_result(call: ast.Call, scope: Scope) -> ArgumentKind:
    """What a call certainly returns."""
    path = dotted_name(call.func)
    found = resolutions(path, scope) if path is not None else []
    if _divides(call, found):
        return ArgumentKind.TENSORS
    if len(found) == 1 and found[0] in _CONTAINERS:
        return ArgumentKind.CONTAINER
    callee = (found[0] if len(found) == 1 else None) or ""
    space, _, name = callee.rpartition(".")
    if space == "torch":
        return ArgumentKind.TENSOR if name in TORCH_SINGLE else ArgumentKind.OTHER
    if space == "math" or callee in SCALAR_FUNCTIONS:
        return ArgumentKind.NUMBER
    sort = BUILTIN_SCALARS.get(name, "") if space == "builtins" else ""
    return _OF_SORTS.get(sort, ArgumentKind.OTHER)


def _divides(call: ast.Call, meant: list[str | None]) -> bool:
    """Whether a call returns a tuple of tensors: ``x.split(2)``, ``torch.chunk(x, 2)``; a text is split as well."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in TUPLE_METHODS:
        return False
    if any(name is not None and name != f"torch.{call.func.attr}" for name in meant):
        return False  # ``os.path.split``
    arguments = [*call.args, *(each.value for each in call.keywords)]
    numbers = [each for each in arguments if not isinstance(getattr(each, "value", 0), str)]
    return numbers == arguments and (bool(arguments) or call.func.attr != "split")


def functions_of(unit: Unit, project: Project) -> frozenset[str]:
    """The qualified names of the Functions that a file defines."""
    index = unit.index
    known: tuple[Project, frozenset[str]] | None = index.of_classes.get(functions_of)
    if known is not None and known[0] is project:
        return known[1]
    found = frozenset(name for name in index.classes if project.is_function(Definition(unit, name)))
    if index.parts:
        index.of_classes[functions_of] = project, found
    return found


class _Found(NamedTuple):
    """What a part of a file calls and modifies; ``targets`` are the Functions of other files among it."""

    calls: tuple[ApplyCall, ...]
    direct_calls: dict[str, set[str]]
    patched: dict[str, set[str]]
    targets: dict[str, Target]


_FACTS_KEPT = 3
"""A file is searched with and without the names from other files."""

_REQUEST = pattern(r"\.\s*requires_grad")

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _entered(node: ast.expr, scope: Scope) -> tuple[str, list[str | None]]:
    """The last part of the name of a ``with`` item or a decorator, called or not, and what the name may mean."""
    path = dotted_name(node.func if isinstance(node, ast.Call) else node)
    return ("", []) if path is None else (path.rpartition(".")[2], resolutions(path, scope))


def _denies_gradients(test: ast.expr) -> bool:
    """Whether an assertion says that no gradient is wanted: ``not torch.is_grad_enabled()``."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_denies_gradients, test.values))
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.Eq)):
        value = test.comparators[0]
        negated = isinstance(value, ast.Constant) and value.value is False
    if mentions(test, _INFERENCE):
        return not negated
    return negated and mentions(test, _GRADIENTS)


def _flags_set(test: ast.expr, *, holds: bool) -> Iterator[str]:
    """The names of tensors that certainly require a gradient if a test holds, or does not: ``not x.requires_grad``."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _flags_set(test.operand, holds=not holds)
    elif isinstance(test, ast.BoolOp):
        for each in test.values if isinstance(test.op, ast.And) is holds else ():
            yield from _flags_set(each, holds=holds)
    elif isinstance(test, ast.Attribute) and test.attr == REQUEST and holds:
        yield _name_of(test.value)


def _has_substitute(node: ast.expr, scope: Scope) -> bool:
    """Whether an ``except`` clause binds the name that an expression begins with to something else, not to ``None``.

    Another path to a module of the same name is the same: ``from .kernels import F``, ``from kernels import F``.
    """
    head = (dotted_name(node) or "").partition(".")[0]
    owner = scope.owner(head)
    bounds = owner.live(head) if owner is not None and len(owner.names[head]) > 1 else []
    wanted = [f".{each.target.lstrip('.')}" for each in bounds if not each.handler and each.kind == "import"]
    others = [each for each in bounds if each.handler and not each.is_none]
    return not all(
        other.kind == "import"
        and any(one.endswith(f".{other.target.lstrip('.')}") or other.target.endswith(one) for one in wanted)
        for other in others
    )


def _is_of_module(name: str, scope: Scope) -> bool:
    owner = scope.owner(name)
    return owner is not None and owner.kind == "module"


def _name_of(node: ast.AST) -> str:
    """The code of a name, or of an attribute of one that is not a view of it; empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr not in SAME_MEMORY:
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _names_inside(arguments: list[ast.expr], scope: Scope) -> Iterator[tuple[str, str]]:
    """Names that calls of torch among some arguments do not take after their first one, each with that call's name."""
    for each in arguments:
        if isinstance(each, ast.Call) and len(each.args) > 1 and takes_one(each):
            path = dotted_name(each.func)
            if path is not None and (resolve_certainly(path, scope) or "").startswith("torch."):
                yield from ((name.id, path) for name in each.args[1:] if isinstance(name, ast.Name))


def _is_of_another(node: ast.Attribute) -> bool:
    """Whether it is an attribute of an object other than ``self``, and no view of a tensor: ``node.data``."""
    of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
    return not of_self and node.attr not in SAME_MEMORY


def _is_short(value: object) -> bool:
    """Whether a constant is ``None``, a bool, or a whole number or string of usual size."""
    if isinstance(value, str):
        return len(value) < _LONGEST_LITERAL
    return value is None or (isinstance(value, int) and abs(value) < _LARGEST_LITERAL)


_LONGEST_LITERAL = 40
_LARGEST_LITERAL = 10**9


def _default_of(parameters: ast.arguments, name: str) -> ast.expr | None:
    """The default of the parameter of that name; None if it has none."""
    by_position = [*parameters.posonlyargs, *parameters.args]
    defaults = [*zip(reversed(by_position), reversed(parameters.defaults))]
    by_keyword = zip(parameters.kwonlyargs, parameters.kw_defaults)
    return next((default for each, default in (*defaults, *by_keyword) if each.arg == name), None)


def _is_none_by_default(name: str, parameters: ast.arguments) -> bool:
    """Whether a parameter has None as its default."""
    by_position = [*parameters.posonlyargs, *parameters.args]
    defaults = [*zip(reversed(by_position), reversed(parameters.defaults))]
    return any(
        each.arg == name and isinstance(default, ast.Constant) and default.value is None
        for each, default in (*defaults, *zip(parameters.kwonlyargs, parameters.kw_defaults))
    )


_GROUP = pattern(r"(?:\w+_)?group|pg")
"""The name of a process group."""


def _is_of_torch(call: ast.Call) -> bool:
    return (dotted_name(call.func) or "").startswith("torch.")


def _is_basic(index: ast.expr) -> bool:
    """Whether an index gives a view: slices and whole numbers."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(each, ast.Slice) or (isinstance(each, ast.Constant) and type(each.value) is int) for each in parts
    )


def _tests_in(node: ast.AST) -> list[ast.expr]:
    """What a node tests."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        return [node.test]
    if isinstance(node, ast.Match):
        return [node.subject, *(each.guard for each in node.cases if each.guard is not None)]
    return node.values if isinstance(node, ast.BoolOp) else []


def _parameters_in(part: FileIndex) -> frozenset[str]:
    """The attributes of ``self`` that a part of a file creates as parameters that require grad."""
    if "Parameter" not in part.call_names:
        return frozenset()
    if parameters_among not in part.notes:
        part.notes[parameters_among] = parameters_among(node for each in part.statements for node in nodes_in(each))
    found: frozenset[str] = part.notes[parameters_among]
    return found


def _reads_on_self(module: ast.ClassDef) -> Iterator[ast.Attribute]:
    """The attributes of ``self`` that a class reads, other than to create them or to ask for metadata."""
    methods = [each for each in module.body if isinstance(each, ast.FunctionDef) and not _sets_up(each.name)]
    nodes = [node for each in methods for node in nodes_in(each)]
    asked = {id(each.value) for each in nodes if isinstance(each, ast.Attribute) and each.attr in _METADATA}
    for each in nodes:
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and is_on_self(each):
            if id(each) not in asked:
                yield each


def _sets_up(method: str) -> bool:
    return method in ("extra_repr", "__repr__") or "init" in method or "reset" in method


_METADATA = frozenset(["device", "dim", "dtype", "ndim", "numel", "shape", "size"])


def _is_apply(node: ast.expr | None) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "apply"


_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom)
_OF_FUNCTIONS = ("backward", "vjp")
"""Methods that hardly any other class has, so that a variable with a new one may be a Function."""

ANYTHING = ""
"""What is replaced of a class that is modified in a way that does not say so, or that keeps the method it replaces."""

_SWITCHES = ("apply", "generate_vmap_rule", "boxed_grads_call")
"""The other attributes that change how torch calls a Function."""

_CONTAINERS = frozenset(
    [
        *(f"builtins.{name}" for name in ("dict", "list", "set", "sorted", "tuple")),
        *(f"torch.nn.{name}" for name in ("ParameterDict", "ParameterList")),
    ]
)
"""The callables that create a container."""

_LASTING = frozenset([ArgumentKind.BOOL, ArgumentKind.STRING, ArgumentKind.PLAIN_CONTAINER])
"""The kinds of what an attribute holds for as long as there is the object, if nothing else is stored there."""

_CONTAINING = frozenset([ArgumentKind.CONTAINER, ArgumentKind.TENSORS, ArgumentKind.PLAIN_CONTAINER])
_PLAIN = frozenset([ArgumentKind.NUMBER, ArgumentKind.STRING, ArgumentKind.BOOL, ArgumentKind.NONE])

_CONSTANTS: dict[type, ArgumentKind] = {
    int: ArgumentKind.NUMBER,
    float: ArgumentKind.NUMBER,
    complex: ArgumentKind.NUMBER,
    bool: ArgumentKind.BOOL,
    str: ArgumentKind.STRING,
    bytes: ArgumentKind.STRING,
    type(None): ArgumentKind.NONE,
}

_OF_SORTS = {
    "int": ArgumentKind.NUMBER,
    "float": ArgumentKind.NUMBER,
    "number": ArgumentKind.NUMBER,
    "bool": ArgumentKind.BOOL,
    "str": ArgumentKind.STRING,
}
"""The kinds of what builtins return."""

_UNKNOWN_NAME = ast.Name("", ast.Load())


def _only_hands_on(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, call: ast.Call) -> bool:
    """Whether a public function always makes a call, and does nothing else with a parameter: it refuses no value of it.

    Who calls a private one passes what it needs.
    """
    nodes = nodes_in(function)
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    if function.name.startswith("_") or len(uses) != 1 or any(isinstance(each, _REFUSING) for each in nodes):
        return False
    return any(each is call for each, _names in certain_calls(function.body, frozenset()))


_REFUSING = (ast.Assert, ast.Raise)

_BY_DEFAULT = {bool: ArgumentKind.FLAG, str: ArgumentKind.OPTION}
"""The types of defaults that are not those of tensors: callers pass a tensor where the default is a number."""
