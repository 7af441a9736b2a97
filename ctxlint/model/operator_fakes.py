"""Whether the fake of a custom operator takes its arguments, and returns as many tensors, of the same kind.

Torch calls a fake as the operator is called, without trailing arguments that are its defaults, and believes it.
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from ctxlint.model.function import FakeFault, FakeMismatch
from ctxlint.model.index.module_backwards import span_of_name
from ctxlint.model.index.result_layouts import DEFAULT, FLOATING, LEADING, Laid, Size, results_of
from ctxlint.model.index.scopes import dotted_name
from ctxlint.model.interpreter.values import Sequence, Tri, is_tensor
from ctxlint.model.syntax import CHECKING
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.ast_tree import defaults_of, nodes_in, positional_names

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.operators import Fake
    from ctxlint.source.source import Span

    _Function = ast.FunctionDef | ast.AsyncFunctionDef


def unfit_arguments(unit: Unit, fake: Fake) -> FakeMismatch | None:
    """What is wrong with the parameters of a fake in a file; None if it takes all arguments, or that is unknown."""
    operator = fake.operator.unit.index.functions[fake.operator.qualname].node
    own, passed = _Parameters(fake.function.node.args), _Parameters(operator.args)
    if passed.rest or passed.others:
        return None
    span, name = span_of_name(unit, fake.function.node), operator.name
    required = own.required_beyond(passed)
    if required:
        return FakeMismatch(span, name, FakeFault.REQUIRED, required)
    shifted = own.shifted_against(passed)
    if shifted and own.rest:
        return _shifted(unit, fake, operator, shifted)
    untaken = own.missing_of(passed)
    if untaken:
        missing = own.lacking_of(passed) or (*shifted[:-1], *untaken[max(len(shifted) - 1, 0) :])
        instead = shifted[-1] if shifted and missing == shifted[:-1] else ""
        stray, some = own.moves_back(passed) or bool(shifted and not instead), passed.defaults.keys() >= {*untaken}
        fault = FakeFault.NOT_TAKEN
        return FakeMismatch(span, name, fault, missing, sometimes=some, stray=stray, untaken=untaken, instead=instead)
    moved = own.moved_against(passed)
    names = tuple(own.positional[moved])
    if _reads(fake.function.node, names):
        code = tuple(each for name in names if (each := _code_of(unit, fake.function.node.args, name)) is not None)
        ordered = tuple(passed.positional[moved])
        return FakeMismatch(span, name, FakeFault.ORDER, names, spans=code, ordered=ordered)
    lacking = own.without_default_of(passed)
    if lacking:
        default = ast.unparse(next(iter(lacking.values()))) if len(lacking) == 1 else ""
        return FakeMismatch(span, name, FakeFault.DEFAULT, tuple(lacking), default)
    return _number_for_tensor(unit, fake.function.node, operator, len(own.positional)) if own.rest else None


def _shifted(unit: Unit, fake: Fake, operator: _Function, shifted: tuple[str, ...]) -> FakeMismatch | None:
    """The missing parameters before one that a fake with ``*args`` reads, or whose ``*args`` has a number for a tensor.

    They are to be added only if that leaves no number for a tensor, and moves no element away that fits.
    """
    own, (*missing, first) = fake.function.node, shifted
    names = positional_names(own.args)
    number = _number_for_tensor(unit, own, operator, len(names))
    if number is None and not _reads_shifted(own, operator, names[names.index(first) :]):
        return None
    added = _number_for_tensor(unit, own, operator, len(names) + len(missing))
    rest = (own.args.vararg.arg,) if own.args.vararg is not None else ()
    stray = added is not None or (number is None and _reads(own, rest))
    return FakeMismatch(span_of_name(unit, own), operator.name, FakeFault.SHIFTED, shifted, stray=stray)


def _reads_shifted(fake: _Function, operator: _Function, names: list[str]) -> bool:
    """Whether a fake reads any of its parameters ``names``, and none that the operator has as numbers as a tensor."""
    there = {each.arg: getattr(each.annotation, "id", "") for each in (*operator.args.posonlyargs, *operator.args.args)}
    nodes = [node for statement in fake.body for node in nodes_in(statement)]
    tensors = {dotted_name(each) for node in nodes if (each := _used_as_tensor(node)) is not None}
    return _reads(fake, tuple(names)) and not any(each in tensors and there.get(each) in _NUMBERS for each in names)


def _number_for_tensor(unit: Unit, fake: _Function, operator: _Function, first: int) -> FakeMismatch | None:
    """An element of the ``*args`` of a fake that is a number, by the annotation of the operator, used as a tensor.

    ``first`` is the number of the operator's parameters before them.
    """
    rest = fake.args.vararg
    there = [*operator.args.posonlyargs, *operator.args.args][first:]
    nodes = [node for statement in fake.body for node in nodes_in(statement)]
    if rest is None or any(isinstance(each, ast.Name) and each.id == rest.arg and not _is_read(each) for each in nodes):
        return None
    for each in nodes:
        element = _used_as_tensor(each)
        if not isinstance(element, ast.Subscript) or dotted_name(element.value) != rest.arg:
            continue
        at = _whole_number(element.slice)
        usable = at is not None and (at < len(there) if at >= 0 else -len(there) <= at and not operator.args.defaults)
        meant = there[at] if at is not None and usable else None
        kind = getattr(meant.annotation, "id", "") if meant is not None else ""
        if meant is not None and kind in _NUMBERS:
            names = (ast.unparse(element), meant.arg, kind)
            return FakeMismatch(unit.source.span_of(element), operator.name, FakeFault.NO_TENSOR, names)
    return None


def _whole_number(node: ast.expr) -> int | None:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    value = inner.value if isinstance(inner, ast.Constant) else None
    return (-value if negative else value) if type(value) is int else None


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _used_as_tensor(node: ast.AST) -> ast.expr | None:
    """What an expression uses as only a tensor can be: ``torch.empty_like(x)``, ``x.shape``, ``x.new_empty(2)``."""
    if isinstance(node, ast.Attribute):
        return node.value if node.attr in _OF_TENSORS or node.attr.startswith("new_") else None
    called = dotted_name(node.func) or "" if isinstance(node, ast.Call) and node.args else ""
    return (
        node.args[0]
        if isinstance(node, ast.Call) and called.startswith("torch.") and called.endswith("_like")
        else None
    )


_NUMBERS = ("int", "float", "bool", "str")
_OF_TENSORS = frozenset({"device", "dim", "dtype", "ndim", "numel", "shape", "size", "stride"})


def _reads(function: ast.FunctionDef | ast.AsyncFunctionDef, names: tuple[str, ...]) -> bool:
    inside = (node for statement in function.body for node in nodes_in(statement)) if names else ()
    return any(isinstance(node, ast.Name) and node.id in names for node in inside)


def _code_of(unit: Unit, arguments: ast.arguments, name: str) -> Span | None:
    """The code of a parameter without a default, with its annotation."""
    own = next(each for each in (*arguments.posonlyargs, *arguments.args) if each.arg == name)
    return unit.source.span_of(own) if name not in defaults_of(arguments) else None


class _Parameters:
    """The parameters of a function."""

    def __init__(self, arguments: ast.arguments) -> None:
        self.positional = positional_names(arguments)
        self.by_name = [each.arg for each in arguments.kwonlyargs]
        self.nameable = {each.arg for each in chain(arguments.args, arguments.kwonlyargs)}
        self.defaults = defaults_of(arguments)
        self.rest = arguments.vararg is not None
        self.others = arguments.kwarg is not None

    def required_beyond(self, passed: _Parameters) -> tuple[str, ...]:
        """Those without default that get no argument."""
        given = {*self.positional[: len(passed.positional)], *passed.by_name}
        return tuple(each for each in (*self.positional, *self.by_name) if each not in {*given, *self.defaults})

    def missing_of(self, passed: _Parameters) -> tuple[str, ...]:
        """The parameters of the operator whose arguments are not taken."""
        surplus = [] if self.rest else passed.positional[len(self.positional) :]
        return (*surplus, *(each for each in passed.by_name if not self.others and each not in self.nameable))

    def lacking_of(self, passed: _Parameters) -> tuple[str, ...]:
        """The parameters of the operator that are missing, if all others are there by name, and in their order."""
        lacking = [each for each in passed.positional if each not in self.positional]
        others = [each for each in passed.positional if each in self.positional]
        named = not self.rest and others == self.positional and {*passed.by_name} <= self.nameable
        return tuple(lacking) if named else ()

    def shifted_against(self, passed: _Parameters) -> tuple[str, ...]:
        """The first parameters of the operator that are missing before others of its names, and the one in their place.

        Nothing if none are missing there.
        """
        for at, (here, there) in enumerate(zip(self.positional, passed.positional)):
            if here != there:
                later = passed.positional[at:]
                if len(self.positional) >= len(passed.positional) or here not in later:
                    return ()
                missing = later[: later.index(here)]
                return (*missing, here) if {*missing}.isdisjoint(self.positional) else ()
        return ()

    def moves_back(self, passed: _Parameters) -> bool:
        """Whether one comes later than in the operator, as another one is before it."""
        places = {name: at for at, name in enumerate(passed.positional)}
        return any(places.get(name, at) < at for at, name in enumerate(self.positional))

    def moved_against(self, passed: _Parameters) -> slice:
        """Those from the first to the last in another place than in the operator; none if there are others."""
        pairs = [*zip(self.positional, passed.positional)]
        at = [number for number, (here, there) in enumerate(pairs) if here != there]
        permuted = sorted(self.positional) == sorted(passed.positional) and not self.rest
        return slice(at[0], at[-1] + 1) if at and permuted else slice(0)

    def without_default_of(self, passed: _Parameters) -> dict[str, ast.expr]:
        """Those that lack the default that the operator has there."""
        pairs = [*zip(self.positional, passed.positional), *((each, each) for each in passed.by_name)]
        taken = {here: passed.defaults[there] for here, there in pairs if there in passed.defaults}
        return {here: default for here, default in taken.items() if here in self.nameable and here not in self.defaults}


class Counts(NamedTuple):
    """How many tensors an operator and its fake return; None for one tensor, without a tuple.

    ``annotated``: nothing but the annotation shows what the operator returns. Torch does not compare it with the body.
    """

    expected: int | None
    returned: int | None
    annotated: bool = False


def unfit_result(value: Value, operator: ast.FunctionDef | ast.AsyncFunctionDef) -> Counts | None:
    """How many tensors an operator, and its fake, return; None if they may agree."""
    inside = operator.returns.slice if isinstance(operator.returns, ast.Subscript) else None
    expected = len(inside.elts) if isinstance(inside, ast.Tuple) else None
    if not isinstance(value, Sequence):
        return Counts(expected, None) if expected is not None and is_tensor(value) is Tri.YES else None
    returned = len(value.slots)
    if not value.exact or value.kind not in ("tuple", "list") or returned == expected:
        return None
    written = _numbers_written(operator) if expected is not None else set()
    if returned in written:
        return None
    return Counts(expected, returned, annotated=expected is not None and written != {expected})


def _numbers_written(operator: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int | None]:
    """The numbers of values in the returns of an operator, with None for one that is not written out as a tuple."""
    values = [each.value for each in nodes_in(operator) if isinstance(each, ast.Return)]
    return {len(each.elts) if isinstance(each, ast.Tuple) and not _has_star(each) else None for each in values}


def _has_star(display: ast.Tuple) -> bool:
    return any(isinstance(each, ast.Starred) for each in display.elts)


def unlike_results(unit: Unit, fake: Fake) -> Iterator[FakeMismatch]:
    """The results of a fake in a file whose sizes, dtype or strides are not those of the operator's result."""
    operator = fake.operator.unit.index.functions[fake.operator.qualname].node
    own, passed = _Parameters(fake.function.node.args), _Parameters(operator.args)
    if own.others or passed.rest or passed.others:
        return
    annotated = (*operator.args.posonlyargs, *operator.args.args, *operator.args.kwonlyargs)
    written = {each.arg: ast.unparse(each.annotation) for each in annotated if each.annotation is not None}
    numbers = frozenset(name for name, text in written.items() if "Tensor" not in text)
    names = dict(zip(own.positional, passed.positional)) | {each: each for each in passed.by_name}
    here = results_of(fake.function.node, names, frozenset(each for each in names if names[each] in numbers))
    if not here.complete or len({len(each) for each in here.returns}) != 1:
        return
    there = results_of(operator, {name: name for name in written}, numbers)
    alike = [each for each in there.returns if len(each) == len(here.returns[0])]
    tested = _tested(operator) if alike else _Tested(frozenset(), frozenset())
    for at in range(len(here.returns[0])):
        ours = [each[at] for each in here.returns]
        wrong = [(result[at], found) for result in alike if (found := _always(ours, result[at][1], tested)) is not None]
        if wrong:
            (node, _), found = wrong[0]
            some = len(wrong) < len(there.returns) or not there.complete
            if some and _chosen_by_sizes(operator, written, node):
                continue  # torch checks nothing of an empty tensor, and strides of a size of 1 do not matter
            source = fake.operator.unit.source
            yield FakeMismatch(
                unit.source.span_of(ours[0][0]),
                operator.name,
                found.fault,
                at=at if len(here.returns[0]) > 1 else None,
                here=found.here,
                there=found.there,
                of=found.of,
                on_a_path=(fake.operator.unit.path, source.span_of(node)) if some else None,
            )


