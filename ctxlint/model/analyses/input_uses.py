"""How a method uses its arguments, as evidence of whether they are tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend, steps
from ctxlint.model.function import RETURNED, Evidence, Trust
from ctxlint.model.interpreter.local_names import captured_by, target_names
from ctxlint.model.interpreter.type_tests import type_test
from ctxlint.model.syntax import children, dotted, literal_integer, single_index
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api import operations, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Sequence as SequenceOf


class InputUses(NamedTuple):
    """What uses show of inputs, by name."""

    evidence: dict[str, list[Evidence]]
    none_tests: dict[str, list[Evidence]]


class _Point(NamedTuple):
    """A walk before one of the statements: its state, how much it has found, and the steps that it took until there."""

    open: dict[str, str]
    locals: set[str]
    arrays: set[str]
    called: cst.Attribute | None
    returns: bool
    found: tuple[int, ...]
    tests: tuple[int, ...]
    taken: int


class WalkedUses(NamedTuple):
    """The uses in a body, statement by statement, so that the next walk begins at the first one that has changed."""

    uses: InputUses
    statements: tuple[cst.CSTNode, ...] = ()
    points: tuple[_Point, ...] = ()


class Uses:
    """Collects how a method uses names (``x``), attributes (``ctx.x``), items (``inputs[0]``), until rebound.

    An alias of one of them, ``w = ctx.weight``, counts as well. ``evidence`` holds the result, by name.
    """

    def __init__(self, names: Iterable[str], canonical: Callable[[cst.BaseExpression], str | None]) -> None:
        """Watch ``names``; ``canonical`` resolves the dotted names of callees."""
        self.open = {name: name for name in names}
        self.evidence: dict[str, list[Evidence]] = {name: [] for name in self.open}
        self.none_tests: dict[str, list[Evidence]] = {name: [] for name in self.open}
        """The tests for None, by name."""
        self.locals = {name.partition("[")[0] for name in self.open}
        self.holders = {name.partition("[")[0] for name in self.open if "[" in name}
        """The names whose items are watched."""
        self.resolve = canonical
        self.arrays: set[str] = set()
        """The local names that are bound to arrays."""
        self.called: cst.Attribute | None = None
        """What the call being visited calls."""
        self.certain = True
        """Whether the code being visited runs in each call, unless something raises."""
        self.returns = False
        """Whether a call may have returned before."""

    def walk_body(self, body: cst.BaseSuite, earlier: WalkedUses | None = None) -> WalkedUses:
        """Visit a body.

        ``earlier`` is a walk for the same names over another version of it, with the same code around.
        """
        begun, start = steps.left, 0
        statements, points = tuple(children(body)), list[_Point]()
        if earlier is not None:
            most = min(len(statements), len(earlier.points) - 1)
            start = next((at for at in range(most) if statements[at] is not earlier.statements[at]), max(most, 0))
            points += earlier.points[:start]
        if earlier is not None and start > 0:
            self._continue(earlier.uses, earlier.points[start])
            spend(earlier.points[start].taken - (begun - steps.left))
        for statement in statements[start:]:
            points.append(self._point(begun - steps.left))
            if type(statement) not in _NOTHING_INSIDE:
                self.walk(statement)
        return WalkedUses(InputUses(self.evidence, self.none_tests), statements, tuple(points))

    def _point(self, taken: int) -> _Point:
        found, tests = (tuple(map(len, each.values())) for each in (self.evidence, self.none_tests))
        return _Point(
            dict(self.open), set(self.locals), set(self.arrays), self.called, self.returns, found, tests, taken
        )

    def _continue(self, known: InputUses, point: _Point) -> None:
        """Continue an earlier walk from here."""
        self.open, self.called = dict(point.open), point.called
        self.returns, self.certain = point.returns, not point.returns
        self.locals, self.arrays = set(point.locals), set(point.arrays)
        self.evidence = {name: found[:at] for (name, found), at in zip(known.evidence.items(), point.found)}
        self.none_tests = {name: found[:at] for (name, found), at in zip(known.none_tests.items(), point.tests)}

    def walk(self, node: cst.CSTNode) -> None:
        """Visit a node and its descendants, in the order of execution where that matters."""
        visit = _VISITS.get(type(node), Uses.inside)
        certain = self.certain
        self.certain = certain and not isinstance(node, _BRANCHES)
        visit(self, node)
        self.certain = certain and not self.returns

    def inside(self, node: cst.CSTNode) -> None:
        """Visit the descendants of a node."""
        for child in children(node):
            if type(child) not in _NOTHING_INSIDE:
                self.walk(child)

    def skip(self, node: cst.CSTNode) -> None:
        """Code that runs at another time, or never."""

    # The names

    def canonical(self, node: cst.BaseExpression) -> str | None:
        """The dotted name that an expression refers to; None if it begins with a local name of the method."""
        path = dotted(node)
        own = path is not None and path.partition(".")[0] in self.locals  # a parameter may be called `input` or `max`
        return None if own else self.resolve(node)

    def known(self, node: cst.CSTNode | None) -> str | None:
        """Which of the names an expression is, if any."""
        if isinstance(node, (cst.Name, cst.Attribute)):
            path = dotted(node)
        else:
            path = _item_path(node) if isinstance(node, cst.Subscript) else None
        return self.open.get(path) if path is not None else None

    def unpacked(self, value: cst.BaseExpression | None, elements: SequenceOf[cst.BaseElement]) -> list[str | None]:
        """The watched name of each element of ``x, y = value``, if all items of ``value`` are watched."""
        if not isinstance(value, cst.Name) or value.value not in self.holders:
            return [None] * len(elements)
        holder = value.value
        length = sum(path.startswith(f"{holder}[") for path in self.open)
        star = next((at for at, each in enumerate(elements) if isinstance(each, cst.StarredElement)), None)
        known = star if star is not None else len(elements) if len(elements) == length else 0
        return [self.open.get(f"{holder}[{at}]") if at < known else None for at in range(len(elements))]

    def add(self, node: cst.CSTNode, tensor: bool, trust: Trust, reason: str, *, container: bool = False) -> None:
        """Record a use, if ``node`` is one of the names."""
        name = self.known(node)
        if name is not None:
            self.evidence[name].append(Evidence(tensor, trust, reason, node, container=container))

    def undecided(self, node: cst.CSTNode, reason: str) -> None:
        """Record that the method itself tests the type."""
        for tensor in (True, False):
            self.add(node, tensor, Trust.STRONG, reason)

    def target(
        self, target: cst.BaseExpression, value: cst.BaseExpression | None = None, alias: str | None = None
    ) -> None:
        """Bind a target, to ``value`` if that belongs to this target alone."""
        if isinstance(target, cst.Name):
            alias = alias or self.known(value)
            self.rebind(target.value)
            (self.arrays.add if value is not None and self.is_array(value) else self.arrays.discard)(target.value)
            if alias is not None:
                self.open[target.value] = alias
                self.locals.add(target.value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            values = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
            paired = len(values) == len(target.elements)
            aliases = self.unpacked(value, target.elements)
            for at, element in enumerate(target.elements):
                self.target(element.value, values[at].value if paired else None, aliases[at])
        elif isinstance(target, cst.StarredElement):
            self.target(target.value)
        else:
            self.walk(target)

    def rebind(self, name: str) -> None:
        """A name is rebound: it and its items have other values from here on."""
        self.open.pop(name, None)
        if name in self.holders:
            self.open = {path: known for path, known in self.open.items() if not path.startswith(f"{name}[")}

    # What binds names

    def assignment(self, node: cst.Assign | cst.AnnAssign | cst.AugAssign | cst.NamedExpr) -> None:
        """``x = …``, ``x: T = …``, ``x += …``, ``(x := …)``."""
        if node.value is not None:
            self.walk(node.value)
        if isinstance(node, cst.AugAssign):
            return
        for target in [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]:
            self.target(target, node.value)

    def loop(self, node: cst.For) -> None:
        """``for x in …``."""
        self.walk(node.iter)
        self.target(node.target)
        self.walk(node.body)
        if node.orelse is not None:
            self.walk(node.orelse)

    def comprehension(self, node: cst.BaseComp) -> None:
        """A comprehension: its targets are in a scope of their own."""
        outside = dict(self.open)
        clause: cst.CompFor | None = getattr(node, "for_in", None)
        while clause is not None:
            for name in target_names(clause.target):
                self.rebind(name)
            clause = clause.inner_for_in
        self.inside(node)
        self.open = outside

    def named(self, node: cst.AsName) -> None:
        """``with … as x``, ``except … as x``, ``import … as x``."""
        self.target(node.name)

    def imported(self, node: cst.ImportAlias) -> None:
        """``import x``."""
        self.rebind(node.evaluated_alias or node.evaluated_name.partition(".")[0])

    def definition(self, node: cst.FunctionDef | cst.ClassDef) -> None:
        """``def x(): …`` rebinds the name. The body runs at another time."""
        self.rebind(node.name.value)

    def pattern(self, node: cst.CSTNode) -> None:
        """``case x:``."""
        for name in captured_by(node):
            self.rebind(name)
        self.inside(node)

    def deletion(self, node: cst.Del) -> None:
        """``del x``."""
        for name in target_names(node.target):
            self.rebind(name)

    # Evidence

    def attribute(self, node: cst.Attribute) -> None:
        """``x.is_cuda``."""
        name = node.attr.value
        if name in operations.TENSOR_ONLY_ATTRIBUTES:
            self.add(node.value, True, Trust.STRONG, f"`.{name}` is read")
        elif name in operations.TENSOR_LIKE_NAMES:
            use = f"`.{name}()` is called" if node is self.called else f"`.{name}` is read"
            self.add(node.value, True, Trust.HINT, use)
        self.inside(node)

    def operation(self, node: cst.BinaryOperation) -> None:
        """``x @ y``."""
        if isinstance(node.operator, cst.MatrixMultiply):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if self.is_array(other):  # torch accepts no array there
                    self.add(side, False, Trust.STRONG, "it is an operand of `@` with an array")
                else:
                    self.add(side, True, Trust.STRONG, "it is an operand of `@`")
        self.inside(node)

    def is_array(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is certainly an array of numpy, or of a library built on it."""
        if isinstance(node, cst.Name):
            return node.value in self.arrays
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            return self.is_array(node.value)
        if isinstance(node, cst.BinaryOperation):
            return self.is_array(node.left) or self.is_array(node.right)
        if not isinstance(node, cst.Call):
            return False
        if isinstance(node.func, cst.Attribute) and (node.func.attr.value == "numpy" or self.is_array(node.func.value)):
            return True
        return (self.canonical(node.func) or "").startswith(("numpy.", "scipy.", "cupy."))

    def comparison(self, node: cst.Comparison) -> None:
        """``x == "mean"``, ``x in ("mean", "sum")``, ``x is None``."""
        left = node.left
        for part in node.comparisons:
            right = part.comparator
            if isinstance(part.operator, (cst.Equal, cst.NotEqual)):
                for one, other in ((left, right), (right, left)):
                    if isinstance(other, cst.SimpleString):
                        self.add(one, False, Trust.STRONG, "it is compared with a string")
                    elif isinstance(other, (cst.Integer, cst.Float)):
                        self.add(one, False, Trust.HINT, "it is compared with a number")
            elif isinstance(part.operator, (cst.In, cst.NotIn)) and _strings_only(right):
                self.add(left, False, Trust.STRONG, "it is looked up among strings")
            elif isinstance(part.operator, (cst.Is, cst.IsNot)) and isinstance(right, cst.Name):
                name = self.known(left)
                if name is not None and right.value == "None":
                    self.none_tests[name].append(Evidence(False, Trust.HINT, "it is tested for None", node))
            left = right
        self.inside(node)

    def subscript(self, node: cst.Subscript) -> None:
        """``y.shape[x]``."""
        holder = node.value
        index = single_index(node)
        if isinstance(holder, cst.Attribute) and holder.attr.value == "shape" and index is not None:
            self.add(index, False, Trust.STRONG, "a shape is indexed with it")
        elif isinstance(holder, cst.Dict) and index is not None and _has_string_keys(holder):
            self.add(index, False, Trust.STRONG, "it is looked up among strings")
        self.inside(node)

    def returned(self, node: cst.Return) -> None:
        """``return x``."""
        if node.value is not None:
            self.add(node.value, True, Trust.FAIR, RETURNED)
        self.inside(node)
        self.returns = True

    def asserted(self, node: cst.Assert) -> None:
        """``assert isinstance(x, torch.Tensor)``."""
        self.holds(node.test)

    def conditional(self, node: cst.If) -> None:
        """``if not isinstance(x, int): raise TypeError`` is an assertion, too."""
        raises = node.orelse is None and _only_raises(node.body)
        tests = _alternatives(node.test) if raises else []
        for test in tests:
            if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
                self.holds(test.expression)
            else:
                self.walk(test)
        if raises:
            self.walk(node.body)
        else:
            self.inside(node)

    def holds(self, test: cst.BaseExpression) -> None:
        """A condition that holds from here on; each part of ``a and b``."""
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            self.holds(test.left)
            self.holds(test.right)
            return
        asked = type_test(test, self.canonical)
        if asked is None:
            self.walk(test)
            return
        subject, classes = asked
        if all(name in types.TENSOR_ANNOTATIONS for name in classes):
            self.add(subject, True, Trust.STRONG, "it is asserted to be a tensor")
        elif all(name in _PLAIN_CLASSES for name in classes):
            self.add(subject, False, Trust.STRONG, "it is asserted to be something else")
        else:
            self.undecided(subject, "its type is tested")

    # Calls

    def call(self, node: cst.Call) -> None:
        """``x.f()``, ``x()``, ``f(x)``."""
        func = node.func
        callee = self.canonical(func)
        if callee is not None:
            self.function(node, callee)
        elif isinstance(func, cst.Attribute):
            self.method(node, func)
            self.called = func
        self.add(func, False, Trust.STRONG, "it is called")
        self.inside(node)

    def method(self, node: cst.Call, func: cst.Attribute) -> None:
        """``x.contiguous()``, ``y.unsqueeze(x)``, ``ctx.save_for_backward(x)``."""
        name = func.attr.value
        if operations.shows_tensor(name, len(node.args)) or (name == "size" and _names_a_dimension(node)):
            self.add(func.value, True, Trust.STRONG, f"`.{name}()` is called")
        for argument in node.args:
            if name in _CONTEXT_METHODS_OF_TENSORS and argument.star:
                self.add(argument.value, False, Trust.HINT, f"its elements are passed to `{name}`")
            elif name in _CONTEXT_METHODS_OF_TENSORS:
                self.add(argument.value, True, Trust.FAIR, f"it is passed to `{name}`")
            elif name in _DIMENSIONS_FIRST and not argument.star:
                self.add(argument.value, False, Trust.STRONG, f"it is passed to `.{name}()`")
            elif name in operations.TENSOR_METHODS:
                self.keyword(argument)
        if name in _STRING_METHODS:
            self.add(func.value, False, Trust.STRONG, f"`.{name}()` is called")

    def function(self, node: cst.Call, callee: str) -> None:
        """A call of something with a known name."""
        space, _, name = callee.rpartition(".")
        plain = [argument.value for argument in node.args if argument.keyword is None and not argument.star]
        if callee in _NEVER_TENSORS:
            for argument in plain[_NEVER_TENSORS[callee]]:
                self.add(argument, False, Trust.STRONG, f"it is passed to `{name}`")
        elif callee in _TYPE_TESTS and plain:
            asked = type_test(node, self.canonical)
            if asked is None or not types.DISTRIBUTED_TENSORS.issuperset(asked[1]):
                self.undecided(plain[0], "its type is tested")
        elif callee.startswith("numpy.") and plain:
            self.undecided(plain[0], "numpy computes with it")  # an array or a list, as a rule; or a tensor on the CPU
        elif f"{space}." in operations.TORCH_NAMESPACES and name in _TENSOR_FIRST and plain:
            self.add(node.args[0].value, True, Trust.STRONG, f"it is passed to `{name}`")
        elif space == "torch" and name in _SEQUENCE_FIRST and plain and self.certain:
            self.add(node.args[0].value, False, Trust.STRONG, f"it is passed to `{name}`", container=True)
        elif space == "torch" and name in _SIZES_FIRST:
            for argument in plain:
                self.add(argument, False, Trust.STRONG, f"it is passed to `{name}` as a size")
        if callee.startswith("torch."):
            for each in node.args:
                self.keyword(each)

    def keyword(self, argument: cst.Arg) -> None:
        """``dim=x``: an argument of an operation of torch that is never a tensor."""
        if argument.keyword is not None and argument.keyword.value in _NON_TENSOR_KEYWORDS:
            self.add(argument.value, False, Trust.STRONG, f"it is passed as `{argument.keyword.value}=`")


