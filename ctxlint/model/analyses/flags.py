"""What depends on ``ctx.needs_input_grad``: names computed for one input only, and how they are used."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode_tests import grad_mode_tests
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import (
    Assigned,
    GenericCall,
    MaybeNone,
    MaybeUnbound,
    Mutation,
    NeedsInputGradRead,
    NoneInside,
    Question,
    UnboundInside,
)
from ctxlint.model.interpreter.values import (
    NONE,
    Context,
    ContextAttribute,
    NeedsInputGrad,
    Parameter,
    SavedTensor,
    Scalar,
    Tri,
    View,
    before_star,
    before_views,
    is_input,
    is_none,
    leaves,
)
from ctxlint.model.syntax import (
    children,
    dotted,
    is_name,
    literal_integer,
    only_target,
    passed_for,
    single_index,
    words_of,
)
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in, positional_names
from ctxlint.torch_api.operations import GRADIENT_SWITCHES, IN_PLACE_COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextWrite, Event, Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


_NONE_STORED: Mapping[object, int] = {}


def stored_flags(fn: FunctionClass) -> dict[object, int]:
    """What holds an input's flag in backward: an attribute of ctx, ``ctx.a = x.requires_grad``, or the saved input.

    The keys are what backward writes, ``ctx.a``, and the saved tensors whose own ``requires_grad`` is the flag.
    """
    found: dict[object, int] = {}
    for at in range(len(fn.saves[0].arguments) if fn.saves else 0):
        saved = kept_value(fn, SavedTensor(at))
        if is_input(saved) and not (saved.index < len(fn.inputs) and _sets_flag(fn, fn.inputs[saved.index].name)):
            found[SavedTensor(at)] = saved.index
    for name, writes in fn.writes_by_attribute.items():
        if len(writes) > 1 or fn.escapes or (writes[0].guards and name in fn.class_attributes):
            continue  # where a test skips it, a read raises
        value, node = writes[0].value, _behind_name(fn, writes[0])
        attribute = f"{fn.reading_ctx}.{name}"
        if isinstance(value, NeedsInputGrad) and value.index is not None:
            found[attribute] = value.index
        elif isinstance(node, cst.Attribute) and node.attr.value == "requires_grad":
            found |= _flag_of_input(fn, attribute, dotted(node.value))
        elif writes[0].by and isinstance(value, Scalar) and value.sort == "bool":
            found |= _flag_of_input(fn, attribute, _asked_in_helper(fn, writes[0]))
    return found


def _behind_name(fn: FunctionClass, write: ContextWrite) -> cst.BaseExpression | None:
    """What a write stores: also what the name for it is bound to, by the only assignment to that."""
    method = next((each for each in fn.context_methods if write.node in each.parents), None)
    return method.behind_name(write.value_node) if method is not None else write.value_node


def _flag_of_input(fn: FunctionClass, attribute: str, name: str | None) -> dict[object, int]:
    """The input of which an attribute of ctx keeps the flag, if forward does not bind its name or set its flag."""
    inputs = [each.index for each in fn.inputs if each.name == name]
    bound = any(each.name == name for each in _assigned_in(fn))
    return {attribute: inputs[0]} if name and inputs and not (bound or _sets_flag(fn, name)) else {}


def _sets_flag(fn: FunctionClass, name: str) -> bool:
    """Whether a method before backward makes a tensor require a gradient, or none: ``weight.requires_grad_()``."""
    for method in fn.earlier_methods:
        called = (each.func for each in method.nodes_of(cst.Call))
        stored = (target.target for each in method.nodes_of(cst.Assign) for target in each.targets)
        for node, attribute in (
            *((each, "requires_grad_") for each in called),
            *((each, "requires_grad") for each in stored),
        ):
            if isinstance(node, cst.Attribute) and node.attr.value == attribute and is_name(node.value, name):
                return True
    return False


def _asked_in_helper(fn: FunctionClass, write: ContextWrite) -> str | None:
    """The name ``w`` in ``keep(ctx, w)``, if that function of the project does ``ctx.a = weight.requires_grad``."""
    calls = (each for method in fn.earlier_methods for each in method.facts.of(GenericCall))
    call = next((each for each in calls if each.node is write.node), None)
    definition = call.definition if call is not None else None
    record = definition.unit.index.functions.get(definition.qualname) if definition is not None else None
    if record is None or not isinstance(write.node, cst.Call) or any(each.star for each in write.node.args):
        return None
    nodes = nodes_in(record.node)
    stores = [each for each in nodes if isinstance(each, ast.Assign) and _stores(each, write.attribute)]
    asked = stores[0].value if len(stores) == 1 else None
    if not isinstance(asked, ast.Attribute) or asked.attr != "requires_grad" or not isinstance(asked.value, ast.Name):
        return None
    parameter = asked.value.id
    if any(isinstance(each, ast.Name) and each.id == parameter and isinstance(each.ctx, ast.Store) for each in nodes):
        return None
    return dotted(passed_for(write.node, positional_names(record.node.args), parameter) or write.node)


def _stores(node: ast.Assign, attribute: str) -> bool:
    """Whether a statement assigns an attribute of this name, and nothing else."""
    return len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == attribute


def _assigned_in(fn: FunctionClass) -> Iterator[Assigned]:
    for method in fn.earlier_methods:
        yield from method.facts.of(Assigned)


def flags_of(guards: Iterable[Guard], stored: Mapping[object, int] = _NONE_STORED) -> frozenset[int]:
    """The inputs whose ``needs_input_grad`` flag is certainly set under this path condition, also ``x.requires_grad``.

    ``stored`` are the flags that forward keeps, from ``stored_flags``.
    """
    guards = tuple(guards)
    names = (dotted(each.test) for each in guards if each.holds and isinstance(each.test, cst.Attribute))
    asked = (each.asks.value for each in guards if each.asks is not None and each.asks.answer and each.asks.about_flag)
    kept = (stored[each] for each in (*names, *asked) if each in stored)
    return frozenset((*_tested(guards, answer=True), *kept))


def flags_asked(guards: Iterable[Guard], stored: Mapping[object, int]) -> frozenset[int]:
    """The inputs of which a path condition certainly makes some need a gradient; empty if that is unknown."""
    guards = tuple(guards)
    return flags_of(guards, stored) or frozenset[int]().union(*(_any_flag_of(each, stored) for each in guards))


def _any_flag_of(guard: Guard, stored: Mapping[object, int]) -> frozenset[int]:
    """The inputs of which at least one needs a gradient where ``a or b`` holds, if all parts are about flags."""
    if not guard.one_of:
        return frozenset()
    alone = [flags_of([replace(guard, asks=asks)], stored) for asks in guard.one_of]
    return frozenset[int]().union(*alone) if all(alone) else frozenset()


def refused_flags(guards: Iterable[Guard], stored: Mapping[object, int] = _NONE_STORED) -> frozenset[int]:
    """The inputs whose flag is certainly not set under this path condition; ``stored`` as for ``flags_of``."""
    guards = tuple(guards)
    unset = (dotted(each.test) for each in guards if not each.holds and isinstance(each.test, cst.Attribute))
    kept = (stored[each] for each in unset if each in stored)
    return frozenset((*_tested(guards, answer=False), *kept))


def _tested(guards: Iterable[Guard], *, answer: bool) -> Iterator[int]:
    for asks in (guard.asks for guard in guards if guard.asks is not None):
        if asks.answer is answer and asks.about_flag:
            value = before_views(asks.value)
            if isinstance(value, Parameter) and value.role != "input":
                continue
            if isinstance(value, (NeedsInputGrad, Parameter)) and value.index is not None:
                yield value.index


def tested_flags(guards: Iterable[Guard]) -> bool:
    """Whether any guard on the path mentions ``needs_input_grad`` in a form that ``flags_of`` cannot interpret."""
    return any(guard.mentions("needs_input_grad") for guard in guards if guard.asks is None and not guard.has_parts)


def computed_under(
    method: Method, name: str, use: Event | None = None, stored: Mapping[object, int] = _NONE_STORED
) -> frozenset[int] | None:
    """The flags under which a name gets a value that is not None, over all its bindings, or those before ``use``.

    None if some binding depends on no single flag, or on a test of flags that cannot be interpreted. ``stored`` as for
    ``flags_of``.
    """
    found: set[int] = set()
    for flags in _flags_by_binding(method, name, use, stored):
        if flags is None:
            return None
        found |= flags
    return frozenset(found) if found else None


def _flags_by_binding(
    method: Method, name: str, use: Event | None = None, stored: Mapping[object, int] = _NONE_STORED
) -> Iterator[frozenset[int] | None]:
    """The flags that are certainly set at each binding that gives a name a value; None if none are, or unknown."""
    for each in method.facts.of(Assigned):
        if use is not None and not use.may_follow(each):
            continue
        if each.name != name or each.augmented or (each.value is not None and is_none(each.value) is Tri.YES):
            continue
        flags = flags_of(each.guards, stored)
        yield flags if flags and not tested_flags(each.guards) else None


@record
class Misplaced:
    """A gradient that is computed only for the inputs ``flags`` and returned for the input ``slot``.

    ``by_return``: whole returns depend on the flags, also those of other gradients. ``kept``: backward tests what
    forward keeps, ``ctx.a = x.requires_grad``, and not the flags themselves. ``varies``: another return has what is
    bound to the same name for another input.
    """

    node: cst.CSTNode
    name: str
    flags: frozenset[int]
    slot: int
    by_return: bool = False
    kept: bool = False
    varies: bool = False


def misplaced_gradients(fn: FunctionClass) -> list[Misplaced]:
    """The gradients that are computed under the flags of other inputs than the one they are returned for."""
    backward = fn.backward
    if backward is None or _refuses_flags(fn, backward):
        return []
    slots: dict[str, set[int]] = {}
    nodes: dict[str, cst.CSTNode] = {}
    found: list[Misplaced] = []
    stored = stored_flags(fn)
    for returned in fn.gradients:
        for position, slot in enumerate(before_star(returned.slots)):
            name = slot.node.value if isinstance(slot.node, cst.Name) else ""
            if name:
                slots.setdefault(name, set()).add(position)
                nodes.setdefault(name, returned.node)
            flag = flag_of_conditional(slot.node, backward)
            if flag is not None and flag != position:
                found.append(Misplaced(returned.node, name, frozenset({flag}), position))
    for name, positions in slots.items():
        flags = computed_under(backward, name, stored=stored)
        if flags is not None and len(positions) == 1 and not flags & positions:
            kept = stored and computed_under(backward, name) != flags
            found.append(Misplaced(nodes[name], name, flags, next(iter(positions)), kept=bool(kept)))
    several = {name for name, positions in slots.items() if len(positions) > 1}
    found.extend(_misplaced_in_returns(fn, backward, several, stored))
    found.extend(_returned_under_flags(fn, stored))
    names = input_names(fn)
    found = [each for each in found if max(each.slot, *each.flags) < len(names)]
    found = [each for each in found if not (_always_computed(backward, each, stored) or _have_the_same_flag(fn, each))]
    without = _without_gradients(fn) if found else frozenset[int]()
    return [each for each in found if each.slot not in without and not _decides_a_raise(fn, {each.slot, *each.flags})]


def _misplaced_in_returns(
    fn: FunctionClass, backward: Method, names: set[str], stored: Mapping[object, int]
) -> Iterator[Misplaced]:
    """The gradients under names that several returns have for different inputs, by what each return can get."""
    for returned in fn.gradients:
        for position, slot in enumerate(before_star(returned.slots)):
            name = slot.node.value if isinstance(slot.node, cst.Name) else ""
            flags = computed_under(backward, name, returned.event, stored) if name in names else None
            if flags is not None and position not in flags and flags == computed_under(backward, name, returned.event):
                yield Misplaced(returned.node, name, flags, position, varies=True)


def counts_from_one(fn: FunctionClass, backward: Method) -> bool:
    """Whether backward always reads the flag behind that of the last input: it raises, whatever the others are for."""
    reads = backward.facts.of(NeedsInputGradRead) if fn.variadic_inputs is None else ()
    return any(each.index == len(fn.inputs) and not (each.guards or each.tried or each.by) for each in reads)


def _refuses_flags(fn: FunctionClass, method: Method) -> bool:
    """Whether a function of the project that gets the flags may raise, for unknown combinations."""
    key = (_refuses_flags, id(method))
    if key not in fn.notes:
        calls = (call for call in method.facts.of(GenericCall) if call.definition is not None)
        fn.notes[key] = any(map(_may_raise, calls))
    return bool(fn.notes[key])


def _may_raise(call: GenericCall) -> bool:
    """Whether a function that gets the flags, or ctx to read them, has a ``raise`` or an ``assert`` of its own."""
    given = [slot.value for slot in (*call.arguments, *dict(call.keywords).values())]
    found = [leaf for value in given for leaf in leaves(value) if isinstance(leaf, (Context, NeedsInputGrad))]
    home = call.definition if found else None
    function = home.unit.index.functions.get(home.qualname) if home is not None else None
    if home is None or function is None:
        return False
    code = home.unit.source.lines(function.node.lineno, function.node.end_lineno or function.node.lineno)
    gets = "needs_input_grad" in code or any(isinstance(each, NeedsInputGrad) for each in found)
    if not gets or ("raise" not in code and "assert" not in code):
        return False
    nodes = nodes_in(function.node)
    reads = any(isinstance(node, ast.Attribute) and node.attr == "needs_input_grad" for node in nodes)
    gets = reads or any(isinstance(each, NeedsInputGrad) for each in found)
    return gets and any(isinstance(node, (ast.Raise, ast.Assert)) for node in nodes)


def _without_gradients(fn: FunctionClass) -> frozenset[int]:
    """The inputs for which all calls in view pass what certainly needs no gradient: ``x.detach()``, a buffer."""
    calls = [frozenset(call.detached) | frozenset(call.frozen) for call in fn.calls if call.applies]
    return frozenset.intersection(*calls) if calls else frozenset()


def _decides_a_raise(fn: FunctionClass, flags: Iterable[int]) -> bool:
    """Whether a method asserts something about the flag of one of some inputs, or raises depending on it."""
    return any(
        not _UNKNOWN_FLAG.isdisjoint(asked) or not asked.isdisjoint(flags)
        for method in (*fn.earlier_methods, *fn.reading_methods)
        for asked in (_flags_in(fn, method, test) for test in method.raising_tests)
    )


_UNKNOWN_FLAG = frozenset([-1])


def _flags_in(fn: FunctionClass, method: Method, test: cst.BaseExpression) -> frozenset[int]:
    """The inputs whose flag a test reads; -1 for a flag of an unknown one."""
    flags = {each.name: each.value for each in method.facts.of(Assigned) if isinstance(each.value, NeedsInputGrad)}
    inputs = {each.name: each.index for each in fn.inputs}
    found: set[int] = set()
    todo: list[cst.CSTNode] = [test]
    while todo:
        node = todo.pop()
        todo += children(node)
        if isinstance(node, cst.Name) and node.value in flags:
            index = flags[node.value].index
            found.add(-1 if index is None else index)
        elif isinstance(node, cst.Subscript) and (flag := literal_flag(node)) is not None:
            found.add(flag)
            todo.remove(node.value)
        elif isinstance(node, cst.Attribute) and node.attr.value == "requires_grad":
            found.add(inputs.get(dotted(node.value) or "", -1))
        elif isinstance(node, cst.Attribute) and node.attr.value == "needs_input_grad":
            found.add(-1)
    return frozenset(found)


def _have_the_same_flag(fn: FunctionClass, each: Misplaced) -> bool:
    """Whether every call in view computes the input from the same tensor as one whose flag is tested."""
    calls = [call for call in fn.calls if call.applies and not call.expects_error]
    return bool(calls) and all(
        each.slot < len(call.origins)
        and call.origins[each.slot] != ""
        and any(flag < len(call.origins) and call.origins[flag] == call.origins[each.slot] for flag in each.flags)
        for call in calls
    )


def _returned_under_flags(fn: FunctionClass, stored: Mapping[object, int]) -> Iterator[Misplaced]:
    """The gradients that only returns under the flags of other inputs give, while another return gives None instead.

    Names are left to ``computed_under``.
    """
    if any(not each.known or not each.exact for each in fn.gradients):
        return
    for position in range(min((len(each.slots) for each in fn.gradients), default=0)):
        computed = [each for each in fn.gradients if is_none(each.slots[position].value) is not Tri.YES]
        omitted = [each.event.guards for each in fn.gradients if each not in computed]
        flags = [flags_of(each.event.guards, stored) for each in computed]
        if not flags or not all(flags) or any(tested_flags(each.event.guards) for each in fn.gradients):
            continue
        asked = frozenset().union(*flags)
        unset = [refused_flags(guards, stored) for guards in omitted]
        if position not in asked and any(each & asked and position not in each for each in unset):
            if not isinstance(computed[0].slots[position].node, cst.Name):
                kept = any(not flags_of(each.event.guards) for each in computed)
                yield Misplaced(computed[0].node, "", asked, position, by_return=True, kept=kept)


def input_names(fn: FunctionClass) -> tuple[str, ...]:
    """The names of the inputs, also if forward takes ``*args`` and unpacks them: of several ways, by the longest.

    The first of those that ``*rest`` takes comes last.
    """
    names = tuple(each.name for each in fn.inputs)
    if fn.variadic_inputs is None or fn.forward is None:
        return names
    found = [
        _names_before_star(target)
        for node in fn.forward.nodes_of(cst.Assign)
        if isinstance(target := only_target(node), cst.Tuple) and dotted(node.value) == fn.variadic_inputs.name
    ]
    most = max(map(len, found), default=0)
    longest = [each for each in found if len(each) == most]
    return (*names, *longest[0]) if len(longest) == 1 else names


def _names_before_star(target: cst.Tuple) -> tuple[str, ...]:
    """The names to which an assignment certainly unpacks the first values."""
    values = (each.value if isinstance(each, cst.Element) else None for each in target.elements)
    plain = takewhile(lambda each: isinstance(each, cst.Name), values)
    names = [each.value for each in plain if isinstance(each, cst.Name)]
    rest = target.elements[len(names)] if len(names) < len(target.elements) else None
    last = rest.value if isinstance(rest, cst.StarredElement) and rest is target.elements[-1] else None
    return (*names, f"{last.value}[0]") if isinstance(last, cst.Name) else tuple(names)


def wrong_test(fn: FunctionClass, gradient: Misplaced) -> cst.CSTNode | None:
    """The only test under which a gradient is computed, if it tests the flag of an input that never gets any."""
    if fn.backward is None or not gradient.name or max(gradient.flags) >= len(fn.inputs):
        return None
    if any(fn.inputs[index].gradient is not Tri.NO for index in gradient.flags):
        return None
    tests = {
        id(guard.test): guard.test
        for each in fn.backward.assignments.get(gradient.name, ())
        for guard in each.guards
        if flags_of([guard])
    }
    return next(iter(tests.values())) if len(tests) == 1 else None


def is_computed_with_another(fn: FunctionClass, name: str) -> bool:
    """Whether a statement computes a gradient with another one, ``grad_x, grad_w = f(...)``, or a call fills both."""
    if fn.backward is None or not name:
        return False
    others = _other_gradients(fn, name)
    bindings = fn.backward.facts.of(Assigned)
    statements = {
        id(each.statement)
        for each in fn.backward.assignments.get(name, ())
        if each.statement is not None and flags_of(each.guards)
    }
    together = any(each.name in others and id(each.statement) in statements for each in bindings)
    calls = fn.backward.nodes_of(cst.Call) if not together else ()
    return together or any(name in (passed := _names_passed(each)) and not others.isdisjoint(passed) for each in calls)


def _names_passed(call: cst.Call) -> set[str]:
    """The names in the arguments of a call."""
    found: set[str] = set()
    pending: list[cst.CSTNode] = [each.value for each in call.args]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Name):
            found.add(node.value)
        pending += children(node)
    return found


def shares_its_test(fn: FunctionClass, name: str) -> bool:
    """Whether a gradient is computed under the same test of a flag as another one."""
    if fn.backward is None or not name:
        return False
    others = _other_gradients(fn, name)
    tests: dict[str, set[int]] = defaultdict(set)
    for each in fn.backward.facts.of(Assigned):
        tests[each.name].update(id(guard.test) for guard in each.guards if flags_of([guard]))
    return any(tests[name] & tests[other] for other in others)


def _other_gradients(fn: FunctionClass, name: str) -> set[str]:
    """The names that backward returns as gradients, without one of them."""
    return {slot.node.value for each in fn.gradients for slot in each.slots if isinstance(slot.node, cst.Name)} - {name}


def _always_computed(backward: Method, gradient: Misplaced, stored: Mapping[object, int]) -> bool:
    """Whether backward raises on every path on which a gradient's flags are not set: it never returns without it."""
    ends = [each.guards for each in backward.facts.returns]
    ends.extend(backward.facts.fall_paths)
    ways = [*_flags_by_binding(backward, gradient.name, None, stored)] if gradient.name else [gradient.flags]
    return all(any(way is not None and way <= flags_of(end, stored) for way in ways) for end in ends)


