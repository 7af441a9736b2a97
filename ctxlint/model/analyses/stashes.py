"""Tensors that forward stores in attributes of ctx although they could be saved."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.attribute_uses import (
    emptied,
    replaced_by_a_closure,
    without_the_data,
    written_by_backward,
)
from ctxlint.model.analyses.correlated_guards import looks_impossible
from ctxlint.model.analyses.empty_tensors import implies_empty
from ctxlint.model.analyses.inputs import given_by_a_call, gradient_of
from ctxlint.model.analyses.misplaced_gradients import is_for_another
from ctxlint.model.analyses.missing_gradients import always_none
from ctxlint.model.analyses.mutations import through_data
from ctxlint.model.analyses.outputs import (
    differentiable_outputs,
    is_returned_after,
    may_be_given_back,
    reads_gradient,
)
from ctxlint.model.analyses.saved_state_uses import KeptUses, Place, uses_of_kept
from ctxlint.model.analyses.upstream import is_call_for_zeros
from ctxlint.model.analyses.variadic_inputs import all_get_gradients, elements_named, some_get_gradients
from ctxlint.model.interpreter.events import (
    Assigned,
    ContextItemWrite,
    ContextRead,
    ContextStore,
    Escape,
    GradientFlag,
    Mutation,
    Question,
    SavedRead,
)
from ctxlint.model.interpreter.type_tests import looks_excluded_as_tensor
from ctxlint.model.interpreter.values import (
    NONE,
    Alias,
    Choice,
    ContextAttribute,
    Fresh,
    Item,
    Kind,
    Mapping,
    NeedsInputGrad,
    Parameter,
    ProjectObject,
    Sequence,
    Tri,
    Variadic,
    View,
    before_views,
    detaches,
    is_detached,
    is_input,
    is_none,
    is_tensor,
    kind_of,
    leaves,
    same_object,
    usual_storage,
)
from ctxlint.model.syntax import children, code_of, dotted, is_name, keywords_of, last_name, names_in, words_of
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api import autograd, operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


_RELEASES = pattern(r"__version__|torch_?(version|v?\d|[gl][et]_?\d)|(old|new)_?torch", re.IGNORECASE)
"""What a condition mentions that distinguishes torch releases; other versions are those of GPUs and formats."""


_CONVERSIONS = operations.CONVERSIONS | operations.FLOAT_CONVERSIONS | {"contiguous", "detach"}
"""Methods whose result is the same tensor, or another one with the same elements."""


class Held(Enum):
    """The kinds of stored tensors, the worst first."""

    OUTPUT_VIEW = "a view of an output"
    OUTPUT = "an output"
    INPUT = "an input"
    COMPUTED = "a tensor computed in forward"
    UNDIFFERENTIATED = "an input whose gradient is always None, if it is a tensor"


@record
class Stash:
    """``ctx.attribute = tensor``, where backward reads the attribute, or nothing does and the tensor is an output.

    ``contained``: a list or the like holds it; ``places`` are its positions there, None if they are unknown. ``names``
    are the inputs that are stored, if they are inputs; ``one_of``: no single one of them is stored on every path.
    ``on_some_paths``: other paths certainly or possibly store something of another kind, apart from None.
    """

    fn: FunctionClass
    write: ContextStore
    held: Held
    contained: bool
    names: tuple[str, ...] = ()
    one_of: bool = False
    places: tuple[Place | None, ...] = (None,)
    on_some_paths: bool = False

    @property
    def rests_on(self) -> tuple[Value, ...]:
        """The values that the method itself stores: those of the kind that is ``held``."""
        value = self.write.value
        if value is None or self.write.by:
            return ()
        return tuple(filter(self._is_of_this_kind, value.options())) if self.on_some_paths else (value,)

    def _is_of_this_kind(self, value: Value) -> bool:
        found = (_classified(self.fn, self.write, leaf, contained) for leaf, contained in _leaves(value))
        return any(each.held is self.held for kept in found for each in kept)

    @property
    def converted_input(self) -> str | None:
        """The input of which ``contiguous()`` or a conversion gives the computed tensor: it is that input or a copy."""
        value = self.write.value
        while isinstance(value, View):
            called = getattr(getattr(getattr(value.node, "func", None), "attr", None), "value", "")
            if called not in _CONVERSIONS and not self.write.by:
                return None
            value = value.of
        if self.held is not Held.COMPUTED or not is_input(value):
            return None
        return self.fn.inputs[value.index].name if value.index < len(self.fn.inputs) else None

    @property
    def may_be_a_number(self) -> bool:
        """Whether ``save_for_backward`` may refuse it, also if nobody calls backward: by its default, or its name."""
        return self.is_a_number_by_default or any(each.counts for each in self.inputs)

    @property
    def is_a_number_by_default(self) -> bool:
        """Whether it is an input with a default that is not a tensor."""
        defaults = [each.param.default for each in self.inputs]
        return any(each is not None and is_tensor(each) is Tri.NO and is_none(each) is Tri.NO for each in defaults)

    @property
    def only_annotated(self) -> bool:
        """Whether it is a tensor only if annotations are right: an input, or what operators compute from inputs."""
        options = self.write.value.options() if self.write.value is not None else ()
        computed = [each.node for each in options if isinstance(each, Fresh)]
        annotated = {each.name for each in self.fn.inputs if each.only_annotated}
        operators = (cst.BinaryOperation, cst.UnaryOperation)
        return any(each.only_annotated for each in self.inputs) or any(
            isinstance(node, operators) and bool(annotated) and names_in(node) <= annotated for node in computed
        )

    @property
    def inputs(self) -> list[Input]:
        """The inputs that it may be, or may be a view of."""
        options = [before_views(each) for each in self.write.value.options()] if self.write.value is not None else []
        indices = {each.index for each in options if is_input(each)}
        return [each for each in self.fn.inputs if each.index in indices]

    @property
    def may_be_scratch(self) -> bool:
        """Whether forward only allocates the memory and passes it to calls, as backward does: it may hold no result."""
        value = self.write.value
        origin = before_views(value) if value is not None else None
        called = dotted(origin.node.func) if isinstance(origin, Fresh) and isinstance(origin.node, cst.Call) else None
        if called is None or called.rpartition(".")[2] not in operations.BUFFERS or self.uses.reads_values:
            return False
        written = (each.target for method in self.fn.context_methods for each in method.facts.of(Mutation))
        return all(target is None or usual_storage(target) != origin for target in written)

    @property
    def shares_an_output(self) -> bool:
        """Whether the computed tensor and an output are one but for ``detach()``.

        Another view, as an output of a Function, cannot be modified in place.
        """
        if self.held is not Held.COMPUTED or self.write.value is None:
            return False
        origin = _same_memory(self.write.value)
        slots = ((each, slot) for each in self.fn.outputs for slot in each.slots)
        return any(
            _before_detach(option) == origin and is_tensor(option) is Tri.YES
            for returned, slot in slots
            for option in slot.value.options()
            if is_returned_after(self.fn, returned, slot, option, self.write)
        )

    @property
    def with_others(self) -> bool:
        """Whether the stored container may also hold something that is not a tensor."""
        return self.contained and any(
            is_tensor(leaf) is not Tri.YES
            for option in (self.write.value.options() if self.write.value is not None else ())
            for leaf, _ in _leaves(option)
        )

    @cached_property
    def outputs(self) -> frozenset[Value]:
        """The outputs with a gradient that are stored whichever path is taken; none if that depends on a condition."""
        value = self.write.value
        if value is None or isinstance(value, Choice) or self.write.guards:
            return frozenset()
        return frozenset(
            leaf
            for leaf, contained in _leaves(value, certainly=True)
            for found in _classified(self.fn, self.write, leaf, contained)
            if found.held is Held.OUTPUT
        )

    @cached_property
    def tensors(self) -> tuple[Value, ...]:
        """The tensors that are stored, on any path."""
        options = self.write.value.options() if self.write.value is not None else ()
        leaves_of_each = (leaf for option in options for leaf, _ in _leaves(option))
        return tuple(each for each in leaves_of_each if is_tensor(each) is not Tri.NO)

    @property
    def untracked(self) -> bool:
        """Whether it has the values of an input or output through ``.data``, whose version counter is its own."""
        tracked = self.held in (Held.INPUT, Held.UNDIFFERENTIATED) or self.shares_an_output
        return tracked and any(map(through_data, self.tensors))

    @cached_property
    def saved_as(self) -> tuple[Slot, ...]:
        """What forward saves of the same memory for each of the tensors; empty unless each is saved like that."""
        found = [_saved_view(self.fn, self.write, each) for each in self.tensors]
        slots = tuple(each for each in found if each is not None)
        return slots if len(slots) == len(found) else ()

    @property
    def originals_are_saved(self) -> bool:
        """Whether forward saves the tensors themselves of which it stores views."""
        return bool(self.saved_as) and all(slot.value == _same_memory(slot.value) for slot in self.saved_as)

    @cached_property
    def is_noticed(self) -> bool:
        """Whether torch notices modifications: what is saved has the same version counter, which unpacking checks."""
        return bool(self.saved_as) and all(_unpacks(each, self.write.attribute) for each in _readers(self.fn))

    @property
    def is_filled_later(self) -> bool:
        """Whether a copy that the device may do later fills it on the CPU: hooks may see the values too early."""
        options = self.write.value.options() if self.write.value is not None else ()
        if any(_copies_later(node) and _is_on_cpu(node) for option in options for node in _view_nodes(option)):
            return True
        kept = {
            origin for origin in map(before_views, options) if isinstance(origin, Fresh) and _is_on_cpu(origin.node)
        }
        writes = (each for method in self.fn.earlier_methods for each in method.facts.of(Mutation))
        return bool(kept) and any(
            _copies_later(each.node) and each.target is not None and before_views(each.target) in kept
            for each in writes
        )

    @cached_property
    def uses(self) -> KeptUses:
        """How backward uses the tensor."""
        return uses_of_kept(self.fn, self.write.attribute, contained=self.contained, places=self.places)


def stashes(fn: FunctionClass) -> Iterator[Stash]:
    """The tensors that are certainly stored in attributes, and certainly could be saved instead, or dropped.

    Excluding those that are saved as well, those that backward writes to, clears itself, or never reads, those that a
    nested function replaces, and those that are stored only for certain torch releases. None if the ctx is no ctx.
    """
    if _wanted not in fn.code_notes:  # cached because two rules need it
        has_ctx = fn.legacy_state is None and not _is_called_by_hand(fn)
        fn.code_notes[_wanted] = tuple(map(_WITHOUT_CLASS, _wanted(fn))) if has_ctx else ()
    read = _read_by_backward(fn)
    for parts in fn.code_notes[_wanted]:
        found = Stash(fn, *parts)
        if found.write.attribute in read or never_read(fn, found.write):
            yield found


_WITHOUT_CLASS = attrgetter("write", "held", "contained", "names", "one_of", "places", "on_some_paths")
"""The fields of a stash apart from the class: if that referred to itself, only the garbage collector would free it."""


def _is_called_by_hand(fn: FunctionClass) -> bool:
    """Whether all uses in view call forward of an instance: then the instance, which no graph keeps, is the ctx."""
    by_hand = "forward" in fn.called_directly and not fn.applied
    return by_hand and bool(fn.calls) and all(call.how == "construct" for call in fn.calls)


def _wanted(fn: FunctionClass) -> Iterator[Stash]:
    """Like ``stashes``, including outputs in attributes that only other code than the class may read."""
    readers, read = _readers(fn), _read_by_backward(fn)
    of_bases = {each for method in fn.context_methods if method.inherited for each in method.facts.of(ContextStore)}
    read_here = {each.attribute for method in readers for each in _read_directly(method)}
    exempt = written_by_backward(fn) | autograd.FUNCTION_CTX_ATTRIBUTES
    for write in _stores(fn):
        name = write.attribute
        if of_bases and write in of_bases and (name not in read_here or _is_read_in_other_file(fn, name)):
            continue  # found in the base class
        if name in exempt or write.value is None:
            continue
        if any(_RELEASES.search(word) for guard in write.guards for word in guard.words):
            continue
        if any(other.implies(write) for other in fn.writes_by_attribute.get(name, ())):
            continue  # replaced before forward ends
        if write.by and looks_impossible(fn, write):
            continue
        found = _held(fn, write)
        if found is None or (name not in read and found.held not in (Held.OUTPUT, Held.OUTPUT_VIEW)):
            continue
        if _is_found_elsewhere(fn, found) or any(emptied(each, name) for each in readers):
            continue
        if any(replaced_by_a_closure(each, name) for each in fn.context_methods):
            continue
        if _is_wanted_itself(found, readers):
            continue
        if any(implies_empty(fn, guard) for guard in write.guards):
            continue  # no memory is retained, and on this path there is nothing to compute
        yield found


def _is_read_in_other_file(fn: FunctionClass, attribute: str) -> bool:
    """Whether the class of another file that stores an attribute has a backward that reads it."""
    homes = [each.home for each in fn.context_methods if each.inherited and each.home is not None]
    for home in homes:
        record = home.unit.index.classes.get(home.qualname) if home.unit.path != fn.source.path else None
        own = [each for each in record.node.body if isinstance(each, ast.FunctionDef)] if record is not None else []
        readers = (each for each in own if each.name in ("backward", "vjp"))
        if any(
            isinstance(node, ast.Attribute) and node.attr == attribute for each in readers for node in nodes_in(each)
        ):
            return True
    return False


def _is_found_elsewhere(fn: FunctionClass, stash: Stash) -> bool:
    """Whether its list or dict loses the tensor later, or another write to the same attribute is found for it."""
    others = [each for each in _stores(fn, stash.write.attribute) if each is not stash.write]
    later = [each for each in others if isinstance(each, ContextItemWrite) and each.may_follow(stash.write)]
    if not isinstance(stash.write, ContextItemWrite):
        return any(each.implies(stash.write) and not _keeps(_held(fn, each), stash) for each in later)
    return bool(later) or any(_keeps(_held(fn, each), stash) for each in others if stash.write.implies(each))


def _keeps(other: Stash | None, stash: Stash) -> bool:
    return other is not None and other.held is stash.held and set(stash.names) <= set(other.names)


def _stores(fn: FunctionClass, attribute: str | None = None) -> list[ContextStore]:
    stores = [each for method in fn.context_methods for each in method.facts.of(ContextStore)]
    return [each for each in stores if attribute in (None, each.attribute)]


def _readers(fn: FunctionClass) -> tuple[Method, ...]:
    return tuple(method for method in (fn.methods.get("backward"), fn.methods.get("vjp")) if method is not None)


def _read_by_backward(fn: FunctionClass) -> set[str]:
    """The attributes of ctx that backward or vjp reads, other than in its own state."""
    return {each.attribute for method in _readers(fn) for each in method.facts.of(ContextRead) if not each.own}


def _is_wanted_itself(stash: Stash, readers: Iterable[Method]) -> bool:
    """Whether backward needs this very object, not its values: what depends on it, or to pass it on to be kept.

    Where forward saves its memory as another view, that is for the values; what gets the attribute may want the object.
    """
    if not stash.contained and any(without_the_data(each, stash.write.attribute) for each in readers):
        return True
    if stash.held is not Held.INPUT or stash.uses.reads_values:
        return False
    if stash.uses.of_this_object or stash.uses.as_target:
        return True
    return stash.is_noticed and not stash.uses.only_metadata and not stash.untracked


def _read_directly(method: Method) -> Iterator[ContextRead]:
    """The reads in the class's own code; not those in a base class, or in a method of it that is called."""
    return (each for each in method.facts.of(ContextRead) if not method.inherited and not each.by)