def _always(ours: list[tuple[ast.expr, Laid | None]], theirs: Laid | None, tested: _Tested) -> _Difference | None:
    """How the result of every return of a fake differs from one of the operator's; None if one may agree."""
    first: _Difference | None = None
    for _node, laid in ours:
        found = _difference(laid, theirs) if laid is not None and theirs is not None else None
        if laid is None or theirs is None or found is None:
            return None
        given = found.of or (found.fault in _OF_SHAPES and (laid.like or theirs.like))
        if given and tested.attributes & _ABOUT[found.fault]:
            return None
        if found.fault is FakeFault.LAYOUT and found.of in tested.vectors:
            return None  # a new tensor like a vector is contiguous, whatever its stride
        first = first or found
    return first


def _chosen_by_sizes(operator: _Function, annotations: Mapping[str, str], result: ast.expr) -> bool:
    """Whether sizes, or numbers that may be sizes, choose whether it returns ``result``: it may be for empty tensors.

    After ``if x.numel() == 0: return ...``, it is not.
    """
    nodes = nodes_in(operator)
    own = {each.id for each in nodes if isinstance(each, ast.Name) and not _is_read(each)}
    own |= {name for name, text in annotations.items() if "Tensor" not in text and text not in _NO_SIZES}
    choices = [each for each in nodes if isinstance(each, (ast.If, ast.IfExp)) and _asks_sizes(each.test, own)]
    return any(result in nodes_in(each) or not _is_for_empty(each.test) for each in choices)