def flag_of_conditional(node: cst.BaseExpression | None, method: Method | None = None) -> int | None:
    """The flag that ``gradient if ctx.needs_input_grad[i] else None`` tests; with ``method``, also behind its names."""
    if method is not None:
        node = method.behind_name(node)
    if not isinstance(node, cst.IfExp) or not isinstance(node.orelse, cst.Name) or node.orelse.value != "None":
        return None
    test = node.test if method is None else method.behind_name(node.test)
    return literal_flag(test) if test is not None else None


def literal_flag(test: cst.BaseExpression) -> int | None:
    """``i`` of ``ctx.needs_input_grad[i]``."""
    if not isinstance(test, cst.Subscript) or not isinstance(test.value, cst.Attribute):
        return None
    index = single_index(test) if test.value.attr.value == "needs_input_grad" else None
    return literal_integer(index) if isinstance(index, cst.Integer) else None


def unbound_uses(fn: FunctionClass, method: Method) -> list[tuple[MaybeUnbound, frozenset[int]]]:
    """Reads of names that are bound only under some inputs' flags, on paths where none of these is certain.

    Each comes with those flags. Only if another input can need a gradient as well: otherwise one of them is always set.
    """
    key = (unbound_uses, id(method))
    if key not in fn.notes:
        fn.notes[key] = tuple(_unbound_uses(fn, method))
    return list(fn.notes[key])