_CONTEXT_METHODS_OF_TENSORS = frozenset(
    ["save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable"]
)

_DIMENSIONS_FIRST = frozenset(
    str.split(
        "unsqueeze squeeze permute transpose flatten chunk softmax log_softmax expand repeat reshape view sum_to_size"
        " new_empty new_ones new_zeros"
    )
)
"""Tensor methods whose arguments are all dimensions or sizes."""

_SEQUENCE_FIRST = frozenset(str.split("cat column_stack concat concatenate dstack hstack row_stack stack vstack"))
"""Torch functions that raise for one tensor in the place of a sequence of tensors."""

_SIZES_FIRST = frozenset(["zeros", "ones", "empty", "rand", "randn"])

_TYPE_TESTS = frozenset(["builtins.isinstance", "builtins.callable", "torch.is_tensor"])

_PLAIN_CLASSES = frozenset(
    f"builtins.{name}" for name in ("int", "float", "bool", "str", "list", "tuple", "dict", "set")
)

_TENSOR_FIRST = (operations.TENSOR_METHODS | {"empty_like", "rand_like", "randn_like", "full_like", "relu"}) - {
    "where",
    "pow",
    "add",
    "mul",
    "multiply",
    "kron",
    "all",
    "any",
    "arange",
    "randint",
    "randperm",
    "bernoulli",
    "get_rng_state",
    "maximum",
    "minimum",
}
"""Torch functions whose first argument can only be a tensor."""