_NO_SIZES = ("bool", "str", "torch.dtype")


def _asks_sizes(test: ast.expr, own: Container[str]) -> bool:
    """Whether a test is about sizes, or names of the operator's ``own`` that may hold some."""
    return any(
        (isinstance(each, ast.Attribute) and each.attr in _SIZES)
        or (isinstance(each, ast.Name) and (each.id == "len" or each.id in own))
        for each in nodes_in(test)
    )


def _is_for_empty(test: ast.expr) -> bool:
    """Whether it is ``x.numel() == 0`` or ``not x.numel()``."""
    if isinstance(test, ast.UnaryOp):
        asked, empty = test.operand, isinstance(test.op, ast.Not)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        right = test.comparators[0]
        asked, empty = test.left, isinstance(right, ast.Constant) and right.value == 0
    else:
        return False
    return empty and isinstance(asked, ast.Call) and (dotted_name(asked.func) or "").endswith(".numel")


class _Tested(NamedTuple):
    """The attributes that an operator mentions in a test, and the parameters that it tests for being vectors."""

    attributes: frozenset[str]
    vectors: frozenset[str]


def _tested(operator: ast.FunctionDef | ast.AsyncFunctionDef) -> _Tested:
    """What an operator mentions in a comparison, an assertion or a test.

    All that matter if it calls a function that is named as one that checks arguments.
    """
    nodes = nodes_in(operator)
    tests = [each.test for each in nodes if isinstance(each, (ast.Assert, ast.If, ast.IfExp))]
    compared = [each for each in nodes if isinstance(each, ast.Compare)]
    calls = [each for each in nodes if isinstance(each, ast.Call) and each.args]
    vectors = frozenset(name for each in compared for name in _as_vectors(each))
    if any(CHECKING.search(dotted_name(each.func) or "") for each in calls):
        return _Tested(frozenset().union(*_ABOUT.values()), vectors)
    called = [each.args[0] for each in calls if _asks(each.args[0])]
    inside = (node for each in (*tests, *compared, *called) for node in nodes_in(each))
    return _Tested(frozenset(each.attr for each in inside if isinstance(each, ast.Attribute)), vectors)