def _unbound_uses(fn: FunctionClass, method: Method) -> list[tuple[MaybeUnbound, frozenset[int]]]:
    found: list[tuple[MaybeUnbound, frozenset[int]]] = []
    uses = method.facts.of(MaybeUnbound)
    stored = stored_flags(fn)
    for use in uses if uses and not _refuses_flags(fn, method) else ():
        every = [each for each in method.assignments.get(use.name, ()) if not each.augmented]
        bindings = [each for each in every if use.may_follow(each)]
        if (
            not bindings
            or _bound_without_event(method, use.name, len(every))
            or any(guard.is_case for guard in use.guards)
        ):
            continue
        flags = frozenset[int]()
        for each in bindings:
            mine = flags_asked(each.guards, stored)
            unclear = tested_flags(guard for guard in each.guards if not _any_flag_of(guard, stored))
            if unclear or not (mine or refused_flags(each.guards)):
                break
            flags |= mine
        else:
            together = frozenset.intersection(*(flags_of(each.guards, stored) for each in bindings))
            flags, alone = together or flags, frozenset[int]()
            if len(together) > 1 and not _are_set_together(fn, together):
                alone = together  # one of them alone makes backward run, too
            others = {each.index for each in fn.inputs if each.gradient is Tri.YES and each.index not in flags - alone}
            others -= refused_flags(use.guards) | _without_gradients(fn)
            wanted = needed_at(method, use, stored)
            bound = flags <= wanted if alone else flags & wanted
            possible = others and not bound and not wanted & refused_flags(use.guards)
            if flags and possible and _refused(bindings) <= others and not _same_test(fn, use, bindings):
                if not use.tried and not _decides_a_raise(fn, flags) and not _are_asked_by_callers(fn, flags):
                    found.append((use, flags))
    return found