_NON_TENSOR_KEYWORDS = frozenset(
    ["group", "dim", "dims", "dtype", "device", "keepdim", "async_op", "stride", "padding", "generator", "eps"]
)


_STRING_METHODS = frozenset(["startswith", "endswith", "lower", "upper", "strip", "encode"])
"""Methods of a string that tensors do not have."""

_NEVER_TENSORS = {
    "builtins.range": slice(None),
    **dict.fromkeys((f"builtins.{name}" for name in ("getattr", "hasattr", "setattr", "delattr")), slice(1, 2)),
    **dict.fromkeys(
        (
            f"torch.distributed.{name}"
            for name in ("get_world_size", "get_rank", "get_backend", "get_process_group_ranks", "barrier")
        ),
        slice(1),
    ),
    **dict.fromkeys(
        (
            f"{space}.{name}{number}d"
            for space in ("torch", "torch.nn.functional")
            for name in ("conv", "conv_transpose")
            for number in (1, 2, 3)
        ),
        slice(3, None),  # stride, padding and the like
    ),
    **dict.fromkeys(
        (f"torch.nn.grad.conv{number}d_{what}" for number in (1, 2, 3) for what in ("input", "weight")),
        slice(3, None),
    ),
    **dict.fromkeys(
        (
            f"{space}.{name}_pool{number}d"
            for space in ("torch", "torch.nn.functional")
            for name in ("max", "avg", "adaptive_max", "adaptive_avg")
            for number in (1, 2, 3)
        ),
        slice(1, None),
    ),
    **dict.fromkeys(
        (f"torch.nn.functional.{name}" for name in ("fold", "pixel_shuffle", "pixel_unshuffle", "unfold")),
        slice(1, None),
    ),
}
"""Functions, and which of their positional arguments are never tensors: numbers, names, process groups."""