def _as_vectors(test: ast.Compare) -> Iterator[str]:
    """The tensor whose number of dimensions a test compares with 1: ``x.dim() != 1``, ``x.ndim == 1``."""
    asked = test.left.func if isinstance(test.left, ast.Call) else test.left
    one = any(isinstance(each, ast.Constant) and each.value == 1 for each in test.comparators)
    if one and isinstance(asked, ast.Attribute) and asked.attr in ("dim", "ndim", "ndimension"):
        yield dotted_name(asked.value) or ""


def _asks(node: ast.expr) -> bool:
    """Whether an argument is about a property of a tensor, not about its sizes."""
    return not any(isinstance(each, ast.Attribute) and each.attr in _SIZES for each in nodes_in(node))


_SIZES = frozenset({"shape", "size", "numel", "nelement"})
_OF_SHAPES = frozenset({FakeFault.DIMENSIONS, FakeFault.SIZES})
_ABOUT = {
    FakeFault.DIMENSIONS: frozenset({"dim", "ndim", *_SIZES}),
    FakeFault.SIZES: _SIZES,
    FakeFault.DTYPE: frozenset({"dtype"}),
    FakeFault.LAYOUT: frozenset({"is_contiguous", "stride"}),
}
"""What an operator may test, so that what would make a difference never gets there."""