def _are_asked_by_callers(fn: FunctionClass, flags: frozenset[int]) -> bool:
    """Whether each call in view is under a test of the flag of such an input: ``if x.requires_grad:``."""
    calls = [call for call in fn.calls if call.applies and not call.expects_error]
    return bool(calls) and not any(flags.isdisjoint(call.asked) for call in calls)


def _are_set_together(fn: FunctionClass, flags: frozenset[int]) -> bool:
    """Whether the calls in view compute all of some inputs from the same tensor: then one flag is set as the others."""
    calls = [call for call in fn.calls if call.applies and not call.expects_error]
    origins = [{*call.origins[at : at + 1]} for call in calls for at in flags if call.origins]
    return bool(origins) and len(set().union(*origins)) == 1 and "" not in origins[0]


def bound_only_together(fn: FunctionClass, method: Method, use: MaybeUnbound, flags: frozenset[int]) -> bool:
    """Whether a name is only bound where several flags are set at once, as under tests inside each other."""
    stored = stored_flags(fn) if len(flags) > 1 else {}
    bindings = [each for each in method.assignments.get(use.name, ()) if not each.augmented]
    return len(flags) > 1 and all(flags <= flags_of(each.guards, stored) for each in bindings if use.may_follow(each))


def unbound_inside(fn: FunctionClass, method: Method) -> Iterator[tuple[UnboundInside, frozenset[int]]]:
    """Calls of functions that read a local which they bind only where the flags of all of some inputs are set.

    In backward, only if another input can need a gradient as well.
    """
    stored = stored_flags(fn)
    for call in method.facts.of(UnboundInside):
        flags = frozenset(_flag_of(each, stored) for each in call.needed)
        unclear = tested_flags(call.guards) or flags & flags_of(call.guards, stored)
        if unclear or not all(0 <= each < len(fn.inputs) for each in flags):
            continue
        others = (each for each in fn.inputs if each.index not in flags)
        if method is fn.forward or any(each.gradient is Tri.YES for each in others):
            yield call, flags


