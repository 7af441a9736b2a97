"""What all calls of a Function share: attributes of classes, globals, and buffers that backward returns."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.saved_state_uses import uses_of_kept
from ctxlint.model.index.scopes import LOCAL
from ctxlint.model.interpreter.events import (
    Assigned,
    ClassAttribute,
    ContextCall,
    ContextWrite,
    DataReplaced,
    Mutation,
)
from ctxlint.model.interpreter.values import (
    Choice,
    Constant,
    Fresh,
    Imported,
    Item,
    Mapping,
    Opaque,
    Scalar,
    Sequence,
    Tri,
    View,
    is_detached,
    is_input,
    is_tensor,
    storage,
    usual_storage,
)
from ctxlint.model.syntax import code_of, dotted, root_name, single_index, words_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import ContextEvent, Event
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class SharedWrite:
    """A write of forward: ``name`` is the code of its target, ``attribute`` a name for it on ctx.

    ``saves``: it keeps a tensor, which ``save_for_backward`` could take. ``lasts``: forward also uses what an earlier
    call has left there.
    """

    node: cst.CSTNode
    name: str
    attribute: str
    saves: bool = False
    lasts: bool = False


def shared_writes(fn: FunctionClass) -> Iterator[SharedWrite]:
    """The first write to each such place, unless backward sets it again: it hands it on to the call before."""
    seen: set[str] = set()
    for method in fn.own_protocol_methods:
        if method.runs_before_backward:
            for each in (*_class_writes(fn, method), *_global_writes(fn, method), *_module_writes(fn, method)):
                if each.name not in seen:
                    seen.add(each.name)
                    yield replace(each, lasts=_lasts(method, each.node))


def _class_writes(fn: FunctionClass, method: Method) -> Iterator[SharedWrite]:
    later = [each for reader in fn.reading_methods for each in reader.facts.of(ClassAttribute)]
    read = {(each.owner, each.attribute) for each in later if not each.written}
    handed_on = {(each.owner, each.attribute) for each in later if each.written and not each.cleared}
    for event in method.facts.of(ClassAttribute):
        own = event.owner == fn.qualname
        place = (event.owner, event.attribute)
        if event.written and place in read - handed_on and (own or _depends_on_the_call(event.value)):
            if not _filled_once(event, f".{event.attribute}") and not _is_always_the_same(fn, event):
                owner = fn.name if own else event.owner.rpartition(".")[2]
                name = f"{owner}.{event.attribute}"
                yield SharedWrite(event.node, name, event.attribute, _is_saveable(event.value))


def _global_writes(fn: FunctionClass, method: Method) -> Iterator[SharedWrite]:
    """``global saved`` with ``saved = x``, and ``saved["x"] = x`` for a dict of the module."""
    declared = _declared_global(method)
    for event in method.facts.of(Assigned) if declared else ():
        name = event.name
        if event.augmented or name not in declared or not any(_reads(each, name) for each in fn.reading_methods):
            continue
        if _depends_on_the_call(event.value) and not _filled_once(event, name):
            yield SharedWrite(event.node, name, name, _is_saveable(event.value))
    for item in _set_items(method):
        if any(_reads_item(each, item) for each in fn.reading_methods):
            key = cst.ensure_type(single_index(item), cst.SimpleString).evaluated_value
            name = key if isinstance(key, str) and key.isidentifier() else code_of(item.value)
            yield SharedWrite(item, code_of(item), name)


def _lasts(method: Method, written: cst.CSTNode) -> bool:
    """Whether a method reads a place where it may not have written to it: what is there is kept between calls."""
    code, root = code_of(written), root_name(written)
    named = method.named.get(root or "", ())
    uses = [each for name in named for each in (name, method.parents[name]) if code_of(each) == code]
    writes = [each for each in uses if each is written or isinstance(method.parents[each], cst.AssignTarget)]
    suites = {_suite(method, each) for each in writes}
    if None in suites or len(suites) > 1:  # on every path, or perhaps in each arm of a statement
        return False
    return any(each not in writes and suites.isdisjoint(method.above(each)) for each in uses)


def _suite(method: Method, node: cst.CSTNode) -> cst.BaseSuite | None:
    """The body of the ``if``, loop or the like that contains a node; None if there is none in the method."""
    for each in method.above(node):
        if isinstance(each, cst.BaseSuite) and not isinstance(method.parents[each], cst.With):
            return each if each is not method.node.body else None
    return None


def _module_writes(fn: FunctionClass, method: Method) -> Iterator[SharedWrite]:
    """``module.buffers = ...``, for an input ``module`` that is the calling module in each call, and is on ctx."""
    modules = {each.name for each in fn.inputs if _is_self_of_callers(fn, each.name)} - method.binders.keys()
    if not modules:
        return
    varying = {param.name for param in method.own_params}
    varying |= {each.name for each in method.facts.of(Assigned) if _depends_on_the_call(each.value)}
    for statement in method.nodes_of(cst.Assign):
        for target in (each for whole in statement.targets for each in _elements(whole.target)):
            owner = target.value if isinstance(target, cst.Attribute) else None
            name = owner.value if isinstance(owner, cst.Name) else ""
            if not isinstance(target, cst.Attribute) or name not in modules:
                continue
            if (varying - {name}).isdisjoint(words_of(statement.value)) or code_of(target) in code_of(statement.value):
                continue  # the same in each call, or a running value
            if _is_under_none_test(method, statement, target):
                continue
            places = {f"{ctx}.{kept}.{target.attr.value}" for ctx, kept in _kept_as(fn, name)}
            if any(_only_reads(each, places) for each in fn.reading_methods):
                yield SharedWrite(target, code_of(target), target.attr.value)


def _elements(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for each in target.elements:
            yield from _elements(each.value)
    else:
        yield target


def _is_self_of_callers(fn: FunctionClass, name: str) -> bool:
    """Whether an input is the module whose method applies the Function, in each call."""
    at = next((each.index for each in fn.inputs if each.name == name), None)
    if at is None:
        return False
    calls = [each for each in fn.calls if each.applies]
    own = (each.names[at : at + 1] == ("self",) and (each.parameter or each.in_module) for each in calls)
    return bool(calls) and all(own)


def _is_under_none_test(method: Method, statement: cst.CSTNode, target: cst.Attribute) -> bool:
    """Whether the attribute is set only if it is None: created once and shared on purpose."""
    tests = [each.test for each in method.above(statement) if isinstance(each, cst.If)]
    return any(f"{code_of(target)} is None" in code_of(test) for test in tests)


def _kept_as(fn: FunctionClass, name: str) -> Iterator[tuple[str, str]]:
    """The names of ctx in backward, each with an attribute that only ever holds that input."""
    for attribute, writes in fn.writes_by_attribute.items():
        values = [each.value for each in writes]
        if all(is_input(each) and each.name == name for each in values):
            yield fn.reading_ctx, attribute


def _only_reads(method: Method, places: set[str]) -> bool:
    """Whether a method reads an attribute of what ctx keeps, and never sets it to anything but None."""
    found = [each for each in method.nodes_of(cst.Attribute) if dotted(each) in places]
    for each in found:
        parent = method.parents[each]
        statement = method.parents[parent] if isinstance(parent, cst.AssignTarget) else parent
        cleared = isinstance(statement, cst.Assign) and dotted(statement.value) == "None"
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Element)) and not cleared:
            return False
    return any(not isinstance(method.parents[each], (cst.AssignTarget, cst.Del)) for each in found)


def _set_items(method: Method) -> Iterator[cst.Subscript]:
    """``saved["x"]`` in ``saved["x"] = x``, for a name of the module and something that depends on the call."""
    stored = [(node.value, each.target) for node in method.nodes_of(cst.Assign) for each in node.targets]
    items = [(value, item) for value, item in stored if isinstance(item, cst.Subscript) and _is_named(method, item)]
    if not items:
        return
    bound = (each.name for each in method.facts.of(Assigned) if _depends_on_the_call(each.value))
    varying = {param.name for param in method.own_params}.union(bound)
    yield from (item for value, item in items if not varying.isdisjoint(words_of(value)))


def _is_named(method: Method, item: cst.Subscript) -> bool:
    """Whether it is ``name["key"]``, for a name that the method does not bind."""
    of_name = isinstance(item.value, cst.Name) and not _is_local(method, item.value.value)
    return of_name and isinstance(single_index(item), cst.SimpleString)


def _reads(method: Method, name: str) -> bool:
    """Whether a method reads a name of the module, and does not bind it."""
    return name in method.facts.names_read and not _is_local(method, name)


def _is_local(method: Method, name: str) -> bool:
    return any(param.name == name for param in method.params) or name in method.binders


def _reads_item(method: Method, item: cst.Subscript) -> bool:
    """Whether a method reads an item of a dict of the module, and never sets it."""
    name, code = code_of(item.value), code_of(item)
    if not _reads(method, name):
        return False
    found = [each for use in method.named.get(name, ()) if code_of(each := method.parents[use]) == code]
    return bool(found) and not any(isinstance(method.parents[each], (cst.AssignTarget, cst.Del)) for each in found)


def _declared_global(method: Method) -> frozenset[str]:
    """The names that a method declares ``global``."""
    return frozenset(item.name.value for node in method.nodes_of(cst.Global) for item in node.names)


def _depends_on_the_call(value: Value | None) -> bool:
    """Whether a value is an input, a tensor, or a shape, or holds one: something that differs from call to call."""
    if value is None:
        return False
    if isinstance(value, (Sequence, Mapping)):
        return any(_depends_on_the_call(slot.value) for slot in value.slots)
    origin = usual_storage(value)
    of_an_input = is_input(origin)
    return of_an_input or is_tensor(value) is Tri.YES or (isinstance(value, Scalar) and value.sort == "shape")


def _is_saveable(value: Value | None) -> bool:
    return value is not None and is_tensor(value) is Tri.YES


def _filled_once(event: Event, name: str) -> bool:
    """Whether the write is under a test of the place for None: created once and shared on purpose."""
    return any(f"{name} is None" in guard.text and guard.holds for guard in event.guards)


def _is_always_the_same(fn: FunctionClass, event: ClassAttribute) -> bool:
    """Whether each call, or only the first one, sets a place to one and the same literal or object of a module."""
    facts = (each for method in fn.earlier_methods for each in method.facts.of(ClassAttribute) if each.written)
    writes = [each for each in facts if (each.owner, each.attribute) == (event.owner, event.attribute)]
    if not isinstance(event.value, (Constant, Imported)) or any(each.value != event.value for each in writes):
        return False
    return all(event.attribute in guard.words for each in writes for guard in each.guards)


@record
class SharedBuffer:
    """Memory of the class, the module or the file that each run of a method overwrites, and that outlives the run.

    ``buffer`` is its code; ``node`` is the expression that is returned or kept, ``saved`` by ``save_for_backward``.
    ``view``: it is a view of the buffer. ``unnoticed``: autograd does not notice what overwrites it, through ``.data``.
    """

    node: cst.CSTNode
    buffer: str
    saved: bool = False
    view: bool = False
    unnoticed: bool = False


class _Overwritten(NamedTuple):
    """The code of a buffer, and whether all that overwrites it goes through ``.data``."""

    buffer: str
    unnoticed: bool


def shared_gradients(fn: FunctionClass, backward: Method) -> Iterator[SharedBuffer]:
    """The gradients that are memory which every run of ``backward`` overwrites."""
    if not _overwritings(backward) or _names_dtypes(fn):
        return
    yield from _shared(fn, backward, fn.gradients)


def shared_outputs(fn: FunctionClass, forward: Method) -> Iterator[SharedBuffer]:
    """The outputs that are certainly memory which every call overwrites."""
    if _overwritings(forward):
        shared = _shared(fn, forward, fn.outputs, certainly=True)
        differentiable = not fn.context_calls("mark_non_differentiable")
        yield from (each for each in shared if differentiable or not each.view)


def _shared(
    fn: FunctionClass, method: Method, results: Iterable[Returned], *, certainly: bool = False
) -> Iterator[SharedBuffer]:
    for returned in results:
        slots = returned.slots if returned.known else ()
        whole = returned.node.value if isinstance(returned.node, cst.Return) else None
        given = [(slot.value, slot.node) for slot in slots if not slot.starred] or [(returned.value, whole)]
        for value, own in given:
            node = own or whole
            found = _overwritten(fn, method, value, returned.event, certainly=certainly)
            if found is not None and isinstance(node, _CLONEABLE) and not (certainly and is_detached(value)):
                yield SharedBuffer(node, found.buffer, view=any(True for _ in _steps(value)), unnoticed=found.unnoticed)


_CLONEABLE = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
"""The expressions that ``.clone()`` can follow."""


def shared_saves(fn: FunctionClass, forward: Method) -> Iterator[SharedBuffer]:
    """What ``forward`` certainly keeps on ctx for ``backward`` of memory which every call overwrites."""
    if not _overwritings(forward):
        return
    calls = [each for each in forward.facts.of(ContextCall) if each.method == "save_for_backward"]
    for save in calls if fn.saved_reads else ():
        for slot in save.arguments if _is_last(save, calls) and len(calls) == len(fn.saves) else ():
            found = _overwritten(fn, forward, slot.value, save, certainly=True)
            if found is not None and isinstance(slot.node, _CLONEABLE):
                yield SharedBuffer(slot.node, found.buffer, saved=True, unnoticed=found.unnoticed)
    for write in forward.facts.of(ContextWrite):
        found = _overwritten(fn, forward, write.value, write, certainly=True) if write.value is not None else None
        if found is None or not isinstance(write.value_node, _CLONEABLE):
            continue
        others = fn.writes_by_attribute.get(write.attribute, ())
        if _is_last(write, others) and uses_of_kept(fn, write.attribute).reads_values:
            yield SharedBuffer(write.value_node, found.buffer)


def _is_last(event: ContextEvent, alike: Iterable[ContextEvent]) -> bool:
    """Whether no other event of a kind may replace what this one, in the method itself, keeps."""
    return event.by == "" and not any(each is not event and (each.by or each.may_follow(event)) for each in alike)


def _overwritings(method: Method) -> list[Event]:
    written = [each for each in method.facts.of(Mutation) if each.how in operations.OVERWRITING]
    return [*written, *method.facts.of(DataReplaced)]


def _overwritten(
    fn: FunctionClass, method: Method, value: Value, event: Event, *, certainly: bool = False
) -> _Overwritten | None:
    """The memory that a value is, if each run that gets to an event has overwritten it with its own.

    ``certainly``: not what is rarely a copy, one of several, or ``.data``, which has a version counter of its own.
    """
    buffer = _place(fn, method, value) if not certainly or storage(value) is not None else ""
    steps = [*_steps(value)]
    plain = all(isinstance(step, (cst.Call, cst.Subscript)) for step in steps) and not _is_through_data(value)
    if not buffer or (certainly and not plain):
        return None
    written = [(each, each.target) for each in method.facts.of(Mutation) if event.implies(each)]
    writes = [
        each
        for each, target in written
        if target is not None
        and (not certainly or storage(target) is not None)
        and _place(fn, method, target) == buffer
        and _meets(each, target, value)
    ]
    varying = {param.name for param in method.own_params}.union(method.binders) - {buffer}
    differs = any(not varying.isdisjoint(words_of(each.statement or each.node)) for each in writes)
    if differs and any(each.how in operations.OVERWRITING for each in writes):
        return _Overwritten(buffer, all(_is_through_data(each.target) for each in writes))
    moved = [each for each in method.facts.of(DataReplaced) if event.implies(each)] if not steps else []
    exchanged = (method.around(each.node, cst.Assign) for each in moved if _place(fn, method, each.target) == buffer)
    given = (each.value for each in exchanged if each is not None)
    return _Overwritten(buffer, True) if any(not varying.isdisjoint(words_of(each)) for each in given) else None


def _is_through_data(target: Value | None) -> bool:
    """Whether a value is ``buffer.data``, a part of it, or the data of a part."""
    taken = [each.value if isinstance(each, cst.Subscript) else each for each in _steps(target)]
    by_name = isinstance(target, Imported) and target.name.endswith(".data")
    return by_name or any(isinstance(each, cst.Attribute) and each.attr.value == "data" for each in taken)


def _meets(write: Mutation, target: Value, value: Value) -> bool:
    """Whether a write modifies elements of a value: it writes the whole buffer, or both have its beginning."""
    steps = [*_steps(target)]
    if write.how == "[...] =":
        steps.append(write.node if write.by == "" else None)
    return all(map(_is_whole, steps)) or (all(map(_has_beginning, steps)) and all(map(_has_beginning, _steps(value))))


def _steps(value: Value | None) -> Iterator[object]:
    """The expressions and subscripts that take a value from its buffer; None for a step that is not known."""
    while isinstance(value, (View, Item)):
        if isinstance(value, View):
            yield value.node
        elif not isinstance(value.key, str):
            yield value.key
        value = value.of
    if isinstance(value, Choice):
        yield None
    node = value.node if isinstance(value, Opaque) else None
    while isinstance(node, cst.Subscript) or _is_data_of_part(node):
        yield node
        node = node.value


def _is_data_of_part(node: object) -> TypeGuard[cst.Attribute]:
    """``buffer[:n].data``."""
    return isinstance(node, cst.Attribute) and node.attr.value == "data" and isinstance(node.value, cst.Subscript)


def _is_whole(step: object) -> bool:
    """Whether a step leaves out no element: ``buffer.view(-1)``, ``buffer[:]``, ``buffer.data``."""
    if isinstance(step, cst.Attribute):
        return step.attr.value == "data"
    if isinstance(step, cst.Call):
        return isinstance(step.func, cst.Attribute) and step.func.attr.value in _WHOLE_VIEWS
    return isinstance(step, cst.Subscript) and all(code_of(each.slice).strip() in (":", "...") for each in step.slice)


_WHOLE_VIEWS = frozenset(
    ["contiguous", "detach", "flatten", "permute", "reshape", "squeeze", "transpose", "unsqueeze", "view"]
)


def _has_beginning(step: object) -> bool:
    """Whether a step keeps the first element: ``buffer[:n]``, ``buffer.narrow(0, 0, n)``."""
    if isinstance(step, cst.Subscript):
        return all(code_of(each.slice).replace(" ", "").startswith((":", "0:", "...")) for each in step.slice)
    narrowed = isinstance(step, cst.Call) and isinstance(step.func, cst.Attribute) and step.func.attr.value == "narrow"
    if narrowed and isinstance(step, cst.Call) and len(step.args) == 3:
        return step.args[1].keyword is None and code_of(step.args[1].value) == "0"
    return _is_whole(step)


def _place(fn: FunctionClass, method: Method, value: Value) -> str:
    """The code of what a value is at each call: an attribute of the class or its module, a global."""
    origin = _unsliced(fn, usual_storage(value))
    if isinstance(origin, Item) and isinstance(origin.of, Imported) and isinstance(origin.key, str):
        origin = Imported(f"{origin.of.name}{origin.key}")
    if isinstance(origin, Imported):
        owner, _, attribute = origin.name.removesuffix(".data").rpartition(".")
        return f"{fn.name}.{attribute}" if owner == LOCAL + fn.qualname and _is_made_once(fn, attribute) else ""
    if isinstance(origin, Fresh):
        return _lasting_global(method, origin)
    return _attribute_of_module(fn, method, origin) if origin is not None else ""


def _unsliced(fn: FunctionClass, origin: Value | None) -> Value | None:
    """What a slice such as ``Fn.buffer[:n]`` is taken from; any other value itself."""
    while isinstance(origin, Item) and _has_slices(origin.key):
        origin = origin.of
    node = origin.node if isinstance(origin, Opaque) else None
    while _has_slices(node) or _is_data_of_part(node):
        node = node.value
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return origin
    path = dotted(node) or ""
    return Imported(LOCAL + path.replace(fn.name, fn.qualname, 1)) if path.startswith(f"{fn.name}.") else Opaque(node)


def _has_slices(node: object) -> TypeGuard[cst.Subscript]:
    """Whether a subscript has slices only."""
    return isinstance(node, cst.Subscript) and all(isinstance(each.slice, cst.Slice) for each in node.slice)


def _is_made_once(fn: FunctionClass, attribute: str, without: frozenset[str] = frozenset()) -> bool:
    """Whether an attribute of the class is created with it, or where it is None, and never bound otherwise in it.

    One that is created together with others, where one of these is None, counts if that is created once itself.
    """
    events = [each for method in fn.own_protocol_methods for each in method.facts.of(ClassAttribute)]
    writes = [each for each in events if each.written and (each.owner, each.attribute) == (fn.qualname, attribute)]
    if not (writes or _is_saveable(fn.class_attributes.get(attribute))):
        return False
    for write in (each for each in writes if not _filled_once(each, f".{attribute}")):
        tested = {each[1] for guard in write.guards if guard.holds for each in _NONE_TEST.finditer(guard.text)}
        without |= {attribute}
        if not any(_is_made_once(fn, each, without) for each in tested - without):
            return False
    stores = _stores(fn)
    own = (fn.storing_ctx, fn.reading_ctx)
    return sum(times for (owner, name), times in stores.items() if name == attribute and owner not in own) == len(
        writes
    )


def _stores(fn: FunctionClass) -> Counter[tuple[str, str]]:
    """How often the text of a class stores each attribute of each name: ``Fn.buffer = ...``."""
    if _stores not in fn.notes:
        text = fn.source.lines(fn.start(fn.node.name).line, fn.span(fn.node).end.line)
        fn.notes[_stores] = Counter(_STORE.findall(_COMMENT.sub("", text)))
    found: Counter[tuple[str, str]] = fn.notes[_stores]
    return found


_STORE = pattern(r"(\w+)\.(\w+)\s*=(?!=)")
_COMMENT = pattern(r"#.*")
_NONE_TEST = pattern(r"\.(\w+) is None")


def _lasting_global(method: Method, made: Fresh) -> str:
    """The global variable that gets a tensor only where it is None."""
    declared = _declared_global(method)
    bound = [each for each in method.facts.of(Assigned) if each.name in declared] if declared else []
    names = {each.name for each in bound if each.value == made}
    return next((each.name for each in bound if {each.name} == names and _only_filled_once(bound, each.name)), "")


def _only_filled_once(bound: list[Assigned], name: str) -> bool:
    return all(_filled_once(each, name) for each in bound if each.name == name)


def _names_dtypes(fn: FunctionClass) -> bool:
    """Whether the outermost class around a Function names a dtype: torch copies a gradient that has another one."""
    line, body = fn.start(fn.node.name).line, fn.tree.body if fn.tree is not None else ()
    around = (each for each in body if each.lineno <= line <= (each.end_lineno or line))
    return any(_DTYPES.search(each.attr) for one in around for each in nodes_in(one) if isinstance(each, ast.Attribute))


_DTYPES = pattern(r"^b?float\d+$|^half$|^double$|autocast")


def _attribute_of_module(fn: FunctionClass, backward: Method, value: Value) -> str:
    """``self.buffer``, for the ``self`` of an enclosing method; empty for any other value, and for a property."""
    buffer = usual_storage(value)
    node = buffer.node if isinstance(buffer, Opaque) else None
    if not isinstance(node, cst.Attribute) or dotted(node.value) != "self" or _is_local(backward, "self"):
        return ""
    name, nodes = node.attr.value, nodes_in(fn.tree) if fn.tree is not None else ()
    is_property = any(isinstance(each, ast.FunctionDef) and each.name == name for each in nodes)
    return f"self.{name}" if "self" in fn.enclosing_names and fn.tree is not None and not is_property else ""
