"""Views that merge dimensions: those, and no others, depend on the strides of a tensor.

How many dimensions a tensor has is what its own code says: it unpacks the shape, asserts the number, flattens all but
the last dimensions, or creates the tensor with so many sizes. Sizes of 1 are no dimensions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.values import Fresh, Parameter, View, before_star, is_input
from ctxlint.model.syntax import code_of, dotted, is_name, kept, last_name, parents_in, root_name, signed_integer
from ctxlint.torch_api.operations import CONTIGUOUS_FACTORIES, CONTIGUOUS_FACTORY_METHODS, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.function import FunctionClass, Operator, Returned
    from ctxlint.model.interpreter.values import Value

ALWAYS = 1
"""What a view needs that merges dimensions of any tensor that its function handles."""

_ANY = 99
"""The dimensions of a tensor of which the code handles any number."""

_UNSEEN = 2
"""What an input may certainly have that the code only computes with."""

_RESHAPING = ("view", "reshape")
_LIKE = ("view_as", "reshape_as", "expand_as")
_MATRICES = ("mm", "addmm", "t")
_PRODUCTS = ("matmul", "linear")
_KEEPING = frozenset(
    str.split(
        "abs add bfloat16 clone contiguous cos cpu cuda detach div double exp float half log mul neg permute pow relu "
        "requires_grad_ sigmoid sin sqrt square sub t tanh to transpose type type_as unsqueeze"
    )
)
"""What gives a tensor with the dimensions of its operand, apart from those of size 1."""

_OF_PYTHON = frozenset(
    str.split("bool float getattr hasattr int isinstance len list print range set str tuple type zip")
)
_RECEIVERS = ("ctx", "self", "cls")
_OF_CTX = ("mark_", "save_for_", "set_materialize_grads")
_OF_TORCH = frozenset(["torch", "F", "functional", "nn"])


def needed_by(function: cst.FunctionDef, call: cst.CSTNode, name: str) -> int:
    """The dimensions from which a ``view`` of ``name`` merges some; 0 if it may merge none, or that is unknown.

    ``ALWAYS``, if the function itself shows that it gets tensors with so many.
    """
    if not isinstance(call, cst.Call):
        return 0
    code = _Code(function)
    sizes = _written(call.args)
    if sizes is None:
        return ALWAYS if name and code.merges_first(call, name) else 0
    needed = 1 + sum(signed_integer(each) != 1 for each in sizes)
    known = code.said_of(name) if name else 0
    if known >= needed or (needed == 2 and not known and code.flattens_others(name)):
        return ALWAYS
    return 0 if known and code.is_exact(name) else needed


def dimensions_of_output(fn: FunctionClass, position: int | None) -> int:
    """The dimensions that an output has, in some calls that the code handles; the fewest of several; 0 if unknown."""
    forward = fn.forward
    if forward is None or not fn.outputs:
        return 0
    code = _Code(forward.node, _inputs_in_backward(fn))
    return min(_dimensions(code, each, position) for each in fn.outputs)


def dimensions_of_gradient(fn: FunctionClass, position: int, name: str) -> int:
    """The dimensions of an incoming gradient in some calls, as backward says, or those of its output; 0 if unknown."""
    said = _Code(fn.backward.node).said_of(name) if fn.backward is not None else 0
    return said or dimensions_of_output(fn, position)


def dimensions_of_result(operator: Operator, _position: int | None) -> int:
    """The same for the only output of an operator."""
    code = _Code(operator.function) if operator.function is not None else None
    returned = [each.value for each in code.parents if isinstance(each, cst.Return)] if code is not None else []
    return min((code.dimensions(each) if code and each is not None else 0 for each in returned), default=0)


def _inputs_in_backward(fn: FunctionClass) -> list[tuple[_Code, str]]:
    """Backward, with each input that it has under the same name, saved by forward."""
    backward = fn.backward
    if backward is None:
        return []
    values = {each.name: kept_value(fn, backward.value_of(each.name)) for each in fn.inputs}
    names = [name for name, value in values.items() if is_input(value) and value.name == name]
    code = _Code(backward.node) if names else None
    return [(code, name) for name in names if code is not None]


def _dimensions(code: _Code, returned: Returned, position: int | None) -> int:
    known = before_star(returned.slots)
    if position is None and len(known) < len(returned.slots):
        return 0
    slots = known if position is None else known[position : position + 1]
    return min((_of_slot(code, slot.value, slot.node) for slot in slots), default=0)


def _of_slot(code: _Code, value: Value, node: cst.BaseExpression | None) -> int:
    written = code.dimensions(node) if node is not None else 0
    return max(written, min(_of_value(code, each) for each in value.options()))


def _of_value(code: _Code, value: Value) -> int:
    if isinstance(value, Parameter):
        return code.of_name(value.name, 0)
    node = value.node if isinstance(value, (Fresh, View)) else None
    known = isinstance(node, cst.BaseExpression) and node in code.parents
    return code.dimensions(node) if known and isinstance(node, cst.BaseExpression) else 0


def _written(args: Sequence[cst.Arg]) -> list[cst.BaseExpression] | None:
    """The sizes that a call gives one by one; None if it may give others, or a dtype."""
    if any(each.star or each.keyword is not None for each in args) or not args:
        return None
    sizes = [each.value for each in args]
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        elements = sizes[0].elements
        return None if any(isinstance(each, cst.StarredElement) for each in elements) else [e.value for e in elements]
    return sizes if len(sizes) > 1 or signed_integer(sizes[0]) is not None or _is_number(sizes[0]) else None


def _is_number(size: cst.BaseExpression) -> bool:
    """Whether it is ``x.numel()``."""
    return isinstance(size, cst.Call) and last_name(size.func) in ("numel", "nelement") and not size.args


class _Code:
    """What a function says about its tensors."""

    def __init__(self, function: cst.FunctionDef, elsewhere: Iterable[tuple[_Code, str]] = ()) -> None:
        self.parents = kept(function, parents_in)
        self._order = {node: at for at, node in enumerate(self.parents)}
        self._elsewhere = {name: code for code, name in elsewhere}
        self._params = {each.name.value for each in self.parents if isinstance(each, cst.Param)}
        self._assigned: dict[str, list[tuple[cst.Assign, cst.BaseExpression | None]]] = {}
        self._exact: dict[str, set[int]] = {}
        self._least: dict[str, int] = {}
        self._flattened: dict[str, int] = {}
        """The least dimensions of what the function flattens."""
        self._found: dict[str, int] = {}
        """The dimensions of names; 0 also while one is being asked for, as in ``x = x * a``."""
        self.passed: set[str] = set()
        """The names that other functions get, which may want certain numbers of dimensions."""
        for node in self.parents:
            if isinstance(node, cst.Assign):
                self._bind(node)
        for node in self.parents:
            self._hear(node)

    def _bind(self, node: cst.Assign) -> None:
        for target in node.targets:
            path = dotted(target.target)
            if path is not None:
                self._assigned.setdefault(path, []).append((node, node.value))
            elif isinstance(target.target, (cst.Tuple, cst.List)):
                for each in target.target.elements:
                    if isinstance(each.value, cst.Name):
                        self._assigned.setdefault(each.value.value, []).append((node, None))

    # What the code tells

    def _hear(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Assign):
            self._hear_unpacking(node)
        elif isinstance(node, cst.Comparison):
            self._hear_comparison(node)
        elif isinstance(node, cst.Subscript):
            self._hear_subscript(node)
        elif isinstance(node, cst.Call):
            self._hear_call(node)
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
            self._hear_product((node.left, node.right), node)
        elif isinstance(node, cst.Attribute) and node.attr.value == "T":
            self._says_exactly(node.value, 2, node)

    def _hear_unpacking(self, node: cst.Assign) -> None:
        owner, target = self._owner_of_shape(node.value), node.targets[0].target
        if owner is None or not isinstance(target, (cst.Tuple, cst.List)):
            return
        if any(isinstance(each, cst.StarredElement) for each in target.elements):
            self._says_at_least(owner, _ANY, node)
        else:
            self._says_exactly(owner, len(target.elements), node)

    def _hear_comparison(self, node: cst.Comparison) -> None:
        number = signed_integer(node.comparisons[0].comparator) if len(node.comparisons) == 1 else None
        owner = _counted(node.left)
        if number is None or owner is None:
            return
        operator, above = node.comparisons[0].operator, self.parents[node]
        raises = isinstance(above, cst.If) and any(
            isinstance(part, cst.Raise)
            for line in above.body.body
            for part in (line.body if isinstance(line, cst.SimpleStatementLine) else ())
        )
        asserts = isinstance(operator, cst.Equal) and isinstance(above, cst.Assert)
        if asserts or (isinstance(operator, cst.NotEqual) and raises):
            self._says_exactly(owner, number, node)

    def _hear_subscript(self, node: cst.Subscript) -> None:
        owner = self._owner_of_shape(node.value)
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if owner is None:
            return
        if isinstance(index, cst.Index):
            self._says_size(owner, signed_integer(index.value), node)
        elif isinstance(index, cst.Slice) and index.lower is None and (signed_integer(index.upper) or 0) < 0:
            self._says_at_least(owner, _ANY, node)

    def _hear_call(self, node: cst.Call) -> None:
        func = node.func
        if self._may_want_dimensions(func):
            self.passed.update(each.value.value for each in node.args if isinstance(each.value, cst.Name))
        if not isinstance(func, cst.Attribute):
            return
        name, owner, of_torch = func.attr.value, func.value, root_name(func) in _OF_TORCH
        if name == "size" and len(node.args) == 1:
            self._says_size(owner, signed_integer(node.args[0].value), node)
        elif name in _RESHAPING:
            sizes = _written(node.args) or []
            if sizes and signed_integer(sizes[0]) == -1 and all(self._is_size_of(owner, each) for each in sizes[1:]):
                self._says_at_least(owner, len(sizes) + 1, node, self._flattened)
        elif name == "flatten" and not of_torch:
            numbers = [signed_integer(each.value) for each in node.args]
            least = 3 if numbers in ([0, 1], [0, -2]) else 2 if not numbers else 0
            self._says_at_least(owner, least, node, self._flattened)
        elif name in _MATRICES:
            for each in node.args if of_torch else [cst.Arg(owner), *node.args]:
                self._says_exactly(each.value, 2, node)
        elif name == "matmul":
            sides = [each.value for each in node.args] if of_torch else [owner, *(each.value for each in node.args)]
            self._hear_product(sides, node)

    def _hear_product(self, sides: Sequence[cst.BaseExpression], node: cst.CSTNode) -> None:
        if len(sides) == 2 and _is_transposed(sides[0]):
            self._says_exactly(sides[1], 2, node)

    def _may_want_dimensions(self, func: cst.BaseExpression) -> bool:
        """Whether a function is neither of Python nor of torch, nor a method of a tensor."""
        root, name = root_name(func), last_name(func)
        if isinstance(func, cst.Name):
            return name not in _OF_PYTHON
        of_tensor = root in _OF_TORCH or root in self._params or root in self._assigned
        return not of_tensor or (root in _RECEIVERS and not name.startswith(_OF_CTX))

    def _says_exactly(self, owner: cst.BaseExpression, number: int, where: cst.CSTNode) -> None:
        if isinstance(owner, cst.Name) and self._is_original(owner.value, where):
            self._exact.setdefault(owner.value, set()).add(number)

    def _says_at_least(
        self, owner: cst.BaseExpression, number: int, where: cst.CSTNode, into: dict[str, int] | None = None
    ) -> None:
        into = self._least if into is None else into
        if isinstance(owner, cst.Name) and self._is_original(owner.value, where):
            into[owner.value] = max(number, into.get(owner.value, 0))

    def _says_size(self, owner: cst.BaseExpression, index: int | None, where: cst.CSTNode) -> None:
        if index is not None:
            self._says_at_least(owner, index + 1 if index >= 0 else -index, where)

    def _is_original(self, name: str, where: cst.CSTNode) -> bool:
        """Whether a name has its only value, or is a parameter that no statement before has bound again."""
        stores = [each for each, _value in self._assigned.get(name, ())]
        if name not in self._params:
            return len(stores) == 1
        around = set(self._above(where))
        return all(each is where or each in around or self._order[each] > self._order[where] for each in stores)

    def _above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def _owner_of_shape(self, node: cst.BaseExpression, hops: int = 0) -> cst.Name | None:
        """``x`` of ``x.shape`` and ``x.size()``, perhaps through a name."""
        if isinstance(node, cst.Name) and hops < 4:
            bound = self._bound(node.value)
            return self._owner_of_shape(bound, hops + 1) if bound is not None else None
        called = node.func if isinstance(node, cst.Call) and not node.args else node
        if not isinstance(called, cst.Attribute) or not isinstance(called.value, cst.Name):
            return None
        return called.value if called.attr.value == ("size" if called is not node else "shape") else None

    def _bound(self, path: str) -> cst.BaseExpression | None:
        found = self._assigned.get(path, ())
        return found[0][1] if len(found) == 1 and path not in self._params else None

    def _is_size_of(self, owner: cst.BaseExpression, size: cst.BaseExpression) -> bool:
        """Whether a size is one of a tensor: ``x.shape[-1]``, ``x.size(1)``, a name for that, or for what made it."""
        if not isinstance(owner, cst.Name):
            return False
        if isinstance(size, cst.Name):
            made = self._bound(owner.value)
            if isinstance(made, cst.Call) and any(is_name(each.value, size.value) for each in made.args):
                return True
            stores = self._assigned.get(size.value, ())
            if len(stores) != 1:
                return False
            whole = self._owner_of_shape(stores[0][0].value)
            if stores[0][1] is None:
                return is_name(whole, owner.value)
            return not isinstance(stores[0][1], cst.Name) and self._is_size_of(owner, stores[0][1])
        if isinstance(size, cst.Subscript):
            return is_name(self._owner_of_shape(size.value), owner.value)
        return isinstance(size, cst.Call) and code_of(size.func) == f"{owner.value}.size"

    # The numbers of dimensions

    def said_of(self, name: str, *, flattened: bool = False) -> int:
        """The dimensions of a tensor, as the code about it says, also where it flattens it; 0 if nothing does."""
        exact = self._exact.get(name, ())
        if exact:
            return min(exact) if len(exact) == 1 else 0
        return max(self._least.get(name, 0), self._flattened.get(name, 0) if flattened else 0)

    def is_exact(self, name: str) -> bool:
        """Whether the code says exactly how many dimensions a tensor has."""
        return bool(self._exact.get(name))

    def flattens_others(self, name: str) -> bool:
        """Whether a function flattens another tensor, and makes that like a third one, or keeps its shape."""
        others = {each for each, least in self._flattened.items() if each != name and least > 1}
        made = (self._bound(each) for each in others)
        if any(isinstance(each, cst.Call) and last_name(each.func) in LAYOUT_KEEPING_FACTORIES for each in made):
            return True
        stored = (self._owner_of_shape(value) for stores in self._assigned.values() for _at, value in stores if value)
        return any(each is not None and each.value in others for each in stored)

    def merges_first(self, call: cst.Call, name: str) -> bool:
        """Whether a view is ``x.view(-1, *x.shape[2:])``, or one under a test of the number of dimensions."""
        if len(call.args) != 2 or signed_integer(call.args[0].value) != -1 or call.args[1].star != "*":
            return False
        rest = call.args[1].value
        index = rest.slice[0].slice if isinstance(rest, cst.Subscript) and len(rest.slice) == 1 else None
        if not isinstance(rest, cst.Subscript) or not isinstance(index, cst.Slice) or index.upper is not None:
            return False
        start = signed_integer(index.lower)
        if not is_name(self._owner_of_shape(rest.value), name) or start in (None, 0, 1):
            tested = (each.test for each in self._above(call) if isinstance(each, cst.If))
            counted = (_counted(each.left) for each in tested if isinstance(each, cst.Comparison))
            return start is None and any(is_name(each, name) for each in counted)
        return start is not None and start > 1

    def of_name(self, name: str, hops: int) -> int:
        """The dimensions of what a name stands for."""
        if name not in self._found:
            self._found[name] = 0
            self._found[name] = self._of_name(name, hops)
        return self._found[name]

    def _of_name(self, name: str, hops: int) -> int:
        codes = [self, *([self._elsewhere[name]] if name in self._elsewhere else [])]
        said = [each.said_of(name, flattened=True) for each in codes]
        exact = [number for number, each in zip(said, codes, strict=True) if each.is_exact(name)]
        if exact:
            return min(exact)
        return max(*said, self._made(name, codes, hops))

    def _made(self, name: str, codes: list[_Code], hops: int) -> int:
        stores = self._assigned.get(name, ())
        if name in self._params and not all(self._replaces_none(each, name) for each, _value in stores):
            return 0
        if name in self._params and not stores:
            return 0 if any(name in each.passed for each in codes) else _UNSEEN
        values = [self.dimensions(value, hops + 1) if value is not None else 0 for _node, value in stores]
        return min(values, default=0)

    def _replaces_none(self, store: cst.Assign, name: str) -> bool:
        """Whether it is ``x = …`` under ``if x is None``."""
        return any(isinstance(each, cst.If) and code_of(each.test) == f"{name} is None" for each in self._above(store))

    def dimensions(self, node: cst.BaseExpression, hops: int = 0) -> int:
        """The dimensions of the tensor that an expression creates; 0 if unknown."""
        if hops > 12:
            return 0
        if isinstance(node, cst.Name):
            return self.of_name(node.value, hops)
        if isinstance(node, cst.UnaryOperation):
            return self.dimensions(node.expression, hops + 1)
        if isinstance(node, cst.BinaryOperation):
            left = self.dimensions(node.left, hops + 1)
            if isinstance(node.operator, cst.MatrixMultiply):
                return left if left > 1 else 0
            return max(left, self.dimensions(node.right, hops + 1))
        if isinstance(node, cst.IfExp):
            return min(self.dimensions(each, hops + 1) for each in (node.body, node.orelse))
        if isinstance(node, cst.Attribute):
            return self.dimensions(node.value, hops + 1) if node.attr.value in ("T", "mT", "data") else 0
        return self._of_call(node, hops) if isinstance(node, cst.Call) else 0

    def _of_call(self, node: cst.Call, hops: int) -> int:
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        given = [each.value for each in node.args if each.keyword is None]
        of_torch = owner is not None and root_name(owner) in _OF_TORCH
        if name in CONTIGUOUS_FACTORIES or name in CONTIGUOUS_FACTORY_METHODS or (name in _RESHAPING and owner):
            return max(self._of_sizes(node.args, hops), 0)
        if (name in _LIKE or name in LAYOUT_KEEPING_FACTORIES) and given:
            return self.dimensions(given[0], hops + 1)
        if name in _PRODUCTS and (given if of_torch else owner is not None):
            left = self.dimensions(given[0] if of_torch or owner is None else owner, hops + 1)
            return left if left > 1 else 0
        if name in _KEEPING and owner is not None and (given or not of_torch):
            return self.dimensions(given[0] if of_torch else owner, hops + 1)
        return 0

    def _of_sizes(self, args: Sequence[cst.Arg], hops: int) -> int:
        """How many sizes, apart from 1, a call gives; -1 if unknown."""
        plain = [each for each in args if each.keyword is None]
        if len(plain) == 1 and signed_integer(plain[0].value) is None:
            return self._of_shape(plain[0].value, hops)
        return self._of_parts([(each.value, bool(each.star)) for each in plain], hops)

    def _of_parts(self, parts: list[tuple[cst.BaseExpression, bool]], hops: int) -> int:
        """The same for expressions that are one size each, or starred shapes."""
        return _sum(self._of_shape(each, hops + 1) if starred else signed_integer(each) != 1 for each, starred in parts)

    def _of_shape(self, node: cst.BaseExpression, hops: int) -> int:
        """How many sizes, apart from 1, are in a shape; -1 if unknown."""
        if hops > 12:
            return -1
        owner = self._owner_of_shape(node)
        if owner is not None:
            return self.of_name(owner.value, hops + 1) or -1
        path = dotted(node)
        if path is not None:
            bound = self._bound(path)
            return self._of_shape(bound, hops + 1) if bound is not None else -1
        if isinstance(node, (cst.Tuple, cst.List)):
            return self._of_parts([(each.value, isinstance(each, cst.StarredElement)) for each in node.elements], hops)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return _sum([self._of_shape(each, hops + 1) for each in (node.left, node.right)])
        index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
        if not isinstance(node, cst.Subscript) or not isinstance(index, cst.Slice):
            return -1
        lower, upper = signed_integer(index.lower), signed_integer(index.upper)
        whole = self._of_shape(node.value, hops + 1)
        if index.lower is None and upper is not None and upper > 0:
            return upper
        if whole == _ANY or whole < 0:
            return whole
        left_out = -upper if index.lower is None and upper is not None else lower if index.upper is None else None
        return whole - left_out if left_out is not None and 0 < left_out <= whole else -1


def _sum(parts: Iterable[int]) -> int:
    numbers = [*parts]
    return -1 if min(numbers, default=-1) < 0 else min(sum(numbers), _ANY)


def _is_transposed(node: cst.BaseExpression) -> bool:
    """Whether it is ``x.T`` or ``x.t()``, which are for matrices."""
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and node.func.attr.value == "t" and not node.args
    return isinstance(node, cst.Attribute) and node.attr.value == "T"


def _counted(node: cst.BaseExpression) -> cst.Name | None:
    """``x`` of ``x.ndim``, ``x.dim()`` and ``len(x.shape)``."""
    if isinstance(node, cst.Call) and is_name(node.func, "len") and len(node.args) == 1:
        node = node.args[0].value
        node = node.func if isinstance(node, cst.Call) else node
        return node.value if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) else None
    node = node.func if isinstance(node, cst.Call) else node
    asked = isinstance(node, cst.Attribute) and node.attr.value in ("dim", "ndim", "ndimension")
    return node.value if isinstance(node, cst.Attribute) and asked and isinstance(node.value, cst.Name) else None
