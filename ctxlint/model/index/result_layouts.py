"""The sizes, dtypes and layouts of what a function returns, as far as its own statements show.

They are terms in the parameters of a custom operator, so that those of its fake can be compared with them. All is
decided with ``ast`` alone. What only some branches or a loop bind, and what other functions return, is unknown.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.model.index.scopes import dotted_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONTIGUOUS, TRANSPOSED = "contiguous", "transposed"
"""The layouts that do not depend on those of parameters."""
DEFAULT = "get_default_dtype()"
"""The dtype of new tensors, where none is asked for: some floating-point one."""


@record
class Size:
    """A size: number ``at`` of the tensor ``of``, or else the number or parameter ``text``; unknown if all is empty."""

    of: str = ""
    at: int = 0
    text: str = ""


@record
class Laid:
    """A tensor: ``like`` has its shape, of which ``fewer`` dimensions are reduced; or ``sizes`` are known.

    ``dtype`` is a name in ``torch``, or ``dtype_of`` has it. ``order`` is the layout; it is that of ``order_of`` if
    that is set.
    """

    like: str = ""
    fewer: int = 0
    sizes: tuple[Size, ...] | None = None
    dtype: str = ""
    dtype_of: str = ""
    order: str = ""
    order_of: str = ""

    @property
    def is_scalar(self) -> bool:
        """Whether it certainly has no dimension."""
        return self.sizes == () and not self.like

    @property
    def is_vector(self) -> bool:
        """Whether it certainly has a single dimension."""
        return self.sizes is not None and len(self.sizes) == 1 and self.sizes[0].at != LEADING and not self.like


_Value = Laid | Size | None


class Results(NamedTuple):
    """What the returns of a function give, each a list of tensors after their expressions; None for an unknown one.

    ``complete``: there are no other returns.
    """

    returns: list[list[tuple[ast.expr, Laid | None]]]
    complete: bool


def results_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, names: Mapping[str, str], numbers: frozenset[str]
) -> Results:
    """What a function returns on each path, as far as the paths are known.

    ``names`` are the parameters, with the names to call them by, and ``numbers`` those that are not tensors.
    """
    walk = _Walk({own: Size(text=name) if name in numbers else _parameter(name) for own, name in names.items()}, [])
    ends = walk.run(function.body)
    return Results(walk.returned, complete=ends is Ends.ALWAYS)


def _parameter(name: str) -> Laid:
    return Laid(like=name, dtype_of=name, order_of=name)


class Ends(Enum):
    """Whether statements end the function, by a return that is known, or an exception."""

    ALWAYS = "always"
    NEVER = "never"
    UNKNOWN = "some of their returns are unknown"


class _Walk:
    """Runs the statements of a function in order; ``returned`` collects what its returns give."""

    def __init__(self, bound: dict[str, _Value], returned: list[list[tuple[ast.expr, Laid | None]]]) -> None:
        self.bound = bound
        self.returned = returned

    def run(self, body: Sequence[ast.stmt]) -> Ends:
        """Bind what statements bind, up to the first that ends the function, or may return in an unknown way."""
        for statement in body:
            ends = self.step(statement)
            if ends is not Ends.NEVER:
                return ends
        return Ends.NEVER

    def step(self, statement: ast.stmt) -> Ends:
        """Run one statement."""
        if isinstance(statement, ast.Return):
            return self.give(statement.value)
        if isinstance(statement, ast.Raise):
            return Ends.ALWAYS
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self.run(statement.body)
        if isinstance(statement, ast.If) and any(isinstance(each, ast.Return) for each in nodes_in(statement)):
            return self.choose(statement)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self.bind(statement.targets[0], statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self.bind(statement.target, statement.value)
        elif not self.leaves(statement):
            return Ends.UNKNOWN
        return Ends.NEVER

    def give(self, value: ast.expr | None) -> Ends:
        """Note what a return gives."""
        elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        known = [each for each in elements if each is not None and not isinstance(each, ast.Starred)]
        if len(known) < len(elements):
            return Ends.UNKNOWN
        found = [(each, self.value(each)) for each in known]
        self.returned.append([(node, laid if isinstance(laid, Laid) else None) for node, laid in found])
        return Ends.ALWAYS

    def choose(self, statement: ast.If) -> Ends:
        """Run the branches of a test in which something is returned; what follows only knows the one that goes on."""
        branches = [_Walk(dict(self.bound), self.returned) for _ in range(2)]
        ends = [walk.run(body) for walk, body in zip(branches, (statement.body, statement.orelse))]
        if Ends.UNKNOWN in ends:
            return Ends.UNKNOWN
        going_on = [walk.bound for walk, each in zip(branches, ends) if each is Ends.NEVER]
        if going_on:
            self.bound = {
                name: value for name, value in going_on[0].items() if all(value == each.get(name) for each in going_on)
            }
        return Ends.NEVER if going_on else Ends.ALWAYS

    def leaves(self, statement: ast.stmt) -> bool:
        """Forget what another statement may bind or change; whether it certainly does not return."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.bound[statement.name] = None
            return True
        for node in nodes_in(statement):
            if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Delete, ast.Global, ast.Nonlocal)):
                return False
            kept = isinstance(statement, ast.AugAssign)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not kept:
                self.bound[node.id] = None
            func = node.func if isinstance(node, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr in _RESHAPING and isinstance(func.value, ast.Name):
                self.bound[func.value.id] = None
        return True

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        """Bind the names of a target."""
        if isinstance(target, ast.Name):
            self.bound[target.id] = self.value(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            self.bound[target.value.id] = None  # x.data = y
        elif isinstance(target, (ast.Tuple, ast.List)):
            whole = self.shape(value)
            elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            together = len(elements) == len(target.elts)
            values = [self.value(each) for each in elements] if together else []
            for at, each in enumerate(target.elts):
                sized = Size(whole.like, at) if whole is not None and whole.like and not whole.fewer else None
                for name in (node for node in nodes_in(each) if isinstance(node, ast.Name)):
                    self.bound[name.id] = None
                if isinstance(each, ast.Name):
                    self.bound[each.id] = values[at] if together else sized
                elif isinstance(each, ast.Starred):
                    whole = None

    # Expressions

    def value(self, node: ast.expr) -> _Value:
        """What is known of an expression."""
        if isinstance(node, ast.Name):
            return self.bound.get(node.id)
        if isinstance(node, ast.Constant):
            return Size(text=str(node.value)) if type(node.value) is int else None
        if isinstance(node, ast.Subscript):
            return self.size(node)
        if isinstance(node, ast.Attribute):
            tensor = self.value(node.value)
            return transposed(tensor) if isinstance(tensor, Laid) and node.attr in ("T", "mT") else None
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        return self.call(node) if isinstance(node, ast.Call) else None

    def size(self, node: ast.Subscript) -> _Value:
        """One size of a shape: ``x.shape[0]``."""
        whole = self.shape(node.value)
        at = _number(node.slice)
        if whole is None or at is None:
            return None
        if whole.sizes is not None:
            return whole.sizes[at] if -len(whole.sizes) <= at < len(whole.sizes) else None
        return Size(whole.like, at) if whole.like and not whole.fewer else None

    def shape(self, node: ast.expr) -> Laid | None:
        """The tensor whose whole shape an expression is: ``x.shape``, ``x.size()``."""
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            node = node.func if isinstance(node.func, ast.Attribute) and node.func.attr == "size" else node
        elif not (isinstance(node, ast.Attribute) and node.attr == "shape"):
            return None
        tensor = self.value(node.value) if isinstance(node, ast.Attribute) else None
        return tensor if isinstance(tensor, Laid) else None

    def operation(self, node: ast.BinOp) -> _Value:
        """``x * 2`` keeps sizes and layout; a matrix product is contiguous, and ``2 * n`` a number."""
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            return self.product(left, right)
        if isinstance(left or node.left, (Size, ast.Constant)) and isinstance(
            right or node.right, (Size, ast.Constant)
        ):
            return Size()
        first = isinstance(left, Laid) and not (left.is_scalar and isinstance(right, Laid))
        tensor, other, node_of_other = (left, right, node.right) if first else (right, left, node.left)
        scales = isinstance(node_of_other, ast.Constant) or isinstance(other, Size)
        if not isinstance(tensor, Laid) or not (scales or (isinstance(other, Laid) and other.is_scalar)):
            return None
        if not scales:
            return _of_unknown_dtype(tensor)  # it is that of the other one if this one has no dimension either
        number = node_of_other.value if isinstance(node_of_other, ast.Constant) else None
        whole = type(number) is int and not isinstance(node.op, ast.Div)
        return tensor if whole else replace(tensor, dtype_of="", dtype=tensor.dtype if _floats(tensor) else "")

    def product(self, left: _Value, right: _Value) -> _Value:
        """The result of a matrix product."""
        dtypes = {each.dtype if isinstance(each, Laid) else "" for each in (left, right)}
        known = isinstance(left, Laid) or isinstance(right, Laid)
        return Laid(dtype=dtypes.pop() if len(dtypes) == 1 else "", order=CONTIGUOUS) if known else None

    def call(self, node: ast.Call) -> _Value:
        """The result of a function of torch, or a method of a tensor."""
        path = dotted_name(node.func) or ""
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            return self.made(path.removeprefix("torch."), node) if path.startswith("torch.") else None
        if path.startswith("torch."):
            name = path.removeprefix("torch.")
            first = self.value(node.args[0]) if node.args else None
            if name in _MAKING:
                return self.made(name, node)
            if name in _LIKE and isinstance(first, Laid):
                return self.arranged(self.typed(first, node), node)
            if name in _PRODUCTS and len(node.args) == _OPERANDS:
                return self.product(first, self.value(node.args[1]))
            return self.method(name, first, node, node.args[1:]) if isinstance(first, Laid) else None
        func = node.func if isinstance(node.func, ast.Attribute) else None
        tensor = self.value(func.value) if func is not None else None
        if func is not None and func.attr == "contiguous" and not isinstance(tensor, Laid):
            return Laid(order=CONTIGUOUS) if not node.args and not node.keywords else None
        if func is None or not isinstance(tensor, Laid) or func.attr == "size":
            return self.size_of(node, func)
        if func.attr in _NEW:
            made = self.sized(node.args[:1] if func.attr == "new_full" else node.args)
            made = replace(made, dtype=tensor.dtype, dtype_of=tensor.dtype_of, order=CONTIGUOUS, order_of="")
            return self.typed(made, node)
        if func.attr in _PRODUCTS and node.args:
            return self.product(tensor, self.value(node.args[0]))
        return self.method(func.attr, tensor, node, node.args)

    def size_of(self, node: ast.Call, func: ast.Attribute | None) -> _Value:
        """``x.size(0)``."""
        if func is None or func.attr != "size" or len(node.args) != 1:
            return None
        shape = ast.Attribute(func.value, "shape", ast.Load())
        return self.size(ast.Subscript(shape, node.args[0], ast.Load()))

    def made(self, name: str, node: ast.Call) -> _Value:
        """A new tensor: ``torch.empty(n, m, dtype=x.dtype)``."""
        if name not in _MAKING:
            return None
        sizes = node.args[:1] if name == "full" else node.args
        made = _of_numbers(node.args[0]) if name == "tensor" and node.args else self.sized(sizes)
        return self.typed(replace(made, order=CONTIGUOUS, dtype=made.dtype or _DEFAULT_OF.get(name, "")), node)

    def sized(self, arguments: Sequence[ast.expr]) -> Laid:
        """A tensor of the sizes that arguments stand for."""
        if len(arguments) == 1:
            whole = self.shape(arguments[0])
            if whole is not None:
                return Laid(like=whole.like, fewer=whole.fewer, sizes=whole.sizes)
            if isinstance(arguments[0], (ast.Tuple, ast.List)):
                arguments = arguments[0].elts
            elif self.value(arguments[0]) in (None, Size()):
                return Laid()  # perhaps all sizes
        found: list[Size] = []
        for each in arguments:
            if isinstance(each, ast.Starred):
                leading = self.leading(each.value)
                if leading is None or found:
                    return Laid()
                found.append(leading)
                continue
            value = self.value(each)
            found.append(value if isinstance(value, Size) else Size())
        return Laid(sizes=tuple(found)) if arguments else Laid()

    def leading(self, node: ast.expr) -> Size | None:
        """All sizes of a tensor but the last one, ``x.shape[:-1]``, as a size without a number."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            return None
        whole, part = self.shape(node.value), node.slice
        if part.lower is not None or part.step is not None or part.upper is None or _number(part.upper) != -1:
            return None
        return Size(whole.like, LEADING) if whole is not None and whole.like else None

    def method(self, name: str, tensor: Laid, node: ast.Call, arguments: Sequence[ast.expr]) -> _Value:
        """The result of a method of a tensor, or of the function of torch of the same name."""
        if name == "contiguous":
            return replace(tensor, order=CONTIGUOUS, order_of="") if not arguments and not node.keywords else None
        if name in _DTYPES:
            return replace(tensor, dtype=_DTYPES[name], dtype_of="")
        if name in ("to", "type"):
            return self.converted(tensor, node, arguments)
        if name == "clone":
            return self.arranged(tensor, node)
        if name in ("t", "transpose", "permute", "swapaxes", "swapdims"):
            return transposed(tensor) if name == "t" or _moves(name, [_number(each) for each in arguments]) else None
        if name in _REDUCING:
            return self.reduced(name, tensor, node, arguments)
        if name == "clamp":
            limits = [*arguments, *(each.value for each in node.keywords)]
            bounded = all(isinstance(each, ast.Constant) or isinstance(self.value(each), Size) for each in limits)
            return _of_unknown_dtype(tensor) if bounded else None
        if arguments or node.keywords or name not in _ELEMENTWISE:
            return None
        return tensor if name in _KEEPING or _floats(tensor) else _of_unknown_dtype(tensor)

    def converted(self, tensor: Laid, node: ast.Call, arguments: Sequence[ast.expr]) -> _Value:
        """``x.to(torch.float32)``; for a device, or another tensor, the dtype is unknown."""
        given = [*arguments, *(each.value for each in node.keywords if each.arg == "dtype")]
        if any(each.arg == "memory_format" for each in node.keywords):
            return None
        only = len(given) == 1 and len(arguments) + len(node.keywords) == 1
        found = self.dtype(given[0]) if only else None
        return replace(tensor, dtype=found[0], dtype_of=found[1]) if found is not None else _of_unknown_dtype(tensor)

    def reduced(self, name: str, tensor: Laid, node: ast.Call, arguments: Sequence[ast.expr]) -> _Value:
        """``x.sum(-1)`` has one dimension less, ``x.sum()`` none."""
        dtype, dtype_of = ("int64", "") if name.startswith("arg") else (tensor.dtype, tensor.dtype_of)
        if name in ("sum", "prod"):
            dtype, dtype_of = (dtype if _floats(tensor) else ""), ""
        keywords = {each.arg: each.value for each in node.keywords}
        given = [*arguments, *(keywords[each] for each in ("dim", "axis") if each in keywords)]
        if len(given) != len(arguments) + len(node.keywords) or len(given) > 1:
            return Laid(dtype=dtype, dtype_of=dtype_of) if "dtype" not in keywords else None
        if not given:
            return Laid(sizes=(), dtype=dtype, dtype_of=dtype_of)
        one = _number(given[0]) is not None
        like, fewer = (tensor.like, tensor.fewer + 1) if one and tensor.like else ("", 0)
        sizes = None
        if one and tensor.sizes is not None:
            at = _number(given[0]) or 0
            at = at + len(tensor.sizes) if at < 0 else at
            sizes = (*tensor.sizes[:at], *tensor.sizes[at + 1 :])
        return Laid(like, fewer, sizes, dtype, dtype_of)

    def typed(self, tensor: Laid, node: ast.Call) -> Laid:
        """The tensor with the dtype that a call asks for; unknown if nothing tells."""
        asked = next((each.value for each in node.keywords if each.arg == "dtype"), None)
        if asked is None:
            return tensor
        found = self.dtype(asked) or ("", "")
        return replace(tensor, dtype=found[0], dtype_of=found[1])

    def arranged(self, tensor: Laid, node: ast.Call) -> Laid:
        """The tensor with the layout that a call asks for: ``memory_format=torch.contiguous_format``."""
        asked = next((each.value for each in node.keywords if each.arg == "memory_format"), None)
        if asked is None:
            return tensor
        order = CONTIGUOUS if dotted_name(asked) == "torch.contiguous_format" else ""
        return replace(tensor, order=order, order_of="")

    def dtype(self, node: ast.expr) -> tuple[str, str] | None:
        """A dtype, and the tensor that has it: ``torch.float32``, ``x.dtype``."""
        path = dotted_name(node) or ""
        name = _SHORT.get(path.removeprefix("torch."), path.removeprefix("torch."))
        if path.startswith("torch.") and name in _KNOWN:
            return name, ""
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            tensor = self.value(node.value)
            if isinstance(tensor, Laid) and (tensor.dtype or tensor.dtype_of):
                return tensor.dtype, tensor.dtype_of
        return None


def _of_numbers(node: ast.expr) -> Laid:
    """The tensor that ``torch.tensor`` makes of a number, or a list of numbers."""
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    values = [each.value for each in elements if isinstance(each, ast.Constant)]
    kinds = {type(each) for each in values}
    if len(values) < len(elements) or not kinds <= {int, float}:
        return Laid()
    sizes = () if elements == [node] else (Size(text=str(len(elements))),)
    return Laid(sizes=sizes, dtype="int64" if kinds == {int} else DEFAULT)


def transposed(tensor: Laid) -> Laid:
    """A tensor with its dimensions in another order; torch does not compare the strides of those of size 1."""
    is_vector = any(each.text == "1" for each in tensor.sizes or ())
    order = TRANSPOSED if tensor.order == CONTIGUOUS and not is_vector else ""
    sizes = tuple(reversed(tensor.sizes)) if tensor.sizes is not None and len(tensor.sizes) == _OF_A_MATRIX else None
    return Laid(sizes=sizes, dtype=tensor.dtype, dtype_of=tensor.dtype_of, order=order)


def _moves(name: str, dimensions: list[int | None]) -> bool:
    """Whether a method certainly changes the order of dimensions, of which these are the numbers."""
    known = [each for each in dimensions if each is not None]
    same_end = all(each < 0 for each in known) or all(each >= 0 for each in known)
    if len(known) < len(dimensions) or not same_end:
        return False
    return known != sorted(known) if name == "permute" else len({*known}) > 1


def _of_unknown_dtype(tensor: Laid) -> Laid:
    return replace(tensor, dtype="", dtype_of="")


def _floats(tensor: Laid) -> bool:
    return tensor.dtype in FLOATING or tensor.dtype == DEFAULT


def _number(node: ast.expr) -> int | None:
    """A literal whole number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return -inner if inner is not None else None
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


LEADING = 1 << 30
"""The number that stands for all sizes of a tensor but the last one."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPERANDS = 2
"""How many matrices a product takes."""
_OF_A_MATRIX = 2
"""How many sizes a matrix has."""
_PRODUCTS = _words("mm matmul bmm")
_MAKING = _words("empty zeros ones full rand randn tensor")
_DEFAULT_OF = dict.fromkeys(_words("empty zeros ones rand randn"), DEFAULT)
_LIKE = _words("empty_like zeros_like ones_like full_like rand_like randn_like")
_NEW = _words("new_empty new_zeros new_ones new_full")
_RESHAPING = _words("t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ resize_ resize_as_ set_ as_strided_")
_REDUCING = _words("sum prod mean amax amin argmax argmin logsumexp")
_KEEPING = _words("abs detach neg relu square")
"""Functions of each element that keep the dtype; the others return floating-point numbers for whole ones."""
_ELEMENTWISE = _KEEPING | _words("cos erf exp log rsqrt sigmoid sin sqrt tanh")
_DTYPES = {"float": "float32", "half": "float16", "double": "float64", "bfloat16": "bfloat16", "long": "int64"}
_SHORT = {"float": "float32", "half": "float16", "double": "float64", "int": "int32", "long": "int64", "short": "int16"}
FLOATING = _words("float16 bfloat16 float32 float64")
_KNOWN = FLOATING | _words("bool uint8 int8 int16 int32 int64")