def never_read(fn: FunctionClass, write: ContextStore) -> bool:
    """Whether nothing in the file reads the attribute after forward: it keeps memory alive for nothing."""
    if fn.backward is None or fn.escapes or not isinstance(write.node, cst.Attribute):
        return False
    before = sum(len(method.context_attributes.get(write.attribute, ())) for method in fn.context_methods)
    return fn.source.count_as_attribute(write.attribute) == before


def _stored(fn: FunctionClass, write: ContextStore) -> list[list[_Kept]]:
    """The tensors that one assignment stores, for each alternative of its value; empty if one of them is unknown."""
    found: list[list[_Kept]] = []
    options = _likely(write.value) if write.value is not None else ()
    for option in (part for each in options for part in _alternatives(fn, write, each)):
        contents = [
            replace(each, place=place)
            for place, part in _parts(option)
            for leaf, contained in _leaves(part, contained=part is not option)
            for each in _classified(fn, write, leaf, contained)
        ]
        if not contents and isinstance(option, Sequence) and _is_returned_whole(fn, write, option):
            contents = [_Kept(Held.OUTPUT, contained=True)]
        rest = _of_variadic(option)
        if not contents and rest is not None and _is_stash_of(fn, write, option):
            contents = [_Kept(Held.INPUT, contained=True, name=f"*{rest.name}")]
        if not contents and option != NONE and is_tensor(option) is not Tri.YES:
            return []
        if contents or option != NONE:
            found.append(contents)
    return found