def _has_string_keys(node: cst.Dict) -> bool:
    keys = [each.key if isinstance(each, cst.DictElement) else None for each in node.elements]
    return bool(keys) and all(isinstance(key, cst.SimpleString) for key in keys)


def _item_path(node: cst.Subscript) -> str | None:
    """``inputs[0]``, for an item of a name."""
    index = single_index(node)
    if not isinstance(index, cst.Integer) or not isinstance(node.value, cst.Name):
        return None
    return f"{node.value.value}[{literal_integer(index)}]"


def _names_a_dimension(call: cst.Call) -> bool:
    """Whether a call has one argument, a number or ``dim``: a method ``size`` may belong to any class."""
    if len(call.args) != 1:
        return False
    keyword, argument = call.args[0].keyword, call.args[0].value
    while isinstance(argument, cst.UnaryOperation):
        argument = argument.expression
    return keyword.value == "dim" if keyword is not None else isinstance(argument, cst.Integer)


def _strings_only(node: cst.BaseExpression) -> bool:
    if not isinstance(node, (cst.Tuple, cst.List, cst.Set)) or not node.elements:
        return False
    return all(isinstance(element.value, cst.SimpleString) for element in node.elements)


_NOTHING_INSIDE = frozenset({cst.Name, cst.SimpleString, cst.ConcatenatedString, cst.Integer, cst.Float, cst.Ellipsis})


