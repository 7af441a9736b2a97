"""A method of a class body: its signature, and the facts that one walk over its body records."""

from __future__ import annotations

from enum import Enum
from functools import cached_property, reduce
from itertools import chain, takewhile
from operator import and_
from typing import TYPE_CHECKING, cast

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.index.scopes import resolve_certainly
from ctxlint.model.interpreter.events import (
    Assigned,
    ContextCall,
    ContextRead,
    ContextWrite,
    Event,
    NeedsInputGradRead,
    Orders,
    Return,
    SavedRead,
    UnboundContext,
)
from ctxlint.model.interpreter.local_names import BINDING, bound_by
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import dotted, in_parts, is_name, kept, kept_below, keywords_of, parents_in
from ctxlint.records import record
from ctxlint.torch_api import operations
from ctxlint.torch_api.known_decorators import AUTOCAST_PAIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeGuard, TypeVar

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.syntax import Parents
    from ctxlint.source.slices import Slice

    EventType = TypeVar("EventType", bound=Event)
    NodeType = TypeVar("NodeType", bound=cst.CSTNode)
    Key = TypeVar("Key")
    Part = TypeVar("Part")


class Binding(Enum):
    """How a function in a class body is bound."""

    STATIC = "staticmethod"
    CLASS = "classmethod"
    INSTANCE = "instance"


class ParameterKind(Enum):
    """The kinds of parameter that a Python function has."""

    POSITIONAL = "positional"
    KEYWORD_ONLY = "keyword-only"
    VARIADIC = "*args"
    KEYWORDS = "**kwargs"


@record
class Param:
    """One parameter. ``annotation`` is its code, with dotted names resolved through imports."""

    name: str
    kind: ParameterKind
    node: cst.Param
    has_default: bool = False
    default: Value | None = None
    annotation: str | None = None

    @property
    def required(self) -> bool:
        """Whether a call must pass it."""
        return not self.has_default and self.kind in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)


@record
class Decorator:
    """A decorator: ``name`` is the resolved dotted name (None if the expression is not a name).

    ``called``: it is written with parentheses. ``keeps_signature`` is yes for those known to pass all arguments on,
    unknown for others. ``certain``: the name means nothing else on any path, fallbacks for a failing import aside.
    ``takes_descriptors``: it also works on a staticmethod or classmethod object. ``works_on_ctx``: it sets
    attributes or saves tensors itself. ``copies``: it may pass copies of tensors on. ``lays_out``: it passes on what
    ``contiguous`` returns for each tensor, with grad mode as it is. ``completed``:
    ``functools.partial`` gave it arguments before. ``optional``: its name may mean a function that does nothing
    instead. ``casts``: its name stands for a ``custom_fwd`` that casts the inputs. ``through_project``: another file
    of the project defines its name. ``keeps_device``: it certainly leaves the current GPU alone.
    """

    node: cst.Decorator
    name: str | None
    called: bool
    keeps_signature: Tri
    certain: bool = False
    takes_descriptors: bool = False
    works_on_ctx: bool = False
    copies: bool = False
    lays_out: bool = False
    completed: bool = False
    optional: bool = False
    casts: bool = False
    through_project: bool = False
    keeps_device: bool = False

    @property
    def lacks_device_type(self) -> bool:
        """Whether it certainly is ``custom_fwd`` or ``custom_bwd`` of ``torch.amp`` without ``device_type``."""
        if not self.certain or self.completed or self.name not in AUTOCAST_PAIR:
            return False
        return "device_type" not in self.keywords and not any(each.star == "**" for each in self.arguments)

    @property
    def arguments(self) -> tuple[cst.Arg, ...]:
        """What it is called with."""
        expression = self.node.decorator
        return tuple(expression.args) if isinstance(expression, cst.Call) else ()

    @property
    def keywords(self) -> dict[str, cst.BaseExpression]:
        """What it is called with by keyword."""
        return keywords_of(self.node.decorator) if isinstance(self.node.decorator, cst.Call) else {}

    @property
    def casts_inputs(self) -> bool:
        """Whether ``custom_fwd`` casts the inputs, and so disables autocast for the method."""
        value = self.keywords.get("cast_inputs")
        return self.casts or (value is not None and not is_name(value, "None"))

    @property
    def written(self) -> str | None:
        """The name in the source; None for an expression that is not a dotted name."""
        expression = self.node.decorator
        return dotted(expression.func if isinstance(expression, cst.Call) else expression)