def _likely(value: Value) -> list[Value]:
    """The alternatives of a value, if there are others without rows that a tensor would have been unpacked into.

    Of ``t, y = solve(x)`` where ``solve`` returns one tensor on another path.
    """
    options = [*value.options()]
    return [each for each in options if not _is_row(each)] or options


def _is_row(value: Value) -> bool:
    """Whether a value is a row of what certainly is a tensor, which a statement unpacks."""
    return isinstance(value, Item) and isinstance(value.key, int) and is_tensor(value.of) is Tri.YES


def _alternatives(fn: FunctionClass, write: ContextStore, value: Value) -> list[Value]:
    """The views of each alternative, if a value is a view of one of several, among them an input."""
    found = _views_of_each(value)
    if found == [value] or any(_classified(fn, write, value, contained=False)):
        return [value]
    if any(is_tensor(each) is not Tri.YES for each in map(before_views, found) if not isinstance(each, Parameter)):
        return [value]  # perhaps the input only if a loop never runs
    classified = (each for part in found for each in _classified(fn, write, part, contained=False))
    return found if any(each.held is Held.INPUT for each in classified) else [value]


def _views_of_each(value: Value) -> list[Value]:
    if not isinstance(value, View):
        return [option for option in value.options() if option != NONE]
    return [replace(value, of=each) for each in _views_of_each(value.of)]