def _flag_of(value: Value, stored: Mapping[object, int]) -> int:
    """The input whose flag decides whether a value is set, or needs a gradient; -1 if that is unknown."""
    origin = before_views(value)
    if is_input(origin):
        return origin.index
    if isinstance(value, NeedsInputGrad) and value.index is not None:
        return value.index
    return stored.get(value, -1)


@record
class WithoutGradients:
    """A read of a name that is not bound where no input needs a gradient; ``always``: nor elsewhere, by grad mode."""

    use: MaybeUnbound
    always: bool


def unbound_without_gradients(fn: FunctionClass, forward: Method) -> Iterator[WithoutGradients]:
    """Reads in forward of names that are bound only where some input needs a gradient, on paths where none has to."""
    uses = forward.facts.of(MaybeUnbound)
    mode = frozenset(id(each.node) for each in grad_mode_tests(forward.facts)) if uses else frozenset[int]()
    off = mode if "forward" not in fn.called_directly else frozenset[int]()
    for use in uses:
        every = [each for each in forward.assignments.get(use.name, ()) if not each.augmented]
        bindings = [each for each in every if use.may_follow(each)]
        if not bindings or _bound_without_event(forward, use.name, len(every)) or _needs_gradients(forward, use, mode):
            continue
        if all(_needs_gradients(forward, each, mode) for each in bindings):
            always = all(_is_skipped(forward, each, lambda part: id(part) in off) for each in bindings)
            yield WithoutGradients(use, always)