@record
class MethodFacts:
    """The facts that one walk over a method's body records; see ``interpret``."""

    events: tuple[Event, ...] = ()
    falls_through: Tri = Tri.UNKNOWN
    """Does some path reach the end of the body without ``return`` and without ``raise``?"""
    fall_guards: tuple[Guard, ...] = ()
    """The guards common to every path to the end of the body."""
    fall_paths: tuple[tuple[Guard, ...], ...] = ()
    """The paths to the end of the body, each as its path condition. The ``arm`` of a guard without test is what the
    path depends on: ``except`` (something raised), ``exhausted`` (a loop that may return did not), ``returns`` (a call
    that raises by its name), ``no case``, ``unknown``."""
    untaken: frozenset[Guard] = frozenset()
    """Tests with an outcome that autograd never gives them; there are no events under these."""
    end_done: Orders = 0
    """The events that must have happened when the end of the body is reached."""
    end_attributes: frozenset[str] = frozenset()
    """The ctx attributes that are certainly set when the end of the body is reached."""
    end_absent: frozenset[Value] = frozenset()
    """The parameters that are certainly None when the end of the body is reached."""
    names_read: frozenset[str] = frozenset()
    """Every name that the body reads, nested functions included; ``del`` is not a read."""
    is_generator: bool = False
    is_async: bool = False
    complete: bool = True
    """False if the body contains something that the walk cannot model (``exec``, ``locals()``, a star import)."""

    @property
    def modelled(self) -> bool:
        """Whether the whole body is modelled and runs when the method is called: no generator, no coroutine."""
        return self.complete and not self.is_generator and not self.is_async

    @property
    def returns(self) -> tuple[Return, ...]:
        """The return statements, in order."""
        return self.of(Return)

    @property
    def absent(self) -> frozenset[Value]:
        """The parameters that are certainly None where the method ends without an error."""
        ends = [each.absent for each in self.returns]
        ends += [] if self.falls_through is Tri.NO else [self.end_absent]
        return reduce(and_, ends) if ends else frozenset()

    def of(self, kind: type[EventType]) -> tuple[EventType, ...]:
        """The events of one kind, in order."""
        by_kind = self._by_kind
        found = by_kind.get(kind)
        if found is None:
            types = [each for each in self._by_type if issubclass(each, kind)]
            several = (event for event in self.events if isinstance(event, kind)) if len(types) > 1 else ()
            found = by_kind[kind] = tuple(self._by_type[types[0]] if len(types) == 1 else several)
        spend(1 + (len(found) >> 3))
        return cast("tuple[EventType, ...]", found)

    def has(self, kind: type[Event]) -> bool:
        """Whether an event of exactly this kind was recorded: asked of every function, where ``of`` would cost more."""
        return kind in self._by_type

    @cached_property
    def _by_type(self) -> dict[type[Event], list[Event]]:
        """The events by their exact type."""
        found: dict[type[Event], list[Event]] = {}
        for event in self.events:
            found.setdefault(type(event), []).append(event)
        return found

    @cached_property
    def _by_kind(self) -> dict[type[Event], tuple[Event, ...]]:
        """The results of ``of`` so far: every rule needs a few kinds."""
        return {}