def _is_stash_of(fn: FunctionClass, write: ContextStore, variadic: Value) -> bool:
    """Whether ``*args``, or what consists of its elements, certainly holds tensors that could be saved instead."""
    if isinstance(variadic, Sequence) and any(_starts_a_graph(fn, write, slot.value) for slot in variadic.slots):
        return False
    if all_get_gradients(fn):
        return uses_of_kept(fn, write.attribute, contained=True, places=(None,)).reads_values
    return _are_detached(fn, write.attribute) and some_get_gradients(fn)


def _of_variadic(value: Value) -> Variadic | None:
    """The ``*args`` of forward that a value is, or consists of: ``args``, ``list(args[:n])``."""
    if isinstance(value, Sequence) and len(value.slots) == 1 and value.slots[0].starred:
        value = _same_memory(value.slots[0].value)
    if isinstance(value, Item):
        value = value.of
    return value if isinstance(value, Variadic) and value.role == "input" else None


def _are_detached(fn: FunctionClass, attribute: str) -> bool:
    """Whether backward detaches each element of ``ctx.attribute``: ``[x.detach() for x in ctx.inputs]``."""
    for method in fn.reading_methods:
        for node in method.context_attributes.get(attribute, ()):
            loop, name = _element_in_loop(method, node)
            if loop is not None and name is not None and _detaches(loop, name):
                return True
    return False


def _element_in_loop(method: Method, node: cst.CSTNode) -> tuple[cst.CSTNode | None, str | None]:
    """The loop over the container at a node, and the name of the element: ``for x in xs``, or ``x = xs[i]`` in it."""
    clause = method.parents[node]
    if isinstance(clause, (cst.For, cst.CompFor)) and clause.iter is node:
        return clause if isinstance(clause, cst.For) else method.parents[clause], dotted(clause.target)
    bound = method.parents[clause] if isinstance(clause, cst.Subscript) and clause.value is node else None
    loop = method.around(clause, cst.For)
    if not isinstance(loop, cst.For) or not isinstance(bound, cst.Assign) or len(bound.targets) > 1:
        return None, None
    container = code_of(node)
    counted = code_of(loop.iter) == f"range(len({container}))"
    taken = code_of(clause) == f"{container}[{code_of(loop.target)}]"
    return loop, dotted(bound.targets[0].target) if counted and taken else None