def _needs_gradients(method: Method, event: Event, mode: frozenset[int]) -> bool:
    """Whether an event only happens if some input needs a gradient; or never, by one of the tests of grad mode."""
    return _is_skipped(method, event, lambda part: id(part) in mode or _asks_for_a_gradient(method, part))


def _is_skipped(method: Method, event: Event, fails: Callable[[cst.BaseExpression], bool]) -> bool:
    """Whether an event does not happen if the conditions do not hold that are known to fail."""
    return any(each.test is not None and _is_false(method, each.test, fails, each.holds) for each in event.guards)


def _is_false(
    method: Method,
    test: cst.BaseExpression,
    fails: Callable[[cst.BaseExpression], bool],
    holds: bool = True,
    hops: int = 0,
) -> bool:
    """Whether a condition certainly is not as ``holds`` says, as some of its parts fail."""
    if hops > 8:
        return False
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_false(method, test.expression, fails, not holds, hops + 1)
    if not holds:
        return False
    if isinstance(test, cst.Name):
        bound = method.bound_to(test.value)
        return bound is not None and _is_false(method, bound, fails, hops=hops + 1)
    if isinstance(test, cst.BooleanOperation):
        sides = (_is_false(method, each, fails, hops=hops + 1) for each in (test.left, test.right))
        return any(sides) if isinstance(test.operator, cst.And) else all(sides)
    return fails(test)