def _only_raises(body: cst.BaseSuite) -> bool:
    """Whether a block is one ``raise``."""
    line = body.body[0] if len(body.body) == 1 else None
    return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(line.body[0], cst.Raise)


def _alternatives(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The parts of ``a or b``: all are false if the whole is."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        return [*_alternatives(test.left), *_alternatives(test.right)]
    return [test]


_BRANCHES = (cst.If, cst.IfExp, cst.BooleanOperation, cst.For, cst.While, cst.Try, cst.TryStar, cst.Match, cst.BaseComp)

_VISITS: dict[type, Callable[..., None]] = {
    cst.Assign: Uses.assignment,
    cst.AnnAssign: Uses.assignment,
    cst.AugAssign: Uses.assignment,
    cst.NamedExpr: Uses.assignment,
    cst.For: Uses.loop,
    cst.ListComp: Uses.comprehension,
    cst.SetComp: Uses.comprehension,
    cst.DictComp: Uses.comprehension,
    cst.GeneratorExp: Uses.comprehension,
    cst.AsName: Uses.named,
    cst.ImportAlias: Uses.imported,
    cst.FunctionDef: Uses.definition,
    cst.ClassDef: Uses.definition,
    cst.Lambda: Uses.skip,
    cst.Annotation: Uses.skip,
    cst.MatchAs: Uses.pattern,
    cst.MatchStar: Uses.pattern,
    cst.MatchMapping: Uses.pattern,
    cst.Del: Uses.deletion,
    cst.Attribute: Uses.attribute,
    cst.BinaryOperation: Uses.operation,
    cst.Comparison: Uses.comparison,
    cst.Subscript: Uses.subscript,
    cst.Return: Uses.returned,
    cst.Assert: Uses.asserted,
    cst.If: Uses.conditional,
    cst.Call: Uses.call,
}