@record
class Method:
    """A method of one class body."""

    name: str
    node: cst.FunctionDef
    slice: Slice
    binding: Binding
    decorators: tuple[Decorator, ...]
    params: tuple[Param, ...]
    receiver: Param | None
    """``cls`` of a classmethod, or a receiver before ctx, by mistake or for direct calls."""
    ctx: Param | None
    """The parameter that gets the ctx; None where there is none (forward next to setup_context, or by mistake)."""
    facts: MethodFacts
    inherited: bool = False
    home: Definition | None = None
    """The class whose body contains it."""
    lacks_ctx: bool = False
    """Whether it certainly has no parameter for the ctx that autograd passes (see ``context_parameter.py``)."""

    # The code

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The parent of each node of code in the method; the outermost first, the body last."""
        return kept(self.node, parents_in)

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The ancestors of a node, the nearest first; the method is the last."""
        parents = self.parents
        while node in parents:
            spend()
            node = parents[node]
            yield node

    def around(self, node: cst.CSTNode, kind: type[NodeType]) -> NodeType | None:
        """The innermost node of a kind that contains a node."""
        return next((each for each in self.above(node) if isinstance(each, kind)), None)

    def statement_around(self, node: cst.CSTNode) -> cst.BaseStatement | cst.BaseSmallStatement | None:
        """The innermost statement that contains a node; the line, if the node is a simple statement itself."""
        statements = (each for each in self.above(node) if isinstance(each, _STATEMENTS))
        return next(statements, None)

    def line_of_body(self, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
        """The line that contains a node; None if it is in a compound statement."""
        around = [each for each in self.above(node) if isinstance(each, cst.BaseStatement)]
        return around[0] if len(around) == 2 and isinstance(around[0], cst.SimpleStatementLine) else None

    def called_on(self, node: cst.CSTNode) -> tuple[cst.Call | None, str]:
        """The call of a method of what a node evaluates to, and the name of the method; None if there is none."""
        attribute = self.parents.get(node)
        call = self.parents.get(attribute) if isinstance(attribute, cst.Attribute) else None
        if not isinstance(attribute, cst.Attribute) or not isinstance(call, cst.Call) or call.func is not attribute:
            return None, ""
        return (call, attribute.attr.value) if attribute.value is node else (None, "")

    def is_measured(self, node: cst.CSTNode) -> bool:
        """Whether only the size, dtype or the like of what a node evaluates to is read: ``x.size(0)``, ``len(x)``."""
        above = self.parents[node]
        call = self.parents[above] if isinstance(above, cst.Arg) else None
        of_len = isinstance(call, cst.Call) and is_name(call.func, "len")
        asked = isinstance(above, cst.Attribute) and above.attr.value in operations.SCALAR_ATTRIBUTES
        return of_len or asked or self.called_on(node)[1] in operations.SIZE_METHODS

    @cached_property
    def body_nodes(self) -> tuple[cst.CSTNode, ...]:
        """The nodes of code in the body, outermost first."""
        nodes = tuple(self.parents)
        return nodes[nodes.index(self.node.body) + 1 :]

    def nodes_of(self, kind: type[NodeType]) -> Sequence[NodeType]:
        """The nodes in the body of one kind, in the order of ``body_nodes``."""
        return cast("Sequence[NodeType]", self._nodes_by_kind.get(kind, ()))

    @cached_property
    def raising_tests(self) -> tuple[cst.BaseExpression, ...]:
        """What the method asserts, and the tests of each ``if`` with a ``raise`` in it."""
        raising = (around for node in self.nodes_of(cst.Raise) for around in self.above(node))
        tests = [each.test for each in raising if isinstance(each, cst.If)]
        return (*(each.test for each in self.nodes_of(cst.Assert)), *tests)

    @cached_property
    def _nodes_by_kind(self) -> Mapping[type[cst.CSTNode], list[cst.CSTNode]]:
        return kept_below(self.node, self.parents, _nodes_by_kind)

    @cached_property
    def context_attributes(self) -> Mapping[str, list[cst.Attribute]]:
        """Every ``ctx.a`` in the body, nested functions included, by ``a``."""
        found: dict[str, list[cst.Attribute]] = {}
        ctx = self.ctx.name if self.ctx is not None else None
        for node in self.nodes_of(cst.Attribute):
            if isinstance(node.value, cst.Name) and node.value.value == ctx:
                found.setdefault(node.attr.value, []).append(node)
        return found

    @cached_property
    def variables(self) -> tuple[cst.Name, ...]:
        """Every name in it that refers to a variable, not to an attribute or keyword."""
        return kept_below(self.node, self.parents, _variables)

    def is_label(self, node: cst.Name) -> bool:
        """Whether a name in it is that of an attribute, or the keyword of a call."""
        return _is_label(node, self.parents[node])

    @cached_property
    def named(self) -> Mapping[str, list[cst.Name]]:
        """``variables`` by their name."""
        return kept_below(self.node, self.parents, _named)

    @cached_property
    def binders(self) -> Mapping[str, list[cst.CSTNode]]:
        """The nodes that bind or delete each name, parameters left out."""
        return kept_below(self.node, self.parents, _all_binders)

    @cached_property
    def assignments(self) -> dict[str, list[Assigned]]:
        """What names are assigned, by name."""
        found: dict[str, list[Assigned]] = {}
        for each in self.facts.of(Assigned):
            found.setdefault(each.name, []).append(each)
        return found

    def only_assignment(self, name: str) -> Assigned | None:
        """The only assignment to a name, if it is not augmented; None if there are several, or none."""
        bound = self.assignments.get(name, [])
        return bound[0] if len(bound) == 1 and not bound[0].augmented else None

    def bound_to(self, name: str) -> cst.BaseExpression | None:
        """The expression that the only assignment to a name binds it to; None if there are several, or none."""
        only = self.only_assignment(name)
        return only.value_node if only is not None else None

    def behind_name(self, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
        """An expression, or what a name is bound to by the only assignment to it."""
        return self.bound_to(node.value) if isinstance(node, cst.Name) else node

    def value_of(self, name: str) -> Value | None:
        """The value that the only assignment to a name binds it to; None if there are several, or none."""
        only = self.only_assignment(name)
        return only.value if only is not None else None

    @cached_property
    def _order(self) -> Mapping[cst.CSTNode, int]:
        return kept_below(self.node, self.parents, _order)

    def precedes(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether a node is written before another, and no loop repeats it."""
        repeated = any(isinstance(each, (cst.For, cst.While)) for each in self.above(first))
        return self.is_written_before(first, second) and not repeated

    def is_written_before(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether a node is written before another."""
        return self._order[first] < self._order[second]

    def meaning(self, name: str) -> str:
        """What a dotted name certainly denotes where the class is defined; empty if that is unknown."""
        known = self.home.record if self.home is not None else None
        return (resolve_certainly(name, known.scope) if known is not None else None) or ""

    # The parameters

    def holds_argument(self, name: str, use: cst.CSTNode) -> bool:
        """Whether a parameter certainly still holds the argument: nothing on the way to ``use`` rebinds it.

        What the statement of the use itself binds, as in ``g = g.view(-1)``, comes after the use.
        """
        binders = self.binders.get(name, ())
        around = tuple(self.above(use)) if binders else ()
        if any(isinstance(each, (cst.For, cst.While)) for each in around):
            return False
        targets = {each for statement in around if isinstance(statement, cst.Assign) for each in statement.targets}
        return all(self._order[each] >= self._order[use] or each in targets for each in binders)

    @property
    def ctx_name(self) -> str:
        """The name that ctx has in it; the usual one if there is no parameter for it."""
        return self.ctx.name if self.ctx is not None else "ctx"

    @property
    def runs_before_backward(self) -> bool:
        """Whether torch calls it when ``apply`` is called: ``forward`` and ``setup_context``."""
        return self.name in ("forward", "setup_context")

    def is_on_ctx(self, node: cst.CSTNode) -> TypeGuard[cst.Attribute]:
        """Whether an expression is an attribute of ctx."""
        return isinstance(node, cst.Attribute) and is_name(node.value, self.ctx_name)

    @cached_property
    def own_params(self) -> tuple[Param, ...]:
        """The parameters without receiver and ctx: forward's inputs, backward's gradients."""
        return tuple(param for param in self.params if param is not self.receiver and param is not self.ctx)

    @cached_property
    def positional(self) -> tuple[Param, ...]:
        """``own_params`` that take one positional argument each."""
        return tuple(param for param in self.own_params if param.kind is ParameterKind.POSITIONAL)

    @property
    def variadic(self) -> Param | None:
        """The ``*args`` parameter."""
        return next((param for param in self.own_params if param.kind is ParameterKind.VARIADIC), None)

    @property
    def signature_known(self) -> bool:
        """Whether every decorator is known to pass the arguments and the result on unchanged."""
        return all(decorator.keeps_signature is Tri.YES for decorator in self.decorators)

    @property
    def arguments_known(self) -> bool:
        """Whether the body gets the very tensors that torch passes: no decorator may copy them."""
        return self.signature_known and not any(decorator.copies for decorator in self.decorators)

    @property
    def context_known(self) -> bool:
        """Whether only the body itself works on ctx: every decorator is known, and none of them does."""
        return self.signature_known and not any(decorator.works_on_ctx for decorator in self.decorators)

    @property
    def returns(self) -> tuple[Return, ...]:
        """The return statements, in order."""
        return self.facts.of(Return)

    @property
    def treats_ctx_as_ctx(self) -> bool:
        """Whether the body uses the ctx parameter like a ctx, or never mentions it.

        False if the author forgot the ctx, so that it arrives as the first input.
        """
        if self.ctx is None or self.facts.of(UnboundContext):
            return False
        kinds = (ContextCall, ContextWrite, ContextRead, SavedRead, NeedsInputGradRead)
        return self.ctx.name not in self.facts.names_read or any(self.facts.of(kind) for kind in kinds)

    def decorator(self, name: str) -> Decorator | None:
        """The first decorator whose resolved name ends with ``name``."""
        return next((each for each in self.decorators if (each.name or "").endswith(name)), None)

    @property
    def raises_only(self) -> bool:
        """Whether no path returns anything: the body always raises.

        Also where it ends in the call of a function that raises by its name: ``not_implemented()``.
        """
        if self.returns or self.facts.is_generator or not self.facts.complete:
            return False
        paths = self.facts.fall_paths
        ends_in_raising_call = bool(paths) and all(any(guard.arm == "returns" for guard in path) for path in paths)
        return self.facts.falls_through is Tri.NO or (self.facts.falls_through is Tri.YES and ends_in_raising_call)


_STATEMENTS = (cst.BaseStatement, cst.BaseSmallStatement)


def _by_kind(nodes: Iterable[cst.CSTNode], _parents: Parents) -> dict[type[cst.CSTNode], list[cst.CSTNode]]:
    found: dict[type[cst.CSTNode], list[cst.CSTNode]] = {}
    for node in nodes:
        found.setdefault(type(node), []).append(node)
    return found


def _nodes_by_kind(function: cst.FunctionDef, parents: Parents) -> dict[type[cst.CSTNode], list[cst.CSTNode]]:
    return _merged(in_parts(function, parents, _by_kind))


def _in_parts(
    function: cst.FunctionDef, parents: Parents, work: Callable[[Iterable[cst.CSTNode], Parents], Part]
) -> list[Part]:
    """The results of ``work`` for what is in front of the body, and for parts of the body."""
    head = takewhile(lambda node: node is not function.body, parents)
    return [work(head, parents), *in_parts(function, parents, work)]


def _variables(function: cst.FunctionDef, parents: Parents) -> tuple[cst.Name, ...]:
    return tuple(chain.from_iterable(_in_parts(function, parents, variables_in)))


def _named(function: cst.FunctionDef, parents: Parents) -> dict[str, list[cst.Name]]:
    return _merged(_in_parts(function, parents, _names_in))


def _names_in(nodes: Iterable[cst.CSTNode], parents: Parents) -> dict[str, list[cst.Name]]:
    found: dict[str, list[cst.Name]] = {}
    for node in variables_in(nodes, parents):
        found.setdefault(node.value, []).append(node)
    return found


def _all_binders(function: cst.FunctionDef, parents: Parents) -> dict[str, list[cst.CSTNode]]:
    return _merged(_in_parts(function, parents, _binders))


def _order(_function: cst.FunctionDef, parents: Parents) -> dict[cst.CSTNode, int]:
    return {node: at for at, node in enumerate(parents)}


def variables_in(nodes: Iterable[cst.CSTNode], parents: Parents) -> list[cst.Name]:
    """The names among nodes of code that refer to variables, not to attributes or keywords."""
    return [node for node in nodes if isinstance(node, cst.Name) and not _is_label(node, parents.get(node))]


def _is_label(node: cst.Name, parent: cst.CSTNode | None) -> bool:
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    if isinstance(parent, cst.MatchKeywordElement):
        return parent.key is node
    return isinstance(parent, cst.Arg) and parent.keyword is node


def _binders(nodes: Iterable[cst.CSTNode], _parents: Parents) -> dict[str, list[cst.CSTNode]]:
    found: dict[str, list[cst.CSTNode]] = {}
    for node in nodes:
        for name in set(bound_by(node)) if type(node) in BINDING else ():
            found.setdefault(name, []).append(node)
    return found


def _merged(parts: Iterable[Mapping[Key, list[NodeType]]]) -> dict[Key, list[NodeType]]:
    found: dict[Key, list[NodeType]] = {}
    for part in parts:
        for key, nodes in part.items():
            if key in found:
                found[key] += nodes
            else:
                found[key] = [*nodes]
    return found