class _Difference(NamedTuple):
    """What differs between a result of a fake, and that of the operator, as in ``FakeMismatch``."""

    fault: FakeFault
    here: str
    there: str
    of: str = ""


def _difference(ours: Laid, theirs: Laid) -> _Difference | None:
    """The first certain difference between what a fake and its operator return."""
    return _other_sizes(ours, theirs) or _other_dtype(ours, theirs) or _other_layout(ours, theirs)


def _other_sizes(ours: Laid, theirs: Laid) -> _Difference | None:
    if ours.like and theirs.like:
        if ours.like != theirs.like or ours.fewer == theirs.fewer:
            return None
        return _Difference(FakeFault.DIMENSIONS, _dimensions(ours), _dimensions(theirs))
    one, other = (_counted(each) for each in (ours, theirs))
    if one is not None and other is not None:
        if one == other:
            return None
        return _Difference(FakeFault.DIMENSIONS, _dimensions(ours), _dimensions(theirs))
    if (theirs.sizes == () and ours.like) or (ours.sizes == () and theirs.like):
        return _Difference(FakeFault.DIMENSIONS, _dimensions(ours), _dimensions(theirs))
    if ours.like and not ours.fewer and theirs.sizes:
        last = _replaced_last(ours.like, theirs.sizes)
        return _Difference(FakeFault.SIZES, ours.like, last) if last else None
    return None


def _counted(laid: Laid) -> int | None:
    """The number of dimensions, if the sizes are written out."""
    whole = laid.sizes is None or any(each.at == LEADING for each in laid.sizes)
    return None if whole or laid.sizes is None else len(laid.sizes)


def _dimensions(laid: Laid) -> str:
    """The number of dimensions in words."""
    if laid.fewer:
        return f"{laid.fewer} dimension{'s' * (laid.fewer > 1)} less than `{laid.like}`"
    if laid.sizes is None:
        return f"the dimensions of `{laid.like}`"
    return "1 dimension" if len(laid.sizes) == 1 else f"{len(laid.sizes)} dimensions"


def _replaced_last(tensor: str, sizes: tuple[Size, ...]) -> str:
    """The code of the last size, if all others are those of a tensor, and it is another one."""
    *leading, last = sizes
    count = len(sizes)
    own = [each.of == tensor and each.at in (at, at - count, LEADING) for at, each in enumerate(leading)]
    if not leading or not all(own):
        return ""
    if last.text:
        return last.text
    return f"{last.of}.shape[{last.at}]" if last.of and last.of != tensor and last.at != LEADING else ""


def _other_dtype(ours: Laid, theirs: Laid) -> _Difference | None:
    if ours.dtype and theirs.dtype:
        dtypes = {ours.dtype, theirs.dtype}
        same = len(dtypes) == 1 or (DEFAULT in dtypes and dtypes <= {DEFAULT, *FLOATING})
        return _Difference(FakeFault.DTYPE, ours.dtype, theirs.dtype) if not same else None
    of = ours.dtype_of or theirs.dtype_of
    if not of or not (ours.dtype or theirs.dtype):
        return None
    return _Difference(FakeFault.DTYPE, ours.dtype, theirs.dtype, of)


def _other_layout(ours: Laid, theirs: Laid) -> _Difference | None:
    if ours.order and theirs.order:
        return _Difference(FakeFault.LAYOUT, ours.order, theirs.order) if ours.order != theirs.order else None
    of = ours.order_of or theirs.order_of
    order = ours.order or theirs.order
    return _Difference(FakeFault.LAYOUT, ours.order, theirs.order, of) if of and order else None