def _detaches(node: cst.CSTNode, name: str) -> bool:
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == name:
        return node.attr.value in ("detach", "requires_grad_")
    return any(_detaches(child, name) for child in children(node))


def _held(fn: FunctionClass, write: ContextStore) -> Stash | None:
    """What one assignment stores; None unless it is certainly a tensor that could be saved, whichever path is taken."""
    found = _stored(fn, write)
    everything = [each for contents in found for each in contents]
    if not everything:
        return None
    order = list(Held)
    held = min((each.held for each in everything), key=order.index)
    alike = [each for each in everything if each.held is held]
    on_some_paths = any(all(each.held is not held for each in contents) for contents in found)
    if alike[0].contained:  # what backward reads matters more than its unread neighbours
        alike = [each for each in alike if not _uses_of(fn, write, each).only_metadata] or alike
    one_of = False
    if held is Held.INPUT and write.value is not None:
        always = _on_every_path(write.value)
        certain = [each for each in alike if each.name in always]
        one_of = not certain
        if one_of and alike[0].contained:
            return None
        alike = certain or alike
    names = dict.fromkeys(each.name for each in alike if each.name is not None)
    places = dict.fromkeys(each.place for each in alike)
    return Stash(fn, write, held, alike[0].contained, tuple(names), one_of, tuple(places), on_some_paths)


def _on_every_path(value: Value) -> frozenset[str]:
    """The inputs that a value, or its contents, holds in each of its alternatives except None."""
    if isinstance(value, Choice):
        held = [_on_every_path(option) for option in value.alternatives if option != NONE]
        return frozenset.intersection(*held) if held else frozenset()
    rest = _of_variadic(value) if _element(value) is None else None
    if rest is not None:
        return frozenset([f"*{rest.name}"])
    if isinstance(value, (Sequence, Mapping)):
        return frozenset[str]().union(*(_on_every_path(slot.value) for slot in value.slots if not slot.starred))
    if isinstance(value, ProjectObject):
        return frozenset[str]().union(*(_on_every_path(slot.value) for _name, slot in value.attributes))
    origin = usual_storage(value)  # it is rarely a copy
    element = _element(origin) if origin is not None else None
    if element is not None:
        return frozenset(elements_named([element]))
    return frozenset([origin.name]) if is_input(origin) else frozenset()


def _uses_of(fn: FunctionClass, write: ContextStore, tensor: _Kept) -> KeptUses:
    return uses_of_kept(fn, write.attribute, contained=tensor.contained, places=(tensor.place,))


@record
class _Kept:
    """One of the tensors that an assignment stores."""

    held: Held
    contained: bool
    name: str | None = None
    place: Place | None = None


def _parts(value: Value) -> Iterator[tuple[Place | None, Value]]:
    """The elements of a list, tuple or dict with their positions; for anything else the value itself."""
    if isinstance(value, Sequence) and value.exact and value.kind in ("list", "tuple"):
        for at, slot in enumerate(value.slots):
            for option in slot.value.options():
                yield Place(at, len(value.slots), value.names[at] if value.names else ""), option
    elif isinstance(value, Mapping) and len(value.keys) == len(value.slots):
        for key, slot in zip(value.keys, value.slots):
            for option in slot.value.options():
                yield Place(key, len(value.slots)), option
    elif isinstance(value, ProjectObject) and value.attributes:
        for name, slot in value.attributes:
            for option in slot.value.options():
                yield Place(name, len(value.attributes), name), option
    else:
        yield None, value


def _leaves(value: Value, contained: bool = False, *, certainly: bool = False) -> Iterator[tuple[Value, bool]]:
    """The value, or the contents of the container, each with whether it is in a container.

    ``certainly``: without what a place holds on some paths only.
    """
    held = _contents(value)
    if held is None:
        yield value, contained
        return
    for each in held:
        if not (certainly and isinstance(each, Choice)):
            for option in each.options():
                yield from _leaves(option, contained=True, certainly=certainly)


def _contents(value: Value) -> list[Value] | None:
    """What each place of a container holds; None for anything else."""
    if isinstance(value, (Sequence, Mapping)):  # ``[y] * n`` has a starred slot
        return [slot.value for slot in value.slots if not slot.starred or isinstance(slot.value, Fresh)]
    return [slot.value for _name, slot in value.attributes] if isinstance(value, ProjectObject) else None


def _shown_by_misplaced_gradient(fn: FunctionClass, entry: Input) -> bool:
    """Whether an input is taken for a tensor only because of a gradient that is named after another input."""
    if any(each.tensor and not each.own_gradient for each in entry.evidence):
        return False
    at = entry.index
    given = [each for each in fn.gradients if at < len(each.slots) and is_none(each.slots[at].value) is not Tri.YES]
    return bool(given) and all(is_for_another(fn, each, at) for each in given)