def _asks_for_a_gradient(method: Method, test: cst.BaseExpression) -> bool:
    """Whether a condition only holds if some input needs a gradient."""
    if isinstance(test, cst.Attribute):
        return test.attr.value == "requires_grad" and _is_input(method, test.value)
    if isinstance(test, cst.Subscript):
        return literal_flag(test) is not None
    if not isinstance(test, cst.Call) or dotted(test.func) != "any" or len(test.args) != 1:
        return False
    items = test.args[0].value
    if isinstance(items, (cst.GeneratorExp, cst.ListComp)) and isinstance(items.elt, cst.Attribute):
        over = items.for_in.iter
        among = over.elements if isinstance(over, (cst.List, cst.Tuple)) else ()
        flags = items.elt.attr.value == "requires_grad" and dotted(items.elt.value) == dotted(items.for_in.target)
        return flags and bool(among) and all(_is_input(method, each.value) for each in among)
    return isinstance(items, cst.Attribute) and items.attr.value == "needs_input_grad"


def _is_input(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is the name of a parameter that nothing rebinds."""
    name = node.value if isinstance(node, cst.Name) else None
    return name not in method.binders and any(param.name == name for param in method.own_params)


def needed_at(method: Method, use: MaybeUnbound, stored: Mapping[object, int] = _NONE_STORED) -> frozenset[int]:
    """The inputs that certainly need a gradient where a name is read and nothing has bound it."""
    return flags_of(use.guards, stored) | _refused(method.assignments.get(use.name, ()))


def stored_only_under_others(fn: FunctionClass, method: Method, name: str, flags: frozenset[int]) -> bool:
    """Whether what ``name`` is bound to is certainly not stored by forward unless other flags than these are set."""
    for bound in method.assignments.get(name, ()):
        origin = before_views(bound.value) if bound.value is not None else None
        stored: Sequence[Event] = ()
        if isinstance(origin, SavedTensor):
            stored = fn.saves
        elif isinstance(origin, ContextAttribute):
            stored = fn.writes_by_attribute.get(origin.name, ())
        if stored and all(flags_of(each.guards) - flags for each in stored):
            return True
    return False


def saves_only_under_others(fn: FunctionClass, method: Method, name: str, flags: frozenset[int]) -> bool:
    """Whether forward saves only if other flags than these are set, and ``name`` is computed from what it saves."""
    if not fn.saves or not all(flags_of(each.guards) - flags for each in fn.saves):
        return False
    saved = {each.name for each in method.facts.of(Assigned) if isinstance(each.value, SavedTensor)}
    values = (each.value_node for each in method.assignments.get(name, ()))
    return any(value is not None and not saved.isdisjoint(words_of(value)) for value in values)


def _refused(bindings: Iterable[Assigned]) -> frozenset[int]:
    return frozenset[int]().union(*(refused_flags(each.guards) for each in bindings))


def none_uses(fn: FunctionClass, method: Method) -> list[tuple[MaybeNone | Mutation, frozenset[int]]]:
    """Uses that fail on None, of names that are None except under some inputs' flags, where none of these is set.

    Each comes with those flags. Like ``unbound_uses``, but only if no other test can decide that the use is reached.
    """
    found: list[tuple[MaybeNone | Mutation, frozenset[int]]] = []
    uses: list[MaybeNone | Mutation] = [*method.facts.of(MaybeNone), *_collectives_of_none(method)]
    params = {param.name for param in method.params}
    for use in uses if not _refuses_flags(fn, method) else ():
        bindings = [each for each in method.assignments.get(use.name or "", ()) if use.may_follow(each)]
        flags = computed_under(method, use.name or "", use)
        if flags is None or use.name in params or any(each.augmented for each in bindings):
            continue
        default = any(each.value == NONE and not each.guards and use.implies(each) for each in bindings)
        if default and _is_reached_without(fn, method, use, flags):
            found.append((use, flags))
    return found


def _is_reached_without(fn: FunctionClass, method: Method, use: Event, flags: frozenset[int]) -> bool:
    """Whether a method gets to a use if none of the inputs ``flags`` needs a gradient, whatever other tests give."""
    if method is not fn.backward:
        if use.tried or _are_always_set(fn, flags) or _decides_a_raise(fn, flags) or _requires_gradients(method):
            return False
        return all(_is_other_test(guard, flags) for guard in use.guards)
    others = any(each.gradient is Tri.YES and each.index not in flags for each in fn.inputs)
    return others and all(_is_other_flag(guard, flags) for guard in use.guards)


def nones_inside(fn: FunctionClass, method: Method) -> Iterator[tuple[MaybeNone, NoneInside, frozenset[int]]]:
    """Uses that fail on None, of what a function returns as None unless inputs need a gradient, with those inputs.

    Only if no other test can decide that the use is reached than those for other inputs.
    """
    stored = stored_flags(fn)
    for use in method.facts.of(MaybeNone) if method.facts.has(NoneInside) and not _refuses_flags(fn, method) else ():
        bound = method.only_assignment(use.name)
        if bound is None or len(method.binders.get(use.name, ())) != 1 or not use.implies(bound):
            continue
        for call in method.facts.of(NoneInside):
            flags = frozenset(-1 if isinstance(each, View) else _flag_of(each, stored) for each in call.needed)
            known = all(0 <= each < len(fn.inputs) for each in flags)
            if known and _is_element(bound, call) and _is_reached_without(fn, method, use, flags):
                yield use, call, flags


def _requires_gradients(method: Method) -> bool:
    """Whether a method makes tensors of its own that require a gradient, whatever the inputs need."""
    stored = (target.target for each in method.nodes_of(cst.Assign) for target in each.targets)
    made = any(isinstance(each, cst.Attribute) and each.attr.value == "requires_grad" for each in stored)
    return made or not GRADIENT_SWITCHES.isdisjoint(words_of(method.node))


def _is_element(bound: Assigned, call: NoneInside) -> bool:
    """Whether a name is bound to the element of the result of a call that may be None: ``a, b = f(x)``."""
    statement = bound.statement
    if not isinstance(statement, cst.Assign) or statement.value is not call.node or len(statement.targets) != 1:
        return False
    target = statement.targets[0].target
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    starred = any(isinstance(each, cst.StarredElement) for each in elements)
    return not starred and call.at < len(elements) and is_name(elements[call.at].value, bound.name)


def _are_always_set(fn: FunctionClass, flags: frozenset[int]) -> bool:
    """Whether all calls in view pass parameters that are trained for inputs."""
    calls = [call for call in fn.calls if call.applies and not call.expects_error]
    return bool(calls) and all(flags <= {*call.trained} for call in calls)


def _is_other_test(guard: Guard, flags: frozenset[int]) -> bool:
    """Whether a guard is about another input than those of ``flags``: if it needs a gradient, or is not None."""
    asks = guard.asks
    if asks is not None and asks.question is Question.IS_NONE and not asks.answer:
        return is_input(asks.value) and asks.value.index not in flags
    return guard.has_parts or _is_other_flag(guard, flags)


def _collectives_of_none(method: Method) -> list[Mutation]:
    """The torch collectives that get a name that is None on some path."""
    torch_calls = {
        id(each.node)
        for each in method.facts.of(GenericCall)
        if each.callee is not None and each.callee.startswith("torch.distributed.")
    }
    return [
        each
        for each in method.facts.of(Mutation)
        if each.how in IN_PLACE_COLLECTIVES and id(each.node) in torch_calls and isinstance(each.target_node, cst.Name)
        if each.target is not None and NONE in each.target.options()
    ]


def _is_other_flag(guard: Guard, flags: frozenset[int]) -> bool:
    """Whether a guard implies that an input outside ``flags`` needs a gradient."""
    asked = flags_of([guard])
    return bool(asked) and not asked & flags


def _bound_without_event(method: Method, name: str, known: int) -> bool:
    """Whether something without an Assigned event binds a name: an import, ``with``, ``except``, ``def``."""
    return known == 0 or name in {param.name for param in method.params}


def _same_test(fn: FunctionClass, use: Event, bindings: list[Assigned]) -> bool:
    """Whether the use is under a test with the same text as one of a binding's, or that mentions flags at all.

    An argument of the caller says nothing about flags.
    """
    tests = [guard for each in bindings for guard in each.guards if guard.holds]
    asked = [guard for guard in use.guards if guard.holds and not _is_an_argument(fn, guard.test)]
    return any(guard.reads_like(other) for guard in asked for other in tests) or tested_flags(use.guards)


def _is_an_argument(fn: FunctionClass, test: cst.BaseExpression | None) -> bool:
    """Whether a test is an attribute of ctx that keeps an input of forward as it is passed: ``ctx.gather``."""
    if not isinstance(test, cst.Attribute) or dotted(test.value) != fn.reading_ctx:
        return False
    kept = kept_value(fn, ContextAttribute(test.attr.value))
    return is_input(kept)