def _classified(fn: FunctionClass, write: ContextStore, leaf: Value, contained: bool) -> Iterator[_Kept]:
    """The kind of one value, whether a container holds it, and its name if it is an input; nothing if unknown."""
    if _saved_too(fn, write, leaf):
        return
    origin = _same_memory(leaf)
    element = _element(origin)
    if element is not None:
        if _is_kept_element(fn, element, leaf):
            yield _Kept(Held.INPUT, contained, elements_named([element])[0])
        return
    if is_input(origin):
        yield from _classified_input(fn, write, leaf, origin, contained)
        return
    if _is_output(fn, write, moved_to_cpu(leaf) or leaf) and not _may_be_an_input(leaf):
        if _is_of_this_iteration(fn, write, leaf):
            yield _Kept(Held.OUTPUT, contained)
    elif isinstance(leaf, (View, Item)) and not is_detached(leaf) and _is_output(fn, write, _viewed(leaf)):
        yield _Kept(Held.OUTPUT_VIEW, contained)
    elif is_tensor(leaf) is Tri.YES and kind_of(leaf) is Kind.FLOAT and _is_computed(before_views(leaf)):
        yield _Kept(Held.COMPUTED, contained)
    elif _holds_output(fn, write, leaf):
        yield _Kept(Held.OUTPUT, True)


def _is_computed(origin: Value) -> bool:
    """Whether what has become a tensor of floats was one, or one of integers, which the conversion has copied."""
    return kind_of(origin) is Kind.FLOAT or (isinstance(origin, Fresh) and kind_of(origin) is Kind.INTEGRAL)


def _classified_input(
    fn: FunctionClass, write: ContextStore, leaf: Value, origin: Parameter, contained: bool
) -> Iterator[_Kept]:
    """The same of an input, or a view of it: the output if it is returned, as it is marked dirty."""
    if _is_excluded(origin, write.guards) or _starts_a_graph(fn, write, leaf):
        return
    if leaf == origin and _is_returned_dirty(fn, origin):
        yield _Kept(Held.OUTPUT, contained)
        return
    entry = fn.inputs[origin.index] if origin.index < len(fn.inputs) else None
    if entry is None or is_tensor(leaf) is Tri.NO:
        return
    if entry.gradient is not Tri.YES and always_none(fn, entry.index):
        if is_tensor(leaf) is Tri.YES or _has_one_alternative(write):
            yield _Kept(Held.UNDIFFERENTIATED, contained, entry.name)
    elif entry.gradient is Tri.YES and not _may_be_no_tensor(entry) and is_tensor(leaf) is Tri.YES:
        if _gets_more_than_zeros(fn, entry.index) and not _shown_by_misplaced_gradient(fn, entry):
            yield _Kept(Held.INPUT, contained, entry.name)


def _may_be_no_tensor(entry: Input) -> bool:
    """Whether an input is certainly not a tensor, or annotated as a number: then the gradient may be what is wrong."""
    return bool(entry.against_a_gradient) or any(each.annotated and not each.tensor for each in entry.evidence)


def _has_one_alternative(write: ContextStore) -> bool:
    """Whether one assignment stores the same thing on every path, apart from None."""
    return write.value is not None and sum(option != NONE for option in write.value.options()) == 1


def _is_kept_element(fn: FunctionClass, element: Item, leaf: Value) -> bool:
    """Whether an element of ``*args``, or a view of it, is certainly an input that could be saved."""
    index = len(fn.inputs) + (element.key if isinstance(element.key, int) else 0)
    gets_gradient = gradient_of(index, index + 1, fn.gradients) is Tri.YES
    if any(True for _call in fn.context_calls("mark_dirty")):
        return False
    return gets_gradient and _gets_more_than_zeros(fn, index) and not is_detached(leaf)


def _element(origin: Value) -> Item | None:
    """The value as a numbered element of forward's ``*args``, if it is one: ``args[0]``, ``x, w = args``."""
    if not isinstance(origin, Item) or not isinstance(origin.of, Variadic) or origin.of.role != "input":
        return None
    return origin if isinstance(origin.key, int) and origin.key >= 0 else None


def _is_excluded(entry: Parameter, guards: Iterable[Guard]) -> bool:
    """Whether tests find that an input is not a tensor, or needs no gradient."""
    guards = tuple(guards)
    return looks_excluded_as_tensor(entry.name, guards) or any(_finds_it_frozen(each, entry.index) for each in guards)


def _finds_it_frozen(guard: Guard, index: int) -> bool:
    """Whether a test finds that an input needs no gradient."""
    asks = guard.asks
    if asks is None or asks.answer:
        return False
    if asks.question is Question.NEEDS_INPUT_GRAD:
        return asks.value == NeedsInputGrad(index)
    value = before_views(asks.value) if asks.question is Question.REQUIRES_GRAD else None
    return is_input(value) and value.index == index


def _is_of_this_iteration(fn: FunctionClass, write: ContextStore, tensor: Value) -> bool:
    """Whether a tensor is certainly not what an earlier iteration of the loop that stores it has computed."""
    if not write.in_loop or getattr(tensor, "node", None) is write.value_node:
        return True
    bound = [each for method in fn.context_methods for each in method.facts.of(Assigned)]
    rebound = {each.name for each in bound if each.in_loop}
    return any(
        each.value == tensor and write.implies(each) and (each.in_loop or each.name not in rebound) for each in bound
    )


def _gets_more_than_zeros(fn: FunctionClass, index: int) -> bool:
    """Whether some gradient of an input is more than zeros: for empty tensors, some return zeros instead of None."""
    slots = [each.slots[index] for each in fn.gradients if each.known and index < len(each.slots)]
    if len(fn.inputs) == 1 and any(map(given_by_a_call, fn.gradients)):
        return True
    return any(slot.value != NONE and not is_call_for_zeros(slot.node) for slot in slots)


def _same_memory(value: Value) -> Value:
    """The origin of a chain of certain views; the value itself if there may be a copy in between."""
    origin = value
    while isinstance(origin, View) and origin.alias is Alias.ALWAYS:
        origin = origin.of
    return origin


def _before_detach(value: Value) -> Value:
    """The tensor of which a value is only the detached twin, if it is one."""
    while isinstance(value, View) and detaches(value):
        value = value.of
    return value


def _copies_later(node: cst.CSTNode) -> bool:
    """Whether a call has ``non_blocking=True``."""
    flag = keywords_of(node).get("non_blocking") if isinstance(node, cst.Call) else None
    return flag is not None and is_name(flag, "True")


def _is_on_cpu(node: cst.CSTNode) -> bool:
    """Whether code that creates a tensor names the CPU, or pinned memory."""
    return any(word == "pin_memory" or word.strip("\"'") == "cpu" for word in words_of(node))


def _view_nodes(value: Value) -> Iterator[cst.CSTNode]:
    """The nodes of the views and conversions that a value is, the outermost first."""
    while isinstance(value, View):
        yield value.node
        value = value.of


def _viewed(value: Value) -> Value | None:
    """What a value certainly is another view of. Not for ``contiguous``: it returns either the tensor or a copy."""
    while isinstance(value, View):
        named = getattr(getattr(getattr(value.node, "func", None), "attr", None), "value", "")
        if value.alias not in (Alias.ALWAYS, Alias.USUALLY) or named == "contiguous":
            return None
        value = value.of
    return usual_storage(value.of if isinstance(value, Item) and _is_row(value) else value)


def _may_be_an_input(value: Value) -> bool:
    """Whether it is the result of converting an input, which is the input itself if no conversion is needed."""
    return isinstance(value, View) and isinstance(before_views(value), Parameter)


def _starts_a_graph(fn: FunctionClass, write: ContextStore, leaf: Value) -> bool:
    """Whether ``requires_grad`` makes a detached input the leaf of a new graph: backward needs this very object."""
    if not is_detached(leaf):
        return False
    flags = (each for method in fn.context_methods for each in method.facts.of(GradientFlag) if each.switched)
    flagged = (option for each in flags if each.value is not None for option in each.value.options())
    places = {id(each.node) for each in flagged if isinstance(each, View)}
    if isinstance(leaf, View) and id(leaf.node) in places:  # also of another element: ``(x.detach() for x in inputs)``
        return True
    if not isinstance(write.value_node, (cst.Name, cst.Attribute, cst.Call, cst.ListComp)):
        return False
    name = dotted(write.value_node)
    texts = [code_of(write.value_node)] if name is None else []
    for method in fn.context_methods if name is not None else ():
        texts += [code_of(each.value_node) for each in method.assignments.get(name or "", ()) if each.value_node]
        texts += [
            code_of(node)
            for node in method.nodes_of(cst.Attribute)
            if dotted(node.value) in (name, f"ctx.{write.attribute}")
        ]
    return any("requires_grad" in text for text in texts)


def _is_returned_dirty(fn: FunctionClass, parameter: Parameter) -> bool:
    """Whether an input is marked dirty and returned: autograd turns it into the output."""
    marked = any(argument.value == parameter for call in fn.context_calls("mark_dirty") for argument in call.arguments)
    return marked and any(
        value == parameter for each in fn.outputs for value in (each.value, *(slot.value for slot in each.slots))
    )


# ---------------------------------------------------------------------------------------------------------------------
# Outputs


def _is_output(fn: FunctionClass, write: ContextStore, value: Value | None) -> bool:
    if value is None or is_tensor(value) is Tri.NO:
        return False
    outputs = [*differentiable_outputs(fn, write)]
    if any(same_object(value, each) is Tri.YES for each in outputs):
        return True
    if not isinstance(value, Item) or not isinstance(value.key, int) or _is_row(value) or fn.escapes:
        return False
    if any(value == each.value for call in fn.context_calls("mark_non_differentiable") for each in call.arguments):
        return False
    whole = any(same_object(value.of, each) is Tri.YES for each in outputs)  # ``t, y = both; return both``
    return whole and reads_gradient(fn, value.key)


def moved_to_cpu(value: Value | None) -> Value | None:
    """The tensor of which a value is ``x.cpu()``: that is ``x`` itself on the CPU. None for anything else."""
    called = value.node.func if isinstance(value, View) and isinstance(value.node, cst.Call) else None
    return value.of if isinstance(value, View) and called is not None and last_name(called) == "cpu" else None


def _holds_output(fn: FunctionClass, write: ContextStore, container: Value) -> bool:
    """Whether an output is an item of what is stored: ``ctx.all = outputs; return outputs[0]``."""
    items = (each for each in differentiable_outputs(fn, write) if isinstance(each, Item) and isinstance(each.key, int))
    return any(same_object(each.of, container) is Tri.YES for each in items)


def _is_returned_whole(fn: FunctionClass, write: ContextStore, elements: Sequence) -> bool:
    """Whether the elements of a stored list are the outputs: ``ctx.all = outputs; return tuple(outputs)``."""
    forward, stored = fn.forward, f"{fn.storing_ctx}.{write.attribute}"
    if forward is None or fn.context_calls("mark_non_differentiable") or fn.escapes:
        return False
    if any(may_be_given_back(fn, leaf) for leaf in leaves(elements)):
        return False
    bound = forward.assignments
    name = _taken_from(write.value_node)
    names = {name} if name is not None and _bound_once(bound, name) is not None else set()
    if len(fn.writes_by_attribute[write.attribute]) == 1:
        names.add(stored)

    def is_it(node: cst.BaseExpression | None) -> bool:
        value = _bound_once(bound, node.value) if isinstance(node, cst.Name) else node
        if isinstance(node, cst.Name) and node.value in names and _is_tuple(value):
            return True
        return value is not None and dotted(value) is None and _taken_from(value) in names

    returned = [event.node.value for event in forward.facts.returns if isinstance(event.node, cst.Return)]
    return bool(returned) and all(map(is_it, returned))


def _bound_once(bound: dict[str, list[Assigned]], name: str) -> cst.BaseExpression | None:
    """What a name is bound to by its only assignment."""
    found = bound.get(name, [])
    return found[0].value_node if len(found) == 1 and not found[0].augmented else None


def _is_tuple(node: cst.BaseExpression | None) -> bool:
    """Whether an expression creates a tuple: of a list that forward returned, autograd would track nothing."""
    return isinstance(node, cst.Tuple) or (isinstance(node, cst.Call) and dotted(node.func) == "tuple")


def _taken_from(node: cst.BaseExpression | None) -> str | None:
    """The list whose elements an expression has: ``outputs``, ``tuple(ctx.all)``, ``(*outputs,)``, ``[all] * n``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        only = node.left.elements if isinstance(node.left, (cst.List, cst.Tuple)) else ()
        return _taken_from(only[0].value) if len(only) == 1 and isinstance(only[0], cst.Element) else None
    if isinstance(node, cst.Call) and dotted(node.func) in ("tuple", "list") and len(node.args) == 1:
        return _taken_from(node.args[0].value) if not node.args[0].star and node.args[0].keyword is None else None
    if isinstance(node, cst.Tuple) and len(node.elements) == 1 and isinstance(node.elements[0], cst.StarredElement):
        return _taken_from(node.elements[0].value)
    return None if node is None else dotted(node)


# ---------------------------------------------------------------------------------------------------------------------
# Exemptions


def _saved_too(fn: FunctionClass, write: ContextStore, leaf: Value) -> bool:
    return any(argument.value == leaf and not write.excludes(save) for save in fn.saves for argument in save.arguments)


def _saved_view(fn: FunctionClass, write: ContextStore, leaf: Value) -> Slot | None:
    """What forward saves, on the same paths, of the memory of a tensor; not ``.data``, which torch does not track."""
    origin = _same_memory(leaf)
    if not isinstance(origin, (Parameter, Fresh)):
        return None
    saves = (save for save in fn.saves if write.implies(save) or save.happens_with(write))
    saved = (argument for save in saves for argument in save.arguments if not argument.starred)
    views = [each for each in saved if _same_memory(each.value) == origin and not through_data(each.value)]
    return next((each for each in views if each.value == origin), views[0] if views else None)


def _unpacks(method: Method, attribute: str) -> bool:
    """Whether a method reads ``saved_tensors`` on each path, or before an attribute; or another function may do so."""
    if method.facts.of(Escape):
        return True
    saved = [each for each in method.facts.of(SavedRead) if each.via != "saved_for_forward"]
    reads = [each for each in method.facts.of(ContextRead) if each.attribute == attribute]
    return bool(saved) and any(
        all(any(later.implies(each) for each in saved) for later in events) for events in (reads, method.returns)
    )


def holds_gradient(fn: FunctionClass, stash: Stash) -> bool:
    """Whether it is a gradient that forward computed in advance, which backward only passes on."""
    names = [stash.write.attribute]
    if isinstance(stash.write.value_node, cst.Name):
        names.append(stash.write.value_node.value)
    inputs = {entry.name.lower() for entry in fn.inputs}
    for name in (each.lower().strip("_") for each in names):
        if "grad" in name or (name.startswith("d") and name[1:].strip("_") in inputs):
            return True
    attribute = ContextAttribute(stash.write.attribute)
    return any(attribute in slot.value.options() for returned in fn.gradients for slot in returned.slots)
